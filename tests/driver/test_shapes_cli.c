/* tests/driver/test_shapes_cli.c: models whose shapes vary, as a user of the command line meets them: several calls of one loaded
 * model, code for ranges of extents in a file, and what is refused. */
#include "tests/driver/cli_run.h"
#include "driver/api/tilth.h"
#include "runtime/base/file.h"
#include "runtime/tensor/npy.h"
#include "tests/frontend/onnx_text.h"

static void write_model(const char *name, const char *text)
{
    tl_text model = text_model(text), path = { 0 };
    tl_text_format(&path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_file_write(tl_text_get(&path), model.data, model.size, NULL), TL_OK);
    tl_text_free(&path);
    tl_text_free(&model);
}

static void write_tensor(const char *folder, const char *name, int rank, const int64_t *shape,
                         float scale)
{
    tl_text path = { 0 };
    tl_tensor t;
    assert_int_equal(tl_tensor_create(TL_F32, rank, shape, &t, NULL), TL_OK);
    for (int64_t i = 0; i < tl_tensor_elements(&t); i++)
        ((float *)t.data)[i] = scale * (float)(i % 97);
    tl_text_format(&path, "%s/%s", cli_folder, folder);
    assert_int_equal(tl_folder_make(tl_text_get(&path), NULL), TL_OK);
    tl_text_format(&path, "/%s.npy", name);
    assert_int_equal(tl_npy_write(tl_text_get(&path), &t, NULL), TL_OK);
    tl_tensor_free(&t);
    tl_text_free(&path);
}

/* What y = 2x is for an x of n rows. */
static void write_call(const char *folder, int64_t n)
{
    const int64_t shape[] = { n, 3 };
    write_tensor(folder, "input_x", 2, shape, 1);
    write_tensor(folder, "output_y", 2, shape, 2);
}

#define DOUBLE \
    "opset 13; input x f32 rows,3; init two f32 = 2; node Mul x,two -> y; output y f32 rows,3"

static int set_up(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    write_model("double.onnx", DOUBLE);
    write_model("scan.onnx",
                "opset 17; input x f32 rows,3; init first f32 = 0; node Scan first,x -> last,y "
                "num_scan_inputs=1 body={input s f32; input e f32 3; node Identity s -> t;"
                " node Add e,e -> d; output t; output d}; output y");
    write_model("gpt.onnx",
                "opset 13; input past f32 1,p,4; input mask f32 1,t; init one f32 1,1,4 "
                "= 1,2,3,4; init axes i64 1 = 2; node Concat past,one -> k axis=1;"
                "node Unsqueeze mask,axes -> m; node Mul k,m -> y; output y");
    write_call("short", 5);
    write_call("longer", 17);
    write_call("longest", 300);
    return 0;
}

static void calls_share_a_model(void **state)
{
    (void)state;
    expect(0, "compiled 2 times",
           "verify $D/double.onnx --data $D/short --data $D/longer "
           "--data $D/longest --data $D/short");
    expect(0, "longer: code for all shapes, here rows = 17",
           "verify $D/double.onnx --data $D/short --data $D/longer/");
    expect(0, "{\"record\":\"calls\",\"calls\":2,\"compiled\":2}",
           "verify $D/double.onnx --data $D/short --data $D/longer --json");
    expect(0, "1 kernels checked",
           "verify $D/double.onnx --per-node --data $D/short "
           "--data $D/longer");
    expect(0, "ok", "verify $D/double.onnx --data $D/short");
    write_tensor("longer", "output_y", 2, (int64_t[]){ 17, 3 }, 3);
    expect(1, "WRONG", "verify $D/double.onnx --data $D/short --data $D/longer");
    write_call("longer", 17);
    expect(3, "or data for it", "verify $D/double.onnx --data $D/short --data $D");
    expect(2, "--bisect takes the --data of one call",
           "verify $D/double.onnx --bisect --data $D/short --data $D/longer");
}

/* As they lie beside ONNX models. */
static void data_sets_in_a_folder(void **state)
{
    (void)state;
    expect_shell(0, "3 calls, the model compiled 2 times",
                 "mkdir -p $D/sets; for i in 0 1 2; do mkdir -p $D/sets/test_data_set_$i; done; "
                 "cp $D/short/* $D/sets/test_data_set_0; cp $D/longer/* $D/sets/test_data_set_1; "
                 "cp $D/longest/* $D/sets/test_data_set_2; $TILTH verify $D/double.onnx --data "
                 "$D/sets");
}

static void open_models_are_shown(void **state)
{
    (void)state;
    expect(0, "those of one shape", "inspect $D/double.onnx");
    expect(0, "one code for all extents", "inspect $D/double.onnx");
    expect(0, "\"record\":\"axis\"", "inspect $D/double.onnx --json");
    expect(3, "give its shape (--shape x=", "inspect $D/double.onnx --graph");
}

static void runs_write_folders(void **state)
{
    (void)state;
    expect(0, "longest: ready", "run $D/double.onnx --data $D/short --data $D/longest -o $D/out");
    expect_shell(0, "output_y.npy", "ls $D/out/longest");
    expect_shell(0, "fine", "cmp $D/out/short/output_y.npy $D/short/output_y.npy && echo fine");
    expect(2, "would go into one folder",
           "run $D/double.onnx --data $D/short --data $D/sets/../short -o $D/out");
}

/* A saved file serves all extents of its ranges. */
static void check_saved(const char *name)
{
    tl_text path = { 0 };
    tilth_error error;
    tilth_model *model;
    tilth_runner *runner;
    tilth_dim_info dim;
    tilth_tensor_info info;
    tl_text_format(&path, "%s/%s", cli_folder, name);
    if (tilth_model_open(tl_text_get(&path), NULL, &model, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(tilth_model_dim_count(model), 1);
    assert_int_equal(tilth_model_dim(model, 0, &dim, &error), TILTH_OK);
    assert_string_equal(dim.name, "rows");
    assert_int_equal(dim.min, 2);
    assert_int_equal(dim.max, 300);
    assert_int_equal(tilth_model_dim(model, 1, &dim, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(tilth_model_input(model, 0, &info, &error), TILTH_OK);
    assert_int_equal(info.shape[0], -1);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.size, 0);
    assert_int_equal(tilth_runner_create(model, 1, &runner, &error), TILTH_OK);
    for (int64_t n = 2; n <= 300; n += n < 20 ? 1 : 35) {
        static float x[900], y[900];
        const int64_t shape[] = { n, 3 }, *shapes[] = { shape };
        for (int i = 0; i < 900; i++)
            x[i] = (float)(i + n);
        if (tilth_runner_set_shapes(runner, shapes, &error) != TILTH_OK)
            fail_msg("%s", error.text);
        size_t size = sizeof *x * 3 * (size_t)n;
        assert_int_equal(tilth_runner_input(runner, 0, &info, &error), TILTH_OK);
        assert_int_equal(info.shape[0], n);
        assert_int_equal(info.size, size);
        assert_int_equal(tilth_runner_output_most(runner, 0, &info, &error), TILTH_OK);
        assert_int_equal(info.size, size);
        assert_int_equal(tilth_runner_write_input(runner, 0, x, size, &error), TILTH_OK);
        assert_int_equal(tilth_runner_run(runner, &error), TILTH_OK);
        assert_int_equal(tilth_runner_output(runner, 0, &info, &error), TILTH_OK);
        assert_int_equal(info.shape[0], n);
        assert_int_equal(tilth_runner_read_output(runner, 0, y, size, &error), TILTH_OK);
        for (int64_t i = 0; i < n * 3; i++)
            assert_true(y[i] == 2 * x[i]);
    }
    const int64_t large[] = { 301, 3 }, wide[] = { 4, 4 }, *shapes[] = { large };
    assert_int_equal(tilth_runner_set_shapes(runner, shapes, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "axis 0 (rows) is 301, not in 2..300"));
    shapes[0] = wide;
    assert_int_equal(tilth_runner_set_shapes(runner, shapes, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "input x: axis 1 is 4, not 3"));
    shapes[0] = NULL;
    assert_int_equal(tilth_runner_set_shapes(runner, shapes, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "says what rows is"));
    assert_int_equal(tilth_runner_set_shapes(runner, NULL, &error), TILTH_BAD_ARGUMENT);
    tilth_runner_destroy(runner);
    tilth_model_destroy(model);
    tl_text_free(&path);
}

static void a_file_for_all_extents(void **state)
{
    (void)state;
    expect(0, "for any rows in 2..300", "compile $D/double.onnx -o $D/r.tilth --shape x=2..300,3");
    check_saved("r.tilth");
    expect(0, "for any rows in 2..300", "compile $D/double.onnx -o $D/r.so --shape x=2..300,3");
    check_saved("r.so");
    expect(0, "\"dims\":[{\"name\":\"rows\",\"min\":2,\"max\":300}]",
           "compile $D/double.onnx -o $D/r.o --shape x=2..300,3 --json");
    expect_shell(0, "[rows, 3]", "cat $D/r.h");
    expect_shell(0, "dim     0  2..300  rows", "cat $D/r.h");
    expect(0, "for any rows in 2..300",
           "compile $D/double.onnx -o $D/r.tilth --shape x=2..300,3 --prepare later");
    check_saved("r.tilth");
    /* a loop of as many turns as there are rows */
    expect(0, "for any rows in 2..300", "compile $D/scan.onnx -o $D/s.tilth --shape x=2..300,3");
    check_saved("s.tilth");
    /* axes that the model ties together go along */
    expect(0, "for any p in 2..60",
           "compile $D/gpt.onnx -o $D/g.tilth --shape past=1,2..60,4 "
           "--shape mask=1,3..61");
}

/* Kernels of GPUs take no dims: each combination is compiled, and right. */
static void a_gpu_compiles_each(void **state)
{
    (void)state;
    expect(0, "3 calls, the model compiled 3 times",
           "verify $D/double.onnx --data $D/short --data $D/longer --data $D/longest "
           "--target cuda-emulated");
    expect(3, "kernels of GPUs take no dims",
           "compile $D/double.onnx -o $D/n.tilth --shape x=2..9,3 --target cuda-emulated");
    expect(3, "kernels of GPUs take no dims",
           "bench $D/double.onnx --shape x=2..9,3 --target cuda-emulated");
}

static void what_is_refused(void **state)
{
    (void)state;
    expect(2, "is not a list of 1 to", "compile $D/double.onnx -o $D/n.so --shape x=9..3,3");
    expect(2, "is not a list of 1 to", "compile $D/double.onnx -o $D/n.so --shape x=..3,3");
    expect(2, "one shape is wanted here", "run $D/double.onnx --shape x=2..3,3");
    expect(2, "is 3 in the model", "compile $D/double.onnx -o $D/n.so --shape x=2,3..4");
    expect(2, "no input called 'z'", "compile $D/double.onnx -o $D/n.so --shape z=2..9,3");
    expect(2, "more than 65536 combinations",
           "compile $D/double.onnx -o $D/n.so --shape x=2..99999,3");
    expect(3, "where p is 60",
           "compile $D/gpt.onnx -o $D/n.so --shape past=1,2..60,4 --shape mask=1,3..99");
    expect(3, "kernels of GPUs take no dims",
           "compile $D/double.onnx -o $D/n.tilth --shape x=2..9,3 --target cuda,sm_90");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_share_a_model),    cmocka_unit_test(data_sets_in_a_folder),
        cmocka_unit_test(open_models_are_shown),  cmocka_unit_test(runs_write_folders),
        cmocka_unit_test(a_file_for_all_extents), cmocka_unit_test(a_gpu_compiles_each),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("shapes on the command line", tests, set_up, cli_tear_down);
}
