/* tests/driver/test_study.c: the parts of `tilth schedule` that its command line cannot show: a schedule that is wrong is
 * found out, a diff is one, the inner loop is the one with the arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/study/inner_loop.h"
#include "driver/cli/line_diff.h"
#include "driver/study/measure_kernel.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"

static const char kernel[] =
    "kernel mm(dim M in 1..300, A: f32[M, 300], B: f32[300, 300], inout C: f32[M, 300], "
    "out D: i32[M])\n"
    "  for i in 0..M\n"
    "    for j in 0..300\n"
    "      for k in 0..300\n"
    "        block mm\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] sum= A[i, k]*B[k, j]\n"
    "  for i in 0..M\n"
    "    block d\n"
    "      spatial i\n"
    "      D[i] = i32(i)\n";

static void open_study(tl_study *study, const char *dim)
{
    char path[] = "/tmp/tilth-study-XXXXXX";
    tl_diag diag = { 0 };
    tl_study_options options = { .kernel = path, .threads = 1, .sets = { 1, { dim } } };
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tl_file_write(path, kernel, strlen(kernel), NULL), TL_OK);
    *study = (tl_study){ .arena = tl_arena_create(0) };
    if (tl_study_open(study, &options, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    unlink(path);
}

static void close_study(tl_study *study)
{
    tl_study_close(study);
    tl_arena_destroy(study->arena);
}

/* The kernel's text with `from` in it made `to`, as if a schedule had done so. */
static const tl_program *changed(const tl_study *study, const char *from, const char *to)
{
    const char *at = strstr(kernel, from);
    tl_program *program;
    tl_diag diag = { 0 };
    assert_non_null(at);
    const char *text = tl_arena_format(study->arena, "%.*s%s%s", (int)(at - kernel), kernel, to,
                                       at + strlen(from));
    if (tl_program_parse(study->arena, text, "changed", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static void wrong_schedules_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *dim, *from, *to, *sentence;
    } cases[] = {
        /* small: interpreted whole */
        { "M=3", "A[i, k]*B", "A[i, k]*2.0*B", "C[0, 0] is " },
        { "M=3", "i32(i)", "i32(i + i//2)",
          "D[2] is 3 in the scheduled program, interpreted, and 2 in the naive one" },
        { "M=3", "for j in 0..300\n", "for j in 0..300 parallel\n", NULL },
        { "M=3", "reduce k\n", "reduce k in 0..300 = (k*7) % 300\n", NULL },
        { "M=3", "for i in 0..M\n    block d\n      spatial i\n",
          "for i in 0..M\n    block d\n      spatial i\n      where i < 2\n", "D[2]" },
        /* large: at points, and against the naive code */
        { "M=300", "A[i, k]*B", "A[i, k]*2.0*B", " in the compiled naive program" },
        { "M=300", "i32(i)", "i32(i + i//299)",
          "D[299] is 300 in the compiled schedule, and 299 in " },
        { "M=300", "for i in 0..M\n    for j", "for i in 0..M parallel\n    for j", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_study study;
        tl_verdict verdict;
        tl_diag diag = { 0 };
        open_study(&study, cases[i].dim);
        tl_status status = tl_verify_schedule(&study, changed(&study, cases[i].from, cases[i].to),
                                              &verdict, &diag);
        tl_status want = cases[i].sentence != NULL ? TL_WRONG_RESULT : TL_OK;
        if (status != want || verdict.right != (want == TL_OK) ||
            (cases[i].sentence != NULL && strstr(diag.text, cases[i].sentence) == NULL))
            fail_msg("%s, %s for %s: status %d, %s", cases[i].dim, cases[i].to, cases[i].from,
                     (int)status, diag.text);
        assert_int_equal(verdict.interpreted, strcmp(cases[i].dim, "M=3") == 0 && want == TL_OK);
        close_study(&study);
    }
}

static void speed_is_measured(void **state)
{
    (void)state;
    tl_study study;
    tl_speed speed;
    tl_diag diag = { 0 };
    open_study(&study, "M=20");
    assert_int_equal(tl_measure_program(&study, study.naive, 0.02, &speed, &diag), TL_OK);
    assert_true(speed.runs >= 1 && speed.ns > 0 && speed.peak_gflops > 0);
    assert_true(speed.percent_of_peak > 0 && speed.percent_of_peak < 150);
    close_study(&study);
}

/* Lines from a few letters, so that many are the same. */
static const char *random_text(tl_arena *arena, tl_random *random)
{
    int count = (int)tl_random_below(random, 30);
    char *text = tl_arena_alloc(arena, (size_t)count * 2 + 1, 1);
    for (int i = 0; i < count; i++) {
        text[2 * i] = (char)('a' + tl_random_below(random, 4));
        text[2 * i + 1] = '\n';
    }
    return text;
}

/* Lines of one mark and of both, put together again. */
static const char *side(tl_arena *arena, const tl_line_diff *d, char mark)
{
    const char *text = "";
    for (int i = 0; i < d->count; i++)
        if (d->lines[i].mark == ' ' || d->lines[i].mark == mark)
            text = tl_arena_format(arena, "%s%s\n", text, d->lines[i].text);
    return text;
}

static void diffs_hold_both_texts(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    for (uint64_t seed = 1; seed <= 500; seed++) {
        tl_random random = tl_random_make(seed);
        const char *a = random_text(arena, &random), *b = random_text(arena, &random);
        tl_line_diff d = tl_line_diff_make(arena, a, b);
        if (strcmp(side(arena, &d, '-'), a) != 0 || strcmp(side(arena, &d, '+'), b) != 0)
            fail_msg("seed %llu: the diff does not hold both texts", (unsigned long long)seed);
        tl_line_diff same = tl_line_diff_make(arena, a, a);
        assert_int_equal(same.added + same.removed, 0);
    }
    /* the fewest */
    tl_line_diff d = tl_line_diff_make(arena, "a\nb\nc\nd\n", "b\nx\nc\nd\ne\n");
    assert_int_equal(d.removed, 1);
    assert_int_equal(d.added, 2);
    tl_arena_destroy(arena);
}

static void the_loop_with_the_arithmetic(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    static const char x86[] =
        "f:\n\t.cfi_startproc\n\txorl\t%eax, %eax\n.LBB0_1:\t# outer\n"
        "\tincq\t%rcx\n.LBB0_2:\n\t# comment\n\tvfmadd231ss\t(%r11), %xmm1, %xmm0\n"
        "\tcmpq\t$767, %r10\t# imm = 0x2FF\n\tjb\t.LBB0_2\n"
        ".LBB0_3:\n\tmovq\t%rax, (%rdi)\n\tmovq\t%rax, 8(%rdi)\n\tjne\t.LBB0_3\n"
        "\tjmp\t.LBB0_1\n\tretq\n";
    assert_string_equal(tl_inner_loop(arena, x86), ".LBB0_2:\n\tvfmadd231ss\t(%r11), %xmm1, %xmm0\n"
                                                   "\tcmpq\t$767, %r10\n\tjb\t.LBB0_2\n");
    static const char arm[] =
        "f:\n.LBB0_1:\n\tfmla\tv0.4s, v1.4s, v2.s[0]\n\tadd\tx0, x0, #4 // more\n"
        "\tcbnz\tx1, .LBB0_1\n\tret\n";
    assert_string_equal(tl_inner_loop(arena, arm),
                        ".LBB0_1:\n\tfmla\tv0.4s, v1.4s, v2.s[0]\n\tadd\tx0, x0, #4\n"
                        "\tcbnz\tx1, .LBB0_1\n");
    assert_string_equal(tl_inner_loop(arena, "f:\n\tje\t.L2\n.L2:\n\tretq\n"), "");
    assert_string_equal(tl_inner_loop(arena, ""), "");
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_schedules_are_found),
        cmocka_unit_test(speed_is_measured),
        cmocka_unit_test(diffs_hold_both_texts),
        cmocka_unit_test(the_loop_with_the_arithmetic),
    };
    return cmocka_run_group_tests_name("study", tests, NULL, NULL);
}
