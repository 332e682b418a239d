/* tilth.h: the C API of libtilth: compiling ONNX models and running them.
 *
 * This header adds loading of ONNX models to tilth_rt.h, which explains objects, threads, errors
 * and units, and has everything about running. Nothing but the C library is needed to include it.
 *
 *     tilth_model *model;
 *     tilth_runner *runner;
 *     tilth_error error;
 *     if (tilth_model_load("resnet50.onnx", NULL, &model, &error) != TILTH_OK ||
 *         tilth_runner_create(model, 0, &runner, &error) != TILTH_OK ||
 *         tilth_runner_bind_input(runner, 0, image, image_size, &error) != TILTH_OK ||
 *         tilth_runner_bind_output(runner, 0, logits, logits_size, &error) != TILTH_OK ||
 *         tilth_runner_run(runner, &error) != TILTH_OK)
 *         fprintf(stderr, "%s\n", error.text);
 *     tilth_runner_destroy(runner);
 *     tilth_model_destroy(model);
 *
 * Compile and link with `pkg-config --cflags --libs libtilth`. Example programs are installed in
 * share/doc/tilth/examples. */
#ifndef TILTH_H
#define TILTH_H
#include "runtime/api/tilth_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A shape for an input, for models that leave some of its extents open. */
typedef struct tilth_input_shape {
    const char *name;
    int rank;
    int64_t shape[TILTH_MAX_RANK];
} tilth_input_shape;

/* Tells how far loading is: `stage` in a few words ("compiling kernels"), `done` of `total` (0 of
 * 0 when it is not known). Called from the thread that loads and from threads of the pool, never
 * twice at a time. It must not call tilth. */
typedef void tilth_progress(void *user, const char *stage, int done, int total);

/* Set struct_size to sizeof(tilth_load_options) (a program compiled with an older header, whose
 * options end earlier, gets the defaults of the rest), and what you leave out to 0 or NULL:
 *
 *     tilth_load_options options = { .struct_size = sizeof options, .threads = 2 };
 */
typedef struct tilth_load_options {
    size_t struct_size;
    /* What to compile for: "cpu" or NULL (this machine), "x86-64-v2", "x86-64-v3", "x86-64-v4". */
    const char *target;
    /* The threads that run the model: of a pool that others use too (`pool`), or that many of its
     * own (`threads`; 0: one a usable core). Not both. */
    int threads;
    tilth_pool *pool;
    /* How many threads compile, at most. 0: those that run the model; then others who share the
     * pool wait meanwhile. */
    int compile_threads;
    /* Compiled models and kernels are kept in a folder that only its owner can enter, and found
     * there the next time. NULL: $XDG_CACHE_HOME/tilth, or ~/.cache/tilth. A folder that cannot be
     * used costs time and is no error; but a named one that holds other things than a cache (it is
     * not empty and has no CACHEDIR.TAG of tilth's) is TILTH_BAD_ARGUMENT, and is left alone. */
    const char *cache_folder;
    int no_cache; /* not 0: nothing is read from disk nor written; not with cache_folder */
    /* Shapes for inputs; the others keep the model's. Copied. */
    const tilth_input_shape *shapes;
    int shape_count;
    tilth_progress *progress; /* NULL: nobody wants to know */
    void *user;               /* for progress */
    /* What `tilth tune` has recorded decides the schedules of kernels that it knows:
     * of this processor and this many threads, or it counts for nothing. `database` is the file;
     * NULL: $XDG_DATA_HOME/tilth/records.db (or ~/.local/share/...), above the system's, where
     * there is one. A record that no longer fits is passed over. Outputs may differ in the last
     * digits from those of the default schedules. A named file that is not there, or no database
     * of tilth's, is TILTH_BAD_ARGUMENT, a damaged one TILTH_IO. */
    const char *database;
    int no_database; /* not 0: default schedules only; not with database */
    /* Turns that a loop may take whose number data decide, before the run is given up; 0: 2^20, or
     * 1,024 where what each turn gives is kept. */
    int64_t max_turns;
    /* Bytes that the model may take at most: weights, temporaries (of each runner beside the weights), inputs and outputs, and
     * what compiling keeps. More is TILTH_NO_MEMORY, before it is taken. 0: four fifths of what the machine, or the control
     * group that the process is in, has left when the model is loaded. */
    int64_t max_memory;
} tilth_load_options;

/* Reads an ONNX file and compiles it, or takes it from the cache. `options` may be NULL.
 * TILTH_BAD_ARGUMENT when there is no such file or an option is wrong; TILTH_BAD_MODEL when it is
 * malformed; TILTH_UNSUPPORTED with a list of the operators that are. Files may come from anyone:
 * a hostile one gets an error, too. */
tilth_status tilth_model_load(const char *path, const tilth_load_options *options,
                              tilth_model **out, tilth_error *error);
/* The same from `size` bytes in memory, which are not needed afterwards. Weights in external files
 * are looked for in `folder`; with NULL, a model that has any is refused. */
tilth_status tilth_model_load_memory(const void *bytes, size_t size, const char *folder,
                                     const tilth_load_options *options, tilth_model **out,
                                     tilth_error *error);

/* ---- Models whose shapes vary ----
 *
 * A family is one model for all shapes that its open axes may take, and for all values of inputs on which shapes depend. Its
 * first combination is compiled as it is. With the second, axes that differ become arguments of one code for all their extents,
 * as far as the model allows: a new extent of them compiles nothing. What is no such argument is compiled for each
 * combination, as are those that come again and again, and the latest of these are kept. A caller calls it, one
 * thread at a time; several callers share what was compiled.
 *
 *     tilth_family *family;
 *     tilth_caller *caller;
 *     tilth_family_load("bert.onnx", NULL, &family, &error);
 *     tilth_caller_create(family, 0, &caller, &error);
 *     for each sentence:
 *         int64_t shape[] = { 1, length };
 *         tilth_caller_set_input(caller, 0, 2, shape, ids, sizeof *ids * length, &error);
 *         tilth_caller_run(caller, &error);
 *         tilth_caller_output(caller, 0, &info, &data, &error);
 */
typedef struct tilth_family tilth_family;
typedef struct tilth_caller tilth_caller;

enum { TILTH_FAMILY_LIMIT = 16 }; /* combinations that a family, and a caller, keep at most */

/* Reads what the model's inputs are, and compiles nothing yet. Options as of tilth_model_load; `shapes` must be empty. The
 * file is read again for each new combination and must stay as it is; bytes are copied. */
tilth_status tilth_family_load(const char *path, const tilth_load_options *options,
                               tilth_family **out, tilth_error *error);
tilth_status tilth_family_load_memory(const void *bytes, size_t size, const char *folder,
                                      const tilth_load_options *options, tilth_family **out,
                                      tilth_error *error);
/* TILTH_OK, also for NULL; its callers keep what they need until they go. */
tilth_status tilth_family_destroy(tilth_family *family);
int tilth_family_input_count(const tilth_family *family); /* 0 for what is no family */
int tilth_family_find_input(const tilth_family *family, const char *name); /* -1: none */
/* `shape` has -1 where an axis is open, `rank` is -1 where any is allowed; `size` is 0 then. */
tilth_status tilth_family_input(const tilth_family *family, int index, tilth_tensor_info *out,
                                tilth_error *error);
/* How often it was compiled (or found on disk) so far: for a combination, or for all extents of some axes. */
int64_t tilth_family_compiled(const tilth_family *family);

/* An open axis of the model: axes of one name are one. */
typedef struct tilth_axis_info {
    const char *name; /* "INPUT.AXIS" where the file has none */
    int input, axis;  /* the first place that it has */
    int is_dim;       /* some code serves all of its extents */
    /* Why code is for one of its extents: which node or kernel needs the number; NULL: nothing was seen to, as far as the
     * model was called. Until the next call. */
    const char *specialised;
} tilth_axis_info;
int tilth_family_axis_count(const tilth_family *family); /* 0 for what is no family */
tilth_status tilth_family_axis(const tilth_family *family, int index, tilth_axis_info *out,
                               tilth_error *error);

/* `threads` as of tilth_runner_create. */
tilth_status tilth_caller_create(tilth_family *family, int threads, tilth_caller **out,
                                 tilth_error *error);
tilth_status tilth_caller_destroy(tilth_caller *caller); /* TILTH_OK, also for NULL */
/* What the next runs read input `index` from: `size` bytes of a tensor of this shape, which are the caller's and must live until
 * the last of these runs. Of any alignment; what is not aligned to TILTH_ALIGNMENT is copied by each run.
 * TILTH_BAD_ARGUMENT: the shape is not one that the input may have, or `size` is not its. */
tilth_status tilth_caller_set_input(tilth_caller *caller, int index, int rank, const int64_t *shape,
                                    const void *data, size_t size, tilth_error *error);
/* Runs the model for the inputs that are set, all of them; compiles it first where this combination is new (a second
 * thread that wants a new one meanwhile waits). TILTH_BAD_ARGUMENT names axes that contradict each other. */
tilth_status tilth_caller_run(tilth_caller *caller, tilth_error *error);
/* An output of the latest run: what it is, and its data, until the next run. */
tilth_status tilth_caller_output(const tilth_caller *caller, int index, tilth_tensor_info *out,
                                 const void **data, tilth_error *error);
int tilth_caller_output_count(const tilth_caller *caller); /* of the latest run; 0: none */

#ifdef __cplusplus
}
#endif
#endif
