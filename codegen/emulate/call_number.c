/* codegen/emulate/call_number.c: what a GPU computes of numbers by an instruction of its own. Approximations are exact
 * here, to the last bit of their type: their errors are the card's business. */
#include <string.h>
#include "codegen/emulate/narrow_floats.h"

enum {
    EX2,
    LG2,
    RCP,
    RSQRT,
    SQRT,
    SIN,
    COS,
    DIV,
    FMA,
    ADD,
    MUL,
    MIN,
    MAX,
    ABS,
    SATURATE,
    TO_TF32,
    TO_BF16X2,
    TO_F16X2,
    TO_BF16,
    TANH
}; /* as in the table of the parser */

static double compute(int op, bool keeps_nan, double x, double y, double z)
{
    switch (op) {
    case EX2:
        return exp2(x);
    case LG2:
        return log2(x);
    case RCP:
        return 1 / x;
    case RSQRT:
        return 1 / sqrt(x);
    case SQRT:
        return sqrt(x);
    case SIN:
        return sin(x);
    case COS:
        return cos(x);
    case DIV:
        return x / y;
    case FMA:
        return fma(x, y, z);
    case ADD:
        return x + y;
    case MUL:
        return x * y;
    case MIN:
        return keeps_nan && (x != x || y != y) ? NAN : fmin(x, y);
    case MAX:
        return keeps_nan && (x != x || y != y) ? NAN : fmax(x, y);
    case ABS:
        return fabs(x);
    case SATURATE:
        return x > 0 ? fmin(x, 1) : 0;
    case TANH:
        return tanh(x);
    }
    return 0;
}

static double take_double(const int64_t *in, const tl_gpu_call *call, int i)
{
    double d = 0;
    if (i < call->argument_count)
        memcpy(&d, &in[i], sizeof d);
    return d;
}

static double take_float(const int64_t *in, const tl_gpu_call *call, int i)
{
    return i < call->argument_count ? tl_gpu_float(in[i]) : 0;
}

void tl_call_number(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)t;
    int op = call->tags[0];
    float x = (float)take_float(in, call, 0), y = (float)take_float(in, call, 1);
    if (op == TO_TF32) {
        out[0] = (int64_t)(((uint32_t)in[0] + 0x1000) & 0xffffe000);
    } else if (op == TO_BF16X2) {
        out[0] = (int64_t)(tl_bf16_bits(x) << 16 | tl_bf16_bits(y));
    } else if (op == TO_F16X2) {
        out[0] = (int64_t)(tl_f16_bits(x) << 16 | tl_f16_bits(y));
    } else if (op == TO_BF16) {
        out[0] = (int64_t)tl_bf16_bits(x);
    } else if (call->tags[1]) {
        double d = compute(op, call->tags[2], take_double(in, call, 0), take_double(in, call, 1),
                           take_double(in, call, 2));
        memcpy(out, &d, sizeof d);
    } else if (op == FMA) {
        out[0] = tl_gpu_bits(fmaf(x, y, (float)take_float(in, call, 2)));
    } else {
        out[0] = tl_gpu_bits((float)compute(op, call->tags[2], x, y, 0));
    }
}
