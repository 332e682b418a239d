/* driver/pipeline/open_axes.h: the axes that a model leaves open, and which of them code can take as dims.
 *
 * Axes of one name are one. From two calls that differ in some of them comes a join whose dims these are: each a dim of its own,
 * or, where the model allows them only together (the keys of the past and those of past and present), one dim for all.
 * An axis of which something needs the number is specialised: code is for one extent of it. */
#ifndef TL_DRIVER_PIPELINE_OPEN_AXES_H
#define TL_DRIVER_PIPELINE_OPEN_AXES_H
#include "driver/pipeline/joined_model.h"

typedef struct {
    const char *name; /* of the file, or "INPUT.AXIS" */
    int input, axis;  /* the first place that it has */
    bool is_dim;      /* some code takes it as a dim */
    /* The axis that it goes along with, growing by `slope` where that grows by one; -1: none. */
    int leader;
    int64_t slope;
    /* why it is not one: what needs its number; NULL: nothing was seen to */
    const char *specialised;
} tl_open_axis;

typedef struct {
    int count;
    tl_open_axis *axes;
    int *place;    /* [input * TL_MAX_RANK + axis]: the number of the axis, -1: it is no open one */
    bool is_known; /* every input says how many axes it has */
} tl_open_axes;
tl_open_axes tl_open_axes_of(tl_arena *arena, const tl_onnx_signature *signature);
/* The extents of the open axes, from the shapes of all inputs. */
void tl_open_axes_read(const tl_open_axes *axes, const tl_shape_override *shapes, int64_t *out);

/* Joins the model for the axes in which two calls differ, `now` with its shapes and offered values. What it learns of axes is
 * written into `axes`, in `arena`. TL_UNSUPPORTED: none of these axes can be a dim for `now`. */
tl_status tl_join_axes(tl_arena *arena, tl_onnx *onnx, const tl_onnx_signature *signature,
                       tl_open_axes *axes, const int64_t *before, const tl_shape_override *now,
                       const tl_model_options *options, tl_join **out, tl_diag *diag);

/* Joins the model for ranges of its open axes: at the low end its inputs have the shapes `low`, at the high end `high`, one an
 * input. Where the model does not allow these axes independently, they go along with each other, from end to end. Every
 * combination of extents is read, and is what the join says: TL_UNSUPPORTED names one that is not, or what is no dim.
 * TL_BAD_ARGUMENT: there are too many, or a range is of an axis that the model does not leave open. */
enum { TL_MOST_COMBINATIONS = 1 << 16 };
tl_status tl_join_ranges(tl_arena *arena, tl_onnx *onnx, const tl_onnx_signature *signature,
                         const tl_shape_override *low, const tl_shape_override *high,
                         const tl_model_options *options, tl_join **out, tl_diag *diag);

#endif
