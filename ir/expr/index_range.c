/* ir/expr/index_range.c: intervals. A least value INT64_MIN or a greatest value INT64_MAX means that
 * nothing is known; whatever does not fit into 64 bits becomes that. */
#include <assert.h>
#include "ir/expr/buffer.h"
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

tl_range tl_range_add(tl_range a, tl_range b)
{
    tl_range r = tl_range_unknown();
    if (a.min != INT64_MIN && b.min != INT64_MIN && tl_add_overflows(a.min, b.min, &r.min))
        r.min = INT64_MIN;
    if (a.max != INT64_MAX && b.max != INT64_MAX && tl_add_overflows(a.max, b.max, &r.max))
        r.max = INT64_MAX;
    return r;
}

tl_range tl_range_scale(tl_range a, int64_t c)
{
    tl_range r = tl_range_unknown();
    if (c == 0)
        return (tl_range){ 0, 0 };
    bool min_known = a.min != INT64_MIN, max_known = a.max != INT64_MAX;
    if (c > 0) {
        if (min_known && tl_mul_overflows(a.min, c, &r.min))
            r.min = INT64_MIN;
        if (max_known && tl_mul_overflows(a.max, c, &r.max))
            r.max = INT64_MAX;
    } else {
        if (max_known && tl_mul_overflows(a.max, c, &r.min))
            r.min = INT64_MIN;
        if (min_known && tl_mul_overflows(a.min, c, &r.max))
            r.max = INT64_MAX;
    }
    return r;
}

static tl_range multiply(tl_range a, tl_range b)
{
    if (!tl_range_known(a) || !tl_range_known(b)) {
        if (a.min < 0 || b.min < 0)
            return tl_range_unknown();
        tl_range r = { 0, INT64_MAX };
        if (tl_mul_overflows(a.min, b.min, &r.min))
            r.min = 0;
        return r;
    }
    const int64_t x[4] = { a.min, a.min, a.max, a.max }, y[4] = { b.min, b.max, b.min, b.max };
    tl_range r = { INT64_MAX, INT64_MIN };
    for (int i = 0; i < 4; i++) {
        int64_t p = 0;
        if (tl_mul_overflows(x[i], y[i], &p))
            return tl_range_unknown();
        r.min = tl_min64(r.min, p);
        r.max = tl_max64(r.max, p);
    }
    return r;
}

/* a // b and a / b for b > 0: monotone in a, and towards 0 in b. */
static tl_range divide(tl_range a, tl_range b, bool floors)
{
    tl_range r = tl_range_unknown();
    if (b.min <= 0)
        return r;
    if (a.min != INT64_MIN) {
        int64_t by = a.min < 0 ? b.min : b.max; /* an unknown b.max is large enough */
        r.min = floors ? tl_floordiv(a.min, by) : a.min / by;
    }
    if (a.max != INT64_MAX) {
        int64_t by = a.max < 0 ? b.max : b.min;
        r.max = floors ? tl_floordiv(a.max, by) : a.max / by;
    }
    return r;
}

static tl_range modulo(tl_range a, tl_range b)
{
    if (b.min <= 0)
        return tl_range_unknown();
    tl_range r = { 0, b.max == INT64_MAX ? INT64_MAX : b.max - 1 };
    if (a.min >= 0 && a.max < b.min) /* never wraps around */
        return a;
    if (a.min >= 0)
        r.max = tl_min64(r.max, a.max);
    else if (b.min == b.max && tl_range_known(a) &&
             tl_floordiv(a.min, b.min) == tl_floordiv(a.max, b.min))
        return (tl_range){ tl_floormod(a.min, b.min), tl_floormod(a.max, b.min) };
    return r;
}

/* A u64 is held as its bit pattern, which may be any. */
static tl_range of_dtype(tl_dtype d)
{
    const tl_dtype_info *info = &tl_dtype_infos[d];
    if (tl_dtype_is_float(d) || info->largest > INT64_MAX)
        return tl_range_unknown();
    return (tl_range){ info->least, (int64_t)info->largest };
}

static tl_range of_var(const tl_var *var, const tl_var_range *ranges, int count)
{
    for (int i = 0; i < count; i++)
        if (ranges[i].var == var)
            return ranges[i].range;
    return (tl_range){ var->min, var->max };
}

static tl_range join(tl_range a, tl_range b)
{
    return (tl_range){ tl_min64(a.min, b.min), tl_max64(a.max, b.max) };
}

tl_range tl_expr_range_with(const tl_expr *e, const tl_var_range *ranges, int count)
{
    assert(count == 0 || ranges != NULL);
    if (e->kind == TL_EXPR_INT)
        return (tl_range){ e->u.value, e->u.value };
    if (e->kind == TL_EXPR_CAST) {
        tl_range from = of_dtype(e->args[0]->dtype), to = of_dtype(e->dtype);
        bool fits = to.min <= from.min && from.max <= to.max;
        return fits && !tl_dtype_is_float(e->args[0]->dtype) && e->args[0]->dtype != TL_U64 ? from
                                                                                            : to;
    }
    if (e->dtype != TL_I64)
        return of_dtype(e->dtype);

    tl_range a = tl_range_unknown(), b = a;
    if (e->arg_count == 2) {
        a = tl_expr_range_with(e->args[0], ranges, count);
        b = tl_expr_range_with(e->args[1], ranges, count);
    }
    switch (e->kind) {
    case TL_EXPR_VAR:
        return of_var(e->u.var, ranges, count);
    case TL_EXPR_ADD:
        return tl_range_add(a, b);
    case TL_EXPR_SUB:
        return tl_range_add(a, tl_range_scale(b, -1));
    case TL_EXPR_MUL:
        return e->args[1]->kind == TL_EXPR_INT ? tl_range_scale(a, e->args[1]->u.value)
                                               : multiply(a, b);
    case TL_EXPR_DIV:
        return divide(a, b, false);
    case TL_EXPR_FLOORDIV:
        return divide(a, b, true);
    case TL_EXPR_FLOORMOD:
        return modulo(a, b);
    case TL_EXPR_MIN:
        return (tl_range){ tl_min64(a.min, b.min), tl_min64(a.max, b.max) };
    case TL_EXPR_MAX:
        return (tl_range){ tl_max64(a.min, b.min), tl_max64(a.max, b.max) };
    case TL_EXPR_SELECT:
        return join(tl_expr_range_with(e->args[1], ranges, count),
                    tl_expr_range_with(e->args[2], ranges, count));
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_LOAD:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return tl_range_unknown(); /* loads and calls: anything */
}

tl_range tl_expr_range(const tl_expr *e)
{
    return tl_expr_range_with(e, NULL, 0);
}

tl_range tl_sum_range(const tl_sum *s, const tl_var_range *ranges, int count)
{
    tl_range r = { s->constant, s->constant };
    for (int i = 0; i < s->count; i++)
        r = tl_range_add(r, tl_range_scale(tl_expr_range_with(s->addends[i].term, ranges, count),
                                           s->addends[i].coefficient));
    return s->overflow ? tl_range_unknown() : r;
}

/* ---- values ---- */

static bool apply(tl_expr_kind kind, int64_t a, int64_t b, int64_t *out)
{
    bool division = kind == TL_EXPR_DIV || kind == TL_EXPR_FLOORDIV || kind == TL_EXPR_FLOORMOD;
    if (division && (b == 0 || (a == INT64_MIN && b == -1)))
        return false;
    switch (kind) {
    case TL_EXPR_ADD:
        *out = tl_wrap_add(a, b);
        return true;
    case TL_EXPR_SUB:
        *out = tl_wrap_add(a, tl_wrap_mul(b, -1));
        return true;
    case TL_EXPR_MUL:
        *out = tl_wrap_mul(a, b);
        return true;
    case TL_EXPR_DIV:
        *out = a / b;
        return true;
    case TL_EXPR_FLOORDIV:
        *out = tl_floordiv(a, b);
        return true;
    case TL_EXPR_FLOORMOD:
        *out = tl_floormod(a, b);
        return true;
    case TL_EXPR_MIN:
        *out = tl_min64(a, b);
        return true;
    case TL_EXPR_MAX:
        *out = tl_max64(a, b);
        return true;
    case TL_EXPR_LT:
        *out = a < b;
        return true;
    case TL_EXPR_LE:
        *out = a <= b;
        return true;
    case TL_EXPR_EQ:
        *out = a == b;
        return true;
    case TL_EXPR_NE:
        *out = a != b;
        return true;
    case TL_EXPR_AND:
        *out = a && b;
        return true;
    case TL_EXPR_OR:
        *out = a || b;
        return true;
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
    return false;
}

bool tl_expr_evaluate(const tl_expr *e, tl_var_value *value, void *context, int64_t *out)
{
    int64_t a, b;
    if (e->dtype != TL_I64 && e->dtype != TL_BOOL)
        return false;
    switch (e->kind) {
    case TL_EXPR_INT:
        *out = e->u.value;
        return true;
    case TL_EXPR_VAR:
        return value(e->u.var, out, context);
    case TL_EXPR_NOT:
        if (!tl_expr_evaluate(e->args[0], value, context, &a))
            return false;
        *out = !a;
        return true;
    case TL_EXPR_SELECT:
        return tl_expr_evaluate(e->args[0], value, context, &a) &&
               tl_expr_evaluate(e->args[a ? 1 : 2], value, context, out);
    case TL_EXPR_FLOAT:
    case TL_EXPR_LOAD:
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
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return e->arg_count == 2 && tl_expr_evaluate(e->args[0], value, context, &a) &&
           tl_expr_evaluate(e->args[1], value, context, &b) && apply(e->kind, a, b, out);
}
