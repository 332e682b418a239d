/* runtime/device/share.c: a range divided among a team: beforehand, or while it works on it.
 *
 *     thread 0: [taken | front ->          <- back | taken]  thread 1: [taken | front ->   <- back | taken]
 *
 * Each thread's part is cut in pieces, and a word, its hand, says which of them nobody has taken. The thread itself takes
 * the first of them, others the last. A hand belongs to one range, which it names by its number; one that still names the
 * range before is a full hand of this one: nobody has to fill it, and a thread that has not come yet can be helped. It is
 * never two ranges old, for each thread looks at its own hand in each range, and they meet between two. */
#include <assert.h>
#include "runtime/base/checked.h"
#include "runtime/device/pool_private.h"

enum { COUNT_BITS = 24, NUMBER_BITS = 16 };
#define MOST_PIECES ((INT64_C(1) << COUNT_BITS) - 1)

typedef struct {
    unsigned number, front, back;
} hand;

static uint64_t pack(hand h)
{
    return (uint64_t)h.number << 2 * COUNT_BITS | (uint64_t)h.back << COUNT_BITS | h.front;
}

static hand unpack(uint64_t word)
{
    return (hand){ (unsigned)(word >> 2 * COUNT_BITS), (unsigned)(word & MOST_PIECES),
                   (unsigned)(word >> COUNT_BITS & MOST_PIECES) };
}

tl_part tl_team_range(int64_t extent, int thread, int threads)
{
    assert(extent >= 0 && threads > 0 && thread >= 0 && thread < threads);
    int64_t whole = extent / threads, rest = extent % threads; /* extent*thread may not fit */

    return (tl_part){ whole * thread + rest * thread / threads,
                      whole * (thread + 1) + rest * (thread + 1) / threads };
}

void tl_share_reset(tl_member *member)
{
    atomic_store_explicit(&member->hand, 0, memory_order_relaxed);
}

tl_shared tl_team_share(tl_team *team, int64_t extent, int64_t piece)
{
    assert(extent >= 0 && piece > 0);
    int64_t least = tl_ceildiv(tl_ceildiv(extent, team->threads), MOST_PIECES);

    team->shared = (team->shared + 1) % (1u << NUMBER_BITS);
    return (tl_shared){ extent, tl_max64(piece, least), team->thread };
}

/* The first piece that is left in the own hand, the last one of another's. */
static bool take_from(const tl_team *team, const tl_shared *s, int thread, tl_part *out)
{
    atomic_uint_least64_t *word = &team->pool->members[thread].hand;
    tl_part part = tl_team_range(s->extent, thread, team->threads);
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed), next;
    bool is_own = thread == team->thread, found;
    unsigned at;

    do {
        hand h = unpack(seen);
        if (h.number != team->shared)
            h = (hand){ team->shared, 0, (unsigned)tl_ceildiv(part.end - part.begin, s->piece) };
        found = h.front < h.back;
        at = is_own ? h.front : h.back - 1;
        h.front += found && is_own;
        h.back -= found && !is_own;
        next = pack(h);
    } while (next != seen &&
             !atomic_compare_exchange_weak_explicit(word, &seen, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (found)
        *out = (tl_part){ part.begin + at * s->piece,
                          tl_min64(part.begin + (at + 1) * s->piece, part.end) };
    return found;
}

bool tl_team_take(const tl_team *team, tl_shared *s, tl_part *out)
{
    if (team->pool == NULL) { /* alone: all at once */
        *out = (tl_part){ 0, s->extent };
        s->extent = 0;
        return out->begin < out->end;
    }
    while (!take_from(team, s, s->from, out)) {
        s->from = (s->from + 1) % team->threads;
        if (s->from == team->thread)
            return false;
    }
    return true;
}
