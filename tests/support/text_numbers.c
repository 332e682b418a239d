/* tests/support/text_numbers.c: see text_numbers.h. */
#include "tests/support/text_numbers.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/text.h"

static bool is_number_start(const char *text, const char *at)
{
    if (!isdigit((unsigned char)*at))
        return false;
    if (at == text || strncmp(at - 2 < text ? text : at - 2, "..", 2) == 0)
        return true;
    return !isalnum((unsigned char)at[-1]) && at[-1] != '_' && at[-1] != '.';
}

const char *text_map_numbers(tl_arena *arena, const char *text, text_number_map *map, void *context)
{
    tl_text out = { 0 };
    for (const char *at = text; *at;) {
        if (!is_number_start(text, at)) {
            tl_text_add_bytes(&out, at++, 1);
            continue;
        }
        char *end;
        long long value = strtoll(at, &end, 10);
        bool is_decimal = (*end == '.' && end[1] != '.') || *end == 'e';
        if (is_decimal)
            tl_text_add_bytes(&out, at, (size_t)(end - at));
        else
            tl_text_format(&out, "%lld", map(context, value));
        at = end;
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return copy;
}

static long long exchange(void *context, long long number)
{
    const long long *from_to = context;
    return number == from_to[0] ? from_to[1] : number;
}

const char *text_with_number(tl_arena *arena, const char *text, long long from, long long to)
{
    long long from_to[2] = { from, to };
    return text_map_numbers(arena, text, exchange, from_to);
}

long long text_largest_number(const char *text, long long below)
{
    long long largest = 0;
    for (const char *at = text; *at; at++) {
        if (!is_number_start(text, at))
            continue;
        long long value = strtoll(at, NULL, 10);
        if (value < below && value > largest)
            largest = value;
    }
    return largest;
}
