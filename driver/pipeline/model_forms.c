/* driver/pipeline/model_forms.c: other ways to cut a model's graph and to lay out its values. */
#include "driver/pipeline/model_forms.h"
#include "driver/pipeline/model_private.h"
#include "frontend/operators.h"

static tl_status cut_graph(tl_arena *arena, tl_model *model, const char *form, tl_partition *out,
                           tl_diag *diag)
{
    tl_graph_set_form(model->graph, form);
    TL_TRY(tl_assign_layouts(model->graph, &model->target, diag));
    return tl_partition_graph(arena, model->graph, out, diag);
}

tl_status tl_model_visit_form(tl_arena *arena, tl_model *model, const char *form,
                              tl_kernel_visitor *visit, void *user, tl_diag *diag)
{
    tl_partition cut, restored;
    tl_status status = cut_graph(arena, model, form, &cut, diag);
    for (int i = 0; status == TL_OK && i < cut.count; i++)
        status = visit(user, &cut.kernels[i], diag);
    tl_status back = cut_graph(arena, model, model->picks.form, &restored, diag);
    return status != TL_OK ? status : back;
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
    return has_conv && nameable && out->shape.rank == 4 && tl_layout_block(&out->layout, 1) > 1;
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

void tl_model_find_forms(tl_arena *arena, tl_model *model, const tl_form **out, int *count)
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
