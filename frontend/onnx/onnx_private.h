/* frontend/onnx/onnx_private.h: what the parts of the ONNX reader share: the open model, tensors out of it, and the
 * call of one node by which the importers of import_ops.def make canonical nodes. */
#ifndef TL_FRONTEND_ONNX_ONNX_PRIVATE_H
#define TL_FRONTEND_ONNX_ONNX_PRIVATE_H
#include "frontend/frontend.h"
#include "frontend/onnx.pb-c.h"
#include "frontend/onnx/onnx_memory.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"

enum {
    TL_ONNX_NEWEST_OPSET = 28, /* of the default domain */
    TL_ONNX_NEWEST_IR = 14,
    TL_ONNX_MAX_NODES = 1 << 18,  /* after inlining functions */
    TL_ONNX_MOST_TURNS = 1 << 20, /* of a loop that only data end, if nobody says another number */
    TL_ONNX_MAX_CALLS = 32,       /* functions inside functions */
};

/* AttributeProto.type */
enum {
    TL_ONNX_FLOAT = 1,
    TL_ONNX_INT,
    TL_ONNX_STRING,
    TL_ONNX_TENSOR,
    TL_ONNX_GRAPH,
    TL_ONNX_FLOATS,
    TL_ONNX_INTS,
    TL_ONNX_STRINGS,
    TL_ONNX_TENSORS,
    TL_ONNX_GRAPHS,
    TL_ONNX_SPARSE,
    TL_ONNX_SPARSES,
    TL_ONNX_TYPE,
    TL_ONNX_TYPES,
};

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
    tl_map *bound;          /* inputs bound to a value: the constant (tl_value) */
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
/* "float8e4m3fn"; also of those that tilth does not have. */
const char *tl_onnx_dtype_text(int onnx);

/* ---- importing ---- */

typedef struct tl_import tl_import;
typedef struct tl_onnx_call tl_onnx_call;
typedef tl_status tl_importer(tl_onnx_call *c);

/* One row of import_ops.def: an operator in a range of opsets, and what makes canonical nodes of it. */
typedef struct {
    const char *op_type;                     /* "Conv", "com.microsoft.Gelu" */
    int since, until;                        /* 0: the newest */
    int min_inputs, max_inputs, max_outputs; /* -1: any number */
    tl_importer *import;
    int op;                 /* for importers that serve several */
    const char *attributes; /* "axis:i value:t", letters i f s t g st tp, is fs ss ts gs */
} tl_import_rule;

struct tl_onnx_call {
    tl_import *import;
    tl_graph *graph;
    tl_arena *arena;
    const tl_import_rule *rule;
    const char *op_type, *name; /* of the model, for messages */
    int version;                /* of the operator's opset */
    int input_count, output_count;
    tl_value **inputs;         /* NULL: not given */
    const char **output_names; /* NULL: nobody wants it */
    int attr_count;
    Onnx__AttributeProto **attrs;
    int first_value; /* values from this index on were made for this call */
    int temporaries;
    tl_status status; /* the first failure of shape inference among the nodes made */
    tl_diag *diag;
};

/* Attributes of the call, checked against the rule before the importer runs. */
bool tl_call_has(const tl_onnx_call *c, const char *name);
int64_t tl_call_int(const tl_onnx_call *c, const char *name, int64_t otherwise);
double tl_call_float(const tl_onnx_call *c, const char *name, double otherwise);
const char *tl_call_string(const tl_onnx_call *c, const char *name, const char *otherwise);
int tl_call_ints(const tl_onnx_call *c, const char *name,
                 const int64_t **out); /* count, -1 when absent */
int tl_call_floats(const tl_onnx_call *c, const char *name, const float **out);
int tl_call_strings(const tl_onnx_call *c, const char *name,
                    const char *const **out); /* copies; up to a zero byte */
Onnx__TensorProto *tl_call_tensor(const tl_onnx_call *c, const char *name);
Onnx__GraphProto *tl_call_graph(const tl_onnx_call *c, const char *name);

tl_value *tl_call_input(const tl_onnx_call *c, int i); /* NULL when not given */
bool tl_call_wants(const tl_onnx_call *c, int output);

/* The model breaks the format's rules / asks for what tilth does not have; names the node. */
tl_status tl_call_bad(tl_onnx_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
tl_status tl_call_unsupported(tl_onnx_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A new node with one fresh output; set its attributes, then tl_emitted gives the output, its dtype and shape
 * inferred where the inputs allow. tl_emit is both for a node without attributes. */
tl_node *tl_onnx_emit_node(tl_onnx_call *c, tl_op op, int input_count, tl_value *const *inputs);
tl_value *tl_emitted(tl_onnx_call *c, tl_node *n);
tl_value *tl_emit1(tl_onnx_call *c, tl_op op, tl_value *x);
tl_value *tl_emit2(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *y);
tl_value *tl_onnx_emit_where(tl_onnx_call *c, tl_value *condition, tl_value *yes, tl_value *no);
tl_value *tl_onnx_emit_cast(tl_onnx_call *c, tl_value *x,
                            tl_dtype to); /* x itself when it has that dtype */
tl_value *tl_onnx_emit_ints(tl_onnx_call *c, tl_op op, tl_value *x, const char *attribute,
                            const int64_t *ints, int count);
tl_value *tl_onnx_emit_reduce(tl_onnx_call *c, tl_op op, tl_value *x, const int64_t *axes,
                              int count, bool keepdims);
tl_value *tl_onnx_emit_reshape(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank);
/* y in the shape of x, or y expanded to it: with an attribute where the shape is known, else with a Shape node. */
tl_value *tl_onnx_emit_shape_like(tl_onnx_call *c, tl_op op, tl_value *y, tl_value *x);
/* Constants: a scalar of the dtype, a list of i64. */
tl_value *tl_onnx_emit_scalar(tl_onnx_call *c, tl_dtype dtype, double value);
tl_value *tl_onnx_emit_i64(tl_onnx_call *c, const int64_t *values, int count);
/* Whether so many more numbers may be written down for the model; if not, the call has failed. */
bool tl_call_has_room(tl_onnx_call *c, int64_t numbers);
/* The call's output `i` is `v`: which takes the output's name if it was made for this call. */
void tl_result(tl_onnx_call *c, int i, tl_value *v);

/* Makes a constant of a value that must be known here, if it is computed from constants, shapes and inputs whose values
 * are offered; else leaves it, and inputs that would have to be offered are reported when the model is read. */
tl_status tl_call_decide(tl_onnx_call *c, tl_value **value);
/* Whether it is known, or computed from nothing but single integers and truth values that the caller offers: what a model is
 * configured by. */
bool tl_call_is_configured(tl_onnx_call *c, tl_value *value);
/* The node's output becomes a constant where it can: shape arithmetic, whose operands are constants. */
tl_status tl_onnx_fold(tl_onnx_call *c, tl_node *n);
/* As tl_call_unsupported, of what is not known because an input's shape is not known yet: nothing to be reported as long as
 * one is open. */
tl_status tl_call_unknown(tl_onnx_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Integers of a constant; -1 when it is none. */
int tl_constant_i64(tl_arena *arena, const tl_value *v, const int64_t **out);
/* The one number of a constant of one element. */
bool tl_constant_number(const tl_value *v, double *out);

/* The body's nodes join the graph, its inputs stand for these values, its names get the prefix; `outputs` gets what it gives.
 * TL_UNSUPPORTED, with its reason listed, where one of them is. */
tl_status tl_import_body(tl_onnx_call *c, Onnx__GraphProto *body, const char *prefix,
                         int input_count, tl_value *const *inputs, int output_count,
                         tl_value **outputs);
/* The same as a graph of its own, for a node with bodies (onnx_region.c): a trial, which binds no input to a value. False,
 * with nothing changed, where that does not do. */
typedef struct tl_onnx_region tl_onnx_region;
typedef tl_status tl_region_reader(tl_onnx_call *inner, void *context);
bool tl_try_region(tl_onnx_call *c, tl_region_reader *read, void *context, tl_onnx_region **out);
/* More nodes for a body that has been read. */
bool tl_extend_region(tl_onnx_call *c, tl_onnx_region *r, tl_region_reader *read, void *context);
/* The tensor as a constant of the call's graph. */
tl_status tl_import_constant(tl_onnx_call *c, Onnx__TensorProto *t, tl_value **out);

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
/* NULL with the reason when there is none for this version. */
const tl_import_rule *tl_import_rule_find(const char *op_type, int version, const char **reason);
/* Each is known to the rule, given once, and holds what its type says. */
tl_status tl_check_attributes(tl_onnx_call *c);

#endif
