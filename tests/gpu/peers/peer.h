/* tests/gpu/peers/peer.h: one computation on a GPU, and somebody else's library that has it. Libraries are loaded when they are
 * asked for: none of their headers is needed to build, nothing of them to link. */
#ifndef TL_TESTS_GPU_PEER_H
#define TL_TESTS_GPU_PEER_H
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
    PEER_GEMM, /* r[m, n] = a[m, k] b[k, n] */
    PEER_CONV, /* 3x3, padded: `batch` images of m by m places, k channels, n results */
    PEER_ATTENTION, /* of `batch` by n heads: m rows and keys of k features; a, b and c are [batch, m, n*k] */
    PEER_COPY,    /* r[m, n] = a */
    PEER_ADD,     /* r[m, n] = a + b */
    PEER_SOFTMAX, /* of rows of a[m, n] */
} peer_op;

typedef struct {
    const char *name;
    peer_op op;
    tl_dtype dtype; /* of operands and result; sums are of f32 */
    bool tf32;      /* f32 may be multiplied as tf32 */
    int64_t batch, m, n, k;
} peer_case;

/* Where the library finds its operands; addresses of the device. */
enum { PEER_OPERANDS = 3 };
typedef struct {
    void *operands[PEER_OPERANDS], *result, *workspace;
    int64_t workspace_bytes;
} peer_memory;

/* A library. All of it is called in this order, from one thread: start, then for each case prepare, run, finish. */
typedef struct {
    const char *name;
    unsigned ops; /* which it is asked for: 1 << PEER_GEMM ... */
    /* TL_DEVICE: it is not here, and why. `stream` is the driver's, in whose context the thread is. */
    tl_status (*start)(void *stream, tl_text *version, tl_diag *diag);
    /* How many ways the library has for the case (algorithms, layouts): the fastest counts. TL_UNSUPPORTED: none. */
    tl_status (*prepare)(const peer_case *c, const peer_memory *memory, int *ways, tl_diag *diag);
    /* Puts it into the stream. */
    tl_status (*run)(int way, tl_diag *diag);
    /* Whether images lie with their channels last: [n, h, w, c], filters [n, h, w, c]. */
    bool (*is_channels_last)(int way);
    void (*finish)(void);
} peer_library;
extern const peer_library peer_driver, peer_cublas, peer_cublaslt, peer_cudnn;

/* peer_library.c: the first of the files that there is, in a folder of TILTH_PEERS (a:b:c), else where the system looks. Its
 * symbols serve libraries that are loaded later. NULL, and the sentence, when there is none. */
void *peer_open(const char *const files[], tl_diag *diag);
/* A function for each name that lacks one; TL_DEVICE when the library has none of that name. */
typedef struct {
    const char *symbol;
    void *field; /* a pointer to a function */
} peer_symbol;
tl_status peer_find(void *library, const peer_symbol *symbols, int count, tl_diag *diag);
/* A number of a call that is not 0, as a status: TL_UNSUPPORTED with the library's own word for it, if it has one. */
tl_status peer_failed(int code, const char *call, const char *text, tl_diag *diag);

/* peer_check.c: operands of random numbers in [-1, 1), which repeat, and whether a result is right. */
int64_t peer_elements(const peer_case *c, int operand); /* 0: the case has no such operand */
int64_t peer_result_elements(const peer_case *c);
enum { PEER_BLOCK = 1000003 }; /* a prime: rows differ */
/* PEER_BLOCK elements, which an operand repeats; to be freed. NULL: no memory. */
void *peer_block(const peer_case *c, int operand);
/* The result's element `index` in double, and the sum of the magnitudes that were added up for it. */
double peer_expected(const peer_case *c, void *const blocks[PEER_OPERANDS], bool channels_last,
                     int64_t index, double *magnitude);
double peer_tolerance(const peer_case *c); /* of an error, over that magnitude */
double peer_flops(const peer_case *c);
double peer_bytes(const peer_case *c);
/* The kernel as tilth takes it (ir/README.md). */
void peer_text(const peer_case *c, tl_text *out);

#endif
