/* tuner/records/store_copy.c: records from one place to another: merge, export, import. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tuner/records/store_private.h"

/* Additions are grouped: one transaction for so many. */
enum { GROUP = 1000 };

typedef struct {
    tl_records *into;
    tl_copy_counts *counts;
    int64_t open; /* additions in the transaction */
    tl_status status;
    tl_diag *diag;
} mover;

static tl_status end_group(mover *m)
{
    if (m->open == 0)
        return TL_OK;
    m->open = 0;
    return m->into->backend->commit(m->into->self, m->diag);
}

static tl_status begin_addition(mover *m)
{
    assert(m->open >= 0 && m->open <= GROUP);
    if (m->open == GROUP)
        TL_TRY(end_group(m));
    if (m->open == 0)
        TL_TRY(m->into->backend->begin(m->into->self, m->diag));
    m->open++;
    return TL_OK;
}

static bool move_record(void *user, const tl_record *record)
{
    mover *m = user;
    m->counts->read++;
    m->status = begin_addition(m);
    if (m->status == TL_OK)
        m->status = m->into->backend->add(m->into->self, record, m->diag);
    return m->status == TL_OK;
}

static bool move_workload(void *user, const tl_workload_info *info)
{
    mover *m = user;
    m->status = begin_addition(m);
    if (m->status == TL_OK)
        m->status = m->into->backend->add_workload(m->into->self, info, m->diag);
    return m->status == TL_OK;
}

static bool move_choice(void *user, const tl_choice *choice)
{
    mover *m = user;
    m->status = begin_addition(m);
    if (m->status == TL_OK)
        m->status = m->into->backend->add_choice(m->into->self, choice, m->diag);
    return m->status == TL_OK;
}

static bool move_annex(void *user, const tl_annex *annex)
{
    mover *m = user;
    m->status = begin_addition(m);
    if (m->status == TL_OK)
        m->status = m->into->backend->add_annex(m->into->self, annex, m->diag);
    return m->status == TL_OK;
}

static tl_status start(tl_records *into, mover *m, tl_copy_counts *counts, int64_t *before,
                       tl_diag *diag)
{
    tl_records_stats stats;
    *counts = (tl_copy_counts){ 0 };
    *m = (mover){ .into = into, .counts = counts, .diag = diag };
    if (into->flags & TL_RECORDS_READ_ONLY)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s was opened for reading only",
                       into->path);
    if (into->self == NULL)
        return tl_fail(diag, TL_IO, "database %s cannot be written now", into->path);
    TL_TRY(into->backend->measure(into->self, &stats, diag));
    *before = stats.records;
    return TL_OK;
}

static tl_status finish(mover *m, tl_status status, int64_t before)
{
    tl_records_stats stats;
    if (status == TL_OK)
        status = m->status;
    tl_status ended = end_group(m);
    if (status == TL_OK)
        status = ended;
    if (status == TL_OK)
        status = m->into->backend->measure(m->into->self, &stats, m->diag);
    if (status == TL_OK)
        m->counts->added = stats.records - before;
    return status == TL_BAD_TEXT ? TL_IO : status;
}

tl_status tl_records_merge(tl_records *into, tl_records *from, tl_copy_counts *out, tl_diag *diag)
{
    static const tl_query everything = { .any_revision = true };
    mover m;
    int64_t before;
    TL_TRY(start(into, &m, out, &before, diag));
    tl_status status = tl_records_visit_workloads(from, move_workload, &m, diag);
    if (status == TL_OK && m.status == TL_OK && from->self != NULL)
        status =
            from->backend->visit(from->self, &everything, move_record, &m, &out->refused, diag);
    if (status == TL_OK && m.status == TL_OK)
        status = tl_records_visit_choices(from, NULL, move_choice, &m, diag);
    if (status == TL_OK && m.status == TL_OK)
        status = tl_records_visit_annexes(from, move_annex, &m, diag);
    return finish(&m, status, before);
}

typedef struct {
    tl_records *store;
    tl_line_sink *put;
    void *user;
    tl_copy_counts *counts;
    tl_arena *arena; /* of `known` */
    tl_map *known;   /* workloads that were put out */
    bool failed;
} exporter;

static void put_line(exporter *e, tl_text *line)
{
    tl_text_add(line, "\n");
    if (line->failed || !e->put(e->user, line->data, line->size))
        e->failed = true;
    tl_text_free(line);
}

static void export_workload(exporter *e, const char *workload)
{
    tl_workload_info info;
    tl_map_put(e->known, workload, e);
    tl_arena *arena = tl_arena_create(0);
    if (arena != NULL && !TL_ARENA_GUARD(arena) &&
        tl_records_find_workload(e->store, arena, workload, &info)) {
        tl_text line = { 0 };
        tl_workload_print(&info, &line);
        put_line(e, &line);
    }
    tl_arena_destroy(arena);
}

/* A text that a record refers to, before the first that does. */
static void export_annex(exporter *e, const char *kind, const char *name)
{
    tl_annex annex;
    tl_text key = { 0 };
    tl_text_format(&key, "%s %s", kind, name);
    bool is_new = !tl_map_has(e->known, tl_text_get(&key));
    if (is_new)
        tl_map_put(e->known, tl_text_get(&key), e);
    tl_text_free(&key);
    tl_arena *arena = is_new ? tl_arena_create(0) : NULL;
    if (arena != NULL && !TL_ARENA_GUARD(arena) &&
        tl_records_find_annex(e->store, arena, kind, name, &annex)) {
        tl_text line = { 0 };
        tl_annex_print(&annex, &line);
        put_line(e, &line);
    }
    tl_arena_destroy(arena);
}

static bool export_choice(void *user, const tl_choice *choice)
{
    exporter *e = user;
    tl_text line = { 0 };
    tl_choice_print(choice, &line);
    put_line(e, &line);
    return !e->failed;
}

/* Whether a query is for all records. */
static bool is_for_all(const tl_query *q)
{
    return q == NULL ||
           (q->uid == NULL && q->workload == NULL && q->class_key == NULL && q->family == NULL &&
            q->target == NULL && q->numerics == NULL && q->lowering == NULL && q->session == NULL &&
            !q->only_ok && !q->only_failed && q->revision == 0 && q->threads == 0 &&
            !q->only_cold && q->limit == 0);
}

static bool export_record(void *user, const tl_record *record)
{
    exporter *e = user;
    tl_text line = { 0 };
    if (!tl_map_has(e->known, record->workload))
        export_workload(e, record->workload);
    tl_text name = { 0 };
    tl_text_format(&name, "%s %s", record->workload, record->lowering);
    export_annex(e, "program", tl_text_get(&name));
    tl_text_free(&name);
    if (record->machine[0] != '\0')
        export_annex(e, "machine", record->machine);
    tl_record_print(record, &line);
    put_line(e, &line);
    e->counts->read++;
    e->counts->added += !e->failed;
    return !e->failed;
}

tl_status tl_records_export(tl_records *store, const tl_query *query, tl_line_sink *put, void *user,
                            tl_copy_counts *out, tl_diag *diag)
{
    exporter e = { .store = store, .put = put, .user = user, .counts = out };
    *out = (tl_copy_counts){ 0 };
    e.arena = tl_arena_create(0);
    if (e.arena == NULL || TL_ARENA_GUARD(e.arena)) {
        tl_arena_destroy(e.arena);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    e.known = tl_map_create(e.arena);
    tl_status status = tl_records_visit(store, query, export_record, &e, diag);
    if (status == TL_OK && !e.failed && is_for_all(query))
        status = tl_records_visit_choices(store, NULL, export_choice, &e, diag);
    tl_arena_destroy(e.arena);
    if (status == TL_OK && e.failed)
        status = tl_fail(diag, TL_IO, "the export could not be written");
    return status;
}

/* One line of an export. False: the database cannot be written; lines that are no records are counted. */
static bool import_line(mover *m, const char *line, tl_diag *first_refusal)
{
    tl_record record;
    tl_workload_info info;
    tl_choice choice;
    tl_annex annex;
    tl_diag why = { 0 };
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        m->status = tl_fail(m->diag, TL_NO_MEMORY, "out of memory");
        return false;
    }
    if (tl_record_parse(arena, line, &record, &why) == TL_OK) {
        move_record(m, &record);
    } else if (tl_workload_parse(arena, line, &info, NULL) == TL_OK) {
        move_workload(m, &info);
    } else if (tl_choice_parse(arena, line, &choice, NULL) == TL_OK) {
        move_choice(m, &choice);
    } else if (tl_annex_parse(arena, line, &annex, NULL) == TL_OK) {
        move_annex(m, &annex);
    } else if (strncmp(line, "{\"record\":\"env\"", 15) != 0) {
        if (m->counts->refused++ == 0)
            *first_refusal = why;
    }
    tl_arena_destroy(arena);
    return m->status == TL_OK;
}

tl_status tl_records_import(tl_records *store, const char *path, tl_copy_counts *out, tl_diag *diag)
{
    mover m;
    int64_t before, number = 0, refused_line = 0;
    tl_diag refusal = { 0 };
    TL_TRY(start(store, &m, out, &before, diag));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t capacity = 0;
    bool go_on = true;
    while (go_on && getline(&line, &capacity, file) > 0) {
        number++;
        line[strcspn(line, "\n")] = '\0';
        int64_t refused = out->refused;
        if (line[0] != '\0')
            go_on = import_line(&m, line, &refusal);
        if (refused == 0 && out->refused == 1)
            refused_line = number;
    }
    tl_status status = ferror(file) ? tl_fail(diag, TL_IO, "%s: cannot be read", path) : TL_OK;
    free(line);
    fclose(file);
    status = finish(&m, status, before);
    if (status == TL_OK && out->refused > 0 && out->read == 0)
        status = tl_fail(diag, TL_BAD_TEXT, "%s:%lld: no record: %s", path, (long long)refused_line,
                         refusal.text);
    return status;
}
