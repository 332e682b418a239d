/* driver/inspect/inspect_dot.c: the graph cut into kernels, for Graphviz (dot -Tsvg). */
#include <string.h>
#include "driver/inspect/inspect.h"
#include "runtime/base/printable.h"

/* Text of a label: quoted for dot, and on one line. */
static void add_label(tl_text *out, const char *text)
{
    tl_text shown = { 0 };
    tl_text_add_printable(&shown, text, strlen(text));
    for (const char *p = tl_text_get(&shown); *p; p++) {
        if (*p == '"' || *p == '\\')
            tl_text_add(out, "\\");
        tl_text_add_bytes(out, *p == '\n' || *p == '\t' ? " " : p, 1);
    }
    tl_text_free(&shown);
}

static int node_index(const tl_graph *g, const tl_node *node)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i] == node)
            return i;
    return -1;
}

static void add_kernel(const tl_inspection *in, int index, tl_text *out)
{
    const tl_model_kernel *k = &in->facts->kernels[index];
    double share = in->total_s > 0 ? in->kernels[index].seconds / in->total_s : 0;
    tl_text_format(out, "  subgraph cluster_%d {\n    label=\"", index);
    add_label(out, k->kernel->name);
    tl_text_format(out, "\\n%.2f MFLOP, %.1f %%\"; style=filled; color=\"%.3f 0.5 1.0\";\n",
                   (double)k->flops * 1e-6, 100 * share,
                   share > 0.2 ? 0.0 : 0.33 * (1 - 5 * share)); /* green to red */
    for (int n = 0; n < k->kernel->node_count; n++) {
        const tl_node *node = k->kernel->nodes[n];
        tl_text_format(out, "    n%d [label=\"", node_index(in->facts->graph, node));
        add_label(out, tl_op_infos[node->op].text);
        tl_text_add(out, "\", tooltip=\"");
        add_label(out, node->name);
        tl_text_add(out, "\"];\n");
    }
    tl_text_add(out, "  }\n");
}

/* A node with bodies, which are not drawn. */
static void add_region(const tl_graph *g, int index, tl_text *out)
{
    tl_text_format(out, "  n%d [shape=box3d, label=\"", index);
    add_label(out, tl_op_infos[g->nodes[index]->op].text);
    tl_text_add(out, "\", tooltip=\"");
    add_label(out, g->nodes[index]->name);
    tl_text_add(out, "\"];\n");
}

static void add_port(tl_text *out, const char *kind, int index, const tl_value *v)
{
    tl_text_format(out, "  %s%d [shape=ellipse, style=filled, fillcolor=white, label=\"", kind,
                   index);
    add_label(out, v->name);
    tl_text_add(out, "\"];\n");
}

static void add_edge_label(tl_text *out, const tl_value *v)
{
    tl_text text = { 0 };
    tl_inspect_describe(v, &text);
    tl_text_add(out, " [label=\"");
    add_label(out, tl_text_get(&text));
    tl_text_add(out, "\"];\n");
    tl_text_free(&text);
}

static void add_edges(const tl_graph *g, tl_text *out)
{
    for (int i = 0; i < g->node_count; i++)
        for (int a = 0; a < g->nodes[i]->input_count; a++) {
            const tl_value *v = g->nodes[i]->inputs[a];
            if (v == NULL || v->data != NULL)
                continue;
            if (v->producer != NULL) {
                tl_text_format(out, "  n%d -> n%d", node_index(g, v->producer), i);
                add_edge_label(out, v);
                continue;
            }
            for (int p = 0; p < g->input_count; p++)
                if (g->inputs[p] == v) {
                    tl_text_format(out, "  in%d -> n%d", p, i);
                    add_edge_label(out, v);
                }
        }
    for (int p = 0; p < g->shown_count; p++)
        if (g->outputs[p]->producer != NULL) {
            tl_text_format(out, "  n%d -> out%d", node_index(g, g->outputs[p]->producer), p);
            add_edge_label(out, g->outputs[p]);
        }
}

void tl_inspect_dot(const tl_inspection *in, tl_text *out)
{
    const tl_graph *g = in->facts->graph;
    tl_text_add(out, "digraph \"");
    add_label(out, in->path);
    tl_text_add(out,
                "\" {\n  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica];\n"
                "  edge [fontname=Helvetica, fontsize=9];\n  fontname=Helvetica;\n");
    for (int i = 0; i < g->input_count; i++)
        add_port(out, "in", i, g->inputs[i]);
    for (int i = 0; i < g->shown_count; i++)
        add_port(out, "out", i, g->outputs[i]);
    for (int k = 0; k < in->facts->kernel_count; k++)
        if (node_index(g, in->facts->kernels[k].kernel->nodes[0]) >= 0)
            add_kernel(in, k, out);
    for (int i = 0; i < g->node_count; i++)
        if (tl_op_bodies(g->nodes[i]->op) > 0)
            add_region(g, i, out);
    add_edges(g, out);
    tl_text_add(out, "}\n");
}
