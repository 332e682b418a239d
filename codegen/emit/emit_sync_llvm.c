/* codegen/emit/emit_sync_llvm.c: what orders the threads of a GPU and what goes on by itself (the rows SYNC of
 * ir/program/intrinsics.def), and the sums of a warpgroup's products once they are there.
 *
 * mbarriers are words of 8 bytes in the block's shared memory; a call tells their numbers. */
#include <assert.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "ir/program/intrinsics.h"

enum { MOST_SUMS = 128, MBARRIER_BYTES = 8 };

/* ---- who ---- */

typedef enum { EACH, FIRST } who;
static const struct {
    const char *name;
    who who;
} calls[] = {
#define INTRINSIC(name, reads, writes, scalars)
#define SYNC(name, scalars, who) { #name, who },
#include "ir/program/intrinsics.def"
#undef INTRINSIC
};

static bool find_who(const tl_intrinsic_call *call, who *out)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, call->name) == 0) {
            *out = calls[i].who;
            return true;
        }
    return false;
}

bool tl_emit_is_each_call(const tl_intrinsic_call *call)
{
    who w = FIRST;
    bool is_done = strcmp(call->name, "products_done") == 0;
    return is_done || (find_who(call, &w) && w == EACH);
}

/* ---- mbarriers ---- */

static LLVMValueRef i32_of(tl_emitter *em, const tl_expr *e)
{
    return LLVMBuildTrunc(em->builder, tl_emit_uniform(em, tl_emit_substitute(em, e)), em->i32, "");
}

LLVMValueRef tl_emit_mbarrier(tl_emitter *em, const tl_expr *number)
{
    LLVMValueRef at = tl_emit_uniform(em, tl_emit_substitute(em, number));
    at = LLVMBuildMul(em->builder, at, LLVMConstInt(em->i64, MBARRIER_BYTES, false), "");
    LLVMValueRef first =
        LLVMConstInt(em->i64, (unsigned long long)em->gpu.phase->launch.mbarrier_offset, false);
    at = LLVMBuildAdd(em->builder, at, first, "");
    return LLVMBuildGEP2(em->builder, em->i8, em->gpu.shared, &at, 1, "");
}

/* The block's first thread does something with each of them, between two fences where there are many who look at them. */
static void for_each_mbarrier(tl_emitter *em, const tl_intrinsic_call *call, bool makes)
{
    const tl_launch_plan *launch = &em->gpu.phase->launch;
    LLVMValueRef first = LLVMConstInt(em->i1, 1, false), zero = LLVMConstInt(em->i64, 0, false);
    for (int axis = 0; axis < TL_GPU_AXES; axis++)
        if (launch->block[axis] > 1)
            first =
                LLVMBuildAnd(em->builder, first,
                             LLVMBuildICmp(em->builder, LLVMIntEQ, em->gpu.thread[axis], zero, ""),
                             "");
    int64_t from = 0, count = 0;
    tl_const_int(call->scalars[0], &from);
    tl_const_int(call->scalars[1], &count);
    LLVMBasicBlockRef after = tl_emit_begin_where(em, first);
    for (int64_t i = 0; i < count; i++) {
        LLVMValueRef args[2] = { tl_emit_mbarrier(em, tl_int(em->arena, from + i)), NULL };
        if (makes)
            args[1] = i32_of(em, call->scalars[2]);
        tl_emit_device(em, makes ? "dev_mbar_init" : "dev_mbar_inval", em->nothing, args,
                       makes ? 2 : 1);
    }
    if (makes)
        tl_emit_device(em, "dev_fence_init", em->nothing, NULL, 0);
    tl_emit_end_where(em, after);
}

/* Asks until it is so. */
static void wait_mbarrier(tl_emitter *em, const tl_intrinsic_call *call)
{
    LLVMBuilderRef b = em->builder;
    LLVMValueRef args[2] = { tl_emit_mbarrier(em, call->scalars[0]), i32_of(em, call->scalars[1]) };
    LLVMBasicBlockRef ask = LLVMAppendBasicBlockInContext(em->context, em->function, "ask");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBuildBr(b, ask);
    LLVMPositionBuilderAtEnd(b, ask);
    LLVMValueRef done = tl_emit_device(em, "dev_mbar_try_wait", em->i32, args, 2);
    LLVMValueRef zero = LLVMConstInt(em->i32, 0, false);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, done, zero, ""), ask, after);
    LLVMPositionBuilderAtEnd(b, after);
}

static void arrive(tl_emitter *em, const tl_intrinsic_call *call)
{
    int64_t blocks = 0;
    LLVMValueRef args[1] = { tl_emit_mbarrier(em, call->scalars[0]) };
    tl_const_int(call->scalars[1], &blocks);
    if (blocks == 0)
        tl_emit_device(em, "dev_mbar_arrive", em->nothing, args, 1);
    for (int64_t rank = 0; rank < blocks; rank++) {
        LLVMValueRef far[2] = { args[0], LLVMConstInt(em->i32, (unsigned long long)rank, false) };
        LLVMValueRef at = tl_emit_intrinsic(em, "llvm.nvvm.mapa.shared.cluster", NULL, 0, far, 2);
        tl_emit_device(em, "dev_mbar_arrive_cluster", em->nothing, &at, 1);
    }
}

/* ---- sums ---- */

/* Nobody may use the sums that were under way before the wait: they go through a function behind it. */
static void emit_done(tl_emitter *em, const tl_region *region)
{
    const tl_buffer *buffer = region->buffer;
    const tl_buffer_storage *storage = tl_emit_find_storage(em, buffer);
    int64_t count = tl_warp_registers(buffer);
    LLVMTypeRef type = tl_emit_memory_type(em, buffer->dtype), types[MOST_SUMS];
    for (int64_t at = 0; at < count && storage != NULL; at += MOST_SUMS) {
        int part = (int)(count - at < MOST_SUMS ? count - at : MOST_SUMS);
        LLVMValueRef args[MOST_SUMS];
        for (int i = 0; i < part; i++) {
            types[i] = type;
            args[i] = LLVMBuildLoad2(em->builder, type,
                                     tl_emit_offset(em, type, storage->base, at + i), "");
            LLVMSetAlignment(args[i], 4);
        }
        LLVMTypeRef result = LLVMStructTypeInContext(em->context, types, (unsigned)part, false);
        const char *name = tl_arena_format(em->arena, "dev_wg_done_n%d_%s", 2 * part,
                                           buffer->dtype == TL_F32 ? "f32" : "i32");
        LLVMValueRef d = tl_emit_device(em, name, result, args, part);
        for (int i = 0; i < part; i++) {
            LLVMValueRef v = LLVMBuildExtractValue(em->builder, d, (unsigned)i, "");
            LLVMValueRef to = tl_emit_offset(em, type, storage->base, at + i);
            LLVMSetAlignment(LLVMBuildStore(em->builder, v, to), 4);
        }
    }
}

/* ---- the calls ---- */

static void emit_number(tl_emitter *em, const tl_intrinsic_call *call, const char *intrinsic)
{
    LLVMValueRef number = i32_of(em, call->scalars[0]);
    tl_emit_convergent(em, tl_emit_intrinsic(em, intrinsic, NULL, 0, &number, 1));
}

static void emit_plain(tl_emitter *em, const char *intrinsic)
{
    tl_emit_convergent(em, tl_emit_intrinsic(em, intrinsic, NULL, 0, NULL, 0));
}

static void set_registers(tl_emitter *em, const tl_intrinsic_call *call)
{
    bool more = tl_is_int(call->scalars[1], 1);
    emit_number(em, call,
                more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                     : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32");
}

bool tl_emit_sync(tl_emitter *em, tl_intrinsic which, const tl_intrinsic_call *call)
{
    int64_t number = 0;
    LLVMValueRef args[2];
    if (call->scalar_count > 0)
        tl_const_int(call->scalars[0], &number);
    if (which == TL_INTRINSIC_async_commit) {
        emit_plain(em, "llvm.nvvm.cp.async.commit.group");
        em->gpu.copies_ahead = false; /* what follows in this iteration copies for itself */
    } else if (which == TL_INTRINSIC_async_wait) {
        emit_number(em, call, "llvm.nvvm.cp.async.wait.group");
    } else if (which == TL_INTRINSIC_products_begin) {
        tl_emit_device(em, "dev_wg_fence", em->nothing, NULL, 0);
    } else if (which == TL_INTRINSIC_products_commit) {
        tl_emit_device(em, "dev_wg_commit", em->nothing, NULL, 0);
    } else if (which == TL_INTRINSIC_products_wait) {
        tl_emit_device(em, tl_arena_format(em->arena, "dev_wg_wait%lld", (long long)number),
                       em->nothing, NULL, 0);
    } else if (which == TL_INTRINSIC_products_done) {
        emit_done(em, &call->reads[0]);
    } else if (which == TL_INTRINSIC_fence_async) {
        tl_emit_device(em, "dev_fence_async", em->nothing, NULL, 0);
    } else if (which == TL_INTRINSIC_bulk_commit) {
        emit_plain(em, "llvm.nvvm.cp.async.bulk.commit.group");
    } else if (which == TL_INTRINSIC_bulk_wait) {
        emit_number(em, call, "llvm.nvvm.cp.async.bulk.wait.group");
    } else if (which == TL_INTRINSIC_mbarrier_make || which == TL_INTRINSIC_mbarrier_drop) {
        for_each_mbarrier(em, call, which == TL_INTRINSIC_mbarrier_make);
    } else if (which == TL_INTRINSIC_mbarrier_expect) {
        args[0] = tl_emit_mbarrier(em, call->scalars[0]);
        args[1] = i32_of(em, call->scalars[1]);
        tl_emit_device(em, "dev_mbar_expect_tx", em->nothing, args, 2);
    } else if (which == TL_INTRINSIC_mbarrier_arrive) {
        arrive(em, call);
    } else if (which == TL_INTRINSIC_mbarrier_wait) {
        wait_mbarrier(em, call);
    } else if (which == TL_INTRINSIC_threads_meet) {
        args[0] = i32_of(em, call->scalars[0]);
        args[1] = i32_of(em, call->scalars[1]);
        tl_emit_convergent(em, tl_emit_intrinsic(em, "llvm.nvvm.barrier", NULL, 0, args, 2));
    } else if (which == TL_INTRINSIC_threads_arrive) {
        args[0] = i32_of(em, call->scalars[0]);
        args[1] = i32_of(em, call->scalars[1]);
        tl_emit_device(em, "dev_bar_arrive", em->nothing, args, 2);
    } else if (which == TL_INTRINSIC_cluster_meet) {
        emit_plain(em, "llvm.nvvm.barrier.cluster.arrive.aligned");
        emit_plain(em, "llvm.nvvm.barrier.cluster.wait.aligned");
    } else if (which == TL_INTRINSIC_set_registers) {
        set_registers(em, call);
    } else {
        return false;
    }
    return true;
}
