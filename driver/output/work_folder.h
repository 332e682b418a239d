/* driver/output/work_folder.h: a place for files in the making that need names, beside where the result goes.
 *
 * From making to removing it, the first Ctrl-C or SIGTERM does not end the process: the work stops at its next step, the
 * folder goes, and the command ends with TL_INTERRUPTED. */
#ifndef TL_DRIVER_OUTPUT_WORK_FOLDER_H
#define TL_DRIVER_OUTPUT_WORK_FOLDER_H
#include <stdbool.h>
#include "runtime/base/status.h"

/* `*out` is freed by tl_work_folder_remove. One at a time in a process. */
tl_status tl_work_folder_make(const char *result, char **out, tl_diag *diag);
/* With the files in it. */
void tl_work_folder_remove(char *folder);
bool tl_work_interrupted(void);
/* `status`, or TL_INTERRUPTED. */
tl_status tl_work_status(tl_status status, tl_diag *diag);

#endif
