/* ir/graph/graph.h: the model: values and the nodes that compute them, in topological order, after
 * canonicalisation to one meaning an operator (ir/graph/graph_ops.def lists the canonical operators).
 *
 * A Graph lives in an arena. Unlike Program it is edited in place by the passes of frontend/. */
#ifndef TL_IR_GRAPH_GRAPH_H
#define TL_IR_GRAPH_GRAPH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/map.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

#define TL_MAX_RANK 8

typedef enum {
#define OP(name, text, min_inputs, max_inputs, outputs, attributes) TL_OP_##name,
#include "ir/graph/graph_ops.def"
#undef OP
    TL_OP_COUNT
} tl_op;

typedef struct {
    const char *name, *text;             /* "CONV", "Conv" */
    int min_inputs, max_inputs, outputs; /* max -1: any number */
    const char *attributes;              /* "group:i strides:is to:d ..." see graph_ops.def */
} tl_op_info;
extern const tl_op_info tl_op_infos[TL_OP_COUNT];
bool tl_op_from_text(const char *text, tl_op *out);
/* How many graphs a node of the operator has of its own. */
static inline int tl_op_bodies(tl_op op)
{
    return op == TL_OP_LOOP ? 1 : op == TL_OP_IF ? 2 : 0;
}
enum { TL_MOST_NESTED = 32 }; /* graphs inside one another */

/* A dimension: a constant, or a name when it varies from call to call. */
typedef struct {
    int64_t extent;   /* the constant, or -1 */
    const char *name; /* of a symbolic dimension, else NULL */
} tl_dim;

typedef struct {
    int rank; /* -1: unknown */
    tl_dim dims[TL_MAX_RANK];
} tl_shape;

/* How a value lies in memory: logical axes split into blocks and padded by a halo. The physical shape is, in
 * `order`, each logical axis (divided by its block), then the blocks of the blocked axes in the same order:
 * NCHW with block 16 on axis 1 is [N, C/16, H, W, 16]. halo[i] elements of zero lie before (and after) axis i. */
typedef struct {
    bool plain; /* row-major, no block, no halo: the other members do not count */
    int order[TL_MAX_RANK];
    int64_t block[TL_MAX_RANK]; /* 1: not blocked */
    int64_t halo_before[TL_MAX_RANK], halo_after[TL_MAX_RANK];
} tl_layout;

typedef struct tl_node tl_node;
typedef struct tl_graph tl_graph;

/* That a node reads a value, once for each of its inputs. The uses of a value are a list, in the order of the nodes after
 * tl_graph_tidy; what is set later comes last. Dead nodes use nothing. */
typedef struct tl_use {
    tl_node *node;
    struct tl_use *previous, *next;
} tl_use;

typedef struct tl_value {
    const char *name;
    tl_dtype dtype;
    bool dtype_known;
    tl_shape shape;
    tl_layout layout;
    /* Of a constant: packed row-major, lives as long as the graph (arena or mapped file); else NULL. */
    const void *data;
    tl_node *producer; /* NULL: graph input or constant */
    tl_use *first_use, *last_use;
    int use_count;
    bool is_input, is_output;
    /* The value in whose storage it lies as a window of `whole_start` elements from the beginning; NULL: it has its own. A
     * whole has no whole. */
    struct tl_value *whole;
    int64_t whole_start;
    int index;        /* position among graph->values, kept by tl_graph_tidy */
    void *annotation; /* of whoever passes over the graph: it carries it, and knows nothing of it */
} tl_value;

typedef enum {
    TL_ATTR_INT,
    TL_ATTR_FLOAT,
    TL_ATTR_STRING,
    TL_ATTR_INTS,
    TL_ATTR_FLOATS
} tl_attr_type;
typedef struct {
    const char *name;
    tl_attr_type type;
    int64_t i;
    double f;
    const char *s;
    int count;
    const int64_t *ints;
    const double *floats;
} tl_attr;

struct tl_node {
    tl_op op;
    const char *name; /* of the model, for messages; never NULL */
    int input_count, output_count;
    /* tl_node_set_input writes; NULL: an optional input that is not given. */
    tl_value *const *inputs;
    tl_use *uses;       /* one an input; NULL: a copy of a node, which the values know nothing of */
    tl_value **outputs; /* NULL: an optional output that nobody wants */
    int attr_count;
    tl_attr *attrs;
    /* tl_op_bodies(op) of them: what a LOOP does in a turn, what an IF has to choose from */
    tl_graph **bodies;
    bool dead; /* removed by tl_graph_tidy; tl_node_kill sets it */
};

/* That an extent of an output is computed: the shape says how large it is at most. */
typedef struct {
    int output, axis; /* of a shown output */
    int count;        /* the output that holds it: one i64 */
} tl_output_extent;

struct tl_graph {
    tl_arena *arena;
    const char *name;
    int value_count, node_count, input_count, output_count;
    int value_capacity, node_capacity, input_capacity, output_capacity;
    tl_value **values;
    tl_node **nodes; /* topological order */
    tl_value **inputs, **outputs;
    const char *without; /* passes that are left out, a comma between; NULL: none */
    /* Whether these bytes lie in a file that whoever made the graph has mapped; NULL: none do. */
    bool (*is_mapped)(const void *context, const void *data, size_t size);
    const void *mapped_by; /* the context */
    /* Names of nodes that are not folded, for what they make of constants and extents differs from call to call; NULL: none. */
    const tl_map *kept;
    /* other graphs are like it but for extents: one code will be made for all of them */
    bool varies;
    /* Outputs from here on only hold extents of those before them; output_count where there are none. */
    int shown_count;
    int extent_count, extent_capacity;
    tl_output_extent *extents;
};

enum { TL_GRAPH_PRINTED_ELEMENTS = 64 }; /* of a constant; one of more prints as `...` */

tl_graph *tl_graph_create(tl_arena *arena, const char *name);
/* All names are copied. dtype TL_DTYPE_COUNT: not known yet; shape NULL: not known yet. */
tl_value *tl_graph_value(tl_graph *g, const char *name, tl_dtype dtype, const tl_shape *shape);
tl_value *tl_graph_constant(tl_graph *g, const char *name, tl_dtype dtype, const tl_shape *shape,
                            const void *data);
/* Appends a node and makes it the producer of its outputs; those that are NULL stay NULL. To replace a node, give the
 * new one the outputs of the old and kill the old. */
tl_node *tl_graph_node(tl_graph *g, tl_op op, const char *name, int input_count,
                       tl_value *const *inputs, int output_count, tl_value *const *outputs);
/* The constant was read and will not be for a while: where its bytes lie in a file, their pages leave memory. */
void tl_graph_rest(const tl_graph *g, const tl_value *constant);
void tl_node_set_input(tl_node *n, int index, tl_value *v);
void tl_node_set_inputs(tl_graph *g, tl_node *n, int count, tl_value *const *inputs);
void tl_node_keep_inputs(tl_node *n, int count); /* the first ones */
void tl_node_kill(tl_node *n);                   /* twice is fine */
void tl_graph_add_input(tl_graph *g, tl_value *v);
void tl_graph_add_output(tl_graph *g, tl_value *v);
/* The extent of the output's axis is the number that `count` holds when the graph has run. After all shown outputs are added. */
void tl_graph_set_extent(tl_graph *g, int output, int axis, tl_value *count);
tl_value *tl_graph_find(const tl_graph *g, const char *name);
int tl_graph_users(const tl_value *v); /* how many node inputs read it, +1 for a graph output */
/* The graph, then the bodies of its nodes, theirs, and so on. */
typedef void tl_graph_visitor(const tl_graph *g, void *context);
void tl_graph_visit(const tl_graph *g, tl_graph_visitor *visit, void *context);
/* Whether a node with bodies makes it or reads it: it lies in memory as it is. */
bool tl_value_crosses_regions(const tl_value *v);
/* In all inputs (but those of the node that makes `to`) and graph outputs. A graph output keeps its name: `to` takes
 * it over, or, where it cannot (it is an input, a constant or an output itself), an Identity makes the copy. */
void tl_graph_replace_value(tl_graph *g, tl_value *from, tl_value *to);
/* Drops dead nodes, nodes that no graph output needs and values nobody reads (graph inputs stay; an output of a node
 * that nobody reads becomes NULL), sorts topologically, makes names unique, renumbers. TL_BAD_MODEL names a cycle. */
tl_status tl_graph_tidy(tl_graph *g, tl_diag *diag);

const tl_attr *tl_attr_find(const tl_node *n, const char *name);
int64_t tl_attr_int(const tl_node *n, const char *name, int64_t otherwise);
double tl_attr_float(const tl_node *n, const char *name, double otherwise);
const char *tl_attr_string(const tl_node *n, const char *name, const char *otherwise);
/* How many; -1 when absent. */
int tl_attr_ints(const tl_node *n, const char *name, const int64_t **out);
void tl_attr_set_int(tl_graph *g, tl_node *n, const char *name, int64_t value);
void tl_attr_set_float(tl_graph *g, tl_node *n, const char *name, double value);
void tl_attr_set_string(tl_graph *g, tl_node *n, const char *name, const char *value);
void tl_attr_set_ints(tl_graph *g, tl_node *n, const char *name, const int64_t *values, int count);
void tl_attr_set_floats(tl_graph *g, tl_node *n, const char *name, const double *values, int count);
void tl_attr_remove(tl_node *n, const char *name);
/* What graph_ops.def says of the operator's attribute; false when there is none of that name. */
bool tl_op_attribute_type(tl_op op, const char *name, tl_attr_type *type, bool *is_dtype);

tl_shape tl_shape_of(int rank, const int64_t *extents);
bool tl_shape_is_static(const tl_shape *s);
int64_t tl_shape_elements(const tl_shape *s); /* -1: not static or overflows */
/* Whether 64 bits can work with the extents that are known, and with any product of some of them times a small number, whatever
 * the layout: an axis that is empty or open counted as one element, at most 2^48 bytes, which is more than any process has. */
bool tl_shape_is_bounded(const tl_shape *s, tl_dtype dtype);
/* A static shape that is bounded. */
bool tl_shape_is_addressable(const tl_shape *s, tl_dtype dtype);
bool tl_shape_equal(const tl_shape *a, const tl_shape *b);
tl_layout tl_layout_plain(void);
/* Elements in a block of the axis; 1: no block, with a halo or without. */
int64_t tl_layout_block(const tl_layout *layout, int axis);
/* The shape in memory under the layout; at most 2*TL_MAX_RANK axes. */
int tl_layout_physical(const tl_layout *layout, const tl_shape *shape,
                       int64_t out[2 * TL_MAX_RANK]);

/* Text that parses back: constants of more than 64 elements have `...` in place of their values. */
void tl_graph_print(const tl_graph *g, tl_text *out);
tl_status tl_graph_parse(tl_arena *arena, const char *text, const char *file, tl_graph **out,
                         tl_diag *diag); /* `...`: zeros */
/* The same; `...` is what a constant of this name, dtype and shape holds in another graph, which must outlive this one. */
tl_status tl_graph_parse_beside(tl_arena *arena, const char *text, const char *file,
                                const tl_graph *constants, tl_graph **out, tl_diag *diag);
tl_status tl_graph_verify(const tl_graph *g, tl_diag *diag);
void tl_graph_dump(const tl_graph *g); /* to stderr, for gdb */

#endif
