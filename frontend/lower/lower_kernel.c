/* frontend/lower/lower_kernel.c: one kernel's naive Program: parameters, the stages of its nodes in order, the nest that writes
 * the output. */
#include "frontend/lower/lower_private.h"
#include <assert.h>
#include <string.h>

/* Beside the direct ones. */
static const tl_lowering others[] = {
#define LOWERING(op, name, when, error, stages, value) \
    { TL_OP_##op, #name, tl_lowers_##when, error, tl_stages_##stages, tl_value_##value },
#include "frontend/lower/lowerings.def"
#undef LOWERING
};

int tl_lowerings_of(tl_op op, const tl_lowering *out[TL_MAX_LOWERINGS])
{
    int count = 0;
    if (tl_operators[op].kind == TL_KIND_VANISHING)
        return 0;
    out[count++] = &tl_operators[op].direct;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].op == op && count < TL_MAX_LOWERINGS)
            out[count++] = &others[i];
    return count;
}

const tl_lowering *tl_lowering_find(tl_op op, const char *name)
{
    const tl_lowering *rows[TL_MAX_LOWERINGS];
    int count = tl_lowerings_of(op, rows);
    for (int i = 0; i < count; i++)
        if (name == NULL || strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

void tl_stages_none(tl_lower *l, const tl_node *n)
{
    (void)l;
    (void)n;
}

/* Of operators that vanish: tl_lowerings_of has no lowering of theirs. */
const tl_expr *tl_value_none(tl_lower *l, const tl_node *n, tl_index index)
{
    (void)l;
    (void)n;
    (void)index;
    assert(!"lowered an operator that vanishes");
    return NULL;
}

/* An expression larger than this is written to a local rather than repeated in each reader. The guess (`cost`) knows
 * operators only; what indices grow to when axes are merged and taken apart again and again, and how deep a chain gets, is
 * asked of the expression itself: one of more nodes or levels than the second and third reads locals instead. A stage, which
 * has indices of its own, reads only small ones. */
enum { LARGEST_EXPRESSION = 48, LARGEST_VALUE = 512, DEEPEST_VALUE = 80, LARGEST_STAGED = 128 };

/* What the operator calls its input `index`. */
static const char *role_name(tl_lower *l, const tl_node *n, int index)
{
    size_t size;
    const char *word = tl_operator_word(tl_operators[n->op].roles, index, &size);
    return size > 0 ? tl_arena_strndup(l->arena, word, size) : "x";
}

/* What the kernel's first reader of a value calls it. */
static const char *input_name(tl_lower *l, const tl_value *v)
{
    for (int k = 0; k < l->kernel->node_count; k++) {
        const tl_node *n = l->kernel->nodes[k];
        for (int i = 0; i < n->input_count; i++)
            if (n->inputs[i] == v)
                return role_name(l, n, i);
    }
    return "x";
}

/* The place of a window in that of the whole. Returns the window's value. */
static const tl_value *look_at(const tl_node *window, tl_view *place)
{
    const int64_t *starts;
    int rank = tl_attr_ints(window, "starts", &starts);
    memcpy(place->start, starts, sizeof *starts * (size_t)rank);
    place->shape = window->outputs[0]->shape;
    return window->outputs[0];
}

static tl_status make_params(tl_lower *l, const tl_buffer **params, tl_diag *diag)
{
    const tl_kernel *kernel = l->kernel;
    for (int i = 0; i <= kernel->input_count; i++) {
        const tl_value *v = i < kernel->input_count ? kernel->inputs[i] : kernel->outputs[0];
        if (!tl_shape_is_static(&v->shape))
            return tl_fail(diag, TL_UNSUPPORTED, "value '%.200s' has no static shape", v->name);
        tl_role role = i == kernel->input_count ? TL_ROLE_OUTPUT
                       : v->data != NULL        ? TL_ROLE_CONST
                                                : TL_ROLE_INPUT;
        const tl_node *window = i < kernel->input_count ? kernel->windows[i] : NULL;
        const char *name = i == kernel->input_count ? "y"
                           : window != NULL         ? input_name(l, window->outputs[0])
                                                    : input_name(l, v);
        tl_view place = tl_lower_place(l, name, v->dtype, role, &v->shape, &v->layout);
        params[i] = place.buffer;
        if (window != NULL)
            v = look_at(window, &place);
        if (i == kernel->input_count)
            l->output = place;
        else
            l->values[l->value_count++] =
                (tl_lower_value){ .value = v, .has_place = true, .place = place, .cost = 1 };
    }
    return TL_OK;
}

/* An element of a value at any index. */
static const tl_expr *any_element(tl_lower *l, const tl_value *v)
{
    const tl_expr *index[TL_MAX_RANK];
    for (int i = 0; i < v->shape.rank; i++) {
        int64_t extent = v->shape.dims[i].extent;
        index[i] = tl_ref(l->arena, tl_var_make(l->arena, "i", 0, extent > 0 ? extent - 1 : 0));
    }
    return tl_lower_read(l, v, index);
}

/* Writes those of the node's inputs to locals that are expressions larger than `largest`. */
static void store_inputs(tl_lower *l, const tl_node *n, uint32_t largest)
{
    for (int i = 0; i < n->input_count; i++) {
        tl_lower_value *read = n->inputs[i] != NULL ? tl_lower_find(l, n->inputs[i]) : NULL;
        if (read == NULL || read->has_place || any_element(l, n->inputs[i])->size <= largest)
            continue;
        tl_lower_materialize(l, n->inputs[i]);
        read->cost = 1;
    }
}

/* Stores inputs until the node's value is an expression that others can be made of: the larger ones first. Each input is
 * one by itself, so that what is built to be asked is some of them together. */
static void bound_value(tl_lower *l, const tl_node *n)
{
    for (uint32_t largest = LARGEST_VALUE / 4; largest > 0; largest /= 4) {
        const tl_expr *e = any_element(l, n->outputs[0]);
        if (e->size <= LARGEST_VALUE && e->depth <= DEEPEST_VALUE)
            return;
        store_inputs(l, n, largest);
    }
}

/* Adds the node's value to what can be read, and emits its stages. */
static tl_status lower_node(tl_lower *l, const tl_node *n, const char *lowering, tl_diag *diag)
{
    const tl_lowering *row = tl_lowering_find(n->op, lowering);
    if (row == NULL)
        row = tl_lowering_find(n->op, NULL);
    if (row == NULL || n->output_count < 1 || n->outputs[0] == NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "node '%.200s' (%s) has no lowering", n->name,
                       tl_op_infos[n->op].text);
    if (tl_lower_find(l, n->outputs[0]) != NULL)
        return TL_OK; /* a window that is a parameter */
    int cost = 1, reads = tl_operators[n->op].reads;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL || tl_value_is_literal(v))
            continue;
        tl_lower_value *read = tl_lower_find(l, v);
        if (read == NULL)
            return tl_fail(diag, TL_INTERNAL,
                           "node '%.200s' reads '%.200s', which is not in its kernel", n->name,
                           v->name);
        if (!read->has_place && read->cost * reads > LARGEST_EXPRESSION) {
            tl_lower_materialize(l, v);
            read->cost = 1;
        }
        cost += read->cost * reads;
    }
    if (row->stages != tl_stages_none)
        store_inputs(l, n, LARGEST_STAGED);
    l->values[l->value_count++] =
        (tl_lower_value){ .value = n->outputs[0], .node = n, .lowering = row, .cost = cost };
    row->stages(l, n);
    bound_value(l, n);
    return TL_OK;
}

/* The nest that writes the output from the expression of the last value. */
static void write_output(tl_lower *l)
{
    const tl_value *v = l->kernel->outputs[0];
    tl_lower_value *state = tl_lower_find(l, v);
    if (state->has_place && state->place.buffer == l->output.buffer)
        return;
    const tl_expr *index[TL_MAX_RANK];
    tl_block_nest nest = tl_nest_begin(l, l->part.stmt_count > 0 ? "epilogue" : "map");
    tl_nest_over(&nest, &l->output, index);
    tl_nest_store(&nest, &l->output, index, tl_lower_read(l, v, index));
}

tl_status tl_kernel_program(tl_arena *arena, const tl_kernel *kernel, const char *lowering,
                            tl_program **out, tl_diag *diag)
{
    if (kernel->output_count != 1)
        return tl_fail(diag, TL_INTERNAL, "kernel %s has %d outputs, not one", kernel->name,
                       kernel->output_count);
    bool known = lowering == NULL;
    for (int i = 0; i < kernel->node_count && !known; i++)
        known = tl_lowering_find(kernel->nodes[i]->op, lowering) != NULL;
    if (!known)
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s has no lowering '%.80s'", kernel->name,
                       lowering);

    tl_lower *l = TL_NEW(arena, tl_lower);
    l->arena = arena;
    l->kernel = kernel;
    l->names = tl_map_create(arena);
    l->block_names = tl_map_create(arena);
    l->values = TL_NEW_ARRAY(arena, tl_lower_value, kernel->input_count + kernel->node_count);
    const tl_buffer **params = TL_NEW_ARRAY(arena, const tl_buffer *, kernel->input_count + 1);
    TL_TRY(make_params(l, params, diag));
    for (int i = 0; i < kernel->node_count; i++)
        TL_TRY(lower_node(l, kernel->nodes[i], lowering, diag));
    if (tl_lower_find(l, kernel->outputs[0]) == NULL)
        return tl_fail(diag, TL_INTERNAL, "kernel %s does not compute its output", kernel->name);
    if (!l->output_written)
        write_output(l);
    tl_lower_write_halo(l);

    tl_program *program = TL_NEW(arena, tl_program);
    program->name = tl_arena_strdup(arena, kernel->name);
    program->param_count = kernel->input_count + 1;
    program->params = params;
    program->body = tl_lower_close(l, &l->part);
    program->prepare = l->prepare;
    program->prepared_count = l->prepared_count;
    program->prepared = l->prepared;
    *out = program;
    return TL_OK;
}
