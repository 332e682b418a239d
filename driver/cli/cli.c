/* driver/cli/cli.c: options, help, messages. */
#include "driver/cli/cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/text.h"

const tl_option tl_common_options[] = {
    { "--quiet", "-q", TL_OPTION_FLAG, NULL, "say nothing on stderr but errors", &tl_quiet },
    { "--verbose", "-v", TL_OPTION_FLAG, NULL, "say more on stderr", &tl_verbose },
    { "--help", "-h", TL_OPTION_FLAG, NULL, "this text", NULL },
    { 0 },
};

static const tl_option *find_option(const tl_option *table, const char *name, size_t size)
{
    for (const tl_option *o = table; o->name != NULL; o++)
        if ((strlen(o->name) == size && strncmp(o->name, name, size) == 0) ||
            (o->short_name != NULL && strlen(o->short_name) == size &&
             strncmp(o->short_name, name, size) == 0))
            return o;
    return NULL;
}

/* Of a file or a folder it has to say something. */
static tl_status check_name(const tl_option *o, const char *text, tl_diag *diag)
{
    bool is_file = strcmp(o->argument, "FILE") == 0, is_folder = strcmp(o->argument, "DIR") == 0;
    return *text != '\0' || (!is_file && !is_folder)
               ? TL_OK
               : tl_fail(diag, TL_BAD_ARGUMENT, "%s: the name of a %s is empty", o->name,
                         is_file ? "file" : "folder");
}

static tl_status store(const tl_option *o, const char *text, tl_diag *diag)
{
    char *end;
    errno = 0;
    switch (o->type) {
    case TL_OPTION_FLAG:
        *(bool *)o->value = true;
        return TL_OK;
    case TL_OPTION_INT: {
        long long n = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || errno != 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: '%s' is not a whole number", o->name, text);
        *(int64_t *)o->value = n;
        return TL_OK;
    }
    case TL_OPTION_REAL: {
        double x = strtod(text, &end);
        if (end == text || *end != '\0' || errno != 0 || !(x >= 0) || x > 1e30)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: '%s' is not a number of at least 0", o->name,
                           text);
        *(double *)o->value = x;
        return TL_OK;
    }
    case TL_OPTION_TEXT:
        TL_TRY(check_name(o, text, diag));
        *(const char **)o->value = text;
        return TL_OK;
    case TL_OPTION_LIST: {
        tl_text_list *list = o->value;
        if (list->count == (int)(sizeof list->items / sizeof *list->items))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: given more than %d times", o->name,
                           list->count);
        TL_TRY(check_name(o, text, diag));
        list->items[list->count++] = text;
        return TL_OK;
    }
    }
    return TL_OK;
}

static void find_nearest(const tl_option *table, const char *name, const char **nearest,
                         size_t *least)
{
    for (const tl_option *o = table; o->name != NULL; o++)
        if (tl_text_edits(name, o->name) < *least) {
            *least = tl_text_edits(name, o->name);
            *nearest = o->name;
        }
}

static tl_status unknown_option(const tl_verb_help *verb, const char *arg, size_t size,
                                tl_diag *diag)
{
    const char *nearest = NULL;
    size_t least = 4;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(size < 63 ? size : 63), arg);
    find_nearest(verb->options, name, &nearest, &least);
    find_nearest(tl_common_options, name, &nearest, &least);
    if (nearest != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "unknown option %s: did you mean %s?", name, nearest);
    return tl_fail(diag, TL_BAD_ARGUMENT, "unknown option %s: see tilth %s --help", name,
                   verb->verb);
}

/* Parses argv[0..argc-1] (what follows the verb); positional arguments go to `positional`. TL_BAD_ARGUMENT with a
 * sentence; *help is set when --help was among them (nothing else is checked then). */
static tl_status parse_options(const tl_verb_help *verb, int argc, char **argv,
                               const char **positional, int *positional_count, bool *help,
                               tl_diag *diag)
{
    *positional_count = 0;
    *help = false;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *help = true;
            return TL_OK;
        }
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (only_positional || arg[0] != '-' || arg[1] == '\0') {
            if (*positional_count == verb->max_positional)
                return tl_fail(diag, TL_BAD_ARGUMENT,
                               "one argument too many: '%s' (usage: tilth %s%s%s)", arg, verb->verb,
                               *verb->arguments ? " " : "", verb->arguments);
            positional[(*positional_count)++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            only_positional = true;
            continue;
        }
        const char *equals = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
        size_t size = equals ? (size_t)(equals - arg) : strlen(arg);
        const tl_option *o = find_option(verb->options, arg, size);
        if (o == NULL)
            o = find_option(tl_common_options, arg, size);
        if (o == NULL)
            return unknown_option(verb, arg, size, diag);
        if (o->type == TL_OPTION_FLAG) {
            if (equals != NULL)
                return tl_fail(diag, TL_BAD_ARGUMENT, "%s takes no value", o->name);
            TL_TRY(store(o, NULL, diag));
        } else if (equals != NULL) {
            TL_TRY(store(o, equals + 1, diag));
        } else {
            if (i + 1 == argc)
                return tl_fail(diag, TL_BAD_ARGUMENT, "%s needs a value (%s)", o->name,
                               o->argument);
            TL_TRY(store(o, argv[++i], diag));
        }
    }
    if (*positional_count < verb->min_positional)
        return tl_fail(diag, TL_BAD_ARGUMENT, "an argument is missing (usage: tilth %s %s)",
                       verb->verb, verb->arguments);
    return TL_OK;
}

static void print_options(const tl_option *table)
{
    for (const tl_option *o = table; o->name != NULL; o++) {
        char left[128];
        snprintf(left, sizeof left, "%s%s%s%s%s", o->short_name ? o->short_name : "",
                 o->short_name ? ", " : "", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        if (strlen(left) > 26)
            printf("  %s\n  %-26s %s\n", left, "", o->help);
        else
            printf("  %-26s %s\n", left, o->help);
    }
}

static void print_help(const tl_verb_help *verb)
{
    printf("usage: tilth %s%s%s [OPTIONS]\n\n%s\n", verb->verb, *verb->arguments ? " " : "",
           verb->arguments, verb->summary);
    if (verb->details != NULL)
        printf("\n%s\n", verb->details);
    printf("\noptions:\n");
    print_options(verb->options);
    print_options(tl_common_options);
    if (verb->examples != NULL)
        printf("\nexamples:\n%s\n", verb->examples);
    printf(
        "\nexit status: 0 good; 1 the result is wrong or slower; 2 usage; 3 input not supported or "
        "malformed;\n"
        "4 internal error; 5 device or environment; 6 nothing valid in the budget; 130 "
        "interrupted\n");
}

int tl_report_failure(const char *verb, tl_status status, const tl_diag *diag)
{
    tl_progress_done();
    fflush(stdout);
    tl_print_styled(stderr, TL_STYLE_RED, "tilth %s:", verb);
    fprintf(stderr, " %s\n", diag->text[0] ? diag->text : tl_status_text(status));
    return tl_status_exit_code(status);
}

static tl_help_visitor *help_visitor;
static void *help_visitor_user;

void tl_verb_hand_over(tl_help_visitor *visit, void *user)
{
    help_visitor = visit;
    help_visitor_user = user;
}

bool tl_verb_begin(const tl_verb_help *verb, int argc, char **argv, const char **positional,
                   int *positional_count, int *exit_code)
{
    tl_diag diag = { 0 };
    bool help;
    *exit_code = 0;
    if (help_visitor != NULL) {
        help_visitor(verb, help_visitor_user);
        return false;
    }
    tl_status status = parse_options(verb, argc, argv, positional, positional_count, &help, &diag);
    if (status != TL_OK)
        *exit_code = tl_report_failure(verb->verb, status, &diag);
    else if (help)
        print_help(verb);
    return status == TL_OK && !help;
}

int tl_finish_output(const char *verb, int exit_code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tilth %s: cannot write to stdout: %s\n", verb, strerror(errno));
        return tl_status_exit_code(TL_IO);
    }
    return exit_code;
}

tl_status tl_size_parse(const char *option, const char *text, int64_t *out, tl_diag *diag)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool ok =
        end != text && n >= 0 && errno == 0 && (*end == '\0' || (unit != NULL && end[1] == '\0'));
    *out = n;
    for (const char *u = units; ok && unit != NULL && u <= unit; u++)
        ok = !tl_mul_overflows(*out, 1024, out);
    if (!ok)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: '%s' is not a size like 500M or 2G", option,
                       text);
    return TL_OK;
}

tl_status tl_duration_parse(const char *option, const char *text, double *seconds, tl_diag *diag)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != text && strcmp(end, units[i].unit) == 0 && number > 0 &&
            number * units[i].seconds <= 1e7) {
            *seconds = number * units[i].seconds;
            return TL_OK;
        }
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "%s: '%s' is no time: a positive number and s, m or h, as in 60s or 5m", option,
                   text);
}
