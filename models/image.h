/* models/image.h: the layers of which networks for images are made. */
#ifndef TL_MODELS_IMAGE_H
#define TL_MODELS_IMAGE_H
#include "models/zoo.h"

/* An image in the making: a value and its extents [batch, channels, height, width]. */
typedef struct {
    const char *name;
    int64_t batch, channels, height, width;
} tl_image;

/* What a convolution or pool does to an image; what is 0 takes the value in brackets. */
typedef struct {
    int64_t channels; /* of the result of a convolution */
    int64_t kernel;
    int64_t stride; /* [1] */
    int64_t groups; /* [1] */
    int64_t pad;    /* around the image */
    bool ceil;      /* a pool's last window may hang over the border */
    bool bias;
    /* The variance of one weight is gain / inputs of one output [2]: 1 keeps the size of what comes from a linear
     * layer, 2 of what comes from a ReLU. */
    double gain;
} tl_window;

/* The graph input `input`, f32[batch, channels, height, width]. */
tl_image tl_image_input(tl_onnx_build *b, const tl_zoo_size *size, int64_t channels);

/* Weights are called `name`.weight and `name`.bias. */
tl_image tl_image_conv(tl_onnx_build *b, const char *name, tl_image x, const tl_window *w);
/* MaxPool or AveragePool. */
tl_image tl_image_pool(tl_onnx_build *b, const char *op_type, const char *name, tl_image x,
                       const tl_window *w);
/* Statistics as training leaves them, near 0 and 1; `scale` is the weight's mean: small for the last one of a residual
 * branch, so that the sum of branch and shortcut keeps its size through the layers. */
tl_image tl_image_batch_norm(tl_onnx_build *b, const char *name, tl_image x, double scale,
                             double epsilon);
/* An operator that keeps the extents: of one image, or of an image and something of its shape. */
tl_image tl_image_map(tl_onnx_build *b, const char *op_type, const char *name, tl_image x);
tl_image tl_image_join(tl_onnx_build *b, const char *op_type, const char *name, tl_image x,
                       const char *other);
tl_image tl_image_relu6(tl_onnx_build *b, const char *name, tl_image x);
tl_image tl_image_silu(tl_onnx_build *b, const char *name, tl_image x);
/* Images of the same height and width, one behind the other. */
tl_image tl_image_concat(tl_onnx_build *b, const char *name, const tl_image *parts, int count);

/* x * weight' + bias for rows of `in` numbers. */
const char *tl_image_dense(tl_onnx_build *b, const char *name, const char *x, int64_t in,
                           int64_t out, double deviation);
/* The mean over space as [batch, channels]. */
const char *tl_image_mean(tl_onnx_build *b, const char *name, tl_image x);
/* The mean over space and a dense layer: the graph output `logits`, f32[batch, 1000]. */
void tl_image_classify(tl_onnx_build *b, const char *name, tl_image x, double deviation);

#endif
