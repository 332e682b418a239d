/* tests/codegen/test_lower_passes.c: every pass of codegen/lower/lower_passes.def keeps what a kernel computes, leaves
 * the invariants that it promises, and finds nothing left to do when it is run again.
 *
 * The random kernels and schedules of tests/schedule/test_meaning.c are lowered for an ISA that the seed says, and the
 * program is interpreted before the first pass and after each. TL_SEED and TL_COUNT as there; a failure is reduced and
 * written below build/failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/lower/lower_program.h"
#include "ir/interpret/interpret.h"
#include "tests/support/meaning.h"

enum { MAX_INSTANCES = 1000 * 1000 };

/* ---- what a program computes ---- */

/* A lowered reduction is a load and a store; where the interpreter's rule for lanes would call that a race, they run
 * one after the other. What they compute is the same. */
static bool find_update(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found |= stmt->kind == TL_STMT_STORE && tl_reads_own_element(&stmt->u.store);
    return !*found;
}

static const tl_stmt *run_lanes_in_order(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    bool updates = false;
    (void)context;
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind != TL_LOOP_VECTORIZED)
        return stmt;
    tl_stmt_visit(stmt->u.loop.body, find_update, &updates);
    return updates ? tl_stmt_loop(arena, stmt->u.loop.var, stmt->u.loop.extent, TL_LOOP_SERIAL,
                                  stmt->u.loop.body)
                   : stmt;
}

static size_t elements_of(tl_arena *arena, const tl_program *program, const tl_buffer *b,
                          const int64_t *dims)
{
    int64_t count = 1, extent = 0;
    for (int a = 0; a < b->rank; a++) {
        const tl_expr *e = b->shape[a];
        tl_binding binding = { program->dim_count > 0 ? program->dims[0] : NULL,
                               tl_int(arena, dims[0]) };
        if (program->dim_count > 0)
            e = tl_substitute(arena, e, &binding, 1);
        if (!tl_const_int(e, &extent))
            fail_msg("an extent of %s is no number", b->name);
        count *= extent;
    }
    return (size_t)count;
}

static void copy_run(tl_arena *arena, const tl_program *program, const meaning_run *from,
                     meaning_run *to)
{
    *to = *from;
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        size_t size = elements_of(arena, program, b, from->dims) * tl_dtype_size(b->dtype);
        to->data[p] = tl_arena_alloc(arena, size + 1, 64);
        memcpy(to->data[p], from->data[p], size);
    }
}

static tl_status interpret(tl_arena *arena, tl_program program, const meaning_run *run,
                           bool reads_unwritten, tl_diag *diag)
{
    tl_argument arguments[MEANING_MAX_BUFFERS];
    program.body = tl_stmt_rewrite(arena, program.body, run_lanes_in_order, NULL);
    if (program.prepare != NULL)
        program.prepare = tl_stmt_rewrite(arena, program.prepare, run_lanes_in_order, NULL);
    for (int p = 0; p < program.param_count; p++)
        arguments[p] = (tl_argument){ program.params[p], run->data[p] };
    tl_interpret_options options = { .check = true,
                                     .reads_unwritten = reads_unwritten,
                                     .max_instances = MAX_INSTANCES };
    return tl_interpret(&program, arguments, program.param_count, run->dims, &options, diag);
}

/* The same to the last bit, but where a pass adds up in another order. */
static bool is_same(tl_dtype dtype, tl_number x, tl_number y, bool reorders)
{
    if (!tl_dtype_is_float(dtype))
        return x.i == y.i;
    if (x.f == y.f || (isnan(x.f) && isnan(y.f)))
        return true;
    double tolerance = !reorders ? 0 : dtype == TL_F32 || dtype == TL_F64 ? 1e-5 : 2e-2;
    return fabs(x.f - y.f) <= tolerance * fmax(1.0, fabs(x.f));
}

/* ---- one program, pass by pass ---- */

typedef struct {
    tl_arena *arena;
    const meaning_run *inputs;
    int run_count;
    meaning_run results[MEANING_MAX_RUNS]; /* of the program before the pass */
    bool is_relaxed;                       /* what was never written may be read */
    tl_status status;                      /* the first that went wrong, and its sentence */
    tl_diag *diag;
} walk;

static tl_status compare(walk *w, const tl_program *program, const meaning_run *want,
                         const meaning_run *got, bool reorders)
{
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        size_t count = elements_of(w->arena, program, b, want->dims);
        for (size_t i = 0; i < count; i++) {
            tl_number x = tl_number_load(b->dtype, want->data[p], i);
            tl_number y = tl_number_load(b->dtype, got->data[p], i);
            bool is_float = tl_dtype_is_float(b->dtype);
            if (!is_same(b->dtype, x, y, reorders))
                return tl_fail(w->diag, TL_INTERNAL, "%s[%zu] becomes %.9g, not %.9g", b->name, i,
                               is_float ? y.f : (double)y.i, is_float ? x.f : (double)x.i);
        }
    }
    return TL_OK;
}

static tl_status run_again(const tl_lower_pass *pass, const tl_lowered_kernel *kernel,
                           tl_diag *diag)
{
    tl_lowered_kernel again = *kernel;
    TL_TRY(pass->run(&again, diag));
    if (strcmp(tl_lowered_text(&again), tl_lowered_text(kernel)) != 0)
        return tl_fail(diag, TL_INTERNAL, "a second run changes\n%sto\n%s", tl_lowered_text(kernel),
                       tl_lowered_text(&again));
    return TL_OK;
}

static tl_status check_pass(walk *w, const tl_lower_pass *pass, const tl_lowered_kernel *kernel)
{
    tl_program program = tl_lowered_program(kernel);
    bool reorders = strcmp(pass->name, "widen_reductions") == 0;
    /* lanes that nobody reads are made of padding from here on */
    w->is_relaxed |= strcmp(pass->name, "relax_guards") == 0;
    TL_TRY(tl_verify_lowered(kernel, pass->holds, w->diag));
    if (strcmp(pass->name, "partition_loops") !=
        0) /* it would go on cutting parts as long as the kernel may grow */
        TL_TRY(run_again(pass, kernel, w->diag));
    for (int r = 0; r < w->run_count; r++) {
        meaning_run got;
        copy_run(w->arena, &program, &w->inputs[r], &got);
        TL_TRY(interpret(w->arena, program, &got, w->is_relaxed, w->diag));
        TL_TRY(compare(w, &program, &w->results[r], &got, reorders));
        w->results[r] = got;
    }
    return TL_OK;
}

static void see_pass(void *context, int number, const tl_lower_pass *pass,
                     const tl_lowered_kernel *kernel)
{
    walk *w = context;
    (void)number;
    if (w->status == TL_OK) {
        w->status = check_pass(w, pass, kernel);
        if (w->status != TL_OK)
            tl_context(w->diag, "after %s for %s", pass->name,
                       tl_isa_infos[kernel->target->isa].text);
    }
}

static tl_status lower_part(walk *w, const tl_program *program, bool prepare,
                            const tl_target *target)
{
    tl_lowered_kernel kernel = { .arena = w->arena,
                                 .program = program,
                                 .prepare = prepare,
                                 .name = program->name,
                                 .target = target,
                                 .body = prepare ? program->prepare : program->body };
    tl_lower_observer observer = { see_pass, w };
    tl_status status = tl_lower(&kernel, &observer, w->diag);
    return status != TL_OK ? status : w->status;
}

/* In the place of compiled code: what the lowered program computes. */
static tl_status run_lowered(tl_arena *arena, const tl_program *program, uint64_t seed,
                             const meaning_run *runs, int run_count, tl_diag *diag)
{
    static const char *const isas[] = { "x86-64-v4", "x86-64-v3", "x86-64", "aarch64" };
    walk w = { .arena = arena, .inputs = runs, .run_count = run_count, .diag = diag };
    tl_target target;
    tl_status status = tl_target_named(isas[seed % 4], &target, diag);
    for (int r = 0; r < run_count && status == TL_OK; r++) {
        copy_run(arena, program, &runs[r], &w.results[r]);
        status = interpret(arena, *program, &w.results[r], false, diag);
    }
    if (status == TL_OK && program->prepare != NULL)
        status = lower_part(&w, program, true, &target);
    if (status == TL_OK)
        status = lower_part(&w, program, false, &target);
    for (int r = 0; r < run_count && status == TL_OK; r++)
        for (int p = 0; p < program->param_count; p++) {
            const tl_buffer *b = program->params[p];
            memcpy(runs[r].data[p], w.results[r].data[p],
                   elements_of(arena, program, b, runs[r].dims) * tl_dtype_size(b->dtype));
        }
    return status == TL_BUDGET ? TL_UNSUPPORTED : status;
}

static void passes_keep_the_meaning(void **state)
{
    (void)state;
    meaning m = { .compiled = run_lowered };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 500);
    assert_int_equal(meaning_run_cases(&m, first, count, false), 0);
    assert_true(m.left_out + m.refused <= (int64_t)count / 4);
}

static void passes_keep_strict_sums(void **state)
{
    (void)state;
    meaning m = { .compiled = run_lowered, .strict = true };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 300);
    assert_int_equal(meaning_run_cases(&m, first, count, false), 0);
}

/* What random kernels found once (the second: parts of parts of loops that were cut, whose bounds grew with each), and
 * what they do not come to: what the mutants of tests/mutants/codegen.txt need to be noticed. */
static const struct {
    const char *kernel, *trace;
} known[] = {
    { "kernel rows(A: f32[5, 64], inout S: f32[5])\n"
      "for i0 in 0..2\n  for i1 in 0..8\n    for k in 0..64 vectorized\n"
      "      block s\n        spatial i in 0..5 = i0*8 + i1\n        reduce k\n"
      "        where i0*8 + i1 < 5\n        S[i] sum= A[i, k]\n",
      "i0, i1, k = loops(s)\nparallel(i0)\n" },
    { "kernel gemm(dim M in 1..3, A: f32[M, 3], B: f32[3, 2], out C: f32[M, 2])\n"
      "for i in 0..M\n  for j in 0..2\n    for k in 0..3\n      block C\n"
      "        spatial i, j\n        reduce k\n        C[i, j] = sum(A[i, k]*B[k, j])\n",
      "i, j, k = loops(C)\n"
      "f = fuse(i, j)\ng = split(f, [_])\nh = fuse(g, k)\n"
      "h0, h1, h2 = split(h, [_, 2, 5])\nh3 = split(h0, [_])\np = fuse(h1, h2)\n"
      "p0, p1, p2 = split(p, [2, 4, _])\nloop_partition(h3)\n"
      "q0, q1, q2, q3 = loops(C_tail)\nr0, r1, r2 = split(q3, [2, _, 2])\n" },
    { "kernel others(A: f32[2, 3], inout C: f32[3], out D: f32[2])\n"
      "for r in 0..2\n  block d\n    spatial r\n    D[r] = C[0]\n"
      "  for i in 0..3\n    block c\n      spatial i\n      reduce r\n"
      "      C[i] = sum(A[r, i])\n",
      "" },
    { "kernel repeats(A: f32[2, 3], out B: f32[3])\n"
      "for z_r in 0..4\n  for i in 0..3\n    block b\n      spatial i\n"
      "      reduce r in 0..2 = z_r % 2\n      B[i] = sum(A[r, i]) from 1.0\n",
      "" },
    { "kernel swap(inout X: f32[20], inout Y: f32[20])\n"
      "for i in 0..20\n  block s\n    spatial i\n    X[i] = Y[i]\n    Y[i] = X[i]\n",
      "i = loops(s)\nvectorize(i)\n" },
    { "kernel pair(A: f32[4, 40], out V: f32[4], out I: i64[4])\n"
      "for i in 0..4\n  for k in 0..40\n    block a\n      spatial i\n      reduce k\n"
      "      V[i], I[i] = argmax(A[i, k], k)\n",
      "i, k = loops(a)\nvectorize(k)\n" },
    { "kernel chain(P: bool[4, 40], Q: bool[4, 40], out N: bool[4])\n"
      "for i in 0..4\n  for k in 0..40\n    block n\n      spatial i\n      reduce k\n"
      "      N[i] = any(not P[i, k] or Q[i, k])\n",
      "i, k = loops(n)\nvectorize(k)\n" },
    { "kernel parts(A: f32[4], out B: f32[4])\n"
      "alloc T: f32[12]\n"
      "for i in 0..4\n  block t\n    spatial i\n    T[i + 6] = A[i]\n"
      "for i in 0..4\n  block u\n    spatial i\n    T[i + 2] = A[3 - i]\n"
      "for i in 0..4\n  block b\n    spatial i\n    B[i] = T[i + 2] + T[i + 6]\n",
      "" },
    { "kernel mixed(A: f32[5, 64], inout S: f32[5])\n"
      "for i in 0..8\n  for k in 0..64\n    block s\n      spatial i in 0..5 = i\n"
      "      reduce k\n      where i*64 + k < 300\n      S[i] sum= A[i, k]\n",
      "i, k = loops(s)\nvectorize(k)\n" },
    { "kernel rows(A: f32[8, 64], inout S: f32[8])\n"
      "for i in 0..8\n  for k in 0..64\n    block s\n      spatial i\n      reduce k\n"
      "      S[i] sum= A[i, k]\n",
      "i, k = loops(s)\ni0, i1 = split(i, [_, 4])\nk0, k1 = split(k, [_, 16])\n"
      "reorder(i0, k0, i1, k1)\nunroll(i1)\nvectorize(k1)\n" },
    { "kernel digits(A: f32[22], inout B: f32[6], inout D: f32[22], inout C: f32[21, 50])\n"
      "for p in 0..12 parallel\n  block b\n    spatial i in 0..6 = p//4*5 + p % 4\n"
      "    where p//4*5 + p % 4 < 6\n    B[i] = A[i]\n"
      "for p in 0..12 parallel\n  block d\n    spatial i in 0..22 = p//4*20 + p % 4\n"
      "    where p//4*20 + p % 4 < 22\n    D[i] = A[i]\n"
      "for p in 0..12 parallel\n  for i1 in 0..8\n    for j1 in 0..16\n      block c\n"
      "        spatial i in 0..21 = p//4*8 + i1\n        spatial j in 0..50 = p % 4*16 + j1\n"
      "        where p//4*8 + i1 < 21 and p % 4*16 + j1 < 50\n        C[i, j] = A[i]\n",
      "" },
    { "kernel edges(A: f32[41], out B: f32[41])\n"
      "for p in 0..7 parallel\n  for i1 in 0..8\n    block b\n"
      "      spatial i in 0..41 = p*8 + i1\n      where p*8 + i1 < 41\n      B[i] = A[i]\n",
      "" },
    { "kernel data(A: f32[8], I: i64[1], inout B: f32[8])\n"
      "for i in 0..8\n  block b\n    spatial i\n    where i < I[0]\n    B[i] = A[i]\n",
      "" },
};

static void known_cases_keep_the_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (uint64_t isa = 0; isa < 4; isa++) {
            meaning m = { .seed = isa, .compiled = run_lowered };
            meaning_failure failure;
            if (!meaning_holds(&m, known[i].kernel, known[i].trace, 0, &failure))
                fail_msg("case %zu: %s: %s", i, failure.kind, failure.text);
            assert_int_equal(m.left_out + m.refused, 0);
        }
}

/* ---- the verifier itself ---- */

/* One lowered kernel an invariant, which breaks that one and no other, if need be with break_more. */
static const struct {
    const char *body, *words;
} broken[TL_INVARIANT_COUNT] = {
    [TL_INVARIANT_SCOPED] = { "  for i in 0..8\n    B[i] = A[i]\n", "the body writes A" },
    [TL_INVARIANT_DISTINCT] = { "  for i in 0..8\n    B[i] = A[i]\n",
                                "the variable i is that of two statements" },
    [TL_INVARIANT_NO_BLOCKS] = { "  for i in 0..8\n    block b\n      spatial i\n      B[i] = "
                                 "A[i]\n",
                                 "block b is still there" },
    [TL_INVARIANT_LANES_JOIN] = { "  for i in 0..8 vectorized\n    B[0] = A[i]\n",
                                  "the lanes of loop i store different values to one element of "
                                  "B" },
    [TL_INVARIANT_LANES_OWN] = { "  for i in 0..8 vectorized\n    alloc t: f32[1] stack\n    t[0] "
                                 "= A[i]\n"
                                 "    B[i] = t[0]\n",
                                 "buffer t is allocated inside of lanes" },
};

/* Breaks the invariant where a text cannot: what is read must verify, and names there are distinct. */
static const tl_stmt *break_more(tl_arena *arena, const tl_program *program, tl_invariant invariant)
{
    const tl_stmt *loop = program->body;
    const tl_buffer *a = program->params[0];
    const tl_expr *i = tl_ref(arena, loop->u.loop.var);
    const tl_expr *one = tl_load(arena, a, &i);
    if (invariant == TL_INVARIANT_SCOPED)
        return tl_stmt_with_body(arena, loop, tl_stmt_store(arena, a, &i, one));
    if (invariant == TL_INVARIANT_DISTINCT)
        return tl_stmt_seq2(arena, loop, loop);
    return loop;
}

static void broken_invariants_are_found(void **state)
{
    (void)state;
    unsigned all = (1u << TL_INVARIANT_COUNT) - 1;
    for (int b = 0; b < TL_INVARIANT_COUNT; b++) {
        if (broken[b].body == NULL)
            fail_msg("no kernel breaks invariant %d of lower_invariants.def", b);
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        tl_target target;
        unsigned mask = 1u << b;
        const char *text =
            tl_arena_format(arena, "kernel k(A: f32[8], out B: f32[8])\n%s", broken[b].body);
        assert_int_equal(tl_program_parse(arena, text, "k", &program, &diag), TL_OK);
        assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
        tl_lowered_kernel kernel = {
            .arena = arena, .program = program, .name = "k", .target = &target
        };
        kernel.body = break_more(arena, program, (tl_invariant)b);
        if (tl_verify_lowered(&kernel, all & ~mask, &diag) != TL_OK)
            fail_msg("%s: %s", broken[b].words, diag.text);
        assert_int_equal(tl_verify_lowered(&kernel, mask, &diag), TL_BAD_IR);
        if (strstr(diag.text, broken[b].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", diag.text, broken[b].words);
        tl_arena_destroy(arena);
    }
}

/* An invariant that has come stays to the end: no pass takes back what one before it has left. */
static void invariants_stay(void **state)
{
    (void)state;
    int count;
    unsigned so_far = 0;
    const tl_lower_pass *passes = tl_lower_passes(&count);
    for (int p = 0; p < count; p++) {
        assert_int_equal(so_far & ~passes[p].holds, 0);
        so_far |= passes[p].holds;
    }
    assert_int_equal(so_far, (1u << TL_INVARIANT_COUNT) - 1);
}

/* ---- who looks on ---- */

static const char copy[] = "kernel k(A: f32[8], out B: f32[8])\n"
                           "  for i in 0..8 vectorized\n    block b\n      spatial i\n"
                           "      B[i] = A[i]\n";

typedef struct {
    int next; /* pass that is due */
    int seen;
} onlooker;

static void expect_pass(void *context, int number, const char *pass, const char *text)
{
    onlooker *o = context;
    int count;
    const tl_lower_pass *passes = tl_lower_passes(&count);
    while (o->next < count && !passes[o->next].is_run[false])
        o->next++;
    assert_true(o->next < count);
    assert_string_equal(pass, passes[o->next].name);
    assert_int_equal(number, ++o->next);
    assert_ptr_equal(strstr(text, "kernel k(A: f32[8], out B: f32[8])\n"), text);
    o->seen++;
}

/* Every pass of the table that a CPU has is shown, once, in order, with the number that it has in the table. */
static void lowering_is_observed(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *program;
    tl_target target;
    onlooker o = { 0 };
    int count, on_cpu = 0;
    const tl_lower_pass *passes = tl_lower_passes(&count);
    for (int p = 0; p < count; p++)
        on_cpu += passes[p].is_run[false];
    tl_codegen_observer observer = { expect_pass, &o };
    assert_int_equal(tl_program_parse(arena, copy, "k", &program, &diag), TL_OK);
    assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
    assert_int_equal(tl_codegen_observe(program, false, &target, &observer, &diag), TL_OK);
    assert_int_equal(o.seen, on_cpu);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(invariants_stay),         cmocka_unit_test(broken_invariants_are_found),
        cmocka_unit_test(lowering_is_observed),    cmocka_unit_test(known_cases_keep_the_meaning),
        cmocka_unit_test(passes_keep_the_meaning), cmocka_unit_test(passes_keep_strict_sums),
    };
    return cmocka_run_group_tests_name("lowering passes", tests, NULL, NULL);
}
