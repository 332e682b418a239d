/* schedule/dependence.h: which instances touch the same element, and what that says about their loops.
 *
 * Two accesses that meet in one element have equal indices there. From such an equation follows that some loop
 * variables are equal too: 8*i + x = 8*i' + x' with x and x' in 0..7 pins i. A loop whose variable is pinned by
 * every conflict carries none; two loops of which one is pinned by every conflict may change places. */
#ifndef TL_SCHEDULE_DEPENDENCE_H
#define TL_SCHEDULE_DEPENDENCE_H
#include "ir/expr/index.h"
#include "ir/program/program.h"

/* One load, store or region of a block, its indices over the loop variables. */
typedef struct {
    const tl_block *block;
    const tl_buffer *buffer;
    bool writes;
    bool updates;                 /* of a reduction: reads and writes what it combines into */
    const tl_expr *const *begin;  /* rank of them */
    const tl_expr *const *extent; /* NULL: one element */
} tl_access;

typedef struct {
    tl_arena *arena;
    int access_count, access_capacity;
    tl_access *accesses; /* of buffers that are not allocated under the statement */
    int var_count, var_capacity;
    /* Of the loops of and under the statement: they differ between two instances. */
    const tl_var **vars;
    int local_count, local_capacity;
    const tl_buffer **locals;
} tl_dependences;

tl_dependences tl_dependences_under(tl_arena *arena, const tl_stmt *stmt);

/* Whether two accesses can conflict at all: the same buffer, one of them writes. */
bool tl_may_conflict(const tl_access *a, const tl_access *b);

/* What is equal whenever `a` and `b` meet: expressions over loop variables. */
typedef struct {
    int count, capacity;
    const tl_expr **equal;
    int sum_count, sum_capacity;
    const tl_expr **sums; /* that are the same in both, and of whose terms that is not known */
} tl_pins;
tl_pins tl_pins_of(const tl_dependences *d, const tl_access *a, const tl_access *b);
/* The same where two instances of a block that differ in their spatial iters may meet as well. */
tl_pins tl_pins_of_elements(const tl_dependences *d, const tl_access *a, const tl_access *b);
/* The same for the spatial iters of one block: instances of it that agree in them. */
tl_pins tl_pins_of_instance(const tl_dependences *d, const tl_block *block);
/* Whether the variable has the same value in both. */
bool tl_pins_var(const tl_pins *pins, const tl_var *var);

/* Whether no two different iterations of the loop conflict; if they may, *first and *second say where.
 * `updates_commute`: two updates of one reduction are no conflict if the loop drives its reduce iters. Of a thread loop,
 * neither are accesses of a shared buffer by different blocks, which barriers order (place_barriers), where all
 * iterations write the same. */
bool tl_loop_is_independent(tl_arena *arena, const tl_stmt *loop, bool updates_commute,
                            tl_access *first, tl_access *second);

/* How a loop takes part in a block. */
typedef enum {
    TL_DRIVES_NOTHING = 0,
    TL_DRIVES_SPATIAL = 1,
    TL_DRIVES_REDUCE = 2,
    TL_DRIVES_ORDERED = 4,
} tl_drives;
/* Whether instances of the block under different values of the variable differ. */
bool tl_block_depends_on(const tl_block *block, const tl_var *var);
/* A set of tl_drives; *iter is the first iter of the most restrictive kind. */
int tl_loop_drives(const tl_block *block, const tl_var *var, const tl_iter **iter);

#endif
