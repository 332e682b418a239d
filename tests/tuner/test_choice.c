/* tests/tuner/test_choice.c: what was chosen for a model: kept, the newest counts, and it survives what records do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "tuner/records/store.h"
#include "tuner/records/store_private.h"

static char folder[64], path[96];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tilth-choice-XXXXXX");
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

static tl_records *open_at(const char *place, int flags)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(place, flags, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

/* Choice number n of a model; its picks fill several pages of the file. */
static tl_choice make_choice(const char *model, int n)
{
    static char picks[400 * 66];
    size_t used = 0;
    for (int i = 0; i < 300; i++)
        used += (size_t)snprintf(picks + used, sizeof picks - used, "%032d %032d\n", i, n);
    return (tl_choice){ .model = model,
                        .name = "a \"model\"\n.onnx",
                        .target = "x86-64-v4/test/cores=1",
                        .numerics = "relaxed",
                        .threads = 1,
                        .revision = 7,
                        .kept = true,
                        .form = "",
                        .picks = picks,
                        .untuned_ns = 2000.5,
                        .tuned_ns = 1000 + n,
                        .ratio = 0.5,
                        .ratio_low = 0.49,
                        .ratio_high = 0.51,
                        .pairs = 30,
                        .max_error = 1e-6,
                        .environment = "{}",
                        .session = "s",
                        .created_us = 1700000000000000 + n };
}

static void add(tl_records *store, const char *model, int n)
{
    tl_diag diag = { 0 };
    tl_choice choice = make_choice(model, n);
    if (tl_records_add_choice(store, &choice, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static bool count_choice(void *user, const tl_choice *choice)
{
    tl_choice again = *choice;
    tl_choice_seal(&again);
    assert_string_equal(again.uid, choice->uid);
    ++*(int *)user;
    return true;
}

static int count(tl_records *store)
{
    int n = 0;
    assert_int_equal(tl_records_visit_choices(store, NULL, count_choice, &n, NULL), TL_OK);
    return n;
}

static void expect_newest(tl_records *store, const char *model, int n)
{
    tl_choice found;
    tl_arena *arena = tl_arena_create(0);
    tl_choice_query query = {
        .model = model, .target = "x86-64-v4/test/cores=1", .numerics = "relaxed", .threads = 1
    };
    assert_true(tl_records_find_choice(store, arena, &query, &found));
    tl_choice expected = make_choice(model, n);
    assert_int_equal(found.created_us, expected.created_us);
    assert_string_equal(found.picks, expected.picks);
    assert_string_equal(found.name, expected.name);
    assert_true(found.ratio_high == expected.ratio_high && found.kept);
    query.threads = 2;
    assert_false(tl_records_find_choice(store, arena, &query, &found));
    query = (tl_choice_query){ .model = model, .revision = 8 };
    assert_false(tl_records_find_choice(store, arena, &query, &found));
    tl_arena_destroy(arena);
}

static void the_newest_counts(void **state)
{
    (void)state;
    tl_records *store = open_at(path, TL_RECORDS_CREATE);
    add(store, "m", 2);
    add(store, "m", 9);
    add(store, "m", 3); /* comes late, as by a merge, and is older */
    add(store, "other", 20);
    add(store, "m", 9); /* the same again is one */
    assert_int_equal(count(store), 4);
    expect_newest(store, "m", 9);
    tl_records_close(store, NULL);
    store = open_at(path, TL_RECORDS_READ_ONLY | TL_RECORDS_TRUST);
    expect_newest(store, "m", 9);
    tl_choice choice = make_choice("m", 10);
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_BAD_ARGUMENT);
    tl_records_close(store, NULL);
}

/* Under a store another one: the newer choice counts, wherever it is. */
static void the_newest_of_two_files(void **state)
{
    (void)state;
    char lower[96];
    snprintf(lower, sizeof lower, "%s/system.db", folder);
    tl_records *store = open_at(path, TL_RECORDS_CREATE);
    tl_records *system = open_at(lower, TL_RECORDS_CREATE);
    add(store, "m", 2);
    add(system, "m", 5);
    add(system, "old", 1);
    add(store, "old", 4);
    tl_records_stack(store, system);
    expect_newest(store, "m", 5);
    expect_newest(store, "old", 4);
    tl_records_close(store, NULL);
}

static void nothing_is_ever_changed(void **state)
{
    (void)state;
    sqlite3 *db;
    tl_records *store = open_at(path, TL_RECORDS_CREATE);
    add(store, "m", 2);
    add(store, "m", 3);
    tl_records_close(store, NULL);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "UPDATE choices SET kept = 0", NULL, NULL, NULL),
                         SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TRIGGER choices_stay; UPDATE choices SET picks = 'x' WHERE "
                                  "created_us = 1700000000000003",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    store = open_at(path, 0);
    expect_newest(store, "m", 2); /* the one that was changed is no longer believed */
    tl_records_close(store, NULL);
}

static void a_damaged_file_keeps_its_choices(void **state)
{
    (void)state;
    tl_repair repair;
    tl_records *store = open_at(path, TL_RECORDS_CREATE);
    for (int i = 0; i < 20; i++)
        add(store, "m", i);
    tl_records_close(store, NULL);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    for (int i = 0; i < 64; i++) /* the header and the schema */
        fputc(0xa5, file);
    fclose(file);
    assert_int_equal(tl_records_repair(path, true, &repair, NULL), TL_OK);
    store = open_at(path, 0);
    assert_int_equal(count(store), 20);
    expect_newest(store, "m", 19);
    tl_records_close(store, NULL);
}

static bool put_line(void *user, const char *line, size_t size)
{
    return fwrite(line, 1, size, user) == size;
}

static void export_import_merge(void **state)
{
    (void)state;
    char lines[96], other[96], third[96];
    tl_copy_counts t;
    snprintf(lines, sizeof lines, "%s/export.jsonl", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    snprintf(third, sizeof third, "%s/third.db", folder);
    tl_records *store = open_at(path, TL_RECORDS_CREATE), *copy;
    add(store, "m", 1);
    add(store, "m", 2);
    FILE *file = fopen(lines, "w");
    assert_int_equal(tl_records_export(store, NULL, put_line, file, &t, NULL), TL_OK);
    fclose(file);
    copy = open_at(other, TL_RECORDS_CREATE);
    assert_int_equal(tl_records_import(copy, lines, &t, NULL), TL_OK);
    assert_int_equal(t.refused, 0);
    assert_int_equal(count(copy), 2);
    expect_newest(copy, "m", 2);
    tl_records_close(copy, NULL);
    copy = open_at(third, TL_RECORDS_CREATE);
    assert_int_equal(tl_records_merge(copy, store, &t, NULL), TL_OK);
    assert_int_equal(count(copy), 2);
    tl_records_close(copy, NULL);
    /* records of one session: no choices with them */
    file = fopen(lines, "w");
    assert_int_equal(tl_records_export(store, &(tl_query){ .session = "s" }, put_line, file, &t,
                                       NULL),
                     TL_OK);
    assert_int_equal(ftell(file), 0);
    fclose(file);
    tl_records_close(store, NULL);
}

/* A file of the format without choices is read as it is, and raised when it is written. */
static void older_format(void **state)
{
    (void)state;
    sqlite3 *db;
    tl_records_close(open_at(path, TL_RECORDS_CREATE), NULL);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP TABLE choices; PRAGMA user_version = 1", NULL, NULL,
                                  NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    tl_records *store = open_at(path, TL_RECORDS_READ_ONLY);
    assert_int_equal(count(store), 0);
    tl_records_stats stats;
    assert_int_equal(tl_records_measure(store, &stats, NULL), TL_OK);
    assert_int_equal(stats.choices, 0);
    tl_records_close(store, NULL);
    store = open_at(path, 0);
    add(store, "m", 1);
    assert_int_equal(tl_records_measure(store, &stats, NULL), TL_OK);
    assert_int_equal(stats.choices, 1);
    tl_records_close(store, NULL);
}

#define CHOICE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHOICE_TEST(the_newest_counts),       CHOICE_TEST(the_newest_of_two_files),
        CHOICE_TEST(nothing_is_ever_changed), CHOICE_TEST(a_damaged_file_keeps_its_choices),
        CHOICE_TEST(export_import_merge),     CHOICE_TEST(older_format),
    };
    return cmocka_run_group_tests_name("tuner choice", tests, NULL, NULL);
}
