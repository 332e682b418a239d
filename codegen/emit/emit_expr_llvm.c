/* codegen/emit/emit_expr_llvm.c: value expressions.
 *
 * An operation is scalar as long as all operands are. Products and sums of floats may contract into fused
 * multiply-adds, unless the kernel is strict; nothing else is relaxed. Only the chosen arm of a select loads: the
 * other arm's loads are guarded where they could leave their buffer. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "codegen/math/math_llvm.h"

LLVMValueRef tl_emit_spread(tl_emitter *em, tl_emit_value v)
{
    return v.varies ? v.llvm : tl_emit_splat(em, v.llvm, em->lanes);
}

LLVMValueRef tl_emit_uniform(tl_emitter *em, const tl_expr *e)
{
    tl_emit_value v = tl_emit_expr(em, e);
    if (!v.varies)
        return v.llvm;
    return tl_emit_fail(em, tl_emit_value_type(em, e->dtype), TL_BAD_IR,
                        "%s must not depend on the lane of a vectorized loop",
                        tl_expr_text(em->arena, e));
}

static LLVMValueRef contract(const tl_emitter *em, LLVMValueRef v)
{
    if (!em->kernel->program->strict && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
    return v;
}

/* min and max keep a NaN of either operand. On x86 a comparison and select is one instruction that returns its
 * second operand for a NaN: with a constant first, that is all; otherwise the first operand's NaN is put back. */
static LLVMValueRef emit_float_extreme(tl_emitter *em, bool is_max, LLVMValueRef a, LLVMValueRef b)
{
    LLVMRealPredicate order = is_max ? LLVMRealOGT : LLVMRealOLT;
    LLVMValueRef by_instruction = tl_emit_gpu_extreme(em, is_max, a, b);
    if (by_instruction != NULL)
        return by_instruction;
    if (LLVMIsConstant(b)) {
        LLVMValueRef swap = a;
        a = b;
        b = swap;
    }
    LLVMValueRef best =
        LLVMBuildSelect(em->builder, LLVMBuildFCmp(em->builder, order, a, b, ""), a, b, "");
    if (LLVMIsConstant(a))
        return best;
    /* ordered ? best : a, and not the other way round: LLVM would make one selection of the two, by a disjunction */
    return LLVMBuildSelect(em->builder, LLVMBuildFCmp(em->builder, LLVMRealORD, a, a, ""), best, a,
                           "");
}

static LLVMValueRef emit_float(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, LLVMValueRef a,
                               LLVMValueRef b)
{
    assert(tl_dtype_is_float(dtype));
    LLVMBuilderRef builder = em->builder;
    switch (kind) {
    case TL_EXPR_ADD:
        return tl_emit_round(em, dtype, contract(em, LLVMBuildFAdd(builder, a, b, "")));
    case TL_EXPR_SUB:
        return tl_emit_round(em, dtype, contract(em, LLVMBuildFSub(builder, a, b, "")));
    case TL_EXPR_MUL:
        return tl_emit_round(em, dtype, contract(em, LLVMBuildFMul(builder, a, b, "")));
    case TL_EXPR_DIV:
        return tl_emit_round(em, dtype, LLVMBuildFDiv(builder, a, b, ""));
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
        return emit_float_extreme(em, kind == TL_EXPR_MAX, a, b);
    case TL_EXPR_LT:
        return LLVMBuildFCmp(builder, LLVMRealOLT, a, b, "");
    case TL_EXPR_LE:
        return LLVMBuildFCmp(builder, LLVMRealOLE, a, b, "");
    case TL_EXPR_EQ:
        return LLVMBuildFCmp(builder, LLVMRealOEQ, a, b, "");
    case TL_EXPR_NE:
        return LLVMBuildFCmp(builder, LLVMRealUNE, a, b, "");
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return NULL;
}

static LLVMValueRef emit_integer(tl_emitter *em, const tl_expr *e, tl_expr_kind kind,
                                 tl_dtype dtype, LLVMValueRef a, LLVMValueRef b)
{
    assert(!tl_dtype_is_float(dtype));
    LLVMBuilderRef builder = em->builder;
    bool is_signed = tl_dtype_infos[dtype].class == TL_CLASS_INT;
    LLVMIntPredicate less = is_signed ? LLVMIntSLT : LLVMIntULT;
    bool non_negative = !is_signed;
    switch (kind) {
    case TL_EXPR_ADD:
        return tl_emit_wrap(em, dtype, LLVMBuildAdd(builder, a, b, ""));
    case TL_EXPR_SUB:
        return tl_emit_wrap(em, dtype, LLVMBuildSub(builder, a, b, ""));
    case TL_EXPR_MUL:
        return tl_emit_wrap(em, dtype, LLVMBuildMul(builder, a, b, ""));
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
        if (e != NULL && dtype == TL_I64)
            non_negative = tl_expr_range(e->args[0]).min >= 0 && tl_expr_range(e->args[1]).min >= 0;
        return tl_emit_wrap(em, dtype, tl_emit_floor(em, kind, dtype, non_negative, a, b));
    case TL_EXPR_MIN:
        return LLVMBuildSelect(builder, LLVMBuildICmp(builder, less, a, b, ""), a, b, "");
    case TL_EXPR_MAX:
        return LLVMBuildSelect(builder, LLVMBuildICmp(builder, less, a, b, ""), b, a, "");
    case TL_EXPR_LT:
        return LLVMBuildICmp(builder, less, a, b, "");
    case TL_EXPR_LE:
        return LLVMBuildICmp(builder, is_signed ? LLVMIntSLE : LLVMIntULE, a, b, "");
    case TL_EXPR_EQ:
        return LLVMBuildICmp(builder, LLVMIntEQ, a, b, "");
    case TL_EXPR_NE:
        return LLVMBuildICmp(builder, LLVMIntNE, a, b, "");
    case TL_EXPR_AND:
        return LLVMBuildAnd(builder, a, b, "");
    case TL_EXPR_OR:
        return LLVMBuildOr(builder, a, b, "");
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return NULL;
}

LLVMValueRef tl_emit_binary(tl_emitter *em, const tl_expr *e, tl_expr_kind kind, tl_dtype dtype,
                            LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef v = tl_dtype_is_float(dtype) ? emit_float(em, kind, dtype, a, b)
                                              : emit_integer(em, e, kind, dtype, a, b);
    if (v != NULL)
        return v;
    return tl_emit_fail(em, LLVMTypeOf(a), TL_BAD_IR, "operation %s has no meaning for %s",
                        tl_expr_infos[kind].text, tl_dtype_infos[dtype].text);
}

static LLVMValueRef emit_constant(tl_emitter *em, tl_dtype dtype, const tl_expr *e)
{
    LLVMTypeRef type = tl_emit_value_type(em, dtype);
    if (e->kind == TL_EXPR_FLOAT)
        return LLVMConstReal(type, e->u.number);
    return LLVMConstInt(type, (unsigned long long)e->u.value, true);
}

static tl_emit_value emit_var(tl_emitter *em, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_VAR);
    int level;
    const tl_bound *bound = tl_find_bound(em, e->u.var);
    bool lane = em->lane_var != NULL && e->u.var == em->lane_var;
    if (!lane && (bound == NULL || bound->kind != TL_BOUND_LANE))
        return (tl_emit_value){ tl_emit_scalar_index(em, e, &level), false };
    LLVMValueRef ramp[512];
    int64_t base = lane ? 0 : bound->constant;
    for (int i = 0; i < em->lanes; i++)
        ramp[i] = LLVMConstInt(em->i64, (unsigned long long)(base + i), true);
    return (tl_emit_value){ LLVMConstVector(ramp, (unsigned)em->lanes), true };
}

typedef struct {
    tl_emitter *em;
    bool found;
} wild_walk;

static bool is_wild_load(const tl_expr *e, void *context)
{
    wild_walk *walk = context;
    if (e->kind == TL_EXPR_LOAD && !tl_emit_in_bounds(walk->em, e))
        walk->found = true;
    return !walk->found;
}

/* Some load of the expression could leave its buffer. */
static bool needs_guard(tl_emitter *em, const tl_expr *e)
{
    wild_walk walk = { em, false };
    tl_expr_visit(e, is_wild_load, &walk);
    return walk.found;
}

/* An arm whose loads run only where `condition` holds, which is NULL when they may always run. */
static tl_emit_value emit_arm(tl_emitter *em, const tl_expr *e, tl_emit_value condition,
                              bool negate)
{
    LLVMValueRef mask = em->mask, guard = em->guard, c = condition.llvm;
    if (!needs_guard(em, e))
        return tl_emit_expr(em, e);
    if (negate)
        c = LLVMBuildNot(em->builder, c, "");
    if (condition.varies)
        em->mask = mask == NULL ? c : LLVMBuildAnd(em->builder, mask, c, "");
    else
        em->guard = guard == NULL ? c : LLVMBuildAnd(em->builder, guard, c, "");
    tl_emit_value v = tl_emit_expr(em, e);
    em->mask = mask;
    em->guard = guard;
    return v;
}

static tl_emit_value emit_select(tl_emitter *em, const tl_expr *condition, const tl_expr *yes,
                                 const tl_expr *no)
{
    condition = tl_emit_substitute(em, condition);
    if (condition->kind == TL_EXPR_INT)
        return tl_emit_expr(em, condition->u.value != 0 ? yes : no);
    tl_emit_value c = tl_emit_expr(em, condition);
    if (LLVMIsAConstantInt(c.llvm))
        return tl_emit_expr(em, LLVMConstIntGetZExtValue(c.llvm) != 0 ? yes : no);
    tl_emit_value a = emit_arm(em, yes, c, false), b = emit_arm(em, no, c, true);
    if (!c.varies && !a.varies && !b.varies)
        return (tl_emit_value){ LLVMBuildSelect(em->builder, c.llvm, a.llvm, b.llvm, ""), false };
    return (tl_emit_value){
        LLVMBuildSelect(em->builder, c.llvm, tl_emit_spread(em, a), tl_emit_spread(em, b), ""), true
    };
}

static LLVMValueRef emit_shift(tl_emitter *em, tl_function f, tl_dtype dtype, LLVMValueRef a,
                               LLVMValueRef by)
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMTypeRef element = tl_emit_memory_type(em, dtype);
    int lanes = tl_emit_lanes_of(type);
    LLVMValueRef width =
        tl_emit_splat(em, LLVMConstInt(element, (unsigned)tl_dtype_infos[dtype].bits, false),
                      lanes);
    LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntULT, by, width, "");
    LLVMValueRef safe = LLVMBuildSelect(b, fits, by, LLVMConstNull(type), "");
    bool is_signed = tl_dtype_infos[dtype].class == TL_CLASS_INT;
    LLVMValueRef shifted = f == TL_FUNCTION_SHL ? LLVMBuildShl(b, a, safe, "")
                           : is_signed          ? LLVMBuildAShr(b, a, safe, "")
                                                : LLVMBuildLShr(b, a, safe, "");
    return LLVMBuildSelect(b, fits, shifted, LLVMConstNull(type), "");
}

static LLVMValueRef emit_integer_function(tl_emitter *em, tl_function f, tl_dtype dtype,
                                          const LLVMValueRef *args)
{
    LLVMBuilderRef b = em->builder;
    if (f == TL_FUNCTION_ABS) {
        if (tl_dtype_infos[dtype].class != TL_CLASS_INT)
            return args[0];
        LLVMValueRef negative =
            LLVMBuildICmp(b, LLVMIntSLT, args[0], LLVMConstNull(LLVMTypeOf(args[0])), "");
        return tl_emit_wrap(em, dtype,
                            LLVMBuildSelect(b, negative, LLVMBuildNeg(b, args[0], ""), args[0],
                                            ""));
    }
    if (f == TL_FUNCTION_BITAND)
        return LLVMBuildAnd(b, args[0], args[1], "");
    if (f == TL_FUNCTION_BITOR)
        return LLVMBuildOr(b, args[0], args[1], "");
    if (f == TL_FUNCTION_BITXOR)
        return LLVMBuildXor(b, args[0], args[1], "");
    if (f == TL_FUNCTION_BITNOT)
        return tl_emit_wrap(em, dtype, LLVMBuildNot(b, args[0], ""));
    if (f == TL_FUNCTION_SHL || f == TL_FUNCTION_SHR)
        return tl_emit_wrap(em, dtype, emit_shift(em, f, dtype, args[0], args[1]));
    return NULL;
}

static tl_emit_value emit_call(tl_emitter *em, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_CALL && e->arg_count <= 4);
    tl_emit_value operands[4];
    LLVMValueRef args[4];
    bool varies = false;
    for (int i = 0; i < e->arg_count; i++) {
        operands[i] = tl_emit_expr(em, e->args[i]);
        varies = varies || operands[i].varies;
    }
    for (int i = 0; i < e->arg_count; i++)
        args[i] = varies ? tl_emit_spread(em, operands[i]) : operands[i].llvm;
    tl_dtype dtype = e->args[0]->dtype;
    LLVMValueRef v;
    if (tl_dtype_is_float(dtype)) {
        tl_math m = { em->context,
                      em->module,
                      em->builder,
                      em->target,
                      em->kernel->program->strict,
                      varies ? em->lanes : 1,
                      dtype == TL_F64 ? TL_F64 : TL_F32 };
        v = tl_emit_function(&m, e->u.function, args);
        if (v != NULL && e->dtype == dtype)
            v = tl_emit_round(em, dtype, v);
    } else {
        v = emit_integer_function(em, e->u.function, dtype, args);
    }
    if (v == NULL)
        v = tl_emit_fail(em,
                         tl_emit_vector(tl_emit_value_type(em, e->dtype), varies ? em->lanes : 1),
                         TL_UNSUPPORTED, "there is no code for function %s of %s",
                         tl_function_infos[e->u.function].text, tl_dtype_infos[dtype].text);
    return (tl_emit_value){ v, varies };
}

/* exp in f32 that is rounded to f16 or bf16, where a target has a shorter way to it. */
static tl_emit_value emit_short_exp(tl_emitter *em, const tl_expr *cast)
{
    const tl_expr *e = cast->args[0];
    tl_emit_value v = { NULL, false };
    if ((cast->dtype != TL_F16 && cast->dtype != TL_BF16) || e->kind != TL_EXPR_CALL ||
        e->u.function != TL_FUNCTION_EXP || e->dtype != TL_F32 || em->gpu.phase == NULL)
        return v;
    tl_emit_value x = tl_emit_expr(em, e->args[0]);
    return (tl_emit_value){ tl_emit_gpu_short_exp(em, x.llvm), x.varies };
}

/* A comparison of indices in lanes; NULL: it is none, or of numbers that are too large. */
static LLVMValueRef compare_words(tl_emitter *em, const tl_expr *e)
{
    if (e->dtype != TL_BOOL || e->args[0]->dtype != TL_I64 || !tl_emit_varies(em, e))
        return NULL;
    LLVMValueRef a = tl_emit_words(em, e->args[0]), b = tl_emit_words(em, e->args[1]);
    return a == NULL || b == NULL ? NULL : tl_emit_binary(em, e, e->kind, TL_I32, a, b);
}

static tl_emit_value emit_binary(tl_emitter *em, const tl_expr *e)
{
    LLVMValueRef compared = compare_words(em, e);
    if (compared != NULL)
        return (tl_emit_value){ compared, true };
    tl_emit_value a = tl_emit_expr(em, e->args[0]), b = tl_emit_expr(em, e->args[1]);
    bool varies = a.varies || b.varies;
    LLVMValueRef lhs = varies ? tl_emit_spread(em, a) : a.llvm;
    LLVMValueRef rhs = varies ? tl_emit_spread(em, b) : b.llvm;
    return (tl_emit_value){ tl_emit_binary(em, e, e->kind, e->args[0]->dtype, lhs, rhs), varies };
}

/* `and` and `or` whose second operand may not be read unless the first says so. */
static tl_emit_value emit_logic(tl_emitter *em, const tl_expr *e)
{
    if (!needs_guard(em, e->args[1]))
        return emit_binary(em, e);
    bool is_and = e->kind == TL_EXPR_AND;
    return emit_select(em, e->args[0], is_and ? e->args[1] : tl_bool(em->arena, true),
                       is_and ? tl_bool(em->arena, false) : e->args[1]);
}

/* By way of the words that lie in memory; what is loaded is such a word already. */
static tl_emit_value emit_bits(tl_emitter *em, const tl_expr *e)
{
    const tl_expr *from = e->args[0];
    assert(tl_dtype_has_bits_of(e->dtype, from->dtype));
    tl_emit_value v;
    if (from->kind == TL_EXPR_LOAD) {
        v = tl_emit_load_word(em, from);
    } else {
        v = tl_emit_expr(em, from);
        v.llvm = tl_emit_to_memory(em, from->dtype, v.llvm);
    }
    LLVMTypeRef type =
        tl_emit_vector(tl_emit_memory_type(em, e->dtype), tl_emit_lanes_of(LLVMTypeOf(v.llvm)));
    v.llvm = tl_emit_from_memory(em, e->dtype, LLVMBuildBitCast(em->builder, v.llvm, type, ""));
    return v;
}

/* i64 arithmetic of loop variables is built where they change, not where it is used. */
static bool is_scalar_index(const tl_emitter *em, const tl_expr *e)
{
    return e->dtype == TL_I64 && e->arg_count == 2 && !tl_expr_has_load(e) &&
           !tl_emit_varies(em, e);
}

tl_emit_value tl_emit_expr(tl_emitter *em, const tl_expr *e)
{
    int level;
    if (is_scalar_index(em, e) && e->kind != TL_EXPR_CALL)
        return (tl_emit_value){ tl_emit_scalar_index(em, tl_emit_substitute(em, e), &level),
                                false };
    switch (e->kind) {
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
        return (tl_emit_value){ emit_constant(em, e->dtype, e), false };
    case TL_EXPR_VAR:
        return emit_var(em, e);
    case TL_EXPR_LOAD:
        return tl_emit_load(em, e);
    case TL_EXPR_ADD:
    case TL_EXPR_SUB:
    case TL_EXPR_MUL:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
        return emit_binary(em, e);
    case TL_EXPR_AND:
    case TL_EXPR_OR:
        return emit_logic(em, e);
    case TL_EXPR_NOT: {
        tl_emit_value v = tl_emit_expr(em, e->args[0]);
        return (tl_emit_value){ LLVMBuildNot(em->builder, v.llvm, ""), v.varies };
    }
    case TL_EXPR_SELECT:
        return emit_select(em, e->args[0], e->args[1], e->args[2]);
    case TL_EXPR_CAST: {
        tl_emit_value v = emit_short_exp(em, e);
        tl_dtype from = e->args[0]->dtype;
        if (v.llvm != NULL)
            return v;
        LLVMValueRef words = tl_dtype_is_float(e->dtype) && tl_emit_varies(em, e->args[0])
                                 ? tl_emit_words(em, e->args[0])
                                 : NULL;
        if (words != NULL)
            return (tl_emit_value){ tl_emit_cast(em, e->dtype, TL_I32, words), true };
        v = tl_emit_expr(em, e->args[0]);
        return (tl_emit_value){ tl_emit_cast(em, e->dtype, from, v.llvm), v.varies };
    }
    case TL_EXPR_BITS:
        return emit_bits(em, e);
    case TL_EXPR_CALL:
        return emit_call(em, e);
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return (tl_emit_value){ tl_emit_fail(em, em->i64, TL_BAD_IR, "an expression of no kind"),
                            false };
}
