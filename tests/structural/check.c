/* tests/structural/check.c: the variants of a graph. */
#include "tests/structural/check.h"
#include <stdio.h>
#include <string.h>
#include "driver/api/tilth.h"
#include "driver/pipeline/model.h"
#include "runtime/base/random.h"

const char *const graph_verdicts[GRAPH_VERDICTS] = { "good", "refused", "wrong", "crashed" };

typedef struct {
    const char *name;
    tl_numerics numerics;
    const char *without;
    int threads;
    const char *target;
} variant;
static const variant variants[] = {
#define VARIANT(name, numerics, without, threads, target) \
    { #name, TL_NUMERICS_##numerics, without, threads, target },
#include "tests/structural/variants.def"
#undef VARIANT
};
enum { VARIANT_COUNT = sizeof variants / sizeof variants[0] };

const char *graph_variant(int index)
{
    static const char *const others[] = { "family", "text" };
    if (index < VARIANT_COUNT)
        return variants[index].name;
    return index < VARIANT_COUNT + 2 ? others[index - VARIANT_COUNT] : NULL;
}

/* "*": everything; "?": some of it, which the seed chooses. */
static const char *leave_out(tl_arena *arena, const char *without, uint64_t seed)
{
    if (without[0] != '*' && without[0] != '?')
        return without[0] != '\0' ? without : NULL;
    tl_random random = tl_random_make(seed);
    const char *list = "", *name;
    for (int i = 0; (name = tl_model_switch(i)) != NULL; i++)
        if (without[0] == '*' || tl_random_below(&random, 3) == 0)
            list = tl_arena_format(arena, "%s%s%s", list, *list != '\0' ? "," : "", name);
    return *list != '\0' ? list : NULL;
}

static tl_status compare_run(const tl_executable *executable, tl_pool *pool, int threads,
                             const oracle *o, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(executable);
    tl_runner *runner = NULL;
    tl_tensor inputs[64] = { 0 }, outputs[64] = { 0 };
    if (spec->input_count > 64 || spec->output_count > 64 || spec->output_count != o->output_count)
        return tl_fail(diag, TL_WRONG_RESULT, "%d outputs instead of %d", spec->output_count,
                       o->output_count);
    for (int i = 0; i < spec->input_count; i++)
        for (int k = 0; k < o->input_count; k++)
            if (strcmp(spec->inputs[i].name, o->shapes[k].name) == 0)
                inputs[i] = o->inputs[k];
    tl_status status = tl_runner_create(executable, pool, threads, &runner, diag);
    if (status == TL_OK)
        status = tl_runner_run_tensors(runner, inputs, outputs, NULL, diag);
    for (int i = 0; status == TL_OK && i < spec->output_count; i++)
        status = oracle_compare(o, i, &outputs[i], diag);
    for (int i = 0; i < spec->output_count; i++)
        tl_tensor_free(&outputs[i]);
    tl_runner_destroy(runner);
    return status;
}

static tl_status check_variant(tl_arena *arena, graph_check *check, const variant *v,
                               const tl_text *file, const oracle *o, tl_diag *diag)
{
    tl_pool **pool = &check->pools[v->threads];
    if (*pool == NULL)
        TL_TRY(tl_pool_create(&(tl_pool_options){ .threads = v->threads }, pool, diag));
    const tl_model_options options = {
        .target = v->target,
        .shapes = o->shapes,
        .shape_count = o->input_count,
        .numerics = v->numerics,
        .no_cache = true,
        .no_database = true,
        .without = leave_out(arena, v->without, check->seed),
        .threads = v->threads,
        .pool = *pool,
    };
    tl_model *model;
    TL_TRY(tl_model_load_memory(file->data, file->size, NULL, &options, &model, diag));
    tl_status status = compare_run(tl_model_executable(model), *pool, v->threads, o, diag);
    if (status != TL_OK && options.without != NULL)
        tl_context(diag, "without %s", options.without);
    tl_model_destroy(model);
    return status;
}

/* ---- the graph as text ---- */

static tl_status check_text(tl_arena *arena, const tl_text *file, const oracle *o, tl_diag *diag)
{
    tl_onnx *onnx = NULL;
    tl_graph *g, *again;
    tl_text first = { 0 }, second = { 0 };
    tl_status status = tl_onnx_read_memory(arena, file->data, file->size, NULL, o->shapes,
                                           o->input_count, &onnx, &g, diag);
    for (int prepared = 0; status == TL_OK && prepared < 2; prepared++) {
        if (prepared == 1)
            status = tl_graph_prepare(g, TL_NUMERICS_RELAXED, diag);
        tl_text_free(&first);
        tl_text_free(&second);
        if (status == TL_OK)
            tl_graph_print(g, &first);
        if (status == TL_OK)
            status = tl_graph_parse_beside(arena, tl_text_get(&first), "graph", g, &again, diag);
        if (status == TL_OK)
            tl_graph_print(again, &second);
        if (status == TL_OK && strcmp(tl_text_get(&first), tl_text_get(&second)) != 0)
            status = tl_fail(diag, TL_WRONG_RESULT,
                             "the graph's text reads back as another:\n%.700s\n%.700s",
                             tl_text_get(&first), tl_text_get(&second));
    }
    tl_onnx_close(onnx);
    tl_text_free(&first);
    tl_text_free(&second);
    return status;
}

/* ---- one loaded model for all shapes ---- */

static tl_status of_api(tilth_status status, const tilth_error *error, tl_diag *diag)
{
    return status == TILTH_OK ? TL_OK : tl_fail(diag, (tl_status)status, "%s", error->text);
}

static tl_status call(tilth_caller *caller, const oracle *o, tl_diag *diag)
{
    tilth_error error;
    for (int i = 0; i < o->input_count; i++) {
        const tl_tensor *t = &o->inputs[i];
        TL_TRY(of_api(tilth_caller_set_input(caller, i, t->rank, t->shape, t->data, (size_t)t->size,
                                             &error),
                      &error, diag));
    }
    TL_TRY(of_api(tilth_caller_run(caller, &error), &error, diag));
    if (tilth_caller_output_count(caller) != o->output_count)
        return tl_fail(diag, TL_WRONG_RESULT, "%d outputs instead of %d",
                       tilth_caller_output_count(caller), o->output_count);
    for (int i = 0; i < o->output_count; i++) {
        tilth_tensor_info info;
        const void *data;
        tl_tensor t;
        tl_dtype dtype;
        TL_TRY(of_api(tilth_caller_output(caller, i, &info, &data, &error), &error, diag));
        if (!tl_dtype_from_onnx((int)info.dtype, &dtype))
            return tl_fail(diag, TL_WRONG_RESULT, "output %s has dtype %d", info.name,
                           (int)info.dtype);
        TL_TRY(tl_tensor_borrow(dtype, info.rank, info.shape, (void *)(uintptr_t)data, &t, diag));
        TL_TRY(oracle_compare(o, i, &t, diag));
    }
    return TL_OK;
}

/* One shape after the other, and the first again; `count` 1: there is only that. */
static tl_status check_family(const graph_check *check, const tl_text *file, const oracle *oracles,
                              int count, tl_diag *diag)
{
    const tilth_load_options options = {
        .struct_size = sizeof options, .threads = 1, .no_cache = 1, .no_database = 1
    };
    tilth_family *family = NULL;
    tilth_caller *caller = NULL;
    tilth_error error;
    tl_status status =
        of_api(tilth_family_load_memory(file->data, file->size, NULL, &options, &family, &error),
               &error, diag);
    if (status == TL_OK)
        status = of_api(tilth_caller_create(family, 0, &caller, &error), &error, diag);
    for (int i = 0; status == TL_OK && i < (count > 1 ? count + 1 : 1); i++) {
        status = call(caller, &oracles[i % count], diag);
        if (status != TL_OK)
            tl_context(diag, "call %d, n = %lld", i, (long long)check->extents[i % count]);
    }
    tilth_caller_destroy(caller);
    tilth_family_destroy(family);
    return status;
}

/* ---- a graph ---- */

static bool is_wanted(const graph_check *check, int index)
{
    if (check->variant != NULL)
        return strcmp(check->variant, graph_variant(index)) == 0;
    if (strcmp(graph_variant(index), "text") == 0)
        return true;
    tl_random random = tl_random_make(check->seed ^ 0x7a57);
    bool family =
        tl_random_below(&random, 2) == 0; /* the way that most people go: one or the other */
    if (index == 0 || index == VARIANT_COUNT)
        return check->ways > VARIANT_COUNT || family == (index == VARIANT_COUNT);
    for (int i = 1; i < check->ways; i++)
        if (1 + tl_random_below(&random, VARIANT_COUNT - 1) == index)
            return true;
    return check->ways > VARIANT_COUNT;
}

static tl_status check_all(tl_arena *arena, graph_check *check, const tl_text *file,
                           const char **where, tl_diag *diag)
{
    oracle calls[GRAPH_CALLS], *first = &calls[0];
    tl_onnx_signature s;
    TL_TRY(oracle_make(arena, file, check->extents[0], first, diag));
    TL_TRY(tl_onnx_read_signature_memory(arena, file->data, file->size, &s, diag));
    bool is_open = tl_onnx_signature_is_open(&s), wants_family = is_wanted(check, VARIANT_COUNT);
    for (int i = 1; is_open && wants_family && i < GRAPH_CALLS; i++)
        TL_TRY(oracle_make(arena, file, check->extents[i], &calls[i], diag));
    for (int i = 0; i < VARIANT_COUNT; i++) {
        *where = variants[i].name;
        if (is_wanted(check, i))
            TL_TRY(check_variant(arena, check, &variants[i], file, first, diag));
    }
    *where = "family";
    if (wants_family)
        TL_TRY(check_family(check, file, calls, is_open ? GRAPH_CALLS : 1, diag));
    *where = "text";
    return is_wanted(check, VARIANT_COUNT + 1) ? check_text(arena, file, first, diag) : TL_OK;
}

graph_verdict graph_check_model(graph_check *check, const tl_text *file, const char **where,
                                tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_status status = TL_NO_MEMORY;
    *where = "oracle";
    if (arena != NULL && TL_ARENA_GUARD(arena) == 0)
        status = check_all(arena, check, file, where, diag);
    tl_arena_destroy(arena);
    return status == TL_OK ? GRAPH_GOOD : status == TL_WRONG_RESULT ? GRAPH_WRONG : GRAPH_REFUSED;
}
