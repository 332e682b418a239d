/* tests/tuner/test_verdict.c: what decides whether a tuned model is kept, on a simulated model and its clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "tests/tuner/simulated_model.h"
#include "tuner/model/sieve.h"
#include "tuner/model/verdict_private.h"

/* Median, low and high of the ratio of the whole and of the kernels that differ; whether that is faster beyond doubt. */
static void what_is_faster_beyond_doubt(void **state)
{
    (void)state;
    static const struct {
        tl_interval whole, part;
        bool faster;
    } cases[] = {
        { { 0.98, 0.97, 0.99 }, { 0.95, 0.94, 0.96 }, true },
        { { 0.98, 0.97, 0.99 }, { 0.99, 0.97, 1.01 }, true },  /* the whole is enough */
        { { 0.99, 0.97, 1.01 }, { 0.96, 0.95, 0.97 }, true },  /* hidden by what is the same */
        { { 0.99, 0.97, 1.01 }, { 0.98, 0.95, 1.01 }, false }, /* neither is sure */
        { { 1.01, 0.99, 1.03 }, { 0.96, 0.95, 0.97 }, false }, /* the others pay for it */
        { { 1.02, 1.01, 1.03 }, { 1.05, 1.04, 1.06 }, false },
        { { NAN, -INFINITY, INFINITY }, { NAN, -INFINITY, INFINITY }, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tl_verdict_is_faster(&(tl_verdict_comparison){
                .ratio = cases[i].whole, .part = cases[i].part }) != cases[i].faster)
            fail_msg("case %zu", i);
}

/* Some are wrong whatever is beside them, one pair only together. */
typedef struct {
    unsigned wrong;
    int one, other; /* of the pair */
    int judged;
    bool has_time;
} sifted;

static bool is_over(void *user)
{
    const sifted *s = user;
    return !s->has_time;
}

static tl_status judge(void *user, const int *members, int count, bool *right, tl_diag *diag)
{
    (void)diag;
    sifted *s = user;
    int of_pair = 0;
    *right = true;
    for (int i = 0; i < count; i++) {
        *right &= !(s->wrong >> members[i] & 1);
        of_pair += members[i] == s->one || members[i] == s->other;
    }
    *right &= of_pair < 2;
    s->judged++;
    return TL_OK;
}

static void what_is_wrong_is_sifted_out(void **state)
{
    (void)state;
    static const struct {
        int count;
        sifted things;
        unsigned left;
        int most;
    } cases[] = {
        { 1, { 1, -1, -1, 0, true }, 0, 0 }, /* known already */
        { 2, { 2, -1, -1, 0, true }, 1, 2 },
        { 32, { 1U << 3, -1, -1, 0, true }, ~(1U << 3), 10 },
        { 32, { 1U << 3 | 1U << 17, -1, -1, 0, true }, ~(1U << 3 | 1U << 17), 20 },
        { 32, { 0, 5, 30, 0, true }, ~(1U << 30), 10 }, /* the first of a pair stays */
        { 31, { ~0U, -1, -1, 0, true }, 0, 60 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int members[32];
        sifted things = cases[i].things;
        tl_sieve sieve = {
            .judge = judge, .is_over = is_over, .user = &things, .members = members
        };
        assert_int_equal(tl_sieve_sift(&sieve, cases[i].count, NULL), TL_OK);
        unsigned left = 0;
        for (int m = 0; m < sieve.member_count; m++)
            left |= 1U << members[m];
        assert_int_equal(left, cases[i].left);
        assert_in_range(things.judged, 0, cases[i].most);
        things.judged = 0;
        things.has_time = false;
        assert_int_equal(tl_sieve_sift(&sieve, cases[i].count, NULL), TL_OK);
        assert_int_equal(sieve.member_count, 0);
        assert_int_equal(things.judged, 0);
    }
}

/* ---- whole verdicts ---- */

static tl_model_verdict reach(tl_verdict_options options)
{
    tl_model_verdict v;
    tl_diag diag = { 0 };
    if (options.seconds == 0)
        options.seconds = 10;
    options.session = "s";
    if (tl_verdict_reach(sim_arena, &sim_model.base, sim_store, &options, &v, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(sim_model.open_count, 0); /* every build was closed */
    return v;
}

static tl_verdict_fate fate_of(const tl_model_verdict *v, int workload)
{
    for (int i = 0; i < v->workload_count; i++)
        if (strcmp(v->workloads[i].workload, sim_workload(workload)) == 0)
            return v->workloads[i].fate;
    fail_msg("no workload %d in the verdict", workload);
    return TL_VERDICT_FATE_COUNT;
}

static bool find_choice(tl_choice *out)
{
    return tl_records_find_choice(sim_store, sim_arena, &(tl_choice_query){ 0 }, out);
}

static void what_is_faster_is_kept(void **state)
{
    (void)state;
    tl_choice choice;
    sim_record(0, "0.8");
    sim_record(1, "1.3"); /* alone it was faster: in the model it is not */
    sim_record(2, "same");
    sim_record(3, "miss");
    tl_model_verdict v = reach((tl_verdict_options){ .seed = 7 });
    assert_true(v.kept && v.ratio_high < 1 && v.part.high < 1);
    assert_true(fabs(v.part.median - 0.8) < 0.02);
    assert_int_equal(fate_of(&v, 0), TL_VERDICT_KEPT);
    assert_int_equal(fate_of(&v, 1), TL_VERDICT_SLOWER);
    assert_int_equal(fate_of(&v, 2), TL_VERDICT_SAME);
    assert_int_equal(fate_of(&v, 3), TL_VERDICT_MISS);
    assert_int_equal(v.kept_count, 1);
    assert_int_equal(v.fallback_count, 1);
    for (int i = 0; i < v.workload_count; i++)
        assert_int_equal(v.workloads[i].kernel[7] - '0', v.workloads[i].workload[31] - '0');
    assert_true(find_choice(&choice));
    assert_true(choice.kept && choice.pairs == v.pairs && choice.ratio == v.ratio);
    assert_string_equal(choice.model, "m");
    assert_string_equal(choice.name, "net.onnx");
    assert_int_equal(strncmp(choice.picks, sim_workload(0), 32), 0);
    assert_int_equal(strlen(choice.picks), 66); /* one line */
    assert_string_equal(sim_model.kept, "0.8 default default default default default");
    assert_int_equal(sim_model.seed, 7);
}

/* Runs vary by three percent, and schedules that gain nothing are never kept. */
static void luck_is_not_kept(void **state)
{
    (void)state;
    int slower = 0;
    sim_record(0, "1.0");
    sim_record(4, "1.0001");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_model.random = tl_random_make(seed);
        tl_model_verdict v = reach((tl_verdict_options){ .dry = true });
        assert_false(v.kept);
        slower += fate_of(&v, 0) == TL_VERDICT_SLOWER;
    }
    assert_in_range(slower, 15, 20);
}

/* A dry verdict writes nothing; nothing recorded, nothing to write. */
static void nothing_is_written(void **state)
{
    (void)state;
    tl_choice choice;
    assert_false(reach((tl_verdict_options){ 0 }).kept);
    assert_false(find_choice(&choice));
    sim_record(0, "0.5");
    assert_true(reach((tl_verdict_options){ .dry = true }).kept);
    assert_false(find_choice(&choice));
    assert_string_equal(sim_model.kept, "");
}

/* What changes the model's outputs falls back, and nothing else; that all were slower is written down, too. */
static void what_is_wrong_falls_back(void **state)
{
    (void)state;
    tl_choice choice;
    sim_record(0, "0.7 wrong");
    sim_record(1, "0.8");
    sim_record(3, "0.6 wrong");
    tl_model_verdict v = reach((tl_verdict_options){ 0 });
    assert_true(v.kept && v.max_error == 0);
    assert_int_equal(fate_of(&v, 0), TL_VERDICT_WRONG);
    assert_int_equal(fate_of(&v, 1), TL_VERDICT_KEPT);
    assert_int_equal(fate_of(&v, 3), TL_VERDICT_WRONG);
    assert_int_equal(v.wrong_count, 2);
    assert_string_equal(sim_model.kept, "default 0.8 default default default default");
    sim_reset();
    sim_record(1, "1.5");
    v = reach((tl_verdict_options){ 0 });
    assert_false(v.kept);
    assert_true(find_choice(&choice) && !choice.kept && choice.picks[0] == '\0');
    assert_string_equal(sim_model.kept, "default default default default default default");
}

/* The records like a form: it is taken when it is faster in the model, too, and not when it only seemed so. */
static void forms(void **state)
{
    (void)state;
    static const struct {
        const char *in_model; /* of the kernel that the form has in place of two */
        bool taken;
    } cases[] = { { "0.5", true }, { "1.4", false }, { "0.5 wrong", false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_choice choice;
        sim_reset();
        for (int w = 0; w < SIM_KERNELS; w++)
            sim_record(w, "same");
        sim_record_of(SIM_KERNELS, cases[i].in_model, 100); /* alone: 100 ns in place of 2000 */
        tl_model_verdict v = reach((tl_verdict_options){ 0 });
        assert_int_equal(v.forms_tried, 1);
        assert_int_equal(v.forms_kept, cases[i].taken);
        assert_int_equal(v.kept, cases[i].taken);
        assert_string_equal(v.form, cases[i].taken ? "fuse 4\n" : "");
        assert_true(find_choice(&choice));
        assert_string_equal(choice.form, v.form);
    }
}

/* Measuring ends when its time is over, give or take the least that is measured. */
static void the_budget_is_kept(void **state)
{
    (void)state;
    sim_record(0, "0.9");
    sim_record(1, "0.9");
    for (double seconds = 5; seconds < 100; seconds *= 3) {
        int64_t start = sim_model.now_ns;
        assert_true(reach((tl_verdict_options){ .seconds = seconds }).kept);
        double took = (double)(sim_model.now_ns - start) * 1e-9;
        assert_true(took < 1.1 * seconds + 2);
    }
}

static void it_stops_at_any_run(void **state)
{
    (void)state;
    tl_choice choice;
    static volatile sig_atomic_t stop;
    tl_verdict_options options = { .seconds = 10, .stop = &stop };
    tl_model_verdict v;
    sim_record(0, "0.8");
    sim_model.stop = &stop;
    for (int runs = 1; runs < 1500; runs += 113) {
        stop = 0;
        sim_model.runs_left = runs;
        assert_int_equal(tl_verdict_reach(sim_arena, &sim_model.base, sim_store, &options, &v,
                                          NULL),
                         TL_INTERRUPTED);
        assert_int_equal(sim_model.open_count, 0);
        assert_false(find_choice(&choice));
    }
}

#define SIM_TEST(name) cmocka_unit_test_setup_teardown(name, sim_set_up, sim_tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_faster_beyond_doubt),
        cmocka_unit_test(what_is_wrong_is_sifted_out),
        SIM_TEST(what_is_faster_is_kept),
        SIM_TEST(luck_is_not_kept),
        SIM_TEST(nothing_is_written),
        SIM_TEST(what_is_wrong_falls_back),
        SIM_TEST(forms),
        SIM_TEST(the_budget_is_kept),
        SIM_TEST(it_stops_at_any_run),
    };
    return cmocka_run_group_tests_name("tuner verdict", tests, NULL, NULL);
}
