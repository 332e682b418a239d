/* runtime/cache/cache_counts.c: how often the cache helped, summed over processes: three numbers in FOLDER/counts, changed
 * under a lock on that file. They are for people to look at: whatever goes wrong loses counts, nothing else. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/cache/cache_private.h"

/* False: these are no counts. */
static bool read_counts(int fd, tl_cache_counts *c)
{
    char text[128];
    ssize_t size = pread(fd, text, sizeof text - 1, 0);

    *c = (tl_cache_counts){ 0 };
    text[size > 0 ? size : 0] = '\0';
    if (sscanf(text, "hits %" SCNd64 " misses %" SCNd64 " stores %" SCNd64, &c->hits, &c->misses,
               &c->stores) == 3 &&
        c->hits >= 0 && c->misses >= 0 && c->stores >= 0)
        return true;
    *c = (tl_cache_counts){ 0 };
    return size == 0;
}

/* Only a regular file that is empty or has counts in it. */
static int open_ours(int at, const char *path, int flags)
{
    tl_cache_counts c;
    struct stat info;
    int fd = openat(at, path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && read_counts(fd, &c)))
        return fd;
    close(fd);
    return -1;
}

static int open_counts(const char *folder, int flags)
{
    char *path;

    if (asprintf(&path, "%s/counts", folder) < 0)
        return -1;
    int fd = open_ours(AT_FDCWD, path, flags);
    free(path);
    return fd;
}

bool tl_cache_counts_are_ours(int folder)
{
    int fd = open_ours(folder, "counts", O_RDONLY);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void write_counts(int fd, const tl_cache_counts *c)
{
    char text[128];
    int size =
        snprintf(text, sizeof text, "hits %" PRId64 " misses %" PRId64 " stores %" PRId64 "\n",
                 c->hits, c->misses, c->stores);

    /* the length changes last, and a reader that sees half of it reads three numbers or zeros */
    if (pwrite(fd, text, (size_t)size, 0) == size && ftruncate(fd, size) != 0)
        return;
}

tl_cache_counts tl_cache_counts_read(const char *folder)
{
    tl_cache_counts c = { 0 };
    int fd = open_counts(folder, O_RDONLY);

    if (fd >= 0) {
        read_counts(fd, &c);
        close(fd);
    }
    return c;
}

void tl_cache_counts_add(const char *folder, const tl_cache_counts *more)
{
    if (more->hits == 0 && more->misses == 0 && more->stores == 0)
        return;
    int fd = open_counts(folder, O_RDWR | O_CREAT);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX) == 0) {
        tl_cache_counts c;
        read_counts(fd, &c);
        if (c.hits <= INT64_MAX / 2 && c.misses <= INT64_MAX / 2 && c.stores <= INT64_MAX / 2) {
            c.hits += more->hits;
            c.misses += more->misses;
            c.stores += more->stores;
        }
        write_counts(fd, &c);
    }
    close(fd);
}

void tl_cache_counts_reset(const char *folder)
{
    const tl_cache_counts none = { 0 };
    int fd = open_counts(folder, O_RDWR);

    if (fd >= 0) {
        if (flock(fd, LOCK_EX) == 0)
            write_counts(fd, &none);
        close(fd);
    }
}
