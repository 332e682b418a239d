/* frontend/import/import_sequence.c: operators on sequences: they are gone when a model has been read (onnx_sequences.h).
 *
 *     SplitToSequence(x) -> s; SequenceAt(s, 1) -> y      ->    y = Slice(x)
 *     ConcatFromSequence(s)                               ->    Concat(...)
 *
 * Definitions: ONNX, SequenceAt-11, ConcatFromSequence-11, SplitToSequence-11 and the like. */
#include "frontend/call/onnx_sequences.h"
#include <string.h>
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"

enum { MOST_ITEMS = 1 << 16 };

static tl_status give(tl_onnx_call *c, int count, tl_value **items)
{
    const tl_onnx_sequence s = { .count = count, .items = items };
    tl_result(c, 0, tl_sequence_value(c, &s));
    return c->status;
}

static tl_status need_sequence(tl_onnx_call *c, const tl_onnx_sequence **out)
{
    *out = tl_sequence_of(c->import, c->inputs[0]);
    if (*out != NULL)
        return TL_OK;
    return c->import->is_open ? tl_call_unknown(c, "a sequence that is not known yet")
                              : tl_call_bad(c, "its input 0 is no sequence");
}

/* A position that is known, from the end where it is negative; `end`: behind the last is one, too, and stands for none given. */
static tl_status need_position(tl_onnx_call *c, const tl_onnx_sequence *s, int input, bool end,
                               int *out)
{
    double at = end ? s->count : s->count - 1;
    if (tl_call_input(c, input) != NULL)
        TL_TRY(tl_need_scalar(c, input, 0, &at));
    if (at < 0)
        at += s->count;
    if (!(at >= 0 && at < s->count + end))
        return tl_call_bad(c, "there is no position %g in a sequence of %d", at, s->count);
    *out = (int)at;
    return TL_OK;
}

tl_status tl_import_sequence_empty(tl_onnx_call *c)
{
    return give(c, 0, NULL);
}

tl_status tl_import_sequence_construct(tl_onnx_call *c)
{
    return give(c, c->input_count, c->inputs);
}

tl_status tl_import_sequence_insert(tl_onnx_call *c)
{
    const tl_onnx_sequence *s;
    int at;
    TL_TRY(need_sequence(c, &s));
    if (s->stack != NULL || (s->before != NULL && tl_call_input(c, 2) != NULL))
        return tl_call_unsupported(c, "a place in a sequence whose length data decide");
    TL_TRY(need_position(c, s, 2, true, &at));
    if (s->count >= MOST_ITEMS)
        return tl_call_unsupported(c, "a sequence of more than %d tensors", MOST_ITEMS);
    tl_onnx_sequence longer = *s;
    longer.items = TL_NEW_ARRAY(c->arena, tl_value *, s->count + 1);
    longer.count = s->count + 1;
    for (int i = 0; i < longer.count; i++)
        longer.items[i] = i < at ? s->items[i] : i == at ? c->inputs[1] : s->items[i - 1];
    tl_result(c, 0, tl_sequence_value(c, &longer));
    return c->status;
}

tl_status tl_import_sequence_erase(tl_onnx_call *c)
{
    const tl_onnx_sequence *s;
    int at;
    TL_TRY(need_sequence(c, &s));
    if (s->stack != NULL || s->before != NULL)
        return tl_call_unsupported(c, "a place in a sequence whose length data decide");
    TL_TRY(need_position(c, s, 1, false, &at));
    tl_value **items = TL_NEW_ARRAY(c->arena, tl_value *, s->count);
    for (int i = 0; i < s->count - 1; i++)
        items[i] = s->items[i < at ? i : i + 1];
    return give(c, s->count - 1, items);
}

tl_status tl_import_sequence_length(tl_onnx_call *c)
{
    const tl_onnx_sequence *s;
    TL_TRY(need_sequence(c, &s));
    if (s->before != NULL)
        return tl_call_unsupported(c, "the length of a sequence to which turns append");
    tl_value *length = tl_onnx_emit_scalar(c, TL_I64, s->count);
    if (s->stack != NULL) {
        tl_value *const *counts = tl_counts_of(c->import, s->stack);
        tl_value *more =
            counts != NULL && counts[0] != NULL
                ? tl_onnx_emit_reshape(c, counts[0], NULL, 0)
                : tl_onnx_emit_scalar(c, TL_I64, (double)s->stack->shape.dims[0].extent);
        length = tl_emit2(c, TL_OP_ADD, length, more);
    }
    tl_result(c, 0, length);
    return TL_OK;
}

/* All that the sequence holds along a new axis. */
static tl_status stack_all(tl_onnx_call *c, const tl_onnx_sequence *s, int64_t axis, tl_value **out)
{
    int count = s->count + (s->stack != NULL), place;
    tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, count);
    if (count == 0)
        return tl_call_unsupported(c, "what is in an empty sequence");
    for (int i = 0; i < s->count; i++) {
        TL_TRY(tl_need_shape(c, s->items[i]));
        parts[i] = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, s->items[i], 1, (int64_t[]){ 0 });
    }
    if (s->stack != NULL)
        parts[s->count] = s->stack;
    tl_value *y = tl_onnx_emit_concat(c, count, parts, 0);
    TL_TRY(tl_onnx_axis(c, axis, y->shape.rank, &place));
    int64_t perm[TL_MAX_RANK];
    for (int i = 0; i < y->shape.rank; i++)
        perm[i] = i < place ? i + 1 : i == place ? 0 : i;
    *out = place > 0 ? tl_onnx_emit_transpose(c, y, perm) : y;
    return c->status;
}

tl_status tl_import_sequence_at(tl_onnx_call *c)
{
    const tl_onnx_sequence *s;
    tl_value *all;
    int at;
    TL_TRY(need_sequence(c, &s));
    if (s->before != NULL)
        return tl_call_unsupported(c, "a tensor of a sequence to which turns append");
    bool is_known = s->stack == NULL && c->inputs[1]->data != NULL;
    for (int i = 1; i < s->count && !is_known; i++)
        if (!tl_shape_equal(&s->items[i]->shape, &s->items[0]->shape))
            is_known = true; /* it has to be */
    if (is_known) {
        TL_TRY(need_position(c, s, 1, false, &at));
        tl_result(c, 0, s->items[at]);
        return c->status;
    }
    TL_TRY(stack_all(c, s, 0, &all));
    tl_value *position = tl_onnx_emit_reshape(c, c->inputs[1], NULL, 0);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER, all, position, 0));
    return c->status;
}

tl_status tl_import_concat_from_sequence(tl_onnx_call *c)
{
    const tl_onnx_sequence *s;
    int64_t axis = tl_call_int(c, "axis", 0), extents[TL_MAX_RANK];
    tl_value *y;
    int place;
    TL_TRY(need_sequence(c, &s));
    if (s->before != NULL)
        return tl_call_unsupported(c, "a sequence to which turns append");
    if (tl_call_int(c, "new_axis", 0) != 0) {
        TL_TRY(stack_all(c, s, axis, &y));
        tl_result(c, 0, y);
        return c->status;
    }
    if (s->count + (s->stack != NULL) == 0)
        return tl_call_unsupported(c, "what is in an empty sequence");
    tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, s->count + 1);
    for (int i = 0; i < s->count; i++)
        parts[i] = s->items[i];
    int count = s->count;
    if (s->stack != NULL) { /* its first axis goes beside the one that is joined, and into it */
        int64_t perm[TL_MAX_RANK];
        y = s->stack;
        int rank = y->shape.rank - 1;
        TL_TRY(tl_onnx_axis(c, axis, rank, &place));
        for (int i = 0; i <= rank; i++)
            perm[i] = i < place ? i + 1 : i == place ? 0 : i;
        for (int i = 0; i < rank; i++)
            extents[i] = y->shape.dims[i + 1].extent * (i == place ? y->shape.dims[0].extent : 1);
        y = place > 0 ? tl_onnx_emit_transpose(c, y, perm) : y;
        parts[count++] = tl_onnx_emit_reshape(c, y, extents, rank);
    }
    TL_TRY(tl_need_shape(c, parts[0]));
    TL_TRY(tl_onnx_axis(c, axis, parts[0]->shape.rank, &place));
    tl_result(c, 0, tl_onnx_emit_concat(c, count, parts, place));
    return c->status;
}

/* Parts of one size, the last smaller, or of those that `split` lists. */
tl_status tl_import_split_to_sequence(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const int64_t *sizes = NULL;
    int count = 0, axis;
    bool keeps = tl_call_int(c, "keepdims", 1) != 0, is_list = false;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
    int64_t extent = x->shape.dims[axis].extent, size = 1, at = 0;
    if (tl_call_input(c, 1) != NULL) {
        TL_TRY(tl_need_i64(c, 1, &sizes, &count));
        is_list = c->inputs[1]->shape.rank > 0;
        keeps = true;
        if (!is_list && count == 1)
            size = sizes[0];
    }
    if (!is_list)
        count = size > 0 && (extent + size - 1) / size <= MOST_ITEMS
                    ? (int)((extent + size - 1) / size)
                    : -1;
    if (count < 0 || count > MOST_ITEMS)
        return tl_call_bad(c, "%lld elements cannot be split into parts of %lld", (long long)extent,
                           (long long)size);
    tl_value **items = TL_NEW_ARRAY(c->arena, tl_value *, count);
    for (int i = 0; i < count; i++) {
        int64_t own = is_list ? sizes[i] : size < extent - at ? size : extent - at;
        if (own < 0 || own > extent - at)
            return tl_call_bad(c, "part %d of %lld does not fit in %lld elements", i,
                               (long long)own, (long long)extent);
        items[i] = tl_onnx_emit_slice(c, x, axis, at, own);
        if (!keeps)
            items[i] = tl_onnx_emit_axes(c, TL_OP_SQUEEZE, items[i], 1, (int64_t[]){ axis });
        at += own;
    }
    if (at != extent)
        return tl_call_bad(c, "its parts have %lld of %lld elements", (long long)at,
                           (long long)extent);
    return give(c, count, items);
}
