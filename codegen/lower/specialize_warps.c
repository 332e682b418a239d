/* codegen/lower/specialize_warps.c: of a pipeline that specialize has marked, one row of threads makes the copies and the others
 * compute.
 *
 *     for y in 0..2 threadIdx.y                      call mbarrier_make(0, 4, 1)      full: one for each of 4 versions
 *       zero(y)                                      call mbarrier_make(4, 4, 2)      empty: each row that computes arrives
 *       for p in 0..3 {pipeline_prologue = 4}        barrier
 *         copy(p, y)                                 for y in 0..3 threadIdx.y
 *       for k in 0..13 {pipeline = 4}                  if y < 2
 *         copy(k + 3, y)                                 call set_registers(232, 1)
 *         compute(k, y)                    ->            zero(y)
 *       for e in 0..3 {pipeline_epilogue = 4}            for k in 0..13
 *         compute(13 + e, y)                               call mbarrier_wait(k % 4, k//4 % 2)
 *       store(y)                                           compute(k, y)       of products the latest group may be under way
 *                                                          call mbarrier_arrive(4 + (k - 1) % 4, 0)   where k >= 1
 *                                                        for e in 0..3: wait, compute(13 + e, y)
 *                                                        store(y)
 *                                                      else
 *                                                        call set_registers(40, 0)
 *                                                        for p in 0..3: expect, copy(p, 0), copy(p, 1)
 *                                                        for k in 0..13
 *                                                          call mbarrier_wait(4 + (k + 3) % 4, ((k + 3)//4 + 1) % 2)
 *                                                          call mbarrier_expect((k + 3) % 4, bytes)
 *                                                          copy(k + 3, 0), copy(k + 3, 1)
 *
 * Blocks of a cluster, which is what a loop over blocks that is annotated `cluster` has as many neighbours of, share what does
 * not depend on that loop: each asks for a part of the box, for all of them. A row that computes then tells all of them that it
 * has read a version, and they meet before the first copy and after the last.
 *
 * Two rows of a pipeline that is annotated `turns`, each of which has products, something that it computes of them, and products
 * of that again, have the tensor cores in turn, while the other computes: by barriers that one waits for and the other does not.
 *
 * Requires  what software_pipeline leaves true, and copies by bulk_copy alone; the pipeline directly in the loop over y, or in
 *           none; no loop over z. Barriers of the rows that compute are among them.
 * Keeps     what is computed. */
#include <assert.h>
#include <string.h>
#include "codegen/lower/kernel_plan.h"
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"
#include "ir/program/intrinsics.h"

enum { SWIZZLE_PERIOD = 1024, MOST_SHARED = 16 };

typedef struct {
    tl_lowered_kernel *kernel;
    tl_arena *arena;
    tl_diag *diag;
    tl_status status;
    /* of the loop over blocks that is a cluster's; NULL: there is none */
    const tl_var *cluster_var;
    int64_t cluster;
    int64_t width; /* threads along x */
} specializing;

/* The pipeline and what becomes of it. */
typedef struct {
    const tl_stmt *before, *steady, *after; /* its three loops */
    const tl_stmt *copies, *compute;        /* of the steady one's body */
    const tl_stmt *ends;                    /* the last one's */
    int64_t stages, rows;
    int full, empty; /* first mbarriers */
    int shared_count;
    const tl_buffer *shared[MOST_SHARED]; /* allocated around it: both kinds of rows use them */
    const tl_var *row_var;                /* NULL: there is no loop over y */
} pipeline;

static void fail(specializing *s, const char *why)
{
    if (s->status == TL_OK)
        s->status =
            tl_fail(s->diag, TL_UNSUPPORTED, "kernel %s: specialize: %s", s->kernel->name, why);
}

static int64_t mark_of(const tl_stmt *stmt, const char *key)
{
    for (int i = 0; stmt->kind == TL_STMT_LOOP && i < stmt->u.loop.annotation_count; i++)
        if (strcmp(stmt->u.loop.annotations[i].key, key) == 0)
            return stmt->u.loop.annotations[i].value;
    return 0;
}

static bool is_special(const tl_stmt *stmt)
{
    return mark_of(stmt, "pipeline") != 0 && mark_of(stmt, "copy_registers") != 0;
}

static bool see_special(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found = *found || is_special(stmt);
    return !*found;
}

static bool has_special(const tl_stmt *stmt)
{
    bool found = false;
    tl_stmt_visit(stmt, see_special, &found);
    return found;
}

/* ---- the rows that compute ---- */

static const tl_stmt *meet_row(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const int64_t *threads = context;
    enum { NUMBER = 1 }; /* 0 is the block's */
    return stmt->kind == TL_STMT_BARRIER
               ? tl_sync_call(arena, "threads_meet", (const int64_t[]){ NUMBER, *threads }, 2)
               : stmt;
}

static const tl_stmt *arrive(const specializing *s, const pipeline *p, const tl_expr *turn)
{
    return tl_sync_call2(s->arena, "mbarrier_arrive",
                         tl_mbarrier_of(s->arena, p->empty, p->stages, turn),
                         tl_int(s->arena, s->cluster > 1 ? s->cluster : 0));
}

/* The threads of a row alone: the others go on. */
static const tl_stmt *meet_in_row(const specializing *s, const pipeline *p)
{
    enum { FIRST = 2 }; /* of one row; 1 is for all that compute */
    tl_arena *arena = s->arena;
    const tl_expr *row = p->row_var != NULL ? tl_ref(arena, p->row_var) : tl_int(arena, 0);
    return tl_sync_call2(arena, "threads_meet", tl_addi(arena, row, FIRST),
                         tl_int(arena, s->width));
}

/* One iteration. Versions are given back until the last iterations, whose copies have been asked for. */
static const tl_stmt *compute_turn(const specializing *s, const pipeline *p, const tl_stmt *compute,
                                   const tl_expr *turn, bool gives_back)
{
    tl_arena *arena = s->arena;
    const tl_stmt *wait = tl_mbarrier_wait(arena, p->full, p->stages, turn);
    if (!tl_has_products_only(compute)) {
        const tl_stmt *parts[] = { wait, compute, gives_back ? meet_in_row(s, p) : NULL,
                                   gives_back ? arrive(s, p, turn) : NULL };
        return tl_stmt_seq(arena, parts, 4);
    }
    const tl_expr *follows = tl_le(arena, tl_int(arena, 1), turn);
    const tl_stmt *parts[] = {
        wait,
        tl_products_group(arena, compute),
        tl_sync_call(arena, "products_wait", (const int64_t[]){ 1 }, 1),
        gives_back ? tl_stmt_if(arena, follows, arrive(s, p, tl_addi(arena, turn, -1)), NULL)
                   : NULL,
    };
    return tl_stmt_seq(arena, parts, 4);
}

/* ---- turns of two rows ---- */

/* What row r waits for, where it takes turns: the number of its barrier. */
static const tl_expr *turn_of(const specializing *s, const tl_expr *row)
{
    enum { FIRST = 4 };
    return tl_addi(s->arena, row, FIRST);
}

static const tl_stmt *wait_turn(const specializing *s, const pipeline *p)
{
    return tl_sync_call2(s->arena, "threads_meet", turn_of(s, tl_ref(s->arena, p->row_var)),
                         tl_int(s->arena, 2 * s->width));
}

static const tl_stmt *give_turn(const specializing *s, const pipeline *p)
{
    tl_arena *arena = s->arena;
    const tl_expr *other = tl_sub(arena, tl_int(arena, 1), tl_ref(arena, p->row_var));
    return tl_sync_call2(arena, "threads_arrive", turn_of(s, other), tl_int(arena, 2 * s->width));
}

static bool see_product(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found = *found || (stmt->kind == TL_STMT_CALL && tl_intrinsic_of_group(stmt->u.call->name));
    return !*found;
}

/* From the second products of an iteration to the first of the next one a row has the tensor cores for itself; in between it
 * computes what the second ones read. *count: of products so far. */
static const tl_stmt *take_turns(const specializing *s, const pipeline *p, const tl_stmt *stmt,
                                 int *count)
{
    tl_arena *arena = s->arena;
    bool has_products = false;
    tl_stmt_visit(stmt, see_product, &has_products);
    if (!has_products)
        return stmt;
    if (tl_has_products_only(stmt))
        return ++*count == 1 ? tl_stmt_seq2(arena, stmt, give_turn(s, p))
                             : tl_stmt_seq2(arena, wait_turn(s, p), stmt);
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_stmt_with_body(arena, stmt, take_turns(s, p, stmt->u.alloc.body, count));
    if (stmt->kind != TL_STMT_SEQ)
        return stmt;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++)
        items[i] = take_turns(s, p, stmt->u.seq.items[i], count);
    return tl_stmt_seq(arena, items, stmt->u.seq.count);
}

/* Row 0 begins, and gives the last turn. */
static const tl_stmt *in_turns(specializing *s, pipeline *p, bool begins)
{
    tl_arena *arena = s->arena;
    const tl_expr *row = tl_ref(arena, p->row_var);
    if (begins) {
        int counts[2] = { 0, 0 };
        p->compute = take_turns(s, p, p->compute, &counts[0]);
        p->ends = take_turns(s, p, p->ends, &counts[1]);
        if (counts[0] != 2 || counts[1] != 2)
            fail(s, "rows take turns between two products, and there are not two");
    }
    const tl_expr *is = tl_eq(arena, row, tl_int(arena, begins ? 1 : 0));
    return tl_stmt_if(arena, is, begins ? wait_turn(s, p) : give_turn(s, p), NULL);
}

static const tl_stmt *computing(specializing *s, pipeline *p)
{
    tl_arena *arena = s->arena;
    bool turns = mark_of(p->steady, "turns") != 0;
    if (turns && (p->rows != 2 || tl_has_products_only(p->compute))) {
        fail(s, "two rows of threads take turns, and what they compute between two products");
        return NULL;
    }
    const tl_stmt *first = turns ? in_turns(s, p, true) : NULL;
    const tl_expr *now = tl_ref(arena, p->steady->u.loop.var);
    const tl_expr *end =
        tl_add(arena, p->steady->u.loop.extent, tl_ref(arena, p->after->u.loop.var));
    const tl_stmt *parts[] = {
        first,
        tl_stmt_loop(arena, p->steady->u.loop.var, p->steady->u.loop.extent, TL_LOOP_SERIAL,
                     compute_turn(s, p, p->compute, now, true)),
        tl_stmt_loop(arena, p->after->u.loop.var, p->after->u.loop.extent, TL_LOOP_SERIAL,
                     compute_turn(s, p, p->ends, end, false)),
        turns ? in_turns(s, p, false) : NULL,
        NULL,
    };
    if (tl_has_products_only(p->compute)) {
        parts[3] = tl_sync_call(arena, "products_wait", (const int64_t[]){ 0 }, 1);
        parts[4] = tl_products_done(arena, p->compute);
    }
    return tl_stmt_seq(arena, parts, 5);
}

/* The first of the pipeline's three parts, and the others behind it; false: these are not there. */
static bool find_parts(const tl_stmt *seq, int *first, int *steady, int *last)
{
    int count = seq->u.seq.count;
    for (int i = 0; i < count; i++) {
        int at[3] = { i, 0, 0 };
        static const char *const marks[] = { "pipeline_prologue", "pipeline", "pipeline_epilogue" };
        bool fits = mark_of(seq->u.seq.items[i], marks[0]) != 0;
        for (int k = 1; k < 3 && fits; k++) {
            at[k] = at[k - 1] + 1;
            while (at[k] < count && seq->u.seq.items[at[k]]->kind == TL_STMT_BARRIER)
                at[k]++;
            fits = at[k] < count && mark_of(seq->u.seq.items[at[k]], marks[k]) != 0;
        }
        if (fits && is_special(seq->u.seq.items[at[1]])) {
            *first = at[0];
            *steady = at[1];
            *last = at[2];
            return true;
        }
    }
    return false;
}

static bool see_shared_store(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    const tl_buffer *to = stmt->kind == TL_STMT_STORE ? stmt->u.store.buffer
                          : stmt->kind == TL_STMT_CALL && stmt->u.call->write_count > 0
                              ? stmt->u.call->writes[0].buffer
                              : NULL;
    *found =
        *found || (to != NULL && (to->scope == TL_SCOPE_SHARED || to->scope == TL_SCOPE_GLOBAL));
    return !*found;
}

/* Whether the rows that compute may hand something to each other; else barriers among them are for the copies, which mbarriers
 * tell of now. */
static bool stores_what_rows_share(const tl_stmt *compute)
{
    bool found = false;
    tl_stmt_visit(compute, see_shared_store, &found);
    return found;
}

static const tl_stmt *without_barrier(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    return stmt->kind == TL_STMT_BARRIER ? tl_stmt_seq(arena, NULL, 0) : stmt;
}

static bool take_pipeline(specializing *s, const tl_stmt *const loops[3], pipeline *p)
{
    const tl_stmt *body = loops[1]->u.loop.body;
    if (body->kind != TL_STMT_SEQ)
        return false;
    int count = body->u.seq.count, copies = 0, rest, end = count;
    const tl_stmt *const *items = body->u.seq.items;
    while (copies < count && tl_has_bulk_loads(items[copies]))
        copies++;
    rest = copies;
    while (rest < count && items[rest]->kind == TL_STMT_BARRIER)
        rest++;
    while (end > rest && items[end - 1]->kind == TL_STMT_BARRIER)
        end--;
    p->before = loops[0];
    p->steady = loops[1];
    p->after = loops[2];
    p->stages = mark_of(p->steady, "pipeline");
    p->copies = tl_stmt_seq(s->arena, items, copies);
    p->compute = tl_stmt_seq(s->arena, items + rest, end - rest);
    p->ends = p->after->u.loop.body;
    if (!stores_what_rows_share(p->compute)) {
        p->compute = tl_stmt_rewrite(s->arena, p->compute, without_barrier, NULL);
        p->ends = tl_stmt_rewrite(s->arena, p->ends, without_barrier, NULL);
    }
    return copies > 0 && end > rest;
}

/* The statement with the pipeline in it replaced; what it was is in *p. */
static const tl_stmt *take_out(specializing *s, const tl_stmt *stmt, pipeline *p)
{
    tl_arena *arena = s->arena;
    if (stmt->kind == TL_STMT_ALLOC) {
        const tl_stmt *body = take_out(s, stmt->u.alloc.body, p);
        if (stmt->u.alloc.buffer->scope != TL_SCOPE_SHARED || p->shared_count == MOST_SHARED)
            return tl_stmt_with_body(arena, stmt, body);
        p->shared[p->shared_count++] = stmt->u.alloc.buffer;
        return body;
    }
    int first = 0, steady = 0, last = 0;
    if (stmt->kind != TL_STMT_SEQ)
        return stmt;
    bool here = find_parts(stmt, &first, &steady, &last);
    int count = 0;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++) {
        const tl_stmt *item = stmt->u.seq.items[i];
        if (here && i == first) {
            const tl_stmt *const loops[] = { item, stmt->u.seq.items[steady],
                                             stmt->u.seq.items[last] };
            if (!take_pipeline(s, loops, p))
                p->steady = NULL;
            items[count++] = p->steady != NULL ? computing(s, p) : item;
            i = last;
        } else {
            items[count++] = here ? item : take_out(s, item, p);
        }
    }
    return tl_stmt_seq(arena, items, count);
}

/* ---- the row that copies ---- */

typedef struct {
    int64_t row;
} in_row;

/* For one row: loops over y are its number, and other loops have variables of their own. */
static const tl_stmt *of_row(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const in_row *r = context;
    if (stmt->kind != TL_STMT_LOOP)
        return stmt;
    if (tl_gpu_thread_axis(stmt->u.loop.kind) == 1) {
        const tl_binding is = { stmt->u.loop.var, tl_int(arena, r->row) };
        return tl_stmt_substitute(arena, stmt->u.loop.body, &is, 1);
    }
    const tl_var *old = stmt->u.loop.var, *var = tl_var_make(arena, old->name, old->min, old->max);
    const tl_binding renamed = { stmt->u.loop.var, tl_ref(arena, var) };
    tl_stmt *copy = tl_stmt_copy(arena, stmt);
    copy->u.loop.var = var;
    copy->u.loop.body = tl_stmt_substitute(arena, stmt->u.loop.body, &renamed, 1);
    return copy;
}

typedef struct {
    const tl_var *var;
    bool found;
} row_search;

static bool see_row(const tl_stmt *stmt, void *context)
{
    row_search *s = context;
    if (stmt->kind == TL_STMT_LOOP && tl_gpu_thread_axis(stmt->u.loop.kind) == 1)
        s->found = true;
    const tl_intrinsic_call *call = stmt->kind == TL_STMT_CALL ? stmt->u.call : NULL;
    for (int i = 0; call != NULL && s->var != NULL && i < call->read_count + call->write_count;
         i++) {
        const tl_region *r =
            i < call->read_count ? &call->reads[i] : &call->writes[i - call->read_count];
        for (int a = 0; a < r->buffer->rank; a++)
            s->found = s->found || tl_expr_uses_var(r->begin[a], s->var);
    }
    return !s->found;
}

/* Whether rows copy different things; else each of them would copy the same. */
static bool differs_by_row(const tl_stmt *stmt, const tl_var *var)
{
    row_search s = { var, false };
    tl_stmt_visit(stmt, see_row, &s);
    return s.found;
}

/* A part of a box, one a block of the cluster, that all of them get; NULL: they do not share it. */
static const tl_stmt *share(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const specializing *s = context;
    if (!tl_is_call(stmt, "bulk_load"))
        return stmt;
    const tl_intrinsic_call *call = stmt->u.call;
    const tl_region *from = &call->reads[0], *to = &call->writes[0];
    for (int a = 0; a < from->buffer->rank; a++)
        if (tl_expr_uses_var(from->begin[a], s->cluster_var))
            return stmt;
    int axis = 0, to_axis = 0;
    while (axis < from->buffer->rank && tl_is_int(from->extent[axis], 1))
        axis++;
    while (to_axis < to->buffer->rank && tl_is_int(to->extent[to_axis], 1))
        to_axis++;
    int64_t extent = 0, bytes = (int64_t)tl_dtype_size(to->buffer->dtype), inner = 0;
    if (axis == from->buffer->rank || to_axis == to->buffer->rank ||
        !tl_const_int(from->extent[axis], &extent) || extent % s->cluster != 0)
        return stmt;
    int64_t part = extent / s->cluster;
    for (int a = to_axis + 1; a < to->buffer->rank && tl_const_int(to->extent[a], &inner); a++)
        bytes *= inner;
    if (bytes * part % SWIZZLE_PERIOD != 0)
        return stmt;
    const tl_expr *rank =
        tl_floormod_expr(arena, tl_ref(arena, s->cluster_var), tl_int(arena, s->cluster));
    const tl_expr *first = tl_muli(arena, rank, part);
    tl_region *regions = TL_NEW_ARRAY(arena, tl_region, 2);
    const tl_region *whole[2] = { from, to };
    int axes[2] = { axis, to_axis };
    for (int i = 0; i < 2; i++) {
        int n = whole[i]->buffer->rank;
        const tl_expr **begin = TL_NEW_ARRAY(arena, const tl_expr *, n);
        const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, n);
        memcpy(begin, whole[i]->begin, sizeof *begin * (size_t)n);
        memcpy(extents, whole[i]->extent, sizeof *extents * (size_t)n);
        begin[axes[i]] = tl_add(arena, begin[axes[i]], first);
        extents[axes[i]] = tl_int(arena, part);
        regions[i] = (tl_region){ whole[i]->buffer, begin, extents };
    }
    const tl_expr **scalars = TL_NEW_ARRAY(arena, const tl_expr *, 2);
    scalars[0] = call->scalars[0];
    scalars[1] = tl_int(arena, ((int64_t)1 << s->cluster) - 1);
    tl_intrinsic_call *shared = TL_NEW(arena, tl_intrinsic_call);
    *shared = *call;
    shared->reads = &regions[0];
    shared->writes = &regions[1];
    shared->scalars = scalars;
    return tl_stmt_call(arena, shared);
}

/* What all rows copy in an iteration of that loop. */
static const tl_stmt *of_all_rows(specializing *s, const pipeline *p, const tl_stmt *copies)
{
    tl_arena *arena = s->arena;
    const tl_stmt *all = NULL;
    int count = copies->kind == TL_STMT_SEQ ? copies->u.seq.count : 1;
    for (int64_t row = 0; row < p->rows; row++) {
        in_row r = { row };
        const tl_binding is = { p->row_var, tl_int(arena, row) };
        for (int i = 0; i < count; i++) {
            const tl_stmt *one = copies->kind == TL_STMT_SEQ ? copies->u.seq.items[i] : copies;
            if (row > 0 && !differs_by_row(one, p->row_var))
                continue;
            one = tl_stmt_rewrite(arena, one, of_row, &r);
            if (p->row_var != NULL)
                one = tl_stmt_substitute(arena, one, &is, 1);
            all = tl_stmt_seq2(arena, all, one);
        }
    }
    return all;
}

/* The copies for iteration `turn`, `ahead` of the loop's. */
static const tl_stmt *copy_loop(specializing *s, const pipeline *p, const tl_stmt *loop,
                                const tl_stmt *copies, int64_t ahead)
{
    tl_arena *arena = s->arena;
    const tl_var *old = loop->u.loop.var, *var = tl_var_make(arena, old->name, old->min, old->max);
    const tl_binding is = { old, tl_ref(arena, var) };
    const tl_expr *turn = tl_addi(arena, tl_ref(arena, var), ahead);
    const tl_stmt *all = of_all_rows(s, p, tl_stmt_substitute(arena, copies, &is, 1));
    int64_t bytes = 0;
    tl_status status =
        tl_bulk_bytes(s->kernel, all, (tl_thread_place){ 1, 0, true }, &bytes, s->diag);
    s->status = s->status == TL_OK ? status : s->status;
    all = tl_bulk_begin(arena, all, tl_mbarrier_of(arena, p->full, p->stages, turn));
    if (s->cluster > 1)
        all = tl_stmt_rewrite(arena, all, share, s);
    const tl_expr *round = tl_floordiv_expr(arena, turn, tl_int(arena, p->stages));
    const tl_expr *parity = tl_floormod_expr(arena, tl_addi(arena, round, 1), tl_int(arena, 2));
    const tl_stmt *parts[] = {
        ahead == 0 ? NULL
                   : tl_sync_call2(arena, "mbarrier_wait",
                                   tl_mbarrier_of(arena, p->empty, p->stages, turn), parity),
        tl_sync_call2(arena, "mbarrier_expect", tl_mbarrier_of(arena, p->full, p->stages, turn),
                      tl_int(arena, bytes)),
        all,
    };
    return tl_stmt_loop(arena, var, loop->u.loop.extent, TL_LOOP_SERIAL,
                        tl_stmt_seq(arena, parts, 3));
}

static const tl_stmt *copying(specializing *s, const pipeline *p)
{
    return tl_stmt_seq2(s->arena, copy_loop(s, p, p->before, p->before->u.loop.body, 0),
                        copy_loop(s, p, p->steady, p->copies, p->stages - 1));
}

/* ---- both ---- */

static const tl_stmt *registers(tl_arena *arena, int64_t count, bool more)
{
    return count == 0 ? NULL
                      : tl_sync_call(arena, "set_registers", (const int64_t[]){ count, more }, 2);
}

static const tl_stmt *meet(const specializing *s)
{
    return s->cluster > 1 ? tl_sync_call(s->arena, "cluster_meet", NULL, 0)
                          : tl_stmt_barrier(s->arena);
}

static const tl_stmt *specialize(specializing *s, const tl_stmt *stmt)
{
    tl_arena *arena = s->arena;
    bool has_rows = stmt->kind == TL_STMT_LOOP && tl_gpu_thread_axis(stmt->u.loop.kind) == 1;
    pipeline p = { .rows = 1, .full = s->kernel->mbarrier_count };
    const tl_stmt *body = has_rows ? stmt->u.loop.body : stmt;
    if (has_rows && !tl_const_int(stmt->u.loop.extent, &p.rows))
        return stmt;
    p.row_var = has_rows ? stmt->u.loop.var : NULL;
    int64_t stages = 0;
    p.empty = p.full; /* until the stages are known */
    pipeline probe = p;
    (void)take_out(s, body, &probe);
    if (probe.steady == NULL) {
        fail(s, "the pipeline does not stand directly in the loop over threadIdx.y, or is not one "
                "part that copies by bulk_copy and one that computes");
        return stmt;
    }
    stages = probe.stages;
    p.empty = p.full + (int)stages;
    s->kernel->mbarrier_count += 2 * (int)stages;
    const tl_stmt *compute = take_out(s, body, &p);
    int64_t threads = p.rows * s->width;
    const tl_thread_place place = { p.rows, has_rows ? 1u << 1 : 0, false };
    compute = tl_await_copies(s->kernel, compute, place, &s->status, s->diag);
    compute = tl_stmt_rewrite(arena, compute, meet_row, &threads);
    const tl_var *row = tl_var_make(arena, has_rows ? p.row_var->name : "row", 0, p.rows);
    const tl_binding is = { p.row_var, tl_ref(arena, row) };
    if (has_rows)
        compute = tl_stmt_substitute(arena, compute, &is, 1);
    const tl_stmt *branches =
        tl_stmt_if(arena, tl_lt(arena, tl_ref(arena, row), tl_int(arena, p.rows)),
                   tl_stmt_seq2(arena,
                                registers(arena, mark_of(p.steady, "compute_registers"), true),
                                compute),
                   tl_stmt_seq2(arena, registers(arena, mark_of(p.steady, "copy_registers"), false),
                                copying(s, &p)));
    const int64_t full[] = { p.full, stages, 1 };
    const int64_t empty[] = { p.empty, stages, p.rows * s->cluster };
    const tl_stmt *parts[] = {
        tl_sync_call(arena, "mbarrier_make", full, 3),
        tl_sync_call(arena, "mbarrier_make", empty, 3),
        meet(s),
        tl_stmt_loop(arena, row, tl_int(arena, p.rows + 1), TL_LOOP_THREAD_Y, branches),
        s->cluster > 1 ? meet(s) : NULL,
    };
    const tl_stmt *both = tl_stmt_seq(arena, parts, 5);
    for (int i = 0; i < p.shared_count; i++)
        both = tl_stmt_alloc(arena, p.shared[i], both);
    return both;
}

typedef struct {
    int64_t width;
    bool has_z;
} thread_survey;

static bool see_threads(const tl_stmt *stmt, void *context)
{
    thread_survey *t = context;
    int64_t extent = 0;
    int axis = stmt->kind == TL_STMT_LOOP ? tl_gpu_thread_axis(stmt->u.loop.kind) : -1;
    if (axis >= 0 && tl_const_int(stmt->u.loop.extent, &extent)) {
        t->width = axis == 0 && extent > t->width ? extent : t->width;
        t->has_z = t->has_z || (axis == 2 && extent > 1);
    }
    return true;
}

/* Down to what a block does: its shared buffers and the loops over blocks are left around it. */
static const tl_stmt *walk(specializing *s, const tl_stmt *stmt)
{
    int first, steady, last;
    if (!has_special(stmt))
        return stmt;
    if (stmt->kind == TL_STMT_SEQ && !find_parts(stmt, &first, &steady, &last)) {
        const tl_stmt **items = TL_NEW_ARRAY(s->arena, const tl_stmt *, stmt->u.seq.count);
        for (int i = 0; i < stmt->u.seq.count; i++)
            items[i] = walk(s, stmt->u.seq.items[i]);
        return tl_stmt_seq(s->arena, items, stmt->u.seq.count);
    }
    bool is_alloc =
        stmt->kind == TL_STMT_ALLOC && tl_scope_threads[stmt->u.alloc.buffer->scope] == 0;
    if (is_alloc)
        return tl_stmt_with_body(s->arena, stmt, walk(s, stmt->u.alloc.body));
    if (stmt->kind == TL_STMT_LOOP &&
        (tl_gpu_block_axis(stmt->u.loop.kind) >= 0 || tl_is_int(stmt->u.loop.extent, 1))) {
        int64_t cluster = mark_of(stmt, "cluster");
        if (cluster > 1) {
            s->cluster_var = stmt->u.loop.var;
            s->cluster = cluster;
        }
        return tl_stmt_with_body(s->arena, stmt, walk(s, stmt->u.loop.body));
    }
    thread_survey t = { 1, false };
    tl_stmt_visit(stmt, see_threads, &t);
    s->width = t.width;
    if (t.has_z)
        fail(s, "there are threads along z, and rows are told by y alone");
    return specialize(s, stmt);
}

tl_status tl_specialize_warps(tl_lowered_kernel *kernel, tl_diag *diag)
{
    specializing s = {
        .kernel = kernel, .arena = kernel->arena, .diag = diag, .cluster = 1, .width = 1
    };
    kernel->body = walk(&s, kernel->body);
    return s.status;
}
