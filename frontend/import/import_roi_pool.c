/* frontend/import/import_roi_pool.c: MaxRoiPool: the largest of the pixels in each bin of each region.
 *
 *     which = pixel is in the bin's rows (columns), [regions, bins, pixels]: the same for all channels
 *     t = max over columns of (which ? x of the region's image : -inf), y = max over rows of (which ? t : -inf)
 *
 * Edges are rounded to pixels, a bin ends behind the last pixel that it touches, and a bin outside of the image is 0, as in Fast
 * R-CNN (Girshick 2015), which ONNX's definition follows. */
#include <math.h>
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"

/* The nearest whole number, halves away from zero. */
static tl_value *nearest(tl_onnx_call *c, tl_value *x)
{
    tl_value *up = tl_emit1(c, TL_OP_FLOOR, tl_onnx_emit_with(c, TL_OP_ADD, x, 0.5));
    tl_value *down = tl_emit1(c, TL_OP_CEIL, tl_onnx_emit_with(c, TL_OP_SUB, x, 0.5));
    return tl_onnx_emit_where(c, tl_onnx_emit_with(c, TL_OP_LESS, x, 0), down, up);
}

/* Which of `extent` pixels are in each bin: [regions, bins, extent]; `column` of the regions is where the axis begins. */
static tl_value *pixels_of_bins(tl_onnx_call *c, tl_value *rois, int column, int64_t bins,
                                int64_t extent, tl_dtype dtype)
{
    double scale = tl_call_float(c, "spatial_scale", 1);
    int64_t regions = rois->shape.dims[0].extent, flat[3] = { regions, 1, 1 };
    double *numbers = TL_NEW_ARRAY(c->arena, double, bins + 1);
    tl_value *edges[2];
    for (int i = 0; i < 2; i++) {
        tl_value *edge = tl_onnx_emit_slice(c, rois, 1, column + 2 * i, 1);
        edge = nearest(c, tl_onnx_emit_with(c, TL_OP_MUL, edge, scale));
        edges[i] = tl_onnx_emit_reshape(c, edge, flat, 3);
    }
    tl_value *size = tl_onnx_emit_with(c, TL_OP_ADD, tl_emit2(c, TL_OP_SUB, edges[1], edges[0]), 1);
    size = tl_onnx_emit_with(c, TL_OP_MAX, size, 1);
    tl_value *bin = tl_onnx_emit_with(c, TL_OP_DIV, size, (double)bins);
    for (int64_t i = 0; i <= bins; i++)
        numbers[i] = (double)i;
    int64_t shape[3] = { 1, bins, 1 };
    tl_value *first = tl_onnx_emit_numbers(c, dtype, numbers, 3, shape);
    tl_value *last = tl_onnx_emit_numbers(c, dtype, numbers + 1, 3, shape);
    first = tl_emit1(c, TL_OP_FLOOR, tl_emit2(c, TL_OP_MUL, first, bin));
    last = tl_emit1(c, TL_OP_CEIL, tl_emit2(c, TL_OP_MUL, last, bin));
    tl_value *pixel = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extent), 3, 2);
    pixel = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_cast(c, pixel, dtype), edges[0]);
    return tl_emit2(c, TL_OP_AND, tl_emit2(c, TL_OP_GREATER_OR_EQUAL, pixel, first),
                    tl_emit2(c, TL_OP_LESS, pixel, last));
}

/* max over `axis` of (which ? x : -inf); `which` is [regions, bins, pixels], x [regions, C, rows, columns]. */
static tl_value *largest_of(tl_onnx_call *c, tl_value *x, tl_value *which, bool of_columns)
{
    const tl_dim *d = which->shape.dims;
    int64_t axis = of_columns ? 4 : 3, regions = d[0].extent, bins = d[1].extent,
            pixels = d[2].extent, channels = x->shape.dims[1].extent;
    /* columns: x [R, C, H, 1, W], which [R, 1, 1, bins, W]; rows: x [R, C, 1, H, bins of columns], which [R, 1, bins, H, 1] */
    int64_t of_x[5] = { regions, channels, of_columns ? x->shape.dims[2].extent : 1,
                        of_columns ? 1 : x->shape.dims[2].extent, x->shape.dims[3].extent };
    int64_t of_which[5] = { regions, 1, of_columns ? 1 : bins, of_columns ? bins : pixels,
                            of_columns ? pixels : 1 };
    tl_value *nothing = tl_onnx_emit_scalar(c, x->dtype, -INFINITY);
    x = tl_onnx_emit_where(c, tl_onnx_emit_reshape(c, which, of_which, 5),
                           tl_onnx_emit_reshape(c, x, of_x, 5), nothing);
    return tl_onnx_emit_reduce(c, TL_OP_REDUCE_MAX, x, &axis, 1, false);
}

/* Which bins have a pixel: [regions, bins]. */
static tl_value *has_pixels(tl_onnx_call *c, tl_value *which)
{
    int64_t axis = 2;
    tl_value *some = tl_onnx_emit_reduce(c, TL_OP_REDUCE_MAX, tl_onnx_emit_cast(c, which, TL_I32),
                                         &axis, 1, false);
    return tl_onnx_emit_with(c, TL_OP_LESS, tl_emit1(c, TL_OP_NEG, some), 0);
}

static tl_value *pool_regions(tl_onnx_call *c, tl_value *x, tl_value *rois, const int64_t *bins)
{
    int64_t regions = rois->shape.dims[0].extent;
    tl_value *rows = pixels_of_bins(c, rois, 2, bins[0], x->shape.dims[2].extent, x->dtype);
    tl_value *columns = pixels_of_bins(c, rois, 1, bins[1], x->shape.dims[3].extent, x->dtype);
    tl_value *image = tl_onnx_emit_cast(c, tl_onnx_emit_slice(c, rois, 1, 0, 1), TL_I64);
    image = tl_onnx_emit_reshape(c, image, &regions, 1);
    tl_value *y = tl_onnx_emit_gather(c, TL_OP_GATHER, x, image, 0);
    y = largest_of(c, largest_of(c, y, columns, true), rows, false);
    int64_t down[4] = { regions, 1, bins[0], 1 }, across[4] = { regions, 1, 1, bins[1] };
    tl_value *some = tl_emit2(c, TL_OP_AND, tl_onnx_emit_reshape(c, has_pixels(c, rows), down, 4),
                              tl_onnx_emit_reshape(c, has_pixels(c, columns), across, 4));
    return tl_onnx_emit_where(c, some, y, tl_onnx_emit_scalar(c, x->dtype, 0));
}

tl_status tl_import_max_roi_pool(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *rois = c->inputs[1];
    int64_t bins[2];
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, rois));
    TL_TRY(tl_call_list(c, "pooled_shape", 2, -1, 1, bins));
    if (x->shape.rank != 4 || rois->shape.rank != 2 || rois->shape.dims[1].extent != 5)
        return tl_call_bad(c, "its regions are not of five numbers, or its input is not of images");
    if (tl_counts_of(c->import, x) != NULL)
        return tl_call_unsupported(c, "images that data count");
    if (tl_shape_elements(&x->shape) == 0)
        return tl_call_unsupported(c, "images without pixels");
    tl_value *const *counts = tl_counts_of(c->import, rois);
    c->import->plain_nodes++;
    tl_value *y = pool_regions(c, x, rois, bins);
    c->import->plain_nodes--;
    tl_set_count(c->import, y, 0, counts != NULL ? counts[0] : NULL);
    tl_result(c, 0, y);
    return TL_OK;
}
