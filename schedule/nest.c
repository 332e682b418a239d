/* schedule/nest.c: the own loops of a block: found, taken apart, built anew. */
#include "schedule/nest.h"
#include <assert.h>
#include <string.h>
#include "schedule/dependence.h"

/* Whether a variable is of one of the nest's own loops. */
static bool owns(const tl_nest *nest, const tl_var *var)
{
    return tl_path_find_loop(&nest->path, var) >= nest->top;
}

static int flatten(const tl_expr *e, const tl_expr **out)
{
    if (e->kind == TL_EXPR_AND) {
        int left = flatten(e->args[0], out);
        return left + flatten(e->args[1], out == NULL ? NULL : out + left);
    }
    if (out != NULL)
        *out = e;
    return 1;
}

typedef struct {
    const tl_expr *other;
    bool found;
} shared_search;

static bool find_shared(const tl_expr *e, void *context)
{
    shared_search *search = context;
    if (e->kind == TL_EXPR_VAR && tl_expr_uses_var(search->other, e->u.var))
        search->found = true;
    return !search->found;
}

bool tl_share_vars(const tl_expr *a, const tl_expr *b)
{
    shared_search search = { b, false };
    tl_expr_visit(a, find_shared, &search);
    return search.found;
}

int tl_conjuncts(tl_arena *arena, const tl_expr *condition, const tl_expr ***out)
{
    *out = NULL;
    if (condition == NULL)
        return 0;
    *out = TL_NEW_ARRAY(arena, const tl_expr *, flatten(condition, NULL));
    return flatten(condition, *out);
}

/* How an expression is made of variables, seen from a nest. */
typedef struct {
    const tl_nest *nest;
    const tl_var *own; /* the last own loop variable seen */
    int own_count;     /* occurrences of own loop variables */
    bool uses_loops;   /* any loop's variable */
} variables;

static bool visit_var(const tl_expr *e, void *context)
{
    variables *v = context;
    if (e->kind != TL_EXPR_VAR || tl_path_find_loop(&v->nest->path, e->u.var) < 0)
        return true;
    v->uses_loops = true;
    if (owns(v->nest, e->u.var)) {
        v->own = e->u.var;
        v->own_count++;
    }
    return true;
}

static variables variables_of(const tl_nest *nest, const tl_expr *e)
{
    variables v = { .nest = nest };
    tl_expr_visit(e, visit_var, &v);
    return v;
}

/* Whether the iter takes every value of its domain, as far as bounds tell. */
static bool takes_all(tl_arena *arena, const tl_path *path, const tl_iter *iter)
{
    int count;
    const tl_free_var *loops = tl_path_loops(arena, path, 0, &count);
    tl_span span = tl_span_of(arena, iter->binding, loops, count);
    return span.min != NULL && span.max != NULL && tl_prove_le(arena, span.min, tl_int(arena, 0)) &&
           tl_prove_le(arena, tl_addi(arena, iter->extent, -1), span.max);
}

tl_status tl_check_begins(tl_schedule *s, const char *prim, const tl_path *path,
                          const tl_block *block, tl_diag *diag)
{
    assert(path->count > 0);
    tl_binding *first = TL_NEW_ARRAY(s->arena, tl_binding, path->count);
    int count = 0;
    for (int i = 0; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP)
            first[count++] = (tl_binding){ path->stmts[i]->u.loop.var, tl_int(s->arena, 0) };
    for (int k = 0; k < block->iter_count && block->has_init; k++) {
        const tl_iter *iter = &block->iters[k];
        if (iter->kind == TL_ITER_REDUCE &&
            !tl_is_int(tl_substitute(s->arena, iter->binding, first, count), 0))
            return tl_refuse(diag, prim, block->name,
                             "its loops do not begin where iter %s does, and another block reduces "
                             "what comes before: do this before loop_partition",
                             iter->var->name);
    }
    return TL_OK;
}

/* Every own loop is serial and drives exactly one iter, by binding = rest + variable. */
static tl_status check_loops(tl_schedule *s, const char *prim, const tl_nest *nest, tl_diag *diag)
{
    assert(nest->top >= 0 && nest->top <= nest->path.count);
    const tl_block *block = nest->block;
    for (int i = nest->top; i < nest->path.count - 1; i++) {
        const tl_stmt *loop = nest->path.stmts[i];
        const char *name = loop->u.loop.var->name;
        if (loop->u.loop.kind != TL_LOOP_SERIAL)
            return tl_refuse(diag, prim, block->name,
                             "its loop %s is %s, which would be lost: move the block first, then "
                             "change its loops",
                             name, tl_loop_kind_infos[loop->u.loop.kind].text);
        if (loop->u.loop.annotation_count > 0)
            return tl_refuse(diag, prim, block->name,
                             "its loop %s is annotated (%s), which would be lost: move the block "
                             "first, then annotate its loops",
                             name, loop->u.loop.annotations[0].key);
        int drives = 0;
        for (int k = 0; k < block->iter_count; k++)
            drives += tl_expr_uses_var(block->iters[k].binding, loop->u.loop.var);
        if (drives > 1 || (drives == 0 && !tl_is_int(loop->u.loop.extent, 1)))
            return tl_refuse(diag, prim, block->name,
                             "its loop %s drives %d iters and must drive exactly one: move the "
                             "block before loops of it are fused",
                             name, drives);
    }
    for (int k = 0; k < block->iter_count; k++) {
        const tl_iter *iter = &block->iters[k];
        variables v = variables_of(nest, iter->binding);
        int64_t coefficient = 1;
        const tl_expr *rest;
        bool affine =
            v.own == NULL || tl_affine_in(s->arena, iter->binding, v.own, &coefficient, &rest);
        if (v.own_count > 1 || !affine || coefficient != 1)
            return tl_refuse(diag, prim, block->name,
                             "its iter %s is bound to %s: its loops were split or fused; move the "
                             "block before that",
                             iter->var->name, tl_expr_text(s->arena, iter->binding));
        if (iter->kind != TL_ITER_SPATIAL && !takes_all(s->arena, &nest->path, iter))
            return tl_refuse(diag, prim, block->name,
                             "its loops do not give iter %s all of 0..%s, and another block does "
                             "the rest: move it before loop_partition or software_pipeline",
                             iter->var->name, tl_expr_text(s->arena, iter->extent));
    }
    return TL_OK;
}

/* Whether a conjunct only says that an iter is in its domain, which every new nest says for itself. */
static bool is_domain_guard(tl_arena *arena, const tl_block *block, const tl_expr *conjunct)
{
    for (int k = 0; k < block->iter_count; k++) {
        const tl_expr *binding = block->iters[k].binding;
        if (tl_expr_equal(conjunct, tl_lt(arena, binding, block->iters[k].extent)) ||
            tl_expr_equal(conjunct, tl_le(arena, tl_int(arena, 0), binding)))
            return true;
    }
    return false;
}

const tl_expr *tl_narrowing_condition(tl_arena *arena, const tl_block *block, const tl_block *than)
{
    const tl_expr **conjuncts, **others;
    int count = tl_conjuncts(arena, block->predicate, &conjuncts);
    int other_count = than == NULL ? 0 : tl_conjuncts(arena, than->predicate, &others);
    for (int i = 0; i < count; i++) {
        bool shared = false;
        for (int k = 0; k < other_count; k++)
            shared |= tl_expr_equal(conjuncts[i], others[k]);
        if (!shared && !is_domain_guard(arena, block, conjuncts[i]))
            return conjuncts[i];
    }
    return NULL;
}

static bool follows_from_domains(tl_arena *arena, const tl_block *block, const tl_expr *conjunct)
{
    for (int k = 0; k < block->iter_count; k++) {
        const tl_iter *iter = &block->iters[k];
        if (tl_follows_from(arena, conjunct, tl_lt(arena, iter->binding, iter->extent)) ||
            tl_follows_from(arena, conjunct, tl_le(arena, tl_int(arena, 0), iter->binding)))
            return true;
    }
    return false;
}

const tl_expr *tl_cutting_condition(tl_arena *arena, const tl_path *path, const tl_block *block)
{
    assert(path->count > 0);
    tl_binding *first = TL_NEW_ARRAY(arena, tl_binding, path->count);
    int first_count = 0;
    for (int i = 0; i < path->count && block->has_init; i++) {
        const tl_iter *iter;
        const tl_stmt *stmt = path->stmts[i];
        if (stmt->kind == TL_STMT_LOOP &&
            tl_loop_drives(block, stmt->u.loop.var, &iter) == TL_DRIVES_REDUCE)
            first[first_count++] = (tl_binding){ stmt->u.loop.var, tl_int(arena, 0) };
    }
    if (block->predicate == NULL)
        return NULL;
    const tl_expr **conjuncts;
    int count = tl_conjuncts(arena, tl_block_bind(arena, block, block->predicate), &conjuncts);
    for (int i = 0; i < count; i++) {
        const tl_expr *of_first = tl_substitute(arena, conjuncts[i], first, first_count);
        if (!is_domain_guard(arena, block, conjuncts[i]) &&
            !follows_from_domains(arena, block, conjuncts[i]) && !tl_prove(arena, of_first) &&
            !follows_from_domains(arena, block, of_first))
            return conjuncts[i];
    }
    return NULL;
}

static tl_status take_condition(tl_schedule *s, const char *prim, tl_nest *nest, tl_diag *diag)
{
    const tl_expr **conjuncts;
    int count = tl_conjuncts(s->arena, nest->block->predicate, &conjuncts);
    nest->condition = NULL;
    for (int i = 0; i < count; i++) {
        if (!variables_of(nest, conjuncts[i]).uses_loops)
            nest->condition = tl_and(s->arena, nest->condition, conjuncts[i]);
        else if (!is_domain_guard(s->arena, nest->block, conjuncts[i]))
            return tl_refuse(diag, prim, nest->block->name,
                             "its predicate %s speaks of loops that it would leave: say it in "
                             "terms of the block's iters, or move the block before the loops are "
                             "split",
                             tl_expr_text(s->arena, conjuncts[i]));
    }
    return TL_OK;
}

/* New loops stand in the order of the iters: a strict sum that ran in another one would be rounded differently. */
static tl_status check_order(tl_schedule *s, const char *prim, const tl_nest *nest, tl_diag *diag)
{
    const tl_block *block = nest->block;
    if (!tl_keeps_order(s, block))
        return TL_OK;
    int last = -1;
    for (int i = 0; i < nest->path.count - 1; i++)
        for (int k = 0; nest->path.stmts[i]->kind == TL_STMT_LOOP && k < block->iter_count; k++) {
            const tl_var *var = nest->path.stmts[i]->u.loop.var;
            if (block->iters[k].kind != TL_ITER_REDUCE ||
                !tl_expr_uses_var(block->iters[k].binding, var))
                continue;
            if (k < last)
                return tl_refuse(diag, prim, block->name,
                                 "its new loops would be in the order of its iters, and loop %s of "
                                 "iter %s runs inside that of iter %s; %s",
                                 var->name, block->iters[k].var->name, block->iters[last].var->name,
                                 TL_STRICT_RULE);
            last = k;
        }
    return TL_OK;
}

tl_status tl_nest_of(tl_schedule *s, const char *prim, const tl_block *block, tl_nest *out,
                     tl_diag *diag)
{
    *out = (tl_nest){ .block = block };
    assert(block != NULL);
    out->path = tl_path_to_block(s->arena, s->program->body, block->name);
    if (out->path.count == 0)
        return tl_refuse(diag, prim, block->name,
                         "it is in the prepare part; only blocks of the body move");
    if (block->call != NULL)
        return tl_refuse(diag, prim, block->name,
                         "it calls the intrinsic %s; an opaque block does not move",
                         block->call->name);
    if (block->combiner != TL_COMBINER_NONE && !block->has_init)
        return tl_refuse(diag, prim, block->name,
                         "it only updates %s, which another block initialises: move it before "
                         "decompose_reduction",
                         block->stores[0].buffer->name);
    out->top = out->path.count - 1;
    while (out->top > 0 && out->path.stmts[out->top - 1]->kind == TL_STMT_LOOP)
        out->top--;
    TL_TRY(check_loops(s, prim, out, diag));
    TL_TRY(check_order(s, prim, out, diag));
    return take_condition(s, prim, out, diag);
}

typedef struct {
    const tl_path *place;
    bool outside;
} scope_check;

static bool visit_scope(const tl_expr *e, void *context)
{
    scope_check *check = context;
    if (e->kind == TL_EXPR_VAR && !e->u.var->is_dim &&
        (check->place == NULL || tl_path_find_loop(check->place, e->u.var) < 0))
        check->outside = true;
    return true;
}

static bool is_visible(const tl_expr *e, const tl_path *place)
{
    scope_check check = { place, false };
    tl_expr_visit(e, visit_scope, &check);
    return !check.outside;
}

const tl_expr *tl_outer_condition(tl_arena *arena, const tl_path *path, int count)
{
    assert(count >= 0 && count <= path->count &&
           path->stmts[path->count - 1]->kind == TL_STMT_BLOCK);
    const tl_expr **conjuncts, *condition = NULL;
    const tl_block *block = path->stmts[path->count - 1]->u.block;
    int total = tl_conjuncts(arena, block->predicate, &conjuncts);
    tl_path outer = tl_path_prefix(path, count);
    for (int i = 0; i < total; i++)
        if (is_visible(conjuncts[i], &outer))
            condition = tl_and(arena, condition, conjuncts[i]);
    return condition;
}

/* The loop (var NULL: none) and binding that iter k gets in the new place. */
static void rebind(tl_arena *arena, const tl_nest *nest, int k, const tl_span *spans,
                   const tl_path *place, const tl_var **var, const tl_expr **extent,
                   const tl_expr **binding, const tl_expr **begin)
{
    assert(k >= 0 && k < nest->block->iter_count);
    const tl_iter *iter = &nest->block->iters[k];
    if (iter->kind == TL_ITER_SPATIAL && spans != NULL && spans[k].min != NULL) {
        tl_span_loop(arena, spans[k], iter->extent, begin, extent);
        *var = tl_var_derive(arena, iter->var, "", *extent);
        bool single = tl_is_int(*extent, 1) && !tl_is_int(*begin, 0);
        *binding = single ? *begin : tl_add(arena, *begin, tl_ref(arena, *var));
        return;
    }

    const tl_var *own = variables_of(nest, iter->binding).own;
    const tl_expr *rest = iter->binding;
    int64_t coefficient;
    if (own != NULL)
        (void)tl_affine_in(arena, iter->binding, own, &coefficient, &rest);
    *begin = rest;
    if (!is_visible(rest, place)) { /* all of it, then */
        *begin = tl_int(arena, 0);
        *extent = iter->extent;
        *var = tl_var_derive(arena, iter->var, "", *extent);
        *binding = tl_ref(arena, *var);
    } else if (own == NULL) {
        *extent = tl_int(arena, 1); /* one iteration stays a loop where the iter had one */
        *var = tl_is_int(iter->extent, 1) ? tl_var_derive(arena, iter->var, "", *extent) : NULL;
        *binding = rest;
    } else {
        *extent = nest->path.stmts[tl_path_find_loop(&nest->path, own)]->u.loop.extent;
        *var = tl_var_derive(arena, iter->var, "", *extent);
        *binding = tl_add(arena, rest, tl_ref(arena, *var));
    }
}

/* That a new binding stays where the old loops ran, as far as they left out the ends of the iter's domain. */
static const tl_expr *old_range_guard(tl_arena *arena, const tl_nest *nest, const tl_iter *iter,
                                      const tl_expr *binding)
{
    int count;
    const tl_free_var *loops = tl_path_loops(arena, &nest->path, 0, &count);
    tl_span old = tl_span_of(arena, iter->binding, loops, count);
    const tl_expr *last = tl_addi(arena, iter->extent, -1), *guard = NULL;
    if (old.min != NULL && !tl_prove_le(arena, old.min, tl_int(arena, 0)) &&
        !tl_prove_le(arena, old.min, binding))
        guard = tl_le(arena, old.min, binding);
    if (old.max != NULL && !tl_prove_le(arena, last, old.max) &&
        !tl_prove_le(arena, binding, old.max))
        guard = tl_and(arena, guard, tl_le(arena, binding, old.max));
    return guard;
}

/* Whether a condition says no more than that a loop on the path, over a dim, ends where it does. */
static bool follows_from_loops(tl_arena *arena, const tl_expr *condition, const tl_path *place)
{
    for (int i = 0; i < place->count; i++) {
        const tl_stmt *loop = place->stmts[i];
        int64_t constant;
        if (loop->kind != TL_STMT_LOOP || tl_const_int(loop->u.loop.extent, &constant))
            continue;
        const tl_expr *inside = tl_lt(arena, tl_ref(arena, loop->u.loop.var), loop->u.loop.extent);
        if (tl_follows_from(arena, condition, inside))
            return true;
    }
    return false;
}

static const tl_expr *without_implied(tl_arena *arena, const tl_expr *guard, const tl_path *place)
{
    const tl_expr **conjuncts, *left = NULL;
    int count = tl_conjuncts(arena, guard, &conjuncts);
    for (int i = 0; i < count; i++)
        if (!follows_from_loops(arena, conjuncts[i], place))
            left = tl_and(arena, left, conjuncts[i]);
    return left;
}

const tl_stmt *tl_nest_build(tl_arena *arena, const tl_nest *nest, const tl_span *spans,
                             const tl_path *place)
{
    assert(nest->block->iter_count >= 0);
    const tl_block *old = nest->block;
    tl_block *block = TL_NEW(arena, tl_block);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, old->iter_count);
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, old->iter_count);

    const tl_expr *predicate = nest->condition;
    for (int k = 0; k < old->iter_count; k++) {
        iters[k] = old->iters[k];
        const tl_expr *begin;
        rebind(arena, nest, k, spans, place, &vars[k], &extents[k], &iters[k].binding, &begin);
        const tl_expr *guard =
            tl_loop_guard(arena, begin, extents[k], iters[k].binding, iters[k].extent);
        guard =
            tl_and(arena, guard, old_range_guard(arena, nest, &old->iters[k], iters[k].binding));
        predicate = tl_and(arena, predicate, without_implied(arena, guard, place));
    }
    *block = *old;
    block->iters = iters;
    block->predicate = predicate;

    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int k = old->iter_count - 1; k >= 0; k--)
        if (vars[k] != NULL)
            stmt = tl_stmt_loop(arena, vars[k], extents[k], TL_LOOP_SERIAL, stmt);
    return stmt;
}

static bool has_any(const tl_stmt *stmt, const tl_block *const *blocks, int count)
{
    for (int i = 0; i < count; i++)
        if (tl_stmt_has_block(stmt, blocks[i]->name))
            return true;
    return false;
}

static const tl_stmt *insert(tl_arena *arena, const tl_stmt *stmt, const tl_stmt *added,
                             const tl_block *const *blocks, int count, bool after)
{
    assert(count > 0);
    if (stmt->kind == TL_STMT_ALLOC) {
        const tl_stmt *body = insert(arena, stmt->u.alloc.body, added, blocks, count, after);
        return tl_stmt_with_body(arena, stmt, body);
    }
    if (stmt->kind != TL_STMT_SEQ)
        return after ? tl_stmt_seq2(arena, stmt, added) : tl_stmt_seq2(arena, added, stmt);

    int n = stmt->u.seq.count, at = -1;
    for (int i = 0; i < n; i++)
        if (has_any(stmt->u.seq.items[i], blocks, count) && (after || at < 0))
            at = i;
    if (at < 0) /* nothing to keep an order with */
        at = after ? n - 1 : 0;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, n + 1);
    int filled = 0;
    for (int i = 0; i < n; i++) {
        const tl_stmt *item = stmt->u.seq.items[i];
        bool inside = i == at && item->kind == TL_STMT_ALLOC;
        if (i == at && !inside && !after)
            items[filled++] = added;
        items[filled++] = inside ? insert(arena, item, added, blocks, count, after) : item;
        if (i == at && !inside && after)
            items[filled++] = added;
    }
    return tl_stmt_seq(arena, items, filled);
}

static const tl_stmt *insert_in_loop(tl_arena *arena, const tl_path *path, const tl_stmt *added,
                                     const tl_block *const *blocks, int count, bool after)
{
    const tl_stmt *loop = path->stmts[path->count - 1];
    const tl_stmt *body = insert(arena, loop->u.loop.body, added, blocks, count, after);
    return tl_path_replace(arena, path, tl_stmt_with_body(arena, loop, body));
}

const tl_stmt *tl_insert_before(tl_arena *arena, const tl_path *loop, const tl_stmt *added,
                                const tl_block *const *blocks, int count)
{
    return insert_in_loop(arena, loop, added, blocks, count, false);
}

const tl_stmt *tl_insert_after(tl_arena *arena, const tl_path *loop, const tl_stmt *added,
                               const tl_block *const *blocks, int count)
{
    return insert_in_loop(arena, loop, added, blocks, count, true);
}
