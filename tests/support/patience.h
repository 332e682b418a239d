/* tests/support/patience.h: how many times longer than in a plain build anything may take: what limits a time in a test is
 * multiplied by it. */
#ifndef TL_TESTS_SUPPORT_PATIENCE_H
#define TL_TESTS_SUPPORT_PATIENCE_H
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
enum { PATIENCE = 10 };
#elif defined(__SANITIZE_ADDRESS__)
enum { PATIENCE = 8 };
#else
enum { PATIENCE = 1 };
#endif

/* How many times longer than alone on the machine it takes now: tasks that want to run, a core; at least 1. A limit that is
 * looked at before and behind what it limits, and taken as the larger, holds for an idle machine as it stands. */
static inline double patience_of_load(void)
{
    int running = 1;
    FILE *f = fopen("/proc/loadavg", "r");
    if (f != NULL && fscanf(f, "%*f %*f %*f %d/", &running) != 1)
        running = 1;
    if (f != NULL)
        fclose(f);
    double share = (double)running / (double)sysconf(_SC_NPROCESSORS_ONLN);
    return share > 1 ? share : 1;
}

/* The window, in nanoseconds, from which the next instant of a kill is drawn, after one that came before there was anything
 * to lose: on a slow machine that takes longer. */
static inline int64_t patience_widen(int64_t window)
{
    return window < INT64_C(1500000000) * PATIENCE ? window + window / 4 : window;
}

#endif
