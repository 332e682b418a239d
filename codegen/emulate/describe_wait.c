/* codegen/emulate/describe_wait.c: what a thread waits for, in words, when nobody can go on. Threads wait millions of times, and
 * note only where. */
#include <inttypes.h>
#include <stdio.h>
#include "codegen/emulate/emulate_private.h"

static bool is_in(const void *at, const void *array, size_t bytes)
{
    return (uintptr_t)at - (uintptr_t)array < bytes;
}

static void describe_mbarrier(tl_gpu_thread *t)
{
    const tl_gpu_team *team = t->block->team;
    for (int k = 0; k < team->block_count; k++)
        for (int i = 0; i < team->blocks[k].mbarrier_count; i++) {
            const tl_mbarrier *m = &team->blocks[k].mbarriers[i];
            if (t->waits_at == team->blocks[k].shared + m->at)
                snprintf(t->waits_for, sizeof t->waits_for,
                         "phase %" PRIu32 " of the mbarrier at byte %" PRIu32 " (%" PRId64
                         " arrivals, %" PRId64 " bytes)",
                         m->phase, m->at, m->pending, m->bytes);
        }
}

void tl_gpu_describe_wait(tl_gpu_thread *t)
{
    const tl_gpu_block *b = t->block;
    const void *at = t->waits_at;
    if (is_in(at, b->barriers, sizeof b->barriers))
        snprintf(t->waits_for, sizeof t->waits_for, "barrier %d",
                 (int)((const tl_gpu_barrier *)at - b->barriers));
    else if (is_in(at, b->warp_meetings, sizeof b->warp_meetings) ||
             is_in(at, b->group_meetings, sizeof b->group_meetings))
        snprintf(t->waits_for, sizeof t->waits_for, "%d more threads in %.60s", t->waits_more,
                 t->call->name);
    else if (at == &b->team->cluster_arrived)
        snprintf(t->waits_for, sizeof t->waits_for, "the barrier of the cluster");
    else
        describe_mbarrier(t);
}
