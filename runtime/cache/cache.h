/* runtime/cache/cache.h: compiled objects on disk, by key.
 *
 * A folder that only its owner can enter, one file an object, each with a checksum. Files are
 * written atomically, so any number of processes share it. What cannot be used (read-only, full,
 * damaged) is a miss or a store that did not happen, never an error. The oldest entries go when it
 * outgrows its limit.
 *
 * A cache is known by its CACHEDIR.TAG, which tilth writes into an empty folder. A folder without
 * one that is not empty is not touched; but one that has only names of the cache's own form (as
 * caches of tilth 0.2.0 and before) gets its tag. Within a cache, too, nothing is counted or
 * removed but regular files and folders with names of that form: KEY.obj in objects, KEY in models
 * with the files of an executable in it; links are not followed. All that is made in it is for its
 * owner alone, whatever the umask. */
#ifndef TL_RUNTIME_CACHE_CACHE_H
#define TL_RUNTIME_CACHE_CACHE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef struct tl_cache tl_cache;

/* `folder` NULL: $XDG_CACHE_HOME/tilth, or ~/.cache/tilth. `limit` bytes, 0: 1 GiB. A `folder` that is something else
 * than a cache, or "", is TL_BAD_ARGUMENT (the default one only cannot be used then); else fails for TL_NO_MEMORY only,
 * and a folder that cannot be used gives a cache in which nothing is ever found (tl_cache_folder is then NULL).
 * Thread-safe. */
tl_status tl_cache_open(const char *folder, int64_t limit, tl_cache **out, tl_diag *diag);
void tl_cache_close(tl_cache *cache);                /* NULL is fine */
const char *tl_cache_folder(const tl_cache *cache);  /* NULL: unusable */
const char *tl_cache_problem(const tl_cache *cache); /* a sentence why it is unusable, or "" */

typedef struct {
    void *object; /* heap; freed by tl_cached_free */
    size_t object_size;
    char *descriptor; /* JSON */
} tl_cached;
/* Keys are 32 hexadecimal digits as tl_digest_text has them; any other is a miss. */
bool tl_cache_find(tl_cache *cache, const char *key, tl_cached *out);
bool tl_cache_store(tl_cache *cache, const char *key, const void *object, size_t size,
                    const char *descriptor);
void tl_cached_free(tl_cached *cached);
/* The same for what is no compiled code but was found out once: not counted among hits, misses and stores. */
bool tl_cache_find_note(tl_cache *cache, const char *key, tl_cached *out);
bool tl_cache_store_note(tl_cache *cache, const char *key, const void *note, size_t size);

/* The folder in which the executable of that key belongs (it may not exist); false: unusable
 * cache or key. Counted and trimmed like objects; tl_cache_touch marks one as just used (a hit). */
bool tl_cache_executable_folder(const tl_cache *cache, const char *key, tl_text *out);
void tl_cache_touch(tl_cache *cache, const char *key);

typedef struct {
    int64_t entries, bytes, limit;
    int64_t hits, misses, stores; /* of this tl_cache since it was opened */
    /* of every process that closed this cache, since it was made or emptied; an executable taken whole is a hit */
    int64_t all_hits, all_misses, all_stores;
} tl_cache_stats;
tl_cache_stats tl_cache_measure(tl_cache *cache);
/* An object or a whole executable, as it lies in the folder. */
typedef struct {
    const char *key;
    bool executable;
    int64_t bytes, used_s; /* last used, in seconds since 1970 */
} tl_cache_entry;
/* Calls `visit` with each, the most recently used first. */
typedef void tl_cache_visitor(void *user, const tl_cache_entry *entry);
void tl_cache_visit(tl_cache *cache, tl_cache_visitor *visit, void *user);
/* Removes the least recently used until it fits; 0: everything. */
void tl_cache_trim(tl_cache *cache, int64_t limit);

#endif
