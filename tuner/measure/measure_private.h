/* tuner/measure/measure_private.h: what a measurer is to those that are one: workers, recorder, replayer. */
#ifndef TL_TUNER_MEASURE_MEASURE_PRIVATE_H
#define TL_TUNER_MEASURE_MEASURE_PRIVATE_H
#include "tuner/measure/measure.h"

typedef struct {
    void (*destroy)(tl_measurer *m);
    tl_status (*add_task)(tl_measurer *m, const tl_measure_task *task, int *out, tl_diag *diag);
    tl_status (*submit)(tl_measurer *m, int task, const tl_candidate *candidates, int count,
                        int64_t *ticket, tl_diag *diag);
    tl_status (*next)(tl_measurer *m, double timeout_s, tl_result *out, tl_diag *diag);
    void (*pump)(tl_measurer *m);
    int64_t (*queued)(const tl_measurer *m);
    void (*forget)(tl_measurer *m, int task);
    void (*leave_core)(const tl_measurer *m);
    int64_t (*clock)(const tl_measurer *m);
    void (*stats)(const tl_measurer *m, tl_measure_stats *out);
} tl_measurer_type;
struct tl_measurer {
    const tl_measurer_type *type; /* first member of each implementation */
};

#endif
