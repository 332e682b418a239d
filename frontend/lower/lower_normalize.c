/* frontend/lower/lower_normalize.c: Softmax and LayerNormalization: reductions over rows, then one value an element.
 *
 *     softmax     m = max x;  e = exp(x - m);  s = sum e                    value  e * (1 / s)
 *     layer norm  s = sum x;  q = sum (x - s/n)^2;  r = 1/sqrt(q/n + eps)   value  (x - s/n)*r*scale + bias */
#include "frontend/lower/lower.h"

static const char *const axis_names[TL_MAX_RANK] = {
    "i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"
};

/* The shape of x with the axes first.. set to 1 (layer norm) or only `axis` (softmax). */
static tl_shape row_shape(const tl_value *x, int first, int last)
{
    tl_shape s = x->shape;
    for (int i = first; i <= last; i++)
        s.dims[i].extent = 1;
    return s;
}

/* Spatial iters over the rows and, on the axes first..last, reduce iters: the index of an element of x. */
static void over_rows(tl_block_nest *nest, const tl_value *x, int first, int last,
                      const tl_expr *row[TL_MAX_RANK], const tl_expr *element[TL_MAX_RANK])
{
    tl_arena *arena = tl_lower_arena(nest->lower);
    for (int i = 0; i < x->shape.rank; i++)
        if (i < first || i > last)
            row[i] = element[i] =
                tl_nest_iter(nest, TL_ITER_SPATIAL, axis_names[i], x->shape.dims[i].extent);
    for (int i = first; i <= last; i++) {
        static const char *const names[TL_MAX_RANK] = { "r0", "r1", "r2", "r3",
                                                        "r4", "r5", "r6", "r7" };
        row[i] = tl_int(arena, 0);
        element[i] = tl_nest_iter(nest, TL_ITER_REDUCE, names[i], x->shape.dims[i].extent);
    }
}

static void row_of(tl_arena *arena, int rank, int first, int last, tl_index element,
                   const tl_expr *row[TL_MAX_RANK])
{
    for (int i = 0; i < rank; i++)
        row[i] = i >= first && i <= last ? tl_int(arena, 0) : element[i];
}

void tl_stages_softmax(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    int axis = (int)tl_attr_int(n, "axis", -1), rank = x->shape.rank;
    tl_dtype dtype = tl_accumulate_dtype(x->dtype);
    tl_shape rows = row_shape(x, axis, axis);
    tl_layout plain = tl_layout_plain();
    tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *row[TL_MAX_RANK], *element[TL_MAX_RANK];

    tl_view in = tl_lower_materialize(l, x);
    tl_view most = tl_lower_local(l, "row_max", dtype, &rows, &plain);
    tl_block_nest nest = tl_nest_begin(l, "max");
    over_rows(&nest, x, axis, axis, row, element);
    tl_nest_reduce(&nest, TL_COMBINER_MAX, &most, row,
                   tl_cast(arena, dtype, tl_view_load(l, &in, element)));

    tl_view power = tl_lower_local(l, "power", dtype, &x->shape, &n->outputs[0]->layout);
    nest = tl_nest_begin(l, "exp");
    tl_nest_over(&nest, &power, element);
    row_of(arena, rank, axis, axis, element, row);
    const tl_expr *shifted = tl_sub(arena, tl_cast(arena, dtype, tl_view_load(l, &in, element)),
                                    tl_view_load(l, &most, row));
    tl_nest_store(&nest, &power, element, tl_call1(arena, TL_FUNCTION_EXP, shifted));

    tl_view sum = tl_lower_local(l, "row_sum", dtype, &rows, &plain);
    nest = tl_nest_begin(l, "sum");
    over_rows(&nest, x, axis, axis, row, element);
    tl_nest_sum(&nest, &sum, row, tl_view_load(l, &power, element));
    locals->place[0] = power;
    locals->place[1] = sum;
}

const tl_expr *tl_value_softmax(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *row[TL_MAX_RANK];
    int axis = (int)tl_attr_int(n, "axis", -1);
    row_of(arena, n->inputs[0]->shape.rank, axis, axis, index, row);
    const tl_expr *sum = tl_view_load(l, &locals->place[1], row);
    const tl_expr *value = tl_mul(arena, tl_view_load(l, &locals->place[0], index),
                                  tl_div(arena, tl_float(arena, sum->dtype, 1), sum));
    return tl_cast(arena, n->outputs[0]->dtype, value);
}

static int64_t row_elements(const tl_value *x, int first)
{
    int64_t count = 1;
    for (int i = first; i < x->shape.rank; i++)
        count *= x->shape.dims[i].extent;
    return count;
}

/* x - mean of its row */
static const tl_expr *centred(tl_lower *l, const tl_node *n, tl_index element, tl_index row)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_locals *locals = tl_lower_locals(l, n);
    int first = (int)tl_attr_int(n, "axis", -1);
    tl_dtype dtype = locals->place[0].buffer->dtype;
    double share = 1.0 / (double)row_elements(n->inputs[0], first);
    const tl_expr *mean =
        tl_mul(arena, tl_view_load(l, &locals->place[0], row), tl_float(arena, dtype, share));
    return tl_sub(arena, tl_cast(arena, dtype, tl_lower_read(l, n->inputs[0], element)), mean);
}

void tl_stages_layer_norm(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    int first = (int)tl_attr_int(n, "axis", -1), last = x->shape.rank - 1;
    tl_dtype dtype = tl_accumulate_dtype(x->dtype);
    tl_shape rows = row_shape(x, first, last);
    tl_layout plain = tl_layout_plain();
    tl_locals *locals = tl_lower_locals(l, n);
    const tl_expr *row[TL_MAX_RANK], *element[TL_MAX_RANK];

    tl_view in = tl_lower_materialize(l, x);
    locals->place[0] = tl_lower_local(l, "row_sum", dtype, &rows, &plain);
    tl_block_nest nest = tl_nest_begin(l, "sum");
    over_rows(&nest, x, first, last, row, element);
    tl_nest_sum(&nest, &locals->place[0], row,
                tl_cast(arena, dtype, tl_view_load(l, &in, element)));

    locals->place[1] = tl_lower_local(l, "squares", dtype, &rows, &plain);
    nest = tl_nest_begin(l, "variance");
    over_rows(&nest, x, first, last, row, element);
    const tl_expr *difference = centred(l, n, element, row);
    tl_nest_sum(&nest, &locals->place[1], row, tl_mul(arena, difference, difference));

    locals->place[2] = tl_lower_local(l, "scale_row", dtype, &rows, &plain);
    nest = tl_nest_begin(l, "deviation");
    for (int i = 0; i <= last; i++)
        row[i] = i < first
                     ? tl_nest_iter(&nest, TL_ITER_SPATIAL, axis_names[i], x->shape.dims[i].extent)
                     : tl_int(arena, 0);
    double share = 1.0 / (double)row_elements(x, first);
    const tl_expr *variance =
        tl_mul(arena, tl_view_load(l, &locals->place[1], row), tl_float(arena, dtype, share));
    variance = tl_add(arena, variance, tl_float(arena, dtype, tl_attr_float(n, "epsilon", 1e-5)));
    tl_nest_store(&nest, &locals->place[2], row,
                  tl_div(arena, tl_float(arena, dtype, 1),
                         tl_call1(arena, TL_FUNCTION_SQRT, variance)));
}

const tl_expr *tl_value_layer_norm(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *row[TL_MAX_RANK];
    int first = (int)tl_attr_int(n, "axis", -1), rank = n->inputs[0]->shape.rank;
    row_of(arena, rank, first, rank - 1, index, row);
    const tl_expr *value = tl_mul(arena, centred(l, n, index, row),
                                  tl_view_load(l, &tl_lower_locals(l, n)->place[2], row));
    for (int i = 1; i < n->input_count; i++) {
        if (n->inputs[i] == NULL)
            continue;
        const tl_expr *v =
            tl_cast(arena, value->dtype, tl_lower_read_broadcast(l, n->inputs[i], rank, index));
        if (v->kind == TL_EXPR_FLOAT && v->u.number == (i == 1 ? 1 : 0))
            continue; /* what a norm without scale or bias is given */
        value = i == 1 ? tl_mul(arena, value, v) : tl_add(arena, value, v);
    }
    return tl_cast(arena, n->outputs[0]->dtype, value);
}
