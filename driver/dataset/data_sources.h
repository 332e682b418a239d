/* driver/dataset/data_sources.h: where the tasks of a data set come from: models, kernels, the zoo at several sizes, layers of
 * random shapes. */
#ifndef TL_DRIVER_DATASET_DATA_SOURCES_H
#define TL_DRIVER_DATASET_DATA_SOURCES_H
#include "driver/cli/session.h"
#include "tuner/model/tune_list.h"

typedef struct {
    const char *const *paths; /* .onnx and .tk */
    int path_count;
    bool zoo;       /* each of its networks at three sizes */
    int64_t layers; /* of random shapes */
    uint64_t seed;
} tl_data_sources;

/* Their tasks, each workload once, in an order that the seed says; all in the session's arena. A model that cannot be read is an
 * error where it was named. */
tl_status tl_data_tasks(const tl_data_sources *sources, const tl_session_options *options,
                        tl_session *session, tl_numerics numerics, const tl_tune_task **out,
                        int *count, int64_t *constant_bytes, tl_diag *diag);

/* The tasks of one model, or a kernel, with its own texts, weighed by how often it runs them; in the session's arena. */
tl_status tl_data_model_tasks(tl_session *session, const tl_session_options *common,
                              const char *path, tl_numerics numerics, tl_tune_list *out,
                              tl_diag *diag);

#endif
