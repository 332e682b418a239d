/* tilth_rt.h: running compiled models: the C API of libtilth_rt, and the common part of libtilth's.
 *
 * libtilth_rt runs what libtilth (or the command line) has compiled and saved; it contains no
 * compiler and does not need LLVM. libtilth has everything in this header too, and adds loading of
 * ONNX models (tilth.h). A program links one of the two.
 *
 *     tilth_model *model;
 *     tilth_runner *runner;
 *     tilth_error error;
 *     if (tilth_model_open("resnet50.tilth", NULL, &model, &error) != TILTH_OK ||
 *         tilth_runner_create(model, 0, &runner, &error) != TILTH_OK ||
 *         tilth_runner_write_input(runner, 0, image, sizeof image, &error) != TILTH_OK ||
 *         tilth_runner_run(runner, &error) != TILTH_OK ||
 *         tilth_runner_read_output(runner, 0, logits, sizeof logits, &error) != TILTH_OK)
 *         fprintf(stderr, "%s\n", error.text);
 *     tilth_runner_destroy(runner);
 *     tilth_model_destroy(model);
 *
 * Objects
 *   A tilth_pool is a set of threads. A tilth_model is a compiled model: constant once loaded. A
 *   tilth_runner is what one caller needs to run a model: temporaries and the places of inputs and
 *   outputs. Whatever is created is the caller's to destroy, in any order: a model that a runner
 *   still uses, or a pool that a model still uses, goes when its last user does.
 *
 * Threads
 *   Pools and models may be used by any number of threads at once. A runner serves one thread at a
 *   time; a call on one that another thread is using returns TILTH_BUSY and does nothing. Several
 *   callers of one model have a runner each. Runs on one thread go on at the same time; runs that
 *   use several threads of the same pool take turns. A pool does not survive fork(): create it
 *   (and the model and the runner) in the child. There, loading onto an inherited pool, creating a
 *   runner of several threads on it and running one return TILTH_BAD_ARGUMENT; what was inherited
 *   can be destroyed, and a runner on one thread still runs.
 *
 * Errors
 *   Calls that can fail return a tilth_status. With an `error`, they also write a sentence: the
 *   text of what went wrong, or "" after TILTH_OK. `error` may be NULL. After a failure the
 *   objects given are as before, and nothing was created. Nothing is ever printed, and no call
 *   ends the process. A sentence can be shown on a terminal as it is: what steers one in a name
 *   of a model or file is written as \u and four digits.
 *   Wrong arguments (NULL, an index or size that does not fit) give TILTH_BAD_ARGUMENT. So does an
 *   object that was destroyed when the library is a debug build (VARIANT=debug, asan or tsan); in
 *   a release build using one is undefined.
 *
 * Units
 *   Sizes are in bytes, extents in elements, times in seconds. Tensors are dense, row-major, in
 *   the byte order of the machine; a bool is one byte, 0 or 1. */
#ifndef TILTH_RT_H
#define TILTH_RT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; tilth_version() tells that of the library in use. */
#define TILTH_VERSION "0.2.0"
const char *tilth_version(void);

/* ---- Errors ---- */

typedef enum tilth_status {
    TILTH_OK = 0,
    TILTH_BAD_ARGUMENT = 1, /* by the caller: NULL, a wrong size, a file that does not exist */
    TILTH_BAD_MODEL = 2,    /* the model is malformed */
    TILTH_UNSUPPORTED = 3,  /* an operator or feature that tilth, or this processor, lacks */
    TILTH_IO = 4,           /* a file could not be read or written, or is damaged */
    TILTH_DEVICE = 5,       /* the system gave no threads, or a device failed */
    TILTH_NO_MEMORY = 6,
    TILTH_BUSY = 7,    /* another thread is using this runner */
    TILTH_INTERNAL = 8 /* a defect of tilth; please report it with the text */
} tilth_status;

/* A few words for a status, static. */
const char *tilth_status_text(tilth_status status);

typedef struct tilth_error {
    char text[2048]; /* lines, the first says what, further ones where; no newline at the end */
} tilth_error;

/* ---- Tensors ---- */

/* Element types; the numbers are those of ONNX's TensorProto.DataType. */
typedef enum tilth_dtype {
    TILTH_F32 = 1,
    TILTH_U8 = 2,
    TILTH_I8 = 3,
    TILTH_U16 = 4,
    TILTH_I16 = 5,
    TILTH_I32 = 6,
    TILTH_I64 = 7,
    TILTH_BOOL = 9,
    TILTH_F16 = 10,
    TILTH_F64 = 11,
    TILTH_U32 = 12,
    TILTH_U64 = 13,
    TILTH_BF16 = 16,
    TILTH_U4 = 21, /* an element a byte */
    TILTH_I4 = 22
} tilth_dtype;

/* "f32"; "unknown" for what is no dtype. Static. */
const char *tilth_dtype_text(tilth_dtype dtype);
/* Bytes of an element; 0 for what is no dtype. */
size_t tilth_dtype_size(tilth_dtype dtype);

#define TILTH_MAX_RANK  8
/* Buffers that a model works on directly begin at a multiple of this. */
#define TILTH_ALIGNMENT 64

/* An input or output of a model. */
typedef struct tilth_tensor_info {
    const char *name; /* as the model has it, printable or not; lives as long as the model */
    tilth_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t shape[TILTH_MAX_RANK];
    size_t size; /* bytes */
} tilth_tensor_info;

/* Memory aligned to TILTH_ALIGNMENT, zeroed; NULL when there is none. Any other memory of that
 * alignment serves as well. */
void *tilth_buffer_create(size_t size);
void tilth_buffer_destroy(void *buffer); /* NULL is fine */

/* ---- Threads ---- */

typedef struct tilth_pool tilth_pool;

typedef enum tilth_pin {
    TILTH_PIN_AUTO = 0,  /* workers begin on cores of their own, and may be moved from there */
    TILTH_PIN_NEVER = 1, /* the system schedules them */
    TILTH_PIN_ALWAYS = 2 /* thread i to usable core i; the caller only while it runs */
} tilth_pin;

/* Set struct_size to sizeof(tilth_pool_options), and what you leave out to 0. */
typedef struct tilth_pool_options {
    size_t struct_size;
    int threads; /* the caller of a run is one of them; 0: one a usable core */
    tilth_pin pin;
    int spin_us; /* how long a waiting thread stays awake at most; 0: 1000 microseconds */
} tilth_pool_options;

/* Starts the threads. `options` may be NULL. TILTH_DEVICE when the system gives fewer threads. */
tilth_status tilth_pool_create(const tilth_pool_options *options, tilth_pool **out,
                               tilth_error *error);
/* TILTH_OK, also for NULL; models that use it keep its threads until they go. */
tilth_status tilth_pool_destroy(tilth_pool *pool);
int tilth_pool_threads(const tilth_pool *pool); /* 0 for what is no pool */

/* ---- Models ---- */

typedef struct tilth_model tilth_model;

/* Opens a compiled model: the folder that tilth_model_save or `tilth compile -o NAME.tilth` wrote, or
 * the library of `tilth compile -o NAME.so`. `pool` NULL: the model gets one of its own, a thread a
 * usable core. Both hold machine code: open only what you would also execute. They must stay as they
 * are while the model lives.
 * TILTH_BAD_ARGUMENT when there is none, TILTH_IO when it is damaged or of another version,
 * TILTH_UNSUPPORTED when it was compiled for a processor that can do more than this one. */
tilth_status tilth_model_open(const char *path, tilth_pool *pool, tilth_model **out,
                              tilth_error *error);
/* A compiled model that is part of the program: `tilth compile -o NAME.o` writes it, and a NAME.h that
 * declares it. Link NAME.o and libtilth_rt. */
typedef struct tilth_linked tilth_linked;
/* Opens it. `linked` must stay where it is while the model lives. Status and `pool` as of
 * tilth_model_open. */
tilth_status tilth_model_open_linked(const tilth_linked *linked, tilth_pool *pool,
                                     tilth_model **out, tilth_error *error);
/* The same on a device by name: "cuda:1", for a model that was compiled for GPUs (--target cuda); NULL: the first of the kind
 * that it is for, as tilth_model_open takes it. TILTH_DEVICE when there is none, and why. */
tilth_status tilth_model_open_on(const char *path, const char *device, tilth_pool *pool,
                                 tilth_model **out, tilth_error *error);
tilth_status tilth_model_open_linked_on(const tilth_linked *linked, const char *device,
                                        tilth_pool *pool, tilth_model **out, tilth_error *error);
/* Where it runs: "cpu", "cuda:0"; lives as long as the model. NULL for what is no model. */
const char *tilth_model_device(const tilth_model *model);
/* Writes the compiled model: a folder (made when absent) of a few files. Weights in an ONNX
 * model's external files are not copied; the folder refers to them. A saved model that is there is
 * replaced; a folder with anything else in it, or "", is TILTH_BAD_ARGUMENT and stays as it is. */
tilth_status tilth_model_save(const tilth_model *model, const char *folder, tilth_error *error);
/* TILTH_OK, also for NULL; its runners keep what they need until they go. */
tilth_status tilth_model_destroy(tilth_model *model);

int tilth_model_input_count(const tilth_model *model);  /* 0 for what is no model */
int tilth_model_output_count(const tilth_model *model); /* 0 for what is no model */
/* `index` counts from 0, in the order of the ONNX model. */
tilth_status tilth_model_input(const tilth_model *model, int index, tilth_tensor_info *out,
                               tilth_error *error);
tilth_status tilth_model_output(const tilth_model *model, int index, tilth_tensor_info *out,
                                tilth_error *error);
/* A model whose shapes vary (`tilth compile --shape x=1,2..512`) says -1 for the extents that do, and 0 for the size of such a
 * tensor. They are functions of a few numbers, its dims, each of which is the extent of an axis that the file has named. */
typedef struct tilth_dim_info {
    const char *name; /* lives as long as the model */
    int64_t min, max; /* both are served */
} tilth_dim_info;
int tilth_model_dim_count(const tilth_model *model); /* 0: every shape is a constant */
tilth_status tilth_model_dim(const tilth_model *model, int index, tilth_dim_info *out,
                             tilth_error *error);
/* -1: there is none of that name. */
int tilth_model_find_input(const tilth_model *model, const char *name);
int tilth_model_find_output(const tilth_model *model, const char *name);

typedef struct tilth_model_facts {
    const char *name;       /* of the ONNX graph; lives as long as the model */
    int from_disk;          /* 1: opened, or found in the cache; 0: compiled in this process */
    int kernel_count;       /* kernels that a run executes */
    int64_t flops;          /* floating-point operations of a run; 0 when not known */
    int64_t constant_bytes; /* weights, as the kernels read them */
    int64_t code_bytes;
} tilth_model_facts;
tilth_status tilth_model_get_facts(const tilth_model *model, tilth_model_facts *out,
                                   tilth_error *error);

/* ---- Running ---- */

typedef struct tilth_runner tilth_runner;

/* Allocates the temporaries of a run, once: running allocates nothing. `threads`: how many of the
 * model's pool it uses, the caller among them; 0, or more than there are: all. */
tilth_status tilth_runner_create(tilth_model *model, int threads, tilth_runner **out,
                                 tilth_error *error);
/* Of a model on a GPU: runs are put into the caller's stream of the driver (a CUstream, a cudaStream_t), which has to outlive the
 * runner. A run all of whose inputs and outputs are bound to memory of the GPU returns when it is in the stream; what comes
 * behind it there sees the outputs. TILTH_BAD_ARGUMENT on a CPU. */
tilth_status tilth_runner_create_in_stream(tilth_model *model, void *stream, tilth_runner **out,
                                           tilth_error *error);
/* TILTH_BUSY when it is running in another thread, else TILTH_OK, also for NULL. */
tilth_status tilth_runner_destroy(tilth_runner *runner);
size_t tilth_runner_memory(const tilth_runner *runner); /* bytes of temporaries */

/* Of a model whose shapes vary: the shapes of its inputs from the next run on, one an input (NULL: what the others make of it); a
 * new runner has the smallest ones. Where they are others than before, inputs and outputs have to be bound or written anew;
 * memory is allocated where more is needed than ever before. TILTH_BAD_ARGUMENT names the axis that does not fit; then
 * everything stays. */
tilth_status tilth_runner_set_shapes(tilth_runner *runner, const int64_t *const *shapes,
                                     tilth_error *error);
/* An input with the shape that it has now, and what an output will be at most. */
tilth_status tilth_runner_input(tilth_runner *runner, int index, tilth_tensor_info *out,
                                tilth_error *error);
tilth_status tilth_runner_output_most(tilth_runner *runner, int index, tilth_tensor_info *out,
                                      tilth_error *error);

/* Every input has a place in memory that runs read it from, every output one that runs write it
 * to: the caller's (bind) or the runner's own (write_input, and outputs that were not bound).
 *
 * Bind: from now on, runs read or write the caller's buffer itself; nothing is copied. `size` must
 * be the tensor's, `data` a multiple of TILTH_ALIGNMENT, and no output may overlap an input or
 * another output (checked when it runs). The buffer stays the caller's and must live until another
 * is bound or the runner is destroyed; its contents matter only during a run. NULL with size 0
 * undoes the binding. */
tilth_status tilth_runner_bind_input(tilth_runner *runner, int index, const void *data, size_t size,
                                     tilth_error *error);
tilth_status tilth_runner_bind_output(tilth_runner *runner, int index, void *data, size_t size,
                                      tilth_error *error);
/* The same with memory of the GPU that the model is on (a CUdeviceptr of its primary context, what cudaMalloc gives): nothing
 * is copied to it or from it. TILTH_BAD_ARGUMENT on a CPU. */
tilth_status tilth_runner_bind_device_input(tilth_runner *runner, int index, const void *address,
                                            size_t size, tilth_error *error);
tilth_status tilth_runner_bind_device_output(tilth_runner *runner, int index, void *address,
                                             size_t size, tilth_error *error);
/* Copy: for buffers of any alignment. `size` must be the tensor's. Writing an input undoes its
 * binding; the value stays for later runs. Reading copies what the latest run wrote to the
 * output's place, all of it or the size that tilth_runner_output says; TILTH_BAD_ARGUMENT when there
 * was no run since the place was given. */
tilth_status tilth_runner_write_input(tilth_runner *runner, int index, const void *data,
                                      size_t size, tilth_error *error);
tilth_status tilth_runner_read_output(tilth_runner *runner, int index, void *data, size_t size,
                                      tilth_error *error);

/* The output as the latest run left it: its size and shape, which are less than tilth_model_output's
 * where the model computes an extent on the way (the rows that a filter has kept). What a run writes
 * is packed in this shape at the beginning of the output's place. TILTH_BAD_ARGUMENT when there was
 * no run since the place was given. */
tilth_status tilth_runner_output(tilth_runner *runner, int index, tilth_tensor_info *out,
                                 tilth_error *error);

/* Runs the model once and returns when the outputs are there. TILTH_BAD_ARGUMENT names an input
 * that was neither bound nor written, or buffers that overlap; TILTH_UNSUPPORTED a loop that would
 * take more turns than it may. */
tilth_status tilth_runner_run(tilth_runner *runner, tilth_error *error);

#ifdef __cplusplus
}
#endif
#endif
