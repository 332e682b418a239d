/* codegen/lower/meet_threads.c: what the first thread of an axis does alone, and what all of them do, wait for each other.
 *
 *     S[0] = ..                              S[0] = ..                outside of the loops over threadIdx.x: once
 *     for t in 0..32 threadIdx.x     ->      barrier
 *       Y[t] = S[0]                          for t in 0..32 threadIdx.x
 *                                              Y[t] = S[0]
 *
 * A statement that is not under the same thread loops is ordered with each thread of the others (ir/interpret/interpret.h),
 * and schedules may have left out what place_barriers puts there. Between the threads of equal loops nothing is added: that
 * they race is a schedule's mistake, which the interpreter tells. Barriers that are there count.
 *
 * Keeps     what is computed. */
#include <assert.h>
#include "codegen/lower/kernel_plan.h"
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"
#include "runtime/base/array.h"

typedef struct {
    const tl_buffer *buffer;
    unsigned axes; /* of the thread loops around */
    bool writes;
} access;

typedef struct {
    int count, capacity;
    access *items;
} access_list;

typedef struct {
    tl_arena *arena;
    int private_count, private_capacity;
    const tl_buffer **privates; /* that every thread has for itself */
    unsigned axes;
    tl_var_set row; /* variables of the loops over threadIdx.x around */
} meeting;

static bool is_private(const meeting *m, const tl_buffer *buffer)
{
    bool found = buffer->scope != TL_SCOPE_SHARED && buffer->scope != TL_SCOPE_GLOBAL;
    for (int i = 0; i < m->private_count && !found; i++)
        found = m->privates[i] == buffer;
    return found;
}

static void add(meeting *m, access_list *list, const tl_buffer *buffer, bool writes)
{
    if (is_private(m, buffer))
        return;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].buffer == buffer && list->items[i].axes == m->axes &&
            list->items[i].writes == writes)
            return;
    TL_ROOM(m->arena, list->items, list->count, list->capacity);
    list->items[list->count++] = (access){ buffer, m->axes, writes };
}

/* Threads along x that update one element combine what they have, and the first of them does it. */
static bool joins(const meeting *m, const tl_store *store)
{
    bool moves = !(m->axes & 1u) || !tl_reads_own_element(store);
    for (int a = 0; a < store->buffer->rank && !moves; a++)
        moves = tl_expr_uses_any(store->indices[a], &m->row);
    return !moves;
}

typedef struct {
    meeting *m;
    access_list *list;
    const tl_store *joined; /* whose own element is not read by all */
} load_walk;

static bool see_load(const tl_expr *e, void *context)
{
    load_walk *walk = context;
    if (walk->joined != NULL && tl_is_own_element(e, walk->joined))
        return false;
    if (e->kind == TL_EXPR_LOAD)
        add(walk->m, walk->list, e->u.buffer, false);
    return true;
}

static void enter(meeting *m, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_ALLOC && m->axes != 0 &&
        stmt->u.alloc.buffer->scope != TL_SCOPE_SHARED) {
        TL_ROOM(m->arena, m->privates, m->private_count, m->private_capacity);
        m->privates[m->private_count++] = stmt->u.alloc.buffer;
    }
    int axis = stmt->kind == TL_STMT_LOOP && !tl_is_int(stmt->u.loop.extent, 1)
                   ? tl_gpu_thread_axis(stmt->u.loop.kind)
                   : -1;
    if (axis >= 0)
        m->axes |= 1u << axis;
    if (axis == 0)
        tl_var_set_add(m->arena, &m->row, stmt->u.loop.var);
}

static void collect_store(meeting *m, const tl_store *store, access_list *list)
{
    bool joined = joins(m, store);
    load_walk walk = { m, list, joined ? store : NULL };
    unsigned around = m->axes;
    tl_expr_visit(store->value, see_load, &walk);
    for (int a = 0; a < store->buffer->rank; a++)
        tl_expr_visit(store->indices[a], see_load, &walk);
    m->axes = joined ? around & ~1u : around;
    if (joined)
        add(m, list, store->buffer, false);
    add(m, list, store->buffer, true);
    m->axes = around;
}

/* What it touches before its first barrier, or all of it when there is none; whether there is one. */
static bool collect(meeting *m, const tl_stmt *stmt, access_list *list)
{
    load_walk walk = { m, list, NULL };
    unsigned around = m->axes;
    bool met = stmt->kind == TL_STMT_BARRIER;
    enter(m, stmt);
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count && !met; i++)
            met = collect(m, stmt->u.seq.items[i], list);
    else if (stmt->kind == TL_STMT_ALLOC)
        met = collect(m, stmt->u.alloc.body, list);
    else if (stmt->kind == TL_STMT_LOOP)
        met = collect(m, stmt->u.loop.body, list) && tl_expr_range(stmt->u.loop.extent).min > 0;
    else if (stmt->kind == TL_STMT_IF) {
        tl_expr_visit(stmt->u.branch.condition, see_load, &walk);
        (void)collect(m, stmt->u.branch.then, list);
        if (stmt->u.branch.otherwise != NULL)
            (void)collect(m, stmt->u.branch.otherwise, list);
    } else if (stmt->kind == TL_STMT_STORE) {
        collect_store(m, &stmt->u.store, list);
    } else if (stmt->kind == TL_STMT_CALL) {
        for (int i = 0; i < stmt->u.call->read_count; i++)
            add(m, list, stmt->u.call->reads[i].buffer, false);
        for (int i = 0; i < stmt->u.call->write_count; i++)
            add(m, list, stmt->u.call->writes[i].buffer, true);
    }
    m->axes = around;
    return met;
}

static void append(meeting *m, access_list *to, const access_list *from)
{
    for (int i = 0; i < from->count; i++) {
        TL_ROOM(m->arena, to->items, to->count, to->capacity);
        to->items[to->count++] = from->items[i];
    }
}

static bool conflict(const access_list *before, const access_list *after)
{
    for (int i = 0; i < before->count; i++)
        for (int k = 0; k < after->count; k++) {
            const access *a = &before->items[i], *b = &after->items[k];
            if (a->buffer == b->buffer && a->axes != b->axes && (a->writes || b->writes))
                return true;
        }
    return false;
}

static const tl_stmt *meet(meeting *m, const tl_stmt *stmt, access_list *pending);

static bool goes_inside(const tl_stmt *stmt)
{
    while (stmt->kind == TL_STMT_ALLOC)
        stmt = stmt->u.alloc.body;
    return stmt->kind == TL_STMT_SEQ;
}

static const tl_stmt *meet_seq(meeting *m, const tl_stmt *stmt, access_list *pending)
{
    assert(stmt->kind == TL_STMT_SEQ);
    int count = 0;
    bool changed = false;
    const tl_stmt **items = TL_NEW_ARRAY(m->arena, const tl_stmt *, 2 * stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++) {
        const tl_stmt *item = stmt->u.seq.items[i];
        access_list entry = { 0 };
        if (!goes_inside(item))
            (void)collect(m, item, &entry);
        if (conflict(pending, &entry)) {
            items[count++] = tl_stmt_barrier(m->arena);
            pending->count = 0;
            changed = true;
        }
        items[count] = meet(m, item, pending);
        changed = changed || items[count] != item;
        count++;
    }
    return changed ? tl_stmt_seq(m->arena, items, count) : stmt;
}

/* `pending`: what was touched since the last barrier, before the statement and then after it. */
static const tl_stmt *meet(meeting *m, const tl_stmt *stmt, access_list *pending)
{
    if (stmt->kind == TL_STMT_SEQ)
        return meet_seq(m, stmt, pending);
    if (stmt->kind == TL_STMT_BARRIER) {
        pending->count = 0;
        return stmt;
    }
    if (stmt->kind != TL_STMT_LOOP && stmt->kind != TL_STMT_ALLOC) {
        (void)collect(m, stmt, pending);
        return stmt;
    }
    unsigned around = m->axes;
    access_list before = { 0 };
    bool is_loop = stmt->kind == TL_STMT_LOOP;
    bool may_not_run = is_loop && tl_expr_range(stmt->u.loop.extent).min < 1;
    if (may_not_run)
        append(m, &before, pending);
    enter(m, stmt);
    const tl_stmt *body = meet(m, is_loop ? stmt->u.loop.body : stmt->u.alloc.body, pending);
    bool repeats = is_loop && tl_gpu_thread_axis(stmt->u.loop.kind) < 0 &&
                   tl_gpu_block_axis(stmt->u.loop.kind) < 0 && !tl_is_int(stmt->u.loop.extent, 1);
    if (repeats) { /* from one iteration to the next */
        access_list entry = { 0 };
        (void)collect(m, body, &entry);
        if (conflict(pending, &entry)) {
            body = tl_stmt_seq2(m->arena, body, tl_stmt_barrier(m->arena));
            pending->count = 0;
        }
    }
    append(m, pending, &before);
    m->axes = around;
    return tl_stmt_with_body(m->arena, stmt, body);
}

/* Launches wait for each other. */
static const tl_stmt *meet_phases(tl_arena *arena, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer->scope == TL_SCOPE_GLOBAL)
        return tl_stmt_with_body(arena, stmt, meet_phases(arena, stmt->u.alloc.body));
    if (stmt->kind == TL_STMT_SEQ) {
        const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, stmt->u.seq.count);
        bool changed = false;
        for (int i = 0; i < stmt->u.seq.count; i++) {
            items[i] = meet_phases(arena, stmt->u.seq.items[i]);
            changed = changed || items[i] != stmt->u.seq.items[i];
        }
        return changed ? tl_stmt_seq(arena, items, stmt->u.seq.count) : stmt;
    }
    meeting m = { .arena = arena };
    access_list pending = { 0 };
    return meet(&m, stmt, &pending);
}

tl_status tl_meet_threads(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    kernel->body = meet_phases(kernel->arena, kernel->body);
    return TL_OK;
}
