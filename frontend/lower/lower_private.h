/* frontend/lower/lower_private.h: the inside of the builder (lower.c, lower_kernel.c, lower_pad.c). */
#ifndef TL_FRONTEND_LOWER_LOWER_PRIVATE_H
#define TL_FRONTEND_LOWER_LOWER_PRIVATE_H
#include "frontend/lower/lower.h"
#include "runtime/base/map.h"

enum { TL_MAX_LOWERINGS = 8 }; /* of one operator */
/* The lowering of that name, the default when name is NULL; NULL when the operator has none such. */
const tl_lowering *tl_lowering_find(tl_op op, const char *name);
/* All of an operator, the default first. Returns how many. */
int tl_lowerings_of(tl_op op, const tl_lowering *out[TL_MAX_LOWERINGS]);

/* What is known of a value inside the kernel. */
typedef struct {
    const tl_value *value;
    const tl_node *node; /* that makes it, in this kernel; NULL: an input of the kernel */
    const tl_lowering *lowering;
    bool has_place;
    tl_view place;    /* where it can be loaded from */
    tl_locals locals; /* of the node's stages */
    int cost;         /* nodes of its expression, roughly */
} tl_lower_value;

/* Statements in order, and the locals they use. */
typedef struct {
    int stmt_count, stmt_capacity, alloc_count, alloc_capacity;
    const tl_stmt **stmts;
    const tl_buffer **allocs;
} tl_lower_part;

struct tl_lower {
    tl_arena *arena;
    const tl_kernel *kernel;
    tl_map *names, *block_names;
    int value_count;
    tl_lower_value *values;
    tl_view output;
    bool output_written;
    tl_lower_part part; /* that nests and locals now go to */
    tl_lower_part body; /* kept here while the prepare part is written */
    int loop_count;     /* around what is written now */
    struct {
        const tl_var *var;
        int64_t extent;
        tl_lower_part before; /* that the loop is a statement of */
    } loops[4];
    const tl_stmt *prepare; /* NULL: nothing is prepared */
    int prepared_count;
    const tl_buffer *prepared[TL_MAX_LOCALS];
    bool axes_named;
    int axis_rank;
    const char *axis_names[TL_MAX_RANK], *lane;
    const char *split_outer, *split_inner;
    int64_t split_extent;
};

tl_lower_value *tl_lower_find(tl_lower *l, const tl_value *v);
tl_view tl_lower_place(tl_lower *l, const char *name, tl_dtype dtype, tl_role role,
                       const tl_shape *shape, const tl_layout *layout);
void tl_lower_emit(tl_lower *l, const tl_stmt *stmt);
/* The statements inside their allocs. */
const tl_stmt *tl_lower_close(tl_lower *l, const tl_lower_part *part);

/* A new local buffer, by its physical extents. */
const tl_buffer *tl_lower_buffer(tl_lower *l, const char *name, tl_dtype dtype, int rank,
                                 const int64_t *extents);
/* A store to an element of a place. */
tl_store tl_nest_store_at(tl_block_nest *nest, const tl_view *p, tl_index index,
                          const tl_expr *value);
/* tl_nest_reduce into a buffer, by its physical indices. */
void tl_nest_reduce_at(tl_block_nest *nest, tl_combiner combiner, tl_store at);

/* lower_conv.c: results that a group of the convolution's channels has. */
int64_t tl_lower_outputs_of_group(const tl_node *conv);
/* lower_pad.c: a local with the layout's halo, for values that arrive without the halo their reader needs. */
tl_view tl_lower_local_with_halo(tl_lower *l, const char *name, tl_dtype dtype,
                                 const tl_shape *shape, const tl_layout *layout);
/* Writes zeros to the output's halo. */
void tl_lower_write_halo(tl_lower *l);

#endif
