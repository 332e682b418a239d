/* driver/verify/moved_outputs.h: how far results move when inputs are a little off.
 *
 * A program of f32 rounds. A good one gives what nearly right inputs would give exactly (the mixed error of Higham's Accuracy and
 * Stability of Numerical Algorithms, 1.5); where the logarithm of next to nothing is taken, that may be far from what the right
 * inputs give, and two good programs differ by as much. */
#ifndef TL_DRIVER_VERIFY_MOVED_OUTPUTS_H
#define TL_DRIVER_VERIFY_MOVED_OUTPUTS_H
#include "runtime/executable/bindings.h"

/* Runs the model again with every float of its inputs that is not 0 off by `off` times the input's largest magnitude, up or down
 * at random. moved[o][i]: how far element i of output o was at most from that in `bound`, which stays as it is. NULL for the
 * whole: no input is of floats, or a result had another shape. Free it with tl_moved_outputs_free. */
tl_status tl_move_outputs(tl_runner *runner, tl_bindings *bound, double off, double ***moved,
                          tl_diag *diag);
void tl_moved_outputs_free(double **moved, int output_count);

#endif
