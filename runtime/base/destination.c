/* runtime/base/destination.c: what a path that is to be written to leads to.
 *
 * Links are followed one at a time, since the name at their end is wanted also where nothing is there yet. The links
 * below /proc are none that could be followed by name: /dev/stdout leads to one that stands for an open file. */
#include "runtime/base/destination.h"
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MOST_LINKS = 40 }; /* as many as the system follows */

/* The folder of a path: "." where it names none. */
static void folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);

    memcpy(folder, path, size);
    folder[size] = '\0';
    if (size == 0)
        strcpy(folder, ".");
}

static bool is_in_proc(const char *folder)
{
    struct statfs info;

    return statfs(folder, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

/* The number N of /proc/OURSELVES/fd/N, or -1. */
static int own_descriptor(const char *folder, const char *name)
{
    char full[PATH_MAX], ours[32];

    if (*name == '\0' || strspn(name, "0123456789") != strlen(name) || strlen(name) > 8 ||
        realpath(folder, full) == NULL)
        return -1;
    int size = snprintf(ours, sizeof ours, "/proc/%ld/", (long)getpid());
    const char *last = strrchr(full, '/');
    if (strncmp(full, ours, (size_t)size) != 0 || last == NULL || strcmp(last, "/fd") != 0)
        return -1;
    return atoi(name);
}

/* Puts what the link says in the place of its path. */
static tl_status follow(char path[PATH_MAX], const char *folder, tl_diag *diag)
{
    char target[PATH_MAX], next[PATH_MAX];
    ssize_t size = readlink(path, target, sizeof target - 1);

    if (size < 0)
        return tl_fail(diag, TL_IO, "%s: %s", path, strerror(errno));
    target[size] = '\0';
    int whole = target[0] == '/' ? snprintf(next, sizeof next, "%s", target)
                                 : snprintf(next, sizeof next, "%s/%s", folder, target);
    if (whole < 0 || (size_t)whole >= sizeof next)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%.900s: this link leads to a path that is too long",
                       path);
    strcpy(path, next);
    return TL_OK;
}

static tl_destination_kind kind_of(mode_t mode)
{
    return S_ISREG(mode)   ? TL_DESTINATION_FILE
           : S_ISDIR(mode) ? TL_DESTINATION_FOLDER
                           : TL_DESTINATION_STREAM;
}

tl_status tl_destination_find(const char *path, tl_destination *out, tl_diag *diag)
{
    struct stat info;
    char folder[PATH_MAX];

    *out = (tl_destination){ .kind = TL_DESTINATION_NEW, .fd = -1 };
    if (path[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a file is empty");
    if (strlen(path) >= sizeof out->path)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%.200s...: a path of %zu characters, more than %d",
                       path, strlen(path), PATH_MAX - 1);
    strcpy(out->path, path);
    for (int links = 0; lstat(out->path, &info) == 0; links++) {
        if (!S_ISLNK(info.st_mode)) {
            out->kind = kind_of(info.st_mode);
            out->mode = info.st_mode & 0777;
            return TL_OK;
        }
        folder_of(out->path, folder);
        if (is_in_proc(folder) && stat(out->path, &info) == 0 && !S_ISDIR(info.st_mode)) {
            const char *slash = strrchr(out->path, '/');
            out->kind = TL_DESTINATION_STREAM;
            out->fd = own_descriptor(folder, slash != NULL ? slash + 1 : out->path);
            return TL_OK;
        }
        if (links == MOST_LINKS)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: links that lead nowhere", path);
        TL_TRY(follow(out->path, folder, diag));
    }
    return TL_OK;
}
