/* driver/model.c: a model from its file to something that runs. */
#include "driver/model.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "driver/build_id.h"
#include "driver/model_private.h"
#include "driver/target.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/clock.h"

static double seconds_since(int64_t start)
{
    return (double)(tl_clock_ns() - start) * 1e-9;
}

static void progress(const tl_model_options *options, const char *stage)
{
    if (options->progress != NULL)
        options->progress(options->user, stage, 0, 0);
}

/* Where a model comes from: a file, or bytes in memory. */
typedef struct {
    const char *path; /* NULL: in memory */
    const void *bytes;
    size_t size;
    const char *folder; /* of external weights; NULL: there may be none */
    const char *name;   /* for messages */
} model_source;

/* The key of the finished executable: the model's bytes and place, the shapes asked for, the target, what generates
 * code. External data is recorded in the executable by place, size and time, and checked when it is loaded. */
static tl_status executable_key(tl_model *model, const model_source *source,
                                const tl_model_options *options, tl_diag *diag)
{
    tl_digest digest;
    tl_text text = { 0 };
    char resolved[PATH_MAX];
    tl_digest_start(&digest);
    if (source->path != NULL) {
        tl_mapping file;
        TL_TRY(tl_file_map(source->path, &file, diag));
        tl_digest_add(&digest, file.data, file.size);
        tl_file_unmap(&file);
        const char *full = realpath(source->path, resolved) ? resolved : source->path;
        const char *slash = strrchr(full, '/');
        model->folder = slash ? tl_arena_strndup(model->arena, full, (size_t)(slash - full)) : ".";
        tl_text_format(&text, "%s\n", full);
    } else {
        tl_digest_add(&digest, source->bytes, source->size);
        model->folder = ".";
        if (source->folder != NULL && realpath(source->folder, resolved) != NULL)
            model->folder = tl_arena_strdup(model->arena, resolved);
        tl_text_format(&text, "in memory %s\n", source->folder != NULL ? model->folder : "");
    }
    for (int i = 0; i < options->shape_count; i++) {
        tl_text_format(&text, "%s", options->shapes[i].name);
        for (int a = 0; a < options->shapes[i].shape.rank; a++)
            tl_text_format(&text, ",%lld", (long long)options->shapes[i].shape.dims[a].extent);
        tl_text_add(&text, "\n");
    }
    tl_target_print(&model->target, &text);
    tl_text_format(&text, "\nbuild %s llvm %s naive %d numerics %d", tl_build_id(),
                   tl_codegen_llvm_version(), options->naive, (int)options->numerics);
    tl_digest_add(&digest, text.data, text.size);
    tl_text_free(&text);
    tl_digest_text(&digest, model->key);
    return TL_OK;
}

static bool load_cached(tl_model *model)
{
    tl_text folder = { 0 };
    bool found = tl_cache_executable_folder(model->cache, model->key, &folder) &&
                 tl_executable_load(tl_text_get(&folder), &model->executable, NULL) == TL_OK;
    if (found && !tl_executable_is_prepared(model->executable)) {
        tl_executable_destroy(model->executable);
        model->executable = NULL;
        found = false;
    }
    if (found)
        tl_cache_touch(model->cache, model->key);
    tl_text_free(&folder);
    return found;
}

static void store_cached(tl_model *model)
{
    tl_text folder = { 0 };
    if (tl_cache_executable_folder(model->cache, model->key, &folder))
        tl_executable_save(model->executable, tl_text_get(&folder),
                           NULL); /* a cache that is full is no error */
    tl_text_free(&folder);
}

/* Naive programs, and which kernels share one workload. */
static tl_status collect_works(tl_model *model, tl_diag *diag)
{
    int count = model->partition.count;
    tl_map *known = tl_map_create(model->arena);
    model->kernels = TL_NEW_ARRAY(model->arena, tl_model_kernel, count);
    model->work_of = TL_NEW_ARRAY(model->arena, int, count);
    model->works = TL_NEW_ARRAY(model->arena, tl_work, count);
    for (int i = 0; i < count; i++) {
        const tl_kernel *kernel = &model->partition.kernels[i];
        tl_model_kernel *facts = &model->kernels[i];
        tl_program *naive;
        tl_status status =
            tl_kernel_program(model->arena, kernel, tl_choose_lowering(kernel, model->numerics),
                              &naive, diag);
        if (status != TL_OK) {
            tl_context(diag, "kernel %s", kernel->name);
            return status;
        }
        facts->kernel = kernel;
        tl_workload_key(model->arena, naive, facts->workload);
        tl_class_key(model->arena, naive, facts->class_key);
        facts->flops = tl_program_flops(naive);
        facts->bytes = tl_program_bytes(naive);
        model->facts.flops += facts->flops;

        tl_model_kernel *same = tl_map_find(known, facts->workload);
        if (same != NULL) {
            facts->same_as = (int)(same - model->kernels);
            facts->naive = same->naive;
            model->work_of[i] = model->work_of[facts->same_as];
            continue;
        }
        /* one name for the workload, so that another model's kernel of the same shape finds its object */
        naive->name = tl_arena_format(model->arena, "%s_%.8s", kernel->family, facts->workload);
        facts->naive = naive;
        facts->same_as = i;
        tl_map_put(known, facts->workload, facts);
        model->work_of[i] = model->work_count;
        model->works[model->work_count++].naive = naive;
    }
    return TL_OK;
}

static tl_status read_graph(tl_model *model, const model_source *source,
                            const tl_model_options *options, tl_diag *diag)
{
    if (source->path != NULL)
        return tl_onnx_read(model->arena, source->path, options->shapes, options->shape_count,
                            &model->onnx, &model->graph, diag);
    return tl_onnx_read_memory(model->arena, source->bytes, source->size, source->folder,
                               options->shapes, options->shape_count, &model->onnx, &model->graph,
                               diag);
}

static tl_status compile_model(tl_model *model, const model_source *source,
                               const tl_model_options *options, tl_diag *diag)
{
    tl_model_facts *facts = &model->facts;
    int64_t start = tl_clock_ns();
    progress(options, "reading");
    TL_TRY(read_graph(model, source, options, diag));
    facts->read_s = seconds_since(start);

    start = tl_clock_ns();
    progress(options, "rewriting the graph");
    TL_TRY(tl_graph_prepare(model->graph, diag));
    TL_TRY(tl_assign_layouts(model->graph, &model->target, diag));
    TL_TRY(tl_partition_graph(model->arena, model->graph, &model->partition, diag));
    TL_TRY(collect_works(model, diag));
    facts->graph_s = seconds_since(start);

    start = tl_clock_ns();
    TL_TRY(tl_compile_works(model, options, diag));
    facts->compile_s = seconds_since(start);
    for (int i = 0; i < model->partition.count; i++) {
        const tl_work *work = &model->works[model->work_of[i]];
        model->kernels[i].scheduled = work->scheduled;
        model->kernels[i].trace = work->trace;
        model->kernels[i].object_cached = work->cached;
    }
    facts->kernel_count = model->partition.count;
    facts->workload_count = model->work_count;
    facts->kernels = model->kernels;
    facts->graph = model->graph;
    if (options->inspect_only)
        return TL_OK;

    TL_TRY(tl_build_executable(model, diag));
    if (options->compile_only)
        return TL_OK;
    start = tl_clock_ns();
    progress(options, "packing constants");
    TL_TRY(tl_executable_prepare(model->executable, options->pool, 0, diag));
    facts->prepare_s = seconds_since(start);
    return TL_OK;
}

static tl_status load(tl_model *model, const model_source *source, const tl_model_options *options,
                      tl_diag *diag)
{
    TL_TRY(tl_target_resolve(options->target, &model->target, diag));
    if (!options->no_cache)
        TL_TRY(tl_cache_open(options->cache_folder, 0, &model->cache, diag));
    TL_TRY(executable_key(model, source, options, diag));
    bool whole = !options->no_cache && !options->keep_programs && !options->inspect_only;
    if (whole && load_cached(model)) {
        const tl_executable_spec *spec = tl_executable_info(model->executable);
        model->facts.from_cache = true;
        model->facts.kernel_count = spec->step_count;
        for (int i = 0; i < spec->step_count; i++)
            model->facts.flops += spec->steps[i].flops;
        return TL_OK;
    }
    tl_status status = compile_model(model, source, options, diag);
    if (status != TL_OK) {
        if (diag != NULL &&
            strstr(diag->text, source->name) == NULL) /* the reader may have named it */
            tl_context(diag, "model %s", source->name);
        return status;
    }
    if (whole && !options->compile_only)
        store_cached(model);
    return TL_OK;
}

static tl_status load_from(const model_source *source, const tl_model_options *options,
                           tl_model **out, tl_diag *diag)
{
    *out = NULL;
    int64_t start = tl_clock_ns();
    tl_model *volatile model = calloc(1, sizeof *model);
    tl_arena *arena = model == NULL ? NULL : tl_arena_create(0);
    if (arena == NULL) {
        free(model);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", source->name);
    }
    model->arena = arena;
    model->facts.target = &model->target;
    model->numerics = options->numerics;
    if (TL_ARENA_GUARD(arena)) {
        tl_model_destroy(model);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", source->name);
    }
    tl_status status = load(model, source, options, diag);
    if (status != TL_OK) {
        tl_model_destroy(model);
        return status;
    }
    model->facts.total_s = seconds_since(start);
    *out = model;
    return TL_OK;
}

tl_status tl_model_load(const char *path, const tl_model_options *options, tl_model **out,
                        tl_diag *diag)
{
    model_source source = { .path = path, .name = path };
    return load_from(&source, options, out, diag);
}

tl_status tl_model_load_memory(const void *bytes, size_t size, const char *folder,
                               const tl_model_options *options, tl_model **out, tl_diag *diag)
{
    model_source source = { .bytes = bytes, .size = size, .folder = folder, .name = "in memory" };
    return load_from(&source, options, out, diag);
}

void tl_model_destroy(tl_model *model)
{
    if (model == NULL)
        return;
    tl_executable_destroy(model->executable);
    for (int i = 0; i < model->work_count; i++) {
        tl_work *work = &model->works[i];
        if (work->jit != NULL)
            tl_jit_remove(work->jit);
        if (work->prepare_jit != NULL)
            tl_jit_remove(work->prepare_jit);
        tl_text_free(&work->object);
        tl_text_free(&work->prepare_object);
        tl_arena_destroy(work->arena);
    }
    tl_jit_destroy(model->jit);
    if (model->onnx != NULL)
        tl_onnx_close(model->onnx);
    tl_cache_close(model->cache);
    tl_arena_destroy(model->arena);
    free(model);
}

tl_executable *tl_model_executable(const tl_model *model)
{
    return model->executable;
}

const tl_model_facts *tl_model_get_facts(const tl_model *model)
{
    return &model->facts;
}
