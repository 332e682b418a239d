/* driver/api/family_private.h: one model for all shapes of its inputs. */
#ifndef TL_DRIVER_API_FAMILY_PRIVATE_H
#define TL_DRIVER_API_FAMILY_PRIVATE_H
#include <pthread.h>
#include "driver/api/load_private.h"
#include "driver/pipeline/open_axes.h"

enum {
    TL_FAMILY_JOINS = 4,
    TL_FAMILY_CHECKED = 4096, /* values of dims that are remembered to have been checked */
    TL_FAMILY_RECENT = 64,    /* calls among which one combination that makes up */
    TL_FAMILY_OFTEN = 16,     /* so many is worth code of its own */
};

/* An input as a caller has it. */
typedef struct {
    tl_shape shape;
    const void *data; /* NULL: not set */
    size_t size;
} tl_family_given;

/* Code for all values of some axes. */
typedef struct {
    tilth_model *model;
    tl_join *join;
    int64_t (*checked)[TL_MOST_DIMS]; /* a table of values that the join was checked for */
    bool *is_checked;
} tl_family_join;

/* What was compiled for one combination of shapes and deciding values. */
typedef struct {
    tilth_model *model;
    uint64_t used; /* the family's clock when it was last asked for */
} tl_family_member;

struct tilth_family {
    tl_handle handle;
    pthread_mutex_t lock; /* of what is below `signature` */
    tl_arena *arena;
    tl_load_request request;
    tilth_load_options options;
    tilth_pool *pool;
    tl_onnx_signature signature;
    tl_family_member members[TILTH_FAMILY_LIMIT];
    int count;
    uint64_t clock;
    int64_t compiled;
    tl_onnx *onnx; /* open since a second combination was asked for; NULL: not yet */
    tl_open_axes axes;
    int64_t *latest, *now; /* extents of the axes: what was compiled latest, and is asked for */
    tl_family_join joins[TL_FAMILY_JOINS];
    int join_count;
    uint64_t recent[TL_FAMILY_RECENT]; /* combinations that joins were called with */
    uint64_t recent_count;
};

/* The code for a call. */
typedef struct {
    tilth_model *model; /* with a part of it for whoever has it: tl_api_model_release */
    const tl_executable_spec *spec;
    int64_t dims[TL_MOST_DIMS]; /* of its executable, for this call */
} tl_family_code;

void tl_family_release(tilth_family *family);
/* Whether code with these ports is for these inputs: their shapes, and the values that decide. `dims`: what its dims are then. */
bool tl_family_fits(const tl_executable_spec *spec, const tl_family_given *given,
                    int64_t dims[TL_MOST_DIMS]);
/* The code for these inputs, compiled if there is none: that for exactly these shapes, else that for all of them. */
tl_status tl_family_find(tilth_family *family, const tl_family_given *given, tl_family_code *out,
                         tl_diag *diag);

#endif
