/* ir/expr/expr.h: scalar expressions. Nodes are immutable and live in the arena of their compile.
 *
 * Index expressions are those of dtype i64: they are brought to the canonical form of ir/expr/index.h
 * when they are built, so that equal indices have equal texts: a sum of products with integer
 * coefficients, plus floordiv and floormod terms that the known ranges of the variables could not
 * remove. Value expressions of other dtypes fold constants and nothing else: their arithmetic is
 * the user's. */
#ifndef TL_IR_EXPR_EXPR_H
#define TL_IR_EXPR_EXPR_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/text.h"

typedef enum {
#define EXPR(kind, text, arity, commutes, payload) TL_EXPR_##kind,
#include "ir/expr/expr_kinds.def"
#undef EXPR
    TL_EXPR_KIND_COUNT
} tl_expr_kind;

typedef enum {
#define FUNCTION(name, text, arity, operands, result) TL_FUNCTION_##name,
#include "ir/expr/functions.def"
#undef FUNCTION
    TL_FUNCTION_COUNT
} tl_function;

/* Nodes and levels of the tree of an expression. What prints, proves, interprets and compiles expressions walks trees, by
 * recursion: a Program has none that is larger or deeper (the verifier). Whoever copies expressions into others stops long
 * before. */
enum {
    TL_EXPR_LARGEST = 10000,
    TL_EXPR_DEEPEST = 2000,
    TL_EXPR_COUNTLESS = 1000000000, /* what a tree that is too large to be counted counts as */
};

typedef struct tl_expr tl_expr;
typedef struct tl_buffer tl_buffer; /* ir/expr/buffer.h */

/* A variable: of a loop, of a block's iter, or a kernel's dim. Two variables are the same only when
 * they are the same object; names are for people and made unique when printed. Every value it takes
 * lies in min..max (both included), which is what the simplifier may rely on. */
typedef struct {
    const char *name;
    int64_t min, max;
    bool is_dim; /* an argument of the kernel */
    uint32_t id; /* set by tl_var_make: orders variables of one name */
} tl_var;

struct tl_expr {
    tl_expr_kind kind; /* says which member of u is meant */
    tl_dtype dtype;
    uint32_t hash; /* structural; equal expressions have equal hashes */
    /* Of the tree that printing, compiling and interpreting walk, where a node counts each time it is read: its nodes, and those
     * on its longest path, this one included. Neither exceeds TL_EXPR_COUNTLESS. */
    uint32_t size, depth;
    int arg_count;
    const tl_expr *const *args;
    union {
        int64_t value;           /* INT */
        double number;           /* FLOAT, already rounded to dtype */
        const tl_var *var;       /* VAR */
        const tl_buffer *buffer; /* LOAD */
        tl_function function;    /* CALL */
    } u;
};

/* The member of tl_expr.u that counts. */
typedef enum {
    TL_PAYLOAD_NONE,
    TL_PAYLOAD_VALUE,
    TL_PAYLOAD_NUMBER,
    TL_PAYLOAD_VAR,
    TL_PAYLOAD_BUFFER,
    TL_PAYLOAD_FUNCTION,
} tl_expr_payload;

typedef struct {
    const char *name, *text; /* "ADD", "+" */
    int arity;
    bool commutes;
    tl_expr_payload payload;
} tl_expr_info;
extern const tl_expr_info tl_expr_infos[TL_EXPR_KIND_COUNT];

typedef enum { TL_OPERANDS_FLOAT, TL_OPERANDS_INT, TL_OPERANDS_ANY } tl_operands;
typedef enum { TL_RESULT_EXACT, TL_RESULT_ROUNDED } tl_function_result;
typedef struct {
    const char *name, *text; /* "EXP", "exp" */
    int arity;
    tl_operands operands;
    tl_function_result result;
} tl_function_info;
extern const tl_function_info tl_function_infos[TL_FUNCTION_COUNT];
bool tl_function_from_text(const char *text, tl_function *out);

/* Constructors. Operands of a binary have one dtype; a condition is bool; these are assertions. */
tl_var *tl_var_make(tl_arena *arena, const char *name, int64_t min, int64_t max);
/* The variable of a loop or iter over 0..extent: its max is that of the largest extent. */
tl_var *tl_var_of_extent(tl_arena *arena, const char *name, const tl_expr *extent);
const tl_expr *tl_int(tl_arena *arena, int64_t value);                    /* i64 */
const tl_expr *tl_int_of(tl_arena *arena, tl_dtype dtype, int64_t value); /* wraps to dtype */
const tl_expr *tl_bool(tl_arena *arena, bool value);
const tl_expr *tl_float(tl_arena *arena, tl_dtype dtype, double number); /* rounds to dtype */
/* An int or a float, by dtype. */
const tl_expr *tl_constant(tl_arena *arena, tl_dtype dtype, double number);
const tl_expr *tl_ref(tl_arena *arena, const tl_var *var);
const tl_expr *tl_load(tl_arena *arena, const tl_buffer *buffer, const tl_expr *const *indices);
const tl_expr *tl_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_not(tl_arena *arena, const tl_expr *a);
const tl_expr *tl_select(tl_arena *arena, const tl_expr *condition, const tl_expr *yes,
                         const tl_expr *no);
/* a itself when it has that dtype. */
const tl_expr *tl_cast(tl_arena *arena, tl_dtype to, const tl_expr *a);
/* The bits of `a` as a value of `to`, which is as wide; one of the two is a float dtype. A NaN may become another one, and
 * what is below the smallest normal number zero, where it is computed with before or behind. */
const tl_expr *tl_bits(tl_arena *arena, tl_dtype to, const tl_expr *a);
const tl_expr *tl_call(tl_arena *arena, tl_function function, const tl_expr *const *args);
const tl_expr *tl_call1(tl_arena *arena, tl_function function, const tl_expr *a);
const tl_expr *tl_call2(tl_arena *arena, tl_function function, const tl_expr *a, const tl_expr *b);
/* The same expression with other operands, folded and canonicalised anew. */
const tl_expr *tl_expr_with_args(tl_arena *arena, const tl_expr *e, const tl_expr *const *args);

/* Short forms of tl_binary; tl_gt(a, b) is b < a, tl_ge(a, b) is b <= a. */
const tl_expr *tl_add(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_sub(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_mul(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_div(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_floordiv_expr(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_floormod_expr(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_min(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_max(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_lt(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_le(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_gt(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_ge(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_eq(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_ne(tl_arena *arena, const tl_expr *a, const tl_expr *b);
/* Of a NULL operand and another, the other. */
const tl_expr *tl_and(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_or(tl_arena *arena, const tl_expr *a, const tl_expr *b);
const tl_expr *tl_addi(tl_arena *arena, const tl_expr *a, int64_t b);
const tl_expr *tl_muli(tl_arena *arena, const tl_expr *a, int64_t b);

/* Questions. */
static inline bool tl_expr_is_too_large(const tl_expr *e)
{
    return e->size > TL_EXPR_LARGEST || e->depth > TL_EXPR_DEEPEST;
}
bool tl_expr_equal(const tl_expr *a, const tl_expr *b);
int tl_expr_compare(const tl_expr *a, const tl_expr *b); /* a total order, by structure and names */
bool tl_is_int(const tl_expr *e, int64_t value);         /* the INT constant `value` */
bool tl_const_int(const tl_expr *e, int64_t *out);       /* any INT constant */
bool tl_expr_uses_var(const tl_expr *e, const tl_var *var);
bool tl_expr_has_load(const tl_expr *e);
/* Whether it is a < b or a <= b of loops and dims, or all of several such: what a loop can be parted by. */
bool tl_expr_is_range_test(const tl_expr *e);

/* Rewriting. The same pointer comes back when nothing changed; what is shared stays so, a node is rewritten once. */
typedef struct {
    const tl_var *var;
    const tl_expr *value;
} tl_binding;
const tl_expr *tl_substitute(tl_arena *arena, const tl_expr *e, const tl_binding *bindings,
                             int count);
/* Calls `leaf` on every VAR and LOAD (children of a LOAD first); NULL from it means "keep". What
 * it gives depends on the node alone. */
typedef const tl_expr *tl_expr_rewriter(tl_arena *arena, const tl_expr *e, void *context);
const tl_expr *tl_expr_rewrite(tl_arena *arena, const tl_expr *e, tl_expr_rewriter *leaf,
                               void *context);
/* Calls `visit` on every node of the tree, parents first; it returns false to skip the children. */
typedef bool tl_expr_visitor(const tl_expr *e, void *context);
void tl_expr_visit(const tl_expr *e, tl_expr_visitor *visit, void *context);

/* Printing, in the grammar of ir/README.md; names as they are (the program printer makes them unique). */
void tl_expr_print(const tl_expr *e, tl_text *out);
const char *tl_expr_text(tl_arena *arena, const tl_expr *e);
void tl_expr_dump(const tl_expr *e); /* to stderr, for gdb */

#endif
