/* tests/runtime/test_share.c: ranges that a team shares out while it works on them, and teams in bad company: few processors,
 * masks that change, threads that do not start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/clock.h"
#include "runtime/device/pool.h"
#include "tests/support/patience.h"

static tl_pool *make_pool(int threads, tl_pin pin)
{
    tl_pool_options options = { .threads = threads, .pin = pin };
    tl_pool *pool;
    tl_diag diag = { 0 };

    if (tl_pool_create(&options, &pool, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return pool;
}

/* ---- every iteration once ---- */

enum { MOST = 200 };

typedef struct {
    int64_t extent, piece;
    int ranges;
    int taken
        [MOST]; /* plain memory: who takes an iteration is alone with it, and the barrier orders ranges */
    atomic_int wrong;
} count;

static void count_ranges(tl_team *team, void *context)
{
    count *c = context;
    tl_part part;

    for (int range = 0; range < c->ranges; range++) {
        tl_shared shared = tl_team_share(team, c->extent, c->piece);
        while (tl_team_take(team, &shared, &part)) {
            if (part.begin >= part.end || part.end > c->extent)
                atomic_fetch_add(&c->wrong, 1);
            for (int64_t i = part.begin; i < part.end; i++)
                if (c->taken[i]++ != range)
                    atomic_fetch_add(&c->wrong, 1);
        }
        tl_team_barrier(team);
    }
}

static void check_count(tl_pool *pool, int threads, int64_t extent, int64_t piece, int ranges)
{
    count c = { .extent = extent, .piece = piece, .ranges = ranges };

    tl_pool_run(pool, threads, count_ranges, &c);
    assert_int_equal(c.wrong, 0);
    for (int64_t i = 0; i < MOST; i++)
        assert_int_equal(c.taken[i], i < extent ? ranges : 0);
}

static void every_iteration_once(void **state)
{
    static const int64_t extents[] = { 0, 1, 2, 3, 7, 64, 199, MOST }, pieces[] = { 1, 2, 5, 1000 };

    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        tl_pool *pool = make_pool(threads, TL_PIN_NEVER);
        for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
            for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
                check_count(pool, threads, extents[e], pieces[p], 20);
        tl_pool_destroy(pool);
    }
}

/* Hands name their range by 16 bits: more ranges than that in one run, some with nothing in the hands of most. */
static void more_ranges_than_numbers(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(2, TL_PIN_NEVER);
    check_count(pool, 2, 3, 1, 70000);
    check_count(pool, 2, 1, 1, 66000);
    tl_pool_destroy(pool);
}

static void as_many_pieces_as_fit(void **state)
{
    (void)state;
    tl_team alone = { 0, 1, NULL, 0 };
    tl_shared shared = tl_team_share(&alone, INT64_MAX, 1);
    tl_part part;
    assert_true(shared.piece >= INT64_MAX >> 24);
    assert_true(tl_team_take(&alone, &shared, &part));
    assert_true(part.begin == 0 && part.end == INT64_MAX);
    assert_false(tl_team_take(&alone, &shared, &part));
}

/* ---- one that is held up ---- */

typedef struct {
    atomic_bool done; /* by thread 0: all there was */
    int64_t order[64];
    int count;
    int late; /* iterations that were left for thread 1 */
} held_up;

static void hold_up(tl_team *team, void *context)
{
    held_up *h = context;
    tl_part part;
    while (team->thread == 1 && !atomic_load(&h->done))
        sched_yield();
    tl_shared shared = tl_team_share(team, 64, 4);
    while (tl_team_take(team, &shared, &part)) {
        if (team->thread == 1)
            h->late++;
        else
            for (int64_t i = part.begin; i < part.end; i++)
                h->order[h->count++] = i;
    }
    if (team->thread == 0)
        atomic_store(&h->done, true);
    tl_team_barrier(team);
}

/* Thread 0 takes its own part from the front and then the other's pieces from the back. */
static void who_is_held_up_is_helped(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(2, TL_PIN_NEVER);
    for (int run = 0; run < 3; run++) {
        held_up h = { .done = false };
        tl_pool_run(pool, 2, hold_up, &h);
        assert_int_equal(h.late, 0);
        assert_int_equal(h.count, 64);
        for (int i = 0; i < 32; i++)
            assert_int_equal(h.order[i], i);
        for (int i = 0; i < 32; i++)
            assert_int_equal(h.order[32 + i], 60 - i / 4 * 4 + i % 4);
    }
    tl_pool_destroy(pool);
}

/* ---- bad company ---- */

/* In each of 300 phases threads read what others wrote in the one before. */
typedef struct {
    int64_t cells[2][60];
    int64_t want;
    atomic_int wrong;
    void (*at)(int phase); /* called by thread 0 between phases, or NULL */
} chain;

enum { PHASES = 300 };

static void walk_chain(tl_team *team, void *context)
{
    chain *c = context;
    tl_part part;

    for (int phase = 0; phase < PHASES; phase++) {
        const int64_t *from = c->cells[phase % 2];
        int64_t *to = c->cells[(phase + 1) % 2];
        if (team->thread == 0 && c->at != NULL)
            c->at(phase);
        tl_shared shared = tl_team_share(team, 60, 1 + phase % 4);
        while (tl_team_take(team, &shared, &part))
            for (int64_t i = part.begin; i < part.end; i++)
                to[i] = (from[i] + from[(i + 7) % 60]) % 1000003;
        tl_team_barrier(team);
    }
}

static void check_chain(tl_pool *pool, int threads, void (*at)(int))
{
    chain one = { .at = NULL }, team = { .at = at };

    for (int i = 0; i < 60; i++)
        one.cells[0][i] = team.cells[0][i] = i * i;
    tl_pool_run(pool, 1, walk_chain, &one);
    tl_pool_run(pool, threads, walk_chain, &team);
    assert_memory_equal(one.cells, team.cells, sizeof one.cells);
}

/* Runs `body` in a child that may take so many seconds. */
static void in_a_child(void (*body)(void), unsigned seconds)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(seconds * PATIENCE);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void use_one_processor(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        abort();
    for (int i = 0, kept = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && kept++ > 0)
            CPU_CLR(i, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void run_on_one_core(void)
{
    use_one_processor();
    for (int threads = 1; threads <= 4; threads++) {
        tl_pool *pool = make_pool(threads, TL_PIN_AUTO);
        for (int i = 0; i < 5; i++)
            check_chain(pool, threads, NULL);
        tl_pool_destroy(pool);
    }
}

static void one_core(void **state)
{
    (void)state;
    in_a_child(run_on_one_core, 60);
}

static cpu_set_t whole_mask;

static void change_mask(int phase)
{
    if (phase % 100 == 20)
        use_one_processor();
    else if (phase % 100 == 70)
        sched_setaffinity(0, sizeof whole_mask, &whole_mask);
}

static void run_while_masks_change(void)
{
    sched_getaffinity(0, sizeof whole_mask, &whole_mask);
    for (int pin = TL_PIN_AUTO; pin <= (int)TL_PIN_ALWAYS; pin++) {
        tl_pool *pool = make_pool(3, (tl_pin)pin);
        for (int i = 0; i < 5; i++)
            check_chain(pool, 3, change_mask);
        tl_pool_destroy(pool);
    }
}

static void a_mask_that_changes(void **state)
{
    (void)state;
    in_a_child(run_while_masks_change, 60);
}

static void take_another_mask(int phase)
{
    if (phase == PHASES / 2)
        sched_setaffinity(0, sizeof whole_mask, &whole_mask);
}

/* A mask that the caller is given during a run stays, also where the pool has pinned it. */
static void a_mask_that_is_given_stays(void **state)
{
    (void)state;
    cpu_set_t after;
    sched_getaffinity(0, sizeof whole_mask, &whole_mask);
    tl_pool *pool = make_pool(2, TL_PIN_ALWAYS);
    check_chain(pool, 2, take_another_mask);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&after, &whole_mask));
    tl_pool_destroy(pool);
}

static void run_many_threads(void)
{
    tl_pool *pool = make_pool(32, TL_PIN_AUTO);
    check_chain(pool, 32, NULL);
    check_chain(pool, 5, NULL);
    tl_pool_destroy(pool);
}

static void more_threads_than_cores(void **state)
{
    (void)state;
    in_a_child(run_many_threads, 60);
}

/* A stack that no machine has: the second thread does not start, and what had started ends. */
static void run_without_workers(void)
{
    pthread_attr_t attributes;
    tl_pool_options options = { .threads = 3 };
    tl_pool *pool = NULL;
    tl_diag diag = { 0 };
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)1 << 50) != 0 ||
        pthread_setattr_default_np(&attributes) != 0)
        _exit(0);
    if (tl_pool_create(&options, &pool, &diag) != TL_DEVICE || pool != NULL ||
        strstr(diag.text, "cannot start thread 2 of 3") == NULL)
        _exit(1);
}

static void a_worker_that_does_not_start(void **state)
{
    (void)state;
    in_a_child(run_without_workers, 20);
}

static void run_in_another(tl_team *team, void *context)
{
    if (team->thread == team->threads - 1)
        check_chain(context, 2, NULL);
    tl_team_barrier(team);
}

static void inside_of_another_pools_worker(void **state)
{
    (void)state;
    tl_pool *a = make_pool(3, TL_PIN_NEVER), *b = make_pool(2, TL_PIN_NEVER);
    for (int i = 0; i < 5; i++)
        tl_pool_run(a, 3, run_in_another, b);
    check_chain(b, 2, NULL);
    tl_pool_destroy(a);
    tl_pool_destroy(b);
}

/* ---- a quota ---- */

static bool put(const char *folder, const char *file, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    bool good = f != NULL && fputs(text, f) >= 0;
    return f != NULL && fclose(f) == 0 && good;
}

static char group[200];

static void run_with_a_quota(void)
{
    char self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    if (!put(group, "cgroup.procs", self))
        _exit(77);
    tl_pool *pool = make_pool(2, TL_PIN_AUTO);
    for (int i = 0; i < 20; i++)
        check_chain(pool, 2, NULL);
    tl_pool_destroy(pool);
}

/* Half of a core, where we may make a group that has no more. */
static void half_of_a_core(void **state)
{
    (void)state;
    snprintf(group, sizeof group, "/sys/fs/cgroup/cpu/tilth-test-%d", (int)getpid());
    if (mkdir(group, 0755) != 0 || !put(group, "cpu.cfs_period_us", "20000") ||
        !put(group, "cpu.cfs_quota_us", "10000")) {
        rmdir(group);
        print_message("skip: no cgroup with a quota can be made here\n");
        skip();
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(60 * PATIENCE);
        run_with_a_quota();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    rmdir(group);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skip: no process may join that cgroup\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- waiting costs nobody else ---- */

static int64_t process_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nothing(tl_team *team, void *context)
{
    (void)team, (void)context;
}

/* Workers that are wanted every five milliseconds soon sleep between: two of them took two milliseconds each time. */
static void workers_learn_to_sleep(void **state)
{
    (void)state;
    enum { RUNS = 100, LEARNING = 20 };
    tl_pool *pool = make_pool(3, TL_PIN_NEVER);
    int64_t spent = 0;
    for (int i = 0; i < RUNS + LEARNING; i++) {
        if (i == LEARNING)
            spent = -process_ns();
        tl_pool_run(pool, 3, nothing, NULL);
        tl_clock_sleep_ns(5000000);
    }
    spent += process_ns();
    tl_pool_destroy(pool);
    assert_true(spent / RUNS < 500000 * PATIENCE);
}

static void wait_for_one(tl_team *team, void *context)
{
    (void)context;
    if (team->thread == 0)
        tl_clock_sleep_ns(20000000);
    tl_team_barrier(team);
}

/* Nor do those who wait inside of a run look on for longer than it pays. */
static void who_waits_inside_sleeps(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(3, TL_PIN_NEVER);
    int64_t spent = -process_ns();
    for (int i = 0; i < 20; i++)
        tl_pool_run(pool, 3, wait_for_one, NULL);
    spent += process_ns();
    tl_pool_destroy(pool);
    assert_true(spent / 20 < 4000000 * PATIENCE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_iteration_once),
        cmocka_unit_test(more_ranges_than_numbers),
        cmocka_unit_test(as_many_pieces_as_fit),
        cmocka_unit_test(who_is_held_up_is_helped),
        cmocka_unit_test(one_core),
        cmocka_unit_test(a_mask_that_changes),
        cmocka_unit_test(a_mask_that_is_given_stays),
        cmocka_unit_test(more_threads_than_cores),
        cmocka_unit_test(a_worker_that_does_not_start),
        cmocka_unit_test(inside_of_another_pools_worker),
        cmocka_unit_test(half_of_a_core),
        cmocka_unit_test(workers_learn_to_sleep),
        cmocka_unit_test(who_waits_inside_sleeps),
    };
    return cmocka_run_group_tests_name("what teams share", tests, NULL, NULL);
}
