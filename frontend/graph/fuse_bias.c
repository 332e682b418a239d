/* frontend/graph/fuse_bias.c: an addition behind a product becomes its operand.
 *
 *     Add(MatMul(a[M, K], b[K, N]), c)  ->  Gemm(a, b, c)            c constant, broadcasting to [M, N]
 *     Add(Conv(x, w), c)                ->  Conv(x, w, c)            c constant, one number a channel */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

static bool fits_product(const tl_value *c, const tl_value *product)
{
    if (product->shape.rank != 2 || c->shape.rank > 2 || c->data == NULL)
        return false;
    for (int i = 1; i <= c->shape.rank; i++) {
        int64_t e = c->shape.dims[c->shape.rank - i].extent;
        if (e != 1 && e != product->shape.dims[2 - i].extent)
            return false;
    }
    return true;
}

/* [C, 1, 1], [1, C, 1, 1]: only the channel axis counts. */
static bool is_channel_vector(const tl_value *c, const tl_value *y)
{
    int rank = y->shape.rank, own = c->shape.rank;
    if (c->data == NULL || own > rank || own < rank - 1)
        return false;
    for (int i = 0; i < own; i++) {
        int axis = rank - own + i;
        int64_t e = c->shape.dims[i].extent;
        if (axis == 1 ? e != y->shape.dims[1].extent : e != 1)
            return false;
    }
    return true;
}

static void fuse(tl_graph *g, tl_node *add)
{
    for (int i = 0; i < 2; i++) {
        tl_value *product = add->inputs[i], *c = add->inputs[1 - i];
        tl_node *matmul = tl_sole_producer(product, TL_OP_MATMUL);
        tl_node *conv = tl_sole_producer(product, TL_OP_CONV);
        if (matmul != NULL && fits_product(c, product) && matmul->inputs[0]->shape.rank == 2 &&
            matmul->inputs[1]->shape.rank == 2) {
            tl_value *inputs[3] = { matmul->inputs[0], matmul->inputs[1], c };
            tl_replace_node(g, add->outputs[0], TL_OP_GEMM, 3, inputs)->name = matmul->name;
            tl_node_kill(matmul);
            return;
        }
        if (conv != NULL && (conv->input_count < 3 || conv->inputs[2] == NULL) &&
            is_channel_vector(c, product)) {
            tl_shape vector = tl_shape_of(1, &product->shape.dims[1].extent);
            tl_value *bias = tl_graph_constant(g, tl_arena_format(g->arena, "%s.bias", c->name),
                                               c->dtype, &vector, c->data);
            tl_value *inputs[3] = { conv->inputs[0], conv->inputs[1], bias };
            tl_node *both = tl_replace_node(g, add->outputs[0], TL_OP_CONV, 3, inputs);
            both->attrs = conv->attrs;
            both->attr_count = conv->attr_count;
            both->name = conv->name;
            tl_node_kill(conv);
            return;
        }
    }
}

tl_status tl_fuse_bias(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == TL_OP_ADD)
            fuse(g, g->nodes[i]);
    return TL_OK;
}
