/* frontend/call/onnx_scope.h: how the walk over a model's graphs keeps its names. onnx_import.c walks graphs, onnx_nodes.c
 * their nodes, onnx_functions.c the bodies of local functions, in the order that onnx_order.c finds.
 *
 * A scope maps the names of one graph or function body to values. A function call opens a scope of its own, a
 * branch one that sees its parent's names. Results of what is not supported are bound as such, so that the walk goes on
 * and the report names everything at once. */
#ifndef TL_FRONTEND_ONNX_ONNX_SCOPE_H
#define TL_FRONTEND_ONNX_ONNX_SCOPE_H
#include "frontend/call/onnx_call.h"

/* A graph that becomes the body of a node, while it is read: what it reads of the graph around it becomes an input. */
typedef struct tl_onnx_region tl_onnx_region;
struct tl_onnx_region {
    tl_onnx_region *outer; /* NULL: it is in the model's own graph */
    tl_graph *graph;
    tl_map *inner; /* by the place of a value of the outer graph: what stands for it here */
    int count, capacity;
    tl_value **captured; /* of the outer graph */
    tl_value **inputs;   /* that stand for them */
};

typedef struct {
    tl_value *value;
    bool unsupported;       /* computed by something that tilth does not have */
    tl_onnx_region *region; /* to whose graph the value belongs; NULL: the model's */
} tl_onnx_binding;

typedef struct tl_onnx_scope tl_onnx_scope;
struct tl_onnx_scope {
    const tl_onnx_scope *parent; /* of a branch; NULL for a graph and a function */
    tl_map *bindings;
    const char *prefix; /* of names made inside a function */
    int opset;          /* of the default domain */
    size_t import_count;
    Onnx__OperatorSetIdProto **imports;
    const Onnx__FunctionProto *function; /* whose body this is */
    const tl_onnx_scope *caller;
    int attr_count; /* of the call, for ref_attr_name */
    Onnx__AttributeProto **attrs;
};

/* What the reader does for importers (onnx_import.c). */
typedef struct {
    tl_status (*body)(tl_onnx_call *c, Onnx__GraphProto *body, const char *prefix, int input_count,
                      tl_value *const *inputs, int output_count, tl_value **outputs);
    tl_status (*constant)(tl_onnx_call *c, Onnx__TensorProto *t, tl_value **out);
} tl_onnx_reader;

struct tl_import {
    tl_arena *arena;
    const tl_onnx_reader *reader;
    tl_onnx *model;
    tl_graph *graph;
    tl_map *functions; /* "domain\nname\noverload" */
    tl_map *refusals;
    /* inputs whose values decide a shape or a branch and are not offered: the node that says so */
    tl_map *needed;
    tl_map *bound;   /* inputs whose values are offered: the constant (tl_value) */
    tl_map *tensors; /* of bodies, by the place in the unpacked model: tl_onnx_tensor */
    int bodies;      /* around what is imported now */
    struct tl_onnx_walk *walk;
    tl_onnx_region *region; /* whose nodes are imported now; NULL: the model's graph */
    tl_map *counts;         /* onnx_counts.c; NULL: nothing is counted */
    tl_map *bounds;         /* onnx_sums.c; NULL: of nothing */
    tl_map *eithers;        /* onnx_eithers.h; NULL: there are none */
    tl_map *sequences;      /* onnx_sequences.h; NULL: there are none */
    int plain_nodes;        /* > 0: nodes are made that look at all elements */
    int64_t most_turns;     /* of a loop that data end; 0: as many as is usual */
    bool keeps_loops;       /* tl_onnx_source; and whether there was a loop that it is about: */
    bool met_loops;
    bool is_trial; /* inputs are bound to no values: if something needs it, the trial has failed */
    bool is_open;  /* some input has no static shape: what is not known may yet be */
    bool is_unknown; /* and something was not */
    int nodes, calls;
    int64_t numbers; /* that importers have written down */
    const tl_shape_override *shapes;
    int shape_count;
    tl_onnx_scope *current;
    tl_diag *diag;
};

const char *tl_text_or(const char *s, const char *otherwise); /* when it is NULL or empty */
const char *tl_domain(const char *domain);                    /* "" for "ai.onnx" too */

/* Remembers something that is not supported: what, at which node (or name), why. */
void tl_onnx_refuse(tl_import *im, const char *what, const char *where, const char *reason);
/* TL_UNSUPPORTED with all that was refused: in the first line what, then one a line; what does not fit is counted. */
tl_status tl_report_refusals(tl_import *im);

/* TL_UNBOUND with the inputs that are needed, if there are any. */
tl_status tl_report_needed(const tl_import *im);

/* What maps from values go by: the place of one, in the arena. */
const char *tl_value_key(const tl_import *im, const tl_value *v);
tl_onnx_binding *tl_scope_find(const tl_onnx_scope *s,
                               const char *name); /* NULL; looks in the parents too */
/* The binding's value as the graph that is imported now can read it. */
tl_value *tl_scope_read(tl_import *im, const tl_onnx_binding *b);
/* What stands in the region for a value of the graph around it. */
tl_value *tl_region_capture(tl_import *im, tl_onnx_region *r, tl_value *outer);
/* Another result of the body. */
void tl_region_output(tl_onnx_region *r, tl_value *v);
/* Refuses a name that the scope can see already. */
tl_status tl_scope_bind(tl_import *im, tl_onnx_scope *s, const char *name, tl_value *value,
                        bool unsupported);
/* The version of the default domain among the imports, 0 when it is not there. */
tl_status tl_default_opset(const tl_import *im, size_t count, Onnx__OperatorSetIdProto **imports,
                           int *out);

#endif
