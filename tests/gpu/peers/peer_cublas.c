/* tests/gpu/peers/peer_cublas.c: products and sums of matrices by cuBLAS. It has columns side by side: what lies in rows is
 * its transposed, and C = A B is C' = B' A'. */
#include "tests/gpu/peers/peer.h"
#include "tests/gpu/peers/peer_cublas_abi.h"

typedef struct handle *cublas;

static struct {
    int (*create)(cublas *);
    int (*set_stream)(cublas, void *);
    int (*set_workspace)(cublas, void *, size_t);
    int (*version)(cublas, int *);
    int (*gemm)(cublas, int, int, int, int, int, const void *, const void *, int, int, const void *,
                int, int, const void *, void *, int, int, int, int);
    int (*add)(cublas, int, int, int, int, const float *, const float *, int, const float *,
               const float *, int, float *, int);
    const char *(*text)(int);
} api;
static cublas library;
static const peer_case *subject;
static const peer_memory *memory;

static tl_status failed(int code, const char *call, tl_diag *diag)
{
    return peer_failed(code, call, code != 0 ? api.text(code) : NULL, diag);
}

static tl_status start(void *stream, tl_text *version, tl_diag *diag)
{
    static const char *const of_it[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         NULL };
    const peer_symbol symbols[] = {
        { "cublasCreate_v2", &api.create },
        { "cublasSetStream_v2", &api.set_stream },
        { "cublasSetWorkspace_v2", &api.set_workspace },
        { "cublasGetVersion_v2", &api.version },
        { "cublasGemmEx", &api.gemm },
        { "cublasSgeam", &api.add },
        { "cublasGetStatusString", &api.text },
    };
    int number = 0;
    if (library != NULL)
        return TL_OK;
    peer_open_cublaslt(NULL); /* which it needs */
    void *file = peer_open(of_it, diag);
    if (file == NULL)
        return TL_DEVICE;
    TL_TRY(peer_find(file, symbols, sizeof symbols / sizeof *symbols, diag));
    TL_TRY(failed(api.create(&library), "cublasCreate", diag));
    TL_TRY(failed(api.set_stream(library, stream), "cublasSetStream", diag));
    TL_TRY(failed(api.version(library, &number), "cublasGetVersion", diag));
    peer_cublas_version((size_t)number, version);
    return TL_OK;
}

static tl_status prepare(const peer_case *c, const peer_memory *m, int *ways, tl_diag *diag)
{
    if (c->op == PEER_ADD && c->dtype != TL_F32)
        return tl_fail(diag, TL_UNSUPPORTED, "cuBLAS adds no matrices of this type");
    subject = c;
    memory = m;
    *ways = 1;
    return failed(api.set_workspace(library, m->workspace, (size_t)m->workspace_bytes),
                  "cublasSetWorkspace", diag);
}

static tl_status run(int way, tl_diag *diag)
{
    static const float one = 1, zero = 0;
    const peer_case *c = subject;
    int type = peer_cuda_type(c->dtype), m = (int)c->m, n = (int)c->n, k = (int)c->k;
    (void)way;
    if (c->op == PEER_ADD)
        return failed(api.add(library, CUBLAS_OP_N, CUBLAS_OP_N, n, m, &one, memory->operands[0], n,
                              &one, memory->operands[1], n, memory->result, n),
                      "cublasSgeam", diag);
    return failed(api.gemm(library, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, memory->operands[1],
                           type, n, memory->operands[0], type, k, &zero, memory->result, type, n,
                           peer_cublas_compute(c), CUBLAS_GEMM_DEFAULT),
                  "cublasGemmEx", diag);
}

static bool is_channels_last(int way)
{
    (void)way;
    return false;
}

static void finish(void)
{
}

const peer_library peer_cublas = {
    "cublas", 1 << PEER_GEMM | 1 << PEER_ADD, start, prepare, run, is_channels_last, finish
};
