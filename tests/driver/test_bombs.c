/* tests/driver/test_bombs.c: small files that ask for much, given to `tilth run`: each is refused with a sentence, or runs,
 * within bounds of time and of memory that is resident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/tensor/npy.h"
#include "tests/driver/cli_run.h"
#include "tests/frontend/onnx_text.h"
#include "tests/support/patience.h"

typedef struct {
    int exit_code;
    double seconds, peak_mb;
    tl_text printed;
} outcome;

/* `tilth run` of the model, or another verb, in a process of its own that may take --max-memory 1G. */
static outcome run(const char *verb, const char *path)
{
    outcome out = { .exit_code = -1 };
    int ends[2], status = -1;
    struct rusage usage = { 0 };
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache", cli_folder);
    assert_int_equal(pipe(ends), 0);
    int64_t start = tl_clock_ns();
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        /* what `inspect` measures the bandwidth with is four times the last cache, whatever the model */
        const char *quick = strcmp(verb, "inspect") == 0 ? "--quick" : "-q";
        execl(cli_tilth, "tilth", verb, "--no-db", "--cache", cache, "--max-memory", "1G", quick,
              path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        tl_text_add_bytes(&out.printed, buffer, (size_t)n);
    close(ends[0]);
    wait4(child, &status, 0, &usage);
    out.seconds = (double)(tl_clock_ns() - start) * 1e-9;
    out.peak_mb = (double)usage.ru_maxrss * 1024e-6;
    out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
}

static void expect_verb(const char *verb, tl_text *model, const char *name, int exit_code,
                        const char *sentence, double seconds, double peak_mb)
{
    char path[128];
    double patience = PATIENCE * patience_of_load();
    snprintf(path, sizeof path, "%s/bomb.onnx", cli_folder);
    assert_int_equal(tl_file_write(path, tl_text_get(model), model->size, NULL), TL_OK);
    tl_text_free(model);
    outcome got = run(verb, path);
    double now = PATIENCE * patience_of_load();
    patience = now > patience ? now : patience;
    if (got.exit_code != exit_code || strstr(tl_text_get(&got.printed), sentence) == NULL)
        fail_msg("%s: exit %d (want %d), no '%s' in: %s", name, got.exit_code, exit_code, sentence,
                 tl_text_get(&got.printed));
    if (got.seconds > seconds * patience)
        fail_msg("%s: took %.1f s, not %.1f", name, got.seconds, seconds * patience);
    if (PATIENCE == 1 && got.peak_mb > peak_mb)
        fail_msg("%s: %.0f MB were resident, not %.0f", name, got.peak_mb, peak_mb);
    tl_text_free(&got.printed);
}

static void expect_run(tl_text *model, const char *name, int exit_code, const char *sentence,
                       double seconds, double peak_mb)
{
    expect_verb("run", model, name, exit_code, sentence, seconds, peak_mb);
}

/* A few numbers that ask for terabytes. */
static void giant_extents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int exit_code;
        const char *sentence;
    } cases[] = {
        { "opset 18; init s i64 2 = 1048576,1048576; node ConstantOfShape s -> y; output y", 5,
          "inputs and outputs 4.4 TB" },
        { "opset 18; init s i64 2 = 1048576,1048576; input x f32 1,1; node Expand x,s -> y; output "
          "y",
          5, "the limit of 1.1 GB (--max-memory)" },
        { "opset 18; init s i64 2 = 262144,262144; input x f32 4,4; node Tile x,s -> y; output y",
          5, "the limit of 1.1 GB (--max-memory)" },
        { "opset 18; init a i64 = 0; init b i64 = 1099511627776; init c i64 = 1; node Range a,b,c "
          "-> y; "
          "output y",
          5, "inputs and outputs 8.8 TB" },
        { "opset 18; init p i64 4 = 0,0,1048576,1048576; input x f32 4,4; node Pad x,p -> y; "
          "output y",
          5, "the limit of 1.1 GB (--max-memory)" },
        { "opset 18; init p i64 4 = 0,0,9223372036854775807,9223372036854775807; input x f32 4,4; "
          "node Pad "
          "x,p -> y; output y",
          3, "overflows" },
        { "opset 18; init s i64 2 = 1048576,1048576; input x f32 1,1; node Expand x,s -> e; node "
          "Softmax e "
          "-> f; node ReduceSum f -> y; output y",
          5, "temporaries" },
        { "opset 18; input x f32 1048576,1; input z f32 1,1048576; node MatMul x,z -> e; node "
          "Softmax e -> "
          "f; node ReduceSum f -> y; output y",
          5, "temporaries" },
        { "opset 18; input x f32 1048576,1048576; node Relu x -> y; output y", 5,
          "inputs and outputs 8.8 TB" },
        { "opset 18; input x f32 1048576,1048576; node EyeLike x -> y; output y", 5,
          "the limit of 1.1 GB (--max-memory)" },
        { "opset 18; input x f32 4,1048576; input i i64 1048576; node Gather x,i -> y; output y", 5,
          "the limit of 1.1 GB (--max-memory)" },
        { "opset 18; input x f32 1,1,4,4; init w f32 1,1,1,1 = 1; node Conv x,w -> y "
          "pads=[1073741824,"
          "1073741824,1073741824,1073741824]; output y",
          3, "overflows" },
        { "opset 18; input x f32 1,1,4,4; node MaxPool x -> y kernel_shape=[1099511627776,1]; "
          "output y",
          3, "is not in 1.." },
        { "opset 18; init n i64 = 1099511627776; node HannWindow n -> y; output y", 3,
          "a window of" },
        { "opset 18; init d i64 = 1099511627776; input x i64 100; init v f32 2 = 0,1; node OneHot "
          "x,d,v -> "
          "y; output y",
          3, "depth" },
        { "opset 18; input x f32 1073741824,1,4; init w f32 1,1,4 = 1,1,1,1; init r f32 1,1,1 = 1; "
          "node RNN "
          "x,w,r -> y hidden_size=1; output y",
          5, "the limit of 1.1 GB (--max-memory)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_text model = text_model(cases[i].text);
        expect_run(&model, cases[i].text, cases[i].exit_code, cases[i].sentence, 3, 150);
    }
}

/* Something that doubles, in functions and in bodies of loops. */
static void what_multiplies(void **state)
{
    (void)state;
    tl_text text = { 0 }, body = { 0 }, model;
    tl_text_add(&text, "opset 18; input x f32 1;");
    for (int i = 0; i < 45; i++)
        tl_text_format(&text, "node Concat %c%d,%c%d -> a%d axis=0;", i ? 'a' : 'x', i - 1,
                       i ? 'a' : 'x', i - 1, i);
    for (char *first; (first = strstr(text.data, "x-1")) != NULL;)
        memcpy(first, "x  ", 3);
    tl_text_add(&text, "output a44");
    model = text_model(tl_text_get(&text));
    tl_text_free(&text);
    expect_run(&model, "a value that doubles", 5, "(--max-memory)", 3, 150);

    tl_text_add(&body, "node Add s0,s0 -> t0");
    for (int i = 1; i <= 4; i++) {
        tl_text outer = { 0 };
        tl_text_format(
            &outer,
            "node Loop n,-,s%d -> t%d body={input i%d i64; input c%d bool; input s%d f32 1; "
            "node Identity c%d -> d%d; %s; output d%d; output t%d}",
            i, i, i, i, i - 1, i, i, tl_text_get(&body), i, i - 1);
        tl_text_free(&body);
        body = outer;
    }
    tl_text_format(&text, "opset 18; input s4 f32 1; init n i64 = 1000; %s; output t4",
                   tl_text_get(&body));
    model = text_model(tl_text_get(&text));
    tl_text_free(&text);
    tl_text_free(&body);
    /* to run it takes 10^12 turns, to read it does not */
    expect_verb("inspect", &model, "loops in loops", 0, "unsupported none", 10, 400);

    model = text_model(
        "opset 18; input x f32 1; init n i64 = 60; node Loop n,-,x -> y body={input i i64; "
        "input c bool; input s f32; node Identity c -> d; node Concat s,s -> t axis=0; "
        "output d; output t}; output y");
    expect_run(&model, "a state that doubles", 3, "overflows", 3, 150);
}

/* Many of the smallest. */
static void many_nodes(void **state)
{
    (void)state;
    tl_text text = { 0 }, nodes = { 0 }, model;
    const char *node = "Relu x -> y";
    tl_text one = text_node(&node), wrapped = { 0 };
    wire_message(&wrapped, 1, &one);
    for (int i = 0; i < 5000000; i++)
        tl_text_add_bytes(&nodes, wrapped.data, wrapped.size);
    model = text_model_with("opset 18; input x f32 1; output y", &nodes);
    expect_run(&model, "5 million nodes", 3, "more than 4194304 messages", 10, 300);
    nodes.size = 1000000 * wrapped.size;
    model = text_model_with("opset 18; input x f32 1; output y", &nodes);
    expect_run(&model, "a million nodes", 3, "the model needs more than", 20, 600);
    tl_text_free(&nodes);
    tl_text_free(&wrapped);

    tl_text_add(&text, "opset 18; input x f32 1; node Exp x -> e;");
    for (int i = 0; i < 100000; i++)
        tl_text_format(&text, "node Add a%d,e -> a%d;", i, i + 1);
    memcpy(strstr(text.data, "a0,e"), "x ,e", 4);
    tl_text_add(&text, "output a100000");
    model = text_model(tl_text_get(&text));
    tl_text_free(&text);
    expect_run(&model, "a value that 100,000 nodes read", 5,
               "compiling it takes more memory than the limit of 1.1 GB (--max-memory)", 30, 1300);

    tl_text_add(&text, "opset 18; input x f32 1; node Exp x -> e; node Concat e");
    for (int i = 1; i < 100000; i++)
        tl_text_add(&text, ",e");
    tl_text_add(&text, " -> y axis=0; output y");
    model = text_model(tl_text_get(&text));
    tl_text_free(&text);
    expect_run(&model, "a value that one node reads 100,000 times", 0, "y: f32[100000]", 20, 600);
}

/* Numbers that a run is given and no reader has seen: an index is clamped into its axis, whatever it is. x is 1, 2, 3, 4. */
static void indices_of_a_run(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rank;
        int64_t shape[2], indices[4];
        const char *printed;
    } cases[] = {
        { "input x f32 4; input i i64 4; node Gather x,i -> y; output y",
          1,
          { 4 },
          { INT64_MIN, INT64_MAX, -1, 2 },
          "least 1, largest 4, mean 3\n" },
        { "input x f32 4; input i i64 4; node GatherElements x,i -> y; output y",
          1,
          { 4 },
          { INT64_MIN, INT64_MAX, -4, 4 },
          "least 1, largest 4, mean 2.5\n" },
        { "input x f32 4; input i i64 4,1; node GatherND x,i -> y; output y",
          2,
          { 4, 1 },
          { -1000000007, 1000000007, 0, 3 },
          "least 1, largest 4, mean 2.5\n" },
        { "input x f32 4; input i i64 4; init u f32 4 = 9,9,9,9; node ScatterElements x,i,u -> y; "
          "output y",
          1,
          { 4 },
          { INT64_MIN, INT64_MAX, 1, 1 },
          "least 3, largest 9, mean 7.5\n" },
        { "input x f32 4; input i i64 4,1; init u f32 4 = 9,9,9,9; node ScatterND x,i,u -> y; "
          "output y",
          2,
          { 4, 1 },
          { INT64_MIN, INT64_MAX, 1, 1 },
          "least 3, largest 9, mean 7.5\n" },
        { "input x f32 4; input i i64 4; init d i64 = 4; init v f32 2 = 0,1; node OneHot i,d,v -> "
          "h; "
          "node ReduceSum h -> s; node Add x,s -> y; output y",
          1,
          { 4 },
          { INT64_MIN, INT64_MAX, 1, 2 },
          "least 3, largest 6" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_text text = { 0 }, line = { 0 };
        tl_text_format(&text, "opset 18; %s", cases[i].text);
        tl_text model = text_model(tl_text_get(&text));
        char path[128];
        snprintf(path, sizeof path, "%s/run.onnx", cli_folder);
        assert_int_equal(tl_file_write(path, model.data, model.size, NULL), TL_OK);
        static const float numbers[4] = { 1, 2, 3, 4 };
        tl_tensor x, indices;
        int64_t four = 4;
        assert_int_equal(tl_tensor_borrow(TL_F32, 1, &four, (void *)(uintptr_t)numbers, &x, NULL),
                         TL_OK);
        assert_int_equal(tl_tensor_borrow(TL_I64, cases[i].rank, cases[i].shape,
                                          (void *)(uintptr_t)cases[i].indices, &indices, NULL),
                         TL_OK);
        snprintf(path, sizeof path, "%s/x.npy", cli_folder);
        assert_int_equal(tl_npy_write(path, &x, NULL), TL_OK);
        snprintf(path, sizeof path, "%s/i.npy", cli_folder);
        assert_int_equal(tl_npy_write(path, &indices, NULL), TL_OK);
        tl_text_add(&line,
                    "run $D/run.onnx --no-cache --no-db --threads 1 -i x=$D/x.npy -i i=$D/i.npy");
        expect(0, cases[i].printed, tl_text_get(&line));
        tl_text_free(&text);
        tl_text_free(&model);
        tl_text_free(&line);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(giant_extents),
        cmocka_unit_test(what_multiplies),
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(indices_of_a_run),
    };
    return cmocka_run_group_tests_name("bombs", tests, cli_set_up, cli_tear_down);
}
