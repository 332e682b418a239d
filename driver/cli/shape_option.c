/* driver/cli/shape_option.c: --shape NAME=1,3,224,224. */
#include "driver/cli/shape_option.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static tl_status parse(tl_arena *arena, const char *text, tl_shape_override *out, tl_diag *diag)
{
    const char *equals = strrchr(text, '=');
    int64_t extents[TL_MAX_RANK];
    int rank = 0;
    if (equals == NULL || equals == text)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape %.100s: not of the form INPUT=1,3,224,224",
                       text);
    const char *p = equals + 1;
    do {
        char *end;
        errno = 0;
        long long n = strtoll(p, &end, 10);
        if (end == p || n < 0 || errno != 0 || (*end != ',' && *end != '\0') || rank == TL_MAX_RANK)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "--shape %.100s: '%.100s' is not a list of 1 to %d extents", text,
                           equals + 1, TL_MAX_RANK);
        extents[rank++] = n;
        p = *end == ',' ? end + 1 : end;
    } while (*p != '\0' || p[-1] == ',');
    out->name = tl_arena_strndup(arena, text, (size_t)(equals - text));
    out->shape = tl_shape_of(rank, extents);
    return TL_OK;
}

tl_status tl_shape_options_parse(tl_arena *arena, const tl_text_list *list,
                                 const tl_shape_override **out, tl_diag *diag)
{
    tl_shape_override *shapes = TL_NEW_ARRAY(arena, tl_shape_override, list->count);
    for (int i = 0; i < list->count; i++)
        TL_TRY(parse(arena, list->items[i], &shapes[i], diag));
    *out = shapes;
    return TL_OK;
}
