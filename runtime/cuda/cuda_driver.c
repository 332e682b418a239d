/* runtime/cuda/cuda_driver.c: the CUDA driver, loaded when it is asked for.
 *
 * It is libcuda.so.1, where the system finds it or where containers mount it; TILTH_CUDA_LIBRARY names another. Never
 * libcuda.so, which is a stub that comes with the toolkit. Every entry point is looked up once; a driver that lacks a
 * needed one is too old. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cuda/cuda_private.h"

enum {
    OLDEST = 11000
}; /* CUDA 11.0: the first whose graphs and kernels of sm_80 are as they are used here */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_driver driver;
static enum { NOT_TRIED, LOADED, FAILED } state;
static tl_diag failure; /* the sentence, when it is FAILED */

static const struct {
    const char *symbol;
    size_t offset;
    bool needed;
} entries[] = {
#define ENTRY(field, symbol, needed, arguments) { symbol, offsetof(cuda_driver, field), needed },
#include "runtime/cuda/cuda_driver.def"
#undef ENTRY
};

tl_status tl_cuda_failed(const cuda_driver *d, cu_result result, const char *call, tl_diag *diag)
{
    const char *name = NULL, *text = NULL;

    if (d->error_name == NULL || d->error_name(result, &name) != CU_SUCCESS || name == NULL)
        name = result == CU_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY" : "an unknown error";
    if (d->error_text == NULL || d->error_text(result, &text) != CU_SUCCESS || text == NULL)
        text = "the driver says no more";
    return tl_fail(diag, result == CU_OUT_OF_MEMORY ? TL_NO_MEMORY : TL_DEVICE,
                   "the CUDA driver failed in %s: %s (%d): %s", call, name, result, text);
}

static void *open_library(tl_diag *diag)
{
    static const char *const names[] = { "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1" };
    const char *own = getenv("TILTH_CUDA_LIBRARY");
    void *library = NULL;

    if (own != NULL && own[0] != '\0') {
        library = dlopen(own, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            tl_fail(diag, TL_DEVICE, "there is no CUDA driver: TILTH_CUDA_LIBRARY: %s", dlerror());
        return library;
    }
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        tl_fail(diag, TL_DEVICE,
                "there is no CUDA driver: libcuda.so.1 is neither where the system looks nor in "
                "/usr/local/nvidia/lib64");
    return library;
}

static tl_status find_entries(tl_diag *diag)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(driver.library, entries[i].symbol);
        if (address == NULL && entries[i].needed)
            return tl_fail(diag, TL_DEVICE, "the CUDA driver is too old: it has no %s",
                           entries[i].symbol);
        memcpy((char *)&driver + entries[i].offset, &address, sizeof address);
    }
    return TL_OK;
}

static tl_status start(tl_diag *diag)
{
    cu_result result = driver.init(0);

    if (result == CU_NO_DEVICE)
        return tl_fail(diag, TL_DEVICE, "the CUDA driver finds no GPU");
    if (result != CU_SUCCESS)
        return tl_cuda_failed(&driver, result, "cuInit", diag);
    result = driver.driver_version(&driver.version);
    if (result != CU_SUCCESS)
        return tl_cuda_failed(&driver, result, "cuDriverGetVersion", diag);
    if (driver.version < OLDEST)
        return tl_fail(diag, TL_DEVICE,
                       "the CUDA driver is too old: it is of CUDA %d.%d, %d.%d is needed",
                       driver.version / 1000, driver.version % 1000 / 10, OLDEST / 1000,
                       OLDEST % 1000 / 10);
    result = driver.device_count(&driver.devices);
    if (result != CU_SUCCESS)
        return tl_cuda_failed(&driver, result, "cuDeviceGetCount", diag);
    if (driver.devices < 1)
        return tl_fail(diag, TL_DEVICE, "the CUDA driver finds no GPU");
    return TL_OK;
}

static tl_status load(tl_diag *diag)
{
    driver.library = open_library(diag);
    if (driver.library == NULL)
        return TL_DEVICE;
    tl_status status = find_entries(diag);
    return status == TL_OK ? start(diag) : status;
}

tl_status tl_cuda_driver(const cuda_driver **out, tl_diag *diag)
{
    pthread_mutex_lock(&lock);
    if (state == NOT_TRIED)
        state = load(&failure) == TL_OK ? LOADED : FAILED;
    bool loaded = state == LOADED;
    pthread_mutex_unlock(&lock);
    *out = &driver;
    return loaded ? TL_OK : tl_fail(diag, TL_DEVICE, "%s", failure.text);
}
