/* tests/support/patience.h: how many times longer than in a plain build anything may take: what limits a time in a test is
 * multiplied by it. */
#ifndef TL_TESTS_SUPPORT_PATIENCE_H
#define TL_TESTS_SUPPORT_PATIENCE_H
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
enum { PATIENCE = 10 };
#elif defined(__SANITIZE_ADDRESS__)
enum { PATIENCE = 8 };
#else
enum { PATIENCE = 1 };
#endif

/* The window, in nanoseconds, from which the next instant of a kill is drawn, after one that came before there was anything
 * to lose: on a slow machine that takes longer. */
static inline int64_t patience_widen(int64_t window)
{
    return window < INT64_C(1500000000) * PATIENCE ? window + window / 4 : window;
}

#endif
