/* runtime/cache/cache_tag.c: whose folder it is. A cache is a folder with a CACHEDIR.TAG (bford.info/cachedir: backups
 * pass over
 * it) that tilth wrote. An empty folder becomes one, any other without the tag is somebody else's; but one in which all
 * names are of our form, as caches before the tag were, is a cache, too, and gets the tag. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/cache/cache_private.h"

#define SIGNATURE "Signature: 8a477f597d28d172789f06886806bc55\n"
#define OURS      SIGNATURE "# tilth cache, version "
#define TAG                                                                                  \
    OURS "1\n# What lies here was made from other files and is made again when it is gone. " \
         "`tilth cache` tells more.\n"

typedef enum { NO_TAG, OUR_TAG, NEWER_TAG, OTHER_TAG } tag_kind;

DIR *tl_cache_open_folder(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

    if (folder == NULL && fd >= 0)
        close(fd);
    return folder;
}

static tag_kind read_tag(int root)
{
    char text[128] = { 0 };
    struct stat info;
    int fd = openat(root, TL_CACHE_TAG, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? NO_TAG : OTHER_TAG;
    ssize_t size =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? read(fd, text, sizeof text - 1) : 0;
    close(fd);
    if (size <= 0 || strncmp(text, OURS, strlen(OURS)) != 0)
        return OTHER_TAG;
    return strncmp(text + strlen(OURS), "1\n", 2) == 0 ? OUR_TAG : NEWER_TAG;
}

/* ---- what lies in a folder without a tag ---- */

typedef struct {
    char foreign[NAME_MAX + 1]; /* the first name that is not ours, or "" */
} content;

typedef bool is_ours_fn(int folder, const char *name);

static bool is_regular(int folder, const char *name)
{
    struct stat info;

    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

static void look(DIR *folder, is_ours_fn *is_ours, content *out)
{
    for (struct dirent *d; out->foreign[0] == '\0' && (d = readdir(folder)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (!is_ours(dirfd(folder), d->d_name))
            strcpy(out->foreign, d->d_name);
    }
}

static bool is_our_object(int folder, const char *name)
{
    return tl_cache_is_object_name(name) && is_regular(folder, name);
}

static bool is_our_model_file(int folder, const char *name)
{
    return tl_cache_is_model_name(name) && is_regular(folder, name);
}

/* A folder in which every name is. */
static bool is_all(int at, const char *name, is_ours_fn *is_ours)
{
    content all = { 0 };
    DIR *folder = tl_cache_open_folder(at, name);

    if (folder == NULL)
        return false;
    look(folder, is_ours, &all);
    closedir(folder);
    return all.foreign[0] == '\0';
}

static bool is_our_model(int folder, const char *name)
{
    return tl_cache_is_key(name) && is_all(folder, name, is_our_model_file);
}

static bool is_at_top(int root, const char *name)
{
    if (strcmp(name, "objects") == 0)
        return is_all(root, name, is_our_object);
    if (strcmp(name, "models") == 0)
        return is_all(root, name, is_our_model);
    if (strcmp(name, "counts") == 0)
        return tl_cache_counts_are_ours(root);
    return tl_cache_is_tag_name(name);
}

/* Neither other names than ours, nor one of the two folders without the other, which were always made together. */
static tl_status look_through(int root, const char *folder, tl_diag *diag)
{
    content top = { 0 };
    struct stat info;
    DIR *dir = tl_cache_open_folder(root, ".");

    if (dir == NULL)
        return tl_fail(diag, TL_IO, "%s: %s", folder, strerror(errno));
    look(dir, is_at_top, &top);
    closedir(dir);
    if (top.foreign[0] != '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: no cache of tilth: it has no " TL_CACHE_TAG
                       " of tilth's, and other things in it (%s)",
                       folder, top.foreign);
    bool objects = fstatat(root, "objects", &info, 0) == 0,
         models = fstatat(root, "models", &info, 0) == 0;
    if (objects != models)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: no cache of tilth: it has no " TL_CACHE_TAG
                       " of tilth's, and is not empty (%s)",
                       folder, objects ? "objects" : "models");
    return TL_OK;
}

static tl_status write_tag(int root, const char *folder, tl_diag *diag)
{
    tl_text path = { 0 };
    tl_file *file;

    if (faccessat(root, ".", W_OK, AT_EACCESS) != 0)
        return TL_OK; /* nothing will be written or removed here: what is in it can be used */
    tl_text_format(&path, "%s/" TL_CACHE_TAG, folder);
    tl_status status = path.failed ? tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder)
                                   : tl_file_create_private(path.data, &file, diag);
    tl_text_free(&path);
    TL_TRY(status);
    status = tl_file_append(file, TAG, strlen(TAG), diag);
    if (status == TL_OK)
        return tl_file_commit_unsynced(file, diag);
    tl_file_abandon(file);
    return status;
}

static tl_status claim(int root, const char *folder, tl_diag *diag)
{
    switch (read_tag(root)) {
    case OUR_TAG:
        return TL_OK;
    case NEWER_TAG:
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: a cache of another version of tilth", folder);
    case OTHER_TAG:
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: no cache of tilth: its " TL_CACHE_TAG " is another program's", folder);
    case NO_TAG:
        break;
    }
    tl_status status = look_through(root, folder, diag);
    if (status == TL_OK)
        return write_tag(root, folder, diag);
    /* another process may have made it a cache in the meantime */
    return read_tag(root) == OUR_TAG ? TL_OK : status;
}

tl_status tl_cache_claim(const char *folder, tl_diag *diag)
{
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return tl_fail(diag, TL_IO, "%s: %s", folder, strerror(errno));
    tl_status status = claim(root, folder, diag);
    close(root);
    return status;
}
