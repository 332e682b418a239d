/* schedule/sketch/gpu_tile.c: a contraction in tiles, a matrix product or a convolution as one.
 *
 *     for <tiles>  blockIdx.x
 *       for <threads>  threadIdx.x                 columns fastest
 *         acc[rows][4] = 0                         registers
 *         for k0
 *           panel, stream: the tile's slice        shared memory, copied by all threads together
 *           barrier
 *           for k1
 *             acc[r][c] += stream[r, k]*panel[k, c]
 *           barrier
 *         out = epilogue(acc)
 *
 * Rows run along the result's axis that only the stream moves with; columns along the contiguous one and, where that is
 * short, along one more that the panel moves with. Slices are as deep as shared memory and the axis allow. An operand that a
 * stage makes for this contraction alone (a border of zeros) is made where it would be copied. */
#include "runtime/base/checked.h"
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

enum {
    MOST_THREADS = 256,
    WARP = 32,
    SHARED_BYTES = 32 << 10, /* of both slices; a kernel may declare 48 KB */
    LEAST_ROWS = 4,
    MOST_COPIES = 16, /* elements a thread copies of a slice */
    MOST_DEPTH = 32,  /* of a slice, all reduce loops inside together */
    WIDE = 4,         /* elements of one access */
    OUTSIDE = 2,      /* loops around a tile: tiles, threads */
};

/* A loop over results, cut in parts: tiles, threads, what a thread computes. */
typedef struct {
    tl_loop_ref loop, parts[3];
    const tl_var *iter;
    int64_t extent, threads, own;
} axis;

typedef struct {
    int count, row, column,
        line; /* places in `axes`; row -1: none; line: the other axis of columns, -1: none */
    axis axes[TL_MAX_LOOPS];
} tiling;

static bool is_once(const axis *a)
{
    return a->extent == 1;
}

static tl_status find_axes(tl_schedule *s, tl_block_ref out, const tl_contraction *c, tiling *t,
                           tl_diag *diag)
{
    const tl_block *epilogue = tl_schedule_get_block(s, out);
    const tl_store *made = &c->block->stores[0];
    tl_loop_list loops;
    *t = (tiling){ .row = -1, .column = -1, .line = -1 };
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    const tl_expr *loads[32], *load = NULL;
    int count = tl_collect_loads(epilogue->stores[0].value, loads, 32);
    for (int l = 0; l < count; l++)
        if (loads[l]->u.buffer == made->buffer)
            load = loads[l];
    if (load == NULL)
        return tl_refuse(diag, "default schedule", epilogue->name, "does not read the result");
    for (int i = 0; i < loops.count; i++) {
        axis *a = &t->axes[t->count++];
        *a = (axis){ .loop = loops.loops[i],
                     .extent = tl_sketch_extent(s, loops.loops[i]),
                     .threads = 1,
                     .own = 1 };
        const tl_var *var = tl_schedule_get_loop(s, a->loop)->u.loop.var;
        for (int k = 0; k < epilogue->iter_count; k++)
            if (tl_expr_uses_var(epilogue->iters[k].binding, var))
                for (int d = 0; d < made->buffer->rank; d++)
                    if (load->args[d]->kind == TL_EXPR_VAR &&
                        load->args[d]->u.var == epilogue->iters[k].var &&
                        made->indices[d]->kind == TL_EXPR_VAR)
                        a->iter = made->indices[d]->u.var;
    }
    for (int i = 0; i < t->count; i++) {
        const axis *a = &t->axes[i];
        if (a->iter == NULL || is_once(a))
            continue;
        bool in_panel = tl_expr_uses_var(c->panel, a->iter),
             in_stream = tl_expr_uses_var(c->stream, a->iter);
        if (a->iter == c->vector)
            t->column = i;
        else if (in_stream && !in_panel && (t->row < 0 || a->extent > t->axes[t->row].extent))
            t->row = i;
        else if (in_panel && !in_stream)
            t->line = i; /* the innermost of them */
    }
    if (t->column < 0 || t->row < 0)
        return tl_refuse(diag, "default schedule", c->block->name, "has no rows and columns");
    return TL_OK;
}

/* The largest part of an axis that is a power of two up to `most`, and no more than half wasted. */
static int64_t power_part(int64_t extent, int64_t most)
{
    int64_t part = 1;
    while (part < most && 2 * part <= extent + part / 2)
        part *= 2;
    return part;
}

/* Four columns by four or eight rows a thread, sixteen by sixteen threads, less where the axes are short. */
static tl_status decide_tile(tl_schedule *s, const tl_contraction *c, tiling *t, tl_diag *diag)
{
    axis *row = &t->axes[t->row], *column = &t->axes[t->column];
    const char *name = c->block->name;
    const int64_t owns[] = { 1, 2, 4, 8 }, threads[] = { 1, 2, 4, 8, 16, 32 };
    if (row->extent < LEAST_ROWS)
        return tl_refuse(diag, "default schedule", name, "has few rows");
    int64_t wide = column->extent % 4 == 0 || column->extent > 32 ? 4 : column->extent > 8 ? 2 : 1;
    column->own = tl_decide(s, name, "columns", owns, 4, wide);
    column->threads = tl_decide(s, name, "threads.columns", threads, 6,
                                power_part(tl_ceildiv(column->extent, column->own), 16));
    int64_t large = row->extent >= 256 && column->extent >= 256;
    row->own = tl_decide(s, name, "rows", owns, 4, large ? 8 : row->extent >= 16 ? 4 : 2);
    row->threads = tl_decide(s, name, "threads.rows", threads, 6,
                             power_part(tl_ceildiv(row->extent, row->own), 16));
    if (t->line >= 0 && column->threads < 16) {
        axis *line = &t->axes[t->line];
        line->threads = power_part(line->extent, 16 / column->threads);
    }
    int64_t all = 1;
    for (int i = 0; i < t->count; i++)
        all *= t->axes[i].threads;
    if (all > MOST_THREADS || all < 16)
        return tl_refuse(diag, "default schedule", name, "has a tile of %lld threads",
                         (long long)all);
    return TL_OK;
}

/* Whether every thread has all of its columns, so that it can take them at once. */
static bool is_even(const axis *a)
{
    return a->own % WIDE == 0 && a->extent % (a->threads * a->own) == 0;
}

static int64_t thread_count(const tiling *t)
{
    int64_t all = 1;
    for (int i = 0; i < t->count; i++)
        all *= t->axes[i].threads;
    return all;
}

/* Cuts the loops over results and puts their parts in order. `under`: the loop over threads. */
static tl_status cut_results(tl_schedule *s, tiling *t, tl_loop_ref *blocks, tl_loop_ref *under,
                             tl_diag *diag)
{
    tl_loop_list order[3] = { 0 }, all = { 0 };
    for (int i = 0; i < t->count; i++) {
        axis *a = &t->axes[i];
        if (a->threads == 1 && a->own == 1) {
            a->parts[0] = a->loop;
        } else if (a->own == 1) {
            TL_TRY(tl_split(s, a->loop, (int64_t[]){ 0, a->threads }, 2, a->parts, diag));
        } else {
            TL_TRY(tl_split(s, a->loop, (int64_t[]){ 0, a->threads, a->own }, 3, a->parts, diag));
        }
    }
    const int last =
        t->column; /* threads along columns are neighbours, and so are a thread's own */
    for (int p = 0; p < 3; p++) {
        for (int i = 0; i < t->count; i++)
            if (i != last)
                tl_loop_push(&order[p], t->axes[i].parts[p]);
        tl_loop_push(&order[p], t->axes[last].parts[p]);
        for (int i = 0; i < order[p].count; i++)
            tl_loop_push(&all, order[p].loops[i]);
    }
    if (order[1].count == 0)
        return tl_refuse(diag, "default schedule", "tile", "has no threads");
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    *blocks = order[0].loops[0];
    *under = order[1].loops[0];
    if (order[0].count > 1)
        TL_TRY(tl_fuse(s, order[0].loops, order[0].count, blocks, diag));
    if (order[1].count > 1)
        TL_TRY(tl_fuse(s, order[1].loops, order[1].count, under, diag));
    return TL_OK;
}

/* Elements of the load's buffer that a tile reads for a slice, and which of them one step of `iter` adds: its extent along
 * each axis is what the iters inside reach. */
static int64_t slice_elements(tl_schedule *s, const tl_contraction *c, const tl_expr *load,
                              const tiling *t, const int64_t *depth)
{
    int64_t all = 1;
    for (int d = 0; d < load->u.buffer->rank; d++) {
        int64_t reach = 1;
        for (int i = 0; i < c->block->iter_count; i++) {
            const tl_iter *iter = &c->block->iters[i];
            int64_t tile = iter->kind == TL_ITER_REDUCE ? depth[i] : 1, coefficient = 1;
            const tl_expr *rest;
            for (int k = 0; k < t->count; k++)
                if (t->axes[k].iter == iter->var)
                    tile = tl_min64(t->axes[k].threads * t->axes[k].own, t->axes[k].extent);
            if (!tl_expr_uses_var(load->args[d], iter->var))
                continue;
            if (!tl_affine_in(s->arena, load->args[d], iter->var, &coefficient, &rest))
                coefficient = 1;
            reach += (tile - 1) * (coefficient < 0 ? -coefficient : coefficient);
        }
        all *= tl_min64(reach, 1 << 20);
    }
    return all;
}

static int64_t slice_bytes(tl_schedule *s, const tl_contraction *c, const tiling *t,
                           const int64_t *depth)
{
    return slice_elements(s, c, c->panel, t, depth) *
               (int64_t)tl_dtype_size(c->panel->u.buffer->dtype) +
           slice_elements(s, c, c->stream, t, depth) *
               (int64_t)tl_dtype_size(c->stream->u.buffer->dtype);
}

static int64_t depth_of(const tl_contraction *c, const int64_t *depth)
{
    int64_t all = 1;
    for (int i = 0; i < c->block->iter_count; i++)
        all *= c->block->iters[i].kind == TL_ITER_REDUCE ? depth[i] : 1;
    return all;
}

/* How many steps of each reduce iter a slice has: all of the short ones that fit, divisors of the others. */
static tl_status decide_depth(tl_schedule *s, const tl_contraction *c, const tiling *t,
                              int64_t *depth, tl_diag *diag)
{
    const tl_block *block = c->block;
    for (int i = 0; i < block->iter_count; i++)
        depth[i] = 1;
    if (slice_bytes(s, c, t, depth) > SHARED_BYTES)
        return tl_refuse(diag, "default schedule", block->name,
                         "has slices too large for shared memory");
    for (int i = block->iter_count - 1; i >= 0; i--) {
        const tl_iter *iter = &block->iters[i];
        if (iter->kind != TL_ITER_REDUCE)
            continue;
        int64_t extent = tl_max_extent(iter->extent), best = 1, options[MOST_DEPTH],
                inside = depth_of(c, depth);
        int count = 0;
        for (int64_t part = 1; part <= extent && part <= MOST_DEPTH; part++) {
            depth[i] = part;
            bool fits = slice_bytes(s, c, t, depth) <= SHARED_BYTES &&
                        (part == 1 || inside * part <= 2 * MOST_DEPTH);
            if (fits && (extent % part == 0 || (part == 8 && extent > MOST_DEPTH)))
                options[count++] = part;
        }
        for (int o = 0; o < count; o++)
            if (options[o] <= 16)
                best = options[o];
        if (best < 4 && extent > MOST_DEPTH && count > 0 && options[count - 1] == 8)
            best = 8;
        const char *role = tl_arena_format(s->arena, "%s.depth", iter->var->name);
        depth[i] = count > 1 ? tl_decide(s, block->name, role, options, count, best) : best;
        if (depth[i] < extent)
            break; /* the outer ones go step by step */
    }
    return TL_OK;
}

/* The contraction's own loops: slices, steps of one, then what a thread computes, written out. `slice`: the loop in which
 * slices are copied; `wide`: columns go four at once. */
static tl_status cut_terms(tl_schedule *s, tl_block_ref anchor, const int64_t *depth, int outside,
                           const tl_var *vector, bool wide, tl_loop_ref *slice, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_list own, outer = { 0 }, inner = { 0 }, results = { 0 }, all = { 0 };
    tl_loop_ref last = { 0 };
    TL_TRY(tl_sketch_loops(s, anchor, outside, &own, diag));
    for (int i = 0; i < block->iter_count; i++) {
        tl_loop_ref loop = tl_sketch_loop_of(s, &block->iters[i], &own), parts[2];
        if (loop.id == 0)
            continue;
        if (block->iters[i].kind != TL_ITER_REDUCE) {
            if (block->iters[i].var == vector)
                last = loop;
            continue;
        }
        int64_t extent = tl_sketch_extent(s, loop);
        if (depth[i] >= extent) {
            tl_loop_push(&inner, loop);
        } else if (depth[i] == 1) {
            tl_loop_push(&outer, loop);
        } else {
            TL_TRY(tl_split(s, loop, (int64_t[]){ 0, depth[i] }, 2, parts, diag));
            tl_loop_push(&outer, parts[0]);
            tl_loop_push(&inner, parts[1]);
        }
    }
    for (int i = 0; i < own.count; i++)
        if (tl_schedule_get_loop(s, own.loops[i]) != NULL &&
            !tl_sketch_drives_reduce(s, block, own.loops[i]) && !tl_same_loop(own.loops[i], last))
            tl_loop_push(&results, own.loops[i]);
    tl_loop_push(&results, last);
    if (outer.count == 0) { /* one slice: its first loop is where it is copied, if it runs once */
        tl_loop_ref parts[2];
        if (inner.count == 0)
            return tl_refuse(diag, "default schedule", block->name, "has no loop of terms");
        TL_TRY(tl_split(s, inner.loops[0], (int64_t[]){ 0, tl_sketch_extent(s, inner.loops[0]) }, 2,
                        parts, diag));
        tl_loop_push(&outer, parts[0]);
        inner.loops[0] = parts[1];
    }
    for (int i = 0; i < outer.count; i++)
        tl_loop_push(&all, outer.loops[i]);
    for (int i = 0; i < inner.count; i++)
        tl_loop_push(&all, inner.loops[i]);
    for (int i = 0; i < results.count; i++)
        tl_loop_push(&all, results.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_decompose_reduction(s, anchor, outer.loops[0], &(tl_block_ref){ 0 }, diag));
    for (int i = 0; i < results.count; i++)
        if (last.id != 0 && tl_same_loop(results.loops[i], last) && wide)
            TL_TRY(tl_vectorize(s, last, diag));
        else
            TL_TRY(tl_unroll(s, results.loops[i], diag));
    *slice = outer.loops[outer.count - 1];
    return TL_OK;
}

/* The init that decompose_reduction made. */
static tl_status unroll_init(tl_schedule *s, const char *anchor, int outside, tl_diag *diag)
{
    tl_block_ref init;
    tl_loop_list own;
    if (tl_schedule_block(s, tl_arena_format(s->arena, "%s_init", anchor), &init, NULL) != TL_OK)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, init, outside, &own, diag));
    for (int i = 0; i < own.count; i++)
        TL_TRY(tl_unroll(s, own.loops[i], diag));
    return TL_OK;
}

/* Whether the loop moves an axis of the copy that other slices move, too. */
static bool moves_with_slices(const tl_schedule *s, const tl_block *copy, tl_loop_ref loop,
                              const tl_loop_list *loops, int inside)
{
    const tl_var *var = tl_schedule_get_loop(s, loop)->u.loop.var;
    for (int i = 0; i < copy->iter_count; i++)
        for (int k = OUTSIDE; k < inside && tl_expr_uses_var(copy->iters[i].binding, var); k++)
            if (tl_expr_uses_var(copy->iters[i].binding,
                                 tl_schedule_get_loop(s, loops->loops[k])->u.loop.var))
                return true;
    return false;
}

/* Whether four neighbours of the innermost loop lie side by side on both sides. */
static bool copies_wide(tl_schedule *s, const tl_block *block, const tl_loop_list *own)
{
    const tl_expr *loads[2];
    const tl_var *line = tl_contiguous_iter(s->arena, block);
    int64_t extent;
    if (line == NULL || block->predicate != NULL ||
        tl_dtype_size(block->stores[0].buffer->dtype) != 4 ||
        tl_collect_loads(block->stores[0].value, loads, 2) != 1 ||
        block->stores[0].value != loads[0] || !tl_sketch_reads_lines(s, loads[0], line))
        return false;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].var == line)
            return tl_const_int(block->iters[i].extent, &extent) && extent % WIDE == 0 &&
                   tl_same_loop(tl_sketch_loop_of(s, &block->iters[i], own),
                                own->loops[own->count - 1]) &&
                   tl_sketch_extent(s, own->loops[own->count - 1]) % WIDE == 0;
    return false;
}

/* Moves the block that fills an operand to where a slice begins, and shares its work among the threads. Where they do not come
 * out even, loops along which slices differ stay outside: no slice may reach into the next, or it would have no place of its
 * own. */
static tl_status share_slice(tl_schedule *s, tl_block_ref copy, tl_loop_ref slice, int64_t threads,
                             tl_diag *diag)
{
    tl_loop_list loops, own = { 0 }, outer = { 0 }, fused = { 0 }, order = { 0 };
    tl_loop_ref parts[3], all;
    TL_TRY(tl_compute_at(s, copy, slice, diag));
    const tl_block *block = tl_schedule_get_block(s, copy);
    TL_TRY(tl_sketch_loops(s, copy, 0, &loops, diag));
    int inside = 0;
    int64_t elements = 1;
    for (int i = 0; i < loops.count; i++)
        if (tl_same_loop(loops.loops[i], slice))
            inside = i + 1;
    for (int i = inside; i < loops.count; i++) {
        tl_loop_push(&own, loops.loops[i]);
        elements *= tl_sketch_extent(s, loops.loops[i]);
    }
    if (own.count == 0)
        return tl_refuse(diag, "default schedule", block->name, "copies one element");
    bool wide = elements % (WIDE * threads) == 0 && copies_wide(s, block, &own);
    for (int i = 0; i < own.count; i++)
        tl_loop_push(elements % threads != 0 &&
                             moves_with_slices(s, block, own.loops[i], &loops, inside)
                         ? &outer
                         : &fused,
                     own.loops[i]);
    if (fused.count == 0)
        return tl_refuse(diag, "default schedule", block->name,
                         "copies what does not come out even");
    for (int i = 0; i < outer.count; i++)
        tl_loop_push(&order, outer.loops[i]);
    for (int i = 0; i < fused.count; i++)
        tl_loop_push(&order, fused.loops[i]);
    if (outer.count > 0)
        TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    all = fused.loops[0];
    if (fused.count > 1)
        TL_TRY(tl_fuse(s, fused.loops, fused.count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads, WIDE }, wide ? 3 : 2, parts, diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.x", diag));
    if (wide)
        TL_TRY(tl_vectorize(s, parts[2], diag));
    return tl_sketch_extent(s, parts[0]) <= MOST_COPIES ? tl_unroll(s, parts[0], diag) : TL_OK;
}

/* The block that will fill the operand in shared memory: the one stage that makes it for this contraction, else a copy. */
static tl_status find_copy(tl_schedule *s, tl_block_ref anchor, const char *buffer_name,
                           const tl_buffer *buffer, tl_block_ref *copy, bool *made, tl_diag *diag)
{
    const tl_block *reader = tl_schedule_get_block(s, anchor);
    const tl_block *writer =
        buffer->role == TL_ROLE_LOCAL ? tl_sketch_only_writer(s, buffer, reader) : NULL;
    const tl_expr *loads[4];
    *made = writer != NULL && tl_block_is_spatial(writer) && writer->store_count == 1 &&
            writer->call == NULL && tl_collect_loads(writer->stores[0].value, loads, 4) <= 1;
    if (!*made)
        return tl_cache_read(s, anchor, buffer_name, "shared", copy, diag);
    *copy = tl_schedule_name_block(s, writer->name);
    return tl_set_scope(s, buffer_name, "shared", diag);
}

tl_status tl_gpu_tile(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    tl_contraction c;
    tiling t;
    int64_t depth[64];
    const tl_block *block = tl_schedule_get_block(s, anchor);
    if (!tl_find_contraction(s->arena, block, &c) || block->iter_count > 64 ||
        block->predicate != NULL)
        return tl_refuse(diag, "default schedule", block->name, "is no contraction");
    if (c.panel->u.buffer == c.stream->u.buffer)
        return tl_refuse(diag, "default schedule", block->name, "multiplies a buffer by itself");
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].extent->kind != TL_EXPR_INT)
            return tl_refuse(diag, "default schedule", block->name, "has extents that vary");
    TL_TRY(find_axes(s, out, &c, &t, diag));
    TL_TRY(decide_tile(s, &c, &t, diag));
    TL_TRY(decide_depth(s, &c, &t, depth, diag));

    const char *result = block->stores[0].buffer->name, *name = block->name;
    const tl_var *vector = c.vector;
    tl_block_ref panel, stream;
    tl_loop_ref blocks, threads, slice;
    bool made;
    const tl_buffer *panel_buffer = c.panel->u.buffer, *stream_buffer = c.stream->u.buffer;
    TL_TRY(find_copy(s, anchor, panel_buffer->name, panel_buffer, &panel, &made, diag));
    TL_TRY(find_copy(s, anchor, stream_buffer->name, stream_buffer, &stream, &made, diag));
    TL_TRY(cut_results(s, &t, &blocks, &threads, diag));
    TL_TRY(tl_compute_at(s, anchor, threads, diag));
    TL_TRY(tl_set_scope(s, result, "register", diag));
    TL_TRY(tl_bind_loop(s, threads, "threadIdx.x", diag));
    TL_TRY(cut_terms(s, anchor, depth, OUTSIDE, vector, is_even(&t.axes[t.column]), &slice, diag));
    TL_TRY(unroll_init(s, name, OUTSIDE, diag));
    TL_TRY(share_slice(s, panel, slice, thread_count(&t), diag));
    TL_TRY(share_slice(s, stream, slice, thread_count(&t), diag));
    for (int i = 0; i < t.count; i++) {
        const axis *a = &t.axes[i];
        if (a->parts[2].id == 0)
            continue;
        bool wide = i == t.column && is_even(a);
        TL_TRY(wide ? tl_vectorize(s, a->parts[2], diag) : tl_unroll(s, a->parts[2], diag));
    }
    return tl_bind_loop(s, blocks, "blockIdx.x", diag);
}
