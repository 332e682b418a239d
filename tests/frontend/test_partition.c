/* tests/frontend/test_partition.c: which nodes become one kernel, and what kernels are called and cost. */
#include "tests/frontend/lower_helpers.h"

/* Families in execution order, for nodes over x = f32[2, 8] and y = f32[2, 8]. */
static const struct {
    const char *nodes, *families;
} cases[] = {
    { "a: ?[...] = Exp(x)\nb: ?[...] = Neg(a)\nz: ?[...] = Mul(b, y)", "exp_neg_mul" },
    { "a: ?[...] = Exp(x)\nb: ?[...] = Neg(a)\nz: ?[...] = Mul(b, a)", "exp_neg_mul" },
    { "a: ?[...] = Exp(x)\nb: ?[...] = Softmax(a)\nz: ?[...] = Mul(b, y)", "exp softmax_mul" },
    { "a: ?[...] = Exp(x)\nz: ?[...] = ReduceSum(a)", "exp_reducesum" },
    { "a: ?[...] = Exp(x)\nz: ?[...] = LayerNormalization(a, w)", "exp_layernorm" },
    { "a: ?[...] = Add(x, y)\nb: ?[...] = LayerNormalization(a, w)\nz: ?[...] = Mul(b, a)",
      "add layernorm_mul" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Add(a, y)\nz: ?[...] = LayerNormalization(b, w)",
      "matmul_add layernorm" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Add(a, w)\nz: ?[...] = Relu(b)", "matmul_add_relu" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = MatMul(y, m)\nz: ?[...] = Add(a, b)",
      "matmul matmul_add" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Neg(y)\nz: ?[...] = Add(a, b)", "matmul_neg_add" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Transpose(y)\nc: ?[...] = Transpose(b)\nz: ?[...] = "
      "Add(a, c)",
      "transpose_transpose matmul_add" },
    { "a: ?[...] = MatMul(x, m)\nz: ?[...] = Transpose(a)", "matmul transpose" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Relu(a)\nz: ?[...] = MatMul(b, m)",
      "matmul_relu matmul" },
    { "a: ?[...] = MatMul(x, m)\nz: ?[...] = Expand(a) {shape = [3, 1, 1]}", "matmul expand" },
    { "a: ?[...] = MatMul(x, m)\nb: ?[...] = Expand(y) {shape = [3, 1, 1]}\nz: ?[...] = Add(a, b)",
      "matmul expand_add" },
    { "a: ?[...] = ReduceMean(x) {axes = [1]}\nz: ?[...] = Reshape(a) {shape = [2]}",
      "reducemean_reshape" },
    { "a: ?[...] = Neg(x)\nb: ?[...] = Exp(a)\nc: ?[...] = Neg(b)\nd: ?[...] = Exp(c)\ne: ?[...] = "
      "Neg(d)\n"
      "f: ?[...] = Exp(e)\nz: ?[...] = Neg(f)",
      "neg_exp_neg_exp_neg_and_2" },
    { "a: ?[...] = Exp(x)\nb: ?[...] = BitCast(a) {to = i32}\nc: ?[...] = Cast(b) {to = f32}\n"
      "z: ?[...] = Neg(c)",
      "exp bitcast_cast_neg" },
    { "a: ?[...] = Exp(x)\nb: ?[...] = BitCast(a) {to = i32}\nc: ?[...] = Cast(b) {to = f32}\n"
      "z: ?[...] = Add(a, c)",
      "exp bitcast_cast_add" },
};

static void families(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tl_arena *arena = tl_arena_create(0);
        const char *text = tl_arena_format(arena,
                                           "graph g\ninput x: f32[2, 8]\ninput y: f32[2, 8]\n"
                                           "input m: f32[8, 8]\ninput w: f32[8]\n%s\noutput z\n",
                                           cases[k].nodes);
        tl_graph *g = prepared_graph(arena, text, "x86-64");
        tl_partition partition;
        tl_diag diag = { { 0 } };
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        const char *got = "";
        for (int i = 0; i < partition.count; i++) {
            const char *family = partition.kernels[i].family;
            got = tl_arena_format(arena, "%s%s%s", got, i > 0 ? " " : "", family);
            assert_string_equal(partition.kernels[i].name,
                                tl_arena_format(arena, "%s_%d", family, i));
        }
        if (strcmp(got, cases[k].families) != 0)
            fail_msg("%s\n  gives   %s\n  should  %s", cases[k].nodes, got, cases[k].families);
        tl_arena_destroy(arena);
    }
}

/* What a form cuts is in memory; a line that is no decision, or about no value, changes nothing. */
static void forms(void **state)
{
    tl_arena *arena = *state;
    static const struct {
        const char *form, *families;
    } all[] = {
        { "", "conv_relu_sigmoid" },
        { "cut c", "conv relu_sigmoid" },
        { "cut r\n", "conv_relu sigmoid" },
        { "cut c\ncut r\n", "conv relu sigmoid" },
        { "cut\ncut  c\ncut x\ncut cc\nplain c\n\nsplit c\ncut ", "conv_relu_sigmoid" },
    };
    tl_graph *g = prepared_graph(
        arena,
        "graph g\ninput x: f32[1, 16, 8, 8]\ninput w: f32[16, 16, 1, 1]\n"
        "c: ?[...] = Conv(x, w)\nr: ?[...] = Relu(c)\ns: ?[...] = Sigmoid(r)\noutput s\n",
        "x86-64");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tl_partition partition;
        tl_diag diag = { { 0 } };
        const char *got = "";
        tl_graph_set_form(g, all[i].form);
        if (tl_partition_graph(arena, g, &partition, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        for (int k = 0; k < partition.count; k++)
            got = tl_arena_format(arena, "%s%s%s", got, k > 0 ? " " : "",
                                  partition.kernels[k].family);
        assert_string_equal(got, all[i].families);
    }
}

/* Values that a form wants plain have no blocks; what comes behind them follows. */
static void plain_values(void **state)
{
    tl_arena *arena = *state;
    tl_target target;
    tl_diag diag = { { 0 } };
    assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
    tl_graph *g = prepared_graph(
        arena,
        "graph g\ninput x: f32[1, 16, 8, 8]\ninput w: f32[16, 16, 1, 1]\n"
        "c: ?[...] = Conv(x, w)\nr: ?[...] = Relu(c)\ns: ?[...] = Sigmoid(r)\noutput s\n",
        "x86-64-v3");
    static const char *const all[] = { "", "plain r", "plain c", "" };
    static const bool blocks[][2] = {
        { true, true }, { true, false }, { false, false }, { true, true }
    };
    for (int i = 0; i < 4; i++) {
        tl_graph_set_form(g, all[i]);
        assert_int_equal(tl_assign_layouts(g, &target, &diag), TL_OK);
        assert_int_equal(tl_graph_find(g, "c")->layout.plain, !blocks[i][0]);
        assert_int_equal(tl_graph_find(g, "r")->layout.plain, !blocks[i][1]);
    }
}

static const tl_program *first_program(tl_arena *arena, const char *shape, const char *names)
{
    const char *text = tl_arena_format(
        arena,
        "graph g\ninput %s: f32[%s, 4]\ninput b: f32[4, 6]\ny: ?[...] = MatMul(%s, b)\noutput y\n",
        names, shape, names);
    tl_diag diag = { { 0 } };
    tl_partition partition;
    tl_program *program;
    tl_graph *g = prepared_graph(arena, text, "x86-64");
    if (tl_partition_graph(arena, g, &partition, &diag) != TL_OK ||
        tl_kernel_program(arena, &partition.kernels[0], NULL, &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    program->name = tl_arena_format(arena, "kernel_of_%s", names);
    return program;
}

static void keys(void **state)
{
    char a[33], b[33], c[33], ca[33], cc[33];
    const tl_program *one = first_program(*state, "3", "a"),
                     *same = first_program(*state, "3", "x");
    const tl_program *larger = first_program(*state, "5", "a");
    tl_workload_key(*state, one, a);
    tl_workload_key(*state, same, b);
    tl_workload_key(*state, larger, c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    tl_class_key(*state, one, ca);
    tl_class_key(*state, larger, cc);
    assert_string_equal(ca, cc);
    assert_int_equal(tl_program_flops(one), 2 * 3 * 4 * 6);
    assert_int_equal(tl_program_bytes(one), 4 * (3 * 4 + 4 * 6 + 3 * 6));
}

static void unknown_lowering_is_refused(void **state)
{
    tl_graph *g =
        prepared_graph(*state, "graph g\ninput x: f32[3]\ny: ?[...] = Relu(x)\noutput y\n",
                       "x86-64");
    tl_diag diag = { { 0 } };
    tl_partition partition;
    tl_program *program;
    assert_int_equal(tl_partition_graph(*state, g, &partition, &diag), TL_OK);
    assert_int_equal(tl_kernel_program(*state, &partition.kernels[0], "magic", &program, &diag),
                     TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "kernel relu_0 has no lowering 'magic'"));
}

/* Whatever is fused, the numbers stay those of node by node. */
static void large_expressions_are_written_down(void **state)
{
    tl_arena *arena = *state;
    const char *nodes = "";
    for (int i = 0; i < 12; i++)
        nodes = tl_arena_format(arena, "%sg%d: ?[...] = Gelu(%s%d)\n", nodes, i + 1, "g", i);
    const char *text = tl_arena_format(arena, "graph g\ninput g0: f32[3]\n%soutput g12\n", nodes);
    tl_graph *g = prepared_graph(arena, text, "x86-64");
    float x[3] = { -1, 2, 5 }, want[3];
    for (int i = 0; i < 3; i++) {
        double v = (double)x[i];
        for (int k = 0; k < 12; k++)
            v = 0.5 * v * (1 + erf(v * sqrt(0.5)));
        want[i] = (float)v;
    }
    assert_close(run_graph(arena, g, (void *[]){ x }, 0), want, 3, "twelve GELUs");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(families),
        cmocka_unit_test_setup_teardown(forms, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(plain_values, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(keys, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(unknown_lowering_is_refused, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(large_expressions_are_written_down, arena_setup,
                                        arena_teardown),
    };
    return cmocka_run_group_tests_name("partition", tests, NULL, NULL);
}
