/* codegen/emulate/call_wgmma.c: products that a warpgroup asks for, of matrices in shared memory: m64 nN k32bytes.
 *
 * Arguments: N/2 sums of each thread, then the descriptors of A (K-major: a row's elements lie side by side) and B. A
 * descriptor has the address, two strides and the swizzle; matrices lie in atoms of 8 rows of 32, 64 or 128 bytes:
 *
 *     K-major   element (m, k) at  m/8*stride + m%8*row + k*size
 *     MN-major  element (n, k) at  n/c*leading + n%c*size + k/8*stride + k%8*row     c elements to a row
 *
 * Sums are there at once; what is read stays under way until its group is waited for (open_reads.c). */
#include <inttypes.h>
#include <string.h>
#include "codegen/emulate/narrow_floats.h"

enum { BF16, F16, TF32 }; /* as in the table of the parser */

typedef struct {
    uint32_t address, leading, stride, row; /* bytes; row is that of an atom, and of its swizzle */
    int size;
    bool mn_major;
} matrix;

static matrix decode(tl_gpu_thread *t, uint64_t descriptor, int type, bool mn_major)
{
    static const uint32_t rows[] = { 0, 128, 64, 32 };
    matrix m = { .address = (uint32_t)(descriptor & 0x3fff) << 4,
                 .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                 .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                 .row = rows[descriptor >> 62],
                 .size = type == TF32 ? 4 : 2,
                 .mn_major = mn_major };
    if (m.row == 0)
        tl_gpu_fail(t, TL_BAD_IR, "a matrix without a swizzle is not emulated");
    if (mn_major && type == TF32)
        tl_gpu_fail(t, TL_BAD_IR, "tf32 has no matrices with contiguous columns");
    if (descriptor >> 49 & 7)
        tl_gpu_fail(t, TL_BAD_IR, "a matrix with an offset of its atoms is not emulated");
    return m;
}

static uint32_t place(const matrix *m, int outer, int k)
{
    uint32_t at;
    if (!m->mn_major) {
        at = (uint32_t)(outer / 8) * m->stride + (uint32_t)(outer % 8) * m->row +
             (uint32_t)(k * m->size);
    } else {
        int columns = (int)m->row / m->size;
        at = (uint32_t)(outer / columns) * m->leading + (uint32_t)(outer % columns * m->size) +
             (uint32_t)(k / 8) * m->stride + (uint32_t)(k % 8) * m->row;
    }
    at += m->address;
    return at ^ (at >> 7 & (m->row / 16 - 1)) << 4;
}

static float fetch(tl_gpu_thread *t, const matrix *m, int type, int outer, int k)
{
    uint32_t at, bits = 0;
    tl_gpu_shared(t, (int64_t)(TL_SHARED_WINDOW + place(m, outer, k)), m->size, m->size, &at);
    memcpy(&bits, t->block->shared + at, (size_t)m->size);
    return type == TF32   ? tl_tf32_float(bits)
           : type == BF16 ? tl_bf16_float(bits)
                          : tl_f16_float(bits);
}

/* Chunks of 16 bytes are what a swizzle moves. */
static void open_matrix(tl_gpu_thread *t, const matrix *m, int outer_extent, int depth)
{
    int step = 16 / m->size;
    for (int outer = 0; outer < outer_extent; outer += m->mn_major ? step : 1)
        for (int k = 0; k < depth; k += m->mn_major ? 1 : step)
            tl_gpu_open_read(t, false, place(m, outer, k), 16, NULL);
}

static void multiply_together(tl_gpu_thread *thread, tl_gpu_meeting *m)
{
    enum { GROUP = 128, ROWS = 64 };
    int n = thread->call->tags[0], type = thread->call->tags[1], sums = n / 2;
    tl_gpu_thread *first = m->who[0];
    for (int i = 0; i < GROUP; i++) {
        if (memcmp(&m->who[i]->in[sums], &first->in[sums], 2 * sizeof(int64_t)) != 0)
            tl_gpu_fail(m->who[i], TL_BAD_IR,
                        "its descriptors are not those of the rest of its warpgroup");
        if (!m->who[i]->wgmma_fenced)
            tl_gpu_fail(m->who[i], TL_BAD_IR, "no wgmma.fence stands before the first wgmma");
    }
    matrix a = decode(first, (uint64_t)first->in[sums], type, false);
    matrix b = decode(first, (uint64_t)first->in[sums + 1], type, thread->call->tags[2]);
    int depth = 32 / a.size;
    static _Thread_local float left[64][16], right[16][256];
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < ROWS; i++)
            left[i][k] = fetch(first, &a, type, i, k);
        for (int j = 0; j < n; j++)
            right[k][j] = fetch(first, &b, type, j, k);
    }
    open_matrix(first, &a, ROWS, depth);
    open_matrix(first, &b, n, depth);
    for (int i = 0; i < GROUP; i++)
        for (int e = 0; e < sums; e++) {
            int row = i / 32 * 16 + i % 32 / 4 + (e & 2 ? 8 : 0),
                column = e / 4 * 8 + i % 4 * 2 + (e & 1);
            double sum = tl_gpu_float(m->who[i]->in[e]);
            for (int k = 0; k < depth; k++)
                sum += (double)left[row][k] * right[k][column];
            m->who[i]->out[e] = tl_gpu_bits((float)sum);
        }
}

void tl_call_wgmma(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    if (call->argument_count != call->tags[0] / 2 + 2 || call->result_count != call->tags[0] / 2)
        tl_gpu_fail(t, TL_BAD_IR,
                    "takes %d arguments and gives %d, not %d sums and two descriptors",
                    call->argument_count, call->result_count, call->tags[0] / 2);
    tl_gpu_meet_warpgroup(t, in, out, multiply_together);
}

void tl_call_wgmma_fence(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    t->wgmma_fenced = true;
    tl_gpu_meet_warpgroup(t, in, out, NULL);
}

void tl_call_wgmma_commit(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in,
                          int64_t *out)
{
    (void)call;
    t->wgmma_group++;
    tl_gpu_meet_warpgroup(t, in, out, NULL);
}

/* Its sums may be touched from here on, and with that comes the next fence. */
void tl_call_wgmma_wait(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    int keep = call->tags[0] >= 0 ? call->tags[0] : (int)in[0];
    tl_gpu_meet_warpgroup(t, in, out, NULL);
    tl_gpu_end_reads(t, false, keep);
    t->wgmma_fenced = false;
}
