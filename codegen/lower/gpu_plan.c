/* codegen/lower/gpu_plan.c: the launches of a lowered kernel for a GPU, and where its local buffers live.
 *
 *     alloc T: f32[64] global                 scratch in global memory, for all phases
 *     for by in 0..m blockIdx.y               phase 0: a launch of m blocks of 8 x 32 threads
 *       alloc S: f32[8, 32] shared            the shared memory of a block
 *       for ty in 0..8 threadIdx.y
 *         for tx in 0..32 threadIdx.x
 *           alloc R: f32[4] register          registers of a thread
 *     for i in 0..4 ...                       phase 1: a launch of one thread
 *
 * What stands at the top, under allocs in global memory, is a launch each; statements without blocks or threads that follow
 * each other are one. Loops over blocks stand outside of everything else in their launch: blocks cannot wait for each
 * other. A block is as wide as its longest loop over an axis. Buffers of a launch that are not a thread's own have bytes of
 * their own in shared memory: two that never live at once would need a barrier between their lives. */
#include <assert.h>
#include <string.h>
#include "codegen/lower/passes.h"
#include "codegen/lower/plan_private.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

enum {
    SHARED_ALIGN = 128,
    SWIZZLE_ALIGN = 1024,
    SWIZZLED_LINE = 128,
    MOST_THREADS = 1024,
    MOST_BLOCKS_YZ = 65535
};

int tl_gpu_thread_axis(tl_loop_kind kind)
{
    int axis = (int)kind - (int)TL_LOOP_THREAD_X;
    return axis >= 0 && axis < TL_GPU_AXES ? axis : -1;
}

int tl_gpu_block_axis(tl_loop_kind kind)
{
    int axis = (int)kind - (int)TL_LOOP_BLOCK_X;
    return axis >= 0 && axis < TL_GPU_AXES ? axis : -1;
}

/* ---- launches ---- */

static bool is_bound(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_LOOP && (tl_gpu_thread_axis(stmt->u.loop.kind) >= 0 ||
                                          tl_gpu_block_axis(stmt->u.loop.kind) >= 0);
}

static bool find_bound(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found = *found || is_bound(stmt);
    return !*found;
}

static bool has_bound(const tl_stmt *stmt)
{
    bool found = false;
    tl_stmt_visit(stmt, find_bound, &found);
    return found;
}

/* The last phase grows where both it and the statement are one thread's. */
static void add_phase(tl_planner *p, const tl_stmt *stmt)
{
    bool bound = has_bound(stmt);
    tl_phase *last = p->phase_count > 0 ? &p->phases[p->phase_count - 1] : NULL;
    if (!bound && last != NULL && !has_bound(last->body)) {
        last->body = tl_stmt_seq2(p->arena, last->body, stmt);
        p->phase_stmts[p->phase_count - 1] = last->body;
        return;
    }
    TL_ROOM(p->arena, p->phases, p->phase_count, p->phase_capacity);
    TL_ROOM(p->arena, p->phase_stmts, p->phase_count, p->phase_stmt_capacity);
    p->phase_stmts[p->phase_count] = stmt;
    p->phases[p->phase_count++] = (tl_phase){ .body = stmt, .extent = tl_int(p->arena, 1) };
}

static void collect_phases(tl_planner *p, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            collect_phases(p, stmt->u.seq.items[i]);
    else if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer->scope == TL_SCOPE_GLOBAL)
        collect_phases(p, stmt->u.alloc.body);
    else if (stmt->kind != TL_STMT_BARRIER)
        add_phase(p, stmt);
}

typedef struct {
    tl_planner *p;
    tl_launch_plan *launch;
    tl_status status;
} survey;

static bool see_thread(const tl_stmt *stmt, void *context)
{
    survey *s = context;
    if (stmt->kind != TL_STMT_LOOP || s->status != TL_OK)
        return s->status == TL_OK;
    const char *name = stmt->u.loop.var->name;
    int axis = tl_gpu_thread_axis(stmt->u.loop.kind);
    int64_t extent;
    if (axis >= 0 && !tl_const_int(stmt->u.loop.extent, &extent))
        s->status = tl_fail(s->p->diag, TL_UNSUPPORTED,
                            "loop %s is bound to threads and its extent is no constant", name);
    else if (axis >= 0)
        s->launch->block[axis] = tl_max64(s->launch->block[axis], extent);
    else if (tl_gpu_block_axis(stmt->u.loop.kind) >= 0 && !tl_is_int(stmt->u.loop.extent, 1))
        s->status = tl_fail(s->p->diag, TL_UNSUPPORTED,
                            "loop %s is %s and stands inside of other loops or beside other "
                            "statements of its launch: blocks cannot wait for each other, so loops "
                            "over blocks go outermost, in a statement of their own",
                            name, tl_loop_kind_infos[stmt->u.loop.kind].text);
    return true;
}

static bool find_load(const tl_expr *e, void *context)
{
    bool *found = context;
    *found = *found || e->kind == TL_EXPR_LOAD;
    return !*found;
}

/* How many neighbours along the loop are a cluster: its annotation says so. */
static tl_status take_cluster(const tl_planner *p, const tl_stmt *loop, int64_t *out)
{
    enum { MOST = 8, FIRST_SM = 90 };
    int64_t blocks = 0, wanted = 1;
    for (int i = 0; i < loop->u.loop.annotation_count; i++)
        if (strcmp(loop->u.loop.annotations[i].key, "cluster") == 0)
            wanted = loop->u.loop.annotations[i].value;
    if (wanted == 1)
        return TL_OK;
    if (wanted < 1 || wanted > MOST || !tl_const_int(loop->u.loop.extent, &blocks) ||
        blocks % wanted != 0 || p->kernel->target->gpu.sm < FIRST_SM)
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "loop %s is annotated cluster = %lld: clusters, which sm_90 and later have, "
                       "are of 1 to %d blocks and divide the loop's constant extent",
                       loop->u.loop.var->name, (long long)wanted, MOST);
    *out = wanted;
    return TL_OK;
}

/* Goes through the loops over blocks that stand outermost; what is under them is the work of a block. */
static tl_status take_grid(tl_planner *p, const tl_stmt *stmt, tl_launch_plan *launch)
{
    tl_var_set around = { 0 };
    for (;;) {
        if (stmt->kind == TL_STMT_ALLOC) {
            stmt = stmt->u.alloc.body;
            continue;
        }
        int axis = stmt->kind == TL_STMT_LOOP ? tl_gpu_block_axis(stmt->u.loop.kind) : -1;
        bool once = stmt->kind == TL_STMT_LOOP && tl_is_int(stmt->u.loop.extent, 1) &&
                    tl_gpu_thread_axis(stmt->u.loop.kind) < 0;
        if (axis < 0 && !once)
            break;
        const tl_expr *extent = stmt->u.loop.extent;
        int64_t blocks;
        bool reads = false;
        tl_expr_visit(extent, find_load, &reads);
        if (reads || tl_expr_uses_any(extent, &around))
            return tl_fail(p->diag, TL_UNSUPPORTED,
                           "loop %s is %s and its extent depends on a loop around it",
                           stmt->u.loop.var->name, tl_loop_kind_infos[stmt->u.loop.kind].text);
        if (axis > 0 && tl_const_int(extent, &blocks) && blocks > MOST_BLOCKS_YZ)
            return tl_fail(p->diag, TL_UNSUPPORTED,
                           "loop %s is %s of %lld iterations; the most are %d: bind it to "
                           "blockIdx.x",
                           stmt->u.loop.var->name, tl_loop_kind_infos[stmt->u.loop.kind].text,
                           (long long)blocks, MOST_BLOCKS_YZ);
        if (axis >= 0 && !tl_is_int(extent, 1)) {
            if (!tl_is_int(launch->grid[axis], 1))
                return tl_fail(p->diag, TL_BAD_IR, "loop %s is %s inside of another one",
                               stmt->u.loop.var->name, tl_loop_kind_infos[stmt->u.loop.kind].text);
            launch->grid[axis] = extent;
            TL_TRY(take_cluster(p, stmt, &launch->cluster[axis]));
        }
        tl_var_set_add(p->arena, &around, stmt->u.loop.var);
        stmt = stmt->u.loop.body;
    }
    survey s = { p, launch, TL_OK };
    tl_stmt_visit(stmt, see_thread, &s);
    TL_TRY(s.status);
    int64_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    if (threads > MOST_THREADS)
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "a block of %lld x %lld x %lld threads has more than %d",
                       (long long)launch->block[0], (long long)launch->block[1],
                       (long long)launch->block[2], MOST_THREADS);
    return TL_OK;
}

static bool find_join(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    if (stmt->kind == TL_STMT_STORE && tl_reads_own_element(&stmt->u.store) &&
        stmt->u.store.buffer->scope != TL_SCOPE_REGISTER &&
        stmt->u.store.buffer->scope != TL_SCOPE_STACK)
        *found = true;
    return !*found;
}

/* Where more than a warp may combine what its threads have. */
static void add_join(tl_launch_plan *launch, const tl_stmt *body)
{
    bool found = false;
    if (launch->block[0] > TL_WARP_LANES)
        tl_stmt_visit(body, find_join, &found);
    if (!found)
        return;
    int64_t warps = launch->block[0] * launch->block[1] * launch->block[2] / TL_WARP_LANES;
    launch->join_offset = tl_ceildiv(launch->shared_bytes, TL_GPU_JOIN_BYTES) * TL_GPU_JOIN_BYTES;
    launch->shared_bytes = launch->join_offset + warps * TL_GPU_JOIN_BYTES;
}

typedef struct {
    int64_t mbarriers;
    bool sets_registers;
} sync_survey;

static bool see_sync(const tl_stmt *stmt, void *context)
{
    sync_survey *s = context;
    int64_t first = 0, count = 0;
    if (tl_is_call(stmt, "mbarrier_make") && tl_const_int(stmt->u.call->scalars[0], &first) &&
        tl_const_int(stmt->u.call->scalars[1], &count))
        s->mbarriers = tl_max64(s->mbarriers, first + count);
    s->sets_registers = s->sets_registers || tl_is_call(stmt, "set_registers");
    return true;
}

static void add_sync(tl_launch_plan *launch, const tl_stmt *body)
{
    enum { MBARRIER_BYTES = 8 };
    sync_survey s = { 0, false };
    tl_stmt_visit(body, see_sync, &s);
    launch->sets_registers = s.sets_registers;
    if (s.mbarriers == 0)
        return;
    launch->mbarrier_offset = tl_ceildiv(launch->shared_bytes, MBARRIER_BYTES) * MBARRIER_BYTES;
    launch->shared_bytes = launch->mbarrier_offset + s.mbarriers * MBARRIER_BYTES;
}

static tl_status check_shared(const tl_planner *p, const tl_launch_plan *launch)
{
    int64_t most = p->kernel->target->gpu.shared_block;
    if (launch->shared_bytes <= most || most == 0)
        return TL_OK;
    return tl_fail(p->diag, TL_UNSUPPORTED,
                   "a block would take %lld bytes of shared memory; on %s it has at most %lld",
                   (long long)launch->shared_bytes, p->kernel->target->cpu, (long long)most);
}

static tl_status make_launch(tl_planner *p, tl_phase *phase)
{
    for (int axis = 0; axis < TL_GPU_AXES; axis++) {
        phase->launch.grid[axis] = tl_int(p->arena, 1);
        phase->launch.block[axis] = phase->launch.cluster[axis] = 1;
    }
    return take_grid(p, phase->body, &phase->launch);
}

/* ---- places ---- */

static tl_status check_extents(const tl_planner *p, const tl_buffer *buffer)
{
    int64_t extent;
    for (int a = 0; a < buffer->rank; a++)
        if (!tl_const_int(buffer->shape[a], &extent))
            return tl_fail(p->diag, TL_UNSUPPORTED,
                           "buffer %s lives in a block of a GPU, and extent of axis %d is no "
                           "constant",
                           buffer->name, a);
    return TL_OK;
}

static tl_status check_new(const tl_planner *p, const tl_buffer *buffer)
{
    if (tl_buffer_max_elements(buffer) < 0)
        return tl_fail(p->diag, TL_UNSUPPORTED, "buffer %s has more elements than can be addressed",
                       buffer->name);
    for (int i = 0; i < p->local_count; i++)
        if (p->locals[i].placement.buffer == buffer)
            return tl_fail(p->diag, TL_BAD_IR, "buffer %s is allocated twice", buffer->name);
    return TL_OK;
}

static tl_plan_local *add_local(tl_planner *p, const tl_buffer *buffer, tl_alloc_place place,
                                int first, int last)
{
    TL_ROOM(p->arena, p->locals, p->local_count, p->local_capacity);
    tl_plan_local *l = &p->locals[p->local_count++];
    *l = (tl_plan_local){
        .placement = { .buffer = buffer, .place = place }, .size = -1, .first = first, .last = last
    };
    l->placement.strides = tl_buffer_strides(p->arena, buffer);
    l->placement.bytes = tl_buffer_bytes(p->arena, buffer);
    if (!tl_const_int(l->placement.bytes, &l->size))
        l->size = -1;
    return l;
}

/* In global memory, for all phases that touch it. */
static tl_status add_global(tl_planner *p, const tl_stmt *alloc)
{
    const tl_buffer *buffer = alloc->u.alloc.buffer;
    int first = -1, last = -1;
    TL_TRY(check_new(p, buffer));
    for (int i = 0; i < p->phase_count; i++)
        if (tl_stmt_touches(p->phase_stmts[i], buffer)) {
            first = first < 0 ? i : first;
            last = i;
        }
    add_local(p, buffer, TL_PLACE_SHARED, first, last);
    return TL_OK;
}

static tl_status add_own(tl_planner *p, const tl_buffer *buffer)
{
    tl_plan_local *l = add_local(p, buffer, TL_PLACE_STACK, 0, INT32_MAX);
    if (buffer->scope == TL_SCOPE_REGISTER) {
        l->placement.place = TL_PLACE_REGISTER;
        l->placement.strides = tl_register_strides(p->arena, buffer, p->kernel->target, &l->size);
        l->size = tl_storage_bytes(buffer->dtype, l->size);
        l->placement.bytes = tl_int(p->arena, l->size);
    }
    p->stack_bytes += l->size;
    if (l->size < 0 || p->stack_bytes > TL_STACK_LIMIT)
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "buffer %s is a thread's own, whose buffers would take more than %d bytes "
                       "together",
                       buffer->name, TL_STACK_LIMIT);
    return TL_OK;
}

static tl_status add_shared(tl_planner *p, tl_launch_plan *launch, const tl_buffer *buffer)
{
    tl_plan_local *l = add_local(p, buffer, TL_PLACE_BLOCK, 0, INT32_MAX);
    int64_t align = buffer->swizzle != 0 ? SWIZZLE_ALIGN : SHARED_ALIGN;
    l->at = tl_ceildiv(launch->shared_bytes, align) * align;
    l->placement.offset = tl_int(p->arena, l->at);
    if (buffer->swizzle != 0) /* pieces change places within lines of 128 bytes, the last as well */
        l->size = tl_ceildiv(l->size, SWIZZLED_LINE) * SWIZZLED_LINE;
    if (tl_add_overflows(l->at, l->size, &launch->shared_bytes))
        return tl_fail(p->diag, TL_UNSUPPORTED, "buffer %s is too large for shared memory",
                       buffer->name);
    return TL_OK;
}

/* What a warp holds is tiles of 16 by 8 words, a warpgroup of 64 by 8, of which each thread has four; or four words a row, of
 * which each thread of it has one. What a warpgroup multiplies from registers has 16 bits. */
static tl_status add_warp(tl_planner *p, const tl_launch_plan *launch, const tl_buffer *buffer,
                          unsigned axes)
{
    int64_t rows = 0, columns = 0;
    int threads = tl_scope_threads[buffer->scope], bits = tl_dtype_infos[buffer->dtype].bits;
    if (buffer->rank >= 2) {
        tl_const_int(buffer->shape[buffer->rank - 2], &rows);
        tl_const_int(buffer->shape[buffer->rank - 1], &columns);
    }
    if (rows == 0 || rows % (threads / 2) != 0 || (columns % 8 != 0 && columns != 4) ||
        (bits != 32 && (bits != 16 || buffer->scope == TL_SCOPE_WARP)))
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "buffer %s has scope %s: its last two axes are tiles of %d by 8 elements "
                       "of 32 bits%s, or %d by 4",
                       buffer->name, tl_scope_texts[buffer->scope], threads / 2,
                       buffer->scope == TL_SCOPE_WARP ? "" : " or 16", threads / 2);
    if (launch->block[0] != threads || (axes & 1u))
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "buffer %s has scope %s: it is allocated outside of the threadIdx.x loops, "
                       "and these have %d threads",
                       buffer->name, tl_scope_texts[buffer->scope], threads);
    tl_plan_local *l = add_local(p, buffer, TL_PLACE_WARP, 0, INT32_MAX);
    l->size /= threads;
    l->placement.bytes = tl_int(p->arena, l->size);
    p->stack_bytes += l->size;
    return TL_OK;
}

/* A thread loop over another axis than those around, that touches the buffer: threads would share it. */
typedef struct {
    const tl_buffer *buffer;
    unsigned axes;
    const tl_stmt *found;
} sharing;

static bool find_sharing(const tl_stmt *stmt, void *context)
{
    sharing *s = context;
    int axis = stmt->kind == TL_STMT_LOOP ? tl_gpu_thread_axis(stmt->u.loop.kind) : -1;
    if (s->found == NULL && axis >= 0 && !(s->axes >> axis & 1) &&
        !tl_is_int(stmt->u.loop.extent, 1) && tl_stmt_touches(stmt, s->buffer))
        s->found = stmt;
    return s->found == NULL;
}

/* `axes`: of the thread loops around. */
static tl_status add_inner(tl_planner *p, const tl_stmt *stmt, tl_phase *phase, unsigned axes)
{
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            TL_TRY(add_inner(p, stmt->u.seq.items[i], phase, axes));
    if (stmt->kind == TL_STMT_LOOP) {
        int axis = tl_gpu_thread_axis(stmt->u.loop.kind);
        return add_inner(p, stmt->u.loop.body, phase, axis < 0 ? axes : axes | 1u << axis);
    }
    if (stmt->kind == TL_STMT_IF) {
        TL_TRY(add_inner(p, stmt->u.branch.then, phase, axes));
        return stmt->u.branch.otherwise == NULL
                   ? TL_OK
                   : add_inner(p, stmt->u.branch.otherwise, phase, axes);
    }
    if (stmt->kind != TL_STMT_ALLOC)
        return TL_OK;
    const tl_buffer *buffer = stmt->u.alloc.buffer;
    TL_TRY(check_new(p, buffer));
    TL_TRY(check_extents(p, buffer));
    sharing s = { buffer, axes, NULL };
    tl_stmt_visit(stmt->u.alloc.body, find_sharing, &s);
    if (tl_scope_threads[buffer->scope] > 0) {
        TL_TRY(add_warp(p, &phase->launch, buffer, axes));
    } else if (buffer->scope == TL_SCOPE_SHARED ||
               (axes == 0 && buffer->scope == TL_SCOPE_GLOBAL)) {
        TL_TRY(add_shared(p, &phase->launch, buffer));
    } else if (s.found != NULL) {
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "buffer %s has scope %s and the threads of loop %s share it; only shared "
                       "memory is one for all",
                       buffer->name, tl_scope_texts[buffer->scope], s.found->u.loop.var->name);
    } else {
        TL_TRY(add_own(p, buffer));
    }
    return add_inner(p, stmt->u.alloc.body, phase, axes);
}

/* Global allocs at the top; what is in a launch is its own. */
static tl_status add_outer(tl_planner *p, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count; i++)
            TL_TRY(add_outer(p, stmt->u.seq.items[i]));
    if (stmt->kind != TL_STMT_ALLOC || stmt->u.alloc.buffer->scope != TL_SCOPE_GLOBAL)
        return TL_OK;
    TL_TRY(add_global(p, stmt));
    return add_outer(p, stmt->u.alloc.body);
}

tl_status tl_gpu_plan_make(const tl_lowered_kernel *kernel, tl_kernel_plan *out, tl_diag *diag)
{
    tl_planner p = { .kernel = kernel, .arena = kernel->arena, .diag = diag };
    collect_phases(&p, kernel->body);
    assert(p.phase_count > 0);
    TL_TRY(add_outer(&p, kernel->body));
    for (int i = 0; i < p.phase_count; i++) {
        p.stack_bytes = 0;
        TL_TRY(make_launch(&p, &p.phases[i]));
        TL_TRY(add_inner(&p, p.phases[i].body, &p.phases[i], 0));
        add_join(&p.phases[i].launch, p.phases[i].body);
        add_sync(&p.phases[i].launch, p.phases[i].body);
        TL_TRY(tl_plan_maps(&p, p.phases[i].body));
        TL_TRY(check_shared(&p, &p.phases[i].launch));
    }
    tl_plan_finish(&p, out);
    tl_plan_place_maps(&p, out);
    int64_t constant;
    for (int i = 0; i < p.phase_count; i++)
        for (int axis = 0; axis < TL_GPU_AXES; axis++)
            out->has_sizes =
                out->has_sizes || !tl_const_int(p.phases[i].launch.grid[axis], &constant);
    return TL_OK;
}
