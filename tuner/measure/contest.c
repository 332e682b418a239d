/* tuner/measure/contest.c: a candidate against the incumbent.
 *
 * They take turns, two samples each (the second one warm), so that whatever the machine does happens to both, and each turn
 * has a ratio of its own; the median of these is what is believed. Minima of a series are a lottery: where other
 * tenants share the caches, the best of 22 samples differs by 4 to 8 % from one series of the same program to the next,
 * the median ratio by 1 % (tuner/README.md). Beside another thread on the core another schedule may be the better one: so
 * nobody wins against what the turns say that had the core to themselves, and without such only by a lot.
 *
 * What wins a first series runs a second one that goes on until it is clear who wins, and what wins that runs another,
 * which says by how much: the best of a thousand noisy times is luck, so what selected a winner says nothing of how good
 * it is. */
#include "tuner/measure/contest.h"
#include <assert.h>
#include <math.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/sort.h"

enum {
    TURN = 2, /* samples of each */
    MOST_TURNS = TL_CONTEST_SAMPLES / TURN,
    HOPELESS_AFTER = 2, /* turns */
    BEHIND_AFTER = 3,
    LEAST_CALM = 7, /* turns: so many say something; all won, they are a win */
    MAX_SERIES = 3,
    WAITING_PART = 4 /* of all the time: one in so many */
};
const char *const tl_censored_texts[TL_CENSORED_COUNT] = {
#define CENSORED(name, text, words) [TL_CENSORED_##name] = text,
#include "tuner/measure/censored.def"
#undef CENSORED
};

/* Of the length that was asked for: the first series of what may be ahead; one that decides, at least, when more of it is too
 * much, and at most. */
enum { PATIENCE = 2, DECIDING = 2, LONG = 8, UNDECIDED = 24 };
#define SLOW_NS      1e9
#define FREE_WAIT_NS 4000000000
/* As much patience more where a win in company lacks turns alone, unless it is a landslide. */
#define INSISTENCE   2
#define HOPELESS     1.2
#define BEHIND       1.03
#define FAR_OFF      3.0 /* seen at the first look */
#define NEAR_BEST    0.85
#define WIN          0.99  /* of a first series: worth a second one */
#define SURE_WIN     0.995 /* of those that follow */
/* What is seen in company is taken for so much worse. (Six winners that were only seen in company, when they were measured again:
 * 1.01 to 1.13, on average 1.07.) */
#define COMPANY      1.07
/* Deviations by which the share of turns that were won is above a half: by luck once in two hundred times; what is told is
 * safe by one. */
#define SURE         2.6
#define SAFE         1.0
/* Of a ratio; what is as good as that is good enough. */
#define PRECISION    0.003

typedef struct {
    tl_contender *contender;
    double least; /* of the series */
} side;

/* Of the lesser samples of each turn. */
typedef struct {
    int count;
    double values[MOST_TURNS];
} ratios;

typedef struct {
    const tl_stopwatch *watch;
    side candidate, standard;
    ratios all, calm; /* calm: of turns during which nobody else was on the core */
    double least_ratio, spent_ns;
    int64_t begun_ns, longest_ns;
} series;

/* Whether a series is long enough; `samples`: what was asked for. */
typedef bool length(const series *s, int samples);

/* The lesser of its samples; times_ns: where they are kept, or NULL. */
static double take_turn(series *s, side *x, int64_t *patience_ns, bool *was_alone, double *times_ns)
{
    double lesser = 1e300;
    s->watch->wait(s->watch->user, patience_ns);
    for (int i = 0; i < TURN; i++) {
        bool is_alone;
        double ns = s->watch->sample(s->watch->user, x->contender->kernel, &is_alone);
        *was_alone &= is_alone;
        s->spent_ns += ns;
        lesser = ns < lesser ? ns : lesser;
        if (times_ns != NULL)
            times_ns[i] = ns;
    }
    x->least = lesser < x->least ? lesser : x->least;
    return lesser;
}

static bool has_standard(const series *s)
{
    return s->standard.contender->kernel != NULL;
}

static bool is_calm(const series *s)
{
    return s->calm.count >= LEAST_CALM;
}

/* The turns that count for what is told. */
static const ratios *evidence(const series *s)
{
    return is_calm(s) ? &s->calm : &s->all;
}

double tl_contest_median(const double *values, int count)
{
    double sorted[TL_CONTEST_SAMPLES];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    tl_sort_doubles(sorted, count);
    return sorted[count / 2];
}

double tl_contest_error(const double *values, int count)
{
    enum { FEW = 8 };
    double logs[TL_CONTEST_SAMPLES], away[TL_CONTEST_SAMPLES], middle, sum = 0;
    if (count < 2)
        return 0;
    middle = log(tl_contest_median(values, count));
    for (int i = 0; i < count; i++) {
        logs[i] = log(values[i]);
        away[i] = fabs(logs[i] - middle);
        sum += away[i] * away[i];
    }
    /* of few the deviation, of many the half that lies nearer: what disturbs a turn makes it lie anywhere */
    double deviation =
        count < FEW ? sqrt(sum / (count - 1)) : 1.4826 * tl_contest_median(away, count);
    return 1.2533 * deviation / sqrt(count);
}

static double typical(const ratios *of)
{
    return tl_contest_median(of->values, of->count);
}

/* A ratio of which the median of all turns that might have been run is below, so many deviations from a toss-up. By the ranks of
 * the turns alone: nothing is supposed of how the machine disturbs them. */
static double bound(const ratios *of, double deviations)
{
    ratios sorted = *of;
    tl_sort_doubles(sorted.values, sorted.count);
    int rank = (int)ceil((sorted.count + deviations * sqrt(sorted.count)) / 2);
    return rank <= sorted.count ? sorted.values[rank > 0 ? rank - 1 : 0] : INFINITY;
}

static bool is_win_of_all(const series *s)
{
    return bound(&s->all, SURE) < SURE_WIN;
}

/* So far ahead that company, if it were twice as unfair as it is taken for, would not turn it. */
static bool is_landslide(const series *s)
{
    return COMPANY * COMPANY * bound(&s->all, SURE) < SURE_WIN;
}

/* It might be crowned yet, were the core alone. */
static bool lacks_turns_alone(const series *s)
{
    return !is_calm(s) && is_win_of_all(s);
}

/* The sign test. A few calm turns say less than many in company, but they have to agree; and who wins alone may not lose
 * what was seen in company. */
static bool is_win(const series *s)
{
    if (!is_calm(s))
        return COMPANY * bound(&s->all, SURE) < SURE_WIN;
    return (bound(&s->calm, SURE) < SURE_WIN && bound(&s->all, SAFE) < 1) ||
           (is_win_of_all(s) && bound(&s->calm, SAFE) < SURE_WIN);
}

static bool is_loss(const series *s)
{
    if (!is_calm(s))
        return typical(&s->all) >= SURE_WIN;
    return bound(&s->calm, -SAFE) >= SURE_WIN || bound(&s->all, -SAFE) >= 1 ||
           (typical(&s->calm) >= SURE_WIN && typical(&s->all) >= SURE_WIN);
}

/* What may be told of a win. */
static double safe_ratio(const series *s)
{
    double all = bound(&s->all, SAFE);
    return is_calm(s) ? fmax(bound(&s->calm, SAFE), all) : COMPANY * all;
}

/* --- lengths ---------------------------------------------------------------------------------------------------------- */

static bool is_as_long_as(const series *s, int samples)
{
    return TURN * s->all.count >= samples || s->all.count == MOST_TURNS;
}

/* Behind in every turn. */
static bool is_hopeless(const series *s)
{
    return s->least_ratio > FAR_OFF ||
           (s->all.count >= HOPELESS_AFTER && s->least_ratio > HOPELESS);
}

/* What may be ahead is looked at longer. */
static bool is_screened(const series *s, int samples)
{
    if (is_hopeless(s) || (s->all.count >= BEHIND_AFTER && s->least_ratio > BEHIND))
        return true;
    if (!is_as_long_as(s, samples))
        return false;
    return typical(evidence(s)) >= 1 || is_as_long_as(s, PATIENCE * samples);
}

/* Where company stays, what is ahead by little will not be known. */
static bool is_too_much(const series *s)
{
    return s->spent_ns > SLOW_NS || (!is_calm(s) && !is_win_of_all(s));
}

static bool is_at_its_end(const series *s, int samples)
{
    return s->watch->now(s->watch->user) - s->begun_ns > s->longest_ns ||
           is_as_long_as(s, (is_too_much(s) ? LONG : UNDECIDED) * samples);
}

/* A win in company is looked at to the end: it may be alone yet. */
static bool is_decided(const series *s, int samples)
{
    return is_at_its_end(s, samples) ||
           (is_as_long_as(s, DECIDING * samples) &&
            (is_loss(s) || (is_win(s) && (is_calm(s) || is_landslide(s)))));
}

/* Whoever wins, it is clear and precise: a lucky win would not be. */
static bool is_precise(const series *s, int samples)
{
    bool is_clear = is_loss(s) || is_win(s);
    return is_at_its_end(s, samples) ||
           (is_as_long_as(s, DECIDING * samples) && is_clear &&
            bound(evidence(s), SAFE) - bound(evidence(s), -SAFE) < 2 * PRECISION);
}

/* --- series ----------------------------------------------------------------------------------------------------------- */

static void run_alone(series *s, int samples, int64_t patience, tl_contest_result *out)
{
    bool was_alone = true;
    while (out->count < samples && out->count + TURN <= TL_CONTEST_SAMPLES) {
        take_turn(s, &s->candidate, &patience, &was_alone, out->times_ns + out->count);
        out->count += TURN;
    }
}

static void run_turns(series *s, int samples, length *is_over, int64_t patience,
                      tl_contest_result *out)
{
    int64_t more = INSISTENCE * patience;
    while (s->all.count == 0 || !is_over(s, samples)) {
        bool was_alone = true;
        if (patience <= 0 && more > 0 && lacks_turns_alone(s) && !is_landslide(s)) {
            patience = more;
            more = 0;
        }
        double own = take_turn(s, &s->candidate, &patience, &was_alone, out->times_ns + out->count);
        double ratio = own / take_turn(s, &s->standard, &patience, &was_alone, NULL);
        out->count += TURN;
        s->all.values[s->all.count++] = ratio;
        if (was_alone)
            s->calm.values[s->calm.count++] = ratio;
        s->least_ratio = fmin(s->least_ratio, ratio);
    }
}

/* One series; false: the incumbent was disturbed. */
static bool run_series(series *s, int samples, length *is_over, int64_t patience,
                       tl_contest_result *out)
{
    assert(samples > 0);
    s->all.count = s->calm.count = 0;
    s->candidate.least = s->standard.least = s->least_ratio = 1e300;
    s->spent_ns = 0;
    out->count = 0;
    if (!has_standard(s)) {
        run_alone(s, samples, patience, out);
        return true;
    }
    run_turns(s, samples, is_over, patience, out);
    tl_contender *standard = s->standard.contender;
    double best = standard->best_ns;
    if (s->least_ratio > FAR_OFF) {
        /* so long a run leaves the incumbent cold caches: that is no disturbance, and no time of its own */
        if (best > 0 && best < s->standard.least)
            s->standard.least = best;
        return true;
    }
    if (best == 0 || s->standard.least < best)
        standard->best_ns = s->standard.least;
    return !is_calm(s) || best == 0 || s->standard.least <= best / NEAR_BEST;
}

/* Series until one is undisturbed. */
static void compare(series *s, int samples, length *is_over, int64_t patience,
                    tl_contest_result *out)
{
    assert(samples > 0 && patience >= 0);
    s->begun_ns = s->watch->now(s->watch->user);
    for (int i = 0; !run_series(s, samples, is_over, patience, out); i++) {
        if (i + 1 == MAX_SERIES) { /* the machine became slower: believe it */
            s->standard.contender->best_ns = s->standard.least;
            out->disturbed = true;
            return;
        }
        out->discarded++;
        s->watch->rest(s->watch->user);
    }
}

static void summarize(const series *s, tl_contest_result *out)
{
    const ratios *seen = evidence(s);
    out->ratio = has_standard(s) ? typical(seen) : 1;
    out->ratio_error = has_standard(s) ? tl_contest_error(seen->values, seen->count) : 0;
    out->turns = has_standard(s) ? seen->count : 0;
    double score = s->standard.contender->score;
    out->time_ns = out->score_ns = s->candidate.least;
    out->incumbent_ns = has_standard(s) ? s->standard.least : 0;
    out->alone = has_standard(s) ? (double)s->calm.count / s->all.count : 0;
    if (has_standard(s) && score > 0)
        out->score_ns = score * typical(evidence(s));
}

int64_t tl_contest_patience(int64_t elapsed_ns, int64_t waited_ns)
{
    return tl_max64(FREE_WAIT_NS + elapsed_ns / WAITING_PART - waited_ns, 0);
}

static bool wins(series *s, const tl_contest_rules *rules, length *is_over, tl_contest_result *out)
{
    compare(s, rules->repeats, is_over, rules->patience_ns, out);
    summarize(s, out);
    out->disturbed |= !is_calm(s);
    return is_win(s);
}

void tl_contest(const tl_stopwatch *watch, const tl_contest_rules *rules, tl_contender *candidate,
                tl_contender *incumbent, tl_contest_result *out)
{
    assert(rules->repeats > 0);
    bool has_incumbent = incumbent->kernel != NULL;
    bool is_first_look = has_incumbent && !rules->is_careful;
    series s = { .watch = watch,
                 .candidate = { candidate },
                 .standard = { incumbent },
                 .longest_ns = rules->longest_ns };
    *out = (tl_contest_result){ 0 };
    if (is_first_look) /* does not wait for anything */
        compare(&s, rules->repeats, is_screened, 0, out);
    else
        compare(&s, rules->repeats, is_as_long_as, rules->patience_ns, out);
    summarize(&s, out);
    if (!has_incumbent) {
        out->crowned = true;
        return;
    }
    out->hopeless = is_first_look && is_hopeless(&s);
    if (out->hopeless)
        out->censored = TL_CENSORED_HOPELESS;
    else if (is_first_look && !is_as_long_as(&s, rules->repeats))
        out->censored = TL_CENSORED_BEHIND;
    if (rules->may_win && !out->hopeless && typical(evidence(&s)) < WIN)
        out->crowned = wins(&s, rules, is_decided, out) && wins(&s, rules, is_precise, out);
    if (out->crowned)
        out->score_ns = incumbent->score * safe_ratio(&s);
    else if (rules->may_win && lacks_turns_alone(&s))
        out->promise = 1 - typical(&s.all);
    if (!out->crowned && !rules->is_careful && out->score_ns < incumbent->score)
        out->score_ns = incumbent->score;
}

/* --- labels ----------------------------------------------------------------------------------------------------------- */

enum { LEAST_TURNS = 6, LEAST_LONG_TURNS = 3, LEAST_SLOW_TURNS = 2, MOST_LABEL_TURNS = 96 };
#define LONG_TURN_NS 2000000.0

/* Enough turns to believe what they say of themselves: a spread seen in few may be small by luck. */
static int least_turns(const series *s, const tl_label_rules *rules, double ratio)
{
    if (s->spent_ns / s->all.count < LONG_TURN_NS)
        return LEAST_TURNS;
    return ratio > rules->slow ? LEAST_SLOW_TURNS : LEAST_LONG_TURNS;
}

static bool is_known(const series *s, const tl_label_rules *rules)
{
    const ratios *seen = evidence(s);
    double ratio = typical(seen);
    double wanted = ratio > rules->slow ? rules->slow_error : rules->error;
    return s->all.count >= least_turns(s, rules, ratio) &&
           tl_contest_error(seen->values, seen->count) <= wanted;
}

void tl_label(const tl_stopwatch *watch, const tl_label_rules *rules, tl_contender *candidate,
              tl_contender *standard, tl_contest_result *out)
{
    series s = { .watch = watch,
                 .candidate = { candidate, 1e300 },
                 .standard = { standard, 1e300 },
                 .least_ratio = 1e300 };
    int64_t none = 0;
    assert(standard->kernel != NULL);
    *out = (tl_contest_result){ 0 };
    s.begun_ns = watch->now(watch->user);
    do {
        bool was_alone = true;
        double own = take_turn(&s, &s.candidate, &none, &was_alone, out->times_ns + out->count);
        double ratio = own / take_turn(&s, &s.standard, &none, &was_alone, NULL);
        out->count += TURN;
        s.all.values[s.all.count++] = ratio;
        if (was_alone)
            s.calm.values[s.calm.count++] = ratio;
        if (s.all.count >= LEAST_SLOW_TURNS &&
            watch->now(watch->user) - s.begun_ns > rules->longest_ns)
            break;
    } while (!is_known(&s, rules) && s.all.count < MOST_LABEL_TURNS);
    summarize(&s, out);
    out->score_ns = standard->score * out->ratio;
    if (!is_known(&s, rules))
        out->censored = TL_CENSORED_SHORT;
}
