/* models/zoo.h: models with seeded weights, by name. */
#ifndef TL_MODELS_ZOO_H
#define TL_MODELS_ZOO_H
#include "frontend/frontend.h"
#include "models/onnx_write.h"

/* What a caller may choose of a model's inputs. */
typedef struct {
    int64_t batch;
    int64_t height, width; /* of images */
    int64_t length;        /* tokens or steps */
} tl_zoo_size;

/* Which axes of the inputs those are. */
typedef enum {
    TL_ZOO_IMAGE,    /* [batch, channels, height, width] */
    TL_ZOO_TOKENS,   /* [batch, length] */
    TL_ZOO_SEQUENCE, /* [batch, length, features] */
} tl_zoo_input;

/* Adds the model called `name` to the build; everything but `size` stands in the builder's table. */
typedef void tl_zoo_builder(tl_onnx_build *b, const char *name, const tl_zoo_size *size);
typedef struct {
    const char *name;
    tl_zoo_builder *build;
    tl_zoo_input input;
    int64_t size, least, multiple, most; /* of height and width, or of the length */
    const char *description;
} tl_zoo_model;

extern const tl_zoo_model tl_zoo[];
extern const int tl_zoo_count;
const tl_zoo_model *tl_zoo_find(const char *name); /* NULL when there is none */
tl_zoo_size tl_zoo_default_size(const tl_zoo_model *model);

/* Builds and writes one model. `shapes` (may be none) are the shapes that inputs shall have instead of the model's own:
 * batch, image size or length may differ. `external` puts the weights in a file beside it. TL_BAD_ARGUMENT lists the
 * names when there is no such model, and says what is wrong with a shape. */
tl_status tl_zoo_write(const char *name, const tl_shape_override *shapes, int shape_count,
                       uint64_t seed, bool external, const char *path, tl_diag *diag);

#endif
