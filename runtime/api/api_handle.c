/* runtime/api/api_handle.c: the life of the handles that the C API gives out. */
#include <stdlib.h>
#include "runtime/api/api_private.h"

void tl_handle_start(tl_handle *handle, tl_handle_kind kind)
{
    atomic_init(&handle->kind, kind);
    atomic_init(&handle->references, 1);
}

static const char *kind_text(tl_handle_kind kind)
{
    switch (kind) {
    case TL_HANDLE_POOL:
        return "pool";
    case TL_HANDLE_MODEL:
        return "model";
    case TL_HANDLE_RUNNER:
        return "runner";
    case TL_HANDLE_FAMILY:
        return "family";
    case TL_HANDLE_CALLER:
        return "caller";
    case TL_HANDLE_DEAD:
        break;
    }
    return "object";
}

tl_status tl_handle_check(const void *handle, tl_handle_kind kind, const char *call, tl_diag *diag)
{
    if (handle == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the %s is NULL", call, kind_text(kind));
    tl_handle_kind found =
        atomic_load_explicit(&((const tl_handle *)handle)->kind, memory_order_relaxed);
    if (found == kind)
        return TL_OK;
    if (found == TL_HANDLE_DEAD)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: this %s was destroyed", call, kind_text(kind));
    return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %p is no %s", call, handle, kind_text(kind));
}

bool tl_handle_kill(tl_handle *handle, tl_handle_kind kind)
{
    return atomic_compare_exchange_strong(&handle->kind, &kind, TL_HANDLE_DEAD);
}

void tl_handle_retain(tl_handle *handle)
{
    atomic_fetch_add_explicit(&handle->references, 1, memory_order_relaxed);
}

bool tl_handle_release(tl_handle *handle)
{
    return atomic_fetch_sub(&handle->references, 1) == 1;
}

#ifdef NDEBUG
void tl_handle_free(void *handle)
{
    free(handle);
}
#else
#include <pthread.h>

/* The latest dead handles: readable, so that using one is an error instead of undefined. */
void tl_handle_free(void *handle)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *dead[256];
    static size_t count;

    pthread_mutex_lock(&lock);
    size_t place = count++ % (sizeof dead / sizeof *dead);
    void *oldest = dead[place];
    dead[place] = handle;
    pthread_mutex_unlock(&lock);
    free(oldest);
}
#endif
