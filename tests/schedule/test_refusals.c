/* tests/schedule/test_refusals.c: every sentence with which a primitive refuses (the formats of tl_refuse in schedule/,
 * those of the default schedule aside, which nobody reads) is printed by some golden file of tests/golden/schedule. A
 * sentence that is not is listed; the golden that prints it is the test that the rule is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/arena.h"

enum { MAX_SENTENCE = 1024 };

/* Rules that no trace can break today, each with why. */
static const struct {
    const char *sentence, *why;
} unreachable[] = {
    { "scope %s wants a constant shape, and its dims have no bound",
      "a dim of a text has one; programs made in C may not" },
    { "factor %lld is not at least 1",
      "the parser of traces refuses it before; C code can say it" },
    { "no block is under the loop, and a trace names a loop by loops(BLOCK)",
      "so a trace cannot say it; C code can" },
    { "iterations of the parallel loop %s would touch the same elements of %s: make the loop "
      "parallel after the move, or take a loop outside it",
      "blocks that move write locals, and those go inside the loop with them; a second net" },
};

static const char *read_text(tl_arena *arena, const char *path)
{
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    if (tl_file_read(path, &file, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *text = tl_arena_strdup(arena, tl_text_get(&file));
    tl_text_free(&file);
    return text;
}

/* What the goldens expect, one behind another, each on one line. */
static char **read_expected(tl_arena *arena, size_t *count)
{
    glob_t files;
    assert_int_equal(glob("tests/golden/schedule/*.txt", 0, NULL, &files), 0);
    char **texts = TL_NEW_ARRAY(arena, char *, files.gl_pathc);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *text = read_text(arena, files.gl_pathv[i]);
        const char *expect = strstr(text, "\nexpect\n");
        texts[i] = tl_arena_strdup(arena, expect ? expect : "");
    }
    *count = files.gl_pathc;
    globfree(&files);
    return texts;
}

/* The pieces of a format between its conversions, in order, said by that primitive (NULL: by any). */
static bool prints(const char *text, const char *prim, const char *format)
{
    char piece[MAX_SENTENCE];
    if (prim != NULL) {
        snprintf(piece, sizeof piece, "\n  %s ", prim);
        text = strstr(text, piece);
    }
    if (text == NULL)
        return false;
    while (*format) {
        size_t length = strcspn(format, "%");
        memcpy(piece, format, length);
        piece[length] = 0;
        text = strstr(text, piece);
        if (text == NULL)
            return false;
        text += length;
        format += length;
        if (*format == '%') {
            format++;
            while (*format && strchr("0123456789.*l", *format))
                format++;
            format += *format != 0;
        }
    }
    return true;
}

/* The string literals from `at` on that stand behind one another; NULL: there is none here. Past them goes to *end. */
static bool literal(const char *at, char *out, const char **end)
{
    size_t length = 0;
    bool any = false;
    for (;; at++) {
        while (isspace((unsigned char)*at))
            at++;
        if (*at != '"')
            break;
        any = true;
        for (at++; *at && *at != '"'; at++)
            if (length + 1 < MAX_SENTENCE)
                out[length++] = *at;
    }
    out[length] = 0;
    *end = at;
    return any;
}

/* The format of a call of tl_refuse whose arguments begin at `at`: its fourth argument. */
static bool format_of(const char *at, char *out)
{
    int depth = 0, argument = 0;
    while (*at) {
        const char *end;
        if (argument == 3 && literal(at, out, &end))
            return true;
        if (literal(at, out, &end)) {
            at = end;
            continue;
        }
        if (*at == '(' || *at == '[')
            depth++;
        if (*at == ')' || *at == ']')
            if (depth-- == 0)
                return false;
        if (*at == ',' && depth == 0)
            argument++;
        at++;
    }
    return false;
}

static bool is_unreachable(const char *sentence)
{
    for (size_t i = 0; i < sizeof unreachable / sizeof *unreachable; i++)
        if (strcmp(unreachable[i].sentence, sentence) == 0)
            return true;
    return false;
}

static void every_refusal_has_a_golden(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    size_t count;
    int missing = 0, found = 0;
    char **expected = read_expected(arena, &count);
    glob_t sources;
    assert_int_equal(glob("schedule/*.c", 0, NULL, &sources), 0);
    assert_int_equal(glob("schedule/prim/*.c", GLOB_APPEND, NULL, &sources), 0);
    for (size_t i = 0; i < sources.gl_pathc; i++) {
        const char *path = sources.gl_pathv[i], *text = read_text(arena, path);
        char prim[64] = "";
        bool of_one = sscanf(path, "schedule/prim/prim_%63[a-z_].c", prim) == 1;
        for (const char *at = text; (at = strstr(at, "return tl_refuse(")) != NULL; at++) {
            char sentence[MAX_SENTENCE];
            bool is_printed = false;
            if (!format_of(strchr(at, '(') + 1, sentence))
                continue;
            found++;
            for (size_t g = 0; g < count && !is_printed; g++)
                is_printed = prints(expected[g], of_one ? prim : NULL, sentence);
            if (is_printed || is_unreachable(sentence))
                continue;
            fprintf(stderr, "%s: no golden prints: %s\n", path, sentence);
            missing++;
        }
    }
    globfree(&sources);
    tl_arena_destroy(arena);
    assert_in_range(found, 200, 2000); /* the sources were read */
    assert_int_equal(missing, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_has_a_golden),
    };
    return cmocka_run_group_tests_name("schedule refusals", tests, NULL, NULL);
}
