/* codegen/emulate/open_reads.c: reads of shared memory that go on after the call that asked for them: what wgmma
 * multiplies and what bulk copies store. Nobody may write there until the group is waited for. */
#include <string.h>
#include "runtime/base/array.h"
#include "codegen/emulate/emulate_private.h"

void tl_gpu_open_read(tl_gpu_thread *t, bool bulk, uint32_t from, uint32_t bytes, void *to)
{
    tl_gpu_touch_proxy(t, t->block, from, bytes);
    tl_gpu_touch(t, t->block, from, bytes, TL_TOUCH_OPEN_READ);
    tl_open_read read = { from, bytes, bulk ? t->bulk_group : t->wgmma_group, to };
    if (bulk) {
        if (!TL_HEAP_ROOM(t->bulk_reads, t->bulk_read_count, t->bulk_read_capacity))
            tl_gpu_out_of_memory(t);
        t->bulk_reads[t->bulk_read_count++] = read;
    } else {
        if (!TL_HEAP_ROOM(t->wgmma_reads, t->wgmma_read_count, t->wgmma_read_capacity))
            tl_gpu_out_of_memory(t);
        t->wgmma_reads[t->wgmma_read_count++] = read;
    }
}

static int end_reads(tl_gpu_thread *t, tl_open_read *reads, int count, int first_kept)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (reads[i].group >= first_kept) {
            reads[kept++] = reads[i];
            continue;
        }
        if (reads[i].to != NULL)
            memcpy(reads[i].to, t->block->shared + reads[i].from, reads[i].bytes);
        tl_gpu_touch(t, t->block, reads[i].from, reads[i].bytes, TL_TOUCH_END_READ);
    }
    return kept;
}

void tl_gpu_end_reads(tl_gpu_thread *t, bool bulk, int keep)
{
    if (bulk)
        t->bulk_read_count = end_reads(t, t->bulk_reads, t->bulk_read_count, t->bulk_group - keep);
    else
        t->wgmma_read_count =
            end_reads(t, t->wgmma_reads, t->wgmma_read_count, t->wgmma_group - keep);
}

/* A kernel that ends while wgmma is at work has used sums that were not there. */
void tl_gpu_end_thread(tl_gpu_thread *t)
{
    t->call = NULL;
    if (t->wgmma_read_count > 0)
        tl_gpu_fail(t, TL_BAD_IR, "ends and has not waited for its wgmma");
    if (t->bulk_read_count > 0)
        tl_gpu_fail(t, TL_BAD_IR, "ends and has not waited for its bulk copies to global memory");
}
