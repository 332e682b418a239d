/* runtime/executable/device_run.h: the steps of an executable on its device: what a runner has in place of a walk of threads.
 *
 *     caller's inputs --copy in--> plan on the device: launch, launch, ... --copy out--> caller's outputs
 *
 * The launches of a model become one graph at the first run, so that later ones cost one call. Addresses of the device that
 * the caller gives in place of buffers of the host are used where they are. */
#ifndef TL_RUNTIME_EXECUTABLE_DEVICE_RUN_H
#define TL_RUNTIME_EXECUTABLE_DEVICE_RUN_H
#include "runtime/executable/executable.h"

#define TL_DEVICE_ALIGNMENT 256
static inline int64_t tl_device_aligned(int64_t size)
{
    return (size + TL_DEVICE_ALIGNMENT - 1) / TL_DEVICE_ALIGNMENT * TL_DEVICE_ALIGNMENT;
}

typedef struct tl_device_run tl_device_run;

/* `stream`: of the driver, the caller's, NULL: one of its own. The executable is attached to its device. Prepare steps write
 * prepared values there, and read constants that are copied there for as long as this lives. */
tl_status tl_device_run_make(const tl_executable *executable, const tl_executable_step *steps,
                             int step_count, void *stream, tl_device_run **out, tl_diag *diag);
void tl_device_run_drop(tl_device_run *run); /* NULL is fine */
tl_plan_sizes tl_device_run_memory(const tl_device_run *run);

/* A run with the caller's pointers. `on_device`, when not NULL, says which are addresses of the device: of the inputs, then of
 * the outputs. `step_ns` (or NULL) gets what the device took for each step. Returns when all is done, but when all ports are
 * on the device and the stream is the caller's. */
tl_status tl_device_run_go(tl_device_run *run, const void *const *inputs, void *const *outputs,
                           const bool *on_device, int64_t *step_ns, tl_diag *diag);
/* What the device takes for a run whose inputs are there: nanoseconds, of `runs` that follow each other without a wait, after
 * two that do not count. Nothing is copied out. */
tl_status tl_device_run_time(tl_device_run *run, const void *const *inputs, void *const *outputs,
                             int runs, double *ns, tl_diag *diag);
/* A run that stops before and after each step to show its buffers, copied to the host. */
tl_status tl_device_run_hooked(tl_device_run *run, const void *const *inputs, void *const *outputs,
                               tl_step_hook *hook, void *user, tl_diag *diag);
/* Prepare steps: runs them, and copies the prepared values that they write into the executable's memory on the host. */
tl_status tl_device_run_prepare(tl_device_run *run, unsigned char *prepared, tl_diag *diag);

#endif
