/* ir/program/numerics.c: the numerics contract of a compile as text. */
#include "ir/program/numerics.h"

const char *tl_numerics_text(tl_numerics numerics)
{
    return numerics == TL_NUMERICS_STRICT ? "strict" : "relaxed";
}
