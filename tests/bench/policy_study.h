/* tests/bench/policy_study.h: what the parts of the study of policies share. */
#ifndef TL_TESTS_POLICY_STUDY_H
#define TL_TESTS_POLICY_STUDY_H
#include "driver/cli/cli.h"
#include "driver/tune/load_experts.h"
#include "tuner/model/tune_list.h"
#include "tests/bench/program.h"
#include "tuner/search/search.h"
#include "tuner/records/store.h"

/* A kernel to search for. */
typedef struct {
    const char *name; /* "resnet50.conv_relu_30" */
    tl_tune_task task;
    double share;           /* of its network's time untuned, as the analytic model estimates it */
    tl_cold cold;           /* as `tilth tune` measures it */
    int64_t constant_bytes; /* of its network */
} study_subject;

typedef struct {
    char program[17];
    tl_candidate candidate;
    double score_ns; /* 0: it failed */
    bool is_default; /* of some lowering, and tried as such */
} study_trial;

/* What is compared: a policy, blank or with trained cost models. */
typedef struct {
    const char *name; /* "auto", "auto+model" */
    const tl_policy_type *policy;
    bool has_models;
    int trials;
} study_arm;

/* An arm on a subject. */
typedef struct {
    const study_subject *subject;
    const study_arm *arm;
    int seed, wanted, count; /* trials */
    study_trial *trials;     /* in the order of the proposals; an appeal repeats a program */
    bool is_done;            /* false: time ran out first */
    /* Gains of the best after few and all trials, measured again; 0: not. */
    double checked_few, checked_all;
    double think_ns; /* processor time of the search */
    double wall_ns;  /* of what was measured now, without waiting for other processes */
    int measured;    /* now; the others were known, or are estimates */
} study_run;

typedef struct {
    const char *policies, *kernel, *database, *worker, *space_name;
    tl_text_list cost_models; /* of arms that have models */
    tl_space_kind space;
    int64_t trials, few, tasks, seed, seeds, threads, jobs, ahead;
    double seconds;
    bool offline, json;
} study_options;

typedef struct {
    study_options options;
    tl_arena *arena;
    tl_target target;
    tl_records *records;
    char environment[2048];
    int64_t deadline_ns; /* of tl_clock_ns; 0: none */
    tl_expert_list experts;
    int subject_count, arm_count, run_count;
    study_subject *subjects;
    study_arm *arms;
    study_run *runs;
} study;

bool study_is_late(const study *s);

/* policy_subjects.c: the heaviest kernels of the models. */
void study_add_model(study *s, const char *path);
void study_add_kernel(study *s, const char *path);
void study_choose_subjects(study *s);

/* policy_study.c */
void study_open_records(study *s);
void study_run_policy(study *s, study_run *run);

/* policy_jobs.c: all arms on all subjects, in one process or in several. */
void study_run_all(study *s);

/* policy_trials.c: answers to proposals: what is recorded, else what is measured now, or offline an estimate. */
typedef struct answers answers;
answers *answers_create(study *s, study_run *run);
void answers_destroy(answers *a);
void answers_ask(answers *a, const tl_proposal *proposal);
/* In the order of the questions. */
void answers_next(answers *a, const tl_proposal *proposal, tl_result *out);
/* Makes the recorded trials the run's; true: all that are wanted are there. */
bool study_recall(study *s, study_run *run);
/* The trial with the least time of the first `count`; NULL: all failed. */
const study_trial *study_best(const study_run *run, int count);
/* The best default schedule's time, as far as it was tried. */
double study_default_ns(const study_run *run);

/* policy_winners.c: the best of each run and the default schedule again, carefully and in turns. */
void study_check_winners(study *s);

/* policy_curves.c: the best so far over trials. */
void study_print(study *s);

#endif
