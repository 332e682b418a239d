/* driver/bindings.h: tensors for every port of an executable. */
#ifndef TL_DRIVER_BINDINGS_H
#define TL_DRIVER_BINDINGS_H
#include "driver/session.h"

/* How far a model's outputs may be from what is expected, unless asked otherwise: `tl_tensor_compare`'s rtol and ttol. */
#define TL_OUTPUT_RTOL 1e-3
#define TL_OUTPUT_TTOL 1e-4

typedef struct {
    int input_count, output_count;
    tl_tensor *inputs, *outputs;
    const void **in; /* their data, as a runner takes them */
    void **out;
} tl_bindings;

/* Inputs as tl_session_inputs makes them, outputs zeroed; the lists live in `arena`. Free it also after a failure. */
tl_status tl_bindings_make(tl_arena *arena, const tl_executable *executable,
                           const tl_text_list *given, const char *data, int64_t seed,
                           tl_bindings *out, tl_diag *diag);
void tl_bindings_free(tl_bindings *bindings); /* zero-initialised is fine */

#endif
