/* frontend/import/import_elementwise.c: operators that work element by element, with or without broadcasting. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "frontend/import/import_rules.h"

tl_status tl_import_as(tl_onnx_call *c, tl_op op, int inputs)
{
    int count = c->input_count < inputs ? c->input_count : inputs;
    tl_node *n = tl_onnx_emit_node(c, op, count, c->inputs);
    tl_copy_attributes(c, n);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_plain(tl_onnx_call *c)
{
    return tl_import_as(c, (tl_op)c->rule->op, c->rule->max_inputs);
}

tl_status tl_need_inputs(tl_onnx_call *c, unsigned which)
{
    for (int i = 0; which >> i != 0; i++)
        if ((which >> i & 1) != 0 && tl_call_input(c, i) == NULL)
            return tl_call_bad(c, "input %d is required", i);
    return TL_OK;
}

tl_status tl_need_rank(tl_onnx_call *c, const tl_value *v, int *out)
{
    *out = v->shape.rank;
    if (v->shape.rank < 0)
        return tl_call_unknown(c, "the rank of an input is not known when the model is read");
    return TL_OK;
}

tl_status tl_need_shape(tl_onnx_call *c, const tl_value *v)
{
    if (!tl_shape_is_static(&v->shape))
        return tl_call_unknown(c, "the shape of an input is not known when the model is read");
    return TL_OK;
}

tl_status tl_need_dtype(tl_onnx_call *c, const tl_value *v)
{
    if (!v->dtype_known)
        return tl_call_unknown(c, "the dtype of an input is not known when the model is read");
    return TL_OK;
}

void tl_copy_attributes(const tl_onnx_call *c, tl_node *n)
{
    for (int i = 0; i < c->attr_count; i++) {
        const Onnx__AttributeProto *a = c->attrs[i];
        tl_attr_type type;
        bool is_dtype;
        if (!tl_op_attribute_type(n->op, a->name, &type, &is_dtype) || is_dtype)
            continue;
        if (type == TL_ATTR_INT)
            tl_attr_set_int(c->graph, n, a->name, a->i);
        else if (type == TL_ATTR_FLOAT)
            tl_attr_set_float(c->graph, n, a->name, (double)a->f);
        else if (type == TL_ATTR_INTS)
            tl_attr_set_ints(c->graph, n, a->name, a->ints, (int)a->n_ints);
        else if (type == TL_ATTR_STRING)
            tl_attr_set_string(c->graph, n, a->name, tl_call_string(c, a->name, ""));
    }
}

tl_value *tl_onnx_emit_channel_vector(tl_onnx_call *c, tl_value *v, int rank)
{
    int64_t axes[TL_MAX_RANK];
    for (int i = 1; i + 1 < rank; i++)
        axes[i - 1] = i;
    return rank > 2 ? tl_onnx_emit_ints(c, TL_OP_UNSQUEEZE, v, "axes", axes, rank - 2) : v;
}

/* b's axes start at axis `axis` of a (the default: its last ones); its shape is that of these axes, or 1. */
static tl_status place_second(tl_onnx_call *c, tl_value *a, tl_value **b)
{
    int a_rank, b_rank;
    if (tl_call_int(c, "broadcast", 0) == 0 || !tl_call_has(c, "axis"))
        return TL_OK;
    TL_TRY(tl_need_rank(c, a, &a_rank));
    TL_TRY(tl_need_rank(c, *b, &b_rank));
    int64_t axis = tl_call_int(c, "axis", 0);
    axis = axis < 0 ? axis + a_rank : axis;
    if (axis < 0 || axis > a_rank || axis + b_rank > a_rank)
        return tl_call_bad(c, "axis %lld does not place %d axes among %d", (long long)axis, b_rank,
                           a_rank);
    int64_t axes[TL_MAX_RANK];
    int count = a_rank - b_rank - (int)axis;
    for (int i = 0; i < count; i++)
        axes[i] = b_rank + i;
    if (count > 0)
        *b = tl_onnx_emit_ints(c, TL_OP_UNSQUEEZE, *b, "axes", axes, count);
    return TL_OK;
}

static tl_value *exclusive_or(tl_onnx_call *c, tl_value *a, tl_value *b)
{
    return tl_emit1(c, TL_OP_NOT, tl_emit2(c, TL_OP_EQUAL, a, b));
}

tl_status tl_import_binary_old(tl_onnx_call *c)
{
    tl_value *a = c->inputs[0], *b = c->inputs[1];
    TL_TRY(place_second(c, a, &b));
    if (strcmp(c->rule->op_type, "Xor") == 0)
        tl_result(c, 0, exclusive_or(c, a, b));
    else
        tl_result(c, 0, tl_emit2(c, (tl_op)c->rule->op, a, b));
    return TL_OK;
}

tl_status tl_import_xor(tl_onnx_call *c)
{
    tl_result(c, 0, exclusive_or(c, c->inputs[0], c->inputs[1]));
    return TL_OK;
}

/* Sum, Mean (op DIV), Min and Max of any number of operands. */
tl_status tl_import_variadic(tl_onnx_call *c)
{
    bool mean = c->rule->op == TL_OP_DIV;
    tl_op op = mean ? TL_OP_ADD : (tl_op)c->rule->op;
    tl_value *sum = c->inputs[0];
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] == NULL)
            return tl_call_bad(c, "input %d is missing", i);
    for (int i = 1; i < c->input_count; i++)
        sum = tl_emit2(c, op, sum, c->inputs[i]);
    if (mean) {
        TL_TRY(tl_need_dtype(c, sum));
        sum = tl_emit2(c, TL_OP_DIV, sum, tl_onnx_emit_scalar(c, sum->dtype, c->input_count));
    }
    tl_result(c, 0, sum);
    return TL_OK;
}

tl_status tl_import_clip_old(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *inputs[] = { x, NULL, NULL };
    if (tl_call_has(c, "min"))
        inputs[1] = tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "min", 0));
    if (tl_call_has(c, "max"))
        inputs[2] = tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "max", 0));
    tl_result(c, 0, tl_emitted(c, tl_onnx_emit_node(c, TL_OP_CLIP, 3, inputs)));
    return TL_OK;
}

/* ---- casts ---- */

static tl_status cast_to(tl_onnx_call *c, int onnx)
{
    tl_dtype to;
    if (!tl_dtype_from_onnx(onnx, &to))
        return tl_call_unsupported(c, "a cast to %s", tl_onnx_dtype_text(onnx));
    tl_result(c, 0, tl_onnx_emit_cast(c, c->inputs[0], to));
    return TL_OK;
}

tl_status tl_import_cast(tl_onnx_call *c)
{
    if (!tl_call_has(c, "to"))
        return tl_call_bad(c, "attribute 'to' is required");
    int64_t to = tl_call_int(c, "to", 0);
    return cast_to(c, to > 0 && to < 1000 ? (int)to : 0);
}

tl_status tl_import_cast_old(tl_onnx_call *c)
{
    static const char *const names[] = { "",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                         "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                         "FLOAT16", "DOUBLE", "UINT32", "UINT64" };
    const char *to = tl_call_string(c, "to", "");
    for (int i = 1; i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(names[i], to) == 0)
            return cast_to(c, i);
    return tl_call_bad(c, "attribute 'to' names no data type: '%.40s'", to);
}

tl_status tl_import_cast_like(tl_onnx_call *c)
{
    TL_TRY(tl_need_dtype(c, c->inputs[1]));
    tl_result(c, 0, tl_onnx_emit_cast(c, c->inputs[0], c->inputs[1]->dtype));
    return TL_OK;
}

/* The bits that an element has in ONNX. */
static int width_of(tl_dtype dtype)
{
    const tl_dtype_info *info = &tl_dtype_infos[dtype];
    return tl_dtype_is_int(dtype) ? info->digits : info->bits;
}

tl_status tl_import_bit_cast(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t onnx = tl_call_int(c, "to", 0);
    tl_dtype to;
    if (!tl_call_has(c, "to"))
        return tl_call_bad(c, "attribute 'to' is required");
    TL_TRY(tl_need_dtype(c, x));
    if (!tl_dtype_from_onnx(onnx > 0 && onnx < 1000 ? (int)onnx : 0, &to))
        return tl_call_unsupported(c, "the bits of %s", tl_onnx_dtype_text((int)onnx));
    if (width_of(to) != width_of(x->dtype))
        return tl_call_bad(c, "%s and %s have elements of different sizes",
                           tl_dtype_infos[x->dtype].text, tl_dtype_infos[to].text);
    if (x->dtype == to ||
        !tl_dtype_has_bits_of(to, x->dtype)) { /* integers wrap to the same bits */
        tl_result(c, 0, tl_onnx_emit_cast(c, x, to));
        return TL_OK;
    }
    tl_node *n = tl_onnx_emit_node(c, TL_OP_BIT_CAST, 1, &x);
    tl_attr_set_int(c->graph, n, "to", to);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_gelu(tl_onnx_call *c)
{
    const char *approximate = tl_call_string(c, "approximate", "none");
    if (strcmp(approximate, "none") != 0 && strcmp(approximate, "tanh") != 0)
        return tl_call_bad(c, "attribute 'approximate' is none or tanh, not '%.40s'", approximate);
    return tl_import_as(c, TL_OP_GELU, 1);
}

/* ---- small things said in other words ---- */

tl_status tl_import_is_nan(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    tl_result(c, 0, tl_emit1(c, TL_OP_NOT, tl_emit2(c, TL_OP_EQUAL, x, x)));
    return TL_OK;
}

tl_status tl_import_is_inf(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    bool negative = tl_call_int(c, "detect_negative", 1) != 0;
    bool positive = tl_call_int(c, "detect_positive", 1) != 0;
    TL_TRY(tl_need_dtype(c, x));
    if (negative && positive)
        x = tl_emit1(c, TL_OP_ABS, x);
    else if (negative)
        x = tl_emit1(c, TL_OP_NEG, x);
    if (negative || positive)
        x = tl_emit2(c, TL_OP_EQUAL, x, tl_onnx_emit_scalar(c, x->dtype, INFINITY));
    else
        x = tl_emit2(c, TL_OP_LESS, x, x);
    tl_result(c, 0, x);
    return TL_OK;
}

tl_status tl_import_sign(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *zero = tl_onnx_emit_scalar(c, x->dtype, 0),
             *one = tl_onnx_emit_scalar(c, x->dtype, 1);
    /* times 0 a NaN stays one, and a number that counts as zero, being smaller than the normal ones, is it */
    tl_value *rest = tl_dtype_is_float(x->dtype) ? tl_emit2(c, TL_OP_MUL, x, zero) : zero;
    if (tl_dtype_infos[x->dtype].class != TL_CLASS_UINT)
        rest = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_LESS, x, zero),
                                  tl_onnx_emit_scalar(c, x->dtype, -1), rest);
    tl_result(c, 0, tl_onnx_emit_where(c, tl_emit2(c, TL_OP_GREATER, x, zero), one, rest));
    return TL_OK;
}

static tl_dtype unsigned_of(tl_dtype dtype)
{
    int d = 0;
    while (tl_dtype_infos[d].class != TL_CLASS_UINT ||
           tl_dtype_infos[d].digits != tl_dtype_infos[dtype].digits)
        d++;
    return (tl_dtype)d;
}

/* As unsigned ones: of a negative number to the right, the complement's complement, so that the sign comes in. A shift by less
 * than nothing is one by very much. */
static tl_status shift_signed(tl_onnx_call *c, bool left)
{
    tl_value *x = c->inputs[0], *by = c->inputs[1];
    tl_dtype dtype = x->dtype, wide = unsigned_of(dtype);
    tl_value *is_negative = NULL;
    if (!left) {
        is_negative = tl_emit2(c, TL_OP_LESS, x, tl_onnx_emit_scalar(c, dtype, 0));
        x = tl_onnx_emit_where(c, is_negative, tl_emit1(c, TL_OP_BITWISE_NOT, x), x);
    }
    tl_value *y = tl_emit2(c, left ? TL_OP_SHIFT_LEFT : TL_OP_SHIFT_RIGHT,
                           tl_onnx_emit_cast(c, x, wide), tl_onnx_emit_cast(c, by, wide));
    y = tl_onnx_emit_cast(c, y, dtype);
    if (!left)
        y = tl_onnx_emit_where(c, is_negative, tl_emit1(c, TL_OP_BITWISE_NOT, y), y);
    tl_result(c, 0, y);
    return TL_OK;
}

tl_status tl_import_bit_shift(tl_onnx_call *c)
{
    const char *direction = tl_call_string(c, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return tl_call_bad(c, "attribute 'direction' is LEFT or RIGHT, not '%.40s'", direction);
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    if (c->version >= 28 && tl_dtype_infos[c->inputs[0]->dtype].class == TL_CLASS_INT)
        return shift_signed(c, left);
    return tl_import_as(c, left ? TL_OP_SHIFT_LEFT : TL_OP_SHIFT_RIGHT, 2);
}

/* fmod = 0: the sign of the divisor; fmod = 1: of the dividend. */
tl_status tl_import_mod(tl_onnx_call *c)
{
    tl_value *a = c->inputs[0], *b = c->inputs[1];
    TL_TRY(tl_need_dtype(c, a));
    bool fmod = tl_call_int(c, "fmod", 0) != 0, is_float = tl_dtype_is_float(a->dtype);
    if (is_float && !fmod)
        return tl_call_bad(c, "of floating-point numbers it needs fmod = 1");
    if (is_float) {
        tl_result(c, 0, tl_emit2(c, TL_OP_FMOD, a, b));
        return TL_OK;
    }
    tl_value *product = tl_emit2(c, TL_OP_MUL, tl_emit2(c, TL_OP_DIV, a, b), b);
    tl_value *rest = tl_emit2(c, TL_OP_SUB, a, product); /* Div truncates */
    if (!fmod && tl_dtype_infos[a->dtype].class == TL_CLASS_INT) {
        tl_value *zero = tl_onnx_emit_scalar(c, a->dtype, 0);
        tl_value *differs =
            exclusive_or(c, tl_emit2(c, TL_OP_LESS, rest, zero), tl_emit2(c, TL_OP_LESS, b, zero));
        tl_value *some = tl_emit1(c, TL_OP_NOT, tl_emit2(c, TL_OP_EQUAL, rest, zero));
        rest = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_AND, differs, some),
                                  tl_emit2(c, TL_OP_ADD, rest, b), rest);
    }
    tl_result(c, 0, rest);
    return TL_OK;
}
