/* frontend/onnx/onnx_scan.c: walks the wire format with a stack of its own, entering the messages of
 * onnx_schema.def and checking the texts. What is not in the table is skipped by its length. Raw data that is to be lifted
 * is written down on the way, with the lengths of the messages around it. */
#include "frontend/onnx/onnx_scan.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/printable.h"

typedef enum {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    FUNCTION,
    TENSOR,
    SPARSE,
    ENTRY,
    OPSET,
    VALUE_INFO,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    EMPTY,
    TEXT, /* no message */
} holds;

static const struct field {
    holds in;
    uint32_t number;
    const char *name;
    holds what;
} fields[] = {
#define FIELD(in, number, name, what) { in, number, name, what },
#include "frontend/onnx/onnx_schema.def"
#undef FIELD
};

typedef struct {
    holds message;
    size_t length_at, start, end; /* its length, what it holds */
    size_t lifted;                /* how many bytes fewer it will have */
    const char *name;
} frame;

typedef struct {
    const uint8_t *bytes;
    size_t at;
    int depth, messages;
    frame stack[TL_ONNX_MAX_DEPTH];
    tl_onnx_edits *edits; /* NULL: nothing is lifted */
    tl_diag *diag;
} scan;

static tl_status fail(const scan *s, const char *what)
{
    tl_status status = tl_fail(s->diag, TL_BAD_MODEL, "byte %zu: %s", s->at, what);
    for (int i = s->depth - 1; i > 0 && i >= s->depth - 3; i--)
        tl_context(s->diag, "field %s", s->stack[i].name);
    return status;
}

static const struct field *find(holds in, uint32_t number)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].in == in && fields[i].number == number)
            return &fields[i];
    return NULL;
}

static bool read_varint(scan *s, size_t end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (s->at == end)
            return false;
        uint8_t byte = s->bytes[s->at++];
        if (shift < 64)
            *out |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

static tl_status check_text(const scan *s, size_t size)
{
    if (size > TL_ONNX_MAX_TEXT)
        return fail(s, "a name is longer than 65536 bytes");
    const char *text = (const char *)s->bytes + s->at;
    for (size_t i = 0; i < size;) {
        uint32_t code;
        int step = tl_utf8_read(text + i, size - i, &code);
        if (step <= 0 || code == 0)
            return fail(s, "a name holds a zero byte or is not valid UTF-8");
        if (code == '\n' || code == '\r')
            return fail(s, "a name holds a line break"); /* it could pass for a line of ours */
        i += (size_t)step;
    }
    return TL_OK;
}

/* The field of raw data that begins with its tag at `at` and holds so many bytes from here on. */
static void lift(scan *s, size_t at, size_t size)
{
    tl_onnx_edit edit = { .at = at, .end = s->at + size, .number = s->at, .size = size };
    tl_onnx_edits_add(s->edits, edit);
    s->stack[s->depth - 1].lifted += edit.end - edit.at - tl_onnx_edit_size(&edit);
}

/* Leaves the innermost message. */
static void leave(scan *s)
{
    const frame *top = &s->stack[--s->depth];
    if (top->lifted == 0 || s->depth == 0)
        return;
    tl_onnx_edit edit = { .at = top->length_at,
                          .end = top->start,
                          .is_length = true,
                          .number = top->end - top->start - top->lifted };
    tl_onnx_edits_add(s->edits, edit);
    s->stack[s->depth - 1].lifted +=
        top->lifted + (top->start - top->length_at) - tl_onnx_edit_size(&edit);
}

/* What a length-delimited field holds, whose length is written at `length_at`: goes into a message, checks a text, passes over
 * the rest. */
static tl_status enter(scan *s, const struct field *field, size_t length_at, size_t size)
{
    if (field == NULL) {
        s->at += size;
        return TL_OK;
    }
    if (field->what == TEXT) {
        tl_status status = check_text(s, size);
        if (status != TL_OK)
            tl_context(s->diag, "field %s", field->name);
        s->at += size;
        return status;
    }
    if (s->depth == TL_ONNX_MAX_DEPTH)
        return fail(s, "messages are nested more than 100 deep");
    if (++s->messages > TL_ONNX_MAX_MESSAGES)
        return fail(s, "more than 4194304 messages");
    s->stack[s->depth++] = (frame){ .message = field->what,
                                    .length_at = length_at,
                                    .start = s->at,
                                    .end = s->at + size,
                                    .name = field->name };
    return TL_OK;
}

static tl_status scan_field(scan *s)
{
    const frame *top = &s->stack[s->depth - 1];
    uint64_t tag, value;
    size_t field_at = s->at, length_at;
    if (!read_varint(s, top->end, &tag) || tag > UINT32_MAX)
        return fail(s, "a field's tag is cut off or too long");
    if (tag >> 3 == 0)
        return fail(s, "field number 0 does not exist");
    if (top->message == TENSOR &&
        (tag >> 3 == TL_ONNX_LIFTED_AT || tag >> 3 == TL_ONNX_LIFTED_SIZE))
        return fail(s, "a tensor has a field that ONNX has not");
    const struct field *field = find(top->message, (uint32_t)(tag >> 3));
    if (field != NULL && (tag & 7) != 2)
        return fail(s, "a message or text is encoded as a number");
    switch (tag & 7) {
    case 0:
        if (!read_varint(s, top->end, &value))
            return fail(s, "a number is cut off or too long");
        return TL_OK;
    case 1:
    case 5:
        value = (tag & 7) == 1 ? 8 : 4;
        if (value > top->end - s->at)
            return fail(s, "a number is cut off");
        s->at += (size_t)value;
        return TL_OK;
    case 2:
        length_at = s->at;
        if (!read_varint(s, top->end, &value))
            return fail(s, "a length is cut off or too long");
        if (value > top->end - s->at || value > INT_MAX)
            return fail(s, "a length reaches beyond the end");
        if (s->edits != NULL && top->message == TENSOR && tag >> 3 == TL_ONNX_RAW_DATA &&
            value >= TL_ONNX_LEAST_LIFTED)
            lift(s, field_at, (size_t)value);
        return enter(s, field, length_at, (size_t)value);
    default:
        return fail(s, "unknown wire type");
    }
}

static tl_status walk(scan *s, size_t size, tl_onnx_root root)
{
    s->depth = 1;
    s->stack[0] = (frame){ .message = root == TL_ONNX_MESSAGE_MODEL ? MODEL : TENSOR,
                           .end = size,
                           .name = "model" };
    while (s->depth > 0) {
        if (s->at == s->stack[s->depth - 1].end)
            leave(s);
        else
            TL_TRY(scan_field(s));
    }
    return TL_OK;
}

tl_status tl_onnx_scan(const void *bytes, size_t size, tl_onnx_root root, tl_diag *diag)
{
    scan s = { .bytes = bytes, .diag = diag };
    return walk(&s, size, root);
}

tl_status tl_onnx_scan_lifting(const void *bytes, size_t size, tl_onnx_edits *edits, tl_diag *diag)
{
    scan s = { .bytes = bytes, .edits = edits, .diag = diag };
    TL_TRY(walk(&s, size, TL_ONNX_MESSAGE_MODEL));
    return edits->failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory while looking at the model")
                         : TL_OK;
}
