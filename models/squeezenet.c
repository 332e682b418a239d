/* models/squeezenet.c: fire modules (Iandola, Han, Moskewicz, Ashraf, Dally, Keutzer: SqueezeNet, 2016), version 1.1: a
 * few 1x1 channels, from which 1x1 and 3x3 convolutions make many. No dense layer: the last convolution has a
 * channel for each class. */
#include "models/builders.h"
#include "models/image.h"

/* In order; 0 stands for a pool. */
static const struct {
    int64_t squeeze, expand;
} features[] = {
    { 0, 0 }, { 16, 64 },  { 16, 64 },  { 0, 0 },    { 32, 128 }, { 32, 128 },
    { 0, 0 }, { 48, 192 }, { 48, 192 }, { 64, 256 }, { 64, 256 },
};

static tl_image layer(tl_onnx_build *b, const char *name, tl_image x, int64_t channels,
                      int64_t kernel)
{
    const tl_window w = { .channels = channels, .kernel = kernel, .pad = kernel / 2, .bias = true };
    x = tl_image_conv(b, name, x, &w);
    return tl_image_map(b, "Relu", tl_build_name(b, "%s_activation", name), x);
}

static tl_image fire(tl_onnx_build *b, const char *name, tl_image x, int64_t squeeze,
                     int64_t expand)
{
    x = layer(b, tl_build_name(b, "%s.squeeze", name), x, squeeze, 1);
    const tl_image parts[] = { layer(b, tl_build_name(b, "%s.expand1x1", name), x, expand, 1),
                               layer(b, tl_build_name(b, "%s.expand3x3", name), x, expand, 3) };
    return tl_image_concat(b, tl_build_name(b, "%s.concat", name), parts, 2);
}

void tl_zoo_squeezenet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const tl_window stem = { .channels = 64, .kernel = 3, .stride = 2, .bias = true, .gain = 1 };
    const tl_window pool = { .kernel = 3, .stride = 2, .ceil = true };
    const tl_window classifier = { .channels = 1000, .kernel = 1, .bias = true };
    (void)name;
    tl_image x = tl_image_conv(b, "features.0", tl_image_input(b, size, 3), &stem);
    x = tl_image_map(b, "Relu", "features.1", x);
    for (int i = 0; i < (int)(sizeof features / sizeof features[0]); i++) {
        const char *part = tl_build_name(b, "features.%d", i + 2);
        if (features[i].squeeze == 0)
            x = tl_image_pool(b, "MaxPool", part, x, &pool);
        else
            x = fire(b, part, x, features[i].squeeze, features[i].expand);
    }
    x = tl_image_conv(b, "classifier.1", x, &classifier);
    x = tl_image_map(b, "Relu", "classifier.2", x);
    tl_image_mean(b, "avgpool", x);
    const char *y = tl_build_rename(b, "logits");
    tl_build_output(b, y, TL_F32, TL_DIMS(x.batch, 1000));
}
