/* tests/support/meaning.h: whether a trace keeps the meaning of a kernel, both as texts; the smallest texts that fail in
 * the same way; and files of them that `tilth schedule` replays. */
#ifndef TL_TESTS_MEANING_H
#define TL_TESTS_MEANING_H
#include "ir/program/program.h"

enum { MEANING_MAX_BUFFERS = 64, MEANING_MAX_RUNS = 3 };

#define MEANING_BAD_KERNEL "the kernel itself"

/* One call of a kernel: the data of its parameters, and the value of its dim if it has one. */
typedef struct {
    void *data[MEANING_MAX_BUFFERS];
    int64_t dims[1];
} meaning_run;

/* Compiles the program and makes every run. TL_UNSUPPORTED: code generation refuses such programs, with a sentence. */
typedef tl_status meaning_compiled_fn(tl_arena *arena, const tl_program *program, uint64_t seed,
                                      const meaning_run *runs, int run_count, tl_diag *diag);

typedef struct {
    uint64_t seed; /* of the inputs */
    /* Kernels are strict and floats no integers: every sum rounds, and in one order alone to the same. */
    bool strict;
    meaning_compiled_fn *compiled; /* NULL: interpreted only */
    meaning_compiled_fn *emulated; /* the same of programs for a GPU */
    /* Faults for the tests of this: what it gives is checked in the place of the scheduled program. NULL: none. */
    const tl_program *(*break_program)(tl_arena *arena, const tl_program *program);
    int64_t left_out; /* counts: what takes too long, and what code generation refused */
    int64_t refused;
} meaning;

typedef struct {
    char kind[64];   /* the way it failed; "": it did not */
    char text[2048]; /* the sentence */
} meaning_failure;

/* Replays the trace on the kernel. The program must verify, print, parse and print the same; the recorded trace must
 * print, parse and replay to the same hash (`hash`, where it is not 0, is that of the same steps applied before); what
 * is interpreted under full checking, and compiled, must be what the kernel computes. False: *out says what failed. */
bool meaning_holds(meaning *m, const char *kernel, const char *trace, uint64_t hash,
                   meaning_failure *out);

/* Makes a kernel and a trace that fail smaller, as long as they fail in the same way: fewer steps, fewer stages, smaller
 * numbers. The texts live in `arena`. */
void meaning_reduce(meaning *m, tl_arena *arena, const char **kernel, const char **trace,
                    const meaning_failure *failure);

/* Writes folder/NAME.tk and NAME.tr, and gives NAME's path without its ending (in `arena`). */
const char *meaning_write(tl_arena *arena, const char *folder, const char *name, const char *kernel,
                          const char *trace, const meaning_failure *failure);

/* Draws kernels and schedules from seeds first.. and checks them. A failure is reduced, written below build/failures and
 * printed, with its seed. Gives the number of failures; stops after TL_FAILURES (10). */
int64_t meaning_run_cases(meaning *m, uint64_t first, uint64_t count, bool may_bind);

/* Draws strict kernels and checks their reference schedules (schedule/sketch/sketch.h); *scheduled: how many differ
 * from the naive program. Gives the number of failures, which are printed. */
int64_t meaning_run_references(meaning *m, uint64_t first, uint64_t count, int64_t *scheduled);

/* The same of a number from the environment; TL_SEED and TL_COUNT. */
uint64_t meaning_environment(const char *name, uint64_t otherwise);

#endif
