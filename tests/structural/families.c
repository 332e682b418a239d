/* tests/structural/families.c: the table of families.def. */
#include "tests/structural/draw.h"

const draw_family draw_families[] = {
#define FAMILY(name, weight, since, until, open, counts) \
    { #name, weight, since, until, open, counts, draw_##name },
#include "tests/structural/families.def"
#undef FAMILY
};
const int draw_family_count = sizeof draw_families / sizeof draw_families[0];
