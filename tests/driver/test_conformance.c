/* tests/driver/test_conformance.c: tilth conformance on trees of small cases: what passes, fails and is refused, files that are
 * broken, lists, exit statuses; and children that crash, hang or end otherwise than they should. */
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include "driver/conformance/compare_output.h"
#include "driver/conformance/conformance.h"
#include "models/onnx_write.h"
#include "runtime/base/file.h"
#include "tests/driver/cli_run.h"
#include "tests/support/patience.h"

/* ---- cases as files ---- */

static void add_varint(tl_text *out, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        tl_text_add_bytes(out, &(char){ (char)(value | 128) }, 1);
    tl_text_add_bytes(out, &(char){ (char)value }, 1);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    char path[256], folder[256];
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(tl_folder_make(folder, NULL), TL_OK);
    assert_int_equal(tl_file_write(path, bytes, size, NULL), TL_OK);
}

/* A TensorProto: dims (1), data_type (2), raw_data (9). */
static void write_tensor(const char *name, int onnx_dtype, tl_build_list dims, const void *data,
                         size_t size)
{
    tl_text out = { 0 };
    for (int i = 0; i < dims.count; i++) {
        add_varint(&out, 1 << 3);
        add_varint(&out, (uint64_t)dims.values[i]);
    }
    add_varint(&out, 2 << 3);
    add_varint(&out, (uint64_t)onnx_dtype);
    add_varint(&out, 9 << 3 | 2);
    add_varint(&out, size);
    tl_text_add_bytes(&out, data, size);
    write_bytes(name, out.data, out.size);
    tl_text_free(&out);
}

static void write_floats(const char *name, tl_build_list dims, const float *data, size_t count)
{
    write_tensor(name, 1, dims, data, count * sizeof *data);
}

static void write_model(tl_onnx_build *b, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    *strrchr(path, '/') = '\0';
    assert_int_equal(tl_folder_make(path, NULL), TL_OK);
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_onnx_build_write(b, path, NULL), TL_OK);
    tl_onnx_build_destroy(b);
}

/* y = operator(a, b) of f32[2, 2]. */
static void write_binary(const char *name, const char *operator)
{
    tl_onnx_build *b = tl_onnx_build_create("case", 17, 1);
    const char *x = tl_build_input(b, "a", TL_F32, TL_DIMS(2, 2)),
               *y = tl_build_input(b, "b", TL_F32, TL_DIMS(2, 2));
    tl_build_output(b, tl_build_node(b, operator, "n", TL_NAMES(x, y)), TL_F32, TL_DIMS(2, 2));
    write_model(b, name);
}

static const float a[] = { 1, 2, 3, 4 }, b[] = { 10, 20, 30, 40 }, sum[] = { 11, 22, 33, 44 };

static void write_set(const char *folder, const float *out)
{
    static const char *const names[] = { "input_0.pb", "input_1.pb", "output_0.pb" };
    const float *const data[] = { a, b, out };
    for (int i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_floats(path, TL_DIMS(2, 2), data[i], 4);
    }
}

static void right_wrong_and_refused(void **state)
{
    (void)state;
    const float wrong[] = { 11, 22, 33.5f, 45 };
    write_binary("t/node/test_add/model.onnx", "Add");
    write_set("t/node/test_add/test_data_set_0", sum);
    write_set("t/node/test_add/test_data_set_1", sum);
    write_binary("t/node/test_frob/model.onnx", "Frobnicate");
    write_set("t/node/test_frob/test_data_set_0", sum);
    expect(0, "1 passed, 0 failed, 1 skipped\n", "conformance $D/t");
    expect(0, "skipped node/test_frob: not supported", "conformance $D/t -v");
    expect(0, "Add                                    1       0       0",
           "conformance $D/t --jobs 2");
    expect(0, "\"name\":\"node/test_add\",\"result\":\"passed\",\"operators\":[\"Add\"]",
           "conformance $D/t --json");
    expect(0, "{\"record\":\"summary\",\"passed\":1,\"failed\":0,\"skipped\":1,\"close\":1}",
           "conformance $D/t --json");

    write_binary("t/node/test_wrong/model.onnx", "Add");
    write_set("t/node/test_wrong/test_data_set_0", sum);
    write_set("t/node/test_wrong/test_data_set_1", wrong);
    expect(1, "element [1, 0] is 33 instead of 33.5; 2 of 4 differ\n  in test_data_set_1",
           "conformance $D/t");
    expect(1,
           "\"data_set\":1,\"output\":0,\"wrong\":2,\"elements\":4,\"index\":\"[1, 0]\",\"got\":"
           "\"33\",\"expected\":\"33.5\"}",
           "conformance $D/t --json");
    expect(1, "1 passed, 1 failed, 1 skipped\n", "conformance $D/t");

    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/t --filter add");
    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/t --filter 'test_a*'");
    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/t --filter 'node/test_?dd'");
    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/t/node/test_add");
    expect(2, "no test case matches 'nothing'", "conformance $D/t --filter nothing");
    expect(2, "no such folder", "conformance $D/absent");
    expect_shell(2, "no test cases in it", "mkdir $D/empty; $TILTH conformance $D/empty");
}

/* The tree of the test before. */
static void lists_of_cases_that_pass(void **state)
{
    (void)state;
    expect(1, "1 passed, 1 failed", "conformance $D/t --write-expected $D/list");
    expect_shell(0, "node/test_add", "cat $D/list");
    expect(0, "of 1 that are listed as passing, 1 pass; 0 pass newly\n",
           "conformance $D/t --expected $D/list");
    expect(0, "0 passed, 1 failed", "conformance $D/t --expected $D/list --filter wrong");
    expect_shell(0, "passes newly: node/test_add",
                 "printf '# none yet\\n\\n' >$D/none; $TILTH conformance $D/t --expected $D/none");
    expect_shell(1, "no longer passes: node/test_wrong (failed)",
                 "echo node/test_wrong >>$D/list; $TILTH conformance $D/t --expected $D/list");
    expect_shell(1, "no longer passes: node/test_frob (skipped)",
                 "echo '  node/test_frob ' >$D/list; $TILTH conformance $D/t --expected $D/list");
    expect_shell(1, "no longer there: node/test_gone",
                 "echo node/test_gone >$D/list; $TILTH conformance $D/t --expected $D/list");
    expect(1, "{\"record\":\"expected\",\"listed\":1,\"worse\":1,\"newly\":1}",
           "conformance $D/t --expected $D/list --json");
    expect(1, ",\"listed\":false,\"max_ulp\":0}", "conformance $D/t --expected $D/list --json");
    expect(2, "absent", "conformance $D/t --expected $D/absent");
    expect(2, "one of them", "conformance $D/t --write-expected $D/x --filter add");
    expect(5, "", "conformance $D/t --write-expected $D/absent/x");
    expect(2, "--jobs", "conformance $D/t --jobs 1000");
    expect(2, "--threads", "conformance $D/t --threads 0");
    expect(2, "cache", "conformance $D/t --cache $D/t");
    expect(2, "none of relaxed, strict and tf32",
           "conformance $D/t --numerics loose --expected $D/none");
}

static void files_that_are_broken(void **state)
{
    (void)state;
    static const char *const good[] = { "few",   "many", "gap",  "torn", "none",
                                        "dtype", "rank", "json", "shape" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char path[128];
        snprintf(path, sizeof path, "h/%s/model.onnx", good[i]);
        write_binary(path, "Add");
        snprintf(path, sizeof path, "h/%s/test_data_set_0", good[i]);
        if (strcmp(good[i], "none") != 0)
            write_set(path, sum);
    }
    write_set("h/unmodelled/test_data_set_0", sum);
    write_set("h/unreadable/test_data_set_0", sum);
    write_bytes("h/unreadable/model.onnx", "\x0a\xff\xff\xff\xff\xff", 6);
    write_bytes("h/void/model.onnx", "", 0);
    write_bytes("h/torn/test_data_set_0/input_1.pb", "\x08\x02\x4a\x7f", 4);
    write_bytes("h/json/data.json", "{\"rtol\": ", 9);
    write_floats("h/many/test_data_set_0/input_2.pb", TL_DIMS(2, 2), a, 4);
    write_floats("h/shape/test_data_set_0/input_1.pb", TL_DIMS(4), b, 4);
    write_floats("h/rank/test_data_set_0/output_0.pb", TL_DIMS(1, 2, 2), sum, 4);
    write_tensor("h/dtype/test_data_set_0/output_0.pb", 7, TL_DIMS(2, 1), a, sizeof a);
    expect_shell(0, "", "cd $D/h; rm few/*/output_0.pb gap/*/input_0.pb");
    expect(1, "0 passed, 12 failed, 0 skipped\n", "conformance $D/h");
    expect(1, "it is f32[2, 2] instead of i64[2, 1]", "conformance $D/h");
    expect(1, "it is f32[2, 2] instead of f32[1, 2, 2]", "conformance $D/h");
    expect(1, "failed few: 0 files of outputs, but the model has 1 outputs", "conformance $D/h");
    expect(1, "failed many: 3 files of inputs, but the model has 2 inputs", "conformance $D/h");
    expect(1, "1 files input_0.pb and so on, but one of them is input_1.pb", "conformance $D/h");
    expect(1, "none: no test_data_set_0", "conformance $D/h");
    expect(1, "model.onnx: No such file", "conformance $D/h");
    expect(1, "is f32[4]; the model wants f32[2, 2]", "conformance $D/h");
    expect(1, "data.json: line", "conformance $D/h");
    expect(1, "input_1.pb", "conformance $D/h --filter torn");
}

/* How exact a case has to be: by default, by the tree's manifest, by data.json. */
static void tolerances(void **state)
{
    (void)state;
    const float near[] = { 11.05f, 22, 33, 44 };
    static const char *const names[] = { "default", "listed", "own" };
    for (int i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "e/s/%s/model.onnx", names[i]);
        write_binary(path, "Add");
        snprintf(path, sizeof path, "e/s/%s/test_data_set_0", names[i]);
        write_set(path, near);
    }
    static const char manifest[] = "suite,case,note,rtol,atol\n"
                                   "s,listed,\"a, b\",0.01,1e-07\r\n"
                                   "s,absent,,1,1\n"
                                   "s,default,,frob\n";
    write_bytes("e/MANIFEST.csv", manifest, sizeof manifest - 1);
    write_bytes("e/s/own/data.json", "{\"atol\": 0.1}", 13);
    expect(1, "failed s/default: output 0 (n_output_0): element [0, 0] is 11 instead of 11.0500002",
           "conformance $D/e");
    expect(1, "0 of the passed are within 100 ULP\n2 passed, 1 failed, 0 skipped\n",
           "conformance $D/e");
}

/* The tree of the first test: what a case counts for. */
static void tables_of_cases(void **state)
{
    (void)state;
    tl_onnx_operator op;
    for (int i = 0; tl_onnx_find_operator(i, &op); i++)
        if (op.reason == NULL && strcmp(tl_case_group(op.name), "others") == 0)
            fail_msg("%s is in no group of driver/conformance/case_groups.def", op.name);
    assert_string_equal(tl_case_group("Conv"), "convolutions");
    assert_string_equal(tl_case_group("com.microsoft.Gelu"), "other domains");
    assert_string_equal(tl_case_group("Frob"), "others");
    expect(0, "\nelementwise                            1       0       0            1\n",
           "conformance $D/t --filter test_add");
    expect(0, "\nf32                                    1       0       0            1\n",
           "conformance $D/t --filter test_add");
    expect(0, "{\"record\":\"group\",\"name\":\"elementwise\",\"passed\":1,",
           "conformance $D/t --filter test_add --json");
    expect(0, "{\"record\":\"opset\",\"name\":\"opset_17\",\"passed\":1,",
           "conformance $D/t --filter test_add --json");
}

/* Open axes, and operands that decide a shape, are taken from the data: of each set anew. */
static void shapes_from_the_data(void **state)
{
    (void)state;
    tl_onnx_build *build = tl_onnx_build_create("reshape", 17, 1);
    const char *x = tl_build_input(build, "x", TL_F32, TL_DIMS(2, 2)),
               *s = tl_build_input(build, "s", TL_I64, TL_DIMS(2));
    tl_build_output(build, tl_build_node(build, "Reshape", "n", TL_NAMES(x, s)), TL_F32,
                    TL_DIMS(4, 1));
    write_model(build, "v/reshape/model.onnx");
    static const int64_t shapes[2][2] = { { 4, 1 }, { 1, -1 } };
    write_floats("v/reshape/test_data_set_0/input_0.pb", TL_DIMS(2, 2), a, 4);
    write_tensor("v/reshape/test_data_set_0/input_1.pb", 7, TL_DIMS(2), shapes[0], 16);
    write_floats("v/reshape/test_data_set_0/output_0.pb", TL_DIMS(4, 1), a, 4);
    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/v");
    write_floats("v/reshape/test_data_set_1/input_0.pb", TL_DIMS(2, 2), b, 4);
    write_tensor("v/reshape/test_data_set_1/input_1.pb", 7, TL_DIMS(2), shapes[1], 16);
    write_floats("v/reshape/test_data_set_1/output_0.pb", TL_DIMS(1, 4), b, 4);
    expect(0, "1 passed, 0 failed, 0 skipped\n", "conformance $D/v");
    write_floats("v/reshape/test_data_set_1/output_0.pb", TL_DIMS(4, 1), b, 4);
    expect(1, "it is f32[1, 4] instead of f32[4, 1]", "conformance $D/v");
}

/* ---- children ---- */

static void misbehave(const tl_case *c, const tl_session_options *options, tl_case_result *result,
                      void (*note)(const tl_case_result *))
{
    (void)options;
    *result = (tl_case_result){ .verdict = TL_CASE_PASSED, .output = -1, .is_final = false };
    strcpy(result->operators, "Add");
    note(result);
    if (strcmp(c->name, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(c->name, "abort") == 0) {
        fprintf(stderr, "LLVM ERROR: no\nmore\n");
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    while (strcmp(c->name, "hang") == 0)
        pause();
    if (strcmp(c->name, "exit") == 0)
        _exit(7);
    for (int i = 0; strcmp(c->name, "chatter") == 0 && i < 100000; i++)
        fprintf(stderr, "a line that nobody reads\n");
    if (strcmp(c->name, "eat") == 0)
        result->verdict =
            mmap(NULL, (size_t)1 << 34, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
                ? TL_CASE_PASSED
                : TL_CASE_FAILED;
    result->is_final = true;
}

static void children_that_misbehave(void **state)
{
    (void)state;
    tl_case cases[] = { { .name = "abort" }, { .name = "chatter" }, { .name = "crash" },
                        { .name = "eat" },   { .name = "exit" },    { .name = "good" },
                        { .name = "hang" },  { .name = "late" } };
    enum { ABORT, CHATTER, CRASH, EAT, EXIT, GOOD, HANG, LATE, COUNT };
    static const char *const reasons[COUNT] = {
        [ABORT] = "it ended by signal 6 (Aborted): LLVM ERROR: no",
        [CRASH] = "it ended by signal 11 (",
        [EXIT] = "it ended with status 7",
        [HANG] = "it took longer than ",
    };
    const tl_case_list list = { COUNT, cases };
    tl_case_result results[COUNT];
    for (int jobs = 1; jobs <= 4; jobs += 3) {
        tl_case_runner runner = { .jobs = jobs,
                                  .limit_s = 2 * PATIENCE,
                                  .memory_bytes = INT64_C(1) << 32,
                                  .run = misbehave };
        tl_diag diag = { 0 };
        assert_int_equal(tl_run_cases(&list, &runner, results, &diag), TL_OK);
        for (int i = 0; i < COUNT; i++) {
            bool good = reasons[i] == NULL;
            if (results[i].verdict != (good ? TL_CASE_PASSED : TL_CASE_FAILED))
                fail_msg("%s: %s: %s", cases[i].name, tl_case_verdicts[results[i].verdict],
                         results[i].reason);
            assert_true(results[i].is_final);
            assert_string_equal(results[i].operators, "Add");
            if (reasons[i] != NULL &&
                strncmp(results[i].reason, reasons[i], strlen(reasons[i])) != 0)
                fail_msg("%s: %s", cases[i].name, results[i].reason);
        }
    }
}

static void a_limit_of_time(void **state)
{
    (void)state;
    write_binary("l/add/model.onnx", "Add");
    write_set("l/add/test_data_set_0", sum);
    expect(1, "failed add: it took longer than 1e-05 s", "conformance $D/l --time-limit 1e-5");
    expect(0, "1 passed", "conformance $D/l --time-limit 0 --memory-limit 0");
    expect(0, "1 passed", "conformance $D/l --threads 2 --cache $D/cases-cache");
    expect_shell(0, "objects", "ls $D/cases-cache; [ ! -e $D/cache ]");
}

/* ---- comparing ---- */

static void elements(void **state)
{
    (void)state;
    float got[] = { 1, NAN, INFINITY, 0.0f, 100.0f, 1.0005f },
          want[] = { 1, NAN, INFINITY, -0.0f, 100.0f + 0x1p-16f, 1 };
    tl_tensor x, y;
    tl_output_difference d;
    char text[64];
    const int64_t shape[] = { 2, 3 };
    assert_int_equal(tl_tensor_borrow(TL_F32, 2, shape, got, &x, NULL), TL_OK);
    assert_int_equal(tl_tensor_borrow(TL_F32, 2, shape, want, &y, NULL), TL_OK);
    assert_int_equal(tl_compare_output(&x, &y, 1e-3, 1e-7, &d, NULL), TL_OK);
    assert_int_equal(d.wrong, 0);
    assert_true(d.max_ulp > 4000 && d.max_ulp < 4300); /* 0.0005 / 2^-23 */
    got[5] = 1;
    assert_int_equal(tl_compare_output(&x, &y, 1e-3, 1e-7, &d, NULL), TL_OK);
    assert_true(d.max_ulp == 2);
    got[4] = 100.2f;
    got[2] = -INFINITY;
    assert_int_equal(tl_compare_output(&x, &y, 1e-3, 1e-7, &d, NULL), TL_OK);
    assert_int_equal(d.wrong, 2);
    assert_int_equal(d.first_wrong, 2);
    assert_true(isinf(d.max_ulp));
    tl_element_index_text(&x, 5, text, sizeof text);
    assert_string_equal(text, "[1, 2]");
    tl_element_text(&x, 2, text, sizeof text);
    assert_string_equal(text, "-inf");

    /* integers are equal or wrong, those too that no double holds */
    uint64_t big[] = { UINT64_MAX, 1 }, bigger[] = { UINT64_MAX - 1, 1 };
    assert_int_equal(tl_tensor_borrow(TL_U64, 1, &(int64_t){ 2 }, big, &x, NULL), TL_OK);
    assert_int_equal(tl_tensor_borrow(TL_U64, 1, &(int64_t){ 2 }, bigger, &y, NULL), TL_OK);
    assert_int_equal(tl_compare_output(&x, &y, 1e-3, 1e-7, &d, NULL), TL_OK);
    assert_int_equal(d.wrong, 1);
    tl_element_text(&x, 0, text, sizeof text);
    assert_string_equal(text, "18446744073709551615");
    assert_int_equal(tl_tensor_borrow(TL_I64, 1, &(int64_t){ 2 }, bigger, &y, NULL), TL_OK);
    assert_int_equal(tl_compare_output(&x, &y, 1e-3, 1e-7, &d, NULL), TL_WRONG_RESULT);
    assert_int_equal(tl_tensor_borrow(TL_U64, 0, NULL, big, &x, NULL), TL_OK);
    tl_element_index_text(&x, 0, text, sizeof text);
    assert_string_equal(text, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_wrong_and_refused),
        cmocka_unit_test(lists_of_cases_that_pass),
        cmocka_unit_test(files_that_are_broken),
        cmocka_unit_test(tables_of_cases),
        cmocka_unit_test(tolerances),
        cmocka_unit_test(shapes_from_the_data),
        cmocka_unit_test(children_that_misbehave),
        cmocka_unit_test(a_limit_of_time),
        cmocka_unit_test(elements),
    };
    return cmocka_run_group_tests_name("driver conformance", tests, cli_set_up, cli_tear_down);
}
