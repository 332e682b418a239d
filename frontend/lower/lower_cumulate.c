/* frontend/lower/lower_cumulate.c: sums and products of all elements up to each one, along an axis.
 *
 *     first      y[0] = x[0]                          exclusive: 0 or 1
 *     cumulate   y[t] = y[t-1] + x[t]                 exclusive: x[t-1]; reverse: from the axis' end
 *
 * Error: as of a sum of as many terms. */
#include "frontend/lower/lower.h"
#include <string.h>

typedef struct {
    tl_lower *lower;
    const tl_node *node;
    tl_view y;
    int axis;
    int64_t extent;
    bool exclusive, reverse, is_product;
} job;

/* Iters over all axes but the job's, whose index is `t` steps from where it starts. */
static void begin(const job *j, tl_block_nest *nest, const char *name, const tl_expr *at[])
{
    *nest = tl_nest_begin(j->lower, name);
    for (int i = 0; i < j->y.shape.rank; i++)
        if (i != j->axis)
            at[i] = tl_nest_iter(nest, TL_ITER_SPATIAL,
                                 tl_arena_format(tl_lower_arena(j->lower), "i%d", i),
                                 j->y.shape.dims[i].extent);
}

static const tl_expr *place(const job *j, const tl_expr *step)
{
    tl_arena *arena = tl_lower_arena(j->lower);
    return j->reverse ? tl_sub(arena, tl_int(arena, j->extent - 1), step) : step;
}

static const tl_expr *read(const job *j, tl_index at)
{
    return tl_cast(tl_lower_arena(j->lower), j->y.buffer->dtype,
                   tl_lower_read(j->lower, j->node->inputs[0], at));
}

void tl_stages_cumulate(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    int axis = (int)tl_attr_int(n, "axis", 0);
    job j = { .lower = l,
              .node = n,
              .y = tl_lower_accumulator(l, n, tl_accumulate_dtype(x->dtype), true),
              .axis = axis,
              .extent = x->shape.dims[axis].extent,
              .exclusive = tl_attr_int(n, "exclusive", 0) != 0,
              .reverse = tl_attr_int(n, "reverse", 0) != 0,
              .is_product = strcmp(tl_attr_string(n, "by", "sum"), "product") == 0 };
    const tl_expr *at[TL_MAX_RANK], *before[TL_MAX_RANK];
    tl_block_nest nest;
    tl_lower_locals(l, n)->place[0] = j.y;
    begin(&j, &nest, "first", at);
    at[axis] = place(&j, tl_int(arena, 0));
    tl_nest_store(&nest, &j.y, at,
                  j.exclusive ? tl_constant(arena, j.y.buffer->dtype, j.is_product) : read(&j, at));
    if (j.extent < 2)
        return;
    begin(&j, &nest, "cumulate", at);
    const tl_expr *t = tl_nest_iter(&nest, TL_ITER_ORDERED, "t", j.extent - 1);
    memcpy(before, at, sizeof at);
    at[axis] = place(&j, tl_addi(arena, t, 1));
    before[axis] = place(&j, t);
    const tl_expr *sum = tl_view_load(l, &j.y, before);
    const tl_expr *next = read(&j, j.exclusive ? before : at);
    tl_nest_store(&nest, &j.y, at,
                  j.is_product ? tl_mul(arena, sum, next) : tl_add(arena, sum, next));
}

const tl_expr *tl_value_cumulate(tl_lower *l, const tl_node *n, tl_index index)
{
    return tl_cast(tl_lower_arena(l), n->outputs[0]->dtype,
                   tl_view_load(l, &tl_lower_locals(l, n)->place[0], index));
}
