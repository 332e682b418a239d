/* frontend/node/fold_node.c: evaluates one node through its naive program and the interpreter, so that folding and
 * running can never disagree. Only what needs no arithmetic (Shape, Reshape, Cast) is done here, at any size. */
#include "frontend/node/fold_node.h"
#include "frontend/lower/lower.h"
#include "frontend/operators.h"
#include "frontend/value_notes.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/float_mode.h"

enum { LARGEST_WORK = 1 << 22 }; /* multiplications and additions that the interpreter may do */

/* Elements read of a reduction or product; 0 for operators that read one element for one. */
static int64_t work_of(const tl_node *n, int64_t outputs)
{
    int64_t inputs = 0;
    for (int i = 0; i < n->input_count; i++)
        inputs += n->inputs[i] != NULL ? tl_shape_elements(&n->inputs[i]->shape) : 0;
    switch (tl_operators[n->op].kind) {
    case TL_KIND_ELEMENTWISE:
    case TL_KIND_LAYOUT:
    case TL_KIND_VANISHING:
    case TL_KIND_CONTROL:
        return 0;
    case TL_KIND_REDUCTION:
    case TL_KIND_NORM:
    case TL_KIND_POOL:
        return inputs;
    case TL_KIND_CONTRACTION:
        break;
    }
    return inputs > LARGEST_WORK ? inputs : inputs * (outputs > 0 ? outputs : 1);
}

bool tl_node_may_decide_shapes(const tl_node *n)
{
    for (int i = 0; i < n->output_count; i++) {
        const tl_value *v = n->outputs[i];
        if (v != NULL && tl_dtype_is_float(v->dtype) && tl_shape_elements(&v->shape) > 64)
            return false;
    }
    return true;
}

/* Whether the graph lets one result of the node become a constant, which it is not. */
static bool may_fold(const tl_graph *g, const tl_node *n)
{
    return !(g->kept != NULL && tl_map_has(g->kept, n->name)) && !n->dead &&
           tl_operators[n->op].fold != TL_FOLDS_NEVER && n->output_count == 1 &&
           n->outputs[0] != NULL && n->outputs[0]->data == NULL;
}

bool tl_node_folds_within(const tl_graph *g, const tl_node *n, int64_t most)
{
    if (!may_fold(g, n))
        return false;
    const tl_value *y = n->outputs[0];
    int64_t elements = tl_shape_elements(&y->shape);
    return y->dtype_known && elements >= 0 && elements <= most &&
           work_of(n, elements) <= LARGEST_WORK;
}

bool tl_node_is_foldable(const tl_graph *g, const tl_node *n)
{
    if (!may_fold(g, n))
        return false;
    const tl_value *y = n->outputs[0];
    tl_operator_folds folds = tl_operators[n->op].fold;
    if ((folds == TL_FOLDS_BYTES || folds == TL_FOLDS_CAST) && n->inputs[0]->data != NULL)
        return !(n->op == TL_OP_IDENTITY && y->is_output); /* what folding leaves there */
    if (!tl_node_folds_within(g, n, TL_FOLD_ELEMENTS))
        return false;
    if (folds == TL_FOLDS_EXTENTS)
        return true;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] != NULL && n->inputs[i]->data == NULL)
            return false;
    return true;
}

static tl_status interpret_node(tl_arena *scratch, tl_node *n, void *data, tl_diag *diag)
{
    tl_value **inputs = TL_NEW_ARRAY(scratch, tl_value *, n->input_count);
    tl_kernel kernel = { .name = "fold",
                         .family = "fold",
                         .node_count = 1,
                         .nodes = &n,
                         .inputs = inputs,
                         .output_count = 1,
                         .outputs = n->outputs };
    tl_kernel_inputs(&kernel, inputs, TL_NEW_ARRAY(scratch, const tl_node *, n->input_count));
    tl_program *program;
    TL_TRY(tl_kernel_program(scratch, &kernel, NULL, &program, diag));
    tl_argument *arguments = TL_NEW_ARRAY(scratch, tl_argument, program->param_count);
    for (int i = 0; i < program->param_count; i++) {
        arguments[i].buffer = program->params[i];
        arguments[i].data = i < kernel.input_count ? (void *)(uintptr_t)inputs[i]->data : data;
    }
    return tl_interpret(program, arguments, program->param_count, NULL, NULL, diag);
}

static tl_status evaluate(tl_node *n, void *data, tl_diag *diag)
{
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(scratch);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while folding node '%.200s'", n->name);
    }
    tl_status status = interpret_node(scratch, n, data, diag);
    tl_arena_destroy(scratch);
    if (status == TL_BAD_IR)
        status = TL_BAD_MODEL; /* an index out of range, in the model's own constants */
    if (status != TL_OK)
        tl_context(diag, "folding node '%.200s' (%s)", n->name, tl_op_infos[n->op].text);
    return status;
}

static void cast_all(const tl_value *x, tl_value *y, void *data)
{
    int64_t elements = tl_shape_elements(&y->shape);
    uint64_t mode = tl_float_mode_enter(); /* as the interpreter */
    for (int64_t i = 0; i < elements; i++)
        tl_number_store(y->dtype, data, (size_t)i,
                        tl_number_cast(y->dtype, x->dtype,
                                       tl_number_load(x->dtype, x->data, (size_t)i)));
    tl_float_mode_leave(mode);
}

tl_status tl_node_value(tl_graph *g, tl_node *n, const void **out, tl_diag *diag)
{
    tl_value *x = n->input_count > 0 ? n->inputs[0] : NULL, *y = n->outputs[0];
    int64_t elements = tl_shape_elements(&y->shape), start = tl_attr_int(n, "start", 0);
    tl_operator_folds folds = tl_operators[n->op].fold;
    if (folds == TL_FOLDS_BYTES) {
        *out = x->data;
        return TL_OK;
    }
    void *data = tl_arena_alloc(g->arena, (size_t)tl_storage_bytes(y->dtype, elements), 64);
    *out = data;
    if (folds == TL_FOLDS_PROGRAM)
        return elements > 0 ? evaluate(n, data, diag) : TL_OK;
    if (folds == TL_FOLDS_CAST) {
        cast_all(x, y, data);
        tl_graph_rest(g, x);
    }
    for (int64_t i = 0; folds == TL_FOLDS_EXTENTS && i < elements; i++)
        tl_number_store(TL_I64, data, (size_t)i,
                        (tl_number){ .i = x->shape.dims[start + i].extent });
    return TL_OK;
}

tl_status tl_fold_node(tl_graph *g, tl_node *n, tl_diag *diag)
{
    tl_value *y = n->outputs[0];
    const void *data;
    TL_TRY(tl_node_value(g, n, &data, diag));
    if (!y->is_output) {
        tl_notes_make(g, y)->folded = n->name;
        y->data = data;
        y->producer = NULL;
        tl_node_kill(n);
        return TL_OK;
    }
    tl_value *constant = tl_graph_constant(g, tl_arena_format(g->arena, "%s.folded", y->name),
                                           y->dtype, &y->shape, data);
    tl_notes_make(g, constant)->folded = n->name;
    n->op = TL_OP_IDENTITY;
    n->attr_count = 0;
    tl_node_keep_inputs(n, 1);
    tl_node_set_input(n, 0, constant);
    return TL_OK;
}
