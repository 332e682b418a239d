/* driver/verb/verb_complete.c: tilth complete SHELL: completion for bash and zsh, written from the verbs' own option tables. */
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"

static bool is_argument(const tl_option *o, const char *word)
{
    return o->argument != NULL && strstr(o->argument, word) != NULL;
}

/* "a|b|c" as "a b c"; false when the argument is no such list. */
static bool print_words(const char *argument)
{
    if (argument == NULL || strchr(argument, '|') == NULL)
        return false;
    for (const char *p = argument; *p; p++)
        putchar(*p == '|' ? ' ' : *p);
    return true;
}

/* For text inside the single quotes of a shell. */
static void print_quoted(const char *text, const char *also)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            fputs("'\\''", stdout);
        else if (strchr(also, *p) != NULL)
            printf("\\%c", *p);
        else
            putchar(*p);
    }
}

/* The extensions of the files that a verb takes: "MODEL.onnx|KERNEL.tk" gives onnx and tk; none: any file. */
static void print_extensions(const tl_verb_help *help, const char *between)
{
    const char *lead = "";
    for (const char *p = help->arguments; (p = strchr(p, '.')) != NULL;) {
        size_t size = strspn(++p, "abcdefghijklmnopqrstuvwxyz0123456789");
        if (size > 0) {
            printf("%s%.*s", lead, (int)size, p);
            lead = between;
        }
    }
}

static bool has_values(const tl_option *o)
{
    return is_argument(o, "FILE") || is_argument(o, "DIR") || is_argument(o, "|");
}

static void bash_option_values(const tl_option *table)
{
    for (const tl_option *o = table; o->name != NULL; o++) {
        if (o->type == TL_OPTION_FLAG)
            continue;
        printf("        %s%s%s) ", o->name, o->short_name ? "|" : "",
               o->short_name ? o->short_name : "");
        if (is_argument(o, "FILE"))
            printf("COMPREPLY=($(compgen -f -- \"$cur\"))");
        else if (is_argument(o, "DIR"))
            printf("COMPREPLY=($(compgen -d -- \"$cur\"))");
        else if (is_argument(o, "|")) {
            printf("COMPREPLY=($(compgen -W '");
            print_words(o->argument);
            printf("' -- \"$cur\"))");
        }
        printf("%sreturn ;;\n", has_values(o) ? "; " : "");
    }
}

static void bash_verb(const tl_verb_help *help, void *user)
{
    (void)user;
    printf("    %s)\n        case \"$prev\" in\n", help->verb);
    bash_option_values(help->options);
    printf("        esac\n        options='");
    for (const tl_option *o = help->options; o->name != NULL; o++)
        printf("%s ", o->name);
    for (const tl_option *o = tl_common_options; o->name != NULL; o++)
        printf("%s%s", o->name, o[1].name ? " " : "");
    printf("'\n        words='");
    for (int i = 0; help->word != NULL && help->word(i) != NULL; i++)
        printf("%s%s", i ? " " : "", help->word(i));
    printf("'; extensions='");
    print_extensions(help, " ");
    printf("' ;;\n");
}

static void print_bash(void)
{
    fputs("# bash completion of tilth: written by `tilth complete bash`, from the options of the "
          "program itself.\n"
          "#     source <(tilth complete bash)\n"
          "_tilth() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local options='' words='' extensions='' extension\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    for (int i = 0; i < tl_verb_count; i++)
        if (*tl_verbs[i].summary)
            printf("%s ", tl_verbs[i].name);
    fputs("help --help --version' -- \"$cur\"))\n"
          "        return\n"
          "    fi\n"
          "    case \"${COMP_WORDS[1]}\" in\n",
          stdout);
    tl_verbs_visit(bash_verb, NULL);
    fputs("    *) return ;;\n"
          "    esac\n"
          "    case \"$cur\" in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
          "    *)\n"
          "        if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); "
          "return; fi\n"
          "        COMPREPLY=($(compgen -d -- \"$cur\"))\n"
          "        for extension in $extensions; do\n"
          "            COMPREPLY+=($(compgen -f -X \"!*.$extension\" -- \"$cur\"))\n"
          "        done\n"
          "        [ -n \"$extensions\" ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "        ;;\n"
          "    esac\n"
          "}\n"
          "complete -o filenames -F _tilth tilth\n",
          stdout);
}

static void zsh_options(const tl_option *table)
{
    for (const tl_option *o = table; o->name != NULL; o++) {
        bool flag = o->type == TL_OPTION_FLAG;
        const char *names[2] = { o->name, o->short_name };
        for (int i = 0; i < 2 && names[i] != NULL; i++) {
            printf("            '%s%s%s[", o->type == TL_OPTION_LIST ? "*" : "", names[i],
                   flag ? "" : (i == 0 ? "=" : "+"));
            print_quoted(o->help, "[]");
            putchar(']');
            if (!flag) {
                putchar(':');
                print_quoted(o->argument, ":|[]");
                putchar(':');
                if (is_argument(o, "FILE"))
                    printf("_files");
                else if (is_argument(o, "DIR"))
                    printf("_files -/");
                else if (strchr(o->argument, '|') != NULL) {
                    putchar('(');
                    print_words(o->argument);
                    putchar(')');
                }
            }
            printf("' \\\n");
        }
    }
}

static void zsh_verb(const tl_verb_help *help, void *user)
{
    (void)user;
    printf("    %s)\n        _arguments \\\n", help->verb);
    zsh_options(help->options);
    zsh_options(tl_common_options);
    if (help->word != NULL) {
        printf("            '1:");
        print_quoted(help->arguments, ":[]|");
        printf(":(");
        for (int i = 0; help->word(i) != NULL; i++)
            printf("%s%s", i ? " " : "", help->word(i));
        printf(")' ;;\n");
    } else if (help->max_positional > 0) {
        printf("            '*:file:_files");
        if (strchr(help->arguments, '.') != NULL) {
            printf(" -g \"*.(");
            print_extensions(help, "|");
            printf(")\"");
        }
        printf("' ;;\n");
    } else {
        printf("            ;;\n");
    }
}

static void print_zsh(void)
{
    fputs("#compdef tilth\n"
          "# zsh completion of tilth: written by `tilth complete zsh`, from the options of the "
          "program itself.\n"
          "#     tilth complete zsh > \"${fpath[1]}/_tilth\"\n"
          "_tilth() {\n"
          "    local -a verbs\n"
          "    verbs=(\n",
          stdout);
    for (int i = 0; i < tl_verb_count; i++)
        if (*tl_verbs[i].summary) {
            printf("        '%s:", tl_verbs[i].name);
            print_quoted(tl_verbs[i].summary, ":");
            printf("'\n");
        }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n"
          "    local verb=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $verb in\n",
          stdout);
    tl_verbs_visit(zsh_verb, NULL);
    fputs("    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _tilth ]]; then _tilth \"$@\"; else compdef _tilth tilth; fi\n",
          stdout);
}

static const char *shell(int index)
{
    static const char *const shells[] = { "bash", "zsh", NULL };
    return shells[index];
}

int tl_verb_complete(int argc, char **argv)
{
    const tl_option options[] = { { 0 } };
    const tl_verb_help help = {
        "complete",
        "bash|zsh",
        "Writes the completion of a shell to stdout.",
        "It knows the options of this very program; write it again after an update.",
        "  source <(tilth complete bash)\n"
        "  tilth complete zsh > \"${fpath[1]}/_tilth\"",
        options,
        1,
        1,
        shell,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;
    if (strcmp(positional[0], "bash") == 0) {
        print_bash();
    } else if (strcmp(positional[0], "zsh") == 0) {
        print_zsh();
    } else {
        tl_diag diag = { 0 };
        tl_status status = tl_fail(&diag, TL_BAD_ARGUMENT, "'%s' is no shell it knows: bash or zsh",
                                   positional[0]);
        return tl_report_failure("complete", status, &diag);
    }
    return 0;
}
