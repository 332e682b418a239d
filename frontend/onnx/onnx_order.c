/* frontend/onnx/onnx_order.c: the order of a graph's nodes. Files are meant to be sorted; one that is not is sorted
 * here, one that cannot be has a cycle. */
#include "frontend/onnx/onnx_walk.h"
#include "runtime/base/array.h"

typedef struct {
    tl_import *im;
    tl_map *producers; /* name -> node number + 1, as a pointer into `numbers` */
    Onnx__NodeProto **nodes;
    int *state; /* 0 new, 1 open, 2 done */
    int *stack, *order;
    int *next;
    const char ***reads; /* by node, filled when it is opened */
    int *read_count;
    int done;
} sorter;

/* The names a node reads, those of its branches included. */
static void collect_reads(const Onnx__NodeProto *node, tl_arena *arena, const char ***list,
                          int *count, int *capacity)
{
    for (size_t i = 0; i < node->n_input; i++) {
        TL_ROOM(arena, *list, *count, *capacity);
        (*list)[(*count)++] = node->input[i];
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *attr = node->attribute[a];
        for (size_t g = 0; g < attr->n_graphs + 1; g++) {
            const Onnx__GraphProto *body = g < attr->n_graphs ? attr->graphs[g] : attr->g;
            for (size_t i = 0; body != NULL && i < body->n_node; i++)
                collect_reads(body->node[i], arena, list, count, capacity);
        }
    }
}

static void open_node(sorter *s, int n, int depth)
{
    int capacity = 0;
    collect_reads(s->nodes[n], s->im->arena, &s->reads[n], &s->read_count[n], &capacity);
    s->state[n] = 1;
    s->stack[depth] = n;
    s->next[depth] = 0;
}

static tl_status sort_from(sorter *s, int root)
{
    int depth = 0;
    open_node(s, root, depth++);
    while (depth > 0) {
        int n = s->stack[depth - 1];
        if (s->next[depth - 1] == s->read_count[n]) {
            s->state[n] = 2;
            s->order[s->done++] = n;
            depth--;
            continue;
        }
        const char *name = s->reads[n][s->next[depth - 1]++];
        const int *number = name[0] != '\0' ? tl_map_find(s->producers, name) : NULL;
        if (number == NULL || s->state[*number] == 2)
            continue;
        if (s->state[*number] == 1)
            return tl_fail(s->im->diag, TL_BAD_MODEL,
                           "node '%.120s' depends on its own result, through '%.120s'",
                           tl_text_or(s->nodes[*number]->name, name), name);
        open_node(s, *number, depth++);
    }
    return TL_OK;
}

tl_status tl_onnx_order(tl_import *im, const tl_onnx_scope *s, size_t count,
                        Onnx__NodeProto **nodes, const int **out)
{
    if (count > TL_ONNX_MAX_NODES)
        return tl_fail(im->diag, TL_BAD_MODEL, "more than %d nodes", TL_ONNX_MAX_NODES);
    int *numbers = TL_NEW_ARRAY(im->arena, int, count);
    sorter sort = { .im = im,
                    .producers = tl_map_create(im->arena),
                    .nodes = nodes,
                    .state = TL_NEW_ARRAY(im->arena, int, count),
                    .stack = TL_NEW_ARRAY(im->arena, int, count + 1),
                    .order = TL_NEW_ARRAY(im->arena, int, count),
                    .next = TL_NEW_ARRAY(im->arena, int, count + 1),
                    .reads = TL_NEW_ARRAY(im->arena, const char **, count),
                    .read_count = TL_NEW_ARRAY(im->arena, int, count) };
    for (size_t n = 0; n < count; n++) {
        numbers[n] = (int)n;
        for (size_t i = 0; i < nodes[n]->n_output; i++) {
            const char *name = nodes[n]->output[i];
            if (name[0] == '\0')
                continue;
            if (tl_map_has(sort.producers, name) || tl_scope_find(s, name) != NULL)
                return tl_fail(im->diag, TL_BAD_MODEL, "the name '%.200s' is defined twice", name);
            tl_map_put(sort.producers, name, &numbers[n]);
        }
    }
    for (size_t n = 0; n < count; n++)
        if (sort.state[n] == 0)
            TL_TRY(sort_from(&sort, (int)n));
    *out = sort.order;
    return TL_OK;
}
