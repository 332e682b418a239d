/* codegen/emulate/call_copy.c: cp.async: copies of a thread that end when it waits for their group, and not before.
 *
 * Until then their destination holds NaNs, and whoever reads it is told so. */
#include <inttypes.h>
#include <string.h>
#include "runtime/base/array.h"
#include "codegen/emulate/emulate_private.h"

void tl_call_copy_async(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)out;
    int bytes = call->tags[0], taken = call->tags[1] ? (int32_t)in[2] : bytes;
    uint32_t to;
    tl_gpu_block *b = tl_gpu_shared(t, in[0], bytes, bytes, &to);
    if (taken < 0 || taken > bytes)
        tl_gpu_fail(t, TL_BAD_IR, "takes %d bytes of a copy of %d", taken, bytes);
    if (b != t->block)
        tl_gpu_fail(t, TL_BAD_IR, "copies into another block");
    const void *from = (const void *)(uintptr_t)in[1];
    if (taken > 0 && (uint64_t)in[1] % (uint64_t)bytes != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "copies %d bytes from an address in global memory that is not aligned to them",
                    bytes);
    if (taken > 0)
        tl_gpu_global(t, from, taken, false);
    if (!TL_HEAP_ROOM(t->copies, t->copy_count, t->copy_capacity))
        tl_gpu_out_of_memory(t);
    tl_gpu_touch(t, b, to, (uint32_t)bytes, TL_TOUCH_OPEN_WRITE);
    memset(b->shared + to, 0xff, (size_t)bytes);
    t->copies[t->copy_count++] = (tl_async_copy){ to, bytes, taken, t->copy_group, from };
}

void tl_gpu_finish_copies(tl_gpu_thread *t, int keep)
{
    int kept = 0;
    tl_gpu_block *b = t->block;
    for (int i = 0; i < t->copy_count; i++) {
        tl_async_copy *c = &t->copies[i];
        if (c->group >= t->copy_group - keep) {
            t->copies[kept++] = *c;
            continue;
        }
        memcpy(b->shared + c->to, c->from, (size_t)c->taken);
        memset(b->shared + c->to + c->taken, 0, (size_t)(c->bytes - c->taken));
        tl_gpu_touch(t, b, c->to, (uint32_t)c->bytes, TL_TOUCH_END_WRITE);
    }
    t->copy_count = kept;
}

void tl_call_copy_commit(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    t->copy_group++;
}

void tl_call_copy_wait(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    (void)out;
    tl_gpu_finish_copies(t, (int)in[0]);
}

void tl_call_copy_wait_all(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                           int64_t *out)
{
    (void)call;
    (void)in;
    (void)out;
    t->copy_group++;
    tl_gpu_finish_copies(t, 0);
}

/* The thread arrives when its copies have ended, which here is at once. Without .noinc one more is waited for. */
void tl_call_copy_arrive(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)out;
    tl_gpu_block *b;
    tl_mbarrier *m = tl_gpu_mbarrier(t, in[0], &b);
    t->copy_group++;
    tl_gpu_finish_copies(t, 0);
    m->pending += call->tags[0] ? 0 : 1;
    tl_gpu_arrive(t, b, m, 1);
}
