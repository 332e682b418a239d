/* schedule/sketch/sketch_nest.c: the default schedule of one nest by itself: the loop along which the result is contiguous
 * becomes the innermost and is vectorized. A transposition is tiled instead: rectangles of a vector's lanes at most, which
 * are turned around in registers (codegen/emit/emit_transpose_llvm.c), or written out where a side is too short. What a tile
 * reads and writes are whole cache lines, and lanes would gather. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    SHORT_STRIDE = 5, /* lanes closer than that are shuffled out of few vectors */
    SHORT_SIDE = 4,   /* of a rectangle: one that is shorter is written out */
    /* rows so far apart, or a multiple of it, meet in four sets of the first cache or fewer */
    MEETING_BYTES = TL_PAGE_BYTES / 4,
};

enum { MOST_MEETING = 8 }; /* lines that one set of a cache keeps, while others come and go */
enum { MOST_CHAINS = 4, MOST_VECTORS = 8, TILE_SIZES = 4 };
static const int64_t tile_sizes[TILE_SIZES] = { 0, 4, 8, 16 };
/* of such rows follow each other: the first of these that divides them */
enum { LINE_COUNTS = 7, MOST_LINES = 16 };
static const int64_t line_counts[LINE_COUNTS] = { 4, 5, 6, 7, 8, 3, 2 };

/* Whether a loop of the list moves the iter more than once. */
static bool runs(tl_schedule *s, const tl_block *block, int iter, const tl_loop_list *loops)
{
    tl_loop_ref loop = tl_sketch_loop_of(s, &block->iters[iter], loops);
    return loop.id != 0 && tl_sketch_extent(s, loop) > 1;
}

/* The spatial iter with stride 1 in the first store; NULL when there is none. */
static const tl_iter *contiguous_iter(tl_schedule *s, const tl_block *block,
                                      const tl_loop_list *loops)
{
    if (block->store_count == 0)
        return NULL;
    const tl_store *store = &block->stores[0];
    for (int i = block->iter_count - 1; i >= 0; i--)
        if (block->iters[i].kind == TL_ITER_SPATIAL && runs(s, block, i, loops) &&
            tl_access_stride(s->arena, store->buffer, store->indices, block->iters[i].var) == 1)
            return &block->iters[i];
    return NULL;
}

/* The reduce iter along which a load is contiguous and that may become lanes; NULL when there is none. */
static const tl_iter *contiguous_reduce(tl_schedule *s, const tl_block *block,
                                        const tl_loop_list *loops)
{
    const tl_expr *loads[8];
    if (!tl_block_is_reduction(block) || block->store_count != 1 || tl_keeps_order(s, block))
        return NULL;
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int i = block->iter_count - 1; i >= 0; i--)
        for (int l = 0; l < count; l++)
            if (block->iters[i].kind == TL_ITER_REDUCE && runs(s, block, i, loops) &&
                tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args,
                                 block->iters[i].var) == 1)
                return &block->iters[i];
    return NULL;
}

/* Whether every load moves with the iter by one element or not at all. */
static bool loads_follow(tl_schedule *s, const tl_block *block, const tl_iter *iter)
{
    const tl_expr *loads[16];
    int count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int l = 0; l < count; l++)
        if (!tl_sketch_reads_lines(s, loads[l], iter->var))
            return false;
    return true;
}

/* Whether every load moves so little with the iter that its lanes are shuffled out of few vectors. */
static bool loads_near(tl_schedule *s, const tl_block *block, const tl_iter *iter)
{
    const tl_expr *loads[16];
    int count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int l = 0; l < count; l++) {
        int64_t stride = tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, iter->var);
        if (stride == TL_NOT_AFFINE || stride < 0 || stride >= SHORT_STRIDE)
            return false;
    }
    return true;
}

/* The iter along which what is copied is contiguous, when the result is contiguous along another: `along`. NULL: this is
 * no transposition. */
static const tl_iter *transposed_iter(tl_schedule *s, const tl_block *block, const tl_iter *along,
                                      const tl_loop_list *loops)
{
    const tl_expr *load = block->store_count == 1 ? block->stores[0].value : NULL;
    if (load == NULL || load->kind != TL_EXPR_LOAD || !tl_block_is_spatial(block) ||
        block->predicate != NULL)
        return NULL;
    int64_t stride = tl_access_stride(s->arena, load->u.buffer, load->args, along->var);
    if (stride == TL_NOT_AFFINE || (stride < SHORT_STRIDE && stride > -SHORT_STRIDE))
        return NULL;
    for (int i = 0; i < block->iter_count; i++)
        if (runs(s, block, i, loops) &&
            tl_access_stride(s->arena, load->u.buffer, load->args, block->iters[i].var) == 1)
            return &block->iters[i];
    return NULL;
}

/* How a transposition goes along the rows that it writes: so many elements of a row follow each other before the next are read
 * (0: tiles as they come), or whole planes of rows do; and how many elements of what it reads are turned before the next row of
 * that (0: those of a tile): where lines meet none stays until its other half is asked for. */
typedef struct {
    int64_t run;
    bool is_planed;
    int64_t width;
} row_order;

/* A line of the cache, for what is written in parts is fetched as often; where the rows' lines meet in few sets of the first
 * cache, some lines, or the row when it is not long; where they meet in one set, all rows of a plane. */
static row_order find_order(tl_schedule *s, const tl_block *block, const tl_iter *row,
                            int64_t extent)
{
    const tl_store *store = &block->stores[0];
    const int64_t bytes = (int64_t)tl_dtype_size(store->buffer->dtype);
    const int64_t pitch = tl_access_stride(s->arena, store->buffer, store->indices, row->var);
    const bool meets = pitch > 0 && pitch * bytes % MEETING_BYTES == 0;
    const int64_t line = TL_LINE_BYTES / bytes;
    for (int i = 0; meets && i < LINE_COUNTS; i++)
        if (extent % (line * line_counts[i]) == 0)
            return (row_order){ line * line_counts[i], false, line };
    if (meets && extent <= MOST_LINES * line)
        return (row_order){ extent, pitch * bytes % TL_PAGE_BYTES == 0, 0 };
    return (row_order){ extent % line == 0 ? line : 0, false, 0 };
}

/* Splits two loops into tiles; what does not divide becomes nests of its own. */
static tl_status tile_transposition(tl_schedule *s, const tl_loop_list *loops, tl_loop_ref written,
                                    tl_loop_ref read, int64_t size, row_order rows, int lanes,
                                    tl_diag *diag)
{
    const int64_t run = rows.run;
    tl_loop_ref order[TL_MAX_LOOPS + 3], outer[2], inner[2], parts[2], tiled[2] = { written, read };
    int64_t extents[2], tile[2];
    int count = 0;
    for (int i = 0; i < loops->count; i++)
        if (!tl_same_loop(loops->loops[i], written) && !tl_same_loop(loops->loops[i], read))
            order[count++] = loops->loops[i];
    for (int i = 0; i < 2; i++) {
        extents[i] = tl_sketch_extent(s, tiled[i]);
        tile[i] =
            tl_min64(extents[i], i == 1 && rows.is_planed ? tl_min64(size, MOST_MEETING) : size);
        TL_TRY(tl_split(s, tiled[i], (int64_t[]){ 0, tile[i] }, 2, parts, diag));
        outer[i] = parts[0];
        inner[i] = parts[1];
    }
    tl_loop_ref across = { 0 };
    if (rows.width > tile[1] && rows.width % tile[1] == 0 && extents[1] % rows.width == 0) {
        TL_TRY(tl_split(s, outer[1], (int64_t[]){ 0, rows.width / tile[1] }, 2, parts, diag));
        outer[1] = parts[0];
        across = parts[1];
    }
    const bool runs_on = run > tile[0] && run < extents[0] && run % tile[0] == 0;
    if (runs_on) {
        TL_TRY(tl_split(s, outer[0], (int64_t[]){ 0, run / tile[0] }, 2, parts, diag));
        outer[0] = parts[0];
    }
    /* along a whole row, with what no tile divides */
    const int inside = run == extents[0] && tile[0] < run ? 0 : 1;
    order[count++] = outer[1 - inside];
    if (rows.is_planed && inside == 0 && count > 1) { /* the loop over a plane's rows inside */
        order[count - 1] = order[count - 2];
        order[count - 2] = outer[1];
    }
    order[count++] = outer[inside];
    if (runs_on)
        order[count++] = parts[1];
    if (across.id != 0)
        order[count++] = across;
    order[count++] = inner[1];
    order[count++] = inner[0];
    TL_TRY(tl_reorder(s, order, count, diag));
    TL_TRY(tl_unroll(s, inner[1], diag));
    bool is_turned =
        tile[0] <= lanes && tile[1] <= lanes && tl_min64(tile[0], tile[1]) >= SHORT_SIDE;
    if (is_turned && lanes <= tile_sizes[TILE_SIZES - 1])
        TL_TRY(tl_vectorize(s, inner[0], diag));
    else
        TL_TRY(tl_unroll(s, inner[0], diag));
    for (int turn = 0; turn < 2; turn++) { /* the inner one first: the outer copies it */
        const int i = turn == 0 ? inside : 1 - inside;
        if (extents[i] % tile[i] != 0)
            TL_TRY(tl_loop_partition(s, outer[i], diag));
    }
    return TL_OK;
}

/* A reduction whose lanes do not divide its extent: the init on its own, whole vectors, then the rest. It stays as it is
 * where the block's form does not allow that. */
static tl_status reduce_with_tail(tl_schedule *s, tl_block_ref ref, int first, tl_loop_ref loop,
                                  int lanes, tl_diag *diag)
{
    tl_loop_list loops;
    tl_loop_ref outer, reduce = { 0 };
    tl_schedule_state before = tl_schedule_save(s);
    const tl_block *block = tl_schedule_get_block(s, ref);
    if (tl_sketch_extent(s, loop) < lanes)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, ref, first, &loops, diag));
    for (int i = loops.count - 1; i >= 0; i--)
        if (tl_sketch_drives_reduce(s, block, loops.loops[i]))
            reduce = loops.loops[i];
    tl_status status = tl_decompose_reduction(s, ref, reduce, &(tl_block_ref){ 0 }, NULL);
    if (status == TL_OK)
        status = tl_sketch_vectorize(s, loop, lanes, &outer, NULL);
    if (status == TL_OK)
        status = tl_loop_partition(s, outer, NULL);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return TL_OK;
}

static bool is_light(const tl_expr *e, void *context)
{
    bool *light = context;
    const tl_function_info *info =
        e->kind == TL_EXPR_CALL ? &tl_function_infos[e->u.function] : NULL;
    *light &= info == NULL || info->arity > 1 || info->result != TL_RESULT_ROUNDED;
    return *light;
}

/* Whether a vector of the block takes about as long as a turn of the loop around it: what it reads is near, for the block stands
 * within a row, and it calls no function that is a polynomial. */
static bool turns_cost(const tl_block *block, int first)
{
    bool light = first > 0;
    for (int i = 0; i < block->store_count && light; i++)
        tl_expr_visit(block->stores[i].value, is_light, &light);
    return light;
}

/* How many vectors are taken at once: of partial sums as many as divide the extent, four if possible, eight where that is all
 * of it and turns cost; else one, or four where they divide the extent and turns cost. */
static int decide_vectors(tl_schedule *s, const tl_block *block, int first, int64_t extent,
                          int lanes, bool lanes_reduce)
{
    int64_t options[4], initial = 1;
    int count = 0;
    bool near = turns_cost(block, first);
    for (int64_t vectors = 1; vectors <= MOST_VECTORS; vectors *= 2) {
        bool divides = extent % (lanes * vectors) == 0;
        if (vectors > 1 && !(lanes_reduce ? divides : lanes * vectors <= extent))
            continue;
        options[count++] = vectors;
        bool is_few = vectors <= MOST_CHAINS || (lanes_reduce && extent == lanes * vectors);
        if (divides && is_few && (near || (lanes_reduce && vectors <= MOST_CHAINS)))
            initial = vectors;
    }
    return (int)tl_decide(s, block->name, "vectors", options, count, initial);
}

/* Whether lanes along the iter read what no stride says, but constants do: quotients and remainders of it. */
static bool picks_elements(tl_schedule *s, const tl_block *block, const tl_iter *iter)
{
    const tl_expr *loads[16];
    int count = tl_collect_loads(block->stores[0].value, loads, 16);
    bool picks = false;
    for (int l = 0; l < count; l++) {
        for (int axis = 0; axis < loads[l]->u.buffer->rank; axis++)
            if (tl_expr_has_load(loads[l]->args[axis]))
                return false;
        picks |= tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, iter->var) ==
                 TL_NOT_AFFINE;
    }
    return picks;
}

tl_status tl_sketch_nest(tl_schedule *s, tl_block_ref ref, int first, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    if (block->call != NULL || block->store_count == 0)
        return TL_OK;
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, ref, first, &loops, diag));
    const tl_dtype dtype = block->stores[0].buffer->dtype;
    int lanes = tl_target_lanes(s->target, dtype == TL_BOOL ? TL_F32 : dtype);
    const tl_iter *iter = contiguous_iter(s, block, &loops),
                  *reduce = contiguous_reduce(s, block, &loops);
    /* a reduction shorter than a vector has no lanes */
    bool is_short = reduce != NULL && tl_max_extent(reduce->extent) < lanes;
    bool lanes_reduce =
        reduce != NULL &&
        (iter == NULL || !(is_short ? loads_near(s, block, iter) : loads_follow(s, block, iter)));
    if (reduce != NULL && iter != NULL)
        lanes_reduce = tl_decide_range(s, block->name, "lanes_reduce", 0, 1, lanes_reduce) != 0;
    if (lanes_reduce)
        iter = reduce;
    if (iter == NULL)
        return TL_OK;
    tl_loop_ref loop = tl_sketch_loop_of(s, iter, &loops), outer;
    if (loop.id == 0)
        return TL_OK;
    if (lanes_reduce &&
        tl_sketch_extent(s, loop) % lanes != 0) { /* rows of a plane go on in each other */
        TL_TRY(tl_sketch_fuse_reduction(s, ref, &loop, diag));
        block = tl_schedule_get_block(s, ref);
    }

    const tl_iter *transposed = lanes_reduce ? NULL : transposed_iter(s, block, iter, &loops);
    tl_loop_ref read = { 0 };
    if (transposed != NULL)
        read = tl_sketch_loop_of(s, transposed, &loops);
    bool tiles = read.id != 0 && !tl_same_loop(read, loop) && loops.count < TL_MAX_LOOPS - 2;
    int64_t size = tiles ? tl_decide(s, block->name, "tile", tile_sizes, TILE_SIZES,
                                     tl_min64(lanes, tile_sizes[TILE_SIZES - 1]))
                         : 0;
    if (size > 0) {
        tl_schedule_state before = tl_schedule_save(s);
        row_order rows = find_order(s, block, transposed, tl_sketch_extent(s, loop));
        tl_status status = tile_transposition(s, &loops, loop, read, size, rows, lanes, NULL);
        if (status != TL_ILLEGAL_SCHEDULE)
            return status;
        tl_schedule_restore(s, &before);
        block = tl_schedule_get_block(s, ref);
    }

    int64_t extent = tl_sketch_extent(s, loop);
    if (lanes_reduce && extent % lanes != 0)
        return reduce_with_tail(s, ref, first, loop, lanes, diag);
    /* several vectors of partial sums: one alone waits for the latency of its own addition */
    lanes *= decide_vectors(s, block, first, extent, lanes, lanes_reduce);
    if (!lanes_reduce && loops.loops[loops.count - 1].id != loop.id) {
        tl_loop_ref order[TL_MAX_LOOPS];
        int count = 0;
        for (int i = 0; i < loops.count; i++)
            if (loops.loops[i].id != loop.id)
                order[count++] = loops.loops[i];
        order[count++] = loop;
        TL_TRY(tl_reorder(s, order, count, diag));
    }
    /* written out, each vector's elements are in known places: shuffled out of few vectors, not gathered */
    bool is_known = !lanes_reduce && tl_sketch_is_fixed(s, loop) &&
                    extent <= MOST_VECTORS * lanes && picks_elements(s, block, iter);
    TL_TRY(tl_sketch_vectorize(s, loop, lanes, &outer, diag));
    if (outer.id != 0 && extent % lanes != 0)
        TL_TRY(tl_loop_partition(s, outer, diag));
    return outer.id != 0 && is_known ? tl_unroll(s, outer, diag) : TL_OK;
}
