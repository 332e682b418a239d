/* frontend/lower/lower_recurrent.c: a cell that runs over time: LSTM (Hochreiter, Schmidhuber 1997; peepholes: Gers,
 * Schmidhuber 2000), GRU (Cho et al. 2014), a plain recurrent layer.
 *
 *     for each direction d, block of rows r:     start_state: h = state      start_memory: c = memory
 *       for each step t:
 *         gates      s[g] = sum over k of h[k] * weights[g, k]               all gates side by side
 *         cell       c = f*c + i*candidate                                   LSTM
 *         output     h = y[t] = ...
 *
 * A GRU that resets the state before the product (cell gru) has two products: `gates` of z and r, `reset` r*h, `candidate`.
 * The input's product is not here: it does not depend on the state, and is one product for all steps.
 *
 * Error: each step rounds as a product of H terms and some functions do, and starts from what the one before rounded:
 * tl_program_error_bound counts the roundings of all steps as one chain. */
#include "frontend/lower/lower_private.h"
#include "frontend/lower/recurrent.h"
#include "runtime/base/checked.h"

/* In a block, where rows are shared out. Every block reads the weights again: one row takes no less time than two. */
enum { LEAST_ROWS = 2, MOST_ROWS = 4 };

typedef struct {
    tl_lower *lower;
    tl_arena *arena;
    const tl_node *node;
    tl_cell cell;
    tl_recurrent_sizes z;
    tl_dtype dtype;
    int64_t height;                      /* rows in a block */
    const tl_expr *direction, *rows, *t; /* loops around the nests */
    tl_view h, c, states;
    tl_view sums, candidate; /* of a step; candidate: the second product of a GRU */
} job;

/* Iters d, b in front of one of its own: at[] = d, b, n. */
static tl_block_nest begin(const job *j, const char *name, const tl_expr *at[3])
{
    tl_block_nest nest = tl_nest_begin(j->lower, name);
    at[0] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "d", j->z.directions, j->direction, 0);
    at[1] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "b", j->z.batch,
                            tl_muli(j->arena, j->rows, j->height), j->height);
    return nest;
}

/* The same inside the loop over time: at[] = d, t, b, n, with n of `extent`. */
static tl_block_nest begin_step(const job *j, const char *name, tl_iter_kind t, int64_t extent,
                                const tl_expr *at[4])
{
    tl_block_nest nest = tl_nest_begin(j->lower, name);
    at[0] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "d", j->z.directions, j->direction, 0);
    at[1] = tl_nest_iter_at(&nest, t, "t", j->z.steps, j->t, 0);
    at[2] = tl_nest_iter_at(&nest, TL_ITER_SPATIAL, "b", j->z.batch,
                            tl_muli(j->arena, j->rows, j->height), j->height);
    at[3] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", extent);
    return nest;
}

static const tl_expr *operand(const job *j, int input, int rank, tl_index at)
{
    return tl_cast(j->arena, j->dtype,
                   tl_lower_read_broadcast(j->lower, j->node->inputs[input], rank, at));
}

static bool has(const job *j, int input)
{
    return input < j->node->input_count && j->node->inputs[input] != NULL;
}

static void start(const job *j, const char *name, const tl_view *local, int input)
{
    const tl_expr *at[3];
    tl_block_nest nest = begin(j, name, at);
    at[2] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "n", j->z.hidden);
    tl_nest_store(&nest, local, at, operand(j, input, 3, at));
}

/* sums[d, t, b, n] = sum over k of from[.., k] * weights[d, first*H + n, k], for `gates` gates. */
static tl_view product(const job *j, const char *name, const tl_view *from, int first, int gates)
{
    const tl_recurrent_sizes *z = &j->z;
    tl_layout plain = tl_layout_plain();
    tl_shape shape =
        tl_shape_of(4, (int64_t[]){ z->directions, z->steps, z->batch, gates * z->hidden });
    tl_view sums = tl_lower_local(j->lower, "s", j->dtype, &shape, &plain);
    const tl_expr *at[4];
    tl_block_nest nest = begin_step(j, name, TL_ITER_SPATIAL, gates * z->hidden, at);
    const tl_expr *k = tl_nest_iter(&nest, TL_ITER_REDUCE, "k", z->hidden);
    const tl_expr *state[3] = { at[0], at[2], k }, *reset[4] = { at[0], at[1], at[2], k };
    const tl_expr *weight[3] = { at[0], tl_addi(j->arena, at[3], first * z->hidden), k };
    const tl_expr *left = tl_view_load(j->lower, from, from->shape.rank == 3 ? state : reset);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &sums, at,
                   tl_mul(j->arena, left, operand(j, TL_RECURRENT_WEIGHTS, 3, weight)));
    return sums;
}

/* Position of a step among the states of all directions, those of `kind` 1 (memories) behind those of kind 0. */
static const tl_expr *step(const job *j, const tl_expr *d, const tl_expr *t, int kind)
{
    d = tl_addi(j->arena, d, kind * j->z.directions);
    return tl_add(j->arena, tl_muli(j->arena, d, j->z.steps), t);
}

static const tl_expr *gate_index(const job *j, const tl_expr *n, int gate)
{
    return tl_addi(j->arena, n, gate * j->z.hidden);
}

/* What step t brings to a gate. */
static const tl_expr *input(const job *j, tl_index at, int gate)
{
    const tl_expr *index[3] = { step(j, at[0], at[1], 0), at[2], gate_index(j, at[3], gate) };
    return operand(j, TL_RECURRENT_X, 3, index);
}

static const tl_expr *sum(const job *j, const tl_view *sums, tl_index at, int gate)
{
    const tl_expr *index[4] = { at[0], at[1], at[2], gate_index(j, at[3], gate) };
    return tl_view_load(j->lower, sums, index);
}

static const tl_expr *old(const job *j, const tl_view *local, tl_index at)
{
    return tl_view_load(j->lower, local, (const tl_expr *[]){ at[0], at[2], at[3] });
}

static const tl_expr *peephole(const job *j, tl_index at, int gate, const tl_expr *memory)
{
    const tl_expr *index[2] = { at[0], gate_index(j, at[3], gate) };
    return tl_mul(j->arena, operand(j, TL_RECURRENT_PEEPHOLE, 2, index), memory);
}

static const tl_expr *number(const job *j, double value)
{
    return tl_float(j->arena, j->dtype, value);
}

/* The cell's activation `i` of x. */
static const tl_expr *activate(const job *j, int i, const tl_expr *x)
{
    tl_arena *arena = j->arena;
    const int64_t *activations;
    tl_attr_ints(j->node, "activations", &activations);
    const tl_expr *a = number(j, tl_attr_find(j->node, "alpha")->floats[i]),
                  *b = number(j, tl_attr_find(j->node, "beta")->floats[i]), *zero = number(j, 0),
                  *one = number(j, 1);
    const tl_expr *negative = tl_lt(arena, x, zero);
    switch ((tl_activation)activations[i]) {
    case TL_ACTIVATION_RELU:
        return tl_max(arena, x, zero);
    case TL_ACTIVATION_TANH:
        return tl_call1(arena, TL_FUNCTION_TANH, x);
    case TL_ACTIVATION_SIGMOID:
        return tl_call1(arena, TL_FUNCTION_SIGMOID, x);
    case TL_ACTIVATION_AFFINE:
        return tl_add(arena, tl_mul(arena, a, x), b);
    case TL_ACTIVATION_LEAKY_RELU:
        return tl_select(arena, negative, tl_mul(arena, a, x), x);
    case TL_ACTIVATION_THRESHOLDED_RELU:
        return tl_select(arena, tl_lt(arena, a, x), x, zero);
    case TL_ACTIVATION_SCALED_TANH:
        return tl_mul(arena, a, tl_call1(arena, TL_FUNCTION_TANH, tl_mul(arena, b, x)));
    case TL_ACTIVATION_HARD_SIGMOID:
        return tl_min(arena, tl_max(arena, tl_add(arena, tl_mul(arena, a, x), b), zero), one);
    case TL_ACTIVATION_ELU:
        return tl_select(arena, negative,
                         tl_mul(arena, a, tl_sub(arena, tl_call1(arena, TL_FUNCTION_EXP, x), one)),
                         x);
    case TL_ACTIVATION_SOFTSIGN:
        return tl_div(arena, x, tl_add(arena, one, tl_call1(arena, TL_FUNCTION_ABS, x)));
    case TL_ACTIVATION_SOFTPLUS: /* max(x, 0) + log(1 + exp(-|x|)): exp does not overflow */
        return tl_add(arena, tl_max(arena, x, zero),
                      tl_call1(arena, TL_FUNCTION_LOG1P,
                               tl_call1(arena, TL_FUNCTION_EXP,
                                        tl_sub(arena, zero, tl_call1(arena, TL_FUNCTION_ABS, x)))));
    case TL_ACTIVATION_COUNT:
        break;
    }
    return x;
}

/* A gate: the activation of its sum, clipped where the node says so. (Not what an LSTM makes of its memory: ONNX says
 * inputs of activations, but ONNX Runtime and OpenVINO clip gates only.) */
static const tl_expr *gate_value(const job *j, int i, const tl_expr *x)
{
    const tl_attr *clip = tl_attr_find(j->node, "clip");
    if (clip != NULL)
        x = tl_min(j->arena, tl_max(j->arena, x, number(j, -clip->f)), number(j, clip->f));
    return activate(j, i, x);
}

/* Ends a nest of a step: the local takes the value where the step is live, and `states` a copy where it is wanted. */
static void finish(const job *j, tl_block_nest *nest, tl_index at, const tl_view *local, int kind,
                   bool kept, const tl_expr *value)
{
    const tl_expr *element[3] = { at[0], at[2], at[3] };
    const tl_expr *state[3] = { step(j, at[0], at[1], kind), at[2], at[3] };
    if (has(j, TL_RECURRENT_LIVE))
        value = tl_select(j->arena,
                          tl_lower_read(j->lower, j->node->inputs[TL_RECURRENT_LIVE],
                                        (const tl_expr *[]){ step(j, at[0], at[1], 0), at[2] }),
                          value, old(j, local, at));
    const tl_view *places[2] = { local, &j->states };
    tl_index indices[2] = { element, state };
    tl_store *stores = TL_NEW_ARRAY(j->arena, tl_store, 2);
    for (int i = 0; i < 2; i++) {
        const tl_expr **physical = TL_NEW_ARRAY(j->arena, const tl_expr *, 2 * TL_MAX_RANK);
        tl_view_index(j->lower, places[i], indices[i], physical);
        stores[i] = (tl_store){ places[i]->buffer, physical, value };
    }
    tl_nest_stores(nest, kept ? 2 : 1, stores);
}

static void lstm(job *j)
{
    tl_arena *arena = j->arena;
    const tl_expr *at[4];
    bool peeps = has(j, TL_RECURRENT_PEEPHOLE);
    j->sums = product(j, "gates", &j->h, 0, 4);
    enum { I, O, F, CANDIDATE };
    tl_block_nest nest = begin_step(j, "cell", TL_ITER_ORDERED, j->z.hidden, at);
    const tl_expr *gate[4], *c = old(j, &j->c, at);
    for (int i = I; i <= CANDIDATE; i++)
        gate[i] = tl_add(arena, input(j, at, i), sum(j, &j->sums, at, i));
    if (peeps) {
        gate[I] = tl_add(arena, gate[I], peephole(j, at, 0, c));
        gate[F] = tl_add(arena, gate[F], peephole(j, at, 2, c));
    }
    const tl_expr *in = gate_value(j, 0, gate[I]);
    const tl_expr *keep = tl_attr_int(j->node, "couples", 0) != 0 ? tl_sub(arena, number(j, 1), in)
                                                                  : gate_value(j, 0, gate[F]);
    bool kept = tl_attr_int(j->node, "keeps_memory", 0) != 0;
    finish(j, &nest, at, &j->c, 1, kept,
           tl_add(arena, tl_mul(arena, keep, c),
                  tl_mul(arena, in, gate_value(j, 1, gate[CANDIDATE]))));

    nest = begin_step(j, "output", TL_ITER_ORDERED, j->z.hidden, at);
    const tl_expr *out = tl_add(arena, input(j, at, O), sum(j, &j->sums, at, O));
    c = old(j, &j->c, at);
    if (peeps)
        out = tl_add(arena, out, peephole(j, at, 1, c));
    finish(j, &nest, at, &j->h, 0, true, tl_mul(arena, gate_value(j, 0, out), activate(j, 2, c)));
}

static void gru(job *j)
{
    tl_arena *arena = j->arena;
    const tl_expr *at[4], *sums;
    enum { UPDATE, RESET, CANDIDATE };
    bool linear = j->cell == TL_CELL_GRU_LINEAR;
    j->sums = product(j, "gates", &j->h, 0, linear ? 3 : 2);
    if (!linear) {
        tl_layout plain = tl_layout_plain();
        tl_shape shape =
            tl_shape_of(4, (int64_t[]){ j->z.directions, j->z.steps, j->z.batch, j->z.hidden });
        tl_view reset = tl_lower_local(j->lower, "reset", j->dtype, &shape, &plain);
        tl_block_nest nest = begin_step(j, "reset", TL_ITER_SPATIAL, j->z.hidden, at);
        sums = tl_add(arena, input(j, at, RESET), sum(j, &j->sums, at, RESET));
        tl_nest_store(&nest, &reset, at, tl_mul(arena, gate_value(j, 0, sums), old(j, &j->h, at)));
        j->candidate = product(j, "candidate", &reset, CANDIDATE, 1);
    }
    tl_block_nest nest = begin_step(j, "output", TL_ITER_ORDERED, j->z.hidden, at);
    const tl_expr *h = old(j, &j->h, at), *brought = input(j, at, CANDIDATE), *of_state;
    if (linear) {
        of_state = sum(j, &j->sums, at, CANDIDATE);
        if (has(j, TL_RECURRENT_BIAS))
            of_state =
                tl_add(arena, of_state,
                       operand(j, TL_RECURRENT_BIAS, 2, (const tl_expr *[]){ at[0], at[3] }));
        sums = tl_add(arena, input(j, at, RESET), sum(j, &j->sums, at, RESET));
        of_state = tl_mul(arena, gate_value(j, 0, sums), of_state);
    } else {
        of_state = sum(j, &j->candidate, at, 0);
    }
    const tl_expr *fresh = gate_value(j, 1, tl_add(arena, brought, of_state));
    const tl_expr *keep =
        gate_value(j, 0, tl_add(arena, input(j, at, UPDATE), sum(j, &j->sums, at, UPDATE)));
    finish(j, &nest, at, &j->h, 0, true,
           tl_add(arena, tl_mul(arena, tl_sub(arena, number(j, 1), keep), fresh),
                  tl_mul(arena, keep, h)));
}

static void rnn(job *j)
{
    const tl_expr *at[4];
    j->sums = product(j, "gates", &j->h, 0, 1);
    tl_block_nest nest = begin_step(j, "output", TL_ITER_ORDERED, j->z.hidden, at);
    finish(j, &nest, at, &j->h, 0, true,
           gate_value(j, 0, tl_add(j->arena, input(j, at, 0), sum(j, &j->sums, at, 0))));
}

static void stages(tl_lower *l, const tl_node *n, int64_t height)
{
    job j = { .lower = l, .arena = tl_lower_arena(l), .node = n, .height = height };
    tl_cell_of(n, &j.cell);
    j.z = tl_recurrent_sizes_of(n);
    j.dtype = tl_accumulate_dtype(n->inputs[TL_RECURRENT_X]->dtype);
    tl_layout plain = tl_layout_plain();
    tl_shape state = tl_shape_of(3, (int64_t[]){ j.z.directions, j.z.batch, j.z.hidden });
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] != NULL && !tl_value_is_literal(n->inputs[i]))
            tl_lower_materialize(l, n->inputs[i]);
    j.states = tl_lower_accumulator(l, n, j.dtype, true);
    j.direction = tl_lower_loop_begin(l, "d", j.z.directions);
    j.rows = tl_lower_loop_begin(l, "r", j.z.batch / height);
    j.h = tl_lower_local(l, "h", j.dtype, &state, &plain);
    start(&j, "start_state", &j.h, TL_RECURRENT_STATE);
    if (j.cell == TL_CELL_LSTM) {
        j.c = tl_lower_local(l, "c", j.dtype, &state, &plain);
        start(&j, "start_memory", &j.c, TL_RECURRENT_MEMORY);
    }
    j.t = tl_lower_loop_begin(l, "t", j.z.steps);
    if (j.cell == TL_CELL_LSTM)
        lstm(&j);
    else if (j.cell == TL_CELL_RNN)
        rnn(&j);
    else
        gru(&j);
    for (int i = 0; i < 3; i++)
        tl_lower_loop_end(l);
    tl_lower_locals(l, n)->place[0] = j.states;
}

void tl_stages_recurrent(tl_lower *l, const tl_node *n)
{
    stages(l, n, tl_max64(tl_recurrent_sizes_of(n).batch, 1));
}

/* The largest part of the rows, but not all, that divides them and makes no large block; 1 when none does. */
static int64_t shared_rows(const tl_node *n)
{
    int64_t batch = tl_recurrent_sizes_of(n).batch, best = 1;
    for (int64_t rows = 2; rows <= MOST_ROWS && rows < batch; rows++)
        if (batch % rows == 0)
            best = rows;
    return best;
}

bool tl_lowers_rows(const tl_node *n)
{
    return shared_rows(n) >= LEAST_ROWS;
}

void tl_stages_recurrent_rows(tl_lower *l, const tl_node *n)
{
    stages(l, n, shared_rows(n));
}

const tl_expr *tl_value_recurrent(tl_lower *l, const tl_node *n, tl_index index)
{
    return tl_cast(tl_lower_arena(l), n->outputs[0]->dtype,
                   tl_view_load(l, &tl_lower_locals(l, n)->place[0], index));
}
