/* tests/frontend/test_shapes.c: shape inference as a table: nodes, and the type of the last value or a part of the
 * sentence that refuses them. */
#include "tests/frontend/lower_helpers.h"

#define INPUTS                                                                                     \
    "graph g\ninput x: f32[2, 6, 9, 8]\ninput w: f32[4, 3, 3, 3]\ninput a: f32[5, 7]\ninput b: "   \
    "f32[7, 3]\n"                                                                                  \
    "input i: i64[3]\ninput f: bool[2]\ninput h: f16[2]\n"                                         \
    "input rx: f32[6, 2, 15]\ninput rw: f32[2, 15, 5]\ninput lx: f32[6, 2, 16]\ninput lw: f32[2, " \
    "16, 4]\nconst rz: f32[1, 1, 1] = [0.0]\n"

/* A cell of two activations. */
#define RECURRENT(inputs, cell)                                                              \
    "y: ?[...] = Recurrent(" inputs ") {cell = \"" cell "\", activations = [2, 1], alpha = " \
    "[0.0, 0.0], beta = [0.0, 0.0]}"

static const struct {
    const char *nodes, *expected;
} cases[] = {
    { "y: ?[...] = Add(a, a)", "f32[5, 7]" },
    { "y: ?[...] = Add(a, b)", "node 'y' (Add): 'b' f32[7, 3] does not broadcast" },
    { "y: ?[...] = Add(a, i)", "'a' f32[5, 7] and 'i' i64[3] should have one dtype" },
    { "y: ?[...] = Add(f, f)", "bool has no arithmetic" },
    { "y: ?[...] = Sqrt(i)", "should be of a float dtype" },
    { "y: ?[...] = And(f, i)", "should be bool" },
    { "y: ?[...] = Fmod(a, a)", "f32[5, 7]" },
    { "y: ?[...] = Fmod(i, i)", "should be of a float dtype" },
    { "y: ?[...] = Asin(i)", "should be of a float dtype" },
    { "y: ?[...] = BitwiseXor(i, i)", "i64[3]" },
    { "y: ?[...] = BitwiseAnd(a, a)", "should be of an integer dtype" },
    { "y: ?[...] = BitwiseOr(f, f)", "should be of an integer dtype" },
    { "y: ?[...] = BitwiseNot(i)", "i64[3]" },
    { "y: ?[...] = ShiftLeft(i, i)", "should be of an unsigned dtype" },
    { "u: ?[...] = Cast(a) {to = u8}\nv: ?[...] = Cast(i) {to = u8}\ny: ?[...] = ShiftRight(u, v)",
      "does not broadcast" },
    { "y: ?[...] = ReduceProd(x) {axes = [0, -1], keepdims = 0}", "f32[6, 9]" },
    { "y: ?[...] = Less(a, a)", "bool[5, 7]" },
    { "y: ?[...] = Conv(x, w) {group = 2}", "f32[2, 4, 7, 6]" },
    { "y: ?[...] = Conv(x, w)", "in 1 groups do not fit the input 'x' f32[2, 6, 9, 8]" },
    { "y: ?[...] = Conv(x, w) {group = 0}", "in 0 groups" },
    { "y: ?[...] = Conv(x, w) {group = 2, auto_pad = \"SAME_UPPER\", strides = [2, 3]}",
      "f32[2, 4, 5, 3]" },
    { "y: ?[...] = Conv(x, w) {group = 2, auto_pad = \"SAME_LOWER\"}", "f32[2, 4, 9, 8]" },
    { "y: ?[...] = Conv(x, w) {group = 2, auto_pad = \"VALID\", pads = [1, 1, 1, 1]}",
      "f32[2, 4, 7, 6]" },
    { "y: ?[...] = Conv(x, w) {group = 2, auto_pad = \"SAME\"}", "auto_pad 'SAME' is unknown" },
    { "y: ?[...] = Conv(x, w) {group = 2, dilations = [4, 4], pads = [1, 1, 1, 1]}",
      "f32[2, 4, 3, 2]" },
    { "y: ?[...] = Conv(x, w) {group = 2, dilations = [5, 5]}", "is larger than the padded input" },
    { "y: ?[...] = Conv(x, w) {group = 2, strides = [0, 1]}", "strides: 0 is not in 1.." },
    { "y: ?[...] = Conv(x, w) {group = 2, pads = [0, 0, -1, 0]}", "pads: -1 is not in 0.." },
    { "y: ?[...] = Conv(x, w) {group = 2, pads = [0, 0]}", "should have 4 numbers" },
    { "y: ?[...] = Conv(x, w) {group = 2, dilations = [9223372036854775807, 1]}", "is not in 1.." },
    { "y: ?[...] = Conv(a, b)", "should have 1 to 3 spatial axes" },
    { "y: ?[...] = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2]}", "f32[2, 6, 4, 3]" },
    { "y: ?[...] = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1}",
      "f32[2, 6, 4, 4]" },
    { "y: ?[...] = MaxPool(x) {kernel_shape = [1, 1], strides = [4, 3], pads = [0, 0, 3, 1], "
      "ceil_mode = 1}",
      "f32[2, 6, 3, 3]" },
    { "y: ?[...] = MaxPool(x)", "kernel_shape: 0 is not in 1" },
    { "y: ?[...] = GlobalAveragePool(x)", "f32[2, 6, 1, 1]" },
    { "y: ?[...] = MatMul(a, b)", "f32[5, 3]" },
    { "y: ?[...] = MatMul(b, a)", "'b' f32[7, 3] and 'a' f32[5, 7] do not multiply" },
    { "y: ?[...] = Gemm(a, a) {transB = 1}", "f32[5, 5]" },
    { "y: ?[...] = Gemm(a, a)", "do not multiply" },
    { "y: ?[...] = Gemm(a, b, a)", "does not broadcast to [5, 3]" },
    { "y: ?[...] = Reshape(x) {shape = [0, -1, 3]}", "f32[2, 144, 3]" },
    { "y: ?[...] = Reshape(x) {shape = [-1, -1]}", "has two -1" },
    { "y: ?[...] = Reshape(x) {shape = [5, -1]}", "does not fit into shape [5, -1]" },
    { "y: ?[...] = Reshape(x, i)", "decides a shape and is not a constant" },
    { "s: ?[...] = Shape(x)\ng: ?[...] = Slice(s) {starts = [1], ends = [3]}\n"
      "const n: i64[1] = [-1]\nc: ?[...] = Concat(g, n) {axis = 0}\ny: ?[...] = Reshape(x, c)",
      "f32[6, 9, 16]" },
    { "y: ?[...] = Transpose(x) {perm = [0, 2, 3, 1]}", "f32[2, 9, 8, 6]" },
    { "y: ?[...] = Transpose(x) {perm = [0, 2, 2, 1]}", "is no permutation" },
    { "y: ?[...] = Concat(a, a) {axis = -1}", "f32[5, 14]" },
    { "y: ?[...] = Concat(a, b) {axis = 0}", "does not join" },
    { "y: ?[...] = Concat(a, a) {axis = 2}", "axis 2 is not in -2..1 of a rank 2" },
    { "y: ?[...] = Slice(x) {starts = [1, 1], ends = [9, 9], axes = [1, -3]}",
      "axes name axis 1 twice" },
    { "y: ?[...] = Slice(x) {starts = [1], ends = [9], steps = [0]}",
      "the step along axis 0 is 0" },
    { "y: ?[...] = Slice(x) {starts = [9223372036854775807], ends = [-9223372036854775808], axes = "
      "[3], "
      "steps = [-9223372036854775808]}",
      "f32[2, 6, 9, 1]" },
    { "_, y: ?[...] = Split(a) {axis = 0, split = [2, 3]}", "f32[3, 7]" },
    { "_, y: ?[...] = Split(a) {axis = 0}", "f32[2, 7]" },
    { "_, y: ?[...] = Split(a) {axis = 0, split = [2, 2]}", "its parts leave 1 of axis 0" },
    { "y: ?[...] = Pad(a) {pads = [0, 9223372036854775807, 0, 0]}", "overflows" },
    { "y: ?[...] = Pad(a) {pads = [0, 0, 0, 7], mode = \"reflect\"}", "is too short to reflect 7" },
    { "y: ?[...] = Gather(x, i) {axis = -2}", "f32[2, 6, 3, 8]" },
    { "y: ?[...] = Gather(x, a)", "should be i32 or i64" },
    { "const k: i64[] = [9]\ny: ?[...] = Gather(x, k) {axis = 2}",
      "node 'y' (Gather): element 0 of its indices 'k' i64[] is 9, outside of -9..8 (axis 2 of "
      "'x'" },
    { "const k: i64[2] = [8, -10]\ny: ?[...] = Gather(x, k) {axis = 2}",
      "element 1 of its indices 'k' i64[2] is -10" },
    { "const k: i32[2] = [-9223, 0]\ny: ?[...] = Gather(x, k)", "is -9223, outside of -2..1" },
    { "const k: i64[1, 2] = [2, 5]\ny: ?[...] = GatherElements(a, k)", "is 5, outside of -5..4" },
    { "const k: i64[2, 2] = [4, 6, 4, 7]\ny: ?[...] = GatherND(a, k)",
      "element 3 of its indices 'k' i64[2, 2] is 7, outside of -7..6 (axis 1 of 'a'" },
    { "e: ?[...] = Slice(a) {starts = [0], ends = [0]}\ny: ?[...] = Gather(e, i)",
      "axis 0 of 'e' f32[0, 7] is empty" },
    { "e: ?[...] = Slice(a) {starts = [0], ends = [0]}\nk: ?[...] = Slice(i) {starts = [0], ends = "
      "[0]}\ny: ?[...] = Gather(e, k)",
      "f32[0, 7]" },
    { "const z: i64[3] = [1, 0, 2]\ny: ?[...] = Div(i, z)",
      "node 'y' (Div): element 1 of its divisor 'z' i64[3] is 0" },
    { "const k: i64[1] = [0]\ny: ?[...] = GatherND(x, k) {batch_dims = 1}",
      "do not fit 'x' f32[2, 6, 9, 8] behind 1 batch axes" },
    { "const k: i64[2, 5, 2] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n"
      "y: ?[...] = GatherND(x, k) {batch_dims = 1}",
      "f32[2, 5, 8]" },
    { "const a0: f32[] = [inf]\nconst b0: f32[] = [1.0]\ny: ?[...] = Range(a0, b0, b0)",
      "it has -inf elements" },
    { "y: ?[...] = Expand(a) {shape = [2, 1, 7]}", "f32[2, 5, 7]" },
    { "y: ?[...] = Expand(a) {shape = [4, 7]}", "does not expand to [4, 7]" },
    { "y: ?[...] = Expand(a) {shape = [4611686018427387904, 5, 7]}", "the size of its output 'y'" },
    { "y: ?[...] = ReduceMean(x) {axes = [2, 3]}", "f32[2, 6, 1, 1]" },
    { "y: ?[...] = ReduceMean(x) {axes = [1, -3]}", "names axis 1 twice" },
    { "y: ?[...] = ReduceSum(x) {keepdims = 0}", "f32[]" },
    { "y: ?[...] = ArgMax(x) {axis = 1, keepdims = 0}", "i64[2, 9, 8]" },
    { "y: ?[...] = Softmax(x) {axis = 4}", "axis 4 is not in -4..3 of a rank 4" },
    { "y: ?[...] = LayerNormalization(x, i)", "should have one dtype" },
    { "y: ?[...] = Cast(x) {to = i8}", "i8[2, 6, 9, 8]" },
    { "y: ?[...] = Cast(x)", "does not say which dtype" },
    { "y: ?[...] = BitCast(x) {to = u32}", "u32[2, 6, 9, 8]" },
    { "y: ?[...] = BitCast(x)", "`to` should be a dtype of as many bits as" },
    { "y: ?[...] = BitCast(x) {to = f64}", "`to` should be a dtype of as many bits as" },
    { "y: ?[...] = BitCast(i) {to = u64}", "one of the two a float" },
    { "y: ?[...] = Squeeze(x) {axes = [0]}", "axis 0 of 'x' f32[2, 6, 9, 8] is not 1" },
    { "y: ?[...] = Unsqueeze(a) {axes = [0, 3]}", "f32[1, 5, 7, 1]" },
    { "y: ?[...] = Attention(x, x, x)", "do not fit together" },
    { RECURRENT("rx, rw, rz", "gru"), "f32[6, 2, 5]" },
    { RECURRENT("rx, x, rz", "gru"), "'rx' f32[6, 2, 15] and 'x' f32[2, 6, 9, 8] are no steps of" },
    { "y: ?[...] = Recurrent(rx, rw, rz) {cell = \"gru\", activations = [2, 99], alpha = [0.0, "
      "0.0], "
      "beta = [0.0, 0.0]}",
      "there is no activation 99" },
    { RECURRENT("rx, rw, rz", "cell"), "there is no cell 'cell'" },
    { RECURRENT("rx, rw, rz", "rnn"), "a cell rnn has 1 activations, each with alpha and beta" },
    { "y: ?[...] = Recurrent(lx, lw, rz) {cell = \"lstm\", activations = [2, 1, 1], alpha = [0.0, "
      "0.0, 0.0], beta = [0.0, 0.0, 0.0]}",
      "a cell lstm needs input 3" },
    { RECURRENT("rx, rw, rz, rz", "gru"), "a cell gru has no input 3" },
    { RECURRENT("rx, rw, rz, _, _, _, rz", "gru"), "a cell gru has no input 6" },
    { RECURRENT("rx, rw, rz, _, rz", "gru"), "'rz' f32[1, 1, 1] does not fit [6, 2]" },
    { RECURRENT("rx, rw, rx", "gru"), "does not fit [2, 2, 5]" },
};

static const char *type_text(tl_arena *arena, const tl_value *v)
{
    const char *text = tl_arena_format(arena, "%s[", tl_dtype_infos[v->dtype].text);
    for (int i = 0; i < v->shape.rank; i++)
        text = tl_arena_format(arena, "%s%s%lld", text, i > 0 ? ", " : "",
                               (long long)v->shape.dims[i].extent);
    return tl_arena_format(arena, "%s]", text);
}

static void shapes(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tl_arena *arena = tl_arena_create(0);
        const char *text = tl_arena_format(arena, "%s%s\noutput y\n", INPUTS, cases[k].nodes);
        tl_diag diag = { { 0 } };
        tl_graph *g = parse_graph(arena, text);
        tl_status status = tl_infer_shapes(g, &diag);
        const char *got = status == TL_OK ? type_text(arena, g->outputs[0]) : diag.text;
        bool right = status == TL_OK ? strcmp(got, cases[k].expected) == 0
                                     : strstr(got, cases[k].expected) != NULL;
        if (!right || status == TL_INTERNAL || status == TL_BAD_IR)
            fail_msg("%s\n  gives   %s\n  should  %s", cases[k].nodes, got, cases[k].expected);
        if (status == TL_OK) { /* what was normalised stays as it is */
            if (tl_infer_shapes(g, &diag) != TL_OK || tl_graph_verify(g, &diag) != TL_OK)
                fail_msg("%s, once more: %s", cases[k].nodes, diag.text);
            assert_string_equal(type_text(arena, g->outputs[0]), cases[k].expected);
        }
        tl_arena_destroy(arena);
    }
}

static void symbolic_input_is_refused(void **state)
{
    tl_diag diag = { { 0 } };
    tl_graph *g =
        parse_graph(*state, "graph g\ninput x: f32[batch, 3]\ny: ?[...] = Relu(x)\noutput y\n");
    assert_int_equal(tl_infer_shapes(g, &diag), TL_UNBOUND);
    assert_non_null(strstr(diag.text, "axis 0 of graph input 'x' (batch) is open"));
}

/* Nodes that are not supported are all named; those that read their results are not. */
static void refusals_are_collected(void **state)
{
    tl_diag diag = { { 0 } };
    tl_graph *g = parse_graph(
        *state, "graph g\ninput x: f32[2, 3]\ninput b: bool[2]\n"
                "p: ?[...] = Pad(x) {mode = \"odd\", pads = [0, 0, 1, 1]}\nq: ?[...] = Relu(p)\n"
                "r: ?[...] = ReduceMax(b)\ns: ?[...] = Concat(r, q) {axis = 9}\noutput q\n"
                "output s\n");
    assert_int_equal(tl_infer_shapes(g, &diag), TL_UNSUPPORTED);
    assert_string_equal(diag.text, "node 'p' (Pad): its mode 'odd' is unknown\n"
                                   "  node 'r' (ReduceMax): 'b' bool[2]: bool is not reduced");
    g = parse_graph(*state, "graph g\ninput x: f32[2, 3]\n"
                            "p: ?[...] = Pad(x) {mode = \"odd\", pads = [0, 0, 1, 1]}\n"
                            "r: ?[...] = Softmax(x) {axis = 5}\noutput p\noutput r\n");
    assert_int_equal(tl_infer_shapes(g, &diag), TL_BAD_MODEL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test_setup_teardown(symbolic_input_is_refused, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(refusals_are_collected, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests_name("shape inference", tests, NULL, NULL);
}
