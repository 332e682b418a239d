/* tuner/cost/network_batch.c: programs gathered for a network, their columns brought to one scale: the centre and
 * deviation that each had in what the network was trained with. What lies far outside of that is cut: a column that
 * never was so large says "very large", and no more. */
#include <math.h>
#include <string.h>
#include "ir/program/machine.h"
#include "tuner/cost/features.h"
#include "tuner/cost/network.h"

static const float most_deviations = 6;
static const double least_deviation = 1e-3; /* a column that hardly moves says nothing */

/* --- centre and scale ------------------------------------------------------------------------------------------------- */

typedef struct {
    const float *from;
    int count;
} stretch;

/* Rows or tokens of program, task or domain i. */
static stretch stretch_of(const tl_cost_samples *s, int kind, int i)
{
    switch (kind) {
    case TL_NETWORK_ROW:
        return (stretch){ s->rows + (size_t)s->first_row[i] * (size_t)s->shape.row.width,
                          s->row_count[i] };
    case TL_NETWORK_DECISION:
        return (stretch){ s->decisions +
                              (size_t)s->first_decision[i] * (size_t)s->shape.decision.width,
                          s->decision_count[i] };
    case TL_NETWORK_WORKLOAD:
        return (stretch){ s->workloads + (size_t)i * (size_t)s->shape.workload.width, 1 };
    case TL_NETWORK_MACHINE:
        return (stretch){ s->machines + (size_t)i * (size_t)s->shape.machine.width, 1 };
    }
    return (stretch){ NULL, 0 };
}

static void fit_column(const tl_cost_samples *s, int kind, int items, int column, int width,
                       float *centre, float *scale)
{
    double sum = 0, squares = 0, count = 0;
    for (int i = 0; i < items; i++) {
        const stretch t = stretch_of(s, kind, i);
        for (int r = 0; r < t.count; r++) {
            const double x = (double)t.from[(size_t)r * (size_t)width + (size_t)column];
            sum += x;
            squares += x * x;
        }
        count += t.count;
    }
    const double mean = count > 0 ? sum / count : 0;
    const double deviation = count > 0 ? sqrt(fmax(squares / count - mean * mean, 0)) : 0;
    *centre = (float)mean;
    *scale = deviation > least_deviation ? (float)(1 / deviation) : 0;
}

void tl_network_fit_inputs(tl_cost_network *n, const tl_cost_samples *s)
{
    const int items[] = { s->count, s->count, s->task_count, s->domain_count };
    for (int kind = 0; kind < TL_NETWORK_KINDS; kind++) {
        const int width = tl_network_width(n, kind);
        float *centre = tl_weights_of(&n->weights, 2 * kind);
        float *scale = tl_weights_of(&n->weights, 2 * kind + 1);
        for (int c = 0; c < width; c++)
            fit_column(s, kind, items[kind], c, width, &centre[c], &scale[c]);
    }
}

/* --- gathering -------------------------------------------------------------------------------------------------------- */

static void bring(const tl_cost_network *n, int kind, stretch from, float *to)
{
    const int width = tl_network_width(n, kind);
    const float *restrict centre = tl_weights_of(&n->weights, 2 * kind);
    const float *restrict scale = tl_weights_of(&n->weights, 2 * kind + 1);
    for (int r = 0; r < from.count; r++) {
        const float *restrict x = from.from + (size_t)r * (size_t)width;
        float *restrict y = to + (size_t)r * (size_t)width;
        for (int c = 0; c < width; c++) {
            const float z = (x[c] - centre[c]) * scale[c];
            y[c] = z > most_deviations    ? most_deviations
                   : z < -most_deviations ? -most_deviations
                                          : z;
        }
    }
}

/* All rows, or decisions, of the batch's programs, and where each begins. */
static float *gather(const tl_cost_network *n, tl_cost_batch *b, int kind, int *first, int *count)
{
    const size_t width = (size_t)tl_network_width(n, kind);
    *count = 0;
    first[0] = 0;
    for (int i = 0; i < b->count; i++) {
        if (width > 0)
            *count += stretch_of(b->samples, kind, b->programs[i]).count;
        first[i + 1] = *count;
    }
    float *out = tl_scratch_floats(b->scratch, (size_t)*count * width);
    for (int i = 0; i < b->count && width > 0; i++)
        bring(n, kind, stretch_of(b->samples, kind, b->programs[i]),
              out + (size_t)first[i] * width);
    return out;
}

static float *gather_tokens(const tl_cost_network *n, tl_cost_batch *b, int kind)
{
    const size_t width = (size_t)tl_network_width(n, kind);
    float *out = tl_scratch_floats(b->scratch, (size_t)b->count * width);
    for (int i = 0; i < b->count && width > 0; i++) {
        const int task = b->samples->task[b->programs[i]];
        const int domain = b->samples->domain != NULL ? b->samples->domain[task] : 0;
        bring(n, kind, stretch_of(b->samples, kind, kind == TL_NETWORK_MACHINE ? domain : task),
              out + (size_t)i * width);
    }
    return out;
}

/* What the analytic model makes of each statement, at the machine's clock (3 GHz where that is not known). */
static void estimate(const tl_cost_network *n, tl_cost_batch *b)
{
    b->base = tl_scratch_floats(b->scratch, (size_t)b->row_count);
    if (!n->has_base) {
        memset(b->base, 0, sizeof *b->base * (size_t)b->row_count);
        return;
    }
    for (int i = 0; i < b->count; i++) {
        const stretch rows = stretch_of(b->samples, TL_NETWORK_ROW, b->programs[i]);
        const tl_machine *machine = tl_cost_samples_machine(b->samples, b->programs[i]);
        const double clock = machine->clock_ghz > 0 ? machine->clock_ghz : 3;
        for (int r = 0; r < rows.count; r++)
            b->base[b->first_row[i] + r] = (float)log(
                tl_analytic_cycles(machine, rows.from + (size_t)r * TL_FEATURE_WIDTH, 1) / clock);
    }
}

void tl_network_gather(const tl_cost_network *n, tl_cost_batch *b)
{
    const size_t count = (size_t)b->count;
    b->first_row = tl_scratch_ints(b->scratch, count + 1);
    b->first_decision = tl_scratch_ints(b->scratch, count + 1);
    b->rows = gather(n, b, TL_NETWORK_ROW, b->first_row, &b->row_count);
    b->decisions = gather(n, b, TL_NETWORK_DECISION, b->first_decision, &b->decision_count);
    b->workloads = gather_tokens(n, b, TL_NETWORK_WORKLOAD);
    b->machines = gather_tokens(n, b, TL_NETWORK_MACHINE);
    if (n->net->has_base)
        estimate(n, b);
    b->mean = tl_scratch_floats(b->scratch, count);
    b->spread = tl_scratch_floats(b->scratch, count);
    b->d_mean = tl_scratch_floats(b->scratch, count);
    b->d_spread = tl_scratch_floats(b->scratch, count);
}
