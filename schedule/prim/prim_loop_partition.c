/* schedule/prim/prim_loop_partition.c: loop_partition(loop)
 *
 *     for i0 in 0..13                         for i0 in 0..12
 *       for i1 in 0..8                          for i1 in 0..8
 *         block S                                 block S
 *           spatial i = i0*8 + i1    ->             spatial i = i0*8 + i1
 *           where i0*8 + i1 < 100             for i1 in 0..4
 *                                               block S_tail
 *                                                 spatial i = i1 + 96
 *
 * The main part is the longest beginning of the loop in which guards hold whatever the other loops do; they are gone
 * there. In the tail, loops are cut to what their guards let through, where a guard bounds a loop by a constant (or
 * dims; not for vectorized and unrolled loops) whatever the loops around and in it do. A tail of one iteration has no loop.
 *
 * Requires  a loop that is not bound to a GPU axis, and a guard under it of the form c*i0 + ... < bound, c > 0, that
 *           holds in the first iteration. Vectorized and unrolled loops are cut at constants only.
 * Keeps     which instances run, and their order; the loop's handle stands for the main part; kinds of loops.
 */
#include <assert.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

/* Guards: a conjunct as  coefficient*var <= rest. */

static void split_conjuncts(const tl_expr *e, const tl_expr **out, int *count, int capacity)
{
    assert(*count >= 0 && *count <= capacity);
    if (e->kind == TL_EXPR_AND) {
        split_conjuncts(e->args[0], out, count, capacity);
        split_conjuncts(e->args[1], out, count, capacity);
    } else if (*count < capacity) {
        out[(*count)++] = e;
    }
}

static int count_conjuncts(const tl_expr *e)
{
    return e->kind == TL_EXPR_AND ? count_conjuncts(e->args[0]) + count_conjuncts(e->args[1]) : 1;
}

static int conjuncts_of(tl_arena *arena, const tl_expr *e, const tl_expr ***out)
{
    int count = 0, capacity = e ? count_conjuncts(e) : 0;
    *out = TL_NEW_ARRAY(arena, const tl_expr *, capacity);
    if (e)
        split_conjuncts(e, *out, &count, capacity);
    return count;
}

/* `guard` (bound to loop variables) as coefficient*var <= rest with a positive coefficient. */
static bool is_upper_bound(tl_arena *arena, const tl_expr *guard, const tl_var *var,
                           int64_t *coefficient, const tl_expr **rest)
{
    if (guard->kind != TL_EXPR_LT && guard->kind != TL_EXPR_LE)
        return false;
    if (guard->args[0]->dtype != TL_I64)
        return false;
    const tl_expr *slack = tl_sub(arena, guard->args[1], guard->args[0]);
    slack = tl_addi(arena, slack, guard->kind == TL_EXPR_LT ? -1 : 0);
    if (!tl_affine_in(arena, slack, var, coefficient, rest) || *coefficient >= 0)
        return false;
    *coefficient = -*coefficient;
    return true;
}

static bool find_loop_var(const tl_expr *e, void *context)
{
    bool *found = context;
    if (e->kind == TL_EXPR_LOAD || (e->kind == TL_EXPR_VAR && !e->u.var->is_dim))
        *found = true;
    return !*found;
}

static bool is_over_dims(const tl_expr *e)
{
    bool found = false;
    tl_expr_visit(e, find_loop_var, &found);
    return !found;
}

/* The least value of `e` over the loops, dims left standing; NULL: none is known. */
static const tl_expr *least(tl_arena *arena, const tl_expr *e)
{
    tl_linear l = tl_linear_of(arena, e);
    const tl_expr *sum = tl_int(arena, l.constant);
    for (int i = 0; i < l.count; i++) {
        if (is_over_dims(l.terms[i])) {
            sum = tl_add(arena, sum, tl_muli(arena, l.terms[i], l.coefficients[i]));
            continue;
        }
        tl_range r = tl_expr_range(l.terms[i]);
        int64_t end = l.coefficients[i] > 0 ? r.min : r.max, product;
        if (end == INT64_MIN || end == INT64_MAX ||
            tl_mul_overflows(end, l.coefficients[i], &product))
            return NULL;
        sum = tl_addi(arena, sum, product);
    }
    return sum;
}

/* a - b, with  (y + c)//d - y//d  as  (y % d + c)//d,  whose range is narrow. */
static const tl_expr *difference(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    const tl_expr *e = tl_sub(arena, a, b);
    tl_linear l = tl_linear_of(arena, e);
    int64_t c;
    if (l.count != 2 || l.coefficients[0] * l.coefficients[1] != -1 ||
        l.terms[0]->kind != TL_EXPR_FLOORDIV || l.terms[1]->kind != TL_EXPR_FLOORDIV ||
        !tl_expr_equal(l.terms[0]->args[1], l.terms[1]->args[1]))
        return e;
    int plus = l.coefficients[0] > 0 ? 0 : 1;
    const tl_expr *x = l.terms[plus]->args[0], *y = l.terms[1 - plus]->args[0];
    const tl_expr *d = l.terms[0]->args[1];
    if (!tl_const_int(tl_sub(arena, x, y), &c))
        return e;
    const tl_expr *within = tl_addi(arena, tl_floormod_expr(arena, y, d), c);
    return tl_addi(arena, tl_floordiv_expr(arena, within, d), l.constant);
}

/* Where to cut. */

typedef struct {
    tl_schedule *s;
    tl_arena *arena;
    const tl_stmt *loop;
    const tl_expr *cut;     /* iterations of the main part; NULL: no guard helps */
    const char *other_loop; /* one that a guard speaks of, for the refusal */
} plan;

static bool add_cuts(const tl_stmt *stmt, void *context)
{
    plan *p = context;
    if (stmt->kind != TL_STMT_BLOCK || stmt->u.block->predicate == NULL)
        return true;
    const tl_expr **guards;
    const tl_expr *predicate = tl_block_bind(p->arena, stmt->u.block, stmt->u.block->predicate);
    int count = conjuncts_of(p->arena, predicate, &guards);
    for (int i = 0; i < count; i++) {
        int64_t coefficient;
        const tl_expr *rest;
        if (!is_upper_bound(p->arena, guards[i], p->loop->u.loop.var, &coefficient, &rest))
            continue;
        const tl_expr *low = least(p->arena, rest);
        if (low == NULL)
            continue;
        const tl_expr *cut = tl_floordiv_expr(p->arena, low, tl_int(p->arena, coefficient));
        cut = tl_addi(p->arena, cut, 1);
        if (tl_expr_range(cut).max <= 0)
            continue;
        if (p->cut == NULL || tl_prove_le(p->arena, cut, p->cut))
            p->cut = cut;
        else if (!tl_prove_le(p->arena, p->cut, cut))
            p->cut = tl_min(p->arena, p->cut, cut);
    }
    return true;
}

/* Guards that hold when var < cut go. */
static const tl_stmt *drop_guards(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const plan *p = context;
    if (stmt->kind != TL_STMT_BLOCK || stmt->u.block->predicate == NULL)
        return stmt;
    const tl_expr **guards, *predicate = NULL;
    int count = conjuncts_of(arena, stmt->u.block->predicate, &guards);
    for (int i = 0; i < count; i++) {
        int64_t coefficient;
        const tl_expr *rest, *low, *bound = tl_block_bind(arena, stmt->u.block, guards[i]);
        if (is_upper_bound(arena, bound, p->loop->u.loop.var, &coefficient, &rest) &&
            (low = least(arena, rest)) != NULL) {
            const tl_expr *cut = tl_floordiv_expr(arena, low, tl_int(arena, coefficient));
            cut = tl_addi(arena, cut, 1);
            if (tl_expr_equal(cut, p->cut) || tl_prove_le(arena, p->cut, cut))
                continue;
        }
        predicate = tl_and(arena, predicate, guards[i]);
    }
    tl_block *block = TL_NEW(arena, tl_block);
    *block = *stmt->u.block;
    block->predicate = predicate;
    return tl_stmt_block(arena, block);
}

/* The tail: a copy with names of its own. */

typedef struct {
    tl_schedule *s;
    int count, capacity;
    tl_binding *renamed; /* loop variable -> reference of its copy */
} copy_context;

static void rename_var(copy_context *c, const tl_var *var, const tl_expr *value)
{
    assert(var != NULL && value != NULL);
    TL_ROOM(c->s->arena, c->renamed, c->count, c->capacity);
    c->renamed[c->count++] = (tl_binding){ var, value };
}

static bool rename_loops(const tl_stmt *stmt, void *context)
{
    copy_context *c = context;
    if (stmt->kind == TL_STMT_LOOP) {
        const tl_var *var = stmt->u.loop.var;
        const tl_var *copy = tl_var_make(c->s->arena, var->name, var->min, var->max);
        rename_var(c, var, tl_ref(c->s->arena, copy));
    }
    return true;
}

static const tl_stmt *copy_loop(tl_arena *arena, const tl_stmt *stmt, const copy_context *c)
{
    tl_stmt *copy = TL_NEW(arena, tl_stmt);
    *copy = *stmt;
    for (int i = 0; i < c->count; i++)
        if (c->renamed[i].var == stmt->u.loop.var && c->renamed[i].value->kind == TL_EXPR_VAR)
            copy->u.loop.var = c->renamed[i].value->u.var;
    return copy;
}

static const tl_stmt *copy_block(tl_schedule *s, const tl_block *from)
{
    tl_arena *arena = s->arena;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, from->iter_count);
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, from->iter_count);
    bool reaches_first = true;
    for (int i = 0; i < from->iter_count; i++) {
        const tl_var *var = from->iters[i].var;
        iters[i] = from->iters[i];
        iters[i].var = tl_var_make(arena, var->name, var->min, var->max);
        bindings[i] = (tl_binding){ var, tl_ref(arena, iters[i].var) };
        if (iters[i].kind == TL_ITER_REDUCE && tl_expr_range(iters[i].binding).min > 0)
            reaches_first = false; /* the main part has initialised the element */
    }
    tl_block *block = TL_NEW(arena, tl_block);
    *block = *from;
    block->name = tl_fresh_block_name(s, tl_arena_format(arena, "%s_tail", from->name));
    const tl_stmt *renamed =
        tl_stmt_substitute(arena, tl_stmt_block(arena, block), bindings, from->iter_count);
    *block = *renamed->u.block;
    block->iters = iters;
    if (!reaches_first) {
        block->has_init = false;
        block->init = NULL;
    }
    return tl_stmt_block(arena, block);
}

static bool is_false(const tl_expr *predicate)
{
    return predicate->kind == TL_EXPR_INT && predicate->u.value == 0;
}

static const tl_stmt *copy_stmt(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    copy_context *c = context;
    if (stmt->kind == TL_STMT_LOOP)
        return copy_loop(arena, stmt, c);
    if (stmt->kind == TL_STMT_BLOCK && stmt->u.block->predicate &&
        is_false(stmt->u.block->predicate))
        return NULL;
    if (stmt->kind == TL_STMT_BLOCK)
        return copy_block(c->s, stmt->u.block);
    if (stmt->kind != TL_STMT_ALLOC)
        return stmt;
    const tl_buffer *from = stmt->u.alloc.buffer;
    tl_buffer *to = TL_NEW(arena, tl_buffer);
    *to = *from;
    to->name = tl_fresh_buffer_name(c->s, tl_arena_format(arena, "%s_tail", from->name));
    return tl_stmt_alloc(arena, to, tl_stmt_replace_buffer(arena, stmt->u.alloc.body, from, to));
}

/* Cutting the tail's loops. */

typedef struct {
    tl_arena *arena;
    const tl_var *var;
    const tl_expr *extent; /* that every block's guards leave; NULL: none yet */
    bool differs;          /* some block has no such guard, or another */
} trim;

static bool add_trim(const tl_stmt *stmt, void *context)
{
    trim *t = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_expr **guards, *found = NULL;
    int count = 0;
    if (stmt->u.block->predicate)
        count =
            conjuncts_of(t->arena, tl_block_bind(t->arena, stmt->u.block, stmt->u.block->predicate),
                         &guards);
    for (int i = 0; i < count && found == NULL; i++) {
        int64_t coefficient;
        const tl_expr *rest;
        if (!is_upper_bound(t->arena, guards[i], t->var, &coefficient, &rest))
            continue;
        /* the other loops at the values that let the most through */
        const tl_expr *most = least(t->arena, tl_muli(t->arena, rest, -1));
        if (most != NULL)
            found = tl_addi(t->arena,
                            tl_floordiv_expr(t->arena, tl_muli(t->arena, most, -1),
                                             tl_int(t->arena, coefficient)),
                            1);
    }
    if (found == NULL || (t->extent && !tl_expr_equal(found, t->extent)))
        t->differs = true;
    t->extent = found;
    return !t->differs;
}

static const tl_stmt *trim_loop(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    tl_schedule *s = context;
    if (stmt->kind != TL_STMT_LOOP)
        return stmt;
    trim t = { .arena = arena, .var = stmt->u.loop.var };
    tl_stmt_visit(stmt->u.loop.body, add_trim, &t);
    if (t.differs || t.extent == NULL)
        return stmt;
    tl_range range = tl_expr_range(t.extent);
    if (range.max <= 0)
        return NULL;
    int64_t extent;
    bool is_constant = tl_const_int(t.extent, &extent);
    bool wants_constant = stmt->u.loop.kind == TL_LOOP_VECTORIZED ||
                          stmt->u.loop.kind == TL_LOOP_UNROLLED ||
                          tl_loop_kind_infos[stmt->u.loop.kind].gpu;
    if ((wants_constant && !is_constant) || tl_prove_le(arena, stmt->u.loop.extent, t.extent))
        return stmt;
    if (!tl_prove_le(arena, t.extent, stmt->u.loop.extent))
        t.extent = tl_min(arena, t.extent, stmt->u.loop.extent);
    t.extent = tl_not_negative(arena, t.extent);

    const tl_var *var = tl_var_derive(arena, stmt->u.loop.var, "", t.extent);
    plan p = { .s = s, .arena = arena, .loop = stmt, .cut = t.extent };
    const tl_stmt *body = tl_stmt_rewrite(arena, stmt->u.loop.body, drop_guards, &p);
    tl_binding binding = { stmt->u.loop.var, tl_ref(arena, var) };
    body = tl_stmt_substitute(arena, body, &binding, 1);
    tl_stmt *copy = TL_NEW(arena, tl_stmt);
    *copy = *stmt;
    copy->u.loop.var = var;
    copy->u.loop.extent = t.extent;
    copy->u.loop.body = body;
    return copy;
}

static const tl_stmt *make_tail(plan *p)
{
    assert(p->loop->kind == TL_STMT_LOOP);
    tl_arena *arena = p->arena;
    const tl_stmt *loop = p->loop;
    const tl_expr *extent = difference(arena, loop->u.loop.extent, p->cut);
    if (tl_expr_range(extent).max <= 0)
        return NULL;
    extent = tl_not_negative(arena, extent);

    copy_context c = { .s = p->s };
    const tl_var *var = tl_var_derive(arena, loop->u.loop.var, "", extent);
    bool single = tl_is_int(extent, 1);
    rename_var(&c, loop->u.loop.var,
               var->max == 0 ? p->cut : tl_add(arena, p->cut, tl_ref(arena, var)));
    tl_stmt_visit(loop->u.loop.body, rename_loops, &c);
    const tl_stmt *body = tl_stmt_substitute(arena, loop->u.loop.body, c.renamed, c.count);
    body = tl_stmt_rewrite(arena, body, copy_stmt, &c);
    if (body)
        body = tl_stmt_rewrite(arena, body, trim_loop, p->s);
    if (body == NULL || single)
        return body;
    tl_stmt *tail = TL_NEW(arena, tl_stmt);
    *tail = *loop;
    tail->u.loop.var = var;
    tail->u.loop.extent = extent;
    tail->u.loop.body = body;
    return tail;
}

/* The main part, with a variable of its own that knows its shorter range. */
static const tl_stmt *make_main(plan *p)
{
    assert(p->loop->kind == TL_STMT_LOOP);
    tl_arena *arena = p->arena;
    const tl_stmt *loop = p->loop;
    const tl_var *var = tl_var_derive(arena, loop->u.loop.var, "", p->cut);
    const tl_stmt *body = tl_stmt_rewrite(arena, loop->u.loop.body, drop_guards, p);
    tl_binding binding = { loop->u.loop.var, tl_ref(arena, var) };
    tl_stmt *main_part = TL_NEW(arena, tl_stmt);
    *main_part = *loop;
    main_part->u.loop.var = var;
    main_part->u.loop.extent = p->cut;
    main_part->u.loop.body = tl_stmt_substitute(arena, body, &binding, 1);
    return main_part;
}

static tl_status check(plan *p, tl_diag *diag)
{
    const tl_stmt *loop = p->loop;
    const char *name = loop->u.loop.var->name;
    if (tl_loop_kind_infos[loop->u.loop.kind].gpu)
        return tl_refuse(diag, "loop_partition", name, "the loop is bound to %s, which runs once",
                         tl_loop_kind_infos[loop->u.loop.kind].text);
    tl_stmt_visit(loop->u.loop.body, add_cuts, p);
    if (p->cut == NULL)
        return tl_refuse(
            diag, "loop_partition", name,
            "no guard of a block under it becomes true in a "
            "first part of the loop; guards come from splits that do not divide, and the loop "
            "to partition is the outermost of such a split");
    tl_range below = tl_expr_range(difference(p->arena, loop->u.loop.extent, p->cut));
    if (below.max <= 0)
        p->cut = loop->u.loop.extent;
    else if (below.min < 0)
        p->cut = tl_min(p->arena, p->cut, loop->u.loop.extent);
    p->cut = tl_not_negative(p->arena, p->cut);
    int64_t constant;
    bool wants_constant =
        loop->u.loop.kind == TL_LOOP_VECTORIZED || loop->u.loop.kind == TL_LOOP_UNROLLED;
    if (wants_constant && !tl_const_int(p->cut, &constant))
        return tl_refuse(diag, "loop_partition", name,
                         "the loop is %s and would be cut at %s, which is "
                         "not constant",
                         tl_loop_kind_infos[loop->u.loop.kind].text,
                         tl_expr_text(p->arena, p->cut));
    return TL_OK;
}

tl_status tl_apply_loop_partition(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                  int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    plan p = { .s = s, .arena = s->arena };
    TL_TRY(tl_need_loop(s, "loop_partition", args[0].loop, &p.loop, diag));
    TL_TRY(check(&p, diag));
    const tl_stmt *main_part = make_main(&p), *tail = make_tail(&p);
    tl_path path = tl_schedule_path_to_loop(s, p.loop->u.loop.var);
    tl_schedule_replace(s, &path, tl_stmt_seq2(s->arena, main_part, tail));
    tl_schedule_rename_loop(s, p.loop->u.loop.var, main_part->u.loop.var);
    return TL_OK;
}
