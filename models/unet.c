/* models/unet.c: down to small images with many channels and up again, each step up beside what the step down left
 * (Ronneberger, Fischer, Brox: U-Net, 2015); padded convolutions with batch norms. The 2x2 transposed convolution of
 * stride 2 is written as its equal: a 1x1 convolution to four times the channels, whose four become a square. */
#include "models/builders.h"
#include "models/image.h"

enum { FEATURES = 32, DEPTH = 4 };

/* Of what comes from the image or from a pool, whose largest of four is a ReLU's output twice as large as others. */
static const double AFTER_POOL = 1;

static tl_image layer(tl_onnx_build *b, const char *at, int number, tl_image x, int64_t channels,
                      double gain)
{
    const tl_window w = { .channels = channels, .kernel = 3, .pad = 1, .gain = gain };
    x = tl_image_conv(b, tl_build_name(b, "%s.conv%d", at, number), x, &w);
    x = tl_image_batch_norm(b, tl_build_name(b, "%s.norm%d", at, number), x, 1, 1e-5);
    return tl_image_map(b, "Relu", tl_build_name(b, "%s.relu%d", at, number), x);
}

static tl_image double_conv(tl_onnx_build *b, const char *at, tl_image x, int64_t channels,
                            double gain)
{
    return layer(b, at, 2, layer(b, at, 1, x, channels, gain), channels, 2);
}

/* Half the channels, twice the height and width. */
static tl_image up_conv(tl_onnx_build *b, const char *name, tl_image x)
{
    const tl_window w = { .channels = 2 * x.channels, .kernel = 1, .bias = true, .gain = 1 };
    int64_t channels = x.channels / 2;
    x = tl_image_conv(b, name, x, &w);
    x = tl_image_map(b, "DepthToSpace", tl_build_name(b, "%s.square", name), x);
    tl_build_int(b, "blocksize", 2);
    tl_build_string(b, "mode", "CRD");
    x.channels = channels;
    x.height *= 2;
    x.width *= 2;
    return x;
}

void tl_zoo_unet(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const tl_window pool = { .kernel = 2, .stride = 2 };
    const tl_window last = { .channels = 1, .kernel = 1, .bias = true };
    tl_image kept[DEPTH];
    (void)name;
    tl_image x = tl_image_input(b, size, 3);
    for (int i = 0; i < DEPTH; i++) {
        kept[i] =
            double_conv(b, tl_build_name(b, "encoder%d", i + 1), x, FEATURES << i, AFTER_POOL);
        x = tl_image_pool(b, "MaxPool", tl_build_name(b, "pool%d", i + 1), kept[i], &pool);
    }
    x = double_conv(b, "bottleneck", x, FEATURES << DEPTH, AFTER_POOL);
    for (int i = DEPTH - 1; i >= 0; i--) {
        const tl_image parts[] = { up_conv(b, tl_build_name(b, "upconv%d", i + 1), x), kept[i] };
        x = tl_image_concat(b, tl_build_name(b, "concat%d", i + 1), parts, 2);
        x = double_conv(b, tl_build_name(b, "decoder%d", i + 1), x, FEATURES << i, 2);
    }
    x = tl_image_conv(b, "conv", x, &last);
    tl_image_map(b, "Sigmoid", "sigmoid", x);
    const char *y = tl_build_rename(b, "mask");
    tl_build_output(b, y, TL_F32, TL_DIMS(x.batch, 1, x.height, x.width));
}
