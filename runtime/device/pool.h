/* runtime/device/pool.h: threads that walk the phases of a model together.
 *
 * A run gives a team of threads one function; the caller is its thread 0 and the pool's own
 * workers are the others. Inside, the threads meet at barriers. A worker that waits spins for
 * about a millisecond (a meeting of two awake threads costs 0.1 to 0.2 us) and then parks on a
 * futex, so that no number of threads, pools and processes on few cores can deadlock; it merely
 * gets slow. One pool serves any number of models and callers: runs that need workers take
 * turns. */
#ifndef TL_RUNTIME_DEVICE_POOL_H
#define TL_RUNTIME_DEVICE_POOL_H
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/device/topology.h"

typedef struct tl_pool tl_pool;

typedef enum {
    /* pin when the pool has a thread for every usable core, else leave it to the scheduler */
    TL_PIN_AUTO,
    TL_PIN_NEVER,
    /* worker i to usable core i; the caller to core 0, only while it runs a team of several */
    TL_PIN_ALWAYS,
} tl_pin;

typedef struct {
    int threads; /* with the caller; 0: the topology's default; at most TL_MAX_THREADS */
    tl_pin pin;
    int spin_us; /* how long a waiting thread spins before it parks; 0: 1000 */
} tl_pool_options;

/* `options` may be NULL: the defaults. Fewer threads than asked for is an error (TL_DEVICE). */
tl_status tl_pool_create(const tl_pool_options *options, tl_pool **out, tl_diag *diag);
void tl_pool_destroy(tl_pool *pool); /* nobody may be running; NULL is fine */
int tl_pool_threads(const tl_pool *pool);
/* A pool does not survive fork(): its threads stay with the parent. TL_BAD_ARGUMENT in a child, for a team of more than
 * one (0, or more than the pool has: all of it). */
tl_status tl_pool_check(const tl_pool *pool, int threads, tl_diag *diag);

typedef struct tl_barrier tl_barrier;
/* What a thread of a team knows of it. */
typedef struct {
    int thread, threads; /* 0 <= thread < threads */
    tl_barrier *barrier; /* private */
} tl_team;
typedef void tl_team_fn(tl_team *team, void *context);

/* Runs `fn` once on each of `threads` threads at once (0, or more than the pool has: all of it)
 * and returns when all have returned. A team of one, a run from inside a team of any pool, or one
 * in a child of the process that made the pool, runs alone in the caller: `fn` goes by
 * team->threads. Stores before the run are visible in it,
 * and its stores afterwards. */
void tl_pool_run(tl_pool *pool, int threads, tl_team_fn *fn, void *context);

/* Returns when every thread of the team is here; each sees what the others stored before. */
void tl_team_barrier(tl_team *team);

/* The part of 0..extent-1 that is this thread's: contiguous, sizes differ by at most one, in
 * thread order. */
typedef struct {
    int64_t begin, end;
} tl_part;
tl_part tl_team_range(int64_t extent, int thread, int threads);

#endif
