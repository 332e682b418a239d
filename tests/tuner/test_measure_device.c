/* tests/tuner/test_measure_device.c: candidates measured on a GPU, by the driver without one that executes kernels in the
 * emulator: what is right is timed by the device's own clock; an illegal address, a hang, a result that is wrong or no device at
 * all costs the candidate and is said. */
#define FAKE_LIBRARY "libcuda_emulated.so"
#include "codegen/emulate/emulated_device.h"
#include "tests/gpu/with_fake.h"
#include "tests/support/sanitized.h"
#include "tests/tuner/measuring.h"

/* A remark in a trace says what the driver of the runner does in that job; without one it is sound, and every launch takes a
 * millisecond by its clock, so that a sample is one call. */
static void device_hook(const char *job, const char *trace)
{
    static const char *const says[][2] = {
        { "# driver: lose", "slow-launch=1,lose-launch=1" },
        { "# driver: hang", "slow-launch=1,hang-launch=1" },
        { "# driver: wrong", "slow-launch=1,wrong-launch=1" },
        { "# driver: refuse", "slow-launch=1,fail-load=1" },
        { "# driver: slow", "slow-launch=9" },
    };
    const char *what = "slow-launch=1";

    measuring_hook(job, trace);
    if (strcmp(job, "run") != 0)
        return;
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(trace, says[i][0]) != NULL)
            what = says[i][1];
    fake_say(what);
}

static tl_measurer *start_on(const char *device, const char *what, double run_limit_s)
{
    static tl_target target, host;
    tl_measurer *m;
    tl_diag diag = { 0 };
    const tl_measure_options options = { .worker = measuring_self(),
                                         .target = &target,
                                         .device = device,
                                         .host = &host,
                                         .run_limit_s = run_limit_s,
                                         .seed = 7 };

    setenv("TILTH_PTX_WITH_IR", "1", 1);
    fake_say(what);
    assert_int_equal(compiled_target(NULL, &host, &diag), TL_OK);
    assert_int_equal(tl_target_named("cuda,sm_80", &target, &diag), TL_OK);
    if (tl_measurer_create(&options, &m, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return m;
}

static tl_measurer *start(const char *what, double run_limit_s)
{
    return start_on("cuda", what, run_limit_s);
}

static const char by_rows[] =
    "i, j, k = loops(matmul)\nbind(i, blockIdx.x)\nbind(j, threadIdx.x)\n";

static tl_result run(tl_measurer *m, int task, const char *remark, tl_cold cold)
{
    char trace[512];
    snprintf(trace, sizeof trace, "%s# driver: %s\n", by_rows, remark);
    return measuring_one(m, task, &(tl_candidate){ .trace = trace, .cold = cold });
}

/* ThreadSanitizer makes a launch on the fake driver's emulator longer than the limits of the next two. */
static void what_is_right_is_timed(void **state)
{
    if (is_thread_sanitized)
        skip();
    tl_measurer *m = start("slow-launch=1", 0);
    int task = measuring_task(m);
    tl_result first = run(m, task, "", TL_COLD_NOTHING);

    (void)state;
    if (first.status != TL_RECORD_OK)
        fail_msg("%s", first.reason);
    assert_true(first.crowned && first.time_ns >= 1e6 && first.time_ns < 2e6);
    assert_true(first.max_error < 1e-5 && first.check_ns > 0);
    tl_result cold = run(m, task, "", TL_COLD_ALL);
    assert_int_equal(cold.status, TL_RECORD_OK);
    assert_true(cold.cold == TL_COLD_ALL && !cold.crowned);
    tl_result slow = run(m, task, "slow", TL_COLD_NOTHING);
    assert_int_equal(slow.status, TL_RECORD_OK);
    assert_true(!slow.crowned && slow.time_ns >= 9e6);
    tl_result wrong = measuring_one(m, task, &(tl_candidate){ .lowering = 1, .trace = by_rows });
    assert_int_equal(wrong.status, TL_RECORD_WRONG);
    assert_non_null(strstr(wrong.reason, "output C differs on the random inputs"));
    tl_measurer_destroy(m);
}

static void a_fault_costs_one_candidate(void **state)
{
    static const struct {
        const char *remark;
        tl_record_status status;
        const char *says;
    } cases[] = {
        { "lose", TL_RECORD_CRASH, "the device was lost while it ran" },
        { "hang", TL_RECORD_TIMEOUT, "longer than the limit" },
        { "wrong", TL_RECORD_WRONG, "output C differs" },
        { "refuse", TL_RECORD_BUILD, "does not take its code (218)" },
    };
    if (is_thread_sanitized)
        skip();
    tl_measurer *m = start("slow-launch=1", 8);
    int task = measuring_task(m);

    (void)state;
    assert_int_equal(run(m, task, "", TL_COLD_NOTHING).status, TL_RECORD_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_result bad = run(m, task, cases[i].remark, TL_COLD_NOTHING);
        if (bad.status != cases[i].status || strstr(bad.reason, cases[i].says) == NULL)
            fail_msg("%s: %d, %s", cases[i].remark, (int)bad.status, bad.reason);
        assert_true(!bad.crowned);
        tl_result good = run(m, task, "", TL_COLD_NOTHING);
        if (good.status != TL_RECORD_OK)
            fail_msg("after %s: %s", cases[i].remark, good.reason);
        assert_true(good.incumbent_ns > 0); /* the incumbent came back with the worker */
    }
    tl_measure_stats stats;
    tl_measurer_stats(m, &stats);
    assert_int_equal(stats.deaths, 2);
    assert_int_equal(stats.restarts, 0);
    tl_measurer_destroy(m);
}

static void without_a_device_it_is_said(void **state)
{
    tl_measurer *m = start("no-device", 0);
    int task = measuring_task(m);
    tl_result none = measuring_one(m, task, &(tl_candidate){ .trace = by_rows });

    (void)state;
    assert_int_equal(none.status, TL_RECORD_WORKER);
    assert_non_null(strstr(none.reason, "the CUDA driver finds no GPU"));
    tl_measurer_destroy(m);
}

/* The emulator's times say nothing: each candidate runs once for every set of inputs, and is timed no more. */
static void on_an_emulated_device_it_is_checked_only(void **state)
{
    static const char by_columns[] =
        "i, j, k = loops(matmul)\nreorder(j, i)\nbind(j, blockIdx.x)\nbind(i, threadIdx.x)\n";
    tl_measurer *m = start_on("cuda-emulated", "", 0);
    int task = measuring_task(m);
    tl_result first = run(m, task, "", TL_COLD_CONSTANTS);
    tl_result second =
        measuring_one(m, task, &(tl_candidate){ .trace = by_columns, .cold = TL_COLD_CONSTANTS });
    tl_result label = measuring_one(
        m, task, &(tl_candidate){ .trace = by_columns, .cold = TL_COLD_CONSTANTS, .label = true });
    tl_result wrong = measuring_one(m, task, &(tl_candidate){ .lowering = 1, .trace = by_rows });

    (void)state;
    if (first.status != TL_RECORD_OK || second.status != TL_RECORD_OK ||
        label.status != TL_RECORD_OK)
        fail_msg("%s%s%s", first.reason, second.reason, label.reason);
    assert_true(first.crowned && first.cold == TL_COLD_CONSTANTS && first.max_error < 1e-5);
    assert_int_equal(first.time_count, 1);
    assert_int_equal(second.time_count, 1);
    assert_true(second.incumbent_ns == first.time_ns);
    assert_int_equal(label.turns, 1);
    assert_int_equal(wrong.status, TL_RECORD_WRONG);
    tl_measurer_destroy(m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_is_timed),
        cmocka_unit_test(a_fault_costs_one_candidate),
        cmocka_unit_test(without_a_device_it_is_said),
        cmocka_unit_test(on_an_emulated_device_it_is_checked_only),
    };
    const tl_worker_options options = { .hook = device_hook };
    tl_emulated_device_add();
    if (argc >= 2 && strcmp(argv[1], "worker") == 0)
        return tl_worker_main(argc - 2, argv + 2, &options);
    return cmocka_run_group_tests_name("measuring on a GPU", tests, NULL, NULL);
}
