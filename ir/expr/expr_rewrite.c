/* ir/expr/expr_rewrite.c: comparing, searching and rewriting expressions. Each takes time for every node once, not for every
 * path to it: in an expression that is large as a tree, what was done for a node is kept (ir/expr/expr_memo.h). */
#include <assert.h>
#include <string.h>
#include "ir/expr/buffer.h"
#include "ir/expr/expr_memo.h"
#include "ir/expr/expr_private.h"
#include "ir/expr/index_private.h"

/* ---- questions ---- */

static bool same_payload(const tl_expr *a, const tl_expr *b)
{
    assert(a->kind == b->kind);
    switch (tl_expr_infos[a->kind].payload) {
    case TL_PAYLOAD_VALUE:
        return a->u.value == b->u.value;
    case TL_PAYLOAD_NUMBER:
        return memcmp(&a->u.number, &b->u.number, sizeof a->u.number) == 0;
    case TL_PAYLOAD_VAR:
        return a->u.var == b->u.var;
    case TL_PAYLOAD_BUFFER:
        return a->u.buffer == b->u.buffer;
    case TL_PAYLOAD_FUNCTION:
        return a->u.function == b->u.function;
    case TL_PAYLOAD_NONE:
        break;
    }
    return true;
}

/* `equals` has for a node the one that it was found equal to; NULL: both are small. */
static bool equal(const tl_expr *a, const tl_expr *b, tl_expr_memo *equals)
{
    if (a == b)
        return true;
    if (a->hash != b->hash || a->kind != b->kind || a->dtype != b->dtype || a->size != b->size ||
        a->arg_count != b->arg_count || !same_payload(a, b))
        return false;
    if (equals != NULL && tl_expr_memo_find(equals, a) == b)
        return true;
    for (int i = 0; i < a->arg_count; i++)
        if (!equal(a->args[i], b->args[i], equals))
            return false;
    if (equals != NULL && a->arg_count > 0)
        tl_expr_memo_put(equals, a, b);
    return true;
}

bool tl_expr_equal(const tl_expr *a, const tl_expr *b)
{
    if (a->size < TL_EXPR_MEMO_FROM || a->size != b->size)
        return equal(a, b, NULL);
    tl_expr_memo equals = { 0 };
    bool result = equal(a, b, &equals);
    tl_expr_memo_free(&equals);
    return result;
}

static int compare_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_payload(const tl_expr *a, const tl_expr *b)
{
    assert(a->kind == b->kind && a->dtype == b->dtype);
    int order;
    switch (tl_expr_infos[a->kind].payload) {
    case TL_PAYLOAD_VALUE:
        return compare_ints(a->u.value, b->u.value);
    case TL_PAYLOAD_NUMBER:
        if (a->u.number < b->u.number || a->u.number > b->u.number)
            return a->u.number < b->u.number ? -1 : 1;
        return memcmp(&a->u.number, &b->u.number, sizeof a->u.number);
    case TL_PAYLOAD_VAR:
        if (a->u.var == b->u.var)
            return 0;
        order = strcmp(a->u.var->name, b->u.var->name);
        return order != 0 ? order : compare_ints(a->u.var->id, b->u.var->id);
    case TL_PAYLOAD_BUFFER:
        if (a->u.buffer == b->u.buffer)
            return 0;
        order = strcmp(a->u.buffer->name, b->u.buffer->name);
        return order != 0 ? order : compare_ints((intptr_t)a->u.buffer, (intptr_t)b->u.buffer);
    case TL_PAYLOAD_FUNCTION:
        return compare_ints(a->u.function, b->u.function);
    case TL_PAYLOAD_NONE:
        break;
    }
    return 0;
}

static int compare(const tl_expr *a, const tl_expr *b, tl_expr_memo *equals)
{
    if (a == b || (equals != NULL && tl_expr_memo_find(equals, a) == b))
        return 0;
    if (a->kind != b->kind)
        return compare_ints(a->kind, b->kind);
    if (a->dtype != b->dtype)
        return compare_ints(a->dtype, b->dtype);
    int order = compare_payload(a, b);
    if (order == 0)
        order = compare_ints(a->arg_count, b->arg_count);
    for (int i = 0; order == 0 && i < a->arg_count; i++)
        order = compare(a->args[i], b->args[i], equals);
    if (order == 0 && equals != NULL && a->arg_count > 0)
        tl_expr_memo_put(equals, a, b);
    return order;
}

int tl_expr_compare(const tl_expr *a, const tl_expr *b)
{
    if (a->size < TL_EXPR_MEMO_FROM || b->size < TL_EXPR_MEMO_FROM)
        return compare(a, b, NULL);
    tl_expr_memo equals = { 0 };
    int order = compare(a, b, &equals);
    tl_expr_memo_free(&equals);
    return order;
}

bool tl_is_int(const tl_expr *e, int64_t value)
{
    return e->kind == TL_EXPR_INT && e->u.value == value;
}

bool tl_const_int(const tl_expr *e, int64_t *out)
{
    if (e->kind != TL_EXPR_INT)
        return false;
    *out = e->u.value;
    return true;
}

typedef bool node_test(const tl_expr *e, const void *context);

/* Whether a node passes the test; `failed` has those that are known to have none below them. */
static bool find_node(const tl_expr *e, node_test *test, const void *context, tl_expr_memo *failed)
{
    if (test(e, context))
        return true;
    if (failed != NULL && tl_expr_memo_find(failed, e) != NULL)
        return false;
    for (int i = 0; i < e->arg_count; i++)
        if (find_node(e->args[i], test, context, failed))
            return true;
    if (failed != NULL && e->arg_count > 0)
        tl_expr_memo_put(failed, e, e);
    return false;
}

static bool has_node(const tl_expr *e, node_test *test, const void *context)
{
    if (e->size < TL_EXPR_MEMO_FROM)
        return find_node(e, test, context, NULL);
    tl_expr_memo failed = { 0 };
    bool found = find_node(e, test, context, &failed);
    tl_expr_memo_free(&failed);
    return found;
}

static bool is_var(const tl_expr *e, const void *var)
{
    return e->kind == TL_EXPR_VAR && e->u.var == var;
}

bool tl_expr_uses_var(const tl_expr *e, const tl_var *var)
{
    return has_node(e, is_var, var);
}

static bool is_load(const tl_expr *e, const void *context)
{
    (void)context;
    return e->kind == TL_EXPR_LOAD;
}

bool tl_expr_has_load(const tl_expr *e)
{
    return has_node(e, is_load, NULL);
}

bool tl_expr_is_range_test(const tl_expr *e)
{
    if (e->kind == TL_EXPR_AND)
        return tl_expr_is_range_test(e->args[0]) && tl_expr_is_range_test(e->args[1]);
    return (e->kind == TL_EXPR_LT || e->kind == TL_EXPR_LE) && e->args[0]->dtype == TL_I64 &&
           !tl_expr_has_load(e);
}

void tl_expr_visit(const tl_expr *e, tl_expr_visitor *visit, void *context)
{
    if (!visit(e, context))
        return;
    for (int i = 0; i < e->arg_count; i++)
        tl_expr_visit(e->args[i], visit, context);
}

/* ---- rewriting ---- */

typedef struct {
    tl_arena *arena;
    tl_expr_rewriter *leaf;
    void *context;
    tl_expr_memo *done; /* what became of a node; NULL: the expression is small */
} rewriting;

static const tl_expr *rewrite(const rewriting *r, const tl_expr *e);

/* c*t with t rewritten; the same pointer when t stays. */
static const tl_expr *rewrite_addend(const rewriting *r, const tl_expr *e)
{
    if (e->kind != TL_EXPR_MUL || e->args[1]->kind != TL_EXPR_INT)
        return rewrite(r, e);
    const tl_expr *term = rewrite(r, e->args[0]);
    return term == e->args[0] ? e : tl_mul(r->arena, term, e->args[1]);
}

/* A canonical sum is rewritten addend by addend and put together once, not once an ADD. */
static const tl_expr *rewrite_sum(const rewriting *r, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_ADD && e->dtype == TL_I64);
    const tl_expr *parts[TL_MAX_ADDENDS + 1];
    int count = 0;
    bool changed = false;
    const tl_expr *rest = e;
    for (bool last = false; !last;) {
        const tl_expr *addend = rest;
        last = rest->kind != TL_EXPR_ADD || count == TL_MAX_ADDENDS;
        if (!last) {
            addend = rest->args[1];
            rest = rest->args[0];
        }
        if (last && addend->kind == TL_EXPR_ADD)
            parts[count] = rewrite(r, addend);
        else
            parts[count] = rewrite_addend(r, addend);
        changed |= parts[count++] != addend;
    }
    return changed ? tl_index_sum(r->arena, parts, count) : e;
}

static const tl_expr *rewrite_args(const rewriting *r, const tl_expr *e)
{
    assert(e->arg_count > 0);
    const tl_expr *few[4], **args = few;
    if (e->arg_count > 4)
        args = TL_NEW_ARRAY(r->arena, const tl_expr *, e->arg_count);
    bool changed = false;
    for (int i = 0; i < e->arg_count; i++) {
        args[i] = rewrite(r, e->args[i]);
        changed |= args[i] != e->args[i];
    }
    return changed ? tl_expr_with_args(r->arena, e, args) : e;
}

static const tl_expr *rewrite_node(const rewriting *r, const tl_expr *e)
{
    if (e->kind == TL_EXPR_ADD && e->dtype == TL_I64)
        return rewrite_sum(r, e);
    if (e->arg_count > 0)
        e = rewrite_args(r, e);
    if (e->kind != TL_EXPR_VAR && e->kind != TL_EXPR_LOAD)
        return e;
    const tl_expr *with = r->leaf(r->arena, e, r->context);
    return with == NULL ? e : with;
}

static const tl_expr *rewrite(const rewriting *r, const tl_expr *e)
{
    if (e->kind == TL_EXPR_INT || e->kind == TL_EXPR_FLOAT)
        return e;
    if (r->done == NULL)
        return rewrite_node(r, e);
    const tl_expr *with = tl_expr_memo_find(r->done, e);
    if (with == NULL) {
        with = rewrite_node(r, e);
        tl_expr_memo_put(r->done, e, with);
    }
    return with;
}

const tl_expr *tl_expr_rewrite(tl_arena *arena, const tl_expr *e, tl_expr_rewriter *leaf,
                               void *context)
{
    tl_expr_memo done = { .arena = arena };
    rewriting r = { arena, leaf, context, e->size < TL_EXPR_MEMO_FROM ? NULL : &done };
    return rewrite(&r, e);
}

typedef struct {
    const tl_binding *bindings;
    int count;
} substitution;

static const tl_expr *substitute_leaf(tl_arena *arena, const tl_expr *e, void *context)
{
    (void)arena;
    const substitution *s = context;
    if (e->kind != TL_EXPR_VAR)
        return NULL;
    for (int i = 0; i < s->count; i++)
        if (s->bindings[i].var == e->u.var)
            return s->bindings[i].value;
    return NULL;
}

const tl_expr *tl_substitute(tl_arena *arena, const tl_expr *e, const tl_binding *bindings,
                             int count)
{
    assert(count == 0 || bindings != NULL);
    substitution s = { bindings, count };
    return count == 0 ? e : tl_expr_rewrite(arena, e, substitute_leaf, &s);
}
