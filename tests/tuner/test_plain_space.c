/* tests/tuner/test_plain_space.c: the space without expert rules: what it begins with, what its points are made of, and what
 * evolution makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/model/tune_list.h"
#include "tuner/search/decision_kind.h"
#include "tuner/search/search.h"

static const char gemm_text[] =
    "kernel gemm(A: f32[60, 96], const B: f32[96, 80], out C: f32[60, 80])\n"
    "  for i in 0..60\n"
    "    for j in 0..80\n"
    "      for k in 0..96\n"
    "        block gemm\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n";

static const tl_measure_lowering direct = { "direct", gemm_text, 0, 0 };
static const tl_measure_task task = {
    .name = "gemm", .workload = "00", .lowering_count = 1, .lowerings = &direct
};

typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_space *plain, *full;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.arena = tl_arena_create(0);
    if (tl_target_named("x86-64-v4", &f.target, NULL) != TL_OK)
        return -1;
    f.target.cores = 2;
    if (tl_space_create(f.arena, &task, &f.target, 2, TL_SPACE_PLAIN, &f.plain, NULL) != TL_OK ||
        tl_space_create(f.arena, &task, &f.target, 2, TL_SPACE_FULL, &f.full, NULL) != TL_OK)
        return -1;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    tl_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

static void it_begins_with_the_naive_nest(void **state)
{
    const fixture *f = *state;
    tl_variant v;
    assert_int_equal(tl_space_build(f->plain, f->arena, 0, NULL, 0, &v, NULL), TL_OK);
    assert_string_equal(tl_program_text(f->arena, v.program),
                        "kernel gemm(A: f32[60, 96], const B: f32[96, 80], out C: f32[60, 80])\n"
                        "  for i in 0..60 parallel\n"
                        "    for k in 0..96\n"
                        "      for j_0 in 0..5\n"
                        "        for j_1 in 0..16 vectorized\n"
                        "          block gemm\n"
                        "            spatial i\n"
                        "            spatial j in 0..80 = j_0*16 + j_1\n"
                        "            reduce k\n"
                        "            C[i, j] = sum(A[i, k]*B[k, j])\n");
    assert_int_equal(strncmp(v.trace, "# plain point: direct ", 22), 0);
}

/* The product of an axis's parts in a point. */
static int64_t inside(const tl_point *point, const char *axis)
{
    int64_t product = 1;
    size_t size = strlen(axis);
    for (int i = 0; i < point->count; i++)
        if (strncmp(point->decisions[i].name, axis, size) == 0)
            product *= point->decisions[i].options[point->decisions[i].taken];
    return product;
}

static void check_exact(const tl_point *point)
{
    assert_int_equal(60 % inside(point, "gemm.i."), 0);
    assert_int_equal(80 % inside(point, "gemm.j."), 0);
    assert_int_equal(96 % inside(point, "gemm.k."), 0);
}

static void tiles_divide(void **state)
{
    const fixture *f = *state;
    tl_random random = tl_random_make(3);
    tl_variant v;
    int tiled = 0, outer = 0, guarded = 0;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(tl_space_sample(f->plain, f->arena, &random, &v, NULL), TL_OK);
        check_exact(&v.point);
        tiled += inside(&v.point, "gemm.j.") > 1;
        outer += inside(&v.point, "gemm.i.") > 16;
        guarded += strstr(tl_program_text(f->arena, v.program), "where") != NULL;
    }
    assert_true(tiled > 100 && outer > 20);
    assert_true(guarded < 150); /* rfactor and the naive nest's vectors alone may have guards */
}

/* A record of one space says nothing in the other. */
static void points_belong_to_their_space(void **state)
{
    const fixture *f = *state;
    tl_variant plain, full;
    int lowering, count;
    tl_wish *wishes;
    tl_space_kind kind;
    assert_int_equal(tl_space_build(f->plain, f->arena, 0, NULL, 0, &plain, NULL), TL_OK);
    assert_int_equal(tl_space_build(f->full, f->arena, 0, NULL, 0, &full, NULL), TL_OK);
    assert_true(tl_point_read(f->plain, f->arena, plain.trace, &lowering, &wishes, &count));
    assert_true(tl_point_read(f->full, f->arena, full.trace, &lowering, &wishes, &count));
    assert_false(tl_point_read(f->full, f->arena, plain.trace, &lowering, &wishes, &count));
    assert_false(tl_point_read(f->plain, f->arena, full.trace, &lowering, &wishes, &count));
    assert_true(tl_space_kind_from_text("plain", &kind) && kind == TL_SPACE_PLAIN);
    assert_false(tl_space_kind_from_text("", &kind));
}

/* Evolution in the plain space: a machine on which the product of the tile's results should be 64. */
static double time_of(const tl_space *space, tl_arena *arena, const tl_proposal *p)
{
    int lowering, count;
    tl_wish *wishes;
    double tile = 1;
    assert_true(tl_point_read(space, arena, p->candidate.trace, &lowering, &wishes, &count));
    for (int i = 0; i < count; i++)
        if (strcmp(wishes[i].name, "gemm.i.3") == 0 || strcmp(wishes[i].name, "gemm.j.3") == 0)
            tile *= (double)wishes[i].value;
    return 1000 * (tile > 64 ? tile / 64 : 64 / tile);
}

static void evolution_moves_factors(void **state)
{
    enum { BATCH = 32, ROUNDS = 4 };
    const fixture *f = *state;
    tl_policy *policy;
    tl_proposal proposals[BATCH];
    tl_result results[BATCH] = { 0 };
    int count, lowering, wish_count;
    double best = 1e30;
    tl_search search = { .task = &task, .space = f->plain, .target = &f->target, .seed = 5 };
    const tl_policy_type *type = tl_policy_find("evolution");
    assert_int_equal(type->create(&search, &policy, NULL), TL_OK);
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(type->propose(policy, f->arena, BATCH, proposals, &count, NULL), TL_OK);
        for (int i = 0; i < count; i++) {
            tl_wish *wishes;
            tl_variant v;
            assert_true(tl_point_read(f->plain, f->arena, proposals[i].candidate.trace, &lowering,
                                      &wishes, &wish_count));
            assert_int_equal(tl_space_build(f->plain, f->arena, lowering, wishes, wish_count, &v,
                                            NULL),
                             TL_OK);
            check_exact(&v.point);
            results[i] = (tl_result){ .status = TL_RECORD_OK };
            results[i].score_ns = time_of(f->plain, f->arena, &proposals[i]);
            best = results[i].score_ns < best ? results[i].score_ns : best;
        }
        assert_int_equal(type->learn(policy, proposals, results, count, NULL), TL_OK);
    }
    assert_true(best <= 1250);
    type->destroy(policy);
}

static void lowerings_are_tasks(void **state)
{
    const fixture *f = *state;
    const tl_measure_lowering two[] = { { "direct", gemm_text, 0, 0 },
                                        { "other", gemm_text, 0, 0 } };
    tl_measure_task measure = task;
    tl_workload_info info = { .workload = "00", .flops = 1 };
    measure.lowering_count = 2;
    measure.lowerings = two;
    tl_tune_task tune = { .measure = &measure, .workload = &info, .weight = 3, .untuned = 1 };
    tl_tune_list list = { .count = 1, .tasks = &tune, .flops = 7 }, split;
    tl_tune_tasks_split(f->arena, &list, &split);
    assert_int_equal(split.count, 2);
    assert_int_equal(split.flops, 7);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(split.tasks[i].measure->lowering_count, 1);
        assert_string_equal(split.tasks[i].measure->lowerings[0].name, two[i].name);
        assert_int_equal(split.tasks[i].untuned, 0);
        assert_true(split.tasks[i].weight == 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_begins_with_the_naive_nest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tiles_divide, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_belong_to_their_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evolution_moves_factors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lowerings_are_tasks, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("plain space", tests, NULL, NULL);
}
