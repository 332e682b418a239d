/* runtime/base/file.h: whole files, read, mapped, and written so that a name never shows half of one. */
#ifndef TL_BASE_FILE_H
#define TL_BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"

/* A read-only mapping; `data` is NULL for an empty file. */
typedef struct {
    const void *data;
    size_t size;
} tl_mapping;

/* TL_BAD_ARGUMENT when the file does not exist or is not a regular file, else TL_IO. */
tl_status tl_file_map(const char *path, tl_mapping *out, tl_diag *diag);
void tl_file_unmap(tl_mapping *mapping);
tl_status tl_file_read(const char *path, tl_text *out, tl_diag *diag);

/* A file in the making: without a name until commit puts it in place. Abandoned (or a process that dies) leaves
 * nothing; where the file system has no nameless files, a process that dies leaves a file of another name beside
 * `path`. */
typedef struct tl_file tl_file;
tl_status tl_file_create(const char *path, tl_file **out, tl_diag *diag);
tl_status tl_file_append(tl_file *file, const void *bytes, size_t size, tl_diag *diag);
tl_status tl_file_commit(tl_file *file,
                         tl_diag *diag); /* flushes, renames and frees `file`, also on failure */
/* The same without waiting for the disk: for caches, whose files carry a checksum. */
tl_status tl_file_commit_unsynced(tl_file *file, tl_diag *diag);
void tl_file_abandon(tl_file *file);
tl_status tl_file_write(const char *path, const void *bytes, size_t size,
                        tl_diag *diag); /* all at once */

/* Makes a folder and those above it, mode 0700 for the ones it makes. */
tl_status tl_folder_make(const char *path, tl_diag *diag);

#endif
