/* tests/driver/test_varying.c: one code for shapes that vary: whole models whose axes are open, called with many extents, give
 * what code for exactly these shapes gives, and are compiled a few times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/api/tilth.h"
#include "driver/inspect/inspect.h"
#include "frontend/onnx.pb-c.h"
#include "models/zoo.h"
#include "runtime/base/random.h"
#include "tests/frontend/onnx_text.h"
#include "tests/runtime/kernels.h"
#include "tests/support/resident.h"

enum { MOST_INPUTS = 4 };

static tilth_error error;
static char *folder;
static tl_random numbers;

/* ---- models with open axes ---- */

static tl_text packed(const Onnx__ModelProto *model)
{
    tl_text out = { 0 };
    size_t size = onnx__model_proto__get_packed_size(model);
    uint8_t *bytes = malloc(size);
    onnx__model_proto__pack(model, bytes);
    tl_text_add_bytes(&out, bytes, size);
    free(bytes);
    return out;
}

/* The model with axes of its inputs open: names[i] are the axes of input i, a blank between, "-" for one that stays. */
static tl_text opened(const tl_text *file, const char *const *names)
{
    Onnx__ModelProto *model =
        onnx__model_proto__unpack(NULL, file->size, (const uint8_t *)file->data);
    assert_non_null(model);
    for (size_t i = 0; i < model->graph->n_input; i++) {
        Onnx__TensorShapeProto *shape = model->graph->input[i]->type->tensor_type->shape;
        const char *at = names[i];
        for (size_t a = 0; a < shape->n_dim; a++, at += strcspn(at, " "), at += *at == ' ') {
            if (*at == '-')
                continue;
            shape->dim[a]->has_dim_value = 0;
            shape->dim[a]->dim_param = strndup(at, strcspn(at, " "));
        }
    }
    for (size_t i = 0; i < model->graph->n_output; i++) {
        onnx__tensor_shape_proto__free_unpacked(model->graph->output[i]->type->tensor_type->shape,
                                                NULL);
        model->graph->output[i]->type->tensor_type->shape = NULL;
    }
    tl_text out = packed(model);
    onnx__model_proto__free_unpacked(model, NULL);
    return out;
}

static tl_text written(tl_onnx_build *b, const char *const *names)
{
    char *path = path_in(folder, "model.onnx");
    tl_text file = { 0 };
    tl_diag diag = { "" };
    if (tl_onnx_build_write(b, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_onnx_build_destroy(b);
    assert_int_equal(tl_file_read(path, &file, NULL), TL_OK);
    free(path);
    tl_text out = opened(&file, names);
    tl_text_free(&file);
    return out;
}

static const char *heads(tl_onnx_build *b, const char *name, const char *x, const char *weight)
{
    char word[4][40];
    for (int i = 0; i < 4; i++)
        snprintf(word[i], sizeof word[i], "%s_%d", name, i);
    const char *y = tl_build_node(b, "MatMul", word[0], TL_NAMES(x, weight));
    y = tl_build_node(b, "Reshape", word[1],
                      TL_NAMES(y, tl_build_constant_ints(b, word[2], TL_DIMS(0, -1, 4, 8))));
    y = tl_build_node(b, "Transpose", word[3], TL_NAMES(y));
    tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    return y;
}

/* One layer of a decoder, which is called with a token and the keys and values of those before it; `masked`: with a mask over
 * all of them, too. Outputs: x, keys, values. */
static tl_text decoder(bool masked)
{
    tl_onnx_build *b = tl_onnx_build_create("decoder", 17, 5);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(1, 1, 32));
    const char *past_k = tl_build_input(b, "past_k", TL_F32, TL_DIMS(1, 4, 6, 8));
    const char *past_v = tl_build_input(b, "past_v", TL_F32, TL_DIMS(1, 4, 6, 8));
    const char *mask = masked ? tl_build_input(b, "mask", TL_F32, TL_DIMS(1, 7)) : NULL;
    const char *w[4];
    for (int i = 0; i < 4; i++) {
        char name[4] = { 'w', (char)('0' + i), '\0' };
        w[i] = tl_build_normal(b, name, 0, 0.2, TL_DIMS(32, 32));
    }
    const char *q = heads(b, "q", x, w[0]), *k = heads(b, "k", x, w[1]),
               *v = heads(b, "v", x, w[2]);
    k = tl_build_node(b, "Concat", "keys", TL_NAMES(past_k, k));
    tl_build_int(b, "axis", 2);
    v = tl_build_node(b, "Concat", "values", TL_NAMES(past_v, v));
    tl_build_int(b, "axis", 2);
    const char *kt = tl_build_node(b, "Transpose", "kt", TL_NAMES(k));
    tl_build_ints(b, "perm", TL_DIMS(0, 1, 3, 2));
    const char *s = tl_build_node(b, "MatMul", "scores", TL_NAMES(q, kt));
    s = tl_build_node(b, "Mul", "scaled", TL_NAMES(s, tl_build_constant_float(b, "scale", 0.35)));
    if (masked) {
        const char *axes = tl_build_constant_ints(b, "mask_axes", TL_DIMS(1, 2));
        s = tl_build_node(b, "Add", "hidden",
                          TL_NAMES(s,
                                   tl_build_node(b, "Unsqueeze", "mask_4", TL_NAMES(mask, axes))));
    }
    s = tl_build_node(b, "Softmax", "p", TL_NAMES(s));
    tl_build_int(b, "axis", -1);
    s = tl_build_node(b, "MatMul", "mixed", TL_NAMES(s, v));
    s = tl_build_node(b, "Transpose", "merged", TL_NAMES(s));
    tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    s = tl_build_node(b, "Reshape", "flat",
                      TL_NAMES(s, tl_build_constant_ints(b, "flat_shape", TL_DIMS(0, 0, 32))));
    s = tl_build_node(b, "MatMul", "out", TL_NAMES(s, w[3]));
    s = tl_build_node(b, "Add", "y", TL_NAMES(s, x));
    tl_build_output(b, s, TL_F32, TL_DIMS(1, 1, 32));
    tl_build_output(b, k, TL_F32, TL_DIMS(1, 4, 7, 8));
    tl_build_output(b, v, TL_F32, TL_DIMS(1, 4, 7, 8));
    const char *const names[] = { "batch - -", "batch - past -", "batch - past -", "batch total" };
    return written(b, names);
}

static tl_text zoo(const char *name, const char *const *names)
{
    char *path = path_in(folder, "zoo.onnx");
    tl_text file = { 0 };
    assert_int_equal(tl_zoo_write(name, NULL, 0, 3, false, path, NULL), TL_OK);
    assert_int_equal(tl_file_read(path, &file, NULL), TL_OK);
    free(path);
    tl_text out = opened(&file, names);
    tl_text_free(&file);
    return out;
}

/* ---- calls ---- */

typedef struct {
    tl_text file;
    tilth_family *family;
    tilth_caller *caller;
} fixture;

static const tilth_load_options options = {
    .struct_size = sizeof options, .threads = 2, .no_cache = 1, .no_database = 1
};

static fixture load(tl_text file)
{
    fixture f = { .file = file };
    if (tilth_family_load_memory(file.data, file.size, NULL, &options, &f.family, &error) !=
            TILTH_OK ||
        tilth_caller_create(f.family, 0, &f.caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    return f;
}

static void unload(fixture *f)
{
    tilth_caller_destroy(f->caller);
    tilth_family_destroy(f->family);
    tl_text_free(&f->file);
}

/* A call: `extents` are those of the open axes, in the order of the inputs' axes. */
typedef struct {
    int count;
    tilth_input_shape shapes[MOST_INPUTS];
    void *data[MOST_INPUTS];
    size_t sizes[MOST_INPUTS];
} call;

static call make_call(const fixture *f, const int64_t *extents)
{
    call c = { .count = tilth_family_input_count(f->family) };
    for (int i = 0; i < c.count; i++) {
        tilth_tensor_info info;
        size_t elements = 1;
        assert_int_equal(tilth_family_input(f->family, i, &info, &error), TILTH_OK);
        c.shapes[i] = (tilth_input_shape){ .name = info.name, .rank = info.rank };
        for (int a = 0; a < info.rank; a++) {
            c.shapes[i].shape[a] = info.shape[a] >= 0 ? info.shape[a] : *extents++;
            elements *= (size_t)c.shapes[i].shape[a];
        }
        c.sizes[i] = elements * tilth_dtype_size(info.dtype);
        c.data[i] = tilth_buffer_create(c.sizes[i]);
        bool is_mask = strstr(info.name, "mask") != NULL;
        for (size_t k = 0; k < elements; k++)
            if (info.dtype == TILTH_I64)
                ((int64_t *)c.data[i])[k] = is_mask ? k % 3 != 2 : tl_random_below(&numbers, 100);
            else
                ((float *)c.data[i])[k] = (float)tl_random_normal(&numbers);
        assert_int_equal(tilth_caller_set_input(f->caller, i, info.rank, c.shapes[i].shape,
                                                c.data[i], c.sizes[i], &error),
                         TILTH_OK);
    }
    return c;
}

static void free_call(call *c)
{
    for (int i = 0; i < c->count; i++)
        tilth_buffer_destroy(c->data[i]);
}

static void run(const fixture *f)
{
    if (tilth_caller_run(f->caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
}

/* The outputs of the latest run are what code for exactly these shapes gives. */
static void check_outputs(const fixture *f, const call *c)
{
    tilth_load_options exact = options;
    tilth_model *model;
    tilth_runner *runner;
    exact.shapes = c->shapes;
    exact.shape_count = c->count;
    if (tilth_model_load_memory(f->file.data, f->file.size, NULL, &exact, &model, &error) !=
        TILTH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(tilth_runner_create(model, 0, &runner, &error), TILTH_OK);
    for (int i = 0; i < c->count; i++)
        assert_int_equal(tilth_runner_write_input(runner, i, c->data[i], c->sizes[i], &error),
                         TILTH_OK);
    assert_int_equal(tilth_runner_run(runner, &error), TILTH_OK);
    for (int i = 0; i < tilth_caller_output_count(f->caller); i++) {
        tilth_tensor_info info, want_info;
        const void *data;
        assert_int_equal(tilth_caller_output(f->caller, i, &info, &data, &error), TILTH_OK);
        assert_int_equal(tilth_model_output(model, i, &want_info, &error), TILTH_OK);
        assert_int_equal(info.rank, want_info.rank);
        assert_memory_equal(info.shape, want_info.shape, sizeof *info.shape * (size_t)info.rank);
        float *want = malloc(info.size + 1);
        const float *is = data;
        assert_int_equal(tilth_runner_read_output(runner, i, want, info.size, &error), TILTH_OK);
        for (size_t k = 0; k < info.size / sizeof *want; k++)
            if (!(fabsf(is[k] - want[k]) <= 2e-5f * (1 + fabsf(want[k]))))
                fail_msg("output %d, element %zu: %g, not %g", i, k, (double)is[k],
                         (double)want[k]);
        free(want);
    }
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
}

static void check(const fixture *f, const int64_t *extents)
{
    call c = make_call(f, extents);
    run(f);
    check_outputs(f, &c);
    free_call(&c);
}

/* How often the model was compiled; where that is too often, why. */
static int64_t compiled(const fixture *f)
{
    tilth_axis_info axis;
    for (int i = 0; i < tilth_family_axis_count(f->family); i++)
        if (tilth_family_axis(f->family, i, &axis, &error) == TILTH_OK && axis.specialised != NULL)
            print_message("%s: %s\n", axis.name, axis.specialised);
    return tilth_family_compiled(f->family);
}

/* ---- tests ---- */

static void an_encoder_of_any_batch_and_length(void **state)
{
    (void)state;
    const char *const names[] = { "batch tokens", "batch tokens" };
    const int64_t calls[][2] = { { 1, 17 }, { 1, 33 }, { 1, 34 }, { 2, 33 }, { 3, 40 },
                                 { 1, 5 },  { 5, 64 }, { 2, 2 },  { 1, 300 } };
    fixture f = load(zoo("bert_tiny", names));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int64_t extents[] = { calls[i][0], calls[i][1], calls[i][0], calls[i][1] };
        check(&f, extents);
    }
    assert_int_equal(compiled(&f), 3); /* the first; for any length; for any batch and length */
    unload(&f);
}

/* The cache of keys and values grows by one each call. */
static void grow(bool masked)
{
    fixture f = load(decoder(masked));
    for (int64_t past = 0; past < 200; past++) {
        const int64_t extents[] = { 2, 2, past, 2, past, 2, past + 1 };
        call c = make_call(&f, extents);
        run(&f);
        if (past % 50 == 3 || past < 3 || past == 199)
            check_outputs(&f, &c);
        free_call(&c);
    }
    assert_in_range(compiled(&f), 2, 4);
    int64_t before = compiled(&f);
    const int64_t other[] = { 3, 3, 77, 3, 77, 3, 78 };
    check(&f, other);
    const int64_t another[] = { 4, 4, 99, 4, 99, 4, 100 };
    check(&f, another);
    assert_in_range(compiled(&f) - before, 0, 2);
    unload(&f);
}

static void a_decoder_is_compiled_a_few_times(void **state)
{
    (void)state;
    grow(false);
}

static void axes_that_grow_together(void **state)
{
    (void)state;
    grow(true);
}

static void convolutions_of_any_batch(void **state)
{
    (void)state;
    tl_onnx_build *b = tl_onnx_build_create("conv", 17, 5);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(1, 3, 12, 12));
    const char *y =
        tl_build_node(b, "Conv", "conv",
                      TL_NAMES(x, tl_build_normal(b, "w", 0, 0.2, TL_DIMS(32, 3, 3, 3))));
    tl_build_ints(b, "pads", TL_DIMS(1, 1, 1, 1));
    y = tl_build_node(b, "Relu", "relu", TL_NAMES(y));
    y = tl_build_node(b, "Conv", "conv_2",
                      TL_NAMES(y, tl_build_normal(b, "w_2", 0, 0.1, TL_DIMS(32, 32, 3, 3))));
    y = tl_build_node(b, "MaxPool", "pool", TL_NAMES(y));
    tl_build_ints(b, "kernel_shape", TL_DIMS(2, 2));
    tl_build_ints(b, "strides", TL_DIMS(2, 2));
    y = tl_build_node(b, "GlobalAveragePool", "mean", TL_NAMES(y));
    y = tl_build_node(b, "Flatten", "flat", TL_NAMES(y));
    y = tl_build_node(b, "MatMul", "dense",
                      TL_NAMES(y, tl_build_normal(b, "w_3", 0, 0.1, TL_DIMS(32, 10))));
    tl_build_output(b, y, TL_F32, TL_DIMS(1, 10));
    const char *const names[] = { "n - h w" };
    fixture f = load(written(b, names));
    for (int64_t n = 1; n <= 5; n++) {
        const int64_t extents[] = { n, 12, 12 };
        check(&f, extents);
    }
    assert_int_equal(compiled(&f), 2);
    for (int64_t h = 8; h < 12; h++) { /* pooled by two: an axis that is specialised */
        const int64_t extents[] = { 2, h, 12 };
        check(&f, extents);
    }
    unload(&f);
}

/* A Slice that ends at 8 is all of what is shorter: two different models, of which the code for one is not used for the
 * other. */
static void what_is_another_model_is_noticed(void **state)
{
    (void)state;
    fixture f = load(text_model(
        "opset 13; input x f32 n,3; init from i64 1 = 0; init to i64 1 = 8; init two f32 = 2;"
        "node Slice x,from,to -> c; node Mul c,two -> z; output z"));
    static const int64_t lengths[] = { 20, 31, 5, 9, 8, 7, 100, 6, 3 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        check(&f, &lengths[i]);
    unload(&f);
}

/* Positions, a mask and numbers that are made of extents, sums over an axis that varies. */
static void what_is_made_of_extents(void **state)
{
    (void)state;
    fixture f = load(text_model(
        "opset 17; input x f32 b,n,4; init zero i64 = 0; init one i64 = 1; init axes i64 1 = 1;"
        ""
        "node Shape x -> s; node Gather s,one -> n axis=0; node Range zero,n,one -> r;"
        "node Cast r -> rf to=1; node Unsqueeze rf,axes -> col; node Add x,col -> y;"
        "node ReduceMean y -> m axes=[1] keepdims=1; node Sub y,m -> c;"
        "node Cast n -> nf to=1; node Div c,nf -> z; node Softmax z -> p axis=1;"
        "node ReduceSum p,axes -> t keepdims=1; node Add p,t -> o; output o"));
    static const int64_t calls[][2] = { { 1, 7 }, { 1, 19 }, { 3, 20 }, { 4, 300 }, { 2, 1100 } };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        check(&f, calls[i]);
    assert_in_range(compiled(&f), 2, 4);
    unload(&f);
}

static void check_lengths(const char *text, const int64_t *lengths, int count)
{
    fixture f = load(text_model(text));
    for (int i = 0; i < count; i++)
        check(&f, &lengths[i]);
    unload(&f);
}

/* Files that know at which extents they are read: what they compute is the same there, and something else elsewhere. */
static void files_that_would_fool(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 20, 31, 777, 50, 776 };
    const char *length = "opset 17; input x f32 n,100; init zero i64 = 0; init one f32 = 1;"
                         "init at f32 = 777; init wide i64 1 = 100; node Shape x -> s;"
                         "node Gather s,zero -> n axis=0; node Cast n -> f to=1;";
    /* a bump at 777, of constants that only the passes would fold */
    char text[2048];
    snprintf(text, sizeof text, "%s%s", length,
             "node Expand f,wide -> e; node Sub e,at -> d; node Abs d -> a; node Sub one,a -> b;"
             "node Relu b -> r; node Add x,r -> y; output y");
    check_lengths(text, lengths, 5);
    /* the same as a number */
    snprintf(text, sizeof text, "%s%s", length,
             "node Sub f,at -> d; node Abs d -> a; node Sub one,a -> b; node Relu b -> r;"
             "node Add x,r -> y; output y");
    check_lengths(text, lengths, 5);
    /* n + (n-2)(n-1366)(n-1172)(n-4093) */
    snprintf(text, sizeof text, "%s%s", length,
             "init p i64 = 2; init q i64 = 1366; init r i64 = 1172; init t i64 = 4093;"
             "node Sub n,p -> np; node Sub n,q -> nq; node Sub n,r -> nr; node Sub n,t -> nt;"
             "node Mul np,nq -> m1; node Mul m1,nr -> m2; node Mul m2,nt -> m3; node Add n,m3 -> g;"
             "node Cast g -> gf to=1; node Add x,gf -> y; output y");
    check_lengths(text, lengths, 5);
    /* which of two large constants it is */
    snprintf(text, sizeof text, "%s%s", length,
             "init k i64 = 777; init none f32 = 0; node Equal n,k -> is;"
             "node Expand at,wide -> other; node Expand none,wide -> big; node Where is,other,big "
             "-> w; node Add x,w -> y;"
             "output y");
    check_lengths(text, lengths, 5);
}

/* Numbers that are made of extents and read as they are. */
static void numbers_of_extents(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 5, 9, 40, 2, 33 };
    const char *length = "opset 17; input x f32 n,3; init zero i64 = 0; init one i64 = 1;"
                         "init two f32 = 2; node Shape x -> s; node Gather s,zero -> n axis=0;";
    char text[2048];
    snprintf(text, sizeof text, "%s%s", length,
             "node Cast n -> f to=1; node Mul x,two -> y; output y; output f");
    check_lengths(text, lengths, 5);
    snprintf(text, sizeof text, "%s%s", length,
             "node Sub n,one -> last; node Gather x,last -> y axis=0; output y");
    check_lengths(text, lengths, 5);
    snprintf(text, sizeof text, "%s%s", length,
             "node Cast s -> sf to=1; node Mul x,two -> y; output y; output sf");
    check_lengths(text, lengths, 5);
}

/* Branches and loops that data decide, over extents that vary: one code for all of them. */
static void bodies_of_any_extent(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 5, 9, 40, 2, 33, 1, 64 };
    const char *models[] = {
        "opset 17; input x f32 n,3; init two f32 = 2; init nil f32 = 0;"
        "node ReduceSum x -> s keepdims=0; node Greater s,nil -> c;"
        "node If c -> y then_branch={node Mul x,two -> a; node Relu a -> p; output p}"
        " else_branch={node Sub x,two -> q; output q}; node Add y,x -> z; output z",
        "opset 17; input x f32 n,3; init half f32 = 0.5; node ReduceSum x -> s keepdims=0;"
        "node Abs s -> a; node Cast a -> k to=7;"
        "node Loop k,-,x -> y body={input i i64; input d bool; input u f32 n,3;"
        " node Mul u,half -> t; output d; output t}; node Add y,x -> z; output z",
    };
    for (int i = 0; i < 2; i++) {
        fixture f = load(text_model(models[i]));
        for (int k = 0; k < 7; k++)
            check(&f, &lengths[k]);
        assert_in_range(compiled(&f), 2, 3); /* the first, any, and one row */
        unload(&f);
    }
}

/* The same bytes, and extents, as a family that is called for the first time gives: code for exactly these shapes. */
static void check_alone(const fixture *f, const int64_t *extents)
{
    fixture alone = { .file = { 0 } };
    call c = make_call(f, extents);
    run(f);
    if (tilth_family_load_memory(f->file.data, f->file.size, NULL, &options, &alone.family,
                                 &error) != TILTH_OK ||
        tilth_caller_create(alone.family, 0, &alone.caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < c.count; i++)
        assert_int_equal(tilth_caller_set_input(alone.caller, i, c.shapes[i].rank,
                                                c.shapes[i].shape, c.data[i], c.sizes[i], &error),
                         TILTH_OK);
    run(&alone);
    for (int i = 0; i < tilth_caller_output_count(f->caller); i++) {
        tilth_tensor_info info, want;
        const void *data, *want_data;
        assert_int_equal(tilth_caller_output(f->caller, i, &info, &data, &error), TILTH_OK);
        assert_int_equal(tilth_caller_output(alone.caller, i, &want, &want_data, &error), TILTH_OK);
        assert_int_equal(info.rank, want.rank);
        assert_memory_equal(info.shape, want.shape, sizeof *info.shape * (size_t)info.rank);
        assert_int_equal(info.size, want.size);
        assert_memory_equal(data, want_data, info.size);
    }
    unload(&alone);
    free_call(&c);
}

/* Each model at several extents, and then at one more that was not there before, without another compile. */
static void check_counts(const char *const *models, int count)
{
    static const int64_t lengths[][2] = {
        { 14, 14 }, { 19, 19 }, { 40, 40 }, { 13, 13 }, { 33, 33 }, { 64, 64 }, { 101, 101 },
    };
    for (int i = 0; i < count; i++) {
        fixture f = load(text_model(models[i]));
        for (int k = 0; k < 7; k++)
            check_alone(&f, lengths[k]);
        if (compiled(&f) != 2) /* the first, and any */
            fail_msg("%s: compiled %d times", models[i], (int)tilth_family_compiled(f.family));
        unload(&f);
    }
}

/* Results that data count, of inputs whose extents vary: neither a count nor an extent costs a compile. */
static void counts_of_any_extent(void **state)
{
    (void)state;
    const char *const models[] = {
        "opset 17; input x f32 n,3; init nil f32 = 0; node Greater x,nil -> c; node NonZero c -> y;"
        "node Transpose y -> t; node GatherND x,t -> g; output y; output g",
        "opset 18; input x f32 n,3; init one i64 1 = 1; init nil f32 = 0;"
        "node ReduceMax x,one -> s keepdims=0; node Greater s,nil -> c; node Compress x,c -> y "
        "axis=0; node Concat y,x -> z axis=0; node Shape y -> h; output z; output h",
        "opset 17; input x i64 n; node Unique x -> y,i,v,c; output y; output i; output v; output c",
        "opset 17; input b f32 1,n,4; input s f32 1,2,n; init k i64 = 5; init t f32 = 0.5;"
        "node NonMaxSuppression b,s,k,t -> y; output y",
        "opset 17; input x f32 n,3; init nil f32 = 0; node ReduceMax x -> s keepdims=0;"
        "init three f32 = 2.5; node Greater s,three -> c; node If c -> y then_branch={"
        "node Concat x,x -> a axis=0; output a} else_branch={node Neg x -> q; output q}; output y",
    };
    check_counts(models, 5);
}

/* Loops that take as many turns as an extent says, or grow from what is as long as one. */
static void turns_of_any_extent(void **state)
{
    (void)state;
    const char *const models[] = {
        "opset 17; input x f32 n,3; init z f32 3 = 0,0,0; node Scan z,x -> l,w num_scan_inputs=1 "
        "body={input s f32 3; input e f32 3; node Add s,e -> t; node Identity t -> o; output t;"
        " output o}; output l; output w",
        "opset 17; input x f32 n,3; init z f32 3 = 0,0,0; node Scan z,x -> l,w num_scan_inputs=1 "
        "scan_input_directions=[1] scan_output_directions=[1] body={input s f32 3; input e f32 3;"
        " node Add s,e -> t; node Identity t -> o; output t; output o}; output l; output w",
        "opset 17; input x f32 n,3; init zero i64 = 0; node Shape x -> h; node Gather h,zero -> k "
        "axis=0; init z f32 3 = 0,0,0; node Loop k,-,z -> l,w body={input i i64; input d bool;"
        " input s f32 3; node Gather x,i -> e axis=0; node Add s,e -> t; node Identity t -> o;"
        " node Identity d -> g; output g; output t; output o}; output l; output w",
        "opset 17; input x f32 n,3; init zero i64 = 0; node Shape x -> h; node Gather h,zero -> k "
        "axis=0; node Loop k,-,x -> l body={input i i64; input d bool; input s f32 n,3;"
        " init row f32 1,3 = 1,2,3; node Concat s,row -> t axis=0; node Identity d -> g; output g;"
        " output t}; output l",
        "opset 17; input x f32 n,3; input k i64; node Loop k,-,x -> l body={input i i64;"
        " input d bool; input s f32 n,3; init row f32 1,3 = 1,2,3; node Concat s,row -> t axis=0;"
        " node Identity d -> g; output g; output t}; output l",
    };
    check_counts(models, 5);
}

/* Fifty counts of one shape, and a state that grows by fifty numbers of turns: compiled once. */
static void new_counts_cost_no_compile(void **state)
{
    (void)state;
    fixture f = load(text_model("opset 17; input x f32 60; node NonZero x -> y; output y"));
    float x[60] = { 0 };
    tilth_tensor_info info;
    const void *data;
    const int64_t shape[] = { 60 };
    for (int count = 0; count < 50; count++) {
        assert_int_equal(tilth_caller_set_input(f.caller, 0, 1, shape, x, sizeof x, &error),
                         TILTH_OK);
        run(&f);
        assert_int_equal(tilth_caller_output(f.caller, 0, &info, &data, &error), TILTH_OK);
        assert_int_equal(info.shape[1], count);
        for (int i = 0; i < count; i++)
            assert_int_equal(((const int64_t *)data)[i], 59 - count + 1 + i);
        x[59 - count] = 1;
    }
    assert_int_equal(compiled(&f), 1);
    unload(&f);
    f = load(text_model("opset 17; input k i64; init first i64 1 = 7; init one i64 = 1; node Loop "
                        "k,-,first -> y body={input i i64; input d bool; input s i64 1;"
                        " init axis i64 1 = 0; node Unsqueeze i,axis -> r; node Concat s,r -> t "
                        "axis=0; node Identity d -> g; output g; output t}; output y"));
    for (int64_t turns = 0; turns < 50; turns++) {
        assert_int_equal(tilth_caller_set_input(f.caller, 0, 0, NULL, &turns, 8, &error), TILTH_OK);
        run(&f);
        assert_int_equal(tilth_caller_output(f.caller, 0, &info, &data, &error), TILTH_OK);
        assert_int_equal(info.shape[0], 1 + turns);
        for (int64_t i = 0; i < turns; i++)
            assert_int_equal(((const int64_t *)data)[1 + i], i);
    }
    assert_int_equal(compiled(&f), 1);
    unload(&f);
}

/* A state that grows in each of 10,000 turns: called again and again it neither takes more memory nor is compiled. */
static void ten_thousand_turns_do_not_leak(void **state)
{
    (void)state;
    tilth_load_options many = options;
    fixture f = { .file = text_model(
                      "opset 17; input k i64; init first i64 1 = 7; node Loop k,-,first -> y body={"
                      "input i i64; input d bool; input s i64 1; init axis i64 1 = 0;"
                      " node Unsqueeze i,axis -> r; node Concat s,r -> t axis=0;"
                      " node Identity d -> g; output g; output t}; output y") };
    long before = 0;
    many.max_turns = 10000;
    if (tilth_family_load_memory(f.file.data, f.file.size, NULL, &many, &f.family, &error) !=
            TILTH_OK ||
        tilth_caller_create(f.family, 0, &f.caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < 4; i++) {
        const int64_t turns = 10000 - i;
        tilth_tensor_info info;
        const void *data;
        assert_int_equal(tilth_caller_set_input(f.caller, 0, 0, NULL, &turns, 8, &error), TILTH_OK);
        run(&f);
        assert_int_equal(tilth_caller_output(f.caller, 0, &info, &data, &error), TILTH_OK);
        assert_int_equal(info.shape[0], 1 + turns);
        for (int64_t k = 0; k < turns; k++)
            assert_int_equal(((const int64_t *)data)[1 + k], k);
        before = i == 0 ? resident_kb() : before;
    }
    assert_int_equal(compiled(&f), 1);
    if (!is_sanitized)
        assert_true(resident_kb() <= before + before / 100);
    unload(&f);
}

/* Calls of any shapes: once the largest was there, memory does not grow. TL_COUNT=10000 for as many. */
static void an_encoder_takes_no_more_memory(void **state)
{
    (void)state;
    const char *const names[] = { "batch tokens", "batch tokens" };
    const char *count = getenv("TL_COUNT");
    fixture f = load(zoo("bert_tiny", names));
    long before = 0;
    int calls = count != NULL ? atoi(count) : 400;
    for (int i = 0; i < calls; i++) {
        int64_t batch = i < 4 ? 1 + i : 1 + tl_random_below(&numbers, 4);
        int64_t tokens = i < 4 ? 96 + i : 2 + tl_random_below(&numbers, 98);
        const int64_t extents[] = { batch, tokens, batch, tokens };
        call c = make_call(&f, extents);
        run(&f);
        free_call(&c);
        if (i == calls / 10)
            before = resident_kb();
    }
    print_message("%d calls, compiled %lld times, %ld KB resident, %ld KB after a tenth of them\n",
                  calls, (long long)compiled(&f), resident_kb(), before);
    if (!is_sanitized)
        assert_true(resident_kb() <= before + before / 100);
    unload(&f);
}

static void inspect_tells_of_axes(void **state)
{
    (void)state;
    tl_text file = text_model("opset 13; input x f32 n,w; input y f32 n,4; init two f32 = 2;"
                              "init from i64 1 = 0; init to i64 1 = 10000; init axis i64 1 = 1;"
                              "init step i64 1 = 2; node Slice x,from,to,axis,step -> c;"
                              "node Concat c,y -> d axis=1; node Mul d,two -> z; output z");
    char *path = path_in(folder, "axes.onnx");
    const tl_model_options none = { .no_cache = true };
    tl_session session = { .arena = tl_arena_create(0) };
    tl_text lines = { 0 }, json = { 0 };
    tl_diag diag = { "" };
    assert_int_equal(tl_file_write(path, file.data, file.size, NULL), TL_OK);
    if (tl_inspect_axes(&session, path, &none, false, &lines, &diag) != TL_OK ||
        tl_inspect_axes(&session, path, &none, true, &json, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    static const char *const says[] = { "input       x f32[n, w]\ninput       y f32[n, 4]\n",
                                        "n                x.0, y.0\n    one code for all extents\n",
                                        "w                x.1\n    specialised: ", "Slice(x)",
                                        "output z f32[n, " };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(tl_text_get(&lines), says[i]) == NULL)
            fail_msg("'%s' is not in\n%s", says[i], tl_text_get(&lines));
    assert_non_null(
        strstr(tl_text_get(&json), "\"name\":\"n\",\"places\":\"x.0, y.0\",\"dim\":true"));
    tl_text_free(&lines);
    tl_text_free(&json);
    tl_text_free(&file);
    tl_arena_destroy(session.arena);
    free(path);
}

static int start(void **state)
{
    (void)state;
    folder = temp_folder_make();
    numbers = tl_random_make(11);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_of_any_batch_and_length),
        cmocka_unit_test(a_decoder_is_compiled_a_few_times),
        cmocka_unit_test(axes_that_grow_together),
        cmocka_unit_test(convolutions_of_any_batch),
        cmocka_unit_test(what_is_another_model_is_noticed),
        cmocka_unit_test(what_is_made_of_extents),
        cmocka_unit_test(files_that_would_fool),
        cmocka_unit_test(numbers_of_extents),
        cmocka_unit_test(an_encoder_takes_no_more_memory),
        cmocka_unit_test(bodies_of_any_extent),
        cmocka_unit_test(counts_of_any_extent),
        cmocka_unit_test(turns_of_any_extent),
        cmocka_unit_test(new_counts_cost_no_compile),
        cmocka_unit_test(ten_thousand_turns_do_not_leak),
        cmocka_unit_test(inspect_tells_of_axes),
    };
    cmocka_set_test_filter(getenv("TL_ONLY"));
    return cmocka_run_group_tests_name("shapes that vary", tests, start, finish);
}
