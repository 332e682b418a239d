/* runtime/base/pages.c: large pages are asked for, not required: without them the advice is ignored. */
#include "runtime/base/pages.h"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *tl_pages_take(size_t size)
{
    if (size < TL_LARGE_PAGE || size > SIZE_MAX - 2 * TL_LARGE_PAGE)
        return map(size);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + page - 1) / page * page;
    char *memory = map(mapped + TL_LARGE_PAGE);
    if (memory == NULL)
        return NULL;
    size_t before = (TL_LARGE_PAGE - (uintptr_t)memory % TL_LARGE_PAGE) % TL_LARGE_PAGE;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + mapped, TL_LARGE_PAGE - before);
    memory += before;
#ifdef MADV_HUGEPAGE
    madvise(memory, mapped, MADV_HUGEPAGE);
#endif
    return memory;
}

void tl_pages_give(void *memory, size_t size)
{
    if (memory != NULL)
        munmap(memory, size);
}

void tl_pages_rest(const void *data, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + size) / page * page;
    if (data != NULL && begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
