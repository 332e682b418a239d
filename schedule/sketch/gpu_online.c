/* schedule/sketch/gpu_online.c: attention of long rows, block by block of keys (the lowering `online`), in one launch: the
 * scores of all keys never exist.
 *
 *     for <batch, head, block of rows>  blockIdx
 *       m, l, acc = ...                      shared memory, rows among warps
 *       for <block of keys>
 *         z[R, T] = masked(q[R, :] k')       tiles by all warps (gpu_mma.c, gpu_tile.c), their reader the epilogue
 *         n, c, m, p, w                      a warp a row
 *         acc[R, :] = acc*c + p[R, T] v      tiles by all warps
 *       a = acc*(1/l)                        where the program has it here; else acc and l lie in global memory
 *
 * The loops around the stages are those that the program was written with; every stage stays where it is, and what it hands
 * on lies in shared memory. */
#include "schedule/sketch/gpu_private.h"

enum { WARPS = TL_GPU_SHARED_WARPS, MOST_STAGES = 32 };

typedef struct {
    int depth;                  /* loops around both products */
    tl_block_ref first, second; /* the products */
    tl_block_ref masked, mix;   /* what reads them */
    const char *weights;        /* the second's stream */
    int count;
    const char *stages[MOST_STAGES]; /* all other blocks in the outermost of those loops */
} online;

static const tl_block *only_reader(tl_schedule *s, const tl_block *block)
{
    const tl_block **readers;
    return block->store_count == 1 &&
                   tl_readers_of(s->arena, s->program->body, block->stores[0].buffer, &readers) == 1
               ? readers[0]
               : NULL;
}

/* Whether both have the same loop at the depth. */
static bool share_loop(tl_schedule *s, tl_block_ref a, tl_block_ref b, int depth)
{
    tl_loop_list of_a, of_b;
    return tl_sketch_loops(s, a, 0, &of_a, NULL) == TL_OK &&
           tl_sketch_loops(s, b, 0, &of_b, NULL) == TL_OK && of_a.count > depth &&
           of_b.count > depth && tl_same_loop(of_a.loops[depth], of_b.loops[depth]);
}

static bool find(tl_schedule *s, tl_block_ref anchor, online *o)
{
    const tl_block *second = tl_schedule_get_block(s, anchor), **blocks;
    tl_contraction product, other;
    int count = tl_sketch_blocks(s, &blocks);
    *o = (online){ .second = anchor, .depth = tl_sketch_shared_loops(s, anchor) };
    if (o->depth < 2 || !tl_find_contraction(s->arena, second, &product) ||
        product.stream->u.buffer->role != TL_ROLE_LOCAL || only_reader(s, second) == NULL)
        return false;
    o->weights = product.stream->u.buffer->name;
    o->mix = tl_schedule_name_block(s, only_reader(s, second)->name);
    for (int i = 0; i < count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, blocks[i]->name);
        if (!share_loop(s, anchor, ref, 0) || blocks[i] == second)
            continue;
        if (blocks[i]->call != NULL || blocks[i]->store_count != 1 || o->count == MOST_STAGES)
            return false;
        if (share_loop(s, anchor, ref, o->depth - 1) && o->first.id == 0 &&
            tl_find_contraction(s->arena, blocks[i], &other) && only_reader(s, blocks[i]) != NULL) {
            o->first = ref;
            o->masked = tl_schedule_name_block(s, only_reader(s, blocks[i])->name);
        } else {
            o->stages[o->count++] = blocks[i]->name;
        }
    }
    return o->first.id != 0;
}

/* Rows among the warps; of a row its terms or elements among a warp's threads, or rows among them, too, where each has one. */
static tl_status share_rows(tl_schedule *s, tl_block_ref ref, tl_diag *diag)
{
    tl_loop_list loops;
    tl_loop_ref parts[3];
    int shared = tl_sketch_shared_loops(s, ref);
    TL_TRY(tl_sketch_loops(s, ref, shared, &loops, diag));
    if (loops.count == 0)
        return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, ref)->name,
                         "has no rows");
    bool alone = loops.count == 1;
    const int64_t lanes = tl_min64(TL_WARP_LANES, tl_sketch_extent(s, loops.loops[0]) / WARPS);
    TL_TRY(tl_split(s, loops.loops[0], (int64_t[]){ 0, WARPS, lanes }, alone ? 3 : 2, parts, diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.y", diag));
    return alone ? tl_bind_loop(s, parts[2], "threadIdx.x", diag)
                 : tl_gpu_share_stage(s, ref, shared + 2, TL_WARP_LANES, diag);
}

static tl_status product(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int depth,
                         const char *held, tl_diag *diag)
{
    tl_loop_ref tiles;
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = tl_gpu_mma_in(s, anchor, out, depth, TL_GPU_OWN_LOOPS, held, &tiles, diag);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return tl_gpu_tile_in(s, anchor, out, depth, TL_GPU_OWN_LOOPS, &tiles, diag);
}

/* What only stages of the launch read lies in shared memory. */
static tl_status keep_shared(tl_schedule *s, tl_block_ref anchor, tl_block_ref stage, tl_diag *diag)
{
    const tl_buffer *b = tl_schedule_get_block(s, stage)->stores[0].buffer;
    const tl_block **readers;
    int count = tl_readers_of(s->arena, s->program->body, b, &readers);
    for (int i = 0; i < count; i++)
        if (!share_loop(s, anchor, tl_schedule_name_block(s, readers[i]->name), 0))
            return TL_OK;
    return b->role != TL_ROLE_LOCAL || b->scope == TL_SCOPE_SHARED
               ? TL_OK
               : tl_set_scope(s, b->name, "shared", diag);
}

tl_status tl_gpu_online(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    static const char *const axes[] = { "blockIdx.x", "blockIdx.y", "blockIdx.z" };
    online o;
    tl_loop_list around;
    if (!find(s, anchor, &o))
        return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, anchor)->name,
                         "is not written block by block of keys");
    TL_TRY(tl_sketch_loops(s, anchor, 0, &around, diag));
    TL_TRY(product(s, o.second, o.mix, o.depth, o.weights, diag));
    TL_TRY(product(s, o.first, o.masked, o.depth, NULL, diag));
    for (int i = 0; i < o.count; i++) {
        tl_block_ref stage = tl_schedule_name_block(s, o.stages[i]);
        TL_TRY(keep_shared(s, anchor, stage, diag));
        if (stage.id != o.masked.id && stage.id != o.mix.id)
            TL_TRY(share_rows(s, stage, diag));
    }
    for (int i = 0; i < 3 && i < o.depth - 1; i++)
        TL_TRY(tl_bind_loop(s, around.loops[o.depth - 2 - i], axes[i], diag));
    tl_map_put(done, tl_schedule_get_block(s, o.second)->name, s);
    tl_map_put(done, tl_schedule_get_block(s, o.first)->name, s);
    for (int i = 0; i < o.count; i++)
        tl_map_put(done, o.stages[i], s);
    return TL_OK;
}
