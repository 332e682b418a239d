/* models/densenet.c: each layer reads the outputs of all layers of its block before it (Huang, Liu, van der Maaten,
 * Weinberger: Densely Connected Convolutional Networks, 2016). Batch norm and ReLU come before the convolution. */
#include "models/builders.h"
#include "models/image.h"

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, LAYERS_MOST = 24 };
static const int blocks[] = { 6, 12, 24, 16 }; /* DenseNet-121 */
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

/* batch norm, ReLU, conv; `number` is a suffix of the names, 0: none. */
static tl_image layer(tl_onnx_build *b, const char *at, int number, tl_image x, const tl_window *w)
{
    const char *suffix = number > 0 ? tl_build_name(b, "%d", number) : "";
    x = tl_image_batch_norm(b, tl_build_name(b, "%s.norm%s", at, suffix), x, 1, 1e-5);
    x = tl_image_map(b, "Relu", tl_build_name(b, "%s.relu%s", at, suffix), x);
    return tl_image_conv(b, tl_build_name(b, "%s.conv%s", at, suffix), x, w);
}

static tl_image dense_block(tl_onnx_build *b, int number, tl_image x)
{
    const tl_window narrow = { .channels = BOTTLENECK, .kernel = 1 };
    const tl_window grow = { .channels = GROWTH, .kernel = 3, .pad = 1 };
    tl_image parts[LAYERS_MOST + 1] = { x };
    int count = blocks[number - 1];
    for (int i = 1; i <= count; i++) {
        const char *at = tl_build_name(b, "features.denseblock%d.denselayer%d", number, i);
        tl_image y = parts[0];
        if (i > 1)
            y = tl_image_concat(b, tl_build_name(b, "%s.concat", at), parts, i);
        parts[i] = layer(b, at, 2, layer(b, at, 1, y, &narrow), &grow);
    }
    return tl_image_concat(b, tl_build_name(b, "features.denseblock%d.concat", number), parts,
                           count + 1);
}

void tl_zoo_densenet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const tl_window stem = {
        .channels = 2 * GROWTH, .kernel = 7, .stride = 2, .pad = 3, .gain = 1
    };
    const tl_window pool = { .kernel = 3, .stride = 2, .pad = 1 };
    const tl_window halve = { .kernel = 2, .stride = 2 };
    (void)name;
    tl_image x = tl_image_conv(b, "features.conv0", tl_image_input(b, size, 3), &stem);
    x = tl_image_batch_norm(b, "features.norm0", x, 1, 1e-5);
    x = tl_image_map(b, "Relu", "features.relu0", x);
    x = tl_image_pool(b, "MaxPool", "features.pool0", x, &pool);
    for (int i = 1; i <= BLOCKS; i++) {
        x = dense_block(b, i, x);
        if (i == BLOCKS)
            break;
        const char *at = tl_build_name(b, "features.transition%d", i);
        const tl_window narrow = { .channels = x.channels / 2, .kernel = 1 };
        x = layer(b, at, 0, x, &narrow);
        x = tl_image_pool(b, "AveragePool", tl_build_name(b, "%s.pool", at), x, &halve);
    }
    x = tl_image_batch_norm(b, "features.norm5", x, 1, 1e-5);
    x = tl_image_map(b, "Relu", "features.relu5", x);
    tl_image_classify(b, "classifier", x, 0.05);
}
