/* codegen/emulate/order.c: which of two accesses came before the other, for certain.
 *
 * What a thread did at tick T came before what another does now when the other knows its warp up to T: from a barrier,
 * an mbarrier or bar.warp.sync at which both were, or through others. */
#include <string.h>
#include "codegen/emulate/emulate_private.h"

bool tl_clock_knows(const tl_gpu_thread *t, const tl_gpu_block *b, tl_gpu_stamp stamp)
{
    int who = (int)(stamp & ((1U << TL_STAMP_BITS) - 1));
    uint32_t tick = stamp >> TL_STAMP_BITS;
    if (tick <= b->all_tick)
        return true;
    if (who == t->index)
        return tick != TL_TICK_OPEN;
    if (who / TL_WARP == t->index / TL_WARP)
        return t->known.lane[who % TL_WARP] >= tick;
    return t->known.warp[who / TL_WARP] >= tick;
}

void tl_clock_all(tl_gpu_block *b)
{
    b->all_tick = tl_clock_tick(b);
}

/* When ticks run out, all that was is ordered before all that comes. */
uint32_t tl_clock_tick(tl_gpu_block *b)
{
    uint32_t now = b->tick++;
    if (b->tick >= TL_TICK_LAST) {
        int64_t bytes = b->team->shared_bytes;
        for (int64_t i = 0; i < bytes; i++) {
            b->written[i] = b->written[i] >> TL_STAMP_BITS == TL_TICK_OPEN ? b->written[i] : 0;
            b->read[i] = b->read[i] >> TL_STAMP_BITS == TL_TICK_OPEN ? b->read[i] : 0;
        }
        for (int i = 0; i < b->team->thread_count; i++)
            memset(&b->threads[i].known, 0, sizeof b->threads[i].known);
        b->tick = 1;
        b->all_tick = now = 0;
    }
    return now;
}

void tl_clock_join(tl_gpu_clock *to, const tl_gpu_clock *from)
{
    for (int i = 0; i <= TL_GPU_WARPS; i++)
        to->warp[i] = from->warp[i] > to->warp[i] ? from->warp[i] : to->warp[i];
    for (int i = 0; i < TL_WARP; i++)
        to->lane[i] = from->lane[i] > to->lane[i] ? from->lane[i] : to->lane[i];
}

/* Lanes are those of one's own warp: others get what is known of the warp. */
void tl_clock_release(tl_gpu_thread *t, tl_gpu_clock *to)
{
    uint32_t now = tl_clock_tick(t->block);
    for (int i = 0; i <= TL_GPU_WARPS; i++)
        to->warp[i] = t->known.warp[i] > to->warp[i] ? t->known.warp[i] : to->warp[i];
    if (to->warp[t->index / TL_WARP] < now)
        to->warp[t->index / TL_WARP] = now;
}

void tl_clock_acquire(tl_gpu_thread *t, const tl_gpu_clock *from)
{
    for (int i = 0; i <= TL_GPU_WARPS; i++)
        t->known.warp[i] = from->warp[i] > t->known.warp[i] ? from->warp[i] : t->known.warp[i];
    uint32_t own = from->warp[t->index / TL_WARP];
    for (int i = 0; i < TL_WARP; i++)
        t->known.lane[i] = own > t->known.lane[i] ? own : t->known.lane[i];
}
