/* schedule/sketch/gpu_product.c: contractions as a GPU's blocks see them: which iters are rows and columns, how deep a slice is,
 * whole tiles where extents do not come out even. */
#include "schedule/sketch/gpu_private.h"

enum { DEEP = 4 }; /* slices of windows have so many times as many steps */

tl_status tl_gpu_find_product(tl_schedule *s, const tl_block *block, tl_gpu_product *out,
                              tl_diag *diag)
{
    *out = (tl_gpu_product){ .row = -1, .column = -1, .line = -1 };
    tl_contraction *c = &out->c;
    if (!tl_find_contraction(s->arena, block, c) || block->iter_count > TL_GPU_ITERS ||
        block->predicate != NULL)
        return tl_refuse(diag, "default schedule", block->name, "is no contraction");
    if (c->panel->u.buffer == c->stream->u.buffer)
        return tl_refuse(diag, "default schedule", block->name, "multiplies a buffer by itself");
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        out->cuts[i] = (tl_gpu_cut){ 1, 1, 1 };
        out->depth[i] = 1;
        if (iter->extent->kind != TL_EXPR_INT || iter->kind == TL_ITER_ORDERED)
            return tl_refuse(diag, "default schedule", block->name, "has extents that vary");
        int64_t extent = out->extents[i] = tl_max_extent(iter->extent);
        if (extent == 0)
            return tl_refuse(diag, "default schedule", block->name, "has no elements");
        if (iter->kind != TL_ITER_SPATIAL || extent == 1)
            continue;
        bool in_panel = tl_expr_uses_var(c->panel, iter->var),
             in_stream = tl_expr_uses_var(c->stream, iter->var);
        if (iter->var == c->vector)
            out->column = i;
        else if (in_stream && !in_panel && (out->row < 0 || extent > out->extents[out->row]))
            out->row = i;
        else if (in_panel && !in_stream)
            out->line = i; /* the innermost of them */
    }
    if (out->column < 0 || out->row < 0)
        return tl_refuse(diag, "default schedule", block->name, "has no rows and columns");
    return TL_OK;
}

tl_status tl_gpu_take_extents(tl_schedule *s, tl_block_ref anchor, int first, int64_t rows,
                              tl_gpu_product *p, tl_diag *diag)
{
    tl_loop_list own;
    if (rows > 0)
        p->extents[p->row] = rows;
    if (rows != TL_GPU_OWN_LOOPS)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, anchor, first, &own, diag));
    for (int i = 0; i < p->c.block->iter_count; i++) {
        tl_loop_ref loop = tl_sketch_loop_of(s, &p->c.block->iters[i], &own);
        p->extents[i] = loop.id != 0 ? tl_sketch_extent(s, loop) : 1;
    }
    return TL_OK;
}

int tl_gpu_find_term(tl_schedule *s, const tl_gpu_product *p)
{
    int found = -1;
    for (int i = 0; i < p->c.block->iter_count; i++) {
        const tl_iter *iter = &p->c.block->iters[i];
        if (iter->kind == TL_ITER_REDUCE && tl_sketch_axis_of(s, p->c.panel, iter->var) >= 0 &&
            tl_sketch_axis_of(s, p->c.stream, iter->var) >= 0 &&
            (found < 0 || p->extents[i] > p->extents[found]))
            found = i;
    }
    return found;
}

static bool is_whole_axis(const tl_expr *load, const tl_iter *iter)
{
    for (int a = 0; a < load->u.buffer->rank; a++)
        if (load->args[a]->kind == TL_EXPR_VAR && load->args[a]->u.var == iter->var)
            return tl_expr_equal(load->u.buffer->shape[a], iter->extent);
    return false;
}

bool tl_gpu_can_pad(const tl_gpu_product *p, int i)
{
    const tl_iter *iter = &p->c.block->iters[i];
    return iter->kind == TL_ITER_SPATIAL ||
           (is_whole_axis(p->c.panel, iter) && is_whole_axis(p->c.stream, iter));
}

/* Elements of the load's buffer that a tile reads for a slice: along each axis what all steps inside of it reach. */
static int64_t slice_elements(tl_schedule *s, const tl_gpu_product *p, const tl_expr *load)
{
    int64_t all = 1;
    for (int a = 0; a < load->u.buffer->rank; a++) {
        int64_t reach = 1;
        for (int i = 0; i < p->c.block->iter_count; i++) {
            const tl_iter *iter = &p->c.block->iters[i];
            int64_t coefficient = 1, steps = iter->kind == TL_ITER_REDUCE
                                                 ? p->depth[i]
                                                 : tl_gpu_cut_size(&p->cuts[i]);
            const tl_expr *rest;
            if (!tl_expr_uses_var(load->args[a], iter->var))
                continue;
            if (!tl_affine_in(s->arena, load->args[a], iter->var, &coefficient, &rest))
                coefficient = 1;
            reach += (steps - 1) * (coefficient < 0 ? -coefficient : coefficient);
        }
        all *= tl_min64(reach, 1 << 20);
    }
    return all;
}

int64_t tl_gpu_slice_bytes(tl_schedule *s, const tl_gpu_product *p)
{
    return tl_storage_bytes(p->c.panel->u.buffer->dtype, slice_elements(s, p, p->c.panel)) +
           tl_storage_bytes(p->c.stream->u.buffer->dtype, slice_elements(s, p, p->c.stream));
}

/* Steps of one reduce iter in a slice: as many as there is room for, all of it or a part that wastes little; rather multiples
 * of four. 0: none will do. */
static int64_t decide_steps(tl_schedule *s, tl_gpu_product *p, int of, int64_t unit, int64_t most,
                            int64_t bytes)
{
    enum { OPTIONS = 64 };
    int64_t extent = p->extents[of], options[OPTIONS], best = 0;
    int count = 0;
    for (int64_t steps = unit; steps <= tl_max64(most, unit) && count < OPTIONS; steps += unit) {
        int64_t beyond = tl_ceildiv(extent, steps) * steps - extent;
        p->depth[of] = steps;
        bool fits =
            tl_gpu_slice_bytes(s, p) <= bytes &&
            (beyond == 0 || (tl_gpu_can_pad(p, of) && (beyond * 8 <= extent || steps == unit)));
        if (!fits)
            continue;
        options[count++] = steps;
        if (best == 0 || steps % 4 == 0 || best % 4 != 0)
            best = steps;
    }
    if (count == 0)
        return 0;
    const tl_block *block = p->c.block;
    const char *role = tl_arena_format(s->arena, "%s.depth", block->iters[of].var->name);
    return count > 1 ? tl_decide(s, block->name, role, options, count, best) : best;
}

tl_status tl_gpu_decide_depth(tl_schedule *s, tl_gpu_product *p, int64_t steps, int of,
                              int64_t unit, int64_t bytes, tl_diag *diag)
{
    const tl_block *block = p->c.block;
    int64_t others = 1;
    bool whole = true;
    p->depth[of] = unit;
    if (tl_gpu_slice_bytes(s, p) > bytes)
        return tl_refuse(diag, "default schedule", block->name,
                         "has slices too large for shared memory");
    for (int i = block->iter_count - 1; i >= 0; i--) {
        if (block->iters[i].kind != TL_ITER_REDUCE || i == of)
            continue;
        int64_t extent = p->extents[i];
        p->depth[i] = extent;
        if (!whole || others * extent > DEEP * steps / tl_min64(unit, DEEP) ||
            tl_gpu_slice_bytes(s, p) > bytes) {
            whole = whole && extent == 1;
            p->depth[i] = 1;
        }
        others *= p->depth[i];
    }
    p->depth[of] =
        decide_steps(s, p, of, unit, (others > 1 ? DEEP * steps : steps) / others, bytes);
    if (p->depth[of] == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no slices of whole steps");
    return TL_OK;
}

tl_status tl_gpu_pad(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_gpu_product *p,
                     tl_diag *diag)
{
    const tl_block *block = p->c.block;
    int64_t factors[TL_GPU_ITERS];
    bool is_even = true;
    for (int i = 0; i < block->iter_count; i++) {
        factors[i] =
            block->iters[i].kind == TL_ITER_REDUCE ? p->depth[i] : tl_gpu_cut_size(&p->cuts[i]);
        is_even &= p->extents[i] % factors[i] == 0;
    }
    if (is_even)
        return TL_OK;
    tl_block_ref copy;
    TL_TRY(tl_pad_einsum(s, anchor, factors, block->iter_count, &copy, diag));
    TL_TRY(tl_compute_inline(s, copy, diag)); /* into `out` */
    if (tl_schedule_get_block(s, out) == NULL)
        return tl_refuse(diag, "default schedule", block->name, "lost what reads it");
    tl_gpu_product padded;
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), &padded, diag));
    p->c = padded.c;
    for (int i = 0; i < p->c.block->iter_count; i++)
        p->extents[i] = padded.extents[i];
    return TL_OK;
}
