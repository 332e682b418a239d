/* models/resnet.c: residual networks (He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015), as
 * torchvision lays them out: the stride of a bottleneck is in its 3x3 convolution. Batch norms are nodes of their own. */
#include <string.h>
#include "models/builders.h"

static const struct variant {
    const char *name;
    bool bottleneck;
    int blocks[4];
} variants[] = {
    { "resnet18", false, { 2, 2, 2, 2 } },
    { "resnet34", false, { 3, 4, 6, 3 } },
    { "resnet50", true, { 3, 4, 6, 3 } },
    { "resnet101", true, { 3, 4, 23, 3 } },
};

/* An image in the making: a value and its extents [1, channels, size, size]. */
typedef struct {
    const char *name;
    int64_t channels, size;
} image;

static image conv(tl_onnx_build *b, const char *name, image x, int64_t channels, int64_t kernel,
                  int64_t stride)
{
    int64_t pad = kernel / 2;
    const char *weight = tl_build_he(b, tl_build_name(b, "%s.weight", name),
                                     TL_DIMS(channels, x.channels, kernel, kernel));
    image y = { .channels = channels, .size = (x.size + 2 * pad - kernel) / stride + 1 };
    y.name = tl_build_node(b, "Conv", name, TL_NAMES(x.name, weight));
    tl_build_ints(b, "dilations", TL_DIMS(1, 1));
    tl_build_int(b, "group", 1);
    tl_build_ints(b, "kernel_shape", TL_DIMS(kernel, kernel));
    tl_build_ints(b, "pads", TL_DIMS(pad, pad, pad, pad));
    tl_build_ints(b, "strides", TL_DIMS(stride, stride));
    return y;
}

/* Statistics as training leaves them: near 0 and 1, the scale of a block's last one small, so that the sum of
 * branch and shortcut keeps its size through the layers. */
static image batch_norm(tl_onnx_build *b, const char *name, image x, double scale)
{
    tl_build_list channels = TL_DIMS(x.channels);
    const char *gamma =
        tl_build_normal(b, tl_build_name(b, "%s.weight", name), scale, 0.1 * scale, channels);
    const char *beta = tl_build_normal(b, tl_build_name(b, "%s.bias", name), 0, 0.1, channels);
    const char *mean =
        tl_build_normal(b, tl_build_name(b, "%s.running_mean", name), 0, 0.1, channels);
    const char *variance =
        tl_build_normal(b, tl_build_name(b, "%s.running_var", name), 1, 0.1, channels);
    x.name =
        tl_build_node(b, "BatchNormalization", name, TL_NAMES(x.name, gamma, beta, mean, variance));
    tl_build_float(b, "epsilon", 1e-5);
    return x;
}

static image relu(tl_onnx_build *b, const char *name, image x)
{
    x.name = tl_build_node(b, "Relu", name, TL_NAMES(x.name));
    return x;
}

/* conv, batch norm, and ReLU unless it is the last of its block. */
static image layer(tl_onnx_build *b, const char *block, int number, image x, int64_t channels,
                   int64_t kernel, int64_t stride, bool last)
{
    x = conv(b, tl_build_name(b, "%s.conv%d", block, number), x, channels, kernel, stride);
    x = batch_norm(b, tl_build_name(b, "%s.bn%d", block, number), x, last ? 0.3 : 1);
    return last ? x : relu(b, tl_build_name(b, "%s.relu%d", block, number), x);
}

static image residual(tl_onnx_build *b, const char *block, image x, int64_t width, int64_t stride,
                      bool bottleneck)
{
    int64_t channels = bottleneck ? 4 * width : width;
    image y = x, shortcut = x;
    if (bottleneck) {
        y = layer(b, block, 1, y, width, 1, 1, false);
        y = layer(b, block, 2, y, width, 3, stride, false);
        y = layer(b, block, 3, y, channels, 1, 1, true);
    } else {
        y = layer(b, block, 1, y, width, 3, stride, false);
        y = layer(b, block, 2, y, channels, 3, 1, true);
    }
    if (stride != 1 || x.channels != channels) {
        shortcut = conv(b, tl_build_name(b, "%s.downsample.0", block), x, channels, 1, stride);
        shortcut = batch_norm(b, tl_build_name(b, "%s.downsample.1", block), shortcut, 0.7);
    }
    y.name =
        tl_build_node(b, "Add", tl_build_name(b, "%s.add", block), TL_NAMES(y.name, shortcut.name));
    return relu(b, tl_build_name(b, "%s.relu", block), y);
}

void tl_zoo_resnet(tl_onnx_build *b, const char *name)
{
    const struct variant *v = variants;
    while (strcmp(v->name, name) != 0)
        v++;

    image x = { .channels = 3, .size = 224 };
    x.name = tl_build_input(b, "input", TL_F32, TL_DIMS(1, 3, x.size, x.size));
    x = relu(b, "relu", batch_norm(b, "bn1", conv(b, "conv1", x, 64, 7, 2), 1));
    x.name = tl_build_node(b, "MaxPool", "maxpool", TL_NAMES(x.name));
    tl_build_int(b, "ceil_mode", 0);
    tl_build_ints(b, "kernel_shape", TL_DIMS(3, 3));
    tl_build_ints(b, "pads", TL_DIMS(1, 1, 1, 1));
    tl_build_ints(b, "strides", TL_DIMS(2, 2));
    x.size = (x.size - 1) / 2 + 1;

    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < v->blocks[stage]; block++)
            x = residual(b, tl_build_name(b, "layer%d.%d", stage + 1, block), x,
                         (int64_t)64 << stage, stage > 0 && block == 0 ? 2 : 1, v->bottleneck);

    const char *y = tl_build_node(b, "GlobalAveragePool", "avgpool", TL_NAMES(x.name));
    y = tl_build_node(b, "Flatten", "flatten", TL_NAMES(y));
    tl_build_int(b, "axis", 1);
    const char *weight = tl_build_normal(b, "fc.weight", 0, 0.03, TL_DIMS(1000, x.channels));
    const char *bias = tl_build_normal(b, "fc.bias", 0, 0.01, TL_DIMS(1000));
    tl_build_node(b, "Gemm", "fc", TL_NAMES(y, weight, bias));
    tl_build_float(b, "alpha", 1);
    tl_build_float(b, "beta", 1);
    tl_build_int(b, "transB", 1);
    y = tl_build_rename(b, "logits");
    tl_build_output(b, y, TL_F32, TL_DIMS(1, 1000));
}
