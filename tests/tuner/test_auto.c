/* tests/tuner/test_auto.c: what `auto` tries first, and around whom it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/search/policy_private.h"

/* Packed, and long enough for all switches to be asked for. */
#define GEMM(product)                                                             \
    "kernel gemm(A: f32[64, 512], const B: f32[512, 512], out C: f32[64, 512])\n" \
    "  gemm: C[i, j] = sum(" product ")\n"
static const tl_measure_lowering gemm[] = {
    { "direct", GEMM("A[i, k]*B[k, j]"), 0, 0 },
    { "other", GEMM("B[k, j]*A[i, k]"), 0, 0 },
};
static const tl_measure_lowering two_stages = {
    "direct",
    "kernel two(A: f32[64, 512], const B: f32[512, 512], const D: f32[512, 512], out E: f32[64, "
    "512])\n"
    "  first: C[i, j] = sum(A[i, k]*B[k, j])\n"
    "  second: E[i, j] = sum(C[i, k]*D[k, j])\n",
    0, 0
};

static const tl_measure_lowering pointwise = {
    "direct",
    "kernel pointwise(X: f32[24, 14, 14, 16], const W: f32[96, 384], out Y: f32[6, 14, 14, 16])\n"
    "  conv: Y[co, h, w, ci] = sum(X[rc, h, w, rl]*W[co*16 + ci, rc*16 + rl])\n",
    0, 0
};
static const tl_measure_lowering softmax = {
    "direct",
    "kernel softmax(X: f32[12, 128, 128], out Y: f32[12, 128, 128])\n"
    "  row_max: top[h, q] = max(X[h, q, j])\n"
    "  exponential: e[h, q, j] = exp(X[h, q, j] - top[h, q])\n"
    "  row_sum: total[h, q] = sum(e[h, q, j])\n"
    "  divide: Y[h, q, j] = e[h, q, j]/total[h, q]\n",
    0, 0
};

enum { MOST = 40 };

/* The first trials of a search. */
typedef struct {
    tl_arena *arena;
    tl_policy *policy;
    int count;
    tl_proposal trials[MOST];
} history;

typedef double objective(const tl_proposal *p);

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

static void begin(history *h, const char *name, const tl_measure_lowering *lowerings, int count)
{
    *h = (history){ .arena = tl_arena_create(0) };
    tl_target *target = TL_NEW(h->arena, tl_target);
    tl_measure_task *task = TL_NEW(h->arena, tl_measure_task);
    tl_diag diag = { 0 };
    tl_space *space;
    *task = (tl_measure_task){ .name = "gemm",
                               .workload = "0123456789abcdef0123456789abcdef",
                               .lowering_count = count,
                               .lowerings = lowerings };
    need(tl_target_named("x86-64-v4", target, &diag), &diag);
    need(tl_space_create(h->arena, task, target, 1, TL_SPACE_FULL, &space, &diag), &diag);
    tl_search search = { .task = task, .space = space, .target = target, .seed = 3 };
    need(tl_policy_find(name)->create(&search, &h->policy, &diag), &diag);
}

static void end(history *h)
{
    h->policy->type->destroy(h->policy);
    tl_arena_destroy(h->arena);
}

/* One trial after the other. */
static void go_on(history *h, int trials, objective *time)
{
    for (int i = 0; i < trials; i++, h->count++) {
        tl_proposal *p = &h->trials[h->count];
        tl_diag diag = { 0 };
        int count = 0;
        need(h->policy->type->propose(h->policy, h->arena, 1, p, &count, &diag), &diag);
        assert_int_equal(count, 1);
        tl_result result = { .status = TL_RECORD_OK, .time_ns = time(p), .score_ns = time(p) };
        need(h->policy->type->learn(h->policy, p, &result, 1, &diag), &diag);
    }
}

static bool is_screened(const tl_proposal *p)
{
    return strcmp(p->origin, "screen") == 0;
}

/* Whether the point has these answers, one after the other. */
static bool has(const tl_proposal *p, const char *answers)
{
    const char *trace = p->candidate.trace, *at = strstr(trace, answers);
    return at != NULL && at < strchr(trace, '\n');
}

/* --- times ------------------------------------------------------------------------------------------------------------ */

static double first_is_best(const tl_proposal *p)
{
    return p->candidate.lowering == 0 ? 1000 : 1100;
}

static double second_is_best(const tl_proposal *p)
{
    return p->candidate.lowering == 1 ? 1000 : 1100;
}

/* The default's tile is as good as all others are a bit worse. */
static double tile_is_best(const tl_proposal *p)
{
    bool is_kept = has(p, "gemm.sketch=0 gemm.pieces=1 gemm.columns=3 gemm.rows=8 "
                          "gemm.panel_inside=0 gemm.block=0 gemm.pack=1");
    return p->candidate.lowering == 0 && is_kept ? 1000 : 1010;
}

/* --- tests ------------------------------------------------------------------------------------------------------------ */

/* Right after the default, and never again. */
static void expect_screen(const tl_measure_lowering *lowering, const char *const *answers,
                          int count)
{
    history h;
    begin(&h, "auto", lowering, 1);
    go_on(&h, MOST, first_is_best);
    assert_string_equal(h.trials[0].origin, "default");
    for (int i = 0; i < count; i++) {
        assert_true(is_screened(&h.trials[1 + i]));
        assert_true(has(&h.trials[1 + i], answers[i]));
    }
    for (int i = 1 + count; i < h.count; i++)
        assert_false(is_screened(&h.trials[i]));
    end(&h);
}

static void three_switches_are_combined(void **state)
{
    static const char *const answers[] = {
        " gemm.prefetch=0 gemm.next_panel=1 gemm.unroll=1",
        " gemm.prefetch=8 gemm.next_panel=1 gemm.unroll=4",
        " gemm.prefetch=0 gemm.next_panel=1 gemm.unroll=4",
        " gemm.prefetch=8 gemm.next_panel=0 gemm.unroll=1",
        " gemm.prefetch=0 gemm.next_panel=0 gemm.unroll=1",
        " gemm.prefetch=8 gemm.next_panel=0 gemm.unroll=4",
        " gemm.prefetch=0 gemm.next_panel=0 gemm.unroll=4",
    };
    (void)state;
    expect_screen(gemm, answers, 7);
}

/* Half of the combinations; each switch is turned in four of eight, each two in two. */
static void four_switches_are_halved(void **state)
{
    static const char *const answers[] = {
        " conv.prefetch=0 conv.next_panel=1 conv.next_plane=0 conv.unroll=1",
        " conv.prefetch=8 conv.next_panel=1 conv.next_plane=0 conv.unroll=4",
        " conv.prefetch=0 conv.next_panel=1 conv.next_plane=1 conv.unroll=4",
        " conv.prefetch=8 conv.next_panel=0 conv.next_plane=0 conv.unroll=1",
        " conv.prefetch=0 conv.next_panel=0 conv.next_plane=1 conv.unroll=1",
        " conv.prefetch=8 conv.next_panel=0 conv.next_plane=1 conv.unroll=4",
        " conv.prefetch=0 conv.next_panel=0 conv.next_plane=0 conv.unroll=4",
    };
    (void)state;
    expect_screen(&pointwise, answers, 7);
}

/* A softmax has one, in four stages. */
static void switches_that_are_not_there_take_no_trials(void **state)
{
    static const char *const answers[] = {
        " row_sum.vectors=8 exponential.vectors=8 row_max.lanes_reduce=1 row_max.vectors=8 "
        "divide.vectors=8",
    };
    (void)state;
    expect_screen(&softmax, answers, 1);
}

static void a_switch_turns_all_stages(void **state)
{
    (void)state;
    history h;
    begin(&h, "auto", &two_stages, 1);
    go_on(&h, 8, first_is_best);
    assert_true(has(&h.trials[1], "first.prefetch=0 first.next_panel=1 first.unroll=1"));
    assert_true(has(&h.trials[1], "second.prefetch=0 second.next_panel=1 second.unroll=1"));
    assert_true(has(&h.trials[2], "first.prefetch=8 first.next_panel=1 first.unroll=4"));
    assert_true(has(&h.trials[2], "second.prefetch=8 second.next_panel=1 second.unroll=4"));
    end(&h);
}

/* Which lowering is the best is not known before all defaults have a result. */
static void the_best_default_is_screened(void **state)
{
    static objective *const times[] = { first_is_best, second_is_best };
    (void)state;
    for (int best = 0; best < 2; best++) {
        history h;
        int screened = 0;
        begin(&h, "auto", gemm, 2);
        go_on(&h, 40, times[best]);
        for (int i = 0; i < h.count; i++)
            if (is_screened(&h.trials[i])) {
                assert_true(i >= 2);
                assert_int_equal(h.trials[i].candidate.lowering, best);
                screened++;
            }
        assert_int_equal(screened, 7);
        end(&h);
    }
}

static void the_others_screen_nothing(void **state)
{
    (void)state;
    for (int p = 0; p < tl_policy_count; p++) {
        history h;
        if (strcmp(tl_policies[p]->name, "auto") == 0)
            continue;
        begin(&h, tl_policies[p]->name, gemm, 1);
        go_on(&h, 40, first_is_best);
        for (int i = 0; i < h.count; i++)
            assert_false(is_screened(&h.trials[i]));
        end(&h);
    }
}

/* Of those that only fetch ahead or unroll otherwise one leads. */
static void leaders_have_different_loops(void **state)
{
    (void)state;
    history h;
    int leaders[16], ties = 0;
    begin(&h, "auto", gemm, 2);
    go_on(&h, 40, tile_is_best);
    for (int i = 0; i < h.count; i++)
        ties += tile_is_best(&h.trials[i]) == 1000;
    assert_true(ties >= 8);
    tl_explorer *x = (tl_explorer *)h.policy;
    assert_int_equal(tl_explorer_lead(x, 6, 16, leaders), 6);
    assert_true(tl_catalog_at(x->catalog, leaders[0])->score_ns == 1000);
    for (int i = 1; i < 6; i++)
        assert_true(tl_catalog_at(x->catalog, leaders[i])->score_ns == 1010);
    end(&h);
}

/* However bad: the best of each lowering leads, too. */
static void every_lowering_has_a_leader(void **state)
{
    (void)state;
    history h;
    int leaders[16];
    begin(&h, "auto", gemm, 2);
    go_on(&h, 40, first_is_best);
    tl_explorer *x = (tl_explorer *)h.policy;
    assert_int_equal(tl_explorer_lead(x, 1, 16, leaders), 2);
    assert_int_equal(tl_catalog_at(x->catalog, leaders[0])->point.lowering, 0);
    assert_int_equal(tl_catalog_at(x->catalog, leaders[1])->point.lowering, 1);
    assert_int_equal(tl_explorer_lead(x, 1, 1, leaders), 1);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_switches_are_combined),
        cmocka_unit_test(four_switches_are_halved),
        cmocka_unit_test(switches_that_are_not_there_take_no_trials),
        cmocka_unit_test(a_switch_turns_all_stages),
        cmocka_unit_test(the_best_default_is_screened),
        cmocka_unit_test(the_others_screen_nothing),
        cmocka_unit_test(leaders_have_different_loops),
        cmocka_unit_test(every_lowering_has_a_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
