/* tests/driver/test_emulated_cli.c: whole models on --target cuda-emulated: what is generated for a GPU runs on this CPU,
 * through the executable, its memory plan and the table of devices, and gives what the naive programs give. */
#include "tests/driver/cli_run.h"

static void models_run_emulated(void **state)
{
    (void)state;
    expect_shell(0, "0 differ: ok",
                 "$TILTH model squeezenet1_1 --shape input=1,3,32,32 -o $D/squeezenet.onnx && "
                 "$TILTH verify $D/squeezenet.onnx --target cuda-emulated");
    expect_shell(0, "0 differ: ok",
                 "$TILTH model bert_tiny --shape input_ids=1,5 -o $D/bert.onnx && "
                 "$TILTH verify $D/bert.onnx --target cuda-emulated");
    expect_shell(0, "wrote", "$TILTH run $D/bert.onnx --target cuda-emulated --output $D/emulated");
    expect_shell(0, "wrote",
                 "$TILTH run $D/bert.onnx --target cuda-emulated,sm_80 --output $D/emulated");
}

static void a_kernel_is_tuned_collected_and_timed(void **state)
{
    (void)state;
    expect_shell(0, "trials    3 in",
                 "printf '%s\n  %s\n' "
                 "'kernel small(A: f32[12, 16], const B: f32[16, 20], out C: f32[12, 20])' "
                 "'small: C[i, j] = sum(A[i, k]*B[k, j])' >$D/small.tk; "
                 "$TILTH tune $D/small.tk --trials 3 --no-db --target cuda-emulated");
    expect_shell(0, "\"measured\":4,\"failed\":0",
                 "$TILTH dataset collect $D/small.tk --per-task 4 --db $D/points.db -q --json "
                 "--target cuda-emulated,sm_80");
    expect_shell(0, "latency   min ",
                 "$TILTH bench $D/small.tk --no-db -s 0.1 --target cuda-emulated");
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    expect_shell(5, "this machine has 1", "$TILTH run $D/bert.onnx --target cuda-emulated:1");
    expect_shell(3, "GPU target sm_12 is too old: sm_70 or a newer one is needed",
                 "$TILTH run $D/bert.onnx --target cuda-emulated,sm_12");
    expect_shell(2, "no GPU target sm_xx", "$TILTH run $D/bert.onnx --target cuda-emulated,sm_xx");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_run_emulated),
        cmocka_unit_test(a_kernel_is_tuned_collected_and_timed),
        cmocka_unit_test(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests_name("emulated models", tests, cli_set_up, cli_tear_down);
}
