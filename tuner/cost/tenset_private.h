/* tuner/cost/tenset_private.h: what the parts of the 164 features share. */
#ifndef TL_TUNER_COST_TENSET_PRIVATE_H
#define TL_TUNER_COST_TENSET_PRIVATE_H
#include "tuner/cost/tenset.h"

enum { TL_TENSET_DEPTH = 40, TL_TENSET_AXES = 16, TL_TENSET_LINE = 64 };

typedef enum { TL_TENSET_READ, TL_TENSET_WRITE, TL_TENSET_UPDATE } tl_tenset_type;

/* One access of a statement, under a loop: how much of the buffer it touched there. */
typedef struct {
    const tl_buffer *buffer;
    double elements;
} tl_tenset_touch;

/* A loop, and what the statements under it touched so far, in the order in which they were met. */
typedef struct {
    const tl_var *var;
    double extent; /* 1: it is no constant */
    double span;   /* of its variable, in any case */
    tl_loop_kind kind;
    int touch_count, touch_capacity;
    tl_tenset_touch *touches;
    double bytes, read_bytes,
        unit_bytes; /* of them: all, of those that only read, of one element each */
} tl_tenset_loop;

/* A row in the making: of a buffer, which several statements may write, the last one over the others. */
typedef struct {
    const tl_buffer *buffer;
    double values[TL_TENSET_WIDTH];
} tl_tenset_row;

typedef struct {
    tl_arena *arena;
    int depth;
    tl_tenset_loop *loops[TL_TENSET_DEPTH]; /* around the statement, the outermost first */
    int row_count, row_capacity;
    tl_tenset_row *rows;
    bool is_gpu;
} tl_tenset_walk;

/* tenset_row.c: a store of the block, or the one that begins its reduction, under the loops of the walk. */
void tl_tenset_store(tl_tenset_walk *walk, const tl_block *block, int store, bool is_init);
void tl_tenset_alloc(tl_tenset_walk *walk, const tl_buffer *buffer);
double tl_tenset_runs(const tl_tenset_walk *walk);

/* tenset_span.c: bounds of an index over the loops of the walk, [i]: the loops from number i on run, the others stand
 * at 0. */
typedef struct {
    double min[TL_TENSET_DEPTH], max[TL_TENSET_DEPTH];
} tl_tenset_span;
void tl_tenset_span_of(const tl_tenset_walk *walk, const tl_expr *e, tl_tenset_span *out);
/* The loops whose variables are in it, as bits. */
uint64_t tl_tenset_loops_of(const tl_tenset_walk *walk, const tl_expr *e);
/* What their extractor takes for the coefficient of loop `loop`, which is in `e`. */
double tl_tenset_coefficient(const tl_tenset_walk *walk, const tl_expr *e, int loop);

#endif
