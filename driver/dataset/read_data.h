/* driver/dataset/read_data.h: files of measured points, of either kind. */
#ifndef TL_DRIVER_DATASET_READ_DATA_H
#define TL_DRIVER_DATASET_READ_DATA_H
#include "tuner/dataset/dataset.h"

/* Adds what is in a data set's file or in a database of records; `added` and `skipped`: records. */
tl_status tl_read_data(tl_dataset *set, const char *path, int64_t *added, int64_t *skipped,
                       tl_diag *diag);

#endif
