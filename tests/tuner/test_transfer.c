/* tests/tuner/test_transfer.c: who is a donor, how far away it is, from whom to take, and what a donor's schedule comes to on a
 * kernel of another shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/text.h"
#include "schedule/trace.h"
#include "tuner/transfer/transfer.h"

typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_text lines; /* a database as text */
} fixture;

static const char *gemm_of(tl_arena *arena, int m, int n, int k)
{
    return tl_arena_format(arena,
                           "kernel gemm(A: f32[%d, %d], B: f32[%d, %d], out C: f32[%d, %d])\n"
                           "  for i in 0..%d\n    for j in 0..%d\n      for k in 0..%d\n"
                           "        block gemm\n          spatial i, j\n          reduce k\n"
                           "          C[i, j] = sum(A[i, k]*B[k, j])\n",
                           m, k, k, n, m, n, m, n, k);
}

static int set_up(void **state)
{
    static fixture f;
    memset(&f, 0, sizeof f);
    f.arena = tl_arena_create(0);
    *state = &f;
    return tl_target_named("x86-64-v3", &f.target, NULL) == TL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tl_text_free(&f->lines);
    tl_arena_destroy(f->arena);
    return 0;
}

static tl_space *space_of(const fixture *f, tl_space_kind kind, int m, int n, int k)
{
    tl_measure_lowering *direct = TL_NEW(f->arena, tl_measure_lowering);
    tl_measure_task *task = TL_NEW(f->arena, tl_measure_task);
    tl_space *space;
    *direct = (tl_measure_lowering){ .name = "direct", .program = gemm_of(f->arena, m, n, k) };
    *task = (tl_measure_task){ .name = "gemm", .lowering_count = 1, .lowerings = direct };
    assert_int_equal(tl_space_create(f->arena, task, &f->target, 1, kind, &space, NULL), TL_OK);
    return space;
}

static void add_workload(fixture *f, const char *key, const char *class_key, int m, int n, int k)
{
    tl_workload_info info = { .workload = key,
                              .class_key = class_key,
                              .family = "gemm",
                              .name = tl_arena_format(f->arena, "gemm_%s", key),
                              .program = gemm_of(f->arena, m, n, k),
                              .flops = 2,
                              .bytes = 2 };
    tl_workload_seal(&info);
    tl_workload_print(&info, &f->lines);
    tl_text_add(&f->lines, "\n");
}

static tl_record record_of(const char *workload, const char *class_key, const char *trace,
                           double ns)
{
    return (tl_record){ .workload = workload,
                        .class_key = class_key,
                        .family = "gemm",
                        .target = "x86-64-v3/somebody/l1=32K/l2=512K/l3=16M/cores=1",
                        .numerics = "relaxed",
                        .lowering = "direct",
                        .trace = trace,
                        .program = "0123456789abcdef",
                        .status = TL_RECORD_OK,
                        .reason = "",
                        .time_ns = ns,
                        .median_ns = ns,
                        .score_ns = ns,
                        .threads = 1,
                        .revision = 3,
                        .environment = "{}",
                        .session = "auto-1",
                        .sequence = 1,
                        .created_us = 1 };
}

static void add_record(fixture *f, tl_record r)
{
    tl_record_seal(&r);
    tl_record_print(&r, &f->lines);
    tl_text_add(&f->lines, "\n");
}

static const char key_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  key_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                  key_c[] = "cccccccccccccccccccccccccccccccc",
                  class_x[] = "00000000000000000000000000000001",
                  class_y[] = "00000000000000000000000000000002";

/* A winner beat the default schedule beyond doubt; of a record without a label nobody knows. */
static void winners_are_sure(void **state)
{
    fixture *f = *state;
    tl_donors donors;
    tl_donor_filter winners = { .only_winners = true }, any = { 0 };
    static const struct {
        const char *lowering;
        double ratio, error;
    } rows[] = { { "direct", 0.90, 0.01 },
                 { "winograd_f2", 0.97, 0.01 },
                 { "winograd_f4", 0.90, 0 },
                 { "winograd_f6", 0, 0 },
                 { "other", 0.5, 0.4 } };
    add_workload(f, key_a, class_x, 64, 64, 64);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_record r = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 100);
        r.lowering = rows[i].lowering;
        r.ratio = rows[i].ratio;
        r.ratio_error = rows[i].error;
        add_record(f, r);
    }
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &any, &donors);
    assert_int_equal(donors.count, 5);
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &winners, &donors);
    assert_int_equal(donors.count, 1);
    assert_string_equal(donors.donors[0].record->lowering, "direct");
}

/* What comes with tilth reads, and all of it won. */
static void the_starter_database_is_sound(void **state)
{
    fixture *f = *state;
    tl_donors all, winners;
    tl_donor_filter any = { 0 }, sure = { .only_winners = true };
    tl_text lines = { 0 };
    int rows = 0;
    assert_int_equal(tl_starter_lines(&lines, NULL), TL_OK);
    for (const char *p = tl_text_get(&lines); (p = strstr(p, "{\"record\":\"trial\"")) != NULL; p++)
        rows++;
    tl_donors_of_lines(f->arena, tl_text_get(&lines), &any, &all);
    tl_donors_of_lines(f->arena, tl_text_get(&lines), &sure, &winners);
    assert_true(rows > 0);
    assert_int_equal(all.count, rows);
    assert_int_equal(winners.count, rows);
    tl_text_free(&lines);
}

/* The best of a workload, target and lowering; nothing that cannot be true. */
static void donors_are_sound_and_best(void **state)
{
    fixture *f = *state;
    tl_record odd;
    tl_donors donors;
    const char *classes[] = { class_x };
    const char *own[] = { key_b };
    add_workload(f, key_a, class_x, 64, 64, 64);
    add_workload(f, key_b, class_x, 32, 64, 64);
    add_workload(f, key_c, class_y, 64, 64, 64);
    add_record(f, record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 200));
    add_record(f, record_of(key_a, class_x, "i, j, k = loops(gemm)\nunroll(k)\n", 100));
    add_record(f, record_of(key_b, class_x, "i, j, k = loops(gemm)\n", 10));
    add_record(f, record_of(key_c, class_y, "i, j, k = loops(gemm)\n", 1));
    odd = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 0); /* an impossible time */
    add_record(f, odd);
    odd = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 1e13); /* hours */
    add_record(f, odd);
    odd = record_of(key_a, class_x, "", 1); /* no trace */
    add_record(f, odd);
    odd = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 1);
    odd.hopeless = true;
    add_record(f, odd);
    odd = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 1);
    odd.numerics = "strict";
    add_record(f, odd);
    odd = record_of("dddddddddddddddddddddddddddddddd", class_x, "i, j, k = loops(gemm)\n", 1);
    add_record(f, odd); /* of a workload that nobody describes */
    tl_text_add(&f->lines,
                "{\"record\":\"trial\",\"uid\":\"00\"}\n{\"record\":\"trial\"\nnonsense\n");

    tl_donor_filter filter = { .classes = classes, .class_count = 1, .numerics = "relaxed" };
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &filter, &donors);
    assert_int_equal(donors.count, 2);
    assert_string_equal(donors.donors[0].workload->workload, key_a);
    assert_true(donors.donors[0].record->score_ns == 100);
    assert_string_equal(donors.donors[1].workload->workload, key_b);

    filter.excluded = own;
    filter.excluded_count = 1;
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &filter, &donors);
    assert_int_equal(donors.count, 1);
    filter.session = "auto-2";
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &filter, &donors);
    assert_int_equal(donors.count, 0);
}

/* As lines and back. */
static void donors_are_text(void **state)
{
    fixture *f = *state;
    tl_donors donors, again;
    tl_donor_filter any = { 0 };
    tl_text text = { 0 };
    add_workload(f, key_a, class_x, 64, 64, 64);
    add_record(f, record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 200));
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &any, &donors);
    tl_donors_print(&donors, &text);
    tl_donors_of_lines(f->arena, tl_text_get(&text), &any, &again);
    assert_int_equal(again.count, 1);
    assert_string_equal(again.donors[0].record->uid, donors.donors[0].record->uid);
    tl_text_free(&text);
}

static void distances_are_of_extents(void **state)
{
    const fixture *f = *state;
    tl_program *a, *b, *other;
    assert_int_equal(tl_program_parse(f->arena, gemm_of(f->arena, 64, 64, 64), "a", &a, NULL),
                     TL_OK);
    assert_int_equal(tl_program_parse(f->arena, gemm_of(f->arena, 32, 64, 256), "b", &b, NULL),
                     TL_OK);
    assert_int_equal(
        tl_program_parse(f->arena,
                         "kernel s(A: f32[8], out B: f32[8])\n  for i in 0..8\n    block s\n"
                         "      spatial i\n      B[i] = A[i]\n",
                         "s", &other, NULL),
        TL_OK);
    assert_true(tl_shape_distance(a, a) == 0);
    assert_true(fabs(tl_shape_distance(a, b) - 1) < 1e-12); /* (1 + 0 + 2)/3 */
    assert_true(tl_shape_distance(b, a) == tl_shape_distance(a, b));
    assert_true(tl_shape_distance(a, other) < 0);
}

/* Eq. 1: shares 0.8 and 0.2; one source has four workloads of the small class, the other one of the large class. */
static void sources_are_ranked_by_the_papers_formula(void **state)
{
    fixture *f = *state;
    const tl_class_share shares[] = { { class_x, 0.8 }, { class_y, 0.2 } };
    tl_donors donors;
    tl_donor_filter any = { 0 };
    tl_transfer_source *sources;
    int count;
    for (int i = 0; i < 4; i++) {
        char *key = tl_arena_strdup(f->arena, key_c);
        key[0] = (char)('0' + i);
        add_workload(f, key, class_y, 8 + i, 8, 8);
        tl_record r = record_of(key, class_y, "i, j, k = loops(gemm)\n", 5);
        r.session = "auto-small";
        add_record(f, r);
    }
    add_workload(f, key_a, class_x, 64, 64, 64);
    tl_record r = record_of(key_a, class_x, "i, j, k = loops(gemm)\n", 5);
    r.session = "auto-large";
    add_record(f, r);
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &any, &donors);
    assert_int_equal(donors.count, 5);
    assert_int_equal(tl_transfer_sources(NULL, f->arena, &donors, shares, 2, &sources, &count,
                                         NULL),
                     TL_OK);
    assert_int_equal(count, 2);
    assert_string_equal(sources[0].session, "auto-large");
    assert_true(fabs(sources[0].score - 0.64) < 1e-12);
    assert_true(fabs(sources[1].score - 0.04 * 2) < 1e-12);
    assert_int_equal(sources[1].workloads, 4);
}

/* To workload b of that class. */
static tl_status offer(const tl_transfer *how, const tl_space *space, const char *class_key,
                       const fixture *f, const tl_transferred **got, int *count)
{
    const tl_workload_info own = { .class_key = class_key, .workload = key_b, .family = "gemm" };
    return tl_transfer_to(how, space, &own, 0, f->arena, got, count, NULL);
}

/* A product before a ReLU and a donor, a product alone: no class has both, and their sums are the same. */
static void kin_are_donors_when_they_are_wanted(void **state)
{
    fixture *f = *state;
    const char *kin, *own_kin,
        *text = "kernel gemm_relu(A: f32[32, 64], B: f32[64, 64], out C: f32[32, 64])\n"
                "  alloc acc: f32[32, 64]\n"
                "  for i in 0..32\n    for j in 0..64\n      for k in 0..64\n"
                "        block gemm\n          spatial i, j\n          reduce k\n"
                "          acc[i, j] = sum(A[i, k]*B[k, j])\n"
                "  for i in 0..32\n    for j in 0..64\n"
                "      block relu\n        spatial i, j\n        C[i, j] = max(acc[i, j], 0.0)\n";
    tl_measure_lowering direct = { .name = "direct", .program = text };
    tl_measure_task task = { .name = "gemm_relu", .lowering_count = 1, .lowerings = &direct };
    tl_space *from = space_of(f, TL_SPACE_PLAIN, 64, 64, 64), *to;
    const tl_wish wishes[] = { { "gemm.sketch", 1 }, { "gemm.i.3", 8 }, { "gemm.j.3", 16 } };
    tl_variant v;
    tl_donors donors;
    const tl_transferred *got;
    int count;
    assert_int_equal(tl_space_create(f->arena, &task, &f->target, 1, TL_SPACE_PLAIN, &to, NULL),
                     TL_OK);
    assert_int_equal(tl_space_build(from, f->arena, 0, wishes, 3, &v, NULL), TL_OK);
    add_workload(f, key_a, class_x, 64, 64, 64);
    add_record(f, record_of(key_a, class_x, v.trace, 100));

    assert_true(tl_kin_of_text(f->arena, text, &own_kin));
    assert_true(tl_kin_of_text(f->arena, gemm_of(f->arena, 8, 8, 8), &kin));
    assert_string_equal(kin, own_kin);
    assert_false(tl_kin_of_text(f->arena,
                                "kernel s(A: f32[8], out B: f32[8])\n  for i in 0..8\n    block s\n"
                                "      spatial i\n      B[i] = A[i]\n",
                                &kin)); /* no sums */
    assert_false(tl_kin_of_text(f->arena, "kernel broken(", &kin));

    const char *wanted = class_y;
    tl_donor_filter filter = { .classes = &wanted, .class_count = 1 };
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &filter, &donors);
    assert_int_equal(donors.count, 0);
    filter.kin = &own_kin;
    filter.kin_count = 1;
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &filter, &donors);
    assert_int_equal(donors.count, 1);

    tl_transfer how = { .donors = &donors, .per_task = 4 };
    assert_int_equal(offer(&how, to, class_y, f, &got, &count), TL_OK);
    assert_int_equal(count, 0);
    how.kin = true;
    assert_int_equal(offer(&how, to, class_y, f, &got, &count), TL_OK);
    assert_int_equal(count, 1);
    assert_true(got[0].is_kin);
    assert_int_equal(got[0].route, TL_ROUTE_ANSWERS);
    assert_true(fabs(got[0].distance - (1 / 3.0 + 0.5)) < 1e-12); /* i alone is half as large */
    assert_non_null(strstr(got[0].trace, "gemm.i.3=8"));
}

/* A point of a product of 64 x 64 x 64 on one of 60 x 64 x 64, by both routes. */
static void a_schedule_comes_by_answers_or_by_its_trace(void **state)
{
    fixture *f = *state;
    tl_space *from = space_of(f, TL_SPACE_PLAIN, 64, 64, 64),
             *to = space_of(f, TL_SPACE_PLAIN, 60, 64, 64);
    const tl_wish wishes[] = {
        { "gemm.sketch", 1 }, { "gemm.i.3", 8 }, { "gemm.j.3", 16 }, { "gemm.k.3", 4 }
    };
    tl_variant v;
    tl_donors donors;
    tl_donor_filter any = { 0 };
    const tl_transferred *got;
    int count;
    assert_int_equal(tl_space_build(from, f->arena, 0, wishes, 4, &v, NULL), TL_OK);
    add_workload(f, key_a, class_x, 64, 64, 64);
    add_record(f, record_of(key_a, class_x, v.trace, 100));
    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &any, &donors);
    assert_int_equal(donors.count, 1);

    tl_cost_model *analytic;
    assert_int_equal(tl_cost_model_create("analytic", NULL, 1, &analytic, NULL), TL_OK);
    tl_transfer how = { .donors = &donors, .model = analytic, .per_task = 4 };
    assert_int_equal(offer(&how, to, class_x, f, &got, &count), TL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(got[0].route, TL_ROUTE_ANSWERS);
    assert_non_null(strstr(got[0].adapted, "gemm.i.3 ")); /* 8 does not divide 60 */
    assert_non_null(strstr(got[0].adapted, " (8)"));
    assert_true(got[0].distance > 0 && got[0].distance < 0.1);
    assert_string_equal(got[0].donor->record->workload, key_a);

    how.only_trace = true;
    assert_int_equal(offer(&how, to, class_x, f, &got, &count), TL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(got[0].route, TL_ROUTE_TRACE);
    tl_trace *trace;
    tl_schedule *s = tl_schedule_create(f->arena, tl_space_program(to, 0), &f->target, true);
    assert_int_equal(tl_trace_parse(f->arena, got[0].trace, "t", &f->target, &trace, NULL), TL_OK);
    assert_int_equal(tl_trace_apply(trace, s, NULL), TL_OK);

    /* a record of the other space is no point of this one: its trace is taken */
    how.only_trace = false;
    tl_space *full = space_of(f, TL_SPACE_FULL, 60, 64, 64);
    assert_int_equal(offer(&how, full, class_x, f, &got, &count), TL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(got[0].route, TL_ROUTE_TRACE);
    tl_cost_model_destroy(analytic);
}

/* Each program once, none that is the default's, the nearest first where no model ranks; what does not fit is passed over. */
static void offers_are_ranked_and_different(void **state)
{
    fixture *f = *state;
    tl_space *to = space_of(f, TL_SPACE_PLAIN, 64, 64, 64);
    const tl_wish tiled[] = { { "gemm.sketch", 1 }, { "gemm.i.3", 4 }, { "gemm.j.3", 8 } };
    tl_donors donors;
    tl_donor_filter any = { 0 };
    const tl_transferred *got;
    int count;
    const int rows[] = { 128, 32, 256 };
    for (int i = 0; i < 3; i++) {
        tl_variant v;
        char *key = tl_arena_strdup(f->arena, key_c);
        key[0] = (char)('0' + i);
        tl_wish own[] = { tiled[0], tiled[1], tiled[2], { "gemm.k.3", 1 << (i + 1) } };
        tl_space *from = space_of(f, TL_SPACE_PLAIN, rows[i], 64, 64);
        assert_int_equal(tl_space_build(from, f->arena, 0, own, 4, &v, NULL), TL_OK);
        add_workload(f, key, class_x, rows[i], 64, 64);
        add_record(f, record_of(key, class_x, v.trace, 100 + i));
        if (i == 0) { /* the same answers of another shape: the same program here */
            char *twin = tl_arena_strdup(f->arena, key_b);
            add_workload(f, twin, class_x, rows[i] * 4, 64, 64);
            add_record(f, record_of(twin, class_x, v.trace, 90));
        }
    }
    tl_variant naive;
    assert_int_equal(tl_space_build(to, f->arena, 0, NULL, 0, &naive, NULL), TL_OK);
    add_workload(f, key_a, class_x, 48, 64, 64);
    add_record(f, record_of(key_a, class_x, naive.trace, 1));
    char *broken = tl_arena_strdup(f->arena, key_b);
    broken[1] = 'f';
    add_workload(f, broken, class_x, 40, 64, 64);
    add_record(f, record_of(broken, class_x, "x, y = loops(nothing)\nfly(x)\n", 1));

    tl_donors_of_lines(f->arena, tl_text_get(&f->lines), &any, &donors);
    assert_int_equal(donors.count, 6);
    tl_transfer how = { .donors = &donors, .per_task = 64 };
    assert_int_equal(offer(&how, to, class_x, f, &got, &count), TL_OK);
    assert_int_equal(count, 3);
    for (int i = 1; i < count; i++)
        assert_true(got[i - 1].distance <= got[i].distance);
    how.per_task = 2;
    tl_cost_model *analytic;
    assert_int_equal(tl_cost_model_create("analytic", NULL, 1, &analytic, NULL), TL_OK);
    how.model = analytic;
    assert_int_equal(offer(&how, to, class_x, f, &got, &count), TL_OK);
    assert_int_equal(count, 2);
    assert_true(got[0].score >= got[1].score);
    assert_int_equal(offer(&how, to, class_y, f, &got, &count), TL_OK);
    assert_int_equal(count, 0); /* a class without donors */
    tl_cost_model_destroy(analytic);
}

/* The heavier class has the larger share; all together they are one. */
static void shares_are_of_expected_time(void **state)
{
    const fixture *f = *state;
    tl_weighted_task tasks[] = {
        { tl_space_task(space_of(f, TL_SPACE_FULL, 64, 64, 64)), class_x, 0, 1 },
        { tl_space_task(space_of(f, TL_SPACE_FULL, 64, 64, 64)), class_x, 0, 2 },
        { tl_space_task(space_of(f, TL_SPACE_FULL, 64, 64, 64)), class_y, 0, 1 },
    };
    tl_class_share *shares;
    int count;
    assert_int_equal(tl_transfer_shares(f->arena, tasks, 3, &f->target, 1, TL_SPACE_FULL, &shares,
                                        &count, NULL),
                     TL_OK);
    assert_int_equal(count, 2);
    assert_string_equal(shares[0].class_key, class_x);
    assert_true(fabs(shares[0].share - 0.75) < 1e-6 && fabs(shares[1].share - 0.25) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(winners_are_sure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_starter_database_is_sound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(donors_are_sound_and_best, set_up, tear_down),
        cmocka_unit_test_setup_teardown(donors_are_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(distances_are_of_extents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sources_are_ranked_by_the_papers_formula, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(kin_are_donors_when_they_are_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_schedule_comes_by_answers_or_by_its_trace, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(offers_are_ranked_and_different, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shares_are_of_expected_time, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("transfer", tests, NULL, NULL);
}
