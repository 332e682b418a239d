/* models/vgg.c: plain stacks of 3x3 convolutions (Simonyan, Zisserman: Very Deep Convolutional Networks, 2014), named
 * as torchvision names them. The first dense layer is as wide as the last image, so other image sizes have other weights. */
#include <math.h>
#include <string.h>
#include "models/builders.h"
#include "models/image.h"

static const struct variant {
    const char *name;
    int convs[5];
} variants[] = {
    { "vgg11", { 1, 1, 2, 2, 2 } },
    { "vgg16", { 2, 2, 3, 3, 3 } },
};

static const char *dense(tl_onnx_build *b, int number, const char *x, int64_t in, int64_t out)
{
    const char *name = tl_build_name(b, "classifier.%d", number);
    return tl_image_dense(b, name, x, in, out, sqrt((out == 1000 ? 1.0 : 2.0) / (double)in));
}

void tl_zoo_vgg(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const struct variant *v = variants;
    const tl_window pool = { .kernel = 2, .stride = 2 };
    int number = 0;
    while (strcmp(v->name, name) != 0)
        v++;

    tl_image x = tl_image_input(b, size, 3);
    for (int stage = 0; stage < 5; stage++) {
        int64_t channels = stage < 3 ? (int64_t)64 << stage : 512;
        const tl_window conv = { .channels = channels, .kernel = 3, .pad = 1, .bias = true };
        for (int i = 0; i < v->convs[stage]; i++) {
            x = tl_image_conv(b, tl_build_name(b, "features.%d", number++), x, &conv);
            x = tl_image_map(b, "Relu", tl_build_name(b, "features.%d", number++), x);
        }
        x = tl_image_pool(b, "MaxPool", tl_build_name(b, "features.%d", number++), x, &pool);
    }
    const char *y = tl_build_node(b, "Flatten", "flatten", TL_NAMES(x.name));
    tl_build_int(b, "axis", 1);
    y = dense(b, 0, y, x.channels * x.height * x.width, 4096);
    y = tl_build_node(b, "Relu", "classifier.1", TL_NAMES(y));
    y = dense(b, 3, y, 4096, 4096);
    y = tl_build_node(b, "Relu", "classifier.4", TL_NAMES(y));
    dense(b, 6, y, 4096, 1000);
    y = tl_build_rename(b, "logits");
    tl_build_output(b, y, TL_F32, TL_DIMS(x.batch, 1000));
}
