/* codegen/emulate/call_wgmma.c: products that a warpgroup asks for, of matrices in shared memory: m64 nN k32bytes.
 *
 * Arguments: N/2 sums of each thread, then the descriptors of A (K-major: a row's elements lie side by side), or four words of
 * it, and B. A descriptor has the address, two strides and the swizzle; matrices lie in atoms of 8 rows of 32, 64 or 128 bytes:
 *
 *     K-major   element (m, k) at  m/8*stride + m%8*row + k*size
 *     MN-major  element (n, k) at  n/c*leading + n%c*size + k/8*stride + k%8*row     c elements to a row
 *
 * What is read stays under way until its group is waited for (open_reads.c), and sums are not there before. */
#include <inttypes.h>
#include <string.h>
#include "codegen/emulate/narrow_floats.h"
#include "runtime/base/array.h"

enum { BF16, F16, TF32, S8, U8 }; /* as in the table of the parser */

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
                 .size = type == TF32 ? 4
                         : type >= S8 ? 1
                                      : 2,
                 .mn_major = mn_major };
    if (m.row == 0)
        tl_gpu_fail(t, TL_BAD_IR, "a matrix without a swizzle is not emulated");
    if (mn_major && type >= TF32)
        tl_gpu_fail(t, TL_BAD_IR, "only f16 and bf16 have matrices with contiguous columns");
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

static uint32_t fetch(tl_gpu_thread *t, const matrix *m, int outer, int k)
{
    uint32_t at, bits = 0;
    tl_gpu_shared(t, (int64_t)(TL_SHARED_WINDOW + place(m, outer, k)), m->size, m->size, &at);
    memcpy(&bits, t->block->shared + at, (size_t)m->size);
    return bits;
}

/* What the bits of an operand are: exact in a double. */
static double value_of(int type, uint32_t bits)
{
    if (type >= S8)
        return type == U8 ? (uint8_t)bits : (int8_t)bits;
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

/* ---- sums under way ----
 *
 * Until its group is waited for, a thread has of each sum only a token, a NaN with a number; what comes of it stands in the
 * thread's list. Whoever adds to it by wgmma hands the token on, dev_wg_done gives the sum for it; anybody else gets a NaN. */

enum { TOKEN = 0x7fe00000, TOKEN_NUMBERS = 1 << 20 };

static tl_open_sum *find_sum(tl_gpu_thread *t, int64_t bits)
{
    uint32_t number = (uint32_t)bits - TOKEN;
    bool is_token = number < (uint32_t)t->wgmma_sum_count && t->wgmma_sums[number].is_open;
    return is_token ? &t->wgmma_sums[number] : NULL;
}

static int64_t open_sum(tl_gpu_thread *t, int64_t value)
{
    int number = t->wgmma_sum_free;
    while (number < t->wgmma_sum_count && t->wgmma_sums[number].is_open)
        number++;
    if (number >= TOKEN_NUMBERS)
        tl_gpu_fail(t, TL_UNSUPPORTED, "more than %d sums are under way", TOKEN_NUMBERS);
    if (number == t->wgmma_sum_count) {
        if (!TL_HEAP_ROOM(t->wgmma_sums, t->wgmma_sum_count, t->wgmma_sum_capacity))
            tl_gpu_out_of_memory(t);
        t->wgmma_sum_count++;
    }
    t->wgmma_sum_free = number + 1;
    t->wgmma_sums[number] = (tl_open_sum){ true, t->wgmma_group, value };
    return TOKEN + number;
}

/* The product's result for one sum of a thread. */
static int64_t add_up(tl_gpu_thread *t, int64_t in, bool is_float, double more)
{
    tl_open_sum *open = find_sum(t, in);
    int64_t before = open != NULL ? open->value : in;
    int64_t after = is_float ? tl_gpu_bits((float)(tl_gpu_float(before) + more))
                             : (int64_t)(uint32_t)((uint32_t)before + (uint32_t)(int64_t)more);
    if (open == NULL)
        return open_sum(t, after);
    open->value = after;
    open->group = t->wgmma_group;
    return in;
}

void tl_call_wgmma_done(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    for (int i = 0; i < call->argument_count && i < call->result_count; i++) {
        tl_open_sum *open = find_sum(t, in[i]);
        if (open != NULL && open->group >= t->wgmma_done)
            tl_gpu_fail(t, TL_BAD_IR, "takes a sum of a wgmma that it has not waited for");
        out[i] = open != NULL ? open->value : in[i];
        if (open == NULL)
            continue;
        open->is_open = false;
        int number = (int)(open - t->wgmma_sums);
        t->wgmma_sum_free = number < t->wgmma_sum_free ? number : t->wgmma_sum_free;
    }
}

/* ---- products ---- */

enum { GROUP = 128, ROWS = 64, MOST_DEPTH = 32, MOST_COLUMNS = 256, TILE = 8 };

/* A row by neighbouring columns: products of each in their order, columns side by side in vectors. */
static void dot_tile(const double *row, const double *columns, int depth, double *out)
{
    double sums[TILE] = { 0 };
    for (int k = 0; k < depth; k++)
        for (int c = 0; c < TILE; c++)
            sums[c] += row[k] * columns[k * MOST_COLUMNS + c];
    memcpy(out, sums, sizeof sums);
}

/* A of threads' registers: word i of lane 4g + t has row g + 8*(i & 1), elements 2t.. of 8 from 8*(i / 2) on. */
static uint32_t fetch_held(const tl_gpu_meeting *m, int sums, int row, int k)
{
    int word = k / 8 * 2 + row % 16 / 8;
    const tl_gpu_thread *holder = m->who[row / 16 * 32 + row % 8 * 4 + k % 8 / 2];
    return (uint32_t)holder->in[sums + word] >> 16 * (k % 2) & 0xffff;
}

static void check_together(const tl_gpu_meeting *m, int sums, bool held)
{
    const tl_gpu_thread *first = m->who[0];
    int at = held ? sums + 4 : sums, count = held ? 1 : 2;
    for (int i = 0; i < GROUP; i++) {
        if (memcmp(&m->who[i]->in[at], &first->in[at], (size_t)count * sizeof(int64_t)) != 0)
            tl_gpu_fail(m->who[i], TL_BAD_IR,
                        "its descriptors are not those of the rest of its warpgroup");
        if (!m->who[i]->wgmma_fenced)
            tl_gpu_fail(m->who[i], TL_BAD_IR, "no wgmma.fence stands before the first wgmma");
    }
}

static void multiply_together(tl_gpu_thread *thread, tl_gpu_meeting *m)
{
    int n = thread->call->tags[0], type = thread->call->tags[1], sums = n / 2;
    bool held = thread->call->tags[3] != 0;
    tl_gpu_thread *first = m->who[0];
    check_together(m, sums, held);
    matrix a = held ? (matrix){ .size = 2 } : decode(first, (uint64_t)first->in[sums], type, false);
    matrix b =
        decode(first, (uint64_t)first->in[sums + (held ? 4 : 1)], type, thread->call->tags[2]);
    int depth = 32 / b.size;
    static _Thread_local double left[ROWS][MOST_DEPTH], right[MOST_DEPTH][MOST_COLUMNS];
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < ROWS; i++)
            left[i][k] = value_of(type, held ? fetch_held(m, sums, i, k) : fetch(first, &a, i, k));
        for (int j = 0; j < n; j++)
            right[k][j] = value_of(type, fetch(first, &b, j, k));
    }
    if (!held)
        open_matrix(first, &a, ROWS, depth);
    open_matrix(first, &b, n, depth);
    static _Thread_local double all[ROWS][MOST_COLUMNS];
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < n; column += TILE)
            dot_tile(left[row], &right[0][column], depth, &all[row][column]);
    for (int i = 0; i < GROUP; i++)
        for (int e = 0; e < sums; e++) {
            int row = i / 32 * 16 + i % 32 / 4 + (e & 2 ? 8 : 0),
                column = e / 4 * 8 + i % 4 * 2 + (e & 1);
            m->who[i]->out[e] = add_up(m->who[i], m->who[i]->in[e], type < S8, all[row][column]);
        }
}

void tl_call_wgmma(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    int operands = call->tags[3] ? 5 : 2;
    if (call->argument_count != call->tags[0] / 2 + operands ||
        call->result_count != call->tags[0] / 2)
        tl_gpu_fail(t, TL_BAD_IR, "takes %d arguments and gives %d, not %d sums and %d operands",
                    call->argument_count, call->result_count, call->tags[0] / 2, operands);
    if (call->tags[3] && call->tags[1] > F16)
        tl_gpu_fail(t, TL_BAD_IR, "of A in registers only f16 and bf16 are emulated");
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
    t->wgmma_done = t->wgmma_group - keep;
    t->wgmma_fenced = false;
}
