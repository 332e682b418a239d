/* frontend/lower/lower_pad.c: the zeros around a value: written behind a producer's output, or around a copy of an
 * input that came without them.
 *
 *     padded[n, c, h + 1, w + 1] = select(0 <= h and h < H and ..., x[n, c, h, w], 0)     (h and w into x's own halo) */
#include "frontend/lower/lower_private.h"
#include <string.h>
#include "runtime/base/checked.h"

static const char *axis_name(const tl_lower *l, int rank, int axis)
{
    static const char *const names[TL_MAX_RANK] = {
        "i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"
    };
    return l->axes_named && l->axis_rank == rank ? l->axis_names[axis] : names[axis];
}

/* Iters over the place with its halo; the halo axis `edge` only before or after the interior, halo axes before it (in
 * order) only inside, so that the blocks of all edges do not overlap. edge -1: everything. */
static void over_halo(tl_block_nest *nest, const tl_view *p, int edge, bool after,
                      const tl_expr *out[TL_MAX_RANK])
{
    tl_lower *l = nest->lower;
    const tl_layout *y = &p->layout;
    bool passed = edge < 0;
    for (int i = 0; i < p->shape.rank; i++) {
        int axis = y->order[i];
        int64_t extent = p->shape.dims[axis].extent, start = 0, count;
        count = extent / y->block[axis];
        if (axis == edge) {
            start = after ? extent : -y->halo_before[axis];
            count = after ? y->halo_after[axis] : y->halo_before[axis];
            passed = true;
        } else if (passed && y->halo_before[axis] + y->halo_after[axis] > 0) {
            start = -y->halo_before[axis];
            count += y->halo_before[axis] + y->halo_after[axis];
        }
        const char *name = axis_name(l, p->shape.rank, axis);
        out[axis] = tl_addi(l->arena, tl_nest_iter(nest, TL_ITER_SPATIAL, name, count), start);
    }
    for (int i = 0; i < p->shape.rank; i++) {
        int axis = y->order[i];
        if (y->block[axis] == 1)
            continue;
        const tl_expr *lane =
            tl_nest_iter(nest, TL_ITER_SPATIAL, l->axes_named ? l->lane : "lane", y->block[axis]);
        out[axis] = tl_add(l->arena, tl_muli(l->arena, out[axis], y->block[axis]), lane);
    }
}

void tl_nest_over_halo(tl_block_nest *nest, const tl_view *p, const tl_expr *out[TL_MAX_RANK])
{
    over_halo(nest, p, -1, false, out);
}

/* Whether the halo is around plain rows, on their ends at least, of planes that lie one behind the other. */
static bool has_plain_rows(const tl_view *p)
{
    const tl_layout *y = &p->layout;
    const int rank = p->shape.rank;
    if (rank < 2 || p->buffer->rank != rank || p->buffer->strides != NULL ||
        y->halo_before[rank - 1] + y->halo_after[rank - 1] == 0)
        return false;
    for (int axis = 0; axis < rank; axis++) {
        const int64_t halo = y->halo_before[axis] + y->halo_after[axis];
        int64_t extent;
        if (p->shape.dims[axis].extent < 1)
            return false;
        if (y->order[axis] != axis || y->block[axis] != 1 || (axis < rank - 2 && halo != 0) ||
            (axis >= rank - 2 &&
             (p->start[axis] != 0 || !tl_const_int(p->buffer->shape[axis], &extent) ||
              extent != p->shape.dims[axis].extent + halo)))
            return false;
    }
    return true;
}

/* Zeros at `count` places that are a row apart, `length` of them from element `start` of a plane on. */
static void write_run(tl_lower *l, const tl_view *p, int64_t start, int64_t length, int64_t count)
{
    const int rank = p->shape.rank;
    const int64_t *halo = p->layout.halo_before;
    const tl_expr *index[TL_MAX_RANK], *iters[TL_MAX_RANK];
    int64_t width;
    if (length == 0 || count == 0 || !tl_const_int(p->buffer->shape[rank - 1], &width))
        return;
    tl_block_nest nest = tl_nest_begin(l, "halo");
    for (int axis = 0; axis < rank; axis++) {
        const int64_t extent = axis == rank - 1   ? length
                               : axis == rank - 2 ? count
                                                  : p->shape.dims[axis].extent;
        index[axis] = iters[axis] =
            tl_nest_iter(&nest, TL_ITER_SPATIAL, axis_name(l, rank, axis), extent);
    }
    const tl_expr *at = tl_add(l->arena, tl_muli(l->arena, iters[rank - 2], width),
                               tl_addi(l->arena, iters[rank - 1], start));
    const tl_expr *row = tl_int(l->arena, width);
    index[rank - 2] = tl_addi(l->arena, tl_floordiv_expr(l->arena, at, row), -halo[rank - 2]);
    index[rank - 1] = tl_addi(l->arena, tl_floormod_expr(l->arena, at, row), -halo[rank - 1]);
    tl_nest_store(&nest, p, index, tl_constant(l->arena, p->buffer->dtype, 0));
}

/* What is above the first row and before its first element; what is between the rows, for the end of one lies before the
 * beginning of the next; what is behind the last. */
static void write_runs(tl_lower *l, const tl_view *p)
{
    const tl_layout *y = &p->layout;
    const int row = p->shape.rank - 2, column = p->shape.rank - 1;
    const int64_t rows = p->shape.dims[row].extent, inside = p->shape.dims[column].extent,
                  gap = y->halo_before[column] + y->halo_after[column], width = inside + gap,
                  first = y->halo_before[row] * width + y->halo_before[column];
    write_run(l, p, 0, first, 1);
    write_run(l, p, first + inside, gap, rows - 1);
    write_run(l, p, first + (rows - 1) * width + inside,
              y->halo_after[column] + y->halo_after[row] * width, 1);
}

void tl_lower_write_halo(tl_lower *l)
{
    const tl_view *p = &l->output;
    if (!p->layout.plain && has_plain_rows(p)) {
        write_runs(l, p);
        return;
    }
    for (int i = 0; !p->layout.plain && i < p->shape.rank; i++) {
        int axis = p->layout.order[i];
        for (int after = 0; after < 2; after++) {
            if ((after ? p->layout.halo_after : p->layout.halo_before)[axis] == 0)
                continue;
            const tl_expr *index[TL_MAX_RANK];
            tl_block_nest nest = tl_nest_begin(l, "halo");
            over_halo(&nest, p, axis, after, index);
            tl_nest_store(&nest, p, index, tl_constant(l->arena, p->buffer->dtype, 0));
        }
    }
}

tl_view tl_lower_padded(tl_lower *l, const tl_value *v, const int64_t *before, const int64_t *after)
{
    tl_lower_value *state = tl_lower_find(l, v);
    int rank = v->shape.rank;
    bool covered = state != NULL && state->has_place;
    for (int i = 0; i < rank && covered; i++)
        covered =
            (state->place.layout.plain ? 0 : state->place.layout.halo_before[i]) >= before[i] &&
            (state->place.layout.plain ? 0 : state->place.layout.halo_after[i]) >= after[i];
    if (covered)
        return state->place;

    tl_layout layout = v->layout.plain ? tl_layout_plain() : v->layout;
    layout.plain = false;
    memcpy(layout.halo_before, before, sizeof *before * (size_t)rank);
    memcpy(layout.halo_after, after, sizeof *after * (size_t)rank);
    tl_view local = tl_lower_local_with_halo(l, "padded", v->dtype, &v->shape, &layout);
    const tl_expr *index[TL_MAX_RANK], *inside = NULL;
    tl_block_nest nest = tl_nest_begin(l, "pad");
    over_halo(&nest, &local, -1, false, index);
    /* the zeros that are there already are copied: whoever puts other values there gets the same from all lowerings */
    bool has_halo = state != NULL && state->has_place && !state->place.layout.plain;
    for (int i = 0; i < rank; i++) {
        int64_t first = has_halo ? state->place.layout.halo_before[i] : 0;
        int64_t last = has_halo ? state->place.layout.halo_after[i] : 0;
        inside = tl_inside(l->arena, inside, tl_addi(l->arena, index[i], first),
                           first + v->shape.dims[i].extent + last);
    }
    const tl_expr *value = tl_lower_read(l, v, index);
    if (inside != NULL)
        value = tl_select(l->arena, inside, value, tl_constant(l->arena, v->dtype, 0));
    tl_nest_store(&nest, &local, index, value);
    return local;
}

tl_view tl_lower_unblocked(tl_lower *l, const tl_view *place)
{
    tl_layout layout = tl_layout_plain();
    const tl_layout *from = &place->layout;
    layout.plain = false;
    for (int i = 0; !from->plain && i < place->shape.rank; i++) {
        layout.halo_before[i] = from->halo_before[i];
        layout.halo_after[i] = from->halo_after[i];
    }
    const tl_dtype dtype = place->buffer->dtype;
    tl_view local = tl_lower_local_with_halo(l, "unblocked", dtype, &place->shape, &layout);
    const tl_expr *index[TL_MAX_RANK];
    tl_block_nest nest = tl_nest_begin(l, "unblock");
    over_halo(&nest, &local, -1, false, index);
    tl_nest_store(&nest, &local, index, tl_view_load(l, place, index));
    return local;
}
