/* runtime/executable/bindings.h: tensors for every port of an executable. */
#ifndef TL_RUNTIME_EXECUTABLE_BINDINGS_H
#define TL_RUNTIME_EXECUTABLE_BINDINGS_H
#include "runtime/base/arena.h"
#include "runtime/executable/executable.h"
#include "runtime/tensor/tensor.h"

/* How far a model's outputs may be from what is expected, unless asked otherwise: `tl_tensor_compare`'s rtol and ttol. */
#define TL_OUTPUT_RTOL 1e-3
#define TL_OUTPUT_TTOL 1e-4
#define TL_OUTPUT_TTOL_TF32 \
    2e-3 /* 4 * 2^-11, by which a sum of tf32 products may be off (codegen/NUMERICS.md) */

typedef struct {
    int input_count, output_count;
    tl_tensor *inputs, *outputs;
    const void **in; /* their data, as a runner takes them */
    void **out;
} tl_bindings;

/* A tensor for the port, its values as a network expects them, drawn from the seed and the port's name: normal floats, small
 * whole numbers (valid indices), masks of ones. The caller's. */
tl_status tl_port_random(const tl_port *port, uint64_t seed, tl_tensor *out, tl_diag *diag);

/* Takes over `inputs`, one for each input of the executable; NULL: tl_port_random's. Outputs are zeroed; the lists live in
 * `arena`. `dims`: those of the executable; NULL: their start. Free it also after a failure. */
tl_status tl_bindings_make(tl_arena *arena, const tl_executable *executable, const int64_t *dims,
                           tl_tensor *inputs, uint64_t seed, tl_bindings *out, tl_diag *diag);
/* Outputs get the shapes that the runner's latest run gave them. */
void tl_bindings_shape_outputs(tl_bindings *bindings, const tl_runner *runner);
void tl_bindings_free(tl_bindings *bindings); /* zero-initialised is fine */

#endif
