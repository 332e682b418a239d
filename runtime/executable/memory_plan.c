/* runtime/executable/memory_plan.c: greedy by size, best fit in the gaps. */
#include "runtime/executable/memory_plan.h"
#include <assert.h>
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
    assert(count >= 0 && size >= 0);
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

static int first_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* The buffers in the order of their first steps, and a tree over them, in an array: a node has the last step of all placed
 * buffers below it, -1 without any. Whom a buffer meets is found without looking at all that it does not. */
typedef struct {
    int count, leaves; /* leaves: a power of two */
    tl_plan_buffer **by_first;
    int *last; /* node 1 is the root, those below node k are 2k and 2k+1 */
} placed_tree;

static bool make_tree(placed_tree *t, tl_plan_buffer *const *buffers, int count)
{
    assert(count >= 0);
    for (t->leaves = 1; t->leaves < count; t->leaves *= 2)
        continue;
    t->count = count;
    t->by_first = calloc((size_t)count + 1, sizeof(tl_plan_buffer *));
    t->last = calloc(2 * (size_t)t->leaves, sizeof *t->last);
    if (t->by_first == NULL || t->last == NULL)
        return false;
    memcpy(t->by_first, buffers, (size_t)count * sizeof(tl_plan_buffer *));
    qsort(t->by_first, (size_t)count, sizeof(tl_plan_buffer *), first_first);
    for (int i = 0; i < 2 * t->leaves; i++)
        t->last[i] = -1;
    return true;
}

static void free_tree(placed_tree *t)
{
    free(t->by_first);
    free(t->last);
}

static void note_placed(placed_tree *t, int position)
{
    int last = t->by_first[position]->last;
    for (int node = t->leaves + position; node >= 1; node /= 2)
        t->last[node] = t->last[node] > last ? t->last[node] : last;
}

/* Adds those below `node`, whose first leaf is `position` and which has `leaves` of them, that are alive with `b`. */
static int add_neighbours(const placed_tree *t, int node, int position, int leaves,
                          const tl_plan_buffer *b, tl_plan_buffer **out, int count)
{
    assert(node >= 1 && leaves >= 1 && (leaves & (leaves - 1)) == 0);
    if (t->last[node] < b->first || position >= t->count || t->by_first[position]->first > b->last)
        return count;
    if (leaves == 1) {
        out[count] = t->by_first[position];
        return count + 1;
    }
    int half = leaves / 2;
    count = add_neighbours(t, 2 * node, position, half, b, out, count);
    return add_neighbours(t, 2 * node + 1, position + half, half, b, out, count);
}

/* `positions` says where each of `buffers` stands in the order of first steps. */
static void place_all(tl_plan_buffer **order, tl_plan_buffer **neighbours, int count,
                      placed_tree *tree, const int *positions, const tl_plan_buffer *buffers,
                      tl_plan_sizes *sizes)
{
    for (int i = 0; i < count; i++) {
        tl_plan_buffer *b = order[i];
        int near = add_neighbours(tree, 1, 0, tree->leaves, b, neighbours, 0);
        qsort(neighbours, (size_t)near, sizeof(tl_plan_buffer *), lower_first);
        b->offset = best_offset(neighbours, near, aligned(b->size));
        sizes->planned = tl_max64(sizes->planned, b->offset + aligned(b->size));
        note_placed(tree, positions[b - buffers]);
    }
}

static int last_first(const void *a, const void *b)
{
    const tl_plan_buffer *x = *(tl_plan_buffer *const *)a, *y = *(tl_plan_buffer *const *)b;

    return x->last < y->last ? -1 : x->last > y->last;
}

/* Bytes alive at the worst step: a walk along the beginnings, and the ends that lie before them. */
static int64_t worst_step(tl_plan_buffer **begins, tl_plan_buffer **ends, int count)
{
    assert(count >= 0);
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
    placed_tree tree;
    int *positions = calloc((size_t)count + 1, sizeof *positions);
    bool made = make_tree(&tree, pointers, used);
    if (positions != NULL && made) {
        for (int i = 0; i < used; i++)
            positions[tree.by_first[i] - buffers] = i;
        place_all(pointers, pointers + used, used, &tree, positions, buffers, &sizes);
        sizes.floor = worst_step(pointers, pointers + used, used);
        *out = sizes;
    }
    bool planned = positions != NULL && made;
    free_tree(&tree);
    free(positions);
    free(pointers);
    return planned ? TL_OK
                   : tl_fail(diag, TL_NO_MEMORY, "memory plan: no memory for %d buffers", count);
}
