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

#ifdef __cplusplus
}
#endif
#endif
