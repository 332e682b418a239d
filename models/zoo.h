/* models/zoo.h: models with seeded weights, by name. */
#ifndef TL_MODELS_ZOO_H
#define TL_MODELS_ZOO_H
#include "models/onnx_write.h"

/* Adds the model called `name` to the build; sizes stand in the builder's table. */
typedef void tl_zoo_builder(tl_onnx_build *b, const char *name);
typedef struct {
    const char *name;
    tl_zoo_builder *build;
    const char *description;
} tl_zoo_model;

extern const tl_zoo_model tl_zoo[];
extern const int tl_zoo_count;
const tl_zoo_model *tl_zoo_find(const char *name); /* NULL when there is none */

/* Builds and writes one model; `external` puts the weights in a file beside it. TL_BAD_ARGUMENT lists the names when
 * there is no such model. */
tl_status tl_zoo_write(const char *name, uint64_t seed, bool external, const char *path,
                       tl_diag *diag);

#endif
