/* runtime/tensor/tensor.h: a dense array with its dtype and shape, packed row-major. */
#ifndef TL_RUNTIME_TENSOR_TENSOR_H
#define TL_RUNTIME_TENSOR_TENSOR_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

#define TL_TENSOR_MAX_RANK 8

typedef struct {
    tl_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t shape[TL_TENSOR_MAX_RANK];
    void *data;
    int64_t size; /* bytes */
    bool owned;   /* data is freed by tl_tensor_free */
} tl_tensor;

/* Bytes of such an array. TL_BAD_ARGUMENT when the rank, an extent or the product is out of
 * range. */
tl_status tl_tensor_bytes(tl_dtype dtype, int rank, const int64_t *shape, int64_t *out,
                          tl_diag *diag);
/* Zeroed, 64-byte aligned, owned. */
tl_status tl_tensor_create(tl_dtype dtype, int rank, const int64_t *shape, tl_tensor *out,
                           tl_diag *diag);
/* Of data that stays the caller's. */
tl_status tl_tensor_borrow(tl_dtype dtype, int rank, const int64_t *shape, void *data,
                           tl_tensor *out, tl_diag *diag);
void tl_tensor_free(tl_tensor *tensor); /* zeroes it; zero-initialised is fine */
int64_t tl_tensor_elements(const tl_tensor *tensor);
/* Any dtype, as a double (i64 beyond 2^53 rounds). */
double tl_tensor_get(const tl_tensor *tensor, int64_t index);
void tl_tensor_describe(const tl_tensor *tensor, tl_text *out); /* "f32[1, 3, 224, 224]" */
void tl_shape_describe(tl_dtype dtype, int rank, const int64_t *shape, tl_text *out);

/* How a result compares with what was expected. An element is right when |a-e| <= rtol*|e| +
 * ttol*max|e|; two NaN, and equal infinities, are right. Integers and bools compare as numbers. */
typedef struct {
    int64_t elements, wrong, first_wrong; /* first_wrong: -1 when none */
    double max_error;                     /* largest |a-e|; inf when a NaN or infinity differs */
    double max_expected;                  /* largest finite |e| */
} tl_comparison;
/* TL_BAD_ARGUMENT when dtypes or shapes differ; whether it is right is in out->wrong. */
tl_status tl_tensor_compare(const tl_tensor *actual, const tl_tensor *expected, double rtol,
                            double ttol, tl_comparison *out, tl_diag *diag);
/* The same where each element may be off by `allowed` more. */
tl_status tl_tensor_compare_allowing(const tl_tensor *actual, const tl_tensor *expected,
                                     double rtol, double ttol, const double *allowed,
                                     tl_comparison *out, tl_diag *diag);

#endif
