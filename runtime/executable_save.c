/* runtime/executable_save.c: an executable as a folder.
 *
 *     executable.json   its text (executable_pack.c)
 *     objects.bin       the kernels' objects, one after another
 *     constants.bin     the constants that are in no file of the model's
 *     prepared.bin      the prepared constants */
#include <stdio.h>
#include <stdlib.h>
#include "runtime/executable_private.h"

static tl_status path_in(const char *folder, const char *name, char **out, tl_diag *diag)
{
    if (asprintf(out, "%s/%s", folder, name) < 0)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder);
    return TL_OK;
}

/* One file of the folder; none for no pieces. */
static tl_status save_pieces(const char *folder, const char *name, const tl_pieces *pieces,
                             tl_diag *diag)
{
    char *path;
    tl_file *file;

    if (pieces->count == 0)
        return TL_OK;
    TL_TRY(path_in(folder, name, &path, diag));
    tl_status status = tl_file_create(path, &file, diag);
    free(path);
    TL_TRY(status);
    status = tl_pieces_append(pieces, file, diag);
    if (status == TL_OK)
        return tl_file_commit_unsynced(file, diag);
    tl_file_abandon(file);
    return status;
}

static tl_status save(const tl_packed *packed, const char *folder, tl_diag *diag)
{
    tl_piece line = { packed->text.data, (int64_t)packed->text.size, 0 };
    tl_pieces text = { .items = &line, .count = 1, .capacity = 1, .size = line.size };

    TL_TRY(tl_folder_make(folder, diag));
    TL_TRY(save_pieces(folder, "objects.bin", &packed->objects, diag));
    TL_TRY(save_pieces(folder, "constants.bin", &packed->constants, diag));
    TL_TRY(
        tl_prepared_write(folder, packed->identity, packed->prepared, packed->prepared_size, diag));
    return save_pieces(folder, "executable.json", &text, diag);
}

tl_status tl_executable_save(const tl_executable *x, bool whole, const char *folder, tl_diag *diag)
{
    tl_packed packed;
    tl_status status = tl_executable_pack(x, whole, &packed, diag);

    if (status == TL_OK) {
        status = save(&packed, folder, diag);
        tl_packed_free(&packed);
    }
    if (status != TL_OK)
        tl_context(diag, "saving the executable of %s", x->spec.model);
    return status;
}
