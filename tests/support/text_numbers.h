/* tests/support/text_numbers.h: whole numbers in the text of a kernel or a trace, those in names and decimals left out. */
#ifndef TL_TESTS_SUPPORT_TEXT_NUMBERS_H
#define TL_TESTS_SUPPORT_TEXT_NUMBERS_H
#include "runtime/base/arena.h"

/* What becomes of a number. */
typedef long long text_number_map(void *context, long long number);
const char *text_map_numbers(tl_arena *arena, const char *text, text_number_map *map,
                             void *context);
/* The text with every number `from` as `to`. */
const char *text_with_number(tl_arena *arena, const char *text, long long from, long long to);
/* The largest number of the text below `below`; 0: none. */
long long text_largest_number(const char *text, long long below);

#endif
