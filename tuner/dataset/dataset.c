/* tuner/dataset/dataset.c: data sets in memory: from records, together, apart, and back to programs. */
#include "tuner/dataset/dataset.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/sort.h"

#define WANTED_ERROR      0.02
#define WANTED_SLOW_ERROR 0.05
#define SLOW              3.0

const char *const tl_sampler_texts[TL_SAMPLER_COUNT] = {
#define SAMPLER(name, text, words) [TL_SAMPLER_##name] = text,
#include "tuner/dataset/samplers.def"
#undef SAMPLER
};

tl_sampler tl_sampler_of(const char *origin)
{
    for (int i = 0; i < TL_SAMPLER_COUNT; i++)
        if (strcmp(origin, tl_sampler_texts[i]) == 0)
            return (tl_sampler)i;
    return TL_SAMPLER_OTHER;
}

uint32_t tl_data_program_of(const char *hash)
{
    return (uint32_t)(strtoull(hash, NULL, 16) >> 40);
}

tl_dataset *tl_dataset_create(tl_arena *arena)
{
    tl_dataset *set = TL_NEW(arena, tl_dataset);
    set->arena = arena;
    set->tasks = tl_map_create(arena);
    set->series = tl_map_create(arena);
    return set;
}

/* ---- adding ---- */

static tl_data_task *get_task(tl_dataset *set, const tl_data_task *like)
{
    tl_data_task *task = tl_map_find(set->tasks, like->workload);
    if (task != NULL)
        return task;
    task = TL_NEW(set->arena, tl_data_task);
    *task = (tl_data_task){ .workload = tl_arena_strdup(set->arena, like->workload),
                            .class_key = tl_arena_strdup(set->arena, like->class_key),
                            .family = tl_arena_strdup(set->arena, like->family),
                            .name = tl_arena_strdup(set->arena, like->name),
                            .flops = like->flops,
                            .bytes = like->bytes };
    tl_map_put(set->tasks, task->workload, task);
    return task;
}

/* The number of a lowering of the task, which may be new to it. */
static int get_lowering(tl_dataset *set, tl_data_task *task, const char *name, const char *program)
{
    for (int i = 0; i < task->lowering_count; i++)
        if (strcmp(task->lowerings[i], name) == 0)
            return i;
    const char **names = TL_NEW_ARRAY(set->arena, const char *, task->lowering_count + 1);
    const char **programs = TL_NEW_ARRAY(set->arena, const char *, task->lowering_count + 1);
    for (int i = 0; i < task->lowering_count; i++) {
        names[i] = task->lowerings[i];
        programs[i] = task->programs[i];
    }
    names[task->lowering_count] = tl_arena_strdup(set->arena, name);
    programs[task->lowering_count] = tl_arena_strdup(set->arena, program);
    task->lowerings = names;
    task->programs = programs;
    return task->lowering_count++;
}

static tl_data_series *get_series(tl_dataset *set, const tl_data_task *task,
                                  const tl_data_series *like)
{
    const char *key = tl_arena_format(set->arena, "%s %s %s %d %d %d %d %s", task->workload,
                                      like->target, like->numerics, like->threads, like->cores,
                                      like->revision, (int)like->cold, like->standard);
    tl_data_series *series = tl_map_find(set->series, key);
    if (series != NULL)
        return series;
    series = TL_NEW(set->arena, tl_data_series);
    *series = *like;
    series->task = task;
    series->target = tl_arena_strdup(set->arena, like->target);
    series->numerics = tl_arena_strdup(set->arena, like->numerics);
    series->machine = tl_arena_strdup(set->arena, like->machine);
    series->count = series->capacity = 0;
    series->records = NULL;
    series->programs = NULL;
    tl_map_put(set->series, key, series);
    return series;
}

static void name_program(const tl_data_record *record, char out[24])
{
    snprintf(out, 24, "%d %06" PRIx32, record->lowering, record->program);
}

/* Whether the program is new to the series; from now on it is not. */
static bool is_new(tl_dataset *set, tl_data_series *series, const tl_data_record *record)
{
    char name[24];
    if (series->programs == NULL) {
        series->programs = tl_map_create(set->arena);
        for (int i = 0; i < series->count; i++) {
            name_program(&series->records[i], name);
            tl_map_put(series->programs, name, series);
        }
    }
    name_program(record, name);
    if (tl_map_has(series->programs, name))
        return false;
    tl_map_put(series->programs, name, series);
    return true;
}

/* False: the program is there. */
static bool add_record(tl_dataset *set, tl_data_series *series, const tl_data_record *record)
{
    if (!is_new(set, series, record))
        return false;
    tl_data_record copy = *record;
    tl_wish *answers = TL_NEW_ARRAY(set->arena, tl_wish, record->answer_count);
    for (int i = 0; i < record->answer_count; i++)
        answers[i] = (tl_wish){ tl_arena_strdup(set->arena, record->answers[i].name),
                                record->answers[i].value };
    copy.answers = answers;
    TL_ROOM(set->arena, series->records, series->count, series->capacity);
    series->records[series->count++] = copy;
    set->count++;
    return true;
}

static void add_series(tl_dataset *set, const tl_data_series *from, int64_t *added)
{
    tl_data_task *task = get_task(set, from->task);
    tl_data_series *series = get_series(set, task, from);
    for (int i = 0; i < from->count; i++) {
        tl_data_record record = from->records[i];
        record.lowering = get_lowering(set, task, from->task->lowerings[record.lowering],
                                       from->task->programs[record.lowering]);
        *added += add_record(set, series, &record);
    }
}

void tl_dataset_merge(tl_dataset *set, const tl_dataset *from, int64_t *added)
{
    *added = 0;
    for (size_t i = 0; i < tl_map_count(from->series); i++)
        add_series(set, tl_map_at(from->series, i).value, added);
}

void tl_dataset_split(const tl_dataset *set, double share, uint64_t seed, tl_dataset *in,
                      tl_dataset *out)
{
    int64_t added = 0;
    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *series = tl_map_at(set->series, i).value;
        const char *workload = series->task->workload;
        uint64_t hash = tl_hash_bytes(workload, strlen(workload), seed ^ 0x5b1d7a3c9e2f4680u);
        bool is_in = (double)(hash >> 11) * 0x1p-53 < share;
        add_series(is_in ? in : out, series, &added);
    }
}

/* ---- from records ---- */

typedef struct {
    tl_dataset *set;
    tl_records *store;
    int64_t skipped;
    bool lacks_memory;
} gatherer;

/* The answers of a trace's first line, "# point: direct conv.rows=8 ...". */
static bool read_answers(tl_arena *arena, const char *trace, tl_data_record *out)
{
    size_t mark;
    if (!tl_point_kind(trace, &out->kind, &mark))
        return false;
    size_t length = strcspn(trace, "\n");
    char *line = tl_arena_strndup(arena, trace, length), *save = NULL;
    int most = 0;
    for (size_t i = 0; i < length; i++)
        most += line[i] == '=';
    tl_wish *answers = TL_NEW_ARRAY(arena, tl_wish, most);
    strtok_r(line + mark, " ", &save); /* the lowering */
    for (char *word = strtok_r(NULL, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '='), *end;
        if (equals == NULL)
            return false;
        *equals = '\0';
        answers[out->answer_count++] = (tl_wish){ word, strtoll(equals + 1, &end, 10) };
        if (end == equals + 1 || *end != '\0')
            return false;
    }
    out->answers = answers;
    return true;
}

static tl_censored censored_of(const char *text)
{
    for (int i = 0; i < TL_CENSORED_COUNT; i++)
        if (strcmp(text, tl_censored_texts[i]) == 0)
            return (tl_censored)i;
    return TL_CENSORED_NOTHING;
}

/* What the record is measured against at last: of a label its session's first program. Of a search the ratio is chained to it. */
static const char *standard_of(const tl_record *r)
{
    return r->standard[0] != '\0' ? r->standard : r->program;
}

/* Cores of the machine, as its environment says. */
static int cores_of(const tl_record *r)
{
    static const char key[] = "\"cores\":";
    const char *at = strstr(r->environment, key);
    int cores = at != NULL ? atoi(at + sizeof key - 1) : 0;
    return cores > 0 ? cores : r->threads;
}

static bool gather_into(gatherer *g, tl_arena *scratch, const tl_record *r)
{
    tl_dataset *set = g->set;
    tl_workload_info info;
    tl_annex machine;
    const char *program;
    bool is_ok = r->status == TL_RECORD_OK;
    tl_data_record record = { .sampler = tl_sampler_of(r->origin),
                              .status = r->status,
                              .censored = censored_of(r->censored),
                              .space = r->space,
                              .turns = r->turns,
                              .program = tl_data_program_of(r->program),
                              .ratio = is_ok ? r->ratio : 0,
                              .ratio_error = r->ratio_error,
                              .alone = r->alone,
                              .probability = r->probability };
    if ((is_ok && !(r->ratio > 0)) || r->program[0] == '\0' || r->space == 0 ||
        !read_answers(scratch, r->trace, &record) ||
        !tl_records_find_workload(g->store, scratch, r->workload, &info) ||
        !tl_records_program_of(g->store, scratch, r, &program))
        return false;
    tl_data_task like = { .workload = r->workload,
                          .class_key = r->class_key,
                          .family = r->family,
                          .name = info.name,
                          .flops = info.flops,
                          .bytes = info.bytes };
    tl_data_series series = { .target = r->target,
                              .numerics = r->numerics,
                              .machine = "",
                              .threads = r->threads,
                              .cores = cores_of(r),
                              .revision = r->revision,
                              .cold = r->cold };
    if (r->machine[0] != '\0' &&
        tl_records_find_annex(g->store, scratch, "machine", r->machine, &machine))
        series.machine = machine.text;
    snprintf(series.standard, sizeof series.standard, "%s", standard_of(r));
    tl_data_task *task = get_task(set, &like);
    record.lowering = get_lowering(set, task, r->lowering, program);
    tl_data_series *own = get_series(set, task, &series);
    if (strcmp(r->program, series.standard) == 0 && is_ok && own->standard_ns == 0)
        own->standard_ns = r->median_ns;
    add_record(set, own, &record);
    return true;
}

/* Memory that runs out must not jump out of the database. */
static bool gather(void *user, const tl_record *r)
{
    gatherer *g = user;
    tl_arena *scratch = tl_arena_create(0);
    tl_arena_guard outer;
    tl_arena_guard_save(g->set->arena, &outer);
    if (scratch == NULL || TL_ARENA_GUARD(scratch) || TL_ARENA_GUARD(g->set->arena))
        g->lacks_memory = true;
    else
        g->skipped += !gather_into(g, scratch, r);
    tl_arena_guard_restore(g->set->arena, &outer);
    tl_arena_destroy(scratch);
    return !g->lacks_memory;
}

tl_status tl_dataset_add_records(tl_dataset *set, tl_records *store, const tl_query *query,
                                 int64_t *skipped, tl_diag *diag)
{
    gatherer g = { .set = set, .store = store };
    tl_status status = tl_records_visit(store, query, gather, &g, diag);
    *skipped = g.skipped;
    if (status == TL_OK && g.lacks_memory)
        status = tl_fail(diag, TL_NO_MEMORY, "data set: out of memory");
    return status;
}

/* ---- back to programs ---- */

const tl_measure_task *tl_dataset_task(const tl_data_task *task, tl_arena *arena)
{
    tl_measure_task *out = TL_NEW(arena, tl_measure_task);
    tl_measure_lowering *lowerings = TL_NEW_ARRAY(arena, tl_measure_lowering, task->lowering_count);
    for (int i = 0; i < task->lowering_count; i++)
        lowerings[i] =
            (tl_measure_lowering){ .name = task->lowerings[i], .program = task->programs[i] };
    *out = (tl_measure_task){ .name = task->name,
                              .workload = task->workload,
                              .lowering_count = task->lowering_count,
                              .lowerings = lowerings };
    return out;
}

tl_status tl_dataset_build(const tl_space *space, tl_arena *arena, const tl_data_record *record,
                           tl_variant *out, tl_diag *diag)
{
    TL_TRY(tl_space_build(space, arena, record->lowering, record->answers, record->answer_count,
                          out, diag));
    uint32_t program = tl_data_program_of(out->hash);
    if (program != record->program)
        return tl_fail(diag, TL_ILLEGAL_SCHEDULE,
                       "a record of task %s comes to program %06" PRIx32 ", not %06" PRIx32
                       ": the rules of its space have changed",
                       tl_space_task(space)->name, program, record->program);
    return TL_OK;
}

/* ---- what is in it ---- */

static bool is_uncertain(const tl_data_record *r)
{
    double wanted = r->ratio > SLOW ? WANTED_SLOW_ERROR : WANTED_ERROR;
    return r->sampler != TL_SAMPLER_DEFAULT &&
           (r->turns < 2 || r->ratio_error > 1.02 * wanted); /* as precisely as a file has it */
}

void tl_dataset_measure(const tl_dataset *set, tl_dataset_stats *out)
{
    *out = (tl_dataset_stats){ .tasks = (int64_t)tl_map_count(set->tasks),
                               .series = (int64_t)tl_map_count(set->series),
                               .records = set->count };
    double *ratios = calloc((size_t)set->count + 1, sizeof *ratios);
    int count = 0;
    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *series = tl_map_at(set->series, i).value;
        for (int k = 0; k < series->count; k++) {
            const tl_data_record *r = &series->records[k];
            out->by_sampler[r->sampler]++;
            out->other_space += r->space != tl_space_infos[r->kind].revision;
            out->failed += r->status != TL_RECORD_OK;
            if (r->status != TL_RECORD_OK)
                continue;
            out->censored += r->censored != TL_CENSORED_NOTHING;
            out->uncertain += is_uncertain(r);
            if (ratios != NULL)
                ratios[count++] = r->ratio;
        }
    }
    if (count > 0) {
        tl_sort_doubles(ratios, count);
        out->median_ratio = ratios[count / 2];
        out->best_ratio = ratios[0];
    }
    free(ratios);
}
