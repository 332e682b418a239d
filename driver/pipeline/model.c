/* driver/pipeline/model.c: a model from its file to something that runs. */
#include "driver/pipeline/model.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/build_id.h"
#include "driver/pipeline/device_target.h"
#include "driver/pipeline/model_memory.h"
#include "driver/pipeline/model_private.h"
#include "driver/pipeline/host_target.h"
#include "ir/program/machine.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/pages.h"
#include "runtime/base/clock.h"

static double seconds_since(int64_t start)
{
    return (double)(tl_clock_ns() - start) * 1e-9;
}

static void progress(const tl_model_options *options, const char *stage)
{
    if (options->progress != NULL)
        options->progress(options->user, stage, 0, 0);
}

static void derive_key_bytes(const char *key, const void *bytes, size_t size, char out[33])
{
    tl_digest digest;
    tl_digest_start(&digest);
    tl_digest_add(&digest, key, strlen(key));
    tl_digest_add(&digest, bytes, size);
    tl_digest_text(&digest, out);
}

/* What belongs to a key under a name: the key of something about the model in the cache. */
static void derive_key(const char *key, const char *name, char out[33])
{
    derive_key_bytes(key, name, strlen(name), out);
}

/* Where a model comes from: a file, or bytes in memory. */
typedef struct {
    const char *path; /* NULL: in memory */
    const void *bytes;
    size_t size;
    const char *folder; /* of external weights; NULL: there may be none */
    const char *name;   /* for messages */
} model_source;

static bool has_line(const char *lines, const char *line)
{
    size_t size = strlen(line);
    for (; *lines != '\0'; lines += strcspn(lines, "\n") + 1)
        if (strncmp(lines, line, size) == 0 && lines[size] == '\n')
            return true;
    return false;
}

static bool offers_values(const tl_model_options *options)
{
    for (int i = 0; i < options->shape_count; i++)
        if (options->shapes[i].value != NULL)
            return true;
    return false;
}

/* The values of deciding inputs belong to what the model is: one of other values is another. */
static void key_values(tl_model *model, const tl_model_options *options)
{
    tl_text values = { 0 };
    memcpy(model->identity, model->base_identity, sizeof model->identity);
    memcpy(model->key, model->base_key, sizeof model->key);
    for (int i = 0; i < options->shape_count; i++) {
        const tl_shape_override *o = &options->shapes[i];
        if (o->value == NULL || !has_line(model->deciding, o->name))
            continue;
        tl_text_format(&values, "%s %s ", o->name, tl_dtype_infos[o->dtype].text);
        tl_text_add_bytes(&values, o->value,
                          (size_t)tl_storage_bytes(o->dtype, tl_shape_elements(&o->shape)));
    }
    if (values.size > 0) {
        derive_key_bytes(model->base_identity, values.data, values.size, model->identity);
        derive_key_bytes(model->base_key, values.data, values.size, model->key);
    }
    tl_text_free(&values);
}

/* Which inputs decide, as far as earlier loads of the model have seen, which the cache remembers; nothing is looked up for
 * a model that no values are offered to. */
static void recall_deciding(tl_model *model, const tl_model_options *options)
{
    char key[33];
    tl_cached cached;
    if (!offers_values(options)) {
        model->deciding = "";
        return;
    }
    derive_key(model->base_key, "deciding", key);
    if (model->cache == NULL || !tl_cache_find(model->cache, key, &cached))
        return;
    model->deciding = tl_arena_strndup(model->arena, cached.object, cached.object_size);
    tl_cached_free(&cached);
    key_values(model, options);
}

/* Adds the inputs that the graph which was read is bound to: what decides may depend on the values of what decided before.
 * False: all were known. */
static bool learn_deciding(tl_model *model, const tl_model_options *options)
{
    char key[33];
    const void *data;
    bool is_new = model->deciding == NULL;
    const char *names = is_new ? "" : model->deciding;
    for (int i = 0; i < tl_onnx_bound_count(model->onnx); i++) {
        const char *name = tl_onnx_bound(model->onnx, i, &data);
        if (has_line(names, name))
            continue;
        names = tl_arena_format(model->arena, "%s%s\n", names, name);
        is_new = true;
    }
    if (!is_new)
        return false;
    model->deciding = names;
    derive_key(model->base_key, "deciding", key);
    if (model->cache != NULL)
        tl_cache_store(model->cache, key, names, strlen(names), "{}");
    key_values(model, options);
    return true;
}

/* A piece at a time, so that a large file is never resident as a whole. */
static void add_file(tl_digest *digest, const tl_mapping *file)
{
    const size_t piece = 4 << 20;
    for (size_t at = 0; at < file->size; at += piece) {
        const char *bytes = (const char *)file->data + at;
        size_t size = file->size - at < piece ? file->size - at : piece;
        tl_digest_add(digest, bytes, size);
        tl_pages_rest(bytes, size);
    }
}

/* The model's identity, and the key under which it is kept when no records are taken: its bytes and place, the shapes
 * asked for, the target, what generates code. External data is recorded in the executable by place, size and time, and
 * checked when it is loaded. */
static tl_status model_keys(tl_model *model, const model_source *source,
                            const tl_model_options *options, tl_diag *diag)
{
    tl_digest digest;
    tl_text text = { 0 };
    char resolved[PATH_MAX], stamp[33], usual[33];
    tl_digest_start(&digest);
    if (source->path != NULL) {
        tl_mapping file;
        TL_TRY(tl_file_map(source->path, &file, diag));
        add_file(&digest, &file);
        tl_file_unmap(&file);
    } else {
        tl_digest_add(&digest, source->bytes, source->size);
    }
    for (int i = 0; i < options->shape_count; i++) {
        tl_text_format(&text, "%s", options->shapes[i].name);
        for (int a = 0; a < options->shapes[i].shape.rank; a++)
            tl_text_format(&text, ",%lld", (long long)options->shapes[i].shape.dims[a].extent);
        tl_text_add(&text, "\n");
    }
    if (options->most_turns > 0)
        tl_text_format(&text, "turns %lld\n", (long long)options->most_turns);
    tl_digest_add(&digest, text.data, text.size);
    tl_digest_text(&digest, model->base_identity);

    text.size = 0;
    tl_text_format(&text, "%s\n", model->base_identity);
    if (source->path != NULL) {
        const char *full = realpath(source->path, resolved) ? resolved : source->path;
        const char *slash = strrchr(full, '/');
        model->folder = slash ? tl_arena_strndup(model->arena, full, (size_t)(slash - full)) : ".";
        tl_text_format(&text, "%s\n", full);
    } else {
        model->folder = ".";
        if (source->folder != NULL && realpath(source->folder, resolved) != NULL)
            model->folder = tl_arena_strdup(model->arena, resolved);
        tl_text_format(&text, "in memory %s\n", source->folder != NULL ? model->folder : "");
    }
    tl_target_print(&model->target, &text);
    if (options->without != NULL)
        tl_text_format(&text, "\nwithout %s", options->without);
    tl_machine_stamp(tl_machine_of(&model->target), stamp);
    tl_machine_stamp(&tl_machine_built_in, usual);
    if (strcmp(stamp, usual) != 0) /* its default schedules are others */
        tl_text_format(&text, "\nmachine %s", stamp);
    tl_text_format(&text, "\nbuild %s llvm %s naive %d numerics %d", tl_build_id(),
                   tl_codegen_llvm_version(), options->naive, (int)options->numerics);
    if (tl_target_is_gpu(&model->target) && tl_ptx_has_module())
        tl_text_add(&text, " with module");
    if (model->device != NULL && model->device->type->form == TL_FORM_LLVM)
        tl_text_format(&text, " for %s", model->device->type->name);
    tl_digest_start(&digest);
    tl_digest_add(&digest, text.data, text.size);
    tl_text_free(&text);
    tl_digest_text(&digest, model->base_key);
    memcpy(model->identity, model->base_identity, sizeof model->identity);
    memcpy(model->key, model->base_key, sizeof model->key);
    return TL_OK;
}

/* The key of the executable with the picks in it: a tuned one is never taken for another. */
static void executable_key(const tl_model *model, char out[33])
{
    char stamp[33];
    tl_picks_stamp(&model->picks, stamp);
    if (stamp[0] == '\0')
        memcpy(out, model->key, sizeof model->key);
    else
        derive_key(model->key, stamp, out);
}

/* `*status`: of putting it on its device. */
static bool load_cached(tl_model *model, tl_status *status, tl_diag *diag)
{
    char key[33];
    tl_text folder = { 0 };
    executable_key(model, key);
    bool found = tl_cache_executable_folder(model->cache, key, &folder) &&
                 tl_executable_load(tl_text_get(&folder), &model->executable, NULL) == TL_OK;
    if (found && !tl_executable_is_prepared(model->executable)) {
        tl_executable_destroy(model->executable);
        model->executable = NULL;
        found = false;
    }
    if (found && model->device != NULL && !model->is_foreign)
        *status = tl_executable_attach(model->executable, model->device, diag);
    if (found)
        tl_cache_touch(model->cache, key);
    tl_text_free(&folder);
    return found;
}

void tl_model_store(tl_model *model)
{
    char key[33];
    tl_text folder = { 0 };
    if (model->cache == NULL)
        return;
    executable_key(model, key);
    if (tl_cache_executable_folder(model->cache, key, &folder))
        tl_executable_save(model->executable, TL_SAVE_PRIVATE, tl_text_get(&folder),
                           NULL); /* a cache that is full is no error */
    tl_text_free(&folder);
}

/* The kernel's naive program, and its workload: the key of the direct lowering, which all of its records share. */
static tl_status lower_kernel(tl_model *model, const tl_kernel *kernel, tl_model_kernel *facts,
                              tl_program **out, tl_diag *diag)
{
    tl_program *direct;
    facts->kernel = kernel;
    if (model->join != NULL) {
        int index = (int)(kernel - model->partition.kernels);
        *out = tl_program_copy(model->arena, model->join->programs[index]);
        facts->lowering = model->join->lowerings[index];
        tl_workload_key(model->arena, *out, facts->workload);
        return TL_OK;
    }
    facts->lowering = tl_graph_leaves_out(model->without, "lowering")
                          ? "direct"
                          : tl_choose_lowering(kernel, &model->target, model->numerics);
    TL_TRY(tl_kernel_program(model->arena, kernel, facts->lowering, out, diag));
    direct = *out;
    if (strcmp(facts->lowering, "direct") != 0)
        TL_TRY(tl_kernel_program(model->arena, kernel, "direct", &direct, diag));
    tl_workload_key(model->arena, direct, facts->workload);
    (*out)->strict = model->numerics == TL_NUMERICS_STRICT;
    (*out)->tf32 = model->numerics == TL_NUMERICS_TF32;
    return TL_OK;
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
        tl_status status = lower_kernel(model, kernel, facts, &naive, diag);
        if (status != TL_OK) {
            tl_context(diag, "kernel %s", kernel->name);
            return status;
        }
        tl_class_key(model->arena, naive, facts->class_key);
        facts->flops = tl_program_flops(naive);
        facts->bytes = tl_program_bytes(naive);
        model->facts.flops += facts->flops;

        tl_model_kernel *same = tl_map_find(known, facts->workload);
        if (same != NULL) {
            facts->same_as = (int)(same - model->kernels);
            model->work_of[i] = model->work_of[facts->same_as];
            continue;
        }
        facts->same_as = i;
        tl_map_put(known, facts->workload, facts);
        model->work_of[i] = model->work_count;
        tl_work *work = &model->works[model->work_count++];
        /* one name for the workload, so that another model's kernel of the same shape finds its object */
        naive->name = tl_arena_format(model->arena, "%s_%.8s", kernel->family, facts->workload);
        *work = (tl_work){
            .name = naive->name, .kernel = kernel, .naive = naive, .lowering = facts->lowering
        };
    }
    return TL_OK;
}

static void note(const tl_model_options *options, const char *sentence)
{
    if (options->note != NULL)
        options->note(options->user, sentence);
}

/* The records to compile with. None is fine, and so is a default file that cannot be read; one that a person named has
 * to be there and to be a sound database of tilth. */
static tl_status open_records(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    tl_diag why = { 0 };
    const int flags = TL_RECORDS_READ_ONLY | TL_RECORDS_TRUST;
    if (options->no_database || options->naive || options->without != NULL ||
        options->picks != NULL)
        return TL_OK;
    tl_status status = tl_records_open_default(options->database, flags, &model->records, &why);
    if (status == TL_OK)
        return TL_OK;
    if (options->database != NULL)
        return tl_fail(diag, status, "%s", why.text);
    if (status == TL_IO || status == TL_UNSUPPORTED) /* it is there: damaged, or a newer tilth's */
        note(options, why.text);
    return TL_OK;
}

static tl_picks_query query_of(const tl_model *model)
{
    return (tl_picks_query){ .model = model->identity,
                             .target = &model->target,
                             .numerics = model->numerics,
                             .threads = model->threads };
}

/* Keys of the model's workloads, a line each, are kept in the cache, so that the best records can be asked for without
 * reading the graph. */
static bool cached_workloads(tl_model *model, const char *const **out, int *count)
{
    char key[33];
    tl_cached cached;
    derive_key(model->key, "workloads", key);
    if (model->cache == NULL || !tl_cache_find(model->cache, key, &cached))
        return false;
    *count = (int)(cached.object_size / 33);
    const char **keys = TL_NEW_ARRAY(model->arena, const char *, *count);
    for (int i = 0; i < *count; i++)
        keys[i] = tl_arena_strndup(model->arena, (const char *)cached.object + (size_t)i * 33, 32);
    tl_cached_free(&cached);
    *out = keys;
    return true;
}

static void cache_workloads(tl_model *model, const char *const *keys, int count)
{
    char key[33];
    tl_text text = { 0 };
    derive_key(model->key, "workloads", key);
    for (int i = 0; i < count; i++)
        tl_text_format(&text, "%.32s\n", keys[i]);
    if (!text.failed && model->cache != NULL)
        tl_cache_store(model->cache, key, text.data, text.size, "{}");
    tl_text_free(&text);
}

/* Which records to take, as far as it can be told before the graph is read. False: it cannot. */
static bool find_picks(tl_model *model, const tl_model_options *options)
{
    const char *const *workloads;
    int count;
    tl_picks_query query = query_of(model);
    if (options->picks != NULL)
        model->picks = *options->picks;
    if (model->records == NULL ||
        tl_picks_of_choice(model->records, model->arena, &query, &model->picks))
        return true;
    if (!cached_workloads(model, &workloads, &count))
        return false;
    tl_picks_best(model->records, model->arena, &query, workloads, count, &model->picks);
    return true;
}

/* The same once the workloads are known. */
static void find_best_picks(tl_model *model)
{
    const char **keys = TL_NEW_ARRAY(model->arena, const char *, model->work_count);
    tl_picks_query query = query_of(model);
    for (int i = 0; i < model->partition.count; i++)
        keys[model->work_of[i]] = model->kernels[i].workload;
    cache_workloads(model, keys, model->work_count);
    tl_picks_best(model->records, model->arena, &query, keys, model->work_count, &model->picks);
}

static void give_picks(tl_model *model)
{
    for (int i = 0; i < model->partition.count; i++) {
        tl_work *work = &model->works[model->work_of[i]];
        work->pick = tl_picks_find(&model->picks, model->kernels[i].workload);
    }
}

static tl_status read_graph(tl_model *model, const model_source *source,
                            const tl_model_options *options, tl_diag *diag)
{
    const tl_onnx_source from = { .path = source->path,
                                  .bytes = source->bytes,
                                  .size = source->size,
                                  .folder = source->folder,
                                  .shapes = options->shapes,
                                  .shape_count = options->shape_count,
                                  .most_turns = options->most_turns };
    return tl_onnx_read_source(model->arena, &from, &model->onnx, &model->graph, diag);
}

static void cut_all(const tl_graph *g, void *cuts)
{
    for (int i = 0; i < g->value_count; i++)
        tl_text_format(cuts, "cut %s\n", g->values[i]->name);
}

static void set_form(tl_model *model)
{
    tl_text cuts = { 0 };
    if (!tl_graph_leaves_out(model->without, "fusion")) {
        tl_graph_set_form(model->graph, model->picks.form);
        return;
    }
    tl_graph_visit(model->graph, cut_all, &cuts);
    tl_graph_set_form(model->graph, tl_text_get(&cuts));
    tl_text_free(&cuts);
}

/* Before anything is compiled: whether there will be room for it. What runs elsewhere has only its weights here. */
static tl_status check_graph(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    tl_model_memory footprint;
    tl_plan_sizes plan;
    if (options->inspect_only)
        return TL_OK;
    TL_TRY(tl_model_memory_of_graph(model->arena, model->graph, &model->partition, NULL, &footprint,
                                    &plan, diag));
    if (options->compile_only)
        footprint.plan = footprint.ports = 0;
    return tl_model_memory_check(&footprint, model->memory_limit, diag);
}

/* The same once it is known what is packed; runners keep to the limit themselves. */
static tl_status check_executable(const tl_model *model, tl_diag *diag)
{
    tl_model_memory footprint = tl_model_memory_of_executable(model->executable);
    tl_executable_limit_memory(model->executable, model->memory_limit);
    return tl_model_memory_check(&footprint, model->memory_limit, diag);
}

/* Schedules, code and executable of the works. */
static tl_status finish_model(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    tl_model_facts *facts = &model->facts;
    int64_t start = tl_clock_ns();
    TL_TRY(tl_compile_works(model, options, diag));
    facts->compile_s = seconds_since(start);
    for (int i = 0; i < model->partition.count; i++) {
        const tl_work *work = &model->works[model->work_of[i]];
        model->kernels[i].naive = work->naive;
        model->kernels[i].scheduled = work->scheduled;
        model->kernels[i].lowering = work->lowering;
        model->kernels[i].trace = work->trace;
        model->kernels[i].pick = work->pick;
        facts->tuned_count += work->pick != NULL;
        model->kernels[i].object_cached = work->cached;
    }
    facts->kernel_count = model->partition.count;
    facts->workload_count = model->work_count;
    facts->kernels = model->kernels;
    facts->graph = model->graph;
    facts->partition = &model->partition;
    if (options->inspect_only)
        return TL_OK;

    if (model->device != NULL)
        TL_TRY(tl_compile_native(model, !options->no_cache, diag));
    TL_TRY(tl_build_executable(model, diag));
    if (options->compile_only)
        return TL_OK;
    TL_TRY(check_executable(model, diag));
    start = tl_clock_ns();
    progress(options, "packing constants");
    if (model->device != NULL && !options->foreign)
        TL_TRY(tl_executable_attach(model->executable, model->device, diag));
    TL_TRY(tl_executable_prepare(model->executable, options->pool, 0, diag));
    facts->prepare_s = seconds_since(start);
    return TL_OK;
}

/* `picks_known`: model->picks is what to take. */
static tl_status compile_model(tl_model *model, const model_source *source,
                               const tl_model_options *options, bool picks_known, tl_diag *diag)
{
    tl_model_facts *facts = &model->facts;
    int64_t start = tl_clock_ns();
    progress(options, "reading");
    TL_TRY(read_graph(model, source, options, diag));
    if (learn_deciding(model, options))
        picks_known = find_picks(model, options);
    facts->read_s = seconds_since(start);

    start = tl_clock_ns();
    progress(options, "rewriting the graph");
    model->graph->without = model->without;
    TL_TRY(tl_graph_prepare(model->graph, model->numerics, diag));
    TL_TRY(tl_graph_fit(model->graph, &model->target, model->numerics, diag));
    set_form(model);
    TL_TRY(tl_assign_layouts(model->graph, &model->target, diag));
    TL_TRY(tl_partition_graph(model->arena, model->graph, &model->partition, diag));
    TL_TRY(check_graph(model, options, diag));
    TL_TRY(collect_works(model, diag));
    if (!picks_known)
        find_best_picks(model);
    give_picks(model);
    facts->graph_s = seconds_since(start);
    return finish_model(model, options, diag);
}

/* What tl_build_executable wrote into an executable for people to find again. */
static void read_note(const char *text, tl_model_facts *facts)
{
    if (text == NULL || sscanf(text, "tuned %d", &facts->tuned_count) != 1)
        facts->tuned_count = 0;
}

/* The target, and the device that the model will be on. What only is compiled needs none where the target says all. */
static tl_status choose_target(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    const char *name = options->target;
    model->is_foreign = options->foreign;
    if (tl_target_is_device(name) && !options->inspect_only &&
        (!options->foreign || !tl_target_is_foreign_device(name)))
        TL_TRY(tl_target_open_device(name, &model->device, diag));
    TL_TRY(tl_target_any(name, model->cache, &model->target, diag));
    if (!options->foreign)
        TL_TRY(tl_target_check(name, diag));
    model->prepare_target = model->target;
    bool is_run = !options->foreign && !options->inspect_only && !options->compile_only;
    if (tl_target_is_gpu(&model->target) && is_run && model->device == NULL)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "target %s: nothing runs there; --target cuda is a GPU of this machine",
                       name);
    if (tl_target_is_gpu(&model->target))
        TL_TRY(tl_target_any(NULL, model->cache, &model->prepare_target, diag));
    return TL_OK;
}

static tl_status load(tl_model *model, const model_source *source, const tl_model_options *options,
                      tl_diag *diag)
{
    if (!options->no_cache)
        TL_TRY(tl_cache_open(options->cache_folder, 0, &model->cache, diag));
    if (model->cache != NULL && tl_cache_folder(model->cache) != NULL)
        tl_arena_spill_into(model->arena, tl_cache_folder(model->cache)); /* folded weights */
    TL_TRY(choose_target(model, options, diag));
    model->target.machine = options->machine;
    TL_TRY(model_keys(model, source, options, diag));
    model->threads = options->threads > 0 ? options->threads : tl_pool_threads(options->pool);
    TL_TRY(open_records(model, options, diag));
    bool whole = !options->no_cache && !options->keep_programs && !options->inspect_only;
    recall_deciding(model, options);
    bool picks_known = model->deciding != NULL && find_picks(model, options);
    tl_status status = TL_OK;
    if (whole && picks_known && load_cached(model, &status, diag)) {
        TL_TRY(status);
        const tl_executable_spec *spec = tl_executable_info(model->executable);
        model->facts.from_cache = true;
        read_note(spec->note, &model->facts);
        model->facts.kernel_count = 0;
        for (int i = 0; i < spec->step_count; i++)
            model->facts.kernel_count += spec->steps[i].kernel >= 0;
        for (int i = 0; i < spec->step_count; i++)
            model->facts.flops += spec->steps[i].flops;
        status = check_executable(model, diag);
        if (status != TL_OK)
            tl_context(diag, "model %s", source->name);
        return status;
    }
    status = compile_model(model, source, options, picks_known, diag);
    if (status != TL_OK) {
        if (diag != NULL &&
            strstr(diag->text, source->name) == NULL) /* the reader may have named it */
            tl_context(diag, "model %s", source->name);
        return status;
    }
    if (whole && !options->compile_only)
        tl_model_store(model);
    return TL_OK;
}

/* The arena had come to its limit: which, and by how much. */
static tl_status explain_limit(const tl_model *model, const model_source *source, tl_diag *diag)
{
    tl_text more = { 0 }, most = { 0 };
    tl_text_add_size(&more, (int64_t)tl_arena_refused(model->arena));
    tl_text_add_size(&most, model->memory_limit);
    tl_status status = tl_fail(diag, TL_NO_MEMORY,
                               "model %s: compiling it takes more memory than the limit of %s "
                               "(--max-memory): %s more at once",
                               source->name, tl_text_get(&most), tl_text_get(&more));
    tl_text_free(&more);
    tl_text_free(&most);
    return status;
}

/* A model with nothing in it but its arena; NULL: no memory. */
static tl_model *new_model(const tl_model_options *options)
{
    int64_t limit = options->max_memory > 0 ? options->max_memory : tl_model_memory_limit();
    tl_model *model = calloc(1, sizeof *model);
    tl_arena *arena = model == NULL ? NULL : tl_arena_create((size_t)limit);
    if (arena == NULL) {
        free(model);
        return NULL;
    }
    model->arena = arena;
    model->memory_limit = limit;
    model->facts.target = &model->target;
    model->facts.host = &model->prepare_target;
    model->facts.identity = model->identity;
    model->facts.memory_limit = limit;
    model->facts.picks = &model->picks;
    model->picks = (tl_picks){ .form = "", .uid = "" };
    model->numerics = options->numerics;
    model->without = options->without;
    return model;
}

static tl_status load_guarded(tl_model *model, const model_source *source,
                              const tl_model_options *options, tl_diag *diag)
{
    return TL_ARENA_GUARD(model->arena)
               ? tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", source->name)
               : load(model, source, options, diag);
}

static tl_status load_from(const model_source *source, const tl_model_options *options,
                           tl_model **out, tl_diag *diag)
{
    *out = NULL;
    int64_t start = tl_clock_ns();
    tl_model *model = new_model(options);
    if (model == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", source->name);
    tl_status status = load_guarded(model, source, options, diag);
    if (status == TL_NO_MEMORY && tl_arena_refused(model->arena) > 0)
        status = explain_limit(model, source, diag);
    else if (status == TL_NO_MEMORY && diag != NULL && strstr(diag->text, "max-memory") == NULL)
        tl_context(diag, "memory of %lld MB at most (--max-memory)",
                   (long long)(model->memory_limit >> 20));
    if (status != TL_OK) {
        tl_model_destroy(model);
        return status;
    }
    tl_records_close(model->records, NULL);
    model->records = NULL;
    model->facts.total_s = seconds_since(start);
    *out = model;
    return TL_OK;
}

static tl_status compile_join(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    if (TL_ARENA_GUARD(model->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    const tl_join *join = model->join;
    model->target = model->prepare_target = join->target;
    model->onnx = join->onnx;
    model->onnx_is_shared = true;
    model->graph = join->graph;
    model->partition = join->partition;
    model->folder = ".";
    if (!options->no_cache)
        TL_TRY(tl_cache_open(options->cache_folder, 0, &model->cache, diag));
    TL_TRY(collect_works(model, diag));
    return finish_model(model, options, diag);
}

tl_status tl_join_compile(tl_join *join, const tl_model_options *options, tl_model **out,
                          tl_diag *diag)
{
    *out = NULL;
    int64_t start = tl_clock_ns();
    tl_model *model = new_model(options);
    if (model == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    model->join = join;
    tl_status status = compile_join(model, options, diag);
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
        tl_text_free(&work->native);
        tl_arena_destroy(work->arena);
    }
    tl_jit_destroy(model->jit);
    tl_device_close(model->device);
    if (model->onnx != NULL && !model->onnx_is_shared)
        tl_onnx_close(model->onnx);
    tl_records_close(model->records, NULL);
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

/* Steps that run kernels are in the order of the kernels, whatever stands between them. */
const int *tl_model_kernel_of_steps(tl_arena *arena, const tl_model *model)
{
    const tl_executable_spec *spec = tl_executable_info(model->executable);
    int *kernels = TL_NEW_ARRAY(arena, int, spec->step_count), count = 0;
    for (int i = 0; i < spec->step_count; i++)
        kernels[i] = spec->steps[i].kernel >= 0 ? count++ : -1;
    return kernels;
}
