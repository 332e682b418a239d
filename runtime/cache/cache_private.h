/* runtime/cache/cache_private.h: what the parts of the cache share. */
#ifndef TL_RUNTIME_CACHE_CACHE_PRIVATE_H
#define TL_RUNTIME_CACHE_CACHE_PRIVATE_H
#include <dirent.h>
#include <pthread.h>
#include "runtime/cache/cache.h"

enum { TL_CACHE_UNKNOWN = -1, TL_CACHE_KEY = 32 /* characters */ };
#define TL_CACHE_TAG "CACHEDIR.TAG"

struct tl_cache {
    char *folder; /* NULL: unusable */
    char problem[1024];
    int64_t limit;
    pthread_mutex_t lock; /* guards what follows */
    int64_t bytes;        /* about what lies in the folder; TL_CACHE_UNKNOWN until looked at */
    int64_t hits, misses, stores;
};

/* runtime/cache/cache_counts.c: hits, misses and stores of all processes, in FOLDER/counts. */
typedef struct {
    int64_t hits, misses, stores;
} tl_cache_counts;
tl_cache_counts tl_cache_counts_read(const char *folder);
void tl_cache_counts_add(const char *folder, const tl_cache_counts *more);
void tl_cache_counts_reset(const char *folder);
/* Whether `counts` in the open folder is such a file. */
bool tl_cache_counts_are_ours(int folder);

/* runtime/cache/cache_names.c: the names that the cache gives: a key; KEY.obj; the files of an executable; the tag. All but the
 * key also as files in the making. */
bool tl_cache_is_key(const char *name);
bool tl_cache_is_object_name(const char *name);
bool tl_cache_is_model_name(const char *name);
bool tl_cache_is_tag_name(const char *name);

/* runtime/cache/cache_tag.c: makes the folder, which exists, a cache, or finds that it is one. TL_BAD_ARGUMENT: it is something
 * else, and stays as it is; TL_IO: it cannot be read or written. */
tl_status tl_cache_claim(const char *folder, tl_diag *diag);
/* A folder below the open one `at`, never through a link; NULL: it is none. */
DIR *tl_cache_open_folder(int at, const char *name);

#endif
