/* codegen/lower/kernel_plan.h: the phases of a lowered kernel, and where its local buffers live. */
#ifndef TL_CODEGEN_LOWER_KERNEL_PLAN_H
#define TL_CODEGEN_LOWER_KERNEL_PLAN_H
#include "codegen/lower/lower_program.h"

typedef enum {
    TL_PLACE_REGISTER, /* SSA values: a stack slot that optimisation takes apart      */
    TL_PLACE_STACK,    /* a stack slot                                                */
    TL_PLACE_THREAD,   /* thread scratch: allocated inside a parallel loop            */
    TL_PLACE_SHARED,   /* shared scratch: allocated outside, seen by all threads      */
    TL_PLACE_BLOCK,    /* a GPU block's shared memory                                 */
    TL_PLACE_WARP,     /* a GPU: registers of a thread, its part of what a warp holds */
} tl_alloc_place;

typedef struct {
    const tl_buffer *buffer;
    tl_alloc_place place;
    const tl_expr *const *strides; /* elements, one an axis */
    const tl_expr *bytes;          /* constant for REGISTER and STACK, else over dims */
    const tl_expr *offset; /* THREAD, SHARED, BLOCK: into the scratch, over dims; BLOCK: constant */
} tl_placement;

/* How a phase is launched on a GPU. */
enum { TL_GPU_AXES = 3, TL_GPU_JOIN_BYTES = 8, TL_GPU_MAP_AXES = 5, TL_GPU_MAP_SCRATCH = -1 };
typedef struct {
    const tl_expr *grid[TL_GPU_AXES]; /* blocks, over dims */
    int64_t block[TL_GPU_AXES];       /* threads */
    int64_t shared_bytes;             /* of a block */
    int64_t join_offset;          /* in it: TL_GPU_JOIN_BYTES a warp, where warps combine values */
    int64_t mbarrier_offset;      /* in it: 8 bytes a mbarrier */
    int64_t cluster[TL_GPU_AXES]; /* blocks that share */
    bool sets_registers;
} tl_launch_plan;

/* A box of an argument or of scratch that bulk copies take: a tensor map (runtime/abi/descriptor.h). Axes are innermost first. */
typedef struct {
    int buffer;     /* in the order of the kernel's arguments; TL_GPU_MAP_SCRATCH */
    int64_t offset; /* in scratch, bytes */
    const tl_buffer *from;
    int rank, swizzle;
    int64_t extents[TL_GPU_MAP_AXES], strides[TL_GPU_MAP_AXES], box[TL_GPU_MAP_AXES];
} tl_map_plan;

typedef struct {
    const tl_stmt *body;   /* of the parallel loop, or the whole statement */
    const tl_var *var;     /* of the parallel loop, or NULL */
    const tl_expr *extent; /* 1 without a parallel loop */
    tl_launch_plan launch; /* on a GPU; the body has the bound loops */
} tl_phase;

typedef struct {
    int phase_count;
    const tl_phase *phases;
    int placement_count;
    const tl_placement *placements;
    int map_count;
    const tl_map_plan *maps;
    const tl_expr *scratch, *thread_scratch; /* bytes */
    bool has_sizes;                          /* an extent or a scratch size depends on dims */
} tl_kernel_plan;

tl_status tl_plan_make(const tl_lowered_kernel *kernel, tl_kernel_plan *out, tl_diag *diag);
/* gpu_plan.c: the same for a GPU: a phase is a launch. */
tl_status tl_gpu_plan_make(const tl_lowered_kernel *kernel, tl_kernel_plan *out, tl_diag *diag);
/* tensor_maps.c: the number of the map that a bulk copy goes by; -1: it is no such copy. */
int tl_plan_find_map(const tl_kernel_plan *plan, const tl_intrinsic_call *call);
/* NULL: a parameter. */
const tl_placement *tl_plan_find(const tl_kernel_plan *plan, const tl_buffer *buffer);
/* gpu_formula.c: an expression over the program's dims as a number (then *out is NULL) or as a text of runtime/abi/formula.h. */
tl_status tl_gpu_formula(tl_arena *arena, const tl_program *program, const tl_expr *e,
                         int64_t *number, const char **out, tl_diag *diag);
/* Of shared memory that a kernel declares; more is given with its launch. */
enum { TL_GPU_STATIC_SHARED = 48 << 10 };
/* Which axis of a GPU block's threads, or of the grid, a loop is bound to; -1: none. */
int tl_gpu_thread_axis(tl_loop_kind kind);
int tl_gpu_block_axis(tl_loop_kind kind);
/* Elements from one index of an axis to the next: the buffer's strides, or packed row-major. */
const tl_expr *const *tl_buffer_strides(tl_arena *arena, const tl_buffer *buffer);

#endif
