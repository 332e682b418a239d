/* frontend/lower/lower_gemm.c: MatMul and Gemm: block `gemm` with spatial b0.. (batch axes), m, n and reduce k.
 *
 *     acc[b.., m, n] = sum over k of a[b.., m, k] * b[b.., k, n]        value: alpha*acc + beta*c */
#include "frontend/lower/lower.h"
#include "ir/expr/index.h"

/* The index of an operand: its batch axes broadcast from `batch`, then row and column (NULL: it has no such axis). */
static void operand_index(tl_arena *arena, const tl_value *v, int batch_rank, tl_index batch,
                          const tl_expr *row, const tl_expr *column,
                          const tl_expr *out[TL_MAX_RANK])
{
    int own = v->shape.rank - (row != NULL) - (column != NULL);
    for (int i = 0; i < own; i++) {
        const tl_expr *e = batch[batch_rank - own + i];
        bool broadcasts = v->shape.dims[i].extent == 1 && tl_expr_range(e).max != 0;
        out[i] = broadcasts ? tl_int(arena, 0) : e;
    }
    if (row != NULL)
        out[own++] = row;
    if (column != NULL)
        out[own] = column;
}

void tl_stages_gemm(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *a = n->inputs[0], *b = n->inputs[1], *y = n->outputs[0];
    bool ta = n->op == TL_OP_GEMM && tl_attr_int(n, "transA", 0) != 0;
    bool tb = n->op == TL_OP_GEMM && tl_attr_int(n, "transB", 0) != 0;
    bool has_m = a->shape.rank > 1, has_n = b->shape.rank > 1;
    int batch_rank = y->shape.rank - has_m - has_n;
    int64_t inner = a->shape.dims[ta ? 0 : a->shape.rank - 1].extent;
    tl_dtype dtype = tl_accumulate_dtype(a->dtype);

    static const char *const batch_names[] = { "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7" };
    const char *names[TL_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < batch_rank; i++)
        names[rank++] = batch_names[i];
    if (has_m)
        names[rank++] = "m";
    if (has_n)
        names[rank++] = "n";
    tl_lower_name_axes(l, rank, names, "lane");

    bool bare = n->op == TL_OP_MATMUL ||
                (tl_attr_float(n, "alpha", 1) == 1 && (n->input_count < 3 || n->inputs[2] == NULL));
    tl_view pa = tl_lower_materialize(l, a), pb = tl_lower_materialize(l, b);
    tl_view acc = tl_lower_accumulator(l, n, dtype, bare);
    tl_block_nest nest = tl_nest_begin(l, "gemm");
    const tl_expr *out[TL_MAX_RANK], *left[TL_MAX_RANK], *right[TL_MAX_RANK];
    tl_nest_over(&nest, &acc, out);
    const tl_expr *k = tl_nest_iter(&nest, TL_ITER_REDUCE, "k", inner);
    const tl_expr *row = has_m ? out[batch_rank] : NULL;
    const tl_expr *column = has_n ? out[batch_rank + has_m] : NULL;
    operand_index(arena, a, batch_rank, out, ta ? k : row, ta ? row : k, left);
    operand_index(arena, b, batch_rank, out, tb ? column : k, tb ? k : column, right);
    const tl_expr *product = tl_mul(arena, tl_cast(arena, dtype, tl_view_load(l, &pa, left)),
                                    tl_cast(arena, dtype, tl_view_load(l, &pb, right)));
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &acc, out, product);
    tl_lower_locals(l, n)->place[0] = acc;
}

const tl_expr *tl_value_gemm(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *value = tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
    double alpha = tl_attr_float(n, "alpha", 1), beta = tl_attr_float(n, "beta", 1);
    if (n->op == TL_OP_GEMM && alpha != 1)
        value = tl_mul(arena, value, tl_constant(arena, value->dtype, alpha));
    if (n->op == TL_OP_GEMM && n->input_count > 2 && n->inputs[2] != NULL) {
        const tl_expr *c =
            tl_cast(arena, value->dtype, tl_lower_read_broadcast(l, n->inputs[2], 2, index));
        if (beta != 1)
            c = tl_mul(arena, c, tl_constant(arena, value->dtype, beta));
        value = tl_add(arena, value, c);
    }
    return tl_cast(arena, n->outputs[0]->dtype, value);
}
