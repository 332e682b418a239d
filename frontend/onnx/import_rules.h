/* frontend/onnx/import_rules.h: the importers that import_ops.def names. Each makes canonical nodes of one call: arity and
 * attributes are checked already, results are bound with tl_result. */
#ifndef TL_FRONTEND_ONNX_IMPORT_RULES_H
#define TL_FRONTEND_ONNX_IMPORT_RULES_H
#include "frontend/onnx/onnx_private.h"

/* import_elementwise.c */
tl_importer tl_import_unary, tl_import_binary, tl_import_binary_old, tl_import_variadic,
    tl_import_xor, tl_import_where, tl_import_clip_old, tl_import_clip, tl_import_cast_old,
    tl_import_cast, tl_import_cast_like, tl_import_gelu, tl_import_is_nan, tl_import_is_inf,
    tl_import_sign, tl_import_mod, tl_import_bit_shift;
/* import_activation.c: written with elementary functions */
tl_importer tl_import_leaky_relu, tl_import_prelu_old, tl_import_prelu, tl_import_elu,
    tl_import_selu, tl_import_celu, tl_import_thresholded_relu, tl_import_hard_sigmoid,
    tl_import_hard_swish, tl_import_softplus, tl_import_softsign, tl_import_mish, tl_import_swish,
    tl_import_shrink;
/* import_layout.c */
tl_importer tl_import_identity, tl_import_dropout, tl_import_reshape_old, tl_import_reshape,
    tl_import_flatten, tl_import_axes_old, tl_import_axes, tl_import_transpose, tl_import_concat,
    tl_import_expand, tl_import_tile, tl_import_depth_to_space, tl_import_space_to_depth;
/* import_slice.c */
tl_importer tl_import_slice_old, tl_import_slice, tl_import_split_old, tl_import_split,
    tl_import_pad_old, tl_import_pad, tl_import_gather, tl_import_gather_nd, tl_import_shape,
    tl_import_size, tl_import_range;
/* import_constant.c */
tl_importer tl_import_constant_node, tl_import_constant_of_shape, tl_import_if;
/* import_reduce.c */
tl_importer tl_import_reduce_old, tl_import_reduce, tl_import_arg, tl_import_softmax_old,
    tl_import_softmax, tl_import_log_softmax_old, tl_import_log_softmax;
/* import_window.c */
tl_importer tl_import_conv, tl_import_pool, tl_import_global_pool, tl_import_gemm, tl_import_matmul;
/* import_norm.c */
tl_importer tl_import_batch_norm, tl_import_layer_norm, tl_import_instance_norm,
    tl_import_group_norm, tl_import_rms_norm, tl_import_lp_norm, tl_import_mean_variance,
    tl_import_lrn;

/* import_recurrent.c */
tl_importer tl_import_recurrent;
/* import_resize.c */
tl_importer tl_import_resize, tl_import_upsample;
/* import_conv_transpose.c */
tl_importer tl_import_conv_transpose;
/* import_scatter.c */
tl_importer tl_import_scatter, tl_import_tensor_scatter, tl_import_cumulate, tl_import_top_k,
    tl_import_one_hot, tl_import_hardmax, tl_import_reverse_sequence, tl_import_max_unpool;
/* import_matrix.c */
tl_importer tl_import_trilu, tl_import_eye_like, tl_import_det, tl_import_einsum;
/* import_quantize.c */
tl_importer tl_import_quantize_linear, tl_import_dequantize_linear, tl_import_dynamic_quantize,
    tl_import_matmul_integer, tl_import_qlinear_matmul, tl_import_conv_integer,
    tl_import_qlinear_conv;
/* import_attention.c */
tl_importer tl_import_attention, tl_import_rotary_embedding, tl_import_linear_attention,
    tl_import_causal_conv;
/* import_signal.c */
tl_importer tl_import_hann_window, tl_import_hamming_window, tl_import_blackman_window,
    tl_import_mel_weights, tl_import_dft, tl_import_stft;
/* import_sample.c */
tl_importer tl_import_grid_sample, tl_import_affine_grid, tl_import_roi_align,
    tl_import_deform_conv;
/* import_patches.c */
tl_importer tl_import_lp_pool, tl_import_global_lp_pool, tl_import_col2im,
    tl_import_center_crop_pad;
tl_status tl_import_pool_positions(tl_onnx_call *c, const tl_value *pooled);
/* import_loss.c */
tl_importer tl_import_nll_loss, tl_import_cross_entropy;

/* auto_pad says nothing, or one of three words; then pads have no say. */
tl_status tl_check_auto_pad(tl_onnx_call *c, tl_node *n);

/* x with `low`..`high` of the node's inputs given as they are, and no more attributes: most operators. */
tl_status tl_import_plain(tl_onnx_call *c, tl_op op, int inputs);
/* The rank of `v`, or a refusal that says why it is needed. */
tl_status tl_need_rank(tl_onnx_call *c, const tl_value *v, int *out);
tl_status tl_need_shape(tl_onnx_call *c, const tl_value *v);
tl_status tl_need_dtype(tl_onnx_call *c, const tl_value *v);
/* A per-channel vector [C] for values [N, C, ...] of the rank: [C, 1, 1, ...]. */
tl_value *tl_onnx_emit_channel_vector(tl_onnx_call *c, tl_value *v, int rank);

/* onnx_emit.c: nodes over values whose shapes are known. */
tl_value *tl_onnx_emit_numbers(tl_onnx_call *c, tl_dtype dtype, const double *numbers, int rank,
                               const int64_t *extents); /* a constant */
tl_value *tl_onnx_emit_with(tl_onnx_call *c, tl_op op, tl_value *x,
                            double number); /* op(x, number) */
tl_value *tl_onnx_emit_axes(tl_onnx_call *c, tl_op op, tl_value *x, int count, const int64_t *axes);
tl_value *tl_onnx_emit_transpose(tl_onnx_call *c, tl_value *x, const int64_t *perm);
tl_value *tl_onnx_emit_expand(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank);
tl_value *tl_onnx_emit_slice(tl_onnx_call *c, tl_value *x, int axis, int64_t start, int64_t count);
tl_value *tl_onnx_emit_reverse(tl_onnx_call *c, tl_value *x, int axis);
tl_value *tl_onnx_emit_concat(tl_onnx_call *c, int count, tl_value *const *parts, int axis);
/* GATHER and GATHER_ELEMENTS along `axis`, GATHER_ND behind so many batch axes. */
tl_value *tl_onnx_emit_gather(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *indices, int axis);
/* `pads`: before each axis, then after each; negative ones cut off. */
tl_value *tl_onnx_emit_pad(tl_onnx_call *c, tl_value *x, const int64_t *pads, double number);
/* One axis becomes `count` of these extents (0: it had one element). */
tl_value *tl_onnx_emit_reshape_axis(tl_onnx_call *c, tl_value *x, int axis, int count,
                                    const int64_t *extents);
/* A vector along `axis` of `rank` axes, the others of extent 1. */
tl_value *tl_onnx_emit_along(tl_onnx_call *c, tl_value *v, int rank, int axis);
tl_value *tl_onnx_emit_range(tl_onnx_call *c, int64_t count); /* 0, 1, 2, ... as i64 */
void tl_onnx_extents(const tl_value *v, int64_t out[TL_MAX_RANK]);
/* axis + rank when negative; outside of the rank it is the model's fault. */
tl_status tl_onnx_axis(tl_onnx_call *c, int64_t axis, int rank, int *out);
/* The value of an input on which the form of the result depends; it is bound if it has to be (onnx_deciding.c). */
tl_status tl_need_i64(tl_onnx_call *c, int input, const int64_t **out, int *count);
tl_status tl_need_numbers(tl_onnx_call *c, int input, const double **out, int *count);
tl_status tl_need_scalar(tl_onnx_call *c, int input, double otherwise,
                         double *out); /* it may be absent */

/* Copies attributes of the same name and type onto the node, where the call has them. */
void tl_copy_attributes(const tl_onnx_call *c, tl_node *n);

#endif
