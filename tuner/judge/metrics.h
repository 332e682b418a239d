/* tuner/judge/metrics.h: judges predictions of programs against what was measured of them, beside what the same
 * programs measured once more would get: no model can be asked for more. */
#ifndef TL_TUNER_JUDGE_METRICS_H
#define TL_TUNER_JUDGE_METRICS_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
#define METRIC(name, text, words) TL_METRIC_##name,
#include "tuner/judge/metrics.def"
#undef METRIC
    TL_METRIC_COUNT
} tl_metric;
typedef struct {
    const char *text, *words;
} tl_metric_info;
extern const tl_metric_info tl_metric_infos[TL_METRIC_COUNT];

/* Programs that are judged on, with what was measured of them. All arrays are the caller's. */
typedef struct {
    int count, task_count;
    const int *task;        /* one a program */
    const float *label;     /* log(time over the standard's); what is not finite is not judged on */
    const float *error;     /* its standard error; what is 0 is taken for `unknown_error` */
    const uint8_t *sampler; /* which stratum it is of */
    const uint32_t *program; /* digits that name it: pools are drawn by them */
    const double *task_ns;   /* one a task: the standard's time */
    /* Networks: runs[n * task_count + t] is how often network n runs task t. count 0: none are known. */
    int network_count;
    const double *runs;
    /* labels of a second measurement, NAN: there was none; NULL: nothing was measured twice */
    const float *again;
    /* [metric * task_count + task], filled; NAN: it has none; NULL: not asked for */
    double *task_values;
    double *network_values; /* [metric * network_count + network], the same of networks */
    uint64_t seed;
} tl_judged;

/* A value and where it lies with 95 % confidence, by bootstrap over `units` tasks or networks; units 0: there was
 * nothing to judge. */
typedef struct {
    double value, low, high;
    int units;
} tl_score;

typedef struct {
    tl_score of[TL_METRIC_COUNT];
} tl_scores;

typedef struct {
    tl_scores model; /* over tasks, each as much as every other */
    /* the same of a second measurement, simulated from the errors of the labels (mean of several) */
    tl_scores ceiling;
    tl_scores networks, networks_ceiling; /* over networks, tasks by their share of the time */
    /* Of programs that were measured twice: the model, and the second measurement in its place. */
    tl_scores twice, twice_ceiling;
    int64_t pairs[3]; /* of the three metrics of pairs */
    int twice_count;
} tl_judgement;

/* `mean`: predicted log(time) up to a constant of the task. TL_NO_MEMORY. */
tl_status tl_judge(const tl_judged *judged, const float *mean, tl_judgement *out, tl_diag *diag);

/* How far predicted deviations are from the errors that are made: what is predicted and what was measured differ by a
 * constant of each task, and by the label's own error. */
enum { TL_CALIBRATION_BINS = 10 };
typedef struct {
    int count;
    double within_1,
        within_2; /* share of programs inside one and two deviations; 0.68 and 0.95 where they are right */
    double spread; /* root mean square of error over deviation; 1 where they are right */
    struct {
        double expected,
            made; /* root mean squares of deviations and of errors, of a tenth of the programs, the surest first */
        int count;
    } bins[TL_CALIBRATION_BINS];
} tl_calibration;
tl_status tl_calibrate(const tl_judged *judged, const float *mean, const float *variance,
                       tl_calibration *out, tl_diag *diag);
/* A picture of it: lines of text, and SVG. */
void tl_calibration_print(const tl_calibration *calibration, tl_text *out);
void tl_calibration_draw(const tl_calibration *calibration, const char *title, tl_text *out);

#endif
