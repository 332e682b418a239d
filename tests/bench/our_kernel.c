#include "tests/bench/our_kernel.h"
#include <stdlib.h>
#include <string.h>
#include "schedule/sketch/sketch.h"

/* "f32[1, 64, 56, 56]", and how an image of so many channels lies between convolutions: in blocks of the target's lanes
 * where they divide, a halo around it. */
static const char *type_text(timed_machine *m, tl_arena *arena, const peer_case *c, int operand)
{
    case_shape shape = case_operand(c, operand);
    tl_text text = { 0 };
    for (int i = 0; i < shape.rank; i++)
        tl_text_format(&text, "%s%lld", i ? ", " : "f32[", (long long)shape.dims[i]);
    tl_text_add(&text, "]");
    int64_t lanes = tl_target_lanes(&m->target, TL_F32);
    if (shape.rank == 4 && operand != CASE_B && shape.dims[1] % lanes == 0) {
        bool halo = operand == CASE_A && c->op == CASE_CONV;
        int down = halo ? (int)c->window[0] / 2 : 0, across = halo ? (int)c->window[1] / 2 : 0;
        tl_text_format(&text,
                       " layout(order [0, 1, 2, 3], block [1, %lld, 1, 1], before [0, 0, %d, %d], "
                       "after [0, 0, %d, %d])",
                       (long long)lanes, down, across, down, across);
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

static const char *operator_text(tl_arena *arena, const peer_case *c, const char *result)
{
    int down = (int)c->window[0] / 2, across = (int)c->window[1] / 2;
    const char *pads =
        tl_arena_format(arena, "pads = [%d, %d, %d, %d]", down, across, down, across);
    const char *strides =
        tl_arena_format(arena, "strides = [%d, %d]", (int)c->stride, (int)c->stride);
    switch (c->op) {
    case CASE_MATMUL:
        return tl_arena_format(arena, "r: %s = MatMul(a, b)\n", result);
    case CASE_CONV:
        return tl_arena_format(arena,
                               "s: %s = Conv(a, b, bias) {%s, dilations = [1, 1], %s, group = "
                               "%lld}\nr: %s = Relu(s)\n",
                               result, strides, pads, (long long)c->groups, result);
    case CASE_MAX_POOL:
        return tl_arena_format(arena, "r: %s = MaxPool(a) {kernel_shape = [%d, %d], %s, %s}\n",
                               result, (int)c->window[0], (int)c->window[1], strides, pads);
    case CASE_SOFTMAX:
        return tl_arena_format(arena, "r: %s = Softmax(a) {axis = 1}\n", result);
    case CASE_LAYER_NORM:
        return tl_arena_format(
            arena, "r: %s = LayerNormalization(a, b, bias) {axis = 1, epsilon = 0.00001}\n",
            result);
    case CASE_GELU:
        return tl_arena_format(arena, "r: %s = Gelu(a)\n", result);
    }
    return "";
}

static const char *graph_text(timed_machine *m, tl_arena *arena, const peer_case *c)
{
    static const char *const names[] = { "a", "b", "bias" };
    const char *text = "graph g\n";
    for (int i = CASE_A; i <= CASE_BIAS; i++) {
        bool constant = c->op == CASE_MATMUL ? i == CASE_B && c->constant : i != CASE_A;
        if (case_elements(c, i) > 0)
            text = tl_arena_format(arena, "%s%s %s: %s%s\n", text, constant ? "const" : "input",
                                   names[i], type_text(m, arena, c, i), constant ? " = ..." : "");
    }
    return tl_arena_format(arena, "%s%soutput r\n", text,
                           operator_text(arena, c, type_text(m, arena, c, CASE_RESULT)));
}

/* Copies between a plain array and one in the value's layout. */
static void lay_out(const tl_value *v, float *plain, float *laid, bool in)
{
    int64_t count = 1, physical[2 * TL_MAX_RANK];
    const tl_layout *l = &v->layout;
    for (int i = 0; i < v->shape.rank; i++)
        count *= v->shape.dims[i].extent;
    if (l->plain) {
        memcpy(in ? laid : plain, in ? plain : laid, (size_t)count * sizeof *plain);
        return;
    }
    int rank = v->shape.rank;
    for (int i = 0; i < rank; i++) /* axes stay in order (type_text) */
        physical[i] =
            (v->shape.dims[i].extent + l->halo_before[i] + l->halo_after[i]) / l->block[i];
    for (int64_t e = 0; e < count; e++) {
        int64_t at[TL_MAX_RANK], rest = e, place = 0;
        for (int i = rank - 1; i >= 0; i--) {
            at[i] = rest % v->shape.dims[i].extent + l->halo_before[i];
            rest /= v->shape.dims[i].extent;
        }
        for (int i = 0; i < rank; i++)
            place = place * physical[i] + at[i] / l->block[i];
        for (int i = 0; i < rank; i++)
            place = place * l->block[i] + at[i] % l->block[i];
        *(in ? &laid[place] : &plain[e]) = *(in ? &plain[e] : &laid[place]);
    }
}

static void *make_argument(const tl_buffer *b, const tl_value *v, const peer_case *c,
                           float *const operands[CASE_OPERANDS])
{
    size_t bytes = (size_t)tl_buffer_max_elements(b) * sizeof(float);
    int operand = strcmp(v->name, "a") == 0   ? CASE_A
                  : strcmp(v->name, "b") == 0 ? CASE_B
                                              : CASE_BIAS;
    float *data = timed_alloc((int64_t)bytes);
    memset(data, 0, bytes);
    if (b->role != TL_ROLE_OUTPUT && case_elements(c, operand) > 0)
        lay_out(v, operands[operand], data, true);
    return data;
}

void our_kernel_make(timed_machine *m, const peer_case *c, float *const operands[CASE_OPERANDS],
                     tl_numerics numerics, our_kernel *out)
{
    tl_diag diag = { 0 };
    tl_graph *g;
    tl_partition partition;
    tl_program *naive;
    tl_arena *arena = tl_arena_create(0);
    void *arguments[TIMED_BUFFERS];
    timed_must(tl_graph_parse(arena, graph_text(m, arena, c), c->name, &g, &diag), &diag);
    timed_must(tl_infer_shapes(g, &diag), &diag);
    timed_must(tl_partition_graph(arena, g, &partition, &diag), &diag);
    if (partition.count != 1)
        timed_must(tl_fail(&diag, TL_UNSUPPORTED, "%s makes %d kernels, not one", c->name,
                           partition.count),
                   &diag);
    const tl_kernel *kernel = &partition.kernels[0];
    *out = (our_kernel){ .arena = arena,
                         .lowering = tl_choose_lowering(kernel, &m->target, numerics) };
    timed_must(tl_kernel_program(arena, kernel, NULL, &naive, &diag), &diag);
    out->naive = naive;
    timed_must(tl_kernel_program(arena, kernel, out->lowering, &naive, &diag), &diag);
    tl_schedule *s = tl_schedule_create(arena, naive, &m->target, false);
    timed_must(tl_schedule_default(s, &diag), &diag);
    for (int i = 0; i < naive->param_count; i++) {
        bool is_input = i < kernel->input_count;
        const tl_value *v = is_input ? kernel->inputs[i] : kernel->outputs[i - kernel->input_count];
        arguments[i] = make_argument(naive->params[i], v, c, operands);
        if (!is_input) {
            out->result = v;
            out->result_data = arguments[i];
        }
    }
    out->trace = tl_schedule_trace(s);
    timed_kernel_make(m, arena, tl_schedule_program(s), arguments, &out->kernel);
}

void our_kernel_read(const our_kernel *k, float *result)
{
    lay_out(k->result, result, k->result_data, false);
}

void our_kernel_free(our_kernel *k)
{
    for (int i = 0; i < k->kernel.first_prepared; i++)
        free(k->kernel.buffers[i]);
    timed_kernel_free(&k->kernel);
    tl_arena_destroy(k->arena);
}
