/* schedule/sketch/gpu_slices.c: slices of a product's operands in shared memory: who fills them, how they lie, and that they
 * come while the threads compute. */
#include "schedule/sketch/gpu_private.h"

enum {
    ACCESS_BYTES = 16,
    MOST_COPIES = 16, /* of a thread, written out */
    MOST_STAGES = 3,
    FIRST_ASYNC_SM = 80, /* copies go on by themselves */
};

/* A stage that only the block that fills the operand reads becomes a part of that. */
static tl_status inline_source(tl_schedule *s, const tl_block *filling)
{
    const tl_expr *loads[4];
    int count = tl_collect_loads(filling->stores[0].value, loads, 4);
    for (int l = 0; l < count && l < 4; l++) {
        const tl_block *source = tl_sketch_only_writer(s, loads[l]->u.buffer, filling);
        if (source == NULL || !tl_block_is_spatial(source))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = tl_compute_inline(s, tl_schedule_name_block(s, source->name), &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, NULL));
    }
    return TL_OK;
}

tl_status tl_gpu_copy_slice(tl_schedule *s, tl_block_ref anchor, const tl_expr *load,
                            tl_gpu_slice *out, tl_diag *diag)
{
    TL_TRY(tl_cache_read(s, anchor, load->u.buffer->name, "shared", &out->copy, diag));
    out->buffer = tl_schedule_get_block(s, out->copy)->stores[0].buffer->name;
    return TL_OK;
}

tl_status tl_gpu_take_slice(tl_schedule *s, tl_block_ref anchor, const tl_expr *load,
                            tl_gpu_slice *out, tl_diag *diag)
{
    const tl_block *reader = tl_schedule_get_block(s, anchor), *writer;
    const tl_buffer *buffer = load->u.buffer;
    const tl_expr *loads[4];
    writer = buffer->role == TL_ROLE_LOCAL ? tl_sketch_only_writer(s, buffer, reader) : NULL;
    if (writer != NULL && tl_block_is_spatial(writer) && writer->call == NULL &&
        tl_collect_loads(writer->stores[0].value, loads, 4) <= 1) {
        TL_TRY(inline_source(s, writer));
        *out = (tl_gpu_slice){ buffer->name, tl_schedule_name_block(s, writer->name) };
        return tl_set_scope(s, buffer->name, "shared", diag);
    }
    return tl_gpu_copy_slice(s, anchor, load, out, diag);
}

bool tl_gpu_is_multiple(tl_arena *arena, const tl_expr *e, const tl_var *but, int64_t step)
{
    tl_linear sum = tl_linear_of(arena, e);
    bool fits = sum.constant % step == 0;
    for (int t = 0; t < sum.count; t++)
        fits &= sum.coefficients[t] % step == 0 ||
                (sum.terms[t]->kind == TL_EXPR_VAR && sum.terms[t]->u.var == but);
    return fits;
}

/* The iter of the copy whose neighbours lie side by side where it writes; *group: as far as that goes, where rows are cut in
 * groups (x//g, .., x % g); 0: all along. */
static const tl_var *find_line(tl_schedule *s, const tl_block *block, int64_t *group)
{
    const tl_store *store = &block->stores[0];
    const tl_expr *last = store->indices[store->buffer->rank - 1];
    *group = 0;
    if (last->kind != TL_EXPR_FLOORMOD || last->args[0]->kind != TL_EXPR_VAR ||
        !tl_const_int(last->args[1], group))
        return tl_contiguous_iter(s->arena, block);
    const tl_var *line = last->args[0]->u.var;
    for (int a = 0; a < store->buffer->rank - 1; a++) {
        const tl_expr *e = store->indices[a];
        if (tl_expr_uses_var(e, line) &&
            !(e->kind == TL_EXPR_FLOORDIV && tl_is_int(e->args[1], *group) &&
              e->args[0]->kind == TL_EXPR_VAR))
            return NULL;
    }
    return line;
}

/* How many neighbours of the innermost loop of `own` a thread moves in one access: they lie side by side on both sides, at
 * multiples of as many, and no condition comes between them. */
static int64_t copied_at_once(tl_schedule *s, const tl_block *block, const tl_loop_list *own)
{
    const tl_expr *loads[2], *value = block->stores[0].value;
    int64_t group, extent;
    const tl_var *line = find_line(s, block, &group);
    const tl_buffer *to = block->stores[0].buffer;
    int64_t size = (int64_t)tl_dtype_size(to->dtype);
    tl_loop_ref last = own->loops[own->count - 1];
    if (line == NULL || block->predicate != NULL || size < 1 || size > ACCESS_BYTES)
        return 1;
    if (value->kind == TL_EXPR_SELECT) {
        if (tl_expr_uses_var(value->args[0], line))
            return 1;
        value = value->args[1];
    }
    if (tl_collect_loads(value, loads, 2) != 1 || value != loads[0] || value->dtype != to->dtype)
        return 1;
    const tl_buffer *from = loads[0]->u.buffer;
    int64_t wide = ACCESS_BYTES / size;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->var != line)
            continue;
        if (!tl_same_loop(tl_sketch_loop_of(s, iter, own), last) ||
            tl_access_stride(s->arena, from, loads[0]->args, line) != 1)
            return 1;
        const tl_expr *index = loads[0]->args[from->rank - 1];
        if (!tl_const_int(from->shape[from->rank - 1], &extent) || !tl_expr_uses_var(index, line))
            return 1;
        const tl_var *var = tl_schedule_get_loop(s, last)->u.loop.var;
        index = tl_block_bind(s->arena, block, index);
        while (wide > 1 &&
               (extent % wide != 0 || group % wide != 0 || tl_sketch_extent(s, last) % wide != 0 ||
                !tl_gpu_is_multiple(s->arena, index, var, wide)))
            wide /= 2;
        return wide;
    }
    return 1;
}

/* Whether the loop moves an axis of the copy that other slices move, too. */
static bool moves_with_slices(const tl_schedule *s, const tl_block *copy, tl_loop_ref loop,
                              const tl_loop_list *loops, int inside)
{
    const tl_var *var = tl_schedule_get_loop(s, loop)->u.loop.var;
    for (int i = 0; i < copy->iter_count; i++)
        for (int k = 0; k < inside && tl_expr_uses_var(copy->iters[i].binding, var); k++)
            if (tl_expr_uses_var(copy->iters[i].binding,
                                 tl_schedule_get_loop(s, loops->loops[k])->u.loop.var))
                return true;
    return false;
}

/* What a block inside of `inside` loops copies, shared out. Where the work does not come out even and slices take turns in one
 * place, loops along which they differ stay outside: no slice may reach into the next. Those of a pipeline, or a single one,
 * have places of their own (`is_apart`). */
static tl_status share_copy(tl_schedule *s, tl_block_ref copy, int inside, int64_t warps,
                            bool is_apart, tl_diag *diag)
{
    tl_loop_list loops, own = { 0 }, outer = { 0 }, fused = { 0 }, order = { 0 };
    tl_loop_ref parts[4], all;
    const tl_block *block = tl_schedule_get_block(s, copy);
    int64_t elements = 1, threads = warps * TL_WARP_LANES;
    TL_TRY(tl_sketch_loops(s, copy, 0, &loops, diag));
    for (int i = inside; i < loops.count; i++) {
        tl_loop_push(&own, loops.loops[i]);
        elements *= tl_sketch_extent(s, loops.loops[i]);
    }
    if (own.count == 0)
        return tl_refuse(diag, "default schedule", block->name, "copies one element");
    int64_t wide = copied_at_once(s, block, &own);
    while (wide > 1 && elements % (wide * threads) != 0)
        wide /= 2;
    for (int i = 0; i < own.count; i++)
        tl_loop_push(elements % threads != 0 && !is_apart &&
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
    const int64_t factors[4] = { 0, warps, TL_WARP_LANES, wide };
    TL_TRY(tl_split(s, all, factors, wide > 1 ? 4 : 3, parts, diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.y", diag));
    TL_TRY(tl_bind_loop(s, parts[2], "threadIdx.x", diag));
    if (wide > 1)
        TL_TRY(tl_vectorize(s, parts[3], diag));
    return tl_sketch_extent(s, parts[0]) <= MOST_COPIES ? tl_unroll(s, parts[0], diag) : TL_OK;
}

/* How many stages a pipeline of such slices has; 1: none. */
static int64_t decide_stages(tl_schedule *s, const char *block, tl_loop_ref slices, int64_t bytes,
                             int64_t staged)
{
    const int64_t options[] = { 1, 2, 3, 4 };
    int64_t extent = tl_sketch_extent(s, slices), room = staged / tl_max64(bytes, 1);
    int64_t stages = tl_max64(tl_min64(tl_min64(MOST_STAGES, extent), room), 1);
    if (s->target->gpu.sm < FIRST_ASYNC_SM || extent < 2)
        return 1;
    stages = tl_decide(s, block, "stages", options, 4, stages);
    return stages > extent ? 1 : stages;
}

tl_status tl_gpu_place_slices(tl_schedule *s, const tl_gpu_slice *slices, int count, tl_loop_ref at,
                              tl_diag *diag)
{
    for (int i = 0; i < count; i++)
        TL_TRY(tl_compute_at(s, slices[i].copy, at, diag));
    return TL_OK;
}

tl_status tl_gpu_fill_slices(tl_schedule *s, const char *block, const tl_gpu_slice *slices,
                             int count, tl_loop_ref at, int64_t warps, int64_t bytes,
                             int64_t staged, tl_diag *diag)
{
    tl_loop_list loops;
    int inside = 0;
    TL_TRY(tl_sketch_loops(s, slices[0].copy, 0, &loops, diag));
    for (int i = 0; i < loops.count; i++)
        if (tl_same_loop(loops.loops[i], at))
            inside = i + 1;
    int64_t stages = decide_stages(s, block, at, bytes, staged);
    bool is_apart = stages > 1 || tl_sketch_extent(s, at) == 1;
    if (stages > 1)
        TL_TRY(tl_software_pipeline(s, at, stages, diag));
    for (int i = 0; i < count; i++) {
        const char *name = tl_schedule_get_block(s, slices[i].copy)->name;
        tl_block_ref first;
        if (tl_schedule_block(s, tl_arena_format(s->arena, "%s_prologue", name), &first, NULL) ==
            TL_OK)
            TL_TRY(share_copy(s, first, inside, warps, is_apart, diag));
        TL_TRY(share_copy(s, slices[i].copy, inside, warps, is_apart, diag));
    }
    return TL_OK;
}

tl_status tl_gpu_arrange(tl_schedule *s, const char *name, const int *last, int count,
                         int64_t group, tl_diag *diag)
{
    const tl_buffer *buffer = tl_program_find_buffer(s->program, name);
    const char *from = "", *to = "";
    bool moves = group > 1;
    int before = -1;
    for (int a = 0; a < buffer->rank; a++) {
        bool is_last = false;
        for (int i = 0; i < count; i++)
            is_last |= last[i] == a;
        from = tl_arena_format(s->arena, "%s%sa%d", from, a > 0 ? ", " : "", a);
        if (!is_last)
            to = tl_arena_format(s->arena, "%sa%d, ", to, a);
    }
    for (int i = 0; i < count; i++) {
        moves |= last[i] != buffer->rank - count + i;
        before = last[i];
    }
    if (!moves)
        return TL_OK;
    if (group > 1)
        to = tl_arena_format(s->arena, "%sa%d//%lld, ", to, before, (long long)group);
    for (int i = 0; i < count - 1; i++)
        to = tl_arena_format(s->arena, "%sa%d, ", to, last[i]);
    to = group > 1 ? tl_arena_format(s->arena, "%sa%d%%%lld", to, before, (long long)group)
                   : tl_arena_format(s->arena, "%sa%d", to, before);
    return tl_transform_layout(s, name, tl_arena_format(s->arena, "(%s) -> (%s)", from, to), diag);
}
