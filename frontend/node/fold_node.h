/* frontend/node/fold_node.h: evaluates one node whose inputs are constants. */
#ifndef TL_FRONTEND_NODE_FOLD_NODE_H
#define TL_FRONTEND_NODE_FOLD_NODE_H
#include "ir/graph/graph.h"

#define TL_FOLD_ELEMENTS \
    65536 /* outputs with more elements are computed in every run, but for weights (fold_weights.c) */

/* Dtypes and shapes are known, the inputs are constants (a Shape's need not be), the result is small, and the graph does
 * not keep it. */
bool tl_node_is_foldable(const tl_graph *g, const tl_node *n);
/* The same whatever the inputs are, for a result of at most so many elements: whether it could be folded if they were
 * constants. */
bool tl_node_folds_within(const tl_graph *g, const tl_node *n, int64_t most);
/* Whether later nodes may need its result as a constant: shape arithmetic, also where it passes through floats (Ceil of
 * a Div). */
bool tl_node_may_decide_shapes(const tl_node *n);
/* The value of a foldable node's output, packed, computed through its naive program and the interpreter; the node stays as
 * it is. Lives in the graph's arena, or is the node's own constant. */
tl_status tl_node_value(tl_graph *g, tl_node *n, const void **out, tl_diag *diag);
/* Computes the node through its naive program and the interpreter: its output becomes a constant, the node dead
 * (or, where the value is a graph output, an Identity of the constant). */
tl_status tl_fold_node(tl_graph *g, tl_node *n, tl_diag *diag);

/* check_constants.c: TL_BAD_MODEL when a constant among the inputs is a value that the operator is not defined for,
 * whatever the others are: an index outside of its axis, an integer divisor of 0. Shapes are known. */
tl_status tl_check_constants(tl_graph *g, const tl_node *n, tl_diag *diag);

#endif
