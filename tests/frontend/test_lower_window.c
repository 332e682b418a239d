/* tests/frontend/test_lower_window.c: convolutions and pools, interpreted, against plain loops. */
#include "tests/frontend/lower_helpers.h"

typedef struct {
    int64_t n, c, h, w, o, kh, kw, group, stride, dilation;
    int64_t top, left, bottom, right;
} window_case;

static const window_case cases[] = {
    /* n c  h  w  o  kh kw g  s  d  pads */
    { 1, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1 },  { 2, 4, 6, 5, 8, 3, 2, 1, 2, 1, 0, 1, 2, 0 },
    { 1, 8, 5, 5, 8, 1, 1, 1, 1, 1, 0, 0, 0, 0 },  { 1, 8, 9, 7, 8, 3, 3, 8, 1, 1, 1, 1, 1, 1 },
    { 1, 8, 9, 7, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1 }, { 1, 8, 11, 8, 4, 3, 3, 1, 1, 2, 2, 2, 2, 2 },
    { 1, 6, 5, 5, 6, 3, 3, 3, 1, 1, 1, 1, 1, 1 },  { 1, 4, 8, 8, 12, 5, 5, 4, 3, 1, 2, 2, 2, 2 },
};

static int64_t out_extent(int64_t in, int64_t before, int64_t after, int64_t k, int64_t s,
                          int64_t d)
{
    return (in + before + after - (k - 1) * d - 1) / s + 1;
}

static void reference_conv(const window_case *c, const float *x, const float *w, const float *b,
                           int64_t oh, int64_t ow, float *y)
{
    int64_t cg = c->c / c->group, og = c->o / c->group;
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t o = 0; o < c->o; o++)
            for (int64_t i = 0; i < oh; i++)
                for (int64_t j = 0; j < ow; j++) {
                    double sum = 0;
                    for (int64_t k = 0; k < cg; k++)
                        for (int64_t p = 0; p < c->kh; p++)
                            for (int64_t q = 0; q < c->kw; q++) {
                                int64_t h = i * c->stride + p * c->dilation - c->top;
                                int64_t v = j * c->stride + q * c->dilation - c->left;
                                if (h >= 0 && h < c->h && v >= 0 && v < c->w)
                                    sum +=
                                        (double)x[((n * c->c + o / og * cg + k) * c->h + h) * c->w +
                                                  v] *
                                        (double)w[((o * cg + k) * c->kh + p) * c->kw + q];
                            }
                    y[((n * c->o + o) * oh + i) * ow + j] = (float)sum + b[o];
                }
}

static tl_value *bind(tl_graph *g, const char *name, const void *data)
{
    tl_value *v = tl_graph_find(g, name);
    v->data = data;
    return v;
}

/* Three convolutions in a row, so that values between them get blocks and halos: relu(conv(x)) and twice itself. */
static void conv_case(const window_case *c, const char *target, uint64_t seed)
{
    tl_arena *arena = tl_arena_create(0);
    int64_t oh = out_extent(c->h, c->top, c->bottom, c->kh, c->stride, c->dilation);
    int64_t ow = out_extent(c->w, c->left, c->right, c->kw, c->stride, c->dilation);
    int64_t count = c->n * c->o * oh * ow, cg = c->c / c->group;
    const char *text = tl_arena_format(
        arena,
        "graph g\ninput x: f32[%d, %d, %d, %d]\nconst w: f32[%d, %d, %d, %d] = ...\n"
        "const e: f32[%d, %d, 1, 1] = ...\nconst b: f32[%d] = ...\n"
        "p: ?[...] = Conv(x, e)\n"
        "c: ?[...] = Conv(p, w, b) {strides = [%d, %d], dilations = [%d, %d], pads = [%d, %d, %d, "
        "%d], "
        "group = %d}\n"
        "r: ?[...] = Relu(c)\ny: ?[...] = Add(r, r)\nz: ?[...] = Identity(y)\noutput z\n",
        (int)c->n, (int)c->c, (int)c->h, (int)c->w, (int)c->o, (int)cg, (int)c->kh, (int)c->kw,
        (int)c->c, (int)c->c, (int)c->o, (int)c->stride, (int)c->stride, (int)c->dilation,
        (int)c->dilation, (int)c->top, (int)c->left, (int)c->bottom, (int)c->right, (int)c->group);
    tl_graph *g = prepared_graph(arena, text, target);
    float *x = random_floats(arena, c->n * c->c * c->h * c->w, seed);
    float *w = random_floats(arena, c->o * cg * c->kh * c->kw, seed + 1);
    float *b = random_floats(arena, c->o, seed + 2), *e = TL_NEW_ARRAY(arena, float, c->c * c->c);
    for (int64_t i = 0; i < c->c; i++)
        e[i * c->c + i] = 1; /* the first convolution copies */
    bind(g, "w", w);
    bind(g, "b", b);
    bind(g, "e", e);
    float *want = TL_NEW_ARRAY(arena, float, count);
    reference_conv(c, x, w, b, oh, ow, want);
    for (int64_t i = 0; i < count; i++)
        want[i] = want[i] > 0 ? 2 * want[i] : 0;
    float *got = run_graph(arena, g, (void *[]){ x }, 0);
    assert_close(got, want, count, text);
    tl_arena_destroy(arena);
}

static void convolutions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        conv_case(&cases[i], "x86-64", 11 * i);    /* blocks of 4, halos */
        conv_case(&cases[i], "x86-64-v3", 11 * i); /* of 8 */
        conv_case(&cases[i], "nvptx64", 11 * i);   /* plain */
    }
}

static void one_dimension(void **state)
{
    tl_graph *g = prepared_graph(
        *state,
        "graph g\ninput x: f32[1, 1, 5]\nconst w: f32[1, 1, 3] = [1.0, 10.0, 100.0]\n"
        "y: ?[...] = Conv(x, w) {pads = [1, 1]}\noutput y\n",
        "x86-64");
    float x[5] = { 1, 2, 3, 4, 5 }, want[5] = { 210, 321, 432, 543, 54 };
    assert_close(run_graph(*state, g, (void *[]){ x }, 0), want, 5, "Conv 1-D");
}

typedef struct {
    const char *op, *attributes;
    int64_t k, s, d, before, after;
    bool include;
    bool ceil;
} pool_case;

static const pool_case pools[] = {
    { "MaxPool", "", 3, 2, 1, 1, 1, 0, 0 },
    { "MaxPool", "", 2, 2, 1, 0, 0, 0, 0 },
    { "MaxPool", "", 3, 1, 2, 2, 1, 0, 0 },
    { "MaxPool", ", ceil_mode = 1", 3, 2, 1, 0, 1, 0, 1 },
    { "AveragePool", "", 3, 2, 1, 1, 1, 0, 0 },
    { "AveragePool", "", 3, 1, 2, 2, 2, 0, 0 },
    { "AveragePool", ", count_include_pad = 1", 3, 2, 1, 1, 1, 1, 0 },
    { "AveragePool", ", ceil_mode = 1, count_include_pad = 1", 3, 2, 1, 1, 0, 1, 1 },
    { "AveragePool", ", ceil_mode = 1", 2, 3, 1, 1, 1, 0, 1 },
};

static float reference_pool(const pool_case *c, const float *x, int64_t h, int64_t w, int64_t i,
                            int64_t j)
{
    double sum = 0, most = -INFINITY;
    int64_t count = 0;
    for (int64_t p = 0; p < c->k; p++)
        for (int64_t q = 0; q < c->k; q++) {
            int64_t a = i * c->s + p * c->d - c->before, b = j * c->s + q * c->d - c->before;
            bool inside = a >= 0 && a < h && b >= 0 && b < w;
            bool padded = a < h + c->after && b < w + c->after;
            count += inside || (c->include && padded);
            if (inside) {
                sum += (double)x[a * w + b];
                most = fmax(most, (double)x[a * w + b]);
            }
        }
    return (float)(c->op[0] == 'M' ? most : sum / (double)count);
}

static void pool_of(const pool_case *c, const char *target, bool is_last)
{
    enum { C = 4, H = 8, W = 7 };
    tl_arena *arena = tl_arena_create(0);
    const char *text = tl_arena_format(
        arena,
        "graph g\ninput x: f32[1, %d, %d, %d]\nconst e: f32[%d, %d, 1, 1] = ...\n"
        "p: ?[...] = Conv(x, e)\nq: ?[...] = %s(p) {kernel_shape = [%d, %d], strides = [%d, %d], "
        "dilations = [%d, %d], pads = [%d, %d, %d, %d]%s}\n%s",
        C, H, W, C, C, c->op, (int)c->k, (int)c->k, (int)c->s, (int)c->s, (int)c->d, (int)c->d,
        (int)c->before, (int)c->before, (int)c->after, (int)c->after, c->attributes,
        is_last ? "output q\n" : "y: ?[...] = Relu(q)\nz: ?[...] = Identity(y)\noutput z\n");
    tl_graph *g = prepared_graph(arena, text, target);
    const tl_shape *shape = &g->outputs[0]->shape;
    int64_t oh = shape->dims[2].extent, ow = shape->dims[3].extent;
    float *x = random_floats(arena, C * H * W, 5), e[C * C] = { 0 };
    for (int i = 0; i < C; i++)
        e[i * C + i] = 1;
    bind(g, "e", e);
    float *want = TL_NEW_ARRAY(arena, float, C *oh *ow);
    for (int64_t k = 0; k < C; k++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++)
                want[(k * oh + i) * ow + j] =
                    fmaxf(is_last ? -INFINITY : 0, reference_pool(c, x + k * H * W, H, W, i, j));
    float *got = run_graph(arena, g, (void *[]){ x }, 0);
    assert_close(got, want, C * oh * ow, text);
    tl_arena_destroy(arena);
}

static void pools_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        pool_of(&pools[i], "x86-64", false);
        pool_of(&pools[i], "x86-64", true); /* from blocks to plain */
        pool_of(&pools[i], "nvptx64", false);
    }
}

/* A layer too large to interpret: single elements of the naive program by demand. */
static void large_layer_by_points(void **state)
{
    window_case c = { 1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1 };
    tl_graph *g = prepared_graph(*state,
                                 "graph g\ninput x: f32[1, 64, 56, 56]\n"
                                 "const w: f32[64, 64, 3, 3] = ...\nconst b: f32[64] = ...\n"
                                 "y: ?[...] = Conv(x, w, b) {pads = [1, 1, 1, 1]}\noutput y\n",
                                 "x86-64");
    float *x = random_floats(*state, 64 * 56 * 56, 1), *w = random_floats(*state, 64 * 64 * 9, 2);
    float *b = random_floats(*state, 64, 3);
    bind(g, "w", w);
    bind(g, "b", b);
    tl_diag diag = { { 0 } };
    tl_partition p;
    tl_program *program;
    assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
    assert_int_equal(tl_kernel_program(*state, &p.kernels[0], "direct", &program, &diag), TL_OK);
    assert_int_equal(tl_program_flops(program), 2LL * 64 * 64 * 9 * 56 * 56 + 64 * 56 * 56);
    tl_argument arguments[4] = { { program->params[0], x },
                                 { program->params[1], w },
                                 { program->params[2], b },
                                 { program->params[3], NULL } };
    float *want = TL_NEW_ARRAY(*state, float, 64 * 56 * 56);
    c.o = 2; /* the first channels are enough */
    reference_conv(&c, x, w, b, 56, 56, want);
    int64_t points[4][4] = { { 0, 0, 0, 0 }, { 0, 1, 55, 55 }, { 0, 1, 17, 0 }, { 0, 0, 30, 31 } };
    tl_number got[4];
    if (tl_interpret_points(program, arguments, 4, NULL, program->params[3], &points[0][0], 4, got,
                            &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < 4; i++)
        assert_float_equal(got[i].f, want[(points[i][1] * 56 + points[i][2]) * 56 + points[i][3]],
                           1e-4);
}

/* The channels of a group side by side: where groups end within the blocks of the result, or the result lies plain behind blocks
 * (a graph's output), behind steps in a row, or in short rows; however strict. Not where a block is within a group, where
 * whole groups are within a vector, or where lanes along a row read neighbours. Small groups in planes, but for those whose
 * inputs fill blocks. */
static void sums_lie_as_lanes_need_them(void **state)
{
    static const struct {
        int channels, outputs, group, stride, width;
        bool is_blocked, is_last;
        const char *want;
    } choices[] = {
        { 96, 48, 2, 1, 9, true, false, "channels_last" },
        { 80, 64, 8, 2, 9, true, false, "channels_last" },
        { 96, 64, 1, 2, 9, true, true, "channels_last" },
        { 96, 190, 2, 2, 9, false, true, "channels_last" },
        { 96, 96, 2, 1, 9, true, false, "direct" },
        { 64, 64, 16, 1, 9, true, false, "direct" },
        { 96, 190, 2, 1, 20, false, true, "direct" },
        { 96, 190, 2, 1, 9, false, true, "channels_last" },
        { 1, 402, 1, 3, 70, false, true, "channels_last" },
        { 1, 402, 1, 1, 70, false, true, "direct" },
        { 12, 6, 1, 2, 70, false, true, "direct" },
        { 12, 30, 1, 1, 3, false, true, "direct" },
        { 64, 64, 64, 1, 9, true, true, "channels_last" },
        { 96, 96, 1, 2, 9, true, false, "direct" },
        { 64, 64, 64, 1, 9, true, false, "direct" },
        { 96, 32, 16, 1, 9, false, false, "planes" },
        { 96, 64, 16, 2, 20, false, false, "planes" },
        { 96, 64, 8, 1, 20, false, false, "planes" },
        { 96, 64, 8, 2, 20, false, false, "channels_last" },
        { 96, 32, 16, 1, 9, true, false, "planes" },
        { 96, 64, 16, 1, 20, true, false, "planes" },
        { 96, 32, 16, 1, 9, true, true, "planes" },
        { 128, 16, 8, 1, 9, true, false, "direct" },
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *before = choices[i].is_blocked ? "p: ?[...] = Conv(x, e)\n" : "";
        tl_graph *g = prepared_graph(
            *state,
            tl_arena_format(
                *state,
                "graph g\ninput x: f32[1, %d, 3, %d]\nconst e: f32[%d, %d, 1, 1] = ...\n"
                "const w: f32[%d, %d, 3, 3] = ...\nconst f: f32[16, %d, 1, 1] = ...\n%s"
                "y: ?[...] = Conv(%s, w) {group = %d, strides = [%d, %d]}\n%soutput %s\n",
                choices[i].channels, choices[i].width, choices[i].channels, choices[i].channels,
                choices[i].outputs, choices[i].channels / choices[i].group, choices[i].outputs,
                before, choices[i].is_blocked ? "p" : "x", choices[i].group, choices[i].stride,
                choices[i].stride, choices[i].is_last ? "" : "z: ?[...] = Conv(y, f)\n",
                choices[i].is_last ? "y" : "z"),
            "x86-64-v4");
        tl_diag diag = { { 0 } };
        tl_target target;
        tl_partition p;
        assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
        assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
        const tl_kernel *kernel = &p.kernels[choices[i].is_blocked];
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_RELAXED),
                            choices[i].want);
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_STRICT),
                            choices[i].want);
        assert_int_equal(tl_target_named("cuda,sm_90", &target, NULL), TL_OK);
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_STRICT), "direct");
    }
}

/* A plain result with a halo, for the window that reads it, is as plain as one without. */
static void halos_leave_results_plain(void **state)
{
    tl_graph *g = prepared_graph(*state,
                                 "graph g\ninput x: f32[1, 3, 12, 14]\n"
                                 "const e: f32[32, 3, 1, 1] = ...\n"
                                 "const w: f32[47, 32, 2, 2] = ...\n"
                                 "const v: f32[47, 1, 3, 3] = ...\n"
                                 "p: ?[...] = Conv(x, e)\n"
                                 "q: ?[...] = Conv(p, w) {strides = [2, 2]}\n"
                                 "y: ?[...] = Conv(q, v) {group = 47, pads = [1, 1, 1, 1]}\n"
                                 "output y\n",
                                 "x86-64-v4");
    tl_diag diag = { { 0 } };
    tl_target target;
    tl_partition p;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
    const tl_layout *layout = &p.kernels[1].outputs[0]->layout;
    assert_false(layout->plain);
    assert_int_equal(layout->halo_before[3], 1);
    assert_int_equal(tl_layout_block(layout, 1), 1);
    assert_string_equal(tl_choose_lowering(&p.kernels[1], &target, TL_NUMERICS_RELAXED),
                        "channels_last");
}

/* The border of plain planes is what is before the rows, between them and behind them, however uneven it is. */
static void plain_borders_are_runs(void **state)
{
    enum { C = 5, H = 4, W = 6, TOP = 2, LEFT = 1, RIGHT = 3 };
    tl_graph *g = prepared_graph(*state,
                                 "graph g\ninput x: f32[2, 5, 4, 6]\n"
                                 "const w: f32[3, 5, 3, 3] = ...\nr: ?[...] = Relu(x)\n"
                                 "y: ?[...] = Conv(r, w) {pads = [2, 1, 0, 3]}\noutput y\n",
                                 "x86-64-v4");
    static float x[2 * C * H * W], got[2 * C][TOP + H][LEFT + W + RIGHT];
    tl_diag diag = { { 0 } };
    tl_target target;
    tl_partition p;
    tl_program *program;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
    assert_int_equal(tl_kernel_program(*state, &p.kernels[0], "direct", &program, &diag), TL_OK);
    const char *text = tl_program_text(*state, program);
    assert_non_null(strstr(text, "block halo_2"));
    assert_null(strstr(text, "block halo_3"));
    for (int i = 0; i < 2 * C * H * W; i++)
        x[i] = (float)(i + 1);
    for (size_t i = 0; i < sizeof got / sizeof(float); i++)
        (&got[0][0][0])[i] = -1;
    tl_argument arguments[2] = { { program->params[0], x }, { program->params[1], got } };
    tl_interpret_options checked = { .check = true };
    assert_int_equal(tl_interpret(program, arguments, 2, NULL, &checked, &diag), TL_OK);
    for (int c = 0; c < 2 * C; c++)
        for (int h = 0; h < TOP + H; h++)
            for (int w = 0; w < LEFT + W + RIGHT; w++) {
                bool is_inside = h >= TOP && w >= LEFT && w < LEFT + W;
                float want = is_inside ? x[(c * H + h - TOP) * W + w - LEFT] : 0;
                assert_true(got[c][h][w] == want);
            }
}

/* What is concatenated of blocks and plain channels lies plain, with the halo of the convolution that reads it: part by part, and
 * the parts and their border are what they are in one nest. */
static void parts_of_blocks_are_nests(void **state)
{
    tl_graph *g =
        prepared_graph(*state,
                       "graph g\ninput x: f32[1, 3, 5, 7]\nconst e: f32[16, 3, 1, 1] = ...\n"
                       "const d: f32[3, 3, 1, 1] = ...\nconst w: f32[8, 19, 3, 3] = ...\n"
                       "p: ?[...] = Conv(x, e)\nq: ?[...] = Conv(x, d)\n"
                       "r: ?[...] = Concat(p, q) {axis = 1}\n"
                       "y: ?[...] = Conv(r, w) {pads = [1, 1, 1, 1]}\noutput y\n",
                       "x86-64-v4");
    tl_diag diag = { { 0 } };
    tl_target target;
    tl_partition p;
    int found = 0;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
    for (int k = 0; k < p.count; k++) {
        if (p.kernels[k].nodes[0]->op != TL_OP_CONCAT)
            continue;
        static float blocks[16 * 5 * 7], plain[3 * 5 * 7], got[2][19 * 7 * 9];
        static const char *const lowerings[] = { "direct", "parts" };
        for (int i = 0; i < 16 * 5 * 7; i++)
            blocks[i] = (float)(i + 1);
        for (int i = 0; i < 3 * 5 * 7; i++)
            plain[i] = (float)(-i - 1);
        assert_string_equal(tl_choose_lowering(&p.kernels[k], &target, TL_NUMERICS_STRICT),
                            "parts");
        for (int l = 0; l < 2; l++) {
            tl_program *program;
            assert_int_equal(tl_kernel_program(*state, &p.kernels[k], lowerings[l], &program,
                                               &diag),
                             TL_OK);
            tl_argument arguments[3] = { { program->params[0], blocks },
                                         { program->params[1], plain },
                                         { program->params[2], got[l] } };
            tl_interpret_options checked = { .check = true };
            assert_int_equal(tl_interpret(program, arguments, 3, NULL, &checked, &diag), TL_OK);
        }
        assert_memory_equal(got[0], got[1], sizeof got[0]);
        found++;
    }
    assert_int_equal(found, 1);
}

/* Windows that overlap are compared by columns, with blocks and without; in steps plain ones; not what leaves L2, nor sums. */
static void overlapping_windows_go_by_columns(void **state)
{
    static const struct {
        const char *pool, *want;
        int channels, side;
    } choices[] = {
        { "MaxPool(p) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}", "by_columns", 32, 14 },
        { "MaxPool(p) {kernel_shape = [5, 5], strides = [2, 2]}", "by_columns", 5, 14 },
        { "MaxPool(p) {kernel_shape = [3, 3], strides = [2, 2]}", "direct", 32, 14 },
        { "MaxPool(p) {kernel_shape = [2, 2]}", "direct", 32, 14 },
        { "MaxPool(p) {kernel_shape = [3, 3], strides = [2, 2]}", "by_columns", 5, 14 },
        { "MaxPool(p) {kernel_shape = [2, 2], strides = [2, 2]}", "direct", 5, 14 },
        { "MaxPool(p) {kernel_shape = [1, 9]}", "direct", 32, 14 },
        { "MaxPool(p) {kernel_shape = [3, 3]}", "direct", 64, 300 },
        { "AveragePool(p) {kernel_shape = [3, 3]}", "direct", 32, 14 },
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        tl_graph *g = prepared_graph(*state,
                                     tl_arena_format(*state,
                                                     "graph g\ninput x: f32[1, 8, %d, %d]\n"
                                                     "const e: f32[%d, 8, 1, 1] = ...\n"
                                                     "p: ?[...] = Conv(x, e)\ny: ?[...] = "
                                                     "%s\noutput y\n",
                                                     choices[i].side, choices[i].side,
                                                     choices[i].channels, choices[i].pool),
                                     "x86-64-v3");
        tl_diag diag = { { 0 } };
        tl_target target;
        tl_partition p;
        assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
        target.l2_bytes = 1 << 20;
        assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
        const tl_kernel *kernel = &p.kernels[p.count - 1];
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_RELAXED),
                            choices[i].want);
        assert_int_equal(tl_target_named("cuda,sm_90", &target, NULL), TL_OK);
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_RELAXED), "direct");
    }
}

/* A pool whose result is plain behind blocks stays in them, and what reads it turns it around. */
static void pools_leave_blocks(void **state)
{
    tl_graph *g = prepared_graph(*state,
                                 "graph g\ninput x: f32[1, 8, 9, 9]\n"
                                 "const e: f32[32, 8, 1, 1] = ...\np: ?[...] = Conv(x, e)\n"
                                 "y: ?[...] = MaxPool(p) {kernel_shape = [3, 3]}\noutput y\n",
                                 "x86-64-v3");
    tl_diag diag = { { 0 } };
    tl_target target;
    tl_partition p;
    tl_program *program;
    assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
    assert_int_equal(tl_partition_graph(*state, g, &p, &diag), TL_OK);
    const tl_kernel *kernel = &p.kernels[p.count - 1];
    assert_int_equal(tl_kernel_program(*state, kernel, "direct", &program, &diag), TL_OK);
    const char *text = tl_program_text(*state, program);
    assert_non_null(strstr(text, "(x: f32[1, 4, 9, 9, 8], out y: f32[1, 32, 7, 7])"));
    assert_non_null(strstr(text, "  alloc acc: f32[1, 4, 7, 7, 8]\n"));
    assert_non_null(strstr(text, "acc[n, co//8, oh, ow, co % 8]"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pools_leave_blocks, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(overlapping_windows_go_by_columns, arena_setup,
                                        arena_teardown),
        cmocka_unit_test_setup_teardown(convolutions, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(one_dimension, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(pools_match, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(large_layer_by_points, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(sums_lie_as_lanes_need_them, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(halos_leave_results_plain, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(plain_borders_are_runs, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(parts_of_blocks_are_nests, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests_name("lowerings of windows", tests, NULL, NULL);
}
