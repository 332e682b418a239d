/* frontend/graph/assign_windows.c: values that lie inside another value's storage, so that nothing copies them.
 *
 *     y = Concat(a, b, c)     a, b and c are windows of y: what makes them writes there
 *     y = Slice(x)            y is a window of x: what reads it reads there
 *
 *     y  [1, 12, H, W, 16]    |  a: 4 blocks  |  b: 2  |       c: 6        |
 *
 * A window is one piece of memory, a pointer into the whole: axes outside of the concatenated one have extent 1 (of
 * several images blocks of channels come first: assign_blocks.c), both lie in the same blocks, whole blocks of them, with
 * the same halo, and it begins at a multiple of 64 bytes. So kernels
 * do not know of windows, and their workloads are the same wherever they write. A value lies in one whole: of two Concats
 * that read it the later has it, the other copies. A Concat has windows for all of its parts or for none, and only
 * where what makes most of it would write to memory anyway: elementwise parts melt into the copy. */
#include "frontend/graph/graph_passes.h"
#include <string.h>
#include "frontend/value_notes.h"
#include "frontend/node/graph_questions.h"
#include "runtime/base/map.h"

enum { ALIGNMENT = 64 }; /* of what kernels get */

/* What is known of a value while windows are looked for. */
typedef struct {
    int readers;
    bool stored;    /* in memory, whatever becomes of its Concat */
    tl_value *root; /* the storage that it would lie in */
} fact;

typedef struct {
    tl_graph *graph;
    fact *facts;  /* one a value */
    bool *chosen; /* one a node: a Concat or Slice that may move nothing */
} state;

static fact *fact_of(const state *s, const tl_value *v)
{
    return &s->facts[v->index];
}

static bool is_stored(const state *s, const tl_node *n)
{
    const tl_value *y = n->outputs[0];
    if (!tl_is_injective(n) || fact_of(s, y)->readers > 1 || y->is_output || tl_notes_of(y)->is_cut)
        return true;
    bool joins = tl_is_elementwise(n) || n->op == TL_OP_CONCAT;
    for (int i = 0; joins && i < n->input_count; i++) {
        const tl_value *x = n->inputs[i];
        if (x != NULL && x->producer != NULL && fact_of(s, x)->stored &&
            (n->op == TL_OP_CONCAT || tl_shape_equal(&x->shape, &y->shape)))
            return true;
    }
    return false;
}

static void collect_facts(state *s)
{
    tl_graph *g = s->graph;
    for (int i = 0; i < g->value_count; i++)
        s->facts[i] = (fact){ .stored = g->values[i]->is_input, .root = g->values[i] };
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i]->input_count; k++)
            if (g->nodes[i]->inputs[k] != NULL)
                fact_of(s, g->nodes[i]->inputs[k])->readers++;
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        if (n->output_count == 1 && n->outputs[0] != NULL)
            fact_of(s, n->outputs[0])->stored = is_stored(s, n);
    }
}

/* --- which ---------------------------------------------------------------------------------------------------------- */

static bool is_fixed(const tl_value *v)
{
    return v->is_input || v->is_output || v->data != NULL || tl_value_crosses_regions(v);
}

static bool has_halo(const tl_value *v)
{
    for (int i = 0; !v->layout.plain && i < v->shape.rank; i++)
        if (v->layout.halo_before[i] + v->layout.halo_after[i] > 0)
            return true;
    return false;
}

static void widen(tl_layout *to, const tl_value *v)
{
    for (int i = 0; i < v->shape.rank; i++) {
        if (v->layout.halo_before[i] > to->halo_before[i])
            to->halo_before[i] = v->layout.halo_before[i];
        if (v->layout.halo_after[i] > to->halo_after[i])
            to->halo_after[i] = v->layout.halo_after[i];
    }
}

/* The two in the same order and blocks, `part` of whole blocks along the axis. */
static bool lie_alike(const tl_value *part, const tl_value *whole, int axis)
{
    tl_layout a = part->layout.plain ? tl_layout_plain() : part->layout;
    tl_layout b = whole->layout.plain ? tl_layout_plain() : whole->layout;
    int rank = whole->shape.rank;
    return part->shape.rank == rank && part->dtype == whole->dtype &&
           tl_shape_elements(&part->shape) > 0 &&
           memcmp(a.order, b.order, sizeof *a.order * (size_t)rank) == 0 &&
           memcmp(a.block, b.block, sizeof *a.block * (size_t)rank) == 0 &&
           part->shape.dims[axis].extent % a.block[axis] == 0;
}

/* Puts the value's halo, and what lies in it, into the storage of `whole`. */
static void join(state *s, tl_value *v, tl_value *whole)
{
    tl_value *root = fact_of(s, whole)->root;
    if (has_halo(v)) {
        if (root->layout.plain) {
            root->layout = tl_layout_plain();
            root->layout.plain = false;
        }
        widen(&root->layout, v);
    }
    fact_of(s, v)->root = root;
}

static bool may_lie_in(const state *s, const tl_value *v, const tl_value *whole, int axis)
{
    return lie_alike(v, whole, axis) && fact_of(s, v)->root == v && !is_fixed(v) &&
           !tl_notes_of(v)->is_inside && !(has_halo(v) && is_fixed(fact_of(s, whole)->root));
}

static bool choose_concat(state *s, const tl_node *n)
{
    tl_value *y = n->outputs[0];
    int axis = (int)tl_attr_int(n, "axis", 0);
    int64_t stored = 0;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *x = n->inputs[i];
        if (!may_lie_in(s, x, y, axis))
            return false;
        for (int k = 0; k < i; k++)
            if (n->inputs[k] == x)
                return false;
        stored += fact_of(s, x)->stored ? x->shape.dims[axis].extent : 0;
    }
    if (2 * stored < y->shape.dims[axis].extent)
        return false;
    for (int i = 0; i < n->input_count; i++)
        join(s, n->inputs[i], y);
    return true;
}

/* The one axis of which a Slice leaves something out, neighbours staying neighbours; -1: there is no such. */
static int sliced_axis(const tl_node *n)
{
    const int64_t *steps;
    int rank = tl_attr_ints(n, "steps", &steps), axis = -1;
    for (int i = 0; i < rank; i++) {
        if (n->inputs[0]->shape.dims[i].extent == n->outputs[0]->shape.dims[i].extent &&
            steps[i] == 1)
            continue;
        if (axis >= 0 || steps[i] != 1)
            return -1;
        axis = i;
    }
    return axis;
}

static int64_t slice_start(const tl_node *n, int axis)
{
    const int64_t *starts;
    tl_attr_ints(n, "starts", &starts);
    return starts[axis];
}

static bool choose_slice(state *s, const tl_node *n)
{
    tl_value *x = n->inputs[0], *y = n->outputs[0];
    int axis = sliced_axis(n);
    if (axis < 0 || x->data != NULL || !fact_of(s, x)->stored || tl_notes_of(x)->is_inside ||
        !may_lie_in(s, y, x, axis) || slice_start(n, axis) % x->layout.block[axis] != 0)
        return false;
    join(s, y, x);
    return true;
}

/* --- where ---------------------------------------------------------------------------------------------------------- */

/* Where element `at` of the axis begins, in elements from the beginning; -1 when what follows it is not one piece, or not
 * aligned. */
static int64_t start_of(const tl_value *v, int axis, int64_t at)
{
    int64_t extents[2 * TL_MAX_RANK], row = 1;
    int count = tl_layout_physical(&v->layout, &v->shape, extents), place = 0;
    while (!v->layout.plain && v->layout.order[place] != axis)
        place++;
    if (v->layout.plain)
        place = axis;
    else if (v->layout.halo_before[axis] + v->layout.halo_after[axis] > 0)
        return -1;
    for (int i = 0; i < place; i++)
        if (extents[i] != 1)
            return -1;
    for (int i = place + 1; i < count; i++)
        row *= extents[i];
    int64_t start = at / (v->layout.plain ? 1 : v->layout.block[axis]) * row;
    return tl_storage_bytes(v->dtype, start) % ALIGNMENT == 0 ? start : -1;
}

static void set_window(tl_value *v, tl_value *whole, int64_t start)
{
    v->whole = whole->whole != NULL ? whole->whole : whole;
    v->whole_start = whole->whole_start + start;
}

static void place_parts(tl_graph *g, const tl_node *n)
{
    tl_value *y = n->outputs[0];
    int axis = (int)tl_attr_int(n, "axis", 0);
    int64_t at = 0;
    for (int i = 0; i < n->input_count; i++) {
        if (start_of(y, axis, at) < 0)
            return;
        at += n->inputs[i]->shape.dims[axis].extent;
    }
    at = 0;
    for (int i = 0; i < n->input_count; i++) {
        set_window(n->inputs[i], y, start_of(y, axis, at));
        at += n->inputs[i]->shape.dims[axis].extent;
    }
    tl_notes_make(g, y)->is_view = true;
}

static void place_slice(tl_graph *g, const tl_node *n)
{
    int axis = sliced_axis(n);
    int64_t start = start_of(n->inputs[0], axis, slice_start(n, axis));
    if (start < 0)
        return;
    set_window(n->outputs[0], n->inputs[0], start);
    tl_notes_make(g, n->outputs[0])->is_view = true;
}

/* Concats from the last, so that a part's whole is known before its own parts are looked at, then Slices from the first. */
tl_status tl_assign_windows(tl_graph *g, const tl_target *target, tl_diag *diag)
{
    (void)diag;
    if (tl_target_is_gpu(target) ||
        g->varies) /* where a window begins would differ from call to call */
        return TL_OK;
    state s = { .graph = g };
    s.facts = TL_NEW_ARRAY(g->arena, fact, g->value_count);
    s.chosen = TL_NEW_ARRAY(g->arena, bool, g->node_count);
    collect_facts(&s);
    for (int i = g->node_count - 1; i >= 0; i--)
        if (g->nodes[i]->op == TL_OP_CONCAT)
            s.chosen[i] = choose_concat(&s, g->nodes[i]);
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->op == TL_OP_SLICE)
            s.chosen[i] = choose_slice(&s, g->nodes[i]);
    for (int i = 0; i < g->value_count; i++)
        if (fact_of(&s, g->values[i])->root != g->values[i])
            g->values[i]->layout = fact_of(&s, g->values[i])->root->layout;
    for (int i = g->node_count - 1; i >= 0; i--)
        if (s.chosen[i] && g->nodes[i]->op == TL_OP_CONCAT)
            place_parts(g, g->nodes[i]);
    for (int i = 0; i < g->node_count; i++)
        if (s.chosen[i] && g->nodes[i]->op == TL_OP_SLICE)
            place_slice(g, g->nodes[i]);
    return TL_OK;
}
