/* driver/inspect/inspect.h: what can be said of a model before it runs. */
#ifndef TL_DRIVER_INSPECT_INSPECT_H
#define TL_DRIVER_INSPECT_INSPECT_H
#include "driver/cli/session.h"

/* Which of a machine's two limits a kernel meets first, if it reached it. */
typedef struct {
    double seconds; /* the longer of flops / peak and bytes / bandwidth */
    bool memory_bound;
} tl_roofline;

typedef struct {
    const char *path;
    const tl_model_facts *facts;
    int threads;
    bool measured; /* the limits; else estimated from the target */
    double peak_gflops, bandwidth_gbs;
    tl_roofline *kernels; /* one a kernel */
    double total_s;
    int64_t constant_bytes;
    tl_plan_sizes plan; /* of the values between kernels; scratch comes on top */
    int class_count;
} tl_inspection;

/* `quick`: does not measure. Lists live in the session's arena. */
tl_status tl_inspect(const tl_session *session, const char *path, bool quick, tl_inspection *out,
                     tl_diag *diag);

void tl_inspect_print(const tl_inspection *inspection, bool kernels);
void tl_inspect_print_json(const tl_inspection *inspection);
/* Graphviz: a box a kernel with its nodes in it, an edge a value. */
void tl_inspect_dot(const tl_inspection *inspection, tl_text *out);
/* The graph after all rewrites, as text that reads back: it is read here, beside the graph's own constants. */
tl_status tl_inspect_graph(const tl_session *session, tl_text *out, tl_diag *diag);
/* "f32[1, 64, 56, 56]", and behind it how it lies in memory unless that is plain: "blocks 16@1 halo 1+1@2": axis 1 is cut
 * into blocks of 16, and a line of zeros lies before and behind axis 2. */
void tl_inspect_describe(const tl_value *value, tl_text *out);

/* What a tuner may decide: each distinct kernel, each of its lowerings under these numerics, each decision of its sketches
 * with its options, and the number of points. As lines for people, or one JSON object a lowering. */
tl_status tl_inspect_space(const tl_session *session, tl_numerics numerics, bool json, tl_text *out,
                           tl_diag *diag);

/* The open axes of the model, a line each or a JSON object: whether one code serves all of their extents, or which node or kernel
 * needs the number; then outputs as functions of them. `options` may give extents. The session is started, not opened. */
tl_status tl_inspect_axes(const tl_session *session, const char *path,
                          const tl_model_options *options, bool json, tl_text *out, tl_diag *diag);

/* The operators of ONNX that are read, with their opsets, and those that are refused: from the tables of the reader. */
typedef enum { TL_OPERATORS_TEXT, TL_OPERATORS_JSON, TL_OPERATORS_MARKDOWN } tl_operators_form;
void tl_inspect_operators(tl_operators_form form, tl_text *out);

/* TL_UNSUPPORTED: the lines of the sentence, one a reason, as records. */
void tl_inspect_print_unsupported(const tl_diag *diag);

#endif
