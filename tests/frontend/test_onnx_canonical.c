/* tests/frontend/test_onnx_canonical.c: every opset's form of an operator becomes the one canonical form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "frontend/frontend.h"
#include "tests/frontend/onnx_text.h"

static const struct {
    const char *model, *expect; /* the graph without its first line */
} cases[] = {
#define CASE(model, expect) { model, expect },
#include "tests/frontend/onnx_canonical.def"
#undef CASE
};

static void canonical_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_text bytes = text_model(cases[i].model), text = { 0 };
        tl_onnx *model;
        tl_graph *g;
        tl_diag diag = { 0 };
        if (tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g, &diag) !=
            TL_OK)
            fail_msg("%s\n%s", cases[i].model, diag.text);
        if (tl_graph_verify(g, &diag) != TL_OK)
            fail_msg("%s\n%s", cases[i].model, diag.text);
        tl_graph_print(g, &text);
        const char *shown = strchr(tl_text_get(&text), '\n') + 1;
        if (getenv("TL_SHOW"))
            print_message("%s\n%s\n", cases[i].model, shown);
        else if (strcmp(shown, cases[i].expect) != 0)
            fail_msg("%s\ngives\n%snot\n%s", cases[i].model, shown, cases[i].expect);
        tl_onnx_close(model);
        tl_text_free(&text);
        tl_text_free(&bytes);
        tl_arena_destroy(arena);
    }
}

/* What is not supported is told all at once: operator, count, first node, reason. */
static void unsupported_is_listed(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_text bytes = text_model(
        "opset 17; opset com.acme.1; input x f32 2; input q 23 2; node StringSplit x -> a;"
        "node StringSplit x -> b; node Frobnicate x -> c; node com.acme.Foo c -> d; node Relu d -> "
        "e;"
        "node Softmax e -> f axis=9; node Cast x -> g to=8; output f; output a; output g");
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag = { 0 };
    assert_int_equal(tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g,
                                         &diag),
                     TL_UNSUPPORTED);
    assert_string_equal(diag.text,
                        "not supported: graph input, StringSplit, Frobnicate, com.acme.Foo, Cast\n"
                        "  graph input: 1, first 'q': data type float4e2m1 (23)\n"
                        "  StringSplit: 2, first 'a': strings\n"
                        "  Frobnicate: 1, first 'c': the operator is not implemented\n"
                        "  com.acme.Foo: 1, first 'd': the operator is not implemented\n"
                        "  Cast: 1, first 'g': a cast to string");
    assert_null(model);
    assert_null(g);
    tl_text_free(&bytes);

    /* of one, the first line has the reason; of many, their names as far as they fit */
    bytes = text_model("opset 17; input x f32 2; node Frobnicate x -> a; output a");
    assert_int_equal(tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g,
                                         &diag),
                     TL_UNSUPPORTED);
    assert_string_equal(diag.text, "not supported: Frobnicate (the operator is not implemented)\n"
                                   "  Frobnicate: 1, first 'a': the operator is not implemented");
    tl_text_free(&bytes);
    tl_text many = { 0 };
    tl_text_add(&many, "opset 17; opset com.acme.1; input x f32 2; output a0");
    for (int i = 0; i < 100; i++)
        tl_text_format(&many, ";node com.acme.Operator%d x -> a%d", i, i);
    bytes = text_model(tl_text_get(&many));
    assert_int_equal(tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g,
                                         &diag),
                     TL_UNSUPPORTED);
    const char *first = "not supported: com.acme.Operator0, com.acme.Operator1, ";
    assert_memory_equal(diag.text, first, strlen(first));
    assert_non_null(strstr(diag.text, " and others\n  com.acme.Operator0: 1, first 'a0': "));
    assert_non_null(strstr(diag.text, " more"));
    tl_text_free(&bytes);
    tl_text_free(&many);
    tl_arena_destroy(arena);
}

/* Forms of one operator stand together, are told apart by their opsets and leave none out. */
static void operators_are_listed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int since, until, next;
    } forms[] = {
#define IMPORT(type, first, last, min, max, outputs, importer, op, attributes) \
    { type, first, last, (last) + 1 },
#include "frontend/import/import_ops.def"
#undef IMPORT
    };
    int count = (int)(sizeof forms / sizeof forms[0]), sum = 0;
    for (int i = 1; i < count; i++)
        if (strcmp(forms[i].name, forms[i - 1].name) == 0 && forms[i].since != forms[i - 1].next)
            fail_msg("%s: opset %d comes after %d", forms[i].name, forms[i].since,
                     forms[i - 1].until);
    tl_onnx_operator op, before;
    for (int i = 0; tl_onnx_find_operator(i, &op); i++) {
        sum += op.forms;
        assert_true(op.reason != NULL || op.since >= 1);
        for (int k = 0; k < i; k++)
            if (tl_onnx_find_operator(k, &before) && strcmp(before.name, op.name) == 0)
                fail_msg("%s stands in two places", op.name);
    }
    assert_int_equal(sum, count);
    assert_false(tl_onnx_find_operator(100000, &op));
}

static void shapes_can_be_given(void **state)
{
    (void)state;
    static const int64_t two_three[] = { 2, 3 }, five[] = { 5 };
    static const struct {
        const char *input;
        const int64_t *extents;
        int rank;
        tl_status expect;
        const char *sentence;
    } given[] = {
        { "x", two_three, 2, TL_OK, "" },
        { "z", two_three, 2, TL_BAD_ARGUMENT, "no input called 'z'" },
        { "x", five, 1, TL_BAD_ARGUMENT,
          "input 'x', [5], does not agree with the model's, [n, 3]" },
        { "y", two_three, 2, TL_BAD_ARGUMENT, "does not agree" },
    };
    tl_text bytes = text_model("opset 17; input x f32 n,3; input y f32 2,4; node Relu x -> z;"
                               "node Relu y -> w; output z; output w");
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_shape_override o = { .name = given[i].input,
                                .shape = tl_shape_of(given[i].rank, given[i].extents) };
        tl_onnx *model;
        tl_graph *g;
        tl_diag diag = { 0 };
        assert_int_equal(tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, &o, 1, &model, &g,
                                             &diag),
                         given[i].expect);
        assert_non_null(strstr(diag.text, given[i].sentence));
        if (g != NULL) {
            assert_int_equal(g->inputs[0]->shape.dims[0].extent, 2);
            assert_int_equal(tl_graph_find(g, "z")->shape.dims[0].extent, 2);
        }
        tl_onnx_close(model);
        tl_arena_destroy(arena);
    }
    tl_text_free(&bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_forms),
        cmocka_unit_test(unsupported_is_listed),
        cmocka_unit_test(operators_are_listed),
        cmocka_unit_test(shapes_can_be_given),
    };
    return cmocka_run_group_tests_name("onnx canonical", tests, NULL, NULL);
}
