/* runtime/base/map.c: open addressing over an array of entries kept in insertion order. */
#include "runtime/base/map.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct tl_map {
    tl_arena *arena;
    tl_map_entry *entries;
    uint64_t *hashes;       /* of the entries */
    size_t count, capacity; /* of entries */
    uint32_t *slots;        /* entry index + 1; 0 is free */
    size_t slot_count;      /* a power of two, at least twice the entries */
};

uint64_t tl_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ (seed * UINT64_C(0x9E3779B97F4A7C15));
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32; /* FNV's low bits mix poorly */
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

static void resize(tl_map *map, size_t slot_count)
{
    assert((slot_count & (slot_count - 1)) == 0 && slot_count > map->count);
    map->slots = TL_NEW_ARRAY(map->arena, uint32_t, slot_count);
    map->slot_count = slot_count;
    for (size_t i = 0; i < map->count; i++) {
        size_t slot = map->hashes[i] & (slot_count - 1);
        while (map->slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        map->slots[slot] = (uint32_t)(i + 1);
    }
}

tl_map *tl_map_create(tl_arena *arena)
{
    tl_map *map = TL_NEW(arena, tl_map);
    map->arena = arena;
    resize(map, 16);
    return map;
}

/* The slot that holds `key`, or the free one where it belongs. */
static size_t find_slot(const tl_map *map, const char *key, uint64_t hash)
{
    assert(map->count < map->slot_count);
    size_t slot = hash & (map->slot_count - 1);
    for (; map->slots[slot] != 0; slot = (slot + 1) & (map->slot_count - 1)) {
        size_t entry = map->slots[slot] - 1;
        if (map->hashes[entry] == hash && strcmp(map->entries[entry].key, key) == 0)
            break;
    }
    return slot;
}

void tl_map_put(tl_map *map, const char *key, void *value)
{
    uint64_t hash = tl_hash_bytes(key, strlen(key), 0);
    size_t slot = find_slot(map, key, hash);
    if (map->slots[slot] != 0) {
        map->entries[map->slots[slot] - 1].value = value;
        return;
    }
    if (map->count == map->capacity) {
        size_t capacity = map->capacity ? map->capacity * 2 : 8;
        tl_map_entry *entries = TL_NEW_ARRAY(map->arena, tl_map_entry, capacity);
        uint64_t *hashes = TL_NEW_ARRAY(map->arena, uint64_t, capacity);
        for (size_t i = 0; i < map->count; i++) {
            entries[i] = map->entries[i];
            hashes[i] = map->hashes[i];
        }
        map->entries = entries;
        map->hashes = hashes;
        map->capacity = capacity;
    }
    map->entries[map->count] = (tl_map_entry){ tl_arena_strdup(map->arena, key), value };
    map->hashes[map->count++] = hash;
    map->slots[slot] = (uint32_t)map->count;
    if (map->count * 2 > map->slot_count)
        resize(map, map->slot_count * 2);
}

bool tl_map_has(const tl_map *map, const char *key)
{
    return map->slots[find_slot(map, key, tl_hash_bytes(key, strlen(key), 0))] != 0;
}

void *tl_map_find(const tl_map *map, const char *key)
{
    uint32_t slot = map->slots[find_slot(map, key, tl_hash_bytes(key, strlen(key), 0))];
    return slot == 0 ? NULL : map->entries[slot - 1].value;
}

size_t tl_map_count(const tl_map *map)
{
    return map->count;
}

tl_map_entry tl_map_at(const tl_map *map, size_t index)
{
    assert(index < map->count);
    return map->entries[index];
}

void tl_digest_start(tl_digest *digest)
{
    *digest = (tl_digest){ UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344), 0 };
}

void tl_digest_add(tl_digest *digest, const void *bytes, size_t size)
{
    /* two independent multiply-xor lanes over words; not cryptographic: keys and checksums of our own files */
    const unsigned char *p = bytes;
    uint64_t a = digest->a, b = digest->b;
    digest->length += size;
    while (size > 0) {
        uint64_t word = 0;
        size_t n = size < 8 ? size : 8;
        memcpy(&word, p, n);
        a = (a ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        a = (a << 29) | (a >> 35);
        b = (b ^ (word + n)) * UINT64_C(0xC2B2AE3D27D4EB4F);
        b = (b << 31) | (b >> 33);
        a += b;
        p += n;
        size -= n;
    }
    digest->a = a;
    digest->b = b;
}

static uint64_t finish(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

void tl_digest_text(const tl_digest *digest, char out[33])
{
    uint64_t a = finish(digest->a + digest->length), b = finish(digest->b ^ a);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
}
