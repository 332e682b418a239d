/* driver/main.c: tilth VERB ... */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "driver/cli.h"

static const struct {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
#define VERB(name, arguments, summary) { #name, arguments, summary, tl_verb_##name },
#include "driver/verbs.def"
#undef VERB
};

static void usage(FILE *out)
{
    fputs("usage: tilth VERB [ARGUMENTS] [OPTIONS]\n\n"
          "tilth compiles ONNX models to machine code and runs, checks and measures "
          "them.\n\nverbs:\n",
          out);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        fprintf(out, "  %-9s %-7s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
    fputs("\n`tilth VERB --help` tells the options of a verb; `tilth --version` the version.\n",
          out);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        usage(stderr);
        return tl_status_exit_code(TL_BAD_ARGUMENT);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return tl_finish_output("help", 0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tilth %s\n", TILTH_VERSION);
        return tl_finish_output("--version", 0);
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return tl_finish_output(argv[1], verbs[i].run(argc - 2, argv + 2));
    fprintf(stderr, "tilth: unknown verb '%s': see tilth --help\n", argv[1]);
    return tl_status_exit_code(TL_BAD_ARGUMENT);
}
