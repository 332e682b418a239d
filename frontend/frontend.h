/* frontend/frontend.h: from an ONNX file to kernels.
 *
 *     file --tl_onnx_read--> Graph --tl_graph_prepare--> Graph
 *          --tl_graph_fit, tl_assign_layouts--> Graph for a target
 *          --tl_partition_graph--> kernels --tl_kernel_program--> naive Programs
 */
#ifndef TL_FRONTEND_FRONTEND_H
#define TL_FRONTEND_FRONTEND_H
#include "ir/graph/graph.h"
#include "ir/program/numerics.h"
#include "ir/program/program.h"
#include "ir/program/target.h"

/* Reads and canonicalises a model. TL_UNBOUND names open axes, or inputs whose value has to be offered.
 * Mapped files (external data) stay mapped until tl_onnx_close. `graph` lives in
 * `arena`. TL_UNSUPPORTED lists every unsupported operator (count, first node, reason), one a line. */
typedef struct tl_onnx tl_onnx;
enum {
    TL_DECIDING_ELEMENTS = 4096
}; /* at most, of a value that a shape or a branch may depend on */
typedef struct {
    const char *name; /* of a graph input */
    tl_shape shape;   /* the static shape to give it */
    /* What the model will be called with, packed and of that shape, should a shape or a branch depend on it; NULL: not known.
     * Borrowed while the model is read. */
    const void *value;
    tl_dtype dtype; /* of the value */
} tl_shape_override;
tl_status tl_onnx_read(tl_arena *arena, const char *path, const tl_shape_override *shapes,
                       int shape_count, tl_onnx **out, tl_graph **graph, tl_diag *diag);
/* The same of a file or of bytes, with all that can be said of how. */
typedef struct {
    /* NULL: `bytes`, whose external data is in `folder` (NULL: there may be none) */
    const char *path;
    const void *bytes;
    size_t size;
    const char *folder;
    const tl_shape_override *shapes;
    int shape_count;
    /* Turns that a loop may take whose number data decide; 0: 2^20, or 1,024 where what each turn gives is kept. */
    int64_t most_turns;
    bool keeps_loops; /* one whose number of turns an extent decides is a loop, however short */
} tl_onnx_source;
tl_status tl_onnx_read_source(tl_arena *arena, const tl_onnx_source *source, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag);
tl_status tl_onnx_read_memory(tl_arena *arena, const void *bytes, size_t size, const char *folder,
                              const tl_shape_override *shapes, int shape_count, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag);
/* The same for a model that is wanted for several shapes: it is unpacked once, and all of its graphs have the same constants. A
 * node whose name is in `kept` (NULL: none) stays one where its value is known, too (tl_graph.kept). */
tl_status tl_onnx_open(const char *path, tl_onnx **out, tl_diag *diag);
tl_status tl_onnx_open_memory(const void *bytes, size_t size, const char *folder, tl_onnx **out,
                              tl_diag *diag);
tl_status tl_onnx_graph(tl_arena *arena, tl_onnx *model, const tl_shape_override *shapes,
                        int shape_count, const tl_map *kept, tl_graph **graph, tl_diag *diag);
void tl_onnx_close(tl_onnx *model);
void tl_onnx_limit_turns(tl_onnx *model,
                         int64_t most); /* tl_onnx_source.most_turns, of graphs to come */
/* tl_onnx_source.keeps_loops, of graphs to come, and whether the latest one would be another one with it. */
void tl_onnx_keep_loops(tl_onnx *model, bool keep);
bool tl_onnx_met_loops(const tl_onnx *model);
/* The inputs that were bound to the value offered, for a shape or a branch depends on it: the graph is right for this value
 * only. Names and packed values live as long as the graph. */
int tl_onnx_bound_count(const tl_onnx *model);
const char *tl_onnx_bound(const tl_onnx *model, int index, const void **data);
/* Whether `size` bytes of a constant lie in one of the model's external files: its path relative to the model's folder
 * and the offset in it. */
bool tl_onnx_locate(const tl_onnx *model, const void *data, size_t size, const char **location,
                    int64_t *offset);
/* Whether they lie in any file that is mapped, the model's own or an external one: their pages may leave memory and are
 * read again (tl_graph.is_mapped; the context is the tl_onnx). In the model's own they may lie at any byte, whatever their
 * dtype. */
bool tl_onnx_is_mapped(const void *model, const void *data, size_t size);

/* What a model is called with: its inputs as the file declares them, axes of any extent open (tl_dim). */
typedef struct {
    const char *name;
    tl_dtype dtype;
    bool dtype_known; /* false: none that tilth has; reading the model says so */
    tl_shape shape;   /* rank -1: any */
} tl_onnx_input;
typedef struct {
    int input_count;
    const tl_onnx_input *inputs;
} tl_onnx_signature;
/* Reads nothing but the inputs; the nodes are not looked at. */
tl_status tl_onnx_read_signature(tl_arena *arena, const char *path, tl_onnx_signature *out,
                                 tl_diag *diag);
tl_status tl_onnx_read_signature_memory(tl_arena *arena, const void *bytes, size_t size,
                                        tl_onnx_signature *out, tl_diag *diag);
bool tl_onnx_signature_is_open(const tl_onnx_signature *signature); /* some axis has no extent */
/* The operators of the model's graph and of the graphs in its nodes, each once, in the order of the file; those of other domains
 * as "domain.Operator". Nothing else of it is looked at but the opset of ONNX's own domain (0: none is said). */
tl_status tl_onnx_read_operators(tl_arena *arena, const char *path, const char *const **out,
                                 int *count, int *opset, tl_diag *diag);
/* The operators that are read, then those that are refused with a reason of their own, each in the order of its table. */
typedef struct {
    const char *name;   /* "Conv", "com.microsoft.Gelu" */
    const char *reason; /* NULL: it is read, and the rest says in which form */
    int since, until;   /* opsets, all between included; until 0: the newest of its domain */
    int forms;          /* how many different ones these opsets have */
    int min_inputs, max_inputs, max_outputs; /* of the newest form; -1: any number */
    bool takes_counted;                      /* values whose extents data decide */
} tl_onnx_operator;
bool tl_onnx_find_operator(int index, tl_onnx_operator *out); /* false behind the last */
/* An operator of ONNX's own domain in the form that opset `since` gave it (frontend/import/onnx_versions.def). */
typedef struct {
    char name[32];
    int since;
    const char *reason; /* why it is refused; NULL: it is read */
} tl_onnx_version;
bool tl_onnx_find_version(int index, tl_onnx_version *out); /* false behind the last */
/* The static shapes of all inputs that have open axes, from those that are `given` (of any inputs): axes of one name have one
 * extent. Values that are offered are passed on. TL_BAD_ARGUMENT names the axes that contradict each other, or what the file
 * says; TL_UNBOUND names one that is still open, and the way out. */
tl_status tl_onnx_bind_shapes(tl_arena *arena, const tl_onnx_signature *signature,
                              const tl_shape_override *given, int given_count,
                              const tl_shape_override **out, int *out_count, tl_diag *diag);

/* The bytes of the model as one file: what lay in files beside it lies in the model. Nothing else of it is checked.
 * TL_UNSUPPORTED: that is more than TL_ONNX_MOST_BYTES. Free `out` with tl_text_free. */
#define TL_ONNX_MOST_BYTES ((size_t)2000 << 20) /* protobuf ends at 2 GB */
tl_status tl_onnx_embed(const char *path, tl_text *out, tl_diag *diag);

/* A file that holds one serialized TensorProto (.pb); everything is copied into the arena. */
tl_status tl_onnx_read_tensor_file(tl_arena *arena, const char *path, tl_dtype *dtype,
                                   tl_shape *shape, const void **data, tl_diag *diag);

/* Target-independent: infers every dtype and shape (frontend/node/infer_shapes.c). */
tl_status tl_infer_shapes(tl_graph *g, tl_diag *diag);
/* The passes of frontend/graph/graph_passes.def up to the target: folding, rewrites, fusion of recognised patterns. */
tl_status tl_graph_prepare(tl_graph *g, tl_numerics numerics, tl_diag *diag);
/* Those that rewrite the graph for a target. */
tl_status tl_graph_fit(tl_graph *g, const tl_target *target, tl_numerics numerics, tl_diag *diag);
/* The passes that a graph can do without (tl_graph.without), in their order; NULL behind the last. */
const char *tl_graph_optional_pass(int index);
/* Whether the name is in a list with a comma between (NULL: an empty one). */
bool tl_graph_leaves_out(const char *without, const char *name);
/* How the graph is cut and laid out where that is not as it would be otherwise: a line a decision,
 *
 *     cut NAME      this value is written to memory: what reads it is in another kernel
 *     plain NAME    this value is not laid out in blocks
 *
 * Replaces the decisions that an earlier form made; lines that are no decision, and names that the graph has not, are
 * passed over. Before the layouts are assigned. */
void tl_graph_set_form(tl_graph *g, const char *form);
/* Those that assign layouts for the target. Nothing is converted: a kernel reads and writes any layout. */
tl_status tl_assign_layouts(tl_graph *g, const tl_target *target, tl_diag *diag);

/* One kernel: graph nodes computed together. */
typedef struct {
    const char *name;   /* "conv_relu_3": family and a number, unique in the model */
    const char *family; /* "conv_add_relu" */
    int node_count;
    tl_node *const *nodes; /* topological order */
    int input_count, output_count;
    /* Values read from outside (constants too), in the order of the program's params. */
    tl_value *const *inputs;
    const tl_node *const *windows; /* of each input: the Slice that alone reads it there, or NULL */
    tl_value *const *outputs;
    bool varies; /* the same code sums up other extents: no sum is cut by how long it is */
} tl_kernel;
/* What runs in the place of a node: a kernel, or the bodies of a node that has some. */
typedef struct tl_item tl_item;
typedef struct {
    const tl_graph *graph;
    int count;
    tl_item *items; /* in execution order */
} tl_item_list;
struct tl_item {
    int kernel;           /* index; -1: the node's bodies */
    const tl_node *node;  /* with bodies */
    tl_item_list *bodies; /* tl_op_bodies of them */
};
typedef struct {
    int count;
    tl_kernel *kernels; /* in the order of the list, those of bodies in the place of their node */
    tl_item_list list;
} tl_partition;
tl_status tl_partition_graph(tl_arena *arena, tl_graph *g, tl_partition *out, tl_diag *diag);

/* The naive Program: params are kernel inputs (constants as CONST) then outputs. Blocks and iters are named by role. */
tl_status tl_kernel_program(tl_arena *arena, const tl_kernel *kernel, const char *lowering,
                            tl_program **out, tl_diag *diag);
/* The lowering that the analytic model prefers; a name for tl_kernel_program. */
const char *tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                               tl_numerics numerics);
/* One way to compute a kernel. */
typedef struct {
    const char *name;          /* for tl_kernel_program: "direct", "winograd_f2" */
    const tl_program *program; /* naive; parameters are the same in all of a kernel's */
    const char *text;          /* of the program */
    double rtol, ttol; /* right: |a-e| <= rtol*|e| + ttol*max|e|, e the direct one's result */
} tl_kernel_lowering;
/* All lowerings of a kernel that are legal for its nodes, under strict numerics those alone whose error is bounded as
 * the direct sum's is. The first is the direct one: the reference, and its key (tl_workload_key of its program) is the
 * kernel's whatever the lowering. All programs have one name, made of the family and that key, so that kernels of the
 * same shape have the same texts. Everything lives in `arena`. */
tl_status tl_kernel_lowerings(tl_arena *arena, const tl_kernel *kernel, tl_numerics numerics,
                              const tl_kernel_lowering **out, int *count, tl_diag *diag);

/* Workload key: 32 hex digits of the naive program (extents, dtypes, layouts in it); class key: without extents. */
void tl_workload_key(tl_arena *arena, const tl_program *naive, char out[33]);
void tl_class_key(tl_arena *arena, const tl_program *naive, char out[33]);
/* The workload key of a kernel: that of its direct program. */
tl_status tl_kernel_workload_key(tl_arena *arena, const tl_kernel *kernel, char out[33],
                                 tl_diag *diag);
/* Floating-point operations (a multiply-add is two), and the bytes of all params as far as they are looked at, of one run. */
int64_t tl_program_flops(const tl_program *naive);
int64_t tl_program_bytes(const tl_program *naive);

#endif
