/* tests/gpu/peers/fake_libraries.c: cuBLAS, cuBLASLt and cuDNN without a GPU: as much of them as peer_*.c calls, computed by
 * loops on the processor. What they compute is a launch of the driver without a GPU (fake_cuda.h), in the order of the stream and
 * on its clock. FAKE_PEERS says what goes wrong, words with a comma between:
 *
 *     fail-create     no library can be started
 *     wrong           results are all 1
 *     slow            every second way takes ten times as long
 *     old             cuDNN is of 9.1
 *     none            heuristics propose nothing                                                                             */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/dtype.h"
#include "runtime/cuda/cuda_abi.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/peers/peer_cublas_abi.h"
#include "tests/gpu/peers/peer_cudnn_abi.h"

/* Declared and defined, for the linker knows them by name only. */
#define EXPORT(type, name, arguments)                           \
    __attribute__((visibility("default"))) type name arguments; \
    type name arguments

enum { SUCCESS = 0, REFUSED = 15, INVALID = 7, JOBS = 1024, WINDOW = 3, ATTRIBUTES = 16 };

typedef struct {
    enum { GEMM, ADD, CONV, SOFTMAX, ATTENTION } op;
    tl_dtype dtype;
    int64_t m, n, k, batch, lead[3],
        strides[4]; /* GEMM: leading dimensions; ATTENTION: of all tensors */
    bool channels_last;
    float scale;
} job;

static job jobs[JOBS];
static int job_count;

static bool says(const char *word)
{
    const char *text = getenv("FAKE_PEERS");
    return text != NULL && strstr(text, word) != NULL;
}

/* ---- on the device ---- */

static double get(const job *j, const void *data, int64_t index)
{
    return tl_number_load(j->dtype, data, (size_t)index).f;
}

static void put(const job *j, void *data, int64_t index, double value)
{
    tl_number_store(j->dtype, data, (size_t)index, (tl_number){ .f = says("wrong") ? 1 : value });
}

static void multiply(const job *j, const void *a, const void *b, void *c)
{
    for (int64_t col = 0; col < j->n; col++)
        for (int64_t row = 0; row < j->m; row++) {
            double sum = 0;
            for (int64_t k = 0; k < j->k; k++)
                sum += get(j, a, row + k * j->lead[0]) * get(j, b, k + col * j->lead[1]);
            put(j, c, row + col * j->lead[2], sum);
        }
}

static int64_t image(const job *j, int64_t b, int64_t c, int64_t row, int64_t column,
                     int64_t channels)
{
    return j->channels_last ? ((b * j->m + row) * j->m + column) * channels + c
                            : ((b * channels + c) * j->m + row) * j->m + column;
}

static double convolved(const job *j, const void *x, const void *w, const int64_t y[4])
{
    double sum = 0;
    for (int64_t c = 0; c < j->k; c++)
        for (int64_t u = 0; u < WINDOW; u++)
            for (int64_t v = 0; v < WINDOW; v++) {
                int64_t row = y[2] + u - 1, column = y[3] + v - 1;
                int64_t at = j->channels_last ? ((y[1] * WINDOW + u) * WINDOW + v) * j->k + c
                                              : ((y[1] * j->k + c) * WINDOW + u) * WINDOW + v;
                if (row >= 0 && row < j->m && column >= 0 && column < j->m)
                    sum += get(j, x, image(j, y[0], c, row, column, j->k)) * get(j, w, at);
            }
    return sum;
}

static void convolve(const job *j, const void *x, const void *w, void *out)
{
    for (int64_t i = 0; i < j->batch * j->n * j->m * j->m; i++) {
        const int64_t y[4] = { i / (j->n * j->m * j->m), i / (j->m * j->m) % j->n, i / j->m % j->m,
                               i % j->m };
        put(j, out, image(j, y[0], y[1], y[2], y[3], j->n), convolved(j, x, w, y));
    }
}

static void attend(const job *j, void *const o[3], void *out)
{
    double *weights = calloc((size_t)j->m, sizeof *weights);
    for (int64_t i = 0; i < j->batch * j->n * j->m; i++) {
        int64_t base = i / (j->n * j->m) * j->strides[0] + i / j->m % j->n * j->strides[1];
        int64_t row = base + i % j->m * j->strides[2];
        double sum = 0;
        for (int64_t t = 0; t < j->m; t++) {
            double score = 0;
            for (int64_t d = 0; d < j->k; d++)
                score += get(j, o[0], row + d) * get(j, o[1], base + t * j->strides[2] + d);
            sum += weights[t] = exp(score * (double)j->scale);
        }
        for (int64_t e = 0; e < j->k; e++) {
            double value = 0;
            for (int64_t t = 0; t < j->m; t++)
                value += weights[t] * get(j, o[2], base + t * j->strides[2] + e);
            put(j, out, row + e, value / sum);
        }
    }
    free(weights);
}

static void softmax(const job *j, const void *a, void *out)
{
    for (int64_t row = 0; row < j->m; row++) {
        double sum = 0;
        for (int64_t i = 0; i < j->n; i++)
            sum += exp(get(j, a, row * j->n + i));
        for (int64_t i = 0; i < j->n; i++)
            put(j, out, row * j->n + i, exp(get(j, a, row * j->n + i)) / sum);
    }
}

/* Parameters: three operands, the result, the number of the job. */
static int execute(const fake_launch *l)
{
    uint64_t number;
    void *o[4];
    for (int i = 0; i < 4; i++)
        memcpy(&o[i], l->parameters[i], sizeof o[i]);
    memcpy(&number, l->parameters[4], sizeof number);
    const job *j = &jobs[number % JOBS];
    switch (j->op) {
    case GEMM:
        multiply(j, o[0], o[1], o[3]);
        break;
    case ADD:
        for (int64_t i = 0; i < j->m * j->n; i++)
            put(j, o[3], i, get(j, o[0], i) + get(j, o[1], i));
        break;
    case CONV:
        convolve(j, o[0], o[1], o[3]);
        break;
    case SOFTMAX:
        softmax(j, o[0], o[3]);
        break;
    case ATTENTION:
        attend(j, o, o[3]);
        break;
    }
    return 0;
}

/* ---- launches ---- */

static cu_function kernel;
static cu_result (*launch)(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, cu_stream, void **, void **);

static void *find(void *driver, const char *name)
{
    void *address = dlsym(driver, name);
    if (address == NULL)
        abort();
    return address;
}

/* Of the driver that the process has; REFUSED when it cannot be one without a GPU. */
static int start(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_peer(.param .u64 a, .param .u64 b, "
                              ".param .u64 c, .param .u64 r, .param .u64 j)\n{\n\tret;\n}\n";
    const char *path = getenv("TILTH_CUDA_LIBRARY");
    cu_result (*load)(cu_module *, const void *, unsigned, int *, void **);
    cu_result (*function)(cu_function *, cu_module, const char *);
    fake_cuda_register_fn *add;
    cu_module module;
    if (says("fail-create"))
        return REFUSED;
    if (kernel != NULL)
        return SUCCESS;
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == NULL || dlsym(driver, "fake_cuda_register") == NULL)
        return REFUSED;
    *(void **)&load = find(driver, "cuModuleLoadDataEx");
    *(void **)&function = find(driver, "cuModuleGetFunction");
    *(void **)&launch = find(driver, "cuLaunchKernel");
    *(void **)&add = find(driver, "fake_cuda_register");
    add("fake_peer", execute);
    return load(&module, ptx, 0, NULL, NULL) == 0 && function(&kernel, module, "fake_peer") == 0
               ? SUCCESS
               : REFUSED;
}

/* `way`: which of several; with `slow` the odd ones are large launches. */
static int submit(const job *j, int way, const void *a, const void *b, const void *c, void *r,
                  void *stream)
{
    uint64_t number = (uint64_t)job_count++;
    void *parameters[5] = { &a, &b, &c, &r, &number };
    unsigned blocks = says("slow") && way % 2 == 1 ? 10000 : 1000;
    jobs[number % JOBS] = *j;
    return launch(kernel, blocks, 1, 1, 32, 1, 1, 0, stream, parameters, NULL) == 0 ? SUCCESS
                                                                                    : REFUSED;
}

/* ---- cuBLAS ---- */

typedef struct {
    void *stream;
} fake_handle;

static tl_dtype dtype_of(int cuda_type)
{
    return cuda_type == CUDA_R_16F ? TL_F16 : cuda_type == CUDA_R_16BF ? TL_BF16 : TL_F32;
}

static int create(fake_handle **out)
{
    *out = calloc(1, sizeof **out);
    return start();
}

EXPORT(int, cublasCreate_v2, (fake_handle * *out))
{
    return create(out);
}

EXPORT(int, cublasSetStream_v2, (fake_handle * h, void *stream))
{
    h->stream = stream;
    return SUCCESS;
}

EXPORT(int, cublasSetWorkspace_v2, (fake_handle * h, void *at, size_t size))
{
    (void)h;
    return at != NULL && size > 0 ? SUCCESS : INVALID;
}

EXPORT(int, cublasGetVersion_v2, (fake_handle * h, int *out))
{
    (void)h;
    *out = 120803;
    return SUCCESS;
}

EXPORT(const char *, cublasGetStatusString, (int status))
{
    return status == REFUSED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

EXPORT(int, cublasGemmEx,
       (fake_handle * h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a,
        int a_type, int lda, const void *b, int b_type, int ldb, const float *beta, void *c,
        int c_type, int ldc, int compute, int algorithm))
{
    const job j = {
        .op = GEMM, .dtype = dtype_of(a_type), .m = m, .n = n, .k = k, .lead = { lda, ldb, ldc }
    };
    if (ta != 0 || tb != 0 || *alpha != 1 || *beta != 0 || a_type != b_type || a_type != c_type ||
        algorithm != CUBLAS_GEMM_DEFAULT || lda < m || ldb < k || ldc < m ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return INVALID;
    return submit(&j, 0, a, b, NULL, c, h->stream);
}

EXPORT(int, cublasSgeam,
       (fake_handle * h, int ta, int tb, int m, int n, const float *alpha, const void *a, int lda,
        const float *beta, const void *b, int ldb, void *c, int ldc))
{
    const job j = { .op = ADD, .dtype = TL_F32, .m = m, .n = n };
    if (ta != 0 || tb != 0 || *alpha != 1 || *beta != 1 || lda != m || ldb != m || ldc != m)
        return INVALID;
    return submit(&j, 0, a, b, NULL, c, h->stream);
}

/* ---- cuBLASLt ---- */

typedef struct {
    int type;
    int64_t rows, columns, lead;
} lt_layout;

EXPORT(int, cublasLtCreate, (fake_handle * *out))
{
    return create(out);
}

EXPORT(size_t, cublasLtGetVersion, (void))
{
    return 120803;
}

EXPORT(const char *, cublasLtGetStatusString, (int status))
{
    return cublasGetStatusString(status);
}

EXPORT(int, cublasLtMatmulDescCreate, (int **out, int compute, int scale))
{
    *out = malloc(sizeof **out);
    **out = compute;
    return scale == CUDA_R_32F ? SUCCESS : INVALID;
}

EXPORT(int, cublasLtMatrixLayoutCreate,
       (lt_layout * *out, int type, uint64_t rows, uint64_t columns, int64_t lead))
{
    *out = malloc(sizeof **out);
    **out = (lt_layout){ type, (int64_t)rows, (int64_t)columns, lead };
    return SUCCESS;
}

EXPORT(int, cublasLtMatmulPreferenceCreate, (uint64_t * *out))
{
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}

EXPORT(int, cublasLtMatmulPreferenceSetAttribute,
       (uint64_t * p, int attribute, const void *value, size_t size))
{
    memcpy(p, value, size);
    return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == 8 ? SUCCESS : INVALID;
}

static int drop(void *object)
{
    free(object);
    return SUCCESS;
}

EXPORT(int, cublasLtMatmulDescDestroy, (void *object))
{
    return drop(object);
}

EXPORT(int, cublasLtMatrixLayoutDestroy, (void *object))
{
    return drop(object);
}

EXPORT(int, cublasLtMatmulPreferenceDestroy, (void *object))
{
    return drop(object);
}

EXPORT(int, cublasLtMatmulAlgoGetHeuristic,
       (fake_handle * h, int *operation, lt_layout *a, lt_layout *b, lt_layout *c, lt_layout *d,
        uint64_t *preference, int asked, cublaslt_heuristic *out, int *count))
{
    (void)h;
    if (a->rows != c->rows || a->columns != b->rows || b->columns != c->columns || c != d ||
        *preference == 0 || *operation == 0)
        return INVALID;
    *count = says("none") ? 0 : asked < 3 ? asked : 3;
    for (int i = 0; i < *count; i++) /* the last of them does not work */
        out[i] =
            (cublaslt_heuristic){ .algorithm = { (uint64_t)i }, .state = i == 2 ? REFUSED : 0 };
    return SUCCESS;
}

EXPORT(int, cublasLtMatmul,
       (fake_handle * h, int *operation, const float *alpha, const void *a, lt_layout *a_layout,
        const void *b, lt_layout *b_layout, const float *beta, const void *c, lt_layout *c_layout,
        void *d, lt_layout *d_layout, const uint64_t *algorithm, void *workspace, size_t size,
        void *stream))
{
    const job j = { .op = GEMM,
                    .dtype = dtype_of(a_layout->type),
                    .m = a_layout->rows,
                    .n = b_layout->columns,
                    .k = a_layout->columns,
                    .lead = { a_layout->lead, b_layout->lead, d_layout->lead } };
    (void)h;
    (void)workspace;
    (void)size;
    if (*alpha != 1 || *beta != 0 || c != d || c_layout != d_layout || *operation == 0)
        return INVALID;
    return submit(&j, (int)algorithm[0], a, b, NULL, d, stream);
}

/* ---- cuDNN ---- */

/* A tensor, a filter or a convolution: numbers as they were set. */
typedef struct {
    int values[8];
} fake_object;

static tl_dtype cudnn_dtype(int type)
{
    return type == CUDNN_DATA_HALF ? TL_F16 : type == CUDNN_DATA_BFLOAT16 ? TL_BF16 : TL_F32;
}

static int make_object(fake_object **out)
{
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}

EXPORT(int, cudnnCreate, (fake_handle * *out))
{
    return create(out);
}

EXPORT(int, cudnnSetStream, (fake_handle * h, void *stream))
{
    h->stream = stream;
    return SUCCESS;
}

EXPORT(size_t, cudnnGetVersion, (void))
{
    return says("old") ? 90100 : 91300;
}

EXPORT(const char *, cudnnGetErrorString, (int status))
{
    return status == REFUSED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}

#define OBJECT(name)                                                 \
    EXPORT(int, cudnnCreate##name##Descriptor, (fake_object * *out)) \
    {                                                                \
        return make_object(out);                                     \
    }                                                                \
    EXPORT(int, cudnnDestroy##name##Descriptor, (fake_object * o))   \
    {                                                                \
        return drop(o);                                              \
    }
OBJECT(Tensor)
OBJECT(Filter)
OBJECT(Convolution)

EXPORT(int, cudnnSetTensor4dDescriptor,
       (fake_object * o, int layout, int type, int n, int c, int h, int w))
{
    *o = (fake_object){ { layout, type, n, c, h, w } };
    return SUCCESS;
}

EXPORT(int, cudnnSetFilter4dDescriptor,
       (fake_object * o, int type, int layout, int k, int c, int h, int w))
{
    *o = (fake_object){ { layout, type, k, c, h, w } };
    return h == WINDOW && w == WINDOW ? SUCCESS : INVALID;
}

EXPORT(int, cudnnSetConvolution2dDescriptor,
       (fake_object * o, int up, int left, int down, int across, int dilated_down,
        int dilated_across, int mode, int type))
{
    *o = (fake_object){ { up, left, down, across } };
    return up == 1 && left == 1 && down == 1 && across == 1 && dilated_down == 1 &&
                   dilated_across == 1 && mode == CUDNN_CROSS_CORRELATION &&
                   type == CUDNN_DATA_FLOAT
               ? SUCCESS
               : INVALID;
}

EXPORT(int, cudnnSetConvolutionMathType, (fake_object * o, int math))
{
    o->values[4] = math;
    return SUCCESS;
}

EXPORT(int, cudnnGetConvolutionForwardAlgorithm_v7,
       (fake_handle * h, fake_object *x, fake_object *w, fake_object *conv, fake_object *y,
        int asked, int *count, cudnn_proposal *out))
{
    (void)h;
    if (x->values[3] != w->values[3] || y->values[3] != w->values[2] ||
        x->values[0] != w->values[0])
        return INVALID;
    *count = says("none") ? 0 : asked < 2 ? asked : 2;
    for (int i = 0; i < *count; i++)
        out[i] = (cudnn_proposal){ .algorithm = i,
                                   .memory = i == 0 ? 0 : 1024,
                                   .math = conv->values[4] };
    return SUCCESS;
}

EXPORT(int, cudnnConvolutionForward,
       (fake_handle * h, const float *alpha, fake_object *x_desc, const void *x,
        fake_object *w_desc, const void *w, fake_object *conv, int algorithm, void *workspace,
        size_t size, const float *beta, fake_object *y_desc, void *y))
{
    const job j = { .op = CONV,
                    .dtype = cudnn_dtype(x_desc->values[1]),
                    .batch = x_desc->values[2],
                    .k = x_desc->values[3],
                    .m = x_desc->values[4],
                    .n = y_desc->values[3],
                    .channels_last = w_desc->values[0] == CUDNN_TENSOR_NHWC };
    if (*alpha != 1 || *beta != 0 || conv->values[0] != 1 || (size > 0 && workspace == NULL))
        return INVALID;
    return submit(&j, algorithm, x, w, NULL, y, h->stream);
}

EXPORT(int, cudnnSoftmaxForward,
       (fake_handle * h, int algorithm, int mode, const float *alpha, fake_object *x_desc,
        const void *x, const float *beta, fake_object *y_desc, void *y))
{
    const job j = { .op = SOFTMAX,
                    .dtype = cudnn_dtype(x_desc->values[1]),
                    .m = x_desc->values[2],
                    .n = x_desc->values[3] };
    if (algorithm != CUDNN_SOFTMAX_ACCURATE || mode != CUDNN_SOFTMAX_MODE_INSTANCE || *alpha != 1 ||
        *beta != 0 || x_desc != y_desc)
        return INVALID;
    return submit(&j, 0, x, NULL, NULL, y, h->stream);
}

/* ---- cuDNN's graphs: descriptors with the attributes that were set ---- */

typedef struct {
    int type, count;
    bool is_final;
    struct {
        int attribute;
        int64_t values[8];
    } set[ATTRIBUTES];
} descriptor;

/* Bytes of an element of a type of attributes. */
static size_t attribute_size(int type)
{
    return type == CUDNN_TYPE_BOOLEAN                                     ? 1
           : type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_HEUR_MODE ? 4
                                                                          : 8;
}

static const int64_t *attribute(const descriptor *d, int which)
{
    for (int i = 0; d != NULL && i < d->count; i++)
        if (d->set[i].attribute == which)
            return d->set[i].values;
    return NULL;
}

static descriptor *reference(const descriptor *d, int which)
{
    const int64_t *value = attribute(d, which);
    return value != NULL ? (descriptor *)(uintptr_t)*value : NULL;
}

EXPORT(int, cudnnBackendCreateDescriptor, (int type, descriptor **out))
{
    *out = calloc(1, sizeof **out);
    (*out)->type = type;
    return SUCCESS;
}

EXPORT(int, cudnnBackendDestroyDescriptor, (descriptor * d))
{
    return drop(d);
}

EXPORT(int, cudnnBackendSetAttribute,
       (descriptor * d, int which, int type, int64_t count, const void *values))
{
    size_t size = attribute_size(type);
    if (d->is_final || d->count == ATTRIBUTES || count > 8)
        return INVALID;
    d->set[d->count].attribute = which;
    for (int64_t i = 0; i < count; i++)
        memcpy(&d->set[d->count].values[i], (const char *)values + (size_t)i * size, size);
    d->count++;
    return SUCCESS;
}

EXPORT(int, cudnnBackendFinalize, (descriptor * d))
{
    static const struct {
        int type, needed;
    } rules[] = { { CUDNN_BACKEND_TENSOR, CUDNN_ATTR_TENSOR_STRIDES },
                  { CUDNN_BACKEND_OPERATION_SDPA_FWD, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC },
                  { CUDNN_BACKEND_OPERATIONGRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS },
                  { CUDNN_BACKEND_ENGINEHEUR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH },
                  { CUDNN_BACKEND_EXECUTION_PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG },
                  { CUDNN_BACKEND_VARIANT_PACK, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS } };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].type == d->type && attribute(d, rules[i].needed) == NULL)
            return INVALID;
    d->is_final = true;
    return SUCCESS;
}

/* A heuristic's results are configurations that know its graph; a plan needs no workspace. */
EXPORT(int, cudnnBackendGetAttribute,
       (descriptor * d, int which, int type, int64_t asked, int64_t *count, void *out))
{
    (void)type;
    if (!d->is_final)
        return INVALID;
    if (which == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        return memset(out, 0, 8), SUCCESS;
    descriptor **configs = out;
    *count = says("none") ? 0 : asked < 2 ? asked : 2;
    for (int64_t i = 0; i < *count; i++) {
        int64_t graph = (int64_t)(uintptr_t)reference(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        cudnnBackendSetAttribute(configs[i], CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
        configs[i]->is_final = true;
    }
    return SUCCESS;
}

EXPORT(int, cudnnBackendExecute, (fake_handle * h, descriptor *plan, descriptor *pack))
{
    const descriptor *config = reference(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const descriptor *graph = reference(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const descriptor *operation = reference(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const int64_t *ids = attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                  *addresses = attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    static const int names[5] = { CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
                                  CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
                                  CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
                                  CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
                                  CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC };
    const void *at[5] = { NULL };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            if (ids[k] == *attribute(reference(operation, names[i]), CUDNN_ATTR_TENSOR_UNIQUE_ID))
                at[i] = (const void *)(uintptr_t)addresses[k];
    const descriptor *q = reference(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
    const int64_t *sizes = attribute(q, CUDNN_ATTR_TENSOR_DIMENSIONS),
                  *strides = attribute(q, CUDNN_ATTR_TENSOR_STRIDES);
    job j = { .op = ATTENTION,
              .dtype = cudnn_dtype((int)*attribute(q, CUDNN_ATTR_TENSOR_DATA_TYPE)),
              .batch = sizes[0],
              .n = sizes[1],
              .m = sizes[2],
              .k = sizes[3],
              .strides = { strides[0], strides[1], strides[2], strides[3] },
              .scale = *(const float *)at[4] };
    return submit(&j, 0, at[0], at[1], at[2], (void *)(uintptr_t)at[3], h->stream);
}
