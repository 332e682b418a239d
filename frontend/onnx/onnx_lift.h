/* frontend/onnx/onnx_lift.h: a model's bytes without its large raw data, for an unpacker that copies all that it sees. */
#ifndef TL_FRONTEND_ONNX_ONNX_LIFT_H
#define TL_FRONTEND_ONNX_ONNX_LIFT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/text.h"

enum {
    TL_ONNX_RAW_DATA = 9, /* of TensorProto */
    TL_ONNX_LIFTED_AT =
        536870000, /* of our TensorProto alone (frontend/onnx.proto); no file may have it */
    TL_ONNX_LIFTED_SIZE = 536870001,
    TL_ONNX_LEAST_LIFTED = 4096, /* bytes of raw data; what is smaller stays */
};

/* What takes the place of bytes [at, end) of the model. */
typedef struct {
    size_t at, end;
    bool is_length;        /* a message's length, else a field of raw data */
    uint64_t number, size; /* the length, or where in the model so many bytes of raw data lie */
} tl_onnx_edit;

/* Zero-initialise; free with tl_onnx_edits_free. */
typedef struct {
    tl_onnx_edit *items;
    int count, capacity;
    bool failed; /* no memory */
} tl_onnx_edits;
void tl_onnx_edits_add(tl_onnx_edits *edits, tl_onnx_edit edit);
void tl_onnx_edits_free(tl_onnx_edits *edits);
/* How many bytes the edit writes. */
size_t tl_onnx_edit_size(const tl_onnx_edit *edit);
/* The model with all edits made, which do not overlap; in `out`. */
void tl_onnx_edits_apply(tl_onnx_edits *edits, const void *bytes, size_t size, tl_text *out);

#endif
