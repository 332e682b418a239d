/* ir/expr/expr_memo.h: what is known of the nodes of an expression, so that what walks it sees a node once, however often it is
 * read. Small expressions need none: to walk them as trees costs less. */
#ifndef TL_IR_EXPR_EXPR_MEMO_H
#define TL_IR_EXPR_EXPR_MEMO_H
#include "ir/expr/expr.h"

enum { TL_EXPR_MEMO_FROM = 128 }; /* nodes of the tree, from which on a memo pays */

typedef struct {
    const tl_expr *node, *known;
} tl_expr_memo_cell;

/* Starts as { 0 }; the cells live in the arena, or with the caller of tl_expr_memo_free where that is NULL. */
typedef struct {
    tl_arena *arena;
    size_t count, capacity;
    tl_expr_memo_cell *cells;
} tl_expr_memo;

/* What was put for this very node; NULL: nothing. */
const tl_expr *tl_expr_memo_find(const tl_expr_memo *memo, const tl_expr *node);
/* `known` replaces what was there. Without memory nothing is kept. */
void tl_expr_memo_put(tl_expr_memo *memo, const tl_expr *node, const tl_expr *known);
void tl_expr_memo_free(tl_expr_memo *memo); /* of a memo without an arena */

#endif
