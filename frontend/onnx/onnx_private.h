/* frontend/onnx/onnx_private.h: what the parts of the ONNX reader share: the open model, tensors out of it, and the steps from
 * its bytes to a graph. */
#ifndef TL_FRONTEND_ONNX_ONNX_PRIVATE_H
#define TL_FRONTEND_ONNX_ONNX_PRIVATE_H
#include "frontend/call/onnx_call.h"
#include "frontend/onnx/onnx_memory.h"
#include "runtime/base/file.h"

/* ---- the open model: what constants point into ---- */

typedef struct {
    const char *location;
    void *data;
    size_t size;
} tl_onnx_file;

struct tl_onnx {
    int folder;        /* file descriptor, -1: no external data */
    const void *bytes; /* of the model, while it is read */
    size_t size;
    bool stays;      /* they are there until it is closed: */
    tl_mapping file; /* the model's own; empty when it was read from memory */
    int file_count;
    tl_onnx_file files[64]; /* external data, mapped */
    int64_t most_turns;     /* tl_onnx_source */
    bool keeps_loops;
    bool met_loops; /* of the latest graph: tl_import */
    tl_map *bound;  /* inputs bound to a value: the constant (tl_value) */
    /* Of a model that stays unpacked (tl_onnx_open), for several graphs: else NULL. */
    Onnx__ModelProto *proto;
    tl_onnx_memory memory; /* of the unpacked model */
    tl_arena *arena;       /* of tensors that are no blocks of their own */
    tl_map *tensors;       /* by the place in the unpacked model: tl_onnx_tensor */
};

/* Maps `location` inside the model's folder; never follows a link, never leaves the folder. */
tl_status tl_onnx_map_file(tl_onnx *model, const char *location, const tl_onnx_file **out,
                           tl_diag *diag);
/* The unpacked model, if it is still there, with the tensors read from it. */
void tl_onnx_drop_proto(tl_onnx *model);

/* ---- tensors ---- */

typedef struct {
    tl_dtype dtype;
    tl_shape shape;
    /* Packed row-major, lives as long as the open model and the arena; NULL: no elements. */
    const void *data;
} tl_onnx_tensor;

/* Checks sizes and gives the data: as it lies in the model's or an external file, or copied or converted into the arena. In the
 * model's own file it may lie at any byte.
 * TL_UNSUPPORTED for a dtype or rank that tilth does not have. */
tl_status tl_onnx_read_tensor(tl_arena *arena, tl_onnx *model, Onnx__TensorProto *t,
                              tl_onnx_tensor *out, tl_diag *diag);

/* ---- between the parts of the reader ---- */

/* The whole graph, or TL_UNSUPPORTED with the list of what is not supported. */
/* Scans and unpacks a model, but for large raw data (onnx_lift.h); free it by the allocator's
 * onnx__model_proto__free_unpacked, also after a failure. */
tl_status tl_onnx_unpack(const void *bytes, size_t size, ProtobufCAllocator *allocator,
                         tl_onnx_memory *memory, Onnx__ModelProto **out, tl_diag *diag);
/* Extents and names of a declared shape; more than TL_MAX_RANK dims are TL_UNSUPPORTED. `name`: of the input, for
 * messages. */
tl_status tl_onnx_read_shape(tl_arena *arena, const char *name, const Onnx__TensorShapeProto *dims,
                             tl_shape *out, tl_diag *diag);
tl_status tl_onnx_import(tl_arena *arena, tl_onnx *model, Onnx__ModelProto *proto,
                         const tl_onnx_source *source, const tl_map *kept, tl_graph **out,
                         tl_diag *diag);

#endif
