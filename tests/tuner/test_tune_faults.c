/* tests/tuner/test_tune_faults.c: what happens around a run of the tuner: clocks that jump, cores that go, databases that
 * are locked, full, cut off or shared. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tests/tuner/tuning.h"
#include "tuner/measure/measure_private.h"

static char folder[] = "/tmp/tilth-faults-XXXXXX", path[96];

static tl_records *open_store(void)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, TL_RECORDS_CREATE | TL_RECORDS_REPAIR, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

static int64_t count_records(void)
{
    tl_records *store = open_store();
    tl_records_stats stats;
    tl_diag diag = { 0 };
    if (tl_records_measure(store, &stats, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_records_close(store, NULL);
    return stats.records;
}

/* ---- clocks ---- */

/* A measurer with another clock. */
typedef struct {
    tl_measurer base;
    tl_measurer *inner;
    int64_t jump_ns; /* after every result */
    int64_t offset_ns;
} jumping;

static void jumping_destroy(tl_measurer *m)
{
    tl_measurer_destroy(((jumping *)m)->inner);
}

static tl_status jumping_add_task(tl_measurer *m, const tl_measure_task *task, int *out,
                                  tl_diag *diag)
{
    return tl_measurer_add_task(((jumping *)m)->inner, task, out, diag);
}

static tl_status jumping_submit(tl_measurer *m, int task, const tl_candidate *candidates, int count,
                                int64_t *ticket, tl_diag *diag)
{
    return tl_measurer_submit(((jumping *)m)->inner, task, candidates, count, ticket, diag);
}

static tl_status jumping_next(tl_measurer *m, double timeout_s, tl_result *out, tl_diag *diag)
{
    tl_status status = tl_measurer_next(((jumping *)m)->inner, timeout_s, out, diag);
    if (status == TL_OK) {
        ((jumping *)m)->offset_ns += ((jumping *)m)->jump_ns;
        out->finished_ns += ((jumping *)m)->offset_ns;
    }
    return status;
}

static void jumping_pump(tl_measurer *m)
{
    tl_measurer_pump(((jumping *)m)->inner);
}

static int64_t jumping_queued(const tl_measurer *m)
{
    return tl_measurer_queued(((const jumping *)m)->inner);
}

static void jumping_forget(tl_measurer *m, int task)
{
    tl_measurer_forget(((jumping *)m)->inner, task);
}

static void jumping_leave_core(const tl_measurer *m)
{
    tl_measurer_leave_core(((const jumping *)m)->inner);
}

static int64_t jumping_clock(const tl_measurer *m)
{
    return tl_measurer_clock(((const jumping *)m)->inner) + ((const jumping *)m)->offset_ns;
}

static void jumping_stats(const tl_measurer *m, tl_measure_stats *out)
{
    tl_measurer_stats(((const jumping *)m)->inner, out);
}

static const tl_measurer_type jumping_type = { jumping_destroy, jumping_add_task,   jumping_submit,
                                               jumping_next,    jumping_pump,       jumping_queued,
                                               jumping_forget,  jumping_leave_core, jumping_clock,
                                               jumping_stats };

static void clocks_may_jump(void **state)
{
    (void)state;
    static const int64_t jumps[] = { (int64_t)3600 * 1000000000, (int64_t)-3600 * 1000000000 };
    for (int i = 0; i < 2; i++) {
        jumping m = { .base.type = &jumping_type,
                      .inner = measuring_start(NULL),
                      .jump_ns = jumps[i] };
        tl_tune_options o = tuning_options(&m.base, NULL, 0);
        tl_tune_totals totals;
        o.budget_s = 3 * PATIENCE; /* on a loaded machine the first candidate takes one of them */
        int64_t start = tl_clock_ns();
        tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
        tuning_finish(t);
        tl_tuning_totals(t, &totals);
        double took = (double)(tl_clock_ns() - start) * 1e-9;
        /* steps in which it jumped count as 20 ms: the budget is about what it was, never endless or over at once */
        if (took < 0.1 || took > 20 * PATIENCE || totals.trials < 3)
            fail_msg("%.0f seconds took %.3f s and %d trials", o.budget_s, took,
                     (int)totals.trials);
        tl_tuning_destroy(t);
        tl_measurer_destroy(&m.base);
    }
}

/* ---- cores ---- */

typedef struct {
    int after;
    cpu_set_t cores;
} core_thief;

/* Takes all cores but the first from this process, its threads and its workers. */
static void take_core(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    core_thief *thief = user;
    (void)t;
    if (e->kind != TL_TUNE_TRIAL || --thief->after != 0)
        return;
    char command[200];
    int first = 0;
    while (!CPU_ISSET((size_t)first, &thief->cores))
        first++;
    snprintf(
        command, sizeof command,
        "for p in %d $(pgrep -P %d) $(pgrep -P $(pgrep -d, -P %d)); do taskset -a -p -c %d $p; "
        "done >/dev/null 2>&1; true",
        getpid(), getpid(), getpid(), first);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static void a_core_may_go(void **state)
{
    (void)state;
    core_thief thief = { .after = 8 };
    assert_int_equal(sched_getaffinity(0, sizeof thief.cores, &thief.cores), 0);
    tl_measurer *m = measuring_start(NULL);
    tl_tune_options o = tuning_options(m, NULL, 40);
    tl_tune_totals totals;
    o.listen = take_core;
    o.user = &thief;
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    tl_tuning_totals(t, &totals);
    assert_true(thief.after < 0 && totals.trials == 40 && totals.ok == 40);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
    assert_int_equal(sched_setaffinity(0, sizeof thief.cores, &thief.cores), 0);
}

/* ---- databases ---- */

static void lock_for(sqlite3 *db, bool lock)
{
    char *message = NULL;
    if (sqlite3_exec(db, lock ? "BEGIN EXCLUSIVE" : "COMMIT", NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
}

typedef struct {
    int at, until, seen;
    sqlite3 *db;
    int64_t most_waiting;
} locker;

static void lock_meanwhile(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    locker *l = user;
    tl_tune_totals totals;
    if (e->kind != TL_TUNE_TRIAL)
        return;
    l->seen++;
    tl_tuning_totals(t, &totals);
    l->most_waiting = totals.unwritten > l->most_waiting ? totals.unwritten : l->most_waiting;
    if (l->seen == l->at)
        lock_for(l->db, true);
    if (l->seen == l->until)
        lock_for(l->db, false);
}

static void locked(void **state)
{
    (void)state;
    locker l = { .at = 5, .until = 12 };
    tl_records *store = open_store();
    tl_measurer *m = measuring_start(NULL);
    assert_int_equal(sqlite3_open(path, &l.db), SQLITE_OK);
    tl_tune_options o = tuning_options(m, store, 30);
    o.listen = lock_meanwhile;
    o.user = &l;
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    int64_t lost;
    tl_records_close(store, &lost);
    assert_true(l.most_waiting > 0 && lost == 0);
    assert_int_equal(count_records(), 30);
    sqlite3_close(l.db);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
}

static void fill_disk(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    locker *l = user;
    tl_tune_totals totals;
    struct stat file;
    struct rlimit limit;
    char journal[120];
    if (e->kind != TL_TUNE_TRIAL)
        return;
    l->seen++;
    tl_tuning_totals(t, &totals);
    l->most_waiting = totals.unwritten > l->most_waiting ? totals.unwritten : l->most_waiting;
    snprintf(journal, sizeof journal, "%s-wal", path);
    getrlimit(RLIMIT_FSIZE, &limit);
    if (l->seen == l->at)
        limit.rlim_cur = stat(journal, &file) == 0 ? (rlim_t)file.st_size + 100 : 100;
    if (l->seen == l->until)
        limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void disk_full(void **state)
{
    (void)state;
    locker l = { .at = 5, .until = 20 };
    tl_records *store = open_store();
    tl_measurer *m = measuring_start(NULL);
    signal(SIGXFSZ, SIG_IGN);
    tl_tune_options o = tuning_options(m, store, 30);
    o.listen = fill_disk;
    o.user = &l;
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    int64_t lost;
    tl_records_close(store, &lost);
    assert_true(l.most_waiting >= 10 && lost == 0);
    assert_int_equal(count_records(), 30);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
}

static void cut_off(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    locker *l = user;
    char journal[120];
    (void)t;
    if (e->kind != TL_TUNE_TRIAL || ++l->seen != l->at)
        return;
    snprintf(journal, sizeof journal, "%s-wal", path);
    if (truncate(path, l->until) != 0 && errno != ENOENT)
        fail_msg("truncate: %s", strerror(errno));
    if (truncate(journal, l->until) != 0 && errno != ENOENT)
        fail_msg("truncate: %s", strerror(errno));
}

/* The run goes on; what it measured from there on is in the file that was repaired, with what could be saved. */
static void truncated(void **state)
{
    (void)state;
    static const int sizes[] = { 0, 50, 5000, 20000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char command[96];
        locker l = { .at = 10, .until = sizes[i] };
        tl_records *store = open_store();
        tl_measurer *m = measuring_start(NULL);
        tl_tune_options o = tuning_options(m, store, 25);
        o.listen = cut_off;
        o.user = &l;
        tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
        tuning_finish(t);
        assert_int_equal(tl_tuning_task(t, 0)->trials, 25);
        tl_records_close(store, NULL);
        int64_t left = count_records();
        if (left < 15 || left > 25)
            fail_msg("cut to %d bytes after 10 trials of 25: %d are left", sizes[i], (int)left);
        tl_tuning_destroy(t);
        tl_measurer_destroy(m);
        snprintf(command, sizeof command, "rm -rf %s/*", folder);
        assert_int_equal(system(command), 0);
    }
}

static void two_tuners(void **state)
{
    (void)state;
    pid_t children[2];
    int status;
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        tl_records *store;
        tl_measurer *m;
        tl_tuning *t;
        tl_measure_options measure = { .worker = measuring_self(), .target = tuning_target() };
        if (tl_records_open(path, TL_RECORDS_CREATE, &store, NULL) != TL_OK ||
            tl_measurer_create(&measure, &m, NULL) != TL_OK)
            _exit(1);
        tl_tune_options o = tuning_options(m, store, 60);
        o.seed = (uint64_t)i;
        o.session = i == 0 ? "one" : "two";
        if (tl_tuning_create(&o, tuning_tasks, 2, &t, NULL) != TL_OK ||
            tl_tuning_run(t, NULL) != TL_OK)
            _exit(2);
        int64_t lost;
        tl_records_close(store, &lost);
        tl_tuning_destroy(t);
        tl_measurer_destroy(m);
        _exit(lost == 0 ? 0 : 3);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(count_records(), 120);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/records.db", folder);
    return 0;
}

static int clear(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    return system(command);
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    int code;
    if (measuring_is_worker(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_may_jump),           cmocka_unit_test(a_core_may_go),
        cmocka_unit_test_teardown(locked, clear),    cmocka_unit_test_teardown(disk_full, clear),
        cmocka_unit_test_teardown(truncated, clear), cmocka_unit_test_teardown(two_tuners, clear),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
