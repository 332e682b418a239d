/* frontend/import/import_recurrent.c: RNN, GRU and LSTM: the product with the input apart, for all steps at once, then RECURRENT.
 *
 *     x_d      = MatMul(X, W[d]') + Wb[d] + Rb[d]       a backward direction reads X from its end
 *     states   = Recurrent(Concat(x_0, x_1), R, ...)     both directions side by side, each forward in its own time
 *     Y        = states of d, turned round again         Y_h, Y_c: the last ones
 *
 * Directions whose activations differ become nodes of their own. */
#include <string.h>
#include <strings.h>
#include "frontend/import/import_rules.h"
#include "frontend/lower/recurrent.h"

enum { MOST_DIRECTIONS = 2, MOST_STEPS = 1 << 20 };
enum { X, W, R, B, LENGTHS, STATE, MEMORY, PEEPHOLE };

typedef struct {
    int64_t kind[TL_MOST_ACTIVATIONS];
    double alpha[TL_MOST_ACTIVATIONS], beta[TL_MOST_ACTIVATIONS];
} functions;

typedef struct {
    tl_onnx_call *call;
    tl_cell cell;
    int directions;
    bool reversed[MOST_DIRECTIONS], batchwise;
    int64_t hidden, gates;
    functions functions[MOST_DIRECTIONS];
    tl_value *x, *live; /* time first; live [T, B], NULL: always */
    tl_value *y[MOST_DIRECTIONS], *last_state[MOST_DIRECTIONS], *last_memory[MOST_DIRECTIONS];
} layer;

/* ---- small nodes ---- */

/* Equal parts of the first axis. */
static void split(tl_onnx_call *c, tl_value *x, tl_value **parts, int count)
{
    const char *name = tl_arena_format(c->arena, "%s.%d", c->name, c->temporaries++);
    for (int i = 0; i < count; i++)
        parts[i] = tl_graph_value(c->graph, name, TL_DTYPE_COUNT, NULL);
    tl_node *n = tl_graph_node(c->graph, TL_OP_SPLIT, name, 1, &x, count, parts);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_emitted(c, n);
}

static tl_value *transposed(tl_onnx_call *c, tl_value *x, int rank)
{
    static const int64_t swaps[][3] = { [2] = { 1, 0 }, [3] = { 1, 0, 2 } };
    return tl_onnx_emit_ints(c, TL_OP_TRANSPOSE, x, "perm", swaps[rank], rank);
}

static tl_value *unsqueezed(tl_onnx_call *c, tl_value *x, int64_t axis)
{
    return tl_onnx_emit_ints(c, TL_OP_UNSQUEEZE, x, "axes", &axis, 1);
}

/* Position d of the first axis, that axis left out; a constant's data stays where it is. */
static tl_value *position(tl_onnx_call *c, tl_value *v, int64_t d)
{
    static const int64_t first = 0;
    if (v->data == NULL)
        return tl_onnx_emit_ints(c, TL_OP_SQUEEZE, tl_onnx_emit_part(c, v, 0, d, d + 1, 1), "axes",
                                 &first, 1);
    tl_shape shape = v->shape;
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
    size_t bytes = (size_t)tl_storage_bytes(v->dtype, tl_shape_elements(&shape));
    const char *name = tl_arena_format(c->arena, "%s.%lld", v->name, (long long)d);
    return tl_graph_constant(c->graph, name, v->dtype, &shape,
                             (const char *)v->data + (size_t)d * bytes);
}

/* Directions first.. of an operand; all of them: the operand. */
static tl_value *directions_of(const layer *y, tl_value *v, int first, int count)
{
    if (v == NULL || count == y->directions)
        return v;
    return tl_onnx_emit_part(y->call, v, 0, first, first + count, 1);
}

/* ---- attributes ---- */

static tl_status find_directions(layer *y)
{
    const char *text = tl_call_string(y->call, "direction", "forward");
    y->directions = strcmp(text, "bidirectional") == 0 ? 2 : 1;
    y->reversed[0] = strcmp(text, "reverse") == 0;
    y->reversed[1] = true;
    if (y->directions == 1 && !y->reversed[0] && strcmp(text, "forward") != 0)
        return tl_call_bad(y->call, "there is no direction '%.40s'", text);
    return TL_OK;
}

static bool find_activation(const char *text, int64_t *out)
{
    for (int i = 0; i < TL_ACTIVATION_COUNT; i++)
        if (strcasecmp(tl_activation_infos[i].text, text) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Alphas and betas are given to those functions that have one, in order, as far as they reach. */
static tl_status find_functions(layer *y)
{
    tl_onnx_call *c = y->call;
    const char *const *names;
    const float *alpha, *beta;
    int each = tl_cell_infos[y->cell].activations;
    int count = tl_call_strings(c, "activations", &names);
    int alphas = tl_call_floats(c, "activation_alpha", &alpha), alphas_used = 0;
    int betas = tl_call_floats(c, "activation_beta", &beta), betas_used = 0;
    if (count >= 0 && count != each * y->directions)
        return tl_call_bad(c, "it has %d activations, not %d", count, each * y->directions);
    for (int i = 0; i < each * y->directions; i++) {
        functions *f = &y->functions[i / each];
        int at = i % each;
        f->kind[at] = y->cell == TL_CELL_RNN || at > 0 ? TL_ACTIVATION_TANH : TL_ACTIVATION_SIGMOID;
        if (count >= 0 && !find_activation(names[i], &f->kind[at]))
            return tl_call_unsupported(c, "activation '%.40s'", names[i]);
        const tl_activation_info *info = &tl_activation_infos[f->kind[at]];
        f->alpha[at] = info->alpha;
        f->beta[at] = info->beta;
        if (info->has_alpha && alphas_used < alphas)
            f->alpha[at] = (double)alpha[alphas_used++];
        if (info->has_beta && betas_used < betas)
            f->beta[at] = (double)beta[betas_used++];
    }
    return TL_OK;
}

static tl_status check_weights(layer *y)
{
    tl_onnx_call *c = y->call;
    const tl_value *w = c->inputs[W], *r = c->inputs[R];
    TL_TRY(tl_need_dtype(c, c->inputs[X]));
    TL_TRY(tl_need_shape(c, w));
    TL_TRY(tl_need_shape(c, r));
    const tl_dim *rows = r->shape.dims;
    y->hidden = r->shape.rank == 3 ? rows[2].extent : 0;
    y->gates = tl_cell_infos[y->cell].gates;
    if (w->shape.rank != 3 || r->shape.rank != 3 || y->hidden < 1 ||
        w->shape.dims[0].extent != y->directions || rows[0].extent != y->directions ||
        w->shape.dims[1].extent != y->gates * y->hidden || rows[1].extent != y->gates * y->hidden)
        return tl_call_bad(c, "W and R are not [%d, %lld*hidden_size, ..]", y->directions,
                           (long long)y->gates);
    if (tl_call_int(c, "hidden_size", y->hidden) != y->hidden)
        return tl_call_bad(c, "hidden_size is %lld and R has %lld columns",
                           (long long)tl_call_int(c, "hidden_size", 0), (long long)y->hidden);
    return TL_OK;
}

/* ---- operands ---- */

/* Where a sequence is not over yet: [T, B]. */
static tl_status find_live(layer *y)
{
    tl_onnx_call *c = y->call;
    tl_value *lengths = tl_call_input(c, LENGTHS);
    if (lengths == NULL)
        return TL_OK;
    TL_TRY(tl_need_dtype(c, lengths));
    TL_TRY(tl_need_shape(c, y->x));
    int64_t steps = y->x->shape.rank > 0 ? y->x->shape.dims[0].extent : 0;
    if (steps > MOST_STEPS)
        return tl_call_unsupported(c, "lengths of sequences of more than %d steps", MOST_STEPS);
    int64_t *numbers = TL_NEW_ARRAY(c->arena, int64_t, steps);
    for (int64_t i = 0; i < steps; i++)
        numbers[i] = i;
    tl_value *times = unsqueezed(c, tl_onnx_emit_i64(c, numbers, (int)steps), 1);
    lengths = unsqueezed(c, tl_onnx_emit_cast(c, lengths, TL_I64), 0);
    y->live = tl_emit2(c, TL_OP_LESS, times, lengths);
    return TL_OK;
}

/* Wb + Rb of a direction, [1, G*H]; the reset's own bias of a linear GRU stays out. NULL: no bias. */
static tl_value *bias_of(const layer *y, int d)
{
    tl_onnx_call *c = y->call;
    tl_value *b = tl_call_input(c, B);
    if (b == NULL)
        return NULL;
    int64_t all = y->gates * y->hidden;
    int64_t shared = y->cell == TL_CELL_GRU_LINEAR ? all - y->hidden : all;
    b = tl_onnx_emit_part(c, b, 0, d, d + 1, 1);
    tl_value *of_input = tl_onnx_emit_part(c, b, 1, 0, shared, 1);
    tl_value *of_state = tl_onnx_emit_part(c, b, 1, all, all + shared, 1);
    tl_value *sum = tl_emit2(c, TL_OP_ADD, of_input, of_state);
    tl_value *parts[2] = { sum, NULL };
    if (shared < all)
        parts[1] = tl_onnx_emit_part(c, b, 1, shared, all, 1);
    return tl_onnx_emit_concat(c, shared < all ? 2 : 1, parts, 1);
}

/* What the steps of a direction bring: [T, B, G*H]. */
static tl_value *steps_of(const layer *y, int d)
{
    tl_onnx_call *c = y->call;
    tl_value *x = y->reversed[d] ? tl_onnx_emit_reverse(c, y->x, 0) : y->x;
    tl_value *weights = transposed(c, position(c, c->inputs[W], d), 2);
    tl_value *sum = tl_emit2(c, TL_OP_MATMUL, x, weights), *bias = bias_of(y, d);
    return bias == NULL ? sum : tl_emit2(c, TL_OP_ADD, sum, bias);
}

/* The first state or memory of some directions: the input, or zero. */
static tl_value *start_of(const layer *y, int input, int first, int count)
{
    tl_onnx_call *c = y->call;
    tl_value *v = tl_call_input(c, input);
    if (v == NULL)
        return tl_onnx_emit_scalar(c, c->inputs[X]->dtype, 0);
    return directions_of(y, y->batchwise ? transposed(c, v, 3) : v, first, count);
}

static tl_value *reset_bias(const layer *y, int first, int count)
{
    tl_onnx_call *c = y->call;
    tl_value *b = tl_call_input(c, B);
    if (b == NULL || y->cell != TL_CELL_GRU_LINEAR)
        return NULL;
    int64_t end = 2 * y->gates * y->hidden;
    return tl_onnx_emit_part(c, directions_of(y, b, first, count), 1, end - y->hidden, end, 1);
}

/* ---- the node and what becomes of its output ---- */

static tl_value *recurrent(const layer *y, int first, int count, bool keeps_memory)
{
    tl_onnx_call *c = y->call;
    tl_value *steps[MOST_DIRECTIONS], *live[MOST_DIRECTIONS], *inputs[TL_RECURRENT_INPUTS] = { 0 };
    for (int i = 0; i < count; i++) {
        steps[i] = steps_of(y, first + i);
        live[i] = y->live != NULL && y->reversed[first + i] ? tl_onnx_emit_reverse(c, y->live, 0)
                                                            : y->live;
    }
    inputs[TL_RECURRENT_X] = tl_onnx_emit_concat(c, count, steps, 0);
    inputs[TL_RECURRENT_WEIGHTS] = directions_of(y, c->inputs[R], first, count);
    inputs[TL_RECURRENT_STATE] = start_of(y, STATE, first, count);
    if (y->live != NULL)
        inputs[TL_RECURRENT_LIVE] = tl_onnx_emit_concat(c, count, live, 0);
    inputs[TL_RECURRENT_BIAS] = reset_bias(y, first, count);
    if (y->cell == TL_CELL_LSTM) {
        inputs[TL_RECURRENT_MEMORY] = start_of(y, MEMORY, first, count);
        inputs[TL_RECURRENT_PEEPHOLE] = directions_of(y, tl_call_input(c, PEEPHOLE), first, count);
    }
    int input_count = TL_RECURRENT_INPUTS, each = tl_cell_infos[y->cell].activations;
    while (inputs[input_count - 1] == NULL)
        input_count--;
    const functions *f = &y->functions[first];
    tl_node *n = tl_onnx_emit_node(c, TL_OP_RECURRENT, input_count, inputs);
    tl_attr_set_string(c->graph, n, "cell", tl_cell_infos[y->cell].text);
    tl_attr_set_ints(c->graph, n, "activations", f->kind, each);
    tl_attr_set_floats(c->graph, n, "alpha", f->alpha, each);
    tl_attr_set_floats(c->graph, n, "beta", f->beta, each);
    if (keeps_memory)
        tl_attr_set_int(c->graph, n, "keeps_memory", 1);
    if (tl_call_int(c, "input_forget", 0) != 0)
        tl_attr_set_int(c->graph, n, "couples", 1);
    if (tl_call_has(c, "clip"))
        tl_attr_set_float(c->graph, n, "clip", tl_call_float(c, "clip", 0));
    return tl_emitted(c, n);
}

/* Runs some directions and takes their results apart. */
static void run(layer *y, int first, int count)
{
    tl_onnx_call *c = y->call;
    bool keeps_memory = y->cell == TL_CELL_LSTM && tl_call_wants(c, 2);
    int parts = count * (keeps_memory ? 2 : 1);
    tl_value *all = recurrent(y, first, count, keeps_memory), *part[2 * MOST_DIRECTIONS] = { all };
    if (parts > 1)
        split(c, all, part, parts);
    for (int i = 0; i < count; i++) {
        int d = first + i;
        y->last_state[d] = tl_onnx_emit_part(c, part[i], 0, -1, INT64_MAX, 1);
        if (keeps_memory)
            y->last_memory[d] = tl_onnx_emit_part(c, part[count + i], 0, -1, INT64_MAX, 1);
        y->y[d] = y->reversed[d] ? tl_onnx_emit_reverse(c, part[i], 0) : part[i];
        if (y->live == NULL)
            continue;
        tl_value *lives = unsqueezed(c, y->live, 2);
        tl_value *zero = tl_onnx_emit_scalar(c, c->inputs[X]->dtype, 0);
        y->y[d] = tl_onnx_emit_where(c, lives, y->y[d], zero);
    }
}

static bool same_functions(const layer *y)
{
    return memcmp(&y->functions[0], &y->functions[1], sizeof y->functions[0]) == 0;
}

/* [1, B, H] of each direction as [D, B, H], or [B, D, H]. */
static tl_value *last_of(const layer *y, tl_value *const *last)
{
    tl_value *all = tl_onnx_emit_concat(y->call, y->directions, last, 0);
    return y->batchwise ? transposed(y->call, all, 3) : all;
}

tl_status tl_import_recurrent(tl_onnx_call *c)
{
    layer y = { .call = c, .x = c->inputs[X], .batchwise = tl_call_int(c, "layout", 0) != 0 };
    bool is_gru = strcmp(c->op_type, "GRU") == 0;
    bool is_lstm = strcmp(c->op_type, "GRU") != 0 && strcmp(c->op_type, "RNN") != 0;
    y.cell = is_lstm                                                   ? TL_CELL_LSTM
             : is_gru && tl_call_int(c, "linear_before_reset", 0) != 0 ? TL_CELL_GRU_LINEAR
             : is_gru                                                  ? TL_CELL_GRU
                                                                       : TL_CELL_RNN;
    TL_TRY(find_directions(&y));
    TL_TRY(find_functions(&y));
    TL_TRY(check_weights(&y));
    if (y.batchwise)
        y.x = transposed(c, y.x, 3);
    TL_TRY(find_live(&y));
    if (y.directions == 1 || same_functions(&y)) {
        run(&y, 0, y.directions);
    } else {
        run(&y, 0, 1);
        run(&y, 1, 1);
    }
    int64_t axis = y.batchwise ? 2 : 1;
    for (int d = 0; d < y.directions; d++)
        y.y[d] = unsqueezed(c, y.batchwise ? transposed(c, y.y[d], 3) : y.y[d], axis);
    tl_result(c, 0, tl_onnx_emit_concat(c, y.directions, y.y, axis));
    tl_result(c, 1, last_of(&y, y.last_state));
    if (y.cell == TL_CELL_LSTM && tl_call_wants(c, 2))
        tl_result(c, 2, last_of(&y, y.last_memory));
    return TL_OK;
}

/* ---- com.microsoft's LSTM of weights of 8 bits ---- */

/* [D, rows, 4 H] of 8 bits, a scale and a zero point for each direction or each column: as an LSTM's weights, [D, 4 H, rows]. */
static tl_status dequantized(tl_onnx_call *c, tl_value *w, int scale_input, tl_value **out)
{
    tl_value *scale = c->inputs[scale_input], *zero = c->inputs[scale_input + 1], *sides[2];
    const int64_t perm[] = { 0, 2, 1 };
    TL_TRY(tl_need_shape(c, w));
    TL_TRY(tl_need_dtype(c, w));
    TL_TRY(tl_need_dtype(c, scale));
    if (w->shape.rank != 3)
        return tl_call_bad(c, "weights of %d axes", w->shape.rank);
    for (int i = 0; i < 2; i++) {
        sides[i] = i == 0 ? scale : zero;
        TL_TRY(tl_need_shape(c, sides[i]));
        const tl_shape *s = &sides[i]->shape;
        int64_t columns = s->rank == 2 ? s->dims[1].extent : 1,
                shape[] = { w->shape.dims[0].extent, 1, columns };
        if (tl_shape_elements(s) != shape[0] * columns ||
            (columns != 1 && columns != w->shape.dims[2].extent))
            return tl_call_bad(
                c, "input %d is neither a number for each direction nor for each column",
                scale_input + i);
        sides[i] = tl_onnx_emit_reshape(c, sides[i], shape, 3);
    }
    tl_value *steps = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_cast(c, w, scale->dtype),
                               tl_onnx_emit_cast(c, sides[1], scale->dtype));
    *out = tl_onnx_emit_transpose(c, tl_emit2(c, TL_OP_MUL, steps, sides[0]), perm);
    return TL_OK;
}

/* Computed with the weights' values: ONNX Runtime rounds what they are multiplied with to 8 bits as well, step by step. */
tl_status tl_import_dynamic_quantize_lstm(tl_onnx_call *c)
{
    enum { W_SCALE = 8, R_SCALE = 10, LSTM_INPUTS = 8 };
    TL_TRY(tl_need_inputs(c, 15u << W_SCALE));
    tl_value **inputs = TL_NEW_ARRAY(c->arena, tl_value *, LSTM_INPUTS);
    memcpy(inputs, c->inputs, sizeof *inputs * LSTM_INPUTS);
    TL_TRY(dequantized(c, c->inputs[W], W_SCALE, &inputs[W]));
    TL_TRY(dequantized(c, c->inputs[R], R_SCALE, &inputs[R]));
    c->inputs = inputs;
    c->input_count = LSTM_INPUTS;
    return tl_import_recurrent(c);
}
