/* tests/driver/test_reduce.c: tilth reduce: children that end in every way, models whose bad part is known, weights in other
 * files, interruption, models that are damaged. */
#include <signal.h>
#include <sys/mman.h>
#include "driver/reduce/check_child.h"
#include "driver/reduce/draft.h"
#include "driver/reduce/edits.h"
#include "models/onnx_write.h"
#include "runtime/base/file.h"
#include "tests/driver/cli_run.h"
#include "tests/support/patience.h"

/* ---- children ---- */

static int misbehave(void *user)
{
    const char *how = user;
    if (strcmp(how, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    while (strcmp(how, "hang") == 0)
        pause();
    if (strcmp(how, "eat") == 0)
        return mmap(NULL, (size_t)1 << 34, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
               MAP_FAILED;
    return 7;
}

static bool now(void)
{
    return true;
}

static tl_child_result run_child(const tl_child *child)
{
    tl_child_result result;
    tl_diag diag = { 0 };
    assert_int_equal(tl_child_run(child, &result, &diag), TL_OK);
    return result;
}

static void ends_of_children(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        double limit_s;
        tl_child_end end;
        int code;
    } cases[] = {
        { "return", 10 * PATIENCE, TL_CHILD_EXITED, 7 },
        { "crash", 10 * PATIENCE, TL_CHILD_SIGNALLED, SIGSEGV },
        { "eat", 10 * PATIENCE, TL_CHILD_EXITED, 1 },
        { "hang", 0.05, TL_CHILD_LATE, SIGKILL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_child_result r = run_child(&(tl_child){ .run = misbehave,
                                                   .user = (void *)cases[i].how,
                                                   .limit_s = cases[i].limit_s,
                                                   .memory_gb = 4 });
        if (r.end != cases[i].end || r.code != cases[i].code)
            fail_msg("%s: end %d, code %d", cases[i].how, (int)r.end, r.code);
    }
    const tl_child stopped = { .run = misbehave, .user = "hang", .is_over = now };
    assert_int_equal(run_child(&stopped).end, TL_CHILD_STOPPED);
    static const char *const command[] = { "/bin/sh", "-c", "exit 3", NULL };
    assert_int_equal(run_child(&(tl_child){ .arguments = command }).code, 3);
    static const char *const absent[] = { "/absent", NULL };
    assert_int_equal(run_child(&(tl_child){ .arguments = absent }).code, 127);
}

/* ---- edits ---- */

static void write_model(tl_onnx_build *b, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_onnx_build_write(b, path, NULL), TL_OK);
    tl_onnx_build_destroy(b);
}

/* x -> Conv -> Relu -> Sigmoid -> Add(., Conv) -> y, and Relu -> Tanh -> z. */
static void write_net(const char *name)
{
    tl_onnx_build *b = tl_onnx_build_create("net", 17, 1);
    const char *x = tl_build_input(b, "x", TL_F32, TL_DIMS(2, 3, 8, 8)),
               *w = tl_build_normal(b, "w", 0, 0.1, TL_DIMS(16, 3, 3, 3)),
               *c = tl_build_node(b, "Conv", "conv", TL_NAMES(x, w)),
               *r = tl_build_node(b, "Relu", "relu", TL_NAMES(c)),
               *s = tl_build_node(b, "Sigmoid", "sigmoid", TL_NAMES(r)),
               *y = tl_build_node(b, "Add", "add", TL_NAMES(s, c)),
               *z = tl_build_node(b, "Tanh", "tanh", TL_NAMES(r));
    tl_build_output(b, y, TL_F32, TL_DIMS(2, 16, 6, 6));
    tl_build_output(b, z, TL_F32, TL_DIMS(2, 16, 6, 6));
    write_model(b, name);
}

static void read_net(tl_arena *arena, tl_draft *d)
{
    char path[256];
    tl_text bytes = { 0 };
    snprintf(path, sizeof path, "%s/net.onnx", cli_folder);
    assert_int_equal(tl_file_read(path, &bytes, NULL), TL_OK);
    assert_true(tl_draft_read(arena, &bytes, d));
    tl_text_free(&bytes);
    static const char *const made[] = { "conv_output_0", "relu_output_0", "sigmoid_output_0" };
    const tl_draft_type type = {
        .elem_type = 1, .dtype = TL_F32, .rank = 4, .dims = { 2, 16, 6, 6 }
    };
    for (int i = 0; i < 3; i++)
        TL_DRAFT_APPEND(d, d->graph->value_info, d->graph->n_value_info,
                        tl_draft_declare(d, made[i], &type));
}

/* What is left of the net, "inputs > nodes > outputs (weights)". */
static void expect_left(const char *want, tl_edit_make *make, int first, int end, int way)
{
    tl_arena *arena = tl_arena_create(0);
    tl_draft d;
    tl_text got = { 0 };
    read_net(arena, &d);
    if (make(&d, first, end, way)) {
        tl_draft_tidy(&d);
        for (size_t i = 0; i < d.graph->n_input; i++)
            tl_text_format(&got, "%s ", d.graph->input[i]->name);
        tl_text_add(&got, ">");
        for (size_t i = 0; i < d.graph->n_node; i++)
            tl_text_format(&got, " %s", d.graph->node[i]->name);
        tl_text_add(&got, " >");
        for (size_t i = 0; i < d.graph->n_output; i++)
            tl_text_format(&got, " %s", d.graph->output[i]->name);
        for (size_t i = 0; i < d.graph->n_initializer; i++)
            tl_text_format(&got, " (%s)", d.graph->initializer[i]->name);
    }
    assert_string_equal(tl_text_get(&got), want);
    tl_text_free(&got);
    tl_arena_destroy(arena);
}

static void edits_of_nodes(void **state)
{
    (void)state;
    enum { CONV, RELU, SIGMOID, ADD, TANH, ALL };
    write_net("net.onnx");
    expect_left("x > conv relu tanh > tanh_output_0 (w)", tl_drop_outputs, 0, 1, 0);
    expect_left("", tl_drop_outputs, 0, 2, 0);
    expect_left("", tl_cut_nodes, 0, ALL, 0);
    expect_left("conv_output_0 > relu sigmoid add tanh > add_output_0 tanh_output_0", tl_cut_nodes,
                CONV, RELU, 0);
    expect_left("> relu sigmoid add tanh > add_output_0 tanh_output_0 (conv_output_0)",
                tl_cut_nodes, CONV, RELU, 2);
    expect_left("x > conv relu sigmoid > sigmoid_output_0 (w)", tl_cut_nodes, ADD, ALL, 0);
    expect_left("", tl_cut_nodes, ADD, ALL, 1);
    expect_left("x > conv relu tanh > tanh_output_0 (w)", tl_cut_nodes, SIGMOID, TANH, 0);
    expect_left("x relu_output_0 > conv sigmoid add tanh > add_output_0 tanh_output_0 (w)",
                tl_cut_nodes, RELU, SIGMOID, 0);
    expect_left("x > conv sigmoid add tanh > add_output_0 tanh_output_0 (w)", tl_bypass_nodes, RELU,
                SIGMOID, 0);
    expect_left("", tl_bypass_nodes, CONV, RELU, 0);
}

/* ---- the verb ---- */

static void smallest_that_is_still_bad(void **state)
{
    (void)state;
    write_net("net.onnx");
    expect(0, "1 of 5 nodes", "reduce $D/net.onnx --check 'grep -q Sigmoid'");
    expect_shell(0, "", "$TILTH run $D/net.reduced.onnx --no-cache --no-db");
    expect_shell(0, "[1, 1, 1, 1]", "$TILTH inspect $D/net.reduced.onnx --no-cache --no-db");
    expect(0, "\"record\":\"reduced\"",
           "reduce $D/net.onnx --check 'grep -q Sigmoid' -o $D/r.onnx --json");
    expect(0, "\"complete\":true,\"before_nodes\":5,\"before_inputs\":1,\"before_outputs\":2",
           "reduce $D/net.onnx --check 'grep -q Sigmoid' -o $D/r.onnx --json");
    expect_shell(0, "",
                 "printf 'grep -q Conv $1 && $TILTH run $1 -q --no-cache --no-db' >$D/conv.sh;"
                 "$TILTH reduce $D/net.onnx --check \"sh $D/conv.sh\" -o $D/conv.onnx");
    expect_shell(0, "Conv 1", "$TILTH inspect $D/conv.onnx --no-cache --no-db");
    expect_shell(0, "small", "test $(stat -c %s $D/conv.onnx) -lt 800 && echo small");
    expect_shell(0, "no folder is left", "ls $D | grep 'onnx\\.' || echo no folder is left");
}

static void what_is_not_reduced(void **state)
{
    (void)state;
    write_net("net.onnx");
    expect(2, "--check is missing", "reduce $D/net.onnx");
    expect(2, "nothing to reduce: --check crash ends with exit status 0",
           "reduce $D/net.onnx --check crash");
    expect(2, "nothing to reduce: --check wrong ends with exit status 0",
           "reduce $D/net.onnx --check wrong");
    expect(2, "longer than its time", "reduce $D/net.onnx --check 'sleep 60;' --time-limit 0.1");
    expect(2, "stays as it is", "reduce $D/net.onnx --check true -o $D/./net.onnx");
    expect(2, "No such file", "reduce $D/absent.onnx --check true");
    expect_shell(3, "unknown wire type",
                 "echo no model >$D/text; $TILTH reduce $D/text --check true");
}

static void weights_in_a_file_beside(void **state)
{
    (void)state;
    expect(0, "", "model squeezenet1_1 --external -o $D/sq.onnx");
    expect(0, "1 of 65 nodes", "reduce $D/sq.onnx --check 'grep -q MaxPool' -o $D/pool.onnx");
    expect_shell(0, "sq.weights",
                 "rm $D/sq.weights; $TILTH reduce $D/sq.onnx --check true 2>&1 | "
                 "grep -o 'sq.weights'");
}

/* The best so far is kept. */
static void interruption(void **state)
{
    (void)state;
    write_net("net.onnx");
    expect_shell(130, "interrupted before it was smallest",
                 "$TILTH reduce $D/net.onnx -o $D/i.onnx --check 'sleep 0.3; grep -q Conv' & "
                 "pid=$!; sleep 1.2; kill -TERM $pid; wait $pid");
    expect_shell(0, "", "test -s $D/i.onnx");
    expect(0, "the time was over",
           "reduce $D/net.onnx -o $D/i.onnx --check 'sleep 0.2; grep -q Conv' --seconds 0.5");
}

/* Bytes that are damaged anywhere: everything that can be unpacked is reduced to something. */
static void damaged_models(void **state)
{
    (void)state;
    char path[256];
    tl_text bytes = { 0 };
    write_net("net.onnx");
    snprintf(path, sizeof path, "%s/net.onnx", cli_folder);
    assert_int_equal(tl_file_read(path, &bytes, NULL), TL_OK);
    snprintf(path, sizeof path, "%s/damaged.onnx", cli_folder);
    for (size_t at = 0; at < bytes.size; at += bytes.size / 40) {
        char before = bytes.data[at];
        bytes.data[at] ^= 0x11;
        assert_int_equal(tl_file_write(path, bytes.data, bytes.size, NULL), TL_OK);
        bytes.data[at] = before;
        tl_text out = { 0 };
        int code = cli_shell(&out, "$TILTH reduce $D/damaged.onnx --check true -o $D/d.onnx");
        if (code != 0 && code != 3)
            fail_msg("damaged at %zu: exit %d: %s", at, code, tl_text_get(&out));
        tl_text_free(&out);
    }
    tl_text_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_children),
        cmocka_unit_test(edits_of_nodes),
        cmocka_unit_test(smallest_that_is_still_bad),
        cmocka_unit_test(what_is_not_reduced),
        cmocka_unit_test(weights_in_a_file_beside),
        cmocka_unit_test(interruption),
        cmocka_unit_test(damaged_models),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
