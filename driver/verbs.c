/* driver/verbs.c: the table of verbs. */
#include "driver/cli.h"

const tl_verb tl_verbs[] = {
#define VERB(name, arguments, summary) { #name, arguments, summary, tl_verb_##name },
#include "driver/verbs.def"
#undef VERB
};
const int tl_verb_count = sizeof tl_verbs / sizeof *tl_verbs;
