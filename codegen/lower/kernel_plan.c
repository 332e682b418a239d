/* codegen/lower/kernel_plan.c: the phases of a lowered kernel, and where its local buffers live.
 *
 * Every top-level parallel loop is a phase, and so are the statements between two of them; a top-level
 * alloc only names a buffer that its phases share. Two buffers in scratch whose lifetimes do not meet may
 * have the same bytes: a shared one lives from the first to the last phase that touches it, one of a thread
 * from the first to the last statement beside its alloc that does. Buffers whose size depends on dims come
 * behind the others, each with bytes of its own. */
#include <assert.h>
#include "codegen/lower/passes.h"
#include "codegen/lower/plan_private.h"
#include "ir/expr/index.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

#define ALIGN TL_SCRATCH_ALIGN

const tl_expr *const *tl_buffer_strides(tl_arena *arena, const tl_buffer *buffer)
{
    const tl_expr **strides = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank + 1);
    const tl_expr *stride = tl_int(arena, 1);
    for (int a = buffer->rank - 1; a >= 0; a--) {
        strides[a] = buffer->strides != NULL ? tl_int(arena, buffer->strides[a]) : stride;
        stride = tl_mul(arena, stride, buffer->shape[a]);
    }
    return strides;
}

/* The row of a register buffer is padded so that a chunk of lanes never runs into the next row. */
static int64_t padded_row(int64_t extent, int64_t lanes)
{
    int64_t power = 1;
    while (power < extent)
        power *= 2;
    return power <= lanes ? power : tl_ceildiv(extent, lanes) * lanes;
}

/* The row is the last axis that has more than one element: those after it leave its stride 1. A chunk that begins
 * inside the last row ends in the vector behind it. */
const tl_expr *const *tl_register_strides(tl_arena *arena, const tl_buffer *buffer,
                                          const tl_target *target, int64_t *elements)
{
    const tl_expr **strides = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank + 1);
    int64_t bits = tl_isa_infos[target->isa].vector_bits;
    int64_t lanes = tl_max64(bits / tl_dtype_infos[buffer->dtype].bits, bits / 32);
    int64_t stride = 1;
    for (int a = buffer->rank - 1; a >= 0; a--) {
        int64_t extent = 1;
        tl_const_int(buffer->shape[a], &extent);
        strides[a] = tl_int(arena, stride);
        if (tl_mul_overflows(stride, stride == 1 && extent > 1 ? padded_row(extent, lanes) : extent,
                             &stride))
            stride = INT64_MAX / 64;
    }
    *elements = stride + lanes;
    return strides;
}

const tl_expr *tl_buffer_bytes(tl_arena *arena, const tl_buffer *buffer)
{
    assert(buffer->rank >= 0);
    const tl_expr *elements = tl_int(arena, 1);
    if (buffer->strides == NULL) {
        for (int a = 0; a < buffer->rank; a++)
            elements = tl_mul(arena, elements, buffer->shape[a]);
    } else {
        for (int a = 0; a < buffer->rank; a++)
            elements =
                tl_add(arena, elements,
                       tl_muli(arena, tl_addi(arena, buffer->shape[a], -1), buffer->strides[a]));
    }
    int bits = tl_dtype_infos[buffer->dtype].bits;
    return tl_floordiv_expr(arena, tl_addi(arena, tl_muli(arena, elements, bits), 7),
                            tl_int(arena, 8));
}

static tl_status check_scope(const tl_planner *p, const tl_buffer *buffer)
{
    int64_t extent;
    if (buffer->scope == TL_SCOPE_SHARED || tl_scope_threads[buffer->scope] > 0)
        return tl_fail(p->diag, TL_UNSUPPORTED, "buffer %s has scope %s, which a CPU has not",
                       buffer->name, tl_scope_texts[buffer->scope]);
    for (int a = 0; a < buffer->rank && buffer->scope == TL_SCOPE_REGISTER; a++)
        if (!tl_const_int(buffer->shape[a], &extent))
            return tl_fail(p->diag, TL_UNSUPPORTED,
                           "register buffer %s: extent of axis %d is not a constant", buffer->name,
                           a);
    if (tl_buffer_max_elements(buffer) < 0)
        return tl_fail(p->diag, TL_UNSUPPORTED, "buffer %s has more elements than can be addressed",
                       buffer->name);
    return TL_OK;
}

/* Adds a local; `shared` when threads or phases see it together. */
static tl_status add_local(tl_planner *p, const tl_buffer *buffer, tl_alloc_place outside,
                           int first, int last)
{
    assert(first <= last);
    TL_TRY(check_scope(p, buffer));
    for (int i = 0; i < p->local_count; i++)
        if (p->locals[i].placement.buffer == buffer)
            return tl_fail(p->diag, TL_BAD_IR, "buffer %s is allocated twice", buffer->name);
    TL_ROOM(p->arena, p->locals, p->local_count, p->local_capacity);
    tl_plan_local *l = &p->locals[p->local_count++];
    *l = (tl_plan_local){ .placement = { .buffer = buffer, .place = outside },
                          .size = -1,
                          .first = first,
                          .last = last };
    if (buffer->scope == TL_SCOPE_REGISTER && outside == TL_PLACE_THREAD) {
        l->placement.place = TL_PLACE_REGISTER;
        l->placement.strides = tl_register_strides(p->arena, buffer, p->kernel->target, &l->size);
        l->size = tl_storage_bytes(buffer->dtype, l->size);
        if (l->size > TL_STACK_LIMIT)
            return tl_fail(p->diag, TL_UNSUPPORTED,
                           "register buffer %s takes %lld bytes; the most is %d", buffer->name,
                           (long long)l->size, TL_STACK_LIMIT);
        l->placement.bytes = tl_int(p->arena, l->size);
        return TL_OK;
    }
    l->placement.strides = tl_buffer_strides(p->arena, buffer);
    l->placement.bytes = tl_buffer_bytes(p->arena, buffer);
    if (!tl_const_int(l->placement.bytes, &l->size))
        l->size = -1;
    if (buffer->scope == TL_SCOPE_STACK && outside == TL_PLACE_THREAD && l->size >= 0 &&
        p->stack_bytes + l->size <= TL_STACK_LIMIT) {
        p->stack_bytes += l->size;
        l->placement.place = TL_PLACE_STACK;
    }
    return TL_OK;
}

/* Lifetimes of a thread's buffers: the statements beside the alloc, numbered in order of text. */
static bool count_one(const tl_stmt *stmt, void *context)
{
    (void)stmt;
    ++*(int *)context;
    return true;
}

static int size_of(const tl_stmt *stmt)
{
    int count = 0;
    tl_stmt_visit(stmt, count_one, &count);
    return count;
}

static void lifetime(const tl_stmt *stmt, const tl_buffer *buffer, int *number, int *first,
                     int *last)
{
    if (stmt->kind == TL_STMT_SEQ) {
        ++*number;
        for (int i = 0; i < stmt->u.seq.count; i++)
            lifetime(stmt->u.seq.items[i], buffer, number, first, last);
        return;
    }
    if (stmt->kind == TL_STMT_ALLOC) {
        ++*number;
        lifetime(stmt->u.alloc.body, buffer, number, first, last);
        return;
    }
    int size = size_of(stmt);
    if (tl_stmt_touches(stmt, buffer)) {
        if (*first < 0)
            *first = *number;
        *last = *number + size - 1;
    }
    *number += size;
}

static tl_status add_inner(tl_planner *p, const tl_stmt *stmt, tl_alloc_place outside, int phase,
                           int *number)
{
    ++*number;
    if (stmt->kind == TL_STMT_LOOP)
        return add_inner(p, stmt->u.loop.body, outside, phase, number);
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            TL_TRY(add_inner(p, stmt->u.seq.items[i], outside, phase, number));
    if (stmt->kind == TL_STMT_IF) {
        TL_TRY(add_inner(p, stmt->u.branch.then, outside, phase, number));
        if (stmt->u.branch.otherwise != NULL)
            TL_TRY(add_inner(p, stmt->u.branch.otherwise, outside, phase, number));
    }
    if (stmt->kind == TL_STMT_ALLOC) {
        const tl_buffer *buffer = stmt->u.alloc.buffer;
        int first = -1, last = -1, at = *number;
        lifetime(stmt->u.alloc.body, buffer, &at, &first, &last);
        bool thread = outside == TL_PLACE_THREAD || buffer->scope != TL_SCOPE_GLOBAL;
        TL_TRY(thread ? add_local(p, buffer, TL_PLACE_THREAD, first, last)
                      : add_local(p, buffer, TL_PLACE_SHARED, phase, phase));
        return add_inner(p, stmt->u.alloc.body, outside, phase, number);
    }
    return TL_OK;
}

static void add_phase(tl_planner *p, const tl_stmt *stmt)
{
    assert(p->phase_count <= p->phase_capacity && p->phase_capacity == p->phase_stmt_capacity);
    bool parallel = stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == TL_LOOP_PARALLEL;
    tl_phase *last = p->phase_count > 0 ? &p->phases[p->phase_count - 1] : NULL;
    if (!parallel && last != NULL &&
        last->var == NULL) { /* one thread does both: no barrier between */
        last->body = tl_stmt_seq2(p->arena, last->body, stmt);
        p->phase_stmts[p->phase_count - 1] = last->body;
        return;
    }
    TL_ROOM(p->arena, p->phases, p->phase_count, p->phase_capacity);
    TL_ROOM(p->arena, p->phase_stmts, p->phase_count, p->phase_stmt_capacity);
    p->phase_stmts[p->phase_count] = stmt;
    p->phases[p->phase_count++] = parallel
                                      ? (tl_phase){ .body = stmt->u.loop.body,
                                                    .var = stmt->u.loop.var,
                                                    .extent = stmt->u.loop.extent }
                                      : (tl_phase){ .body = stmt, .extent = tl_int(p->arena, 1) };
}

static void collect_phases(tl_planner *p, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            collect_phases(p, stmt->u.seq.items[i]);
    else if (stmt->kind == TL_STMT_ALLOC)
        collect_phases(p, stmt->u.alloc.body);
    else if (stmt->kind != TL_STMT_BARRIER)
        add_phase(p, stmt);
}

/* Top-level allocs: of one phase without parallel loop they are that thread's own, else everybody's. */
static tl_status add_outer(tl_planner *p, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            TL_TRY(add_outer(p, stmt->u.seq.items[i]));
        return TL_OK;
    }
    if (stmt->kind != TL_STMT_ALLOC)
        return TL_OK;
    const tl_buffer *buffer = stmt->u.alloc.buffer;
    int first = -1, last = -1;
    for (int i = 0; i < p->phase_count; i++)
        if (tl_stmt_touches(p->phase_stmts[i], buffer)) {
            first = first < 0 ? i : first;
            last = i;
        }
    bool own = first == last && first >= 0 && p->phases[first].var == NULL &&
               buffer->scope != TL_SCOPE_GLOBAL;
    TL_TRY(add_local(p, buffer, own ? TL_PLACE_THREAD : TL_PLACE_SHARED, own ? 0 : first,
                     own ? INT32_MAX : last));
    return add_outer(p, stmt->u.alloc.body);
}

/* Interval packing: the lowest place where nothing lives at the same time. */
static int64_t pack_constant(tl_planner *p, tl_alloc_place place)
{
    int64_t total = 0;
    for (int i = 0; i < p->local_count; i++) {
        tl_plan_local *l = &p->locals[i];
        if (l->placement.place != place || l->size < 0)
            continue;
        l->at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < i; j++) {
                const tl_plan_local *o = &p->locals[j];
                if (o->placement.place == place && o->size > 0 && o->first <= l->last &&
                    l->first <= o->last && o->at < l->at + l->size && l->at < o->at + o->size) {
                    l->at = tl_ceildiv(o->at + o->size, ALIGN) * ALIGN;
                    moved = true;
                }
            }
        }
        l->placement.offset = tl_int(p->arena, l->at);
        total = tl_max64(total, tl_ceildiv(l->at + l->size, ALIGN) * ALIGN);
    }
    return total;
}

const tl_expr *tl_plan_pack(tl_planner *p, tl_alloc_place place)
{
    const tl_expr *total = tl_int(p->arena, pack_constant(p, place));
    for (int i = 0; i < p->local_count; i++) {
        tl_plan_local *l = &p->locals[i];
        if (l->placement.place != place || l->size >= 0)
            continue;
        l->placement.offset = total;
        const tl_expr *lines =
            tl_floordiv_expr(p->arena, tl_addi(p->arena, l->placement.bytes, ALIGN - 1),
                             tl_int(p->arena, ALIGN));
        total = tl_add(p->arena, total, tl_muli(p->arena, lines, ALIGN));
    }
    return total;
}

void tl_plan_finish(tl_planner *p, tl_kernel_plan *out)
{
    *out = (tl_kernel_plan){ .phase_count = p->phase_count,
                             .phases = p->phases,
                             .map_count = p->map_count,
                             .maps = p->maps };
    out->scratch = tl_plan_pack(p, TL_PLACE_SHARED);
    out->thread_scratch = tl_plan_pack(p, TL_PLACE_THREAD);
    tl_placement *placements = TL_NEW_ARRAY(p->arena, tl_placement, p->local_count);
    for (int i = 0; i < p->local_count; i++)
        placements[i] = p->locals[i].placement;
    out->placement_count = p->local_count;
    out->placements = placements;
    int64_t constant;
    out->has_sizes =
        !tl_const_int(out->scratch, &constant) || !tl_const_int(out->thread_scratch, &constant);
}

tl_status tl_plan_make(const tl_lowered_kernel *kernel, tl_kernel_plan *out, tl_diag *diag)
{
    tl_planner p = { .kernel = kernel, .arena = kernel->arena, .diag = diag };
    collect_phases(&p, kernel->body);
    assert(p.phase_count > 0);
    TL_TRY(add_outer(&p, kernel->body));
    int number = 0;
    for (int i = 0; i < p.phase_count; i++)
        TL_TRY(add_inner(&p, p.phase_stmts[i],
                         p.phases[i].var != NULL ? TL_PLACE_THREAD : TL_PLACE_SHARED, i, &number));
    tl_plan_finish(&p, out);
    int64_t constant;
    for (int i = 0; i < p.phase_count; i++)
        out->has_sizes = out->has_sizes || !tl_const_int(p.phases[i].extent, &constant);
    return TL_OK;
}

const tl_placement *tl_plan_find(const tl_kernel_plan *plan, const tl_buffer *buffer)
{
    for (int i = 0; i < plan->placement_count; i++)
        if (plan->placements[i].buffer == buffer)
            return &plan->placements[i];
    return NULL;
}
