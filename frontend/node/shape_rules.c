/* frontend/node/shape_rules.c: what the shape rules share: sentences, broadcasting, axes. */
#include "frontend/node/shape_rules.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/checked.h"

tl_status tl_fail_node(tl_diag *diag, tl_status status, const tl_node *n, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return tl_fail(diag, status, "node '%.200s' (%s): %s", n->name, tl_op_infos[n->op].text,
                   sentence);
}

const char *tl_extents_text(tl_graph *g, int count, const int64_t *extents)
{
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = tl_arena_format(g->arena, "%s%s%" PRId64, text, i == 0 ? "" : ", ", extents[i]);
    return tl_arena_format(g->arena, "[%s]", text);
}

const char *tl_value_text(tl_graph *g, const tl_value *v)
{
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < v->shape.rank; i++)
        extents[i] = tl_extent(v, i);
    return tl_arena_format(g->arena, "'%.120s' %s%s", v->name, tl_dtype_infos[v->dtype].text,
                           tl_extents_text(g, v->shape.rank, extents));
}

tl_status tl_set_output(tl_graph *g, tl_node *n, int i, tl_dtype dtype, int rank,
                        const int64_t *extents, tl_diag *diag)
{
    tl_value *v = i < n->output_count ? n->outputs[i] : NULL;
    if (v == NULL)
        return TL_OK;
    if (rank > TL_MAX_RANK)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "its output '%.120s' has rank %d, at most %d",
                            v->name, rank, TL_MAX_RANK);
    for (int axis = 0; axis < rank; axis++)
        if (extents[axis] < 0)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "its output '%.120s' would have shape %s",
                                v->name, tl_extents_text(g, rank, extents));

    tl_shape shape = tl_shape_of(rank, extents);
    if (!tl_shape_is_addressable(&shape, dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "the size of its output '%.120s' %s overflows",
                            v->name, tl_extents_text(g, rank, extents));
    v->dtype = dtype;
    v->dtype_known = true;
    v->shape = shape;
    return TL_OK;
}

tl_status tl_set_output_like(tl_graph *g, tl_node *n, tl_dtype dtype, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < x->shape.rank; i++)
        extents[i] = tl_extent(x, i);
    return tl_set_output(g, n, 0, dtype, x->shape.rank, extents, diag);
}

tl_status tl_broadcast_inputs(tl_graph *g, const tl_node *n, int first, int *rank,
                              int64_t out[TL_MAX_RANK], tl_diag *diag)
{
    *rank = 0;
    for (int i = first; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v != NULL && v->shape.rank > *rank)
            *rank = v->shape.rank;
    }
    for (int axis = 0; axis < *rank; axis++)
        out[axis] = 1;
    for (int i = first; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL)
            continue;
        int lead = *rank - v->shape.rank;
        for (int axis = 0; axis < v->shape.rank; axis++) {
            int64_t e = tl_extent(v, axis), *o = &out[lead + axis];
            if (e != *o && e != 1 && *o != 1)
                return tl_fail_node(
                    diag, TL_BAD_MODEL, n,
                    "%s does not broadcast with the inputs before it (extent %" PRId64
                    " against %" PRId64 ")",
                    tl_value_text(g, v), e, *o);
            if (*o == 1)
                *o = e;
        }
    }
    return TL_OK;
}

tl_status tl_not_bool(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    if (n->inputs[0]->dtype != TL_BOOL)
        return TL_OK;
    return tl_fail_node(diag, TL_BAD_MODEL, n, "%s: bool has no arithmetic",
                        tl_value_text(g, n->inputs[0]));
}

tl_status tl_same_dtype(tl_graph *g, const tl_node *n, int a, int b, tl_diag *diag)
{
    if (n->inputs[a]->dtype == n->inputs[b]->dtype)
        return TL_OK;
    return tl_fail_node(diag, TL_BAD_MODEL, n, "%s and %s should have one dtype",
                        tl_value_text(g, n->inputs[a]), tl_value_text(g, n->inputs[b]));
}

tl_status tl_normal_axis(const tl_node *n, int64_t axis, int rank, bool end, int *out,
                         tl_diag *diag)
{
    int64_t last = rank - 1 + (end ? 1 : 0);
    if (axis < -(int64_t)rank || axis > last)
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "axis %" PRId64 " is not in %d..%" PRId64 " of a rank %d", axis, -rank,
                            last, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TL_OK;
}

tl_status tl_axes_set(const tl_node *n, const char *name, int rank, bool set[TL_MAX_RANK],
                      tl_diag *diag)
{
    const int64_t *axes;
    int count = tl_attr_ints(n, name, &axes);
    memset(set, 0, sizeof(bool) * TL_MAX_RANK);
    for (int i = 0; i < count; i++) {
        int axis;
        TL_TRY(tl_normal_axis(n, axes[i], rank, false, &axis, diag));
        if (set[axis])
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s names axis %d twice", name, axis);
        set[axis] = true;
    }
    return TL_OK;
}

bool tl_constant_ints(tl_graph *g, const tl_value *v, const int64_t **out, int *count)
{
    int64_t elements = tl_shape_elements(&v->shape);
    if (v->data == NULL || !tl_dtype_is_int(v->dtype) || elements < 0 || elements > 65536)
        return false;
    int64_t *ints = TL_NEW_ARRAY(g->arena, int64_t, elements);
    for (int64_t i = 0; i < elements; i++)
        ints[i] = tl_number_load(v->dtype, v->data, (size_t)i).i;
    *out = ints;
    *count = (int)elements;
    return true;
}
