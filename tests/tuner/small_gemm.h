/* tests/tuner/small_gemm.h: a task so small that its space has some hundred programs and a search can see all of them. */
#ifndef TL_TESTS_TUNER_SMALL_GEMM_H
#define TL_TESTS_TUNER_SMALL_GEMM_H
#include "tuner/measure/measure.h"

static const char gemm_text[] = "kernel gemm(A: f32[5, 5], B: f32[5, 48], out C: f32[5, 48])\n"
                                "  for i in 0..5\n"
                                "    for j in 0..48\n"
                                "      for k in 0..5\n"
                                "        block gemm\n"
                                "          spatial i, j\n"
                                "          reduce k\n"
                                "          C[i, j] = sum(A[i, k]*B[k, j])\n";
static const tl_measure_lowering direct = { "direct", gemm_text, 0, 0 };
static const tl_measure_task gemm = { .name = "gemm",
                                      .workload = "0123456789abcdef0123456789abcdef",
                                      .lowering_count = 1,
                                      .lowerings = &direct };

#endif
