/* tests/bench/without_winograd.c: linked into a command line with `--wrap=tl_choose_lowering`: what tilth does by default,
 * but for Winograd, so that tests/peers/accuracy.py can tell what that adds to the error. */
#include <string.h>
#include "frontend/frontend.h"

const char *__real_tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                                      tl_numerics numerics);
const char *__wrap_tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                                      tl_numerics numerics);

const char *__wrap_tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                                      tl_numerics numerics)
{
    const char *chosen = __real_tl_choose_lowering(kernel, target, numerics);
    return strncmp(chosen, "winograd", strlen("winograd")) == 0 ? "direct" : chosen;
}
