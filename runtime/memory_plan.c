/* runtime/memory_plan.c: greedy by size, best fit in the gaps. */
#include "runtime/memory_plan.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"

static int64_t aligned(int64_t size)
{
    return (size + TL_PLAN_ALIGNMENT - 1) / TL_PLAN_ALIGNMENT * TL_PLAN_ALIGNMENT;
}

/* Largest first; of equals, the longest-lived, then the first given: the order is total, so is
 * the plan. */
static int larger_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    int x_life = x->last - x->first, y_life = y->last - y->first;
    if (x_life != y_life)
        return x_life > y_life ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int lower_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The smallest gap that holds `size` between `count` neighbours in order of offset, else their
 * end. */
static int64_t best_offset(tl_plan_buffer *const *neighbours, int count, int64_t size)
{
    int64_t end = 0, best = -1, best_gap = INT64_MAX;

    for (int i = 0; i < count; i++) {
        int64_t gap = neighbours[i]->offset - end;
        if (gap >= size && gap < best_gap) {
            best = end;
            best_gap = gap;
        }
        end = tl_max64(end, neighbours[i]->offset + aligned(neighbours[i]->size));
    }
    return best >= 0 ? best : end;
}

static void place_all(tl_plan_buffer **order, tl_plan_buffer **neighbours, int count,
                      tl_plan_sizes *sizes)
{
    for (int i = 0; i < count; i++) {
        tl_plan_buffer *b = order[i];
        int near = 0;
        for (int j = 0; j < i; j++)
            if (order[j]->first <= b->last && b->first <= order[j]->last)
                neighbours[near++] = order[j];
        qsort(neighbours, (size_t)near, sizeof(tl_plan_buffer *), lower_first);
        b->offset = best_offset(neighbours, near, aligned(b->size));
        sizes->planned = tl_max64(sizes->planned, b->offset + aligned(b->size));
    }
}

static int first_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static int last_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    return x->last < y->last ? -1 : x->last > y->last;
}

/* Bytes alive at the worst step: a walk along the beginnings, and the ends that lie before them. */
static int64_t worst_step(tl_plan_buffer **begins, tl_plan_buffer **ends, int count)
{
    int64_t worst = 0, alive = 0;

    qsort(begins, (size_t)count, sizeof *begins, first_first);
    memcpy(ends, begins, (size_t)count * sizeof *ends);
    qsort(ends, (size_t)count, sizeof *ends, last_first);
    for (int i = 0, ended = 0; i < count; i++) {
        for (; ends[ended]->last < begins[i]->first; ended++)
            alive -= aligned(ends[ended]->size);
        alive += aligned(begins[i]->size);
        worst = tl_max64(worst, alive);
    }
    return worst;
}

static tl_status check(const tl_plan_buffer *buffers, int count, int64_t *sum, tl_diag *diag)
{
    *sum = 0;
    for (int i = 0; i < count; i++) {
        const tl_plan_buffer *b = &buffers[i];
        if (b->first > b->last)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "memory plan: buffer %d lives from step %d to step %d", i, b->first,
                           b->last);
        if (b->size < 0 || b->size > INT64_MAX - TL_PLAN_ALIGNMENT ||
            tl_add_overflows(*sum, aligned(b->size), sum))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "memory plan: buffer %d of %lld bytes is too large", i,
                           (long long)b->size);
    }
    return TL_OK;
}

tl_status tl_memory_plan(tl_plan_buffer *buffers, int count, tl_plan_sizes *out, tl_diag *diag)
{
    tl_plan_sizes sizes = { 0 };

    TL_TRY(check(buffers, count, &sizes.sum, diag));
    tl_plan_buffer **pointers = calloc(2 * (size_t)count + 1, sizeof *pointers);
    if (pointers == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "memory plan: no memory for %d buffers", count);
    int used = 0;
    for (int i = 0; i < count; i++) {
        buffers[i].offset = 0; /* what is empty lies anywhere */
        if (buffers[i].size > 0)
            pointers[used++] = &buffers[i];
    }
    qsort(pointers, (size_t)used, sizeof *pointers, larger_first);
    place_all(pointers, pointers + used, used, &sizes);
    sizes.floor = worst_step(pointers, pointers + used, used);
    free(pointers);
    *out = sizes;
    return TL_OK;
}
