/* models/efficientnet.c: inverted residuals with squeeze and excitation (Tan, Le: EfficientNet, 2019). */
#include "models/builders.h"
#include "models/image.h"

static const struct stage {
    int64_t expand, kernel, stride, channels;
    int blocks;
} stages[] = {
    { 1, 3, 1, 16, 1 },  { 6, 3, 2, 24, 2 },  { 6, 5, 2, 40, 2 },  { 6, 3, 2, 80, 3 },
    { 6, 5, 1, 112, 3 }, { 6, 5, 2, 192, 4 }, { 6, 3, 1, 320, 1 },
};

/* A SiLU leaves between 1/4 and 1/2 of the variance of what goes in, a gate that is half open a quarter. */
static const double AFTER_SILU = 2.5, AFTER_GATE = 4;
static const double EPSILON = 1e-3;

/* conv, batch norm and SiLU. */
static tl_image layer(tl_onnx_build *b, const char *name, tl_image x, const tl_window *w)
{
    x = tl_image_conv(b, tl_build_name(b, "%s.0", name), x, w);
    x = tl_image_batch_norm(b, tl_build_name(b, "%s.1", name), x, 1, EPSILON);
    return tl_image_silu(b, tl_build_name(b, "%s.2", name), x);
}

/* Scales each channel by a gate that is computed from the means of all channels. */
static tl_image excite(tl_onnx_build *b, const char *name, tl_image x, int64_t squeezed)
{
    const tl_window reduce = { .channels = squeezed, .kernel = 1, .bias = true };
    const tl_window expand = { .channels = x.channels, .kernel = 1, .bias = true };
    tl_image y = tl_image_map(b, "GlobalAveragePool", tl_build_name(b, "%s.avgpool", name), x);
    y.height = y.width = 1;
    y = tl_image_conv(b, tl_build_name(b, "%s.fc1", name), y, &reduce);
    y = tl_image_silu(b, tl_build_name(b, "%s.activation", name), y);
    y = tl_image_conv(b, tl_build_name(b, "%s.fc2", name), y, &expand);
    y = tl_image_map(b, "Sigmoid", tl_build_name(b, "%s.scale_activation", name), y);
    return tl_image_join(b, "Mul", tl_build_name(b, "%s.mul", name), x, y.name);
}

static tl_image inverted_residual(tl_onnx_build *b, const char *block, tl_image x,
                                  const struct stage *s, int64_t stride)
{
    int64_t hidden = x.channels * s->expand, squeezed = x.channels / 4;
    bool residual = stride == 1 && x.channels == s->channels;
    const tl_window up = { .channels = hidden, .kernel = 1, .gain = 1 };
    const tl_window depthwise = { .channels = hidden,
                                  .kernel = s->kernel,
                                  .stride = stride,
                                  .pad = s->kernel / 2,
                                  .groups = hidden,
                                  .gain = AFTER_SILU };
    const tl_window down = { .channels = s->channels,
                             .kernel = 1,
                             .gain = AFTER_SILU * AFTER_GATE };
    tl_image y = x;
    int part = 0;
    if (s->expand != 1)
        y = layer(b, tl_build_name(b, "%s.%d", block, part++), y, &up);
    y = layer(b, tl_build_name(b, "%s.%d", block, part++), y, &depthwise);
    y = excite(b, tl_build_name(b, "%s.%d", block, part++), y, squeezed);
    y = tl_image_conv(b, tl_build_name(b, "%s.%d.0", block, part), y, &down);
    y = tl_image_batch_norm(b, tl_build_name(b, "%s.%d.1", block, part), y, residual ? 0.3 : 1,
                            EPSILON);
    return residual ? tl_image_join(b, "Add", tl_build_name(b, "%s.add", block), y, x.name) : y;
}

void tl_zoo_efficientnet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const tl_window stem = { .channels = 32, .kernel = 3, .stride = 2, .pad = 1, .gain = 1 };
    const tl_window head = { .channels = 1280, .kernel = 1, .gain = 1 };
    const int count = sizeof stages / sizeof stages[0];
    (void)name;
    tl_image x = layer(b, "features.0", tl_image_input(b, size, 3), &stem);
    for (int i = 0; i < count; i++)
        for (int block = 0; block < stages[i].blocks; block++)
            x = inverted_residual(b, tl_build_name(b, "features.%d.%d.block", i + 1, block), x,
                                  &stages[i], block == 0 ? stages[i].stride : 1);
    x = layer(b, tl_build_name(b, "features.%d", count + 1), x, &head);
    tl_image_classify(b, "classifier.1", x, 0.05);
}
