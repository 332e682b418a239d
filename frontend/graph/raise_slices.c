/* frontend/graph/raise_slices.c: where only some rows of a value are read, only those are computed.
 *
 *     Slice(MatMul(x, w), rows)            ->  MatMul(Slice(x, rows), w)
 *     Slice(Add(x, bias), rows)            ->  Add(Slice(x, rows), bias)
 *     Slice(Attention(q, k, v), rows)      ->  Attention(Slice(q, rows), k, v)
 *     Gather(x, 7)                         ->  Reshape(Slice(x, 7..8))
 *
 * So for any operator of which the column `axes` of operators.def tells what a position on an axis needs. Against the order
 * of the graph: when a node's turn comes all its readers had theirs, and where they are Slices of the same positions of one
 * axis it computes no others. The last token of a language model, the first one of a classifier: of the last layer only keys
 * and values are made for the others. */
#include "frontend/node/axis_rules.h"
#include <string.h>
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"
#include "runtime/base/map.h"

enum { MOST_INPUTS = 16 };

typedef struct {
    int axis;
    int64_t start, count;
} window;

/* The one axis of which the Slice reads a part; false when it is not one axis, or it leaves out positions between. */
static bool find_window(const tl_node *n, window *out)
{
    const int64_t *starts, *steps;
    out->axis = -1;
    if (n->op != TL_OP_SLICE)
        return false; /* of another operator the first input may be left out */
    const tl_shape *x = &n->inputs[0]->shape, *y = &n->outputs[0]->shape;
    if (tl_attr_ints(n, "starts", &starts) != x->rank ||
        tl_attr_ints(n, "steps", &steps) != x->rank)
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i].extent == y->dims[i].extent && steps[i] == 1)
            continue;
        if (out->axis >= 0 || (steps[i] != 1 && y->dims[i].extent != 1))
            return false;
        *out = (window){ i, starts[i], y->dims[i].extent };
    }
    return out->axis >= 0;
}

static bool is_same(const window *a, const window *b)
{
    return a->axis == b->axis && a->start == b->start && a->count == b->count;
}

/* Whether all that reads v are Slices of one window. Their outputs go to `readers`, at most MOST_INPUTS. */
static int find_readers(const tl_value *v, tl_node *readers[MOST_INPUTS], window *out)
{
    int count = 0;
    if (v->is_output)
        return 0;
    for (const tl_use *use = v->first_use; use != NULL; use = use->next) {
        window w;
        if (!find_window(use->node, &w) || count == MOST_INPUTS || (count > 0 && !is_same(&w, out)))
            return 0;
        *out = w;
        readers[count++] = use->node;
    }
    return count;
}

/* Slices by what they read of what, so that a new one is made only where there is none such. A value's number and names are
 * those of the last tidying, or later. */
typedef struct {
    tl_graph *graph;
    tl_map *slices;
} state;

static const char *key_of(const state *s, const tl_value *x, const window *w)
{
    return tl_arena_format(s->graph->arena, "%d %d %lld %lld", x->index, w->axis,
                           (long long)w->start, (long long)w->count);
}

static void note_slice(state *s, tl_node *n)
{
    window w;
    if (n->op != TL_OP_SLICE || !find_window(n, &w))
        return;
    const char *key = key_of(s, n->inputs[0], &w);
    const tl_node *known = tl_map_find(s->slices, key);
    if (known == NULL || known->dead)
        tl_map_put(s->slices, key, n);
}

static tl_status start(state *s, tl_diag *diag)
{
    TL_TRY(tl_graph_tidy(s->graph, diag));
    s->slices = tl_map_create(s->graph->arena);
    for (int i = 0; i < s->graph->node_count; i++)
        note_slice(s, s->graph->nodes[i]);
    return TL_OK;
}

static void *copy_part(tl_graph *g, const tl_value *x, const window *w)
{
    int64_t runs = 1, run = (int64_t)tl_dtype_size(x->dtype),
            extent = x->shape.dims[w->axis].extent;
    for (int i = 0; i < x->shape.rank; i++) {
        runs *= i < w->axis ? x->shape.dims[i].extent : 1;
        run *= i > w->axis ? x->shape.dims[i].extent : 1;
    }
    char *data = tl_arena_alloc(g->arena, (size_t)(runs * w->count * run), 64);
    for (int64_t i = 0; i < runs; i++)
        memcpy(data + i * w->count * run, (const char *)x->data + (i * extent + w->start) * run,
               (size_t)(w->count * run));
    return data;
}

/* The window of x: of a constant a constant, else by a Slice that is there already, or a new one. */
static tl_value *slice_of(state *s, tl_value *x, const window *w)
{
    tl_graph *g = s->graph;
    const tl_node *known = tl_map_find(s->slices, key_of(s, x, w));
    if (known != NULL && !known->dead && known->inputs[0] == x)
        return known->outputs[0];
    tl_shape shape = x->shape;
    shape.dims[w->axis].extent = w->count;
    const char *name = tl_arena_format(g->arena, "%s.part", x->name);
    if (x->data != NULL)
        return tl_graph_constant(g, name, x->dtype, &shape, copy_part(g, x, w));
    tl_value *y = tl_graph_value(g, name, x->dtype, &shape);
    note_slice(s, tl_slice_node(g, y->name, x, y, w->axis, w->start));
    return y;
}

/* Attributes that say how large the output is. */
static void fit_attributes(tl_graph *g, tl_node *n, int axis)
{
    const tl_shape *y = &n->outputs[0]->shape;
    const int64_t *ints;
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < y->rank; i++)
        extents[i] = y->dims[i].extent;
    if (n->op == TL_OP_RESHAPE || n->op == TL_OP_EXPAND)
        tl_attr_set_ints(g, n, "shape", extents, y->rank);
    if (n->op != TL_OP_SLICE || tl_attr_ints(n, "ends", &ints) != y->rank)
        return;
    for (int i = 0; i < y->rank; i++)
        extents[i] = i == axis ? y->dims[i].extent : ints[i];
    tl_attr_set_ints(g, n, "ends", extents, y->rank);
}

/* The node computes only what its readers read of it, which takes their place. */
static void raise_readers(state *s, tl_node *n)
{
    tl_graph *g = s->graph;
    tl_node *readers[MOST_INPUTS];
    tl_value *inputs[MOST_INPUTS];
    int of[MOST_INPUTS];
    window w, own;
    if (n->output_count != 1 || n->input_count > MOST_INPUTS)
        return;
    int count = find_readers(n->outputs[0], readers, &w);
    if (count == 0 || !tl_axis_of_inputs(n, w.axis, of))
        return;
    for (int i = 0; i < n->input_count; i++) {
        own = (window){ of[i], w.start, w.count };
        inputs[i] = of[i] >= 0 ? slice_of(s, n->inputs[i], &own) : n->inputs[i];
    }
    tl_value *y = readers[0]->outputs[0];
    for (int i = 0; i < count; i++)
        tl_node_kill(readers[i]);
    tl_node *part = tl_graph_node(g, n->op, n->name, n->input_count, inputs, 1, &y);
    part->attrs = n->attrs;
    part->attr_count = n->attr_count;
    fit_attributes(g, part, w.axis);
    note_slice(s, part);
    tl_node_kill(n);
    for (int i = 1; i < count; i++) {
        readers[i]->outputs[0]->producer = NULL;
        tl_graph_replace_value(g, readers[i]->outputs[0], y);
    }
}

/* Positions one after another, of which there are fewer than all. */
static void gather_to_slice(state *s, tl_node *n)
{
    tl_graph *g = s->graph;
    tl_value *x = n->inputs[0], *y = n->outputs[0];
    const tl_value *indices = n->inputs[1];
    int axis = (int)tl_attr_int(n, "axis", 0);
    int64_t extent = x->shape.dims[axis].extent;
    int64_t count = indices->data != NULL ? tl_shape_elements(&indices->shape) : 0;
    if (count < 1 || count >= extent || x->data != NULL)
        return;
    int64_t first = tl_number_load(indices->dtype, indices->data, 0).i;
    first += first < 0 ? extent : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = tl_number_load(indices->dtype, indices->data, (size_t)i).i;
        if (at + (at < 0 ? extent : 0) != first + i || first < 0 || first + i >= extent)
            return;
    }
    window w = { axis, first, count };
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < y->shape.rank; i++)
        extents[i] = y->shape.dims[i].extent;
    tl_value *part = slice_of(s, x, &w);
    tl_node *reshape = tl_replace_node(g, y, TL_OP_RESHAPE, 1, &part);
    tl_attr_set_ints(g, reshape, "shape", extents, y->shape.rank);
}

tl_status tl_raise_slices(tl_graph *g, tl_diag *diag)
{
    state s = { .graph = g };
    TL_TRY(start(&s, diag));
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (g->nodes[i]->op == TL_OP_GATHER)
            gather_to_slice(&s, g->nodes[i]);
    TL_TRY(start(&s, diag)); /* in topological order, which is walked backwards */
    for (int i = g->node_count - 1; i >= 0; i--)
        if (!g->nodes[i]->dead)
            raise_readers(&s, g->nodes[i]);
    return TL_OK;
}
