/* codegen/lower/overlap_copies.c: a pipeline that software_pipeline has made and marked meets once an iteration, and waits for
 * its copies as late as it can.
 *
 *     for p in 0..2 {pipeline_prologue = 3}       for p in 0..2
 *       copy(p)                                     copy(p)
 *                                                   call async_commit()
 *     for k in 0..14 {pipeline = 3}         ->    for k in 0..14
 *       copy(k + 2)                                 call async_wait(1)     the copies for k are done, those behind not
 *       barrier                                     barrier                nobody reads what iteration k - 1 has read
 *       compute(k)                                  copy(k + 2)            into the version that it read
 *       barrier                                     call async_commit()
 *                                                   compute(k)
 *     for e in 0..2 {pipeline_epilogue = 3}       call async_wait(0)
 *       compute(14 + e)                           barrier
 *                                                 for e in 0..2
 *                                                   compute(14 + e)
 *
 * Products of a warpgroup go on by themselves: where threads copy they are asked for first, and waited for behind the copies
 * (call products_begin, products_commit, products_wait, products_done).
 *
 * Many products of a warp come first, too, where three versions or more leave copies an iteration to arrive in: else every
 * warp of a block would ask for copies when all of them could begin to load what they multiply.
 *
 * Bulk copies go on by themselves, too. There an mbarrier a version hears of what one iteration copies: its phase ends when
 * all bytes have come (call mbarrier_expect), and each iteration waits for its own (call mbarrier_wait).
 *
 * Requires  what software_pipeline leaves true: copies of iteration k write the version k % n alone, and nothing else that
 *           the rest of an iteration touches; barriers right behind the copies and at the end, or none of both.
 * Keeps     what every thread computes. On a target without copies that go on by themselves there is nothing to wait for. */
#include <string.h>
#include "codegen/lower/passes.h"
#include "ir/program/intrinsics.h"

enum {
    FIRST_SM = 80,
    ENOUGH_PRODUCTS = 64, /* of a warp, in an iteration: longer than copies are under way */
};

static int64_t mark_of(const tl_stmt *stmt, const char *key)
{
    for (int i = 0; stmt->kind == TL_STMT_LOOP && i < stmt->u.loop.annotation_count; i++)
        if (strcmp(stmt->u.loop.annotations[i].key, key) == 0)
            return stmt->u.loop.annotations[i].value;
    return 0;
}

static bool see_store(const tl_stmt *stmt, void *context)
{
    bool *copies = context;
    if (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer->scope == TL_SCOPE_SHARED)
        *copies = true;
    return !*copies;
}

static bool stores_to_shared(const tl_stmt *stmt)
{
    bool copies = false;
    tl_stmt_visit(stmt, see_store, &copies);
    return copies;
}

static bool fills_shared(const tl_stmt *stmt)
{
    return stores_to_shared(stmt) || tl_has_bulk_loads(stmt);
}

static const tl_stmt *commit(tl_arena *arena, bool waits)
{
    return waits ? tl_sync_call(arena, "async_commit", NULL, 0) : NULL;
}

static const tl_stmt *wait_for(tl_arena *arena, bool waits, int64_t under_way)
{
    return waits ? tl_sync_call(arena, "async_wait", &under_way, 1) : NULL;
}

/* What is known of a pipeline: its number of versions, the mbarriers of its bulk copies and what they wait for. */
typedef struct {
    int64_t stages, bytes;
    bool waits; /* for cp.async */
    bool has_bulk;
    int first; /* of `stages` mbarriers */
    tl_arena *arena;
} pipeline;

static const tl_stmt *expect(const pipeline *p, const tl_expr *turn)
{
    return p->has_bulk ? tl_sync_call2(p->arena, "mbarrier_expect",
                                       tl_mbarrier_of(p->arena, p->first, p->stages, turn),
                                       tl_int(p->arena, p->bytes))
                       : NULL;
}

/* The copies of iteration `turn`. */
static const tl_stmt *copy(const pipeline *p, const tl_stmt *copies, const tl_expr *turn)
{
    if (p->has_bulk)
        copies =
            tl_bulk_begin(p->arena, copies, tl_mbarrier_of(p->arena, p->first, p->stages, turn));
    return tl_stmt_seq2(p->arena, expect(p, turn), copies);
}

static const tl_stmt *wait_turn(const pipeline *p, const tl_expr *turn)
{
    return p->has_bulk ? tl_mbarrier_wait(p->arena, p->first, p->stages, turn) : NULL;
}

/* How many products of a warp it does, each in as many threads as there are. */
static int64_t products_of(const tl_stmt *stmt)
{
    int64_t count = 0, extent;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        count = products_of(stmt->u.loop.body);
        if (tl_loop_kind_infos[stmt->u.loop.kind].gpu)
            return count;
        return tl_const_int(stmt->u.loop.extent, &extent) ? count * extent : 0;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            count += products_of(stmt->u.seq.items[i]);
        return count;
    case TL_STMT_CALL:
        return tl_intrinsic_of_warp(stmt->u.call->name) ? 1 : 0;
    case TL_STMT_ALLOC:
        return products_of(stmt->u.alloc.body);
    case TL_STMT_IF:
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return 0;
}

/* What an iteration does between two meetings. */
static const tl_stmt *turn_of(const pipeline *p, const tl_stmt *copies, const tl_stmt *compute,
                              const tl_expr *turn)
{
    tl_arena *arena = p->arena;
    const tl_stmt *ahead = tl_stmt_seq2(arena, copy(p, copies, tl_addi(arena, turn, p->stages - 1)),
                                        commit(arena, p->waits));
    if (!stores_to_shared(copies) || !tl_has_products_only(compute))
        return p->waits && p->stages > 2 && products_of(compute) >= ENOUGH_PRODUCTS
                   ? tl_stmt_seq2(arena, compute, ahead)
                   : tl_stmt_seq2(arena, ahead, compute);
    const tl_stmt *parts[] = {
        tl_products_group(arena, compute),
        ahead,
        tl_sync_call(arena, "products_wait", (const int64_t[]){ 0 }, 1),
        tl_products_done(arena, compute),
    };
    return tl_stmt_seq(arena, parts, 4);
}

/* The steady part's body; NULL: it is not built so. Where it runs once, nobody waits at its end. */
static const tl_stmt *overlap(const pipeline *p, const tl_stmt *loop)
{
    tl_arena *arena = p->arena;
    const tl_stmt *body = loop->u.loop.body;
    if (body->kind != TL_STMT_SEQ)
        return NULL;
    const tl_stmt *const *items = body->u.seq.items;
    const tl_expr *turn = tl_ref(arena, loop->u.loop.var);
    int count = body->u.seq.count, copies = 0;
    while (copies < count && fills_shared(items[copies]))
        copies++;
    if (copies == 0 || copies == count)
        return NULL;
    int rest = copies + (items[copies]->kind == TL_STMT_BARRIER);
    int end = count - (items[count - 1]->kind == TL_STMT_BARRIER);
    bool meets = rest > copies && (end < count || tl_is_int(loop->u.loop.extent, 1));
    if (rest >= end || (!meets && !p->has_bulk))
        return NULL;
    const tl_stmt *parts[] = {
        wait_for(arena, p->waits, p->stages - 2),
        wait_turn(p, turn),
        tl_stmt_barrier(arena),
        turn_of(p, tl_stmt_seq(arena, items, copies), tl_stmt_seq(arena, items + rest, end - rest),
                turn),
    };
    return tl_stmt_seq(arena, parts, 4);
}

typedef struct {
    tl_lowered_kernel *kernel;
    bool waits;
    tl_diag *diag;
    tl_status status;
} overlapping;

/* Its three parts; false: they are not built so. */
static bool overlap_parts(overlapping *o, const tl_stmt **before, const tl_stmt **steady,
                          const tl_stmt **last, tl_thread_place place)
{
    tl_arena *arena = o->kernel->arena;
    pipeline p = { .stages = mark_of(*steady, "pipeline"),
                   .waits = o->waits && stores_to_shared(*before),
                   .has_bulk = tl_has_bulk_loads(*before),
                   .first = o->kernel->mbarrier_count,
                   .arena = arena };
    if (p.has_bulk) {
        tl_status status =
            tl_bulk_bytes(o->kernel, (*before)->u.loop.body, place, &p.bytes, o->diag);
        o->status = o->status == TL_OK ? status : o->status;
    }
    const tl_stmt *body = overlap(&p, *steady);
    if (body == NULL)
        return false;
    const tl_expr *turn = tl_ref(arena, (*before)->u.loop.var);
    const tl_expr *end =
        tl_add(arena, (*steady)->u.loop.extent, tl_ref(arena, (*last)->u.loop.var));
    *before = tl_stmt_with_body(arena, *before,
                                tl_stmt_seq2(arena, copy(&p, (*before)->u.loop.body, turn),
                                             commit(arena, p.waits)));
    *steady = tl_stmt_with_body(arena, *steady, body);
    *last = tl_stmt_with_body(arena, *last,
                              tl_stmt_seq2(arena, wait_turn(&p, end), (*last)->u.loop.body));
    if (p.waits || !p.has_bulk) {
        const tl_stmt *parts[] = { wait_for(arena, p.waits, 0), tl_stmt_barrier(arena), *last };
        *last = tl_stmt_seq(arena, parts, 3);
    }
    if (!p.has_bulk)
        return true;
    o->kernel->mbarrier_count += (int)p.stages;
    const int64_t make[] = { p.first, p.stages, place.rows };
    *before = tl_stmt_seq2(arena,
                           tl_stmt_seq2(arena, tl_sync_call(arena, "mbarrier_make", make, 3),
                                        tl_stmt_barrier(arena)),
                           *before);
    if (place.repeats)
        *last = tl_stmt_seq2(arena, *last,
                             tl_stmt_seq2(arena, tl_stmt_barrier(arena),
                                          tl_sync_call(arena, "mbarrier_drop", make, 2)));
    return true;
}

static const tl_stmt *walk(overlapping *o, const tl_stmt *stmt, tl_thread_place place);

/* The parts of a pipeline follow each other. */
static const tl_stmt *walk_seq(overlapping *o, const tl_stmt *stmt, tl_thread_place place)
{
    bool changed = false;
    int count = stmt->u.seq.count;
    const tl_stmt **items = TL_NEW_ARRAY(o->kernel->arena, const tl_stmt *, count);
    for (int i = 0; i < count; i++) {
        items[i] = walk(o, stmt->u.seq.items[i], place);
        changed = changed || items[i] != stmt->u.seq.items[i];
    }
    for (int i = 0; i + 2 < count; i++) {
        int steady = i + 1;
        while (steady < count && items[steady]->kind == TL_STMT_BARRIER)
            steady++;
        int last = steady + 1;
        while (last < count && items[last]->kind == TL_STMT_BARRIER)
            last++;
        if (last < count && mark_of(items[i], "pipeline_prologue") != 0 &&
            mark_of(items[steady], "pipeline") != 0 &&
            mark_of(items[last], "pipeline_epilogue") != 0)
            changed |= overlap_parts(o, &items[i], &items[steady], &items[last], place);
    }
    return changed ? tl_stmt_seq(o->kernel->arena, items, count) : stmt;
}

static const tl_stmt *walk(overlapping *o, const tl_stmt *stmt, tl_thread_place place)
{
    tl_arena *arena = o->kernel->arena;
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        return walk_seq(o, stmt, place);
    case TL_STMT_LOOP:
        return tl_stmt_with_body(arena, stmt,
                                 walk(o, stmt->u.loop.body, tl_thread_enter(place, stmt)));
    case TL_STMT_ALLOC:
        return tl_stmt_with_body(arena, stmt, walk(o, stmt->u.alloc.body, place));
    case TL_STMT_IF: {
        const tl_stmt *then = walk(o, stmt->u.branch.then, place),
                      *otherwise = stmt->u.branch.otherwise;
        if (otherwise != NULL)
            otherwise = walk(o, otherwise, place);
        return then == stmt->u.branch.then && otherwise == stmt->u.branch.otherwise
                   ? stmt
                   : tl_stmt_if(arena, stmt->u.branch.condition, then, otherwise);
    }
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return stmt;
}

tl_status tl_overlap_copies(tl_lowered_kernel *kernel, tl_diag *diag)
{
    overlapping o = { kernel, kernel->target->gpu.sm >= FIRST_SM, diag, TL_OK };
    kernel->body = walk(&o, kernel->body, (tl_thread_place){ 1, 0, false });
    return o.status;
}
