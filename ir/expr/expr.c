/* ir/expr/expr.c: the nodes of expressions and their constructors. What i64 operands become is decided
 * in ir/expr/index.c, what constants become in ir/expr/expr_fold.c. */
#include "ir/expr/expr.h"
#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include "ir/expr/buffer.h"
#include "ir/expr/expr_private.h"
#include "ir/expr/index.h"

const tl_expr_info tl_expr_infos[TL_EXPR_KIND_COUNT] = {
#define EXPR(kind, text, arity, commutes, payload) \
    [TL_EXPR_##kind] = { #kind, text, arity, commutes, TL_PAYLOAD_##payload },
#include "ir/expr/expr_kinds.def"
#undef EXPR
};

const tl_function_info tl_function_infos[TL_FUNCTION_COUNT] = {
#define FUNCTION(name, text, arity, operands, result) \
    [TL_FUNCTION_##name] = { #name, text, arity, TL_OPERANDS_##operands, TL_RESULT_##result },
#include "ir/expr/functions.def"
#undef FUNCTION
};

bool tl_function_from_text(const char *text, tl_function *out)
{
    for (int f = 0; f < TL_FUNCTION_COUNT; f++)
        if (text[0] == tl_function_infos[f].text[0] &&
            strcmp(tl_function_infos[f].text, text) == 0) {
            *out = (tl_function)f;
            return true;
        }
    return false;
}

/* ---- nodes ---- */

static uint32_t mix(uint32_t hash, uint32_t word)
{
    hash = (hash ^ word) * 0x9E3779B1u;
    return hash ^ (hash >> 15);
}

static uint32_t mix64(uint32_t hash, uint64_t word)
{
    return mix(mix(hash, (uint32_t)word), (uint32_t)(word >> 32));
}

static uint32_t at_most(uint32_t count)
{
    return count < TL_EXPR_COUNTLESS ? count : TL_EXPR_COUNTLESS;
}

tl_expr *tl_expr_node(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, int arg_count,
                      const tl_expr *const *args)
{
    assert(arg_count >= 0 && (arg_count == 0 || args != NULL));
    assert(kind < TL_EXPR_KIND_COUNT && dtype < TL_DTYPE_COUNT);
    size_t size = sizeof(tl_expr) + (size_t)arg_count * sizeof(const tl_expr *);
    tl_expr *e = tl_arena_alloc(arena, size, _Alignof(tl_expr));
    const tl_expr **copy = (const tl_expr **)(e + 1);
    uint32_t hash = mix((uint32_t)kind + 1, (uint32_t)dtype), nodes = 1, below = 0;
    for (int i = 0; i < arg_count; i++) {
        copy[i] = args[i];
        hash = mix(hash, args[i]->hash);
        nodes = at_most(nodes + args[i]->size);
        below = args[i]->depth > below ? args[i]->depth : below;
    }
    e->kind = kind;
    e->dtype = dtype;
    e->hash = hash;
    e->size = nodes;
    e->depth = at_most(below + 1);
    e->arg_count = arg_count;
    e->args = copy;
    return e;
}

tl_expr *tl_expr_node2(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, const tl_expr *a,
                       const tl_expr *b)
{
    const tl_expr *args[2] = { a, b };
    return tl_expr_node(arena, kind, dtype, 2, args);
}

/* Every variable gets the next number: among variables of one name, the older comes first. */
static uint32_t next_var_id(void)
{
    static atomic_uint last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

tl_var *tl_var_make(tl_arena *arena, const char *name, int64_t min, int64_t max)
{
    assert(name != NULL && min <= max);
    tl_var *var = TL_NEW(arena, tl_var);
    var->name = tl_arena_strdup(arena, name);
    var->min = min;
    var->max = max;
    var->id = next_var_id();
    return var;
}

tl_var *tl_var_of_extent(tl_arena *arena, const char *name, const tl_expr *extent)
{
    int64_t count = tl_expr_range(extent).max;
    if (count == INT64_MAX)
        return tl_var_make(arena, name, 0, INT64_MAX); /* unknown */
    return tl_var_make(arena, name, 0, count < 1 ? 0 : count - 1);
}

/* ---- leaves ---- */

/* `value` as dtype holds it: wrapped to its width, bool to 0 or 1. */
static int64_t wrap_int(tl_dtype dtype, int64_t value)
{
    int bits = tl_dtype_infos[dtype].digits;
    switch (tl_dtype_infos[dtype].class) {
    case TL_CLASS_BOOL:
        return value != 0;
    case TL_CLASS_INT:
        if (bits == 64)
            return value;
        value = (int64_t)((uint64_t)value & ((UINT64_C(1) << bits) - 1));
        return value >= INT64_C(1) << (bits - 1) ? value - (INT64_C(1) << bits) : value;
    case TL_CLASS_UINT:
        return bits == 64 ? value : (int64_t)((uint64_t)value & ((UINT64_C(1) << bits) - 1));
    case TL_CLASS_FLOAT:
        break;
    }
    return value;
}

const tl_expr *tl_int_of(tl_arena *arena, tl_dtype dtype, int64_t value)
{
    assert(!tl_dtype_is_float(dtype));
    tl_expr *e = tl_expr_node(arena, TL_EXPR_INT, dtype, 0, NULL);
    e->u.value = wrap_int(dtype, value);
    e->hash = mix64(e->hash, (uint64_t)e->u.value);
    return e;
}

const tl_expr *tl_int(tl_arena *arena, int64_t value)
{
    return tl_int_of(arena, TL_I64, value);
}

const tl_expr *tl_bool(tl_arena *arena, bool value)
{
    return tl_int_of(arena, TL_BOOL, value);
}

const tl_expr *tl_float(tl_arena *arena, tl_dtype dtype, double number)
{
    assert(tl_dtype_is_float(dtype));
    uint64_t element = 0, bits;
    tl_number_store(dtype, &element, 0, (tl_number){ .f = number });
    number = tl_number_flush(dtype, tl_number_load(dtype, &element, 0).f);
    if (number != number)
        number = __builtin_nan(""); /* one NaN, so that equal texts are equal nodes */
    memcpy(&bits, &number, sizeof bits);

    tl_expr *e = tl_expr_node(arena, TL_EXPR_FLOAT, dtype, 0, NULL);
    e->u.number = number;
    e->hash = mix64(e->hash, bits);
    return e;
}

const tl_expr *tl_constant(tl_arena *arena, tl_dtype dtype, double number)
{
    if (tl_dtype_is_float(dtype))
        return tl_float(arena, dtype, number);
    return tl_int_of(arena, dtype, tl_number_cast(TL_I64, TL_F64, (tl_number){ .f = number }).i);
}

const tl_expr *tl_ref(tl_arena *arena, const tl_var *var)
{
    assert(var != NULL);
    tl_expr *e = tl_expr_node(arena, TL_EXPR_VAR, TL_I64, 0, NULL);
    e->u.var = var;
    e->hash = mix64(e->hash, var->id);
    return e;
}

const tl_expr *tl_load(tl_arena *arena, const tl_buffer *buffer, const tl_expr *const *indices)
{
    for (int i = 0; i < buffer->rank; i++)
        assert(indices[i]->dtype == TL_I64);
    tl_expr *e = tl_expr_node(arena, TL_EXPR_LOAD, buffer->dtype, buffer->rank, indices);
    e->u.buffer = buffer;
    e->hash = mix64(e->hash, (uint64_t)(uintptr_t)buffer >> 4);
    return e;
}

/* ---- operations ---- */

static const tl_expr *divide_index(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    int64_t divisor;
    if (tl_const_int(b, &divisor) && divisor > 0 && tl_expr_range(a).min >= 0)
        return tl_index_binary(arena, TL_EXPR_FLOORDIV, a, b);
    return tl_expr_node2(arena, TL_EXPR_DIV, TL_I64, a, b);
}

const tl_expr *tl_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a, const tl_expr *b)
{
    assert(a->dtype == b->dtype);
    assert(tl_expr_infos[kind].arity == 2);
    if (kind == TL_EXPR_AND || kind == TL_EXPR_OR)
        return tl_fold_logic(arena, kind, a, b);
    if (tl_is_constant(a) && tl_is_constant(b)) {
        const tl_expr *folded = tl_fold_binary(arena, kind, a, b);
        if (folded != NULL)
            return folded;
    }
    if (tl_is_compare(kind)) {
        if (a->dtype == TL_I64)
            return tl_index_compare(arena, kind, a, b);
        return tl_expr_node2(arena, kind, TL_BOOL, a, b);
    }
    assert(a->dtype != TL_BOOL);
    if (a->dtype == TL_I64)
        return kind == TL_EXPR_DIV ? divide_index(arena, a, b) : tl_index_binary(arena, kind, a, b);
    return tl_expr_node2(arena, kind, a->dtype, a, b);
}

const tl_expr *tl_not(tl_arena *arena, const tl_expr *a)
{
    assert(a->dtype == TL_BOOL);
    if (a->kind == TL_EXPR_INT)
        return tl_bool(arena, a->u.value == 0);
    if (a->kind == TL_EXPR_NOT)
        return a->args[0];
    if (tl_is_compare(a->kind) && !tl_dtype_is_float(a->args[0]->dtype)) { /* no NaN: exact */
        const tl_expr *x = a->args[0], *y = a->args[1];
        if (a->kind == TL_EXPR_LT)
            return tl_le(arena, y, x);
        if (a->kind == TL_EXPR_LE)
            return tl_lt(arena, y, x);
        return a->kind == TL_EXPR_EQ ? tl_ne(arena, x, y) : tl_eq(arena, x, y);
    }
    return tl_expr_node(arena, TL_EXPR_NOT, TL_BOOL, 1, &a);
}

const tl_expr *tl_select(tl_arena *arena, const tl_expr *condition, const tl_expr *yes,
                         const tl_expr *no)
{
    assert(condition->dtype == TL_BOOL && yes->dtype == no->dtype);
    if (condition->kind == TL_EXPR_INT)
        return condition->u.value ? yes : no;
    if (tl_expr_equal(yes, no))
        return yes;
    const tl_expr *args[3] = { condition, yes, no };
    return tl_expr_node(arena, TL_EXPR_SELECT, yes->dtype, 3, args);
}

const tl_expr *tl_cast(tl_arena *arena, tl_dtype to, const tl_expr *a)
{
    assert(to < TL_DTYPE_COUNT);
    if (a->dtype == to)
        return a;
    if (tl_is_constant(a))
        return tl_fold_cast(arena, to, a);
    return tl_expr_node(arena, TL_EXPR_CAST, to, 1, &a);
}

const tl_expr *tl_bits(tl_arena *arena, tl_dtype to, const tl_expr *a)
{
    assert(tl_dtype_has_bits_of(to, a->dtype));
    if (a->dtype == to)
        return a;
    if (a->kind == TL_EXPR_BITS) { /* there and back, or on */
        const tl_expr *x = a->args[0];
        return tl_dtype_has_bits_of(to, x->dtype) ? tl_bits(arena, to, x) : tl_cast(arena, to, x);
    }
    const tl_expr *folded = tl_is_constant(a) ? tl_fold_bits(arena, to, a) : NULL;
    return folded != NULL ? folded : tl_expr_node(arena, TL_EXPR_BITS, to, 1, &a);
}

const tl_expr *tl_call(tl_arena *arena, tl_function function, const tl_expr *const *args)
{
    assert(function < TL_FUNCTION_COUNT);
    bool gives_bool = function == TL_FUNCTION_ISNAN || function == TL_FUNCTION_ISINF;
    tl_expr *e = tl_expr_node(arena, TL_EXPR_CALL, gives_bool ? TL_BOOL : args[0]->dtype,
                              tl_function_infos[function].arity, args);
    e->u.function = function;
    e->hash = mix(e->hash, (uint32_t)function);
    return e;
}

const tl_expr *tl_call1(tl_arena *arena, tl_function function, const tl_expr *a)
{
    assert(tl_function_infos[function].arity == 1);
    return tl_call(arena, function, &a);
}

const tl_expr *tl_call2(tl_arena *arena, tl_function function, const tl_expr *a, const tl_expr *b)
{
    assert(tl_function_infos[function].arity == 2);
    const tl_expr *args[2] = { a, b };
    return tl_call(arena, function, args);
}

const tl_expr *tl_expr_with_args(tl_arena *arena, const tl_expr *e, const tl_expr *const *args)
{
    switch (e->kind) {
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_KIND_COUNT:
        break;
    case TL_EXPR_LOAD:
        return tl_load(arena, e->u.buffer, args);
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
    case TL_EXPR_AND:
    case TL_EXPR_OR:
        return tl_binary(arena, e->kind, args[0], args[1]);
    case TL_EXPR_NOT:
        return tl_not(arena, args[0]);
    case TL_EXPR_SELECT:
        return tl_select(arena, args[0], args[1], args[2]);
    case TL_EXPR_CAST:
        return tl_cast(arena, e->dtype, args[0]);
    case TL_EXPR_BITS:
        return tl_bits(arena, e->dtype, args[0]);
    case TL_EXPR_CALL:
        return tl_call(arena, e->u.function, args);
    }
    return e;
}

/* ---- short forms ---- */

const tl_expr *tl_add(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_ADD, a, b);
}

const tl_expr *tl_sub(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_SUB, a, b);
}

const tl_expr *tl_mul(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_MUL, a, b);
}

const tl_expr *tl_div(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_DIV, a, b);
}

const tl_expr *tl_floordiv_expr(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_FLOORDIV, a, b);
}

const tl_expr *tl_floormod_expr(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_FLOORMOD, a, b);
}

const tl_expr *tl_min(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_MIN, a, b);
}

const tl_expr *tl_max(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_MAX, a, b);
}

const tl_expr *tl_lt(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_LT, a, b);
}

const tl_expr *tl_le(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_LE, a, b);
}

const tl_expr *tl_gt(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_LT, b, a);
}

const tl_expr *tl_ge(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_LE, b, a);
}

const tl_expr *tl_eq(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_EQ, a, b);
}

const tl_expr *tl_ne(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_binary(arena, TL_EXPR_NE, a, b);
}

const tl_expr *tl_and(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return tl_binary(arena, TL_EXPR_AND, a, b);
}

const tl_expr *tl_or(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return tl_binary(arena, TL_EXPR_OR, a, b);
}

const tl_expr *tl_addi(tl_arena *arena, const tl_expr *a, int64_t b)
{
    return tl_binary(arena, TL_EXPR_ADD, a, tl_int(arena, b));
}

const tl_expr *tl_muli(tl_arena *arena, const tl_expr *a, int64_t b)
{
    return tl_binary(arena, TL_EXPR_MUL, a, tl_int(arena, b));
}
