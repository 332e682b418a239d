/* tests/codegen/test_compile.c: compiling as such: what is refused is refused in a sentence, objects are closed, texts
 * and keys say what they must, compiles leave nothing behind, and several threads compile at once. What the code
 * computes is the business of test_programs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "schedule/sketch/sketch.h"
#include "tests/codegen/compiled.h"
#include "tests/support/sketch_programs.h"

static const char copy[] =
    "kernel k(A: f32[37], out B: f32[37])\n"
    "  for i in 0..37 vectorized\n    block b\n      spatial i\n      B[i] = A[i]*2.0 + 1.0\n";
static const char gemm[] =
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
    "0.0)\n";

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

/* What is not compiled, and the words that must be in the sentence. */
static const struct {
    const char *name, *text, *words;
} refusals[] = {
    { "a loop of a GPU",
      "kernel k(A: f32[8], out B: f32[8])\n  for i in 0..8 blockIdx.x\n    block b\n      spatial "
      "i\n      B[i] = A[i]\n",
      "blockIdx.x, which a CPU has not" },
    { "a register buffer with a variable index",
      "kernel k(A: f32[8], out B: f32[8])\n  for p in 0..1 parallel\n    alloc T: f32[8] "
      "register\n    for i in 0..8\n      block t\n        spatial i\n"
      "        T[i] = A[i]\n    for i in 0..8\n      block b\n        spatial i\n        B[i] = "
      "T[i]\n",
      "register buffer T: its index contains i, which is no constant" },
    { "a shared buffer",
      "kernel k(A: f32[8], out B: f32[8])\n  for p in 0..1 parallel\n    alloc T: f32[8] shared\n  "
      "  for i in 0..8\n      block t\n        spatial i\n"
      "        T[i] = A[i]\n    for i in 0..8\n      block b\n        spatial i\n        B[i] = "
      "T[i]\n",
      "scope shared, which a CPU has not" },
};

static void refused(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof refusals / sizeof refusals[0]; r++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { "" };
        tl_program *program;
        tl_target target;
        tl_text object = { 0 };
        must(tl_program_parse(arena, refusals[r].text, refusals[r].name, &program, &diag), &diag,
             refusals[r].name);
        must(compiled_target(NULL, &target, &diag), &diag, "target");
        tl_status status = tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT,
                                              &object, NULL, &diag);
        if (status == TL_OK || strstr(diag.text, refusals[r].words) == NULL)
            fail_msg("%s: expected \"%s\", got \"%s\"", refusals[r].name, refusals[r].words,
                     diag.text);
        tl_text_free(&object);
        tl_arena_destroy(arena);
    }
}

/* An object that needs a symbol from outside, or is none at all, is not linked. */
static void objects_are_closed(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    tl_text object = { 0 };
    tl_descriptor descriptor;
    tl_jit *jit;
    tl_jit_kernel *kernel;
    must(tl_program_parse(arena, copy, "k.tk", &program, &diag), &diag, "parse");
    must(compiled_target(NULL, &target, &diag), &diag, "target");
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT, &object, &descriptor,
                            &diag),
         &diag, "k");
    must(tl_jit_create(&target, &jit, &diag), &diag, "jit");
    assert_int_equal(tl_jit_add(jit, "not an object", 13, &descriptor, &kernel, &diag),
                     TL_BAD_ARGUMENT);
    for (size_t size = 0; size < object.size; size += 97) { /* cut anywhere: refused, or harmless */
        char *cut = malloc(size + 1);
        memcpy(cut, object.data, size);
        assert_int_not_equal(tl_jit_add(jit, cut, size, &descriptor, &kernel, &diag), TL_OK);
        free(cut);
    }
    descriptor.name = "other";
    assert_int_equal(tl_jit_add(jit, object.data, object.size, &descriptor, &kernel, &diag),
                     TL_INTERNAL);
    descriptor.name = "k";
    for (int i = 0; i < 20; i++) { /* added, removed, added: the library is used again */
        must(tl_jit_add(jit, object.data, object.size, &descriptor, &kernel, &diag), &diag, "add");
        assert_non_null(tl_jit_phase(kernel, 0));
        assert_null(tl_jit_phase(kernel, 1));
        tl_jit_remove(kernel);
    }
    tl_jit_destroy(jit);
    tl_text_free(&object);
    tl_arena_destroy(arena);
}

static void texts_and_keys(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target, other;
    tl_text llvm = { 0 }, assembly = { 0 };
    char a[33], b[33];
    must(tl_program_parse(arena, copy, "k.tk", &program, &diag), &diag, "parse");
    must(compiled_target(NULL, &target, &diag), &diag, "target");
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_LLVM, &llvm, NULL, &diag),
         &diag, "llvm");
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_ASSEMBLY, &assembly, NULL,
                            &diag),
         &diag, "asm");
    assert_non_null(strstr(tl_text_get(&llvm), "define void @k_0("));
    assert_non_null(strstr(tl_text_get(&assembly), "k_0:"));
    tl_text_free(&llvm);
    tl_text_free(&assembly);
    tl_codegen_key(program, false, &target, a);
    tl_codegen_key(program, false, &target, b);
    assert_string_equal(a, b);
    tl_codegen_key(program, true, &target, b);
    assert_string_not_equal(a, b);
    must(tl_target_named("x86-64", &other, &diag), &diag, "named");
    tl_codegen_key(program, false, &other, b);
    assert_string_not_equal(a, b);
    assert_int_equal(tl_codegen_compile(arena, program, true, &target, TL_EMIT_OBJECT, &llvm, NULL,
                                        &diag),
                     TL_BAD_ARGUMENT);
    tl_codegen_own_process(); /* other options, other code */
    tl_codegen_key(program, false, &target, b);
    assert_string_not_equal(a, b);
    tl_arena_destroy(arena);
}

/* Six rows of 14 columns are twelve vectors and fit into sixteen registers: 14 is 8 and 6, of which the 6 are one vector, and
 * nothing that lies behind them is kept. */
static void rests_stay_in_registers(void **state)
{
    (void)state;
    static const char text[] =
        "kernel k(A: f32[99, 14], B: f32[6, 99], out C: f32[6, 14])\n"
        "  alloc acc: f32[6, 14] register\n"
        "  for i in 0..6 unrolled\n    for j in 0..14 vectorized\n      block clear\n"
        "        spatial i, j\n        acc[i, j] = 0.0\n"
        "  for k in 0..99\n    for i in 0..6 unrolled\n      for j in 0..14 vectorized\n"
        "        block product\n          spatial i, j\n          reduce k\n"
        "          acc[i, j] sum= B[i, k]*A[k, j]\n"
        "  for i in 0..6 unrolled\n    for j in 0..14 vectorized\n      block copy\n"
        "        spatial i, j\n        C[i, j] = acc[i, j]\n";
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    tl_text assembly = { 0 };
    int products = 0;
    must(tl_program_parse(arena, text, "k.tk", &program, &diag), &diag, "parse");
    must(tl_target_named("x86-64-v3", &target, &diag), &diag, "target");
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_ASSEMBLY, &assembly, NULL,
                            &diag),
         &diag, "asm");
    const char *body = strstr(tl_text_get(&assembly), "k_0.body:");
    assert_non_null(body);
    for (const char *at = body; (at = strstr(at, "\tvfmadd")) != NULL; at++)
        products++;
    assert_int_equal(products, 12);
    assert_null(strstr(body, "vblend"));
    assert_null(strstr(body, "(%rsp), %ymm")); /* nothing is spilled */
    tl_text_free(&assembly);
    tl_arena_destroy(arena);
}

/* What was compiled before, and for which target, is not seen in the code. */
static void earlier_compiles_leave_nothing(void **state)
{
    (void)state;
    static const char *const names[] = { "x86-64-v3", "x86-64", "x86-64-v3", "x86-64" };
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_text assembly[4] = { 0 };
    must(tl_program_parse(arena, copy, "k.tk", &program, &diag), &diag, "parse");
    for (int i = 0; i < 4; i++) {
        tl_target target;
        must(tl_target_named(names[i], &target, &diag), &diag, names[i]);
        must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_ASSEMBLY, &assembly[i],
                                NULL, &diag),
             &diag, names[i]);
    }
    assert_string_equal(tl_text_get(&assembly[0]), tl_text_get(&assembly[2]));
    assert_string_equal(tl_text_get(&assembly[1]), tl_text_get(&assembly[3]));
    assert_string_not_equal(tl_text_get(&assembly[0]), tl_text_get(&assembly[1]));
    for (int i = 0; i < 4; i++)
        tl_text_free(&assembly[i]);
    tl_arena_destroy(arena);
}

static void *compile_many(void *context)
{
    bool *good = context;
    for (int round = 0; round < 3; round++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { "" };
        tl_program *program;
        tl_target target;
        compiled c = { 0 };
        *good = *good && tl_program_parse(arena, gemm, "k.tk", &program, &diag) == TL_OK &&
                compiled_target(NULL, &target, &diag) == TL_OK &&
                compiled_make(arena, program, false, &target, &c, &diag) == TL_OK;
        compiled_free(&c);
        tl_arena_destroy(arena);
    }
    return NULL;
}

static void several_threads_compile(void **state)
{
    (void)state;
    pthread_t threads[4];
    bool good[4] = { true, true, true, true };
    for (int t = 0; t < 4; t++)
        pthread_create(&threads[t], NULL, compile_many, &good[t]);
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
        assert_true(good[t]);
    }
}

/* What must not be in the code of a default schedule. */
static const struct {
    const char *program, *target, *words[4];
} unwanted[] = {
    /* rests of rows in registers need no blend: nothing that lies behind them is kept */
    { "gemm_seven_columns.tk", "x86-64-v4", { "vblend", "%rsp), %ymm" } },
    { "gemm_seven_columns.tk", "x86-64-v3", { "vblend" } },
    /* every second element under a mask is no gather; indices in lanes are words of 32 bits, for AVX2 has neither a product nor
     * a conversion of more */
    { "average_plain_stride2.tk", "x86-64-v4", { "vgather", "vpmullq", "vcvtqq2ps" } },
    { "average_plain_stride2.tk", "x86-64-v3", { "vgather", "vpmuludq", "vcvtsi2ss", "vpcmpgtq" } },
    /* channels in blocks of 16 of what was made in groups of 24: the two orders are one, side by side */
    { "conv_groups_last_batch.tk", "x86-64-v4", { "vgather" } },
};

static const char *program_text; /* of the last visited */

static void keep_text(const char *name, const char *text)
{
    (void)name;
    static char kept[8192];
    assert_true(strlen(text) < sizeof kept);
    strcpy(kept, text);
    program_text = kept;
}

static void default_code_has_none_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { "" };
        tl_program *program;
        tl_target target;
        tl_text assembly = { 0 };
        sketch_programs_visit(unwanted[i].program, keep_text);
        must(tl_program_parse(arena, program_text, "k.tk", &program, &diag), &diag, "parse");
        must(tl_target_named(unwanted[i].target, &target, &diag), &diag, "target");
        target.cores = 1;
        tl_schedule *s = tl_schedule_create(arena, program, &target, false);
        must(tl_schedule_default(s, &diag), &diag, "schedule");
        must(tl_codegen_compile(arena, tl_schedule_program(s), false, &target, TL_EMIT_ASSEMBLY,
                                &assembly, NULL, &diag),
             &diag, "asm");
        for (int w = 0; w < 4 && unwanted[i].words[w] != NULL; w++)
            if (strstr(tl_text_get(&assembly), unwanted[i].words[w]) != NULL)
                fail_msg("%s for %s has %s", unwanted[i].program, unwanted[i].target,
                         unwanted[i].words[w]);
        tl_text_free(&assembly);
        tl_arena_destroy(arena);
    }
}

/* In a process of tilth's own, where no strength reduction of LLVM does it: planes 960 bytes apart and an element of 24 in each
 * row are reached by pointers that move on. */
static void pointers_move(void **state)
{
    (void)state;
    static const char text[] =
        "kernel k(x: f32[16, 240], w: f32[16, 8], out y: f32[40, 30])\n"
        "  for i in 0..40 parallel\n    alloc acc: f32[8] register\n"
        "    for c in 0..8 vectorized\n      block clear\n        spatial c\n        acc[c] = 0.0\n"
        "    for p in 0..16\n      for l in 0..8\n        for c in 0..8 vectorized\n"
        "          block add\n            spatial c\n            reduce p, l\n"
        "            acc[c] sum= x[p, l]*w[l, c]\n"
        "    for c in 0..8 vectorized\n      block copy\n        spatial i, c\n"
        "        y[i, c] = acc[c]\n";
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    tl_text assembly = { 0 };
    int products = 0;
    tl_codegen_own_process();
    must(tl_program_parse(arena, text, "k.tk", &program, &diag), &diag, "parse");
    must(tl_target_named("x86-64-v3", &target, &diag), &diag, "target");
    must(tl_codegen_compile(arena, program, false, &target, TL_EMIT_ASSEMBLY, &assembly, NULL,
                            &diag),
         &diag, "asm");
    const char *body = strstr(tl_text_get(&assembly), "k_0.body:");
    assert_non_null(body);
    const char *loop = strstr(body, "\n.LBB"), *end = strstr(body, ".Lfunc_end");
    assert_true(loop != NULL && end != NULL && loop < end);
    for (const char *at = loop; (at = strstr(at, "\timul")) != NULL && at < end; at++)
        products++;
    assert_int_equal(products, 0);
    tl_text_free(&assembly);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(objects_are_closed),
        cmocka_unit_test(rests_stay_in_registers),
        cmocka_unit_test(default_code_has_none_of),
        cmocka_unit_test(earlier_compiles_leave_nothing),
        cmocka_unit_test(several_threads_compile),
        cmocka_unit_test(texts_and_keys), /* owns the process */
        cmocka_unit_test(pointers_move),
    };
    return cmocka_run_group_tests_name("codegen", tests, NULL, NULL);
}
