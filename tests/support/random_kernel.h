/* tests/support/random_kernel.h: random kernels as text: several stages over buffers of every dtype, with odd extents,
 * broadcasts, strides, windows, gathers, guards, reductions and scans; or one of a few well-known shapes of kernels.
 *
 * Values stay small integers, so that sums are exact in any order, unless the kernel calls functions. */
#ifndef TL_TESTS_RANDOM_KERNEL_H
#define TL_TESTS_RANDOM_KERNEL_H
#include "runtime/base/arena.h"
#include "runtime/base/random.h"

/* A kernel that parses and verifies. Inputs are expected to hold integers in -3..3. */
const char *random_kernel(tl_arena *arena, tl_random *random);

#endif
