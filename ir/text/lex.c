/* ir/text/lex.c: the text of a Program as tokens. Lines are indented; newlines inside brackets do not
 * count; `#` starts a comment. Everything here comes from a file and is hostile. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ir/text/text_private.h"
#include "runtime/base/array.h"

enum { MAX_INDENTS = 200, MAX_BRACKETS = 500, MAX_TEXT = 4 << 20, MAX_NAME = 200 };

typedef struct {
    tl_arena *arena;
    const char *file, *at, *line_start;
    int line;
    tl_diag *diag;
    int indent_count;
    int indents[MAX_INDENTS]; /* columns, the outermost first */
    int brackets;             /* open ones */
    int count, capacity;
    tl_token *tokens;
} lexer;

static tl_status fail(lexer *l, const char *where, const char *what)
{
    return tl_fail(l->diag, TL_BAD_TEXT, "%s:%d:%d: %s", l->file, l->line,
                   (int)(where - l->line_start) + 1, what);
}

static tl_token *add(lexer *l, tl_token_kind kind, const char *where, const char *text)
{
    TL_ROOM(l->arena, l->tokens, l->count, l->capacity);
    tl_token *t = &l->tokens[l->count++];
    *t = (tl_token){ kind, l->line, (int)(where - l->line_start) + 1, text, 0, 0 };
    return t;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static tl_status lex_name(lexer *l)
{
    const char *start = l->at;
    while (tl_is_name_char(*l->at) || (*l->at == '.' && tl_is_name_char(l->at[1])))
        l->at++;
    if (l->at - start > MAX_NAME)
        return fail(l, start, "a name is longer than 200 characters");
    add(l, TL_TOKEN_NAME, start, tl_arena_strndup(l->arena, start, (size_t)(l->at - start)));
    return TL_OK;
}

static tl_status lex_number(lexer *l)
{
    const char *start = l->at;
    bool is_float = false;
    while (is_digit(*l->at))
        l->at++;
    if (*l->at == '.' && l->at[1] != '.') {
        is_float = true;
        for (l->at++; is_digit(*l->at);)
            l->at++;
    }
    if (*l->at == 'e' || *l->at == 'E') {
        const char *digits = l->at + 1 + (l->at[1] == '+' || l->at[1] == '-');
        if (!is_digit(*digits))
            return fail(l, start, "a number has an exponent without digits");
        is_float = true;
        for (l->at = digits; is_digit(*l->at);)
            l->at++;
    }
    if (tl_is_name_start(*l->at))
        return fail(l, start, "a number runs into a name");
    if (l->at - start > MAX_NAME)
        return fail(l, start, "a number is longer than 200 characters");
    const char *text = tl_arena_strndup(l->arena, start, (size_t)(l->at - start));
    tl_token *t = add(l, is_float ? TL_TOKEN_FLOAT : TL_TOKEN_INT, start, text);
    errno = 0;
    if (is_float)
        t->number = strtod(text, NULL);
    else
        t->value = strtoull(text, NULL, 10);
    if (!is_float && errno == ERANGE)
        return fail(l, start, "an integer does not fit 64 bits");
    return TL_OK;
}

static tl_status lex_punctuation(lexer *l)
{
    static const char *const marks[] = { "..", "//", "<=", ">=", "==", "!=", "(", ")",
                                         "[",  "]",  "{",  "}",  ",",  ":",  "=", "<",
                                         ">",  "+",  "-",  "*",  "/",  "%" };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strncmp(l->at, marks[i], strlen(marks[i])) != 0)
            continue;
        if (strchr("([{", marks[i][0]) != NULL && ++l->brackets > MAX_BRACKETS)
            return fail(l, l->at, "more than 500 brackets are open");
        if (strchr(")]}", marks[i][0]) != NULL && --l->brackets < 0)
            return fail(l, l->at, "a bracket closes that was not opened");
        add(l, TL_TOKEN_PUNCTUATION, l->at, marks[i]);
        l->at += strlen(marks[i]);
        return TL_OK;
    }
    if ((unsigned char)*l->at < 32 || (unsigned char)*l->at > 126)
        return fail(l, l->at, "a character that does not belong into a program");
    return tl_fail(l->diag, TL_BAD_TEXT, "%s:%d:%d: unexpected '%c'", l->file, l->line,
                   (int)(l->at - l->line_start) + 1, *l->at);
}

/* Indents and dedents for a line that begins in `column` (from 0). */
static tl_status lex_indent(lexer *l, int column)
{
    assert(l->indent_count > 0 && l->indent_count <= MAX_INDENTS && column >= 0);
    int last = l->indent_count - 1;
    if (column > l->indents[last]) {
        if (l->indent_count == MAX_INDENTS)
            return fail(l, l->at, "lines are nested more than 200 deep");
        l->indents[l->indent_count++] = column;
        add(l, TL_TOKEN_INDENT, l->at, "indentation");
        return TL_OK;
    }
    while (column < l->indents[l->indent_count - 1]) {
        l->indent_count--;
        add(l, TL_TOKEN_DEDENT, l->at, "end of the indented lines");
    }
    if (column != l->indents[l->indent_count - 1])
        return fail(l, l->at, "the indentation fits none of the lines above");
    return TL_OK;
}

static void skip_blanks(lexer *l)
{
    while (*l->at == ' ' || *l->at == '\r')
        l->at++;
    if (*l->at == '#')
        while (*l->at != '\0' && *l->at != '\n')
            l->at++;
}

static tl_status lex_line(lexer *l)
{
    bool any = false;
    for (;;) {
        skip_blanks(l);
        if (*l->at == '\0' || (*l->at == '\n' && (l->brackets == 0 || !any)))
            break;
        if (*l->at == '\n') {
            l->line_start = ++l->at;
            l->line++;
            continue;
        }
        if (*l->at == '\t')
            return fail(l, l->at, "a tab: indent and separate with spaces");
        if (!any)
            TL_TRY(lex_indent(l, (int)(l->at - l->line_start)));
        any = true;
        if (tl_is_name_start(*l->at))
            TL_TRY(lex_name(l));
        else if (is_digit(*l->at))
            TL_TRY(lex_number(l));
        else
            TL_TRY(lex_punctuation(l));
    }
    if (*l->at == '\0' && l->brackets > 0)
        return fail(l, l->at, "the text ends inside a bracket");
    if (any)
        add(l, TL_TOKEN_NEWLINE, l->at, "end of the line");
    return TL_OK;
}

tl_status tl_lex(tl_arena *arena, const char *text, const char *file, const tl_token **out,
                 tl_diag *diag)
{
    lexer *l = TL_NEW(arena, lexer);
    l->arena = arena;
    l->file = file;
    l->at = l->line_start = text;
    l->line = 1;
    l->diag = diag;
    l->indent_count = 1;
    if (strnlen(text, MAX_TEXT + 1) > MAX_TEXT)
        return tl_fail(diag, TL_BAD_TEXT, "%s:1:1: the text is longer than 4 MiB", file);
    while (*l->at != '\0') {
        TL_TRY(lex_line(l));
        if (*l->at == '\n') {
            l->line_start = ++l->at;
            l->line++;
        }
    }
    TL_TRY(lex_indent(l, 0));
    add(l, TL_TOKEN_END, l->at, "end of the text");
    *out = l->tokens;
    return TL_OK;
}
