/* tests/codegen/test_programs.c: compiled code equals the interpreter, program by program, on every ISA that this
 * machine can run, on one thread and on several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/guarded_array.h"

#define MAX_BUFFERS 16

typedef struct {
    const char *name;
    const char *text;
    int64_t dims[2];
    double tolerance; /* |got - want| <= tolerance * (1 + |want|) for floats; integers are equal */
} program_case;

static const program_case cases[] = {
    { "copy with a tail",
      "kernel k(A: f32[37], out B: f32[37])\n"
      "  for i in 0..37 vectorized\n    block b\n      spatial i\n      B[i] = A[i]*2.0 + 1.0\n",
      { 0 },
      1e-6 },
    { "split with a predicate",
      "kernel k(A: f32[100], out B: f32[100])\n"
      "  for i0 in 0..7 parallel\n    for i1 in 0..16 vectorized\n      block b\n"
      "        spatial i in 0..100 = i0*16 + i1\n        where i0*16 + i1 < 100\n        B[i] = "
      "A[i] - 3.0\n",
      { 0 },
      1e-6 },
    { "fused parallel loops, two tails",
      "kernel k(A: f32[21, 50], out B: f32[21, 50])\n"
      "  for p in 0..12 parallel\n    for i1 in 0..8 unrolled\n      for j1 in 0..16 vectorized\n  "
      "      block b\n"
      "          spatial i in 0..21 = p//4*8 + i1\n          spatial j in 0..50 = p % 4*16 + j1\n"
      "          where p//4*8 + i1 < 21 and p % 4*16 + j1 < 50\n          B[i, j] = A[i, j]*A[i, "
      "j]\n",
      { 0 },
      1e-6 },
    { "gemm with tails in registers",
      "kernel k(A: f32[13, 20], B: f32[20, 40], out C: f32[13, 40])\n"
      "  for i0 in 0..4 parallel\n    for j0 in 0..2\n      alloc acc: f32[13, 40] register\n"
      "      for i1 in 0..4 unrolled\n        for j1 in 0..24 vectorized\n          block clear\n"
      "            spatial i in 0..13 = i0*4 + i1\n            spatial j in 0..40 = j0*24 + j1\n"
      "            where i0*4 + i1 < 13 and j0*24 + j1 < 40\n            acc[i, j] = 0.0\n"
      "      for k in 0..20\n        for i1 in 0..4 unrolled\n          for j1 in 0..24 "
      "vectorized\n"
      "            block gemm\n              spatial i in 0..13 = i0*4 + i1\n"
      "              spatial j in 0..40 = j0*24 + j1\n              reduce k\n"
      "              where i0*4 + i1 < 13 and j0*24 + j1 < 40\n              acc[i, j] sum= A[i, "
      "k]*B[k, j]\n"
      "      for i1 in 0..4 unrolled\n        for j1 in 0..24 vectorized\n          block store\n"
      "            spatial i in 0..13 = i0*4 + i1\n            spatial j in 0..40 = j0*24 + j1\n"
      "            where i0*4 + i1 < 13 and j0*24 + j1 < 40\n            C[i, j] = max(acc[i, j], "
      "0.0)\n",
      { 0 },
      1e-5 },
    { "lanes along a register axis that is not the last",
      "kernel k(A: f32[10], W: f32[9, 6], out C: f32[6, 1])\n"
      "  alloc acc: f32[6, 1] register\n"
      "  for j in 0..6 vectorized\n    block clear\n      spatial j\n      acc[j, 0] = 0.0\n"
      "  for k in 0..9\n    for j in 0..6 vectorized\n      block mm\n        spatial j\n"
      "        reduce k\n        acc[j, 0] sum= A[k]*W[k, j]\n"
      "  for j in 0..6 vectorized\n    block store\n      spatial j\n      C[j, 0] = acc[j, 0]\n",
      { 0 },
      1e-5 },
    { "more lanes than a register buffer has elements",
      "kernel k(A: f32[1, 1], out C: f32[1, 1])\n"
      "  alloc t: f32[1, 1] register\n"
      "  for i in 0..1\n    for j0 in 0..1\n      for j1 in 0..2 vectorized\n        block t\n"
      "          spatial i\n          spatial j in 0..1 = j0*2 + j1\n"
      "          where j0*2 + j1 < 1\n          t[i, j] = A[i, j]*A[i, j]\n"
      "  for i in 0..1\n    for j in 0..1\n      block c\n        spatial i, j\n"
      "        C[i, j] = t[i, j]\n",
      { 0 },
      0 },
    { "a sum that is computed twice, by a loop fused with its own",
      "kernel k(A: f32[2, 3], out B: f32[3])\n"
      "  for z_r in 0..4\n    for i in 0..3\n      block b\n        spatial i\n"
      "        reduce r in 0..2 = z_r % 2\n        B[i] = sum(A[r, i]) from 1.0\n",
      { 0 },
      1e-6 },
    { "naive matmul with init",
      "kernel k(A: f32[9, 7], B: f32[7, 11], out C: f32[9, 11])\n"
      "  for i in 0..9\n    for j in 0..11\n      for k in 0..7\n        block mm\n"
      "          spatial i, j\n          reduce k\n          C[i, j] = sum(A[i, k]*B[k, j])\n",
      { 0 },
      1e-5 },
    { "reduce loop outermost",
      "kernel k(A: f32[9, 7], B: f32[7, 11], out C: f32[9, 11])\n"
      "  for k in 0..7\n    for i in 0..9\n      for j in 0..11 vectorized\n        block mm\n"
      "          spatial i, j\n          reduce k\n"
      "          C[i, j] = sum(A[i, k]*B[k, j]) from 1.0\n",
      { 0 },
      1e-5 },
    { "split reduction with a predicate",
      "kernel k(A: f32[5, 30], out S: f32[5])\n"
      "  for i in 0..5\n    for k0 in 0..4\n      for k1 in 0..8\n        block s\n          "
      "spatial i\n"
      "          reduce k in 0..30 = k0*8 + k1\n          where k0*8 + k1 < 30\n          S[i] = "
      "max(A[i, k])\n",
      { 0 },
      1e-6 },
    { "vectorized reduction",
      "kernel k(A: f32[5, 100], out S: f32[5])\n"
      "  for i in 0..5 parallel\n    for k in 0..100 vectorized\n      block s\n"
      "        spatial i\n        reduce k\n        S[i] = sum(A[i, k])\n",
      { 0 },
      1e-5 },
    { "a reduction of three lanes in two loops",
      "kernel k(A: f32[5, 4, 3], out S: f32[5], out P: i8[5])\n"
      "  for i in 0..5\n    for k0 in 0..4\n      for k1 in 0..3 vectorized\n        block s\n"
      "          spatial i\n          reduce k0, k1\n          S[i] = sum(A[i, k0, k1])\n"
      "  for i in 0..5\n    for k0 in 0..4\n      for k1 in 0..3 vectorized\n        block p\n"
      "          spatial i\n          reduce k0, k1\n          P[i] = max(i8(A[i, k0, k1]))\n",
      { 0 },
      1e-6 },
    { "lanes that all add the same, some of them cut",
      "kernel k(A: f32[5], out S: f32[5])\n"
      "  for i in 0..5\n    for k0 in 0..2 vectorized\n      for k1 in 0..2\n        block s\n"
      "          spatial i\n          reduce k in 0..3 = k0*2 + k1\n"
      "          where k0*2 + k1 < 3\n          S[i] = sum(A[i])\n",
      { 0 },
      1e-6 },
    { "lanes of an i64 product whose factor is a sum: canonical, it is a sum of products",
      "kernel k(A: i64[4], B: i64[4, 3], out P: i64[4], out Q: i64[4])\n"
      "  for i in 0..4\n    for k in 0..3 vectorized\n      block p\n        spatial i\n"
      "        reduce k\n        P[i] = prod(A[i] + 1)\n"
      "  for i in 0..4\n    for k in 0..3 vectorized\n      block q\n        spatial i\n"
      "        reduce k\n        Q[i] = prod(A[i] + B[i, k])\n",
      { 0 },
      0 },
    { "lanes of a sum, and of a chain of `or`, whose parts get among each other",
      "kernel k(A: i64[4, 40], Z: i64[4, 40], P: bool[4, 40], Q: bool[4, 40], out M: i64[4], "
      "out N: bool[4], out O: bool[4])\n"
      "  for i in 0..4\n    for k in 0..40 vectorized\n      block m\n        spatial i\n"
      "        reduce k\n        M[i] = sum(A[i, k] + Z[i, k])\n"
      "  for i in 0..4\n    for k in 0..40 vectorized\n      block n\n        spatial i\n"
      "        reduce k\n        N[i] = any(not P[i, k] or Q[i, k])\n"
      "  for i in 0..4\n    for k in 0..40 vectorized\n      block o\n        spatial i\n"
      "        reduce k\n        O[i] = all(not P[i, k] and Q[i, k])\n",
      { 0 },
      0 },
    { "vectorized reduction, split with a predicate",
      "kernel k(A: f32[5, 100], out S: f32[5], out M: f32[5])\n"
      "  for i in 0..5 parallel\n    for k0 in 0..4\n      for k1 in 0..32 vectorized\n        "
      "block s\n"
      "          spatial i\n          reduce k in 0..100 = k0*32 + k1\n          where k0*32 + k1 "
      "< 100\n"
      "          S[i] = sum(A[i, k]*A[i, k])\n"
      "    for k0 in 0..4\n      for k1 in 0..32 vectorized\n        block m\n"
      "          spatial i\n          reduce k in 0..100 = k0*32 + k1\n          where k0*32 + k1 "
      "< 100\n"
      "          M[i] = min(A[i, k])\n",
      { 0 },
      1e-5 },
    { "vectorized reduction with unrolled rows",
      "kernel k(A: f32[8, 64], B: f32[64], out S: f32[8])\n"
      "  for i0 in 0..2 parallel\n    for i1 in 0..4 unrolled\n      block clear\n        spatial "
      "i in 0..8 = i0*4 + i1\n"
      "        S[i] = 0.5\n"
      "    for k0 in 0..4\n      for i1 in 0..4 unrolled\n        for k1 in 0..16 vectorized\n     "
      "     block s\n"
      "            spatial i in 0..8 = i0*4 + i1\n            reduce k in 0..64 = k0*16 + k1\n"
      "            S[i] sum= A[i, k]*B[k]\n",
      { 0 },
      1e-5 },
    { "lanes joined for rows that the guard leaves out",
      "kernel k(A: f32[5, 64], inout S: f32[5])\n"
      "  for i0 in 0..2 parallel\n    for i1 in 0..2048\n      for k in 0..64 vectorized\n"
      "        block s\n          spatial i in 0..5 = i0*2048 + i1\n          reduce k\n"
      "          where i0*2048 + i1 < 5\n          S[i] sum= A[i, k]\n",
      { 0 },
      1e-5 },
    { "top-level vectorized reduction",
      "kernel k(A: f32[300], out S: f32[])\n"
      "  for k0 in 0..10\n    for k1 in 0..30 vectorized\n      block s\n"
      "        reduce k in 0..300 = k0*30 + k1\n        S[] = sum(A[k])\n",
      { 0 },
      1e-5 },
    { "argmax and argmin, also vectorized",
      "kernel k(A: f32[6, 40], out V: f32[6], out I: i64[6], out W: f32[6], out J: i64[6])\n"
      "  for i in 0..6 vectorized\n    for k in 0..40\n      block a\n        spatial i\n        "
      "reduce k\n"
      "        V[i], I[i] = argmax(A[i, k], k)\n"
      "  for i in 0..6\n    for k in 0..40 vectorized\n      block b\n        spatial i\n        "
      "reduce k\n"
      "        W[i], J[i] = argmin(A[i, k], k)\n",
      { 0 },
      1e-6 },
    { "padding by select",
      "kernel k(A: f32[10], out B: f32[14])\n"
      "  for i in 0..14 vectorized\n    block b\n      spatial i\n"
      "      B[i] = select(2 <= i and i < 12, A[i - 2], -1.0)\n",
      { 0 },
      1e-6 },
    { "convolution with borders",
      "kernel k(X: f32[3, 9, 9], W: f32[4, 3, 3, 3], out Y: f32[4, 5, 5])\n"
      "  for o in 0..4 parallel\n    for h in 0..5\n      for w in 0..5\n        for c in 0..3\n   "
      "       for r in 0..3\n"
      "            for s in 0..3\n              block conv\n                spatial o, h, w\n      "
      "          reduce c, r, s\n"
      "                Y[o, h, w] = sum(select(0 <= h*2 + r - 1 and h*2 + r - 1 < 9 and 0 <= w*2 + "
      "s - 1 and "
      "w*2 + s - 1 < 9, X[c, h*2 + r - 1, w*2 + s - 1], 0.0)*W[o, c, r, s])\n",
      { 0 },
      1e-5 },
    { "vectorized convolution with borders",
      "kernel k(X: f32[3, 9, 20], W: f32[3, 3, 3], out Y: f32[7, 20])\n"
      "  for h in 0..7 parallel\n    for w0 in 0..2\n      for w1 in 0..16 vectorized\n        for "
      "c in 0..3\n"
      "          for r in 0..3 unrolled\n            for s in 0..3 unrolled\n              block "
      "conv\n"
      "                spatial h\n                spatial w in 0..20 = w0*16 + w1\n                "
      "reduce c, r, s\n"
      "                where w0*16 + w1 < 20\n"
      "                Y[h, w] = sum(select(1 <= w + s and w + s < 21, X[c, h + r, w + s - 1], "
      "0.0)*W[c, r, s])\n",
      { 0 },
      1e-5 },
    { "stride two and three",
      "kernel k(A: f32[100], out B: f32[32], out C: f32[32])\n"
      "  for i in 0..32 vectorized\n    block b\n      spatial i\n      B[i] = A[i*2 + 1]\n"
      "  for i in 0..32 vectorized\n    block c\n      spatial i\n      C[i] = A[i*3]\n",
      { 0 },
      1e-6 },
    { "transpose",
      "kernel k(A: f32[19, 23], out B: f32[23, 19])\n"
      "  for i in 0..23\n    for j in 0..19 vectorized\n      block t\n        spatial i, j\n"
      "        B[i, j] = A[j, i]\n"
      "  for i in 0..23 vectorized\n    for j in 0..19\n      block u\n        spatial i, j\n"
      "        B[i, j] = A[j, i] + 1.0\n",
      { 0 },
      1e-6 },
    { "division and remainder of lanes",
      "kernel k(A: f32[8, 12], out B: f32[96])\n"
      "  for i in 0..96 vectorized\n    block b\n      spatial i\n"
      "      B[i] = A[i % 8, i//8] + f32(i % 5)\n",
      { 0 },
      1e-6 },
    { "gather",
      "kernel k(T: f32[50, 8], I: i64[20], out B: f32[20, 8], out C: f32[20])\n"
      "  for i in 0..20\n    for j in 0..8 vectorized\n      block b\n        spatial i, j\n"
      "        B[i, j] = T[I[i], j]\n"
      "  for i in 0..20 vectorized\n    block c\n      spatial i\n      C[i] = T[I[i], 3]\n",
      { 0 },
      1e-6 },
    { "locals: stack, scratch, strides",
      "kernel k(A: f32[6, 33], out B: f32[6, 33])\n"
      "  alloc T: f32[6, 33]\n"
      "  for i in 0..6 parallel\n    for j in 0..33 vectorized\n      block t\n        spatial i, "
      "j\n"
      "        T[i, j] = A[i, j]*0.5\n"
      "  for i in 0..6 parallel\n    alloc S: f32[33] stack\n    alloc G: f32[33]\n"
      "    for j in 0..33\n      block s\n        spatial i, j\n        S[j] = T[5 - i, j]\n"
      "    for j in 0..33 vectorized\n      block g\n        spatial i, j\n        G[j] = S[32 - "
      "j]\n"
      "    for j in 0..33 vectorized\n      block o\n        spatial i, j\n        B[i, j] = G[j] "
      "+ A[i, j]\n",
      { 0 },
      1e-6 },
    { "an alloc inside lanes",
      "kernel k(A: f32[20, 4], out B: f32[20])\n"
      "  for i in 0..20 vectorized\n    alloc T: f32[4] stack\n"
      "    for j in 0..4\n      block t\n        spatial i, j\n        T[j] = A[i, j]*2.0\n"
      "    for j in 0..4\n      block s\n        spatial i\n        reduce j\n"
      "        B[i] = sum(T[j])\n",
      { 0 },
      1e-5 },
    { "dims",
      "kernel k(dim M in 1..40, dim N in 1..64, A: f32[M, N], out B: f32[M, N], out S: f32[M])\n"
      "  alloc T: f32[M, N]\n"
      "  for i0 in 0..(M + 3)//4 parallel\n    for i1 in 0..4\n      for j0 in 0..(N + 15)//16\n"
      "        for j1 in 0..16 vectorized\n          block t\n            spatial i in 0..M = i0*4 "
      "+ i1\n"
      "            spatial j in 0..N = j0*16 + j1\n            where i0*4 + i1 < M and j0*16 + j1 "
      "< N\n"
      "            T[i, j] = A[i, j] + 1.0\n"
      "  for i in 0..M parallel\n    for j in 0..N\n      block b\n        spatial i, j\n"
      "        B[i, j] = T[i, N - 1 - j]\n"
      "  for i in 0..M parallel\n    for j in 0..N\n      block s\n        spatial i\n        "
      "reduce j\n"
      "        S[i] = sum(T[i, j])\n",
      { 11, 37 },
      1e-5 },
    { "dims, small",
      "kernel k(dim M in 1..40, A: f32[M, 8], out B: f32[M, 8])\n"
      "  for i0 in 0..(M + 3)//4 parallel\n    for i1 in 0..4 unrolled\n      for j in 0..8 "
      "vectorized\n"
      "        block b\n          spatial i in 0..M = i0*4 + i1\n          spatial j\n"
      "          where i0*4 + i1 < M\n          B[i, j] = A[i, j]*3.0\n",
      { 3 },
      1e-6 },
    { "prepare",
      "kernel k(A: f32[8], const W: f32[8, 8], out B: f32[8])\n"
      "prepared P: f32[8, 8]\nprepare\n  for i in 0..8\n    for j in 0..8\n      block p\n"
      "        spatial i, j\n        P[i, j] = W[j, i]\n"
      "body\n  for j in 0..8 vectorized\n    for k in 0..8\n      block b\n        spatial j\n     "
      "   reduce k\n"
      "        B[j] = sum(A[k]*P[k, j])\n",
      { 0 },
      1e-5 },
    { "cumulative sum",
      "kernel k(A: f32[4, 20], out B: f32[4, 20])\n"
      "  for i in 0..4 vectorized\n    for j in 0..20\n      block c\n        spatial i\n        "
      "ordered j\n"
      "        B[i, j] = A[i, j] + select(0 < j, B[i, j - 1], 0.0)\n",
      { 0 },
      1e-5 },
    { "values are read before stores",
      "kernel k(A: f32[20], inout X: f32[20], inout Y: f32[20])\n"
      "  for i in 0..20 vectorized\n    block swap\n      spatial i\n"
      "      X[i] = Y[i] + A[i]\n      Y[i] = X[i]\n",
      { 0 },
      1e-6 },
    { "functions",
      "kernel k(A: f32[70], out B: f32[70, 12])\n"
      "  for i in 0..70 vectorized\n    block b\n      spatial i\n"
      "      B[i, 0] = exp(A[i])\n      B[i, 1] = tanh(A[i])\n      B[i, 2] = erf(A[i])\n"
      "      B[i, 3] = sqrt(abs(A[i]))\n      B[i, 4] = rsqrt(abs(A[i]) + 1.0)\n"
      "      B[i, 5] = log(abs(A[i]) + 0.1)\n      B[i, 6] = sigmoid(A[i])\n      B[i, 7] = "
      "floor(A[i])\n"
      "      B[i, 8] = ceil(A[i])\n      B[i, 9] = round(A[i]*4.0)\n      B[i, 10] = trunc(A[i])\n"
      "      B[i, 11] = select(isnan(A[i]) or isinf(A[i]), 1.0, 2.0)\n",
      { 0 },
      2e-6 },
    { "functions of f64",
      "kernel k(A: f64[30], out B: f64[30, 6])\n"
      "  for i in 0..30 vectorized\n    block b\n      spatial i\n"
      "      B[i, 0] = exp(A[i])\n      B[i, 1] = tanh(A[i])\n      B[i, 2] = erf(A[i])\n"
      "      B[i, 3] = log(abs(A[i]) + 0.1)\n      B[i, 4] = sigmoid(A[i])\n"
      "      B[i, 5] = floor(A[i])\n",
      { 0 },
      1e-14 },
    { "bool and comparisons",
      "kernel k(A: f32[40], B: f32[40], C: bool[40], out D: bool[40], out E: bool[40], out F: "
      "i32[40])\n"
      "  for i in 0..40 vectorized\n    block b\n      spatial i\n"
      "      D[i] = A[i] < B[i] and C[i]\n      E[i] = not C[i] or A[i] == B[i]\n"
      "      F[i] = i32(C[i]) + select(A[i] <= B[i], i32(5), i32(7))\n"
      "  for i in 0..40\n    block c\n      spatial i\n      D[i] = D[i] != C[i]\n",
      { 0 },
      0 },
    { "any and all",
      "kernel k(A: bool[4, 40], out L: bool[4], out N: bool[4])\n"
      "  for i in 0..4\n    for j in 0..40 vectorized\n      block l\n        spatial i\n        "
      "reduce j\n"
      "        L[i] = all(A[i, j])\n"
      "  for i in 0..4\n    for j in 0..40\n      block n\n        spatial i\n        reduce j\n"
      "        N[i] = any(A[i, j])\n",
      { 0 },
      0 },
    { "integer division",
      "kernel k(A: i32[50], B: i32[50], out Q: i32[50], out F: i32[50], out R: i32[50])\n"
      "  for i in 0..50 vectorized\n    block b\n      spatial i\n"
      "      Q[i] = A[i]/(abs(B[i]) + 1)\n      F[i] = A[i]//(abs(B[i]) + 1)\n      R[i] = A[i] % "
      "7\n"
      "  for i in 0..50\n    block c\n      spatial i\n      F[i] = F[i] + A[i]//8 + A[i] % 8 + "
      "A[i]/8\n",
      { 0 },
      0 },
    { "bits and shifts",
      "kernel k(A: u16[50], B: i8[50], out C: u16[50], out D: i8[50])\n"
      "  for i in 0..50 vectorized\n    block b\n      spatial i\n"
      "      C[i] = bitxor(bitand(shl(A[i], 3), 1023), bitor(shr(A[i], 2), 16))\n"
      "      D[i] = bitnot(shr(B[i], 1))\n",
      { 0 },
      0 },
    { "u8 to i32 dot by lanes",
      "kernel k(A: u8[64], B: i8[64, 16], out C: i32[16])\n"
      "  for j in 0..16 vectorized\n    for k in 0..64\n      block d\n        spatial j\n        "
      "reduce k\n"
      "        C[j] = sum(i32(A[k])*i32(B[k, j]))\n",
      { 0 },
      0 },
    { "zero iterations and one",
      "kernel k(A: f32[1, 5], out B: f32[1, 5])\n"
      "  for i in 0..1 parallel\n    for j in 0..5 unrolled\n      block b\n        spatial i, j\n"
      "        B[i, j] = A[i, j]\n",
      { 0 },
      0 },
    { "sort in both directions",
      "kernel k(X: f32[3, 33], out Y: f32[3, 33], out I: i64[3, 33], out Z: f32[33, 3], out J: "
      "i64[33, 3])\n"
      "  for i in 0..3 parallel\n    block s\n      spatial i\n"
      "      call sort_f32(read X[i, 0..33], write Y[i, 0..33], write I[i, 0..33], 1)\n"
      "  for i in 0..3\n    block t\n      spatial i\n"
      "      call sort_f32(read X[i, 0..33], write Z[0..33, i], write J[0..33, i], 0)\n",
      { 0 },
      0 },
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

/* Every dtype through a copy, an addition, a product, a maximum and casts, vectorized with a tail. */
static const char *dtype_text(tl_arena *arena, tl_dtype dtype)
{
    const char *t = tl_dtype_infos[dtype].text;
    return tl_arena_format(
        arena,
        "kernel k(A: %s[53], B: %s[53], out C: %s[53, 4], out D: f32[53], out E: i32[53], "
        "out F: u8[53], out G: bool[53], out H: f16[53], out P: bf16[53], out Q: f64[53])\n"
        "  for i in 0..53 vectorized\n    block b\n      spatial i\n"
        "      C[i, 0] = A[i] + B[i]\n      C[i, 1] = A[i]*B[i]\n      C[i, 2] = max(A[i], B[i])\n"
        "      C[i, 3] = min(A[i], B[i]) - A[i]\n"
        "      D[i] = f32(A[i])\n      E[i] = i32(A[i])\n      F[i] = u8(A[i])\n      G[i] = "
        "bool(A[i])\n"
        "      H[i] = f16(A[i])\n      P[i] = bf16(A[i])\n      Q[i] = f64(A[i])\n",
        t, t, t);
}

/* What is left of vectors: rows of n in registers, elements in known places apart, one store of three. */
static const char *rest_text(tl_arena *arena, tl_dtype dtype, int n)
{
    const char *t = tl_dtype_infos[dtype].text;
    return tl_arena_format(
        arena,
        "kernel k(A: %s[9, %d], W: %s[6, 9], X: %s[64], out C: %s[6, %d], out D: %s[%d, 3], "
        "out E: %s[%d])\n"
        "  alloc acc: %s[6, %d] register\n"
        "  for i in 0..6 unrolled\n    for j in 0..%d vectorized\n      block clear\n"
        "        spatial i, j\n        acc[i, j] = %s(0)\n"
        "  for k in 0..9\n    for i in 0..6 unrolled\n      for j in 0..%d vectorized\n"
        "        block product\n          spatial i, j\n          reduce k\n"
        "          acc[i, j] sum= W[i, k]*A[k, j]\n"
        "  for i in 0..6 unrolled\n    for j in 0..%d vectorized\n      block copy\n"
        "        spatial i, j\n        C[i, j] = acc[i, j]\n"
        "  for j in 0..%d vectorized\n    block apart\n      spatial j\n"
        "      D[j, 0] = X[j %% 2*32 + j//2]\n      D[j, 1] = X[j*4 + 1]\n"
        "      D[j, 2] = X[63 - j*2]\n      E[j] = X[j//3] + X[j*3]\n",
        t, n, t, t, t, n, t, n, t, n, t, n, n, t, n, n, n);
}

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

static int64_t elements_at(tl_arena *arena, const tl_program *program, const tl_buffer *b,
                           const int64_t *dims)
{
    tl_binding bindings[4];
    int64_t count = 1, extent;
    for (int d = 0; d < program->dim_count; d++)
        bindings[d] = (tl_binding){ program->dims[d], tl_int(arena, dims[d]) };
    for (int a = 0; a < b->rank; a++) {
        assert_true(
            tl_const_int(tl_substitute(arena, b->shape[a], bindings, program->dim_count), &extent));
        count *= extent;
    }
    return count;
}

static void fill(array *a, tl_random *random)
{
    static const double special[] = { 0,     -0.0,    INFINITY, -INFINITY, NAN,
                                      1e-41, 65519.9, 3e9,      -3e9,      0.5 };
    for (int64_t i = 0; i < a->count; i++) {
        tl_number v;
        if (tl_dtype_is_float(a->dtype))
            v.f = a->dtype != TL_F32 && tl_random_below(random, 8) == 0
                      ? special[tl_random_below(random, 10)]
                      : tl_random_normal(random) * 3;
        else if (a->dtype == TL_I64) /* often an index */
            v.i = tl_random_below(random, 50);
        else if (a->dtype == TL_BOOL)
            v.i = tl_random_below(random, 2);
        else
            v.i = (int64_t)tl_random_next(random) >> tl_random_below(random, 60);
        tl_number_store(a->dtype, a->start, (size_t)i, v);
    }
}

static bool close_enough(tl_dtype dtype, tl_number got, tl_number want, double tolerance)
{
    if (!tl_dtype_is_float(dtype))
        return got.i == want.i;
    if (isnan(want.f) || isinf(want.f) || tolerance == 0)
        return (isnan(want.f) && isnan(got.f)) || got.f == want.f;
    return fabs(got.f - want.f) <= tolerance * (1 + fabs(want.f));
}

/* The sign of every number by its bits, there and back; vectorized with a tail, and by one. */
static const struct {
    const char *number, *word, *sign;
} signs[] = {
    { "f16", "u16", "32768" },
    { "bf16", "i16", "-32768" },
    { "f32", "u32", "2147483648" },
    { "f64", "i64", "-9223372036854775808" },
};

static const char *bits_text(tl_arena *arena, size_t i)
{
    const char *f = signs[i].number, *w = signs[i].word, *s = signs[i].sign;
    return tl_arena_format(
        arena,
        "kernel k(A: %s[53], out C: %s[53], out D: %s[53], out E: %s[53, 2])\n"
        "  for i in 0..53 vectorized\n    block lanes\n      spatial i\n"
        "      C[i] = bits_%s(bitxor(bits_%s(A[i]), %s(%s)))\n"
        "      D[i] = bits_%s(A[i] + A[i])\n"
        "  for i in 0..53\n    block one\n      spatial i\n"
        "      E[i, 0] = bits_%s(A[i])\n      E[i, 1] = bits_%s(A[52 - i]*%s(3.0))\n",
        f, f, w, w, f, w, w, s, w, w, w, f);
}

/* Compiles for an ISA, runs, and compares with `want`. */
static void run_compiled(tl_arena *arena, const tl_program *program, const char *isa,
                         const program_case *c, array *arrays, void *const *want)
{
    tl_diag diag = { "" };
    tl_target target;
    compiled body, prepare;
    must(compiled_target(isa, &target, &diag), &diag, "target");
    must(compiled_make(arena, program, false, &target, &body, &diag), &diag, c->name);
    if (program->prepare != NULL)
        must(compiled_make(arena, program, true, &target, &prepare, &diag), &diag, c->name);
    int count = program->param_count + program->prepared_count;
    void *buffers[MAX_BUFFERS];
    for (int threads = 1; threads <= COMPILED_THREADS; threads += 2) {
        for (int i = 0; i < count; i++) {
            place(&arrays[i], threads == 1);
            memcpy(arrays[i].data, arrays[i].start,
                   (size_t)arrays[i].count * tl_dtype_size(arrays[i].dtype));
            buffers[i] = arrays[i].data;
        }
        if (program->prepare != NULL)
            compiled_run(&prepare, buffers, c->dims, threads);
        compiled_run(&body, buffers, c->dims, threads);
        for (int i = 0; i < program->param_count; i++)
            for (int64_t e = 0; e < arrays[i].count; e++) {
                tl_number got = tl_number_load(arrays[i].dtype, arrays[i].data, (size_t)e);
                tl_number right = tl_number_load(arrays[i].dtype, want[i], (size_t)e);
                if (!close_enough(arrays[i].dtype, got, right, c->tolerance))
                    fail_msg("%s on %s, %d threads: %s element %lld is %.17g (%lld), the "
                             "interpreter says %.17g (%lld)\n%s",
                             c->name, isa == NULL ? "this machine" : isa, threads,
                             program->params[i]->name, (long long)e, got.f, (long long)got.i,
                             right.f, (long long)right.i, c->text);
            }
    }
    compiled_free(&body);
    if (program->prepare != NULL)
        compiled_free(&prepare);
}

static void check_case(const program_case *c)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    array arrays[MAX_BUFFERS];
    tl_argument arguments[MAX_BUFFERS];
    void *want[MAX_BUFFERS];
    tl_random random = tl_random_make(7);
    must(tl_program_parse(arena, c->text, c->name, &program, &diag), &diag, c->name);
    must(tl_program_verify(program, &diag), &diag, c->name);
    int count = program->param_count + program->prepared_count;
    for (int i = 0; i < count; i++) {
        bool is_param = i < program->param_count;
        const tl_buffer *b =
            is_param ? program->params[i] : program->prepared[i - program->param_count];
        array *a = &arrays[i];
        *a = (array){ .dtype = b->dtype, .count = elements_at(arena, program, b, c->dims) };
        size_t size = (size_t)a->count * tl_dtype_size(b->dtype);
        a->start = malloc(size);
        want[i] = malloc(size);
        fill(a, &random);
        memcpy(want[i], a->start, size);
        arguments[i] = (tl_argument){ b, want[i] };
    }
    must(tl_interpret(program, arguments, program->param_count, c->dims, NULL, &diag), &diag,
         c->name);
    static const char *const isas[] = { NULL, "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64" };
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (isas[i] == NULL || compiled_runs_here(isas[i]))
            run_compiled(arena, program, isas[i], c, arrays, want);
    for (int i = 0; i < count; i++) {
        free(arrays[i].start);
        unplace(&arrays[i]);
        free(want[i]);
    }
    tl_arena_destroy(arena);
}

static void case_test(void **state)
{
    check_case(*state);
}

static void dtypes(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        if (d == TL_BOOL)
            continue;
        program_case c = { tl_dtype_infos[d].text,
                           dtype_text(arena, (tl_dtype)d),
                           { 0 },
                           d == TL_F32 || d == TL_F64 ? 1e-6 : 0 };
        check_case(&c);
    }
    tl_arena_destroy(arena);
}

static void bits(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        program_case c = { signs[i].number, bits_text(arena, i), { 0 }, 0 };
        check_case(&c);
    }
    tl_arena_destroy(arena);
}

static void rests(void **state)
{
    (void)state;
    static const tl_dtype dtypes_of_rests[] = { TL_F32, TL_F64, TL_I32, TL_I8, TL_U16 };
    for (size_t d = 0; d < sizeof dtypes_of_rests / sizeof dtypes_of_rests[0]; d++)
        for (int n = 1; n < 16; n++) {
            tl_arena *arena = tl_arena_create(0);
            tl_dtype dtype = dtypes_of_rests[d];
            program_case c = { tl_arena_format(arena, "%d of %s", n, tl_dtype_infos[dtype].text),
                               rest_text(arena, dtype, n),
                               { 0 },
                               dtype == TL_F32 ? 1e-5 : 1e-12 };
            check_case(&c);
            tl_arena_destroy(arena);
        }
}

int main(void)
{
    struct CMUnitTest tests[CASE_COUNT + 3];
    for (int i = 0; i < CASE_COUNT; i++)
        tests[i] = (struct CMUnitTest){ cases[i].name, case_test, NULL, NULL, (void *)&cases[i] };
    tests[CASE_COUNT] = (struct CMUnitTest)cmocka_unit_test(dtypes);
    tests[CASE_COUNT + 1] = (struct CMUnitTest)cmocka_unit_test(bits);
    tests[CASE_COUNT + 2] = (struct CMUnitTest)cmocka_unit_test(rests);
    return _cmocka_run_group_tests("codegen programs", tests, CASE_COUNT + 3, NULL, NULL);
}
