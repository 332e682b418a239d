/* tests/bench/company.c: a neighbour that takes a part of one processor. Usage: company PROCESSOR [SHARE [SLICE_MS]]
 *
 * Every SLICE_MS / SHARE milliseconds it computes until it has had SLICE_MS (4) of the processor's time, and else sleeps: SHARE
 * (0.5) of a processor that it has for itself, less of one whose others do not make room. PROCESSOR: its number, or "any", to
 * be moved about like any other process. It ends with its standard input, and tells what it got, as JSON. */
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/clock.h"

static bool stay_on(const char *processor)
{
    cpu_set_t set;

    if (strcmp(processor, "any") == 0)
        return true;
    CPU_ZERO(&set);
    CPU_SET(strtoul(processor, NULL, 10) % CPU_SETSIZE, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static bool input_has_ended(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char byte;

    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void compute(int64_t ns)
{
    volatile double sum = 1;
    int64_t end = tl_clock_cpu_ns() + ns;

    while (tl_clock_cpu_ns() < end)
        for (int i = 0; i < 200; i++)
            sum = sum * 1.0000001 + 1e-9;
}

int main(int argc, char **argv)
{
    double share = argc > 2 ? atof(argv[2]) : 0.5, slice_ms = argc > 3 ? atof(argv[3]) : 4;

    if (argc < 2 || argc > 4 || !(share > 0 && share <= 1) || !(slice_ms > 0 && slice_ms < 1e4)) {
        fprintf(stderr, "usage: company PROCESSOR|any [SHARE [SLICE_MS]]\n");
        return 2;
    }
    if (!stay_on(argv[1])) {
        fprintf(stderr, "company: processor %s may not be used\n", argv[1]);
        return 1;
    }
    int64_t slice = (int64_t)(slice_ms * 1e6), period = (int64_t)(slice_ms * 1e6 / share);
    int64_t start = tl_clock_ns(), begun = tl_clock_cpu_ns(), next = start;
    while (!input_has_ended()) {
        compute(slice);
        for (next += period; next <= tl_clock_ns();
             next += period) /* what it came too late for is lost */
            ;
        tl_clock_sleep_ns(next - tl_clock_ns());
    }
    double wall = (double)(tl_clock_ns() - start), got = (double)(tl_clock_cpu_ns() - begun);
    printf("{\"record\":\"company\",\"wall_ns\":%.0f,\"cpu_ns\":%.0f,\"share\":%.3f}\n", wall, got,
           got / wall);
    return 0;
}
