/* codegen/emulate/narrow_floats.h: floats of 16 bits, and what tensor cores keep of 32. */
#ifndef TL_CODEGEN_EMULATE_NARROW_FLOATS_H
#define TL_CODEGEN_EMULATE_NARROW_FLOATS_H
#include <math.h>
#include <stdint.h>
#include "codegen/emulate/emulate_private.h"

static inline float tl_bf16_float(uint32_t bits)
{
    return tl_gpu_float((int64_t)(bits & 0xffff) << 16);
}

/* To the nearest, ties to even. */
static inline uint32_t tl_bf16_bits(float f)
{
    uint32_t u = (uint32_t)tl_gpu_bits(f);
    return f != f ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

static inline float tl_f16_float(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    float fraction = (float)(bits & 0x3ff);
    float f = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
              : exponent == 0 ? ldexpf(fraction, -24)
                              : ldexpf(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -f : f;
}

static inline uint32_t tl_f16_bits(float f)
{
    uint32_t sign = signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    if (f != f)
        return 0x7fff;
    if (a >= 65520)
        return sign | 0x7c00;
    int exponent;
    frexpf(a, &exponent);
    int least = exponent - 11 < -24 ? -24 : exponent - 11; /* of the last bit that is kept */
    float kept = rintf(ldexpf(a, -least));
    if (least == -24)
        return sign | (uint32_t)kept;
    if (kept >= 2048) /* rounded up to the next power of two */
        kept = 1024, least++;
    return sign | (uint32_t)((least + 25) << 10) | ((uint32_t)kept - 1024);
}

/* Tensor cores look at the first 19 bits. */
static inline float tl_tf32_float(uint32_t bits)
{
    return tl_gpu_float((int64_t)(bits & 0xffffe000));
}

#endif
