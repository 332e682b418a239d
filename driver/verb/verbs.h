/* driver/verb/verbs.h: the verbs of the command line (driver/verb/verbs.def). */
#ifndef TL_DRIVER_VERB_VERBS_H
#define TL_DRIVER_VERB_VERBS_H
#include "driver/cli/cli.h"

typedef struct {
    const char *name, *arguments, *summary; /* summary "": not listed */
    int (*run)(int argc, char **argv);
} tl_verb;
extern const tl_verb tl_verbs[];
extern const int tl_verb_count;
const char *tl_nearest_verb(const char *name); /* by spelling; NULL: none is near */
#define VERB(name, arguments, summary) int tl_verb_##name(int argc, char **argv);
#include "driver/verb/verbs.def"
#undef VERB

/* Calls `visit` with the help of every listed verb, as its own option table gives it. */
void tl_verbs_visit(tl_help_visitor *visit, void *user);

#endif
