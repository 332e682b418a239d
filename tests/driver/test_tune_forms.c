/* tests/driver/test_tune_forms.c: which kernels of other forms of a model are measured, and which are tuned. */
#include "driver/pipeline/model_tasks.h"
#include "tests/driver/recorded.h"
#include "tuner/model/tune_forms.h"

static tl_arena *arena;
static tl_model *model;
static tl_tunable *tunable;
static tl_tune_list list;
static tl_tune_forms forms;
static const tl_target *target;

static int group_set_up(void **state)
{
    (void)state;
    if (recorded_set_up("squeezenet1_1") != 0)
        return -1;
    tl_model_options options = recorded_options(NULL, NULL);
    options.inspect_only = true;
    arena = tl_arena_create(0);
    model = recorded_load(options);
    tunable = tl_tunable_model_create(arena, rec_model, model, &options);
    target = tl_model_get_facts(model)->target;
    return tl_model_tasks(arena, model, TL_NUMERICS_RELAXED, &(tl_tune_filter){ 0 }, &list, NULL) ==
                   TL_OK
               ? 0
               : -1;
}

static int group_tear_down(void **state)
{
    (void)state;
    tl_tunable_model_destroy(tunable);
    tl_model_destroy(model);
    tl_arena_destroy(arena);
    return recorded_tear_down();
}

static int find(void **state)
{
    (void)state;
    return tl_tune_forms_find(arena, tunable, &list, &forms, NULL) == TL_OK ? 0 : -1;
}

static void own_take(double ns)
{
    for (int i = 0; i < forms.own_count; i++)
        forms.first_ns[i] = forms.best_ns[i] = ns;
}

static const tl_tune_form *form_with(const char *word)
{
    for (int i = 0; i < forms.count; i++)
        if (strstr(forms.forms[i].what, word) != NULL)
            return &forms.forms[i];
    fail_msg("no form '%s'", word);
    return NULL;
}

/* The new kernels take, all together, so many times what the form takes out of the model. */
static void brought_take(const tl_tune_form *form, double times)
{
    double out, in;
    int more = 0;
    tl_tune_form_change_ns(form, forms.first_ns, &out, &in);
    for (int i = 0; i < form->change_count; i++)
        more += form->changes[i].by > 0 ? form->changes[i].by : 0;
    for (int i = 0; i < form->change_count; i++)
        if (form->changes[i].by > 0)
            forms.first_ns[form->changes[i].task] = times * out / more;
}

/* A form takes kernels of the model away and brings at least as many; what is new has a task of its own, of no weight yet. */
static void changes_add_up(void **state)
{
    (void)state;
    assert_in_range(forms.count, 10, 100);
    assert_int_equal(forms.own_count, list.count);
    assert_true(forms.task_count > forms.own_count);
    for (int i = 0; i < forms.task_count; i++) {
        assert_true((forms.tasks[i].weight > 0) == (i < forms.own_count));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(forms.tasks[i].workload->workload,
                                    forms.tasks[k].workload->workload);
    }
    for (int i = 0; i < forms.count; i++) {
        int fewer = 0, more = 0;
        for (int k = 0; k < forms.forms[i].change_count; k++) {
            const tl_form_change *change = &forms.forms[i].changes[k];
            assert_in_range(change->task, 0, forms.task_count - 1);
            fewer += change->by < 0 ? -change->by : 0;
            more += change->by > 0 ? change->by : 0;
            assert_true(change->by > 0 || change->task < forms.own_count);
            assert_true(forms.tasks[change->task].weight + change->by >= 0);
        }
        assert_true(fewer > 0 && more >= fewer);
    }
}

/* Whole forms, none that the estimate is far from, none twice; what is known already is not measured again. */
static void promising_forms_are_measured_first(void **state)
{
    (void)state;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, forms.task_count);
    own_take(1000);
    assert_int_equal(tl_tune_forms_unseen(arena, &forms, target, 0, tasks), 0);
    int two = tl_tune_forms_unseen(arena, &forms, target, 2, tasks);
    assert_in_range(two, 1, 2);
    int all = tl_tune_forms_unseen(arena, &forms, target, forms.task_count, tasks);
    assert_in_range(all, 3, forms.task_count - forms.own_count - 1);
    const tl_workload_info *first = tasks[0].workload;
    /* the same first, whatever else there is room for, as soon as there is for all that it brings */
    enum { MOST_BROUGHT = 4 };
    assert_in_range(tl_tune_forms_unseen(arena, &forms, target, MOST_BROUGHT, tasks), 1,
                    MOST_BROUGHT);
    assert_ptr_equal(tasks[0].workload, first);
    all = tl_tune_forms_unseen(arena, &forms, target, forms.task_count, tasks);
    for (int i = 0; i < all; i++) {
        assert_true(tasks[i].weight > 0);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(tasks[k].workload, tasks[i].workload);
        for (int k = 0; k < forms.own_count; k++)
            assert_ptr_not_equal(forms.tasks[k].workload, tasks[i].workload);
    }
    /* a form that the estimate puts far behind is not looked at: a task that it alone has is not among them */
    const tl_tune_form *plain = form_with("conv_relu_3: plain");
    double out, in;
    assert_true(tl_tune_form_change_ns(plain, forms.estimate, &out, &in) && in > 1.3 * out);
    for (int i = 0; i < plain->change_count; i++)
        for (int k = 0; k < all; k++)
            assert_ptr_not_equal(tasks[k].workload, forms.tasks[plain->changes[i].task].workload);

    /* what began at 100 had come to 77 when the same takes 200 */
    tl_record begin = recorded_make(first->workload, "direct", "", 100), known = begin,
              stale = begin, again = begin;
    known.program = "found";
    known.sequence = 2;
    known.score_ns = 77;
    stale.revision--;
    stale.score_ns = 5;
    again.session = "another";
    again.created_us++;
    again.score_ns = 200;
    const tl_record all_known[] = { known, again, begin, stale };
    const tl_tune_options options = {
        .target = target, .threads = 1, .numerics = "relaxed", .known = all_known, .known_count = 4
    };
    tl_tune_forms_recall(&forms, &options);
    int left = tl_tune_forms_unseen(arena, &forms, target, forms.task_count, tasks);
    assert_int_equal(left, all - 1);
    for (int i = 0; i < left; i++)
        assert_ptr_not_equal(tasks[i].workload, first);
    for (int i = forms.own_count; i < forms.task_count; i++)
        assert_true(forms.first_ns[i] == (forms.tasks[i].workload == first ? 154 : 0));
}

/* What comes near what it replaces is tuned; what does not, or was not measured whole, is not. */
static void within_reach_is_tuned(void **state)
{
    (void)state;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, forms.task_count);
    const tl_tune_form *near = form_with("conv_relu_2: cut behind Conv"),
                       *far = form_with("conv_relu_9: cut behind Conv"),
                       *half = form_with("conv_relu_16: cut behind Conv");
    own_take(1000);
    assert_int_equal(tl_tune_forms_within(&forms, tasks), 0);
    brought_take(near, 1.05);
    brought_take(far, 1.5);
    brought_take(half, 0.5);
    for (int i = 0; i < half->change_count; i++)
        if (half->changes[i].by > 0)
            forms.first_ns[half->changes[i].task] = 0;
    int count = tl_tune_forms_within(&forms, tasks), brought = 0;
    assert_int_equal(near->fate, TL_FORM_WITHIN);
    assert_int_equal(far->fate, TL_FORM_BEYOND);
    assert_int_equal(half->fate, TL_FORM_UNSEEN);
    for (int i = 0; i < near->change_count; i++) {
        const tl_form_change *change = &near->changes[i];
        if (change->by < 0)
            continue;
        brought++;
        bool is_in = false;
        for (int k = 0; k < count; k++)
            is_in |= tasks[k].workload == forms.tasks[change->task].workload &&
                     tasks[k].weight == change->by;
        assert_true(is_in);
    }
    assert_int_equal(count, brought);
}

#define FORMS_TEST(name) cmocka_unit_test_setup(name, find)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORMS_TEST(changes_add_up),
        FORMS_TEST(promising_forms_are_measured_first),
        FORMS_TEST(within_reach_is_tuned),
    };
    return cmocka_run_group_tests_name("driver tune_forms", tests, group_set_up, group_tear_down);
}
