/* tests/ir/test_stage.c: stages, the short form of a block: what they stand for, refusals.
 * GOLDEN_UPDATE=1 rewrites the long form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/program.h"
#include "runtime/base/file.h"

#define SHORT "tests/golden/ir/stages.tk"
#define LONG  "tests/golden/ir/stages_long.tk"

static void read(const char *path, tl_text *out)
{
    tl_diag diag = { 0 };
    if (tl_file_read(path, out, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static void golden(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_text text = { 0 }, expected = { 0 };
    tl_program *program;
    read(SHORT, &text);
    if (tl_program_parse(arena, tl_text_get(&text), SHORT, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *printed = tl_program_text(arena, program);
    if (getenv("GOLDEN_UPDATE") != NULL)
        assert_int_equal(tl_file_write(LONG, printed, strlen(printed), &diag), TL_OK);
    read(LONG, &expected);
    assert_string_equal(printed, tl_text_get(&expected));
    tl_program *again;
    assert_int_equal(tl_program_parse(arena, printed, LONG, &again, &diag), TL_OK);
    assert_true(tl_program_hash(again) == tl_program_hash(program));
    tl_text_free(&text);
    tl_text_free(&expected);
    tl_arena_destroy(arena);
}

#define HEADER                                                                                 \
    "kernel t(dim M in 1..8, A: f32[8, 8], B: f32[4, 8], I: i64[8], out C: f32[8, 8], out P: " \
    "i64[8])\n"

static const struct {
    const char *body, *sentence;
} refusals[] = {
    { "  s: C[i, j] = sum(A[i, k]*B[k, j])\n",
      "t:2:30: k runs over 8 in A and over 4 in B: add `for k in 0..EXTENT`" },
    { "  s: C[i, j] = A[i, k]\n",
      "t:2:21: k is on the right side only, and nothing reduces over it" },
    { "  s: P[i] = sum(I[i + k])\n",
      "t:2:23: k is no index by itself of a buffer that is defined" },
    { "  s: P[i] = sum(I[i + k]) for j in 0..3\n", "t:2:31: stage s has no iter j" },
    { "  s: P[i] = sum(I[i + k]) for k in 0..3, k in 0..3\n", "the extent of k is given twice" },
    { "  s: P[i] = sum(I[i + k]) for k in 1..3\n", "a range starts at 0, not at 1" },
    { "  s: P[i] = sum(I[i + k]) for k\n", "expected 'in', found end of the line" },
    { "  s: P[i] = I[i] for\n", "expected the name of an iter" },
    { "  for i in 0..8\n    s: P[i] = I[i] for i in 0..8\n",
      "i is a loop around, which has its extent" },
    { "  s: P[i] = I[i]\n  s: P[i] = I[i]\n", "there are two blocks named s" },
    { "  s: P[i] = X[i]\n", "X is not defined here" },
    { "  s: P[i] =\n", "expected an expression, found end of the line" },
    { "  s:\n", "expected the name of a buffer, found end of the line" },
    { "  s: P[i, j] = I[i]\n", "t:2:11: P has 1 axis, and j is index 2" },
    { "  s: C[i, i + 1] = A[i]\n", "A has 2 axes, not 1" },
    { "  s: C[i, j] = I[i]\n", "C holds f32, the value is i64: cast it" },
    { "  s: Q[i] = I[i]\n", "t:2:6: Q is not declared, and nothing reads what is stored to it" },
    { "  s: Q[i + 1] = I[i]\n  u: P[i] = Q[i]\n",
      "Q is not declared, and stage s does not tell its shape" },
    { "  s: Q[0] = I[i]\n  u: P[i] = Q[i]\n",
      "Q is not declared, and stage s does not tell its shape" },
    { "  s: Q = I[i]\n", "" },
    { "  s: sum[i] = I[i]\n", "sum is a word of the language" },
    { "  s: Q[i], Q[i] = argmax(A[i, k], k)\n  u: P[i] = Q[i]\n", "" },
    { "  s: P[i] = Q[i] + I[i]\n  u: Q[i] = I[i]\n", "Q is not defined here" },
    { "  for i in 0..8\n    u: Q[j] = I[j]\n    v: P[i] = sum(Q[j])\n  w: P[i] = Q[i]\n",
      "Q is not defined here" },
    { "  for i in 0..8,\n    u: P[i] = I[i]\n", "expected the name of a loop's variable" },
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        char *text = tl_arena_format(arena, HEADER "%s", refusals[i].body);
        tl_status status = tl_program_parse(arena, text, "t", &program, &diag);
        if (status != TL_BAD_TEXT || strstr(diag.text, refusals[i].sentence) == NULL)
            fail_msg("%s\ngot:      %s\nexpected: %s", text, diag.text, refusals[i].sentence);
        assert_int_equal(tl_program_parse(arena, text, "t", &program, NULL), TL_BAD_TEXT);
        tl_arena_destroy(arena);
    }
}

/* As many loops on one line, or names in one store, as anybody likes to write. */
static void sizes(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        tl_text text = { 0 };
        tl_text_add(&text,
                    kind == 0 ? HEADER "  for a in 0..2" : HEADER "  s: P[i] = sum(I[i] + a");
        for (int i = 0; i < 50000; i++)
            tl_text_format(&text, kind == 0 ? ", a_%d in 0..2" : " + a_%d", i);
        tl_text_add(&text, kind == 0 ? "\n    P[0] = 0\n" : ")\n");
        assert_int_equal(tl_program_parse(arena, tl_text_get(&text), "t", &program, &diag),
                         TL_BAD_TEXT);
        const char *sentence =
            kind == 0 ? "loops are nested more than 200 deep" : "stage s has more than 64 iters";
        if (strstr(diag.text, sentence) == NULL)
            fail_msg("%s", diag.text);
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(refuses),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
