/* tests/ir/test_graph.c: the Graph container: its text, its verifier, and tidying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "ir/graph/graph.h"

static int setup(void **state)
{
    *state = tl_arena_create(0);
    return *state == NULL;
}

static int teardown(void **state)
{
    tl_arena_destroy(*state);
    return 0;
}

/* Texts that are exactly what the printer writes. */
static const char *const texts[] = {
    "graph empty\n",

    "graph \"two words\"\n"
    "input \"/layer.0/x:0\": f32[batch, \"odd name\", ?, 7]\n"
    "input _1: ?[...]\n"
    "input \"input\": i64[]\n"
    "output _1\n",

    "graph constants\n"
    "const a: f32[2, 3] = [1.0, -0.0, 0.1, inf, -inf, nan]\n"
    "const b: f64[2] = [0.1, 3.3333333333333335]\n"
    "const c: f16[2] = [0.1, 6.55e+04]\n"
    "const d: i8[3] = [-128, 0, 127]\n"
    "const e: u64[1] = [18446744073709551615]\n"
    "const f: bool[2] = [true, false]\n"
    "const g: i64[] = [-9223372036854775808]\n"
    "const h: f32[0, 5] = []\n"
    "const i: f32[65] = ...\n"
    "y: f32[7] = Concat(a, b, c, d, e, f, g, h, i) {axis = 0}\n"
    "output y\n",

    "graph nodes\n"
    "input x: f32[1, 3, 8, 8]\n"
    "const w: f32[4, 3, 1, 1] = [0.5, 1.0, 2.0, 0.25, 0.5, 1.0, 2.0, 0.25, 0.5, 1.0, 2.0, 0.25]\n"
    "y: f32[1, 4, 8, 8] layout(order [0, 2, 3, 1], block [1, 4, 1, 1], before [0, 0, 1, 1], "
    "after [0, 0, 1, 1]) = Conv(x, w, _) {strides = [1, 1], group = 1, auto_pad = \"VALID\"} "
    "\"conv \\\"1\\\"\"\n"
    "_, z: ?[2, ?] = Split(y) {axis = 1}\n"
    "c: i64[2, ?] = Cast(z) {to = i64} \"\"\n"
    "r: f32[...] = ReduceSum(z) {axes = [], keepdims = 0}\n"
    "n: f32[...] = LayerNormalization(r, r) {axis = -1, epsilon = 1e-05}\n"
    "output c\n"
    "output n\n"
    "output c\n",
};

static void text_survives(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tl_graph *g;
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        if (tl_graph_parse(*state, texts[i], "text", &g, &diag) != TL_OK)
            fail_msg("text %zu: %s", i, diag.text);
        tl_graph_print(g, &text);
        assert_string_equal(tl_text_get(&text), texts[i]);
        tl_text_free(&text);
    }
}

/* What stands as `...` is the other graph's when name, dtype and shape are, however large it is, and zeros when not. */
static void constants_come_from_beside(void **state)
{
    enum { COUNT = 1 << 25 }; /* more than would be made of zeros */
    tl_arena *arena = *state;
    static const float some[100] = { 1, 2, 3 };
    static const char large;
    tl_graph *from = tl_graph_create(arena, "from"), *g;
    tl_diag diag = { 0 };
    const tl_shape few = tl_shape_of(1, (int64_t[]){ 100 }),
                   many = tl_shape_of(1, (int64_t[]){ COUNT });
    tl_graph_constant(from, "a", TL_F32, &few, some);
    tl_graph_constant(from, "b", TL_F32, &few, some);
    tl_graph_constant(from, "c", TL_U8, &many, &large);
    const char *text = "graph g\n"
                       "const a: f32[100] = ...\n"
                       "const b: f32[10, 10] = ...\n"
                       "const c: u8[33554432] = ...\n";
    if (tl_graph_parse_beside(arena, text, "t", from, &g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_ptr_equal(tl_graph_find(g, "a")->data, some);
    const float *b = tl_graph_find(g, "b")->data;
    assert_true(b != some && b[0] == 0 && b[99] == 0);
    assert_ptr_equal(tl_graph_find(g, "c")->data, &large);
    assert_int_equal(tl_graph_parse(arena, text, "t", &g, &diag), TL_BAD_TEXT);
}

static void wide_nodes_read_back(void **state)
{
    enum { WIDE = 5000 };
    tl_graph *g;
    tl_diag diag = { 0 };
    tl_text text = { 0 }, again = { 0 };
    tl_text_add(&text, "graph g\ninput x: f32[1]\ny: f32[5000] = Concat(x");
    for (int i = 1; i < WIDE; i++)
        tl_text_add(&text, ", x");
    tl_text_add(&text, ") {axis = 0}\ny0: f32[1]");
    for (int i = 1; i < WIDE; i++)
        tl_text_format(&text, ", y%d: f32[1]", i);
    tl_text_add(&text, " = Split(y) {axis = 0}\noutput y1\n");
    if (tl_graph_parse(*state, tl_text_get(&text), "wide", &g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_graph_print(g, &again);
    assert_string_equal(tl_text_get(&again), tl_text_get(&text));
    tl_text_free(&text);
    tl_text_free(&again);
}

/* Every prefix of every text, and every text with one byte changed, is read or refused, never more. */
static void broken_texts_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t size = strlen(texts[i]);
        for (size_t cut = 0; cut < size; cut++) {
            for (int change = 0; change < 4; change++) {
                static const char bytes[] = "[\"9_";
                tl_arena *arena = tl_arena_create(0);
                char *copy = tl_arena_strdup(arena, texts[i]);
                tl_graph *g = NULL;
                tl_diag diag = { 0 };
                copy[cut] = change == 0 ? '\0' : bytes[change];
                if (tl_graph_parse(arena, copy, "text", &g, &diag) == TL_OK)
                    assert_int_equal(tl_graph_verify(g, &diag), TL_OK);
                else
                    assert_true(strlen(diag.text) > 0);
                tl_arena_destroy(arena);
            }
        }
    }
}

static void refusals_say_why(void **state)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        { "grap g", "expected `graph`" },
        { "graph g\ninput x: f32[1]\ninput x: f32[1]", "value x is defined twice" },
        { "graph g\ny: f32[1] = Relu(x)", "value x is not defined before its use" },
        { "graph g\ny: f32[1] = Relu(y)", "read by the node that computes it" },
        { "graph g\ninput x: f32[1]\ny: f32[1] = Foo(x)", "no operator is called Foo" },
        { "graph g\ninput x: f32[1]\ny: f32[1] = Relu(x, x)", "Relu has 2 inputs" },
        { "graph g\ninput x: f32[1]\ny: f32[1] = Add(x, _)", "input 1 of Add is required" },
        { "graph g\ninput x: f32[1]\ny: f32[1] = Relu(x) {axis = 1}", "no attribute axis" },
        { "graph g\ninput x: f33[1]", "no dtype is called f33" },
        { "graph g\ninput x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1]", "the rank is larger than 8" },
        { "graph g\ninput x: f32[4611686018427387904, 4]", "its size overflows" },
        { "graph g\ninput x: f32[99999999999999999999]", "does not fit" },
        { "graph g\nconst x: f32[2] = [1.0]", "1 values for 2 elements" },
        { "graph g\nconst x: i32[1] = [1.5]", "no integer" },
        { "graph g\nconst x: f32[999999999] = ...", "more than" },
        { "graph g\noutput x", "output x is not defined" },
        { "graph g\ninput x: f32[2] layout(order [1], block [1], before [0], after [0])",
          "no permutation" },
        { "graph g\ninput x: f32[2] y", "is too much" },
        { "graph g\ninput \"x", "does not end" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_graph *g;
        tl_diag diag = { 0 };
        assert_int_equal(tl_graph_parse(*state, cases[i].text, "t", &g, &diag), TL_BAD_TEXT);
        if (strstr(diag.text, cases[i].expect) == NULL)
            fail_msg("%s\n gives: %s\n not: %s", cases[i].text, diag.text, cases[i].expect);
    }
}

static tl_value *value(tl_graph *g, const char *name)
{
    int64_t two = 2;
    tl_shape shape = tl_shape_of(1, &two);
    return tl_graph_value(g, name, TL_F32, &shape);
}

static tl_node *unary(tl_graph *g, tl_op op, tl_value *x, tl_value *y)
{
    return tl_graph_node(g, op, y->name, 1, &x, 1, &y);
}

static void expect_text(const tl_graph *g, const char *expect)
{
    tl_text text = { 0 };
    tl_diag diag = { 0 };
    if (tl_graph_verify(g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_graph_print(g, &text);
    assert_string_equal(tl_text_get(&text), expect);
    tl_text_free(&text);
}

static void tidy_sorts_and_drops(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *x = value(g, "x"), *unused = value(g, "unused"), *y = value(g, "y"),
             *z = value(g, "z"), *d = value(g, "d");
    tl_graph_add_input(g, x);
    tl_graph_add_input(g, unused);
    tl_graph_add_output(g, z);
    unary(g, TL_OP_RELU, y, z);
    unary(g, TL_OP_EXP, x, d);
    unary(g, TL_OP_TANH, x, y);
    assert_int_equal(tl_graph_verify(g, &diag), TL_BAD_IR);
    assert_non_null(strstr(diag.text, "node z reads value y before it is computed"));
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    expect_text(g, "graph g\ninput x: f32[2]\ninput unused: f32[2]\n"
                   "y: f32[2] = Tanh(x)\nz: f32[2] = Relu(y)\noutput z\n");
    assert_int_equal(g->value_count, 4);
    assert_int_equal(tl_graph_users(y), 1);
    assert_int_equal(tl_graph_users(z), 1);
    assert_int_equal(tl_graph_users(unused), 0);
}

/* A model may hand on what it gets. */
static void tidy_takes_a_graph_without_nodes(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *x = value(g, "x");
    tl_graph_add_input(g, x);
    tl_graph_add_output(g, x);
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    expect_text(g, "graph g\ninput x: f32[2]\noutput x\n");
}

static void tidy_names_a_cycle(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *a = value(g, "a"), *b = value(g, "b"), *c = value(g, "c");
    tl_graph_add_output(g, c);
    unary(g, TL_OP_RELU, a, b);
    unary(g, TL_OP_EXP, b, a);
    unary(g, TL_OP_EXP, b, c);
    assert_int_equal(tl_graph_tidy(g, &diag), TL_BAD_MODEL);
    assert_non_null(strstr(diag.text, "depends on its own result"));
    assert_non_null(strstr(diag.text, "node a"));
    assert_non_null(strstr(diag.text, "node b"));
}

static void tidy_makes_names_unique(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *t = value(g, "x"), *u = value(g, "x"), *x = value(g, "x");
    tl_graph_add_input(g, x);
    tl_graph_add_output(g, u);
    u->name = "y";
    unary(g, TL_OP_RELU, x, t);
    unary(g, TL_OP_EXP, t, u);
    g->nodes[0]->name = g->nodes[1]->name = "n";
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    expect_text(g, "graph g\ninput x: f32[2]\nx_1: f32[2] = Relu(x) \"n\"\n"
                   "y: f32[2] = Exp(x_1) \"n\"\noutput y\n");
}

/* Many nodes of one name, as rewrites make them: the numbers are not tried from the beginning each time. */
static void many_names_become_unique(void **state)
{
    enum { COUNT = 20000 };
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *x = value(g, "x"), *y = x;
    tl_graph_add_input(g, x);
    for (int i = 0; i < COUNT; i++, x = y) {
        y = value(g, i % 2 == 0 ? "t" : "u");
        unary(g, TL_OP_RELU, x, y);
    }
    tl_graph_add_output(g, y);
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    assert_int_equal(tl_graph_verify(g, &diag), TL_OK);
    assert_string_equal(g->nodes[COUNT - 2]->outputs[0]->name, "t_9999");
    assert_string_equal(y->name, "u");
}

static void expect_uses(const tl_value *v, int count, tl_node *const *nodes)
{
    const tl_use *use = v->first_use, *last = NULL;
    for (int i = 0; i < count; i++, last = use, use = use->next) {
        assert_non_null(use);
        assert_ptr_equal(use->node, nodes[i]);
        assert_ptr_equal(use->node->inputs[use - use->node->uses], v);
        assert_ptr_equal(use->previous, last);
    }
    assert_null(use);
    assert_ptr_equal(v->last_use, last);
    assert_int_equal(v->use_count, count);
}

static void uses_follow_inputs(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *x = value(g, "x"), *y = value(g, "y"), *z = value(g, "z"), *w = value(g, "w");
    tl_graph_add_input(g, x);
    tl_graph_add_input(g, w);
    tl_graph_add_output(g, z);
    tl_node *add = tl_graph_node(g, TL_OP_ADD, "add", 2, (tl_value *[]){ x, x }, 1, &y);
    tl_node *exp = unary(g, TL_OP_EXP, y, z);
    expect_uses(x, 2, (tl_node *[]){ add, add });
    expect_uses(y, 1, &exp);
    assert_int_equal(tl_graph_users(z), 1);

    tl_node_set_input(add, 0, w);
    expect_uses(x, 1, &add);
    expect_uses(w, 1, &add);
    tl_node_set_input(exp, 0, x); /* behind `add` now */
    expect_uses(x, 2, (tl_node *[]){ add, exp });
    expect_uses(y, 0, NULL);
    tl_graph_replace_value(g, x, w);
    expect_uses(x, 0, NULL);
    expect_uses(w, 3, (tl_node *[]){ add, add, exp });
    tl_node_kill(add);
    tl_node_kill(add);
    expect_uses(w, 1, &exp);
    tl_node_set_inputs(g, exp, 2, (tl_value *[]){ NULL, x });
    expect_uses(w, 0, NULL);
    tl_node_keep_inputs(exp, 1);
    expect_uses(x, 0, NULL);
    tl_node_set_input(exp, 0, x);
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    assert_int_equal(g->node_count, 1);
    expect_uses(x, 1, &exp);
}

/* Replacing a value keeps the name of a graph output, whatever takes its place. */
static void replace_keeps_output_names(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_diag diag = { 0 };
    tl_value *x = value(g, "x"), *y = value(g, "y"), *z = value(g, "z"), *r = value(g, "r");
    tl_graph_add_input(g, x);
    tl_graph_add_output(g, y);
    tl_graph_add_output(g, z);
    unary(g, TL_OP_IDENTITY, x, y);
    unary(g, TL_OP_EXP, y, z);
    unary(g, TL_OP_RELU, x, r);
    tl_graph_replace_value(g, z, r);
    tl_graph_replace_value(g, y, x);
    assert_int_equal(tl_graph_tidy(g, &diag), TL_OK);
    expect_text(g, "graph g\ninput x: f32[2]\nz: f32[2] = Relu(x) \"r\"\n"
                   "y: f32[2] = Identity(x)\noutput y\noutput z\n");
}

static void attributes_are_replaced(void **state)
{
    tl_graph *g = tl_graph_create(*state, "g");
    tl_value *x = value(g, "x"), *y = value(g, "y");
    tl_node *n = unary(g, TL_OP_TRANSPOSE, x, y);
    const int64_t two[] = { 1, 0 }, *got;
    const double halves[] = { 0.5, 1.5 };
    assert_int_equal(tl_attr_ints(n, "perm", &got), -1);
    tl_attr_set_int(g, n, "perm", 3);
    assert_int_equal(tl_attr_int(n, "perm", 0), 3);
    tl_attr_set_ints(g, n, "perm", two, 2);
    assert_int_equal(tl_attr_int(n, "perm", 0), 0);
    assert_int_equal(tl_attr_ints(n, "perm", &got), 2);
    assert_int_equal(got[0], 1);
    tl_attr_set_string(g, n, "mode", "edge");
    tl_attr_set_float(g, n, "f", 0.5);
    tl_attr_set_floats(g, n, "fs", halves, 2);
    assert_true(tl_attr_find(n, "fs")->floats[1] == 1.5);
    assert_string_equal(tl_attr_string(n, "mode", ""), "edge");
    assert_true(tl_attr_float(n, "f", 0) == 0.5);
    assert_int_equal(n->attr_count, 4);
    tl_attr_remove(n, "mode");
    assert_int_equal(n->attr_count, 3);
    assert_string_equal(tl_attr_string(n, "mode", "none"), "none");
    assert_true(tl_attr_float(n, "f", 0) == 0.5);
}

static void shapes_and_layouts(void **state)
{
    (void)state;
    const int64_t nchw[] = { 1, 20, 7, 9 }, huge[] = { INT64_MAX, 3 }, zero[] = { INT64_MAX, 0, 3 };
    tl_shape s = tl_shape_of(4, nchw), h = tl_shape_of(2, huge), z = tl_shape_of(3, zero),
             scalar = tl_shape_of(0, NULL);
    assert_int_equal(tl_shape_elements(&s), 1260);
    assert_int_equal(tl_shape_elements(&h), -1);
    assert_int_equal(tl_shape_elements(&z), 0);
    assert_int_equal(tl_shape_elements(&scalar), 1);
    tl_shape dynamic = s;
    dynamic.dims[0] = (tl_dim){ .extent = -1, .name = "n" };
    assert_false(tl_shape_is_static(&dynamic));
    assert_int_equal(tl_shape_elements(&dynamic), -1);
    assert_false(tl_shape_equal(&s, &dynamic));
    assert_true(tl_shape_equal(&dynamic, &dynamic));

    int64_t out[2 * TL_MAX_RANK];
    tl_layout layout = tl_layout_plain();
    assert_int_equal(tl_layout_physical(&layout, &s, out), 4);
    assert_memory_equal(out, nchw, sizeof nchw);
    layout.plain = false;
    layout.block[1] = 16;
    layout.halo_before[2] = layout.halo_after[2] = layout.halo_after[3] = 1;
    const int64_t physical[] = { 1, 2, 9, 10, 16 };
    assert_int_equal(tl_layout_physical(&layout, &s, out), 5);
    assert_memory_equal(out, physical, sizeof physical);
    layout.order[1] = 2, layout.order[2] = 3, layout.order[3] = 1;
    const int64_t last[] = { 1, 9, 10, 2, 16 };
    assert_int_equal(tl_layout_physical(&layout, &s, out), 5);
    assert_memory_equal(out, last, sizeof last);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_survives, setup, teardown),
        cmocka_unit_test_setup_teardown(constants_come_from_beside, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_nodes_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_texts_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_say_why, setup, teardown),
        cmocka_unit_test_setup_teardown(tidy_sorts_and_drops, setup, teardown),
        cmocka_unit_test_setup_teardown(tidy_takes_a_graph_without_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(tidy_names_a_cycle, setup, teardown),
        cmocka_unit_test_setup_teardown(tidy_makes_names_unique, setup, teardown),
        cmocka_unit_test_setup_teardown(many_names_become_unique, setup, teardown),
        cmocka_unit_test_setup_teardown(uses_follow_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(replace_keeps_output_names, setup, teardown),
        cmocka_unit_test_setup_teardown(attributes_are_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(shapes_and_layouts, setup, teardown),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
