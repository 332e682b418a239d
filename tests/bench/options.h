/* tests/bench/options.h: the command line of the benchmarks of kernels, and the line about the machine above their tables. */
#ifndef TL_TESTS_BENCH_OPTIONS_H
#define TL_TESTS_BENCH_OPTIONS_H
#include "frontend/frontend.h"

typedef struct {
    int threads, name_count;
    double seconds; /* for a kernel */
    bool json;
    tl_numerics numerics;
    const char *show, *target; /* NULL: nothing is shown; this machine */
    char *const *names;
} bench_options;

/* [--threads N] [--seconds S] [--target ISA] [--numerics strict] [--show WHAT] [--json] [NAME ...]; false: it is not that.
 * `seconds` is what S is otherwise. */
bool bench_options_parse(int argc, char **argv, double seconds, bench_options *out);

/* The machine and the peak that rates are compared with: a line, or a record of JSON. */
void bench_print_machine(const bench_options *options, const tl_target *target);

#endif
