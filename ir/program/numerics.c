/* ir/program/numerics.c: the numerics contract of a compile as text. */
#include "ir/program/numerics.h"
#include <stddef.h>
#include <string.h>

static const char *const words[TL_NUMERICS_COUNT] = {
    [TL_NUMERICS_RELAXED] = "relaxed",
    [TL_NUMERICS_STRICT] = "strict",
    [TL_NUMERICS_TF32] = "tf32",
};

const char *tl_numerics_text(tl_numerics numerics)
{
    return words[numerics];
}

tl_status tl_numerics_parse(const char *text, tl_numerics *out, tl_diag *diag)
{
    *out = TL_NUMERICS_RELAXED;
    for (int i = 0; text != NULL && i < TL_NUMERICS_COUNT; i++)
        if (strcmp(words[i], text) == 0) {
            *out = (tl_numerics)i;
            return TL_OK;
        }
    return text == NULL ? TL_OK
                        : tl_fail(diag, TL_BAD_ARGUMENT,
                                  "--numerics: '%s' is none of relaxed, strict and tf32", text);
}
