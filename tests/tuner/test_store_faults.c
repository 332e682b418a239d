/* tests/tuner/test_store_faults.c: records survive what happens to their files, and to those who write them. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tests/tuner/storing.h"
#include "tuner/records/store_private.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_file_cut_at_any_byte_is_recovered),
        STORE_TEST(a_journal_cut_at_any_byte_is_recovered),
        STORE_TEST(flipped_bytes_cost_what_they_hit),
        STORE_TEST(salvage_takes_any_bytes),
        STORE_TEST(other_files_are_left_alone),
        STORE_TEST(a_full_disk_keeps_records_waiting),
        STORE_TEST(a_locked_database_keeps_records_waiting),
        STORE_TEST(two_write_at_once),
        STORE_TEST(killed_at_random_nothing_is_lost_or_doubled),
        STORE_TEST(a_repair_by_another_process_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
