/* frontend/node/graph_questions.h: small questions that rewrites ask of a graph. */
#ifndef TL_FRONTEND_NODE_GRAPH_QUESTIONS_H
#define TL_FRONTEND_NODE_GRAPH_QUESTIONS_H
#include "frontend/operators.h"

/* The node of operator `op` that makes v; NULL when something else does. */
tl_node *tl_producer(const tl_value *v, tl_op op);
/* The same where v has no other reader than the node that asks. */
tl_node *tl_sole_producer(const tl_value *v, tl_op op);
/* A float constant with one value in every element (scalar or not); false when v is no such thing. */
bool tl_uniform(const tl_value *v, double *out);
/* The same, and the value is `number` up to the rounding of f32 and a bit more. */
bool tl_is_uniform(const tl_value *v, double number);
/* For a node with two inputs: one of them is the uniform constant `number`, the other is returned; else NULL. */
tl_value *tl_beside_uniform(const tl_node *n, double number);

/* A product taken apart: v = scale * factors[0] * factors[1] * ..., through Mul, Div by a uniform constant, and Pow by 2 or
 * 3. Intermediate values with other readers stay factors. False when there are too many. */
enum { TL_MAX_FACTORS = 6 };
typedef struct {
    double scale;
    int count;
    tl_value *factors[TL_MAX_FACTORS];
} tl_product;
bool tl_product_of(tl_value *v, tl_product *out);
/* Up to the rounding of constants in models: to six digits in f32, whose results are no better; to all of them in f64. */
bool tl_close(double a, double b, tl_dtype dtype);
/* For a commutative node with two inputs: the one that is not v; NULL when v is neither. */
tl_value *tl_other_input(const tl_node *n, const tl_value *v);
/* The one node that reads v, when it is of operator `op` and v is no graph output; else NULL. */
tl_node *tl_sole_user(const tl_value *v, tl_op op);
bool tl_same_shape(const tl_value *a, const tl_value *b);
/* Whether no number of the attribute, a list of numbers, is another than `value`; true where there is none. */
bool tl_attr_all_are(const tl_node *n, const char *name, int64_t value);
/* A Slice that makes y of x: y's extent of neighbours along the axis, from `start` on; all of the other axes. */
tl_node *tl_slice_node(tl_graph *g, const char *name, tl_value *x, tl_value *y, int axis,
                       int64_t start);
/* Replaces the node that makes `y` by a new one of the same name with the given inputs. */
tl_node *tl_replace_node(tl_graph *g, tl_value *y, tl_op op, int input_count,
                         tl_value *const *inputs);

#endif
