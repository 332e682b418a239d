/* driver/conformance/compare_output.c: an output beside the one that is expected. */
#include "driver/conformance/compare_output.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where a float stands among all of its type, from the most negative to the largest; zeros are one. */
static double rank_of(tl_dtype dtype, const void *data, int64_t element)
{
    size_t bytes = tl_dtype_size(dtype);
    uint64_t bits = 0, sign = UINT64_C(1) << (bytes * 8 - 1);
    memcpy(&bits, (const char *)data + (size_t)element * bytes, bytes);
    double magnitude = (double)(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
}

/* The distance from 1 to the next number of a float type. */
static double epsilon_of(tl_dtype dtype)
{
    return ldexp(1, 1 - tl_dtype_infos[dtype].digits);
}

static void compare_float(const tl_tensor *actual, const tl_tensor *expected, int64_t i,
                          double rtol, double atol, tl_output_difference *out)
{
    double a = tl_number_load(actual->dtype, actual->data, (size_t)i).f;
    double e = tl_number_load(expected->dtype, expected->data, (size_t)i).f;
    if (a == e || (isnan(a) && isnan(e)))
        return;
    bool finite = isfinite(a) && isfinite(e);
    double ulp = INFINITY, error = finite ? fabs(a - e) : INFINITY;
    if (finite)
        ulp = fabs(rank_of(actual->dtype, actual->data, i) -
                   rank_of(actual->dtype, expected->data, i));
    if (error > epsilon_of(actual->dtype) && ulp > out->max_ulp)
        out->max_ulp = ulp;
    if (finite && error <= atol + rtol * fabs(e))
        return;
    if (out->wrong++ == 0)
        out->first_wrong = i;
}

static void compare_exact(const tl_tensor *actual, const tl_tensor *expected, int64_t i,
                          tl_output_difference *out)
{
    if (tl_number_load(actual->dtype, actual->data, (size_t)i).i ==
        tl_number_load(expected->dtype, expected->data, (size_t)i).i)
        return;
    if (out->wrong++ == 0)
        out->first_wrong = i;
}

tl_status tl_compare_output(const tl_tensor *actual, const tl_tensor *expected, double rtol,
                            double atol, tl_output_difference *out, tl_diag *diag)
{
    *out = (tl_output_difference){ .first_wrong = -1 };
    if (actual->dtype != expected->dtype || actual->rank != expected->rank ||
        memcmp(actual->shape, expected->shape, sizeof *actual->shape * (size_t)actual->rank) != 0) {
        tl_text got = { 0 }, want = { 0 };
        tl_tensor_describe(actual, &got);
        tl_tensor_describe(expected, &want);
        tl_fail(diag, TL_WRONG_RESULT, "it is %s instead of %s", tl_text_get(&got),
                tl_text_get(&want));
        tl_text_free(&got);
        tl_text_free(&want);
        return TL_WRONG_RESULT;
    }
    int64_t count = tl_tensor_elements(expected);
    for (int64_t i = 0; i < count; i++) {
        if (tl_dtype_is_float(actual->dtype))
            compare_float(actual, expected, i, rtol, atol, out);
        else
            compare_exact(actual, expected, i, out);
    }
    return TL_OK;
}

void tl_element_text(const tl_tensor *tensor, int64_t element, char *out, size_t size)
{
    tl_number n = tl_number_load(tensor->dtype, tensor->data, (size_t)element);
    if (tl_dtype_is_float(tensor->dtype))
        snprintf(out, size, tensor->dtype == TL_F64 ? "%.17g" : "%.9g", n.f);
    else if (tensor->dtype == TL_U64)
        snprintf(out, size, "%llu", (unsigned long long)n.i);
    else
        snprintf(out, size, "%lld", (long long)n.i);
}

void tl_element_index_text(const tl_tensor *tensor, int64_t element, char *out, size_t size)
{
    int64_t index[TL_TENSOR_MAX_RANK];
    for (int a = tensor->rank - 1; a >= 0; a--) {
        index[a] = element % tensor->shape[a];
        element /= tensor->shape[a];
    }
    size_t used = (size_t)snprintf(out, size, "[");
    for (int a = 0; a < tensor->rank && used < size; a++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", a > 0 ? ", " : "",
                                 (long long)index[a]);
    if (used < size)
        snprintf(out + used, size - used, "]");
}
