/* tuner/measure/process.h: a worker process as the tuner sees it. */
#ifndef TL_TUNER_MEASURE_PROCESS_H
#define TL_TUNER_MEASURE_PROCESS_H
#include <stdbool.h>
#include <sys/types.h>
#include "runtime/base/status.h"

typedef struct {
    pid_t pid; /* 0: not running */
    int fd;
} tl_process;

/* Starts `path ARGS... ROLE 3` with one end of a socket as its descriptor 3 and nothing of the tuner's terminal; a
 * process group of its own. `args` ends with NULL. */
tl_status tl_process_start(const char *path, const char *const *args, const char *role,
                           tl_process *out, tl_diag *diag);
/* Ends it and its children, at once. */
void tl_process_end(tl_process *process);

#endif
