/* tests/driver/test_cuda_cli.c: models on a GPU as a user meets them, by the driver without a GPU that executes kernels in
 * the emulator (tests/gpu/emulated_driver.c): what runs, what is verified, what is written, and how each thing that goes
 * wrong ends. */
#include "tests/driver/cli_run.h"

/* Before a line: the driver, and what FAKE_CUDA says. */
#define GPU \
    "export TILTH_CUDA_LIBRARY=${TILTH%/*}/tests/gpu/libcuda_emulated.so TILTH_PTX_WITH_IR=1; "
#define FAKE(what) GPU "FAKE_CUDA=" what " "

static const char product[] =
    "kernel product(A: f32[8, 16], const B: f32[16, 8], out C: f32[8, 8])\n"
    "  for i in 0..8\n    for j in 0..8\n      for k in 0..16\n"
    "        block product\n          spatial i, j\n          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n";

static int write_kernel(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/product.tk", cli_folder);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return -1;
    fputs(product, file);
    return fclose(file);
}

static int set_up(void **state)
{
    if (cli_set_up(state) != 0 || write_kernel() != 0)
        return -1;
    tl_text out = { 0 };
    int code = cli_shell(&out, "$TILTH model bert_tiny -o $D/m.onnx --shape input_ids=1,4 -q");
    tl_text_free(&out);
    return code;
}

static void info_shows_them_or_why_there_is_none(void **state)
{
    (void)state;
    expect_shell(
        0,
        "gpu         cuda:0 Fake GPU 0 (sm_90), 132 multiprocessors, 1.1 GB (1.1 free), CUDA 12.8",
        GPU "$TILTH info --quick");
    expect_shell(0, "cuda:1 Fake GPU 1 (sm_80)", FAKE("devices=2,sm=80") "$TILTH info --quick");
    expect_shell(0,
                 "\"record\":\"gpu\",\"type\":\"cuda\",\"present\":true,\"number\":0,\"name\":"
                 "\"Fake GPU 0\"",
                 GPU "$TILTH info --quick --json");
    expect_shell(0, "gpu         none for cuda: the CUDA driver finds no GPU",
                 FAKE("no-device") "$TILTH info --quick");
    expect_shell(0, "\"present\":false,\"why\":\"there is no CUDA driver: TILTH_CUDA_LIBRARY",
                 "TILTH_CUDA_LIBRARY=/nowhere/libcuda.so.1 $TILTH info --quick --json");
}

static void a_model_runs_and_is_right(void **state)
{
    (void)state;
    expect_shell(0, "pooler_output: f32[1, 128]", GPU "$TILTH run $D/m.onnx --target cuda");
    /* from the cache, with what the driver made of the PTX */
    expect_shell(0, "\"from_cache\":true", GPU "$TILTH run $D/m.onnx --target cuda:0 --json");
    expect_shell(0, "18 kernels checked against their naive programs, 0 differ: ok",
                 GPU "$TILTH verify $D/m.onnx --target cuda");
    expect_shell(0, "of f32 that Fake GPU 0 has at 1980 MHz",
                 GPU "$TILTH bench $D/m.onnx --target cuda --seconds 0.2");
}

/* The same five best classes, with the same three digits. */
static void outputs_are_those_of_the_cpu(void **state)
{
    (void)state;
    expect_shell(
        0, "the same five",
        GPU
        "for t in cpu cuda; do $TILTH run $D/m.onnx --seed 3 --target $t 2>/dev/null | tail -5 | "
        "cut -c 1-17 >$D/$t; done; test $(wc -l <$D/cpu) = 5 && cmp $D/cpu $D/cuda && "
        "echo the same five");
}

static void a_data_set_is_collected_on_it(void **state)
{
    (void)state;
    expect_shell(0, "\"tasks_done\":1,\"known\":0,\"measured\":5,\"failed\":0",
                 FAKE("slow-launch=1") "$TILTH dataset collect $D/product.tk --target cuda "
                                       "--per-task 5 --budget 60s --db $D/points.db -q --json");
    expect_shell(0, "5, 0 come to another program", "$TILTH dataset info $D/points.db --rebuild");
    expect_shell(5, "the CUDA driver finds no GPU",
                 FAKE("no-device") "$TILTH dataset collect $D/product.tk --target cuda,sm_80 "
                                   "--per-task 5 --budget 20s --db $D/none.db -q");
    expect_shell(3, "nvptx64: nothing runs there",
                 GPU "$TILTH dataset collect $D/product.tk --target nvptx64 --db $D/none.db -q");
}

static void kernels_are_timed_and_tuned(void **state)
{
    (void)state;
    expect_shell(0, "of f32 that Fake GPU 0 has at 1980 MHz",
                 GPU "$TILTH bench $D/product.tk --target cuda --seconds 0.2");
    expect_shell(0, "trials    3 in",
                 FAKE(
                     "slow-launch=1") "$TILTH tune $D/product.tk --target cuda --trials 3 --no-db");
    expect_shell(3, "nothing runs there; --target cuda is a GPU of this machine",
                 GPU "$TILTH tune $D/product.tk --target nvptx64 --trials 3 --no-db");
    /* an emulated device's records are of another target, although code for both is the same */
    expect_shell(0, "2 targets",
                 GPU "export FAKE_CUDA=slow-launch=1; for t in cuda-emulated cuda; do $TILTH tune "
                     "$D/product.tk --target $t --trials 1 --db $D/both.db "
                     "-q; done >/dev/null; echo $($TILTH db ls --db $D/both.db "
                     "--json | grep -o '\"target\":\"[^\"]*\"' | sort -u | "
                     "wc -l) targets");
}

static void what_is_compiled_has_ptx(void **state)
{
    (void)state;
    expect_shell(0, "18 kernels for sm_80",
                 "$TILTH compile $D/m.onnx -o $D/m.tilth --target cuda,sm_80");
    expect_shell(0, "\"device\":\"cuda\"", "cat $D/m.tilth/executable.json");
    expect_shell(0, "wrote", "$TILTH compile $D/m.onnx -o $D/m.so --target cuda,sm_80");
    expect_shell(0, "it declares model_m",
                 "$TILTH compile $D/m.onnx -o $D/m.o --target cuda,sm_80");
    expect_shell(0, ".target sm_80",
                 "$TILTH compile $D/m.onnx -o $D/m.ptx --target cuda,sm_80 && cat $D/m.ptx");
    expect_shell(0, "\"native\":{\"arch\":\"sm_90\"",
                 GPU "$TILTH compile $D/m.onnx -o $D/n.tilth --target cuda && cat "
                     "$D/n.tilth/executable.json");
    expect_shell(3, "sm_20 is too old: sm_70 or a newer one is needed; known are sm_70",
                 "$TILTH compile $D/m.onnx -o $D/x.tilth --target cuda,sm_20");
    expect_shell(3, "sm_999 is not known: its GPUs run code for sm_90",
                 "$TILTH compile $D/m.onnx -o $D/x.tilth --target nvptx64,sm_999");
    expect_shell(2, "there is no GPU target sm_xx; known are sm_70",
                 "$TILTH compile $D/m.onnx -o $D/x.tilth --target cuda,sm_xx");
}

/* Each thing that goes wrong: its status, its sentence, and no result. */
static void what_goes_wrong_is_said(void **state)
{
    (void)state;
    expect_shell(
        5, "there is no CUDA driver: libcuda.so.1 is neither",
        "test ! -e /usr/local/nvidia/lib64/libcuda.so.1 || { echo there is no CUDA driver: "
        "libcuda.so.1 is neither; exit 5; }; $TILTH run $D/m.onnx --target cuda");
    expect_shell(5, "the CUDA driver finds no GPU",
                 FAKE("no-device") "$TILTH run $D/m.onnx --target cuda");
    expect_shell(5, "is of CUDA 10.2, 11.0 is needed",
                 FAKE("version=10020") "$TILTH run $D/m.onnx --target cuda");
    expect_shell(5, "there is no device cuda:1: this machine has 1",
                 GPU "$TILTH run $D/m.onnx --target cuda:1");
    expect_shell(2, "there is no device cuda:one", GPU "$TILTH run $D/m.onnx --target cuda:one");
    expect_shell(3, "nothing runs there; --target cuda is a GPU of this machine",
                 GPU "$TILTH run $D/m.onnx --target nvptx64");
    expect_shell(3, "code for sm_90a does not run on Fake GPU 0, which is sm_80",
                 FAKE("sm=80") "$TILTH run $D/m.onnx --target cuda:0,sm_90a");
    expect_shell(5, "Fake GPU 0 has 1000000 bytes of memory, not",
                 FAKE("memory=1000000") "$TILTH run $D/m.onnx --target cuda");
    expect_shell(5, "Fake GPU 0 is lost until another process opens it",
                 FAKE("lose-launch=5") "$TILTH run $D/m.onnx --target cuda");
    expect_shell(0, "no result",
                 FAKE("lose-launch=5") "$TILTH run $D/m.onnx --target cuda 2>/dev/null | grep -q "
                                       "pooler || echo no result");
    expect_shell(3, "the driver (CUDA 12.8) does not take its code (218)",
                 FAKE("fail-load=1") "$TILTH run $D/m.onnx --target cuda --no-cache");
    expect_shell(1, "differ", FAKE("wrong-launch=3") "$TILTH verify $D/m.onnx --target cuda");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_shows_them_or_why_there_is_none),
        cmocka_unit_test(a_model_runs_and_is_right),
        cmocka_unit_test(outputs_are_those_of_the_cpu),
        cmocka_unit_test(a_data_set_is_collected_on_it),
        cmocka_unit_test(kernels_are_timed_and_tuned),
        cmocka_unit_test(what_is_compiled_has_ptx),
        cmocka_unit_test(what_goes_wrong_is_said),
    };
    return cmocka_run_group_tests_name("models on a GPU", tests, set_up, cli_tear_down);
}
