/* driver/dataset/collect_run.h: a run of `tilth dataset collect`. */
#ifndef TL_DRIVER_DATASET_COLLECT_RUN_H
#define TL_DRIVER_DATASET_COLLECT_RUN_H
#include "driver/dataset/data_sources.h"
#include "tuner/dataset/collect.h"

typedef struct {
    tl_session_options common;
    tl_data_sources sources;
    int64_t per_task;
    double seconds; /* 0: until all is there */
    tl_cold cold;
} tl_collect_settings;

/* $XDG_DATA_HOME/tilth/dataset.db; false: there is no such folder to name. */
bool tl_dataset_default_path(tl_text *out);

/* Prints progress to stderr and what came of it to stdout. TL_INTERRUPTED after SIGINT or SIGTERM. */
tl_status tl_collect_run(const tl_collect_settings *settings, tl_diag *diag);

#endif
