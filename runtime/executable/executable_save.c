/* runtime/executable/executable_save.c: an executable as a folder.
 *
 *     executable.json   its text (executable_pack.c)
 *     objects.bin       the kernels' objects, one after another
 *     constants.bin     the constants that are in no file of the model's
 *     prepared.bin      the prepared constants */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "runtime/executable/executable_private.h"

const char *const tl_executable_files[] = { "executable.json", "objects.bin", "constants.bin",
                                            "prepared.bin", NULL };

static tl_status path_in(const char *folder, const char *name, char **out, tl_diag *diag)
{
    if (asprintf(out, "%s/%s", folder, name) < 0)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder);
    return TL_OK;
}

/* One file of the folder; none for no pieces. */
static tl_status save_pieces(const char *folder, const char *name, const tl_pieces *pieces,
                             bool is_private, tl_diag *diag)
{
    char *path;
    tl_file *file;

    if (pieces->count == 0)
        return TL_OK;
    TL_TRY(path_in(folder, name, &path, diag));
    tl_status status = (is_private ? tl_file_create_private : tl_file_create)(path, &file, diag);
    free(path);
    TL_TRY(status);
    status = tl_pieces_append(pieces, file, diag);
    if (status == TL_OK)
        return tl_file_commit_unsynced(file, diag);
    tl_file_abandon(file);
    return status;
}

static tl_status save(const tl_packed *packed, bool is_private, const char *folder, tl_diag *diag)
{
    tl_piece line = { .data = packed->text.data, .size = (int64_t)packed->text.size };
    tl_pieces text = { .items = &line, .count = 1, .capacity = 1, .size = line.size };
    struct stat info;

    TL_TRY(tl_folder_make(folder, diag));
    if (is_private && (lstat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return tl_fail(diag, TL_IO, "%s: not a folder of its own", folder);
    TL_TRY(save_pieces(folder, "objects.bin", &packed->objects, is_private, diag));
    TL_TRY(save_pieces(folder, "constants.bin", &packed->constants, is_private, diag));
    TL_TRY(tl_prepared_write(folder, packed->identity, packed->prepared, packed->prepared_size,
                             is_private, diag));
    return save_pieces(folder, "executable.json", &text, is_private, diag);
}

tl_status tl_executable_save(const tl_executable *x, int how, const char *folder, tl_diag *diag)
{
    tl_packed packed;
    tl_status status = tl_executable_pack(x, (how & TL_SAVE_WHOLE) != 0, &packed, diag);

    if (status == TL_OK) {
        status = save(&packed, (how & TL_SAVE_PRIVATE) != 0, folder, diag);
        tl_packed_free(&packed);
    }
    if (status != TL_OK)
        tl_context(diag, "saving the executable of %s", x->spec.model);
    return status;
}

static bool is_file_of_one(int folder, const char *name)
{
    struct stat info;
    bool is_known = false;

    for (int i = 0; tl_executable_files[i] != NULL; i++)
        is_known |= strcmp(name, tl_executable_files[i]) == 0;
    return is_known && fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode);
}

/* Whether its executable.json begins as ours do. */
static bool is_marked(const char *folder)
{
    static const char start[] = TL_EXECUTABLE_START;
    char *path;
    tl_mapping file;

    if (path_in(folder, tl_executable_files[0], &path, NULL) != TL_OK)
        return false;
    bool is_ours = tl_file_map(path, &file, NULL) == TL_OK;
    free(path);
    if (!is_ours)
        return false;
    is_ours = file.size >= sizeof start - 1 && memcmp(file.data, start, sizeof start - 1) == 0;
    tl_file_unmap(&file);
    return is_ours;
}

tl_status tl_executable_check_place(const char *folder, tl_diag *diag)
{
    tl_status status = TL_OK;
    int count = 0;

    if (folder[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a folder is empty");
    DIR *dir = opendir(folder);
    if (dir == NULL && errno == ENOENT)
        return TL_OK;
    if (dir == NULL)
        return tl_fail(diag, errno == ENOTDIR ? TL_BAD_ARGUMENT : TL_IO, "%s: %s", folder,
                       strerror(errno));
    for (struct dirent *d; status == TL_OK && (d = readdir(dir)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        count++;
        if (!is_file_of_one(dirfd(dir), d->d_name))
            status = tl_fail(diag, TL_BAD_ARGUMENT,
                             "%s: a folder with other things in it (%s), not a compiled model to "
                             "be replaced",
                             folder, d->d_name);
    }
    closedir(dir);
    if (status == TL_OK && count > 0 && !is_marked(folder))
        status =
            tl_fail(diag, TL_BAD_ARGUMENT,
                    "%s: a folder that is not empty and no compiled model to be replaced", folder);
    return status;
}
