/* driver/pipeline/model_private.h: the stages of the pipeline, and what they hand on. */
#ifndef TL_DRIVER_PIPELINE_MODEL_PRIVATE_H
#define TL_DRIVER_PIPELINE_MODEL_PRIVATE_H
#include "codegen/codegen.h"
#include "driver/pipeline/joined_model.h"
#include "driver/pipeline/model.h"
#include "runtime/base/map.h"

/* One distinct workload: its naive program, and what the compile made of it. */
typedef struct {
    const char *name; /* of its programs */
    const tl_kernel *kernel;
    const tl_program *naive, *scheduled;
    const char *lowering, *trace;
    const tl_pick *pick; /* NULL: the default schedule */
    tl_diag miss;        /* why a pick was not used; "" when there was none, or it was */
    tl_arena *arena;     /* of this compile: owns scheduled, trace, descriptors */
    tl_text object, prepare_object;
    tl_text native; /* what the device's own compiler made of the object; empty: nothing */
    tl_descriptor descriptor, prepare_descriptor;
    bool has_prepare, cached;
    char key[33], prepare_key[33];
    tl_jit_kernel *jit, *prepare_jit;
    tl_status status;
    tl_diag diag;
} tl_work;

struct tl_model {
    tl_arena *arena;
    tl_target target;
    tl_target prepare_target; /* what packs constants runs on this machine, whatever the target */
    bool is_foreign;          /* tl_model_options */
    tl_device *device;        /* that the model is on; NULL: the CPU, or nowhere */
    tl_cache *cache;
    tl_numerics numerics;
    const char *without; /* tl_model_options */
    const char *folder;  /* of the model file */
    tl_onnx *onnx;
    bool onnx_is_shared; /* it is somebody else's, who keeps it open */
    tl_graph *graph;
    tl_partition partition;
    const tl_join *join; /* of several graphs, of which `graph` is the first; NULL: it is alone */
    tl_model_kernel *kernels; /* one a kernel of the partition */
    int *work_of;             /* kernel -> index into works */
    int work_count;
    tl_work *works;
    tl_jit *jit;
    tl_executable *executable;
    char base_identity[33], base_key[33]; /* those below without the values of deciding inputs */
    /* inputs on whose values shapes are known to depend, a name a line; NULL: not known */
    const char *deciding;
    char identity[33];    /* of its bytes, shapes and deciding values */
    char key[33];         /* of the executable in the cache */
    int threads;          /* whose records count */
    int64_t memory_limit; /* 0: none */
    tl_records *records;  /* while loading; NULL: none */
    tl_picks picks;
    tl_model_facts facts;
};

/* Constants of a graph that its text does not show, in its order. */
typedef struct {
    const void *data;
    size_t size;
} tl_large_constant;
typedef struct {
    tl_arena *arena;
    tl_large_constant *items;
    int count, capacity;
} tl_large_constants;

/* A value as a function of the dims. */
typedef struct tl_joined_value {
    int rank;                    /* in memory */
    tl_varying *extents, *shape; /* in memory; of its axes */
    bool varies;
    bool is_made; /* of a constant: its elements are made of the dims */
} tl_joined_value;

/* A loop, and how many turns it takes at most, as a function of the dims. */
typedef struct {
    const tl_node *node;
    tl_varying most;
} tl_joined_loop;

/* Graphs that are the same but for extents (driver/pipeline/join_graphs.c). */
struct tl_join {
    tl_arena *arena;
    tl_onnx *onnx;
    tl_join_request request; /* its shapes are gone */
    tl_target target;
    tl_numerics numerics;
    const char *without;       /* tl_model_options */
    const tl_var *const *vars; /* the dims in programs */
    tl_map *kept;              /* names of nodes that are not folded */
    bool keeps_loops; /* tl_onnx_source; and whether some graph would be another one with it */
    bool met_loops;
    tl_graph *graph; /* that of the first sample, and its kernels */
    int bound_count; /* inputs that it is bound to a value of, as tl_onnx_bound has them */
    const char **bound_names;
    const void **bound;
    tl_partition partition;
    const tl_program **programs; /* one a kernel */
    const char **lowerings;      /* that they are */
    int loop_count;
    tl_joined_loop *loops;    /* of the graph and of the bodies in it */
    tl_varying_text text;     /* of the graph after shape inference */
    tl_large_constants large; /* that the text does not show */
};

/* What a device's own compiler makes of the objects, from the cache or by asking it (driver/pipeline/compile_native.c). */
tl_status tl_compile_native(tl_model *model, bool use_cache, tl_diag *diag);
/* Schedules and compiles every work on the pool's threads (driver/pipeline/compile_works.c). */
tl_status tl_compile_works(tl_model *model, const tl_model_options *options, tl_diag *diag);
/* Graph, kernels and objects into an executable (driver/pipeline/build_executable.c). */
tl_status tl_build_executable(tl_model *model, tl_diag *diag);

#endif
