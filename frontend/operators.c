/* frontend/operators.c: the table of operators.def. */
#include "frontend/operators.h"
#include <string.h>

const tl_operator tl_operators[TL_OP_COUNT] = {
#define OPERATOR(op, kind, takes, block, zero, reads, shape, dtype, binds, check, fold, equals,   \
                 axes, stages, value, expression, roles)                                          \
    [TL_OP_##                                                                                     \
        op] = { TL_KIND_##kind,                                                                   \
                TL_TAKES_##takes,                                                                 \
                tl_block_##block,                                                                 \
                TL_ZERO_##zero,                                                                   \
                reads,                                                                            \
                tl_shape_rule_##shape,                                                            \
                TL_GIVES_##dtype,                                                                 \
                binds,                                                                            \
                tl_check_##check,                                                                 \
                TL_FOLDS_##fold,                                                                  \
                tl_equals_##equals,                                                               \
                tl_axes_##axes,                                                                   \
                { TL_OP_##op, "direct", tl_lowers_any, 1, tl_stages_##stages, tl_value_##value }, \
                tl_expression_##expression,                                                       \
                roles },
#include "frontend/operators.def"
#undef OPERATOR
};

/* The rows of operators.def in their order, each once ... */
enum {
#define OPERATOR(op, kind, takes, block, zero, reads, shape, dtype, binds, check, fold, equals, \
                 axes, stages, value, expression, roles)                                        \
    ROW_##op,
#include "frontend/operators.def"
#undef OPERATOR
    ROW_COUNT
};
/* ... are those of graph_ops.def. */
#define OP(name, text, min_inputs, max_inputs, outputs, attributes) \
    _Static_assert((int)ROW_##name == (int)TL_OP_##name,            \
                   #name " stands elsewhere in operators.def than in graph_ops.def");
#include "ir/graph/graph_ops.def"
#undef OP
_Static_assert((int)ROW_COUNT == (int)TL_OP_COUNT,
               "operators.def has more rows than graph_ops.def");

const char *tl_operator_word(const char *words, int index, size_t *size)
{
    for (int i = 0; i < index && *words != '\0'; i++) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    *size = strcspn(words, " ");
    return words;
}
