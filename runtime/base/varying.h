/* runtime/base/varying.h: numbers that depend on a few dims: what an extent is for each call of a model whose shapes vary.
 *
 *     7     batch     batch*tokens     64*past + 64        a sum of products in which each dim stands once at most
 *
 * Such a function is known from its values at the corners of a box of the dims. Whether a number that somebody computed is
 * one at all shows at other points. */
#ifndef TL_BASE_VARYING_H
#define TL_BASE_VARYING_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/text.h"

enum { TL_MOST_DIMS = 3, TL_VARYING_TERMS = 1 << TL_MOST_DIMS };

/* of[s] stands before the product of the dims in the set s, a bit a dim; of[0] is the constant. */
typedef struct {
    int64_t of[TL_VARYING_TERMS];
} tl_varying;

/* Points of the dims at which numbers are known. The first 2^dim_count are the corners of a box: at corner c the dims in the
 * set c have their larger value, the others their smaller one. */
typedef struct {
    int dim_count, count;
    const int64_t *points; /* dim_count numbers a point */
} tl_samples;
static inline const int64_t *tl_sample(const tl_samples *s, int index)
{
    return s->points + index * s->dim_count;
}

tl_varying tl_varying_constant(int64_t number);
bool tl_varying_is_constant(const tl_varying *v);
/* The function with numbers[i] at sample i, for all of them; false when there is none, or it does not fit into 64 bits. */
bool tl_varying_fit(const tl_samples *samples, const int64_t *numbers, tl_varying *out);
/* Its value for given dims; false when it overflows. */
bool tl_varying_at(const tl_varying *v, int dim_count, const int64_t *dims, int64_t *out);
/* "64*past + 64"; what has no name is called "?". */
void tl_varying_print(const tl_varying *v, int dim_count, const char *const *names, tl_text *out);

#endif
