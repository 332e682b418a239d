/* tuner/transfer/shape_distance.c: how far apart two kernels of a class are. */
#include <math.h>
#include <string.h>
#include "ir/expr/index.h"
#include "tuner/transfer/transfer.h"

enum { MOST_ITERS = 256 };

typedef struct {
    int count;
    int64_t extents[MOST_ITERS];
} iters;

static bool add_iters(const tl_stmt *stmt, void *context)
{
    iters *all = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    for (int i = 0; i < block->iter_count && all->count < MOST_ITERS; i++)
        all->extents[all->count++] = tl_expr_range(block->iters[i].extent).max;
    return true;
}

double tl_shape_distance(const tl_program *a, const tl_program *b)
{
    iters x = { 0 }, y = { 0 };
    double sum = 0;
    tl_stmt_visit(a->body, add_iters, &x);
    tl_stmt_visit(b->body, add_iters, &y);
    if (x.count != y.count || x.count == 0)
        return -1;
    for (int i = 0; i < x.count; i++) {
        if (x.extents[i] < 1 || y.extents[i] < 1)
            return -1;
        sum += fabs(log2((double)x.extents[i] / (double)y.extents[i]));
    }
    return sum / x.count;
}
