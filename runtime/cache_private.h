/* runtime/cache_private.h: the cache's state, for cache.c and cache_trim.c. */
#ifndef TL_RUNTIME_CACHE_PRIVATE_H
#define TL_RUNTIME_CACHE_PRIVATE_H
#include <pthread.h>
#include "runtime/cache.h"

enum { TL_CACHE_UNKNOWN = -1 };

struct tl_cache {
    char *folder; /* NULL: unusable */
    char problem[256];
    int64_t limit;
    pthread_mutex_t lock; /* guards what follows */
    int64_t bytes;        /* about what lies in the folder; TL_CACHE_UNKNOWN until looked at */
    int64_t hits, misses, stores;
};

/* runtime/cache_counts.c: hits, misses and stores of all processes, in FOLDER/counts. */
typedef struct {
    int64_t hits, misses, stores;
} tl_cache_counts;
tl_cache_counts tl_cache_counts_read(const char *folder);
void tl_cache_counts_add(const char *folder, const tl_cache_counts *more);
void tl_cache_counts_reset(const char *folder);

#endif
