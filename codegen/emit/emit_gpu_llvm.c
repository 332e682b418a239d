/* codegen/emit/emit_gpu_llvm.c: the module of a kernel for a GPU: a function a phase, which every thread runs.
 *
 *     NAME_0(buffers..., scratch if there is any, dims...)      with special registers in the place of bound loops
 *
 * A loop over threads that is shorter than the block is a test of the thread's number. What stands outside of the loops
 * over an axis of threads is run by the first thread of that axis alone. No buffer of a kernel overlaps another that is
 * written; one that a phase only reads is `readonly`, and so is read by way of the read-only cache. */
#include <assert.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"
#include "ir/program/intrinsics.h"

enum { GLOBAL_SPACE = 1, SHARED_SPACE = 3, SHARED_ALIGN = 1024 };

/* ---- what not all threads do ---- */

LLVMBasicBlockRef tl_emit_begin_where(tl_emitter *em, LLVMValueRef condition)
{
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBuildCondBr(em->builder, condition, yes, after);
    LLVMPositionBuilderAtEnd(em->builder, yes);
    return after;
}

void tl_emit_end_where(tl_emitter *em, LLVMBasicBlockRef after)
{
    LLVMBuildBr(em->builder, after);
    LLVMPositionBuilderAtEnd(em->builder, after);
}

typedef struct {
    const tl_emitter *em;
    bool found;
} thread_walk;

static bool visit_thread(const tl_expr *e, void *context)
{
    thread_walk *walk = context;
    const tl_bound *b = e->kind == TL_EXPR_VAR ? tl_find_bound(walk->em, e->u.var) : NULL;
    for (int axis = 0; axis < TL_GPU_AXES && b != NULL && b->kind == TL_BOUND_VALUE; axis++)
        walk->found = walk->found || b->value == walk->em->gpu.thread[axis];
    walk->found = walk->found || e->kind == TL_EXPR_LOAD;
    return !walk->found;
}

/* Whether threads of a block may see different values of it. */
static bool differs(const tl_emitter *em, const tl_expr *e)
{
    thread_walk walk = { em, false };
    tl_expr_visit(e, visit_thread, &walk);
    return walk.found;
}

typedef struct {
    unsigned axes;
    bool meets;
} inside_walk;

static bool is_warp_call(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_CALL &&
           (tl_emit_is_warp_product(stmt->u.call) || tl_intrinsic_of_group(stmt->u.call->name));
}

/* What every thread does for itself, wherever it stands. */
static bool is_each_call(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_CALL && tl_emit_is_each_call(stmt->u.call);
}

static bool visit_inside(const tl_stmt *stmt, void *context)
{
    inside_walk *walk = context;
    int axis = stmt->kind == TL_STMT_LOOP && !tl_is_int(stmt->u.loop.extent, 1)
                   ? tl_gpu_thread_axis(stmt->u.loop.kind)
                   : -1;
    if (axis >= 0)
        walk->axes |= 1u << axis;
    walk->meets =
        walk->meets || stmt->kind == TL_STMT_BARRIER || is_warp_call(stmt) || is_each_call(stmt);
    return !walk->meets;
}

bool tl_emit_once(tl_emitter *em, const tl_stmt *stmt)
{
    const tl_launch_plan *launch = &em->gpu.phase->launch;
    unsigned missing = 0;
    for (int axis = 0; axis < TL_GPU_AXES; axis++)
        if (launch->block[axis] > 1 && !(em->gpu.open >> axis & 1))
            missing |= 1u << axis;
    bool acts = stmt->kind == TL_STMT_LOOP || stmt->kind == TL_STMT_IF ||
                stmt->kind == TL_STMT_STORE || stmt->kind == TL_STMT_CALL;
    if (missing == 0 || !acts || is_each_call(stmt))
        return false;
    inside_walk inside = { 0, false };
    if (is_warp_call(stmt)) { /* a row of threads does it together */
        missing &= ~1u;
        if (missing == 0)
            return false;
    } else {
        tl_stmt_visit(stmt, visit_inside, &inside);
        if ((inside.axes & missing) != 0 || inside.meets)
            return false;
    }
    LLVMValueRef first = NULL, zero = LLVMConstInt(em->i64, 0, false);
    for (int axis = 0; axis < TL_GPU_AXES; axis++) {
        if (!(missing >> axis & 1))
            continue;
        LLVMValueRef is_first =
            LLVMBuildICmp(em->builder, LLVMIntEQ, em->gpu.thread[axis], zero, "");
        first = first == NULL ? is_first : LLVMBuildAnd(em->builder, first, is_first, "");
    }
    tl_emit_gpu around = em->gpu;
    em->gpu.open |= missing;
    em->gpu.partly = around.partly != NULL ? around.partly : stmt;
    LLVMBasicBlockRef after = tl_emit_begin_where(em, first);
    tl_emit_stmt(em, stmt);
    tl_emit_end_where(em, after);
    em->gpu = around;
    return true;
}

const tl_stmt *tl_emit_note_partly(tl_emitter *em, const tl_stmt *stmt)
{
    const tl_stmt *around = em->gpu.partly;
    const tl_expr *e = stmt->kind == TL_STMT_LOOP ? stmt->u.loop.extent
                       : stmt->kind == TL_STMT_IF ? stmt->u.branch.condition
                                                  : NULL;
    if (em->gpu.phase != NULL && around == NULL && e != NULL && differs(em, e))
        em->gpu.partly = stmt;
    return around;
}

LLVMValueRef tl_emit_convergent(tl_emitter *em, LLVMValueRef call)
{
    static const char name[] = "convergent";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(em->context, kind, 0));
    return call;
}

LLVMValueRef tl_emit_device(tl_emitter *em, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, int arg_count)
{
    LLVMTypeRef *types = TL_NEW_ARRAY(em->arena, LLVMTypeRef, arg_count + 1);
    for (int i = 0; i < arg_count; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)arg_count, false);
    LLVMValueRef f = LLVMGetNamedFunction(em->module, name);
    if (f == NULL) {
        f = LLVMAddFunction(em->module, name, type);
        tl_emit_add_attribute(em, f, LLVMAttributeFunctionIndex, "convergent");
        tl_emit_add_attribute(em, f, LLVMAttributeFunctionIndex, "nounwind");
    }
    return tl_emit_convergent(em,
                              LLVMBuildCall2(em->builder, type, f, args, (unsigned)arg_count, ""));
}

void tl_emit_barrier(tl_emitter *em)
{
    const int64_t *block = em->gpu.phase->launch.block;
    if (block[0] * block[1] * block[2] == 1)
        return;
    if (em->gpu.partly != NULL) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "kernel %s: a barrier that not all threads of a block would reach",
                     em->kernel->name);
        return;
    }
    tl_emit_intrinsic(em, "llvm.nvvm.barrier0", NULL, 0, NULL, 0);
}

/* ---- loops over blocks and threads ---- */

static void emit_body(tl_emitter *em, const tl_stmt *loop, LLVMValueRef value)
{
    tl_bind(em, (tl_bound){
                    .var = loop->u.loop.var, .kind = TL_BOUND_VALUE, .value = value, .level = 0 });
    tl_emit_stmt(em, loop->u.loop.body);
    tl_unbind(em);
}

void tl_emit_bound_loop(tl_emitter *em, const tl_stmt *loop)
{
    int axis = tl_gpu_block_axis(loop->u.loop.kind);
    if (axis >= 0) {
        emit_body(em, loop, em->gpu.block[axis]);
        return;
    }
    axis = tl_gpu_thread_axis(loop->u.loop.kind);
    int64_t extent = 0;
    tl_const_int(loop->u.loop.extent, &extent);
    tl_emit_gpu around = em->gpu;
    em->gpu.open |= 1u << axis;
    em->gpu.loops |= 1u << axis;
    if (extent == em->gpu.phase->launch.block[axis]) {
        emit_body(em, loop, em->gpu.thread[axis]);
    } else {
        em->gpu.partly = around.partly != NULL ? around.partly : loop;
        LLVMValueRef end = LLVMConstInt(em->i64, (unsigned long long)extent, false);
        LLVMBasicBlockRef after =
            tl_emit_begin_where(em, LLVMBuildICmp(em->builder, LLVMIntULT, em->gpu.thread[axis],
                                                  end, ""));
        emit_body(em, loop, em->gpu.thread[axis]);
        tl_emit_end_where(em, after);
    }
    em->gpu = around;
}

/* ---- the module ---- */

static LLVMValueRef read_register(tl_emitter *em, const char *name, int axis)
{
    const char *full =
        tl_arena_format(em->arena, "llvm.nvvm.read.ptx.sreg.%s.%c", name, "xyz"[axis]);
    LLVMValueRef v =
        LLVMBuildZExt(em->builder, tl_emit_intrinsic(em, full, NULL, 0, NULL, 0), em->i64, "");
    LLVMSetNNeg(v, true);
    return v;
}

/* Axes of one thread or block are 0. */
static void read_registers(tl_emitter *em, const tl_launch_plan *launch)
{
    for (int axis = 0; axis < TL_GPU_AXES; axis++) {
        LLVMValueRef zero = LLVMConstInt(em->i64, 0, false);
        em->gpu.thread[axis] = launch->block[axis] > 1 ? read_register(em, "tid", axis) : zero;
        em->gpu.block[axis] =
            tl_is_int(launch->grid[axis], 1) ? zero : read_register(em, "ctaid", axis);
    }
}

/* What a launch adds has no size here, and an alignment that goes for all that it might be. */
static LLVMValueRef add_shared(tl_emitter *em, const char *name, int64_t bytes)
{
    bool is_dynamic = bytes > TL_GPU_STATIC_SHARED;
    LLVMTypeRef type = LLVMArrayType2(em->i8, is_dynamic ? 0 : (uint64_t)bytes);
    LLVMValueRef shared = LLVMAddGlobalInAddressSpace(em->module, type, name, SHARED_SPACE);
    LLVMSetAlignment(shared, SHARED_ALIGN);
    if (is_dynamic)
        return shared;
    LLVMSetLinkage(shared, LLVMInternalLinkage);
    LLVMSetInitializer(shared, LLVMGetUndef(type));
    return shared;
}

static void annotate(tl_emitter *em, LLVMValueRef f, const char *key, int64_t value)
{
    LLVMValueRef number = LLVMConstInt(em->i32, (unsigned long long)value, false);
    LLVMMetadataRef parts[3] = { LLVMValueAsMetadata(f),
                                 LLVMMDStringInContext2(em->context, key, strlen(key)),
                                 LLVMValueAsMetadata(number) };
    LLVMAddNamedMetadataOperand(em->module, "nvvm.annotations",
                                LLVMMetadataAsValue(em->context,
                                                    LLVMMDNodeInContext2(em->context, parts, 3)));
}

typedef struct {
    const tl_buffer *buffer;
    bool found;
} write_walk;

static bool visit_write(const tl_stmt *stmt, void *context)
{
    write_walk *walk = context;
    if (stmt->kind == TL_STMT_STORE)
        walk->found = walk->found || stmt->u.store.buffer == walk->buffer;
    for (int i = 0; stmt->kind == TL_STMT_CALL && i < stmt->u.call->write_count; i++)
        walk->found = walk->found || stmt->u.call->writes[i].buffer == walk->buffer;
    return !walk->found;
}

static bool is_written(const tl_stmt *stmt, const tl_buffer *buffer)
{
    write_walk walk = { buffer, false };
    tl_stmt_visit(stmt, visit_write, &walk);
    return walk.found;
}

/* The parameters from `first` on are maps by value, whose addresses are used as they are: !{f, "grid_constant", !{..}}. */
static void annotate_maps(tl_emitter *em, LLVMValueRef f, int first)
{
    enum { MAP_BYTES = 128, MAP_ALIGN = 64 };
    int count = em->plan->map_count;
    LLVMTypeRef type = LLVMArrayType2(em->i8, MAP_BYTES);
    LLVMMetadataRef *numbers = TL_NEW_ARRAY(em->arena, LLVMMetadataRef, count);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    unsigned align = LLVMGetEnumAttributeKindForName("align", 5);
    for (int i = 0; i < count; i++) {
        unsigned at = (unsigned)(first + i + 1);
        LLVMAddAttributeAtIndex(f, at, LLVMCreateTypeAttribute(em->context, byval, type));
        LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(em->context, align, MAP_ALIGN));
        numbers[i] = LLVMValueAsMetadata(LLVMConstInt(em->i32, at, false));
    }
    LLVMMetadataRef parts[3] = { LLVMValueAsMetadata(f),
                                 LLVMMDStringInContext2(em->context, "grid_constant", 13),
                                 LLVMMDNodeInContext2(em->context, numbers, (size_t)count) };
    LLVMMetadataRef node = LLVMMDNodeInContext2(em->context, parts, 3);
    LLVMAddNamedMetadataOperand(em->module, "nvvm.annotations",
                                LLVMMetadataAsValue(em->context, node));
}

static void annotate_kernel(tl_emitter *em, LLVMValueRef f, const tl_launch_plan *launch)
{
    static const char *const widths[TL_GPU_AXES] = { "maxntidx", "maxntidy", "maxntidz" };
    LLVMSetFunctionCallConv(f, 71 /* a PTX kernel */);
    annotate(em, f, "kernel", 1);
    for (int axis = 0; axis < TL_GPU_AXES; axis++)
        annotate(em, f, widths[axis], launch->block[axis]);
    /* or ptxas rather spills than that few threads find room; and what setmaxnreg hands out is taken from one block's */
    annotate(em, f, "minctasm", 1);
}

static void emit_kernel(tl_emitter *em, int index)
{
    assert(index >= 0 && index < em->plan->phase_count);
    const tl_phase *phase = &em->plan->phases[index];
    const tl_lowered_kernel *kernel = em->kernel;
    int buffers = tl_emit_param_count(kernel), dims = kernel->program->dim_count;
    int scratch = tl_is_int(em->plan->scratch, 0) ? 0 : 1, maps = em->plan->map_count;
    int first_map = buffers + scratch + dims, count = first_map + maps;
    LLVMTypeRef *types = TL_NEW_ARRAY(em->arena, LLVMTypeRef, count);
    for (int i = 0; i < count; i++)
        types[i] = i < buffers + scratch ? LLVMPointerTypeInContext(em->context, GLOBAL_SPACE)
                   : i < first_map       ? em->i64
                                         : em->pointer;
    em->gpu = (tl_emit_gpu){ .phase = phase };
    const char *name = tl_arena_format(em->arena, "%s_%d", kernel->name, index);
    LLVMValueRef f = tl_emit_add_function(em, name, types, (unsigned)count);
    annotate_kernel(em, f, &phase->launch);
    if (maps > 0)
        annotate_maps(em, f, first_map);
    tl_emit_start_function(em, f);
    for (int i = 0; i < buffers + scratch; i++)
        tl_emit_add_attribute(em, f, (unsigned)i + 1, "noalias");
    for (int i = 0; i < buffers; i++) {
        const tl_buffer *buffer = tl_emit_param(kernel, i);
        if (!is_written(phase->body, buffer))
            tl_emit_add_attribute(em, f, (unsigned)i + 1, "readonly");
        tl_add_storage(em, buffer, LLVMGetParam(f, (unsigned)i), false);
    }
    em->scratch = scratch ? LLVMGetParam(f, (unsigned)buffers) : NULL;
    LLVMValueRef *dim_values = TL_NEW_ARRAY(em->arena, LLVMValueRef, dims);
    for (int d = 0; d < dims; d++)
        dim_values[d] = LLVMGetParam(f, (unsigned)(buffers + scratch + d));
    tl_emit_bind_dims(em, dim_values);
    LLVMValueRef *map_values = TL_NEW_ARRAY(em->arena, LLVMValueRef, maps);
    for (int m = 0; m < maps; m++)
        map_values[m] = LLVMGetParam(f, (unsigned)(first_map + m));
    em->gpu.maps = map_values;
    if (phase->launch.shared_bytes > 0)
        em->gpu.shared = add_shared(em, tl_arena_format(em->arena, "%s_shared", name),
                                    phase->launch.shared_bytes);
    read_registers(em, &phase->launch);
    em->levels[0].marker = LLVMGetLastInstruction(LLVMGetInsertBlock(em->builder));
    tl_emit_stmt(em, phase->body);
    LLVMBuildRetVoid(em->builder);
}

/* Kernels keep their names in PTX, which has fewer letters for them than LLVM. */
static tl_status check_name(const tl_emitter *em)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *name = em->kernel->name;
    if (name[strspn(name, letters)] == '\0' && strchr("0123456789", name[0]) == NULL)
        return TL_OK;
    return tl_fail(em->diag, TL_UNSUPPORTED,
                   "kernel %s: a kernel for a GPU is named by letters, digits and _", name);
}

/* LLVM takes an intrinsic that it does not know for a function outside, and only the assembler of a GPU complains. */
static tl_status check_intrinsics(const tl_emitter *em)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(em->module); f != NULL; f = LLVMGetNextFunction(f)) {
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        bool is_known = strncmp(name, "llvm.", 5) == 0 ? LLVMGetIntrinsicID(f) != 0
                                                       : strncmp(name, "dev_", 4) == 0;
        if (LLVMIsDeclaration(f) && !is_known)
            return tl_fail(em->diag, TL_INTERNAL, "kernel %s: LLVM does not know %s",
                           em->kernel->name, name);
    }
    return TL_OK;
}

tl_status tl_emit_gpu_module(tl_emitter *em)
{
    TL_TRY(check_name(em));
    tl_emit_start_module(em);
    for (int i = 0; i < em->plan->phase_count && em->status == TL_OK; i++)
        emit_kernel(em, i);
    LLVMDisposeBuilder(em->builder);
    return em->status == TL_OK ? check_intrinsics(em) : em->status;
}
