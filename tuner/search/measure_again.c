/* tuner/search/measure_again.c: a second hearing for who was ahead only in company.
 *
 * Contests believe nobody by a few percent who was never alone on the core (contest.c), and rightly; but seconds later
 * the core may be alone. So what promised a gain is proposed again once the last results had the core to themselves, the
 * most promising first. Of too many the least promising are forgotten. */
#include "tuner/search/policy_private.h"

/* Results between two hearings. */
enum { PAUSE = 8 };
/* The mean share of turns alone from which the core is taken for calm. */
#define CALM 0.2

static tl_appeal *find(tl_appeals *all, int entry)
{
    for (int i = 0; i < all->count; i++)
        if (all->list[i].entry == entry)
            return &all->list[i];
    return NULL;
}

static bool is_core_calm(const tl_appeals *all)
{
    double sum = 0;
    for (int i = 0; i < TL_LAST_RESULTS; i++)
        sum += all->alone[i];
    return sum / TL_LAST_RESULTS >= CALM;
}

static bool is_due(const tl_appeals *all, const tl_appeal *appeal)
{
    return !appeal->is_heard && all->result_count - appeal->heard_at >= PAUSE;
}

void tl_explorer_take_appeal(tl_explorer *x)
{
    tl_appeals *all = &x->appeals;
    tl_appeal *best = NULL;
    if (!is_core_calm(all))
        return;
    for (int i = 0; i < all->count; i++)
        if (is_due(all, &all->list[i]) && (best == NULL || all->list[i].promise > best->promise))
            best = &all->list[i];
    if (best != NULL)
        best->is_heard = tl_explorer_take_again(x, best->entry, best->promise, "appeal");
}

bool tl_explorer_is_heard_again(tl_explorer *x, int entry)
{
    const tl_appeal *appeal = find(&x->appeals, entry);
    return appeal != NULL && appeal->is_heard;
}

static void remove_appeal(tl_appeals *all, tl_appeal *appeal)
{
    *appeal = all->list[--all->count];
}

/* Where a new appeal goes: the least promising makes room for more. NULL: there is none. Who is being heard stays. */
static tl_appeal *make_room(tl_appeals *all, double promise)
{
    tl_appeal *least = NULL;
    if (all->count < TL_MOST_APPEALS)
        return &all->list[all->count++];
    for (int i = 0; i < all->count; i++)
        if (!all->list[i].is_heard && (least == NULL || all->list[i].promise < least->promise))
            least = &all->list[i];
    return least != NULL && least->promise < promise ? least : NULL;
}

static void file_appeal(tl_appeals *all, int entry, double promise)
{
    tl_appeal *place = make_room(all, promise);
    if (place != NULL)
        *place = (tl_appeal){ entry, promise, 0, all->result_count, false };
}

static void renew_appeal(tl_appeals *all, tl_appeal *appeal, double promise, int most)
{
    appeal->promise = promise;
    appeal->heard_at = all->result_count;
    appeal->is_heard = false;
    if (++appeal->again >= most)
        remove_appeal(all, appeal);
}

void tl_explorer_note_result(tl_explorer *x, int entry, double promise, double alone)
{
    tl_appeals *all = &x->appeals;
    tl_appeal *appeal = find(all, entry);
    all->alone[all->result_count++ % TL_LAST_RESULTS] = alone;
    if (appeal != NULL && promise > 0)
        renew_appeal(all, appeal, promise, x->method->appeals);
    else if (appeal != NULL)
        remove_appeal(all, appeal);
    else if (promise > 0 && x->method->appeals > 0)
        file_appeal(all, entry, promise);
}
