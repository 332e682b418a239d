/* tests/schedule/test_moves.c: the primitives that move blocks leave the interpreted result as it was: whole kernels
 * scheduled the way default schedules do it, under full checking, and random moves in a chain of stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "schedule/schedule.h"
#include "schedule/trace.h"

#define GEMM                                                                                     \
    "kernel gemm(A: f32[13, 7], const B: f32[7, 20], const bias: f32[20], out C: f32[13, 20])\n" \
    "  alloc acc: f32[13, 20]\n"                                                                 \
    "  for i in 0..13\n"                                                                         \
    "    for j in 0..20\n"                                                                       \
    "      for k in 0..7\n"                                                                      \
    "        block gemm\n"                                                                       \
    "          spatial i, j\n"                                                                   \
    "          reduce k\n"                                                                       \
    "          acc[i, j] = sum(A[i, k]*B[k, j])\n"                                               \
    "  alloc biased: f32[13, 20]\n"                                                              \
    "  for i in 0..13\n"                                                                         \
    "    for j in 0..20\n"                                                                       \
    "      block add\n"                                                                          \
    "        spatial i, j\n"                                                                     \
    "        biased[i, j] = acc[i, j] + bias[j]\n"                                               \
    "  for i in 0..13\n"                                                                         \
    "    for j in 0..20\n"                                                                       \
    "      block relu\n"                                                                         \
    "        spatial i, j\n"                                                                     \
    "        C[i, j] = max(biased[i, j], 0.0)\n"

#define GEMM_DIM                                                                          \
    "kernel gemm(dim M in 1..40, A: f32[M, 7], const B: f32[7, 20], out C: f32[M, 20])\n" \
    "  alloc acc: f32[M, 20]\n"                                                           \
    "  for i in 0..M\n"                                                                   \
    "    for j in 0..20\n"                                                                \
    "      for k in 0..7\n"                                                               \
    "        block gemm\n"                                                                \
    "          spatial i, j\n"                                                            \
    "          reduce k\n"                                                                \
    "          acc[i, j] = sum(A[i, k]*B[k, j])\n"                                        \
    "  for i in 0..M\n"                                                                   \
    "    for j in 0..20\n"                                                                \
    "      block relu\n"                                                                  \
    "        spatial i, j\n"                                                              \
    "        C[i, j] = max(acc[i, j], 0.0)\n"

/* A convolution in blocks of 4 channels, padded by 1, with bias, residual and ReLU; stride 1 and 2. */
#define CONV(stride, size, outs)                                                                   \
    "kernel conv(X: f32[2, " size ", " size                                                        \
    ", 4], const W: f32[8, 8, 3, 3], const bias: f32[8],\n"                                        \
    "            R: f32[2, " outs ", " outs ", 4], out Y: f32[2, " outs ", " outs ", 4])\n"        \
    "  alloc P: f32[8, " size " + 2, " size " + 2]\n"                                              \
    "  for c in 0..8\n"                                                                            \
    "    for h in 0.." size " + 2\n"                                                               \
    "      for w in 0.." size " + 2\n"                                                             \
    "        block pad\n"                                                                          \
    "          spatial c, h, w\n"                                                                  \
    "          P[c, h, w] = select(h >= 1 and h < " size " + 1 and w >= 1 and w < " size " + 1,\n" \
    "                              X[c//4, h - 1, w - 1, c%4], 0.0)\n"                             \
    "  alloc acc: f32[2, " outs ", " outs ", 4]\n"                                                 \
    "  for co in 0..2\n"                                                                           \
    "    for h in 0.." outs "\n"                                                                   \
    "      for w in 0.." outs "\n"                                                                 \
    "        for ci in 0..4\n"                                                                     \
    "          for k in 0..8\n"                                                                    \
    "            for kh in 0..3\n"                                                                 \
    "              for kw in 0..3\n"                                                               \
    "                block conv\n"                                                                 \
    "                  spatial co, h, w, ci\n"                                                     \
    "                  reduce k, kh, kw\n"                                                         \
    "                  acc[co, h, w, ci] = sum(P[k, h*" stride " + kh, w*" stride                  \
    " + kw]*W[co*4 + ci, k, kh, kw])\n"                                                            \
    "  alloc B: f32[2, " outs ", " outs ", 4]\n"                                                   \
    "  for co in 0..2\n"                                                                           \
    "    for h in 0.." outs "\n"                                                                   \
    "      for w in 0.." outs "\n"                                                                 \
    "        for ci in 0..4\n"                                                                     \
    "          block add_bias\n"                                                                   \
    "            spatial co, h, w, ci\n"                                                           \
    "            B[co, h, w, ci] = acc[co, h, w, ci] + bias[co*4 + ci]\n"                          \
    "  for co in 0..2\n"                                                                           \
    "    for h in 0.." outs "\n"                                                                   \
    "      for w in 0.." outs "\n"                                                                 \
    "        for ci in 0..4\n"                                                                     \
    "          block relu\n"                                                                       \
    "            spatial co, h, w, ci\n"                                                           \
    "            Y[co, h, w, ci] = max(B[co, h, w, ci] + R[co, h, w, ci], 0.0)\n"

#define CONV_TRACE                                                     \
    "compute_inline(pad)\n"                                            \
    "compute_inline(add_bias)\n"                                       \
    "co, h, w, ci = loops(relu)\n"                                     \
    "w0, w1 = split(w, [_, 3])\n"                                      \
    "compute_at(conv, w0)\n"                                           \
    "set_scope(acc, register)\n"                                       \
    "_, _, _, aco, ah, aw, aci, k, kh, kw = loops(conv)\n"             \
    "reorder(k, kh, kw, aw, aci)\n"                                    \
    "unroll(aw)\n"                                                     \
    "vectorize(aci)\n"                                                 \
    "init = decompose_reduction(conv, k)\n"                            \
    "vectorize(ci)\n"                                                  \
    "transform_layout(W, (o, i, h, w) -> (o//4, i, h, w, o%4))\n"      \
    "transform_layout(W_packed, (a, i, h, w, b) -> (a, h, w, i, b))\n" \
    "loop_partition(w0)\n"                                             \
    "parallel(fuse(co, h))\n"

#define SOFTMAX                                          \
    "kernel softmax(X: f32[6, 19], out Y: f32[6, 19])\n" \
    "  alloc top: f32[6]\n"                              \
    "  for i in 0..6\n"                                  \
    "    for k in 0..19\n"                               \
    "      block row_max\n"                              \
    "        spatial i\n"                                \
    "        reduce k\n"                                 \
    "        top[i] = max(X[i, k])\n"                    \
    "  alloc e: f32[6, 19]\n"                            \
    "  for i in 0..6\n"                                  \
    "    for k in 0..19\n"                               \
    "      block exponential\n"                          \
    "        spatial i, k\n"                             \
    "        e[i, k] = exp(X[i, k] - top[i])\n"          \
    "  alloc total: f32[6]\n"                            \
    "  for i in 0..6\n"                                  \
    "    for k in 0..19\n"                               \
    "      block row_sum\n"                              \
    "        spatial i\n"                                \
    "        reduce k\n"                                 \
    "        total[i] = sum(e[i, k])\n"                  \
    "  for i in 0..6\n"                                  \
    "    for k in 0..19\n"                               \
    "      block divide\n"                               \
    "        spatial i, k\n"                             \
    "        Y[i, k] = e[i, k]/total[i]\n"

#define STENCIL                                     \
    "kernel stencil(X: f32[27], out Y: f32[23])\n"  \
    "  alloc T: f32[25]\n"                          \
    "  for i in 0..25\n"                            \
    "    block first\n"                             \
    "      spatial i\n"                             \
    "      T[i] = X[i] + X[i + 1]*2.0 + X[i + 2]\n" \
    "  for i in 0..23\n"                            \
    "    block second\n"                            \
    "      spatial i\n"                             \
    "      Y[i] = T[i] - T[i + 1] + T[i + 2]*3.0\n"

#define BLUR                                           \
    "kernel blur(X: f32[11, 14], out Y: f32[9, 12])\n" \
    "  alloc H: f32[11, 12]\n"                         \
    "  for h in 0..11\n"                               \
    "    for w in 0..12\n"                             \
    "      for k in 0..3\n"                            \
    "        block across\n"                           \
    "          spatial h, w\n"                         \
    "          reduce k\n"                             \
    "          H[h, w] = sum(X[h, w + k])\n"           \
    "  alloc D: f32[11, 12]\n"                         \
    "  for h in 0..11\n"                               \
    "    for w in 0..12\n"                             \
    "      block doubled\n"                            \
    "        spatial h, w\n"                           \
    "        D[h, w] = H[h, w]*2.0\n"                  \
    "  alloc V: f32[9, 12]\n"                          \
    "  for h in 0..9\n"                                \
    "    for w in 0..12\n"                             \
    "      for k in 0..3\n"                            \
    "        block down\n"                             \
    "          spatial h, w\n"                         \
    "          reduce k\n"                             \
    "          V[h, w] = sum(D[h + k, w])\n"           \
    "  for h in 0..9\n"                                \
    "    for w in 0..12\n"                             \
    "      block out\n"                                \
    "        spatial h, w\n"                           \
    "        Y[h, w] = V[h, w] + H[h + 1, w]\n"

#define ATTENTION                                                                      \
    "kernel attention(Q: f32[10, 4], K: f32[9, 4], V: f32[9, 5], out Y: f32[10, 5])\n" \
    "  alloc S: f32[10, 9]\n"                                                          \
    "  for i in 0..10\n"                                                               \
    "    for j in 0..9\n"                                                              \
    "      for d in 0..4\n"                                                            \
    "        block score\n"                                                            \
    "          spatial i, j\n"                                                         \
    "          reduce d\n"                                                             \
    "          S[i, j] = sum(Q[i, d]*K[j, d])\n"                                       \
    "  alloc top: f32[10]\n"                                                           \
    "  for i in 0..10\n"                                                               \
    "    for j in 0..9\n"                                                              \
    "      block row_max\n"                                                            \
    "        spatial i\n"                                                              \
    "        reduce j\n"                                                               \
    "        top[i] = max(S[i, j])\n"                                                  \
    "  alloc E: f32[10, 9]\n"                                                          \
    "  for i in 0..10\n"                                                               \
    "    for j in 0..9\n"                                                              \
    "      block exponential\n"                                                        \
    "        spatial i, j\n"                                                           \
    "        E[i, j] = exp(S[i, j] - top[i])\n"                                        \
    "  alloc total: f32[10]\n"                                                         \
    "  for i in 0..10\n"                                                               \
    "    for j in 0..9\n"                                                              \
    "      block row_sum\n"                                                            \
    "        spatial i\n"                                                              \
    "        reduce j\n"                                                               \
    "        total[i] = sum(E[i, j])\n"                                                \
    "  alloc O: f32[10, 5]\n"                                                          \
    "  for i in 0..10\n"                                                               \
    "    for v in 0..5\n"                                                              \
    "      for j in 0..9\n"                                                            \
    "        block weigh\n"                                                            \
    "          spatial i, v\n"                                                         \
    "          reduce j\n"                                                             \
    "          O[i, v] = sum(E[i, j]*V[j, v])\n"                                       \
    "  for i in 0..10\n"                                                               \
    "    for v in 0..5\n"                                                              \
    "      block divide\n"                                                             \
    "        spatial i, v\n"                                                           \
    "        Y[i, v] = O[i, v]/total[i]\n"

typedef struct {
    const char *name, *kernel, *trace;
    int64_t dim; /* value of the one dim, 0: none */
} move_case;

static const move_case cases[] = {
    { "gemm, tile in registers, tails", GEMM,
      "compute_inline(add)\n"
      "i, j = loops(relu)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "j0, j1 = split(j, [_, 8])\n"
      "reorder(i0, j0, i1, j1)\n"
      "compute_at(gemm, j0)\n"
      "set_scope(acc, register)\n"
      "_, _, ai, aj, k = loops(gemm)\n"
      "reorder(k, ai, aj)\n"
      "unroll(ai)\n"
      "vectorize(aj)\n"
      "decompose_reduction(gemm, k)\n"
      "vectorize(j1)\n"
      "transform_layout(B, (k, j) -> (j//8, k, j%8))\n"
      "parallel(fuse(i0, j0))\n",
      0 },
    { "gemm, tiles partitioned", GEMM,
      "compute_inline(add)\n"
      "i, j = loops(relu)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "j0, j1 = split(j, [_, 8])\n"
      "reorder(i0, j0, i1, j1)\n"
      "compute_at(gemm, j0)\n"
      "_, _, ai, aj, k = loops(gemm)\n"
      "reorder(k, ai, aj)\n"
      "decompose_reduction(gemm, k)\n"
      "loop_partition(j0)\n"
      "loop_partition(i0)\n",
      0 },
    { "gemm, epilogue moved under the tile", GEMM,
      "i, j, k = loops(gemm)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "j0, j1 = split(j, [_, 5])\n"
      "reorder(i0, j0, k, i1, j1)\n"
      "reverse_compute_at(add, j0)\n"
      "reverse_compute_at(relu, j0)\n"
      "decompose_reduction(gemm, k)\n"
      "parallel(i0)\n",
      0 },
    { "gemm, epilogue under a fused parallel loop", GEMM,
      "i, j, k = loops(gemm)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "j0, j1 = split(j, [_, 5])\n"
      "reorder(i0, j0, k, i1, j1)\n"
      "f = fuse(i0, j0)\n"
      "reverse_compute_at(add, f)\n"
      "reverse_compute_at(relu, f)\n"
      "parallel(f)\n",
      0 },
    { "gemm, panels cached", GEMM,
      "i, j = loops(relu)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "compute_at(add, i0)\n"
      "compute_at(gemm, i0)\n"
      "panel = cache_read(gemm, A, stack)\n"
      "compute_at(panel, i0)\n"
      "b = cache_read(gemm, B, global)\n"
      "parallel(i0)\n",
      0 },
    { "gemm, result cached", GEMM,
      "c = cache_write(relu, stack)\n"
      "i, j = loops(c)\n"
      "i0, i1 = split(i, [_, 3])\n"
      "compute_at(relu, i0)\n"
      "compute_at(add, i0)\n"
      "compute_at(gemm, i0)\n"
      "parallel(i0)\n",
      0 },
    { "gemm, accumulator cached and transformed", GEMM,
      "c = cache_write(gemm, stack)\n"
      "i, j = loops(c)\n"
      "compute_at(gemm, i)\n"
      "transform_layout(acc_local, (i, j) -> (j//8, i, j%8))\n"
      "transform_layout(acc, (i, j) -> (i*20 + j))\n"
      "transform_layout(B, (k, j) -> (j//8, k, j%8))\n"
      "transform_layout(B_packed, (a, k, b) -> (a, k//2, b, k%2))\n",
      0 },
    { "gemm, dim", GEMM_DIM,
      "i, j = loops(relu)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "compute_at(gemm, i0)\n"
      "_, ai, aj, k = loops(gemm)\n"
      "reorder(k, ai, aj)\n"
      "decompose_reduction(gemm, k)\n"
      "parallel(i0)\n",
      13 },
    { "gemm, dim, all under nothing", GEMM_DIM,
      "i, j = loops(relu)\n"
      "j0, j1 = split(j, [_, 8])\n"
      "reorder(j0, i, j1)\n"
      "compute_at(gemm, j0)\n"
      "parallel(j0)\n",
      5 },
    { "conv, stride 1", CONV("1", "7", "7"), CONV_TRACE, 0 },
    { "conv, stride 2", CONV("2", "9", "5"), CONV_TRACE, 0 },
    { "conv, padded rows computed at a row of outputs", CONV("2", "9", "5"),
      "compute_inline(add_bias)\n"
      "co, h, w, ci = loops(relu)\n"
      "h0, h1 = split(h, [_, 2])\n"
      "reorder(h0, co, h1)\n"
      "compute_at(conv, h0)\n"
      "compute_at(pad, h0)\n"
      "parallel(h0)\n",
      0 },
    { "softmax by row", SOFTMAX,
      "i, k = loops(divide)\n"
      "compute_at(row_sum, i)\n"
      "compute_at(exponential, i)\n"
      "compute_at(row_max, i)\n"
      "parallel(i)\n",
      0 },
    { "softmax by row, exp twice", SOFTMAX,
      "compute_inline(exponential)\n"
      "i, k = loops(divide)\n"
      "compute_at(row_sum, i)\n"
      "compute_at(row_max, i)\n"
      "parallel(i)\n",
      0 },
    { "softmax by rows of four", SOFTMAX,
      "i, k = loops(divide)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "compute_at(row_sum, i0)\n"
      "compute_at(exponential, i0)\n"
      "compute_at(row_max, i0)\n"
      "compute_at(row_sum, i1)\n"
      "parallel(i0)\n",
      0 },
    { "stencil, halo", STENCIL,
      "i = loops(second)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "compute_at(first, i0)\n"
      "parallel(i0)\n",
      0 },
    { "stencil, inlined", STENCIL, "compute_inline(first)\ni = loops(second)\nparallel(i)\n", 0 },
    { "blur, two levels of halo", BLUR,
      "h, w = loops(out)\n"
      "h0, h1 = split(h, [_, 4])\n"
      "compute_at(down, h0)\n"
      "compute_at(doubled, h0)\n"
      "compute_at(across, h0)\n"
      "parallel(h0)\n",
      0 },
    { "blur, tiles", BLUR,
      "h, w = loops(out)\n"
      "h0, h1 = split(h, [_, 2])\n"
      "w0, w1 = split(w, [_, 5])\n"
      "reorder(h0, w0, h1, w1)\n"
      "compute_inline(doubled)\n"
      "compute_at(down, h1)\n"
      "compute_at(across, w0)\n"
      "parallel(fuse(h0, w0))\n",
      0 },
    { "attention by blocks of queries", ATTENTION,
      "i, v = loops(divide)\n"
      "i0, i1 = split(i, [_, 4])\n"
      "compute_at(weigh, i0)\n"
      "compute_at(row_sum, i0)\n"
      "compute_at(exponential, i0)\n"
      "compute_at(row_max, i0)\n"
      "compute_at(score, i0)\n"
      "q = cache_read(score, Q, stack)\n"
      "compute_at(q, i0)\n"
      "_, si, sj, d = loops(score)\n"
      "reorder(d, si, sj)\n"
      "decompose_reduction(score, d)\n"
      "parallel(i0)\n",
      0 },
};

/* Values that are multiples of 1/4, so that sums are exact in any order. */
static tl_argument *make_arguments(tl_arena *arena, const tl_program *p, int64_t dim)
{
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, p->param_count);
    tl_random random = tl_random_make(7);
    for (int i = 0; i < p->param_count; i++) {
        int64_t elements = tl_buffer_max_elements(p->params[i]);
        float *data = TL_NEW_ARRAY(arena, float, elements);
        for (int64_t k = 0; k < elements; k++)
            data[k] = p->params[i]->role == TL_ROLE_OUTPUT
                          ? -777.0f
                          : (float)(tl_random_below(&random, 33) - 16) / 4.0f;
        arguments[i] = (tl_argument){ p->params[i], data };
    }
    (void)dim;
    return arguments;
}

static void run(tl_arena *arena, const tl_program *p, const tl_argument *arguments, int64_t dim,
                const char *what)
{
    tl_diag diag = { { 0 } };
    tl_interpret_options options = { .check = true };
    if (tl_interpret(p, arguments, p->param_count, &dim, &options, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", what, diag.text, tl_program_text(arena, p));
}

/* Compares the outputs; false at the first that differs. */
static bool same_outputs(const tl_program *p, const tl_argument *want, const tl_argument *got)
{
    for (int i = 0; i < p->param_count; i++) {
        if (p->params[i]->role != TL_ROLE_OUTPUT)
            continue;
        const float *a = want[i].data, *b = got[i].data;
        for (int64_t k = 0; k < tl_buffer_max_elements(p->params[i]); k++)
            if (!(fabsf(a[k] - b[k]) <= 1e-5f * (1 + fabsf(a[k]))))
                return false;
    }
    return true;
}

static tl_program *parse(tl_arena *arena, const char *text)
{
    tl_program *program;
    tl_diag diag = { { 0 } };
    if (tl_program_parse(arena, text, "kernel", &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static void check_case(void **state)
{
    const move_case *c = *state;
    tl_arena *arena = tl_arena_create(0);
    tl_program *naive = parse(arena, c->kernel);
    tl_argument *want = make_arguments(arena, naive, c->dim);
    run(arena, naive, want, c->dim, "naive");

    tl_schedule *s = tl_schedule_create(arena, naive, NULL, true);
    tl_trace *trace;
    tl_diag diag = { { 0 } };
    if (tl_trace_parse(arena, c->trace, "trace", NULL, &trace, &diag) != TL_OK ||
        tl_trace_apply(trace, s, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", c->name, diag.text, tl_program_text(arena, tl_schedule_program(s)));
    const tl_program *scheduled = tl_schedule_program(s);
    if (getenv("TL_SHOW") != NULL)
        print_message("%s\n", tl_program_text(arena, scheduled));
    tl_argument *got = make_arguments(arena, scheduled, c->dim);
    run(arena, scheduled, got, c->dim, c->name);
    if (!same_outputs(naive, want, got))
        fail_msg("%s: other numbers\n%s", c->name, tl_program_text(arena, scheduled));

    /* the printed text means the same */
    tl_program *again = parse(arena, tl_program_text(arena, scheduled));
    assert_string_equal(tl_program_text(arena, again), tl_program_text(arena, scheduled));
    tl_arena_destroy(arena);
}

typedef struct {
    int count;
    const char *names[32];
} block_names;

static bool add_name(const tl_stmt *stmt, void *context)
{
    block_names *list = context;
    if (stmt->kind == TL_STMT_BLOCK && list->count < 32)
        list->names[list->count++] = stmt->u.block->name;
    return true;
}

static bool random_block(tl_schedule *s, tl_random *random, tl_block_ref *block, tl_loop_ref *loops,
                         int *count)
{
    block_names list = { .count = 0 };
    tl_stmt_visit(tl_schedule_program(s)->body, add_name, &list);
    const char *name = list.names[tl_random_below(random, list.count)];
    return tl_schedule_block(s, name, block, NULL) == TL_OK &&
           tl_loops(s, *block, loops, count, NULL) == TL_OK && *count > 0;
}

/* One random step: a block, and a loop around a random block; what is illegal is refused. */
static void random_move(tl_schedule *s, tl_random *random)
{
    tl_block_ref block, target;
    tl_loop_ref own[TL_MAX_ARGS], loops[TL_MAX_ARGS];
    int own_count, loop_count;
    if (!random_block(s, random, &block, own, &own_count) ||
        !random_block(s, random, &target, loops, &loop_count))
        return;
    tl_loop_ref loop = loops[tl_random_below(random, loop_count)];
    int64_t factors[2] = { 0, 1 + tl_random_below(random, 6) };
    switch (tl_random_below(random, 20)) {
    case 0:
        (void)tl_compute_inline(s, block, NULL);
        break;
    case 1:
    case 2:
    case 3:
        (void)tl_reverse_compute_at(s, block, loop, NULL);
        break;
    case 4:
        (void)tl_decompose_reduction(s, block, own[tl_random_below(random, own_count)], NULL, NULL);
        break;
    case 5:
        (void)tl_cache_write(s, block, "stack", NULL, NULL);
        break;
    case 6:
        (void)tl_cache_read(s, block, "X", "stack", NULL, NULL);
        break;
    case 7:
        (void)tl_parallel(s, loop, NULL);
        break;
    case 8:
    case 9:
        (void)tl_split(s, loop, factors, 2, NULL, NULL);
        break;
    case 10:
        (void)tl_reorder(s, (tl_loop_ref[]){ loop, loops[0] }, 2, NULL);
        break;
    case 11:
        (void)tl_fuse(s, loops, 2, NULL, NULL);
        break;
    default:
        (void)tl_compute_at(s, block, loop, NULL);
        break;
    }
}

static void check_random(void **state)
{
    (void)state;
    static const char *const chains[] = { STENCIL, SOFTMAX,   BLUR,
                                          GEMM,    ATTENTION, CONV("2", "5", "3") };
    const char *given = getenv("TL_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1;
    uint64_t runs = given != NULL ? 1 : 150;
    for (uint64_t seed = first; seed < first + runs; seed++) {
        tl_arena *arena = tl_arena_create(0);
        tl_random random = tl_random_make(seed);
        int c = (int)tl_random_below(&random, (int64_t)(sizeof chains / sizeof chains[0]));
        tl_program *naive = parse(arena, chains[c]);
        tl_argument *want = make_arguments(arena, naive, 0), *got = make_arguments(arena, naive, 0);
        run(arena, naive, want, 0, "naive");
        tl_schedule *s = tl_schedule_create(arena, naive, NULL, true);
        for (int64_t steps = 4 + tl_random_below(&random, 30); steps > 0; steps--)
            random_move(s, &random);

        const tl_program *scheduled = tl_schedule_program(s);
        tl_diag diag = { { 0 } };
        int64_t dim = 0;
        tl_interpret_options options = { .check = true };
        if (tl_interpret(scheduled, got, scheduled->param_count, &dim, &options, &diag) != TL_OK ||
            !same_outputs(naive, want, got))
            fail_msg("TL_SEED=%llu: %s\n%s\n%s", (unsigned long long)seed, diag.text,
                     tl_trace_text(arena, tl_schedule_trace(s)), tl_program_text(arena, scheduled));
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    enum { CASES = sizeof cases / sizeof cases[0] };
    struct CMUnitTest tests[CASES + 1];
    for (int i = 0; i < CASES; i++)
        tests[i] = (struct CMUnitTest){ cases[i].name, check_case, NULL, NULL, (void *)&cases[i] };
    tests[CASES] = (struct CMUnitTest){ "random moves", check_random, NULL, NULL, NULL };
    return cmocka_run_group_tests_name("schedule moves", tests, NULL, NULL);
}
