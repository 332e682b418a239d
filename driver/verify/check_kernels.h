/* driver/verify/check_kernels.h: every kernel of a model against its naive Program. */
#ifndef TL_DRIVER_VERIFY_CHECK_KERNELS_H
#define TL_DRIVER_VERIFY_CHECK_KERNELS_H
#include "driver/cli/session.h"

/* Runs the model (loaded with keep_programs) on the inputs of `bindings` and, on the values that each kernel read, the
 * program its lowering wrote, compiled without a schedule. Prints a line a kernel that differs and a summary (or JSON
 * records), adds the number of differing kernels to *wrong. */
tl_status tl_check_kernels(tl_session *session, tl_runner *runner, const tl_bindings *bindings,
                           double rtol, double ttol, bool json, int *wrong, tl_diag *diag);

#endif
