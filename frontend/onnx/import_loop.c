/* frontend/onnx/import_loop.c: Loop and Scan.
 *
 * A short loop of a known number of turns is written out turn by turn; one that may end earlier keeps its state from then on:
 *
 *     Loop(4, c, x) {c', x' = body(x)}  ->  x1 = body(x), x2 = c1 ? body(x1) : x1, ...
 *
 * Every other becomes a node with a body (onnx_region.c), which a run takes as often as numbers and conditions say when it
 * is there. A body that cannot be one is written out, up to MOST_TURNS turns.
 *
 * Error: every turn rounds as its nodes do. */
#include <string.h>
#include "frontend/onnx/import_rules.h"
#include "frontend/onnx/onnx_counts.h"
#include "frontend/onnx/onnx_scope.h"
#include "frontend/onnx/onnx_sequences.h"
#include "runtime/base/checked.h"

enum {
    MOST_TURNS = 1024,      /* that are written out */
    MOST_VALUES = 256,      /* in a loop */
    FEW_TURNS = 4,          /* are written out whatever they do, */
    FEW_NODES = 512,        /* others where that makes no more nodes */
    MOST_STACKED = 1 << 30, /* elements of a result of all turns */
    STACKED_TURNS = 1024,   /* of which results are kept, where data decide how many there are */
};

typedef struct {
    Onnx__GraphProto *body;
    int64_t turns; /* known number of turns; -1: data decide */
    int state_count,
        scan_count; /* values that go around; results of which each turn gives a slice */
    tl_value *state[MOST_VALUES];
    tl_value **slices[MOST_VALUES]; /* of each scan output, one a turn */
    tl_value *outputs[2 * MOST_VALUES];
    tl_value *results[2 * MOST_VALUES]; /* states, then stacks of slices along a first axis */
    /* of a Loop */
    tl_value *wanted, *enters;
    /* of a Scan */
    int scanned_count, axes[MOST_VALUES];
    bool backwards[MOST_VALUES];
    tl_value *scanned[MOST_VALUES];
} loop;

static tl_status begin_loop(tl_onnx_call *c, loop *l, int state_count, int scan_count)
{
    if (l->body == NULL)
        return tl_call_bad(c, "its body is missing");
    if (state_count < 0 || scan_count < 0 || state_count > MOST_VALUES || scan_count > MOST_VALUES)
        return tl_call_unsupported(c, "more than %d values in a loop", MOST_VALUES);
    l->state_count = state_count;
    l->scan_count = scan_count;
    return TL_OK;
}

static const char *turn_prefix(tl_onnx_call *c, int64_t turn)
{
    return tl_arena_format(c->arena, "%s/%lld/", c->name, (long long)turn);
}

/* ---- written out ---- */

static tl_status begin_turns(tl_onnx_call *c, loop *l)
{
    if (l->turns > MOST_TURNS)
        return tl_call_unsupported(c, "a loop of %lld turns; at most %d are written out",
                                   (long long)l->turns, MOST_TURNS);
    for (int i = 0; i < l->scan_count; i++)
        l->slices[i] = TL_NEW_ARRAY(c->arena, tl_value *, l->turns);
    return TL_OK;
}

/* Slices of all turns along a new first axis. */
static tl_status stack_turns(tl_onnx_call *c, loop *l, int64_t turns)
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

static tl_status write_out_loop(tl_onnx_call *c, loop *l)
{
    tl_value *inputs[MOST_VALUES + 2], *active = NULL;
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

static tl_status write_out_scan(tl_onnx_call *c, loop *l)
{
    tl_value *inputs[MOST_VALUES];
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

/* ---- a node with a body ---- */

/* What a turn appends to a sequence takes its place among the results: one tensor. */
static tl_status find_appended(tl_onnx_call *c, const loop *l, int state, tl_value **output)
{
    const tl_onnx_sequence *s = tl_sequence_of(c->import, *output);
    if (s == NULL || s->before != l->state[state] || s->count != 1)
        return tl_call_unsupported(c, "a sequence to which a turn does not append one tensor");
    *output = s->items[0];
    return TL_OK;
}

/* A turn of the loop as a graph: its number and the state go in. */
static tl_status read_turn(tl_onnx_call *c, void *context)
{
    loop *l = context;
    tl_import *im = c->import;
    tl_onnx_region *r = im->region;
    tl_value *inputs[2 * MOST_VALUES + 2], *states[MOST_VALUES];
    const tl_shape scalar = { .rank = 0 };
    bool is_scan = l->scanned_count > 0;
    int count = 0, conditions = is_scan ? 0 : 1;
    tl_value *turn = tl_graph_value(r->graph, "turn", TL_I64, &scalar);
    tl_graph_add_input(r->graph, turn);
    for (int i = 0; i < l->state_count; i++) {
        const tl_value *v = l->state[i];
        if (tl_sequence_of(im, v) != NULL) { /* empty: what a turn appends is seen */
            states[i] = tl_sequence_value(c, &(tl_onnx_sequence){ .before = v });
            continue;
        }
        states[i] =
            tl_graph_value(r->graph, tl_arena_format(c->arena, "state.%d", i), v->dtype, &v->shape);
        tl_graph_add_input(r->graph, states[i]);
    }
    if (!is_scan) {
        inputs[count++] = turn;
        inputs[count++] = tl_onnx_emit_scalar(c, TL_BOOL, 1);
    }
    for (int i = 0; i < l->state_count; i++)
        inputs[count++] = states[i];
    for (int i = 0; i < l->scanned_count; i++) {
        tl_value *at = turn;
        if (l->backwards[i])
            at = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_scalar(c, TL_I64, (double)(l->turns - 1)),
                          turn);
        inputs[count++] =
            tl_onnx_emit_gather(c, TL_OP_GATHER, tl_region_capture(im, r, l->scanned[i]), at,
                                l->axes[i]);
    }
    TL_TRY(tl_import_body(c, l->body, tl_arena_format(c->arena, "%s/", c->name), count, inputs,
                          conditions + l->state_count + l->scan_count, l->outputs));
    for (int i = 0; i < l->state_count; i++)
        if (tl_sequence_of(im, l->state[i]) != NULL)
            TL_TRY(find_appended(c, l, i, &l->outputs[conditions + i]));
        else if (l->outputs[conditions + i]->dtype != l->state[i]->dtype ||
                 !tl_shape_equal(&l->outputs[conditions + i]->shape, &l->state[i]->shape))
            return tl_call_unsupported(c, "a state whose type changes from turn to turn");
    for (int i = 0; i < conditions + l->state_count + l->scan_count; i++)
        if (tl_counts_of(im, l->outputs[i]) != NULL || !l->outputs[i]->dtype_known ||
            !tl_shape_is_static(&l->outputs[i]->shape) ||
            tl_dtype_infos[l->outputs[i]->dtype].bits % 8 != 0)
            return tl_call_unsupported(c, "a result whose type is not known");
    if (!is_scan)
        l->outputs[0] = tl_onnx_emit_reshape(c, l->outputs[0], NULL, 0);
    return TL_OK;
}

/* Slices of how many turns are kept: 0 where nobody wants any. */
static bool wants_slices(const tl_onnx_call *c, const loop *l)
{
    bool wants = false;
    for (int i = 0; i < l->state_count; i++)
        wants |= tl_sequence_of(c->import, l->state[i]) != NULL;
    for (int i = 0; i < l->scan_count; i++)
        wants |= tl_call_wants(c, l->state_count + i);
    return wants;
}

static int64_t most_turns(const tl_onnx_call *c, const loop *l)
{
    int64_t most = c->import->most_turns;
    if (l->turns >= 0 && l->turns <= TL_ONNX_MOST_TURNS)
        return l->turns;
    if (most == 0)
        return wants_slices(c, l) ? STACKED_TURNS : TL_ONNX_MOST_TURNS;
    return most;
}

/* Slices of so many turns. */
static bool fits_in_memory(const tl_value *slice, int64_t turns)
{
    int64_t elements = tl_shape_elements(&slice->shape), all;
    return elements >= 0 && !tl_mul_overflows(elements, turns, &all) && all <= MOST_STACKED;
}

static bool states_are_known(const tl_onnx_call *c, const loop *l)
{
    for (int i = 0; i < l->state_count; i++) {
        const tl_onnx_sequence *sequence = tl_sequence_of(c->import, l->state[i]);
        if (sequence != NULL && sequence->stack == NULL && sequence->before == NULL)
            continue;
        if (l->state[i] == NULL || !l->state[i]->dtype_known ||
            !tl_shape_is_static(&l->state[i]->shape) ||
            tl_counts_of(c->import, l->state[i]) != NULL)
            return false;
    }
    for (int i = 0; i < l->scanned_count; i++)
        if (!tl_shape_is_static(&l->scanned[i]->shape) ||
            tl_counts_of(c->import, l->scanned[i]) != NULL)
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

/* False: its body cannot be one. */
static bool make_loop(tl_onnx_call *c, loop *l)
{
    tl_onnx_region *r;
    bool is_scan = l->scanned_count > 0;
    int conditions = is_scan ? 0 : 1;
    if (!states_are_known(c, l) || !tl_try_region(c, read_turn, l, &r))
        return false;
    double again = 0;
    bool goes_on = is_scan || (tl_constant_number(l->outputs[0], &again) && again != 0);
    int64_t most = most_turns(c, l);
    tl_onnx_loop made = { .has_again = !goes_on, .most = most };
    tl_value **states = TL_NEW_ARRAY(c->arena, tl_value *, l->state_count);
    tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, 1 + l->state_count + l->scan_count);
    int *of = TL_NEW_ARRAY(c->arena, int,
                           l->state_count + l->scan_count); /* its place among the results */
    if (!goes_on)
        outputs[made.output_count++] = l->outputs[0];
    for (int stacked = 0; stacked < 2; stacked++)
        for (int i = 0; i < l->state_count + l->scan_count; i++) {
            bool is_state = i < l->state_count && tl_sequence_of(c->import, l->state[i]) == NULL;
            if (is_state != (stacked == 0))
                continue;
            of[i] = made.output_count - made.has_again;
            outputs[made.output_count++] = l->outputs[conditions + i];
            if (is_state)
                states[made.state_count++] = l->state[i];
            else if (l->outputs[conditions + i]->shape.rank == TL_MAX_RANK ||
                     !fits_in_memory(l->outputs[conditions + i], most))
                return false;
        }
    made.states = states;
    made.outputs = outputs;
    if (is_scan)
        made.wanted = tl_onnx_emit_scalar(c, TL_I64, (double)l->turns);
    else if (l->wanted != NULL)
        made.wanted = tl_onnx_emit_reshape(c, tl_onnx_emit_cast(c, l->wanted, TL_I64), NULL, 0);
    if (l->enters != NULL)
        made.enters = tl_onnx_emit_reshape(c, l->enters, NULL, 0);
    tl_value **results = tl_onnx_emit_loop(c, r, &made);
    tl_value *taken = results[made.output_count - made.has_again];
    double enters;
    bool is_exact = goes_on && l->turns == most &&
                    (l->enters == NULL || tl_constant_number(l->enters, &enters));
    for (int i = 0; i < l->state_count + l->scan_count; i++) {
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
    return true;
}

/* Whether the loop's nodes may as well be there once a turn. */
static bool is_short(const loop *l)
{
    return l->turns >= 0 &&
           (l->turns <= FEW_TURNS || (size_t)l->turns * l->body->n_node <= FEW_NODES);
}

/* ---- Loop ---- */

/* Inputs: turns at most, a condition, the state; its body gets the turn's number, the condition and the state. */
tl_status tl_import_loop(tl_onnx_call *c)
{
    loop *l = TL_NEW(c->arena, loop);
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
        l->turns = turns > 0 ? turns < 0x1p62 ? (int64_t)turns : INT64_MAX : 0;
    if (l->enters != NULL)
        data_end = !tl_constant_number(l->enters, &enters);
    if (enters == 0)
        l->turns = 0;
    if (l->turns < 0 && c->import->is_open)
        return tl_call_unknown(c, "a loop whose number of turns is not known yet");
    bool is_node = !(is_short(l) && !data_end) && make_loop(c, l);
    if (!is_node) {
        if (l->wanted != NULL && l->turns < 0) {
            TL_TRY(tl_need_scalar(c, 0, -1, &turns));
            l->turns = turns > 0 ? (int64_t)turns : 0;
        }
        if (l->enters != NULL)
            TL_TRY(tl_call_decide(c, &c->inputs[1]));
        l->enters = tl_call_input(c, 1);
        if (l->turns < 0)
            return tl_call_unsupported(c,
                                       "a loop of any number of turns, whose body depends on them");
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

static tl_status run_scan(tl_onnx_call *c, loop *l)
{
    if (l->turns == 0)
        return tl_call_unsupported(c, "a loop without turns");
    return !is_short(l) && make_loop(c, l) ? TL_OK : write_out_scan(c, l);
}

/* What a turn takes a slice of, along which axis, from which end. */
static tl_status begin_scanned(tl_onnx_call *c, loop *l, int index, tl_value *x, int64_t axis,
                               int64_t backwards)
{
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_onnx_axis(c, axis, x->shape.rank, &l->axes[index]));
    int64_t turns = x->shape.dims[l->axes[index]].extent;
    if (l->turns >= 0 && turns != l->turns)
        return tl_call_bad(c, "scanned inputs of %lld and %lld turns", (long long)l->turns,
                           (long long)turns);
    l->turns = turns;
    l->scanned[index] = x;
    l->backwards[index] = backwards != 0;
    return TL_OK;
}

static tl_status count_scanned(tl_onnx_call *c, loop *l, int input_count)
{
    int64_t scanned = tl_call_int(c, "num_scan_inputs", 0);
    l->body = tl_call_graph(c, "body");
    l->turns = -1;
    if (scanned < 1 || scanned > input_count || input_count > MOST_VALUES)
        return tl_call_bad(c, "%lld scanned inputs of %d", (long long)scanned, input_count);
    l->scanned_count = (int)scanned;
    int state_count = input_count - (int)scanned;
    return begin_loop(c, l, state_count,
                      l->body != NULL ? (int)l->body->n_output - state_count : 0);
}

/* Inputs: the state, then what a turn takes a slice of. */
tl_status tl_import_scan(tl_onnx_call *c)
{
    loop *l = TL_NEW(c->arena, loop);
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
    loop *l = TL_NEW(c->arena, loop);
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
