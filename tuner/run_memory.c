/* tuner/run_memory.c: arrays between guard pages. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tuner/worker_private.h"

#define HUGE_PAGE ((size_t)2 << 20)

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
    size_t inside = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, mapped = inside + HUGE_PAGE;
    *out = (tl_guarded){ 0 };
    if (size > SIZE_MAX / 2)
        return false;
    unsigned char *base =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    madvise(base + before, inside, MADV_HUGEPAGE);
    *out = (tl_guarded){ .data = base + before, .size = size, .base = base, .mapped = mapped };
    return true;
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
