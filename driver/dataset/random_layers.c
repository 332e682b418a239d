/* driver/dataset/random_layers.c: layers of random shapes as models. */
#include "driver/dataset/random_layers.h"
#include <stdbool.h>
#include <stdint.h>
#include "models/image.h"
#include "runtime/base/random.h"

/* Extents as networks have them more often than others: multiples of 8 and powers of two, and odd ones among them. */
static int64_t channels(tl_random *r)
{
    static const int64_t usual[] = { 8,   16,  24,  32,  40,  48,  58,  64,  72,  96,
                                     112, 120, 128, 144, 160, 192, 240, 256, 320, 384 };
    if (tl_random_below(r, 5) == 0)
        return 3 + tl_random_below(r, 200);
    return usual[tl_random_below(r, sizeof usual / sizeof *usual)];
}

static int64_t side(tl_random *r)
{
    static const int64_t usual[] = { 4, 7, 8, 10, 14, 16, 20, 28, 32, 40, 56, 64 };
    if (tl_random_below(r, 5) == 0)
        return 3 + tl_random_below(r, 60);
    return usual[tl_random_below(r, sizeof usual / sizeof *usual)];
}

static int64_t rows(tl_random *r)
{
    static const int64_t usual[] = { 1, 1, 4, 16, 32, 64, 77, 100, 128, 197, 256 };
    return usual[tl_random_below(r, sizeof usual / sizeof *usual)];
}

static tl_image image(tl_onnx_build *b, tl_random *r, int64_t deep)
{
    int64_t s = side(r);
    tl_zoo_size size = { .batch = tl_random_below(r, 4) == 0 ? 2 : 1, .height = s, .width = s };
    return tl_image_input(b, &size, deep);
}

static void finish(tl_onnx_build *b, tl_image x)
{
    tl_build_output(b, x.name, TL_F32, TL_DIMS(x.batch, x.channels, x.height, x.width));
}

static void convolution(tl_onnx_build *b, tl_random *r, int64_t kernel, int64_t groups)
{
    int64_t in = channels(r), out = channels(r);
    bool is_depthwise = groups < 0;
    if (groups > 1) {
        in = (in + groups - 1) / groups * groups;
        out = (out + groups - 1) / groups * groups;
    }
    int64_t stride = tl_random_below(r, 4) == 0 ? 2 : 1;
    tl_window w = { .channels = is_depthwise ? in : out,
                    .kernel = kernel,
                    .stride = stride,
                    .groups = is_depthwise ? in : groups,
                    .pad = kernel / 2,
                    .bias = true };
    tl_image x = tl_image_conv(b, "conv", image(b, r, in), &w);
    if (tl_random_below(r, 3) > 0)
        x = tl_image_map(b, "Relu", "relu", x);
    finish(b, x);
}

static void pointwise(tl_onnx_build *b, tl_random *r)
{
    convolution(b, r, 1, 1);
}

static void square(tl_onnx_build *b, tl_random *r)
{
    convolution(b, r, tl_random_below(r, 4) == 0 ? 5 : 3, 1);
}

static void depthwise(tl_onnx_build *b, tl_random *r)
{
    convolution(b, r, tl_random_below(r, 3) == 0 ? 5 : 3, -1);
}

static void grouped(tl_onnx_build *b, tl_random *r)
{
    convolution(b, r, 3, 4 << tl_random_below(r, 3));
}

/* A pointwise and a depthwise convolution, as mobile networks have them. */
static void band(tl_onnx_build *b, tl_random *r)
{
    int64_t in = channels(r), wide = channels(r);
    tl_window expand = { .channels = wide, .kernel = 1, .bias = true };
    tl_window deep = { .channels = wide, .kernel = 3, .pad = 1, .groups = wide, .bias = true };
    tl_image x = tl_image_conv(b, "expand", image(b, r, in), &expand);
    x = tl_image_relu6(b, "relu_1", x);
    x = tl_image_conv(b, "deep", x, &deep);
    finish(b, tl_image_relu6(b, "relu_2", x));
}

static void residual(tl_onnx_build *b, tl_random *r)
{
    int64_t deep = channels(r);
    tl_window w = { .channels = deep, .kernel = tl_random_below(r, 2) ? 3 : 1, .bias = true };
    w.pad = w.kernel / 2;
    tl_image x = image(b, r, deep);
    tl_image y = tl_image_conv(b, "conv", x, &w);
    y = tl_image_join(b, "Add", "add", y, x.name);
    finish(b, tl_image_map(b, "Relu", "relu", y));
}

static void pool(tl_onnx_build *b, tl_random *r)
{
    int64_t kernel = 2 + tl_random_below(r, 2);
    tl_window w = { .kernel = kernel, .stride = 1 + tl_random_below(r, 2), .pad = kernel / 2 };
    tl_image x = image(b, r, channels(r));
    finish(b, tl_image_pool(b, tl_random_below(r, 2) ? "MaxPool" : "AveragePool", "pool", x, &w));
}

static void silu(tl_onnx_build *b, tl_random *r)
{
    int64_t out = channels(r);
    tl_window w = { .channels = out, .kernel = 1, .bias = true };
    tl_image x = tl_image_conv(b, "conv", image(b, r, channels(r)), &w);
    finish(b, tl_image_silu(b, "silu", x));
}

/* A product with a constant, and what may follow it. */
static void dense(tl_onnx_build *b, tl_random *r)
{
    int64_t m = rows(r), in = 4 * channels(r), out = 4 * channels(r);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(m, in));
    const char *y = tl_image_dense(b, "dense", x, in, out, 0.05);
    if (tl_random_below(r, 2))
        y = tl_build_node(b, "Relu", "relu", TL_NAMES(y));
    tl_build_output(b, y, TL_F32, TL_DIMS(m, out));
}

/* Attention's two products and the softmax between them. */
static void attention(tl_onnx_build *b, tl_random *r)
{
    int64_t heads = 2 + tl_random_below(r, 11), length = 8 + 8 * tl_random_below(r, 30);
    int64_t width = 32 << tl_random_below(r, 2);
    const char *q = tl_build_input(b, "q", TL_F32, TL_DIMS(1, heads, length, width));
    const char *k = tl_build_input(b, "k", TL_F32, TL_DIMS(1, heads, width, length));
    const char *v = tl_build_input(b, "v", TL_F32, TL_DIMS(1, heads, length, width));
    const char *s = tl_build_node(b, "MatMul", "scores", TL_NAMES(q, k));
    s = tl_build_node(b, "Softmax", "weights", TL_NAMES(s));
    tl_build_int(b, "axis", -1);
    const char *y = tl_build_node(b, "MatMul", "mixed", TL_NAMES(s, v));
    tl_build_output(b, y, TL_F32, TL_DIMS(1, heads, length, width));
}

static void norm(tl_onnx_build *b, tl_random *r)
{
    int64_t m = rows(r), width = 4 * channels(r);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(m, width));
    const char *scale = tl_build_normal(b, "scale", 1, 0.1, TL_DIMS(width));
    const char *shift = tl_build_normal(b, "shift", 0, 0.1, TL_DIMS(width));
    const char *y = tl_build_node(b, "LayerNormalization", "norm", TL_NAMES(x, scale, shift));
    tl_build_output(b, y, TL_F32, TL_DIMS(m, width));
}

static void gelu(tl_onnx_build *b, tl_random *r)
{
    int64_t m = rows(r), width = 8 * channels(r);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(m, width));
    const char *half = tl_build_constant_float(b, "half", 0.5);
    const char *root = tl_build_constant_float(b, "root", 0.70710678);
    const char *one = tl_build_constant_float(b, "one", 1);
    const char *y = tl_build_node(b, "Mul", "scaled", TL_NAMES(x, root));
    y = tl_build_node(b, "Erf", "erf", TL_NAMES(y));
    y = tl_build_node(b, "Add", "shifted", TL_NAMES(y, one));
    y = tl_build_node(b, "Mul", "product", TL_NAMES(y, x));
    y = tl_build_node(b, "Mul", "halved", TL_NAMES(y, half));
    tl_build_output(b, y, TL_F32, TL_DIMS(m, width));
}

tl_status tl_random_layers_write(uint64_t seed, int number, const char *path, tl_diag *diag)
{
    static void (*const kinds[])(tl_onnx_build *, tl_random *) = {
        pointwise, square,    depthwise, dense, band, grouped,
        residual,  attention, pool,      silu,  norm, gelu,
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    tl_random random = tl_random_make(seed + (uint64_t)number * 0x9e3779b97f4a7c15u);
    tl_onnx_build *b = tl_onnx_build_create("layer", 17, seed);
    if (b == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    kinds[number % KINDS](b, &random);
    tl_status status = tl_onnx_build_write(b, path, diag);
    tl_onnx_build_destroy(b);
    return status;
}
