/* frontend/operators.h: the rows of operators.def as a table that all of the frontend asks.
 *
 * The functions of a row live in the rooms that its columns name; here are their types. */
#ifndef TL_FRONTEND_OPERATORS_H
#define TL_FRONTEND_OPERATORS_H
#include "ir/expr/expr.h"
#include "ir/graph/graph.h"

typedef enum {
    TL_KIND_ELEMENTWISE,
    TL_KIND_LAYOUT,
    TL_KIND_REDUCTION,
    TL_KIND_NORM,
    TL_KIND_POOL,
    TL_KIND_CONTRACTION,
    TL_KIND_VANISHING,
    TL_KIND_CONTROL,
} tl_operator_kind;

typedef enum {
    TL_TAKES_MEMORY = 0,
    TL_TAKES_CHAIN = 1,
    TL_TAKES_WINDOWS = 2,
    TL_TAKES_BOTH = TL_TAKES_CHAIN | TL_TAKES_WINDOWS,
} tl_operator_takes;

typedef enum { TL_ZERO_STAYS, TL_ZERO_FINITE, TL_ZERO_BY_NUMBER, TL_ZERO_ANY } tl_operator_zero;

typedef enum {
    TL_GIVES_FIRST,
    TL_GIVES_SECOND,
    TL_GIVES_BOOL,
    TL_GIVES_I64,
    TL_GIVES_TO,
    TL_GIVES_DTYPE,
} tl_operator_gives;

typedef enum {
    TL_FOLDS_PROGRAM,
    TL_FOLDS_BYTES,
    TL_FOLDS_CAST,
    TL_FOLDS_EXTENTS,
    TL_FOLDS_NEVER
} tl_operator_folds;

/* The block of channels of the node's result, on vectors of `lanes` f32; 1: it is laid out plainly. */
typedef int64_t tl_block_fn(const tl_node *n, int lanes);
/* Gives the outputs dtype and shape, and normalises the attributes (node/shape_rules.h). */
typedef tl_status tl_shape_rule(tl_graph *g, tl_node *n, tl_diag *diag);
/* TL_BAD_MODEL when a constant operand is a value that the operator is not defined for. */
typedef tl_status tl_check_fn(tl_graph *g, const tl_node *n, tl_diag *diag);
/* The input that the node's result is the same as; NULL: it computes something. */
typedef tl_value *tl_equals_fn(const tl_node *n);
/* tl_axis_of_inputs (node/axis_rules.h). */
typedef bool tl_axes_fn(const tl_node *n, int axis, int *of);

typedef struct tl_lower tl_lower;
typedef const tl_expr *const *tl_index; /* one expression a logical axis */
typedef void tl_stages_fn(tl_lower *l, const tl_node *n);
typedef const tl_expr *tl_value_fn(tl_lower *l, const tl_node *n, tl_index index);
/* Of the elements of the node's inputs; NULL in it: an input that is not given. */
typedef const tl_expr *tl_expression_fn(tl_arena *arena, const tl_node *n, const tl_expr *const *x);
typedef bool tl_lowers_fn(const tl_node *n);

/* A way to write an operator as a program. */
typedef struct {
    tl_op op;
    const char *name;
    tl_lowers_fn *lowers;
    int error; /* times the direct one's */
    tl_stages_fn *stages;
    tl_value_fn *value;
} tl_lowering;

typedef struct {
    tl_operator_kind kind;
    tl_operator_takes takes;
    tl_block_fn *block;
    tl_operator_zero zero;
    int reads;
    tl_shape_rule *shape;
    tl_operator_gives dtype;
    const char *binds;
    tl_check_fn *check;
    tl_operator_folds fold;
    tl_equals_fn *equals;
    tl_axes_fn *axes;
    tl_lowering direct;
    tl_expression_fn *expression;
    const char *roles;
} tl_operator;
extern const tl_operator tl_operators[TL_OP_COUNT];

/* The `index`-th of the words that blanks part; its size in `size`, 0 beyond the last. */
const char *tl_operator_word(const char *words, int index, size_t *size);

static inline bool tl_is_elementwise(const tl_node *n)
{
    return tl_operators[n->op].kind == TL_KIND_ELEMENTWISE;
}
/* Its value is an expression of its operands: it has no loops of its own and can melt into what reads it. */
static inline bool tl_is_injective(const tl_node *n)
{
    return tl_is_elementwise(n) || tl_operators[n->op].kind == TL_KIND_LAYOUT;
}

#define OPERATOR(op, kind, takes, block, zero, reads, shape, dtype, binds, check, fold, equals, \
                 axes, stages, value, expression, roles)                                        \
    tl_block_fn tl_block_##block;                                                               \
    tl_shape_rule tl_shape_rule_##shape;                                                        \
    tl_check_fn tl_check_##check;                                                               \
    tl_equals_fn tl_equals_##equals;                                                            \
    tl_axes_fn tl_axes_##axes;                                                                  \
    tl_stages_fn tl_stages_##stages;                                                            \
    tl_value_fn tl_value_##value;                                                               \
    tl_expression_fn tl_expression_##expression;
#include "frontend/operators.def"
#undef OPERATOR
#define FUNCTION(name, text, arity, operands, result) tl_expression_fn tl_expression_##name;
#include "ir/expr/functions.def"
#undef FUNCTION
tl_lowers_fn tl_lowers_any;

#endif
