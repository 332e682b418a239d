/* driver/pipeline/family.c: one model for all shapes of its inputs. */
#include "driver/pipeline/family.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"

enum {
    MOST_JOINS = 4,
    CHECKED = 4096, /* values of dims that are remembered to have been checked */
    RECENT = 64,    /* calls among which one combination that makes up */
    OFTEN = 16,     /* so many is worth code of its own */
};

struct tl_family_member {
    atomic_int parts;
    tl_model *model;
    uint64_t used; /* the family's clock when it was last asked for */
};

/* Code for all values of some axes. */
typedef struct {
    tl_family_member *member;
    tl_join *join;
    int64_t (*checked)[TL_MOST_DIMS]; /* a table of values that the join was checked for */
    bool *is_checked;
} family_join;

struct tl_family {
    tl_arena *arena;
    tl_family_source source;
    tl_model_options options;
    tl_onnx_signature signature;
    pthread_mutex_t lock;                     /* of all that follows */
    tl_family_member *exact[TL_FAMILY_LIMIT]; /* each for one combination */
    int count;
    uint64_t clock;
    int64_t compiled;
    tl_onnx *onnx; /* open since a second combination was asked for; NULL: not yet */
    tl_open_axes axes;
    int64_t *latest, *now; /* extents of the axes: what was compiled latest, and is asked for */
    family_join joins[MOST_JOINS];
    int join_count;
    uint64_t recent[RECENT]; /* combinations that joins were called with */
    uint64_t recent_count;
};

/* ---- making one ---- */

static tl_status read_signature(tl_family *f, tl_diag *diag)
{
    const tl_family_source *s = &f->source;
    TL_TRY(s->path != NULL
               ? tl_onnx_read_signature(f->arena, s->path, &f->signature, diag)
               : tl_onnx_read_signature_memory(f->arena, s->bytes, s->size, &f->signature, diag));
    for (int i = 0; i < f->signature.input_count; i++)
        if (!f->signature.inputs[i].dtype_known)
            return tl_fail(diag, TL_UNSUPPORTED, "input '%.120s' has a type that tilth has not",
                           f->signature.inputs[i].name);
    return TL_OK;
}

static const char *copy_text(tl_arena *arena, const char *text)
{
    return text != NULL ? tl_arena_strdup(arena, text) : NULL;
}

/* Everything that later loads will need, in the family's arena. */
static void keep_request(tl_family *f, const tl_family_source *source,
                         const tl_model_options *options)
{
    f->source = *source;
    f->source.path = copy_text(f->arena, source->path);
    f->source.folder = copy_text(f->arena, source->folder);
    if (source->bytes != NULL)
        f->source.bytes = tl_arena_copy(f->arena, source->bytes, source->size, 64);
    f->options = *options;
    f->options.target = copy_text(f->arena, options->target);
    f->options.cache_folder = copy_text(f->arena, options->cache_folder);
    f->options.database = copy_text(f->arena, options->database);
    f->options.without = copy_text(f->arena, options->without);
}

static tl_status fill(tl_family *f, const tl_family_source *source, const tl_model_options *options,
                      tl_diag *diag)
{
    if (TL_ARENA_GUARD(f->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    keep_request(f, source, options);
    TL_TRY(read_signature(f, diag));
    f->axes = tl_open_axes_of(f->arena, &f->signature);
    f->latest = TL_NEW_ARRAY(f->arena, int64_t, f->axes.count);
    f->now = TL_NEW_ARRAY(f->arena, int64_t, f->axes.count);
    return TL_OK;
}

tl_status tl_family_create(const tl_family_source *source, const tl_model_options *options,
                           tl_family **out, tl_diag *diag)
{
    tl_family *f = calloc(1, sizeof *f);
    *out = NULL;
    if (f != NULL)
        f->arena = tl_arena_create(0);
    if (f == NULL || f->arena == NULL) {
        free(f);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    pthread_mutex_init(&f->lock, NULL);
    tl_status status = fill(f, source, options, diag);
    if (status != TL_OK) {
        tl_family_destroy(f);
        return status;
    }
    *out = f;
    return TL_OK;
}

static void free_join(family_join *j)
{
    tl_family_release(j->member);
    tl_join_destroy(j->join);
    free(j->checked);
    free(j->is_checked);
}

void tl_family_destroy(tl_family *f)
{
    if (f == NULL)
        return;
    for (int i = 0; i < f->count; i++)
        tl_family_release(f->exact[i]);
    for (int i = 0; i < f->join_count; i++)
        free_join(&f->joins[i]);
    tl_onnx_close(f->onnx);
    pthread_mutex_destroy(&f->lock);
    tl_arena_destroy(f->arena);
    free(f);
}

/* ---- what is known of it ---- */

const tl_onnx_signature *tl_family_signature(const tl_family *f)
{
    return &f->signature;
}

int64_t tl_family_compiled(tl_family *f)
{
    pthread_mutex_lock(&f->lock);
    int64_t compiled = f->compiled;
    pthread_mutex_unlock(&f->lock);
    return compiled;
}

int tl_family_axis_count(const tl_family *f)
{
    return f->axes.count;
}

tl_open_axis tl_family_axis(tl_family *f, int index, bool *is_dim)
{
    pthread_mutex_lock(&f->lock);
    tl_open_axis axis = f->axes.axes[index];
    *is_dim = axis.is_dim || (axis.leader >= 0 && f->axes.axes[axis.leader].is_dim);
    pthread_mutex_unlock(&f->lock);
    return axis;
}

/* ---- members ---- */

static tl_status make_member(tl_model *model, tl_family_member **out, tl_diag *diag)
{
    tl_family_member *member = calloc(1, sizeof *member);
    if (member == NULL) {
        tl_model_destroy(model);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    atomic_init(&member->parts, 1);
    member->model = model;
    *out = member;
    return TL_OK;
}

const tl_model *tl_family_model(const tl_family_member *member)
{
    return member->model;
}

void tl_family_release(tl_family_member *member)
{
    if (member == NULL || atomic_fetch_sub(&member->parts, 1) > 1)
        return;
    tl_model_destroy(member->model);
    free(member);
}

static const tl_executable_spec *spec_of(const tl_family_member *member)
{
    return tl_executable_info(tl_model_executable(member->model));
}

static void give(tl_family_member *member, tl_family_code *out)
{
    atomic_fetch_add(&member->parts, 1);
    out->member = member;
    out->spec = spec_of(member);
}

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
            (port->fixed != NULL && (given[i].data == NULL || given[i].size < tl_port_size(port) ||
                                     memcmp(port->fixed, given[i].data, tl_port_size(port)) != 0)))
            return false;
    }
    return true;
}

/* The call's inputs as the pipeline takes them: values that may decide are offered. */
static tl_shape_override *describe_call(const tl_family *f, tl_arena *arena,
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

static tl_status load(const tl_family *f, const tl_model_options *options, tl_model **out,
                      tl_diag *diag)
{
    const tl_family_source *s = &f->source;
    return s->path != NULL ? tl_model_load(s->path, options, out, diag)
                           : tl_model_load_memory(s->bytes, s->size, s->folder, options, out, diag);
}

/* Room for one more: that of the one which was not asked for longest. Who runs it keeps what is needed. */
static tl_family_member **make_room(tl_family *f)
{
    if (f->count < TL_FAMILY_LIMIT)
        return &f->exact[f->count++];
    tl_family_member **oldest = &f->exact[0];
    for (int i = 1; i < f->count; i++)
        if (f->exact[i]->used < (*oldest)->used)
            oldest = &f->exact[i];
    tl_family_release(*oldest);
    return oldest;
}

/* Code for exactly these inputs, compiled or taken from the cache. */
static tl_status make_exact(tl_family *f, tl_arena *scratch, const tl_shape_override *known,
                            tl_family_code *out, tl_diag *diag)
{
    tl_model *model;
    tl_family_member *member = NULL;
    tl_model_options options = f->options;
    TL_TRY(tl_onnx_bind_shapes(scratch, &f->signature, known, f->signature.input_count,
                               &options.shapes, &options.shape_count, diag));
    TL_TRY(load(f, &options, &model, diag));
    TL_TRY(make_member(model, &member, diag));
    *make_room(f) = member;
    f->compiled++;
    member->used = ++f->clock;
    memcpy(f->latest, f->now, sizeof *f->now * (size_t)f->axes.count);
    give(member, out);
    return TL_OK;
}

static tl_family_member *find_exact(tl_family *f, const tl_family_given *given)
{
    int64_t dims[TL_MOST_DIMS];
    for (int i = 0; i < f->count; i++)
        if (tl_family_fits(spec_of(f->exact[i]), given, dims))
            return f->exact[i];
    return NULL;
}

/* ---- code for all values of some axes ---- */

/* Whether the model with these inputs is what the join says; what was seen to be so is remembered. */
static tl_status accept(const tl_family *f, family_join *j, const int64_t *dims,
                        const tl_shape_override *known, tl_diag *diag)
{
    size_t size = sizeof *dims * (size_t)spec_of(j->member)->dim_count;
    size_t slot = tl_hash_bytes(dims, size, 0) % CHECKED;
    if (j->is_checked[slot] && memcmp(j->checked[slot], dims, size) == 0)
        return TL_OK;
    TL_TRY(tl_join_check(j->join, known, f->signature.input_count, dims, diag));
    memcpy(j->checked[slot], dims, size);
    j->is_checked[slot] = true;
    return TL_OK;
}

/* Notes that a join is called with a combination; whether that is among the latest often. */
static bool comes_often(tl_family *f)
{
    uint64_t key = tl_hash_bytes(f->now, sizeof *f->now * (size_t)f->axes.count, 0);
    int times = 0;
    f->recent[f->recent_count++ % RECENT] = key;
    for (uint64_t i = 0; i < RECENT && i < f->recent_count; i++)
        times += f->recent[i] == key;
    return times >= OFTEN;
}

static tl_status open_onnx(tl_family *f, tl_diag *diag)
{
    const tl_family_source *s = &f->source;
    if (f->onnx != NULL)
        return TL_OK;
    TL_TRY(s->path != NULL ? tl_onnx_open(s->path, &f->onnx, diag)
                           : tl_onnx_open_memory(s->bytes, s->size, s->folder, &f->onnx, diag));
    tl_onnx_limit_turns(f->onnx, f->options.most_turns);
    return TL_OK;
}

static tl_status fill_join(tl_family *f, const tl_shape_override *known, family_join *j,
                           tl_diag *diag)
{
    tl_model *model;
    TL_TRY(tl_join_axes(f->arena, f->onnx, &f->signature, &f->axes, f->latest, known, &f->options,
                        &j->join, diag));
    j->checked = calloc(CHECKED, sizeof *j->checked);
    j->is_checked = calloc(CHECKED, sizeof *j->is_checked);
    if (j->checked == NULL || j->is_checked == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(tl_join_compile(j->join, &f->options, &model, diag));
    return make_member(model, &j->member, diag);
}

/* A new join for what is asked for now. */
static tl_status make_join(tl_family *f, const tl_shape_override *known, tl_diag *diag)
{
    family_join j = { 0 };
    if (TL_ARENA_GUARD(f->arena)) /* what is learned of the axes lies there */
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(open_onnx(f, diag));
    tl_status status = fill_join(f, known, &j, diag);
    if (status != TL_OK) {
        free_join(&j);
        return status;
    }
    f->compiled++;
    f->joins[f->join_count++] = j;
    return TL_OK;
}

/* Whether some axis that may be a dim differs from what was compiled. */
static bool may_join(const tl_family *f)
{
    bool differs = false;
    for (int i = 0; i < f->axes.count; i++)
        differs |= f->axes.axes[i].specialised == NULL && f->now[i] != f->latest[i];
    return f->axes.is_known && differs && f->count > 0 && f->join_count < MOST_JOINS;
}

/* The join for these inputs; false: there is none, and `is_tried` says whether it would have been one by its shapes. */
static bool find_join(tl_family *f, const tl_family_given *given, const tl_shape_override *known,
                      bool *is_tried, tl_family_code *out)
{
    for (int i = 0; i < f->join_count; i++) {
        family_join *j = &f->joins[i];
        if (!tl_family_fits(spec_of(j->member), given, out->dims))
            continue;
        *is_tried = true;
        if (accept(f, j, out->dims, known, NULL) != TL_OK)
            continue;
        give(j->member, out);
        return true;
    }
    return false;
}

static tl_status find_or_make(tl_family *f, tl_arena *scratch, const tl_family_given *given,
                              tl_family_code *out, tl_diag *diag)
{
    if (TL_ARENA_GUARD(scratch))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_shape_override *known = describe_call(f, scratch, given);
    bool is_tried = false;
    if (f->axes.is_known)
        tl_open_axes_read(&f->axes, known, f->now);
    if (find_join(f, given, known, &is_tried, out)) {
        if (!comes_often(f))
            return TL_OK;
        tl_family_code own = { 0 };
        if (make_exact(f, scratch, known, &own, NULL) != TL_OK)
            return TL_OK;
        tl_family_release(out->member);
        *out = own;
        return TL_OK;
    }
    if (!is_tried && may_join(f) && make_join(f, known, NULL) == TL_OK &&
        find_join(f, given, known, &is_tried, out))
        return TL_OK;
    return make_exact(f, scratch, known, out, diag);
}

tl_status tl_family_find(tl_family *f, const tl_family_given *given, tl_family_code *out,
                         tl_diag *diag)
{
    tl_status status = TL_OK;
    *out = (tl_family_code){ 0 };
    pthread_mutex_lock(&f->lock);
    tl_family_member *member = find_exact(f, given);
    if (member != NULL) {
        member->used = ++f->clock;
        give(member, out);
    } else {
        tl_arena *scratch = tl_arena_create(0);
        status = scratch != NULL ? find_or_make(f, scratch, given, out, diag)
                                 : tl_fail(diag, TL_NO_MEMORY, "out of memory");
        tl_arena_destroy(scratch);
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}
