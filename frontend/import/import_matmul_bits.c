/* frontend/import/import_matmul_bits.c: products with weights of few bits, in blocks along K that have a scale and a zero point.
 *
 *     B [N, blocks, bytes] of packed numbers, the first in the lowest bits
 *         ->  (numbers - zero point) * scale   [N, blocks, block_size]   ->  the first K of each row, turned */
#include "frontend/import/import_rules.h"

typedef struct {
    int64_t rows, columns, block, blocks, bits; /* N, K */
} packing;

/* Bytes [.., count] as the numbers in them, [.., count * 8 / bits], in f32. */
static tl_value *unpack(tl_onnx_call *c, tl_value *bytes, int64_t bits)
{
    double shifts[8], mask = (double)((1 << bits) - 1);
    int64_t each = 8 / bits, extents[TL_MAX_RANK];
    int rank = bytes->shape.rank;
    if (bits == 8)
        return tl_onnx_emit_cast(c, bytes, TL_F32);
    tl_onnx_extents(bytes, extents);
    for (int64_t i = 0; i < each; i++)
        shifts[i] = (double)(i * bits);
    tl_value *apart =
        tl_onnx_emit_reshape_axis(c, bytes, rank - 1, 2, (int64_t[]){ extents[rank - 1], 1 });
    tl_value *by = tl_onnx_emit_numbers(c, TL_U8, shifts, 1, &each);
    apart = tl_emit2(c, TL_OP_SHIFT_RIGHT, apart, by);
    apart = tl_onnx_emit_with(c, TL_OP_BITWISE_AND, apart, mask);
    extents[rank - 1] *= each;
    return tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, apart, extents, rank), TL_F32);
}

static tl_status read_packing(tl_onnx_call *c, packing *p)
{
    const tl_shape *b = &c->inputs[1]->shape;
    p->rows = tl_call_int(c, "N", 0);
    p->columns = tl_call_int(c, "K", 0);
    p->block = tl_call_int(c, "block_size", 0);
    p->bits = tl_call_int(c, "bits", 4);
    TL_TRY(tl_need_shape(c, c->inputs[1]));
    TL_TRY(tl_need_dtype(c, c->inputs[1]));
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return tl_call_unsupported(c, "weights of %lld bits", (long long)p->bits);
    if (p->rows < 1 || p->columns < 1 || p->block < 16 || p->block > 1 << 20 ||
        p->columns > INT64_MAX - p->block)
        return tl_call_bad(c, "N %lld, K %lld, block_size %lld", (long long)p->rows,
                           (long long)p->columns, (long long)p->block);
    p->blocks = (p->columns + p->block - 1) / p->block;
    if (c->inputs[1]->dtype != TL_U8 || b->rank != 3 || b->dims[0].extent != p->rows ||
        b->dims[1].extent != p->blocks || b->dims[2].extent != p->block * p->bits / 8)
        return tl_call_bad(c, "its weights are not u8[N, %lld, %lld]", (long long)p->blocks,
                           (long long)(p->block * p->bits / 8));
    return TL_OK;
}

/* [N, blocks, 1]: packed like the weights, of the scales' dtype, or the middle of the range. */
static tl_status zero_points(tl_onnx_call *c, const packing *p, tl_value **out)
{
    tl_value *zero = tl_call_input(c, 3);
    if (zero == NULL) {
        *out = tl_onnx_emit_scalar(c, TL_F32, (double)(1 << (p->bits - 1)));
        return TL_OK;
    }
    TL_TRY(tl_need_shape(c, zero));
    TL_TRY(tl_need_dtype(c, zero));
    int64_t held = zero->dtype == TL_U8 ? (p->blocks * p->bits + 7) / 8 : p->blocks;
    if (tl_shape_elements(&zero->shape) != p->rows * held)
        return tl_call_bad(c, "its zero points are not [N, %lld]", (long long)held);
    zero = tl_onnx_emit_reshape(c, zero, (int64_t[]){ p->rows, held }, 2);
    zero = zero->dtype == TL_U8 ? tl_onnx_emit_slice(c, unpack(c, zero, p->bits), 1, 0, p->blocks)
                                : tl_onnx_emit_cast(c, zero, TL_F32);
    *out = tl_onnx_emit_reshape(c, zero, (int64_t[]){ p->rows, p->blocks, 1 }, 3);
    return TL_OK;
}

tl_status tl_import_matmul_bits(tl_onnx_call *c)
{
    tl_value *a = c->inputs[0], *scales = c->inputs[2], *bias = tl_call_input(c, 5), *zero = NULL;
    packing p = { 0 };
    TL_TRY(tl_need_dtype(c, a));
    TL_TRY(read_packing(c, &p));
    TL_TRY(tl_need_shape(c, scales));
    if (tl_call_int(c, "weight_prepacked", 0) != 0)
        return tl_call_unsupported(c, "weights in an order of a device's own (weight_prepacked)");
    if (tl_call_input(c, 4) != NULL)
        return tl_call_unsupported(c, "g_idx");
    if (tl_shape_elements(&scales->shape) != p.rows * p.blocks)
        return tl_call_bad(c, "its scales are not [N, %lld]", (long long)p.blocks);
    TL_TRY(zero_points(c, &p, &zero));
    scales = tl_onnx_emit_cast(c, scales, TL_F32);
    scales = tl_onnx_emit_reshape(c, scales, (int64_t[]){ p.rows, p.blocks, 1 }, 3);
    tl_value *w = tl_emit2(c, TL_OP_SUB, unpack(c, c->inputs[1], p.bits), zero);
    w = tl_emit2(c, TL_OP_MUL, w, scales);
    w = tl_onnx_emit_reshape(c, w, (int64_t[]){ p.rows, p.blocks * p.block }, 2);
    w = tl_onnx_emit_cast(c, tl_onnx_emit_slice(c, w, 1, 0, p.columns), a->dtype);
    tl_value *y =
        tl_emit2(c, TL_OP_MATMUL, a, tl_onnx_emit_transpose(c, w, (const int64_t[]){ 1, 0 }));
    tl_result(c, 0, bias != NULL ? tl_emit2(c, TL_OP_ADD, y, bias) : y);
    return TL_OK;
}
