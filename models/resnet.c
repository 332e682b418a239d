/* models/resnet.c: residual networks (He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015), as
 * torchvision lays them out: the stride of a bottleneck is in its 3x3 convolution. Batch norms are nodes of their own. */
#include <string.h>
#include "models/builders.h"
#include "models/image.h"

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

/* conv, batch norm, and ReLU unless it is the last of its block. */
static tl_image layer(tl_onnx_build *b, const char *block, int number, tl_image x,
                      const tl_window *w, bool last)
{
    x = tl_image_conv(b, tl_build_name(b, "%s.conv%d", block, number), x, w);
    x = tl_image_batch_norm(b, tl_build_name(b, "%s.bn%d", block, number), x, last ? 0.3 : 1, 1e-5);
    return last ? x : tl_image_map(b, "Relu", tl_build_name(b, "%s.relu%d", block, number), x);
}

static tl_image residual(tl_onnx_build *b, const char *block, tl_image x, int64_t width,
                         int64_t stride, bool bottleneck)
{
    int64_t channels = bottleneck ? 4 * width : width;
    const tl_window reduce = { .channels = width, .kernel = 1 };
    const tl_window strided = { .channels = width, .kernel = 3, .stride = stride, .pad = 1 };
    const tl_window square = { .channels = channels, .kernel = 3, .pad = 1 };
    const tl_window expand = { .channels = channels, .kernel = 1 };
    const tl_window project = { .channels = channels, .kernel = 1, .stride = stride };
    tl_image y = x, shortcut = x;
    if (bottleneck) {
        y = layer(b, block, 1, y, &reduce, false);
        y = layer(b, block, 2, y, &strided, false);
        y = layer(b, block, 3, y, &expand, true);
    } else {
        y = layer(b, block, 1, y, &strided, false);
        y = layer(b, block, 2, y, &square, true);
    }
    if (stride != 1 || x.channels != channels) {
        shortcut = tl_image_conv(b, tl_build_name(b, "%s.downsample.0", block), x, &project);
        shortcut =
            tl_image_batch_norm(b, tl_build_name(b, "%s.downsample.1", block), shortcut, 0.7, 1e-5);
    }
    y = tl_image_join(b, "Add", tl_build_name(b, "%s.add", block), y, shortcut.name);
    return tl_image_map(b, "Relu", tl_build_name(b, "%s.relu", block), y);
}

void tl_zoo_resnet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const struct variant *v = variants;
    const tl_window stem = { .channels = 64, .kernel = 7, .stride = 2, .pad = 3 };
    const tl_window pool = { .kernel = 3, .stride = 2, .pad = 1 };
    while (strcmp(v->name, name) != 0)
        v++;

    tl_image x = tl_image_conv(b, "conv1", tl_image_input(b, size, 3), &stem);
    x = tl_image_map(b, "Relu", "relu", tl_image_batch_norm(b, "bn1", x, 1, 1e-5));
    x = tl_image_pool(b, "MaxPool", "maxpool", x, &pool);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < v->blocks[stage]; block++)
            x = residual(b, tl_build_name(b, "layer%d.%d", stage + 1, block), x,
                         (int64_t)64 << stage, stage > 0 && block == 0 ? 2 : 1, v->bottleneck);
    tl_image_classify(b, "fc", x, 0.03);
}
