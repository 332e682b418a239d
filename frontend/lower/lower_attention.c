/* frontend/lower/lower_attention.c: softmax(scale * Q K' + mask) V, heads side by side in the last axis.
 *
 *     scores   s[b, h, i, j] = sum over d of q[b, i, h*D + d] * k[b, j, h*D + d]
 *     masked   z[b, h, i, j] = scale*s + mask
 *     max      m[b, h, i]    = max over j of z
 *     exp      p[b, h, i, j] = exp(z - m)
 *     sum      l[b, h, i]    = sum over j of p
 *     attend   acc[b, i, h, e] = sum over j of p * v[b, j, h*E + e]
 *     value    acc * (1 / l)
 *
 * One division a row: the value is rounded once more than a quotient would be, by half an ulp at most.
 *
 * As `halves`, p is of the operands' dtype, f16 or bf16, as tensor cores take it, and l the sum of what was rounded: a mean of
 * values with weights that are each off by half an ulp, as the value's own rounding is. Together that is twice the error. */
#include "frontend/lower/attention.h"

tl_attention_sizes tl_attention_sizes_of(const tl_node *n)
{
    const tl_shape *q = &n->inputs[0]->shape, *v = &n->inputs[2]->shape;
    int64_t heads = tl_attr_int(n, "heads", 1);
    return (tl_attention_sizes){ q->dims[0].extent,         heads,
                                 q->dims[1].extent,         v->dims[1].extent,
                                 q->dims[2].extent / heads, v->dims[2].extent / heads };
}

void tl_attention_name_axes(tl_lower *l, const tl_attention_sizes *z)
{
    static const char *const axes[3] = { "b", "i", "c" };
    tl_lower_name_axes(l, 3, axes, "lane");
    tl_lower_split_last_axis(l, "h", "e", z->width);
}

static const tl_expr *head_index(tl_arena *arena, const tl_expr *head, int64_t width,
                                 const tl_expr *inner)
{
    return tl_add(arena, tl_muli(arena, head, width), inner);
}

/* An element of an operand with the heads side by side. */
static const tl_expr *read(tl_lower *l, const tl_value *v, const tl_expr *b, const tl_expr *row,
                           const tl_expr *head, int64_t width, const tl_expr *inner)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *at[3] = { b, row, head_index(arena, head, width, inner) };
    return tl_cast(arena, tl_accumulate_dtype(v->dtype), tl_lower_read(l, v, at));
}

const tl_expr *tl_attention_score(tl_lower *l, const tl_node *n, tl_index at, const tl_expr *d)
{
    int64_t depth = tl_attention_sizes_of(n).depth;
    return tl_mul(tl_lower_arena(l), read(l, n->inputs[0], at[0], at[2], at[1], depth, d),
                  read(l, n->inputs[1], at[0], at[3], at[1], depth, d));
}

const tl_expr *tl_attention_masked(tl_lower *l, const tl_node *n, tl_index at, const tl_expr *score)
{
    tl_arena *arena = tl_lower_arena(l);
    double scale = tl_attr_float(n, "scale", 1);
    if (scale != 1)
        score = tl_mul(arena, score, tl_float(arena, score->dtype, scale));
    if (n->input_count > 3 && n->inputs[3] != NULL)
        score =
            tl_add(arena, score,
                   tl_cast(arena, score->dtype, tl_lower_read_broadcast(l, n->inputs[3], 4, at)));
    return score;
}

const tl_expr *tl_attention_weight(tl_lower *l, const tl_node *n, const tl_expr *b,
                                   const tl_expr *key, const tl_expr *head, const tl_expr *e)
{
    return read(l, n->inputs[2], b, key, head, tl_attention_sizes_of(n).width, e);
}

/* Iters over rows of scores and, of the given kind, along them. */
static void over_scores(tl_block_nest *nest, const tl_attention_sizes *z, tl_iter_kind along,
                        const tl_expr *at[4])
{
    at[0] = tl_nest_iter(nest, TL_ITER_SPATIAL, "b", z->batch);
    at[1] = tl_nest_iter(nest, TL_ITER_SPATIAL, "h", z->heads);
    at[2] = tl_nest_iter(nest, TL_ITER_SPATIAL, "i", z->rows);
    at[3] = tl_nest_iter(nest, along, "j", z->columns);
}

/* p in dtype `held`. */
static void add_stages(tl_lower *l, const tl_node *n, tl_dtype held)
{
    tl_arena *arena = tl_lower_arena(l);
    tl_attention_sizes z = tl_attention_sizes_of(n);
    tl_dtype dtype = tl_accumulate_dtype(n->inputs[0]->dtype);
    tl_layout plain = tl_layout_plain();
    tl_shape matrix = tl_shape_of(4, (int64_t[]){ z.batch, z.heads, z.rows, z.columns });
    tl_shape row = tl_shape_of(3, (int64_t[]){ z.batch, z.heads, z.rows });
    tl_shape mixed = tl_shape_of(4, (int64_t[]){ z.batch, z.rows, z.heads, z.width });
    for (int i = 0; i < 3; i++)
        tl_lower_materialize(l, n->inputs[i]);
    tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *at[4];
    tl_attention_name_axes(l, &z);

    tl_view scores = tl_lower_local(l, "s", dtype, &matrix, &plain);
    tl_block_nest nest = tl_nest_begin(l, "scores");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    const tl_expr *d = tl_nest_iter(&nest, TL_ITER_REDUCE, "d", z.depth);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &scores, at, tl_attention_score(l, n, at, d));

    tl_view masked = tl_lower_local(l, "z", dtype, &matrix, &plain);
    nest = tl_nest_begin(l, "masked");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    tl_nest_store(&nest, &masked, at, tl_attention_masked(l, n, at, tl_view_load(l, &scores, at)));

    tl_view most = tl_lower_local(l, "m", dtype, &row, &plain);
    nest = tl_nest_begin(l, "max");
    over_scores(&nest, &z, TL_ITER_REDUCE, at);
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &most, at, tl_view_load(l, &masked, at));

    tl_view power = tl_lower_local(l, "p", held, &matrix, &plain);
    nest = tl_nest_begin(l, "exp");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    const tl_expr *below = tl_sub(arena, tl_view_load(l, &masked, at), tl_view_load(l, &most, at));
    tl_nest_store(&nest, &power, at, tl_cast(arena, held, tl_call1(arena, TL_FUNCTION_EXP, below)));

    tl_view sum = tl_lower_local(l, "l", dtype, &row, &plain);
    nest = tl_nest_begin(l, "sum");
    over_scores(&nest, &z, TL_ITER_REDUCE, at);
    tl_nest_sum(&nest, &sum, at, tl_cast(arena, dtype, tl_view_load(l, &power, at)));

    tl_view acc = tl_lower_local(l, "acc", dtype, &mixed, &plain);
    nest = tl_nest_begin(l, "attend");
    const tl_expr *to[4];
    to[0] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "b", z.batch);
    to[1] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "i", z.rows);
    to[2] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "h", z.heads);
    to[3] = tl_nest_iter(&nest, TL_ITER_SPATIAL, "e", z.width);
    at[0] = to[0];
    at[1] = to[2];
    at[2] = to[1];
    at[3] = tl_nest_iter(&nest, TL_ITER_REDUCE, "j", z.columns);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &acc, to,
                   tl_mul(arena, tl_cast(arena, dtype, tl_view_load(l, &power, at)),
                          tl_attention_weight(l, n, to[0], at[3], to[2], to[3])));
    locals->place[0] = acc;
    locals->place[1] = sum;
}

void tl_stages_attention(tl_lower *l, const tl_node *n)
{
    add_stages(l, n, tl_accumulate_dtype(n->inputs[0]->dtype));
}

bool tl_lowers_halves(const tl_node *n)
{
    tl_dtype dtype = n->inputs[0]->dtype;
    return n->op == TL_OP_ATTENTION && (dtype == TL_F16 || dtype == TL_BF16) &&
           n->inputs[1]->dtype == dtype && n->inputs[2]->dtype == dtype;
}

void tl_stages_halves(tl_lower *l, const tl_node *n)
{
    add_stages(l, n, n->inputs[0]->dtype);
}

const tl_expr *tl_attention_value(tl_lower *l, const tl_node *n, tl_index element, tl_index row)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *sum = tl_view_load(l, &locals->place[1], row);
    const tl_expr *value = tl_mul(arena, tl_view_load(l, &locals->place[0], element),
                                  tl_div(arena, tl_float(arena, sum->dtype, 1), sum));
    return tl_cast(arena, n->outputs[0]->dtype, value);
}

const tl_expr *tl_value_attention(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *width = tl_int(arena, tl_attention_sizes_of(n).width);
    const tl_expr *head = tl_floordiv_expr(arena, index[2], width);
    const tl_expr *row[3] = { index[0], head, index[1] };
    const tl_expr *element[4] = { index[0], index[1], head,
                                  tl_floormod_expr(arena, index[2], width) };
    return tl_attention_value(l, n, element, row);
}
