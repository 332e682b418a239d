/* tuner/measure/run_device.h: candidates on a device (a GPU): where their buffers lie, running them, timing them.
 *
 * The child of a runner opens the device, never the runner itself: what a kernel does to the device's context ends with the
 * child, and the next one has a context of its own. Inputs and outputs of the task lie on the device once, for all
 * candidates; what packs constants runs on the host. Times are the device's own, between two events, with its L2 flushed
 * before where something is to be cold. What witnesses are on a CPU is a kernel here that does nothing but multiply and
 * add: a device that is slower than it was makes no times that count. */
#ifndef TL_TUNER_MEASURE_RUN_DEVICE_H
#define TL_TUNER_MEASURE_RUN_DEVICE_H
#include "runtime/device/device.h"
#include "tuner/measure/worker_private.h"

struct tl_bench_device {
    tl_device *device; /* NULL: `failure` says why there is none */
    tl_diag failure;   /* the first, of opening it or of a call while something was timed */
    bool has_failed;
    tl_queue *queue;
    tl_device_event *begin, *end;
    /* of read params; constants: the same in all sets */
    void *inputs[TL_INPUT_SETS][TL_MAX_PARAMS];
    void *outputs[TL_MAX_PARAMS]; /* of written ones */
    void *flush;                  /* twice L2; NULL: no memory for it */
    int64_t flush_bytes;
    tl_device_kernel *peak; /* the witness; NULL: the device does not take it */
    void *peak_sink;
    double best_peak_ns;
    int64_t peak_seen_ns; /* when it was sampled last */
};

/* What a candidate has on it. */
struct tl_bench_kernel {
    tl_bench_device *bench;
    tl_device_kernel *kernel;
    void *scratch, *prepared[TL_MAX_PARAMS];
    int prepared_count;
};

/* Never NULL but for want of memory: what is wrong with the device shows in every job. */
tl_bench_device *tl_bench_device_open(const tl_worker_config *config, const tl_run_task *task);
bool tl_bench_device_is_emulated(const tl_bench_device *bench);
/* Whether the device is lost, and with it this process. */
bool tl_bench_device_is_lost(const tl_bench_device *bench);

/* Loads it; `prepared` are packed constants on the host. */
tl_status tl_bench_kernel_create(tl_bench_device *bench, const tl_built *built,
                                 const tl_descriptor *descriptor, const int64_t *dims,
                                 const tl_guarded *prepared, int prepared_count,
                                 tl_bench_kernel **out, tl_diag *diag);
void tl_bench_kernel_destroy(tl_bench_kernel *k); /* NULL is fine */

/* One call on an input set, outputs poisoned before and copied to the host afterwards. */
tl_status tl_bench_kernel_check(tl_bench_kernel *k, const tl_run_task *task, int set,
                                tl_guarded *outputs, double *ns, tl_diag *diag);
/* The mean of so many calls in a row. Infinity when the device fails; then bench->failure says how. */
double tl_bench_kernel_time(tl_bench_kernel *k, const tl_run_task *task, int calls, tl_cold cold);
/* False: it is slower than 85 % of its best. */
bool tl_bench_device_is_calm(tl_bench_device *bench, int64_t age_ns);

#endif
