/* tests/driver/test_api.c: the C API as a program uses it: results, ownership, misuse, several threads at once. The
 * installed libraries are the business of test_install.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "driver/api/tilth.h"
#include "models/zoo.h"
#include "tests/runtime/kernels.h"

/* bert_tiny: two inputs i64[1, 128], outputs f32[1, 128, 128] and f32[1, 128]. */
enum {
    TOKENS = 128,
    HIDDEN = 128,
    IDS = TOKENS * 8,
    STATES = TOKENS * HIDDEN * 4,
    POOLED = HIDDEN * 4
};

static char *folder, *path, *cache;
static tl_text bytes; /* of the file at `path` */
static tilth_model *shared;
static _Alignas(64) int64_t ids[TOKENS], mask[TOKENS];
static _Alignas(64) float states[TOKENS * HIDDEN], pooled[HIDDEN]; /* of `shared` on one thread */

#define assert_ok(call) check_ok((call), #call, &error, __FILE__, __LINE__)

static void check_ok(tilth_status status, const char *call, const tilth_error *error,
                     const char *file, int line)
{
    if (status == TILTH_OK)
        return;
    print_error("%s: %s: %s\n", call, tilth_status_text(status), error->text);
    _fail(file, line);
}

/* A call fails with this status, and a sentence that has this part. */
#define assert_fails(status, part, call) \
    check_fails((status), (part), (call), #call, &error, __FILE__, __LINE__)

static void check_fails(tilth_status want, const char *part, tilth_status got, const char *call,
                        const tilth_error *error, const char *file, int line)
{
    if (got == want && strstr(error->text, part) != NULL)
        return;
    print_error("%s: status %d, want %d; '%s' %s '%s'\n", call, (int)got, (int)want, error->text,
                strstr(error->text, part) ? "has" : "lacks", part);
    _fail(file, line);
}

static void write_inputs(tilth_runner *runner)
{
    tilth_error error;
    assert_ok(tilth_runner_write_input(runner, 0, ids, IDS, &error));
    assert_ok(tilth_runner_write_input(runner, 1, mask, IDS, &error));
}

/* Whether a runner on the usual inputs gives what `shared` gave. */
static void check_results(tilth_runner *runner)
{
    tilth_error error;
    float *got = malloc(STATES), *small = malloc(POOLED);
    assert_true(got != NULL && small != NULL);
    assert_ok(tilth_runner_run(runner, &error));
    assert_ok(tilth_runner_read_output(runner, 0, got, STATES, &error));
    assert_ok(tilth_runner_read_output(runner, 1, small, POOLED, &error));
    assert_memory_equal(got, states, STATES);
    assert_memory_equal(small, pooled, POOLED);
    free(got);
    free(small);
}

static int set_up(void **state)
{
    (void)state;
    tilth_load_options options = { .struct_size = sizeof options, .threads = 2 };
    tilth_runner *runner = NULL;
    tilth_error error = { "" };
    folder = temp_folder_make();
    setenv("XDG_DATA_HOME", folder, 1); /* no records but the test's */
    path = path_in(folder, "bert_tiny.onnx");
    cache = path_in(folder, "cache");
    options.cache_folder = cache;
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (i * 37) % 1000;
        mask[i] = i < 100;
    }
    if (tl_zoo_write("bert_tiny", NULL, 0, 3, false, path, NULL) != TL_OK ||
        tl_file_read(path, &bytes, NULL) != TL_OK ||
        tilth_model_load(path, &options, &shared, &error) != TILTH_OK ||
        tilth_runner_create(shared, 1, &runner, &error) != TILTH_OK ||
        tilth_runner_bind_input(runner, 0, ids, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_input(runner, 1, mask, IDS, &error) != TILTH_OK ||
        tilth_runner_bind_output(runner, 0, states, STATES, &error) != TILTH_OK ||
        tilth_runner_bind_output(runner, 1, pooled, POOLED, &error) != TILTH_OK ||
        tilth_runner_run(runner, &error) != TILTH_OK) {
        print_error("%s\n", error.text);
        return -1;
    }
    return tilth_runner_destroy(runner) == TILTH_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tilth_status status = tilth_model_destroy(shared);
    tl_text_free(&bytes);
    free(path);
    free(cache);
    temp_folder_remove(folder);
    return status == TILTH_OK ? 0 : -1;
}

static void values_have_names(void **state)
{
    (void)state;
    assert_string_equal(tilth_version(), TILTH_VERSION);
    for (int i = TILTH_OK; i <= TILTH_INTERNAL; i++)
        assert_string_not_equal(tilth_status_text((tilth_status)i), "unknown status");
    assert_string_equal(tilth_status_text((tilth_status)99), "unknown status");
    assert_string_equal(tilth_status_text((tilth_status)-1), "unknown status");
    assert_string_equal(tilth_dtype_text(TILTH_F32), "f32");
    assert_string_equal(tilth_dtype_text(TILTH_BF16), "bf16");
    assert_string_equal(tilth_dtype_text((tilth_dtype)8), "unknown"); /* ONNX: string */
    assert_int_equal(tilth_dtype_size(TILTH_I64), 8);
    assert_int_equal(tilth_dtype_size(TILTH_BOOL), 1);
    assert_int_equal(tilth_dtype_size((tilth_dtype)0), 0);
    unsigned char *buffer = tilth_buffer_create(0);
    assert_non_null(buffer);
    tilth_buffer_destroy(buffer);
    buffer = tilth_buffer_create(100);
    assert_int_equal((uintptr_t)buffer % TILTH_ALIGNMENT, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(buffer[i], 0);
    tilth_buffer_destroy(buffer);
    assert_null(tilth_buffer_create(SIZE_MAX));
    tilth_buffer_destroy(NULL);
}

static void a_model_tells_its_ports(void **state)
{
    (void)state;
    tilth_error error;
    tilth_tensor_info info;
    tilth_model_facts facts;
    assert_int_equal(tilth_model_input_count(shared), 2);
    assert_int_equal(tilth_model_output_count(shared), 2);
    assert_ok(tilth_model_input(shared, 1, &info, &error));
    assert_string_equal(info.name, "attention_mask");
    assert_int_equal(info.dtype, TILTH_I64);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[1], TOKENS);
    assert_int_equal(info.size, IDS);
    assert_ok(tilth_model_output(shared, 0, &info, &error));
    assert_string_equal(error.text, "");
    assert_int_equal(info.dtype, TILTH_F32);
    assert_int_equal(info.rank, 3);
    assert_int_equal(info.size, STATES);
    assert_int_equal(tilth_model_find_input(shared, "attention_mask"), 1);
    assert_int_equal(tilth_model_find_input(shared, "nonsense"), -1);
    assert_int_equal(tilth_model_find_output(shared, "pooler_output"), 1);
    assert_ok(tilth_model_get_facts(shared, &facts, &error));
    assert_true(facts.kernel_count > 5 && facts.code_bytes > 1000 && facts.flops > 1000000);
    assert_true(facts.constant_bytes > 1000000);
    assert_non_null(facts.name);
}

static void wrong_arguments_of_models(void **state)
{
    (void)state;
    const tilth_status bad = TILTH_BAD_ARGUMENT;
    tilth_error error;
    tilth_tensor_info info;
    tilth_model *m = (void *)1;
    tilth_runner *r = (void *)1;
    assert_fails(bad, "the model is NULL", tilth_model_load(NULL, NULL, &m, &error));
    assert_null(m);
    assert_fails(bad, "nowhere to put", tilth_model_load(path, NULL, NULL, &error));
    assert_int_equal(tilth_model_load(NULL, NULL, NULL, NULL), bad);
    assert_fails(bad, "is NULL", tilth_model_load_memory(NULL, 5, NULL, NULL, &m, &error));
    assert_fails(bad, "0 bytes", tilth_model_load_memory("", 0, NULL, NULL, &m, &error));
    assert_fails(bad, "the model is NULL", tilth_model_open(NULL, NULL, &m, &error));
    assert_fails(bad, "nowhere", tilth_model_open(folder, NULL, NULL, &error));
    assert_fails(bad, "tilth_model_save: the model is NULL",
                 tilth_model_save(NULL, folder, &error));
    assert_fails(bad, "the folder is NULL", tilth_model_save(shared, NULL, &error));
    assert_fails(bad, "is NULL", tilth_model_input(NULL, 0, &info, &error));
    assert_fails(bad, "nowhere", tilth_model_input(shared, 0, NULL, &error));
    assert_fails(bad, "there is no input 2; the model has 2",
                 tilth_model_input(shared, 2, &info, &error));
    assert_fails(bad, "there is no output -1", tilth_model_output(shared, -1, &info, &error));
    assert_fails(bad, "nowhere", tilth_model_get_facts(shared, NULL, &error));
    assert_fails(bad, "is NULL", tilth_runner_create(NULL, 0, &r, &error));
    assert_null(r);
    assert_fails(bad, "nowhere", tilth_runner_create(shared, 0, NULL, &error));
    assert_fails(bad, "-1 threads", tilth_runner_create(shared, -1, &r, &error));
    assert_int_equal(tilth_model_input_count(NULL), 0);
    assert_int_equal(tilth_model_find_input(NULL, "x"), -1);
    assert_int_equal(tilth_model_find_output(shared, NULL), -1);
    assert_int_equal(tilth_pool_threads(NULL), 0);
    assert_int_equal(tilth_runner_memory(NULL), 0);
    assert_int_equal(tilth_model_destroy(NULL), TILTH_OK);
    assert_int_equal(tilth_runner_destroy(NULL), TILTH_OK);
    assert_int_equal(tilth_pool_destroy(NULL), TILTH_OK);
}

static void wrong_options(void **state)
{
    (void)state;
    const tilth_status bad = TILTH_BAD_ARGUMENT;
    tilth_error error;
    tilth_pool *pool = NULL;
    tilth_model *m;
#define LOAD(...)                                                                                \
    tilth_model_load(path, &(tilth_load_options){ sizeof(tilth_load_options), __VA_ARGS__ }, &m, \
                     &error)
#define POOL(...)                                                                              \
    tilth_pool_create(&(tilth_pool_options){ sizeof(tilth_pool_options), __VA_ARGS__ }, &pool, \
                      &error)
    tilth_input_shape shape = { "input_ids", 2, { 1, -5 } };
    assert_fails(bad, "struct_size is 0",
                 tilth_model_load(path, &(tilth_load_options){ 0 }, &m, &error));
    assert_fails(bad, "-2 threads are not in", LOAD(.threads = -2));
    assert_fails(bad, "compile_threads is 100000", LOAD(.compile_threads = 100000));
    assert_fails(bad, "both no_cache and", LOAD(.no_cache = 1, .cache_folder = folder));
    assert_fails(bad, "both no_database and", LOAD(.no_database = 1, .database = path));
    assert_fails(bad, "max_memory is -1 bytes", LOAD(.max_memory = -1));
    assert_fails(TILTH_NO_MEMORY, "(--max-memory)", LOAD(.max_memory = 100000, .no_cache = 1));
    assert_fails(bad, "no such file", LOAD(.database = "/nonexistent/records.db"));
    assert_fails(bad, path, LOAD(.database = path)); /* the model's file is no database */
    assert_fails(bad, "is empty", LOAD(.database = ""));
    assert_fails(bad, "is empty", LOAD(.cache_folder = ""));
    assert_fails(bad, "no cache of tilth", LOAD(.cache_folder = folder));
    assert_fails(bad, "1 shapes at", LOAD(.shape_count = 1));
    assert_fails(bad, "extent 1 for input input_ids is -5",
                 LOAD(.shapes = &shape, .shape_count = 1, .no_cache = 1));
    shape.rank = 9;
    assert_fails(bad, "has rank 9", LOAD(.shapes = &shape, .shape_count = 1));
    shape = (tilth_input_shape){ "nonsense", 1, { 1 } };
    assert_fails(bad, "nonsense", LOAD(.shapes = &shape, .shape_count = 1, .no_cache = 1));
    assert_fails(bad, "no target mips", LOAD(.target = "mips", .no_cache = 1));
    assert_fails(bad, "no target ", LOAD(.target = "", .no_cache = 1));
    assert_fails(bad, "struct_size", tilth_pool_create(&(tilth_pool_options){ 0 }, &pool, &error));
    assert_fails(bad, "nowhere", tilth_pool_create(NULL, NULL, &error));
    assert_fails(bad, "-1 threads", POOL(.threads = -1));
    assert_fails(bad, "pin is 7", POOL(.pin = (tilth_pin)7));
    assert_fails(bad, "spin_us is -1", POOL(.spin_us = -1));
    assert_null(pool);
    assert_ok(POOL(.threads = 1));
    assert_int_equal(tilth_pool_threads(pool), 1);
    assert_fails(bad, "both a pool and 3 threads", LOAD(.pool = pool, .threads = 3));
    assert_int_equal(tilth_pool_destroy(pool), TILTH_OK);
#undef LOAD
#undef POOL
    /* options as a program of version 0.1 passes them: what comes behind them is not looked at */
    tilth_load_options old = { .struct_size = offsetof(tilth_load_options, database),
                               .cache_folder = cache,
                               .threads = 1,
                               .database = "/nonexistent/records.db",
                               .no_database = 1 };
    assert_ok(tilth_model_load(path, &old, &m, &error));
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    old = (tilth_load_options){ .struct_size = offsetof(tilth_load_options, max_turns),
                                .cache_folder = cache,
                                .threads = 1,
                                .no_database = 1,
                                .max_turns = -1,
                                .max_memory = -1 };
    assert_ok(tilth_model_load(path, &old, &m, &error));
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
}

static void files_that_are_no_models(void **state)
{
    (void)state;
    tilth_load_options options = { .struct_size = sizeof options, .no_cache = 1, .threads = 1 };
    tilth_error error;
    tilth_model *m;
    assert_fails(TILTH_BAD_ARGUMENT, "absent.onnx",
                 tilth_model_load("/nowhere/absent.onnx", &options, &m, &error));
    assert_fails(TILTH_BAD_ARGUMENT, "not a regular file",
                 tilth_model_load(folder, &options, &m, &error));
    assert_fails(TILTH_BAD_MODEL, "in memory",
                 tilth_model_load_memory("hello, world", 12, NULL, &options, &m, &error));
    for (size_t part = 1; part < 8; part++) {
        tilth_status status =
            tilth_model_load_memory(bytes.data, bytes.size * part / 8, NULL, &options, &m, &error);
        assert_true(status == TILTH_BAD_MODEL || status == TILTH_UNSUPPORTED);
        assert_null(m);
    }
    assert_fails(TILTH_BAD_ARGUMENT, "", tilth_model_open("/nowhere/x", NULL, &m, &error));
    assert_fails(TILTH_BAD_ARGUMENT, "", tilth_model_open(path, NULL, &m, &error));
}

static void wrong_buffers(void **state)
{
    (void)state;
    const tilth_status bad = TILTH_BAD_ARGUMENT;
    static _Alignas(64) unsigned char other[STATES + 64];
    tilth_error error;
    tilth_runner *r = NULL;
    assert_ok(tilth_runner_create(shared, 1, &r, &error));
    assert_true(tilth_runner_memory(r) > 0);
    assert_fails(bad, "is NULL", tilth_runner_bind_input(NULL, 0, ids, IDS, &error));
    assert_fails(bad, "no input 5", tilth_runner_bind_input(r, 5, ids, IDS, &error));
    assert_fails(bad, "no output -1", tilth_runner_bind_output(r, -1, other, STATES, &error));
    assert_fails(bad, "is i64[1, 128], 1024 bytes; the buffer has 1023",
                 tilth_runner_bind_input(r, 0, ids, IDS - 1, &error));
    assert_fails(bad, "is NULL", tilth_runner_bind_input(r, 0, NULL, IDS, &error));
    assert_fails(bad, "is not aligned to 64 bytes",
                 tilth_runner_bind_output(r, 0, other + 8, STATES, &error));
    assert_fails(bad, "no input 7", tilth_runner_bind_input(r, 7, NULL, 0, &error));
    assert_fails(bad, "the data for input_ids is NULL",
                 tilth_runner_write_input(r, 0, NULL, IDS, &error));
    assert_fails(bad, "the buffer has 4", tilth_runner_write_input(r, 0, ids, 4, &error));
    assert_fails(bad, "no input 2", tilth_runner_write_input(r, 2, ids, IDS, &error));
    assert_fails(bad, "the buffer has 0", tilth_runner_read_output(r, 1, other, 0, &error));
    assert_fails(bad, "no run has written", tilth_runner_read_output(r, 1, other, POOLED, &error));
    assert_fails(bad, "input input_ids was neither bound nor written", tilth_runner_run(r, &error));
    assert_ok(tilth_runner_write_input(r, 0, ids, IDS, &error));
    assert_fails(bad, "input attention_mask", tilth_runner_run(r, &error));
    assert_ok(tilth_runner_bind_input(r, 1, mask, IDS, &error));
    assert_ok(tilth_runner_bind_input(r, 1, NULL, 0, &error));
    assert_fails(bad, "input attention_mask", tilth_runner_run(r, &error));

    /* buffers that overlap */
    assert_ok(tilth_runner_bind_input(r, 1, other + STATES - IDS, IDS, &error));
    assert_ok(tilth_runner_bind_output(r, 0, other, STATES, &error));
    assert_fails(bad, "output last_hidden_state overlaps that of attention_mask",
                 tilth_runner_run(r, &error));
    assert_ok(tilth_runner_bind_input(r, 1, mask, IDS, &error));
    assert_ok(tilth_runner_bind_output(r, 1, other + 64, POOLED, &error));
    assert_fails(bad, "pooler_output overlaps that of last_hidden_state",
                 tilth_runner_run(r, &error));
    assert_ok(tilth_runner_bind_output(r, 1, NULL, 0, &error));
    check_results(r); /* and after all that it still runs */
    assert_fails(bad, "is NULL", tilth_runner_read_output(r, 1, NULL, POOLED, &error));

    /* a place given after the run has nothing in it yet */
    assert_ok(tilth_runner_bind_output(r, 0, other + 64, STATES, &error));
    assert_fails(bad, "no run has written", tilth_runner_read_output(r, 0, other, STATES, &error));
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
}

static void bound_buffers_are_used_themselves(void **state)
{
    (void)state;
    enum { GUARD = 64 };
    static _Alignas(64) unsigned char out[GUARD + STATES + GUARD];
    static _Alignas(64) int64_t mine[TOKENS];
    tilth_error error;
    tilth_runner *r = NULL;
    memset(out, 0xa5, sizeof out);
    memcpy(mine, ids, IDS);
    assert_ok(tilth_runner_create(shared, 1, &r, &error));
    assert_ok(tilth_runner_bind_input(r, 0, mine, IDS, &error));
    assert_ok(tilth_runner_bind_input(r, 1, mask, IDS, &error));
    assert_ok(tilth_runner_bind_output(r, 0, out + GUARD, STATES, &error));
    assert_ok(tilth_runner_run(r, &error));
    assert_memory_equal(out + GUARD, states, STATES);
    for (int i = 0; i < GUARD; i++)
        assert_true(out[i] == 0xa5 && out[GUARD + STATES + i] == 0xa5);
    mine[3] ^= 1; /* seen by the next run without another call */
    assert_ok(tilth_runner_run(r, &error));
    assert_memory_not_equal(out + GUARD, states, STATES);
    mine[3] ^= 1;
    assert_ok(tilth_runner_run(r, &error));
    assert_memory_equal(out + GUARD, states, STATES);
    assert_memory_equal(mine, ids, IDS);
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
}

static void from_memory_as_from_the_file(void **state)
{
    (void)state;
    tilth_load_options options = { .struct_size = sizeof options, .cache_folder = cache };
    tilth_error error;
    tilth_model *m = NULL;
    tilth_runner *r = NULL;
    tl_text copy = { 0 };
    options.threads = 1;
    tl_text_add_bytes(&copy, bytes.data, bytes.size);
    assert_ok(tilth_model_load_memory(copy.data, copy.size, NULL, &options, &m, &error));
    memset(copy.data, 0xff, copy.size); /* not needed any more */
    tl_text_free(&copy);
    assert_ok(tilth_runner_create(m, 0, &r, &error));
    write_inputs(r);
    check_results(r);
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
}

static void weights_in_files_of_their_own(void **state)
{
    (void)state;
    char *external = path_in(folder, "external.onnx");
    tilth_load_options options = { .struct_size = sizeof options, .cache_folder = cache };
    tilth_error error;
    tilth_model *m = NULL;
    tilth_runner *r = NULL;
    tl_text text = { 0 };
    assert_int_equal(tl_zoo_write("bert_tiny", NULL, 0, 3, true, external, NULL), TL_OK);
    assert_int_equal(tl_file_read(external, &text, NULL), TL_OK);
    assert_true(text.size < bytes.size / 10);
    options.threads = 1;
    assert_true(tilth_model_load_memory(text.data, text.size, NULL, &options, &m, &error) !=
                TILTH_OK);
    assert_true(strstr(error.text, "in memory") != NULL);
    assert_true(tilth_model_load_memory(text.data, text.size, cache, &options, &m, &error) !=
                TILTH_OK);
    for (int i = 0; i < 2; i++) { /* compiled, and from the cache */
        assert_ok(tilth_model_load_memory(text.data, text.size, folder, &options, &m, &error));
        assert_ok(tilth_runner_create(m, 0, &r, &error));
        write_inputs(r);
        check_results(r);
        assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
        assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    }
    tl_text_free(&text);
    free(external);
}

static bool exists(const char *name)
{
    DIR *d = opendir(name);
    if (d != NULL)
        closedir(d);
    return d != NULL;
}

static void count_stage(void *user, const char *stage, int done, int total)
{
    assert_true(stage[0] != '\0' && done <= total);
    ++*(int *)user;
}

static void the_cache_is_where_the_caller_says(void **state)
{
    (void)state;
    char *mine = path_in(folder, "my-cache"), *home = path_in(folder, "home");
    tilth_error error;
    tilth_model *m = NULL;
    tilth_model_facts facts;
    int stages = 0;
    tilth_load_options options = { .struct_size = sizeof options,
                                   .threads = 1,
                                   .no_cache = 1,
                                   .compile_threads = 2,
                                   .progress = count_stage,
                                   .user = &stages };
    setenv("XDG_CACHE_HOME", home, 1);
    assert_ok(tilth_model_load(path, &options, &m, &error));
    assert_ok(tilth_model_get_facts(m, &facts, &error));
    assert_false(facts.from_disk);
    assert_true(stages > 3);
    assert_false(exists(home)); /* nothing was left behind */
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);

    options = (tilth_load_options){ .struct_size = sizeof options, .cache_folder = mine };
    for (int i = 0; i < 2; i++) {
        assert_ok(tilth_model_load(path, &options, &m, &error));
        assert_ok(tilth_model_get_facts(m, &facts, &error));
        assert_int_equal(facts.from_disk, i);
        assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    }
    assert_true(exists(mine));
    assert_false(exists(home));
    options.cache_folder = "/proc/nowhere"; /* costs time only; objects are compiled again */
    assert_ok(tilth_model_load(path, &options, &m, &error));
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    unsetenv("XDG_CACHE_HOME");
    free(mine);
    free(home);
}

static void saved_and_opened(void **state)
{
    (void)state;
    char *saved = path_in(folder, "saved"), *json = path_in(saved, "executable.json");
    tilth_error error;
    tilth_model *m = NULL;
    tilth_runner *r = NULL;
    tilth_model_facts facts;
    assert_ok(tilth_model_save(shared, saved, &error));
    assert_ok(tilth_model_open(saved, NULL, &m, &error));
    assert_ok(tilth_model_get_facts(m, &facts, &error));
    assert_true(facts.from_disk);
    assert_ok(tilth_runner_create(m, 1, &r, &error));
    write_inputs(r);
    check_results(r);
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    assert_fails(TILTH_IO, "", tilth_model_save(shared, "/proc/nowhere/x", &error));
    assert_ok(tilth_model_save(shared, saved, &error)); /* in the place of the first */

    /* a folder with other things in it, even by our names, stays as it is */
    char *foreign = path_in(folder, "foreign"), *inside = path_in(foreign, "constants.bin");
    assert_int_equal(tl_folder_make(foreign, NULL), TL_OK);
    assert_int_equal(tl_file_write(inside, "mine", 4, NULL), TL_OK);
    assert_fails(TILTH_BAD_ARGUMENT, foreign, tilth_model_save(shared, foreign, &error));
    assert_fails(TILTH_BAD_ARGUMENT, "other things in it",
                 tilth_model_save(shared, folder, &error));
    assert_fails(TILTH_BAD_ARGUMENT, "is empty", tilth_model_save(shared, "", &error));
    assert_fails(TILTH_BAD_ARGUMENT, "is empty", tilth_model_open("", NULL, &m, &error));
    tl_text mine = { 0 };
    assert_int_equal(tl_file_read(inside, &mine, NULL), TL_OK);
    assert_string_equal(tl_text_get(&mine), "mine");
    tl_text_free(&mine);
    free(inside);
    free(foreign);

    tl_text text = { 0 };
    assert_int_equal(tl_file_read(json, &text, NULL), TL_OK);
    text.data[text.size / 2] ^= 1;
    assert_int_equal(tl_file_write(json, text.data, text.size, NULL), TL_OK);
    tl_text_free(&text);
    assert_fails(TILTH_IO, "executable.json", tilth_model_open(saved, NULL, &m, &error));
    assert_null(m);
    free(json);
    free(saved);
}

/* What is compiled for less than this machine runs where there is less. */
static void saved_for_a_target_by_name(void **state)
{
    (void)state;
    char *saved = path_in(folder, "level"), *json = path_in(saved, "executable.json");
    tilth_load_options options = {
        .struct_size = sizeof options, .cache_folder = cache, .threads = 1, .target = "x86-64-v2"
    };
    tilth_error error;
    tilth_model *m = NULL;
    tilth_runner *r = NULL;
    tl_text text = { 0 };
    tilth_status status = tilth_model_load(path, &options, &m, &error);
    if (status == TILTH_UNSUPPORTED) {
        print_message("skip: saved_for_a_target_by_name: %s\n", error.text);
        free(json);
        free(saved);
        skip();
    }
    assert_ok(status);
    assert_ok(tilth_model_save(m, saved, &error));
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    assert_int_equal(tl_file_read(json, &text, NULL), TL_OK);
    assert_non_null(strstr(tl_text_get(&text), "SSE4_2"));
    assert_null(strstr(tl_text_get(&text), "AVX"));
    tl_text_free(&text);
    assert_ok(tilth_model_open(saved, NULL, &m, &error));
    assert_ok(tilth_runner_create(m, 1, &r, &error));
    write_inputs(r);
    assert_ok(tilth_runner_run(r, &error));
    float *got = malloc(STATES);
    assert_non_null(got);
    assert_ok(tilth_runner_read_output(r, 0, got, STATES, &error));
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        assert_true(got[i] - states[i] < 1e-4f && states[i] - got[i] < 1e-4f);
    free(got);
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    free(json);
    free(saved);
}

/* Whoever is destroyed first: the others go on. */
static void any_order_of_destruction(void **state)
{
    (void)state;
    tilth_pool_options size = { .struct_size = sizeof size, .threads = 2 };
    tilth_load_options options = { .struct_size = sizeof options, .cache_folder = cache };
    tilth_error error;
    tilth_pool *pool = NULL;
    tilth_model *m = NULL;
    tilth_runner *one = NULL, *two = NULL;
    assert_ok(tilth_pool_create(&size, &pool, &error));
    options.pool = pool;
    assert_ok(tilth_model_load(path, &options, &m, &error));
    assert_ok(tilth_runner_create(m, 1, &one, &error));
    assert_ok(tilth_runner_create(m, 0, &two, &error));
    assert_int_equal(tilth_pool_destroy(pool), TILTH_OK);
    write_inputs(one);
    write_inputs(two);
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    check_results(one);
    assert_int_equal(tilth_runner_destroy(one), TILTH_OK);
    assert_ok(tilth_runner_run(two, &error));
    assert_int_equal(tilth_runner_destroy(two), TILTH_OK);
}

static void use_after_destroy(void **state)
{
    (void)state;
#ifdef NDEBUG
    puts("skip: use_after_destroy needs a debug build (VARIANT=debug)");
    skip();
#else
    const tilth_status bad = TILTH_BAD_ARGUMENT;
    tilth_error error;
    tilth_tensor_info info;
    tilth_pool *pool = NULL;
    tilth_model *m = NULL;
    tilth_runner *r = NULL, *another = NULL;
    char *saved = path_in(folder, "for-later");
    assert_ok(tilth_model_save(shared, saved, &error));
    assert_ok(tilth_pool_create(NULL, &pool, &error));
    assert_ok(tilth_model_open(saved, pool, &m, &error));
    assert_ok(tilth_runner_create(m, 1, &r, &error));
    assert_int_equal(tilth_runner_destroy(r), TILTH_OK);
    assert_int_equal(tilth_runner_destroy(r), bad);
    assert_fails(bad, "this runner was destroyed", tilth_runner_run(r, &error));
    assert_fails(bad, "destroyed", tilth_runner_bind_input(r, 0, ids, IDS, &error));
    assert_int_equal(tilth_runner_memory(r), 0);
    assert_int_equal(tilth_model_destroy(m), TILTH_OK);
    assert_int_equal(tilth_model_destroy(m), bad);
    assert_fails(bad, "this model was destroyed", tilth_model_input(m, 0, &info, &error));
    assert_fails(bad, "destroyed", tilth_runner_create(m, 1, &another, &error));
    assert_fails(bad, "destroyed", tilth_model_save(m, saved, &error));
    assert_int_equal(tilth_model_input_count(m), 0);
    assert_int_equal(tilth_pool_destroy(pool), TILTH_OK);
    assert_int_equal(tilth_pool_destroy(pool), bad);
    assert_fails(bad, "this pool was destroyed", tilth_model_open(saved, pool, &m, &error));
    assert_int_equal(tilth_pool_threads(pool), 0);
    assert_fails(bad, "is no pool",
                 tilth_model_open(saved, (tilth_pool *)(void *)shared, &m, &error));
    free(saved);
#endif
}

typedef struct {
    tilth_model *models[2];
    int threads, wrong;
} caller;

static void *call_models(void *argument)
{
    caller *c = argument;
    float *got = malloc(STATES);
    for (int m = 0; m < 2; m++) {
        tilth_runner *r = NULL;
        c->wrong += tilth_runner_create(c->models[m], c->threads, &r, NULL) != TILTH_OK ||
                    tilth_runner_write_input(r, 0, ids, IDS, NULL) != TILTH_OK ||
                    tilth_runner_write_input(r, 1, mask, IDS, NULL) != TILTH_OK;
        for (int i = 0; i < 3 && c->wrong == 0; i++)
            c->wrong += tilth_runner_run(r, NULL) != TILTH_OK ||
                        tilth_runner_read_output(r, 0, got, STATES, NULL) != TILTH_OK ||
                        memcmp(got, states, STATES) != 0;
        c->wrong += tilth_runner_destroy(r) != TILTH_OK;
    }
    free(got);
    return NULL;
}

static void several_models_callers_and_one_pool(void **state)
{
    (void)state;
    enum { CALLERS = 6 };
    tilth_pool_options size = { .struct_size = sizeof size, .threads = 2 };
    tilth_load_options options = { .struct_size = sizeof options, .cache_folder = cache };
    tilth_error error;
    tilth_pool *pool = NULL;
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    tilth_model *models[2] = { NULL, NULL };
    assert_ok(tilth_pool_create(&size, &pool, &error));
    options.pool = pool;
    for (int m = 0; m < 2; m++)
        assert_ok(tilth_model_load(path, &options, &models[m], &error));
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){ { models[i % 2], models[1 - i % 2] }, i % 3, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, call_models, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    for (int m = 0; m < 2; m++)
        assert_int_equal(tilth_model_destroy(models[m]), TILTH_OK);
    assert_int_equal(tilth_pool_destroy(pool), TILTH_OK);
}

typedef struct {
    tilth_runner *runner;
    atomic_int *ok, *busy, *other;
} intruder;

static void *run_shared_runner(void *argument)
{
    const intruder *in = argument;
    for (int i = 0; i < 20; i++) {
        tilth_status status = tilth_runner_run(in->runner, NULL);
        atomic_fetch_add(status == TILTH_OK     ? in->ok
                         : status == TILTH_BUSY ? in->busy
                                                : in->other,
                         1);
    }
    return NULL;
}

static void one_runner_in_two_threads_is_refused(void **state)
{
    (void)state;
    atomic_int ok = 0, busy = 0, other = 0;
    tilth_error error;
    intruder in = { NULL, &ok, &busy, &other };
    pthread_t thread;
    assert_ok(tilth_runner_create(shared, 1, &in.runner, &error));
    write_inputs(in.runner);
    assert_int_equal(pthread_create(&thread, NULL, run_shared_runner, &in), 0);
    run_shared_runner(&in);
    pthread_join(thread, NULL);
    assert_int_equal(other, 0);
    assert_int_equal(ok + busy, 40);
    assert_true(ok > 0);
    check_results(in.runner);
    assert_int_equal(tilth_runner_destroy(in.runner), TILTH_OK);
}

/* What a child does with what it inherited: 0, or the number of the first call that is not as promised. */
static int use_inherited(tilth_runner *several, tilth_runner *one)
{
    tilth_error error;
    tilth_runner *r = NULL;
    tilth_pool *pool = NULL;
    tilth_pool_options size = { .struct_size = sizeof size, .threads = 2 };
    if (tilth_runner_run(several, &error) != TILTH_BAD_ARGUMENT ||
        strstr(error.text, "in the child") == NULL)
        return 1;
    if (tilth_runner_create(shared, 2, &r, &error) != TILTH_BAD_ARGUMENT || r != NULL)
        return 2;
    if (tilth_runner_run(one, &error) != TILTH_OK)
        return 3;
    if (tilth_runner_destroy(several) != TILTH_OK || tilth_runner_destroy(one) != TILTH_OK)
        return 4;
    if (tilth_pool_create(&size, &pool, &error) != TILTH_OK ||
        tilth_pool_destroy(pool) != TILTH_OK || tilth_model_destroy(shared) != TILTH_OK)
        return 5;
    return 0;
}

static void a_child_of_fork_is_told(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("skip: ThreadSanitizer takes a thread of a child for one of its parent's\n");
    skip();
#endif
    tilth_error error;
    tilth_runner *several = NULL, *one = NULL;
    assert_ok(tilth_runner_create(shared, 2, &several, &error));
    assert_ok(tilth_runner_create(shared, 1, &one, &error));
    write_inputs(several);
    write_inputs(one);
    assert_ok(tilth_runner_run(several, &error));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30); /* what waits for ever ends as a failure */
        _exit(use_inherited(several, one));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_results(several);
    assert_int_equal(tilth_runner_destroy(several), TILTH_OK);
    assert_int_equal(tilth_runner_destroy(one), TILTH_OK);
}

static void *load_and_run(void *argument)
{
    tilth_load_options options = *(const tilth_load_options *)argument;
    tilth_model *m = NULL;
    if (tilth_model_load(path, &options, &m, NULL) != TILTH_OK)
        return "load";
    caller c = { { m, m }, 1, 0 };
    call_models(&c);
    tilth_model_destroy(m);
    return c.wrong == 0 ? NULL : "run";
}

static void several_load_at_once(void **state)
{
    (void)state;
    enum { LOADERS = 3 };
    char *common = path_in(folder, "common-cache");
    tilth_load_options options = { .struct_size = sizeof options, .threads = 1 };
    pthread_t threads[LOADERS];
    options.cache_folder = common;
    for (int i = 0; i < LOADERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_run, &options), 0);
    for (int i = 0; i < LOADERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed != NULL)
            fail_msg("loader %d: cannot %s", i, (char *)failed);
    }
    free(common);
}

/* Loads, runs and fails with stdout and stderr in a file, which stays empty. */
static void nothing_is_printed(void **state)
{
    (void)state;
    char *log = path_in(folder, "printed");
    tilth_load_options options = { .struct_size = sizeof options, .threads = 2, .no_cache = 1 };
    tilth_model *m = NULL, *none = NULL;
    tilth_runner *r = NULL;
    tilth_status wanted[5] = { TILTH_OK };
    fflush(NULL);
    int kept[2] = { dup(1), dup(2) }, file = open(log, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(kept[0] >= 0 && kept[1] >= 0 && file >= 0);
    dup2(file, 1);
    dup2(file, 2);
    wanted[0] = tilth_model_load(path, &options, &m, NULL);
    wanted[1] = tilth_runner_create(m, 0, &r, NULL);
    tilth_runner_write_input(r, 0, ids, IDS, NULL);
    tilth_runner_write_input(r, 1, mask, IDS, NULL);
    wanted[2] = tilth_runner_run(r, NULL);
    wanted[3] = tilth_model_load_memory(bytes.data, bytes.size / 2, NULL, &options, &none, NULL);
    wanted[4] = tilth_model_load("/nowhere", &options, &none, NULL);
    tilth_runner_destroy(r);
    tilth_model_destroy(m);
    fflush(NULL);
    dup2(kept[0], 1);
    dup2(kept[1], 2);
    off_t size = lseek(file, 0, SEEK_END);
    close(kept[0]);
    close(kept[1]);
    close(file);
    free(log);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wanted[i], TILTH_OK);
    assert_int_equal(wanted[3], TILTH_BAD_MODEL);
    assert_int_equal(wanted[4], TILTH_BAD_ARGUMENT);
    assert_int_equal(size, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_names),
        cmocka_unit_test(a_model_tells_its_ports),
        cmocka_unit_test(wrong_arguments_of_models),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(files_that_are_no_models),
        cmocka_unit_test(wrong_buffers),
        cmocka_unit_test(bound_buffers_are_used_themselves),
        cmocka_unit_test(from_memory_as_from_the_file),
        cmocka_unit_test(weights_in_files_of_their_own),
        cmocka_unit_test(the_cache_is_where_the_caller_says),
        cmocka_unit_test(saved_and_opened),
        cmocka_unit_test(saved_for_a_target_by_name),
        cmocka_unit_test(any_order_of_destruction),
        cmocka_unit_test(use_after_destroy),
        cmocka_unit_test(several_models_callers_and_one_pool),
        cmocka_unit_test(one_runner_in_two_threads_is_refused),
        cmocka_unit_test(a_child_of_fork_is_told),
        cmocka_unit_test(several_load_at_once),
        cmocka_unit_test(nothing_is_printed),
    };
    return cmocka_run_group_tests_name("C API", tests, set_up, tear_down);
}
