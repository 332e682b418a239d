/* codegen/emulate/call_matrix.c: matrices spread over the registers of a warp: ldmatrix, stmatrix, mma.sync.
 *
 * Lane l is in group g = l/4, the t = l%4 th of it. A register of A has elements of row g (or g + 8) and of columns from
 * t*p on, p elements to a register; B the same with rows for columns; the sums are in pairs at columns 2*t, 2*t + 1. */
#include <inttypes.h>
#include <string.h>
#include "codegen/emulate/narrow_floats.h"

static uint16_t *row_of(const tl_gpu_meeting *m, int lane, tl_gpu_touching how)
{
    tl_gpu_thread *t = m->who[lane];
    uint32_t offset;
    tl_gpu_block *b = tl_gpu_shared(t, t->in[0], 16, 16, &offset);
    tl_gpu_touch(t, b, offset, 16, how);
    return (uint16_t *)(void *)(b->shared + offset);
}

static void load_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    for (int matrix = 0; matrix < t->call->tags[0]; matrix++) {
        uint16_t rows[8][8];
        for (int r = 0; r < 8; r++)
            memcpy(rows[r], row_of(m, matrix * 8 + r, TL_TOUCH_READ), sizeof rows[r]);
        for (int lane = 0; lane < TL_WARP; lane++) {
            int g = lane / 4, c = lane % 4 * 2;
            bool transposed = t->call->tags[1];
            uint32_t low = transposed ? rows[c][g] : rows[g][c];
            uint32_t high = transposed ? rows[c + 1][g] : rows[g][c + 1];
            m->who[lane]->out[matrix] = (int64_t)(low | high << 16);
        }
    }
}

void tl_call_ldmatrix(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, UINT32_MAX, in, out, load_together);
}

static void store_together(tl_gpu_thread *t, tl_gpu_meeting *m)
{
    for (int matrix = 0; matrix < t->call->tags[0]; matrix++)
        for (int r = 0; r < 8; r++) {
            uint16_t *row = row_of(m, matrix * 8 + r, TL_TOUCH_WRITE);
            for (int c = 0; c < 8; c++) {
                int lane = t->call->tags[1] ? c * 4 + r / 2 : r * 4 + c / 2,
                    half = t->call->tags[1] ? r % 2 : c % 2;
                row[c] = (uint16_t)((uint32_t)m->who[lane]->in[1 + matrix] >> (16 * half));
            }
        }
}

void tl_call_stmatrix(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    (void)call;
    tl_gpu_meet_warp(t, UINT32_MAX, in, out, store_together);
}

/* ---- products ---- */

/* As in the table of the parser. */
enum { F32_F32, F16_F16, BF16, TF32, F64, S8_U8, U8_S8, S8, U8, MMA_TYPES };
static const int element_bits[MMA_TYPES] = { 16, 16, 16, 32, 64, 8, 8, 8, 8 };

/* Element i of a register as the type that A, or B, has. */
static double element(int type, bool of_a, uint32_t reg, int i)
{
    uint32_t bits = element_bits[type] == 32 ? reg : reg >> (element_bits[type] * i);
    bool is_signed = of_a ? type == S8 || type == S8_U8 : type == S8 || type == U8_S8;
    switch (type) {
    case F32_F32:
    case F16_F16:
        return tl_f16_float(bits & 0xffff);
    case BF16:
        return tl_bf16_float(bits);
    case TF32:
        return tl_tf32_float(bits);
    }
    return is_signed ? (double)(int8_t)(uint8_t)bits : (double)(uint8_t)bits;
}

typedef struct {
    double a[16][32], b[32][8];
} factors;

/* Arguments: the registers of A, of B, of the sums. */
static int gather(const tl_gpu_meeting *m, const int *tags, factors *f)
{
    int type = tags[3], p = 32 / element_bits[type], columns = 4 * p,
        b_registers = tags[2] / columns;
    int a_registers = 2 * b_registers;
    for (int lane = 0; lane < TL_WARP; lane++) {
        const int64_t *in = m->who[lane]->in;
        int g = lane / 4, t = lane % 4;
        for (int r = 0; r < a_registers; r++)
            for (int i = 0; i < p; i++)
                f->a[g + 8 * (r & 1)][t * p + i + (r >> 1) * columns] =
                    element(type, true, (uint32_t)in[r], i);
        for (int r = 0; r < b_registers; r++)
            for (int i = 0; i < p; i++)
                f->b[t * p + i + r * columns][g] =
                    element(type, false, (uint32_t)in[a_registers + r], i);
    }
    return a_registers + b_registers;
}

static double dot(const factors *f, int row, int column, int depth)
{
    double sum = 0;
    for (int k = 0; k < depth; k++)
        sum += f->a[row][k] * f->b[k][column];
    return sum;
}

static int64_t add_integers(int64_t sum, int64_t product, bool saturates)
{
    int64_t all = (int64_t)(int32_t)sum + product;
    if (saturates)
        all = all > INT32_MAX ? INT32_MAX : all < INT32_MIN ? INT32_MIN : all;
    return (int64_t)(uint32_t)all;
}

static void multiply_together(tl_gpu_thread *thread, tl_gpu_meeting *m)
{
    const int *tags = thread->call->tags;
    int type = tags[3];
    factors f;
    int sums = gather(m, tags, &f);
    for (int lane = 0; lane < TL_WARP; lane++) {
        const int64_t *in = m->who[lane]->in + sums;
        int64_t *out = m->who[lane]->out;
        int g = lane / 4, t = lane % 4;
        for (int r = 0; r < (type == F16_F16 ? 2 : 4); r++) {
            int row = g + 8 * (type == F16_F16 ? r : r >> 1), column = 2 * t + (r & 1);
            if (type == F16_F16) {
                uint32_t both = 0;
                for (int i = 0; i < 2; i++) {
                    double product = dot(&f, row, 2 * t + i, tags[2]);
                    both |= tl_f16_bits(
                                (float)(tl_f16_float((uint32_t)in[r] >> 16 * i & 0xffff) + product))
                            << 16 * i;
                }
                out[r] = (int64_t)both;
            } else if (element_bits[type] == 8) {
                out[r] = add_integers(in[r], (int64_t)dot(&f, row, column, tags[2]), tags[4]);
            } else {
                out[r] = tl_gpu_bits((float)(tl_gpu_float(in[r]) + dot(&f, row, column, tags[2])));
            }
        }
    }
}

/* m8n8k4 of doubles: one element of A and of B in a lane. */
static void multiply_doubles(tl_gpu_thread *thread, tl_gpu_meeting *m)
{
    double a[8][4], b[4][8];
    (void)thread;
    for (int lane = 0; lane < TL_WARP; lane++) {
        memcpy(&a[lane / 4][lane % 4], &m->who[lane]->in[0], sizeof(double));
        memcpy(&b[lane % 4][lane / 4], &m->who[lane]->in[1], sizeof(double));
    }
    for (int lane = 0; lane < TL_WARP; lane++)
        for (int i = 0; i < 2; i++) {
            double sum;
            memcpy(&sum, &m->who[lane]->in[2 + i], sizeof sum);
            for (int k = 0; k < 4; k++)
                sum = fma(a[lane / 4][k], b[k][lane % 4 * 2 + i], sum);
            memcpy(&m->who[lane]->out[i], &sum, sizeof sum);
        }
}

void tl_call_mma(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    tl_gpu_meet_warp(t, UINT32_MAX, in, out,
                     call->tags[3] == F64 ? multiply_doubles : multiply_together);
}
