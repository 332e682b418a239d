/* runtime/base/varying_text.c: texts that are the same but for whole numbers. */
#include "runtime/base/varying_text.h"
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '%' || c == '$';
}

/* The length of the whole number that begins at `at`, with its value; 0: none does. Floats are written in the shortest way: 2e+01
 * is one, too. */
static size_t number_at(const char *text, size_t at, int64_t *out)
{
    static const char digits[] = "0123456789";
    const char *begin = text + at, *end = begin + strspn(begin, digits);
    if (end == begin || (at > 0 && is_of_name(text[at - 1])))
        return 0;
    bool is_float = false;
    if (*end == '.') {
        end += 1 + strspn(end + 1, digits);
        is_float = true;
    }
    if (*end == 'e' && (end[1] == '+' || end[1] == '-')) {
        end += 2 + strspn(end + 2, digits);
        is_float = true;
    }
    size_t length = (size_t)(end - begin);
    if (length > 18 || is_of_name(*end))
        return 0;
    double value = is_float ? strtod(begin, NULL) : 0;
    if (is_float && (value >= 9007199254740992.0 || value != floor(value)))
        return 0;
    *out = is_float ? (int64_t)value : strtoll(begin, NULL, 10);
    return length;
}

/* The line that `at` is in, cut to what a sentence can hold. */
static const char *line_at(tl_arena *arena, const char *text, size_t at)
{
    size_t begin = at;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    size_t length = strcspn(text + begin, "\n");
    return tl_arena_strndup(arena, text + begin, length < 160 ? length : 160);
}

typedef struct {
    tl_arena *arena;
    const char *const *texts;
    const tl_samples *samples;
    size_t *at; /* how far each is walked */
    int64_t *numbers;
} walk;

/* Passes a number that stands at the place of all texts. False: there is none in some. */
static bool take_number(walk *w)
{
    for (int k = 0; k < w->samples->count; k++)
        if (number_at(w->texts[k], w->at[k], &w->numbers[k]) == 0)
            return false;
    for (int k = 0; k < w->samples->count; k++)
        w->at[k] += number_at(w->texts[k], w->at[k], &w->numbers[k]);
    return true;
}

static tl_status differ(const walk *w, int k, tl_diag *diag)
{
    return tl_fail(diag, TL_UNSUPPORTED, "for other extents it is another one: '%s' or '%s'",
                   line_at(w->arena, w->texts[0], w->at[0]),
                   line_at(w->arena, w->texts[k], w->at[k]));
}

/* Passes one character, the same in all texts, or a number. */
static tl_status take(walk *w, tl_varying_text *out, tl_diag *diag)
{
    size_t begin = w->at[0];
    if (take_number(w)) {
        tl_varying number;
        if (!tl_varying_fit(w->samples, w->numbers, &number))
            return differ(w, w->samples->count - 1, diag);
        if (tl_varying_is_constant(&number))
            return TL_OK;
        TL_ROOM(w->arena, out->holes, out->hole_count, out->hole_capacity);
        out->holes[out->hole_count++] = (tl_varying_hole){ begin, w->at[0], number };
        return TL_OK;
    }
    for (int k = 1; k < w->samples->count; k++)
        if (w->texts[k][w->at[k]] != w->texts[0][w->at[0]])
            return differ(w, k, diag);
    for (int k = 0; k < w->samples->count; k++)
        w->at[k]++;
    return TL_OK;
}

tl_status tl_varying_text_join(tl_arena *arena, const char *const *texts, const tl_samples *samples,
                               tl_varying_text *out, tl_diag *diag)
{
    walk w = { arena, texts, samples, TL_NEW_ARRAY(arena, size_t, samples->count),
               TL_NEW_ARRAY(arena, int64_t, samples->count) };
    *out = (tl_varying_text){ .text = tl_arena_strdup(arena, texts[0]),
                              .dim_count = samples->dim_count };
    while (texts[0][w.at[0]] != '\0')
        TL_TRY(take(&w, out, diag));
    for (int k = 1; k < samples->count; k++)
        if (texts[k][w.at[k]] != '\0')
            return differ(&w, k, diag);
    return TL_OK;
}

bool tl_varying_text_is(const tl_varying_text *t, const int64_t *dims, const char *text)
{
    size_t from = 0, at = 0;
    for (int i = 0; i < t->hole_count; i++) {
        const tl_varying_hole *hole = &t->holes[i];
        size_t length = hole->begin - from;
        int64_t want, is;
        if (strncmp(text + at, t->text + from, length) != 0)
            return false;
        at += length;
        length = number_at(text, at, &is);
        if (length == 0 || !tl_varying_at(&hole->number, t->dim_count, dims, &want) || is != want)
            return false;
        at += length;
        from = hole->end;
    }
    return strcmp(text + at, t->text + from) == 0;
}
