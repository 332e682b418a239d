/* tests/schedule/test_sketch.c: the default schedule of every program in tests/golden/sketch, for every target, leaves the
 * interpreted result as it was (under strict numerics bit for bit, the reference schedule always), verifies, prints and
 * parses, and its trace replays to the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/index.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/support/sketch_programs.h"

static const char *const targets[] = { "x86-64", "x86-64-v3", "x86-64-v4", "aarch64",
                                       "cuda,sm_80" };
enum { CPU_TARGETS = 4 }; /* they come first */

typedef struct {
    tl_argument arguments[16];
    int count;
} call;

static void make_call(tl_arena *arena, const tl_program *program, call *c)
{
    tl_random random = tl_random_make(7);
    c->count = program->param_count;
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        int64_t n = tl_buffer_max_elements(b);
        void *data = tl_arena_alloc(arena, (size_t)n * tl_dtype_size(b->dtype), 64);
        for (int64_t k = 0; k < n && b->role != TL_ROLE_OUTPUT; k++) {
            tl_number value;
            if (tl_dtype_is_float(b->dtype))
                value.f = tl_random_unit(&random) - 0.5;
            else
                value.i = tl_random_below(&random, 5);
            tl_number_store(b->dtype, data, (size_t)k, value);
        }
        c->arguments[i] = (tl_argument){ b, data };
    }
}

static void compare(const tl_program *program, const call *want, const call *got, double tolerance,
                    const char *name, const char *target)
{
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        for (int64_t k = 0; b->role == TL_ROLE_OUTPUT && k < tl_buffer_max_elements(b); k++) {
            double w = tl_number_load(b->dtype, want->arguments[i].data, (size_t)k).f;
            double g = tl_number_load(b->dtype, got->arguments[i].data, (size_t)k).f;
            if (!(fabs(w - g) <= tolerance * (1 + fabs(w))))
                fail_msg("%s for %s: %s[%lld] is %.9g, not %.9g", name, target, b->name,
                         (long long)k, g, w);
        }
    }
}

typedef tl_status scheduler(tl_schedule *s, tl_diag *diag);

static tl_status schedule_reference(tl_schedule *s, tl_diag *diag)
{
    return tl_schedule_reference(s, 1, diag);
}

static void check(const char *name, const char *text, const char *target_name,
                  scheduler *apply_schedule, bool strict)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive, *again;
    tl_target target;
    if (tl_program_parse(arena, text, name, &naive, &diag) != TL_OK ||
        tl_program_verify(naive, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    naive->strict = strict;
    assert_int_equal(tl_target_named(target_name, &target, &diag), TL_OK);
    target.cores = 2;

    tl_schedule *s = tl_schedule_create(arena, naive, &target, true);
    if (apply_schedule(s, &diag) != TL_OK)
        fail_msg("%s for %s: %s", name, target_name, diag.text);
    const tl_program *scheduled = tl_schedule_program(s);
    const char *printed = tl_program_text(arena, scheduled);
    if (tl_program_parse(arena, printed, name, &again, &diag) != TL_OK)
        fail_msg("%s for %s: %s\n%s", name, target_name, diag.text, printed);
    /* a sum's terms stand in the order in which their variables were made: as in the text once it was parsed */
    const char *once = tl_program_text(arena, again);
    if (tl_program_parse(arena, once, name, &again, &diag) != TL_OK)
        fail_msg("%s for %s: %s\n%s", name, target_name, diag.text, once);
    assert_string_equal(once, tl_program_text(arena, again));

    tl_text trace_text = { 0 };
    tl_trace *trace;
    tl_trace_print(tl_schedule_trace(s), &trace_text);
    if (tl_trace_parse(arena, tl_text_get(&trace_text), name, &target, &trace, &diag) != TL_OK)
        fail_msg("%s for %s: %s", name, target_name, diag.text);
    tl_schedule *replay = tl_schedule_create(arena, naive, &target, true);
    if (tl_trace_apply(trace, replay, &diag) != TL_OK)
        fail_msg("%s for %s: %s\n%s", name, target_name, diag.text, tl_text_get(&trace_text));
    assert_true(tl_program_hash(tl_schedule_program(replay)) == tl_program_hash(scheduled));
    tl_text_free(&trace_text);

    call want, got;
    make_call(arena, naive, &want);
    make_call(arena, scheduled, &got);
    tl_interpret_options checked = { .check = true };
    if (tl_interpret(naive, want.arguments, want.count, NULL, &checked, &diag) != TL_OK)
        fail_msg("%s, naive: %s", name, diag.text);
    if (tl_interpret(scheduled, got.arguments, got.count, NULL, &checked, &diag) != TL_OK)
        fail_msg("%s for %s: %s\n%s", name, target_name, diag.text, printed);
    double tolerance = strict || apply_schedule == schedule_reference ? 0 : 1e-5;
    if (naive->tf32 && tl_target_is_gpu(&target))
        tolerance = 2e-3;
    compare(naive, &want, &got, tolerance, name, target_name);
    tl_arena_destroy(arena);
}

static void check_program(const char *name, const char *text)
{
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
        check(name, text, targets[t], tl_schedule_default, false);
    check(name, text, "x86-64-v4", tl_schedule_default, true);
    check(name, text, "x86-64-v4", schedule_reference, false);
    check(name, text, "x86-64-v3", schedule_reference, true);
}

static void schedules_keep_the_meaning(void **state)
{
    (void)state;
    sketch_programs_visit(NULL, check_program);
}

/* The schedule of a file's program, as a trace; `strict`: under strict numerics. Below: for so many cores. */
static const char *trace_on(tl_arena *arena, const char *name, scheduler *apply_schedule,
                            bool strict, const tl_target *target)
{
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_text text = { 0 };
    const char *path = tl_arena_format(arena, "%s/%s", SKETCH_PROGRAMS, name);
    assert_int_equal(tl_file_read(path, &text, NULL), TL_OK);
    assert_int_equal(tl_program_parse(arena, tl_text_get(&text), name, &naive, &diag), TL_OK);
    tl_text_free(&text);
    naive->strict = strict;
    tl_schedule *s = tl_schedule_create(arena, naive, target, true);
    assert_int_equal(apply_schedule(s, &diag), TL_OK);
    return tl_trace_text(arena, tl_schedule_trace(s));
}

static const char *trace_for(tl_arena *arena, const char *name, scheduler *apply_schedule,
                             bool strict, int cores)
{
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    target.cores = cores;
    return trace_on(arena, name, apply_schedule, strict, &target);
}

static const char *trace_of(tl_arena *arena, const char *name, scheduler *apply_schedule,
                            bool strict)
{
    return trace_for(arena, name, apply_schedule, strict, 1);
}

static const char *trace_under(tl_arena *arena, const char *name, bool strict)
{
    return trace_of(arena, name, tl_schedule_default, strict);
}

static const char *default_trace(tl_arena *arena, const char *name)
{
    return trace_under(arena, name, false);
}

/* GOLDEN_UPDATE=1 rewrites the file. */
static void expect_golden(const char *path, const char *trace)
{
    tl_text want = { 0 };
    if (getenv("GOLDEN_UPDATE"))
        assert_int_equal(tl_file_write(path, trace, strlen(trace), NULL), TL_OK);
    assert_int_equal(tl_file_read(path, &want, NULL), TL_OK);
    assert_string_equal(trace, tl_text_get(&want));
    tl_text_free(&want);
}

/* Under strict numerics no sum comes in pieces and none in lanes: tests/golden/strict has the traces of programs that
 * have both otherwise. GOLDEN_UPDATE=1 rewrites them. */
static void strict_sums_keep_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *name, *reorders; /* a step of the relaxed trace that adds up in another order */
    } cases[] = {
        { "gemm_long", "rfactor(gemm, k_0)" },
        { "softmax", "split(r, [_, 16])" },
        { "sumall", "vectorize(" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_arena *arena = tl_arena_create(0);
        const char *name = tl_arena_format(arena, "%s.tk", cases[i].name);
        const char *path = tl_arena_format(arena, "tests/golden/strict/%s.tr", cases[i].name);
        const char *trace = trace_under(arena, name, true);
        assert_non_null(strstr(default_trace(arena, name), cases[i].reorders));
        assert_null(strstr(trace, cases[i].reorders));
        expect_golden(path, trace);
        tl_arena_destroy(arena);
    }
}

/* Sums that the tuner's reference computes stand side by side: in lanes and rows, the terms outside; along rows as little as
 * possible is read again; without rows the lanes' pieces follow one another where lines are read.
 * GOLDEN_UPDATE=1 rewrites the traces. */
static void reference_sums_stand_side_by_side(void **state)
{
    (void)state;
    static const char *const names[] = { "gemm_tail", "gemm_one_row", "classifier", "conv_blocked",
                                         "depthwise" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tl_arena *arena = tl_arena_create(0);
        const char *name = tl_arena_format(arena, "%s.tk", names[i]);
        const char *trace = trace_of(arena, name, schedule_reference, true);
        assert_non_null(strstr(trace, "vectorize("));
        expect_golden(tl_arena_format(arena, "tests/golden/reference/%s.tr", names[i]), trace);
        tl_arena_destroy(arena);
    }
}

/* The most products that a register takes one after the other in what the default schedule makes of a program. */
static bool find_chain(const tl_stmt *stmt, void *context)
{
    int64_t *longest = context, steps = 1;
    if (stmt->kind != TL_STMT_BLOCK || stmt->u.block->combiner != TL_COMBINER_SUM ||
        stmt->u.block->stores[0].buffer->scope != TL_SCOPE_REGISTER ||
        stmt->u.block->stores[0].value->kind != TL_EXPR_MUL)
        return true;
    for (int i = 0; i < stmt->u.block->iter_count; i++)
        if (stmt->u.block->iters[i].kind == TL_ITER_REDUCE)
            steps *= tl_expr_range(stmt->u.block->iters[i].extent).max;
    *longest = steps > *longest ? steps : *longest;
    return true;
}

static void find_chain_of(const char *name, const char *text)
{
    for (size_t t = 0; t < CPU_TARGETS; t++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_program *naive;
        tl_target target;
        int64_t longest = 0;
        assert_int_equal(tl_program_parse(arena, text, name, &naive, &diag), TL_OK);
        assert_int_equal(tl_target_named(targets[t], &target, &diag), TL_OK);
        tl_schedule *s = tl_schedule_create(arena, naive, &target, true);
        assert_int_equal(tl_schedule_default(s, &diag), TL_OK);
        tl_stmt_visit(tl_schedule_program(s)->body, find_chain, &longest);
        if (longest > 256)
            fail_msg("%s for %s: a register takes %lld products", name, targets[t],
                     (long long)longest);
        tl_arena_destroy(arena);
    }
}

static void registers_take_few_products(void **state)
{
    (void)state;
    sketch_programs_visit(NULL, find_chain_of);
}

/* Attention block by block of keys: both products get register tiles inside the loops that they share, the second with the
 * running sum as its epilogue, and the keys are packed. GOLDEN_UPDATE=1 rewrites the trace. */
static void products_in_shared_loops_are_tiled(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "compute_at(scores, i_0)", "set_scope(s, register)",        "compute_at(attend, i_0_1)",
        "set_scope(o, register)",  "cache_read(scores, k, global)",
    };
    static const char path[] = "tests/golden/default/attention_online.tr";
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "attention_online.tk");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_non_null(strstr(trace, steps[i]));
    expect_golden(path, trace);
    tl_arena_destroy(arena);
}

/* 60 keys in a block are three panels of 16 and most of a fourth: a panel is a block, or lanes would lie on both sides of its
 * end. */
static void panels_end_where_blocks_of_keys_do(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "attention_online_uneven.tk");
    assert_non_null(strstr(trace, "(x1//60, x2//16, x2%16, x1%60)"));
    tl_arena_destroy(arena);
}

/* Two results a group: the terms of a sum become lanes. */
static void terms_become_lanes(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "conv_few_outputs.tk"), "rfactor(conv, rl)"));
    assert_null(strstr(trace_under(arena, "conv_few_outputs.tk", true), "rfactor"));
    tl_arena_destroy(arena);
}

static bool find_test(const tl_stmt *stmt, void *context)
{
    bool *found = context;
    *found |= stmt->kind == TL_STMT_BLOCK && stmt->u.block->predicate != NULL;
    return true;
}

/* What is left of rows and columns, and where both end, are nests of their own. */
static void lanes_have_no_tests(void **state)
{
    (void)state;
    static const char *const names[] = { "pool_padded_planes.tk", "norm_over_channels.tk" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t t = 0; t < CPU_TARGETS; t++) {
            tl_arena *arena = tl_arena_create(0);
            tl_diag diag = { 0 };
            tl_program *naive;
            tl_target target;
            tl_text text = { 0 };
            const char *path = tl_arena_format(arena, "%s/%s", SKETCH_PROGRAMS, names[i]);
            assert_int_equal(tl_file_read(path, &text, NULL), TL_OK);
            assert_int_equal(tl_program_parse(arena, tl_text_get(&text), names[i], &naive, &diag),
                             TL_OK);
            tl_text_free(&text);
            assert_int_equal(tl_target_named(targets[t], &target, &diag), TL_OK);
            tl_schedule *s = tl_schedule_create(arena, naive, &target, true);
            assert_int_equal(tl_schedule_default(s, &diag), TL_OK);
            bool has_test = false;
            tl_stmt_visit(tl_schedule_program(s)->body, find_test, &has_test);
            if (has_test)
                fail_msg("%s for %s:\n%s", names[i], targets[t],
                         tl_program_text(arena, tl_schedule_program(s)));
            tl_arena_destroy(arena);
        }
}

/* A plain input of a window whose lanes are a block of channels is turned around, though it is read little more than twice. */
static void what_is_read_twice_is_turned(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "depthwise_stride2_plain_input.tk");
    assert_non_null(strstr(trace, "cache_read(conv, X, global)"));
    tl_arena_destroy(arena);
}

/* What lanes would gather is copied in their order, where the copy is a row, an image, or a line of what lanes share. */
static void gathers_become_copies(void **state)
{
    (void)state;
    static const char *const steps[][2] = {
        { "conv_plain_steps.tk", "x3//2%20))" }, /* places of a row last, not images */
        { "depthwise_pointwise_plain.tk", "x_local = cache_read(conv, x, global)" },
        { "depthwise_read_once.tk", "x_local = cache_read(conv, x, global)" },
        { "conv_plain_shortcut.tk", "x_1_local = cache_read(epilogue, x_1, global)" },
        { "depthwise_plain_shortcut.tk", "x_1_local = cache_read(epilogue, x_1, global)" },
        { "shuffle_gate.tk", "x_local = cache_read(map, x, global)" },
        { "shuffle_border.tk", "i1_0, i1_1, i1_2 = split(i1, [_, 16, 2])" },
        { "shuffle_border.tk", "i2_i3 = fuse(i2_1, i3_1)" }, /* in the copy alone */
        { "layer_norm_turned_map.tk",
          "transform_layout(tmp, (x0, x1, x2, x3) -> (x0, x1, x3, x2))" },
        { "layer_norm_short_rows.tk", "cache_read(variance, x, global)" },
        { "layer_norm_shuffled.tk", "compute_inline(map)" }, /* in planes, turned at the end */
        { "conv_groups_two_outputs.tk", "conv_rf = rfactor(conv, rl)" },
    };
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strstr(default_trace(arena, steps[i][0]), steps[i][1]) == NULL)
            fail_msg("%s: no %s", steps[i][0], steps[i][1]);
    tl_arena_destroy(arena);
}

/* Results of a group of plain planes share what is loaded: as many in a tile as divide the group, at most four. */
static void results_of_a_group_share_loads(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *two = default_trace(arena, "conv_groups_planes.tk");
    assert_non_null(strstr(two, "co_0, co_1 = split(co, [_, 2])"));
    const char *three = default_trace(arena, "conv_groups_planes_stride2.tk");
    assert_non_null(strstr(three, "co_0, co_1 = split(co, [_, 3])"));
    tl_arena_destroy(arena);
}

/* Short rows that lie the other way round are turned at the end, and their stages, the root too, stay with a block of them. */
static void short_rows_are_turned_at_the_end(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "layer_norm_turned.tk");
    assert_non_null(strstr(trace, "compute_inline(map)"));
    assert_non_null(strstr(trace, "epilogue_copy = cache_write(epilogue, global)"));
    assert_non_null(strstr(trace, "compute_at(deviation, i2_0)"));
    tl_arena_destroy(arena);
}

/* A plane of fewer columns than a vector has lanes is gone through as one row. */
static void small_planes_are_rows(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    static const char *const programs[] = { "mul_small_planes.tk", "mul_small_planes_blocked.tk",
                                            "shuffle_small_planes.tk" };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        assert_non_null(strstr(default_trace(arena, programs[i]), "i2_i3 = fuse(i2, i3)"));
    tl_arena_destroy(arena);
}

/* Images that do not stay in the last cache together go through all panels one after the other; those that do are walked for each
 * panel. */
static void images_go_outside_where_they_are_many(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    target.cores = 1;
    const char *trace = trace_on(arena, "conv_images.tk", tl_schedule_default, false, &target);
    assert_non_null(strstr(trace, "reorder(co_0, n, oh, "));
    target.l3_bytes = 64 << 10;
    trace = trace_on(arena, "conv_images.tk", tl_schedule_default, false, &target);
    assert_non_null(strstr(trace, "reorder(n, co_0, oh, "));
    tl_arena_destroy(arena);
}

/* Weights that do not stay in L2, but are less than what the image is turned into: two cores have half of the image each, and
 * neither reads what the other has made of its own. One core has no use for halves. */
static void cores_keep_what_they_transform(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    target.l2_bytes = 64 << 10;
    target.cores = 2;
    const char *trace = trace_on(arena, "winograd_bands.tk", tl_schedule_default, false, &target);
    assert_non_null(strstr(trace, "oh_0, oh_1 = split(oh, [_, 8])"));
    assert_non_null(strstr(trace, "compute_at(input_columns, oh_0)"));
    target.cores = 1;
    trace = trace_on(arena, "winograd_bands.tk", tl_schedule_default, false, &target);
    assert_null(strstr(trace, "compute_at(input_columns"));
    tl_arena_destroy(arena);
}

/* Weights that are more than what the images of a batch are turned into: a tile of columns serves all images. */
static void weights_are_read_once_for_a_batch(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = trace_for(arena, "winograd_batch.tk", tl_schedule_default, false, 2);
    assert_non_null(strstr(trace, "reorder(co_0, n, co_1, "));
    trace = trace_for(arena, "winograd_odd.tk", tl_schedule_default, false, 2);
    assert_non_null(strstr(trace, "reorder(n, co_0, co_1, "));
    tl_arena_destroy(arena);
}

/* What lanes would gather is turned around: both operands of a map, the channels of a shuffle, which are taken afterwards, and a
 * copy out of blocks by itself. */
static void results_out_of_blocks_are_turned(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "add_blocks_plain_result.tk");
    assert_non_null(strstr(trace, "cache_read(map, x, global)"));
    assert_non_null(strstr(trace, "cache_read(map, x_1, global)"));
    assert_non_null(strstr(default_trace(arena, "shuffle_plain_result.tk"), "cache_read(map, x, "));
    trace = default_trace(arena, "copy_out_of_blocks.tk");
    assert_null(strstr(trace, "cache_read"));
    assert_non_null(strstr(trace, "i1_0, i1_1 = split(i1, [_, 16])"));
    assert_non_null(strstr(default_trace(arena, "shuffle_rows.tk"), "unroll(c_0)"));
    trace = default_trace(arena, "maxpool_plain_result.tk");
    assert_non_null(strstr(trace, "cache_write(pool, register)"));
    assert_non_null(strstr(trace, "= split(co_2, [_, 16])"));
    tl_arena_destroy(arena);
}

/* Rows of a plane that are no whole vectors go on in each other. */
static void planes_are_summed_up_in_one_loop(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "mean_planes.tk"), "r2_r3 = fuse(r2, r3)"));
    assert_null(strstr(trace_under(arena, "mean_planes.tk", true), "fuse(r2"));
    tl_arena_destroy(arena);
}

/* Sums of windows whose lanes are two elements apart stay in registers, and those of a plain depthwise convolution. */
static void windows_of_planes_are_in_registers(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "pool_planes.tk"), ", register)"));
    const char *trace = default_trace(arena, "depthwise_planes.tk");
    assert_non_null(strstr(trace, "set_scope(acc, register)"));
    assert_non_null(strstr(trace, "oh_0, oh_1 = split(oh, "));
    tl_arena_destroy(arena);
}

/* Two sums at a time where lanes are two elements apart: what more of them are shuffled out of would not stay in registers. */
static void sums_of_shuffled_elements_are_few(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "average_plain_stride2.tk"), "split(oh, [_, 2])"));
    tl_arena_destroy(arena);
}

/* Plain rows that a map writes into blocks of channels are turned around, row by row; the factor lies as it must. */
static void maps_into_blocks_turn_what_is_plain(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "scale_into_blocks.tk");
    assert_non_null(strstr(trace, "x_local = cache_read(map, x, global)"));
    assert_non_null(strstr(trace, "i1_0, i1_1_1 = split(i1_1, [_, 16])"));
    assert_null(strstr(trace, "cache_read(map, s"));
    tl_arena_destroy(arena);
}

/* Squares of eight are half a line of what is written, and two of them follow each other; those of sixteen are a line. Four lines
 * follow each other where rows are 1024 bytes apart, or all of a short row, or of a plane. */
static void transpositions_write_whole_lines(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    tl_diag diag = { 0 };
    assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
    target.cores = 1;
    assert_non_null(
        strstr(trace_on(arena, "transpose_lines.tk", tl_schedule_default, false, &target),
               "reorder(i0, i2_0_0, i1_0, i2_0_1, i1_1, i2_1)"));
    assert_non_null(
        strstr(default_trace(arena, "transpose_lines.tk"), "reorder(i0, i2_0, i1_0, i1_1, i2_1)"));
    assert_non_null(
        strstr(default_trace(arena, "transpose_meeting_rows.tk"), "split(i2_0, [_, 4])"));
    assert_non_null(strstr(default_trace(arena, "transpose_rests_meet.tk"),
                           "reorder(i0_1, i2_1, i1_0, i3_0_1, i1_1_1, i3_1_1)"));
    assert_non_null(strstr(default_trace(arena, "transpose_planes_meet.tk"),
                           "reorder(i0_1, i1_0, i2_1, i3_0_1, i1_1_1, i3_1_1)"));
    tl_arena_destroy(arena);
}

/* A window of 25 products is a loop, in each step of which a sum waits for its own last one: fourteen take turns. One of nine is
 * written out, and takes few of a row. */
static void sums_of_a_loop_take_turns(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "depthwise_5x5.tk"), "split(ow, [_, 14])"));
    assert_non_null(strstr(default_trace(arena, "depthwise.tk"), "split(ow, [_, 5])"));
    tl_arena_destroy(arena);
}

/* In a blocked convolution kw goes on where the channels of a block end, and kh does not where kw ends; with
 * channels outermost, neither does. */
static void reductions_that_walk_on_are_fused(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(trace_under(arena, "conv_blocked.tk", true), "fuse(kw, rl)"));
    assert_null(strstr(trace_under(arena, "conv_blocked.tk", true), "fuse(kh, "));
    assert_null(strstr(default_trace(arena, "conv_stem.tk"), "fuse(kh, kw"));
    /* neighbours in a row shuffle the same vectors only when they are written out together */
    assert_non_null(strstr(default_trace(arena, "conv_grouped.tk"), "unroll(kw)"));
    assert_null(strstr(default_trace(arena, "conv_grouped.tk"), "unroll(kh)"));
    tl_arena_destroy(arena);
}

/* Rows that share elements of a window have its axis written out in the tile and innermost in the packed weights; the rows
 * are those that share, also where these are the lines. A strict sum keeps its order. */
static void windows_are_written_out_where_rows_share(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "conv_blocked.tk");
    assert_non_null(strstr(trace, "kh_1, rl_1, oh_4, ow_4, kw_1, ci_3)"));
    assert_non_null(strstr(trace, "x2, x1%16, x3, x0%16)"));
    trace = default_trace(arena, "conv_window_down.tk");
    assert_non_null(strstr(trace, "_2, kh, ci_1)"));
    assert_non_null(strstr(trace, "oh_0, oh_1 = split(oh, [_, 5])"));
    assert_non_null(strstr(default_trace(arena, "conv_dilated.tk"), "unroll(kw)"));
    assert_null(strstr(trace_under(arena, "conv_dilated.tk", true), "unroll(kw)"));
    tl_arena_destroy(arena);
}

/* Of a 1x1 convolution of an image that leaves L1, the next channels' rows are fetched; not of a window or a small image. */
static void rows_of_the_next_plane_are_fetched(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(strstr(default_trace(arena, "conv_planes.tk"), "prefetch(conv, x, rc, 1, 1)"));
    /* scheduled alone: too long for the tests that run what lies in the other folder */
    const char *copied = default_trace(arena, "../sketch_large/conv_planes_stride2.tk");
    assert_non_null(strstr(copied, "x_local = cache_read(conv, x, global)"));
    assert_non_null(strstr(copied, "prefetch(conv, x_local, rc, 1, 1)"));
    assert_null(strstr(default_trace(arena, "conv_few_channels.tk"), "prefetch(conv, x, "));
    assert_null(strstr(default_trace(arena, "conv_blocked.tk"), "prefetch(conv, X, "));
    tl_arena_destroy(arena);
}

/* The weights of one row come from memory: each vector of a tile from a place of its own, a blocked result's too; the panel of
 * several rows is one piece. */
static void one_row_reads_its_weights_in_streams(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "gemm_one_row.tk");
    assert_non_null(strstr(trace, "transform_layout(B, (x0, x1) -> (x1//16, x0, x1%16))"));
    assert_non_null(strstr(trace, "n_0, n_1_1 = split(n_1, [_, 16])"));
    assert_non_null(strstr(default_trace(arena, "conv_one_place.tk"),
                           "transform_layout(W, (x0, x1) -> (x0//8, x1//8, x1%8, x0%8))"));
    assert_null(strstr(default_trace(arena, "gemm_tail.tk"), "(x1//16, x0, x1%16)"));
    tl_arena_destroy(arena);
}

/* Small panels are fetched several ahead, so that the last ones bring the weights of what runs next; where a second loop moves
 * the panel, too, several ahead would be elsewhere. */
static void weights_are_fetched_ahead_of_the_step(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *before = "prefetch(gemm, B_packed, n_0, ";
    const char *step = strstr(default_trace(arena, "gemm_tail.tk"), before);
    assert_non_null(step);
    assert_true(atoi(step + strlen(before)) > 1);
    assert_non_null(
        strstr(default_trace(arena, "winograd_odd.tk"), "prefetch(product, u, y_1_1, 1, 2)"));
    tl_arena_destroy(arena);
}

/* The zeros around the image of a stem are no copy: its contraction tests for them, once it is tiled. Where other stages
 * stand between, they stay. */
static void borders_are_read_through_a_test(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "conv_stem.tk");
    const char *tiled = strstr(trace, "compute_at(conv, ");
    assert_non_null(tiled);
    assert_non_null(strstr(tiled, "compute_inline(pad)"));
    assert_null(strstr(default_trace(arena, "band.tk"), "compute_inline(pad)"));
    tl_arena_destroy(arena);
}

/* The weights of a depthwise convolution lie a window apart from lane to lane: they are packed, and the window is tiled. */
static void constants_of_lanes_are_packed(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "depthwise.tk");
    assert_non_null(
        strstr(trace, "transform_layout(W, (x0, x1, x2, x3) -> (x0//8, x1, x2, x3, x0%8))"));
    assert_non_null(strstr(trace, "decompose_reduction(conv, kh)"));
    tl_arena_destroy(arena);
}

/* What a window reads is made per band of rows and tile of columns, in registers, not inlined into the window. */
static void windows_bring_contractions_along(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "band.tk");
    assert_non_null(strstr(trace, "compute_at(pad, co_0)"));
    assert_non_null(strstr(trace, "set_scope(acc, register)"));
    assert_null(strstr(trace, "compute_inline(pad)"));
    /* all four vectors of columns at a time would leave no room in L2 for the one band that 19 rows make */
    trace = default_trace(arena, "../default/band_wide.tk");
    assert_non_null(strstr(trace, "co_0, co_1_1 = split(co, [_, 2])"));
    assert_non_null(strstr(trace, "oh_0, oh_1_1 = split(oh, [_, 19])"));
    tl_arena_destroy(arena);
}

/* So is what a contraction reads that a window makes, with the window and, where that is over a contraction, with that one; the
 * residual and the halo of the result are left to the contraction. */
static void contractions_bring_windows_along(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "window_sum.tk");
    assert_non_null(strstr(trace, "compute_at(pad, oh_0)"));
    assert_non_null(strstr(trace, "set_scope(acc, register)"));
    assert_non_null(strstr(trace, "set_scope(acc_1, register)"));
    trace = default_trace(arena, "band_sum.tk");
    assert_non_null(strstr(trace, "compute_at(pad_1, oh_0)"));
    assert_non_null(strstr(trace, "compute_at(pad, co_0_1)"));
    assert_non_null(strstr(trace, "set_scope(acc_2, register)"));
    tl_arena_destroy(arena);
}

/* A row of four and a half vectors is one vectorized loop; one of twelve and a half falls into tiles inside of the loop
 * over rows, which stays the parallel one. */
static void uneven_rows_keep_one_nest(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "conv_uneven_row.tk");
    assert_null(strstr(trace, "split(ci"));
    trace = default_trace(arena, "conv_uneven_tiles.tk");
    assert_non_null(strstr(trace, "loop_partition(ci_0)"));
    assert_non_null(strstr(trace, "reorder(co, n, oh, ci_0, "));
    tl_arena_destroy(arena);
}

/* Rows of seven in sixteen registers: two vectors of four and of three rows wait for their own sums. A processor that broadcasts
 * three times a cycle takes two lines of one vector. */
static void narrow_rows_fill_the_registers(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
    const char *path = "../default/conv_narrow.tk";
    const char *trace = trace_on(arena, path, tl_schedule_default, false, &target);
    assert_non_null(strstr(trace, "split(ow, [_, 4])"));
    assert_non_null(strstr(trace, "split(co, [_, 2])"));
    snprintf(target.cpu, sizeof target.cpu, "alderlake");
    trace = trace_on(arena, path, tl_schedule_default, false, &target);
    assert_non_null(strstr(trace, "split(ow, [_, 7])"));
    assert_non_null(strstr(trace, "split(oh, [_, 2])"));
    assert_non_null(strstr(trace, "split(co, [_, 1])"));
    tl_arena_destroy(arena);
}

/* Operands that are no constants: a panel is copied in front of its rows, a transposed factor in strips, where they would
 * not stay in L1 as they lie; nothing where they do, or few rows use it. */
static void inputs_are_copied_where_it_pays(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "gemm_inputs.tk");
    assert_non_null(strstr(trace, "compute_at(B_local, j_0)"));
    assert_non_null(strstr(trace, "transform_layout(B_local, (x0, x1) -> (x1//48, x0, x1%48))"));
    assert_non_null(strstr(trace, "transform_layout(A_local, (x0, x1) -> (x1//8, x0, x1%8))"));
    assert_null(strstr(default_trace(arena, "gemm_few_rows.tk"), "cache_read"));
    tl_arena_destroy(arena);
}

/* What many panels of filters read in steps is copied without what lies between; few take it where it lies. */
static void what_is_read_in_steps_is_copied(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "conv_stride2.tk");
    assert_non_null(strstr(trace, "cache_read(conv, x, global)"));
    assert_null(strstr(trace, "transform_layout(x_local"));
    assert_null(strstr(default_trace(arena, "conv_stride2_few.tk"), "cache_read"));
    tl_arena_destroy(arena);
}

/* A panel larger than a quarter of L2 (2100*32*4 bytes of 1 MB): the fewest pieces that fit twice L1, summed up apart. */
static void long_sums_come_in_pieces(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "gemm_long.tk");
    assert_non_null(strstr(trace, "k_0, k_1 = split(k, [5, _])"));
    assert_non_null(strstr(trace, "rfactor(gemm, k_0)"));
    assert_null(strstr(default_trace(arena, "gemm_tail.tk"), "rfactor"));
    tl_arena_destroy(arena);
}

/* One row whose panel is an input: eight rows of the panel at once, and all columns of a core's share for each eight. */
static void a_row_of_inputs_walks_its_panel(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "gemm_row_of_inputs.tk");
    assert_non_null(strstr(trace, "k_0, k_1 = split(k, [128, _])"));
    assert_non_null(strstr(trace, "rfactor(gemm, k_0)"));
    const char *order = strstr(trace, "reorder(k_0, ");
    assert_non_null(order);
    assert_non_null(strstr(order, "loops(gemm_rf)"));
    tl_arena_destroy(arena);
}

/* Many channels whose planes lie pages apart are brought side by side for many panels; few panels take them where they lie. */
static void planes_apart_are_turned(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "../default/conv_planes_apart.tk");
    assert_non_null(strstr(trace, "cache_read(conv, padded, global)"));
    assert_non_null(strstr(trace, "transform_layout(padded_local, (x0, x1, x2) -> (x0, x2, x1))"));
    trace = default_trace(arena, "conv_few_channels.tk");
    assert_null(strstr(trace, "cache_read(conv, padded"));
    tl_arena_destroy(arena);
}

/* Short sums whose results lie a page apart are written along their rows, with all panels in L2; where L2 holds the rows a panel
 * serves them all first. */
static void rows_apart_are_written_along(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_non_null(
        strstr(default_trace(arena, "../default/gemm_rows_apart.tk"), "reorder(h, i_0, j_0, "));
    assert_non_null(
        strstr(default_trace(arena, "../default/gemm_rows_near.tk"), "reorder(h, j_0, i_0, "));
    tl_arena_destroy(arena);
}

/* The stages of an attention run under the loop over blocks of its rows, also where the scores need a copy to be
 * written from registers; what the last block leaves of a tile is code of its own, without guards. */
static void products_are_chained(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *trace = default_trace(arena, "attention.tk");
    assert_non_null(strstr(trace, "compute_at(masked, i_0)"));
    assert_non_null(strstr(trace, "compute_at(exp, i_0)"));
    assert_non_null(strstr(trace, "loop_partition(i_0)"));
    assert_non_null(strstr(trace, "set_scope(s, register)"));
    trace = default_trace(arena, "attention_bare.tk");
    assert_non_null(strstr(trace, "compute_at(scores_copy, i_0)"));
    assert_non_null(strstr(trace, "compute_at(exp, i_0)"));
    tl_arena_destroy(arena);
}

/* What extents that a dim decides take from a product: nothing. Keys are packed, stages stay in a block of rows, of which there
 * are as many as there are, and a tail. */
static void a_dim_is_cut_into_tiles(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_text text = { 0 };
    tl_program *naive;
    assert_int_equal(tl_file_read("tests/golden/dims/attention.tk", &text, NULL), TL_OK);
    if (tl_program_parse(arena, tl_text_get(&text), "attention.tk", &naive, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&text);
    for (int t = 0; t < CPU_TARGETS; t++) {
        tl_target target;
        assert_int_equal(tl_target_named(targets[t], &target, &diag), TL_OK);
        tl_schedule *s = tl_schedule_create(arena, naive, &target, true);
        if (tl_schedule_default(s, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        const tl_program *scheduled = tl_schedule_program(s);
        const char *trace = tl_trace_text(arena, tl_schedule_trace(s));
        if (strstr(trace, "k_local = cache_read(scores, k, global)") == NULL)
            fail_msg("%s: %s", targets[t], trace);
        assert_non_null(strstr(trace, "compute_at(exp, i_0)"));
        assert_non_null(strstr(trace, "loop_partition(i_0)"));
        static const int64_t extents[] = { 2, 5, 16, 31, 64, 67 };
        for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
            call want, got;
            make_call(arena, naive, &want);
            make_call(arena, scheduled, &got);
            tl_interpret_options checked = { .check = true };
            if (tl_interpret(naive, want.arguments, want.count, &extents[i], &checked, &diag) !=
                    TL_OK ||
                tl_interpret(scheduled, got.arguments, got.count, &extents[i], &checked, &diag) !=
                    TL_OK)
                fail_msg("%s, %lld: %s", targets[t], (long long)extents[i], diag.text);
            const float *w = want.arguments[4].data, *g = got.arguments[4].data;
            for (int64_t k = 0; k < extents[i] * 64; k++)
                if (!(fabsf(w[k] - g[k]) <= 1e-5f))
                    fail_msg("%s, %lld: y[%lld] is %g, not %g", targets[t], (long long)extents[i],
                             (long long)k, (double)g[k], (double)w[k]);
        }
    }
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_keep_the_meaning),
        cmocka_unit_test(products_in_shared_loops_are_tiled),
        cmocka_unit_test(panels_end_where_blocks_of_keys_do),
        cmocka_unit_test(terms_become_lanes),
        cmocka_unit_test(weights_are_read_once_for_a_batch),
        cmocka_unit_test(cores_keep_what_they_transform),
        cmocka_unit_test(images_go_outside_where_they_are_many),
        cmocka_unit_test(gathers_become_copies),
        cmocka_unit_test(results_of_a_group_share_loads),
        cmocka_unit_test(short_rows_are_turned_at_the_end),
        cmocka_unit_test(small_planes_are_rows),
        cmocka_unit_test(results_out_of_blocks_are_turned),
        cmocka_unit_test(lanes_have_no_tests),
        cmocka_unit_test(what_is_read_twice_is_turned),
        cmocka_unit_test(windows_of_planes_are_in_registers),
        cmocka_unit_test(planes_are_summed_up_in_one_loop),
        cmocka_unit_test(sums_of_a_loop_take_turns),
        cmocka_unit_test(sums_of_shuffled_elements_are_few),
        cmocka_unit_test(maps_into_blocks_turn_what_is_plain),
        cmocka_unit_test(transpositions_write_whole_lines),
        cmocka_unit_test(reductions_that_walk_on_are_fused),
        cmocka_unit_test(windows_are_written_out_where_rows_share),
        cmocka_unit_test(rows_of_the_next_plane_are_fetched),
        cmocka_unit_test(one_row_reads_its_weights_in_streams),
        cmocka_unit_test(weights_are_fetched_ahead_of_the_step),
        cmocka_unit_test(borders_are_read_through_a_test),
        cmocka_unit_test(constants_of_lanes_are_packed),
        cmocka_unit_test(windows_bring_contractions_along),
        cmocka_unit_test(contractions_bring_windows_along),
        cmocka_unit_test(uneven_rows_keep_one_nest),
        cmocka_unit_test(narrow_rows_fill_the_registers),
        cmocka_unit_test(inputs_are_copied_where_it_pays),
        cmocka_unit_test(what_is_read_in_steps_is_copied),
        cmocka_unit_test(long_sums_come_in_pieces),
        cmocka_unit_test(a_row_of_inputs_walks_its_panel),
        cmocka_unit_test(planes_apart_are_turned),
        cmocka_unit_test(rows_apart_are_written_along),
        cmocka_unit_test(registers_take_few_products),
        cmocka_unit_test(products_are_chained),
        cmocka_unit_test(a_dim_is_cut_into_tiles),
        cmocka_unit_test(strict_sums_keep_their_order),
        cmocka_unit_test(reference_sums_stand_side_by_side),
    };
    return cmocka_run_group_tests_name("sketch", tests, NULL, NULL);
}
