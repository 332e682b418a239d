/* codegen/emulate/call_mbarrier.c: barriers in shared memory, which count arrivals and the bytes of copies.
 *
 * A phase ends when as many have arrived as the barrier was made for and all bytes that were announced have come. What
 * stands in its 8 bytes is a GPU's secret; here it stands in a list of the block. */
#include <inttypes.h>
#include <string.h>
#include "runtime/base/array.h"
#include "codegen/emulate/emulate_private.h"

static tl_mbarrier *find(tl_gpu_block *b, uint32_t offset)
{
    for (int i = 0; i < b->mbarrier_count; i++)
        if (b->mbarriers[i].at == offset)
            return &b->mbarriers[i];
    return NULL;
}

tl_mbarrier *tl_gpu_mbarrier(tl_gpu_thread *t, int64_t address, tl_gpu_block **block)
{
    uint32_t offset;
    *block = tl_gpu_shared(t, address, 8, 8, &offset);
    tl_mbarrier *m = find(*block, offset);
    if (m == NULL)
        tl_gpu_fail(t, TL_BAD_IR,
                    "there is no mbarrier at byte %" PRIu32 " of shared memory: nobody has made it",
                    offset);
    return m;
}

/* Ends the phase if nothing is missing, and wakes who waits for it. */
static void settle(tl_gpu_block *b, tl_mbarrier *m)
{
    if (m->pending != 0 || m->bytes != 0)
        return;
    tl_gpu_team *team = b->team;
    m->phase++;
    m->pending = m->count;
    m->passed = m->arriving;
    memset(&m->arriving, 0, sizeof m->arriving);
    team->events++;
    for (int k = 0; k < team->block_count; k++)
        for (int i = 0; i < team->thread_count; i++) {
            tl_gpu_thread *t = &team->blocks[k].threads[i];
            if (t->state == TL_THREAD_WAITING && t->waits_at == b->shared + m->at) {
                t->waits_at = NULL;
                tl_gpu_wake(t);
            }
        }
}

void tl_gpu_arrive(tl_gpu_thread *t, tl_gpu_block *b, tl_mbarrier *m, int64_t count)
{
    if (m->pending < count)
        tl_gpu_fail(t, TL_BAD_IR,
                    "arrives at the mbarrier at byte %" PRIu32
                    " of shared memory, where all %" PRId64 " of this phase have arrived",
                    m->at, m->count);
    if (b == t->block)
        tl_clock_release(t, &m->arriving);
    m->pending -= count;
    settle(b, m);
}

void tl_gpu_arrive_bytes(tl_gpu_block *b, uint32_t mbarrier, int64_t bytes)
{
    tl_mbarrier *m = find(b, mbarrier);
    if (m == NULL)
        return;
    m->arriving.warp[TL_GPU_WARPS] = tl_clock_tick(b);
    m->bytes -= bytes;
    settle(b, m);
}

void tl_call_mbar_init(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    enum { MOST = 1 << 12 };
    (void)call;
    (void)out;
    uint32_t offset;
    tl_gpu_block *b = tl_gpu_shared(t, in[0], 8, 8, &offset);
    int64_t count = (int32_t)in[1];
    if (count < 1 || count >= 1 << 20)
        tl_gpu_fail(t, TL_BAD_IR, "an mbarrier cannot wait for %" PRId64 " arrivals", count);
    tl_mbarrier *m = find(b, offset);
    if (m == NULL && (b->mbarrier_count >= MOST ||
                      !TL_HEAP_ROOM(b->mbarriers, b->mbarrier_count, b->mbarrier_capacity)))
        tl_gpu_out_of_memory(t);
    if (m == NULL)
        m = &b->mbarriers[b->mbarrier_count++];
    tl_gpu_touch(t, b, offset, 8, TL_TOUCH_WRITE);
    *m = (tl_mbarrier){ .at = offset, .count = count, .pending = count };
}

void tl_call_mbar_inval(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_block *b;
    tl_mbarrier *m = tl_gpu_mbarrier(t, in[0], &b);
    *m = b->mbarriers[--b->mbarrier_count];
}

/* A barrier that another thread made is there for this one only when it knows so. */
static tl_mbarrier *use(tl_gpu_thread *t, int64_t address, tl_gpu_block **b)
{
    tl_mbarrier *m = tl_gpu_mbarrier(t, address, b);
    if (*b == t->block && !tl_clock_knows(t, *b, (*b)->written[m->at]))
        tl_gpu_fail(t, TL_BAD_IR,
                    "uses the mbarrier at byte %" PRIu32
                    " of shared memory, which another thread made without a barrier between",
                    m->at);
    return m;
}

void tl_call_mbar_arrive(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    tl_gpu_block *b;
    tl_mbarrier *m = use(t, in[0], &b);
    if (call->result_count > 0)
        out[0] = (int64_t)m->phase;
    tl_gpu_arrive(t, b, m, 1);
}

void tl_call_mbar_expect(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_block *b;
    tl_mbarrier *m = use(t, in[0], &b);
    int64_t bytes = (int32_t)in[1];
    if (bytes < 0 || m->bytes + bytes >= 1 << 20)
        tl_gpu_fail(t, TL_BAD_IR,
                    "an mbarrier cannot wait for %" PRId64 " more bytes, beside %" PRId64, bytes,
                    m->bytes);
    m->bytes += bytes;
    tl_gpu_arrive(t, b, m, 1);
}

/* Asked for the state that arriving gave: whether that phase has ended. */
void tl_call_mbar_test(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_block *b;
    tl_mbarrier *m = use(t, in[0], &b);
    if (m->phase == (uint32_t)in[1]) {
        t->waits_at = b->shared + m->at;
        tl_gpu_poll(t);
    }
    m = tl_gpu_mbarrier(t, in[0], &b);
    out[0] = m->phase != (uint32_t)in[1];
    if (out[0] && b == t->block)
        tl_clock_acquire(t, &m->passed);
}

/* May wait, and does: until the phase of that parity has ended. */
void tl_call_mbar_wait(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_block *b;
    tl_mbarrier *m = use(t, in[0], &b);
    uint32_t parity = (uint32_t)in[1] & 1;
    while ((m->phase & 1) == parity) {
        t->waits_at = b->shared + m->at;
        tl_gpu_wait(t);
        m = tl_gpu_mbarrier(t, in[0], &b);
    }
    if (b == t->block)
        tl_clock_acquire(t, &m->passed);
    out[0] = 1;
}
