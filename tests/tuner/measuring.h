/* tests/tuner/measuring.h: a measurer whose workers are the test program itself, and faults on demand: a trace with the
 * remark `# fault: WHAT at JOB` does WHAT when its JOB (build or run) begins. */
#ifndef TL_TESTS_MEASURING_H
#define TL_TESTS_MEASURING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/codegen/compiled.h"
#include "tuner/measure/measure.h"

static const char matmul_text[] =
    "kernel matmul(A: f32[48, 64], const B: f32[64, 80], out C: f32[48, 80])\n"
    "  for i in 0..48\n"
    "    for j in 0..80\n"
    "      for k in 0..64\n"
    "        block matmul\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n";
/* Twice the product: right in shape, wrong in every number. */
static const char wrong_text[] =
    "kernel matmul(A: f32[48, 64], const B: f32[64, 80], out C: f32[48, 80])\n"
    "  for i in 0..48\n"
    "    for j in 0..80\n"
    "      for k in 0..64\n"
    "        block matmul\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(2.0*A[i, k]*B[k, j])\n";
static const char good_trace[] =
    "i, j, k = loops(matmul)\nreorder(i, k, j)\nj0, j1 = split(j, [_, 16])\n"
    "vectorize(j1)\n";

static inline void measuring_hook(const char *job, const char *trace)
{
    char wanted[64];
    static const char *const faults[] = { "crash", "illegal", "hang", "memory",
                                          "exit",  "kill",    "stop", "garbage" };
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        snprintf(wanted, sizeof wanted, "# fault: %s at %s", faults[f], job);
        if (strstr(trace, wanted) == NULL)
            continue;
        switch (f) {
        case 0:
            raise(SIGSEGV);
            break;
        case 1:
            __builtin_trap();
        case 2:
            for (;;)
                pause();
        case 3: /* ten gigabytes, or as much as there is to be had */
            for (size_t i = 0; i < 640; i++) {
                char *p = malloc(16 << 20);
                if (p == NULL)
                    abort();
                memset(p, 1, 16 << 20);
            }
            abort();
        case 4:
            _exit(7);
        case 5: /* the worker, too: nothing is left to tell */
            kill(getppid(), SIGKILL);
            _exit(9);
        case 6: /* the worker sleeps, and nobody tells of the child */
            kill(getppid(), SIGSTOP);
            for (;;)
                pause();
        case 7: /* a kernel that found the socket */
            for (int i = 0; i < 100; i++)
                if (write(3, "rubbish, rubbish", 16) != 16)
                    break;
            break;
        }
    }
}

/* In main: true when this process is a worker, which has done its work by then. */
static inline bool measuring_is_worker(int argc, char **argv, int *exit_code)
{
    tl_worker_options options = { .hook = measuring_hook };
    if (argc < 2 || strcmp(argv[1], "worker") != 0)
        return false;
    *exit_code = tl_worker_main(argc - 2, argv + 2, &options);
    return true;
}

static inline const char *measuring_self(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return path;
}

static inline tl_measurer *measuring_start(const tl_measure_options *extra)
{
    static tl_target target;
    tl_measurer *m;
    tl_diag diag = { 0 };
    assert_int_equal(compiled_target(NULL, &target, &diag), TL_OK);
    tl_measure_options options = extra != NULL ? *extra : (tl_measure_options){ 0 };
    options.worker = measuring_self();
    options.target = &target;
    options.seed = 7;
    if (tl_measurer_create(&options, &m, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return m;
}

static inline int measuring_task(tl_measurer *m)
{
    int task;
    tl_diag diag = { 0 };
    tl_measure_lowering lowerings[] = { { "direct", matmul_text, 0, 0 },
                                        { "wrong", wrong_text, 0, 0 } };
    tl_measure_task spec = { .name = "matmul",
                             .workload = "0123456789abcdef0123456789abcdef",
                             .lowering_count = 2,
                             .lowerings = lowerings };
    if (tl_measurer_add_task(m, &spec, &task, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return task;
}

/* One candidate, to its end. */
static inline tl_result measuring_one(tl_measurer *m, int task, const tl_candidate *candidate)
{
    static tl_result result;
    tl_diag diag = { 0 };
    int64_t ticket;
    assert_int_equal(tl_measurer_submit(m, task, candidate, 1, &ticket, &diag), TL_OK);
    if (tl_measurer_next(m, 120, &result, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(result.ticket, ticket);
    return result;
}

#endif
