/* runtime/device/signal.h: words that threads wait for, in a way that costs nobody else.
 *
 * Who waits looks at the word alone for a while, then lets others run between two looks, then sleeps. Each of the three is
 * right at times: a meeting of two awake threads costs 0.1 us and waking one up 50; but who looks on keeps away whoever
 * shares the processor, and that may be the one waited for; and a processor that sleeps can take over another's thread.
 * So each thread learns what pays. */
#ifndef TL_RUNTIME_DEVICE_SIGNAL_H
#define TL_RUNTIME_DEVICE_SIGNAL_H
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TL_SIGNAL_LINE = 64 };

typedef struct {
    alignas(TL_SIGNAL_LINE) atomic_uint word;
    atomic_uint parked; /* how many sleep on it */
} tl_signal;

/* What a thread has learned of one kind of waiting; its own. */
typedef struct {
    unsigned spin, most_spin;     /* pauses between looks at the word alone */
    int64_t awake_ns, most_awake; /* of letting others run before it sleeps */
} tl_patience;

/* At most `spin_us` of looking alone and `awake_us` of letting others run. The pause instruction is timed. */
tl_patience tl_patience_make(int spin_us, int awake_us);

/* Returns when the word is no longer `old`. What was stored before the change is seen. */
void tl_signal_wait(tl_signal *signal, unsigned old, tl_patience *patience);
void tl_signal_change(tl_signal *signal, unsigned value);

/* The parts of waiting; true: the word has changed. */
bool tl_signal_look(const tl_signal *signal, unsigned old, tl_patience *patience);
bool tl_signal_yield(const tl_signal *signal, unsigned old, int64_t ns);
bool tl_signal_sleep(tl_signal *signal, unsigned old,
                     int64_t at_most_ns); /* 0: for as long as it takes */

#endif
