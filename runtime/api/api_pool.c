/* runtime/api/api_pool.c: thread pools of the C API. */
#include <stdlib.h>
#include "runtime/api/api_private.h"

_Static_assert((int)TILTH_PIN_AUTO == (int)TL_PIN_AUTO &&
                   (int)TILTH_PIN_NEVER == (int)TL_PIN_NEVER &&
                   (int)TILTH_PIN_ALWAYS == (int)TL_PIN_ALWAYS,
               "tl_pin in the same order");

tl_status tl_api_pool_make(const tl_pool_options *options, tilth_pool **out, tl_diag *diag)
{
    tilth_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "thread pool: out of memory");
    tl_status status = tl_pool_create(options, &pool->pool, diag);
    if (status != TL_OK) {
        free(pool);
        return status;
    }
    tl_handle_start(&pool->handle, TL_HANDLE_POOL);
    *out = pool;
    return TL_OK;
}

static tl_status create(const tilth_pool_options *given, tilth_pool **out, tl_diag *diag)
{
    static const char call[] = "tilth_pool_create";
    tl_pool_options options = { 0 };

    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the pool", call);
    *out = NULL;
    if (given != NULL) {
        if (given->struct_size != sizeof *given)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "%s: struct_size is %zu, not the %zu of this library's options", call,
                           given->struct_size, sizeof *given);
        if (given->threads < 0 || given->threads > TL_MAX_THREADS)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d threads are not in 0..%d", call,
                           given->threads, TL_MAX_THREADS);
        if ((int)given->pin < (int)TILTH_PIN_AUTO || (int)given->pin > (int)TILTH_PIN_ALWAYS)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: pin is %d, none of tilth_pin", call,
                           (int)given->pin);
        if (given->spin_us < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: spin_us is %d, below 0", call,
                           given->spin_us);
        options = (tl_pool_options){ given->threads, (tl_pin)given->pin, given->spin_us };
    }
    return tl_api_pool_make(&options, out, diag);
}

tilth_status tilth_pool_create(const tilth_pool_options *options, tilth_pool **out,
                               tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(create(options, out, &diag), &diag, error);
}

void tl_api_pool_release(tilth_pool *pool)
{
    if (!tl_handle_release(&pool->handle))
        return;
    tl_pool_destroy(pool->pool);
    tl_handle_free(pool);
}

tilth_status tilth_pool_destroy(tilth_pool *pool)
{
    if (pool == NULL)
        return TILTH_OK;
    if (!tl_handle_kill(&pool->handle, TL_HANDLE_POOL))
        return TILTH_BAD_ARGUMENT;
    tl_api_pool_release(pool);
    return TILTH_OK;
}

int tilth_pool_threads(const tilth_pool *pool)
{
    return tl_handle_check(pool, TL_HANDLE_POOL, __func__, NULL) == TL_OK
               ? tl_pool_threads(pool->pool)
               : 0;
}
