/* tuner/cost/cost_trees.c: gradient-boosted trees by XGBoost, as Ansor uses them: a tree sees one statement, a program's
 * score is the sum over its statements, and the error of the sum is everyone's ("pack-sum"): the gradient of each row is
 * sum - label, weighted by the label, so that fast programs are learned best. Learning starts anew each time.
 * All rows of a program move at once, so each may take its share of the step only: the second derivative of a row is the
 * weight times their number, which bounds that of the sum. (Ansor has the weight alone: from some ten statements on, as
 * an unrolled or fused program has them, steps of 0.2 go too far, and the sums grow without end.)
 * Trees start from 0 and not from XGBoost's 0.5 a row: programs differ in their number of rows. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>
#include "tuner/cost/cost_private.h"

/* Ansor trains up to 10,000 rounds of depth 10 until the error stands still for 50, with gamma 0.001: the error of the
 * training set hardly falls after the first hundred, and a smaller gamma tells the best from the second best. */
enum { ROUNDS = 100, STALE = 20 };
static const double least_gain = 1e-4, least_weight = 0.05;
static const char *const settings[][2] = {
    { "max_depth", "8" },      { "gamma", "0.0001" }, { "min_child_weight", "0" },
    { "eta", "0.2" },          { "nthread", "1" },    { "verbosity", "0" },
    { "tree_method", "hist" }, { "max_bin", "64" },   { "base_score", "0" },
};

typedef struct {
    tl_cost_model model; /* first */
    uint64_t seed;
    BoosterHandle booster; /* NULL: learned nothing */
} trees_model;

static tl_status complain(tl_diag *diag)
{
    return tl_fail(diag, TL_INTERNAL, "XGBoost: %.300s", XGBGetLastError());
}

static tl_status create(uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    trees_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    m->model.type = &tl_cost_trees;
    m->seed = seed;
    *out = &m->model;
    return TL_OK;
}

static void destroy(tl_cost_model *model)
{
    trees_model *m = (trees_model *)model;
    if (m->booster != NULL)
        XGBoosterFree(m->booster);
    free(m);
}

static tl_status make_matrix(const tl_feature_set *programs, DMatrixHandle *out, tl_diag *diag)
{
    int rows = programs->first_row[programs->count];
    if (XGDMatrixCreateFromMat(programs->rows, (bst_ulong)rows, (bst_ulong)programs->width, NAN,
                               out) != 0)
        return complain(diag);
    return TL_OK;
}

/* Scores of the rows, summed by program. */
static tl_status sum_rows(BoosterHandle booster, DMatrixHandle matrix,
                          const tl_feature_set *programs, bool training, float *sums, tl_diag *diag)
{
    bst_ulong count;
    const float *rows;
    if (XGBoosterPredict(booster, matrix, 1, 0, training, &count, &rows) != 0)
        return complain(diag);
    for (int p = 0; p < programs->count; p++) {
        double sum = 0;
        for (int r = programs->first_row[p]; r < programs->first_row[p + 1]; r++)
            sum += (double)rows[r];
        sums[p] = (float)sum;
    }
    return TL_OK;
}

static bool predict(tl_cost_model *model, const tl_feature_set *programs, float *score)
{
    trees_model *m = (trees_model *)model;
    DMatrixHandle matrix;
    if (programs->count > 0)
        memset(score, 0, sizeof *score * (size_t)programs->count);
    if (m->booster == NULL || programs->count == 0 || programs->first_row[programs->count] == 0 ||
        make_matrix(programs, &matrix, NULL) != TL_OK)
        return false;
    tl_status status = sum_rows(m->booster, matrix, programs, false, score, NULL);
    XGDMatrixFree(matrix);
    return status == TL_OK;
}

/* --- learning --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const tl_feature_set *programs;
    const float *label;
    float *sums;               /* one a program */
    float *gradient, *hessian; /* one a row */
} lesson;

static double weight_of(float label)
{
    return fmax((double)label, least_weight);
}

/* The weighted mean error; fills gradients. */
static double grade(lesson *l)
{
    double error = 0, weight = 0;
    for (int p = 0; p < l->programs->count; p++) {
        double w = weight_of(l->label[p]), wrong = (double)l->sums[p] - (double)l->label[p];
        error += w * wrong * wrong;
        weight += w;
        int first = l->programs->first_row[p], end = l->programs->first_row[p + 1];
        for (int r = first; r < end; r++) {
            l->gradient[r] = (float)(w * wrong);
            l->hessian[r] = (float)(w * (end - first));
        }
    }
    return sqrt(error / weight);
}

static tl_status boost(BoosterHandle booster, DMatrixHandle matrix, lesson *l, tl_diag *diag)
{
    assert(l->programs->count > 0);
    double least = 1e300;
    int rows = l->programs->first_row[l->programs->count];
    for (int round = 0, stale = 0; round < ROUNDS && stale < STALE; round++) {
        TL_TRY(sum_rows(booster, matrix, l->programs, true, l->sums, diag));
        double error = grade(l);
        stale = error < least - least_gain ? 0 : stale + 1;
        least = error < least - least_gain ? error : least;
        if (XGBoosterBoostOneIter(booster, matrix, l->gradient, l->hessian, (bst_ulong)rows) != 0)
            return complain(diag);
    }
    return TL_OK;
}

static tl_status make_booster(const DMatrixHandle *matrix, uint64_t seed, BoosterHandle *out,
                              tl_diag *diag)
{
    char digits[24];
    if (XGBoosterCreate(matrix, matrix != NULL, out) != 0)
        return complain(diag);
    snprintf(digits, sizeof digits, "%u", (unsigned)(seed & 0x7fffffff));
    int failed = XGBoosterSetParam(*out, "seed", digits);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        failed |= XGBoosterSetParam(*out, settings[i][0], settings[i][1]);
    if (failed == 0)
        return TL_OK;
    XGBoosterFree(*out);
    return complain(diag);
}

static tl_status learn(trees_model *m, DMatrixHandle matrix, lesson *l, tl_diag *diag)
{
    BoosterHandle booster;
    TL_TRY(make_booster(&matrix, m->seed, &booster, diag));
    tl_status status = boost(booster, matrix, l, diag);
    if (status != TL_OK) {
        XGBoosterFree(booster);
        return status;
    }
    if (m->booster != NULL)
        XGBoosterFree(m->booster);
    m->booster = booster;
    return TL_OK;
}

static tl_status update(tl_cost_model *model, const tl_feature_set *programs, const float *label,
                        tl_diag *diag)
{
    trees_model *m = (trees_model *)model;
    DMatrixHandle matrix;
    if (programs->count == 0 || programs->first_row[programs->count] == 0)
        return TL_OK;
    size_t rows = (size_t)programs->first_row[programs->count], count = (size_t)programs->count;
    TL_TRY(make_matrix(programs, &matrix, diag));
    lesson l = { programs, label, calloc(count, sizeof(float)), calloc(rows, sizeof(float)),
                 calloc(rows, sizeof(float)) };
    tl_status status = l.sums != NULL && l.gradient != NULL && l.hessian != NULL
                           ? learn(m, matrix, &l, diag)
                           : tl_fail(diag, TL_NO_MEMORY, "out of memory");
    free(l.sums);
    free(l.gradient);
    free(l.hessian);
    XGDMatrixFree(matrix);
    return status;
}

/* --- files ------------------------------------------------------------------------------------------------------------ */

static tl_status save(const tl_cost_model *model, const char *path, tl_diag *diag)
{
    const trees_model *m = (const trees_model *)model;
    bst_ulong size = 0;
    const char *bytes = "";
    if (m->booster != NULL &&
        XGBoosterSaveModelToBuffer(m->booster, "{\"format\": \"ubj\"}", &size, &bytes) != 0)
        return complain(diag);
    return tl_cost_file_write(path, "trees", bytes, size, diag);
}

static tl_status load_bytes(trees_model *m, const void *bytes, size_t size, tl_diag *diag)
{
    BoosterHandle booster = NULL;
    if (size > 0) {
        TL_TRY(make_booster(NULL, m->seed, &booster, diag));
        if (XGBoosterLoadModelFromBuffer(booster, bytes, (bst_ulong)size) != 0) {
            XGBoosterFree(booster);
            return complain(diag);
        }
    }
    if (m->booster != NULL)
        XGBoosterFree(m->booster);
    m->booster = booster;
    return TL_OK;
}

static tl_status load(tl_cost_model *model, const char *path, tl_diag *diag)
{
    tl_text file = { 0 };
    const void *bytes;
    size_t size;
    tl_status status = tl_cost_file_read(path, "trees", &file, &bytes, &size, diag);
    if (status == TL_OK)
        status = load_bytes((trees_model *)model, bytes, size, diag);
    tl_text_free(&file);
    return status;
}

const tl_cost_model_type tl_cost_trees = { "trees", create, predict, update, save, load, destroy };
