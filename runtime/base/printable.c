/* runtime/base/printable.c: text that a terminal only shows. */
#include "runtime/base/printable.h"
#include <assert.h>

/* What is not shown, or changes how other characters are: first and last. */
static const uint32_t hidden[][2] = {
    { 0x0000, 0x001f }, /* control characters */
    { 0x007f, 0x009f }, /* and the second set of them */
    { 0x00ad, 0x00ad }, /* a hyphen that shows at the end of a line only */
    { 0x034f, 0x034f }, /* joins without a sign */
    { 0x061c, 0x061c }, /* direction, Arabic */
    { 0x115f, 0x1160 }, /* fillers */
    { 0x17b4, 0x17b5 }, /* vowels without a sign */
    { 0x180b, 0x180f }, /* variants and a separator without a width */
    { 0x200b, 0x200f }, /* without a width; direction */
    { 0x2028,
      0x202e }, /* separators of lines and paragraphs; embeddings and overrides of direction */
    { 0x2060, 0x206f },   /* without a width; isolates of direction */
    { 0x3164, 0x3164 },   /* a filler */
    { 0xd800, 0xdfff },   /* surrogates */
    { 0xfdd0, 0xfdef },   /* noncharacters */
    { 0xfeff, 0xfeff },   /* the mark of byte order */
    { 0xffa0, 0xffa0 },   /* a filler */
    { 0xfff0, 0xfffb },   /* specials but the signs of a missing character */
    { 0x1d173, 0x1d17a }, /* format of music */
    { 0xe0000, 0xe0fff }, /* tags */
};

int tl_utf8_read(const char *bytes, size_t size, uint32_t *code)
{
    assert(size > 0);
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = (const unsigned char *)bytes;
    int more = p[0] < 0x80 ? 0 : p[0] < 0xc2 ? -1 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;

    if (more < 0 || p[0] > 0xf4)
        return 0;
    *code = more == 0 ? p[0] : p[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((size_t)i == size)
            return -1;
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    bool good = *code >= least[more] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff);
    return good ? more + 1 : 0;
}

bool tl_is_printable(uint32_t code)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i][0] && code <= hidden[i][1])
            return false;
    return (code & 0xfffe) != 0xfffe && code <= 0x10ffff;
}

void tl_text_add_escaped(tl_text *out, uint32_t code)
{
    if (code < 0x10000)
        tl_text_format(out, "\\u%04x", (unsigned)code);
    else
        tl_text_format(out, "\\u%04x\\u%04x", 0xd800 + (unsigned)((code - 0x10000) >> 10),
                       0xdc00 + (unsigned)((code - 0x10000) & 0x3ff));
}

void tl_text_add_printable(tl_text *out, const char *bytes, size_t size)
{
    size_t shown = 0; /* up to here it is in `out` */

    for (size_t at = 0; at < size;) {
        uint32_t code;
        int length = tl_utf8_read(bytes + at, size - at, &code);
        bool stays = length > 0 && (tl_is_printable(code) || code == '\n' || code == '\t');
        size_t next = at + (length > 0 ? (size_t)length : 1);
        if (!stays) {
            tl_text_add_bytes(out, bytes + shown, at - shown);
            tl_text_add_escaped(out, length > 0 ? code : (unsigned char)bytes[at]);
            shown = next;
        }
        at = next;
    }
    tl_text_add_bytes(out, bytes + shown, size - shown);
}
