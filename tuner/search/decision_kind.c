/* tuner/search/decision_kind.c: a decision's kind, by the last part of its name. */
#include "tuner/search/decision_kind.h"
#include <string.h>

static const struct {
    const char *role;
    tl_decision_kind kind;
} roles[] = {
#define KIND(name, weight)
#define ROLE(role, kind) { #role, TL_DECISION_##kind },
#include "tuner/search/decision_roles.def"
#undef KIND
#undef ROLE
};

const char *tl_decision_role(const tl_decision *decision)
{
    const char *dot = strrchr(decision->name, '.');
    return dot != NULL ? dot + 1 : decision->name;
}

tl_decision_kind tl_decision_kind_of(const tl_decision *decision)
{
    const char *role = tl_decision_role(decision);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].role, role) == 0)
            return roles[i].kind;
    return TL_DECISION_TILE;
}
