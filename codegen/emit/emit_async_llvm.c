/* codegen/emit/emit_async_llvm.c: copies from global to shared memory that go on by themselves (cp.async), in the marked loops
 * of a pipeline (codegen/lower/overlap_copies.c).
 *
 *     S[v, i] = A[k, i]                        cp.async [S + ..], [A + ..], 16
 *     S[v, i] = select(c, A[k, i], 0)    ->    cp.async [S + ..], [A + ..], 16, c ? 16 : 0      zeroes where c is false
 *
 * 4, 8 or 16 bytes that lie side by side in both places, at multiples of as many. Other stores stay what they are. */
#include <string.h>
#include "codegen/emit/emit_private.h"

enum { FIRST_SM = 80, GLOBAL_SPACE = 1 };

static bool is_marked(const tl_stmt *loop)
{
    for (int i = 0; i < loop->u.loop.annotation_count; i++)
        if (strcmp(loop->u.loop.annotations[i].key, "pipeline") == 0 ||
            strcmp(loop->u.loop.annotations[i].key, "pipeline_prologue") == 0)
            return true;
    return false;
}

bool tl_emit_copies_ahead(const tl_emitter *em, const tl_stmt *loop)
{
    return em->gpu.copies_ahead ||
           (em->gpu.phase != NULL && em->target->gpu.sm >= FIRST_SM && is_marked(loop));
}

static bool is_zero(const tl_expr *e)
{
    return (e->kind == TL_EXPR_INT && e->u.value == 0) ||
           (e->kind == TL_EXPR_FLOAT && e->u.number == 0);
}

static bool is_dense(const tl_emitter *em, const tl_address *a, unsigned bytes)
{
    bool side_by_side = em->lanes == 1 ? a->kind == TL_STRIDE_NONE
                                       : a->kind == TL_STRIDE_CONSTANT && a->stride == 1;
    return side_by_side && a->align >= bytes;
}

bool tl_emit_async_copy(tl_emitter *em, const tl_store *store)
{
    const tl_expr *value = store->value, *condition = NULL;
    const tl_placement *to = tl_plan_find(em->plan, store->buffer);
    if (!em->gpu.copies_ahead || em->mask != NULL || em->guard != NULL || to == NULL ||
        to->place != TL_PLACE_BLOCK)
        return false;
    if (value->kind == TL_EXPR_SELECT && is_zero(value->args[2])) {
        condition = tl_emit_substitute(em, value->args[0]);
        value = value->args[1];
    }
    unsigned bytes = (unsigned)(tl_dtype_size(store->buffer->dtype) * (size_t)em->lanes);
    tl_address from, at;
    if (value->kind != TL_EXPR_LOAD || value->dtype != store->buffer->dtype ||
        (bytes != 4 && bytes != 8 && bytes != 16) ||
        (condition != NULL && tl_emit_varies(em, condition)) ||
        !tl_emit_address(em, value->u.buffer, value->args, value, false, &from) ||
        LLVMGetPointerAddressSpace(LLVMTypeOf(from.pointer)) != GLOBAL_SPACE ||
        !tl_emit_address(em, store->buffer, store->indices, store->indices, false, &at) ||
        !is_dense(em, &from, bytes) || !is_dense(em, &at, bytes))
        return false;
    const char *name =
        tl_arena_format(em->arena, "llvm.nvvm.cp.async.%s.shared.global.%u%s",
                        bytes == 16 ? "cg" : "ca", bytes, condition != NULL ? ".s" : "");
    LLVMValueRef args[3] = { at.pointer, from.pointer, NULL };
    if (condition != NULL)
        args[2] = LLVMBuildSelect(em->builder, tl_emit_uniform(em, condition),
                                  LLVMConstInt(em->i32, bytes, false),
                                  LLVMConstInt(em->i32, 0, false), "");
    tl_emit_convergent(em, tl_emit_intrinsic(em, name, NULL, 0, args, condition != NULL ? 3 : 2));
    return true;
}
