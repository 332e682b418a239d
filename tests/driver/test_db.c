/* tests/driver/test_db.c: tilth db as a user meets it, on a database of a few records; and tilth as its own worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "driver/pipeline/host_target.h"
#include "runtime/base/text.h"
#include "tests/driver/recorded.h"
#include "tuner/measure/measure.h"

static char tilth[PATH_MAX], folder[64], database[96];

static void expect(int exit_code, const char *part, const char *arguments)
{
    tl_text command = { 0 }, out = { 0 };
    char buffer[4096];
    size_t n;
    tl_text_format(&command,
                   "export D=%s XDG_DATA_HOME=%s/data XDG_DATA_DIRS=%s/system; %s db %s 2>&1",
                   folder, folder, folder, tilth, arguments);
    FILE *pipe = popen(tl_text_get(&command), "r");
    assert_non_null(pipe);
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        tl_text_add_bytes(&out, buffer, n);
    int status = pclose(pipe), got = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (got != exit_code || strstr(tl_text_get(&out), part) == NULL)
        fail_msg("tilth db %s: exit %d (want %d), want '%s' in:\n%s", arguments, got, exit_code,
                 part, tl_text_get(&out));
    tl_text_free(&command);
    tl_text_free(&out);
}

static void add_records(const char *path, int first, int count)
{
    tl_records *store;
    assert_int_equal(tl_records_open(path, TL_RECORDS_CREATE, &store, NULL), TL_OK);
    tl_workload_info info = { .workload = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                              .class_key = "c",
                              .family = "conv_relu",
                              .name = "conv_relu_7",
                              .program = "kernel conv(A: f32[4])\n",
                              .flops = 2000000,
                              .bytes = 16 };
    assert_int_equal(tl_records_add_workload(store, &info, NULL), TL_OK);
    for (int i = first; i < first + count; i++) {
        bool ok = i % 3 != 0;
        double times[] = { 1000.0 * i, 1001.0 * i };
        tl_record r = recorded_make(info.workload, "direct", "i, j = loops(conv)\n", times[0]);
        r.family = info.family;
        r.target = "here";
        r.numerics = "strict";
        r.program = "0123456789abcdef";
        r.times_ns = times;
        r.time_count = 2;
        r.revision = i % 2 ? TL_CODEGEN_REVISION : 1;
        r.sequence = i;
        if (!ok) {
            r.status = TL_RECORD_TIMEOUT;
            r.reason = "it took longer than the limit";
            r.time_ns = r.median_ns = r.score_ns = 0;
            r.time_count = 0;
        }
        tl_record_seal(&r);
        assert_int_equal(tl_records_add(store, &r, NULL), TL_OK);
    }
    tl_records_close(store, NULL);
}

static void add_choice(const char *path)
{
    tl_records *store;
    assert_int_equal(tl_records_open(path, 0, &store, NULL), TL_OK);
    const tl_choice choice = recorded_choice("0123456789abcdef0123456789abcdef", "a b\n");
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    tl_records_close(store, NULL);
}

static void every_action(void **state)
{
    (void)state;
    char other[96];
    snprintf(other, sizeof other, "%s/other.db", folder);
    expect(2, "there is no such file", "");
    expect(2, "'frobnicate' is nothing it does", "frobnicate");
    expect(2, "ls takes no argument: 'x'", "ls x");
    expect(0, "exit status:", "--help");
    expect(2, "unknown option --frob", "--frob");
    add_records(database, 1, 10);
    add_records(other, 8, 10);
    expect(0, "no choices", "choices --db $D/r.db");
    add_choice(database);
    expect(0, "0.8000 (0.7500 .. 0.8500)", "choices --db $D/r.db");
    expect(0, "\"choices\":1,", "stats --json --db $D/r.db");
    expect(0, "\"kept\":true,", "choices --json --db $D/r.db");
    expect(0, "{\"record\":\"choice\"", "export --db $D/r.db");
    expect(0, "conv_relu_7", "ls --db $D/r.db");
    expect(0, "\"trials\":10,\"failed\":3,\"best_ns\":1000.000", "--json --db $D/r.db");
    expect(0, "1.00 us", "top --db $D/r.db");
    expect(0, "\"sequence\":1,",
           "top --workload aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -n 3 --json --db $D/r.db");
    expect(0, "no records", "top --family none --db $D/r.db");
    expect(0, "kernel conv(A: f32[4])", "show aaaa --db $D/r.db");
    expect(2, "begins with 'zzzz'", "show zzzz --db $D/r.db");
    expect(2, "show needs", "show --db $D/r.db");
    expect(0, "timeout", "stats --db $D/r.db");
    expect(0, "\"by_status\":{\"ok\":7,", "stats --json --db $D/r.db");
    expect(0, "{\"record\":\"trial\"", "export --db $D/r.db");
    expect(0, "10 records written", "export -o $D/r.jsonl --db $D/r.db");
    expect(5, "", "export -o $D/absent/r.jsonl --db $D/r.db");
    expect(0, "10 records read, 7 new", "import $D/r.jsonl --db $D/other.db");
    expect(0, "0 new", "import $D/r.jsonl --db $D/other.db");
    expect(0, "\"read\":17,\"added\":7,", "merge $D/other.db --json --db $D/r.db");
    expect(2, "merge needs a file", "merge --db $D/r.db");
    expect(2, "no such file", "merge $D/absent.db --db $D/r.db");
    expect(2, "prune needs to know", "prune --db $D/r.db");
    expect(0, "5 records would go", "prune --failed --dry-run --db $D/r.db");
    expect(0, "5 records removed", "prune --failed --db $D/r.db");
    expect(0, "10 records removed", "prune --keep-best 2 --db $D/r.db");
    expect(0, "is sound", "repair --db $D/r.db");
    expect(0, "2 records recovered", "repair --force --db $D/r.db");
}

static void the_system_database_alone(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/system/tilth/records.db", folder);
    add_records(path, 1, 4);
    expect(0, "conv_relu_7", "ls");
    /* what is added goes into one of one's own, above it */
    snprintf(path, sizeof path, "%s/one.db", folder);
    add_records(path, 5, 1);
    expect(0, "1 records read, 1 new", "merge $D/one.db");
    expect(0, "\"trials\":5,", "ls --json");
}

static void tilth_is_its_own_worker(void **state)
{
    (void)state;
    static tl_target target;
    static tl_result result;
    tl_measurer *m;
    tl_diag diag = { 0 };
    int task;
    static const char text[] = "kernel twice(A: f32[100], out B: f32[100])\n"
                               "  for i in 0..100\n"
                               "    block twice\n"
                               "      spatial i\n"
                               "      B[i] = 2.0*A[i]\n";
    assert_int_equal(tl_target_resolve(NULL, &target, NULL), TL_OK);
    tl_measure_options options = { .worker = tilth, .target = &target };
    tl_measure_lowering lowering = { "direct", text, 0, 0 };
    tl_measure_task spec = {
        .name = "twice", .workload = "w", .lowering_count = 1, .lowerings = &lowering
    };
    if (tl_measurer_create(&options, &m, &diag) != TL_OK ||
        tl_measurer_add_task(m, &spec, &task, &diag) != TL_OK ||
        tl_measurer_submit(m, task, &(tl_candidate){ .trace = "" }, 1, NULL, &diag) != TL_OK ||
        tl_measurer_next(m, 120, &result, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    if (result.status != TL_RECORD_OK)
        fail_msg("%s", result.reason);
    tl_measurer_destroy(m);
}

static int set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", tilth, sizeof tilth - 1);
    if (n < 0)
        return -1;
    tilth[n] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(tilth, '/') = '\0';
    strcat(tilth, "/tilth");
    strcpy(folder, "/tmp/tilth-db-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(database, sizeof database, "%s/r.db", folder);
    return 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_action),
        cmocka_unit_test(the_system_database_alone),
        cmocka_unit_test(tilth_is_its_own_worker),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
