/* runtime/device/pool.c: threads that walk the phases of a model together.
 *
 * Everything that anyone waits for is a word that changes (signal.h): a member's `go` (a run that
 * needs it has begun) and the pool's `generation` (everyone has arrived at the barrier).
 *
 * A worker outside the team is left alone. One inside is waited for by the run's last barrier,
 * so that the job may change afterwards. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "runtime/device/pool_private.h"

/* Microseconds: parts of a phase rarely differ by more than the first. With more threads than processors, who looks on keeps
 * away the one waited for. */
enum { SPIN_US = 50, CROWDED_SPIN_US = 1, BETWEEN_US = 1000 };

/* Inside a team: a nested run must not wait for workers that wait for it. */
static _Thread_local bool in_team;

void tl_team_barrier(tl_team *team)
{
    if (team->threads > 1)
        tl_meet(team->pool, team->thread, team->threads);
}

static void run_in_team(tl_pool *pool, int thread, int threads)
{
    tl_team team = { thread, threads, pool, 0 };
    tl_member *self = &pool->members[thread];

    if (atomic_load_explicit(&self->moved_ns, memory_order_relaxed) == 0)
        self->home = sched_getcpu();
    in_team = true;
    pool->fn(&team, pool->context);
    in_team = false;
    tl_meet(pool, thread, threads);
}

static void pin_to(int processor)
{
    size_t size = CPU_ALLOC_SIZE(processor + 1);
    cpu_set_t *set = CPU_ALLOC(processor + 1);

    if (set == NULL)
        return;
    CPU_ZERO_S(size, set);
    CPU_SET_S((size_t)processor, size, set);
    sched_setaffinity(0, size, set); /* refused: we run wherever the scheduler likes */
    CPU_FREE(set);
}

static int processor_of(int thread)
{
    const tl_topology *t = tl_topology_get();

    return t->core_processor[thread % t->usable_cores];
}

/* Who the calling thread is, for those who wait for it. */
static void introduce(tl_member *self)
{
    int id = (int)syscall(SYS_gettid);
    clockid_t clock;

    if (pthread_getcpuclockid(pthread_self(), &clock) != 0)
        return;
    atomic_store_explicit(&self->clock, clock, memory_order_relaxed);
    atomic_store_explicit(&self->id, id, memory_order_release);
}

/* A worker begins on a core of its own. It stays there, or is moved to where there is room: a core that others take, too,
 * would hold up the whole team. */
static void place(const tl_pool *pool, int thread)
{
    cpu_set_t all;
    bool moves = pool->pin == TL_PIN_AUTO;

    if (pool->pin == TL_PIN_NEVER || (moves && sched_getaffinity(0, sizeof all, &all) != 0))
        return;
    pin_to(processor_of(thread));
    if (moves)
        sched_setaffinity(0, sizeof all, &all);
}

static void *worker_main(void *argument)
{
    tl_member *self = argument;
    tl_pool *pool = self->pool;

    introduce(self);
    place(pool, self->index);
    for (unsigned seen = 0;; seen++) {
        tl_signal_wait(&self->go, seen, &self->between);
        if (pool->fn == NULL)
            return NULL;
        run_in_team(pool, self->index, pool->team_size);
    }
}

static tl_status start_workers(tl_pool *pool, tl_diag *diag)
{
    sigset_t all, kept;
    int error = 0;

    sigfillset(&all); /* signals are the business of the user's threads */
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    for (int i = 1; i < pool->threads && error == 0; i++) {
        tl_member *m = &pool->members[i];
        error = pthread_create(&m->thread, NULL, worker_main, m);
        if (error == 0)
            pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    if (error != 0)
        return tl_fail(diag, TL_DEVICE, "thread pool: cannot start thread %d of %d: %s",
                       pool->started + 2, pool->threads, strerror(error));
    return TL_OK;
}

static void fill_members(tl_pool *pool, int awake_us)
{
    bool is_crowded = pool->threads > tl_topology_get()->usable_processors;
    int spin_us = is_crowded ? CROWDED_SPIN_US : SPIN_US;
    tl_patience between = tl_patience_make(spin_us < awake_us ? spin_us : awake_us, awake_us);

    for (int i = 0; i < pool->threads; i++) {
        tl_member *m = &pool->members[i];
        memset(m, 0, sizeof *m);
        m->pool = pool;
        m->index = i;
        m->between = between;
        m->inside = between;
    }
}

tl_status tl_pool_create(const tl_pool_options *options, tl_pool **out, tl_diag *diag)
{
    static const tl_pool_options defaults = { 0 };
    const tl_topology *t = tl_topology_get();

    if (options == NULL)
        options = &defaults;
    int threads = options->threads != 0 ? options->threads : t->threads;
    if (threads < 1 || threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "thread pool: %d threads are not in 1..%d", threads,
                       TL_MAX_THREADS);

    tl_pool *pool = aligned_alloc(TL_SIGNAL_LINE, sizeof *pool);
    tl_member *members = aligned_alloc(TL_SIGNAL_LINE, (size_t)threads * sizeof *members);
    if (pool == NULL || members == NULL) {
        free(pool);
        free(members);
        return tl_fail(diag, TL_NO_MEMORY, "thread pool: no memory for %d threads", threads);
    }
    memset(pool, 0, sizeof *pool);
    pool->threads = threads;
    pool->process = getpid();
    pool->members = members;
    pool->pin = options->pin;
    pthread_mutex_init(&pool->turn, NULL);
    fill_members(pool, options->spin_us > 0 ? options->spin_us : BETWEEN_US);

    tl_status status = start_workers(pool, diag);
    if (status != TL_OK) {
        tl_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return TL_OK;
}

/* Lets the workers of the team, 1..team_size-1, begin. */
static void begin(tl_pool *pool, tl_team_fn *fn, void *context, int team_size)
{
    assert(team_size >= 1 && team_size <= pool->threads);
    pool->fn = fn;
    pool->context = context;
    pool->team_size = team_size;
    for (int i = 0; i < team_size; i++)
        tl_share_reset(&pool->members[i]);
    for (int i = 1; i < team_size; i++) {
        tl_signal *go = &pool->members[i].go;
        tl_signal_change(go, atomic_load_explicit(&go->word, memory_order_relaxed) + 1);
    }
}

/* A child of fork() has none of the workers: nobody would ever answer. */
static bool has_workers(const tl_pool *pool)
{
    return getpid() == pool->process;
}

void tl_pool_destroy(tl_pool *pool)
{
    if (pool == NULL)
        return;
    if (has_workers(pool)) {
        begin(pool, NULL, NULL, pool->started + 1);
        for (int i = 1; i <= pool->started; i++)
            pthread_join(pool->members[i].thread, NULL);
        pthread_mutex_destroy(&pool->turn);
    }
    free(pool->members);
    free(pool);
}

int tl_pool_threads(const tl_pool *pool)
{
    return pool->threads;
}

tl_status tl_pool_check(const tl_pool *pool, int threads, tl_diag *diag)
{
    if (threads == 1 || pool->threads == 1 || has_workers(pool))
        return TL_OK;
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "thread pool: it was made in process %ld, and this is its child %ld, which has "
                   "none of its threads: make the pool in the child",
                   (long)pool->process, (long)getpid());
}

/* The caller's own affinity is its own: it is pinned for the run, if the place is one of those
 * it may be in, and gets its mask back. */
static bool pin_caller(cpu_set_t *kept)
{
    int processor = processor_of(0);

    if (sched_getaffinity(0, sizeof *kept, kept) != 0 || processor >= CPU_SETSIZE ||
        !CPU_ISSET(processor, kept))
        return false;
    pin_to(processor);
    return true;
}

/* Unless somebody has given us another mask meanwhile. */
static void unpin_caller(const cpu_set_t *kept)
{
    cpu_set_t now;

    if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_COUNT(&now) == 1 &&
        CPU_ISSET(processor_of(0), &now))
        sched_setaffinity(0, sizeof *kept, kept);
}

void tl_pool_run(tl_pool *pool, int threads, tl_team_fn *fn, void *context)
{
    assert(threads >= 0);
    if (threads == 0 || threads > pool->threads)
        threads = pool->threads;
    if (threads == 1 || in_team || !has_workers(pool)) {
        tl_team alone = { 0, 1, NULL, 0 };
        fn(&alone, context);
        return;
    }

    cpu_set_t kept;
    pthread_mutex_lock(&pool->turn);
    bool is_pinned = pool->pin == TL_PIN_ALWAYS && pin_caller(&kept);
    introduce(&pool->members[0]);
    begin(pool, fn, context, threads);
    run_in_team(pool, 0, threads);
    if (is_pinned)
        unpin_caller(&kept);
    pthread_mutex_unlock(&pool->turn);
}
