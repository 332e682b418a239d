/* schedule/analysis.c: what sketch rules ask of a block. */
#include "schedule/analysis.h"
#include <assert.h>
#include "runtime/base/checked.h"

int64_t tl_max_extent(const tl_expr *extent)
{
    return tl_expr_range(extent).max;
}

int64_t tl_block_instances(const tl_block *block)
{
    int64_t product = 1;
    for (int i = 0; i < block->iter_count; i++)
        if (tl_mul_overflows(product, tl_max_extent(block->iters[i].extent), &product))
            return INT64_MAX;
    return product;
}

bool tl_block_is_spatial(const tl_block *block)
{
    if (block->call != NULL || block->combiner != TL_COMBINER_NONE)
        return false;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_SPATIAL)
            return false;
    return true;
}

bool tl_block_is_reduction(const tl_block *block)
{
    return block->call == NULL && block->combiner != TL_COMBINER_NONE;
}

/* Of indices that only together are affine: the quotient and the remainder of one place in a plane. */
static int64_t stride_of_place(tl_arena *arena, const tl_buffer *buffer,
                               const tl_expr *const *indices, const tl_var *iter)
{
    const tl_expr *place = tl_int(arena, 0), *rest;
    int64_t stride = 1, extent, coefficient;
    for (int axis = buffer->rank - 1; axis >= 0; axis--) {
        if (tl_expr_uses_var(indices[axis], iter))
            place = tl_add(arena, place, tl_muli(arena, indices[axis], stride));
        if (!tl_const_int(buffer->shape[axis], &extent) ||
            tl_mul_overflows(stride, extent, &stride))
            return TL_NOT_AFFINE;
    }
    return tl_affine_in(arena, place, iter, &coefficient, &rest) ? coefficient : TL_NOT_AFFINE;
}

int64_t tl_access_stride(tl_arena *arena, const tl_buffer *buffer, const tl_expr *const *indices,
                         const tl_var *iter)
{
    int64_t stride = 1, total = 0;
    bool known = true; /* whether `stride` is */
    for (int axis = buffer->rank - 1; axis >= 0; axis--) {
        if (buffer->strides != NULL)
            stride = buffer->strides[axis];
        if (tl_expr_uses_var(indices[axis], iter)) {
            int64_t coefficient, step;
            const tl_expr *rest;
            if (!known)
                return TL_NOT_AFFINE;
            if (!tl_affine_in(arena, indices[axis], iter, &coefficient, &rest))
                return buffer->strides == NULL ? stride_of_place(arena, buffer, indices, iter)
                                               : TL_NOT_AFFINE;
            if (tl_mul_overflows(coefficient, stride, &step) ||
                tl_add_overflows(total, step, &total))
                return TL_NOT_AFFINE;
        }
        int64_t extent;
        if (!tl_const_int(buffer->shape[axis], &extent) ||
            tl_mul_overflows(stride, extent, &stride))
            known = false;
    }
    return total;
}

typedef struct {
    const tl_expr **out;
    int count, capacity;
} load_list;

static bool add_load(const tl_expr *e, void *context)
{
    load_list *list = context;
    if (e->kind != TL_EXPR_LOAD)
        return true;
    for (int i = 0; i < list->count; i++)
        if (tl_expr_equal(list->out[i], e))
            return true;
    if (list->count < list->capacity)
        list->out[list->count++] = e;
    return true;
}

int tl_collect_loads(const tl_expr *e, const tl_expr **out, int capacity)
{
    assert(capacity >= 0 && (capacity == 0 || out != NULL));
    load_list list = { out, 0, capacity };
    tl_expr_visit(e, add_load, &list);
    return list.count;
}

static const tl_expr *strip_casts(const tl_expr *e)
{
    while (e->kind == TL_EXPR_CAST)
        e = e->args[0];
    return e;
}

const tl_var *tl_contiguous_iter(tl_arena *arena, const tl_block *block)
{
    if (block->store_count == 0)
        return NULL;
    const tl_store *store = &block->stores[0];
    for (int i = block->iter_count - 1; i >= 0; i--)
        if (block->iters[i].kind == TL_ITER_SPATIAL && tl_max_extent(block->iters[i].extent) > 1 &&
            tl_access_stride(arena, store->buffer, store->indices, block->iters[i].var) == 1)
            return block->iters[i].var;
    return NULL;
}

bool tl_find_contraction(tl_arena *arena, const tl_block *block, tl_contraction *out)
{
    if (block->call != NULL || block->combiner != TL_COMBINER_SUM || block->store_count != 1)
        return false;
    const tl_store *store = &block->stores[0];
    const tl_expr *product = strip_casts(store->value);
    if (product->kind != TL_EXPR_MUL)
        return false;
    const tl_expr *a = strip_casts(product->args[0]), *b = strip_casts(product->args[1]);
    if (a->kind != TL_EXPR_LOAD || b->kind != TL_EXPR_LOAD)
        return false;

    const tl_var *vector = tl_contiguous_iter(arena, block);
    if (vector == NULL)
        return false;
    bool in_a = tl_expr_uses_var(a, vector), in_b = tl_expr_uses_var(b, vector);
    if (in_a == in_b)
        return false; /* both: a depthwise product, nothing to reuse between lanes */
    *out = (tl_contraction){ block, in_a ? a : b, in_a ? b : a, vector, NULL };
    return true;
}
