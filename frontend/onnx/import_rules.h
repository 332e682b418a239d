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

/* x with `low`..`high` of the node's inputs given as they are, and no more attributes: most operators. */
tl_status tl_import_plain(tl_onnx_call *c, tl_op op, int inputs);
/* The rank of `v`, or a refusal that says why it is needed. */
tl_status tl_need_rank(tl_onnx_call *c, const tl_value *v, int *out);
tl_status tl_need_shape(tl_onnx_call *c, const tl_value *v);
tl_status tl_need_dtype(tl_onnx_call *c, const tl_value *v);
/* A per-channel vector [C] for values [N, C, ...] of the rank: [C, 1, 1, ...]. */
tl_value *tl_onnx_emit_channel_vector(tl_onnx_call *c, tl_value *v, int rank);
/* Copies attributes of the same name and type onto the node, where the call has them. */
void tl_copy_attributes(const tl_onnx_call *c, tl_node *n);

#endif
