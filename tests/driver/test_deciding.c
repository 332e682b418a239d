/* tests/driver/test_deciding.c: inputs on whose values shapes depend, through the whole pipeline: an executable a value,
 * each kept in the cache under its own key, and refused for another value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/model.h"
#include "runtime/executable/bindings.h"
#include "tests/runtime/kernels.h"
#include "tests/frontend/onnx_text.h"

static tl_pool *pool;
static char *folder;

static int set_up(void **state)
{
    (void)state;
    folder = temp_folder_make();
    return tl_pool_create(&(tl_pool_options){ .threads = 2 }, &pool, NULL) == TL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tl_pool_destroy(pool);
    temp_folder_remove(folder);
    return 0;
}

static tl_status load_file(const tl_text *file, const tl_shape_override *offers, int count,
                           tl_model **out, tl_diag *diag)
{
    const tl_model_options options = { .no_database = true,
                                       .cache_folder = folder,
                                       .threads = 2,
                                       .shapes = offers,
                                       .shape_count = count,
                                       .pool = pool };
    *diag = (tl_diag){ 0 };
    return tl_model_load_memory(file->data, file->size, NULL, &options, out, diag);
}

/* x in `rows` rows, times two; `seed` decides nothing. */
static tl_status load(int64_t rows, int64_t seed, bool is_offered, tl_model **out, tl_diag *diag)
{
    const tl_shape_override offers[] = {
        { "seed", tl_shape_of(1, (int64_t[]){ 1 }), &seed, TL_I64 },
        { "rows", tl_shape_of(1, (int64_t[]){ 1 }), &rows, TL_I64 },
    };
    tl_text file = text_model("opset 13; input x f32 12; input rows i64 1; input seed i64 1;"
                              "init less i64 1 = -1; init two f32 = 2;"
                              "node Concat rows,less -> s axis=0; node Reshape x,s -> r;"
                              "node Mul r,two -> y; node Neg seed -> z; output y; output z");
    tl_status status = load_file(&file, offers, is_offered ? 2 : 0, out, diag);
    tl_text_free(&file);
    return status;
}

static tl_model *load_for(int64_t rows, int64_t seed)
{
    tl_model *model;
    tl_diag diag;
    if (load(rows, seed, true, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return model;
}

static void it_is_asked_for(void **state)
{
    (void)state;
    tl_model *model;
    tl_diag diag;
    assert_int_equal(load(3, 1, false, &model, &diag), TL_UNBOUND);
    assert_non_null(strstr(diag.text, "input 'rows'"));
}

static void every_value_has_its_executable(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, seed;
        bool from_cache;
    } loads[] = {
        { 3, 1, false }, { 3, 1, true }, { 3, 2, true }, { 4, 2, false }, { 3, 5, true }
    };
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        tl_model *model = load_for(loads[i].rows, loads[i].seed);
        const tl_executable_spec *spec = tl_executable_info(tl_model_executable(model));
        assert_int_equal(tl_model_get_facts(model)->from_cache, loads[i].from_cache);
        assert_int_equal(spec->outputs[0].shape[0], loads[i].rows);
        assert_int_equal(*(const int64_t *)spec->inputs[1].fixed, loads[i].rows);
        assert_null(spec->inputs[2].fixed);
        tl_model_destroy(model);
    }
}

static void another_value_is_refused(void **state)
{
    (void)state;
    tl_model *model = load_for(3, 1);
    const tl_executable *executable = tl_model_executable(model);
    tl_arena *arena = tl_arena_create(0);
    tl_runner *runner;
    tl_bindings b;
    tl_diag diag = { 0 };
    assert_int_equal(tl_runner_create(executable, pool, 2, &runner, NULL), TL_OK);
    assert_int_equal(tl_bindings_make(arena, executable, NULL, NULL, 1, &b, NULL), TL_OK);
    assert_int_equal(tl_runner_run(runner, b.in, b.out, NULL, &diag), TL_OK);
    assert_true(((const float *)b.out[0])[11] == 2 * ((const float *)b.in[0])[11]);
    *(int64_t *)b.inputs[1].data = 4;
    assert_int_equal(tl_runner_run(runner, b.in, b.out, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "value of input rows"));
    assert_non_null(strstr(diag.text, "element 0 was 3, but is 4"));
    tl_bindings_free(&b);
    tl_runner_destroy(runner);
    tl_arena_destroy(arena);
    tl_model_destroy(model);
}

/* ---- what decides may depend on what was decided ---- */

static void add_node(tl_text *graph, const char *op, const char *const inputs[2],
                     const char *output, tl_text *attributes)
{
    tl_text node = { 0 };
    for (int i = 0; i < 2 && inputs[i] != NULL; i++)
        wire_string(&node, 1, inputs[i]);
    wire_string(&node, 2, output);
    wire_string(&node, 4, op);
    if (attributes != NULL)
        tl_text_add_bytes(&node, tl_text_get(attributes), attributes->size);
    wire_message(graph, 1, &node);
}

/* A branch that gives x in as many rows as `rows` says. */
static void add_branch(tl_text *attributes, const char *name, const char *rows)
{
    tl_text graph = { 0 }, output = { 0 }, attribute = { 0 };
    add_node(&graph, "Reshape", (const char *const[]){ "x", rows }, name, NULL);
    wire_string(&graph, 2, name);
    wire_string(&output, 1, name);
    wire_message(&graph, 12, &output);
    wire_string(&attribute, 1, name);
    wire_message(&attribute, 6, &graph);
    wire_int(&attribute, 20, 5);
    wire_message(attributes, 5, &attribute);
}

/* rows decides where `which` is 1, and nothing where it is not. */
static int64_t rows_of(int64_t which, const int64_t rows[2], bool from_cache)
{
    const tl_shape_override offers[] = {
        { "which", tl_shape_of(1, (int64_t[]){ 1 }), &which, TL_I64 },
        { "rows", tl_shape_of(1, (int64_t[]){ 2 }), rows, TL_I64 },
    };
    tl_text nodes = { 0 }, branches = { 0 };
    add_branch(&branches, "then_branch", "rows");
    add_branch(&branches, "else_branch", "flat");
    add_node(&nodes, "If", (const char *const[]){ "c", NULL }, "r", &branches);
    tl_text file = text_model_with("opset 13; input x f32 12; input which i64 1;"
                                   "input rows i64 2; init one i64 1 = 1; init flat i64 2 = 1,12;"
                                   "node Equal which,one -> c; node Neg r -> y; output y",
                                   &nodes);
    tl_model *model;
    tl_diag diag;
    if (load_file(&file, offers, 2, &model, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    int64_t got = tl_executable_info(tl_model_executable(model))->outputs[0].shape[0];
    assert_int_equal(tl_model_get_facts(model)->from_cache, from_cache);
    tl_model_destroy(model);
    tl_text_free(&branches);
    tl_text_free(&nodes);
    tl_text_free(&file);
    return got;
}

static void what_decides_may_depend_on_values(void **state)
{
    (void)state;
    assert_int_equal(rows_of(0, (int64_t[]){ 2, 6 }, false), 1); /* rows did not matter */
    assert_int_equal(rows_of(1, (int64_t[]){ 2, 6 }, false), 2); /* now they do */
    assert_int_equal(rows_of(1, (int64_t[]){ 3, 4 }, false), 3);
    assert_int_equal(rows_of(1, (int64_t[]){ 2, 6 }, true), 2);
    assert_int_equal(rows_of(1, (int64_t[]){ 3, 4 }, true), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_for),
        cmocka_unit_test(every_value_has_its_executable),
        cmocka_unit_test(another_value_is_refused),
        cmocka_unit_test(what_decides_may_depend_on_values),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
