/* tests/driver/test_kernel_shapes.c: the real lowerings at random shapes: each kernel gets its default schedule for this
 * machine or a smaller ISA, is compiled, run on one thread or several, and compared with what the interpreter computes
 * for the naive program: all of it, or at sampled points when it is large. Strict kernels compute it bit for bit, but for
 * what functions (exp, erf, ...) are off by; the others do not, or the test could not tell. For a GPU they are generated as
 * well, and run emulated. TL_SEED starts elsewhere,
 * TL_SHAPES runs more; a failure prints the seed, the graph and the target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/emulated.h"
#include "tests/support/meaning.h"

enum { MAX_BUFFERS = 32, POINTS = 200, MAX_RANK = 16 };
/* The interpreter does some ten million instances a second. */
static const int64_t most_flops = 1000 * 1000;

typedef struct {
    uint64_t seed;
    tl_random random;
    tl_arena *arena;
    const char *graph, *lowering, *isa;
    int threads;
    const emulated *gpu; /* NULL: the kernels run on this machine's CPU */
    bool strict;         /* sums keep their order: */
    bool has_functions; /* the kernel calls some, which round as code generation's polynomials do */
    int64_t *unequal;   /* counts elements that are not the interpreter's to the last bit */
} shape_case;

static int64_t below(shape_case *c, int64_t n)
{
    return tl_random_below(&c->random, n);
}

/* An extent: small, prime, or next to a multiple of a vector. */
static int extent(shape_case *c, int most)
{
    static const int sizes[] = {
        1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65
    };
    int size = sizes[below(c, sizeof sizes / sizeof *sizes)];
    return size <= most ? size : 1 + (int)below(c, most);
}

/* One of a sum that takes several accumulators: whole vectors of partial sums, others, and what divides nowhere. */
static int long_extent(shape_case *c)
{
    static const int sizes[] = { 257, 272, 289, 320, 331, 384, 400, 500, 768, 1000, 1031, 2048 };
    return sizes[below(c, sizeof sizes / sizeof *sizes)];
}

/* What follows an operator in its kernel. */
static const char *after(shape_case *c, const char *value)
{
    static const char *const ops[] = { "Identity", "Relu", "Sigmoid", "Neg" };
    return tl_arena_format(c->arena, "z: ?[...] = %s(%s)\noutput z\n", ops[below(c, 4)], value);
}

/* Graphs, one an operator. */

static const char *conv(shape_case *c)
{
    int kernels[] = { 1, 3, 5, 7, 2 }, kind = (int)below(c, 5);
    int group = kind == 0 ? extent(c, 33) : kind == 1 ? 1 + (int)below(c, 3) : 1;
    int depth = kind == 0 ? 1 : extent(c, 33), width = kind == 0 ? 1 : extent(c, 33);
    int kh = kernels[below(c, 5)], kw = below(c, 3) ? kh : kernels[below(c, 5)];
    int stride = 1 + (int)below(c, 2), dilation = below(c, 4) ? 1 : 2;
    int pad = (int)below(c, 3), batch = 1 + (int)below(c, 2);
    if (kind >= 3) { /* what Winograd takes */
        kh = kw = 3;
        stride = dilation = 1;
        c->lowering = kind == 3 ? "winograd_f2" : "winograd_f4";
    }
    if (kind == 1 && group > 1 && width > 1 && below(c, 2))
        c->lowering = "channels_last";
    int least = (kh > kw ? kh : kw) * dilation;
    int h = least + (int)below(c, 14), w = least + (int)below(c, 14);
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d, %d]\nconst w: f32[%d, %d, %d, %d] = "
                           "...\nconst b: f32[%d] = ...\ny: ?[...] = Conv(x, w, b) {strides = [%d, "
                           "%d], dilations = [%d, %d], pads = [%d, %d, %d, %d], group = %d}\n%s",
                           batch, group * depth, h, w, group * width, depth, kh, kw, group * width,
                           stride, stride, dilation, dilation, pad, pad, pad, pad, group,
                           after(c, "y"));
}

static const char *gemm(shape_case *c)
{
    int m = extent(c, 65), n = extent(c, 65), k = extent(c, 65);
    int ta = (int)below(c, 2), tb = (int)below(c, 2);
    return tl_arena_format(
        c->arena,
        "graph g\ninput a: f32[%d, %d]\n%s b: f32[%d, %d]%s\ninput c: f32[%d]\n"
        "y: ?[...] = Gemm(a, b, c) {transA = %d, transB = %d, alpha = 0.5, beta = 2.0}\n%s",
        ta ? k : m, ta ? m : k, k % 2 ? "const" : "input", tb ? n : k, tb ? k : n,
        k % 2 ? " = ..." : "", n, ta, tb, after(c, "y"));
}

static const char *matmul(shape_case *c)
{
    int m = extent(c, 33), n = extent(c, 65), k = extent(c, 33), batch = 1 + (int)below(c, 4);
    return tl_arena_format(c->arena,
                           "graph g\ninput a: f32[2, %d, %d, %d]\ninput b: f32[%d, %d, %d]\n"
                           "y: ?[...] = MatMul(a, b)\n%s",
                           batch, m, k, below(c, 2) ? batch : 1, k, n, after(c, "y"));
}

static const char *pool(shape_case *c)
{
    static const char *const ops[] = { "MaxPool", "AveragePool" };
    int k = 1 + (int)below(c, 4), stride = 1 + (int)below(c, 3), pad = k / 2,
        sums = (int)below(c, 2);
    if (!sums && k > 1 && below(c, 2))
        c->lowering = "by_columns";
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d, %d]\ny: ?[...] = %s(x) {kernel_shape "
                           "= [%d, %d], strides = [%d, %d], pads = [%d, %d, %d, %d]}\n%s",
                           1 + (int)below(c, 2), extent(c, 33), k + (int)below(c, 20),
                           k + (int)below(c, 20), ops[sums], k, k, stride, stride, pad, pad, pad,
                           pad, after(c, "y"));
}

static const char *softmax(shape_case *c)
{
    return tl_arena_format(
        c->arena, "graph g\ninput x: f32[%d, %d, %d]\ny: ?[...] = Softmax(x) {axis = %d}\n%s",
        extent(c, 9), extent(c, 65), extent(c, 65), (int)below(c, 3), after(c, "y"));
}

static const char *layer_norm(shape_case *c)
{
    int n = extent(c, 65), m = 1 + (int)below(c, 6);
    return tl_arena_format(
        c->arena,
        "graph g\ninput x: f32[%d, %d, %d]\ninput s: f32[%d, %d]\ninput b: "
        "f32[%d, %d]\nr: ?[...] = Add(x, b)\ny: ?[...] = LayerNormalization(%s, s, b) {axis = 1, "
        "epsilon = 0.01}\n%s",
        extent(c, 17), m, n, m, n, m, n, below(c, 2) ? "x" : "r", after(c, "y"));
}

static const char *attention(shape_case *c)
{
    int heads = 1 + (int)below(c, 4), rows = extent(c, 33), columns = extent(c, 33);
    int depth = extent(c, 33), width = extent(c, 17);
    return tl_arena_format(c->arena,
                           "graph g\ninput q: f32[1, %d, %d]\ninput k: f32[1, %d, %d]\ninput v: "
                           "f32[1, %d, %d]\ninput mask: f32[1, 1, 1, %d]\ny: ?[...] = Attention(q, "
                           "k, v, mask) {heads = %d, scale = 0.5}\noutput y\n",
                           rows, heads * depth, columns, heads * depth, columns, heads * width,
                           columns, heads);
}

/* Keys that are several blocks, masked or not: some rows behind their own position, some keys altogether. */
static const char *attention_online(shape_case *c)
{
    int heads = 1 + (int)below(c, 2), rows = extent(c, 33), columns = 16 * (9 + (int)below(c, 10));
    int depth = extent(c, 9), width = extent(c, 17);
    bool masked = below(c, 2) != 0;
    c->lowering = "online";
    return tl_arena_format(
        c->arena,
        "graph g\ninput q: f32[1, %d, %d]\ninput k: f32[1, %d, %d]\ninput v: f32[1, %d, %d]\ninput "
        "mask: f32[1, 1, %d, %d]\ny: ?[...] = Attention(q, k, v%s) {heads = %d, scale = "
        "0.5}\n%s",
        rows, heads * depth, columns, heads * depth, columns, heads * width, below(c, 2) ? rows : 1,
        columns, masked ? ", mask" : "", heads, after(c, "y"));
}

/* Columns `from`..`to` of x[1, rows, columns], in place. */
static const char *slice(shape_case *c, const char *name, int rows, int from, int to)
{
    return tl_arena_format(c->arena,
                           "%s: ?[...] = Slice(x) {starts = [0, 0, %d], ends = [1, %d, %d], axes = "
                           "[0, 1, 2], steps = [1, 1, 1]}\n",
                           name, from, rows, to);
}

static const char *attention_windows(shape_case *c)
{
    int heads = 1 + (int)below(c, 4), rows = extent(c, 33), apart = (int)below(c, 20);
    int depth = heads * extent(c, 33), width = heads * extent(c, 17);
    int k = depth + apart, v = k + depth, end = v + width + apart;
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[1, %d, %d]\n%s%s%sy: ?[...] = Attention(q, k, v) "
                           "{heads = %d, scale = 0.5}\noutput y\n",
                           rows, end, slice(c, "q", rows, 0, depth), slice(c, "k", rows, k, v),
                           slice(c, "v", rows, v, v + width), heads);
}

static const char *product_windows(shape_case *c)
{
    static const char *const ops[] = { "MatMul(a, w)\nz: ?[...] = Add(y, r)",
                                       "LayerNormalization(a, s)\nz: ?[...] = Mul(y, a)",
                                       "Softmax(a) {axis = 2}\nz: ?[...] = Identity(y)" };
    int m = extent(c, 33), k = extent(c, 33), n = extent(c, 33), from = (int)below(c, 20);
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[1, %d, %d]\nconst w: f32[%d, %d] = ...\ninput s: "
                           "f32[%d]\n%s%sy: ?[...] = %s\noutput z\n",
                           m, from + k + n + 3, k, n, k, slice(c, "a", m, from, from + k),
                           slice(c, "r", m, from + k, from + k + n), ops[below(c, 3)]);
}

static const char *elementwise(shape_case *c)
{
    static const char *const ops[] = { "Exp",   "Tanh", "Erf",  "Gelu", "Abs",  "Sqrt",
                                       "Floor", "Neg",  "Atan", "Sinh", "Asinh" };
    int a = extent(c, 17), b = extent(c, 33), d = extent(c, 65);
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d]\ninput y: f32[%d, %d]\n"
                           "m: ?[...] = Mul(x, y)\ne: ?[...] = %s(m)\ns: ?[...] = Sub(e, x)\n%s",
                           a, b, d, below(c, 2) ? b : 1, below(c, 2) ? d : 1, ops[below(c, 11)],
                           after(c, "s"));
}

static const char *reduce(shape_case *c)
{
    static const char *const ops[] = { "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                       "ReduceProd" };
    static const char *const axes[] = { "[0]", "[1]", "[2]", "[0, 2]", "[1, 2]", "[0, 1]" };
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d]\nn: ?[...] = Neg(x)\ny: ?[...] = "
                           "%s(n) {axes = %s, keepdims = %d}\n%s",
                           extent(c, 17), extent(c, 65), extent(c, 65), ops[below(c, 5)],
                           axes[below(c, 6)], (int)below(c, 2), after(c, "y"));
}

/* Sums of many terms, along what lies side by side or not, in images that convolutions have blocked or not. */
static const char *long_sum(shape_case *c)
{
    static const char *const ops[] = {
        "ReduceSum(n) {axes = [2]}",           "ReduceMean(n) {axes = [1], keepdims = 0}",
        "ReduceMean(n) {axes = [1, 2]}",       "Softmax(n) {axis = 2}",
        "LayerNormalization(n, s) {axis = 2}", "ReduceSum(n) {keepdims = 0}"
    };
    int many = long_extent(c), which = (int)below(c, 6), few = extent(c, 9);
    int a = which == 1 || which == 2 ? many : few, b = which == 1 ? few : many;
    if (which == 2)
        b = 1 + (int)below(c, 20);
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[2, %d, %d]\ninput s: f32[%d]\nn: ?[...] = "
                           "Neg(x)\ny: ?[...] = %s\n%s",
                           a, b, b, ops[which], after(c, "y"));
}

static const char *image_mean(shape_case *c)
{
    static const char *const ops[] = { "GlobalAveragePool(n)",
                                       "AveragePool(n) {kernel_shape = [19, 17], strides = [2, 1], "
                                       "pads = [1, 0, 0, 2], count_include_pad = 1}" };
    int channels = extent(c, 33), side = 19 + (int)below(c, 6);
    bool is_blocked = below(c, 2) != 0;
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[1, %d, %d, %d]\nconst w: f32[%d, 1, 1, 1] = "
                           "...\nn: ?[...] = %s%s\ny: ?[...] = %s\n%s",
                           channels, side, side + (int)below(c, 3), channels,
                           is_blocked ? "Conv(x, w) {group = " : "Relu(x)",
                           is_blocked ? tl_arena_format(c->arena, "%d}", channels) : "",
                           ops[below(c, 2)], after(c, "y"));
}

static const char *transpose(shape_case *c)
{
    static const char *const perms[] = { "[1, 0, 2]", "[2, 1, 0]", "[0, 2, 1]", "[2, 0, 1]" };
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d]\ny: ?[...] = Transpose(x) {perm = "
                           "%s}\n%s",
                           extent(c, 33), extent(c, 33), extent(c, 33), perms[below(c, 4)],
                           after(c, "y"));
}

static const char *argmax(shape_case *c)
{
    return tl_arena_format(
        c->arena, "graph g\ninput x: f32[%d, %d]\ny: ?[...] = ArgMax(x) {axis = %d}\noutput y\n",
        extent(c, 65), extent(c, 65), (int)below(c, 2));
}

static const char *concat(shape_case *c)
{
    int a = extent(c, 17), d = extent(c, 33);
    return tl_arena_format(c->arena,
                           "graph g\ninput x: f32[%d, %d, %d]\ninput y: f32[%d, %d, %d]\n"
                           "r: ?[...] = Relu(x)\nj: ?[...] = Concat(r, y) {axis = 1}\n%s",
                           a, extent(c, 33), d, a, extent(c, 33), d, after(c, "j"));
}

/* Cells over time: the usual activations, steps that some rows leave out, one block of rows or several. */
static const char *recurrent(shape_case *c)
{
    static const struct {
        const char *cell, *activations;
        int gates;
    } cells[] = {
        { "rnn", "activations = [1], alpha = [0.0], beta = [0.0]", 1 },
        { "gru", "activations = [2, 1], alpha = [0.0, 0.0], beta = [0.0, 0.0]", 3 },
        { "gru_linear", "activations = [2, 1], alpha = [0.0, 0.0], beta = [0.0, 0.0]", 3 },
        { "lstm", "activations = [2, 1, 1], alpha = [0.0, 0.0, 0.0], beta = [0.0, 0.0, 0.0]", 4 }
    };
    int kind = (int)below(c, 4), directions = 1 + (int)below(c, 2), steps = 1 + (int)below(c, 4);
    int rows = extent(c, 9), hidden = extent(c, 33), width = cells[kind].gates * hidden;
    bool live = below(c, 2) != 0, lstm = kind == 3;
    if (below(c, 2))
        c->lowering = "rows";
    return tl_arena_format(
        c->arena,
        "graph g\ninput x: f32[%d, %d, %d]\nconst w: f32[%d, %d, %d] = ...\ninput s: f32[1, %d, "
        "%d]\ninput l: bool[%d, %d]\ny: ?[...] = Recurrent(x, w, s, %s, %s) {cell = \"%s\", %s, "
        "keeps_memory = %d}\n%s",
        directions * steps, rows, width, directions, width, hidden, rows, hidden,
        directions * steps, rows, lstm ? "s" : "_", live ? "l" : "_", cells[kind].cell,
        cells[kind].activations, lstm && below(c, 2), after(c, "y"));
}

typedef const char *make_graph(shape_case *c);
static make_graph *const graphs[] = { conv,
                                      conv,
                                      conv,
                                      gemm,
                                      matmul,
                                      pool,
                                      softmax,
                                      layer_norm,
                                      attention,
                                      elementwise,
                                      reduce,
                                      transpose,
                                      argmax,
                                      concat,
                                      attention_windows,
                                      product_windows,
                                      attention_online,
                                      recurrent,
                                      long_sum,
                                      image_mean };

/* Running. */

static void fail_case(const shape_case *c, const char *what, const tl_program *program)
{
    const char *text = program ? tl_program_text(c->arena, program) : "";
    fprintf(stderr, "TL_SEED=%llu TL_SHAPES=1\n%s\n%s, %s, %d threads%s: %s\n%s",
            (unsigned long long)c->seed, c->graph, c->lowering ? c->lowering : "direct",
            c->isa ? c->isa : "this machine", c->threads, c->strict ? ", strict" : "", what, text);
    fail();
}

static void *make_data(shape_case *c, const tl_buffer *b)
{
    int64_t count = tl_buffer_max_elements(b);
    void *data = tl_arena_alloc(c->arena, (size_t)(count + 1) * tl_dtype_size(b->dtype), 64);
    memset(data, 0x7f, (size_t)count * tl_dtype_size(b->dtype));
    for (int64_t k = 0; b->role != TL_ROLE_OUTPUT && k < count; k++) {
        tl_number value;
        if (tl_dtype_is_float(b->dtype))
            value.f = 2 * tl_random_unit(&c->random) - 1;
        else
            value.i = tl_random_below(&c->random, 5);
        tl_number_store(b->dtype, data, (size_t)k, value);
    }
    return data;
}

static double number(tl_dtype dtype, const void *data, int64_t at)
{
    tl_number value = tl_number_load(dtype, data, (size_t)at);
    return tl_dtype_is_float(dtype) ? value.f : (double)value.i;
}

static void compare_at(const shape_case *c, const tl_program *scheduled, const tl_buffer *b,
                       int64_t at, double got, double want, double largest)
{
    double tolerance = c->lowering ? 1e-3 : 3e-5;
    bool is_same = got == want || (isnan(got) && isnan(want));
    if (!tl_dtype_is_float(b->dtype) || (c->strict && !c->has_functions))
        tolerance = 0;
    *c->unequal += !is_same;
    if (!is_same && !(fabs(got - want) <= tolerance * (1 + largest + fabs(want))))
        fail_case(c,
                  tl_arena_format(c->arena, "%s[%lld] is %.9g, not %.9g", b->name, (long long)at,
                                  got, want),
                  scheduled);
}

/* Some elements of an output, the first and the last among them, evaluated by demand. */
static void compare_points(shape_case *c, const tl_program *naive, const tl_program *scheduled,
                           const tl_argument *arguments, const tl_buffer *b, const void *got)
{
    int64_t *points = TL_NEW_ARRAY(c->arena, int64_t, POINTS * (b->rank + 1));
    int64_t *at = TL_NEW_ARRAY(c->arena, int64_t, POINTS);
    tl_number *want = TL_NEW_ARRAY(c->arena, tl_number, POINTS);
    int64_t count = tl_buffer_max_elements(b);
    tl_diag diag = { 0 };
    for (int p = 0; p < POINTS; p++) {
        at[p] = p == 0 ? 0 : p == 1 ? count - 1 : below(c, count);
        int64_t rest = at[p], size = 1;
        for (int axis = b->rank - 1; axis >= 0; axis--) {
            (void)tl_const_int(b->shape[axis], &size);
            points[p * b->rank + axis] = rest % size;
            rest /= size;
        }
    }
    if (tl_interpret_points(naive, arguments, naive->param_count, NULL, b, points, POINTS, want,
                            &diag) != TL_OK)
        fail_case(c, diag.text, naive);
    double largest = 0;
    for (int p = 0; p < POINTS; p++)
        if (tl_dtype_is_float(b->dtype) && fabs(want[p].f) > largest)
            largest = fabs(want[p].f);
    for (int p = 0; p < POINTS; p++)
        compare_at(c, scheduled, b, at[p], number(b->dtype, got, at[p]),
                   tl_dtype_is_float(b->dtype) ? want[p].f : (double)want[p].i, largest);
}

static void compare_all(const shape_case *c, const tl_program *scheduled, const tl_buffer *b,
                        const void *want, const void *got)
{
    double largest = 0;
    int64_t count = tl_buffer_max_elements(b);
    for (int64_t k = 0; k < count; k++) {
        double value = fabs(number(b->dtype, want, k));
        if (isfinite(value) && value > largest)
            largest = value;
    }
    for (int64_t k = 0; k < count; k++)
        compare_at(c, scheduled, b, k, number(b->dtype, got, k), number(b->dtype, want, k),
                   largest);
}

static void run_compiled(shape_case *c, const tl_program *program, const tl_target *target,
                         void **buffers)
{
    tl_diag diag = { 0 };
    compiled body, prepare = { 0 };
    if (c->gpu != NULL) {
        if (emulated_run(c->gpu, c->arena, program, target, buffers, NULL, &diag) != TL_OK)
            fail_case(c, diag.text, program);
        return;
    }
    if (compiled_make(c->arena, program, false, target, &body, &diag) != TL_OK ||
        (program->prepare &&
         compiled_make(c->arena, program, true, target, &prepare, &diag) != TL_OK))
        fail_case(c, diag.text, program);
    for (int i = 0; i < program->prepared_count; i++)
        buffers[program->param_count + i] = make_data(c, program->prepared[i]);
    if (program->prepare)
        compiled_run(&prepare, buffers, NULL, c->threads);
    compiled_run(&body, buffers, NULL, c->threads);
    compiled_free(&body);
    if (program->prepare)
        compiled_free(&prepare);
}

static bool find_function(const tl_expr *e, void *context)
{
    bool *found = context;
    *found |= e->kind == TL_EXPR_CALL && e->u.function != TL_FUNCTION_SQRT;
    return !*found;
}

static bool find_functions(const tl_stmt *stmt, void *context)
{
    for (int i = 0; stmt->kind == TL_STMT_BLOCK && i < stmt->u.block->store_count; i++)
        tl_expr_visit(stmt->u.block->stores[i].value, find_function, context);
    return true;
}

static void check_kernel(shape_case *c, const tl_kernel *kernel, const tl_target *target)
{
    tl_diag diag = { 0 };
    tl_program *naive;
    void *buffers[MAX_BUFFERS];
    tl_argument arguments[MAX_BUFFERS];
    if (tl_kernel_program(c->arena, kernel, c->lowering, &naive, &diag) != TL_OK ||
        tl_program_verify(naive, &diag) != TL_OK)
        fail_case(c, diag.text, NULL);
    naive->strict = c->strict;
    c->has_functions = false;
    tl_stmt_visit(naive->body, find_functions, &c->has_functions);
    tl_schedule *s = tl_schedule_create(c->arena, naive, target, true);
    if (tl_schedule_default(s, &diag) != TL_OK)
        fail_case(c, diag.text, naive);
    const tl_program *scheduled = tl_schedule_program(s);
    assert_in_range(scheduled->param_count + scheduled->prepared_count, 1, MAX_BUFFERS);
    bool is_large = tl_program_flops(naive) > most_flops;
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        buffers[i] = make_data(c, b);
        void *own = b->role == TL_ROLE_OUTPUT ? make_data(c, b) : buffers[i];
        arguments[i] = (tl_argument){ b, own };
    }
    if (!is_large && tl_interpret(naive, arguments, naive->param_count, NULL, NULL, &diag) != TL_OK)
        fail_case(c, diag.text, naive);
    run_compiled(c, scheduled, target, buffers);
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        if (b->role != TL_ROLE_OUTPUT || tl_buffer_max_elements(b) == 0)
            continue;
        if (is_large)
            compare_points(c, naive, scheduled, arguments, b, buffers[i]);
        else
            compare_all(c, scheduled, b, arguments[i].data, buffers[i]);
    }
}

/* Whether the kernel has nodes that the lowering is of. */
static bool has_lowering(const tl_kernel *kernel)
{
    return strstr(kernel->family, "conv") != NULL || strstr(kernel->family, "attention") != NULL;
}

static void run_case(uint64_t seed, bool strict, const emulated *gpu, int64_t *unequal)
{
    static const char *const isas[] = {
        NULL, NULL, "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"
    };
    shape_case c = { .seed = seed,
                     .random = tl_random_make(seed),
                     .arena = tl_arena_create(0),
                     .strict = strict,
                     .gpu = gpu,
                     .unequal = unequal };
    tl_diag diag = { 0 };
    tl_graph *g;
    tl_partition partition;
    tl_target target;
    c.isa = isas[below(&c, sizeof isas / sizeof *isas)];
    if (c.isa != NULL && !compiled_runs_here(c.isa))
        c.isa = NULL;
    c.threads = 1 + (int)below(&c, COMPILED_THREADS);
    c.graph = graphs[below(&c, sizeof graphs / sizeof *graphs)](&c);
    if (gpu != NULL)
        c.isa = "cuda,sm_80";
    if ((gpu != NULL ? tl_target_named(c.isa, &target, &diag)
                     : compiled_target(c.isa, &target, &diag)) != TL_OK ||
        tl_graph_parse(c.arena, c.graph, "graph", &g, &diag) != TL_OK ||
        tl_infer_shapes(g, &diag) != TL_OK || tl_assign_layouts(g, &target, &diag) != TL_OK ||
        tl_partition_graph(c.arena, g, &partition, &diag) != TL_OK)
        fail_case(&c, diag.text, NULL);
    if (gpu == NULL)
        target.cores = c.threads;
    const char *lowering = c.lowering;
    for (int i = 0; i < partition.count; i++) {
        c.lowering = has_lowering(&partition.kernels[i]) && !strict ? lowering : NULL;
        check_kernel(&c, &partition.kernels[i], &target);
    }
    tl_arena_destroy(c.arena);
}

/* Gives how many elements are not the interpreter's to the last bit. */
static int64_t run_cases(bool strict, const emulated *gpu)
{
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_SHAPES", 60);
    int64_t unequal = 0;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_case(seed, strict, gpu, &unequal);
    return unequal;
}

static void random_shapes_compile_to_the_same(void **state)
{
    (void)state;
    assert_true(run_cases(false, NULL) > 0 || getenv("TL_SHAPES") != NULL);
}

static void strict_shapes_compile_to_the_same_bits(void **state)
{
    (void)state;
    run_cases(true, NULL);
}

static void random_shapes_run_emulated(void **state)
{
    (void)state;
    emulated gpu;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    run_cases(false, &gpu);
    emulated_close(&gpu);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes_compile_to_the_same),
        cmocka_unit_test(strict_shapes_compile_to_the_same_bits),
        cmocka_unit_test(random_shapes_run_emulated),
    };
    return cmocka_run_group_tests_name("kernel shapes", tests, NULL, NULL);
}
