/* driver/pipeline/model_memory.h: how much memory a model takes, told before it is taken. */
#ifndef TL_DRIVER_PIPELINE_MODEL_MEMORY_H
#define TL_DRIVER_PIPELINE_MODEL_MEMORY_H
#include "driver/pipeline/model.h"

/* In bytes; what would overflow is INT64_MAX. */
typedef struct {
    /* as they are in the graph, or in the executable where no kernel packs them */
    int64_t constants;
    int64_t packed;
    /* values between kernels, that share memory; scratch where kernels have said how much they need */
    int64_t plan;
    int64_t ports; /* inputs and outputs */
} tl_model_memory;

/* Of a graph that is cut into kernels: nothing is packed yet. `scratch` is what each kernel needs of it, NULL: not known. */
tl_status tl_model_memory_of_graph(tl_arena *arena, const tl_graph *graph,
                                   const tl_partition *partition, const int64_t *scratch,
                                   tl_model_memory *out, tl_plan_sizes *plan, tl_diag *diag);
/* Two sizes together; what would overflow, or is negative, is INT64_MAX. */
int64_t tl_memory_sum(int64_t a, int64_t b);
/* Of an executable, before anything is packed; a runner's plan comes on top. */
tl_model_memory tl_model_memory_of_executable(const tl_executable *executable);

/* What a model may take when nobody says: four fifths of what the machine, or the control group that the process is in, has left
 * now. 0: no limit, for that cannot be told. */
int64_t tl_model_memory_limit(void);
/* TL_NO_MEMORY names what it takes and the limit; 0 is none. */
tl_status tl_model_memory_check(const tl_model_memory *memory, int64_t limit, tl_diag *diag);

#endif
