/* codegen/emulate/call_thread.c: who a thread is, and barriers. */
#include <inttypes.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

static int cluster_extent(const tl_emulated_launch *l, int axis)
{
    return l->cluster[axis] > 1 ? l->cluster[axis] : 1;
}

void tl_call_sreg(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    enum {
        TID,
        NTID,
        CTAID,
        NCTAID,
        LANEID,
        WARPID,
        NWARPID,
        WARPSIZE,
        CTARANK,
        NCTARANK,
        IN_CLUSTER,
        CLUSTER_EXTENT,
        CLUSTERID,
        NCLUSTERID,
        MASK_EQ,
        MASK_LT,
        MASK_LE,
        MASK_GT,
        MASK_GE,
        SMID,
        CLOCK64,
        CLOCK,
        TIMER
    };
    (void)in;
    const tl_gpu_block *b = t->block;
    const tl_emulated_launch *l = b->team->launch;
    const int at[3] = { t->index % l->block[0], t->index / l->block[0] % l->block[1],
                        t->index / l->block[0] / l->block[1] };
    int axis = call->tags[1], cluster = cluster_extent(l, axis);
    uint32_t lane = (uint32_t)t->index % TL_WARP, bit = 1U << lane;
    const int64_t values[] = { [TID] = at[axis],
                               [NTID] = l->block[axis],
                               [CTAID] = b->index[axis],
                               [NCTAID] = l->grid[axis],
                               [LANEID] = lane,
                               [WARPID] = t->index / TL_WARP,
                               [NWARPID] = (b->team->thread_count + TL_WARP - 1) / TL_WARP,
                               [WARPSIZE] = TL_WARP,
                               [CTARANK] = b->rank,
                               [NCTARANK] = b->team->block_count,
                               [IN_CLUSTER] = b->index[axis] % cluster,
                               [CLUSTER_EXTENT] = cluster,
                               [CLUSTERID] = b->index[axis] / cluster,
                               [NCLUSTERID] = l->grid[axis] / cluster,
                               [MASK_EQ] = bit,
                               [MASK_LT] = bit - 1,
                               [MASK_LE] = bit | (bit - 1),
                               [MASK_GT] = ~(bit | (bit - 1)),
                               [MASK_GE] = ~(bit - 1),
                               [SMID] = 0,
                               [CLOCK64] = t->steps,
                               [CLOCK] = t->steps,
                               [TIMER] = t->steps };
    out[0] = values[call->tags[0]];
}

void tl_call_nothing(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)t;
    (void)call;
    (void)in;
    (void)out;
}

/* ---- barriers of a block ---- */

static tl_gpu_barrier *arrive(tl_gpu_thread *t, int64_t id, int64_t wanted)
{
    tl_gpu_block *b = t->block;
    if (id < 0 || id >= TL_GPU_BARRIERS)
        tl_gpu_fail(t, TL_BAD_IR, "there is no barrier %" PRId64 ", only 0 to %d", id,
                    TL_GPU_BARRIERS - 1);
    if (wanted <= 0 || wanted > (b->team->thread_count + TL_WARP - 1) / TL_WARP * TL_WARP ||
        (wanted % TL_WARP != 0 && wanted != b->team->thread_count))
        tl_gpu_fail(t, TL_BAD_IR,
                    "barrier %" PRId64 " cannot be for %" PRId64
                    " threads: whole warps of a block of %d",
                    id, wanted, b->team->thread_count);
    tl_gpu_barrier *barrier = &b->barriers[id];
    if (barrier->arrived > 0 && barrier->wanted != wanted)
        tl_gpu_fail(t, TL_BAD_IR,
                    "barrier %" PRId64 " is for %d threads where others wait, here for %" PRId64,
                    id, barrier->wanted, wanted);
    barrier->wanted = (int)wanted;
    barrier->arrived++;
    tl_clock_release(t, &barrier->clock);
    return barrier;
}

/* All are there: those that wait go on, knowing what each of them did. */
static void open_barrier(tl_gpu_block *b, tl_gpu_barrier *barrier)
{
    bool all = barrier->wanted >= b->team->thread_count;
    if (all)
        tl_clock_all(b);
    for (int i = 0; i < b->team->thread_count; i++) {
        tl_gpu_thread *other = &b->threads[i];
        if (other->state != TL_THREAD_WAITING || other->waits_at != barrier)
            continue;
        if (!all)
            tl_clock_acquire(other, &barrier->clock);
        other->waits_at = NULL;
        tl_gpu_wake(other);
    }
}

void tl_call_barrier(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)out;
    int n = call->argument_count;
    tl_gpu_barrier *barrier = arrive(t, n > 0 ? (int32_t)in[0] : 0,
                                     n > 1 ? (int32_t)in[1] : t->block->team->thread_count);
    if (barrier->arrived < barrier->wanted) {
        t->waits_at = barrier;
        tl_gpu_wait(t);
        return;
    }
    open_barrier(t->block, barrier);
    if (barrier->wanted < t->block->team->thread_count)
        tl_clock_acquire(t, &barrier->clock);
    memset(barrier, 0, sizeof *barrier);
}

void tl_call_barrier_arrive(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                            int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_barrier *barrier = arrive(t, (int32_t)in[0], (int32_t)in[1]);
    if (barrier->arrived == barrier->wanted) {
        open_barrier(t->block, barrier);
        memset(barrier, 0, sizeof *barrier);
    }
}

void tl_call_proxy_fence(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    t->proxy_fence = tl_clock_tick(t->block);
}

/* ---- barriers of a cluster ---- */

void tl_call_cluster_arrive(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                            int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    tl_gpu_team *team = t->block->team;
    if (t->cluster_arrived)
        tl_gpu_fail(t, TL_BAD_IR, "arrives a second time, and has not waited for the first");
    t->cluster_arrived = true;
    if (++team->cluster_arrived < team->block_count * team->thread_count)
        return;
    team->cluster_arrived = 0;
    for (int k = 0; k < team->block_count; k++) {
        tl_gpu_block *b = &team->blocks[k];
        tl_clock_all(b);
        for (int i = 0; i < team->thread_count; i++) {
            tl_gpu_thread *other = &b->threads[i];
            other->cluster_arrived = false;
            if (other->state == TL_THREAD_WAITING && other->waits_at == &team->cluster_arrived) {
                other->waits_at = NULL;
                tl_gpu_wake(other);
            }
        }
    }
}

void tl_call_cluster_wait(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                          int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    if (!t->cluster_arrived) /* the others have come meanwhile */
        return;
    t->waits_at = &t->block->team->cluster_arrived;
    tl_gpu_wait(t);
}

/* ---- registers of a warpgroup ---- */

/* How many a thread has at its start only ptxas knows: what is checked is what the kernel itself says. */
static void set_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    enum { ALL = 65536, GROUP = 128, LEAST = 24, MOST = 256 };
    tl_gpu_block *b = t->block;
    int wanted = (int)t->in[0], groups = (b->team->thread_count + GROUP - 1) / GROUP;
    bool raise = t->call->tags[0] == 1;
    if (wanted < LEAST || wanted > MOST || wanted % 8 != 0)
        tl_gpu_fail(t, TL_BAD_IR, "a thread cannot have %d registers: %d to %d, a multiple of 8",
                    wanted, LEAST, MOST);
    if (t->registers > 0 && (raise ? wanted < t->registers : wanted > t->registers))
        tl_gpu_fail(t, TL_BAD_IR, "%d registers are %s than the %d it has", wanted,
                    raise ? "less" : "more", t->registers);
    for (int i = 0; i < GROUP; i++)
        m->who[i]->registers = wanted;
    int64_t total = 0;
    for (int g = 0; g < groups; g++) {
        int has = b->threads[g * GROUP].registers;
        total += (int64_t)(has > 0 ? has : LEAST) * GROUP;
    }
    if (raise && total > ALL)
        tl_gpu_fail(t, TL_BAD_IR,
                    "the warpgroups would have %" PRId64 " registers, a multiprocessor has %d",
                    total, ALL);
}

void tl_call_set_registers(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                           int64_t *out)
{
    (void)call;
    tl_gpu_meet_warpgroup(t, in, out, set_together);
}

/* ---- addresses ---- */

void tl_call_map_address(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    uint64_t offset = ((uint64_t)in[0] - TL_SHARED_WINDOW) % TL_SHARED_STEP;
    int64_t rank = (int32_t)in[1];
    if (!tl_gpu_is_shared((uint64_t)in[0]) || rank < 0 || rank >= t->block->team->block_count)
        tl_gpu_fail(t, TL_BAD_IR, "block %" PRId64 " of a cluster of %d, or no shared address",
                    rank, t->block->team->block_count);
    out[0] = (int64_t)(TL_SHARED_WINDOW + (uint64_t)(1 + rank) * TL_SHARED_STEP + offset);
}

void tl_call_is_space(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    enum { CLUSTER, SHARED, GLOBAL };
    bool shared = tl_gpu_is_shared((uint64_t)in[0]);
    bool local = (uint64_t)in[0] - (uint64_t)(uintptr_t)t->stack < t->block->team->stack_bytes;
    out[0] = call->tags[0] == GLOBAL ? !shared && !local : shared;
}

void tl_call_load_global(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    const void *from = (const void *)(uintptr_t)in[0];
    int64_t align = call->argument_count > 1 ? (int32_t)in[1] : 1;
    if (align > 0 && (uint64_t)in[0] % (uint64_t)align != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "an access of %" PRId64 " bytes of global memory is not aligned to %" PRId64,
                    call->result_bytes, align);
    memcpy(out, tl_gpu_global(t, from, call->result_bytes, false), (size_t)call->result_bytes);
}
