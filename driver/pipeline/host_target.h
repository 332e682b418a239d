/* driver/pipeline/host_target.h: the target of a compile: this machine as the runtime's probe and LLVM see it, or one by name. */
#ifndef TL_DRIVER_PIPELINE_HOST_TARGET_H
#define TL_DRIVER_PIPELINE_HOST_TARGET_H
#include "ir/program/target.h"

/* `name` NULL or "cpu": this machine. Others keep this machine's caches and cores. TL_UNSUPPORTED when
 * this processor could not run the code. */
tl_status tl_target_resolve(const char *name, tl_target *out, tl_diag *diag);
/* The same, also for code that runs elsewhere. */
tl_status tl_target_any(const char *name, tl_target *out, tl_diag *diag);
bool tl_target_runs_here(const char *name);
/* "cpu|x86-64|...": all names that tl_target_any knows, as the argument of an option. */
extern const char tl_target_words[];

#endif
