/* runtime/executable/memory_plan.h: where the temporary buffers of a model lie in one arena, so that
 * buffers which are never alive together share memory.
 *
 *     step      0   1   2   3                 arena
 *     A       |===|                           A A . D D
 *     B           |=======|            ->     . B B B B      (time runs down, offsets to the right)
 *     C       ...
 *
 * Greedy by size: the largest first, each into the smallest gap between the already placed
 * buffers that are alive at the same time. The same request always gives the same plan. */
#ifndef TL_RUNTIME_EXECUTABLE_MEMORY_PLAN_H
#define TL_RUNTIME_EXECUTABLE_MEMORY_PLAN_H
#include <stdint.h>
#include "runtime/base/status.h"

#define TL_PLAN_ALIGNMENT 64

typedef struct {
    int64_t size;    /* bytes; 0 is fine */
    int first, last; /* steps in which it is alive, both included */
    int64_t offset;  /* result: a multiple of TL_PLAN_ALIGNMENT */
} tl_plan_buffer;

typedef struct {
    int64_t planned; /* bytes of the arena */
    int64_t sum;     /* bytes without any reuse */
    int64_t floor;   /* bytes alive at the worst step: no plan can be smaller */
} tl_plan_sizes;

/* TL_BAD_ARGUMENT when a size is negative or the sum overflows, or first > last. */
tl_status tl_memory_plan(tl_plan_buffer *buffers, int count, tl_plan_sizes *out, tl_diag *diag);

#endif
