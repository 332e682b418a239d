/* tests/driver/test_forms.c: other ways to cut and lay out a model's graph: what there are, that they compute the same, and
 * that recorded costs decide between them. */
#include "driver/cli/session.h"
#include "driver/pipeline/model_forms.h"
#include "tests/driver/recorded.h"
#include "tuner/model/forms.h"

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

static tl_model *load_form(const char *form, bool inspect_only)
{
    const tl_picks picks = { .form = form, .uid = "" };
    tl_model_options options = recorded_options(NULL, NULL);
    options.picks = &picks;
    options.keep_programs = true;
    options.inspect_only = inspect_only;
    return recorded_load(options);
}

static tl_tunable *tunable_of(tl_model *model)
{
    const tl_model_options options = recorded_options(NULL, NULL);
    return tl_tunable_model_create(arena, rec_model, model, &options);
}

static const tl_form *list_forms(tl_model *model, tl_records *store, int *count)
{
    const tl_form *forms;
    tl_diag diag = { 0 };
    if (tl_forms_list(arena, tunable_of(model), store, &forms, count, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return forms;
}

static const tl_form *find_form(const tl_form *forms, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strstr(forms[i].what, word) != NULL)
            return &forms[i];
    fail_msg("no form '%s'", word);
    return NULL;
}

typedef struct {
    tl_text workloads;
    int kernels;
} listing;

static tl_status list_kernel(void *user, const tl_kernel *kernel, tl_diag *diag)
{
    listing *l = user;
    tl_program *direct;
    char key[33];
    TL_TRY(tl_kernel_program(arena, kernel, "direct", &direct, diag));
    tl_workload_key(arena, direct, key);
    tl_text_format(&l->workloads, "%s\n", key);
    l->kernels++;
    return TL_OK;
}

static listing kernels_of(tl_model *model, const char *form)
{
    listing l = { 0 };
    assert_int_equal(tl_model_visit_form(arena, model, form, list_kernel, &l, NULL), TL_OK);
    return l;
}

/* A cut adds a kernel where the epilogue does not join what follows, a plain layout one where a Concat has to copy;
 * workloads change; and the model's graph is as before. */
static void what_there_is(void **state)
{
    (void)state;
    int count;
    tl_model *model = load_form("", true);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    listing before = kernels_of(model, "");
    assert_int_equal(before.kernels, tl_model_get_facts(model)->kernel_count);
    const tl_form *forms = list_forms(model, store, &count);
    assert_in_range(count, 10, 100);
    for (int i = 0; i < count; i++) {
        int lines = 0;
        for (const char *c = forms[i].form; *c; c++)
            lines += *c == '\n';
        listing l = kernels_of(model, forms[i].form);
        assert_in_range(l.kernels, before.kernels, before.kernels + lines);
        assert_string_not_equal(tl_text_get(&l.workloads), tl_text_get(&before.workloads));
        assert_true(forms[i].missing > 0 && forms[i].cost_ns == 0);
        tl_text_free(&l.workloads);
    }
    listing after = kernels_of(model, "");
    assert_string_equal(tl_text_get(&after.workloads), tl_text_get(&before.workloads));
    listing odd = kernels_of(model, "cut nothing of that name\nplain\ncut\n\nrubbish");
    assert_string_equal(tl_text_get(&odd.workloads), tl_text_get(&before.workloads));
    tl_text_free(&odd.workloads);
    tl_text_free(&after.workloads);
    tl_text_free(&before.workloads);
    tl_records_close(store, NULL);
    tl_model_destroy(model);
}

static void run(const tl_model *model, float *out, size_t size)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(model));
    tl_runner *runner;
    const tl_port *port = &spec->outputs[0];
    tl_tensor input, output;
    assert_int_equal(tl_session_inputs(spec, &(tl_text_list){ 0 }, NULL, 1, &input, NULL), TL_OK);
    assert_int_equal(tl_runner_create(tl_model_executable(model), rec_pool, 1, &runner, NULL),
                     TL_OK);
    assert_int_equal(tl_tensor_create(port->dtype, port->rank, port->shape, &output, NULL), TL_OK);
    const void *in = input.data;
    assert_int_equal(tl_runner_run(runner, &in, &output.data, NULL, NULL), TL_OK);
    memcpy(out, output.data, size);
    tl_tensor_free(&output);
    tl_tensor_free(&input);
    tl_runner_destroy(runner);
}

static void all_forms_compute_the_same(void **state)
{
    (void)state;
    int count;
    float expected[1000], got[1000];
    tl_model *plain = load_form("", false);
    run(plain, expected, sizeof expected);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    const tl_form *forms = list_forms(plain, store, &count);
    tl_text all = { 0 };
    for (int i = 0; i <= count; i += i + 6 < count ? 6 : 1) { /* some alone, at last all at once */
        if (i < count)
            tl_text_format(&all, "%s", forms[i].form);
        tl_model *model = load_form(i < count ? forms[i].form : tl_text_get(&all), false);
        run(model, got, sizeof got);
        for (int k = 0; k < 1000; k++)
            if (!(got[k] - expected[k] < 1e-4 && expected[k] - got[k] < 1e-4))
                fail_msg("%s: output %d is %g, not %g", i < count ? forms[i].what : "all", k,
                         (double)got[k], (double)expected[k]);
        tl_model_destroy(model);
    }
    tl_text_free(&all);
    tl_records_close(store, NULL);
    tl_model_destroy(plain);
}

/* A record of every kernel of the form, as the model has it without records, that claims to take `ns`. */
static void record_all(tl_records *store, const char *form, double ns, bool naive)
{
    tl_model *model = load_form(form, true);
    const tl_model_facts *facts = tl_model_get_facts(model);
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        tl_record best;
        tl_query known = { .workload = k->workload };
        if (k->same_as == i && !tl_records_best(store, arena, &known, &best, NULL))
            recorded_add(store, recorded_make(k->workload, naive ? "direct" : k->lowering,
                                              naive ? "" : k->trace, ns));
    }
    tl_model_destroy(model);
}

static const char *choose(tl_model *model, tl_records *store, double *default_ns, double *cost_ns)
{
    const tl_form *chosen;
    int count;
    assert_int_equal(tl_forms_choose(arena, tunable_of(model), store, &chosen, &count, default_ns,
                                     cost_ns, NULL),
                     TL_OK);
    return tl_forms_join(arena, chosen, count);
}

static void costs_decide(void **state)
{
    (void)state;
    int count;
    double default_ns, cost_ns;
    tl_model *model = load_form("", true);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    const tl_form *forms = list_forms(model, store, &count);
    const tl_form *cut = find_form(forms, count, "cut behind Conv");
    /* nothing known: nothing chosen */
    assert_string_equal(choose(model, store, &default_ns, &cost_ns), "");
    record_all(store, "", 1000, false);
    listing before = kernels_of(model, ""), after = kernels_of(model, cut->form);
    assert_string_equal(choose(model, store, &default_ns, &cost_ns), "");
    assert_true(default_ns == 1000.0 * before.kernels && cost_ns == default_ns);
    /* its kernels cost more, together, than what they replace: 600 twice */
    record_all(store, cut->form, 600, false);
    assert_string_equal(choose(model, store, &default_ns, &cost_ns), "");
    forms = list_forms(model, store, &count);
    const tl_form *again = find_form(forms, count, cut->what);
    assert_int_equal(again->missing, 0);
    assert_true(again->cost_ns == default_ns + (after.kernels - before.kernels) * 200.0);
    recorded_none(NULL);
    tl_records_close(store, NULL);
    store = recorded_open(TL_RECORDS_CREATE);
    record_all(store, "", 1000, false);
    record_all(store, cut->form, 300, false);
    assert_string_equal(choose(model, store, &default_ns, &cost_ns), cut->form);
    assert_true(cost_ns == default_ns - (after.kernels - before.kernels) * 400.0);
    tl_text_free(&before.workloads);
    tl_text_free(&after.workloads);
    tl_records_close(store, NULL);
    tl_model_destroy(model);
}

/* A cheaper form that is faster in fact is kept, with its schedules, and later compiles follow it. */
static void a_faster_form_is_kept(void **state)
{
    (void)state;
    int count;
    tl_model *model = load_form("", true);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    const tl_form *forms = list_forms(model, store, &count);
    record_all(store, "", 1000, true); /* against kernels without schedules */
    for (int i = 0; i < count; i++)
        if (strstr(forms[i].what, "cut behind Conv") != NULL)
            record_all(store, forms[i].form, 10, false);
    tl_model_verdict v = recorded_settle(arena, store);
    assert_in_range(v.forms_tried, 1, count);
    assert_in_range(v.forms_kept, 1, v.forms_tried);
    assert_true(v.form_ratio.high < 1);
    if (!v.kept || !(v.ratio_high < 1))
        fail_msg("ratio %g (%g to %g)", v.ratio, v.ratio_low, v.ratio_high);
    assert_int_equal(strncmp(v.form, "cut ", 4), 0);
    tl_records_close(store, NULL);
    tl_model *tuned = recorded_load(recorded_options(rec_db, NULL));
    const tl_model_facts *facts = tl_model_get_facts(tuned);
    assert_string_equal(facts->picks->form, v.form);
    assert_true(facts->tuned_count >= 2);
    tl_model_destroy(tuned);
    tl_model_destroy(model);
}

/* Two alternatives that the records like: one is what it says, the other is slower inside the model. */
static void what_is_slower_in_the_model_is_left_out(void **state)
{
    (void)state;
    int count;
    tl_model *model = load_form("", true);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    const tl_form *forms = list_forms(model, store, &count),
                  *good = find_form(forms, count, "conv_relu_28: cut behind Conv"),
                  *bad = find_form(forms, count, "conv_relu_24: cut behind Conv");
    const tl_model_facts *facts = tl_model_get_facts(model);
    for (int i = 0; i < facts->kernel_count; i++) /* what the bad one replaces is fast */
        if (strcmp(facts->kernels[i].kernel->name, "conv_relu_24") == 0)
            recorded_add(store,
                         recorded_make(facts->kernels[i].workload, facts->kernels[i].lowering,
                                       facts->kernels[i].trace, 1000));
    record_all(store, "", 1000, true);
    record_all(store, good->form, 10, false);
    record_all(store, bad->form, 10, true);
    tl_model_verdict v = recorded_settle(arena, store);
    assert_int_equal(v.forms_tried, 2);
    assert_int_equal(v.forms_kept, 1);
    assert_true(v.kept);
    assert_string_equal(v.form, good->form);
    tl_records_close(store, NULL);
    tl_model_destroy(model);
}

#define FORM_TEST(name) cmocka_unit_test_setup(name, recorded_none)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORM_TEST(what_there_is),
        FORM_TEST(all_forms_compute_the_same),
        FORM_TEST(costs_decide),
        FORM_TEST(a_faster_form_is_kept),
        FORM_TEST(what_is_slower_in_the_model_is_left_out),
    };
    return cmocka_run_group_tests_name("driver forms", tests, group_set_up, group_tear_down);
}
