/* runtime/device/pool.c: threads that walk the phases of a model together.
 *
 * Everything that anyone waits for is a 32-bit word that changes: a worker's `go` (a run that
 * needs it has begun) and the barrier's `generation` (everyone has arrived). A waiter spins on
 * the word, then counts itself into `parked` and sleeps on it; who changes the word wakes the
 * sleepers only when there are any. The change and the look at `parked` are sequentially
 * consistent, and so are the counting and the last look at the word: one of the two always sees
 * the other, and no wake-up is lost.
 *
 * A worker outside the team is left alone. One inside is waited for by the run's last barrier,
 * so that the job may change afterwards. */
#include "runtime/device/pool.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "runtime/base/clock.h"

enum {
    LINE = 64,
    DEFAULT_SPIN_US = 1000,
    CROWDED_PAUSES = 64, /* with more threads than cores, spinning keeps away the one waited for */
};

/* A word to wait for, and how many sleep on it. */
typedef struct {
    alignas(LINE) atomic_uint word;
    atomic_uint parked;
} signal_word;

struct tl_barrier {
    alignas(LINE) atomic_uint arrived;
    signal_word generation;
    unsigned spin; /* pauses before parking */
};

typedef struct {
    signal_word go;
    tl_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct tl_pool {
    tl_barrier barrier;
    int threads, started; /* with the caller; workers that run */
    pid_t process;        /* in which the workers run */
    bool pin;
    worker *workers; /* [1..threads) */
    /* the job: */
    tl_team_fn *fn; /* NULL: end */
    void *context;
    int team_size;
    pthread_mutex_t turn; /* held by the caller whose team runs */
};

/* Inside a team: a nested run must not wait for workers that wait for it. */
static _Thread_local bool in_team;

static void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void park(atomic_uint *word, unsigned old)
{
    /* Returns at once when the word has changed; spurious returns are seen by the caller's loop. */
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void wait_for_change(signal_word *s, unsigned old, unsigned spin)
{
    for (unsigned i = 0; i < spin; i++) {
        if (atomic_load_explicit(&s->word, memory_order_acquire) != old)
            return;
        pause_once();
    }
    atomic_fetch_add(&s->parked, 1);
    while (atomic_load(&s->word) == old)
        park(&s->word, old);
    atomic_fetch_sub(&s->parked, 1);
}

static void change(signal_word *s, unsigned value)
{
    atomic_store(&s->word, value);
    if (atomic_load(&s->parked) != 0)
        syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void meet(tl_barrier *b, unsigned threads)
{
    assert(threads > 0);
    unsigned generation = atomic_load_explicit(&b->generation.word, memory_order_relaxed);

    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == threads) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        change(&b->generation, generation + 1);
    } else {
        wait_for_change(&b->generation, generation, b->spin);
    }
}

void tl_team_barrier(tl_team *team)
{
    if (team->threads > 1)
        meet(team->barrier, (unsigned)team->threads);
}

static void run_in_team(tl_pool *pool, int thread, int threads)
{
    tl_team team = { thread, threads, &pool->barrier };

    in_team = true;
    pool->fn(&team, pool->context);
    in_team = false;
    meet(&pool->barrier, (unsigned)threads);
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

static void *worker_main(void *argument)
{
    worker *self = argument;
    tl_pool *pool = self->pool;

    if (pool->pin)
        pin_to(processor_of(self->index));
    for (unsigned seen = 0;; seen++) {
        wait_for_change(&self->go, seen, pool->barrier.spin);
        if (pool->fn == NULL)
            return NULL;
        run_in_team(pool, self->index, pool->team_size);
    }
}

/* Pauses that take about `us` microseconds: a pause is 40 cycles on one processor and 140 on
 * another. */
static unsigned pauses_in(int us)
{
    enum { SAMPLE = 400 };
    int64_t best = INT64_MAX;

    for (int round = 0; round < 3; round++) {
        int64_t start = tl_clock_ns();
        for (int i = 0; i < SAMPLE; i++)
            pause_once();
        int64_t took = tl_clock_ns() - start;
        if (took < best)
            best = took;
    }
    double pause_ns = (double)(best > 0 ? best : 1) / SAMPLE;
    double pauses = us * 1000.0 / (pause_ns < 0.5 ? 0.5 : pause_ns);
    return pauses > 1e8 ? 100000000u : (unsigned)pauses + 1;
}

static tl_status start_workers(tl_pool *pool, tl_diag *diag)
{
    sigset_t all, kept;
    int error = 0;

    sigfillset(&all); /* signals are the business of the user's threads */
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    for (int i = 1; i < pool->threads && error == 0; i++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->index = i;
        error = pthread_create(&w->thread, NULL, worker_main, w);
        if (error == 0)
            pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    if (error != 0)
        return tl_fail(diag, TL_DEVICE, "thread pool: cannot start thread %d of %d: %s",
                       pool->started + 1, pool->threads, strerror(error));
    return TL_OK;
}

static bool should_pin(const tl_pool_options *options, int threads)
{
    const tl_topology *t = tl_topology_get();

    switch (options->pin) {
    case TL_PIN_NEVER:
        return false;
    case TL_PIN_ALWAYS:
        return true;
    case TL_PIN_AUTO: /* part of the machine: another process would pin to the same part */
        return threads > 1 && threads == t->usable_cores && threads == t->threads;
    }
    return false;
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

    tl_pool *pool = aligned_alloc(LINE, sizeof *pool);
    worker *workers = aligned_alloc(LINE, (size_t)threads * sizeof *workers);
    if (pool == NULL || workers == NULL) {
        free(pool);
        free(workers);
        return tl_fail(diag, TL_NO_MEMORY, "thread pool: no memory for %d threads", threads);
    }
    memset(pool, 0, sizeof *pool);
    memset(workers, 0, (size_t)threads * sizeof *workers);
    pool->threads = threads;
    pool->process = getpid();
    pool->workers = workers;
    pool->pin = should_pin(options, threads);
    pthread_mutex_init(&pool->turn, NULL);
    pool->barrier.spin = threads > t->usable_processors
                             ? CROWDED_PAUSES
                             : pauses_in(options->spin_us > 0 ? options->spin_us : DEFAULT_SPIN_US);

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
    for (int i = 1; i < team_size; i++) {
        signal_word *go = &pool->workers[i].go;
        change(go, atomic_load_explicit(&go->word, memory_order_relaxed) + 1);
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
            pthread_join(pool->workers[i].thread, NULL);
        pthread_mutex_destroy(&pool->turn);
    }
    free(pool->workers);
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

void tl_pool_run(tl_pool *pool, int threads, tl_team_fn *fn, void *context)
{
    assert(threads >= 0);
    if (threads == 0 || threads > pool->threads)
        threads = pool->threads;
    if (threads == 1 || in_team || !has_workers(pool)) {
        tl_team alone = { 0, 1, NULL };
        fn(&alone, context);
        return;
    }

    cpu_set_t kept;
    pthread_mutex_lock(&pool->turn);
    bool pinned = pool->pin && pin_caller(&kept);
    begin(pool, fn, context, threads);
    run_in_team(pool, 0, threads);
    if (pinned)
        sched_setaffinity(0, sizeof kept, &kept);
    pthread_mutex_unlock(&pool->turn);
}

tl_part tl_team_range(int64_t extent, int thread, int threads)
{
    assert(extent >= 0 && threads > 0 && thread >= 0 && thread < threads);
    int64_t whole = extent / threads, rest = extent % threads; /* extent*thread may not fit */

    return (tl_part){ whole * thread + rest * thread / threads,
                      whole * (thread + 1) + rest * (thread + 1) / threads };
}
