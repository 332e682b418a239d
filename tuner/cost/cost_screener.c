/* tuner/cost/cost_screener.c: judges points before they are built: by decisions, workload and machine alone. What
 * it says is to be what a judge of built programs would (tl_train_options.teacher), at a hundredth of the time.
 *
 *     h_i = relu(decision_i A + workload B + machine C)       each decision, in the light of the kernel and the machine
 *     s = mean over relu(h_i D)                               mean, spread = relu(s E) F */
#include <math.h>
#include "tuner/cost/network.h"
#include "tuner/learn/layers.h"

enum { HIDDEN }; /* settings */
enum { OUTPUTS = 2 };
enum {
    DECISION = TL_NETWORK_INPUTS,
    WORKLOAD = DECISION + 2,
    MACHINE = WORKLOAD + 2,
    SECOND = MACHINE + 2,
    THIRD = SECOND + 2,
    LAST = THIRD + 2,
};
static const float first_spread = -2;

static void declare(tl_cost_network *n)
{
    const int hidden = n->settings[HIDDEN];
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_DECISION), hidden, "decision");
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_WORKLOAD), hidden, "workload");
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_MACHINE), hidden, "machine");
    tl_network_declare_linear(n, hidden, hidden, "second");
    tl_network_declare_linear(n, hidden, hidden, "third");
    tl_network_declare_linear(n, hidden, OUTPUTS, "output");
}

typedef struct {
    float *first, *second;      /* of the decisions */
    float *scale, *sum, *third; /* of the programs */
} kept;

static float *room(const tl_cost_batch *b, int rows, int width)
{
    return tl_scratch_floats(b->scratch, (size_t)rows * (size_t)width);
}

/* What is known of a program beside its decisions, in every one of these. */
static void add_context(const tl_cost_network *n, const tl_cost_batch *b, float *first)
{
    const int hidden = n->settings[HIDDEN];
    float *context = room(b, b->count, hidden), *machine = room(b, b->count, hidden);
    tl_network_linear(n, WORKLOAD, b->count, tl_network_width(n, TL_NETWORK_WORKLOAD), hidden,
                      b->workloads, context);
    tl_network_linear(n, MACHINE, b->count, tl_network_width(n, TL_NETWORK_MACHINE), hidden,
                      b->machines, machine);
    tl_add_floats(b->count * hidden, machine, context);
    for (int p = 0; p < b->count; p++)
        for (int d = b->first_decision[p]; d < b->first_decision[p + 1]; d++)
            tl_add_floats(hidden, context + (size_t)p * (size_t)hidden,
                          first + (size_t)d * (size_t)hidden);
}

static void forward(const tl_cost_network *n, tl_cost_batch *b)
{
    const int hidden = n->settings[HIDDEN], decisions = b->decision_count, count = b->count;
    kept *k = tl_scratch_bytes(b->scratch, sizeof *k);
    b->kept = k;
    k->first = room(b, decisions, hidden);
    k->second = room(b, decisions, hidden);
    tl_network_linear(n, DECISION, decisions, tl_network_width(n, TL_NETWORK_DECISION), hidden,
                      b->decisions, k->first);
    add_context(n, b, k->first);
    tl_relu(decisions * hidden, k->first, k->first);
    tl_network_linear(n, SECOND, decisions, hidden, hidden, k->first, k->second);
    tl_relu(decisions * hidden, k->second, k->second);
    k->scale = tl_scratch_floats(b->scratch, (size_t)count);
    for (int p = 0; p < count; p++)
        k->scale[p] = 1 / (float)(b->first_decision[p + 1] > b->first_decision[p]
                                      ? b->first_decision[p + 1] - b->first_decision[p]
                                      : 1);
    k->sum = room(b, count, hidden);
    k->third = room(b, count, hidden);
    tl_segment_sum(count, b->first_decision, hidden, k->second, k->scale, k->sum);
    tl_network_linear(n, THIRD, count, hidden, hidden, k->sum, k->third);
    tl_relu(count * hidden, k->third, k->third);
    float *out = room(b, count, OUTPUTS);
    tl_network_linear(n, LAST, count, hidden, OUTPUTS, k->third, out);
    for (int p = 0; p < count; p++) {
        b->mean[p] = out[OUTPUTS * p];
        b->spread[p] = out[OUTPUTS * p + 1] + first_spread;
    }
}

static void backward(tl_cost_network *n, tl_cost_batch *b)
{
    const int hidden = n->settings[HIDDEN], decisions = b->decision_count, count = b->count;
    const kept *k = b->kept;
    float *d_out = room(b, count, OUTPUTS), *d_third = room(b, count, hidden);
    float *d_sum = room(b, count, hidden), *d_context = room(b, count, hidden);
    float *d_second = room(b, decisions, hidden), *d_first = room(b, decisions, hidden);
    for (int p = 0; p < count; p++) {
        d_out[OUTPUTS * p] = b->d_mean[p];
        d_out[OUTPUTS * p + 1] = b->d_spread[p];
    }
    tl_network_linear_back(n, LAST, count, hidden, OUTPUTS, k->third, d_out, d_third, false);
    tl_relu_back(count * hidden, k->third, d_third, d_third);
    tl_network_linear_back(n, THIRD, count, hidden, hidden, k->sum, d_third, d_sum, false);
    tl_segment_sum_back(count, b->first_decision, hidden, k->scale, d_sum, d_second);
    tl_relu_back(decisions * hidden, k->second, d_second, d_second);
    tl_network_linear_back(n, SECOND, decisions, hidden, hidden, k->first, d_second, d_first,
                           false);
    tl_relu_back(decisions * hidden, k->first, d_first, d_first);
    tl_network_linear_back(n, DECISION, decisions, tl_network_width(n, TL_NETWORK_DECISION), hidden,
                           b->decisions, d_first, NULL, false);
    tl_segment_sum(count, b->first_decision, hidden, d_first, NULL, d_context);
    tl_network_linear_back(n, WORKLOAD, count, tl_network_width(n, TL_NETWORK_WORKLOAD), hidden,
                           b->workloads, d_context, NULL, false);
    tl_network_linear_back(n, MACHINE, count, tl_network_width(n, TL_NETWORK_MACHINE), hidden,
                           b->machines, d_context, NULL, false);
}

static const tl_network_type screener = {
    .type = &tl_cost_screener,
    .words = "a small network over the decisions of points that were not built",
    .reads_decisions = true,
    .setting_count = 1,
    .settings = { { "hidden", 64, 1, 512 } },
    .rate = 1e-3,
    .declare = declare,
    .forward = forward,
    .backward = backward,
};

static tl_status create(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    return tl_network_create(&screener, settings, seed, out, diag);
}

const tl_cost_model_type tl_cost_screener = { .name = "screener",
                                              .create = create,
                                              TL_NETWORK_CALLS };
