/* driver/reduce/edits.c: the table of the edits. */
#include "driver/reduce/edits.h"

const tl_edit tl_edits[] = {
#define EDIT(name, parts, edit, ways, once, shapes) \
    { #name, tl_count_##parts, tl_##edit, ways, once, shapes },
#include "driver/reduce/edits.def"
#undef EDIT
};
const int tl_edit_total = sizeof tl_edits / sizeof *tl_edits;
