/* tests/tuner/test_killed.c: a tuner that is killed at random instants: what it measured is in the database, once, and
 * its workers are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/wait.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tests/tuner/measuring.h"
#include "tuner/records/store.h"

enum { KILLS = 50, MOST = 100000 };
static char folder[] = "/tmp/tilth-killed-XXXXXX", path[96];

/* The tuner: measures for ever, one record a trial, and tells of each that the store took. */
static void tune(int64_t first, int pipe)
{
    static const char *const traces[] = { "", good_trace, "nonsense(",
                                          "i, j, k = loops(matmul)\nunroll(k)\n",
                                          "# fault: crash at run\n" };
    tl_target target;
    tl_records *store;
    tl_measurer *m;
    int task;
    if (compiled_target(NULL, &target, NULL) != TL_OK ||
        tl_records_open(path, TL_RECORDS_CREATE, &store, NULL) != TL_OK)
        _exit(1);
    tl_measure_options options = { .worker = measuring_self(), .target = &target };
    tl_measure_lowering lowering = { "direct", matmul_text, 0, 0 };
    tl_measure_task spec = { .name = "matmul",
                             .workload = "0123456789abcdef0123456789abcdef",
                             .lowering_count = 1,
                             .lowerings = &lowering };
    if (tl_measurer_create(&options, &m, NULL) != TL_OK ||
        tl_measurer_add_task(m, &spec, &task, NULL) != TL_OK)
        _exit(2);
    for (int64_t i = first;; i++) {
        tl_candidate candidate = { .trace = traces[i % 5] };
        tl_result result;
        tl_record record;
        if (tl_measurer_submit(m, task, &candidate, 1, NULL, NULL) != TL_OK ||
            tl_measurer_next(m, 60, &result, NULL) != TL_OK)
            _exit(3);
        tl_result_to_record(&spec, &candidate, &result, &record);
        record.session = "killed";
        record.sequence = i;
        tl_record_seal(&record);
        if (tl_records_add(store, &record, NULL) != TL_OK || tl_records_pending(store, NULL) > 0 ||
            write(pipe, &i, sizeof i) != sizeof i)
            _exit(4);
    }
}

/* Processes that run this program as workers. */
static int count_workers(void)
{
    int count = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        char name[300], text[512] = "";
        snprintf(name, sizeof name, "/proc/%s/cmdline", entry->d_name);
        FILE *file = fopen(name, "r");
        if (file == NULL)
            continue;
        size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        size_t first = strlen(text);
        count += n > first + 7 && strcmp(text, measuring_self()) == 0 &&
                 strcmp(text + first + 1, "worker") == 0;
    }
    closedir(processes);
    return count;
}

typedef struct {
    bool seen[MOST];
    int64_t count, doubled;
} census;

static bool count_record(void *user, const tl_record *record)
{
    census *c = user;
    c->count++;
    c->doubled += c->seen[record->sequence];
    c->seen[record->sequence] = true;
    return true;
}

static void what_was_measured_stays(void **state)
{
    (void)state;
    static bool told[MOST];
    static census c;
    int64_t next = 1, number, window = 300000000 * (int64_t)PATIENCE;
    tl_random random = tl_random_make(11);
    for (int round = 0; round < KILLS; round++) {
        int ends[2], status;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            tune(next, ends[1]);
        }
        close(ends[1]);
        int64_t before = next;
        tl_clock_sleep_ns(tl_random_below(&random, window));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            fail_msg("round %d: the tuner ended by itself with status %d", round,
                     WEXITSTATUS(status));
        while (read(ends[0], &number, sizeof number) == sizeof number) {
            told[number] = true;
            next = number + 1;
        }
        close(ends[0]);
        if (next == before)
            window = patience_widen(window);
    }
    tl_records *store;
    assert_int_equal(tl_records_open(path, 0, &store, NULL), TL_OK);
    assert_int_equal(tl_records_visit(store, NULL, count_record, &c, NULL), TL_OK);
    tl_records_close(store, NULL);
    for (int i = 0; i < MOST; i++)
        if (told[i] && !c.seen[i])
            fail_msg("trial %d was measured and is lost", i);
    /* a trial in flight may have come in twice: measured again after the kill, by another time; never the same one */
    assert_true(c.count >= next - 1 && c.count <= next - 1 + KILLS && c.doubled <= KILLS);
    assert_true(next > KILLS / 2);

    int64_t end = tl_clock_ns() + 20000000000 * PATIENCE;
    while (count_workers() > 0 && tl_clock_ns() < end)
        tl_clock_sleep_ns(50000000);
    assert_int_equal(count_workers(), 0);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/records.db", folder);
    return 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(int argc, char **argv)
{
    int code;
    if (measuring_is_worker(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(what_was_measured_stays,
                                                                        set_up, tear_down) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
