/* tuner/cost/cost_attention.c: attention over a program's tokens: one for each statement, each decision, the
 * workload, the machine. What it learns is how far the analytic model is off, so that what that knows of caches and
 * ports carries over to kernels and machines that it never saw:
 *
 *     rows -> linear, GELU, linear, + place in the program --+
 *     decisions -> linear ----------------------------------+-- layers x ( + attention(norm) , + GELU(norm) ) -- norm -- z
 *     workload, machine -> linear --------------------------+
 *
 *     correction of statement i:   c_i = w z_i                of the program:  g, spread = v mean(z)
 *     mean = g + log sum over the statements of analytic time_i exp(c_i)
 *
 * so that time stays a sum over the statements, each with its own correction. All corrections begin at 0. Programs
 * have as many tokens as they have: nothing is padded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tuner/cost/network.h"
#include "tuner/learn/functions.h"
#include "tuner/learn/layers.h"

enum { WIDTH, LAYERS, HEADS, INNER }; /* settings */
enum { PLACES = 24, OUTPUTS = 2, MOST_LAYERS = 6 };
static const float first_spread = -2;

/* The arrays, each layer's behind `LAYER`. */
enum {
    ROWS1 = TL_NETWORK_INPUTS,
    ROWS2 = ROWS1 + 2,
    PLACE = ROWS2 + 2,
    DECISION = PLACE + 1,
    WORKLOAD = DECISION + 2,
    MACHINE = WORKLOAD + 2,
    LAST_NORM = MACHINE + 2,
    CORRECTION = LAST_NORM + 2,
    OUTPUT = CORRECTION + 2,
    LAYER = OUTPUT + 2,
};
enum { NORM1 = 0, QUERIES = 2, MIX = 4, NORM2 = 6, INNER1 = 8, INNER2 = 10, OF_LAYER = 12 };

/* A linear layer whose output is 0 at first. */
static void declare_silent(tl_cost_network *n, int in, int out, const char *name)
{
    tl_weights_add(&n->weights, TL_WEIGHTS_ZERO, in, out, "%s.weight", name);
    tl_weights_add(&n->weights, TL_WEIGHTS_ZERO, 1, out, "%s.bias", name);
}

static void declare_layer(tl_cost_network *n, int layer)
{
    static const char *const parts[] = { "norm1", "queries", "mix", "norm2", "inner1", "inner2" };
    const int width = n->settings[WIDTH], inner = n->settings[INNER];
    char name[sizeof parts / sizeof *parts][24];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        snprintf(name[i], sizeof name[i], "layer%d.%s", layer + 1, parts[i]);
    tl_network_declare_norm(n, width, name[0]);
    tl_network_declare_linear(n, width, 3 * width, name[1]);
    tl_network_declare_linear(n, width, width, name[2]);
    tl_network_declare_norm(n, width, name[3]);
    tl_network_declare_linear(n, width, inner, name[4]);
    tl_network_declare_linear(n, inner, width, name[5]);
}

static void declare(tl_cost_network *n)
{
    const int width = n->settings[WIDTH];
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_ROW), width, "rows1");
    tl_network_declare_linear(n, width, width, "rows2");
    tl_weights_add(&n->weights, TL_WEIGHTS_ZERO, PLACES, width, "place");
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_DECISION), width, "decision");
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_WORKLOAD), width, "workload");
    tl_network_declare_linear(n, tl_network_width(n, TL_NETWORK_MACHINE), width, "machine");
    tl_network_declare_norm(n, width, "last");
    declare_silent(n, width, 1, "correction");
    declare_silent(n, width, OUTPUTS, "output");
    for (int i = 0; i < n->settings[LAYERS]; i++)
        declare_layer(n, i);
}

typedef struct {
    tl_network_norm norm1, norm2;
    float *queries, *shares, *mixed, *inner, *active;
} layer_kept;

typedef struct {
    int token_count;
    int *first; /* of each program's tokens */
    int *row_at, *decision_at, *workload_at,
        *machine_at;        /* where each goes; NULL: there are none */
    int *place;             /* of each row */
    float *rows1, *active1; /* before and after GELU */
    layer_kept layers[MOST_LAYERS];
    tl_network_norm last;
    float *scale;             /* of each program's mean: 1 over tokens */
    float *pooled, *row_last; /* mean of z; z of the rows */
    float *share;             /* of each row in the program's time */
} kept;

static float *room(const tl_cost_batch *b, int rows, int width)
{
    return tl_scratch_floats(b->scratch, (size_t)rows * (size_t)width);
}

/* --- tokens ----------------------------------------------------------------------------------------------------------- */

static void place_tokens(const tl_cost_network *n, const tl_cost_batch *b, kept *k)
{
    const bool workload = tl_network_width(n, TL_NETWORK_WORKLOAD) > 0;
    const bool machine = tl_network_width(n, TL_NETWORK_MACHINE) > 0;
    int at = 0;
    k->first = tl_scratch_ints(b->scratch, (size_t)b->count + 1);
    k->row_at = tl_scratch_ints(b->scratch, (size_t)b->row_count);
    k->place = tl_scratch_ints(b->scratch, (size_t)b->row_count);
    k->decision_at = tl_scratch_ints(b->scratch, (size_t)b->decision_count);
    k->workload_at = workload ? tl_scratch_ints(b->scratch, (size_t)b->count) : NULL;
    k->machine_at = machine ? tl_scratch_ints(b->scratch, (size_t)b->count) : NULL;
    k->scale = tl_scratch_floats(b->scratch, (size_t)b->count);
    for (int p = 0; p < b->count; p++) {
        k->first[p] = at;
        for (int r = b->first_row[p]; r < b->first_row[p + 1]; r++) {
            const int place = r - b->first_row[p];
            k->row_at[r] = at++;
            k->place[r] = place < PLACES ? place : PLACES - 1;
        }
        for (int d = b->first_decision[p]; d < b->first_decision[p + 1]; d++)
            k->decision_at[d] = at++;
        if (workload)
            k->workload_at[p] = at++;
        if (machine)
            k->machine_at[p] = at++;
        k->scale[p] = 1 / (float)(at - k->first[p] > 0 ? at - k->first[p] : 1);
    }
    k->first[b->count] = k->token_count = at;
}

static void embed_kind(const tl_cost_network *n, const tl_cost_batch *b, int kind, int layer,
                       const float *from, int count, const int *where, float *x)
{
    const int width = n->settings[WIDTH], in = tl_network_width(n, kind);
    if (in == 0)
        return;
    float *y = room(b, count, width);
    tl_network_linear(n, layer, count, in, width, from, y);
    tl_scatter_rows(count, width, y, where, x);
}

static float *embed(const tl_cost_network *n, const tl_cost_batch *b, kept *k)
{
    const int width = n->settings[WIDTH], rows = b->row_count;
    const float *places = tl_weights_of(&n->weights, PLACE);
    float *x = room(b, k->token_count, width), *y = room(b, rows, width);
    k->rows1 = room(b, rows, width);
    k->active1 = room(b, rows, width);
    tl_network_linear(n, ROWS1, rows, tl_network_width(n, TL_NETWORK_ROW), width, b->rows,
                      k->rows1);
    tl_gelu(rows * width, k->rows1, k->active1);
    tl_network_linear(n, ROWS2, rows, width, width, k->active1, y);
    for (int r = 0; r < rows; r++)
        tl_add_floats(width, places + k->place[r] * width, y + (size_t)r * (size_t)width);
    tl_scatter_rows(rows, width, y, k->row_at, x);
    embed_kind(n, b, TL_NETWORK_DECISION, DECISION, b->decisions, b->decision_count, k->decision_at,
               x);
    embed_kind(n, b, TL_NETWORK_WORKLOAD, WORKLOAD, b->workloads, b->count, k->workload_at, x);
    embed_kind(n, b, TL_NETWORK_MACHINE, MACHINE, b->machines, b->count, k->machine_at, x);
    return x;
}

static void embed_kind_back(tl_cost_network *n, const tl_cost_batch *b, int kind, int layer,
                            const float *from, int count, const int *where, const float *d_x)
{
    const int width = n->settings[WIDTH], in = tl_network_width(n, kind);
    if (in == 0)
        return;
    float *d_y = room(b, count, width);
    tl_gather_rows(count, width, d_x, where, d_y);
    tl_network_linear_back(n, layer, count, in, width, from, d_y, NULL, false);
}

static void embed_back(tl_cost_network *n, const tl_cost_batch *b, const kept *k, const float *d_x)
{
    const int width = n->settings[WIDTH], rows = b->row_count;
    float *d_places = tl_weights_gradient_of(&n->weights, PLACE);
    float *d_y = room(b, rows, width), *d_active = room(b, rows, width);
    tl_gather_rows(rows, width, d_x, k->row_at, d_y);
    for (int r = 0; r < rows; r++)
        tl_add_floats(width, d_y + (size_t)r * (size_t)width, d_places + k->place[r] * width);
    tl_network_linear_back(n, ROWS2, rows, width, width, k->active1, d_y, d_active, false);
    tl_gelu_back(rows * width, k->rows1, d_active, d_active);
    tl_network_linear_back(n, ROWS1, rows, tl_network_width(n, TL_NETWORK_ROW), width, b->rows,
                           d_active, NULL, false);
    embed_kind_back(n, b, TL_NETWORK_DECISION, DECISION, b->decisions, b->decision_count,
                    k->decision_at, d_x);
    embed_kind_back(n, b, TL_NETWORK_WORKLOAD, WORKLOAD, b->workloads, b->count, k->workload_at,
                    d_x);
    embed_kind_back(n, b, TL_NETWORK_MACHINE, MACHINE, b->machines, b->count, k->machine_at, d_x);
}

/* --- layers ----------------------------------------------------------------------------------------------------------- */

static tl_attention_shape attention_of(const tl_cost_network *n, const tl_cost_batch *b,
                                       const kept *k)
{
    return (tl_attention_shape){ b->count, n->settings[WIDTH], n->settings[HEADS], k->first };
}

static void run_layer(const tl_cost_network *n, const tl_cost_batch *b, kept *k, int index,
                      float *x)
{
    const int width = n->settings[WIDTH], inner = n->settings[INNER], tokens = k->token_count;
    const int at = LAYER + OF_LAYER * index;
    const tl_attention_shape shape = attention_of(n, b, k);
    layer_kept *l = &k->layers[index];
    float *out = room(b, tokens, width);
    l->norm1 = tl_network_normalize(n, at + NORM1, tokens, width, x, b->scratch);
    l->queries = room(b, tokens, 3 * width);
    tl_network_linear(n, at + QUERIES, tokens, width, 3 * width, l->norm1.out, l->queries);
    l->shares = tl_scratch_floats(b->scratch, (size_t)tl_attention_shares(&shape));
    l->mixed = room(b, tokens, width);
    tl_attention(&shape, l->queries, l->shares, l->mixed);
    tl_network_linear(n, at + MIX, tokens, width, width, l->mixed, out);
    tl_add_floats(tokens * width, out, x);
    l->norm2 = tl_network_normalize(n, at + NORM2, tokens, width, x, b->scratch);
    l->inner = room(b, tokens, inner);
    l->active = room(b, tokens, inner);
    tl_network_linear(n, at + INNER1, tokens, width, inner, l->norm2.out, l->inner);
    tl_gelu(tokens * inner, l->inner, l->active);
    tl_network_linear(n, at + INNER2, tokens, inner, width, l->active, out);
    tl_add_floats(tokens * width, out, x);
}

static int longest(const tl_cost_batch *b, const kept *k)
{
    int most = 0;
    for (int p = 0; p < b->count; p++)
        most = k->first[p + 1] - k->first[p] > most ? k->first[p + 1] - k->first[p] : most;
    return most;
}

/* d_x: by what comes out, becomes by what came in. */
static void run_layer_back(tl_cost_network *n, const tl_cost_batch *b, kept *k, int index,
                           float *d_x)
{
    const int width = n->settings[WIDTH], inner = n->settings[INNER], tokens = k->token_count;
    const int at = LAYER + OF_LAYER * index, most = longest(b, k);
    const tl_attention_shape shape = attention_of(n, b, k);
    const layer_kept *l = &k->layers[index];
    float *d_inner = room(b, tokens, inner), *d_out = room(b, tokens, width);
    float *d_queries = room(b, tokens, 3 * width), *d_shares = room(b, most, most);
    tl_network_linear_back(n, at + INNER2, tokens, inner, width, l->active, d_x, d_inner, false);
    tl_gelu_back(tokens * inner, l->inner, d_inner, d_inner);
    tl_network_linear_back(n, at + INNER1, tokens, width, inner, l->norm2.out, d_inner, d_out,
                           false);
    tl_network_normalize_back(n, at + NORM2, tokens, width, &l->norm2, d_out, d_x, true);
    tl_network_linear_back(n, at + MIX, tokens, width, width, l->mixed, d_x, d_out, false);
    tl_attention_back(&shape, l->queries, l->shares, d_out, d_queries, d_shares);
    tl_network_linear_back(n, at + QUERIES, tokens, width, 3 * width, l->norm1.out, d_queries,
                           d_out, false);
    tl_network_normalize_back(n, at + NORM1, tokens, width, &l->norm1, d_out, d_x, true);
}

/* --- what comes of it ------------------------------------------------------------------------------------------------- */

/* log of the sum of exp over a program's rows; the rows' shares in it instead of what they were. */
static float log_sum(float *x, int count)
{
    float most = -INFINITY;
    double sum = 0;
    for (int i = 0; i < count; i++)
        most = x[i] > most ? x[i] : most;
    for (int i = 0; i < count; i++)
        x[i] -= most;
    tl_exp_floats(x, count);
    for (int i = 0; i < count; i++)
        sum += (double)x[i];
    for (int i = 0; i < count; i++)
        x[i] = (float)((double)x[i] / sum);
    return count > 0 ? most + (float)log(sum) : 0;
}

static void forward(const tl_cost_network *n, tl_cost_batch *b)
{
    const int width = n->settings[WIDTH];
    kept *k = tl_scratch_bytes(b->scratch, sizeof *k);
    b->kept = k;
    place_tokens(n, b, k);
    float *x = embed(n, b, k);
    for (int i = 0; i < n->settings[LAYERS]; i++)
        run_layer(n, b, k, i, x);
    k->last = tl_network_normalize(n, LAST_NORM, k->token_count, width, x, b->scratch);

    float *out = room(b, b->count, OUTPUTS);
    k->pooled = room(b, b->count, width);
    k->row_last = room(b, b->row_count, width);
    k->share = room(b, b->row_count, 1);
    tl_segment_sum(b->count, k->first, width, k->last.out, k->scale, k->pooled);
    tl_network_linear(n, OUTPUT, b->count, width, OUTPUTS, k->pooled, out);
    tl_gather_rows(b->row_count, width, k->last.out, k->row_at, k->row_last);
    tl_network_linear(n, CORRECTION, b->row_count, width, 1, k->row_last, k->share);
    tl_add_floats(b->row_count, b->base, k->share);
    for (int p = 0; p < b->count; p++) {
        const int first = b->first_row[p];
        b->mean[p] = out[OUTPUTS * p] + log_sum(k->share + first, b->first_row[p + 1] - first);
        b->spread[p] = out[OUTPUTS * p + 1] + first_spread;
    }
}

static void backward(tl_cost_network *n, tl_cost_batch *b)
{
    kept *k = b->kept;
    const int width = n->settings[WIDTH], tokens = k->token_count;
    float *d_out = room(b, b->count, OUTPUTS), *d_pooled = room(b, b->count, width);
    float *d_share = room(b, b->row_count, 1), *d_row = room(b, b->row_count, width);
    float *d_last = room(b, tokens, width), *d_x = room(b, tokens, width);
    for (int p = 0; p < b->count; p++) {
        d_out[OUTPUTS * p] = b->d_mean[p];
        d_out[OUTPUTS * p + 1] = b->d_spread[p];
        for (int r = b->first_row[p]; r < b->first_row[p + 1]; r++)
            d_share[r] = b->d_mean[p] * k->share[r];
    }
    tl_network_linear_back(n, OUTPUT, b->count, width, OUTPUTS, k->pooled, d_out, d_pooled, false);
    tl_segment_sum_back(b->count, k->first, width, k->scale, d_pooled, d_last);
    tl_network_linear_back(n, CORRECTION, b->row_count, width, 1, k->row_last, d_share, d_row,
                           false);
    for (int r = 0; r < b->row_count; r++)
        tl_add_floats(width, d_row + (size_t)r * (size_t)width,
                      d_last + (size_t)k->row_at[r] * (size_t)width);
    tl_network_normalize_back(n, LAST_NORM, tokens, width, &k->last, d_last, d_x, false);
    for (int i = n->settings[LAYERS] - 1; i >= 0; i--)
        run_layer_back(n, b, k, i, d_x);
    embed_back(n, b, k, d_x);
}

static const tl_network_type attention = {
    .type = &tl_cost_attention,
    .words = "attention over statements, decisions, workload and machine, beside the analytic time",
    .reads_rows = true,
    .reads_decisions = true,
    .has_base = true,
    .setting_count = 4,
    .settings = { { "width", 128, 8, 512 },
                  { "layers", 2, 0, MOST_LAYERS },
                  { "heads", 4, 1, 16 },
                  { "inner", 256, 1, 2048 } },
    .rate = 1e-3,
    .declare = declare,
    .forward = forward,
    .backward = backward,
};

static tl_status create(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    TL_TRY(tl_network_create(&attention, settings, seed, out, diag));
    const tl_cost_network *n = (const tl_cost_network *)*out;
    if (n->settings[WIDTH] % n->settings[HEADS] == 0)
        return TL_OK;
    tl_fail(diag, TL_BAD_ARGUMENT, "the width of attention, %d, is no multiple of its heads, %d",
            n->settings[WIDTH], n->settings[HEADS]);
    tl_cost_model_destroy(*out);
    return TL_BAD_ARGUMENT;
}

const tl_cost_model_type tl_cost_attention = { .name = "attention",
                                               .create = create,
                                               TL_NETWORK_CALLS };
