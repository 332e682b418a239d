/* ir/expr/expr_memo.c: a hash table from nodes to nodes, with open addressing. Nothing iterates over it. */
#include "ir/expr/expr_memo.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Where the node is, or the empty cell where it would be. */
static tl_expr_memo_cell *cell_of(const tl_expr_memo *memo, const tl_expr *node)
{
    assert(memo->capacity > 0 && (memo->capacity & (memo->capacity - 1)) == 0);
    assert(memo->count < memo->capacity);
    uint64_t hash = (uint64_t)(uintptr_t)node * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(hash >> 32) & (memo->capacity - 1);
    while (memo->cells[at].node != NULL && memo->cells[at].node != node)
        at = (at + 1) & (memo->capacity - 1);
    return &memo->cells[at];
}

const tl_expr *tl_expr_memo_find(const tl_expr_memo *memo, const tl_expr *node)
{
    return memo->count == 0 ? NULL : cell_of(memo, node)->known;
}

static bool grow(tl_expr_memo *memo)
{
    tl_expr_memo old = *memo;
    memo->capacity = old.capacity == 0 ? 128 : 2 * old.capacity;
    if (memo->arena != NULL)
        memo->cells = TL_NEW_ARRAY(memo->arena, tl_expr_memo_cell, memo->capacity);
    else
        memo->cells = calloc(memo->capacity, sizeof *memo->cells);
    if (memo->cells == NULL) {
        *memo = old;
        return false;
    }
    for (size_t i = 0; i < old.capacity; i++)
        if (old.cells[i].node != NULL)
            *cell_of(memo, old.cells[i].node) = old.cells[i];
    tl_expr_memo_free(&old);
    return true;
}

void tl_expr_memo_put(tl_expr_memo *memo, const tl_expr *node, const tl_expr *known)
{
    assert(node != NULL && known != NULL);
    if (2 * memo->count >= memo->capacity && !grow(memo))
        return;
    tl_expr_memo_cell *cell = cell_of(memo, node);
    memo->count += cell->node == NULL;
    *cell = (tl_expr_memo_cell){ node, known };
}

void tl_expr_memo_free(tl_expr_memo *memo)
{
    if (memo->arena == NULL)
        free(memo->cells);
}
