/* frontend/graph/partition.c: cuts the graph into kernels, greedily along the topological order.
 *
 * A convolution, product or reduction opens a kernel; elementwise nodes whose operand is the kernel's only
 * output, read by nobody else, join it (bias, residual add, activation). So do several that together are all its
 * readers and end in one of them: x*sigmoid(x). Elementwise and layout nodes melt with each other, and into a plain
 * reduction that alone reads them, or into a layer norm, which keeps a row of them. A window of a value in memory is read
 * where it lies: it joins what reads it.
 * Each kernel has one output, so a join never closes a cycle: whatever depends on the kernel depends on the one
 * node that joins. A value that the form cuts (tl_graph_set_form) joins nothing; neither does one that is a view
 * (assign_windows.c), and no kernel makes it. A node with bodies is no kernel: what it reads and makes is in memory, and
 * its bodies are cut like the graph around them. */
#include "frontend/value_notes.h"
#include "frontend/frontend.h"
#include "frontend/graph/graph_passes.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/lower/lower.h"
#include "runtime/base/array.h"
#include "frontend/node/graph_questions.h"

enum { LARGEST_KERNEL = 64 }; /* nodes */

typedef struct group {
    int root; /* groups[root] is who it was merged into; itself when alive */
    int last; /* its last node: the one whose output is the group's */
    int count;
    int first, last_member;
    bool injective; /* no stage */
    tl_shape shape; /* of its output, and of every value its last nest computes */
} group;

typedef struct {
    tl_arena *arena;
    tl_graph *graph;
    group *groups; /* one a node to begin with */
    int *next;     /* the members of a group, as a list from `first` to `last_member`; -1 ends it */
} state;

static int find(const state *s, int i)
{
    while (s->groups[i].root != i)
        i = s->groups[i].root;
    return i;
}

/* Group `from` becomes part of the group of node `i`. */
static void merge(state *s, int i, int from)
{
    group *own = &s->groups[i], *g = &s->groups[from];
    own->count += g->count;
    s->next[own->last_member] = g->first;
    own->last_member = g->last_member;
    g->root = i;
}

/* A window of a value that is in memory. */
static bool is_bare_window(const state *s, const group *g)
{
    return g->count == 1 && tl_is_window(s->graph->nodes[g->last]);
}

/* Concats of many parts (narrow_concats.c) would be one of all parts again, and each other than the next. */
static bool are_wide_concats(const tl_node *n, const tl_node *before)
{
    return n->op == TL_OP_CONCAT && before->op == TL_OP_CONCAT &&
           n->input_count + before->input_count > TL_MOST_CONCAT_PARTS;
}

/* The bits of what is not rounded yet would be others. */
static bool reads_bits(const tl_node *n)
{
    return tl_is_elementwise(n) && tl_operators[n->op].takes == TL_TAKES_MEMORY;
}

/* Whether node `n` may join the group that makes its input `v`. */
static bool may_join(const state *s, const tl_node *n, const tl_value *v, const group *from)
{
    const tl_value *y = n->outputs[0];
    const tl_operator *op = &tl_operators[n->op];
    if (is_bare_window(s, from) && (op->takes & TL_TAKES_WINDOWS) != 0)
        return true;
    if (are_wide_concats(n, v->producer))
        return false;
    if (reads_bits(n))
        return false;
    if (!tl_is_injective(n))
        return from->injective && (op->takes & TL_TAKES_CHAIN) != 0 && v == n->inputs[0] &&
               tl_shape_equal(&from->shape, &v->shape);
    if (from->injective)
        return true;
    if (tl_is_elementwise(n))
        return tl_shape_equal(&y->shape, &from->shape);
    /* a reduction's small result may be reshaped on its way out */
    return n->op == TL_OP_RESHAPE &&
           tl_operators[s->graph->nodes[from->last]->op].kind == TL_KIND_REDUCTION;
}

/* Whether a node makes it whose kernel may take in more. */
static bool is_made(const tl_value *v)
{
    return v != NULL && v->producer != NULL && !tl_notes_of(v)->is_cut &&
           !tl_notes_of(v)->is_view && tl_op_bodies(v->producer->op) == 0;
}

/* Puts node `i` with the groups of its inputs where it may. At most one of them may have stages: the latest, so
 * that all others are computed before it. */
static void place(state *s, int i, const int *producer_of)
{
    tl_node *n = s->graph->nodes[i];
    group *own = &s->groups[i];
    int with_stages = -1;
    if (n->op == TL_OP_CONV && tl_notes_of(n->inputs[0])->is_inside) {
        merge(s, i, find(s, producer_of[n->inputs[0]->index]));
    }
    for (int k = 0; k < n->input_count; k++) {
        const tl_value *v = n->inputs[k];
        if (!is_made(v) || tl_graph_users(v) != 1)
            continue;
        int from = find(s, producer_of[v->index]);
        const group *g = &s->groups[from];
        if (g->injective || !own->injective || !may_join(s, n, v, g))
            continue;
        if (with_stages < 0 || g->last > s->groups[with_stages].last)
            with_stages = from;
    }
    for (int k = 0; k < n->input_count; k++) {
        const tl_value *v = n->inputs[k];
        if (!is_made(v) || tl_graph_users(v) != 1)
            continue;
        int from = find(s, producer_of[v->index]);
        group *g = &s->groups[from];
        if (from == i || own->count + g->count > LARGEST_KERNEL || !may_join(s, n, v, g) ||
            (!g->injective && from != with_stages))
            continue;
        if (with_stages >= 0 && g->injective && !tl_is_elementwise(v->producer) &&
            !is_bare_window(s, g))
            continue; /* a gather in a convolution's epilogue would hide its regular loops */
        own->injective = own->injective && g->injective;
        merge(s, i, from);
    }
}

/* Whether all that group `i` computes is elementwise and of one shape. */
static bool is_elementwise_group(const state *s, int i, const tl_shape *shape)
{
    for (int k = s->groups[i].first; k >= 0; k = s->next[k])
        if (!tl_is_elementwise(s->graph->nodes[k]) ||
            !tl_shape_equal(&s->graph->nodes[k]->outputs[0]->shape, shape))
            return false;
    return true;
}

/* How often the nodes of group `i` read a value which need not be in memory. */
static int reads_in_group(const state *s, int i, const tl_value *v)
{
    int reads = 0;
    for (int k = s->groups[i].first; k >= 0; k = s->next[k])
        for (int j = 0; j < s->graph->nodes[k]->input_count; j++)
            reads += s->graph->nodes[k]->inputs[j] == v && !reads_bits(s->graph->nodes[k]);
    return reads;
}

/* Group `i`, elementwise so far, takes in the group that makes an operand of its last node which other nodes of the group
 * read too, and nobody else. */
static bool take_shared(state *s, int i, const int *producer_of)
{
    const tl_node *n = s->graph->nodes[i];
    group *own = &s->groups[i];
    for (int k = 0; k < n->input_count; k++) {
        const tl_value *v = n->inputs[k];
        int users = is_made(v) ? tl_graph_users(v) : 0;
        if (users < 2)
            continue;
        int from = find(s, producer_of[v->index]);
        group *g = &s->groups[from];
        if (from == i || own->count + g->count > LARGEST_KERNEL ||
            !tl_shape_equal(&v->shape, &g->shape) || reads_in_group(s, i, v) != users ||
            !is_elementwise_group(s, i, &v->shape))
            continue;
        if (g->injective && !is_elementwise_group(s, from, &v->shape))
            continue; /* a gather should not run twice */
        own->injective = g->injective;
        merge(s, i, from);
        return true;
    }
    return false;
}

static const char *family_of(state *s, tl_node *const *nodes, int count)
{
    const char *family = "";
    for (int i = 0; i < count; i++) {
        if (i == 5 && count > 6) /* a long chain: its beginning and how many more */
            return tl_arena_format(s->arena, "%s_and_%d", family, count - i);
        char *word = tl_arena_strdup(s->arena, tl_op_infos[nodes[i]->op].name);
        size_t to = 0;
        for (size_t at = 0; word[at] != '\0'; at++)
            if (word[at] != '_')
                word[to++] = (char)tolower((unsigned char)word[at]);
        word[to] = '\0';
        family = tl_arena_format(s->arena, "%s%s%s", family, i > 0 ? "_" : "", word);
    }
    return family;
}

static int by_position(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void make_kernel(state *s, tl_kernel *kernel, int last, int number)
{
    const tl_graph *g = s->graph;
    int count = 0, reads = 0, *members = TL_NEW_ARRAY(s->arena, int, s->groups[last].count);
    for (int i = s->groups[last].first; i >= 0; i = s->next[i])
        members[count++] = i;
    qsort(members, (size_t)count, sizeof *members, by_position);
    tl_node **nodes = TL_NEW_ARRAY(s->arena, tl_node *, count);
    for (int i = 0; i < count; i++) {
        nodes[i] = g->nodes[members[i]];
        reads += nodes[i]->input_count;
    }
    kernel->nodes = nodes;
    kernel->node_count = count;
    kernel->family = family_of(s, nodes, count);
    kernel->name = tl_arena_format(s->arena, "%s_%d", kernel->family, number);
    kernel->output_count = 1;
    kernel->outputs = g->nodes[last]->outputs;
    tl_kernel_inputs(kernel, TL_NEW_ARRAY(s->arena, tl_value *, reads),
                     TL_NEW_ARRAY(s->arena, const tl_node *, reads));
}

static bool is_kernel(const state *s, int i)
{
    return s->groups[i].count > 0 && s->groups[i].root == i;
}

/* The groups of a graph's nodes, each at its last one. */
static tl_status make_groups(state *s, tl_diag *diag)
{
    const tl_graph *g = s->graph;
    int *producer_of = TL_NEW_ARRAY(s->arena, int, g->value_count);
    s->groups = TL_NEW_ARRAY(s->arena, group, g->node_count);
    s->next = TL_NEW_ARRAY(s->arena, int, g->node_count);
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        s->groups[i].root = i;
        s->next[i] = -1;
        if (tl_op_bodies(n->op) > 0)
            continue; /* count 0: in no kernel */
        if (n->output_count != 1 || n->outputs[0] == NULL ||
            tl_operators[n->op].kind == TL_KIND_VANISHING)
            return tl_fail(diag, TL_UNSUPPORTED, "node '%.200s' (%s) cannot be a kernel", n->name,
                           tl_op_infos[n->op].text);
        producer_of[n->outputs[0]->index] = i;
        if (tl_notes_of(n->outputs[0])->is_view)
            continue;
        s->groups[i] = (group){ .root = i,
                                .last = i,
                                .count = 1,
                                .first = i,
                                .last_member = i,
                                .injective = tl_is_injective(n),
                                .shape = n->outputs[0]->shape };
        place(s, i, producer_of);
        while (s->groups[i].injective && take_shared(s, i, producer_of))
            continue;
    }
    return TL_OK;
}

/* The kernels of a graph join `out`, those of a node's bodies in its place; `list` says in which order all of it runs. As deep
 * as graphs are nested. */
static tl_status partition(tl_arena *arena, tl_graph *g, tl_partition *out, int *capacity,
                           tl_item_list *list, tl_diag *diag)
{
    TL_TRY(tl_graph_tidy(g, diag));
    state s = { .arena = arena, .graph = g };
    TL_TRY(make_groups(&s, diag));
    list->graph = g;
    list->items = TL_NEW_ARRAY(arena, tl_item, g->node_count);
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        if (!is_kernel(&s, i) && tl_op_bodies(n->op) == 0)
            continue;
        tl_item *item = &list->items[list->count++];
        if (tl_op_bodies(n->op) == 0) {
            TL_ROOM(arena, out->kernels, out->count, *capacity);
            make_kernel(&s, &out->kernels[out->count], i, out->count);
            item->kernel = out->count++;
            continue;
        }
        item->kernel = -1;
        item->node = n;
        item->bodies = TL_NEW_ARRAY(arena, tl_item_list, tl_op_bodies(n->op));
        for (int k = 0; k < tl_op_bodies(n->op); k++)
            TL_TRY(partition(arena, n->bodies[k], out, capacity, &item->bodies[k], diag));
    }
    return TL_OK;
}

tl_status tl_partition_graph(tl_arena *arena, tl_graph *g, tl_partition *out, tl_diag *diag)
{
    int capacity = 0;
    *out = (tl_partition){ 0 };
    return partition(arena, g, out, &capacity, &out->list, diag);
}
