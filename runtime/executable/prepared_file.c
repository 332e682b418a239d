/* runtime/executable/prepared_file.c: prepared.bin: a header of one line (64 bytes), then the prepared
 * constants.
 *
 * The header names the executable it belongs to, so that one left over from another is not taken
 * for ours. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "runtime/base/checksum.h"
#include "runtime/executable/executable_private.h"

typedef struct {
    char magic[8];
    uint64_t identity, size, checksum;
    unsigned char rest[32];
} header;
_Static_assert(sizeof(header) == TL_DATA_ALIGNMENT, "the constants keep their alignment");
static const char magic[8] = "tlprep\0\1";

static bool path_in(const char *folder, tl_text *out)
{
    tl_text_format(out, "%s/prepared.bin", folder);
    return !out->failed;
}

static tl_status write_file(const char *path, const header *h, const void *data, bool is_private,
                            tl_diag *diag)
{
    tl_file *file;
    struct stat info;

    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return tl_fail(diag, TL_IO, "%s: not a regular file", path);
    TL_TRY((is_private ? tl_file_create_private : tl_file_create)(path, &file, diag));
    tl_status status = tl_file_append(file, h, sizeof *h, diag);
    if (status == TL_OK)
        status = tl_file_append(file, data, h->size, diag);
    if (status != TL_OK) {
        tl_file_abandon(file);
        return status;
    }
    return tl_file_commit_unsynced(file, diag);
}

tl_status tl_prepared_write(const char *folder, uint64_t identity, const void *data, int64_t size,
                            bool is_private, tl_diag *diag)
{
    header h = { .identity = identity, .size = (uint64_t)size };
    tl_text path = { 0 };
    tl_status status = TL_OK;

    if (size == 0)
        return TL_OK;
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = tl_checksum(data, (size_t)size);
    if (!path_in(folder, &path))
        status = tl_fail(diag, TL_NO_MEMORY, "prepared.bin: out of memory");
    else
        status = write_file(path.data, &h, data, is_private, diag);
    tl_text_free(&path);
    return status;
}

bool tl_prepared_map(const char *folder, uint64_t identity, int64_t size, tl_mapping *out,
                     const unsigned char **data)
{
    tl_text path = { 0 };
    header h;
    bool good = path_in(folder, &path) && tl_file_map(path.data, out, NULL) == TL_OK;

    tl_text_free(&path);
    if (!good)
        return false;
    good = out->size == sizeof h + (uint64_t)size;
    if (good) {
        memcpy(&h, out->data, sizeof h);
        *data = (const unsigned char *)out->data + sizeof h;
        madvise((void *)out->data, out->size, MADV_WILLNEED);
        good = memcmp(h.magic, magic, sizeof magic) == 0 && h.identity == identity &&
               h.size == (uint64_t)size && tl_checksum(*data, (size_t)size) == h.checksum;
    }
    if (!good)
        tl_file_unmap(out);
    return good;
}
