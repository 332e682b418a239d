/* tests/gpu/fake_cuda/fake_private.h: what the files of the driver without a GPU (tests/gpu/fake_cuda.h) share. They are built
 * with hidden visibility: the library exports the entry points and fake_cuda_*, nothing else. */
#ifndef TL_TESTS_GPU_FAKE_CUDA_FAKE_PRIVATE_H
#define TL_TESTS_GPU_FAKE_CUDA_FAKE_PRIVATE_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/cuda/cuda_abi.h"
#include "tests/gpu/fake_cuda.h"

/* Declared and defined, for the linker knows them by name only. */
#define EXPORT(name, arguments)                                      \
    __attribute__((visibility("default"))) cu_result name arguments; \
    cu_result name arguments

enum { /* cu_result, those that the runtime does not tell apart */
       INVALID_VALUE = 1,
       NOT_INITIALIZED = 3,
       INVALID_CONTEXT = 201,
       CAPTURE_UNSUPPORTED = 900,
       NOT_SUPPORTED = 801,
};

enum {
    MAX_FUNCTIONS = 64, /* of a module */
    MAX_PARAMETERS = 512,
    PARAMETER_BYTES = 128, /* of the slot in which each lies: a tensor map has room */
};

/* settings.c: what FAKE_CUDA says, and the state of the driver. */
typedef struct {
    struct {
        int no_device, devices, version, sm, fail_init, fail_alloc, fail_load, lose_launch,
            wrong_launch, hang_launch, slow_launch, nothing;
        long long memory;
    } say;

    pthread_mutex_t lock; /* over all that follows, and over what a file has of its own */
    struct {
        int allocations, loads, launches, graph_launches, copies_in, copies_out;
        long long memory;
    } count;
    int lost;  /* how the device was lost, or 0 */
    int alive; /* objects that are not given back */
    bool started;
} fake_state;
extern fake_state fake;
void fake_read_settings(void);

/* device.c: what every call that needs a context begins with, under the lock. */
cu_result fake_begin(void);
#define BEGIN                        \
    pthread_mutex_lock(&fake.lock);  \
    cu_result result = fake_begin(); \
    if (result != CU_SUCCESS)        \
        goto end;
#define END                           \
    end:                              \
    pthread_mutex_unlock(&fake.lock); \
    return result

/* memory.c: addresses of the device are the host's with bits that no host address has. */
#define TAG (UINT64_C(0x5a) << 48)
bool fake_is_device(uint64_t address);
bool fake_is_pinned(const void *address);
/* The host's address of `size` bytes of the device; NULL: they are not all allocated. */
unsigned char *fake_reach(uint64_t address, size_t size);
/* All memory of the device; the caller frees the array. */
fake_buffer *fake_list_buffers(int *many);

/* What the driver has of an object. A lost device gives nothing back until its process ends, so that only `alive` counts who
 * forgets to. */
void *fake_own(size_t size);
/* The same of what a caller has to give back, and given back. */
void *fake_make(size_t size);
void fake_drop(void *object);

/* modules.c: what a module is made of. */
struct cu_function_body {
    struct cu_module_body *module;
    char name[256];
    int parameter_count;
    size_t sizes[MAX_PARAMETERS];
    unsigned threads; /* .maxntid */
    int dynamic_shared;
};

struct cu_module_body {
    char *ptx;
    int function_count;
    struct cu_function_body functions[MAX_FUNCTIONS];
};

/* operations.c: what is put into a stream or a graph. */
typedef struct fake_operation {
    struct fake_operation *next;
    enum { COPY, FILL, LAUNCH, RECORD } kind;
    uint64_t to, from;       /* COPY, FILL */
    unsigned char *snapshot; /* COPY: what a pageable source was */
    size_t size;
    unsigned char byte;
    cu_function function; /* LAUNCH */
    unsigned grid[3], block[3], cluster[3], dynamic_shared;
    unsigned char *values; /* of its parameters, one behind the other, PARAMETER_BYTES each */
    cu_event event;        /* RECORD */
} fake_operation;

typedef struct {
    fake_operation *first, **last;
} fake_work;

struct cu_stream_body {
    fake_work work;
    bool is_capturing;
    double ns; /* by the clock of the device */
};

struct cu_event_body {
    double ns;
    bool is_recorded;
};

/* Its snapshot and its values are the work's from then on. */
void fake_add(fake_work *w, fake_operation o);
void fake_append_copy(fake_work *to, const fake_work *from);
void fake_forget(fake_work *w);
/* Executes what waits in a stream, until something fails, and forgets all of it. */
cu_result fake_run(cu_stream s);

#endif
