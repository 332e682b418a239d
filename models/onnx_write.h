/* models/onnx_write.h: writes ONNX models from C: values are names, a node is one call.
 *
 *     tl_onnx_build *b = tl_onnx_build_create("net", 17, seed);
 *     const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(1, 3, 224, 224));
 *     const char *w = tl_build_normal(b, "w", 0, 0.05, TL_DIMS(64, 3, 7, 7));
 *     const char *y = tl_build_node(b, "Conv", "conv1", TL_NAMES(x, w));
 *     tl_build_ints(b, "strides", TL_DIMS(2, 2));            an attribute of the latest node
 *     tl_build_output(b, y, TL_F32, TL_DIMS(1, 64, 109, 109));
 *     tl_status status = tl_onnx_build_write(b, "net.onnx", diag);
 *     tl_onnx_build_destroy(b);
 *
 * The same seed gives the same file, byte for byte, and a weight's numbers depend on nothing but the seed and its name.
 * When memory runs out, calls do nothing more and writing returns TL_NO_MEMORY. */
#ifndef TL_MODELS_ONNX_WRITE_H
#define TL_MODELS_ONNX_WRITE_H
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

typedef struct tl_onnx_build tl_onnx_build;

/* NULL: no memory. */
tl_onnx_build *tl_onnx_build_create(const char *name, int opset, uint64_t seed);
void tl_onnx_build_destroy(tl_onnx_build *b);
/* Marks the build as failed for want of memory, for builders that allocate; returns "". */
const char *tl_onnx_build_fail(tl_onnx_build *b);
bool tl_onnx_build_failed(const tl_onnx_build *b);

/* Lists that are written where they are used. */
typedef struct {
    int count;
    const int64_t *values;
} tl_build_list;
typedef struct {
    int count;
    const char *const *values;
} tl_build_names;
#define TL_DIMS(...)                                                        \
    ((tl_build_list){ sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                      (const int64_t[]){ __VA_ARGS__ } })
#define TL_NAMES(...)                                                                  \
    ((tl_build_names){ sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *), \
                       (const char *const[]){ __VA_ARGS__ } })
#define TL_SCALAR ((tl_build_list){ 0, 0 })

/* Names returned live as long as the build; those given are copied. */
const char *tl_build_input(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims);
void tl_build_output(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims);

/* Initializers: given numbers (copied), or normally distributed f32; those are drawn only when the model is written. */
const char *tl_build_weight(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims,
                            const void *data);
const char *tl_build_normal(tl_onnx_build *b, const char *name, double mean, double deviation,
                            tl_build_list dims);

/* A node whose name is `name` and whose output is `name`_output_0, which is returned. Empty input names are optional
 * inputs that are not given. */
const char *tl_build_node(tl_onnx_build *b, const char *op_type, const char *name,
                          tl_build_names inputs);
/* Gives the latest node's latest output a name of its own, before anybody has read it. */
const char *tl_build_rename(tl_onnx_build *b, const char *name);
/* One more output of the latest node. */
const char *tl_build_more(tl_onnx_build *b);
/* A Constant node: a tensor of i64 (TL_SCALAR: of rank 0), or an f32 scalar, as exporters write operands. */
const char *tl_build_constant_ints(tl_onnx_build *b, const char *name, tl_build_list values);
const char *tl_build_constant_int(tl_onnx_build *b, const char *name, int64_t value);
const char *tl_build_constant_float(tl_onnx_build *b, const char *name, double value);

/* Attributes of the latest node. */
void tl_build_int(tl_onnx_build *b, const char *name, int64_t value);
void tl_build_float(tl_onnx_build *b, const char *name, double value);
void tl_build_string(tl_onnx_build *b, const char *name, const char *value);
void tl_build_ints(tl_onnx_build *b, const char *name, tl_build_list values);
void tl_build_tensor_int(tl_onnx_build *b, const char *name, int64_t value); /* i64[1] */

/* What is there, for checks and tests. A name stays valid as long as the build. */
int64_t tl_build_input_extent(const tl_onnx_build *b, const char *name, int axis); /* -1: none */
const char *tl_build_input_name(const tl_onnx_build *b, int index); /* NULL behind the last one */
int tl_build_count_nodes(const tl_onnx_build *b, const char *op_type);
int64_t tl_build_count_weights(const tl_onnx_build *b); /* the numbers in f32 initializers */

/* printf into the build's memory. */
const char *tl_build_name(tl_onnx_build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether weights of 1 KB and more go to a file beside the model (its name with .weights for .onnx). Otherwise they
 * do when the model would not fit in protobuf's 2 GB. */
void tl_onnx_build_external(tl_onnx_build *b, bool external);
/* Both files appear whole or not at all. */
tl_status tl_onnx_build_write(tl_onnx_build *b, const char *path, tl_diag *diag);

#endif
