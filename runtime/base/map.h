/* runtime/base/map.h: a map from strings to pointers that iterates in insertion order, so that
 * nothing a person or a test sees depends on hashing. */
#ifndef TL_RUNTIME_BASE_MAP_H
#define TL_RUNTIME_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/arena.h"

typedef struct tl_map tl_map;
typedef struct {
    const char *key;
    void *value;
} tl_map_entry;

tl_map *tl_map_create(tl_arena *arena); /* lives in the arena; keys are copied */
void tl_map_put(tl_map *map, const char *key, void *value); /* replaces in place */
void *tl_map_find(const tl_map *map, const char *key);      /* NULL when absent */
bool tl_map_has(const tl_map *map, const char *key);
size_t tl_map_count(const tl_map *map);
tl_map_entry tl_map_at(const tl_map *map, size_t index); /* in insertion order */

/* FNV-1a style 64-bit hash; and a 128-bit content hash as 32 hex digits, for cache and workload keys. */
uint64_t tl_hash_bytes(const void *bytes, size_t size, uint64_t seed);
typedef struct {
    uint64_t a, b, length;
} tl_digest;
void tl_digest_start(tl_digest *digest);
void tl_digest_add(tl_digest *digest, const void *bytes, size_t size);
void tl_digest_text(const tl_digest *digest, char out[33]);

#endif
