/* driver/report/report.h: what a database of records says, as one page of HTML.
 *
 *     tl_report_collect   records -> tasks, sessions, failures, choices      (report_data.c)
 *     tl_report_page      those   -> a page with nothing loaded from elsewhere and no scripts (report_page.c)
 *                             its charts are inline SVG (report_chart.c)
 *
 * Records come from anywhere: no text of theirs reaches the page unescaped. */
#ifndef TL_DRIVER_REPORT_REPORT_H
#define TL_DRIVER_REPORT_REPORT_H
#include "tuner/records/store.h"

/* One trial as the curves need it. */
typedef struct {
    int64_t created_us, sequence;
    int session;     /* index */
    int policy;      /* index in tl_report.policies; -1: not known */
    double seconds;  /* of tuning until then, all sessions one after another */
    double score_ns; /* 0: it has none */
    /* The first that is right in its session, which its gain is measured against: how fast the machine was differs from one
     * session to the next. */
    const tl_record *first;
} tl_report_trial;

/* Trials of one kernel: same workload, target, numerics, threads and mode. */
typedef struct {
    const char *workload, *target, *numerics, *family;
    const char *name; /* of a kernel that has it; its family when no workload is stored */
    int threads;
    tl_cold cold;
    int64_t flops, bytes; /* 0: not known */
    int count, capacity, failed;
    tl_report_trial *trials; /* in the order in which they were made */
    bool has_best;
    /* Of the session that gained most: the first that is right, which is the default schedule, and the best. */
    tl_record first, best;
    double gain; /* first over best; 1 without */
} tl_report_task;

typedef struct {
    const char *name;
    int index;  /* in the order in which they were met: tl_report_trial.session */
    int policy; /* as in tl_report_trial: the session's name says it (tuner/run/environment.h) */
    int64_t first_us, last_us, trials;
    double offset_s; /* of tuning in the sessions before it */
} tl_report_session;

typedef struct {
    tl_record_status status;
    const char *text; /* its numbers are N */
    int64_t count;
} tl_report_reason;

typedef struct {
    tl_arena *arena;
    const char *path;
    int revision; /* of the code generator: the newest in the file; others' times do not compare */
    int64_t trials, stale; /* stale: of other revisions, left out */
    int64_t by_status[TL_RECORD_STATUS_COUNT];
    double build_ns, run_ns, seconds; /* seconds: of all sessions */
    int task_count, session_count, reason_count, choice_count;
    tl_report_task *tasks; /* those that take longest untuned first */
    tl_report_session *sessions;
    int policy_count;
    const char **policies; /* names of those that searched, in the order in which they were met */
    tl_report_reason *reasons;    /* the most frequent first */
    tl_choice *choices;           /* the newest of each model, target, numerics and threads */
    const char *environment;      /* of the newest record: JSON; "" */
    double peak_gflops, copy_gbs; /* the best that any environment tells; 0: not known */
    int64_t first_us, last_us;
    double mean_gain; /* geometric, over tasks */
} tl_report;

/* `query` restricts the records (its revision, order and limit are not looked at). Lists live in `arena`. */
tl_status tl_report_collect(tl_arena *arena, tl_records *store, const tl_query *query,
                            tl_report *out, tl_diag *diag);
void tl_report_page(const tl_report *report, tl_text *out);

#endif
