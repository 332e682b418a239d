/* frontend/import/import_loop.c: Loop and Scan.
 *
 * A short loop of a known number of turns is written out turn by turn; one that may end earlier keeps its state from then on:
 *
 *     Loop(4, c, x) {c', x' = body(x)}  ->  x1 = body(x), x2 = c1 ? body(x1) : x1, ...
 *
 * Every other becomes a node with a body (import_loop_node.c). A body that cannot be one is written out, up to MOST_TURNS
 * turns; so is one whose states change their extents while a known number of turns goes by.
 *
 * Error: every turn rounds as its nodes do. */
#include <string.h>
#include "frontend/import/import_loop.h"
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/value_notes.h"
#include "runtime/base/checked.h"

enum {
    MOST_TURNS = 1024, /* that are written out */
    FEW_TURNS = 4,     /* are written out whatever they do, */
    FEW_NODES = 512,   /* others where that makes no more nodes */
};

static tl_status begin_loop(tl_onnx_call *c, tl_loop_call *l, int state_count, int scan_count)
{
    if (l->body == NULL)
        return tl_call_bad(c, "its body is missing");
    if (state_count < 0 || scan_count < 0 || state_count > TL_LOOP_VALUES ||
        scan_count > TL_LOOP_VALUES)
        return tl_call_unsupported(c, "more than %d values in a loop", TL_LOOP_VALUES);
    l->state_count = state_count;
    l->scan_count = scan_count;
    return TL_OK;
}

static const char *turn_prefix(tl_onnx_call *c, int64_t turn)
{
    return tl_arena_format(c->arena, "%s/%lld/", c->name, (long long)turn);
}

/* ---- written out ---- */

static tl_status begin_turns(tl_onnx_call *c, tl_loop_call *l)
{
    if (l->turns > MOST_TURNS)
        return tl_call_unsupported(c, "a loop of %lld turns; at most %d are written out",
                                   (long long)l->turns, MOST_TURNS);
    for (int i = 0; i < l->scan_count; i++)
        l->slices[i] = TL_NEW_ARRAY(c->arena, tl_value *, l->turns);
    return TL_OK;
}

/* Slices of all turns along a new first axis. */
static tl_status stack_turns(tl_onnx_call *c, tl_loop_call *l, int64_t turns)
{
    for (int i = 0; i < l->scan_count; i++) {
        tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, turns);
        for (int64_t t = 0; t < turns; t++) {
            TL_TRY(tl_need_shape(c, l->slices[i][t]));
            parts[t] = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, l->slices[i][t], 1, (int64_t[]){ 0 });
        }
        if (turns > 0)
            l->results[l->state_count + i] = tl_onnx_emit_concat(c, (int)turns, parts, 0);
    }
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

static tl_status write_out_loop(tl_onnx_call *c, tl_loop_call *l)
{
    tl_value *inputs[TL_LOOP_VALUES + 2], *active = NULL;
    double goes_on = 1;
    int64_t turn = 0;
    TL_TRY(begin_turns(c, l));
    if (l->enters != NULL && !tl_constant_number(l->enters, &goes_on))
        active = tl_onnx_emit_reshape(c, l->enters, NULL, 0);
    for (; turn < l->turns && goes_on != 0; turn++) {
        inputs[0] = tl_onnx_emit_scalar(c, TL_I64, (double)turn);
        inputs[1] = active != NULL ? active : tl_onnx_emit_scalar(c, TL_BOOL, 1);
        memcpy(inputs + 2, l->state, sizeof *l->state * (size_t)l->state_count);
        TL_TRY(tl_import_body(c, l->body, turn_prefix(c, turn), l->state_count + 2, inputs,
                              1 + l->state_count + l->scan_count, l->outputs));
        for (int i = 0; i < l->state_count; i++) {
            tl_value *new = l->outputs[1 + i];
            if (active != NULL)
                TL_TRY(choose_state(c, active, l->state[i], new, &new));
            l->state[i] = new;
        }
        for (int i = 0; i < l->scan_count; i++)
            l->slices[i][turn] = l->outputs[1 + l->state_count + i];
        TL_TRY(tl_call_decide(c, &l->outputs[0]));
        if (tl_constant_number(l->outputs[0], &goes_on))
            continue;
        tl_value *next = tl_onnx_emit_reshape(c, l->outputs[0], NULL, 0);
        active = active != NULL ? tl_emit2(c, TL_OP_AND, active, next) : next;
    }
    if (active != NULL && l->scan_count > 0)
        return tl_call_unsupported(c, "results of turns whose number data decide");
    memcpy(l->results, l->state, sizeof *l->state * (size_t)l->state_count);
    return stack_turns(c, l, turn);
}

static tl_status write_out_scan(tl_onnx_call *c, tl_loop_call *l)
{
    tl_value *inputs[TL_LOOP_VALUES];
    TL_TRY(begin_turns(c, l));
    for (int64_t turn = 0; turn < l->turns; turn++) {
        memcpy(inputs, l->state, sizeof *inputs * (size_t)l->state_count);
        for (int i = 0; i < l->scanned_count; i++) {
            int64_t place = l->axes[i];
            tl_value *slice = tl_onnx_emit_slice(c, l->scanned[i], l->axes[i],
                                                 l->backwards[i] ? l->turns - 1 - turn : turn, 1);
            inputs[l->state_count + i] = tl_onnx_emit_axes(c, TL_OP_SQUEEZE, slice, 1, &place);
        }
        TL_TRY(tl_import_body(c, l->body, turn_prefix(c, turn), l->state_count + l->scanned_count,
                              inputs, l->state_count + l->scan_count, l->outputs));
        memcpy(l->state, l->outputs, sizeof *l->state * (size_t)l->state_count);
        for (int i = 0; i < l->scan_count; i++)
            l->slices[i][turn] = l->outputs[l->state_count + i];
    }
    memcpy(l->results, l->state, sizeof *l->state * (size_t)l->state_count);
    return stack_turns(c, l, l->turns);
}

/* Whether the loop stays one because its number of turns may be another one for other extents. What the file itself says may
 * not. */
static bool may_vary(tl_onnx_call *c, const tl_value *wanted)
{
    if (c->graph->kept == NULL || (wanted != NULL && tl_notes_of(wanted)->folded == NULL))
        return false;
    c->import->met_loops = true;
    return c->import->keeps_loops;
}

/* Whether the loop's nodes may as well be there once a turn. */
static bool is_short(const tl_loop_call *l)
{
    return l->turns >= 0 && !l->may_vary &&
           (l->turns <= FEW_TURNS || (size_t)l->turns * l->body->n_node <= FEW_NODES);
}

/* ---- Loop ---- */

static int64_t whole_turns(double turns)
{
    return turns > 0 ? turns < 0x1p62 ? (int64_t)turns : INT64_MAX : 0;
}

/* Inputs: turns at most, a condition, the state; its body gets the turn's number, the condition and the state. */
tl_status tl_import_loop(tl_onnx_call *c)
{
    tl_loop_call *l = TL_NEW(c->arena, tl_loop_call);
    double turns, enters = 1;
    bool data_end = false;
    l->body = tl_call_graph(c, "body");
    l->wanted = tl_call_input(c, 0);
    l->enters = tl_call_input(c, 1);
    l->turns = -1;
    int state_count = c->input_count > 2 ? c->input_count - 2 : 0;
    for (int i = 2; i < c->input_count; i++)
        if (c->inputs[i] == NULL)
            return tl_call_bad(c, "its state %d is missing", i - 2);
    TL_TRY(begin_loop(c, l, state_count,
                      l->body != NULL ? (int)l->body->n_output - 1 - state_count : 0));
    if (state_count > 0)
        memcpy(l->state, c->inputs + 2, sizeof *l->state * (size_t)state_count);
    if (l->wanted != NULL && tl_constant_number(l->wanted, &turns))
        l->turns = whole_turns(turns);
    l->may_vary = l->turns >= 0 && may_vary(c, l->wanted);
    if (l->enters != NULL)
        data_end = !tl_constant_number(l->enters, &enters);
    if (enters == 0)
        l->turns = 0;
    if (l->turns < 0 && c->import->is_open)
        return tl_call_unknown(c, "a loop whose number of turns is not known yet");
    l->may_change = l->turns < 0 || l->turns > MOST_TURNS || data_end || l->may_vary;
    bool is_node = !(is_short(l) && !data_end) && tl_make_loop(c, l);
    if (!is_node) {
        if (l->wanted != NULL && l->turns < 0) {
            TL_TRY(tl_need_scalar(c, 0, -1, &turns));
            l->turns = whole_turns(turns);
        }
        if (l->enters != NULL)
            TL_TRY(tl_call_decide(c, &c->inputs[1]));
        l->enters = tl_call_input(c, 1);
        if (l->turns < 0 || (l->reason != NULL && l->turns > MOST_TURNS))
            return tl_call_unsupported(c, "a loop of any number of turns with %s",
                                       l->reason != NULL ? l->reason
                                                         : "a body that depends on them");
        TL_TRY(write_out_loop(c, l));
    }
    for (int i = 0; i < state_count + l->scan_count; i++) {
        if (tl_call_wants(c, i) && l->results[i] == NULL)
            return tl_call_unsupported(c, "results of a loop without turns");
        if (tl_call_wants(c, i))
            tl_result(c, i, l->results[i]);
    }
    return TL_OK;
}

/* ---- Scan ---- */

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

static tl_status run_scan(tl_onnx_call *c, tl_loop_call *l)
{
    if (l->turns == 0)
        return tl_call_unsupported(c, "a loop without turns");
    l->may_vary = may_vary(c, NULL);
    l->may_change = l->turns > MOST_TURNS || l->scanned_turns != NULL || l->may_vary;
    if ((!is_short(l) || l->scanned_turns != NULL) && tl_make_loop(c, l))
        return TL_OK;
    if (l->scanned_turns != NULL)
        return tl_call_unsupported(c, "as many turns as data say, with %s",
                                   l->reason != NULL ? l->reason : "a body that depends on them");
    return write_out_scan(c, l);
}

/* What a turn takes a slice of, along which axis, from which end. */
static tl_status begin_scanned(tl_onnx_call *c, tl_loop_call *l, int index, tl_value *x,
                               int64_t axis, int64_t backwards)
{
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_onnx_axis(c, axis, x->shape.rank, &l->axes[index]));
    int64_t turns = x->shape.dims[l->axes[index]].extent;
    tl_value *count = tl_count_at(c->import, x, l->axes[index]);
    if (count != NULL && l->scanned_turns == NULL)
        l->scanned_turns = tl_onnx_emit_count(c, count);
    bool is_counted = l->scanned_turns != NULL;
    if (l->turns >= 0 && turns != l->turns && !is_counted)
        return tl_call_bad(c, "scanned inputs of %lld and %lld turns", (long long)l->turns,
                           (long long)turns);
    /* the model says that they are as many: the shortest has room for all */
    l->turns = l->turns < 0 ? turns : tl_min64(l->turns, turns);
    l->scanned[index] = x;
    l->backwards[index] = backwards != 0;
    return TL_OK;
}

static tl_status count_scanned(tl_onnx_call *c, tl_loop_call *l, int input_count)
{
    int64_t scanned = tl_call_int(c, "num_scan_inputs", 0);
    l->body = tl_call_graph(c, "body");
    l->turns = -1;
    if (scanned < 1 || scanned > input_count || input_count > TL_LOOP_VALUES)
        return tl_call_bad(c, "%lld scanned inputs of %d", (long long)scanned, input_count);
    l->scanned_count = (int)scanned;
    int state_count = input_count - (int)scanned;
    return begin_loop(c, l, state_count,
                      l->body != NULL ? (int)l->body->n_output - state_count : 0);
}

/* Inputs: the state, then what a turn takes a slice of. */
tl_status tl_import_scan(tl_onnx_call *c)
{
    tl_loop_call *l = TL_NEW(c->arena, tl_loop_call);
    int64_t axis, backwards;
    TL_TRY(count_scanned(c, l, c->input_count));
    int state_count = l->state_count, scan_count = l->scan_count;
    for (int i = 0; i < l->scanned_count; i++) {
        TL_TRY(number_of(c, "scan_input_axes", l->scanned_count, i, &axis));
        TL_TRY(number_of(c, "scan_input_directions", l->scanned_count, i, &backwards));
        TL_TRY(begin_scanned(c, l, i, c->inputs[state_count + i], axis, backwards));
    }
    memcpy(l->state, c->inputs, sizeof *l->state * (size_t)state_count);
    TL_TRY(run_scan(c, l));
    for (int i = 0; i < state_count; i++)
        tl_result(c, i, l->results[i]);
    for (int i = 0; i < scan_count; i++) {
        tl_value *y = l->results[state_count + i];
        int64_t perm[TL_MAX_RANK];
        int place;
        TL_TRY(number_of(c, "scan_output_axes", scan_count, i, &axis));
        TL_TRY(number_of(c, "scan_output_directions", scan_count, i, &backwards));
        TL_TRY(tl_onnx_axis(c, axis, y->shape.rank, &place));
        if (backwards != 0)
            y = tl_onnx_emit_reverse(c, y, 0);
        for (int a = 0; a < y->shape.rank; a++)
            perm[a] = a < place ? a + 1 : a == place ? 0 : a;
        tl_result(c, state_count + i, place != 0 ? tl_onnx_emit_transpose(c, y, perm) : y);
    }
    return TL_OK;
}

/* The row of a batch. */
static tl_value *row_of(tl_onnx_call *c, tl_value *x, int64_t row)
{
    int64_t first = 0;
    return tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, x, 0, row, 1), 1, &first);
}

/* How many elements of each row count; the others are zero in the results. */
static tl_status row_turns(tl_onnx_call *c, int64_t batch, int64_t turns, const int64_t **out)
{
    int count;
    *out = NULL;
    if (tl_call_input(c, 0) == NULL)
        return TL_OK;
    TL_TRY(tl_need_i64(c, 0, out, &count));
    if (count != batch)
        return tl_call_bad(c, "%d lengths for %lld rows", count, (long long)batch);
    for (int64_t i = 0; i < batch; i++)
        if ((*out)[i] < 1 || (*out)[i] > turns)
            return tl_call_bad(c, "row %lld has length %lld of %lld", (long long)i,
                               (long long)(*out)[i], (long long)turns);
    return TL_OK;
}

/* Opset 8: behind the lengths of the rows everything has a batch in front, and every row is a scan of its own. */
tl_status tl_import_scan_rows(tl_onnx_call *c)
{
    tl_loop_call *l = TL_NEW(c->arena, tl_loop_call);
    int64_t backwards;
    const int64_t *lengths;
    if (c->input_count < 2)
        return tl_call_bad(c, "it has %d inputs, not lengths and what is scanned", c->input_count);
    TL_TRY(count_scanned(c, l, c->input_count - 1));
    tl_value **inputs = c->inputs + 1;
    int state_count = l->state_count, scanned_count = l->scanned_count;
    for (int i = 0; i < state_count + scanned_count; i++)
        TL_TRY(tl_need_shape(c, inputs[i]));
    const tl_shape *first = &inputs[state_count]->shape;
    if (first->rank < 2)
        return tl_call_bad(c, "what is scanned has %d axes, not a batch and turns", first->rank);
    int64_t batch = first->dims[0].extent;
    for (int i = 0; i < state_count + scanned_count; i++)
        if (inputs[i]->shape.rank < 1 || inputs[i]->shape.dims[0].extent != batch)
            return tl_call_bad(c, "its inputs are not all of %lld rows", (long long)batch);
    if (batch < 1 || batch > MOST_TURNS)
        return tl_call_unsupported(c, "a batch of %lld rows", (long long)batch);
    TL_TRY(row_turns(c, batch, first->dims[1].extent, &lengths));
    int count = state_count + l->scan_count;
    tl_value ***rows = TL_NEW_ARRAY(c->arena, tl_value **, count);
    for (int i = 0; i < count; i++)
        rows[i] = TL_NEW_ARRAY(c->arena, tl_value *, batch);
    for (int64_t row = 0; row < batch; row++) {
        l->turns = -1;
        for (int i = 0; i < state_count; i++)
            l->state[i] = row_of(c, inputs[i], row);
        for (int i = 0; i < scanned_count; i++) {
            tl_value *x = row_of(c, inputs[state_count + i], row);
            TL_TRY(number_of(c, "directions", scanned_count, i, &backwards));
            TL_TRY(tl_need_shape(c, x));
            if (lengths != NULL && x->shape.rank > 0)
                x = tl_onnx_emit_slice(c, x, 0, 0, lengths[row]);
            TL_TRY(begin_scanned(c, l, i, x, 0, backwards));
        }
        TL_TRY(run_scan(c, l));
        for (int i = 0; i < count; i++) {
            tl_value *y = l->results[i];
            int64_t pads[2 * TL_MAX_RANK] = { 0 };
            TL_TRY(tl_need_shape(c, y));
            if (i >= state_count && lengths != NULL) {
                pads[y->shape.rank] = first->dims[1].extent - lengths[row];
                y = tl_onnx_emit_pad(c, y, pads, 0);
            }
            rows[i][row] = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, y, 1, (int64_t[]){ 0 });
        }
    }
    for (int i = 0; i < count; i++)
        tl_result(c, i, tl_onnx_emit_concat(c, (int)batch, rows[i], 0));
    return TL_OK;
}
