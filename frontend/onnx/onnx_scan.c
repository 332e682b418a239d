/* frontend/onnx/onnx_scan.c: walks the wire format with a stack of its own, entering the messages of
 * onnx_schema.def and checking the texts. What is not in the table is skipped by its length. */
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
    size_t end;
    const char *name;
} frame;

typedef struct {
    const uint8_t *bytes;
    size_t at;
    int depth, messages;
    frame stack[TL_ONNX_MAX_DEPTH];
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

/* What a length-delimited field holds: goes into a message, checks a text, passes over the rest. */
static tl_status enter(scan *s, const struct field *field, size_t size)
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
    s->stack[s->depth++] = (frame){ field->what, s->at + size, field->name };
    return TL_OK;
}

static tl_status scan_field(scan *s)
{
    const frame *top = &s->stack[s->depth - 1];
    uint64_t tag, value;
    if (!read_varint(s, top->end, &tag) || tag > UINT32_MAX)
        return fail(s, "a field's tag is cut off or too long");
    if (tag >> 3 == 0)
        return fail(s, "field number 0 does not exist");
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
        if (!read_varint(s, top->end, &value))
            return fail(s, "a length is cut off or too long");
        if (value > top->end - s->at || value > INT_MAX)
            return fail(s, "a length reaches beyond the end");
        return enter(s, field, (size_t)value);
    default:
        return fail(s, "unknown wire type");
    }
}

tl_status tl_onnx_scan(const void *bytes, size_t size, tl_onnx_root root, tl_diag *diag)
{
    scan s = { .bytes = bytes, .depth = 1, .diag = diag };
    s.stack[0] = (frame){ root == TL_ONNX_MESSAGE_MODEL ? MODEL : TENSOR, size, "model" };
    while (s.depth > 0) {
        if (s.at == s.stack[s.depth - 1].end)
            s.depth--;
        else
            TL_TRY(scan_field(&s));
    }
    return TL_OK;
}
