/* runtime/tensor/npy.h: NumPy's array files, format versions 1 to 3. Both byte orders and both storage
 * orders are read (turned into packed row-major); written are little-endian row-major files of
 * version 1. bf16 is the two-byte void type "V2", as the ml_dtypes package writes it. Files are
 * hostile until proven otherwise. */
#ifndef TL_RUNTIME_TENSOR_NPY_H
#define TL_RUNTIME_TENSOR_NPY_H
#include <stddef.h>
#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

/* The tensor owns its data. TL_BAD_ARGUMENT when the file is absent, malformed or of an
 * unsupported dtype. */
tl_status tl_npy_read(const char *path, tl_tensor *out, tl_diag *diag);
/* `name` is for messages. */
tl_status tl_npy_parse(const void *bytes, size_t size, const char *name, tl_tensor *out,
                       tl_diag *diag);
tl_status tl_npy_write(const char *path, const tl_tensor *tensor, tl_diag *diag); /* atomically */

#endif
