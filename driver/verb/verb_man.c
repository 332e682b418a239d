/* driver/verb/verb_man.c: tilth man: the manual page, written from the verbs' own help. */
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"

/* Text as troff takes it: backslashes and hyphens escaped, no line that begins like a request. */
static void print_text(const char *text)
{
    bool line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", stdout);
        if (*p == '\\')
            fputs("\\e", stdout);
        else if (*p == '-')
            fputs("\\-", stdout);
        else
            putchar(*p);
        line_start = *p == '\n';
    }
}

static void print_options(const tl_option *table)
{
    for (const tl_option *o = table; o->name != NULL; o++) {
        printf(".TP\n\\fB");
        if (o->short_name != NULL) {
            print_text(o->short_name);
            printf("\\fR, \\fB");
        }
        print_text(o->name);
        printf("\\fR");
        if (o->argument != NULL) {
            printf(" \\fI");
            print_text(o->argument);
            printf("\\fR");
        }
        printf("\n");
        print_text(o->help);
        printf("\n");
    }
}

static void print_verb(const tl_verb_help *help, void *user)
{
    (void)user;
    printf(".SS \"tilth %s %s\"\n", help->verb, help->arguments);
    print_text(help->summary);
    printf("\n");
    if (help->details != NULL) {
        printf(".PP\n");
        print_text(help->details);
        printf("\n");
    }
    print_options(help->options);
    if (help->examples != NULL) {
        printf(".PP\n.nf\n");
        print_text(help->examples);
        printf("\n.fi\n");
    }
}

static void print_page(void)
{
    printf(".TH TILTH 1 \"\" \"tilth %s\" \"User Commands\"\n", TILTH_VERSION);
    fputs(".SH NAME\ntilth \\- compiles ONNX models to machine code and runs, checks and measures "
          "them\n"
          ".SH SYNOPSIS\n\\fBtilth\\fR \\fIVERB\\fR [\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
          ".SH DESCRIPTION\n"
          "Results go to stdout, progress and errors to stderr. With \\fB\\-\\-json\\fR every line "
          "of stdout is a JSON object whose member \\fIrecord\\fR says what it is; the first is "
          "the environment. Names carry their unit.\n"
          ".SH VERBS\n",
          stdout);
    tl_verbs_visit(print_verb, NULL);
    printf(".SH COMMON OPTIONS\n");
    print_options(tl_common_options);
    fputs(".SH EXIT STATUS\n"
          ".TP\n0\ngood\n"
          ".TP\n1\nthe result is wrong, or worse than the baseline\n"
          ".TP\n2\nusage: an option, a name, a file that is not there\n"
          ".TP\n3\nthe input is malformed or not supported; all reasons are listed\n"
          ".TP\n4\nan internal error, which is a bug\n"
          ".TP\n5\na device, a file system or memory failed\n"
          ".TP\n6\nthe budget ended with nothing valid\n"
          ".TP\n130\ninterrupted (Ctrl-C or SIGTERM); nothing is left half\\-written\n"
          ".SH ENVIRONMENT\n"
          ".TP\n\\fBXDG_CACHE_HOME\\fR\nthe cache is its folder tilth; without it, "
          "~/.cache/tilth\n"
          ".TP\n\\fBNO_COLOR\\fR\nwhen not empty: no colours\n"
          ".TP\n\\fBTILTH_PERF\\fR\nwhen not empty: writes /tmp/perf\\-PID.map, in which perf(1) "
          "finds the names of kernels\n"
          ".SH FILES\n"
          "The cache folder is its owner's alone; deleting it is always safe. What is damaged or "
          "stale in it is compiled again.\n",
          stdout);
}

int tl_verb_man(int argc, char **argv)
{
    const tl_option options[] = { { 0 } };
    const tl_verb_help help = {
        "man",
        "",
        "Writes the manual page, as troff, to stdout.",
        NULL,
        "  tilth man | man -l -\n  tilth man > /usr/local/share/man/man1/tilth.1",
        options,
        0,
        0,
        NULL,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;
    print_page();
    return 0;
}
