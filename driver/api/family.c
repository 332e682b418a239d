/* driver/api/family.c: one model for all shapes of its inputs.
 *
 * The first combination of shapes is compiled as it is. From the second on axes that differ become dims of one code for all
 * of them (driver/pipeline/open_axes.h) where they can; for combinations that it is not for, and those that come again and
 * again, code of their own is made, and the latest of that kept. */
#include <stdlib.h>
#include <string.h>
#include "driver/api/family_private.h"
#include "runtime/base/map.h"

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
    for (int i = 0; i < f->join_count; i++) {
        (void)tilth_model_destroy(f->joins[i].model);
        tl_join_destroy(f->joins[i].join);
        free(f->joins[i].checked);
        free(f->joins[i].is_checked);
    }
    tl_onnx_close(f->onnx);
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
    TL_TRY(read_signature(f, diag));
    f->axes = tl_open_axes_of(f->arena, &f->signature);
    f->latest = TL_NEW_ARRAY(f->arena, int64_t, f->axes.count);
    f->now = TL_NEW_ARRAY(f->arena, int64_t, f->axes.count);
    return TL_OK;
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

int tilth_family_axis_count(const tilth_family *family)
{
    return tl_handle_check(family, TL_HANDLE_FAMILY, "", NULL) == TL_OK ? family->axes.count : 0;
}

static tl_status describe_axis(tilth_family *f, int index, tilth_axis_info *out, const char *call,
                               tl_diag *diag)
{
    TL_TRY(tl_handle_check(f, TL_HANDLE_FAMILY, call, diag));
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= f->axes.count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no axis %d; the model has %d open ones",
                       call, index, f->axes.count);
    pthread_mutex_lock(&f->lock);
    const tl_open_axis *axis = &f->axes.axes[index];
    bool follows = axis->leader >= 0 && f->axes.axes[axis->leader].is_dim;
    *out = (tilth_axis_info){ .name = axis->name,
                              .input = axis->input,
                              .axis = axis->axis,
                              .is_dim = axis->is_dim || follows,
                              .specialised = axis->specialised };
    pthread_mutex_unlock(&f->lock);
    return TL_OK;
}

tilth_status tilth_family_axis(const tilth_family *family, int index, tilth_axis_info *out,
                               tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_family *f = (tilth_family *)(uintptr_t)family;
    return tl_api_return(describe_axis(f, index, out, __func__, &diag), &diag, error);
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

/* The dims of the executable: each is the extent of some axis. */
static bool find_dims(const tl_executable_spec *spec, const tl_family_given *given, int64_t *dims)
{
    for (int d = 0; d < spec->dim_count; d++) {
        bool found = false;
        tl_varying bare = { { 0 } };
        bare.of[1 << d] = 1;
        for (int i = 0; i < spec->input_count && !found; i++)
            for (int a = 0; a < spec->inputs[i].rank && !found; a++)
                if (spec->inputs[i].varying != NULL && a < given[i].shape.rank &&
                    memcmp(&spec->inputs[i].varying[a], &bare, sizeof bare) == 0) {
                    dims[d] = given[i].shape.dims[a].extent;
                    found = true;
                }
        if (!found || dims[d] < spec->dims[d].min || dims[d] > spec->dims[d].max)
            return false;
    }
    return true;
}

bool tl_family_fits(const tl_executable_spec *spec, const tl_family_given *given,
                    int64_t dims[TL_MOST_DIMS])
{
    if (!find_dims(spec, given, dims))
        return false;
    for (int i = 0; i < spec->input_count; i++) {
        const tl_port *port = &spec->inputs[i];
        bool same = port->rank == given[i].shape.rank;
        for (int a = 0; same && a < port->rank; a++) {
            int64_t extent = port->shape[a];
            if (port->varying != NULL)
                same = tl_varying_at(&port->varying[a], spec->dim_count, dims, &extent);
            same = same && extent == given[i].shape.dims[a].extent;
        }
        if (!same ||
            (port->fixed != NULL && memcmp(port->fixed, given[i].data, given[i].size) != 0))
            return false;
    }
    return true;
}

/* The call's inputs as the pipeline takes them: values that may decide are offered. */
static tl_shape_override *describe_call(const tilth_family *f, tl_arena *arena,
                                        const tl_family_given *given)
{
    const tl_onnx_signature *signature = &f->signature;
    tl_shape_override *known = TL_NEW_ARRAY(arena, tl_shape_override, signature->input_count);
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        bool may_decide = tl_shape_elements(&given[i].shape) <= TL_DECIDING_ELEMENTS;
        known[i] = (tl_shape_override){ .name = input->name,
                                        .shape = given[i].shape,
                                        .value = may_decide ? given[i].data : NULL,
                                        .dtype = input->dtype };
    }
    return known;
}

/* Compiled for these inputs, or taken from the cache. */
static tl_status load_member(tilth_family *f, tl_arena *scratch, const tl_shape_override *known,
                             tilth_model **out, tl_diag *diag)
{
    const tl_shape_override *shapes;
    int count;
    TL_TRY(tl_onnx_bind_shapes(scratch, &f->signature, known, f->signature.input_count, &shapes,
                               &count, diag));
    return tl_load_on(&f->request, &f->options, shapes, count, f->pool, out, diag);
}

static tl_family_member *find_member(tilth_family *f, const tl_family_given *given)
{
    int64_t dims[TL_MOST_DIMS];
    for (int i = 0; i < f->count; i++)
        if (tl_family_fits(tl_executable_info(f->members[i].model->executable), given, dims))
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

static void give(tilth_model *model, tl_family_code *out)
{
    tl_handle_retain(&model->handle);
    out->model = model;
    out->spec = tl_executable_info(model->executable);
}

static tl_status make_member(tilth_family *f, tl_arena *scratch, const tl_shape_override *known,
                             tl_family_code *out, tl_diag *diag)
{
    tilth_model *model;
    TL_TRY(load_member(f, scratch, known, &model, diag));
    tl_family_member *member = make_room(f);
    f->compiled++;
    member->model = model;
    member->used = ++f->clock;
    memcpy(f->latest, f->now, sizeof *f->now * (size_t)f->axes.count);
    give(model, out);
    return TL_OK;
}

/* ---- code for all values of some axes ---- */

/* Whether the model with these inputs is what the join says; what was seen to be so is remembered. */
static tl_status accept(const tilth_family *f, tl_family_join *j, const int64_t *dims,
                        const tl_shape_override *known, tl_diag *diag)
{
    size_t size = sizeof *dims * (size_t)tl_executable_info(j->model->executable)->dim_count;
    size_t slot = tl_hash_bytes(dims, size, 0) % TL_FAMILY_CHECKED;
    if (j->is_checked[slot] && memcmp(j->checked[slot], dims, size) == 0)
        return TL_OK;
    TL_TRY(tl_join_check(j->join, known, f->signature.input_count, dims, diag));
    memcpy(j->checked[slot], dims, size);
    j->is_checked[slot] = true;
    return TL_OK;
}

/* Notes that a join is called with a combination; whether that is among the latest often. */
static bool comes_often(tilth_family *f)
{
    uint64_t key = tl_hash_bytes(f->now, sizeof *f->now * (size_t)f->axes.count, 0);
    int times = 0;
    f->recent[f->recent_count++ % TL_FAMILY_RECENT] = key;
    for (uint64_t i = 0; i < TL_FAMILY_RECENT && i < f->recent_count; i++)
        times += f->recent[i] == key;
    return times >= TL_FAMILY_OFTEN;
}

static tl_status open_onnx(tilth_family *f, tl_diag *diag)
{
    const tl_load_request *r = &f->request;
    if (f->onnx != NULL)
        return TL_OK;
    TL_TRY(r->path != NULL ? tl_onnx_open(r->path, &f->onnx, diag)
                           : tl_onnx_open_memory(r->bytes, r->size, r->folder, &f->onnx, diag));
    tl_onnx_limit_turns(f->onnx, f->options.max_turns);
    return TL_OK;
}

static tl_status compile_join(const tilth_family *f, tl_family_join *j,
                              const tl_model_options *options, tl_diag *diag)
{
    tl_model *model;
    j->checked = calloc(TL_FAMILY_CHECKED, sizeof *j->checked);
    j->is_checked = calloc(TL_FAMILY_CHECKED, sizeof *j->is_checked);
    if (j->checked == NULL || j->is_checked == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(tl_join_compile(j->join, options, &model, diag));
    return tl_load_wrap(model, f->pool, &j->model, diag);
}

/* A new join for what is asked for now. */
static tl_status make_join(tilth_family *f, const tl_shape_override *known, tl_diag *diag)
{
    tl_model_options options;
    tl_pool *compile_pool;
    tl_family_join j = { 0 };
    if (TL_ARENA_GUARD(f->arena)) /* what is learned of the axes lies there */
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(open_onnx(f, diag));
    TL_TRY(tl_load_options(&f->options, f->pool, &options, &compile_pool, diag));
    tl_status status = tl_join_axes(f->arena, f->onnx, &f->signature, &f->axes, f->latest, known,
                                    &options, &j.join, diag);
    if (status == TL_OK)
        status = compile_join(f, &j, &options, diag);
    tl_pool_destroy(compile_pool);
    if (status == TL_OK) {
        f->compiled++;
        f->joins[f->join_count++] = j;
        return TL_OK;
    }
    tl_join_destroy(j.join);
    free(j.checked);
    free(j.is_checked);
    return status;
}

/* Whether some axis that may be a dim differs from what was compiled. */
static bool may_join(const tilth_family *f)
{
    bool differs = false;
    for (int i = 0; i < f->axes.count; i++)
        differs |= f->axes.axes[i].specialised == NULL && f->now[i] != f->latest[i];
    return f->axes.is_known && differs && f->count > 0 && f->join_count < TL_FAMILY_JOINS;
}

/* The join for these inputs; false: there is none, and `is_tried` says whether it would have been one by its shapes. */
static bool find_join(tilth_family *f, const tl_family_given *given, const tl_shape_override *known,
                      bool *is_tried, tl_family_code *out)
{
    for (int i = 0; i < f->join_count; i++) {
        tl_family_join *j = &f->joins[i];
        if (!tl_family_fits(tl_executable_info(j->model->executable), given, out->dims))
            continue;
        *is_tried = true;
        if (accept(f, j, out->dims, known, NULL) != TL_OK)
            continue;
        give(j->model, out);
        return true;
    }
    return false;
}

static tl_status find_or_make(tilth_family *f, tl_arena *scratch, const tl_family_given *given,
                              tl_family_code *out, tl_diag *diag)
{
    if (TL_ARENA_GUARD(scratch))
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", f->request.call);
    tl_shape_override *known = describe_call(f, scratch, given);
    bool is_tried = false;
    if (f->axes.is_known)
        tl_open_axes_read(&f->axes, known, f->now);
    if (find_join(f, given, known, &is_tried, out)) {
        if (!comes_often(f))
            return TL_OK;
        tl_family_code own = { 0 };
        if (make_member(f, scratch, known, &own, NULL) != TL_OK)
            return TL_OK;
        tl_api_model_release(out->model);
        *out = own;
        return TL_OK;
    }
    if (!is_tried && may_join(f) && make_join(f, known, NULL) == TL_OK &&
        find_join(f, given, known, &is_tried, out))
        return TL_OK;
    return make_member(f, scratch, known, out, diag);
}

tl_status tl_family_find(tilth_family *f, const tl_family_given *given, tl_family_code *out,
                         tl_diag *diag)
{
    tl_status status = TL_OK;
    pthread_mutex_lock(&f->lock);
    tl_family_member *member = find_member(f, given);
    if (member != NULL) {
        member->used = ++f->clock;
        give(member->model, out);
    } else {
        tl_arena *scratch = tl_arena_create(0);
        status = scratch != NULL
                     ? find_or_make(f, scratch, given, out, diag)
                     : tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", f->request.call);
        tl_arena_destroy(scratch);
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}
