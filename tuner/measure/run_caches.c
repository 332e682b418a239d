/* tuner/measure/run_caches.c: what a kernel finds in the caches when it is timed.
 *
 *   nothing is cold     every call has the same buffers: one copy, for what is timed lies in huge pages
 *   all is cold         every call takes the next of as many copies of all buffers as fill twice L2 and (up to 32 MB of) L3
 *   constants are cold  as inside a model: a kernel's inputs were just written, but its constants were last read one run of
 *                       the model ago, and all others since. They are not in L2: calls rotate through copies that fill it
 *                       twice. Of a cyclic walk over C bytes an L3 of L bytes keeps about L/C (today's replacement
 *                       policies do not fall for it as LRU does: Jaleel et al., RRIP, ISCA 2010), always the same: the
 *                       other pages are flushed before each call and come from memory.
 *
 * A kernel that packs its constants reads the packed ones; what else it reads is too small to matter. */
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "runtime/base/checked.h"
#include "tuner/measure/worker_private.h"

#define COLD_MOST ((int64_t)256 << 20)
#define COLD_L3   ((int64_t)32 << 20) /* an L3 counts up to this: we share it */
enum { MAX_COPIES = 1024, LINE = 64, PAGE = 4096 };

static int copies_of(const tl_worker_config *config, tl_cold cold, int64_t bytes)
{
    const tl_target *target = &config->target;
    int64_t wanted, copies;
    if (cold == TL_COLD_NOTHING)
        return 1;
    if (cold == TL_COLD_ALL)
        wanted = 2 * target->l2_bytes + tl_min64(target->l3_bytes, COLD_L3) * 5 / 4 + bytes;
    else
        wanted = tl_min64(2 * target->l2_bytes, config->constant_bytes);
    copies = tl_ceildiv(tl_min64(wanted, COLD_MOST), bytes > 0 ? bytes : 1);
    return (int)tl_max64(tl_min64(copies, MAX_COPIES), 1);
}

/* Copies of the buffers for which `sizes` is not 0, from where `from` says; NULL there: zeros. */
static bool make_copies(const tl_worker_config *config, tl_cold cold, const int64_t *sizes,
                        void *const *from, int count, tl_copies *out)
{
    int64_t bytes = 0;
    if (out->count > 0)
        return true;
    for (int i = 0; i < count; i++) {
        out->offset[i] = sizes[i] > 0 ? bytes : -1;
        bytes += tl_ceildiv(sizes[i], LINE) * LINE;
    }
    int copies = copies_of(config, cold, bytes);
    if (!tl_huge_create((size_t)(bytes * copies), &out->memory))
        return false;
    for (int64_t c = 0; c < copies; c++) /* pages are there before time counts */
        for (int i = 0; i < count; i++) {
            unsigned char *to = out->memory.data + c * bytes + out->offset[i];
            if (sizes[i] > 0 && from[i] != NULL)
                memcpy(to, from[i], (size_t)sizes[i]);
            else if (sizes[i] > 0)
                memset(to, 0, (size_t)sizes[i]);
        }
    out->bytes = bytes;
    out->count = copies;
    return true;
}

/* Constants are too large to be copied for warm runs. */
static bool is_copied(const tl_run_task *t, int param, tl_cold cold, bool packs)
{
    bool is_const = t->program->params[param]->role == TL_ROLE_CONST;
    return cold == TL_COLD_ALL || (cold == TL_COLD_CONSTANTS ? is_const && !packs : !is_const);
}

static bool copy_params(tl_run_state *state, tl_cold cold, bool packs)
{
    const tl_run_task *t = state->task;
    int64_t sizes[TL_MAX_PARAMS] = { 0 };
    void *from[TL_MAX_PARAMS] = { 0 };
    for (int i = 0; i < t->program->param_count; i++) {
        sizes[i] = is_copied(t, i, cold, packs) ? t->sizes[i] : 0;
        from[i] = tl_param_is_read(t->program->params[i]) ? t->inputs[0][i].data : NULL;
    }
    return make_copies(state->config, cold, sizes, from, t->program->param_count,
                       &state->copies[cold][packs]);
}

bool tl_caches_prepare(tl_run_state *state, tl_runnable *r, tl_cold cold)
{
    int64_t sizes[TL_MAX_PARAMS] = { 0 };
    void *from[TL_MAX_PARAMS] = { 0 };
    /* without memory for that kernels are timed where they were checked */
    copy_params(state, TL_COLD_NOTHING, false);
    if (cold == TL_COLD_NOTHING)
        return true;
    if (!copy_params(state, cold, r->prepared_count > 0))
        return false;
    for (int i = 0; i < r->prepared_count; i++) {
        sizes[i] = (int64_t)r->prepared[i].size;
        from[i] = r->prepared[i].data;
    }
    return make_copies(state->config, cold, sizes, from, r->prepared_count, &r->copies);
}

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) static void flush_fast(const unsigned char *data,
                                                             int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE)
        __builtin_ia32_clflushopt(data + at);
}

/* Asked once: a virtual machine is left for each answer. */
static bool has_fast_flush(void)
{
    static int answer = -1;
    unsigned a, b = 0, c, d;
    if (answer < 0)
        answer = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLFLUSHOPT);
    return answer;
}

static void flush(const unsigned char *data, int64_t bytes)
{
    if (has_fast_flush()) {
        flush_fast(data, bytes);
        return;
    }
    for (int64_t at = 0; at < bytes; at += LINE)
        __builtin_ia32_clflush(data + at);
}
#elif defined(__aarch64__)
static void flush(const unsigned char *data, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE)
        __asm__ volatile("dc civac, %0" : : "r"(data + at) : "memory");
}
#else
static void flush(const unsigned char *data, int64_t bytes)
{
    (void)data;
    (void)bytes;
}
#endif

/* Flushes so many of a thousand pages, evenly spread. */
static void flush_share(const unsigned char *data, int64_t bytes, int64_t share)
{
    for (int64_t page = 0; share > 0 && page * PAGE < bytes; page++)
        if ((page + 1) * share / 1000 > page * share / 1000)
            flush(data + page * PAGE, tl_min64(PAGE, bytes - page * PAGE));
    __sync_synchronize();
}

/* Of a thousand bytes of the model's constants, how many L3 has lost since the last run. */
static int64_t lost_share(const tl_worker_config *config)
{
    int64_t lost = config->constant_bytes - config->target.l3_bytes;
    return lost > 0 ? lost * 1000 / config->constant_bytes : 0;
}

static void take_copy(tl_copies *copies, int64_t share, void **buffers, int count)
{
    unsigned char *data = copies->memory.data + (copies->next++ % copies->count) * copies->bytes;
    for (int i = 0; i < count; i++)
        if (copies->offset[i] >= 0)
            buffers[i] = data + copies->offset[i];
    flush_share(data, copies->bytes, share);
}

void tl_caches_set_up(tl_run_state *state, tl_runnable *r, tl_cold cold, void **buffers)
{
    int params = state->task->program->param_count;
    memcpy(buffers, state->buffers[0], (size_t)params * sizeof *buffers);
    if (state->copies[TL_COLD_NOTHING][false].count > 0)
        take_copy(&state->copies[TL_COLD_NOTHING][false], 0, buffers, params);
    for (int i = 0; i < r->prepared_count; i++)
        buffers[params + i] = r->prepared[i].data;
    if (cold == TL_COLD_NOTHING)
        return;
    int64_t share = cold == TL_COLD_CONSTANTS ? lost_share(state->config) : 0;
    take_copy(&state->copies[cold][r->prepared_count > 0], share, buffers, params);
    if (r->prepared_count > 0)
        take_copy(&r->copies, share, buffers + params, r->prepared_count);
}
