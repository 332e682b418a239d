/* frontend/import/import_activation.c: activations and functions that are written with elementary ones, as the
 * operators' definitions do. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"

/* Short words for formulas; every constant has x's dtype. */
static tl_value *add(tl_onnx_call *c, tl_value *a, tl_value *b)
{
    return tl_emit2(c, TL_OP_ADD, a, b);
}

static tl_value *mul(tl_onnx_call *c, tl_value *a, tl_value *b)
{
    return tl_emit2(c, TL_OP_MUL, a, b);
}

static tl_value *number(tl_onnx_call *c, const tl_value *x, double value)
{
    return tl_onnx_emit_scalar(c, x->dtype, value);
}

static tl_value *scale(tl_onnx_call *c, tl_value *x, double factor)
{
    return factor == 1 ? x : mul(c, x, number(c, x, factor));
}

/* where(x < 0, negative, x) */
static tl_value *below_zero(tl_onnx_call *c, tl_value *x, tl_value *negative)
{
    return tl_onnx_emit_where(c, tl_emit2(c, TL_OP_LESS, x, number(c, x, 0)), negative, x);
}

/* exp(x) - 1 where x < 0; the argument is kept from growing where it is not used. */
static tl_value *exp_minus_one(tl_onnx_call *c, tl_value *x)
{
    tl_value *low = tl_emit2(c, TL_OP_MIN, x, number(c, x, 0));
    return tl_emit1(c, TL_OP_EXPM1, low);
}

tl_status tl_import_leaky_relu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_result(c, 0, below_zero(c, x, scale(c, x, tl_call_float(c, "alpha", 0.01f))));
    return TL_OK;
}

tl_status tl_import_prelu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_result(c, 0, below_zero(c, x, mul(c, x, c->inputs[1])));
    return TL_OK;
}

/* One slope, or one a channel (axis 1). */
tl_status tl_import_prelu_old(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *slope = c->inputs[1];
    int rank;
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_rank(c, x, &rank));
    TL_TRY(tl_need_shape(c, slope));
    if (slope->shape.rank == 1 && slope->shape.dims[0].extent != 1)
        slope = tl_onnx_emit_channel_vector(c, slope, rank);
    tl_result(c, 0, below_zero(c, x, mul(c, x, slope)));
    return TL_OK;
}

tl_status tl_import_elu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *low = scale(c, exp_minus_one(c, x), tl_call_float(c, "alpha", 1));
    tl_result(c, 0, below_zero(c, x, low));
    return TL_OK;
}

tl_status tl_import_selu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    double alpha = tl_call_float(c, "alpha", 1.67326319217681884765625f);
    double gamma = tl_call_float(c, "gamma", 1.05070102214813232421875f);
    tl_value *low = scale(c, exp_minus_one(c, x), alpha);
    tl_result(c, 0, scale(c, below_zero(c, x, low), gamma));
    return TL_OK;
}

tl_status tl_import_celu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    double alpha = tl_call_float(c, "alpha", 1);
    TL_TRY(tl_need_dtype(c, x));
    tl_value *part = tl_emit2(c, TL_OP_DIV, x, number(c, x, alpha));
    tl_value *low = scale(c, exp_minus_one(c, part), alpha);
    /* for a negative alpha both parts of max(x, 0) + min(0, low) count */
    tl_value *zero = number(c, x, 0);
    tl_result(c, 0, add(c, tl_emit2(c, TL_OP_MAX, x, zero), tl_emit2(c, TL_OP_MIN, low, zero)));
    return TL_OK;
}

tl_status tl_import_thresholded_relu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *above = tl_emit2(c, TL_OP_GREATER, x, number(c, x, tl_call_float(c, "alpha", 1)));
    tl_result(c, 0, tl_onnx_emit_where(c, above, x, number(c, x, 0)));
    return TL_OK;
}

static tl_value *hard_sigmoid(tl_onnx_call *c, tl_value *x, double alpha, double beta)
{
    tl_value *inputs[] = { add(c, scale(c, x, alpha), number(c, x, beta)), number(c, x, 0),
                           number(c, x, 1) };
    return tl_emitted(c, tl_onnx_emit_node(c, TL_OP_CLIP, 3, inputs));
}

tl_status tl_import_hard_sigmoid(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    double alpha = tl_call_float(c, "alpha", 0.2f), beta = tl_call_float(c, "beta", 0.5);
    tl_result(c, 0, hard_sigmoid(c, x, alpha, beta));
    return TL_OK;
}

tl_status tl_import_hard_swish(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_result(c, 0, mul(c, x, hard_sigmoid(c, x, 1.0 / 6, 0.5)));
    return TL_OK;
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which does not overflow. */
static tl_value *softplus(tl_onnx_call *c, tl_value *x)
{
    tl_value *small = tl_emit1(c, TL_OP_EXP, tl_emit1(c, TL_OP_NEG, tl_emit1(c, TL_OP_ABS, x)));
    return add(c, tl_emit2(c, TL_OP_MAX, x, number(c, x, 0)), tl_emit1(c, TL_OP_LOG1P, small));
}

tl_status tl_import_softplus(tl_onnx_call *c)
{
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_result(c, 0, softplus(c, c->inputs[0]));
    return TL_OK;
}

tl_status tl_import_softsign(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *below = add(c, number(c, x, 1), tl_emit1(c, TL_OP_ABS, x));
    tl_result(c, 0, tl_emit2(c, TL_OP_DIV, x, below));
    return TL_OK;
}

tl_status tl_import_mish(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_result(c, 0, mul(c, x, tl_emit1(c, TL_OP_TANH, softplus(c, x))));
    return TL_OK;
}

tl_status tl_import_swish(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *gate = tl_emit1(c, TL_OP_SIGMOID, scale(c, x, tl_call_float(c, "alpha", 1)));
    tl_result(c, 0, mul(c, x, gate));
    return TL_OK;
}

/* The gate, a Swish, times the other half; they are of one shape. */
tl_status tl_import_swiglu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *y = c->inputs[1];
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_shape(c, y));
    if (!tl_shape_equal(&x->shape, &y->shape))
        return tl_call_bad(c, "its inputs are of two shapes");
    tl_value *gate = tl_emit1(c, TL_OP_SIGMOID, scale(c, x, tl_call_float(c, "alpha", 1)));
    tl_result(c, 0, mul(c, mul(c, x, gate), y));
    return TL_OK;
}

/* ---- of com.microsoft ---- */

static tl_value *gelu(tl_onnx_call *c, tl_value *x, const char *approximate)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_GELU, 1, &x);
    if (approximate != NULL)
        tl_attr_set_string(c->graph, n, "approximate", approximate);
    return tl_emitted(c, n);
}

tl_status tl_import_bias_gelu(tl_onnx_call *c)
{
    tl_result(c, 0, gelu(c, add(c, c->inputs[0], c->inputs[1]), NULL));
    return TL_OK;
}

tl_status tl_import_fast_gelu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *bias = tl_call_input(c, 1);
    tl_result(c, 0, gelu(c, bias != NULL ? add(c, x, bias) : x, "tanh"));
    return TL_OK;
}

tl_status tl_import_quick_gelu(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_dtype(c, x));
    tl_value *steep = scale(c, x, tl_call_float(c, "alpha", 1.702f));
    tl_result(c, 0, mul(c, x, tl_emit1(c, TL_OP_SIGMOID, steep)));
    return TL_OK;
}

typedef tl_value *activation(tl_onnx_call *c, tl_value *x, double a, double b);

static tl_value *fused_relu(tl_onnx_call *c, tl_value *x, double a, double b)
{
    (void)a, (void)b;
    return tl_emit1(c, TL_OP_RELU, x);
}

static tl_value *fused_sigmoid(tl_onnx_call *c, tl_value *x, double a, double b)
{
    (void)a, (void)b;
    return tl_emit1(c, TL_OP_SIGMOID, x);
}

static tl_value *fused_tanh(tl_onnx_call *c, tl_value *x, double a, double b)
{
    (void)a, (void)b;
    return tl_emit1(c, TL_OP_TANH, x);
}

static tl_value *fused_leaky_relu(tl_onnx_call *c, tl_value *x, double a, double b)
{
    (void)b;
    return below_zero(c, x, scale(c, x, a));
}

static tl_value *fused_clip(tl_onnx_call *c, tl_value *x, double a, double b)
{
    tl_value *inputs[] = { x, number(c, x, a), number(c, x, b) };
    return tl_emitted(c, tl_onnx_emit_node(c, TL_OP_CLIP, 3, inputs));
}

tl_status tl_onnx_emit_activation(tl_onnx_call *c, const char *name, int count,
                                  const double *numbers, tl_value **x)
{
    static const struct {
        const char *name;
        activation *emit;
        double a, b; /* where they are not given */
    } known[] = {
        { "Relu", fused_relu, 0, 0 },
        { "Sigmoid", fused_sigmoid, 0, 0 },
        { "Tanh", fused_tanh, 0, 0 },
        { "LeakyRelu", fused_leaky_relu, 0.01f, 0 },
        { "HardSigmoid", hard_sigmoid, 0.2f, 0.5 },
        { "Clip", fused_clip, -INFINITY, INFINITY },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0) {
            TL_TRY(tl_need_dtype(c, *x));
            *x = known[i].emit(c, *x, count > 0 ? numbers[0] : known[i].a,
                               count > 1 ? numbers[1] : known[i].b);
            return TL_OK;
        }
    return tl_call_unsupported(c, "activation '%.40s'", name);
}

/* x + bias below -lambd, x - bias above lambd, 0 between. */
tl_status tl_import_shrink(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    double bias = tl_call_float(c, "bias", 0), lambd = tl_call_float(c, "lambd", 0.5);
    TL_TRY(tl_need_dtype(c, x));
    tl_value *above =
        tl_onnx_emit_where(c, tl_emit2(c, TL_OP_GREATER, x, number(c, x, lambd)),
                           tl_emit2(c, TL_OP_SUB, x, number(c, x, bias)), number(c, x, 0));
    tl_value *below = tl_emit2(c, TL_OP_LESS, x, number(c, x, -lambd));
    tl_result(c, 0, tl_onnx_emit_where(c, below, add(c, x, number(c, x, bias)), above));
    return TL_OK;
}
