/* schedule/barriers.c: see barriers.h.
 *
 * A walk in the order of the text with the accesses made since the last barrier. Before an item of a sequence whose
 * accesses up to its own first barrier conflict with those, a barrier is put; at the end of a serial loop's body, when
 * what follows its last barrier conflicts with what comes before its first. Two accesses do not conflict when equal
 * elements mean equal threads: then every thread loop's variable, the same one an axis, is pinned (dependence.h). */
#include "schedule/barriers.h"
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/dependence.h"
#include "schedule/schedule_private.h"

enum { AXES = 3, MAX_DEPTH = 64 };

typedef struct {
    tl_access access;
    unsigned axes; /* of the thread loops around it */
} thread_access;

typedef struct {
    int count, capacity;
    thread_access *items;
} access_list;

typedef struct {
    tl_arena *arena;
    const char *prim;
    tl_diag *diag;
    tl_status status;
    tl_dependences all;         /* its variables are those of every loop that threads run through */
    const tl_var *thread[AXES]; /* one variable an axis */
    int64_t width[AXES];        /* threads of a block, 0: none */
    /* around the current statement */
    int bound_count;
    tl_binding bound[MAX_DEPTH]; /* variables of thread loops */
    int64_t extent[AXES];        /* of the innermost thread loop of an axis, 0: none */
    int private_count;
    const tl_buffer *privates[MAX_DEPTH]; /* allocated by every thread for itself */
    const tl_stmt *lanes;                 /* a vectorized or parallel loop around, or NULL */
} placer;

static int axis_of(const tl_stmt *loop)
{
    assert(loop->kind == TL_STMT_LOOP);
    if (loop->u.loop.kind == TL_LOOP_THREAD_X)
        return 0;
    if (loop->u.loop.kind == TL_LOOP_THREAD_Y)
        return 1;
    return loop->u.loop.kind == TL_LOOP_THREAD_Z ? 2 : -1;
}

static void add(placer *p, access_list *list, const thread_access *item)
{
    TL_ROOM(p->arena, list->items, list->count, list->capacity);
    list->items[list->count++] = *item;
}

/* Entering and leaving what is around. */

static bool enter(placer *p, const tl_stmt *stmt)
{
    if (p->bound_count == MAX_DEPTH || p->private_count == MAX_DEPTH) {
        p->status = tl_fail(p->diag, TL_ILLEGAL_SCHEDULE,
                            "%s: loops or allocs are nested more than %d deep", p->prim, MAX_DEPTH);
        return false;
    }
    if (stmt->kind == TL_STMT_ALLOC) {
        bool in_thread = p->extent[0] || p->extent[1] || p->extent[2];
        if (in_thread && stmt->u.alloc.buffer->scope != TL_SCOPE_SHARED)
            p->privates[p->private_count++] = stmt->u.alloc.buffer;
        return true;
    }
    int axis = axis_of(stmt);
    if (axis >= 0) {
        p->bound[p->bound_count++] =
            (tl_binding){ stmt->u.loop.var, tl_ref(p->arena, p->thread[axis]) };
        if (!tl_const_int(stmt->u.loop.extent, &p->extent[axis]))
            p->extent[axis] = -1;
    }
    if (stmt->u.loop.kind == TL_LOOP_VECTORIZED || stmt->u.loop.kind == TL_LOOP_PARALLEL)
        p->lanes = stmt;
    return true;
}

/* What enter changes, to be put back. */
typedef struct {
    int bound_count, private_count;
    int64_t extent[AXES];
    const tl_stmt *lanes;
} around;

static around save(const placer *p)
{
    around a = { p->bound_count, p->private_count, { 0 }, p->lanes };
    memcpy(a.extent, p->extent, sizeof a.extent);
    return a;
}

static void restore(placer *p, const around *a)
{
    p->bound_count = a->bound_count;
    p->private_count = a->private_count;
    p->lanes = a->lanes;
    memcpy(p->extent, a->extent, sizeof a->extent);
}

/* Collecting. */

static void add_block(placer *p, const tl_stmt *stmt, access_list *list)
{
    assert(stmt->kind == TL_STMT_BLOCK);
    stmt = tl_stmt_substitute(p->arena, stmt, p->bound, p->bound_count);
    tl_dependences own = tl_dependences_under(p->arena, stmt);
    for (int i = 0; i < own.access_count; i++) {
        thread_access item = { .access = own.accesses[i] };
        bool is_private = false;
        for (int k = 0; k < p->private_count; k++)
            is_private |= p->privates[k] == item.access.buffer;
        tl_scope scope = item.access.buffer->scope;
        if (is_private || (scope != TL_SCOPE_SHARED && scope != TL_SCOPE_GLOBAL))
            continue;
        for (int axis = 0; axis < AXES; axis++)
            item.axes |= p->extent[axis] ? 1u << axis : 0;
        add(p, list, &item);
    }
}

/* Adds what `stmt` accesses before its first barrier (`first`), or after its last one; whether there is one. */
static bool collect(placer *p, const tl_stmt *stmt, bool first, access_list *list)
{
    bool met = false;
    around before = save(p);
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count && !(first && met); i++)
            met |= collect(p, stmt->u.seq.items[i], first, list);
        break;
    case TL_STMT_LOOP:
    case TL_STMT_ALLOC:
        if (!enter(p, stmt))
            return true;
        met = collect(p, stmt->kind == TL_STMT_LOOP ? stmt->u.loop.body : stmt->u.alloc.body, first,
                      list);
        if (stmt->kind == TL_STMT_LOOP && tl_expr_range(stmt->u.loop.extent).min < 1)
            met = false; /* it may not run at all */
        break;
    case TL_STMT_BLOCK:
        add_block(p, stmt, list);
        break;
    case TL_STMT_BARRIER:
        if (!first)
            list->count = 0;
        met = true;
        break;
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    restore(p, &before);
    return met;
}

static bool same_thread(placer *p, const thread_access *a, const thread_access *b)
{
    if (a->axes != b->axes)
        return false;
    tl_pins pins = tl_pins_of_elements(&p->all, &a->access, &b->access);
    for (int axis = 0; axis < AXES; axis++)
        if ((a->axes >> axis & 1) && p->width[axis] > 1 && !tl_pins_var(&pins, p->thread[axis]))
            return false;
    return true;
}

static bool conflict(placer *p, const access_list *before, const access_list *after)
{
    for (int i = 0; i < before->count; i++)
        for (int k = 0; k < after->count; k++)
            if (tl_may_conflict(&before->items[i].access, &after->items[k].access) &&
                !same_thread(p, &before->items[i], &after->items[k]))
                return true;
    return false;
}

/* Placing. */

/* Whether all threads reach a barrier that stands, or is wanted, here. */
static void check_reached(placer *p, const char *barrier)
{
    static const char letters[] = "xyz";
    for (int axis = 0; axis < AXES && p->status == TL_OK; axis++)
        if (p->extent[axis] && p->extent[axis] != p->width[axis])
            p->status = tl_fail(p->diag, TL_ILLEGAL_SCHEDULE,
                                "%s: a barrier %s inside a threadIdx.%c loop of %lld iterations, "
                                "and the block has %lld threads there, which would not reach it; "
                                "bind loops of one extent",
                                p->prim, barrier, letters[axis], (long long)p->extent[axis],
                                (long long)p->width[axis]);
    if (p->lanes && p->status == TL_OK)
        p->status = tl_fail(p->diag, TL_ILLEGAL_SCHEDULE, "%s: a barrier %s inside the %s loop %s",
                            p->prim, barrier, tl_loop_kind_infos[p->lanes->u.loop.kind].text,
                            p->lanes->u.loop.var->name);
}

static const tl_stmt *barrier_before(placer *p)
{
    check_reached(p, "is wanted");
    return tl_stmt_barrier(p->arena);
}

static const tl_stmt *place(placer *p, const tl_stmt *stmt, access_list *pending);

/* An alloc around a sequence: a barrier goes in front of that part of it that wants one. */
static bool places_inside(const tl_stmt *stmt)
{
    while (stmt->kind == TL_STMT_ALLOC)
        stmt = stmt->u.alloc.body;
    return stmt->kind == TL_STMT_SEQ;
}

static const tl_stmt *place_seq(placer *p, const tl_stmt *stmt, access_list *pending)
{
    assert(stmt->kind == TL_STMT_SEQ);
    int count = 0;
    const tl_stmt **items = TL_NEW_ARRAY(p->arena, const tl_stmt *, 2 * stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++) {
        access_list entry = { 0 };
        if (!places_inside(stmt->u.seq.items[i]))
            (void)collect(p, stmt->u.seq.items[i], true, &entry);
        if (conflict(p, pending, &entry)) {
            items[count++] = barrier_before(p);
            pending->count = 0;
        }
        items[count++] = place(p, stmt->u.seq.items[i], pending);
    }
    return count == stmt->u.seq.count &&
                   memcmp(items, stmt->u.seq.items, sizeof *items * (size_t)count) == 0
               ? stmt
               : tl_stmt_seq(p->arena, items, count);
}

static const tl_stmt *place_loop(placer *p, const tl_stmt *stmt, access_list *pending)
{
    assert(stmt->kind == TL_STMT_LOOP);
    const tl_stmt *body = place(p, stmt->u.loop.body, pending);
    bool repeats = stmt->u.loop.kind == TL_LOOP_SERIAL || stmt->u.loop.kind == TL_LOOP_UNROLLED;
    if (repeats && stmt->u.loop.var->max > 0) {
        access_list entry = { 0 }, exit = { 0 };
        (void)collect(p, body, true, &entry);
        (void)collect(p, body, false, &exit);
        if (conflict(p, &exit, &entry)) {
            body = tl_stmt_seq2(p->arena, body, barrier_before(p));
            if (tl_expr_range(stmt->u.loop.extent).min > 0)
                pending->count = 0;
        }
    }
    return tl_stmt_with_body(p->arena, stmt, body);
}

/* The statement with its barriers; `pending` is what was accessed since the last one, before it and then after. */
static const tl_stmt *place(placer *p, const tl_stmt *stmt, access_list *pending)
{
    around before = save(p);
    const tl_stmt *placed = stmt;
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        return place_seq(p, stmt, pending);
    case TL_STMT_LOOP:
        if (enter(p, stmt))
            placed = place_loop(p, stmt, pending);
        break;
    case TL_STMT_ALLOC:
        if (enter(p, stmt))
            placed = tl_stmt_with_body(p->arena, stmt, place(p, stmt->u.alloc.body, pending));
        break;
    case TL_STMT_BLOCK:
        add_block(p, stmt, pending);
        break;
    case TL_STMT_BARRIER:
        pending->count = 0;
        break;
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    restore(p, &before);
    return placed;
}

/* Phases. */

static bool survey(const tl_stmt *stmt, void *context)
{
    placer *p = context;
    if (stmt->kind != TL_STMT_LOOP)
        return true;
    int axis = axis_of(stmt);
    int64_t extent = 0;
    if (axis >= 0 && tl_const_int(stmt->u.loop.extent, &extent) && extent > p->width[axis])
        p->width[axis] = extent;
    bool is_grid = stmt->u.loop.kind == TL_LOOP_BLOCK_X || stmt->u.loop.kind == TL_LOOP_BLOCK_Y ||
                   stmt->u.loop.kind == TL_LOOP_BLOCK_Z;
    if (axis < 0 && !is_grid)
        p->all.var_capacity++; /* counted first */
    return true;
}

static bool take_var(const tl_stmt *stmt, void *context)
{
    placer *p = context;
    if (stmt->kind == TL_STMT_LOOP && axis_of(stmt) < 0 && stmt->u.loop.kind != TL_LOOP_BLOCK_X &&
        stmt->u.loop.kind != TL_LOOP_BLOCK_Y && stmt->u.loop.kind != TL_LOOP_BLOCK_Z)
        p->all.vars[p->all.var_count++] = stmt->u.loop.var;
    return true;
}

/* What is done with a phase in which there are threads. */
typedef const tl_stmt *phase_pass(placer *p, const tl_stmt *phase);

static const tl_stmt *place_phase(placer *p, const tl_stmt *phase)
{
    access_list pending = { 0 };
    return place(p, phase, &pending);
}

static const tl_stmt *check_phase(placer *p, const tl_stmt *stmt)
{
    around before = save(p);
    if (stmt->kind == TL_STMT_BARRIER)
        check_reached(p, "stands");
    else if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            (void)check_phase(p, stmt->u.seq.items[i]);
    else if (stmt->kind == TL_STMT_ALLOC && enter(p, stmt))
        (void)check_phase(p, stmt->u.alloc.body);
    else if (stmt->kind == TL_STMT_LOOP && enter(p, stmt))
        (void)check_phase(p, stmt->u.loop.body);
    restore(p, &before);
    return stmt;
}

/* Who goes through the phases, and says what of it. */
typedef struct {
    tl_arena *arena;
    phase_pass *pass;
    const char *prim;
    tl_diag *diag;
    tl_status status;
} walk;

static const tl_stmt *in_phase(walk *w, const tl_stmt *phase)
{
    static const char *const names[AXES] = { "threadIdx.x", "threadIdx.y", "threadIdx.z" };
    tl_arena *arena = w->arena;
    placer p = { .arena = arena, .prim = w->prim, .diag = w->diag, .all = { .arena = arena } };
    tl_stmt_visit(phase, survey, &p);
    if (p.width[0] <= 1 && p.width[1] <= 1 && p.width[2] <= 1)
        return phase;
    p.all.vars = TL_NEW_ARRAY(arena, const tl_var *, p.all.var_capacity + AXES);
    for (int axis = 0; axis < AXES; axis++) {
        p.thread[axis] = tl_var_make(arena, names[axis], 0, p.width[axis] ? p.width[axis] - 1 : 0);
        p.all.vars[p.all.var_count++] = p.thread[axis];
    }
    tl_stmt_visit(phase, take_var, &p);
    const tl_stmt *done = w->pass(&p, phase);
    w->status = p.status;
    return done;
}

/* What stands at the top, under allocs only, are phases: between two of them everything waits. All that shares a buffer
 * that is not in global memory is one phase. */
static const tl_stmt *in_phases(walk *w, const tl_stmt *stmt)
{
    bool in_block = stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer->scope != TL_SCOPE_GLOBAL;
    if (stmt->kind == TL_STMT_ALLOC && !in_block)
        return tl_stmt_with_body(w->arena, stmt, in_phases(w, stmt->u.alloc.body));
    if (stmt->kind != TL_STMT_SEQ)
        return w->status == TL_OK ? in_phase(w, stmt) : stmt;
    bool changed = false;
    const tl_stmt **items = TL_NEW_ARRAY(w->arena, const tl_stmt *, stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++) {
        items[i] = in_phases(w, stmt->u.seq.items[i]);
        changed |= items[i] != stmt->u.seq.items[i];
    }
    return changed ? tl_stmt_seq(w->arena, items, stmt->u.seq.count) : stmt;
}

tl_status tl_place_barriers(tl_arena *arena, const tl_stmt *body, const tl_stmt **out,
                            tl_diag *diag)
{
    walk w = { arena, place_phase, "place_barriers", diag, TL_OK };
    *out = tl_extend_allocs(arena, in_phases(&w, body));
    return w.status;
}

tl_status tl_check_barriers(tl_arena *arena, const char *prim, const tl_stmt *body, tl_diag *diag)
{
    walk w = { arena, check_phase, prim, diag, TL_OK };
    (void)in_phases(&w, body);
    return w.status;
}
