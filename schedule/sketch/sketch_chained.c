/* schedule/sketch/sketch_chained.c: the default schedule of a product that reads what row-wise stages make of another product:
 * attention without the matrix of all scores.
 *
 *     for <batch>                            parallel
 *       for <block of rows>                  parallel
 *         z[R, :] = masked(q[R, :] k')       register tiles of the first product, its reader their epilogue
 *         m[R] = max(z[R, :])                rows of the block one by one, vectorized
 *         p[R, :] = exp(z[R, :] - m[R])
 *         l[R] = sum(p[R, :])
 *         y[R, :] = epilogue(p[R, :] v)      register tiles of the second
 *
 * What a block of rows needs between the products stays in L1. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    MAX_STAGES = TL_CHAIN_STAGES,
    USUAL_ROWS = 384, /* of a dim, and elements of a row */
};
typedef tl_chain chain;
typedef tl_chain_loops result_loops;

static bool reads_any(const tl_block *reader, const tl_block *writer)
{
    for (int i = 0; i < writer->store_count; i++)
        if (tl_block_reads_buffer(reader, writer->stores[i].buffer))
            return true;
    return false;
}

/* Whether the block, or what is already found, needs what `writer` makes. */
static bool is_needed(const chain *c, const tl_block *writer)
{
    bool needed = reads_any(c->second.block, writer) || reads_any(c->out, writer);
    for (int i = 0; i < c->stage_count && !needed; i++)
        needed = reads_any(c->stages[i], writer);
    return needed;
}

bool tl_sketch_find_chain(tl_schedule *s, const tl_block *block, const tl_map *done, tl_chain *c)
{
    const tl_block **readers, **blocks, *found[MAX_STAGES];
    *c = (chain){ .columns = 1 };
    if (!tl_find_contraction(s->arena, block, &c->second) ||
        c->second.stream->u.buffer->role != TL_ROLE_LOCAL ||
        c->second.panel->u.buffer->role == TL_ROLE_LOCAL ||
        tl_readers_of(s->arena, s->program->body, block->stores[0].buffer, &readers) != 1 ||
        !tl_block_is_spatial(readers[0]) || readers[0]->store_count != 1)
        return false;
    c->out = readers[0];
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            c->columns *= tl_max_extent(block->iters[i].extent);

    int count = tl_sketch_blocks(s, &blocks), at = count;
    for (int i = 0; i < count; i++)
        if (blocks[i] == block)
            at = i;
    for (int i = at - 1; i >= 0; i--) {
        tl_contraction product;
        if (!is_needed(c, blocks[i]) || c->first == blocks[i])
            continue;
        if (blocks[i]->call != NULL || blocks[i]->store_count != 1 ||
            tl_map_has(done, blocks[i]->name))
            return false;
        if (tl_find_contraction(s->arena, blocks[i], &product)) {
            if (c->first != NULL)
                return false;
            c->first = blocks[i];
            continue;
        }
        if (c->first != NULL)
            continue; /* makes an operand of the first product */
        if (c->stage_count == MAX_STAGES)
            return false;
        c->stages[c->stage_count++] = blocks[i];
    }
    for (int i = 0; i < c->stage_count; i++)
        found[i] = c->stages[c->stage_count - 1 - i];
    for (int i = 0; i < c->stage_count; i++)
        c->stages[i] = found[i];
    return c->first != NULL && c->stage_count > 0;
}

bool tl_sketch_chain_loops(tl_schedule *s, const tl_chain *c, tl_chain_loops *r)
{
    const tl_block *block = c->second.block;
    const tl_store *store = &block->stores[0];
    const tl_expr *loads[32], *load = NULL;
    tl_loop_list loops;
    *r = (result_loops){ 0 };
    int count = tl_collect_loads(c->out->stores[0].value, loads, 32);
    for (int i = 0; i < count; i++)
        if (loads[i]->u.buffer == store->buffer)
            load = loads[i];
    if (load == NULL ||
        tl_sketch_loops(s, tl_schedule_name_block(s, c->out->name), 0, &loops, NULL) != TL_OK)
        return false;
    for (int l = 0; l < loops.count; l++) {
        bool in_panel = false, in_stream = false;
        for (int i = 0; i < c->out->iter_count; i++) {
            const tl_var *loop = tl_schedule_get_loop(s, loops.loops[l])->u.loop.var;
            if (!tl_expr_uses_var(c->out->iters[i].binding, loop))
                continue;
            for (int axis = 0; axis < store->buffer->rank; axis++)
                for (int k = 0; k < block->iter_count; k++)
                    if (tl_expr_uses_var(load->args[axis], c->out->iters[i].var) &&
                        tl_expr_uses_var(store->indices[axis], block->iters[k].var)) {
                        in_panel |= tl_expr_uses_var(c->second.panel, block->iters[k].var);
                        in_stream |= tl_expr_uses_var(c->second.stream, block->iters[k].var);
                    }
        }
        if (in_panel && !in_stream)
            tl_loop_push(&r->columns, loops.loops[l]);
        else if (in_stream && !in_panel && r->row.id != 0)
            return false;
        else if (in_stream && !in_panel)
            r->row = loops.loops[l];
        else
            tl_loop_push(&r->batch, loops.loops[l]);
    }
    return r->row.id != 0 && r->columns.count > 0;
}

/* A product as the tile model sees it. */
typedef struct {
    int64_t vectors, steps;
} size;

static size size_of(const tl_target *target, const tl_block *block, const tl_contraction *c)
{
    size z = { 1, 1 };
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            z.steps *= tl_max_extent(block->iters[i].extent);
        else if (tl_expr_uses_var(c->panel, block->iters[i].var) &&
                 !tl_expr_uses_var(c->stream, block->iters[i].var))
            z.vectors *= tl_max_extent(block->iters[i].extent);
    z.vectors = tl_ceildiv(z.vectors, tl_target_lanes(target, block->stores[0].buffer->dtype));
    return z;
}

/* Cycles of a product in blocks of `height` rows and one of what is left; less than 0 when the tile that suits a block
 * leaves a tail in each, or what is left does not fill a tile, or a block is fewer than `least` tiles. */
static double cycles_in_blocks(const tl_target *target, size z, int64_t rows, int64_t height,
                               int64_t least)
{
    tl_tile_problem block = { .rows = height, .lines = 1, .vectors = z.vectors, .steps = z.steps };
    tl_register_tile t = tl_choose_tile(target, &block);
    int64_t left = rows % height;
    if (height % t.rows != 0 || height < least * t.rows || (left != 0 && left < t.rows))
        return -1;
    double cycles = (double)(rows / height) * tl_tile_cycles(target, &block, t);
    block.rows = left;
    if (left != 0)
        cycles += tl_tile_cycles(target, &block, t);
    return cycles * (double)z.steps;
}

/* Rows in a block, whose two buffers between the products stay in a quarter of L2: the height of least cycles, with
 * what idle cores lose. Where blocks are of two heights, only the batch is shared out. Rows that are `varying`: as many as
 * are usual, and as if they were whole blocks. */
static int64_t choose_height(tl_schedule *s, const chain *c, int64_t rows, int64_t batch,
                             bool varying)
{
    tl_contraction first;
    (void)tl_find_contraction(s->arena, c->first, &first);
    const tl_block *second = c->second.block;
    size a = size_of(s->target, c->first, &first), b = size_of(s->target, second, &c->second);
    int64_t columns = varying ? tl_min64(c->columns, USUAL_ROWS) : c->columns, usual = rows;
    int64_t row_bytes = tl_storage_bytes(second->stores[0].buffer->dtype, columns);
    if (varying)
        rows = usual = tl_min64(rows, USUAL_ROWS);
    int64_t most = tl_min64(rows, tl_max64(s->target->l2_bytes / (8 * row_bytes), 1)), best = 1;
    double least = 0;
    for (int64_t height = most; height >= 1; height--) {
        if (varying)
            rows = tl_ceildiv(usual, height) * height;
        double one = cycles_in_blocks(s->target, a, rows, height, varying ? 2 : 1),
               two = cycles_in_blocks(s->target, b, rows, height, varying ? 2 : 1);
        if (one < 0 || two < 0)
            continue;
        int64_t cores = s->target->cores, units = batch * (rows % height == 0 ? rows / height : 1);
        double idle = (double)(tl_ceildiv(units, cores) * cores) / (double)units;
        double streamed = 2 * height * row_bytes > s->target->l1_bytes ? 1.02 : 1;
        double cycles = (one + two) * idle * streamed / (varying ? (double)rows : 1);
        if (least == 0 || cycles < least) {
            least = cycles;
            best = height;
        }
    }
    return best;
}

/* The tails of tiles in the block of what is left. */
static tl_status partition_tail(tl_schedule *s, const char *block, int depth, tl_diag *diag)
{
    tl_loop_list loops;
    const char *name = tl_arena_format(s->arena, "%s_tail", block);
    TL_TRY(tl_sketch_loops(s, tl_schedule_name_block(s, name), depth, &loops, diag));
    for (int i = loops.count - 1; i >= 0; i--) {
        if (tl_schedule_get_loop(s, loops.loops[i])->u.loop.kind != TL_LOOP_SERIAL)
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_status status = tl_loop_partition(s, loops.loops[i], NULL);
        if (status == TL_ILLEGAL_SCHEDULE)
            tl_schedule_restore(s, &before);
        else if (status != TL_OK)
            return status;
    }
    return TL_OK;
}

tl_status tl_sketch_chain_epilogue(tl_schedule *s, const tl_chain *c, const char **epilogue,
                                   tl_block_ref *copy, tl_diag *diag)
{
    const tl_block **readers;
    int count = tl_readers_of(s->arena, s->program->body, c->first->stores[0].buffer, &readers);
    *copy = (tl_block_ref){ 0 };
    *epilogue = count == 1 && tl_block_is_spatial(readers[0]) ? readers[0]->name : NULL;
    if (*epilogue != NULL)
        return TL_OK;
    TL_TRY(tl_cache_write(s, tl_schedule_name_block(s, c->first->name), "register", copy, diag));
    *epilogue = tl_schedule_get_block(s, *copy)->name;
    return TL_OK;
}

tl_status tl_sketch_chained(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    chain c;
    result_loops r;
    const tl_block *block = tl_schedule_get_block(s, anchor);
    if (!tl_sketch_find_chain(s, block, done, &c) || !tl_sketch_chain_loops(s, &c, &r))
        return tl_refuse(diag, "default schedule", block->name,
                         "reads no stages between it and another product");

    int64_t batch = 1, rows = tl_sketch_extent(s, r.row);
    for (int i = 0; i < r.batch.count; i++)
        batch *= tl_sketch_extent(s, r.batch.loops[i]);
    bool varying = !tl_sketch_is_fixed(s, r.row);
    int64_t height = tl_decide_range(s, block->name, "height", 1, rows,
                                     choose_height(s, &c, rows, batch, varying));

    tl_block_ref first = tl_schedule_name_block(s, c.first->name), copy = { 0 };
    const char *epilogue;
    TL_TRY(tl_sketch_chain_epilogue(s, &c, &epilogue, &copy, diag));

    tl_loop_ref row[2];
    tl_loop_list all = r.batch;
    TL_TRY(tl_split(s, r.row, (int64_t[]){ 0, height }, 2, row, diag));
    tl_loop_push(&all, row[0]);
    int depth = all.count;
    tl_loop_push(&all, row[1]);
    for (int i = 0; i < r.columns.count; i++)
        tl_loop_push(&all, r.columns.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    tl_block_ref out = tl_schedule_name_block(s, c.out->name);
    TL_TRY(tl_sketch_contraction(s, anchor, out, depth, false, diag));
    for (int i = c.stage_count - 1; i >= 0; i--)
        TL_TRY(tl_compute_at(s, tl_schedule_name_block(s, c.stages[i]->name), row[0], diag));
    if (copy.id != 0)
        TL_TRY(tl_compute_at(s, copy, row[0], diag));
    const char *names[MAX_STAGES];
    int named = 0;
    for (int i = 0; i < c.stage_count; i++)
        if (c.stages[i]->name != epilogue)
            names[named++] = c.stages[i]->name;
    TL_TRY(tl_sketch_nests(s, names, named, depth, tl_map_create(s->arena), diag));
    TL_TRY(
        tl_sketch_contraction(s, first, tl_schedule_name_block(s, epilogue), depth, false, diag));
    if (varying) {
        TL_TRY(tl_loop_partition(s, row[0], diag));
    } else if (rows % height != 0) {
        TL_TRY(tl_loop_partition(s, row[0], diag));
        TL_TRY(partition_tail(s, c.out->name, depth - 1, diag));
        TL_TRY(partition_tail(s, epilogue, depth - 1, diag));
    }

    tl_map_put(done, block->name, s);
    tl_map_put(done, c.out->name, s);
    tl_map_put(done, c.first->name, s);
    tl_map_put(done, epilogue, s);
    for (int i = 0; i < c.stage_count; i++)
        tl_map_put(done, c.stages[i]->name, s);
    return TL_OK;
}
