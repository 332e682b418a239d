/* runtime/base/file.c: whole files, read, mapped, and written so that a name never shows half of one. */
#include "runtime/base/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/destination.h"

enum {
    ATTEMPTS = 100, /* at a name that is free */
    /* Bytes written at once, from a multiple of it on: the system then keeps the file on huge pages where it can (ext4,
     * Linux 6.16), and a mapping has them, too. 118 MB in one write took 0.25 s, in such pieces 0.03 s. */
    PIECE = 2 << 20,
};

struct tl_file {
    int fd; /* -1: a stream that is not open yet */
    size_t written;
    char *path, *temporary; /* temporary: NULL while the file has no name at all */
    bool is_stream;         /* what is at the path gets the bytes and stays */
    int source;             /* a stream: its descriptor in this process, or -1 */
};

tl_status tl_file_map(const char *path, tl_mapping *out, tl_diag *diag)
{
    *out = (tl_mapping){ 0 };
    if (path[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a file is empty");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tl_fail(diag, errno == ENOENT || errno == ENOTDIR ? TL_BAD_ARGUMENT : TL_IO,
                       "%s: %s", path, strerror(errno));
    struct stat info;
    tl_status status = TL_OK;
    if (fstat(fd, &info) != 0)
        status = tl_fail(diag, TL_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = tl_fail(diag, TL_BAD_ARGUMENT, "%s: not a regular file", path);
    else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = tl_fail(diag, TL_IO, "%s: cannot map %lld bytes: %s", path,
                             (long long)info.st_size, strerror(errno));
        else
            *out = (tl_mapping){ data, (size_t)info.st_size };
    }
    close(fd);
    return status;
}

void tl_file_unmap(tl_mapping *mapping)
{
    if (mapping->data != NULL)
        munmap((void *)mapping->data, mapping->size);
    *mapping = (tl_mapping){ 0 };
}

tl_status tl_file_read(const char *path, tl_text *out, tl_diag *diag)
{
    tl_mapping mapping;
    TL_TRY(tl_file_map(path, &mapping, diag));
    tl_text_add_bytes(out, mapping.data ? mapping.data : "", mapping.size);
    tl_file_unmap(&mapping);
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "%s: too large to read", path) : TL_OK;
}

static void release(tl_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    free(file);
}

/* A file without a name in the folder of `path`: a process that dies leaves nothing behind. -1 where the file system
 * cannot do that (or the name could not be given later, without /proc). */
static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int fd = -1;
    if (folder != NULL && access("/proc/self/fd", X_OK) == 0)
        fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(folder);
    return fd;
}

/* The n-th name to try for a file in the making; freed by the caller, NULL without memory. */
static char *temporary_name(const tl_file *file)
{
    static atomic_uint counter;
    char *name;
    if (asprintf(&name, "%s.%x-%x", file->path, (unsigned)getpid(), atomic_fetch_add(&counter, 1)) <
        0)
        return NULL;
    return name;
}

/* Gives a nameless file its temporary name, from which it is renamed into place. */
static tl_status give_name(tl_file *file, tl_diag *diag)
{
    char source[32];
    snprintf(source, sizeof source, "/proc/self/fd/%d", file->fd);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        char *name = temporary_name(file);
        if (name == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", file->path);
        if (linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            file->temporary = name;
            return TL_OK;
        }
        free(name);
        if (errno != EEXIST)
            break;
    }
    return tl_fail(diag, TL_IO, "%s: cannot put in place: %s", file->path, strerror(errno));
}

/* Where there are no nameless files. */
static tl_status open_named(tl_file *file, tl_diag *diag)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        char *name = temporary_name(file);
        if (name == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", file->path);
        file->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) {
            file->temporary = name;
            return TL_OK;
        }
        int error = errno;
        free(name);
        errno = error;
        if (error != EEXIST)
            break;
    }
    return tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
}

static tl_status create(const char *path, const tl_destination *to, mode_t mode, tl_file **out,
                        tl_diag *diag)
{
    *out = NULL;
    tl_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    file->fd = -1;
    file->path = strdup(path);
    file->is_stream = to != NULL && to->kind == TL_DESTINATION_STREAM;
    file->source = to != NULL ? to->fd : -1;
    tl_status status = TL_OK;
    if (file->path == NULL)
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    else if (file->is_stream && file->source < 0 && access(path, W_OK) != 0)
        status = tl_fail(diag, TL_IO, "%s: cannot write: %s", path, strerror(errno));
    else if (!file->is_stream && (file->fd = open_nameless(path)) < 0)
        status = open_named(file, diag);
    if (status == TL_OK && mode != 0 && fchmod(file->fd, mode) != 0 && to == NULL)
        status = tl_fail(diag, TL_IO, "%s: cannot be made private: %s", path, strerror(errno));
    if (status != TL_OK) {
        release(file);
        return status;
    }
    *out = file;
    return TL_OK;
}

tl_status tl_file_create(const char *path, tl_file **out, tl_diag *diag)
{
    tl_destination to;
    *out = NULL;
    TL_TRY(tl_destination_find(path, &to, diag));
    if (to.kind == TL_DESTINATION_FOLDER)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: this is a folder, not a file", path);
    return create(to.kind == TL_DESTINATION_STREAM ? path : to.path, &to,
                  to.kind == TL_DESTINATION_FILE ? to.mode : 0, out, diag);
}

tl_status tl_file_create_private(const char *path, tl_file **out, tl_diag *diag)
{
    return create(path, NULL, 0600, out, diag);
}

/* Only when there is something to write: who opens a pipe and closes it again ends what is read from it. */
static tl_status open_stream(tl_file *file, tl_diag *diag)
{
    if (file->source >= 0) {
        if (file->source == STDOUT_FILENO)
            fflush(stdout); /* what the program has said there comes first */
        file->fd = fcntl(file->source, F_DUPFD_CLOEXEC, 0);
    } else {
        file->fd = open(file->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    }
    return file->fd >= 0
               ? TL_OK
               : tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
}

tl_status tl_file_append(tl_file *file, const void *bytes, size_t size, tl_diag *diag)
{
    assert(size == 0 || bytes != NULL);
    const char *p = bytes;
    if (file->fd < 0)
        TL_TRY(open_stream(file, diag));
    while (size > 0) {
        size_t most = PIECE - file->written % PIECE;
        ssize_t n = write(file->fd, p, size < most ? size : most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) { /* a pipe whose other users do not wait */
            poll(&(struct pollfd){ .fd = file->fd, .events = POLLOUT }, 1, -1);
            continue;
        }
        if (n < 0)
            return tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
        p += n;
        size -= (size_t)n;
        file->written += (size_t)n;
    }
    return TL_OK;
}

static tl_status commit_stream(tl_file *file, tl_diag *diag)
{
    tl_status status = file->fd < 0 ? open_stream(file, diag) : TL_OK;
    int fd = file->fd;
    file->fd = -1;
    if (fd >= 0 && close(fd) != 0)
        status = tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
    release(file);
    return status;
}

static tl_status put_in_place(tl_file *file, tl_diag *diag)
{
    assert(file->fd >= 0);
    tl_status status = file->temporary == NULL ? give_name(file, diag) : TL_OK;
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && status == TL_OK)
        status = tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
    if (status == TL_OK && rename(file->temporary, file->path) != 0)
        status = tl_fail(diag, TL_IO, "%s: cannot put in place: %s", file->path, strerror(errno));
    if (status == TL_OK) {
        free(file->temporary);
        file->temporary = NULL;
    }
    return status;
}

static tl_status commit(tl_file *file, bool sync, tl_diag *diag)
{
    sigset_t all, kept;
    tl_status status = TL_OK;
    if (file->is_stream)
        return commit_stream(file, diag);
    if (sync && fsync(file->fd) != 0 && errno != EINVAL && errno != EROFS)
        status = tl_fail(diag, TL_IO, "%s: cannot write: %s", file->path, strerror(errno));
    if (status == TL_OK) { /* no signal ends the process while the file has its temporary name */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &kept);
        status = put_in_place(file, diag);
        pthread_sigmask(SIG_SETMASK, &kept, NULL);
    }
    release(file);
    return status;
}

tl_status tl_file_commit(tl_file *file, tl_diag *diag)
{
    return commit(file, true, diag);
}

tl_status tl_file_commit_unsynced(tl_file *file, tl_diag *diag)
{
    return commit(file, false, diag);
}

void tl_file_abandon(tl_file *file)
{
    if (file != NULL)
        release(file);
}

tl_status tl_file_write(const char *path, const void *bytes, size_t size, tl_diag *diag)
{
    tl_file *file;
    TL_TRY(tl_file_create(path, &file, diag));
    tl_status status = tl_file_append(file, bytes, size, diag);
    if (status != TL_OK) {
        tl_file_abandon(file);
        return status;
    }
    return tl_file_commit(file, diag);
}

bool tl_file_is_stream(const char *path)
{
    tl_destination to;
    return tl_destination_find(path, &to, NULL) == TL_OK && to.kind == TL_DESTINATION_STREAM;
}

tl_status tl_folder_make(const char *path, tl_diag *diag)
{
    if (path[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a folder is empty");
    char *copy = strdup(path);
    if (copy == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    tl_status status = TL_OK;
    for (char *p = copy + 1; status == TL_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        bool made = mkdir(copy, 0700) == 0;
        if (made ? chmod(copy, 0700) != 0 : errno != EEXIST)
            status = tl_fail(diag, TL_IO, "%s: cannot make this folder: %s", copy, strerror(errno));
        *p = kept;
        if (kept == '\0')
            break;
    }
    struct stat info;
    if (status == TL_OK && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        status = tl_fail(diag, TL_IO, "%s: not a folder", path);
    free(copy);
    return status;
}

bool tl_data_folder(tl_text *out)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data != NULL && data[0] == '/')
        tl_text_format(out, "%s/tilth", data);
    else if (home != NULL && home[0] == '/')
        tl_text_format(out, "%s/.local/share/tilth", home);
    else
        return false;
    return !out->failed;
}
