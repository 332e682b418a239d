/* driver/reduce/edit_nodes.c: fewer outputs, fewer nodes. */
#include <string.h>
#include "driver/reduce/edits.h"

enum { MOST_FILLED = 1 << 22 }; /* elements of a weight in place of a node */

int tl_count_outputs(const tl_draft *d)
{
    return (int)d->graph->n_output;
}

bool tl_drop_outputs(tl_draft *d, int first, int end, int way)
{
    Onnx__GraphProto *g = d->graph;
    (void)way;
    if ((size_t)(end - first) >= g->n_output)
        return false;
    size_t after = g->n_output - (size_t)end;
    memmove(g->output + first, g->output + end, after * sizeof *g->output);
    g->n_output = (size_t)first + after;
    return true;
}

int tl_count_nodes(const tl_draft *d)
{
    return (int)d->graph->n_node;
}

/* ---- some nodes go ---- */

typedef struct {
    tl_map *made, *read;           /* names: by the nodes that go */
    tl_map *kept_made, *kept_read; /* by the others */
} sides;

static sides look_at_sides(const tl_draft *d, int first, int end)
{
    const Onnx__GraphProto *g = d->graph;
    sides s = { tl_map_create(d->arena), tl_map_create(d->arena), tl_map_create(d->arena),
                tl_map_create(d->arena) };
    for (size_t i = 0; i < g->n_node; i++) {
        bool goes = (int)i >= first && (int)i < end;
        tl_draft_collect_reads(g->node[i], goes ? s.read : s.kept_read);
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k] != '\0')
                tl_map_put(goes ? s.made : s.kept_made, g->node[i]->output[k], (void *)g);
    }
    return s;
}

static void keep_outputs(tl_draft *d, const sides *s)
{
    Onnx__GraphProto *g = d->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_output; i++)
        if (!tl_map_has(s->made, tl_draft_name(g->output[i]->name)))
            g->output[kept++] = g->output[i];
    g->n_output = kept;
}

/* What is made and nobody reads any more. False: there is nothing of the kind. */
static bool declare_loose_ends(tl_draft *d, const sides *s)
{
    Onnx__GraphProto *g = d->graph;
    bool any = false;
    for (size_t i = 0; i < tl_map_count(s->read); i++) {
        const char *name = tl_map_at(s->read, i).key;
        tl_draft_type type;
        bool is_output = false;
        if (!tl_map_has(s->kept_made, name) || tl_map_has(s->kept_read, name))
            continue;
        for (size_t k = 0; k < g->n_output; k++)
            is_output |= strcmp(tl_draft_name(g->output[k]->name), name) == 0;
        if (is_output)
            continue;
        bool known = tl_draft_find_type(d, name, &type);
        TL_DRAFT_APPEND(d, g->output, g->n_output, tl_draft_declare(d, name, known ? &type : NULL));
        any = true;
    }
    return any;
}

/* What is read and nobody makes any more: an input or, when `filled`, a weight. */
static bool give(tl_draft *d, const char *name, bool filled)
{
    Onnx__GraphProto *g = d->graph;
    tl_draft_type type;
    if (!tl_draft_find_type(d, name, &type))
        return false;
    if (!filled) {
        TL_DRAFT_APPEND(d, g->input, g->n_input, tl_draft_declare(d, name, &type));
        return true;
    }
    if (type.dtype == TL_DTYPE_COUNT || type.elements > MOST_FILLED ||
        tl_dtype_infos[type.dtype].digits == 4)
        return false;
    Onnx__TensorProto *t = tl_draft_tensor(d, name, &type);
    tl_draft_fill(t, &type, 0, 1, false);
    TL_DRAFT_APPEND(d, g->initializer, g->n_initializer, t);
    return true;
}

bool tl_cut_nodes(tl_draft *d, int first, int end, int way)
{
    Onnx__GraphProto *g = d->graph;
    sides s = look_at_sides(d, first, end);
    bool gave = false;
    keep_outputs(d, &s);
    bool has_none = g->n_output == 0;
    if (way == 1 && has_none)
        return false; /* way 0 was this */
    if ((way == 1 || has_none) && !declare_loose_ends(d, &s))
        return false;
    for (size_t i = 0; i < tl_map_count(s.made); i++) {
        const char *name = tl_map_at(s.made, i).key;
        if (!tl_map_has(s.kept_read, name))
            continue;
        if (!give(d, name, way == 2))
            return false;
        gave = true;
    }
    if (way == 2 && !gave)
        return false;
    memmove(g->node + first, g->node + end, (g->n_node - (size_t)end) * sizeof *g->node);
    g->n_node -= (size_t)(end - first);
    return true;
}

/* ---- an input of a node instead of its output ---- */

typedef struct {
    const char *from;
    char *to;
} renaming;

static void rename_read(char **name, void *user)
{
    const renaming *r = user;
    if (strcmp(*name, r->from) == 0)
        *name = r->to;
}

static bool is_same_type(const tl_draft_type *a, const tl_draft_type *b)
{
    bool same = a->elem_type == b->elem_type && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static bool bypass(tl_draft *d, const Onnx__NodeProto *node)
{
    Onnx__GraphProto *g = d->graph;
    tl_draft_type want, have;
    if (node->n_output < 1 || !tl_draft_find_type(d, node->output[0], &want))
        return false;
    for (size_t i = 0; i < node->n_input; i++) {
        renaming r = { node->output[0], node->input[i] };
        if (!tl_draft_find_type(d, node->input[i], &have) || !is_same_type(&want, &have))
            continue;
        for (size_t k = 0; k < g->n_node; k++)
            if (g->node[k] != node)
                tl_draft_reads(g->node[k], rename_read, &r);
        for (size_t k = 0; k < g->n_output; k++)
            if (g->output[k]->name != NULL)
                rename_read(&g->output[k]->name, &r);
        return true;
    }
    return false;
}

bool tl_bypass_nodes(tl_draft *d, int first, int end, int way)
{
    bool any = false;
    (void)way;
    for (int i = end - 1; i >= first; i--)
        any |= bypass(d, d->graph->node[i]);
    return any;
}
