/* tests/models/test_kernels.c: the zoo's models through everything before schedules: what is left of the graph, how it is
 * cut, and that every naive program verifies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "frontend/frontend.h"
#include "models/zoo.h"

typedef struct {
    tl_arena *arena;
    tl_onnx *model;
    tl_graph *graph;
    tl_partition partition;
} cut_model;

/* Layouts and kernels for another target; the graph before them is the same. */
static void cut_for(cut_model *m, const char *target_name)
{
    tl_diag diag = { { 0 } };
    tl_target target;
    if (tl_target_named(target_name, &target, &diag) != TL_OK ||
        tl_assign_layouts(m->graph, &target, &diag) != TL_OK ||
        tl_partition_graph(m->arena, m->graph, &m->partition, &diag) != TL_OK)
        fail_msg("%s: %s", target_name, diag.text);
}

static void cut(cut_model *m, const char *name, const char *target)
{
    char path[] = "/tmp/tilth_kernels_XXXXXX";
    int file = mkstemp(path);
    tl_diag diag = { { 0 } };
    assert_true(file >= 0);
    close(file);
    m->arena = tl_arena_create(0);
    tl_status status = tl_zoo_write(name, NULL, 0, 1, false, path, &diag);
    if (status == TL_OK)
        status = tl_onnx_read(m->arena, path, NULL, 0, &m->model, &m->graph, &diag);
    unlink(path);
    if (status != TL_OK || tl_graph_prepare(m->graph, TL_NUMERICS_RELAXED, &diag) != TL_OK)
        fail_msg("%s: %s", name, diag.text);
    cut_for(m, target);
}

static void release(cut_model *m)
{
    tl_onnx_close(m->model);
    tl_arena_destroy(m->arena);
}

/* How many kernels are of the family, and how many different workloads they are; all programs verify. */
static void count_family(const cut_model *m, const char *family, int *kernels, int *workloads)
{
    char(*keys)[33] = calloc((size_t)m->partition.count + 1, sizeof *keys);
    *kernels = *workloads = 0;
    for (int i = 0; i < m->partition.count; i++) {
        const tl_kernel *k = &m->partition.kernels[i];
        if (family != NULL && strcmp(k->family, family) != 0)
            continue;
        tl_program *program;
        tl_diag diag = { { 0 } };
        if (tl_kernel_program(m->arena, k, NULL, &program, &diag) != TL_OK ||
            tl_program_verify(program, &diag) != TL_OK)
            fail_msg("%s: %s", k->name, diag.text);
        tl_workload_key(m->arena, program, keys[*workloads]);
        bool seen = false;
        for (int j = 0; j < *workloads; j++)
            seen = seen || strcmp(keys[j], keys[*workloads]) == 0;
        ++*kernels;
        *workloads += !seen;
    }
    free(keys);
}

static void expect_family(const cut_model *m, const char *family, int kernels, int workloads)
{
    int k, w;
    count_family(m, family, &k, &w);
    if (k != kernels || w != workloads)
        fail_msg("%s: %d kernels of %d workloads, should be %d of %d",
                 family != NULL ? family : "all", k, w, kernels, workloads);
}

/* Nothing computes integers but what depends on the model's inputs. */
static void assert_no_shape_arithmetic(const tl_graph *g)
{
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        bool depends = false;
        for (int k = 0; k < n->input_count; k++)
            depends = depends || (n->inputs[k] != NULL && n->inputs[k]->data == NULL);
        if (!depends || n->op == TL_OP_SHAPE || n->op == TL_OP_RANGE)
            fail_msg("node %s (%s) is left", n->name, tl_op_infos[n->op].text);
    }
}

static void resnet18(void **state)
{
    (void)state;
    cut_model m;
    cut(&m, "resnet18", "x86-64-v4");
    assert_no_shape_arithmetic(m.graph);
    expect_family(&m, "conv_relu", 9, 8);
    expect_family(&m, "conv_add_relu", 8, 7);
    expect_family(&m, "conv", 3, 3);
    expect_family(&m, "gemm", 1, 1);
    release(&m);
}

static void bert_tiny(void **state)
{
    (void)state;
    cut_model m;
    cut(&m, "bert_tiny", "x86-64-v4");
    assert_no_shape_arithmetic(m.graph);
    expect_family(&m, "matmul_add", 2, 1); /* Q, K and V together */
    expect_family(&m, "slice_slice_slice_attention", 2, 1);
    expect_family(&m, "gather_add_add_layernorm", 1, 1);
    expect_family(&m, "layernorm", 4, 1);
    release(&m);
}

/* A model of each builder on every kind of target. */
static void other_targets_verify(void **state)
{
    (void)state;
    static const char *const names[] = { "resnet50", "bert_mini" };
    static const char *const targets[] = { "x86-64", "aarch64", "nvptx64" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cut_model m;
        cut(&m, names[i], "x86-64-v3");
        for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
            int kernels, workloads;
            cut_for(&m, targets[t]);
            count_family(&m, NULL, &kernels, &workloads);
            assert_true(kernels > 20 && workloads < kernels);
        }
        release(&m);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18),
        cmocka_unit_test(bert_tiny),
        cmocka_unit_test(other_targets_verify),
    };
    return cmocka_run_group_tests_name("kernels of the zoo", tests, NULL, NULL);
}
