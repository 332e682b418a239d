/* tests/gpu/peers/peer_cudnn.c: convolutions, attention and softmax by cuDNN 9. A convolution is tried with channels first and
 * last, by the algorithms that its heuristic proposes; attention is a graph of one operation, by the engines proposed. */
#include <math.h>
#include <string.h>
#include "tests/gpu/peers/peer.h"
#include "tests/gpu/peers/peer_cudnn_abi.h"

enum { PROPOSALS = 8, LAYOUTS = 2, WINDOW = 3 };
typedef struct handle *cudnn;
typedef struct object *object;

static struct {
    int (*create)(cudnn *);
    int (*set_stream)(cudnn, void *);
    size_t (*version)(void);
    const char *(*text)(int);
    int (*make_tensor)(object *), (*drop_tensor)(object);
    int (*set_tensor)(object, int, int, int, int, int, int);
    int (*make_filter)(object *), (*drop_filter)(object);
    int (*set_filter)(object, int, int, int, int, int, int);
    int (*make_conv)(object *), (*drop_conv)(object);
    int (*set_conv)(object, int, int, int, int, int, int, int, int);
    int (*set_math)(object, int);
    int (*propose)(cudnn, object, object, object, object, int, int *, cudnn_proposal *);
    int (*convolve)(cudnn, const void *, object, const void *, object, const void *, object, int,
                    void *, size_t, const void *, object, void *);
    int (*softmax)(cudnn, int, int, const void *, object, const void *, const void *, object,
                   void *);
    int (*make)(int, object *), (*drop)(object), (*finalize)(object);
    int (*set)(object, int, int, int64_t, const void *);
    int (*get)(object, int, int, int64_t, int64_t *, void *);
    int (*execute)(cudnn, object, object);
} api;
static cudnn library;
static const peer_case *subject;
static const peer_memory *memory;

typedef struct {
    int layout;
    cudnn_proposal how;
} conv_way;

/* A convolution's or softmax's descriptors, one a layout; NULL: there is none yet. */
static struct {
    object x[LAYOUTS], y[LAYOUTS], filter[LAYOUTS], conv;
    conv_way ways[LAYOUTS * PROPOSALS];
} job;

enum { Q, K, V, O, SCALE, TENSORS };
static struct {
    object tensors[TENSORS], operation, graph, heuristic, configs[PROPOSALS], plans[PROPOSALS],
        pack;
    float scale;
} attention;

static tl_status failed(int code, const char *call, tl_diag *diag)
{
    return peer_failed(code, call, code != 0 ? api.text(code) : NULL, diag);
}
#define TRY(function, ...) TL_TRY(failed(api.function(__VA_ARGS__), "cuDNN's " #function, diag))

static tl_status start(void *stream, tl_text *version, tl_diag *diag)
{
    static const char *const files[] = { "libcudnn.so.9", NULL };
    const peer_symbol symbols[] = {
        { "cudnnCreate", &api.create },
        { "cudnnSetStream", &api.set_stream },
        { "cudnnGetVersion", &api.version },
        { "cudnnGetErrorString", &api.text },
        { "cudnnCreateTensorDescriptor", &api.make_tensor },
        { "cudnnDestroyTensorDescriptor", &api.drop_tensor },
        { "cudnnSetTensor4dDescriptor", &api.set_tensor },
        { "cudnnCreateFilterDescriptor", &api.make_filter },
        { "cudnnDestroyFilterDescriptor", &api.drop_filter },
        { "cudnnSetFilter4dDescriptor", &api.set_filter },
        { "cudnnCreateConvolutionDescriptor", &api.make_conv },
        { "cudnnDestroyConvolutionDescriptor", &api.drop_conv },
        { "cudnnSetConvolution2dDescriptor", &api.set_conv },
        { "cudnnSetConvolutionMathType", &api.set_math },
        { "cudnnGetConvolutionForwardAlgorithm_v7", &api.propose },
        { "cudnnConvolutionForward", &api.convolve },
        { "cudnnSoftmaxForward", &api.softmax },
        { "cudnnBackendCreateDescriptor", &api.make },
        { "cudnnBackendDestroyDescriptor", &api.drop },
        { "cudnnBackendFinalize", &api.finalize },
        { "cudnnBackendSetAttribute", &api.set },
        { "cudnnBackendGetAttribute", &api.get },
        { "cudnnBackendExecute", &api.execute },
    };
    void *file = peer_open(files, diag);
    if (file == NULL)
        return TL_DEVICE;
    TL_TRY(peer_find(file, symbols, sizeof symbols / sizeof *symbols, diag));
    TRY(create, &library);
    TRY(set_stream, library, stream);
    size_t number = api.version();
    tl_text_format(version, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    return TL_OK;
}

static int type_of(tl_dtype dtype)
{
    return dtype == TL_F16    ? CUDNN_DATA_HALF
           : dtype == TL_BF16 ? CUDNN_DATA_BFLOAT16
                              : CUDNN_DATA_FLOAT;
}

static tl_status add_tensor(object *out, int layout, const int64_t sizes[4], tl_diag *diag)
{
    TRY(make_tensor, out);
    TRY(set_tensor, *out, layout, type_of(subject->dtype), (int)sizes[0], (int)sizes[1],
        (int)sizes[2], (int)sizes[3]);
    return TL_OK;
}

/* ---- convolutions ---- */

static tl_status prepare_conv(int *ways, tl_diag *diag)
{
    static const int layouts[LAYOUTS] = { CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC };
    const peer_case *c = subject;
    int type = type_of(c->dtype);
    bool is_f32 = c->dtype == TL_F32 && !c->tf32;
    TRY(make_conv, &job.conv);
    TRY(set_conv, job.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    TRY(set_math, job.conv, is_f32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
    for (int i = 0; i < LAYOUTS; i++) {
        cudnn_proposal found[PROPOSALS];
        int count = 0;
        TL_TRY(add_tensor(&job.x[i], layouts[i], (const int64_t[]){ c->batch, c->k, c->m, c->m },
                          diag));
        TL_TRY(add_tensor(&job.y[i], layouts[i], (const int64_t[]){ c->batch, c->n, c->m, c->m },
                          diag));
        TRY(make_filter, &job.filter[i]);
        TRY(set_filter, job.filter[i], type, layouts[i], (int)c->n, (int)c->k, WINDOW, WINDOW);
        TRY(propose, library, job.x[i], job.filter[i], job.conv, job.y[i], PROPOSALS, &count,
            found);
        for (int j = 0; j < count; j++)
            if (found[j].status == 0 && found[j].memory <= (size_t)memory->workspace_bytes)
                job.ways[(*ways)++] = (conv_way){ i, found[j] };
    }
    return TL_OK;
}

static tl_status run_conv(int way, tl_diag *diag)
{
    static const float one = 1, zero = 0;
    const conv_way *w = &job.ways[way];
    TRY(set_math, job.conv, w->how.math);
    TRY(convolve, library, &one, job.x[w->layout], memory->operands[0], job.filter[w->layout],
        memory->operands[1], job.conv, w->how.algorithm, memory->workspace, w->how.memory, &zero,
        job.y[w->layout], memory->result);
    return TL_OK;
}

/* ---- attention ---- */

static tl_status graph_tensor(int which, int type, const int64_t sizes[4], const int64_t strides[4],
                              tl_diag *diag)
{
    object *out = &attention.tensors[which];
    const int64_t alignment = 16, id = which + 1;
    const bool by_value = which == SCALE;
    TRY(make, CUDNN_BACKEND_TENSOR, out);
    TRY(set, *out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    TRY(set, *out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes);
    TRY(set, *out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    TRY(set, *out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    TRY(set, *out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (by_value)
        TRY(set, *out, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    TRY(finalize, *out);
    return TL_OK;
}

static tl_status make_graph(tl_diag *diag)
{
    static const int attributes[TENSORS] = { CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
                                             CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
                                             CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
                                             CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
                                             CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC };
    const peer_case *c = subject;
    int64_t width = c->n * c->k;
    const int64_t sizes[4] = { c->batch, c->n, c->m, c->k }, ones[4] = { 1, 1, 1, 1 };
    const int64_t strides[4] = { c->m * width, c->k, width, 1 };
    for (int i = 0; i < SCALE; i++)
        TL_TRY(graph_tensor(i, type_of(c->dtype), sizes, strides, diag));
    TL_TRY(graph_tensor(SCALE, CUDNN_DATA_FLOAT, ones, ones, diag));
    TRY(make, CUDNN_BACKEND_OPERATION_SDPA_FWD, &attention.operation);
    for (int i = 0; i < TENSORS; i++)
        TRY(set, attention.operation, attributes[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &attention.tensors[i]);
    TRY(finalize, attention.operation);
    TRY(make, CUDNN_BACKEND_OPERATIONGRAPH, &attention.graph);
    TRY(set, attention.graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &library);
    TRY(set, attention.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &attention.operation);
    TRY(finalize, attention.graph);
    return TL_OK;
}

/* One way of it: an engine with its settings, if its workspace fits. */
static tl_status make_plan(object config, object *out, tl_diag *diag)
{
    int64_t count = 0, bytes = 0;
    TRY(make, CUDNN_BACKEND_EXECUTION_PLAN, out);
    TRY(set, *out, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &library);
    TRY(set, *out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &config);
    TRY(finalize, *out);
    TRY(get, *out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes);
    return bytes <= memory->workspace_bytes
               ? TL_OK
               : tl_fail(diag, TL_UNSUPPORTED, "an engine needs %lld bytes", (long long)bytes);
}

static tl_status prepare_attention(int *ways, tl_diag *diag)
{
    const int mode = CUDNN_HEUR_MODE_A;
    const int64_t ids[TENSORS] = { 1, 2, 3, 4, 5 };
    void *const addresses[TENSORS] = { memory->operands[0], memory->operands[1],
                                       memory->operands[2], memory->result, &attention.scale };
    int64_t count = 0;
    if (api.version() < 91300)
        return tl_fail(diag, TL_UNSUPPORTED, "attention as one operation came with cuDNN 9.13");
    attention.scale = 1 / sqrtf((float)subject->k);
    TL_TRY(make_graph(diag));
    TRY(make, CUDNN_BACKEND_ENGINEHEUR, &attention.heuristic);
    TRY(set, attention.heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &attention.graph);
    TRY(set, attention.heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    TRY(finalize, attention.heuristic);
    for (int i = 0; i < PROPOSALS; i++)
        TRY(make, CUDNN_BACKEND_ENGINECFG, &attention.configs[i]);
    TRY(get, attention.heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        PROPOSALS, &count, attention.configs);
    for (int64_t i = 0; i < count && i < PROPOSALS; i++) {
        object plan = NULL;
        if (make_plan(attention.configs[i], &plan, diag) == TL_OK)
            attention.plans[(*ways)++] = plan;
        else if (plan != NULL)
            api.drop(plan);
    }
    if (*ways == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "none of %lld engines takes it", (long long)count);
    TRY(make, CUDNN_BACKEND_VARIANT_PACK, &attention.pack);
    TRY(set, attention.pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, TENSORS, ids);
    TRY(set, attention.pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, TENSORS,
        addresses);
    TRY(set, attention.pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
        &memory->workspace);
    TRY(finalize, attention.pack);
    return TL_OK;
}

/* ---- all of them ---- */

static tl_status prepare(const peer_case *c, const peer_memory *m, int *ways, tl_diag *diag)
{
    subject = c;
    memory = m;
    *ways = 0;
    switch (c->op) {
    case PEER_CONV:
        return prepare_conv(ways, diag);
    case PEER_ATTENTION:
        return prepare_attention(ways, diag);
    case PEER_SOFTMAX:
        *ways = 1;
        return add_tensor(&job.x[0], CUDNN_TENSOR_NCHW, (const int64_t[]){ c->m, c->n, 1, 1 },
                          diag);
    case PEER_GEMM:
    case PEER_COPY:
    case PEER_ADD:
        break;
    }
    return tl_fail(diag, TL_UNSUPPORTED, "cuDNN is not asked for this");
}

static tl_status run(int way, tl_diag *diag)
{
    static const float one = 1, zero = 0;
    if (subject->op == PEER_CONV)
        return run_conv(way, diag);
    if (subject->op == PEER_ATTENTION)
        TRY(execute, library, attention.plans[way], attention.pack);
    else
        TRY(softmax, library, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one, job.x[0],
            memory->operands[0], &zero, job.x[0], memory->result);
    return TL_OK;
}

static bool is_channels_last(int way)
{
    return subject->op == PEER_CONV && job.ways[way].layout == 1;
}

static void drop_each(object *objects, int count, int (*drop)(object))
{
    for (int i = count - 1; i >= 0; i--)
        if (objects[i] != NULL)
            drop(objects[i]);
}

static void finish(void)
{
    drop_each(job.x, LAYOUTS, api.drop_tensor);
    drop_each(job.y, LAYOUTS, api.drop_tensor);
    drop_each(job.filter, LAYOUTS, api.drop_filter);
    drop_each(&job.conv, 1, api.drop_conv);
    drop_each(&attention.pack, 1, api.drop);
    drop_each(attention.plans, PROPOSALS, api.drop);
    drop_each(attention.configs, PROPOSALS, api.drop);
    drop_each(&attention.heuristic, 1, api.drop);
    drop_each(&attention.graph, 1, api.drop);
    drop_each(&attention.operation, 1, api.drop);
    drop_each(attention.tensors, TENSORS, api.drop);
    memset(&job, 0, sizeof job);
    memset(&attention, 0, sizeof attention);
}

const peer_library peer_cudnn = {
    "cudnn", 1 << PEER_CONV | 1 << PEER_ATTENTION | 1 << PEER_SOFTMAX,
    start,   prepare,
    run,     is_channels_last,
    finish,
};
