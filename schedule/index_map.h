/* schedule/index_map.h: a change of layout, "(o, i, h, w) -> (o//32, i, h, w, o%32)".
 *
 * Every result is a digit of a variable (v, v//c, v%c, (v//c)%d) or several fused (v*8 + w%8, the weights of a mixed
 * radix), so that the map can be inverted by looking at it. Where a block of digits does not divide the extent, the new
 * buffer sticks out: it has elements that no old index maps to. */
#ifndef TL_SCHEDULE_INDEX_MAP_H
#define TL_SCHEDULE_INDEX_MAP_H
#include "ir/program/program.h"
#include "schedule/mixed_radix.h"

typedef struct {
    int count;                   /* of places in this result, by growing weight */
    const tl_digit_term *places; /* extent -1: depends on a dim, only in the last place */
    const tl_expr *extent;       /* of the new axis */
} tl_map_axis;

typedef struct {
    int var_count, axis_count;
    const tl_var *const *vars;
    const tl_expr *const *shape; /* old */
    const tl_expr *const *results;
    const tl_map_axis *axes;
    bool pads; /* some new elements have no old index */
} tl_index_map;

/* Parses the text for a buffer of that shape and checks that it can be inverted. TL_BAD_TEXT or
 * TL_ILLEGAL_SCHEDULE with the result at fault. */
tl_status tl_index_map_make(tl_arena *arena, const char *text, int rank,
                            const tl_expr *const *shape, tl_index_map *out, tl_diag *diag);
/* The new indices of old ones, and the old of new ones with the condition that they are inside the old shape (NULL:
 * always). */
const tl_expr *const *tl_index_map_apply(tl_arena *arena, const tl_index_map *map,
                                         const tl_expr *const *old_indices);
const tl_expr *const *tl_index_map_invert(tl_arena *arena, const tl_index_map *map,
                                          const tl_expr *const *new_indices,
                                          const tl_expr **condition);

#endif
