/* tests/models/test_zoo.c: what the builders write, the reader reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "frontend/frontend.h"
#include "models/zoo.h"
#include "runtime/base/file.h"

static char folder[] = "/tmp/tilth_zoo_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int count_ops(const tl_graph *g, tl_op op)
{
    int count = 0;
    for (int i = 0; i < g->node_count; i++)
        count += g->nodes[i]->op == op;
    return count;
}

static int64_t count_weights(const tl_graph *g)
{
    int64_t count = 0;
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i]->data != NULL && g->values[i]->dtype == TL_F32)
            count += tl_shape_elements(&g->values[i]->shape);
    return count;
}

static void write_model(const char *name, bool external, const char *path)
{
    tl_diag diag = { 0 };
    if (tl_zoo_write(name, 1, external, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static tl_graph *read_model(tl_arena *arena, const char *path, tl_onnx **model)
{
    tl_graph *g;
    tl_diag diag = { 0 };
    if (tl_onnx_read(arena, path, NULL, 0, model, &g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    if (tl_graph_verify(g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return g;
}

static void resnet18_has_its_parts(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    const char *path = path_of("resnet18.onnx");
    write_model("resnet18", false, path);
    tl_graph *g = read_model(arena, path, &model);
    assert_int_equal(count_ops(g, TL_OP_CONV), 20);
    assert_int_equal(count_ops(g, TL_OP_BATCH_NORM), 20);
    assert_int_equal(count_ops(g, TL_OP_ADD), 8);
    assert_int_equal(count_ops(g, TL_OP_RELU), 17);
    /* 11.69 M parameters, and 4800 running means and variances each */
    assert_int_equal(count_weights(g), 11689512 + 2 * 4800);
    assert_string_equal(g->outputs[0]->name, "logits");
    const int64_t extents[] = { 1, 1000 };
    tl_shape shape = tl_shape_of(2, extents);
    assert_true(tl_shape_equal(&g->outputs[0]->shape, &shape));
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    unlink(path);
}

static void bert_tiny_has_its_parts(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    const char *path = path_of("bert_tiny.onnx");
    write_model("bert_tiny", false, path);
    tl_graph *g = read_model(arena, path, &model);
    assert_int_equal(g->input_count, 2);
    assert_string_equal(g->inputs[0]->name, "input_ids");
    assert_int_equal(g->inputs[0]->dtype, TL_I64);
    assert_string_equal(g->outputs[0]->name, "last_hidden_state");
    assert_int_equal(count_ops(g, TL_OP_MATMUL), 2 * 8);
    assert_int_equal(count_ops(g, TL_OP_ERF), 2);
    assert_int_equal(count_ops(g, TL_OP_SOFTMAX), 2);
    assert_int_equal(count_ops(g, TL_OP_SQRT), 5);
    assert_true(count_weights(g) > 4300000 && count_weights(g) < 4500000);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    unlink(path);
}

/* The same weights, whether they lie in the model or beside it. */
static void external_weights_are_the_same(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *models[2];
    tl_graph *g[2];
    const char *paths[2] = { path_of("in.onnx"), path_of("out.onnx") };
    const char *weights = path_of("out.weights");
    for (int i = 0; i < 2; i++) {
        write_model("bert_tiny", i == 1, paths[i]);
        g[i] = read_model(arena, paths[i], &models[i]);
    }
    struct stat info;
    assert_int_equal(stat(paths[1], &info), 0);
    assert_true(info.st_size < 100000);
    assert_int_equal(g[0]->value_count, g[1]->value_count);
    for (int i = 0; i < g[0]->value_count; i++) {
        const tl_value *a = g[0]->values[i], *b = g[1]->values[i];
        assert_string_equal(a->name, b->name);
        if (a->data != NULL && tl_shape_elements(&a->shape) > 0)
            assert_memory_equal(a->data, b->data,
                                (size_t)tl_shape_elements(&a->shape) * tl_dtype_size(a->dtype));
    }
    for (int i = 0; i < 2; i++) {
        tl_onnx_close(models[i]);
        unlink(paths[i]);
    }
    unlink(weights);
    tl_arena_destroy(arena);
}

static void same_seed_same_file(void **state)
{
    (void)state;
    const char *paths[2] = { path_of("a.onnx"), path_of("b.onnx") };
    tl_text texts[2] = { { 0 }, { 0 } };
    tl_diag diag = { 0 };
    for (int i = 0; i < 2; i++) {
        write_model("bert_tiny", false, paths[i]);
        assert_int_equal(tl_file_read(paths[i], &texts[i], &diag), TL_OK);
        unlink(paths[i]);
    }
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].size);
    tl_text_free(&texts[0]);
    tl_text_free(&texts[1]);
}

static void failures_leave_no_file(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    assert_int_equal(tl_zoo_write("resnet19", 1, false, path_of("x.onnx"), &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "resnet18, resnet34"));
    assert_int_not_equal(tl_zoo_write("bert_tiny", 1, true, path_of("no/x.onnx"), &diag), TL_OK);
    /* a file that may not grow beyond 1 MB is like a full disk; teardown's rmdir sees what is left */
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    for (int external = 0; external < 2; external++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        tl_status status = tl_zoo_write("bert_tiny", 1, external == 1, path_of("x.onnx"), &diag);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, TL_IO);
        assert_int_not_equal(access(path_of("x.onnx"), F_OK), 0);
        assert_int_not_equal(access(path_of("x.weights"), F_OK), 0);
    }
}

/* The other shapes of each family: bottleneck blocks, more heads. Built, not written. */
static void other_variants_build(void **state)
{
    (void)state;
    static const char *const names[] = { "resnet50", "bert_mini" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tl_zoo_model *model = tl_zoo_find(names[i]);
        tl_onnx_build *b = tl_onnx_build_create(names[i], 17, 1);
        assert_non_null(b);
        assert_non_null(model);
        model->build(b, names[i]);
        assert_string_equal(tl_build_name(b, "still %s", "alive"), "still alive");
        tl_onnx_build_destroy(b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_has_its_parts),        cmocka_unit_test(bert_tiny_has_its_parts),
        cmocka_unit_test(external_weights_are_the_same), cmocka_unit_test(same_seed_same_file),
        cmocka_unit_test(failures_leave_no_file),        cmocka_unit_test(other_variants_build),
    };
    return cmocka_run_group_tests_name("zoo", tests, make_folder, remove_folder);
}
