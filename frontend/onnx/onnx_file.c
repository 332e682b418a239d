/* frontend/onnx/onnx_file.c: external data: files inside the model's folder and nothing else.
 *
 * The kernel resolves the path beneath the folder without following any link (openat2); where it cannot, the path is
 * walked component by component. Only a regular file with one name is mapped: no device, no pipe, no hard link to
 * a file elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "frontend/onnx/onnx_private.h"
#include "runtime/base/array.h"

static tl_status check_location(const char *location, tl_diag *diag)
{
    size_t size = strlen(location);
    if (size == 0 || size >= PATH_MAX || location[0] == '/' || strchr(location, '\\') != NULL)
        return tl_fail(
            diag, TL_BAD_MODEL,
            "external data '%.200s': the path is empty, absolute, too long or has a backslash",
            location);
    for (const char *part = location; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return tl_fail(diag, TL_BAD_MODEL, "external data '%.200s' leaves the model's folder",
                           location);
        part += length;
        part += *part == '/';
    }
    return TL_OK;
}

/* Without openat2: one component at a time, none of them a link. */
static int open_by_parts(int folder, const char *location)
{
    int at = dup(folder);
    for (const char *part = location; at >= 0 && *part != '\0';) {
        size_t length = strcspn(part, "/");
        bool last = part[length + strspn(part + length, "/")] == '\0';
        char name[NAME_MAX + 1];
        if (length > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, part, length);
        name[length] = '\0';
        int flags = O_CLOEXEC | O_NOFOLLOW | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY);
        int next = length == 0 ? dup(at) : openat(at, name, flags);
        close(at);
        at = next;
        part += length;
        part += strspn(part, "/");
    }
    return at;
}

static int open_beneath(int folder, const char *location)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve =
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    long fd = syscall(SYS_openat2, folder, location, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG))
        return open_by_parts(folder, location);
    return (int)fd;
}

static tl_status map(int fd, tl_onnx_file *file, tl_diag *diag)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tl_fail(diag, TL_IO, "external data '%.200s': %s", file->location, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tl_fail(diag, TL_BAD_MODEL, "external data '%.200s' is not a regular file",
                       file->location);
    if (info.st_nlink != 1)
        return tl_fail(
            diag, TL_BAD_MODEL,
            "external data '%.200s' has %lu names (hard links); a file of its own is required",
            file->location, (unsigned long)info.st_nlink);
    file->size = (size_t)info.st_size;
    if (file->size == 0)
        return TL_OK;
    void *data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return tl_fail(diag, TL_IO, "external data '%.200s': cannot map %zu bytes: %s",
                       file->location, file->size, strerror(errno));
    file->data = data;
    return TL_OK;
}

tl_status tl_onnx_map_file(tl_onnx *model, const char *location, const tl_onnx_file **out,
                           tl_diag *diag)
{
    for (int i = 0; i < model->file_count; i++) {
        if (strcmp(model->files[i].location, location) == 0) {
            *out = &model->files[i];
            return TL_OK;
        }
    }
    TL_TRY(check_location(location, diag));
    if (model->folder < 0)
        return tl_fail(diag, TL_BAD_MODEL,
                       "external data '%.200s': the model was read from memory, without a folder",
                       location);
    int limit = (int)(sizeof model->files / sizeof model->files[0]);
    if (model->file_count == limit)
        return tl_fail(diag, TL_UNSUPPORTED, "more than %d files of external data", limit);
    int fd = open_beneath(model->folder, location);
    if (fd < 0) {
        bool link = errno == ELOOP || errno == EXDEV || errno == ENOTDIR;
        return tl_fail(diag, link || errno == ENOENT ? TL_BAD_MODEL : TL_IO,
                       "external data '%.200s': %s", location,
                       link ? "a link, or no file inside the model's folder" : strerror(errno));
    }
    tl_onnx_file *file = &model->files[model->file_count];
    *file = (tl_onnx_file){ .location = strdup(location) };
    tl_status status = file->location == NULL
                           ? tl_fail(diag, TL_NO_MEMORY, "external data: out of memory")
                           : map(fd, file, diag);
    close(fd);
    if (status != TL_OK) {
        free((char *)file->location);
        return status;
    }
    model->file_count++;
    *out = file;
    return TL_OK;
}

bool tl_onnx_keep_block(tl_onnx *model, void *block)
{
    if (!TL_HEAP_ROOM(model->blocks, model->block_count, model->block_capacity))
        return false;
    model->blocks[model->block_count++] = block;
    return true;
}

void tl_onnx_close(tl_onnx *model)
{
    if (model == NULL)
        return;
    for (int i = 0; i < model->file_count; i++) {
        if (model->files[i].data != NULL)
            munmap(model->files[i].data, model->files[i].size);
        free((char *)model->files[i].location);
    }
    for (int i = 0; i < model->block_count; i++)
        tl_onnx_block_free(model->blocks[i]);
    free(model->blocks);
    tl_onnx_drop_proto(model);
    if (model->folder >= 0)
        close(model->folder);
    free(model);
}
