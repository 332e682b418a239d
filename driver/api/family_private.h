/* driver/api/family_private.h: one model for all shapes of its inputs. */
#ifndef TL_DRIVER_API_FAMILY_PRIVATE_H
#define TL_DRIVER_API_FAMILY_PRIVATE_H
#include <pthread.h>
#include "driver/api/load_private.h"

/* An input as a caller has it. */
typedef struct {
    tl_shape shape;
    const void *data; /* NULL: not set */
    size_t size;
} tl_family_given;

/* What was compiled for one combination of shapes and deciding values. */
typedef struct {
    tilth_model *model;
    uint64_t used; /* the family's clock when it was last asked for */
} tl_family_member;

struct tilth_family {
    tl_handle handle;
    pthread_mutex_t lock; /* of what is below `signature` */
    tl_arena *arena;
    tl_load_request request;
    tilth_load_options options;
    tilth_pool *pool;
    tl_onnx_signature signature;
    tl_family_member members[TILTH_FAMILY_LIMIT];
    int count;
    uint64_t clock;
    int64_t compiled;
};

void tl_family_release(tilth_family *family);
/* Whether code for these ports is for these inputs: their shapes, and the values that decide. */
bool tl_family_fits(const tl_executable_spec *spec, const tl_family_given *given);
/* A runner of the member for these inputs, which is compiled if there is none; the least recently used one goes for it. */
tl_status tl_family_runner(tilth_family *family, const tl_family_given *given, int threads,
                           tilth_runner **out, const tl_executable_spec **spec, tl_diag *diag);

#endif
