/* tests/support/sanitized.h: whether a sanitizer looks on: then what was freed is kept, shadow memory is resident, too, and what
 * the compiler made is slow beside what tilth compiles. */
#ifndef TL_TESTS_SUPPORT_SANITIZED_H
#define TL_TESTS_SUPPORT_SANITIZED_H
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
static const bool is_thread_sanitized = true;
#else
static const bool is_thread_sanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

#endif
