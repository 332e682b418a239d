/* runtime/base/clock.c: time that only moves forward. */
#include "runtime/base/clock.h"
#include <errno.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t); /* cannot fail for the clocks asked here */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t tl_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t tl_clock_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void tl_clock_sleep_ns(int64_t ns)
{
    if (ns <= 0)
        return;
    struct timespec left = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}
