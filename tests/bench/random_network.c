/* tests/bench/random_network.c: networks of random layers in random shapes, as graph texts.
 *
 * A network is a chain over images ([N, C, H, W]) or over sequences ([N, T, C]) with shortcuts around layers now and then. Layers
 * come with what people put behind them: convolutions with batch norms folded, biases and activations; products with GELU;
 * transposes in front of norms over channels, as ConvNeXt has them; channel shuffles; concats of branches. Extents are as often
 * odd as round. */
#include "tests/bench/random_network.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include "runtime/base/random.h"
#include "runtime/base/text.h"

enum {
    LARGEST_IMAGE = 1 << 21,
    MOST_CHANNELS = 512,
    MOST_WEIGHTS = 1 << 24
}; /* elements of a value */

typedef struct {
    tl_random random;
    tl_text consts, nodes;
    int number; /* of values so far */
    int n, c, h, w, t;
    int last,
        kept; /* the value at the end of the chain; one of the same shape before it, -1: none */
} network;

static int below(network *g, int bound)
{
    return (int)tl_random_below(&g->random, bound);
}

static int pick(network *g, const int *from, int count)
{
    return from[below(g, count)];
}
#define PICK(g, ...) \
    pick(g, (const int[]){ __VA_ARGS__ }, (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

/* A round number, or one beside it. */
static int extent(network *g, int round)
{
    int odd = below(g, 3) == 0 ? below(g, 7) - 3 : 0;
    return round + odd > 0 ? round + odd : 1;
}

static void node(network *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next value of the chain. */
static void node(network *g, const char *format, ...)
{
    va_list args;
    tl_text_format(&g->nodes, "v%d: ?[...] = ", ++g->number);
    va_start(args, format);
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tl_text_format(&g->nodes, "%s\n", line);
    g->last = g->number;
}

/* A constant; its name is k and a number. */
static int constant(network *g, const char *shape)
{
    tl_text_format(&g->consts, "const k%d: f32[%s] = ...\n", ++g->number, shape);
    return g->number;
}

static void activation(network *g)
{
    int x;
    x = g->last;
    switch (below(g, 7)) {
    case 0:
    case 1:
        node(g, "Relu(v%d)", x);
        break;
    case 2:
        node(g, "Sigmoid(v%d)", x);
        node(g, "Mul(v%d, v%d)", x, g->last);
        break;
    case 3:
        node(g, "Gelu(v%d)", x);
        break;
    case 4:
        node(g, "Tanh(v%d)", x);
        break;
    default:
        break;
    }
}

static void forget_kept(network *g)
{
    g->kept = -1;
}

/* ---- over images ---- */

static void convolution(network *g)
{
    char shape[64];
    int kernel = PICK(g, 1, 1, 1, 3, 3, 3, 5, 7, 2, 9, 11),
        dilation = kernel > 1 && below(g, 6) == 0 ? 2 : 1;
    int stride = kernel > 1 && below(g, 4) == 0 ? 2 : 1, reach = dilation * (kernel - 1) + 1;
    int kind = below(g, 6), group = 1, out = extent(g, PICK(g, 16, 32, 64, 96, 128, 192, 256, 384));
    if (kind < 2 && kernel > 1) { /* depthwise */
        group = out = g->c;
    } else if (kind == 2 && g->c % 8 == 0) {
        group = PICK(g, 2, 4, 8);
        out = (out + group - 1) / group * group;
    }
    while (out > group && (int64_t)out * g->h * g->w * g->n > LARGEST_IMAGE)
        out = (out / 2 + group - 1) / group * group;
    if (reach > g->h || reach > g->w ||
        (int64_t)out * (g->c / group) * kernel * kernel > MOST_WEIGHTS)
        kernel = reach = dilation = stride = 1;
    int before = reach / 2, after = reach - 1 - before;
    if (stride > 1 && (g->h < 2 * reach || g->w < 2 * reach))
        stride = 1;
    snprintf(shape, sizeof shape, "%d, %d, %d, %d", out, g->c / group, kernel, kernel);
    int weight = constant(g, shape);
    snprintf(shape, sizeof shape, "%d", out);
    int bias = constant(g, shape);
    int x;
    x = g->last;
    node(
        g,
        "Conv(v%d, k%d, k%d) {group = %d, strides = [%d, %d], pads = [%d, %d, %d, %d], dilations = "
        "[%d, %d]}",
        x, weight, bias, group, stride, stride, before, before, after, after, dilation, dilation);
    bool same = out == g->c && stride == 1;
    g->c = out;
    g->h = (g->h - 1) / stride + 1;
    g->w = (g->w - 1) / stride + 1;
    activation(g);
    if (same && g->kept >= 0 && below(g, 2) == 0) {
        int y;
        y = g->last;
        node(g, "Add(v%d, v%d)", y, g->kept);
    }
    if (!same)
        forget_kept(g);
}

static void pool(network *g)
{
    int x;
    x = g->last;
    int kernel = PICK(g, 2, 3), stride = PICK(g, 1, 2);
    if (g->h < 8 || g->w < 8)
        return;
    int pad = kernel / 2 * (kernel % 2);
    node(g, "%s(v%d) {kernel_shape = [%d, %d], strides = [%d, %d], pads = [%d, %d, %d, %d]}",
         below(g, 2) ? "MaxPool" : "AveragePool", x, kernel, kernel, stride, stride, pad, pad, pad,
         pad);
    g->h = (g->h + 2 * pad - kernel) / stride + 1;
    g->w = (g->w + 2 * pad - kernel) / stride + 1;
    forget_kept(g);
}

/* ConvNeXt's: channels last, a norm over them, and back. */
static void norm_over_channels(network *g)
{
    char shape[16];
    int x;
    x = g->last;
    snprintf(shape, sizeof shape, "%d", g->c);
    int scale = constant(g, shape), shift = constant(g, shape);
    node(g, "Transpose(v%d) {perm = [0, 2, 3, 1]}", x);
    x = g->last;
    node(g, "LayerNormalization(v%d, k%d, k%d) {axis = 3, epsilon = 1e-06}", x, scale, shift);
    x = g->last;
    node(g, "Transpose(v%d) {perm = [0, 3, 1, 2]}", x);
}

static void channel_shuffle(network *g)
{
    int x;
    int group = PICK(g, 2, 4);
    if (g->c % group != 0)
        return;
    x = g->last;
    node(g, "Reshape(v%d) {shape = [%d, %d, %d, %d, %d]}", x, g->n, group, g->c / group, g->h,
         g->w);
    x = g->last;
    node(g, "Transpose(v%d) {perm = [0, 2, 1, 3, 4]}", x);
    x = g->last;
    node(g, "Reshape(v%d) {shape = [%d, %d, %d, %d]}", x, g->n, g->c, g->h, g->w);
}

/* Two 1x1 convolutions of one value, side by side. */
static void branches(network *g)
{
    char shape[64];
    int x, left;
    int a = extent(g, PICK(g, 16, 32, 64)), b = extent(g, PICK(g, 16, 32, 64));
    x = g->last;
    snprintf(shape, sizeof shape, "%d, %d, 1, 1", a, g->c);
    int first = constant(g, shape);
    snprintf(shape, sizeof shape, "%d, %d, 1, 1", b, g->c);
    int second = constant(g, shape);
    node(g, "Conv(v%d, k%d)", x, first);
    left = g->last;
    node(g, "Conv(v%d, k%d)", x, second);
    int right;
    right = g->last;
    node(g, "Concat(v%d, v%d) {axis = 1}", left, right);
    g->c = a + b;
    forget_kept(g);
}

/* Squeeze and excite: a mean of each channel, two products, a factor. */
static void excite(network *g)
{
    char shape[64];
    int x, y;
    int inner = g->c / 4 > 0 ? g->c / 4 : 1;
    x = g->last;
    snprintf(shape, sizeof shape, "%d, %d, 1, 1", inner, g->c);
    int down = constant(g, shape);
    snprintf(shape, sizeof shape, "%d, %d, 1, 1", g->c, inner);
    int up = constant(g, shape);
    node(g, "GlobalAveragePool(v%d)", x);
    y = g->last;
    node(g, "Conv(v%d, k%d)", y, down);
    y = g->last;
    node(g, "Relu(v%d)", y);
    y = g->last;
    node(g, "Conv(v%d, k%d)", y, up);
    y = g->last;
    node(g, "Sigmoid(v%d)", y);
    y = g->last;
    node(g, "Mul(v%d, v%d)", x, y);
}

static void image_layer(network *g)
{
    int layer = below(g, 12);
    if (layer < 7)
        convolution(g);
    else if (layer == 7)
        pool(g);
    else if (layer == 8)
        norm_over_channels(g);
    else if (layer == 9)
        channel_shuffle(g);
    else if (layer == 10)
        branches(g);
    else
        excite(g);
}

/* ---- over sequences ---- */

static void product(network *g)
{
    char shape[64];
    int x;
    int out = extent(g, PICK(g, 64, 128, 192, 256, 384, 512, 768));
    x = g->last;
    snprintf(shape, sizeof shape, "%d, %d", g->c, out);
    int weight = constant(g, shape);
    snprintf(shape, sizeof shape, "%d", out);
    int bias = constant(g, shape);
    node(g, "MatMul(v%d, k%d)", x, weight);
    x = g->last;
    node(g, "Add(v%d, k%d)", x, bias);
    bool same = out == g->c;
    g->c = out;
    activation(g);
    if (same && g->kept >= 0) {
        x = g->last;
        node(g, "Add(v%d, v%d)", x, g->kept);
    } else {
        forget_kept(g);
    }
}

static void norm(network *g)
{
    char shape[16];
    int x;
    x = g->last;
    snprintf(shape, sizeof shape, "%d", g->c);
    int scale = constant(g, shape), shift = constant(g, shape);
    node(g, "LayerNormalization(v%d, k%d, k%d) {axis = 2, epsilon = 1e-05}", x, scale, shift);
}

/* softmax(x xᵀ) x */
static void mix(network *g)
{
    int x, y;
    x = g->last;
    node(g, "Transpose(v%d) {perm = [0, 2, 1]}", x);
    y = g->last;
    node(g, "MatMul(v%d, v%d)", x, y);
    y = g->last;
    node(g, "Softmax(v%d) {axis = 2}", y);
    y = g->last;
    node(g, "MatMul(v%d, v%d)", y, x);
}

static void turn(network *g)
{
    int x;
    x = g->last;
    node(g, "Transpose(v%d) {perm = [0, 2, 1]}", x);
    int t = g->t;
    g->t = g->c;
    g->c = t;
    forget_kept(g);
}

static void sequence_layer(network *g)
{
    int layer = below(g, 8);
    if (layer < 4)
        product(g);
    else if (layer < 6)
        norm(g);
    else if (layer == 6 && g->t <= 512)
        mix(g);
    else
        turn(g);
}

const char *random_network(tl_arena *arena, uint64_t seed)
{
    network g = { .random = tl_random_make(seed), .last = 0, .kept = 0 };
    bool images = below(&g, 3) > 0;
    tl_text text = { 0 };
    g.n = PICK(&g, 1, 1, 1, 2, 4, 8);
    tl_text_format(&text, "graph random%" PRIu64 "\n", seed);
    if (images) {
        g.h = extent(&g, PICK(&g, 14, 28, 56, 112) / (g.n > 2 ? 2 : 1));
        g.w = below(&g, 4) ? g.h : extent(&g, g.h);
        g.c = extent(&g, PICK(&g, 3, 16, 32, 64, 128, 256));
        while ((int64_t)g.c * g.h * g.w * g.n > LARGEST_IMAGE)
            g.c = (g.c + 1) / 2;
        tl_text_format(&text, "input v0: f32[%d, %d, %d, %d]\n", g.n, g.c, g.h, g.w);
    } else {
        g.t = extent(&g, PICK(&g, 16, 64, 128, 256) / (g.n > 2 ? 2 : 1));
        g.c = extent(&g, PICK(&g, 64, 128, 256, 384, 512));
        tl_text_format(&text, "input v0: f32[%d, %d, %d]\n", g.n, g.t, g.c);
    }
    for (int i = 4 + below(&g, 7); i > 0; i--) {
        if (below(&g, 3) == 0)
            g.kept = g.last;
        images ? image_layer(&g) : sequence_layer(&g);
    }
    if (g.last == 0)
        node(&g, "Relu(v0)");
    tl_text_format(&text, "%s%soutput v%d\n", tl_text_get(&g.consts), tl_text_get(&g.nodes),
                   g.last);
    const char *out = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    tl_text_free(&g.consts);
    tl_text_free(&g.nodes);
    return out;
}
