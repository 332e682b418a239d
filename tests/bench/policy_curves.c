/* tests/bench/policy_curves.c: gains over trials: of each run as JSON, of each arm as a table and a picture. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/random.h"
#include "runtime/base/sort.h"
#include "tests/bench/policy_study.h"

/* The best so far against the default schedule; 1 before anything was right. */
static double gain_after(const study_run *run, int trials)
{
    const study_trial *best = study_best(run, trials);
    double standard = study_default_ns(run);
    return best != NULL && standard > 0 ? fmax(standard / best->score_ns, 0) : 1;
}

/* Geometric means over an arm's runs. */
typedef struct {
    const study_arm *arm;
    int runs, checked, trials; /* trials: the most of a run */
    double few, all, think_ms, share;
} summary;

static summary summarize(const study *s, const study_arm *arm)
{
    summary m = { .arm = arm };
    double think = 0, trials = 0, wall = 0, fresh = 0;
    for (int i = 0; i < s->run_count; i++) {
        const study_run *run = &s->runs[i];
        if (run->arm != arm || run->count == 0)
            continue;
        m.runs++;
        m.trials = run->count > m.trials ? run->count : m.trials;
        if (run->checked_few > 0 && run->checked_all > 0) {
            m.few += log(run->checked_few);
            m.all += log(run->checked_all);
            m.checked++;
        }
        think += run->think_ns;
        trials += run->count;
        if (run->measured == run->count) {
            wall += run->wall_ns;
            fresh += run->think_ns;
        }
    }
    if (m.runs == 0)
        return m;
    m.few = m.checked > 0 ? exp(m.few / m.checked) : 0;
    m.all = m.checked > 0 ? exp(m.all / m.checked) : 0;
    m.think_ms = think / trials * 1e-6;
    m.share = wall > 0 ? fresh / wall : 0;
    return m;
}

static double mean_gain(const study *s, const study_arm *arm, int trials)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < s->run_count; i++)
        if (s->runs[i].arm == arm && s->runs[i].count > 0) {
            sum += log(gain_after(&s->runs[i], trials));
            count++;
        }
    return count > 0 ? exp(sum / count) : 1;
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static void print_run(const study_run *run)
{
    printf("{\"record\":\"curve\",\"task\":\"%s\",\"workload\":\"%s\",\"share\":%.4f,"
           "\"policy\":\"%s\",\"seed\":%d,\"trials\":%d,\"default_ns\":%.1f,\"gain\":%.4f,"
           "\"checked_few\":%.4f,\"checked_all\":%.4f,\"think_ms\":%.3f,\"curve\":[",
           run->subject->name, run->subject->task.workload->workload, run->subject->share,
           run->arm->name, run->seed, run->count, study_default_ns(run),
           gain_after(run, run->count), run->checked_few, run->checked_all,
           run->count > 0 ? run->think_ns / run->count * 1e-6 : 0);
    double shown = 0;
    for (int i = 1; i <= run->count; i++) {
        double gain = gain_after(run, i);
        if (gain > shown)
            printf("%s[%d,%.4f]", shown > 0 ? "," : "", i, gain);
        shown = fmax(gain, shown);
    }
    printf("]}\n");
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

static const int stops[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000 };
enum { STOPS = sizeof stops / sizeof *stops };

static void print_table(const study *s, const summary *all, int count)
{
    int most = 1;
    printf("\ngeometric mean of default over best so far, %d tasks\n  trials", s->subject_count);
    for (int p = 0; p < count; p++) {
        printf("%12s", all[p].arm->name);
        most = all[p].trials > most ? all[p].trials : most;
    }
    for (int i = 0; i < STOPS && stops[i] <= most; i++) {
        printf("\n%8d", stops[i]);
        for (int p = 0; p < count; p++)
            if (stops[i] <= all[p].trials)
                printf("%12.4f", mean_gain(s, all[p].arm, stops[i]));
            else
                printf("%12s", "");
    }
    printf("\n\n%-12s%6s%9s%16s%16s%14s%18s\n", "policy", "runs", "trials", "after few",
           "after all", "ms a trial", "part of the time");
    for (int p = 0; p < count; p++)
        printf("%-12s%6d%9d%16.4f%16.4f%14.2f%17.1f%%\n", all[p].arm->name, all[p].runs,
               all[p].trials, all[p].few, all[p].all, all[p].think_ms, 100 * all[p].share);
    printf("few: %d trials. Gains of this table are of the winners measured again.\n",
           (int)s->options.few);
}

/* Trials by their logarithm; an arm's letter is the first of its policy's name, a capital when it has models. */
enum { WIDTH = 61, HEIGHT = 14 };

static char letter_of(const study_arm *arm)
{
    return arm->has_models ? (char)toupper((unsigned char)arm->name[0]) : arm->name[0];
}

static int trials_at(int column, int most)
{
    return (int)lround(exp(log((double)most) * column / (WIDTH - 1)));
}

static void print_picture(const study *s, const summary *all, int count)
{
    char picture[HEIGHT][WIDTH + 1];
    int most = 2;
    double top = 1.001;
    for (int p = 0; p < count; p++) {
        most = all[p].trials > most ? all[p].trials : most;
        top = fmax(top, mean_gain(s, all[p].arm, all[p].trials));
    }
    for (int y = 0; y < HEIGHT; y++) {
        memset(picture[y], ' ', WIDTH);
        picture[y][WIDTH] = '\0';
    }
    for (int p = 0; p < count; p++)
        for (int x = 0; x < WIDTH && trials_at(x, most) <= all[p].trials; x++) {
            double gain = mean_gain(s, all[p].arm, trials_at(x, most));
            int y = (int)lround((gain - 1) / (top - 1) * (HEIGHT - 1));
            picture[y < 0 ? HEIGHT - 1 : HEIGHT - 1 - y][x] = letter_of(all[p].arm);
        }
    printf("\n");
    for (int y = 0; y < HEIGHT; y++)
        printf("%8.3f |%s\n", 1 + (top - 1) * (HEIGHT - 1 - y) / (HEIGHT - 1), picture[y]);
    char axis[WIDTH + 16];
    memset(axis, ' ', sizeof axis);
    axis[sizeof axis - 1] = '\0';
    for (int i = 0; i < STOPS && stops[i] <= most; i++) {
        char number[16];
        int x = (int)lround(log((double)stops[i]) / log((double)most) * (WIDTH - 1));
        int size = snprintf(number, sizeof number, "%d", stops[i]);
        memcpy(axis + x, number, (size_t)size);
    }
    printf("  trials  %s\n", axis);
}

static void print_tasks(const study *s)
{
    printf("\n%-34s%7s  %-12s%5s%8s%9s%12s%12s\n", "task", "share", "policy", "seed", "trials",
           "gain", "after few", "after all");
    for (int i = 0; i < s->run_count; i++) {
        const study_run *run = &s->runs[i];
        printf("%-34s%6.1f%%  %-12s%5d%8d%9.4f%12.4f%12.4f\n", run->subject->name,
               100 * run->subject->share, run->arm->name, run->seed, run->count,
               gain_after(run, run->count), run->checked_few, run->checked_all);
    }
}

/* --- what models are worth -------------------------------------------------------------------------------------------- */

/* Mean logarithm of a subject's gains over the seeds of an arm, after few or all trials; NAN: none was measured again. */
static double log_gain(const study *s, const study_subject *subject, const study_arm *arm, bool few)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < s->run_count; i++) {
        const study_run *run = &s->runs[i];
        double gain = few ? run->checked_few : run->checked_all;
        if (run->subject != subject || run->arm != arm || !(gain > 0))
            continue;
        sum += log(gain);
        count++;
    }
    return count > 0 ? sum / count : NAN;
}

/* The geometric mean over subjects of gains with models over gains without, and where it is with 95 % by bootstrap. */
static void compare_arms(const study *s, const study_arm *with, bool with_few,
                         const study_arm *blank, bool blank_few)
{
    enum { RESAMPLES = 2000 };
    static double means[RESAMPLES];
    tl_random random = tl_random_make(1);
    double *ratios = TL_NEW_ARRAY(s->arena, double, s->subject_count), sum = 0;
    int count = 0;
    for (int i = 0; i < s->subject_count; i++) {
        const study_subject *subject = &s->subjects[i];
        double ratio =
            log_gain(s, subject, with, with_few) - log_gain(s, subject, blank, blank_few);
        if (isnan(ratio))
            continue;
        ratios[count++] = ratio;
        sum += ratio;
    }
    if (count == 0)
        return;
    for (int r = 0; r < RESAMPLES; r++) {
        means[r] = 0;
        for (int i = 0; i < count; i++)
            means[r] += ratios[tl_random_below(&random, count)] / count;
    }
    tl_sort_doubles(means, RESAMPLES);
    printf("%-14s after %4d trials over %-10s after %4d: %.4f (%.4f to %.4f), %d kernels\n",
           with->name, with_few ? (int)s->options.few : with->trials, blank->name,
           blank_few ? (int)s->options.few : blank->trials, exp(sum / count),
           exp(means[RESAMPLES / 40]), exp(means[RESAMPLES - 1 - RESAMPLES / 40]), count);
}

static void print_worth(const study *s)
{
    for (int a = 0; a + 1 < s->arm_count; a++) {
        const study_arm *blank = &s->arms[a], *with = &s->arms[a + 1];
        if (with->policy != blank->policy)
            continue;
        printf("\ngains with models over gains without, geometric mean over kernels:\n");
        compare_arms(s, with, true, blank, true);
        compare_arms(s, with, true, blank, false);
        compare_arms(s, with, false, blank, false);
    }
}

void study_print(study *s)
{
    summary all[16];
    int count = 0;
    for (int a = 0; a < s->arm_count && count < 16; a++) {
        all[count] = summarize(s, &s->arms[a]);
        count += all[count].runs > 0;
    }
    for (int i = 0; i < s->run_count && s->options.json; i++)
        print_run(&s->runs[i]);
    if (s->options.json || count == 0)
        return;
    print_tasks(s);
    print_table(s, all, count);
    print_picture(s, all, count);
    print_worth(s);
}
