/* runtime/device/meet.c: the threads of a team wait for each other, and help one that cannot come.
 *
 *     look alone -> let others run for a moment -> sleep for 0.1 ms, 0.2 ms, ...
 *                                                             \_ has the one who is missing computed meanwhile? If not,
 *                                                                it waits for a processor: it gets ours
 *
 * Where another process takes a core for a few milliseconds, the thread that had it waits in a queue, and all others for it.
 * The system moves it to a free core in its own time, and not at all while other processes keep all cores busy. It goes back
 * some milliseconds later: two threads of a team on one core are slower than two on two, if there are. */
#include <assert.h>
#include <limits.h>
#include <sched.h>
#include "runtime/base/clock.h"
#include "runtime/device/pool_private.h"

enum { MOMENT_NS = 30000, FIRST_SLEEP_NS = 100000, LAST_SLEEP_NS = 51200000, AWAY_NS = 3000000 };

/* The next after `thread` that has not come to the meeting; NULL: all have. */
static tl_member *find_missing(tl_pool *pool, int thread, int threads, unsigned generation)
{
    for (int i = 1; i < threads; i++) {
        tl_member *m = &pool->members[(thread + i) % threads];
        unsigned ahead = atomic_load_explicit(&m->met, memory_order_acquire) - (generation + 1);
        if (ahead > UINT_MAX / 2) /* behind; one that is ahead has gone on already */
            return m;
    }
    return NULL;
}

/* Nanoseconds that it has computed; -1: nobody knows. */
static int64_t computed_ns(tl_member *m)
{
    struct timespec t;
    bool is_known = m != NULL && atomic_load_explicit(&m->id, memory_order_acquire) != 0;

    return is_known && clock_gettime(atomic_load_explicit(&m->clock, memory_order_relaxed), &t) == 0
               ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec
               : -1;
}

/* To a processor, where the thread may be there; from then on it may be anywhere again. */
static bool move(int id, int processor)
{
    cpu_set_t its, one;

    if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(id, sizeof its, &its) != 0 ||
        !CPU_ISSET(processor, &its) || CPU_COUNT(&its) == 1)
        return false;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(id, sizeof one, &one) != 0)
        return false;
    sched_setaffinity(id, sizeof its, &its);
    return true;
}

/* Onto the processor that we are about to leave. */
static void bring_here(tl_member *m)
{
    if (move(atomic_load_explicit(&m->id, memory_order_relaxed), sched_getcpu()))
        atomic_store_explicit(&m->moved_ns, tl_clock_ns(), memory_order_relaxed);
}

static void go_home(tl_member *self)
{
    int64_t moved = atomic_load_explicit(&self->moved_ns, memory_order_relaxed);

    if (moved == 0 || tl_clock_ns() - moved < AWAY_NS)
        return;
    atomic_store_explicit(&self->moved_ns, 0, memory_order_relaxed);
    if (sched_getcpu() != self->home)
        move(0, self->home);
}

static void wait_for_all(tl_pool *pool, int thread, int threads, unsigned generation)
{
    tl_signal *all = &pool->generation;

    if (tl_signal_look(all, generation, &pool->members[thread].inside))
        return;
    tl_member *missing = find_missing(pool, thread, threads, generation);
    int64_t before = computed_ns(missing);
    if (tl_signal_yield(all, generation, MOMENT_NS))
        return;
    for (int64_t most = FIRST_SLEEP_NS; !tl_signal_sleep(all, generation, most);
         most = most < LAST_SLEEP_NS ? 2 * most : most) {
        tl_member *still = find_missing(pool, thread, threads, generation);
        int64_t now = computed_ns(still);
        if (still != NULL && still == missing && now == before && now >= 0)
            bring_here(still);
        missing = still;
        before = now;
    }
}

void tl_meet(tl_pool *pool, int thread, int threads)
{
    assert(threads > 0 && thread < threads);
    unsigned generation = atomic_load_explicit(&pool->generation.word, memory_order_relaxed);

    go_home(&pool->members[thread]);
    atomic_store_explicit(&pool->members[thread].met, generation + 1, memory_order_release);
    if (atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel) + 1 ==
        (unsigned)threads) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        tl_signal_change(&pool->generation, generation + 1);
    } else {
        wait_for_all(pool, thread, threads, generation);
    }
}
