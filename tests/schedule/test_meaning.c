/* tests/schedule/test_meaning.c: whatever legal primitives do to the loops, the numbers stay.
 *
 * Random kernels get random primitives with random arguments, most of which are refused. What applied must leave a
 * program that verifies, prints, parses and prints the same, is replayed by its trace to the same hash, and computes
 * what the kernel computed, under the interpreter's full checking (tests/codegen/test_meaning.c: and compiled, too).
 * TL_SEED starts elsewhere, TL_COUNT runs more; a failure prints the seed and a reduced kernel and trace, and writes
 * both below build/failures for `tilth schedule`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "schedule/trace.h"
#include "tests/support/meaning.h"

static void random_schedules_keep_the_meaning(void **state)
{
    (void)state;
    meaning m = { 0 };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 500);
    assert_int_equal(meaning_run_cases(&m, first, count, true), 0);
}

/* Whatever is legal in a strict kernel keeps the order of its sums. */
static void random_schedules_keep_strict_sums(void **state)
{
    (void)state;
    meaning m = { .strict = true };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 500);
    assert_int_equal(meaning_run_cases(&m, first, count, true), 0);
}

/* What the tuner compares with is what the naive program computes, bit for bit. */
static void references_keep_strict_sums(void **state)
{
    (void)state;
    meaning m = { .strict = true };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 500);
    int64_t scheduled;
    assert_int_equal(meaning_run_references(&m, first, count, &scheduled), 0);
    assert_true(count < 100 || scheduled > (int64_t)count / 10);
}

/* The reducer, on a fault of our own: every block loses its guard. */

static const tl_stmt *drop_guard(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind != TL_STMT_BLOCK || stmt->u.block->predicate == NULL)
        return stmt;
    tl_block *block = tl_block_copy(arena, stmt->u.block);
    block->predicate = NULL;
    return tl_stmt_block(arena, block);
}

static const tl_program *drop_guards(tl_arena *arena, const tl_program *program)
{
    tl_program *copy = tl_program_copy(arena, program);
    copy->body = tl_stmt_rewrite(arena, program->body, drop_guard, NULL);
    return copy;
}

static const char long_kernel[] =
    "kernel chain(X: f32[13, 17], out Y: f32[13, 17], out S: f32[13])\n"
    "alloc A: f32[13, 17]\n"
    "alloc B: f32[13, 17]\n"
    "for i in 0..13\n"
    "  for j in 0..17\n"
    "    block A\n"
    "      spatial i, j\n"
    "      A[i, j] = X[i, j]*3.0\n"
    "for i in 0..13\n"
    "  for j in 0..17\n"
    "    block B\n"
    "      spatial i, j\n"
    "      B[i, j] = A[i, j] + 1.0\n"
    "for i in 0..13\n"
    "  for j in 0..17\n"
    "    block Y\n"
    "      spatial i, j\n"
    "      Y[i, j] = B[i, j] - A[i, j]\n"
    "for i in 0..13\n"
    "  for j in 0..17\n"
    "    block S\n"
    "      spatial i\n"
    "      reduce j\n"
    "      S[i] = sum(B[i, j])\n";
static const char long_trace[] = "i, j = loops(A)\n"
                                 "i0, i1 = split(i, [_, 13])\n"
                                 "vectorize(j)\n"
                                 "p, q = loops(B)\n"
                                 "p0, p1 = split(p, [_, 4])\n"
                                 "q0, q1 = split(q, [_, 8])\n"
                                 "reorder(p0, q0, p1, q1)\n"
                                 "unroll(p1)\n"
                                 "s, t = loops(S)\n"
                                 "parallel(s)\n";

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void failures_are_reduced(void **state)
{
    (void)state;
    meaning m = { .seed = 3, .break_program = drop_guards };
    meaning_failure failure, now;
    tl_arena *arena = tl_arena_create(0);
    const char *kernel = long_kernel, *trace = long_trace;
    assert_false(meaning_holds(&m, kernel, trace, 0, &failure));
    meaning_reduce(&m, arena, &kernel, &trace, &failure);
    assert_false(meaning_holds(&m, kernel, trace, 0, &now));
    assert_string_equal(now.kind, failure.kind);
    assert_int_equal(count_lines(trace), 2); /* loops, split */
    assert_non_null(strstr(trace, "split("));
    assert_null(strstr(kernel, "13"));
    assert_null(strstr(kernel, "17"));
    assert_int_equal(count_lines(kernel), 6); /* one stage */
    tl_arena_destroy(arena);
}

static void failures_are_written(void **state)
{
    (void)state;
    char folder[] = "/tmp/tilth-meaning-XXXXXX";
    meaning m = { .seed = 3 };
    meaning_failure failure = { "the program computes something else", "Y[0] is 1, not 2\n" };
    tl_arena *arena = tl_arena_create(0);
    tl_text kernel = { 0 }, trace = { 0 };
    assert_non_null(mkdtemp(folder));
    const char *path = meaning_write(arena, folder, "case", long_kernel, long_trace, &failure);
    const char *tk = tl_arena_format(arena, "%s.tk", path);
    const char *tr = tl_arena_format(arena, "%s.tr", path);
    assert_int_equal(tl_file_read(tk, &kernel, NULL), TL_OK);
    assert_int_equal(tl_file_read(tr, &trace, NULL), TL_OK);
    /* both replay as they are, the sentence a comment */
    assert_true(meaning_holds(&m, tl_text_get(&kernel), tl_text_get(&trace), 0, &failure));
    assert_non_null(strstr(tl_text_get(&trace), "Y[0] is 1, not 2"));
    tl_text_free(&kernel);
    tl_text_free(&trace);
    assert_int_equal(unlink(tk) + unlink(tr) + rmdir(folder), 0);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_reduced),
        cmocka_unit_test(failures_are_written),
        cmocka_unit_test(random_schedules_keep_the_meaning),
        cmocka_unit_test(random_schedules_keep_strict_sums),
        cmocka_unit_test(references_keep_strict_sums),
    };
    return cmocka_run_group_tests_name("schedule meaning", tests, NULL, NULL);
}
