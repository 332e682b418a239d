/* tests/gpu/peers/peer_cublaslt.c: products of matrices by cuBLASLt: of the algorithms that its heuristic proposes the fastest
 * counts. */
#include <string.h>
#include "tests/gpu/peers/peer.h"
#include "tests/gpu/peers/peer_cublas_abi.h"

enum { ALGORITHMS = 8 };
typedef struct handle *cublaslt;
typedef struct object *object;

static struct {
    int (*create)(cublaslt *);
    size_t (*version)(void);
    int (*make_operation)(object *, int, int);
    int (*drop_operation)(object);
    int (*make_layout)(object *, int, uint64_t, uint64_t, int64_t);
    int (*drop_layout)(object);
    int (*make_preference)(object *);
    int (*drop_preference)(object);
    int (*set_preference)(object, int, const void *, size_t);
    int (*propose)(cublaslt, object, object, object, object, object, object, int,
                   cublaslt_heuristic *, int *);
    int (*multiply)(cublaslt, object, const void *, const void *, object, const void *, object,
                    const void *, const void *, object, void *, object, const uint64_t *, void *,
                    size_t, void *);
    const char *(*text)(int);
} api;
static cublaslt library;
static void *queue;
static struct {
    const peer_memory *memory;
    object operation, layouts[3], preference; /* A', B', C' */
    cublaslt_heuristic proposals[ALGORITHMS];
} job;

static tl_status failed(int code, const char *call, tl_diag *diag)
{
    return peer_failed(code, call, code != 0 ? api.text(code) : NULL, diag);
}

void *peer_open_cublaslt(tl_diag *diag)
{
    static const char *const files[] = { "libcublasLt.so.13", "libcublasLt.so.12",
                                         "libcublasLt.so.11", NULL };
    return peer_open(files, diag);
}

static tl_status start(void *stream, tl_text *version, tl_diag *diag)
{
    const peer_symbol symbols[] = {
        { "cublasLtCreate", &api.create },
        { "cublasLtGetVersion", &api.version },
        { "cublasLtMatmulDescCreate", &api.make_operation },
        { "cublasLtMatmulDescDestroy", &api.drop_operation },
        { "cublasLtMatrixLayoutCreate", &api.make_layout },
        { "cublasLtMatrixLayoutDestroy", &api.drop_layout },
        { "cublasLtMatmulPreferenceCreate", &api.make_preference },
        { "cublasLtMatmulPreferenceDestroy", &api.drop_preference },
        { "cublasLtMatmulPreferenceSetAttribute", &api.set_preference },
        { "cublasLtMatmulAlgoGetHeuristic", &api.propose },
        { "cublasLtMatmul", &api.multiply },
        { "cublasLtGetStatusString", &api.text },
    };
    queue = stream;
    void *file = peer_open_cublaslt(diag);
    if (file == NULL)
        return TL_DEVICE;
    TL_TRY(peer_find(file, symbols, sizeof symbols / sizeof *symbols, diag));
    TL_TRY(failed(api.create(&library), "cublasLtCreate", diag));
    peer_cublas_version(api.version(), version);
    return TL_OK;
}

static void finish(void)
{
    if (job.operation != NULL)
        api.drop_operation(job.operation);
    for (int i = 0; i < 3; i++)
        if (job.layouts[i] != NULL)
            api.drop_layout(job.layouts[i]);
    if (job.preference != NULL)
        api.drop_preference(job.preference);
    memset(&job, 0, sizeof job);
}

static tl_status prepare(const peer_case *c, const peer_memory *memory, int *ways, tl_diag *diag)
{
    int type = peer_cuda_type(c->dtype);
    /* as columns side by side */
    const int64_t sizes[3][2] = { { c->k, c->m }, { c->n, c->k }, { c->n, c->m } };
    uint64_t most = (uint64_t)memory->workspace_bytes;
    job.memory = memory;
    TL_TRY(failed(api.make_operation(&job.operation, peer_cublas_compute(c), CUDA_R_32F),
                  "cublasLtMatmulDescCreate", diag));
    for (int i = 0; i < 3; i++)
        TL_TRY(failed(api.make_layout(&job.layouts[i], type, (uint64_t)sizes[i][0],
                                      (uint64_t)sizes[i][1], sizes[i][0]),
                      "cublasLtMatrixLayoutCreate", diag));
    TL_TRY(failed(api.make_preference(&job.preference), "cublasLtMatmulPreferenceCreate", diag));
    TL_TRY(failed(api.set_preference(job.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                     &most, sizeof most),
                  "cublasLtMatmulPreferenceSetAttribute", diag));
    return failed(api.propose(library, job.operation, job.layouts[1], job.layouts[0],
                              job.layouts[2], job.layouts[2], job.preference, ALGORITHMS,
                              job.proposals, ways),
                  "cublasLtMatmulAlgoGetHeuristic", diag);
}

static tl_status run(int way, tl_diag *diag)
{
    static const float one = 1, zero = 0;
    const cublaslt_heuristic *proposal = &job.proposals[way];
    const peer_memory *m = job.memory;
    TL_TRY(failed(proposal->state, "cublasLtMatmulAlgoGetHeuristic", diag));
    return failed(api.multiply(library, job.operation, &one, m->operands[1], job.layouts[1],
                               m->operands[0], job.layouts[0], &zero, m->result, job.layouts[2],
                               m->result, job.layouts[2], proposal->algorithm, m->workspace,
                               (size_t)m->workspace_bytes, queue),
                  "cublasLtMatmul", diag);
}

static bool is_channels_last(int way)
{
    (void)way;
    return false;
}

const peer_library peer_cublaslt = { "cublaslt", 1 << PEER_GEMM,   start, prepare,
                                     run,        is_channels_last, finish };
