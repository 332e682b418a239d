/* tests/driver/test_cli_cache.c: what happens to the cache and to files when something goes wrong: damage, folders that
 * cannot be used, an end at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/cli_run.h"

static int make_model(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    expect(0, "wrote", "model bert_tiny -o $D/m.onnx");
    return 0;
}

static void show_list_trim_clear(void **state)
{
    (void)state;
    expect(0, "entries   0", "cache");
    expect(0, "ready in", "run $D/m.onnx --threads 1");
    expect(0, "(from the cache)", "run $D/m.onnx --threads 1");
    expect(0, "kernel ", "cache list");
    expect(0, "model ", "cache list");
    expect(0, "\"record\":\"cache\"", "cache --json");
    expect_shell(0, "hits      1 of", "$TILTH cache");
    expect(0, "are left", "cache trim --limit 1K");
    expect(0, "0 entries, 0.0 MB are left", "cache clear");
    expect(0, "hits      0 of 0", "cache show");
    expect(2, "--limit goes with trim", "cache --limit 1G");
    expect(2, "is not a size", "cache trim --limit much");
    expect(2, "show, list, trim or clear", "cache empty");
    expect(5, "not a folder", "cache --cache $D/m.onnx");
}

/* Two builds whose code generators differ share a cache: neither is ever given the other's code, each finds its own. Whole
 * executables belong to a build, so they are taken away: what is left to find are objects. */
static void builds_of_other_sources(void **state)
{
    (void)state;
    static const struct {
        const char *tilth, *cached;
    } runs[] = {
        { "$TILTH", ", 0 objects cached" },
        { "$TILTH", ", all objects cached" }, /* otherwise what follows would say nothing */
        { "$(dirname $TILTH)/tests/driver/other_tilth", ", 0 objects cached" },
        { "$(dirname $TILTH)/tests/driver/other_tilth", ", all objects cached" },
        { "$TILTH", ", all objects cached" },
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        tl_text line = { 0 };
        tl_text_format(
            &line,
            "rm -rf $D/two/models; %s bench $D/m.onnx --cache $D/two -s 0.01 --threads 1 | "
            "sed 's/ \\([0-9]*\\) workloads, \\1 objects/ \\1 workloads, all objects/'",
            runs[i].tilth);
        expect_shell(0, runs[i].cached, tl_text_get(&line));
        tl_text_free(&line);
    }
}

/* Whole executables belong to one build: the other compiles anew, and neither disturbs the other's. */
static void executables_of_other_builds(void **state)
{
    (void)state;
    static const char *const builds[] = { "$TILTH", "$(dirname $TILTH)/tests/driver/other_tilth" };
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++) {
            tl_text line = { 0 };
            tl_text_format(&line,
                           "%s run $D/m.onnx --cache $D/three -o $D/build%d --threads 1 | "
                           "grep -c 'from the cache'",
                           builds[i], i);
            expect_shell(round == 0, round == 0 ? "0" : "1", tl_text_get(&line));
            tl_text_free(&line);
        }
    expect_shell(0, "the same", "diff -r $D/build0 $D/build1 && echo the same");
}

/* Every file of the cache, with some bytes of it changed, cut, or emptied, is compiled again. */
static void damage_is_a_miss(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "printf XXXX | dd of=$f bs=1 seek=300 conv=notrunc 2>/dev/null",
        "truncate -s 100 $f",
        ": >$f",
        "cp $TILTH $f",
        "sed -i '1s/\"version\":[0-9]*,/\"version\":2,/' $f", /* of an older tilth */
        "sed -i '1s/\"version\":[0-9]*,/\"version\":99,/' $f",
    };
    expect(0, "ready in", "run $D/m.onnx --cache $D/c -o $D/want --threads 1");
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        tl_text line = { 0 };
        tl_text_format(&line,
                       "for f in $(find $D/c/objects $D/c/models -type f); do %s; done; "
                       "$TILTH run $D/m.onnx --cache $D/c -o $D/got --threads 1 | grep -v cache && "
                       "cmp $D/want/output_pooler_output.npy $D/got/output_pooler_output.npy && "
                       "$TILTH run $D/m.onnx --cache $D/c --threads 1",
                       damages[i]);
        expect_shell(0, "(from the cache)", tl_text_get(&line));
        tl_text_free(&line);
    }
}

static void folders_that_cannot_be_used(void **state)
{
    (void)state;
    expect(0, "note: nothing is cached", "run $D/m.onnx --cache /proc/nowhere --threads 1");
    expect(0, "note: nothing is cached", "run $D/m.onnx --cache $D/m.onnx --threads 1");
    expect_shell(0, "ready in",
                 "mkdir -p $D/wide && chmod 777 $D/wide && $TILTH run $D/m.onnx --cache $D/wide");
    expect_shell(
        0, "quiet",
        "$TILTH run $D/m.onnx --cache /proc/nowhere -q --threads 1 | grep note || echo quiet");
    expect_shell(0, "ready in", "env -u XDG_CACHE_HOME -u HOME $TILTH run $D/m.onnx --threads 1");
}

/* An end by a signal, at many moments: the same status for both and in every verb, and no file but whole ones. */
static void ends_by_signals(void **state)
{
    (void)state;
    static const char *const signals[] = { "INT", "TERM" };
    /* each goes on for longer than the test waits: a pipe that nobody reads keeps a writer */
    static const char *const lines[] = { "bench $D/m.onnx -s 30",
                                         "tune $D/m.onnx --budget 30s --threads 1 --db $D/s/r.db",
                                         "compile $D/m.onnx -o $D/s/pipe --format so",
                                         "compile $D/m.onnx -o $D/s/pipe --format o",
                                         "compile $D/m.onnx -o $D/s/pipe --format s",
                                         "inspect $D/m.onnx --dot -o $D/s/pipe",
                                         "model bert_tiny -o $D/s/pipe",
                                         "report --db $D/s/r.db -o $D/s/pipe",
                                         "db export --db $D/s/r.db -o $D/s/pipe" };
    expect_shell(0, "", "mkdir $D/s $D/s/tmp; mkfifo $D/s/pipe");
    expect(0, "ready in", "run $D/m.onnx");
    expect(0, "", "tune $D/m.onnx --trials 2 --top 1 --no-check --threads 1 -q --db $D/s/r.db");
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
            tl_text line = { 0 };
            tl_text_format(&line, "TMPDIR=$D/s/tmp timeout -s %s --preserve-status 0.6 $TILTH %s",
                           signals[i], lines[l]);
            expect_shell(130, "interrupted", tl_text_get(&line));
            tl_text_free(&line);
        }
    expect_shell(0, "left: pipe r.db tmp",
                 "rm -f $D/s/r.db-*; rmdir $D/s/tmp; mkdir $D/s/tmp; "
                 "echo left: $(ls $D/s)");
    expect_shell(0, "left: 0",
                 "mkdir $D/w; for t in 0.01 0.03 0.06 0.1 0.15; do timeout -s INT $t $TILTH model "
                 "resnet18 -o $D/w/x.onnx >/dev/null; [ -e $D/w/x.onnx ] && rm $D/w/x.onnx; "
                 "timeout -s INT $t $TILTH run $D/m.onnx --cache $D/wc -o $D/w >/dev/null; done; "
                 "echo left: $(ls $D/w | grep -v '\\.npy$' | wc -l)");
    expect(0, "ready in", "run $D/m.onnx --cache $D/wc");
    expect(0, "(from the cache)", "run $D/m.onnx --cache $D/wc");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_list_trim_clear),        cmocka_unit_test(builds_of_other_sources),
        cmocka_unit_test(executables_of_other_builds), cmocka_unit_test(damage_is_a_miss),
        cmocka_unit_test(folders_that_cannot_be_used), cmocka_unit_test(ends_by_signals),
    };
    return cmocka_run_group_tests_name("cli_cache", tests, make_model, cli_tear_down);
}
