/* tests/driver/test_dataset_cli.c: tilth dataset as a user meets it: a collection of a small kernel to a file and
 * back, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/driver/cli_run.h"

static void from_a_kernel_to_two_files(void **state)
{
    (void)state;
    expect_shell(
        0, "tasks are complete",
        "$TILTH dataset collect models/kernels/gemm.tk --layers 2 --per-task 10 --budget 60s "
        "--db $D/p.db -q");
    expect_shell(0, "a record)", "$TILTH dataset export --db $D/p.db -o $D/p.tld");
    expect_shell(0, "0 come to another program", "$TILTH dataset info $D/p.tld --rebuild");
    /* a curve each of walks, plain points and the trail, and at least one of their errors */
    expect_shell(0, "curves",
                 "$TILTH dataset info $D/p.tld --plot $D/p.svg -q && grep -q '</svg>' $D/p.svg && "
                 "test $(grep -c 'stroke-width=\"2\"' $D/p.svg) -ge 4 && echo curves");
    expect(5, "cannot", "dataset info $D/p.tld --plot $D/no/p.svg -q");
    expect_shell(0, "\"by_sampler\":{\"search\":0,", "$TILTH dataset info $D/p.db --json");
    expect_shell(0, "0 records", "$TILTH dataset merge $D/p.tld $D/p.tld -o $D/q.tld");
    expect_shell(0, "q.tld: ",
                 "$TILTH dataset split $D/q.tld --share 0.5 -o $D/a.tld --rest $D/b.tld; "
                 "$TILTH dataset merge $D/a.tld $D/b.tld -o $D/q.tld");
    expect_shell(
        0, "\"measured\":",
        "$TILTH dataset collect models/kernels/gemm.tk --per-task 10 --budget 10s --db $D/p.db "
        "-q --json");
}

static void what_is_refused(void **state)
{
    (void)state;
    expect(2, "nothing to measure", "dataset collect --db $D/x.db");
    expect(2, "'frob' is nothing it does", "dataset frob");
    expect(2, "--per-task: 1 is not in", "dataset collect m.onnx --per-task 1");
    expect(2, "--budget: 'soon' is no time", "dataset collect m.onnx --budget soon");
    expect(2, "--cold: 'ice' is neither", "dataset collect m.onnx --cold ice");
    expect(2, "info needs a file", "dataset info");
    expect(2, "absent.tld", "dataset info $D/absent.tld");
    expect_shell(3, "this is no data set", "echo hello >$D/x.tld; $TILTH dataset info $D/x.tld");
    expect(2, "merge needs -o FILE", "dataset merge $D/x.tld");
    expect(2, "split needs -o FILE and --rest FILE", "dataset split $D/x.tld -o $D/y.tld");
    expect(2, "--share: 2 is not between",
           "dataset split $D/x.tld -o $D/y.tld --rest $D/z.tld --share 2");
    expect(2, "none.db: No such file", "dataset export --db $D/none.db -o $D/y.tld");
    expect(2, "export takes --db FILE", "dataset export $D/x.tld -o $D/y.tld");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_kernel_to_two_files),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("tilth dataset", tests, cli_set_up, cli_tear_down);
}
