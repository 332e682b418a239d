/* codegen/emulate/meeting.c: what several threads do together: each waits until all are there, the last does it. */
#include <stdio.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

static void place(const tl_gpu_thread *t, char *out, size_t size)
{
    const int *n = t->block->team->launch->block;
    snprintf(out, size, "(%d, %d, %d)", t->index % n[0], t->index / n[0] % n[1],
             t->index / n[0] / n[1]);
}

static bool is_same(const tl_gpu_call *a, const tl_gpu_call *b)
{
    return a == b || strcmp(a->name, b->name) == 0;
}

static _Noreturn void fail_divergent(tl_gpu_thread *t, const tl_gpu_meeting *m, const char *who)
{
    for (int i = 0;; i++)
        if (m->who[i] != NULL) {
            char other[64];
            place(m->who[i], other, sizeof other);
            tl_gpu_fail(t, TL_BAD_IR, "divergent: thread %s of its %s is in %s", other, who,
                        m->call->name);
        }
}

static void meet(tl_gpu_thread *t, tl_gpu_meeting *m, int slot, int slots, const int64_t *in,
                 int64_t *out, tl_gpu_together *together)
{
    t->in = in;
    t->out = out;
    m->who[slot] = t;
    if (++m->count < m->wanted) {
        t->waits_more = m->wanted - m->count;
        t->waits_at = m;
        tl_gpu_wait(t);
        return;
    }
    if (together != NULL)
        together(t, m);
    tl_gpu_meeting done = *m;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < slots; i++)
        if (done.who[i] != NULL && done.who[i] != t)
            tl_gpu_wake(done.who[i]);
}

void tl_gpu_meet_warp(tl_gpu_thread *t, uint32_t mask, const int64_t *in, int64_t *out,
                      tl_gpu_together *together)
{
    int warp = t->index / TL_WARP, lane = t->index % TL_WARP;
    int present = t->block->team->thread_count - warp * TL_WARP;
    if (present < TL_WARP)
        mask &= (1U << present) - 1;
    if ((mask >> lane & 1) == 0)
        tl_gpu_fail(t, TL_BAD_IR, "the mask 0x%08x does not have its own lane %d", mask, lane);
    tl_gpu_meeting *meetings = t->block->warp_meetings[warp], *own = NULL;
    for (int i = 0; i < TL_WARP; i++) {
        tl_gpu_meeting *m = &meetings[i];
        if (m->call == NULL) {
            own = own == NULL ? m : own;
            continue;
        }
        if ((m->mask & mask) == 0)
            continue;
        if (m->mask != mask || !is_same(m->call, t->call))
            fail_divergent(t, m, "warp");
        own = m;
        break;
    }
    own->call = t->call;
    own->mask = mask;
    own->wanted = __builtin_popcount(mask);
    meet(t, own, lane, TL_WARP, in, out, together);
}

void tl_gpu_meet_warpgroup(tl_gpu_thread *t, const int64_t *in, int64_t *out,
                           tl_gpu_together *together)
{
    enum { GROUP = 128 };
    tl_gpu_meeting *m = &t->block->group_meetings[t->index / GROUP];
    if (t->index / GROUP * GROUP + GROUP > t->block->team->thread_count)
        tl_gpu_fail(t, TL_BAD_IR, "its warpgroup is not complete: the block has %d threads",
                    t->block->team->thread_count);
    if (m->call != NULL && !is_same(m->call, t->call))
        fail_divergent(t, m, "warpgroup");
    m->call = t->call;
    m->wanted = GROUP;
    meet(t, m, t->index % GROUP, GROUP, in, out, together);
}
