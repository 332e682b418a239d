/* driver/cli/line_diff.c: the longest common subsequence of two lists of lines, by dynamic programming on what is left
 * between their common beginning and end. */
#include "driver/cli/line_diff.h"
#include <stdint.h>
#include <string.h>
#include "driver/cli/cli.h"

enum { MOST_CELLS = 4 << 20 };

typedef struct {
    int count;
    const char **items;
} lines;

static lines split(tl_arena *arena, const char *text)
{
    lines out = { 0 };
    int count = 1;
    for (const char *p = text; *p != '\0'; p++)
        count += *p == '\n';
    out.items = TL_NEW_ARRAY(arena, const char *, count);
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        out.items[out.count++] = tl_arena_strndup(arena, text, size);
        text += size + (text[size] == '\n');
    }
    return out;
}

static void add(tl_line_diff *d, tl_diff_line *to, char mark, const char *text)
{
    to[d->count++] = (tl_diff_line){ mark, text };
    d->removed += mark == '-';
    d->added += mark == '+';
}

tl_line_diff tl_line_diff_make(tl_arena *arena, const char *before, const char *after)
{
    lines a = split(arena, before), b = split(arena, after);
    tl_diff_line *out = TL_NEW_ARRAY(arena, tl_diff_line, a.count + b.count);
    tl_line_diff d = { .lines = out };
    int first = 0, last = 0;
    while (first < a.count && first < b.count && strcmp(a.items[first], b.items[first]) == 0)
        first++;
    while (last < a.count - first && last < b.count - first &&
           strcmp(a.items[a.count - 1 - last], b.items[b.count - 1 - last]) == 0)
        last++;
    int n = a.count - first - last, m = b.count - first - last;

    /* common[i][j]: the longest common subsequence of what follows i and j */
    int16_t *common = NULL;
    if (n < INT16_MAX && m < INT16_MAX && ((int64_t)n + 1) * (m + 1) <= MOST_CELLS) {
        common = TL_NEW_ARRAY(arena, int16_t, (n + 1) * (m + 1));
        for (int i = n - 1; i >= 0; i--)
            for (int j = m - 1; j >= 0; j--) {
                int16_t *at = &common[i * (m + 1) + j], down = at[m + 1], right = at[1];
                if (strcmp(a.items[first + i], b.items[first + j]) == 0)
                    *at = (int16_t)(at[m + 2] + 1);
                else
                    *at = down >= right ? down : right;
            }
    }
    for (int i = 0; i < first; i++)
        add(&d, out, ' ', a.items[i]);
    int i = 0, j = 0;
    while (i < n || j < m) {
        const char *x = i < n ? a.items[first + i] : NULL, *y = j < m ? b.items[first + j] : NULL;
        const int16_t *at = common != NULL ? &common[i * (m + 1) + j] : NULL;
        if (x != NULL && y != NULL && at != NULL && strcmp(x, y) == 0) {
            add(&d, out, ' ', x);
            i++, j++;
        } else if (x != NULL && (y == NULL || at == NULL || at[m + 1] >= at[1])) {
            add(&d, out, '-', x);
            i++;
        } else {
            add(&d, out, '+', y);
            j++;
        }
    }
    for (int k = a.count - last; k < a.count; k++)
        add(&d, out, ' ', a.items[k]);
    return d;
}

void tl_line_diff_print(const tl_line_diff *d, int context, const char *indent, FILE *out)
{
    bool skipping = false;
    for (int i = 0; i < d->count; i++) {
        bool near = false;
        for (int k = i - context; k <= i + context && !near; k++)
            near = k >= 0 && k < d->count && d->lines[k].mark != ' ';
        if (!near && !skipping)
            fprintf(out, "%s  ...\n", indent);
        skipping = !near;
        if (!near)
            continue;
        char mark = d->lines[i].mark;
        tl_style style = mark == '-' ? TL_STYLE_RED : mark == '+' ? TL_STYLE_GREEN : TL_STYLE_PLAIN;
        fputs(indent, out);
        tl_print_styled(out, style, "%c %s", mark, d->lines[i].text);
        fputc('\n', out);
    }
}
