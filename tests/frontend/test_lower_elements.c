/* tests/frontend/test_lower_elements.c: operators on single elements and on indices. A case is a graph of one or
 * few nodes over x = [2, 3, 4] of 0, 1, 2, ... (f32), i = [0, -1, 2] (i64), t = [3] f32; outputs compare as texts of the
 * first elements. */
#include "tests/frontend/lower_helpers.h"

static const struct {
    const char *nodes, *dtype_and_shape, *first;
} cases[] = {
    { "y: ?[...] = Neg(x)", "f32[2, 3, 4]", "-0 -1 -2 -3" },
    { "y: ?[...] = Transpose(x) {perm = [2, 0, 1]}", "f32[4, 2, 3]", "0 4 8 12 16 20 1 5" },
    { "y: ?[...] = Transpose(x)", "f32[4, 3, 2]", "0 12 4 16 8 20 1" },
    { "y: ?[...] = Reshape(x) {shape = [6, 4]}\nz: ?[...] = Transpose(y)", "f32[4, 6]",
      "0 4 8 12 16 20 1" },
    { "a: ?[...] = Transpose(x)\ny: ?[...] = Reshape(a) {shape = [-1, 4]}", "f32[6, 4]",
      "0 12 4 16 8 20 1 13" },
    { "y: ?[...] = Reshape(x) {shape = [0, -1, 2]}", "f32[2, 6, 2]", "0 1 2 3" },
    { "y: ?[...] = Flatten(x) {axis = 2}\nz: ?[...] = Neg(y)", "f32[6, 4]", "-0 -1 -2" },
    { "y: ?[...] = Unsqueeze(x) {axes = [0, -1]}\nz: ?[...] = Squeeze(y)", "f32[2, 3, 4]",
      "0 1 2" },
    { "y: ?[...] = Slice(x) {starts = [1, -3], ends = [100, -1], axes = [1, 2]}", "f32[2, 2, 2]",
      "5 6 9 10 17 18 21 22" },
    { "y: ?[...] = Slice(x) {starts = [-1], ends = [-100], axes = [2], steps = [-2]}",
      "f32[2, 3, 2]", "3 1 7 5 11 9" },
    { "y: ?[...] = Slice(x) {starts = [3], ends = [1], axes = [2]}", "f32[2, 3, 0]", "" },
    { "y: ?[...] = Concat(x, x) {axis = 1}", "f32[2, 6, 4]",
      "0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11 12 13" },
    { "y: ?[...] = Pad(x) {pads = [0, 0, 1, 0, -1, 2]}", "f32[2, 2, 7]", "0 0 1 2 3 0 0 0 4 5" },
    { "y: ?[...] = Pad(x) {pads = [0, 0, 2, 0, 0, 1], mode = \"reflect\"}", "f32[2, 3, 7]",
      "2 1 0 1 2 3 2 6 5 4" },
    { "y: ?[...] = Pad(x) {pads = [0, 0, 2, 0, 0, 1], mode = \"edge\"}", "f32[2, 3, 7]",
      "0 0 0 1 2 3 3 4" },
    { "y: ?[...] = Pad(x) {pads = [0, 0, 2, 0, 0, 1], mode = \"wrap\"}", "f32[2, 3, 7]",
      "2 3 0 1 2 3 0 6" },
    { "const v: f32[] = [9.0]\ny: ?[...] = Pad(x, _, v) {pads = [1, 0, 0, 0, 0, 0]}",
      "f32[3, 3, 4]", "9 9 9 9 9 9 9 9 9 9 9 9 0 1" },
    { "y: ?[...] = Gather(x, i) {axis = 1}", "f32[2, 3, 4]", "0 1 2 3 8 9 10 11 8 9 10 11 12" },
    /* out of range, and no memory is read to see it: clamped like any index that is computed */
    { "const k: i64[] = [7]\nd: ?[...] = Sub(i, i)\ne: ?[...] = Add(d, k)\n"
      "y: ?[...] = Gather(x, e) {axis = 2}",
      "f32[2, 3, 3]", "3 3 3 7" },
    { "const k: i64[] = [-9]\nd: ?[...] = Sub(i, i)\ne: ?[...] = Add(d, k)\n"
      "y: ?[...] = Gather(x, e) {axis = 2}",
      "f32[2, 3, 3]", "0 0 0 4" },
    { "const k: i64[] = [-1]\ny: ?[...] = Gather(x, k) {axis = 0}", "f32[3, 4]", "12 13 14" },
    { "const k: i64[2, 1, 1] = [1, 2]\ny: ?[...] = GatherElements(x, k) {axis = 1}", "f32[2, 1, 1]",
      "4 20" },
    { "const k: i64[2, 2] = [0, 1, -1, 2]\ny: ?[...] = GatherND(x, k) {batch_dims = 0}",
      "f32[2, 4]", "4 5 6 7 20 21 22 23" },
    { "const k: i64[2, 1, 2] = [0, 3, 2, -1]\ny: ?[...] = GatherND(x, k) {batch_dims = 1}",
      "f32[2, 1]", "3 23" },
    /* the last of several updates stays; -1 is the last position */
    { "const k: i64[1, 3, 1] = [0, -1, 0]\nconst u: f32[1, 3, 1] = [7.0, 8.0, 9.0]\n"
      "y: ?[...] = ScatterElements(x, k, u) {axis = 1}",
      "f32[2, 3, 4]", "9 1 2 3 4 5 6 7 8 9 10 11 12" },
    { "const k: i64[1, 3, 1] = [0, -1, 0]\nconst u: f32[1, 3, 1] = [7.0, 8.0, 9.0]\n"
      "y: ?[...] = ScatterElements(x, k, u) {axis = 1, reduction = \"add\"}",
      "f32[2, 3, 4]", "16 1 2 3 4 5 6 7 16 9" },
    { "const k: i64[2, 2] = [0, 1, -1, 2]\nconst u: f32[2, 4] = [1.5, 1.5, 1.5, 1.5, 2.5, 2.5, "
      "2.5, 2.5]\n"
      "y: ?[...] = ScatterND(x, k, u) {reduction = \"none\"}",
      "f32[2, 3, 4]", "0 1 2 3 1.5 1.5 1.5 1.5 8 9 10 11 12 13 14 15 16 17 18 19 2.5" },
    { "const k: i64[3, 2] = [0, 0, 0, 0, 1, 1]\nconst u: f32[3, 4] = [2.0, 2.0, 2.0, 2.0, 1.0, "
      "1.0, 1.0, 9.0, 4.0, 4.0, 4.0, 40.0]\n"
      "y: ?[...] = ScatterND(x, k, u) {reduction = \"max\"}",
      "f32[2, 3, 4]", "2 2 2 9 4 5" },
    { "y: ?[...] = Cumulate(x) {axis = -1}", "f32[2, 3, 4]", "0 1 3 6 4 9 15 22" },
    { "y: ?[...] = Cumulate(x) {axis = 2, exclusive = 1}", "f32[2, 3, 4]", "0 0 1 3 0 4 9 15" },
    { "y: ?[...] = Cumulate(x) {axis = 2, reverse = 1, by = \"product\"}", "f32[2, 3, 4]",
      "0 6 6 3 840 210 42 7" },
    { "y: ?[...] = Cumulate(x) {axis = 2, reverse = 1, exclusive = 1, by = \"product\"}",
      "f32[2, 3, 4]", "6 6 3 1" },
    { "y: ?[...] = SortOrder(i) {axis = 0}", "i64[3]", "1 0 2" },
    { "y: ?[...] = SortOrder(t) {axis = 0, descending = 1}", "i64[3]", "2 0 1" },
    /* equal ones as they stand */
    { "a: ?[...] = Sub(x, x)\ny: ?[...] = SortOrder(a) {axis = 2, descending = 1}", "i64[2, 3, 4]",
      "0 1 2 3 0 1" },
    { "y: ?[...] = Expand(t) {shape = [2, 1]}", "f32[2, 3]", "0.5 -1.5 2.5 0.5 -1.5 2.5" },
    { "y: ?[...] = Split(i) {axis = 0}", "i64[3]", "0 -1 2" },
    { "y: ?[...] = Floor(t)", "f32[3]", "0 -2 2" },
    { "y: ?[...] = Round(t)", "f32[3]", "0 -2 2" },
    { "y: ?[...] = Ceil(t)", "f32[3]", "1 -1 3" },
    { "y: ?[...] = Abs(i)", "i64[3]", "0 1 2" },
    { "y: ?[...] = Relu(t)", "f32[3]", "0.5 0 2.5" },
    { "const l: f32[] = [-1.0]\nconst h: f32[1] = [1.0]\ny: ?[...] = Clip(t, l, h)", "f32[3]",
      "0.5 -1 1" },
    { "const h: f32[] = [1.0]\ny: ?[...] = Clip(t, _, h)", "f32[3]", "0.5 -1.5 1" },
    { "y: ?[...] = Cast(t) {to = i32}", "i32[3]", "0 -1 2" },
    { "y: ?[...] = Cast(i) {to = bool}", "bool[3]", "0 1 1" },
    { "y: ?[...] = BitCast(t) {to = i32}", "i32[3]", "1056964608 -1077936128 1075838976" },
    { "y: ?[...] = BitCast(i) {to = f64}", "f64[3]", "0 nan" },
    { "h: ?[...] = Cast(t) {to = f16}\ny: ?[...] = BitCast(h) {to = bf16}", "bf16[3]",
      "3.05176e-05 -0.125 8" },
    /* a constant keeps the bits that computing would lose */
    { "const s: i32[3] = [1, 2147483647, -2147483648]\nf: ?[...] = BitCast(s) {to = f32}\n"
      "y: ?[...] = BitCast(f) {to = i32}",
      "i32[3]", "1 2147483647 -2147483648" },
    { "y: ?[...] = Reciprocal(t)", "f32[3]", "2 -0.666667 0.4" },
    { "y: ?[...] = Gelu(t)", "f32[3]", "0.345731 -0.100211 2.48448" },
    { "y: ?[...] = Gelu(t) {approximate = \"tanh\"}", "f32[3]", "0.345714 -0.100428 2.48492" },
    { "y: ?[...] = Sigmoid(t)", "f32[3]", "0.622459 0.182426 0.924142" },
    { "const e: f32[] = [2.0]\ny: ?[...] = Pow(t, e)", "f32[3]", "0.25 2.25 6.25" },
    { "const e: i64[] = [3]\ny: ?[...] = Pow(i, e)", "i64[3]", "0 -1 8" },
    { "y: ?[...] = Div(i, i)\nz: ?[...] = Sub(i, i)\nw: ?[...] = Max(i, z)", "i64[3]", "0 0 2" },
    { "const two: i64[] = [2]\ny: ?[...] = Div(i, two)", "i64[3]", "0 0 1" },
    { "const z: i64[] = [0]\nc: ?[...] = Less(i, z)\nn: ?[...] = Not(c)\n"
      "d: ?[...] = GreaterOrEqual(i, z)\ne: ?[...] = And(n, d)\ny: ?[...] = Where(e, i, z)",
      "i64[3]", "0 0 2" },
    { "y: ?[...] = Equal(i, i)", "bool[3]", "1 1 1" },
    { "const b: f32[3] = [0.2, 1.0, -2.0]\ny: ?[...] = Fmod(t, b)", "f32[3]", "0.1 -0.5 0.5" },
    { "const b: i64[3] = [5, 6, -3]\ny: ?[...] = BitwiseAnd(i, b)", "i64[3]", "0 6 0" },
    { "const b: i64[3] = [5, 6, -3]\ny: ?[...] = BitwiseOr(i, b)", "i64[3]", "5 -1 -1" },
    { "const b: i64[3] = [5, 6, -3]\ny: ?[...] = BitwiseXor(i, b)", "i64[3]", "5 -7 -1" },
    { "c: ?[...] = Cast(i) {to = u16}\ny: ?[...] = BitwiseNot(c)", "u16[3]", "65535 0 65533" },
    { "c: ?[...] = Cast(i) {to = u8}\nconst b: u8[3] = [1, 3, 8]\ny: ?[...] = ShiftLeft(c, b)",
      "u8[3]", "0 248 0" },
    { "c: ?[...] = Cast(i) {to = u32}\nconst b: u32[3] = [1, 30, 32]\n"
      "y: ?[...] = ShiftRight(c, b)",
      "u32[3]", "0 3 0" },
    /* below the smallest normal number: zero for all that computes, be it folded, a literal or read */
    { "const s: f32[4] = [1e-38, -1e-38, 1e-45, 1.2e-38]\nconst b: f32[] = [1e30]\n"
      "y: ?[...] = Mul(s, b)",
      "f32[4]", "0 -0 0 1.2e-08" },
    { "const s: f32[4] = [1e-38, -1e-38, 1e-45, 1.2e-38]\nconst z: f32[] = [0.0]\n"
      "y: ?[...] = Equal(s, z)",
      "bool[4]", "1 1 1 0" },
    { "const s: f32[] = [1e-38]\nconst b: f32[] = [1e30]\nu: ?[...] = Mul(s, b)\n"
      "y: ?[...] = Add(t, u)",
      "f32[3]", "0.5 -1.5 2.5" },
    { "const s: f32[2] = [1e-38, 2e-38]\ny: ?[...] = Cast(s) {to = f64}", "f64[2]", "0 2e-38" },
    { "const s: f64[2] = [1e-310, 1e-300]\ny: ?[...] = Sqrt(s)", "f64[2]", "0 1e-150" },
    { "const s: f64[2] = [1e-310, 1e-300]\ny: ?[...] = Log(s)", "f64[2]", "-inf -690.776" },
    { "const s: f16[2] = [6e-8, -6e-8]\nconst b: f16[] = [1024.0]\ny: ?[...] = Mul(s, b)", "f16[2]",
      "6.10352e-05 -6.10352e-05" },
    { "const s: f32[3] = [1e-10, -1e-10, -100.0]\ny: ?[...] = Expm1(s)", "f32[3]",
      "1e-10 -1e-10 -1" },
    { "const s: f32[3] = [1e-10, -1e-10, 2.0]\ny: ?[...] = Log1p(s)", "f32[3]",
      "1e-10 -1e-10 1.09861" },
    { "y: ?[...] = Tan(t)", "f32[3]", "0.546302 -14.1014 -0.747022" },
    { "y: ?[...] = Asin(t)", "f32[3]", "0.523599 nan nan" },
    { "y: ?[...] = Acos(t)", "f32[3]", "1.0472 nan nan" },
    { "y: ?[...] = Atan(t)", "f32[3]", "0.463648 -0.982794 1.19029" },
    { "y: ?[...] = Sinh(t)", "f32[3]", "0.521095 -2.12928 6.0502" },
    { "const b: f32[2] = [89.0, -89.0]\ny: ?[...] = Sinh(b)", "f32[2]",
      "2.24481e+38 -2.24481e+38" },
    { "const b: f32[2] = [89.0, -89.0]\ny: ?[...] = Cosh(b)", "f32[2]", "2.24481e+38 2.24481e+38" },
    { "y: ?[...] = Cosh(t)", "f32[3]", "1.12763 2.35241 6.13229" },
    { "y: ?[...] = Asinh(t)", "f32[3]", "0.481212 -1.19476 1.64723" },
    { "y: ?[...] = Acosh(t)", "f32[3]", "nan nan 1.5668" },
    { "y: ?[...] = Atanh(t)", "f32[3]", "0.549306 nan nan" },
    { "const n: f32[3] = [nan, nan, nan]\ny: ?[...] = ArgMax(n)", "i64[1]", "0" },
    { "const n: f32[3] = [nan, nan, nan]\ny: ?[...] = ArgMax(n) {select_last_index = 1}", "i64[1]",
      "2" },
    { "const n: f32[3] = [1.0, nan, 2.0]\ny: ?[...] = ArgMax(n)", "i64[1]", "1" },
    { "y: ?[...] = ReduceProd(t)", "f32[1]", "-1.875" },
    { "y: ?[...] = ReduceProd(i)", "i64[1]", "0" },
    { "e: ?[...] = Slice(t) {starts = [3], ends = [3]}\ny: ?[...] = ReduceProd(e)", "f32[1]", "1" },
    { "s: ?[...] = Shape(x)\ny: ?[...] = ConstantOfShape(s) {value = 7.0, dtype = i32}",
      "i32[2, 3, 4]", "7 7" },
    { "const a: f32[] = [1.0]\nconst b: f32[] = [2.1]\nconst c: f32[] = [0.25]\n"
      "r: ?[...] = Range(a, b, c)\ny: ?[...] = Identity(r)",
      "f32[5]", "1 1.25 1.5 1.75 2" },
    { "const a: i64[] = [5]\nconst b: i64[] = [-2]\nconst c: i64[] = [-3]\nr: ?[...] = Range(a, b, "
      "c)\n"
      "y: ?[...] = Neg(r)",
      "i64[3]", "-5 -2 1" },
    { "const g: f32[3] = [2.0, 2.0, 2.0]\nconst o: f32[3] = [0.0, 0.0, 1.0]\n"
      "const v: f32[3] = [4.0, 4.0, 4.0]\ny: ?[...] = BatchNormalization(x, g, o, o, v) {epsilon = "
      "0.0}",
      "f32[2, 3, 4]", "0 1 2 3 4 5 6 7 8 9 10 11 12" },
};

static const char *element_text(tl_arena *arena, tl_dtype dtype, const void *data, size_t i)
{
    tl_number v = tl_number_load(dtype, data, i);
    return tl_dtype_is_float(dtype) ? tl_arena_format(arena, "%g", isnan(v.f) ? NAN : v.f)
                                    : tl_arena_format(arena, "%lld", (long long)v.i);
}

static void one_case(size_t k, const char *target, bool prepare)
{
    tl_arena *arena = tl_arena_create(0);
    const char *nodes = cases[k].nodes, *last = nodes;
    for (const char *at = nodes; *at != '\0'; at++)
        if (at[0] == '\n')
            last = at + 1;
    const char *text = tl_arena_format(
        arena,
        "graph g\ninput x: f32[2, 3, 4]\ninput i: i64[3]\ninput t: f32[3]\n%s\noutput %.*s\n",
        nodes, (int)strcspn(last, ":"), last);
    tl_diag diag = { { 0 } };
    tl_graph *g = parse_graph(arena, text);
    tl_target machine;
    if ((prepare ? tl_graph_prepare(g, TL_NUMERICS_RELAXED, &diag) : tl_infer_shapes(g, &diag)) !=
            TL_OK ||
        tl_graph_run_pass(g, "split_to_slices", NULL, &diag) != TL_OK ||
        tl_target_named(target, &machine, &diag) != TL_OK ||
        tl_assign_layouts(g, &machine, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, text);
    float x[24], t[3] = { 0.5f, -1.5f, 2.5f };
    int64_t i[3] = { 0, -1, 2 };
    for (int e = 0; e < 24; e++)
        x[e] = (float)e;
    void *got = run_graph(arena, g, (void *[]){ x, i, t }, 0);

    const tl_value *y = g->outputs[0];
    const char *shape = tl_dtype_infos[y->dtype].text, *elements = "";
    for (int a = 0; a < y->shape.rank; a++)
        shape = tl_arena_format(arena, "%s%s%d", shape, a == 0 ? "[" : ", ",
                                (int)y->shape.dims[a].extent);
    assert_string_equal(tl_arena_format(arena, "%s]", shape), cases[k].dtype_and_shape);
    int count = 0;
    for (const char *at = cases[k].first; *at != '\0'; at++)
        count += at == cases[k].first || at[-1] == ' ';
    for (int e = 0; e < count; e++)
        elements = tl_arena_format(arena, "%s%s%s", elements, e == 0 ? "" : " ",
                                   element_text(arena, y->dtype, got, (size_t)e));
    if (strcmp(elements, cases[k].first) != 0)
        fail_msg("%s\ngives  %s\nshould %s", text, elements, cases[k].first);
    tl_arena_destroy(arena);
}

static void elements(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        one_case(k, "x86-64-v3", false);
        one_case(k, "x86-64-v3", true);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(elements) };
    return cmocka_run_group_tests_name("lowerings of elements", tests, NULL, NULL);
}
