/* tests/runtime/test_pool.c: every thread does its part, once, and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/clock.h"
#include "runtime/device/pool.h"

static tl_pool *make_pool(int threads, tl_pin pin)
{
    tl_pool_options options = { .threads = threads, .pin = pin };
    tl_pool *pool;
    tl_diag diag = { 0 };

    if (tl_pool_create(&options, &pool, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return pool;
}

static void ranges_partition(void **state)
{
    static const int64_t extents[] = { 0, 1, 2, 3, 7, 64, 1000, 1023, INT64_MAX };
    static const int teams[] = { 1, 2, 3, 5, 8, 64, 1023 };

    (void)state;
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
            int64_t at = 0, smallest = INT64_MAX, largest = 0;
            for (int i = 0; i < teams[t]; i++) {
                tl_part r = tl_team_range(extents[e], i, teams[t]);
                assert_int_equal(r.begin, at);
                assert_true(r.end >= r.begin);
                int64_t size = r.end - r.begin;
                smallest = size < smallest ? size : smallest;
                largest = size > largest ? size : largest;
                at = r.end;
            }
            assert_int_equal(at, extents[e]);
            assert_true(largest - smallest <= 1);
        }
}

typedef struct {
    atomic_int runs[TL_MAX_THREADS];
    atomic_int wrong;
    int want;
} roll_call;

static void answer(tl_team *team, void *context)
{
    roll_call *calls = context;

    if (team->threads != calls->want)
        atomic_fetch_add(&calls->wrong, 1);
    atomic_fetch_add(&calls->runs[team->thread], 1);
}

static void every_thread_runs_once(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(4, TL_PIN_NEVER);
    roll_call *calls = calloc(1, sizeof *calls);

    assert_int_equal(tl_pool_threads(pool), 4);
    for (int threads = 0; threads <= 6; threads++) {
        memset(calls, 0, sizeof *calls);
        calls->want = threads == 0 || threads > 4 ? 4 : threads;
        tl_pool_run(pool, threads, answer, calls);
        assert_int_equal(calls->wrong, 0);
        for (int i = 0; i < TL_MAX_THREADS; i++)
            assert_int_equal(calls->runs[i], i < calls->want);
    }
    free(calls);
    tl_pool_destroy(pool);
}

/* In each phase, every thread reads what its neighbour wrote in the phase before. The cells are
 * plain memory: only the barrier orders them (the thread sanitizer checks that it does). */
typedef struct {
    int phases;
    int cells[2][64];
    atomic_int wrong;
} ring;

static void walk_ring(tl_team *team, void *context)
{
    ring *r = context;
    int next = (team->thread + 1) % team->threads;

    r->cells[0][team->thread] = 0;
    tl_team_barrier(team);
    for (int phase = 1; phase <= r->phases; phase++) {
        if (r->cells[(phase - 1) % 2][next] != phase - 1)
            atomic_fetch_add(&r->wrong, 1);
        r->cells[phase % 2][team->thread] = phase;
        tl_team_barrier(team);
    }
}

static void check_ring(tl_pool *pool, int threads, int phases)
{
    ring r = { .phases = phases };

    tl_pool_run(pool, threads, walk_ring, &r);
    assert_int_equal(r.wrong, 0);
}

static void barriers_order_memory(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(2, TL_PIN_AUTO);
    for (int i = 0; i < 20; i++)
        check_ring(pool, 2, 500);
    tl_pool_destroy(pool);
}

static void many_threads_on_few_cores(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(24, TL_PIN_NEVER);
    for (int i = 0; i < 10; i++) {
        check_ring(pool, 24, 20);
        check_ring(pool, 3, 20);
    }
    tl_pool_destroy(pool);
}

typedef struct {
    int64_t extent;
    atomic_llong sum;
} forked;

static void add_part(tl_team *team, void *context)
{
    forked *f = context;
    tl_part part = tl_team_range(f->extent, team->thread, team->threads);
    for (int64_t i = part.begin; i < part.end; i++)
        atomic_fetch_add_explicit(&f->sum, i, memory_order_relaxed);
}

static void many_forks(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(2, TL_PIN_AUTO);
    for (int64_t i = 0; i < 5000; i++) {
        forked f = { .extent = i % 37 };
        tl_pool_run(pool, 0, add_part, &f);
        assert_int_equal(f.sum, f.extent * (f.extent - 1) / 2);
    }
    tl_pool_destroy(pool);
}

static void workers_park_and_wake(void **state)
{
    (void)state;
    tl_pool_options options = { .threads = 3, .pin = TL_PIN_NEVER, .spin_us = 1 };
    tl_pool *pool;
    assert_int_equal(tl_pool_create(&options, &pool, NULL), TL_OK);
    for (int i = 0; i < 50; i++) {
        tl_clock_sleep_ns(200000);
        check_ring(pool, 3, 5);
    }
    tl_pool_destroy(pool);
}

static void *call_often(void *pool)
{
    for (int i = 0; i < 300; i++) {
        ring r = { .phases = 3 };
        tl_pool_run(pool, 1 + i % 3, walk_ring, &r);
        if (r.wrong != 0)
            return pool;
    }
    return NULL;
}

static void several_callers_share_it(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    tl_pool *pool = make_pool(3, TL_PIN_NEVER);
    pthread_t callers[CALLERS];

    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, pool), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
    tl_pool_destroy(pool);
}

typedef struct {
    tl_pool *pool;
    roll_call inner;
} nest;

static void run_inner(tl_team *team, void *context)
{
    nest *n = context;

    tl_pool_run(n->pool, 0, answer, &n->inner);
    tl_team_barrier(team);
    tl_pool_run(n->pool, 2, answer, &n->inner); /* the first run must not have ended the team */
}

static void a_nested_run_runs_alone(void **state)
{
    (void)state;
    nest *n = calloc(1, sizeof *n);
    n->pool = make_pool(3, TL_PIN_NEVER);
    n->inner.want = 1;
    tl_pool_run(n->pool, 3, run_inner, n);
    assert_int_equal(n->inner.wrong, 0);
    assert_int_equal(n->inner.runs[0], 6);
    tl_pool_destroy(n->pool);
    free(n);
}

static void two_pools_at_once(void **state)
{
    (void)state;
    tl_pool *a = make_pool(2, TL_PIN_ALWAYS), *b = make_pool(3, TL_PIN_ALWAYS);
    pthread_t other;

    assert_int_equal(pthread_create(&other, NULL, call_often, a), 0);
    assert_null(call_often(b));
    pthread_join(other, NULL);
    tl_pool_destroy(a);
    tl_pool_destroy(b);
}

static void the_caller_keeps_its_affinity(void **state)
{
    (void)state;
    cpu_set_t before, after;
    tl_pool *pool = make_pool(2, TL_PIN_ALWAYS);

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    check_ring(pool, 2, 3);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    tl_pool_destroy(pool);
}

static void pools_come_and_go(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        tl_pool *pool = make_pool(1 + i % 4, TL_PIN_NEVER);
        if (i % 2 == 0)
            check_ring(pool, 0, 2);
        tl_pool_destroy(pool);
    }
    tl_pool_destroy(NULL);
}

static void note_threads(tl_team *team, void *context)
{
    *(int *)context += team->threads;
}

/* A child of fork() has none of the threads: it is told so, waits for nobody, and may make its own. */
static void a_child_is_told(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(3, TL_PIN_NEVER);
    check_ring(pool, 3, 3);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tl_diag diag = { 0 };
        tl_pool_options options = { .threads = 2 };
        tl_pool *own;
        int threads = 0;
        alarm(20); /* what waits for ever ends as a failure */
        bool good = tl_pool_check(pool, 0, &diag) == TL_BAD_ARGUMENT &&
                    strstr(diag.text, "make the pool in the child") != NULL &&
                    tl_pool_check(pool, 1, NULL) == TL_OK;
        tl_pool_run(pool, 3, note_threads, &threads);
        tl_pool_destroy(pool);
        good = good && threads == 1 && tl_pool_create(&options, &own, NULL) == TL_OK &&
               tl_pool_check(own, 0, NULL) == TL_OK;
        if (good)
            check_ring(own, 2, 2);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tl_pool_check(pool, 0, NULL), TL_OK);
    check_ring(pool, 3, 3); /* the parent's go on */
    tl_pool_destroy(pool);
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    static const int bad[] = { -1, TL_MAX_THREADS + 1 };
    for (int i = 0; i < 2; i++) {
        tl_pool_options options = { .threads = bad[i] };
        tl_pool *pool;
        tl_diag diag = { 0 };
        assert_int_equal(tl_pool_create(&options, &pool, &diag), TL_BAD_ARGUMENT);
        assert_non_null(strstr(diag.text, "not in 1..1023"));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_partition),
        cmocka_unit_test(every_thread_runs_once),
        cmocka_unit_test(barriers_order_memory),
        cmocka_unit_test(many_threads_on_few_cores),
        cmocka_unit_test(many_forks),
        cmocka_unit_test(workers_park_and_wake),
        cmocka_unit_test(several_callers_share_it),
        cmocka_unit_test(a_nested_run_runs_alone),
        cmocka_unit_test(two_pools_at_once),
        cmocka_unit_test(the_caller_keeps_its_affinity),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(a_child_is_told),
        cmocka_unit_test(bad_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("thread pool", tests, NULL, NULL);
}
