/* tuner/cost/cost_analytic.c: time estimated from what features.c worked out: no measurement is needed to draft
 * with it.
 *
 * A statement takes the larger of its cycles in the ports (register tile, latency, tails count as statements of
 * their own) and the cycles in which the caches deliver its lines, and a part of the smaller; each start of an
 * inner loop costs a mispredicted branch, and a refill of the pipeline. The parallel loop divides by the cores that
 * find work. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ir/program/machine.h"
#include "tuner/cost/cost_private.h"
#include "tuner/cost/features.h"

/* An iteration in cycles; the part of the shorter of arithmetic and delivery that does not hide behind the longer;
 * how often the start of a loop was not foreseen. */
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

double tl_analytic_cycles(const tl_machine *machine, const float *rows, int count)
{
    const tl_machine *m = machine != NULL ? machine : &tl_machine_built_in;
    double cycles = 1;
    for (int r = 0; r < count; r++)
        cycles += cycles_of(m, rows + (size_t)r * TL_FEATURE_WIDTH);
    return cycles;
}

/* What training finds out: how far the estimate is to be trusted. Inside a task the logarithm of the time goes
 * `slope` times as far as that of the estimate, give or take a deviation. */
typedef struct {
    tl_cost_model model; /* first */
    double slope, variance;
} analytic_model;

static const double least_slope = 0.05, most_slope = 2;

static tl_status create(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    TL_TRY(tl_cost_settings_read("analytic", settings, NULL, 0, diag));
    analytic_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    m->model.type = &tl_cost_analytic;
    m->model.seed = seed;
    m->model.shape.row = tl_sample_shape_of_rows().row;
    m->slope = 1;
    m->variance = 1;
    *out = &m->model;
    return TL_OK;
}

static double estimate(const tl_cost_samples *s, int p)
{
    return log(tl_analytic_cycles(tl_cost_samples_machine(s, p),
                                  s->rows + (size_t)s->first_row[p] * TL_FEATURE_WIDTH,
                                  s->row_count[p]));
}

static bool predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                    float *variance)
{
    const analytic_model *m = (const analytic_model *)model;
    for (int p = 0; p < programs->count; p++) {
        mean[p] = (float)(m->slope * estimate(programs, p));
        variance[p] = (float)m->variance;
    }
    return true;
}

/* Sums of a task, for the line through its points. */
typedef struct {
    double count, x, y, xx, xy, yy;
} sums;

static tl_status train(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_cost_samples *held_out, const tl_train_options *options,
                       tl_diag *diag)
{
    analytic_model *m = (analytic_model *)model;
    (void)held_out, (void)options;
    TL_TRY(tl_cost_model_fits(model, &samples->shape, diag));
    sums *of = calloc((size_t)samples->task_count + 1, sizeof *of);
    if (of == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    for (int p = 0; p < samples->count; p++) {
        if (!isfinite(samples->label[p]))
            continue;
        sums *t = &of[samples->task[p]];
        double x = estimate(samples, p), y = (double)samples->label[p];
        *t =
            (sums){ t->count + 1, t->x + x, t->y + y, t->xx + x * x, t->xy + x * y, t->yy + y * y };
    }
    double xx = 0, xy = 0, yy = 0, free_count = 0;
    for (int t = 0; t < samples->task_count; t++) {
        if (of[t].count < 2)
            continue;
        xx += of[t].xx - of[t].x * of[t].x / of[t].count;
        xy += of[t].xy - of[t].x * of[t].y / of[t].count;
        yy += of[t].yy - of[t].y * of[t].y / of[t].count;
        free_count += of[t].count - 1;
    }
    free(of);
    if (xx > 0 && free_count > 1) {
        m->slope = fmin(fmax(xy / xx, least_slope), most_slope);
        m->variance = fmax((yy - 2 * m->slope * xy + m->slope * m->slope * xx) / free_count, 1e-6);
    }
    return TL_OK;
}

static tl_status adapt(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_train_options *options, tl_diag *diag)
{
    return train(model, samples, NULL, options, diag);
}

static tl_status write_numbers(const tl_cost_model *model, tl_text *out, tl_diag *diag)
{
    const analytic_model *m = (const analytic_model *)model;
    (void)diag;
    tl_text_format(out, "slope %.17g variance %.17g\n", m->slope, m->variance);
    return TL_OK;
}

static tl_status read_numbers(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag)
{
    analytic_model *m = (analytic_model *)model;
    char line[128];
    double slope, variance;
    snprintf(line, sizeof line, "%.*s", (int)(size < sizeof line ? size : sizeof line - 1),
             (const char *)bytes);
    if (sscanf(line, "slope %lf variance %lf", &slope, &variance) != 2 ||
        !(slope >= least_slope && slope <= most_slope) || !(variance > 0 && variance < 1e6))
        return tl_fail(diag, TL_BAD_TEXT, "its slope and variance cannot be read");
    m->slope = slope;
    m->variance = variance;
    return TL_OK;
}

static void describe(const tl_cost_model *model, tl_text *out)
{
    const analytic_model *m = (const analytic_model *)model;
    tl_text_format(out, "cycles of ports, caches and loops; log(time) = %.2f log(cycles) +- %.2f\n",
                   m->slope, sqrt(m->variance));
}

static void destroy(tl_cost_model *model)
{
    free(model);
}

const tl_cost_model_type tl_cost_analytic = {
    .name = "analytic",
    .create = create,
    .destroy = destroy,
    .train = train,
    .adapt = adapt,
    .predict = predict,
    .gradients = tl_cost_no_gradients,
    .parameters = tl_cost_no_parameters,
    .write = write_numbers,
    .read = read_numbers,
    .describe = describe,
    .settings = tl_cost_no_settings,
};
