/* runtime/base/destination.h: what a path that is to be written to leads to. */
#ifndef TL_RUNTIME_BASE_DESTINATION_H
#define TL_RUNTIME_BASE_DESTINATION_H
#include <limits.h>
#include <sys/types.h>
#include "runtime/base/status.h"

typedef enum {
    TL_DESTINATION_NEW,    /* nothing is there yet */
    TL_DESTINATION_FILE,   /* a regular file, which can be replaced */
    TL_DESTINATION_FOLDER, /* a folder */
    TL_DESTINATION_STREAM, /* a device, a pipe, an open file of a process: what can only be written to */
} tl_destination_kind;

typedef struct {
    tl_destination_kind kind;
    char path
        [PATH_MAX]; /* with the links at its end followed: these stay when what they name is replaced */
    int fd;         /* a stream that is open in this process (/dev/stdout, /dev/fd/N), else -1 */
    mode_t mode; /* of a file */
} tl_destination;

/* TL_BAD_ARGUMENT: the path is empty or too long, or its links go in a circle. Whether anything can be written there is
 * not looked at. */
tl_status tl_destination_find(const char *path, tl_destination *out, tl_diag *diag);

#endif
