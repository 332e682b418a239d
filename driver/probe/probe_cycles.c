/* driver/probe/probe_cycles.c: how many cycles a loop takes, on a machine whose clock moves and whose cores are shared.
 *
 * A sample is some tens of microseconds, shorter than what interrupts it is apart, between two chains of products, from which
 * company on the core takes nothing and which say how long a cycle is. Of many samples' quotients one of the least is taken; not
 * the least, for which an interrupted chain would do. */
#include "driver/probe/probe_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/sort.h"

enum { SAMPLES = 48, RANK = 4, CHAIN = 4000, PRODUCT_CYCLES = 3, SAMPLE_NS = 40000 };
#define MOST_ROUNDS ((int64_t)1 << 40)

static double chain_ns(void)
{
    uint64_t a = 3;
    int64_t start = tl_clock_ns();
    for (int i = 0; i < CHAIN; i++) {
        a *= a;
        __asm__ volatile("" : "+r"(a));
    }
    return (double)(tl_clock_ns() - start);
}

static double run_ns(tl_probe_loop *loop, int64_t rounds, void *memory)
{
    int64_t start = tl_clock_ns();
    loop(rounds, memory);
    return (double)(tl_clock_ns() - start);
}

/* As many rounds as fill a sample; the shortest of some runs decides. */
static int64_t rounds_of(tl_probe_loop *loop, void *memory)
{
    int64_t rounds = 8;
    for (; rounds < MOST_ROUNDS; rounds *= 2) {
        double ns = run_ns(loop, rounds, memory);
        for (int i = 0; i < 3 && ns >= SAMPLE_NS; i++) {
            double again = run_ns(loop, rounds, memory);
            ns = again < ns ? again : ns;
        }
        if (ns >= SAMPLE_NS)
            break;
    }
    return rounds;
}

double tl_probe_clock_ghz(void)
{
    double least = 0;
    for (int i = 0; i < SAMPLES; i++)
        tl_probe_keep_least(&least, chain_ns());
    return least > 0 ? (double)CHAIN * PRODUCT_CYCLES / least : 0;
}

tl_probe_time tl_probe_rounds(tl_probe_loop *loop, int64_t rounds, void *memory)
{
    double ratios[SAMPLES], times[SAMPLES];
    int count = 0;
    double before = chain_ns();
    for (int i = 0; i < SAMPLES; i++) {
        double ns = run_ns(loop, rounds, memory), after = chain_ns();
        double chain = before < after ? before : after;
        before = after;
        if (!(chain > 0 && ns > 0))
            continue;
        times[count] = ns;
        ratios[count++] = ns / chain;
    }
    if (count <= RANK)
        return (tl_probe_time){ 0 };
    tl_sort_doubles(ratios, count);
    tl_sort_doubles(times, count);
    return (tl_probe_time){ ratios[RANK] * CHAIN * PRODUCT_CYCLES / (double)rounds,
                            times[RANK] / (double)rounds };
}

tl_probe_time tl_probe_loop_time(tl_probe_loop *loop, void *memory)
{
    return tl_probe_rounds(loop, rounds_of(loop, memory), memory);
}

void tl_probe_keep_least(double *value, double now)
{
    if (now > 0 && (*value == 0 || now < *value))
        *value = now;
}
