/* tests/models/test_zoo.c: what the builders write, the reader reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    if (access("/dev/full", W_OK) == 0) {
        /* nothing stays under the name, nor beside it: teardown's rmdir would fail */
        assert_int_not_equal(access(path_of("x.onnx"), F_OK), 0);
    }
}

/* Every row of the zoo is one its builder knows: the smallest of each family is written above, the others are
 * built without being written. */
static void all_rows_build(void **state)
{
    (void)state;
    for (int i = 0; i < tl_zoo_count; i++) {
        if (strcmp(tl_zoo[i].name, "bert_base") == 0)
            continue; /* 109 M normally distributed numbers */
        tl_onnx_build *b = tl_onnx_build_create(tl_zoo[i].name, 17, 1);
        assert_non_null(b);
        tl_zoo[i].build(b, tl_zoo[i].name);
        assert_non_null(tl_build_name(b, "still alive"));
        assert_true(tl_build_name(b, "still alive")[0] != '\0');
        tl_onnx_build_destroy(b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_has_its_parts),        cmocka_unit_test(bert_tiny_has_its_parts),
        cmocka_unit_test(external_weights_are_the_same), cmocka_unit_test(same_seed_same_file),
        cmocka_unit_test(failures_leave_no_file),        cmocka_unit_test(all_rows_build),
    };
    return cmocka_run_group_tests_name("zoo", tests, make_folder, remove_folder);
}
