/* tuner/cost/features_outline.c: reads the body of a program into lists of loops, statements and prefetches. */
#include <assert.h>
#include <math.h>
#include "ir/expr/index.h"
#include "tuner/cost/features_private.h"

/* --- how much there is ---------------------------------------------------------------------------------------------- */

typedef struct {
    int loops, statements, fetches, allocs, phases;
} sizes;

static bool count(const tl_stmt *stmt, void *user)
{
    sizes *n = user;
    n->loops += stmt->kind == TL_STMT_LOOP;
    n->fetches += stmt->kind == TL_STMT_PREFETCH;
    n->allocs += stmt->kind == TL_STMT_ALLOC;
    if (stmt->kind == TL_STMT_BLOCK)
        n->statements += stmt->u.block->store_count > 0 ? stmt->u.block->store_count : 1;
    return true;
}

static int count_phases(const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_ALLOC)
        return count_phases(stmt->u.alloc.body);
    int phases = 0;
    for (int i = 0; stmt->kind == TL_STMT_SEQ && i < stmt->u.seq.count; i++)
        phases += count_phases(stmt->u.seq.items[i]);
    return stmt->kind == TL_STMT_SEQ ? phases : 1;
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    tl_outline *outline;
    int phase;
    int depth;
    int path[TL_OUTLINE_DEPTH];
} reader;

static double runs_of(const reader *r)
{
    if (r->depth == 0)
        return 1;
    const tl_outline_loop *loop = &r->outline->loops[r->path[r->depth - 1]];
    return loop->starts * loop->extent;
}

static int buffer_of(tl_outline *outline, const tl_buffer *buffer)
{
    for (int i = 0; i < outline->buffer_count; i++)
        if (outline->buffers[i].buffer == buffer)
            return i;
    return TL_OUTLINE_NONE;
}

static void add_buffer(tl_outline *outline, const tl_buffer *buffer, double runs, bool is_alloc)
{
    outline->buffers[outline->buffer_count++] = (tl_outline_buffer){ buffer, runs, is_alloc };
}

/* The accesses of a store as they are found; equal ones are one. */
typedef struct {
    tl_outline *outline;
    int count;
    tl_outline_access accesses[TL_OUTLINE_ACCESSES];
    const tl_expr *const *indices[TL_OUTLINE_ACCESSES];
} finder;

static bool same_indices(const tl_buffer *b, const tl_expr *const *x, const tl_expr *const *y)
{
    for (int i = 0; i < b->rank; i++)
        if (!tl_expr_equal(x[i], y[i]))
            return false;
    return true;
}

static void find_access(finder *f, const tl_buffer *buffer, const tl_expr *const *indices,
                        bool is_write)
{
    assert(buffer->rank >= 0);
    int index = buffer_of(f->outline, buffer);
    for (int i = 0; i < f->count; i++)
        if (f->accesses[i].buffer == buffer && same_indices(buffer, f->indices[i], indices)) {
            f->accesses[i].is_read |= !is_write;
            f->accesses[i].is_written |= is_write;
            return;
        }
    if (f->count == TL_OUTLINE_ACCESSES || index == TL_OUTLINE_NONE)
        return;
    f->indices[f->count] = indices;
    f->accesses[f->count++] = (tl_outline_access){ .buffer = buffer,
                                                   .buffer_index = index,
                                                   .is_read = !is_write,
                                                   .is_written = is_write,
                                                   .unit = (double)tl_dtype_size(buffer->dtype) };
}

static bool find_load(const tl_expr *e, void *user)
{
    if (e->kind == TL_EXPR_LOAD)
        find_access(user, e->u.buffer, e->args, false);
    return true;
}

static void find_accesses(finder *f, const tl_block *block, const tl_store *store)
{
    if (store != NULL) {
        find_access(f, store->buffer, store->indices, true);
        if (block->combiner != TL_COMBINER_NONE)
            find_access(f, store->buffer, store->indices, false);
        tl_expr_visit(store->value, find_load, f);
        for (int i = 0; i < store->buffer->rank; i++)
            tl_expr_visit(store->indices[i], find_load, f);
        return;
    }
    const tl_intrinsic_call *call = block->call;
    for (int i = 0; call != NULL && i < call->write_count; i++)
        find_access(f, call->writes[i].buffer, call->writes[i].begin, true);
    for (int i = 0; call != NULL && i < call->read_count; i++)
        find_access(f, call->reads[i].buffer, call->reads[i].begin, false);
}

static bool moves_reduction(const tl_block *block, const tl_var *var)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            tl_expr_uses_var(block->iters[i].binding, var))
            return true;
    return false;
}

/* Raises what each enclosing loop touches in an iteration. */
static void add_bytes(tl_outline *outline, const tl_outline_statement *s, double *phase)
{
    for (int i = 0; i < s->access_count; i++) {
        const tl_outline_access *a = &s->accesses[i];
        if (a->buffer->scope == TL_SCOPE_REGISTER)
            continue;
        for (int d = 0; d < s->depth; d++) {
            double *bytes = &outline->loops[s->loops[d]].bytes[a->buffer_index];
            *bytes = fmax(*bytes, a->lines[d + 1] * TL_LINE_BYTES);
        }
        phase[a->buffer_index] = fmax(phase[a->buffer_index], a->lines[0] * TL_LINE_BYTES);
    }
}

static void read_store(reader *r, const tl_block *block, const tl_store *store)
{
    tl_outline *outline = r->outline;
    tl_outline_statement *s = &outline->statements[outline->statement_count++];
    *s = (tl_outline_statement){
        .block = block, .store = store, .phase = r->phase, .depth = r->depth, .runs = runs_of(r)
    };
    for (int d = 0; d < r->depth; d++) {
        s->loops[d] = r->path[d];
        s->reduces[d] = moves_reduction(block, outline->loops[r->path[d]].var);
    }
    for (s->body = s->depth; s->body > 0; s->body--) {
        tl_loop_kind kind = outline->loops[s->loops[s->body - 1]].kind;
        if (kind != TL_LOOP_UNROLLED && kind != TL_LOOP_VECTORIZED)
            break;
    }
    if (store != NULL)
        tl_outline_count(block, store, &s->ops);
    outline->flops += s->ops.flops * s->runs;
    finder f = { .outline = outline };
    find_accesses(&f, block, store);
    s->access_count = f.count;
    s->accesses = tl_arena_copy(outline->arena, f.accesses, sizeof *f.accesses * (size_t)f.count,
                                _Alignof(tl_outline_access));
    tl_outline_measure(outline, s, f.indices);
    add_bytes(outline, s, &outline->phase_bytes[r->phase * outline->buffer_capacity]);
}

static void read_stmt(reader *r, const tl_stmt *stmt, bool is_phase);

static void read_loop(reader *r, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_LOOP && r->depth <= TL_OUTLINE_DEPTH);
    tl_outline *outline = r->outline;
    bool deep = r->depth == TL_OUTLINE_DEPTH;
    if (!deep) {
        tl_outline_loop *loop = &outline->loops[outline->loop_count];
        *loop =
            (tl_outline_loop){ .var = stmt->u.loop.var,
                               .extent = fmax((double)tl_expr_range(stmt->u.loop.extent).max, 1),
                               .kind = stmt->u.loop.kind,
                               .starts = runs_of(r) };
        loop->bytes = TL_NEW_ARRAY(outline->arena, double, outline->buffer_capacity);
        r->path[r->depth++] = outline->loop_count++;
    }
    read_stmt(r, stmt->u.loop.body, false);
    r->depth -= !deep;
}

static void read_stmt(reader *r, const tl_stmt *stmt, bool is_phase)
{
    tl_outline *outline = r->outline;
    switch (stmt->kind) {
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            read_stmt(r, stmt->u.seq.items[i], is_phase);
        return;
    case TL_STMT_ALLOC:
        add_buffer(outline, stmt->u.alloc.buffer, runs_of(r), true);
        read_stmt(r, stmt->u.alloc.body, is_phase);
        return;
    case TL_STMT_LOOP:
        read_loop(r, stmt);
        break;
    case TL_STMT_BLOCK:
        for (int i = 0; i < stmt->u.block->store_count; i++)
            read_store(r, stmt->u.block, &stmt->u.block->stores[i]);
        if (stmt->u.block->store_count == 0)
            read_store(r, stmt->u.block, NULL);
        break;
    case TL_STMT_PREFETCH:
        outline->fetches[outline->fetch_count++] =
            (tl_outline_fetch){ .buffer = stmt->u.prefetch.buffer,
                                .level = stmt->u.prefetch.level,
                                .depth = r->depth,
                                .runs = runs_of(r),
                                .first = tl_outline_address(stmt->u.prefetch.buffer,
                                                            stmt->u.prefetch.indices) };
        for (int d = 0; d < r->depth; d++)
            outline->fetches[outline->fetch_count - 1].loops[d] = r->path[d];
        break;
    case TL_STMT_BARRIER:
    case TL_STMT_IF: /* these three come with lowering, after scheduling */
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    r->phase += is_phase;
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static void sum_bytes(tl_outline *outline)
{
    for (int l = 0; l < outline->loop_count; l++)
        for (int b = 0; b < outline->buffer_count; b++)
            outline->loops[l].iteration_bytes += outline->loops[l].bytes[b];
    for (int b = 0; b < outline->buffer_count; b++) {
        double most = 0;
        for (int p = 0; p < outline->phase_count; p++)
            most = fmax(most, outline->phase_bytes[p * outline->buffer_capacity + b]);
        outline->total_bytes += most;
    }
}

tl_outline *tl_outline_of(tl_arena *arena, const tl_program *program, const tl_target *target)
{
    sizes n = { .phases = count_phases(program->body) };
    tl_stmt_visit(program->body, count, &n);
    tl_outline *outline = TL_NEW(arena, tl_outline);
    outline->arena = arena;
    outline->target = target;
    outline->phase_count = n.phases;
    outline->loops = TL_NEW_ARRAY(arena, tl_outline_loop, n.loops);
    outline->statements = TL_NEW_ARRAY(arena, tl_outline_statement, n.statements);
    outline->fetches = TL_NEW_ARRAY(arena, tl_outline_fetch, n.fetches);
    outline->buffer_capacity = program->param_count + program->prepared_count + n.allocs;
    outline->buffers = TL_NEW_ARRAY(arena, tl_outline_buffer, outline->buffer_capacity);
    outline->phase_bytes = TL_NEW_ARRAY(arena, double, outline->buffer_capacity *n.phases);
    for (int i = 0; i < program->param_count; i++)
        add_buffer(outline, program->params[i], 1, false);
    for (int i = 0; i < program->prepared_count; i++)
        add_buffer(outline, program->prepared[i], 1, false);
    reader r = { .outline = outline };
    read_stmt(&r, program->body, true);
    sum_bytes(outline);
    return outline;
}
