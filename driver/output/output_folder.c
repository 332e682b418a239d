/* driver/output/output_folder.c: a model as the folder that libtilth_rt opens. It is made beside its place and then takes it; a
 * compiled model that was there goes as a whole, any other folder stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "driver/output/output.h"
#include "driver/output/work_folder.h"
#include "runtime/base/destination.h"

tl_status tl_output_check_folder(const char *path, tl_diag *diag)
{
    tl_destination to;
    TL_TRY(tl_executable_check_place(path, diag));
    TL_TRY(tl_destination_find(path, &to, diag));
    char *slash = strrchr(to.path, '/');
    if (slash != NULL)
        slash[slash == to.path] = '\0';
    const char *beside = slash != NULL ? to.path : ".";
    if (access(beside, W_OK | X_OK) != 0)
        return tl_fail(diag, TL_IO, "%s: cannot write in %s: %s", path, beside, strerror(errno));
    return TL_OK;
}

/* What was at `path` is in `work` afterwards. */
static tl_status put_in_place(const char *work, const char *path, tl_diag *diag)
{
    if (rename(work, path) == 0)
        return TL_OK;
    if ((errno == EEXIST || errno == ENOTEMPTY) &&
        renameat2(AT_FDCWD, work, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return TL_OK;
    return tl_fail(diag, TL_IO, "%s: cannot put in place: %s", path, strerror(errno));
}

tl_status tl_output_folder(tl_output *o, tl_diag *diag)
{
    char *work;
    tl_destination to;
    TL_TRY(tl_output_check_folder(o->path, diag));
    TL_TRY(tl_destination_find(o->path, &to, diag)); /* a link to a folder stays */
    TL_TRY(tl_work_folder_make(to.path, &work, diag));
    tl_status status = tl_executable_save(tl_model_executable(o->model), TL_SAVE_WHOLE, work, diag);
    status = tl_work_status(status, diag);
    if (status == TL_OK)
        status = put_in_place(work, to.path, diag);
    tl_work_folder_remove(work);
    return status;
}
