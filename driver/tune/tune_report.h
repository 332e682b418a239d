/* driver/tune/tune_report.h: what a run of the tuner says: while it runs, on stderr; at its end, on stdout. */
#ifndef TL_DRIVER_TUNE_TUNE_REPORT_H
#define TL_DRIVER_TUNE_TUNE_REPORT_H
#include "tuner/model/tune_forms.h"
#include "tuner/model/verdict.h"

typedef struct {
    const tl_tune_list *list;
    const tl_measurer *measurer;
    const char *verb; /* that it is of: "tune", "transfer" */
    const char *policy;
    bool json;
    const char *stage;  /* what is tuned, before the progress line; "": the kernels of the model */
    double next_line_s; /* when the next plain line is due */
} tl_tune_report;

/* A tl_tune_listener; `user` is the report. A line that is redrawn on a terminal; otherwise a plain one every five
 * seconds; with -v also one for every gain and for every task that is retired. */
void tl_tune_report_event(void *user, const tl_tuning *tuning, const tl_tune_event *event);
/* The table of tasks and the sums. */
void tl_tune_report_print(const tl_tune_report *report, const tl_tuning *tuning);

/* What became of the other forms of the model at `path`: how many, those whose kernels were tuned (-v: all that were
 * measured) with the time of what they take out of the model and of what they bring, and the trials that it took. */
void tl_tune_report_forms(const tl_tune_report *report, const char *path,
                          const tl_tune_forms *forms, int64_t trials);
/* How the tuned model at `path` did beside the untuned one, and what is kept. `untimed`: outputs were compared, and nothing
 * else. */
void tl_tune_report_verdict(const tl_model_verdict *verdict, const char *path, bool untimed,
                            bool json);

#endif
