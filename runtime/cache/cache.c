/* runtime/cache/cache.c: compiled objects on disk, by key.
 *
 *     FOLDER/CACHEDIR.TAG       says that it is a cache (cache_tag.c)
 *     FOLDER/objects/KEY.obj    header | descriptor (JSON) | object
 *     FOLDER/models/KEY/        a saved executable (executable.h)
 *     FOLDER/counts             how often it helped (cache_counts.c)
 *
 * The header carries the sizes and a checksum over everything after itself. An entry's age is its
 * modification time, which a hit renews. Whatever goes wrong is a miss. */
#include "runtime/cache/cache.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/cache/cache_private.h"
#include "runtime/base/checksum.h"

#define DEFAULT_LIMIT (INT64_C(1) << 30)
enum { RENEW_SECONDS = 600 };

typedef struct {
    char magic[8];
    uint64_t descriptor_size, object_size, checksum;
} header;
static const char magic[8] = "tlobj\0\0\1";

/* The path of something in the cache; freed by the caller, NULL without memory. */
static char *path_of(const tl_cache *cache, const char *kind, const char *key, const char *suffix)
{
    char *path;

    if (asprintf(&path, "%s/%s/%s%s", cache->folder, kind, key, suffix) < 0)
        return NULL;
    return path;
}

static char *default_folder(void)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path;
    int size;

    if (base != NULL && base[0] == '/') /* the specification says that others are ignored */
        size = asprintf(&path, "%s/tilth", base);
    else if (home != NULL && home[0] == '/')
        size = asprintf(&path, "%s/.cache/tilth", home);
    else
        return NULL;
    return size < 0 ? NULL : path;
}

/* What is in there gets executed: nobody else may be able to put something in. Of ours, a link is none. */
static tl_status check_private(const char *folder, bool is_inner, tl_diag *diag)
{
    struct stat info;

    if ((is_inner ? lstat : stat)(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return tl_fail(diag, TL_IO, "%s: not a folder", folder);
    if (info.st_uid != geteuid())
        return tl_fail(diag, TL_IO, "%s: belongs to another user", folder);
    if ((info.st_mode & 022) != 0)
        return tl_fail(diag, TL_IO, "%s: others can write in it", folder);
    return TL_OK;
}

static tl_status make_inner(const char *folder, const char *kind, tl_diag *diag)
{
    char *path;

    if (asprintf(&path, "%s/%s", folder, kind) < 0)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder);
    tl_status status = TL_OK;
    bool made = mkdir(path, 0700) == 0;
    if (made ? chmod(path, 0700) != 0 : errno != EEXIST && errno != EROFS)
        status = tl_fail(diag, TL_IO, "%s: cannot be written", folder);
    struct stat info;
    if (status == TL_OK && lstat(path, &info) == 0)
        status = check_private(path, true, diag);
    free(path);
    return status;
}

static tl_status make_folders(const char *folder, tl_diag *diag)
{
    TL_TRY(tl_folder_make(folder, diag));
    TL_TRY(check_private(folder, false, diag));
    TL_TRY(tl_cache_claim(folder, diag));
    TL_TRY(make_inner(folder, "objects", diag));
    return make_inner(folder, "models", diag);
}

tl_status tl_cache_open(const char *folder, int64_t limit, tl_cache **out, tl_diag *diag)
{
    tl_diag why = { 0 };
    tl_status status = TL_OK;
    tl_cache *cache = calloc(1, sizeof *cache);

    *out = NULL;
    if (cache == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "object cache: out of memory");
    pthread_mutex_init(&cache->lock, NULL);
    cache->limit = limit > 0 ? limit : DEFAULT_LIMIT;
    cache->bytes = TL_CACHE_UNKNOWN;
    cache->folder = folder != NULL ? strdup(folder) : default_folder();
    if (cache->folder == NULL)
        status = tl_fail(&why, TL_IO, "neither XDG_CACHE_HOME nor HOME names a folder");
    else
        status = make_folders(cache->folder, &why);
    if (status == TL_BAD_ARGUMENT && folder != NULL) {
        tl_cache_close(cache);
        return tl_fail(diag, status, "%s", why.text);
    }
    if (status != TL_OK) {
        snprintf(cache->problem, sizeof cache->problem, "%.1023s", why.text);
        free(cache->folder);
        cache->folder = NULL;
    }
    *out = cache;
    return TL_OK;
}

void tl_cache_close(tl_cache *cache)
{
    if (cache == NULL)
        return;
    if (cache->folder != NULL) {
        const tl_cache_counts counts = { cache->hits, cache->misses, cache->stores };
        tl_cache_counts_add(cache->folder, &counts);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache->folder);
    free(cache);
}

const char *tl_cache_folder(const tl_cache *cache)
{
    return cache->folder;
}

const char *tl_cache_problem(const tl_cache *cache)
{
    return cache->problem;
}

/* Renews the age of an entry, but not at every hit. */
static void renew(const char *path)
{
    struct stat info;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (stat(path, &info) == 0 && now.tv_sec - info.st_mtim.tv_sec > RENEW_SECONDS)
        utimensat(AT_FDCWD, path, NULL, 0);
}

static bool unpack(const tl_mapping *file, tl_cached *out)
{
    header h;

    if (file->size < sizeof h)
        return false;
    memcpy(&h, file->data, sizeof h);
    const unsigned char *rest = (const unsigned char *)file->data + sizeof h;
    size_t size = file->size - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.descriptor_size > size ||
        h.object_size != size - h.descriptor_size || tl_checksum(rest, size) != h.checksum ||
        memchr(rest, '\0', h.descriptor_size) != NULL)
        return false;

    out->object_size = h.object_size;
    out->object = malloc(h.object_size + 1);
    out->descriptor = strndup((const char *)rest, h.descriptor_size);
    if (out->object == NULL || out->descriptor == NULL) {
        tl_cached_free(out);
        return false;
    }
    memcpy(out->object, rest + h.descriptor_size, h.object_size);
    return true;
}

static void count(tl_cache *cache, int64_t *counter)
{
    pthread_mutex_lock(&cache->lock);
    ++*counter;
    pthread_mutex_unlock(&cache->lock);
}

static bool find(tl_cache *cache, const char *key, tl_cached *out)
{
    tl_mapping file;

    if (cache->folder == NULL || !tl_cache_is_key(key))
        return false;
    char *path = path_of(cache, "objects", key, ".obj");
    bool found = path != NULL && tl_file_map(path, &file, NULL) == TL_OK;
    if (found) {
        found = unpack(&file, out);
        tl_file_unmap(&file);
        if (found)
            renew(path);
        else
            unlink(path); /* damaged: it would be a miss for ever */
    }
    free(path);
    return found;
}

bool tl_cache_find(tl_cache *cache, const char *key, tl_cached *out)
{
    *out = (tl_cached){ 0 };
    bool found = find(cache, key, out);

    count(cache, found ? &cache->hits : &cache->misses);
    return found;
}

bool tl_cache_find_note(tl_cache *cache, const char *key, tl_cached *out)
{
    *out = (tl_cached){ 0 };
    return find(cache, key, out);
}

void tl_cached_free(tl_cached *cached)
{
    free(cached->object);
    free(cached->descriptor);
    *cached = (tl_cached){ 0 };
}

static bool write_entry(const char *path, const void *bytes, size_t size)
{
    tl_file *file;

    if (tl_file_create_private(path, &file, NULL) != TL_OK)
        return false;
    if (tl_file_append(file, bytes, size, NULL) != TL_OK) {
        tl_file_abandon(file);
        return false;
    }
    return tl_file_commit_unsynced(file, NULL) == TL_OK;
}

static bool store(tl_cache *cache, const char *key, const void *object, size_t size,
                  const char *descriptor)
{
    if (cache->folder == NULL || !tl_cache_is_key(key))
        return false;
    header h = { .descriptor_size = strlen(descriptor), .object_size = size };
    size_t total = sizeof h + h.descriptor_size + size;
    unsigned char *bytes = malloc(total);
    char *path = path_of(cache, "objects", key, ".obj");
    bool stored = false;

    if (bytes != NULL && path != NULL) {
        memcpy(h.magic, magic, sizeof magic);
        memcpy(bytes + sizeof h, descriptor, h.descriptor_size);
        memcpy(bytes + sizeof h + h.descriptor_size, object, size);
        h.checksum = tl_checksum(bytes + sizeof h, total - sizeof h);
        memcpy(bytes, &h, sizeof h);
        stored = write_entry(path, bytes, total);
    }
    free(bytes);
    free(path);
    if (!stored)
        return false;

    pthread_mutex_lock(&cache->lock);
    if (cache->bytes != TL_CACHE_UNKNOWN)
        cache->bytes += (int64_t)total;
    bool look = cache->bytes == TL_CACHE_UNKNOWN || cache->bytes > cache->limit;
    pthread_mutex_unlock(&cache->lock);
    if (look)
        tl_cache_trim(cache, cache->limit);
    return true;
}

bool tl_cache_store(tl_cache *cache, const char *key, const void *object, size_t size,
                    const char *descriptor)
{
    bool stored = store(cache, key, object, size, descriptor);

    if (stored)
        count(cache, &cache->stores);
    return stored;
}

bool tl_cache_store_note(tl_cache *cache, const char *key, const void *note, size_t size)
{
    return store(cache, key, note, size, "{}");
}

bool tl_cache_executable_folder(const tl_cache *cache, const char *key, tl_text *out)
{
    if (cache->folder == NULL || !tl_cache_is_key(key))
        return false;
    tl_text_format(out, "%s/models/%s", cache->folder, key);
    return !out->failed;
}

void tl_cache_touch(tl_cache *cache, const char *key)
{
    if (cache->folder == NULL || !tl_cache_is_key(key))
        return;
    char *path = path_of(cache, "models", key, "/executable.json");
    if (path != NULL)
        renew(path);
    free(path);
    count(cache, &cache->hits);
}
