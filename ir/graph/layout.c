/* ir/graph/layout.c: shapes, and how values of a shape lie in memory. */
#include "ir/graph/graph.h"
#include <assert.h>
#include <string.h>
#include "runtime/base/checked.h"

tl_shape tl_shape_of(int rank, const int64_t *extents)
{
    assert(rank >= 0 && rank <= TL_MAX_RANK);
    tl_shape s = { .rank = rank };
    for (int i = 0; i < rank; i++)
        s.dims[i].extent = extents[i];
    return s;
}

bool tl_shape_is_static(const tl_shape *s)
{
    if (s->rank < 0)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i].extent < 0)
            return false;
    return true;
}

int64_t tl_shape_elements(const tl_shape *s)
{
    if (!tl_shape_is_static(s))
        return -1;
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i].extent == 0)
            return 0; /* whatever the others are */
    for (int i = 0; i < s->rank; i++)
        if (tl_mul_overflows(n, s->dims[i].extent, &n))
            return -1;
    return n;
}

bool tl_shape_is_bounded(const tl_shape *s, tl_dtype dtype)
{
    const int64_t most = (int64_t)1 << 48;
    int64_t bytes = (int64_t)tl_dtype_size(dtype);
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i].extent > 0 &&
            (tl_mul_overflows(bytes, s->dims[i].extent, &bytes) || bytes > most))
            return false;
    return true;
}

bool tl_shape_is_addressable(const tl_shape *s, tl_dtype dtype)
{
    return tl_shape_is_static(s) && tl_shape_is_bounded(s, dtype);
}

bool tl_shape_equal(const tl_shape *a, const tl_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        const tl_dim *x = &a->dims[i], *y = &b->dims[i];
        if (x->extent != y->extent || (x->name == NULL) != (y->name == NULL))
            return false;
        if (x->name != NULL && strcmp(x->name, y->name) != 0)
            return false;
    }
    return true;
}

int64_t tl_layout_block(const tl_layout *layout, int axis)
{
    return layout->plain ? 1 : layout->block[axis];
}

tl_layout tl_layout_plain(void)
{
    tl_layout layout = { .plain = true };
    for (int i = 0; i < TL_MAX_RANK; i++) {
        layout.order[i] = i;
        layout.block[i] = 1;
    }
    return layout;
}

int tl_layout_physical(const tl_layout *layout, const tl_shape *shape, int64_t out[2 * TL_MAX_RANK])
{
    assert(shape->rank >= 0);
    int count = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (layout->plain) {
            out[count++] = shape->dims[i].extent;
            continue;
        }
        int axis = layout->order[i];
        assert(axis >= 0 && axis < shape->rank && layout->block[axis] >= 1);
        int64_t extent = shape->dims[axis].extent;
        if (extent >= 0)
            extent = tl_ceildiv(layout->halo_before[axis] + extent + layout->halo_after[axis],
                                layout->block[axis]);
        out[count++] = extent;
    }
    for (int i = 0; !layout->plain && i < shape->rank; i++)
        if (layout->block[layout->order[i]] != 1)
            out[count++] = layout->block[layout->order[i]];
    return count;
}
