/* models/mobilenet.c: inverted residuals (Sandler, Howard, Zhu, Zhmoginov, Chen: MobileNetV2, 2018): 1x1 up, 3x3
 * depthwise, 1x1 down without an activation. */
#include "models/builders.h"
#include "models/image.h"

static const struct stage {
    int64_t expand, channels;
    int blocks;
    int64_t stride;
} stages[] = {
    { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 },  { 6, 64, 4, 2 },
    { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
};

/* `part` of a block: conv, batch norm and ReLU6. */
static tl_image layer(tl_onnx_build *b, const char *block, int part, tl_image x, const tl_window *w)
{
    x = tl_image_conv(b, tl_build_name(b, "%s.%d.0", block, part), x, w);
    x = tl_image_batch_norm(b, tl_build_name(b, "%s.%d.1", block, part), x, 1, 1e-5);
    return tl_image_relu6(b, tl_build_name(b, "%s.%d.2", block, part), x);
}

static tl_image inverted_residual(tl_onnx_build *b, const char *block, tl_image x,
                                  const struct stage *s, int64_t stride)
{
    int64_t hidden = x.channels * s->expand;
    bool residual = stride == 1 && x.channels == s->channels;
    const tl_window up = { .channels = hidden, .kernel = 1, .gain = 1 };
    const tl_window depthwise = {
        .channels = hidden, .kernel = 3, .stride = stride, .pad = 1, .groups = hidden
    };
    const tl_window down = { .channels = s->channels, .kernel = 1 };
    tl_image y = x;
    int part = 0;
    if (s->expand != 1)
        y = layer(b, block, part++, y, &up);
    y = layer(b, block, part++, y, &depthwise);
    y = tl_image_conv(b, tl_build_name(b, "%s.%d", block, part), y, &down);
    y = tl_image_batch_norm(b, tl_build_name(b, "%s.%d", block, part + 1), y, residual ? 0.3 : 1,
                            1e-5);
    return residual ? tl_image_join(b, "Add", tl_build_name(b, "%s.add", block), x, y.name) : y;
}

void tl_zoo_mobilenet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const tl_window stem = { .channels = 32, .kernel = 3, .stride = 2, .pad = 1, .gain = 1 };
    const tl_window head = { .channels = 1280, .kernel = 1, .gain = 1 };
    int number = 1;
    (void)name;
    tl_image x = layer(b, "features", 0, tl_image_input(b, size, 3), &stem);
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        for (int block = 0; block < stages[i].blocks; block++)
            x = inverted_residual(b, tl_build_name(b, "features.%d.conv", number++), x, &stages[i],
                                  block == 0 ? stages[i].stride : 1);
    x = layer(b, "features", number, x, &head);
    tl_image_classify(b, "classifier.1", x, 0.05);
}
