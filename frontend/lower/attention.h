/* frontend/lower/attention.h: what the lowerings of attention share. */
#ifndef TL_FRONTEND_LOWER_ATTENTION_H
#define TL_FRONTEND_LOWER_ATTENTION_H
#include "frontend/lower/lower.h"

typedef struct {
    int64_t batch, heads, rows, columns;
    int64_t depth, width; /* of a key's head, of a value's */
} tl_attention_sizes;
tl_attention_sizes tl_attention_sizes_of(const tl_node *n);

void tl_attention_name_axes(tl_lower *l, const tl_attention_sizes *z);
/* q[b, i, h, d] * k[b, j, h, d] at (b, h, i, j); scale*score + mask there; v[b, j, h, e]. The operands have places. */
const tl_expr *tl_attention_score(tl_lower *l, const tl_node *n, tl_index at, const tl_expr *d);
const tl_expr *tl_attention_masked(tl_lower *l, const tl_node *n, tl_index at,
                                   const tl_expr *score);
const tl_expr *tl_attention_weight(tl_lower *l, const tl_node *n, const tl_expr *b,
                                   const tl_expr *key, const tl_expr *head, const tl_expr *e);
/* Rows in a block of the lowering `online`. */
int64_t tl_online_rows(const tl_node *n);
/* The element of the node's first local over that of its second, the sum of the row. */
const tl_expr *tl_attention_value(tl_lower *l, const tl_node *n, tl_index element, tl_index row);

#endif
