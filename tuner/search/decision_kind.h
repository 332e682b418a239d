/* tuner/search/decision_kind.h: what a decision is about (decision_roles.def). */
#ifndef TL_TUNER_SEARCH_DECISION_KIND_H
#define TL_TUNER_SEARCH_DECISION_KIND_H
#include "schedule/decide.h"

typedef enum {
#define KIND(name, weight) TL_DECISION_##name,
#define ROLE(role, kind)
#include "tuner/search/decision_roles.def"
#undef KIND
#undef ROLE
    TL_DECISION_KIND_COUNT
} tl_decision_kind;

/* The last part of its name: "rows" of "conv.rows". */
const char *tl_decision_role(const tl_decision *decision);
tl_decision_kind tl_decision_kind_of(const tl_decision *decision);

#endif
