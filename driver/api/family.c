/* driver/api/family.c: one model for all shapes of its inputs: compiled for each combination that is asked for, the latest
 * kept. */
#include <stdlib.h>
#include <string.h>
#include "driver/api/family_private.h"

static tl_status read_signature(tilth_family *f, tl_diag *diag)
{
    const tl_load_request *r = &f->request;
    TL_TRY(r->path != NULL
               ? tl_onnx_read_signature(f->arena, r->path, &f->signature, diag)
               : tl_onnx_read_signature_memory(f->arena, r->bytes, r->size, &f->signature, diag));
    for (int i = 0; i < f->signature.input_count; i++)
        if (!f->signature.inputs[i].dtype_known)
            return tl_fail(diag, TL_UNSUPPORTED, "%s: input '%.120s' has a type that tilth has not",
                           r->call, f->signature.inputs[i].name);
    return TL_OK;
}

static const char *copy_text(tl_arena *arena, const char *text)
{
    return text != NULL ? tl_arena_strdup(arena, text) : NULL;
}

/* Everything that later loads will need, in the family's arena. */
static void keep_request(tilth_family *f, const tl_load_request *r,
                         const tilth_load_options *options)
{
    f->request = *r;
    f->request.path = copy_text(f->arena, r->path);
    f->request.folder = copy_text(f->arena, r->folder);
    if (r->bytes != NULL)
        f->request.bytes = tl_arena_copy(f->arena, r->bytes, r->size, 64);
    f->options = *options;
    f->options.target = copy_text(f->arena, options->target);
    f->options.cache_folder = copy_text(f->arena, options->cache_folder);
    f->options.database = copy_text(f->arena, options->database);
}

void tl_family_release(tilth_family *f)
{
    if (!tl_handle_release(&f->handle))
        return;
    for (int i = 0; i < f->count; i++)
        (void)tilth_model_destroy(f->members[i].model);
    tl_api_pool_release(f->pool);
    tl_arena_destroy(f->arena);
    pthread_mutex_destroy(&f->lock);
    tl_handle_free(f);
}

static tl_status fill(tilth_family *f, const tl_load_request *r, const tilth_load_options *options,
                      tl_diag *diag)
{
    if (TL_ARENA_GUARD(f->arena))
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", r->call);
    keep_request(f, r, options);
    return read_signature(f, diag);
}

static tl_status create(const tl_load_request *r, const tilth_load_options *given,
                        tilth_family **out, tl_diag *diag)
{
    tilth_load_options options;
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the family", r->call);
    *out = NULL;
    TL_TRY(tl_load_check(r, given, &options, diag));
    if (options.shape_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: options give shapes; those of a family come with each call", r->call);
    tilth_family *f = calloc(1, sizeof *f);
    tl_arena *arena = f != NULL ? tl_arena_create(0) : NULL;
    tilth_pool *pool = options.pool;
    if (arena == NULL) {
        free(f);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", r->call);
    }
    tl_status status = TL_OK;
    if (pool != NULL)
        tl_handle_retain(&pool->handle);
    else
        status = tl_api_pool_make(&(tl_pool_options){ .threads = options.threads }, &pool, diag);
    if (status != TL_OK) {
        tl_arena_destroy(arena);
        free(f);
        return status;
    }
    f->arena = arena;
    f->pool = pool;
    pthread_mutex_init(&f->lock, NULL);
    tl_handle_start(&f->handle, TL_HANDLE_FAMILY);
    status = fill(f, r, &options, diag);
    if (status != TL_OK) {
        (void)tl_handle_kill(&f->handle, TL_HANDLE_FAMILY);
        tl_family_release(f);
        return status;
    }
    *out = f;
    return TL_OK;
}

tilth_status tilth_family_load(const char *path, const tilth_load_options *options,
                               tilth_family **out, tilth_error *error)
{
    tl_load_request r = { .call = __func__, .path = path };
    TL_API_DIAG(diag);
    return tl_api_return(create(&r, options, out, &diag), &diag, error);
}

tilth_status tilth_family_load_memory(const void *bytes, size_t size, const char *folder,
                                      const tilth_load_options *options, tilth_family **out,
                                      tilth_error *error)
{
    tl_load_request r = { .call = __func__, .bytes = bytes, .size = size, .folder = folder };
    TL_API_DIAG(diag);
    return tl_api_return(create(&r, options, out, &diag), &diag, error);
}

tilth_status tilth_family_destroy(tilth_family *family)
{
    if (family == NULL)
        return TILTH_OK;
    if (!tl_handle_kill(&family->handle, TL_HANDLE_FAMILY))
        return TILTH_BAD_ARGUMENT;
    tl_family_release(family);
    return TILTH_OK;
}

/* ---- what it is called with ---- */

int tilth_family_input_count(const tilth_family *family)
{
    return tl_handle_check(family, TL_HANDLE_FAMILY, "", NULL) == TL_OK
               ? family->signature.input_count
               : 0;
}

int tilth_family_find_input(const tilth_family *family, const char *name)
{
    int count = name != NULL ? tilth_family_input_count(family) : 0;
    for (int i = 0; i < count; i++)
        if (strcmp(family->signature.inputs[i].name, name) == 0)
            return i;
    return -1;
}

int64_t tilth_family_compiled(const tilth_family *family)
{
    if (tl_handle_check(family, TL_HANDLE_FAMILY, "", NULL) != TL_OK)
        return 0;
    tilth_family *f = (tilth_family *)(uintptr_t)family;
    pthread_mutex_lock(&f->lock);
    int64_t compiled = f->compiled;
    pthread_mutex_unlock(&f->lock);
    return compiled;
}

static tl_status describe(const tilth_family *family, int index, tilth_tensor_info *out,
                          const char *call, tl_diag *diag)
{
    TL_TRY(tl_handle_check(family, TL_HANDLE_FAMILY, call, diag));
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= family->signature.input_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no input %d; the model has %d", call,
                       index, family->signature.input_count);
    const tl_onnx_input *input = &family->signature.inputs[index];
    *out = (tilth_tensor_info){ .name = input->name,
                                .dtype = (tilth_dtype)tl_dtype_infos[input->dtype].onnx,
                                .rank = input->shape.rank };
    for (int i = 0; i < input->shape.rank; i++)
        out->shape[i] = input->shape.dims[i].extent;
    int64_t elements = input->shape.rank >= 0 ? tl_shape_elements(&input->shape) : -1;
    if (elements >= 0)
        out->size = (size_t)tl_storage_bytes(input->dtype, elements);
    return TL_OK;
}

tilth_status tilth_family_input(const tilth_family *family, int index, tilth_tensor_info *out,
                                tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe(family, index, out, __func__, &diag), &diag, error);
}

/* ---- members ---- */

bool tl_family_fits(const tl_executable_spec *spec, const tl_family_given *given)
{
    for (int i = 0; i < spec->input_count; i++) {
        const tl_port *port = &spec->inputs[i];
        bool same = port->rank == given[i].shape.rank;
        for (int a = 0; same && a < port->rank; a++)
            same = port->shape[a] == given[i].shape.dims[a].extent;
        if (!same ||
            (port->fixed != NULL && memcmp(port->fixed, given[i].data, given[i].size) != 0))
            return false;
    }
    return true;
}

/* Compiled for these inputs, or taken from the cache. */
static tl_status load_member(tilth_family *f, tl_arena *scratch, const tl_family_given *given,
                             tilth_model **out, tl_diag *diag)
{
    const tl_onnx_signature *signature = &f->signature;
    if (TL_ARENA_GUARD(scratch))
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", f->request.call);
    tl_shape_override *known = TL_NEW_ARRAY(scratch, tl_shape_override, signature->input_count);
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        bool may_decide = tl_shape_elements(&given[i].shape) <= TL_DECIDING_ELEMENTS;
        known[i] = (tl_shape_override){ .name = input->name,
                                        .shape = given[i].shape,
                                        .value = may_decide ? given[i].data : NULL,
                                        .dtype = input->dtype };
    }
    const tl_shape_override *shapes;
    int count;
    TL_TRY(tl_onnx_bind_shapes(scratch, signature, known, signature->input_count, &shapes, &count,
                               diag));
    return tl_load_on(&f->request, &f->options, shapes, count, f->pool, out, diag);
}

static tl_family_member *find_member(tilth_family *f, const tl_family_given *given)
{
    for (int i = 0; i < f->count; i++)
        if (tl_family_fits(tl_executable_info(f->members[i].model->executable), given))
            return &f->members[i];
    return NULL;
}

/* Room for one more: that of the one which was not asked for longest. Its runners keep what they need. */
static tl_family_member *make_room(tilth_family *f)
{
    if (f->count < TILTH_FAMILY_LIMIT)
        return &f->members[f->count++];
    tl_family_member *oldest = &f->members[0];
    for (int i = 1; i < f->count; i++)
        if (f->members[i].used < oldest->used)
            oldest = &f->members[i];
    (void)tilth_model_destroy(oldest->model);
    return oldest;
}

static tl_status find_or_load(tilth_family *f, const tl_family_given *given, tilth_model **out,
                              tl_diag *diag)
{
    tl_family_member *member = find_member(f, given);
    if (member == NULL) {
        tilth_model *model;
        tl_arena *scratch = tl_arena_create(0);
        if (scratch == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", f->request.call);
        tl_status status = load_member(f, scratch, given, &model, diag);
        tl_arena_destroy(scratch);
        TL_TRY(status);
        f->compiled++;
        member = make_room(f);
        member->model = model;
    }
    member->used = ++f->clock;
    *out = member->model;
    return TL_OK;
}

tl_status tl_family_runner(tilth_family *f, const tl_family_given *given, int threads,
                           tilth_runner **out, const tl_executable_spec **spec, tl_diag *diag)
{
    tilth_model *model = NULL;
    tilth_error error;
    pthread_mutex_lock(&f->lock);
    tl_status status = find_or_load(f, given, &model, diag);
    if (status == TL_OK) {
        *spec = tl_executable_info(model->executable);
        if (tilth_runner_create(model, threads, out, &error) != TILTH_OK)
            status = tl_fail(diag, TL_NO_MEMORY, "%s", error.text);
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}
