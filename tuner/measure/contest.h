/* tuner/measure/contest.h: whether a candidate is faster than the incumbent, and by how much. Knows no clock: a
 * stopwatch gives the times, in tests a simulated one. */
#ifndef TL_TUNER_MEASURE_CONTEST_H
#define TL_TUNER_MEASURE_CONTEST_H
#include <stdbool.h>
#include <stdint.h>

enum { TL_CONTEST_SAMPLES = 288 }; /* of a contender, at most, in a series */

typedef struct {
    void *user;
    /* Nanoseconds of a call of the contender's kernel; whether nobody else was on the core meanwhile. */
    double (*sample)(void *user, void *kernel, bool *is_alone);
    /* Until nobody else is on the core; takes what it waited off *patience_ns, and gives up at 0. */
    void (*wait)(void *user, int64_t *patience_ns);
    void (*rest)(void *user); /* before a series is run again */
    /* Nanoseconds since some time; what samples cost beside their calls passes, too. */
    int64_t (*now)(void *user);
} tl_stopwatch;

typedef struct {
    void *kernel;   /* the stopwatch's; NULL: there is none */
    double best_ns; /* least time seen lately; 0: none. Kept up to date */
    double score;
} tl_contender;

typedef struct {
    int repeats;         /* samples of a first series */
    bool is_careful;     /* no series ends early */
    bool may_win;        /* false: it is not timed as the incumbent was */
    int64_t patience_ns; /* for solitude, in a series that decides; three times that for a win */
    int64_t longest_ns;  /* a series that decides, with its waiting and all that was run again */
} tl_contest_rules;

/* Why less is known of a ratio than of others. */
typedef enum {
#define CENSORED(name, text, words) TL_CENSORED_##name,
#include "tuner/measure/censored.def"
#undef CENSORED
    TL_CENSORED_COUNT
} tl_censored;
extern const char *const tl_censored_texts[TL_CENSORED_COUNT];

typedef struct {
    double times_ns[TL_CONTEST_SAMPLES]; /* of the candidate's last series */
    int count;
    double time_ns, incumbent_ns; /* least */
    /* The incumbent's score times the median ratio of the last series' turns; never below that score unless crowned, and
     * then on the safe side, or careful. */
    double score_ns;
    bool hopeless, disturbed, crowned;
    /* Of one that was not crowned, though it might have been, only because too few turns of its last series were alone: by
     * how much it was ahead in all of them, 1 minus the median ratio. Else 0. */
    double promise;
    /* The share of the last series' turns that had the core to themselves; 0 without an incumbent. */
    double alone;
    int discarded;
    /* What was seen, whoever won: the median ratio of the last series' turns, the standard error of its logarithm (0: of one turn
     * nobody can say), how many they were. 1, 0 and 0 without an incumbent. */
    double ratio, ratio_error;
    int turns;
    tl_censored censored;
} tl_contest_result;

/* The upper of the middle two when the count is even; count: 1 to TL_CONTEST_SAMPLES. */
double tl_contest_median(const double *values, int count);

/* What all contests of a run may still wait for solitude, of which they had so much in so much time: a quarter of it, and four
 * seconds. Where company stays, candidates are timed in it. */
int64_t tl_contest_patience(int64_t elapsed_ns, int64_t waited_ns);

/* Of the logarithms of positive ratios: the standard error of their median, by how far they lie from it; 0: fewer than two. */
double tl_contest_error(const double *ratios, int count);

/* Turns with a standard that never changes, until the ratio is known: for labels, of which nothing is selected. */
typedef struct {
    double error, slow_error; /* wanted: of a ratio up to, and above `slow` */
    double slow;
    int64_t longest_ns; /* of all turns but the first two */
} tl_label_rules;
void tl_label(const tl_stopwatch *watch, const tl_label_rules *rules, tl_contender *candidate,
              tl_contender *standard, tl_contest_result *out);

/* Without an incumbent the candidate is crowned. */
void tl_contest(const tl_stopwatch *watch, const tl_contest_rules *rules, tl_contender *candidate,
                tl_contender *incumbent, tl_contest_result *out);

#endif
