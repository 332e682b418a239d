/* tests/driver/test_compile.c: tilth compile as a user meets it: every form, what is refused, and that nothing is left
 * when it does not come to its end. That the results run is test_install.c's business. */
#include "tests/driver/cli_run.h"

/* What is in the scratch folder beside what the tests put there. */
#define NOTHING_LEFT "test -z \"$(ls -d $D/new* 2>/dev/null)\" && echo nothing left"

static int set_up(void **state)
{
    if (cli_set_up(state) != 0)
        return -1;
    tl_text out = { 0 };
    int code = cli_shell(&out, "$TILTH model bert_tiny -o $D/m.onnx --seed 3");
    tl_text_free(&out);
    return code;
}

static void every_form(void **state)
{
    (void)state;
    expect(0, "18 kernels", "compile $D/m.onnx -o $D/m.tilth");
    expect_shell(0, "constants.bin executable.json objects.bin prepared.bin",
                 "echo $(ls $D/m.tilth)");
    expect(0, "wrote", "compile $D/m.onnx -o $D/m.tilth/"); /* takes the place of the first */
    expect_shell(0, "constants.bin executable.json objects.bin prepared.bin",
                 "echo $(ls $D/m.tilth)");
    expect(0, "wrote", "compile $D/m.onnx -o $D/m.so --no-cache");
    expect(0, "it declares model_m", "compile $D/m.onnx -o $D/m.o");
    expect(0, "wrote", "compile $D/m.onnx -o $D/m.ll");
    expect(0, "wrote", "compile $D/m.onnx -o $D/m.s");
    expect(0, "wrote", "compile $D/m.onnx -o $D/m.listing --format s");
    expect(0, "kernels for generic", "compile $D/m.onnx -o $D/arm.s --target aarch64");
    expect_shell(0, "the same", "cmp $D/m.s $D/m.listing && echo the same");
    expect(0, "\"format\":\"o\",\"target\":\"x86-64-v3\"",
           "compile $D/m.onnx -o $D/v3-bert.o --target x86-64-v3 --json");
    expect(0, "\"prepared\":true", "compile $D/m.onnx -o $D/v3-bert.o --target x86-64-v3 --json");
    expect(0, "packed when it is opened", "compile $D/m.onnx -o $D/later.o --prepare later");
    expect_shell(0, "extern const tilth_linked model_v3_bert;", "cat $D/v3-bert.h");
    expect_shell(0, "output  1  f32[1, 128]                         512 bytes  pooler_output",
                 "cat $D/v3-bert.h");
    expect(0, "it declares my_bert", "compile $D/m.onnx -o $D/m.o --symbol my_bert");
}

/* What other tools make of them. */
static void tools_take_them(void **state)
{
    (void)state;
    expect_shell(0, "fine", "${CC:-cc} -c $D/m.s -o $D/s.o && echo fine");
    expect_shell(0, "fine",
                 "if command -v llc-19 >/dev/null; then llc-19 -filetype=obj $D/m.ll -o $D/l.o || "
                 "exit 1; fi; echo fine");
    /* kernels by name, but none that another model's object could clash with */
    expect_shell(0, "[my_bert]",
                 "nm $D/m.o | grep -q ' t gelu' || nm $D/m.o | grep -q ' t matmul' && "
                 "echo [$(nm -g --defined-only $D/m.o | cut -c 20-)]");
    expect_shell(0, "[tilth_linked_model]", "echo [$(nm -D --defined-only $D/m.so | cut -c 20-)]");
    /* weights where nothing writes, from a page's beginning on */
    expect_shell(0, "4096", "readelf -SW $D/m.so | grep ' tilth_constants .* A '");
    expect_shell(0, "fine", "test $(readelf -lW $D/m.so | grep -c 'LOAD.*RWE') = 0 && echo fine");
}

static void what_is_refused(void **state)
{
    (void)state;
    expect(2, "give the result a name", "compile $D/m.onnx");
    expect(2, "'bin' names no form of output; known are tilth, so, o, ll, s, ptx",
           "compile $D/m.onnx -o $D/new.bin");
    expect(2, "'' names no form", "compile $D/m.onnx -o $D/new");
    expect(2, "--format: 'exe' names no form", "compile $D/m.onnx -o $D/new.so --format exe");
    expect(3, "PTX is for GPUs, and this is for", "compile $D/m.onnx -o $D/new.ptx");
    expect(2, "there is no target pdp11", "compile $D/m.onnx -o $D/new.so --target pdp11");
    expect(3, "libtilth_rt runs code of x86-64 only",
           "compile $D/m.onnx -o $D/new.so --target aarch64");
    expect(2, "--symbol: '1st' is no name in C", "compile $D/m.onnx -o $D/new.o --symbol 1st");
    expect(2, "--symbol: '' is no name in C", "compile $D/m.onnx -o $D/new.o --symbol ''");
    expect(2, "neither now nor later", "compile $D/m.onnx -o $D/new.o --prepare never");
    expect(2, "absent.onnx: No such file", "compile $D/absent.onnx -o $D/new.o");
    expect(3, "a text, not an ONNX model", "compile $D/m.h -o $D/new.o");
    expect(2, "the name of the header", "compile $D/m.onnx -o $D/new.h --format o");
    expect(2, "an argument is missing", "compile -o $D/new.o");
    expect(5, "cannot write", "compile $D/m.onnx -o /proc/new.o");
    expect(5, "No such file or directory", "compile $D/m.onnx -o $D/absent/new.tilth");
    expect_shell(2, "this is a folder, and a .so is a file",
                 "mkdir $D/dir.so && $TILTH compile $D/m.onnx -o $D/dir.so");
    expect(2, "this is a file, and a .tilth is a folder",
           "compile $D/m.onnx -o $D/m.onnx --format tilth");
    expect_shell(2, "a folder with other things in it (letter), not a compiled model",
                 "mkdir $D/dir.tilth && echo dear >$D/dir.tilth/letter && "
                 "$TILTH compile $D/m.onnx -o $D/dir.tilth");
    expect_shell(0, "dear", "cat $D/dir.tilth/letter");
    expect_shell(0, "nothing left", NOTHING_LEFT);
}

/* A linker of ours in place of the system's. */
#define FAKE_LINKER(text) \
    "mkdir -p $D/bin; printf '#!/bin/sh\\n" text "\\n' >$D/bin/cc; chmod +x $D/bin/cc; "

static void linkers_that_fail(void **state)
{
    (void)state;
    expect_shell(5, "there is no linker here",
                 "PATH=$D/none $TILTH compile $D/m.onnx -o $D/new.so");
    expect_shell(5, "cc could not link the library: no room left",
                 FAKE_LINKER("echo no room left >&2; exit 1") "PATH=$D/bin:$PATH $TILTH compile "
                                                              "$D/m.onnx -o $D/new.so");
    expect_shell(0, "nothing left", NOTHING_LEFT);
}

static void interrupted(void **state)
{
    (void)state;
    expect_shell(
        0, "ended with 130",
        FAKE_LINKER(
            "touch $D/started; exec sleep 30") "export D; PATH=$D/bin:$PATH $TILTH "
                                               "compile $D/m.onnx -o $D/new.so & p=$!; while [ ! "
                                               "-e $D/started ]; do sleep 0.05; "
                                               "done; kill -TERM $p; wait $p; echo ended with $?");
    expect_shell(0, "nothing left", NOTHING_LEFT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),      cmocka_unit_test(tools_take_them),
        cmocka_unit_test(what_is_refused), cmocka_unit_test(linkers_that_fail),
        cmocka_unit_test(interrupted),
    };
    return cmocka_run_group_tests_name("compile", tests, set_up, cli_tear_down);
}
