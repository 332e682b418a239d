/* schedule/sketch/gpu_attention.c: a product that reads what row-wise stages make of another product, in one launch: attention
 * without the matrix of all scores in memory.
 *
 *     for <batch and blocks of rows>  blockIdx.x
 *       z[R, :] = masked(q[R, :] k')       tiles by all warps (gpu_mma.c, gpu_tile.c), its reader their epilogue; shared memory
 *       m[R] = max(z[R, :])                a warp a row (gpu_rows.c)
 *       p[R, :] = exp(z[R, :] - m[R])
 *       l[R] = sum(p[R, :])
 *       y[R, :] = epilogue(p[R, :] v)      tiles by all warps
 */
#include "schedule/sketch/gpu_private.h"

enum {
    WARPS = TL_GPU_SHARED_WARPS,
    LEAST_HEIGHT = 16,
    SLICES_BYTES = 32 << 10,                        /* of both products */
    MMA_SLICES_BYTES = 2 * 3 * TL_GPU_SHARED_SLICE, /* the same by tensor cores, of three stages */
};

/* Rows of a block: as many as shared memory holds of what is between the products, less where multiprocessors would be idle. 0:
 * none comes out even. */
static int64_t choose_height(const tl_schedule *s, const tl_chain *c, int64_t rows, int64_t batch)
{
    const int64_t options[] = { 64, 32, LEAST_HEIGHT };
    int64_t found = 0, row_bytes = 0;
    bool by_tensor_cores =
        s->program->tf32 || tl_dtype_size(c->second.stream->u.buffer->dtype) == 2;
    for (int i = 0; i < c->stage_count; i++) {
        const tl_buffer *b = c->stages[i]->stores[0].buffer;
        bool is_reduction = tl_block_is_reduction(c->stages[i]);
        row_bytes += tl_storage_bytes(b->dtype, is_reduction ? 1 : c->columns);
    }
    for (int i = 0; i < 3; i++) {
        int64_t bytes =
            options[i] * row_bytes + (by_tensor_cores ? MMA_SLICES_BYTES : SLICES_BYTES);
        if (rows % options[i] != 0 || bytes > s->target->gpu.shared_block)
            continue;
        if (found == 0 || batch * (rows / found) < s->target->cores)
            found = options[i];
    }
    return found;
}

/* A stage of R rows: those shared out to the warps, its terms or elements to the threads of one. */
static tl_status share_rows(tl_schedule *s, tl_block_ref ref, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list loops;
    tl_loop_ref parts[2];
    TL_TRY(tl_sketch_loops(s, ref, 1, &loops, diag));
    for (int i = 0; i < loops.count; i++) {
        if (tl_sketch_extent(s, loops.loops[i]) == 1)
            continue;
        if (tl_sketch_drives_reduce(s, block, loops.loops[i]))
            break;
        TL_TRY(tl_split(s, loops.loops[i], (int64_t[]){ 0, WARPS }, 2, parts, diag));
        TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.y", diag));
        return tl_gpu_share_stage(s, ref, 1 + i + 2, TL_WARP_LANES, diag);
    }
    return tl_refuse(diag, "default schedule", block->name, "has no rows");
}

/* A product of all warps, by tensor cores where its types have them, else by multiply-adds. */
static tl_status product(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int64_t height,
                         const char *held, tl_diag *diag)
{
    tl_loop_ref tiles;
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = tl_gpu_mma_in(s, anchor, out, 1, height, held, &tiles, diag);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return tl_gpu_tile_in(s, anchor, out, 1, height, &tiles, diag);
}

/* What a stage makes lies in shared memory, if it does not yet. */
static tl_status keep_shared(tl_schedule *s, tl_block_ref stage, tl_diag *diag)
{
    const tl_buffer *b = tl_schedule_get_block(s, stage)->stores[0].buffer;
    return b->scope == TL_SCOPE_SHARED ? TL_OK : tl_set_scope(s, b->name, "shared", diag);
}

tl_status tl_gpu_attention(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    tl_chain c;
    tl_chain_loops r;
    const tl_block *block = tl_schedule_get_block(s, anchor);
    if (!tl_sketch_find_chain(s, block, done, &c) || !tl_sketch_chain_loops(s, &c, &r))
        return tl_refuse(diag, "default schedule", block->name,
                         "reads no stages between it and another product");
    int64_t batch = 1, rows = tl_sketch_extent(s, r.row);
    for (int i = 0; i < r.batch.count; i++)
        batch *= tl_sketch_extent(s, r.batch.loops[i]);
    int64_t initial = choose_height(s, &c, rows, batch);
    const int64_t heights[] = { LEAST_HEIGHT, 32, 64 };
    if (initial == 0)
        return tl_refuse(diag, "default schedule", block->name,
                         "has rows that come to no even blocks");
    int64_t height = tl_decide(s, block->name, "height", heights, 3, initial);
    tl_block_ref first = tl_schedule_name_block(s, c.first->name), copy,
                 out = tl_schedule_name_block(s, c.out->name);
    const char *epilogue;
    TL_TRY(tl_sketch_chain_epilogue(s, &c, &epilogue, &copy, diag));

    const char *weights = c.second.stream->u.buffer->name;
    tl_loop_ref row[2], blocks;
    tl_loop_list all = r.batch;
    TL_TRY(tl_split(s, r.row, (int64_t[]){ 0, height }, 2, row, diag));
    tl_loop_push(&all, row[0]);
    tl_loop_list outer = all;
    tl_loop_push(&all, row[1]);
    for (int i = 0; i < r.columns.count; i++)
        tl_loop_push(&all, r.columns.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    blocks = outer.loops[0];
    if (outer.count > 1)
        TL_TRY(tl_fuse(s, outer.loops, outer.count, &blocks, diag));
    TL_TRY(product(s, anchor, out, height, weights, diag));
    for (int i = c.stage_count - 1; i >= 0; i--) {
        tl_block_ref stage = tl_schedule_name_block(s, c.stages[i]->name);
        TL_TRY(tl_compute_at(s, stage, blocks, diag));
        TL_TRY(keep_shared(s, stage, diag));
    }
    if (copy.id != 0) {
        TL_TRY(tl_compute_at(s, copy, blocks, diag));
        TL_TRY(keep_shared(s, copy, diag));
    }
    for (int i = 0; i < c.stage_count; i++)
        if (c.stages[i]->name != epilogue)
            TL_TRY(share_rows(s, tl_schedule_name_block(s, c.stages[i]->name), diag));
    TL_TRY(product(s, first, tl_schedule_name_block(s, epilogue), height, NULL, diag));
    TL_TRY(tl_bind_loop(s, blocks, "blockIdx.x", diag));

    tl_map_put(done, block->name, s);
    tl_map_put(done, c.out->name, s);
    tl_map_put(done, c.first->name, s);
    tl_map_put(done, epilogue, s);
    for (int i = 0; i < c.stage_count; i++)
        tl_map_put(done, c.stages[i]->name, s);
    return TL_OK;
}
