/* frontend/call/onnx_region.c: graphs that become bodies of nodes, read on trial.
 *
 *     Loop(n, c, x) { y = Add(state, w) }    ->    body: input turn, input state, input w; y = Add(state, w)
 *
 * While a body is read, names of the graphs around it are looked up as always; what is found there becomes an input of the
 * body, and a constant a constant. Not every body can be one: what decides a shape has to be known, though data decide how
 * often or whether the body is taken. So it is a trial: what it refuses is forgotten, and the caller has another way, or
 * reads it again to have it refused. Every node that is read counts, also in trials, so that graphs inside one another
 * cannot be read exponentially often. */
#include <string.h>
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_eithers.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/call/onnx_sequences.h"
#include "runtime/base/array.h"

/* What the sequence holds, each for itself. */
static tl_value *capture_sequence(tl_import *im, tl_onnx_region *r, const tl_onnx_sequence *outer)
{
    tl_onnx_call c = {
        .import = im, .graph = r->graph, .arena = im->arena, .name = r->graph->name
    };
    tl_onnx_sequence inner = *outer;
    inner.items = TL_NEW_ARRAY(im->arena, tl_value *, outer->count);
    for (int i = 0; i < outer->count; i++)
        inner.items[i] = tl_region_capture(im, r, outer->items[i]);
    if (outer->stack != NULL)
        inner.stack = tl_region_capture(im, r, outer->stack);
    return tl_sequence_value(&c, &inner);
}

/* Both values, and what chooses between them. */
static tl_value *capture_either(tl_import *im, tl_onnx_region *r, const tl_onnx_either *outer)
{
    const tl_onnx_either inner = { .condition = tl_region_capture(im, r, outer->condition),
                                   .yes = tl_region_capture(im, r, outer->yes),
                                   .no = tl_region_capture(im, r, outer->no),
                                   .depth = outer->depth };
    return tl_either_value(im, r->graph, &inner);
}

tl_value *tl_region_capture(tl_import *im, tl_onnx_region *r, tl_value *outer)
{
    const char *key = tl_value_key(im, outer);
    tl_value *inner = tl_map_find(r->inner, key);
    if (inner != NULL)
        return inner;
    const tl_onnx_sequence *sequence = tl_sequence_of(im, outer);
    if (sequence != NULL) {
        inner = capture_sequence(im, r, sequence);
    } else if (tl_either_of(im, outer) != NULL) {
        inner = capture_either(im, r, tl_either_of(im, outer));
    } else if (outer->data != NULL) {
        inner = tl_graph_constant(r->graph, outer->name, outer->dtype, &outer->shape, outer->data);
    } else {
        inner = tl_graph_value(r->graph, outer->name,
                               outer->dtype_known ? outer->dtype : TL_DTYPE_COUNT, &outer->shape);
        tl_graph_add_input(r->graph, inner);
        int capacity = r->capacity;
        TL_ROOM(im->arena, r->captured, r->count, capacity);
        TL_ROOM(im->arena, r->inputs, r->count, r->capacity);
        r->captured[r->count] = outer;
        r->inputs[r->count++] = inner;
    }
    tl_map_put(r->inner, key, inner);
    tl_value *const *counts = tl_counts_of(im, outer);
    for (int i = 0; counts != NULL && i < outer->shape.rank; i++)
        if (counts[i] != NULL)
            tl_set_count(im, inner, i, tl_region_capture(im, r, counts[i]));
    return inner;
}

/* As deep as graphs are nested. */
static tl_value *read_from(tl_import *im, tl_onnx_region *here, const tl_onnx_binding *b)
{
    if (b->value == NULL || here == b->region)
        return b->value;
    return tl_region_capture(im, here, read_from(im, here->outer, b));
}

tl_value *tl_scope_read(tl_import *im, const tl_onnx_binding *b)
{
    return read_from(im, im->region, b);
}

/* What `read` does is done inside of the region. */
static bool read_inside(tl_onnx_call *c, tl_onnx_region *r, tl_region_reader *read, void *context)
{
    tl_import *im = c->import;
    const tl_import before = *im;
    tl_diag diag = { 0 };
    tl_onnx_call inner = *c;
    inner.graph = im->graph = r->graph;
    inner.diag = im->diag = &diag;
    inner.input_count = 0;
    inner.first_value = 0;
    im->region = r;
    im->is_trial = true;
    im->refusals = tl_map_create(im->arena);
    im->needed = tl_map_create(im->arena);
    im->is_open = false;
    tl_status status = read(&inner, context);
    bool is_good = status == TL_OK && inner.status == TL_OK && tl_map_count(im->refusals) == 0 &&
                   tl_map_count(im->needed) == 0;
    const tl_import after = *im;
    *im = before;
    im->sequences = after.sequences;
    im->bounds = after.bounds;
    im->eithers = after.eithers;
    im->nodes = after.nodes;
    im->counts = after.counts;
    im->walk = after.walk;
    return is_good;
}

bool tl_try_region(tl_onnx_call *c, tl_region_reader *read, void *context, tl_onnx_region **out)
{
    tl_import *im = c->import;
    tl_onnx_region *r = TL_NEW(im->arena, tl_onnx_region);
    int depth = 1;
    for (const tl_onnx_region *outer = im->region; outer != NULL; outer = outer->outer)
        depth++;
    if (depth >= TL_MOST_NESTED)
        return false;
    *r = (tl_onnx_region){ .outer = im->region,
                           .graph = tl_graph_create(im->arena, c->name),
                           .inner = tl_map_create(im->arena) };
    r->graph->kept = im->graph->kept;
    *out = r;
    return read_inside(c, r, read, context);
}

bool tl_extend_region(tl_onnx_call *c, tl_onnx_region *r, tl_region_reader *read, void *context)
{
    return read_inside(c, r, read, context);
}

/* An output is a value of its own: a graph input may be none, nor one value two. */
void tl_region_output(tl_onnx_region *r, tl_value *v)
{
    if (v->is_input || v->is_output || v->data != NULL) {
        tl_value *copy = tl_graph_value(r->graph, v->name, v->dtype, &v->shape);
        tl_graph_node(r->graph, TL_OP_IDENTITY, v->name, 1, &v, 1, &copy);
        v = copy;
    }
    tl_graph_add_output(r->graph, v);
}
