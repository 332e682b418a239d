/* tests/driver/test_verify_cli.c: which results `tilth verify` calls right: those that are near, and those that any program that
 * rounds may be far from. */
#include <math.h>
#include "tests/driver/cli_run.h"
#include "runtime/base/file.h"
#include "runtime/tensor/npy.h"
#include "tests/frontend/onnx_text.h"

enum { COUNT = 5 };

static void write_numbers(const char *folder, const char *name, const float *numbers)
{
    tl_text path = { 0 };
    tl_tensor t;
    const int64_t count = COUNT;
    assert_int_equal(tl_tensor_create(TL_F32, 1, &count, &t, NULL), TL_OK);
    memcpy(t.data, numbers, COUNT * sizeof *numbers);
    tl_text_format(&path, "%s/%s", cli_folder, folder);
    assert_int_equal(tl_folder_make(tl_text_get(&path), NULL), TL_OK);
    tl_text_format(&path, "/%s.npy", name);
    assert_int_equal(tl_npy_write(tl_text_get(&path), &t, NULL), TL_OK);
    tl_tensor_free(&t);
    tl_text_free(&path);
}

static int set_up(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    tl_text model = text_model("opset 13; input x f32 5; node Log x -> y; output y"), path = { 0 };
    tl_text_format(&path, "%s/log.onnx", cli_folder);
    assert_int_equal(tl_file_write(tl_text_get(&path), model.data, model.size, NULL), TL_OK);
    tl_text_free(&path);
    tl_text_free(&model);
    return 0;
}

/* The logarithm of the first number, 1e-5 of the largest, is known to some tenths; that of 0 exactly, and so are the others. */
static void what_rounding_moves_is_right(void **state)
{
    (void)state;
    const float x[COUNT] = { 2e-5f, 0, 1, 2, 0.5f };
    float y[COUNT];
    for (int i = 0; i < COUNT; i++)
        y[i] = logf(x[i]);
    write_numbers("exact", "input_x", x);
    write_numbers("exact", "output_y", y);
    expect(0, "y: largest error", "verify $D/log.onnx --data $D/exact");
    y[0] += 0.1f;
    write_numbers("near", "input_x", x);
    write_numbers("near", "output_y", y);
    expect(0, "ok (1 of 5 elements differ by more, which inputs that are off by 0.0001",
           "verify $D/log.onnx --data $D/near");
    expect(0, "\"wrong\":0,\"ill_conditioned\":1,\"elements\":5,\"ok\":true",
           "verify $D/log.onnx --data $D/near --json");
    expect(1, "WRONG", "verify $D/log.onnx --data $D/near --tolerance 1e-7");
    y[3] += 0.1f;
    write_numbers("wrong", "input_x", x);
    write_numbers("wrong", "output_y", y);
    expect(1, "WRONG (1 of 5 elements, first at 3", "verify $D/log.onnx --data $D/wrong");
    y[3] = 0;
    y[1] = 0;
    write_numbers("zero", "input_x", x);
    write_numbers("zero", "output_y", y);
    expect(1, "WRONG (2 of 5 elements, first at 1", "verify $D/log.onnx --data $D/zero");
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(what_rounding_moves_is_right) };
    return cmocka_run_group_tests_name("verify", tests, set_up, cli_tear_down);
}
