/* driver/api/load_private.h: what loading one model and loading a family of them share. */
#ifndef TL_DRIVER_API_LOAD_PRIVATE_H
#define TL_DRIVER_API_LOAD_PRIVATE_H
#include "driver/api/tilth.h"
#include "driver/pipeline/model.h"
#include "runtime/api/api_private.h"

/* What is loaded: a file, or bytes. */
typedef struct {
    const char *call, *path; /* call: of the API, for messages */
    const void *bytes;
    size_t size;
    const char *folder;
} tl_load_request;

/* Whether request and options are sound; `whole` gets the options, with defaults for what an older program does not know. */
tl_status tl_load_check(const tl_load_request *r, const tilth_load_options *options,
                        tilth_load_options *whole, tl_diag *diag);
/* What of the options the pipeline wants; `compile_pool` is one of their own, to be destroyed after loading, or NULL. */
tl_status tl_load_options(const tilth_load_options *options, tilth_pool *pool,
                          tl_model_options *out, tl_pool **compile_pool, tl_diag *diag);
/* A model that was compiled here; on failure it is destroyed. */
tl_status tl_load_wrap(tl_model *model, tilth_pool *pool, tilth_model **out, tl_diag *diag);
/* Loads with the pool that the model will run on; `shapes` instead of those of the options. */
tl_status tl_load_on(const tl_load_request *r, const tilth_load_options *options,
                     const tl_shape_override *shapes, int shape_count, tilth_pool *pool,
                     tilth_model **out, tl_diag *diag);

#endif
