/* driver/probe/probe_memory.c: what caches and memory take: latencies along a chain of addresses in random order, and lines of
 * streams.
 *
 * Each level is looked at in half of it, in large pages; what a page costs that the core does not know yet is what the same
 * number of lines takes longer when each lies in a small page of its own. */
#define _DEFAULT_SOURCE
#include <string.h>
#include <sys/mman.h>
#include "driver/probe/probe_private.h"
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"
#include "runtime/base/random.h"
#include "runtime/device/peak.h"

enum {
    LINE = 64,
    PAGE = 4096,
    PAGES = 8192, /* more than any core knows */
    STEPS = 8,    /* of a round of a chase */
    STREAMS = 8,
    FAR_LINES = 4096, /* of a sample */
    GROUP = 4,        /* lines of a round of a stream */
    BRANCHES = 1 << 16,
    CHASE = 64 /* rounds of a sample: a tenth of a millisecond where it is memory */
};
#define MOST_BYTES  ((int64_t)96 << 20)
#define LEAST_BYTES ((int64_t)24 << 20)

/* A ring through `count` places that lie `stride` bytes apart, in random order; each in another line of its page. */
static void make_ring(char *memory, int64_t count, int64_t stride, int64_t *order,
                      tl_random *random)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) { /* Sattolo: one ring */
        int64_t k = tl_random_below(random, i), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
    for (int64_t i = 0; i < count; i++) {
        char *at = memory + i * stride, *to = memory + order[i] * stride;
        if (stride == PAGE) {
            at += i % (PAGE / LINE) * LINE;
            to += order[i] % (PAGE / LINE) * LINE;
        }
        *(void **)at = to;
    }
}

static double chase(char *memory, int64_t count, int64_t stride, int64_t *order, tl_random *random)
{
    void *cursor = memory;
    make_ring(memory, count, stride, order, random);
    tl_probe_chase(tl_max64(count / STEPS, 1), &cursor); /* once around: as warm as it gets */
    return tl_probe_rounds(tl_probe_chase, CHASE, &cursor).cycles / STEPS;
}

/* Others use a shared cache, too: of a large one a part that is clearly beyond L2. */
static int64_t l3_bytes(const tl_target *host)
{
    return tl_min64(host->l3_bytes / 2, 4 * host->l2_bytes);
}

static void measure_latencies(const tl_target *host, char *memory, int64_t size, int64_t *order,
                              tl_machine *m)
{
    tl_random random = tl_random_make(1);
    double *const latency[] = { &m->l1_latency, &m->l2_latency, &m->l3_latency,
                                &m->memory_latency };
    const int64_t bytes[] = { host->l1_bytes / 2, host->l2_bytes / 2, l3_bytes(host), size };
    for (int i = 0; i < 4; i++) {
        bool is_beyond = i == 0 || bytes[i] > 2 * bytes[i - 1];
        if (is_beyond && bytes[i] >= STEPS * LINE && bytes[i] <= size)
            tl_probe_keep_least(latency[i], chase(memory, bytes[i] / LINE, LINE, order, &random));
    }
}

static void measure_pages(char *memory, int64_t size, int64_t *order, tl_machine *m)
{
    tl_random random = tl_random_make(2);
    size_t bytes = (size_t)PAGES * PAGE;
    char *small = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (small == MAP_FAILED || size < PAGES * LINE)
        return;
    madvise(small, bytes, MADV_NOHUGEPAGE);
    double apart = chase(small, PAGES, PAGE, order, &random);
    double together = chase(memory, PAGES, LINE, order, &random);
    munmap(small, bytes);
    tl_probe_keep_least(&m->page_cycles, apart - together);
}

/* Cycles of a line of so many bytes, walked from the beginning in each sample. */
static double line_cycles(tl_probe_loop *loop, char *memory, int64_t bytes)
{
    int64_t rounds = bytes / (GROUP * LINE);
    if (rounds < 1)
        return 0;
    loop(rounds, memory);
    return tl_probe_rounds(loop, rounds, memory).cycles / GROUP;
}

/* Streams that go on where they stopped, through more than the caches hold. */
typedef struct {
    char *memory;
    int64_t size, at; /* bytes of each stream */
    tl_probe_loop *loop;
} far_stream;

static int64_t advance(far_stream *s, int64_t bytes)
{
    int64_t from = s->at + bytes <= s->size ? s->at : 0;
    s->at = from + bytes;
    return from;
}

static void read_one(int64_t rounds, void *memory)
{
    far_stream *s = memory;
    s->loop(rounds, s->memory + advance(s, rounds * GROUP * LINE));
}

static void read_eight(int64_t rounds, void *memory)
{
    far_stream *s = memory;
    int64_t from = advance(s, rounds * LINE);
    const volatile uint64_t *word = (const volatile uint64_t *)(s->memory + from);
    for (; rounds > 0; rounds--, word += LINE / sizeof *word)
        for (int k = 0; k < STREAMS; k++)
            (void)word[k * s->size / (int64_t)sizeof *word];
}

static void measure_streams(const tl_target *host, const tl_probe_loops *loops, char *memory,
                            int64_t size, tl_machine *m)
{
    int64_t l1 = host->l1_bytes / 2, l2 = host->l2_bytes / 2, l3 = l3_bytes(host);
    if (loops != NULL) {
        tl_probe_keep_least(&m->l1_line_cycles, line_cycles(loops->stream, memory, l1));
        tl_probe_keep_least(&m->l2_line_cycles, line_cycles(loops->stream, memory, l2));
        if (l3 > 2 * l2)
            tl_probe_keep_least(&m->l3_line_cycles, line_cycles(loops->stream, memory, l3));
    }
    if (size < 2 * host->l3_bytes)
        return; /* there is not the memory to go beyond the caches */
    /* behind what was just read */
    far_stream one = { memory, size, 2 * l3, loops != NULL ? loops->stream : NULL };
    far_stream eight = { memory, size / STREAMS / LINE * LINE, l3, NULL };
    if (loops != NULL)
        tl_probe_keep_least(&m->memory_stream_cycles,
                            tl_probe_rounds(read_one, FAR_LINES / GROUP, &one).cycles / GROUP);
    tl_probe_keep_least(&m->memory_line_cycles,
                        tl_probe_rounds(read_eight, FAR_LINES / STREAMS, &eight).cycles / STREAMS);
}

/* Of what L2 adds to work on lines, the part that is left where they are prefetched; nothing is said where it adds little. */
static void measure_prefetch(const tl_target *host, const tl_probe_loops *loops, char *memory,
                             tl_machine *m)
{
    int64_t l2 = host->l2_bytes / 2;
    double base = line_cycles(loops->work, memory, host->l1_bytes / 2);
    double plain = line_cycles(loops->work, memory, l2);
    double ahead = line_cycles(loops->work_ahead, memory, l2);
    if (base > 0 && plain > 1.1 * base && ahead > 0) {
        double part = (ahead - base) / (plain - base);
        tl_probe_keep_least(&m->fetched_part, part > 0.25 ? part : 0.25);
    }
}

static void measure_branches(char *memory, int64_t size, tl_machine *m)
{
    tl_random random = tl_random_make(3);
    if (size < BRANCHES)
        return;
    for (int i = 0; i < BRANCHES; i++)
        memory[i] = 0;
    double foreseen = tl_probe_rounds(tl_probe_branch, BRANCHES, memory).cycles;
    for (int i = 0; i < BRANCHES; i++)
        memory[i] = (char)tl_random_below(&random, 2);
    double guessed = tl_probe_rounds(tl_probe_branch, BRANCHES, memory).cycles;
    tl_probe_keep_least(&m->mispredict_cycles, 2 * (guessed - foreseen)); /* every second one */
}

tl_status tl_probe_memory(const tl_probe_options *o, const tl_probe_loops *loops, tl_machine *m,
                          tl_diag *diag)
{
    int64_t size = tl_min64(tl_max64(5 * o->host->l3_bytes / 2, LEAST_BYTES), MOST_BYTES);
    int64_t most = tl_topology_get()->memory_bytes / 8;
    if (most > 0)
        size = tl_min64(size, most);
    size = size / PAGE * PAGE;
    int64_t places = tl_max64(size / LINE, PAGES);
    char *memory = tl_pages_take((size_t)size + PAGE);
    int64_t *order = tl_pages_take((size_t)places * sizeof *order);
    tl_status status = TL_OK;
    if (memory == NULL || order == NULL) {
        status = tl_fail(diag, TL_NO_MEMORY, "probe: no memory for %lld bytes", (long long)size);
    } else {
        memset(memory, 1,
               (size_t)size); /* what was never written to is one page of zeros everywhere */
        measure_streams(o->host, loops, memory, size, m);
        if (loops != NULL)
            measure_prefetch(o->host, loops, memory, m);
        measure_branches(memory, size, m);
        tl_probe_keep_least(&m->forward_cycles,
                            tl_probe_loop_time(tl_probe_forward, memory).cycles / 8);
        measure_latencies(o->host, memory, size, order, m);
        measure_pages(memory, size, order, m);
        tl_peak_bandwidth all = { 0 };
        status = tl_peak_measure_bandwidth(o->pool, 0, 0.05, &all, diag);
        m->memory_gbs = all.read_gbs > m->memory_gbs ? all.read_gbs : m->memory_gbs;
    }
    tl_pages_give(memory, (size_t)size + PAGE);
    tl_pages_give(order, (size_t)places * sizeof *order);
    return status;
}
