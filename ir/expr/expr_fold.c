/* ir/expr/expr_fold.c: operations on constants, and the algebra of and / or. Integers wrap to their
 * dtype, floats round to it after each operation, as the interpreter and the machine do. */
#include <assert.h>
#include "ir/expr/expr_private.h"
#include "runtime/base/checked.h"

static const tl_expr *fold_float(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, double a,
                                 double b)
{
    bool nan = a != a || b != b;
    switch (kind) {
    case TL_EXPR_ADD:
        return tl_float(arena, dtype, a + b);
    case TL_EXPR_SUB:
        return tl_float(arena, dtype, a - b);
    case TL_EXPR_MUL:
        return tl_float(arena, dtype, a * b);
    case TL_EXPR_DIV:
        return tl_float(arena, dtype, a / b);
    case TL_EXPR_MIN:
        return tl_float(arena, dtype, nan ? __builtin_nan("") : a < b ? a : b);
    case TL_EXPR_MAX:
        return tl_float(arena, dtype, nan ? __builtin_nan("") : a > b ? a : b);
    case TL_EXPR_LT:
        return tl_bool(arena, a < b);
    case TL_EXPR_LE:
        return tl_bool(arena, a <= b);
    case TL_EXPR_EQ:
        return tl_bool(arena, a == b);
    case TL_EXPR_NE:
        return tl_bool(arena, a != b);
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

static const tl_expr *fold_division(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, int64_t a,
                                    int64_t b)
{
    assert(kind == TL_EXPR_DIV || kind == TL_EXPR_FLOORDIV || kind == TL_EXPR_FLOORMOD);
    if (b == 0)
        return NULL;
    if (dtype == TL_U64) {
        uint64_t x = (uint64_t)a, y = (uint64_t)b;
        return tl_int_of(arena, dtype, (int64_t)(kind == TL_EXPR_FLOORMOD ? x % y : x / y));
    }
    if (b == -1) /* the one quotient that does not fit wraps */
        return tl_int_of(arena, dtype, kind == TL_EXPR_FLOORMOD ? 0 : tl_wrap_mul(a, -1));
    if (kind == TL_EXPR_DIV)
        return tl_int_of(arena, dtype, a / b);
    return tl_int_of(arena, dtype,
                     kind == TL_EXPR_FLOORDIV ? tl_floordiv(a, b) : tl_floormod(a, b));
}

static const tl_expr *fold_int(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, int64_t a,
                               int64_t b)
{
    bool less = dtype == TL_U64 ? (uint64_t)a < (uint64_t)b : a < b;
    switch (kind) {
    case TL_EXPR_ADD:
        return tl_int_of(arena, dtype, tl_wrap_add(a, b));
    case TL_EXPR_SUB:
        return tl_int_of(arena, dtype, tl_wrap_add(a, tl_wrap_mul(b, -1)));
    case TL_EXPR_MUL:
        return tl_int_of(arena, dtype, tl_wrap_mul(a, b));
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
        return fold_division(arena, kind, dtype, a, b);
    case TL_EXPR_MIN:
        return tl_int_of(arena, dtype, less ? a : b);
    case TL_EXPR_MAX:
        return tl_int_of(arena, dtype, less ? b : a);
    case TL_EXPR_LT:
        return tl_bool(arena, less);
    case TL_EXPR_LE:
        return tl_bool(arena, less || a == b);
    case TL_EXPR_EQ:
        return tl_bool(arena, a == b);
    case TL_EXPR_NE:
        return tl_bool(arena, a != b);
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
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

const tl_expr *tl_fold_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                              const tl_expr *b)
{
    assert(a->kind == b->kind && a->dtype == b->dtype);
    assert(tl_is_constant(a) && tl_is_constant(b));
    if (a->kind == TL_EXPR_FLOAT)
        return fold_float(arena, kind, a->dtype, a->u.number, b->u.number);
    return fold_int(arena, kind, a->dtype, a->u.value, b->u.value);
}

const tl_expr *tl_fold_cast(tl_arena *arena, tl_dtype to, const tl_expr *a)
{
    assert(tl_is_constant(a) && to < TL_DTYPE_COUNT);
    tl_number from = { .i = a->u.value };
    if (a->kind == TL_EXPR_FLOAT)
        from.f = a->u.number;
    tl_number value = tl_number_cast(to, a->dtype, from);
    return tl_dtype_is_float(to) ? tl_float(arena, to, value.f) : tl_int_of(arena, to, value.i);
}

/* NULL where a constant of the dtype is another number: a NaN of its own, or one below the smallest normal number. */
const tl_expr *tl_fold_bits(tl_arena *arena, tl_dtype to, const tl_expr *a)
{
    assert(tl_is_constant(a) && tl_dtype_has_bits_of(to, a->dtype));
    tl_number from = { .i = a->u.value };
    if (a->kind == TL_EXPR_FLOAT)
        from.f = a->u.number;
    tl_number value = tl_number_bits(to, a->dtype, from);
    if (!tl_dtype_is_float(to))
        return tl_int_of(arena, to, value.i);
    return tl_number_flush(to, value.f) == value.f ? tl_float(arena, to, value.f) : NULL;
}

/* Whether `part` is one of the operands of the chain of `kind` that ends in `chain`. */
static bool contains(const tl_expr *chain, tl_expr_kind kind, const tl_expr *part)
{
    while (chain->kind == kind) {
        if (tl_expr_equal(chain->args[1], part))
            return true;
        chain = chain->args[0];
    }
    return tl_expr_equal(chain, part);
}

/* x and true = x, x and false = false, x and x = x; chains lean to the left. */
const tl_expr *tl_fold_logic(tl_arena *arena, tl_expr_kind kind, const tl_expr *a, const tl_expr *b)
{
    assert(kind == TL_EXPR_AND || kind == TL_EXPR_OR);
    assert(a->dtype == TL_BOOL && b->dtype == TL_BOOL);
    bool neutral = kind == TL_EXPR_AND;
    if (a->kind == TL_EXPR_INT)
        return (a->u.value != 0) == neutral ? b : a;
    if (b->kind == TL_EXPR_INT)
        return (b->u.value != 0) == neutral ? a : b;
    if (contains(a, kind, b))
        return a;
    if (b->kind == kind)
        return tl_fold_logic(arena, kind, tl_fold_logic(arena, kind, a, b->args[0]), b->args[1]);
    return tl_expr_node2(arena, kind, TL_BOOL, a, b);
}
