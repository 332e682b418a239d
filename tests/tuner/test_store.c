/* tests/tuner/test_store.c: records go in, stay and come out, and databases of other formats are read, raised or refused. */
#include <math.h>
#include <sqlite3.h>
#include "tests/tuner/storing.h"
#include "tuner/records/store_private.h"

static bool compare_record(void *user, const tl_record *record)
{
    tl_record expected;
    tl_text a = { 0 }, b = { 0 };
    int64_t *count = user;
    make_record(&expected, "one", (int)record->sequence);
    tl_record_print(&expected, &a);
    tl_record_print(record, &b);
    assert_string_equal(tl_text_get(&a), tl_text_get(&b));
    tl_text_free(&a);
    tl_text_free(&b);
    ++*count;
    return true;
}

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    int64_t count = 0;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 100);
    add_some(store, "one", 50, 20); /* again: nothing happens */
    assert_int_equal(tl_records_visit(store, NULL, compare_record, &count, NULL), TL_OK);
    assert_int_equal(count, 100);

    tl_arena *arena = tl_arena_create(0);
    tl_record best;
    char workload[33];
    snprintf(workload, sizeof workload, "%032d", 3);
    assert_true(tl_records_best(store, arena, &(tl_query){ .workload = workload }, &best, NULL));
    assert_int_equal(best.sequence, 8); /* 3 crashed */
    assert_false(tl_records_best(store, arena, &(tl_query){ .workload = "none" }, &best, NULL));
    assert_false(tl_records_best(store, arena, &(tl_query){ .revision = TL_CODEGEN_REVISION + 1 },
                                 &best, NULL));
    tl_workload_info info;
    assert_true(tl_records_find_workload(store, arena, workload, &info));
    assert_string_equal(info.program, "kernel k(A: f32[4])\n");
    tl_arena_destroy(arena);

    static const struct {
        tl_query query;
        int64_t count;
    } cases[] = {
        { { .only_failed = true }, 25 },
        { { .only_ok = true }, 75 },
        { { .lowering = "direct" }, 50 },
        { { .limit = 7, .order = TL_ORDER_NEWEST }, 7 },
        { { .session = "two" }, 0 },
        { { .threads = 2 }, 0 },
        { { .only_cold = true, .cold = TL_COLD_NOTHING }, 100 },
        { { .only_cold = true, .cold = TL_COLD_ALL }, 0 },
        { { .family = "conv_relu" }, 100 },
        { { .target = "x' OR '1'='1" }, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        count = 0;
        assert_int_equal(tl_records_visit(store, &cases[i].query, compare_record, &count, NULL),
                         TL_OK);
        if (count != cases[i].count)
            fail_msg("query %zu: %lld records instead of %lld", i, (long long)count,
                     (long long)cases[i].count);
    }
    tl_records_stats stats;
    assert_int_equal(tl_records_measure(store, &stats, NULL), TL_OK);
    assert_int_equal(stats.records, 100);
    assert_int_equal(stats.by_status[TL_RECORD_CRASH], 25);
    assert_int_equal(stats.workloads, 5);
    assert_int_equal(stats.broken, 0);
    int64_t lost = -1;
    tl_records_close(store, &lost);
    assert_int_equal(lost, 0);
}

static void unsealed_and_read_only_are_refused(void **state)
{
    (void)state;
    tl_record record;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    make_record(&record, "one", 1);
    record.time_ns = 1;
    assert_int_equal(tl_records_add(store, &record, NULL), TL_BAD_ARGUMENT);
    tl_records_close(store, NULL);
    store = open_store(TL_RECORDS_READ_ONLY);
    make_record(&record, "one", 1);
    assert_int_equal(tl_records_add(store, &record, NULL), TL_BAD_ARGUMENT);
    tl_records_close(store, NULL);
    assert_int_equal(tl_records_open("/tmp/absent/records.db", 0, &store, NULL), TL_BAD_ARGUMENT);
    assert_int_equal(tl_records_open(folder, 0, &store, NULL), TL_BAD_ARGUMENT);
}

static void nothing_is_ever_changed(void **state)
{
    (void)state;
    sqlite3 *db;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 3);
    tl_records_close(store, NULL);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "UPDATE trials SET time_ns = 1", NULL, NULL, NULL),
                         SQLITE_OK);
    /* what somebody changed all the same is noticed and left out */
    assert_int_equal(
        sqlite3_exec(db,
                     "DROP TRIGGER trials_stay; UPDATE trials SET time_ns = 1 WHERE sequence = 2",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    store = open_store(0);
    assert_int_equal(take_census(store, "one")->count, 2);
    tl_records_stats stats;
    assert_int_equal(tl_records_measure(store, &stats, NULL), TL_OK);
    assert_int_equal(stats.broken, 1);
    tl_records_close(store, NULL);
}

static bool put_line(void *user, const char *line, size_t size)
{
    return fwrite(line, 1, size, user) == size;
}

static void export_import_merge(void **state)
{
    (void)state;
    char lines[96], other[96];
    tl_copy_counts t;
    snprintf(lines, sizeof lines, "%s/export.jsonl", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    tl_records *store = open_store(TL_RECORDS_CREATE), *copy;
    add_some(store, "one", 1, 60);
    FILE *file = fopen(lines, "w");
    assert_int_equal(tl_records_export(store, NULL, put_line, file, &t, NULL), TL_OK);
    assert_int_equal(t.added, 60);
    fputs("{\"record\":\"trial\",\"uid\":\"0\"}\nrubbish\n", file);
    fclose(file);
    tl_diag diag = { 0 };
    assert_int_equal(tl_records_open(other, TL_RECORDS_CREATE, &copy, NULL), TL_OK);
    add_some(copy, "one", 41, 40);
    if (tl_records_import(copy, lines, &t, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(t.read, 60);
    assert_int_equal(t.added, 40);
    assert_int_equal(t.refused, 2);
    assert_int_equal(take_census(copy, "one")->count, 80);
    assert_int_equal(tl_records_merge(store, copy, &t, NULL), TL_OK);
    assert_int_equal(t.added, 20);
    assert_int_equal(take_census(store, "one")->count, 80);
    int64_t count = 0;
    assert_int_equal(tl_records_visit(store, NULL, compare_record, &count, NULL), TL_OK);
    tl_records_close(copy, NULL);

    /* a system database underneath */
    char empty[96];
    snprintf(empty, sizeof empty, "%s/upper.db", folder);
    tl_records *upper;
    assert_int_equal(tl_records_open(empty, TL_RECORDS_CREATE, &upper, NULL), TL_OK);
    tl_records_stack(upper, store);
    tl_arena *arena = tl_arena_create(0);
    tl_record found;
    const tl_query fastest = { .only_ok = true, .order = TL_ORDER_TIME };
    const tl_query of_workload = { .workload = "00000000000000000000000000000000" };
    assert_true(tl_records_first(upper, arena, &fastest, &found));
    assert_int_equal(found.sequence, 1);
    assert_true(tl_records_best(upper, arena, &of_workload, &found, NULL));
    assert_int_equal(found.sequence, 5);
    add_some(upper, "two", 0, 1);
    assert_true(tl_records_first(upper, arena, &fastest, &found));
    assert_string_equal(found.session, "two");
    assert_true(tl_records_best(upper, arena, &of_workload, &found, NULL));
    assert_string_equal(found.session, "two");
    assert_int_equal(take_census(upper, NULL)->count, 81);
    tl_arena_destroy(arena);
    tl_records_close(upper, NULL);
}

/* A trial of the workload of make_record's fifth. */
typedef struct {
    const char *session, *program;
    int sequence;
    double score_ns;
} hour;

static void add_hours(tl_records *store, const hour *hours, int count, int minutes)
{
    for (int i = 0; i < count; i++) {
        tl_record record;
        tl_diag diag = { 0 };
        make_record(&record, hours[i].session, 5);
        record.program = hours[i].program;
        record.sequence = hours[i].sequence;
        record.score_ns = record.time_ns = hours[i].score_ns;
        record.created_us += (int64_t)minutes * 60000000 + hours[i].sequence;
        tl_record_seal(&record);
        if (tl_records_add(store, &record, &diag) != TL_OK)
            fail_msg("%s", diag.text);
    }
}

static void assert_best(tl_records *store, const char *session, int sequence, double score_ns)
{
    tl_arena *arena = tl_arena_create(0);
    tl_record best;
    double score = 0;
    assert_true(tl_records_best(store, arena, &(tl_query){ .revision = TL_CODEGEN_REVISION }, &best,
                                &score));
    if (strcmp(best.session, session) != 0 || best.sequence != sequence ||
        fabs(score - score_ns) > 1e-9)
        fail_msg("the best is trial %lld of '%s', score %g", (long long)best.sequence, best.session,
                 score);
    tl_arena_destroy(arena);
}

/* Hours in which the same took longer do not hide what was found in them. */
static void sessions_are_of_different_hours(void **state)
{
    (void)state;
    static const hour calm[] = { { "calm", "a", 1, 100 }, { "calm", "b", 2, 95 } };
    static const hour disturbed[] = { { "disturbed", "a", 4, 200 },
                                      { "disturbed", "b", 5, 192 },
                                      { "disturbed", "c", 6, 180 } };
    static const hour other[] = { { "other", "d", 1, 185 }, { "other", "e", 2, 170 } };
    static const hour late[] = { { "late", "d", 1, 370 } };
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_hours(store, calm, 2, 1);
    assert_best(store, "calm", 2, 95);
    add_hours(store, disturbed, 3, 2);
    assert_best(store, "disturbed", 6, 180); /* 90 in the calm hour */
    add_hours(store, other, 2, 3);
    assert_best(store, "other", 2, 170); /* began with another program: taken as it is */
    add_hours(store, late, 1, 4);
    assert_best(store, "disturbed", 6, 180); /* that session's 170 would be 340 now */

    /* what each session began with and found stays */
    int64_t removed;
    assert_int_equal(tl_records_prune(store, &(tl_prune){ .keep_best = 1 }, &removed, NULL), TL_OK);
    assert_int_equal(removed, 1);
    assert_best(store, "disturbed", 6, 180);
    tl_records_close(store, NULL);
}

static void prune_keeps_the_best(void **state)
{
    (void)state;
    int64_t removed;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 100);
    assert_int_equal(tl_records_prune(store, &(tl_prune){ .keep_best = 2, .dry = true }, &removed,
                                      NULL),
                     TL_OK);
    assert_int_equal(removed, 90);
    assert_int_equal(take_census(store, "one")->count, 100);
    assert_int_equal(tl_records_prune(store, &(tl_prune){ .failed = true }, &removed, NULL), TL_OK);
    assert_int_equal(removed, 25);
    assert_int_equal(tl_records_prune(store, &(tl_prune){ .keep_best = 2 }, &removed, NULL), TL_OK);
    assert_int_equal(removed, 65);
    assert_int_equal(take_census(store, "one")->count, 10);
    tl_records_close(store, NULL);
}

static void set_format(int version)
{
    sqlite3 *db;
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int get_format(void)
{
    sqlite3 *db;
    sqlite3_stmt *query;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &query, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    int version = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    sqlite3_close(db);
    return version;
}

/* Older formats are read as they are, and raised when they are opened for writing; those of a tilth that knows more are
 * refused with a sentence, whatever was asked for, and not touched. */
static void other_formats(void **state)
{
    (void)state;
    tl_records *store;
    for (int version = 1; version < TL_RECORDS_VERSION; version++) {
        char session[16];
        snprintf(session, sizeof session, "of %d", version);
        store = open_store(TL_RECORDS_CREATE);
        add_some(store, session, 1, 5);
        tl_records_close(store, NULL);
        set_format(version);
        store = open_store(TL_RECORDS_READ_ONLY);
        assert_int_equal(take_census(store, session)->count, 5);
        tl_records_close(store, NULL);
        assert_int_equal(get_format(), version);
        store = open_store(0);
        add_some(store, session, 6, 2);
        tl_records_close(store, NULL);
        assert_int_equal(get_format(), TL_RECORDS_VERSION);
        store = open_store(TL_RECORDS_READ_ONLY);
        assert_int_equal(take_census(store, session)->count, 7);
        tl_records_close(store, NULL);
    }
    static const int unknown[] = { 0, TL_RECORDS_VERSION + 1, 1000 };
    static const int flags[] = { 0, TL_RECORDS_READ_ONLY, TL_RECORDS_READ_ONLY | TL_RECORDS_TRUST,
                                 TL_RECORDS_CREATE | TL_RECORDS_REPAIR };
    for (size_t v = 0; v < sizeof unknown / sizeof *unknown; v++)
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            tl_diag diag = { 0 };
            tl_text before = { 0 }, after = { 0 };
            set_format(unknown[v]);
            read_bytes(path, &before);
            assert_int_equal(tl_records_open(path, flags[f], &store, &diag), TL_UNSUPPORTED);
            assert_non_null(strstr(diag.text, "its format is version "));
            read_bytes(path, &after);
            assert_int_equal(before.size, after.size);
            assert_memory_equal(before.data, after.data, before.size);
            tl_text_free(&before);
            tl_text_free(&after);
        }
}

/* A database as the tilth of before there were labels made it: without their columns, without annexes. */
static void make_database_without_labels(int records)
{
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "old", 1, records);
    tl_records_close(store, NULL);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int i = 0; i < tl_trial_row.count; i++) {
        char sql[100];
        if (!tl_trial_row.fields[i].is_label)
            continue;
        snprintf(sql, sizeof sql, "ALTER TABLE trials DROP COLUMN %s", tl_trial_row.fields[i].name);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(sqlite3_exec(db, "DROP TABLE annexes; PRAGMA user_version = 3; VACUUM", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
}

static bool has_label_of_old(void *user, const tl_record *record)
{
    int *count = user;
    *count += record->ratio == 0 && record->origin[0] == '\0' && record->machine[0] == '\0';
    return true;
}

/* Its records keep their names and are read as they are; opened for writing it gets the columns, once, whoever is first. */
static void databases_of_before_labels(void **state)
{
    (void)state;
    int old = 0;
    tl_annex annex;
    tl_arena *arena = tl_arena_create(0);
    make_database_without_labels(8);
    tl_records *store = open_store(TL_RECORDS_READ_ONLY);
    assert_int_equal(tl_records_visit(store, NULL, has_label_of_old, &old, NULL), TL_OK);
    assert_int_equal(old, 8);
    assert_false(tl_records_find_annex(store, arena, "program", "x", &annex));
    tl_records_close(store, NULL);
    assert_int_equal(get_format(), 3);
    tl_records *first = open_store(0), *second = open_store(0);
    add_some(first, "old", 9, 2);
    tl_record record;
    make_record(&record, "new", 1);
    record.origin = "walk";
    record.ratio = 1.25;
    record.ratio_error = 0.01;
    record.turns = 7;
    tl_record_seal(&record);
    assert_int_equal(tl_records_add(second, &record, NULL), TL_OK);
    const tl_annex text = { .kind = "program", .name = "w direct", .text = "kernel k()\n" };
    assert_int_equal(tl_records_add_annex(second, &text, NULL), TL_OK);
    assert_int_equal(tl_records_add_annex(first, &text, NULL), TL_OK);
    tl_records_close(first, NULL);
    tl_records_close(second, NULL);
    assert_int_equal(get_format(), TL_RECORDS_VERSION);
    store = open_store(TL_RECORDS_READ_ONLY);
    assert_int_equal(take_census(store, "old")->count, 10);
    tl_record back;
    assert_true(tl_records_first(store, arena, &(tl_query){ .session = "new" }, &back));
    assert_string_equal(back.uid, record.uid);
    assert_string_equal(back.origin, "walk");
    assert_true(back.ratio == 1.25 && back.turns == 7);
    assert_true(tl_records_find_annex(store, arena, "program", "w direct", &annex));
    assert_string_equal(annex.text, text.text);
    tl_records_close(store, NULL);
    tl_arena_destroy(arena);
    /* what is salvaged of it has all of that, whenever a row was written */
    tl_repair repair;
    assert_int_equal(tl_records_repair(path, true, &repair, NULL), TL_OK);
    store = open_store(TL_RECORDS_READ_ONLY);
    assert_int_equal(take_census(store, "old")->count, 10);
    assert_int_equal(take_census(store, "new")->count, 1);
    tl_records_close(store, NULL);
}

static void fingerprints(void **state)
{
    (void)state;
    char text[160];
    tl_target target;
    assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
    strcpy(target.cpu, "znver5");
    target.l1_bytes = 48 << 10;
    target.l2_bytes = 1 << 20;
    target.l3_bytes = 32 << 20;
    tl_target_fingerprint(&target, 2, text);
    assert_string_equal(text, "x86-64-v4/znver5/l1=48K/l2=1M/l3=32M/cores=2");
    /* devices for which code is the same are not the same, and one that is emulated is none of them */
    assert_int_equal(tl_target_named("cuda,sm_80", &target, NULL), TL_OK);
    target.l1_bytes = target.l2_bytes = 1 << 20;
    strcpy(target.device, "Fake GPU 0 sm_80 108 SM");
    tl_target_fingerprint(&target, 1, text);
    assert_string_equal(text,
                        "nvptx64/sm_80/l1=1M/l2=1M/l3=0K/cores=1/device=Fake-GPU-0-sm_80-108-SM");
    assert_int_equal(tl_target_of_fingerprint(text, &target, NULL), TL_OK);
    assert_int_equal(target.gpu.sm, 80);
    assert_string_equal(target.device, "Fake-GPU-0-sm_80-108-SM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_goes_in_comes_out),
        STORE_TEST(unsealed_and_read_only_are_refused),
        STORE_TEST(nothing_is_ever_changed),
        STORE_TEST(export_import_merge),
        STORE_TEST(sessions_are_of_different_hours),
        STORE_TEST(prune_keeps_the_best),
        STORE_TEST(other_formats),
        STORE_TEST(databases_of_before_labels),
        cmocka_unit_test(fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
