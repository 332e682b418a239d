/* driver/main.c: tilth VERB ... */
#include <hwloc.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/verb/verbs.h"
#include "runtime/device/cpu.h"

static void usage(FILE *out)
{
    fputs("usage: tilth VERB [ARGUMENTS] [OPTIONS]\n\n"
          "tilth compiles ONNX models to machine code and runs, checks and measures "
          "them.\n\nverbs:\n",
          out);
    for (int i = 0; i < tl_verb_count; i++)
        if (*tl_verbs[i].summary)
            fprintf(out, "  %-11s %-13s %s\n", tl_verbs[i].name, tl_verbs[i].arguments,
                    tl_verbs[i].summary);
    fputs("\nfirst steps:\n"
          "  tilth model resnet18 -o resnet18.onnx     a network to play with\n"
          "  tilth inspect resnet18.onnx --kernels     what it is made of\n"
          "  tilth bench resnet18.onnx                 how fast it is here\n"
          "\n`tilth VERB --help` tells the options of a verb, `tilth --version` what this is built "
          "from,\n`tilth complete bash` and `tilth man` write a shell's completion and the manual "
          "page.\n",
          out);
}

static void version(void)
{
#ifdef NDEBUG
    const char *build = "release";
#else
    const char *build = "with assertions";
#endif
    unsigned hwloc = hwloc_get_api_version();
    printf("tilth %s\n", TILTH_VERSION);
    printf("build       %s, compiler %s, %s; this processor reaches %s\n", build, __VERSION__,
           sizeof(void *) == 8 ? "64 bits" : "32 bits", tl_cpu_host_level());
    printf("libraries   LLVM %s, protobuf-c %s, jansson %s, hwloc API %u.%u.%u\n",
           tl_codegen_llvm_version(), protobuf_c_version(), jansson_version_str(), hwloc >> 16,
           (hwloc >> 8) & 255, hwloc & 255);
    printf("code        sources %s: objects of others are not reused\n", tl_codegen_fingerprint());
    printf("            revision %d: times of others do not count\n", TL_CODEGEN_REVISION);
}

/* Libraries take most of the fiftieth of a second before main: a signal that comes meanwhile finds our answer, too. The
 * sanitizers are not ready then. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(void) = tl_interrupt_install;
#endif

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL);
    tl_terminal_start();
    tl_codegen_own_process();
    tl_interrupt_install();
    if (argc < 2) {
        usage(stderr);
        return tl_status_exit_code(TL_BAD_ARGUMENT);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return tl_finish_output("help", 0);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        version();
        return tl_finish_output("--version", 0);
    }
    if (strcmp(argv[1], "help") == 0) { /* tilth help VERB */
        if (argc == 2) {
            usage(stdout);
            return tl_finish_output("help", 0);
        }
        static char option[] = "--help";
        argv[1] = argv[2];
        argv[2] = option;
    }
    for (int i = 0; i < tl_verb_count; i++)
        if (strcmp(argv[1], tl_verbs[i].name) == 0)
            return tl_finish_output(argv[1], tl_verbs[i].run(argc - 2, argv + 2));
    const char *nearest = tl_nearest_verb(argv[1]);
    fprintf(stderr, "tilth: unknown verb '%s': %s%s%s\n", argv[1],
            nearest ? "did you mean " : "see tilth --help", nearest ? nearest : "",
            nearest ? "?" : "");
    return tl_status_exit_code(TL_BAD_ARGUMENT);
}
