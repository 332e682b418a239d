/* runtime/executable/executable.h: a compiled model, and running it.
 *
 * An executable is data: ports (inputs and outputs), values, kernels, and steps that call
 * kernels on values. The steps are a tree of regions, written down in order: a list runs one step
 * after another; a loop and a choice are steps which own some of those behind them (regions.h).
 * `tl_executable_spec` is that data in the making: the compiler fills one and calls
 * tl_executable_create. Shapes are constants, or functions of the executable's dims
 * (runtime/base/varying.h): numbers that a runner is told before it runs; extents of outputs may also
 * be numbers that steps compute.
 *
 *     spec --create--> tl_executable --prepare--> (packed weights, once) --> tl_runner --run-->
 *                           | save                                           one a caller
 *                           v
 *     folder: executable.json  objects.bin  constants.bin  prepared.bin   --load--> tl_executable
 *
 * An executable is immutable after prepare and serves any number of runners in any number of
 * threads. */
#ifndef TL_RUNTIME_EXECUTABLE_EXECUTABLE_H
#define TL_RUNTIME_EXECUTABLE_EXECUTABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/pieces.h"
#include "runtime/base/status.h"
#include "runtime/base/varying.h"
#include "runtime/device/cpu.h"
#include "runtime/abi/descriptor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/executable/memory_plan.h"
#include "runtime/device/device.h"
#include "runtime/device/pool.h"
#include "runtime/tensor/tensor.h"

typedef enum {
#define PLACE(name, text) TL_PLACE_##name,
#include "runtime/executable/places.def"
#undef PLACE
    TL_PLACE_COUNT
} tl_place;

/* A number that a runner is told (tl_runner_set_dims) and that extents depend on. */
typedef struct {
    const char *name;
    int64_t min, max; /* both included; min is at least 0 */
    int64_t start;    /* what a new runner begins with */
} tl_executable_dim;

/* An input or output of the model. */
typedef struct {
    const char *name;
    tl_dtype dtype;
    int rank;
    int64_t shape
        [TL_TENSOR_MAX_RANK]; /* of an executable with dims: where each of them is its `start` */
    /* the extents as functions of the dims, `rank` of them; NULL: constants */
    const tl_varying *varying;
    /* Of an input on whose value a shape or a branch depends: the one that the code is for, packed; a run with another is
     * refused. NULL: any. */
    const void *fixed;
    /* Of an output whose extents steps compute: for each axis the value that holds it (one i64), TL_NO_VALUE where it is that
     * of `shape`, which is the most that there can be. NULL: all are. */
    const int *counts;
} tl_port;
/* Bytes of its tensor; 0 when there is none of its shape. */
size_t tl_port_size(const tl_port *port);
/* The same where the dims have these values: its shape and bytes. False: it has none there. */
bool tl_port_at(const tl_port *port, int dim_count, const int64_t *dims, int64_t *shape,
                size_t *size);
/* The ports there, as ones that do not vary; false: one has no shape. */
bool tl_ports_at(const tl_port *ports, int count, int dim_count, const int64_t *dims, tl_port *out);

typedef struct {
    const char *name; /* for messages and reports */
    tl_place place;
    int64_t size; /* bytes, layout's padding included; at most the port's for INPUT and OUTPUT */
    /* INPUT, OUTPUT, ARENA: where the size varies with the dims it is the product of `unit` and these; `size` is that at
     * their start. */
    int factor_count;
    const tl_varying *factors;
    int64_t unit;
    int port; /* INPUT, OUTPUT: which */
    /* WINDOW: the value of place INPUT, OUTPUT or ARENA in whose storage it lies, and from which byte of it on: a
     * multiple of 64. Windows of one value may overlap. */
    int whole;
    int64_t offset;
    const void *data; /* CONSTANT: its bytes; borrowed, live as long as the executable */
    /* CONSTANT: the same bytes lie at file_offset of this file, which is not ours (a model's
     * weights), and `data` is a mapping of it, whose pages may be dropped and read again: save
     * then writes down the place instead of the bytes. NULL: save writes the bytes into
     * constants.bin. */
    const char *file;
    int64_t file_offset;
    /* CONSTANT: `data` is a mapping of some other file, whose pages may be dropped and read again, too. */
    bool is_mapped;
} tl_executable_value;

typedef struct {
    const char *key;          /* of the object cache; for reports, may be NULL */
    tl_descriptor descriptor; /* unique name in the executable not required */
    /* The kernel's object. NULL is fine when `phases` is given, but then the executable cannot
     * be saved. */
    const void *object;
    size_t object_size;
    /* Already callable (an ORC session's), and living as long as the executable; NULL: load
     * `object`. */
    tl_phase_fn *const *phases; /* descriptor.phase_count of them */
    tl_sizes_fn *sizes;         /* when descriptor.has_sizes */
    /* What a device's own compiler made of `object` (PTX) for one generation ("sm_90"): loaded in its place there. NULL:
     * it has not been asked. */
    const void *native;
    size_t native_size;
    const char *native_arch;
} tl_executable_kernel;

/* As `kernel`, what the runtime does by itself. */
enum {
    TL_STEP_COPY = -1, /* copies values[0] to values[1] (same size) */
    TL_STEP_PUT =
        -2, /* copies values[0] to that part of its size of values[1] whose number values[2] holds (one i64) */
    TL_STEP_LOOP =
        -3, /* the `body` steps that follow are taken again and again; values: tl_loop_value */
    TL_STEP_CHOICE =
        -4, /* of the `body` steps that follow, or the `other` ones behind them: the former if values[0] (one bool) */
};
#define TL_STEP_FIRST TL_STEP_CHOICE
/* The values of a loop, any but the turn's number TL_NO_VALUE. It ends before the turn that one of them forbids. */
typedef enum {
    TL_LOOP_WANTED, /* one i64: turns at most */
    TL_LOOP_ENTERS, /* one bool: false, there is no first turn */
    TL_LOOP_AGAIN,  /* one bool, which the body writes: false, there is no other turn */
    TL_LOOP_TURN,   /* one i64, which is written before each turn: its number, from 0 */
    TL_LOOP_TAKEN,  /* one i64, which is written at the end: how many there were */
    TL_LOOP_VALUE_COUNT
} tl_loop_value;
/* as a bound value: a NULL pointer, for what the kernel does not touch (all but constants in a
 * prepare part; in a body, the constants that it only reads packed) */
#define TL_NO_VALUE (-1)

typedef struct {
    const char *name;    /* of the kernel in the model ("conv_relu_3"), for reports */
    int kernel;          /* index, or one of TL_STEP_COPY ... */
    int value_count;     /* descriptor.buffer_count; of other steps as many as they have */
    const int *values;   /* index of a value, or TL_NO_VALUE */
    const int64_t *dims; /* descriptor.dim_count of them; NULL: the executable's */
    /* For reports only; NULL and 0 when unknown. */
    const char *class_key, *workload;
    int64_t flops, bytes;
    /* LOOP, CHOICE: how many of the steps behind it are its own; steps of loops and choices among them count too */
    int body, other;
    int64_t most; /* LOOP: turns at most; a run that would take more fails */
    /* The same as a function of the executable's dims; NULL: `most`, whatever they are. */
    const tl_varying *varying_most;
} tl_executable_step;

typedef struct {
    const char *model;   /* its name, for reports */
    const char *note;    /* whatever the compiler wants to find again after load; may be NULL */
    tl_cpu_features cpu; /* what the code needs; machine "" means: this host's features */
    /* Where the steps run: "cuda", whose kernels then have code for it; NULL: on this CPU. Prepare steps run where their
     * kernel's code is for. */
    const char *device;
    int dim_count; /* 0: every shape is a constant */
    const tl_executable_dim *dims;
    int input_count, output_count, value_count, kernel_count, prepare_count, step_count;
    const tl_port *inputs, *outputs;
    const tl_executable_value *values;
    const tl_executable_kernel *kernels;
    const tl_executable_step *prepare; /* run once, in order; write PREPARED values */
    const tl_executable_step *steps;   /* every run, in order */
} tl_executable_spec;

typedef struct tl_executable tl_executable;

/* Copies the spec but for the bytes of constants (borrowed), checks all of it (TL_BAD_ARGUMENT
 * names what does not hold) and loads the objects. An ARENA value belongs to the prepare steps
 * or to the steps, not both. Kernels get buffers aligned to 64 bytes, but for borrowed constants:
 * to their elements. */
tl_status tl_executable_create(const tl_executable_spec *spec, tl_executable **out, tl_diag *diag);
void tl_executable_destroy(tl_executable *executable); /* after its runners; NULL is fine */

/* Puts an executable for a device on one: loads its kernels, copies the constants that its steps read. Before it is prepared
 * and has runners; the device lives longer. TL_NO_MEMORY: the device has not enough; TL_UNSUPPORTED: the code is for
 * another generation. */
tl_status tl_executable_attach(tl_executable *executable, tl_device *device, tl_diag *diag);
tl_device *tl_executable_device(const tl_executable *executable); /* NULL: none */
/* What is known of a kernel: by its device when it is loaded there. */
const tl_descriptor *tl_executable_loaded(const tl_executable *executable, int kernel);

/* Computes the PREPARED values, once: later calls, and executables loaded with a good
 * prepared.bin, return at once. A loaded executable stores them beside itself (a folder that
 * cannot be written is no error). Thread-safe. */
tl_status tl_executable_prepare(tl_executable *executable, tl_pool *pool, int threads,
                                tl_diag *diag);
bool tl_executable_is_prepared(const tl_executable *executable);

/* At most that many bytes of prepared constants and, for each runner, temporaries beside them; more is TL_NO_MEMORY before it is
 * taken. 0: no limit. Before it is prepared and has runners. */
void tl_executable_limit_memory(tl_executable *executable, int64_t bytes);

/* An executable in writing: a text that names the bulk, and the bulk. Pieces are borrowed from the executable. */
typedef struct {
    tl_arena *arena;
    tl_text text;                      /* two lines, the second JSON */
    uint64_t identity;                 /* its checksum: what prepared constants are bound to */
    tl_pieces objects;                 /* one a CPU's kernel, in the order of the text */
    const tl_descriptor **descriptors; /* of the kernels in `objects` */
    tl_pieces constants;
    const void *prepared; /* when it is prepared; else its prepare steps are in the text */
    int64_t prepared_size;
} tl_packed;
/* `whole`: with the constants that lie in the model's own files; else the text refers to these. A kernel without an
 * object is TL_BAD_ARGUMENT. */
tl_status tl_executable_pack(const tl_executable *executable, bool whole, tl_packed *out,
                             tl_diag *diag);
void tl_packed_free(tl_packed *packed);

enum {
    TL_SAVE_WHOLE = 1,   /* as of tl_executable_pack */
    TL_SAVE_PRIVATE = 2, /* files that only their owner can read, whatever the umask */
};
/* Writes it as a folder (made when absent); with prepared.bin when prepared. executable.json is
 * written last and names the others with their sizes and checksums, so that a reader never sees
 * half of it. */
tl_status tl_executable_save(const tl_executable *executable, int how, const char *folder,
                             tl_diag *diag);
extern const char *const tl_executable_files[]; /* the names in such a folder; ends with NULL */
/* Whether a user's folder may become one: nothing is there, or an empty folder, or one of these with nothing else in it.
 * TL_BAD_ARGUMENT: something else, or no name. */
tl_status tl_executable_check_place(const char *folder, tl_diag *diag);
/* TL_BAD_ARGUMENT when there is none; TL_IO when it is damaged or from another version, a
 * model's file it refers to has changed; TL_UNSUPPORTED when this processor cannot run it. All
 * of these are a miss for a cache. A bad prepared.bin only means that it is not prepared. */
tl_status tl_executable_load(const char *folder, tl_executable **out, tl_diag *diag);

/* The data as the spec had it (pointers live as long as the executable; `data`, `object` of a
 * loaded one too). */
const tl_executable_spec *tl_executable_info(const tl_executable *executable);
/* The dims for which the inputs have these shapes, one an input (NULL: it has the one that the others make). TL_BAD_ARGUMENT
 * names the axis that does not fit. */
tl_status tl_executable_dims_of(const tl_executable_spec *spec, const int64_t *const *shapes,
                                int64_t *dims, tl_diag *diag);
int tl_executable_find_input(const tl_executable *executable, const char *name);  /* -1: none */
int tl_executable_find_output(const tl_executable *executable, const char *name); /* -1: none */

typedef struct {
    int64_t constant_bytes; /* in constants.bin or borrowed */
    int64_t external_bytes; /* in the model's own files */
    int64_t prepared_bytes, code_bytes;
} tl_executable_sizes;
tl_executable_sizes tl_executable_measure(const tl_executable *executable);

/* What one caller needs to run: arena and scratch, allocated here and, where shapes are constants, never again. */
typedef struct tl_runner tl_runner;
/* The executable must be prepared (TL_BAD_ARGUMENT). `threads` 0: all of the pool. */
tl_status tl_runner_create(const tl_executable *executable, tl_pool *pool, int threads,
                           tl_runner **out, tl_diag *diag);
/* Of an executable on a device: with the caller's stream of its driver. A run whose buffers all lie on the device then returns
 * when all is in the stream. */
tl_status tl_runner_create_in_stream(const tl_executable *executable, tl_pool *pool, void *stream,
                                     tl_runner **out, tl_diag *diag);
void tl_runner_destroy(tl_runner *runner); /* NULL is fine */
/* What the executable's dims are from the next run on: the memory plan is made anew, in the memory that is there if it is large
 * enough. Nothing is done when they are that already. TL_BAD_ARGUMENT: a dim is outside of its range, or memory would be too
 * large; then they stay what they were. */
tl_status tl_runner_set_dims(tl_runner *runner, const int64_t *dims, tl_diag *diag);
const int64_t *tl_runner_dims(const tl_runner *runner);
/* The arena with scratch, against the sum of all tensors. */
tl_plan_sizes tl_runner_memory(const tl_runner *runner);
int tl_runner_threads(const tl_runner *runner);
/* The shape of an output after the latest run: the port's, but for extents that steps have computed (tl_port.counts). What a
 * run writes is packed in this shape. */
const int64_t *tl_runner_output_shape(const tl_runner *runner, int output);

/* Runs the steps. Buffers are the caller's, in the order of the ports, at least as large as the
 * port says for the runner's dims and aligned to 64 bytes (TL_BAD_ARGUMENT otherwise). Outputs and inputs must not
 * overlap. TL_BAD_ARGUMENT, too, in a child of the process that made the pool (tl_pool_check).
 * `step_ns`, when not NULL, gets the duration of each step, of all turns together. TL_UNSUPPORTED:
 * a loop would take more turns than it may. One run at a time per runner. */
tl_status tl_runner_run(tl_runner *runner, const void *const *inputs, void *const *outputs,
                        int64_t *step_ns, tl_diag *diag);
/* The same where buffers may lie on the executable's device: `on_device`, when not NULL, says which do, of the inputs, then of
 * the outputs; they are used where they are. */
tl_status tl_runner_run_device(tl_runner *runner, const void *const *inputs, void *const *outputs,
                               const bool *on_device, tl_diag *diag);
/* What the executable's device takes for a run whose inputs are there: nanoseconds, the mean of `runs` that follow each other
 * without a wait. Nothing is copied out. TL_BAD_ARGUMENT: the executable runs on the CPU. */
tl_status tl_runner_time_device(tl_runner *runner, const void *const *inputs, void *const *outputs,
                                int runs, double *ns, tl_diag *diag);
/* tl_runner_run with tensors: checks dtypes and shapes against the ports (and the runner's dims), and copies what is not
 * aligned. Zero-initialised outputs are created; they are the caller's. Outputs get the shape that the run gave them. */
tl_status tl_runner_run_tensors(tl_runner *runner, const tl_tensor *inputs, tl_tensor *outputs,
                                int64_t *step_ns, tl_diag *diag);

/* A run that stops before and after every step, on the caller's thread to look at its buffers
 * (NULL for TL_NO_VALUE). */
typedef void tl_step_hook(void *user, int step, bool after, void *const *buffers);
tl_status tl_runner_run_hooked(tl_runner *runner, const void *const *inputs, void *const *outputs,
                               tl_step_hook *hook, void *user, tl_diag *diag);
/* One phase of one step as one thread ran it, for timelines. Times are tl_clock_ns. */
typedef struct {
    int step, phase, thread;
    int64_t begin_ns, end_ns;
} tl_run_event;
/* A run as always (threads meet where they must and nowhere else) that writes down who did what and
 * when, of a loop's steps in the last turn. `events` has
 * room for tl_runner_event_limit of them; *count are written, in the order of steps. */
int tl_runner_event_limit(const tl_runner *runner);
tl_status tl_runner_run_traced(tl_runner *runner, const void *const *inputs, void *const *outputs,
                               tl_run_event *events, int *count, tl_diag *diag);

#endif
