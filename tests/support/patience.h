/* tests/support/patience.h: how many times longer than in a plain build anything may take: what limits a time in a test is
 * multiplied by it. */
#ifndef TL_TESTS_SUPPORT_PATIENCE_H
#define TL_TESTS_SUPPORT_PATIENCE_H

#if defined(__SANITIZE_THREAD__)
enum { PATIENCE = 10 };
#elif defined(__SANITIZE_ADDRESS__)
enum { PATIENCE = 4 };
#else
enum { PATIENCE = 1 };
#endif

#endif
