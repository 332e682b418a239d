/* tests/bench/peer_openblas.c: products of matrices by OpenBLAS. It is loaded when it is asked for, because it reads
 * what it may use from the environment while it is loaded. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/peer.h"

enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 }; /* of cblas.h */

static struct {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*set_num_threads)(int threads);
} blas;

static bool start(const peer_limits *limits)
{
    /* by itself it takes narrower code on processors that it does not know */
    setenv("OPENBLAS_CORETYPE",
           limits->vector_bits >= 512   ? "SkylakeX"
           : limits->vector_bits >= 256 ? "Haswell"
                                        : "Nehalem",
           0);
    setenv("OPENBLAS_THREAD_TIMEOUT", "16", 0); /* its threads spin 2^16 cycles, then sleep */
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    *(void **)&blas.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&blas.sgemv = dlsym(library, "cblas_sgemv");
    *(void **)&blas.set_num_threads = dlsym(library, "openblas_set_num_threads");
    if (blas.sgemm == NULL || blas.sgemv == NULL || blas.set_num_threads == NULL)
        return false;
    blas.set_num_threads(limits->threads);
    return true;
}

typedef struct {
    const peer_case *c;
    const float *a, *b;
    float *result;
} product;

static void run(void *state)
{
    const product *p = state;
    int m = (int)p->c->m, n = (int)p->c->n, k = (int)p->c->k;
    if (m == 1 && p->c->batch == 1) {
        blas.sgemv(ROW_MAJOR, TRANSPOSED, k, n, 1, p->b, n, p->a, 1, 0, p->result, 1);
        return;
    }
    for (int64_t i = 0; i < p->c->batch; i++)
        blas.sgemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k, 1, p->a + i * m * k, k,
                   p->b + i * k * n, n, 0, p->result + i * m * n, n);
}

static void read_result(void *state, float *result)
{
    const product *p = state;
    memcpy(result, p->result, (size_t)case_elements(p->c, CASE_RESULT) * sizeof *result);
}

static void destroy(void *state)
{
    product *p = state;
    free(p->result);
    free(p);
}

static bool make(const peer_case *c, float *const operands[CASE_OPERANDS], peer_kernel *out)
{
    product *p = c->op == CASE_MATMUL ? malloc(sizeof *p) : NULL;
    if (p == NULL)
        return false;
    size_t bytes = (size_t)case_elements(c, CASE_RESULT) * sizeof(float);
    *p = (product){ c, operands[CASE_A], operands[CASE_B],
                    aligned_alloc(64, (bytes + 63) / 64 * 64) };
    *out = (peer_kernel){ p, run, read_result, destroy };
    return p->result != NULL;
}

const peer_library peer_openblas = { "OpenBLAS", start, make };
