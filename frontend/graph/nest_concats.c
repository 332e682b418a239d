/* frontend/graph/nest_concats.c: a Concat that begins with another's parts reads that one.
 *
 *     Concat(a, b, c)  ->  Concat(Concat(a, b), c)          beside a Concat(a, b), where both can be one piece of memory
 *
 * DenseNet's layers each concatenate everything before them: nested, what is in memory once is written once
 * (assign_windows.c). */
#include <string.h>
#include "frontend/graph/graph_passes.h"
#include "runtime/base/checksum.h"
#include "runtime/base/map.h"

/* A Concat as it was before it was nested. */
typedef struct {
    tl_value *y, *const *parts;
    int count;
} concat;

/* Whether nothing lies outside of the axis. */
static bool is_outermost(const tl_shape *shape, int axis)
{
    for (int i = 0; i < axis; i++)
        if (shape->dims[i].extent != 1)
            return false;
    return true;
}

/* The Concat seen before that has the most of the first inputs of `n`; adds `n` to those seen. */
static const concat *longest_seen(tl_arena *arena, tl_map *seen, tl_node *n)
{
    const concat *longest = NULL;
    int64_t axis = tl_attr_int(n, "axis", 0);
    tl_digest digest;
    char key[33];
    tl_digest_start(&digest);
    tl_digest_add(&digest, &axis, sizeof axis);
    for (int i = 0; i < n->input_count; i++) {
        tl_digest_add(&digest, &n->inputs[i]->index, sizeof n->inputs[i]->index);
        tl_digest_text(&digest, key);
        const concat *c = i > 0 && i + 1 < n->input_count ? tl_map_find(seen, key) : NULL;
        if (c != NULL && c->count == i + 1 &&
            memcmp(c->parts, n->inputs, sizeof *c->parts * (size_t)c->count) == 0)
            longest = c;
    }
    concat *own = TL_NEW(arena, concat);
    *own = (concat){ n->outputs[0], n->inputs, n->input_count };
    if (!tl_map_has(seen, key))
        tl_map_put(seen, key, own);
    return longest;
}

tl_status tl_nest_concats(tl_graph *g, const tl_target *target, tl_diag *diag)
{
    (void)diag;
    if (tl_target_is_gpu(target))
        return TL_OK;
    tl_map *seen = tl_map_create(g->arena);
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->op != TL_OP_CONCAT || n->outputs[0]->is_output ||
            !is_outermost(&n->outputs[0]->shape, (int)tl_attr_int(n, "axis", 0)))
            continue;
        const concat *first = longest_seen(g->arena, seen, n);
        if (first == NULL)
            continue;
        int count = n->input_count - first->count + 1;
        tl_value **parts = TL_NEW_ARRAY(g->arena, tl_value *, count);
        parts[0] = first->y;
        memcpy(parts + 1, n->inputs + first->count, sizeof *parts * (size_t)(count - 1));
        tl_node_set_inputs(g, n, count, parts);
    }
    return TL_OK;
}
