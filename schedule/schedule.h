/* schedule/schedule.h: a Program being transformed, and the handles to its loops and blocks.
 *
 * A handle is a small number that the schedule resolves: a loop handle names a loop *variable*, so it survives
 * every rewrite that keeps the loop; a block handle names a block by name. A primitive that fails leaves the
 * schedule as it was: the Program is immutable and only the pointer to the new one is stored, last. Every
 * primitive that succeeds appends one step to the schedule's trace (schedule/trace.h). */
#ifndef TL_SCHEDULE_SCHEDULE_H
#define TL_SCHEDULE_SCHEDULE_H
#include "ir/expr/index.h"
#include "ir/program/program.h"
#include "ir/program/target.h"

typedef enum {
#define PRIMITIVE(name, in, out) TL_PRIM_##name,
#include "schedule/primitives.def"
#undef PRIMITIVE
    TL_PRIM_COUNT
} tl_prim;

typedef struct {
    int32_t id; /* 0: none */
} tl_loop_ref;
typedef struct {
    int32_t id; /* 0: none */
} tl_block_ref;

typedef struct tl_schedule tl_schedule;

/* The schedule lives in `arena`, as all Programs it makes. `target` gives V and friends their values in
 * traces; it may be NULL (then V is refused). `verify` runs the verifier after every step. */
tl_schedule *tl_schedule_create(tl_arena *arena, const tl_program *program, const tl_target *target,
                                bool verify);
const tl_program *tl_schedule_program(const tl_schedule *s);
/* Where the decisions that sampling steps leave open come from; without it from seed 1. */
void tl_schedule_seed(tl_schedule *s, uint64_t seed);
tl_arena *tl_schedule_arena(const tl_schedule *s);

/* Handles. */
tl_status tl_schedule_block(tl_schedule *s, const char *name, tl_block_ref *out, tl_diag *diag);
/* NULL when it is gone. */
const tl_block *tl_schedule_get_block(const tl_schedule *s, tl_block_ref ref);
/* NULL when it is gone. */
const tl_stmt *tl_schedule_get_loop(const tl_schedule *s, tl_loop_ref ref);
tl_loop_ref tl_schedule_name_loop(tl_schedule *s, const tl_var *var);
tl_block_ref tl_schedule_name_block(tl_schedule *s, const char *name);

/* One argument or result of a primitive, as the letters of primitives.def say. */
typedef enum {
    TL_ARG_LOOP,
    TL_ARG_BLOCK,
    TL_ARG_INT,
    TL_ARG_WORD,
    TL_ARG_FACTORS,
    TL_ARG_MAP
} tl_arg_kind;
typedef struct {
    tl_arg_kind kind;
    tl_loop_ref loop;
    tl_block_ref block;
    int64_t value;
    /* WORD: a buffer or a word; MAP: its text; FACTORS, INT: the name of the sampling step's result that it is, or
     * NULL. */
    const char *word;
    int count;
    const int64_t *factors; /* 0 is _ */
} tl_arg;
#define TL_MAX_ARGS 24

/* The one door: checks, rewrites, verifies if asked, records. Results go to `out` (TL_MAX_ARGS of them). */
tl_status tl_schedule_apply(tl_schedule *s, tl_prim prim, const tl_arg *args, int arg_count,
                            tl_arg *out, int *out_count, tl_diag *diag);

/* The same, typed, for code that writes schedules in C. tl_loops wants room for TL_MAX_ARGS loops in `out`; the others
 * write as many as primitives.def says; a NULL `out` throws them away. */
tl_status tl_loops(tl_schedule *s, tl_block_ref block, tl_loop_ref *out, int *count, tl_diag *diag);
tl_status tl_split(tl_schedule *s, tl_loop_ref loop, const int64_t *factors, int count,
                   tl_loop_ref *out, tl_diag *diag);
tl_status tl_fuse(tl_schedule *s, const tl_loop_ref *loops, int count, tl_loop_ref *out,
                  tl_diag *diag);
tl_status tl_reorder(tl_schedule *s, const tl_loop_ref *loops, int count, tl_diag *diag);
tl_status tl_parallel(tl_schedule *s, tl_loop_ref loop, tl_diag *diag);
tl_status tl_vectorize(tl_schedule *s, tl_loop_ref loop, tl_diag *diag);
tl_status tl_unroll(tl_schedule *s, tl_loop_ref loop, tl_diag *diag);
tl_status tl_loop_partition(tl_schedule *s, tl_loop_ref loop, tl_diag *diag);
tl_status tl_compute_at(tl_schedule *s, tl_block_ref block, tl_loop_ref loop, tl_diag *diag);
tl_status tl_reverse_compute_at(tl_schedule *s, tl_block_ref block, tl_loop_ref loop,
                                tl_diag *diag);
tl_status tl_compute_inline(tl_schedule *s, tl_block_ref block, tl_diag *diag);
tl_status tl_cache_read(tl_schedule *s, tl_block_ref consumer, const char *buffer,
                        const char *scope, tl_block_ref *out, tl_diag *diag);
tl_status tl_cache_write(tl_schedule *s, tl_block_ref block, const char *scope, tl_block_ref *out,
                         tl_diag *diag);
tl_status tl_decompose_reduction(tl_schedule *s, tl_block_ref block, tl_loop_ref loop,
                                 tl_block_ref *out, tl_diag *diag);
tl_status tl_transform_layout(tl_schedule *s, const char *buffer, const char *map, tl_diag *diag);
tl_status tl_set_scope(tl_schedule *s, const char *buffer, const char *scope, tl_diag *diag);
tl_status tl_prefetch(tl_schedule *s, tl_block_ref block, const char *buffer, tl_loop_ref loop,
                      int64_t distance, int64_t level, tl_diag *diag);
tl_status tl_pad_einsum(tl_schedule *s, tl_block_ref block, const int64_t *factors, int count,
                        tl_block_ref *out, tl_diag *diag);
tl_status tl_storage_align(tl_schedule *s, const char *buffer, int64_t axis, int64_t factor,
                           int64_t offset, tl_diag *diag);
tl_status tl_swizzle(tl_schedule *s, const char *buffer, int64_t bytes, tl_diag *diag);
tl_status tl_software_pipeline(tl_schedule *s, tl_loop_ref loop, int64_t stages, tl_diag *diag);
tl_status tl_specialize(tl_schedule *s, tl_loop_ref loop, int64_t copying, int64_t computing,
                        tl_diag *diag);
tl_status tl_bulk_copy(tl_schedule *s, tl_loop_ref loop, tl_diag *diag);
tl_status tl_annotate(tl_schedule *s, tl_loop_ref loop, const char *key, int64_t value,
                      tl_diag *diag);
tl_status tl_tensorize(tl_schedule *s, tl_loop_ref loop, const char *intrinsic, tl_diag *diag);
tl_status tl_bind_loop(tl_schedule *s, tl_loop_ref loop, const char *axis, tl_diag *diag);
tl_status tl_put_barriers(tl_schedule *s, tl_diag *diag); /* place_barriers */

#endif
