/* schedule/prim/prim_pad_einsum.c: pad_einsum(block, [a, b, ...]) -> copy
 *
 *                                            alloc A_pad: f32[16, 8], B_pad: f32[8, 32], C_pad: f32[16, 32]
 *     for i in 0..13                         for i in 0..16
 *       for j in 0..30                         for k in 0..8
 *         for k in 0..7                          A_pad[i, k] = select(i < 13 and k < 7, A[i, k], 0)
 *           C: C[i, j] =             ->      ..                                                  B_pad likewise
 *                sum(A[i, k]*B[k, j])        for i in 0..16, j in 0..32, k in 0..8
 *                                              C: C_pad[i, j] = sum(A_pad[i, k]*B_pad[k, j])
 *                                            for i in 0..13, j in 0..30
 *                                              C_copy: C[i, j] = C_pad[i, j]
 *
 * pad, for a sum of products: it stays one without conditions, as tensorize wants it, since the operands have zeroes where
 * nothing was. An operand that no padded iter takes beyond its shape is read where it is. compute_at takes the blocks that
 * fill the others to where they are wanted.
 *
 * Requires  what pad requires; the block a sum, from zero, of the product of two loads; indices with bounds; a reduce iter
 *           that is padded an index of its own in both operands, over all of that axis, so that one of its values beyond is
 *           a zero.
 * Keeps     every value.
 */
#include <assert.h>
#include "schedule/analysis.h"
#include "schedule/padding.h"

#define PRIM "pad_einsum"

enum { OPERANDS = 2 };

static const tl_expr *strip_casts(const tl_expr *e)
{
    while (e->kind == TL_EXPR_CAST)
        e = e->args[0];
    return e;
}

static tl_status find_operands(const tl_block *block, const tl_expr *loads[OPERANDS], tl_diag *diag)
{
    const tl_expr *product = block->store_count == 1 ? strip_casts(block->stores[0].value) : NULL;
    if (block->combiner == TL_COMBINER_SUM && block->init == NULL && product->kind == TL_EXPR_MUL) {
        loads[0] = strip_casts(product->args[0]);
        loads[1] = strip_casts(product->args[1]);
        if (loads[0]->kind == TL_EXPR_LOAD && loads[1]->kind == TL_EXPR_LOAD)
            return TL_OK;
    }
    return tl_refuse(diag, PRIM, block->name,
                     "it is no sum, from zero, of the product of two loads; pad takes others");
}

/* Whether the iter is an index of the load, of an axis as long as itself. */
static bool is_axis_of(const tl_iter *iter, const tl_expr *load)
{
    for (int a = 0; a < load->u.buffer->rank; a++)
        if (load->args[a]->kind == TL_EXPR_VAR && load->args[a]->u.var == iter->var &&
            tl_expr_equal(load->u.buffer->shape[a], iter->extent))
            return true;
    return false;
}

static tl_status check_terms(const tl_padding *p, const tl_expr *const *loads, tl_diag *diag)
{
    for (int k = 0; k < p->block->iter_count; k++) {
        const tl_iter *iter = &p->block->iters[k];
        if (iter->kind != TL_ITER_REDUCE || tl_expr_equal(iter->extent, p->extents[k]))
            continue;
        for (int l = 0; l < OPERANDS; l++)
            if (!is_axis_of(iter, loads[l]))
                return tl_refuse(diag, PRIM, p->block->name,
                                 "its reduce iter %s is not all of an axis of %s, which would have "
                                 "other values than zeroes behind it",
                                 iter->var->name, loads[l]->u.buffer->name);
    }
    return TL_OK;
}

/* How far the padded block reaches into each axis of an operand's buffer; *grows: beyond its shape. */
static tl_status find_reach(tl_schedule *s, const tl_padding *p, const tl_expr *const *loads,
                            const tl_buffer *buffer, const tl_expr **reach, bool *grows,
                            tl_diag *diag)
{
    int count = p->block->iter_count;
    tl_var_range *domains = TL_NEW_ARRAY(s->arena, tl_var_range, count);
    for (int k = 0; k < count; k++)
        domains[k] =
            (tl_var_range){ p->block->iters[k].var, { 0, tl_max_extent(p->extents[k]) - 1 } };
    *grows = false;
    for (int a = 0; a < buffer->rank; a++) {
        int64_t last = 0, extent;
        for (int l = 0; l < OPERANDS; l++) {
            if (loads[l]->u.buffer != buffer)
                continue;
            tl_range range = tl_expr_range_with(loads[l]->args[a], domains, count);
            if (range.min < 0 || range.max >= INT32_MAX || !tl_const_int(buffer->shape[a], &extent))
                return tl_refuse(diag, PRIM, p->block->name,
                                 "no constant bounds what index %s of %s reaches",
                                 tl_expr_text(s->arena, loads[l]->args[a]), buffer->name);
            last = range.max > last ? range.max : last;
            *grows |= last >= extent;
        }
        reach[a] = tl_int(s->arena, last + 1);
    }
    return TL_OK;
}

/* to[x] = select(x < shape, from[x], 0), for all of `to`. */
static const tl_stmt *make_filling(tl_schedule *s, const tl_buffer *from, const tl_buffer *to)
{
    tl_arena *arena = s->arena;
    const tl_expr **places = TL_NEW_ARRAY(arena, const tl_expr *, to->rank), *inside = NULL;
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, to->rank);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, to->rank);
    for (int a = 0; a < to->rank; a++) {
        const tl_var *named = tl_var_make(arena, tl_arena_format(arena, "i%d", a), 0, 0);
        vars[a] = tl_var_derive(arena, named, "", to->shape[a]);
        const tl_var *iter = tl_var_derive(arena, named, "", to->shape[a]);
        iters[a] = (tl_iter){ iter, TL_ITER_SPATIAL, to->shape[a], tl_ref(arena, vars[a]) };
        places[a] = tl_ref(arena, iter);
        const tl_expr *in_shape = tl_lt(arena, places[a], from->shape[a]);
        int64_t always;
        if (!tl_const_int(in_shape, &always))
            inside = tl_and(arena, inside, in_shape);
    }
    const tl_expr *value = tl_load(arena, from, places);
    tl_store *store = TL_NEW(arena, tl_store);
    *store =
        (tl_store){ to, places, tl_select(arena, inside, value, tl_constant(arena, to->dtype, 0)) };
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = tl_fresh_block_name(s, to->name),
                         .iter_count = to->rank,
                         .iters = iters,
                         .store_count = 1,
                         .stores = store };
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int a = to->rank - 1; a >= 0; a--)
        stmt = tl_stmt_loop(arena, vars[a], to->shape[a], TL_LOOP_SERIAL, stmt);
    return stmt;
}

tl_status tl_apply_pad_einsum(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                              int *out_count, tl_diag *diag)
{
    assert(arg_count == 2);
    (void)arg_count;
    tl_padding p;
    const tl_expr *loads[OPERANDS], **reach[OPERANDS];
    bool grows[OPERANDS] = { false };
    TL_TRY(tl_padding_plan(s, PRIM, args, &p, diag));
    TL_TRY(find_operands(p.block, loads, diag));
    TL_TRY(check_terms(&p, loads, diag));
    bool is_square = loads[0]->u.buffer == loads[1]->u.buffer;
    for (int l = 0; l < (is_square ? 1 : OPERANDS); l++) {
        reach[l] = TL_NEW_ARRAY(s->arena, const tl_expr *, loads[l]->u.buffer->rank);
        TL_TRY(find_reach(s, &p, loads, loads[l]->u.buffer, reach[l], &grows[l], diag));
    }
    const tl_stmt *with = tl_padded_nest(s, &p, false);
    for (int l = OPERANDS - 1; l >= 0; l--) {
        if (!grows[l])
            continue;
        const tl_buffer *from = loads[l]->u.buffer;
        const char *name = tl_arena_format(s->arena, "%s_pad", from->name);
        const tl_buffer *to = tl_buffer_make(s->arena, tl_fresh_buffer_name(s, name), from->dtype,
                                             TL_ROLE_LOCAL, TL_SCOPE_GLOBAL, from->rank, reach[l]);
        with = tl_stmt_replace_buffer(s->arena, with, from, to);
        with = tl_stmt_alloc(s->arena, to, tl_stmt_seq2(s->arena, make_filling(s, from, to), with));
    }
    tl_padding_settle(s, &p, with, out, out_count);
    return TL_OK;
}
