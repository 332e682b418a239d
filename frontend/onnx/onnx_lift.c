/* frontend/onnx/onnx_lift.c: large raw data is taken out of a model before it is unpacked, and stays where it lies.
 *
 *     TensorProto { dims 1000, 1000  raw_data <4,000,000 bytes> }
 *  -> TensorProto { dims 1000, 1000  lifted_at 5217  lifted_size 4000000 }
 *
 * Every message around it gets shorter, and so its length, and so the field of that length, may be. The walk before
 * (onnx_scan.c) finds what changes; here the rest is copied between the changes. */
#include "frontend/onnx/onnx_lift.h"
#include <assert.h>
#include <stdlib.h>
#include "runtime/base/array.h"

void tl_onnx_edits_add(tl_onnx_edits *edits, tl_onnx_edit edit)
{
    if (!TL_HEAP_ROOM(edits->items, edits->count, edits->capacity))
        edits->failed = true;
    else
        edits->items[edits->count++] = edit;
}

void tl_onnx_edits_free(tl_onnx_edits *edits)
{
    free(edits->items);
    *edits = (tl_onnx_edits){ 0 };
}

/* At most ten bytes; returns how many. */
static size_t write_varint(uint64_t value, unsigned char *to)
{
    size_t size = 0;
    for (; value > 0x7f; value >>= 7)
        to[size++] = (unsigned char)(value | 0x80);
    to[size++] = (unsigned char)value;
    return size;
}

static size_t write_edit(const tl_onnx_edit *edit, unsigned char to[40])
{
    if (edit->is_length)
        return write_varint(edit->number, to);
    size_t size = write_varint((uint64_t)TL_ONNX_LIFTED_AT << 3, to);
    size += write_varint(edit->number, to + size);
    size += write_varint((uint64_t)TL_ONNX_LIFTED_SIZE << 3, to + size);
    return size + write_varint(edit->size, to + size);
}

size_t tl_onnx_edit_size(const tl_onnx_edit *edit)
{
    unsigned char bytes[40];
    return write_edit(edit, bytes);
}

/* A message's length is found behind what is in it. */
static int by_place(const void *a, const void *b)
{
    const tl_onnx_edit *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

void tl_onnx_edits_apply(tl_onnx_edits *edits, const void *bytes, size_t size, tl_text *out)
{
    size_t at = 0;
    qsort(edits->items, (size_t)edits->count, sizeof *edits->items, by_place);
    for (int i = 0; i < edits->count; i++) {
        const tl_onnx_edit *edit = &edits->items[i];
        unsigned char written[40];
        assert(at <= edit->at && edit->at <= edit->end && edit->end <= size);
        tl_text_add_bytes(out, (const char *)bytes + at, edit->at - at);
        tl_text_add_bytes(out, written, write_edit(edit, written));
        at = edit->end;
    }
    tl_text_add_bytes(out, (const char *)bytes + at, size - at);
}
