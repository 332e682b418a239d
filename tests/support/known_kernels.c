/* tests/support/known_kernels.c: well-known kernels with random extents. */
#include "tests/support/known_kernels.h"
#include <string.h>
#include "runtime/base/text.h"

/* Kernels; $0..$5 are random extents. Values are small integers, so that sums are exact in any order, unless the kernel
 * has functions. */
static const char *const kernels[] = {
    "kernel gemm(A: f32[$0, $1], const B: f32[$1, $2], bias: f32[$2], out D: f32[$0, $2])\n"
    "alloc C: f32[$0, $2]\n"
    "for i in 0..$0\n"
    "  for j in 0..$2\n"
    "    for k in 0..$1\n"
    "      block C\n"
    "        spatial i, j\n"
    "        reduce k\n"
    "        C[i, j] = sum(A[i, k]*B[k, j])\n"
    "for i in 0..$0\n"
    "  for j in 0..$2\n"
    "    block D\n"
    "      spatial i, j\n"
    "      D[i, j] = max(C[i, j] + bias[j], 0.0)\n",

    "kernel gemm_dim(dim M in 1..40, A: f32[M, $1], B: f32[$1, $2], out C: f32[M, $2])\n"
    "for i in 0..M\n"
    "  for j in 0..$2\n"
    "    for k in 0..$1\n"
    "      block C\n"
    "        spatial i, j\n"
    "        reduce k\n"
    "        C[i, j] = sum(A[i, k]*B[k, j])\n",

    "kernel conv(X: f32[$0, $3, $3], const W: f32[$1, $0, 3, 3], out Y: f32[$1, $3, $3])\n"
    "alloc P: f32[$0, $3 + 2, $3 + 2]\n"
    "for c in 0..$0\n"
    "  for h in 0..$3 + 2\n"
    "    for w in 0..$3 + 2\n"
    "      block P\n"
    "        spatial c, h, w\n"
    "        P[c, h, w] = select(h > 0 and h < $3 + 1 and w > 0 and w < $3 + 1, "
    "X[c, min(max(h - 1, 0), $3 - 1), min(max(w - 1, 0), $3 - 1)], 0.0)\n"
    "for o in 0..$1\n"
    "  for h in 0..$3\n"
    "    for w in 0..$3\n"
    "      for c in 0..$0\n"
    "        for y in 0..3\n"
    "          for x in 0..3\n"
    "            block Y\n"
    "              spatial o, h, w\n"
    "              reduce c, y, x\n"
    "              Y[o, h, w] = sum(P[c, h + y, w + x]*W[o, c, y, x])\n",

    "kernel softmax(X: f32[$0, $1], out Y: f32[$0, $1])\n"
    "alloc m: f32[$0]\n"
    "alloc s: f32[$0]\n"
    "for i in 0..$0\n"
    "  for k in 0..$1\n"
    "    block m\n"
    "      spatial i\n"
    "      reduce k\n"
    "      m[i] = max(X[i, k])\n"
    "for i in 0..$0\n"
    "  for k in 0..$1\n"
    "    block s\n"
    "      spatial i\n"
    "      reduce k\n"
    "      s[i] = sum(exp(X[i, k] - m[i]))\n"
    "for i in 0..$0\n"
    "  for k in 0..$1\n"
    "    block Y\n"
    "      spatial i, k\n"
    "      Y[i, k] = exp(X[i, k] - m[i])/s[i]\n",

    "kernel argmax(X: f32[$0, $1], out V: f32[$0], out I: i64[$0])\n"
    "for i in 0..$0\n"
    "  for k in 0..$1\n"
    "    block A\n"
    "      spatial i\n"
    "      reduce k\n"
    "      V[i], I[i] = argmax(X[i, k], k)\n",

    "kernel scan(X: f32[$0, $1], out Y: f32[$0, $1])\n"
    "alloc S: f32[$0, $1]\n"
    "for i in 0..$0\n"
    "  for t in 0..$1\n"
    "    block S\n"
    "      spatial i\n"
    "      ordered t\n"
    "      S[i, t] = select(t > 0, S[i, max(t - 1, 0)], 0.0) + X[i, t]\n"
    "for i in 0..$0\n"
    "  for t in 0..$1\n"
    "    block Y\n"
    "      spatial i, t\n"
    "      Y[i, t] = S[i, t] - X[i, $1 - 1 - t]\n",

    "kernel chain(X: f32[$0, $1], out T: f32[$1, $0])\n"
    "alloc A: f32[$0, $1]\n"
    "alloc B: f32[$1, $0]\n"
    "for i in 0..$0\n"
    "  for j in 0..$1\n"
    "    block A\n"
    "      spatial i, j\n"
    "      A[i, j] = X[i, j]*3.0\n"
    "for j in 0..$1\n"
    "  for i in 0..$0\n"
    "    block B\n"
    "      spatial j, i\n"
    "      B[j, i] = A[i, j] + A[0, j]\n"
    "for j in 0..$1\n"
    "  for i in 0..$0\n"
    "    block T\n"
    "      spatial j, i\n"
    "      T[j, i] = B[j, i] - 1.0\n",

    "kernel dots(A: u8[$0, $1, 4], B: i8[2, $1, 16, 4], out C: i32[$0, 32])\n"
    "for i in 0..$0\n"
    "  for jo in 0..2\n"
    "    for j in 0..16\n"
    "      block C0\n"
    "        spatial i\n"
    "        spatial c in 0..32 = jo*16 + j\n"
    "        C[i, c] = i32(0)\n"
    "for i in 0..$0\n"
    "  for jo in 0..2\n"
    "    for ko in 0..$1\n"
    "      for j in 0..16\n"
    "        for k in 0..4\n"
    "          block C\n"
    "            spatial i\n"
    "            spatial c in 0..32 = jo*16 + j\n"
    "            reduce d in 0..4*$1 = ko*4 + k\n"
    "            C[i, c] sum= i32(A[i, d//4, d % 4])*i32(B[c//16, d//4, c % 16, d % 4])\n",

    "kernel windows(X: f32[$1, $0 + 6], out Y: f32[$1, $0])\n"
    "alloc A: f32[$1, $0 + 4]\n"
    "alloc B: f32[$0, $1]\n"
    "for i in 0..$1\n"
    "  for j in 0..$0 + 4\n"
    "    block A\n"
    "      spatial i, j\n"
    "      A[i, j] = X[i, j]*2.0 + X[i, j + 2]\n"
    "for j in 0..$0\n"
    "  for i in 0..$1\n"
    "    for k in 0..5\n"
    "      block B\n"
    "        spatial j, i\n"
    "        reduce k\n"
    "        B[j, i] = sum(A[i, j + k])\n"
    "for i in 0..$1\n"
    "  for j in 0..$0\n"
    "    block Y\n"
    "      spatial i, j\n"
    "      Y[i, j] = max(B[j, i], 0.0) - B[j, i]\n",

    "kernel rows(dim N in 1..30, X: f32[N, $1], out Z: f32[N])\n"
    "alloc Y: f32[N, $1]\n"
    "for i in 0..N\n"
    "  for j in 0..$1\n"
    "    block Y\n"
    "      spatial i, j\n"
    "      Y[i, j] = X[i, j]*X[i, j]\n"
    "for i in 0..N\n"
    "  for j in 0..$1\n"
    "    block Z\n"
    "      spatial i\n"
    "      reduce j\n"
    "      Z[i] = sum(Y[i, j])\n",
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

const char *known_kernel(tl_arena *arena, tl_random *random)
{
    static const int64_t extents[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17 };
    const char *template = kernels[tl_random_below(random, KERNELS)];
    bool is_conv = strncmp(template, "kernel conv", 11) == 0;
    int64_t values[6];
    for (int i = 0; i < 6; i++)
        values[i] = extents[tl_random_below(random, is_conv ? 6 : 14)];
    tl_text out = { 0 };
    for (const char *at = template; *at; at++) {
        if (*at == '$')
            tl_text_format(&out, "%lld", (long long)values[*++at - '0']);
        else
            tl_text_add_bytes(&out, at, 1);
    }
    const char *text = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return text;
}
