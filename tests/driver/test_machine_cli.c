/* tests/driver/test_machine_cli.c: tilth info --probe and --machine: the profile of this machine, of another one, none, a broken
 * one, and nowhere to write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runtime/base/file.h"
#include "tests/driver/cli_run.h"

/* An analytic model that has one load port and slow broadcasts chooses other tiles. */
static const char slow_loads[] = "tilth machine profile 1\n"
                                 "cpu = A machine of the test\n"
                                 "[x86-64-v3]\n"
                                 "loads_per_cycle = 1\n"
                                 "broadcast_cycles = 4\n";

static void a_probe_is_kept_and_shown(void **state)
{
    (void)state;
    expect_shell(0, "fma_latency", "$TILTH info --quick --probe");
    expect_shell(0, "profile     ", "$TILTH info --quick");
    expect_shell(0, "\"record\":\"machine_profile\"", "$TILTH info --quick --json");
    expect_shell(0, "\"of_this_machine\":true", "$TILTH info --quick --json");
    expect_shell(0, "digest = ", "cat $D/data/tilth/machine-*.txt");
    expect_shell(0, "fma_per_cycle",
                 "$TILTH info --quick --probe --machine $D/own.txt && cat $D/own.txt");
    /* on one core, and a second time over what is there */
    expect_shell(0, "fma_per_cycle",
                 "taskset -c 0 $TILTH info --quick --probe --machine $D/own.txt");
}

static void without_a_place_it_is_shown(void **state)
{
    (void)state;
    expect_shell(2, "neither XDG_DATA_HOME nor HOME",
                 "env -u HOME -u XDG_DATA_HOME $TILTH info --quick --probe");
    expect_shell(0, "vector", "env -u HOME -u XDG_DATA_HOME $TILTH info --quick");
    expect_shell(5, "fma_latency", "XDG_DATA_HOME=/proc/self $TILTH info --quick --probe");
    expect_shell(2, "cannot replace the built-in",
                 "$TILTH info --quick --probe --machine built-in");
}

static void files_that_are_no_profiles(void **state)
{
    (void)state;
    expect_shell(2, "absent.txt", "$TILTH info --quick --machine $D/absent.txt");
    expect_shell(3, "no machine profile",
                 "echo x >$D/x.txt; $TILTH info --quick --machine $D/x.txt");
    expect_shell(3, "not those of its digest",
                 "sed 's/^cores = .*/cores = 77/' $D/own.txt >$D/y.txt; $TILTH run $D/m.onnx "
                 "--machine $D/y.txt");
    expect_shell(2, "tilth info --probe makes one",
                 "XDG_DATA_HOME=$D/none $TILTH run $D/m.onnx --machine probed");
    expect_shell(2, "tilth info --probe makes one",
                 "XDG_DATA_HOME=$D/none $TILTH info --machine probed");
}

static void default_schedules_go_by_it(void **state)
{
    (void)state;
    const char *inspect = "--target x86-64-v3 --no-db -o $D/out.ll";
    tl_text line = { 0 };
    tl_text_format(
        &line,
        "$TILTH model squeezenet1_1 -o $D/m.onnx >/dev/null && "
        "$TILTH compile $D/m.onnx %s && mv $D/out.ll $D/usual.ll && "
        "$TILTH compile $D/m.onnx %s --machine built-in && cmp $D/out.ll $D/usual.ll && echo same",
        inspect, inspect);
    expect_shell(0, "same", tl_text_get(&line));
    line.size = 0;
    tl_text_format(&line,
                   "$TILTH compile $D/m.onnx %s --machine $D/slow.txt; cmp -s $D/out.ll "
                   "$D/usual.ll || echo other",
                   inspect);
    expect_shell(0, "other", tl_text_get(&line));
    expect_shell(0, "a profile of another machine: A machine of the test", tl_text_get(&line));
    tl_text_free(&line);
}

static int make_files(void **state)
{
    int failed = cli_set_up(state);
    tl_text path = { 0 };
    tl_text_format(&path, "%s/slow.txt", cli_folder);
    failed |= tl_file_write(tl_text_get(&path), slow_loads, strlen(slow_loads), NULL) != TL_OK;
    tl_text_free(&path);
    return failed;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_is_kept_and_shown),
        cmocka_unit_test(without_a_place_it_is_shown),
        cmocka_unit_test(default_schedules_go_by_it),
        cmocka_unit_test(files_that_are_no_profiles),
    };
    return cmocka_run_group_tests_name("machine profiles of the command line", tests, make_files,
                                       cli_tear_down);
}
