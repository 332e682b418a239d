/* frontend/onnx/import_rules.h: the importers that import_ops.def names. Each makes canonical nodes of one call: arity and
 * attributes are checked already, results are bound with tl_result. */
#ifndef TL_FRONTEND_ONNX_IMPORT_RULES_H
#define TL_FRONTEND_ONNX_IMPORT_RULES_H
#include "frontend/onnx/onnx_private.h"

/* The importers that import_ops.def names. `plain`, which most operators have: one node of the row's operator on the inputs as
 * they are, with those attributes that both have. */
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) \
    tl_importer tl_import_##importer;
#include "frontend/onnx/import_ops.def"
#undef IMPORT

/* The same, as another operator and on the first inputs. */
tl_status tl_import_as(tl_onnx_call *c, tl_op op, int inputs);
/* The rank of `v`, or a refusal that says why it is needed. */
tl_status tl_need_rank(tl_onnx_call *c, const tl_value *v, int *out);
tl_status tl_need_shape(tl_onnx_call *c, const tl_value *v);
tl_status tl_need_dtype(tl_onnx_call *c, const tl_value *v);
/* A per-channel vector [C] for values [N, C, ...] of the rank: [C, 1, 1, ...]. */
tl_value *tl_onnx_emit_channel_vector(tl_onnx_call *c, tl_value *v, int rank);
/* Copies attributes of the same name and type onto the node, where the call has them. */
void tl_copy_attributes(const tl_onnx_call *c, tl_node *n);

#endif
