/* runtime/base/checksum.c: four independent lanes of 64-bit words, each h = rotate(h ^ w) * odd, so
 * that a core has several multiplications in flight; the lanes and the tail are then mixed into
 * one word. Every step is a bijection of h for a given w, so a single damaged word always
 * changes the result. */
#include "runtime/base/checksum.h"
#include <string.h>
#include "runtime/base/pages.h"

#define ODD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 divided by the golden ratio */

static uint64_t step(uint64_t h, uint64_t w)
{
    h ^= w;
    h = h << 29 | h >> 35;
    return h * ODD;
}

static uint64_t load(const unsigned char *at)
{
    uint64_t w;

    memcpy(&w, at, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* All whole groups of 32 bytes. */
static void add(uint64_t lane[4], const unsigned char *at, size_t size)
{
    for (; size >= 32; size -= 32, at += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = step(lane[i], load(at + 8 * i));
}

/* What is behind them, and the end. */
static uint64_t finish(const uint64_t lane[4], const unsigned char *bytes, size_t size)
{
    const unsigned char *at = bytes + size / 32 * 32;
    size_t left = size % 32;
    uint64_t h = size;
    for (int i = 0; i < 4; i++)
        h = step(h, lane[i]);
    for (; left >= 8; left -= 8, at += 8)
        h = step(h, load(at));
    if (left > 0) {
        unsigned char tail[8] = { 0 };
        memcpy(tail, at, left);
        h = step(h, load(tail));
    }
    h ^= h >> 32;
    h *= ODD;
    return h ^ h >> 29;
}

uint64_t tl_checksum(const void *bytes, size_t size)
{
    uint64_t lane[4] = { 1, 2, 3, 4 };
    add(lane, bytes, size);
    return finish(lane, bytes, size);
}

uint64_t tl_checksum_mapped(const void *bytes, size_t size)
{
    const size_t piece = 4 << 20;
    const unsigned char *at = bytes;
    uint64_t lane[4] = { 1, 2, 3, 4 };
    size_t done = 0;
    for (; size - done > piece; done += piece) {
        add(lane, at + done, piece);
        tl_pages_rest(at + done, piece);
    }
    add(lane, at + done, size - done);
    uint64_t sum = finish(lane, bytes, size);
    if (size >= piece)
        tl_pages_rest(at + done, size - done);
    return sum;
}
