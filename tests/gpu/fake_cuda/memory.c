/* tests/gpu/fake_cuda/memory.c: memory of the device and pinned memory of the host: what is allocated, and where it lies. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdlib.h>
#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

typedef struct allocation {
    struct allocation *next;
    unsigned char *host;
    size_t size;
    bool is_pinned; /* memory of the host */
} allocation;
static allocation *allocations;

bool fake_is_device(uint64_t address)
{
    return (address & (UINT64_C(0xff) << 48)) == TAG;
}

unsigned char *fake_reach(uint64_t address, size_t size)
{
    if (!fake_is_device(address))
        return NULL;
    uint64_t host = address ^ TAG;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (!a->is_pinned && host >= (uintptr_t)a->host && host - (uintptr_t)a->host <= a->size &&
            size <= a->size - (host - (uintptr_t)a->host))
            return (unsigned char *)(uintptr_t)host;
    return NULL;
}

bool fake_is_pinned(const void *address)
{
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (a->is_pinned && (uintptr_t)address >= (uintptr_t)a->host &&
            (uintptr_t)address < (uintptr_t)a->host + a->size)
            return true;
    return false;
}

void *fake_own(size_t size)
{
    void *object = calloc(1, size);
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(object);
#endif
    return object;
}

void *fake_make(size_t size)
{
    fake.alive++;
    return fake_own(size);
}

void fake_drop(void *object)
{
    free(object);
    fake.alive--;
}

static cu_result add_allocation(size_t size, bool pinned, unsigned char **out)
{
    allocation *a = fake_make(sizeof *a);
    a->host = aligned_alloc(512, (size + 511) / 512 * 512);
    a->size = size;
    a->is_pinned = pinned;
    a->next = allocations;
    memset(a->host, 0xff, size); /* a NaN, so that what is read before it is written is seen */
    allocations = a;
    *out = a->host;
    return CU_SUCCESS;
}

static cu_result remove_allocation(const void *host, bool pinned)
{
    for (allocation **at = &allocations; *at != NULL; at = &(*at)->next)
        if ((*at)->host == host && (*at)->is_pinned == pinned) {
            allocation *a = *at;
            *at = a->next;
            if (!pinned)
                fake.count.memory -= (long long)a->size;
            free(a->host);
            fake_drop(a);
            return CU_SUCCESS;
        }
    return INVALID_VALUE;
}

fake_buffer *fake_list_buffers(int *many)
{
    *many = 0;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        *many += !a->is_pinned;
    fake_buffer *buffers = calloc((size_t)*many + 1, sizeof *buffers);
    *many = 0;
    for (const allocation *a = allocations; a != NULL; a = a->next)
        if (!a->is_pinned)
            buffers[(*many)++] = (fake_buffer){ a->host, a->size };
    return buffers;
}

EXPORT(cuMemAlloc_v2, (cu_address * out, size_t size))
{
    unsigned char *host;
    BEGIN
    fake.count.allocations++;
    if ((fake.say.fail_alloc != 0 && fake.count.allocations >= fake.say.fail_alloc) ||
        fake.count.memory + (long long)size > fake.say.memory) {
        result = CU_OUT_OF_MEMORY;
        goto end;
    }
    result = add_allocation(size, false, &host);
    fake.count.memory += (long long)size;
    *out = (uintptr_t)host ^ TAG;
    END;
}

EXPORT(cuMemFree_v2, (cu_address address))
{
    BEGIN
    result = fake_is_device(address) ? remove_allocation((void *)(uintptr_t)(address ^ TAG), false)
                                     : INVALID_VALUE;
    END;
}

EXPORT(cuMemGetInfo_v2, (size_t * available, size_t *total))
{
    BEGIN
    *total = (size_t)fake.say.memory;
    *available = (size_t)(fake.say.memory - fake.count.memory);
    END;
}

EXPORT(cuMemHostAlloc, (void **out, size_t size, unsigned flags))
{
    unsigned char *host;
    (void)flags;
    BEGIN
    result = add_allocation(size, true, &host);
    *out = host;
    END;
}

EXPORT(cuMemFreeHost, (void *address))
{
    BEGIN
    result = remove_allocation(address, true);
    END;
}
