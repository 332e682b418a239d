/* driver/verb_inspect.c: tilth inspect MODEL: what a model is made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/session.h"

typedef struct {
    tl_op op;
    int count;
} op_count;

static int by_count(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : (int)x->op - (int)y->op;
}

static void describe(const tl_value *v, tl_text *out)
{
    int64_t extents[TL_MAX_RANK];
    for (int a = 0; a < v->shape.rank; a++)
        extents[a] = v->shape.dims[a].extent;
    tl_shape_describe(v->dtype, v->shape.rank, extents, out);
}

static void print_operators(const tl_graph *g)
{
    op_count counts[TL_OP_COUNT];
    for (int op = 0; op < TL_OP_COUNT; op++)
        counts[op] = (op_count){ (tl_op)op, 0 };
    for (int i = 0; i < g->node_count; i++)
        counts[g->nodes[i]->op].count++;
    qsort(counts, TL_OP_COUNT, sizeof *counts, by_count);
    printf("operators   ");
    for (int i = 0; i < TL_OP_COUNT && counts[i].count > 0; i++)
        printf("%s%s %d", i ? ", " : "", tl_op_infos[counts[i].op].text, counts[i].count);
    printf("\n");
}

static void print_ports(const char *title, tl_value *const *values, int count)
{
    for (int i = 0; i < count; i++) {
        tl_text text = { 0 };
        describe(values[i], &text);
        printf("%-11s %s %s\n", title, values[i]->name, tl_text_get(&text));
        tl_text_free(&text);
    }
}

static int64_t constant_bytes(const tl_graph *g)
{
    int64_t bytes = 0;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i]->data != NULL)
            bytes += tl_shape_elements(&g->values[i]->shape) *
                     (int64_t)tl_dtype_size(g->values[i]->dtype);
    return bytes;
}

static void print_kernels(const tl_model_facts *facts)
{
    printf("\n%-34s %-12s %10s %10s  %s\n", "kernel", "workload", "MFLOP", "KB moved", "output");
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        tl_text shape = { 0 };
        describe(k->kernel->outputs[0], &shape);
        printf("%-34s %-12.12s %10.2f %10.1f  %s%s\n", k->kernel->name, k->workload,
               (double)k->flops * 1e-6, (double)k->bytes / 1024, tl_text_get(&shape),
               k->same_as != i ? "  (same workload as before)" : "");
        tl_text_free(&shape);
    }
}

static void print_json(const tl_model_facts *facts, const char *path)
{
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        printf("{\"record\":\"kernel\",\"name\":\"%s\",\"family\":\"%s\",\"class\":\"%s\","
               "\"workload\":\"%s\","
               "\"nodes\":%d,\"flops\":%lld,\"bytes\":%lld}\n",
               k->kernel->name, k->kernel->family, k->class_key, k->workload, k->kernel->node_count,
               (long long)k->flops, (long long)k->bytes);
    }
    printf("{\"record\":\"model\",\"model\":");
    tl_print_json_text(path);
    printf(
        ",\"nodes\":%d,\"kernels\":%d,\"workloads\":%d,\"flops\":%lld,\"constant_bytes\":%lld}\n",
        facts->graph->node_count, facts->kernel_count, facts->workload_count,
        (long long)facts->flops, (long long)constant_bytes(facts->graph));
}

static tl_status print_extract(const tl_model_facts *facts, const char *name, bool scheduled,
                               bool trace, tl_diag *diag)
{
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        if (strcmp(k->kernel->name, name) != 0)
            continue;
        if (trace) {
            fputs(k->trace, stdout);
            return TL_OK;
        }
        tl_text text = { 0 };
        tl_program_print(scheduled ? k->scheduled : k->naive, &text);
        fputs(tl_text_get(&text), stdout);
        tl_text_free(&text);
        return TL_OK;
    }
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "no kernel is named %s: tilth inspect MODEL --kernels lists them", name);
}

int tl_verb_inspect(int argc, char **argv)
{
    tl_session_options common = { 0 };
    bool kernels = false, graph = false, scheduled = false, trace = false;
    const char *extract = NULL;
    const tl_option options[] = {
        { "--kernels", NULL, TL_OPTION_FLAG, NULL, "a line for each kernel", &kernels },
        { "--graph", NULL, TL_OPTION_FLAG, NULL, "the graph after all rewrites, as text", &graph },
        { "--extract", NULL, TL_OPTION_TEXT, "KERNEL", "the naive program of one kernel, as text",
          &extract },
        { "--scheduled", NULL, TL_OPTION_FLAG, NULL, "with --extract: after its default schedule",
          &scheduled },
        { "--trace", NULL, TL_OPTION_FLAG, NULL, "with --extract: the default schedule itself",
          &trace },
        TL_SESSION_OPTIONS(common),
        { 0 },
    };
    const tl_verb_help help = {
        "inspect",
        "MODEL.onnx",
        "Shows what a model is made of: operators, kernels, classes, shapes, FLOPs.",
        "Everything that is not supported is listed at once (exit status 3).",
        "  tilth inspect resnet18.onnx --kernels\n"
        "  tilth inspect resnet18.onnx --extract conv_relu_3 --scheduled",
        options,
        1,
        1,
        NULL,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_session session;
    tl_model_options extra = { .inspect_only = true };
    if (common.json)
        tl_print_env_json();
    tl_status status = tl_session_open(&session, positional[0], &common, &extra, &diag);
    if (status == TL_OK) {
        const tl_model_facts *facts = tl_model_get_facts(session.model);
        if (extract != NULL) {
            status = print_extract(facts, extract, scheduled, trace, &diag);
        } else if (common.json) {
            print_json(facts, positional[0]);
        } else {
            if (graph) {
                tl_text text = { 0 };
                tl_graph_print(facts->graph, &text);
                printf("%s\n", tl_text_get(&text));
                tl_text_free(&text);
            }
            print_ports("input", facts->graph->inputs, facts->graph->input_count);
            print_ports("output", facts->graph->outputs, facts->graph->output_count);
            print_operators(facts->graph);
            printf("constants   %.1f MB\n", (double)constant_bytes(facts->graph) * 1e-6);
            printf("kernels     %d, %d distinct workloads, %.3f GFLOP a run\n", facts->kernel_count,
                   facts->workload_count, (double)facts->flops * 1e-9);
            if (kernels)
                print_kernels(facts);
        }
    }
    if (status != TL_OK)
        code = tl_report_failure("inspect", status, &diag);
    tl_session_close(&session);
    return code;
}
