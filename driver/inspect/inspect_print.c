/* driver/inspect/inspect_print.c: an inspection for people, and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/inspect/inspect.h"

typedef struct {
    tl_op op;
    int count;
} op_count;

static int by_count(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : (int)x->op - (int)y->op;
}

static void count_nodes(const tl_graph *g, void *counts)
{
    for (int i = 0; i < g->node_count; i++)
        ((op_count *)counts)[g->nodes[i]->op].count++;
}

static int count_all(const op_count *counts)
{
    int count = 0;
    for (int op = 0; op < TL_OP_COUNT; op++)
        count += counts[op].count;
    return count;
}

/* How an output's shape is to be read of which an extent is computed. */
static void print_extents(const tl_graph *g)
{
    for (int i = 0; i < g->extent_count; i++)
        printf("extent      axis %d of %s is what a run computes, at most that\n",
               g->extents[i].axis, g->outputs[g->extents[i].output]->name);
}

static void count_operators(const tl_graph *g, op_count counts[TL_OP_COUNT])
{
    for (int op = 0; op < TL_OP_COUNT; op++)
        counts[op] = (op_count){ (tl_op)op, 0 };
    tl_graph_visit(g, count_nodes, counts);
    qsort(counts, TL_OP_COUNT, sizeof *counts, by_count);
}

static void print_ports(const char *title, tl_value *const *values, int count)
{
    for (int i = 0; i < count; i++) {
        tl_text text = { 0 };
        tl_inspect_describe(values[i], &text);
        printf("%-11s %s %s\n", title, values[i]->name, tl_text_get(&text));
        tl_text_free(&text);
    }
}

/* Bytes in the unit that suits them. */
static void print_bytes(int64_t bytes)
{
    if (bytes < 100000)
        printf("%.1f KB", (double)bytes * 1e-3);
    else
        printf("%.1f MB", (double)bytes * 1e-6);
}

static void print_kernels(const tl_inspection *in)
{
    printf("\n");
    tl_print_styled(stdout, TL_STYLE_BOLD, "%-30s %-8s %-8s %9s %9s %6s  %-7s %s", "kernel",
                    "class", "workload", "MFLOP", "KB", "share", "bound", "output");
    printf("\n");
    for (int i = 0; i < in->facts->kernel_count; i++) {
        const tl_model_kernel *k = &in->facts->kernels[i];
        tl_text shape = { 0 };
        tl_inspect_describe(k->kernel->outputs[0], &shape);
        printf("%-30s %-8.8s %-8.8s %9.2f %9.1f %5.1f%%  %-7s %s%s%s%s\n", k->kernel->name,
               k->class_key, k->workload, (double)k->flops * 1e-6, (double)k->bytes * 1e-3,
               in->total_s > 0 ? 100 * in->kernels[i].seconds / in->total_s : 0,
               in->kernels[i].memory_bound ? "memory" : "compute", tl_text_get(&shape),
               k->same_as != i ? "  as " : "",
               k->same_as != i ? in->facts->kernels[k->same_as].kernel->name : "",
               k->pick != NULL ? "  tuned" : "");
        tl_text_free(&shape);
    }
    printf("\nshare: of the time that the roofline expects. class: the same loops but for extents. "
           "workload: the same\nkernel, compiled once. blocks 16@1: axis 1 is cut into blocks of "
           "16; halo 1+1@2: zeros around "
           "axis 2.\n");
}

static void print_expected(const tl_inspection *in)
{
    tl_text run = { 0 }, peak = { 0 };
    tl_text_add(&run, "packed weights ");
    tl_text_add_size(&run, in->packed_bytes);
    tl_text_add(&run, ", temporaries ");
    tl_text_add_size(&run, in->temporary_bytes);
    tl_text_add(&run, ", inputs and outputs ");
    tl_text_add_size(&run, in->port_bytes);
    tl_text_add(&run, ", code about ");
    tl_text_add_size(&run, in->code_bytes);
    tl_text_add_size(&peak, in->cached_peak_bytes);
    tl_text_add(&peak, " from the cache, ");
    tl_text_add_size(&peak, in->cold_peak_bytes);
    tl_text_add(&peak, " when it is compiled");
    if (in->facts->memory_limit > 0 && in->cached_peak_bytes > in->facts->memory_limit) {
        tl_text_add(&peak, "; more than the limit of ");
        tl_text_add_size(&peak, in->facts->memory_limit);
        tl_text_add(&peak, " (--max-memory)");
    }
    printf("a run       %s\n            resident at most about %s\n", tl_text_get(&run),
           tl_text_get(&peak));
    tl_text_free(&run);
    tl_text_free(&peak);
}

void tl_inspect_print(const tl_inspection *in, bool kernels)
{
    const tl_model_facts *f = in->facts;
    op_count counts[TL_OP_COUNT];
    int64_t flops_bound = 0;
    int bound = 0;
    print_ports("input", f->graph->inputs, f->graph->input_count);
    print_ports("output", f->graph->outputs, f->graph->shown_count);
    print_extents(f->graph);
    count_operators(f->graph, counts);
    printf("operators   %d after rewriting: ", count_all(counts));
    for (int i = 0; i < TL_OP_COUNT && counts[i].count > 0; i++)
        printf("%s%s %d", i ? ", " : "", tl_op_infos[counts[i].op].text, counts[i].count);
    printf("\nunsupported none\n");
    printf("kernels     %d, %d distinct workloads of %d classes, %.3f GFLOP a run\n",
           f->kernel_count, f->workload_count, in->class_count, (double)f->flops * 1e-9);
    if (f->tuned_count > 0)
        printf("tuned       %d kernels have a recorded schedule%s\n", f->tuned_count,
               f->picks->uid[0] ? " (chosen for this model)" : "");
    printf("memory      constants ");
    print_bytes(in->constant_bytes);
    printf(", values between kernels ");
    print_bytes(in->plan.planned);
    printf(" by the plan (");
    print_bytes(in->plan.sum);
    printf(" without reuse, ");
    print_bytes(in->plan.floor);
    printf(" at least)\n");
    print_expected(in);
    for (int i = 0; i < f->kernel_count; i++) {
        bound += in->kernels[i].memory_bound;
        flops_bound += in->kernels[i].memory_bound ? 0 : f->kernels[i].flops;
    }
    printf("roofline    %.3f ms on %d thread%s at %.0f GFLOP/s and %.1f GB/s (%s): %d kernels "
           "bound by "
           "memory,\n            %d by arithmetic, which do %.1f %% of it\n",
           in->total_s * 1e3, in->threads, in->threads == 1 ? "" : "s", in->peak_gflops,
           in->bandwidth_gbs, in->measured ? "measured now" : "estimated from the target", bound,
           f->kernel_count - bound,
           f->flops > 0 ? 100.0 * (double)flops_bound / (double)f->flops : 0);
    if (kernels)
        print_kernels(in);
}

static void print_value_json(const char *record, const tl_value *v)
{
    tl_text text = { 0 };
    tl_inspect_describe(v, &text);
    printf("{\"record\":\"%s\",\"name\":", record);
    tl_print_json_text(v->name);
    printf(",\"type\":");
    tl_print_json_text(tl_text_get(&text));
    printf("}\n");
    tl_text_free(&text);
}

static void print_values_json(const char *key, tl_value *const *values, int count)
{
    printf(",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        tl_text text = { 0 };
        tl_inspect_describe(values[i], &text);
        printf("%s{\"name\":", i ? "," : "");
        tl_print_json_text(values[i]->name);
        printf(",\"type\":");
        tl_print_json_text(tl_text_get(&text));
        printf(",\"constant\":%s}", values[i]->data != NULL ? "true" : "false");
        tl_text_free(&text);
    }
    printf("]");
}

void tl_inspect_print_json(const tl_inspection *in)
{
    const tl_model_facts *f = in->facts;
    op_count counts[TL_OP_COUNT];
    for (int i = 0; i < f->graph->input_count; i++)
        print_value_json("input", f->graph->inputs[i]);
    for (int i = 0; i < f->graph->shown_count; i++)
        print_value_json("output", f->graph->outputs[i]);
    count_operators(f->graph, counts);
    for (int i = 0; i < TL_OP_COUNT && counts[i].count > 0; i++)
        printf("{\"record\":\"operator\",\"name\":\"%s\",\"count\":%d}\n",
               tl_op_infos[counts[i].op].text, counts[i].count);
    for (int i = 0; i < f->kernel_count; i++) {
        const tl_model_kernel *k = &f->kernels[i];
        printf("{\"record\":\"kernel\",\"name\":");
        tl_print_json_text(k->kernel->name);
        printf(",\"family\":\"%s\",\"class\":\"%s\",\"workload\":\"%s\",\"nodes\":[",
               k->kernel->family, k->class_key, k->workload);
        for (int n = 0; n < k->kernel->node_count; n++) {
            printf("%s", n ? "," : "");
            tl_print_json_text(k->kernel->nodes[n]->name);
        }
        printf("],\"lowering\":\"%s\",\"tuned_by\":\"%s\"", k->lowering,
               k->pick != NULL ? k->pick->uid : "");
        print_values_json("inputs", k->kernel->inputs, k->kernel->input_count);
        print_values_json("outputs", k->kernel->outputs, k->kernel->output_count);
        printf(",\"flops\":%" PRId64 ",\"bytes\":%" PRId64
               ",\"expected_ns\":%.0f,\"share\":%.5f,\"memory_bound\":%s}\n",
               k->flops, k->bytes, in->kernels[i].seconds * 1e9,
               in->total_s > 0 ? in->kernels[i].seconds / in->total_s : 0,
               in->kernels[i].memory_bound ? "true" : "false");
    }
    printf("{\"record\":\"model\",\"model\":");
    tl_print_json_text(in->path);
    printf(",\"nodes\":%d,\"kernels\":%d,\"workloads\":%d,\"classes\":%d,\"flops\":%" PRId64
           ",\"constant_bytes\":%" PRId64 ",\"plan_bytes\":%" PRId64 ",\"tensor_bytes\":%" PRId64
           ",\"floor_bytes\":%" PRId64,
           f->graph->node_count, f->kernel_count, f->workload_count, in->class_count, f->flops,
           in->constant_bytes, in->plan.planned, in->plan.sum, in->plan.floor);
    printf(",\"packed_bytes\":%" PRId64 ",\"temporary_bytes\":%" PRId64 ",\"port_bytes\":%" PRId64
           ",\"code_bytes\":%" PRId64 ",\"cached_peak_bytes\":%" PRId64
           ",\"cold_peak_bytes\":%" PRId64 ",\"memory_limit_bytes\":%" PRId64,
           in->packed_bytes, in->temporary_bytes, in->port_bytes, in->code_bytes,
           in->cached_peak_bytes, in->cold_peak_bytes, in->facts->memory_limit);
    printf(",\"threads\":%d,\"peak_gflops\":%.1f,\"bandwidth_gbs\":%.1f,\"measured\":%s,"
           "\"expected_ns\":%.0f}\n",
           in->threads, in->peak_gflops, in->bandwidth_gbs, in->measured ? "true" : "false",
           in->total_s * 1e9);
}

void tl_inspect_print_unsupported(const tl_diag *diag)
{
    char text[sizeof diag->text], *state;
    snprintf(text, sizeof text, "%s", diag->text);
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        bool heading = line == text && strstr(diag->text, "\n  ") != NULL &&
                       strncmp(diag->text, "not supported: ", 15) == 0;
        if (heading || strncmp(line, "  in ", 5) == 0)
            continue;
        printf("{\"record\":\"unsupported\",\"text\":");
        tl_print_json_text(line + strspn(line, " "));
        printf("}\n");
    }
}
