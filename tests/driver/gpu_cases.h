/* tests/driver/gpu_cases.h: which kernels a GPU has to run for a network, each as a small one of its kind.
 *
 *     network -> kernels -> kinds: class, steps of the schedule -> made smaller -> tests/golden/gpu_classes/KIND.tk
 *
 * A kind is the class of a naive program and what its default schedule is made of: the steps of its trace that rules differ
 * by, without numbers. There is a case of each class, by multiply-adds and by each product of tensor cores that it is computed
 * by, and one of each that schedules are made of. A network's kernel shrinks number by number while it keeps its kind, until it
 * is little work for the emulator. */
#ifndef TL_TESTS_DRIVER_GPU_CASES_H
#define TL_TESTS_DRIVER_GPU_CASES_H
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/frontend.h"
#include "runtime/base/map.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/support/text_numbers.h"

/* ---- kinds ---- */

/* What a step says of the rule that made it: its first word, and of a product of tensor cores which. NULL: nothing. */
static inline const char *gpu_step_item(tl_arena *arena, const char *line, size_t length)
{
    static const char *const kept[] = { "tensorize",  "software_pipeline", "rfactor",
                                        "pad_einsum", "bulk_copy",         "specialize" };
    const char *copy = tl_arena_strndup(arena, line, length);
    const char *equals = strstr(copy, " = "), *open = strchr(copy, '(');
    if (open == NULL)
        return NULL;
    const char *start = equals != NULL && equals < open ? equals + 3 : copy;
    char *word = tl_arena_strndup(arena, start, (size_t)(open - start));
    bool is_kept = false;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        is_kept |= strcmp(word, kept[i]) == 0;
    if (!is_kept)
        return NULL;
    const char *comma = strrchr(copy, ',');
    if (strcmp(word, "tensorize") != 0 || comma == NULL)
        return word;
    char *last = tl_arena_strdup(arena, comma + 2);
    size_t n = 0;
    for (const char *at = last; *at != '\0' && *at != ')'; at++)
        if (!isdigit((unsigned char)*at) || n == 0 || strchr("mnk", last[n - 1]) == NULL)
            last[n++] = *at; /* of m64n8k8_tf32 mnk_tf32: any tile */
    last[n] = '\0';
    return tl_arena_format(arena, "%s %s", word, last);
}

static inline int gpu_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The steps of a trace, each once, sorted. */
static inline const char *gpu_made_of(tl_arena *arena, const char *trace)
{
    enum { MOST_ITEMS = 64 };
    const char *items[MOST_ITEMS];
    int count = 0;
    for (const char *line = trace; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *item = gpu_step_item(arena, line, length);
        bool is_new = item != NULL && count < MOST_ITEMS;
        for (int i = 0; i < count && is_new; i++)
            is_new = strcmp(items[i], item) != 0;
        if (is_new)
            items[count++] = item;
        line += length + (line[length] == '\n');
    }
    qsort(items, (size_t)count, sizeof items[0], gpu_compare_texts);
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = tl_arena_format(arena, "%s%s%s", text, i > 0 ? ", " : "", items[i]);
    return text;
}

typedef struct {
    const char *name;    /* FAMILY-CLASS-STEPS */
    const char *unit;    /* of what its class is computed by: its products of tensor cores, "" */
    const char *target;  /* "cuda,sm_80" */
    const char *made_of; /* of its default schedule there */
    char class_key[33];
    const tl_program *naive, *scheduled;
} gpu_case;

static inline const char *gpu_hash(tl_arena *arena, const char *text)
{
    tl_digest digest;
    char out[33];
    tl_digest_start(&digest);
    tl_digest_add(&digest, text, strlen(text));
    tl_digest_text(&digest, out);
    return tl_arena_format(arena, "%.6s", out);
}

/* The kind of a program that has this schedule. */
static inline gpu_case gpu_case_with(tl_arena *arena, const char *family, const tl_program *naive,
                                     const char *target, const char *trace)
{
    gpu_case out = { .target = target, .naive = naive, .made_of = gpu_made_of(arena, trace) };
    tl_class_key(arena, naive, out.class_key);
    out.name =
        tl_arena_format(arena, "%s-%.8s-%s", family, out.class_key, gpu_hash(arena, out.made_of));
    const char *product = strstr(out.made_of, "tensorize ");
    size_t length = product != NULL ? strcspn(product, ",") : 0;
    out.unit = tl_arena_format(arena, "%s %.*s", out.class_key, (int)length,
                               product != NULL ? product : "");
    return out;
}

/* The kind of a program; its default schedule is made for that. */
static inline tl_status gpu_case_of(tl_arena *arena, const char *family, const tl_program *naive,
                                    const char *target_name, gpu_case *out, tl_diag *diag)
{
    tl_target target;
    TL_TRY(tl_target_named(target_name, &target, diag));
    tl_schedule *s = tl_schedule_create(arena, naive, &target, false);
    TL_TRY(tl_schedule_default(s, diag));
    *out = gpu_case_with(arena, family, naive, target_name,
                         tl_trace_text(arena, tl_schedule_trace(s)));
    out->scheduled = tl_schedule_program(s);
    return TL_OK;
}

/* ---- small ones of a kind ---- */

/* What the emulator does in a tenth of a second or two: multiplications and elements. */
enum { GPU_LITTLE_WORK = 600 * 1000 };

static inline int64_t gpu_work(const tl_program *naive)
{
    int64_t work = tl_program_flops(naive);
    for (int i = 0; i < naive->param_count; i++)
        work += tl_buffer_max_elements(naive->params[i]);
    return work;
}

/* Numbers from `first` to `last` become smaller: those alone by a distance, or they and all that they divide by a factor. */
typedef struct {
    long long first, last, less;
    long long divide, multiply;
} gpu_change;

static inline long long gpu_changed(void *context, long long number)
{
    const gpu_change *c = context;
    if (c->divide > 0)
        return number > 0 && number % c->divide == 0 ? number / c->divide * c->multiply : number;
    return number >= c->first && number <= c->last ? number - c->less : number;
}

typedef struct {
    tl_arena *arena;
    const char *family;
    gpu_case *kind;
    const char *text;
    int64_t work;
    int tries;
} gpu_shrinking;

/* Takes the smaller text if it is of the same kind and less work. */
static inline bool gpu_take(gpu_shrinking *s, gpu_change change)
{
    enum { MOST_TRIES = 1500 };
    if (s->tries >= MOST_TRIES || s->work <= GPU_LITTLE_WORK)
        return false;
    s->tries++;
    tl_arena *arena = tl_arena_create(0);
    const char *text = text_map_numbers(arena, s->text, gpu_changed, &change);
    tl_program *naive;
    gpu_case now;
    char class_key[33];
    bool taken = tl_program_parse(arena, text, "case", &naive, NULL) == TL_OK &&
                 tl_program_verify(naive, NULL) == TL_OK && gpu_work(naive) < s->work;
    if (taken) {
        tl_class_key(arena, naive, class_key);
        taken = strcmp(class_key, s->kind->class_key) == 0 &&
                gpu_case_of(arena, s->family, naive, s->kind->target, &now, NULL) == TL_OK &&
                strcmp(now.name, s->kind->name) == 0;
    }
    if (taken) {
        s->text = tl_arena_strdup(s->arena, text);
        s->work = gpu_work(naive);
    }
    tl_arena_destroy(arena);
    return taken;
}

/* Makes one number smaller, in the ways in which it may depend on others. */
static inline bool gpu_shrink_number(gpu_shrinking *s, long long number)
{
    const long long smaller[] = { number / 16, number / 8,     number / 4,
                                  number / 2,  number * 3 / 4, number - 1 };
    enum { WAYS = sizeof smaller / sizeof smaller[0], BORDER = 16 };
    for (int i = 0; i < WAYS; i++) {
        long long to = smaller[i];
        if (to < 2 || to >= number)
            continue;
        if (gpu_take(s, (gpu_change){ number, number, number - to, 0, 0 }) ||
            gpu_take(s, (gpu_change){ .divide = number, .multiply = to }) ||
            gpu_take(s, (gpu_change){ number, number + BORDER, number - to, 0, 0 }) ||
            gpu_take(s, (gpu_change){ number - BORDER, number, number - to, 0, 0 }))
            return true;
    }
    return false;
}

/* The text of a small program of the kind. */
static inline const char *gpu_shrink(tl_arena *arena, const char *family, gpu_case *kind)
{
    enum { SMALLEST = 4 };
    gpu_shrinking s = {
        arena, family, kind, tl_program_text(arena, kind->naive), gpu_work(kind->naive), 0
    };
    for (bool changed = true; changed;) {
        changed = false;
        long long at = 1LL << 40;
        while ((at = text_largest_number(s.text, at)) >= SMALLEST)
            changed = gpu_shrink_number(&s, at) || changed;
    }
    return s.text;
}

#endif
