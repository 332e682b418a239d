/* driver/output_folder.c: a model as the folder that libtilth_rt opens. It is made beside its place and then takes it; a
 * compiled model that was there goes as a whole, any other folder stays. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "driver/output.h"
#include "driver/work_folder.h"

static bool is_of_a_model(const char *name)
{
    static const char *const names[] = {
        ".", "..", "executable.json", "objects.bin", "constants.bin", "prepared.bin"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

tl_status tl_output_check_folder(const char *path, tl_diag *diag)
{
    tl_status status = TL_OK;
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (dir == NULL && errno == ENOENT)
        return TL_OK;
    if (dir == NULL)
        return tl_fail(diag, TL_IO, "%s: %s", path, strerror(errno));
    while (status == TL_OK && (entry = readdir(dir)) != NULL)
        if (!is_of_a_model(entry->d_name))
            status = tl_fail(diag, TL_BAD_ARGUMENT,
                             "%s: a folder with other things in it (%s), not a compiled model to "
                             "be replaced",
                             path, entry->d_name);
    closedir(dir);
    return status;
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
    TL_TRY(tl_output_check_folder(o->path, diag));
    TL_TRY(tl_work_folder_make(o->path, &work, diag));
    tl_status status = tl_executable_save(tl_model_executable(o->model), true, work, diag);
    status = tl_work_status(status, diag);
    if (status == TL_OK)
        status = put_in_place(work, o->path, diag);
    tl_work_folder_remove(work);
    return status;
}
