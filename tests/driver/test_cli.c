/* tests/driver/test_cli.c: the command line as a user meets it: results, sentences, exit statuses. Runs the binary that was
 * built beside this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ir/graph/graph.h"
#include "ir/program/target.h"
#include "runtime/base/file.h"
#include "tests/driver/cli_run.h"

static void help_and_usage(void **state)
{
    (void)state;
    expect(0, "usage: tilth VERB", "--help");
    expect(0, "usage: tilth bench", "help bench");
    expect(0, "tilth 0.", "--version");
    expect(0, "LLVM ", "--version");
    expect(2, "did you mean bench?", "benhc");
    expect(2, "usage: tilth VERB", "");
    expect(2, "unknown verb 'frobnicate'", "frobnicate");
    static const char *const verbs[] = { "info",   "inspect",  "run",    "verify",
                                         "bench",  "compile",  "model",  "cache",
                                         "reduce", "transfer", "dataset" };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --help", verbs[i]);
        expect(0, "exit status:", arguments);
        snprintf(arguments, sizeof arguments, "%s --frob", verbs[i]);
        expect(2, "unknown option --frob", arguments);
    }
    expect(2, "did you mean --threads?", "run m.onnx --thread 2");
    expect(2, "'two' is not a whole number", "run m.onnx --threads two");
    expect(2, "--threads needs a value", "run m.onnx --threads");
    expect(2, "an argument is missing", "run");
    expect(2, "one argument too many: 'b'", "run a b");
    expect(2, "--threads: -1", "run m.onnx --threads -1");
    expect(2, "--quick takes no value", "info --quick=1");
    expect(2, "one argument too many: 'x' (usage: tilth info)", "info x");
    expect(5, "cannot write to stdout", "--help >/dev/full");
}

static void info_tells_the_machine(void **state)
{
    (void)state;
    expect(0, "vector", "info --quick");
    expect(0, "{\"record\":\"machine\"", "info --quick --json");
}

static void files_that_are_no_models(void **state)
{
    (void)state;
    tl_text path = { 0 };
    expect(2, "absent.onnx: No such file or directory", "run $D/absent.onnx");
    expect(2, "not a regular file", "inspect $D");
    tl_text_format(&path, "%s/empty.onnx", cli_folder);
    assert_int_equal(tl_file_write(tl_text_get(&path), "", 0, NULL), TL_OK);
    expect(3, "empty.onnx", "inspect $D/empty.onnx");
    tl_text_free(&path);
    tl_text_format(&path, "%s/text.onnx", cli_folder);
    assert_int_equal(tl_file_write(tl_text_get(&path), "hello, world\n", 13, NULL), TL_OK);
    expect(3, "text.onnx", "verify $D/text.onnx");
    tl_text_free(&path);
}

/* Every verb that takes a target names all that there are. */
static void targets_are_named(void **state)
{
    (void)state;
    static const char *const verbs[] = { "run", "bench", "compile", "schedule" };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --help", verbs[i]);
        for (int isa = 0; isa < TL_ISA_COUNT; isa++)
            expect(0, tl_isa_infos[isa].text, arguments);
        expect(0, "--target cpu|x86-64|", arguments);
    }
}

/* Written from the verbs' own tables, and readable by what reads it. */
static void completion_and_manual(void **state)
{
    (void)state;
    expect_shell(0, "fine", "$TILTH complete bash >$D/bash && bash -n $D/bash && echo fine");
    expect_shell(0, "--threads --target",
                 "bash -c 'source $D/bash; COMP_WORDS=(tilth bench --t) COMP_CWORD=2; _tilth; "
                 "echo \"${COMPREPLY[@]}\"'");
    expect_shell(0, "x86-64-v3",
                 "bash -c 'source $D/bash; COMP_WORDS=(tilth run --target x) COMP_CWORD=3; _tilth; "
                 "echo \"${COMPREPLY[@]}\"'");
    expect_shell(0, "resnet18",
                 "bash -c 'source $D/bash; COMP_WORDS=(tilth model res) COMP_CWORD=2; _tilth; "
                 "echo \"${COMPREPLY[@]}\"'");
    expect_shell(0, "a.tk",
                 "mkdir $D/c; touch $D/c/a.tk $D/c/b.txt; bash -c 'source $D/bash; "
                 "COMP_WORDS=(tilth bench $D/c/) COMP_CWORD=2; _tilth; echo \"${COMPREPLY[@]}\"' | "
                 "grep -v txt");
    expect_shell(0, "#compdef tilth",
                 "$TILTH complete zsh >$D/zsh; if command -v zsh >/dev/null; then zsh -n $D/zsh || "
                 "exit 1; fi; cat $D/zsh");
    expect(2, "'fish' is no shell it knows", "complete fish");
    expect(0, ".SH EXIT STATUS", "man");
    expect(0, ".SS \"tilth inspect MODEL.onnx\"", "man");
}

/* The page of the operators is what the tables say; GOLDEN_UPDATE=1 (make golden) writes it. */
static void operators_are_listed(void **state)
{
    (void)state;
    expect(0, "\nGemm                         1 to 28            3  2 to 3     yes\n",
           "inspect --operators");
    expect(0, "\nSequenceMap                  refused: ", "inspect --operators");
    expect(0, "\ncom.microsoft.Gelu           1 and later        1  1          yes\n",
           "inspect --operators");
    expect(0,
           "{\"record\":\"operator\",\"name\":\"Concat\",\"since\":1,\"until\":28,\"forms\":2,"
           "\"min_inputs\":1,\"max_inputs\":null,\"takes_counted\":true}",
           "inspect --operators --json");
    expect(2, "an argument is missing", "inspect");
    expect(2, "goes without a model", "inspect m.onnx --operators");
    expect(2, "--markdown goes with --operators", "inspect m.onnx --markdown");
    expect(2, "one at a time", "inspect --operators --dot");
    const char *line =
        "$TILTH inspect --operators --markdown -o $D/ops.md && "
        "if [ -n \"$GOLDEN_UPDATE\" ]; then cp $D/ops.md frontend/OPERATORS.md; fi && "
        "cmp $D/ops.md frontend/OPERATORS.md && echo same";
    expect_shell(0, "same", line);
}

static void colours_are_for_terminals(void **state)
{
    (void)state;
    expect_shell(0, "none", "$TILTH run absent.onnx 2>&1 | grep -c $(printf '\\033') || echo none");
}

/* What `inspect --graph` has written is the text of a graph. */
static void reads_back(const char *path)
{
    tl_arena *arena = tl_arena_create(0);
    tl_text text = { 0 }, again = { 0 };
    tl_graph *g;
    tl_diag diag = { 0 };
    if (tl_file_read(path, &text, &diag) != TL_OK ||
        tl_graph_parse(arena, tl_text_get(&text), path, &g, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_true(g->node_count > 0);
    tl_graph_print(g, &again);
    assert_string_equal(tl_text_get(&again), tl_text_get(&text));
    tl_text_free(&text);
    tl_text_free(&again);
    tl_arena_destroy(arena);
}

/* One small real network through every verb. */
static void a_network_through_every_verb(void **state)
{
    (void)state;
    expect(0, "bert_tiny", "model bert_tiny -o $D/m.onnx --seed 3");
    expect(0, "GFLOP a run", "inspect $D/m.onnx");
    expect(0, "workload", "inspect $D/m.onnx --kernels");
    expect(0, "by the plan", "inspect $D/m.onnx --quick");
    expect(0, "roofline", "inspect $D/m.onnx");
    expect(0, "\"expected_ns\"", "inspect $D/m.onnx --json --quick");
    expect(0, "subgraph cluster_3", "inspect $D/m.onnx --dot");
    expect(0, "graph bert_tiny", "inspect $D/m.onnx --graph");
    expect(0, "wrote", "inspect $D/m.onnx --graph -o $D/m.graph");
    char path[sizeof cli_folder + 16];
    snprintf(path, sizeof path, "%s/m.graph", cli_folder);
    reads_back(path);
    expect(0, ".columns ", "inspect $D/m.onnx --space");
    expect(0, " points, error within", "inspect $D/m.onnx --space");
    expect(0, "[expert] tiling", "inspect $D/m.onnx --space");
    expect(0, "\"exact\":", "inspect $D/m.onnx --space --json");
    expect(2, "one at a time", "inspect $D/m.onnx --space --dot");
    expect(0, "kernel ", "inspect $D/m.onnx --extract layernorm_5");
    expect(0, "wrote", "inspect $D/m.onnx --extract layernorm_5 -o $D/k.tk");
    expect(0, "wrote", "inspect $D/m.onnx --extract layernorm_5 --trace -o $D/k.tr");
    expect(2, "--trace goes with --extract", "inspect $D/m.onnx --trace");
    expect(2, "no kernel is named nonsense", "inspect $D/m.onnx --extract nonsense");
    expect(0, "wrote", "run $D/m.onnx --output $D/out --threads 1");
    expect(0, "from the cache", "run $D/m.onnx --output $D/out --threads 2");
    expect(0, "0 differ: ok", "verify $D/m.onnx --per-node");
    /* strict: the same bits as the naive programs; else sums are added up in another order */
    expect(0, "0 differ: ok",
           "verify $D/m.onnx --per-node --rtol 0 --tolerance 0 --numerics strict --no-cache");
    expect(1, "differ: WRONG", "verify $D/m.onnx --per-node --rtol 0 --tolerance 0 --no-cache");
    expect(0, "strict kernel ", "inspect $D/m.onnx --extract matmul_add_6 --numerics strict");
    /* a network with weights that are computed before the first run (Winograd) */
    expect(0, "resnet18", "model resnet18 -o $D/r.onnx --shape input=1,3,64,64");
    expect(0, "0 differ: ok", "verify $D/r.onnx --per-node");
    expect(0, "% peak", "bench $D/m.onnx --seconds 0.2 --threads 1");
    expect(0, "\"record\":\"model\"", "bench $D/m.onnx --seconds 0.2 --json --no-cache");
    expect(0, "{\"record\":\"output\"", "run $D/m.onnx --json");
    expect(2, "none of relaxed, strict and tf32", "run $D/m.onnx --numerics sloppy");
    expect(0, "ready in", "run $D/m.onnx --numerics strict --threads 1");
    expect(2, "is not a list of", "run $D/m.onnx --shape input_ids=1,,128");
    expect(2, "the model has no such input", "run $D/m.onnx --input nonsense=x.npy");
    expect(2, "nonexistent.npy", "run $D/m.onnx --input input_ids=$D/nonexistent.npy");
    expect(2, "but input input_ids is i64[1, 128]",
           "run $D/m.onnx --input input_ids=$D/out/output_pooler_output.npy");
    expect(2, "given twice", "run $D/m.onnx -i input_ids=random:1 -i input_ids=random:2");
    expect(2, "a file is missing", "run $D/m.onnx -i input_ids=");
    expect(2, "no such folder", "run $D/m.onnx --data $D/absent");
    expect(3, "a NumPy array, not an ONNX model", "run $D/out/output_pooler_output.npy");
    expect(3, "a kernel's text, not an ONNX model", "run $D/k.tk");
    expect(5, "cannot make this folder", "run $D/m.onnx --output /proc/nowhere");
}

static void outputs_given_are_compared(void **state)
{
    (void)state;
    expect(0, "wrote", "run $D/m.onnx --output $D/data --threads 1 --seed 5");
    expect(2, "no file for input", "verify $D/m.onnx --data $D/data");
    expect(0, ": ok",
           "verify $D/m.onnx --data $D/data --input input_ids=random:5 --input "
           "attention_mask=random:5");
    expect(1, ": WRONG",
           "verify $D/m.onnx --data $D/data --input input_ids=random:6 --input "
           "attention_mask=random:5");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_and_usage),
        cmocka_unit_test(info_tells_the_machine),
        cmocka_unit_test(files_that_are_no_models),
        cmocka_unit_test(targets_are_named),
        cmocka_unit_test(completion_and_manual),
        cmocka_unit_test(operators_are_listed),
        cmocka_unit_test(colours_are_for_terminals),
        cmocka_unit_test(a_network_through_every_verb),
        cmocka_unit_test(outputs_given_are_compared),
    };
    return cmocka_run_group_tests_name("cli", tests, cli_set_up, cli_tear_down);
}
