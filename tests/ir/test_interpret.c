/* tests/ir/test_interpret.c: what the interpreter refuses, sentence by sentence, and what it must let pass: tables of
 * small programs over arrays of 64 elements each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/ir/interpreted.h"

/* ---- programs that are refused ---- */

typedef struct {
    const char *name;
    tl_status status;
    const char *says[4]; /* parts of the sentence */
    const char *text;
} refusal;

static const refusal refusals[] = {
    { "bounds",
      TL_BAD_IR,
      { "X[9] is out of bounds", "extent 8", "block shift", "i = 7" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    block shift\n"
      "      spatial i\n"
      "      Y[i] = X[i + 2*(i//7)]\n" },
    { "bounds of a gather",
      TL_BAD_IR,
      { "X[5, 64] is out of bounds", "axis 1" },
      "kernel k(ids: i64[8], X: f32[8, 4], out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    block gather\n"
      "      spatial i\n"
      "      Y[i] = X[5, select(i == 3, 64, ids[i]//8)]\n" },
    { "bounds of a store",
      TL_BAD_IR,
      { "Y[-1] is out of bounds" },
      "kernel k(ids: i64[8], out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    block scatter\n"
      "      spatial i\n"
      "      Y[ids[i] - 1] = 1.0\n" },
    { "iter outside of its domain",
      TL_BAD_IR,
      { "iter j is 8, outside of its domain 0..8" },
      "kernel k(out Y: f32[16])\n"
      "  for i in 0..3\n"
      "    for i1 in 0..4\n"
      "      block fill\n"
      "        spatial j in 0..8 = i*4 + i1\n"
      "        Y[j] = 1.0\n" },
    { "uninitialised output",
      TL_BAD_IR,
      { "Y[0] is read before anything was written to it", "block add" },
      "kernel k(out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    block add\n"
      "      spatial i\n"
      "      Y[i] = Y[i] + 1.0\n" },
    { "uninitialised reduction",
      TL_BAD_IR,
      { "Y[] is read before anything was written to it" },
      "kernel k(X: f32[8], out Y: f32[])\n"
      "  for i in 0..8\n"
      "    block add\n"
      "      reduce i\n"
      "      Y[] sum= X[i]\n" },
    { "a fresh buffer is uninitialised each time",
      TL_BAD_IR,
      { "t[0] is read before anything was written to it", "i = 1" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    alloc t: f32[1] stack\n"
      "    block fill\n"
      "      spatial i\n"
      "      where i < 1\n"
      "      t[0] = X[i]\n"
      "    block use\n"
      "      spatial i\n"
      "      Y[i] = t[0]\n" },
    { "race of two writes",
      TL_BAD_IR,
      { "race on Y[0]", "block fill in iteration i = 0 writes it", "iteration i = 1", "parallel" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for i in 0..8 parallel\n"
      "    block fill\n"
      "      spatial i\n"
      "      Y[i//8] = X[i]\n" },
    { "race of a write and a read",
      TL_BAD_IR,
      { "race on T[3]", "block fill in iteration i = 3 writes it", "block use in iteration i = 4 ",
        "reads it" },
      "kernel k(X: f32[8], out T: f32[8], out Y: f32[8])\n"
      "  for i in 0..8 parallel\n"
      "    block fill\n"
      "      spatial i\n"
      "      T[i] = X[i]\n"
      "    block use\n"
      "      spatial i\n"
      "      Y[i] = T[select(i == 4, i - 1, i)]\n" },
    { "race of a read and a write",
      TL_BAD_IR,
      { "race on T[7]", "block use in iteration i = 0 reads it", "iteration i = 7", "writes it" },
      "kernel k(inout T: f32[8], out Y: f32[8])\n"
      "  for i in 0..8 parallel\n"
      "    block use\n"
      "      spatial i\n"
      "      Y[i] = T[7]\n"
      "    block fill\n"
      "      spatial i\n"
      "      T[i] = 1.0\n" },
    { "a read is remembered behind a later one",
      TL_BAD_IR,
      { "race on T[1]", "block use in iteration i = 0 reads it", "iteration i = 1" },
      "kernel k(inout T: f32[8], out Y: f32[8])\n"
      "  for i in 0..2 parallel\n"
      "    block use\n"
      "      spatial i\n"
      "      Y[i] = T[1]\n"
      "    block fill\n"
      "      spatial i\n"
      "      T[i] = 1.0\n" },
    { "race of lanes",
      TL_BAD_IR,
      { "race on T[1]", "vectorized" },
      "kernel k(inout T: f32[8])\n"
      "  for i in 0..4 vectorized\n"
      "    block shift\n"
      "      spatial i\n"
      "      T[i + 1] = T[i]\n" },
    { "race of lowered lanes",
      TL_BAD_IR,
      { "race on Y[]", "the store to Y", "vectorized" },
      "kernel k(X: f32[8], out Y: f32[])\n"
      "  for i in 0..8 vectorized\n"
      "    Y[] = X[i]\n" },
    { "race of a parallel reduction",
      TL_BAD_IR,
      { "race on Y[]", "parallel" },
      "kernel k(X: f32[8], out Y: f32[])\n"
      "  for i in 0..8 parallel\n"
      "    block add\n"
      "      reduce i\n"
      "      Y[] = sum(X[i])\n" },
    { "the result of a vectorized reduction is no lane's",
      TL_BAD_IR,
      { "race on S[]", "block use" },
      "kernel k(X: f32[8], out S: f32[], out Y: f32[8])\n"
      "  for i in 0..8 vectorized\n"
      "    block add\n"
      "      reduce i\n"
      "      S[] = sum(X[i])\n"
      "    block use\n"
      "      spatial i\n"
      "      Y[i] = S[]\n" },
    { "race of the outer of two parallel loops",
      TL_BAD_IR,
      { "race on Y[5]", "iteration i = 0 writes it", "iteration i = 1" },
      "kernel k(X: f32[8], out Y: f32[16])\n"
      "  for i in 0..2 parallel\n"
      "    for j in 0..8 parallel\n"
      "      block fill\n"
      "        spatial i, j\n"
      "        Y[select(j == 5, 5, i*8 + j)] = X[j]\n" },
    { "race of GPU blocks",
      TL_BAD_IR,
      { "race on Y[0]", "blockIdx.x" },
      "kernel k(out Y: f32[8])\n"
      "  for i in 0..8 blockIdx.x\n"
      "    for t in 0..1 threadIdx.x\n"
      "      block fill\n"
      "        spatial i, t\n"
      "        Y[t] = 1.0\n" },
    { "race of threads",
      TL_BAD_IR,
      { "race on s[1]", "threadIdx.x = 1 writes it", "threadIdx.x = 0", "reads it" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for b in 0..1 blockIdx.x\n"
      "    alloc s: f32[8] shared\n"
      "    for t in 0..8 threadIdx.x\n"
      "      block copy\n"
      "        spatial t\n"
      "        s[t] = X[t]\n"
      "    for t in 0..8 threadIdx.x\n"
      "      block use\n"
      "        spatial t\n"
      "        Y[t] = s[(t + 1) % 8]\n" },
    { "race across the back edge",
      TL_BAD_IR,
      { "race on s[", "threadIdx.x", "writes it" },
      "kernel k(X: f32[16], out Y: f32[16])\n"
      "  for b in 0..1 blockIdx.x\n"
      "    alloc s: f32[8] shared\n"
      "    for t in 0..8 threadIdx.x\n"
      "      for k in 0..2\n"
      "        block copy\n"
      "          spatial t, k\n"
      "          s[t] = X[k*8 + t]\n"
      "        barrier\n"
      "        block use\n"
      "          spatial t, k\n"
      "          Y[k*8 + t] = s[7 - t]\n" },
    { "divergent barrier by loop",
      TL_BAD_IR,
      { "divergent barrier", "t = 3", "t = 0", "ended without reaching it" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for b in 0..1 blockIdx.x\n"
      "    for t in 0..4 threadIdx.x\n"
      "      for k in 0..t//3\n"
      "        block copy\n"
      "          spatial t\n"
      "          Y[t] = X[t]\n"
      "        barrier\n" },
    { "divergent barrier by width",
      TL_BAD_IR,
      { "divergent barrier", "4 threads on threadIdx.x", "8" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for b in 0..1 blockIdx.x\n"
      "    for t in 0..4 threadIdx.x\n"
      "      barrier\n"
      "    for t in 0..8 threadIdx.x\n"
      "      block copy\n"
      "        spatial t\n"
      "        Y[t] = X[t]\n" },
    { "barrier in a parallel loop",
      TL_BAD_IR,
      { "barrier is inside the parallel loop i" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for i in 0..8 parallel\n"
      "    barrier\n"
      "    block copy\n"
      "      spatial i\n"
      "      Y[i] = X[i]\n" },
    { "shared buffer of a thread",
      TL_BAD_IR,
      { "shared buffer s", "thread loop t" },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for t in 0..8 threadIdx.x\n"
      "    alloc s: f32[8] shared\n"
      "    block copy\n"
      "      spatial t\n"
      "      s[t] = X[t]\n" },
    { "under-declared region",
      TL_BAD_IR,
      { "sort_f32", "region of operand Y has 6 elements, it needs 8", "block sort" },
      "kernel k(X: f32[8], out Y: f32[8], out I: i64[8])\n"
      "  block sort\n"
      "    call sort_f32(read X[0..8], write Y[0..6], write I[0..8], 0)\n" },
    { "region out of bounds",
      TL_BAD_IR,
      { "region 2..10 on axis 0 of X is out of bounds" },
      "kernel k(X: f32[8], out Y: f32[8], out I: i64[8])\n"
      "  for i in 0..8\n"
      "    block sort\n"
      "      spatial i\n"
      "      where 2 <= i\n"
      "      call sort_f32(read X[i..i + 8], write Y[0..8], write I[0..8], 0)\n" },
    { "region read before it is written",
      TL_BAD_IR,
      { "c[0, 0] is read before anything was written to it" },
      "kernel k(A: f32[16, 4], out Y: f32[4])\n"
      "  alloc a: f32[16, 8]\n"
      "  alloc b: f32[8, 8]\n"
      "  alloc c: f32[16, 8]\n"
      "  block mma\n"
      "    call mma_m16n8k8_f32(read c[0..16, 0..8], read a[0..16, 0..8], read b[0..8, 0..8],\n"
      "                         write c[0..16, 0..8])\n" },
    { "division by zero",
      TL_BAD_IR,
      { "divided by zero" },
      "kernel k(X: i64[8], out Y: i64[8])\n"
      "  for i in 0..8\n"
      "    block divide\n"
      "      spatial i\n"
      "      Y[i] = X[i]//X[i]\n" },
    { "budget",
      TL_BUDGET,
      { "more statement instances than allowed" },
      "kernel k(out Y: f32[8])\n"
      "  for i in 0..1000000\n"
      "    for j in 0..1000000\n"
      "      block fill\n"
      "        spatial i, j\n"
      "        where i < 8\n"
      "        Y[0] = 1.0\n" },
};

static void refused(void **state)
{
    const refusal *c = *state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, c->text);
    tl_interpret_options options = { .check = true, .max_instances = 100000 };
    tl_status status = run(&f, NULL, &options, &diag);
    if (status != c->status)
        fail_msg("status %s (%s) instead of %s", tl_status_text(status), diag.text,
                 tl_status_text(c->status));
    for (int i = 0; i < 4 && c->says[i] != NULL; i++)
        if (strstr(diag.text, c->says[i]) == NULL)
            fail_msg("it says: %s\nwithout: %s", diag.text, c->says[i]);
    assert_non_null(strstr(diag.text, "in kernel k"));
    tl_arena_destroy(f.arena);
}

/* ---- programs that run: the last parameter is compared ---- */

typedef struct {
    const char *name;
    int count;
    double expected[8];
    const char *text;
} result;

static const result results[] = {
    { "integers wrap",
      4,
      { 250, 255, 4, 9 },
      "kernel k(X: u8[8], out Y: u8[8])\n"
      "  for i in 0..4\n"
      "    block wrap\n"
      "      spatial i\n"
      "      Y[i] = X[i]*u8(5) + u8(250)\n" },
    { "signed integers wrap",
      3,
      { 127, -127, -125 },
      "kernel k(X: i8[8], out Y: i8[8])\n"
      "  for i in 0..3\n"
      "    block wrap\n"
      "      spatial i\n"
      "      Y[i] = X[i]*i8(2) + i8(127)\n" },
    { "floor and truncation",
      6,
      { -2, 1, -1, 2, -1, 0 },
      "kernel k(X: i32[8], out Y: i32[8])\n"
      "  block divide\n"
      "    Y[0] = (X[1] - i32(4))//i32(2)\n"
      "    Y[1] = (X[1] - i32(4)) % i32(2)\n"
      "    Y[2] = (X[1] - i32(4))/i32(2)\n"
      "    Y[3] = (X[1] - i32(2)) % i32(3)\n"
      "    Y[4] = (X[1] - i32(2))//i32(3)\n"
      "    Y[5] = (X[1] - i32(2))/i32(3)\n" },
    { "f32 rounds",
      1,
      { 16777216 },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  block add\n"
      "    Y[0] = (X[1] + 16777215.0) + X[1]\n" },
    { "f16 and bf16 round after each operation",
      3,
      { 2048, 2052, 256 },
      "kernel k(X: f16[8], Z: bf16[8], out Y: f64[8])\n"
      "  block add\n"
      "    Y[0] = f64(X[1] + f16(2048.0))\n"
      "    Y[1] = f64(X[3] + f16(2048.0))\n"
      "    Y[2] = f64(Z[1] + bf16(256.0))\n" },
    { "casts saturate",
      4,
      { 255, 0, 3, 0 },
      "kernel k(X: f32[8], out Y: u8[8])\n"
      "  block cast\n"
      "    Y[0] = u8(X[7]*1000.0)\n"
      "    Y[1] = u8(X[7]*-1000.0)\n"
      "    Y[2] = u8(X[3] + 0.75)\n"
      "    Y[3] = u8(nan*X[1])\n" },
    { "bits are read as another dtype",
      6,
      { 1065353216, -1073741824, 3, 16256, 0.0078125, 1 },
      "kernel k(X: f32[8], H: f16[8], out Y: f64[8])\n"
      "  block bits\n"
      "    Y[0] = f64(bits_i32(X[1]))\n"
      "    Y[1] = f64(bits_i32(X[2]*-1.0))\n"
      "    Y[2] = f64(bits_f32(bits_u32(X[3])))\n"
      "    Y[3] = f64(bits_u16(bf16(H[1])))\n"
      "    Y[4] = f64(bits_bf16(H[1]))\n"
      "    Y[5] = f64(bits_f64(bits_i64(f64(H[1])) + 0))\n" },
    { "select is lazy",
      3,
      { 0, 0, 1 },
      "kernel k(X: f32[2], out Y: f32[3])\n"
      "  for i in 0..3\n"
      "    block pad\n"
      "      spatial i\n"
      "      Y[i] = select(1 <= i, X[i - 1], 0.0)\n" },
    { "stores see the values from before",
      2,
      { 1, 0 },
      "kernel k(inout Y: f32[2])\n"
      "  block swap\n"
      "    Y[0] = Y[1]\n"
      "    Y[1] = Y[0]\n" },
    { "minimum of a NaN",
      2,
      { 1, 1 },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  block least\n"
      "    Y[0] = select(isnan(min(X[1], X[1]*nan)), 1.0, 0.0)\n"
      "    Y[1] = select(isnan(max(X[1]*nan, X[1])), 1.0, 0.0)\n" },
    { "reductions start at their init",
      3,
      { 28, 128, 7 },
      "kernel k(X: f32[8], out Y: f32[3])\n"
      "  for i in 0..8\n"
      "    block total\n"
      "      reduce i\n"
      "      Y[0] = sum(X[i])\n"
      "  for i in 0..8\n"
      "    block total_from\n"
      "      reduce i\n"
      "      Y[1] = sum(X[i]) from 100.0\n"
      "  for i in 0..8\n"
      "    block largest\n"
      "      reduce i\n"
      "      Y[2] = max(X[i])\n" },
    { "shifts and bits",
      5,
      { 48, 0, 3, 5, 252 },
      "kernel k(X: u8[8], out Y: u8[5])\n"
      "  block bits\n"
      "    Y[0] = shl(X[3], u8(4))\n"
      "    Y[1] = shl(X[3], u8(8))\n"
      "    Y[2] = bitand(X[7], X[3])\n"
      "    Y[3] = bitxor(X[6], X[3])\n"
      "    Y[4] = bitnot(X[3])\n" },
    { "lanes of a reduction combine",
      1,
      { 28 },
      "kernel k(X: f32[8], out Y: f32[1])\n"
      "  for i in 0..8 vectorized\n"
      "    block total\n"
      "      reduce i\n"
      "      Y[0] = sum(X[i])\n" },
    { "the test of a lane reads what the lane writes",
      4,
      { 2, 3, 4, 5 },
      "kernel k(X: f32[8], out Y: f32[4])\n"
      "  for i in 0..4\n"
      "    Y[i] = 2.0\n"
      "  for i in 0..4 vectorized\n"
      "    if Y[i] < X[i + 2]\n"
      "      Y[i] = X[i + 2]\n" },
    { "parallel loops one after the other",
      8,
      { 7, 6, 5, 4, 3, 2, 1, 0 },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  alloc t: f32[8]\n"
      "  for r in 0..2\n"
      "    for i in 0..8 parallel\n"
      "      block copy\n"
      "        spatial i\n"
      "        t[i] = X[i]\n"
      "    for i in 0..8 parallel\n"
      "      block turn\n"
      "        spatial i\n"
      "        Y[i] = t[7 - i]\n" },
    { "threads meet at barriers",
      8,
      { 7, 6, 5, 4, 3, 2, 1, 0 },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for b in 0..2 blockIdx.x\n"
      "    alloc s: f32[4] shared\n"
      "    for t in 0..4 threadIdx.x\n"
      "      alloc mine: f32[1] register\n"
      "      block load\n"
      "        spatial b, t\n"
      "        mine[0] = X[4 - b*4 + t]\n"
      "      block share\n"
      "        spatial t\n"
      "        s[t] = mine[0]\n"
      "      barrier\n"
      "      block turn\n"
      "        spatial b, t\n"
      "        Y[b*4 + t] = s[3 - t]\n" },
    { "a thread loop inside one of its axis is the same thread",
      4,
      { 3, 2, 1, 0 },
      "kernel k(X: f32[8], out Y: f32[4])\n"
      "  for b in 0..1 blockIdx.x\n"
      "    alloc s: f32[4] shared\n"
      "    for t in 0..4 threadIdx.x\n"
      "      for u in 0..4 threadIdx.x\n"
      "        block share\n"
      "          spatial u\n"
      "          s[u] = X[u]\n"
      "      barrier\n"
      "      block turn\n"
      "        spatial t\n"
      "        Y[t] = s[3 - t]\n" },
    { "sorting leaves equal elements in order and NaN last",
      6,
      { 3, 1, 4, 0, 5, 2 },
      "kernel k(X: f32[8], out Z: f32[6], out Y: i64[6])\n"
      "  alloc v: f32[6]\n"
      "  block values\n"
      "    v[0] = 2.0\n"
      "    v[1] = 1.0\n"
      "    v[2] = nan\n"
      "    v[3] = -inf\n"
      "    v[4] = 1.0\n"
      "    v[5] = X[2]\n"
      "  block sort\n"
      "    call sort_f32(read v[0..6], write Z[0..6], write Y[0..6], 0)\n" },
    { "lowered statements",
      8,
      { 7, 100, 5, 100, 3, 100, 1, 100 },
      "kernel k(X: f32[8], out Z: f32[8], out I: i64[8], out Y: f32[8])\n"
      "  call sort_f32(read X[0..8], write Z[0..8], write I[0..8], 1)\n"
      "  for i in 0..8\n"
      "    if i % 2 == 0\n"
      "      Y[i] = Z[i]\n"
      "    else\n"
      "      Y[i] = 100.0\n" },
    { "lanes of a lowered reduction combine",
      1,
      { 128 },
      "kernel k(X: f32[8], out Y: f32[1])\n"
      "  Y[0] = 100.0\n"
      "  for i in 0..8 vectorized\n"
      "    Y[0] = Y[0] + X[i]\n" },
    { "a prefetch may lie outside",
      8,
      { 0, 1, 2, 3, 4, 5, 6, 7 },
      "kernel k(X: f32[8], out Y: f32[8])\n"
      "  for i in 0..8\n"
      "    prefetch X[i + 100] to L1\n"
      "    block copy\n"
      "      spatial i\n"
      "      Y[i] = X[i]\n" },
    { "no iteration at all",
      2,
      { 0, 1 },
      "kernel k(X: f32[0, 4], inout Y: f32[2])\n"
      "  for i in 0..0 parallel\n"
      "    for j in 0..4\n"
      "      block copy\n"
      "        spatial i, j\n"
      "        Y[0] = X[i, j]\n" },
};

static void computed(void **state)
{
    const result *c = *state;
    for (int checked = 0; checked < 2; checked++) {
        fixture f;
        tl_diag diag = { "" };
        start(&f, c->text);
        if (run(&f, NULL, &(tl_interpret_options){ .check = checked }, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        int last = f.program->param_count - 1;
        tl_dtype dtype = f.program->params[last]->dtype;
        for (int i = 0; i < c->count; i++) {
            tl_number value = tl_number_load(dtype, f.data[last], (size_t)i);
            double got = tl_dtype_is_float(dtype) ? value.f : (double)value.i;
            if (got != c->expected[i])
                fail_msg("element %d is %g, not %g", i, got, c->expected[i]);
        }
        tl_arena_destroy(f.arena);
    }
}

/* ---- arguments ---- */

static void bad_arguments(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, "kernel k(dim N in 1..8, X: f32[N], out Y: f32[N])\n"
              "  for i in 0..N\n"
              "    block copy\n"
              "      spatial i\n"
              "      Y[i] = X[i]\n");
    assert_int_equal(run(&f, (int64_t[]){ 8 }, NULL, &diag), TL_OK);
    assert_int_equal(run(&f, (int64_t[]){ 9 }, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "dim N is 9, outside of its range 1..8"));
    f.program->param_count = 2;
    assert_int_equal(tl_interpret(f.program, f.arguments, 1, (int64_t[]){ 8 }, NULL, &diag),
                     TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "no argument for its parameter Y"));
    tl_arena_destroy(f.arena);
}

/* Plain mode checks less, but never leaves a buffer. */
static void plain_stays_inside(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, "kernel k(ids: i64[8], X: f32[4, 4], out Y: f32[8])\n"
              "  for i in 0..8\n"
              "    block gather\n"
              "      spatial i\n"
              "      Y[i] = X[ids[i], 3]\n");
    assert_int_equal(run(&f, NULL, &(tl_interpret_options){ .check = false }, &diag), TL_BAD_IR);
    assert_non_null(strstr(diag.text, "X[4, 3] is out of bounds: axis 0 has extent 4"));
    tl_arena_destroy(f.arena);
}

/* A weight may lie in its mapped file, at any address. */
static void given_at_any_address(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, "kernel k(I: i64[2], X: f32[2], out J: i64[2], out Y: f32[2])\n"
              "  for i in 0..2\n"
              "    block copy\n"
              "      spatial i\n"
              "      J[i] = I[i]\n"
              "      Y[i] = X[i]\n");
    char bytes[4][2 * sizeof(int64_t) + 1] = { { 0 } };
    memcpy(bytes[0] + 1, (int64_t[]){ 3, -4 }, 2 * sizeof(int64_t));
    memcpy(bytes[1] + 1, (float[]){ 0.5F, 7 }, 2 * sizeof(float));
    for (int i = 0; i < 4; i++)
        f.arguments[i].data = bytes[i] + 1;
    assert_int_equal(run(&f, NULL, NULL, &diag), TL_OK);
    assert_memory_equal(bytes[2] + 1, bytes[0] + 1, 2 * sizeof(int64_t));
    assert_memory_equal(bytes[3] + 1, bytes[1] + 1, 2 * sizeof(float));
    tl_arena_destroy(f.arena);
}

static void given_prepared(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, "kernel k(const B: f32[4], out Y: f32[4])\n"
              "prepared P: f32[4]\n"
              "prepare\n"
              "  for i in 0..4\n"
              "    block pack\n"
              "      spatial i\n"
              "      P[i] = B[3 - i]\n"
              "body\n"
              "  for i in 0..4\n"
              "    block copy\n"
              "      spatial i\n"
              "      Y[i] = P[i]\n");
    float prepared[4] = { 5, 6, 7, 8 };
    const float *y = (const float *)(const void *)f.data[1];
    assert_int_equal(run(&f, NULL, NULL, &diag), TL_OK);
    assert_true(y[0] == 3 && y[3] == 0);

    tl_interpret_options options = { .check = true, .skip_prepare = true };
    f.arguments[2] = (tl_argument){ f.program->prepared[0], prepared };
    assert_int_equal(tl_interpret(f.program, f.arguments, 3, NULL, &options, &diag), TL_OK);
    assert_true(y[0] == 5 && y[3] == 8);
    tl_arena_destroy(f.arena);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

int main(void)
{
    enum { OTHERS = 4 };
    const size_t count = COUNT(refusals) + COUNT(results) + OTHERS;
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    if (tests == NULL)
        return 1;
    size_t at = 0;
    for (size_t i = 0; i < COUNT(refusals); i++)
        tests[at++] =
            (struct CMUnitTest){ refusals[i].name, refused, NULL, NULL, (void *)&refusals[i] };
    for (size_t i = 0; i < COUNT(results); i++)
        tests[at++] =
            (struct CMUnitTest){ results[i].name, computed, NULL, NULL, (void *)&results[i] };
    tests[at++] = (struct CMUnitTest)cmocka_unit_test(bad_arguments);
    tests[at++] = (struct CMUnitTest)cmocka_unit_test(plain_stays_inside);
    tests[at++] = (struct CMUnitTest)cmocka_unit_test(given_at_any_address);
    tests[at++] = (struct CMUnitTest)cmocka_unit_test(given_prepared);
    int failed = _cmocka_run_group_tests("interpreter", tests, count, NULL, NULL);
    free(tests);
    return failed;
}
