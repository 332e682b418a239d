/* runtime/base/checksum.c: four independent lanes of 64-bit words, each h = rotate(h ^ w) * odd, so
 * that a core has several multiplications in flight; the lanes and the tail are then mixed into
 * one word. Every step is a bijection of h for a given w, so a single damaged word always
 * changes the result. */
#include "runtime/base/checksum.h"
#include <string.h>

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

uint64_t tl_checksum(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t lane[4] = { 1, 2, 3, 4 };
    size_t left = size;

    for (; left >= 32; left -= 32, at += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = step(lane[i], load(at + 8 * i));

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
