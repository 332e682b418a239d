/* schedule/sketch/gpu_loops.c: the loops of a product on a GPU: of its results, cut into tiles, warps and lanes; of its terms,
 * cut into slices. */
#include "schedule/sketch/gpu_private.h"

/* The iter of the contraction that the loop of `out` moves, by what `out` reads of the result; -1: none. */
static int iter_of(tl_schedule *s, const tl_gpu_product *p, const tl_block *out,
                   const tl_expr *load, tl_loop_ref loop)
{
    const tl_block *block = p->c.block;
    const tl_store *made = &block->stores[0];
    const tl_var *var = tl_schedule_get_loop(s, loop)->u.loop.var;
    for (int k = 0; k < out->iter_count; k++) {
        if (!tl_expr_uses_var(out->iters[k].binding, var))
            continue;
        for (int a = 0; a < made->buffer->rank; a++)
            for (int i = 0; i < block->iter_count; i++)
                if (tl_expr_uses_var(load->args[a], out->iters[k].var) &&
                    made->indices[a]->kind == TL_EXPR_VAR &&
                    made->indices[a]->u.var == block->iters[i].var)
                    return i;
    }
    return -1;
}

/* One loop cut in its parts; those of one iteration are left out, but for the first. */
static tl_status cut(tl_schedule *s, tl_loop_ref loop, const tl_gpu_cut *c, tl_loop_ref parts[4],
                     tl_diag *diag)
{
    const int64_t sizes[4] = { 0, c->warps, c->lanes, c->own };
    int64_t factors[4] = { 0 };
    tl_loop_ref made[4];
    int count = 1;
    for (int i = 1; i < 4; i++)
        if (sizes[i] > 1)
            factors[count++] = sizes[i];
    parts[0] = loop;
    if (count == 1)
        return TL_OK;
    TL_TRY(tl_split(s, loop, factors, count, made, diag));
    parts[0] = made[0];
    count = 1;
    for (int i = 1; i < 4; i++)
        if (sizes[i] > 1)
            parts[i] = made[count++];
    return TL_OK;
}

static tl_status fuse(tl_schedule *s, const tl_loop_list *list, tl_loop_ref *out, tl_diag *diag)
{
    *out = list->count > 0 ? list->loops[0] : (tl_loop_ref){ 0 };
    return list->count > 1 ? tl_fuse(s, list->loops, list->count, out, diag) : TL_OK;
}

tl_status tl_gpu_cut_results(tl_schedule *s, tl_block_ref out, int first, const tl_gpu_product *p,
                             tl_gpu_loops *loops, tl_diag *diag)
{
    const tl_block *epilogue = tl_schedule_get_block(s, out);
    const tl_buffer *result = p->c.block->stores[0].buffer;
    const tl_expr *loads[32], *load = NULL;
    int count = tl_collect_loads(epilogue->stores[0].value, loads, 32);
    const int axes[3] = { p->row, p->line, p->column };
    tl_loop_list own, order[4] = { { 0 } }, all = { 0 };
    tl_loop_ref parts[3][4] = { { { 0 } } };
    *loops = (tl_gpu_loops){ .tiles = { 0 } };
    for (int l = 0; l < count; l++)
        if (loads[l]->u.buffer == result)
            load = loads[l];
    if (load == NULL)
        return tl_refuse(diag, "default schedule", epilogue->name, "does not read the result");
    TL_TRY(tl_sketch_loops(s, out, first, &own, diag));
    for (int i = 0; i < own.count; i++) {
        int iter = iter_of(s, p, epilogue, load, own.loops[i]), axis = -1;
        for (int a = 0; a < 3; a++)
            if (axes[a] >= 0 && iter == axes[a] && parts[a][0].id == 0)
                axis = a;
        if (axis < 0)
            tl_loop_push(&order[0], own.loops[i]);
        else
            TL_TRY(cut(s, own.loops[i], &p->cuts[axes[axis]], parts[axis], diag));
    }
    if (parts[0][0].id == 0 || parts[2][0].id == 0)
        return tl_refuse(diag, "default schedule", epilogue->name, "has no loops over the tile");
    for (int part = 0; part < 4; part++) {
        for (int a = 0; a < 3; a++)
            tl_loop_push(&order[part], parts[a][part]);
        for (int i = 0; i < order[part].count; i++)
            tl_loop_push(&all, order[part].loops[i]);
    }
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    loops->tile_row = parts[0][0];
    if (p->keeps_tiles) {
        loops->apart = order[0];
    } else {
        TL_TRY(fuse(s, &order[0], &loops->tiles, diag));
    }
    TL_TRY(fuse(s, &order[1], &loops->warps, diag));
    TL_TRY(fuse(s, &order[2], &loops->lanes, diag));
    loops->row = parts[0][3];
    loops->line = parts[1][3];
    loops->column = parts[2][3];
    return TL_OK;
}

tl_status tl_gpu_cut_terms(tl_schedule *s, tl_block_ref anchor, int first, const tl_gpu_product *p,
                           tl_gpu_terms *t, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_list own;
    tl_loop_ref parts[2];
    *t = (tl_gpu_terms){ .row = { 0 } };
    TL_TRY(tl_sketch_loops(s, anchor, first, &own, diag));
    for (int i = 0; i < block->iter_count; i++) {
        tl_loop_ref loop = tl_sketch_loop_of(s, &block->iters[i], &own);
        if (loop.id == 0)
            continue;
        int64_t extent = tl_sketch_extent(s, loop);
        if (block->iters[i].kind != TL_ITER_REDUCE) {
            tl_loop_ref *known = i == p->row      ? &t->row
                                 : i == p->line   ? &t->line
                                 : i == p->column ? &t->column
                                                  : NULL;
            if (known != NULL)
                *known = loop;
            else
                tl_loop_push(&t->others, loop);
        } else if (p->depth[i] >= extent) {
            tl_loop_push(&t->inner, loop);
        } else if (p->depth[i] == 1) {
            tl_loop_push(&t->outer, loop);
        } else {
            TL_TRY(tl_split(s, loop, (int64_t[]){ 0, p->depth[i] }, 2, parts, diag));
            tl_loop_push(&t->outer, parts[0]);
            tl_loop_push(&t->inner, parts[1]);
        }
    }
    if (t->inner.count == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no loop of terms");
    if (t->outer.count == 0) { /* one slice: copied in a loop that runs once */
        int64_t extent = tl_sketch_extent(s, t->inner.loops[0]);
        TL_TRY(tl_split(s, t->inner.loops[0], (int64_t[]){ 0, extent }, 2, parts, diag));
        tl_loop_push(&t->outer, parts[0]);
        t->inner.loops[0] = parts[1];
    }
    return TL_OK;
}
