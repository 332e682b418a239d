/* tuner/records/store.c: what all backends have in common: stacking, patience, places, repair on sight. */
#include "tuner/records/store.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/clock.h"
#include "tuner/records/store_private.h"

enum { LAST_PATIENCE_MS = 10000, USUAL_PATIENCE_MS = 2000 };
#define RETRY_NS 1000000000

bool tl_records_default_path(tl_text *out)
{
    if (!tl_data_folder(out))
        return false;
    tl_text_add(out, "/records.db");
    return !out->failed;
}

bool tl_records_system_path(tl_text *out)
{
    const char *folders = getenv("XDG_DATA_DIRS");
    if (folders == NULL || folders[0] == '\0')
        folders = "/usr/local/share:/usr/share";
    while (*folders != '\0') {
        size_t size = strcspn(folders, ":");
        out->size = 0;
        tl_text_format(out, "%.*s/tilth/records.db", (int)size, folders);
        if (folders[0] == '/' && access(tl_text_get(out), R_OK) == 0)
            return true;
        folders += size + (folders[size] == ':');
    }
    return false;
}

/* Opens; a damaged file is repaired when that is wanted. */
static tl_status open_backend(tl_records *store, tl_diag *diag)
{
    tl_diag why = { 0 };
    tl_status status = tl_sqlite_open(store->path, store->flags, &store->self, &why);
    if (status == TL_BAD_TEXT && (store->flags & TL_RECORDS_REPAIR) &&
        !(store->flags & TL_RECORDS_READ_ONLY)) {
        tl_repair repair;
        TL_TRY(tl_records_repair(store->path, false, &repair, diag));
        if (repair.kept_as[0])
            snprintf(store->repaired, sizeof store->repaired,
                     "%s: recovered %lld records; the damaged file is kept as %s", repair.problem,
                     (long long)repair.recovered, repair.kept_as);
        status = tl_sqlite_open(store->path, store->flags | TL_RECORDS_CREATE, &store->self, &why);
    }
    if (status == TL_OK)
        return TL_OK;
    store->self = NULL;
    if (status == TL_BAD_TEXT)
        status = tl_store_looks_like_one(store->path) ? TL_IO : TL_BAD_ARGUMENT;
    return tl_fail(diag, status, "%s", why.text);
}

static void free_pending(tl_records *store)
{
    while (store->first != NULL) {
        tl_pending *next = store->first->next;
        tl_arena_destroy(store->first->arena);
        free(store->first);
        store->first = next;
    }
}

tl_status tl_records_open(const char *path, int flags, tl_records **out, tl_diag *diag)
{
    *out = NULL;
    if (path[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a database is empty");
    if ((flags & TL_RECORDS_CREATE) && strchr(path, '/') != NULL) {
        tl_text folder = { 0 };
        tl_text_add_bytes(&folder, path, (size_t)(strrchr(path, '/') - path));
        tl_status status = folder.size > 0 ? tl_folder_make(tl_text_get(&folder), diag) : TL_OK;
        tl_text_free(&folder);
        TL_TRY(status);
    }
    tl_records *store = calloc(1, sizeof *store);
    if (store == NULL || (store->path = strdup(path)) == NULL) {
        free(store);
        return tl_fail(diag, TL_NO_MEMORY, "database %s: out of memory", path);
    }
    store->backend = &tl_sqlite_backend;
    store->flags = flags;
    store->last = &store->first;
    tl_status status = open_backend(store, diag);
    if (status != TL_OK) {
        free(store->path);
        free(store);
        return status;
    }
    *out = store;
    return TL_OK;
}

void tl_records_stack(tl_records *upper, tl_records *lower)
{
    assert(upper != lower);
    while (upper->lower != NULL)
        upper = upper->lower;
    upper->lower = lower;
}

/* The system's database; NULL when there is none, or none that can be read: as good as none. */
static tl_records *open_system(void)
{
    tl_text place = { 0 };
    tl_records *store = NULL;
    if (tl_records_system_path(&place))
        tl_records_open(tl_text_get(&place), TL_RECORDS_READ_ONLY, &store, NULL);
    tl_text_free(&place);
    return store;
}

tl_status tl_records_open_default(const char *path, int flags, tl_records **out, tl_diag *diag)
{
    if (path != NULL)
        return tl_records_open(path, flags, out, diag);
    tl_text place = { 0 };
    *out = NULL;
    if (!tl_records_default_path(&place))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "no place for the records: neither XDG_DATA_HOME nor HOME is set (--db)");
    tl_records *lower = open_system();
    bool only_lower =
        lower != NULL && (flags & TL_RECORDS_READ_ONLY) && access(tl_text_get(&place), F_OK) != 0;
    tl_status status = TL_OK;
    if (only_lower) {
        *out = lower;
    } else {
        status = tl_records_open(tl_text_get(&place), flags, out, diag);
        if (status == TL_OK && lower != NULL)
            tl_records_stack(*out, lower);
        else
            tl_records_close(lower, NULL);
    }
    tl_text_free(&place);
    return status;
}

const char *tl_records_path(const tl_records *store)
{
    return store->path;
}

const char *tl_records_repaired(const tl_records *store)
{
    return store->repaired;
}

/* The backend, opened again when another process put a new file in its place (a repair). NULL: not now. */
static void *get_backend(tl_records *store, tl_diag *diag)
{
    if (store->self != NULL && !tl_sqlite_is_current(store->self)) {
        store->backend->close(store->self);
        store->self = NULL;
    }
    if (store->self == NULL && open_backend(store, diag) != TL_OK)
        return NULL;
    return store->self;
}

/* One try, and after a repair of what it found damaged, a second one. */
static tl_status try_add(tl_records *store, const tl_record *record, tl_diag *diag)
{
    for (int attempt = 0;; attempt++) {
        void *self = get_backend(store, diag);
        if (self == NULL)
            return TL_IO;
        tl_status status = store->backend->add(self, record, diag);
        if (status != TL_BAD_TEXT || attempt > 0 || !(store->flags & TL_RECORDS_REPAIR))
            return status == TL_BAD_TEXT ? TL_IO : status;
        store->backend->close(store->self);
        store->self = NULL;
    }
}

static tl_status keep(tl_records *store, const tl_record *record, tl_diag *diag)
{
    assert(record->uid[0] != '\0');
    tl_pending *item = calloc(1, sizeof *item);
    tl_arena *arena = tl_arena_create(0);
    if (item == NULL || arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(item);
        return tl_fail(diag, TL_NO_MEMORY, "a record is lost: out of memory");
    }
    item->arena = arena;
    tl_record_copy(arena, record, &item->record);
    *store->last = item;
    store->last = &item->next;
    store->pending_count++;
    return TL_OK;
}

int64_t tl_records_flush(tl_records *store)
{
    tl_diag why = { 0 };
    while (store->first != NULL && try_add(store, &store->first->record, &why) == TL_OK) {
        tl_pending *written = store->first;
        store->first = written->next;
        if (store->first == NULL)
            store->last = &store->first;
        store->pending_count--;
        tl_arena_destroy(written->arena);
        free(written);
    }
    snprintf(store->reason, sizeof store->reason, "%.511s", store->first != NULL ? why.text : "");
    return store->pending_count;
}

int64_t tl_records_pending(const tl_records *store, const char **reason)
{
    if (reason != NULL)
        *reason = store->reason;
    return store->pending_count;
}

tl_status tl_records_add(tl_records *store, const tl_record *record, tl_diag *diag)
{
    if (store->flags & TL_RECORDS_READ_ONLY)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       store->path);
    if (!tl_record_is_sealed(record))
        return tl_fail(diag, TL_BAD_ARGUMENT, "record %.32s is not sealed", record->uid);
    if (store->first != NULL && tl_clock_ns() >= store->retry_ns) {
        tl_records_flush(store);
        store->retry_ns = tl_clock_ns() + RETRY_NS;
    }
    tl_diag why = { 0 };
    if (store->first == NULL) { /* else it waits its turn: records stay in order */
        if (try_add(store, record, &why) == TL_OK)
            return TL_OK;
        snprintf(store->reason, sizeof store->reason, "%.511s", why.text);
        store->retry_ns = tl_clock_ns() + RETRY_NS;
    }
    return keep(store, record, diag);
}

tl_status tl_records_add_workload(tl_records *store, const tl_workload_info *info, tl_diag *diag)
{
    tl_workload_info sealed = *info;
    if (store->flags & TL_RECORDS_READ_ONLY)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       store->path);
    tl_workload_seal(&sealed);
    void *self = get_backend(store, diag);
    tl_status status = self == NULL ? TL_IO : store->backend->add_workload(self, &sealed, diag);
    return status == TL_BAD_TEXT ? TL_IO : status;
}

void tl_records_set_patience(tl_records *store, int milliseconds)
{
    if (store->self != NULL)
        tl_sqlite_set_patience(store->self, milliseconds);
}

void tl_records_close(tl_records *store, int64_t *lost)
{
    if (store == NULL)
        return;
    if (store->first != NULL) {
        if (store->self != NULL)
            tl_sqlite_set_patience(store->self, LAST_PATIENCE_MS);
        tl_records_flush(store);
    }
    if (lost != NULL)
        *lost = store->pending_count;
    free_pending(store);
    if (store->self != NULL)
        store->backend->close(store->self);
    tl_records_close(store->lower, NULL);
    free(store->path);
    free(store);
}

typedef struct {
    tl_record_visitor *visit;
    void *user;
    int64_t left; /* -1: no limit */
    bool stopped;
} limited;

static bool visit_limited(void *user, const tl_record *record)
{
    limited *l = user;
    l->stopped = !l->visit(l->user, record);
    if (l->left > 0 && --l->left == 0)
        l->stopped = true;
    return !l->stopped;
}

/* `misses`: a store that cannot be read is one, else a failure. */
static tl_status visit_stores(tl_records *store, const tl_query *query, bool misses,
                              tl_record_visitor *visit, void *user, tl_diag *diag)
{
    static const tl_query everything;
    if (query == NULL)
        query = &everything;
    limited l = { visit, user, query->limit > 0 ? query->limit : -1, false };
    for (; store != NULL && !l.stopped; store = store->lower) {
        int64_t broken = 0;
        void *self = get_backend(store, diag);
        tl_status status =
            self == NULL ? TL_IO
                         : store->backend->visit(self, query, visit_limited, &l, &broken, diag);
        if (status != TL_OK && !misses)
            return status == TL_BAD_TEXT ? TL_IO : status;
    }
    return TL_OK;
}

tl_status tl_records_visit(tl_records *store, const tl_query *query, tl_record_visitor *visit,
                           void *user, tl_diag *diag)
{
    return visit_stores(store, query, false, visit, user, diag);
}

void tl_records_visit_readable(tl_records *store, const tl_query *query, tl_record_visitor *visit,
                               void *user)
{
    visit_stores(store, query, true, visit, user, NULL);
}

typedef struct {
    tl_arena *arena;
    tl_record *out;
    bool found;
} record_search;

static bool take_record(void *user, const tl_record *record)
{
    record_search *r = user;
    tl_record_copy(r->arena, record, r->out);
    r->found = true;
    return false;
}

bool tl_records_first(tl_records *store, tl_arena *arena, const tl_query *query, tl_record *out)
{
    record_search r = { arena, out, false };
    tl_records_visit_readable(store, query, take_record, &r);
    return r.found;
}

typedef struct {
    tl_arena *arena;
    tl_workload_info *out;
    bool found;
} workload_search;

static bool take_workload(void *user, const tl_workload_info *info)
{
    workload_search *w = user;
    tl_row_copy(&tl_workload_row, w->arena, info, w->out);
    w->found = true;
    return false;
}

bool tl_records_find_workload(tl_records *store, tl_arena *arena, const char *workload,
                              tl_workload_info *out)
{
    workload_search w = { arena, out, false };
    for (; store != NULL && !w.found; store = store->lower) {
        void *self = get_backend(store, NULL);
        if (self != NULL)
            store->backend->visit_workloads(self, workload, take_workload, &w, NULL);
    }
    return w.found;
}

tl_status tl_records_visit_workloads(tl_records *store, tl_workload_visitor *visit, void *user,
                                     tl_diag *diag)
{
    for (; store != NULL; store = store->lower) {
        void *self = get_backend(store, diag);
        if (self == NULL)
            return TL_IO;
        TL_TRY(store->backend->visit_workloads(self, NULL, visit, user, diag));
    }
    return TL_OK;
}

tl_status tl_records_add_choice(tl_records *store, const tl_choice *choice, tl_diag *diag)
{
    tl_choice sealed = *choice;
    if (store->flags & TL_RECORDS_READ_ONLY)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       store->path);
    tl_choice_seal(&sealed);
    void *self = get_backend(store, diag);
    tl_status status = self == NULL ? TL_IO : store->backend->add_choice(self, &sealed, diag);
    return status == TL_BAD_TEXT ? TL_IO : status;
}

typedef struct {
    tl_arena *arena;
    tl_choice *out;
    bool found;
} choice_search;

static bool take_choice(void *user, const tl_choice *choice)
{
    choice_search *c = user;
    if (!c->found || choice->created_us > c->out->created_us)
        tl_row_copy(&tl_choice_row, c->arena, choice, c->out);
    c->found = true;
    return false; /* the newest comes first */
}

bool tl_records_find_choice(tl_records *store, tl_arena *arena, const tl_choice_query *query,
                            tl_choice *out)
{
    choice_search c = { arena, out, false };
    for (; store != NULL; store = store->lower) {
        void *self = get_backend(store, NULL);
        if (self != NULL)
            store->backend->visit_choices(self, query, take_choice, &c, NULL);
    }
    return c.found;
}

tl_status tl_records_visit_choices(tl_records *store, const tl_choice_query *query,
                                   tl_choice_visitor *visit, void *user, tl_diag *diag)
{
    static const tl_choice_query all;
    for (; store != NULL; store = store->lower) {
        void *self = get_backend(store, diag);
        if (self == NULL)
            return TL_IO;
        tl_status status =
            store->backend->visit_choices(self, query ? query : &all, visit, user, diag);
        if (status != TL_OK)
            return status == TL_BAD_TEXT ? TL_IO : status;
    }
    return TL_OK;
}

static bool count_nothing(void *user, const tl_record *record)
{
    (void)user;
    (void)record;
    return true;
}

tl_status tl_records_measure(tl_records *store, tl_records_stats *out, tl_diag *diag)
{
    static const tl_query everything = { .any_revision = true };
    int64_t broken = 0;
    void *self = get_backend(store, diag);
    if (self == NULL)
        return TL_IO;
    TL_TRY(store->backend->measure(self, out, diag));
    TL_TRY(store->backend->visit(self, &everything, count_nothing, NULL, &broken, diag));
    out->broken = broken;
    return TL_OK;
}

tl_status tl_records_prune(tl_records *store, const tl_prune *what, int64_t *removed, tl_diag *diag)
{
    *removed = 0;
    if ((store->flags & TL_RECORDS_READ_ONLY) && !what->dry)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       store->path);
    void *self = get_backend(store, diag);
    return self == NULL ? TL_IO : store->backend->prune(self, what, removed, diag);
}

tl_status tl_records_add_annex(tl_records *store, const tl_annex *annex, tl_diag *diag)
{
    tl_annex sealed = *annex;
    if (store->flags & TL_RECORDS_READ_ONLY)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       store->path);
    tl_annex_seal(&sealed);
    void *self = get_backend(store, diag);
    tl_status status = self == NULL ? TL_IO : store->backend->add_annex(self, &sealed, diag);
    return status == TL_BAD_TEXT ? TL_IO : status;
}

typedef struct {
    tl_arena *arena;
    tl_annex *out;
    bool found;
} annex_search;

static bool take_annex(void *user, const tl_annex *annex)
{
    annex_search *a = user;
    tl_row_copy(&tl_annex_row, a->arena, annex, a->out);
    a->found = true;
    return false;
}

bool tl_records_find_annex(tl_records *store, tl_arena *arena, const char *kind, const char *name,
                           tl_annex *out)
{
    annex_search a = { arena, out, false };
    for (; store != NULL && !a.found; store = store->lower) {
        void *self = get_backend(store, NULL);
        if (self != NULL)
            store->backend->visit_annexes(self, kind, name, take_annex, &a, NULL);
    }
    return a.found;
}

tl_status tl_records_visit_annexes(tl_records *store, tl_annex_visitor *visit, void *user,
                                   tl_diag *diag)
{
    for (; store != NULL; store = store->lower) {
        void *self = get_backend(store, diag);
        if (self == NULL)
            return TL_IO;
        TL_TRY(store->backend->visit_annexes(self, NULL, NULL, visit, user, diag));
    }
    return TL_OK;
}

bool tl_records_program_of(tl_records *store, tl_arena *arena, const tl_record *record,
                           const char **program)
{
    tl_annex annex;
    tl_workload_info info;
    const char *name = tl_arena_format(arena, "%s %s", record->workload, record->lowering);
    if (tl_records_find_annex(store, arena, "program", name, &annex)) {
        *program = annex.text;
        return true;
    }
    if (strcmp(record->lowering, "direct") != 0 ||
        !tl_records_find_workload(store, arena, record->workload, &info))
        return false;
    *program = info.program;
    return true;
}
