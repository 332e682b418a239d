/* tests/gpu/peers/peer_check.c: what a case computes: its operands, its results by their definition, and as a kernel of ours. */
#include <math.h>
#include <stdlib.h>
#include "tests/gpu/peers/peer.h"
#include "tests/gpu/peers/peer_attention.h"

enum { WINDOW = 3 };

int64_t peer_elements(const peer_case *c, int operand)
{
    switch (c->op) {
    case PEER_GEMM:
        return operand == 0 ? c->m * c->k : operand == 1 ? c->k * c->n : 0;
    case PEER_CONV:
        return operand == 0   ? c->batch * c->k * c->m * c->m
               : operand == 1 ? c->n * c->k * WINDOW * WINDOW
                              : 0;
    case PEER_ATTENTION:
        return c->batch * c->m * c->n * c->k;
    case PEER_ADD:
        return operand < 2 ? c->m * c->n : 0;
    case PEER_COPY:
    case PEER_SOFTMAX:
        return operand == 0 ? c->m * c->n : 0;
    }
    return 0;
}

int64_t peer_result_elements(const peer_case *c)
{
    return c->op == PEER_CONV        ? c->batch * c->n * c->m * c->m
           : c->op == PEER_ATTENTION ? peer_elements(c, 0)
                                     : c->m * c->n;
}

void *peer_block(const peer_case *c, int operand)
{
    void *block = malloc((size_t)PEER_BLOCK * tl_dtype_size(c->dtype));
    uint64_t seed = 88172645463325252u + (uint64_t)operand;
    for (int64_t i = 0; block != NULL && i < PEER_BLOCK; i++) {
        seed ^= seed << 13; /* Marsaglia, Xorshift RNGs, 2003 */
        seed ^= seed >> 7;
        seed ^= seed << 17;
        tl_number_store(c->dtype, block, (size_t)i,
                        (tl_number){ .f = (double)(seed >> 40) / (1 << 23) - 1 });
    }
    return block;
}

static double at(const peer_case *c, void *const blocks[PEER_OPERANDS], int operand, int64_t index)
{
    return tl_number_load(c->dtype, blocks[operand], (size_t)(index % PEER_BLOCK)).f;
}

/* Where (image, channel, row, column) of a tensor of so many channels and places lies. */
static int64_t place(bool channels_last, const int64_t i[4], int64_t channels, int64_t side)
{
    return channels_last ? ((i[0] * side + i[2]) * side + i[3]) * channels + i[1]
                         : ((i[0] * channels + i[1]) * side + i[2]) * side + i[3];
}

static double expected_conv(const peer_case *c, void *const blocks[PEER_OPERANDS],
                            bool channels_last, int64_t index, double *magnitude)
{
    int64_t side = c->m, y[4];
    if (channels_last) {
        y[1] = index % c->n;
        y[3] = index / c->n % side;
        y[2] = index / c->n / side % side;
    } else {
        y[3] = index % side;
        y[2] = index / side % side;
        y[1] = index / side / side % c->n;
    }
    y[0] = index / (c->n * side * side);
    double sum = 0;
    for (int64_t k = 0; k < c->k; k++)
        for (int64_t u = 0; u < WINDOW; u++)
            for (int64_t v = 0; v < WINDOW; v++) {
                const int64_t x[4] = { y[0], k, y[2] + u - 1, y[3] + v - 1 };
                if (x[2] < 0 || x[2] >= side || x[3] < 0 || x[3] >= side)
                    continue;
                double term =
                    at(c, blocks, 0, place(channels_last, x, c->k, side)) *
                    at(c, blocks, 1,
                       place(channels_last, (const int64_t[]){ y[1], k, u, v }, c->k, WINDOW));
                sum += term;
                *magnitude += fabs(term);
            }
    return sum;
}

static double expected_attention(const peer_case *c, void *const blocks[PEER_OPERANDS],
                                 int64_t index, double *magnitude)
{
    int64_t width = c->n * c->k, feature = index % c->k, head = index / c->k % c->n;
    int64_t row = index / width, batch = row / c->m;
    double sum = 0, weights = 0;
    for (int64_t j = 0; j < c->m; j++) {
        double score = 0;
        for (int64_t d = 0; d < c->k; d++)
            score += at(c, blocks, 0, row * width + head * c->k + d) *
                     at(c, blocks, 1, (batch * c->m + j) * width + head * c->k + d);
        double weight = exp(score / sqrt((double)c->k));
        double value = at(c, blocks, 2, (batch * c->m + j) * width + head * c->k + feature);
        weights += weight;
        sum += weight * value;
        *magnitude += weight * fabs(value);
    }
    *magnitude /= weights;
    return sum / weights;
}

double peer_expected(const peer_case *c, void *const blocks[PEER_OPERANDS], bool channels_last,
                     int64_t index, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    switch (c->op) {
    case PEER_GEMM:
        for (int64_t k = 0; k < c->k; k++) {
            double term = at(c, blocks, 0, index / c->n * c->k + k) *
                          at(c, blocks, 1, k * c->n + index % c->n);
            sum += term;
            *magnitude += fabs(term);
        }
        return sum;
    case PEER_CONV:
        return expected_conv(c, blocks, channels_last, index, magnitude);
    case PEER_ATTENTION:
        return expected_attention(c, blocks, index, magnitude);
    case PEER_COPY:
        *magnitude = 1;
        return at(c, blocks, 0, index);
    case PEER_ADD:
        *magnitude = 2;
        return at(c, blocks, 0, index) + at(c, blocks, 1, index);
    case PEER_SOFTMAX:
        for (int64_t j = 0; j < c->n; j++)
            sum += exp(at(c, blocks, 0, index / c->n * c->n + j));
        return *magnitude = exp(at(c, blocks, 0, index)) / sum;
    }
    return 0;
}

double peer_tolerance(const peer_case *c)
{
    return c->dtype == TL_BF16 ? 1.0 / 128 : c->dtype == TL_F16 || c->tf32 ? 1.0 / 512 : 1e-5;
}

double peer_flops(const peer_case *c)
{
    double results = (double)c->m * (double)c->n;
    switch (c->op) {
    case PEER_GEMM:
        return 2 * results * (double)c->k;
    case PEER_CONV:
        return 2 * (double)(c->batch * c->m) * results * (double)c->k * WINDOW * WINDOW;
    case PEER_ATTENTION:
        return 4 * (double)(c->batch * c->m) * results * (double)c->k;
    case PEER_COPY:
    case PEER_ADD:
    case PEER_SOFTMAX:
        return 0;
    }
    return 0;
}

double peer_bytes(const peer_case *c)
{
    int64_t elements = peer_result_elements(c);
    for (int i = 0; i < PEER_OPERANDS; i++)
        elements += peer_elements(c, i);
    return (double)elements * (double)tl_dtype_size(c->dtype);
}

void peer_text(const peer_case *c, tl_text *out)
{
    const char *t = tl_dtype_infos[c->dtype].text;
    long long b = c->batch, m = c->m, n = c->n, k = c->k;
    tl_text_format(out, "%skernel %s", c->tf32 ? "tf32 " : "", c->name);
    switch (c->op) {
    case PEER_GEMM:
        tl_text_format(out, "(A: %s[%lld, %lld], B: %s[%lld, %lld], out C: %s[%lld, %lld])\n", t, m,
                       k, t, k, n, t, m, n);
        if (c->dtype == TL_F32)
            tl_text_add(out, "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n");
        else
            tl_text_format(out,
                           "  gemm: acc[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n"
                           "  C: C[i, j] = %s(acc[i, j])\n",
                           t);
        return;
    case PEER_CONV:
        tl_text_format(
            out,
            "(x: %s[%lld, %lld, %lld, %lld], const w: %s[%lld, %lld, 3, 3], out y: %s[%lld, %lld, "
            "%lld, %lld])\n"
            "  pad: p[b, c, i, j] = select(1 <= i and i < %lld and 1 <= j and j < %lld, x[b, c, i "
            "- 1, j - 1], %s(0.0)) for i in 0..%lld, j in 0..%lld\n"
            "  conv: acc[b, o, i, j] = sum(f32(p[b, c, i + u, j + v])*f32(w[o, c, u, v])) "
            "for i in 0..%lld, j in 0..%lld\n"
            "  y: y[b, o, i, j] = %s(acc[b, o, i, j])\n",
            t, b, k, m, m, t, n, k, t, b, n, m, m, m + 1, m + 1, t, m + 2, m + 2, m, m, t);
        return;
    case PEER_ATTENTION:
        if (peer_attention_fits(m, k)) {
            peer_attention_text(t, b, n, m, k, out);
            return;
        }
        tl_text_format(
            out,
            "(q: %s[%lld, %lld, %lld], k: %s[%lld, %lld, %lld], v: %s[%lld, %lld, %lld], out y: "
            "%s[%lld, %lld, %lld])\n",
            t, b, m, n * k, t, b, m, n * k, t, b, m, n * k, t, b, m, n * k);
        tl_text_format(
            out,
            "  scores: s[b, h, i, j] = sum(f32(q[b, i, h*%lld + d])*f32(k[b, j, h*%lld + d])) "
            "for h in 0..%lld, d in 0..%lld\n"
            "  masked: z[b, h, i, j] = s[b, h, i, j]*%.9g\n"
            "  most: m[b, h, i] = max(z[b, h, i, j])\n"
            "  weight: p[b, h, i, j] = %s(exp(z[b, h, i, j] - m[b, h, i]))\n"
            "  total: l[b, h, i] = sum(f32(p[b, h, i, j]))\n"
            "  attend: acc[b, i, h, e] = sum(f32(p[b, h, i, j])*f32(v[b, j, h*%lld + e])) "
            "for e in 0..%lld\n"
            "  epilogue: y[b, i, h*%lld + e] = %s(acc[b, i, h, e]*(1.0/l[b, h, i])) "
            "for h in 0..%lld, e in 0..%lld\n",
            k, k, n, k, 1 / sqrt((double)k), t, k, k, k, t, n, k);
        return;
    case PEER_COPY:
        tl_text_format(out,
                       "(A: %s[%lld, %lld], out C: %s[%lld, %lld])\n  copy: C[i, j] = A[i, j]\n", t,
                       m, n, t, m, n);
        return;
    case PEER_ADD:
        tl_text_format(out,
                       "(A: %s[%lld, %lld], B: %s[%lld, %lld], out C: %s[%lld, %lld])\n"
                       "  add: C[i, j] = A[i, j] + B[i, j]\n",
                       t, m, n, t, m, n, t, m, n);
        return;
    case PEER_SOFTMAX:
        tl_text_format(out,
                       "(A: %s[%lld, %lld], out C: %s[%lld, %lld])\n"
                       "  most: m[i] = max(A[i, j])\n"
                       "  power: p[i, j] = exp(A[i, j] - m[i])\n"
                       "  total: l[i] = sum(p[i, j])\n"
                       "  C: C[i, j] = p[i, j]/l[i]\n",
                       t, m, n, t, m, n);
        return;
    }
}
