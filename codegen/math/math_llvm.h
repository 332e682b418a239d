/* codegen/math/math_llvm.h: the scalar functions of ir/expr/functions.def as LLVM code, on scalars and on vectors alike.
 *
 * Each is code over explicit operations, without a call of a library: straight-line but for the angles of sin, cos and
 * tan that are huge and for fmod. math_functions.def states the largest error of each in units in the last place (ulp),
 * which tests/codegen/test_math.c holds it to. */
#ifndef TL_CODEGEN_MATH_MATH_LLVM_H
#define TL_CODEGEN_MATH_MATH_LLVM_H
#include <llvm-c/Core.h>
#include "ir/expr/expr.h"
#include "ir/program/target.h"

typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const tl_target *target;
    bool strict;    /* the same bits in any number of lanes */
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
LLVMValueRef tl_math_clamp(tl_math *m, LLVMValueRef a, double low, double high); /* a NaN stays */
LLVMValueRef tl_math_bits(tl_math *m, LLVMValueRef a);      /* float to int, bit by bit */
LLVMValueRef tl_math_from_bits(tl_math *m, LLVMValueRef a); /* and back */
LLVMValueRef tl_math_from_int(tl_math *m, LLVMValueRef a);
LLVMValueRef tl_math_unary(tl_math *m, const char *intrinsic,
                           LLVMValueRef a); /* "llvm.floor", ... */
LLVMValueRef tl_math_copysign(tl_math *m, LLVMValueRef magnitude, LLVMValueRef sign);
LLVMValueRef tl_math_scale(tl_math *m, LLVMValueRef a,
                           LLVMValueRef n); /* a * 2^n, integer n; subnormal results too */
/* Whether the next two are there: f32 vectors of AVX-512, and no strict kernel's, for scalars have neither. */
bool tl_math_has_scale(const tl_math *m);
LLVMValueRef tl_math_scale_by(tl_math *m, LLVMValueRef a,
                              LLVMValueRef n);               /* a * 2^n for a float n; any result */
LLVMValueRef tl_math_reciprocal(tl_math *m, LLVMValueRef a); /* 1/a to 1 ulp; normal numbers */
bool tl_math_has_fma(const tl_math *m);
LLVMValueRef tl_math_any(tl_math *m, LLVMValueRef condition); /* an i1: whether some lane is true */
tl_math tl_math_wide(const tl_math *m);                       /* the same on f64 */
LLVMValueRef tl_math_widen(const tl_math *m, LLVMValueRef a); /* m's dtype to f64 */
LLVMValueRef tl_math_narrow(const tl_math *m, LLVMValueRef a); /* and back, rounded */
/* c[0] + c[1]*x + ... + c[count-1]*x^(count-1), Horner. */
LLVMValueRef tl_math_polynomial(tl_math *m, LLVMValueRef x, const double *c, int count);
/* The same in a chain of 2 log2(count) operations (Estrin 1960) instead of count, for a few more: where a function is long,
 * the vectors that a processor has in flight are its limit. */
enum { TL_MATH_MOST_TERMS = 16 };
LLVMValueRef tl_math_short_polynomial(tl_math *m, LLVMValueRef x, const double *c, int count);

/* math_pair.c: exact operations. The result rounded, and in *error what rounding lost. */
LLVMValueRef tl_math_two_sum(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *error);
LLVMValueRef tl_math_fast_two_sum(tl_math *m, LLVMValueRef a, LLVMValueRef b,
                                  LLVMValueRef *error); /* |a| >= |b| or a is 0 */
LLVMValueRef tl_math_two_product(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *error);

/* math_exp.c: 2^shift * e^(x + low), where low (NULL: 0) is small. `is_normal`: the caller knows that the result is a
 * normal number, which saves half of the scaling. A NaN stays. */
LLVMValueRef tl_math_exp_of(tl_math *m, LLVMValueRef x, LLVMValueRef low, int shift,
                            bool is_normal);
/* math_log.c: log(x + low) + n ln 2 for a normal x, low (NULL: 0) at most an ulp of it, integers n (NULL: 0). */
LLVMValueRef tl_math_log_of(tl_math *m, LLVMValueRef x, LLVMValueRef low, LLVMValueRef n);
/* x = 2^exponent * mantissa with sqrt(1/2) <= mantissa < sqrt(2), for a normal x; the exponent is an integer. */
LLVMValueRef tl_math_mantissa(tl_math *m, LLVMValueRef x, LLVMValueRef *exponent);

/* math_angle.c: x = quadrant*pi/2 + high + low with |high| <= pi/4*1.0001, for any finite x; of an infinity high is
 * NaN. On f64 only; quadrant is an integer of which the last two bits count. */
typedef struct {
    LLVMValueRef high, low, quadrant;
} tl_math_angle;
tl_math_angle tl_math_reduce_angle(tl_math *m, LLVMValueRef x);

/* math_*.c: as many operands as ir/expr/functions.def says. */
#define MATH(file, function, f32_ulp, f64_ulp) \
    LLVMValueRef tl_math_##function(tl_math *m, const LLVMValueRef *args);
#include "codegen/math/math_functions.def"
#undef MATH

#endif
