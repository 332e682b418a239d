/* runtime/cuda/cuda_memory.c: memory of a GPU, kept for the next that asks: the driver's own allocation waits for all work
 * and takes a tenth of a millisecond. What is kept goes back to the driver when it has no more to give. */
#include <assert.h>
#include <stdlib.h>
#include "runtime/cuda/cuda_private.h"

/* Sizes are rounded so that like ones are alike: to 256 bytes when small, to 2 MB when large. */
enum { SMALL = 256, LARGE = 2 << 20 };

struct cuda_block {
    cuda_block *next;
    cu_address address;
    int64_t size;
    bool is_used;
};

static int64_t rounded(int64_t size)
{
    int64_t unit = size < LARGE ? SMALL : LARGE;
    return size <= unit ? unit : (size + unit - 1) / unit * unit;
}

/* The smallest block that is free and not much larger than what is asked for. */
static cuda_block *find_block(cuda_device *d, int64_t size)
{
    cuda_block *best = NULL;
    for (cuda_block *b = d->blocks; b != NULL; b = b->next)
        if (!b->is_used && b->size >= size && b->size / 2 <= size &&
            (best == NULL || b->size < best->size))
            best = b;
    return best;
}

/* Gives the unused (or all) blocks back to the driver, whose context is current. */
static void give_back(cuda_device *d, bool all)
{
    for (cuda_block **at = &d->blocks; *at != NULL;) {
        cuda_block *b = *at;
        if (b->is_used && !all) {
            at = &b->next;
            continue;
        }
        d->driver->memory_free(b->address);
        *at = b->next;
        free(b);
    }
}

void tl_cuda_free_blocks(cuda_device *d)
{
    cu_context before = NULL;
    if (d->driver->context_get(&before) == CU_SUCCESS &&
        d->driver->context_set(d->context) == CU_SUCCESS) {
        give_back(d, true);
        d->driver->context_set(before);
    }
    for (cuda_block *b = d->blocks, *next; b != NULL; b = next) { /* a context that is dead */
        next = b->next;
        free(b);
    }
    d->blocks = NULL;
}

static tl_status no_memory(cuda_device *d, int64_t size, tl_diag *diag)
{
    size_t available = 0, total = 0;
    d->driver->memory_info(&available, &total);
    return tl_fail(diag, TL_NO_MEMORY, "%s has no memory for %lld bytes more: %zu of %zu are free",
                   d->base.facts.name, (long long)size, available, total);
}

static tl_status new_block(cuda_device *d, int64_t size, void **out, tl_diag *diag)
{
    cu_context before;
    cuda_block *b = calloc(1, sizeof *b);

    if (b == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cuda: out of memory");
    tl_status status = tl_cuda_enter(d, &before, diag);
    if (status != TL_OK) {
        free(b);
        return status;
    }
    pthread_mutex_lock(&d->lock);
    cu_result result = d->driver->memory_allocate(&b->address, (size_t)size);
    if (result == CU_OUT_OF_MEMORY) {
        give_back(d, false);
        result = d->driver->memory_allocate(&b->address, (size_t)size);
    }
    if (result == CU_SUCCESS) {
        *b = (cuda_block){ d->blocks, b->address, size, true };
        d->blocks = b;
        *out = (void *)(uintptr_t)b->address;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&d->lock);
    if (result == CU_OUT_OF_MEMORY)
        status = no_memory(d, size, diag);
    tl_status left = tl_cuda_leave(d, before, result == CU_OUT_OF_MEMORY ? CU_SUCCESS : result,
                                   "cuMemAlloc", diag);
    return left != TL_OK ? left : status;
}

tl_status tl_cuda_allocate(tl_device *device, int64_t size, void **out, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;

    if (size < 0 || size > d->base.facts.memory_bytes)
        return tl_fail(diag, TL_NO_MEMORY, "%s has %lld bytes of memory, not %lld",
                       d->base.facts.name, (long long)d->base.facts.memory_bytes, (long long)size);
    size = rounded(size);
    pthread_mutex_lock(&d->lock);
    cuda_block *kept = atomic_load(&d->is_lost) ? NULL : find_block(d, size);
    if (kept != NULL) {
        kept->is_used = true;
        *out = (void *)(uintptr_t)kept->address;
    }
    pthread_mutex_unlock(&d->lock);
    return kept != NULL ? TL_OK : new_block(d, size, out, diag);
}

void tl_cuda_release(tl_device *device, void *address)
{
    cuda_device *d = (cuda_device *)device;

    if (address == NULL)
        return;
    pthread_mutex_lock(&d->lock);
    cuda_block *b = d->blocks;
    while (b != NULL && b->address != (uintptr_t)address)
        b = b->next;
    assert(b != NULL && b->is_used);
    b->is_used = false;
    pthread_mutex_unlock(&d->lock);
}

tl_status tl_cuda_allocate_host(tl_device *device, int64_t size, void **out, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;
    cu_context before;

    TL_TRY(tl_cuda_enter(d, &before, diag));
    cu_result result = d->driver->host_allocate(out, (size_t)(size > 0 ? size : 1), 0);
    return tl_cuda_leave(d, before, result, "cuMemHostAlloc", diag);
}

void tl_cuda_release_host(tl_device *device, void *address)
{
    cuda_device *d = (cuda_device *)device;
    cu_context before = NULL;

    if (address == NULL)
        return;
    if (d->driver->context_get(&before) == CU_SUCCESS) {
        d->driver->context_set(d->context);
        d->driver->host_free(address);
        d->driver->context_set(before);
    }
}
