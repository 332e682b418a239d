/* tests/tuner/test_tune.c: runs of the tuner: budgets, resuming, faults of candidates, the same decisions again. */
#include "tests/tuner/tuning.h"
#include "runtime/base/clock.h"
#include "tests/support/patience.h"

static char folder[] = "/tmp/tilth-tune-XXXXXX", path[96], recording[96];

static tl_records *open_store(void)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, TL_RECORDS_CREATE, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

/* Every record of the store: how many; how many of one session, sequence; of one program. */
typedef struct {
    int64_t count, first_of_untuned;
    int twice;
    int64_t sequences[512];
    char programs[512][17], sessions[512][33];
    double least;
} census;

static bool count_record(void *user, const tl_record *r)
{
    census *c = user;
    assert_true(c->count < 512);
    for (int64_t i = 0; i < c->count; i++)
        c->twice += c->sequences[i] == r->sequence && strcmp(c->sessions[i], r->session) == 0;
    c->sequences[c->count] = r->sequence;
    snprintf(c->programs[c->count], 17, "%s", r->program);
    snprintf(c->sessions[c->count], 33, "%s", r->session);
    if (r->status == TL_RECORD_OK && !r->hopeless && (c->least == 0 || r->score_ns < c->least))
        c->least = r->score_ns;
    c->count++;
    return true;
}

static census *take_census(tl_records *store, const char *workload)
{
    static census c;
    tl_query query = { .workload = workload };
    c = (census){ 0 };
    assert_int_equal(tl_records_visit(store, &query, count_record, &c, NULL), TL_OK);
    return &c;
}

static void every_trial_is_a_record(void **state)
{
    (void)state;
    tl_records *store = open_store();
    tl_measurer *m = measuring_start(NULL);
    tl_tune_options o = tuning_options(m, store, 60);
    tl_tuning *t = tuning_make(&o, tuning_tasks, 2);
    tl_tune_totals totals;
    tuning_finish(t);
    tl_tuning_totals(t, &totals);
    const tl_tuned *product = tl_tuning_task(t, 0), *tiny = tl_tuning_task(t, 1);
    assert_int_equal(totals.missing, 0);
    assert_true(totals.trials == product->trials + tiny->trials && totals.trials <= 60);
    assert_true(product->life == TL_TASK_OPEN || product->life == TL_TASK_RESTING);
    assert_true(tiny->trials >= 1); /* negligible: it may wait for its turn in vain */
    assert_true(product->trials > 40 && totals.by_status[TL_RECORD_WRONG] > 0);
    assert_true(product->best_ns > 0 && product->best_ns <= product->untuned_ns);
    assert_true(totals.best_ns == 3 * product->best_ns + tiny->best_ns);
    assert_string_equal(product->best->lowering, "direct");

    census *c = take_census(store, NULL);
    assert_true(c->count == totals.trials && c->twice == 0);
    c = take_census(store, tuning_measure[0].workload);
    assert_true(c->count == product->trials && c->least <= product->best_ns);
    for (int64_t i = 0; i < c->count; i++)
        for (int64_t k = 0; k < i; k++)
            assert_string_not_equal(c->programs[i], c->programs[k]);
    tl_arena *arena = tl_arena_create(0);
    tl_workload_info info;
    assert_true(tl_records_find_workload(store, arena, tuning_measure[1].workload, &info));
    assert_string_equal(info.program, tiny_text);
    tl_arena_destroy(arena);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
    tl_records_close(store, NULL);
}

/* What one run measured the next one does not measure again, but for the default schedule and the best. */
static void a_second_run_goes_on(void **state)
{
    (void)state;
    tl_records *store = open_store();
    tl_arena *arena = tl_arena_create(0);
    double best[2];
    for (int run = 0; run < 2; run++) {
        tl_measurer *m = measuring_start(NULL);
        tl_tune_options o = tuning_options(m, store, 30);
        o.session = run == 0 ? "first" : "second";
        tl_tune_known(store, tuning_tasks, 1, arena, &o.known, &o.known_count);
        tl_tuning *t = tuning_make(&o, tuning_tasks, 1);
        tuning_finish(t);
        const tl_tuned *product = tl_tuning_task(t, 0);
        assert_int_equal(product->trials, 30);
        assert_int_equal(product->known, run == 0 ? 0 : 30);
        best[run] = product->best_ns / product->untuned_ns;
        tl_tuning_destroy(t);
        tl_measurer_destroy(m);
    }
    /* within what timing says twice of the same */
    assert_true(best[1] < 1.3 * best[0]);
    const census *c = take_census(store, NULL);
    int again = 0;
    assert_true(c->count == 60 && c->twice == 0);
    for (int64_t i = 0; i < 30; i++)
        for (int64_t k = 30; k < 60; k++)
            again += strcmp(c->programs[i], c->programs[k]) == 0;
    assert_true(again >= 1 && again <= 2);
    tl_arena_destroy(arena);
    tl_records_close(store, NULL);
}

/* Times of another revision are not believed, but its best traces are measured again. */
static void stale_records_are_seeds(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_measurer *m = measuring_start(NULL);
    tl_record stale[7];
    tl_space *space;
    tl_random random = tl_random_make(3);
    assert_int_equal(tl_space_create(arena, &tuning_measure[2], tuning_target(), 1, TL_SPACE_FULL,
                                     &space, NULL),
                     TL_OK);
    for (int i = 0; i < 7; i++) {
        tl_variant v;
        assert_int_equal(tl_space_sample(space, arena, &random, &v, NULL), TL_OK);
        stale[i] = (tl_record){ .workload = matmul_workload,
                                .class_key = "c0",
                                .family = "matmul",
                                .target = "elsewhere",
                                .numerics = "strict",
                                .lowering = "direct",
                                .trace = v.trace,
                                .program = tl_arena_strdup(arena, v.hash),
                                .reason = "",
                                .score_ns = 100.0 - i,
                                .threads = 1,
                                .revision = 1,
                                .environment = "",
                                .session = "old" };
    }
    tl_tune_options o = tuning_options(m, NULL, 10);
    o.known = stale;
    o.known_count = 7;
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    assert_int_equal(tl_tuning_task(t, 0)->known, 0);
    assert_int_equal(tl_tuning_task(t, 0)->ok, 10);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
    tl_arena_destroy(arena);
}

static void faults_cost_one_candidate_each(void **state)
{
    (void)state;
    static const char *const remarks[] = {
        "",
        "# fault: crash at run\n",
        "# fault: hang at run\n",
        "# fault: memory at run\n",
        "",
        "# fault: kill at run\n",
        "# fault: crash at build\n",
        "# fault: exit at run\n",
        "nonsense(\n",
        "# fault: illegal at run\n",
    };
    static const struct {
        tl_record_status status;
        int least, most;
    } expected[] = { { TL_RECORD_CRASH, 4,
                       12 }, /* on a busy machine ten gigabytes may take too long instead */
                     { TL_RECORD_TIMEOUT, 4, 8 },
                     { TL_RECORD_MEMORY, 1, 4 },
                     { TL_RECORD_ILLEGAL, 4, 4 },
                     { TL_RECORD_ILLEGAL_INSTRUCTION, 4, 4 } };
    tuning_remarks = remarks;
    tuning_remark_count = 10;
    tl_records *store = open_store();
    tl_measurer *m = measuring_start(&(tl_measure_options){
        .run_limit_s = 0.5 * PATIENCE, .build_limit_s = 2 * PATIENCE, .memory_bytes = 1 << 28 });
    tl_tune_options o = tuning_options(m, store, 41);
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tl_tune_totals totals;
    tuning_finish(t);
    tuning_remark_count = 0;
    tl_tuning_totals(t, &totals);
    assert_int_equal(totals.trials, 41);
    assert_true(totals.ok >= 8);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (totals.by_status[expected[i].status] < expected[i].least ||
            totals.by_status[expected[i].status] > expected[i].most)
            fail_msg("%s: %d times", tl_record_status_infos[expected[i].status].text,
                     (int)totals.by_status[expected[i].status]);
    assert_int_equal(take_census(store, NULL)->count, 41);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
    tl_records_close(store, NULL);
}

/* ---- the same again ---- */

typedef struct {
    tl_text log;
    int stop_at;
    volatile sig_atomic_t stop;
    int64_t started_ns, tick_count;
} listener;

static void listen(void *user, const tl_tuning *t, const tl_tune_event *e)
{
    listener *l = user;
    (void)t;
    if (e->kind == TL_TUNE_TICK)
        l->tick_count++;
    if (e->kind != TL_TUNE_TRIAL)
        return;
    tl_text_format(&l->log, "%d %s %s %s %.17g %d\n%s", e->task, e->proposal->origin,
                   e->proposal->program, tl_record_status_infos[e->result->status].text,
                   e->result->score_ns, e->is_best, e->proposal->candidate.trace);
    if (l->stop_at > 0 && --l->stop_at == 0)
        l->stop = 1;
}

static void replayed_decisions_are_the_same(void **state)
{
    (void)state;
    tl_measurer *recorder;
    tl_diag diag = { 0 };
    listener logs[4] = { 0 };
    assert_int_equal(tl_recorder_create(measuring_start(NULL), recording, &recorder, &diag), TL_OK);
    assert_int_equal(tl_recorder_note(recorder, "{\"record\":\"note\"}", &diag), TL_OK);
    for (int run = 0; run < 4; run++) {
        tl_measurer *m = recorder;
        if (run > 0 && tl_replayer_create(recording, &m, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        /* the recorded run was stopped: the others end where the recording does */
        tl_tune_options o = tuning_options(m, NULL, run == 2 ? 0 : 70);
        o.budget_s = run == 2 ? 1000 : 0;
        o.seed = run == 3 ? 6 : 5;
        o.listen = listen;
        o.user = &logs[run];
        o.stop = &logs[run].stop;
        logs[run].stop_at = run == 0 ? 50 : 0;
        tl_tuning *t = tuning_make(&o, tuning_tasks, 2);
        tuning_finish(t);
        tl_tuning_destroy(t);
        tl_measurer_destroy(m);
    }
    assert_true(logs[0].log.size > 5000);
    assert_string_equal(tl_text_get(&logs[0].log), tl_text_get(&logs[1].log));
    assert_string_equal(tl_text_get(&logs[0].log), tl_text_get(&logs[2].log));
    assert_string_not_equal(tl_text_get(&logs[0].log), tl_text_get(&logs[3].log));
    for (int run = 0; run < 4; run++)
        tl_text_free(&logs[run].log);
}

/* Two runs, one after the other, of one measurer; the first is stopped with candidates in flight. */
static void two_runs(tl_measurer *m, int64_t stop_at, listener logs[2])
{
    for (int run = 0; run < 2; run++) {
        tl_tune_options o = tuning_options(m, NULL, run == 0 ? 70 : 30);
        o.budget_s = 1000;
        o.seed = 5;
        o.starts_in_order = run == 1;
        o.listen = listen;
        o.user = &logs[run];
        o.stop = &logs[run].stop;
        logs[run].stop_at = run == 0 ? stop_at : 0;
        tl_tuning *t =
            tuning_make(&o, tuning_tasks, 2); /* the same tasks: their defaults are asked twice */
        tuning_finish(t);
        tl_tuning_destroy(t);
    }
    tl_measurer_destroy(m);
}

static void runs_of_one_recording_stay_apart(void **state)
{
    (void)state;
    tl_measurer *m;
    tl_diag diag = { 0 };
    listener first[2] = { 0 }, second[2] = { 0 };
    assert_int_equal(tl_recorder_create(measuring_start(NULL), recording, &m, &diag), TL_OK);
    two_runs(m, 25, first);
    if (tl_replayer_create(recording, &m, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    two_runs(m, 0, second);
    for (int run = 0; run < 2; run++) {
        assert_true(first[run].log.size > 1000);
        assert_string_equal(tl_text_get(&first[run].log), tl_text_get(&second[run].log));
        tl_text_free(&first[run].log);
        tl_text_free(&second[run].log);
    }
}

/* ---- time ---- */

static void it_ends_in_time(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    tl_tune_options o = tuning_options(m, NULL, 0);
    listener l = { 0 };
    o.budget_s = PATIENCE;
    int64_t start = tl_clock_ns();
    tl_tuning *t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    double took = (double)(tl_clock_ns() - start) * 1e-9;
    if (took < o.budget_s || took > 1.8 * o.budget_s)
        fail_msg("%.0f s took %.3f", o.budget_s, took);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);

    /* stopped from outside, though a candidate hangs */
    static const char *const remarks[] = { "# fault: hang at run\n" };
    tuning_remarks = remarks;
    tuning_remark_count = 1;
    m = measuring_start(NULL);
    o = tuning_options(m, NULL, 0);
    o.budget_s = 60;
    o.listen = listen;
    o.user = &l;
    o.stop = &l.stop;
    l.stop_at = 1;
    start = tl_clock_ns();
    t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    tuning_remark_count = 0;
    took = (double)(tl_clock_ns() - start) * 1e-9;
    tl_tune_totals totals;
    tl_tuning_totals(t, &totals);
    assert_true(totals.stopped && totals.trials == 1);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
    tl_text_free(&l.log);
    if (took > 3 * PATIENCE)
        fail_msg("stopping took %.3f s", took);
}

/* With nothing left to try a run ends, whatever its budget; without a budget it ends when all tasks rest. */
static void it_ends_when_nothing_is_left(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    tl_tune_options o = tuning_options(m, NULL, 0);
    tl_tune_totals totals;
    o.budget_s = 100;
    int64_t start = tl_clock_ns();
    tl_tuning *t = tuning_make(&o, tuning_tasks + 1, 1);
    tuning_finish(t);
    assert_true(tl_clock_ns() - start < 20000000000 * PATIENCE);
    assert_int_equal(tl_tuning_task(t, 0)->life, TL_TASK_EXHAUSTED);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);

    m = measuring_start(NULL);
    o = tuning_options(m, NULL, 0);
    t = tuning_make(&o, tuning_tasks + 2, 1);
    tuning_finish(t);
    tl_tuning_totals(t, &totals);
    assert_true(totals.all_rest && totals.left_s < 0);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);

    m = measuring_start(NULL);
    o = tuning_options(m, NULL, 0);
    o.trials_per_task = 9;
    t = tuning_make(&o, tuning_tasks, 2);
    tuning_finish(t);
    assert_int_equal(tl_tuning_task(t, 0)->trials, 9);
    assert_true(tl_tuning_task(t, 1)->trials <= 9);
    tl_tuning_destroy(t);
    tl_measurer_destroy(m);
}

static void nothing_valid_is_said(void **state)
{
    (void)state;
    static const tl_measure_lowering lowerings[] = { { "direct", matmul_text, 0, 0 },
                                                     { "wrong", wrong_text, 0, 0 } };
    static const char *const remarks[] = { "# fault: crash at run\n" };
    tl_measure_task measure = tuning_measure[0];
    measure.lowerings = lowerings;
    const tl_tune_task task = { &measure, &tuning_workloads[0], 1, 1 };
    tl_measurer *m = measuring_start(NULL);
    tl_tune_options o = tuning_options(m, NULL, 100);
    tl_diag diag = { 0 };
    tuning_remarks = remarks;
    tuning_remark_count = 1;
    tl_tuning *t = tuning_make(&o, &task, 1);
    assert_int_equal(tl_tuning_run(t, &diag), TL_BUDGET);
    tuning_remark_count = 0;
    assert_int_equal(tl_tuning_task(t, 0)->life, TL_TASK_FAILED);
    assert_true(tl_tuning_task(t, 0)->trials < 40);
    assert_non_null(strstr(diag.text, "signal 11"));
    tl_tuning_destroy(t);

    o.trials = -1;
    assert_int_equal(tl_tuning_create(&o, &task, 1, &t, &diag), TL_BAD_ARGUMENT);
    o.trials = 0;
    assert_int_equal(tl_tuning_create(&o, &task, 0, &t, &diag), TL_BAD_ARGUMENT);
    tl_tune_task bad = task;
    bad.untuned = 2;
    assert_int_equal(tl_tuning_create(&o, &bad, 1, &t, &diag), TL_BAD_ARGUMENT);
    tl_measurer_destroy(m);
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/records.db", folder);
    snprintf(recording, sizeof recording, "%s/recording.jsonl", folder);
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
        cmocka_unit_test_teardown(every_trial_is_a_record, clear),
        cmocka_unit_test_teardown(a_second_run_goes_on, clear),
        cmocka_unit_test(stale_records_are_seeds),
        cmocka_unit_test_teardown(faults_cost_one_candidate_each, clear),
        cmocka_unit_test_teardown(replayed_decisions_are_the_same, clear),
        cmocka_unit_test_teardown(runs_of_one_recording_stay_apart, clear),
        cmocka_unit_test(it_ends_in_time),
        cmocka_unit_test(it_ends_when_nothing_is_left),
        cmocka_unit_test(nothing_valid_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
