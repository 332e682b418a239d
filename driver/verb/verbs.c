/* driver/verb/verbs.c: the table of verbs. */
#include "driver/verb/verbs.h"
#include "runtime/base/text.h"

const tl_verb tl_verbs[] = {
#define VERB(name, arguments, summary)          { #name, arguments, summary, tl_verb_##name },
#define VERB_AS(name, text, arguments, summary) { text, arguments, summary, tl_verb_##name },
#include "driver/verb/verbs.def"
#undef VERB
};
const int tl_verb_count = sizeof tl_verbs / sizeof *tl_verbs;

const char *tl_nearest_verb(const char *name)
{
    const char *nearest = NULL;
    size_t least = 3;
    for (int i = 0; i < tl_verb_count; i++)
        if (*tl_verbs[i].summary && tl_text_edits(name, tl_verbs[i].name) < least) {
            least = tl_text_edits(name, tl_verbs[i].name);
            nearest = tl_verbs[i].name;
        }
    return nearest;
}

void tl_verbs_visit(tl_help_visitor *visit, void *user)
{
    tl_verb_hand_over(visit, user);
    for (int i = 0; i < tl_verb_count; i++)
        if (*tl_verbs[i].summary)
            tl_verbs[i].run(0, NULL);
    tl_verb_hand_over(NULL, NULL);
}
