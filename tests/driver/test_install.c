/* tests/driver/test_install.c: what `make install` puts in place, as a stranger's program finds it: headers, libraries and
 * pkg-config files in a temporary folder, the example programs compiled against them and run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "runtime/tensor/npy.h"
#include "tests/runtime/kernels.h"

#if defined(__SANITIZE_ADDRESS__)
#define VARIANT   "asan"
#define SANITIZER "-fsanitize=address,undefined $BUILD/tests/sanitizers.o"
#elif defined(__SANITIZE_THREAD__)
#define VARIANT   "tsan"
#define SANITIZER "-fsanitize=thread $BUILD/tests/sanitizers.o"
#elif defined(NDEBUG)
#define VARIANT   "release"
#define SANITIZER ""
#else
#define VARIANT   "debug"
#define SANITIZER ""
#endif

static char *folder, build[PATH_MAX];

/* What every command may use: $D the scratch folder, $ROOT the installed tree, $LIB in it, $BUILD. */
static int run(tl_text *out, const char *commands)
{
    tl_text text = { 0 };
    tl_text_format(&text,
                   "unset MAKEFLAGS MAKELEVEL MFLAGS; D='%s' BUILD='%s'; ROOT=$D/root; "
                   "LIB=$ROOT/opt/tilth/lib; export PKG_CONFIG_SYSROOT_DIR=$ROOT "
                   "PKG_CONFIG_LIBDIR=$LIB/pkgconfig XDG_CACHE_HOME=$D/cache; { %s ; } 2>&1",
                   folder, build, commands);
    FILE *pipe = popen(tl_text_get(&text), "r");
    tl_text_free(&text);
    assert_non_null(pipe);
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, pipe)) > 0)
        tl_text_add_bytes(out, buffer, n);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(int exit_code, const char *part, const char *commands)
{
    tl_text out = { 0 };
    int got = run(&out, commands);
    bool found = strstr(tl_text_get(&out), part) != NULL;
    if (got != exit_code || !found)
        fail_msg("%s\nexit %d (want %d), output %s '%s':\n%s", commands, got, exit_code,
                 found ? "has" : "lacks", part, tl_text_get(&out));
    tl_text_free(&out);
}

static int set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", build, sizeof build - 1);
    if (n < 0)
        return -1;
    build[n] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(build, '/') = '\0';
    folder = temp_folder_make();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

static void installs_with_destdir_and_prefix(void **state)
{
    (void)state;
    expect(0, "installed tilth",
           "make -s VARIANT=" VARIANT " BUILD=$BUILD DESTDIR=$ROOT PREFIX=/opt/tilth install");
    expect(0, "tilth 0.", "$ROOT/opt/tilth/bin/tilth --version");
    expect(0, ".TH", "head -3 $ROOT/opt/tilth/share/man/man1/tilth.1");
    expect(0, "complete",
           "bash -n $ROOT/opt/tilth/share/bash-completion/completions/tilth && "
           "cat $ROOT/opt/tilth/share/bash-completion/completions/tilth");
    expect(0, "#compdef tilth", "head -1 $ROOT/opt/tilth/share/zsh/site-functions/_tilth");
    expect(0, "libtilth.so.0", "readlink $LIB/libtilth.so");
    expect(0, "[libtilth_rt.so.0]", "readelf -d $LIB/libtilth_rt.so | grep SONAME");
    expect(0, "/opt/tilth/include", "pkg-config --cflags libtilth");
    expect(0, "-ltilth_rt", "pkg-config --libs libtilth_rt");
    expect(0, "0.", "pkg-config --modversion libtilth libtilth_rt");
    /* nothing of this folder is in what was installed as text */
    expect(1, "",
           "grep -rn -e \"$PWD\" -e $D -e 'runtime/' $ROOT/opt/tilth/include $LIB/pkgconfig");
}

/* Exported: what the headers declare and nothing else, each with the version that the library's map says. */
static void exports_the_api_only(void **state)
{
    (void)state;
    expect(
        0, "all the same",
        "exported() { nm -D --defined-only $LIB/$1.so | awk '$2 != \"A\" { print $3 }' | sort; }; "
        "mapped() { awk '/^TILTH_.*{/ { node = $1 } /^ *tilth_.*;/ { sub(\";\", \"\", $1); "
        "print $1 \"@@\" node }' $1 | sort; }; "
        "mapped driver/api/tilth.map >$D/map; mapped runtime/api/tilth_rt.map >$D/map_rt; "
        "cd $ROOT/opt/tilth/include; "
        "cat tilth.h tilth_rt.h | grep -v typedef | "
        "sed -n 's/^[a-z].*[ *]\\(tilth_[a-z_]*\\)(.*/\\1/p' | sort >$D/declared; "
        "exported libtilth | diff $D/map - && exported libtilth_rt | diff $D/map_rt - && "
        "sed 's/@@.*//' $D/map | diff $D/declared - && "
        "grep -v load $D/map | diff - $D/map_rt && test -s $D/map_rt && echo all the same");
    expect(1, "", "readelf -d $LIB/libtilth_rt.so | grep -i -e llvm -e protobuf -e sqlite");
}

static void headers_suit_other_compilers(void **state)
{
    (void)state;
    expect(
        0, "fine",
        "for h in tilth tilth_rt; do for s in c99 c11 c17; do echo \"#include <$h.h>\" | "
        "${CC:-cc} -std=$s -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -x c -fsyntax-only "
        "$(pkg-config --cflags libtilth) - || exit 1; done; done; echo fine");
    expect(
        0, "fine",
        "if command -v c++ >/dev/null; then for h in tilth tilth_rt; do echo \"#include <$h.h>\" | "
        "c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only "
        "$(pkg-config --cflags libtilth) - || exit 1; done; fi; echo fine");
}

/* Compiles an example as its first comment says, warnings as errors. */
static void compile_example(const char *name, const char *library, const char *more)
{
    char *command;
    assert_true(asprintf(&command,
                         "${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Wshadow -Werror %s "
                         "$ROOT/opt/tilth/share/doc/tilth/examples/%s.c -o $D/%s "
                         "$(pkg-config --cflags --libs %s) %s && echo compiled %s",
                         SANITIZER, name, name, library, more, name) > 0);
    expect(0, "compiled", command);
    free(command);
}

#define WITH_LIB "export LD_LIBRARY_PATH=$LIB; cd $D; "

static void examples_do_what_they_say(void **state)
{
    (void)state;
    compile_example("classify", "libtilth", "-lm");
    compile_example("from_memory", "libtilth", "");
    compile_example("threads", "libtilth", "-lpthread");
    compile_example("save", "libtilth", "");
    compile_example("run_saved", "libtilth_rt", "");

    expect(0, "wrote", "$ROOT/opt/tilth/bin/tilth model bert_tiny -o $D/m.onnx --seed 1");
    expect(0, "output pooler_output: f32[1, 128]\n  sum ", WITH_LIB "./from_memory m.onnx 1");
    expect(2, "usage: ", WITH_LIB "./from_memory");
    expect(1, "cannot read absent.onnx", WITH_LIB "./from_memory absent.onnx");
    expect(0, "4 callers, 32 of 32 runs", WITH_LIB "./threads m.onnx m.onnx 4");
    expect(1, "absent.onnx", WITH_LIB "./threads m.onnx absent.onnx");
    expect(0, "MB of weights", WITH_LIB "./save m.onnx m.tilth");
    expect(1, "no target pdp11", WITH_LIB "./save m.onnx m.pdp11 pdp11");
    expect(0, "5 runs, the fastest", WITH_LIB "./run_saved m.tilth 5");
    expect(1, "run_saved: ", WITH_LIB "./run_saved m.onnx");
    expect(1, "does not map one image to scores", WITH_LIB "./classify m.onnx");
    expect(2, "usage: classify", WITH_LIB "./classify");
    expect(2, "usage: from_memory", WITH_LIB "./from_memory m.onnx 1 1");
    expect(2, "usage: threads", WITH_LIB "./threads m.onnx m.onnx 0");
    expect(2, "usage: save", WITH_LIB "./save m.onnx");
    expect(2, "usage: run_saved", WITH_LIB "./run_saved m.tilth 0");
}

/* Zeros for the inputs of m.onnx, as a raw file and as .npy. */
static void write_zeros(void)
{
    tl_tensor zeros;
    tl_text path = { 0 };
    assert_int_equal(tl_tensor_create(TL_I64, 2, (const int64_t[]){ 1, 128 }, &zeros, NULL), TL_OK);
    tl_text_format(&path, "%s/zeros.npy", folder);
    assert_int_equal(tl_npy_write(tl_text_get(&path), &zeros, NULL), TL_OK);
    tl_text_free(&path);
    tl_tensor_free(&zeros);
    expect(0, "", "head -c 1024 /dev/zero >$D/zeros.raw");
}

/* Every form of it gives the bits that `tilth run` gives, without LLVM. */
static void compiled_models_run(void **state)
{
    (void)state;
    static const char *const forms[] = { "", "--prepare later", "--target x86-64-v3" };
    write_zeros();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *command;
        assert_true(asprintf(&command,
                             WITH_LIB "mkdir -p f; cd f; M='../m.onnx %s'; "
                                      "T=$ROOT/opt/tilth/bin/tilth; "
                                      "$T compile $M -o model.o && $T compile $M -o m.so && "
                                      "$T compile $M -o m.tilth",
                             forms[i]) > 0);
        expect(0, "wrote m.tilth", command);
        free(command);
        expect(0, "wrote output_1.raw, 512 bytes",
               WITH_LIB "cd f; ${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror " SANITIZER
                        " -I. $ROOT/opt/tilth/share/doc/tilth/examples/linked.c model.o -o linked "
                        "$(pkg-config --cflags --libs libtilth_rt) && "
                        "./linked ../zeros.raw ../zeros.raw");
        assert_true(asprintf(&command,
                             WITH_LIB "cd f; $ROOT/opt/tilth/bin/tilth run ../m.onnx %s --output . "
                                      "-i input_ids=../zeros.npy -i attention_mask=../zeros.npy && "
                                      "tail -c 65536 output_last_hidden_state.npy | "
                                      "cmp - output_0.raw && tail -c 512 output_pooler_output.npy "
                                      "| cmp - output_1.raw && echo the same bits",
                             strcmp(forms[i], "--prepare later") == 0 ? "" : forms[i]) > 0);
        expect(0, "the same bits", command);
        free(command);
        expect(0, "the fastest", WITH_LIB "cd f; ../run_saved m.so 2 && ../run_saved m.tilth 2");
        expect(1, "", WITH_LIB "ldd f/linked | grep -i -e llvm -e protobuf -e sqlite");
    }
    expect(1, "neither a folder nor a library", WITH_LIB "./run_saved zeros.raw");
    expect(1, "there is no compiled model in it", WITH_LIB "./run_saved $LIB/libtilth_rt.so");
    expect(2, "usage: linked, and a file for each of 2 inputs", WITH_LIB "f/linked");
    expect(1, "does not hold the 1024 bytes of input 1", WITH_LIB "f/linked zeros.raw /dev/null");
}

/* What a tilth of another format has compiled: its version is a digit in a line of text, in the folder as in the object. */
static void models_of_another_tilth_are_refused(void **state)
{
    (void)state;
    static const char again[] = "compile the model again";
    expect(0, "",
           WITH_LIB "rm -rf old; mkdir old; cp -r f/m.tilth f/m.so f/model.o f/model.h old; "
                    "sed -i 's/\\(\"format\":\"tilth executable\",\"version\":\\)[0-9]*,/\\11,/' "
                    "old/m.tilth/executable.json old/m.so old/model.o");
    expect(1, again, WITH_LIB "./run_saved old/m.tilth");
    expect(1, again, WITH_LIB "./run_saved old/m.so");
    expect(1, again,
           WITH_LIB "cd old; ${CC:-cc} -std=c11 -O1 " SANITIZER
                    " -I. $ROOT/opt/tilth/share/doc/tilth/examples/linked.c model.o -o linked "
                    "$(pkg-config --cflags --libs libtilth_rt) && "
                    "./linked ../zeros.raw ../zeros.raw");
}

static void a_network_classifies(void **state)
{
    (void)state;
    expect(0, "wrote", "$ROOT/opt/tilth/bin/tilth model resnet18 -o $D/r.onnx --seed 1");
    expect(0, " %\n", WITH_LIB "./classify r.onnx");
    expect(0, "5",
           WITH_LIB "head -c 602112 /dev/zero >image.f32; ./classify r.onnx image.f32 | wc -l");
    expect(1, "does not hold the 602112 bytes of input", WITH_LIB "./classify r.onnx m.onnx");
}

/* The static libraries with the private part of the pkg-config file. */
static void links_statically(void **state)
{
    (void)state;
    expect(0, "the fastest",
           "${CC:-cc} " SANITIZER
           " $ROOT/opt/tilth/share/doc/tilth/examples/run_saved.c -o $D/static "
           "$(pkg-config --cflags libtilth_rt) $LIB/libtilth_rt.a "
           "$(pkg-config --static --libs-only-l libtilth_rt | sed 's/-ltilth_rt//') && "
           "$D/static $D/m.tilth 1");
}

static void uninstalls(void **state)
{
    (void)state;
    expect(0, "left 0",
           "make -s VARIANT=" VARIANT
           " BUILD=$BUILD DESTDIR=$ROOT PREFIX=/opt/tilth uninstall >/dev/null; "
           "echo left $(find $ROOT -type f -o -type l | wc -l)");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(installs_with_destdir_and_prefix),
        cmocka_unit_test(exports_the_api_only),
        cmocka_unit_test(headers_suit_other_compilers),
        cmocka_unit_test(examples_do_what_they_say),
        cmocka_unit_test(compiled_models_run),
        cmocka_unit_test(models_of_another_tilth_are_refused),
        cmocka_unit_test(a_network_classifies),
        cmocka_unit_test(links_statically),
        cmocka_unit_test(uninstalls),
    };
    return cmocka_run_group_tests_name("install", tests, set_up, tear_down);
}
