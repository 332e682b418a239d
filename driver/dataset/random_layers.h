/* driver/dataset/random_layers.h: small models of a layer or two, of shapes that no network has: their kernels make a data set
 * broad. */
#ifndef TL_DRIVER_DATASET_RANDOM_LAYERS_H
#define TL_DRIVER_DATASET_RANDOM_LAYERS_H
#include <stdint.h>
#include "runtime/base/status.h"

/* Writes number `number` of those that `seed` stands for to `path`; each is of the next kind. */
tl_status tl_random_layers_write(uint64_t seed, int number, const char *path, tl_diag *diag);

#endif
