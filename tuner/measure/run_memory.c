/* tuner/measure/run_memory.c: arrays between guard pages, and which params they hold before a call and after it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/base/pages.h"
#include "tuner/measure/worker_private.h"

bool tl_param_is_read(const tl_buffer *param)
{
    return param->role != TL_ROLE_OUTPUT;
}

bool tl_param_is_written(const tl_buffer *param)
{
    return param->role == TL_ROLE_OUTPUT || param->role == TL_ROLE_INOUT;
}

bool tl_guarded_create(size_t size, tl_guarded *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t line = (size + 63) / 64 * 64;
    size_t inside = (line + page - 1) / page * page;
    *out = (tl_guarded){ 0 };
    if (size > SIZE_MAX / 2)
        return false;
    inside = inside > 0 ? inside : page;
    unsigned char *base =
        mmap(NULL, inside + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + inside, page, PROT_NONE);
    out->base = base;
    out->mapped = inside + 2 * page;
    out->size = size;
    out->data = base + page + inside - line;
    return true;
}

bool tl_huge_create(size_t size, tl_guarded *out)
{
    size_t mapped = size > TL_LARGE_PAGE ? size : TL_LARGE_PAGE;
    unsigned char *memory = tl_pages_take(mapped);
    *out = (tl_guarded){ .data = memory, .size = size, .base = memory, .mapped = mapped };
    return memory != NULL;
}

void tl_guarded_free(tl_guarded *g)
{
    if (g->base != NULL)
        munmap(g->base, g->mapped);
    *g = (tl_guarded){ 0 };
}

void tl_guarded_protect(const tl_guarded *g)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (g->base != NULL)
        mprotect((unsigned char *)g->base + page, g->mapped - 2 * page, PROT_READ);
}
