/* driver/probe/probe.h: measures what a machine profile says (ir/program/machine.h) of the machine we run on.
 *
 * Everything is looked at several times, seconds apart, and the best counts: what disturbs a loop makes it slower. In cycles
 * where that is possible, for a clock that rises and falls changes none; a chain of products beside each sample says how long
 * a cycle is. At most ten seconds. */
#ifndef TL_DRIVER_PROBE_PROBE_H
#define TL_DRIVER_PROBE_PROBE_H
#include "ir/program/machine.h"
#include "runtime/device/pool.h"

typedef struct {
    const tl_target *host; /* this machine */
    tl_pool *pool;         /* with a thread for every core that may be used */
    /* an earlier profile of it, whose values stay where they are as good; NULL: none */
    const tl_machine *before;
    double seconds;                                           /* 0: 8 */
    void (*progress)(void *user, int pass, const char *what); /* may be NULL */
    void *user;
} tl_probe_options;

/* TL_NO_MEMORY; TL_DEVICE: no clock that moves. What cannot be measured here (another instruction set, one core, small memory)
 * is as in the built-in profile. */
tl_status tl_probe(const tl_probe_options *options, tl_machine *out, tl_diag *diag);

#endif
