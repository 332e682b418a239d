/* tests/gpu/peers/peer_cublas_abi.h: as much of the ABI of cuBLAS and cuBLASLt as is used, and what both share. */
#ifndef TL_TESTS_GPU_PEER_CUBLAS_ABI_H
#define TL_TESTS_GPU_PEER_CUBLAS_ABI_H
#include "tests/gpu/peers/peer.h"

enum {
    CUBLAS_OP_N = 0,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_COMPUTE_32F = 68, /* f32 as f32: allow_tf32 is off */
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
};

typedef struct {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} cublaslt_heuristic;

static inline int peer_cuda_type(tl_dtype dtype)
{
    return dtype == TL_F16 ? CUDA_R_16F : dtype == TL_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}
static inline int peer_cublas_compute(const peer_case *c)
{
    return c->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}
/* "13.4.1" of 130401; before 12 the number had fewer digits, as it is. */
static inline void peer_cublas_version(size_t number, tl_text *out)
{
    if (number >= 100000)
        tl_text_format(out, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    else
        tl_text_format(out, "%zu", number);
}
void *peer_open_cublaslt(tl_diag *diag);

#endif
