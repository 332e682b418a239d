/* driver/pipeline/join_graphs.c: graphs of one model, read for several values of its dims, as one.
 *
 * Constants that the frontend folds from extents (positions, masks) differ from sample to sample. The nodes that they were folded
 * from are kept as nodes, and the graphs are read again, until what is left is the same in all samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/host_target.h"
#include "driver/pipeline/model_private.h"
#include "frontend/value_notes.h"
#include "ir/program/join_programs.h"
#include "runtime/base/array.h"
#include "runtime/base/checksum.h"
#include "runtime/base/map.h"

enum {
    MOST_ROUNDS = 16, /* of reading until no constant differs */
    MOST_KEPT = 1024, /* nodes */
};

/* A constant that was folded from a node. */
typedef struct {
    const char *node;
    int64_t elements;
    uint64_t checksum; /* of dtype, shape and elements */
} folded;

/* A value, and the few elements of a small constant. */
typedef struct {
    tl_value *value; /* as long as the graph is there */
    tl_graph *graph; /* that it is in */
    int rank;        /* in memory */
    int64_t extents[2 * TL_MAX_RANK];
    tl_shape shape;
    const void *data; /* NULL: no constant, or a large one */
} kept_value;
typedef struct {
    tl_arena *arena;
    kept_value *items;
    int count, capacity;
} kept_values;

/* A loop, and how many turns it takes at most. */
typedef struct {
    const tl_node *node; /* as long as the graph is there */
    int64_t most;
} kept_loop;
typedef struct {
    tl_arena *arena;
    kept_loop *items;
    int count, capacity;
} kept_loops;

/* What is left of a graph when the next one is read. */
typedef struct {
    const char *inferred, *cut; /* its text after shape inference, and with its layouts */
    tl_large_constants large_inferred, large_cut; /* what those texts do not show */
    tl_map *constants;                            /* by name: folded */
    int kernel_count;
    kept_values values;    /* of the graph, then of the bodies of its nodes */
    kept_loops loops;      /* likewise */
    tl_program **programs; /* one a kernel: of the lowering that suits it */
    const char **lowerings;
    tl_program **plain; /* the direct one, with no sum cut */
} sample;

static folded *describe(tl_arena *arena, const tl_value *v)
{
    folded *f = TL_NEW(arena, folded);
    int64_t elements = tl_shape_elements(&v->shape);
    uint64_t checksum = tl_checksum(v->data, (size_t)tl_storage_bytes(v->dtype, elements));
    for (int i = 0; i < v->shape.rank; i++)
        checksum = checksum * 31 + (uint64_t)v->shape.dims[i].extent;
    *f = (folded){ tl_arena_strdup(arena, tl_notes_of(v)->folded), elements,
                   checksum * 31 + (uint64_t)v->dtype };
    return f;
}

typedef struct {
    tl_arena *arena;
    tl_map *constants;
} folded_walk;

static void collect_folded(const tl_graph *g, void *context)
{
    const folded_walk *w = context;
    for (int i = 0; i < g->value_count; i++) {
        const tl_value *v = g->values[i];
        if (v->data != NULL && tl_notes_of(v)->folded != NULL && tl_shape_elements(&v->shape) > 1 &&
            !tl_map_has(w->constants, v->name))
            tl_map_put(w->constants, tl_arena_strdup(w->arena, v->name), describe(w->arena, v));
    }
}

static tl_status text_of(tl_arena *arena, const tl_graph *g, const char **out, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_graph_print(g, &text);
    *out = text.failed ? NULL : tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return *out != NULL ? TL_OK : tl_fail(diag, TL_NO_MEMORY, "out of memory");
}

static bool is_large(const tl_value *v)
{
    return v->data != NULL && tl_shape_elements(&v->shape) > TL_GRAPH_PRINTED_ELEMENTS;
}

static size_t bytes_of(const tl_value *v)
{
    return (size_t)tl_storage_bytes(v->dtype, tl_shape_elements(&v->shape));
}

static void add_large(const tl_graph *g, void *context)
{
    tl_large_constants *out = context;
    for (int i = 0; i < g->value_count; i++)
        if (is_large(g->values[i])) {
            TL_ROOM(out->arena, out->items, out->count, out->capacity);
            out->items[out->count++] =
                (tl_large_constant){ g->values[i]->data, bytes_of(g->values[i]) };
        }
}

/* The constants of which the graph's text has no elements, in its order. Their bytes live as long as the graph. */
static tl_large_constants large_constants(tl_arena *arena, const tl_graph *g)
{
    tl_large_constants out = { .arena = arena };
    tl_graph_visit(g, add_large, &out);
    return out;
}

/* Whether graphs of one text have the same ones; those of the file are the very same bytes in all graphs. */
static bool are_same(const tl_large_constants *a, const tl_large_constants *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = a->items[i].size == b->items[i].size &&
               (a->items[i].data == b->items[i].data ||
                memcmp(a->items[i].data, b->items[i].data, a->items[i].size) == 0);
    return same;
}

/* The graph and the bodies of its nodes are known to vary. */
static void set_varies(const tl_join *join, tl_graph *g)
{
    g->varies = true;
    g->kept = join->kept;
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < tl_op_bodies(g->nodes[i]->op); k++)
            set_varies(join, g->nodes[i]->bodies[k]);
}

/* The graph for some shapes as its shapes are inferred, before any pass. */
static tl_status read_graph(tl_join *join, tl_arena *arena, const tl_shape_override *shapes,
                            int shape_count, tl_graph **out, tl_diag *diag)
{
    tl_onnx_keep_loops(join->onnx, join->keeps_loops);
    tl_status status = tl_onnx_graph(arena, join->onnx, shapes, shape_count, join->kept, out, diag);
    join->met_loops |= tl_onnx_met_loops(join->onnx);
    TL_TRY(status);
    (*out)->without = join->without;
    set_varies(join, *out);
    return tl_infer_shapes(*out, diag);
}

/* As deep as graphs are nested. */
static void keep_values(kept_values *out, tl_graph *g)
{
    for (int i = 0; i < g->value_count; i++) {
        tl_value *v = g->values[i];
        TL_ROOM(out->arena, out->items, out->count, out->capacity);
        kept_value *kept = &out->items[out->count++];
        *kept = (kept_value){ .value = v, .graph = g, .shape = v->shape };
        kept->rank = tl_layout_physical(&v->layout, &v->shape, kept->extents);
        if (v->data != NULL && !is_large(v))
            kept->data = tl_arena_copy(out->arena, v->data, bytes_of(v), 8);
    }
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < tl_op_bodies(g->nodes[i]->op); k++)
            keep_values(out, g->nodes[i]->bodies[k]);
}

static void keep_loops(const tl_graph *g, void *context)
{
    kept_loops *out = context;
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        if (n->op != TL_OP_LOOP)
            continue;
        TL_ROOM(out->arena, out->items, out->count, out->capacity);
        out->items[out->count++] = (kept_loop){ n, tl_attr_int(n, "most", 0) };
    }
}

static tl_status lower_all(const tl_join *join, tl_arena *arena, tl_partition *partition, sample *s,
                           tl_diag *diag)
{
    s->kernel_count = partition->count;
    s->programs = TL_NEW_ARRAY(arena, tl_program *, partition->count);
    s->plain = TL_NEW_ARRAY(arena, tl_program *, partition->count);
    s->lowerings = TL_NEW_ARRAY(arena, const char *, partition->count);
    for (int i = 0; i < partition->count; i++) {
        tl_kernel *kernel = &partition->kernels[i];
        s->lowerings[i] = tl_graph_leaves_out(join->without, "lowering")
                              ? "direct"
                              : tl_choose_lowering(kernel, &join->target, join->numerics);
        TL_TRY(tl_kernel_program(arena, kernel, s->lowerings[i], &s->programs[i], diag));
        kernel->varies = true;
        TL_TRY(tl_kernel_program(arena, kernel, "direct", &s->plain[i], diag));
        s->programs[i]->strict = s->plain[i]->strict = join->numerics == TL_NUMERICS_STRICT;
    }
    return TL_OK;
}

/* Constants that are made of extents may be the same in all samples, and others for an extent that is none of them. As long as
 * the model is read for each call, that shows; what passes would make of them does not, and is left to the run. */
static bool keep_unfolded(tl_join *join, const tl_graph *g)
{
    bool found = false;
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        for (int k = 0; k < tl_op_bodies(n->op); k++)
            found |= keep_unfolded(join, n->bodies[k]);
        if (tl_op_bodies(n->op) > 0)
            continue;
        bool is_constant = n->input_count > 0, is_made = false;
        for (int k = 0; k < n->input_count; k++) {
            const tl_value *v = n->inputs[k];
            is_constant &= v == NULL || v->data != NULL;
            is_made |= v != NULL && v->data != NULL && tl_notes_of(v)->folded != NULL;
        }
        if (!is_constant || !is_made || tl_map_has(join->kept, n->name))
            continue;
        tl_map_put(join->kept, tl_arena_strdup(join->arena, n->name), join);
        found = true;
    }
    return found;
}

/* `work` gets the graph, `join->arena` what is kept of it. `first`: whose large constants it must have; NULL: any. */
static tl_status read_sample(tl_join *join, tl_arena *work, int index, const sample *first,
                             sample *s, tl_graph **graph, tl_partition *partition, tl_diag *diag)
{
    const tl_join_request *r = &join->request;
    do
        TL_TRY(read_graph(join, work, &r->shapes[index * r->input_count], r->input_count, graph,
                          diag));
    while (keep_unfolded(join, *graph) && tl_map_count(join->kept) <= MOST_KEPT);
    s->constants = tl_map_create(join->arena);
    TL_TRY(text_of(join->arena, *graph, &s->inferred, diag));
    s->large_inferred = large_constants(join->arena, *graph);
    folded_walk walk = { join->arena, s->constants };
    tl_graph_visit(*graph, collect_folded, &walk);
    TL_TRY(tl_graph_prepare(*graph, join->numerics, diag));
    TL_TRY(tl_graph_fit(*graph, &join->target, join->numerics, diag));
    TL_TRY(tl_assign_layouts(*graph, &join->target, diag));
    TL_TRY(tl_partition_graph(work, *graph, partition, diag));
    TL_TRY(text_of(join->arena, *graph, &s->cut, diag));
    s->large_cut = large_constants(join->arena, *graph);
    tl_graph_visit(*graph, collect_folded, &walk);
    if (first != NULL && !(are_same(&first->large_inferred, &s->large_inferred) &&
                           are_same(&first->large_cut, &s->large_cut)))
        return tl_fail(diag, TL_UNSUPPORTED, "a constant is made of it");
    s->values.arena = join->arena;
    keep_values(&s->values, *graph);
    s->loops.arena = join->arena;
    tl_graph_visit(*graph, keep_loops, &s->loops);
    return lower_all(join, join->arena, partition, s, diag);
}

static tl_status read_apart(tl_join *join, int index, const sample *first, sample *s, tl_diag *diag)
{
    tl_graph *graph;
    tl_partition partition;
    tl_arena *work = tl_arena_create(0);
    if (work == NULL || TL_ARENA_GUARD(work)) {
        tl_arena_destroy(work);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_status status = read_sample(join, work, index, first, s, &graph, &partition, diag);
    tl_arena_destroy(work);
    if (status != TL_OK)
        for (int d = 0; d < join->request.samples.dim_count; d++)
            tl_context(diag, "where %s is %lld", join->request.dims[d].name,
                       (long long)tl_sample(&join->request.samples, index)[d]);
    return status;
}

/* Keeps the nodes whose constants are others in `b` than in `a`, or not there. Returns how many. */
static int keep_different(tl_join *join, const sample *a, const sample *b)
{
    int count = 0;
    for (size_t i = 0; i < tl_map_count(a->constants); i++) {
        tl_map_entry entry = tl_map_at(a->constants, i);
        const folded *f = entry.value, *other = tl_map_find(b->constants, entry.key);
        if ((other != NULL && other->checksum == f->checksum) || tl_map_has(join->kept, f->node))
            continue;
        tl_map_put(join->kept, f->node, join);
        count++;
    }
    return count;
}

/* Reads two opposite corners again and again, until no constant tells them apart. */
static tl_status find_kept(tl_join *join, tl_diag *diag)
{
    int last = (1 << join->request.samples.dim_count) - 1;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        sample low = { 0 }, high = { 0 };
        TL_TRY(read_apart(join, last, NULL, &high, diag)); /* which the model may not allow */
        TL_TRY(read_apart(join, 0, NULL, &low, diag));
        if (keep_different(join, &low, &high) + keep_different(join, &high, &low) == 0)
            return TL_OK;
        if (tl_map_count(join->kept) > MOST_KEPT)
            break;
    }
    return tl_fail(diag, TL_UNSUPPORTED, "constants are made of it again and again");
}

/* ---- joining ---- */

static const char **pick_texts(const tl_join *join, const sample *samples, bool inferred)
{
    int count = join->request.samples.count;
    const char **texts = TL_NEW_ARRAY(join->arena, const char *, count);
    for (int k = 0; k < count; k++)
        texts[k] = inferred ? samples[k].inferred : samples[k].cut;
    return texts;
}

static tl_status fit(const tl_join *join, const int64_t *numbers, const tl_value *v,
                     tl_varying *out, tl_diag *diag)
{
    return tl_varying_fit(&join->request.samples, numbers, out)
               ? TL_OK
               : tl_fail(diag, TL_UNSUPPORTED, "the size of '%.120s' depends on it in another way",
                         v->name);
}

static tl_status join_value(const tl_join *join, const sample *samples, int index, int64_t *numbers,
                            tl_joined_value *out, tl_diag *diag)
{
    int count = join->request.samples.count;
    const kept_value *first = &samples[0].values.items[index];
    const tl_value *v = first->value;
    out->rank = first->rank;
    out->extents = TL_NEW_ARRAY(join->arena, tl_varying, out->rank);
    out->shape = TL_NEW_ARRAY(join->arena, tl_varying, v->shape.rank);
    for (int a = 0; a < out->rank; a++) {
        for (int k = 0; k < count; k++)
            numbers[k] = samples[k].values.items[index].extents[a];
        TL_TRY(fit(join, numbers, v, &out->extents[a], diag));
        out->varies |= !tl_varying_is_constant(&out->extents[a]);
    }
    for (int a = 0; a < v->shape.rank; a++) {
        for (int k = 0; k < count; k++)
            numbers[k] = samples[k].values.items[index].shape.dims[a].extent;
        TL_TRY(fit(join, numbers, v, &out->shape[a], diag));
    }
    if (out->varies && (v->data != NULL || v->whole != NULL))
        return tl_fail(diag, TL_UNSUPPORTED, "constant '%.120s' depends on it", v->name);
    for (int k = 1; k < count; k++) {
        const void *data = samples[k].values.items[index].data;
        if (first->data != NULL && data != NULL && memcmp(data, first->data, bytes_of(v)) != 0)
            out->is_made = true;
    }
    return TL_OK;
}

/* Sizes and shapes of values; the graphs' texts are joined, so that they are in the same order. */
static tl_status join_values(tl_join *join, const sample *samples, tl_diag *diag)
{
    int64_t *numbers = TL_NEW_ARRAY(join->arena, int64_t, join->request.samples.count);
    for (int i = 0; i < samples[0].values.count; i++) {
        const kept_value *kept = &samples[0].values.items[i];
        tl_joined_value *joined = TL_NEW(join->arena, tl_joined_value);
        TL_TRY(join_value(join, samples, i, numbers, joined, diag));
        tl_notes_make(kept->graph, kept->value)->joined = joined;
    }
    return TL_OK;
}

/* A number that is made of extents is written into kernels as a function of them; what is read where it lies is that of one
 * sample: its node is kept. */
static tl_status check_read(tl_join *join, const tl_value *v, tl_diag *diag)
{
    const tl_joined_value *joined = v != NULL ? tl_notes_of(v)->joined : NULL;
    if (joined == NULL || !joined->is_made)
        return TL_OK;
    const char *node = tl_notes_of(v)->folded;
    if (node != NULL && !tl_map_has(join->kept, node))
        tl_map_put(join->kept, tl_arena_strdup(join->arena, node), join);
    return tl_fail(diag, TL_UNSUPPORTED, "constant '%.120s' is made of it", v->name);
}

static tl_status check_graph(tl_join *join, const tl_graph *g, tl_diag *diag)
{
    for (int i = 0; i < g->output_count; i++)
        TL_TRY(check_read(join, g->outputs[i], diag));
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        for (int k = 0; tl_op_bodies(n->op) > 0 && k < n->input_count; k++)
            TL_TRY(check_read(join, n->inputs[k], diag));
        for (int k = 0; k < tl_op_bodies(n->op); k++)
            TL_TRY(check_graph(join, n->bodies[k], diag));
    }
    return TL_OK;
}

/* What the executable takes from the graph of the first sample as it is. */
static tl_status check_constants(tl_join *join, tl_diag *diag)
{
    TL_TRY(check_graph(join, join->graph, diag));
    for (int i = 0; i < join->partition.count; i++)
        for (int k = 0; k < join->partition.kernels[i].input_count; k++)
            TL_TRY(check_read(join, join->partition.kernels[i].inputs[k], diag));
    return TL_OK;
}

/* The program of a kernel: of the lowering that suits it at all samples, else the direct one whose sums are not cut. */
static tl_status join_kernel(tl_join *join, const sample *samples, int index, tl_diag *diag)
{
    int count = join->request.samples.count;
    const tl_program **programs = TL_NEW_ARRAY(join->arena, const tl_program *, count);
    bool same = true;
    for (int k = 0; k < count; k++) {
        same &= strcmp(samples[k].lowerings[index], samples[0].lowerings[index]) == 0;
        programs[k] = samples[k].programs[index];
    }
    join->lowerings[index] = samples[0].lowerings[index];
    if (same && tl_join_programs(join->arena, programs, &join->request.samples, join->vars,
                                 &join->programs[index], NULL) == TL_OK)
        return TL_OK;
    for (int k = 0; k < count; k++)
        programs[k] = samples[k].plain[index];
    join->lowerings[index] = "direct";
    return tl_join_programs(join->arena, programs, &join->request.samples, join->vars,
                            &join->programs[index], diag);
}

static tl_status join_kernels(tl_join *join, const sample *samples, tl_diag *diag)
{
    int count = samples[0].kernel_count;
    join->programs = TL_NEW_ARRAY(join->arena, const tl_program *, count);
    join->lowerings = TL_NEW_ARRAY(join->arena, const char *, count);
    for (int i = 0; i < count; i++) {
        tl_status status = join_kernel(join, samples, i, diag);
        if (status == TL_OK)
            continue;
        const tl_kernel *kernel = &join->partition.kernels[i];
        tl_context(diag, "kernel %s, which ends with node '%.120s'", kernel->name,
                   kernel->nodes[kernel->node_count - 1]->name);
        return status;
    }
    return TL_OK;
}

/* The reader tells of the latest graph alone. */
static void keep_bound(tl_join *join)
{
    join->bound_count = tl_onnx_bound_count(join->onnx);
    join->bound_names = TL_NEW_ARRAY(join->arena, const char *, join->bound_count);
    join->bound = TL_NEW_ARRAY(join->arena, const void *, join->bound_count);
    for (int i = 0; i < join->bound_count; i++)
        join->bound_names[i] = tl_onnx_bound(join->onnx, i, &join->bound[i]);
}

/* How many turns loops take at most; they are in the same order as well. */
static tl_status join_loops(tl_join *join, const sample *samples, tl_diag *diag)
{
    int64_t *numbers = TL_NEW_ARRAY(join->arena, int64_t, join->request.samples.count);
    join->loop_count = samples[0].loops.count;
    join->loops = TL_NEW_ARRAY(join->arena, tl_joined_loop, join->loop_count);
    for (int i = 0; i < join->loop_count; i++) {
        for (int k = 0; k < join->request.samples.count; k++)
            numbers[k] = samples[k].loops.items[i].most;
        join->loops[i].node = samples[0].loops.items[i].node;
        if (!tl_varying_fit(&join->request.samples, numbers, &join->loops[i].most))
            return tl_fail(diag, TL_UNSUPPORTED,
                           "how many turns '%.120s' takes depends on it in another way",
                           join->loops[i].node->name);
    }
    return TL_OK;
}

static tl_status join_once(tl_join *join, tl_diag *diag)
{
    int count = join->request.samples.count;
    sample *samples = TL_NEW_ARRAY(join->arena, sample, count);
    tl_varying_text cut;
    TL_TRY(find_kept(join, diag));
    TL_TRY(
        read_sample(join, join->arena, 0, NULL, &samples[0], &join->graph, &join->partition, diag));
    join->large = samples[0].large_inferred;
    keep_bound(join);
    for (int k = 1; k < count; k++)
        TL_TRY(read_apart(join, k, &samples[0], &samples[k], diag));
    TL_TRY(tl_varying_text_join(join->arena, pick_texts(join, samples, true),
                                &join->request.samples, &join->text, diag));
    TL_TRY(tl_varying_text_join(join->arena, pick_texts(join, samples, false),
                                &join->request.samples, &cut, diag));
    for (int k = 1; k < count; k++)
        if (samples[k].values.count != samples[0].values.count ||
            samples[k].loops.count != samples[0].loops.count ||
            samples[k].kernel_count != samples[0].kernel_count)
            return tl_fail(diag, TL_UNSUPPORTED, "for other extents it is cut into other kernels");
    TL_TRY(join_values(join, samples, diag));
    TL_TRY(check_constants(join, diag));
    TL_TRY(join_loops(join, samples, diag));
    return join_kernels(join, samples, diag);
}

/* Again where more nodes are kept than before. */
static tl_status join_rounds(tl_join *join, tl_diag *diag)
{
    tl_status status = TL_OK;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        size_t before = tl_map_count(join->kept);
        tl_diag why = { "" };
        status = join_once(join, &why);
        if (status != TL_UNSUPPORTED || tl_map_count(join->kept) == before ||
            tl_map_count(join->kept) > MOST_KEPT)
            return status == TL_OK ? TL_OK : tl_fail(diag, status, "%s", why.text);
    }
    return tl_fail(diag, status, "constants are made of it again and again");
}

/* With short loops written out, as in the graph of one shape; where these are not the same for all extents, as loops. */
static tl_status join_all(tl_join *join, tl_diag *diag)
{
    tl_diag why = { "" };
    tl_status status = join_rounds(join, &why);
    if (status == TL_UNSUPPORTED && join->met_loops) {
        join->keeps_loops = true;
        why.text[0] = '\0';
        status = join_rounds(join, &why);
    }
    return status == TL_OK ? TL_OK : tl_fail(diag, status, "%s", why.text);
}

/* ---- the join ---- */

static void copy_request(tl_join *join, const tl_join_request *r)
{
    tl_arena *arena = join->arena;
    int dims = r->samples.dim_count, count = r->samples.count;
    tl_executable_dim *copies = TL_NEW_ARRAY(arena, tl_executable_dim, dims);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, dims);
    join->request = *r;
    join->request.samples.points =
        tl_arena_copy(arena, r->samples.points, sizeof(int64_t) * (size_t)(dims * count), 8);
    for (int d = 0; d < dims; d++) {
        copies[d] = r->dims[d];
        copies[d].name = tl_arena_strdup(arena, r->dims[d].name);
        copies[d].start = tl_sample(&r->samples, 0)[d];
        tl_var *var = tl_var_make(arena, r->dims[d].name, r->dims[d].min, r->dims[d].max);
        var->is_dim = true;
        vars[d] = var;
    }
    join->request.dims = copies;
    join->vars = vars;
    join->kept = tl_map_create(arena);
}

static tl_status create(tl_join *join, const tl_join_request *r, const tl_model_options *options,
                        tl_diag *diag)
{
    if (TL_ARENA_GUARD(join->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    copy_request(join, r);
    join->numerics = options->numerics;
    join->without =
        options->without != NULL ? tl_arena_strdup(join->arena, options->without) : NULL;
    TL_TRY(tl_target_resolve(options->target, &join->target, diag));
    if (tl_target_is_gpu(&join->target))
        return tl_fail(diag, TL_UNSUPPORTED, "kernels of GPUs take no dims");
    tl_status status = join_all(join, diag);
    join->request.shapes = NULL; /* the caller's */
    return status;
}

tl_status tl_join_create(tl_onnx *onnx, const tl_join_request *request,
                         const tl_model_options *options, tl_join **out, tl_diag *diag)
{
    tl_join *join = calloc(1, sizeof *join);
    *out = NULL;
    if (join != NULL)
        join->arena = tl_arena_create(0);
    if (join == NULL || join->arena == NULL) {
        free(join);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    join->onnx = onnx;
    tl_status status = create(join, request, options, diag);
    if (status != TL_OK) {
        tl_join_destroy(join);
        return status;
    }
    *out = join;
    return TL_OK;
}

void tl_join_destroy(tl_join *join)
{
    if (join == NULL)
        return;
    tl_arena_destroy(join->arena);
    free(join);
}

static tl_status check(tl_join *join, tl_arena *work, const tl_shape_override *shapes,
                       int shape_count, const int64_t *dims, tl_diag *diag)
{
    tl_graph *graph;
    if (TL_ARENA_GUARD(work))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    const char *text;
    TL_TRY(read_graph(join, work, shapes, shape_count, &graph, diag));
    TL_TRY(text_of(work, graph, &text, diag));
    tl_large_constants large = large_constants(work, graph);
    return tl_varying_text_is(&join->text, dims, text) && are_same(&join->large, &large)
               ? TL_OK
               : tl_fail(diag, TL_UNSUPPORTED, "for these shapes the model is another one");
}

tl_status tl_join_check(tl_join *join, const tl_shape_override *shapes, int shape_count,
                        const int64_t *dims, tl_diag *diag)
{
    tl_arena *work = tl_arena_create(0);
    if (work == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = check(join, work, shapes, shape_count, dims, diag);
    tl_arena_destroy(work);
    return status;
}

static void describe_output(const tl_join *join, const tl_value *v, const char *const *names,
                            tl_text *out)
{
    tl_text_format(out, "output %s %s[", v->name, tl_dtype_infos[v->dtype].text);
    for (int a = 0; a < v->shape.rank; a++) {
        tl_text_add(out, a > 0 ? ", " : "");
        tl_varying_print(&tl_notes_of(v)->joined->shape[a], join->request.samples.dim_count, names,
                         out);
    }
    tl_text_add(out, "]\n");
}

void tl_join_describe(const tl_join *join, tl_text *out)
{
    const char *names[TL_MOST_DIMS] = { NULL };
    int with_dims = 0;
    for (int d = 0; d < join->request.samples.dim_count; d++) {
        const tl_executable_dim *dim = &join->request.dims[d];
        names[d] = dim->name;
        tl_text_format(out, "dim %s in %lld..%lld\n", dim->name, (long long)dim->min,
                       (long long)dim->max);
    }
    for (int i = 0; i < join->graph->output_count; i++)
        describe_output(join, join->graph->outputs[i], names, out);
    for (int i = 0; i < join->partition.count; i++)
        with_dims += join->programs[i]->dim_count > 0;
    tl_text_format(out, "%d of %d kernels take dims\n", with_dims, join->partition.count);
}
