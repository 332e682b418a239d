/* codegen/emulate/emulate_private.h: what the files of this room share: a team of blocks, their threads, their clocks. */
#ifndef TL_CODEGEN_EMULATE_EMULATE_PRIVATE_H
#define TL_CODEGEN_EMULATE_EMULATE_PRIVATE_H
#include <stdbool.h>
#include <stdint.h>
#include "codegen/emulate/emulate.h"

enum {
    TL_WARP = 32,
    TL_GPU_THREADS = 1024, /* of a block */
    TL_GPU_WARPS = TL_GPU_THREADS / TL_WARP,
    TL_GPU_BARRIERS = 16,
    TL_GPU_CLUSTER = 16,
    TL_GPU_SHARED = 227 << 10,     /* bytes of a block */
    TL_GPU_ASYNC = TL_GPU_THREADS, /* the number under which copies without a thread write */
    TL_CALL_TAGS = 8,              /* numbers that a name of a call says */
};
/* Where shared memory lies in the address space of a kernel: the block's own window, then one for each of its cluster.
 * Nothing of ours is mapped there, so a generic pointer tells by its value what it points into. A window is 256 KB, for
 * descriptors have the last 18 bits of an address. */
#define TL_SHARED_WINDOW UINT64_C(0x70000000)
#define TL_SHARED_STEP   UINT64_C(0x40000)

/* ---- calls (device_calls.c) ---- */

typedef struct tl_gpu_thread tl_gpu_thread;
typedef struct tl_gpu_call tl_gpu_call;
typedef void tl_gpu_run(tl_gpu_thread *t, const tl_gpu_call *call, const int64_t *in, int64_t *out);

/* One function of a module that the emulator runs. */
struct tl_gpu_call {
    const char *name; /* without what the table leaves away */
    tl_gpu_run *run;
    int tags[TL_CALL_TAGS]; /* what the name says: sizes, kinds; see the parser of its row */
    int argument_count, result_count;
    int64_t result_bytes;
    bool pure; /* the same all the time for one thread */
};
/* What a row's parser reads of the name behind the prefix: false when it is no such call. */
typedef bool tl_gpu_parse(const char *rest, int tags[TL_CALL_TAGS]);
/* `symbol` is the function's name; the arena keeps what is needed of it. */
tl_status tl_gpu_call_find(tl_arena *arena, const char *symbol, tl_gpu_call *out, tl_diag *diag);

static inline float tl_gpu_float(int64_t bits)
{
    union {
        uint32_t u;
        float f;
    } value = { .u = (uint32_t)bits };
    return value.f;
}

static inline int64_t tl_gpu_bits(float f)
{
    union {
        float f;
        uint32_t u;
    } value = { .f = f };
    return (int64_t)value.u;
}

/* ---- time ---- */

/* Every event of a block that orders threads has a tick. A thread knows, of each warp and of each lane of its own warp,
 * up to which tick what they did came before what it does now; a copy without a thread is a warp of its own. What is
 * known of a warp is what is known of the latest of its threads: that misses races, and invents none. */
typedef struct {
    uint32_t warp[TL_GPU_WARPS + 1], lane[TL_WARP];
} tl_gpu_clock;

/* Who touched a byte last, and when: the tick above, the thread below; 0: nobody. */
typedef uint32_t tl_gpu_stamp;
enum { TL_STAMP_BITS = 11, TL_TICK_LAST = (1 << 21) - 2 };
/* The tick of what is under way and ordered before nothing. */
#define TL_TICK_OPEN ((uint32_t)(1 << 21) - 1)
static inline tl_gpu_stamp tl_stamp(uint32_t tick, int thread)
{
    return tick << TL_STAMP_BITS | (uint32_t)thread;
}

/* ---- threads, blocks, teams ---- */

typedef enum {
    TL_THREAD_READY,
    TL_THREAD_WAITING,
    TL_THREAD_POLLING,
    TL_THREAD_DONE
} tl_thread_state;

/* A copy that a thread has asked for (cp.async). */
typedef struct {
    uint32_t to;      /* offset into shared memory */
    int bytes, taken; /* what is not taken is filled with zeros */
    int group;
    const void *from;
} tl_async_copy;

/* What wgmma and bulk stores still read: the bytes that they read, as runs. */
typedef struct {
    uint32_t from, bytes;
    int group;
    void *to; /* where a bulk store puts them when they have been read; NULL: nowhere */
} tl_open_read;

/* A sum that wgmma adds up to: what it is when its group has been waited for. */
typedef struct {
    bool is_open;
    int group;
    int64_t value;
} tl_open_sum;

struct tl_gpu_thread {
    void *context; /* where its stack is while it does not run */
    char *stack;
    struct tl_gpu_block *block;
    int index; /* in its block */
    tl_thread_state state;
    const tl_gpu_call *call; /* that it is in or waits in */
    const void *waits_at;    /* the barrier, the meeting or, in shared memory, the mbarrier */
    int waits_more;          /* threads, in a meeting */
    char waits_for[96];      /* in words (describe_wait.c) */
    const int64_t *in;
    int64_t *out;
    int64_t steps;
    tl_gpu_clock known;
    uint32_t proxy_fence; /* the tick of its latest fence for the asynchronous proxy */
    tl_async_copy *copies;
    int copy_count, copy_capacity, copy_group;
    tl_open_read *wgmma_reads, *bulk_reads;
    int wgmma_read_count, wgmma_read_capacity, wgmma_group;
    int bulk_read_count, bulk_read_capacity, bulk_group;
    tl_open_sum *wgmma_sums;
    int wgmma_sum_count, wgmma_sum_capacity, wgmma_sum_free;
    int wgmma_done; /* groups before this one were waited for */
    bool wgmma_fenced, cluster_arrived;
    int registers; /* set by setmaxnreg; 0: as launched */
};

/* Threads that do one thing together: of a warp, or of a warpgroup. */
typedef struct {
    const tl_gpu_call *call; /* NULL: free */
    int count, wanted;
    uint32_t mask;           /* of a warp */
    tl_gpu_thread *who[128]; /* by lane */
} tl_gpu_meeting;

typedef struct {
    int arrived, wanted;
    tl_gpu_clock clock;
} tl_gpu_barrier;

typedef struct {
    uint32_t at; /* offset into shared memory */
    int64_t count, pending, bytes;
    uint32_t phase;
    tl_gpu_clock arriving, passed; /* of the phase under way, of the last that ended */
} tl_mbarrier;

typedef struct tl_gpu_block {
    struct tl_gpu_team *team;
    int index[3], rank; /* in the grid; in the cluster */
    char *shared;
    tl_gpu_stamp *written, *read; /* of each byte */
    uint32_t tick, all_tick;      /* what came before all_tick is ordered before everything */
    tl_gpu_thread *threads;
    int live;
    tl_gpu_barrier barriers[TL_GPU_BARRIERS];
    tl_gpu_meeting warp_meetings[TL_GPU_WARPS][TL_WARP], group_meetings[TL_GPU_WARPS / 4];
    tl_mbarrier *mbarriers;
    int mbarrier_count, mbarrier_capacity;
} tl_gpu_block;

/* A copy of a tensor's box on its way into shared memory. */
typedef struct tl_tensor_copy {
    tl_gpu_block *block; /* whose mbarrier hears of it, and for a single block: into whose memory */
    tl_emulated_map map; /* rank 0: bytes from one place */
    int32_t at[TL_TENSOR_MAP_AXES];
    uint32_t to, mbarrier, blocks; /* offsets; a bit for each block of the cluster */
    int64_t bytes;
} tl_tensor_copy;

/* The blocks of a cluster, run by one thread of the CPU. */
typedef struct tl_gpu_team {
    const tl_emulated_launch *launch;
    const char *kernel;
    void (*entry)(void *const *arguments);
    int64_t shared_bytes, static_bytes; /* of a block: all; of them static */
    int thread_count;
    int block_count;
    tl_gpu_block blocks[TL_GPU_CLUSTER];
    void *context; /* of the scheduler */
    tl_gpu_thread *running;
    tl_gpu_thread **ready; /* a ring */
    int ready_from, ready_count, polling;
    uint64_t events; /* that may let a thread that polls go on */
    tl_tensor_copy *copies;
    int copy_count, copy_capacity;
    int cluster_arrived, cluster_round;
    size_t stack_bytes;
    const tl_emulated_buffer *last_buffer;
    tl_status status;
    tl_diag diag;
} tl_gpu_team;

extern _Thread_local tl_gpu_team *tl_gpu_current;

/* ---- fibers (context.c) ---- */

/* Saves where it is into *from and goes on at `to`. */
void tl_context_switch(void **from, void *to);
/* A context that calls `entry`, which never returns. False: no memory. */
bool tl_context_create(char *stack, size_t bytes, void (*entry)(void), void **out);
void tl_context_destroy(void *context);

/* ---- teams (team.c) ---- */

/* Ends the launch with "kernel K, block (x, y, z), thread (x, y, z), in CALL: ..."; never returns. */
_Noreturn void tl_gpu_fail(tl_gpu_thread *t, tl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void tl_gpu_out_of_memory(tl_gpu_thread *t);
/* Until tl_gpu_wake: what is waited for is t->waits_at. */
void tl_gpu_wait(tl_gpu_thread *t);
void tl_gpu_wake(tl_gpu_thread *t);
void tl_gpu_poll(tl_gpu_thread *t); /* until something has happened, for a loop that asks again */
/* Runs the blocks until all threads have ended, or one has failed. */
tl_status tl_gpu_team_run(tl_gpu_team *team);
tl_status tl_gpu_team_create(tl_gpu_team *team, size_t stack_bytes, tl_diag *diag);
void tl_gpu_team_destroy(tl_gpu_team *team);

/* ---- memory (memory.c) ---- */

/* What a kernel calls in front of each access: the address on this machine. `what` as tl_access makes it. */
void *tl_gpu_access(void *address, uint64_t what);
void *tl_gpu_access_masked(void *address, uint64_t what, uint64_t mask);
enum { TL_ACCESS_WRITE = 1, TL_ACCESS_ATOMIC = 2, TL_ACCESS_SHARED = 4, TL_ACCESS_GLOBAL = 8 };
static inline uint64_t tl_access(uint32_t bytes, uint32_t align_log2, uint32_t flags)
{
    return (uint64_t)flags << 40 | (uint64_t)align_log2 << 32 | bytes;
}
void *tl_gpu_global(tl_gpu_thread *t, const void *address, int64_t bytes, bool writes);
/* An address in shared memory as an offset of the block that it belongs to. */
tl_gpu_block *tl_gpu_shared(tl_gpu_thread *t, int64_t address, int64_t bytes, int64_t align,
                            uint32_t *offset);
bool tl_gpu_is_shared(uint64_t address);

typedef enum {
    TL_TOUCH_READ,
    TL_TOUCH_WRITE,
    TL_TOUCH_ATOMIC,
    TL_TOUCH_OPEN_WRITE, /* by a copy that has not ended: read by nobody */
    TL_TOUCH_OPEN_READ,  /* by what has not ended: written by nobody */
    TL_TOUCH_END_WRITE,
    TL_TOUCH_END_READ,
} tl_gpu_touching;
void tl_gpu_touch(tl_gpu_thread *t, tl_gpu_block *b, uint32_t offset, uint32_t bytes,
                  tl_gpu_touching how);
/* Before the asynchronous proxy reads: everything written there is ordered before and fenced. */
void tl_gpu_touch_proxy(tl_gpu_thread *t, tl_gpu_block *b, uint32_t offset, uint32_t bytes);
/* What copies without a thread write when they end. */
void tl_gpu_stamp_async(tl_gpu_block *b, uint32_t offset, uint32_t bytes);

/* ---- order (order.c) ---- */

bool tl_clock_knows(const tl_gpu_thread *t, const tl_gpu_block *b, tl_gpu_stamp stamp);
void tl_clock_release(tl_gpu_thread *t, tl_gpu_clock *to); /* what t knows and did comes before */
void tl_clock_acquire(tl_gpu_thread *t, const tl_gpu_clock *from);
void tl_clock_join(tl_gpu_clock *to, const tl_gpu_clock *from);
void tl_clock_all(tl_gpu_block *b); /* all threads of the block meet */
uint32_t tl_clock_tick(tl_gpu_block *b);

/* ---- what several kinds of calls use ---- */

/* meeting.c: waits until all of `mask` (of a warp) are in `call`, the last of them runs `together`. */
typedef void tl_gpu_together(tl_gpu_thread *t, tl_gpu_meeting *m);
void tl_gpu_meet_warp(tl_gpu_thread *t, uint32_t mask, const int64_t *in, int64_t *out,
                      tl_gpu_together *together);
void tl_gpu_meet_warpgroup(tl_gpu_thread *t, const int64_t *in, int64_t *out,
                           tl_gpu_together *together);
/* call_copy.c: the copies of a thread (cp.async) in all groups but the last `keep`. */
void tl_gpu_finish_copies(tl_gpu_thread *t, int keep);
/* call_mbarrier.c: `address` is that of an mbarrier of the block, or of another of its cluster. */
tl_mbarrier *tl_gpu_mbarrier(tl_gpu_thread *t, int64_t address, tl_gpu_block **block);
void tl_gpu_arrive(tl_gpu_thread *t, tl_gpu_block *b, tl_mbarrier *m, int64_t count);
/* A copy without a thread has ended: `mbarrier` is an offset. */
void tl_gpu_arrive_bytes(tl_gpu_block *b, uint32_t mbarrier, int64_t bytes);
void tl_gpu_describe_wait(tl_gpu_thread *t); /* describe_wait.c: fills in `waits_for` */
/* call_tensor.c: the first copy under way ends. False: there is none. */
bool tl_gpu_finish_tensor_copy(tl_gpu_team *team);
/* open_reads.c: reads of shared memory that go on after the call that asked for them. */
void tl_gpu_open_read(tl_gpu_thread *t, bool bulk, uint32_t from, uint32_t bytes, void *to);
void tl_gpu_end_reads(tl_gpu_thread *t, bool bulk, int keep); /* all groups but the last `keep` */
void tl_gpu_end_thread(tl_gpu_thread *t);

/* The rows of device_calls.def. */
#define CALL(prefix, run, parse, pure) tl_gpu_run tl_call_##run;
#include "codegen/emulate/device_calls.def"
#undef CALL

#endif
