/* tests/schedule/test_meaning.c: whatever legal primitives do to the loops, the numbers stay.
 *
 * Random kernels (odd extents, ones, dims) get random primitives with random arguments, most of which are refused.
 * What applied must leave a program that verifies, prints, parses and prints the same, is replayed by its trace to the
 * same hash, and computes what the kernel computed, under the interpreter's full checking. TL_SEED starts elsewhere,
 * TL_COUNT runs more; a failure prints the seed, the kernel, and the trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret.h"
#include "runtime/base/random.h"
#include "schedule/trace.h"

/* Splits of splits make loops that are mostly guarded away: those that take too long are left out, and counted. */
enum { MAX_INSTANCES = 300 * 1000 };
static int64_t left_out;

enum { MAX_STEPS = 14, MAX_LOOPS = 64, MAX_BLOCKS = 32, MAX_BUFFERS = 32, MAX_PARAMS = 8 };

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

typedef struct {
    uint64_t seed;
    tl_random random;
    tl_arena *arena;
    const char *text; /* of the kernel */
    tl_program *program;
    tl_schedule *schedule;
    int64_t dim;
} test_case;

static void fail_case(const test_case *c, const char *what)
{
    const char *trace = c->schedule ? tl_trace_text(c->arena, tl_schedule_trace(c->schedule)) : "";
    const char *now =
        c->schedule ? tl_program_text(c->arena, tl_schedule_program(c->schedule)) : "";
    /* to stderr: cmocka cuts messages at a kilobyte */
    fprintf(stderr, "TL_SEED=%llu TL_COUNT=1\nkernel\n%s\ntrace\n%s\nprogram\n%s\n%s\n",
            (unsigned long long)c->seed, c->text, trace, now, what);
    fail();
}

static const char *random_kernel(tl_arena *arena, tl_random *random)
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

/* What a random argument is taken from. */
typedef struct {
    tl_schedule *schedule;
    int loop_count, block_count, buffer_count;
    tl_loop_ref loops[MAX_LOOPS];
    const tl_block *blocks[MAX_BLOCKS];
    const tl_buffer *buffers[MAX_BUFFERS];
} choices;

static bool collect(const tl_stmt *stmt, void *context)
{
    choices *c = context;
    if (stmt->kind == TL_STMT_LOOP && c->loop_count < MAX_LOOPS)
        c->loops[c->loop_count++] = tl_schedule_name_loop(c->schedule, stmt->u.loop.var);
    if (stmt->kind == TL_STMT_BLOCK && c->block_count < MAX_BLOCKS)
        c->blocks[c->block_count++] = stmt->u.block;
    if (stmt->kind == TL_STMT_ALLOC && c->buffer_count < MAX_BUFFERS)
        c->buffers[c->buffer_count++] = stmt->u.alloc.buffer;
    return true;
}

static choices collect_choices(tl_schedule *s)
{
    choices c = { .schedule = s };
    const tl_program *program = tl_schedule_program(s);
    tl_stmt_visit(program->body, collect, &c);
    if (program->prepare)
        tl_stmt_visit(program->prepare, collect, &c);
    for (int i = 0; i < program->param_count && c.buffer_count < MAX_BUFFERS; i++)
        c.buffers[c.buffer_count++] = program->params[i];
    return c;
}

/* The loops around a random block, outermost first. */
static int random_nest(test_case *c, const choices *from, tl_loop_ref *out)
{
    const tl_block *block = from->blocks[tl_random_below(&c->random, from->block_count)];
    tl_block_ref ref = tl_schedule_name_block(c->schedule, block->name);
    int count = 0;
    tl_loops(c->schedule, ref, out, &count, NULL);
    return count;
}

static const char *random_map(test_case *c, int rank)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    const char *left = "", *right = "";
    int order[6] = { 0, 1, 2, 3, 4, 5 };
    if (rank > 6)
        rank = 6;
    for (int i = rank - 1; i > 0; i--) {
        int k = (int)tl_random_below(&c->random, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    int split = (int)tl_random_below(&c->random, rank + 1);
    int factor = 2 + (int)tl_random_below(&c->random, 4);
    for (int i = 0; i < rank; i++) {
        const char *comma = i ? ", " : "", *name = names[order[i]];
        left = tl_arena_format(c->arena, "%s%s%s", left, comma, names[i]);
        if (i == split)
            right = tl_arena_format(c->arena, "%s%s%s//%d, %s%%%d", right, comma, name, factor,
                                    name, factor);
        else
            right = tl_arena_format(c->arena, "%s%s%s", right, comma, name);
    }
    return tl_arena_format(c->arena, "(%s) -> (%s)", left, right);
}

static tl_arg random_factors(test_case *c)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 8, 16 };
    int count = 1 + (int)tl_random_below(&c->random, 3);
    int64_t *factors = TL_NEW_ARRAY(c->arena, int64_t, count);
    for (int i = 0; i < count; i++)
        factors[i] = sizes[tl_random_below(&c->random, 7)];
    factors[tl_random_below(&c->random, count)] = 0;
    return (tl_arg){ .kind = TL_ARG_FACTORS, .count = count, .factors = factors };
}

static tl_arg random_arg(test_case *c, const choices *from, char letter)
{
    static const char *const scopes[] = { "global", "stack", "register", "shared" };
    tl_arg arg = { .kind = TL_ARG_WORD };
    const tl_buffer *buffer =
        from->buffer_count ? from->buffers[tl_random_below(&c->random, from->buffer_count)] : NULL;
    switch (letter) {
    case 'L':
        arg.kind = TL_ARG_LOOP;
        arg.loop = from->loops[tl_random_below(&c->random, from->loop_count)];
        break;
    case 'B':
        arg.kind = TL_ARG_BLOCK;
        arg.block = tl_schedule_name_block(
            c->schedule, from->blocks[tl_random_below(&c->random, from->block_count)]->name);
        break;
    case 'b':
        arg.word = buffer ? buffer->name : "none";
        break;
    case 's':
        arg.word = scopes[tl_random_below(&c->random, 4)];
        break;
    case 'i':
        arg = (tl_arg){ .kind = TL_ARG_INT, .value = 1 + tl_random_below(&c->random, 2) };
        break;
    case 'F':
        return random_factors(c);
    default:
        arg.kind = TL_ARG_MAP;
        arg.word = random_map(c, buffer ? buffer->rank : 1);
        break;
    }
    return arg;
}

static tl_arg random_int(test_case *c, int64_t least, int64_t most)
{
    int64_t value = least + tl_random_below(&c->random, (uint64_t)(most - least + 1));
    return (tl_arg){ .kind = TL_ARG_INT, .value = value };
}

/* Sizes of tiles, one a loop. */
static tl_arg tile_sizes(test_case *c, int count)
{
    int64_t *sizes = TL_NEW_ARRAY(c->arena, int64_t, count);
    for (int i = 0; i < count; i++)
        sizes[i] = 1 + (int64_t)tl_random_below(&c->random, 5);
    return (tl_arg){ .kind = TL_ARG_FACTORS, .count = count, .factors = sizes };
}

/* Words and numbers that mean something to a primitive, in the place of any. */
static void fit_args(test_case *c, tl_prim prim, tl_arg *args)
{
    static const char *const axes[] = { "blockIdx.x",  "blockIdx.y",  "threadIdx.x",
                                        "threadIdx.y", "threadIdx.z", "vthread" };
    if (prim == TL_PRIM_bind)
        args[1].word = axes[tl_random_below(&c->random, 6)];
    if (prim == TL_PRIM_storage_align) {
        args[1] = random_int(c, 0, 2);
        args[2] = random_int(c, 1, 8);
        args[3] = random_int(c, 0, 2);
    }
    if (prim == TL_PRIM_sample_perfect_tile) {
        args[1] = random_int(c, 1, 3);
        args[2] = random_int(c, 4, 16);
    }
    if (prim == TL_PRIM_sample_categorical) {
        args[0] = tile_sizes(c, 3);
        args[1] = tile_sizes(c, 3);
    }
    if (prim == TL_PRIM_tensorize) {
        tl_loop_ref nest[TL_MAX_ARGS];
        choices from = collect_choices(c->schedule);
        int size = random_nest(c, &from, nest);
        if (size >= 2)
            args[0].loop = nest[size - 2];
        args[1].word = "dot_u8i8_i32x16";
    }
    if (prim == TL_PRIM_pad) {
        const tl_block *block = tl_schedule_get_block(c->schedule, args[0].block);
        args[1] = tile_sizes(c, block->iter_count);
    }
}

/* Arguments by the letters of primitives.def; lists of loops are loops of one nest. */
static int random_args(test_case *c, const choices *from, tl_prim prim, const char *letters,
                       tl_arg *args)
{
    int count = 0;
    if (strncmp(letters, "L*", 2) == 0) {
        tl_loop_ref nest[TL_MAX_ARGS];
        int size = random_nest(c, from, nest);
        if (size == 0)
            return 0;
        int first = (int)tl_random_below(&c->random, size);
        int last = first + 1 + (int)tl_random_below(&c->random, size - first);
        for (int i = first; i < last; i++)
            args[count++] = (tl_arg){ .kind = TL_ARG_LOOP, .loop = nest[i] };
        for (int i = count - 1; prim == TL_PRIM_reorder && i > 0; i--) {
            int k = (int)tl_random_below(&c->random, i + 1);
            tl_arg t = args[i];
            args[i] = args[k];
            args[k] = t;
        }
        if (letters[2] == 'F') {
            args[count] = tile_sizes(c, count);
            count++;
        }
        return count;
    }
    for (const char *at = letters; *at; at++) {
        if (*at == '?') /* a decision left open */
            count--;
        else
            args[count++] = random_arg(c, from, *at);
    }
    fit_args(c, prim, args);
    for (int i = 0; letters[i]; i++) /* the map fits the buffer */
        if (letters[i] == 'M' && i > 0)
            for (int b = 0; b < from->buffer_count; b++)
                if (strcmp(from->buffers[b]->name, args[i - 1].word) == 0)
                    args[i].word = random_map(c, from->buffers[b]->rank);
    return count;
}

typedef struct {
    const char *name, *in;
} prim_letters;
static const prim_letters prims[TL_PRIM_COUNT] = {
#define PRIMITIVE(name, in, out) { #name, in },
#include "schedule/primitives.def"
#undef PRIMITIVE
};

static int64_t applied[TL_PRIM_COUNT], tried[TL_PRIM_COUNT];

static bool try_step_for(test_case *c, tl_prim prim, const tl_arg *args, int count, tl_arg *out)
{
    int out_count;
    tl_diag diag = { 0 };
    tl_status status = tl_schedule_apply(c->schedule, prim, args, count, out, &out_count, &diag);
    tried[prim]++;
    applied[prim] += status == TL_OK;
    if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE)
        fail_case(c, tl_arena_format(c->arena, "%s: %s: %s", prims[prim].name,
                                     tl_status_text(status), diag.text));
    return status == TL_OK;
}

static bool try_step(test_case *c, tl_prim prim, const tl_arg *args, int count)
{
    tl_arg out[TL_MAX_ARGS];
    return try_step_for(c, prim, args, count, out);
}

/* Steps that only make sense after this one. */
static void follow_up(test_case *c, tl_prim prim, const tl_arg *args, const tl_arg *out)
{
    if (prim == TL_PRIM_sample_perfect_tile) {
        tl_arg split[] = { args[0], out[0] };
        try_step(c, TL_PRIM_split, split, 2);
    }
    if (prim == TL_PRIM_sample_compute_location) {
        tl_arg at[] = { args[0], out[0] };
        try_step(c, TL_PRIM_compute_at, at, 2);
    }
    if (prim == TL_PRIM_bind) { /* so that the threads wait for each other, whatever else comes */
        try_step(c, TL_PRIM_place_barriers, NULL, 0);
        return;
    }
    if (prim != TL_PRIM_compute_at || tl_random_below(&c->random, 3) == 0)
        return;
    if (tl_random_below(&c->random, 2) == 0) {
        tl_arg stages[] = { args[1], random_int(c, 2, 4) };
        try_step(c, TL_PRIM_software_pipeline, stages, 2);
        return;
    }
    const tl_block *block = tl_schedule_get_block(c->schedule, args[0].block);
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = block->stores[0].buffer->name }, args[1] };
    try_step(c, TL_PRIM_rolling_buffer, roll, 2);
}

/* Beginnings that random steps find too rarely: a window that moves with a loop. */
static void begin(test_case *c)
{
    bool windows = strncmp(c->text, "kernel windows", 14) == 0;
    if ((!windows && strncmp(c->text, "kernel conv", 11) != 0) ||
        tl_random_below(&c->random, 2) == 0)
        return;
    const char *writer = windows ? "A" : "P", *reader = windows ? "B" : "Y";
    tl_loop_ref nest[TL_MAX_ARGS];
    int count = 0;
    tl_loops(c->schedule, tl_schedule_name_block(c->schedule, reader), nest, &count, NULL);
    tl_arg loop = { .kind = TL_ARG_LOOP, .loop = nest[tl_random_below(&c->random, count)] };
    tl_arg at[] = { { .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(c->schedule, writer) },
                    loop };
    tl_arg roll[] = { { .kind = TL_ARG_WORD, .word = writer }, loop };
    tl_arg pipe[] = { loop, random_int(c, 2, 4) };
    if (!try_step(c, TL_PRIM_compute_at, at, 2))
        return;
    if (tl_random_below(&c->random, 2))
        try_step(c, TL_PRIM_rolling_buffer, roll, 2);
    else
        try_step(c, TL_PRIM_software_pipeline, pipe, 2);
}

static void apply_random(test_case *c)
{
    begin(c);
    int steps = 1 + (int)tl_random_below(&c->random, MAX_STEPS);
    for (int tries = 0, done = 0; done < steps && tries < 12 * steps; tries++) {
        tl_prim prim = (tl_prim)tl_random_below(&c->random, TL_PRIM_COUNT);
        if (tl_random_below(&c->random, 4) == 0)
            prim = TL_PRIM_split;
        choices from = collect_choices(c->schedule);
        if (from.loop_count == 0 || from.block_count == 0)
            return;
        tl_arg args[TL_MAX_ARGS];
        int count = random_args(c, &from, prim, prims[prim].in, args);
        if (count == 0 && prims[prim].in[0])
            continue;
        tl_arg out[TL_MAX_ARGS];
        if (try_step_for(c, prim, args, count, out)) {
            done += prim != TL_PRIM_loops;
            follow_up(c, prim, args, out);
        }
    }
}

/* What threads share is defined only with the barriers; steps after the last ones may have made more necessary. */
static void place_last_barriers(test_case *c)
{
    tl_arg out[TL_MAX_ARGS];
    int out_count;
    if (tl_schedule_apply(c->schedule, TL_PRIM_place_barriers, NULL, 0, out, &out_count, NULL) !=
        TL_OK)
        left_out++;
}

/* Running. */

static int64_t elements_of(const tl_buffer *b, const tl_program *program, int64_t dim)
{
    int64_t size = 1;
    for (int i = 0; i < b->rank; i++) {
        int64_t extent;
        if (!tl_const_int(b->shape[i], &extent)) {
            tl_arena *scratch = tl_arena_create(0);
            tl_binding binding = { program->dims[0], tl_int(scratch, dim) };
            if (!tl_const_int(tl_substitute(scratch, b->shape[i], &binding, 1), &extent))
                extent = 0;
            tl_arena_destroy(scratch);
        }
        size *= extent;
    }
    return size;
}

typedef struct {
    int64_t elements[MAX_PARAMS];
    void *data[MAX_PARAMS];
} values;

static values make_values(test_case *c, uint64_t seed)
{
    values v = { 0 };
    tl_random random = tl_random_make(seed);
    for (int p = 0; p < c->program->param_count; p++) {
        const tl_buffer *b = c->program->params[p];
        v.elements[p] = elements_of(b, c->program, c->dim);
        size_t size = tl_dtype_size(b->dtype) * (size_t)v.elements[p];
        v.data[p] = tl_arena_alloc(c->arena, size, 64);
        if (b->role == TL_ROLE_OUTPUT) {
            memset(v.data[p], 0x5A, size);
            continue;
        }
        for (int64_t i = 0; i < v.elements[p]; i++)
            tl_number_store(b->dtype, v.data[p], (size_t)i,
                            (tl_number){ .f = (double)(tl_random_below(&random, 7) - 3) });
    }
    return v;
}

static tl_status run(test_case *c, const tl_program *program, const values *v, tl_diag *diag)
{
    tl_argument arguments[MAX_PARAMS];
    for (int p = 0; p < program->param_count; p++)
        arguments[p] = (tl_argument){ program->params[p], v->data[p] };
    int64_t dims[1] = { c->dim };
    tl_interpret_options options = { .check = true, .max_instances = MAX_INSTANCES };
    return tl_interpret(program, arguments, program->param_count, dims, &options, diag);
}

static bool is_close(tl_dtype dtype, const void *a, const void *b, int64_t i)
{
    tl_number x = tl_number_load(dtype, a, (size_t)i), y = tl_number_load(dtype, b, (size_t)i);
    if (!tl_dtype_is_float(dtype))
        return x.i == y.i;
    return fabs(x.f - y.f) <= 1e-5 * fmax(1.0, fabs(x.f));
}

static void compare(test_case *c)
{
    tl_diag diag = { 0 };
    values want = make_values(c, c->seed), got = make_values(c, c->seed);
    if (run(c, c->program, &want, &diag) != TL_OK)
        fail_case(c, tl_arena_format(c->arena, "the kernel itself: %s", diag.text));
    tl_status status = run(c, tl_schedule_program(c->schedule), &got, &diag);
    if (status == TL_BUDGET) {
        left_out++;
        return;
    }
    if (status != TL_OK)
        fail_case(c, tl_arena_format(c->arena, "dim %lld: %s", (long long)c->dim, diag.text));
    for (int p = 0; p < c->program->param_count; p++) {
        const tl_buffer *b = c->program->params[p];
        for (int64_t i = 0; i < want.elements[p]; i++)
            if (!is_close(b->dtype, want.data[p], got.data[p], i))
                fail_case(c, tl_arena_format(c->arena, "%s[%lld] differs, dim %lld", b->name,
                                             (long long)i, (long long)c->dim));
    }
}

static void check_texts(test_case *c)
{
    tl_diag diag = { 0 };
    tl_program *program;
    tl_trace *trace;
    const char *text = tl_program_text(c->arena, tl_schedule_program(c->schedule));
    if (tl_program_parse(c->arena, text, "printed", &program, &diag) != TL_OK)
        fail_case(c, diag.text);
    /* names that clashed are other names once they are read back, and sums are ordered by names: once */
    const char *named = tl_program_text(c->arena, program);
    if (tl_program_parse(c->arena, named, "printed", &program, &diag) != TL_OK)
        fail_case(c, diag.text);
    if (strcmp(named, tl_program_text(c->arena, program)) != 0)
        fail_case(c, "the program prints, parses and prints otherwise");
    if (tl_program_hash(program) != tl_program_hash(tl_schedule_program(c->schedule)))
        fail_case(c, tl_arena_format(c->arena, "another hash when printed and parsed:\n%s", named));

    const char *steps = tl_trace_text(c->arena, tl_schedule_trace(c->schedule));
    if (tl_trace_parse(c->arena, steps, "recorded", NULL, &trace, &diag) != TL_OK)
        fail_case(c, diag.text);
    if (strcmp(steps, tl_trace_text(c->arena, trace)) != 0)
        fail_case(c, "the trace prints, parses and prints otherwise");
    tl_schedule *replayed = tl_schedule_create(c->arena, c->program, NULL, true);
    if (tl_trace_apply(trace, replayed, &diag) != TL_OK)
        fail_case(c, diag.text);
    if (tl_program_hash(tl_schedule_program(replayed)) !=
        tl_program_hash(tl_schedule_program(c->schedule)))
        fail_case(c, tl_arena_format(c->arena, "the replay differs:\n%s",
                                     tl_program_text(c->arena, tl_schedule_program(replayed))));
}

static void run_case(uint64_t seed)
{
    test_case c = { .seed = seed, .random = tl_random_make(seed), .arena = tl_arena_create(0) };
    tl_diag diag = { 0 };
    c.text = random_kernel(c.arena, &c.random);
    if (tl_program_parse(c.arena, c.text, "kernel", &c.program, &diag) != TL_OK ||
        tl_program_verify(c.program, &diag) != TL_OK)
        fail_case(&c, diag.text);
    c.schedule = tl_schedule_create(c.arena, c.program, NULL, true);
    apply_random(&c);
    place_last_barriers(&c);
    check_texts(&c);
    for (int i = 0; i < 1 + 2 * c.program->dim_count; i++) {
        if (c.program->dim_count)
            c.dim = 1 + tl_random_below(&c.random, c.program->dims[0]->max);
        compare(&c);
    }
    tl_arena_destroy(c.arena);
}

static uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_schedules_keep_the_meaning(void **state)
{
    (void)state;
    uint64_t first = environment("TL_SEED", 1), count = environment("TL_COUNT", 500);
    for (uint64_t seed = first; seed < first + count; seed++)
        run_case(seed);
    printf("%lld of %llu not run to the end; applied/tried:", (long long)left_out,
           (unsigned long long)count);
    for (int i = 0; i < TL_PRIM_COUNT; i++)
        printf(" %s %lld/%lld", prims[i].name, (long long)applied[i], (long long)tried[i]);
    printf("\n");
    if (count >= 500)
        for (int i = 0; i < TL_PRIM_COUNT; i++)
            if (applied[i] == 0)
                fail_msg("%s was never legal in %llu cases", prims[i].name,
                         (unsigned long long)count);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_keep_the_meaning),
    };
    return cmocka_run_group_tests_name("schedule meaning", tests, NULL, NULL);
}
