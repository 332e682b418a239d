/* tests/bench/policy_winners.c: what was found, measured again beside the default schedule. The best of a thousand noisy
 * times is luckier than the best of a hundred: only a second look is fair. One look is not enough for gains of 1 %: each
 * finds other pages for its constants and another hour. So all take part in several rounds, the default schedule in the
 * same way as the others, and the median of a round's ratios counts. */
#include <string.h>
#include "runtime/base/map.h"
#include "tests/bench/policy_study.h"
#include "tuner/measure/contest.h"

enum { ROUNDS = 9 };

/* Whether its program is a default schedule's: one stays that when it is tried again. */
static bool is_default(const study_run *run, const study_trial *trial)
{
    for (int i = 0; i < run->count; i++)
        if (run->trials[i].is_default && strcmp(run->trials[i].program, trial->program) == 0)
            return true;
    return false;
}

static const study_trial *best_of(const study_run *run, int count, bool only_defaults)
{
    const study_trial *best = NULL;
    for (int i = 0; i < count && i < run->count; i++) {
        const study_trial *t = &run->trials[i];
        if (t->score_ns > 0 && (!only_defaults || is_default(run, t)) &&
            (best == NULL || t->score_ns < best->score_ns))
            best = t;
    }
    return best;
}

const study_trial *study_best(const study_run *run, int count)
{
    return best_of(run, count, false);
}

double study_default_ns(const study_run *run)
{
    const study_trial *best = best_of(run, run->count, true);
    return best != NULL ? best->score_ns : 0;
}

/* --- measuring ---------------------------------------------------------------------------------------------------------- */

/* A program of the second look. */
typedef struct {
    tl_candidate candidate;
    double score_ns[ROUNDS]; /* 0: it failed */
} winner;

static void add_winner(study *s, const study_subject *subject, tl_map *winners,
                       const study_trial *t)
{
    if (t == NULL || tl_map_has(winners, t->program))
        return;
    winner *w = TL_NEW(s->arena, winner);
    w->candidate = t->candidate;
    w->candidate.careful = true;
    w->candidate.cold = subject->cold;
    tl_map_put(winners, t->program, w);
}

/* Which one is the i-th of all rounds: there and back again. */
static int turn_of(int i, int count)
{
    return i / count % 2 == 0 ? i % count : count - 1 - i % count;
}

static void measure_winners(study *s, const study_subject *subject, tl_map *winners)
{
    tl_diag diag = { 0 };
    tl_measurer *measurer;
    static tl_result result;
    int64_t ticket;
    int task, count = (int)tl_map_count(winners);
    tl_measure_options with = { .worker = s->options.worker,
                                .target = &s->target,
                                .threads = (int)s->options.threads,
                                .constant_bytes = subject->constant_bytes,
                                .seed = 1 };
    bench_must(tl_measurer_create(&with, &measurer, &diag), &diag);
    bench_must(tl_measurer_add_task(measurer, subject->task.measure, &task, &diag), &diag);
    /* the first one is what the others are timed beside: its own time is no ratio */
    const winner *beside = tl_map_at(winners, 0).value;
    bench_must(tl_measurer_submit(measurer, task, &beside->candidate, 1, &ticket, &diag), &diag);
    for (int i = 0; i < ROUNDS * count; i++) {
        const winner *w = tl_map_at(winners, (size_t)turn_of(i, count)).value;
        bench_must(tl_measurer_submit(measurer, task, &w->candidate, 1, &ticket, &diag), &diag);
    }
    bench_must(tl_measurer_next(measurer, -1, &result, &diag), &diag);
    for (int i = 0; i < ROUNDS * count; i++) {
        winner *w = tl_map_at(winners, (size_t)turn_of(i, count)).value;
        bench_must(tl_measurer_next(measurer, -1, &result, &diag), &diag);
        w->score_ns[i / count] = result.status == TL_RECORD_OK ? result.score_ns : 0;
    }
    tl_measurer_destroy(measurer);
}

static double gain_of(const tl_map *winners, const study_trial *standard, const study_trial *t)
{
    const winner *a = standard != NULL ? tl_map_find(winners, standard->program) : NULL;
    const winner *b = t != NULL ? tl_map_find(winners, t->program) : NULL;
    double gains[ROUNDS];
    int count = 0;
    for (int r = 0; r < ROUNDS && a != NULL && b != NULL; r++)
        if (a->score_ns[r] > 0 && b->score_ns[r] > 0)
            gains[count++] = a->score_ns[r] / b->score_ns[r];
    return count > 0 ? tl_contest_median(gains, count) : 0;
}

static void check(study *s, const study_subject *subject)
{
    tl_map *winners = tl_map_create(s->arena);
    int few = (int)s->options.few;
    for (int i = 0; i < s->run_count; i++) {
        const study_run *run = &s->runs[i];
        if (run->subject != subject)
            continue;
        add_winner(s, subject, winners, best_of(run, run->count, true));
        add_winner(s, subject, winners, study_best(run, few));
        add_winner(s, subject, winners, study_best(run, run->count));
    }
    measure_winners(s, subject, winners);
    for (int i = 0; i < s->run_count; i++) {
        study_run *run = &s->runs[i];
        if (run->subject != subject)
            continue;
        const study_trial *standard = best_of(run, run->count, true);
        run->checked_few = gain_of(winners, standard, study_best(run, few));
        run->checked_all = gain_of(winners, standard, study_best(run, run->count));
    }
}

void study_check_winners(study *s)
{
    for (int i = 0; i < s->subject_count && !study_is_late(s); i++)
        check(s, &s->subjects[i]);
}
