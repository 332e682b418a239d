/* runtime/device/peak.h: what this machine can do at most, measured: the denominator of every "percent
 * of peak".
 *
 * Other tenants and clock rates move the peak by tens of percent over seconds, so it is sampled
 * beside what is being measured: a sample of 20 ms is enough. */
#ifndef TL_RUNTIME_DEVICE_PEAK_H
#define TL_RUNTIME_DEVICE_PEAK_H
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/device/pool.h"

/* f32 multiply-adds on registers only, in GFLOP/s (a multiply-add is two), on `threads` threads
 * of the pool (0: all) for about `seconds`: the best of several slices. With the widest vectors
 * that the machine has and `vector_bits` allow; 0: any. */
double tl_peak_gflops(tl_pool *pool, int threads, int vector_bits, double seconds);
/* What the loop uses: "AVX-512", "AVX2+FMA", "SSE2", "NEON", "scalar". */
const char *tl_peak_isa(int vector_bits);

typedef struct {
    double read_gbs, copy_gbs; /* from memory; a copied byte counts twice (read and written) */
} tl_peak_bandwidth;
/* Over arrays larger than the caches (at most 1/8 of memory). TL_NO_MEMORY when they cannot be
 * had. */
tl_status tl_peak_measure_bandwidth(tl_pool *pool, int threads, double seconds,
                                    tl_peak_bandwidth *out, tl_diag *diag);

/* GB/s of plain loops that read and write arrays of these sizes (bytes), again and again, for about `seconds`: from
 * whatever cache holds them, and so the ceiling of a kernel that moves as much. The best run; 0 when the arrays cannot be
 * had. */
double tl_peak_traffic_gbs(tl_pool *pool, int threads, int64_t read, int64_t written,
                           double seconds);

#endif
