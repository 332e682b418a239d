/* codegen/lower/await_products.c: products of a warpgroup go on by themselves: what follows waits for them.
 *
 *     for k in 0..4 unrolled                               call products_begin()      its registers are as they are here
 *       call wgmma_m64n64k16_bf16(read C, ..)      ->      for k in 0..4 unrolled
 *                                                            call wgmma_m64n64k16_bf16(read C, ..)
 *                                                          call products_commit()
 *                                                          call products_wait(0)
 *                                                          call products_done(read C, write C)     from here on they are there
 *
 * They also read shared memory by themselves, as bulk copies do: what threads have stored there is made known to them before
 * the barrier behind it (call fence_async).
 *
 * Keeps     what is computed. */
#include <assert.h>
#include "codegen/lower/passes.h"
#include "ir/program/intrinsics.h"
#include "runtime/base/array.h"

typedef struct {
    tl_arena *arena;
    bool fences; /* a shared buffer is stored to by threads, and read by what reads by itself */
} awaiting;

static bool is_product(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_CALL && tl_intrinsic_of_group(stmt->u.call->name);
}

/* Nothing but products, and loops and tests around them that all threads of the group run alike. */
bool tl_has_products_only(const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_LOOP)
        return !tl_loop_kind_infos[stmt->u.loop.kind].gpu &&
               tl_has_products_only(stmt->u.loop.body);
    if (stmt->kind != TL_STMT_SEQ)
        return is_product(stmt);
    bool only = true;
    for (int i = 0; i < stmt->u.seq.count && only; i++)
        only = tl_has_products_only(stmt->u.seq.items[i]);
    return only;
}

/* ---- what is waited for ---- */

typedef struct {
    tl_arena *arena;
    int count, capacity;
    const tl_buffer **items;
} buffer_list;

static void add_buffer(buffer_list *list, const tl_buffer *buffer)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i] == buffer)
            return;
    TL_ROOM(list->arena, list->items, list->count, list->capacity);
    list->items[list->count++] = buffer;
}

static bool see_sums(const tl_stmt *stmt, void *context)
{
    if (is_product(stmt))
        add_buffer(context, stmt->u.call->writes[0].buffer);
    return true;
}

const tl_stmt *tl_products_done(tl_arena *arena, const tl_stmt *products)
{
    buffer_list sums = { .arena = arena };
    tl_stmt_visit(products, see_sums, &sums);
    const tl_stmt **calls = TL_NEW_ARRAY(arena, const tl_stmt *, sums.count);
    for (int i = 0; i < sums.count; i++) {
        const tl_buffer *b = sums.items[i];
        const tl_expr **begin = TL_NEW_ARRAY(arena, const tl_expr *, b->rank);
        for (int a = 0; a < b->rank; a++)
            begin[a] = tl_int(arena, 0);
        tl_region *whole = TL_NEW(arena, tl_region);
        *whole = (tl_region){ b, begin, b->shape };
        tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
        *call = (tl_intrinsic_call){ .name = "products_done",
                                     .read_count = 1,
                                     .write_count = 1,
                                     .reads = whole,
                                     .writes = whole };
        calls[i] = tl_stmt_call(arena, call);
    }
    return tl_stmt_seq(arena, calls, sums.count);
}

/* Products in straight code are a group; of a loop that goes round, those of one turn. */
const tl_stmt *tl_products_group(tl_arena *arena, const tl_stmt *products)
{
    if (products->kind == TL_STMT_LOOP && products->u.loop.kind != TL_LOOP_UNROLLED &&
        !tl_is_int(products->u.loop.extent, 1))
        return tl_stmt_with_body(arena, products, tl_products_group(arena, products->u.loop.body));
    const tl_stmt *parts[] = { tl_sync_call(arena, "products_begin", NULL, 0), products,
                               tl_sync_call(arena, "products_commit", NULL, 0) };
    return tl_stmt_seq(arena, parts, 3);
}

static const tl_stmt *wait_for(tl_arena *arena, const tl_stmt *products)
{
    const tl_stmt *parts[] = {
        tl_products_group(arena, products),
        tl_sync_call(arena, "products_wait", (const int64_t[]){ 0 }, 1),
        tl_products_done(arena, products),
    };
    return tl_stmt_seq(arena, parts, 3);
}

/* ---- where ---- */

static const tl_stmt *await(const awaiting *w, const tl_stmt *stmt);

static bool is_meeting(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_BARRIER || tl_is_call(stmt, "threads_meet");
}

static const tl_stmt *await_seq(const awaiting *w, const tl_stmt *seq)
{
    int count = 0, total = seq->u.seq.count;
    const tl_stmt *const *items = seq->u.seq.items;
    const tl_stmt **out = TL_NEW_ARRAY(w->arena, const tl_stmt *, 2 * total + 1);
    for (int i = 0; i < total; i++) {
        int first = i;
        while (i < total && tl_has_products_only(items[i]))
            i++;
        if (i > first) {
            bool begun = first > 0 && tl_is_call(items[first - 1], "products_begin");
            const tl_stmt *products = tl_stmt_seq(w->arena, items + first, i - first);
            out[count++] = begun ? products : wait_for(w->arena, products);
        }
        if (i == total)
            break;
        bool fenced = i > 0 && tl_is_call(items[i - 1], "fence_async");
        out[count++] = is_meeting(items[i]) && fenced ? items[i] : await(w, items[i]);
    }
    return tl_stmt_seq(w->arena, out, count);
}

static const tl_stmt *await(const awaiting *w, const tl_stmt *stmt)
{
    if (tl_has_products_only(stmt))
        return wait_for(w->arena, stmt);
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        return await_seq(w, stmt);
    case TL_STMT_LOOP:
        return tl_stmt_with_body(w->arena, stmt, await(w, stmt->u.loop.body));
    case TL_STMT_ALLOC:
        return tl_stmt_with_body(w->arena, stmt, await(w, stmt->u.alloc.body));
    case TL_STMT_IF:
        return tl_stmt_if(w->arena, stmt->u.branch.condition, await(w, stmt->u.branch.then),
                          stmt->u.branch.otherwise == NULL ? NULL
                                                           : await(w, stmt->u.branch.otherwise));
    case TL_STMT_BARRIER:
    case TL_STMT_CALL:
        return w->fences && is_meeting(stmt)
                   ? tl_stmt_seq2(w->arena, tl_sync_call(w->arena, "fence_async", NULL, 0), stmt)
                   : stmt;
    case TL_STMT_BLOCK:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return stmt;
}

/* ---- what reads by itself, and who stores ---- */

typedef struct {
    buffer_list stored, read;
    bool has_products;
} survey;

static bool see_use(const tl_stmt *stmt, void *context)
{
    survey *s = context;
    if (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer->scope == TL_SCOPE_SHARED)
        add_buffer(&s->stored, stmt->u.store.buffer);
    bool reads = is_product(stmt) || tl_is_call(stmt, "bulk_store");
    s->has_products = s->has_products || is_product(stmt);
    for (int i = 0; reads && i < stmt->u.call->read_count; i++)
        add_buffer(&s->read, stmt->u.call->reads[i].buffer);
    return true;
}

tl_status tl_await_products(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    survey s = { { .arena = kernel->arena }, { .arena = kernel->arena }, false };
    tl_stmt_visit(kernel->body, see_use, &s);
    awaiting w = { kernel->arena, false };
    for (int i = 0; i < s.stored.count; i++)
        for (int k = 0; k < s.read.count; k++)
            w.fences = w.fences || s.stored.items[i] == s.read.items[k];
    if (s.has_products || w.fences)
        kernel->body = await(&w, kernel->body);
    return TL_OK;
}
