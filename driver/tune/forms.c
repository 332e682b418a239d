/* driver/tune/forms.c: other ways to cut a model's graph and to lay out its values, compared by recorded costs. */
#include "driver/tune/forms.h"
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/model_private.h"
#include "frontend/operators.h"
#include "runtime/base/map.h"

/* An alternative must promise so much of the model to be looked at: records are measurements. */
#define LEAST_GAIN 0.003

static tl_status cut_graph(tl_arena *arena, tl_model *model, const char *form, tl_partition *out,
                           tl_diag *diag)
{
    tl_graph_set_form(model->graph, form);
    TL_TRY(tl_assign_layouts(model->graph, &model->target, diag));
    return tl_partition_graph(arena, model->graph, out, diag);
}

tl_status tl_form_visit(tl_arena *arena, tl_model *model, const char *form, tl_form_visitor *visit,
                        void *user, tl_diag *diag)
{
    tl_partition cut, restored;
    tl_status status = cut_graph(arena, model, form, &cut, diag);
    for (int i = 0; status == TL_OK && i < cut.count; i++)
        status = visit(user, &cut.kernels[i], diag);
    tl_status back = cut_graph(arena, model, model->picks.form, &restored, diag);
    return status != TL_OK ? status : back;
}

/* The sum so far, and the best record of each workload that was asked for: a double, 0 for none. */
typedef struct {
    tl_arena *arena;
    tl_records *store;
    const tl_picks_query *query;
    tl_map *known, *missed;
    double sum;
} ledger;

static double best_of(ledger *l, const char *workload)
{
    double *best = tl_map_find(l->known, workload);
    if (best == NULL) {
        tl_picks picks;
        best = TL_NEW(l->arena, double);
        tl_picks_best(l->store, l->arena, l->query, &workload, 1, &picks);
        *best = picks.count > 0 ? picks.picks[0].score_ns : 0;
        tl_map_put(l->known, workload, best);
    }
    return *best;
}

static tl_status add_cost(void *user, const tl_kernel *kernel, tl_diag *diag)
{
    ledger *l = user;
    char workload[33];
    TL_TRY(tl_kernel_workload_key(l->arena, kernel, workload, diag));
    double best = best_of(l, workload);
    if (best == 0)
        tl_map_put(l->missed, workload, l);
    l->sum += best;
    return TL_OK;
}

static tl_status cost_with(ledger *l, tl_model *model, const char *form, double *cost_ns,
                           int *missing, tl_diag *diag)
{
    l->sum = 0;
    l->missed = tl_map_create(l->arena);
    TL_TRY(tl_form_visit(l->arena, model, form, add_cost, l, diag));
    *missing = (int)tl_map_count(l->missed);
    *cost_ns = *missing == 0 ? l->sum : 0;
    return TL_OK;
}

static ledger open_ledger(tl_arena *arena, tl_records *store, const tl_picks_query *query)
{
    return (
        ledger){ .arena = arena, .store = store, .query = query, .known = tl_map_create(arena) };
}

/* A name that one line can hold. */
static bool is_nameable(const tl_value *v)
{
    for (const char *c = v->name; *c; c++)
        if ((unsigned char)*c < ' ')
            return false;
    return v->name[0] != '\0';
}

static bool has_loops(const tl_node *n)
{
    return !tl_is_injective(n);
}

/* The node of the kernel behind which it can be cut before or behind its node `i`, which has loops of its own; -1: not
 * there. */
static int find_cut(const tl_kernel *kernel, int i, bool before)
{
    const tl_node *n = kernel->nodes[i];
    if (!before)
        return n->outputs[0] != kernel->outputs[0] && is_nameable(n->outputs[0]) ? i : -1;
    for (int k = 0; k < i; k++)
        if (n->input_count > 0 && kernel->nodes[k]->outputs[0] == n->inputs[0])
            return is_nameable(n->inputs[0]) ? k : -1;
    return -1;
}

static bool makes_blocks(const tl_kernel *kernel)
{
    const tl_value *out = kernel->outputs[0];
    bool has_conv = false, nameable = true;
    for (int i = 0; i < kernel->node_count; i++) {
        has_conv |= kernel->nodes[i]->op == TL_OP_CONV;
        nameable &= is_nameable(kernel->nodes[i]->outputs[0]);
    }
    return has_conv && nameable && !out->layout.plain && out->shape.rank == 4 &&
           out->layout.block[1] > 1;
}

typedef struct {
    tl_arena *arena;
    tl_model *model;
    tl_form *forms;
    int count;
} list;

/* The same decision for all kernels of the workload of kernel `first`: a cut behind a node; -1: every node's value
 * plain. */
static void add_form(list *l, int first, int node)
{
    tl_text text = { 0 };
    const tl_model *m = l->model;
    for (int k = first; k < m->partition.count; k++) {
        const tl_kernel *kernel = &m->partition.kernels[k];
        if (m->kernels[k].same_as != first)
            continue;
        for (int i = 0; i < kernel->node_count; i++) {
            const tl_value *v = kernel->nodes[i]->outputs[0];
            if (is_nameable(v) && (node < 0 || node == i))
                tl_text_format(&text, "%s %s\n", node < 0 ? "plain" : "cut", v->name);
        }
    }
    const tl_kernel *kernel = &m->partition.kernels[first];
    l->forms[l->count++] = (tl_form){
        .form = tl_arena_strdup(l->arena, tl_text_get(&text)),
        .what = node < 0 ? tl_arena_format(l->arena, "%s: plain", kernel->name)
                         : tl_arena_format(l->arena, "%s: cut behind %s", kernel->name,
                                           tl_op_infos[kernel->nodes[node]->op].text),
    };
    tl_text_free(&text);
}

static void find_forms(tl_arena *arena, tl_model *model, tl_form **out, int *count)
{
    list l = { .arena = arena, .model = model };
    int most = 0;
    for (int k = 0; k < model->partition.count; k++)
        most += 1 + 2 * model->partition.kernels[k].node_count;
    l.forms = TL_NEW_ARRAY(l.arena, tl_form, most);
    for (int k = 0; k < model->partition.count; k++) {
        const tl_kernel *kernel = &model->partition.kernels[k];
        if (model->kernels[k].same_as != k)
            continue;
        int last = -1; /* the node of the last cut: behind one may be before the next */
        for (int i = 0; i < 2 * kernel->node_count; i++) {
            int cut = has_loops(kernel->nodes[i / 2]) ? find_cut(kernel, i / 2, i % 2 == 0) : -1;
            if (cut > last)
                add_form(&l, k, last = cut);
        }
        if (makes_blocks(kernel))
            add_form(&l, k, -1);
    }
    *out = l.forms;
    *count = l.count;
}

void tl_forms_find(tl_arena *arena, tl_model *model, const tl_form **out, int *count)
{
    tl_form *forms;
    find_forms(arena, model, &forms, count);
    *out = forms;
}

static tl_status list_with(ledger *costs, tl_model *model, tl_form **out, int *count, tl_diag *diag)
{
    find_forms(costs->arena, model, out, count);
    for (int i = 0; i < *count; i++)
        TL_TRY(
            cost_with(costs, model, (*out)[i].form, &(*out)[i].cost_ns, &(*out)[i].missing, diag));
    return TL_OK;
}

tl_status tl_forms_list(tl_arena *arena, tl_model *model, tl_records *store,
                        const tl_picks_query *query, const tl_form **out, int *count, tl_diag *diag)
{
    tl_form *forms;
    ledger costs = open_ledger(arena, store, query);
    TL_TRY(list_with(&costs, model, &forms, count, diag));
    *out = forms;
    return TL_OK;
}

static int by_cost(const void *a, const void *b)
{
    const tl_form *x = a, *y = b;
    if (x->cost_ns != y->cost_ns)
        return x->cost_ns < y->cost_ns ? -1 : 1;
    return strcmp(x->form, y->form);
}

const char *tl_forms_join(tl_arena *arena, const tl_form *forms, int count)
{
    const char *form = "";
    for (int i = 0; i < count; i++)
        form = tl_arena_format(arena, "%s%s", form, forms[i].form);
    return form;
}

tl_status tl_forms_choose(tl_arena *arena, tl_model *model, tl_records *store,
                          const tl_picks_query *query, const tl_form **out, int *out_count,
                          double *default_ns, double *cost_ns, tl_diag *diag)
{
    tl_form *forms;
    int count, missing, chosen = 0;
    ledger costs = open_ledger(arena, store, query);
    *out_count = 0;
    TL_TRY(cost_with(&costs, model, "", default_ns, &missing, diag));
    *cost_ns = *default_ns;
    if (missing > 0)
        return TL_OK;
    TL_TRY(list_with(&costs, model, &forms, &count, diag));
    if (count > 0)
        qsort(forms, (size_t)count, sizeof *forms, by_cost);
    for (int i = 0; i < count; i++) {
        if (forms[i].missing > 0 || forms[i].cost_ns >= *default_ns * (1 - LEAST_GAIN))
            continue;
        double cost;
        forms[chosen] = forms[i]; /* those before were looked at */
        TL_TRY(cost_with(&costs, model, tl_forms_join(arena, forms, chosen + 1), &cost, &missing,
                         diag));
        if (missing > 0 || cost >= *cost_ns * (1 - LEAST_GAIN))
            continue;
        chosen++;
        *cost_ns = cost;
    }
    *out = forms;
    *out_count = chosen;
    return TL_OK;
}
