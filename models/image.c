/* models/image.c: the layers of which networks for images are made. */
#include "models/image.h"
#include <assert.h>
#include <math.h>

tl_image tl_image_input(tl_onnx_build *b, const tl_zoo_size *size, int64_t channels)
{
    tl_image x = {
        .batch = size->batch, .channels = channels, .height = size->height, .width = size->width
    };
    x.name = tl_build_input(b, "input", TL_F32, TL_DIMS(x.batch, x.channels, x.height, x.width));
    return x;
}

static int64_t windows(int64_t extent, const tl_window *w)
{
    int64_t stride = w->stride > 0 ? w->stride : 1;
    int64_t room = extent + 2 * w->pad - w->kernel;
    int64_t count = (w->ceil ? room + stride - 1 : room) / stride + 1;
    /* a window that would begin in the padding behind the image is none */
    return w->ceil && (count - 1) * stride >= extent + w->pad ? count - 1 : count;
}

static void set_window(tl_onnx_build *b, const tl_window *w)
{
    int64_t stride = w->stride > 0 ? w->stride : 1;
    tl_build_ints(b, "kernel_shape", TL_DIMS(w->kernel, w->kernel));
    tl_build_ints(b, "pads", TL_DIMS(w->pad, w->pad, w->pad, w->pad));
    tl_build_ints(b, "strides", TL_DIMS(stride, stride));
}

tl_image tl_image_conv(tl_onnx_build *b, const char *name, tl_image x, const tl_window *w)
{
    int64_t groups = w->groups > 0 ? w->groups : 1, inputs = x.channels / groups;
    double gain = w->gain > 0 ? w->gain : 2;
    const char *weight = tl_build_normal(b, tl_build_name(b, "%s.weight", name), 0,
                                         sqrt(gain / (double)(inputs * w->kernel * w->kernel)),
                                         TL_DIMS(w->channels, inputs, w->kernel, w->kernel));
    tl_image y = { .batch = x.batch, .channels = w->channels };
    y.height = windows(x.height, w);
    y.width = windows(x.width, w);
    if (w->bias) {
        const char *bias =
            tl_build_normal(b, tl_build_name(b, "%s.bias", name), 0, 0.05, TL_DIMS(w->channels));
        y.name = tl_build_node(b, "Conv", name, TL_NAMES(x.name, weight, bias));
    } else {
        y.name = tl_build_node(b, "Conv", name, TL_NAMES(x.name, weight));
    }
    tl_build_ints(b, "dilations", TL_DIMS(1, 1));
    tl_build_int(b, "group", groups);
    set_window(b, w);
    return y;
}

tl_image tl_image_pool(tl_onnx_build *b, const char *op_type, const char *name, tl_image x,
                       const tl_window *w)
{
    x.name = tl_build_node(b, op_type, name, TL_NAMES(x.name));
    tl_build_int(b, "ceil_mode", w->ceil);
    set_window(b, w);
    x.height = windows(x.height, w);
    x.width = windows(x.width, w);
    return x;
}

tl_image tl_image_batch_norm(tl_onnx_build *b, const char *name, tl_image x, double scale,
                             double epsilon)
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
    tl_build_float(b, "epsilon", epsilon);
    return x;
}

tl_image tl_image_map(tl_onnx_build *b, const char *op_type, const char *name, tl_image x)
{
    x.name = tl_build_node(b, op_type, name, TL_NAMES(x.name));
    return x;
}

tl_image tl_image_join(tl_onnx_build *b, const char *op_type, const char *name, tl_image x,
                       const char *other)
{
    x.name = tl_build_node(b, op_type, name, TL_NAMES(x.name, other));
    return x;
}

tl_image tl_image_relu6(tl_onnx_build *b, const char *name, tl_image x)
{
    const char *least = tl_build_constant_float(b, tl_build_name(b, "%s.least", name), 0);
    const char *most = tl_build_constant_float(b, tl_build_name(b, "%s.most", name), 6);
    x.name = tl_build_node(b, "Clip", name, TL_NAMES(x.name, least, most));
    return x;
}

tl_image tl_image_silu(tl_onnx_build *b, const char *name, tl_image x)
{
    const char *gate =
        tl_build_node(b, "Sigmoid", tl_build_name(b, "%s.sigmoid", name), TL_NAMES(x.name));
    return tl_image_join(b, "Mul", tl_build_name(b, "%s.mul", name), x, gate);
}

tl_image tl_image_concat(tl_onnx_build *b, const char *name, const tl_image *parts, int count)
{
    enum { MOST = 64 };
    const char *names[MOST];
    tl_image y = parts[0];
    assert(count > 0 && count <= MOST);
    y.channels = 0;
    for (int i = 0; i < count; i++) {
        names[i] = parts[i].name;
        y.channels += parts[i].channels;
    }
    y.name = tl_build_node(b, "Concat", name, (tl_build_names){ count, names });
    tl_build_int(b, "axis", 1);
    return y;
}

const char *tl_image_dense(tl_onnx_build *b, const char *name, const char *x, int64_t in,
                           int64_t out, double deviation)
{
    const char *weight =
        tl_build_normal(b, tl_build_name(b, "%s.weight", name), 0, deviation, TL_DIMS(out, in));
    const char *bias = tl_build_normal(b, tl_build_name(b, "%s.bias", name), 0, 0.01, TL_DIMS(out));
    const char *y = tl_build_node(b, "Gemm", name, TL_NAMES(x, weight, bias));
    tl_build_float(b, "alpha", 1);
    tl_build_float(b, "beta", 1);
    tl_build_int(b, "transB", 1);
    return y;
}

const char *tl_image_mean(tl_onnx_build *b, const char *name, tl_image x)
{
    const char *y = tl_build_node(b, "GlobalAveragePool", name, TL_NAMES(x.name));
    y = tl_build_node(b, "Flatten", "flatten", TL_NAMES(y));
    tl_build_int(b, "axis", 1);
    return y;
}

void tl_image_classify(tl_onnx_build *b, const char *name, tl_image x, double deviation)
{
    const char *y = tl_image_mean(b, "avgpool", x);
    tl_image_dense(b, name, y, x.channels, 1000, deviation);
    y = tl_build_rename(b, "logits");
    tl_build_output(b, y, TL_F32, TL_DIMS(x.batch, 1000));
}
