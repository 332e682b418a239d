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
    if (tl_zoo_write(name, NULL, 0, 1, external, path, &diag) != TL_OK)
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
    assert_int_equal(tl_zoo_write("resnet19", NULL, 0, 1, false, path_of("x.onnx"), &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "resnet18, resnet34"));
    assert_int_not_equal(tl_zoo_write("bert_tiny", NULL, 0, 1, true, path_of("no/x.onnx"), &diag),
                         TL_OK);
    /* a file that may not grow beyond 1 MB is like a full disk; teardown's rmdir sees what is left */
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    for (int external = 0; external < 2; external++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        tl_status status =
            tl_zoo_write("bert_tiny", NULL, 0, 1, external == 1, path_of("x.onnx"), &diag);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, TL_IO);
        assert_int_not_equal(access(path_of("x.onnx"), F_OK), 0);
        assert_int_not_equal(access(path_of("x.weights"), F_OK), 0);
    }
}

/* Every model has the layers and the parameters that the published one has, where there is one. Built, not written:
 * weights are drawn by the write. */
static void models_have_their_parts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *op;
        int count;
        int64_t parameters, statistics; /* running means and variances are no parameters */
    } cases[] = {
        { "resnet18", "Conv", 20, 11689512, 2 * 4800 },
        { "resnet34", "Conv", 36, 21797672, 2 * 8512 },
        { "resnet50", "Conv", 53, 25557032, 2 * 26560 },
        { "resnet101", "Conv", 104, 44549160, 2 * 52672 },
        { "vgg11", "Conv", 8, 132863336, 0 },
        { "vgg16", "Conv", 13, 138357544, 0 },
        { "mobilenet_v2", "Clip", 35, 3504872, 2 * 17056 },
        { "efficientnet_b0", "Sigmoid", 65, 5288548, 2 * 21008 },
        { "squeezenet1_1", "Concat", 8, 1235496, 0 },
        { "densenet121", "Concat", 58, 7978856, 2 * 41824 },
        { "unet", "DepthToSpace", 4, 7765985, 2 * 2192 },
        { "vit_tiny16", "LayerNormalization", 25, 5717416, 0 },
        { "vit_b16", "LayerNormalization", 25, 86567656, 0 },
        { "bert_tiny", "Softmax", 2, 4385920, 0 },
        { "bert_mini", "Softmax", 4, 11170560, 0 },
        { "bert_small", "Softmax", 4, 28763648, 0 },
        { "bert_base", "Softmax", 12, 109482240, 0 },
        { "gpt2_tiny", "Where", 2, 6960768, 0 },
        { "gpt2", "Where", 12, 124439808, 0 },
        { "lstm2", "Tanh", 2 * 2 * 16, 919552, 0 },
    };
    enum { COUNT = sizeof cases / sizeof cases[0] };
    assert_int_equal(tl_zoo_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const tl_zoo_model *model = tl_zoo_find(cases[i].name);
        tl_onnx_build *b = tl_onnx_build_create(cases[i].name, 17, 1);
        assert_non_null(b);
        assert_non_null(model);
        tl_zoo_size size = tl_zoo_default_size(model);
        model->build(b, cases[i].name, &size);
        assert_false(tl_onnx_build_failed(b));
        if (tl_build_count_nodes(b, cases[i].op) != cases[i].count ||
            tl_build_count_weights(b) != cases[i].parameters + cases[i].statistics)
            fail_msg("%s: %d %s nodes, not %d; %lld weights, not %lld", cases[i].name,
                     tl_build_count_nodes(b, cases[i].op), cases[i].op, cases[i].count,
                     (long long)tl_build_count_weights(b),
                     (long long)(cases[i].parameters + cases[i].statistics));
        tl_onnx_build_destroy(b);
    }
}

static tl_shape_override shape_of(const char *name, int rank, const int64_t *extents)
{
    return (tl_shape_override){ .name = name, .shape = tl_shape_of(rank, extents) };
}

/* A model with other shapes is read, and every output has the shape that shape inference finds. */
static void shapes_change(void **state)
{
    (void)state;
    static const struct {
        const char *name, *input;
        int rank;
        int64_t extents[4];
        int output_rank;
        int64_t output[3];
    } cases[] = {
        { "mobilenet_v2", "input", 4, { 2, 3, 64, 97 }, 2, { 2, 1000 } },
        { "efficientnet_b0", "input", 4, { 2, 3, 33, 64 }, 2, { 2, 1000 } },
        { "squeezenet1_1", "input", 4, { 3, 3, 67, 64 }, 2, { 3, 1000 } },
        { "densenet121", "input", 4, { 2, 3, 32, 40 }, 2, { 2, 1000 } },
        { "vit_tiny16", "input", 4, { 2, 3, 32, 48 }, 2, { 2, 1000 } },
        { "bert_tiny", "attention_mask", 2, { 3, 7 }, 3, { 3, 7, 128 } },
        { "gpt2_tiny", "input_ids", 2, { 2, 9 }, 3, { 2, 9, 50257 } },
        { "lstm2", "input", 3, { 5, 2, 128 }, 3, { 5, 2, 256 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_onnx *model;
        tl_diag diag = { 0 };
        const char *path = path_of("shaped.onnx");
        tl_shape_override wanted = shape_of(cases[i].input, cases[i].rank, cases[i].extents);
        if (tl_zoo_write(cases[i].name, &wanted, 1, 1, false, path, &diag) != TL_OK)
            fail_msg("%s: %s", cases[i].name, diag.text);
        tl_graph *g = read_model(arena, path, &model);
        unlink(path);
        if (tl_infer_shapes(g, &diag) != TL_OK)
            fail_msg("%s: %s", cases[i].name, diag.text);
        tl_shape right = tl_shape_of(cases[i].output_rank, cases[i].output);
        for (int k = 0; k < g->input_count; k++)
            assert_true(tl_shape_equal(&g->inputs[k]->shape, &wanted.shape));
        if (!tl_shape_equal(&g->outputs[0]->shape, &right))
            fail_msg("%s: %s has another shape", cases[i].name, g->outputs[0]->name);
        tl_onnx_close(model);
        tl_arena_destroy(arena);
    }
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *input;
        int rank;
        int64_t extents[4];
        const char *sentence;
    } cases[] = {
        { "resnet18", "input", 3, { 1, 3, 224 }, "has 3 axes, not 4" },
        { "resnet18",
          "input",
          4,
          { 0, 3, 224, 224 },
          "extent 0 of axis 0 of input 'input' is not" },
        { "resnet18", "input", 4, { 1, 4, 224, 224 }, "axis 1 of input 'input' is 3" },
        { "resnet18", "input", 4, { 1, 3, 224, 31 }, "extent 31 of axis 3" },
        { "resnet18", "image", 4, { 1, 3, 224, 224 }, "no input 'image'; its first is 'input'" },
        { "unet",
          "input",
          4,
          { 1, 3, 40, 64 },
          "extent 40 of axis 2 of input 'input' is not a mul" },
        { "bert_tiny", "input_ids", 2, { 1, 513 }, "extent 513 of axis 1" },
        { "lstm2", "input", 3, { 1, 4, 64 }, "axis 2 of input 'input' is 128" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_diag diag = { 0 };
        tl_shape_override wanted = shape_of(cases[i].input, cases[i].rank, cases[i].extents);
        tl_status status =
            tl_zoo_write(cases[i].name, &wanted, 1, 1, false, path_of("x.onnx"), &diag);
        assert_int_equal(status, TL_BAD_ARGUMENT);
        if (strstr(diag.text, cases[i].sentence) == NULL)
            fail_msg("case %zu: %s", i, diag.text);
    }
    /* both inputs of BERT have one shape */
    static const int64_t seven[] = { 1, 7 }, eight[] = { 1, 8 };
    tl_diag diag = { 0 };
    const tl_shape_override both[] = { shape_of("input_ids", 2, seven),
                                       shape_of("attention_mask", 2, eight) };
    assert_int_equal(tl_zoo_write("bert_tiny", both, 2, 1, false, path_of("x.onnx"), &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "axis 1 of input 'input_ids' is 8"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_has_its_parts),
        cmocka_unit_test(bert_tiny_has_its_parts),
        cmocka_unit_test(external_weights_are_the_same),
        cmocka_unit_test(same_seed_same_file),
        cmocka_unit_test(failures_leave_no_file),
        cmocka_unit_test(models_have_their_parts),
        cmocka_unit_test(shapes_change),
        cmocka_unit_test(bad_shapes_are_refused),
    };
    return cmocka_run_group_tests_name("zoo", tests, make_folder, remove_folder);
}
