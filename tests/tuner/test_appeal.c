/* tests/tuner/test_appeal.c: who was ahead only in company is heard again, when the core is calmer, and not for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tests/tuner/small_gemm.h"
#include "tuner/search/policy_private.h"

/* A search, a proposal at a time. */
typedef struct {
    tl_arena *arena;
    tl_policy *policy;
    tl_proposal last;
} hearing;

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

static hearing begin(const char *name)
{
    hearing h = { .arena = tl_arena_create(0) };
    tl_target *target = TL_NEW(h.arena, tl_target);
    tl_space *space;
    tl_diag diag = { 0 };
    need(tl_target_named("x86-64-v4", target, &diag), &diag);
    need(tl_space_create(h.arena, &gemm, target, 1, TL_SPACE_FULL, &space, &diag), &diag);
    tl_search search = { .task = &gemm, .space = space, .target = target, .seed = 3 };
    need(tl_policy_find(name)->create(&search, &h.policy, &diag), &diag);
    return h;
}

static void end(hearing *h)
{
    h->policy->type->destroy(h->policy);
    tl_arena_destroy(h->arena);
}

static void propose(hearing *h)
{
    tl_diag diag = { 0 };
    int count = 0;
    need(h->policy->type->propose(h->policy, h->arena, 1, &h->last, &count, &diag), &diag);
    assert_int_equal(count, 1);
}

static tl_result tied(double promise, double alone)
{
    return (
        tl_result){ .status = TL_RECORD_OK, .score_ns = 1000, .promise = promise, .alone = alone };
}

static void learn(hearing *h, const tl_proposal *proposal, tl_result result)
{
    tl_diag diag = { 0 };
    need(h->policy->type->learn(h->policy, proposal, &result, 1, &diag), &diag);
}

/* The next proposal is no appeal, and that comes of it. */
static void go_on(hearing *h, tl_result result)
{
    propose(h);
    assert_string_not_equal(h->last.origin, "appeal");
    learn(h, &h->last, result);
}

static void go_on_for(hearing *h, int count, double alone)
{
    for (int i = 0; i < count; i++)
        go_on(h, tied(0, alone));
}

/* The next proposal is that appeal. */
static void hear(hearing *h, const char *program)
{
    propose(h);
    assert_string_equal(h->last.origin, "appeal");
    assert_string_equal(h->last.program, program);
}

/* The default, and one that promises. */
static hearing begin_with_promise(tl_proposal *promising)
{
    hearing h = begin("auto");
    go_on(&h, tied(0, 0));
    assert_string_equal(h.last.origin, "default");
    go_on(&h, tied(0.05, 0));
    *promising = h.last;
    return h;
}

static void the_core_has_to_be_calm(void **state)
{
    (void)state;
    tl_proposal p;
    hearing h = begin_with_promise(&p);
    go_on_for(&h, 20, 0.19);
    go_on_for(&h, 3, 0.19);
    go_on_for(&h, 1, 0.25); /* the last four have a fifth */
    hear(&h, p.program);
    end(&h);
}

static void eight_others_come_first_and_two_more_hearings_are_all(void **state)
{
    (void)state;
    tl_proposal p;
    hearing h = begin_with_promise(&p);
    go_on_for(&h, 8, 1);
    hear(&h, p.program);
    learn(&h, &h.last, tied(0.04, 1));
    go_on_for(&h, 8, 1);
    hear(&h, p.program);
    learn(&h, &h.last, tied(0.06, 1));
    go_on_for(&h, 40, 1);
    end(&h);
}

static void who_promises_no_more_is_not_heard_again(void **state)
{
    (void)state;
    tl_proposal p;
    hearing h = begin_with_promise(&p);
    go_on_for(&h, 8, 1);
    hear(&h, p.program);
    learn(&h, &h.last, tied(0, 1));
    go_on_for(&h, 40, 1);
    end(&h);
}

/* Nor is it proposed while its result has not come; that may be never. */
static void it_is_heard_once_at_a_time(void **state)
{
    (void)state;
    tl_proposal p;
    hearing h = begin_with_promise(&p);
    go_on_for(&h, 8, 1);
    hear(&h, p.program);
    go_on_for(&h, 40, 1);
    end(&h);
}

static const tl_entry *entry_of(const tl_explorer *x, const tl_proposal *p)
{
    int entry = tl_catalog_find(x->catalog, strtoull(p->program, NULL, 16));
    assert_int_not_equal(entry, TL_NO_ENTRY);
    return tl_catalog_at(x->catalog, entry);
}

/* The better score counts, once; a failure or a worse one changes nothing. */
static void the_better_score_counts(void **state)
{
    (void)state;
    static const struct {
        tl_record_status status;
        double second, score;
    } cases[] = { { TL_RECORD_OK, 900, 900 },
                  { TL_RECORD_OK, 1100, 1000 },
                  { TL_RECORD_TIMEOUT, 0, 1000 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_proposal p;
        hearing h = begin_with_promise(&p);
        const tl_explorer *x = (const tl_explorer *)h.policy;
        go_on_for(&h, 8, 1);
        hear(&h, p.program);
        assert_int_equal(entry_of(x, &p)->state, TL_ENTRY_RIGHT);
        tl_result result = tied(0, 1);
        result.status = cases[i].status;
        result.score_ns = cases[i].second;
        learn(&h, &h.last, result);
        assert_int_equal(entry_of(x, &p)->state, TL_ENTRY_RIGHT);
        assert_true(entry_of(x, &p)->score_ns == cases[i].score);
        assert_int_equal(x->measured_count, 10);
        assert_int_equal(x->right_count, 10);
        const tl_entry *best = tl_catalog_at(x->catalog, x->best);
        assert_true((best == entry_of(x, &p)) == (cases[i].score < 1000));
        learn(&h, &h.last, tied(0.5, 1)); /* it came before */
        go_on_for(&h, 20, 1);
        end(&h);
    }
}

/* Of five the least is forgotten; the others are heard in the order of what they promise. */
static void the_most_promising_is_heard_first(void **state)
{
    (void)state;
    static const double promises[] = { 0.02, 0.01, 0.04, 0.03, 0.05, 0.001 };
    static const int order[] = { 4, 2, 3, 0 };
    enum { COUNT = sizeof promises / sizeof *promises };
    char programs[COUNT][17];
    hearing h = begin("auto");
    go_on(&h, tied(0, 0));
    for (int i = 0; i < COUNT; i++) {
        go_on(&h, tied(promises[i], 0));
        memcpy(programs[i], h.last.program, sizeof programs[i]);
    }
    go_on_for(&h, 8, 0.1);
    go_on_for(&h, 1, 1);
    for (int i = 0; i < 4; i++) {
        hear(&h, programs[order[i]]);
        learn(&h, &h.last, tied(0, 1));
    }
    go_on_for(&h, 20, 1);
    end(&h);
}

/* Everything promises: only `auto` repeats, only by appeal, and nothing more than twice. */
static void the_others_repeat_nothing(void **state)
{
    (void)state;
    enum { TRIALS = 150 };
    for (int p = 0; p < tl_policy_count; p++) {
        hearing h = begin(tl_policies[p]->name);
        tl_map *seen = tl_map_create(h.arena);
        int appeals = 0;
        for (int i = 0; i < TRIALS; i++) {
            propose(&h);
            bool is_appeal = strcmp(h.last.origin, "appeal") == 0;
            int *times = tl_map_find(seen, h.last.program);
            assert_true(is_appeal == (times != NULL));
            if (times == NULL)
                tl_map_put(seen, h.last.program, times = TL_NEW(h.arena, int));
            assert_true(++*times <= 3);
            appeals += is_appeal;
            learn(&h, &h.last, tied(0.05, 1));
        }
        bool is_auto = strcmp(tl_policies[p]->name, "auto") == 0;
        if ((appeals > 0) != is_auto)
            fail_msg("%s: %d appeals", tl_policies[p]->name, appeals);
        end(&h);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_has_to_be_calm),
        cmocka_unit_test(eight_others_come_first_and_two_more_hearings_are_all),
        cmocka_unit_test(who_promises_no_more_is_not_heard_again),
        cmocka_unit_test(it_is_heard_once_at_a_time),
        cmocka_unit_test(the_better_score_counts),
        cmocka_unit_test(the_most_promising_is_heard_first),
        cmocka_unit_test(the_others_repeat_nothing),
    };
    return cmocka_run_group_tests_name("appeal", tests, NULL, NULL);
}
