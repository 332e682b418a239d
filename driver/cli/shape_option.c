/* driver/cli/shape_option.c: --shape NAME=1,3,224,224, or --shape NAME=1,16..512. */
#include "driver/cli/shape_option.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool read_extent(const char **p, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(*p, &end, 10);
    if (end == *p || n < 0 || errno != 0)
        return false;
    *out = n;
    *p = end;
    return true;
}

/* "16" or "16..512" */
static bool read_range(const char **p, int64_t *low, int64_t *high)
{
    if (!read_extent(p, low))
        return false;
    *high = *low;
    if (strncmp(*p, "..", 2) != 0)
        return true;
    *p += 2;
    return read_extent(p, high) && *low < *high;
}

static tl_status parse(tl_arena *arena, const char *text, tl_shape_override *low,
                       tl_shape_override *high, tl_diag *diag)
{
    const char *equals = strrchr(text, '=');
    int64_t lows[TL_MAX_RANK], highs[TL_MAX_RANK];
    int rank = 0;
    if (equals == NULL || equals == text)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape %.100s: not of the form INPUT=1,3,224,224",
                       text);
    const char *p = equals + 1;
    do {
        if (rank == TL_MAX_RANK || !read_range(&p, &lows[rank], &highs[rank]) ||
            (*p != ',' && *p != '\0'))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "--shape %.100s: '%.100s' is not a list of 1 to %d extents", text,
                           equals + 1, TL_MAX_RANK);
        rank++;
        p += *p == ',';
    } while (*p != '\0' || p[-1] == ',');
    low->name = high->name = tl_arena_strndup(arena, text, (size_t)(equals - text));
    low->shape = tl_shape_of(rank, lows);
    high->shape = tl_shape_of(rank, highs);
    return TL_OK;
}

bool tl_shape_options_have_range(const tl_text_list *list)
{
    bool found = false;
    for (int i = 0; i < list->count; i++) {
        const char *equals = strrchr(list->items[i], '=');
        found |= equals != NULL && strstr(equals, "..") != NULL;
    }
    return found;
}

tl_status tl_shape_ranges_parse(tl_arena *arena, const tl_text_list *list,
                                const tl_shape_override **low, const tl_shape_override **high,
                                tl_diag *diag)
{
    tl_shape_override *lows = TL_NEW_ARRAY(arena, tl_shape_override, list->count);
    tl_shape_override *highs = TL_NEW_ARRAY(arena, tl_shape_override, list->count);
    for (int i = 0; i < list->count; i++)
        TL_TRY(parse(arena, list->items[i], &lows[i], &highs[i], diag));
    *low = lows;
    *high = highs;
    return TL_OK;
}

tl_status tl_shape_options_parse(tl_arena *arena, const tl_text_list *list,
                                 const tl_shape_override **out, tl_diag *diag)
{
    const tl_shape_override *high;
    TL_TRY(tl_shape_ranges_parse(arena, list, out, &high, diag));
    for (int i = 0; i < list->count; i++)
        if (!tl_shape_equal(&(*out)[i].shape, &high[i].shape))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "--shape %.100s: one shape is wanted here; `compile` and `bench` take "
                           "ranges",
                           list->items[i]);
    return TL_OK;
}
