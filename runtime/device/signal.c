/* runtime/device/signal.c: words that threads wait for.
 *
 *     look alone, `spin` pauses  ->  look and yield, `awake_ns`  ->  count into `parked`, sleep on the word
 *
 * Who changes the word wakes sleepers only when there are any. The change and the look at `parked` are sequentially
 * consistent, and so are the counting and the last look at the word: one of the two always sees the other, and no wake-up is
 * lost. */
#include "runtime/device/signal.h"
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/clock.h"

enum {
    LEAST_SPIN = 64,       /* pauses: about as long as a look at a line that another core has */
    LEAST_AWAKE_NS = 50000 /* as long as it takes to wake up a thread */
};

static void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Pauses that take about `us` microseconds: a pause is 40 cycles on one processor and 140 on another. */
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

tl_patience tl_patience_make(int spin_us, int awake_us)
{
    unsigned spin = pauses_in(spin_us);
    int64_t awake = (int64_t)awake_us * 1000;
    return (tl_patience){ spin, spin, awake, awake };
}

static bool has_changed(const tl_signal *s, unsigned old)
{
    return atomic_load_explicit(&s->word, memory_order_acquire) != old;
}

bool tl_signal_look(const tl_signal *s, unsigned old, tl_patience *p)
{
    for (unsigned i = 0; i < p->spin; i++) {
        if (has_changed(s, old)) {
            p->spin = p->spin < p->most_spin / 2 ? p->spin * 2 : p->most_spin;
            return true;
        }
        pause_once();
    }
    unsigned least = p->most_spin < LEAST_SPIN ? p->most_spin : LEAST_SPIN;
    p->spin = p->spin / 2 > least ? p->spin / 2 : least;
    return has_changed(s, old);
}

bool tl_signal_yield(const tl_signal *s, unsigned old, int64_t ns)
{
    for (int64_t until = tl_clock_ns() + ns; tl_clock_ns() < until;) {
        if (has_changed(s, old))
            return true;
        sched_yield();
    }
    return has_changed(s, old);
}

bool tl_signal_sleep(tl_signal *s, unsigned old, int64_t at_most_ns)
{
    int64_t end = tl_clock_ns() + at_most_ns, left = at_most_ns;

    atomic_fetch_add(&s->parked, 1);
    while (atomic_load(&s->word) == old && (at_most_ns == 0 || left > 0)) {
        struct timespec most = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
        /* returns at once when the word has changed, and at times for nothing */
        syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, old, at_most_ns > 0 ? &most : NULL, NULL,
                0);
        left = at_most_ns > 0 ? end - tl_clock_ns() : 0;
    }
    atomic_fetch_sub(&s->parked, 1);
    return has_changed(s, old);
}

void tl_signal_wait(tl_signal *s, unsigned old, tl_patience *p)
{
    if (tl_signal_look(s, old, p))
        return;
    int64_t start = tl_clock_ns();
    if (tl_signal_yield(s, old, p->awake_ns))
        return;
    tl_signal_sleep(s, old, 0);
    /* Had it paid to stay awake? */
    if (tl_clock_ns() - start < p->most_awake)
        p->awake_ns = p->most_awake;
    else if (p->awake_ns > LEAST_AWAKE_NS)
        p->awake_ns = p->awake_ns / 2 > LEAST_AWAKE_NS ? p->awake_ns / 2 : LEAST_AWAKE_NS;
}

void tl_signal_change(tl_signal *s, unsigned value)
{
    atomic_store(&s->word, value);
    if (atomic_load(&s->parked) != 0)
        syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
