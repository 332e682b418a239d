/* tuner/learn/scratch.h: room for what a batch of a network leaves on its way, taken again by the next: the memory
 * stays and is not zeroed. It comes from an arena, whose guard hears when there is none. */
#ifndef TL_TUNER_LEARN_SCRATCH_H
#define TL_TUNER_LEARN_SCRATCH_H
#include "runtime/base/arena.h"

enum { TL_SCRATCH_BLOCKS = 40 };
typedef struct {
    tl_arena *arena;
    int block; /* that is being used */
    size_t used;
    size_t size[TL_SCRATCH_BLOCKS];
    char *data[TL_SCRATCH_BLOCKS]; /* each is at least twice as large as the one before */
} tl_scratch;

void *tl_scratch_bytes(tl_scratch *scratch, size_t size);
float *tl_scratch_floats(tl_scratch *scratch, size_t count);
int *tl_scratch_ints(tl_scratch *scratch, size_t count);
void tl_scratch_reset(tl_scratch *scratch);

#endif
