/* frontend/onnx/import_control.c: branches and loops, whose bodies join the graph.
 *
 * A branch that constants, shapes or values of inputs decide is the only one that is read. Where data decide, both are
 * computed, and each result is chosen by the condition. A loop whose number of turns is known is written out turn by turn; one
 * that may end earlier keeps its state from then on.
 *
 *     Loop(4, c, x) {c', x' = body(x)}  ->  x1 = body(x), x2 = c1 ? body(x1) : x1, ...
 *
 * Error: every turn rounds as its nodes do. */
#include <string.h>
#include "frontend/onnx/import_rules.h"
#include "frontend/onnx/onnx_scope.h"

enum { MOST_TURNS = 1024, MOST_VALUES = 256 };

/* ---- If ---- */

static tl_status take_branch(tl_onnx_call *c, const char *name, tl_value **outputs)
{
    const char *prefix = tl_arena_format(c->arena, "%s/", c->name);
    return tl_import_body(c, tl_call_graph(c, name), prefix, 0, NULL, c->output_count, outputs);
}

/* Both branches, which have to agree in what they give. */
static tl_status take_both(tl_onnx_call *c)
{
    tl_value **yes = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    tl_value **no = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    TL_TRY(take_branch(c, "then_branch", yes));
    TL_TRY(take_branch(c, "else_branch", no));
    tl_value *condition = tl_onnx_emit_reshape(c, c->inputs[0], NULL, 0);
    for (int i = 0; i < c->output_count; i++) {
        if (!tl_call_wants(c, i))
            continue;
        bool known = tl_shape_is_static(&yes[i]->shape) && tl_shape_is_static(&no[i]->shape);
        if (!known || yes[i]->dtype != no[i]->dtype ||
            !tl_shape_equal(&yes[i]->shape, &no[i]->shape))
            return tl_call_unknown(c, "branches of different shapes, which data decide");
        tl_result(c, i, tl_onnx_emit_where(c, condition, yes[i], no[i]));
    }
    return TL_OK;
}

tl_status tl_import_if(tl_onnx_call *c)
{
    double condition;
    size_t needed = tl_map_count(c->import->needed);
    if (!tl_call_has(c, "then_branch") || !tl_call_has(c, "else_branch"))
        return tl_call_bad(c, "both branches are required");
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(tl_call_decide(c, &c->inputs[0]));
    if (tl_constant_number(c->inputs[0], &condition)) {
        tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
        TL_TRY(take_branch(c, condition != 0 ? "then_branch" : "else_branch", outputs));
        for (int i = 0; i < c->output_count; i++)
            tl_result(c, i, outputs[i]);
        return TL_OK;
    }
    if (tl_map_count(c->import->needed) > needed || c->import->is_open)
        return tl_call_unknown(c, "a branch that is not decided yet");
    return take_both(c);
}

/* ---- loops ---- */

typedef struct {
    Onnx__GraphProto *body;
    int state_count,
        scan_count; /* values that go around; results of which each turn gives a slice */
    tl_value *state[MOST_VALUES];
    tl_value **slices[MOST_VALUES]; /* of each scan output, one a turn */
    tl_value *outputs[2 * MOST_VALUES];
} loop;

static tl_status begin_loop(tl_onnx_call *c, loop *l, int state_count, int scan_count,
                            int64_t turns)
{
    if (l->body == NULL)
        return tl_call_bad(c, "its body is missing");
    if (state_count < 0 || scan_count < 0 || state_count > MOST_VALUES || scan_count > MOST_VALUES)
        return tl_call_unsupported(c, "more than %d values in a loop", MOST_VALUES);
    if (turns > MOST_TURNS)
        return tl_call_unsupported(c, "a loop of %lld turns; at most %d are written out",
                                   (long long)turns, MOST_TURNS);
    l->state_count = state_count;
    l->scan_count = scan_count;
    for (int i = 0; i < scan_count; i++)
        l->slices[i] = TL_NEW_ARRAY(c->arena, tl_value *, turns);
    return TL_OK;
}

static const char *turn_prefix(tl_onnx_call *c, int64_t turn)
{
    return tl_arena_format(c->arena, "%s/%lld/", c->name, (long long)turn);
}

/* Slices of all turns along a new axis, in their order or back to front. */
static tl_status stack(tl_onnx_call *c, tl_value **slices, int64_t turns, int64_t axis,
                       bool backwards, tl_value **out)
{
    tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, turns);
    int place;
    for (int64_t t = 0; t < turns; t++) {
        tl_value *v = slices[backwards ? turns - 1 - t : t];
        TL_TRY(tl_need_shape(c, v));
        TL_TRY(tl_onnx_axis(c, axis, v->shape.rank + 1, &place));
        parts[t] = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, v, 1, (int64_t[]){ place });
    }
    *out = tl_onnx_emit_concat(c, (int)turns, parts, place);
    return TL_OK;
}

/* The state after a turn that may not have been taken. */
static tl_status choose_state(tl_onnx_call *c, tl_value *active, tl_value *old, tl_value *new,
                              tl_value **out)
{
    TL_TRY(tl_need_shape(c, old));
    TL_TRY(tl_need_shape(c, new));
    if (!tl_shape_equal(&old->shape, &new->shape))
        return tl_call_unsupported(c, "a state whose shape changes in a loop that data end");
    *out = tl_onnx_emit_where(c, active, new, old);
    return TL_OK;
}

/* The state, and what a turn takes a slice of, are all given: inputs from `first` on. */
static tl_status need_all(tl_onnx_call *c, int first)
{
    for (int i = first; i < c->input_count; i++)
        if (tl_call_input(c, i) == NULL)
            return tl_call_bad(c, "input %d is required", i);
    return TL_OK;
}

/* Inputs: turns at most, a condition, the state; its body gets the turn's number, the condition and the state. */
tl_status tl_import_loop(tl_onnx_call *c)
{
    loop *l = TL_NEW(c->arena, loop);
    double turns = -1, goes_on = 1;
    l->body = tl_call_graph(c, "body");
    tl_value *limit = tl_call_input(c, 0), *condition = tl_call_input(c, 1), *active = NULL;
    if (limit != NULL)
        TL_TRY(tl_need_scalar(c, 0, -1, &turns));
    if (condition != NULL)
        TL_TRY(tl_call_decide(c, &c->inputs[1]));
    condition = tl_call_input(c, 1);
    if (condition != NULL && !tl_constant_number(condition, &goes_on))
        active = tl_onnx_emit_reshape(c, condition, NULL, 0);
    if (goes_on == 0)
        turns = 0;
    if (turns < 0)
        return tl_call_unsupported(c, "a loop of any number of turns");
    int state_count = c->input_count > 2 ? c->input_count - 2 : 0;
    int scan_count = l->body != NULL ? (int)l->body->n_output - 1 - state_count : 0;
    TL_TRY(need_all(c, 2));
    TL_TRY(begin_loop(c, l, state_count, scan_count, (int64_t)turns));
    tl_value *inputs[MOST_VALUES + 2];
    memcpy(l->state, c->inputs + 2, sizeof *l->state * (size_t)state_count);
    int64_t turn = 0;
    for (; turn < (int64_t)turns && goes_on != 0; turn++) {
        inputs[0] = tl_onnx_emit_scalar(c, TL_I64, (double)turn);
        inputs[1] = active != NULL ? active : tl_onnx_emit_scalar(c, TL_BOOL, 1);
        memcpy(inputs + 2, l->state, sizeof *l->state * (size_t)state_count);
        TL_TRY(tl_import_body(c, l->body, turn_prefix(c, turn), state_count + 2, inputs,
                              1 + state_count + scan_count, l->outputs));
        for (int i = 0; i < state_count; i++) {
            tl_value *new = l->outputs[1 + i];
            if (active != NULL)
                TL_TRY(choose_state(c, active, l->state[i], new, &new));
            l->state[i] = new;
        }
        for (int i = 0; i < scan_count; i++)
            l->slices[i][turn] = l->outputs[1 + state_count + i];
        TL_TRY(tl_call_decide(c, &l->outputs[0]));
        if (tl_constant_number(l->outputs[0], &goes_on))
            continue;
        tl_value *next = tl_onnx_emit_reshape(c, l->outputs[0], NULL, 0);
        active = active != NULL ? tl_emit2(c, TL_OP_AND, active, next) : next;
    }
    if (active != NULL && scan_count > 0)
        return tl_call_unsupported(c, "results of turns whose number data decide");
    for (int i = 0; i < state_count; i++)
        tl_result(c, i, l->state[i]);
    for (int i = 0; i < scan_count; i++) {
        tl_value *y;
        if (!tl_call_wants(c, state_count + i))
            continue;
        if (turn == 0)
            return tl_call_unsupported(c, "results of a loop without turns");
        TL_TRY(stack(c, l->slices[i], turn, 0, false, &y));
        tl_result(c, state_count + i, y);
    }
    return TL_OK;
}

/* The `index`-th number of a list, or what it is without one. */
static tl_status number_of(tl_onnx_call *c, const char *name, int count, int index, int64_t *out)
{
    const int64_t *list;
    int given = tl_call_ints(c, name, &list);
    *out = 0;
    if (given >= 0 && given != count)
        return tl_call_bad(c, "%s has %d numbers, not %d", name, given, count);
    if (given >= 0)
        *out = list[index];
    return TL_OK;
}

/* Inputs: the state, then what a turn takes a slice of. */
tl_status tl_import_scan(tl_onnx_call *c)
{
    loop *l = TL_NEW(c->arena, loop);
    int64_t scanned = tl_call_int(c, "num_scan_inputs", 0), turns = -1, axis, backwards;
    tl_value *inputs[MOST_VALUES];
    l->body = tl_call_graph(c, "body");
    if (scanned < 1 || scanned > c->input_count || c->input_count > MOST_VALUES)
        return tl_call_bad(c, "%lld scanned inputs of %d", (long long)scanned, c->input_count);
    TL_TRY(need_all(c, 0));
    int state_count = c->input_count - (int)scanned, axes[MOST_VALUES];
    for (int i = 0; i < scanned; i++) {
        const tl_value *x = c->inputs[state_count + i];
        TL_TRY(tl_need_shape(c, x));
        TL_TRY(number_of(c, "scan_input_axes", (int)scanned, i, &axis));
        TL_TRY(tl_onnx_axis(c, axis, x->shape.rank, &axes[i]));
        if (turns >= 0 && x->shape.dims[axes[i]].extent != turns)
            return tl_call_bad(c, "scanned inputs of %lld and %lld turns", (long long)turns,
                               (long long)x->shape.dims[axes[i]].extent);
        turns = x->shape.dims[axes[i]].extent;
    }
    int scan_count = l->body != NULL ? (int)l->body->n_output - state_count : 0;
    TL_TRY(begin_loop(c, l, state_count, scan_count, turns));
    if (turns == 0)
        return tl_call_unsupported(c, "a loop without turns");
    memcpy(l->state, c->inputs, sizeof *l->state * (size_t)state_count);
    for (int64_t turn = 0; turn < turns; turn++) {
        memcpy(inputs, l->state, sizeof *inputs * (size_t)state_count);
        for (int i = 0; i < scanned; i++) {
            int64_t place = axes[i];
            TL_TRY(number_of(c, "scan_input_directions", (int)scanned, i, &backwards));
            tl_value *slice = tl_onnx_emit_slice(c, c->inputs[state_count + i], axes[i],
                                                 backwards ? turns - 1 - turn : turn, 1);
            inputs[state_count + i] = tl_onnx_emit_axes(c, TL_OP_SQUEEZE, slice, 1, &place);
        }
        TL_TRY(tl_import_body(c, l->body, turn_prefix(c, turn), c->input_count, inputs,
                              state_count + scan_count, l->outputs));
        memcpy(l->state, l->outputs, sizeof *l->state * (size_t)state_count);
        for (int i = 0; i < scan_count; i++)
            l->slices[i][turn] = l->outputs[state_count + i];
    }
    for (int i = 0; i < state_count; i++)
        tl_result(c, i, l->state[i]);
    for (int i = 0; i < scan_count; i++) {
        tl_value *y;
        TL_TRY(number_of(c, "scan_output_axes", scan_count, i, &axis));
        TL_TRY(number_of(c, "scan_output_directions", scan_count, i, &backwards));
        TL_TRY(stack(c, l->slices[i], turns, axis, backwards != 0, &y));
        tl_result(c, state_count + i, y);
    }
    return TL_OK;
}
