/* tests/driver/test_labels.c: every record rebuilds from the database alone: each lowering of a convolution, default schedule and
 * others, comes to the same program and the same code from nothing but its record, once the model is gone. */
#include "driver/pipeline/model_tasks.h"
#include "runtime/base/map.h"
#include "schedule/trace.h"
#include "tests/driver/recorded.h"
#include "tuner/run/remember_task.h"
#include "tuner/search/space.h"

static int group_set_up(void **state)
{
    (void)state;
    return recorded_set_up("resnet18");
}

static int group_tear_down(void **state)
{
    (void)state;
    return recorded_tear_down();
}

/* What the program becomes. */
static char *code_of(const tl_program *program, const tl_target *target)
{
    tl_arena *arena = tl_arena_create(0);
    tl_descriptor descriptor;
    tl_text text = { 0 };
    tl_diag diag = { 0 };
    if (tl_codegen_compile(arena, program, false, target, TL_EMIT_LLVM, &text, &descriptor,
                           &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_arena_destroy(arena);
    return text.data;
}

typedef struct {
    int count, winograd;
    tl_text uids, codes;
} stored;

/* A record of the default schedule and of some points of each lowering of the task. */
static void store_task(tl_records *store, const tl_tune_task *task, const tl_target *target,
                       stored *out)
{
    tl_arena *arena = tl_arena_create(0);
    tl_space *space;
    tl_diag diag = { 0 };
    tl_random random = tl_random_make(3);
    tl_remember_task(store, task, NULL);
    if (tl_space_create(arena, task->measure, target, 1, TL_SPACE_FULL, &space, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < task->measure->lowering_count + 4; i++) {
        tl_variant v;
        bool is_default = i < task->measure->lowering_count;
        tl_status status = is_default ? tl_space_build(space, arena, i, NULL, 0, &v, NULL)
                                      : tl_space_sample(space, arena, &random, &v, NULL);
        if (status != TL_OK)
            continue;
        const char *lowering = task->measure->lowerings[v.point.lowering].name;
        tl_record r = recorded_make(task->measure->workload, lowering, v.trace, 1000);
        r.program = v.hash;
        r.sequence = i + 1;
        tl_record_seal(&r);
        assert_int_equal(tl_records_add(store, &r, &diag), TL_OK);
        char *code = code_of(v.program, target);
        tl_text_format(&out->codes, "%s %016llx\n", r.uid,
                       (unsigned long long)tl_hash_bytes(code, strlen(code), 0));
        free(code);
        out->count++;
        out->winograd += strncmp(lowering, "winograd", 8) == 0;
    }
    tl_arena_destroy(arena);
}

typedef struct {
    tl_records *store;
    const stored *stored;
    const tl_target *target;
    int count;
} rebuilding;

static bool rebuild(void *user, const tl_record *record)
{
    rebuilding *r = user;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    const char *text;
    tl_program *naive;
    tl_trace *trace;
    char hash[17], line[64];
    assert_true(tl_records_program_of(r->store, arena, record, &text));
    if (tl_program_parse(arena, text, record->lowering, &naive, &diag) != TL_OK ||
        tl_trace_parse(arena, record->trace, "record", r->target, &trace, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_schedule *s = tl_schedule_create(arena, naive, r->target, false);
    if (tl_trace_apply(trace, s, &diag) != TL_OK)
        fail_msg("%s: %s", record->lowering, diag.text);
    snprintf(hash, sizeof hash, "%016llx",
             (unsigned long long)tl_program_hash(tl_schedule_program(s)));
    assert_string_equal(hash, record->program);
    char *code = code_of(tl_schedule_program(s), r->target);
    snprintf(line, sizeof line, "%s %016llx\n", record->uid,
             (unsigned long long)tl_hash_bytes(code, strlen(code), 0));
    assert_non_null(strstr(tl_text_get(&r->stored->codes), line));
    free(code);
    r->count++;
    tl_arena_destroy(arena);
    return true;
}

static void each_lowering_is_rebuilt_from_its_record(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_model_options options = recorded_options(NULL, NULL);
    options.inspect_only = true;
    tl_model *model = recorded_load(options);
    tl_target target = *tl_model_get_facts(model)->target;
    tl_tune_list list;
    stored out = { 0 };
    assert_int_equal(tl_model_tasks(arena, model, TL_NUMERICS_RELAXED, &(tl_tune_filter){ 0 },
                                    &list, NULL),
                     TL_OK);
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    int tasks = 0;
    for (int i = 0; i < list.count && tasks < 3; i++)
        if (list.tasks[i].measure->lowering_count > 1) {
            store_task(store, &list.tasks[i], &target, &out);
            tasks++;
        }
    tl_records_close(store, NULL);
    tl_model_destroy(model);
    tl_arena_destroy(arena);
    assert_true(out.winograd > 0);

    store = recorded_open(TL_RECORDS_READ_ONLY);
    rebuilding r = { .store = store, .stored = &out, .target = &target };
    assert_int_equal(tl_records_visit(store, NULL, rebuild, &r, NULL), TL_OK);
    assert_int_equal(r.count, out.count);
    tl_records_close(store, NULL);
    tl_text_free(&out.codes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_lowering_is_rebuilt_from_its_record, recorded_none),
    };
    return cmocka_run_group_tests_name("labels", tests, group_set_up, group_tear_down);
}
