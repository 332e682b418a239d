/* tuner/model/tune_models.c: a run over the kernels of models, then over those of their other forms. */
#include "tuner/model/tune_models.h"
#include <math.h>
#include <string.h>

/* of seconds and trials: for kernels of other forms of the models; and of that, at most, for their default schedules */
#define SHARE_FORMS 0.1
#define SHARE_FIRST 0.5

int tl_tune_models_tasks(tl_arena *arena, const tl_tune_models *models, const tl_tune_task **out)
{
    int count = models->list->count, most = count;
    for (int i = 0; i < models->model_count; i++)
        most += models->models[i].forms.task_count;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, most);
    memcpy(tasks, models->list->tasks, sizeof *tasks * (size_t)count);
    for (int i = 0; i < models->model_count; i++) {
        const tl_tune_forms *forms = &models->models[i].forms;
        for (int k = forms->own_count; k < forms->task_count; k++)
            tasks[count++] = forms->tasks[k];
    }
    *out = tasks;
    return count;
}

/* Measures kernels that only other forms have, with a part of what the own kernels may cost. */
static tl_status tune_some(const tl_tune_models *models, tl_tune_model *m, tl_tune_options *options,
                           const tl_tune_task *tasks, int count, tl_diag *diag)
{
    tl_tuning *tuning;
    tl_tune_totals totals;
    options->starts_in_order = true;
    if (models->begin_forms != NULL)
        models->begin_forms(options->user);
    TL_TRY(tl_tuning_create(options, tasks, count, &tuning, diag));
    tl_status status = tl_tuning_run(tuning, diag);
    tl_tune_forms_learn(&m->forms, tuning);
    tl_tuning_totals(tuning, &totals);
    m->form_trials += totals.trials;
    m->form_s += totals.elapsed_s;
    tl_tuning_destroy(tuning);
    return status == TL_BUDGET ? TL_OK
                               : status; /* no form's kernel was right: none is within reach */
}

static bool is_stopped(const tl_tune_options *options)
{
    return options->stop != NULL && *options->stop != 0;
}

/* All that a model's other forms get; `own` is the run over its own kernels. */
static tl_status tune_forms(tl_arena *arena, const tl_tune_models *models, tl_tune_model *m,
                            const tl_tuning *own, const tl_tune_options *all, tl_diag *diag)
{
    tl_tune_forms *forms = &m->forms;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, forms->task_count);
    tl_tune_options options = *all;
    int most = (int)fmin((double)forms->task_count, SHARE_FIRST * (double)all->trials);
    tl_tune_forms_learn(forms, own);
    tl_tune_forms_recall(forms, all);
    int count = tl_tune_forms_unseen(arena, forms, all->target, most, tasks);
    options.trials_per_task = 1;
    options.budget_s = SHARE_FIRST * all->budget_s;
    if (count > 0)
        TL_TRY(tune_some(models, m, &options, tasks, count, diag));
    count = tl_tune_forms_within(forms, tasks);
    options.trials_per_task = all->trials_per_task;
    options.trials = all->trials - m->form_trials;
    if (all->budget_s > 0)
        options.budget_s = fmax(all->budget_s - m->form_s, 1e-3);
    if (count > 0 && options.trials > 0 && !is_stopped(all))
        TL_TRY(tune_some(models, m, &options, tasks, count, diag));
    return TL_OK;
}

/* How many models have other forms. */
static int count_shaped(const tl_tune_models *models)
{
    int count = 0;
    for (int i = 0; i < models->model_count; i++)
        count += models->models[i].forms.count > 0;
    return count;
}

tl_status tl_tune_models_run(tl_arena *arena, const tl_tune_models *models, tl_tuning **tuning,
                             tl_diag *diag)
{
    const tl_tune_options *all = models->options;
    const int shaped = count_shaped(models);
    const double share = shaped > 0 ? SHARE_FORMS : 0;
    tl_tune_options options = *all;
    tl_tune_totals totals;
    *tuning = NULL;
    options.budget_s = (1 - share) * all->budget_s;
    options.trials = all->trials - (int64_t)(share * (double)all->trials);
    TL_TRY(tl_tuning_create(&options, models->list->tasks, models->list->count, tuning, diag));
    tl_status status = tl_tuning_run(*tuning, diag);
    tl_tuning_totals(*tuning, &totals);
    if (shaped > 0) {
        options.budget_s = share * all->budget_s / shaped;
        options.trials = (int64_t)(share / (1 - share) * (double)totals.trials / shaped);
    }
    for (int i = 0; i < models->model_count && status == TL_OK && !is_stopped(all); i++)
        if (models->models[i].forms.count > 0)
            status = tune_forms(arena, models, &models->models[i], *tuning, &options, diag);
    return status;
}
