/* driver/api/family_private.h: the handle of a family. */
#ifndef TL_DRIVER_API_FAMILY_PRIVATE_H
#define TL_DRIVER_API_FAMILY_PRIVATE_H
#include "driver/api/load_private.h"
#include "driver/pipeline/family.h"

struct tilth_family {
    tl_handle handle;
    tl_family *family;
    tilth_pool *pool;
    tl_pool *compile_pool; /* NULL: it compiles on `pool` */
};

/* Gives up a part of it: its owner's, or a caller's. */
void tl_api_family_release(tilth_family *family);

#endif
