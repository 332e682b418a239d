/* driver/study/measure_kernel.h: one program compiled here, with arguments of its own: run, timed, compared. */
#ifndef TL_DRIVER_STUDY_MEASURE_KERNEL_H
#define TL_DRIVER_STUDY_MEASURE_KERNEL_H
#include "driver/study/study.h"
#include "runtime/base/statistics.h"

/* What all versions of a kernel are called with: a place a parameter, inputs and constants filled from a seed. */
typedef struct {
    int count;
    void **data; /* 64-byte aligned */
    int64_t *elements;
} tl_arguments;
tl_status tl_arguments_make(const tl_study *study, uint64_t seed, tl_arguments *out, tl_diag *diag);
/* Outputs, and inouts to what they were at first, for another run. */
void tl_arguments_reset(const tl_study *study, tl_arguments *arguments);
void tl_arguments_free(tl_arguments *arguments);

/* A version: a program with the study's parameters, compiled, its constants packed. */
typedef struct tl_version tl_version;
tl_status tl_version_make(const tl_study *study, const tl_program *program,
                          const tl_arguments *arguments, tl_version **out, tl_diag *diag);
void tl_version_free(tl_version *version); /* NULL is fine */
void tl_version_run(tl_version *version);  /* once, on the study's threads */

typedef struct {
    double ns, gflops; /* of the fastest run */
    double peak_gflops, percent_of_peak;
    int runs;
} tl_speed;

/* All of it for one program. */
tl_status tl_measure_program(const tl_study *study, const tl_program *program, double seconds,
                             tl_speed *out, tl_diag *diag);

/* Two programs in turns, for about `seconds`: what is in the machine's way is in the way of both. */
typedef struct {
    double ns, standard_ns; /* of the fastest run of each */
    /* the median over the turns of standard's time over the program's, and where it lies */
    tl_interval speedup;
    int turns;
} tl_beside;
tl_status tl_measure_beside(const tl_study *study, const tl_program *standard,
                            const tl_program *program, double seconds, tl_beside *out,
                            tl_diag *diag);

/* How a schedule was found to mean what the program means. */
typedef struct {
    bool right;
    bool interpreted; /* both programs, every element, under all checks of the interpreter */
    int64_t points;   /* else: elements of which the interpreter computed the naive value */
    int64_t elements; /* compared between the compiled programs */
    double max_error, max_relative; /* over the largest magnitude */
} tl_verdict;
/* Interprets the naive program and the scheduled one where that is at most some seconds' work, else the naive one at a
 * thousand points, corners among them; runs the compiled schedule and the compiled naive program, and compares all.
 * For a GPU the interpreter is all there is.
 * TL_WRONG_RESULT and the first difference when they differ. */
tl_status tl_verify_schedule(const tl_study *study, const tl_program *scheduled, tl_verdict *out,
                             tl_diag *diag);

#endif
