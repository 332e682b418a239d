/* frontend/import/import_rules.h: the importers that import_ops.def names. Each makes canonical nodes of one call: arity and
 * attributes are checked already, results are bound with tl_result. */
#ifndef TL_FRONTEND_ONNX_IMPORT_RULES_H
#define TL_FRONTEND_ONNX_IMPORT_RULES_H
#include "frontend/call/onnx_emit.h"

/* The importers that import_ops.def names. `plain`, which most operators have: one node of the row's operator on the inputs as
 * they are, with those attributes that both have. */
#define IMPORT(type, since, until, min, max, outputs, importer, op, attributes) \
    tl_importer tl_import_##importer;
#include "frontend/import/import_ops.def"
#undef IMPORT

/* NULL with the reason when there is none for this version. */
const tl_import_rule *tl_import_rule_find(const char *op_type, int version, const char **reason);

/* The same, as another operator and on the first inputs. */
tl_status tl_import_as(tl_onnx_call *c, tl_op op, int inputs);
/* import_patches.c: where the elements that a pool chose lie. */
tl_status tl_import_pool_positions(tl_onnx_call *c, const tl_value *pooled);
/* auto_pad says nothing, or one of three words; then pads have no say. */
tl_status tl_check_auto_pad(tl_onnx_call *c, tl_node *n);
/* Inputs that are required behind one that is not; bit i of `which` for input i. */
tl_status tl_need_inputs(tl_onnx_call *c, unsigned which);
/* The rank of `v`, or a refusal that says why it is needed. */
tl_status tl_need_rank(tl_onnx_call *c, const tl_value *v, int *out);
tl_status tl_need_shape(tl_onnx_call *c, const tl_value *v);
tl_status tl_need_dtype(tl_onnx_call *c, const tl_value *v);
/* import_window.c: the product that a call asks for with the inputs and attributes of Gemm. */
tl_status tl_onnx_emit_gemm(tl_onnx_call *c, tl_value **out);
/* A per-channel vector [C] for values [N, C, ...] of the rank: [C, 1, 1, ...]. */
tl_value *tl_onnx_emit_channel_vector(tl_onnx_call *c, tl_value *v, int rank);

/* import_norm.c: x over the root of the mean of its squares from `axis` on, scaled; `spread` is that root. */
tl_status tl_onnx_emit_rms_norm(tl_onnx_call *c, tl_value *x, tl_value *scale, int64_t axis,
                                double epsilon, tl_value **out, tl_value **spread);

/* import_reduce.c: x - max - log(sum(exp(x - max))) along the axis. */
tl_value *tl_onnx_emit_log_softmax(tl_onnx_call *c, tl_value *x, int64_t axis);

/* import_activation.c: what a product or a convolution is fused with, by its name in com.microsoft. */
tl_status tl_onnx_emit_activation(tl_onnx_call *c, const char *name, int count,
                                  const double *numbers, tl_value **x);

/* import_loop_node.c: a loop whose body has been read into a region; its inputs are a turn's number and the state, its outputs
 * are added here: whether there is another turn, the next state, what each turn gives. The results: the last state, what the
 * turns gave along a new first axis of `most`, how many turns there were (one i64). */
typedef struct {
    tl_value *wanted, *enters; /* one i64, one bool, or NULL */
    int state_count;
    tl_value *const *states;
    bool has_again;
    int output_count;
    tl_value *const *outputs;
    int64_t most;
} tl_onnx_loop;
tl_value **tl_onnx_emit_loop(tl_onnx_call *c, tl_onnx_region *r, const tl_onnx_loop *l);

/* Copies attributes of the same name and type onto the node, where the call has them. */
void tl_copy_attributes(const tl_onnx_call *c, tl_node *n);

#endif
