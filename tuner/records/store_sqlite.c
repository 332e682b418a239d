/* tuner/records/store_sqlite.c: the records in a SQLite database.
 *
 * Write-ahead log, synchronous NORMAL: every added record is a transaction of its own, in the log when the call
 * returns, so that the death of the process loses nothing (the death of the power may lose the last second, never the
 * file). Columns come from tuner/records/record_fields.def. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "tuner/records/store_private.h"

enum { PATIENCE_MS = 2000, MAX_BINDINGS = 24 };

/* Trials with these in common have scores that can be compared. */
#define COMPARABLE "session, workload, target, numerics, threads, cold, revision"

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *add_trial, *add_workload, *add_choice, *add_annex;
    char *path;
    bool read_only, has_choices, has_labels, has_annexes;
    dev_t device;
    ino_t inode;
} sqlite_store;

/* What SQLite said, as a status: TL_BAD_TEXT the file is damaged, TL_IO it may work later. */
static tl_status failed(const sqlite_store *s, int code, tl_diag *diag)
{
    tl_status status = TL_IO;
    const char *advice = "";
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        status = TL_BAD_TEXT;
        advice = " (tilth db repair may save what is left)";
        break;
    case SQLITE_NOMEM:
        status = TL_NO_MEMORY;
        break;
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS)
            status = TL_BAD_TEXT;
        break;
    default:
        break;
    }
    return tl_fail(diag, status, "database %s: %s%s", s->path,
                   s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(code), advice);
}

static tl_status run(sqlite_store *s, const char *sql, tl_diag *diag)
{
    int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TL_OK : failed(s, sqlite3_extended_errcode(s->db), diag);
}

static tl_status get_number(sqlite_store *s, const char *sql, int64_t *out, tl_diag *diag)
{
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &query, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(query);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(query, 0) : 0;
    tl_status status =
        code == SQLITE_ROW ? TL_OK : failed(s, sqlite3_extended_errcode(s->db), diag);
    sqlite3_finalize(query);
    return status;
}

static const char *column_type(tl_field_type type)
{
    switch (type) {
    case TL_FIELD_TEXT:
    case TL_FIELD_STATUS:
    case TL_FIELD_TIMES:
        return "TEXT";
    case TL_FIELD_REAL:
        return "REAL";
    case TL_FIELD_BOOL:
    case TL_FIELD_COLD:
    case TL_FIELD_INT:
    case TL_FIELD_LONG:
        return "INTEGER";
    }
    return "";
}

/* What a label is in rows of before there was one, as SQL has it. */
static const char *label_default(const tl_field *field)
{
    return field->type == TL_FIELD_TEXT ? "''" : "0";
}

static void add_table(const tl_row_type *type, tl_text *sql)
{
    tl_text_format(sql,
                   "CREATE TABLE IF NOT EXISTS %s (id INTEGER PRIMARY KEY, uid TEXT NOT NULL "
                   "UNIQUE",
                   type->table);
    for (int i = 0; i < type->count; i++)
        tl_text_format(sql, ", %s %s NOT NULL", type->fields[i].name,
                       column_type(type->fields[i].type));
    tl_text_add(sql, ");");
}

static tl_status count_columns(sqlite_store *s, const char *table, const char *column,
                               int64_t *count, tl_diag *diag)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'",
             table, column);
    return get_number(s, sql, count, diag);
}

/* Columns of labels that the table lacks, inside of the transaction. */
static tl_status add_labels(sqlite_store *s, tl_text *sql, tl_diag *diag)
{
    int64_t columns, has;
    TL_TRY(count_columns(s, tl_trial_row.table, "uid", &columns, diag));
    for (int i = 0; i < tl_trial_row.count && columns > 0; i++) {
        const tl_field *field = &tl_trial_row.fields[i];
        if (!field->is_label)
            continue;
        TL_TRY(count_columns(s, tl_trial_row.table, field->name, &has, diag));
        if (has == 0)
            tl_text_format(sql, "ALTER TABLE %s ADD COLUMN %s %s NOT NULL DEFAULT %s;",
                           tl_trial_row.table, field->name, column_type(field->type),
                           label_default(field));
    }
    return TL_OK;
}

static tl_status make_schema(sqlite_store *s, tl_diag *diag)
{
    tl_text sql = { 0 };
    TL_TRY(run(s, "BEGIN IMMEDIATE", diag));
    tl_status added = add_labels(s, &sql, diag);
    if (added != TL_OK) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        tl_text_free(&sql);
        return added;
    }
    add_table(&tl_trial_row, &sql);
    add_table(&tl_workload_row, &sql);
    add_table(&tl_choice_row, &sql);
    add_table(&tl_annex_row, &sql);
    tl_text_format(
        &sql,
        "CREATE INDEX IF NOT EXISTS trials_best ON trials (workload, target, status, score_ns);"
        "CREATE INDEX IF NOT EXISTS trials_class ON trials (class_key, target);"
        "CREATE UNIQUE INDEX IF NOT EXISTS workloads_key ON workloads (workload);"
        "CREATE INDEX IF NOT EXISTS choices_model ON choices (model, target);"
        "CREATE INDEX IF NOT EXISTS annexes_name ON annexes (kind, name);"
        "CREATE TRIGGER IF NOT EXISTS choices_stay BEFORE UPDATE ON choices BEGIN "
        "SELECT RAISE(ABORT, 'choices are never changed'); END;"
        "CREATE TRIGGER IF NOT EXISTS trials_stay BEFORE UPDATE ON trials BEGIN "
        "SELECT RAISE(ABORT, 'records are never changed'); END;"
        "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
        TL_RECORDS_MARK, TL_RECORDS_VERSION);
    tl_status status = run(s, tl_text_get(&sql), diag);
    if (status != TL_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    tl_text_free(&sql);
    return status;
}

static tl_status prepare_addition(sqlite_store *s, const tl_row_type *type, sqlite3_stmt **out,
                                  tl_diag *diag)
{
    tl_text sql = { 0 };
    tl_text_format(&sql, "INSERT OR IGNORE INTO %s (uid", type->table);
    for (int i = 0; i < type->count; i++)
        tl_text_format(&sql, ", %s", type->fields[i].name);
    tl_text_add(&sql, ") VALUES (?");
    for (int i = 0; i < type->count; i++)
        tl_text_add(&sql, ", ?");
    tl_text_add(&sql, ")");
    int code =
        sqlite3_prepare_v3(s->db, tl_text_get(&sql), -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    tl_text_free(&sql);
    return code == SQLITE_OK ? TL_OK : failed(s, sqlite3_extended_errcode(s->db), diag);
}

/* Reads the whole file once: whether it is sound. */
static tl_status look_through(sqlite_store *s, tl_diag *diag)
{
    sqlite3_stmt *check = NULL;
    int code = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &check, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(check);
    const char *verdict = code == SQLITE_ROW ? (const char *)sqlite3_column_text(check, 0) : NULL;
    tl_status status = TL_OK;
    if (verdict == NULL)
        status = failed(s, sqlite3_extended_errcode(s->db), diag);
    else if (strcmp(verdict, "ok") != 0)
        status = tl_fail(diag, TL_BAD_TEXT, "database %s is damaged: %s", s->path, verdict);
    sqlite3_finalize(check);
    return status;
}

/* Ours, of a version we know, and sound; a new file becomes ours. */
static tl_status check_file(sqlite_store *s, int flags, tl_diag *diag)
{
    int64_t mark, version, tables;
    TL_TRY(get_number(s, "SELECT count(*) FROM sqlite_schema", &tables, diag));
    TL_TRY(get_number(s, "PRAGMA application_id", &mark, diag));
    TL_TRY(get_number(s, "PRAGMA user_version", &version, diag));
    if (tables == 0 && mark == 0 && !s->read_only) {
        if (!(flags & TL_RECORDS_CREATE))
            return tl_fail(diag, TL_BAD_TEXT, "database %s: it is empty", s->path);
        s->has_choices = s->has_labels = s->has_annexes = true;
        return make_schema(s, diag);
    }
    if (mark != TL_RECORDS_MARK)
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s: holds no records of tilth", s->path);
    if (version < 1 || version > TL_RECORDS_VERSION)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "database %s: its format is version %lld, this tilth knows %d", s->path,
                       (long long)version, TL_RECORDS_VERSION);
    if (!(flags & TL_RECORDS_TRUST))
        TL_TRY(look_through(s, diag));
    s->has_choices = version > 1;
    s->has_labels = s->has_annexes = version > 3;
    if (version == TL_RECORDS_VERSION || s->read_only)
        return TL_OK;
    s->has_choices = s->has_labels = s->has_annexes = true;
    return make_schema(s, diag);
}

static void close_store(void *self)
{
    sqlite_store *s = self;
    sqlite3_finalize(s->add_trial);
    sqlite3_finalize(s->add_workload);
    sqlite3_finalize(s->add_choice);
    sqlite3_finalize(s->add_annex);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

static tl_status set_up(sqlite_store *s, int flags, bool is_draft, tl_diag *diag)
{
    struct stat info;
    sqlite3_busy_timeout(s->db, PATIENCE_MS);
    if (!s->read_only) {
        char sql[160];
        snprintf(sql, sizeof sql,
                 "PRAGMA synchronous = %s; PRAGMA page_size = %d; PRAGMA journal_mode = WAL;"
                 "PRAGMA wal_autocheckpoint = 1000;",
                 is_draft ? "OFF" : "NORMAL", TL_RECORDS_PAGE);
        TL_TRY(run(s, sql, diag));
    }
    TL_TRY(check_file(s, flags, diag));
    if (stat(s->path, &info) != 0)
        return tl_fail(diag, TL_IO, "database %s: it has vanished", s->path);
    s->device = info.st_dev;
    s->inode = info.st_ino;
    if (s->read_only)
        return TL_OK;
    TL_TRY(prepare_addition(s, &tl_trial_row, &s->add_trial, diag));
    TL_TRY(prepare_addition(s, &tl_choice_row, &s->add_choice, diag));
    TL_TRY(prepare_addition(s, &tl_annex_row, &s->add_annex, diag));
    return prepare_addition(s, &tl_workload_row, &s->add_workload, diag);
}

/* "file:PATH?mode=..." with what a URI gives a meaning escaped. A folder that cannot be written gets no journal: then
 * the file is taken as it lies there. */
static void make_uri(const char *path, int flags, bool is_new, tl_text *out)
{
    tl_text_add(out, "file:");
    for (const char *p = path; *p; p++) {
        if (strchr("?#%", *p) != NULL)
            tl_text_format(out, "%%%02x", (unsigned)*p);
        else
            tl_text_add_bytes(out, p, 1);
    }
    tl_text journal = { 0 };
    tl_text_format(&journal, "%s-wal", path);
    bool is_alone = access(tl_text_get(&journal), F_OK) != 0;
    tl_text_free(&journal);
    if (!(flags & TL_RECORDS_READ_ONLY))
        tl_text_add(out, is_new ? "?mode=rwc" : "?mode=rw");
    else
        tl_text_add(out, is_alone && access(path, W_OK) != 0 ? "?immutable=1" : "?mode=ro");
}

/* Opens the file, which is there, or `is_new` and made. */
static tl_status open_file(const char *path, int flags, bool is_new, sqlite_store **out,
                           tl_diag *diag)
{
    sqlite_store *s = calloc(1, sizeof *s);
    if (s == NULL || (s->path = strdup(path)) == NULL) {
        free(s);
        return tl_fail(diag, TL_NO_MEMORY, "database %s: out of memory", path);
    }
    s->read_only = (flags & TL_RECORDS_READ_ONLY) != 0;
    tl_text uri = { 0 };
    make_uri(path, flags, is_new, &uri);
    int access_flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    access_flags |= s->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (is_new)
        access_flags |= SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(tl_text_get(&uri), &s->db, access_flags, NULL);
    tl_text_free(&uri);
    tl_status status = code == SQLITE_OK ? set_up(s, flags, is_new, diag) : failed(s, code, diag);
    if (status != TL_OK) {
        close_store(s);
        return status;
    }
    *out = s;
    return TL_OK;
}

/* A database without records, finished under another name and given its own in one step: who opens it at the same time
 * finds all of it or nothing. That somebody else was first is as good. */
static tl_status make_file(const char *path, int flags, tl_diag *diag)
{
    tl_text draft = { 0 };
    sqlite_store *s;
    tl_text_format(&draft, "%s.new-%ld", path, (long)getpid());
    if (draft.failed)
        return tl_fail(diag, TL_NO_MEMORY, "database %s: out of memory", path);
    const char *name = tl_text_get(&draft);
    unlink(name); /* of a process of the same number that was killed here */
    tl_status status = open_file(name, flags, true, &s, diag);
    if (status == TL_OK) {
        close_store(s);
        int file = open(name, O_RDONLY | O_CLOEXEC); /* on the disk before it has its name */
        if (file < 0 || fsync(file) != 0)
            status = tl_fail(diag, TL_IO, "database %s: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
    }
    if (status == TL_OK) {
        if (renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE) != 0 && errno != EEXIST &&
            link(name, path) != 0 && errno != EEXIST)
            status = tl_fail(diag, TL_IO, "database %s: %s", path, strerror(errno));
    }
    unlink(name);
    tl_text_free(&draft);
    return status;
}

tl_status tl_sqlite_open(const char *path, int flags, void **self, tl_diag *diag)
{
    struct stat info;
    sqlite_store *s;
    bool may_create = (flags & TL_RECORDS_CREATE) && !(flags & TL_RECORDS_READ_ONLY);
    if (stat(path, &info) != 0) {
        if (!may_create)
            return tl_fail(diag, TL_BAD_ARGUMENT, "database %s: there is no such file", path);
        TL_TRY(make_file(path, flags, diag));
    } else if (!S_ISREG(info.st_mode)) {
        return tl_fail(diag, TL_BAD_ARGUMENT, "database %s: not a regular file", path);
    }
    TL_TRY(open_file(path, flags, false, &s, diag));
    *self = s;
    return TL_OK;
}

void tl_sqlite_set_patience(void *self, int milliseconds)
{
    sqlite3_busy_timeout(((sqlite_store *)self)->db, milliseconds);
}

bool tl_sqlite_is_current(const void *self)
{
    const sqlite_store *s = self;
    struct stat info;
    return stat(s->path, &info) == 0 && info.st_ino == s->inode && info.st_dev == s->device;
}

static tl_status add_row(sqlite_store *s, sqlite3_stmt *statement, const tl_row_type *type,
                         const void *row, tl_diag *diag)
{
    tl_text times = { 0 };
    sqlite3_bind_text(statement, 1, row, -1, SQLITE_STATIC);
    for (int i = 0; i < type->count; i++) {
        tl_field_value value;
        tl_field_get(&type->fields[i], row, &times, &value);
        switch (type->fields[i].type) {
        case TL_FIELD_TEXT:
        case TL_FIELD_STATUS:
        case TL_FIELD_TIMES:
            sqlite3_bind_text(statement, i + 2, value.text, -1, SQLITE_TRANSIENT);
            break;
        case TL_FIELD_REAL:
            sqlite3_bind_double(statement, i + 2, value.real);
            break;
        case TL_FIELD_BOOL:
        case TL_FIELD_COLD:
        case TL_FIELD_INT:
        case TL_FIELD_LONG:
            sqlite3_bind_int64(statement, i + 2, value.integer);
            break;
        }
    }
    tl_text_free(&times);
    int code = sqlite3_step(statement);
    tl_status status =
        code == SQLITE_DONE ? TL_OK : failed(s, sqlite3_extended_errcode(s->db), diag);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static tl_status add(void *self, const tl_record *record, tl_diag *diag)
{
    sqlite_store *s = self;
    return add_row(s, s->add_trial, &tl_trial_row, record, diag);
}

static tl_status add_workload(void *self, const tl_workload_info *info, tl_diag *diag)
{
    sqlite_store *s = self;
    return add_row(s, s->add_workload, &tl_workload_row, info, diag);
}

static tl_status add_choice(void *self, const tl_choice *choice, tl_diag *diag)
{
    sqlite_store *s = self;
    return add_row(s, s->add_choice, &tl_choice_row, choice, diag);
}

static tl_status add_annex(void *self, const tl_annex *annex, tl_diag *diag)
{
    sqlite_store *s = self;
    return add_row(s, s->add_annex, &tl_annex_row, annex, diag);
}

/* A row as the struct; false when it is not what its uid says. */
static bool read_row(sqlite3_stmt *query, const tl_row_type *type, tl_arena *arena, void *out)
{
    memset(out, 0, type->size);
    for (int i = 0; i < type->count; i++) {
        tl_field_value value = { .text = (const char *)sqlite3_column_text(query, i + 1) };
        if (type->fields[i].type == TL_FIELD_REAL)
            value.real = sqlite3_column_double(query, i + 1);
        else
            value.integer = sqlite3_column_int64(query, i + 1);
        if (value.text == NULL || !tl_field_set(&type->fields[i], out, &value, arena))
            return false;
    }
    const char *uid = (const char *)sqlite3_column_text(query, 0);
    tl_row_digest(type, out, out);
    return uid != NULL && strcmp(uid, out) == 0;
}

/* A condition with its value; texts are bound, never written into the SQL. */
typedef struct {
    tl_text sql;
    int count;
    const char *texts[MAX_BINDINGS];
} conditions;

static void add_equal(conditions *c, const char *column, const char *text)
{
    if (text == NULL)
        return;
    tl_text_format(&c->sql, " AND %s = ?", column);
    c->texts[c->count++] = text;
}

static void add_conditions(conditions *c, const tl_query *query)
{
    add_equal(c, "workload", query->workload);
    add_equal(c, "class_key", query->class_key);
    add_equal(c, "family", query->family);
    add_equal(c, "target", query->target);
    add_equal(c, "numerics", query->numerics);
    add_equal(c, "lowering", query->lowering);
    add_equal(c, "session", query->session);
    if (query->uid != NULL && strlen(query->uid) == 32) {
        add_equal(c, "uid", query->uid);
    } else if (query->uid != NULL) {
        tl_text_format(&c->sql, " AND substr(uid, 1, %zu) = ?", strlen(query->uid));
        c->texts[c->count++] = query->uid;
    }
    if (query->only_ok)
        tl_text_add(&c->sql, " AND status = 'ok' AND hopeless = 0 AND time_ns > 0");
    if (query->only_failed)
        tl_text_add(&c->sql, " AND status <> 'ok'");
    if (!query->any_revision && query->revision != 0)
        tl_text_format(&c->sql, " AND revision = %d", query->revision);
    if (query->threads != 0)
        tl_text_format(&c->sql, " AND threads = %d", query->threads);
    if (query->only_cold)
        tl_text_format(&c->sql, " AND cold = %d", query->cold);
}

static void add_order(conditions *c, const tl_query *query)
{
    switch (query->order) {
    case TL_ORDER_STORED:
        tl_text_add(&c->sql, " ORDER BY id");
        break;
    case TL_ORDER_TIME:
        /* as the index has them, so that the first is found without reading the others */
        if (query->only_ok)
            tl_text_add(&c->sql, " AND score_ns > 0 ORDER BY score_ns, id");
        else
            tl_text_add(&c->sql, " ORDER BY score_ns = 0, score_ns, id");
        break;
    case TL_ORDER_NEWEST:
        tl_text_add(&c->sql, " ORDER BY created_us DESC, id DESC");
        break;
    }
    if (query->limit > 0)
        tl_text_format(&c->sql, " LIMIT %lld", (long long)query->limit);
}

static void add_columns(const sqlite_store *s, const tl_row_type *type, tl_text *sql)
{
    tl_text_add(sql, "SELECT uid");
    for (int i = 0; i < type->count; i++) {
        const tl_field *field = &type->fields[i];
        if (field->is_label && !s->has_labels)
            tl_text_format(sql, ", %s AS %s", label_default(field), field->name);
        else
            tl_text_format(sql, ", %s", field->name);
    }
}

static void add_select(const sqlite_store *s, const tl_row_type *type, tl_text *sql)
{
    add_columns(s, type, sql);
    tl_text_format(sql, " FROM %s WHERE 1", type->table);
}

static void add_query(const sqlite_store *s, conditions *c, const tl_query *query)
{
    static const char *const orders[] = {
        [TL_EACH_FIRST] = "sequence", [TL_EACH_BEST] = "score_ns"
    };
    if (query->each == TL_EACH_TRIAL) {
        add_select(s, &tl_trial_row, &c->sql);
        add_conditions(c, query);
    } else {
        add_columns(s, &tl_trial_row, &c->sql);
        tl_text_format(&c->sql,
                       " FROM (SELECT *, row_number() OVER (PARTITION BY " COMPARABLE
                       " ORDER BY %s, id) AS place FROM trials "
                       "WHERE score_ns > 0",
                       orders[query->each]);
        add_conditions(c, query);
        tl_text_add(&c->sql, ") WHERE place = 1");
    }
    add_order(c, query);
}

/* Calls with each row; `visit` is told apart by the type. */
typedef bool row_visitor(void *user, const void *row);

static tl_status visit_rows(sqlite_store *s, const tl_row_type *type, const conditions *c,
                            row_visitor *visit, void *user, int64_t *broken, tl_diag *diag)
{
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(s->db, tl_text_get(&c->sql), -1, &query, NULL);
    for (int i = 0; code == SQLITE_OK && i < c->count; i++)
        code = sqlite3_bind_text(query, i + 1, c->texts[i], -1, SQLITE_TRANSIENT);
    bool is_wanted = true;
    tl_any_row row;
    while (code == SQLITE_OK && is_wanted) {
        code = sqlite3_step(query);
        if (code != SQLITE_ROW)
            break;
        code = SQLITE_OK;
        tl_arena *arena = tl_arena_create(0);
        if (arena == NULL || TL_ARENA_GUARD(arena)) {
            tl_arena_destroy(arena);
            code = SQLITE_NOMEM;
            break;
        }
        if (read_row(query, type, arena, &row))
            is_wanted = visit(user, &row);
        else if (broken != NULL)
            ++*broken;
        tl_arena_destroy(arena);
    }
    tl_status status = code == SQLITE_OK || code == SQLITE_DONE
                           ? TL_OK
                           : failed(s, sqlite3_extended_errcode(s->db), diag);
    sqlite3_finalize(query);
    return status;
}

typedef struct {
    tl_record_visitor *record;
    tl_workload_visitor *workload;
    tl_choice_visitor *choice;
    tl_annex_visitor *annex;
    void *user;
} typed_visitor;

static bool visit_record(void *user, const void *row)
{
    const typed_visitor *v = user;
    return v->record(v->user, row);
}

static bool visit_workload(void *user, const void *row)
{
    const typed_visitor *v = user;
    return v->workload(v->user, row);
}

static bool visit_choice(void *user, const void *row)
{
    const typed_visitor *v = user;
    return v->choice(v->user, row);
}

static bool visit_annex(void *user, const void *row)
{
    const typed_visitor *v = user;
    return v->annex(v->user, row);
}

static tl_status visit(void *self, const tl_query *query, tl_record_visitor *visitor, void *user,
                       int64_t *broken, tl_diag *diag)
{
    conditions c = { 0 };
    typed_visitor v = { .record = visitor, .user = user };
    add_query(self, &c, query);
    tl_status status = c.sql.failed
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : visit_rows(self, &tl_trial_row, &c, visit_record, &v, broken, diag);
    tl_text_free(&c.sql);
    return status;
}

static tl_status visit_workloads(void *self, const char *workload, tl_workload_visitor *visitor,
                                 void *user, tl_diag *diag)
{
    conditions c = { 0 };
    typed_visitor v = { .workload = visitor, .user = user };
    add_select(self, &tl_workload_row, &c.sql);
    add_equal(&c, "workload", workload);
    tl_text_add(&c.sql, " ORDER BY id");
    tl_status status = c.sql.failed
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : visit_rows(self, &tl_workload_row, &c, visit_workload, &v, NULL, diag);
    tl_text_free(&c.sql);
    return status;
}

static tl_status visit_choices(void *self, const tl_choice_query *query, tl_choice_visitor *visitor,
                               void *user, tl_diag *diag)
{
    sqlite_store *s = self;
    conditions c = { 0 };
    typed_visitor v = { .choice = visitor, .user = user };
    if (!s->has_choices)
        return TL_OK;
    add_select(s, &tl_choice_row, &c.sql);
    add_equal(&c, "model", query->model);
    add_equal(&c, "target", query->target);
    add_equal(&c, "numerics", query->numerics);
    if (query->threads != 0)
        tl_text_format(&c.sql, " AND threads = %d", query->threads);
    if (query->revision != 0)
        tl_text_format(&c.sql, " AND revision = %d", query->revision);
    tl_text_add(&c.sql, " ORDER BY created_us DESC, id DESC");
    tl_status status = c.sql.failed
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : visit_rows(self, &tl_choice_row, &c, visit_choice, &v, NULL, diag);
    tl_text_free(&c.sql);
    return status;
}

static tl_status visit_annexes(void *self, const char *kind, const char *name,
                               tl_annex_visitor *visitor, void *user, tl_diag *diag)
{
    sqlite_store *s = self;
    conditions c = { 0 };
    typed_visitor v = { .annex = visitor, .user = user };
    if (!s->has_annexes)
        return TL_OK;
    add_select(s, &tl_annex_row, &c.sql);
    add_equal(&c, "kind", kind);
    add_equal(&c, "name", name);
    tl_text_add(&c.sql, " ORDER BY id");
    tl_status status = c.sql.failed
                           ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                           : visit_rows(self, &tl_annex_row, &c, visit_annex, &v, NULL, diag);
    tl_text_free(&c.sql);
    return status;
}

static tl_status measure(void *self, tl_records_stats *out, tl_diag *diag)
{
    sqlite_store *s = self;
    sqlite3_stmt *query = NULL;
    char sql[400];
    *out = (tl_records_stats){ 0 };
    TL_TRY(get_number(s, "SELECT count(*) FROM workloads", &out->workloads, diag));
    if (s->has_choices)
        TL_TRY(get_number(s, "SELECT count(*) FROM choices", &out->choices, diag));
    TL_TRY(get_number(s, "SELECT count(DISTINCT session) FROM trials", &out->sessions, diag));
    TL_TRY(get_number(s, "SELECT count(DISTINCT target) FROM trials", &out->targets, diag));
    snprintf(sql, sizeof sql,
             "SELECT status, count(*), sum(status = 'ok' AND revision <> %d), min(created_us), "
             "max(created_us), sum(build_ns), sum(run_ns) FROM trials GROUP BY status",
             TL_CODEGEN_REVISION);
    int code = sqlite3_prepare_v2(s->db, sql, -1, &query, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(query)) == SQLITE_ROW) {
        code = SQLITE_OK;
        const char *word = (const char *)sqlite3_column_text(query, 0);
        tl_record_status status;
        int64_t count = sqlite3_column_int64(query, 1), first = sqlite3_column_int64(query, 3);
        out->records += count;
        if (word != NULL && tl_record_status_from_text(word, &status))
            out->by_status[status] = count;
        out->stale += sqlite3_column_int64(query, 2);
        out->first_us = out->first_us == 0 || first < out->first_us ? first : out->first_us;
        if (sqlite3_column_int64(query, 4) > out->last_us)
            out->last_us = sqlite3_column_int64(query, 4);
        out->build_ns += sqlite3_column_double(query, 5);
        out->run_ns += sqlite3_column_double(query, 6);
    }
    tl_status status = code == SQLITE_OK || code == SQLITE_DONE
                           ? TL_OK
                           : failed(s, sqlite3_extended_errcode(s->db), diag);
    sqlite3_finalize(query);
    struct stat info;
    tl_text journal = { 0 };
    tl_text_format(&journal, "%s-wal", s->path);
    if (stat(s->path, &info) == 0)
        out->bytes = info.st_size;
    if (stat(tl_text_get(&journal), &info) == 0)
        out->bytes += info.st_size;
    tl_text_free(&journal);
    return status;
}

static tl_status begin(void *self, tl_diag *diag)
{
    return run(self, "BEGIN IMMEDIATE", diag);
}

static tl_status commit(void *self, tl_diag *diag)
{
    tl_status status = run(self, "COMMIT", diag);
    if (status != TL_OK)
        sqlite3_exec(((sqlite_store *)self)->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static void add_prune(conditions *c, const tl_prune *what)
{
    add_equal(c, "workload", what->workload);
    add_equal(c, "target", what->target);
    if (what->before_us > 0)
        tl_text_format(&c->sql, " AND created_us < %lld", (long long)what->before_us);
    if (what->failed && what->stale)
        tl_text_format(&c->sql, " AND (status <> 'ok' OR revision <> %d)", TL_CODEGEN_REVISION);
    else if (what->failed)
        tl_text_add(&c->sql, " AND status <> 'ok'");
    else if (what->stale)
        tl_text_format(&c->sql, " AND revision <> %d", TL_CODEGEN_REVISION);
    if (what->keep_best > 0)
        tl_text_format(
            &c->sql,
            " AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY workload, "
            "target, numerics, cold ORDER BY score_ns, id) AS place, row_number() OVER (PARTITION "
            "BY " COMPARABLE
            " ORDER BY sequence, id) AS first, row_number() OVER (PARTITION BY " COMPARABLE
            " ORDER BY score_ns, id) AS best FROM trials WHERE status = 'ok' AND hopeless = 0 AND "
            "time_ns > 0) WHERE place <= %lld OR first = 1 OR best = 1)",
            (long long)what->keep_best);
}

static tl_status prune(void *self, const tl_prune *what, int64_t *removed, tl_diag *diag)
{
    sqlite_store *s = self;
    conditions c = { 0 };
    sqlite3_stmt *statement = NULL;
    tl_text_add(&c.sql,
                what->dry ? "SELECT count(*) FROM trials WHERE 1" : "DELETE FROM trials WHERE 1");
    add_prune(&c, what);
    int code = sqlite3_prepare_v2(s->db, tl_text_get(&c.sql), -1, &statement, NULL);
    for (int i = 0; code == SQLITE_OK && i < c.count; i++)
        code = sqlite3_bind_text(statement, i + 1, c.texts[i], -1, SQLITE_TRANSIENT);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    *removed = 0;
    if (code == SQLITE_ROW)
        *removed = sqlite3_column_int64(statement, 0);
    else if (code == SQLITE_DONE)
        *removed = sqlite3_changes(s->db);
    tl_status status = code == SQLITE_ROW || code == SQLITE_DONE
                           ? TL_OK
                           : failed(s, sqlite3_extended_errcode(s->db), diag);
    sqlite3_finalize(statement);
    tl_text_free(&c.sql);
    if (status == TL_OK && !what->dry && *removed > 0)
        status = run(s, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE);", diag);
    return status;
}

const tl_records_backend tl_sqlite_backend = {
    .name = "sqlite",
    .close = close_store,
    .add = add,
    .add_workload = add_workload,
    .visit = visit,
    .visit_workloads = visit_workloads,
    .add_choice = add_choice,
    .visit_choices = visit_choices,
    .add_annex = add_annex,
    .visit_annexes = visit_annexes,
    .measure = measure,
    .prune = prune,
    .begin = begin,
    .commit = commit,
};
