/* tuner/transfer/shape_distance.c: how far apart two kernels of a class, or of one kin, are. */
#include <math.h>
#include <string.h>
#include "ir/expr/index.h"
#include "schedule/analysis.h"
#include "tuner/transfer/transfer.h"

#define KIN_APART \
    0.5 /* kernels of one kin and shape: like those of one class, half a doubling of all extents apart */

enum { MOST_ITERS = 256 };

typedef struct {
    bool only_sums;
    int count;
    int64_t extents[MOST_ITERS];
} iters;

static bool add_iters(const tl_stmt *stmt, void *context)
{
    iters *all = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    if (all->only_sums && !tl_block_is_reduction(block))
        return true;
    for (int i = 0; i < block->iter_count && all->count < MOST_ITERS; i++)
        all->extents[all->count++] = tl_expr_range(block->iters[i].extent).max;
    return true;
}

static double distance(const tl_program *a, const tl_program *b, bool only_sums)
{
    iters x = { .only_sums = only_sums }, y = x;
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

double tl_shape_distance(const tl_program *a, const tl_program *b)
{
    return distance(a, b, false);
}

double tl_kin_distance(const tl_program *a, const tl_program *b)
{
    double apart = distance(a, b, true);
    return apart < 0 ? apart : apart + KIN_APART;
}
