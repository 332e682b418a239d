/* runtime/base/spill.c: each piece is a shared mapping of its own part of the file. The part is allocated before it is mapped: a
 * full disk is then an answer, where it would be SIGBUS at the first touch. */
#include "runtime/base/spill.h"
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "runtime/base/pages.h"

typedef struct {
    char *data;
    size_t size;
} piece;

struct tl_spill {
    int fd;
    off_t end;
    int count, capacity;
    piece *pieces;
};

tl_spill *tl_spill_create(const char *folder)
{
    struct statfs info;
    if (statfs(folder, &info) != 0 || info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC)
        return NULL;
    tl_spill *spill = calloc(1, sizeof *spill);
    if (spill == NULL)
        return NULL;
    spill->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spill->fd < 0) {
        free(spill);
        return NULL;
    }
    return spill;
}

void tl_spill_destroy(tl_spill *spill)
{
    if (spill == NULL)
        return;
    for (int i = 0; i < spill->count; i++)
        munmap(spill->pieces[i].data, spill->pieces[i].size);
    free(spill->pieces);
    close(spill->fd);
    free(spill);
}

static bool make_room(tl_spill *spill)
{
    if (spill->count < spill->capacity)
        return true;
    int capacity = 2 * spill->capacity + 8;
    piece *pieces = realloc(spill->pieces, (size_t)capacity * sizeof *pieces);
    if (pieces == NULL)
        return false;
    spill->pieces = pieces;
    spill->capacity = capacity;
    return true;
}

void *tl_spill_take(tl_spill *spill, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size == 0 || size > (size_t)INT64_MAX / 4 || !make_room(spill))
        return NULL;
    size = (size + page - 1) / page * page;
    if (fallocate(spill->fd, 0, spill->end, (off_t)size) != 0)
        return NULL;
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, spill->fd, spill->end);
    if (data == MAP_FAILED)
        return NULL;
    if (spill->count > 0)
        tl_pages_rest(spill->pieces[spill->count - 1].data, spill->pieces[spill->count - 1].size);
    spill->end += (off_t)size;
    spill->pieces[spill->count++] = (piece){ data, size };
    return data;
}

bool tl_spill_has(const tl_spill *spill, const void *data, size_t size)
{
    const char *at = data;
    for (int i = 0; spill != NULL && i < spill->count; i++)
        if (at >= spill->pieces[i].data && size <= spill->pieces[i].size &&
            at <= spill->pieces[i].data + (spill->pieces[i].size - size))
            return true;
    return false;
}
