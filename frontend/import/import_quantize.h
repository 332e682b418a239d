/* frontend/import/import_quantize.h: the parts that ONNX's quantised operators and those of com.microsoft are made of. */
#ifndef TL_FRONTEND_ONNX_IMPORT_QUANTIZE_H
#define TL_FRONTEND_ONNX_IMPORT_QUANTIZE_H
#include "frontend/import/import_rules.h"

/* Numbers can be quantised to the dtype, or a refusal. */
tl_status tl_onnx_check_quantized(tl_onnx_call *c, tl_dtype dtype);
/* Rounded, moved by the zero point (NULL: none), and kept within the dtype. */
tl_value *tl_onnx_saturate(tl_onnx_call *c, tl_value *scaled, tl_value *zero, tl_dtype dtype);
/* In f32 at least. */
tl_value *tl_onnx_wide_float(tl_onnx_call *c, tl_value *x);
/* x without its zero point (NULL: none), as i32; a vector of zero points lies along `axis`, 0 the first, -1 the last but one. */
tl_status tl_onnx_take_off(tl_onnx_call *c, tl_value *x, tl_value *zero, int axis, tl_value **out);
/* Of one element: without axes. */
tl_value *tl_onnx_as_scalar(tl_onnx_call *c, tl_value *v);
/* x quantised to u8 by its range, with zero in it, in 255 steps; the scale; the zero point. */
void tl_onnx_quantize_range(tl_onnx_call *c, tl_value *x, tl_value *out[3]);

#endif
