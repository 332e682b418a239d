/* tests/support/known_kernels.h: kernels whose shape is known and whose extents are random: the patterns that some
 * primitives need and that random stages meet too rarely. */
#ifndef TL_TESTS_KNOWN_KERNELS_H
#define TL_TESTS_KNOWN_KERNELS_H
#include "runtime/base/arena.h"
#include "runtime/base/random.h"

const char *known_kernel(tl_arena *arena, tl_random *random);

#endif
