/* runtime/api/api_open.c: opening compiled models: folders, libraries, those linked into the program. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "runtime/api/api_private.h"
#include "runtime/executable/linked.h"

/* Where a model is opened from: a folder, a library, or the program itself. */
typedef struct {
    const char *call;
    const char *path;           /* NULL: linked */
    const tilth_linked *linked; /* NULL: of the path */
    const char *device;         /* by name; NULL: the first of the kind that the model is for */
} source;

/* What a library's model is: gone before its code is. */
typedef struct {
    tl_executable *executable;
    void *library;
} library_model;

static void close_library(void *owner)
{
    library_model *m = owner;

    tl_executable_destroy(m->executable);
    dlclose(m->library);
    free(m);
}

/* A name with a folder in it, or dlopen would search for it. */
static tl_status open_library(const char *path, library_model **out, tl_diag *diag)
{
    char full[PATH_MAX];
    const tilth_linked *linked;

    if (realpath(path, full) == NULL)
        return tl_fail(diag, TL_IO, "%s: %s", path, strerror(errno));
    library_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    m->library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    if (m->library == NULL) {
        free(m);
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: neither a folder nor a library: %s", path,
                       dlerror());
    }
    linked = dlsym(m->library, TL_LINKED_SYMBOL);
    tl_status status = linked != NULL ? tl_executable_open_linked(linked, &m->executable, diag)
                                      : tl_fail(diag, TL_BAD_ARGUMENT,
                                                "%s: there is no compiled model in it", path);
    if (status != TL_OK) {
        tl_context(diag, "opening %s", path);
        close_library(m);
        return status;
    }
    *out = m;
    return TL_OK;
}

static tl_status open_executable(const source *from, tl_executable **out, library_model **library,
                                 tl_diag *diag)
{
    struct stat info;

    *library = NULL;
    if (from->path == NULL)
        return tl_executable_open_linked(from->linked, out, diag);
    if (stat(from->path, &info) != 0 || S_ISDIR(info.st_mode))
        return tl_executable_load(from->path, out, diag);
    TL_TRY(open_library(from->path, library, diag));
    *out = (*library)->executable;
    return TL_OK;
}

/* Puts a model for a device on one; `*device` stays NULL for one of the CPU. */
static tl_status put_on_device(const source *from, tl_executable *executable, tl_device **device,
                               tl_diag *diag)
{
    const char *kind = tl_executable_info(executable)->device;
    const char *name = from->device != NULL ? from->device : kind;

    *device = NULL;
    if (kind == NULL && (name == NULL || strcmp(name, "cpu") == 0))
        return TL_OK;
    if (kind == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the model is compiled for the CPU, not for %s",
                       from->call, name);
    TL_TRY(tl_device_open(name, device, diag));
    tl_status status = tl_executable_attach(executable, *device, diag);
    if (status != TL_OK) {
        tl_device_close(*device);
        *device = NULL;
    }
    return status;
}

static tl_status open_with(const source *from, tilth_pool *pool, tilth_model **out, tl_diag *diag)
{
    tl_executable *executable;
    library_model *library;
    tl_device *device;

    TL_TRY(open_executable(from, &executable, &library, diag));
    tl_status status = put_on_device(from, executable, &device, diag);
    if (status == TL_OK)
        status = tl_executable_prepare(executable, pool->pool, 0, diag);
    if (status == TL_OK)
        status = tl_api_model_make(executable, library, close_library, pool, true, out, diag);
    if (status == TL_OK) {
        (*out)->device = device;
        return TL_OK;
    }
    if (library != NULL)
        close_library(library);
    else
        tl_executable_destroy(executable);
    tl_device_close(device);
    return status;
}

static tl_status open_model(const source *from, tilth_pool *pool, tilth_model **out, tl_diag *diag)
{
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the model", from->call);
    *out = NULL;
    if (from->path == NULL && from->linked == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the model is NULL", from->call);
    if (pool != NULL) {
        TL_TRY(tl_handle_check(pool, TL_HANDLE_POOL, from->call, diag));
        TL_TRY(tl_pool_check(pool->pool, 0, diag));
        return open_with(from, pool, out, diag);
    }
    TL_TRY(tl_api_pool_make(NULL, &pool, diag));
    tl_status status = open_with(from, pool, out, diag);
    tl_api_pool_release(pool); /* from now on it is the model's alone */
    return status;
}

tilth_status tilth_model_open(const char *path, tilth_pool *pool, tilth_model **out,
                              tilth_error *error)
{
    source from = { .call = __func__, .path = path };
    TL_API_DIAG(diag);
    return tl_api_return(open_model(&from, pool, out, &diag), &diag, error);
}

tilth_status tilth_model_open_linked(const tilth_linked *linked, tilth_pool *pool,
                                     tilth_model **out, tilth_error *error)
{
    source from = { .call = __func__, .linked = linked };
    TL_API_DIAG(diag);
    return tl_api_return(open_model(&from, pool, out, &diag), &diag, error);
}

tilth_status tilth_model_open_on(const char *path, const char *device, tilth_pool *pool,
                                 tilth_model **out, tilth_error *error)
{
    source from = { .call = __func__, .path = path, .device = device };
    TL_API_DIAG(diag);
    return tl_api_return(open_model(&from, pool, out, &diag), &diag, error);
}

tilth_status tilth_model_open_linked_on(const tilth_linked *linked, const char *device,
                                        tilth_pool *pool, tilth_model **out, tilth_error *error)
{
    source from = { .call = __func__, .linked = linked, .device = device };
    TL_API_DIAG(diag);
    return tl_api_return(open_model(&from, pool, out, &diag), &diag, error);
}
