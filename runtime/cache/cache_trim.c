/* runtime/cache/cache_trim.c: what lies in the cache, and removing the least recently used of it. Only what has a name of the
 * cache's own form (cache_names.c) is seen. */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/array.h"
#include "runtime/cache/cache_private.h"

/* Something that is removed as a whole: an object's file or an executable's folder. */
typedef struct {
    bool folder;
    char name[NAME_MAX + 1];
    int64_t bytes;
    struct timespec used;
} item;

typedef struct {
    item *items;
    int count, capacity;
    int64_t bytes;
} inventory;

static item *add_item(inventory *all)
{
    if (!TL_HEAP_ROOM(all->items, all->count, all->capacity))
        return NULL;
    return &all->items[all->count++];
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* An executable was used when its newest file was written or renewed. False: the folder has other things only. */
static bool measure_folder(int at, item *model)
{
    DIR *folder = tl_cache_open_folder(at, model->name);
    struct stat info;
    int ours = 0, others = 0;

    if (folder == NULL)
        return false;
    for (struct dirent *d; (d = readdir(folder)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (!tl_cache_is_model_name(d->d_name) ||
            fstatat(dirfd(folder), d->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode)) {
            others++;
            continue;
        }
        ours++;
        model->bytes += info.st_size;
        if (is_later(info.st_mtim, model->used))
            model->used = info.st_mtim;
    }
    closedir(folder);
    return ours > 0 || others == 0;
}

static void take_inventory(inventory *all, DIR *kind, bool folders)
{
    assert(all->count >= 0 && all->bytes >= 0);
    struct stat info;

    for (struct dirent *d; (d = readdir(kind)) != NULL;) {
        item one = { .folder = folders };
        if (!(folders ? tl_cache_is_key : tl_cache_is_object_name)(d->d_name) ||
            fstatat(dirfd(kind), d->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !(folders ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)))
            continue;
        strcpy(one.name, d->d_name);
        if (!folders)
            one.bytes = info.st_size;
        else if (!measure_folder(dirfd(kind), &one))
            continue;
        if (one.used.tv_sec == 0) /* a file, or a folder without any yet */
            one.used = info.st_mtim;
        item *i = add_item(all);
        if (i == NULL)
            return;
        *i = one;
        all->bytes += one.bytes;
    }
}

static int oldest_first(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (is_later(x->used, y->used) || is_later(y->used, x->used))
        return is_later(x->used, y->used) ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Of a folder what is ours, and the folder when that was all. */
static void remove_item(int objects, int models, const item *i)
{
    if (!i->folder) {
        unlinkat(objects, i->name, 0);
        return;
    }
    DIR *folder = tl_cache_open_folder(models, i->name);
    struct stat info;
    if (folder != NULL) {
        /* first the file that makes the others count */
        unlinkat(dirfd(folder), "executable.json", 0);
        for (struct dirent *d; (d = readdir(folder)) != NULL;)
            if (tl_cache_is_model_name(d->d_name) &&
                fstatat(dirfd(folder), d->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(info.st_mode))
                unlinkat(dirfd(folder), d->d_name, 0);
        closedir(folder);
    }
    unlinkat(models, i->name, AT_REMOVEDIR);
}

/* Only where nothing was removed: the most recently used first. */
static void show_items(inventory *all, tl_cache_visitor *visit, void *user)
{
    if (all->count > 0)
        qsort(all->items, (size_t)all->count, sizeof(item), oldest_first);
    for (int n = all->count; n-- > 0;) {
        item *i = &all->items[n];
        i->name[TL_CACHE_KEY] = '\0'; /* without the suffix */
        visit(user, &(tl_cache_entry){ i->name, i->folder, i->bytes, i->used.tv_sec });
    }
}

/* Counts, and removes the oldest until `keep` bytes are left; shows all of it to `visit`, when not NULL
 * (then nothing may have to go). */
static inventory sweep(const char *path, int64_t keep, tl_cache_visitor *visit, void *user)
{
    inventory all = { 0 };
    DIR *root = tl_cache_open_folder(AT_FDCWD, path);
    if (root == NULL)
        return all;
    DIR *objects = tl_cache_open_folder(dirfd(root), "objects"),
        *models = tl_cache_open_folder(dirfd(root), "models");

    if (objects != NULL && models != NULL) {
        take_inventory(&all, objects, false);
        take_inventory(&all, models, true);
        if (all.bytes > keep && all.count > 0) {
            qsort(all.items, (size_t)all.count, sizeof(item), oldest_first);
            int gone = 0;
            for (; gone < all.count && all.bytes > keep; gone++) {
                remove_item(dirfd(objects), dirfd(models), &all.items[gone]);
                all.bytes -= all.items[gone].bytes;
            }
            all.count -= gone;
        }
        if (visit != NULL)
            show_items(&all, visit, user);
    }
    if (objects != NULL)
        closedir(objects);
    if (models != NULL)
        closedir(models);
    closedir(root);
    free(all.items);
    all.items = NULL;
    return all;
}

tl_cache_stats tl_cache_measure(tl_cache *cache)
{
    tl_cache_stats stats = { .limit = cache->limit };

    if (cache->folder != NULL) {
        inventory all = sweep(cache->folder, INT64_MAX, NULL, NULL);
        stats.entries = (int64_t)all.count;
        stats.bytes = all.bytes;
    }
    pthread_mutex_lock(&cache->lock);
    stats.hits = cache->hits;
    stats.misses = cache->misses;
    stats.stores = cache->stores;
    pthread_mutex_unlock(&cache->lock);
    if (cache->folder != NULL) {
        tl_cache_counts all = tl_cache_counts_read(cache->folder);
        stats.all_hits = all.hits + stats.hits;
        stats.all_misses = all.misses + stats.misses;
        stats.all_stores = all.stores + stats.stores;
    }
    return stats;
}

void tl_cache_visit(tl_cache *cache, tl_cache_visitor *visit, void *user)
{
    if (cache->folder != NULL)
        sweep(cache->folder, INT64_MAX, visit, user);
}

void tl_cache_trim(tl_cache *cache, int64_t limit)
{
    if (cache->folder == NULL)
        return;
    /* Below the limit by a tenth, so that the next stores do not sweep again. */
    inventory all = sweep(cache->folder, INT64_MAX, NULL, NULL);
    if (limit == 0)
        sweep(cache->folder, -1, NULL, NULL);
    else if (all.bytes > limit)
        all = sweep(cache->folder, limit - limit / 10, NULL, NULL);
    pthread_mutex_lock(&cache->lock);
    cache->bytes = limit == 0 ? 0 : all.bytes;
    if (limit == 0)
        cache->hits = cache->misses = cache->stores = 0;
    pthread_mutex_unlock(&cache->lock);
    if (limit == 0)
        tl_cache_counts_reset(cache->folder);
}
