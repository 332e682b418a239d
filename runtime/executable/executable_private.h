/* runtime/executable/executable_private.h: the executable's state, for the files that make, save, load,
 * prepare and run it. */
#ifndef TL_RUNTIME_EXECUTABLE_EXECUTABLE_PRIVATE_H
#define TL_RUNTIME_EXECUTABLE_EXECUTABLE_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>
#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/device/code_loader.h"
#include "runtime/executable/executable.h"

enum { TL_EXECUTABLE_VERSION = 4, TL_DATA_ALIGNMENT = 64 };
#define TL_EXECUTABLE_START "{\"format\":\"tilth executable\"," /* of executable.json */

extern const char *const tl_place_texts[TL_PLACE_COUNT];

struct tl_executable {
    /* holds the copy of the spec and what follows it */
    tl_arena *arena;
    tl_executable_spec spec;
    /* spec.kernels, writable while being made */
    tl_executable_kernel *kernels;
    /* one a kernel; NULL: the caller's own code */
    tl_code **codes;
    /* one a value: CONSTANT and PREPARED ones, aligned; else NULL */
    const void **data;
    /* one a value: our aligned copy, or NULL */
    void **copies;
    /* one a value: some step of either kind uses it */
    bool *in_steps, *in_prepare;
    /* one a value: PREPARED ones, in `prepared` */
    int64_t *prepared_offset;
    int64_t prepared_size;
    unsigned char *prepared; /* our memory, or inside prepared_file, or borrowed */
    bool prepared_is_borrowed;
    pthread_mutex_t lock; /* held while preparing */
    atomic_bool is_prepared;
    char *folder;         /* loaded from; else NULL */
    int64_t memory_limit; /* of prepared_size and each plan; 0: none */
    /* checksum of the body of executable.json it was loaded from */
    uint64_t identity;
    tl_mapping objects_file, constants_file, prepared_file;
    tl_mapping *model_files;
    int model_file_count;
    /* device_part.c: where it is attached, or NULL */
    tl_device *device;
    tl_device_kernel **device_kernels; /* one a kernel; NULL: a CPU's */
    /* one a value: CONSTANT ones that steps use, and PREPARED ones, on the device */
    void **device_data;
    void *device_constants, *device_prepared;
};

/* runtime/executable/device_part.c */
void tl_executable_detach(tl_executable *x); /* nothing when it is on no device */
bool tl_step_is_on_device(const tl_executable_spec *spec, const tl_executable_step *step);
/* The prepared values, from the host's memory. */
tl_status tl_executable_upload_prepared(tl_executable *x, tl_diag *diag);

/* runtime/executable/executable_check.c: TL_BAD_ARGUMENT names what in the spec does not hold. */
tl_status tl_executable_check(const tl_executable_spec *spec, tl_diag *diag);

/* TL_NO_MEMORY: so many bytes, of what the word says, are more than its limit. */
tl_status tl_executable_check_limit(const tl_executable *x, int64_t bytes, const char *what,
                                    tl_diag *diag);

/* Like tl_executable_create; `borrow` leaves the objects' bytes where they are. */
tl_status tl_executable_build(const tl_executable_spec *spec, bool borrow, tl_executable **out,
                              tl_diag *diag);

/* Whether a borrowed constant lies where its elements may. Their size is not known: at most 8,
 * and it divides that of the constant. */
bool tl_constant_is_aligned(const void *data, int64_t size);

/* Marks in used[value_count] what the steps use; of windows also the values they lie in. */
void tl_executable_mark(const tl_executable_spec *spec, const tl_executable_step *steps, int count,
                        bool *used);

/* The same for the values that hold extents of outputs. */
void tl_executable_mark_counts(const tl_executable_spec *spec, bool *used);

/* The bytes of a value where the dims have these values; false: they overflow or are negative. */
bool tl_executable_size_at(const tl_executable_value *v, int dim_count, const int64_t *dims,
                           int64_t *out);

/* The value that has the storage of a value: itself, or what a window lies in. */
int tl_executable_storage(const tl_executable_spec *spec, int value);

/* A runner over any steps of the executable, prepared or not. */
tl_status tl_runner_build(const tl_executable *executable, const tl_executable_step *steps,
                          int step_count, tl_pool *pool, int threads, tl_runner **out,
                          tl_diag *diag);
void tl_runner_run_all(tl_runner *runner); /* steps that use no port; not on a device */
const tl_executable *tl_runner_executable(const tl_runner *runner);

/* runtime/executable/prepared_file.c: prepared.bin in the executable's folder, bound to it by `identity`. `is_private`: as
 * TL_SAVE_PRIVATE. */
tl_status tl_prepared_write(const char *folder, uint64_t identity, const void *data, int64_t size,
                            bool is_private, tl_diag *diag);
bool tl_prepared_map(const char *folder, uint64_t identity, int64_t size, tl_mapping *out,
                     const unsigned char **data);

#endif
