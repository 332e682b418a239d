/* codegen/math_llvm.h: the scalar functions of ir/functions.def as LLVM code, on scalars and on vectors alike.
 *
 * Each is straight-line code over explicit operations: no branch, no call of a library. A function's file states its
 * largest error in units in the last place (ulp), which tests/codegen/test_math.c holds it to. */
#ifndef TL_CODEGEN_MATH_LLVM_H
#define TL_CODEGEN_MATH_LLVM_H
#include <llvm-c/Core.h>
#include "ir/expr.h"
#include "ir/target.h"

typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const tl_target *target;
    int lanes;      /* 1: scalars */
    tl_dtype dtype; /* of the operands: F32 or F64 */
} tl_math;

/* NULL when the function has no float form here. ISNAN and ISINF give i1, the others the operands' type. */
LLVMValueRef tl_emit_function(tl_math *m, tl_function f, const LLVMValueRef *args);

/* What the functions are written with. `m->dtype` says which type is meant; int_ works on words of the same width. */
LLVMTypeRef tl_math_type(const tl_math *m);
LLVMTypeRef tl_math_int_type(const tl_math *m);
LLVMValueRef tl_math_constant(const tl_math *m, double value);
LLVMValueRef tl_math_int(const tl_math *m, int64_t value);
LLVMValueRef tl_math_add(tl_math *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_sub(tl_math *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_mul(tl_math *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_div(tl_math *m, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_fma(tl_math *m, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef c); /* a*b + c, fused where there is an instruction */
LLVMValueRef tl_math_negate(tl_math *m, LLVMValueRef a);
LLVMValueRef tl_math_select(tl_math *m, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no);
LLVMValueRef tl_math_compare(tl_math *m, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_math_less(tl_math *m, LLVMValueRef a, double b);    /* a < b, false for a NaN */
LLVMValueRef tl_math_greater(tl_math *m, LLVMValueRef a, double b); /* a > b */
LLVMValueRef tl_math_is_nan(tl_math *m, LLVMValueRef a);
LLVMValueRef tl_math_clamp(tl_math *m, LLVMValueRef a, double low, double high); /* a NaN stays */
LLVMValueRef tl_math_bits(tl_math *m, LLVMValueRef a);      /* float to int, bit by bit */
LLVMValueRef tl_math_from_bits(tl_math *m, LLVMValueRef a); /* and back */
LLVMValueRef tl_math_to_int(tl_math *m, LLVMValueRef a);    /* truncated; in range */
LLVMValueRef tl_math_from_int(tl_math *m, LLVMValueRef a);
LLVMValueRef tl_math_unary(tl_math *m, const char *intrinsic,
                           LLVMValueRef a); /* "llvm.floor", ... */
LLVMValueRef tl_math_copysign(tl_math *m, LLVMValueRef magnitude, LLVMValueRef sign);
LLVMValueRef tl_math_scale(tl_math *m, LLVMValueRef a,
                           LLVMValueRef n); /* a * 2^n, integer n; subnormal results too */
/* c[0] + c[1]*x + ... + c[count-1]*x^(count-1), Horner. */
LLVMValueRef tl_math_polynomial(tl_math *m, LLVMValueRef x, const double *c, int count);

/* math_*.c: one operand each unless said otherwise. */
#define MATH(file, function) LLVMValueRef tl_math_##function(tl_math *m, const LLVMValueRef *args);
#include "codegen/math_functions.def"
#undef MATH

#endif
