/* runtime/abi/descriptor.h: what stands beside a kernel's code: its phases, scratch, parameters.
 * Plain data with a text (JSON) form, so that a cached object can be called without its Program. */
#ifndef TL_RUNTIME_ABI_DESCRIPTOR_H
#define TL_RUNTIME_ABI_DESCRIPTOR_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef struct {
    const char *name;
    int phase_count;
    const int64_t *extents; /* of each phase's parallel loop; valid when !has_sizes */
    int64_t scratch_bytes, thread_scratch_bytes;
    bool has_sizes; /* extents and scratch depend on dims: call NAME_sizes */
    int dim_count;
    int buffer_count; /* params then prepared */
} tl_descriptor;

/* The functions in a kernel's object, by index: its phases, then its sizes function if it has one. */
int tl_descriptor_function_count(const tl_descriptor *d);
typedef struct {
    char text[300];
} tl_function_name;
tl_function_name tl_descriptor_function(const tl_descriptor *d, int index);

void tl_descriptor_print(const tl_descriptor *d, tl_text *out); /* one line of JSON */
tl_status tl_descriptor_parse(tl_arena *arena, const char *json, tl_descriptor *out, tl_diag *diag);

#endif
