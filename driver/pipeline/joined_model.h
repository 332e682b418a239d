/* driver/pipeline/joined_model.h: one compiled model for all values of some of its open axes.
 *
 *     the graph read at several samples of the dims --join--> programs with dims --> an executable with dims
 *
 * The frontend knows numbers, not symbols: it reads the model for a few values of the dims (the corners of a box, and points
 * between them). What it makes of them has to be the same but for numbers that are functions of the dims
 * (runtime/base/varying.h): graphs, programs of kernels, sizes of values. Code is made of the functions.
 *
 * That a call means what the code computes is not taken on trust: for values of the dims that are new, the graph is read for
 * them, and has to be what the functions say (tl_join_check). */
#ifndef TL_DRIVER_PIPELINE_JOINED_MODEL_H
#define TL_DRIVER_PIPELINE_JOINED_MODEL_H
#include "driver/pipeline/model.h"
#include "runtime/base/varying_text.h"

typedef struct tl_join tl_join;

/* At sample i the model's inputs have the shapes from shapes[i * input_count] on (and the values that are offered). */
typedef struct {
    const tl_executable_dim *dims; /* `start` does not count */
    tl_samples samples;
    int input_count;
    const tl_shape_override *shapes;
} tl_join_request;

/* `onnx` (tl_onnx_open) must stay open as long as the join, or a model made of it, is there. TL_UNSUPPORTED says what depends on
 * the dims in another way, and where. */
tl_status tl_join_create(tl_onnx *onnx, const tl_join_request *request,
                         const tl_model_options *options, tl_join **out, tl_diag *diag);
void tl_join_destroy(tl_join *join); /* after the model; NULL is fine */
/* Whether the model with inputs of these shapes is what the join is for these dims. TL_UNSUPPORTED: it is not; any other failure
 * is that of reading it. */
tl_status tl_join_check(tl_join *join, const tl_shape_override *shapes, int shape_count,
                        const int64_t *dims, tl_diag *diag);
/* The executable has the request's dims; the first sample is their start. Nothing is read from the cache but objects. */
tl_status tl_join_compile(tl_join *join, const tl_model_options *options, tl_model **out,
                          tl_diag *diag);
/* For people: outputs as functions of the dims, their ranges, and how many kernels take them. */
void tl_join_describe(const tl_join *join, tl_text *out);

#endif
