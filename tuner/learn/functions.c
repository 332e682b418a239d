/* tuner/learn/functions.c: exponentials, four at once in the vectors that every processor has. No multiply-adds are
 * fused, so that all round alike. */
#include "tuner/learn/functions.h"
#include <stdint.h>
#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static v4f splat(float x)
{
    return (v4f){ x, x, x, x };
}

static v4f choose(v4i where, v4f yes, v4f no)
{
    return (v4f)((where & (v4i)yes) | (~where & (v4i)no));
}

/* exp(x) = 2^n exp(r): n the nearest whole number to x / log(2), and r, at most log(2) / 2, exact in two parts. The
 * polynomial is Cephes' of expf. */
static v4f exp4(v4f x)
{
    x = choose(x > splat(88.0F), splat(88.0F), x);
    x = choose(x < splat(-87.0F), splat(-87.0F), x);
    const v4f shifted = x * splat(1.44269504F) + splat(12582912.0F); /* 1.5 * 2^23: rounds */
    const v4f n = shifted - splat(12582912.0F);
    const v4f r = (x - n * splat(0.693359375F)) - n * splat(-2.12194440e-4F);
    v4f y = splat(1.9875691500e-4F);
    y = y * r + splat(1.3981999507e-3F);
    y = y * r + splat(8.3334519073e-3F);
    y = y * r + splat(4.1665795894e-2F);
    y = y * r + splat(1.6666665459e-1F);
    y = y * r + splat(5.0000001201e-1F);
    y = y * (r * r) + r + splat(1.0F);
    const v4i power = (__builtin_convertvector(n, v4i) + 127) << 23;
    return y * (v4f)power;
}

static v4f load(const float *x, int count)
{
    v4f v = { 0 };
    if (count >= 4)
        memcpy(&v, x, sizeof v);
    else
        memcpy(&v, x, sizeof *x * (size_t)count);
    return v;
}

static void store(float *x, v4f v, int count)
{
    if (count >= 4)
        memcpy(x, &v, sizeof v);
    else
        memcpy(x, &v, sizeof *x * (size_t)count);
}

void tl_exp_floats(float *x, int count)
{
    for (int i = 0; i < count; i += 4)
        store(x + i, exp4(load(x + i, count - i)), count - i);
}

/* The share of x that passes. */
static v4f gate(v4f x)
{
    const v4f u = splat(1.5957691216F) * (x + splat(0.044715F) * x * x * x);
    return splat(1) / (splat(1) + exp4(-u));
}

void tl_gelu_floats(const float *x, float *out, int count)
{
    for (int i = 0; i < count; i += 4) {
        const v4f v = load(x + i, count - i);
        store(out + i, v * gate(v), count - i);
    }
}

void tl_gelu_slopes(const float *x, float *out, int count)
{
    for (int i = 0; i < count; i += 4) {
        const v4f v = load(x + i, count - i), g = gate(v);
        const v4f slope = splat(1.5957691216F) * (splat(1) + splat(3 * 0.044715F) * v * v);
        store(out + i, g + v * g * (splat(1) - g) * slope, count - i);
    }
}
