/* frontend/node/shape_rules.h: what the shape rules of frontend/operators.def share.
 *
 * A rule is called when every input that is given has a dtype and a static shape, and no required one is
 * missing. It checks them, normalises the node's attributes (negative axes, auto_pad, ...) and sets dtype and
 * shape of the outputs; a node that breaks the operator's rule is TL_BAD_MODEL, with a sentence that
 * names the node, the values and their shapes. */
#ifndef TL_FRONTEND_NODE_SHAPE_RULES_H
#define TL_FRONTEND_NODE_SHAPE_RULES_H
#include "frontend/operators.h"

/* "node 'conv1' (Conv): " and the sentence. */
tl_status tl_fail_node(tl_diag *diag, tl_status status, const tl_node *n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "'x' f32[1, 3, 224, 224]" */
const char *tl_value_text(tl_graph *g, const tl_value *v);
const char *tl_extents_text(tl_graph *g, int count, const int64_t *extents);

static inline int64_t tl_extent(const tl_value *v, int axis)
{
    return v->shape.dims[axis].extent;
}
static inline tl_value *tl_node_input(const tl_node *n, int i) /* NULL when not given */
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

/* Gives output `i` (which may be NULL) its dtype and shape; a size that overflows or is negative is refused. */
tl_status tl_set_output(tl_graph *g, tl_node *n, int i, tl_dtype dtype, int rank,
                        const int64_t *extents, tl_diag *diag);
/* Gives output 0 the dtype and the shape of input 0. */
tl_status tl_set_output_like(tl_graph *g, tl_node *n, tl_dtype dtype, tl_diag *diag);
/* All given inputs from `first` on broadcast together; TL_BAD_MODEL names the two that do not. */
tl_status tl_broadcast_inputs(tl_graph *g, const tl_node *n, int first, int *rank,
                              int64_t out[TL_MAX_RANK], tl_diag *diag);
/* Its first input is of numbers. */
tl_status tl_not_bool(tl_graph *g, const tl_node *n, tl_diag *diag);
tl_status tl_same_dtype(tl_graph *g, const tl_node *n, int a, int b, tl_diag *diag);
/* axis + rank when negative; refuses what is outside -rank .. rank-1 (or 0..rank when `end` is allowed). */
tl_status tl_normal_axis(const tl_node *n, int64_t axis, int rank, bool end, int *out,
                         tl_diag *diag);
/* The axes of attribute `name`, normalised into a set; refuses duplicates. Missing: none. */
tl_status tl_axes_set(const tl_node *n, const char *name, int rank, bool set[TL_MAX_RANK],
                      tl_diag *diag);
/* Integers of a constant of any integer dtype; false when it is no such constant. */
bool tl_constant_ints(tl_graph *g, const tl_value *v, const int64_t **out, int *count);

/* infer_shapes.c: a graph input has a dtype and a static shape; TL_UNBOUND names an axis that is open. */
tl_status tl_check_graph_input(const tl_value *v, tl_diag *diag);
/* bind_operands.c: moves the constant operands that decide shapes into attributes and drops these inputs.
 * TL_UNSUPPORTED when such an operand is computed from the model's inputs. */
tl_status tl_bind_operands(tl_graph *g, tl_node *n, tl_diag *diag);
/* Whether the operator's input has to be a constant, for a shape depends on its value. */
bool tl_operand_decides_shape(tl_op op, int input);

#endif
