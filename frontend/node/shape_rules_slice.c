/* frontend/node/shape_rules_slice.c: operators that take or add a part: slice, split, pad, gather; and those
 * that make values from shapes: Shape, ConstantOfShape, Range. */
#include "frontend/node/shape_rules.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "runtime/base/checked.h"

/* One axis of a slice, clamped as ONNX says; *count elements from *start in steps of *step. */
static void clamp_slice(int64_t extent, int64_t *start, int64_t *end, int64_t *step, int64_t *count)
{
    if (extent == 0) {
        *start = *end = *count = 0;
        *step = 1;
        return;
    }
    *start = *start < 0 ? tl_max64(*start, -extent - 1) + extent : *start;
    *end = *end < 0 ? tl_max64(*end, -extent - 1) + extent : *end;
    int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? extent - 1 : extent;
    *start = tl_min64(tl_max64(*start, 0), high);
    *end = tl_min64(tl_max64(*end, low), high);
    if (*step > extent || *step < -extent) /* only the first element is reached */
        *step = *step < 0 ? -extent : extent;
    *count = tl_max64(tl_ceildiv(*end - *start, *step), 0);
    *end = *start + *count * *step;
    if (*end < 0)
        *end = -extent - 1; /* "before the first", which stays so when it is read again */
}

tl_status tl_shape_rule_slice(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    const int64_t *starts, *ends, *axes, *steps;
    int count = tl_attr_ints(n, "starts", &starts), end_count = tl_attr_ints(n, "ends", &ends);
    int axis_count = tl_attr_ints(n, "axes", &axes), step_count = tl_attr_ints(n, "steps", &steps);
    int rank = x->shape.rank;
    if (count < 0 || count != end_count || (axis_count >= 0 && axis_count != count) ||
        (step_count >= 0 && step_count != count) || count > rank)
        return tl_fail_node(
            diag, TL_BAD_MODEL, n,
            "%d starts, %d ends, %d axes and %d steps do not describe a slice of %s", count,
            end_count, axis_count, step_count, tl_value_text(g, x));

    int64_t start[TL_MAX_RANK], end[TL_MAX_RANK], every[TL_MAX_RANK], step[TL_MAX_RANK],
        extents[TL_MAX_RANK];
    bool seen[TL_MAX_RANK] = { false };
    for (int i = 0; i < rank; i++) {
        extents[i] = end[i] = tl_extent(x, i);
        start[i] = 0;
        step[i] = 1;
        every[i] = i;
    }
    for (int i = 0; i < count; i++) {
        int axis;
        TL_TRY(tl_normal_axis(n, axis_count >= 0 ? axes[i] : i, rank, false, &axis, diag));
        if (seen[axis])
            return tl_fail_node(diag, TL_BAD_MODEL, n, "axes name axis %d twice", axis);
        seen[axis] = true;
        start[axis] = starts[i];
        end[axis] = ends[i];
        step[axis] = step_count >= 0 ? steps[i] : 1;
        if (step[axis] == 0)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "the step along axis %d is 0", axis);
        clamp_slice(tl_extent(x, axis), &start[axis], &end[axis], &step[axis], &extents[axis]);
    }
    TL_TRY(tl_set_output(g, n, 0, x->dtype, rank, extents, diag));
    tl_attr_set_ints(g, n, "starts", start, rank);
    tl_attr_set_ints(g, n, "ends", end, rank);
    tl_attr_set_ints(g, n, "axes", every, rank);
    tl_attr_set_ints(g, n, "steps", step, rank);
    return TL_OK;
}

tl_status tl_shape_rule_split(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int axis, rank = x->shape.rank;
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), rank, false, &axis, diag));
    const int64_t *sizes;
    int count = tl_attr_ints(n, "split", &sizes);
    int64_t extents[TL_MAX_RANK], left = tl_extent(x, axis);
    if (n->output_count == 0 || (count >= 0 && count != n->output_count))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%d sizes for %d outputs", count,
                            n->output_count);
    int64_t *parts = TL_NEW_ARRAY(g->arena, int64_t, n->output_count);
    int64_t part = tl_ceildiv(left, n->output_count);
    for (int i = 0; i < rank; i++)
        extents[i] = tl_extent(x, i);
    for (int i = 0; i < n->output_count; i++) {
        parts[i] = count >= 0 ? sizes[i] : tl_min64(part, left);
        if (parts[i] < 0 || parts[i] > left)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "part %d of %" PRId64 " does not fit into axis %d of %s", i,
                                parts[i], axis, tl_value_text(g, x));
        left -= parts[i];
        extents[axis] = parts[i];
        TL_TRY(tl_set_output(g, n, i, x->dtype, rank, extents, diag));
    }
    if (left != 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its parts leave %" PRId64 " of axis %d of %s",
                            left, axis, tl_value_text(g, x));
    tl_attr_set_ints(g, n, "split", parts, n->output_count);
    tl_attr_set_int(g, n, "axis", axis);
    return TL_OK;
}

tl_status tl_shape_rule_pad(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *value = tl_node_input(n, 2);
    const int64_t *pads, *axes;
    int rank = x->shape.rank, count = tl_attr_ints(n, "pads", &pads);
    int axis_count = tl_attr_ints(n, "axes", &axes);
    const char *mode = tl_attr_string(n, "mode", "constant");
    bool constant = strcmp(mode, "constant") == 0, reflect = strcmp(mode, "reflect") == 0;
    if (!constant && !reflect && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "its mode '%.40s' is unknown", mode);
    if (count != 2 * (axis_count >= 0 ? axis_count : rank))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%d pads do not fit %s", count,
                            tl_value_text(g, x));
    if (value != NULL) {
        TL_TRY(tl_same_dtype(g, n, 0, 2, diag));
        if (tl_shape_elements(&value->shape) != 1)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "its value %s should be a scalar",
                                tl_value_text(g, value));
    }

    int64_t full[2 * TL_MAX_RANK] = { 0 }, extents[TL_MAX_RANK];
    for (int i = 0; i < count / 2; i++) {
        int axis;
        TL_TRY(tl_normal_axis(n, axis_count >= 0 ? axes[i] : i, rank, false, &axis, diag));
        full[axis] = pads[i];
        full[rank + axis] = pads[count / 2 + i];
    }
    for (int i = 0; i < rank; i++) {
        int64_t e = tl_extent(x, i), before = full[i], after = full[rank + i];
        if (tl_add_overflows(e, before, &extents[i]) ||
            tl_add_overflows(extents[i], after, &extents[i]))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "the size of its output overflows");
        if (!constant && (before > 0 || after > 0) &&
            (e == 0 || (reflect && (before >= e || after >= e))))
            return tl_fail_node(diag, TL_UNSUPPORTED, n,
                                "axis %d of %s is too short to %s %" PRId64, i, tl_value_text(g, x),
                                mode, tl_max64(before, after));
    }
    TL_TRY(tl_set_output(g, n, 0, x->dtype, rank, extents, diag));
    tl_attr_set_ints(g, n, "pads", full, 2 * rank);
    tl_attr_remove(n, "axes");
    return TL_OK;
}

static tl_status integer_indices(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    tl_dtype d = n->inputs[1]->dtype;
    if (d == TL_I64 || d == TL_I32)
        return TL_OK;
    return tl_fail_node(diag, TL_BAD_MODEL, n, "its indices %s should be i32 or i64",
                        tl_value_text(g, n->inputs[1]));
}

tl_status tl_shape_rule_gather(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *indices = n->inputs[1];
    int axis, rank = 0;
    int64_t extents[2 * TL_MAX_RANK];
    TL_TRY(integer_indices(g, n, diag));
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), x->shape.rank, false, &axis, diag));
    for (int i = 0; i < axis; i++)
        extents[rank++] = tl_extent(x, i);
    for (int i = 0; i < indices->shape.rank; i++)
        extents[rank++] = tl_extent(indices, i);
    for (int i = axis + 1; i < x->shape.rank; i++)
        extents[rank++] = tl_extent(x, i);
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output(g, n, 0, x->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_gather_elements(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *indices = n->inputs[1];
    int axis;
    int64_t extents[TL_MAX_RANK];
    TL_TRY(integer_indices(g, n, diag));
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), x->shape.rank, false, &axis, diag));
    bool fits = x->shape.rank == indices->shape.rank;
    for (int i = 0; fits && i < x->shape.rank; i++) {
        extents[i] = tl_extent(indices, i);
        fits = i == axis || extents[i] <= tl_extent(x, i);
    }
    if (!fits)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "indices %s do not fit %s",
                            tl_value_text(g, indices), tl_value_text(g, x));
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output(g, n, 0, x->dtype, x->shape.rank, extents, diag);
}

tl_status tl_shape_rule_gather_nd(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *indices = n->inputs[1];
    int last = indices->shape.rank - 1, rank = 0;
    int64_t batch = tl_attr_int(n, "batch_dims", 0), extents[2 * TL_MAX_RANK];
    TL_TRY(integer_indices(g, n, diag));
    bool fits = last >= 0 && batch >= 0 && batch <= last && batch < x->shape.rank;
    int64_t tuple = fits ? tl_extent(indices, last) : 0;
    fits = fits && tuple >= 1 && tuple <= x->shape.rank - batch;
    for (int i = 0; fits && i < batch; i++)
        fits = tl_extent(indices, i) == tl_extent(x, i);
    if (!fits)
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "indices %s do not fit %s behind %lld batch axes",
                            tl_value_text(g, indices), tl_value_text(g, x), (long long)batch);
    for (int i = 0; i < last; i++)
        extents[rank++] = tl_extent(indices, i);
    for (int64_t i = batch + tuple; i < x->shape.rank; i++)
        extents[rank++] = tl_extent(x, (int)i);
    return tl_set_output(g, n, 0, x->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_shape(tl_graph *g, tl_node *n, tl_diag *diag)
{
    int64_t rank = n->inputs[0]->shape.rank;
    int64_t start = tl_attr_int(n, "start", 0), end = tl_attr_int(n, "end", rank);
    start = tl_min64(tl_max64(start < 0 ? start + rank : start, 0), rank);
    end = tl_min64(tl_max64(end < 0 ? end + rank : end, 0), rank);
    int64_t count = tl_max64(end - start, 0);
    tl_attr_set_int(g, n, "start", start);
    tl_attr_set_int(g, n, "end", start + count);
    return tl_set_output(g, n, 0, TL_I64, 1, &count, diag);
}

/* Becomes an Expand of a scalar. */
tl_status tl_shape_rule_constant_of_shape(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *target = n->inputs[0];
    const int64_t *extents;
    int rank;
    if (!tl_constant_ints(g, target, &extents, &rank))
        return tl_fail_node(diag, TL_UNSUPPORTED, n,
                            "its operand '%.120s' decides a shape and is not a constant",
                            target->name);
    tl_dtype dtype = (tl_dtype)tl_attr_int(n, "dtype", TL_F32);
    TL_TRY(tl_set_output(g, n, 0, dtype, rank, extents, diag));
    tl_number number =
        tl_number_cast(dtype, TL_F64, (tl_number){ .f = tl_attr_float(n, "value", 0) });
    void *data = tl_arena_alloc(g->arena, 16, 16);
    tl_number_store(dtype, data, 0, number);
    tl_shape scalar = tl_shape_of(0, NULL);
    n->op = TL_OP_EXPAND;
    n->attr_count = 0;
    tl_attr_set_ints(g, n, "shape", extents, rank);
    const char *name = tl_arena_format(g->arena, "%s.value", n->name);
    tl_node_set_input(n, 0, tl_graph_constant(g, name, dtype, &scalar, data));
    return TL_OK;
}

tl_status tl_shape_rule_range(tl_graph *g, tl_node *n, tl_diag *diag)
{
    tl_number v[3];
    tl_dtype dtype = n->inputs[0]->dtype;
    for (int i = 0; i < 3; i++) {
        const tl_value *x = n->inputs[i];
        TL_TRY(tl_same_dtype(g, n, 0, i, diag));
        if (x->data == NULL)
            return tl_fail_node(diag, TL_UNSUPPORTED, n,
                                "its operand '%.120s' decides a shape and is not a constant",
                                x->name);
        if (tl_shape_elements(&x->shape) != 1)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be a scalar",
                                tl_value_text(g, x));
        v[i] = tl_number_load(dtype, x->data, 0);
    }
    bool is_float = tl_dtype_is_float(dtype);
    if (is_float ? v[2].f == 0 : v[2].i == 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its step is 0");
    int64_t count = 0, distance;
    if (is_float) {
        double steps = ceil((v[1].f - v[0].f) / v[2].f);
        if (!(steps < 1e15) || isinf(steps))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "it has %g elements", steps);
        count = steps > 0 ? (int64_t)steps : 0;
    } else if (tl_mul_overflows(v[0].i, -1, &distance) ||
               tl_add_overflows(v[1].i, distance, &distance) || v[2].i == INT64_MIN) {
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its number of elements overflows");
    } else {
        count = tl_max64(tl_ceildiv(distance, v[2].i), 0);
    }
    return tl_set_output(g, n, 0, dtype, 1, &count, diag);
}
