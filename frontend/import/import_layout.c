/* frontend/import/import_layout.c: operators that move values without changing them. */
#include <string.h>
#include "frontend/import/import_rules.h"
#include "runtime/base/checked.h"

tl_status tl_import_identity(tl_onnx_call *c)
{
    tl_result(c, 0, c->inputs[0]);
    return TL_OK;
}

/* Inference: the values pass; the mask, where somebody wants it, is all true (of the data's dtype up to opset 9). */
tl_status tl_import_dropout(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *training = tl_call_input(c, 2);
    double is_training = 0;
    TL_TRY(tl_call_decide(c, &training));
    if (training != NULL && (!tl_constant_number(training, &is_training) || is_training != 0))
        return tl_call_unsupported(c, "training mode");
    tl_result(c, 0, x);
    if (tl_call_wants(c, 1)) {
        if (c->version < 10)
            TL_TRY(tl_need_dtype(c, x));
        tl_value *one = tl_onnx_emit_scalar(c, c->version < 10 ? x->dtype : TL_BOOL, 1);
        tl_result(c, 1, tl_onnx_emit_shape_like(c, TL_OP_EXPAND, one, x));
    }
    return TL_OK;
}

tl_status tl_import_reshape_old(tl_onnx_call *c)
{
    return tl_import_as(c, TL_OP_RESHAPE, 1);
}

tl_status tl_import_flatten(tl_onnx_call *c)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_FLATTEN, 1, c->inputs);
    tl_attr_set_int(c->graph, n, "axis", tl_call_int(c, "axis", 1));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

/* Squeeze and Unsqueeze. */
tl_status tl_import_axes_old(tl_onnx_call *c)
{
    return tl_import_as(c, (tl_op)c->rule->op, 1);
}

tl_status tl_import_transpose(tl_onnx_call *c)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_TRANSPOSE, 1, c->inputs);
    const int64_t *perm;
    int64_t reversed[TL_MAX_RANK];
    int rank, count = tl_call_ints(c, "perm", &perm);
    if (count < 0) {
        TL_TRY(tl_need_rank(c, c->inputs[0], &rank));
        for (int i = 0; i < rank; i++)
            reversed[i] = rank - 1 - i;
        perm = reversed;
        count = rank;
    }
    tl_attr_set_ints(c->graph, n, "perm", perm, count);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_concat(tl_onnx_call *c)
{
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] == NULL)
            return tl_call_bad(c, "input %d is missing", i);
    if (!tl_call_has(c, "axis") && c->version >= 4)
        return tl_call_bad(c, "attribute 'axis' is required");
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONCAT, c->input_count, c->inputs);
    tl_attr_set_int(c->graph, n, "axis", tl_call_int(c, "axis", 1));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

enum {
    TILED_AT_ONCE = 2
}; /* of more axes than a shape has room for: [front, m, a, between, n, b, behind] */

/* The same where that are more axes than there may be: two axes after the other, those beside them as one. */
static tl_value *tile_in_steps(tl_onnx_call *c, tl_value *x, int rank, const int64_t *repeats)
{
    int64_t shape[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        shape[i] = x->shape.dims[i].extent;
    for (int done = 0; done < rank;) {
        int64_t split[3 * TILED_AT_ONCE + 1] = { 1 }, wide[3 * TILED_AT_ONCE + 1];
        int axes = 1, tiled = 0;
        for (int i = 0; i < rank; i++) {
            if (i < done || repeats[i] == 1 || tiled == TILED_AT_ONCE) {
                split[axes - 1] *= shape[i];
                continue;
            }
            split[axes] = -repeats[i]; /* for now: the axis of repeats */
            split[axes + 1] = shape[i];
            split[axes + 2] = 1;
            axes += 3;
            shape[i] *= repeats[i];
            done = ++tiled == TILED_AT_ONCE ? i + 1 : done;
        }
        done = tiled < TILED_AT_ONCE ? rank : done;
        for (int i = 0; i < axes; i++) {
            bool repeated = i % 3 == 1;
            wide[i] = repeated ? -split[i] : split[i];
            split[i] = repeated ? 1 : split[i];
        }
        x = tl_onnx_emit_ints(c, TL_OP_EXPAND, tl_onnx_emit_reshape(c, x, split, axes), "shape",
                              wide, axes);
        x = tl_onnx_emit_reshape(c, x, shape, rank);
    }
    return x;
}

/* [a, b] tiled (m, n): each axis gets an axis of repeats before it, expands, and the two become one. */
static tl_status tile(tl_onnx_call *c, tl_value *x, const int64_t *repeats)
{
    int rank = x->shape.rank;
    int64_t split[2 * TL_MAX_RANK], wide[2 * TL_MAX_RANK], merged[TL_MAX_RANK];
    int axes = 0;
    for (int i = 0; i < rank; i++) {
        int64_t extent = x->shape.dims[i].extent;
        if (repeats[i] < 0 || tl_mul_overflows(extent, repeats[i], &merged[i]))
            return tl_call_bad(c, "%lld repeats of axis %d", (long long)repeats[i], i);
        if (repeats[i] != 1) {
            split[axes] = 1;
            wide[axes++] = repeats[i];
        }
        split[axes] = wide[axes] = extent;
        axes++;
    }
    if (axes > TL_MAX_RANK) {
        tl_result(c, 0, tile_in_steps(c, x, rank, repeats));
        return TL_OK;
    }
    if (axes == rank) {
        tl_result(c, 0, x);
        return TL_OK;
    }
    x = tl_onnx_emit_ints(c, TL_OP_EXPAND, tl_onnx_emit_reshape(c, x, split, axes), "shape", wide,
                          axes);
    tl_result(c, 0, tl_onnx_emit_reshape(c, x, merged, rank));
    return TL_OK;
}

tl_status tl_import_tile(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const int64_t *repeats;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_call_decide(c, &c->inputs[1]));
    int rank = x->shape.rank, count = tl_constant_i64(c->arena, c->inputs[1], &repeats);
    if (count < 0)
        return tl_call_unknown(c, "repeats that are computed");
    if (count != rank)
        return tl_call_bad(c, "%d repeats for %d axes", count, rank);
    return tile(c, x, repeats);
}

/* Of opset 1: so many copies along one axis, both of them inputs. */
tl_status tl_import_tile_old(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t repeats[TL_MAX_RANK];
    double tiles;
    int at;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_scalar(c, 1, 1, &tiles));
    TL_TRY(tl_need_axis(c, 2, 0, x->shape.rank, &at));
    if (!(tiles >= 0 && tiles < 0x1p53))
        return tl_call_bad(c, "%.0f copies", tiles);
    for (int i = 0; i < x->shape.rank; i++)
        repeats[i] = i == at ? (int64_t)tiles : 1;
    return tile(c, x, repeats);
}

static tl_status block_of(tl_onnx_call *c, int64_t *block)
{
    *block = tl_call_int(c, "blocksize", 0);
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    if (c->inputs[0]->shape.rank != 4)
        return tl_call_bad(c, "its input has %d axes, not 4", c->inputs[0]->shape.rank);
    if (*block < 1 || *block > 1 << 15)
        return tl_call_bad(c, "blocksize %lld", (long long)*block);
    return TL_OK;
}

tl_status tl_import_depth_to_space(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t b;
    TL_TRY(block_of(c, &b));
    const tl_dim *d = x->shape.dims;
    const char *mode = tl_call_string(c, "mode", "DCR");
    bool dcr = strcmp(mode, "DCR") == 0;
    if (!dcr && strcmp(mode, "CRD") != 0)
        return tl_call_bad(c, "mode '%.20s'", mode);
    if (d[1].extent % (b * b) != 0)
        return tl_call_bad(c, "%lld channels are no multiple of %lld squared",
                           (long long)d[1].extent, (long long)b);
    int64_t depth = d[1].extent / (b * b), h = d[2].extent, w = d[3].extent, n = d[0].extent;
    const int64_t split_dcr[] = { n, b, b, depth, h, w }, split_crd[] = { n, depth, b, b, h, w };
    const int64_t perm_dcr[] = { 0, 3, 4, 1, 5, 2 }, perm_crd[] = { 0, 1, 4, 2, 5, 3 };
    const int64_t merged[] = { n, depth, h * b, w * b };
    x = tl_onnx_emit_reshape(c, x, dcr ? split_dcr : split_crd, 6);
    x = tl_onnx_emit_ints(c, TL_OP_TRANSPOSE, x, "perm", dcr ? perm_dcr : perm_crd, 6);
    tl_result(c, 0, tl_onnx_emit_reshape(c, x, merged, 4));
    return TL_OK;
}

tl_status tl_import_space_to_depth(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t b;
    TL_TRY(block_of(c, &b));
    const tl_dim *d = x->shape.dims;
    if (d[2].extent % b != 0 || d[3].extent % b != 0)
        return tl_call_bad(c, "%lld x %lld is no multiple of blocksize %lld",
                           (long long)d[2].extent, (long long)d[3].extent, (long long)b);
    const char *mode = tl_call_string(c, "mode", "DCR");
    bool dcr = strcmp(mode, "DCR") == 0;
    if (!dcr && strcmp(mode, "CRD") != 0)
        return tl_call_bad(c, "mode '%.40s'", mode);
    int64_t n = d[0].extent, depth = d[1].extent, h = d[2].extent / b, w = d[3].extent / b;
    const int64_t split[] = { n, depth, h, b, w, b },
                  perms[][6] = { { 0, 1, 3, 5, 2, 4 }, { 0, 3, 5, 1, 2, 4 } };
    const int64_t merged[] = { n, depth * b * b, h, w };
    x = tl_onnx_emit_ints(c, TL_OP_TRANSPOSE, tl_onnx_emit_reshape(c, x, split, 6), "perm",
                          perms[dcr], 6);
    tl_result(c, 0, tl_onnx_emit_reshape(c, x, merged, 4));
    return TL_OK;
}
