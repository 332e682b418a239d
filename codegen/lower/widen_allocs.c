/* codegen/lower/widen_allocs.c: a buffer allocated inside a vectorized loop is one a lane.
 *
 *     for j in 0..16 vectorized               alloc T: f32[4, 16]
 *       alloc T: f32[4]                 ->    for j in 0..16 vectorized
 *       T[i] = A[i, j]                          T[i, j] = A[i, j]
 *
 * Leaves    no alloc inside a vectorized loop. */
#include "codegen/lower/passes.h"

typedef struct {
    const tl_var *var;
    const tl_expr *extent;
    int rank;
    const tl_buffer *from, *to;
} widening;

static const tl_expr *const *append_lane(tl_arena *arena, const tl_expr *const *indices,
                                         void *context)
{
    const widening *w = context;
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, w->rank + 1);
    for (int a = 0; a < w->rank; a++)
        out[a] = indices[a];
    out[w->rank] = tl_ref(arena, w->var);
    return out;
}

static const tl_stmt *drop_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const widening *w = context;
    (void)arena;
    return stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == w->from ? stmt->u.alloc.body
                                                                          : stmt;
}

static bool find_alloc(const tl_stmt *stmt, void *context)
{
    const tl_buffer **found = context;
    if (stmt->kind == TL_STMT_ALLOC && *found == NULL)
        *found = stmt->u.alloc.buffer;
    return *found == NULL;
}

static const tl_stmt *widen(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind != TL_LOOP_VECTORIZED)
        return stmt;
    const tl_stmt *body = stmt->u.loop.body;
    const tl_buffer *outside[64];
    int count = 0;
    for (; count < 64; count++) {
        const tl_buffer *from = NULL;
        tl_stmt_visit(body, find_alloc, &from);
        if (from == NULL)
            break;
        widening w = { stmt->u.loop.var, stmt->u.loop.extent, from->rank, from, NULL };
        const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, from->rank + 1);
        for (int a = 0; a < from->rank; a++)
            shape[a] = from->shape[a];
        shape[from->rank] = w.extent;
        w.to = tl_buffer_make(arena, from->name, from->dtype, from->role, from->scope,
                              from->rank + 1, shape);
        body = tl_stmt_rewrite(arena, body, drop_alloc, &w);
        body = tl_remap_accesses(arena, body, from, w.to, append_lane, &w);
        outside[count] = w.to;
    }
    const tl_stmt *all = tl_stmt_with_body(arena, stmt, body);
    for (int b = 0; b < count; b++)
        all = tl_stmt_alloc(arena, outside[b], all);
    return all;
}

tl_status tl_widen_allocs(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    kernel->body = tl_stmt_rewrite(kernel->arena, kernel->body, widen, NULL);
    return TL_OK;
}
