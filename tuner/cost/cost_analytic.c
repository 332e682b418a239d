/* tuner/cost/cost_analytic.c: time estimated from what features.c worked out: no measurement is needed to draft with it.
 *
 * A statement takes the larger of its cycles in the ports (register tile, latency, tails count as statements of their
 * own) and the cycles in which the caches deliver its lines, and a part of the smaller; each start of an inner loop costs a
 * mispredicted branch, and a refill of the pipeline. The parallel loop divides by the cores that find work. */
#include <math.h>
#include <stdlib.h>
#include "ir/program/machine.h"
#include "tuner/cost/cost_private.h"
#include "tuner/cost/features.h"

/* An iteration in cycles; the part of the shorter of arithmetic and delivery that does not hide behind the longer; how often the
 * start of a loop was not foreseen. */
static const double iteration = 0.5, unhidden = 0.3, unforeseen = 0.6;

static double magnitude(const float *row, int column)
{
    return tl_feature_unlog(row[column]);
}

/* A line that comes from farther away takes what it takes on top of the nearer. */
static double delivery_of(const tl_machine *m, const float *row)
{
    double l3 = fmax(m->l3_line_cycles - m->l2_line_cycles, 0);
    double memory = fmax(m->memory_line_cycles - m->l3_line_cycles, 0);
    return magnitude(row, TL_FEATURE_lines_from_l2) * m->l2_line_cycles +
           magnitude(row, TL_FEATURE_lines_from_l3) * l3 +
           magnitude(row, TL_FEATURE_lines_from_memory) * memory;
}

static double cycles_of(const tl_machine *m, const float *row)
{
    double l2 = magnitude(row, TL_FEATURE_lines_from_l2);
    double ahead = l2 > 0 ? fmin(magnitude(row, TL_FEATURE_lines_fetched) / l2, 1) : 0;
    double delivery = delivery_of(m, row);
    double ports =
        magnitude(row, TL_FEATURE_cycles) +
        (magnitude(row, TL_FEATURE_fetches_l1) + magnitude(row, TL_FEATURE_fetches_l2)) / 2;
    delivery *= 1 - ahead * (1 - m->fetched_part);
    double cycles = fmax(ports, delivery) + unhidden * fmin(ports, delivery);
    cycles += unforeseen * m->mispredict_cycles * magnitude(row, TL_FEATURE_serial_starts) +
              iteration * magnitude(row, TL_FEATURE_serial_iterations);
    /* the cores' time while the statement runs, those that wait included: ranks programs like the time itself */
    return cycles / fmax((double)row[TL_FEATURE_parallel_balance], 1e-3);
}

static tl_status create(uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    tl_cost_model *m = calloc(1, sizeof *m);
    (void)seed;
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    m->type = &tl_cost_analytic;
    *out = m;
    return TL_OK;
}

static bool predict(tl_cost_model *model, const tl_feature_set *programs, float *score)
{
    const tl_machine *m = programs->machine != NULL ? programs->machine : &tl_machine_built_in;
    (void)model;
    for (int p = 0; p < programs->count; p++) {
        double cycles = 1;
        for (int r = programs->first_row[p]; r < programs->first_row[p + 1]; r++)
            cycles += cycles_of(m, programs->rows + (size_t)r * (size_t)programs->width);
        score[p] = (float)-log2(cycles);
    }
    return programs->width == TL_FEATURE_WIDTH;
}

static void destroy(tl_cost_model *model)
{
    free(model);
}

const tl_cost_model_type tl_cost_analytic = {
    "analytic",           create, predict, tl_cost_learn_nothing, tl_cost_save_nothing,
    tl_cost_load_nothing, destroy
};
