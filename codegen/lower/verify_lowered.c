/* codegen/lower/verify_lowered.c: the invariants of lower_invariants.def, one function each. What one of them finds is
 * a fault of the pass that ran last, not of the schedule: so the sentence says what is broken, and tl_lower adds the
 * pass. */
#include "codegen/lower/passes.h"

typedef struct {
    const tl_lowered_kernel *kernel;
    tl_diag *diag;
    tl_status status;     /* of the first that was found */
    const tl_stmt *lanes; /* the vectorized loop around, or NULL */
} verifier;

/* ---- SCOPED ---- */

static tl_status check_scoped(verifier *v)
{
    tl_program program = tl_lowered_program(v->kernel);
    return tl_program_verify_lowered(&program, v->diag);
}

/* ---- DISTINCT ---- */

typedef struct {
    verifier *v;
    int count, capacity;
    const void **seen;
} things;

static void see_thing(things *t, const void *thing, const char *kind, const char *name)
{
    tl_arena *arena = t->v->kernel->arena;
    for (int i = 0; i < t->count; i++)
        if (t->seen[i] == thing && t->v->status == TL_OK)
            t->v->status =
                tl_fail(t->v->diag, TL_BAD_IR, "%s %s is that of two statements", kind, name);
    if (t->count == t->capacity) {
        const void **old = t->seen;
        t->capacity = 2 * t->capacity + 64;
        t->seen = TL_NEW_ARRAY(arena, const void *, t->capacity);
        for (int i = 0; i < t->count; i++)
            t->seen[i] = old[i];
    }
    t->seen[t->count++] = thing;
}

static bool see_names(const tl_stmt *stmt, void *context)
{
    if (stmt->kind == TL_STMT_LOOP)
        see_thing(context, stmt->u.loop.var, "the variable", stmt->u.loop.var->name);
    else if (stmt->kind == TL_STMT_ALLOC)
        see_thing(context, stmt->u.alloc.buffer, "the buffer", stmt->u.alloc.buffer->name);
    return true;
}

static tl_status check_distinct(verifier *v)
{
    things t = { v, 0, 0, NULL };
    tl_stmt_visit(v->kernel->body, see_names, &t);
    return v->status;
}

/* ---- NO_BLOCKS ---- */

static bool see_block(const tl_stmt *stmt, void *context)
{
    verifier *v = context;
    if (stmt->kind == TL_STMT_BLOCK && v->status == TL_OK)
        v->status = tl_fail(v->diag, TL_BAD_IR, "block %s is still there", stmt->u.block->name);
    return true;
}

static tl_status check_no_blocks(verifier *v)
{
    tl_stmt_visit(v->kernel->body, see_block, v);
    return v->status;
}

/* ---- LANES_JOIN ---- */

/* C = C op rest, or a value that is the same in all lanes and not made from C. */
static bool lanes_agree(const tl_store *store, const tl_var *lane)
{
    const tl_expr *value = store->value;
    if (!tl_reads_own_element(store) && !tl_expr_uses_var(value, lane))
        return true;
    bool combines = value->kind == TL_EXPR_ADD || value->kind == TL_EXPR_MUL ||
                    value->kind == TL_EXPR_MIN || value->kind == TL_EXPR_MAX ||
                    value->kind == TL_EXPR_AND || value->kind == TL_EXPR_OR;
    return combines &&
           (tl_is_own_element(value->args[0], store) || tl_is_own_element(value->args[1], store));
}

static bool find_alloc(const tl_stmt *stmt, void *context)
{
    const tl_buffer **buffer = context;
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == *buffer)
        *buffer = NULL;
    return *buffer != NULL;
}

static bool see_lane_store(const tl_stmt *stmt, void *context)
{
    verifier *v = context;
    if (stmt->kind != TL_STMT_STORE || v->status != TL_OK)
        return true;
    const tl_store *store = &stmt->u.store;
    const tl_var *lane = v->lanes->u.loop.var;
    for (int a = 0; a < store->buffer->rank; a++)
        if (tl_expr_uses_var(store->indices[a], lane))
            return true;
    const tl_buffer *buffer = store->buffer; /* one for each lane, where it is allocated inside */
    tl_stmt_visit(v->lanes, find_alloc, &buffer);
    if (buffer != NULL && !lanes_agree(store, lane))
        v->status = tl_fail(v->diag, TL_BAD_IR,
                            "the lanes of loop %s store different values to one element of %s",
                            lane->name, buffer->name);
    return true;
}

static bool see_lanes(const tl_stmt *stmt, void *context)
{
    verifier *v = context;
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind != TL_LOOP_VECTORIZED ||
        tl_is_int(stmt->u.loop.extent, 1))
        return true;
    v->lanes = stmt;
    tl_stmt_visit(stmt->u.loop.body, see_lane_store, v);
    return false;
}

static tl_status check_lanes_join(verifier *v)
{
    tl_stmt_visit(v->kernel->body, see_lanes, v);
    return v->status;
}

/* ---- LANES_OWN ---- */

static bool see_lane_alloc(const tl_stmt *stmt, void *context)
{
    verifier *v = context;
    if (stmt->kind == TL_STMT_ALLOC && v->status == TL_OK)
        v->status = tl_fail(v->diag, TL_BAD_IR, "buffer %s is allocated inside of lanes",
                            stmt->u.alloc.buffer->name);
    return true;
}

static bool see_lane_allocs(const tl_stmt *stmt, void *context)
{
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind != TL_LOOP_VECTORIZED)
        return true;
    tl_stmt_visit(stmt->u.loop.body, see_lane_alloc, context);
    return false;
}

static tl_status check_lanes_own(verifier *v)
{
    tl_stmt_visit(v->kernel->body, see_lane_allocs, v);
    return v->status;
}

static tl_status (*const checks[])(verifier *) = {
#define INVARIANT(name, check, holds) check_##check,
#include "codegen/lower/lower_invariants.def"
#undef INVARIANT
};

tl_status tl_verify_lowered(const tl_lowered_kernel *kernel, unsigned holds, tl_diag *diag)
{
    verifier v = { .kernel = kernel, .diag = diag, .status = TL_OK };
    if (kernel->body == NULL)
        return tl_fail(diag, TL_BAD_IR, "nothing is left of the kernel");
    for (int i = 0; i < TL_INVARIANT_COUNT; i++)
        if (holds & 1u << i)
            TL_TRY(checks[i](&v));
    return TL_OK;
}
