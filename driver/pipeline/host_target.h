/* driver/pipeline/host_target.h: the target of a compile: this machine as the runtime's probe and LLVM see it, or one by name. */
#ifndef TL_DRIVER_PIPELINE_HOST_TARGET_H
#define TL_DRIVER_PIPELINE_HOST_TARGET_H
#include "ir/program/target.h"
#include "runtime/cache/cache.h"

/* `name` NULL or "cpu": this machine. Others keep this machine's caches and cores. TL_UNSUPPORTED when
 * this processor could not run the code. */
tl_status tl_target_resolve(const char *name, tl_target *out, tl_diag *diag);
/* The same, also for code that runs elsewhere. What LLVM says of this machine is remembered in the cache (NULL: none), so that
 * it need not be loaded to be asked again. */
tl_status tl_target_any(const char *name, tl_cache *cache, tl_target *out, tl_diag *diag);
/* Whether this processor can run the code; tl_target_check says it in a sentence. */
bool tl_target_runs_here(const char *name);
tl_status tl_target_check(const char *name, tl_diag *diag);
/* "cpu|x86-64|...": all names that tl_target_any knows, as the argument of an option. */
extern const char tl_target_words[];

/* Where programs for a target are measured (tl_measure_options). */
typedef struct {
    char device[32]; /* "cuda:1"; "": this CPU */
    tl_target host;  /* of what runs on this machine all the same */
} tl_target_place;
/* `target`: what the name came to. TL_UNSUPPORTED: it is a GPU without a device (nvptx64). */
tl_status tl_target_find_place(const char *name, const tl_target *target, tl_target_place *out,
                               tl_diag *diag);

#endif
