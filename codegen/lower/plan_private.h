/* codegen/lower/plan_private.h: what the plans of CPUs (kernel_plan.c) and of GPUs (gpu_plan.c) are made with. */
#ifndef TL_CODEGEN_LOWER_PLAN_PRIVATE_H
#define TL_CODEGEN_LOWER_PLAN_PRIVATE_H
#include "codegen/lower/kernel_plan.h"

#define TL_SCRATCH_ALIGN 64
#define TL_STACK_LIMIT   (64 << 10)

/* A local buffer, and from where to where it lives: phases, or statements of a thread. */
typedef struct {
    tl_placement placement;
    int64_t size; /* -1: depends on dims */
    int first, last;
    int64_t at;
} tl_plan_local;

typedef struct {
    const tl_lowered_kernel *kernel;
    tl_arena *arena;
    tl_diag *diag;
    int phase_count, local_count, phase_capacity, phase_stmt_capacity, local_capacity;
    tl_phase *phases;
    const tl_stmt **phase_stmts;
    tl_plan_local *locals;
    int map_count, map_capacity;
    tl_map_plan *maps;
    int64_t stack_bytes;
} tl_planner;

/* Of a register buffer: its rows padded to whole vectors; *elements is what it takes in all. */
const tl_expr *const *tl_register_strides(tl_arena *arena, const tl_buffer *buffer,
                                          const tl_target *target, int64_t *elements);
const tl_expr *tl_buffer_bytes(tl_arena *arena, const tl_buffer *buffer);
/* Gives the buffers of a place their offsets; the bytes that they take together. */
const tl_expr *tl_plan_pack(tl_planner *p, tl_alloc_place place);
/* The plan of what was collected; has_sizes speaks of the scratch alone. */
void tl_plan_finish(tl_planner *p, tl_kernel_plan *out);

/* tensor_maps.c: adds the maps of the body's bulk copies. */
tl_status tl_plan_maps(tl_planner *p, const tl_stmt *body);
/* Once the plan is made: where in scratch what they tell of lies. */
void tl_plan_place_maps(tl_planner *p, const tl_kernel_plan *plan);

#endif
