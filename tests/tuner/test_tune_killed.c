/* tests/tuner/test_tune_killed.c: the tuner is killed fifty times at random instants and started again: what was measured
 * is in the database, once, and is not measured again. */
#include <sys/wait.h>
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tests/tuner/tuning.h"

enum { KILLS = 50, MOST = 20000 };
static char folder[] = "/tmp/tilth-tune-killed-XXXXXX", path[96];

/* What a tuner tells of a trial once the store has it. */
typedef struct {
    int64_t sequence;
    char program[17], origin[15];
} news;

typedef struct {
    int pipe;
    int64_t sequence;
} teller;

static void tell(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    teller *to = user;
    tl_tune_totals totals;
    news n = { 0 };
    if (e->kind != TL_TUNE_TRIAL)
        return;
    tl_tuning_totals(t, &totals);
    n.sequence = ++to->sequence;
    memcpy(n.program, e->proposal->program, sizeof n.program);
    snprintf(n.origin, sizeof n.origin, "%s", e->proposal->origin);
    if (totals.unwritten == 0 && write(to->pipe, &n, sizeof n) != sizeof n)
        _exit(4);
}

static void tune(int round, int pipe)
{
    tl_records *store;
    tl_measurer *m;
    tl_tuning *t;
    char session[24];
    teller to = { pipe, 0 };
    tl_measure_options measure = { .worker = measuring_self(), .target = tuning_target() };
    tl_arena *arena = tl_arena_create(0);
    snprintf(session, sizeof session, "round %d", round);
    if (tl_records_open(path, TL_RECORDS_CREATE, &store, NULL) != TL_OK ||
        tl_measurer_create(&measure, &m, NULL) != TL_OK)
        _exit(1);
    tl_tune_options o = tuning_options(m, store, 0);
    o.budget_s = 600;
    o.session = session;
    o.listen = tell;
    o.user = &to;
    tl_tune_known(store, tuning_tasks, 2, arena, &o.known, &o.known_count);
    if (tl_tuning_create(&o, tuning_tasks, 2, &t, NULL) != TL_OK || tl_tuning_run(t, NULL) != TL_OK)
        _exit(2);
    for (;;) /* everything was tried: wait for the end */
        pause();
}

typedef struct {
    int round;
    int64_t sequence;
    char program[17];
} row;

static row told[MOST], stored[MOST];
static char random_programs[MOST][17];
static int told_count, stored_count, random_count;

static bool take_record(void *user, const tl_record *r)
{
    (void)user;
    row *to = &stored[stored_count++];
    assert_int_equal(sscanf(r->session, "round %d", &to->round), 1);
    to->sequence = r->sequence;
    snprintf(to->program, sizeof to->program, "%s", r->program);
    return stored_count < MOST;
}

static void nothing_is_lost_or_doubled(void **state)
{
    (void)state;
    int64_t window = 300000000 * (int64_t)PATIENCE;
    tl_random random = tl_random_make(12);
    for (int round = 0; round < KILLS; round++) {
        int ends[2], status, before = told_count;
        news n;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            tune(round, ends[1]);
        }
        close(ends[1]);
        tl_clock_sleep_ns(tl_random_below(&random, window));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            fail_msg("round %d: the tuner ended by itself with status %d", round,
                     WEXITSTATUS(status));
        while (read(ends[0], &n, sizeof n) == sizeof n) {
            told[told_count] = (row){ .round = round, .sequence = n.sequence };
            memcpy(told[told_count++].program, n.program, sizeof n.program);
            if (strcmp(n.origin, "random") == 0)
                memcpy(random_programs[random_count++], n.program, sizeof n.program);
        }
        close(ends[0]);
        if (told_count == before)
            window = patience_widen(window);
    }
    tl_records *store;
    assert_int_equal(tl_records_open(path, 0, &store, NULL), TL_OK);
    assert_int_equal(tl_records_visit(store, NULL, take_record, NULL, NULL), TL_OK);
    tl_records_close(store, NULL);
    assert_true(told_count > KILLS / 2);
    for (int i = 0; i < told_count; i++) {
        int found = 0;
        for (int k = 0; k < stored_count; k++)
            found += stored[k].round == told[i].round && stored[k].sequence == told[i].sequence &&
                     strcmp(stored[k].program, told[i].program) == 0;
        if (found != 1)
            fail_msg("trial %d of round %d is in the database %d times", (int)told[i].sequence,
                     told[i].round, found);
    }
    for (int i = 0; i < random_count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(random_programs[i], random_programs[k]) == 0)
                fail_msg("program %s was measured again", random_programs[i]);
    /* each killed run may have stored one trial that it did not tell of */
    assert_true(stored_count <= told_count + KILLS);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(nothing_is_lost_or_doubled,
                                                                        set_up, tear_down) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
