/* tuner/surrogate.c: Gaussian process regression with a Cholesky factor that grows by a row at a time. */
#include "tuner/surrogate.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* HOPELESS: deviations beyond the best, where not even the variance is worth asking for. */
enum { N = TL_SURROGATE_POINTS, D = TL_SURROGATE_NAMES, HOPELESS = 3 };

/* Of log times: the repeatability of a measurement against the spread of a space. */
static const double noise = 0.02;
/* How alike points of different lowerings are that agree in everything else; a decision that one of them lacks. */
static const double other_lowering = 0.3, missing = 0.5, additive = 0.35;
/* Beyond that, worse is just bad: e^1. */
static const double worst = 1.0;

/* A point: the place of the option taken by each name, -1 where it has no such decision. */
typedef struct {
    int lowering;
    float place[D];
} coordinates;

struct tl_surrogate {
    int name_count;
    const char *names[D]; /* as long as the space's decisions */
    double weight[D];
    int count;
    coordinates points[N];
    double value[N]; /* log times */
    double guess[N], slope, mean_guess;
    double factor[N][N], alpha[N], column[N];
    double mean, scale, best; /* of the values; scale: variance of the process */
    bool solved;
};

tl_surrogate *tl_surrogate_create(void)
{
    tl_surrogate *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    for (int d = 0; d < D; d++)
        s->weight[d] = 0.5;
    return s;
}

void tl_surrogate_destroy(tl_surrogate *s)
{
    free(s);
}

void tl_surrogate_clear(tl_surrogate *s)
{
    s->count = 0;
    s->solved = false;
}

/* --- likeness --------------------------------------------------------------------------------------------------------- */

static int find_name(const tl_surrogate *s, const char *name)
{
    for (int d = 0; d < s->name_count; d++)
        if (s->names[d] == name || strcmp(s->names[d], name) == 0)
            return d;
    return -1;
}

/* Values that double are as far apart as those that grow by one at the small end. */
static float place_of(const tl_decision *d)
{
    return (float)(2 * log2(fabs((double)d->options[d->taken]) + 1));
}

static void locate(const tl_surrogate *s, const tl_point *point, coordinates *out)
{
    out->lowering = point->lowering;
    for (int d = 0; d < s->name_count; d++)
        out->place[d] = -1;
    for (int i = 0; i < point->count; i++) {
        int d = find_name(s, point->decisions[i].name);
        if (d >= 0)
            out->place[d] = place_of(&point->decisions[i]);
    }
}

static double distance(float a, float b)
{
    if (a == b)
        return 0;
    double apart = fabs((double)a - (double)b);
    return a < 0 || b < 0 ? missing : apart / (apart + 2);
}

static double likeness(const tl_surrogate *s, const coordinates *a, const coordinates *b)
{
    double sum = 0, total = 1e-9;
    for (int d = 0; d < s->name_count; d++) {
        total += s->weight[d];
        sum += a->place[d] == b->place[d] ? 0 : s->weight[d] * distance(a->place[d], b->place[d]);
    }
    double all = exp(-sum), each = 1 - sum / total;
    return (additive * each + (1 - additive) * all) *
           (a->lowering == b->lowering ? 1 : other_lowering);
}

/* --- points ------------------------------------------------------------------------------------------------------------ */

static void add_names(tl_surrogate *s, const tl_point *point)
{
    for (int i = 0; i < point->count; i++) {
        if (s->name_count == D || point->decisions[i].count < 2 ||
            find_name(s, point->decisions[i].name) >= 0)
            continue;
        for (int p = 0; p < s->count; p++)
            s->points[p].place[s->name_count] = -1;
        s->names[s->name_count++] = point->decisions[i].name;
    }
}

bool tl_surrogate_add(tl_surrogate *s, const tl_point *point, double log_time, double guess)
{
    if (s->count == N)
        return false;
    add_names(s, point);
    locate(s, point, &s->points[s->count]);
    s->guess[s->count] = guess;
    s->value[s->count++] = log_time;
    s->solved = false;
    return true;
}

/* --- solving ------------------------------------------------------------------------------------------------------------ */

/* Row i of the factor. */
static void add_row(tl_surrogate *s, int i)
{
    double diagonal = 1 + noise;
    for (int j = 0; j < i; j++) {
        double sum = likeness(s, &s->points[i], &s->points[j]);
        for (int k = 0; k < j; k++)
            sum -= s->factor[i][k] * s->factor[j][k];
        s->factor[i][j] = sum / s->factor[j][j];
        diagonal -= s->factor[i][j] * s->factor[i][j];
    }
    s->factor[i][i] = sqrt(fmax(diagonal, 1e-6));
}

static double clipped(const tl_surrogate *s, int i)
{
    return fmin(s->value[i], s->best + worst);
}

/* What the process is about. */
static double residual(const tl_surrogate *s, int i)
{
    return clipped(s, i) - s->mean - s->slope * (s->guess[i] - s->mean_guess);
}

/* Means, and the slope of values over guesses: least squares with a few points added that say a half. */
static void fit_slope(tl_surrogate *s)
{
    static const double added = 4, usual = 0.5, steepest = 1.5;
    double xx = 0, xy = 0;
    s->best = s->value[0];
    for (int i = 0; i < s->count; i++)
        s->best = fmin(s->best, s->value[i]);
    s->mean = s->mean_guess = 0;
    for (int i = 0; i < s->count; i++) {
        s->mean += clipped(s, i) / s->count;
        s->mean_guess += s->guess[i] / s->count;
    }
    for (int i = 0; i < s->count; i++) {
        double x = s->guess[i] - s->mean_guess;
        xx += x * x;
        xy += x * (clipped(s, i) - s->mean);
    }
    double more = added * fmax(xx / s->count, 0.01);
    s->slope = fmin(fmax((xy + usual * more) / (xx + more), 0), steepest);
}

/* alpha = K^-1 (value - mean); returns (value - mean)' alpha. */
static double solve_values(tl_surrogate *s)
{
    double product = 0;
    for (int i = 0; i < s->count; i++) {
        double sum = residual(s, i);
        for (int k = 0; k < i; k++)
            sum -= s->factor[i][k] * s->alpha[k];
        s->alpha[i] = sum / s->factor[i][i];
        product += s->alpha[i] * s->alpha[i];
    }
    for (int i = s->count - 1; i >= 0; i--) {
        double sum = s->alpha[i];
        for (int k = i + 1; k < s->count; k++)
            sum -= s->factor[k][i] * s->alpha[k];
        s->alpha[i] = sum / s->factor[i][i];
    }
    return product;
}

static double log_likelihood(tl_surrogate *s)
{
    double logs = 0;
    fit_slope(s);
    for (int i = 0; i < s->count; i++) {
        add_row(s, i);
        logs += log(s->factor[i][i]);
    }
    s->scale = fmax(solve_values(s) / s->count, 1e-5);
    return -logs - s->count * log(s->scale) / 2;
}

bool tl_surrogate_solve(tl_surrogate *s)
{
    if (s->count == 0)
        return false;
    log_likelihood(s);
    /* a few points say little of the spread */
    s->scale = fmax(s->scale, s->count < 8 ? 0.04 : 1e-4);
    s->solved = true;
    return true;
}

void tl_surrogate_fit_weights(tl_surrogate *s)
{
    static const double factors[] = { 0.33, 3 };
    static const double least = 0.01, most = 4;
    if (s->count < 6)
        return;
    double likelihood = log_likelihood(s);
    for (int d = 0; d < s->name_count; d++)
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
            double before = s->weight[d], after = before * factors[f];
            if (after < least || after > most)
                continue;
            s->weight[d] = after;
            /* a weight that says little stays near where it began */
            double tried =
                log_likelihood(s) - 0.3 * fabs(log(after / 0.5)) + 0.3 * fabs(log(before / 0.5));
            if (tried > likelihood)
                likelihood = tried;
            else
                s->weight[d] = before;
        }
    s->solved = false;
}

/* --- asking ------------------------------------------------------------------------------------------------------------- */

/* The mean at a place; `column` gets how alike the known points are. */
static double look(const tl_surrogate *s, const coordinates *at, double guess, double *column)
{
    double mean = s->mean + s->slope * (guess - s->mean_guess);
    for (int i = 0; i < s->count; i++) {
        column[i] = likeness(s, at, &s->points[i]);
        mean += column[i] * s->alpha[i];
    }
    return mean;
}

static double variance(const tl_surrogate *s, double *column)
{
    double left = 1;
    for (int i = 0; i < s->count; i++) {
        double sum = column[i];
        for (int k = 0; k < i; k++)
            sum -= s->factor[i][k] * column[k];
        column[i] = sum / s->factor[i][i];
        left -= column[i] * column[i];
    }
    return s->scale * fmax(left, 1e-9);
}

double tl_surrogate_gain(const tl_surrogate *s, const tl_point *point, double guess)
{
    coordinates at;
    double column[N];
    locate(s, point, &at);
    double mean = look(s, &at, guess, column);
    if (mean - s->best > HOPELESS * sqrt(s->scale))
        return 0;
    double deviation = sqrt(variance(s, column)), z = (s->best - mean) / deviation;
    double density = exp(-z * z / 2) / sqrt(2 * M_PI), below = erfc(-z / sqrt(2)) / 2;
    return fmax((s->best - mean) * below + deviation * density, 0);
}

void tl_surrogate_expect(tl_surrogate *s, const tl_point *point, double guess)
{
    double column[N];
    if (s->count == N || !s->solved)
        return;
    locate(s, point, &s->points[s->count]);
    s->guess[s->count] = guess;
    s->value[s->count] = look(s, &s->points[s->count], guess, column);
    s->best = fmin(s->best, s->value[s->count]);
    add_row(s, s->count++);
    solve_values(s);
}
