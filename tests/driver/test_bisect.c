/* tests/driver/test_bisect.c: tilth verify --bisect and --without: everything that can be left out is, one by one and all
 * together, and what changes a sum is named. */
#include "driver/pipeline/model.h"
#include "models/onnx_write.h"
#include "tests/driver/cli_run.h"

/* y = Softmax(Gelu-like(BatchNormalization(Conv(x)))). */
static void write_net(void)
{
    static float ones[8], thirds[8];
    char path[256];
    for (int i = 0; i < 8; i++) {
        ones[i] = 1;
        thirds[i] = (float)(i + 1) / 3;
    }
    tl_onnx_build *b = tl_onnx_build_create("net", 17, 1);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(1, 3, 9, 9)),
               *w = tl_build_normal(b, "w", 0, 0.3, TL_DIMS(8, 3, 3, 3)),
               *scale = tl_build_weight(b, "scale", TL_F32, TL_DIMS(8), thirds),
               *bias = tl_build_weight(b, "bias", TL_F32, TL_DIMS(8), ones),
               *variance = tl_build_weight(b, "variance", TL_F32, TL_DIMS(8), thirds),
               *c = tl_build_node(b, "Conv", "conv", TL_NAMES(x, w)),
               *n = tl_build_node(b, "BatchNormalization", "norm",
                                  TL_NAMES(c, scale, bias, scale, variance)),
               *r = tl_build_node(b, "Relu", "relu", TL_NAMES(n));
    tl_build_output(b, tl_build_rename(b, "y"), TL_F32, TL_DIMS(1, 8, 7, 7));
    (void)r;
    snprintf(path, sizeof path, "%s/net.onnx", cli_folder);
    assert_int_equal(tl_onnx_build_write(b, path, NULL), TL_OK);
    tl_onnx_build_destroy(b);
}

static void each_can_be_left_out(void **state)
{
    (void)state;
    tl_text all = { 0 };
    const char *name;
    write_net();
    expect(0, "", "model efficientnet_b0 --shape input=1,3,64,64 -o $D/cnn.onnx");
    expect(0, "", "model bert_tiny --shape input_ids=1,16 -o $D/bert.onnx");
    static const char *const models[] = { "net", "cnn", "bert" };
    for (int i = 0; (name = tl_model_switch(i)) != NULL; i++) {
        char arguments[160];
        tl_text_format(&all, "%s%s", i > 0 ? "," : "", name);
        for (int m = 0; m < 3; m++) {
            snprintf(arguments, sizeof arguments, "verify $D/%s.onnx --no-db --without %s",
                     models[m], name);
            expect(0, "0 differ: ok", arguments);
        }
    }
    for (int m = 0; m < 3; m++) {
        tl_text arguments = { 0 };
        tl_text_format(&arguments, "verify $D/%s.onnx --no-db --without %s", models[m],
                       tl_text_get(&all));
        expect(0, "0 differ: ok", tl_text_get(&arguments));
        tl_text_free(&arguments);
    }
    tl_text_free(&all);
    expect(2, "'frob' cannot be left out; these can: fold_weights",
           "verify $D/net.onnx --without fusion,frob");
    expect(2, "one of them", "verify $D/net.onnx --without fusion --bisect");
}

static void what_makes_an_output_differ(void **state)
{
    (void)state;
    write_net();
    expect(0, "no output differs", "verify $D/net.onnx --bisect");
    expect(0, "{\"record\":\"bisect\",\"found\":null,\"trials\":2}",
           "verify $D/net.onnx --bisect --json");
    expect(1, "y differs from fold_batch_norm on",
           "verify $D/net.onnx --bisect --rtol 0 --tolerance 0");
    expect(1, "\"output\":\"y\",\"found\":\"fold_batch_norm\"",
           "verify $D/net.onnx --bisect --rtol 0 --tolerance 0 --json");
    expect_shell(1, "differ without any of it",
                 "mkdir $D/data; $TILTH run $D/net.onnx -i x=random:1 -o $D/data -q; "
                 "$TILTH verify $D/net.onnx --data $D/data -i x=random:2 --bisect");
    expect(0, "no output differs", "verify $D/net.onnx --data $D/data -i x=random:1 --bisect");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_can_be_left_out),
        cmocka_unit_test(what_makes_an_output_differ),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
