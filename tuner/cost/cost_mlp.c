/* tuner/cost/cost_mlp.c: the network of TenSet (Zheng et al. 2021): two layers over each row, the sum over a
 * program's rows, two residual blocks, a line. What is known of workload and machine stands behind each row, as
 * there. It knows nothing of the analytic time, of decisions, or of the order of the rows. */
#include <string.h>
#include "tuner/cost/network.h"
#include "tuner/learn/layers.h"

enum { HIDDEN };                  /* settings */
enum { BLOCKS = 2, OUTPUTS = 2 }; /* mean, spread */
enum {
    FIRST = TL_NETWORK_INPUTS,
    SECOND = FIRST + 2,
    BLOCK = SECOND + 2,
    LAST = BLOCK + 2 * BLOCKS
};
static const float first_spread = -2; /* log of the variance before anything is learned */

static int input_width(const tl_cost_network *n)
{
    return tl_network_width(n, TL_NETWORK_ROW) + tl_network_width(n, TL_NETWORK_WORKLOAD) +
           tl_network_width(n, TL_NETWORK_MACHINE);
}

static void declare(tl_cost_network *n)
{
    const int hidden = n->settings[HIDDEN];
    tl_network_declare_linear(n, input_width(n), hidden, "rows1");
    tl_network_declare_linear(n, hidden, hidden, "rows2");
    tl_network_declare_linear(n, hidden, hidden, "block1");
    tl_network_declare_linear(n, hidden, hidden, "block2");
    tl_network_declare_linear(n, hidden, OUTPUTS, "output");
}

typedef struct {
    float *input, *first, *second;          /* of the rows */
    float *sum[BLOCKS + 1], *block[BLOCKS]; /* of the programs */
} kept;

/* Rows with their program's workload and machine behind them. */
static float *join_inputs(const tl_cost_network *n, const tl_cost_batch *b)
{
    const size_t row = (size_t)tl_network_width(n, TL_NETWORK_ROW);
    const size_t workload = (size_t)tl_network_width(n, TL_NETWORK_WORKLOAD);
    const size_t machine = (size_t)tl_network_width(n, TL_NETWORK_MACHINE);
    float *out = tl_scratch_floats(b->scratch, (size_t)b->row_count * (row + workload + machine));
    float *at = out;
    for (int p = 0; p < b->count; p++)
        for (int r = b->first_row[p]; r < b->first_row[p + 1]; r++) {
            memcpy(at, b->rows + (size_t)r * row, sizeof *at * row);
            memcpy(at + row, b->workloads + (size_t)p * workload, sizeof *at * workload);
            memcpy(at + row + workload, b->machines + (size_t)p * machine, sizeof *at * machine);
            at += row + workload + machine;
        }
    return out;
}

static void forward(const tl_cost_network *n, tl_cost_batch *b)
{
    const int hidden = n->settings[HIDDEN], rows = b->row_count;
    const size_t of_rows = (size_t)rows * (size_t)hidden,
                 of_programs = (size_t)b->count * (size_t)hidden;
    kept *k = tl_scratch_bytes(b->scratch, sizeof *k);
    b->kept = k;
    k->input = join_inputs(n, b);
    k->first = tl_scratch_floats(b->scratch, of_rows);
    k->second = tl_scratch_floats(b->scratch, of_rows);
    tl_network_linear(n, FIRST, rows, input_width(n), hidden, k->input, k->first);
    tl_relu((int)of_rows, k->first, k->first);
    tl_network_linear(n, SECOND, rows, hidden, hidden, k->first, k->second);
    tl_relu((int)of_rows, k->second, k->second);
    k->sum[0] = tl_scratch_floats(b->scratch, of_programs);
    tl_segment_sum(b->count, b->first_row, hidden, k->second, NULL, k->sum[0]);
    for (int i = 0; i < BLOCKS; i++) {
        k->block[i] = tl_scratch_floats(b->scratch, of_programs);
        k->sum[i + 1] = tl_scratch_floats(b->scratch, of_programs);
        tl_network_linear(n, BLOCK + 2 * i, b->count, hidden, hidden, k->sum[i], k->block[i]);
        tl_relu((int)of_programs, k->block[i], k->block[i]);
        memcpy(k->sum[i + 1], k->sum[i], sizeof(float) * of_programs);
        tl_add_floats((int)of_programs, k->block[i], k->sum[i + 1]);
    }
    float *out = tl_scratch_floats(b->scratch, OUTPUTS * (size_t)b->count);
    tl_network_linear(n, LAST, b->count, hidden, OUTPUTS, k->sum[BLOCKS], out);
    for (int p = 0; p < b->count; p++) {
        b->mean[p] = out[OUTPUTS * p];
        b->spread[p] = out[OUTPUTS * p + 1] + first_spread;
    }
}

static void backward(tl_cost_network *n, tl_cost_batch *b)
{
    const int hidden = n->settings[HIDDEN], rows = b->row_count;
    const size_t of_rows = (size_t)rows * (size_t)hidden,
                 of_programs = (size_t)b->count * (size_t)hidden;
    const kept *k = b->kept;
    float *d_out = tl_scratch_floats(b->scratch, OUTPUTS * (size_t)b->count);
    float *d_sum = tl_scratch_floats(b->scratch, of_programs);
    float *d_block = tl_scratch_floats(b->scratch, of_programs);
    float *d_second = tl_scratch_floats(b->scratch, of_rows);
    float *d_first = tl_scratch_floats(b->scratch, of_rows);
    for (int p = 0; p < b->count; p++) {
        d_out[OUTPUTS * p] = b->d_mean[p];
        d_out[OUTPUTS * p + 1] = b->d_spread[p];
    }
    tl_network_linear_back(n, LAST, b->count, hidden, OUTPUTS, k->sum[BLOCKS], d_out, d_sum, false);
    for (int i = BLOCKS - 1; i >= 0; i--) {
        tl_relu_back((int)of_programs, k->block[i], d_sum, d_block);
        tl_network_linear_back(n, BLOCK + 2 * i, b->count, hidden, hidden, k->sum[i], d_block,
                               d_sum, true);
    }
    tl_segment_sum_back(b->count, b->first_row, hidden, NULL, d_sum, d_second);
    tl_relu_back((int)of_rows, k->second, d_second, d_second);
    tl_network_linear_back(n, SECOND, rows, hidden, hidden, k->first, d_second, d_first, false);
    tl_relu_back((int)of_rows, k->first, d_first, d_first);
    tl_network_linear_back(n, FIRST, rows, input_width(n), hidden, k->input, d_first, NULL, false);
}

static const tl_network_type mlp = {
    .type = &tl_cost_mlp,
    .words = "two layers a statement, their sum, two residual blocks (TenSet's)",
    .reads_rows = true,
    .setting_count = 1,
    .settings = { { "hidden", 256, 1, 1024 } },
    .rate = 7e-4,
    .declare = declare,
    .forward = forward,
    .backward = backward,
};

static tl_status create(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    return tl_network_create(&mlp, settings, seed, out, diag);
}

const tl_cost_model_type tl_cost_mlp = { .name = "mlp", .create = create, TL_NETWORK_CALLS };
