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

#endif
