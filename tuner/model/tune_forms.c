/* tuner/model/tune_forms.c: kernels of other forms of a model, as tasks of the tuner. */
#include "tuner/model/tune_forms.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tuner/cost/cost_model.h"
#include "tuner/cost/features.h"
#include "tuner/search/space.h"

/* What a form brings may take so many times what it replaces: by the estimate, to be measured; by the first measurement, to
 * be tuned. More is hardly ever made up for. (Of 68 forms of three networks, measured were 0.7 to 1.6 times the estimate when
 * that was below 1.3; above it 1.0 to 7.) */
#define REACH_ESTIMATED 1.3
#define REACH_MEASURED  1.1

const char *tl_form_fate_text(tl_form_fate fate)
{
    static const char *const texts[TL_FORM_FATE_COUNT] = {
        [TL_FORM_UNSEEN] = "not measured",
        [TL_FORM_BEYOND] = "beyond reach",
        [TL_FORM_WITHIN] = "within reach",
    };
    return texts[fate];
}

/* ---- finding ---- */

/* How many kernels of each workload a form has, beside how many the model has now. */
typedef struct {
    tl_arena *arena;
    tl_tunable *model;
    tl_map *task_of; /* workload -> int: index of its task; -1: the filter left it out */
    tl_tune_task *tasks;
    int task_count, capacity;
    int *now, *counts; /* one a task */
    bool is_left_out;  /* the form changes what is not tuned */
} census;

static void grow(census *c)
{
    int capacity = 2 * c->capacity;
    tl_tune_task *tasks = TL_NEW_ARRAY(c->arena, tl_tune_task, capacity);
    int *now = TL_NEW_ARRAY(c->arena, int, capacity),
        *counts = TL_NEW_ARRAY(c->arena, int, capacity);
    memcpy(tasks, c->tasks, sizeof *tasks * (size_t)c->task_count);
    memcpy(now, c->now, sizeof *now * (size_t)c->task_count);
    memcpy(counts, c->counts, sizeof *counts * (size_t)c->task_count);
    c->tasks = tasks;
    c->now = now;
    c->counts = counts;
    c->capacity = capacity;
}

static tl_status count_kernel(void *user, const tl_form_kernel *kernel, tl_diag *diag)
{
    census *c = user;
    int *task = tl_map_find(c->task_of, kernel->workload);
    if (task == NULL) {
        if (c->task_count == c->capacity)
            grow(c);
        task = TL_NEW(c->arena, int);
        *task = c->task_count;
        TL_TRY(
            c->model->type->describe(c->model, c->arena, kernel, &c->tasks[c->task_count++], diag));
        tl_map_put(c->task_of, kernel->workload, task);
    }
    c->counts[*task]++;
    return TL_OK;
}

static const tl_form_change *list_changes(const census *c, int *count)
{
    tl_form_change *changes = TL_NEW_ARRAY(c->arena, tl_form_change, c->task_count);
    *count = 0;
    for (int i = 0; i < c->task_count; i++)
        if (c->counts[i] != c->now[i])
            changes[(*count)++] = (tl_form_change){ .task = i, .by = c->counts[i] - c->now[i] };
    return changes;
}

tl_status tl_tune_forms_find(tl_arena *arena, tl_tunable *model, const tl_tune_list *list,
                             tl_tune_forms *out, tl_diag *diag)
{
    census c = { .arena = arena,
                 .model = model,
                 .task_of = tl_map_create(arena),
                 .task_count = list->count,
                 .capacity = 2 * list->count };
    const tl_form *found;
    int count;
    c.tasks = TL_NEW_ARRAY(arena, tl_tune_task, c.capacity);
    c.now = TL_NEW_ARRAY(arena, int, c.capacity);
    c.counts = TL_NEW_ARRAY(arena, int, c.capacity);
    for (int i = 0; i < list->count; i++) {
        int *task = TL_NEW(arena, int);
        *task = i;
        c.tasks[i] = list->tasks[i];
        c.now[i] = (int)list->tasks[i].weight;
        tl_map_put(c.task_of, list->tasks[i].workload->workload, task);
    }
    model->type->find_forms(model, arena, &found, &count);
    *out = (tl_tune_forms){ .own_count = list->count,
                            .forms = TL_NEW_ARRAY(arena, tl_tune_form, count) };
    for (int i = 0; i < count; i++) {
        tl_tune_form *form = &out->forms[out->count];
        *form = (tl_tune_form){ .form = found[i].form, .what = found[i].what };
        memset(c.counts, 0, sizeof *c.counts * (size_t)c.task_count);
        TL_TRY(model->type->visit_form(model, form->form, count_kernel, &c, diag));
        form->changes = list_changes(&c, &form->change_count);
        out->count += form->change_count > 0;
    }
    out->tasks = c.tasks;
    out->task_count = c.task_count;
    out->first_ns = TL_NEW_ARRAY(arena, double, c.task_count);
    out->best_ns = TL_NEW_ARRAY(arena, double, c.task_count);
    out->estimate = TL_NEW_ARRAY(arena, double, c.task_count);
    return TL_OK;
}

/* ---- what is known ---- */

void tl_tune_forms_recall(tl_tune_forms *forms, const tl_tune_options *options)
{
    for (int i = forms->own_count; i < forms->task_count; i++)
        forms->first_ns[i] = forms->best_ns[i] =
            tl_tune_best_known(options, forms->tasks[i].workload->workload);
}

void tl_tune_forms_learn(tl_tune_forms *forms, const tl_tuning *tuning)
{
    for (int i = 0; i < tl_tuning_count(tuning); i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        for (int k = 0; k < forms->task_count && t->best_ns > 0; k++)
            if (strcmp(forms->tasks[k].workload->workload, t->task->workload->workload) == 0) {
                forms->first_ns[k] = t->untuned_ns;
                forms->best_ns[k] = t->best_ns;
            }
    }
}

bool tl_tune_form_change_ns(const tl_tune_form *form, const double *ns, double *out, double *in)
{
    bool known = true;
    *out = *in = 0;
    for (int i = 0; i < form->change_count; i++) {
        const tl_form_change *change = &form->changes[i];
        known &= ns[change->task] > 0;
        if (change->by < 0)
            *out -= change->by * ns[change->task];
        else
            *in += change->by * ns[change->task];
    }
    return known;
}

/* ---- the estimate ---- */

/* Cycles that the analytic model expects of the task's default schedule; 0: there is none. */
static double estimate(tl_arena *arena, const tl_tune_task *task, const tl_target *target)
{
    tl_space *space;
    tl_variant variant;
    if (tl_space_create(arena, task->measure, target, 1, TL_SPACE_FULL, &space, NULL) != TL_OK ||
        tl_space_build(space, arena, task->untuned, NULL, 0, &variant, NULL) != TL_OK)
        return 0;
    const float *rows;
    const int count = tl_features_of(arena, variant.program, target, &rows);
    return tl_analytic_cycles(NULL, rows, count);
}

/* How far the form may come under the limit of what is measured, in ns, when default schedules relate to those they replace
 * as the estimates do. Estimates err, and heavy kernels leave more room for it. */
static double hope_of(tl_arena *arena, tl_tune_forms *forms, const tl_tune_form *form,
                      const tl_target *target)
{
    double out, in, out_ns, in_ns;
    for (int i = 0; i < form->change_count; i++) {
        int task = form->changes[i].task;
        if (forms->estimate[task] == 0)
            forms->estimate[task] = estimate(arena, &forms->tasks[task], target);
    }
    tl_tune_form_change_ns(form, forms->first_ns, &out_ns, &in_ns);
    if (!tl_tune_form_change_ns(form, forms->estimate, &out, &in))
        return 0;
    return out_ns * (REACH_ESTIMATED - in / out);
}

typedef struct {
    double ns;
    int form;
} hope;

static int largest_first(const void *a, const void *b)
{
    const hope *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->form - y->form;
}

/* The form's tasks that have no time, behind `count` others; how many there are then. */
static int add_unseen(const tl_tune_forms *forms, const tl_tune_form *form, bool *taken, int count,
                      int most, tl_tune_task *out)
{
    int added = 0;
    for (int i = 0; i < form->change_count; i++) {
        int task = form->changes[i].task;
        added += task >= forms->own_count && forms->first_ns[task] == 0 && !taken[task];
    }
    if (count + added > most)
        return count;
    for (int i = 0; i < form->change_count; i++) {
        int task = form->changes[i].task;
        if (task < forms->own_count || forms->first_ns[task] > 0 || taken[task])
            continue;
        taken[task] = true;
        out[count] = forms->tasks[task];
        out[count++].weight = form->changes[i].by;
    }
    return count;
}

int tl_tune_forms_unseen(tl_arena *arena, tl_tune_forms *forms, const tl_target *target, int most,
                         tl_tune_task *out)
{
    hope *hopes = TL_NEW_ARRAY(arena, hope, forms->count);
    bool *taken = TL_NEW_ARRAY(arena, bool, forms->task_count);
    int count = 0;
    for (int i = 0; i < forms->count; i++)
        hopes[i] = (hope){ hope_of(arena, forms, &forms->forms[i], target), i };
    qsort(hopes, (size_t)forms->count, sizeof *hopes, largest_first);
    for (int i = 0; i < forms->count && hopes[i].ns > 0; i++)
        count = add_unseen(forms, &forms->forms[hopes[i].form], taken, count, most, out);
    return count;
}

/* ---- judging ---- */

static tl_form_fate judge(const tl_tune_forms *forms, const tl_tune_form *form)
{
    double out, in;
    if (!tl_tune_form_change_ns(form, forms->first_ns, &out, &in))
        return TL_FORM_UNSEEN;
    return in <= REACH_MEASURED * out ? TL_FORM_WITHIN : TL_FORM_BEYOND;
}

int tl_tune_forms_within(tl_tune_forms *forms, tl_tune_task *out)
{
    int count = 0;
    for (int i = 0; i < forms->count; i++) {
        tl_tune_form *form = &forms->forms[i];
        form->fate = judge(forms, form);
        for (int k = 0; k < form->change_count && form->fate == TL_FORM_WITHIN; k++) {
            const tl_form_change *change = &form->changes[k];
            if (change->task >= forms->own_count)
                forms->tasks[change->task].weight =
                    fmax(forms->tasks[change->task].weight, change->by);
        }
    }
    for (int i = forms->own_count; i < forms->task_count; i++)
        if (forms->tasks[i].weight > 0)
            out[count++] = forms->tasks[i];
    return count;
}
