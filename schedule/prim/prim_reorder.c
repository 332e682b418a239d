/* schedule/prim/prim_reorder.c: reorder(k, i, ...): the loops take each other's places, in the order given
 *
 *     for i in 0..n                     for k in 0..m
 *       for j in 0..l                     for j in 0..l        (j is not named: it stays where it is)
 *         for k in 0..m       ->            for i in 0..n
 *           S(i, j, k)                        S(i, j, k)
 *
 * Requires  loops of one chain (each directly inside another, loops between them included), none of them parallel
 *           or bound; for every two loops that swap: no ordered iter and no dependence between blocks has its order
 *           changed, and the instance that initialises a reduction stays the first of its element; in a strict kernel
 *           the terms of a sum keep theirs.
 * Keeps     which instances run; their order wherever it matters (sums are taken in another order).
 */
#include <assert.h>
#include "schedule/dependence.h"
#include "schedule/schedule_private.h"

typedef struct {
    int count; /* of the chain, outermost first */
    const tl_stmt *old[TL_MAX_ARGS], *new[TL_MAX_ARGS];
} chain;

static bool find_block(const tl_stmt *stmt, void *context)
{
    const char **name = context;
    if (*name == NULL && stmt->kind == TL_STMT_BLOCK)
        *name = stmt->u.block->name;
    return *name == NULL;
}

static const char *block_under(const tl_stmt *loop)
{
    const char *name = NULL;
    tl_stmt_visit(loop, find_block, &name);
    return name ? name : "none";
}

/* The chain from the outermost of the named loops down to the innermost. */
static tl_status find_chain(tl_schedule *s, const tl_stmt *const *loops, int count, tl_path *top,
                            chain *out, tl_diag *diag)
{
    assert(count > 0);
    tl_path path = { 0, NULL };
    for (int i = 0; i < count; i++) {
        tl_path p = tl_schedule_path_to_loop(s, loops[i]->u.loop.var);
        if (p.count > path.count)
            path = p;
    }
    int first = path.count;
    for (int i = 0; i < count; i++) {
        int at = tl_path_find_loop(&path, loops[i]->u.loop.var);
        if (at < 0)
            return tl_refuse(
                diag, "reorder", loops[i]->u.loop.var->name,
                "the loop (around block %s) is in another nest than loop %s (around block "
                "%s): only loops of one nest can be reordered",
                block_under(loops[i]), path.stmts[path.count - 1]->u.loop.var->name,
                block_under(path.stmts[path.count - 1]));
        if (at < first)
            first = at;
    }
    *top = tl_path_prefix(&path, first + 1);
    out->count = path.count - first;
    for (int i = first; i < path.count; i++) {
        const tl_stmt *stmt = path.stmts[i];
        if (stmt->kind == TL_STMT_ALLOC)
            return tl_refuse(
                diag, "reorder", path.stmts[first]->u.loop.var->name,
                "buffer %s is allocated between the loops, anew in every iteration of those "
                "outside; loops can be reordered above it or below it",
                stmt->u.alloc.buffer->name);
        if (stmt->kind != TL_STMT_LOOP)
            return tl_refuse(
                diag, "reorder", path.stmts[first]->u.loop.var->name,
                "the loops are not perfectly nested: other statements stand beside loop %s",
                path.stmts[path.count - 1]->u.loop.var->name);
        if (i - first == TL_MAX_ARGS)
            return tl_refuse(diag, "reorder", path.stmts[first]->u.loop.var->name,
                             "more than %d loops are in the chain", TL_MAX_ARGS);
        out->old[i - first] = stmt;
    }
    return TL_OK;
}

static tl_status permute(const tl_stmt *const *loops, int count, chain *c, tl_diag *diag)
{
    int next = 0;
    for (int i = 0; i < c->count; i++) {
        bool is_named = false;
        for (int k = 0; k < count; k++)
            is_named = is_named || loops[k] == c->old[i];
        c->new[i] = is_named ? loops[next++] : c->old[i];
        bool fixed = c->old[i]->u.loop.kind == TL_LOOP_PARALLEL ||
                     tl_loop_kind_infos[c->old[i]->u.loop.kind].gpu;
        if (fixed && c->new[i] != c->old[i])
            return tl_refuse(diag, "reorder", c->old[i]->u.loop.var->name,
                             "the loop is %s and stays where it is; reorder first",
                             tl_loop_kind_infos[c->old[i]->u.loop.kind].text);
    }
    return TL_OK;
}

static int position(const tl_stmt *const *loops, const tl_stmt *loop)
{
    int i = 0;
    while (loops[i] != loop)
        i++;
    return i;
}

/* Whether two instances that meet run in the same iteration of the loop: a pin holds it, or it runs once. */
static bool is_held(const tl_pins *pins, const tl_stmt *loop)
{
    return tl_pins_var(pins, loop->u.loop.var) || tl_expr_range(loop->u.loop.extent).max <= 1;
}

/* A pair of the chain's loops that swaps and of which none is held; false: there is none. */
static bool find_free_swap(const chain *c, const tl_pins *pins, int *outer, int *inner)
{
    for (int i = 0; i < c->count; i++) {
        if (is_held(pins, c->old[i]))
            continue;
        for (int k = i + 1; k < c->count; k++) {
            if (position(c->new, c->old[i]) < position(c->new, c->old[k]) ||
                is_held(pins, c->old[k]))
                continue;
            *outer = i;
            *inner = k;
            return true;
        }
    }
    return false;
}

/* Whether, for any fixed values of the spatial iters, the instance with all reduce iters 0 has the least value of
 * every loop of the chain: then it comes first in any order. */
static bool init_is_least(tl_arena *arena, const chain *c, const tl_block *block,
                          const tl_pins *pins)
{
    for (int i = 0; i < block->iter_count; i++) {
        if (block->iters[i].kind == TL_ITER_SPATIAL)
            continue;
        tl_linear l = tl_linear_of(arena, block->iters[i].binding);
        if (l.constant != 0)
            return false;
        for (int k = 0; k < l.count; k++)
            if (l.coefficients[k] < 0 || l.terms[k]->kind != TL_EXPR_VAR)
                return false;
    }
    for (int k = 0; k < c->count; k++) {
        const tl_iter *iter;
        const tl_var *var = c->old[k]->u.loop.var;
        if (!(tl_loop_drives(block, var, &iter) & TL_DRIVES_REDUCE) && !is_held(pins, c->old[k]))
            return false;
    }
    return true;
}

static tl_status check_block(const tl_schedule *s, const tl_dependences *d, const chain *c,
                             const tl_block *block, tl_diag *diag)
{
    bool is_ordered = false;
    const tl_iter *ordered = NULL;
    for (int i = 0; i < block->iter_count; i++) {
        if (block->iters[i].kind == TL_ITER_ORDERED)
            ordered = &block->iters[i];
        is_ordered = is_ordered || block->iters[i].kind == TL_ITER_ORDERED;
    }
    bool keeps_order = tl_keeps_order(s, block);
    if (!is_ordered && !keeps_order && !block->has_init)
        return TL_OK;
    int outer, inner;
    tl_pins pins = tl_pins_of_instance(d, block);
    if (!find_free_swap(c, &pins, &outer, &inner))
        return TL_OK;
    const char *a = c->old[outer]->u.loop.var->name, *b = c->old[inner]->u.loop.var->name;
    if (is_ordered)
        return tl_refuse(
            diag, "reorder", a,
            "with %s outside, the instances of block %s would not run in "
            "increasing order of its ordered iter %s; loops of its spatial iters alone may move",
            b, block->name, ordered->var->name);
    if (keeps_order)
        return tl_refuse(diag, "reorder", a,
                         "with %s outside, block %s would add up in another order; %s", b,
                         block->name, TL_STRICT_RULE);
    if (!init_is_least(d->arena, c, block, &pins))
        return tl_refuse(diag, "reorder", a,
                         "with %s outside, block %s would no longer initialise an "
                         "element before it adds to it; decompose_reduction first",
                         b, block->name);
    return TL_OK;
}

static tl_status check(const tl_schedule *s, const chain *c, tl_diag *diag)
{
    assert(c->count > 0);
    tl_dependences d = tl_dependences_under(s->arena, c->old[0]);
    const tl_block *last = NULL;
    for (int i = 0; i < d.access_count; i++) {
        const tl_access *x = &d.accesses[i];
        if (x->block != last)
            TL_TRY(check_block(s, &d, c, x->block, diag));
        last = x->block;
        for (int k = i + 1; k < d.access_count; k++) {
            const tl_access *y = &d.accesses[k];
            if (x->block == y->block || !tl_may_conflict(x, y))
                continue;
            tl_pins pins = tl_pins_of(&d, x, y);
            int outer, inner;
            if (find_free_swap(c, &pins, &outer, &inner))
                return tl_refuse(
                    diag, "reorder", c->old[outer]->u.loop.var->name,
                    "with %s outside, block %s could come before what it needs of block %s in "
                    "buffer %s; reorder inside one of the two blocks, or move them apart",
                    c->old[inner]->u.loop.var->name, y->block->name, x->block->name,
                    x->buffer->name);
        }
    }
    return TL_OK;
}

tl_status tl_apply_reorder(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                           int *out_count, tl_diag *diag)
{
    assert(arg_count >= 1 && args[0].kind == TL_ARG_LOOP);
    (void)out;
    (void)out_count;
    const tl_stmt *loops[TL_MAX_ARGS];
    for (int i = 0; i < arg_count; i++) {
        TL_TRY(tl_need_loop(s, "reorder", args[i].loop, &loops[i], diag));
        for (int k = 0; k < i; k++)
            if (loops[k] == loops[i])
                return tl_refuse(diag, "reorder", loops[i]->u.loop.var->name,
                                 "the loop is named twice");
    }
    tl_path top;
    chain c;
    TL_TRY(find_chain(s, loops, arg_count, &top, &c, diag));
    TL_TRY(permute(loops, arg_count, &c, diag));
    bool is_same = true;
    for (int i = 0; i < c.count; i++)
        is_same = is_same && c.new[i] == c.old[i];
    if (is_same)
        return TL_OK;
    TL_TRY(check(s, &c, diag));

    const tl_stmt *nest = c.old[c.count - 1]->u.loop.body;
    for (int i = c.count - 1; i >= 0; i--)
        nest = tl_stmt_with_body(s->arena, c.new[i], nest);
    tl_schedule_replace(s, &top, nest);
    return TL_OK;
}
