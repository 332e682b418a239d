/* codegen/lower/await_bulk_copies.c: copies of boxes by the tensor memory accelerator go on by themselves: what follows waits for
 * them. Those of a marked pipeline are waited for late already (overlap_copies.c).
 *
 *                                                          call mbarrier_make(0, 1, 1)      one arrival ends its phase
 *                                                          barrier
 *     call bulk_copy(read A[..], write S[..])      ->      call mbarrier_expect(0, 8192)    that arrival, and the bytes to come
 *                                                          call bulk_load(read A[..], write S[..], 0, 0)
 *                                                          call mbarrier_wait(0, 0)
 *
 *     call bulk_copy(read S[..], write C[..])      ->      call bulk_store(read S[..], write C[..])
 *                                                          call bulk_commit()
 *                                                          call bulk_wait(0)
 *
 * The first thread along x asks for a copy; of copies under loops over y and z, one of each row does. Where the copy runs again
 * the mbarrier is made anew each time.
 *
 * Keeps     what is computed. */
#include <assert.h>
#include "codegen/lower/kernel_plan.h"
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"
#include "runtime/base/checked.h"

static bool is_load(const tl_stmt *stmt)
{
    return tl_is_call(stmt, "bulk_copy") &&
           stmt->u.call->writes[0].buffer->scope == TL_SCOPE_SHARED;
}

static bool see_load(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found = *found || is_load(stmt);
    return !*found;
}

bool tl_has_bulk_loads(const tl_stmt *stmt)
{
    bool found = false;
    tl_stmt_visit(stmt, see_load, &found);
    return found;
}

tl_thread_place tl_thread_enter(tl_thread_place place, const tl_stmt *loop)
{
    assert(loop->kind == TL_STMT_LOOP);
    int axis = tl_gpu_thread_axis(loop->u.loop.kind);
    int64_t extent = 0;
    if (tl_is_int(loop->u.loop.extent, 1))
        return place;
    if (axis < 0) {
        place.repeats = place.repeats || (tl_gpu_block_axis(loop->u.loop.kind) < 0 &&
                                          loop->u.loop.kind != TL_LOOP_UNROLLED);
        return place;
    }
    if (axis > 0 && !(place.axes >> axis & 1) && tl_const_int(loop->u.loop.extent, &extent))
        place.rows *= extent;
    place.axes |= 1u << axis;
    return place;
}

static tl_status refuse(const tl_lowered_kernel *kernel, const tl_region *to, const char *why,
                        tl_diag *diag)
{
    return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: a bulk copy into %s %s", kernel->name,
                   to->buffer->name, why);
}

tl_status tl_bulk_bytes(const tl_lowered_kernel *kernel, const tl_stmt *stmt, tl_thread_place place,
                        int64_t *bytes, tl_diag *diag)
{
    int64_t inner = 0, extent = 1;
    *bytes = 0;
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++) {
            TL_TRY(tl_bulk_bytes(kernel, stmt->u.seq.items[i], place, &inner, diag));
            *bytes += inner;
        }
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_bulk_bytes(kernel, stmt->u.alloc.body, place, bytes, diag);
    if (stmt->kind == TL_STMT_IF && tl_has_bulk_loads(stmt)) {
        const tl_expr *condition = stmt->u.branch.condition;
        return tl_fail(diag, TL_UNSUPPORTED,
                       "kernel %s: a bulk copy runs where %s only, and so it is not known how many "
                       "bytes are to be waited for",
                       kernel->name, tl_expr_text(kernel->arena, condition));
    }
    if (stmt->kind == TL_STMT_LOOP && tl_has_bulk_loads(stmt)) {
        int axis = tl_gpu_thread_axis(stmt->u.loop.kind);
        bool is_row = axis > 0 && (place.axes >> axis & 1);
        if (axis != 0 && !tl_const_int(stmt->u.loop.extent, &extent))
            return tl_fail(diag, TL_UNSUPPORTED,
                           "kernel %s: a bulk copy in loop %s, whose extent is no constant",
                           kernel->name, stmt->u.loop.var->name);
        TL_TRY(
            tl_bulk_bytes(kernel, stmt->u.loop.body, tl_thread_enter(place, stmt), &inner, diag));
        if (tl_mul_overflows(inner, is_row ? 1 : extent, bytes))
            *bytes = INT64_MAX;
    }
    if (!is_load(stmt))
        return TL_OK;
    const tl_region *to = &stmt->u.call->writes[0];
    if (place.axes & 1u)
        return refuse(kernel, to, "stands in a threadIdx.x loop: one thread asks for it", diag);
    *bytes = (int64_t)tl_dtype_size(to->buffer->dtype);
    for (int a = 0; a < to->buffer->rank; a++)
        if (!tl_const_int(to->extent[a], &extent) || tl_mul_overflows(*bytes, extent, bytes))
            return refuse(kernel, to, "has no constant size", diag);
    return TL_OK;
}

typedef struct {
    const tl_expr *mbarrier;
} beginning;

static const tl_stmt *begin(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const beginning *b = context;
    if (!is_load(stmt))
        return stmt;
    const tl_expr **scalars = TL_NEW_ARRAY(arena, const tl_expr *, 2);
    scalars[0] = b->mbarrier;
    scalars[1] = tl_int(arena, 0);
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    *call = *stmt->u.call;
    call->name = "bulk_load";
    call->scalar_count = 2;
    call->scalars = scalars;
    return tl_stmt_call(arena, call);
}

const tl_stmt *tl_bulk_begin(tl_arena *arena, const tl_stmt *stmt, const tl_expr *mbarrier)
{
    beginning b = { mbarrier };
    return tl_stmt_rewrite(arena, stmt, begin, &b);
}

const tl_expr *tl_mbarrier_of(tl_arena *arena, int first, int64_t stages, const tl_expr *turn)
{
    return tl_addi(arena, tl_floormod_expr(arena, turn, tl_int(arena, stages)), first);
}

const tl_stmt *tl_mbarrier_wait(tl_arena *arena, int first, int64_t stages, const tl_expr *turn)
{
    const tl_expr *round = tl_floordiv_expr(arena, turn, tl_int(arena, stages));
    return tl_sync_call2(arena, "mbarrier_wait", tl_mbarrier_of(arena, first, stages, turn),
                         tl_floormod_expr(arena, round, tl_int(arena, 2)));
}

/* ---- copies that stand alone ---- */

/* Bulk copies into shared memory, loops around them, and nothing else. */
static bool has_loads_only(const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_LOOP)
        return has_loads_only(stmt->u.loop.body);
    if (stmt->kind != TL_STMT_SEQ)
        return is_load(stmt);
    bool only = true;
    for (int i = 0; i < stmt->u.seq.count && only; i++)
        only = has_loads_only(stmt->u.seq.items[i]);
    return only;
}

typedef struct {
    tl_lowered_kernel *kernel;
    tl_diag *diag;
    tl_status status;
} awaiting;

static const tl_stmt *await_loads(awaiting *w, const tl_stmt *loads, tl_thread_place place)
{
    tl_arena *arena = w->kernel->arena;
    int number = w->kernel->mbarrier_count++;
    int64_t bytes = 0;
    tl_status status = tl_bulk_bytes(w->kernel, loads, place, &bytes, w->diag);
    if (w->status == TL_OK)
        w->status = status;
    const tl_stmt *parts[] = {
        tl_sync_call(arena, "mbarrier_make", (const int64_t[]){ number, 1, place.rows }, 3),
        tl_stmt_barrier(arena),
        tl_sync_call(arena, "mbarrier_expect", (const int64_t[]){ number, bytes }, 2),
        tl_bulk_begin(arena, loads, tl_int(arena, number)),
        tl_sync_call(arena, "mbarrier_wait", (const int64_t[]){ number, 0 }, 2),
        place.repeats ? tl_stmt_barrier(arena) : NULL,
        place.repeats ? tl_sync_call(arena, "mbarrier_drop", (const int64_t[]){ number, 1 }, 2)
                      : NULL,
    };
    return tl_stmt_seq(arena, parts, 7);
}

static const tl_stmt *await_store(tl_arena *arena, const tl_stmt *store)
{
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    *call = *store->u.call;
    call->name = "bulk_store";
    const tl_stmt *parts[] = { tl_stmt_call(arena, call),
                               tl_sync_call(arena, "bulk_commit", NULL, 0),
                               tl_sync_call(arena, "bulk_wait", (const int64_t[]){ 0 }, 1) };
    return tl_stmt_seq(arena, parts, 3);
}

static const tl_stmt *await(awaiting *w, const tl_stmt *stmt, tl_thread_place place)
{
    tl_arena *arena = w->kernel->arena;
    if (has_loads_only(stmt))
        return await_loads(w, stmt, place);
    switch (stmt->kind) {
    case TL_STMT_SEQ: {
        int count = 0, total = stmt->u.seq.count;
        const tl_stmt **out = TL_NEW_ARRAY(arena, const tl_stmt *, total);
        for (int i = 0; i < total;) {
            int first = i;
            while (i < total && has_loads_only(stmt->u.seq.items[i]))
                i++;
            out[count++] =
                i > first ? await_loads(w, tl_stmt_seq(arena, stmt->u.seq.items + first, i - first),
                                        place)
                          : await(w, stmt->u.seq.items[i++], place);
        }
        return tl_stmt_seq(arena, out, count);
    }
    case TL_STMT_LOOP:
        return tl_stmt_with_body(arena, stmt,
                                 await(w, stmt->u.loop.body, tl_thread_enter(place, stmt)));
    case TL_STMT_ALLOC:
        return tl_stmt_with_body(arena, stmt, await(w, stmt->u.alloc.body, place));
    case TL_STMT_IF:
        return tl_stmt_if(arena, stmt->u.branch.condition, await(w, stmt->u.branch.then, place),
                          stmt->u.branch.otherwise == NULL
                              ? NULL
                              : await(w, stmt->u.branch.otherwise, place));
    case TL_STMT_CALL:
        return tl_is_call(stmt, "bulk_copy") ? await_store(arena, stmt) : stmt;
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return stmt;
}

const tl_stmt *tl_await_copies(tl_lowered_kernel *kernel, const tl_stmt *stmt,
                               tl_thread_place place, tl_status *status, tl_diag *diag)
{
    awaiting w = { kernel, diag, *status };
    stmt = await(&w, stmt, place);
    *status = w.status;
    return stmt;
}

static bool see_copy(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found = *found || tl_is_call(stmt, "bulk_copy");
    return !*found;
}

tl_status tl_await_bulk_copies(tl_lowered_kernel *kernel, tl_diag *diag)
{
    bool found = false;
    tl_stmt_visit(kernel->body, see_copy, &found);
    awaiting w = { kernel, diag, TL_OK };
    if (found)
        kernel->body = await(&w, kernel->body, (tl_thread_place){ 1, 0, false });
    return w.status;
}
