/* tests/bench/policy_study.c: search policies beside each other: how good the best schedule is after how many trials.
 *
 * Runs each policy, blank or with trained cost models ("auto+model"), on each of the heaviest kernels of the networks, then
 * measures what they found once more, in turns with the default schedule. Trials go into a database of records, session by
 * session ("auto-1" is policy auto with seed 1; `tilth report --db` draws them); what is in there already is not measured
 * again, so that a study that was interrupted, or whose time was up, goes on where it was. Times of different sessions are
 * not comparable: gains are.
 *
 * --offline measures nothing: all trials of a task that are in the database answer, of whatever session, and an estimate
 * learned from them for what was never tried. Policies with many seeds are compared like this in minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/pipeline/host_target.h"
#include "runtime/base/clock.h"
#include "tests/bench/policy_study.h"
#include "tuner/run/environment.h"

bool study_is_late(const study *s)
{
    return s->deadline_ns > 0 && tl_clock_ns() > s->deadline_ns;
}

/* --- a run ------------------------------------------------------------------------------------------------------------ */

/* Proposals wait in a ring until their results are there. */
enum { RING = 256 };
typedef struct {
    study *study;
    study_run *run;
    tl_policy *policy;
    answers *answers;
    tl_arena *arenas[RING]; /* of batches; where the last of each is */
    tl_proposal proposals[RING];
    int proposed;
} search;

static int propose(search *r, int most)
{
    tl_diag diag = { 0 };
    tl_proposal batch[RING];
    tl_arena *arena = tl_arena_create(0);
    int count = 0;
    int64_t begun = tl_clock_cpu_ns();
    bench_must(r->policy->type->propose(r->policy, arena, most, batch, &count, &diag), &diag);
    r->run->think_ns += (double)(tl_clock_cpu_ns() - begun);
    for (int i = 0; i < count; i++) {
        int at = r->proposed++ % RING;
        r->proposals[at] = batch[i];
        r->arenas[at] = i == count - 1 ? arena : NULL;
        answers_ask(r->answers, &r->proposals[at]);
    }
    if (count == 0)
        tl_arena_destroy(arena);
    return count;
}

static void learn(search *r)
{
    static tl_result result;
    tl_diag diag = { 0 };
    study_run *run = r->run;
    int at = run->count % RING;
    const tl_proposal *p = &r->proposals[at];
    answers_next(r->answers, p, &result);
    study_trial *trial = &run->trials[run->count++];
    *trial =
        (study_trial){ .candidate = p->candidate, .is_default = strcmp(p->origin, "default") == 0 };
    trial->candidate.trace = tl_arena_strdup(r->study->arena, p->candidate.trace);
    memcpy(trial->program, p->program, sizeof trial->program);
    if (result.status == TL_RECORD_OK)
        trial->score_ns = result.score_ns;
    int64_t begun = tl_clock_cpu_ns();
    bench_must(r->policy->type->learn(r->policy, p, &result, 1, &diag), &diag);
    run->think_ns += (double)(tl_clock_cpu_ns() - begun);
    tl_arena_destroy(r->arenas[at]);
    r->arenas[at] = NULL;
}

/* A policy that thinks in rounds gets the results of one before it plans the next; others are asked while candidates
 * wait, as in a run of the tuner. */
static void search_on(search *r)
{
    bool in_rounds = r->run->arm->policy->batch > r->study->options.ahead;
    int batch = in_rounds ? r->run->arm->policy->batch : (int)r->study->options.ahead / 2;
    int waits = in_rounds ? 0 : batch;
    bool more = true;
    while ((more || r->run->count < r->proposed) && !study_is_late(r->study)) {
        int left = r->run->wanted - r->proposed, most = left < batch ? left : batch;
        if (more && r->proposed - r->run->count <= waits)
            more = most > 0 && propose(r, most) == most;
        else
            learn(r);
    }
    r->run->is_done = !more && r->run->count == r->proposed;
    for (int i = 0; i < RING; i++)
        tl_arena_destroy(r->arenas[i]);
}

void study_run_policy(study *s, study_run *run)
{
    tl_diag diag = { 0 };
    tl_space *space;
    search *r = calloc(1, sizeof *r);
    if (r == NULL)
        exit(1);
    const tl_measure_task *task = run->subject->task.measure;
    bench_must(tl_space_create(s->arena, task, &s->target, (int)s->options.threads,
                               s->options.space, &space, &diag),
               &diag);
    tl_search spec = { .task = task,
                       .space = space,
                       .target = &s->target,
                       .workload = run->subject->task.workload,
                       .seed = (uint64_t)run->seed };
    if (run->arm->has_models) {
        spec.experts = s->experts.models;
        spec.expert_count = s->experts.count;
    }
    run->trials = TL_NEW_ARRAY(s->arena, study_trial, run->wanted);
    *r = (search){ .study = s, .run = run, .answers = answers_create(s, run) };
    if (!study_recall(s, run)) {
        bench_must(run->arm->policy->create(&spec, &r->policy, &diag), &diag);
        int64_t begun = tl_clock_ns();
        run->count = 0; /* the policy is asked again; what is recorded answers */
        search_on(r);
        run->wall_ns += (double)(tl_clock_ns() - begun);
        r->policy->type->destroy(r->policy);
    }
    answers_destroy(r->answers);
    free(r);
}

/* --- the program ------------------------------------------------------------------------------------------------------- */

void study_open_records(study *s)
{
    tl_diag diag = { 0 };
    int flags = s->options.offline ? TL_RECORDS_READ_ONLY : TL_RECORDS_CREATE;
    bench_must(tl_records_open(s->options.database, flags, &s->records, &diag), &diag);
}

static void open_study(study *s)
{
    study_options *o = &s->options;
    tl_diag diag = { 0 };
    tl_text environment = { 0 };
    bench_must(tl_experts_load(&o->cost_models, &s->experts, &diag), &diag);
    o->ahead = o->ahead < 2 ? 2 : o->ahead > RING / 2 ? RING / 2 : o->ahead;
    bench_must(tl_target_resolve(NULL, &s->target, &diag), &diag);
    study_open_records(s);
    tl_environment_text(NULL, &environment);
    snprintf(s->environment, sizeof s->environment, "%s", tl_text_get(&environment));
    tl_text_free(&environment);
    if (o->seconds > 0)
        s->deadline_ns = tl_clock_ns() + (int64_t)(o->seconds * 1e9);
}

int main(int argc, char **argv)
{
    tl_codegen_own_process();
    static study s = { .options = { .trials = 100,
                                    .few = 100,
                                    .tasks = 10,
                                    .seed = 1,
                                    .seeds = 1,
                                    .threads = 1,
                                    .jobs = 1,
                                    .ahead = 8,
                                    .database = "policies.db" } };
    study_options *o = &s.options;
    o->worker = bench_tilth();
    const tl_option table[] = {
        { "--policies", NULL, TL_OPTION_TEXT, "A:N,B",
          "of tuner/search/policies.def (all), and trials of each; auto+model is auto with models",
          &o->policies },
        { "--cost-model", NULL, TL_OPTION_LIST, "FILE",
          "of those, as `tilth tune` takes them (what comes with tilth); they must not have "
          "learned "
          "kernels",
          &o->cost_models },
        { "--trials", NULL, TL_OPTION_INT, "N", "of policies that say none (100)", &o->trials },
        { "--few", NULL, TL_OPTION_INT, "N", "trials after which the best is checked, too (100)",
          &o->few },
        { "--tasks", NULL, TL_OPTION_INT, "N",
          "the heaviest, by share of their network's time (10)", &o->tasks },
        { "--kernel", NULL, TL_OPTION_TEXT, "NAME", "only that one", &o->kernel },
        { "--seed", NULL, TL_OPTION_INT, "N", "the first (1)", &o->seed },
        { "--seeds", NULL, TL_OPTION_INT, "N", "as many runs with seeds that follow (1)",
          &o->seeds },
        { "--threads", NULL, TL_OPTION_INT, "N", "kernels run on (1)", &o->threads },
        { "--jobs", NULL, TL_OPTION_INT, "N", "processes: one measures while others think (1)",
          &o->jobs },
        { "--ahead", NULL, TL_OPTION_INT, "N", "candidates in the queue while it thinks (8)",
          &o->ahead },
        { "--space", NULL, TL_OPTION_TEXT, "NAME",
          "full or plain, where each lowering is a task of its own (full)", &o->space_name },
        { "--seconds", NULL, TL_OPTION_REAL, "S", "stop then; the same command goes on",
          &o->seconds },
        { "--db", NULL, TL_OPTION_TEXT, "FILE", "records (policies.db)", &o->database },
        { "--offline", NULL, TL_OPTION_FLAG, NULL, "measure nothing", &o->offline },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "a line of JSON a run", &o->json },
        { "--worker", NULL, TL_OPTION_TEXT, "TILTH", "what measures (the tilth next to this one)",
          &o->worker },
        { 0 },
    };
    const tl_verb_help help = { .verb = "policy_study",
                                .arguments = "MODEL.onnx|KERNEL.tk ...",
                                .summary = "Compares search policies.",
                                .options = table,
                                .min_positional = 1,
                                .max_positional = 32 };
    const char *paths[32];
    int path_count, code;
    if (!tl_verb_begin(&help, argc - 1, argv + 1, paths, &path_count, &code))
        return code;
    if (o->space_name != NULL && !tl_space_kind_from_text(o->space_name, &o->space)) {
        fprintf(stderr, "policy_study: --space: '%s' is neither full nor plain\n", o->space_name);
        return 2;
    }
    s.arena = tl_arena_create(0);
    open_study(&s);
    for (int i = 0; i < path_count; i++) {
        size_t size = strlen(paths[i]);
        bool is_kernel = size > 3 && strcmp(paths[i] + size - 3, ".tk") == 0;
        if (is_kernel)
            study_add_kernel(&s, paths[i]);
        else
            study_add_model(&s, paths[i]);
    }
    study_choose_subjects(&s);
    study_run_all(&s);
    if (!o->offline)
        study_check_winners(&s);
    study_print(&s);
    tl_records_close(s.records, NULL);
    tl_experts_unload(&s.experts);
    bool is_late = study_is_late(&s);
    if (is_late)
        fprintf(stderr, "policy_study: time is up; the same command goes on\n");
    tl_arena_destroy(s.arena);
    return is_late ? 3 : 0;
}
