/* tuner/cost/ask_together.c: several cost models asked as one.
 *
 * A model's means are up to a constant of each task, so that of each task every model's means are brought to an average of 0
 * first. Then the mean of a program is that of the models, and its variance has two parts: what they expect themselves, on
 * average, and how far they are apart, which is what each of them does not know of its own ignorance. */
#include <stdlib.h>
#include "tuner/cost/cost_model.h"

/* Takes from each mean the average of its task. */
static void centre(const tl_cost_samples *programs, float *mean, double *sums, int *counts)
{
    for (int t = 0; t < programs->task_count; t++) {
        sums[t] = 0;
        counts[t] = 0;
    }
    for (int p = 0; p < programs->count; p++) {
        sums[programs->task[p]] += (double)mean[p];
        counts[programs->task[p]]++;
    }
    for (int p = 0; p < programs->count; p++)
        mean[p] -= (float)(sums[programs->task[p]] / counts[programs->task[p]]);
}

typedef struct {
    float *mean, *variance; /* of the model that is asked */
    double *sum, *square, *own;
    double *sums; /* by task */
    int *counts;
} scratch;

static bool allocate(scratch *s, int programs, int tasks)
{
    size_t n = (size_t)programs + 1, t = (size_t)tasks + 1;
    s->mean = calloc(n, sizeof *s->mean);
    s->variance = calloc(n, sizeof *s->variance);
    s->sum = calloc(3 * n, sizeof *s->sum);
    s->sums = calloc(t, sizeof *s->sums);
    s->counts = calloc(t, sizeof *s->counts);
    if (s->mean == NULL || s->variance == NULL || s->sum == NULL || s->sums == NULL ||
        s->counts == NULL)
        return false;
    s->square = s->sum + n;
    s->own = s->sum + 2 * n;
    return true;
}

static void release(scratch *s)
{
    free(s->mean);
    free(s->variance);
    free(s->sum);
    free(s->sums);
    free(s->counts);
}

static void add(scratch *s, const tl_cost_samples *programs)
{
    centre(programs, s->mean, s->sums, s->counts);
    for (int p = 0; p < programs->count; p++) {
        s->sum[p] += (double)s->mean[p];
        s->square[p] += (double)s->mean[p] * (double)s->mean[p];
        s->own[p] += (double)s->variance[p];
    }
}

/* Zeros and ones where nobody has learned anything. */
static void finish(const scratch *s, int programs, int models, float *mean, float *variance)
{
    for (int p = 0; p < programs; p++) {
        double average = models > 0 ? s->sum[p] / models : 0;
        double apart = models > 0 ? s->square[p] / models - average * average : 0;
        mean[p] = (float)average;
        if (variance != NULL)
            variance[p] = models > 0 ? (float)(s->own[p] / models + (apart > 0 ? apart : 0)) : 1;
    }
}

bool tl_cost_models_predict(tl_cost_model *const *models, int count,
                            const tl_cost_samples *programs, float *mean, float *variance)
{
    scratch s = { 0 };
    int asked = 0;
    if (count == 1)
        return tl_cost_model_predict(models[0], programs, mean, variance);
    if (allocate(&s, programs->count, programs->task_count))
        for (int i = 0; i < count; i++)
            if (tl_cost_model_predict(models[i], programs, s.mean, s.variance)) {
                add(&s, programs);
                asked++;
            }
    if (asked > 0)
        finish(&s, programs->count, asked, mean, variance);
    else
        for (int p = 0; p < programs->count; p++) {
            mean[p] = 0;
            if (variance != NULL)
                variance[p] = 1;
        }
    release(&s);
    return asked > 0;
}
