/* tuner/model/tune_forms.h: the kernels that a model would have if it were cut or laid out otherwise (tuner/model/forms.h),
 * as tasks of the tuner, and which of them are worth a trial.
 *
 * A form takes some workloads out of the model and brings others. It pays when what it brings takes less time than what it
 * takes out, each tuned; most forms are far from it, and say so early:
 *
 *     1. an estimate (the analytic cost model, on default schedules) tells which form to look at first;
 *     2. the default schedule of each workload that it brings is measured once (or was, in an earlier session);
 *     3. those that come within reach of what they replace, default schedules on both sides, are tuned like any other. */
#ifndef TL_TUNER_MODEL_TUNE_FORMS_H
#define TL_TUNER_MODEL_TUNE_FORMS_H
#include "tuner/model/tunable.h"
#include "tuner/model/tune_list.h"

typedef struct {
    int task; /* index in tl_tune_forms.tasks */
    int by;   /* so many more kernels of it in a run of the model; negative: fewer */
} tl_form_change;

typedef enum {
    TL_FORM_UNSEEN, /* not all of its kernels were measured */
    TL_FORM_BEYOND, /* out of reach */
    TL_FORM_WITHIN, /* within reach: its kernels are tuned */
    TL_FORM_FATE_COUNT
} tl_form_fate;
const char *tl_form_fate_text(tl_form_fate fate);

typedef struct {
    const char *form, *what; /* as in tl_form */
    int change_count;
    const tl_form_change *changes;
    tl_form_fate fate;
} tl_tune_form;

typedef struct {
    int count;
    tl_tune_form *forms;
    int task_count; /* those of the model first, as in its list, then those that only forms have, of weight 0 */
    tl_tune_task *tasks; /* the heaviest that a form makes of it, once it is to be tuned */
    int own_count;       /* of the model */
    double *first_ns;    /* one a task: the default schedule; 0: not known */
    double *best_ns;     /* the best so far */
    double *estimate;    /* of the default schedule, in cycles; 0: not made */
} tl_tune_forms;

/* All forms of the model whose changes are of tasks in `list` and of new ones. In `arena`. */
tl_status tl_tune_forms_find(tl_arena *arena, tl_tunable *model, const tl_tune_list *list,
                             tl_tune_forms *out, tl_diag *diag);
/* What earlier sessions measured of the tasks (options->known). */
void tl_tune_forms_recall(tl_tune_forms *forms, const tl_tune_options *options);
/* What a run measured of the tasks. */
void tl_tune_forms_learn(tl_tune_forms *forms, const tl_tuning *tuning);
/* Up to `most` tasks that were never measured, of the forms that the estimate likes best; into out[most]. */
int tl_tune_forms_unseen(tl_arena *arena, tl_tune_forms *forms, const tl_target *target, int most,
                         tl_tune_task *out);
/* Judges every form; the new tasks of those within reach, into out[task_count]. */
int tl_tune_forms_within(tl_tune_forms *forms, tl_tune_task *out);
/* Time of what the form takes out of a run of the model, and of what it brings; false: not all of it is known. */
bool tl_tune_form_change_ns(const tl_tune_form *form, const double *ns, double *out, double *in);

#endif
