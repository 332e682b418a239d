/* codegen/math/math_pair.c: sums and products with their rounding errors (Knuth 1969, Dekker 1971). */
#include "codegen/math/math_llvm.h"

LLVMValueRef tl_math_two_sum(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *error)
{
    LLVMValueRef sum = tl_math_add(m, a, b), b_part = tl_math_sub(m, sum, a);
    LLVMValueRef a_part = tl_math_sub(m, sum, b_part);
    *error = tl_math_add(m, tl_math_sub(m, a, a_part), tl_math_sub(m, b, b_part));
    return sum;
}

LLVMValueRef tl_math_fast_two_sum(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *error)
{
    LLVMValueRef sum = tl_math_add(m, a, b);
    *error = tl_math_sub(m, b, tl_math_sub(m, sum, a));
    return sum;
}

/* The upper half of the mantissa, so that products of halves are exact. */
static LLVMValueRef upper_half(tl_math *m, LLVMValueRef a)
{
    LLVMValueRef mask = tl_math_int(m, m->dtype == TL_F64 ? -(1LL << 27) : -(1LL << 12));
    return tl_math_from_bits(m, LLVMBuildAnd(m->builder, tl_math_bits(m, a), mask, ""));
}

LLVMValueRef tl_math_two_product(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *error)
{
    LLVMValueRef product = tl_math_mul(m, a, b);
    if (tl_math_has_fma(m)) {
        *error = tl_math_fma(m, a, b, tl_math_negate(m, product));
        return product;
    }
    LLVMValueRef a_high = upper_half(m, a), a_low = tl_math_sub(m, a, a_high);
    LLVMValueRef b_high = upper_half(m, b), b_low = tl_math_sub(m, b, b_high);
    LLVMValueRef e = tl_math_sub(m, tl_math_mul(m, a_high, b_high), product);
    e = tl_math_add(m, e, tl_math_mul(m, a_high, b_low));
    e = tl_math_add(m, e, tl_math_mul(m, a_low, b_high));
    *error = tl_math_add(m, e, tl_math_mul(m, a_low, b_low));
    return product;
}
