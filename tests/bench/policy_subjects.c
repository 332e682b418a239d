/* tests/bench/policy_subjects.c: which kernels are studied: those that take the largest share of their network. */
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/cli/session.h"
#include "driver/pipeline/model_tasks.h"
#include "driver/tune/kernel_task.h"
#include "tests/bench/policy_study.h"
#include "tuner/cost/features.h"

enum { MOST_SUBJECTS = 1024 };

static void add(study *s, const char *model, study_subject new)
{
    bool is_plain = s->options.space == TL_SPACE_PLAIN;
    new.name =
        tl_arena_format(s->arena, "%s.%s%s%s", model, new.task.measure->name, is_plain ? "/" : "",
                        is_plain ? new.task.measure->lowerings[0].name : "");
    if (s->options.kernel != NULL && strcmp(s->options.kernel, new.name) != 0)
        return;
    if (s->subjects == NULL)
        s->subjects = TL_NEW_ARRAY(s->arena, study_subject, MOST_SUBJECTS);
    if (s->subject_count < MOST_SUBJECTS)
        s->subjects[s->subject_count++] = new;
}

/* Cycles of the default schedule, as the analytic model estimates them: no clock, so that the same tasks are chosen
 * whenever a study goes on. */
static double estimate(study *s, const tl_tune_task *task)
{
    tl_diag diag = { 0 };
    tl_space *space;
    tl_variant variant;
    const float *rows;
    bench_must(tl_space_create(s->arena, task->measure, &s->target, (int)s->options.threads,
                               s->options.space, &space, &diag),
               &diag);
    bench_must(tl_space_build(space, s->arena, task->untuned, NULL, 0, &variant, &diag), &diag);
    tl_target target = s->target;
    target.cores = (int)s->options.threads;
    int count = tl_features_of(s->arena, variant.program, &target, &rows);
    return tl_analytic_cycles(NULL, rows, count);
}

void study_add_model(study *s, const char *path)
{
    tl_session *session = TL_NEW(s->arena, tl_session); /* tasks live in its arena: never closed */
    tl_session_options common = { .threads = s->options.threads, .no_cache = true };
    tl_model_options extra = { .inspect_only = true, .no_database = true };
    tl_diag diag = { 0 };
    tl_tune_list list;
    char copy[4096], model[64];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(model, sizeof model, "%.*s", (int)strcspn(basename(copy), "."), basename(copy));
    bench_must(tl_session_open(session, path, &common, &extra, &diag), &diag);
    tl_tune_filter all = { 0 };
    bench_must(tl_model_tasks(session->arena, session->model, TL_NUMERICS_RELAXED, &all, &list,
                              &diag),
               &diag);
    if (s->options.space == TL_SPACE_PLAIN) {
        tl_tune_list whole = list;
        tl_tune_tasks_split(session->arena, &whole, &list);
    }
    double *cycles = TL_NEW_ARRAY(s->arena, double, list.count), total = 0;
    for (int i = 0; i < list.count; i++)
        total += cycles[i] = list.tasks[i].weight * estimate(s, &list.tasks[i]);
    for (int i = 0; i < list.count; i++)
        add(s, model,
            (study_subject){ .task = list.tasks[i],
                             .share = cycles[i] / total,
                             .cold = TL_COLD_CONSTANTS,
                             .constant_bytes = list.constant_bytes });
}

void study_add_kernel(study *s, const char *path)
{
    tl_study *kernel = TL_NEW(s->arena, tl_study);
    tl_study_options options = { .kernel = path, .threads = s->options.threads };
    tl_diag diag = { 0 };
    tl_tune_list list;
    kernel->arena = s->arena;
    bench_must(tl_study_open(kernel, &options, &diag), &diag);
    tl_tune_tasks_of_kernel(kernel, &list);
    add(s, "kernel", (study_subject){ .task = list.tasks[0], .share = 1 });
}

static int heavier(const void *a, const void *b)
{
    const study_subject *x = a, *y = b;
    return x->share != y->share ? (x->share < y->share ? 1 : -1) : strcmp(x->name, y->name);
}

void study_choose_subjects(study *s)
{
    if (s->subject_count == 0) {
        fprintf(stderr, "policy_study: there is no kernel %s\n", s->options.kernel);
        exit(2);
    }
    qsort(s->subjects, (size_t)s->subject_count, sizeof *s->subjects, heavier);
    if (s->subject_count > s->options.tasks)
        s->subject_count = (int)s->options.tasks;
}
