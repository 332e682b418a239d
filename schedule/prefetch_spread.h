/* schedule/prefetch_spread.h: prefetches of a whole panel, spread over the time it takes to use the one before. */
#ifndef TL_SCHEDULE_PREFETCH_SPREAD_H
#define TL_SCHEDULE_PREFETCH_SPREAD_H
#include "schedule/schedule_private.h"

/* Where a share goes and what it is. */
typedef struct {
    int at;              /* position in the inner path of the loop at whose start it stands */
    const tl_stmt *stmt; /* one prefetch, or a few written out */
} tl_prefetch_share;

/* `inner` is the path from the body of the loop that walks over panels down to the block; `indices` are what the block
 * reads one panel later. The elements that the loops of `inner` move over must lie one after the other; false when
 * they do not, when no serial loop is inside, or an extent depends on dims. */
bool tl_prefetch_spread(tl_arena *arena, const tl_path *inner, const tl_buffer *buffer,
                        const tl_expr *const *indices, int level, tl_prefetch_share *out);

#endif
