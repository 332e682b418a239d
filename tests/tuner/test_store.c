/* tests/tuner/test_store.c: records go in, stay, come out, and survive what happens to files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tuner/records/store.h"
#include "tuner/records/store_private.h"

static char folder[64], path[96];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tilth-store-XXXXXX");
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

/* A record like those of a tuner, number n of session s. The trace is long now and then: several pages of the file. */
static void make_record(tl_record *out, const char *session, int n)
{
    static char trace[20000], workload[33], reason[64];
    static double times[11];
    tl_random random = tl_random_make((uint64_t)n * 77 + (uint64_t)strlen(session));
    size_t lines = n % 17 == 0 ? 400 : 12, used = 0;
    for (size_t i = 0; i < lines; i++)
        used += (size_t)snprintf(trace + used, sizeof trace - used,
                                 "l%zu, m%zu = split(k%zu, [_, %lld])\n", i, i, i,
                                 (long long)tl_random_below(&random, 64) + 1);
    snprintf(workload, sizeof workload, "%032d", n % 5);
    snprintf(reason, sizeof reason, "it died \"of\" signal %d\n\ttwice", n);
    for (int i = 0; i < 11; i++)
        times[i] = 1000 + 1e5 * tl_random_unit(&random);
    bool ok = n % 4 != 3;
    *out = (tl_record){
        .workload = workload,
        .class_key = "cccccccccccccccccccccccccccccccc",
        .family = "conv_relu",
        .target = "x86-64-v4/znver5/l1=48K/l2=1M/l3=32M/cores=1",
        .numerics = "strict",
        .lowering = n % 2 ? "direct" : "winograd_f4",
        .trace = trace,
        .program = "0123456789abcdef",
        .status = ok ? TL_RECORD_OK : TL_RECORD_CRASH,
        .reason = ok ? "" : reason,
        .time_ns = ok ? 1000 + n : 0,
        .median_ns = ok ? 1100.25 + n : 0,
        .score_ns = ok ? 1000 + n : 0,
        .time_count = ok ? 11 : 0,
        .times_ns = times,
        .max_error = 1e-7 / (n + 1),
        .build_ns = 5e6,
        .run_ns = 8e6,
        .threads = 1,
        .revision = TL_CODEGEN_REVISION,
        .environment = "{\"cpu\":\"test\"}",
        .session = session,
        .sequence = n,
        .created_us = 1700000000000000 + n,
    };
    tl_record_seal(out);
}

static tl_records *open_store(int flags)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, flags, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return store;
}

static void add_some(tl_records *store, const char *session, int first, int count)
{
    tl_diag diag = { 0 };
    tl_workload_info info = { .class_key = "c",
                              .family = "conv_relu",
                              .name = "conv_relu_1",
                              .program = "kernel k(A: f32[4])\n",
                              .flops = 12,
                              .bytes = 16 };
    for (int i = first; i < first + count; i++) {
        tl_record record;
        make_record(&record, session, i);
        info.workload = record.workload;
        if (tl_records_add_workload(store, &info, &diag) != TL_OK ||
            tl_records_add(store, &record, &diag) != TL_OK)
            fail_msg("%s", diag.text);
    }
}

/* How many records of a session there are, each once, each whole. */
typedef struct {
    int64_t count, doubled, highest;
    bool seen[100000];
} census;

static bool count_record(void *user, const tl_record *record)
{
    census *c = user;
    assert_true(tl_record_is_sealed(record));
    c->count++;
    c->doubled += c->seen[record->sequence];
    c->seen[record->sequence] = true;
    c->highest = record->sequence > c->highest ? record->sequence : c->highest;
    return true;
}

static census *take_census(tl_records *store, const char *session)
{
    static census c;
    tl_diag diag = { 0 };
    tl_query query = { .session = session };
    memset(&c, 0, sizeof c);
    if (tl_records_visit(store, &query, count_record, &c, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(c.doubled, 0);
    return &c;
}

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

/* The bytes of a file, and a file of bytes. */
static void read_bytes(const char *name, tl_text *out)
{
    out->size = 0;
    if (access(name, F_OK) == 0)
        assert_int_equal(tl_file_read(name, out, NULL), TL_OK);
}

static void write_bytes(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void remove_all(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -f %s/records.db*", folder);
    assert_int_equal(system(command), 0);
}

/* Opens a damaged file with repair; what is there must be sealed, single, and at least `least` records. */
static int64_t open_damaged(const char *what, size_t at, int64_t least)
{
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, TL_RECORDS_CREATE | TL_RECORDS_REPAIR, &store, &diag) != TL_OK)
        fail_msg("%s at %zu: %s", what, at, diag.text);
    int64_t count = take_census(store, "one")->count;
    if (count < least)
        fail_msg("%s at %zu: %lld records, expected %lld (%s)", what, at, (long long)count,
                 (long long)least, tl_records_repaired(store));
    add_some(store, "after", 1, 1);
    assert_int_equal(take_census(store, "after")->count, 1);
    tl_records_close(store, NULL);
    return count;
}

static void a_file_cut_at_any_byte_is_recovered(void **state)
{
    (void)state;
    tl_text whole = { 0 };
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 40);
    tl_records_close(store, NULL); /* the log is folded into the file */
    read_bytes(path, &whole);
    int64_t previous = 40;
    tl_random random = tl_random_make(5);
    for (size_t cut = whole.size;;
         cut = cut > 2000 ? cut - 1 - (size_t)tl_random_below(&random, 2000) : cut / 2) {
        remove_all();
        write_bytes(path, whole.data, cut);
        int64_t count = open_damaged("cut", cut, cut == whole.size ? 40 : 0);
        assert_true(count <= previous);
        previous = count;
        if (cut == whole.size * 3 / 4)
            assert_true(count > 10);
        if (cut == 0)
            break;
    }
    assert_int_equal(previous, 0);
    tl_text_free(&whole);
}

static void a_journal_cut_at_any_byte_is_recovered(void **state)
{
    (void)state;
    tl_text file = { 0 }, log = { 0 };
    char log_path[120];
    snprintf(log_path, sizeof log_path, "%s-wal", path);
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 20);
    tl_records_close(store, NULL);
    store = open_store(0);
    add_some(store, "one", 21, 20);
    read_bytes(path, &file);
    read_bytes(log_path, &log);
    assert_true(log.size > 10000);
    tl_records_close(store, NULL);
    tl_random random = tl_random_make(6);
    for (int i = 0; i < 40; i++) {
        size_t cut = i == 0 ? log.size : (size_t)tl_random_below(&random, (int64_t)log.size);
        remove_all();
        write_bytes(path, file.data, file.size);
        write_bytes(log_path, log.data, cut);
        open_damaged("log cut", cut, i == 0 ? 40 : 20);
    }
    tl_text_free(&file);
    tl_text_free(&log);
}

static void flipped_bytes_cost_what_they_hit(void **state)
{
    (void)state;
    tl_text whole = { 0 }, hurt = { 0 };
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 60);
    tl_records_close(store, NULL);
    read_bytes(path, &whole);
    tl_random random = tl_random_make(7);
    int64_t sum = 0;
    for (int i = 0; i < 60; i++) {
        hurt.size = 0;
        tl_text_add_bytes(&hurt, whole.data, whole.size);
        /* a page of the table, or one byte */
        size_t at = 100 + (size_t)tl_random_below(&random, (int64_t)whole.size - 4200);
        if (i % 2)
            memset(hurt.data + at, 0x5a, 4000);
        else
            hurt.data[at] ^= 0x41;
        remove_all();
        write_bytes(path, hurt.data, hurt.size);
        sum += open_damaged("hurt", at, 30);
    }
    assert_true(sum > 60 * 50);
    tl_text_free(&whole);
    tl_text_free(&hurt);
}

static void check_salvaged(void *user, const tl_row_type *type, const void *row)
{
    int64_t *count = user;
    char uid[33];
    tl_row_digest(type, row, uid);
    assert_string_equal(uid, row);
    ++*count;
}

/* Any bytes at all, as file and as journal: read within bounds, and nothing unsealed comes out. */
static void salvage_takes_any_bytes(void **state)
{
    (void)state;
    tl_text whole = { 0 };
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 20);
    tl_records_close(store, NULL);
    read_bytes(path, &whole);
    tl_random random = tl_random_make(9);
    int64_t count = 0;
    for (int i = 0; i < 400; i++) {
        size_t size = whole.size - (i % 3 ? (size_t)tl_random_below(&random, 9000) : 0);
        char *bytes = malloc(size);
        assert_non_null(bytes);
        memcpy(bytes, whole.data, size);
        for (int64_t n = tl_random_below(&random, 200); n > 0; n--) {
            /* most of the time where pages begin: types, counts, cell pointers, varints */
            size_t at = (size_t)tl_random_below(&random, (int64_t)size);
            if (n % 4)
                at = at / 4096 * 4096 + at % 40;
            if (at < size)
                bytes[at] = (char)tl_random_next(&random);
        }
        tl_salvage(bytes, size, i % 2 ? bytes : NULL, i % 2 ? size : 0, check_salvaged, &count);
        free(bytes);
    }
    assert_true(count > 0);
    tl_text_free(&whole);
}

static void other_files_are_left_alone(void **state)
{
    (void)state;
    tl_records *store;
    tl_text text = { 0 };
    static const char note[] =
        "Dear diary, this is no database, and long enough to be one by its looks.\n";
    write_bytes(path, note, sizeof note - 1);
    assert_int_not_equal(tl_records_open(path, TL_RECORDS_CREATE | TL_RECORDS_REPAIR, &store, NULL),
                         TL_OK);
    read_bytes(path, &text);
    assert_string_equal(tl_text_get(&text), note);
    remove_all();
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1)", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(tl_records_open(path, TL_RECORDS_CREATE | TL_RECORDS_REPAIR, &store, NULL),
                     TL_BAD_ARGUMENT);
    tl_text_free(&text);
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

static void a_full_disk_keeps_records_waiting(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 5);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 60000;
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 6; i <= 60; i++) {
        tl_record record;
        make_record(&record, "one", i);
        assert_int_equal(tl_records_add(store, &record, NULL), TL_OK);
    }
    const char *reason;
    int64_t waiting = tl_records_pending(store, &reason);
    assert_true(waiting > 0 && *reason);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(tl_records_flush(store), 0);
    assert_int_equal(tl_records_pending(store, &reason), 0);
    assert_string_equal(reason, "");
    tl_records_close(store, NULL);
    store = open_store(0);
    assert_int_equal(take_census(store, "one")->count, 60);
    tl_records_close(store, NULL);
}

static void a_locked_database_keeps_records_waiting(void **state)
{
    (void)state;
    sqlite3 *db;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 2);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t start = tl_clock_ns();
    for (int i = 3; i <= 10; i++) {
        tl_record record;
        make_record(&record, "one", i);
        assert_int_equal(tl_records_add(store, &record, NULL), TL_OK);
    }
    assert_true(tl_clock_ns() - start < 10000000000); /* patience is not eight times */
    assert_int_equal(tl_records_pending(store, NULL), 8);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    int64_t lost;
    tl_records_close(store, &lost);
    assert_int_equal(lost, 0);
    store = open_store(0);
    assert_int_equal(take_census(store, "one")->count, 10);
    tl_records_close(store, NULL);
}

/* A child that adds records and writes the number of each that was taken into the pipe. */
static pid_t start_writer(const char *session, int first, int count, int pipe)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open(path, TL_RECORDS_CREATE, &store, &diag) != TL_OK) {
        fprintf(stderr, "%s\n", diag.text);
        _exit(1);
    }
    for (int i = first; i < first + count; i++) {
        tl_record record;
        make_record(&record, session, i);
        if (tl_records_add(store, &record, NULL) != TL_OK)
            _exit(2);
        if (tl_records_pending(store, NULL) == 0 && write(pipe, &i, sizeof i) != sizeof i)
            _exit(3);
    }
    tl_records_close(store, NULL);
    _exit(0);
}

static void two_write_at_once(void **state)
{
    (void)state;
    int nowhere = open("/dev/null", O_WRONLY), status;
    pid_t a = start_writer("a", 1, 300, nowhere), b = start_writer("b", 1, 300, nowhere);
    assert_int_equal(waitpid(a, &status, 0), a);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(b, &status, 0), b);
    assert_int_equal(status, 0);
    close(nowhere);
    tl_records *store = open_store(0);
    assert_int_equal(take_census(store, "a")->count, 300);
    assert_int_equal(take_census(store, "b")->count, 300);
    tl_records_close(store, NULL);
}

static void killed_at_random_nothing_is_lost_or_doubled(void **state)
{
    (void)state;
    tl_random random = tl_random_make(8);
    static bool told[100000];
    int next = 1;
    int64_t window = 25000000;
    for (int round = 0; round < 50; round++) {
        int ends[2], number, status, before = next;
        assert_int_equal(pipe(ends), 0);
        pid_t child = start_writer("one", next, 50000 - next, ends[1]);
        close(ends[1]);
        tl_clock_sleep_ns(tl_random_below(&random, window));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        while (read(ends[0], &number, sizeof number) == sizeof number) {
            told[number] = true;
            next = number; /* the one in flight is tried again, as a resumed tuner would */
        }
        close(ends[0]);
        if (next == before)
            window = patience_widen(window);
    }
    tl_records *store = open_store(TL_RECORDS_CREATE | TL_RECORDS_REPAIR);
    assert_string_equal(tl_records_repaired(store), "");
    census *c = take_census(store, "one");
    for (int i = 0; i < 100000; i++)
        if (told[i] && !c->seen[i])
            fail_msg("record %d was measured and is lost", i);
    assert_true(c->count >= 1);
    tl_records_close(store, NULL);
}

static void a_repair_by_another_process_is_noticed(void **state)
{
    (void)state;
    tl_repair repair;
    tl_records *store = open_store(TL_RECORDS_CREATE);
    add_some(store, "one", 1, 10);
    assert_int_equal(tl_records_repair(path, true, &repair, NULL), TL_OK);
    assert_int_equal(repair.recovered, 10);
    add_some(store, "one", 11, 10); /* goes into the new file */
    tl_records_close(store, NULL);
    store = open_store(0);
    assert_int_equal(take_census(store, "one")->count, 20);
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

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_goes_in_comes_out),
        STORE_TEST(unsealed_and_read_only_are_refused),
        STORE_TEST(nothing_is_ever_changed),
        STORE_TEST(export_import_merge),
        STORE_TEST(sessions_are_of_different_hours),
        STORE_TEST(prune_keeps_the_best),
        STORE_TEST(a_file_cut_at_any_byte_is_recovered),
        STORE_TEST(a_journal_cut_at_any_byte_is_recovered),
        STORE_TEST(flipped_bytes_cost_what_they_hit),
        STORE_TEST(salvage_takes_any_bytes),
        STORE_TEST(other_files_are_left_alone),
        STORE_TEST(other_formats),
        STORE_TEST(databases_of_before_labels),
        STORE_TEST(a_full_disk_keeps_records_waiting),
        STORE_TEST(a_locked_database_keeps_records_waiting),
        STORE_TEST(two_write_at_once),
        STORE_TEST(killed_at_random_nothing_is_lost_or_doubled),
        STORE_TEST(a_repair_by_another_process_is_noticed),
        cmocka_unit_test(fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
