/* tuner/records/store.h: the records: everything that was ever measured here.
 *
 * A store keeps records and workloads, append-only. One backend is SQLite (tuner/records/store_sqlite.c; schema in
 * tuner/README.md); tl_records_backend (store_private.h) is where a second one (a server shared by a team) goes. Under
 * a store may lie another, read-only: the system's. Queries see both, additions go to the upper one.
 *
 * Besides records and workloads it keeps choices: what was found best for a whole model.
 *
 * Promises of the SQLite backend: a record that tl_records_add took (returned TL_OK, pending 0) survives kill -9 at any
 * instant; a record is never there twice; any number of processes read and write at once. Where the file cannot be
 * written (locked beyond patience, disk full), records wait in memory and go in with the next call that can: nothing
 * fails, tl_records_pending tells. A damaged file is noticed when it is opened, or when it is read: with
 * TL_RECORDS_REPAIR what can still be read is moved into a new file and the damaged one is kept beside it. */
#ifndef TL_TUNER_RECORDS_STORE_H
#define TL_TUNER_RECORDS_STORE_H
#include "tuner/records/record.h"

typedef struct tl_records tl_records;

enum {
    TL_RECORDS_CREATE = 1,    /* make the file and its folder when it is not there */
    TL_RECORDS_READ_ONLY = 2, /* additions are refused */
    TL_RECORDS_REPAIR = 4,    /* repair a damaged file instead of refusing it */
    TL_RECORDS_TRUST =
        8, /* do not look through the whole file first: for a few questions, whose answers' digests tell */
};

/* $XDG_DATA_HOME/tilth/records.db, or ~/.local/share/tilth/records.db. False: neither is set. */
bool tl_records_default_path(tl_text *out);
/* The first of $XDG_DATA_DIRS (/usr/local/share:/usr/share) that has tilth/records.db. False: none. */
bool tl_records_system_path(tl_text *out);

/* TL_BAD_ARGUMENT: no name, not there (and not TL_RECORDS_CREATE), or no database of ours; TL_IO: damaged, or cannot be
 * read. */
tl_status tl_records_open(const char *path, int flags, tl_records **out, tl_diag *diag);
/* `path` NULL: the default place, with the system's database under it when there is one. */
tl_status tl_records_open_default(const char *path, int flags, tl_records **out, tl_diag *diag);
/* Puts `lower` (taken over) under `upper`. */
void tl_records_stack(tl_records *upper, tl_records *lower);
/* Writes what is pending, waiting for locks. Records that still cannot be written are lost: *lost says how many (may
 * be NULL). */
void tl_records_close(tl_records *store, int64_t *lost);
const char *tl_records_path(const tl_records *store);
/* What opening had to repair: a sentence; "" when nothing. */
const char *tl_records_repaired(const tl_records *store);

/* Adds a sealed record, or does nothing when it is there. Fails only for arguments (TL_BAD_ARGUMENT: not sealed, read
 * only) and TL_NO_MEMORY; see above for what happens when the file cannot be written. */
tl_status tl_records_add(tl_records *store, const tl_record *record, tl_diag *diag);
tl_status tl_records_add_workload(tl_records *store, const tl_workload_info *info, tl_diag *diag);
/* Tries to write what waits; how many records still do, and why (`reason` "" when none). */
int64_t tl_records_flush(tl_records *store);
int64_t tl_records_pending(const tl_records *store, const char **reason);
/* How long an addition waits for a lock before it is put off: 2000 ms unless told. */
void tl_records_set_patience(tl_records *store, int milliseconds);

/* Adds a choice (sealed here), never queued: TL_IO when the file cannot be written now. */
tl_status tl_records_add_choice(tl_records *store, const tl_choice *choice, tl_diag *diag);
/* The newest choice of a model; copied into `arena`. Texts NULL and numbers 0 do not restrict. False: none, or a store
 * that cannot be read. */
typedef struct {
    const char *model, *target, *numerics;
    int threads, revision;
} tl_choice_query;
bool tl_records_find_choice(tl_records *store, tl_arena *arena, const tl_choice_query *query,
                            tl_choice *out);
/* All that match (`query` NULL: all), the newest first in each file. */
typedef bool tl_choice_visitor(void *user, const tl_choice *choice);
tl_status tl_records_visit_choices(tl_records *store, const tl_choice_query *query,
                                   tl_choice_visitor *visit, void *user, tl_diag *diag);

/* Adds a text that records refer to (sealed here), or does nothing when it is there. */
tl_status tl_records_add_annex(tl_records *store, const tl_annex *annex, tl_diag *diag);
/* Copied into `arena`; false: there is none, or the store cannot be read. */
bool tl_records_find_annex(tl_records *store, tl_arena *arena, const char *kind, const char *name,
                           tl_annex *out);
typedef bool tl_annex_visitor(void *user, const tl_annex *annex);
tl_status tl_records_visit_annexes(tl_records *store, tl_annex_visitor *visit, void *user,
                                   tl_diag *diag);
/* The naive program that a record's trace applies to: of its lowering, or of its workload's first one in databases of before
 * there were annexes. False: it is not there, and the record cannot be rebuilt from this database. */
bool tl_records_program_of(tl_records *store, tl_arena *arena, const tl_record *record,
                           const char **program);

/* Which records. NULL (or 0, or false) does not restrict; zero-initialise. */
typedef enum {
    TL_ORDER_STORED, /* as they were stored */
    TL_ORDER_TIME,   /* by score_ns; what has no time comes last */
    TL_ORDER_NEWEST,
} tl_record_order;
/* Trials of a session for the same workload, target, numerics, threads, caches and revision are comparable. */
typedef enum {
    TL_EACH_TRIAL,
    TL_EACH_FIRST, /* of those only the one that the session began with */
    TL_EACH_BEST,  /* of those only the one with the least score_ns, the first of them */
} tl_record_each;
typedef struct {
    const char *uid; /* or the beginning of one */
    const char *workload, *class_key, *family, *target, *numerics, *lowering, *session;
    bool only_ok;      /* measured, right, not hopeless; ordered by time: those with a score */
    bool only_failed;  /* status is not OK */
    bool any_revision; /* else `revision`, when that is not 0 */
    int revision;      /* of the code generator */
    int threads;       /* 0: any */
    bool only_cold;    /* timed with `cold` caches only */
    tl_cold cold;
    tl_record_each each; /* of those that the query finds otherwise */
    tl_record_order order;
    int64_t limit; /* 0: all */
} tl_query;

/* Calls `visit` with each record (its texts live until it returns) until it returns false. Records whose uid does not
 * match are skipped and counted in the statistics. */
typedef bool tl_record_visitor(void *user, const tl_record *record);
tl_status tl_records_visit(tl_records *store, const tl_query *query, tl_record_visitor *visit,
                           void *user, tl_diag *diag);
/* The first record that the query finds; copied into `arena`. False: none. A store that cannot be read is a miss. */
bool tl_records_first(tl_records *store, tl_arena *arena, const tl_query *query, tl_record *out);
/* The best record among those that are ok, of whatever session; copied into `arena`. `score_ns` (may be NULL): its score, as it
 * would be in the newest session that began with the same program (tuner/records/store_best.c). False: none. A store that cannot
 * be read is a miss. */
bool tl_records_best(tl_records *store, tl_arena *arena, const tl_query *query, tl_record *out,
                     double *score_ns);
bool tl_records_find_workload(tl_records *store, tl_arena *arena, const char *workload,
                              tl_workload_info *out);
typedef bool tl_workload_visitor(void *user, const tl_workload_info *info);
tl_status tl_records_visit_workloads(tl_records *store, tl_workload_visitor *visit, void *user,
                                     tl_diag *diag);
void tl_record_copy(tl_arena *arena, const tl_record *record, tl_record *out);

typedef struct {
    int64_t records, workloads, choices, sessions, targets;
    int64_t by_status[TL_RECORD_STATUS_COUNT];
    int64_t stale;  /* measured with another revision of the code generator */
    int64_t broken; /* rows whose content does not match their uid */
    int64_t bytes;  /* of the file and its journal */
    int64_t first_us, last_us;
    double build_ns, run_ns; /* spent */
} tl_records_stats;
/* Of the upper store. */
tl_status tl_records_measure(tl_records *store, tl_records_stats *out, tl_diag *diag);

/* Removes records: what a person asks for, the only thing that ever does. */
typedef struct {
    /* a workload, target, numerics: the best so many that are ok, and what each session began with and found; 0: all */
    int64_t keep_best;
    int64_t before_us;  /* only records older than this; 0: any */
    bool failed, stale; /* only those that failed, or those of another revision; neither: any */
    const char *workload, *target;
    bool dry; /* count only */
} tl_prune;
tl_status tl_records_prune(tl_records *store, const tl_prune *what, int64_t *removed,
                           tl_diag *diag);

/* Every record of `from` that `into` lacks, the workloads and the choices. */
typedef struct {
    int64_t read, added, refused; /* refused: lines or rows that are no sealed records */
} tl_copy_counts;
tl_status tl_records_merge(tl_records *into, tl_records *from, tl_copy_counts *out, tl_diag *diag);
/* JSON lines: {"record":"workload",...} before the {"record":"trial",...} that need it, then the choices (all of them
 * when the query is for all records, else none). `put` gets each line. */
typedef bool tl_line_sink(void *user, const char *line, size_t size);
tl_status tl_records_export(tl_records *store, const tl_query *query, tl_line_sink *put, void *user,
                            tl_copy_counts *out, tl_diag *diag);
tl_status tl_records_import(tl_records *store, const char *path, tl_copy_counts *out,
                            tl_diag *diag);

/* Reads what can be read of the file at `path` (and its journal), page by page and without SQLite's help, into a new
 * database; the damaged one becomes PATH.damaged-N. TL_OK also when nothing was wrong (then nothing is changed, unless
 * `always`). */
typedef struct {
    bool was_damaged;
    int64_t recovered, workloads, choices;
    char kept_as[512]; /* where the damaged file is; "" when it was sound */
    char problem[256]; /* what was wrong */
} tl_repair;
tl_status tl_records_repair(const char *path, bool always, tl_repair *out, tl_diag *diag);

#endif
