/* tuner/cost/features_private.h: a program as the features see it: statements in loops, and the boxes they touch. */
#ifndef TL_TUNER_COST_FEATURES_PRIVATE_H
#define TL_TUNER_COST_FEATURES_PRIVATE_H
#include "tuner/cost/features.h"

enum { TL_OUTLINE_DEPTH = 40, TL_OUTLINE_ACCESSES = 16, TL_OUTLINE_NONE = -1, TL_LINE_BYTES = 64 };

typedef struct {
    const tl_var *var;
    double extent;
    tl_loop_kind kind;
    double starts;          /* how often it begins: the product of the extents around it */
    double *bytes;          /* by buffer: touched in one iteration */
    double iteration_bytes; /* their sum */
} tl_outline_loop;

/* What a statement touches of a buffer. Of the arrays by depth, [d] is about the loops from number d of the statement's
 * on, the outer ones standing still: [0] is all of it and [depth] one run. */
typedef struct {
    const tl_buffer *buffer;
    int buffer_index;
    bool is_read, is_written;
    double elements[TL_OUTLINE_DEPTH + 1], lines[TL_OUTLINE_DEPTH + 1];
    double first;                    /* the element touched when all loops stand at 0 */
    double stride[TL_OUTLINE_DEPTH]; /* elements that a step of loop d moves, from the beginning */
    double unit;                     /* bytes of an element */
} tl_outline_access;

typedef struct {
    double op[TL_FEATURE_SCALARS]; /* those of features.def from float_mad to cast_op, in one run */
    double flops;                  /* floating-point operations of one run */
} tl_outline_ops;

typedef struct {
    const tl_block *block;
    const tl_store *store;
    int phase;
    int depth;
    int loops[TL_OUTLINE_DEPTH];    /* indices, outermost first */
    bool reduces[TL_OUTLINE_DEPTH]; /* whether that loop moves a reduce iter */
    int body;                       /* the loops from this number on are unrolled or vectorized */
    double runs;
    tl_outline_ops ops;
    int access_count;
    tl_outline_access *accesses; /* the written one first */
} tl_outline_statement;

typedef struct {
    const tl_buffer *buffer;
    int level; /* 1 or 2 */
    int depth;
    int loops[TL_OUTLINE_DEPTH]; /* around it */
    double runs;
    double first; /* the element it fetches when all loops stand at 0 */
} tl_outline_fetch;

typedef struct {
    const tl_buffer *buffer;
    double runs; /* how often it is allocated; 1 for what the kernel is given */
    bool is_alloc;
} tl_outline_buffer;

typedef struct {
    tl_arena *arena;
    const tl_target *target;
    int loop_count, statement_count, fetch_count, buffer_count, buffer_capacity, phase_count;
    tl_outline_loop *loops;
    tl_outline_statement *statements;
    tl_outline_fetch *fetches;
    tl_outline_buffer *buffers;
    double *phase_bytes; /* by phase and buffer */
    double total_bytes;  /* of the different buffers of all phases */
    double flops;
} tl_outline;

/* features_outline.c: reads the body of a program. */
tl_outline *tl_outline_of(tl_arena *arena, const tl_program *program, const tl_target *target);
/* features_box.c: fills elements, lines and stride of the statement's accesses. */
void tl_outline_measure(tl_outline *outline, tl_outline_statement *s,
                        const tl_expr *const *const *indices);
/* The element of the buffer at those indices when all loops stand at 0. */
double tl_outline_address(const tl_buffer *buffer, const tl_expr *const *indices);
/* features_ops.c */
void tl_outline_count(const tl_block *block, const tl_store *store, tl_outline_ops *out);
/* features_body.c: what the straight code of a statement does and the caches deliver. */
typedef struct {
    double lanes, fill; /* of the vectorized loop; 1 without one */
    double vectors;     /* arithmetic instructions */
    double results, vector_loads, broadcasts, strided_loads, stores;
    double register_results, register_excess, cycles;
    double runs; /* of the body */
} tl_outline_body;
void tl_outline_body_of(const tl_outline *outline, const tl_outline_statement *s,
                        tl_outline_body *out);
/* Cache lines of the access that a cache of that size does not hold when they are wanted. */
double tl_outline_misses(const tl_outline *outline, const tl_outline_statement *s,
                         const tl_outline_access *a, double cache_bytes);

#endif
