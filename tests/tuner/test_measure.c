/* tests/tuner/test_measure.c: candidates in worker processes: what is right is timed, what fails costs itself only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include "runtime/base/file.h"
#include "tests/tuner/measuring.h"

/* What times say holds when nobody else takes the cores: so it must in one of a few attempts, or never does. */
static void holds_when_undisturbed(bool (*holds)(void))
{
    bool held = false;
    for (int i = 0; i < 6 && !held; i++)
        held = holds();
    assert_true(held);
}

/* What is faster is crowned, what is slower is given up early. */
static bool winners_and_losers(void)
{
    tl_measurer *m = measuring_start(NULL);
    int task = measuring_task(m);
    tl_result plain = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    tl_result better = measuring_one(m, task, &(tl_candidate){ .trace = good_trace });
    tl_result again = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    assert_true(plain.crowned && better.incumbent_ns > 0);
    assert_int_equal(again.status, TL_RECORD_OK);
    tl_measurer_destroy(m);
    assert_true(plain.alone == 0 && plain.promise == 0 && again.promise == 0);
    assert_true(better.alone >= 0 && better.alone <= 1);
    assert_true(!better.crowned || better.disturbed || better.alone > 0);
    return better.crowned && better.score_ns < plain.score_ns && again.hopeless &&
           again.time_count < 11 && !again.crowned;
}

static void what_is_faster_wins(void **state)
{
    (void)state;
    holds_when_undisturbed(winners_and_losers);
}

static void right_candidates_are_timed(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    int task = measuring_task(m);
    tl_result plain = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    if (plain.status != TL_RECORD_OK)
        fail_msg("%s", plain.reason);
    assert_true(plain.time_ns > 0 && plain.time_count >= 11 && plain.crowned);
    assert_true(plain.median_ns >= plain.time_ns);
    assert_int_equal(strlen(plain.program), 16);
    tl_result better = measuring_one(m, task, &(tl_candidate){ .trace = good_trace });
    if (better.status != TL_RECORD_OK)
        fail_msg("%s", better.reason);
    assert_true(better.incumbent_ns > 0 && better.max_error < 1e-4);
    tl_result again = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    assert_int_equal(again.status, TL_RECORD_OK);
    assert_string_equal(again.program, plain.program);
    tl_result careful =
        measuring_one(m, task,
                      &(tl_candidate){ .trace = good_trace, .careful = true, .cold = TL_COLD_ALL });
    assert_int_equal(careful.status, TL_RECORD_OK);
    assert_true(careful.cold == TL_COLD_ALL && !careful.crowned && careful.time_count >= 33);
    tl_result scheduled = measuring_one(m, task, &(tl_candidate){ .program = matmul_text });
    assert_int_equal(scheduled.status, TL_RECORD_OK);
    assert_string_equal(scheduled.program, plain.program);
    tl_measure_stats stats;
    tl_measurer_stats(m, &stats);
    assert_int_equal(stats.results, 5);
    assert_true(stats.peak_gflops > 0 && stats.l2_gflops > 0 && stats.copy_gbs > 0);
    assert_true(stats.reference_ns > 0 && stats.deaths == 0 && stats.restarts == 0);
    tl_measurer_destroy(m);
}

/* In every mode the first is crowned, and then what is faster, and a time says in which. */
static bool crowned_in_every_mode(void)
{
    bool faster = true;
    for (int cold = 0; cold < TL_COLD_COUNT; cold++) {
        tl_measurer *m = measuring_start(&(tl_measure_options){ .constant_bytes = 1 << 30 });
        int task = measuring_task(m);
        tl_candidate candidate = { .trace = "", .cold = (tl_cold)cold };
        tl_result plain = measuring_one(m, task, &candidate);
        candidate.trace = good_trace;
        tl_result better = measuring_one(m, task, &candidate);
        assert_int_equal(better.status, TL_RECORD_OK);
        assert_true((int)plain.cold == cold && (int)better.cold == cold);
        assert_true(plain.crowned);
        faster &= better.crowned && better.score_ns < plain.score_ns;
        tl_measurer_destroy(m);
    }
    return faster;
}

static void winners_are_crowned_in_every_mode(void **state)
{
    (void)state;
    holds_when_undisturbed(crowned_in_every_mode);
}

static const char dot_text[] = "kernel dot(A: f32[512], const B: f32[512, 512], out C: f32[512])\n"
                               "  for i in 0..512\n"
                               "    for j in 0..512\n"
                               "      block dot\n"
                               "        spatial j\n"
                               "        reduce i\n"
                               "        C[j] = sum(A[i]*B[i, j])\n";

static double time_of_dot(int64_t constant_bytes)
{
    tl_diag diag = { 0 };
    tl_measurer *m = measuring_start(&(tl_measure_options){ .constant_bytes = constant_bytes });
    tl_measure_lowering lowering = { "direct", dot_text, 0, 0 };
    tl_measure_task spec = { .name = "dot",
                             .workload = "0123456789abcdef0123456789abcdef",
                             .lowering_count = 1,
                             .lowerings = &lowering };
    int task;
    if (tl_measurer_add_task(m, &spec, &task, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_candidate candidate = { .trace = "i, j = loops(dot)\nj0, j1 = split(j, [_, 16])\n"
                                        "vectorize(j1)\n",
                               .cold = TL_COLD_CONSTANTS };
    tl_result result = measuring_one(m, task, &candidate);
    if (result.status != TL_RECORD_OK)
        fail_msg("%s", result.reason);
    tl_measurer_destroy(m);
    return result.time_ns;
}

/* One multiplication for each constant: where they come from decides. */
static bool memory_is_slower(void)
{
    return time_of_dot((int64_t)1 << 36) > 1.2 * time_of_dot(512 * 512 * 4);
}

static void constants_come_from_memory_when_the_model_is_large(void **state)
{
    (void)state;
    holds_when_undisturbed(memory_is_slower);
}

static void measure_three(tl_measurer *m, const tl_candidate three[3], tl_result results[3])
{
    assert_int_equal(tl_measurer_submit(m, 0, three, 3, NULL, NULL), TL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_measurer_next(m, 300, &results[i], NULL), TL_OK);
}

/* What happens, what is recorded. */
static void faults_cost_one_candidate(void **state)
{
    (void)state;
    static const struct {
        const char *trace;
        int lowering;
        tl_record_status status;
        const char *reason;
    } cases[] = {
        { "# fault: crash at build\n", 0, TL_RECORD_CRASH, "signal 11" },
        { "# fault: crash at run\n", 0, TL_RECORD_CRASH, "signal 11" },
        { "# fault: illegal at run\n", 0, TL_RECORD_ILLEGAL_INSTRUCTION, "SIGILL" },
        { "# fault: hang at build\n", 0, TL_RECORD_TIMEOUT, "longer" },
        { "# fault: hang at run\n", 0, TL_RECORD_TIMEOUT, "longer" },
        { "# fault: exit at run\n", 0, TL_RECORD_CRASH, "status 7" },
        { "# fault: kill at run\n", 0, TL_RECORD_WORKER, "again and again" },
        { "# fault: kill at build\n", 0, TL_RECORD_WORKER, "again and again" },
        { "# fault: stop at run\n", 0, TL_RECORD_TIMEOUT, "its worker with it" },
        { "# fault: garbage at run\n", 0, TL_RECORD_WORKER, "again and again" },
        { "# fault: garbage at build\n", 0, TL_RECORD_WORKER, "again and again" },
        { "", 1, TL_RECORD_WRONG, "output C differs" },
        { "parallel(nothing)\n", 0, TL_RECORD_ILLEGAL, "nothing" },
        { "i, j, k = loops(matmul)\nvectorize(k)\nvectorize(j)\n", 0, TL_RECORD_ILLEGAL, "" },
        { "i, j, k = loops(matmul)\nsplit(j, [_, 0])\n", 0, TL_RECORD_ILLEGAL, "" },
    };
    /* one measurer for all of them; others, with more patience, where what should not be late is, because somebody else has
     * the cores */
    static const double limits_s[] = { 1, 5, 25 };
    enum { COUNT = sizeof cases / sizeof *cases, LIMITS = sizeof limits_s / sizeof *limits_s };
    tl_measurer *measurers[LIMITS] = { NULL };
    for (int c = 0; c < COUNT; c++) {
        const tl_candidate three[3] = {
            { .trace = "" },
            { .trace = cases[c].trace, .lowering = cases[c].lowering, .cold = TL_COLD_CONSTANTS },
            { .trace = good_trace }
        };
        tl_result results[3];
        bool late = true;
        for (int i = 0; late && i < LIMITS; i++) {
            tl_measure_options options = { .build_limit_s = limits_s[i],
                                           .run_limit_s = limits_s[i] };
            if (measurers[i] == NULL) {
                measurers[i] = measuring_start(&options);
                assert_int_equal(measuring_task(measurers[i]), 0);
            }
            measure_three(measurers[i], three, results);
            bool expected = results[1].status == cases[c].status &&
                            strstr(results[1].reason, cases[c].reason) != NULL;
            late = results[0].status == TL_RECORD_TIMEOUT ||
                   results[2].status == TL_RECORD_TIMEOUT ||
                   (results[1].status == TL_RECORD_TIMEOUT && !expected);
        }
        if (results[1].status != cases[c].status ||
            strstr(results[1].reason, cases[c].reason) == NULL ||
            results[0].status != TL_RECORD_OK || results[2].status != TL_RECORD_OK)
            fail_msg("case %d: %s, %s: %s, %s: %s", c,
                     tl_record_status_infos[results[0].status].text,
                     tl_record_status_infos[results[1].status].text, results[1].reason,
                     tl_record_status_infos[results[2].status].text, results[2].reason);
        if (results[1].cold != TL_COLD_CONSTANTS)
            fail_msg("case %d: not in the mode that was asked for", c);
    }
    for (int i = 0; i < LIMITS; i++)
        tl_measurer_destroy(measurers[i]);
}

/* The first right candidate is the measure of all scores, the incumbent what candidates race; a new child gets both. */
static bool child_gets_first_and_incumbent(void)
{
    tl_measurer *m = measuring_start(NULL);
    int task = measuring_task(m);
    tl_result plain = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    tl_result good = measuring_one(m, task, &(tl_candidate){ .trace = good_trace });
    assert_true(plain.crowned);
    tl_result dead = measuring_one(m, task, &(tl_candidate){ .trace = "# fault: crash at run\n" });
    assert_int_equal(dead.status, TL_RECORD_CRASH);
    tl_result again =
        measuring_one(m, task, &(tl_candidate){ .trace = good_trace, .careful = true });
    tl_measurer_destroy(m);
    return good.crowned && again.score_ns > 0.6 * good.score_ns &&
           again.score_ns < good.score_ns / 0.6 &&
           (again.crowned ||
            again.incumbent_ns < 0.7 * plain.time_ns); /* raced with the good one */
}

static void a_new_child_gets_first_and_incumbent(void **state)
{
    (void)state;
    holds_when_undisturbed(child_gets_first_and_incumbent);
}

static void too_much_memory_is_told_apart(void **state)
{
    (void)state;
    tl_measure_options options = { .memory_bytes = 200 << 20,
                                   .builders = 1 }; /* which made the reference before */
    tl_measurer *m = measuring_start(&options);
    int task = measuring_task(m);
    static const char *const traces[] = { "", "# fault: memory at build\n",
                                          "# fault: memory at run\n" };
    for (int i = 0; i < 3; i++) {
        tl_result r = measuring_one(m, task, &(tl_candidate){ .trace = traces[i] });
        if (r.status != (i == 0 ? TL_RECORD_OK : TL_RECORD_MEMORY))
            fail_msg("%s: %s", traces[i], r.reason);
    }
    /* scratch beyond the limit is never allocated */
    static const char large[] = "kernel large(A: f32[8], out B: f32[8])\n"
                                "  alloc t: f32[100000000, 8]\n"
                                "  for n in 0..100000000\n"
                                "    for i in 0..8\n"
                                "      block fill\n"
                                "        spatial n, i\n"
                                "        t[n, i] = A[i]\n"
                                "  for i in 0..8\n"
                                "    block take\n"
                                "      spatial i\n"
                                "      B[i] = t[5, i]\n";
    static const char small[] = "kernel large(A: f32[8], out B: f32[8])\n"
                                "  for i in 0..8\n"
                                "    block take\n"
                                "      spatial i\n"
                                "      B[i] = A[i]\n";
    tl_measure_lowering lowerings[] = { { "small", small, 0, 0 }, { "large", large, 0, 0 } };
    tl_measure_task spec = {
        .name = "large", .workload = "1", .lowering_count = 2, .lowerings = lowerings
    };
    assert_int_equal(tl_measurer_add_task(m, &spec, &task, NULL), TL_OK);
    tl_result r = measuring_one(m, task, &(tl_candidate){ .trace = "", .lowering = 1 });
    if (r.status != TL_RECORD_MEMORY)
        fail_msg("%s: %s", tl_record_status_infos[r.status].text, r.reason);
    tl_measurer_destroy(m);
}

/* Two tasks in turns; the incumbents stay with their tasks. */
static void tasks_take_turns(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    int tasks[2] = { measuring_task(m), measuring_task(m) };
    for (int round = 0; round < 3; round++)
        for (int t = 0; t < 2; t++) {
            tl_result r =
                measuring_one(m, tasks[t], &(tl_candidate){ .trace = round ? good_trace : "" });
            assert_int_equal(r.status, TL_RECORD_OK);
            assert_int_equal(r.task, tasks[t]);
            assert_true(round == 0 ? r.incumbent_ns == 0 : r.incumbent_ns > 0);
        }
    tl_measurer_destroy(m);
}

/* More threads than cores, builder and runner on the same one: slow, and right. */
static void one_core_is_enough(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int threads = 1; threads <= 2; threads++) {
        tl_measurer *m = measuring_start(&(tl_measure_options){ .threads = threads });
        int task = measuring_task(m);
        tl_candidate many[20];
        for (int i = 0; i < 20; i++)
            many[i] = (tl_candidate){ .trace = i % 3 ? good_trace : "", .lowering = i == 7 };
        assert_int_equal(tl_measurer_submit(m, task, many, 20, NULL, NULL), TL_OK);
        for (int i = 0; i < 20; i++) {
            tl_result r;
            assert_int_equal(tl_measurer_next(m, 60, &r, NULL), TL_OK);
            assert_int_equal(r.ticket, i);
            assert_int_equal(r.status, i == 7 ? TL_RECORD_WRONG : TL_RECORD_OK);
        }
        tl_measurer_destroy(m);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void forgotten_candidates_give_no_result(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    int task = measuring_task(m);
    tl_candidate many[20];
    tl_result r;
    for (int i = 0; i < 20; i++)
        many[i] = (tl_candidate){ .trace = "" };
    assert_int_equal(tl_measurer_submit(m, task, many, 20, NULL, NULL), TL_OK);
    assert_int_equal(tl_measurer_next(m, 60, &r, NULL), TL_OK);
    tl_measurer_forget(m, -1);
    assert_int_equal(tl_measurer_queued(m), 0);
    assert_int_equal(tl_measurer_next(m, 1, &r, NULL), TL_BUDGET);
    r = measuring_one(m, task, &(tl_candidate){ .trace = good_trace });
    assert_int_equal(r.status, TL_RECORD_OK);
    tl_measurer_destroy(m);
}

/* A maximum over padding that counts as 0 instead of nothing, seen only where all inputs are negative; and a sum that
 * loses its last term. */
static void adversarial_inputs_find_what_random_ones_miss(void **state)
{
    (void)state;
    static const char right[] = "kernel most(X: f32[6, 100], out Y: f32[6])\n"
                                "  for i in 0..6\n"
                                "    for k in 0..100\n"
                                "      block most\n"
                                "        spatial i\n"
                                "        reduce k\n"
                                "        Y[i] = max(X[i, k])\n";
    static const char padded[] = "kernel most(X: f32[6, 100], out Y: f32[6])\n"
                                 "  for i in 0..6\n"
                                 "    for k in 0..100\n"
                                 "      block most\n"
                                 "        spatial i\n"
                                 "        reduce k\n"
                                 "        Y[i] = max(X[i, k]) from 0.0\n";
    tl_measurer *m = measuring_start(NULL);
    tl_measure_lowering lowerings[] = { { "right", right, 0, 0 }, { "padded", padded, 0, 0 } };
    tl_measure_task spec = {
        .name = "most", .workload = "2", .lowering_count = 2, .lowerings = lowerings
    };
    int task;
    assert_int_equal(tl_measurer_add_task(m, &spec, &task, NULL), TL_OK);
    tl_result r = measuring_one(m, task, &(tl_candidate){ .trace = "" });
    assert_int_equal(r.status, TL_RECORD_OK);
    r = measuring_one(m, task, &(tl_candidate){ .trace = "", .lowering = 1 });
    assert_int_equal(r.status, TL_RECORD_WRONG);
    assert_non_null(strstr(r.reason, "adversarial"));
    tl_measurer_destroy(m);
}

static void defects_leave_a_reproducer(void **state)
{
    (void)state;
    char folder[] = "/tmp/tilth-defects-XXXXXX";
    tl_text text = { 0 };
    assert_non_null(mkdtemp(folder));
    tl_measure_options options = { .defects = folder };
    tl_measurer *m = measuring_start(&options);
    int task = measuring_task(m);
    tl_result r = measuring_one(m, task, &(tl_candidate){ .trace = good_trace, .lowering = 1 });
    assert_int_equal(r.status, TL_RECORD_WRONG);
    assert_int_equal(tl_file_read(r.reproducer, &text, NULL), TL_OK);
    assert_non_null(strstr(tl_text_get(&text), "# wrong: output C differs"));
    tl_arena *arena = tl_arena_create(0);
    tl_program *program;
    assert_int_equal(tl_program_parse(arena, tl_text_get(&text), "defect", &program, NULL), TL_OK);
    tl_arena_destroy(arena);
    assert_int_equal(unlink(r.reproducer), 0);
    strcpy(strrchr(r.reproducer, '.'), ".tr");
    text.size = 0;
    assert_int_equal(tl_file_read(r.reproducer, &text, NULL), TL_OK);
    assert_string_equal(tl_text_get(&text), good_trace);
    unlink(r.reproducer);
    assert_int_equal(rmdir(folder), 0);
    tl_text_free(&text);
    tl_measurer_destroy(m);
}

static void a_worker_that_is_none_is_an_error(void **state)
{
    (void)state;
    static tl_target target;
    tl_diag diag = { 0 };
    tl_measurer *m;
    tl_result r;
    int task;
    assert_int_equal(compiled_target(NULL, &target, &diag), TL_OK);
    tl_measure_options options = { .worker = "/nonexistent/tilth", .target = &target };
    assert_int_equal(tl_measurer_create(&options, &m, &diag), TL_DEVICE);
    options.worker = "/bin/true";
    if (tl_measurer_create(&options, &m, &diag) != TL_OK)
        return;
    task = measuring_task(m);
    tl_measurer_submit(m, task, &(tl_candidate){ .trace = "" }, 1, NULL, NULL);
    assert_int_equal(tl_measurer_next(m, 60, &r, &diag), TL_DEVICE);
    tl_measurer_destroy(m);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    tl_measurer *m = measuring_start(NULL);
    int task = measuring_task(m);
    tl_measure_lowering broken = { "direct", "kernel (", 0, 0 };
    tl_measure_task spec = {
        .name = "b", .workload = "3", .lowering_count = 1, .lowerings = &broken
    };
    assert_int_equal(tl_measurer_add_task(m, &spec, &task, NULL), TL_BAD_TEXT);
    tl_candidate no_lowering = { .trace = "", .lowering = 5 }, nothing = { .lowering = 0 };
    assert_int_equal(tl_measurer_submit(m, 0, &no_lowering, 1, NULL, NULL), TL_BAD_ARGUMENT);
    assert_int_equal(tl_measurer_submit(m, 0, &nothing, 1, NULL, NULL), TL_BAD_ARGUMENT);
    assert_int_equal(tl_measurer_submit(m, 9, &nothing, 1, NULL, NULL), TL_BAD_ARGUMENT);
    tl_measurer_destroy(m);
}

int main(int argc, char **argv)
{
    int code;
    if (measuring_is_worker(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_candidates_are_timed),
        cmocka_unit_test(what_is_faster_wins),
        cmocka_unit_test(winners_are_crowned_in_every_mode),
        cmocka_unit_test(constants_come_from_memory_when_the_model_is_large),
        cmocka_unit_test(faults_cost_one_candidate),
        cmocka_unit_test(a_new_child_gets_first_and_incumbent),
        cmocka_unit_test(too_much_memory_is_told_apart),
        cmocka_unit_test(tasks_take_turns),
        cmocka_unit_test(one_core_is_enough),
        cmocka_unit_test(forgotten_candidates_give_no_result),
        cmocka_unit_test(adversarial_inputs_find_what_random_ones_miss),
        cmocka_unit_test(defects_leave_a_reproducer),
        cmocka_unit_test(a_worker_that_is_none_is_an_error),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
