/* tests/frontend/test_lower_math.c: products, reductions, normalisations and attention, interpreted, against plain
 * loops. */
#include "tests/frontend/lower_helpers.h"

static float *run_text(tl_arena *arena, const char *text, void *const *inputs)
{
    tl_graph *g = prepared_graph(arena, text, "x86-64-v3");
    return run_graph(arena, g, inputs, 0);
}

static void reference_product(const float *a, const float *b, int m, int n, int k, bool ta, bool tb,
                              float *y)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum +=
                    (double)a[ta ? p * m + i : i * k + p] * (double)b[tb ? j * k + p : p * n + j];
            y[i * n + j] = (float)sum;
        }
}

static void gemm(void **state)
{
    tl_arena *arena = *state;
    static const int sizes[][3] = { { 1, 1, 1 }, { 3, 5, 7 }, { 4, 8, 16 }, { 1, 9, 2 } };
    for (int s = 0; s < 4; s++)
        for (int form = 0; form < 4; form++) {
            int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            bool ta = form & 1, tb = form & 2;
            float *a = random_floats(arena, m * k, 1), *b = random_floats(arena, k * n, 2);
            float *c = random_floats(arena, n, 3), *want = TL_NEW_ARRAY(arena, float, m *n);
            const char *text = tl_arena_format(
                arena,
                "graph g\ninput a: f32[%d, %d]\ninput b: f32[%d, %d]\ninput c: f32[%d]\n"
                "y: ?[...] = Gemm(a, b, c) {transA = %d, transB = %d, alpha = 0.5, beta = 2.0}\n"
                "z: ?[...] = Relu(y)\noutput z\n",
                ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n, n, ta, tb);
            reference_product(a, b, m, n, k, ta, tb, want);
            for (int i = 0; i < m * n; i++)
                want[i] = fmaxf(0.5f * want[i] + 2 * c[i % n], 0);
            assert_close(run_text(arena, text, (void *[]){ a, b, c }), want, m * n, text);
        }
}

/* beta = 0: nothing of C counts. alpha = 0 is a factor like any other. */
static void gemm_without_c(void **state)
{
    float a[4] = { 1, 2, 3, 4 }, b[4] = { 1, 0, 0, 1 }, c[2] = { NAN, INFINITY };
    static const char *const betas[] = { "beta = 0.0", "beta = -0.0, alpha = 2.0" };
    for (int i = 0; i < 2; i++) {
        float want[4] = { 1, 2, 3, 4 };
        for (int e = 0; e < 4; e++)
            want[e] *= (float)(i + 1);
        const char *text = tl_arena_format(
            *state,
            "graph g\ninput a: f32[2, 2]\ninput b: f32[2, 2]\ninput c: f32[2]\n"
            "y: ?[...] = Gemm(a, b, c) {%s}\nz: ?[...] = Neg(y)\nw: ?[...] = Neg(z)\noutput w\n",
            betas[i]);
        assert_close(run_text(*state, text, (void *[]){ a, b, c }), want, 4, text);
    }
}

static void batched_matmul(void **state)
{
    tl_arena *arena = *state;
    enum { M = 3, N = 4, K = 5 };
    float *a = random_floats(arena, 2 * 3 * M * K, 1), *b = random_floats(arena, 3 * K * N, 2);
    float *want = TL_NEW_ARRAY(arena, float, 6 * M * N);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            reference_product(a + (i * 3 + j) * M * K, b + j * K * N, M, N, K, false, false,
                              want + (i * 3 + j) * M * N);
    const char *text = "graph g\ninput a: f32[2, 3, 3, 5]\ninput b: f32[3, 5, 4]\n"
                       "y: ?[...] = MatMul(a, b)\noutput y\n";
    assert_close(run_text(arena, text, (void *[]){ a, b }), want, 6 * M * N, text);

    text = "graph g\ninput a: f32[2, 3, 3, 5]\ninput b: f32[1, 1, 5, 4]\n"
           "y: ?[...] = MatMul(a, b)\noutput y\n";
    for (int i = 0; i < 6; i++)
        reference_product(a + i * M * K, b, M, N, K, false, false, want + i * M * N);
    assert_close(run_text(arena, text, (void *[]){ a, b }), want, 6 * M * N, text);

    text = "graph g\ninput a: f32[5]\ninput b: f32[3, 5, 4]\ny: ?[...] = MatMul(a, b)\noutput y\n";
    for (int i = 0; i < 3; i++)
        reference_product(a, b + i * K * N, 1, N, K, false, false, want + i * N);
    assert_close(run_text(arena, text, (void *[]){ a, b }), want, 3 * N, text);

    text = "graph g\ninput a: f32[5]\ninput b: f32[5]\ny: ?[...] = MatMul(a, b)\noutput y\n";
    reference_product(a, b, 1, 1, K, false, false, want);
    assert_close(run_text(arena, text, (void *[]){ a, b }), want, 1, text);
}

static void reductions(void **state)
{
    tl_arena *arena = *state;
    static const struct {
        const char *op, *attributes;
    } ops[] = { { "ReduceSum", "axes = [1]" },
                { "ReduceMean", "axes = [0, 2], keepdims = 0" },
                { "ReduceMax", "keepdims = 0" },
                { "ReduceMin", "axes = [-1]" },
                { "ReduceMean", "axes = [-1, -2]" } };
    static const bool reduced[5][3] = {
        { 0, 1, 0 }, { 1, 0, 1 }, { 1, 1, 1 }, { 0, 0, 1 }, { 0, 1, 1 }
    };
    enum { A = 3, B = 4, C = 5 };
    float *x = random_floats(arena, A * B * C, 9);
    for (int k = 0; k < 5; k++) {
        const bool *r = reduced[k];
        float want[A * B * C];
        int extents[3] = { r[0] ? 1 : A, r[1] ? 1 : B, r[2] ? 1 : C };
        int count = extents[0] * extents[1] * extents[2];
        for (int i = 0; i < count; i++)
            want[i] = k == 2 ? -INFINITY : k == 3 ? INFINITY : 0;
        for (int i = 0; i < A * B * C; i++) {
            int a = i / (B * C), b = i / C % B, c = i % C;
            float *w =
                &want[((r[0] ? 0 : a) * extents[1] + (r[1] ? 0 : b)) * extents[2] + (r[2] ? 0 : c)];
            *w = k == 2 ? fmaxf(*w, -x[i]) : k == 3 ? fminf(*w, -x[i]) : *w - x[i];
        }
        for (int i = 0; i < count; i++)
            want[i] = ops[k].op[6] == 'M' && ops[k].op[7] == 'e'
                          ? want[i] * (float)count / (A * B * C)
                          : want[i];
        const char *text = tl_arena_format(arena,
                                           "graph g\ninput x: f32[3, 4, 5]\nn: ?[...] = Neg(x)\n"
                                           "y: ?[...] = %s(n) {%s}\noutput y\n",
                                           ops[k].op, ops[k].attributes);
        assert_close(run_text(arena, text, (void *[]){ x }), want, count, text);
    }
}

static void empty_sum_is_zero(void **state)
{
    float nothing[1] = { 0 }, want[2] = { 0, 0 };
    const char *text =
        "graph g\ninput x: f32[2, 0]\ny: ?[...] = ReduceSum(x) {axes = [1]}\noutput y\n";
    assert_close(run_text(*state, text, (void *[]){ nothing }), want, 2, text);
}

static void argmax(void **state)
{
    float x[8] = { 1, 4, 4, 2, -1, -1, -3, -1 };
    static const char *const attributes[] = { "axis = 1", "axis = 1, select_last_index = 1" };
    static const int64_t want[2][2] = { { 1, 0 }, { 2, 3 } };
    for (int k = 0; k < 2; k++) {
        const char *text =
            tl_arena_format(*state,
                            "graph g\ninput x: f32[2, 4]\ny: ?[...] = ArgMax(x) {%s}\noutput y\n",
                            attributes[k]);
        int64_t *got = (int64_t *)(void *)run_text(*state, text, (void *[]){ x });
        for (int i = 0; i < 2; i++)
            assert_int_equal(got[i], want[k][i]);
    }
}

static void softmax(void **state)
{
    tl_arena *arena = *state;
    enum { A = 3, B = 5, C = 2 };
    float *x = random_floats(arena, A * B * C, 4), want[A * B * C];
    for (int a = 0; a < A; a++)
        for (int c = 0; c < C; c++) {
            double sum = 0;
            for (int b = 0; b < B; b++)
                sum += exp((double)x[(a * B + b) * C + c] * 50);
            for (int b = 0; b < B; b++)
                want[(a * B + b) * C + c] = (float)(exp((double)x[(a * B + b) * C + c] * 50) / sum);
        }
    const char *text = "graph g\ninput x: f32[3, 5, 2]\nconst s: f32[] = [50.0]\n"
                       "m: ?[...] = Mul(x, s)\ny: ?[...] = Softmax(m) {axis = 1}\noutput y\n";
    assert_close(run_text(arena, text, (void *[]){ x }), want, A * B * C, text);
}

static void layer_norm(void **state)
{
    tl_arena *arena = *state;
    enum { ROWS = 3, N = 10 };
    float *x = random_floats(arena, ROWS * N, 4), *s = random_floats(arena, N, 5);
    float *b = random_floats(arena, N, 6), want[ROWS * N];
    for (int r = 0; r < ROWS; r++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < N; i++)
            mean += (double)x[r * N + i] / N;
        for (int i = 0; i < N; i++)
            variance += ((double)x[r * N + i] - mean) * ((double)x[r * N + i] - mean) / N;
        for (int i = 0; i < N; i++)
            want[r * N + i] =
                (float)(((double)x[r * N + i] - mean) / sqrt(variance + 0.01) * (double)s[i] +
                        (double)b[i]);
    }
    const char *text =
        "graph g\ninput x: f32[3, 2, 5]\ninput s: f32[2, 5]\ninput b: f32[2, 5]\n"
        "y: ?[...] = LayerNormalization(x, s, b) {axis = 1, epsilon = 0.01}\noutput y\n";
    assert_close(run_text(arena, text, (void *[]){ x, s, b }), want, ROWS * N, text);
}

enum { HEADS = 2, ROWS = 3, COLUMNS = 5, DEPTH = 4, WIDTH = 3 };

static void reference_attention(const float *q, const float *k, const float *v, const float *mask,
                                float *y)
{
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < ROWS; i++) {
            double p[COLUMNS], sum = 0;
            for (int j = 0; j < COLUMNS; j++) {
                double s = 0;
                for (int d = 0; d < DEPTH; d++)
                    s += (double)q[i * HEADS * DEPTH + h * DEPTH + d] *
                         (double)k[j * HEADS * DEPTH + h * DEPTH + d];
                p[j] = exp(s * 0.5 + (double)mask[j]);
                sum += p[j];
            }
            for (int e = 0; e < WIDTH; e++) {
                double s = 0;
                for (int j = 0; j < COLUMNS; j++)
                    s += p[j] / sum * (double)v[j * HEADS * WIDTH + h * WIDTH + e];
                y[i * HEADS * WIDTH + h * WIDTH + e] = (float)s;
            }
        }
}

/* The pattern as exporters write it is recognised, and computes what the canonical operator computes. */
static void attention(void **state)
{
    tl_arena *arena = *state;
    float *q = random_floats(arena, ROWS * HEADS * DEPTH, 1);
    float *k = random_floats(arena, COLUMNS * HEADS * DEPTH, 2);
    float *v = random_floats(arena, COLUMNS * HEADS * WIDTH, 3);
    float mask[COLUMNS] = { 0, -1, 0, -100, 2 }, want[ROWS * HEADS * WIDTH];
    reference_attention(q, k, v, mask, want);
    const char *canonical =
        "graph g\ninput q: f32[1, 3, 8]\ninput k: f32[1, 5, 8]\ninput v: f32[1, 5, 6]\n"
        "input mask: f32[1, 1, 1, 5]\n"
        "y: ?[...] = Attention(q, k, v, mask) {heads = 2, scale = 0.5}\noutput y\n";
    assert_close(run_text(arena, canonical, (void *[]){ q, k, v, mask }), want,
                 ROWS * HEADS * WIDTH, canonical);

    const char *pieces =
        "graph g\ninput q: f32[1, 3, 8]\ninput k: f32[1, 5, 8]\ninput v: f32[1, 5, 6]\n"
        "input mask: f32[1, 1, 1, 5]\nconst two: f32[] = [2.0]\n"
        "q4: ?[...] = Reshape(q) {shape = [1, 3, 2, 4]}\nk4: ?[...] = Reshape(k) {shape = [1, 5, "
        "2, 4]}\n"
        "v4: ?[...] = Reshape(v) {shape = [1, 5, 2, 3]}\n"
        "qt: ?[...] = Transpose(q4) {perm = [0, 2, 1, 3]}\nkt: ?[...] = Transpose(k4) {perm = [0, "
        "2, 3, 1]}\n"
        "vt: ?[...] = Transpose(v4) {perm = [0, 2, 1, 3]}\ns: ?[...] = MatMul(qt, kt)\n"
        "d: ?[...] = Div(s, two)\nm: ?[...] = Add(d, mask)\np: ?[...] = Softmax(m) {axis = -1}\n"
        "o: ?[...] = MatMul(p, vt)\not: ?[...] = Transpose(o) {perm = [0, 2, 1, 3]}\n"
        "y: ?[...] = Reshape(ot) {shape = [1, 3, 6]}\noutput y\n";
    tl_graph *g = prepared_graph(arena, pieces, "x86-64-v3");
    assert_close(run_graph(arena, g, (void *[]){ q, k, v, mask }, 0), want, ROWS * HEADS * WIDTH,
                 pieces);
    tl_diag diag = { { 0 } };
    g = parse_graph(arena, pieces);
    if (tl_graph_prepare(g, TL_NUMERICS_RELAXED, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(g->node_count, 1);
    assert_int_equal(g->nodes[0]->op, TL_OP_ATTENTION);
    assert_close(run_graph(arena, g, (void *[]){ q, k, v, mask }, 0), want, ROWS * HEADS * WIDTH,
                 "recognised attention");
}

/* Keys block by block: a mask leaves out whole blocks at the end or the beginning, with an infinity or a large number;
 * scores so far apart that each block shrinks what came before it to nothing, and the other way round. */
static void online_attention(void **state)
{
    enum { LONG = 160, FEW = 64 };
    tl_arena *arena = *state;
    static const double out[] = { 0, -10000, -INFINITY };
    for (int kind = 0; kind < 6; kind++)
        for (int steep = -1; steep <= 1; steep++) {
            float *q = random_floats(arena, FEW * 8, 1), *k = random_floats(arena, LONG * 8, 2);
            float *v = random_floats(arena, LONG * 6, 3);
            float *mask = TL_NEW_ARRAY(arena, float, FEW *LONG);
            for (int i = 0; i < FEW; i++)
                for (int j = 0; j < LONG; j++)
                    mask[i * LONG + j] =
                        (float)((kind < 3 ? j > i + 3 : j < i + 90) ? out[kind % 3]
                                                                    : steep * j * 3);
            tl_graph *g = prepared_graph(
                arena,
                "graph g\ninput q: f32[1, 64, 8]\ninput k: f32[1, 160, 8]\ninput v: f32[1, 160, "
                "6]\ninput mask: f32[1, 1, 64, 160]\n"
                "y: ?[...] = Attention(q, k, v, mask) {heads = 2, scale = 0.5}\noutput y\n",
                "x86-64-v3");
            void *inputs[] = { q, k, v, mask };
            assert_close(run_lowering(arena, g, "online", inputs),
                         run_lowering(arena, g, "direct", inputs), FEW * 6, "online attention");
        }
}

/* Weights in the operands' dtype where tensor cores take it, and nowhere else. */
static void halves_are_for_tensor_cores(void **state)
{
    static const struct {
        const char *dtype, *target;
        tl_numerics numerics;
        const char *want;
    } cases[] = {
        { "bf16", "cuda,sm_80", TL_NUMERICS_RELAXED, "halves" },
        { "f16", "cuda,sm_90a", TL_NUMERICS_RELAXED, "halves" },
        { "f16", "cuda,sm_70", TL_NUMERICS_RELAXED, "direct" },
        { "f32", "cuda,sm_80", TL_NUMERICS_RELAXED, "direct" },
        { "f16", "cuda,sm_80", TL_NUMERICS_STRICT, "direct" },
        { "bf16", "x86-64-v3", TL_NUMERICS_RELAXED, "direct" },
    };
    tl_arena *arena = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { { 0 } };
        tl_partition partition;
        tl_target target;
        const char *type = cases[i].dtype;
        tl_graph *g = prepared_graph(
            arena,
            tl_arena_format(arena,
                            "graph g\ninput q: %s[1, 64, 64]\ninput k: %s[1, 96, 64]\ninput v: "
                            "%s[1, 96, 64]\ny: ?[...] = Attention(q, k, v) {heads = 1, scale = "
                            "0.5}\noutput y\n",
                            type, type, type),
            "x86-64-v3");
        assert_int_equal(tl_target_named(cases[i].target, &target, &diag), TL_OK);
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        assert_string_equal(tl_choose_lowering(&partition.kernels[0], &target, cases[i].numerics),
                            cases[i].want);
    }
}

/* All in registers where shared memory of a Hopper does not hold 32 rows of scores, 10 bytes each. */
static void long_halves_go_in_fragments(void **state)
{
    static const struct {
        const char *dtype, *target;
        int rows, keys, features;
        const char *want;
    } cases[] = {
        { "bf16", "cuda,sm_90a", 128, 768, 64, "fragments" },
        { "f16", "cuda,sm_90a", 64, 1056, 128, "fragments" },
        { "bf16", "cuda,sm_90a", 128, 704, 64, "halves" },
        { "bf16", "cuda,sm_90a", 100, 768, 64, "halves" }, /* rows that are no warpgroups' */
        { "bf16", "cuda,sm_90a", 128, 770, 64, "halves" },
        { "bf16", "cuda,sm_90a", 128, 768, 80, "halves" }, /* values as wide as no product */
        { "bf16", "cuda,sm_90", 128, 768, 64, "halves" },
        { "f32", "cuda,sm_90a", 128, 768, 64, "direct" },
    };
    tl_arena *arena = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { { 0 } };
        tl_partition partition;
        tl_target target;
        const char *type = cases[i].dtype;
        int rows = cases[i].rows, keys = cases[i].keys, features = cases[i].features;
        tl_graph *g = prepared_graph(
            arena,
            tl_arena_format(arena,
                            "graph g\ninput q: %s[1, %d, %d]\ninput k: %s[1, %d, %d]\ninput v: "
                            "%s[1, %d, %d]\ny: ?[...] = Attention(q, k, v) {heads = 1, scale = "
                            "0.5}\noutput y\n",
                            type, rows, features, type, keys, features, type, keys, features),
            "x86-64-v3");
        assert_int_equal(tl_target_named(cases[i].target, &target, &diag), TL_OK);
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        assert_string_equal(tl_choose_lowering(&partition.kernels[0], &target, TL_NUMERICS_RELAXED),
                            cases[i].want);
    }
}

/* Rows of scores go block by block where the keys and values of a head, 512 bytes a key, take more than half of L2. */
static void long_attention_goes_online(void **state)
{
    static const struct {
        int rows, keys;
        int64_t l2_bytes;
        tl_numerics numerics;
        const char *want;
    } cases[] = {
        { 256, 1024, 1 << 20, TL_NUMERICS_RELAXED, "direct" },
        { 256, 1040, 1 << 20, TL_NUMERICS_RELAXED, "online" },
        { 256, 1040, 2 << 20, TL_NUMERICS_RELAXED, "direct" },
        { 256, 1040, 1 << 20, TL_NUMERICS_STRICT, "direct" },
        { 257, 1040, 1 << 20, TL_NUMERICS_RELAXED, "direct" }, /* blocks of one row */
        { 256, 1033, 1 << 20, TL_NUMERICS_RELAXED, "direct" }, /* blocks of one key */
    };
    tl_arena *arena = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_diag diag = { { 0 } };
        tl_partition partition;
        tl_target target;
        tl_graph *g = prepared_graph(
            arena,
            tl_arena_format(arena,
                            "graph g\ninput q: f32[1, %d, 64]\ninput k: f32[1, %d, 64]\ninput v: "
                            "f32[1, %d, 64]\ny: ?[...] = Attention(q, k, v) {heads = 1, scale = "
                            "0.5}\noutput y\n",
                            cases[i].rows, cases[i].keys, cases[i].keys),
            "x86-64-v3");
        assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        target.l2_bytes = cases[i].l2_bytes;
        assert_string_equal(tl_choose_lowering(&partition.kernels[0], &target, cases[i].numerics),
                            cases[i].want);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gemm, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(gemm_without_c, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(batched_matmul, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(reductions, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(empty_sum_is_zero, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(argmax, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(softmax, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(layer_norm, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(attention, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(online_attention, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(long_halves_go_in_fragments, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(long_attention_goes_online, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(halves_are_for_tensor_cores, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests_name("lowerings of products and reductions", tests, NULL, NULL);
}
