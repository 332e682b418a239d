/* frontend/call/onnx_call.h: the call of one ONNX node, by which an importer makes canonical nodes of it: its attributes, its
 * inputs and what is known of them, what it gives. What nodes are made with is in onnx_emit.h. */
#ifndef TL_FRONTEND_CALL_ONNX_CALL_H
#define TL_FRONTEND_CALL_ONNX_CALL_H
#include "frontend/frontend.h"
#include "frontend/onnx.pb-c.h"
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

/* Each is known to the rule, given once, and holds what its type says. */
tl_status tl_check_attributes(tl_onnx_call *c);
/* "float8e4m3fn"; also of those that tilth does not have. */
const char *tl_onnx_dtype_text(int onnx);

void tl_onnx_extents(const tl_value *v, int64_t out[TL_MAX_RANK]);
/* axis + rank when negative; outside of the rank it is the model's fault. */
tl_status tl_onnx_axis(tl_onnx_call *c, int64_t axis, int rank, int *out);
/* The numbers of attribute `name`, which has `count` of them from `least` on, or `otherwise` without it. */
enum { TL_LARGEST_LISTED = 1 << 20 };
tl_status tl_call_list(tl_onnx_call *c, const char *name, int count, int64_t otherwise,
                       int64_t least, int64_t *out);
/* The value of an input on which the form of the result depends; it is bound if it has to be (onnx_deciding.c). */
tl_status tl_need_i64(tl_onnx_call *c, int input, const int64_t **out, int *count);
tl_status tl_need_numbers(tl_onnx_call *c, int input, const double **out, int *count);
tl_status tl_need_scalar(tl_onnx_call *c, int input, double otherwise,
                         double *out); /* it may be absent */

/* An axis that an input says. */
tl_status tl_need_axis(tl_onnx_call *c, int input, int64_t otherwise, int rank, int *out);

#endif
