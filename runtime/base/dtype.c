/* runtime/base/dtype.c: the element types, and values of any of them as numbers. */
#include "runtime/base/dtype.h"
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

const tl_dtype_info tl_dtype_infos[TL_DTYPE_COUNT] = {
#define DTYPE(name, text, bits, digits, class, least, largest, ctype, onnx, npy) \
    [TL_##name] = { text, bits, digits, TL_CLASS_##class, least, largest, onnx, npy },
#include "runtime/base/dtype.def"
#undef DTYPE
};

bool tl_dtype_from_text(const char *text, tl_dtype *out)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++)
        if (text[0] == tl_dtype_infos[d].text[0] && strcmp(text, tl_dtype_infos[d].text) == 0) {
            *out = (tl_dtype)d;
            return true;
        }
    return false;
}

bool tl_dtype_from_onnx(int onnx, tl_dtype *out)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++)
        if (tl_dtype_infos[d].onnx == onnx) {
            *out = (tl_dtype)d;
            return true;
        }
    return false;
}

float tl_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
             mantissa = bits & 1023;
    uint32_t out;
    if (exponent == 31)
        out = sign | 0x7f800000 | (mantissa << 13);
    else if (exponent != 0)
        out = sign | ((exponent + 112) << 23) | (mantissa << 13);
    else {
        float subnormal = (float)mantissa * 0x1p-24f;
        memcpy(&out, &subnormal, sizeof out);
        out |= sign;
    }
    float f;
    memcpy(&f, &out, sizeof f);
    return f;
}

uint16_t tl_f32_to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00; /* a quiet NaN */
    if (bits >= 0x477ff000)
        return sign | 0x7c00; /* rounds to infinity */
    if (bits < 0x38800000) {  /* subnormal: the addition rounds to a multiple of 2^-24 */
        float magnitude, shifted;
        memcpy(&magnitude, &bits, sizeof magnitude);
        shifted = magnitude + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    bits += 0xfff + ((bits >> 13) & 1);
    return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}

float tl_bf16_to_f32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

uint16_t tl_f32_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((bits >> 16) | 0x40); /* keeps a NaN a NaN */
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

tl_number tl_number_load(tl_dtype d, const void *data, size_t index)
{
    assert(d < TL_DTYPE_COUNT && data != NULL);
    const char *p = (const char *)data + index * tl_dtype_size(d);
    tl_number n = { .i = 0 };
    uint16_t half;
    switch (d) {
#define READ(name, type, member) \
    case TL_##name: {            \
        type x;                  \
        memcpy(&x, p, sizeof x); \
        n.member = x;            \
        break;                   \
    }
        READ(BOOL, uint8_t, i)
        READ(I4, int8_t, i)
        READ(U4, uint8_t, i)
        READ(I8, int8_t, i)
        READ(I16, int16_t, i)
        READ(I32, int32_t, i)
        READ(I64, int64_t, i)
        READ(U8, uint8_t, i)
        READ(U16, uint16_t, i)
        READ(U32, uint32_t, i)
        READ(U64, int64_t, i)
        READ(F32, float, f)
        READ(F64, double, f)
#undef READ
    case TL_F16:
        memcpy(&half, p, sizeof half);
        n.f = tl_f16_to_f32(half);
        break;
    case TL_BF16:
        memcpy(&half, p, sizeof half);
        n.f = tl_bf16_to_f32(half);
        break;
    case TL_DTYPE_COUNT:
        break;
    }
    return n;
}

/* Rounds once: a double whose float is halfway between two 16-bit values must not be rounded twice. */
static float round_to_odd(double value)
{
    float f = (float)value;
    uint32_t bits;
    if ((double)f == value || isnan(value) || isinf(f))
        return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(value))
        bits--;
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}

void tl_number_store(tl_dtype d, void *data, size_t index, tl_number value)
{
    assert(d < TL_DTYPE_COUNT && data != NULL);
    char *p = (char *)data + index * tl_dtype_size(d);
    uint16_t half;
    switch (d) {
#define WRITE(name, type, member)    \
    case TL_##name: {                \
        type x = (type)value.member; \
        memcpy(p, &x, sizeof x);     \
        break;                       \
    }
        WRITE(I8, int8_t, i)
        WRITE(I16, int16_t, i)
        WRITE(I32, int32_t, i)
        WRITE(I64, int64_t, i)
        WRITE(U8, uint8_t, i)
        WRITE(U16, uint16_t, i)
        WRITE(U32, uint32_t, i)
        WRITE(U64, int64_t, i)
        WRITE(F32, float, f)
        WRITE(F64, double, f)
#undef WRITE
    case TL_I4:
    case TL_U4: {
        uint8_t x = (uint8_t)(value.i & 15);
        if (d == TL_I4 && x > 7)
            x |= 0xf0;
        memcpy(p, &x, sizeof x);
        break;
    }
    case TL_BOOL: {
        uint8_t x = value.i != 0;
        memcpy(p, &x, sizeof x);
        break;
    }
    case TL_F16:
        half = tl_f32_to_f16(round_to_odd(value.f));
        memcpy(p, &half, sizeof half);
        break;
    case TL_BF16:
        half = tl_f32_to_bf16(round_to_odd(value.f));
        memcpy(p, &half, sizeof half);
        break;
    case TL_DTYPE_COUNT:
        break;
    }
}

static tl_number saturate(tl_dtype to, double value)
{
    assert(!tl_dtype_is_float(to));
    const tl_dtype_info *info = &tl_dtype_infos[to];
    tl_number n = { .i = 0 };
    if (isnan(value))
        return n;
    value = trunc(value);
    if (value <= (double)info->least)
        n.i = info->least;
    else if (value >= (double)info->largest)
        n.i = (int64_t)info->largest;
    else
        n.i = info->class == TL_CLASS_UINT ? (int64_t)(uint64_t)value : (int64_t)value;
    return n;
}

double tl_number_flush(tl_dtype dtype, double value)
{
    double least = dtype == TL_F16 ? 0 : dtype == TL_F64 ? DBL_MIN : FLT_MIN;
    return fabs(value) < least ? copysign(0, value) : value;
}

tl_number tl_number_bits(tl_dtype to, tl_dtype from, tl_number value)
{
    assert(tl_dtype_infos[to].bits == tl_dtype_infos[from].bits);
    unsigned char cell[8];
    tl_number_store(from, cell, 0, value);
    return tl_number_load(to, cell, 0);
}

tl_number tl_number_cast(tl_dtype to, tl_dtype from, tl_number value)
{
    assert(to < TL_DTYPE_COUNT && from < TL_DTYPE_COUNT);
    bool from_float = tl_dtype_is_float(from);
    unsigned char cell[8];
    tl_number n;
    if (to == TL_BOOL) {
        n.i = from_float ? value.f != 0 : value.i != 0;
        return n;
    }
    bool is_narrow = tl_dtype_infos[to].digits < 8 && tl_dtype_is_int(to);
    if (from_float && !tl_dtype_is_float(to) && !is_narrow)
        return saturate(to, value.f);
    if (from_float && is_narrow)
        value = saturate(TL_I32, value.f);
    if (!from_float && tl_dtype_is_float(to)) {
        if (to == TL_F32) /* in one rounding */
            n.f = from == TL_U64 ? (float)(uint64_t)value.i : (float)value.i;
        else
            n.f = from == TL_U64 ? (double)(uint64_t)value.i : (double)value.i;
        value = n;
    }
    tl_number_store(to, cell, 0, value);
    return tl_number_load(to, cell, 0);
}
