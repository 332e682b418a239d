/* tests/tuner/test_space.c: points of a space are schedules: they replay, they read back, the default is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/map.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tuner/search/space.h"

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
static const tl_measure_task task = { .name = "gemm", .lowering_count = 1, .lowerings = &direct };

typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_space *space;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    tl_diag diag = { 0 };
    f.arena = tl_arena_create(0);
    if (tl_target_named("x86-64-v4", &f.target, &diag) != TL_OK ||
        tl_space_create(f.arena, &task, &f.target, 2, TL_SPACE_FULL, &f.space, &diag) != TL_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return -1;
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    tl_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

/* The hash of the program after a trace. */
static const char *replay(const fixture *f, const tl_variant *v)
{
    tl_diag diag = { 0 };
    tl_trace *trace;
    tl_schedule *s = tl_schedule_create(f->arena, tl_space_program(f->space, v->point.lowering),
                                        &f->target, true);
    need(tl_trace_parse(f->arena, v->trace, "trace", &f->target, &trace, &diag), &diag);
    need(tl_trace_apply(trace, s, &diag), &diag);
    return tl_arena_format(f->arena, "%016" PRIx64, tl_program_hash(tl_schedule_program(s)));
}

static void the_default_is_a_point(void **state)
{
    const fixture *f = *state;
    tl_diag diag = { 0 };
    tl_variant v;
    need(tl_space_build(f->space, f->arena, 0, NULL, 0, &v, &diag), &diag);
    tl_schedule *s = tl_schedule_create(f->arena, tl_space_program(f->space, 0), &f->target, false);
    need(tl_schedule_default(s, &diag), &diag);
    assert_string_equal(v.hash, tl_arena_format(f->arena, "%016" PRIx64,
                                                tl_program_hash(tl_schedule_program(s))));
    assert_true(v.point.count > 0);
    for (int i = 0; i < v.point.count; i++)
        assert_int_equal(v.point.decisions[i].taken, v.point.decisions[i].initial);
    assert_int_equal(tl_space_build(f->space, f->arena, 1, NULL, 0, &v, &diag), TL_BAD_ARGUMENT);
}

/* A neighbour of `from`: one decision is another one, drawn with its value, the others as far as they are on offer. */
static void step_aside(const fixture *f, const tl_point *from, tl_random *random, tl_variant *out)
{
    tl_wish *wishes = TL_NEW_ARRAY(f->arena, tl_wish, from->count);
    tl_diag diag = { 0 };
    int at;
    for (int i = 0; i < from->count; i++)
        wishes[i] = (tl_wish){ from->decisions[i].name,
                               from->decisions[i].options[from->decisions[i].taken] };
    do
        at = (int)tl_random_below(random, (uint64_t)from->count);
    while (from->decisions[at].count <= 1);
    const tl_decision *d = &from->decisions[at];
    int to = (int)tl_random_below(random, (uint64_t)d->count - 1);
    wishes[at].value = d->options[to + (to >= d->taken)];
    need(tl_space_build(f->space, f->arena, from->lowering, wishes, from->count, out, &diag),
         &diag);
}

/* However they were made: replaying the text gives the same program, and the first line the same point. */
static void points_replay_and_read_back(void **state)
{
    const fixture *f = *state;
    tl_random random = tl_random_make(4);
    tl_variant v, next, again;
    int changed = 0, rounds = 60;
    tl_diag diag = { 0 };
    need(tl_space_sample(f->space, f->arena, &random, &v, &diag), &diag);
    for (int i = 0; i < rounds; i++) {
        step_aside(f, &v.point, &random, &next);
        assert_string_equal(replay(f, &next), next.hash);
        int lowering, count;
        tl_wish *wishes;
        assert_true(tl_point_read(f->space, f->arena, next.trace, &lowering, &wishes, &count));
        assert_int_equal(count, next.point.count);
        need(tl_space_build(f->space, f->arena, lowering, wishes, count, &again, &diag), &diag);
        assert_string_equal(again.hash, next.hash);
        assert_string_equal(again.trace, next.trace);
        changed += strcmp(next.trace, v.trace) != 0;
        v.point = tl_point_copy(f->arena, &next.point);
        v.trace = next.trace;
    }
    assert_int_equal(changed, rounds);
}

/* A value that is not on offer is the nearest; a decision that nobody names keeps the model's option. */
static void wishes_are_met_as_far_as_possible(void **state)
{
    const fixture *f = *state;
    tl_diag diag = { 0 };
    tl_variant v;
    tl_wish wishes[] = { { "gemm.columns", 1000 }, { "gemm.prefetch", 15 } };
    need(tl_space_build(f->space, f->arena, 0, wishes, 2, &v, &diag), &diag);
    for (int i = 0; i < v.point.count; i++) {
        const tl_decision *d = &v.point.decisions[i];
        int64_t value = d->options[d->taken];
        if (strcmp(d->name, "gemm.columns") == 0)
            assert_int_equal(value, 5); /* 80 columns are five vectors */
        else if (strcmp(d->name, "gemm.prefetch") == 0)
            assert_int_equal(value, 16);
        else
            assert_int_equal(d->taken, d->initial);
    }
}

static void other_traces_name_no_point(void **state)
{
    const fixture *f = *state;
    static const char *const texts[] = { "",
                                         "# point:",
                                         "# point: nothing a=1\n",
                                         "# point: direct a\n",
                                         "# point: direct a=x\n",
                                         "loops(gemm)\n",
                                         "# point: direct a=1b\n" };
    int lowering, count;
    tl_wish *wishes;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(tl_point_read(f->space, f->arena, texts[i], &lowering, &wishes, &count));
    assert_true(
        tl_point_read(f->space, f->arena, "# point: direct a=-3", &lowering, &wishes, &count));
    assert_int_equal(wishes[0].value, -3);
}

static const char turn_text[] = "kernel turn(X: f32[300, 200], out Y: f32[200, 300])\n"
                                "  for i in 0..200\n"
                                "    for j in 0..300\n"
                                "      block turn\n"
                                "        spatial i, j\n"
                                "        Y[i, j] = X[j, i]\n";

/* A few points are counted one by one: as many as random points come to. Many are estimated. */
static void points_are_counted(void **state)
{
    const fixture *f = *state;
    static const tl_measure_lowering turn = { "direct", turn_text, 0, 0 };
    static const tl_measure_task turn_task = { .name = "turn",
                                               .lowering_count = 1,
                                               .lowerings = &turn };
    tl_diag diag = { 0 };
    tl_space *space;
    tl_space_size size;
    tl_random random = tl_random_make(6);
    tl_map *seen = tl_map_create(f->arena);
    need(tl_space_create(f->arena, &turn_task, &f->target, 2, TL_SPACE_FULL, &space, &diag), &diag);
    need(tl_space_count(space, 0, 1, &size, &diag), &diag);
    int points = 0;
    for (int i = 0; i < 1500; i++) {
        tl_variant v;
        need(tl_space_sample(space, f->arena, &random, &v, &diag), &diag);
        const char *name = tl_arena_strndup(f->arena, v.trace, strcspn(v.trace, "\n"));
        points += !tl_map_has(seen, name);
        tl_map_put(seen, name, space);
    }
    assert_true(size.exact);
    assert_true(points > 4);
    assert_int_equal((int)size.points, points);
    need(tl_space_count(f->space, 0, 1, &size, &diag), &diag);
    assert_false(size.exact);
    assert_true(size.points > 1e5);
}

static int count_parallel(const tl_variant *v)
{
    int count = 0;
    for (int i = 0; i < v->point.count; i++)
        count += strstr(v->point.decisions[i].name, ".parallel") != NULL;
    return count;
}

/* On one thread it does not matter which loops are parallel: it is no decision, and the default schedule is the same. */
static void one_thread_decides_nothing_parallel(void **state)
{
    const fixture *f = *state;
    tl_diag diag = { 0 };
    tl_target cores = f->target;
    tl_space *one, *two;
    tl_variant of_one, of_two;
    const tl_wish serial = { "gemm_copy.parallel", 0 };
    cores.cores = 4;
    need(tl_space_create(f->arena, &task, &cores, 1, TL_SPACE_FULL, &one, &diag), &diag);
    need(tl_space_create(f->arena, &task, &cores, 2, TL_SPACE_FULL, &two, &diag), &diag);
    need(tl_space_build(one, f->arena, 0, NULL, 0, &of_one, &diag), &diag);
    need(tl_space_build(two, f->arena, 0, NULL, 0, &of_two, &diag), &diag);
    assert_string_equal(of_one.hash, of_two.hash);
    assert_non_null(strstr(of_one.trace, "\nparallel("));
    assert_int_equal(count_parallel(&of_two), 1);
    assert_int_equal(count_parallel(&of_one), 0);
    assert_int_equal(of_one.point.count, of_two.point.count - 1);
    need(tl_space_build(two, f->arena, 0, &serial, 1, &of_two, &diag), &diag);
    need(tl_space_build(one, f->arena, 0, &serial, 1, &of_one, &diag), &diag);
    assert_null(strstr(of_two.trace, "\nparallel("));
    assert_non_null(strstr(of_one.trace, "\nparallel("));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_default_is_a_point, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_replay_and_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wishes_are_met_as_far_as_possible, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_thread_decides_nothing_parallel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_traces_name_no_point, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
