/* tests/bench/random_network.h: networks that nobody has looked at, as graph texts: what people build layers of, in shapes that
 * nobody chose. */
#ifndef TL_TESTS_BENCH_RANDOM_NETWORK_H
#define TL_TESTS_BENCH_RANDOM_NETWORK_H
#include <stdint.h>
#include "runtime/base/arena.h"

/* The same text for the same seed: four to ten layers over images or sequences. */
const char *random_network(tl_arena *arena, uint64_t seed);

#endif
