/* driver/cli/session.c: what the verbs that take a model have in common. */
#include "driver/cli/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/cli/shape_option.h"
#include "runtime/base/file.h"
#include "runtime/device/topology.h"

static void show(void *user, const char *stage, int done, int total)
{
    (void)user;
    if (total > 0)
        tl_progress("%s: %d of %d", stage, done, total);
    else
        tl_progress("%s", stage);
}

static void show_note(void *user, const char *sentence)
{
    (void)user;
    if (tl_verbose)
        fprintf(stderr, "tilth: note: %s\n", sentence);
}

tl_status tl_session_check(const tl_session_options *options, tl_diag *diag)
{
    if (options->database != NULL && options->no_database)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--db and --no-db: one of them");
    if (options->cache != NULL && options->no_cache)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--cache and --no-cache: one of them");
    return TL_OK;
}

tl_status tl_session_start(tl_session *session, const tl_session_options *options, tl_diag *diag)
{
    *session = (tl_session){ 0 };
    TL_TRY(tl_session_check(options, diag));
    if (options->threads < 0 || options->threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--threads: %lld is not in 0..%d (0: one a usable core)",
                       (long long)options->threads, TL_MAX_THREADS);
    session->arena = tl_arena_create(0);
    if (session->arena == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    /* compiling uses every core, whatever the model then runs on */
    tl_pool_options pool = { .threads = (int)options->threads };
    if (pool.threads != 0 && pool.threads < tl_topology_get()->threads)
        pool.threads = tl_topology_get()->threads;
    TL_TRY(tl_pool_create(&pool, &session->pool, diag));
    session->threads =
        options->threads > 0 ? (int)options->threads : tl_pool_threads(session->pool);
    return tl_session_machine(session->arena, options->machine, &session->machine, diag);
}

tl_status tl_session_machine(tl_arena *arena, const char *word, const tl_machine **out,
                             tl_diag *diag)
{
    tl_target host;
    *out = NULL;
    if (word == NULL)
        return TL_OK;
    TL_TRY(tl_target_resolve(NULL, &host, diag));
    TL_TRY(tl_machine_choose(arena, word, &host, out, diag));
    if (*out != NULL && !tl_machine_is_of(*out, &host) && !tl_quiet)
        fprintf(stderr, "tilth: note: --machine %s is a profile of another machine: %s\n", word,
                (*out)->cpu);
    return TL_OK;
}

/* A cache that cannot be used costs time, not results: said once. */
static void mention_cache(const tl_session_options *options)
{
    tl_cache *cache = NULL;
    if (options->no_cache || tl_quiet || tl_cache_open(options->cache, 0, &cache, NULL) != TL_OK)
        return;
    if (tl_cache_folder(cache) == NULL)
        fprintf(stderr, "tilth: note: nothing is cached: %s\n", tl_cache_problem(cache));
    else if (access(tl_cache_folder(cache), W_OK) != 0)
        fprintf(stderr, "tilth: note: nothing new is cached: %s cannot be written\n",
                tl_cache_folder(cache));
    tl_cache_close(cache);
}

/* What a file that is no model is instead; NULL: it may well be a damaged model. */
static const char *other_kind(const tl_mapping *file)
{
    static const struct {
        const char *start, *kind;
    } kinds[] = {
        { "\x93NUMPY", "a NumPy array" },
        { "\x7f"
          "ELF",
          "a program or library" },
        { "PK\3\4", "a zip archive (a PyTorch checkpoint?)" },
        { "\x1f\x8b", "compressed with gzip" },
        { "\x89HDF", "an HDF5 file (Keras?)" },
    };
    const char *bytes = file->data;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].start);
        if (file->size >= n && memcmp(bytes, kinds[i].start, n) == 0)
            return kinds[i].kind;
    }
    size_t looked = file->size < 256 ? file->size : 256;
    for (size_t i = 0; i < looked; i++)
        if ((unsigned char)bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t' &&
            bytes[i] != '\r')
            return NULL;
    return looked > 0 ? "a text" : NULL;
}

/* Says of a file that does not read as a model what it seems to be. */
static tl_status explain_file(const char *path, tl_status status, tl_diag *diag)
{
    tl_mapping file;
    if (tl_file_map(path, &file, NULL) != TL_OK)
        return status;
    const char *kind = other_kind(&file), *dot = strrchr(path, '.');
    bool kernel = dot != NULL && strcmp(dot, ".tk") == 0;
    tl_file_unmap(&file);
    if (kind == NULL)
        return status;
    return tl_fail(diag, status, "%s: this is %s, not an ONNX model%s", path,
                   kernel ? "a kernel's text" : kind, kernel ? " (tilth bench takes it)" : "");
}

tl_status tl_session_model_options(const tl_session *session, const tl_session_options *options,
                                   tl_model_options *model, tl_diag *diag)
{
    TL_TRY(tl_shape_options_parse(session->arena, &options->shapes, &model->shapes, diag));
    TL_TRY(tl_numerics_parse(options->numerics, &model->numerics, diag));
    if (options->max_memory != NULL)
        TL_TRY(tl_size_parse("--max-memory", options->max_memory, &model->max_memory, diag));
    if (options->max_memory != NULL && model->max_memory == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--max-memory: nothing fits into 0 bytes");
    model->target = options->target;
    model->machine = session->machine;
    model->shape_count = options->shapes.count;
    if (options->most_turns < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--max-turns: %lld is negative",
                       (long long)options->most_turns);
    model->most_turns = options->most_turns;
    model->cache_folder = options->cache;
    model->no_cache |= options->no_cache;
    model->database = options->database;
    model->no_database |= options->no_database;
    model->threads = session->threads;
    model->note = show_note;
    model->pool = session->pool;
    model->progress = show;
    return TL_OK;
}

tl_status tl_session_open(tl_session *session, const char *path, const tl_session_options *options,
                          const tl_model_options *extra, tl_diag *diag)
{
    TL_TRY(tl_session_start(session, options, diag));
    tl_model_options model = extra ? *extra : (tl_model_options){ 0 };
    TL_TRY(tl_session_model_options(session, options, &model, diag));
    mention_cache(options);
    tl_diag unbound = { 0 };
    tl_status status = tl_model_load(path, &model, &session->model, &unbound);
    if (status == TL_UNBOUND) {
        TL_TRY(tl_session_bind_shapes(session, path, options, &model, diag));
        status = tl_model_load(path, &model, &session->model, diag);
    } else if (diag != NULL) {
        *diag = unbound;
    }
    tl_progress_done();
    if (status == TL_BAD_MODEL)
        return explain_file(path, status, diag);
    if (status == TL_OK && tl_model_executable(session->model) != NULL)
        session->symbols = tl_jit_symbols_publish(tl_model_executable(session->model));
    return status;
}

void tl_session_close(tl_session *session)
{
    tl_jit_symbols_withdraw(session->symbols);
    tl_model_destroy(session->model);
    tl_family_destroy(session->family);
    tl_join_destroy(session->join);
    tl_onnx_close(session->onnx);
    tl_pool_destroy(session->pool);
    tl_arena_destroy(session->arena);
    *session = (tl_session){ 0 };
}
