/* driver/output/work_folder.c: a place for files in the making that need names. */
#include "driver/output/work_folder.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/cli/cli.h"

static volatile sig_atomic_t interrupted;

tl_status tl_work_folder_make(const char *result, char **out, tl_diag *diag)
{
    if (asprintf(out, "%s.XXXXXX", result) < 0) {
        *out = NULL;
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", result);
    }
    interrupted = 0;
    tl_interrupt_catch(&interrupted);
    if (mkdtemp(*out) != NULL)
        return TL_OK;
    tl_interrupt_catch(NULL);
    tl_status status = tl_fail(diag, TL_IO, "%s: cannot write there: %s", result, strerror(errno));
    free(*out);
    *out = NULL;
    return status;
}

void tl_work_folder_remove(char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    rmdir(folder);
    free(folder);
    tl_interrupt_catch(NULL);
}

bool tl_work_interrupted(void)
{
    return interrupted != 0;
}

tl_status tl_work_status(tl_status status, tl_diag *diag)
{
    return interrupted ? tl_fail(diag, TL_INTERRUPTED, "interrupted; nothing was written") : status;
}
