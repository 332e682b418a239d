/* runtime/base/clock.h: time that only moves forward. */
#ifndef TL_RUNTIME_BASE_CLOCK_H
#define TL_RUNTIME_BASE_CLOCK_H
#include <stdint.h>

int64_t tl_clock_ns(void);     /* monotonic; from an arbitrary start */
int64_t tl_clock_cpu_ns(void); /* processor time of the calling thread */
void tl_clock_sleep_ns(int64_t ns);

#endif
