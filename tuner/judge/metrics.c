/* tuner/judge/metrics.c: metrics task by task, and their means with intervals. */
#include "tuner/judge/metrics.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"
#include "runtime/base/random.h"
#include "runtime/base/sort.h"
#include "tuner/dataset/dataset.h"

enum { POOL = 512, RETESTS = 8, RESAMPLES = 1000, MOST_TOP = 5 };
#define APART         0.04879016417 /* log(1.05) */
#define NEAR          0.26236426447 /* log(1.3) */
#define UNKNOWN_ERROR 0.02

const tl_metric_info tl_metric_infos[TL_METRIC_COUNT] = {
#define METRIC(name, text, words) [TL_METRIC_##name] = { text, words },
#include "tuner/judge/metrics.def"
#undef METRIC
};

/* A program of a task's pool, in doubles, so that what is equal stays so. */
typedef struct {
    double label, said;
    uint64_t order;
    int sampler;
} entry;

/* Per metric and task; NAN: the task has nothing of it. */
typedef struct {
    const tl_judged *judged;
    int *first, *next; /* programs of a task as lists; -1: the end */
    entry *pool;
    double *values;
    double *best_ns; /* of the task's programs; 0: the standard's time is not known */
    int64_t *pairs;  /* of the three metrics of pairs, or NULL */
} judging;

/* --- one task ----------------------------------------------------------------------------------------------------- */

static int by_order(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    return a->order != b->order ? (a->order < b->order ? -1 : 1) : 0;
}

static int by_label(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->label != b->label)
        return a->label < b->label ? -1 : 1;
    return by_order(x, y);
}

static int by_said(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->said != b->said)
        return a->said < b->said ? -1 : 1;
    return by_order(x, y);
}

/* The task's programs, or as many as a pool has, the same ones whatever is said of them. */
static int fill_pool(const judging *j, int task, const double *said)
{
    const tl_judged *d = j->judged;
    int count = 0;
    for (int p = j->first[task]; p >= 0; p = j->next[p]) {
        if (!isfinite(d->label[p]) || !isfinite(said[p]))
            continue;
        uint32_t name = d->program != NULL ? d->program[p] : (uint32_t)p;
        j->pool[count++] =
            (entry){ (double)d->label[p], said[p], tl_hash_bytes(&name, sizeof name, d->seed),
                     d->sampler != NULL ? d->sampler[p] : 0 };
    }
    qsort(j->pool, (size_t)count, sizeof *j->pool, by_order);
    return count < POOL ? count : POOL;
}

typedef struct {
    double right;
    int64_t count;
} pair_count;

static void compare_pair(const entry *a, const entry *b, double best, pair_count *of)
{
    if (fabs(a->label - b->label) < APART)
        return;
    double right = a->said == b->said ? 0.5 : (a->said < b->said) == (a->label < b->label) ? 1 : 0;
    int which = a->sampler == b->sampler ? TL_METRIC_PAIRS : TL_METRIC_PAIRS_ACROSS;
    of[which].right += right;
    of[which].count++;
    if (a->label <= best + NEAR && b->label <= best + NEAR) {
        of[TL_METRIC_PAIRS_NEAR].right += right;
        of[TL_METRIC_PAIRS_NEAR].count++;
    }
}

static void judge_pairs(const judging *j, int count, double best, double *out)
{
    pair_count of[TL_METRIC_COUNT] = { { 0, 0 } };
    for (int a = 0; a < count; a++)
        for (int b = 0; b < a; b++)
            compare_pair(&j->pool[a], &j->pool[b], best, of);
    for (int m = TL_METRIC_PAIRS; m <= TL_METRIC_PAIRS_NEAR; m++) {
        out[m] = of[m].count > 0 ? of[m].right / (double)of[m].count : NAN;
        if (j->pairs != NULL)
            j->pairs[m] += of[m].count;
    }
}

/* With the pool in the order of what is said. */
static void judge_top(const judging *j, int count, double best, double *out)
{
    double least = INFINITY, sum = 0;
    int top = count < MOST_TOP ? count : MOST_TOP;
    for (int k = 0; k < top; k++) {
        least = fmin(least, j->pool[k].label);
        sum += exp(best - least);
        if (k == 0)
            out[TL_METRIC_TOP_1] = exp(best - least);
    }
    out[TL_METRIC_TOP_5] = exp(best - least);
    out[TL_METRIC_PEAK_5] = sum / top;
}

/* Equal values share the mean of their ranks. */
static double correlate_ranks(entry *pool, int count)
{
    double *ranks = calloc(2 * (size_t)count + 1, sizeof *ranks);
    if (ranks == NULL)
        return NAN;
    double *of_label = ranks, *of_said = ranks + count;
    qsort(pool, (size_t)count, sizeof *pool, by_label);
    for (int i = 0, end; i < count; i = end) {
        for (end = i; end < count && pool[end].label == pool[i].label;)
            end++;
        for (int k = i; k < end; k++)
            of_label[k] = (i + end - 1) / 2.0;
    }
    for (int i = 0; i < count; i++) /* the rank by label travels with the entry */
        pool[i].order = (uint64_t)i;
    qsort(pool, (size_t)count, sizeof *pool, by_said);
    for (int i = 0, end; i < count; i = end) {
        for (end = i; end < count && pool[end].said == pool[i].said;)
            end++;
        for (int k = i; k < end; k++)
            of_said[k] = (i + end - 1) / 2.0;
    }
    double middle = (count - 1) / 2.0, xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < count; i++) {
        double x = of_said[i] - middle, y = of_label[pool[i].order] - middle;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    free(ranks);
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : xx == 0 && yy > 0 ? 0 : NAN;
}

static void judge_task(judging *j, int task, const double *said)
{
    double own[TL_METRIC_COUNT], best = INFINITY;
    int count = fill_pool(j, task, said);
    for (int m = 0; m < TL_METRIC_COUNT; m++)
        own[m] = NAN;
    for (int i = 0; i < count; i++)
        best = fmin(best, j->pool[i].label);
    if (count >= 2) {
        judge_pairs(j, count, best, own);
        qsort(j->pool, (size_t)count, sizeof *j->pool, by_said);
        judge_top(j, count, best, own);
        own[TL_METRIC_RANKS] = correlate_ranks(j->pool, count);
        j->best_ns[task] = exp(best) * (j->judged->task_ns != NULL ? j->judged->task_ns[task] : 0);
    }
    for (int m = 0; m < TL_METRIC_COUNT; m++)
        j->values[m * j->judged->task_count + task] = own[m];
}

/* --- means -------------------------------------------------------------------------------------------------------- */

/* Ratios of times have geometric means. */
static bool is_ratio(int metric)
{
    return metric == TL_METRIC_TOP_1 || metric == TL_METRIC_TOP_5 || metric == TL_METRIC_PEAK_5;
}

static tl_score mean_of(const double *units, int count, bool ratio, uint64_t seed)
{
    tl_score score = { NAN, NAN, NAN, count };
    double means[RESAMPLES], sum = 0;
    tl_random random = tl_random_make(seed ^ 0x626f6f74u);
    if (count == 0)
        return score;
    for (int i = 0; i < count; i++)
        sum += ratio ? log(units[i]) : units[i];
    for (int r = 0; r < RESAMPLES; r++) {
        double again = 0;
        for (int i = 0; i < count; i++) {
            double unit = units[tl_random_below(&random, count)];
            again += ratio ? log(unit) : unit;
        }
        means[r] = again / count;
    }
    tl_sort_doubles(means, RESAMPLES);
    score.value = sum / count;
    score.low = means[RESAMPLES * 25 / 1000];
    score.high = means[RESAMPLES * 975 / 1000 - 1];
    if (ratio) {
        score.value = exp(score.value);
        score.low = exp(score.low);
        score.high = exp(score.high);
    }
    return score;
}

/* A network's value: tasks by their share of its time; of ratios the sum of the best times over the sum of those
 * taken. */
static double value_of_network(const judging *j, const double *values, int metric, int network)
{
    const tl_judged *d = j->judged;
    double best = 0, sum = 0;
    for (int t = 0; t < d->task_count; t++) {
        double time = d->runs[(size_t)network * (size_t)d->task_count + (size_t)t] * j->best_ns[t];
        double value = values[metric * d->task_count + t];
        if (!(time > 0) || isnan(value))
            continue;
        best += time;
        sum += is_ratio(metric) ? time / value : time * value;
    }
    return best > 0 ? (is_ratio(metric) ? best / sum : sum / best) : NAN;
}

static void score_tasks(const judging *j, const double *values, double *units, tl_scores *out)
{
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        int count = 0;
        for (int t = 0; t < j->judged->task_count; t++)
            if (!isnan(values[m * j->judged->task_count + t]))
                units[count++] = values[m * j->judged->task_count + t];
        out->of[m] = mean_of(units, count, is_ratio(m), j->judged->seed);
    }
}

static void score_networks(const judging *j, const double *values, double *units, tl_scores *out)
{
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        int count = 0;
        for (int n = 0; n < j->judged->network_count; n++) {
            double value = value_of_network(j, values, m, n);
            if (!isnan(value))
                units[count++] = value;
        }
        out->of[m] = mean_of(units, count, is_ratio(m), j->judged->seed);
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void judge_all(judging *j, const double *said)
{
    for (int t = 0; t < j->judged->task_count; t++)
        judge_task(j, t, said);
}

static double error_of(const tl_judged *d, int p)
{
    double error = d->error != NULL ? (double)d->error[p] : 0;
    bool exact = d->sampler != NULL && d->sampler[p] == TL_SAMPLER_DEFAULT;
    return error > 0 ? error : exact ? 0 : UNKNOWN_ERROR;
}

/* What a second measurement would say: it and the first differ by the errors of both. */
static void simulate_again(const tl_judged *d, tl_random *random, double *said)
{
    for (int p = 0; p < d->count; p++)
        said[p] = (double)d->label[p] + sqrt(2) * error_of(d, p) * tl_random_normal(random);
}

static void find_ceiling(judging *j, double *said, double *sums, double *units, tl_judgement *out)
{
    const tl_judged *d = j->judged;
    int cells = TL_METRIC_COUNT * d->task_count;
    tl_random random = tl_random_make(d->seed ^ 0x7265746573u);
    memset(sums, 0, (size_t)cells * sizeof *sums);
    for (int r = 0; r < RETESTS; r++) {
        simulate_again(d, &random, said);
        judge_all(j, said);
        for (int i = 0; i < cells; i++)
            sums[i] += j->values[i] / RETESTS;
    }
    score_tasks(j, sums, units, &out->ceiling);
    score_networks(j, sums, units, &out->networks_ceiling);
}

static void judge_twice(judging *j, const float *mean, double *said, double *units,
                        tl_judgement *out)
{
    const tl_judged *d = j->judged;
    for (int p = 0; p < d->count; p++) {
        bool twice = isfinite(d->again[p]) && isfinite(d->label[p]);
        said[p] = twice ? (double)mean[p] : NAN;
        out->twice_count += twice;
    }
    judge_all(j, said);
    score_tasks(j, j->values, units, &out->twice);
    for (int p = 0; p < d->count; p++)
        said[p] = (double)d->again[p];
    judge_all(j, said);
    score_tasks(j, j->values, units, &out->twice_ceiling);
}

static void judge(judging *j, const float *mean, double *said, double *sums, double *units,
                  tl_judgement *out)
{
    const tl_judged *d = j->judged;
    for (int t = 0; t < d->task_count; t++)
        j->first[t] = -1;
    for (int p = d->count - 1; p >= 0; p--) {
        j->next[p] = j->first[d->task[p]];
        j->first[d->task[p]] = p;
        said[p] = (double)mean[p];
    }
    j->pairs = out->pairs;
    judge_all(j, said);
    j->pairs = NULL;
    if (d->task_values != NULL)
        memcpy(d->task_values, j->values,
               sizeof *j->values * TL_METRIC_COUNT * (size_t)d->task_count);
    for (int i = 0; d->network_values != NULL && i < TL_METRIC_COUNT * d->network_count; i++)
        d->network_values[i] =
            value_of_network(j, j->values, i / d->network_count, i % d->network_count);
    score_tasks(j, j->values, units, &out->model);
    score_networks(j, j->values, units, &out->networks);
    find_ceiling(j, said, sums, units, out);
    if (d->again != NULL)
        judge_twice(j, mean, said, units, out);
}

tl_status tl_judge(const tl_judged *d, const float *mean, tl_judgement *out, tl_diag *diag)
{
    size_t programs = (size_t)d->count + 1, tasks = (size_t)d->task_count + 1;
    size_t units = tasks + (size_t)d->network_count;
    judging j = { .judged = d,
                  .first = calloc(tasks, sizeof *j.first),
                  .next = calloc(programs, sizeof *j.next),
                  .pool = calloc(programs, sizeof *j.pool),
                  .values = calloc(tasks * TL_METRIC_COUNT, sizeof *j.values),
                  .best_ns = calloc(tasks, sizeof *j.best_ns) };
    double *said = calloc(programs, sizeof *said), *unit = calloc(units, sizeof *unit);
    double *sums = calloc(tasks * TL_METRIC_COUNT, sizeof *sums);
    bool has_room = j.first != NULL && j.next != NULL && j.pool != NULL && j.values != NULL &&
                    j.best_ns != NULL && said != NULL && unit != NULL && sums != NULL;
    *out = (tl_judgement){ 0 };
    if (has_room)
        judge(&j, mean, said, sums, unit, out);
    free(j.first);
    free(j.next);
    free(j.pool);
    free(j.values);
    free(j.best_ns);
    free(said);
    free(unit);
    free(sums);
    return has_room ? TL_OK : tl_fail(diag, TL_NO_MEMORY, "judging: out of memory");
}
