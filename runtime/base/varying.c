/* runtime/base/varying.c: numbers that depend on a few dims. */
#include "runtime/base/varying.h"
#include <assert.h>
#include <string.h>
#include "runtime/base/checked.h"

tl_varying tl_varying_constant(int64_t number)
{
    return (tl_varying){ .of = { number } };
}

bool tl_varying_is_constant(const tl_varying *v)
{
    for (int s = 1; s < TL_VARYING_TERMS; s++)
        if (v->of[s] != 0)
            return false;
    return true;
}

/* Divided differences (Newton's form, each dim counted from the smaller corner on), dim by dim. */
static bool divide_differences(const tl_samples *samples, tl_varying *v)
{
    int corners = 1 << samples->dim_count;
    for (int d = 0; d < samples->dim_count; d++) {
        int64_t width = tl_sample(samples, 1 << d)[d] - tl_sample(samples, 0)[d];
        assert(width > 0);
        for (int s = 0; s < corners; s++) {
            int64_t rise;
            if ((s >> d & 1) == 0)
                continue;
            if (tl_sub_overflows(v->of[s], v->of[s ^ 1 << d], &rise) || rise % width != 0)
                return false;
            v->of[s] = rise / width;
        }
    }
    return true;
}

/* From Newton's form to one of the dims themselves. */
static bool expand(const tl_samples *samples, tl_varying *v)
{
    int corners = 1 << samples->dim_count;
    for (int d = 0; d < samples->dim_count; d++)
        for (int s = 0; s < corners; s++) {
            int64_t part;
            if ((s >> d & 1) == 0 &&
                (tl_mul_overflows(v->of[s | 1 << d], tl_sample(samples, 0)[d], &part) ||
                 tl_sub_overflows(v->of[s], part, &v->of[s])))
                return false;
        }
    return true;
}

bool tl_varying_fit(const tl_samples *samples, const int64_t *numbers, tl_varying *out)
{
    assert(samples->dim_count <= TL_MOST_DIMS && samples->count >= 1 << samples->dim_count);
    *out = (tl_varying){ { 0 } };
    memcpy(out->of, numbers, sizeof *numbers * (size_t)(1 << samples->dim_count));
    if (!divide_differences(samples, out) || !expand(samples, out))
        return false;
    for (int i = 0; i < samples->count; i++) {
        int64_t number;
        if (!tl_varying_at(out, samples->dim_count, tl_sample(samples, i), &number) ||
            number != numbers[i])
            return false;
    }
    return true;
}

bool tl_varying_at(const tl_varying *v, int dim_count, const int64_t *dims, int64_t *out)
{
    int64_t sum = 0;
    for (int s = 0; s < 1 << dim_count; s++) {
        int64_t product = v->of[s];
        for (int d = 0; d < dim_count && product != 0; d++)
            if ((s >> d & 1) != 0 && tl_mul_overflows(product, dims[d], &product))
                return false;
        if (tl_add_overflows(sum, product, &sum))
            return false;
    }
    *out = sum;
    return true;
}

void tl_varying_print(const tl_varying *v, int dim_count, const char *const *names, tl_text *out)
{
    bool is_first = true;
    for (int s = (1 << dim_count) - 1; s >= 0; s--) {
        int64_t factor = v->of[s];
        if (factor == 0 && (s > 0 || !is_first))
            continue;
        if (!is_first)
            tl_text_add(out, factor < 0 ? " - " : " + ");
        if (!is_first && factor < 0)
            factor = -factor;
        is_first = false;
        const char *between = "";
        if (s == 0 || factor != 1) {
            tl_text_format(out, "%lld", (long long)factor);
            between = "*";
        }
        for (int d = 0; d < dim_count; d++)
            if ((s >> d & 1) != 0) {
                tl_text_format(out, "%s%.80s", between, names[d] != NULL ? names[d] : "?");
                between = "*";
            }
    }
}
