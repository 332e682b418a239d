/* tuner/records/store_private.h: what the parts of the store share. */
#ifndef TL_TUNER_RECORDS_STORE_PRIVATE_H
#define TL_TUNER_RECORDS_STORE_PRIVATE_H
#include <stddef.h>
#include "tuner/records/record_private.h"
#include "tuner/records/store.h"

/* Of the schema, in PRAGMA user_version (1: without choices, 2: caches all cold or all warm, 3: without labels and annexes; read
 * as they are, raised when opened for writing); and the mark in the file's header ("tilt"). */
enum { TL_RECORDS_VERSION = 4, TL_RECORDS_MARK = 0x74696c74, TL_RECORDS_PAGE = 4096 };

/* The backend: what tl_records_* of store.h call. */
typedef struct {
    const char *name;
    void (*close)(void *self);
    tl_status (*add)(void *self, const tl_record *record, tl_diag *diag); /* TL_IO: try again */
    tl_status (*add_workload)(void *self, const tl_workload_info *info, tl_diag *diag);
    tl_status (*visit)(void *self, const tl_query *query, tl_record_visitor *visit, void *user,
                       int64_t *broken, tl_diag *diag);
    tl_status (*visit_workloads)(void *self, const char *workload, tl_workload_visitor *visit,
                                 void *user, tl_diag *diag);
    tl_status (*add_choice)(void *self, const tl_choice *choice, tl_diag *diag);
    tl_status (*visit_choices)(void *self, const tl_choice_query *query, tl_choice_visitor *visit,
                               void *user, tl_diag *diag);
    tl_status (*add_annex)(void *self, const tl_annex *annex, tl_diag *diag);
    /* NULL: any kind, any name */
    tl_status (*visit_annexes)(void *self, const char *kind, const char *name,
                               tl_annex_visitor *visit, void *user, tl_diag *diag);
    tl_status (*measure)(void *self, tl_records_stats *out, tl_diag *diag);
    tl_status (*prune)(void *self, const tl_prune *what, int64_t *removed, tl_diag *diag);
    tl_status (*begin)(void *self, tl_diag *diag); /* a transaction around many additions */
    tl_status (*commit)(void *self, tl_diag *diag);
} tl_records_backend;

/* tuner/records/store_sqlite.c. A status of TL_BAD_TEXT from any function of the backend: the file is damaged. */
tl_status tl_sqlite_open(const char *path, int flags, void **self, tl_diag *diag);
extern const tl_records_backend tl_sqlite_backend;
/* Patience with locks from now on. */
void tl_sqlite_set_patience(void *self, int milliseconds);
/* tl_records_visit, for which a store that cannot be read is a miss. */
void tl_records_visit_readable(tl_records *store, const tl_query *query, tl_record_visitor *visit,
                               void *user);
/* Whether the file at the path is still the one that was opened. */
bool tl_sqlite_is_current(const void *self);

/* tuner/records/store_salvage.c: every sealed row in the bytes of a database and of its journal (may be NULL), damaged or not.
 * `add` gets each row once or more; rows live until it returns. */
typedef void tl_salvage_sink(void *user, const tl_row_type *type, const void *row);
void tl_salvage(const void *file, size_t size, const void *journal, size_t journal_size,
                tl_salvage_sink *add, void *user);

/* tuner/records/store_repair.c: whether the file begins as a database does (an empty one does, too). */
bool tl_store_looks_like_one(const char *path);

/* A record that could not be written yet. */
typedef struct tl_pending {
    struct tl_pending *next;
    tl_arena *arena;
    tl_record record;
} tl_pending;

struct tl_records {
    const tl_records_backend *backend;
    void *self;
    char *path;
    int flags;
    tl_records *lower;
    tl_pending *first, **last;
    int64_t pending_count;
    int64_t retry_ns; /* not before this on the clock */
    char reason[512], repaired[1024];
};

#endif
