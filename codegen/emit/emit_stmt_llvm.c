/* codegen/emit/emit_stmt_llvm.c: statements. A condition that is the same in all lanes is a branch, one that is not a
 * mask; a conjunction is taken apart into both. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

#define MAX_STATEMENTS 400000

/* The parts of a conjunction that do (or do not) depend on the lane; NULL when there are none. */
static const tl_expr *part_of(tl_emitter *em, const tl_expr *condition, bool varying)
{
    if (condition->kind == TL_EXPR_AND) {
        const tl_expr *a = part_of(em, condition->args[0], varying);
        const tl_expr *b = part_of(em, condition->args[1], varying);
        return a == NULL ? b : b == NULL ? a : tl_and(em->arena, a, b);
    }
    return tl_emit_varies(em, condition) == varying ? condition : NULL;
}

static void emit_masked(tl_emitter *em, const tl_stmt *stmt, LLVMValueRef m)
{
    LLVMValueRef mask = em->mask;
    em->mask = mask == NULL ? m : LLVMBuildAnd(em->builder, mask, m, "");
    tl_emit_stmt(em, stmt);
    em->mask = mask;
}

static void emit_branch(tl_emitter *em, const tl_expr *uniform, const tl_expr *varying,
                        const tl_stmt *then, const tl_stmt *otherwise)
{
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBasicBlockRef no = NULL,
                      after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    if (otherwise != NULL)
        no = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMValueRef condition = tl_emit_uniform(em, uniform);
    LLVMBuildCondBr(em->builder, condition, yes, no == NULL ? after : no);
    LLVMPositionBuilderAtEnd(em->builder, yes);
    if (varying != NULL)
        emit_masked(em, then, tl_emit_spread(em, tl_emit_expr(em, varying)));
    else
        tl_emit_stmt(em, then);
    LLVMBuildBr(em->builder, after);
    if (no != NULL) {
        LLVMPositionBuilderAtEnd(em->builder, no);
        tl_emit_stmt(em, otherwise);
        LLVMBuildBr(em->builder, after);
    }
    LLVMPositionBuilderAtEnd(em->builder, after);
}

static void emit_if(tl_emitter *em, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_IF);
    const tl_expr *condition = tl_emit_substitute(em, stmt->u.branch.condition);
    const tl_stmt *then = stmt->u.branch.then, *otherwise = stmt->u.branch.otherwise;
    if (condition->kind == TL_EXPR_INT) {
        if (condition->u.value != 0)
            tl_emit_stmt(em, then);
        else if (otherwise != NULL)
            tl_emit_stmt(em, otherwise);
        return;
    }
    const tl_expr *varying = part_of(em, condition, true);
    const tl_expr *uniform = part_of(em, condition, false);
    if (varying == NULL) {
        emit_branch(em, condition, NULL, then, otherwise);
    } else if (otherwise != NULL || uniform == NULL) {
        LLVMValueRef m = tl_emit_spread(em, tl_emit_expr(em, condition));
        emit_masked(em, then, m);
        if (otherwise != NULL)
            emit_masked(em, otherwise, LLVMBuildNot(em->builder, m, ""));
    } else {
        emit_branch(em, uniform, varying, then, NULL);
    }
}

/* Into the caches: a whole line a time, so once a chunk of neighbouring lanes. */
static void emit_prefetch(tl_emitter *em, const tl_stmt *stmt)
{
    assert(stmt->kind == TL_STMT_PREFETCH);
    tl_address a;
    if (!tl_emit_address(em, stmt->u.prefetch.buffer, stmt->u.prefetch.indices,
                         stmt->u.prefetch.indices, true, &a))
        return;
    LLVMTypeRef overload = em->pointer;
    LLVMValueRef args[4] = { a.pointer, LLVMConstInt(em->i32, 0, false),
                             LLVMConstInt(em->i32, stmt->u.prefetch.level == 1 ? 3 : 2, false),
                             LLVMConstInt(em->i32, 1, false) };
    if (!a.storage->is_register)
        tl_emit_intrinsic(em, "llvm.prefetch", &overload, 1, args, 4);
}

/* A slot in the entry block, or its place in scratch. */
void tl_emit_storage(tl_emitter *em, const tl_buffer *buffer)
{
    assert(buffer->role == TL_ROLE_LOCAL);
    for (int i = 0; i < em->storage_count; i++)
        if (em->storages[i].buffer == buffer) /* another copy of an unrolled loop */
            return;
    const tl_placement *placement = tl_plan_find(em->plan, buffer);
    if (placement == NULL) {
        tl_emit_fail(em, em->i64, TL_INTERNAL, "buffer %s has no place", buffer->name);
        return;
    }
    bool is_register = placement->place == TL_PLACE_REGISTER || placement->place == TL_PLACE_WARP;
    if (!is_register && placement->place != TL_PLACE_STACK) {
        tl_add_storage(em, buffer, tl_emit_scratch(em, placement), false);
        return;
    }
    int64_t bytes = 0;
    tl_const_int(placement->bytes, &bytes);
    int64_t count = bytes / (int64_t)tl_dtype_size(buffer->dtype);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(em->builder);
    LLVMPositionBuilderBefore(em->builder, em->safe); /* hoisted code comes behind */
    LLVMTypeRef element = tl_emit_memory_type(em, buffer->dtype);
    LLVMValueRef base =
        LLVMBuildAlloca(em->builder, LLVMArrayType2(element, (uint64_t)(count < 1 ? 1 : count)),
                        buffer->name);
    LLVMSetAlignment(base, 64);
    LLVMPositionBuilderAtEnd(em->builder, back);
    tl_add_storage(em, buffer, base, is_register);
}

void tl_emit_stmt(tl_emitter *em, const tl_stmt *stmt)
{
    if (em->status != TL_OK)
        return;
    if (++em->emitted > MAX_STATEMENTS) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "kernel %s: its unrolled loops make more than %d statements", em->kernel->name,
                     MAX_STATEMENTS);
        return;
    }
    if (em->gpu.phase != NULL && tl_emit_once(em, stmt))
        return;
    const tl_stmt *partly = tl_emit_note_partly(em, stmt);
    bool copies_ahead = em->gpu.copies_ahead;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        em->gpu.copies_ahead = tl_emit_copies_ahead(em, stmt);
        tl_emit_loop(em, stmt);
        em->gpu.copies_ahead = copies_ahead;
        em->gpu.partly = partly;
        return;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            tl_emit_stmt(em, stmt->u.seq.items[i]);
        return;
    case TL_STMT_ALLOC:
        tl_emit_storage(em, stmt->u.alloc.buffer);
        tl_emit_stmt(em, stmt->u.alloc.body);
        return;
    case TL_STMT_BARRIER: /* on a CPU between phases; inside one there is one thread */
        if (em->gpu.phase != NULL)
            tl_emit_barrier(em);
        return;
    case TL_STMT_PREFETCH: /* other threads run while one waits for memory */
        if (em->gpu.phase == NULL)
            emit_prefetch(em, stmt);
        return;
    case TL_STMT_IF:
        emit_if(em, stmt);
        em->gpu.partly = partly;
        return;
    case TL_STMT_STORE:
        tl_emit_store(em, &stmt->u.store);
        return;
    case TL_STMT_CALL:
        tl_emit_call(em, stmt->u.call);
        return;
    case TL_STMT_BLOCK:
    case TL_STMT_KIND_COUNT:
        break;
    }
    tl_emit_fail(em, em->i64, TL_INTERNAL, "a block is left after lower_blocks");
}
