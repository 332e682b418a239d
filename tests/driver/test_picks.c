/* tests/driver/test_picks.c: compiling a model takes its schedules from the records, and nothing that is in them can do
 * worse than be passed over. */
#include "driver/cli/session.h"
#include <sqlite3.h>
#include "tests/driver/recorded.h"

static int group_set_up(void **state)
{
    (void)state;
    return recorded_set_up("squeezenet1_1");
}

static int group_tear_down(void **state)
{
    (void)state;
    return recorded_tear_down();
}

/* The model's kernels as they are without records: workloads of the first two distinct ones. */
static void two_workloads(char first[33], char second[33])
{
    tl_model_options options = recorded_options(NULL, NULL);
    options.inspect_only = true;
    tl_model *model = recorded_load(options);
    const tl_model_facts *facts = tl_model_get_facts(model);
    memcpy(first, facts->kernels[0].workload, 33);
    for (int i = 1; i < facts->kernel_count; i++)
        if (facts->kernels[i].same_as == i) {
            memcpy(second, facts->kernels[i].workload, 33);
            break;
        }
    assert_string_not_equal(first, second);
    tl_model_destroy(model);
}

static const tl_model_kernel *kernel_of(const tl_model *model, const char *workload)
{
    const tl_model_facts *facts = tl_model_get_facts(model);
    for (int i = 0; i < facts->kernel_count; i++)
        if (strcmp(facts->kernels[i].workload, workload) == 0)
            return &facts->kernels[i];
    fail_msg("no kernel of workload %s", workload);
    return NULL;
}

static const char *text_of(tl_arena *arena, const tl_program *program)
{
    return tl_program_text(arena, program);
}

static tl_model *inspect_with(const char *database, tl_text *notes)
{
    tl_model_options options = recorded_options(database, notes);
    options.inspect_only = true;
    return recorded_load(options);
}

/* An empty trace leaves the naive program as it is: a schedule that is easy to tell from the default. */
static void the_best_record_is_taken(void **state)
{
    (void)state;
    char a[33], b[33];
    tl_arena *arena = tl_arena_create(0);
    two_workloads(a, b);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, recorded_make(a, "direct", "no trace at all(\n", 9000));
    recorded_add(store, recorded_make(a, "direct", "", 1000));
    recorded_add(store, recorded_make(a, "direct", "neither\n", 5000));
    tl_records_close(store, NULL);

    tl_text notes = { 0 };
    tl_model *model = inspect_with(rec_db, &notes);
    const tl_model_kernel *kernel = kernel_of(model, a);
    assert_non_null(kernel->pick);
    assert_true(kernel->pick->score_ns == 1000);
    assert_string_equal(text_of(arena, kernel->scheduled), text_of(arena, kernel->naive));
    assert_null(kernel_of(model, b)->pick);
    assert_true(tl_model_get_facts(model)->tuned_count >= 1);
    assert_int_equal(notes.size, 0);
    tl_model_destroy(model);

    model = inspect_with(NULL, NULL);
    assert_null(kernel_of(model, a)->pick);
    assert_string_not_equal(text_of(arena, kernel_of(model, a)->scheduled),
                            text_of(arena, kernel_of(model, a)->naive));
    tl_model_destroy(model);
    tl_arena_destroy(arena);
    tl_text_free(&notes);
}

/* What makes a record one of something else. */
static void make_stale(tl_record *r)
{
    r->revision = TL_CODEGEN_REVISION - 1;
}
static void make_foreign(tl_record *r)
{
    r->target = "x86-64-v2/elsewhere/cores=1";
}
static void make_strict(tl_record *r)
{
    r->numerics = "strict";
}
static void make_wide(tl_record *r)
{
    r->threads = 2;
}
static void make_failed(tl_record *r)
{
    r->status = TL_RECORD_CRASH;
}
static void make_hopeless(tl_record *r)
{
    r->hopeless = true;
}

static void records_of_something_else_do_not_count(void **state)
{
    (void)state;
    static void (*const changes[])(tl_record *) = { make_stale, make_foreign, make_strict,
                                                    make_wide,  make_failed,  make_hopeless };
    char a[33], b[33];
    two_workloads(a, b);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        recorded_none(NULL);
        tl_text notes = { 0 };
        tl_records *store = recorded_open(TL_RECORDS_CREATE);
        tl_record record = recorded_make(a, "direct", "", 1000);
        changes[i](&record);
        recorded_add(store, record);
        tl_records_close(store, NULL);
        tl_model *model = inspect_with(rec_db, &notes);
        assert_null(kernel_of(model, a)->pick);
        assert_int_equal(notes.size, 0);
        tl_model_destroy(model);
        tl_text_free(&notes);
    }
}

/* Traces that do not parse or replay, lowerings that there are not: the default schedule, and a sentence. */
static void broken_records_are_misses(void **state)
{
    (void)state;
    static const char *const broken[][2] = {
        { "direct", "split(nowhere, [_, 4])\n" },
        { "direct", "\x01\xff (((" },
        { "no_such_lowering", "" },
        { "direct", "lowering(direct)\nn = loops(no_such_block)\n" },
    };
    char a[33], b[33];
    tl_arena *arena = tl_arena_create(0);
    two_workloads(a, b);
    tl_model *plain = inspect_with(NULL, NULL);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        recorded_none(NULL);
        tl_text notes = { 0 };
        tl_records *store = recorded_open(TL_RECORDS_CREATE);
        recorded_add(store, recorded_make(a, broken[i][0], broken[i][1], 1000));
        tl_records_close(store, NULL);
        tl_model *model = inspect_with(rec_db, &notes);
        assert_null(kernel_of(model, a)->pick);
        assert_string_equal(text_of(arena, kernel_of(model, a)->scheduled),
                            text_of(arena, kernel_of(plain, a)->scheduled));
        if (strstr(tl_text_get(&notes), "keeps its default schedule") == NULL)
            fail_msg("record %zu: '%s'", i, tl_text_get(&notes));
        tl_model_destroy(model);
        tl_text_free(&notes);
    }
    tl_model_destroy(plain);
    tl_arena_destroy(arena);
}

static void files_that_are_none(void **state)
{
    (void)state;
    tl_model *model;
    tl_diag diag = { 0 };
    tl_model_options options = recorded_options(rec_db, NULL);
    options.inspect_only = true;
    assert_int_equal(tl_model_load(rec_model, &options, &model, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "no such file"));
    options.database = rec_model;
    assert_int_equal(tl_model_load(rec_model, &options, &model, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, rec_model));
    options.database = "";
    assert_int_equal(tl_model_load(rec_model, &options, &model, NULL), TL_BAD_ARGUMENT);
    /* the default place, where nothing is: no word about it */
    tl_text notes = { 0 };
    options = recorded_options(NULL, &notes);
    options.no_database = false;
    options.inspect_only = true;
    tl_model_destroy(recorded_load(options));
    assert_int_equal(notes.size, 0);
    tl_text_free(&notes);
}

/* Records of a tilth that knows more: those in the default place are left out with a sentence, those that were named are an
 * error. */
static void a_newer_database_is_not_read(void **state)
{
    (void)state;
    static const char newer[] = "its format is version 9, this tilth knows";
    sqlite3 *db;
    tl_model *model;
    tl_diag diag = { 0 };
    tl_text notes = { 0 }, place = { 0 };
    tl_records *store;
    assert_int_equal(tl_records_open_default(NULL, TL_RECORDS_CREATE, &store, NULL), TL_OK);
    tl_text_add(&place, tl_records_path(store));
    tl_records_close(store, NULL);
    assert_int_equal(sqlite3_open(tl_text_get(&place), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    tl_model_options options = recorded_options(tl_text_get(&place), NULL);
    options.inspect_only = true;
    assert_int_equal(tl_model_load(rec_model, &options, &model, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, newer));
    options = recorded_options(NULL, &notes);
    options.no_database = false;
    options.inspect_only = true;
    tl_model_destroy(recorded_load(options));
    assert_non_null(strstr(tl_text_get(&notes), newer));
    unlink(tl_text_get(&place));
    tl_text_free(&place);
    tl_text_free(&notes);
}

/* Of a database whose pages were overwritten only what is whole counts, when it can be opened. */
static void a_damaged_database_misleads_nobody(void **state)
{
    (void)state;
    char a[33], b[33];
    two_workloads(a, b);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    for (int i = 0; i < 50; i++)
        recorded_add(store, recorded_make(a, "direct", "", 1000 + i));
    tl_records_close(store, NULL);
    tl_text file = { 0 };
    assert_int_equal(tl_file_read(rec_db, &file, NULL), TL_OK);
    for (size_t start = 0; start < file.size; start += file.size / 7) {
        tl_text notes = { 0 };
        FILE *out = fopen(rec_db, "wb");
        assert_int_equal(fwrite(file.data, 1, file.size, out), file.size);
        fseek(out, (long)start, SEEK_SET);
        for (int i = 0; i < 5000; i++)
            fputc(0x5a ^ i, out);
        fclose(out);
        tl_model *model;
        tl_model_options options = recorded_options(rec_db, &notes);
        options.inspect_only = true;
        tl_status status = tl_model_load(rec_model, &options, &model, NULL);
        assert_true(status == TL_OK || status == TL_BAD_ARGUMENT || status == TL_UNSUPPORTED ||
                    status == TL_IO);
        if (status == TL_OK)
            tl_model_destroy(model);
        tl_text_free(&notes);
    }
    tl_text_free(&file);
}

static void run(const tl_model *model, float *out, size_t size)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(model));
    tl_arena *arena = tl_arena_create(0);
    tl_runner *runner;
    tl_tensor *inputs = TL_NEW_ARRAY(arena, tl_tensor, spec->input_count), output;
    const void **in = TL_NEW_ARRAY(arena, const void *, spec->input_count);
    assert_int_equal(tl_session_inputs(spec, &(tl_text_list){ 0 }, NULL, 1, inputs, NULL), TL_OK);
    assert_int_equal(tl_tensor_create(spec->outputs[0].dtype, spec->outputs[0].rank,
                                      spec->outputs[0].shape, &output, NULL),
                     TL_OK);
    assert_int_equal(tl_runner_create(tl_model_executable(model), rec_pool, 1, &runner, NULL),
                     TL_OK);
    for (int i = 0; i < spec->input_count; i++)
        in[i] = inputs[i].data;
    assert_int_equal(tl_runner_run(runner, in, &output.data, NULL, NULL), TL_OK);
    memcpy(out, output.data, size);
    tl_tensor_free(&output);
    for (int i = 0; i < spec->input_count; i++)
        tl_tensor_free(&inputs[i]);
    tl_runner_destroy(runner);
    tl_arena_destroy(arena);
}

/* An untuned executable in the cache is never taken for a tuned one, nor one set of records for another; and a tuned start
 * comes from the cache the second time. */
static void the_cache_knows_what_was_chosen(void **state)
{
    (void)state;
    char a[33], b[33];
    float plain[1000], tuned[1000];
    two_workloads(a, b);
    tl_model *model = recorded_load(recorded_options(NULL, NULL));
    run(model, plain, sizeof plain);
    tl_model_destroy(model);
    model = recorded_load(recorded_options(NULL, NULL));
    assert_true(tl_model_get_facts(model)->from_cache);
    assert_int_equal(tl_model_get_facts(model)->tuned_count, 0);
    tl_model_destroy(model);

    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, recorded_make(b, "direct", "", 1000));
    for (int again = 0; again < 2; again++) {
        model = recorded_load(recorded_options(rec_db, NULL));
        const tl_model_facts *facts = tl_model_get_facts(model);
        assert_int_equal(facts->from_cache, again);
        assert_true(facts->tuned_count >= 1);
        run(model, tuned, sizeof tuned);
        for (int i = 0; i < 1000; i++)
            assert_true(tuned[i] - plain[i] < 1e-3 && plain[i] - tuned[i] < 1e-3);
        tl_model_destroy(model);
    }
    /* a record that is no better changes nothing; one that is better does */
    recorded_add(store, recorded_make(b, "direct", "# slower\n", 2000));
    model = recorded_load(recorded_options(rec_db, NULL));
    assert_true(tl_model_get_facts(model)->from_cache);
    tl_model_destroy(model);
    recorded_add(store, recorded_make(a, "direct", "", 500));
    model = recorded_load(recorded_options(rec_db, NULL));
    assert_false(tl_model_get_facts(model)->from_cache);
    assert_non_null(kernel_of(model, a)->pick);
    tl_model_destroy(model);
    /* and untuned is still what it was */
    model = recorded_load(recorded_options(NULL, NULL));
    assert_true(tl_model_get_facts(model)->from_cache);
    assert_int_equal(tl_model_get_facts(model)->tuned_count, 0);
    tl_model_destroy(model);
    tl_records_close(store, NULL);
}

/* A choice for the model goes before the best records; one that keeps the default goes before them, too. */
static void a_choice_decides(void **state)
{
    (void)state;
    char a[33], b[33], target_text[160];
    tl_target target;
    two_workloads(a, b);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, recorded_make(a, "direct", "", 1000));
    recorded_add(store, recorded_make(b, "direct", "", 1000));
    tl_record worse = recorded_make(a, "direct", "# the second\n", 3000);
    tl_record_seal(&worse);
    recorded_add(store, worse);
    assert_int_equal(tl_target_resolve(NULL, &target, NULL), TL_OK);
    tl_target_fingerprint(&target, 1, target_text);
    tl_model *model = inspect_with(NULL, NULL);
    char identity[33], picks[200];
    memcpy(identity, tl_model_get_facts(model)->identity, sizeof identity);
    tl_model_destroy(model);
    snprintf(picks, sizeof picks, "%s %s\nrubbish\n%s 00000000000000000000000000000000\n", a,
             worse.uid, b);
    tl_choice choice = { .model = identity,
                         .name = "m",
                         .target = target_text,
                         .numerics = "relaxed",
                         .threads = 1,
                         .revision = TL_CODEGEN_REVISION,
                         .kept = true,
                         .form = "",
                         .picks = picks,
                         .environment = "",
                         .session = "",
                         .created_us = 5 };
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    model = inspect_with(rec_db, NULL);
    assert_non_null(kernel_of(model, a)->pick);
    assert_string_equal(kernel_of(model, a)->pick->uid, worse.uid);
    assert_null(kernel_of(model, b)->pick); /* its record is gone: a miss */
    tl_model_destroy(model);

    choice.kept = false;
    choice.created_us = 6;
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    model = inspect_with(rec_db, NULL);
    assert_int_equal(tl_model_get_facts(model)->tuned_count, 0);
    tl_model_destroy(model);

    choice.revision = TL_CODEGEN_REVISION + 1; /* of another compiler: says nothing here */
    choice.created_us = 7;
    choice.kept = true;
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    model = inspect_with(rec_db, NULL);
    assert_int_equal(tl_model_get_facts(model)->tuned_count, 0);
    tl_model_destroy(model);

    tl_record wrong = recorded_make(a, "direct", "# the third\n", 500);
    wrong.status = TL_RECORD_WRONG;
    tl_record_seal(&wrong);
    recorded_add(store, wrong);
    snprintf(picks, sizeof picks, "%s %s\n", a, wrong.uid); /* it was never right */
    choice.revision = TL_CODEGEN_REVISION;
    choice.created_us = 8;
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    model = inspect_with(rec_db, NULL);
    assert_null(kernel_of(model, a)->pick);
    tl_model_destroy(model);
    tl_records_close(store, NULL);
}

/* Records are found in the default place and in the system's. */
static void the_default_places(void **state)
{
    (void)state;
    char a[33], b[33];
    two_workloads(a, b);
    tl_records *store;
    tl_diag diag = { 0 };
    if (tl_records_open_default(NULL, TL_RECORDS_CREATE, &store, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    recorded_add(store, recorded_make(a, "direct", "", 1000));
    tl_records_close(store, NULL);
    tl_model_options options = recorded_options(NULL, NULL);
    options.inspect_only = true;
    options.no_database = false;
    tl_model *model = recorded_load(options);
    assert_non_null(kernel_of(model, a)->pick);
    tl_model_destroy(model);
    /* without a home of one's own, the system's (here in the same folder) */
    setenv("XDG_DATA_HOME", "/nonexistent", 1);
    model = recorded_load(options);
    assert_non_null(kernel_of(model, a)->pick);
    tl_model_destroy(model);
    options.no_database = true;
    model = recorded_load(options);
    assert_null(kernel_of(model, a)->pick);
    tl_model_destroy(model);
    setenv("XDG_DATA_HOME", rec_folder, 1);
}

#define PICK_TEST(name) cmocka_unit_test_setup(name, recorded_none)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PICK_TEST(the_best_record_is_taken),
        PICK_TEST(records_of_something_else_do_not_count),
        PICK_TEST(broken_records_are_misses),
        PICK_TEST(files_that_are_none),
        PICK_TEST(a_newer_database_is_not_read),
        PICK_TEST(a_damaged_database_misleads_nobody),
        PICK_TEST(the_cache_knows_what_was_chosen),
        PICK_TEST(a_choice_decides),
        PICK_TEST(the_default_places), /* last: it leaves records there */
    };
    return cmocka_run_group_tests_name("driver picks", tests, group_set_up, group_tear_down);
}
