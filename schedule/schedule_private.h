/* schedule/schedule_private.h: what the primitives share. */
#ifndef TL_SCHEDULE_SCHEDULE_PRIVATE_H
#define TL_SCHEDULE_SCHEDULE_PRIVATE_H
#include "runtime/base/random.h"
#include "schedule/decide.h"
#include "schedule/region_at.h"
#include "schedule/schedule.h"
#include "schedule/trace.h"

enum { TL_LINE_BYTES = 64, TL_PAGE_BYTES = 4096 }; /* of a cache, of memory */

struct tl_schedule {
    tl_arena *arena;
    const tl_program *program;
    const tl_target *target;
    bool verify;
    int loop_count, loop_capacity, number_capacity; /* handle id - 1 -> variable */
    const tl_var **loops;
    int32_t *loop_numbers; /* handle id - 1 -> its number in the trace; 0: no step gave it */
    int32_t numbers;       /* how many numbers the trace has given out */
    int block_count, block_capacity; /* handle id - 1 -> name */
    const char **blocks;
    tl_trace trace;   /* of what was applied so far */
    tl_random random; /* for decisions that are left open */
    int32_t values;   /* numbers and lists of factors that steps gave */
    bool has_decided; /* the current step chose its last argument: */
    tl_arg decision;
    tl_decider *decide; /* answers for the sketch rules; NULL: the analytic model */
    void *decide_user;
    int decision_count, decision_capacity;
    tl_decision *decisions;
};

/* What a primitive's function receives and fills. It must not change the schedule but by tl_schedule_set_body and the
 * like, and only after nothing can fail any more. */
typedef tl_status tl_prim_function(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                   int *out_count, tl_diag *diag);
typedef struct {
    const char *name, *in, *out;
    tl_prim_function *apply;
} tl_prim_info;
extern const tl_prim_info tl_prim_infos[TL_PRIM_COUNT];
/* What tensorize can call (schedule/prim/tensor_shapes.def); NULL after the last. */
const char *tl_tensor_call_name(int index);

#define PRIMITIVE(name, in, out) tl_prim_function tl_apply_##name;
#include "schedule/primitives.def"
#undef PRIMITIVE

/* Whether the block's terms must be combined in the order in which they are written: a sum or product of floats in a
 * strict program. */
static inline bool tl_keeps_order(const tl_schedule *s, const tl_block *block)
{
    return s->program->strict && tl_block_rounds(block);
}

#define TL_STRICT_RULE \
    "a strict kernel adds up the terms of a sum one after the other, in their order"

/* Replaces the program's body (or prepare part), the rest unchanged. */
void tl_schedule_set_body(tl_schedule *s, const tl_stmt *body);
void tl_schedule_set_program(tl_schedule *s, const tl_program *program);

/* The chain of statements from the root down to (and with) the block or loop; 0 when it is not there. */
typedef struct {
    int count;
    const tl_stmt *const *stmts;
} tl_path;
tl_path tl_path_to_block(tl_arena *arena, const tl_stmt *root, const char *name);
tl_path tl_path_to_loop(tl_arena *arena, const tl_stmt *root, const tl_var *var);
/* Rebuilds the tree with the statement at the end of `path` replaced (NULL: removed, empty loops and allocs above go
 * too; NULL comes back when nothing is left). An alloc in the midst of a SEQ takes in what follows it, as the text
 * has it. */
const tl_stmt *tl_path_replace(tl_arena *arena, const tl_path *path, const tl_stmt *with);
/* Lets every alloc that has statements after it in a SEQ take them in. */
const tl_stmt *tl_extend_allocs(tl_arena *arena, const tl_stmt *root);
/* The same in the schedule: the path in the body, else in the prepare part; count 0: not there. Replace stores the new
 * program, in the part that the path starts from. */
tl_path tl_schedule_path_to_loop(const tl_schedule *s, const tl_var *var);
tl_path tl_schedule_path_to_block(const tl_schedule *s, const char *name);
void tl_schedule_replace(tl_schedule *s, const tl_path *path, const tl_stmt *with);
/* The first `count` statements of a path. */
tl_path tl_path_prefix(const tl_path *path, int count);
/* The loops of a path from position `first` on, as variables that are free inside (schedule/region_at.h). */
const tl_free_var *tl_path_loops(tl_arena *arena, const tl_path *path, int first, int *count);
/* The position in `path` of the loop of `var`; -1: not on it. */
int tl_path_find_loop(const tl_path *path, const tl_var *var);

/* A handle's loop or block, or TL_ILLEGAL_SCHEDULE with "split: loop i0 is gone ..." */
tl_status tl_need_loop(tl_schedule *s, const char *prim, tl_loop_ref ref, const tl_stmt **out,
                       tl_diag *diag);
tl_status tl_need_block(tl_schedule *s, const char *prim, tl_block_ref ref, const tl_block **out,
                        tl_diag *diag);
/* A refusal: TL_ILLEGAL_SCHEDULE; `prim` and what it was applied to come first in the sentence. */
tl_status tl_refuse(tl_diag *diag, const char *prim, const char *subject, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Sizes of expressions (expression_size.c): of a program after any step; of what a block stores once another is inside; and,
 * before that is built, of all copies of a block's value that a reader would have. */
tl_status tl_check_expression_sizes(const tl_schedule *s, const char *prim, tl_diag *diag);
tl_status tl_check_inlined(const char *prim, const tl_block *block, const tl_block *into,
                           tl_diag *diag);
tl_status tl_check_copies(const char *prim, const tl_block *block, const tl_block *reader,
                          tl_diag *diag);
/* Another buffer in the place of a local one: its alloc and every access. */
void tl_schedule_swap_local(tl_schedule *s, const tl_buffer *from, const tl_buffer *to);

/* The same loop with another kind, or other annotations. */
const tl_stmt *tl_loop_with_kind(tl_arena *arena, const tl_stmt *loop, tl_loop_kind kind);
const tl_stmt *tl_loop_with_annotations(tl_arena *arena, const tl_stmt *loop, int count,
                                        const tl_annotation *annotations);
/* What a loop must be to get a kind (loop_kind.c): serial; of a constant extent of `most` at most; its iterations
 * independent and moving spatial iters only (or, where lanes may be combined, reduce iters). */
tl_status tl_check_serial(const char *prim, const tl_stmt *loop, tl_diag *diag);
tl_status tl_check_constant_extent(const char *prim, const tl_stmt *loop, int64_t most,
                                   tl_diag *diag);
tl_status tl_check_iterations(tl_schedule *s, const char *prim, const tl_stmt *loop,
                              bool may_reduce, tl_diag *diag);
/* Whether iterations of a loop of that kind share the buffers that they use and that are allocated outside of it. */
tl_status tl_check_private(const char *prim, const tl_path *path, const tl_stmt *loop,
                           tl_loop_kind kind, tl_diag *diag);
/* Whether the iterations of loops that run together are still independent, after a step that moved blocks. Loops that
 * `before` has with all that is under them were asked then. */
tl_status tl_check_parallel_loops(tl_schedule *s, const tl_program *before, const char *prim,
                                  tl_diag *diag);
/* Refuses a loop with GPU loops or barriers inside. */
tl_status tl_refuse_gpu_under(const char *prim, const tl_stmt *loop, tl_diag *diag);
/* A loop of that kind under a statement (itself not counted) or on the path to it; NULL: none. */
const tl_stmt *tl_find_kind_under(const tl_stmt *stmt, tl_loop_kind kind);
const tl_stmt *tl_find_kind_above(const tl_path *path, tl_loop_kind kind);
/* Whether a buffer may live in that scope: shared and warp are a GPU's; all but global have a bounded shape. */
tl_status tl_check_scope(tl_schedule *s, const char *prim, const tl_buffer *buffer, tl_scope scope,
                         tl_diag *diag);
/* The shape a buffer has in that scope: all but global want constants, and a dim becomes its largest value. NULL when
 * that has no bound. */
const tl_expr *const *tl_shape_in_scope(tl_arena *arena, const tl_buffer *buffer, tl_scope scope);
/* Moves the allocs of shared buffers out of thread loops (hoist_shared.c). */
void tl_hoist_shared(tl_schedule *s);
bool tl_is_thread_kind(tl_loop_kind kind);
/* Whether thread loops inside `outer`, one itself, over its axis do what all its iterations did alike (prim_bind.c). */
tl_status tl_check_same_threads(tl_schedule *s, const char *prim, const tl_stmt *outer,
                                tl_diag *diag);
/* A variable derived from another's name ("i" and "_0" give i_0), range 0..extent-1. */
tl_var *tl_var_derive(tl_arena *arena, const tl_var *from, const char *suffix,
                      const tl_expr *extent);

/* The handle of `from`, if there is one, is `to`'s from now on: the loop was rebuilt with another variable. */
void tl_schedule_rename_loop(tl_schedule *s, const tl_var *from, const tl_var *to);

/* A name that no block (no buffer) of the program has yet: `base`, or base_1, base_2, ... */
const char *tl_fresh_block_name(tl_schedule *s, const char *base);
const char *tl_fresh_buffer_name(tl_schedule *s, const char *base);

/* Appends a step with copies of its arguments and results to a trace. */
tl_step *tl_trace_append(tl_arena *arena, tl_trace *trace, tl_prim prim, const tl_arg *args,
                         int arg_count, const tl_arg *outs, int out_count);
/* For tl_schedule_apply: gives numbers to the loops among a step's arguments that no step gave yet (by a loops(BLOCK)
 * step), before it is applied; and records a step that was. */
tl_status tl_schedule_introduce(tl_schedule *s, const char *prim, const tl_arg *args, int arg_count,
                                tl_diag *diag);
void tl_schedule_record(tl_schedule *s, tl_prim prim, const tl_arg *args, int arg_count,
                        const tl_arg *outs, int out_count);

/* A schedule as it was before a step. */
typedef struct {
    const tl_program *program;
    int loop_count, block_count, step_count;
    int32_t numbers, values;
    const tl_var **loops; /* a copy: some steps give handles another variable */
} tl_schedule_state;
tl_schedule_state tl_schedule_save(tl_schedule *s);
void tl_schedule_restore(tl_schedule *s, const tl_schedule_state *saved);

/* What a sampling primitive chose, to be recorded; and its result's name in the trace. */
void tl_schedule_decide(tl_schedule *s, tl_arg decision);
const char *tl_schedule_name_value(tl_schedule *s);

/* A replay on its way (trace.c). */
struct tl_replay {
    const tl_trace *trace;
    tl_schedule *schedule;
    int done;           /* steps */
    tl_loop_ref *loops; /* the schedule's handle of a number - 1 */
    int block_count;    /* names that steps gave their results */
    const char **block_names;
    tl_block_ref *blocks;
    int value_count; /* the same for numbers and lists of factors */
    const char **value_names;
    tl_arg *values;
};
/* A step, which may differ from the trace's own; what it gives is what the trace's later steps take. */
tl_status tl_replay_step(tl_replay *r, tl_schedule *s, const tl_step *step, tl_diag *diag);
/* The text of one of the trace's steps. */
const char *tl_step_text(tl_arena *arena, const tl_trace *trace, const tl_step *step);

/* Blocks that read or write a buffer, in execution order. That a reduction reads what it updates does not
 * count as reading. */
bool tl_block_reads_buffer(const tl_block *block, const tl_buffer *buffer);
bool tl_block_writes_buffer(const tl_block *block, const tl_buffer *buffer);
/* Whether it reads, writes or prefetches the buffer. */
bool tl_stmt_uses_buffer(const tl_stmt *stmt, const tl_buffer *buffer);
int tl_readers_of(tl_arena *arena, const tl_stmt *root, const tl_buffer *buffer,
                  const tl_block ***out);
int tl_writers_of(tl_arena *arena, const tl_stmt *root, const tl_buffer *buffer,
                  const tl_block ***out);

/* Whether the comparison `given` proves the condition, because the excess of the condition times a positive number is no
 * larger than that of `given`: i0*4 + i1 < 10 says i0 < 3. */
bool tl_follows_from(tl_arena *arena, const tl_expr *condition, const tl_expr *given);

/* Moves the alloc of each local buffer down to the innermost statement that contains all its accesses, where
 * every read of an iteration is covered by that iteration's writes. Called by primitives that move blocks. */
const tl_stmt *tl_sink_allocs(tl_arena *arena, const tl_stmt *root);
/* Whether every element that an iteration of the loop reads of the buffer was written before in that iteration. */
bool tl_writes_before_reads(tl_arena *arena, const tl_stmt *loop, const tl_buffer *buffer);

#endif
