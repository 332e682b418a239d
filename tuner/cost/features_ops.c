/* tuner/cost/features_ops.c: counts the arithmetic of a store, not that of its indices. */
#include "tuner/cost/features_private.h"

/* The column of an operation: of floats, and of everything else. NONE: it costs nothing. */
enum { NONE = -1 };
static const struct {
    int of_float, of_int;
} columns[TL_EXPR_KIND_COUNT] = {
#define SAME(kind, name) [TL_EXPR_##kind] = { TL_FEATURE_##name, TL_FEATURE_##name },
#define BOTH(kind, name) [TL_EXPR_##kind] = { TL_FEATURE_float_##name, TL_FEATURE_int_##name },
#define NOTHING(kind)    [TL_EXPR_##kind] = { NONE, NONE },
#include "tuner/cost/expression_columns.def"
    SAME(CAST, cast_op) NOTHING(BITS)
#undef SAME
#undef BOTH
#undef NOTHING
};

static bool is_float(const tl_expr *e)
{
    return tl_dtype_is_float(e->dtype);
}

static void count_one(const tl_expr *e, tl_outline_ops *out)
{
    const tl_expr *operand = e->arg_count > 0 ? e->args[0] : e;
    bool real = is_float(operand);
    int column = real ? columns[e->kind].of_float : columns[e->kind].of_int;
    if (column == NONE)
        return;
    out->op[column]++;
    out->flops += real;
}

/* An addition of a product is one operation. */
static bool is_mad(const tl_expr *e)
{
    return (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_SUB) && is_float(e) &&
           (e->args[0]->kind == TL_EXPR_MUL || e->args[1]->kind == TL_EXPR_MUL);
}

static void count_mad(tl_outline_ops *out)
{
    out->op[TL_FEATURE_float_mad]++;
    out->flops += 2;
}

static void count(const tl_expr *e, tl_outline_ops *out)
{
    if (e->kind == TL_EXPR_LOAD)
        return;
    if (is_mad(e)) {
        const tl_expr *product = e->args[1]->kind == TL_EXPR_MUL ? e->args[1] : e->args[0];
        count_mad(out);
        count(product == e->args[1] ? e->args[0] : e->args[1], out);
        count(product->args[0], out);
        count(product->args[1], out);
        return;
    }
    /* which arm it is loops know by their part (codegen/lower/partition_loops.c), all but a few at the border */
    bool is_settled = e->kind == TL_EXPR_SELECT && tl_expr_is_range_test(e->args[0]);
    if (!is_settled)
        count_one(e, out);
    for (int i = is_settled; i < e->arg_count; i++)
        count(e->args[i], out);
}

static const int combiner_columns[TL_COMBINER_COUNT][2] = {
    [TL_COMBINER_NONE] = { NONE, NONE },
    [TL_COMBINER_SUM] = { TL_FEATURE_float_addsub, TL_FEATURE_int_addsub },
    [TL_COMBINER_PROD] = { TL_FEATURE_float_mul, TL_FEATURE_int_mul },
    [TL_COMBINER_MIN] = { TL_FEATURE_float_cmp, TL_FEATURE_int_cmp },
    [TL_COMBINER_MAX] = { TL_FEATURE_float_cmp, TL_FEATURE_int_cmp },
    [TL_COMBINER_ALL] = { TL_FEATURE_bool_op, TL_FEATURE_bool_op },
    [TL_COMBINER_ANY] = { TL_FEATURE_bool_op, TL_FEATURE_bool_op },
    [TL_COMBINER_ARGMIN] = { TL_FEATURE_float_cmp, TL_FEATURE_int_cmp },
    [TL_COMBINER_ARGMAX] = { TL_FEATURE_float_cmp, TL_FEATURE_int_cmp },
};

void tl_outline_count(const tl_block *block, const tl_store *store, tl_outline_ops *out)
{
    const tl_expr *value = store->value;
    *out = (tl_outline_ops){ 0 };
    int column = combiner_columns[block->combiner][is_float(value) ? 0 : 1];
    if (block->combiner == TL_COMBINER_SUM && is_float(value) && value->kind == TL_EXPR_MUL) {
        count_mad(out);
        count(value->args[0], out);
        count(value->args[1], out);
        return;
    }
    count(value, out);
    if (column == NONE)
        return;
    out->op[column]++;
    out->flops += is_float(value);
}
