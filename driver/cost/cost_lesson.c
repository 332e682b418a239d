/* driver/cost/cost_lesson.c: opens data and networks, draws sides, picks samples. */
#include "driver/cost/cost_lesson.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "driver/dataset/data_sources.h"
#include "driver/dataset/read_data.h"
#include "driver/pipeline/build_id.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/cache/cache.h"
#include "runtime/device/topology.h"

#define LINE_NS INT64_C(10000000000)

volatile sig_atomic_t tl_cost_stop;

/* --- data --------------------------------------------------------------------------------------------------------- */

static tl_status read_files(tl_dataset *set, const char *const *files, int count, tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        int64_t added, skipped;
        tl_progress("reading %s", files[i]);
        TL_TRY(tl_read_data(set, files[i], &added, &skipped, diag));
        if (skipped > 0 && !tl_quiet)
            fprintf(stderr, "tilth cost-model: note: %s: %" PRId64 " records left out\n", files[i],
                    skipped);
    }
    return TL_OK;
}

static void show_rows(void *user, int64_t done, int64_t all)
{
    (void)user;
    tl_progress("rows: %" PRId64 " of %" PRId64 " programs", done, all);
}

/* Beside the cache of objects, which counts what it knows only. */
static void find_folder(const tl_lesson *l, tl_text *out)
{
    tl_cache *cache = NULL;
    if (!l->o->common.no_cache && tl_cache_open(l->o->common.cache, 0, &cache, NULL) == TL_OK &&
        tl_cache_folder(cache) != NULL)
        tl_text_format(out, "%s-rows", tl_cache_folder(cache));
    tl_cache_close(cache);
}

static tl_status open_corpus(tl_lesson *l, const tl_dataset *set, tl_corpus **out, tl_diag *diag)
{
    tl_text folder = { 0 };
    find_folder(l, &folder);
    const tl_corpus_options options = {
        .threads = l->o->jobs > 0 ? (int)l->o->jobs : tl_topology_get()->threads,
        .unmeasured = l->o->teacher != NULL ? (int)l->o->unmeasured : 0,
        .folder = folder.size > 0 ? tl_text_get(&folder) : NULL,
        .build = tl_build_id(),
        .stop = &tl_cost_stop,
        .listen = show_rows,
    };
    tl_status status = tl_corpus_open(set, &options, out, diag);
    tl_progress_done();
    tl_text_free(&folder);
    if (status == TL_OK && (*out)->lost > 0 && !tl_quiet)
        fprintf(stderr, "tilth cost-model: note: %" PRId64 " records cannot be built again: %s\n",
                (*out)->lost, (*out)->why);
    return status;
}

tl_status tl_lesson_corpus(tl_lesson *l, const char *const *files, int count, tl_corpus **out,
                           tl_diag *diag)
{
    tl_dataset *set = tl_dataset_create(l->arena);
    TL_TRY(read_files(set, files, count, diag));
    return open_corpus(l, set, out, diag);
}

/* Labels of the same programs of the same tasks in another data set. */
static tl_status read_again(tl_lesson *l, tl_diag *diag)
{
    if (l->o->again == NULL)
        return TL_OK;
    tl_dataset *set = tl_dataset_create(l->arena);
    tl_map *labels = tl_map_create(l->arena);
    float *again = TL_NEW_ARRAY(l->arena, float, l->corpus->count);
    TL_TRY(read_files(set, &l->o->again, 1, diag));
    for (size_t i = 0; i < tl_map_count(set->series); i++) {
        const tl_data_series *s = tl_map_at(set->series, i).value;
        for (int k = 0; k < s->count; k++)
            if (s->records[k].status == TL_RECORD_OK)
                tl_map_put(labels,
                           tl_arena_format(l->arena, "%s %s %s %06" PRIx32, s->task->workload,
                                           s->target, s->standard, s->records[k].program),
                           &s->records[k]);
    }
    for (int p = 0; p < l->corpus->count; p++) {
        const tl_data_series *s = l->corpus->tasks[l->corpus->samples[0].task[p]].series;
        const tl_data_record *r =
            tl_map_find(labels, tl_arena_format(l->arena, "%s %s %s %06" PRIx32, s->task->workload,
                                                s->target, s->standard, l->corpus->program[p]));
        again[p] = r != NULL ? (float)log(r->ratio) : NAN;
    }
    l->again = again;
    return TL_OK;
}

/* --- networks ----------------------------------------------------------------------------------------------------- */

static tl_status read_network(tl_lesson *l, const char *path, tl_network *out, tl_diag *diag)
{
    tl_tune_list list;
    tl_numerics numerics = TL_NUMERICS_RELAXED;
    const char *slash = strrchr(path, '/');
    tl_progress("networks: %s", path);
    if (l->o->common.numerics != NULL && strcmp(l->o->common.numerics, "strict") == 0)
        numerics = TL_NUMERICS_STRICT;
    TL_TRY(tl_data_model_tasks(&l->session, &l->o->common, path, numerics, &list, diag));
    const char **workloads = TL_NEW_ARRAY(l->arena, const char *, list.count);
    double *runs = TL_NEW_ARRAY(l->arena, double, list.count);
    for (int i = 0; i < list.count; i++) {
        workloads[i] = list.tasks[i].measure->workload;
        runs[i] = list.tasks[i].weight;
    }
    *out = (tl_network){ .name = slash != NULL ? slash + 1 : path,
                         .count = list.count,
                         .workloads = workloads,
                         .runs = runs };
    return TL_OK;
}

static tl_status read_networks(tl_lesson *l, tl_diag *diag)
{
    const tl_text_list *lists[] = { &l->o->held_out, &l->o->networks };
    int count = l->o->held_out.count + l->o->networks.count;
    tl_network *networks = TL_NEW_ARRAY(l->arena, tl_network, count);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists[k]->count; i++)
            TL_TRY(read_network(l, lists[k]->items[i], &networks[l->network_count++], diag));
    tl_progress_done();
    l->networks = networks;
    l->held_out_count = l->o->held_out.count;
    return TL_OK;
}

/* How often each network runs each task. */
static void count_runs(tl_lesson *l)
{
    const tl_corpus *c = l->corpus;
    double *runs = TL_NEW_ARRAY(l->arena, double, l->network_count * c->task_count);
    for (int n = 0; n < l->network_count; n++) {
        tl_map *known = tl_map_create(l->arena);
        for (int i = 0; i < l->networks[n].count; i++)
            tl_map_put(known, l->networks[n].workloads[i],
                       (void *)(uintptr_t)&l->networks[n].runs[i]);
        for (int t = 0; t < c->task_count; t++) {
            const double *of = tl_map_find(known, c->tasks[t].series->task->workload);
            runs[(size_t)n * (size_t)c->task_count + (size_t)t] = of != NULL ? *of : 0;
        }
    }
    l->runs = runs;
}

/* --- ablations ---------------------------------------------------------------------------------------------------- */

enum { PARTS = 4 };

/* Which parts of the samples --without names. */
static tl_status find_without(const tl_lesson *l, bool out[PARTS], tl_diag *diag)
{
    static const char *const parts[PARTS] = { "rows", "decisions", "workload", "machine" };
    memset(out, 0, PARTS * sizeof *out);
    if (l->o->without == NULL)
        return TL_OK;
    char *words = tl_arena_strdup(l->arena, l->o->without), *save = NULL;
    for (char *word = strtok_r(words, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        int k = 0;
        while (k < PARTS && strcmp(parts[k], word) != 0)
            k++;
        if (k == PARTS)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "--without: '%s' is neither rows, decisions, workload nor machine",
                           word);
        out[k] = true;
    }
    return TL_OK;
}

/* --- sides -------------------------------------------------------------------------------------------------------- */

static tl_status draw_sides(tl_lesson *l, tl_diag *diag)
{
    const tl_cost_settings *o = l->o;
    l->side = TL_NEW_ARRAY(l->arena, uint8_t, l->corpus->count);
    l->has_split = o->split != NULL || l->held_out_count > 0 || o->machine != NULL;
    l->split = l->held_out_count > 0 ? TL_SPLIT_MODEL
               : o->machine != NULL  ? TL_SPLIT_MACHINE
                                     : TL_SPLIT_TASK;
    if (o->split != NULL)
        tl_split_from_text(o->split, &l->split);
    const tl_split_options options = { .kind = l->split,
                                       .test = l->has_split ? o->test : 0,
                                       .check = o->check,
                                       .seed = (uint64_t)o->seed,
                                       .held_out = l->networks,
                                       .held_out_count = l->held_out_count,
                                       .machine = o->machine };
    tl_status status = tl_split_make(l->corpus, &options, l->side, &l->sizes, diag);
    if (status != TL_OK && !l->has_split && l->sizes.programs[TL_SIDE_TRAIN] > 0) {
        *diag = (tl_diag){ { 0 } }; /* nothing is judged on: as it was asked for */
        status = TL_OK;
    }
    return status;
}

/* A model that cannot be made or read. */
static tl_status check_models(const tl_lesson *l, tl_diag *diag)
{
    for (int i = 0; i < l->o->models.count; i++) {
        tl_model_spec spec;
        tl_cost_model *made = NULL;
        tl_model_group read = { 0 };
        TL_TRY(tl_model_spec_read(l->arena, l->o->models.items[i], &spec, diag));
        TL_TRY(spec.type != NULL ? tl_cost_model_create(spec.type, spec.settings, 1, &made, diag)
                                 : tl_model_group_load(l->arena, &spec, &read, diag));
        tl_cost_model_destroy(made);
        tl_model_group_destroy(&read);
    }
    return TL_OK;
}

/* A file that is to be written, when training has ended. */
static tl_status check_output(const char *path, tl_diag *diag)
{
    tl_file *file;
    if (path == NULL || tl_is_stdout(path))
        return TL_OK;
    TL_TRY(tl_file_create(path, &file, diag));
    tl_file_abandon(file);
    return TL_OK;
}

/* What is wrong is told before rows are computed, which may take minutes. */
static tl_status check_settings(const tl_lesson *l, tl_diag *diag)
{
    const tl_cost_settings *o = l->o;
    tl_split_kind split;
    bool without[PARTS];
    if (o->split != NULL && !tl_split_from_text(o->split, &split))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--split: '%s' is neither within-task, task, model nor machine", o->split);
    if (!(o->test > 0 && o->test < 1))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--share: %g is not between 0 and 1", o->test);
    if (!(o->check >= 0 && o->check < 1))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--check: %g is not in 0..1", o->check);
    TL_TRY(find_without(l, without, diag));
    TL_TRY(check_models(l, diag));
    TL_TRY(check_output(o->output, diag));
    return check_output(o->plot, diag);
}

static tl_status open_lesson(tl_lesson *l, tl_diag *diag)
{
    const tl_cost_settings *o = l->o;
    TL_TRY(check_settings(l, diag));
    TL_TRY(read_networks(l, diag));
    tl_dataset *set = tl_dataset_create(l->arena);
    TL_TRY(read_files(set, o->files, o->file_count, diag));
    tl_progress_done();
    TL_TRY(open_corpus(l, set, &l->corpus, diag));
    count_runs(l);
    TL_TRY(read_again(l, diag));
    return draw_sides(l, diag);
}

/* What runs out of memory comes back here. */
static tl_status run_guarded(tl_lesson *l, bool with_data, tl_lesson_action *act, tl_diag *diag)
{
    TL_TRY(tl_session_start(&l->session, &l->o->common, diag));
    l->arena = l->session.arena;
    if (TL_ARENA_GUARD(l->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_interrupt_catch(&tl_cost_stop);
    if (with_data)
        TL_TRY(open_lesson(l, diag));
    return act(l, diag);
}

tl_status tl_lesson_run(const tl_cost_settings *settings, bool with_data, tl_lesson_action *act,
                        tl_diag *diag)
{
    tl_lesson lesson = { .o = settings };
    tl_status status = run_guarded(&lesson, with_data, act, diag);
    tl_progress_done();
    tl_corpus_close(lesson.corpus);
    tl_session_close(&lesson.session);
    return tl_cost_stop ? TL_INTERRUPTED : status;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* Takes away what an ablation is to do without. */
static tl_status strip(const tl_lesson *l, tl_cost_samples *s, tl_diag *diag)
{
    tl_columns *columns[PARTS] = { &s->shape.row, &s->shape.decision, &s->shape.workload,
                                   &s->shape.machine };
    bool without[PARTS];
    TL_TRY(find_without(l, without, diag));
    for (int k = 0; k < PARTS; k++)
        if (without[k])
            *columns[k] = (tl_columns){ 0 };
    if (s->shape.row.width == 0)
        s->rows = NULL;
    if (s->shape.decision.width == 0)
        s->decisions = NULL;
    if (s->shape.workload.width == 0)
        s->workloads = NULL;
    if (s->shape.machine.width == 0)
        s->machines = NULL;
    return TL_OK;
}

tl_status tl_lesson_pick(const tl_lesson *l, const tl_corpus *corpus, tl_rows rows,
                         const int *programs, int count, tl_cost_samples *out, tl_diag *diag)
{
    *out = tl_cost_samples_pick(l->arena, &corpus->samples[rows], programs, count);
    return strip(l, out, diag);
}

static int keep_measured(const float *label, int *programs, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(label[programs[i]]))
            programs[kept++] = programs[i];
    return kept;
}

tl_status tl_lesson_side(const tl_lesson *l, tl_rows rows, tl_side side, const int **programs,
                         tl_cost_samples *out, tl_diag *diag)
{
    int *numbers = TL_NEW_ARRAY(l->arena, int, l->corpus->count);
    int count = tl_split_side(l->corpus, l->side, side, numbers);
    if (side == TL_SIDE_TEST)
        count = keep_measured(l->corpus->samples[rows].label, numbers, count);
    *programs = numbers;
    return tl_lesson_pick(l, l->corpus, rows, numbers, count, out, diag);
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static bool find_rows(const char *text, tl_rows *out)
{
    for (int i = 0; i < TL_ROWS_COUNT; i++)
        if (strcmp(text, tl_rows_infos[i].text) == 0) {
            *out = (tl_rows)i;
            return true;
        }
    return false;
}

/* TYPE[,SETTING=VALUE ...][@ROWS]; whatever begins with no type is a path. */
tl_status tl_model_spec_read(tl_arena *arena, const char *text, tl_model_spec *out, tl_diag *diag)
{
    size_t end = strcspn(text, ",@");
    char *type = tl_arena_strndup(arena, text, end);
    *out = (tl_model_spec){ .text = text };
    if (tl_cost_model_find(type) == NULL) {
        if (strchr(text, '/') == NULL && strchr(text, '.') == NULL) {
            tl_text names = { 0 };
            for (int i = 0; i < tl_cost_model_count; i++)
                tl_text_format(&names, "%s%s", i > 0 ? ", " : "", tl_cost_models[i]->name);
            tl_status status =
                tl_fail(diag, TL_BAD_ARGUMENT, "'%s' is no cost model (%s), and no file", text,
                        tl_text_get(&names));
            tl_text_free(&names);
            return status;
        }
        return TL_OK;
    }
    const char *at = strrchr(text, '@');
    if (at != NULL && !find_rows(at + 1, &out->rows))
        return tl_fail(diag, TL_BAD_ARGUMENT, "'%s': rows are tilth or tenset, not '%s'", text,
                       at + 1);
    if (text[end] == ',') {
        size_t size = (at != NULL ? (size_t)(at - text) : strlen(text)) - end - 1;
        char *settings = tl_arena_strndup(arena, text + end + 1, size);
        for (char *c = settings; *c != '\0'; c++)
            *c = *c == ',' ? ' ' : *c;
        out->settings = settings;
    }
    out->type = type;
    return TL_OK;
}

tl_status tl_model_spec_load(tl_model_spec *spec, tl_cost_model **out, tl_diag *diag)
{
    tl_diag why = { { 0 } };
    TL_TRY(tl_cost_model_load(spec->text, out, diag));
    for (int k = TL_ROWS_COUNT - 1; k >= 0; k--) {
        tl_sample_shape given = tl_rows_shape((tl_rows)k);
        spec->rows = (tl_rows)k;
        if (tl_cost_model_fits(*out, &given, &why) == TL_OK)
            return TL_OK;
    }
    tl_cost_model_destroy(*out);
    *out = NULL;
    return tl_fail(diag, TL_BAD_TEXT,
                   "%s is of other features or another space than this tilth's, train it again: %s",
                   spec->text, why.text);
}

tl_status tl_model_group_load(tl_arena *arena, tl_model_spec *spec, tl_model_group *out,
                              tl_diag *diag)
{
    tl_status status = TL_OK;
    char *files = tl_arena_strdup(arena, spec->text), *save = NULL;
    *out = (tl_model_group){ 0 };
    for (char *file = strtok_r(files, "+", &save); file != NULL && status == TL_OK;
         file = strtok_r(NULL, "+", &save)) {
        tl_model_spec one = { .text = file };
        if (out->count == TL_TOGETHER)
            status = tl_fail(diag, TL_BAD_ARGUMENT, "%s: at most %d models are asked together",
                             spec->text, TL_TOGETHER);
        else
            status = tl_model_spec_load(&one, &out->models[out->count], diag);
        if (status == TL_OK && out->count++ > 0 && one.rows != spec->rows)
            status = tl_fail(diag, TL_BAD_ARGUMENT,
                             "%s: models that are asked together read the "
                             "same rows; %s reads those of %s, not of %s",
                             spec->text, file, tl_rows_infos[one.rows].text,
                             tl_rows_infos[spec->rows].text);
        spec->rows = one.rows;
    }
    if (status != TL_OK)
        tl_model_group_destroy(out);
    return status;
}

void tl_model_group_destroy(tl_model_group *group)
{
    for (int i = 0; i < group->count; i++)
        tl_cost_model_destroy(group->models[i]);
    group->count = 0;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* What is trained, and when the next plain line is due. */
typedef struct {
    const char *name;
    int64_t next_ns;
    int epoch;
} training;

/* Not on a terminal: an epoch a line, and not more often than every ten seconds. */
static void show_line(training *t, const tl_train_progress *p)
{
    if (tl_quiet || p->epoch == t->epoch || tl_clock_ns() < t->next_ns)
        return;
    t->epoch = p->epoch;
    t->next_ns = tl_clock_ns() + LINE_NS;
    fprintf(stderr, "tilth cost-model: %s: epoch %d of %d, loss %.4f, held out %.4f (least %.4f)\n",
            t->name, p->epoch, p->epochs, p->loss, p->held_out, p->least);
}

static void show_training(void *user, const tl_train_progress *p)
{
    training *t = user;
    const char *name = t->name;
    enum { BAR = 20 };
    if (!tl_progress_is_live()) {
        show_line(t, p);
        return;
    }
    double part =
        p->epochs > 0 && p->steps > 0 ? (p->epoch + (double)p->step / p->steps) / p->epochs : 0;
    int filled = (int)((part < 1 ? part : 1) * BAR);
    tl_progress("%s [%.*s%.*s] epoch %d of %d, loss %.4f, held out %.4f (least %.4f)", name, filled,
                "####################", BAR - filled, "....................", p->epoch + 1,
                p->epochs, p->loss, p->held_out, p->least);
}

/* Whom --teacher names; NULL: nobody. */
static tl_status find_teacher(const tl_lesson *l, tl_cost_model **out, tl_diag *diag)
{
    tl_model_spec spec = { .text = l->o->teacher };
    *out = NULL;
    return l->o->teacher != NULL ? tl_model_spec_load(&spec, out, diag) : TL_OK;
}

tl_status tl_lesson_train(const tl_lesson *l, const tl_model_spec *spec, uint64_t seed,
                          const char *checkpoint, tl_cost_model **out, tl_diag *diag)
{
    const int *programs;
    tl_cost_samples train, check;
    tl_cost_model *teacher;
    training shown = { .name = spec->text, .next_ns = tl_clock_ns() + LINE_NS };
    TL_TRY(tl_lesson_side(l, spec->rows, TL_SIDE_TRAIN, &programs, &train, diag));
    TL_TRY(tl_lesson_side(l, spec->rows, TL_SIDE_CHECK, &programs, &check, diag));
    TL_TRY(tl_cost_model_create(spec->type, spec->settings, seed, out, diag));
    tl_status status = find_teacher(l, &teacher, diag);
    const tl_train_options options = { .epochs = (int)l->o->epochs,
                                       .batch = (int)l->o->batch,
                                       .rate = l->o->rate,
                                       .checkpoint = checkpoint,
                                       .teacher = teacher,
                                       .stop = &tl_cost_stop,
                                       .listen = show_training,
                                       .user = &shown };
    if (status == TL_OK)
        status = tl_cost_model_train(*out, &train, check.count > 0 ? &check : NULL, &options, diag);
    tl_progress_done();
    tl_cost_model_destroy(teacher);
    if (status != TL_OK) {
        tl_cost_model_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static const double *runs_of(const tl_lesson *l, const tl_corpus *corpus)
{
    return corpus == l->corpus ? l->runs : NULL;
}

/* --machine: as if all that is judged had run on a machine of that profile. */
static void take_profile(const tl_lesson *l, tl_cost_samples *samples)
{
    if (l->o->common.machine == NULL)
        return;
    const tl_machine **profiles = TL_NEW_ARRAY(l->arena, const tl_machine *, samples->domain_count);
    for (int i = 0; i < samples->domain_count; i++)
        profiles[i] = l->session.machine;
    samples->profiles = profiles;
}

tl_status tl_lesson_judge(const tl_lesson *l, const tl_corpus *corpus, tl_rows rows,
                          const int *programs, int count, const tl_model_group *group,
                          tl_report_card *out, tl_diag *diag)
{
    tl_cost_samples samples;
    TL_TRY(tl_lesson_pick(l, corpus, rows, programs, count, &samples, diag));
    take_profile(l, &samples);
    float *mean = TL_NEW_ARRAY(l->arena, float, count),
          *variance = TL_NEW_ARRAY(l->arena, float, count),
          *again = TL_NEW_ARRAY(l->arena, float, count);
    uint8_t *sampler = TL_NEW_ARRAY(l->arena, uint8_t, count);
    uint32_t *program = TL_NEW_ARRAY(l->arena, uint32_t, count);
    bool has_again = l->again != NULL && corpus == l->corpus;
    for (int i = 0; i < count; i++) {
        sampler[i] = corpus->sampler[programs[i]];
        program[i] = corpus->program[programs[i]];
        again[i] = has_again ? l->again[programs[i]] : NAN;
    }
    double *task_values = TL_NEW_ARRAY(l->arena, double, TL_METRIC_COUNT *(corpus->task_count + 1));
    int networks = runs_of(l, corpus) != NULL ? l->network_count : 0;
    double *network_values = TL_NEW_ARRAY(l->arena, double, TL_METRIC_COUNT *(networks + 1));
    *out = (tl_report_card){ .programs = count,
                             .corpus = corpus,
                             .task_values = task_values,
                             .network_count = networks,
                             .network_values = network_values };
    int64_t begun = tl_clock_cpu_ns();
    out->has_learned =
        tl_cost_models_predict(group->models, group->count, &samples, mean, variance);
    double seconds = (double)(tl_clock_cpu_ns() - begun) * 1e-9;
    out->programs_a_second = seconds > 0 ? count / seconds : 0;
    const tl_judged judged = { .count = count,
                               .task_count = corpus->task_count,
                               .task = samples.task,
                               .label = samples.label,
                               .error = samples.error,
                               .sampler = sampler,
                               .program = program,
                               .task_ns = corpus->samples[rows].standard_ns,
                               .network_count = networks,
                               .runs = runs_of(l, corpus),
                               .again = has_again ? again : NULL,
                               .task_values = task_values,
                               .network_values = network_values,
                               .seed = (uint64_t)l->o->seed };
    TL_TRY(tl_judge(&judged, mean, &out->judgement, diag));
    return tl_calibrate(&judged, mean, variance, &out->calibration, diag);
}
