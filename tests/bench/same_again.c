/* tests/bench/same_again.c: what luck gains. The default schedule of a kernel is candidate and incumbent: nothing is
 * faster than
 * the other, and what a thousand trials gain is owed to noise. (The measurer does not know that it is asked the same again:
 * each trial is built, checked and timed anew, in memory of its own.)
 *
 *     luck       the first score over the least of all: what whoever believes the best record sees
 *     crowned    how often a trial became the incumbent
 *     gain       the first score over the last incumbent's: what `tilth tune` shows
 *     spread     half of the scores are within it
 *     disturbed  trials that say so of themselves */
#include <stdio.h>
#include <stdlib.h>
#include "codegen/codegen.h"
#include "driver/cli/session.h"
#include "driver/pipeline/host_target.h"
#include "driver/pipeline/model_tasks.h"
#include "runtime/base/sort.h"
#include "tests/bench/program.h"

typedef struct {
    const char *worker, *kernels, *cold;
    int64_t trials, top, threads;
    double seconds;
    bool json;
} options;

typedef struct {
    const options *options;
    tl_measurer *measurer;
    tl_cold cold;
} harness;

typedef struct {
    int count, crowned, disturbed;
    double first_ns, least_ns, last_ns; /* scores: of the first, of all, of the last incumbent */
    double *scores, run_ns;             /* over the first */
} luck;

static void take(luck *l, const tl_result *r)
{
    if (r->status != TL_RECORD_OK || r->hopeless)
        return;
    l->last_ns = r->crowned ? r->score_ns : l->last_ns;
    l->disturbed += r->disturbed;
    l->run_ns += r->run_ns;
    if (l->first_ns == 0) {
        l->first_ns = l->least_ns = r->score_ns;
        return;
    }
    l->crowned += r->crowned;
    l->least_ns = r->score_ns < l->least_ns ? r->score_ns : l->least_ns;
    l->scores[l->count++] = r->score_ns / l->first_ns;
}

static void print_trial(const char *name, const tl_result *r)
{
    printf("{\"kernel\":\"%s\",\"status\":%d,\"time_ns\":%.0f,\"median_ns\":%.0f,\"incumbent_ns\":%"
           ".0f,\"score_ns\":%.0f,"
           "\"samples\":%d,\"hopeless\":%d,\"disturbed\":%d,\"crowned\":%d,\"run_ns\":%.0f}\n",
           name, (int)r->status, r->time_ns, r->median_ns, r->incumbent_ns, r->score_ns,
           r->time_count, r->hopeless, r->disturbed, r->crowned, r->run_ns);
}

static void print_luck(const char *name, luck *l)
{
    tl_sort_doubles(l->scores, l->count);
    double low = l->count > 0 ? l->scores[l->count / 4] : 1,
           high = l->count > 0 ? l->scores[l->count * 3 / 4] : 1;
    printf("%-32s %6d %7.3f %8d %7.3f %7.2f %% %9d %8.2f\n", name, l->count,
           l->first_ns / l->least_ns, l->crowned, l->first_ns / l->last_ns, 100 * (high - low),
           l->disturbed, l->run_ns * 1e-6 / (l->count + 1));
}

static void study(const harness *h, tl_arena *arena, const tl_tune_task *task,
                  const tl_target *target)
{
    static tl_result result;
    tl_diag diag = { 0 };
    tl_space *space;
    tl_variant variant;
    int64_t ticket;
    int number, trials = (int)h->options->trials;
    luck l = { .scores = TL_NEW_ARRAY(arena, double, trials) };
    bench_must(tl_space_create(arena, task->measure, target, 1, TL_SPACE_FULL, &space, &diag),
               &diag);
    bench_must(tl_space_build(space, arena, task->untuned, NULL, 0, &variant, &diag), &diag);
    const tl_candidate same = { .lowering = task->untuned,
                                .trace = variant.trace,
                                .cold = h->cold };
    bench_must(tl_measurer_add_task(h->measurer, task->measure, &number, &diag), &diag);
    int64_t end = tl_measurer_clock(h->measurer) + (int64_t)(h->options->seconds * 1e9);
    for (int i = 0; i < trials; i++)
        bench_must(tl_measurer_submit(h->measurer, number, &same, 1, &ticket, &diag), &diag);
    for (int i = 0; i < trials && tl_measurer_clock(h->measurer) < end; i++) {
        bench_must(tl_measurer_next(h->measurer, -1, &result, &diag), &diag);
        take(&l, &result);
        if (h->options->json)
            print_trial(task->measure->name, &result);
    }
    tl_measurer_forget(h->measurer, number);
    if (!h->options->json)
        print_luck(task->measure->name, &l);
}

static void study_model(const options *o, const char *path)
{
    tl_session session;
    tl_session_options common = { .threads = o->threads, .no_cache = true };
    tl_model_options extra = { .inspect_only = true, .no_database = true };
    tl_tune_filter filter = { .pattern = o->kernels, .top = o->top };
    tl_diag diag = { 0 };
    tl_tune_list all, list;
    harness h = { .options = o, .cold = TL_COLD_CONSTANTS };
    bench_must(tl_session_open(&session, path, &common, &extra, &diag), &diag);
    bench_must(tl_model_tasks(session.arena, session.model, TL_NUMERICS_RELAXED, &filter, &all,
                              &diag),
               &diag);
    bench_must(tl_tune_tasks_join(session.arena, (const tl_tune_list *[]){ &all }, 1, &filter,
                                  &list, &diag),
               &diag);
    if (o->cold != NULL && !tl_cold_from_text(o->cold, &h.cold)) {
        fprintf(stderr, "same_again: --cold: '%s' is neither nothing, all nor constants\n",
                o->cold);
        exit(2);
    }
    tl_target target;
    bench_must(tl_target_resolve(NULL, &target, &diag), &diag);
    tl_measure_options with = { .worker = o->worker,
                                .target = &target,
                                .threads = (int)o->threads,
                                .seed = 1,
                                .constant_bytes = list.constant_bytes };
    bench_must(tl_measurer_create(&with, &h.measurer, &diag), &diag);
    for (int i = 0; i < list.count; i++)
        study(&h, session.arena, &list.tasks[i], &target);
    tl_measurer_destroy(h.measurer);
    tl_session_close(&session);
}

int main(int argc, char **argv)
{
    tl_codegen_own_process();
    options o = { .trials = 1000, .top = 3, .threads = 1, .seconds = 20, .worker = bench_tilth() };
    const tl_option table[] = {
        { "--trials", NULL, TL_OPTION_INT, "N", "of each kernel (1000)", &o.trials },
        { "--seconds", NULL, TL_OPTION_REAL, "S", "at most, for each kernel (20)", &o.seconds },
        { "--kernels", NULL, TL_OPTION_TEXT, "PATTERN", "names or families (all)", &o.kernels },
        { "--top", NULL, TL_OPTION_INT, "N", "the heaviest only (3)", &o.top },
        { "--threads", NULL, TL_OPTION_INT, "N", "kernels run on (1)", &o.threads },
        { "--cold", NULL, TL_OPTION_TEXT, "WHAT", "nothing, all or constants (constants)",
          &o.cold },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "a line of JSON a trial", &o.json },
        { "--worker", NULL, TL_OPTION_TEXT, "TILTH", "what measures (the tilth next to this one)",
          &o.worker },
        { 0 },
    };
    const tl_verb_help help = { .verb = "same_again",
                                .arguments = "MODEL.onnx ...",
                                .summary = "Measures what luck gains.",
                                .options = table,
                                .min_positional = 1,
                                .max_positional = 32 };
    const char *paths[32];
    int count, code;
    if (!tl_verb_begin(&help, argc - 1, argv + 1, paths, &count, &code))
        return code;
    if (!o.json)
        printf("%-32s %6s %7s %8s %7s %9s %9s %8s\n", "kernel", "trials", "luck", "crowned", "gain",
               "spread", "disturbed", "ms/trial");
    for (int i = 0; i < count; i++)
        study_model(&o, paths[i]);
    return 0;
}
