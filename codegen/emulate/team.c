/* codegen/emulate/team.c: the blocks of one cluster, whose threads take turns until all have ended.
 *
 * A thread runs until it waits. Those that may go on do so in the order in which they were woken, at first in that of
 * their numbers, so a run is the same every time. Asynchronous copies end as late as they can: when no thread may go on. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "codegen/emulate/emulate_private.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

_Thread_local tl_gpu_team *tl_gpu_current;

/* ---- turns ---- */

static void push(tl_gpu_team *team, tl_gpu_thread *t)
{
    int all = team->thread_count * team->block_count;
    assert(team->ready_count < all);
    t->state = TL_THREAD_READY;
    team->ready[(team->ready_from + team->ready_count++) % all] = t;
}

static tl_gpu_thread *pop(tl_gpu_team *team)
{
    tl_gpu_thread *t = team->ready[team->ready_from];
    team->ready_from = (team->ready_from + 1) % (team->thread_count * team->block_count);
    team->ready_count--;
    return t;
}

/* ---- switches ----
 * The address sanitizer is told whose stack is current, and that a stack used anew has no frames: those of a launch that
 * failed were never left. */

#if defined(__SANITIZE_ADDRESS__)
static _Thread_local const void *scheduler_stack;
static _Thread_local size_t scheduler_bytes;

static void clear_stack(const tl_gpu_thread *t, size_t bytes)
{
    __asan_unpoison_memory_region(t->stack, bytes);
}

static void arrive_in_thread(void *frames)
{
    __sanitizer_finish_switch_fiber(frames, &scheduler_stack, &scheduler_bytes);
}

/* From the scheduler to the thread. */
static void enter_thread(tl_gpu_team *team, tl_gpu_thread *t)
{
    void *frames;
    __sanitizer_start_switch_fiber(&frames, t->stack, team->stack_bytes);
    tl_context_switch(&team->context, t->context);
    __sanitizer_finish_switch_fiber(frames, NULL, NULL);
}

/* From the thread to the scheduler, until it comes back. */
static void leave_thread(tl_gpu_thread *t)
{
    void *frames;
    __sanitizer_start_switch_fiber(&frames, scheduler_stack, scheduler_bytes);
    tl_context_switch(&t->context, t->block->team->context);
    arrive_in_thread(frames);
}
#else
static void clear_stack(const tl_gpu_thread *t, size_t bytes)
{
    (void)t;
    (void)bytes;
}

static void arrive_in_thread(void *frames)
{
    (void)frames;
}

static void enter_thread(tl_gpu_team *team, tl_gpu_thread *t)
{
    tl_context_switch(&team->context, t->context);
}

static void leave_thread(tl_gpu_thread *t)
{
    tl_context_switch(&t->context, t->block->team->context);
}
#endif

void tl_gpu_wait(tl_gpu_thread *t)
{
    t->state = TL_THREAD_WAITING;
    leave_thread(t);
}

void tl_gpu_poll(tl_gpu_thread *t)
{
    t->state = TL_THREAD_POLLING;
    t->block->team->polling++;
    leave_thread(t);
}

void tl_gpu_wake(tl_gpu_thread *t)
{
    assert(t->state == TL_THREAD_WAITING);
    push(t->block->team, t);
}

static void add_place(const tl_gpu_thread *t, char *out, size_t size)
{
    const tl_gpu_block *b = t->block;
    const int *n = b->team->launch->block;
    snprintf(out, size, "block (%d, %d, %d), thread (%d, %d, %d)", b->index[0], b->index[1],
             b->index[2], t->index % n[0], t->index / n[0] % n[1], t->index / n[0] / n[1]);
}

_Noreturn void tl_gpu_fail(tl_gpu_thread *t, tl_status status, const char *format, ...)
{
    tl_gpu_team *team = t->block->team;
    char place[128], what[1024];
    add_place(t, place, sizeof place);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    team->status =
        tl_fail(&team->diag, status, "kernel %s, %s%s%s: %s", team->kernel, place,
                t->call != NULL ? ", in " : "", t->call != NULL ? t->call->name : "", what);
    for (;;) /* nobody comes back to a team that has failed */
        leave_thread(t);
}

_Noreturn void tl_gpu_out_of_memory(tl_gpu_thread *t)
{
    tl_gpu_fail(t, TL_NO_MEMORY, "no memory for what it waits for");
}

/* ---- the end ---- */

/* The first body of every fiber. */
static void thread_main(void)
{
    arrive_in_thread(NULL);
    tl_gpu_team *team = tl_gpu_current;
    team->entry(team->launch->arguments);
    tl_gpu_thread *t = team->running;
    tl_gpu_end_thread(t);
    t->state = TL_THREAD_DONE;
    t->block->live--;
    team->events++;
    for (;;)
        leave_thread(t);
}

/* Nobody can go on: says who waits for what, and names one that will never come. */
static tl_status fail_deadlock(tl_gpu_team *team)
{
    const tl_gpu_thread *waiting = NULL, *ended = NULL, *other = NULL;
    int waiting_count = 0;
    for (int b = 0; b < team->block_count; b++)
        for (int i = 0; i < team->thread_count; i++) {
            tl_gpu_thread *t = &team->blocks[b].threads[i];
            if (t->state == TL_THREAD_DONE) {
                ended = ended == NULL ? t : ended;
                continue;
            }
            waiting_count++;
            tl_gpu_describe_wait(t);
            if (waiting == NULL)
                waiting = t;
            else if (other == NULL && strcmp(t->waits_for, waiting->waits_for) != 0)
                other = t;
        }
    assert(waiting != NULL);
    char place[128], second[128];
    add_place(waiting, place, sizeof place);
    tl_fail(&team->diag, TL_BAD_IR,
            "kernel %s, %s: deadlock: it waits for %s, and %d other threads wait, too",
            team->kernel, place, waiting->waits_for, waiting_count - 1);
    if (other != NULL) {
        add_place(other, second, sizeof second);
        tl_context(&team->diag, "%s waits for %s", second, other->waits_for);
    }
    if (ended != NULL) {
        add_place(ended, second, sizeof second);
        tl_context(&team->diag, "%s has ended", second);
    }
    return team->status = TL_BAD_IR;
}

/* ---- blocks ---- */

static void begin_thread(tl_gpu_thread *t)
{
    tl_gpu_thread fresh = { .context = t->context,
                            .stack = t->stack,
                            .block = t->block,
                            .index = t->index,
                            .copies = t->copies,
                            .copy_capacity = t->copy_capacity,
                            .wgmma_reads = t->wgmma_reads,
                            .wgmma_read_capacity = t->wgmma_read_capacity,
                            .wgmma_sums = t->wgmma_sums,
                            .wgmma_sum_capacity = t->wgmma_sum_capacity,
                            .bulk_reads = t->bulk_reads,
                            .bulk_read_capacity = t->bulk_read_capacity };
    *t = fresh;
}

/* Shared memory holds at first what nobody would take for a result: NaNs, minus ones. */
static void begin_block(tl_gpu_block *b)
{
    size_t bytes = (size_t)b->team->shared_bytes;
    memset(b->shared, 0xff, bytes);
    memset(b->written, 0, bytes * sizeof *b->written);
    memset(b->read, 0, bytes * sizeof *b->read);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->warp_meetings, 0, sizeof b->warp_meetings);
    memset(b->group_meetings, 0, sizeof b->group_meetings);
    b->tick = 1;
    b->all_tick = 0;
    b->mbarrier_count = 0;
    b->live = b->team->thread_count;
}

static tl_status begin(tl_gpu_team *team)
{
    team->ready_from = team->ready_count = team->polling = 0;
    team->copy_count = 0;
    team->cluster_arrived = team->cluster_round = 0;
    for (int k = 0; k < team->block_count; k++) {
        tl_gpu_block *b = &team->blocks[k];
        begin_block(b);
        for (int i = 0; i < team->thread_count; i++) {
            tl_gpu_thread *t = &b->threads[i];
            begin_thread(t);
            clear_stack(t, team->stack_bytes);
            if (!tl_context_create(t->stack, team->stack_bytes, thread_main, &t->context))
                return tl_fail(&team->diag, TL_NO_MEMORY, "no memory for a thread");
            push(team, t);
        }
    }
    return TL_OK;
}

static int count_live(const tl_gpu_team *team)
{
    int live = 0;
    for (int k = 0; k < team->block_count; k++)
        live += team->blocks[k].live;
    return live;
}

/* Those that ask again and again have another turn, when something has happened since the last. */
static bool wake_polling(tl_gpu_team *team)
{
    int woken = team->polling;
    for (int k = 0; k < team->block_count && team->polling > 0; k++)
        for (int i = 0; i < team->thread_count; i++)
            if (team->blocks[k].threads[i].state == TL_THREAD_POLLING) {
                team->polling--;
                push(team, &team->blocks[k].threads[i]);
            }
    return woken > 0;
}

tl_status tl_gpu_team_run(tl_gpu_team *team)
{
    tl_gpu_current = team;
    team->status = begin(team);
    uint64_t seen = team->events - 1;
    while (team->status == TL_OK) {
        if (team->ready_count > 0) {
            team->running = pop(team);
            enter_thread(team, team->running);
        } else if (count_live(team) == 0) {
            break;
        } else if (tl_gpu_finish_tensor_copy(team)) {
            team->events++;
        } else if (seen != team->events && wake_polling(team)) {
            seen = team->events;
        } else {
            fail_deadlock(team);
        }
    }
    return team->status;
}

/* ---- its memory ---- */

/* A page that nobody may touch stands between two stacks. */
static char *create_stacks(size_t bytes, int count)
{
    enum { PAGE = 4096 };
    size_t step = bytes + PAGE;
    char *all = mmap(NULL, step * (size_t)count, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    for (int i = 0; i < count; i++)
        if (mprotect(all + step * (size_t)i, PAGE, PROT_NONE) != 0) {
            munmap(all, step * (size_t)count);
            return NULL;
        }
    return all;
}

static bool create_block(tl_gpu_block *b, tl_gpu_team *team, int rank)
{
    size_t bytes = team->shared_bytes > 0 ? (size_t)team->shared_bytes : 1;
    b->team = team;
    b->rank = rank;
    b->shared = aligned_alloc(1024, (bytes + 1023) & ~(size_t)1023);
    b->written = malloc(bytes * sizeof *b->written);
    b->read = malloc(bytes * sizeof *b->read);
    b->threads = calloc((size_t)team->thread_count, sizeof *b->threads);
    if (b->shared == NULL || b->written == NULL || b->read == NULL || b->threads == NULL)
        return false;
    char *stacks = create_stacks(team->stack_bytes, team->thread_count);
    for (int i = 0; i < team->thread_count && stacks != NULL; i++) {
        tl_gpu_thread *t = &b->threads[i];
        t->block = b;
        t->index = i;
        t->stack = stacks + (team->stack_bytes + 4096) * (size_t)i + 4096;
    }
    return stacks != NULL;
}

tl_status tl_gpu_team_create(tl_gpu_team *team, size_t stack_bytes, tl_diag *diag)
{
    team->stack_bytes = stack_bytes;
    size_t all = (size_t)team->thread_count * (size_t)team->block_count;
    bool good = (team->ready = calloc(all, sizeof(tl_gpu_thread *))) != NULL;
    for (int k = 0; k < team->block_count && good; k++)
        good = create_block(&team->blocks[k], team, k);
    return good ? TL_OK
                : tl_fail(diag, TL_NO_MEMORY, "no memory for a block of kernel %s", team->kernel);
}

static void destroy_block(tl_gpu_block *b, const tl_gpu_team *team)
{
    for (int i = 0; i < team->thread_count && b->threads != NULL && b->threads[i].stack != NULL;
         i++)
        clear_stack(&b->threads[i], team->stack_bytes);
    if (b->threads != NULL && b->threads[0].stack != NULL)
        munmap(b->threads[0].stack - 4096, (team->stack_bytes + 4096) * (size_t)team->thread_count);
    for (int i = 0; i < team->thread_count && b->threads != NULL; i++) {
        tl_context_destroy(b->threads[i].context);
        free(b->threads[i].copies);
        free(b->threads[i].wgmma_reads);
        free(b->threads[i].wgmma_sums);
        free(b->threads[i].bulk_reads);
    }
    free(b->threads);
    free(b->shared);
    free(b->written);
    free(b->read);
    free(b->mbarriers);
}

void tl_gpu_team_destroy(tl_gpu_team *team)
{
    for (int k = 0; k < team->block_count; k++)
        destroy_block(&team->blocks[k], team);
    tl_context_destroy(team->context);
    free(team->ready);
    free(team->copies);
}
