/* tests/driver/test_schedule_cli.c: `tilth schedule` as a user meets it: sentences, exit statuses, steps, the prompt through
 * a pipe, the page, and the tour of schedule/README.md. Runs the binary that was built beside this test. */
#include "runtime/base/file.h"
#include "tests/driver/cli_run.h"
#include "tests/driver/terminal.h"

/* Runs `BEFORE tilth schedule ARGUMENTS` in the scratch folder. */
static int run(tl_text *out, const char *before, const char *arguments)
{
    tl_text line = { 0 };
    tl_text_format(&line, "cd $D; %s $TILTH schedule %s", before, arguments);
    int status = cli_shell(out, tl_text_get(&line));
    tl_text_free(&line);
    return status;
}

static void expect_after(const char *before, int exit_code, const char *part, const char *arguments)
{
    tl_text out = { 0 };
    int got = run(&out, before, arguments);
    bool found = strstr(tl_text_get(&out), part) != NULL;
    if (got != exit_code || !found)
        fail_msg("%s tilth schedule %s: exit %d (want %d), output %s '%s':\n%s", before, arguments,
                 got, exit_code, found ? "has" : "lacks", part, tl_text_get(&out));
    tl_text_free(&out);
}

static void expect_schedule(int exit_code, const char *part, const char *arguments)
{
    expect_after("", exit_code, part, arguments);
}

static void write_file(const char *name, const char *text)
{
    tl_text path = { 0 };
    tl_text_format(&path, "%s/%s", cli_folder, name);
    assert_int_equal(tl_file_write(tl_text_get(&path), text, strlen(text), NULL), TL_OK);
    tl_text_free(&path);
}

static const char kernel[] =
    "# a small product\n"
    "kernel mm(dim M in 1..40, A: f32[M, 24], B: f32[24, 20], out C: f32[M, 20])\n"
    "  for i in 0..M\n"
    "    for j in 0..20\n"
    "      for k in 0..24\n"
    "        block mm\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n";
static const char trace[] = "i, j, k = loops(mm)   # all three\n"
                            "\n"
                            "j0, j1 = split(j,\n"
                            "               [_, 4])\n"
                            "reorder(k, j1)\n"
                            "vectorize(j1)\n"
                            "parallel(i)\n";

static int set_up(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    write_file("mm.tk", kernel);
    write_file("mm.tr", trace);
    return 0;
}

static void wrong_arguments(void **state)
{
    (void)state;
    expect_schedule(0, "exit status:", "--help");
    expect_schedule(2, "an argument is missing", "");
    expect_schedule(2, "unknown option --frob", "mm.tk --frob");
    expect_schedule(2, "absent.tk: No such file", "absent.tk");
    expect_schedule(2, "absent.tr: No such file", "mm.tk absent.tr");
    expect_schedule(2, "one argument too many: 'x'", "mm.tk mm.tr x");
    expect_schedule(2, "there is no 'nonsense' to show; there are program, naive,",
                    "mm.tk --show nonsense");
    expect_schedule(2, "there is no '' to show", "mm.tk --show program,");
    expect_schedule(2, "is a CPU, whose code is shown by asm", "mm.tk --show ptx");
    expect_schedule(2, "M is in 1..40", "mm.tk --set M=41");
    expect_schedule(2, "has no such dim; its dims: M in 1..40", "mm.tk --set N=4");
    expect_schedule(2, "not of the form NAME=N", "mm.tk --set M");
    expect_schedule(2, "--threads: -1 is not in 1..", "mm.tk --threads -1");
    expect_schedule(2, "--seconds: 0 is not between", "mm.tk --bench --seconds 0");
    expect_schedule(2, "--default stands in the place of a trace", "mm.tk mm.tr --default");
    expect_schedule(2, "-i has commands for", "mm.tk -i --bench");
    expect_schedule(2, "only one file can come from standard input", "- -");
    expect_schedule(2, "-i reads commands from standard input", "- -i");
    expect_schedule(2, "diff takes two traces and a kernel", "diff mm.tr mm.tk");
    expect_schedule(2, "diff goes with --bench", "diff mm.tr mm.tr mm.tk --step");
    expect_schedule(2, "--moves goes with --try", "mm.tk --moves --bench");
    expect_schedule(2, "--moves goes with --try", "diff mm.tr mm.tr mm.tk --moves");
    expect_schedule(2, "there is no cost model 'oracle'", "mm.tk --moves --model oracle");
    expect_schedule(2, "--try: -1 is not in 0..", "mm.tk --try -1");
    expect_schedule(5, "/absent/p.html", "mm.tk mm.tr --html /absent/p.html --seconds 0.01");
}

/* What a text gets wrong is shown with its line and, where it is known, its column. */
static void mistakes_in_texts(void **state)
{
    (void)state;
    write_file("bad.tk", "kernel bad(A: f32[4], out B: f32[4])\n  for i in 0..4\n    block b\n"
                         "      spatial i\n      B[i] = A[j]\n");
    expect_schedule(3, "bad.tk:5:16: ", "bad.tk");
    expect_schedule(3, "     5 |       B[i] = A[j]\n       |                ^", "bad.tk");
    write_file("nul.tk", "");
    expect_schedule(3, "nul.tk", "nul.tk");
    write_file("bad.tr", "i, j, k = loops(mm)\nsplit(i, [_, 4]\n");
    expect_schedule(3, "bad.tr:3:", "mm.tk bad.tr");
    write_file("bad.tr", "i, j, k = loops(mm)\nunrol(i)\n");
    expect_schedule(3,
                    "bad.tr:2:1: there is no primitive unrol: did you mean unroll?\n"
                    "     2 | unrol(i)\n       | ^",
                    "mm.tk bad.tr");
    write_file("bad.tr", "# first\ni, j, k = loops(mm)\n\nparallel(\n  k) # no\n");
    expect_schedule(1, "bad.tr:4: parallel k: ", "mm.tk bad.tr");
    expect_schedule(1, "\n     4 | parallel(", "mm.tk bad.tr");
    expect_schedule(1, "in trace step 2: parallel(k)", "mm.tk bad.tr --step");
    write_file("bad.tr", "i, j, k = loops(nn)\n");
    expect_schedule(1, "bad.tr:1: there is no block nn in kernel mm; its blocks: mm",
                    "mm.tk bad.tr");
}

static void forms(void **state)
{
    (void)state;
    expect_schedule(0, "for i in 0..M parallel\n", "mm.tk mm.tr");
    expect_schedule(0, "      for k in 0..24\n", "mm.tk mm.tr --show naive");
    expect_schedule(0, "reorder(k, j_1)\n", "mm.tk mm.tr --show trace");
    expect_schedule(0, "    j_0: 2096 B = A 96 B, B 1920 B, C 80 B\n",
                    "mm.tk mm.tr --show footprint");
    expect_schedule(0, "lower_blocks\n", "mm.tk mm.tr --show passes");
    expect_schedule(0, "<4 x float>", "mm.tk mm.tr --show llvm");
    expect_schedule(0, ".text", "mm.tk mm.tr --show asm");
    expect_schedule(0, "\n\tj", "mm.tk mm.tr --show loop --target x86-64-v2");
    expect_schedule(0, "# trace\n", "mm.tk mm.tr --show trace,llvm");
    expect_schedule(0,
                    "{\"record\":\"show\",\"what\":\"trace\",\"text\":\"i, j, k = loops(mm)\\u000a",
                    "mm.tk mm.tr --show trace --json");
    expect_schedule(0, "vectorized", "mm.tk --default");
}

static void standard_input(void **state)
{
    (void)state;
    expect_after("cat mm.tr |", 0, "vectorized", "mm.tk -");
    expect_after("cat mm.tk |", 0, "vectorized", "- mm.tr");
    expect_after("echo 'unroll(i)' |", 3, "<stdin>:1:8: no step above gives a loop i", "mm.tk -");
}

static const char steps[] =
    "kernel mm(dim M in 1..40, A: f32[M, 24], B: f32[24, 20], out C: f32[M, 20])\n"
    "  for i in 0..M\n"
    "    for j in 0..20\n"
    "      for k in 0..24\n"
    "        block mm\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          C[i, j] = sum(A[i, k]*B[k, j])\n"
    "\n"
    "mm.tr:1: i, j, k = loops(mm)\n"
    "\n"
    "mm.tr:3: j0, j1 = split(j, [_, 4])\n"
    "    kernel mm(dim M in 1..40, A: f32[M, 24], B: f32[24, 20], out C: f32[M, 20])\n"
    "      for i in 0..M\n"
    "  -     for j in 0..20\n"
    "  -       for k in 0..24\n"
    "  -         block mm\n"
    "  -           spatial i, j\n"
    "  -           reduce k\n"
    "  -           C[i, j] = sum(A[i, k]*B[k, j])\n"
    "  +     for j_0 in 0..5\n"
    "  +       for j_1 in 0..4\n"
    "  +         for k in 0..24\n"
    "  +           block mm\n"
    "  +             spatial i\n"
    "  +             spatial j in 0..20 = j_0*4 + j_1\n"
    "  +             reduce k\n"
    "  +             C[i, j] = sum(A[i, k]*B[k, j])\n"
    "\n"
    "mm.tr:5: reorder(k, j1)\n"
    "    ...\n"
    "      for i in 0..M\n"
    "        for j_0 in 0..5\n"
    "  -       for j_1 in 0..4\n"
    "  -         for k in 0..24\n"
    "  +       for k in 0..24\n"
    "  +         for j_1 in 0..4\n"
    "              block mm\n"
    "                spatial i\n"
    "    ...\n"
    "\n"
    "mm.tr:6: vectorize(j1)\n"
    "    ...\n"
    "        for j_0 in 0..5\n"
    "          for k in 0..24\n"
    "  -         for j_1 in 0..4\n"
    "  +         for j_1 in 0..4 vectorized\n"
    "              block mm\n"
    "                spatial i\n"
    "    ...\n"
    "\n"
    "mm.tr:7: parallel(i)\n"
    "    kernel mm(dim M in 1..40, A: f32[M, 24], B: f32[24, 20], out C: f32[M, 20])\n"
    "  -   for i in 0..M\n"
    "  +   for i in 0..M parallel\n"
    "        for j_0 in 0..5\n"
    "          for k in 0..24\n"
    "    ...\n";

static void step_by_step(void **state)
{
    (void)state;
    tl_text out = { 0 };
    assert_int_equal(run(&out, "", "mm.tk mm.tr --step"), 0);
    assert_string_equal(tl_text_get(&out), steps);
    tl_text_free(&out);
    expect_schedule(0, "% of peak", "mm.tk mm.tr --step --bench --seconds 0.01");
    expect_schedule(
        0,
        "{\"record\":\"step\",\"line\":6,\"text\":\"vectorize(j1)\",\"removed\":1,\"added\":1,"
        "\"verified\":true,\"interpreted\":true,",
        "mm.tk mm.tr --step --verify --json");
}

static void checked_and_measured(void **state)
{
    (void)state;
    expect_schedule(0, "right: both programs interpreted, 800 elements", "mm.tk mm.tr --verify");
    expect_schedule(0, "right: both programs interpreted, 140 elements",
                    "mm.tk mm.tr --verify --set M=7");
    expect_schedule(0, "40 line",
                    "mm.tk mm.tr --set M=7 --bench --seconds 0.01 | sed 's/6720 FLOP/40 line/'");
    expect_schedule(0, "{\"record\":\"schedule\",\"verified\":true,",
                    "mm.tk mm.tr --verify --json");
    expect_schedule(0, "\"percent_of_peak\":null,\"kernel\":\"mm\"", "mm.tk mm.tr --json");
    expect_schedule(0, "\"dims\":{\"M\":7}", "mm.tk mm.tr --json --set M=7");
    /* the last line, with both */
    expect_schedule(
        0, "\"verified\":true",
        "mm.tk mm.tr --verify --bench --json --seconds 0.01 | tail -1 | grep percent_of_peak");
}

/* What a program that looks for schedules asks: which moves there are, what is expected, what is measured; and how it goes on. */
static void moves(void **state)
{
    (void)state;
    expect_schedule(0, "legal moves", "mm.tk --moves");
    expect_schedule(0, "\"kind\":\"step\",\"primitive\":\"vectorize\"", "mm.tk --moves --json");
    expect_schedule(0, "\"shown\":3,\"complete\":true,\"model\":\"analytic\"",
                    "mm.tk mm.tr --moves --limit 3 --json");
    expect_schedule(0, "\"kind\":\"decision\"", "mm.tk --default --moves --json");
    expect_schedule(0, "\"verified\":true", "mm.tk --try 2 --limit 2 --json --seconds 0.02");
    expect_schedule(0, "\"speedup\":", "mm.tk --try 2 --limit 2 --json --seconds 0.02");
    /* a move's text, added to the trace, gives the program that was promised */
    expect_shell(0, "the same",
                 "cd $D; $TILTH schedule mm.tk mm.tr --moves --json --limit 1 | tail -1 >m; "
                 "{ cat mm.tr; printf '%b\\n' \"$(sed 's/.*\"text\":\"\\([^\"]*\\)\".*/\\1/' m)\"; "
                 "} >next.tr; "
                 "want=$(sed 's/.*\"hash\":\"\\([0-9a-f]*\\)\".*/\\1/' m); "
                 "$TILTH schedule mm.tk next.tr --json | grep -q \"\\\"hash\\\":\\\"$want\" && "
                 "echo the same");
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    write_file("big.tk", "kernel big(dim N in 1..1000000000000, A: f32[N], out B: f32[N])\n"
                         "  for i in 0..N\n    block b\n      spatial i\n      B[i] = A[i]\n");
    expect_schedule(3, "parameter A is too large to be run", "big.tk --bench");
    expect_schedule(0, "right: ", "big.tk --verify --set N=100");
    expect_schedule(0, "for i in 0..N", "big.tk --show program,footprint");
}

/* A program that the verifier cannot see through: neighbours in a parallel loop write one element. */
static void what_is_wrong_is_found(void **state)
{
    (void)state;
    write_file("race.tk", "kernel race(A: f32[8], P: i64[8], out B: f32[8])\n"
                          "  for i in 0..8\n"
                          "    block zero\n"
                          "      spatial i\n"
                          "      B[i] = 0.0\n"
                          "  for i in 0..8 parallel\n"
                          "    block put\n"
                          "      spatial i\n"
                          "      B[P[i]] = A[i]\n");
    expect_schedule(1, "WRONG: race on B[1]: ", "race.tk --verify");
    expect_schedule(1, "the naive program, interpreted", "race.tk --verify");
    expect_schedule(1, "\"verified\":false,", "race.tk --verify --json");
}

static void differences(void **state)
{
    (void)state;
    write_file("b.tr", "i, j, k = loops(mm)\nunroll(k)\n");
    expect_schedule(0, "+ unroll(k)", "diff mm.tr b.tr mm.tk");
    expect_schedule(0, "the programs are the same", "diff mm.tr mm.tr mm.tk");
    expect_schedule(0, "{\"record\":\"diff\",\"same_program\":false,",
                    "diff mm.tr b.tr mm.tk --json");
    expect_schedule(0, "mm under b.tr", "diff mm.tr b.tr mm.tk --verify");
}

static void at_the_prompt(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "help", "  decompose_reduction(block, loop)" },
        { "frob", "'frob' is neither a command nor a step like unroll(i): try help" },
        { "i, j, k = loops(mm)\nunroll(k)", "+       for k in 0..24 unrolled" },
        { "i, j, k = loops(mm)\nunroll(k)\nundo", "- unroll(k)\n" },
        { "undo", "undo: the trace has 0 lines" },
        { "i, j, k = loops(mm)\nunroll(x)", "line:2:8: no step above gives a loop x" },
        { "i, j, k = loops(mm)\nparallel(k)", "line:2: parallel k: " },
        { "i, j, k = loops(mm)\nparallel(k)\nlist", "i, j, k = loops(mm)\n" },
        { "show trace,footprint", "# footprint\n" },
        { "show x", "there is no 'x' to show" },
        { "why", "why: there is no loop ''; the loops are i, j, k" },
        { "why j", "drives the spatial iter j = j of block mm" },
        { "why j", "vectorize(j)" },
        { "why j", "refused:\n" },
        { "x, y, z = loops(mm)\nwhy z",
          "loop z (k in the program): serial, 0..24, inside of x, y" },
        { "verify", "right: both programs interpreted" },
        { "bench", "% of peak" },
        { "save", "save: into which file?" },
        { "save /absent/x", "/absent/x" },
        { "# mine\ni, j, k = loops(mm)\nsave saved.tr", "1 lines saved in saved.tr" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file("commands", cases[i][0]);
        expect_after("", 0, cases[i][1], "mm.tk -i --seconds 0.01 <commands");
    }
    expect_after("cat saved.tr; ", 0, "# mine\ni, j, k = loops(mm)\n", "mm.tk saved.tr");
    write_file("commands", "undo 2\nquit\nhelp\n");
    expect_schedule(0, "- vectorize(j1)\n- parallel(i)\n", "mm.tk mm.tr -i <commands");
    write_file("commands", "quit\nhelp\n");
    tl_text out = { 0 };
    assert_int_equal(run(&out, "", "mm.tk mm.tr -i <commands"), 0);
    assert_string_equal(tl_text_get(&out), "");
    tl_text_free(&out);
}

/* Keys as they are pressed: Tab completes, Up brings back the line before, Ctrl-D leaves. */
static void at_a_terminal(void **state)
{
    (void)state;
    static const char *const pressed[][2] = {
        { "i, j, k = loops(m\t)\n", "" },
        { "unr\t(k)\n", "unrolled" },
        { "undo\n", "- unroll(k)" },
        { "\033[A\033[A\n", "unrolled" },
        { "save keys.tr\n", "2 lines saved in keys.tr" },
        { "\004", "" },
    };
    terminal t;
    terminal_start(&t, "schedule mm.tk -i");
    terminal_expect(&t, "`help` lists what can be typed here");
    for (size_t i = 0; i < sizeof pressed / sizeof *pressed; i++) {
        terminal_expect(&t, "mm> ");
        terminal_press(&t, pressed[i][0]);
        terminal_expect(&t, pressed[i][1]);
    }
    assert_int_equal(terminal_end(&t), 0);
    expect_schedule(0, "for k in 0..24 unrolled", "mm.tk keys.tr");
}

static void the_page(void **state)
{
    (void)state;
    write_file("evil.tk",
               "kernel evil(A: f32[4], out B: f32[4]) # </script>\n  for i in 0..4\n"
               "    block b\n      spatial i\n      B[i] = select(A[i] < 0.5, A[i], 1.0)\n");
    write_file("why.tr", "# What it\n# is all about.\n\n# Lanes\ni, j, k = loops(mm)\n\n"
                         "j0, j1 = split(j, [_, 4])  # four\nvectorize(j1)\n");
    expect_schedule(0, "", "mm.tk why.tr --html p.html --seconds 0.01");
    static const char *const parts[] = { "<!doctype html>",
                                         "\"kernel\":\"mm\"",
                                         "\"text\":\"vectorize(j1)\",\"comment\":\"\"",
                                         "\"comment\":\"What it is all about.\\u000aLanes\"",
                                         "\"comment\":\"four\"",
                                         "[\"+\",\"      for j_1 in 0..4 vectorized\"]",
                                         "\"buffers\":[\"A\",\"B\",\"C\"]",
                                         "\"percent\":",
                                         "\"asm\":\".L",
                                         "</html>" };
    tl_text page = { 0 }, path = { 0 };
    tl_text_format(&path, "%s/p.html", cli_folder);
    assert_int_equal(tl_file_read(tl_text_get(&path), &page, NULL), TL_OK);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(tl_text_get(&page), parts[i]) == NULL)
            fail_msg("the page lacks '%s'", parts[i]);
    /* nothing from elsewhere */
    assert_null(strstr(tl_text_get(&page), "http"));
    assert_null(strstr(tl_text_get(&page), "src="));
    tl_text_free(&page);
    expect_schedule(0, "", "evil.tk --html p.html --seconds 0.01");
    assert_int_equal(tl_file_read(tl_text_get(&path), &page, NULL), TL_OK);
    assert_non_null(strstr(tl_text_get(&page), "select(A[i] \\u003c 0.5"));
    tl_text_free(&page);
    tl_text_free(&path);
}

/* The next ```FENCE block of a text into a file of the scratch folder; returns what follows. */
static const char *write_block(const char *text, const char *fence, const char *name)
{
    const char *begin = strstr(text, fence), *end = NULL;
    assert_non_null(begin);
    begin += strlen(fence);
    end = strstr(begin, "\n```");
    assert_non_null(end);
    tl_text block = { 0 };
    tl_text_add_bytes(&block, begin, (size_t)(end - begin) + 1);
    write_file(name, tl_text_get(&block));
    tl_text_free(&block);
    return end;
}

/* The traces in schedule/README.md are what its text says they are. */
static void the_tours(void **state)
{
    (void)state;
    tl_text readme = { 0 }, command = { 0 };
    char here[PATH_MAX];
    static const char *const kernels[] = { "gemm512", "conv2d_64x56" };
    static const char *const answers[] = { "right: 1000 points interpreted, 262144 elements",
                                           "right: 1000 points interpreted, 200704 elements" };
    assert_int_equal(tl_file_read("schedule/README.md", &readme, NULL), TL_OK);
    assert_non_null(getcwd(here, sizeof here));
    const char *at = tl_text_get(&readme);
    for (int i = 0; i < 2; i++) {
        at = write_block(at, "```trace\n", "tour.tr");
        tl_text_format(&command, "%s/models/kernels/%s.tk tour.tr --verify", here, kernels[i]);
        expect_schedule(0, answers[i], tl_text_get(&command));
        tl_text_free(&command);
    }
    at = write_block(at, "```kernel\n", "tour.tk");
    at = write_block(at, "```trace\n", "tour.tr");
    expect_schedule(0, "WRONG: race on A_local[0, 1]: ",
                    "tour.tk tour.tr --target nvptx64 --step --verify");
    expect_schedule(0, "right: both programs interpreted, largest error",
                    "tour.tk tour.tr --target nvptx64 --verify");
    tl_text_free(&readme);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(mistakes_in_texts),
        cmocka_unit_test(forms),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(step_by_step),
        cmocka_unit_test(checked_and_measured),
        cmocka_unit_test(what_is_wrong_is_found),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(differences),
        cmocka_unit_test(moves),
        cmocka_unit_test(at_the_prompt),
        cmocka_unit_test(at_a_terminal),
        cmocka_unit_test(the_page),
        cmocka_unit_test(the_tours),
    };
    return cmocka_run_group_tests_name("schedule_cli", tests, set_up, cli_tear_down);
}
