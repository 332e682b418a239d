/* codegen/emulate/memory.c: the accesses of a kernel: whether they may be, and whether others may be at the same place.
 *
 * Each byte of a block's shared memory has two stamps: who wrote it last, and who read it last. An access that is not
 * ordered after what conflicts with it is a race. Of several readers the last is kept: a race of writing after reading
 * may be missed at one byte, hardly at all of a tile's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

static void point(const tl_gpu_thread *t, int thread, char *out, size_t size)
{
    const int *n = t->block->team->launch->block;
    if (thread == TL_GPU_ASYNC)
        snprintf(out, size, "an asynchronous copy");
    else
        snprintf(out, size, "thread (%d, %d, %d)", thread % n[0], thread / n[0] % n[1],
                 thread / n[0] / n[1]);
}

static _Noreturn void fail_race(tl_gpu_thread *t, uint32_t offset, const char *does,
                                const char *did, tl_gpu_stamp stamp)
{
    char other[64];
    bool open = stamp >> TL_STAMP_BITS == TL_TICK_OPEN;
    point(t, (int)(stamp & ((1U << TL_STAMP_BITS) - 1)), other, sizeof other);
    tl_gpu_fail(t, TL_BAD_IR, "%s byte %" PRIu32 " of shared memory, which %s %s", does, offset,
                other,
                open            ? did[0] == 'r' ? "still reads asynchronously"
                                                : "still writes by a copy that nobody has waited for"
                : did[0] == 'r' ? "read without a barrier between"
                                : "wrote without a barrier between");
}

enum { WORD = 4 }; /* bytes, and stamps, that are looked at together */

/* Neighbouring bytes mostly have the same stamp, which is asked about once. */
static void check_stamps(tl_gpu_thread *t, tl_gpu_block *b, const tl_gpu_stamp *stamps,
                         uint32_t offset, uint32_t bytes, const char *does, const char *did)
{
    tl_gpu_stamp known[WORD] = { 0 };
    for (uint32_t i = offset, end = offset + bytes; i < end;) {
        if (i + WORD <= end && memcmp(&stamps[i], known, sizeof known) == 0) {
            i += WORD;
            continue;
        }
        if (stamps[i] != known[0]) {
            if (!tl_clock_knows(t, b, stamps[i]))
                fail_race(t, i, does, did, stamps[i]);
            for (int k = 0; k < WORD; k++)
                known[k] = stamps[i];
        }
        i++;
    }
}

static void fill(tl_gpu_stamp *stamps, uint32_t offset, uint32_t bytes, tl_gpu_stamp stamp)
{
    const tl_gpu_stamp word[WORD] = { stamp, stamp, stamp, stamp };
    uint32_t i = offset, end = offset + bytes;
    for (; i + WORD <= end; i += WORD)
        memcpy(&stamps[i], word, sizeof word);
    for (; i < end; i++)
        stamps[i] = stamp;
}

void tl_gpu_touch(tl_gpu_thread *t, tl_gpu_block *b, uint32_t offset, uint32_t bytes,
                  tl_gpu_touching how)
{
    if (b != t->block) /* another block of the cluster, whose clocks are its own */
        return;
    tl_gpu_stamp now = tl_stamp(b->tick, t->index), open = tl_stamp(TL_TICK_OPEN, t->index);
    switch (how) {
    case TL_TOUCH_READ:
    case TL_TOUCH_OPEN_READ:
        check_stamps(t, b, b->written, offset, bytes, "reads", "writes");
        fill(b->read, offset, bytes, how == TL_TOUCH_READ ? now : open);
        break;
    case TL_TOUCH_WRITE:
    case TL_TOUCH_OPEN_WRITE:
        check_stamps(t, b, b->written, offset, bytes, "writes", "writes");
        check_stamps(t, b, b->read, offset, bytes, "writes", "reads");
        fill(b->written, offset, bytes, how == TL_TOUCH_WRITE ? now : open);
        break;
    case TL_TOUCH_ATOMIC:
        break;
    case TL_TOUCH_END_WRITE:
        fill(b->written, offset, bytes, now);
        break;
    case TL_TOUCH_END_READ:
        for (uint32_t i = offset; i < offset + bytes; i++)
            if (b->read[i] == open)
                b->read[i] = now;
        break;
    }
}

void tl_gpu_stamp_async(tl_gpu_block *b, uint32_t offset, uint32_t bytes)
{
    fill(b->written, offset, bytes, tl_stamp(b->tick, TL_GPU_ASYNC));
}

void tl_gpu_touch_proxy(tl_gpu_thread *t, tl_gpu_block *b, uint32_t offset, uint32_t bytes)
{
    tl_gpu_stamp seen = 0;
    for (uint32_t i = offset; i < offset + bytes && b == t->block; i++) {
        tl_gpu_stamp stamp = b->written[i];
        int who = (int)(stamp & ((1U << TL_STAMP_BITS) - 1));
        if (stamp == seen || stamp == 0 || who == TL_GPU_ASYNC)
            continue;
        seen = stamp;
        if (!tl_clock_knows(t, b, stamp))
            fail_race(t, i, "reads", "writes", stamp);
        if (b->threads[who].proxy_fence < stamp >> TL_STAMP_BITS) {
            char other[64];
            point(t, who, other, sizeof other);
            tl_gpu_fail(t, TL_BAD_IR,
                        "the asynchronous proxy reads byte %" PRIu32
                        " of shared memory, which %s wrote and did not "
                        "follow with fence.proxy.async",
                        i, other);
        }
    }
}

/* ---- places ---- */

bool tl_gpu_is_shared(uint64_t address)
{
    return address - TL_SHARED_WINDOW < TL_SHARED_STEP * (1 + TL_GPU_CLUSTER);
}

tl_gpu_block *tl_gpu_shared(tl_gpu_thread *t, int64_t address, int64_t bytes, int64_t align,
                            uint32_t *offset)
{
    tl_gpu_team *team = t->block->team;
    uint64_t from = (uint64_t)address - TL_SHARED_WINDOW, window = from / TL_SHARED_STEP;
    uint64_t at = from % TL_SHARED_STEP;
    if (!tl_gpu_is_shared((uint64_t)address))
        tl_gpu_fail(t, TL_BAD_IR, "0x%" PRIx64 " is no address in shared memory",
                    (uint64_t)address);
    if (window > (uint64_t)team->block_count)
        tl_gpu_fail(t, TL_BAD_IR, "block %" PRIu64 " of a cluster of %d is none", window - 1,
                    team->block_count);
    if (at % (uint64_t)align != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "an access of %" PRId64 " bytes at byte %" PRIu64
                    " of shared memory is not aligned to %" PRId64,
                    bytes, at, align);
    if (bytes > team->shared_bytes || at > (uint64_t)(team->shared_bytes - bytes))
        tl_gpu_fail(t, TL_BAD_IR,
                    "an access of %" PRId64 " bytes at byte %" PRIu64 " leaves the %" PRId64
                    " bytes of shared memory",
                    bytes, at, team->shared_bytes);
    *offset = (uint32_t)at;
    return window == 0 ? t->block : &team->blocks[window - 1];
}

static bool is_inside(const tl_emulated_buffer *buffer, const void *address, int64_t bytes)
{
    uint64_t offset = (uint64_t)(uintptr_t)address - (uint64_t)(uintptr_t)buffer->base;
    return bytes <= buffer->bytes && offset <= (uint64_t)(buffer->bytes - bytes);
}

/* The buffer that ends next before the address, or begins next behind it. */
static _Noreturn void fail_outside(tl_gpu_thread *t, const void *address, int64_t bytes,
                                   bool writes)
{
    const tl_emulated_launch *launch = t->block->team->launch;
    int nearest = -1;
    uint64_t least = UINT64_MAX;
    bool behind = false;
    for (int i = 0; i < launch->buffer_count; i++) {
        const tl_emulated_buffer *b = &launch->buffers[i];
        uint64_t end = (uint64_t)(uintptr_t)b->base + (uint64_t)b->bytes;
        uint64_t at = (uint64_t)(uintptr_t)address, begin = (uint64_t)(uintptr_t)b->base;
        uint64_t distance = at >= begin ? at - (at < end ? at : end) : begin - at;
        if (distance < least)
            least = distance, nearest = i, behind = at >= begin;
    }
    if (nearest < 0)
        tl_gpu_fail(t, TL_BAD_IR, "%s global memory, and was given no buffer",
                    writes ? "writes" : "reads");
    tl_gpu_fail(t, TL_BAD_IR,
                "%s %" PRId64
                " bytes of global memory %s no buffer; the nearest is buffer %d of %" PRId64
                " bytes, %" PRIu64 " bytes %s",
                writes ? "writes" : "reads", bytes, "in", nearest, launch->buffers[nearest].bytes,
                least, behind ? "before it" : "behind it");
}

void *tl_gpu_global(tl_gpu_thread *t, const void *address, int64_t bytes, bool writes)
{
    tl_gpu_team *team = t->block->team;
    const tl_emulated_launch *launch = team->launch;
    const tl_emulated_buffer *found = team->last_buffer;
    if (found == NULL || !is_inside(found, address, bytes) || (writes && !found->writable)) {
        found = NULL;
        const tl_emulated_buffer *constant = NULL;
        for (int i = 0; i < launch->buffer_count && found == NULL; i++)
            if (is_inside(&launch->buffers[i], address, bytes)) {
                if (writes && !launch->buffers[i].writable)
                    constant = &launch->buffers[i];
                else
                    found = &launch->buffers[i];
            }
        if (found == NULL && constant != NULL)
            tl_gpu_fail(t, TL_BAD_IR, "writes buffer %d, which it may only read",
                        (int)(constant - launch->buffers));
        if (found == NULL)
            fail_outside(t, address, bytes, writes);
        team->last_buffer = found;
    }
    return (void *)(uintptr_t)address;
}

static bool is_on_stack(const tl_gpu_thread *t, const void *address)
{
    return (uintptr_t)address - (uintptr_t)t->stack < t->block->team->stack_bytes;
}

void *tl_gpu_access(void *address, uint64_t what)
{
    tl_gpu_thread *t = tl_gpu_current->running;
    uint32_t bytes = (uint32_t)what, flags = (uint32_t)(what >> 40);
    uint64_t align = UINT64_C(1) << (what >> 32 & 31);
    if (++t->steps > t->block->team->launch->max_steps)
        tl_gpu_fail(t, TL_BUDGET, "has taken %" PRId64 " steps and not ended", t->steps - 1);
    if (flags & TL_ACCESS_SHARED ||
        (!(flags & TL_ACCESS_GLOBAL) && tl_gpu_is_shared((uint64_t)(uintptr_t)address))) {
        uint32_t offset;
        tl_gpu_block *b =
            tl_gpu_shared(t, (int64_t)(uintptr_t)address, bytes, (int64_t)align, &offset);
        tl_gpu_touch(t, b, offset, bytes,
                     flags & TL_ACCESS_ATOMIC  ? TL_TOUCH_ATOMIC
                     : flags & TL_ACCESS_WRITE ? TL_TOUCH_WRITE
                                               : TL_TOUCH_READ);
        return b->shared + offset;
    }
    if (!(flags & TL_ACCESS_GLOBAL) && is_on_stack(t, address))
        return address;
    if ((uintptr_t)address % align != 0)
        tl_gpu_fail(t, TL_BAD_IR,
                    "an access of %" PRIu32 " bytes of global memory is not aligned to %" PRIu64,
                    bytes, align);
    return tl_gpu_global(t, address, bytes, (flags & TL_ACCESS_WRITE) != 0);
}

/* The elements side by side from `address` on whose bit is set. What is not touched is not asked about. */
void *tl_gpu_access_masked(void *address, uint64_t what, uint64_t mask)
{
    uint32_t bytes = (uint32_t)what;
    char *base = address;
    bool is_first = true;
    for (unsigned i = 0; mask >> i != 0; i++) {
        if ((mask >> i & 1) == 0)
            continue;
        char *at = tl_gpu_access((char *)address + (size_t)i * bytes, what);
        if (is_first)
            base = at - (size_t)i * bytes;
        is_first = false;
        if (i == 63)
            break;
    }
    return base;
}
