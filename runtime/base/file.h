/* runtime/base/file.h: whole files, read, mapped, and written so that a name never shows half of one. */
#ifndef TL_RUNTIME_BASE_FILE_H
#define TL_RUNTIME_BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"

/* A read-only mapping; `data` is NULL for an empty file. */
typedef struct {
    const void *data;
    size_t size;
} tl_mapping;

/* TL_BAD_ARGUMENT when the name is empty, or the file does not exist or is not a regular file, else TL_IO. */
tl_status tl_file_map(const char *path, tl_mapping *out, tl_diag *diag);
void tl_file_unmap(tl_mapping *mapping);
tl_status tl_file_read(const char *path, tl_text *out, tl_diag *diag);

/* A file in the making: without a name until commit puts it in place, at once; one that was there is replaced and
 * leaves its permissions. Of a link it is what the link leads to that is replaced or made. Abandoned (or a process that
 * dies) leaves nothing; where the file system has no nameless files, a process that dies leaves a file of another name
 * beside it.
 *
 * What cannot be replaced is written to: a device, a pipe, an open file as /dev/stdout or /dev/fd/N. It is opened by the
 * first append and has what was appended even when the file is abandoned.
 *
 * TL_BAD_ARGUMENT: an empty name, or a folder; TL_IO: nothing can be written there. */
typedef struct tl_file tl_file;
tl_status tl_file_create(const char *path, tl_file **out, tl_diag *diag);
/* For folders of our own: only the owner may read it, whatever the umask, and a link at `path` is itself replaced. */
tl_status tl_file_create_private(const char *path, tl_file **out, tl_diag *diag);
bool tl_file_is_stream(const char *path); /* it would be written to, not replaced */
tl_status tl_file_append(tl_file *file, const void *bytes, size_t size, tl_diag *diag);
/* Flushes, renames and frees `file`, also on failure. */
tl_status tl_file_commit(tl_file *file, tl_diag *diag);
/* The same without waiting for the disk: for caches, whose files carry a checksum. */
tl_status tl_file_commit_unsynced(tl_file *file, tl_diag *diag);
void tl_file_abandon(tl_file *file);
/* All at once. */
tl_status tl_file_write(const char *path, const void *bytes, size_t size, tl_diag *diag);

/* $XDG_DATA_HOME/tilth, or ~/.local/share/tilth: where a user's records and profiles are. False: neither is set. */
bool tl_data_folder(tl_text *out);
/* Makes a folder and those above it, mode 0700 for the ones it makes, whatever the umask. TL_BAD_ARGUMENT: an empty name. */
tl_status tl_folder_make(const char *path, tl_diag *diag);

#endif
