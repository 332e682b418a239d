/* driver/output/symbol.h: names for C that a compiled model is linked by. */
#ifndef TL_DRIVER_OUTPUT_SYMBOL_H
#define TL_DRIVER_OUTPUT_SYMBOL_H
#include <stddef.h>
#include "runtime/base/status.h"

/* Whether an object may define the name: TL_BAD_ARGUMENT when it is no identifier of fewer than `size` characters, a word
 * of C or C++, reserved, or taken (main, the C library, tilth's own). */
tl_status tl_symbol_check(const char *name, size_t size, tl_diag *diag);
/* "model_" and the file's name up to its first dot; always a good one. */
void tl_symbol_of_path(const char *path, char *out, size_t size);

#endif
