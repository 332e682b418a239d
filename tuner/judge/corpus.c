/* tuner/judge/corpus.c: samples over the sections of a corpus. */
#include "tuner/judge/corpus.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/machine.h"
#include "runtime/base/clock.h"
#include "tuner/judge/corpus_private.h"
#include "tuner/search/tokens.h"

#define KEEP_AFTER_S 60

typedef struct {
    tl_corpus corpus; /* first member */
    tl_sections sections;
    tl_arena *arena;
} own_corpus;

/* --- tasks and domains -------------------------------------------------------------------------------------------- */

/* Digest of a profile's text, where it is one. */
static const char *digest_of(tl_arena *arena, const char *text)
{
    tl_machine machine;
    if (*text == '\0' || tl_machine_parse(text, strlen(text), &machine, NULL) != TL_OK)
        return "";
    return tl_arena_strdup(arena, machine.digest);
}

typedef struct {
    own_corpus *own;
    const tl_dataset *set;
    tl_map *workloads, *domains;
    tl_corpus_task *tasks;
    tl_corpus_domain *known;
    const tl_machine **profiles;
    float *machines;
    int *domain;
    double *standard_ns;
} arranging;

static void name_domain(const tl_data_series *s, const tl_machine *machine, char out[160])
{
    tl_target target;
    bool known = tl_target_of_fingerprint(s->target, &target, NULL) == TL_OK;
    snprintf(out, 160, "%s, %s, %d core%s",
             machine != NULL && *machine->cpu ? machine->cpu : "no profile",
             known ? tl_isa_infos[target.isa].text : "?", s->cores, s->cores == 1 ? "" : "s");
}

static int add_domain(arranging *a, const tl_data_series *s)
{
    tl_arena *arena = a->own->arena;
    const char *digest = digest_of(arena, s->machine);
    const char *key = tl_arena_format(arena, "%s %s %d", s->target, digest, s->cores);
    int *number = tl_map_find(a->domains, key);
    if (number != NULL)
        return *number;
    number = TL_NEW(arena, int);
    *number = a->own->corpus.domain_count++;
    tl_map_put(a->domains, key, number);
    tl_corpus_domain *d = &a->known[*number];
    tl_machine *machine = NULL;
    tl_target target;
    d->target = s->target;
    d->machine = digest;
    if (*digest != '\0') {
        machine = TL_NEW(arena, tl_machine);
        tl_machine_parse(s->machine, strlen(s->machine), machine, NULL);
    }
    a->profiles[*number] = machine;
    name_domain(s, machine, d->name);
    if (tl_target_of_fingerprint(s->target, &target, NULL) == TL_OK) {
        target.cores = s->cores;
        target.machine = machine;
        tl_cost_token_of_machine(&target, a->machines +
                                              *number * tl_cost_token_width(TL_COST_TOKEN_MACHINE));
    }
    return *number;
}

static void arrange_tasks(arranging *a)
{
    tl_arena *arena = a->own->arena;
    tl_corpus *c = &a->own->corpus;
    int count = (int)tl_map_count(a->set->series);
    a->tasks = TL_NEW_ARRAY(arena, tl_corpus_task, count);
    a->known = TL_NEW_ARRAY(arena, tl_corpus_domain, count);
    a->profiles = TL_NEW_ARRAY(arena, const tl_machine *, count);
    a->machines = TL_NEW_ARRAY(arena, float, count *tl_cost_token_width(TL_COST_TOKEN_MACHINE));
    a->domain = TL_NEW_ARRAY(arena, int, count);
    a->standard_ns = TL_NEW_ARRAY(arena, double, count);
    a->workloads = tl_map_create(arena);
    a->domains = tl_map_create(arena);
    for (int i = 0; i < count; i++) {
        const tl_data_series *s = tl_map_at(a->set->series, (size_t)i).value;
        int *number = tl_map_find(a->workloads, s->task->workload);
        if (number == NULL) {
            number = TL_NEW(arena, int);
            *number = c->workload_count++;
            tl_map_put(a->workloads, s->task->workload, number);
        }
        a->tasks[i] = (tl_corpus_task){ .series = s, .workload = *number };
        a->domain[i] = add_domain(a, s);
        a->standard_ns[i] = s->standard_ns;
    }
    c->task_count = count;
    c->tasks = a->tasks;
    c->domains = a->known;
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

static tl_status arrange_programs(arranging *a, tl_diag *diag)
{
    own_corpus *own = a->own;
    tl_corpus *c = &own->corpus;
    tl_arena *arena = own->arena;
    const tl_kept_program *kept = own->sections.data[TL_SECTION_PROGRAMS];
    int count = (int)(own->sections.size[TL_SECTION_PROGRAMS] / sizeof *kept);
    int *first[3], *counts[3], *task = TL_NEW_ARRAY(arena, int, count);
    float *label = TL_NEW_ARRAY(arena, float, count), *error = TL_NEW_ARRAY(arena, float, count);
    uint8_t *sampler = TL_NEW_ARRAY(arena, uint8_t, count);
    uint32_t *program = TL_NEW_ARRAY(arena, uint32_t, count);
    int64_t sums[3] = { 0, 0, 0 };
    for (int k = 0; k < 3; k++) {
        first[k] = TL_NEW_ARRAY(arena, int, count);
        counts[k] = TL_NEW_ARRAY(arena, int, count);
    }
    for (int i = 0; i < count; i++) {
        const int own_counts[3] = { kept[i].row_count, kept[i].tenset_count,
                                    kept[i].decision_count };
        for (int k = 0; k < 3; k++) {
            first[k][i] = (int)sums[k];
            counts[k][i] = own_counts[k];
            sums[k] += own_counts[k];
        }
        if (kept[i].series < 0 || kept[i].series >= c->task_count || sums[0] > INT32_MAX ||
            sums[1] > INT32_MAX || sums[2] > INT32_MAX)
            return tl_fail(diag, TL_BAD_TEXT, "a corpus of more than 2^31 rows is too large");
        task[i] = kept[i].series;
        label[i] = kept[i].label;
        error[i] = kept[i].error;
        sampler[i] = (uint8_t)kept[i].sampler;
        program[i] = kept[i].program;
        if (a->tasks[task[i]].count++ == 0)
            a->tasks[task[i]].first = i;
    }
    const tl_cost_samples shared = { .count = count,
                                     .task_count = c->task_count,
                                     .domain_count = c->domain_count,
                                     .task = task,
                                     .domain = a->domain,
                                     .profiles = a->profiles,
                                     .label = label,
                                     .error = error,
                                     .standard_ns = a->standard_ns };
    tl_cost_samples *ours = &c->samples[TL_ROWS_OURS], *tenset = &c->samples[TL_ROWS_TENSET];
    *ours = *tenset = shared;
    ours->shape = tl_rows_shape(TL_ROWS_OURS);
    ours->rows = own->sections.data[TL_SECTION_ROWS];
    ours->first_row = first[0];
    ours->row_count = counts[0];
    ours->decisions = own->sections.data[TL_SECTION_DECISIONS];
    ours->first_decision = first[2];
    ours->decision_count = counts[2];
    ours->workloads = own->sections.data[TL_SECTION_WORKLOADS];
    ours->machines = a->machines;
    tenset->shape = tl_rows_shape(TL_ROWS_TENSET);
    tenset->rows = own->sections.data[TL_SECTION_TENSET];
    tenset->first_row = first[1];
    tenset->row_count = counts[1];
    c->count = count;
    c->sampler = sampler;
    c->program = program;
    return TL_OK;
}

static tl_status get_sections(own_corpus *own, const tl_dataset *set,
                              const tl_corpus_options *options, tl_diag *diag)
{
    char key[33];
    int64_t begun = tl_clock_ns();
    double least = options->keep_after_s == 0 ? KEEP_AFTER_S : options->keep_after_s;
    if (options->folder != NULL) {
        tl_corpus_key(set, options, key);
        own->corpus.was_kept = tl_sections_find(options->folder, key, &own->sections);
    }
    if (!own->corpus.was_kept) {
        TL_TRY(tl_sections_build(set, options, &own->sections, diag));
        if (options->folder != NULL && (double)(tl_clock_ns() - begun) * 1e-9 > least)
            tl_sections_keep(options->folder, key, &own->sections);
    }
    own->corpus.seconds = (double)(tl_clock_ns() - begun) * 1e-9;
    own->corpus.lost = own->sections.lost;
    memcpy(own->corpus.why, own->sections.why, sizeof own->corpus.why);
    return TL_OK;
}

static tl_status open_corpus(own_corpus *own, const tl_dataset *set,
                             const tl_corpus_options *options, tl_diag *diag)
{
    arranging a = { .own = own, .set = set };
    if (set->count == 0)
        return tl_fail(diag, TL_BAD_TEXT, "there are no records to learn from");
    TL_TRY(get_sections(own, set, options, diag));
    arrange_tasks(&a);
    if (own->sections.size[TL_SECTION_PROGRAMS] == 0)
        return tl_fail(diag, TL_BAD_TEXT, "none of %lld records can be built again: %s",
                       (long long)set->count, own->corpus.why);
    return arrange_programs(&a, diag);
}

tl_status tl_corpus_open(const tl_dataset *set, const tl_corpus_options *options, tl_corpus **out,
                         tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    own_corpus *own = calloc(1, sizeof *own);
    tl_status status = TL_NO_MEMORY;
    if (own != NULL)
        own->arena = arena;
    if (own == NULL || arena == NULL || TL_ARENA_GUARD(arena))
        tl_fail(diag, TL_NO_MEMORY, "a corpus of %lld records: out of memory",
                (long long)set->count);
    else
        status = open_corpus(own, set, options, diag);
    if (status != TL_OK && own != NULL) {
        tl_corpus_close(&own->corpus);
        return status;
    }
    if (own == NULL)
        tl_arena_destroy(arena);
    else
        *out = &own->corpus;
    return status;
}

void tl_corpus_close(tl_corpus *corpus)
{
    own_corpus *own = (own_corpus *)(void *)corpus;
    if (own == NULL)
        return;
    tl_sections_unmap(&own->sections);
    tl_arena_destroy(own->arena);
    free(own);
}
