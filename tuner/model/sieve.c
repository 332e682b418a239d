/* tuner/model/sieve.c: which of some things go together, by halving. */
#include "tuner/model/sieve.h"

/* Adds of first, ..., first + count - 1 what goes with the members that there are. */
static tl_status add(tl_sieve *sieve, int first, int count, bool is_new, tl_diag *diag)
{
    if (count == 0)
        return TL_OK;
    for (int i = 0; i < count; i++)
        sieve->members[sieve->member_count + i] = first + i;
    bool right = false;
    if (is_new && !sieve->is_over(sieve->user))
        TL_TRY(
            sieve->judge(sieve->user, sieve->members, sieve->member_count + count, &right, diag));
    if (right)
        sieve->member_count += count;
    if (right || count == 1 || sieve->is_over(sieve->user))
        return TL_OK;
    TL_TRY(add(sieve, first, count / 2, true, diag));
    return add(sieve, first + count / 2, count - count / 2, true, diag);
}

tl_status tl_sieve_sift(tl_sieve *sieve, int count, tl_diag *diag)
{
    sieve->member_count = 0;
    return add(sieve, 0, count, false, diag); /* all of them were wrong: that is why */
}
