/* runtime/api/api_private.h: what is behind the handles of tilth_rt.h.
 *
 * A handle starts with a kind that turns into DEAD when its owner destroys it, and a count of
 * those who need it: the owner and the objects made from it. Debug builds keep the memory of the
 * latest dead ones, so that a use after destroy is found by its kind. */
#ifndef TL_RUNTIME_API_API_PRIVATE_H
#define TL_RUNTIME_API_API_PRIVATE_H
#include <stdatomic.h>
#include "runtime/executable/executable.h"
#include "runtime/api/tilth_rt.h"

typedef enum {
    TL_HANDLE_POOL = 0x74706f6f, /* none of them likely in other memory */
    TL_HANDLE_MODEL = 0x746d6f64,
    TL_HANDLE_RUNNER = 0x7472756e,
    TL_HANDLE_FAMILY = 0x74666d6c,
    TL_HANDLE_CALLER = 0x74636c6c,
    TL_HANDLE_DEAD = 0x64656164,
} tl_handle_kind;

typedef struct {
    _Atomic tl_handle_kind kind;
    atomic_int references;
} tl_handle;

struct tilth_pool {
    tl_handle handle;
    tl_pool *pool;
};

struct tilth_model {
    tl_handle handle;
    tl_executable *executable;
    void *owner; /* of the executable; NULL: the model itself */
    void (*destroy_owner)(void *owner);
    tilth_pool *pool;
    tl_device *device;    /* that was opened for it, closed after it; NULL: none, or the owner's */
    char device_name[32]; /* "cpu", "cuda:0" */
    bool from_disk;
};

void tl_handle_start(tl_handle *handle, tl_handle_kind kind);
/* TL_BAD_ARGUMENT, naming `call`, when it is NULL, destroyed, or of another kind. */
tl_status tl_handle_check(const void *handle, tl_handle_kind kind, const char *call, tl_diag *diag);
/* The owner's end of it: false when someone else was faster. */
bool tl_handle_kill(tl_handle *handle, tl_handle_kind kind);
void tl_handle_retain(tl_handle *handle);
/* True for the last one, who releases what it holds and then calls tl_handle_free. */
bool tl_handle_release(tl_handle *handle);
void tl_handle_free(void *handle);

/* Gives up a model's or runner's part of a pool or model. */
void tl_api_pool_release(tilth_pool *pool);
void tl_api_model_release(tilth_model *model);

/* A model of an executable that is prepared; takes its own part of the pool. `destroy_owner`
 * destroys the executable with its owner. On failure nothing is taken over. */
tl_status tl_api_model_make(tl_executable *executable, void *owner,
                            void (*destroy_owner)(void *owner), tilth_pool *pool, bool from_disk,
                            tilth_model **out, tl_diag *diag);
/* What the dims of the runner's executable are from the next run on. Where they are others now, places have other sizes, and
 * have to be bound or written again. For who holds the runner alone. */
tl_status tl_api_runner_set_dims(tilth_runner *runner, const int64_t *dims, tl_diag *diag);
/* A pool of `threads`, for a model whose caller gave none. */
tl_status tl_api_pool_make(const tl_pool_options *options, tilth_pool **out, tl_diag *diag);

/* An empty sentence to start with, cheap on the way that does not fail. */
#define TL_API_DIAG(diag) \
    tl_diag diag;         \
    diag.text[0] = '\0'
/* Hands status and sentence to the caller. */
tilth_status tl_api_return(tl_status status, const tl_diag *diag, tilth_error *error);

/* The shape that the latest run gave an output: the port's, but for extents that it has computed. */
const int64_t *tl_api_output_shape(const tilth_runner *runner, int output);

#endif
