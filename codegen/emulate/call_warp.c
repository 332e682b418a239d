/* codegen/emulate/call_warp.c: what the lanes of a warp tell each other. */
#include "codegen/emulate/emulate_private.h"

static void sync_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    tl_gpu_clock all = { 0 };
    (void)t;
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL)
            tl_clock_release(m->who[lane], &all);
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL)
            tl_clock_acquire(m->who[lane], &all);
}

void tl_call_warp_sync(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, (uint32_t)in[0], in, out, sync_together);
}

/* Lanes are read within the segment and up to the clamp that the fourth argument has; a lane outside reads itself. */
static void shuffle_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    enum { UP, DOWN, BUTTERFLY, INDEX };
    (void)t;
    for (int lane = 0; lane < TL_WARP; lane++) {
        tl_gpu_thread *own = m->who[lane];
        if (own == NULL)
            continue;
        int by = (int)own->in[2] & 31, clamp = (int)own->in[3] & 31,
            segment = (int)own->in[3] >> 8 & 31;
        int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
        int from = own->call->tags[0] == UP          ? lane - by
                   : own->call->tags[0] == DOWN      ? lane + by
                   : own->call->tags[0] == BUTTERFLY ? lane ^ by
                                                     : first | (by & ~segment);
        bool inside = own->call->tags[0] == UP ? from >= last : from <= last;
        from = inside ? from : lane;
        if (m->who[from] == NULL)
            tl_gpu_fail(own, TL_BAD_IR, "reads lane %d, which is not in the mask", from);
        own->out[0] = m->who[from]->in[1];
        if (own->call->tags[1])
            own->out[1] = inside;
    }
}

void tl_call_shuffle(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, (uint32_t)in[0], in, out, shuffle_together);
}

static void vote_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    enum { ALL, ANY, UNIFORM, BALLOT };
    uint32_t yes = 0, there = 0;
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL) {
            there |= 1U << lane;
            yes |= (uint32_t)(m->who[lane]->in[1] & 1) << lane;
        }
    const int64_t answers[] = {
        [ALL] = yes == there, [ANY] = yes != 0, [UNIFORM] = yes == there || yes == 0, [BALLOT] = yes
    };
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL)
            m->who[lane]->out[0] = answers[t->call->tags[0]];
}

void tl_call_vote(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, (uint32_t)in[0], in, out, vote_together);
}

static void match_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    (void)t;
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL) {
            uint32_t same = 0;
            for (int other = 0; other < TL_WARP; other++)
                if (m->who[other] != NULL && m->who[other]->in[1] == m->who[lane]->in[1])
                    same |= 1U << other;
            m->who[lane]->out[0] = same;
        }
}

void tl_call_match_any(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, (uint32_t)in[0], in, out, match_together);
}

static uint32_t combine(int how, uint32_t a, uint32_t b)
{
    enum { ADD, MIN, MAX, UMIN, UMAX, AND, OR, XOR };
    switch (how) {
    case ADD:
        return a + b;
    case MIN:
        return (int32_t)a < (int32_t)b ? a : b;
    case MAX:
        return (int32_t)a > (int32_t)b ? a : b;
    case UMIN:
        return a < b ? a : b;
    case UMAX:
        return a > b ? a : b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    }
    return 0;
}

static void redux_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    bool any = false;
    uint32_t all = 0;
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL) {
            uint32_t own = (uint32_t)m->who[lane]->in[0];
            all = any ? combine(t->call->tags[0], all, own) : own;
            any = true;
        }
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL)
            m->who[lane]->out[0] = all;
}

void tl_call_redux(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, (uint32_t)in[1], in, out, redux_together);
}

void tl_call_active_mask(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)in;
    uint32_t mask = 0;
    for (int lane = 0; lane < TL_WARP; lane++) {
        int i = t->index / TL_WARP * TL_WARP + lane;
        if (i < t->block->team->thread_count && t->block->threads[i].state != TL_THREAD_DONE)
            mask |= 1U << lane;
    }
    out[0] = mask;
}

static void elect_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    bool first = true;
    (void)t;
    for (int lane = 0; lane < TL_WARP; lane++)
        if (m->who[lane] != NULL) {
            m->who[lane]->out[0] = first;
            first = false;
        }
}

void tl_call_elect(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, UINT32_MAX, in, out, elect_together);
}
