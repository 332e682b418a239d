/* codegen/emit/emit_loop_llvm.c: loops.
 *
 *     serial       a loop: the variable is a phi, and its head is a level for invariant code
 *     unrolled     the body once an iteration, the variable a constant
 *     vectorized   the body once a chunk of lanes. The last chunk has the power of two of lanes that holds the
 *                  rest, masked; on a GPU the rest falls into powers of two
 *     parallel     inside a phase: serial */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"

void tl_emit_range(tl_emitter *em, const tl_var *var, LLVMValueRef begin, LLVMValueRef end,
                   bool runs, const tl_stmt *body)
{
    LLVMBuilderRef b = em->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(em->context, em->function, var->name);
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    if (runs)
        LLVMBuildBr(b, head);
    else
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, begin, end, ""), head, after);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef phi = LLVMBuildPhi(b, em->i64, var->name);
    LLVMAddIncoming(phi, &begin, &before, 1);

    tl_emit_push_level(
        em, (tl_emit_level){
                .block = head, .marker = phi, .variable = phi, .begin = begin, .before = before });
    tl_bind(em,
            (tl_bound){
                .var = var, .kind = TL_BOUND_VALUE, .value = phi, .level = em->level_count - 1 });
    tl_emit_stmt(em, body);
    tl_unbind(em);
    tl_emit_pop_level(em);
    tl_emit_move_on(em, em->level_count);

    LLVMValueRef next = LLVMBuildNSWAdd(b, phi, LLVMConstInt(em->i64, 1, false), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, end, ""), head, after);
    LLVMAddIncoming(phi, &next, &last, 1);
    LLVMPositionBuilderAtEnd(b, after);
}

static void emit_serial(tl_emitter *em, const tl_stmt *loop)
{
    const tl_expr *extent = tl_emit_substitute(em, loop->u.loop.extent);
    int level;
    LLVMValueRef end = tl_emit_scalar_index(em, extent, &level);
    tl_emit_range(em, loop->u.loop.var, LLVMConstInt(em->i64, 0, false), end,
                  tl_expr_range(extent).min >= 1, loop->u.loop.body);
}

static void emit_unrolled(tl_emitter *em, const tl_stmt *loop, int64_t extent)
{
    for (int64_t i = 0; i < extent && em->status == TL_OK; i++) {
        tl_bind(em,
                (tl_bound){ .var = loop->u.loop.var, .kind = TL_BOUND_CONSTANT, .constant = i });
        tl_emit_stmt(em, loop->u.loop.body);
        tl_unbind(em);
    }
}

/* Lanes begin .. begin+count-1 of the loop in a vector of `lanes`. */
static void emit_chunk(tl_emitter *em, const tl_stmt *loop, int64_t begin, int lanes, int count)
{
    assert(loop->kind == TL_STMT_LOOP && lanes >= count && count > 0);
    if (lanes == 1) {
        tl_bind(em, (tl_bound){
                        .var = loop->u.loop.var, .kind = TL_BOUND_CONSTANT, .constant = begin });
        tl_emit_stmt(em, loop->u.loop.body);
        tl_unbind(em);
        return;
    }
    em->lanes = lanes;
    em->lane_var = tl_var_make(em->arena, "lane", 0, count - 1);
    em->is_tail = count < lanes;
    if (em->is_tail) {
        LLVMValueRef active[512];
        for (int i = 0; i < lanes; i++)
            active[i] = LLVMConstInt(em->i1, i < count, false);
        em->mask = LLVMConstVector(active, (unsigned)lanes);
    }
    tl_bind(em, (tl_bound){ .var = loop->u.loop.var, .kind = TL_BOUND_LANE, .constant = begin });
    tl_emit_stmt(em, loop->u.loop.body);
    tl_unbind(em);
    em->lanes = 1;
    em->lane_var = NULL;
    em->mask = NULL;
    em->is_tail = false;
}

static void emit_vectorized(tl_emitter *em, const tl_stmt *loop, int64_t extent)
{
    assert(loop->kind == TL_STMT_LOOP && extent >= 0);
    int full = tl_vector_lanes(loop, em->target);
    int64_t at = 0;
    for (; extent - at >= full && em->status == TL_OK; at += full)
        emit_chunk(em, loop, at, full, full);
    while (at < extent && em->status == TL_OK) {
        int rest = (int)(extent - at), lanes = tl_rest_lanes(em->target, rest);
        int count = rest < lanes ? rest : lanes;
        emit_chunk(em, loop, at, lanes, count);
        at += count;
    }
}

static bool find_vectorized(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    int64_t extent = 0;
    if (stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == TL_LOOP_VECTORIZED &&
        tl_const_int(stmt->u.loop.extent, &extent) && extent > 1)
        *found = true;
    return !*found;
}

void tl_emit_loop(tl_emitter *em, const tl_stmt *loop)
{
    assert(loop->kind == TL_STMT_LOOP);
    int64_t extent = -1;
    bool constant = tl_const_int(loop->u.loop.extent, &extent), inner = false;
    bool is_gpu = em->gpu.phase != NULL;
    if (tl_loop_kind_infos[loop->u.loop.kind].gpu && !is_gpu) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "loop %s is bound to %s, which a CPU has not",
                     loop->u.loop.var->name, tl_loop_kind_infos[loop->u.loop.kind].text);
        return;
    }
    if (constant && extent <= 0)
        return;
    tl_stmt_visit(loop->u.loop.body, find_vectorized, &inner);
    if (constant && extent == 1)
        emit_unrolled(em, loop, 1);
    else if (tl_gpu_block_axis(loop->u.loop.kind) >= 0 ||
             tl_gpu_thread_axis(loop->u.loop.kind) >= 0)
        tl_emit_bound_loop(em, loop);
    else if (constant && !is_gpu && tl_emit_transposed(em, loop, extent))
        return;
    else if (loop->u.loop.kind == TL_LOOP_VECTORIZED && constant && !inner && em->lanes == 1)
        emit_vectorized(em, loop, extent);
    else if (constant &&
             (loop->u.loop.kind == TL_LOOP_UNROLLED || loop->u.loop.kind == TL_LOOP_VECTORIZED ||
              loop->u.loop.kind == TL_LOOP_VTHREAD))
        emit_unrolled(em, loop, extent);
    else
        emit_serial(em, loop);
}
