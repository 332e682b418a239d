/* tuner/search/policy.c: the table of search policies. */
#include <string.h>
#include "tuner/search/policy_private.h"

const tl_policy_type *const tl_policies[] = {
#define POLICY(name, words) &tl_policy_##name,
#include "tuner/search/policies.def"
#undef POLICY
};
const int tl_policy_count = sizeof tl_policies / sizeof *tl_policies;

const tl_policy_type *tl_policy_find(const char *name)
{
    for (int i = 0; i < tl_policy_count; i++)
        if (strcmp(tl_policies[i]->name, name) == 0)
            return tl_policies[i];
    return NULL;
}
