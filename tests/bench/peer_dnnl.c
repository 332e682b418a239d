/* tests/bench/peer_dnnl.c: kernels by oneDNN (2.x, as Debian 12 has it). Constants, and the images of convolutions, lie
 * as it likes best; they are brought there when the kernel is made, not when it runs. */
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/peer.h"

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_format_tag_t blocked_tag; /* of images, for primitives that do not choose */

static bool start(const peer_limits *limits)
{
    omp_set_num_threads(limits->threads);
    dnnl_set_max_cpu_isa(limits->vector_bits >= 512   ? dnnl_cpu_isa_all
                         : limits->vector_bits >= 256 ? dnnl_cpu_isa_avx2
                                                      : dnnl_cpu_isa_sse41);
    blocked_tag = limits->vector_bits >= 512 ? dnnl_nChw16c : dnnl_nChw8c;
    return dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;
}

enum { MOST_ARGUMENTS = 4 };

typedef struct {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t args[MOST_ARGUMENTS];
    void *data[MOST_ARGUMENTS];
    dnnl_memory_desc_t plain_result;
} kernel;

/* An operand as a descriptor: plain, or with a tag of its own. */
static dnnl_memory_desc_t describe(const peer_case *c, int operand, dnnl_format_tag_t tag)
{
    static const dnnl_format_tag_t row_major[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde
    };
    case_shape shape = case_operand(c, operand);
    if (c->op == CASE_CONV && operand == CASE_B && c->groups > 1)
        shape = (case_shape){ 5,
                              { c->groups, c->filters / c->groups, c->channels / c->groups,
                                c->window[0], c->window[1] } };
    dnnl_memory_desc_t desc = { 0 };
    dnnl_memory_desc_init_by_tag(&desc, shape.rank, shape.dims, dnnl_f32,
                                 tag == dnnl_format_tag_undef ? row_major[shape.rank] : tag);
    return desc;
}

static dnnl_memory_desc_t plain(const peer_case *c, int operand)
{
    return describe(c, operand, dnnl_format_tag_undef);
}

static bool describe_matmul(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t d;
    dnnl_memory_desc_t a = plain(c, CASE_A), r = plain(c, CASE_RESULT);
    dnnl_memory_desc_t b =
        describe(c, CASE_B, c->constant ? dnnl_format_tag_any : dnnl_format_tag_undef);
    return dnnl_matmul_desc_init(&d, &a, &b, NULL, &r) == dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) == dnnl_success;
}

static bool describe_conv(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t d;
    dnnl_memory_desc_t a = describe(c, CASE_A, dnnl_format_tag_any),
                       b = describe(c, CASE_B, dnnl_format_tag_any), bias = plain(c, CASE_BIAS),
                       r = describe(c, CASE_RESULT, dnnl_format_tag_any);
    dnnl_dims_t strides = { c->stride, c->stride }, pad = { c->window[0] / 2, c->window[1] / 2 };
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t after;
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&after);
    dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0);
    dnnl_primitive_attr_set_post_ops(attr, after);
    bool ok =
        dnnl_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_auto, &a,
                                           &b, &bias, &r, strides, pad, pad) == dnnl_success &&
        dnnl_primitive_desc_create(out, &d, attr, engine, NULL) == dnnl_success;
    dnnl_post_ops_destroy(after);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static bool describe_pool(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_pooling_desc_t d;
    dnnl_memory_desc_t a = describe(c, CASE_A, blocked_tag),
                       r = describe(c, CASE_RESULT, blocked_tag);
    dnnl_dims_t strides = { c->stride, c->stride }, window = { c->window[0], c->window[1] },
                pad = { c->window[0] / 2, c->window[1] / 2 };
    return dnnl_pooling_forward_desc_init(&d, dnnl_forward_inference, dnnl_pooling_max, &a, &r,
                                          strides, window, pad, pad) == dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) == dnnl_success;
}

static bool describe_softmax(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_softmax_desc_t d;
    dnnl_memory_desc_t a = plain(c, CASE_A);
    return dnnl_softmax_forward_desc_init(&d, dnnl_forward_inference, &a, 1) == dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) == dnnl_success;
}

static bool describe_layer_norm(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_layer_normalization_desc_t d;
    dnnl_memory_desc_t a = plain(c, CASE_A);
    return dnnl_layer_normalization_forward_desc_init(&d, dnnl_forward_inference, &a, NULL, 1e-5f,
                                                      dnnl_use_scale | dnnl_use_shift) ==
               dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) == dnnl_success;
}

static bool describe_gelu(const peer_case *c, dnnl_primitive_desc_t *out)
{
    dnnl_eltwise_desc_t d;
    dnnl_memory_desc_t a = plain(c, CASE_A);
    return dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, dnnl_eltwise_gelu_erf, &a, 0,
                                          0) == dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) == dnnl_success;
}

/* A row an operator: how it is described, and what oneDNN calls its second and third operands. */
static const struct {
    bool (*describe)(const peer_case *c, dnnl_primitive_desc_t *out);
    int b, bias;
} operators[] = {
    [CASE_MATMUL] = { describe_matmul, DNNL_ARG_WEIGHTS, 0 },
    [CASE_CONV] = { describe_conv, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS },
    [CASE_MAX_POOL] = { describe_pool, 0, 0 },
    [CASE_SOFTMAX] = { describe_softmax, 0, 0 },
    [CASE_LAYER_NORM] = { describe_layer_norm, DNNL_ARG_SCALE, DNNL_ARG_SHIFT },
    [CASE_GELU] = { describe_gelu, 0, 0 },
};

static bool copy_memory(dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_memory_desc_t const *from_desc, *to_desc;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    dnnl_memory_get_memory_desc(from, &from_desc);
    dnnl_memory_get_memory_desc(to, &to_desc);
    if (dnnl_reorder_primitive_desc_create(&desc, from_desc, engine, to_desc, engine, NULL) !=
        dnnl_success)
        return false;
    bool ok = dnnl_primitive_create(&reorder, desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    if (!ok)
        return false;
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    ok = dnnl_primitive_execute(reorder, stream, 2, args) == dnnl_success &&
         dnnl_stream_wait(stream) == dnnl_success;
    dnnl_primitive_destroy(reorder);
    return ok;
}

/* Memory for an argument, in the primitive's layout. */
static bool add_argument(kernel *k, int argument, const dnnl_memory_desc_t *desc)
{
    size_t bytes = (dnnl_memory_desc_get_size(desc) + 63) / 64 * 64;
    k->data[k->count] = aligned_alloc(64, bytes);
    k->args[k->count].arg = argument;
    if (k->data[k->count] == NULL)
        return false;
    memset(k->data[k->count], 0, bytes);
    return dnnl_memory_create(&k->args[k->count].memory, desc, engine, k->data[k->count]) ==
               dnnl_success &&
           ++k->count > 0;
}

/* The same, filled with an operand. */
static bool add_operand(kernel *k, const peer_case *c, int operand, int argument,
                        const dnnl_memory_desc_t *desc, float *data)
{
    dnnl_memory_t from;
    dnnl_memory_desc_t lies = plain(c, operand);
    if (!add_argument(k, argument, desc) ||
        dnnl_memory_create(&from, &lies, engine, data) != dnnl_success)
        return false;
    bool ok = copy_memory(from, k->args[k->count - 1].memory);
    dnnl_memory_destroy(from);
    return ok;
}

static void destroy(void *state)
{
    kernel *k = state;
    for (int i = 0; i < k->count; i++) {
        dnnl_memory_destroy(k->args[i].memory);
        free(k->data[i]);
    }
    dnnl_primitive_destroy(k->primitive);
    dnnl_primitive_desc_destroy(k->desc);
    free(k);
}

static void run(void *state)
{
    const kernel *k = state;
    dnnl_primitive_execute(k->primitive, stream, k->count, k->args);
    dnnl_stream_wait(stream);
}

static void read_result(void *state, float *result)
{
    const kernel *k = state;
    dnnl_memory_t to;
    if (dnnl_memory_create(&to, &k->plain_result, engine, result) != dnnl_success ||
        !copy_memory(k->args[k->count - 1].memory, to))
        fprintf(stderr, "oneDNN: the result cannot be read\n");
    dnnl_memory_destroy(to);
}

/* The result is the last argument. */
static bool fill(kernel *k, const peer_case *c, float *const operands[CASE_OPERANDS])
{
    if (!operators[c->op].describe(c, &k->desc) ||
        dnnl_primitive_create(&k->primitive, k->desc) != dnnl_success)
        return false;
    dnnl_memory_desc_t bias = plain(c, CASE_BIAS), scale = plain(c, CASE_B);
    const dnnl_memory_desc_t *a = dnnl_primitive_desc_query_md(k->desc, dnnl_query_src_md, 0),
                             *b = dnnl_primitive_desc_query_md(k->desc, dnnl_query_weights_md, 0),
                             *r = dnnl_primitive_desc_query_md(k->desc, dnnl_query_dst_md, 0);
    k->plain_result = plain(c, CASE_RESULT);
    int b_argument = operators[c->op].b, bias_argument = operators[c->op].bias;
    return add_operand(k, c, CASE_A, DNNL_ARG_SRC, a, operands[CASE_A]) &&
           (b_argument == 0 ||
            add_operand(k, c, CASE_B, b_argument, c->op == CASE_LAYER_NORM ? &scale : b,
                        operands[CASE_B])) &&
           (bias_argument == 0 ||
            add_operand(k, c, CASE_BIAS, bias_argument, &bias, operands[CASE_BIAS])) &&
           add_argument(k, DNNL_ARG_DST, r);
}

static bool make(const peer_case *c, float *const operands[CASE_OPERANDS], peer_kernel *out)
{
    kernel *k = calloc(1, sizeof *k);
    *out = (peer_kernel){ k, run, read_result, destroy };
    if (k == NULL)
        return false;
    if (fill(k, c, operands))
        return true;
    destroy(k);
    return false;
}

const peer_library peer_dnnl = { "oneDNN", start, make };
