/* driver/cli/line_diff.h: which lines of a text changed. */
#ifndef TL_DRIVER_CLI_LINE_DIFF_H
#define TL_DRIVER_CLI_LINE_DIFF_H
#include <stdio.h>
#include "runtime/base/arena.h"

typedef struct {
    char mark; /* ' ' in both, '-' only before, '+' only after */
    const char *text;
} tl_diff_line;
typedef struct {
    int count, removed, added;
    const tl_diff_line *lines;
} tl_line_diff;

/* The fewest marked lines, by a longest common subsequence; texts of thousands of changed lines are marked whole. */
tl_line_diff tl_line_diff_make(tl_arena *arena, const char *before, const char *after);
/* Changed lines in red and green where `out` is a terminal, with `context` lines around them; the rest as "...". */
void tl_line_diff_print(const tl_line_diff *diff, int context, const char *indent, FILE *out);

#endif
