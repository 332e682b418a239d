/* schedule/sketch/sketch_tiling.c: multi-level tiling of any block, as a tuner without expert rules would have it
 * (Ansor's SSRSRS, Zheng and others 2020): every spatial loop in four parts, every reduce loop in two.
 *
 *     for S0.., for S1..                       parallel outside
 *       for R0..
 *         for S2.., for R1.., for S3..         S3 unrolled, its contiguous loop vectorized
 *           acc[...] += ...
 *       out[...] = epilogue(acc)               fused: under S0 (level 1) or S1 (level 2); else a nest of its own
 *
 * A part of a tile is of any size; what the whole tile leaves over of an axis becomes nests of its own, of at most two axes.
 * The register rule: S3 is no larger than the register file; when S2 fits as well, a fused block's results stay in
 * registers from R0's first step to its last, otherwise on the stack.
 *
 * Exact (of the plain space, sketch_plain.c): all parts divide their axis, lanes too, and there is no register rule. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    MOST_AXES = 12,
    LARGEST_PART = 64,
    MOST_LOOPS = 22,    /* that one reorder takes */
    MOST_TAILS = 2,     /* axes with something left over: each doubles the code */
    MOST_UNROLLED = 64, /* vector operations written out */
    LARGEST_STACK = 1 << 14,
};

/* An axis of the block: an iter that runs more than once. parts: S1 S2 S3, or R1 alone at [2]. */
typedef struct {
    const tl_iter *iter;
    int64_t extent, parts[3];
    bool divided;      /* parts must divide the extent */
    tl_loop_ref out;   /* the epilogue's loop along it; spatial only */
    tl_loop_ref outer; /* over whole tiles */
} axis;

typedef struct {
    int count, vector; /* vector: which axis the lanes are along; -1: none */
    axis axes[MOST_AXES];
    int64_t unroll; /* operations to write out beyond S3 */
    bool exact;
} tiling;

/* Loads that some spatial iter does not move. */
static int loads_that_miss(const tl_block *block)
{
    const tl_expr *loads[16];
    int missing = 0, count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int l = 0; l < count; l++) {
        bool misses = false;
        for (int i = 0; i < block->iter_count; i++)
            misses |= block->iters[i].kind == TL_ITER_SPATIAL &&
                      tl_max_extent(block->iters[i].extent) > 1 &&
                      !tl_expr_uses_var(loads[l], block->iters[i].var);
        missing += misses;
    }
    return missing;
}

bool tl_sketch_needs_tiling(const tl_block *block)
{
    if (block->call != NULL || block->store_count != 1 || block->predicate != NULL)
        return false;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_ORDERED)
            return false;
    int missing = loads_that_miss(block);
    return missing >= 2 || (missing == 1 && tl_block_is_reduction(block));
}

/* --- decisions --------------------------------------------------------------------------------------------------- */

/* Sizes of a part within `most`: divisors of `extent`, and unless it must be divided those near powers of two. */
static int part_sizes(int64_t extent, int64_t most, bool divided, int64_t *out, int capacity)
{
    static const int64_t odd[] = { 3, 5, 6, 7, 12, 14, 24, 28, 48, 56 };
    int count = 0;
    for (int64_t size = 1; size <= most && count < capacity; size++) {
        bool fits = extent % size == 0;
        if (!divided)
            fits |= (size & (size - 1)) == 0;
        for (size_t i = 0; !divided && i < sizeof odd / sizeof *odd; i++)
            fits |= size == odd[i];
        if (fits)
            out[count++] = size;
    }
    return count;
}

static int64_t decide_part(tl_schedule *s, const char *block, const axis *a, int level,
                           int64_t most)
{
    int64_t sizes[LARGEST_PART], left = a->extent;
    for (int i = level + 1; i < 3; i++)
        left /= a->parts[i];
    most = tl_min64(tl_min64(most, LARGEST_PART), left);
    if (most < 2)
        return 1;
    int count = part_sizes(left, most, a->divided, sizes, LARGEST_PART);
    const char *role = tl_arena_format(s->arena, "%s.%d", a->iter->var->name, level + 1);
    return tl_decide(s, block, role, sizes, count, 1);
}

/* S3 in vectors, S2 and S3 in vectors. */
static int64_t tile_vectors(const tiling *t, int first_level, int lanes)
{
    int64_t product = 1;
    for (int i = 0; i < t->count; i++)
        for (int level = first_level; level < 3 && t->axes[i].iter->kind == TL_ITER_SPATIAL;
             level++)
            product *= i == t->vector && level == 2 ? tl_ceildiv(t->axes[i].parts[2], lanes)
                                                    : t->axes[i].parts[level];
    return product;
}

static int64_t registers_for_results(const tl_schedule *s)
{
    return tl_isa_infos[s->target->isa].vector_registers - 2;
}

static bool find_axes(tl_schedule *s, const tl_block *block, bool exact, tiling *t)
{
    const tl_var *vector = tl_contiguous_iter(s->arena, block);
    *t = (tiling){ .vector = -1, .exact = exact };
    int64_t largest = 0;
    int free_axis = -1;
    for (int i = 0; i < block->iter_count; i++) {
        int64_t extent;
        if (tl_max_extent(block->iters[i].extent) == 1)
            continue;
        if (t->count == MOST_AXES || !tl_const_int(block->iters[i].extent, &extent))
            return false;
        if (block->iters[i].var == vector)
            t->vector = t->count;
        else if (block->iters[i].kind == TL_ITER_SPATIAL && extent > largest) {
            largest = extent;
            free_axis = t->count;
        }
        t->axes[t->count++] = (axis){ &block->iters[i], extent, { 1, 1, 1 }, true, { 0 }, { 0 } };
    }
    if (free_axis >= 0 && !exact)
        t->axes[free_axis].divided = false;
    return t->count > 0;
}

/* S3 of the contiguous axis: whole vectors, at most four, or exactly a divisor. */
static void decide_lanes(tl_schedule *s, const tl_block *block, tiling *t, int lanes)
{
    axis *v = &t->axes[t->vector];
    int64_t sizes[LARGEST_PART], initial = lanes;
    int count = 0;
    if (t->exact) {
        count = part_sizes(v->extent, LARGEST_PART, true, sizes, LARGEST_PART);
        initial = sizes[0];
        for (int i = 0; i < count; i++)
            initial = sizes[i] <= lanes ? sizes[i] : initial;
    }
    for (int64_t vectors = 1; !t->exact && vectors <= 4 && vectors * lanes <= v->extent;
         vectors *= 2)
        if (v->extent % lanes != 0 || v->extent % (vectors * lanes) == 0)
            sizes[count++] = vectors * lanes;
    const char *role = tl_arena_format(s->arena, "%s.3", v->iter->var->name);
    v->parts[2] = count > 0 ? tl_decide(s, block->name, role, sizes, count, initial) : v->extent;
    v->divided = t->exact || v->extent % v->parts[2] == 0;
}

/* From the innermost part outwards, so that each knows what room is left. */
static void decide_parts(tl_schedule *s, const tl_block *block, tiling *t, int lanes)
{
    int64_t registers = registers_for_results(s);
    int loops = block->iter_count + 2; /* of the nest, and two more for the lanes */
    /* parts of two reduce loops would take turns: only the innermost is divided where terms keep their order */
    bool keeps_order = tl_keeps_order(s, block), reduces = false;
    if (t->vector >= 0)
        decide_lanes(s, block, t, lanes);
    for (int level = 2; level >= 0; level--)
        for (int i = t->count - 1; i >= 0; i--) {
            axis *a = &t->axes[i];
            bool spatial = a->iter->kind == TL_ITER_SPATIAL;
            if ((level == 2 && i == t->vector) || (!spatial && level != 2))
                continue;
            int64_t most = LARGEST_PART;
            if (spatial && level == 2 && !t->exact)
                most = registers / tile_vectors(t, 2, lanes);
            if (!spatial) /* something is left outside, so that the init comes before it */
                most = keeps_order && reduces ? 1 : a->extent - 1;
            reduces |= !spatial;
            if (loops == MOST_LOOPS)
                most = 1;
            a->parts[level] = decide_part(s, block->name, a, level, most);
            loops += a->parts[level] > 1;
        }
    static const int64_t steps[] = { 0, 16, MOST_UNROLLED, 512 }; /* Ansor's, for CPUs */
    t->unroll = tl_decide(s, block->name, "unroll", steps, t->exact ? 4 : 3, 16);
}

/* --- the nest ---------------------------------------------------------------------------------------------------- */

/* Splits a loop in parts of these sizes, the first of which may stick out; parts of one iteration get no loop (id 0). */
static tl_status split_parts(tl_schedule *s, tl_loop_ref loop, const int64_t *sizes, int count,
                             tl_loop_ref *parts, tl_diag *diag)
{
    int64_t inside = 1, factors[4];
    int kept = 0, at[4];
    tl_loop_ref made[4];
    for (int i = 1; i < count; i++)
        inside *= sizes[i];
    for (int i = 0; i < count; i++) {
        parts[i] = (tl_loop_ref){ 0 };
        if (i == 0 ? tl_sketch_extent(s, loop) > inside : sizes[i] > 1) {
            factors[kept] = kept == 0 ? 0 : sizes[i];
            at[kept++] = i;
        }
    }
    made[0] = loop;
    if (kept > 1)
        TL_TRY(tl_split(s, loop, factors, kept, made, diag));
    for (int k = 0; k < kept; k++)
        parts[at[k]] = made[k];
    return TL_OK;
}

/* The one load of `acc` by the epilogue, element for element: each axis of `acc` is an iter of both blocks, or one
 * element. Finds the epilogue's loop for each spatial axis. */
static bool match_epilogue(tl_schedule *s, const tl_block *block, const tl_block *out, tiling *t,
                           tl_loop_list *loops)
{
    const tl_expr *loads[32], *load = NULL;
    const tl_store *store = &block->stores[0];
    int count = tl_collect_loads(out->stores[0].value, loads, 32), matched = 0;
    for (int i = 0; i < count; i++)
        if (loads[i]->u.buffer == store->buffer) {
            if (load != NULL)
                return false;
            load = loads[i];
        }
    for (int i = 0; i < t->count; i++) {
        axis *a = &t->axes[i];
        for (int d = 0; load != NULL && d < store->buffer->rank; d++) {
            const tl_expr *written = store->indices[d], *read = load->args[d];
            if (a->iter->kind != TL_ITER_SPATIAL || written->kind != TL_EXPR_VAR ||
                written->u.var != a->iter->var || read->kind != TL_EXPR_VAR)
                continue;
            for (int k = 0; k < out->iter_count; k++)
                if (out->iters[k].var == read->u.var)
                    a->out = tl_sketch_loop_of(s, &out->iters[k], loops);
            if (a->out.id != 0 && tl_sketch_extent(s, a->out) == a->extent)
                matched++;
        }
    }
    int spatial = 0, running = 0;
    for (int i = 0; i < t->count; i++)
        spatial += t->axes[i].iter->kind == TL_ITER_SPATIAL;
    for (int i = 0; i < loops->count; i++)
        running += tl_sketch_extent(s, loops->loops[i]) > 1;
    return matched == spatial && running == spatial;
}

/* Splits and orders the epilogue's loops: S0, for level 2 S1, then the rest of the tile, the contiguous loop innermost and
 * vectorized. `under` gets the loop that the block moves under. */
static tl_status tile_epilogue(tl_schedule *s, tiling *t, const tl_loop_list *loops, int level,
                               int lanes, tl_loop_ref *under, int *depth, tl_diag *diag)
{
    tl_loop_list once = { 0 }, order[3] = { 0 };
    tl_loop_ref vector = { 0 };
    for (int i = 0; i < loops->count; i++)
        if (tl_sketch_extent(s, loops->loops[i]) == 1)
            tl_loop_push(&once, loops->loops[i]);
    for (int i = 0; i < t->count; i++) {
        axis *a = &t->axes[i];
        tl_loop_ref parts[3];
        if (a->iter->kind != TL_ITER_SPATIAL)
            continue;
        int64_t inner = a->parts[1] * a->parts[2];
        int64_t fused_1[] = { 0, a->parts[0] * inner }, fused_2[] = { 0, a->parts[0], inner };
        TL_TRY(split_parts(s, a->out, level == 2 ? fused_2 : fused_1, level + 1, parts, diag));
        a->outer = parts[0];
        for (int p = 0; p < level; p++)
            tl_loop_push(&order[p], parts[p]);
        if (i == t->vector)
            vector = parts[level];
        else
            tl_loop_push(&order[2], parts[level]);
    }
    tl_loop_list all = once;
    for (int p = 0; p < level; p++)
        for (int i = 0; i < order[p].count; i++)
            tl_loop_push(&all, order[p].loops[i]);
    *depth = all.count;
    if (all.count == 0)
        return tl_refuse(diag, "tiling", "epilogue", "has no loop outside its tile");
    *under = all.loops[all.count - 1];
    for (int i = 0; i < order[2].count; i++)
        tl_loop_push(&all, order[2].loops[i]);
    if (vector.id != 0 && tl_sketch_extent(s, vector) > lanes) {
        tl_loop_ref parts[2];
        TL_TRY(tl_split(s, vector, (int64_t[]){ 0, lanes }, 2, parts, diag));
        tl_loop_push(&all, parts[0]);
        vector = parts[1];
    }
    tl_loop_push(&all, vector);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    for (int i = *depth; i < all.count; i++)
        if (!tl_same_loop(all.loops[i], vector) &&
            tile_vectors(t, level - 1, lanes) <= registers_for_results(s))
            TL_TRY(tl_unroll(s, all.loops[i], diag));
    return vector.id != 0 ? tl_vectorize(s, vector, diag) : TL_OK;
}

/* Unrolls loops, the innermost first, as long as what is written out stays below the limit. */
static tl_status unroll_from_inside(tl_schedule *s, const tl_loop_list *loops, int64_t copies,
                                    int64_t limit, bool *all, tl_diag *diag)
{
    *all = true;
    for (int i = loops->count - 1; i >= 0; i--) {
        copies *= tl_sketch_extent(s, loops->loops[i]);
        *all &= copies <= limit;
        if (*all)
            TL_TRY(tl_unroll(s, loops->loops[i], diag));
    }
    return TL_OK;
}

/* The block's own loops from number `first` on: `levels` parts of each spatial one are its own (4: all). In registers: S2
 * is written out. */
static tl_status tile_block(tl_schedule *s, tl_block_ref ref, tiling *t, int first, int levels,
                            int lanes, bool in_registers, tl_diag *diag)
{
    tl_loop_list own, once = { 0 }, spatial[4] = { 0 }, reduce[2] = { 0 };
    tl_loop_ref vector = { 0 };
    TL_TRY(tl_sketch_loops(s, ref, first, &own, diag));
    const tl_block *block = tl_schedule_get_block(s, ref);
    for (int i = 0; i < own.count; i++)
        if (tl_sketch_extent(s, own.loops[i]) == 1)
            tl_loop_push(tl_sketch_drives_reduce(s, block, own.loops[i]) ? &reduce[0] : &once,
                         own.loops[i]);
    for (int i = 0; i < t->count; i++) {
        axis *a = &t->axes[i];
        const tl_iter *iter = NULL;
        for (int k = 0; k < block->iter_count; k++)
            if (block->iters[k].var == a->iter->var)
                iter = &block->iters[k];
        tl_loop_ref parts[4], loop = { 0 };
        if (iter != NULL)
            loop = tl_sketch_loop_of(s, iter, &own);
        if (a->iter->kind == TL_ITER_REDUCE) {
            if (loop.id == 0)
                return tl_refuse(diag, "tiling", block->name, "has no loop for an iter");
            TL_TRY(split_parts(s, loop, (int64_t[]){ 0, a->parts[2] }, 2, parts, diag));
            tl_loop_push(&reduce[0], parts[0]);
            tl_loop_push(&reduce[1], parts[1]);
            continue;
        }
        int64_t inside = a->parts[1] * a->parts[2] * (levels > 2 ? a->parts[0] : 1);
        if (loop.id == 0 || tl_sketch_extent(s, loop) == 1) {
            if (levels < 4 && inside == 1)
                continue; /* a tile of one element along this axis */
            return tl_refuse(diag, "tiling", block->name, "has no loop for an iter");
        }
        int64_t factors[4] = { 0, a->parts[0], a->parts[1], a->parts[2] };
        TL_TRY(split_parts(s, loop, factors + (4 - levels), levels, parts, diag));
        if (levels == 4)
            a->outer = parts[0];
        for (int p = 0; p < levels - 1; p++)
            tl_loop_push(&spatial[4 - levels + p], parts[p]);
        if (i == t->vector)
            vector = parts[levels - 1];
        else
            tl_loop_push(&spatial[3], parts[levels - 1]);
    }
    if (vector.id != 0 && tl_sketch_extent(s, vector) > lanes) {
        tl_loop_ref parts[2];
        TL_TRY(tl_split(s, vector, (int64_t[]){ 0, lanes }, 2, parts, diag));
        tl_loop_push(&spatial[3], parts[0]);
        vector = parts[1];
    }
    const tl_loop_list *order[] = { &once,       &spatial[0], &spatial[1], &reduce[0],
                                    &spatial[2], &reduce[1],  &spatial[3] };
    tl_loop_list all = { 0 };
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (int i = 0; i < order[k]->count; i++)
            tl_loop_push(&all, order[k]->loops[i]);
    tl_loop_push(&all, vector);
    if (all.count > 1)
        TL_TRY(tl_reorder(s, all.loops, all.count, diag));

    bool whole;
    int64_t copies = 1;
    TL_TRY(unroll_from_inside(s, &spatial[3], 1, MOST_UNROLLED, &whole, diag));
    for (int i = 0; i < spatial[3].count; i++)
        copies *= tl_sketch_extent(s, spatial[3].loops[i]);
    int64_t tiles = 1;
    for (int i = 0; in_registers && i < spatial[2].count; i++)
        tiles *= tl_sketch_extent(s, spatial[2].loops[i]);
    TL_TRY(unroll_from_inside(s, &reduce[1], copies * tiles, t->unroll, &whole, diag));
    for (int i = 0; whole && i < reduce[1].count; i++)
        copies *= tl_sketch_extent(s, reduce[1].loops[i]);
    if (in_registers || whole)
        TL_TRY(unroll_from_inside(s, &spatial[2], copies, in_registers ? INT64_MAX : t->unroll,
                                  &whole, diag));
    for (int i = 0; i < once.count; i++)
        TL_TRY(tl_unroll(s, once.loops[i], diag));
    if (vector.id != 0)
        TL_TRY(tl_vectorize(s, vector, diag));
    tl_loop_ref outermost = reduce[0].count > 0 ? reduce[0].loops[0] : (tl_loop_ref){ 0 };
    if (outermost.id == 0 && reduce[1].count > 0)
        return tl_refuse(diag, "tiling", block->name, "has no reduce loop outside its tile");
    if (outermost.id != 0)
        TL_TRY(tl_decompose_reduction(s, ref, outermost, &(tl_block_ref){ 0 }, diag));
    return TL_OK;
}

/* What whole tiles leave over of an axis becomes nests of its own; the innermost loop first. */
static tl_status peel(tl_schedule *s, const tiling *t, tl_diag *diag)
{
    for (int i = t->count - 1; i >= 0; i--) {
        const axis *a = &t->axes[i];
        int64_t tile = a->parts[0] * a->parts[1] * a->parts[2];
        if (a->iter->kind == TL_ITER_SPATIAL && a->extent % tile != 0)
            TL_TRY(tl_loop_partition(s, a->outer, diag));
    }
    return TL_OK;
}

/* Constants in the order of the lanes, as the expert rules have them. */
static tl_status pack(tl_schedule *s, tl_block_ref ref, const tiling *t, int lanes, tl_diag *diag)
{
    tl_contraction c;
    if (t->vector < 0)
        return TL_OK;
    const axis *v = &t->axes[t->vector];
    int64_t width = v->parts[2];
    if (tl_find_contraction(s->arena, tl_schedule_get_block(s, ref), &c) &&
        c.vector == v->iter->var)
        return tl_sketch_pack_panel(s, ref, &c, width, tl_min64(width, lanes), 0, 0, diag);
    return tl_sketch_pack_constants(s, ref, v->iter->var, width, diag);
}

tl_status tl_sketch_tiling(tl_schedule *s, tl_block_ref ref, tl_block_ref out, int level,
                           bool exact, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    int lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    tiling t;
    if (!find_axes(s, block, exact, &t))
        return tl_refuse(diag, "tiling", block->name, "has no axes of constant extent");
    decide_parts(s, block, &t, lanes);
    TL_TRY(pack(s, ref, &t, lanes, diag));
    if (level == 0) {
        TL_TRY(tile_block(s, ref, &t, 0, 4, lanes, false, diag));
        return peel(s, &t, diag);
    }
    tl_loop_list loops;
    tl_loop_ref under;
    int depth;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    block = tl_schedule_get_block(s, ref);
    if (!match_epilogue(s, block, tl_schedule_get_block(s, out), &t, &loops))
        return tl_refuse(diag, "tiling", block->name,
                         "has no epilogue that reads it element by element");
    TL_TRY(tile_epilogue(s, &t, &loops, level, lanes, &under, &depth, diag));
    TL_TRY(tl_compute_at(s, ref, under, diag));
    const tl_buffer *result = block->stores[0].buffer;
    int64_t vectors = tile_vectors(&t, level - 1, lanes);
    bool in_registers = vectors <= registers_for_results(s);
    for (int i = 0; level == 1 && i < t.count; i++)
        in_registers &= t.axes[i].parts[0] == 1;
    bool small = tl_storage_bytes(result->dtype, vectors * lanes) <= LARGEST_STACK;
    const char *scope = in_registers ? "register" : small ? "stack" : "global";
    TL_TRY(tl_set_scope(s, result->name, scope, diag));
    TL_TRY(tile_block(s, ref, &t, depth, level == 2 ? 2 : 3, lanes, in_registers, diag));
    return peel(s, &t, diag);
}
