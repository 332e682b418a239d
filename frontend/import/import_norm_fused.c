/* frontend/import/import_norm_fused.c: normalisations with the sum before them, as ONNX Runtime's optimizer writes them: of two
 * branches of a network, of the embeddings of words, places and segments. */
#include "frontend/import/import_rules.h"

static const double usual_epsilon = 1e-12f;

static tl_value *layer_norm(tl_onnx_call *c, tl_value *x, tl_value *scale, tl_value *shift)
{
    tl_value *inputs[] = { x, scale, shift };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_LAYER_NORM, shift != NULL ? 3 : 2, inputs);
    tl_attr_set_int(c->graph, n, "axis", -1);
    tl_attr_set_float(c->graph, n, "epsilon", tl_call_float(c, "epsilon", usual_epsilon));
    return tl_emitted(c, n);
}

/* The inputs 0 and 1, and the bias, as output 3 shows it; outputs 1 and 2 are for training. */
static tl_status add_skip(tl_onnx_call *c, tl_value *bias, tl_value **out)
{
    if (tl_call_wants(c, 1) || tl_call_wants(c, 2))
        return tl_call_unsupported(c, "the statistics that training reads (outputs 1 and 2)");
    *out = tl_emit2(c, TL_OP_ADD, c->inputs[0], c->inputs[1]);
    if (bias != NULL)
        *out = tl_emit2(c, TL_OP_ADD, *out, bias);
    tl_result(c, 3, *out);
    return TL_OK;
}

tl_status tl_import_skip_layer_norm(tl_onnx_call *c)
{
    tl_value *sum;
    TL_TRY(add_skip(c, tl_call_input(c, 4), &sum));
    tl_result(c, 0, layer_norm(c, sum, c->inputs[2], tl_call_input(c, 3)));
    return TL_OK;
}

tl_status tl_import_skip_rms_norm(tl_onnx_call *c)
{
    tl_value *sum, *y, *spread;
    TL_TRY(add_skip(c, tl_call_input(c, 3), &sum));
    TL_TRY(tl_onnx_emit_rms_norm(c, sum, c->inputs[2], -1,
                                 tl_call_float(c, "epsilon", usual_epsilon), &y, &spread));
    tl_result(c, 0, y);
    return TL_OK;
}

enum { IDS, SEGMENT_IDS, WORDS, PLACES, SEGMENTS, SCALE, SHIFT, MASK, PLACE_IDS };

/* How many words of each text the mask lets through: [B]; 0 without a mask. */
static tl_value *count_words(tl_onnx_call *c, tl_value *mask)
{
    int64_t batch = c->inputs[IDS]->shape.dims[0].extent;
    const int64_t last = 1;
    if (mask == NULL)
        return tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, TL_I32, 0), &batch, 1);
    mask = tl_onnx_emit_cast(c, tl_onnx_emit_with(c, TL_OP_EQUAL, mask, 1), TL_I32);
    return tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, mask, &last, 1, false);
}

/* Words, then their places (0, 1, .. where no others are given), then their segments. */
tl_status tl_import_embed_layer_norm(tl_onnx_call *c)
{
    TL_TRY(tl_need_inputs(c, 1u << IDS | 1u << WORDS | 1u << PLACES | 1u << SCALE | 1u << SHIFT));
    tl_value *ids = c->inputs[IDS], *places = c->inputs[PLACES], *sum;
    tl_value *segment_ids = c->inputs[SEGMENT_IDS], *segments = c->inputs[SEGMENTS];
    tl_value *mask = tl_call_input(c, MASK), *place_ids = tl_call_input(c, PLACE_IDS);
    TL_TRY(tl_need_shape(c, ids));
    TL_TRY(tl_need_shape(c, places));
    if (ids->shape.rank != 2 || places->shape.rank != 2)
        return tl_call_bad(c, "its words and its embedding of places have not two axes each");
    if ((segment_ids == NULL) != (segments == NULL))
        return tl_call_bad(c, "segment_ids and segment_embedding go together");
    int64_t length = ids->shape.dims[1].extent;
    if (place_ids == NULL && places->shape.dims[0].extent < length)
        return tl_call_bad(c, "there are %lld places for %lld words",
                           (long long)places->shape.dims[0].extent, (long long)length);
    places = place_ids != NULL ? tl_onnx_emit_gather(c, TL_OP_GATHER, places, place_ids, 0)
                               : tl_onnx_emit_slice(c, places, 0, 0, length);
    sum = tl_onnx_emit_gather(c, TL_OP_GATHER, c->inputs[WORDS], ids, 0);
    sum = tl_emit2(c, TL_OP_ADD, sum, places);
    if (segments != NULL)
        sum = tl_emit2(c, TL_OP_ADD, sum,
                       tl_onnx_emit_gather(c, TL_OP_GATHER, segments, segment_ids, 0));
    tl_result(c, 0, layer_norm(c, sum, c->inputs[SCALE], c->inputs[SHIFT]));
    if (tl_call_wants(c, 1) && mask != NULL)
        TL_TRY(tl_need_dtype(c, mask));
    if (tl_call_wants(c, 1))
        tl_result(c, 1, count_words(c, mask));
    tl_result(c, 2, sum);
    return TL_OK;
}
