/* tests/driver/test_tune_cli.c: tilth tune: its options, what it prints and keeps, going on, replaying, and its end by a
 * signal at any instant. */
#include "tests/driver/cli_run.h"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "tests/support/patience.h"
#include "tuner/records/store.h"

enum { SIGNALS = 50, SERIES = 6 }; /* so many on one database: soon everything was tried */

static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_file_write(path, text, strlen(text), NULL), TL_OK);
}

static const char gemm_text[] =
    "kernel gemm(A: f32[48, 64], const B: f32[64, 80], out C: f32[48, 80])\n"
    "  for i in 0..48\n"
    "    for j in 0..80\n"
    "      for k in 0..64\n"
    "        block gemm\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n";
/* Larger than any worker may be. */
static const char huge_text[] = "kernel huge(A: f32[90000000000], out B: f32[90000000000])\n"
                                "  for i in 0..90000000000\n"
                                "    block huge\n"
                                "      spatial i\n"
                                "      B[i] = 2.0*A[i]\n";

/* A program that needs something around it says by which path it is started again. */
static void workers_are_started_as_told(void **state)
{
    (void)state;
    write_file("g.tk", gemm_text);
    write_file("again", "#!/bin/sh\necho again >>\"$D/times\"\nexec \"$TILTH\" \"$@\"\n");
    expect_shell(0, "", "chmod +x $D/again");
    expect_shell(0, "",
                 "TILTH_PROGRAM=$D/again $TILTH tune $D/g.tk --policy random --trials 2 --threads "
                 "1 --no-db -q");
    expect_shell(0, "again", "cat $D/times");
    expect_shell(5, "ends at once",
                 "TILTH_PROGRAM=/bin/false $TILTH tune $D/g.tk --policy random --trials 2 --no-db");
}

static void mistakes_are_told(void **state)
{
    (void)state;
    write_file("g.tk", gemm_text);
    expect(0, "exit status:", "tune --help");
    expect(2, "an argument is missing", "tune");
    expect(2, "'soon' is no time", "tune $D/g.tk --policy random --budget soon");
    expect(2, "'-5s' is no time", "tune $D/g.tk --policy random --budget -5s");
    expect(2, "'5d' is no time", "tune $D/g.tk --policy random --budget 5d");
    expect(2, "'warm' is neither nothing", "tune $D/g.tk --cold warm");
    expect(2, "--trials: -1", "tune $D/g.tk --trials -1");
    expect(2, "--candidate: '-2' is not", "tune $D/g.tk --candidate -2");
    expect(6, "longer than the limit", "tune $D/g.tk --trials 2 --no-db --candidate 1e-6");
    expect(2, "'magic' is none: auto", "tune $D/g.tk --policy magic");
    expect(2, "--record and --replay", "tune $D/g.tk --policy random --record a --replay b");
    expect(2, "'deep' is neither full nor plain", "tune $D/g.tk --space deep --no-db");
    expect(2, "name a database for them", "tune $D/g.tk --space plain");
    expect(2, "--tasks and --top are for models", "tune $D/g.tk --policy random --top 2");
    expect(2, "--shape is for models", "tune $D/g.tk --policy random --shape A=1");
    expect(2, "--set is for kernels", "tune $D/m.onnx --policy random --set M=1");
    expect(2, "has no such dim", "tune $D/g.tk --policy random --set M=1");
    expect(2, "none of relaxed, strict and tf32", "tune $D/g.tk --policy random --numerics loose");
    expect(2, "absent.tk", "tune $D/absent.tk --policy random");
    expect(2, "absent.jsonl", "tune $D/g.tk --policy random --replay $D/absent.jsonl");
    write_file("bad.tk", "kernel ???");
    expect(3, "bad.tk:1:", "tune $D/bad.tk --policy random");
    write_file("huge.tk", huge_text);
    expect(6, "no valid schedule was found", "tune $D/huge.tk --policy random --trials 20 --no-db");
}

/* On a loaded machine nothing may be found in so few seconds, and what a budget does not count, which does not grow with
 * it, may be the larger part: then a larger one is tried. */
static void ends_in_time(int budget_s)
{
    tl_text line = { 0 }, out = { 0 };
    int code = -1;
    double took = 0;
    for (int tries = 0; tries < 4; tries++, budget_s *= 2) {
        tl_text_free(&line);
        tl_text_free(&out);
        tl_text_format(&line,
                       "$TILTH tune $D/g.tk --policy random --budget %ds --threads 1 --db $D/s.db",
                       budget_s);
        int64_t start = tl_clock_ns();
        code = cli_shell(&out, tl_text_get(&line));
        took = (double)(tl_clock_ns() - start) * 1e-9;
        bool is_found = code == 0 && strstr(tl_text_get(&out), "times as fast") != NULL;
        if (!is_found && strstr(tl_text_get(&out), "the budget ended before") == NULL)
            break;
        if (is_found && took <= 2.5 * budget_s) {
            tl_text_free(&line);
            tl_text_free(&out);
            return;
        }
    }
    fail_msg("%s: exit %d after %.1f s:\n%s", tl_text_get(&line), code, took, tl_text_get(&out));
}

static void every_trial_is_kept(void **state)
{
    (void)state;
    expect(0, "\"trials\":25,", "tune $D/g.tk --policy random --trials 25 --threads 1 --json");
    expect(0, "\"trials\":25,\"workloads\":1,", "db stats --json");
    /* and is not measured again */
    expect(0, "\"known\":25,", "tune $D/g.tk --policy random --trials 25 --threads 1 --json");
    expect(0, "\"trials\":50,\"workloads\":1,", "db stats --json");
    expect(0, "trials    9 in", "tune $D/g.tk --policy random --trials 9 --no-db");
    expect(0, "trials    9 in", "tune $D/g.tk --policy evolution --space plain --trials 9 --no-db");
    expect(0, "\"trials\":50,", "db stats --json");
    /* a budget in seconds ends in time */
    ends_in_time(2 * PATIENCE);
}

/* The same decisions, and so the same results, from a recording, though the database knows more by then. */
static void a_recording_decides_the_same(void **state)
{
    (void)state;
    /* how far it is, every five seconds, is no decision */
    static const char decisions[] = "decisions() { sed '/^tilth tune: [0-9]*:/d' $D/$1.log; }; "
                                    "decisions first >$D/c; decisions second | cmp $D/c -";
    static const char fields[] = "grep -o '\"untuned_ns.*best_ns\":[0-9.]*\\|\"by_status.*'";
    tl_text line = { 0 };
    expect(0, "", "tune $D/g.tk --policy random --trials 12 --threads 1 --seed 3 --db $D/r.db -q");
    expect(0, "gemm: ",
           "tune $D/g.tk --policy random --trials 40 --threads 1 --seed 4 --db $D/r.db --record "
           "$D/rec.jsonl -v --json >$D/first 2>$D/first.log; cat $D/first.log");
    for (int i = 0; i < 2; i++) {
        expect(0, "gemm: ",
               "tune $D/g.tk --policy random --trials 40 --threads 1 --seed 4 --db $D/r.db "
               "--replay $D/rec.jsonl -v --json >$D/second 2>$D/second.log; cat $D/second.log");
        expect_shell(0, "", decisions);
    }
    tl_text_format(&line, "%s $D/first >$D/a; %s $D/second >$D/b; cmp $D/a $D/b && wc -l <$D/a",
                   fields, fields);
    expect_shell(0, "3", tl_text_get(&line));
    tl_text_free(&line);
    expect(0, "\"trials\":52,", "db stats --json --db $D/r.db");
    expect_shell(1, "", "cmp $D/c /dev/null");
    expect(0, "",
           "tune $D/g.tk --policy random --trials 40 --threads 1 --seed 5 --replay $D/rec.jsonl -v "
           ">$D/third 2>&1; ! cmp -s $D/first.log $D/third");
}

static void a_model_is_tuned_and_checked(void **state)
{
    (void)state;
    expect(0, "", "model bert_tiny -o $D/m.onnx --shape input_ids=1,16 -q; cp $D/m.onnx $D/n.onnx");
    expect(2, "matches none of the",
           "tune $D/m.onnx --policy random --tasks 'nothing*' --threads 1");
    expect(0, "\"record\":\"verdict\",\"kept\":",
           "tune $D/m.onnx --policy random --trials 40 --threads 1 --check 1 --json");
    expect(0, "left out",
           "tune $D/m.onnx --policy random --trials 10 --threads 1 --top 2 --no-check");
    expect(0, "\"record\":\"task\"",
           "tune $D/m.onnx --policy random --trials 10 --threads 1 --tasks 'matmul*' --no-check "
           "--json --numerics strict");
}

/* Kernels of other forms of the model get a tenth, a recording decides about them alike, and the next session goes on. */
static void other_forms_are_looked_at(void **state)
{
    (void)state;
    expect(
        0, "\"record\":\"forms\",\"count\":7,",
        "tune $D/n.onnx --policy random --trials 60 --threads 1 --check 0.5 --db $D/f.db --record "
        "$D/f.jsonl --json >$D/first; grep '\"record\":\"form' $D/first | tee $D/a");
    expect_shell(1, "", "grep '\"record\":\"forms.*\"trials\":[012]}' $D/a");
    expect(
        0, "\"record\":\"forms\"",
        "tune $D/n.onnx --policy random --trials 60 --threads 1 --check 0.5 --db $D/f.db --replay "
        "$D/f.jsonl --json >$D/second; grep '\"record\":\"form' $D/second >$D/b; "
        "diff $D/a $D/b && cat $D/b");
    expect(0, "\"record\":\"forms\"",
           "tune $D/n.onnx --policy random --trials 60 --threads 1 --check 0.5 --db $D/f.db --json "
           ">$D/third; grep '\"record\":\"forms' $D/third; "
           "unseen() { sed -n 's/.*\"unseen\":\\([0-9]*\\).*/\\1/p' $1; }; "
           "test $(unseen $D/third) -lt $(unseen $D/first)");
    /* who names kernels wants these */
    expect(0, "",
           "tune $D/n.onnx --policy random --trials 10 --threads 1 --top 2 --db $D/f.db --json "
           ">$D/narrow");
    expect_shell(1, "", "grep '\"record\":\"form' $D/narrow");
}

static int count_lines(const char *file, const char *word)
{
    char line[4096], path[PATH_MAX];
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", cli_folder, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        count += strstr(line, word) != NULL;
    fclose(f);
    return count;
}

/* What they have in common is one task of all their kernels; each is compared and chosen for by itself. */
static void several_models_share_a_run(void **state)
{
    (void)state;
    expect(0, "", "model bert_tiny -o $D/o.onnx --shape input_ids=1,24 -q");
    expect(2, "g.tk: a kernel is tuned by itself", "tune $D/n.onnx $D/g.tk");
    expect(2, "--shape is for one model", "tune $D/n.onnx $D/o.onnx --shape input_ids=1,8");
    expect(2, "absent.onnx", "tune $D/n.onnx $D/absent.onnx");
    expect(2, "matches none of the", "tune $D/n.onnx $D/o.onnx --tasks 'nothing*'");

#define OPTIONS "--policy random --trials 60 --threads 1 --check 0.5 --json "
    expect(0, "", "tune $D/n.onnx " OPTIONS "--no-db >$D/of_n");
    expect(0, "", "tune $D/o.onnx " OPTIONS "--no-db >$D/of_o");
    expect(0, "", "tune $D/n.onnx $D/o.onnx $D/n.onnx " OPTIONS "--db $D/both.db >$D/both");
#undef OPTIONS
    int of_n = count_lines("of_n", "\"record\":\"task\""),
        both = count_lines("both", "\"record\":\"task\""),
        of_o = count_lines("of_o", "\"record\":\"task\"");
    assert_in_range(both, of_n + 1, of_n + of_o - 1); /* some do not depend on the length */
    assert_int_equal(count_lines("both", "\"record\":\"verdict\""), 3);
    assert_true(count_lines("both", "/n.onnx\"") > count_lines("both", "/o.onnx\""));
    assert_int_equal(count_lines("both", "\"record\":\"forms\""), 3);
    expect(0, "\"choices\":3,", "db stats --json --db $D/both.db");
    expect(0, "/o.onnx\nmodel ",
           "tune $D/n.onnx $D/o.onnx --policy random --trials 9 --threads 1 --check 0.5 --db "
           "$D/both.db");
}

/* ---- signals ---- */

static pid_t start_tuner(const char *database, int *out)
{
    char kernel[128], path[128];
    int ends[2];
    snprintf(kernel, sizeof kernel, "%s/g.tk", cli_folder);
    snprintf(path, sizeof path, "%s/%s", cli_folder, database);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(cli_tilth, "tilth", "tune", kernel, "--policy", "random", "--budget", "100s",
              "--threads", "1", "--db", path, NULL);
        _exit(99);
    }
    close(ends[1]);
    *out = ends[0];
    return child;
}

typedef struct {
    int64_t count;
    int twice;
    char seen[20000][45];
} census;

static bool count_record(void *user, const tl_record *r)
{
    census *c = user;
    char name[45];
    snprintf(name, sizeof name, "%.32s %d", r->session, (int)r->sequence);
    for (int64_t i = 0; i < c->count; i++)
        c->twice += strcmp(c->seen[i], name) == 0;
    memcpy(c->seen[c->count++], name, sizeof name);
    return c->count < 20000;
}

/* SIGINT, SIGTERM and SIGKILL at random instants: the first two end it within a second, with all that it says it kept in
 * the database, once. */
static void signals_at_any_instant(void **state)
{
    (void)state;
    static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
    static census c;
    char path[128], name[16];
    int64_t told = 0;
    int interrupted = 0;
    int64_t window = 900000000;
    tl_random random = tl_random_make(21);
    for (int i = 0; i < SIGNALS; i++) {
        tl_text said = { 0 };
        char buffer[1024];
        int out, status, number = signals[i % 3];
        ssize_t n;
        snprintf(name, sizeof name, "k%d.db", i / SERIES);
        pid_t child = start_tuner(name, &out);
        tl_clock_sleep_ns(tl_random_below(&random, window));
        double load = patience_of_load();
        int64_t start = tl_clock_ns();
        kill(child, number);
        while ((n = read(out, buffer, sizeof buffer)) > 0)
            tl_text_add_bytes(&said, buffer, (size_t)n);
        close(out);
        assert_int_equal(waitpid(child, &status, 0), child);
        double took = (double)(tl_clock_ns() - start) * 1e-9;
        load = fmax(load, patience_of_load());
        bool is_early =
            strstr(tl_text_get(&said), "half-written") != NULL; /* nothing to keep yet */
        const char *kept = is_early ? NULL : strstr(tl_text_get(&said), "interrupted; ");
        if (number == SIGKILL) {
            if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)
                fail_msg("it ended by itself with %d: %s", WEXITSTATUS(status), tl_text_get(&said));
        } else {
            int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
            if (!is_early && code != -number && code != 0 && (code != 130 || kept == NULL))
                fail_msg("signal %d: %d, %s", number, code, tl_text_get(&said));
            if (took > 1.5 * PATIENCE * load)
                fail_msg("signal %d: it took %.2f s to end", number, took);
            if (kept != NULL) {
                int trials = 0;
                assert_int_equal(sscanf(kept, "interrupted; %d trials are kept", &trials), 1);
                told += trials;
                interrupted++;
            }
        }
        tl_text_free(&said);
        if (told == 0)
            window = patience_widen(window);
    }
    tl_records *store;
    for (int i = 0; i < SIGNALS; i += SERIES) {
        snprintf(path, sizeof path, "%s/k%d.db", cli_folder, i / SERIES);
        assert_int_equal(tl_records_open(path, 0, &store, NULL), TL_OK);
        assert_int_equal(tl_records_visit(store, NULL, count_record, &c, NULL), TL_OK);
        tl_records_close(store, NULL);
    }
    if (interrupted < SIGNALS / 4 || c.twice > 0 || c.count < told || told == 0)
        fail_msg("%d were interrupted, %d trials told, %d kept, %d twice", interrupted, (int)told,
                 (int)c.count, c.twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(workers_are_started_as_told),
        cmocka_unit_test(every_trial_is_kept),
        cmocka_unit_test(a_recording_decides_the_same),
        cmocka_unit_test(a_model_is_tuned_and_checked),
        cmocka_unit_test(other_forms_are_looked_at),
        cmocka_unit_test(several_models_share_a_run),
        cmocka_unit_test(signals_at_any_instant),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
