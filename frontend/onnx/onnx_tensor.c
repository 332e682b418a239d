/* frontend/onnx/onnx_tensor.c: a TensorProto's numbers, wherever they are: raw, in a typed field, or in another file.
 *
 * Whatever the file says of sizes is checked here, once: dims against each other, bytes against dims. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/onnx/onnx_private.h"
#include "runtime/base/checked.h"

static const char *name_of(const Onnx__TensorProto *t)
{
    return t->name != NULL ? t->name : "";
}

/* The shape, the number of elements, and of bytes. A zero extent makes any others legal. */
static bool is_packed(tl_dtype dtype)
{
    return tl_dtype_is_int(dtype) && tl_dtype_infos[dtype].digits == 4;
}

static tl_status read_dims(const Onnx__TensorProto *t, tl_onnx_tensor *out, int64_t *elements,
                           int64_t *bytes, tl_diag *diag)
{
    if (t->n_dims > 64)
        return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s': rank %zu is larger than 64",
                       name_of(t), t->n_dims);
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] < 0)
            return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s': dimension %zu is %lld, below 0",
                           name_of(t), i, (long long)t->dims[i]);
    if (t->n_dims > TL_MAX_RANK)
        return tl_fail(diag, TL_UNSUPPORTED, "a tensor of rank %zu; at most %d is supported",
                       t->n_dims, TL_MAX_RANK);
    out->shape = tl_shape_of((int)t->n_dims, t->dims);
    *elements = tl_shape_elements(&out->shape);
    *bytes = is_packed(out->dtype) ? *elements / 2 + *elements % 2
                                   : tl_storage_bytes(out->dtype, *elements);
    if (!tl_shape_is_bounded(&out->shape, out->dtype))
        return tl_fail(diag, TL_BAD_MODEL,
                       "tensor '%.100s': the product of its dimensions overflows", name_of(t));
    return TL_OK;
}

/* Two numbers a byte, as files have them, the low half first. */
static const unsigned char *unpack(tl_arena *arena, const void *packed, int64_t elements,
                                   tl_dtype dtype)
{
    unsigned char *out = tl_arena_alloc(arena, (size_t)elements + 1, 64);
    for (int64_t i = 0; i < elements; i++) {
        unsigned byte = ((const unsigned char *)packed)[i / 2];
        tl_number_store(dtype, out, (size_t)i, (tl_number){ .i = i % 2 ? byte >> 4 : byte & 15 });
    }
    return out;
}

static size_t typed_count(const Onnx__TensorProto *t)
{
    return t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data +
           t->n_uint64_data + t->n_string_data;
}

static tl_status fail_count(const Onnx__TensorProto *t, size_t have, int64_t want, const char *unit,
                            tl_diag *diag)
{
    return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s': its data has %zu %s, its shape needs %lld",
                   name_of(t), have, unit, (long long)want);
}

/* bool is stored as any byte; from here on it is 0 or 1. */
static void normalise_bool(void *data, int64_t count)
{
    unsigned char *bytes = data;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = bytes[i] != 0;
}

/* ---- typed fields ---- */

static tl_status copy_field(tl_arena *arena, const Onnx__TensorProto *t, const void *field,
                            size_t count, size_t size, int64_t elements, tl_onnx_tensor *out,
                            tl_diag *diag)
{
    if (count != (size_t)elements || count != typed_count(t))
        return fail_count(t, count, elements, "numbers of its dtype", diag);
    out->data = tl_arena_copy(arena, field, count * size, 64);
    return TL_OK;
}

/* Fields whose numbers are wider than the dtype: each is narrowed to its low bits. */
static tl_status narrow_field(tl_arena *arena, const Onnx__TensorProto *t, int64_t elements,
                              tl_onnx_tensor *out, tl_diag *diag)
{
    bool wide = out->dtype == TL_U32, packed = is_packed(out->dtype);
    size_t count = wide ? t->n_uint64_data : t->n_int32_data, size = tl_dtype_size(out->dtype);
    if (count != (size_t)(packed ? elements / 2 + elements % 2 : elements) ||
        count != typed_count(t))
        return fail_count(t, count, elements, "numbers of its dtype", diag);
    unsigned char *data = tl_arena_alloc(arena, count * size, 64);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = wide ? t->uint64_data[i] : (uint32_t)t->int32_data[i];
        memcpy(data + i * size, &bits, size); /* little-endian */
    }
    if (out->dtype == TL_BOOL)
        for (size_t i = 0; i < count; i++)
            data[i] = t->int32_data[i] != 0;
    out->data = packed ? unpack(arena, data, elements, out->dtype) : data;
    return TL_OK;
}

static tl_status read_typed(tl_arena *arena, const Onnx__TensorProto *t, int64_t elements,
                            tl_onnx_tensor *out, tl_diag *diag)
{
    switch (out->dtype) {
    case TL_F32:
        return copy_field(arena, t, t->float_data, t->n_float_data, 4, elements, out, diag);
    case TL_F64:
        return copy_field(arena, t, t->double_data, t->n_double_data, 8, elements, out, diag);
    case TL_I32:
        return copy_field(arena, t, t->int32_data, t->n_int32_data, 4, elements, out, diag);
    case TL_I64:
        return copy_field(arena, t, t->int64_data, t->n_int64_data, 8, elements, out, diag);
    case TL_U64:
        return copy_field(arena, t, t->uint64_data, t->n_uint64_data, 8, elements, out, diag);
    case TL_BOOL:
    case TL_I4:
    case TL_U4:
    case TL_I8:
    case TL_I16:
    case TL_U8:
    case TL_U16:
    case TL_U32:
    case TL_F16:
    case TL_BF16:
        return narrow_field(arena, t, elements, out, diag);
    case TL_DTYPE_COUNT:
        break;
    }
    return tl_fail(diag, TL_INTERNAL, "tensor '%.100s': dtype", name_of(t));
}

/* ---- raw data ---- */

/* Raw data that was lifted, or small. */
static ProtobufCBinaryData raw_of(const tl_onnx *model, const Onnx__TensorProto *t)
{
    if (!t->has_lifted_at)
        return t->raw_data;
    assert(t->lifted_at <= model->size && t->lifted_size <= model->size - t->lifted_at);
    uint8_t *bytes = (uint8_t *)(uintptr_t)model->bytes;
    return (ProtobufCBinaryData){ (size_t)t->lifted_size, bytes + t->lifted_at };
}

static tl_status read_raw(tl_arena *arena, const tl_onnx *model, const Onnx__TensorProto *t,
                          int64_t elements, int64_t bytes, tl_onnx_tensor *out, tl_diag *diag)
{
    ProtobufCBinaryData raw = raw_of(model, t);
    if (raw.len != (size_t)bytes)
        return fail_count(t, raw.len, bytes, "bytes", diag);
    if (bytes == 0)
        return TL_OK;
    if (is_packed(out->dtype))
        out->data = unpack(arena, raw.data, elements, out->dtype);
    else if (t->has_lifted_at && model->stays && out->dtype != TL_BOOL)
        out->data = raw.data;
    else
        out->data = tl_arena_copy(arena, raw.data, raw.len, 64);
    if (out->dtype == TL_BOOL)
        normalise_bool((void *)out->data, elements);
    return TL_OK;
}

/* ---- external data ---- */

static bool parse_size(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '9')
        return false;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return *end == '\0' && errno == 0;
}

static tl_status read_external(tl_arena *arena, tl_onnx *model, const Onnx__TensorProto *t,
                               int64_t elements, int64_t bytes, tl_onnx_tensor *out, tl_diag *diag)
{
    const char *location = NULL;
    int64_t offset = 0, length = -1, end;
    unsigned seen = 0;
    for (size_t i = 0; i < t->n_external_data; i++) {
        static const char *const keys[] = { "location", "offset", "length", "checksum",
                                            "basepath" };
        const char *key = t->external_data[i]->key, *text = t->external_data[i]->value;
        unsigned k = 0;
        while (k < 5 && (key == NULL || strcmp(key, keys[k]) != 0))
            k++;
        if (k == 5 || text == NULL || (seen & 1u << k))
            return tl_fail(diag, TL_BAD_MODEL,
                           "tensor '%.100s': external data has an unknown or repeated key '%.40s'",
                           name_of(t), key != NULL ? key : "");
        seen |= 1u << k;
        if (k == 0)
            location = text;
        if ((k == 1 && !parse_size(text, &offset)) || (k == 2 && !parse_size(text, &length)))
            return tl_fail(diag, TL_BAD_MODEL,
                           "tensor '%.100s': external data %s '%.40s' is no size", name_of(t), key,
                           text);
    }
    if (location == NULL)
        return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s': external data without a location",
                       name_of(t));
    const tl_onnx_file *file;
    TL_TRY(tl_onnx_map_file(model, location, &file, diag));
    if (length < 0)
        length = offset <= (int64_t)file->size ? (int64_t)file->size - offset : 0;
    if (length != bytes)
        return fail_count(t, (size_t)length, bytes, "bytes of external data", diag);
    if (tl_add_overflows(offset, length, &end) || end > (int64_t)file->size)
        return tl_fail(
            diag, TL_BAD_MODEL,
            "tensor '%.100s': external data of %lld bytes at %lld reaches beyond the end of "
            "'%.100s' (%zu bytes)",
            name_of(t), (long long)length, (long long)offset, location, file->size);
    if (bytes == 0)
        return TL_OK;
    const unsigned char *data = (const unsigned char *)file->data + offset;
    if (is_packed(out->dtype)) {
        out->data = unpack(arena, data, elements, out->dtype);
        return TL_OK;
    }
    bool aligned = (uintptr_t)data % tl_dtype_size(out->dtype) == 0;
    if (!aligned || out->dtype == TL_BOOL)
        data = tl_arena_copy(arena, data, (size_t)bytes, 64);
    if (out->dtype == TL_BOOL)
        normalise_bool((void *)data, elements);
    out->data = data;
    return TL_OK;
}

tl_status tl_onnx_read_tensor(tl_arena *arena, tl_onnx *model, Onnx__TensorProto *t,
                              tl_onnx_tensor *out, tl_diag *diag)
{
    int64_t elements = 0, bytes = 0;
    bool external = t->data_location == 1;
    *out = (tl_onnx_tensor){ 0 };
    if (t->segment != NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "a tensor in segments");
    if (t->data_type == 0)
        return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s' has no data type", name_of(t));
    if (!tl_dtype_from_onnx(t->data_type, &out->dtype))
        return tl_fail(diag, TL_UNSUPPORTED, "a tensor of data type %s (%d)",
                       tl_onnx_dtype_text(t->data_type), t->data_type);
    TL_TRY(read_dims(t, out, &elements, &bytes, diag));
    if ((t->has_data_location && t->data_location != 0 && !external) ||
        (t->n_external_data > 0) != external)
        return tl_fail(diag, TL_BAD_MODEL,
                       "tensor '%.100s': data location %d, but %zu entries of external data",
                       name_of(t), t->data_location, t->n_external_data);
    if (external + (t->raw_data.len > 0) + (t->has_lifted_at != 0) + (typed_count(t) > 0) > 1)
        return tl_fail(diag, TL_BAD_MODEL, "tensor '%.100s' has its data in more than one place",
                       name_of(t));
    if (external)
        return read_external(arena, model, t, elements, bytes, out, diag);
    if ((t->has_raw_data || t->has_lifted_at) && typed_count(t) == 0)
        return read_raw(arena, model, t, elements, bytes, out, diag);
    return read_typed(arena, t, elements, out, diag);
}
