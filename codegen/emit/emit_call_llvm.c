/* codegen/emit/emit_call_llvm.c: calls of the intrinsics of ir/program/intrinsics.def, as code in place.
 *
 * dot_u8i8_i32x16 is one VNNI instruction where the target has it, else four multiply-adds of 16 lanes; dot_bf16_f32x16
 * one of AVX512_BF16, else two multiplications and additions of 16 lanes, whose products are exact. sort_f32 is in
 * emit_sort_llvm.c. The products of a warp are in emit_mma_llvm.c. */
#include <assert.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "ir/program/intrinsics.h"

/* A region's first element, and its axes with more than one element: how far apart their elements are. */
typedef struct {
    LLVMValueRef pointer;
    int rank;
    const tl_expr *extents[8], *strides[8];
} operand;

static bool find_operand(tl_emitter *em, const char *name, const tl_region *region, operand *out)
{
    tl_address a;
    if (!tl_emit_address(em, region->buffer, region->begin, region, true, &a))
        return false;
    out->pointer = a.pointer;
    out->rank = 0;
    for (int i = 0; i < region->buffer->rank; i++) {
        const tl_expr *extent = tl_emit_substitute(em, region->extent[i]);
        if (tl_is_int(extent, 1))
            continue;
        if (out->rank == 8) {
            tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "%s: a region of %s with too many axes", name,
                         region->buffer->name);
            return false;
        }
        out->extents[out->rank] = extent;
        out->strides[out->rank++] = a.storage->strides[i];
    }
    return true;
}

/* The axes must have these extents and lie packed. */
static bool is_packed(const operand *o, const int64_t *extents, int rank)
{
    assert(rank >= 0);
    if (o->rank != rank)
        return false;
    for (int i = rank - 1, stride = 1; i >= 0; i--) {
        if (!tl_is_int(o->extents[i], extents[i]) || !tl_is_int(o->strides[i], stride))
            return false;
        stride *= (int)extents[i];
    }
    return true;
}

static LLVMValueRef load(tl_emitter *em, LLVMTypeRef type, LLVMValueRef pointer)
{
    LLVMValueRef v = LLVMBuildLoad2(em->builder, type, pointer, "");
    LLVMSetAlignment(v, 1);
    return v;
}

static LLVMValueRef dot(tl_emitter *em, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef builder = em->builder;
    LLVMTypeRef words = LLVMVectorType(em->i32, 16);
    if (em->target->has_vnni && em->target->isa == TL_ISA_AVX512) {
        LLVMValueRef four = LLVMBuildBitCast(builder, a, em->i32, "");
        LLVMValueRef args[3] = { c, tl_emit_splat(em, four, 16),
                                 LLVMBuildBitCast(builder, b, words, "") };
        return tl_emit_intrinsic(em, "llvm.x86.avx512.vpdpbusd.512", NULL, 0, args, 3);
    }
    for (int k = 0; k < 4; k++) {
        LLVMValueRef picks[16];
        for (int j = 0; j < 16; j++)
            picks[j] = LLVMConstInt(em->i32, (unsigned)(4 * j + k), false);
        LLVMValueRef column = LLVMBuildShuffleVector(builder, b, LLVMGetPoison(LLVMTypeOf(b)),
                                                     LLVMConstVector(picks, 16), "");
        LLVMValueRef one =
            LLVMBuildExtractElement(builder, a, LLVMConstInt(em->i32, (unsigned)k, false), "");
        LLVMValueRef splat = tl_emit_splat(em, LLVMBuildZExt(builder, one, em->i32, ""), 16);
        LLVMValueRef product =
            LLVMBuildMul(builder, splat, LLVMBuildSExt(builder, column, words, ""), "");
        c = LLVMBuildAdd(builder, c, product, "");
    }
    return c;
}

static void emit_dot(tl_emitter *em, const tl_intrinsic_call *call)
{
    assert(call->read_count == 3 && call->write_count == 1);
    operand c, a, b, out;
    if (!find_operand(em, call->name, &call->reads[0], &c) ||
        !find_operand(em, call->name, &call->reads[1], &a) ||
        !find_operand(em, call->name, &call->reads[2], &b) ||
        !find_operand(em, call->name, &call->writes[0], &out))
        return;
    const int64_t lanes[1] = { 16 }, four[1] = { 4 }, matrix[2] = { 16, 4 };
    if (!is_packed(&c, lanes, 1) || !is_packed(&out, lanes, 1) || !is_packed(&a, four, 1) ||
        !is_packed(&b, matrix, 2)) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "%s: the elements of its regions must lie side by side", call->name);
        return;
    }
    LLVMValueRef v = dot(em, load(em, LLVMVectorType(em->i32, 16), c.pointer),
                         load(em, LLVMVectorType(em->i8, 4), a.pointer),
                         load(em, LLVMVectorType(em->i8, 64), b.pointer));
    LLVMSetAlignment(LLVMBuildStore(em->builder, v, out.pointer), 1);
}

/* Every second of 32 bf16, from `first` on, as f32: the word is the upper half of it. */
static LLVMValueRef widen_bf16(tl_emitter *em, LLVMValueRef words, int first)
{
    LLVMBuilderRef builder = em->builder;
    LLVMValueRef v = LLVMBuildBitCast(builder, words, LLVMVectorType(em->i32, 16), "");
    if (first == 0)
        v = LLVMBuildShl(builder, v, tl_emit_splat(em, LLVMConstInt(em->i32, 16, false), 16), "");
    else
        v = LLVMBuildAnd(builder, v,
                         tl_emit_splat(em, LLVMConstInt(em->i32, 0xFFFF0000u, false), 16), "");
    return LLVMBuildBitCast(builder, v, LLVMVectorType(em->f32, 16), "");
}

static LLVMValueRef dot_bf16(tl_emitter *em, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef builder = em->builder;
    LLVMValueRef pair = LLVMBuildBitCast(builder, a, em->i32, "");
    LLVMValueRef pairs = tl_emit_splat(em, pair, 16);
    if (em->target->has_bf16_dot && em->target->isa == TL_ISA_AVX512) {
        LLVMTypeRef halves =
            LLVMVectorType(LLVMBFloatTypeInContext(LLVMGetTypeContext(em->i32)), 32);
        LLVMValueRef args[3] = { c, LLVMBuildBitCast(builder, pairs, halves, ""),
                                 LLVMBuildBitCast(builder, b, halves, "") };
        return tl_emit_intrinsic(em, "llvm.x86.avx512bf16.dpbf16ps.512", NULL, 0, args, 3);
    }
    for (int k = 1; k >= 0; k--) {
        LLVMValueRef product =
            LLVMBuildFMul(builder, widen_bf16(em, pairs, k), widen_bf16(em, b, k), "");
        c = LLVMBuildFAdd(builder, c, product, "");
    }
    return c;
}

static void emit_dot_bf16(tl_emitter *em, const tl_intrinsic_call *call)
{
    assert(call->read_count == 3 && call->write_count == 1);
    operand c, a, b, out;
    if (!find_operand(em, call->name, &call->reads[0], &c) ||
        !find_operand(em, call->name, &call->reads[1], &a) ||
        !find_operand(em, call->name, &call->reads[2], &b) ||
        !find_operand(em, call->name, &call->writes[0], &out))
        return;
    const int64_t lanes[1] = { 16 }, two[1] = { 2 }, matrix[2] = { 16, 2 };
    if (!is_packed(&c, lanes, 1) || !is_packed(&out, lanes, 1) || !is_packed(&a, two, 1) ||
        !is_packed(&b, matrix, 2)) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "%s: the elements of its regions must lie side by side", call->name);
        return;
    }
    LLVMTypeRef word = LLVMIntTypeInContext(LLVMGetTypeContext(em->i32), 16);
    LLVMValueRef v = dot_bf16(em, load(em, LLVMVectorType(em->f32, 16), c.pointer),
                              load(em, LLVMVectorType(word, 2), a.pointer),
                              load(em, LLVMVectorType(word, 32), b.pointer));
    LLVMSetAlignment(LLVMBuildStore(em->builder, v, out.pointer), 1);
}

static LLVMValueRef scalar(tl_emitter *em, const tl_expr *e)
{
    int level;
    return tl_emit_scalar_index(em, tl_emit_substitute(em, e), &level);
}

static void emit_sort(tl_emitter *em, const tl_intrinsic_call *call)
{
    assert(call->read_count == 1 && call->write_count == 2);
    operand o[3];
    const tl_region *regions[3] = { &call->reads[0], &call->writes[0], &call->writes[1] };
    LLVMValueRef args[8];
    for (int i = 0; i < 3; i++) {
        if (!find_operand(em, call->name, regions[i], &o[i]))
            return;
        if (o[i].rank > 1) {
            tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                         "%s: the region of %s has %d axes; it must be a line", call->name,
                         regions[i]->buffer->name, o[i].rank);
            return;
        }
        args[2 * i] = LLVMTypeOf(o[i].pointer) == em->pointer
                          ? o[i].pointer
                          : LLVMBuildAddrSpaceCast(em->builder, o[i].pointer, em->pointer, "");
        args[2 * i + 1] =
            o[i].rank == 0 ? LLVMConstInt(em->i64, 1, false) : scalar(em, o[i].strides[0]);
    }
    args[6] = o[0].rank == 0 ? LLVMConstInt(em->i64, 1, false) : scalar(em, o[0].extents[0]);
    LLVMValueRef one = LLVMConstInt(em->i64, 1, false);
    args[7] = LLVMBuildICmp(em->builder, LLVMIntEQ, scalar(em, call->scalars[0]), one, "");
    LLVMValueRef f = tl_emit_sort_function(em);
    LLVMBuildCall2(em->builder, LLVMGlobalGetValueType(f), f, args, 8, "");
}

void tl_emit_call(tl_emitter *em, const tl_intrinsic_call *call)
{
    tl_intrinsic which;
    if (tl_emit_is_warp_product(call) && em->lanes == 1) {
        tl_emit_mma(em, call);
        return;
    }
    if (tl_intrinsic_of_group(call->name) && em->lanes == 1) {
        tl_emit_group_product(em, call);
        return;
    }
    if (!tl_intrinsic_from_name(call->name, &which)) {
        tl_emit_fail(em, em->i64, TL_BAD_IR, "there is no intrinsic %s", call->name);
        return;
    }
    if (em->lanes > 1) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "a call of %s inside a vectorized loop",
                     call->name);
        return;
    }
    if (em->gpu.phase != NULL && tl_emit_sync(em, which, call))
        return;
    switch (which) {
    case TL_INTRINSIC_sort_f32:
        emit_sort(em, call);
        return;
    case TL_INTRINSIC_dot_u8i8_i32x16:
        emit_dot(em, call);
        return;
    case TL_INTRINSIC_dot_bf16_f32x16:
        emit_dot_bf16(em, call);
        return;
#define PRODUCT(name, ...) case TL_INTRINSIC_##name:
#include "ir/program/warp_products.def"
#include "ir/program/warpgroup_products.def"
#undef PRODUCT
    case TL_INTRINSIC_bulk_copy:
    case TL_INTRINSIC_bulk_load:
    case TL_INTRINSIC_bulk_store:
        tl_emit_bulk(em, call);
        return;
    case TL_INTRINSIC_products_done:
#define INTRINSIC(name, reads, writes, scalars)
#define SYNC(name, scalars, who) case TL_INTRINSIC_##name:
#include "ir/program/intrinsics.def" /* a CPU's copies are done when they are made */
#undef INTRINSIC
    case TL_INTRINSIC_COUNT:
        return;
    }
}
