/* driver/pipeline/tunable_model.h: a model as something that the tuner can build, run and compare (tuner/model/tunable.h). */
#ifndef TL_DRIVER_PIPELINE_TUNABLE_MODEL_H
#define TL_DRIVER_PIPELINE_TUNABLE_MODEL_H
#include "driver/pipeline/model.h"
#include "tuner/model/tunable.h"

/* The model at `path`, which `graph` was read from (inspect_only is enough; compiled here, not taken from the cache whole):
 * its graph is what other forms are cut from, its identity what choices are written for. `options` are those that the
 * model will be compiled with later (target, numerics, threads, shapes; database and picks are not looked at; naive:
 * untuned means without schedules). All three outlive it. It lives in `arena`, whose guard is the caller's. */
tl_tunable *tl_tunable_model_create(tl_arena *arena, const char *path, tl_model *graph,
                                    const tl_model_options *options);
void tl_tunable_model_destroy(tl_tunable *model); /* after its builds; NULL is fine */

#endif
