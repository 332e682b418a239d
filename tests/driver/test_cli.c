/* tests/driver/test_cli.c: the command line as a user meets it: results, sentences, exit statuses. Runs the binary that was
 * built beside this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/text.h"

static char tilth[PATH_MAX], folder[64];

/* Runs `tilth ARGUMENTS` with the scratch folder as $D; what it printed on both streams goes to `out`. */
static int run(tl_text *out, const char *arguments)
{
    tl_text command = { 0 };
    tl_text_format(&command, "export D=%s XDG_CACHE_HOME=%s/cache; %s %s 2>&1", folder, folder,
                   tilth, arguments);
    FILE *pipe = popen(tl_text_get(&command), "r");
    tl_text_free(&command);
    assert_non_null(pipe);
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        tl_text_add_bytes(out, buffer, n);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(int exit_code, const char *part, const char *arguments)
{
    tl_text out = { 0 };
    int got = run(&out, arguments);
    bool found = strstr(tl_text_get(&out), part) != NULL;
    if (got != exit_code || !found)
        fail_msg("tilth %s: exit %d (want %d), output %s '%s':\n%s", arguments, got, exit_code,
                 found ? "has" : "lacks", part, tl_text_get(&out));
    tl_text_free(&out);
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
    strcpy(folder, "/tmp/tilth-cli-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_text command = { 0 };
    tl_text_format(&command, "rm -rf %s", folder);
    int status = system(tl_text_get(&command));
    tl_text_free(&command);
    return status;
}

static void help_and_usage(void **state)
{
    (void)state;
    expect(0, "usage: tilth VERB", "--help");
    expect(0, "tilth 0.", "--version");
    expect(2, "usage: tilth VERB", "");
    expect(2, "unknown verb 'frobnicate'", "frobnicate");
    static const char *const verbs[] = { "info", "inspect", "run", "verify", "bench", "model" };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --help", verbs[i]);
        expect(0, "exit status:", arguments);
        snprintf(arguments, sizeof arguments, "%s --frob", verbs[i]);
        expect(2, "unknown option --frob", arguments);
    }
    expect(2, "did you mean --threads?", "run m.onnx --thread 2");
    expect(2, "'two' is not a whole number", "run m.onnx --threads two");
    expect(2, "--threads needs a value", "run m.onnx --threads");
    expect(2, "an argument is missing", "run");
    expect(2, "one argument too many: 'b'", "run a b");
    expect(2, "--threads: -1", "run m.onnx --threads -1");
}

static void info_tells_the_machine(void **state)
{
    (void)state;
    expect(0, "vector", "info --quick");
    expect(0, "{\"record\":\"machine\"", "info --quick --json");
}

static void files_that_are_no_models(void **state)
{
    (void)state;
    tl_text path = { 0 };
    expect(2, "absent.onnx: No such file or directory", "run $D/absent.onnx");
    expect(2, "not a regular file", "inspect $D");
    tl_text_format(&path, "%s/empty.onnx", folder);
    assert_int_equal(tl_file_write(tl_text_get(&path), "", 0, NULL), TL_OK);
    expect(3, "empty.onnx", "inspect $D/empty.onnx");
    tl_text_free(&path);
    tl_text_format(&path, "%s/text.onnx", folder);
    assert_int_equal(tl_file_write(tl_text_get(&path), "hello, world\n", 13, NULL), TL_OK);
    expect(3, "text.onnx", "verify $D/text.onnx");
    tl_text_free(&path);
}

/* One small real network through every verb. */
static void a_network_through_every_verb(void **state)
{
    (void)state;
    expect(0, "bert_tiny", "model bert_tiny -o $D/m.onnx --seed 3");
    expect(0, "GFLOP a run", "inspect $D/m.onnx");
    expect(0, "workload", "inspect $D/m.onnx --kernels");
    expect(0, "kernel ", "inspect $D/m.onnx --extract layernorm_2");
    expect(2, "no kernel is named nonsense", "inspect $D/m.onnx --extract nonsense");
    expect(0, "wrote", "run $D/m.onnx --output $D/out --threads 1");
    expect(0, "from the cache", "run $D/m.onnx --output $D/out --threads 2");
    expect(0, "0 differ: ok", "verify $D/m.onnx --per-node");
    expect(0, "% peak", "bench $D/m.onnx --seconds 0.2 --threads 1");
    expect(0, "\"record\":\"model\"", "bench $D/m.onnx --seconds 0.2 --json --no-cache");
    expect(2, "the model has no such input", "run $D/m.onnx --input nonsense=x.npy");
    expect(2, "nonexistent.npy", "run $D/m.onnx --input input_ids=$D/nonexistent.npy");
    expect(2, "but input input_ids is i64[1, 128]",
           "run $D/m.onnx --input input_ids=$D/out/output_pooler_output.npy");
    expect(5, "cannot make this folder", "run $D/m.onnx --output /proc/nowhere");
}

static void outputs_given_are_compared(void **state)
{
    (void)state;
    expect(0, "wrote", "run $D/m.onnx --output $D/data --threads 1 --seed 5");
    expect(2, "no file for input", "verify $D/m.onnx --data $D/data");
    expect(0, ": ok",
           "verify $D/m.onnx --data $D/data --input input_ids=random:5 --input "
           "attention_mask=random:5");
    expect(1, ": WRONG",
           "verify $D/m.onnx --data $D/data --input input_ids=random:6 --input "
           "attention_mask=random:5");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_and_usage),
        cmocka_unit_test(info_tells_the_machine),
        cmocka_unit_test(files_that_are_no_models),
        cmocka_unit_test(a_network_through_every_verb),
        cmocka_unit_test(outputs_given_are_compared),
    };
    return cmocka_run_group_tests_name("cli", tests, set_up, tear_down);
}
