/* tests/runtime/test_cache.c: what was stored is found; whatever is wrong is a miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "runtime/base/random.h"
#include "runtime/cache/cache.h"
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

/* A key of the form that keys have. */
static const char *key_of(int number)
{
    static char keys[4][33];
    static int next;
    char *key = keys[next++ % 4];

    snprintf(key, sizeof keys[0], "%032x", (unsigned)number);
    return key;
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
    assert_false(tl_cache_find(cache, key_of(1), &c));
    assert_true(tl_cache_store(cache, key_of(1), "obj\0ect", 7, "{\"d\":1}"));
    assert_true(tl_cache_store(cache, key_of(2), "", 0, ""));
    assert_true(tl_cache_find(cache, key_of(1), &c));
    assert_int_equal(c.object_size, 7);
    assert_memory_equal(c.object, "obj\0ect", 7);
    assert_string_equal(c.descriptor, "{\"d\":1}");
    tl_cached_free(&c);
    assert_true(tl_cache_find(cache, key_of(2), &c));
    assert_int_equal(c.object_size, 0);
    tl_cached_free(&c);

    assert_true(tl_cache_store(cache, key_of(1), "new", 3, "{}")); /* replaces */
    tl_cache_close(cache);
    cache = open_cache(path, 0); /* and lasts */
    assert_true(tl_cache_find(cache, key_of(1), &c));
    assert_memory_equal(c.object, "new", 3);
    tl_cached_free(&c);

    tl_cache_stats stats = tl_cache_measure(cache);
    assert_int_equal(stats.entries, 2);
    assert_int_equal(stats.hits, 1);
    tl_cache_trim(cache, 0);
    assert_int_equal(tl_cache_measure(cache).entries, 0);
    assert_false(tl_cache_find(cache, key_of(1), &c));
    tl_cache_close(cache);
    free(path);
}

static void strange_keys_are_misses(void **state)
{
    static const struct {
        const char *key;
        bool is_one;
    } keys[] = { { "", false },
                 { "../x", false },
                 { ".", false },
                 { "k", false },
                 { "0123456789abcdef0123456789abcde", false },
                 { "0123456789abcdef0123456789abcdef", true },
                 { "0123456789abcdef0123456789abcdef0", false },
                 { "0123456789ABCDEF0123456789abcdef", false },
                 { "0123456789abcdef/123456789abcdef", false } };
    char *path = path_in(folder, "strange");
    tl_cache *cache = open_cache(path, 0);
    tl_cached c;
    tl_text text = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(tl_cache_store(cache, keys[i].key, "x", 1, "{}"), keys[i].is_one);
        assert_int_equal(tl_cache_find(cache, keys[i].key, &c), keys[i].is_one);
        tl_cached_free(&c);
        assert_int_equal(tl_cache_executable_folder(cache, keys[i].key, &text), keys[i].is_one);
    }
    tl_text_free(&text);
    tl_cache_close(cache);
    free(path);
}

static void damaged_entries_are_misses(void **state)
{
    (void)state;
    char *path = path_in(folder, "damaged");
    char *entry = path_in(path, "objects/00000000000000000000000000000001.obj");
    tl_cache *cache = open_cache(path, 0);
    tl_random r = tl_random_make(5);
    tl_cached c;
    tl_text whole = { 0 };

    assert_true(tl_cache_store(cache, key_of(1), "0123456789", 10, "{\"a\":2}"));
    assert_int_equal(tl_file_read(entry, &whole, NULL), TL_OK);
    for (size_t cut = 0; cut < whole.size; cut++) {
        assert_int_equal(tl_file_write(entry, whole.data, cut, NULL), TL_OK);
        assert_false(tl_cache_find(cache, key_of(1), &c));
        assert_int_equal(access(entry, F_OK), -1); /* gone, so that it can be stored again */
    }
    for (size_t at = 0; at < whole.size; at++) {
        char kept = whole.data[at];
        whole.data[at] ^= (char)(1 << tl_random_below(&r, 8));
        assert_int_equal(tl_file_write(entry, whole.data, whole.size, NULL), TL_OK);
        assert_false(tl_cache_find(cache, key_of(1), &c));
        whole.data[at] = kept;
    }
    assert_int_equal(tl_file_write(entry, whole.data, whole.size, NULL), TL_OK);
    assert_true(tl_cache_find(cache, key_of(1), &c));
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
    char *path = path_in(folder, "bounded"), object[SIZE] = { 0 };
    tl_cache *cache = open_cache(path, 0);
    tl_text model = { 0 };

    /* entry i was used i minutes after an early hour, the model in the middle of them */
    for (int i = 0; i < ENTRIES; i++) {
        struct timespec times[2] = { { 1000000 + 60 * i, 0 }, { 1000000 + 60 * i, 0 } };
        char *entry;
        assert_true(tl_cache_store(cache, key_of(i), object, SIZE, "{}"));
        if (asprintf(&entry, "%s/objects/%s.obj", path, key_of(i)) < 0)
            abort();
        assert_int_equal(utimensat(AT_FDCWD, entry, times, 0), 0);
        free(entry);
    }
    assert_true(tl_cache_executable_folder(cache, key_of(1000), &model));
    assert_int_equal(tl_folder_make(model.data, NULL), TL_OK);
    char *json = path_in(model.data, "executable.json");
    struct timespec middle[2] = { { 1000000 + 60 * 15 - 30, 0 }, { 1000000 + 60 * 15 - 30, 0 } };
    assert_int_equal(tl_file_write(json, object, SIZE, NULL), TL_OK);
    assert_int_equal(utimensat(AT_FDCWD, json, middle, 0), 0);

    assert_int_equal(tl_cache_measure(cache).entries, ENTRIES + 1);
    tl_cached c;
    assert_true(tl_cache_find(cache, key_of(0), &c)); /* a hit renews it */
    tl_cached_free(&c);
    tl_cache_trim(cache, 12 * 1100);
    assert_true(tl_cache_measure(cache).bytes <= 12 * 1100);
    assert_true(tl_cache_find(cache, key_of(0), &c));
    tl_cached_free(&c);
    assert_true(tl_cache_find(cache, key_of(29), &c));
    tl_cached_free(&c);
    assert_false(tl_cache_find(cache, key_of(1), &c));
    assert_int_equal(access(json, F_OK), -1);
    tl_cache_close(cache);

    cache = open_cache(path, 5 * 1100); /* a store beyond the limit trims by itself */
    assert_true(tl_cache_store(cache, key_of(7), object, SIZE, "{}"));
    assert_true(tl_cache_measure(cache).bytes <= 5 * 1100);
    assert_true(tl_cache_find(cache, key_of(7), &c));
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

    assert_false(tl_cache_store(cache, key_of(1), "x", 1, "{}"));
    assert_false(tl_cache_find(cache, key_of(1), &c));
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

static void write_at(const char *base, const char *name, const char *text)
{
    char *path = path_in(base, name), *parent = path_in(base, name);

    assert_int_equal(tl_folder_make(dirname(parent), NULL), TL_OK);
    free(parent);
    assert_int_equal(tl_file_write(path, text, strlen(text), NULL), TL_OK);
    free(path);
}

static bool is_there(const char *base, const char *name)
{
    struct stat info;
    char *path = path_in(base, name);
    bool found = lstat(path, &info) == 0;

    free(path);
    return found;
}

#define KEY_A "00000000000000000000000000000001"
#define KEY_B "00000000000000000000000000000002"

/* What was no cache before is none now, and nothing in it is touched. */
static void foreign_folders_are_refused(void **state)
{
    static const struct {
        const char *file, *text;
    } cases[] = {
        { "weights.bin", "w" },
        { "models/llama.bin", "w" },
        { "models/llama/weights.bin", "w" },
        { "models/" KEY_A "/weights.bin", "w" },
        { "models/" KEY_A, "a file" },
        { "objects/main.o", "o" },
        { "objects/" KEY_A ".obj.bak", "o" },
        { "objects/" KEY_A ".obj/x", "o" },
        { "objects/" KEY_A ".obj", "o" }, /* without models beside it */
        { "counts", "twelve\n" },
        { "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# cargo\n" },
        { "CACHEDIR.TAG",
          "Signature: 8a477f597d28d172789f06886806bc55\n# tilth cache, version 2\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        tl_cache *cache;
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        snprintf(name, sizeof name, "foreign%d/tilth", (int)i);
        char *path = path_in(folder, name), *file = path_in(path, cases[i].file);
        write_at(path, cases[i].file, cases[i].text);
        assert_int_equal(tl_cache_open(path, 1, &cache, &diag), TL_BAD_ARGUMENT);
        assert_null(cache);
        assert_non_null(strstr(diag.text, path));
        assert_non_null(strstr(diag.text, "cache of "));

        /* as the default folder it cannot be used */
        snprintf(name, sizeof name, "foreign%d", (int)i);
        char *parent = path_in(folder, name);
        setenv("XDG_CACHE_HOME", parent, 1);
        free(parent);
        cache = open_cache(NULL, 1);
        unsetenv("XDG_CACHE_HOME");
        assert_null(tl_cache_folder(cache));
        assert_string_equal(tl_cache_problem(cache), diag.text);
        assert_false(tl_cache_store(cache, KEY_A, "x", 1, "{}"));
        tl_cache_trim(cache, 0);
        tl_cache_close(cache);

        assert_int_equal(tl_file_read(file, &text, NULL), TL_OK);
        assert_string_equal(tl_text_get(&text), cases[i].text);
        tl_text_free(&text);
        free(file);
        free(path);
    }
    tl_cache *cache;
    tl_diag diag = { 0 };
    assert_int_equal(tl_cache_open("", 0, &cache, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "is empty"));
}

/* Caches had no tag once. */
static void a_cache_of_before_is_taken_over(void **state)
{
    (void)state;
    char *path = path_in(folder, "before");
    write_at(path, "objects/" KEY_A ".obj", "damaged");
    write_at(path, "objects/" KEY_B ".obj.1f-0", "left by a process that died");
    write_at(path, "models/" KEY_B "/executable.json", "{}");
    write_at(path, "models/" KEY_B "/prepared.bin", "p");
    write_at(path, "counts", "hits 3 misses 4 stores 5\n");
    tl_cache *cache = open_cache(path, 0);
    assert_string_equal(tl_cache_folder(cache), path);
    assert_true(is_there(path, "CACHEDIR.TAG"));
    tl_cache_stats stats = tl_cache_measure(cache);
    assert_int_equal(stats.entries, 3);
    assert_int_equal(stats.all_hits, 3);
    tl_cache_close(cache);

    write_at(path, "models/later.bin", "from now on the tag decides");
    cache = open_cache(path, 0);
    assert_string_equal(tl_cache_folder(cache), path);
    tl_cache_trim(cache, 0);
    assert_int_equal(tl_cache_measure(cache).entries, 0);
    assert_true(is_there(path, "models/later.bin"));
    assert_false(is_there(path, "objects/" KEY_B ".obj.1f-0"));
    assert_false(is_there(path, "models/" KEY_B));
    tl_cache_close(cache);

    char *empty = path_in(folder, "made_and_not_used");
    char *objects = path_in(empty, "objects"), *models = path_in(empty, "models");
    assert_int_equal(tl_folder_make(objects, NULL), TL_OK);
    assert_int_equal(tl_folder_make(models, NULL), TL_OK);
    cache = open_cache(empty, 0);
    assert_string_equal(tl_cache_folder(cache), empty);
    tl_cache_close(cache);
    free(models);
    free(objects);
    free(empty);
    free(path);
}

/* What others put into a cache is not counted, not listed and stays; links are not followed. */
static void others_things_in_a_cache_stay(void **state)
{
    (void)state;
    static const char *const foreign[] = { "objects/weights.bin",
                                           "objects/" KEY_A ".o",
                                           "objects/" KEY_A,
                                           "models/big.bin",
                                           "models/mine/executable.json",
                                           "models/" KEY_B "/notes.txt",
                                           "models/" KEY_B "/executable.json.bak",
                                           "top.bin" };
    char *path = path_in(folder, "shared_use"), *outside = path_in(folder, "outside");
    char *link = path_in(path, "models/00000000000000000000000000000003");
    char *file_link = path_in(path, "objects/00000000000000000000000000000004.obj");
    char *inner_link = path_in(path, "models/" KEY_B "/prepared.bin");
    char *target = path_in(outside, "executable.json");
    tl_cache *cache = open_cache(path, 0);

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        write_at(path, foreign[i], "foreign");
    write_at(path, "models/" KEY_B "/executable.json", "{}");
    write_at(outside, "executable.json", "foreign");
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(symlink(target, file_link), 0);
    assert_int_equal(symlink(target, inner_link), 0);
    assert_true(tl_cache_store(cache, KEY_A, "x", 1, "{}"));
    tl_cache_stats stats = tl_cache_measure(cache);
    assert_int_equal(stats.entries, 2);
    assert_true(stats.bytes < 200);
    tl_cache_trim(cache, 1);
    tl_cache_trim(cache, 0);
    assert_int_equal(tl_cache_measure(cache).entries, 0);
    assert_false(is_there(path, "objects/" KEY_A ".obj"));
    assert_false(is_there(path, "models/" KEY_B "/executable.json"));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_true(is_there(path, foreign[i]));
    assert_true(is_there(outside, "executable.json"));
    tl_cache_close(cache);

    /* a link in the place of one of the two folders */
    char *models = path_in(path, "models"), *aside = path_in(path, "aside");
    assert_int_equal(rename(models, aside), 0);
    assert_int_equal(symlink(outside, models), 0);
    cache = open_cache(path, 0);
    assert_null(tl_cache_folder(cache));
    tl_cache_close(cache);
    free(aside);
    free(models);
    free(target);
    free(inner_link);
    free(file_link);
    free(link);
    free(outside);
    free(path);
}

static int wide; /* names that others may use */

static int look_at_mode(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)path, (void)type, (void)where;
    wide += (info->st_mode & 077) != 0;
    return 0;
}

static void what_is_made_is_private(void **state)
{
    (void)state;
    char *path = path_in(folder, "private");
    mode_t kept = umask(0);
    tl_cache *cache = open_cache(path, 0);
    bool stored = tl_cache_store(cache, key_of(1), "x", 1, "{}");
    tl_cache_close(cache);
    umask(kept);
    assert_true(stored);
    wide = 0;
    assert_int_equal(nftw(path, look_at_mode, 16, FTW_PHYS), 0);
    assert_int_equal(wide, 0);
    free(path);
}

/* Many processes that find no folder: each has a cache. */
static void many_may_begin_at_once(void **state)
{
    (void)state;
    enum { ROUNDS = 40, PROCESSES = 6 };
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        pid_t children[PROCESSES];
        snprintf(name, sizeof name, "race%d", round);
        char *path = path_in(folder, name);
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            assert_true(children[i] >= 0);
            if (children[i] == 0) {
                tl_cache *cache;
                bool ok = tl_cache_open(path, 0, &cache, NULL) == TL_OK &&
                          tl_cache_folder(cache) != NULL &&
                          tl_cache_store(cache, key_of(i), "x", 1, "{}");
                if (ok)
                    tl_cache_close(cache);
                _exit(ok ? 0 : 1);
            }
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        tl_cache *cache = open_cache(path, 0);
        assert_int_equal(tl_cache_measure(cache).entries, PROCESSES);
        tl_cache_close(cache);
        free(path);
    }
}

static void a_store_that_fails_leaves_nothing(void **state)
{
    (void)state;
    char *path = path_in(folder, "readonly"), *objects = path_in(path, "objects");
    tl_cache *cache = open_cache(path, 0);

    assert_int_equal(rmdir(objects), 0); /* root may write anywhere: take the folder away */
    assert_false(tl_cache_store(cache, key_of(1), "x", 1, "{}"));
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
        cmocka_unit_test(foreign_folders_are_refused),
        cmocka_unit_test(a_cache_of_before_is_taken_over),
        cmocka_unit_test(others_things_in_a_cache_stay),
        cmocka_unit_test(what_is_made_is_private),
        cmocka_unit_test(many_may_begin_at_once),
        cmocka_unit_test(a_store_that_fails_leaves_nothing),
        cmocka_unit_test(the_default_follows_the_environment),
    };
    return cmocka_run_group_tests_name("object cache", tests, make_folder, remove_folder);
}
