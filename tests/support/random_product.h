/* tests/support/random_product.h: products that an intrinsic of schedule/prim/tensor_shapes.def computes, or nearly so. */
#ifndef TL_TESTS_RANDOM_PRODUCT_H
#define TL_TESTS_RANDOM_PRODUCT_H
#include "runtime/base/arena.h"
#include "runtime/base/random.h"

/* The text of a kernel: sums over tiles of exactly an intrinsic's extents; every second one differs from what it wants in
 * one respect: the order of axes, an extent, a stride, an element that moves with two axes or with one too many, a guard,
 * an init, another combiner, other values, a dtype, a second block. The text lives in `arena`. */
const char *random_product(tl_arena *arena, tl_random *random);

#endif
