/* driver/report/db_list.h: what `tilth db` shows of records. */
#ifndef TL_DRIVER_REPORT_DB_LIST_H
#define TL_DRIVER_REPORT_DB_LIST_H
#include <stdbool.h>
#include "tuner/records/store.h"

/* A line a workload and target: trials, failures, best time. */
tl_status tl_db_list(tl_records *store, const tl_query *query, bool json, tl_diag *diag);
/* The fastest records: `query->limit` of them (all workloads: the fastest of each when `each`). */
tl_status tl_db_top(tl_records *store, const tl_query *query, bool each, bool json, tl_diag *diag);
/* Everything about the records whose uid, or whose workload, begins so. TL_BAD_ARGUMENT: there is none. */
tl_status tl_db_show(tl_records *store, const char *name, bool json, tl_diag *diag);
/* A line a choice: what was kept for which model. */
tl_status tl_db_choices(tl_records *store, bool json, tl_diag *diag);

#endif
