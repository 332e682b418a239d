/* tuner/contest.c: a candidate against the incumbent.
 *
 * They take turns, two samples each (the second one warm), so that whatever the machine does happens to both; minima are
 * compared. What wins a first series runs a second one of twice the length; what wins that is scored by a third, against the
 * first candidate of all: the best of a thousand noisy times is luck, so what selected a winner says nothing of how good it is.
 *
 * Minima of a series are worth something when both were seen with the core to themselves: what another tenant takes, up to
 * half of the speed, differs from sample to sample. Without, only what is ahead in minima, median and most turns is crowned. */
#include "tuner/contest.h"
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/sort.h"

enum {
    EARLY = 3,
    SURE = 6,
    /* Samples with the core to itself, for which a series is prolonged up to PATIENCE times its length. */
    LEAST_CALM = 3,
    PATIENCE = 2,
    MAX_SERIES = 3,
    TURN = 2, /* samples of each */
    MOST_TURNS = TL_CONTEST_SAMPLES / TURN,
    WAITING_PART = 4 /* of all the time: one in so many */
};
#define FREE_WAIT_NS 2000000000
#define HOPELESS     1.2
#define BEHIND       1.03
#define FAR_OFF      3.0 /* seen at the first look */
#define NEAR_BEST    0.85
#define WIN          0.99  /* of a first series: worth a second one */
#define SURE_WIN     0.995 /* of those that follow */
#define CLEAR_WIN    0.98  /* of those in company */
#define MOST_SAY     0.75  /* of their turns have to say it, too */

typedef struct {
    tl_contender *contender;
    int calm;     /* samples during which nobody else was on the core */
    double least; /* of the series */
} side;

typedef struct {
    const tl_stopwatch *watch;
    side candidate, standard;
    double ratios[MOST_TURNS]; /* of the lesser samples of each turn */
    int turns;
} series;

/* The lesser of its samples; times_ns: where they are kept, or NULL. */
static double take_turn(const series *s, side *x, int64_t *patience_ns, double *times_ns)
{
    double lesser = 1e300;
    s->watch->wait(s->watch->user, patience_ns);
    for (int i = 0; i < TURN; i++) {
        bool is_alone;
        double ns = s->watch->sample(s->watch->user, x->contender->kernel, &is_alone);
        x->calm += is_alone;
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

static bool is_calm(const side *x)
{
    return x->calm >= LEAST_CALM;
}

static bool both_are_calm(const series *s)
{
    return is_calm(&s->candidate) && (!has_standard(s) || is_calm(&s->standard));
}

/* Both were seen alone, or neither. */
static bool are_alike(const series *s)
{
    return is_calm(&s->candidate) == is_calm(&s->standard);
}

static double ratio_of(const series *s)
{
    return s->candidate.least / s->standard.least;
}

/* A candidate that may win is looked at as often as was asked for, and longer as long as there was company; what is behind
 * only so often that it is sure. */
static bool has_enough(const series *s, int count, int repeats, bool early)
{
    if (early && count >= SURE && ratio_of(s) > BEHIND && are_alike(s))
        return true;
    return count >= (both_are_calm(s) ? repeats : PATIENCE * repeats);
}

static bool is_hopeless(const series *s, int count)
{
    return ratio_of(s) > FAR_OFF || (count >= EARLY && ratio_of(s) > HOPELESS && are_alike(s));
}

static void run_turns(series *s, int repeats, bool early, int64_t patience, tl_contest_result *out)
{
    s->candidate.calm = s->standard.calm = s->turns = 0;
    s->candidate.least = s->standard.least = 1e300;
    out->count = 0;
    out->hopeless = false;
    while (out->count + TURN <= TL_CONTEST_SAMPLES && !out->hopeless &&
           !has_enough(s, out->count, repeats, early)) {
        double own = take_turn(s, &s->candidate, &patience, out->times_ns + out->count);
        out->count += TURN;
        if (!has_standard(s))
            continue;
        s->ratios[s->turns++] = own / take_turn(s, &s->standard, &patience, NULL);
        out->hopeless = early && is_hopeless(s, out->count);
    }
}

/* One series; false: the incumbent was disturbed. One that may end early does not wait for anything. */
static bool run_series(series *s, const tl_contest_rules *rules, int repeats, bool early,
                       tl_contest_result *out)
{
    run_turns(s, repeats, early, early ? 0 : rules->patience_ns, out);
    if (!has_standard(s))
        return true;
    tl_contender *standard = s->standard.contender;
    double best = standard->best_ns;
    if (out->hopeless && ratio_of(s) > FAR_OFF) {
        /* so long a run leaves the incumbent cold caches: that is no disturbance, and no time of its own */
        if (best > 0 && best < s->standard.least)
            s->standard.least = best;
        return true;
    }
    if (best == 0 || s->standard.least < best)
        standard->best_ns = s->standard.least;
    return !is_calm(&s->standard) || best == 0 || s->standard.least <= best / NEAR_BEST;
}

/* Series until one is undisturbed. */
static void compare(series *s, const tl_contest_rules *rules, int repeats, bool early,
                    tl_contest_result *out)
{
    for (int i = 0; !run_series(s, rules, repeats, early, out); i++) {
        if (i + 1 == MAX_SERIES) { /* the machine became slower: believe it */
            s->standard.contender->best_ns = s->standard.least;
            out->disturbed = true;
            return;
        }
        out->discarded++;
        s->watch->rest(s->watch->user);
    }
}

double tl_contest_median(const double *values, int count)
{
    double sorted[TL_CONTEST_SAMPLES];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    tl_sort_doubles(sorted, count);
    return sorted[count / 2];
}

/* What the series says of the candidate's time over the other's. In company minima are a lottery: most turns have to say the
 * same. */
static double believed_ratio(const series *s)
{
    double least = ratio_of(s),
           typical = both_are_calm(s) ? least : tl_contest_median(s->ratios, s->turns);
    return least > typical ? least : typical;
}

/* How many of the turns were won: the ratio was below the target. Of 22 fair ones three quarters are won once in a hundred
 * times. */
static double share_won(const series *s, double target)
{
    int won = 0;
    for (int i = 0; i < s->turns; i++)
        won += s->ratios[i] < target;
    return (double)won / s->turns;
}

/* The series says that the candidate is better than `score`: in minima by half a percent and in half of the turns; in
 * company by more, in minima and median, and in most turns. */
static bool is_win(const series *s, double score)
{
    double target = score / s->standard.contender->score, ratio = believed_ratio(s);
    if (both_are_calm(s))
        return ratio < target * SURE_WIN && share_won(s, target) > 0.5;
    return ratio < target * CLEAR_WIN && share_won(s, target) >= MOST_SAY;
}

static void summarize(const series *s, tl_contest_result *out)
{
    double score = s->standard.contender->score;
    out->time_ns = out->score_ns = s->candidate.least;
    out->incumbent_ns = has_standard(s) ? s->standard.least : 0;
    if (has_standard(s) && score > 0)
        out->score_ns = score * believed_ratio(s);
}

int64_t tl_contest_patience(int64_t elapsed_ns, int64_t waited_ns)
{
    return tl_max64(FREE_WAIT_NS + elapsed_ns / WAITING_PART - waited_ns, 0);
}

void tl_contest(const tl_stopwatch *watch, const tl_contest_rules *rules, tl_contender *candidate,
                tl_contender *incumbent, tl_contender *first, tl_contest_result *out)
{
    bool has_incumbent = incumbent->kernel != NULL;
    series s = { .watch = watch, .candidate = { candidate }, .standard = { incumbent } };
    *out = (tl_contest_result){ 0 };
    compare(&s, rules, rules->repeats, !rules->is_careful && has_incumbent, out);
    summarize(&s, out);
    if (!has_incumbent) {
        out->crowned = true;
        return;
    }
    if (rules->may_win && !out->hopeless && believed_ratio(&s) < WIN) {
        compare(&s, rules, 2 * rules->repeats, false, out);
        summarize(&s, out);
        out->disturbed |= !both_are_calm(&s);
        if (is_win(&s, incumbent->score)) {
            s.standard.contender = first;
            compare(&s, rules, 2 * rules->repeats, false, out);
            summarize(&s, out);
            out->crowned = is_win(&s, incumbent->score);
            out->disturbed |= !both_are_calm(&s);
        }
    }
    if (!out->crowned && !rules->is_careful && out->score_ns < incumbent->score)
        out->score_ns = incumbent->score;
}
