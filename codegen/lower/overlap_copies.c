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
 * Requires  what software_pipeline leaves true: copies of iteration k write the version k % n alone, and nothing else that
 *           the rest of an iteration touches; barriers right behind the copies and at the end, or none of both.
 * Keeps     what every thread computes. On a target without copies that go on by themselves there is nothing to wait for. */
#include <string.h>
#include "codegen/lower/passes.h"

enum { FIRST_SM = 80 };

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

static bool fills_shared(const tl_stmt *stmt)
{
    bool copies = false;
    tl_stmt_visit(stmt, see_store, &copies);
    return copies;
}

static const tl_stmt *commit(tl_arena *arena, bool waits)
{
    return waits ? tl_sync_call(arena, "async_commit", NULL, 0) : NULL;
}

static const tl_stmt *wait_for(tl_arena *arena, bool waits, int64_t under_way)
{
    return waits ? tl_sync_call(arena, "async_wait", &under_way, 1) : NULL;
}

/* The steady part's body; NULL: it is not built so. Where it runs once, nobody waits at its end. */
static const tl_stmt *overlap(tl_arena *arena, const tl_stmt *loop, bool waits, int64_t stages)
{
    const tl_stmt *body = loop->u.loop.body;
    bool runs_once = tl_is_int(loop->u.loop.extent, 1);
    if (body->kind != TL_STMT_SEQ)
        return NULL;
    const tl_stmt *const *items = body->u.seq.items;
    int count = body->u.seq.count, copies = 0;
    while (copies < count && fills_shared(items[copies]))
        copies++;
    int last = count > 0 && items[count - 1]->kind == TL_STMT_BARRIER ? count - 1 : count;
    if (copies == 0 || copies + 1 >= last || items[copies]->kind != TL_STMT_BARRIER ||
        (last == count && !runs_once))
        return NULL;
    const tl_stmt *parts[] = {
        wait_for(arena, waits, stages - 2),
        tl_stmt_barrier(arena),
        tl_stmt_seq(arena, items, copies),
        commit(arena, waits),
        tl_stmt_seq(arena, items + copies + 1, last - copies - 1),
    };
    return tl_stmt_seq(arena, parts, 5);
}

typedef struct {
    bool waits;
} overlapping;

/* The parts of a pipeline follow each other. */
static const tl_stmt *rewrite(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const overlapping *o = context;
    if (stmt->kind != TL_STMT_SEQ)
        return stmt;
    bool changed = false;
    int count = stmt->u.seq.count;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, count);
    memcpy(items, stmt->u.seq.items, sizeof *items * (size_t)count);
    for (int i = 0; i + 2 < count; i++) {
        int steady = i + 1;
        while (steady < count && items[steady]->kind == TL_STMT_BARRIER)
            steady++;
        int last = steady + 1;
        while (last < count && items[last]->kind == TL_STMT_BARRIER)
            last++;
        if (last >= count || mark_of(items[i], "pipeline_prologue") == 0 ||
            mark_of(items[steady], "pipeline") == 0 ||
            mark_of(items[last], "pipeline_epilogue") == 0)
            continue;
        const tl_stmt *body =
            overlap(arena, items[steady], o->waits, mark_of(items[steady], "pipeline"));
        if (body == NULL)
            continue;
        items[i] =
            tl_stmt_with_body(arena, items[i],
                              tl_stmt_seq2(arena, items[i]->u.loop.body, commit(arena, o->waits)));
        items[steady] = tl_stmt_with_body(arena, items[steady], body);
        const tl_stmt *parts[] = { wait_for(arena, o->waits, 0), tl_stmt_barrier(arena),
                                   items[last] };
        items[last] = tl_stmt_seq(arena, parts, 3);
        changed = true;
    }
    return changed ? tl_stmt_seq(arena, items, count) : stmt;
}

tl_status tl_overlap_copies(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    overlapping o = { .waits = kernel->target->gpu.sm >= FIRST_SM };
    kernel->body = tl_stmt_rewrite(kernel->arena, kernel->body, rewrite, &o);
    return TL_OK;
}
