/* runtime/device/pool_private.h: a pool, for the files that run teams (pool.c) and share out what they do (share.c). */
#ifndef TL_RUNTIME_DEVICE_POOL_PRIVATE_H
#define TL_RUNTIME_DEVICE_POOL_PRIVATE_H
#include <pthread.h>
#include <sys/types.h>
#include <time.h>
#include "runtime/device/pool.h"
#include "runtime/device/signal.h"

/* What a pool has for each of its threads, the caller first. */
typedef struct {
    tl_signal go; /* a run that needs this thread has begun */
    alignas(TL_SIGNAL_LINE)
        atomic_uint_least64_t hand; /* the pieces of its part that nobody has taken (share.c) */
    alignas(TL_SIGNAL_LINE)
        atomic_uint met; /* the barrier's generation after the latest one it came to */
    alignas(TL_SIGNAL_LINE) tl_patience between; /* runs; */
    tl_patience inside;                          /* one, at its barriers */
    tl_pool *pool;
    pthread_t thread;
    int index;
    atomic_int id;    /* of the thread (of the caller: of this run's); 0: it has not begun */
    atomic_int clock; /* of what it computes; known when `id` is */
    int home;         /* the processor that it began the run on, or would have */
    atomic_int_least64_t moved_ns; /* when others moved it away from there; 0: they have not */
} tl_member;

struct tl_pool {
    alignas(TL_SIGNAL_LINE) atomic_uint arrived; /* at the barrier */
    tl_signal generation;                        /* of the barrier: changes when all are there */
    int threads, started;                        /* with the caller; workers that run */
    pid_t process;                               /* in which the workers run */
    tl_pin pin;
    tl_member *members; /* one a thread */
    /* the job: */
    tl_team_fn *fn; /* NULL: end */
    void *context;
    int team_size;
    pthread_mutex_t turn; /* held by the caller whose team runs */
};

/* Nothing is shared out yet; nobody runs in the team. */
void tl_share_reset(tl_member *member);
/* Returns when all `threads` of the team are here (meet.c). */
void tl_meet(tl_pool *pool, int thread, int threads);

#endif
