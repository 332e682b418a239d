/* tests/gpu/peers/peer_attention.h: attention in the form that tilth has for the tensor cores of a Hopper. */
#ifndef TL_TESTS_GPU_PEER_ATTENTION_H
#define TL_TESTS_GPU_PEER_ATTENTION_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/text.h"

/* Whether it is written so, for as many keys as rows; and the program, from its parameters on. */
bool peer_attention_fits(int64_t rows, int64_t features);
void peer_attention_text(const char *dtype, int64_t images, int64_t heads, int64_t rows,
                         int64_t features, tl_text *out);

#endif
