/* tests/support/proof.h: the programs of the proof of the IR (tests/golden/proof/NAME.tk), each with arguments and with
 * the outputs that plain C computes for them. Tests run a program in their own way (interpreted, compiled) on the
 * arguments and compare. Knows nothing of the IR, so that it cannot share its mistakes. */
#ifndef TL_TESTS_PROOF_H
#define TL_TESTS_PROOF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/random.h"

#define PROOF_MAX_ARRAYS 8
#define PROOF_MAX_DIMS   2

/* One argument of the kernel, in the order of its parameters. */
typedef struct {
    const char *name;
    tl_dtype dtype;
    int64_t count;  /* elements */
    void *data;     /* what the program reads, or writes (outputs start as a pattern) */
    void *expected; /* of an output; NULL: an input */
} proof_array;

typedef struct {
    int count;
    proof_array arrays[PROOF_MAX_ARRAYS];
    tl_random random;
} proof_run;

typedef struct {
    const char *name; /* of the kernel, and of its file */
    bool is_gpu;
    int dim_count;
    int64_t dims[PROOF_MAX_DIMS]; /* a kernel with dims has a case for each value */
    double tolerance;             /* |got - expected| <= tolerance * (1 + |expected|) */
    void (*make)(proof_run *run, const int64_t *dims);
} proof_case;

extern const proof_case proof_cases[];
extern const int proof_case_count;

/* Allocates and fills the arrays of a case; the same seed gives the same. */
void proof_run_make(proof_run *run, const proof_case *c, uint64_t seed);
void proof_run_free(proof_run *run);
/* Whether every output is as expected; else the first that is not is written to `why`. */
bool proof_run_check(const proof_run *run, const proof_case *c, char *why, size_t size);

#endif
