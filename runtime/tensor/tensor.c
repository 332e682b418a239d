/* runtime/tensor/tensor.c: a dense array with its dtype and shape. */
#include "runtime/tensor/tensor.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"

enum { ALIGNMENT = 64 };

tl_status tl_tensor_bytes(tl_dtype dtype, int rank, const int64_t *shape, int64_t *out,
                          tl_diag *diag)
{
    int64_t elements = 1;
    bool empty = false, overflow = false;

    if (rank < 0 || rank > TL_TENSOR_MAX_RANK)
        return tl_fail(diag, TL_BAD_ARGUMENT, "tensor: rank %d is not in 0..%d", rank,
                       TL_TENSOR_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "tensor: extent %lld of axis %d is negative",
                           (long long)shape[i], i);
        empty = empty || shape[i] == 0;
        overflow = overflow || (shape[i] > 0 && tl_mul_overflows(elements, shape[i], &elements));
    }
    /* Allocation rounds up to whole lines, so the last few values of the range do not count. */
    int64_t bytes = overflow ? -1 : tl_storage_bytes(dtype, elements);
    if (bytes < 0 || bytes > INT64_MAX - ALIGNMENT)
        return tl_fail(diag, TL_BAD_ARGUMENT, "tensor: the product of its shape overflows");
    *out = empty ? 0 : bytes;
    return TL_OK;
}

tl_status tl_tensor_borrow(tl_dtype dtype, int rank, const int64_t *shape, void *data,
                           tl_tensor *out, tl_diag *diag)
{
    tl_tensor made = { .dtype = dtype, .rank = rank, .data = data };

    TL_TRY(tl_tensor_bytes(dtype, rank, shape, &made.size, diag));
    for (int i = 0; i < rank; i++)
        made.shape[i] = shape[i];
    *out = made;
    return TL_OK;
}

tl_status tl_tensor_create(tl_dtype dtype, int rank, const int64_t *shape, tl_tensor *out,
                           tl_diag *diag)
{
    tl_tensor made;

    TL_TRY(tl_tensor_borrow(dtype, rank, shape, NULL, &made, diag));
    size_t rounded = ((size_t)made.size + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* never 0 */
    made.data = aligned_alloc(ALIGNMENT, rounded);
    if (made.data == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "tensor: no memory for %lld bytes",
                       (long long)made.size);
    memset(made.data, 0, rounded);
    made.owned = true;
    *out = made;
    return TL_OK;
}

void tl_tensor_free(tl_tensor *tensor)
{
    if (tensor->owned)
        free(tensor->data);
    memset(tensor, 0, sizeof *tensor);
}

int64_t tl_tensor_elements(const tl_tensor *tensor)
{
    return tensor->size / (int64_t)tl_dtype_size(tensor->dtype);
}

double tl_tensor_get(const tl_tensor *tensor, int64_t index)
{
    assert(index >= 0 && index < tl_tensor_elements(tensor));
    tl_number n = tl_number_load(tensor->dtype, tensor->data, (size_t)index);

    if (tl_dtype_is_float(tensor->dtype))
        return n.f;
    return tensor->dtype == TL_U64 ? (double)(uint64_t)n.i : (double)n.i;
}

void tl_shape_describe(tl_dtype dtype, int rank, const int64_t *shape, tl_text *out)
{
    tl_text_format(out, "%s[", tl_dtype_infos[dtype].text);
    for (int i = 0; i < rank; i++)
        tl_text_format(out, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
    tl_text_add(out, "]");
}

void tl_tensor_describe(const tl_tensor *tensor, tl_text *out)
{
    tl_shape_describe(tensor->dtype, tensor->rank, tensor->shape, out);
}

static tl_status check_same_type(const tl_tensor *a, const tl_tensor *e, tl_diag *diag)
{
    assert(a->rank <= TL_TENSOR_MAX_RANK && e->rank <= TL_TENSOR_MAX_RANK);
    if (a->dtype == e->dtype && a->rank == e->rank &&
        memcmp(a->shape, e->shape, sizeof a->shape[0] * (size_t)a->rank) == 0)
        return TL_OK;
    tl_text got = { 0 }, want = { 0 };
    tl_tensor_describe(a, &got);
    tl_tensor_describe(e, &want);
    tl_status status = tl_fail(diag, TL_BAD_ARGUMENT, "the result is %s where %s is expected",
                               tl_text_get(&got), tl_text_get(&want));
    tl_text_free(&got);
    tl_text_free(&want);
    return status;
}

tl_status tl_tensor_compare_allowing(const tl_tensor *actual, const tl_tensor *expected,
                                     double rtol, double ttol, const double *allowed,
                                     tl_comparison *out, tl_diag *diag)
{
    TL_TRY(check_same_type(actual, expected, diag));
    tl_comparison c = { .elements = tl_tensor_elements(expected), .first_wrong = -1 };

    for (int64_t i = 0; i < c.elements; i++) {
        double e = fabs(tl_tensor_get(expected, i));
        if (isfinite(e) && e > c.max_expected)
            c.max_expected = e;
    }
    for (int64_t i = 0; i < c.elements; i++) {
        double a = tl_tensor_get(actual, i), e = tl_tensor_get(expected, i);
        if (a == e || (isnan(a) && isnan(e)))
            continue;
        bool finite = isfinite(a) && isfinite(e);
        double error = finite ? fabs(a - e) : INFINITY;
        if (error > c.max_error)
            c.max_error = error;
        double more = allowed != NULL ? allowed[i] : 0;
        if (finite && error <= rtol * fabs(e) + ttol * c.max_expected + more)
            continue;
        if (c.first_wrong < 0)
            c.first_wrong = i;
        c.wrong++;
    }
    *out = c;
    return TL_OK;
}

tl_status tl_tensor_compare(const tl_tensor *actual, const tl_tensor *expected, double rtol,
                            double ttol, tl_comparison *out, tl_diag *diag)
{
    return tl_tensor_compare_allowing(actual, expected, rtol, ttol, NULL, out, diag);
}
