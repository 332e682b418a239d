/* runtime/base/dtype.h: the element types, and values of any of them as numbers. */
#ifndef TL_RUNTIME_BASE_DTYPE_H
#define TL_RUNTIME_BASE_DTYPE_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
#define DTYPE(name, text, bits, digits, class, least, largest, ctype, onnx, npy) TL_##name,
#include "runtime/base/dtype.def"
#undef DTYPE
    TL_DTYPE_COUNT
} tl_dtype;

typedef enum { TL_CLASS_BOOL, TL_CLASS_INT, TL_CLASS_UINT, TL_CLASS_FLOAT } tl_dtype_class;

typedef struct {
    const char *text; /* "f32" */
    int bits, digits; /* dtype.def says what each counts */
    tl_dtype_class class;
    int64_t least;
    uint64_t largest;
    int onnx; /* TensorProto.DataType */
    const char *npy;
} tl_dtype_info;
extern const tl_dtype_info tl_dtype_infos[TL_DTYPE_COUNT];

static inline bool tl_dtype_is_float(tl_dtype d)
{
    return tl_dtype_infos[d].class == TL_CLASS_FLOAT;
}
/* Sums of f16 and bf16 are kept in f32. */
static inline tl_dtype tl_accumulate_dtype(tl_dtype d)
{
    return d == TL_F16 || d == TL_BF16 ? TL_F32 : d;
}
static inline bool tl_dtype_is_int(tl_dtype d) /* signed or not; bool is not */
{
    return tl_dtype_infos[d].class == TL_CLASS_INT || tl_dtype_infos[d].class == TL_CLASS_UINT;
}
/* The bytes from one element to the next, of a dtype whose elements begin at a byte. What several take together is
 * tl_storage_bytes. */
static inline size_t tl_dtype_size(tl_dtype d)
{
    assert(tl_dtype_infos[d].bits % 8 == 0);
    return (size_t)tl_dtype_infos[d].bits / 8;
}
/* The bytes of so many elements of so many bits, packed; -1 when that is no int64_t, or there are -1 of them. */
static inline int64_t tl_packed_bytes(int bits, int64_t elements)
{
    int64_t whole, bytes;
    if (elements < 0 || __builtin_mul_overflow(elements / 8, bits, &whole) ||
        __builtin_add_overflow(whole, (elements % 8 * bits + 7) / 8, &bytes))
        return -1;
    return bytes;
}
static inline int64_t tl_storage_bytes(tl_dtype d, int64_t elements)
{
    return tl_packed_bytes(tl_dtype_infos[d].bits, elements);
}
bool tl_dtype_from_text(const char *text, tl_dtype *out);
bool tl_dtype_from_onnx(int onnx, tl_dtype *out);

/* One element as a number: floats in .f, integers and bool in .i (u64 as its bit pattern). */
typedef union {
    double f;
    int64_t i;
} tl_number;

/* Element `index` of an array of dtype `d`; stores round to nearest even, integers wrap. */
tl_number tl_number_load(tl_dtype d, const void *data, size_t index);
void tl_number_store(tl_dtype d, void *data, size_t index, tl_number value);
/* Cast as ONNX does it: float to int truncates and saturates (of 4 bits: and wraps), NaN gives 0; int to int wraps;
 * to bool is != 0; to a float type rounds to nearest even to that type. */
tl_number tl_number_cast(tl_dtype to, tl_dtype from, tl_number value);
/* Whether the one is as wide as the other and one of them a float dtype: of integers as wide, the same bits are a cast. */
static inline bool tl_dtype_has_bits_of(tl_dtype a, tl_dtype b)
{
    return tl_dtype_infos[a].bits == tl_dtype_infos[b].bits &&
           (tl_dtype_is_float(a) || tl_dtype_is_float(b));
}
/* What the bits of `value`, of `from`, are as `to`. */
tl_number tl_number_bits(tl_dtype to, tl_dtype from, tl_number value);
/* What kernels compute with instead of `value`, a number of the float dtype: zero of its sign where it is below the
 * smallest normal one (base/float_mode.h). Every f16 is a normal number of f32, in which it is computed. */
double tl_number_flush(tl_dtype dtype, double value);

float tl_f16_to_f32(uint16_t bits);
uint16_t tl_f32_to_f16(float value);
float tl_bf16_to_f32(uint16_t bits);
uint16_t tl_f32_to_bf16(float value);

#endif
