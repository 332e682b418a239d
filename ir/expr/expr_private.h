/* ir/expr/expr_private.h: what the files of expressions share. */
#ifndef TL_IR_EXPR_EXPR_PRIVATE_H
#define TL_IR_EXPR_EXPR_PRIVATE_H
#include "ir/expr/expr.h"

/* A node as it is: nothing folded, nothing canonicalised. `args` is copied. */
tl_expr *tl_expr_node(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, int arg_count,
                      const tl_expr *const *args);
tl_expr *tl_expr_node2(tl_arena *arena, tl_expr_kind kind, tl_dtype dtype, const tl_expr *a,
                       const tl_expr *b);

/* An INT or FLOAT constant. */
static inline bool tl_is_constant(const tl_expr *e)
{
    return e->kind == TL_EXPR_INT || e->kind == TL_EXPR_FLOAT;
}

/* ir/expr/expr_fold.c: the result of an operation on two constants; NULL when it has none (x // 0). */
const tl_expr *tl_fold_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                              const tl_expr *b);
const tl_expr *tl_fold_cast(tl_arena *arena, tl_dtype to, const tl_expr *a);
const tl_expr *tl_fold_bits(tl_arena *arena, tl_dtype to, const tl_expr *a);
const tl_expr *tl_fold_logic(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                             const tl_expr *b);

static inline bool tl_is_compare(tl_expr_kind kind)
{
    return kind == TL_EXPR_LT || kind == TL_EXPR_LE || kind == TL_EXPR_EQ || kind == TL_EXPR_NE;
}

/* i64 arithmetic that wraps instead of being undefined. */
static inline int64_t tl_wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t tl_wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* ir/text/expr_print.c: printing with names that the caller chooses; NULL: as they are. */
typedef struct tl_namer {
    const char *(*var)(const struct tl_namer *namer, const tl_var *var);
    const char *(*buffer)(const struct tl_namer *namer, const tl_buffer *buffer);
} tl_namer;
void tl_expr_print_named(const tl_expr *e, const tl_namer *namer, tl_text *out);

#endif
