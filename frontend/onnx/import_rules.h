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

/* Numbers that an importer writes down at most: positions of windows, weights of what is resized; and all of a model together. */
enum { TL_ONNX_MOST_NUMBERS = 1 << 24, TL_ONNX_ALL_NUMBERS = 1 << 26 };

/* onnx_emit.c: nodes over values whose shapes are known. */
tl_value *tl_onnx_emit_numbers(tl_onnx_call *c, tl_dtype dtype, const double *numbers, int rank,
                               const int64_t *extents); /* a constant */
tl_value *tl_onnx_emit_doubles(tl_onnx_call *c, const double *numbers, int rank,
                               const int64_t *extents); /* of f64, as they lie in the arena */
tl_value *tl_onnx_emit_with(tl_onnx_call *c, tl_op op, tl_value *x,
                            double number); /* op(x, number) */
tl_value *tl_onnx_emit_axes(tl_onnx_call *c, tl_op op, tl_value *x, int count, const int64_t *axes);
tl_value *tl_onnx_emit_transpose(tl_onnx_call *c, tl_value *x, const int64_t *perm);
tl_value *tl_onnx_emit_expand(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank);
/* Elements from `start` to before `end` in steps, as Slice counts them; the shape need not be known. */
tl_value *tl_onnx_emit_part(tl_onnx_call *c, tl_value *x, int64_t axis, int64_t start, int64_t end,
                            int64_t step);
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
/* The numbers of attribute `name`, which has `count` of them from `least` on, or `otherwise` without it. */
enum { TL_LARGEST_LISTED = 1 << 20 };
tl_status tl_call_list(tl_onnx_call *c, const char *name, int count, int64_t otherwise,
                       int64_t least, int64_t *out);
/* The value of an input on which the form of the result depends; it is bound if it has to be (onnx_deciding.c). */
tl_status tl_need_i64(tl_onnx_call *c, int input, const int64_t **out, int *count);
tl_status tl_need_numbers(tl_onnx_call *c, int input, const double **out, int *count);
tl_status tl_need_scalar(tl_onnx_call *c, int input, double otherwise,
                         double *out); /* it may be absent */

/* An axis that an input says. */
tl_status tl_need_axis(tl_onnx_call *c, int input, int64_t otherwise, int rank, int *out);

/* Copies attributes of the same name and type onto the node, where the call has them. */
void tl_copy_attributes(const tl_onnx_call *c, tl_node *n);

#endif
