/* tests/frontend/test_onnx_hostile.c: files that are broken by accident or on purpose get a sentence and a status, never a
 * crash, a leak, or a file outside their folder. Run it with VARIANT=asan too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "frontend/frontend.h"
#include "frontend/onnx/onnx_scan.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/frontend/onnx_text.h"

/* A recurrent node follows, on one feature. */
#define CELL "opset 14; input x f32 5,2,1; init w f32 1,1,1 = 1; init r f32 1,1,1 = 2; node "

static char folder[] = "/tmp/tilth_hostile_XXXXXX";

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

/* Reads bytes; a graph that comes out is a good one. */
static tl_status read_bytes(const void *bytes, size_t size, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    memset(diag, 0, sizeof *diag);
    tl_status status = tl_onnx_read_memory(arena, bytes, size, folder, NULL, 0, &model, &g, diag);
    if (status == TL_OK) {
        tl_diag verify = { 0 };
        if (tl_graph_verify(g, &verify) != TL_OK)
            fail_msg("%s", verify.text);
    } else {
        assert_true(diag->text[0] != '\0');
        assert_null(model);
        assert_null(g);
    }
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    return status;
}

static void expect_text(tl_text *bytes, tl_status status, const char *sentence, const char *what)
{
    tl_diag diag;
    tl_status got = read_bytes(tl_text_get(bytes), bytes->size, &diag);
    tl_text_free(bytes);
    if (got != status || strstr(diag.text, sentence) == NULL)
        fail_msg("%s\n gives %d: %s\n not %d: %s", what, got, diag.text, status, sentence);
}

/* ---- models that are wrong in what they say ---- */

static void wrong_models_are_refused(void **state)
{
    static const struct {
        const char *model;
        tl_status status;
        const char *sentence;
    } cases[] = {
        { "opset 17; input x f32 2; node Relu x -> y", TL_BAD_MODEL, "has no output" },
        { "input x f32 2; node Relu x -> y; output y", TL_BAD_MODEL, "imports no opset" },
        { "opset 0; input x f32 2; node Relu x -> y; output y", TL_BAD_MODEL,
          "opset version 0 does not exist" },
        { "opset 29; input x f32 2; node Relu x -> y; output y", TL_UNSUPPORTED,
          "opset version 29 is newer than 28" },
        { "opset 17; opset 18; input x f32 2; node Relu x -> y; output y", TL_BAD_MODEL,
          "imported twice" },
        { "opset ai.onnx.17; input x f32 2; node Relu x -> y; output y", TL_OK, "" },
        { "opset com.x.1; input x f32 2; node Relu x -> y; output y", TL_BAD_MODEL,
          "no opset is imported for the domain ''" },
        { "opset 17; input x f32 2; node com.Foo x -> y; output y", TL_BAD_MODEL,
          "no opset is imported for the domain 'com'" },
        { "opset 17; input x f32 2; node Relu z -> y; output y", TL_BAD_MODEL,
          "reads 'z', which is defined nowhere" },
        { "opset 17; input x f32 2; node Relu x -> y; output z", TL_BAD_MODEL,
          "graph output 'z' is never computed" },
        { "opset 17; node Relu y -> y; output y", TL_BAD_MODEL, "depends on its own result" },
        { "opset 17; node Relu y -> z; node Exp z -> y; output y", TL_BAD_MODEL,
          "depends on its own result" },
        { "opset 17; input x f32 2; node Relu x -> y; node Exp x -> y; output y", TL_BAD_MODEL,
          "'y' is defined twice" },
        { "opset 17; input x f32 2; node Relu x -> x; output x", TL_BAD_MODEL,
          "'x' is defined twice" },
        { "opset 17; input x f32 2; input x f32 2; node Relu x -> y; output y", TL_BAD_MODEL,
          "'x' is defined twice" },
        { "opset 17; init x f32 1 = 1; init x f32 1 = 1; node Relu x -> y; output y", TL_BAD_MODEL,
          "'x' is defined twice" },
        { "opset 17; input x f32 2; node Relu x,x -> y; output y", TL_BAD_MODEL, "has 2 inputs" },
        { "opset 17; input x f32 0,9223372036854775807; node Relu x -> y; output y", TL_BAD_MODEL,
          "input 'x': the product of its dimensions overflows" },
        { "opset 17; input x f32 n,4611686018427387904; node Relu x -> y; output y", TL_BAD_MODEL,
          "input 'x': the product of its dimensions overflows" },
        { CELL "RNN x,w,r -> y direction='sideways'; output y", TL_BAD_MODEL,
          "there is no direction 'sideways'" },
        { CELL "RNN x,w,r -> y direction='bidirectional'; output y", TL_BAD_MODEL,
          "W and R are not [2, 1*hidden_size, ..]" },
        { CELL "GRU x,w,r -> y; output y", TL_BAD_MODEL, "W and R are not [1, 3*hidden_size, ..]" },
        { CELL "RNN x,w,r -> y hidden_size=5; output y", TL_BAD_MODEL,
          "hidden_size is 5 and R has 1 columns" },
        { CELL "RNN x,w,r -> y layout=1 input_forget=1; output y", TL_BAD_MODEL,
          "there is no attribute 'input_forget'" },
        { "opset 12; input x f32 2; node Softmax x -> y; output y", TL_BAD_MODEL,
          "axis 1 (the default) is not among the 1 of its input" },
        { "opset 9; input x f32 2,3; node LogSoftmax x -> y axis=2; output y", TL_BAD_MODEL,
          "axis 2 is not among the 2 of its input" },
        { "opset 11; input x f32; node Softmax x -> y axis=0; output y", TL_BAD_MODEL,
          "axis 0 is not among the 0 of its input" },
        { "opset 12; input x f32 2; node Softmax x -> y axis=0; output y", TL_OK, "" },
        { "opset 11; input x f32 2,3; node LogSoftmax x -> y axis=-2; output y", TL_OK, "" },
        { "opset 17; input x f32 2; node Mod x,x -> y; output y", TL_BAD_MODEL,
          "of floating-point numbers it needs fmod = 1" },
        { "opset 17; input x u8 2; node BitShift x,x -> y; output y", TL_BAD_MODEL,
          "'direction' is LEFT or RIGHT, not ''" },
        { "opset 17; input x f32 2; node Relu -> y; output y", TL_BAD_MODEL, "has 0 inputs" },
        { "opset 17; input x f32 2; node Scan -,x -> z,y num_scan_inputs=1 body={input s f32; "
          "input e "
          "f32; node Relu e -> f; node Identity s -> t; output t; output f}; output y",
          TL_BAD_MODEL, "input 0 is required" },
        { "opset 17; input x f32 2; init n i64 = 3; node Loop n,-,-,x -> z,y body={input i i64; "
          "input c "
          "bool; input a f32 2; input b f32 2; node Identity c -> d; output d; output a; output "
          "b}; "
          "output y",
          TL_BAD_MODEL, "state 0 is missing" },
        { "opset 17; input x f32 2; init n i64 = 3; node Loop n,-,x -> y body={input i i64; input "
          "c "
          "bool; input a f32 2; node Identity c -> d; node Relu a -> b; output d; output b}; "
          "output y",
          TL_OK, "" },
        { "opset 17; input x f32 2; node Add x,- -> y; output y", TL_BAD_MODEL,
          "input 1 is required" },
        { "opset 17; input x f32 2; node Add -,x -> y; output y", TL_BAD_MODEL,
          "input 0 is required" },
        { "opset 17; input x f32 2; node Relu x -> y,z; output y", TL_BAD_MODEL, "has 2 outputs" },
        { "opset 17; input x f32 2; node Relu x -> y axis=1; output y", TL_BAD_MODEL,
          "no attribute 'axis' in opset 17" },
        { "opset 17; input x f32 2; node Softmax x -> y axis=1.0; output y", TL_BAD_MODEL,
          "'axis' has type 1" },
        { "opset 17; input x f32 2; node Softmax x -> y axis=0 axis=0; output y", TL_BAD_MODEL,
          "'axis' is given twice" },
        { "opset 17; input x f32 2; node Softmax x -> y axis=5; output y", TL_BAD_MODEL, "axis" },
        { "opset 17; input x f32 2; input z f32 3; node Add x,z -> y; output y", TL_BAD_MODEL,
          "broadcast" },
        { "opset 17; input x f32 4611686018427387904,8; node Relu x -> y; output y", TL_BAD_MODEL,
          "overflows" },
        { "opset 17; input x f32 -5; node Relu x -> y; output y", TL_BAD_MODEL, "is -5" },
        { "opset 17; input x f32 1,1,1,1,1,1,1,1,1; node Relu x -> y; output y", TL_UNSUPPORTED,
          "rank 9" },
        { "opset 17; init w f32 4611686018427387904,4611686018427387904; node Relu w -> y; output "
          "y",
          TL_BAD_MODEL, "overflows" },
        { "opset 17; init w f32 0,4611686018427387904,4611686018427387904; node Relu w -> y; "
          "output y",
          TL_BAD_MODEL, "overflows" }, /* empty, but with strides that no address reaches */
        { "opset 17; init w f32 -1; node Relu w -> y; output y", TL_BAD_MODEL, "below 0" },
        { "opset 17; init w f32 3 = 1,2; node Relu w -> y; output y", TL_BAD_MODEL,
          "has 8 bytes, its shape needs 12" },
        { "opset 17; init w f32 1 = 1,2; node Relu w -> y; output y", TL_BAD_MODEL,
          "its shape needs 4" },
        { "opset 17; init w f32 1000000000,1000 = 1; node Relu w -> y; output y", TL_BAD_MODEL,
          "its shape needs 4000000000000" },
        { "opset 17; node Constant -> y; output y", TL_BAD_MODEL, "has 0 attributes" },
        { "opset 17; node Constant -> y value_int=1 value_float=1.0; output y", TL_BAD_MODEL,
          "has 2 attributes" },
        { "opset 17; input x f32 1,2,5,5; input w f32 3,2,3,3; node Conv x,w -> y "
          "kernel_shape=[2,2];"
          "output y",
          TL_BAD_MODEL, "kernel_shape does not agree" },
        { "opset 17; input x f32 1,2,5,5; node MaxPool x -> y kernel_shape=[2,2] strides=[0,1];"
          "output y",
          TL_BAD_MODEL, "stride" },
        { "opset 17; input x f32 1,2,5,5; node MaxPool x -> y auto_pad='SAME'; output y",
          TL_BAD_MODEL, "'kernel_shape' is required" },
        /* functions */
        { "opset 17; opset f.1; input x f32 2; node f.F x -> y; output y; function f.F a -> b;"
          "node f.F a -> b; end",
          TL_BAD_MODEL, "function 'F' calls itself" },
        { "opset 17; opset f.1; input x f32 2; node f.F x -> y; output y; function f.F a -> b;"
          "node f.G a -> b; end; function f.G a -> b; node f.F a -> b; end",
          TL_BAD_MODEL, "function 'F' calls itself" },
        { "opset 17; opset f.1; input x f32 2; node f.F x,x -> y; output y; function f.F a -> b;"
          "node Relu a -> b; end",
          TL_BAD_MODEL, "more inputs or outputs than function 'F'" },
        { "opset 17; opset f.1; input x f32 2; node f.F x -> y; output y; function f.F a -> b;"
          "node Relu a -> c; end",
          TL_BAD_MODEL, "never computes 'b'" },
        { "opset 17; opset f.1; input x f32 2; node f.F x -> y; output y; function f.F a -> b;"
          "node Relu x -> b; end",
          TL_BAD_MODEL, "reads 'x', which is defined nowhere" },
        { "opset 17; opset f.1; input x f32 2; node Relu x -> y; output y; function f.F a -> b; "
          "end;"
          "function f.F a -> b; end",
          TL_BAD_MODEL, "function 'F' is defined twice" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_text bytes = text_model(cases[i].model);
        expect_text(&bytes, cases[i].status, cases[i].sentence, cases[i].model);
    }
}

/* 30 functions, each calling the next twice: a billion nodes in a file of two pages. */
static void inlining_bombs_are_defused(void **state)
{
    (void)state;
    tl_text text = { 0 };
    tl_text_add(&text, "opset 17; opset f.1; input x f32 2; node f.F0 x -> y; output y;");
    for (int i = 0; i < 30; i++)
        tl_text_format(&text, "function f.F%d a -> c; node f.F%d a -> b; node f.F%d b -> c; end;",
                       i, i + 1, i + 1);
    tl_text_add(&text, "function f.F30 a -> b; node Relu a -> b; end");
    tl_text bytes = text_model(tl_text_get(&text));
    tl_text_free(&text);
    expect_text(&bytes, TL_BAD_MODEL, "more than 262144 nodes", "bomb");

    tl_text_add(&text, "opset 17; opset f.1; input x f32 2; node f.F0 x -> y; output y;");
    for (int i = 0; i < 200; i++)
        tl_text_format(&text, "function f.F%d a -> b; node f.F%d a -> b; end;", i, i + 1);
    bytes = text_model(tl_text_get(&text));
    tl_text_free(&text);
    expect_text(&bytes, TL_BAD_MODEL, "more than 32 deep", "deep calls");
}

/* ---- bytes that are wrong ---- */

static const char good[] =
    "opset 17; opset f.1; input x f32 1,2,6,6; init w f32 3,2,1,1 = 1,2,3,4,5,6;"
    "init s i64 2 = 1,-1; node Conv x,w -> c strides=[1,1] auto_pad='VALID'; node f.F c -> d;"
    "node Constant -> k value=<2>; node Gather d,k -> g axis=1; node Reshape d,s -> r;"
    "node LeakyRelu r -> y alpha=0.5; output y; output g; function f.F a -> b; node Relu a -> b; "
    "end";

static void every_cut_and_change_is_survived(void **state)
{
    (void)state;
    tl_text bytes = text_model(good);
    tl_diag diag;
    if (read_bytes(bytes.data, bytes.size, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        char *part = malloc(cut + 1); /* exactly so large: reading beyond is seen */
        memcpy(part, bytes.data, cut);
        char *exact = realloc(part, cut > 0 ? cut : 1);
        read_bytes(exact, cut, &diag);
        free(exact);
    }
    tl_random random = tl_random_make(20);
    for (int round = 0; round < 6000; round++) {
        char *copy = malloc(bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        for (int64_t k = tl_random_below(&random, 3); k >= 0; k--)
            copy[tl_random_below(&random, (int64_t)bytes.size)] =
                (char)tl_random_below(&random, 256);
        read_bytes(copy, bytes.size, &diag);
        free(copy);
    }
    tl_text_free(&bytes);
}

static void no_model_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *sentence;
    } cases[] = {
        { "", 0, "it has no graph" },
        { "hello, world", 12, "byte" },
        { "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, "tag is cut off or too long" },
        { "\x00\x01", 2, "field number 0" },
        { "\x3a\x7f", 2, "reaches beyond the end" },
        { "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "reaches beyond the end" },
        { "\x3b\x3c", 2, "as a number" },
        { "\x0b\x0c", 2, "unknown wire type" },
        { "\x12\x02g\xff", 4, "not valid UTF-8" },
        { "\x12\x03g\x00x", 5, "zero byte" },
        { "\x12\x03g\nx", 5, "line break" },
        { "\x12\x03g\rx", 5, "line break" },
        { "\x12\x03\xed\xa0\x80", 5, "not valid UTF-8" },
        { "\x38\x01", 2, "as a number" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_diag diag;
        assert_int_equal(read_bytes(cases[i].bytes, cases[i].size, &diag), TL_BAD_MODEL);
        if (strstr(diag.text, cases[i].sentence) == NULL)
            fail_msg("case %zu gives: %s, not: %s", i, diag.text, cases[i].sentence);
    }
}

static void bad_paths_say_so(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag = { 0 };
    const char *path = path_of("empty.onnx");
    assert_int_equal(tl_onnx_read(arena, path, NULL, 0, &model, &g, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "empty.onnx"));
    assert_int_equal(tl_onnx_read(arena, folder, NULL, 0, &model, &g, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_file_write(path, "", 0, &diag), TL_OK);
    assert_int_equal(tl_onnx_read(arena, path, NULL, 0, &model, &g, &diag), TL_BAD_MODEL);
    assert_non_null(strstr(diag.text, "the file is empty"));
    assert_non_null(strstr(diag.text, path));
    unlink(path);
    tl_arena_destroy(arena);
}

/* If nodes in the branches of If nodes: 3000 deep kills a recursive parser. */
static void nesting_is_bounded(void **state)
{
    (void)state;
    for (int depth = 10; depth <= 3000; depth += 2990) {
        tl_text inner = { 0 };
        wire_string(&inner, 2, "leaf");
        for (int i = 0; i < depth; i++) {
            tl_text attribute = { 0 }, node = { 0 }, graph = { 0 };
            wire_string(&attribute, 1, "then_branch");
            wire_message(&attribute, 6, &inner);
            wire_string(&node, 4, "If");
            wire_message(&node, 5, &attribute);
            wire_message(&graph, 1, &node);
            inner = graph;
        }
        tl_text bytes =
            text_model_with("opset 17; input x f32 2; node Relu x -> y; output y", &inner);
        tl_text_free(&inner);
        if (depth == 10)
            expect_text(&bytes, TL_BAD_MODEL, "has 0 inputs", "nested 10 deep");
        else
            expect_text(&bytes, TL_BAD_MODEL, "nested more than 100 deep", "nested 3000 deep");
    }
}

/* ---- large raw data, which is lifted ---- */

enum { LIFTED = 5000, SMALL = 40 };

/* A tensor [count / 4] of f32, whose bytes count up from `first`. */
static tl_text raw_tensor(const char *name, int64_t elements, size_t bytes, unsigned char first)
{
    tl_text t = { 0 };
    wire_int(&t, 1, elements);
    wire_int(&t, 2, 1);
    wire_string(&t, 8, name);
    unsigned char *raw = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(first + i % 60);
    wire_bytes(&t, 9, raw, bytes);
    free(raw);
    return t;
}

/* Two initializers, a large one at an odd place, and one in an attribute, whose messages around it get shorter. */
static tl_text large_model(void)
{
    tl_text extra = { 0 }, node = { 0 }, a = { 0 }, t;
    t = raw_tensor("w", LIFTED, LIFTED * 4, 1);
    wire_message(&extra, 5, &t);
    t = raw_tensor("s", SMALL, SMALL * 4, 2);
    wire_message(&extra, 5, &t);
    t = raw_tensor("v", LIFTED / 4, LIFTED, 3);
    wire_string(&a, 1, "value");
    wire_message(&a, 5, &t);
    wire_int(&a, 20, 4);
    wire_string(&node, 2, "c");
    wire_string(&node, 4, "Constant");
    wire_message(&node, 5, &a);
    wire_message(&extra, 1, &node);
    tl_text model =
        text_model_with("opset 17; input x f32 1; node Add x,w -> y; node Add x,s -> z; node Add "
                        "x,c -> u; output y; output z; output u",
                        &extra);
    tl_text_free(&extra);
    return model;
}

static void expect_counting(const tl_graph *g, const char *name, size_t bytes, unsigned char first)
{
    const unsigned char *data = NULL;
    for (int i = 0; i < g->value_count; i++)
        if (strcmp(g->values[i]->name, name) == 0)
            data = g->values[i]->data;
    if (data == NULL)
        fail_msg("there is no constant %s", name);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], (unsigned char)(first + i % 60));
}

/* From a file the data lies in it, from memory it is a copy; the numbers are the same. */
static void large_data_is_lifted(void **state)
{
    (void)state;
    tl_text bytes = large_model(), path = { 0 }, rest = { 0 };
    tl_onnx_edits edits = { 0 };
    tl_diag diag = { 0 };
    assert_int_equal(tl_onnx_scan_lifting(bytes.data, bytes.size, &edits, &diag), TL_OK);
    tl_onnx_edits_apply(&edits, bytes.data, bytes.size, &rest);
    assert_int_equal(edits.count, 2 + 2 + 2 + 1); /* raw data, tensors, attribute and node, graph */
    assert_true(rest.size < bytes.size - LIFTED * 5 + 100);
    tl_onnx_edits_free(&edits);

    tl_text_format(&path, "%s/large.onnx", folder);
    assert_int_equal(tl_file_write(path.data, bytes.data, bytes.size, NULL), TL_OK);
    for (int from_file = 0; from_file < 2; from_file++) {
        tl_arena *arena = tl_arena_create(0);
        tl_onnx *model;
        tl_graph *g;
        tl_status status = from_file ? tl_onnx_read(arena, path.data, NULL, 0, &model, &g, &diag)
                                     : tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL,
                                                           NULL, 0, &model, &g, &diag);
        if (status != TL_OK)
            fail_msg("%s", diag.text);
        expect_counting(g, "w", LIFTED * 4, 1);
        expect_counting(g, "s", SMALL * 4, 2);
        expect_counting(g, "c.c0", LIFTED, 3);
        for (int i = 0; i < g->value_count; i++)
            if (strcmp(g->values[i]->name, "w") == 0)
                assert_int_equal(tl_onnx_is_mapped(model, g->values[i]->data, LIFTED * 4),
                                 from_file);
        tl_onnx_close(model);
        tl_arena_destroy(arena);
    }
    tl_text_free(&bytes);
    tl_text_free(&rest);
    unlink(path.data);
    tl_text_free(&path);
}

static void lifted_data_is_checked(void **state)
{
    (void)state;
    tl_text extra = { 0 }, t, bytes;
    const char *model = "opset 17; input x f32 1; node Add x,w -> y; output y";
    t = raw_tensor("w", LIFTED + 1, LIFTED * 4, 1); /* too short */
    wire_message(&extra, 5, &t);
    bytes = text_model_with(model, &extra);
    expect_text(&bytes, TL_BAD_MODEL, "its data has 20000 bytes, its shape needs 20004",
                "short raw data");
    extra.size = 0;
    t = raw_tensor("w", LIFTED, LIFTED * 4, 1);
    wire_bytes(&t, 9, "1234", 4); /* and again: which is it? */
    wire_message(&extra, 5, &t);
    bytes = text_model_with(model, &extra);
    expect_text(&bytes, TL_BAD_MODEL, "has its data in more than one place", "raw data twice");
    extra.size = 0;
    t = raw_tensor("w", LIFTED, LIFTED * 4, 1);
    wire_float(&t, 4, 1);
    wire_message(&extra, 5, &t);
    bytes = text_model_with(model, &extra);
    expect_text(&bytes, TL_BAD_MODEL, "has its data in more than one place", "raw and typed data");
    /* what says where lifted data lies is ours, and no file's */
    for (int field = TL_ONNX_LIFTED_AT; field <= TL_ONNX_LIFTED_SIZE; field++) {
        extra.size = 0;
        t = raw_tensor("w", 2, 0, 1);
        wire_int(&t, (unsigned)field, 8);
        wire_message(&extra, 5, &t);
        bytes = text_model_with(model, &extra);
        expect_text(&bytes, TL_BAD_MODEL, "a field that ONNX has not", "a lifted file");
    }
    tl_text_free(&extra);

    bytes = large_model();
    tl_diag diag;
    for (size_t cut = 0; cut < bytes.size; cut += 1 + cut % 7) {
        char *part = malloc(cut + 1);
        memcpy(part, bytes.data, cut);
        char *exact = realloc(part, cut > 0 ? cut : 1);
        read_bytes(exact, cut, &diag);
        free(exact);
    }
    tl_random random = tl_random_make(21);
    for (int round = 0; round < 2000; round++) {
        char *copy = malloc(bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        for (int64_t k = tl_random_below(&random, 3); k >= 0; k--)
            copy[tl_random_below(&random, 2) ? tl_random_below(&random, 40)
                                             : tl_random_below(&random, (int64_t)bytes.size)] =
                (char)tl_random_below(&random, 256);
        read_bytes(copy, bytes.size, &diag);
        free(copy);
    }
    tl_text_free(&bytes);
}

/* Empty nodes take 2 bytes in the file and a hundred in memory. */
static void amplification_is_bounded(void **state)
{
    (void)state;
    tl_text nodes = { 0 };
    for (int i = 0; i < 1500000; i++)
        tl_text_add_bytes(&nodes, "\x0a\x00", 2);
    tl_text bytes = text_model_with("opset 17; input x f32 2; output x", &nodes);
    tl_text_free(&nodes);
    expect_text(&bytes, TL_BAD_MODEL, "needs more than", "empty nodes");

    for (int i = 0; i < 5000000; i++)
        tl_text_add_bytes(&nodes, "\x0a\x00", 2);
    bytes = text_model_with("opset 17; input x f32 2; output x", &nodes);
    tl_text_free(&nodes);
    expect_text(&bytes, TL_BAD_MODEL, "more than 4194304 messages", "more empty nodes");
}

/* The arena fails at its n-th allocation: the status says so and nothing leaks (under asan). */
static void memory_may_run_out(void **state)
{
    (void)state;
    tl_text bytes = text_model(good);
    tl_status status = TL_NO_MEMORY;
    for (size_t n = 1; status != TL_OK; n++) {
        tl_arena *arena = tl_arena_create(0);
        tl_onnx *model;
        tl_graph *g;
        tl_diag diag = { 0 };
        tl_arena_fail_at(arena, n);
        status =
            tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g, &diag);
        if (status != TL_OK)
            assert_int_equal(status, TL_NO_MEMORY);
        tl_onnx_close(model);
        tl_arena_destroy(arena);
        assert_true(n < 100000);
    }
    tl_text_free(&bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_models_are_refused),
        cmocka_unit_test(inlining_bombs_are_defused),
        cmocka_unit_test(every_cut_and_change_is_survived),
        cmocka_unit_test(no_model_at_all),
        cmocka_unit_test(bad_paths_say_so),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(amplification_is_bounded),
        cmocka_unit_test(large_data_is_lifted),
        cmocka_unit_test(lifted_data_is_checked),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("onnx hostile", tests, make_folder, remove_folder);
}
