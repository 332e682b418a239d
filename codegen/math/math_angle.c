/* codegen/math/math_angle.c: angles modulo pi/2.
 *
 * Up to |x| = 2^20: n = round(x * 2/pi), and n*pi/2 is subtracted in four pieces of which the first three have 33 bits,
 * so that their products with n are exact; the sums carry their errors along (Cody and Waite 1980).
 *
 * Beyond (Payne and Hanek 1983): x = k * 2^e with a 53-bit integer k. Multiplied with the 192 bits of 2/pi that begin
 * where the product's weight is below 4, k gives x * 2/pi modulo 4 to 128 bits: two of the quadrant, the rest an angle
 * that is made a number again, times pi/2, in 64-bit arithmetic. That is a function of the module, for one angle, called
 * only where an angle is huge. */
#include "codegen/math/math_llvm.h"
#include <string.h>

#define LIMIT 0x1p20

/* 64 zeroes, then the bits of 2/pi behind the point. */
static const uint64_t two_over_pi[] = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
};

typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMTypeRef f64, i64, i128;
} maker;

static LLVMValueRef word(const maker *k, uint64_t value)
{
    return LLVMConstInt(k->i64, value, false);
}

static LLVMValueRef wide(const maker *k, LLVMValueRef v)
{
    return LLVMBuildZExt(k->b, v, k->i128, "");
}

static LLVMValueRef wide_constant(const maker *k, unsigned value)
{
    return LLVMConstInt(k->i128, value, false);
}

static LLVMValueRef call_intrinsic(const maker *k, const char *name, LLVMTypeRef type,
                                   LLVMValueRef *args, unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(k->module, id, &type, 1);
    return LLVMBuildCall2(k->b, LLVMIntrinsicGetType(k->context, id, &type, 1), f, args, count, "");
}

static LLVMValueRef get_table(const maker *k)
{
    enum { COUNT = sizeof two_over_pi / sizeof two_over_pi[0] };
    LLVMValueRef words[COUNT];
    for (int i = 0; i < COUNT; i++)
        words[i] = word(k, two_over_pi[i]);
    LLVMValueRef table = LLVMAddGlobal(k->module, LLVMArrayType(k->i64, COUNT), "tl.two_over_pi");
    LLVMSetInitializer(table, LLVMConstArray(k->i64, words, COUNT));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return table;
}

/* 192 bits of 2/pi from `position` on. */
static void load_bits(const maker *k, LLVMValueRef position, LLVMValueRef bits[3])
{
    LLVMValueRef table = get_table(k), words[4];
    LLVMValueRef first = LLVMBuildLShr(k->b, position, word(k, 6), "");
    LLVMValueRef shift = LLVMBuildAnd(k->b, position, word(k, 63), "");
    for (unsigned i = 0; i < 4; i++) {
        LLVMValueRef index = LLVMBuildAdd(k->b, first, word(k, i), "");
        LLVMValueRef p = LLVMBuildInBoundsGEP2(k->b, k->i64, table, &index, 1, "");
        words[i] = LLVMBuildLoad2(k->b, k->i64, p, "");
    }
    for (int i = 0; i < 3; i++) {
        LLVMValueRef args[3] = { words[i], words[i + 1], shift };
        bits[i] = call_intrinsic(k, "llvm.fshl", k->i64, args, 3);
    }
}

/* x * 2/pi modulo 4, in units of 2^-126. */
static LLVMValueRef multiply(const maker *k, LLVMValueRef bits)
{
    LLVMBuilderRef b = k->b;
    LLVMValueRef exponent =
        LLVMBuildAnd(b, LLVMBuildLShr(b, bits, word(k, 52), ""), word(k, 0x7FF), "");
    LLVMValueRef position = LLVMBuildSub(b, exponent, word(k, 1075 - 62), ""), part[3];
    load_bits(k, position, part);
    LLVMValueRef mantissa = LLVMBuildAnd(b, bits, word(k, (UINT64_C(1) << 52) - 1), "");
    mantissa = wide(k, LLVMBuildOr(b, mantissa, word(k, UINT64_C(1) << 52), ""));
    LLVMValueRef high =
        LLVMBuildShl(b, LLVMBuildMul(b, mantissa, wide(k, part[0]), ""), wide_constant(k, 64), "");
    LLVMValueRef middle = LLVMBuildMul(b, mantissa, wide(k, part[1]), "");
    LLVMValueRef low =
        LLVMBuildLShr(b, LLVMBuildMul(b, mantissa, wide(k, part[2]), ""), wide_constant(k, 64), "");
    return LLVMBuildAdd(b, LLVMBuildAdd(b, high, middle, ""), low, "");
}

/* magnitude * 2^-126 * pi/2 as a number and its low part. */
static LLVMValueRef to_number(const maker *k, LLVMValueRef magnitude, LLVMValueRef *low)
{
    LLVMBuilderRef b = k->b;
    LLVMValueRef args[2] = { LLVMBuildOr(b, magnitude, wide_constant(k, 1), ""),
                             LLVMConstInt(LLVMInt1TypeInContext(k->context), 0, false) };
    LLVMValueRef zeroes = call_intrinsic(k, "llvm.ctlz", k->i128, args, 2);
    LLVMValueRef top =
        LLVMBuildLShr(b, LLVMBuildShl(b, magnitude, zeroes, ""), wide_constant(k, 64), "");
    /* times pi/2 * 2^63: the product is in units of 2^(-125 - zeroes) */
    LLVMValueRef half_pi = wide(k, word(k, 0xC90FDAA22168C234));
    LLVMValueRef product = LLVMBuildMul(b, top, half_pi, "");
    LLVMValueRef upper = LLVMBuildLShr(b, product, wide_constant(k, 75), "");
    LLVMValueRef lower = LLVMBuildLShr(b, product, wide_constant(k, 12), "");
    upper = LLVMBuildTrunc(b, upper, k->i64, "");
    lower =
        LLVMBuildAnd(b, LLVMBuildTrunc(b, lower, k->i64, ""), word(k, (UINT64_C(1) << 63) - 1), "");
    LLVMValueRef exponent =
        LLVMBuildSub(b, word(k, 1023 - 50), LLVMBuildTrunc(b, zeroes, k->i64, ""), "");
    LLVMValueRef scale =
        LLVMBuildBitCast(b, LLVMBuildShl(b, exponent, word(k, 52), ""), k->f64, "");
    LLVMValueRef u = LLVMBuildFMul(b, LLVMBuildSIToFP(b, upper, k->f64, ""), scale, "");
    LLVMValueRef l =
        LLVMBuildFMul(b, LLVMBuildSIToFP(b, lower, k->f64, ""), LLVMConstReal(k->f64, 0x1p-63), "");
    l = LLVMBuildFMul(b, l, scale, "");
    LLVMValueRef high = LLVMBuildFAdd(b, u, l, "");
    *low = LLVMBuildFSub(b, l, LLVMBuildFSub(b, high, u, ""), "");
    return high;
}

static LLVMValueRef negate_if(const maker *k, LLVMValueRef condition, LLVMValueRef v)
{
    return LLVMBuildSelect(k->b, condition, LLVMBuildFNeg(k->b, v, ""), v, "");
}

/* {high, low, quadrant} of a finite |x| >= LIMIT; made once a module. */
static LLVMValueRef get_huge_angle(const tl_math *m, LLVMTypeRef *type)
{
    static const char name[] = "tl.huge_angle";
    maker k = { .context = m->context,
                .module = m->module,
                .f64 = LLVMDoubleTypeInContext(m->context),
                .i64 = LLVMInt64TypeInContext(m->context),
                .i128 = LLVMInt128TypeInContext(m->context) };
    LLVMTypeRef members[3] = { k.f64, k.f64, k.i64 };
    LLVMTypeRef result = LLVMStructTypeInContext(m->context, members, 3, false);
    *type = LLVMFunctionType(result, &k.f64, 1, false);
    LLVMValueRef f = LLVMGetNamedFunction(m->module, name);
    if (f != NULL)
        return f;
    f = LLVMAddFunction(m->module, name, *type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    k.b = LLVMCreateBuilderInContext(m->context);
    LLVMPositionBuilderAtEnd(k.b, LLVMAppendBasicBlockInContext(m->context, f, ""));

    LLVMValueRef bits = LLVMBuildBitCast(k.b, LLVMGetParam(f, 0), k.i64, "");
    LLVMValueRef is_negative = LLVMBuildICmp(k.b, LLVMIntSLT, bits, word(&k, 0), "");
    LLVMValueRef product = multiply(&k, bits);
    LLVMValueRef one = wide_constant(&k, 1), width = wide_constant(&k, 126);
    LLVMValueRef half = LLVMBuildShl(k.b, one, wide_constant(&k, 125), "");
    LLVMValueRef quadrant = LLVMBuildLShr(k.b, LLVMBuildAdd(k.b, product, half, ""), width, "");
    LLVMValueRef rest = LLVMBuildSub(k.b, product, LLVMBuildShl(k.b, quadrant, width, ""), "");
    LLVMValueRef is_below = LLVMBuildICmp(k.b, LLVMIntSLT, rest, wide_constant(&k, 0), "");
    LLVMValueRef magnitude = LLVMBuildSelect(k.b, is_below, LLVMBuildNeg(k.b, rest, ""), rest, "");
    LLVMValueRef low, high = to_number(&k, magnitude, &low);
    LLVMValueRef flip = LLVMBuildXor(k.b, is_below, is_negative, "");
    LLVMValueRef turns = LLVMBuildTrunc(k.b, quadrant, k.i64, "");
    turns = LLVMBuildSelect(k.b, is_negative, LLVMBuildNeg(k.b, turns, ""), turns, "");
    LLVMValueRef values[3] = { negate_if(&k, flip, high), negate_if(&k, flip, low), turns };
    LLVMBuildAggregateRet(k.b, values, 3);
    LLVMDisposeBuilder(k.b);
    return f;
}

static tl_math_angle reduce_moderate(tl_math *m, LLVMValueRef x)
{
    static const double pieces[] = { 0x1.921fb54400000p+0, 0x1.0b4611a600000p-34,
                                     0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104 };
    LLVMValueRef rounder = tl_math_constant(m, 0x1.8p52);
    LLVMValueRef t = tl_math_fma(m, x, tl_math_constant(m, 0x1.45f306dc9c883p-1), rounder);
    LLVMValueRef n = tl_math_sub(m, t, rounder), a = x, error[3], piece[4];
    for (int i = 0; i < 4; i++)
        piece[i] = tl_math_mul(m, n, tl_math_constant(m, -pieces[i]));
    a = tl_math_add(m, a, piece[0]); /* exact: both are multiples of one unit, and near */
    a = tl_math_two_sum(m, a, piece[1], &error[0]);
    a = tl_math_two_sum(m, a, piece[2], &error[1]);
    LLVMValueRef low = tl_math_add(m, tl_math_add(m, error[0], error[1]), piece[3]);
    tl_math_angle angle = { .quadrant = tl_math_bits(m, t) };
    angle.high = tl_math_fast_two_sum(m, a, low, &angle.low);
    return angle;
}

/* The huge angles lane by lane; the others stay as they are. */
static tl_math_angle reduce_huge(tl_math *m, LLVMValueRef x, LLVMValueRef is_huge,
                                 tl_math_angle angle)
{
    LLVMBuilderRef b = m->builder;
    LLVMTypeRef type;
    LLVMValueRef f = get_huge_angle(m, &type);
    LLVMValueRef safe = tl_math_select(m, is_huge, x, tl_math_constant(m, LIMIT));
    LLVMValueRef part[3] = { LLVMGetUndef(tl_math_type(m)), LLVMGetUndef(tl_math_type(m)),
                             LLVMGetUndef(tl_math_int_type(m)) };
    for (int lane = 0; lane < m->lanes; lane++) {
        LLVMValueRef index =
            LLVMConstInt(LLVMInt32TypeInContext(m->context), (unsigned)lane, false);
        LLVMValueRef one = m->lanes == 1 ? safe : LLVMBuildExtractElement(b, safe, index, "");
        LLVMValueRef values = LLVMBuildCall2(b, type, f, &one, 1, "");
        for (unsigned i = 0; i < 3; i++) {
            LLVMValueRef v = LLVMBuildExtractValue(b, values, i, "");
            part[i] = m->lanes == 1 ? v : LLVMBuildInsertElement(b, part[i], v, index, "");
        }
    }
    return (tl_math_angle){ .high = tl_math_select(m, is_huge, part[0], angle.high),
                            .low = tl_math_select(m, is_huge, part[1], angle.low),
                            .quadrant = tl_math_select(m, is_huge, part[2], angle.quadrant) };
}

static LLVMValueRef merge(tl_math *m, LLVMValueRef a, LLVMBasicBlockRef from_a, LLVMValueRef b,
                          LLVMBasicBlockRef from_b)
{
    LLVMValueRef phi = LLVMBuildPhi(m->builder, LLVMTypeOf(a), "");
    LLVMAddIncoming(phi, &a, &from_a, 1);
    LLVMAddIncoming(phi, &b, &from_b, 1);
    return phi;
}

tl_math_angle tl_math_reduce_angle(tl_math *m, LLVMValueRef x)
{
    LLVMBuilderRef b = m->builder;
    tl_math_angle near = reduce_moderate(m, x);
    LLVMValueRef magnitude = tl_math_unary(m, "llvm.fabs", x);
    LLVMValueRef is_huge =
        LLVMBuildAnd(b, tl_math_compare(m, LLVMRealOGE, magnitude, tl_math_constant(m, LIMIT)),
                     tl_math_less(m, magnitude, __builtin_inf()), "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMValueRef function = LLVMGetBasicBlockParent(before);
    LLVMBasicBlockRef huge = LLVMAppendBasicBlockInContext(m->context, function, "huge");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(m->context, function, "");
    LLVMBuildCondBr(b, tl_math_any(m, is_huge), huge, after);
    LLVMPositionBuilderAtEnd(b, huge);
    tl_math_angle far = reduce_huge(m, x, is_huge, near);
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
    return (tl_math_angle){ .high = merge(m, near.high, before, far.high, huge),
                            .low = merge(m, near.low, before, far.low, huge),
                            .quadrant = merge(m, near.quadrant, before, far.quadrant, huge) };
}
