/* tuner/search/surrogate.c: Gaussian process regression with a Cholesky factor that grows by a row at a time.
 *
 * Nearly all of the time goes into two loops over points: those of `weigh` and of `eliminate`. They run over whole blocks of
 * points, so that compilers make vectors of them, and are compiled once more for longer vectors; the results have the
 * same bits. What lies behind the last point is there and means nothing. */
#include "tuner/search/surrogate.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* PLACES: different answers to a decision that are told apart; the first stands for "no such decision". HOPELESS: deviations
 * beyond the best, where not even the variance is worth asking for. */
enum { N = TL_SURROGATE_POINTS, D = TL_SURROGATE_NAMES, G = TL_SURROGATE_GUESSES };
enum { PLACES = 64, MISSING = 0, HOPELESS = 3 };
enum { BLOCK = 16 };
/* Points with an answer after which it is believed what else is answered beside it. */
enum { ENOUGH = 2 };
_Static_assert(N % BLOCK == 0, "points fill whole blocks");
_Static_assert(D <= 64, "a set of names is a word");
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Of log times: the repeatability of a measurement against the spread of a space. */
static const double noise = 0.02;
/* How alike points of different lowerings are that agree in everything else; a decision that one of them lacks. */
static const float other_lowering = 0.3F, missing = 0.5F, additive = 0.35F;
/* Beyond that, worse is just bad: 1.42 times the best. Were it more, the spread of the bad would be taken for what is not
 * known of the good. (Three seeds of the ten kernels of tuner/README.md gained 1.008 with e, 1.014 with this.) */
static const double worst = 0.35;

/* A point: for each name the number of the place of its answer. */
typedef struct {
    int lowering;
    uint8_t place[D];
} coordinates;

struct tl_surrogate {
    int name_count;
    const char *names[D]; /* as long as the space's decisions */
    double weight[D];
    int place_count[D];
    float place[D][PLACES];
    /* apart[d][p][i]: the distance of place p from point i's */
    float apart[D][PLACES][N];
    /* of an answer: how many points have it, and the names to which one of them has an answer */
    int seen[D][PLACES];
    uint64_t beside[D][PLACES];
    int count;
    coordinates points[N];
    double value[N]; /* log times */
    int guess_count;
    double guess[G][N], slope[G], mean_guess[G];
    double factor[N][N]; /* of Cholesky, transposed: factor[k][i] for k <= i */
    double inverse[N];   /* of the factor's diagonal */
    double alpha[N];
    double mean, scale, best; /* of the values; scale: variance of the process */
    bool solved;
};

tl_surrogate *tl_surrogate_create(int guesses)
{
    tl_surrogate *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->guess_count = guesses < G ? guesses : G;
    for (int d = 0; d < D; d++) {
        s->weight[d] = 0.5;
        s->place_count[d] = 1;
    }
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
    memset(s->seen, 0, sizeof s->seen);
    memset(s->beside, 0, sizeof s->beside);
}

/* --- likeness --------------------------------------------------------------------------------------------------------- */

static int find_name(const tl_surrogate *s, const char *name)
{
    for (int d = 0; d < s->name_count; d++) /* nearly always */
        if (s->names[d] == name)
            return d;
    for (int d = 0; d < s->name_count; d++)
        if (strcmp(s->names[d], name) == 0)
            return d;
    return -1;
}

/* Values that double are as far apart as those that grow by one at the small end. */
static float place_of(const tl_decision *d)
{
    return (float)(2 * log2(fabs((double)d->options[d->taken]) + 1));
}

/* 0 is no amount: not to fetch ahead at all is as far from fetching ahead by one as by many. */
static float distance(const tl_surrogate *s, int d, int a, int b)
{
    if (a == b)
        return 0;
    float far = fabsf(s->place[d][a] - s->place[d][b]);
    if (a == MISSING || b == MISSING)
        return missing;
    return s->place[d][a] == 0 || s->place[d][b] == 0 ? 1 : far / (far + 2);
}

/* The number of the nearest place that is known. */
static int find_place(const tl_surrogate *s, int d, float place)
{
    int nearest = MISSING;
    float least = INFINITY;
    for (int p = 1; p < s->place_count[d]; p++) {
        float far = fabsf(s->place[d][p] - place);
        nearest = far < least ? p : nearest;
        least = fminf(far, least);
    }
    return nearest;
}

static void locate(const tl_surrogate *s, const tl_point *point, coordinates *out)
{
    out->lowering = point->lowering;
    memset(out->place, MISSING, sizeof out->place);
    for (int i = 0; i < point->count; i++) {
        int d = find_name(s, point->decisions[i].name);
        if (d >= 0)
            out->place[d] = (uint8_t)find_place(s, d, place_of(&point->decisions[i]));
    }
}

/* Takes away the answers that other answers leave no room for: where the tile is one vector wide, nobody is asked how many
 * columns it has. */
static void leave_out(const tl_surrogate *s, coordinates *at)
{
    uint64_t asked = UINT64_MAX;
    for (int d = 0; d < s->name_count; d++)
        if (at->place[d] != MISSING && s->seen[d][at->place[d]] >= ENOUGH)
            asked &= s->beside[d][at->place[d]];
    for (int d = 0; d < s->name_count; d++)
        if (!(asked >> d & 1))
            at->place[d] = MISSING;
}

/* How far a place is from each of the first `count` points: the weighted sum over decisions. */
ALWAYS_INLINE void weigh_all(const tl_surrogate *s, const coordinates *at, int count,
                             float *restrict sum)
{
    for (int d = 0; d < s->name_count; d++) {
        const float *apart = s->apart[d][at->place[d]], weight = (float)s->weight[d];
        for (int b = 0; b < count; b += BLOCK)
            for (int i = b; i < b + BLOCK; i++)
                sum[i] += weight * apart[i];
    }
}

/* Takes four columns of the factor from row k on, in the order of the loop below: its bits. What limits that loop is the way of
 * an element from one column to the next, through memory; here it stays in a register. */
ALWAYS_INLINE void eliminate_four(const tl_surrogate *s, int k, int count, double *restrict column)
{
    const double *a = s->factor[k], *b = s->factor[k + 1], *c = s->factor[k + 2],
                 *d = s->factor[k + 3], *scale = &s->inverse[k];
    double *at = &column[k];
    double p = at[0] * scale[0];
    double q = (at[1] - p * a[k + 1]) * scale[1];
    double r = (at[2] - p * a[k + 2] - q * b[k + 2]) * scale[2];
    double t = (at[3] - p * a[k + 3] - q * b[k + 3] - r * c[k + 3]) * scale[3];
    for (int first = k / BLOCK * BLOCK; first < count; first += BLOCK)
        for (int i = first; i < first + BLOCK; i++)
            column[i] = column[i] - p * a[i] - q * b[i] - r * c[i] - t * d[i];
    at[0] = p;
    at[1] = q;
    at[2] = r;
    at[3] = t;
}

/* Solves L x = column for the first `count` rows, in place. Column by column: no sum waits for the one before. */
ALWAYS_INLINE void eliminate_all(const tl_surrogate *s, int count, double *restrict column)
{
    int k = 0;
    for (; k + 4 <= count; k += 4)
        eliminate_four(s, k, count, column);
    for (; k < count; k++) {
        const double *below = s->factor[k]; /* zero above the diagonal */
        double x = column[k] * s->inverse[k];
        for (int b = k / BLOCK * BLOCK; b < count; b += BLOCK)
            for (int i = b; i < b + BLOCK; i++)
                column[i] -= x * below[i];
        column[k] = x;
    }
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void weigh_wide(const tl_surrogate *s,
                                                          const coordinates *at, int count,
                                                          float *restrict sum)
{
    weigh_all(s, at, count, sum);
}

__attribute__((target("avx512f"))) static void eliminate_wide(const tl_surrogate *s, int count,
                                                              double *restrict column)
{
    eliminate_all(s, count, column);
}

static bool is_wide(void)
{
    return __builtin_cpu_supports("avx512f");
}
#else
#define weigh_wide     weigh_all
#define eliminate_wide eliminate_all

static bool is_wide(void)
{
    return false;
}
#endif

static void weigh(const tl_surrogate *s, const coordinates *at, int count, float *restrict sum)
{
    (is_wide() ? weigh_wide : weigh_all)(s, at, count, sum);
}

static void substitute(const tl_surrogate *s, int count, double *restrict column)
{
    (is_wide() ? eliminate_wide : eliminate_all)(s, count, column);
}

/* How alike a place is to each of the first `count` points. */
static void compare(const tl_surrogate *s, const coordinates *at, int count, double *out)
{
    float sum[N] = { 0 }, total = 1e-9F;
    for (int d = 0; d < s->name_count; d++)
        total += (float)s->weight[d];
    weigh(s, at, count, sum);
    for (int i = 0; i < count; i++) {
        float all = expf(-sum[i]), each = 1 - sum[i] / total;
        float likeness = additive * each + (1 - additive) * all;
        out[i] =
            (double)(at->lowering == s->points[i].lowering ? likeness : likeness * other_lowering);
    }
}

/* --- points ------------------------------------------------------------------------------------------------------------ */

static void add_names(tl_surrogate *s, const tl_point *point)
{
    for (int i = 0; i < point->count; i++)
        if (s->name_count < D && point->decisions[i].count > 1 &&
            find_name(s, point->decisions[i].name) < 0)
            s->names[s->name_count++] = point->decisions[i].name;
}

/* A place that was not met before, and how far all points are from it. */
static void add_place(tl_surrogate *s, int d, float place)
{
    int known = find_place(s, d, place), p = s->place_count[d];
    if (p == PLACES || (known != MISSING && s->place[d][known] == place))
        return;
    s->place[d][p] = place;
    s->place_count[d]++;
    for (int i = 0; i < s->count; i++)
        s->apart[d][p][i] = distance(s, d, p, s->points[i].place[d]);
}

/* All options: they will be asked for. */
static void add_places(tl_surrogate *s, const tl_point *point)
{
    for (int i = 0; i < point->count; i++) {
        tl_decision decision = point->decisions[i];
        int d = find_name(s, decision.name);
        for (int o = 0; o < decision.count && d >= 0; o++) {
            decision.taken = o;
            add_place(s, d, place_of(&decision));
        }
    }
}

static void append(tl_surrogate *s, const coordinates *at, double value, const double *guesses)
{
    int i = s->count++;
    s->points[i] = *at;
    s->value[i] = value;
    for (int g = 0; g < s->guess_count; g++)
        s->guess[g][i] = guesses[g];
    uint64_t answered = 0;
    for (int d = 0; d < s->name_count; d++)
        answered |= (uint64_t)(at->place[d] != MISSING) << d;
    for (int d = 0; d < s->name_count; d++) {
        s->seen[d][at->place[d]]++;
        s->beside[d][at->place[d]] |= answered;
    }
    for (int d = 0; d < D; d++)
        for (int p = 0; p < s->place_count[d]; p++)
            s->apart[d][p][i] = distance(s, d, p, at->place[d]);
}

bool tl_surrogate_add(tl_surrogate *s, const tl_point *point, double log_time,
                      const double *guesses)
{
    coordinates at;
    if (s->count == N)
        return false;
    add_names(s, point);
    add_places(s, point);
    locate(s, point, &at);
    append(s, &at, log_time, guesses);
    s->solved = false;
    return true;
}

/* --- solving ------------------------------------------------------------------------------------------------------------ */

/* Row i of the factor. */
static void add_row(tl_surrogate *s, int i)
{
    double row[N] = { 0 }, diagonal = 1 + noise;
    compare(s, &s->points[i], i, row);
    substitute(s, i, row);
    for (int k = 0; k < i; k++) {
        s->factor[k][i] = row[k];
        diagonal -= row[k] * row[k];
    }
    s->factor[i][i] = sqrt(fmax(diagonal, 1e-6));
    s->inverse[i] = 1 / s->factor[i][i];
}

static double clipped(const tl_surrogate *s, int i)
{
    return fmin(s->value[i], s->best + worst);
}

/* What the process is about. */
static double residual(const tl_surrogate *s, int i)
{
    double left = clipped(s, i) - s->mean;
    for (int g = 0; g < s->guess_count; g++)
        left -= s->slope[g] * (s->guess[g][i] - s->mean_guess[g]);
    return left;
}

static double product_of(const tl_surrogate *s, int a, int b)
{
    double sum = 0;
    for (int i = 0; i < s->count; i++)
        sum += (s->guess[a][i] - s->mean_guess[a]) * (s->guess[b][i] - s->mean_guess[b]);
    return sum;
}

static void fit_means(tl_surrogate *s)
{
    s->best = s->value[0];
    for (int i = 0; i < s->count; i++)
        s->best = fmin(s->best, s->value[i]);
    s->mean = 0;
    for (int i = 0; i < s->count; i++)
        s->mean += clipped(s, i) / s->count;
    for (int g = 0; g < s->guess_count; g++) {
        s->mean_guess[g] = 0;
        for (int i = 0; i < s->count; i++)
            s->mean_guess[g] += s->guess[g][i] / s->count;
    }
}

/* Means, and the slopes of values over guesses: least squares with a few points added that say a half, or 0.7 when several
 * guesses share it; none below 0: a model that is wrong is not right the other way round. One slope after the other, the
 * others as they are, until none moves: with bounds there is no formula. */
static void fit_slopes(tl_surrogate *s)
{
    static const double added = 4, steepest = 1.5;
    const double usual = s->guess_count > 1 ? 0.7 : 0.5;
    enum { ROUNDS = 40 };
    double xx[G][G], xy[G];
    fit_means(s);
    for (int a = 0; a < s->guess_count; a++) {
        s->slope[a] = usual / s->guess_count;
        xy[a] = 0;
        for (int i = 0; i < s->count; i++)
            xy[a] += (s->guess[a][i] - s->mean_guess[a]) * (clipped(s, i) - s->mean);
        for (int b = 0; b < s->guess_count; b++)
            xx[a][b] = product_of(s, a, b);
    }
    for (int round = 0; round < (s->guess_count > 1 ? ROUNDS : 1); round++)
        for (int a = 0; a < s->guess_count; a++) {
            double more = added * fmax(xx[a][a] / s->count, 0.01), left = xy[a];
            for (int b = 0; b < s->guess_count; b++)
                left -= b != a ? s->slope[b] * xx[a][b] : 0;
            s->slope[a] =
                fmin(fmax((left + usual / s->guess_count * more) / (xx[a][a] + more), 0), steepest);
        }
}

const double *tl_surrogate_slopes(const tl_surrogate *s)
{
    return s->slope;
}

/* alpha = L^-1 (value - mean); returns its square, (value - mean)' K^-1 (value - mean). */
static double solve_forward(tl_surrogate *s)
{
    double product = 0;
    for (int i = 0; i < s->count; i++)
        s->alpha[i] = residual(s, i);
    substitute(s, s->count, s->alpha);
    for (int i = s->count - 1; i >= 0; i--)
        product += s->alpha[i] * s->alpha[i];
    return product;
}

/* And then alpha = K^-1 (value - mean). */
static void solve_backward(tl_surrogate *s)
{
    for (int i = s->count - 1; i >= 0; i--) {
        double sum = s->alpha[i];
        for (int k = i + 1; k < s->count; k++)
            sum -= s->factor[i][k] * s->alpha[k];
        s->alpha[i] = sum * s->inverse[i];
    }
}

static double log_likelihood(tl_surrogate *s)
{
    double logs = 0;
    fit_slopes(s);
    for (int i = 0; i < s->count; i++) {
        add_row(s, i);
        logs += log(s->factor[i][i]);
    }
    s->scale = fmax(solve_forward(s) / s->count, 1e-5);
    return -logs - s->count * log(s->scale) / 2;
}

bool tl_surrogate_solve(tl_surrogate *s)
{
    if (s->count == 0)
        return false;
    log_likelihood(s);
    solve_backward(s);
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
static double look(const tl_surrogate *s, const coordinates *at, const double *guesses,
                   double *column)
{
    double mean = s->mean;
    for (int g = 0; g < s->guess_count; g++)
        mean += s->slope[g] * (guesses[g] - s->mean_guess[g]);
    compare(s, at, s->count, column);
    for (int i = 0; i < s->count; i++)
        mean += column[i] * s->alpha[i];
    return mean;
}

static double variance(const tl_surrogate *s, double *column)
{
    double left = 1;
    substitute(s, s->count, column);
    for (int i = 0; i < s->count; i++)
        left -= column[i] * column[i];
    return s->scale * fmax(left, 1e-9);
}

/* Of a normal distribution, what is below the best. */
static double expected_gain(const tl_surrogate *s, double mean, double deviation)
{
    double z = (s->best - mean) / deviation;
    double density = exp(-z * z / 2) / sqrt(2 * M_PI), below = erfc(-z / sqrt(2)) / 2;
    return fmax((s->best - mean) * below + deviation * density, 0);
}

static double gain_at(const tl_surrogate *s, const coordinates *at, const double *guesses,
                      double least)
{
    double column[N] = { 0 };
    double mean = look(s, at, guesses, column), most = sqrt(s->scale);
    /* the less is known, the more is to be gained: never more than where nothing is */
    if (mean - s->best > HOPELESS * most || expected_gain(s, mean, most) <= least)
        return 0;
    return expected_gain(s, mean, sqrt(variance(s, column)));
}

double tl_surrogate_gain(const tl_surrogate *s, const tl_point *point, const double *guesses,
                         double least)
{
    coordinates at;
    locate(s, point, &at);
    return gain_at(s, &at, guesses, least);
}

double tl_surrogate_hope(const tl_surrogate *s, const tl_point *idea, double least)
{
    coordinates at;
    locate(s, idea, &at);
    leave_out(s, &at);
    return gain_at(s, &at, s->mean_guess, least);
}

void tl_surrogate_expect(tl_surrogate *s, const tl_point *point, const double *guesses)
{
    coordinates at;
    double column[N];
    if (s->count == N || !s->solved)
        return;
    locate(s, point, &at);
    double value = look(s, &at, guesses, column);
    append(s, &at, value, guesses);
    s->best = fmin(s->best, value);
    add_row(s, s->count - 1);
    solve_forward(s);
    solve_backward(s);
}
