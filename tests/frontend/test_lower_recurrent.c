/* tests/frontend/test_lower_recurrent.c: cells over time, interpreted, against formulas in f64: every cell, activation and
 * option, one block of rows and several. */
#include "tests/frontend/lower_helpers.h"
#include <stdlib.h>
#include "frontend/lower/recurrent.h"

enum { STEPS = 4, ROWS = 6, HIDDEN = 3, MOST_GATES = 4, MOST_DIRECTIONS = 2 };

typedef struct {
    const char *cell, *activations;
    int directions;
    bool live, peephole, bias, keeps_memory, couples;
    double clip; /* 0: none */
} recurrent_case;

typedef struct {
    tl_cell cell;
    int64_t kinds[TL_MOST_ACTIVATIONS];
    const float *x, *weights, *state, *memory, *peephole, *bias;
    const uint8_t *live;
} operands;

static double activation(int64_t kind, double x)
{
    const double a = 0.75, b = 0.5;
    switch ((tl_activation)kind) {
    case TL_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case TL_ACTIVATION_TANH:
        return tanh(x);
    case TL_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case TL_ACTIVATION_AFFINE:
        return a * x + b;
    case TL_ACTIVATION_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case TL_ACTIVATION_THRESHOLDED_RELU:
        return x > a ? x : 0;
    case TL_ACTIVATION_SCALED_TANH:
        return a * tanh(b * x);
    case TL_ACTIVATION_HARD_SIGMOID:
        return fmin(fmax(a * x + b, 0), 1);
    case TL_ACTIVATION_ELU:
        return x < 0 ? a * (exp(x) - 1) : x;
    case TL_ACTIVATION_SOFTSIGN:
        return x / (1 + fabs(x));
    case TL_ACTIVATION_SOFTPLUS:
        return log(1 + exp(x));
    case TL_ACTIVATION_COUNT:
        break;
    }
    return 0;
}

static double gate(const recurrent_case *c, const operands *o, int which, double x)
{
    if (c->clip > 0)
        x = fmin(fmax(x, -c->clip), c->clip);
    return activation(o->kinds[which], x);
}

/* One step of a row of direction d: h and m are its state and memory. */
static void step(const recurrent_case *c, const operands *o, int d, const float *x, double *h,
                 double *m)
{
    int gates = tl_cell_infos[o->cell].gates;
    double of_state[MOST_GATES][HIDDEN] = { 0 }, next[HIDDEN], reset[HIDDEN];
    const float *weights = o->weights + d * gates * HIDDEN * HIDDEN;
    for (int g = 0; g < gates; g++)
        for (int n = 0; n < HIDDEN; n++)
            for (int k = 0; k < HIDDEN; k++)
                of_state[g][n] += h[k] * weights[(g * HIDDEN + n) * HIDDEN + k];
    for (int n = 0; n < HIDDEN; n++)
        reset[n] = o->cell == TL_CELL_GRU || o->cell == TL_CELL_GRU_LINEAR
                       ? gate(c, o, 0, x[HIDDEN + n] + of_state[1][n])
                       : 0;
    for (int n = 0; n < HIDDEN; n++) {
        double candidate = 0;
        const float *peep = o->peephole != NULL ? o->peephole + d * 3 * HIDDEN + n : NULL;
        double i, f, out, keep;
        switch (o->cell) {
        case TL_CELL_RNN:
            next[n] = gate(c, o, 0, x[n] + of_state[0][n]);
            break;
        case TL_CELL_GRU:
        case TL_CELL_GRU_LINEAR:
            for (int k = 0; k < HIDDEN; k++)
                candidate += reset[k] * h[k] * weights[(2 * HIDDEN + n) * HIDDEN + k];
            if (o->cell == TL_CELL_GRU_LINEAR)
                candidate = reset[n] * (of_state[2][n] +
                                        (o->bias != NULL ? (double)o->bias[d * HIDDEN + n] : 0));
            keep = gate(c, o, 0, x[n] + of_state[0][n]);
            next[n] = (1 - keep) * gate(c, o, 1, x[2 * HIDDEN + n] + candidate) + keep * h[n];
            break;
        case TL_CELL_LSTM:
            i = gate(c, o, 0, x[n] + of_state[0][n] + (peep != NULL ? peep[0] * m[n] : 0));
            f = gate(c, o, 0,
                     x[2 * HIDDEN + n] + of_state[2][n] +
                         (peep != NULL ? peep[2 * HIDDEN] * m[n] : 0));
            m[n] = (c->couples ? 1 - i : f) * m[n] +
                   i * gate(c, o, 1, x[3 * HIDDEN + n] + of_state[3][n]);
            out = x[HIDDEN + n] + of_state[1][n] + (peep != NULL ? peep[HIDDEN] * m[n] : 0);
            next[n] = gate(c, o, 0, out) * activation(o->kinds[2], m[n]);
            break;
        case TL_CELL_COUNT:
            fail();
        }
    }
    memcpy(h, next, sizeof next);
}

static void reference(const recurrent_case *c, const operands *o, float *y)
{
    int gates = tl_cell_infos[o->cell].gates;
    for (int d = 0; d < c->directions; d++)
        for (int b = 0; b < ROWS; b++) {
            double h[HIDDEN], m[HIDDEN] = { 0 };
            for (int n = 0; n < HIDDEN; n++) {
                h[n] = o->state[(d * ROWS + b) * HIDDEN + n];
                m[n] = o->memory[(d * ROWS + b) * HIDDEN + n];
            }
            for (int t = 0; t < STEPS; t++) {
                int row = (d * STEPS + t) * ROWS + b;
                if (o->live == NULL || o->live[row])
                    step(c, o, d, o->x + row * gates * HIDDEN, h, m);
                for (int n = 0; n < HIDDEN; n++) {
                    y[row * HIDDEN + n] = (float)h[n];
                    if (c->keeps_memory)
                        y[(c->directions * STEPS * ROWS + row) * HIDDEN + n] = (float)m[n];
                }
            }
        }
}

static const char *graph_text(tl_arena *arena, const recurrent_case *c, const operands *o)
{
    int gates = tl_cell_infos[o->cell].gates, d = c->directions;
    bool lstm = o->cell == TL_CELL_LSTM;
    const char *count = tl_cell_infos[o->cell].activations == 1   ? "[%s]"
                        : tl_cell_infos[o->cell].activations == 2 ? "[%s, %s]"
                                                                  : "[%s, %s, %s]";
    tl_text text = { 0 };
    tl_text_format(&text,
                   "graph g\ninput x: f32[%d, %d, %d]\ninput w: f32[%d, %d, %d]\ninput h: f32[%d, "
                   "%d, %d]\n",
                   d * STEPS, ROWS, gates * HIDDEN, d, gates * HIDDEN, HIDDEN, d, ROWS, HIDDEN);
    if (lstm)
        tl_text_format(&text, "input m: f32[%d, %d, %d]\n", d, ROWS, HIDDEN);
    if (c->live)
        tl_text_format(&text, "input l: bool[%d, %d]\n", d * STEPS, ROWS);
    if (c->peephole)
        tl_text_format(&text, "input p: f32[%d, %d]\n", d, 3 * HIDDEN);
    if (c->bias)
        tl_text_format(&text, "input b: f32[%d, %d]\n", d, HIDDEN);
    tl_text_format(&text, "y: ?[...] = Recurrent(x, w, h, %s, %s, %s, %s) {cell = \"%s\", ",
                   lstm ? "m" : "_", c->live ? "l" : "_", c->peephole ? "p" : "_",
                   c->bias ? "b" : "_", c->cell);
    tl_text_format(&text, "activations = [%s], alpha = ", c->activations);
    tl_text_format(&text, count, "0.75", "0.75", "0.75");
    tl_text_add(&text, ", beta = ");
    tl_text_format(&text, count, "0.5", "0.5", "0.5");
    if (c->clip > 0)
        tl_text_format(&text, ", clip = %g", c->clip);
    tl_text_format(&text, ", keeps_memory = %d, couples = %d}\noutput y\n", c->keeps_memory,
                   c->couples);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

static void check(tl_arena *arena, const recurrent_case *c)
{
    operands o = { 0 };
    int d = c->directions, input_count = 0;
    for (int i = 0; i < TL_CELL_COUNT; i++)
        if (strcmp(tl_cell_infos[i].text, c->cell) == 0)
            o.cell = (tl_cell)i;
    const char *at = c->activations;
    for (int i = 0; i < tl_cell_infos[o.cell].activations; i++) {
        char *end;
        o.kinds[i] = strtol(at, &end, 10);
        at = end + (*end == ',');
    }
    int gates = tl_cell_infos[o.cell].gates;
    uint8_t *live = TL_NEW_ARRAY(arena, uint8_t, d * STEPS * ROWS);
    for (int i = 0; i < d * STEPS * ROWS; i++)
        live[i] = i % 3 != 1;
    o.x = random_floats(arena, d * STEPS * ROWS * gates * HIDDEN, 1);
    o.weights = random_floats(arena, d * gates * HIDDEN * HIDDEN, 2);
    o.state = random_floats(arena, d * ROWS * HIDDEN, 3);
    o.memory = random_floats(arena, d * ROWS * HIDDEN, 4);
    o.live = c->live ? live : NULL;
    o.peephole = c->peephole ? random_floats(arena, d * 3 * HIDDEN, 5) : NULL;
    o.bias = c->bias ? random_floats(arena, d * HIDDEN, 6) : NULL;

    const void *inputs[TL_RECURRENT_INPUTS], *given[TL_RECURRENT_INPUTS] = {
        o.x,    o.weights,  o.state, o.cell == TL_CELL_LSTM ? o.memory : NULL,
        o.live, o.peephole, o.bias
    };
    for (int i = 0; i < TL_RECURRENT_INPUTS; i++)
        if (given[i] != NULL)
            inputs[input_count++] = given[i];
    const char *text = graph_text(arena, c, &o);
    tl_graph *g = prepared_graph(arena, text, "x86-64-v3");
    int64_t count = tl_shape_elements(&g->outputs[0]->shape);
    float *want = TL_NEW_ARRAY(arena, float, count);
    reference(c, &o, want);
    void *const *data = (void *const *)(uintptr_t)inputs;
    assert_close(run_lowering(arena, g, "direct", data), want, count, text);
    assert_close(run_lowering(arena, g, "rows", data), want, count, text);
}

static void cells(void **state)
{
    static const recurrent_case cases[] = {
        { .cell = "rnn", .activations = "1", .directions = 1 },
        { .cell = "rnn", .activations = "1", .directions = 2, .live = true, .clip = 0.5 },
        { .cell = "gru", .activations = "2, 1", .directions = 1 },
        { .cell = "gru", .activations = "2, 1", .directions = 2, .live = true, .clip = 0.5 },
        { .cell = "gru_linear", .activations = "2, 1", .directions = 1 },
        { .cell = "gru_linear",
          .activations = "2, 1",
          .directions = 2,
          .live = true,
          .bias = true },
        { .cell = "lstm", .activations = "2, 1, 1", .directions = 1 },
        { .cell = "lstm", .activations = "2, 1, 1", .directions = 1, .keeps_memory = true },
        { .cell = "lstm", .activations = "2, 1, 1", .directions = 1, .couples = true },
        { .cell = "lstm", .activations = "2, 1, 0", .directions = 1, .clip = 0.25 },
        { .cell = "lstm",
          .activations = "2, 1, 1",
          .directions = 2,
          .live = true,
          .peephole = true,
          .keeps_memory = true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(*state, &cases[i]);
}

static void activations(void **state)
{
    for (int i = 0; i < TL_ACTIVATION_COUNT; i++) {
        recurrent_case c = { .cell = "rnn", .directions = 1 };
        c.activations = tl_arena_format(*state, "%d", i);
        check(*state, &c);
    }
}

/* Rows are shared out where the directions leave cores without work. */
static void rows_are_shared_out(void **state)
{
    static const struct {
        int directions, rows, cores;
        const char *want;
    } cases[] = {
        { 1, 8, 1, "direct" }, { 1, 8, 2, "rows" },   { 2, 8, 2, "direct" },
        { 2, 8, 4, "rows" },   { 1, 1, 2, "direct" }, { 1, 3, 2, "direct" },
    };
    tl_arena *arena = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { { 0 } };
        tl_partition partition;
        tl_target target;
        int d = cases[i].directions, rows = cases[i].rows;
        tl_graph *g = prepared_graph(
            arena,
            tl_arena_format(arena,
                            "graph g\ninput x: f32[%d, %d, 3]\ninput w: f32[%d, 3, 3]\ninput h: "
                            "f32[%d, %d, 3]\ny: ?[...] = Recurrent(x, w, h) {cell = \"rnn\", "
                            "activations = [1], alpha = [0.0], beta = [0.0]}\noutput y\n",
                            d * 5, rows, d, d, rows),
            "x86-64-v3");
        assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        target.cores = cases[i].cores;
        assert_string_equal(tl_choose_lowering(&partition.kernels[0], &target, TL_NUMERICS_RELAXED),
                            cases[i].want);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(activations, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(rows_are_shared_out, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests_name("lower recurrent", tests, NULL, NULL);
}
