/* tuner/cost/cost_trees.c: gradient-boosted trees by XGBoost, as Ansor uses them: a tree sees one statement, with
 * the tokens of its workload and machine where there are such, a program's score is the sum over its statements,
 * and the error of the sum is everyone's ("pack-sum"): the gradient of each row is sum - label, weighted by the
 * label, so that fast programs are learned best. Its labels are the task's least time over the program's: 1 is the
 * best, 0 what failed. Learning starts anew each time. All rows of a program move at once, so each may take its
 * share of the step only: the second derivative of a row is the weight times their number, which bounds that of the
 * sum. (Ansor has the weight alone: from some ten statements on, as an unrolled or fused program has them, steps of
 * 0.2 go too far, and the sums grow without end.) Trees start from 0 and not from XGBoost's 0.5 a row: programs
 * differ in their number of rows. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>
#include "tuner/cost/cost_private.h"

/* Ansor trains up to 10,000 rounds of depth 10 until the error stands still for 50, with gamma 0.001: the error of the
 * training set hardly falls after the first hundred, and a smaller gamma tells the best from the second best. */
enum { ROUNDS = 100, DEPTH = 8, STALE = 20 };
static const double least_gain = 1e-4, least_weight = 0.05;
static const char *const settings[][2] = {
    { "gamma", "0.0001" }, { "min_child_weight", "0" }, { "eta", "0.2" },    { "nthread", "1" },
    { "verbosity", "0" },  { "tree_method", "hist" },   { "max_bin", "64" }, { "base_score", "0" },
};

typedef struct {
    tl_cost_model model; /* first */
    int rounds, depth;
    double variance;       /* of log(time), as it was left of what it learned from */
    BoosterHandle booster; /* NULL: learned nothing */
} trees_model;

enum { SETTINGS = 2 };
static void list_settings(const trees_model *model, tl_cost_setting out[SETTINGS])
{
    trees_model *m = (trees_model *)model;
    out[0] = (tl_cost_setting){ "rounds", &m->rounds, 1, 10000 };
    out[1] = (tl_cost_setting){ "depth", &m->depth, 1, 16 };
}

static void print_settings(const tl_cost_model *model, tl_text *out)
{
    tl_cost_setting table[SETTINGS];
    list_settings((const trees_model *)model, table);
    tl_cost_settings_print(table, SETTINGS, out);
}

static tl_status complain(tl_diag *diag)
{
    return tl_fail(diag, TL_INTERNAL, "XGBoost: %.300s", XGBGetLastError());
}

static tl_status create(const char *text, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    trees_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    *m = (trees_model){ .model = { .type = &tl_cost_trees, .seed = seed },
                        .rounds = ROUNDS,
                        .depth = DEPTH,
                        .variance = 1 };
    tl_cost_setting table[SETTINGS];
    list_settings(m, table);
    tl_status status = tl_cost_settings_read("trees", text, table, SETTINGS, diag);
    if (status != TL_OK)
        free(m);
    else
        *out = &m->model;
    return status;
}

static void destroy(tl_cost_model *model)
{
    trees_model *m = (trees_model *)model;
    if (m->booster != NULL)
        XGBoosterFree(m->booster);
    free(m);
}

/* A score as a logarithm of the time: of what is near 0 or below it the line goes on that the logarithm has at
 * `least_score`, so that scores keep their order. */
static double time_of_score(double score)
{
    static const double least_score = 0.01;
    return score > least_score ? -log(score)
                               : (least_score - score) / least_score - log(least_score);
}

/* --- programs as XGBoost wants them: rows beside each other --------------------------------------------------------- */

typedef struct {
    int count, row_count, width;
    int *first_row; /* count + 1 of them */
    float *rows;
    DMatrixHandle matrix; /* NULL: of no rows */
} table;

static void free_table(table *t)
{
    if (t->matrix != NULL)
        XGDMatrixFree(t->matrix);
    free(t->first_row);
    free(t->rows);
}

static void add_columns(float **to, const float *from, int width)
{
    if (from != NULL)
        memcpy(*to, from, sizeof(float) * (size_t)width);
    *to += from != NULL ? width : 0;
}

/* The programs for which `wanted` is true (NULL: all). */
static tl_status make_table(const tl_cost_samples *s, const bool *wanted, table *t, tl_diag *diag)
{
    const int workload = s->shape.workload.width, machine = s->shape.machine.width;
    size_t rows = 0;
    *t = (table){ .width = s->shape.row.width + workload + machine };
    for (int p = 0; p < s->count; p++)
        rows += wanted == NULL || wanted[p] ? (size_t)s->row_count[p] : 0;
    t->first_row = calloc((size_t)s->count + 1, sizeof(int));
    t->rows = malloc(sizeof(float) * (size_t)t->width * rows + 1);
    if (t->first_row == NULL || t->rows == NULL || rows > INT32_MAX)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    float *at = t->rows;
    for (int p = 0; p < s->count; p++) {
        if (wanted != NULL && !wanted[p])
            continue;
        int task = s->task[p], domain = s->domain != NULL ? s->domain[task] : 0;
        for (int r = 0; r < s->row_count[p]; r++) {
            add_columns(&at, s->rows + (size_t)(s->first_row[p] + r) * (size_t)s->shape.row.width,
                        s->shape.row.width);
            add_columns(&at, workload > 0 ? s->workloads + (size_t)task * (size_t)workload : NULL,
                        workload);
            add_columns(&at, machine > 0 ? s->machines + (size_t)domain * (size_t)machine : NULL,
                        machine);
        }
        t->first_row[++t->count] = t->row_count += s->row_count[p];
    }
    if (t->row_count > 0 && XGDMatrixCreateFromMat(t->rows, (bst_ulong)t->row_count,
                                                   (bst_ulong)t->width, NAN, &t->matrix) != 0)
        return complain(diag);
    return TL_OK;
}

/* Scores of the rows, summed by program. */
static tl_status sum_rows(BoosterHandle booster, const table *t, bool training, float *sums,
                          tl_diag *diag)
{
    bst_ulong count;
    const float *rows;
    if (XGBoosterPredict(booster, t->matrix, 1, 0, training, &count, &rows) != 0)
        return complain(diag);
    for (int p = 0; p < t->count; p++) {
        double sum = 0;
        for (int r = t->first_row[p]; r < t->first_row[p + 1]; r++)
            sum += (double)rows[r];
        sums[p] = (float)sum;
    }
    return TL_OK;
}

static bool predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                    float *variance)
{
    trees_model *m = (trees_model *)model;
    table t = { 0 };
    if (m->booster == NULL)
        return false;
    bool done = make_table(programs, NULL, &t, NULL) == TL_OK && t.matrix != NULL &&
                sum_rows(m->booster, &t, false, mean, NULL) == TL_OK;
    for (int p = 0; p < programs->count && done; p++) {
        mean[p] = (float)time_of_score((double)mean[p]);
        variance[p] = (float)m->variance;
    }
    free_table(&t);
    return done;
}

/* --- learning --------------------------------------------------------------------------------------------------------- */

typedef struct {
    table table;
    bool *wanted;                 /* programs that were measured */
    float *label, *weight, *sums; /* one a program */
    float *gradient, *hessian;    /* one a row */
} lesson;

static void free_lesson(lesson *l)
{
    free_table(&l->table);
    free(l->wanted);
    free(l->label);
    free(l->weight);
    free(l->sums);
    free(l->gradient);
    free(l->hessian);
}

/* Labels in (0, 1], by the least of each task. */
static tl_status make_lesson(const tl_cost_samples *s, lesson *l, tl_diag *diag)
{
    size_t count = (size_t)s->count + 1;
    float *least = malloc(sizeof *least * ((size_t)s->task_count + 1));
    *l = (lesson){ .wanted = calloc(count, sizeof(bool)),
                   .label = calloc(count, sizeof(float)),
                   .weight = calloc(count, sizeof(float)),
                   .sums = calloc(count, sizeof(float)) };
    tl_status status = TL_OK;
    if (least == NULL || l->wanted == NULL || l->label == NULL || l->weight == NULL ||
        l->sums == NULL)
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    for (int t = 0; t < s->task_count && status == TL_OK; t++)
        least[t] = INFINITY;
    for (int p = 0; p < s->count && status == TL_OK; p++)
        least[s->task[p]] = fminf(least[s->task[p]], s->label[p]);
    for (int p = 0, at = 0; p < s->count && status == TL_OK; p++) {
        l->wanted[p] = !isnan(s->label[p]) && s->label[p] > -INFINITY;
        if (!l->wanted[p])
            continue;
        l->label[at] =
            isfinite(s->label[p]) ? (float)exp((double)least[s->task[p]] - (double)s->label[p]) : 0;
        l->weight[at++] = s->weight != NULL ? s->weight[p] : 1;
    }
    free(least);
    if (status == TL_OK)
        status = make_table(s, l->wanted, &l->table, diag);
    size_t rows = (size_t)l->table.row_count + 1;
    l->gradient = calloc(rows, sizeof(float));
    l->hessian = calloc(rows, sizeof(float));
    if (status == TL_OK && (l->gradient == NULL || l->hessian == NULL))
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return status;
}

static double weight_of(const lesson *l, int program)
{
    return (double)l->weight[program] * fmax((double)l->label[program], least_weight);
}

/* The weighted mean error; fills gradients. */
static double grade(lesson *l)
{
    double error = 0, weight = 0;
    for (int p = 0; p < l->table.count; p++) {
        double w = weight_of(l, p), wrong = (double)l->sums[p] - (double)l->label[p];
        error += w * wrong * wrong;
        weight += w;
        int first = l->table.first_row[p], end = l->table.first_row[p + 1];
        for (int r = first; r < end; r++) {
            l->gradient[r] = (float)(w * wrong);
            l->hessian[r] = (float)(w * (end - first));
        }
    }
    return weight > 0 ? sqrt(error / weight) : 0;
}

static tl_status boost(BoosterHandle booster, lesson *l, int rounds, const tl_train_options *o,
                       tl_diag *diag)
{
    double least = 1e300;
    bst_ulong rows = (bst_ulong)l->table.row_count;
    for (int round = 0, stale = 0; round < rounds && stale < STALE; round++) {
        if (o->stop != NULL && *o->stop != 0)
            return tl_fail(diag, TL_INTERRUPTED, "interrupted");
        TL_TRY(sum_rows(booster, &l->table, true, l->sums, diag));
        double error = grade(l);
        stale = error < least - least_gain ? 0 : stale + 1;
        least = error < least - least_gain ? error : least;
        if (XGBoosterBoostOneIter(booster, l->table.matrix, l->gradient, l->hessian, rows) != 0)
            return complain(diag);
        if (o->listen != NULL)
            o->listen(o->user, &(tl_train_progress){ .epoch = round + 1,
                                                     .epochs = rounds,
                                                     .loss = error,
                                                     .held_out = NAN,
                                                     .least = NAN });
    }
    return TL_OK;
}

/* How far log(time) was off, of what did not fail. */
static double variance_of(const lesson *l)
{
    double sum = 0, count = 0;
    for (int p = 0; p < l->table.count; p++) {
        if (l->label[p] <= 0)
            continue;
        double wrong = time_of_score((double)l->sums[p]) - time_of_score((double)l->label[p]);
        sum += wrong * wrong;
        count++;
    }
    return count > 0 ? fmin(fmax(sum / count, 1e-4), 1e4) : 1;
}

static tl_status make_booster(const trees_model *m, const DMatrixHandle *matrix, BoosterHandle *out,
                              tl_diag *diag)
{
    char digits[24], depth[24];
    if (XGBoosterCreate(matrix, matrix != NULL, out) != 0)
        return complain(diag);
    snprintf(digits, sizeof digits, "%u", (unsigned)(m->model.seed & 0x7fffffff));
    snprintf(depth, sizeof depth, "%d", m->depth);
    int failed = XGBoosterSetParam(*out, "seed", digits);
    failed |= XGBoosterSetParam(*out, "max_depth", depth);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        failed |= XGBoosterSetParam(*out, settings[i][0], settings[i][1]);
    if (failed == 0)
        return TL_OK;
    XGBoosterFree(*out);
    return complain(diag);
}

static tl_status learn(trees_model *m, lesson *l, const tl_cost_samples *s,
                       const tl_train_options *o, tl_diag *diag)
{
    BoosterHandle booster;
    TL_TRY(make_booster(m, &l->table.matrix, &booster, diag));
    tl_status status = boost(booster, l, m->rounds, o, diag);
    if (status == TL_OK)
        status = sum_rows(booster, &l->table, false, l->sums, diag);
    if (status != TL_OK) {
        XGBoosterFree(booster);
        return status;
    }
    if (m->booster != NULL)
        XGBoosterFree(m->booster);
    m->booster = booster;
    m->variance = variance_of(l);
    m->model.shape = s->shape;
    m->model.shape.decision = (tl_columns){ 0 }; /* which it does not read */
    return TL_OK;
}

static tl_status train(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_cost_samples *held_out, const tl_train_options *options,
                       tl_diag *diag)
{
    (void)held_out;
    if (samples->shape.row.width == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "boosted trees learn from rows of features");
    lesson l;
    tl_status status = make_lesson(samples, &l, diag);
    if (status == TL_OK && l.table.row_count > 0)
        status = learn((trees_model *)model, &l, samples, options, diag);
    free_lesson(&l);
    return status;
}

/* Trees that were grown stay; what is new is learned by growing them anew, as Ansor does. */
static tl_status adapt(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_train_options *options, tl_diag *diag)
{
    return train(model, samples, NULL, options, diag);
}

/* --- what a file keeps ------------------------------------------------------------------------------------------------ */

static tl_status write_trees(const tl_cost_model *model, tl_text *out, tl_diag *diag)
{
    const trees_model *m = (const trees_model *)model;
    bst_ulong size = 0;
    const char *bytes = "";
    if (m->booster != NULL &&
        XGBoosterSaveModelToBuffer(m->booster, "{\"format\": \"ubj\"}", &size, &bytes) != 0)
        return complain(diag);
    tl_text_add_bytes(out, &m->variance, sizeof m->variance);
    tl_text_add_bytes(out, bytes, size);
    return TL_OK;
}

static tl_status read_trees(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag)
{
    trees_model *m = (trees_model *)model;
    if (size < sizeof m->variance)
        return tl_fail(diag, TL_BAD_TEXT, "it ends before its trees");
    double variance;
    memcpy(&variance, bytes, sizeof variance);
    if (!(variance > 0 && variance <= 1e4))
        return tl_fail(diag, TL_BAD_TEXT, "its variance is not above 0, or no number");
    m->variance = variance;
    size -= sizeof variance;
    if (size == 0)
        return TL_OK;
    TL_TRY(make_booster(m, NULL, &m->booster, diag));
    if (XGBoosterLoadModelFromBuffer(m->booster, (const char *)bytes + sizeof variance,
                                     (bst_ulong)size) != 0) {
        complain(diag);
        return TL_BAD_TEXT;
    }
    return TL_OK;
}

static void describe(const tl_cost_model *model, tl_text *out)
{
    const trees_model *m = (const trees_model *)model;
    tl_text_format(out, "%d rounds of boosting, trees of depth %d; ", m->rounds, m->depth);
    if (m->booster != NULL)
        tl_text_format(out, "log(time) +- %.2f of what it learned from\n", sqrt(m->variance));
    else
        tl_text_add(out, "learned nothing yet\n");
}

const tl_cost_model_type tl_cost_trees = {
    .name = "trees",
    .create = create,
    .destroy = destroy,
    .train = train,
    .adapt = adapt,
    .predict = predict,
    .gradients = tl_cost_no_gradients,
    .parameters = tl_cost_no_parameters,
    .write = write_trees,
    .read = read_trees,
    .describe = describe,
    .settings = print_settings,
};
