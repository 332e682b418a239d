/* driver/cost/cost_features.c: tilth cost-model features: what a model sees of a schedule. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/cost/cost_lesson.h"
#include "driver/dataset/data_sources.h"
#include "driver/pipeline/host_target.h"
#include "driver/study/study.h"
#include "driver/tune/kernel_task.h"
#include "driver/tune/tune_run.h"
#include "runtime/base/clock.h"
#include "tuner/cost/features.h"
#include "tuner/cost/tenset.h"
#include "tuner/search/tokens.h"

/* A table of numbers with names: of rows, or of tokens. */
typedef struct {
    const char *kind;
    int count, width;
    const float *values;
    void (*name)(int column, char out[48]);
} table;

static void name_decision(int column, char out[48])
{
    tl_cost_token_name(TL_COST_TOKEN_DECISION, column, out);
}

static void name_workload(int column, char out[48])
{
    tl_cost_token_name(TL_COST_TOKEN_WORKLOAD, column, out);
}

static void name_machine(int column, char out[48])
{
    tl_cost_token_name(TL_COST_TOKEN_MACHINE, column, out);
}

typedef enum { OURS, TENSET, TOKENS, KIND_COUNT } feature_kind;
static const char *const kind_texts[KIND_COUNT] = { "tilth", "tenset", "tokens" };

typedef struct {
    const tl_cost_settings *o;
    tl_arena *arena;
    tl_target target;
    int threads;
    feature_kind kind;
    tl_space_kind space;
    const tl_wish *answers;
    int answer_count;
    int shown;
} showing;

/* --- printing
 * --------------------------------------------------------------------------------------------------------- */

static void print_json(const table *t, const char *task, const char *lowering)
{
    char name[48];
    for (int r = 0; r < t->count; r++) {
        printf("{\"record\":\"features\",\"kind\":\"%s\",\"kernel\":", t->kind);
        tl_print_json_text(task);
        printf(",\"lowering\":");
        tl_print_json_text(lowering);
        printf(",\"row\":%d,\"values\":{", r);
        for (int c = 0; c < t->width; c++) {
            t->name(c, name);
            printf("%s\"%s\":%.7g", c > 0 ? "," : "", name,
                   (double)t->values[(size_t)r * (size_t)t->width + (size_t)c]);
        }
        printf("}}\n");
    }
}

static bool is_zero(const table *t, int column)
{
    for (int r = 0; r < t->count; r++)
        if (t->values[(size_t)r * (size_t)t->width + (size_t)column] != 0)
            return false;
    return true;
}

/* A line a column of the table, those that are 0 in all rows only with -v; rows beside each other, eight at once. */
static void print_table(const table *t, const char *task, const char *lowering)
{
    enum { BESIDE = 8 };
    char name[48];
    int zeros = 0;
    for (int first = 0; first < t->count || first == 0; first += BESIDE) {
        int last = first + BESIDE < t->count ? first + BESIDE : t->count;
        printf("%s, %s: %s, rows %d to %d of %d\n", task, lowering, t->kind,
               t->count > 0 ? first + 1 : 0, last, t->count);
        for (int c = 0; c < t->width; c++) {
            if (is_zero(t, c) && !tl_verbose) {
                zeros += first == 0;
                continue;
            }
            t->name(c, name);
            printf("  %-38s", name);
            for (int r = first; r < last; r++)
                printf(" %9.4g", (double)t->values[(size_t)r * (size_t)t->width + (size_t)c]);
            printf("\n");
        }
    }
    if (zeros > 0)
        printf("  (%d columns are 0: -v shows them)\n", zeros);
}

static void show(const showing *s, const table *t, const char *task, const char *lowering)
{
    if (s->o->common.json)
        print_json(t, task, lowering);
    else
        print_table(t, task, lowering);
}

/* --- one schedule
 * ----------------------------------------------------------------------------------------------------- */

static void show_tokens(const showing *s, const tl_tune_task *task, const tl_space *space,
                        const tl_variant *v, const char *lowering)
{
    const tl_workload_info *info = task->workload;
    const tl_tokens *tokens = tl_tokens_create(s->arena, space);
    float *workload = TL_NEW_ARRAY(s->arena, float, tl_cost_token_width(TL_COST_TOKEN_WORKLOAD));
    float *machine = TL_NEW_ARRAY(s->arena, float, tl_cost_token_width(TL_COST_TOKEN_MACHINE));
    table t = { .kind = "decisions",
                .width = tl_cost_token_width(TL_COST_TOKEN_DECISION),
                .name = name_decision };
    t.count = tl_tokens_of_point(tokens, s->arena, &v->point, &t.values);
    show(s, &t, info->name, lowering);
    tl_cost_token_of_workload(tokens, info->family, (double)info->flops, (double)info->bytes,
                              workload);
    show(s,
         &(table){ "workload", 1, tl_cost_token_width(TL_COST_TOKEN_WORKLOAD), workload,
                   name_workload },
         info->name, lowering);
    tl_cost_token_of_machine(&s->target, machine);
    show(s,
         &(table){ "machine", 1, tl_cost_token_width(TL_COST_TOKEN_MACHINE), machine,
                   name_machine },
         info->name, lowering);
}

static tl_status show_schedule(showing *s, const tl_tune_task *task, const tl_space *space,
                               int lowering, tl_diag *diag)
{
    tl_variant v;
    const char *name = task->measure->lowerings[lowering].name;
    TL_TRY(tl_space_build(space, s->arena, lowering, s->answers, s->answer_count, &v, diag));
    s->shown++;
    if (s->kind == TOKENS) {
        show_tokens(s, task, space, &v, name);
        return TL_OK;
    }
    table t = { .kind = kind_texts[s->kind],
                .width = s->kind == OURS ? TL_FEATURE_WIDTH : TL_TENSET_WIDTH,
                .name = s->kind == OURS ? tl_feature_name : tl_tenset_name };
    t.count = s->kind == OURS ? tl_features_of(s->arena, v.program, &s->target, &t.values)
                              : tl_tenset_features_of(s->arena, v.program, &t.values);
    show(s, &t, task->workload->name, name);
    return TL_OK;
}

/* --- rates
 * ------------------------------------------------------------------------------------------------------------ */

enum { RATE_POINTS = 64 };

/* Computes one kind of a program; how many rows. */
static int compute(const showing *s, tl_arena *scratch, const tl_tokens *tokens,
                   const tl_variant *v, feature_kind kind)
{
    const float *rows;
    switch (kind) {
    case OURS:
        return tl_features_of(scratch, v->program, &s->target, &rows);
    case TENSET:
        return tl_tenset_features_of(scratch, v->program, &rows);
    case TOKENS:
        return tl_tokens_of_point(tokens, scratch, &v->point, &rows);
    case KIND_COUNT:
        break;
    }
    return 0;
}

static void print_rate(const showing *s, const char *task, const tl_tokens *tokens,
                       const tl_variant *variants, int count, feature_kind kind)
{
    int64_t begun = tl_clock_cpu_ns(), spent = 0, rows = 0, programs = 0;
    while (spent < 300000000) {
        tl_arena *scratch = tl_arena_create(0);
        if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
            tl_arena_destroy(scratch);
            return;
        }
        rows += compute(s, scratch, tokens, &variants[programs++ % count], kind);
        tl_arena_destroy(scratch);
        spent = tl_clock_cpu_ns() - begun;
    }
    double seconds = (double)spent * 1e-9;
    if (s->o->common.json) {
        printf("{\"record\":\"rate\",\"kind\":\"%s\",\"kernel\":", kind_texts[kind]);
        tl_print_json_text(task);
        printf(",\"rows_a_second\":%.0f,\"programs_a_second\":%.0f}\n", (double)rows / seconds,
               (double)programs / seconds);
    } else {
        printf("%s, %s: %.0f rows a second of a core, %.0f programs\n", task, kind_texts[kind],
               (double)rows / seconds, (double)programs / seconds);
    }
}

static tl_status show_rates(showing *s, const tl_tune_task *task, const tl_space *space,
                            tl_diag *diag)
{
    tl_variant *variants = TL_NEW_ARRAY(s->arena, tl_variant, RATE_POINTS);
    tl_random random = tl_random_make((uint64_t)s->o->seed);
    const tl_tokens *tokens = tl_tokens_create(s->arena, space);
    int count = 0;
    for (int tries = 0; tries < 4 * RATE_POINTS && count < RATE_POINTS; tries++)
        count += tl_space_sample(space, s->arena, &random, &variants[count], diag) == TL_OK;
    s->shown++;
    if (count == 0)
        return TL_ILLEGAL_SCHEDULE;
    *diag = (tl_diag){ { 0 } };
    for (int k = 0; k < KIND_COUNT; k++)
        print_rate(s, task->workload->name, tokens, variants, count, (feature_kind)k);
    return TL_OK;
}

/* --- all
 * -------------------------------------------------------------------------------------------------------------- */

static tl_status show_task(showing *s, const tl_tune_task *task, tl_diag *diag)
{
    tl_space *space;
    const tl_tune_filter filter = { .pattern = s->o->pattern };
    if (!tl_tune_filter_passes(&filter, task->workload->name, task->workload->family))
        return TL_OK;
    TL_TRY(
        tl_space_create(s->arena, task->measure, &s->target, s->threads, s->space, &space, diag));
    if (s->o->rates)
        return show_rates(s, task, space, diag);
    if (s->o->lowering == NULL)
        return show_schedule(s, task, space, task->untuned, diag);
    for (int i = 0; i < task->measure->lowering_count; i++)
        if (strcmp(task->measure->lowerings[i].name, s->o->lowering) == 0)
            TL_TRY(show_schedule(s, task, space, i, diag));
    return TL_OK;
}

static tl_status read_answers(showing *s, tl_diag *diag)
{
    if (s->o->answers == NULL)
        return TL_OK;
    char *words = tl_arena_strdup(s->arena, s->o->answers), *save = NULL;
    tl_wish *answers = TL_NEW_ARRAY(s->arena, tl_wish, strlen(words) / 2 + 1);
    for (char *word = strtok_r(words, " ,", &save); word != NULL;
         word = strtok_r(NULL, " ,", &save)) {
        char *equals = strchr(word, '='), *end = word;
        errno = 0;
        int64_t value = equals != NULL ? strtoll(equals + 1, &end, 10) : 0;
        if (equals == NULL || equals == word || end == equals + 1 || *end != '\0' || errno != 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--answers: '%s' is not NAME=NUMBER", word);
        *equals = '\0';
        answers[s->answer_count++] = (tl_wish){ word, value };
    }
    s->answers = answers;
    return TL_OK;
}

static tl_status read_options(showing *s, tl_diag *diag)
{
    const tl_cost_settings *o = s->o;
    while (s->kind < KIND_COUNT && o->kind != NULL && strcmp(o->kind, kind_texts[s->kind]) != 0)
        s->kind++;
    if (s->kind == KIND_COUNT)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--kind: '%s' is neither tilth, tenset nor tokens",
                       o->kind);
    if (o->space != NULL && !tl_space_kind_from_text(o->space, &s->space))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--space: '%s' is neither full nor plain", o->space);
    return read_answers(s, diag);
}

static tl_status show_kernel(showing *s, const tl_lesson *l, const char *path, tl_diag *diag)
{
    tl_study study = { .arena = s->arena };
    tl_tune_list list;
    const tl_study_options options = { .kernel = path,
                                       .target = s->o->common.target,
                                       .machine = l->session.machine,
                                       .threads = s->o->common.threads,
                                       .sets = s->o->sets };
    tl_status status = tl_study_open(&study, &options, diag);
    if (status == TL_OK)
        tl_tune_tasks_of_kernel(&study, &list);
    for (int i = 0; status == TL_OK && i < list.count; i++)
        status = show_task(s, &list.tasks[i], diag);
    tl_study_close(&study);
    return status;
}

static tl_status show_model(showing *s, tl_lesson *l, const char *path, tl_diag *diag)
{
    tl_tune_list list;
    TL_TRY(tl_data_model_tasks(&l->session, &s->o->common, path, TL_NUMERICS_RELAXED, &list, diag));
    for (int i = 0; i < list.count; i++)
        TL_TRY(show_task(s, &list.tasks[i], diag));
    return TL_OK;
}

static tl_status features(tl_lesson *l, tl_diag *diag)
{
    showing s = { .o = l->o, .arena = l->arena, .threads = l->session.threads };
    TL_TRY(read_options(&s, diag));
    TL_TRY(tl_target_resolve(l->o->common.target, &s.target, diag));
    s.target.machine = l->session.machine;
    for (int i = 0; i < l->o->file_count; i++)
        TL_TRY(tl_tune_is_kernel(l->o->files[i]) ? show_kernel(&s, l, l->o->files[i], diag)
                                                 : show_model(&s, l, l->o->files[i], diag));
    if (s.shown == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "no kernel%s%s%s%s is there",
                       l->o->pattern != NULL ? " named like " : "",
                       l->o->pattern != NULL ? l->o->pattern : "",
                       l->o->lowering != NULL ? " with the lowering " : "",
                       l->o->lowering != NULL ? l->o->lowering : "");
    return TL_OK;
}

tl_status tl_cost_features(const tl_cost_settings *settings, tl_diag *diag)
{
    if (settings->file_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "features needs a kernel (.tk) or a model");
    return tl_lesson_run(settings, false, features, diag);
}
