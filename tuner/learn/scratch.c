/* tuner/learn/scratch.c: room that batches take one after the other. */
#include "tuner/learn/scratch.h"
#include <assert.h>

enum { ALIGN = 64, FIRST_BLOCK = 1 << 20 };

void *tl_scratch_bytes(tl_scratch *s, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    while (s->data[s->block] == NULL || s->size[s->block] - s->used < size) {
        if (s->data[s->block] != NULL) {
            s->block++;
            s->used = 0;
        }
        assert(s->block < TL_SCRATCH_BLOCKS);
        if (s->data[s->block] == NULL) {
            size_t want = s->block > 0 ? 2 * s->size[s->block - 1] : FIRST_BLOCK;
            want = want < size ? size : want;
            s->data[s->block] = tl_arena_alloc(s->arena, want, ALIGN);
            s->size[s->block] = want;
        }
    }
    void *out = s->data[s->block] + s->used;
    s->used += size;
    return out;
}

float *tl_scratch_floats(tl_scratch *scratch, size_t count)
{
    return tl_scratch_bytes(scratch, sizeof(float) * count);
}

int *tl_scratch_ints(tl_scratch *scratch, size_t count)
{
    return tl_scratch_bytes(scratch, sizeof(int) * count);
}

void tl_scratch_reset(tl_scratch *scratch)
{
    scratch->block = 0;
    scratch->used = 0;
}
