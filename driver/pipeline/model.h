/* driver/pipeline/model.h: a model from its file to something that runs: the pipeline that strings the folders together.
 *
 *     file -> graph -> kernels -> (per distinct workload, on all cores) schedule -> object -> executable
 *
 * A schedule is the one that the tuner's records name (tuner/records/picks.h), else the default. The finished executable is kept
 * in the cache under a key of the model's bytes, the shapes, the target, the code generator and the records that were
 * taken, and loaded from there the next time, without LLVM being asked anything. */
#ifndef TL_DRIVER_PIPELINE_MODEL_H
#define TL_DRIVER_PIPELINE_MODEL_H
#include "tuner/records/picks.h"
#include "frontend/frontend.h"
#include "ir/program/target.h"
#include "runtime/cache/cache.h"
#include "runtime/executable/executable.h"

typedef struct tl_model tl_model;

/* Called between stages and after each compiled kernel: what, and how far. May be NULL. */
typedef void tl_model_progress(void *user, const char *stage, int done, int total);

/* Something that is no error and worth a sentence: a record that could not be used. May be NULL. */
typedef void tl_model_note(void *user, const char *sentence);

typedef struct {
    const char *target; /* "cpu", "x86-64-v3", ...; NULL: this machine */
    /* What the analytic model goes by; NULL: the built-in profile. Lives as long as the model. */
    const tl_machine *machine;
    const tl_shape_override *shapes;
    int shape_count;
    int64_t most_turns; /* of a loop whose number of turns data decide; 0: tl_onnx_source says */
    const char *cache_folder; /* NULL: the user's */
    tl_numerics numerics; /* strict: no lowering or schedule that re-associates more than it must */
    bool no_cache;        /* neither read nor written */
    /* What is left out to find out what makes a result differ, a comma between (tl_model_switch); NULL: nothing. */
    const char *without;
    bool naive; /* no schedules but of `picks`: every other kernel as its lowering wrote it */
    bool keep_programs; /* compile in full even when cached, so that kernels can be looked at */
    bool compile_only;  /* stop before packing constants: nothing will be run */
    bool foreign;       /* the target need not be this machine's: goes with compile_only */
    bool inspect_only;  /* stop before code generation */
    /* Records of the tuner (an error when it has none); NULL: the default ones, if there are any. */
    const char *database;
    bool no_database;
    /* Bytes of constants, temporaries, inputs and outputs, and of what compiling keeps, at most: more is TL_NO_MEMORY before
     * it is taken. 0: as tl_model_memory_limit says. */
    int64_t max_memory;
    int threads;           /* that the model will run on: those records count. 0: the pool's */
    const tl_picks *picks; /* these, whatever the records say; NULL: ask them */
    tl_pool *pool;         /* compiles and prepares; must not be NULL */
    tl_model_progress *progress;
    tl_model_note *note;
    void *user; /* of both */
} tl_model_options;

/* Names for `without`, in the order of the pipeline: passes of the graph; "fusion": every value is written to memory;
 * "lowering": every kernel's is the direct one; "schedule": every kernel is as its lowering wrote it. NULL behind the last. */
const char *tl_model_switch(int index);
/* TL_BAD_ARGUMENT: one of the names is none. */
tl_status tl_model_check_without(const char *without, tl_diag *diag);

tl_status tl_model_load(const char *path, const tl_model_options *options, tl_model **out,
                        tl_diag *diag);
/* The same from bytes, which are the caller's and not needed afterwards. External weights are looked for in `folder`;
 * NULL: a model that has some is refused. */
tl_status tl_model_load_memory(const void *bytes, size_t size, const char *folder,
                               const tl_model_options *options, tl_model **out, tl_diag *diag);
void tl_model_destroy(tl_model *model); /* after its runners; NULL is fine */

/* Puts the executable into the cache, as loading does unless keep_programs was asked for: the next load of the same model,
 * options and picks takes it from there. Nothing without a cache. */
void tl_model_store(tl_model *model);

/* NULL after inspect_only. */
tl_executable *tl_model_executable(const tl_model *model);

/* What became of one kernel; there when the model was compiled here (not taken from the cache whole). */
typedef struct {
    const tl_kernel *kernel;
    const tl_program *naive, *scheduled;
    const char *lowering; /* that `naive` is */
    const char *trace;    /* the schedule as text */
    const tl_pick *pick;  /* the record that both are from; NULL: the default schedule */
    char workload[33];    /* key: of the direct lowering, whichever was taken */
    char class_key[33];
    int64_t flops, bytes;
    int same_as; /* index of the first kernel of the same workload, or its own */
    bool object_cached;
} tl_model_kernel;
typedef struct {
    bool from_cache; /* the whole executable */
    double read_s, graph_s, compile_s, prepare_s, total_s;
    int kernel_count, workload_count, objects_cached;
    int tuned_count;                /* kernels whose schedule is from a record */
    const tl_model_kernel *kernels; /* NULL when from_cache */
    const tl_graph *graph;          /* after layout assignment; NULL when from_cache */
    const tl_partition *partition;  /* NULL when from_cache */
    int64_t memory_limit;           /* that it keeps to; 0: none */
    const tl_target *target;
    /* the target where it is a CPU, else this machine: what is not for the device is compiled for it */
    const tl_target *host;
    int64_t flops;         /* of a run */
    const char *identity;  /* key of the model's bytes and shapes: tl_choice.model */
    const tl_picks *picks; /* what was asked for: of the records' or the caller's */
} tl_model_facts;
const tl_model_facts *tl_model_get_facts(const tl_model *model);
/* By step of the executable the kernel that it runs, -1 where it runs none. For a model that was compiled here. */
const int *tl_model_kernel_of_steps(tl_arena *arena, const tl_model *model);

#endif
