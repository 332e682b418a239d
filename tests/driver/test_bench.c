/* tests/driver/test_bench.c: the statistics of bench, and what it does with files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include "runtime/base/statistics.h"
#include "driver/bench/bench.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/tensor/npy.h"
#include "tests/driver/cli_run.h"

static void rank_test_gives_known_values(void **state)
{
    (void)state;
    static const double ties_a[] = { 1, 2, 2, 3 }, ties_b[] = { 2, 3, 3, 4 };
    double low[10], high[10];
    for (int i = 0; i < 10; i++) {
        low[i] = i;
        high[i] = 10 + i;
    }
    /* computed from the definition, apart from this code */
    assert_true(fabs(tl_mann_whitney(low, 10, high, 10) - 1.826718e-4) < 1e-9);
    assert_true(fabs(tl_mann_whitney(high, 10, low, 10) - 1.826718e-4) < 1e-9);
    assert_true(fabs(tl_mann_whitney(ties_a, 4, ties_b, 4) - 0.1720337) < 1e-6);
    assert_true(tl_mann_whitney(low, 10, low, 10) == 1);
    assert_true(tl_mann_whitney(low, 0, high, 10) == 1);
    assert_true(tl_mann_whitney(ties_a, 1, ties_a, 1) == 1);
}

/* Of samples from one distribution about one in a hundred has p < 0.01. */
static void rank_test_seldom_cries_wolf(void **state)
{
    (void)state;
    tl_random random = tl_random_make(7);
    int cries = 0;
    for (int trial = 0; trial < 4000; trial++) {
        double a[20], b[20];
        for (int i = 0; i < 20; i++) {
            a[i] = exp(tl_random_normal(&random));
            b[i] = exp(tl_random_normal(&random));
        }
        cries += tl_mann_whitney(a, 20, b, 20) < 0.01;
    }
    if (cries < 15 || cries > 65)
        fail_msg("of 4000 comparisons of equals, seed 7, %d had p < 0.01", cries);
}

static void quantiles_are_nearest_ranks(void **state)
{
    (void)state;
    static const int64_t sorted[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    assert_int_equal(tl_quantile(sorted, 10, 0), 1);
    assert_int_equal(tl_quantile(sorted, 10, 0.5), 5);
    assert_int_equal(tl_quantile(sorted, 10, 0.9), 9);
    assert_int_equal(tl_quantile(sorted, 10, 0.99), 10);
    assert_int_equal(tl_quantile(sorted, 1, 0.99), 1);
}

static const char kernel_text[] =
    "kernel scaled_rows(A: f32[64], B: f32[2, 16], const w: f32[64], out C: f32[64])\n"
    "  for i in 0..64\n"
    "    block scale\n"
    "      spatial i\n"
    "      C[i] = A[i]*w[i] + B[0, 0]\n";
static const char trace_text[] = "i = loops(scale)\n_, i1 = split(i, [_, 8])\nvectorize(i1)\n";

static void write_text(const char *name, const char *text)
{
    tl_text path = { 0 };
    tl_text_format(&path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_file_write(tl_text_get(&path), text, strlen(text), NULL), TL_OK);
    tl_text_free(&path);
}

static void write_array(const char *name, int64_t elements)
{
    tl_text path = { 0 };
    tl_tensor t;
    tl_text_format(&path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_tensor_create(TL_F32, 1, &elements, &t, NULL), TL_OK);
    assert_int_equal(tl_npy_write(tl_text_get(&path), &t, NULL), TL_OK);
    tl_tensor_free(&t);
    tl_text_free(&path);
}

static void kernels_are_measured(void **state)
{
    (void)state;
    write_text("k.tk", kernel_text);
    write_text("k.tr", trace_text);
    write_text("bad.tr", "j = loops(nothing)\n");
    write_array("a.npy", 64);
    write_array("b.npy", 32);
    expect(0, "latency   min ", "bench $D/k.tk -s 0.02");
    expect(0, "latency   min ", "bench $D/k.tk $D/k.tr -s 0.02 --threads 1");
    expect(0, "\"record\":\"kernel_file\"", "bench $D/k.tk -s 0.02 --json");
    expect(1, "in schedule", "bench $D/k.tk $D/bad.tr -s 0.02");
    expect(2, "the kernel comes first", "bench $D/k.tr $D/k.tk");
    expect(3, "in schedule", "bench $D/k.tk $D/k.tk");
    expect_shell(3, "this is no text", "cp $TILTH $D/x.tk; $TILTH bench $D/x.tk");
    expect(0, "latency", "bench $D/k.tk -s 0.02 -i A=$D/a.npy");
    expect(2, "but input A is f32[64] (it would fit input B)", "bench $D/k.tk -i A=$D/b.npy");
    expect(2, "has no such dim", "bench $D/k.tk --dim M=3");
}

static void dims_of_kernels(void **state)
{
    (void)state;
    write_text("dim.tk", "kernel copy(dim M in 1..128, A: f32[M], out C: f32[M])\n"
                         "  for i in 0..M\n"
                         "    block copy\n"
                         "      spatial i\n"
                         "      C[i] = A[i] + 1.0\n");
    expect(0, "latency", "bench $D/dim.tk -s 0.02");
    expect(0, "latency", "bench $D/dim.tk -s 0.02 --dim M=5");
    expect(2, "M is in 1..128", "bench $D/dim.tk --dim M=129");
    expect(2, "not of the form NAME=N", "bench $D/dim.tk --dim M=x");
}

static void baselines(void **state)
{
    (void)state;
    expect_shell(0, "", "$TILTH bench $D/k.tk -s 0.2 --threads 1 --json >$D/base.jsonl");
    expect(0, "baseline  ",
           "bench $D/k.tk -s 0.2 --threads 1 --baseline $D/base.jsonl --threshold 1000");
    /* the same, ten times as fast: slower now */
    expect_shell(
        1, "SLOWER",
        "sed 's/\"min_ns\":[0-9]*/\"min_ns\":1/; s/\"median_ns\":[0-9]*/\"median_ns\":1/; "
        "s/\"round_ns\":.*]/\"round_ns\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]/' "
        "$D/base.jsonl >$D/fast.jsonl; for again in 1 2 3 4 5; do "
        "$TILTH bench $D/k.tk -s 0.4 --threads 1 --baseline $D/fast.jsonl >$D/out; code=$?; "
        "grep -q 'too few' $D/out || break; done; cat $D/out; exit $code");
    expect(2, "No such file", "bench $D/k.tk --baseline $D/absent");
    expect(2, "no record", "bench $D/k.tk --baseline $D/k.tr");
}

/* Three runs of one step; nothing ends before it begins. */
static void check_timeline(void)
{
    tl_text path = { 0 };
    tl_text_format(&path, "%s/t.json", cli_folder);
    json_t *root = json_load_file(tl_text_get(&path), 0, NULL);
    json_t *events = json_object_get(root, "traceEvents"), *event;
    size_t index;
    int spans = 0;
    json_array_foreach(events, index, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
            continue;
        spans++;
        assert_string_equal(json_string_value(json_object_get(event, "name")), "scaled_rows");
        assert_true(json_number_value(json_object_get(event, "ts")) >= 0);
        assert_true(json_number_value(json_object_get(event, "dur")) >= 0);
    }
    assert_true(spans >= 3);
    json_decref(root);
    tl_text_free(&path);
}

static void histories_and_timelines(void **state)
{
    (void)state;
    expect(0, "the first measurement", "bench $D/k.tk -s 0.02 --history $D/h.jsonl --commit abc");
    expect(0, "abc", "bench $D/k.tk -s 0.02 --history $D/h.jsonl --commit def");
    expect_shell(0, "2", "wc -l <$D/h.jsonl");
    expect(2, "Is a directory", "bench $D/k.tk --history $D");
    expect(2, "--commit goes with --history", "bench $D/k.tk --commit abc");
    expect_shell(0, "\"ph\":\"X\"",
                 "$TILTH bench $D/k.tk -s 0.02 --trace $D/t.json >/dev/null && cat $D/t.json");
    check_timeline();
    expect(5, "cannot write", "bench $D/k.tk --trace /proc/nowhere/t.json");
}

/* The names that perf shows are those of kernels, and addresses and sizes are sane. */
static void names_for_perf(void **state)
{
    (void)state;
    expect_shell(0, " scaled_rows",
                 "TILTH_PERF=1 $TILTH bench $D/k.tk -s 0.02 >/dev/null & pid=$!; wait $pid; "
                 "cat /tmp/perf-$pid.map; rm -f /tmp/perf-$pid.map");
}

static void names_for_gdb(void **state)
{
    (void)state;
    expect_shell(
        0, "in scaled_rows ()",
        "if command -v gdb >/dev/null; then echo 'set breakpoint pending on' >$D/gdb; "
        "printf 'set debuginfod enabled off\\nbreak scaled_rows\\nrun\\nbt 1\\nkill\\n' >>$D/gdb; "
        "gdb -q -batch -x $D/gdb --args $TILTH bench $D/k.tk -s 0.02 --threads 1; "
        "else echo 'skip: gdb is not installed: in scaled_rows ()'; fi");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_test_gives_known_values),
        cmocka_unit_test(rank_test_seldom_cries_wolf),
        cmocka_unit_test(quantiles_are_nearest_ranks),
        cmocka_unit_test(kernels_are_measured),
        cmocka_unit_test(dims_of_kernels),
        cmocka_unit_test(baselines),
        cmocka_unit_test(histories_and_timelines),
        cmocka_unit_test(names_for_perf),
        cmocka_unit_test(names_for_gdb),
    };
    return cmocka_run_group_tests_name("bench", tests, cli_set_up, cli_tear_down);
}
