/* tests/bench/replay.c: how fast a trace is replayed and a program verified: what a search does thousands of times; and
 * how fast the interpreter runs, with every check. Processor time of one core, the fastest batch; prints two lines and
 * fails when a limit is missed: 150 us a replay of 26 steps on a conv2d, 100 us a verification, 10^7 statement instances
 * a second. While one is missed, more batches are tried: others may use the machine. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "ir/interpret/interpret.h"
#include "schedule/trace.h"

enum { REPLAYS = 100, BATCHES = 10, PATIENCE = 10 }; /* replays a batch */
static const double most_replay = 150, most_verify = 100, least_checked = 10;

static const char kernel[] =
    "kernel conv(X: f32[64, 56, 56], const W: f32[64, 64, 3, 3], bias: f32[64], "
    "out Y: f32[64, 56, 56])\n"
    "alloc P: f32[64, 58, 58]\n"
    "for c in 0..64\n"
    "  for h in 0..58\n"
    "    for w in 0..58\n"
    "      block P\n"
    "        spatial c, h, w\n"
    "        P[c, h, w] = select(h > 0 and h < 57 and w > 0 and w < 57, "
    "X[c, min(max(h - 1, 0), 55), min(max(w - 1, 0), 55)], 0.0)\n"
    "alloc T: f32[64, 56, 56]\n"
    "for o in 0..64\n"
    "  for h in 0..56\n"
    "    for w in 0..56\n"
    "      for c in 0..64\n"
    "        for y in 0..3\n"
    "          for x in 0..3\n"
    "            block T\n"
    "              spatial o, h, w\n"
    "              reduce c, y, x\n"
    "              T[o, h, w] = sum(P[c, h + y, w + x]*W[o, c, y, x])\n"
    "for o in 0..64\n"
    "  for h in 0..56\n"
    "    for w in 0..56\n"
    "      block Y\n"
    "        spatial o, h, w\n"
    "        Y[o, h, w] = max(T[o, h, w] + bias[o], 0.0)\n";

static const char steps[] = "transform_layout(W, (o, c, y, x) -> (o//16, c, y, x, o%16))\n"
                            "o, h, w = loops(Y)\n"
                            "o0, o1 = split(o, [_, 16])\n"
                            "w0, w1 = split(w, [_, 14])\n"
                            "reorder(o0, h, w0, w1, o1)\n"
                            "compute_at(T, w0)\n"
                            "_, _, _, to, th, tw, tc, ty, tx = loops(T)\n"
                            "reorder(th, tc, ty, tx, tw, to)\n"
                            "tc0, tc1 = split(tc, [_, 8])\n"
                            "vectorize(to)\n"
                            "unroll(tw)\n"
                            "decompose_reduction(T, tc0)\n"
                            "set_scope(T, register)\n"
                            "compute_at(P, h)\n"
                            "prefetch(T, W_packed, tc1, 2, 1)\n"
                            "unroll(tx)\n"
                            "unroll(ty)\n"
                            "_, _, pc, ph, pw = loops(P)\n"
                            "annotate(pw, rows, 1)\n"
                            "annotate(tc0, depth, 2)\n"
                            "vectorize(o1)\n"
                            "unroll(w1)\n"
                            "annotate(h, rows, 3)\n"
                            "annotate(w0, columns, 3)\n"
                            "parallel(fuse(o0, h))\n";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* A product of matrices: SIZE^3 instances of its one block, in as many seconds. */
enum { SIZE = 128, RUNS = 5 };
static const char product[] =
    "kernel gemm(A: f32[128, 128], B: f32[128, 128], out C: f32[128, 128])\n"
    "for i in 0..128\n"
    "  for j in 0..128\n"
    "    for k in 0..128\n"
    "      block C\n"
    "        spatial i, j\n"
    "        reduce k\n"
    "        C[i, j] = sum(A[i, k]*B[k, j])\n";

/* Instances a second of the fastest run, in millions; 0: it failed. */
static double interpret(bool check, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_program *program;
    double best = 0;
    if (arena == NULL || tl_program_parse(arena, product, "gemm.tk", &program, diag) != TL_OK) {
        tl_arena_destroy(arena);
        return 0;
    }
    tl_argument arguments[3];
    for (int p = 0; p < 3; p++) {
        float *data = TL_NEW_ARRAY(arena, float, SIZE *SIZE);
        for (int i = 0; i < SIZE * SIZE; i++)
            data[i] = (float)(i % 7);
        arguments[p] = (tl_argument){ program->params[p], data };
    }
    tl_interpret_options options = { .check = check };
    for (int run = 0; run < RUNS || (check && best < least_checked && run < PATIENCE * RUNS);
         run++) {
        double start = now();
        if (tl_interpret(program, arguments, 3, NULL, &options, diag) != TL_OK)
            break;
        double rate = (double)SIZE * SIZE * SIZE / (now() - start);
        best = rate > best ? rate : best;
    }
    tl_arena_destroy(arena);
    return best;
}

int main(void)
{
    tl_diag diag = { 0 };
    tl_program *program;
    tl_trace *trace;
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || tl_program_parse(arena, kernel, "conv.tk", &program, &diag) != TL_OK ||
        tl_trace_parse(arena, steps, "conv.tr", NULL, &trace, &diag) != TL_OK) {
        fprintf(stderr, "replay: %s\n", diag.text);
        return 1;
    }
    double replay = 1e9, verify = 1e9; /* microseconds */
    for (int batch = 0; batch < BATCHES || (batch < PATIENCE * BATCHES &&
                                            (replay > most_replay || verify > most_verify));
         batch++) {
        double start = now();
        tl_schedule *s = NULL;
        tl_arena *scratch = NULL;
        for (int i = 0; i < REPLAYS; i++) {
            tl_arena_destroy(scratch);
            scratch = tl_arena_create(0);
            s = tl_schedule_create(scratch, program, NULL, false);
            if (tl_trace_apply(trace, s, &diag) != TL_OK) {
                fprintf(stderr, "replay: %s\n", diag.text);
                return 1;
            }
        }
        double middle = now();
        for (int i = 0; i < REPLAYS; i++)
            if (tl_program_verify(tl_schedule_program(s), &diag) != TL_OK) {
                fprintf(stderr, "replay: %s\n", diag.text);
                return 1;
            }
        double end = now();
        replay = fmin(replay, (middle - start) / REPLAYS);
        verify = fmin(verify, (end - middle) / REPLAYS);
        tl_arena_destroy(scratch);
    }
    printf("trace of %d steps on a conv2d: replay %.1f us (%.0f a second), verify %.1f us\n",
           trace->count, replay, 1e6 / replay, verify);
    tl_arena_destroy(arena);
    double checked = interpret(true, &diag), plain = interpret(false, &diag);
    if (checked == 0 || plain == 0) {
        fprintf(stderr, "replay: %s\n", diag.text);
        return 1;
    }
    printf("interpreter: %.1f million instances a second checked, %.1f unchecked\n", checked,
           plain);
    return replay > most_replay || verify > most_verify || checked < least_checked;
}
