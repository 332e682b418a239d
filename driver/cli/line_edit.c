/* driver/cli/line_edit.c: libedit on a terminal, getline elsewhere. */
#include "driver/cli/line_edit.h"
#include <histedit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/cli/cli.h"

struct tl_line_editor {
    const char *prompt;
    tl_completer *words;
    void *user;
    EditLine *edit; /* NULL: a pipe */
    History *history;
    char *line; /* the caller's, until the next */
    size_t capacity;
};

static const char *show_prompt(EditLine *edit)
{
    tl_line_editor *e = NULL;
    el_get(edit, EL_CLIENTDATA, &e);
    return e->prompt;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* Completes as far as all words that fit agree; at a second press, with nothing more to add, lists them. */
static unsigned char complete(EditLine *edit, int key)
{
    (void)key;
    tl_line_editor *e = NULL;
    el_get(edit, EL_CLIENTDATA, &e);
    const LineInfo *info = el_line(edit);
    const char *begin = info->cursor, *word, *first = NULL;
    while (begin > info->buffer && is_word(begin[-1]))
        begin--;
    char before[256];
    size_t size = (size_t)(info->cursor - begin), common = 0;
    snprintf(before, sizeof before, "%.*s", (int)(begin - info->buffer), info->buffer);
    for (int n = 0; (word = e->words(e->user, before, n)) != NULL; n++) {
        if (strncmp(word, begin, size) != 0)
            continue;
        size_t same = 0;
        while (first != NULL && same < common && word[same] == first[same])
            same++;
        common = first == NULL ? strlen(word) : same;
        first = first == NULL ? word : first;
    }
    if (first == NULL)
        return CC_ERROR;
    if (common > size) {
        char added[256];
        snprintf(added, sizeof added, "%.*s", (int)(common - size), first + size);
        return el_insertstr(edit, added) == 0 ? CC_REFRESH : CC_ERROR;
    }
    putchar('\n');
    for (int n = 0; (word = e->words(e->user, before, n)) != NULL; n++)
        if (strncmp(word, begin, size) == 0)
            printf("%s  ", word);
    putchar('\n');
    return CC_REDISPLAY;
}

static bool open_terminal(tl_line_editor *e)
{
    HistEvent event;
    e->edit = el_init("tilth", stdin, tl_terminal_raw(stdout), tl_terminal_raw(stderr));
    e->history = history_init();
    if (e->edit == NULL || e->history == NULL)
        return false;
    history(e->history, &event, H_SETSIZE, 1000);
    history(e->history, &event, H_SETUNIQUE, 1);
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_PROMPT, show_prompt);
    el_set(e->edit, EL_EDITOR, "emacs");
    el_set(e->edit, EL_SIGNAL, 1); /* a signal finds the terminal as it was */
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_ADDFN, "tilth-complete", "complete a word", complete);
    el_set(e->edit, EL_BIND, "^I", "tilth-complete", NULL);
    el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(e->edit, NULL);
    return true;
}

tl_line_editor *tl_line_editor_open(const char *prompt, tl_completer *words, void *user)
{
    tl_line_editor *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->prompt = prompt;
    e->words = words;
    e->user = user;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !open_terminal(e)) {
        tl_line_editor_close(e);
        return NULL;
    }
    return e;
}

void tl_line_editor_close(tl_line_editor *e)
{
    if (e == NULL)
        return;
    if (e->history != NULL)
        history_end(e->history);
    if (e->edit != NULL)
        el_end(e->edit);
    free(e->line);
    free(e);
}

bool tl_line_editor_is_terminal(const tl_line_editor *e)
{
    return e->edit != NULL;
}

const char *tl_line_editor_read(tl_line_editor *e)
{
    HistEvent event;
    if (e->edit == NULL) {
        ssize_t n = getline(&e->line, &e->capacity, stdin);
        if (n < 0)
            return NULL;
        e->line[strcspn(e->line, "\r\n")] = '\0';
        return e->line;
    }
    int count;
    const char *got = el_gets(e->edit, &count);
    if (got == NULL || count <= 0)
        return NULL;
    free(e->line);
    e->line = strdup(got);
    if (e->line == NULL)
        return NULL;
    if (strspn(got, " \t\r\n") < strlen(got))
        history(e->history, &event, H_ENTER, got);
    e->line[strcspn(e->line, "\r\n")] = '\0';
    return e->line;
}
