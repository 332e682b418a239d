/* runtime/abi/descriptor.h: what stands beside a kernel's code: its phases, scratch, parameters.
 * Plain data with a text (JSON) form, so that a cached object can be called without its Program. */
#ifndef TL_RUNTIME_ABI_DESCRIPTOR_H
#define TL_RUNTIME_ABI_DESCRIPTOR_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
#define FORM(name, text, gpu) TL_FORM_##name,
#include "runtime/abi/code_forms.def"
#undef FORM
    TL_FORM_COUNT
} tl_code_form;
typedef struct {
    const char *text;
    bool is_gpu;
} tl_form_info;
extern const tl_form_info tl_form_infos[TL_FORM_COUNT];

enum { TL_LAUNCH_AXES = 3, TL_MAP_AXES = 5, TL_MAP_SCRATCH = -1 };

/* How a GPU launches a phase: blocks of the grid, threads of a block, blocks of a cluster along x, y, z. */
typedef struct {
    int64_t grid[TL_LAUNCH_AXES];
    const char *grid_formula
        [TL_LAUNCH_AXES]; /* over dims (formula.h), in place of the number; NULL: the number */
    int block[TL_LAUNCH_AXES], cluster[TL_LAUNCH_AXES]; /* cluster 1, 1, 1: none */
    int64_t shared_bytes;                               /* that the code declares */
    int64_t dynamic_shared_bytes;                       /* that the launch adds */
    int registers, spill_bytes; /* of a thread; -1: not known before the driver has compiled it */
} tl_launch;

/* A parameter that tells the tensor memory accelerator (sm_90 and later) of a box of a buffer: a CUtensorMap, made when a
 * runner knows the address. Axes are innermost first. */
typedef struct {
    int buffer;     /* in the order of the kernel's buffers; TL_MAP_SCRATCH: of scratch */
    int64_t offset; /* in scratch, bytes */
    tl_dtype dtype;
    int rank;
    int64_t extents[TL_MAP_AXES],
        strides[TL_MAP_AXES]; /* strides in bytes; that of axis 0 is the element's size */
    int box[TL_MAP_AXES];
    int swizzle; /* bytes: 0, 32, 64 or 128 */
} tl_tensor_map;

typedef struct {
    const char *name;
    int phase_count;
    const int64_t *extents; /* of each phase's parallel loop; valid when !has_sizes and for a CPU */
    int64_t scratch_bytes, thread_scratch_bytes;
    /* Something depends on dims. CPU: extents and scratch, call NAME_sizes. GPU: grids and scratch, which have formulas. */
    bool has_sizes;
    int dim_count;
    int buffer_count; /* params then prepared */
    tl_code_form form;
    /* Of a GPU. Every phase is an entry NAME_0, NAME_1, ... with the same parameters: the buffers' addresses, the address of
     * scratch (of all blocks, in global memory) if scratch_bytes > 0 or it has a formula, the dims (64 bits each), the
     * tensor maps. */
    const char *arch; /* "sm_80": runs there, as PTX on later ones, too; "sm_90a": there only */
    const tl_launch *launches;   /* one a phase */
    const char *scratch_formula; /* in place of scratch_bytes; NULL: the number */
    int map_count;
    const tl_tensor_map *maps;
} tl_descriptor;

/* Where what the map tells of begins. */
static inline void *tl_tensor_map_base(const tl_tensor_map *map, const tl_kernel_args *args)
{
    return map->buffer == TL_MAP_SCRATCH ? args->scratch + map->offset : args->buffers[map->buffer];
}

static inline bool tl_descriptor_is_gpu(const tl_descriptor *d)
{
    return tl_form_infos[d->form].is_gpu;
}

/* The functions in a kernel's code, by index: its phases, then its sizes function if it has one (a GPU's has none). */
int tl_descriptor_function_count(const tl_descriptor *d);
typedef struct {
    char text[300];
} tl_function_name;
tl_function_name tl_descriptor_function(const tl_descriptor *d, int index);

/* A copy that owes nothing to the original. */
void tl_descriptor_copy(tl_arena *arena, const tl_descriptor *from, tl_descriptor *out);

/* Of a GPU's phase for given dims: the blocks along x, y and z (0: nothing is to be done), and the kernel's scratch.
 * TL_BAD_ARGUMENT: what a formula comes to is negative or more than a device takes. */
tl_status tl_descriptor_grid(const tl_descriptor *d, int phase, const int64_t *dims,
                             int64_t grid[TL_LAUNCH_AXES], tl_diag *diag);
tl_status tl_descriptor_scratch(const tl_descriptor *d, const int64_t *dims, int64_t *out,
                                tl_diag *diag);

void tl_descriptor_print(const tl_descriptor *d, tl_text *out); /* one line of JSON */
tl_status tl_descriptor_parse(tl_arena *arena, const char *json, tl_descriptor *out, tl_diag *diag);

#endif
