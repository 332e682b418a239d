/* tests/codegen/kernel_files.h: the kernels of models/kernels: NAME.tk, a naive program, and NAME.tr, a schedule written
 * by hand for it. Loads, schedules, fills arguments, and checks results against the naive program at seeded points. */
#ifndef TL_TESTS_KERNEL_FILES_H
#define TL_TESTS_KERNEL_FILES_H
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"

#define KERNEL_FOLDER  "models/kernels"
#define KERNEL_FILES   64
#define KERNEL_BUFFERS 16

typedef struct {
    int count;
    char names[KERNEL_FILES][64];
} kernel_names;

static inline int kernel_names_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names of all kernels that have a trace, sorted. */
static inline tl_status kernel_names_read(kernel_names *out, tl_diag *diag)
{
    DIR *folder = opendir(KERNEL_FOLDER);
    out->count = 0;
    if (folder == NULL)
        return tl_fail(diag, TL_IO, "no folder %s here: run this from the top of the tree",
                       KERNEL_FOLDER);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && out->count < KERNEL_FILES;) {
        size_t size = strlen(entry->d_name);
        if (size > 3 && size < 64 && strcmp(entry->d_name + size - 3, ".tr") == 0)
            snprintf(out->names[out->count++], 64, "%.*s", (int)size - 3, entry->d_name);
    }
    closedir(folder);
    qsort(out->names, (size_t)out->count, sizeof out->names[0], kernel_names_compare);
    return TL_OK;
}

static inline tl_status kernel_parse(tl_arena *arena, const char *name, tl_program **out,
                                     tl_diag *diag)
{
    const char *path = tl_arena_format(arena, KERNEL_FOLDER "/%s.tk", name);
    tl_text text = { 0 };
    TL_TRY(tl_file_read(path, &text, diag));
    tl_status status = tl_program_parse(arena, tl_text_get(&text), path, out, diag);
    tl_text_free(&text);
    return status == TL_OK ? tl_program_verify(*out, diag) : status;
}

/* The program under the trace of NAME.tr, or, without `by_hand`, under the default schedule. */
static inline tl_status kernel_schedule(tl_arena *arena, const char *name, const tl_program *naive,
                                        const tl_target *target, bool by_hand, tl_schedule **out,
                                        tl_diag *diag)
{
    *out = tl_schedule_create(arena, naive, target, true);
    if (!by_hand)
        return tl_schedule_default(*out, diag);
    const char *path = tl_arena_format(arena, KERNEL_FOLDER "/%s.tr", name);
    tl_text text = { 0 };
    tl_trace *trace;
    TL_TRY(tl_file_read(path, &text, diag));
    tl_status status = tl_trace_parse(arena, tl_text_get(&text), path, target, &trace, diag);
    tl_text_free(&text);
    return status == TL_OK ? tl_trace_apply(trace, *out, diag) : status;
}

/* The arguments of a kernel: params in order. */
typedef struct {
    int count;
    tl_argument arguments[KERNEL_BUFFERS];
} kernel_arguments;

static inline size_t kernel_bytes(const tl_buffer *b)
{
    size_t size = (size_t)tl_buffer_max_bytes(b);
    return (size + 127) / 64 * 64;
}

/* Inputs from a seed, in -0.5 .. 0.5; outputs filled with NaN. */
static inline tl_status kernel_arguments_make(const tl_program *naive, uint64_t seed,
                                              kernel_arguments *out, tl_diag *diag)
{
    tl_random random = tl_random_make(seed);
    *out = (kernel_arguments){ .count = naive->param_count };
    if (naive->param_count > KERNEL_BUFFERS)
        return tl_fail(diag, TL_UNSUPPORTED, "%s has more than %d parameters", naive->name,
                       KERNEL_BUFFERS);
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        size_t elements = (size_t)tl_buffer_max_elements(b), bytes = kernel_bytes(b);
        void *data = aligned_alloc(64, bytes);
        if (data == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "out of memory");
        out->arguments[i] = (tl_argument){ b, data };
        memset(data, 0xFF, bytes); /* NaN */
        for (size_t k = 0; k < elements && b->role != TL_ROLE_OUTPUT; k++) {
            tl_number value;
            if (tl_dtype_is_float(b->dtype))
                value.f = tl_random_unit(&random) - 0.5;
            else
                value.i = tl_random_below(&random, 5);
            tl_number_store(b->dtype, data, k, value);
        }
    }
    return TL_OK;
}

static inline void kernel_arguments_free(kernel_arguments *a)
{
    for (int i = 0; i < a->count; i++)
        free(a->arguments[i].data);
    a->count = 0;
}

/* The outputs of a naive program at `count` places: the corners first, then seeded ones. */
typedef struct {
    const tl_buffer *output;
    int64_t count;
    int64_t *points; /* in the arena */
    tl_number *expected;
} kernel_points;

static inline tl_status kernel_points_make(tl_arena *arena, const tl_program *naive,
                                           const kernel_arguments *a, uint64_t seed, int64_t count,
                                           kernel_points *out, tl_diag *diag)
{
    tl_random random = tl_random_make(seed);
    *out = (kernel_points){ .count = count };
    for (int i = 0; i < naive->param_count; i++)
        if (naive->params[i]->role == TL_ROLE_OUTPUT)
            out->output = naive->params[i];
    if (out->output == NULL)
        return tl_fail(diag, TL_BAD_IR, "%s has no output", naive->name);
    int rank = out->output->rank;
    out->points = TL_NEW_ARRAY(arena, int64_t, count * rank);
    out->expected = TL_NEW_ARRAY(arena, tl_number, count);
    for (int64_t p = 0; p < count; p++)
        for (int axis = 0; axis < rank; axis++) {
            int64_t extent = tl_expr_range(out->output->shape[axis]).max;
            bool corner = p < (int64_t)1 << rank;
            out->points[p * rank + axis] =
                corner ? (p >> axis & 1 ? extent - 1 : 0) : tl_random_below(&random, extent);
        }
    return tl_interpret_points(naive, a->arguments, a->count, NULL, out->output, out->points, count,
                               out->expected, diag);
}

/* TL_WRONG_RESULT and the first place that differs by more than `tolerance`*(1 + |expected|). */
static inline tl_status kernel_points_check(const kernel_points *points, const void *data,
                                            double tolerance, tl_diag *diag)
{
    const tl_buffer *b = points->output;
    for (int64_t p = 0; p < points->count; p++) {
        int64_t at = 0;
        for (int axis = 0; axis < b->rank; axis++)
            at = at * tl_expr_range(b->shape[axis]).max + points->points[p * b->rank + axis];
        double got = tl_number_load(b->dtype, data, (size_t)at).f, want = points->expected[p].f;
        if (fabs(got - want) <= tolerance * (1 + fabs(want)))
            continue;
        return tl_fail(diag, TL_WRONG_RESULT, "%s[element %lld] is %.9g, not %.9g", b->name,
                       (long long)at, got, want);
    }
    return TL_OK;
}

#endif
