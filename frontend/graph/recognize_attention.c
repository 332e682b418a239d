/* frontend/graph/recognize_attention.c: attention with its heads split and merged.
 *
 *     heads(t) = Transpose(Reshape(t, [B, S, H, D]), [0, 2, 1, 3])
 *     p = Softmax(MatMul(heads(q), heads(k)') * scale + mask)
 *     Reshape(Transpose(MatMul(p, heads(v)), [0, 2, 1, 3]), [B, S, H*D])
 *         ->  Attention(q, k, v, mask) {heads = H, scale}
 *
 * The canonical operands keep the heads side by side in the last axis, as the projections before and after it
 * write and read them, so that splitting and merging costs nothing. The scale may be a product or a quotient, behind
 * the first MatMul or on its operands; the mask is anything that broadcasts to [B, H, S, T]. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

static bool has_perm(const tl_node *n, int a, int b, int c, int d)
{
    const int64_t *perm;
    return n != NULL && tl_attr_ints(n, "perm", &perm) == 4 && perm[0] == a && perm[1] == b &&
           perm[2] == c && perm[3] == d;
}

/* v with uniform factors taken off and multiplied into *scale. */
static tl_value *unscaled(tl_value *v, double *scale)
{
    for (int i = 0; i < 8; i++) {
        tl_node *mul = tl_producer(v, TL_OP_MUL), *div = tl_producer(v, TL_OP_DIV);
        double number;
        if (div != NULL && tl_uniform(div->inputs[1], &number) && number != 0 &&
            tl_same_shape(div->inputs[0], v)) {
            *scale /= number;
            v = div->inputs[0];
        } else if (mul != NULL && tl_uniform(mul->inputs[1], &number) &&
                   tl_same_shape(mul->inputs[0], v)) {
            *scale *= number;
            v = mul->inputs[0];
        } else if (mul != NULL && tl_uniform(mul->inputs[0], &number) &&
                   tl_same_shape(mul->inputs[1], v)) {
            *scale *= number;
            v = mul->inputs[1];
        } else {
            break;
        }
    }
    return v;
}

/* [B, S, H*D] of [B, S, H, D]: from before the Reshape that split it where there is one, else by a new Reshape. */
static tl_value *merged(tl_graph *g, tl_value *split)
{
    const tl_dim *d = split->shape.dims;
    int64_t extents[3] = { d[0].extent, d[1].extent, d[2].extent * d[3].extent };
    tl_shape shape = tl_shape_of(3, extents);
    tl_node *reshape = tl_producer(split, TL_OP_RESHAPE);
    if (reshape != NULL && tl_shape_equal(&reshape->inputs[0]->shape, &shape))
        return reshape->inputs[0];
    tl_value *y = tl_graph_value(g, tl_arena_format(g->arena, "%s.merged", split->name),
                                 split->dtype, &shape);
    tl_node *n = tl_graph_node(g, TL_OP_RESHAPE, y->name, 1, &split, 1, &y);
    tl_attr_set_ints(g, n, "shape", extents, 3);
    return y;
}

/* s = product [+ mask], product = scale * MatMul(..): the MatMul, or NULL. */
static tl_node *scores_of(tl_value *s, double *scale, tl_value **mask)
{
    *mask = NULL;
    *scale = 1;
    tl_node *product = tl_producer(unscaled(s, scale), TL_OP_MATMUL);
    tl_node *add = tl_producer(s, TL_OP_ADD);
    for (int i = 0; product == NULL && add != NULL && i < 2; i++) {
        *scale = 1;
        *mask = add->inputs[1 - i];
        product = tl_producer(unscaled(add->inputs[i], scale), TL_OP_MATMUL);
    }
    return product;
}

static bool mask_fits(const tl_value *mask, const tl_value *scores)
{
    if (mask == NULL)
        return true;
    if (mask->shape.rank > 4 || mask->dtype != scores->dtype)
        return false;
    for (int i = 1; i <= mask->shape.rank; i++) {
        int64_t e = mask->shape.dims[mask->shape.rank - i].extent;
        if (e != 1 && e != scores->shape.dims[4 - i].extent)
            return false;
    }
    return true;
}

/* Puts the node in place of what follows `mix` = MatMul(p, v): its head merge. */
static void replace(tl_graph *g, tl_node *mix, tl_node *merge, tl_value *const *inputs,
                    int input_count, int64_t heads, double scale)
{
    tl_value *split = merge->outputs[0]; /* [B, S, H, D] */
    const tl_dim *d = split->shape.dims;
    int64_t extents[3] = { d[0].extent, d[1].extent, d[2].extent * d[3].extent };
    tl_shape shape = tl_shape_of(3, extents);
    tl_node *reshape = tl_sole_user(split, TL_OP_RESHAPE), *attention;
    if (reshape != NULL && tl_shape_equal(&reshape->outputs[0]->shape, &shape)) {
        attention = tl_replace_node(g, reshape->outputs[0], TL_OP_ATTENTION, input_count, inputs);
    } else {
        tl_value *y = tl_graph_value(g, tl_arena_format(g->arena, "%s.heads", split->name),
                                     split->dtype, &shape);
        attention = tl_graph_node(g, TL_OP_ATTENTION, mix->name, input_count, inputs, 1, &y);
        int64_t back[4] = { d[0].extent, d[1].extent, d[2].extent, d[3].extent };
        tl_node *n = tl_replace_node(g, split, TL_OP_RESHAPE, 1, &y);
        tl_attr_set_ints(g, n, "shape", back, 4);
    }
    tl_attr_set_int(g, attention, "heads", heads);
    tl_attr_set_float(g, attention, "scale", scale);
}

static void recognize(tl_graph *g, tl_node *mix)
{
    tl_value *mask, *s;
    double scale;
    tl_node *merge = tl_sole_user(mix->outputs[0], TL_OP_TRANSPOSE);
    tl_node *softmax = tl_sole_producer(mix->inputs[0], TL_OP_SOFTMAX);
    if (!has_perm(merge, 0, 2, 1, 3) || softmax == NULL || tl_attr_int(softmax, "axis", -1) != 3)
        return;
    s = softmax->inputs[0];
    tl_node *product = scores_of(s, &scale, &mask);
    if (product == NULL || s->shape.rank != 4 || !tl_same_shape(product->outputs[0], s) ||
        !mask_fits(mask, s))
        return;
    tl_node *q = tl_producer(unscaled(product->inputs[0], &scale), TL_OP_TRANSPOSE);
    tl_node *k = tl_producer(unscaled(product->inputs[1], &scale), TL_OP_TRANSPOSE);
    tl_node *v = tl_producer(mix->inputs[1], TL_OP_TRANSPOSE);
    if (!has_perm(q, 0, 2, 1, 3) || !has_perm(k, 0, 2, 3, 1) || !has_perm(v, 0, 2, 1, 3))
        return;
    const tl_dim *dq = q->inputs[0]->shape.dims, *dk = k->inputs[0]->shape.dims,
                 *dv = v->inputs[0]->shape.dims;
    if (dq[0].extent != dk[0].extent || dq[2].extent != dk[2].extent ||
        dq[0].extent != dv[0].extent || dq[2].extent != dv[2].extent)
        return; /* heads or batch broadcast */
    tl_value *inputs[4] = { merged(g, q->inputs[0]), merged(g, k->inputs[0]),
                            merged(g, v->inputs[0]), mask };
    replace(g, mix, merge, inputs, mask != NULL ? 4 : 3, dq[2].extent, scale);
}

tl_status tl_recognize_attention(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == TL_OP_MATMUL)
            recognize(g, g->nodes[i]);
    return TL_OK;
}
