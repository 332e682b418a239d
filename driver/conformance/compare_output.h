/* driver/conformance/compare_output.h: an output beside the one that is expected, as the suite's own runner compares them. */
#ifndef TL_DRIVER_CONFORMANCE_COMPARE_OUTPUT_H
#define TL_DRIVER_CONFORMANCE_COMPARE_OUTPUT_H
#include "runtime/tensor/tensor.h"

typedef struct {
    int64_t wrong, first_wrong; /* first_wrong: -1 when none */
    /* The largest distance of a float from what is expected, in representable numbers; what differs by at most the epsilon
     * of its type counts as equal. Infinite where a NaN or an infinity is not as expected. */
    double max_ulp;
} tl_output_difference;

/* Floats are right when |a-e| <= atol + rtol*|e|, or both are NaN, or the same infinity; integers and bools when they are
 * equal. TL_WRONG_RESULT: dtypes or shapes differ. */
tl_status tl_compare_output(const tl_tensor *actual, const tl_tensor *expected, double rtol,
                            double atol, tl_output_difference *out, tl_diag *diag);
/* An element as text, and its place: "[0, 3, 2]". */
void tl_element_text(const tl_tensor *tensor, int64_t element, char *out, size_t size);
void tl_element_index_text(const tl_tensor *tensor, int64_t element, char *out, size_t size);

#endif
