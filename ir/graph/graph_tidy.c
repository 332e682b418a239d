/* ir/graph/graph_tidy.c: what a pass leaves behind is swept: nodes and values nobody needs go, the rest is
 * sorted topologically (a graph that is sorted already keeps its order), names are made unique. */
#include "ir/graph/graph.h"
#include <assert.h>
#include <string.h>
#include "ir/graph/graph_private.h"
#include "runtime/base/map.h"

typedef enum { UNSEEN, OPEN, DONE } colour;
typedef struct {
    tl_graph *g;
    int *producer; /* by value index: the position of its node in g->nodes, -1 for none */
    bool *wanted;  /* by node position: it leads to a graph output */
    colour *colours;
} walk;

static void number(tl_graph *g)
{
    for (int i = 0; i < g->value_count; i++)
        g->values[i]->index = i;
}

/* A dead node is nobody's producer any more; where one's place was taken, the later node counts. */
static void find_producers(walk *w)
{
    for (int i = 0; i < w->g->value_count; i++)
        w->producer[i] = -1;
    for (int n = 0; n < w->g->node_count; n++) {
        tl_node *node = w->g->nodes[n];
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL && !node->dead && node->outputs[i]->producer == node)
                w->producer[node->outputs[i]->index] = n;
    }
}

static void mark_wanted(walk *w, int *stack)
{
    int depth = 0;
    for (int i = 0; i < w->g->output_count; i++) {
        int n = w->producer[w->g->outputs[i]->index];
        if (n >= 0 && !w->wanted[n]) {
            w->wanted[n] = true;
            stack[depth++] = n;
        }
    }
    while (depth > 0) {
        const tl_node *node = w->g->nodes[stack[--depth]];
        for (int i = 0; i < node->input_count; i++) {
            int n = node->inputs[i] == NULL ? -1 : w->producer[node->inputs[i]->index];
            if (n >= 0 && !w->wanted[n]) {
                w->wanted[n] = true;
                stack[depth++] = n;
            }
        }
    }
}

/* The open nodes from the second `at` back to the first make the cycle. */
static tl_status fail_cycle(const walk *w, const int *stack, int depth, int at, tl_diag *diag)
{
    assert(depth > 0);
    int start = depth - 1;
    while (start > 0 && stack[start] != at)
        start--;
    tl_status status =
        tl_fail(diag, TL_BAD_MODEL, "graph %s: node %s (%s) depends on its own result", w->g->name,
                w->g->nodes[at]->name, tl_op_infos[w->g->nodes[at]->op].text);
    for (int i = start + 1; i < depth && i < start + 8; i++)
        tl_context(diag, "the cycle through node %s", w->g->nodes[stack[i]]->name);
    return status;
}

static tl_status sort(walk *w, tl_node **sorted, int *count, tl_diag *diag)
{
    int n = w->g->node_count, depth = 0;
    int *stack = TL_NEW_ARRAY(w->g->arena, int, n), *next = TL_NEW_ARRAY(w->g->arena, int, n);
    *count = 0;
    for (int root = 0; root < n; root++) {
        if (!w->wanted[root] || w->colours[root] != UNSEEN)
            continue;
        stack[0] = root;
        next[0] = 0;
        depth = 1;
        w->colours[root] = OPEN;
        while (depth > 0) {
            int at = stack[depth - 1];
            tl_node *node = w->g->nodes[at];
            if (next[depth - 1] == node->input_count) {
                w->colours[at] = DONE;
                sorted[(*count)++] = node;
                depth--;
                continue;
            }
            const tl_value *v = node->inputs[next[depth - 1]++];
            int before = v == NULL ? -1 : w->producer[v->index];
            if (before < 0 || w->colours[before] == DONE)
                continue;
            if (w->colours[before] == OPEN)
                return fail_cycle(w, stack, depth, before, diag);
            w->colours[before] = OPEN;
            stack[depth] = before;
            next[depth++] = 0;
        }
    }
    return TL_OK;
}

static void drop_values(tl_graph *g)
{
    bool *read = TL_NEW_ARRAY(g->arena, bool, g->value_count);
    for (int n = 0; n < g->node_count; n++)
        for (int i = 0; i < g->nodes[n]->input_count; i++)
            if (g->nodes[n]->inputs[i] != NULL)
                read[g->nodes[n]->inputs[i]->index] = true;
    for (int n = 0; n < g->node_count; n++) {
        tl_node *node = g->nodes[n];
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL && !read[node->outputs[i]->index] &&
                !node->outputs[i]->is_output)
                node->outputs[i] = NULL;
    }
    int kept = 0;
    for (int i = 0; i < g->value_count; i++) {
        tl_value *v = g->values[i];
        if (read[i] || v->is_input || v->is_output)
            g->values[kept++] = v;
    }
    g->value_count = kept;
    number(g);
}

/* The names of inputs and outputs are the world's and stay; others give way. A name that is taken knows the number with
 * which it was tried last. */
static void make_names_unique(tl_graph *g)
{
    tl_map *taken = tl_map_create(g->arena);
    int *tried = TL_NEW_ARRAY(g->arena, int, g->value_count);
    for (int outside = 1; outside >= 0; outside--) {
        for (int i = 0; i < g->value_count; i++) {
            tl_value *v = g->values[i];
            if ((v->is_input || v->is_output) != (outside == 1))
                continue;
            const char *name = v->name;
            int *last = tl_map_find(taken, name);
            while (tl_map_has(taken, name))
                name = tl_arena_format(g->arena, "%s_%d", v->name, ++*last);
            v->name = name;
            tl_map_put(taken, name, &tried[i]);
        }
    }
}

tl_status tl_graph_tidy(tl_graph *g, tl_diag *diag)
{
    number(g);
    walk w = { .g = g,
               .producer = TL_NEW_ARRAY(g->arena, int, g->value_count),
               .wanted = TL_NEW_ARRAY(g->arena, bool, g->node_count),
               .colours = TL_NEW_ARRAY(g->arena, colour, g->node_count) };
    find_producers(&w);
    mark_wanted(&w, TL_NEW_ARRAY(g->arena, int, g->node_count));

    tl_node **sorted = TL_NEW_ARRAY(g->arena, tl_node *, g->node_count);
    int count;
    TL_TRY(sort(&w, sorted, &count, diag));

    for (int n = 0; n < g->node_count; n++)
        if (!w.wanted[n])
            tl_node_kill(g->nodes[n]);
    for (int i = 0; i < g->value_count; i++)
        if (w.producer[i] < 0)
            g->values[i]->producer = NULL;
    if (count > 0) /* a graph that never had a node has no list of them */
        memcpy(g->nodes, sorted, sizeof *sorted * (size_t)count);
    g->node_count = count;
    drop_values(g);
    tl_graph_sort_uses(g);
    make_names_unique(g);
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < tl_op_bodies(g->nodes[n]->op); k++)
            TL_TRY(tl_graph_tidy(g->nodes[n]->bodies[k], diag));
    return TL_OK;
}
