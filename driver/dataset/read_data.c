/* driver/dataset/read_data.c: reads a data set's file, or a database of records. */
#include "driver/dataset/read_data.h"
#include <string.h>
#include "runtime/base/file.h"

static bool is_database(const char *path)
{
    static const char mark[] = "SQLite format 3";
    tl_mapping file;
    if (tl_file_map(path, &file, NULL) != TL_OK)
        return false;
    bool is = file.size >= sizeof mark && memcmp(file.data, mark, sizeof mark) == 0;
    tl_file_unmap(&file);
    return is;
}

tl_status tl_read_data(tl_dataset *set, const char *path, int64_t *added, int64_t *skipped,
                       tl_diag *diag)
{
    *skipped = 0;
    if (!is_database(path)) {
        tl_dataset *from;
        TL_TRY(tl_dataset_read(path, set->arena, &from, diag));
        tl_dataset_merge(set, from, added);
        return TL_OK;
    }
    tl_records *store;
    int64_t before = set->count;
    TL_TRY(tl_records_open(path, TL_RECORDS_READ_ONLY, &store, diag));
    const tl_query everything = { .any_revision = true };
    tl_status status = tl_dataset_add_records(set, store, &everything, skipped, diag);
    tl_records_close(store, NULL);
    *added = set->count - before;
    return status;
}
