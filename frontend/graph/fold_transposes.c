/* frontend/graph/fold_transposes.c: transposed constants are written out in their new order, whatever their size.
 *
 *     Transpose(const)               ->  const
 *     Gemm(a, const) {transB = 1}    ->  Gemm(a, const')            (transA alike) */
#include "frontend/graph/graph_passes.h"
#include <string.h>
#include "frontend/node/graph_questions.h"

/* `from`'s elements with axis i of the result being axis perm[i]. */
static void *transpose(tl_graph *g, const tl_value *from, const int64_t *perm)
{
    size_t size = tl_dtype_size(from->dtype);
    int rank = from->shape.rank;
    int64_t count = tl_shape_elements(&from->shape), stride[TL_MAX_RANK], step[TL_MAX_RANK],
            extent[TL_MAX_RANK], index[TL_MAX_RANK] = { 0 };
    char *data = tl_arena_alloc(g->arena, (size_t)count * size, 64);
    for (int i = rank - 1, s = 1; i >= 0; i--, s = 1) {
        stride[i] = s;
        for (int k = i + 1; k < rank; k++)
            stride[i] *= from->shape.dims[k].extent;
    }
    for (int i = 0; i < rank; i++) {
        step[i] = stride[perm[i]];
        extent[i] = from->shape.dims[perm[i]].extent;
    }
    int64_t at = 0;
    for (int64_t e = 0; e < count; e++) {
        memcpy(data + (size_t)e * size, (const char *)from->data + (size_t)at * size, size);
        for (int i = rank - 1; i >= 0; i--) {
            at += step[i];
            if (++index[i] < extent[i])
                break;
            at -= step[i] * extent[i];
            index[i] = 0;
        }
    }
    tl_graph_rest(g, from);
    return data;
}

static void fold_transpose(tl_graph *g, tl_node *n)
{
    const int64_t *perm;
    tl_value *x = n->inputs[0], *y = n->outputs[0];
    if (x->data == NULL || y->is_output)
        return;
    tl_attr_ints(n, "perm", &perm);
    y->data = transpose(g, x, perm);
    y->producer = NULL;
    tl_node_kill(n);
}

static void fold_operand(tl_graph *g, tl_node *gemm, int input, const char *attribute)
{
    static const int64_t swap[2] = { 1, 0 };
    const tl_value *x = gemm->inputs[input];
    if (tl_attr_int(gemm, attribute, 0) == 0 || x->data == NULL)
        return;
    tl_shape shape =
        tl_shape_of(2, (int64_t[]){ x->shape.dims[1].extent, x->shape.dims[0].extent });
    tl_value *y = tl_graph_constant(g, tl_arena_format(g->arena, "%s.transposed", x->name),
                                    x->dtype, &shape, transpose(g, x, swap));
    tl_node_set_input(gemm, input, y);
    tl_attr_set_int(g, gemm, attribute, 0);
}

tl_status tl_fold_transposes(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->dead)
            continue;
        if (n->op == TL_OP_TRANSPOSE)
            fold_transpose(g, n);
        if (n->op == TL_OP_GEMM) {
            fold_operand(g, n, 0, "transA");
            fold_operand(g, n, 1, "transB");
        }
    }
    return TL_OK;
}
