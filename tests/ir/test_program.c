/* tests/ir/test_program.c: rewriting statements, regions, structure, targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/program/program.h"
#include "ir/program/target.h"

static const char *const conv =
    "kernel conv(X: f32[16, 30, 30], const W: f32[32, 16, 3, 3], out Y: f32[32, 14, 14])\n"
    "  for m in 0..32\n"
    "    for h in 0..14\n"
    "      for w in 0..14\n"
    "        for c in 0..16\n"
    "          for r in 0..3\n"
    "            for s in 0..3\n"
    "              block conv\n"
    "                spatial m, h, w\n"
    "                reduce c, r, s\n"
    "                Y[m, h, w] = sum(X[c, h*2 + r, w*2 + s]*W[m, c, r, s])\n";

static tl_program *parse(tl_arena *arena, const char *text)
{
    tl_diag diag = { 0 };
    tl_program *program = NULL;
    if (tl_program_parse(arena, text, "t", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static void check_region(tl_arena *arena, const tl_region *region, const char *expected)
{
    const char *text = region->buffer->name;
    for (int i = 0; i < region->buffer->rank; i++)
        text = tl_arena_format(arena, "%s [%s +%s]", text, tl_expr_text(arena, region->begin[i]),
                               tl_expr_text(arena, region->extent[i]));
    assert_string_equal(text, expected);
}

static void regions_of_a_convolution(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_block *block = tl_program_find_block(parse(arena, conv), "conv");
    const tl_region *regions;
    assert_int_equal(tl_block_writes(arena, block, &regions), 1);
    check_region(arena, &regions[0], "Y [m +1] [h +1] [w +1]");
    assert_int_equal(tl_block_reads(arena, block, &regions), 2);
    check_region(arena, &regions[0], "X [c +1] [h*2 + r +1] [w*2 + s +1]");

    const tl_var *vars[3] = { block->iters[3].var, block->iters[4].var, block->iters[2].var };
    const tl_expr *extents[3] = { block->iters[3].extent, block->iters[4].extent,
                                  block->iters[2].extent };
    tl_region relaxed = tl_region_relax(arena, &regions[0], vars, extents, 3);
    check_region(arena, &relaxed, "X [0 +16] [h*2 +3] [s +27]");
    tl_arena_destroy(arena);
}

static void regions_join_and_give_up(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_program *p =
        parse(arena, "kernel t(dim M in 1..9, A: f32[M, 40], I: i64[8], out Y: f32[8])\n"
                     "  for i in 0..8\n"
                     "    block a\n"
                     "      spatial i\n"
                     "      Y[i] = A[0, i*4 + 1] + A[0, i*4 - 1] + A[I[i], i*4]\n"
                     "  for i in 0..8\n"
                     "    block b\n"
                     "      spatial i\n"
                     "      Y[i] = A[0, i] + A[0, 7 - i]\n"
                     "  for i in 0..8\n"
                     "    block c\n"
                     "      spatial i\n"
                     "      Y[i] = A[0, (i*8 + 3)//4]\n");
    const tl_region *regions;
    assert_int_equal(tl_block_reads(arena, tl_program_find_block(p, "a"), &regions), 2);
    check_region(arena, &regions[0], "A [0 +M] [i*4 - 1 +3]");
    check_region(arena, &regions[1], "I [i +1]");
    tl_block_reads(arena, tl_program_find_block(p, "b"), &regions);
    check_region(arena, &regions[0], "A [0 +1] [0 +40]");
    const tl_block *c = tl_program_find_block(p, "c");
    tl_block_reads(arena, c, &regions);
    const tl_expr *extent = tl_int(arena, 3);
    tl_region relaxed = tl_region_relax(arena, &regions[0], &c->iters[0].var, &extent, 1);
    check_region(arena, &relaxed, "A [0 +1] [0 +5]");
    tl_arena_destroy(arena);
}

static void substitution_keeps_what_stays(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_program *p = parse(arena, conv);
    tl_var *other = tl_var_make(arena, "other", 0, 1);
    tl_binding nothing = { other, tl_int(arena, 0) };
    assert_ptr_equal(tl_stmt_substitute(arena, p->body, &nothing, 1), p->body);

    tl_binding first = { p->body->u.loop.var, tl_int(arena, 5) };
    const tl_stmt *body = tl_stmt_substitute(arena, p->body->u.loop.body, &first, 1);
    tl_program *q = tl_program_copy(arena, p);
    q->body = body;
    const tl_block *block = tl_program_find_block(q, "conv");
    assert_true(tl_is_int(block->iters[0].binding, 5));
    assert_ptr_equal(block->stores, tl_program_find_block(p, "conv")->stores);
    const tl_expr *bound = tl_block_bind(arena, block, block->stores[0].indices[0]);
    assert_true(tl_is_int(bound, 5));
    tl_diag diag = { 0 };
    assert_int_equal(tl_program_verify(q, &diag), TL_OK);

    const tl_buffer *w = tl_program_find_buffer(p, "W");
    int64_t shape[4] = { 32, 16, 3, 3 };
    tl_buffer *v =
        tl_buffer_make_static(arena, "V", TL_F32, TL_ROLE_CONST, TL_SCOPE_GLOBAL, 4, shape);
    q->body = tl_stmt_replace_buffer(arena, p->body, w, v);
    assert_non_null(strstr(tl_program_text(arena, q), "*V[m, c, r, s]"));
    assert_int_equal(tl_program_verify(q, &diag), TL_BAD_IR); /* V is nobody's parameter */
    tl_arena_destroy(arena);
}

static const tl_stmt *drop_blocks(tl_arena *arena, const tl_stmt *s, void *context)
{
    (void)arena;
    (void)context;
    return s->kind == TL_STMT_BLOCK ? NULL : s;
}

static void empty_loops_go(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_null(tl_stmt_rewrite(arena, parse(arena, conv)->body, drop_blocks, NULL));
    tl_arena_destroy(arena);
}

/* The text with every `from` replaced. */
static const char *with(tl_arena *arena, const char *text, const char *from, const char *to)
{
    const char *at;
    const char *out = "";
    while ((at = strstr(text, from)) != NULL) {
        out = tl_arena_format(arena, "%s%.*s%s", out, (int)(at - text), text, to);
        text = at + strlen(from);
    }
    return tl_arena_format(arena, "%s%s", out, text);
}

static void structure_ignores_names(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_program *p = parse(arena, conv);
    tl_program *renamed = parse(arena, with(arena, with(arena, conv, "h", "zh"), "X", "Image"));
    tl_program *wider = parse(arena, with(arena, with(arena, conv, "16", "64"), "f32", "f16"));
    tl_program *depthwise = parse(arena, with(arena, conv, "X[c,", "X[m//2,"));
    assert_true(tl_program_hash(p) == tl_program_hash(renamed));
    assert_true(tl_program_hash(p) != tl_program_hash(wider));
    const char *class = tl_program_class_text(arena, p);
    assert_string_equal(class, tl_program_class_text(arena, renamed));
    assert_string_equal(class, tl_program_class_text(arena, wider));
    assert_string_not_equal(class, tl_program_class_text(arena, depthwise));
    tl_arena_destroy(arena);
}

/* ---- targets ---- */

static void targets_print_and_parse(void **state)
{
    (void)state;
    static const char *const names[] = { "x86-64",  "x86-64-v3", "x86-64-v4",  "aarch64",
                                         "nvptx64", "cuda",      "cuda,sm_80", "nvptx64,sm_90a" };
    static const int lanes[] = { 4, 8, 16, 4, 1, 1, 1, 1 };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tl_target target, again;
        tl_diag diag = { 0 };
        tl_text text = { 0 }, second = { 0 };
        assert_int_equal(tl_target_named(names[i], &target, &diag), TL_OK);
        assert_int_equal(tl_target_lanes(&target, TL_F32), lanes[i]);
        assert_true(tl_target_is_gpu(&target) == (i >= 4));
        tl_target_print(&target, &text);
        if (tl_target_parse(tl_text_get(&text), &again, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(again.gpu.sm, target.gpu.sm);
        tl_target_print(&again, &second);
        assert_string_equal(tl_text_get(&text), tl_text_get(&second));
        tl_text_free(&text);
        tl_text_free(&second);
    }
}

static void generations_of_gpus(void **state)
{
    static const struct {
        int major, minor;
        const char *arch;
    } cases[] = { { 6, 1, NULL },    { 7, 0, "sm_70" },  { 7, 2, "sm_70" }, { 8, 0, "sm_80" },
                  { 8, 7, "sm_86" }, { 9, 0, "sm_90a" }, { 10, 0, "sm_90" } };
    tl_target target;
    tl_diag diag = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *arch = tl_target_gpu_arch(cases[i].major, cases[i].minor);
        assert_true((arch == NULL) == (cases[i].arch == NULL));
        if (arch != NULL)
            assert_string_equal(arch, cases[i].arch);
    }
    assert_int_equal(tl_target_named("cuda,sm_90a", &target, &diag), TL_OK);
    assert_true(target.gpu.sm == 90 && target.gpu.is_exact && target.gpu.shared_block == 227 << 10);
    static const struct {
        const char *name, *sentence;
        tl_status status;
    } unknown[] = {
        { "cuda,sm_20", "sm_20 is too old: sm_70 or a newer one is needed; known are sm_70, ",
          TL_UNSUPPORTED },
        { "nvptx64,sm_120", "sm_120 is not known: its GPUs run code for sm_90; known are sm_70, ",
          TL_UNSUPPORTED },
        { "cuda,sm_100f", "its GPUs run code for sm_90; known", TL_UNSUPPORTED },
        { "cuda,sm_xx", "there is no GPU target sm_xx; known are sm_70, ", TL_BAD_ARGUMENT },
        { "cuda,sm_9", "no GPU target sm_9;", TL_BAD_ARGUMENT },
        { "cuda,sm_9000", "no GPU target sm_9000;", TL_BAD_ARGUMENT },
        { "cuda,sm_90b", "no GPU target sm_90b;", TL_BAD_ARGUMENT },
        { "cuda,sm", "no GPU target sm;", TL_BAD_ARGUMENT },
        { "cuda,", "no GPU target ;", TL_BAD_ARGUMENT },
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(tl_target_named(unknown[i].name, &target, &diag), unknown[i].status);
        if (strstr(diag.text, unknown[i].sentence) == NULL)
            fail_msg("%s: %s", unknown[i].name, diag.text);
    }
}

static void targets_refuse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "cores=2", "the field isa is missing" },
        { "isa=AVX9", "there is no ISA AVX9" },
        { "isa=AVX2 speed=9", "there is no field speed" },
        { "isa=AVX2 l1=-4", "l1=-4 is not a number" },
        { "isa=AVX2 cores=0", "cores=0 leaves nothing" },
        { "isa=AVX2 cores=99999999999999999999", "is not a number up to" },
        { "isa=AVX2 cores", "cores is not KEY=VALUE" },
        { "isa=AVX2 cpu=0123456789012345678901234567890123456789", "cpu is longer than 31" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_target target;
        tl_diag diag = { 0 };
        assert_int_equal(tl_target_parse(cases[i].text, &target, &diag), TL_BAD_TEXT);
        if (strstr(diag.text, cases[i].sentence) == NULL)
            fail_msg("%s: %s", cases[i].text, diag.text);
    }
    tl_target target;
    tl_diag diag = { 0 };
    assert_int_equal(tl_target_named("pdp11", &target, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "there is no target pdp11; known are x86-64, "));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_a_convolution),      cmocka_unit_test(regions_join_and_give_up),
        cmocka_unit_test(substitution_keeps_what_stays), cmocka_unit_test(empty_loops_go),
        cmocka_unit_test(structure_ignores_names),       cmocka_unit_test(targets_print_and_parse),
        cmocka_unit_test(generations_of_gpus),           cmocka_unit_test(targets_refuse),
    };
    return cmocka_run_group_tests_name("programs", tests, NULL, NULL);
}
