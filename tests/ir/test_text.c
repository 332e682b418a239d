/* tests/ir/test_text.c: Programs as text: golden files that print as they are read, refusals of the
 * parser and the verifier with their sentences, hostile texts, names. GOLDEN_UPDATE=1 rewrites the
 * golden files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/program/program.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"

static const char *const goldens[] = { "gemm_packed", "lowered", "statements" };

static tl_program *parse(tl_arena *arena, const char *text, const char *file)
{
    tl_diag diag = { 0 };
    tl_program *program = NULL;
    if (tl_program_parse(arena, text, file, &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static void golden_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        char *path = tl_arena_format(arena, "tests/golden/ir/%s.tk", goldens[i]);
        if (tl_file_read(path, &text, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        tl_program *program = parse(arena, tl_text_get(&text), path);
        const char *printed = tl_program_text(arena, program);
        if (getenv("GOLDEN_UPDATE") != NULL)
            assert_int_equal(tl_file_write(path, printed, strlen(printed), &diag), TL_OK);
        else
            assert_string_equal(printed, tl_text_get(&text));
        if (tl_program_verify(program, &diag) != TL_OK)
            fail_msg("%s: %s", path, diag.text);
        tl_program *again = parse(arena, printed, "printed");
        assert_string_equal(tl_program_text(arena, again), printed);
        assert_true(tl_program_hash(again) == tl_program_hash(program));
        assert_string_equal(tl_program_class_text(arena, again),
                            tl_program_class_text(arena, program));
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

/* ---- refusals ---- */

typedef struct {
    const char *body, *sentence;
} refusal;

#define HEADER "kernel t(dim M in 1..8, A: f32[8, 8], I: i64[8], out C: f32[8, 8], out P: i64[8])\n"

static const refusal parser_refusals[] = {
    { "  for i in 0..8\n    C[i, 0] = A[i]\n", "t:3:15: A has 2 axes, not 1" },
    { "  C[0, 0] = A[0, 0] + I[0]\n", "t:2:21: + takes operands of one dtype, not f32 and i64" },
    { "  C[0, 0] = I[0]\n", "t:2:3: C holds f32, the value is i64: cast it" },
    { "  C[0, 0] = A[0, 0.5]\n", "an index is i64, not f32" },
    { "  C[0, 0] = A[0, q]\n", "t:2:18: q is not defined here" },
    { "  C[0, 0] = A\n", "A is a buffer: write A[...]" },
    { "  C[0, 0] = M[0]\n", "M is a variable, not a buffer" },
    { "  P[0] = 9223372036854775808\n", "9223372036854775808 does not fit i64" },
    { "  P[0] = 99999999999999999999\n", "an integer does not fit 64 bits" },
    { "  P[0] = i8(200)\n", "200 does not fit i8" },
    { "  P[0] = i64(u8(-1))\n", "-1 does not fit u8" },
    { "  P[0] = 1 +\n", "expected an expression, found end of the line" },
    { "  P[0] = (1 + 2\n", "the text ends inside a bracket" },
    { "  P[0] = 1)\n", "a bracket closes that was not opened" },
    { "  P[0] = 1 ? 2\n", "unexpected '?'" },
    { "  P[0] = \x80\n", "a character that does not belong into a program" },
    { "\tP[0] = 1\n", "a tab: indent and separate with spaces" },
    { "  P[0] = 1\n    P[1] = 2\n", "expected a statement, found indentation" },
    { "    P[0] = 1\n  P[1] = 2\n", "the indentation fits none of the lines above" },
    { "  P[0] = 12ab\n", "a number runs into a name" },
    { "  P[0] = I[0] < 1 < 2\n", "comparisons do not chain" },
    { "  P[0] = I[0] and 1\n", "and takes conditions, not i64" },
    { "  P[0] = I[0] // 0.5\n", "the literal 0.5 cannot be i64" },
    { "  C[0, 0] = A[0, 0] // 2\n", "// does not take f32" },
    { "  C[0, 0] = A[0, 0] + true\n", "+ takes operands of one dtype, not f32 and bool" },
    { "  C[0, 0] = exp(I[0])\n", "exp does not take i64" },
    { "  C[0, 0] = exp(1.0, 2.0)\n", "exp takes 1 operand; expected ')', found ," },
    { "  C[0, 0] = bitnot(A[0, 0])\n", "bitnot does not take f32" },
    { "  C[0, 0] = bits_f32(I[0])\n",
      "bits_f32 takes a dtype of as many bits, one of the two a float: not i64" },
    { "  P[0] = i64(bits_u32(i32(I[0])))\n",
      "bits_u32 takes a dtype of as many bits, one of the two a float: not i32" },
    { "  C[0, 0] = bits_f32(A[0, 0], A[0, 1])\n",
      "bits_f32 takes 1 operand; expected ')', found ," },
    { "  for bits_f16 in 0..8\n    P[0] = 0\n", "bits_f16 is a word of the language" },
    { "  C[0, 0] = sum(A[0, 0])\n", "a reduction is the whole right side" },
    { "  C[0, 0] sum= A[0, 0]\n", "a reduction needs a block" },
    { "  for i in 1..8\n    P[i] = 0\n", "a range starts at 0, not at 1" },
    { "  for i in 0..M - 2\n    P[i] = 0\n", "the extent M - 2 can be negative" },
    { "  for i in 0..I[0]\n    P[i] = 0\n", "can be negative" },
    { "  for i in 0..8\n    for i in 0..8\n      P[i] = 0\n", "t:3:9: the name i is taken" },
    { "  for A in 0..8\n    P[A] = 0\n", "the name A is taken" },
    { "  for sum in 0..8\n    P[0] = 0\n", "sum is a word of the language" },
    { "  for i in 0..8\n  P[0] = 0\n", "expected the indented lines of i" },
    { "  alloc A: f32[8]\n  P[0] = 0\n", "the name A is taken" },
    { "  alloc T: f32[8]\n", "nothing in the kernel follows the last alloc" },
    { "  alloc T: f31[8]\n  P[0] = 0\n", "expected a dtype, found f31" },
    { "  alloc T: f32[4294967296, 4294967296]\n  P[0] = 0\n", "the size of T overflows" },
    { "  alloc T: f32[8] strides [0]\n  P[0] = 0\n", "a stride is at least 1" },
    { "  block b\n    spatial i\n    P[i] = 0\n", "there is no loop i around" },
    { "  block b\n    spatial i in 0..8 = 0, i in 0..8 = 0\n    P[i] = 0\n",
      "iter i is declared twice" },
    { "  block b\n    spatial M in 0..8 = 0\n    P[M] = 0\n", "iter M has the name of a dim" },
    { "  block b\n    P[0] = 0\n  block b\n    P[0] = 0\n", "there are two blocks named b" },
    { "  block b\n  P[0] = 0\n", "block b has no lines" },
    { "  for i in 0..8\n    block b\n      spatial j in 0..8 = i\n      P[i] = 0\n",
      "the stores of block b speak of its iters only; i is a loop's variable" },
    { "  block b\n    P[0] = sum(I[0])\n    P[1] = 2\n", "a reduction is the only store" },
    { "  block b\n    P[0], C[0, 0] = argmax(I[0], 1)\n", "the index of argmax is i64, not f32" },
    { "  block b\n    P[0] = argmax(I[0])\n", "argmax combines into 2 buffers, not 1" },
    { "  block b\n    P[0] = all(I[0] < 1)\n", "all does not combine i64" },
    { "  block b\n    P[0], P[1] = 3\n", "only argmin and argmax store two values at once" },
    { "  block b\n    where 3\n    P[0] = 3\n", "expected a condition, found a value of i64" },
    { "  block b\n    call nothing(read A[0, 0])\n", "there is no intrinsic nothing" },
    { "  block b\n    call sort_f32(read A[0, 0])\n", "sort_f32 takes 1 reads, 2 writes" },
    { "  prefetch A[0, 0] to L3\n", "a prefetch goes to L1 or L2, not to L3" },
    { "", "kernel t does nothing" },
    { "  P[0] = 1\nkernel u()\n", "expected the end of the program, found kernel" },
    { "  prepare\n    P[0] = 1\n", "after the prepare part comes `body`" },
};

static void parser_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof parser_refusals / sizeof parser_refusals[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        char *text = tl_arena_format(arena, HEADER "%s", parser_refusals[i].body);
        tl_status status = tl_program_parse(arena, text, "t", &program, &diag);
        if (status != TL_BAD_TEXT || strstr(diag.text, parser_refusals[i].sentence) == NULL)
            fail_msg("%s\ngot:      %s\nexpected: %s", text, diag.text,
                     parser_refusals[i].sentence);
        assert_int_equal(tl_program_parse(arena, text, "t", &program, NULL), TL_BAD_TEXT);
        tl_arena_destroy(arena);
    }
}

static const refusal header_refusals[] = {
    { "", "expected 'kernel', found end of the text" },
    { "kernel", "expected the kernel's name" },
    { "kernel t(A: f32[8], A: f32[8])\n  A[0] = 1\n", "the name A is taken" },
    { "kernel t(dim M in 5..1)\n", "dim M: 5..1 is not a range of sizes" },
    { "kernel t(A: f32[N])\n", "N is not defined here" },
    { "kernel t(A: f32[-1])\n", "the extent -1 of A can be negative" },
    { "kernel t(A: f32[8]\n", "the text ends inside a bracket" },
    { "kernel t(A f32[8])\n", "expected ':', found f32" },
};

static void header_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof header_refusals / sizeof header_refusals[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        assert_int_equal(tl_program_parse(arena, header_refusals[i].body, "t", &program, &diag),
                         TL_BAD_TEXT);
        if (strstr(diag.text, header_refusals[i].sentence) == NULL)
            fail_msg("%s\ngot: %s", header_refusals[i].body, diag.text);
        tl_arena_destroy(arena);
    }
}

static const refusal verifier_refusals[] = {
    { "  for i in 0..2\n    for j in 0..5\n      block b\n        spatial k in 0..8 = i*5 + j\n"
      "        P[k] = 0\n",
      "block b: iter k is 9, outside 0..8, at M=8, i=1, j=4, and no predicate prevents it" },
    { "  for i in 0..(M + 3)//4\n    for j in 0..4\n      block b\n"
      "        spatial k in 0..M = i*4 + j\n        P[k] = 0\n",
      "iter k is 3, outside 0..1" },
    { "  for i in 0..8\n    block b\n      spatial i\n      P[i + 1] = 0\n",
      "block b: index i + 1 of P is 8, outside 0..8" },
    { "  for i in 0..8\n    block b\n      spatial i\n      P[i] = I[i - 1]\n",
      "block b: index i - 1 of I is -1, outside 0..8" },
    { "  for i in 0..8\n    block b\n      reduce i\n      P[i] = sum(I[i])\n",
      "block b: the reduce iter i indexes the result P" },
    { "  for i in 0..8\n    block b\n      reduce i\n      P[0] = I[i]\n",
      "block b: iter i reduces, but the block has no combiner" },
    { "  for i in 0..8 parallel\n    block b\n      reduce i\n      P[0] = sum(I[i])\n",
      "block b: iter i is not spatial but runs under the parallel loop i" },
    { "  for f in 0..8 vectorized\n    block b\n      spatial i in 0..4 = f//2\n"
      "      reduce k in 0..2 = f % 2\n      P[i] = sum(I[k])\n",
      "loop f, which must drive reduce iters alone for its lanes to combine" },
    { "  for i in 0..M vectorized\n    block b\n      spatial i\n      P[i] = 0\n",
      "loop i: a loop that is vectorized has a constant extent" },
    { "  for i in 0..8 parallel\n    for j in 0..8 parallel\n      block b\n        spatial i\n"
      "        P[i] = 0\n",
      "loop j: a parallel loop inside the parallel loop i" },
    { "  alloc T: i64[M] register\n  block b\n    T[0] = 0\n",
      "buffer T: a register buffer has a constant shape" },
    { "  block b\n    A[0, 0] = 1.0\n", "b: the body writes A, which it must not" },
    { "  for i in 0..8 parallel\n    barrier\n", "a barrier inside the parallel loop i" },
};

static void verifier_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof verifier_refusals / sizeof verifier_refusals[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        char *text = tl_arena_format(arena, HEADER "%s", verifier_refusals[i].body);
        tl_program *program = parse(arena, text, "t");
        tl_status status = tl_program_verify(program, &diag);
        if (status != TL_BAD_IR || strstr(diag.text, verifier_refusals[i].sentence) == NULL)
            fail_msg("%s\ngot:      %s\nexpected: %s", text, diag.text,
                     verifier_refusals[i].sentence);
        assert_int_equal(tl_program_verify(program, NULL), TL_BAD_IR);
        tl_arena_destroy(arena);
    }
}

/* Lanes add up in a tree: not in a strict kernel, whose word is part of its text and its hash. */
static void strict_kernels_keep_their_sums(void **state)
{
    (void)state;
    static const char body[] =
        HEADER "  for i in 0..8\n    for k in 0..8 vectorized\n      block b\n"
               "        spatial i\n        reduce k\n"
               "        C[i, 0] = %s(A[i, k])\n";
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    const char *sum = tl_arena_format(arena, body, "sum");
    tl_program *relaxed = parse(arena, sum, "t");
    tl_program *strict = parse(arena, tl_arena_format(arena, "strict %s", sum), "t");
    assert_int_equal(tl_program_verify(relaxed, NULL), TL_OK);
    assert_int_equal(tl_program_verify(strict, &diag), TL_BAD_IR);
    assert_non_null(strstr(diag.text, "block b: the kernel is strict, and loop k"));
    assert_true(strict->strict && tl_program_hash(strict) != tl_program_hash(relaxed));
    assert_int_equal(strncmp(tl_program_text(arena, strict), "strict kernel t(", 16), 0);
    const char *most = tl_arena_format(arena, body, "max");
    strict = parse(arena, tl_arena_format(arena, "strict %s", most), "t");
    assert_int_equal(tl_program_verify(strict, NULL), TL_OK);
    tl_arena_destroy(arena);
}

/* A predicate, a guard or clipping makes the same accesses right. */
static void verifier_accepts(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "  for i in 0..2\n    for j in 0..5\n      block b\n        spatial k in 0..8 = i*5 + j\n"
        "        where i*5 + j < 8\n        P[k] = 0\n",
        "  for i in 0..8\n    block b\n      spatial i\n"
        "      P[i] = select(i >= 1, I[i - 1], 0)\n",
        "  for i in 0..8\n    block b\n      spatial i\n      P[i] = I[max(i - 1, 0)]\n",
        "  for i in 0..8\n    block b\n      spatial i\n      P[i] = I[I[i]]\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program = parse(arena, tl_arena_format(arena, HEADER "%s", bodies[i]), "t");
        if (tl_program_verify(program, &diag) != TL_OK)
            fail_msg("%s\n%s", bodies[i], diag.text);
        tl_arena_destroy(arena);
    }
}

/* ---- hostile texts ---- */

static void repeat(tl_text *text, const char *what, int count)
{
    for (int i = 0; i < count; i++)
        tl_text_add(text, what);
}

/* Deep and long texts are refused (or read) in good time and without running out of stack. */
static void hostile_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *before, *piece, *after;
        int count;
        const char *sentence; /* NULL: it is fine */
        const char *closing;  /* after that, as often as the piece */
    } cases[] = {
        { HEADER "  P[0] = ", "(", "1", 400, "nested more than 100 deep", ")" },
        { HEADER "  P[0] = ", "(", "1", 100000, "more than 500 brackets are open", NULL },
        { HEADER "  P[0] = ", "-", "1\n", 100000, "more than 1000 operators", NULL },
        { HEADER "  P[0] = 1", " + I[0]*I[1]", "\n", 100000, "more than 1000 operators", NULL },
        { HEADER "  P[0] = 1", " + (I[0] + 1) % 7", "\n", 200, NULL, NULL },
        { HEADER "  C[0, 0] = 1", " + A[0, 0]", "\n", 990, NULL, NULL },
        { HEADER "  P[0] = ", "min(I[0] % 5, ", "1", 90, "the text ends inside a bracket", NULL },
        { HEADER, "  P[0] = 1\n", "", 20000, NULL, NULL },
        { HEADER "  P[0] = ", "9", "\n", 5000, "longer than 200 characters", NULL },
        { HEADER "  ", "x", " = 1\n", 5000, "longer than 200 characters", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *program;
        tl_text text = { 0 };
        tl_text_add(&text, cases[i].before);
        repeat(&text, cases[i].piece, cases[i].count);
        tl_text_add(&text, cases[i].after);
        repeat(&text, cases[i].closing == NULL ? "" : cases[i].closing, cases[i].count);
        tl_status status = tl_program_parse(arena, tl_text_get(&text), "t", &program, &diag);
        bool good = cases[i].sentence == NULL
                        ? status == TL_OK
                        : status == TL_BAD_TEXT && strstr(diag.text, cases[i].sentence) != NULL;
        if (!good)
            fail_msg("case %zu: %s", i, diag.text);
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *program;
    tl_text text = { 0 };
    tl_text_add(&text, HEADER);
    for (int i = 0; i < 300; i++) {
        tl_text_indent(&text, 2 + i);
        tl_text_format(&text, "for i%d in 0..2\n", i);
    }
    assert_int_equal(tl_program_parse(arena, tl_text_get(&text), "t", &program, &diag),
                     TL_BAD_TEXT);
    assert_non_null(strstr(diag.text, "nested more than 200 deep"));
    tl_text_free(&text);
    tl_arena_destroy(arena);
}

/* A golden text with bytes changed either parses or is refused with a position; what parses prints a
 * text that parses to the same. */
static void broken_texts(void **state)
{
    (void)state;
    static const char *const texts[] = { "gemm_packed", "lowered", "statements", "stages" };
    static const char junk[] = "()[]{}.,:=<>+-*/%#\n 019aAiM_\txfor";
    const char *given = getenv("TL_SEED");
    uint64_t seed = given == NULL ? 1 : strtoull(given, NULL, 10);
    for (uint64_t end = seed + 3000; seed < end; seed++) {
        tl_arena *arena = tl_arena_create(0);
        tl_random random = tl_random_make(seed);
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        tl_program *program, *again;
        char *path = tl_arena_format(arena, "tests/golden/ir/%s.tk", texts[seed % 4]);
        assert_int_equal(tl_file_read(path, &text, &diag), TL_OK);
        for (int64_t n = 1 + tl_random_below(&random, 3); n > 0; n--)
            text.data[tl_random_below(&random, (int64_t)text.size)] =
                junk[tl_random_below(&random, (int64_t)sizeof junk - 1)];
        if (tl_program_parse(arena, text.data, "t", &program, &diag) != TL_OK) {
            assert_int_equal(strncmp(diag.text, "t:", 2), 0);
        } else {
            const char *printed = tl_program_text(arena, program);
            if (tl_program_parse(arena, printed, "t", &again, &diag) != TL_OK)
                fail_msg("TL_SEED=%llu: %s\n%s", (unsigned long long)seed, diag.text, printed);
            if (strcmp(printed, tl_program_text(arena, again)) != 0)
                fail_msg("TL_SEED=%llu: prints differently:\n%s\n%s", (unsigned long long)seed,
                         printed, tl_program_text(arena, again));
            tl_program_verify(program, &diag);
        }
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

/* Wherever memory runs out while parsing, the guard is reached. */
static void out_of_memory(void **state)
{
    (void)state;
    tl_text text = { 0 };
    tl_diag diag = { 0 };
    assert_int_equal(tl_file_read("tests/golden/ir/statements.tk", &text, &diag), TL_OK);
    for (volatile size_t n = 1; n < 400; n++) {
        tl_arena *arena = tl_arena_create(0);
        tl_program *program;
        if (TL_ARENA_GUARD(arena) == 0) {
            tl_arena_fail_at(arena, n);
            (void)tl_program_parse(arena, tl_text_get(&text), "t", &program, &diag);
            fail_msg("allocation %zu did not fail", n);
        }
        tl_arena_destroy(arena);
    }
    tl_text_free(&text);
}

/* ---- names ---- */

/* Programs built with clashing and impossible names print so that they parse. */
static void names_are_made_unique(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    int64_t shape[2] = { 4, 4 };
    tl_buffer *x = tl_buffer_make_static(arena, "/layer/x:0", TL_F32, TL_ROLE_INPUT,
                                         TL_SCOPE_GLOBAL, 2, shape);
    tl_buffer *y =
        tl_buffer_make_static(arena, "max", TL_F32, TL_ROLE_OUTPUT, TL_SCOPE_GLOBAL, 2, shape);
    const tl_expr *four = tl_int(arena, 4);
    tl_var *i = tl_var_make(arena, "i", 0, 3), *inner = tl_var_make(arena, "i", 0, 3);
    tl_iter iters[2] = {
        { tl_var_make(arena, "i", 0, 3), TL_ITER_SPATIAL, four, tl_ref(arena, inner) },
        { tl_var_make(arena, "i", 0, 3), TL_ITER_SPATIAL, four, tl_ref(arena, i) },
    };
    const tl_expr *indices[2] = { tl_ref(arena, iters[0].var), tl_ref(arena, iters[1].var) };
    tl_store store = { y, indices, tl_load(arena, x, indices) };
    tl_block block = { .name = "4 copy", .iter_count = 2, .iters = iters };
    block.store_count = 1;
    block.stores = &store;
    const tl_stmt *body = tl_stmt_block(arena, &block);
    body = tl_stmt_loop(arena, inner, four, TL_LOOP_SERIAL, body);
    body = tl_stmt_loop(arena, i, four, TL_LOOP_SERIAL, body);
    const tl_buffer *params[2] = { x, y };
    tl_program program = { .name = "k", .param_count = 2, .params = params, .body = body };
    const char *text = tl_program_text(arena, &program);
    assert_string_equal(text, "kernel k(__layer_x_0: f32[4, 4], out max_1: f32[4, 4])\n"
                              "  for i in 0..4\n"
                              "    for i_1 in 0..4\n"
                              "      block _4_copy\n"
                              "        spatial i_1, i\n"
                              "        max_1[i_1, i] = __layer_x_0[i_1, i]\n");
    tl_program *again = parse(arena, text, "printed");
    assert_string_equal(tl_program_text(arena, again), text);
    assert_true(tl_program_hash(&program) == tl_program_hash(again));
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_texts),
        cmocka_unit_test(parser_refuses),
        cmocka_unit_test(header_refused),
        cmocka_unit_test(verifier_refuses),
        cmocka_unit_test(strict_kernels_keep_their_sums),
        cmocka_unit_test(verifier_accepts),
        cmocka_unit_test(hostile_sizes),
        cmocka_unit_test(broken_texts),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("program texts", tests, NULL, NULL);
}
