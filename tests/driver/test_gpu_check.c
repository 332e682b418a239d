/* tests/driver/test_gpu_check.c: what gpu-check compares with, without a GPU: libraries of other people that are not there
 * (tests/gpu/peers/fake_libraries.c) on the driver without a GPU, what of them fails, and what check.sh makes of it. */
#include "tests/driver/cli_run.h"

/* Before a line: the driver, the libraries, the program. */
#define PEERS                                                                \
    "B=${TILTH%/*}; export TILTH_CUDA_LIBRARY=$B/tests/gpu/libcuda_fake.so " \
    "TILTH_PEERS=$B/tests/gpu/peers/fake FAKE_CUDA=sm=90; peers=$B/tests/gpu/peers/peers; "
#define SMALL "-d 64 -s 0.01 "

static void every_case_is_right_by_every_library(void **state)
{
    (void)state;
    expect_shell(0, "14 right, 0 of them wrong",
                 PEERS "for c in $($peers -l); do $peers " SMALL
                       "$c || exit; done >$D/all; echo \"$(grep -c '\"ok\":true' $D/all) right, "
                       "$(grep -c '\"ok\":false' $D/all) of them wrong\"");
    expect_shell(0,
                 "\"kernel\":\"gemm_bf16\",\"peer\":\"cublaslt\",\"version\":\"12.8.3\",\"ways\":3",
                 "cat $D/all");
    expect_shell(0, "\"kernel\":\"attention_bf16\",\"peer\":\"cudnn\",\"version\":\"9.13.0\"",
                 "cat $D/all");
    expect_shell(0, "\"kernel\":\"copy_f32\",\"peer\":\"driver\"", "cat $D/all");
}

/* As in an archive's root: the driver is where the system looks, and no variable names it. */
static void libraries_use_the_driver_of_the_system(void **state)
{
    (void)state;
    expect_shell(0, "\"peer\":\"cublas\",\"version\":",
                 PEERS "mkdir -p $D/system; cp $TILTH_CUDA_LIBRARY $D/system/libcuda.so.1; "
                       "unset TILTH_CUDA_LIBRARY; LD_LIBRARY_PATH=$D/system $peers " SMALL
                       "gemm_f32");
}

/* The slower ways of cuBLASLt and cuDNN do not count. */
static void the_fastest_way_counts(void **state)
{
    (void)state;
    expect_shell(0, "\"ways\":3,\"way\":0", PEERS "FAKE_PEERS=slow $peers " SMALL "gemm_f32");
    expect_shell(0, "\"ways\":4,\"way\":0", PEERS "FAKE_PEERS=slow $peers " SMALL "conv_bf16");
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    expect_shell(1, "\"ok\":false", PEERS "FAKE_PEERS=wrong $peers " SMALL "gemm_bf16");
    expect_shell(1, "a library says something else than the definition of conv_f32",
                 PEERS "FAKE_PEERS=wrong $peers " SMALL "conv_f32 2>&1");
}

static void what_is_not_there_is_skipped(void **state)
{
    (void)state;
    expect_shell(0, "\"peer\":\"cublas\",\"skipped\":\"cublasCreate failed: ",
                 PEERS "FAKE_PEERS=fail-create $peers " SMALL "gemm_f32");
    expect_shell(0, "\"skipped\":\"it has no algorithm for this\"",
                 PEERS "FAKE_PEERS=none $peers " SMALL "gemm_f32");
    expect_shell(0, "\"skipped\":\"attention as one operation came with cuDNN 9.13\"",
                 PEERS "FAKE_PEERS=old $peers " SMALL "attention_bf16");
    expect_shell(0, "\"skipped\":\"none of 0 engines takes it\"",
                 PEERS "FAKE_PEERS=none $peers " SMALL "attention_bf16");
    expect_shell(5, "the CUDA driver finds no GPU",
                 PEERS "FAKE_CUDA=no-device $peers " SMALL "gemm_f32 2>&1");
    expect_shell(5, "CUDA_ERROR_ILLEGAL_ADDRESS",
                 PEERS "FAKE_CUDA=lose-launch=1 $peers " SMALL "gemm_f32 2>&1");
    expect_shell(5, "has 100000 bytes of memory",
                 PEERS "FAKE_CUDA=memory=100000 $peers gemm_f32 2>&1");
    expect_shell(2, "usage: peers", PEERS "$peers gemm_f99 2>&1");
    expect_shell(2, "usage: peers", PEERS "$peers -d 0 gemm_f32 2>&1");
    expect_shell(2, "usage: peers", PEERS "$peers 2>&1");
}

/* The same computations as kernels of ours. */
static void every_case_is_a_kernel(void **state)
{
    (void)state;
    expect_shell(0, "10 kernels",
                 PEERS
                 "n=0; for c in $($peers -l); do $peers -k " SMALL "$c >$D/$c.tk && $TILTH "
                 "schedule $D/$c.tk --target cuda,sm_80 --default --verify >/dev/null || exit; "
                 "n=$((n + 1)); done; echo $n kernels");
}

/* check.sh with a tilth that says what it is told, in no time: what becomes of answers, of failures and of time that is over. */
#define CHECK                                                                                \
    PEERS "mkdir -p $D/bin; cat >$D/bin/tilth <<'E'\n"                                       \
          "#!/bin/sh\n"                                                                      \
          "case $1 in\n"                                                                     \
          "info) echo '{\"record\":\"gpu\",\"present\":true,\"arch\":\"sm_90\"}' ;;\n"       \
          "model) : >$4 ;;\n"                                                                \
          "bench) echo '{\"record\":\"kernel\",\"name\":\"x\",\"min_ns\":1800}'\n"           \
          "  echo '{\"record\":\"model\",\"model\":\"'$2'\",\"min_ns\":5000}' ;;\n"          \
          "tune) echo '{\"record\":\"task\",\"name\":\"x\",\"best_ns\":1200.5}' ;;\n"        \
          "verify) case $2 in *$WRONG) echo it differs >&2; exit 1 ;; esac ;;\n"             \
          "esac\nE\n"                                                                        \
          "cat >$D/bin/python3 <<'E'\n"                                                      \
          "#!/bin/sh\n"                                                                      \
          "echo '{\"record\":\"peer\",\"model\":\"bert_tiny\",\"peer\":\"pytorch\",\"way\":" \
          "\"graphs\",\"min_ns\":12500}'\nE\n"                                               \
          "chmod +x $D/bin/*; export WRONG=none; PATH=$D/bin:$PATH; "                        \
          "check() { tests/gpu/check.sh $D/bin/tilth -o $D/c.jsonl -s 64 \"$@\" 2>&1; }; "

static void answers_stand_beside_others(void **state)
{
    (void)state;
    expect_shell(
        0, "gemm_f32                       1800 ns, cublas       3600 ns: 2.000 times as fast",
        CHECK "check -p $peers bert_tiny");
    expect_shell(0,
                 "{\"record\":\"comparison\",\"kernel\":\"softmax_f32\",\"ours_ns\":1800,\"peer\":"
                 "\"cudnn\",\"peer_ns\":3600,\"times_as_fast\":2.000}",
                 "cat $D/c.jsonl");
    expect_shell(0,
                 "\"kernel\":\"gemm_f32\",\"ours\":\"tuned\",\"ours_ns\":1200,\"peer\":\"cublas\","
                 "\"peer_ns\":3600,\"times_as_fast\":3.000",
                 "cat $D/c.jsonl");
    expect_shell(0,
                 "\"model\":\"bert_tiny\",\"ours_ns\":5000,\"peer\":\"pytorch graphs\","
                 "\"peer_ns\":12500,\"times_as_fast\":2.500",
                 CHECK "check -y networks.py bert_tiny; cat $D/c.jsonl");
    expect_shell(0, "skip  peers: there is no program for them",
                 CHECK "check -y networks.py bert_tiny");
}

static void what_fails_is_told(void **state)
{
    (void)state;
    expect_shell(1, "the first model is wrong: nothing else is looked at",
                 CHECK "WRONG=bert_tiny.onnx check bert_tiny");
    expect_shell(1, "FAILED verify resnet18: it differs",
                 CHECK "WRONG=resnet18.onnx check bert_tiny resnet18");
    /* a clock on which every look takes a hundred seconds */
    expect_shell(0, "\"step\":\"data\",\"skipped\":\"no time is left\"",
                 CHECK "echo 0 >$D/now; echo 'n=$(cat $D/now); echo $((n + 100)) >$D/now; echo $n' "
                       ">$D/bin/date; chmod +x $D/bin/date; check bert_tiny; cat $D/c.jsonl; "
                       "rm $D/bin/date");
    expect_shell(5, "no GPU: the driver finds none",
                 CHECK "echo 'echo \\{\\\"present\\\":false,\\\"why\\\":\\\"the driver finds "
                       "none\\\"\\}' >$D/bin/tilth; check bert_tiny");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_is_right_by_every_library),
        cmocka_unit_test(libraries_use_the_driver_of_the_system),
        cmocka_unit_test(the_fastest_way_counts),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(what_is_not_there_is_skipped),
        cmocka_unit_test(every_case_is_a_kernel),
        cmocka_unit_test(answers_stand_beside_others),
        cmocka_unit_test(what_fails_is_told),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
