/* tests/driver/test_cli_files.c: what the command line writes to, which files and folders and names it refuses, and what
 * of a model's names reaches the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/cli_run.h"

static int make_models(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    expect(0, "wrote", "model bert_tiny -o $D/m.onnx");
    /* the same with an output whose name steers the terminal: ESC [ 3 1 m, an override of direction */
    expect_shell(0, "",
                 "LC_ALL=C sed 's/pooler_output/\\x1b[31m\\xe2\\x80\\xaegpj12/g' $D/m.onnx "
                 ">$D/evil.onnx && ! cmp -s $D/m.onnx $D/evil.onnx && echo text >$D/text");
    return 0;
}

/* What every verb writes, with OUT in its place. */
static const char *const writers[] = {
    "model lstm2 -o OUT",
    "inspect $D/m.onnx --quick --dot -o OUT",
    "inspect $D/m.onnx --quick --space -o OUT",
    "compile $D/m.onnx --format s -o OUT",
    "compile $D/m.onnx --format o -o OUT",
    "compile $D/m.onnx --format so -o OUT",
    "schedule $D/mm.tk --default --html OUT",
    "bench $D/mm.tk --seconds 0.05 --trace OUT",
    "db export -o OUT --db $D/r.db",
};

static void make_kernel(void)
{
    expect_shell(
        0, "",
        "$TILTH inspect $D/m.onnx --extract $($TILTH inspect $D/m.onnx --kernels --quick | "
        "grep -o '^gemm[a-z_0-9]*' | tail -1) >$D/mm.tk; "
        "[ -e $D/r.db ] || $TILTH tune $D/mm.tk --trials 2 --threads 1 --db $D/r.db -q");
}

/* Runs `line` with OUT as that path. */
static void expect_written(int exit_code, const char *part, const char *writer, const char *out,
                           const char *after)
{
    tl_text line = { 0 };
    const char *place = strstr(writer, "OUT");
    tl_text_format(&line, "$TILTH %.*s%s%s%s", (int)(place - writer), writer, out,
                   place + strlen("OUT"), after);
    expect_shell(exit_code, part, tl_text_get(&line));
    tl_text_free(&line);
}

static void links_devices_and_pipes_stay(void **state)
{
    (void)state;
    make_kernel();
    bool may_make_nodes = true;
    tl_text out = { 0 };
    /* a null device of our own, never the system's */
    if (cli_shell(&out, "mknod $D/null c 1 3 && : >$D/null") != 0)
        may_make_nodes = false;
    tl_text_free(&out);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        expect_shell(0, "", "rm -f $D/target $D/link; echo old >$D/target; ln -s target $D/link");
        expect_written(0, "kept", writers[i], "$D/link",
                       " && [ -L $D/link ] && [ $(stat -c %s $D/target) -gt 100 ] && echo kept");
        expect_shell(0, "", "rm -f $D/pipe; mkfifo $D/pipe");
        expect_written(
            0, "kept", writers[i], "$D/pipe",
            " >/dev/null & cat $D/pipe >$D/piped; wait; [ -p $D/pipe ] && [ $(stat -c %s "
            "$D/piped) -gt 100 ] && echo kept");
        if (may_make_nodes)
            expect_written(0, "kept", writers[i], "$D/null", " && [ -c $D/null ] && echo kept");
    }
    if (may_make_nodes)
        expect_shell(0, "alone", "[ -z \"$(ls $D | grep '^null.')\" ] && echo alone");
    expect(2, "this is a folder", "model lstm2 -o $D");
    expect(2, "beside", "model lstm2 --external -o $D/pipe");
    expect(2, "not a regular file", "bench $D/mm.tk --history $D/pipe");
}

/* To stdout by name: the file and nothing else, behind what was there. The name is a link of our own, as /dev/stdout is
 * one: what is wrong here replaces nothing of the system's. */
static void stdout_by_name(void **state)
{
    (void)state;
    expect_shell(0, "", "ln -s /proc/self/fd/1 $D/stdout");
    expect_shell(0, "same",
                 "$TILTH model bert_tiny -o $D/stdout 2>/dev/null >$D/out.onnx; "
                 "cmp $D/m.onnx $D/out.onnx && echo same");
    expect_shell(0, "same",
                 "$TILTH model bert_tiny -o /dev/fd/1 2>/dev/null | cmp - $D/m.onnx && echo same");
    expect_shell(0, "same",
                 "(echo first; $TILTH compile $D/m.onnx --format s -o $D/stdout --json; echo "
                 "last) >$D/all; $TILTH compile $D/m.onnx -o $D/m.s >/dev/null; (echo first; cat "
                 "$D/m.s; echo last) | cmp - $D/all && echo same");
}

static void a_link_to_a_compiled_model_stays(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++)
        expect_shell(0, "kept",
                     "[ -L $D/l.tilth ] || ln -s real.tilth $D/l.tilth; $TILTH compile $D/m.onnx "
                     "-o $D/l.tilth && [ -L $D/l.tilth ] && [ -e $D/real.tilth/executable.json ] "
                     "&& echo kept");
    expect_shell(2, "no compiled model to be replaced",
                 "mkdir $D/mine.tilth; echo x >$D/mine.tilth/objects.bin; $TILTH compile "
                 "$D/m.onnx -o $D/mine.tilth || { s=$?; cat $D/mine.tilth/objects.bin; exit $s; }");
}

static void empty_names_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "run $D/m.onnx -o ''",
        "run $D/m.onnx --cache ''",
        "run $D/m.onnx --data=",
        "run $D/m.onnx --db ''",
        "bench $D/m.onnx --trace ''",
        "bench $D/m.onnx --history ''",
        "tune $D/m.onnx --record ''",
        "model lstm2 -o ''",
        "report -o ''",
        "compile $D/m.onnx -o ''",
        "cache --cache ''",
        "db --db ''",
        "inspect $D/m.onnx --dot -o ''",
        "run ''",
        "inspect ''",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect(2, "is empty", lines[i]);
}

static void a_folder_of_others_is_no_cache(void **state)
{
    (void)state;
    expect_shell(0, "", "mkdir -p $D/f/models $D/f/objects; echo weights >$D/f/models/w.bin");
    static const char *const lines[] = {
        "run $D/m.onnx --cache $D/f",         "bench $D/m.onnx --cache $D/f",
        "inspect $D/m.onnx --cache $D/f",     "cache --cache $D/f",
        "cache trim --limit 1K --cache $D/f", "cache clear --cache $D/f"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect(2, "no cache of tilth", lines[i]);
    expect_shell(0, "weights", "[ $(find $D/f -type f | wc -l) = 1 ] && cat $D/f/models/w.bin");
    expect_shell(0, "0 wide",
                 "(umask 0; $TILTH run $D/m.onnx --cache $D/open >/dev/null); "
                 "echo $(find $D/open -perm /077 | wc -l) wide");
    expect_shell(0, "Signature: 8a477f597d28d172789f06886806bc55", "head -1 $D/open/CACHEDIR.TAG");
    expect(2, "--cache and --no-cache", "run $D/m.onnx --cache $D/open --no-cache");
    expect(2, "--cache and --no-cache", "tune $D/mm.tk --cache $D/open --no-cache");
}

/* A file that a person names as the database is one, in every verb. */
static void a_named_database_is_one(void **state)
{
    (void)state;
    make_kernel();
    static const struct {
        const char *file, *part;
        int exit_code;
    } files[] = { { "$D/text", "database", 2 },
                  { "$D/absent.db", "no such file", 2 },
                  { "$D", "not a regular file", 2 },
                  { "$D/cut.db", "database", 5 } };
    static const char *const verbs[] = {
        "run $D/m.onnx",      "bench $D/m.onnx --seconds 0.1", "verify $D/m.onnx",
        "inspect $D/m.onnx",  "compile $D/m.onnx -o $D/x.s",   "db ls",
        "report -o $D/x.html"
    };
    expect_shell(0, "", "head -c 5000 $D/r.db >$D/cut.db");
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++)
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
            tl_text line = { 0 };
            tl_text_format(&line, "%s --db %s", verbs[v], files[f].file);
            expect(files[f].exit_code, files[f].part, tl_text_get(&line));
            tl_text_free(&line);
        }
    expect(2, "holds no records", "tune $D/mm.tk --trials 1 --db $D/text");
    expect_shell(0, "text", "cat $D/text");
    expect_shell(0, "kept", /* a repair through a link leaves the link */
                 "cp $D/r.db $D/real.db; ln -s real.db $D/l.db; $TILTH db repair --force --db "
                 "$D/l.db && [ -L $D/l.db ] && [ -e $D/real.db.damaged-1 ] && echo kept");
    expect_shell(0, "ready in", /* the default one may be damaged */
                 "mkdir -p $D/other/tilth; cp $D/cut.db $D/other/tilth/records.db; "
                 "XDG_DATA_HOME=$D/other $TILTH run $D/m.onnx --threads 1");
}

static void numbers_and_symbols_are_checked(void **state)
{
    (void)state;
    expect(2, "--limit: -1 is not in 0..", "db ls -n -1");
    expect(2, "--keep-best: -2", "db prune --keep-best -2");
    expect(2, "--older-than: -3", "db prune --older-than -3");
    static const char *const names[] = { "main",   "int",     "class", "_model", "model_t",
                                         "printf", "environ", "sqrtf", "tl_run", "tilth_model",
                                         "1st",    "a-b",     "errno", "''" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "compile $D/m.onnx -o $D/s.o --symbol %s", names[i]);
        expect(2, "--symbol: '", arguments);
    }
    expect(0, "it declares main_model", "compile $D/m.onnx -o $D/s.o --symbol main_model");
    expect(0, "it declares model_t_", "compile $D/m.onnx -o $D/t.o");
}

/* Whatever is printed, on both streams: no control character but newlines and tabs, and no mark of direction. */
static void names_reach_the_terminal_printable(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "inspect $D/evil.onnx",
        "inspect $D/evil.onnx --kernels",
        "inspect $D/evil.onnx --json",
        "inspect $D/evil.onnx --dot",
        "inspect $D/evil.onnx --graph",
        "run $D/evil.onnx",
        "run $D/evil.onnx --json",
        "run $D/evil.onnx -o $D/evil_out",
        "run $D/evil.onnx -i \"$(printf '\\033[2J')=x.npy\"",
        "verify $D/evil.onnx --per-node",
        "compile $D/evil.onnx -o $D/evil.o",
        "inspect $D/evil.onnx --extract \"$(printf '\\033[2J\\302\\2333')\"",
        "run \"$D/$(printf '\\033[2J\\342\\200\\256').onnx\"",
        "\"$(printf 'x\\033[2J')\"",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        tl_text line = { 0 };
        tl_text_format(
            &line,
            "export TERM=xterm; $TILTH %s >$D/said 2>&1; [ -s $D/said ] && "
            "! LC_ALL=C grep -qP '[\\x00-\\x08\\x0b-\\x1f\\x7f]|\\xe2\\x80\\xae|\\xc2\\x9b' "
            "$D/said && echo clean",
            lines[i]);
        expect_shell(0, "clean", tl_text_get(&line));
        tl_text_free(&line);
    }
    expect_shell(0, "clean", "! LC_ALL=C grep -qP '\\x1b|\\xe2\\x80\\xae' $D/evil.h && echo clean");
    expect_shell(0, "clean",
                 "[ $(ls $D/evil_out | wc -l) = 2 ] && ! ls $D/evil_out | LC_ALL=C grep -qP "
                 "'\\x1b|\\xe2\\x80\\xae' && echo clean");
    expect(0, "\\u001b[31m\\u202egpj12", "run $D/evil.onnx");
    expect(0, "\"\\u001b[31m\\u202egpj12\"", "run $D/evil.onnx --json");
    expect(0, "\"\\x1b[31m\\xe2\\x80\\xaegpj12\"", "inspect $D/evil.onnx --graph");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_devices_and_pipes_stay),
        cmocka_unit_test(stdout_by_name),
        cmocka_unit_test(a_link_to_a_compiled_model_stays),
        cmocka_unit_test(empty_names_are_refused),
        cmocka_unit_test(a_folder_of_others_is_no_cache),
        cmocka_unit_test(a_named_database_is_one),
        cmocka_unit_test(numbers_and_symbols_are_checked),
        cmocka_unit_test(names_reach_the_terminal_printable),
    };
    return cmocka_run_group_tests_name("cli_files", tests, make_models, cli_tear_down);
}
