/* frontend/lower_attention.c: softmax(scale * Q K' + mask) V, heads side by side in the last axis.
 *
 *     scores   s[b, h, i, j] = sum over d of q[b, i, h*D + d] * k[b, j, h*D + d]
 *     masked   z[b, h, i, j] = scale*s + mask
 *     max      m[b, h, i]    = max over j of z
 *     exp      p[b, h, i, j] = exp(z - m)
 *     sum      l[b, h, i]    = sum over j of p
 *     attend   acc[b, i, h, e] = sum over j of p * v[b, j, h*E + e]
 *     value    acc * (1 / l)
 *
 * One division a row: the value is rounded once more than a quotient would be, by half an ulp at most. */
#include "frontend/lower.h"

typedef struct {
    int64_t batch, heads, rows, columns, depth, width;
} sizes;

static sizes sizes_of(const tl_node *n)
{
    const tl_shape *q = &n->inputs[0]->shape, *v = &n->inputs[2]->shape;
    int64_t heads = tl_attr_int(n, "heads", 1);
    return (sizes){ q->dims[0].extent,         heads,
                    q->dims[1].extent,         v->dims[1].extent,
                    q->dims[2].extent / heads, v->dims[2].extent / heads };
}

static const tl_expr *head_index(tl_arena *arena, const tl_expr *head, int64_t width,
                                 const tl_expr *inner)
{
    return tl_add(arena, tl_muli(arena, head, width), inner);
}

/* Iters over rows of scores and, of the given kind, along them. */
static void over_scores(tl_nest *nest, const sizes *z, tl_iter_kind along, const tl_expr *at[4])
{
    at[0] = tl_nest_iter(nest, TL_ITER_SPATIAL, "b", z->batch);
    at[1] = tl_nest_iter(nest, TL_ITER_SPATIAL, "h", z->heads);
    at[2] = tl_nest_iter(nest, TL_ITER_SPATIAL, "i", z->rows);
    at[3] = tl_nest_iter(nest, along, "j", z->columns);
}

void tl_stages_attention(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    sizes z = sizes_of(n);
    tl_dtype dtype = tl_accumulate_dtype(n->inputs[0]->dtype);
    tl_layout plain = tl_layout_plain();
    tl_shape matrix = tl_shape_of(4, (int64_t[]){ z.batch, z.heads, z.rows, z.columns });
    tl_shape row = tl_shape_of(3, (int64_t[]){ z.batch, z.heads, z.rows });
    tl_shape mixed = tl_shape_of(4, (int64_t[]){ z.batch, z.rows, z.heads, z.width });
    tl_place q = tl_lower_materialize(l, n->inputs[0]), k = tl_lower_materialize(l, n->inputs[1]);
    tl_place v = tl_lower_materialize(l, n->inputs[2]);
    tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *at[4], *left[3], *right[3];
    static const char *const axes[3] = { "b", "i", "c" };
    tl_lower_name_axes(l, 3, axes, "lane");
    tl_lower_split_last_axis(l, "h", "e", z.width);

    tl_place scores = tl_lower_local(l, "s", dtype, &matrix, &plain);
    tl_nest nest = tl_nest_begin(l, "scores");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    const tl_expr *d = tl_nest_iter(&nest, TL_ITER_REDUCE, "d", z.depth);
    left[0] = right[0] = at[0];
    left[1] = at[2];
    right[1] = at[3];
    left[2] = right[2] = head_index(arena, at[1], z.depth, d);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &scores, at,
                   tl_mul(arena, tl_cast(arena, dtype, tl_place_load(l, &q, left)),
                          tl_cast(arena, dtype, tl_place_load(l, &k, right))));

    tl_place masked = tl_lower_local(l, "z", dtype, &matrix, &plain);
    nest = tl_nest_begin(l, "masked");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    const tl_expr *score = tl_place_load(l, &scores, at);
    double scale = tl_attr_float(n, "scale", 1);
    if (scale != 1)
        score = tl_mul(arena, score, tl_float(arena, dtype, scale));
    if (n->input_count > 3 && n->inputs[3] != NULL)
        score = tl_add(arena, score,
                       tl_cast(arena, dtype, tl_lower_read_broadcast(l, n->inputs[3], 4, at)));
    tl_nest_store(&nest, &masked, at, score);

    tl_place most = tl_lower_local(l, "m", dtype, &row, &plain);
    nest = tl_nest_begin(l, "max");
    over_scores(&nest, &z, TL_ITER_REDUCE, at);
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &most, at, tl_place_load(l, &masked, at));

    tl_place power = tl_lower_local(l, "p", dtype, &matrix, &plain);
    nest = tl_nest_begin(l, "exp");
    over_scores(&nest, &z, TL_ITER_SPATIAL, at);
    tl_nest_store(&nest, &power, at,
                  tl_call1(arena, TL_FUNCTION_EXP,
                           tl_sub(arena, tl_place_load(l, &masked, at),
                                  tl_place_load(l, &most, at))));

    tl_place sum = tl_lower_local(l, "l", dtype, &row, &plain);
    nest = tl_nest_begin(l, "sum");
    over_scores(&nest, &z, TL_ITER_REDUCE, at);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &sum, at, tl_place_load(l, &power, at));

    tl_place acc = tl_lower_local(l, "acc", dtype, &mixed, &plain);
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
    right[0] = to[0];
    right[1] = at[3];
    right[2] = head_index(arena, to[2], z.width, to[3]);
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &acc, to,
                   tl_mul(arena, tl_place_load(l, &power, at),
                          tl_cast(arena, dtype, tl_place_load(l, &v, right))));
    locals->place[0] = acc;
    locals->place[1] = sum;
}

const tl_expr *tl_value_attention(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *width = tl_int(arena, sizes_of(n).width);
    const tl_expr *head = tl_floordiv_expr(arena, index[2], width);
    const tl_expr *from[4] = { index[0], index[1], head, tl_floormod_expr(arena, index[2], width) };
    const tl_expr *row[3] = { index[0], head, index[1] };
    const tl_expr *sum = tl_place_load(l, &locals->place[1], row);
    const tl_expr *value = tl_mul(arena, tl_place_load(l, &locals->place[0], from),
                                  tl_div(arena, tl_float(arena, sum->dtype, 1), sum));
    return tl_cast(arena, n->outputs[0]->dtype, value);
}
