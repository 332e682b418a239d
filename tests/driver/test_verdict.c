/* tests/driver/test_verdict.c: the set that is kept for a model is the one that is faster in it, and never one that is not. */
#include "tests/driver/recorded.h"
#include "tests/support/sanitized.h"

/* 0.89 to 0.91 on a Zen 5; with a sanitizer what runs between kernels is slow, and kernels are not. */
static const double clearly_faster[] = { 0.96, 1 };

static tl_arena *arena;

static int group_set_up(void **state)
{
    (void)state;
    arena = tl_arena_create(0);
    return recorded_set_up("squeezenet1_1");
}

static int group_tear_down(void **state)
{
    (void)state;
    tl_arena_destroy(arena);
    return recorded_tear_down();
}

static tl_model_verdict settle(double seconds)
{
    tl_model_verdict verdict;
    tl_diag diag = { 0 };
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    tl_model_options model = recorded_options(NULL, NULL);
    tl_verdict_options options = { .seconds = seconds, .session = "s" };
    if (recorded_verdict(arena, store, &model, &options, &verdict, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_records_close(store, NULL);
    return verdict;
}

static tl_verdict_fate fate_of(const tl_model_verdict *v, const char *workload)
{
    for (int i = 0; i < v->workload_count; i++)
        if (strcmp(v->workloads[i].workload, workload) == 0)
            return v->workloads[i].fate;
    fail_msg("no workload %s in the verdict", workload);
    return TL_VERDICT_FATE_COUNT;
}

static bool find_choice(tl_choice *out)
{
    tl_records *store = recorded_open(TL_RECORDS_READ_ONLY);
    bool found = tl_records_find_choice(store, arena, &(tl_choice_query){ 0 }, out);
    tl_records_close(store, NULL);
    return found;
}

/* The model's kernels without records; their facts live as long as it. */
static tl_model *plain_model(void)
{
    tl_model_options options = recorded_options(NULL, NULL);
    options.keep_programs = true;
    return recorded_load(options);
}

/* Records that claim to be fast and are the naive program: all fall back, the default is kept, and that is written down, so
 * that the best records no longer count for this model. */
static void what_is_slower_in_the_model_falls_back(void **state)
{
    (void)state;
    tl_model *plain = plain_model();
    const tl_model_facts *facts = tl_model_get_facts(plain);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    for (int i = 0; i < 3; i++)
        recorded_add(store, recorded_make(facts->kernels[i].workload, "direct", "", 10));
    tl_records_close(store, NULL);
    tl_model_verdict v = settle(1);
    assert_false(v.kept);
    assert_int_equal(v.workload_count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fate_of(&v, facts->kernels[i].workload), TL_VERDICT_SLOWER);
    tl_choice choice;
    assert_true(find_choice(&choice));
    assert_false(choice.kept);
    assert_string_equal(choice.picks, "");
    assert_string_equal(choice.model, facts->identity);
    tl_model *again = recorded_load(recorded_options(rec_db, NULL));
    assert_int_equal(tl_model_get_facts(again)->tuned_count, 0);
    assert_true(
        tl_model_get_facts(again)->from_cache); /* what was compared is not compiled again */
    tl_model_destroy(again);
    tl_model_destroy(plain);
}

/* The default schedule under another name gains nothing, and a record that does not replay is no pick. */
static void idle_records(void **state)
{
    (void)state;
    tl_model *plain = plain_model();
    const tl_model_facts *facts = tl_model_get_facts(plain);
    const tl_model_kernel *same = &facts->kernels[0], *broken = &facts->kernels[1];
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, recorded_make(same->workload, same->lowering, same->trace, 10));
    recorded_add(store, recorded_make(broken->workload, "direct", "split(no, [_, 2])\n", 10));
    tl_records_close(store, NULL);
    tl_model_verdict v = settle(0.5);
    assert_false(v.kept);
    assert_int_equal(fate_of(&v, same->workload), TL_VERDICT_SAME);
    assert_int_equal(fate_of(&v, broken->workload), TL_VERDICT_MISS);
    assert_true(v.max_error == 0);
    assert_int_equal(v.pairs, 0);
    tl_model_destroy(plain);
}

/* Against kernels without schedules the default ones are a gain. They are kept, but for the one whose record is no
 * better than what it replaces; the choice is what later compiles follow. */
static void what_is_faster_is_kept_and_reused(void **state)
{
    (void)state;
    tl_model *plain = plain_model();
    const tl_model_facts *facts = tl_model_get_facts(plain);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    const char *heavy[6], *worse = NULL;
    int count = 0;
    for (int i = 0; i < facts->kernel_count && count < 6; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        if (k->same_as != i || k->flops < 400000 || strcmp(k->lowering, "direct") != 0)
            continue;
        recorded_add(store, recorded_make(k->workload, k->lowering, k->trace, 1000));
        heavy[count++] = k->workload;
    }
    assert_int_equal(count, 6);
    for (int i = 0; i < facts->kernel_count && worse == NULL; i++)
        if (strncmp(facts->kernels[i].kernel->family, "maxpool", 7) == 0)
            worse = facts->kernels[i].workload;
    assert_non_null(worse);
    recorded_add(store, recorded_make(worse, "direct", "# as it is\n", 1));
    tl_model_verdict v = recorded_settle(arena, store);
    assert_true(v.kept);
    assert_true(v.ratio < clearly_faster[is_sanitized] && v.ratio_low <= v.ratio &&
                v.ratio <= v.ratio_high);
    assert_true(v.ratio_high < 1);
    assert_true(v.tuned_ns < v.untuned_ns);
    assert_true(v.part.high < 1);
    assert_true(v.max_error < 1e-3);
    assert_int_equal(fate_of(&v, worse), TL_VERDICT_SAME);
    tl_choice choice;
    assert_true(find_choice(&choice));
    assert_true(choice.kept && choice.ratio == v.ratio && choice.pairs == v.pairs);
    assert_null(strstr(choice.picks, worse));
    tl_picks kept;
    tl_picks_query query = { .model = facts->identity, .target = facts->target, .threads = 1 };
    assert_true(tl_picks_of_choice(store, arena, &query, &kept));
    tl_model_options model = recorded_options(NULL, NULL);
    model.naive = true;
    model.picks = &kept;
    tl_model *cached = recorded_load(model);
    assert_true(tl_model_get_facts(cached)->from_cache);
    assert_true(tl_model_get_facts(cached)->tuned_count >= v.kept_count);
    tl_model_destroy(cached);
    /* a better record that comes later does not count: it was not compared inside the model */
    recorded_add(store, recorded_make(heavy[0], "direct", "", 1));
    tl_records_close(store, NULL);
    model = recorded_options(rec_db, NULL);
    model.inspect_only = true;
    tl_model *again = recorded_load(model);
    const tl_model_facts *found = tl_model_get_facts(again);
    int tuned = 0;
    for (int i = 0; i < found->kernel_count; i++)
        if (found->kernels[i].same_as == i && found->kernels[i].pick != NULL) {
            assert_true(found->kernels[i].pick->score_ns == 1000);
            assert_non_null(strstr(choice.picks, found->kernels[i].pick->uid));
            tuned++;
        }
    assert_int_equal(tuned, v.kept_count);
    assert_in_range(tuned, 1, 6);
    tl_model_destroy(again);
    tl_model_destroy(plain);
}

static void nothing_recorded_nothing_written(void **state)
{
    (void)state;
    tl_choice choice;
    tl_model_verdict v = settle(0.5);
    assert_false(v.kept);
    assert_int_equal(v.workload_count, 0);
    assert_false(find_choice(&choice));
}

static void it_can_be_stopped(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop = 1;
    tl_model_verdict verdict;
    tl_choice choice;
    tl_model *plain = plain_model();
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store,
                 recorded_make(tl_model_get_facts(plain)->kernels[0].workload, "direct", "", 9));
    tl_model_options model = recorded_options(NULL, NULL);
    tl_verdict_options options = { .stop = &stop };
    assert_int_equal(recorded_verdict(arena, store, &model, &options, &verdict, NULL),
                     TL_INTERRUPTED);
    tl_records_close(store, NULL);
    assert_false(find_choice(&choice));
    tl_model_destroy(plain);
}

#define VERDICT_TEST(name) cmocka_unit_test_setup(name, recorded_none)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERDICT_TEST(what_is_slower_in_the_model_falls_back),
        VERDICT_TEST(idle_records),
        VERDICT_TEST(what_is_faster_is_kept_and_reused),
        VERDICT_TEST(nothing_recorded_nothing_written),
        VERDICT_TEST(it_can_be_stopped),
    };
    return cmocka_run_group_tests_name("driver verdict", tests, group_set_up, group_tear_down);
}
