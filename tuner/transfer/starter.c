/* tuner/transfer/starter.c: the database of schedules that comes with tilth.
 *
 * tuner/data/starter.jsonl, compressed, is in the program itself (the Makefile makes starter_bytes.c), so that it is there
 * however tilth was installed. */
#include <zlib.h>
#include "tuner/transfer/transfer.h"

enum { MOST_BYTES = 64 << 20, STEP = 1 << 16 };

extern const unsigned char tl_starter_bytes[];
extern const size_t tl_starter_size;

static tl_status unpack(z_stream *z, tl_text *out, tl_diag *diag)
{
    char step[STEP];
    int result = Z_OK;

    while (result == Z_OK && out->size < MOST_BYTES) {
        z->next_out = (unsigned char *)step;
        z->avail_out = STEP;
        result = inflate(z, Z_NO_FLUSH);
        tl_text_add_bytes(out, step, STEP - z->avail_out);
    }
    if (out->failed)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return result == Z_STREAM_END ? TL_OK
                                  : tl_fail(diag, TL_INTERNAL, "the starter database is damaged");
}

tl_status tl_starter_lines(tl_text *out, tl_diag *diag)
{
    enum { GZIP = 16 };
    z_stream z = { .next_in = (unsigned char *)(uintptr_t)tl_starter_bytes,
                   .avail_in = (unsigned)tl_starter_size };

    if (inflateInit2(&z, MAX_WBITS + GZIP) != Z_OK)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = unpack(&z, out, diag);
    inflateEnd(&z);
    return status;
}
