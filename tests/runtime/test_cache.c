/* tests/runtime/test_cache.c: what was stored is found; whatever is wrong is a miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "runtime/base/random.h"
#include "runtime/cache.h"
#include "tests/runtime/kernels.h"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = temp_folder_make();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

static tl_cache *open_cache(const char *path, int64_t limit)
{
    tl_cache *cache;

    assert_int_equal(tl_cache_open(path, limit, &cache, NULL), TL_OK);
    return cache;
}

static void stores_and_finds(void **state)
{
    (void)state;
    char *path = path_in(folder, "a/b");
    tl_cache *cache = open_cache(path, 0);
    tl_cached c;
    struct stat info;

    assert_string_equal(tl_cache_folder(cache), path);
    assert_string_equal(tl_cache_problem(cache), "");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_false(tl_cache_find(cache, "k1", &c));
    assert_true(tl_cache_store(cache, "k1", "obj\0ect", 7, "{\"d\":1}"));
    assert_true(tl_cache_store(cache, "k2", "", 0, ""));
    assert_true(tl_cache_find(cache, "k1", &c));
    assert_int_equal(c.object_size, 7);
    assert_memory_equal(c.object, "obj\0ect", 7);
    assert_string_equal(c.descriptor, "{\"d\":1}");
    tl_cached_free(&c);
    assert_true(tl_cache_find(cache, "k2", &c));
    assert_int_equal(c.object_size, 0);
    tl_cached_free(&c);

    assert_true(tl_cache_store(cache, "k1", "new", 3, "{}")); /* replaces */
    tl_cache_close(cache);
    cache = open_cache(path, 0); /* and lasts */
    assert_true(tl_cache_find(cache, "k1", &c));
    assert_memory_equal(c.object, "new", 3);
    tl_cached_free(&c);

    tl_cache_stats stats = tl_cache_measure(cache);
    assert_int_equal(stats.entries, 2);
    assert_int_equal(stats.hits, 1);
    tl_cache_trim(cache, 0);
    assert_int_equal(tl_cache_measure(cache).entries, 0);
    assert_false(tl_cache_find(cache, "k1", &c));
    tl_cache_close(cache);
    free(path);
}

static void strange_keys_are_misses(void **state)
{
    static const char *const keys[] = { "",
                                        "../x",
                                        "a/b",
                                        "a b",
                                        ".",
                                        "ä",
                                        "0123456789012345678901234567890123456789012345678901234567"
                                        "8901234" };
    tl_cache *cache = open_cache(folder, 0);
    tl_cached c;
    tl_text text = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool wanted = strlen(keys[i]) > 10 && strlen(keys[i]) <= 64;
        assert_int_equal(tl_cache_store(cache, keys[i], "x", 1, "{}"), wanted);
        assert_int_equal(tl_cache_find(cache, keys[i], &c), wanted);
        tl_cached_free(&c);
        assert_int_equal(tl_cache_executable_folder(cache, keys[i], &text), wanted);
    }
    tl_text_free(&text);
    tl_cache_close(cache);
}

static void damaged_entries_are_misses(void **state)
{
    (void)state;
    char *path = path_in(folder, "damaged"), *entry = path_in(path, "objects/k.obj");
    tl_cache *cache = open_cache(path, 0);
    tl_random r = tl_random_make(5);
    tl_cached c;
    tl_text whole = { 0 };

    assert_true(tl_cache_store(cache, "k", "0123456789", 10, "{\"a\":2}"));
    assert_int_equal(tl_file_read(entry, &whole, NULL), TL_OK);
    for (size_t cut = 0; cut < whole.size; cut++) {
        assert_int_equal(tl_file_write(entry, whole.data, cut, NULL), TL_OK);
        assert_false(tl_cache_find(cache, "k", &c));
        assert_int_equal(access(entry, F_OK), -1); /* gone, so that it can be stored again */
    }
    for (size_t at = 0; at < whole.size; at++) {
        char kept = whole.data[at];
        whole.data[at] ^= (char)(1 << tl_random_below(&r, 8));
        assert_int_equal(tl_file_write(entry, whole.data, whole.size, NULL), TL_OK);
        assert_false(tl_cache_find(cache, "k", &c));
        whole.data[at] = kept;
    }
    assert_int_equal(tl_file_write(entry, whole.data, whole.size, NULL), TL_OK);
    assert_true(tl_cache_find(cache, "k", &c));
    tl_cached_free(&c);
    tl_text_free(&whole);
    tl_cache_close(cache);
    free(entry);
    free(path);
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    enum { SIZE = 1000, ENTRIES = 30 };
    char *path = path_in(folder, "bounded"), object[SIZE] = { 0 }, key[16];
    tl_cache *cache = open_cache(path, 0);
    tl_text model = { 0 };

    /* entry i was used i minutes after an early hour, the model in the middle of them */
    for (int i = 0; i < ENTRIES; i++) {
        struct timespec times[2] = { { 1000000 + 60 * i, 0 }, { 1000000 + 60 * i, 0 } };
        char *entry;
        snprintf(key, sizeof key, "k%d", i);
        assert_true(tl_cache_store(cache, key, object, SIZE, "{}"));
        if (asprintf(&entry, "%s/objects/%s.obj", path, key) < 0)
            abort();
        assert_int_equal(utimensat(AT_FDCWD, entry, times, 0), 0);
        free(entry);
    }
    assert_true(tl_cache_executable_folder(cache, "m", &model));
    assert_int_equal(tl_folder_make(model.data, NULL), TL_OK);
    char *json = path_in(model.data, "executable.json");
    struct timespec middle[2] = { { 1000000 + 60 * 15 - 30, 0 }, { 1000000 + 60 * 15 - 30, 0 } };
    assert_int_equal(tl_file_write(json, object, SIZE, NULL), TL_OK);
    assert_int_equal(utimensat(AT_FDCWD, json, middle, 0), 0);

    assert_int_equal(tl_cache_measure(cache).entries, ENTRIES + 1);
    tl_cached c;
    assert_true(tl_cache_find(cache, "k0", &c)); /* a hit renews it */
    tl_cached_free(&c);
    tl_cache_trim(cache, 12 * 1100);
    assert_true(tl_cache_measure(cache).bytes <= 12 * 1100);
    assert_true(tl_cache_find(cache, "k0", &c));
    tl_cached_free(&c);
    assert_true(tl_cache_find(cache, "k29", &c));
    tl_cached_free(&c);
    assert_false(tl_cache_find(cache, "k1", &c));
    assert_int_equal(access(json, F_OK), -1);
    tl_cache_close(cache);

    cache = open_cache(path, 5 * 1100); /* a store beyond the limit trims by itself */
    assert_true(tl_cache_store(cache, "new", object, SIZE, "{}"));
    assert_true(tl_cache_measure(cache).bytes <= 5 * 1100);
    assert_true(tl_cache_find(cache, "new", &c));
    tl_cached_free(&c);
    tl_cache_close(cache);
    tl_text_free(&model);
    free(json);
    free(path);
}

static void check_unusable(const char *path)
{
    tl_cache *cache = open_cache(path, 0);
    tl_cached c;

    assert_false(tl_cache_store(cache, "k", "x", 1, "{}"));
    assert_false(tl_cache_find(cache, "k", &c));
    tl_cache_trim(cache, 1);
    assert_int_equal(tl_cache_measure(cache).bytes, 0);
    tl_cache_close(cache);
}

static void unusable_folders_are_misses(void **state)
{
    (void)state;
    char *file = path_in(folder, "file"), *below = path_in(file, "cache");
    assert_int_equal(tl_file_write(file, "x", 1, NULL), TL_OK);
    check_unusable(file);
    check_unusable(below);
    check_unusable("/proc/tilth");
    char *shared = path_in(folder, "shared");
    assert_int_equal(mkdir(shared, 0700), 0);
    assert_int_equal(chmod(shared, 0777), 0); /* anyone could put code in it */
    check_unusable(shared);
    free(shared);
    tl_cache *cache = open_cache(below, 0);
    assert_null(tl_cache_folder(cache));
    assert_true(strlen(tl_cache_problem(cache)) > 0);
    tl_cache_close(cache);
    free(below);
    free(file);
}

static void a_store_that_fails_leaves_nothing(void **state)
{
    (void)state;
    char *path = path_in(folder, "readonly"), *objects = path_in(path, "objects");
    tl_cache *cache = open_cache(path, 0);

    assert_int_equal(rmdir(objects), 0); /* root may write anywhere: take the folder away */
    assert_false(tl_cache_store(cache, "k", "x", 1, "{}"));
    assert_int_equal(access(objects, F_OK), -1);
    tl_cache_close(cache);
    free(objects);
    free(path);
}

static void the_default_follows_the_environment(void **state)
{
    (void)state;
    char *xdg = path_in(folder, "xdg"), *want = path_in(xdg, "tilth");
    char *kept = getenv("XDG_CACHE_HOME");
    kept = kept != NULL ? strdup(kept) : NULL;

    setenv("XDG_CACHE_HOME", xdg, 1);
    tl_cache *cache = open_cache(NULL, 0);
    assert_string_equal(tl_cache_folder(cache), want);
    tl_cache_close(cache);
    if (kept != NULL)
        setenv("XDG_CACHE_HOME", kept, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(kept);
    free(want);
    free(xdg);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_and_finds),
        cmocka_unit_test(strange_keys_are_misses),
        cmocka_unit_test(damaged_entries_are_misses),
        cmocka_unit_test(the_oldest_go_first),
        cmocka_unit_test(unusable_folders_are_misses),
        cmocka_unit_test(a_store_that_fails_leaves_nothing),
        cmocka_unit_test(the_default_follows_the_environment),
    };
    return cmocka_run_group_tests_name("object cache", tests, make_folder, remove_folder);
}
