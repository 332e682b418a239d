/* tuner/cost/cost_samples.h: programs as cost models see them, with what was measured of them.
 *
 * A program is rows of features, one a statement (tuner/cost/features.h), and tokens: one for each decision of its
 * point, one of its task's workload, one of the machine on which its task runs. What nobody knows is absent: a
 * point that was not built has no rows, a program that no space made has no decisions. Samples are views: rows and
 * tokens lie where their owner has them, and a part of some samples (tl_cost_samples_select) shares them. */
#ifndef TL_TUNER_COST_COST_SAMPLES_H
#define TL_TUNER_COST_COST_SAMPLES_H
#include <stdbool.h>
#include <stdint.h>
#include "ir/program/target.h"
#include "runtime/base/arena.h"

/* How many numbers a row or a token of one kind has (0: there are none of the kind), and a digest (tl_digest_text)
 * of what they mean: of the names of the columns, the revision of what computes them, and, of decisions, that of
 * the spaces. */
typedef struct {
    int width;
    char digest[33];
} tl_columns;

/* A model that was trained with columns of one kind refuses samples that have others of it, or none. */
typedef struct {
    tl_columns row, decision, workload, machine;
} tl_sample_shape;
/* Rows as tl_features_of makes them, and no tokens. */
tl_sample_shape tl_sample_shape_of_rows(void);
bool tl_columns_equal(const tl_columns *a, const tl_columns *b);

typedef struct {
    tl_sample_shape shape;
    int count, task_count, domain_count;

    /* Program p has row_count[p] rows from rows[first_row[p] * shape.row.width] on; decisions alike. NULL: none has
     * any. */
    const int *first_row, *row_count;
    const float *rows;
    const int *first_decision, *decision_count;
    const float *decisions;
    const int *task; /* one a program, 0 .. task_count - 1: which are comparable */

    const int *domain; /* one a task, 0 .. domain_count - 1: on which machine; NULL: all on 0 */
    const float *workloads; /* a token a task; NULL: none */
    const float *machines;  /* a token a domain; NULL: none */
    const tl_machine *const
        *profiles; /* one a domain; NULL, in whole or in part: the built-in one */

    /* What was measured; each may be NULL. */
    /* log(time / time of its task's standard); INFINITY: it failed; NAN: not measured */
    const float *label;
    const float *error;        /* the label's standard error; NULL: 0 */
    const float *weight;       /* how much it counts; NULL: 1 */
    const double *standard_ns; /* one a task: the standard's time; 0: nobody knows */
} tl_cost_samples;

/* The programs of the tasks for which `wanted` is true (one a task), tasks keeping their numbers; arrays by program
 * in `arena`. */
tl_cost_samples tl_cost_samples_select(tl_arena *arena, const tl_cost_samples *from,
                                       const bool *wanted);
/* Those programs, in that order. */
tl_cost_samples tl_cost_samples_pick(tl_arena *arena, const tl_cost_samples *from,
                                     const int *programs, int count);

#endif
