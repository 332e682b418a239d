/* frontend/onnx/onnx_scan.h: a look at the bytes of a model before protobuf-c unpacks them. protobuf-c follows any
 * nesting with recursion and cuts strings at zero bytes; what passes here cannot hurt it. */
#ifndef TL_FRONTEND_ONNX_ONNX_SCAN_H
#define TL_FRONTEND_ONNX_ONNX_SCAN_H
#include <stddef.h>
#include "frontend/onnx/onnx_lift.h"
#include "runtime/base/status.h"

enum {
    TL_ONNX_MAX_DEPTH = 100,        /* nested messages */
    TL_ONNX_MAX_MESSAGES = 1 << 22, /* in a whole model */
    TL_ONNX_MAX_TEXT = 1 << 16,     /* bytes of one name */
};

typedef enum {
    TL_ONNX_MESSAGE_MODEL,
    TL_ONNX_MESSAGE_TENSOR,
} tl_onnx_root;

/* TL_BAD_MODEL says at which byte of which field the encoding is broken, or which limit is exceeded. */
tl_status tl_onnx_scan(const void *bytes, size_t size, tl_onnx_root root, tl_diag *diag);
/* The same of a model, and what has to change so that its large raw data is not in it. */
tl_status tl_onnx_scan_lifting(const void *bytes, size_t size, tl_onnx_edits *edits, tl_diag *diag);

#endif
