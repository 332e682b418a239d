/* frontend/import/import_loop_node.c: a Loop or Scan as a node with a body (onnx_region.c), which a run takes as often as numbers
 * and conditions say when it is there.
 *
 *     Loop(n, c, x) {x' = Concat(x, y)}      x: [k, 2], y: [1, 2], 1,024 turns at most
 *       ->  Loop(n, c, x in [k + 1024, 2], k) {x' = x, y behind its first k rows; k' = k + 1}
 *
 * A state whose extent changes from turn to turn has the largest that it can have, and its count is one more state. How large
 * it can be follows from what a turn makes of the count: k + 1 grows by 1 a turn, Min(k + 1, 77) is never more than 77. The
 * body is read until nothing changes any more; what doubles in each turn does not come to an end, and is refused. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_loop.h"
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_eithers.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/call/onnx_sequences.h"
#include "frontend/call/onnx_sums.h"
#include "runtime/base/checked.h"

enum {
    MOST_ELEMENTS = 1 << 30, /* of a state, or of a result of all turns */
    STACKED_TURNS = 1024,    /* of which results are kept, where data decide how many there are */
    MOST_READINGS = 12,      /* of a body, until its extents are found */
};

/* ---- how many turns ---- */

/* Whether the room that is needed depends on how many turns there are. */
static bool keeps_turns(const tl_onnx_call *c, const tl_loop_call *l)
{
    bool keeps = l->grows;
    for (int i = 0; i < l->state_count; i++)
        keeps |= tl_sequence_of(c->import, l->state[i]) != NULL;
    for (int i = 0; i < l->scan_count; i++)
        keeps |= tl_call_wants(c, l->state_count + i);
    return keeps;
}

static int64_t most_turns(const tl_onnx_call *c, const tl_loop_call *l)
{
    int64_t most = c->import->most_turns;
    if (l->turns >= 0 && l->turns <= TL_ONNX_MOST_TURNS)
        return l->turns;
    if (most != 0)
        return most;
    most = keeps_turns(c, l) ? STACKED_TURNS : TL_ONNX_MOST_TURNS;
    if (l->wanted != NULL && l->wanted->dtype_known && tl_shape_elements(&l->wanted->shape) == 1) {
        tl_onnx_sum wanted = tl_sum_of(c->import, l->wanted, 0);
        tl_onnx_bounds b = tl_sum_bounds(c->import, &wanted);
        if (b.most <= TL_ONNX_MOST_TURNS) /* there will be no more, whatever data say */
            return b.most > 0 ? (int64_t)b.most : 0;
    }
    return most;
}

/* ---- the body ---- */

/* What a turn appends to a sequence takes its place among the results: one tensor. */
static tl_status find_appended(tl_onnx_call *c, const tl_loop_call *l, int state, tl_value **output)
{
    const tl_onnx_sequence *s = tl_sequence_of(c->import, *output);
    if (s == NULL || s->before != l->state[state] || s->count != 1)
        return tl_call_unsupported(c, "a sequence to which a turn does not append one tensor");
    *output = s->items[0];
    return TL_OK;
}

static tl_loop_axis *find_axis(tl_loop_call *l, bool is_slice, int value, int axis)
{
    for (int i = 0; i < l->axis_count; i++) {
        tl_loop_axis *a = &l->changing[i];
        if (a->is_slice == is_slice && a->value == value && a->axis == axis)
            return a;
    }
    return NULL;
}

static tl_status add_axis(tl_onnx_call *c, tl_loop_call *l, bool is_slice, int value, int axis,
                          int64_t most)
{
    if (!l->may_change)
        return tl_call_unsupported(c, "a state whose type changes from turn to turn");
    if (l->axis_count == TL_LOOP_AXES)
        return tl_call_unsupported(c, "more than %d extents that change from turn to turn",
                                   TL_LOOP_AXES);
    l->changing[l->axis_count++] =
        (tl_loop_axis){ .value = value, .axis = axis, .is_slice = is_slice, .most = most };
    l->has_changed = true;
    return TL_OK;
}

static tl_value *count_of(tl_onnx_call *c, const tl_value *v, int axis)
{
    tl_value *const *counts = tl_counts_of(c->import, v);
    return counts != NULL ? counts[axis] : NULL;
}

static tl_value *add_input(tl_onnx_call *c, const char *what, int number, tl_dtype dtype,
                           const tl_shape *shape)
{
    tl_value *v =
        tl_graph_value(c->graph, tl_arena_format(c->arena, "%s.%d", what, number), dtype, shape);
    tl_graph_add_input(c->graph, v);
    return v;
}

/* The state before a turn, as large as it can be, with its counts. */
static void add_states(tl_onnx_call *c, tl_loop_call *l, tl_value **states)
{
    const tl_shape scalar = { .rank = 0 };
    for (int i = 0; i < l->state_count; i++) {
        const tl_value *v = l->state[i];
        if (tl_sequence_of(c->import, v) != NULL) { /* empty: what a turn appends is seen */
            states[i] = tl_sequence_value(c, &(tl_onnx_sequence){ .before = v });
            continue;
        }
        tl_shape shape = v->shape;
        for (int k = 0; k < l->axis_count; k++)
            if (!l->changing[k].is_slice && l->changing[k].value == i)
                shape.dims[l->changing[k].axis].extent = l->changing[k].most;
        states[i] = add_input(c, "state", i, v->dtype, &shape);
    }
    for (int k = 0; k < l->axis_count; k++) {
        tl_loop_axis *a = &l->changing[k];
        a->inside = add_input(c, "count", k, TL_I64, &scalar);
        if (!a->is_slice)
            tl_set_count(c->import, states[a->value], a->axis, a->inside);
    }
}

/* Whether a turn leaves the axis within its largest extent; if not, that becomes larger. */
static tl_status fit_axis(tl_onnx_call *c, tl_loop_call *l, tl_loop_axis *a, const tl_value *output)
{
    int64_t extent = output->shape.dims[a->axis].extent, factor;
    tl_value *count = count_of(c, output, a->axis);
    tl_onnx_sum behind = count != NULL ? tl_sum_of(c->import, count, 0) : tl_sum_constant(extent);
    tl_onnx_sum rest;
    a->extent = extent;
    if (extent <= a->most)
        return TL_OK;
    bool is_sum = tl_sum_factor(c->import, &behind, a->inside, l->grows_by_any, &factor, &rest);
    tl_onnx_bounds growth = tl_sum_bounds(c->import, &rest);
    int64_t most = extent;
    if (is_sum && factor == 1 && growth.most < MOST_ELEMENTS) {
        l->grows = l->seen_to_grow = true;
        most = (int64_t)fmax(growth.most, 0);
        if (tl_mul_overflows(most, most_turns(c, l), &most) || most > MOST_ELEMENTS)
            most = MOST_ELEMENTS;
        most += l->state[a->value]->shape.dims[a->axis].extent;
        if (a->most >= most)
            return TL_OK; /* it has room for all turns */
    }
    a->most = most;
    l->has_changed = true;
    return TL_OK;
}

/* The types that a turn gives are those that it gets, but for extents that may change. */
static tl_status check_state(tl_onnx_call *c, tl_loop_call *l, int state, const tl_value *before,
                             const tl_value *output)
{
    if (output->dtype != before->dtype || output->shape.rank != before->shape.rank)
        return tl_call_unsupported(c, "a state whose type changes from turn to turn");
    for (int axis = 0; axis < output->shape.rank; axis++) {
        tl_loop_axis *a = find_axis(l, false, state, axis);
        if (a != NULL)
            TL_TRY(fit_axis(c, l, a, output));
        else if (output->shape.dims[axis].extent != before->shape.dims[axis].extent ||
                 count_of(c, output, axis) != NULL)
            TL_TRY(add_axis(c, l, false, state, axis, before->shape.dims[axis].extent));
    }
    return TL_OK;
}

static tl_status check_slice(tl_onnx_call *c, tl_loop_call *l, int slice, const tl_value *output)
{
    for (int axis = 0; axis < output->shape.rank; axis++)
        if (count_of(c, output, axis) != NULL && find_axis(l, true, slice, axis) == NULL)
            TL_TRY(add_axis(c, l, true, slice, axis, output->shape.dims[axis].extent));
    return TL_OK;
}

/* Outputs get the shapes of their states, and counts are read off. */
static void fit_outputs(tl_onnx_call *c, tl_loop_call *l, int conditions)
{
    for (int k = 0; k < l->axis_count; k++) {
        tl_loop_axis *a = &l->changing[k];
        int at = conditions + (a->is_slice ? l->state_count : 0) + a->value;
        a->after = tl_onnx_emit_extent(c, l->outputs[at], a->axis);
    }
    for (int k = 0; k < l->axis_count; k++) {
        tl_loop_axis *a = &l->changing[k];
        int at = conditions + a->value;
        if (!a->is_slice)
            l->outputs[at] = tl_onnx_emit_first(c, l->outputs[at], a->axis, a->most);
    }
}

/* A turn of the loop as a graph: its number and the state go in. */
static tl_status read_turn(tl_onnx_call *c, void *context)
{
    tl_loop_call *l = context;
    tl_import *im = c->import;
    tl_onnx_region *r = im->region;
    tl_value *inputs[2 * TL_LOOP_VALUES + 2], *states[TL_LOOP_VALUES];
    const tl_shape scalar = { .rank = 0 };
    bool is_scan = l->scanned_count > 0;
    int count = 0, conditions = is_scan ? 0 : 1;
    int64_t most = most_turns(c, l);
    tl_value *turn = tl_graph_value(r->graph, "turn", TL_I64, &scalar);
    tl_graph_add_input(r->graph, turn);
    tl_set_bounds(im, turn, 0, most > 0 ? (double)(most - 1) : 0);
    add_states(c, l, states);
    if (!is_scan) {
        inputs[count++] = turn;
        inputs[count++] = tl_onnx_emit_scalar(c, TL_BOOL, 1);
    }
    for (int i = 0; i < l->state_count; i++)
        inputs[count++] = states[i];
    for (int i = 0; i < l->scanned_count; i++) {
        tl_value *at = turn;
        if (l->backwards[i]) {
            tl_value *turns = l->scanned_turns != NULL
                                  ? tl_region_capture(im, r, l->scanned_turns)
                                  : tl_onnx_emit_scalar(c, TL_I64, (double)l->turns);
            at = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_with(c, TL_OP_SUB, turns, 1), turn);
        }
        inputs[count++] =
            tl_onnx_emit_gather(c, TL_OP_GATHER, tl_region_capture(im, r, l->scanned[i]), at,
                                l->axes[i]);
    }
    TL_TRY(tl_import_body(c, l->body, tl_arena_format(c->arena, "%s/", c->name), count, inputs,
                          conditions + l->state_count + l->scan_count, l->outputs));
    for (int i = 0; i < l->state_count; i++)
        if (tl_sequence_of(im, l->state[i]) != NULL)
            TL_TRY(find_appended(c, l, i, &l->outputs[conditions + i]));
    for (int i = 0; i < conditions + l->state_count + l->scan_count; i++)
        if (!l->outputs[i]->dtype_known || !tl_shape_is_static(&l->outputs[i]->shape) ||
            tl_dtype_infos[l->outputs[i]->dtype].bits % 8 != 0)
            return tl_call_unsupported(c, "a result whose type is not known");
    for (int i = 0; i < l->state_count + l->scan_count; i++) {
        tl_value *output = l->outputs[conditions + i];
        bool is_sequence = i < l->state_count && tl_sequence_of(im, l->state[i]) != NULL;
        if (is_sequence && tl_counts_of(im, output) != NULL)
            return tl_call_unsupported(c, "a sequence of tensors of other shapes");
        if (i < l->state_count && !is_sequence)
            TL_TRY(check_state(c, l, i, states[i], output));
        else if (!is_sequence)
            TL_TRY(check_slice(c, l, i - l->state_count, output));
    }
    if (l->has_changed)
        return tl_call_unsupported(c, "a state whose type changes from turn to turn");
    fit_outputs(c, l, conditions);
    if (!is_scan)
        l->outputs[0] = tl_onnx_emit_reshape(c, l->outputs[0], NULL, 0);
    return TL_OK;
}

/* ---- the node ---- */

/* So many slices, or an axis of so many elements more. */
static bool fits_in_memory(const tl_value *slice, int64_t turns)
{
    int64_t elements = tl_shape_elements(&slice->shape), all;
    return elements >= 0 && !tl_mul_overflows(elements, turns, &all) && all <= MOST_ELEMENTS;
}

static bool states_are_known(const tl_onnx_call *c, const tl_loop_call *l)
{
    for (int i = 0; i < l->state_count; i++) {
        const tl_onnx_sequence *sequence = tl_sequence_of(c->import, l->state[i]);
        if (sequence != NULL && sequence->stack == NULL && sequence->before == NULL)
            continue;
        if (l->state[i] == NULL || !l->state[i]->dtype_known ||
            !tl_shape_is_static(&l->state[i]->shape))
            return false;
    }
    for (int i = 0; i < l->scanned_count; i++)
        if (!tl_shape_is_static(&l->scanned[i]->shape))
            return false;
    return true;
}

tl_value **tl_onnx_emit_loop(tl_onnx_call *c, tl_onnx_region *r, const tl_onnx_loop *l)
{
    int results = l->output_count - l->has_again, input_count = 2 + l->state_count + r->count;
    tl_value **inputs = TL_NEW_ARRAY(c->arena, tl_value *, input_count);
    tl_value **out = TL_NEW_ARRAY(c->arena, tl_value *, results + 1);
    for (int i = 0; i < l->output_count; i++)
        tl_region_output(r, l->outputs[i]);
    inputs[0] = l->wanted;
    inputs[1] = l->enters;
    for (int i = 0; i < l->state_count; i++)
        inputs[2 + i] = l->states[i];
    for (int i = 0; i < r->count; i++)
        inputs[2 + l->state_count + i] = r->captured[i];
    const tl_shape scalar = { .rank = 0 };
    for (int i = 0; i < results; i++) {
        const tl_value *v = l->outputs[l->has_again + i];
        tl_shape shape = v->shape;
        if (i >= l->state_count) {
            memmove(shape.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank);
            shape.dims[0] = (tl_dim){ .extent = l->most };
            shape.rank++;
        }
        out[i] = tl_graph_value(c->graph, tl_arena_format(c->arena, "%s.%d", c->name, i), v->dtype,
                                &shape);
    }
    out[results] =
        tl_graph_value(c->graph, tl_arena_format(c->arena, "%s.turns", c->name), TL_I64, &scalar);
    tl_node *n =
        tl_graph_node(c->graph, TL_OP_LOOP, c->name, input_count, inputs, results + 1, out);
    tl_attr_set_int(c->graph, n, "states", l->state_count);
    tl_attr_set_int(c->graph, n, "again", l->has_again);
    tl_attr_set_int(c->graph, n, "most", l->most);
    n->bodies[0] = r->graph;
    return out;
}

/* Axes that are counted before the first turn. */
static bool begin_axes(tl_onnx_call *c, tl_loop_call *l)
{
    l->axis_count = 0;
    for (int i = 0; i < l->state_count; i++)
        for (int axis = 0; axis < l->state[i]->shape.rank; axis++)
            if (tl_extent_is_counted(c->import, l->state[i], axis)) {
                if (l->axis_count == TL_LOOP_AXES)
                    return false;
                l->changing[l->axis_count++] = (tl_loop_axis){
                    .value = i, .axis = axis, .most = l->state[i]->shape.dims[axis].extent
                };
            }
    return true;
}

/* Once: whether extents that a turn leaves smaller have a smaller bound, a window of the latest elements for one. */
static bool tighten(tl_loop_call *l)
{
    bool any = false;
    for (int k = 0; k < l->axis_count; k++) {
        tl_loop_axis *a = &l->changing[k];
        if (a->is_slice)
            continue;
        int64_t most = tl_max64(l->state[a->value]->shape.dims[a->axis].extent, a->extent);
        any |= most < a->most;
        a->most = tl_min64(a->most, most);
    }
    return any;
}

/* Reads the body until the largest extents of its states are found, or nothing says that there are some. */
static bool find_extents(tl_onnx_call *c, tl_loop_call *l, tl_onnx_region **out)
{
    tl_loop_axis found[TL_LOOP_AXES];
    int found_count = -1; /* before it was made smaller */
    l->grows = false;
    l->reason = NULL;
    if (!begin_axes(c, l))
        return false;
    for (int reading = 0; reading < MOST_READINGS; reading++) {
        l->has_changed = l->seen_to_grow = false;
        bool is_good = tl_try_region(c, read_turn, l, out), grew = l->grows;
        l->grows = l->seen_to_grow;
        if (is_good && grew == l->grows && (l->grows || found_count >= 0))
            return true;
        if (is_good && grew == l->grows) {
            memcpy(found, l->changing, sizeof found);
            found_count = l->axis_count;
            if (!tighten(l))
                return true;
            continue;
        }
        if (!is_good && !l->has_changed)
            return false;
        if (!is_good && found_count >= 0) { /* there is none */
            memcpy(l->changing, found, sizeof found);
            l->axis_count = found_count;
            l->grows = false;
        }
        for (int k = 0; k < l->axis_count; k++)
            if (l->changing[k].most >= MOST_ELEMENTS) {
                l->reason = "a state that may become larger than there is room for";
                return false;
            }
    }
    l->reason = "a state that grows by more than a constant from turn to turn";
    return false;
}

/* First what a turn adds is looked for beside the extent: that gives windows the room of a window. Then it may be computed from
 * the extent: of a row that is appended if there is one already, it is one at most. */
static bool read_body(tl_onnx_call *c, tl_loop_call *l, tl_onnx_region **out)
{
    l->grows_by_any = false;
    if (find_extents(c, l, out))
        return true;
    if (l->axis_count == 0 || l->reason == NULL)
        return false;
    l->grows_by_any = true;
    return find_extents(c, l, out);
}

/* The counts before the first turn, and states that have room for all turns. */
static void begin_states(tl_onnx_call *c, tl_loop_call *l, tl_value **states, tl_value **counts)
{
    const tl_value *const *own = (const tl_value *const *)l->state;
    for (int i = 0; i < l->state_count; i++)
        states[i] = l->state[i];
    for (int k = 0; k < l->axis_count; k++) {
        const tl_loop_axis *a = &l->changing[k];
        counts[k] = a->is_slice ? tl_onnx_emit_scalar(c, TL_I64, 0)
                                : tl_onnx_emit_extent(c, own[a->value], a->axis);
        if (!a->is_slice)
            states[a->value] = tl_onnx_emit_first(c, states[a->value], a->axis, a->most);
    }
}

bool tl_make_loop(tl_onnx_call *c, tl_loop_call *l)
{
    tl_onnx_region *r;
    bool is_scan = l->scanned_count > 0;
    int conditions = is_scan ? 0 : 1, total = l->state_count + l->scan_count;
    if (!states_are_known(c, l) || !read_body(c, l, &r))
        return false;
    double again = 0;
    bool goes_on = is_scan || (tl_constant_number(l->outputs[0], &again) && again != 0);
    int64_t most = most_turns(c, l);
    tl_onnx_loop made = { .has_again = !goes_on, .most = most };
    tl_value **states = TL_NEW_ARRAY(c->arena, tl_value *, l->state_count + l->axis_count);
    tl_value **begun = TL_NEW_ARRAY(c->arena, tl_value *, l->state_count + 1);
    tl_value *counts[TL_LOOP_AXES];
    tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, 1 + total + l->axis_count);
    int *of = TL_NEW_ARRAY(c->arena, int, total); /* its place among the results */
    begin_states(c, l, begun, counts);
    if (!goes_on)
        outputs[made.output_count++] = l->outputs[0];
    for (int stacked = 0; stacked < 2; stacked++) {
        for (int i = 0; i < total; i++) {
            bool is_state = i < l->state_count && tl_sequence_of(c->import, l->state[i]) == NULL;
            if (is_state != (stacked == 0))
                continue;
            const tl_value *output = l->outputs[conditions + i];
            of[i] = made.output_count - made.has_again;
            outputs[made.output_count++] = l->outputs[conditions + i];
            if (is_state)
                states[made.state_count++] = begun[i];
            if (!fits_in_memory(output, is_state ? 1 : most) ||
                (!is_state && output->shape.rank == TL_MAX_RANK)) {
                l->reason = "results that may become larger than there is room for";
                return false;
            }
        }
        for (int k = 0; stacked == 0 && k < l->axis_count; k++) {
            outputs[made.output_count++] = l->changing[k].after;
            states[made.state_count++] = counts[k];
        }
    }
    made.states = states;
    made.outputs = outputs;
    if (l->scanned_turns != NULL)
        made.wanted = l->scanned_turns;
    else if (is_scan)
        made.wanted = tl_onnx_emit_extent(c, l->scanned[0], l->axes[0]);
    else if (l->wanted != NULL)
        made.wanted = tl_onnx_emit_reshape(c, tl_onnx_emit_cast(c, l->wanted, TL_I64), NULL, 0);
    if (l->may_vary &&
        !is_scan) /* a number that is written into a kernel can be another one for each call */
        made.wanted = tl_onnx_emit_with(c, TL_OP_MAX, made.wanted, 0);
    if (l->enters != NULL)
        made.enters = tl_onnx_emit_reshape(c, l->enters, NULL, 0);
    tl_value **results = tl_onnx_emit_loop(c, r, &made);
    tl_value *taken = results[made.output_count - made.has_again];
    double enters;
    bool is_exact = goes_on && l->turns == most && l->scanned_turns == NULL &&
                    (l->enters == NULL || tl_constant_number(l->enters, &enters));
    for (int i = 0; i < total; i++) {
        l->results[i] = results[of[i]];
        if (of[i] < made.state_count)
            continue;
        if (!is_exact)
            tl_set_count(c->import, l->results[i], 0, taken);
        if (i >= l->state_count)
            continue;
        tl_onnx_sequence all = *tl_sequence_of(c->import, l->state[i]);
        all.stack = l->results[i];
        l->results[i] = tl_sequence_value(c, &all);
    }
    for (int k = 0; k < l->axis_count; k++) {
        const tl_loop_axis *a = &l->changing[k];
        int at = a->is_slice ? l->state_count + a->value : a->value;
        tl_set_count(c->import, l->results[at], a->axis + a->is_slice,
                     results[made.state_count - l->axis_count + k]);
    }
    return true;
}
