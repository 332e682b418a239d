/* runtime/device/pool.h: threads that walk the phases of a model together.
 *
 * A run gives a team of threads one function; the caller is its thread 0 and the pool's own
 * workers are the others. Inside, the threads meet at barriers, and what is long enough is shared
 * out while it runs. Who waits spins, then lets others run, then sleeps (signal.h), so that no
 * number of threads, pools and processes on few cores can deadlock; it merely gets slow. One pool
 * serves any number of models and callers: runs that need workers take turns. */
#ifndef TL_RUNTIME_DEVICE_POOL_H
#define TL_RUNTIME_DEVICE_POOL_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/device/topology.h"

typedef struct tl_pool tl_pool;

typedef enum {
    /* worker i begins on usable core i and may be moved from there */
    TL_PIN_AUTO,
    TL_PIN_NEVER,
    /* worker i to usable core i; the caller to core 0, only while it runs a team of several */
    TL_PIN_ALWAYS,
} tl_pin;

typedef struct {
    int threads; /* with the caller; 0: the topology's default; at most TL_MAX_THREADS */
    tl_pin pin;
    int spin_us; /* how long a waiting thread stays awake at most; 0: 1000 */
} tl_pool_options;

/* `options` may be NULL: the defaults. Fewer threads than asked for is an error (TL_DEVICE). */
tl_status tl_pool_create(const tl_pool_options *options, tl_pool **out, tl_diag *diag);
void tl_pool_destroy(tl_pool *pool); /* nobody may be running; NULL is fine */
int tl_pool_threads(const tl_pool *pool);
/* A pool does not survive fork(): its threads stay with the parent. TL_BAD_ARGUMENT in a child, for a team of more than
 * one (0, or more than the pool has: all of it). */
tl_status tl_pool_check(const tl_pool *pool, int threads, tl_diag *diag);

/* What a thread of a team knows of it. */
typedef struct {
    int thread, threads; /* 0 <= thread < threads */
    tl_pool *pool;       /* private, as what follows; NULL: alone */
    unsigned shared;     /* how many ranges this team has shared out, modulo 65536 */
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

/* 0..extent-1 shared out in pieces of `piece`: a thread takes its own part (tl_team_range) from the front, which keeps what
 * it has in its caches, and then from the back of others' parts. A thread that comes late, or not before all is done, finds
 * the less. All threads of a team share the same ranges in the same order, each takes until nothing is left, and between
 * two ranges they meet. */
typedef struct {
    int64_t extent, piece;
    int from; /* whose pieces are taken now */
} tl_shared;
tl_shared tl_team_share(tl_team *team, int64_t extent, int64_t piece);
/* The next piece of this thread; false: none is left. */
bool tl_team_take(const tl_team *team, tl_shared *shared, tl_part *out);

#endif
