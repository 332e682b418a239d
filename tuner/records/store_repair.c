/* tuner/records/store_repair.c: makes a sound database of what can be read of a damaged one.
 *
 * Everything sealed is read from the file and its journal (store_salvage.c) into a new database beside it; then the
 * journal goes aside, the two files change places in one step, and the damaged one gets a name of its own. Killed
 * before the exchange it leaves the damaged file to be repaired again: a journal that went aside already is read, too. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/destination.h"
#include "runtime/base/file.h"
#include "tuner/records/store_private.h"

typedef struct {
    void *into;
    tl_status status;
    tl_diag *diag;
} collector;

static void collect(void *user, const tl_row_type *type, const void *row)
{
    collector *c = user;
    if (c->status != TL_OK)
        return;
    if (type == &tl_trial_row)
        c->status = tl_sqlite_backend.add(c->into, row, c->diag);
    else if (type == &tl_workload_row)
        c->status = tl_sqlite_backend.add_workload(c->into, row, c->diag);
    else if (type == &tl_choice_row)
        c->status = tl_sqlite_backend.add_choice(c->into, row, c->diag);
    else
        c->status = tl_sqlite_backend.add_annex(c->into, row, c->diag);
}

/* The names a repair deals with. */
typedef struct {
    tl_text journal, fresh, shared, kept, kept_journal;
} names;

static bool exists(const tl_text *path)
{
    return access(tl_text_get(path), F_OK) == 0;
}

static void make_names(const char *path, names *n)
{
    tl_text_format(&n->journal, "%s-wal", path);
    tl_text_format(&n->shared, "%s-shm", path);
    tl_text_format(&n->fresh, "%s.repair", path);
    for (int i = 1; i < 10000; i++) {
        n->kept.size = n->kept_journal.size = 0;
        tl_text_format(&n->kept, "%s.damaged-%d", path, i);
        tl_text_format(&n->kept_journal, "%s.damaged-%d-wal", path, i);
        if (!exists(&n->kept))
            return;
    }
}

static void free_names(names *n)
{
    tl_text *const all[] = { &n->journal, &n->fresh, &n->kept, &n->kept_journal, &n->shared };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tl_text_free(all[i]);
}

static void remove_fresh(const names *n)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        tl_text path = { 0 };
        tl_text_format(&path, "%s%s", tl_text_get(&n->fresh), suffixes[i]);
        unlink(tl_text_get(&path));
        tl_text_free(&path);
    }
}

static void map_if_there(const char *path, tl_mapping *out)
{
    if (access(path, R_OK) != 0 || tl_file_map(path, out, NULL) != TL_OK)
        *out = (tl_mapping){ 0 };
}

/* Reads the file with each journal there is into a new database. */
static tl_status fill(const char *path, const names *n, tl_repair *out, tl_diag *diag)
{
    const char *journals[] = { tl_text_get(&n->journal), tl_text_get(&n->kept_journal) };
    collector c = { .diag = diag };
    tl_records_stats stats;
    remove_fresh(n);
    TL_TRY(tl_sqlite_open(tl_text_get(&n->fresh), TL_RECORDS_CREATE, &c.into, diag));
    c.status = tl_sqlite_backend.begin(c.into, diag);
    tl_mapping file;
    map_if_there(path, &file);
    for (size_t i = 0; i < 2 && c.status == TL_OK; i++) {
        tl_mapping journal;
        map_if_there(journals[i], &journal);
        if (i == 0 || journal.data != NULL)
            tl_salvage(file.data, file.size, journal.data, journal.size, collect, &c);
        tl_file_unmap(&journal);
    }
    tl_file_unmap(&file);
    if (c.status == TL_OK)
        c.status = tl_sqlite_backend.commit(c.into, diag);
    if (c.status == TL_OK)
        c.status = tl_sqlite_backend.measure(c.into, &stats, diag);
    tl_sqlite_backend.close(c.into); /* the last connection: the log goes into the file */
    out->recovered = stats.records;
    out->workloads = stats.workloads;
    out->choices = stats.choices;
    if (c.status != TL_OK)
        remove_fresh(n);
    return c.status == TL_BAD_TEXT ? TL_IO : c.status;
}

static tl_status put_in_place(const char *path, const names *n, tl_repair *out, tl_diag *diag)
{
    if (exists(&n->journal) && rename(tl_text_get(&n->journal), tl_text_get(&n->kept_journal)) != 0)
        return tl_fail(diag, TL_IO, "%s cannot be moved aside", tl_text_get(&n->journal));
    unlink(tl_text_get(&n->shared));
    if (renameat2(AT_FDCWD, tl_text_get(&n->fresh), AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        if (rename(tl_text_get(&n->fresh), tl_text_get(&n->kept)) != 0)
            return tl_fail(diag, TL_IO, "%s cannot be renamed", tl_text_get(&n->fresh));
    } else if (rename(path, tl_text_get(&n->kept)) != 0 ||
               rename(tl_text_get(&n->fresh), path) != 0) {
        return tl_fail(diag, TL_IO, "%s cannot be replaced", path);
    }
    snprintf(out->kept_as, sizeof out->kept_as, "%s", tl_text_get(&n->kept));
    return TL_OK;
}

/* One repair at a time: a lock on the folder, which leaves nothing behind. */
static int lock_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    tl_text folder = { 0 };
    tl_text_add_bytes(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    int lock = open(tl_text_get(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tl_text_free(&folder);
    if (lock >= 0 && flock(lock, LOCK_EX) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

/* Nobody else's file is ever put aside. */
bool tl_store_looks_like_one(const char *path)
{
    static const char magic[] = "SQLite format 3";
    tl_mapping file;
    map_if_there(path, &file);
    size_t size = file.size < sizeof magic ? file.size : sizeof magic;
    bool is_like = size == 0 || memcmp(file.data, magic, size) == 0;
    tl_file_unmap(&file);
    return is_like;
}

static tl_status repair(const char *path, bool always, names *n, tl_repair *out, tl_diag *diag)
{
    void *self;
    tl_diag why = { 0 };
    tl_status status = tl_sqlite_open(path, 0, &self, &why);
    if (status == TL_OK)
        tl_sqlite_backend.close(self);
    out->was_damaged = status == TL_BAD_TEXT;
    snprintf(out->problem, sizeof out->problem, "%.255s", why.text);
    /* a header that says it is not ours may be what was damaged: what is found inside decides */
    bool is_candidate = status == TL_BAD_TEXT || (always && status != TL_NO_MEMORY);
    if (!is_candidate)
        return status == TL_OK ? TL_OK : tl_fail(diag, status, "%s", why.text);
    TL_TRY(fill(path, n, out, diag));
    if (status != TL_OK && out->recovered + out->workloads + out->choices == 0 &&
        (status != TL_BAD_TEXT || !tl_store_looks_like_one(path))) {
        remove_fresh(n);
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s: holds no records of tilth", path);
    }
    return put_in_place(path, n, out, diag);
}

tl_status tl_records_repair(const char *path, bool always, tl_repair *out, tl_diag *diag)
{
    tl_destination to;
    *out = (tl_repair){ 0 };
    TL_TRY(tl_destination_find(path, &to, diag));
    path = to.path; /* a link to the database stays */
    if (access(path, F_OK) != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s: there is no such file", path);
    int lock = lock_folder(path);
    if (lock < 0)
        return tl_fail(diag, TL_IO, "the folder of %s cannot be locked", path);
    names n = { 0 };
    make_names(path, &n);
    tl_status status = repair(path, always, &n, out, diag);
    free_names(&n);
    close(lock);
    return status;
}
