/* driver/api/tilth.c: loading ONNX models through the C API; the rest of it is runtime/api/api_*.c. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/model.h"
#include "driver/api/load_private.h"

_Static_assert(TILTH_MAX_RANK == TL_MAX_RANK, "a shape fits");

/* Up to where the options of earlier versions went. */
#define OPTIONS_0_1 offsetof(tilth_load_options, database)
#define OPTIONS_0_2 offsetof(tilth_load_options, max_turns)

static tl_status check_options(const tilth_load_options *o, const char *call, tl_diag *diag)
{
    if (o->struct_size != sizeof *o && o->struct_size != OPTIONS_0_2 &&
        o->struct_size != OPTIONS_0_1)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: struct_size is %zu, not the %zu of this library's options", call,
                       o->struct_size, sizeof *o);
    if (o->threads < 0 || o->threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d threads are not in 0..%d", call, o->threads,
                       TL_MAX_THREADS);
    if (o->compile_threads < 0 || o->compile_threads > TL_MAX_THREADS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: compile_threads is %d, not in 0..%d", call,
                       o->compile_threads, TL_MAX_THREADS);
    if (o->pool != NULL && o->threads != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: options give both a pool and %d threads of the model's own", call,
                       o->threads);
    if (o->pool != NULL) {
        TL_TRY(tl_handle_check(o->pool, TL_HANDLE_POOL, call, diag));
        TL_TRY(tl_pool_check(o->pool->pool, 0, diag));
    }
    if (o->no_cache && o->cache_folder != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: options give both no_cache and a cache folder",
                       call);
    if (o->struct_size > OPTIONS_0_1 && o->no_database && o->database != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: options give both no_database and a database",
                       call);
    if (o->struct_size > OPTIONS_0_2 && o->max_memory < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: max_memory is %lld bytes", call,
                       (long long)o->max_memory);
    if (o->struct_size > OPTIONS_0_2 && o->max_turns < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: max_turns is %lld", call,
                       (long long)o->max_turns);
    if (o->shape_count < 0 || (o->shape_count > 0 && o->shapes == NULL))
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: options give %d shapes at %p", call,
                       o->shape_count, (const void *)o->shapes);
    for (int i = 0; i < o->shape_count; i++) {
        const tilth_input_shape *s = &o->shapes[i];
        if (s->name == NULL || s->rank < 0 || s->rank > TILTH_MAX_RANK)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "%s: shape %d, for input %s, has rank %d, not 0..%d", call, i,
                           s->name != NULL ? s->name : "NULL", s->rank, TILTH_MAX_RANK);
        for (int a = 0; a < s->rank; a++)
            if (s->shape[a] < 0)
                return tl_fail(diag, TL_BAD_ARGUMENT, "%s: extent %d for input %s is %lld", call, a,
                               s->name, (long long)s->shape[a]);
    }
    return TL_OK;
}

tl_status tl_load_check(const tl_load_request *r, const tilth_load_options *options,
                        tilth_load_options *whole, tl_diag *diag)
{
    static const tilth_load_options defaults = { .struct_size = sizeof defaults };
    if (options == NULL)
        options = &defaults;
    if (r->path == NULL && r->bytes == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the model is NULL", r->call);
    if (r->path == NULL && r->size == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: a model of 0 bytes", r->call);
    if (r->folder != NULL && r->folder[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the name of the folder is empty", r->call);
    TL_TRY(check_options(options, r->call, diag));
    *whole = (tilth_load_options){ .struct_size = sizeof *whole };
    memcpy(whole, options, options->struct_size);
    return TL_OK;
}

static void destroy_model(void *owner)
{
    tl_model_destroy(owner);
}

static tl_status wrap(tl_model *model, tilth_pool *pool, tilth_model **out, tl_diag *diag)
{
    tl_status status = tl_api_model_make(tl_model_executable(model), model, destroy_model, pool,
                                         tl_model_get_facts(model)->from_cache, out, diag);
    if (status != TL_OK)
        tl_model_destroy(model);
    return status;
}

static tl_status load_with(const tl_load_request *r, const tl_model_options *options,
                           tilth_pool *pool, tilth_model **out, tl_diag *diag)
{
    tl_model *model;

    TL_TRY(r->path != NULL
               ? tl_model_load(r->path, options, &model, diag)
               : tl_model_load_memory(r->bytes, r->size, r->folder, options, &model, diag));
    return wrap(model, pool, out, diag);
}

tl_status tl_load_options(const tilth_load_options *given, tilth_pool *pool, tl_model_options *out,
                          tl_pool **compile_pool, tl_diag *diag)
{
    *out = (tl_model_options){
        .target = given->target,
        .most_turns = given->max_turns,
        .cache_folder = given->cache_folder,
        .no_cache = given->no_cache != 0,
        .database = given->database,
        .no_database = given->no_database != 0,
        .max_memory = given->max_memory,
        .threads = tl_pool_threads(pool->pool),
        .pool = pool->pool,
        .progress = given->progress,
        .user = given->user,
    };
    *compile_pool = NULL;
    if (given->compile_threads > 0) {
        tl_pool_options size = { .threads = given->compile_threads, .pin = TL_PIN_NEVER };
        TL_TRY(tl_pool_create(&size, compile_pool, diag));
        out->pool = *compile_pool;
    }
    return TL_OK;
}

/* With the pool that the model will run on; a pool only for compiling, when asked for, is gone
 * afterwards. */
static tl_status load_on(const tl_load_request *r, const tilth_load_options *given,
                         const tl_shape_override *shapes, int shape_count, tilth_pool *pool,
                         tilth_model **out, tl_diag *diag)
{
    tl_model_options options;
    tl_pool *compile_pool;
    TL_TRY(tl_load_options(given, pool, &options, &compile_pool, diag));
    options.shapes = shapes;
    options.shape_count = shape_count;
    tl_status status = load_with(r, &options, pool, out, diag);
    tl_pool_destroy(compile_pool);
    return status;
}

static tl_status make_shapes(const tilth_load_options *options, tl_shape_override **out,
                             tl_diag *diag)
{
    *out = calloc((size_t)options->shape_count + 1, sizeof **out);
    if (*out == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "options: out of memory");
    for (int i = 0; i < options->shape_count; i++)
        (*out)[i] = (tl_shape_override){
            .name = options->shapes[i].name,
            .shape = tl_shape_of(options->shapes[i].rank, options->shapes[i].shape),
        };
    return TL_OK;
}

static tl_status load(const tl_load_request *r, const tilth_load_options *options,
                      tilth_model **out, tl_diag *diag)
{
    tilth_load_options whole;
    tl_shape_override *shapes;

    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the model", r->call);
    *out = NULL;
    TL_TRY(tl_load_check(r, options, &whole, diag));
    options = &whole;
    tilth_pool *pool = options->pool;
    if (pool == NULL)
        TL_TRY(tl_api_pool_make(&(tl_pool_options){ .threads = options->threads }, &pool, diag));
    tl_status status = make_shapes(options, &shapes, diag);
    if (status == TL_OK)
        status = load_on(r, options, shapes, options->shape_count, pool, out, diag);
    free(shapes);
    if (options->pool == NULL)
        tl_api_pool_release(pool); /* from now on it is the model's alone */
    return status;
}

tilth_status tilth_model_load(const char *path, const tilth_load_options *options,
                              tilth_model **out, tilth_error *error)
{
    tl_load_request r = { .call = __func__, .path = path };
    TL_API_DIAG(diag);
    return tl_api_return(load(&r, options, out, &diag), &diag, error);
}

tilth_status tilth_model_load_memory(const void *bytes, size_t size, const char *folder,
                                     const tilth_load_options *options, tilth_model **out,
                                     tilth_error *error)
{
    tl_load_request r = { .call = __func__, .bytes = bytes, .size = size, .folder = folder };
    TL_API_DIAG(diag);
    return tl_api_return(load(&r, options, out, &diag), &diag, error);
}
