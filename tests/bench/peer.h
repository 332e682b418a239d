/* tests/bench/peer.h: one kernel, its operands, and somebody else's code for it. */
#ifndef TL_TESTS_PEER_H
#define TL_TESTS_PEER_H
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CASE_MATMUL,   /* r[batch, m, n] = a[batch, m, k] b[batch, k, n]; no batch axis when it is 1 */
    CASE_CONV,     /* r = relu(conv(a, b) + bias), NCHW, padded by half a window */
    CASE_MAX_POOL, /* 3x3, stride 2, padded by 1 */
    CASE_SOFTMAX,  /* of each row of a[m, n] */
    CASE_LAYER_NORM, /* of each row, times b[n], plus bias[n] */
    CASE_GELU,       /* x/2 * (1 + erf(x/sqrt(2))) */
} case_op;

typedef struct {
    const char *name;
    case_op op;
    int64_t batch, m, n, k;
    bool constant; /* b is known when a model is loaded */
    int64_t channels, size, filters, window[2], stride, groups;
} peer_case;

enum { CASE_A, CASE_B, CASE_BIAS, CASE_RESULT, CASE_OPERANDS };
typedef struct {
    int rank;
    int64_t dims[12]; /* as many as oneDNN's */
} case_shape;

/* Height (0), width (1) of a convolution's or pool's result. */
int64_t case_out(const peer_case *c, int axis);
/* Rank 0 where the case has no such operand. A grouped convolution's weights are [filters, channels/groups, h, w]. */
case_shape case_operand(const peer_case *c, int operand);
int64_t case_elements(const peer_case *c, int operand);
/* Of the direct sum; 0 where nothing is multiplied and added. */
double case_flops(const peer_case *c);

/* Somebody's code for the case. `run` computes, `read` gives the result as plain as the case has it. */
typedef struct {
    void *state;
    void (*run)(void *state);
    void (*read)(void *state, float *result);
    void (*destroy)(void *state);
} peer_kernel;

/* What a library is told before its first kernel: threads, and the widest vectors it may use. */
typedef struct {
    int threads, vector_bits;
} peer_limits;

typedef struct {
    const char *name;
    bool (*start)(const peer_limits *limits);
    /* Operands are plain arrays that outlive the kernel. False when the library has no such kernel. */
    bool (*make)(const peer_case *c, float *const operands[CASE_OPERANDS], peer_kernel *out);
} peer_library;

extern const peer_library peer_dnnl, peer_openblas;

#endif
