/* driver/verb/verb_dataset.c: tilth dataset: measured points to learn from: collect, look at, put together, take apart. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/dataset/collect_run.h"
#include "driver/dataset/read_data.h"
#include "runtime/base/file.h"

typedef struct {
    tl_collect_settings collect;
    const char *output, *rest, *budget, *cold, *plot;
    double share;
    bool rebuild;
    const char *const *files;
    int file_count;
} dataset_options;

static const char *const actions[] = { "collect", "info", "merge", "split", "export", NULL };

static const char *action_word(int index)
{
    return actions[index];
}

/* ---- reading ---- */

static void print_added(const dataset_options *o, const char *path, int64_t added, int64_t skipped)
{
    if (o->collect.common.json) {
        printf("{\"record\":\"added\",\"file\":");
        tl_print_json_text(path);
        printf(",\"records\":%" PRId64 ",\"skipped\":%" PRId64 "}\n", added, skipped);
        return;
    }
    printf("%s: %" PRId64 " records", path, added);
    if (skipped > 0)
        printf(", %" PRId64 " left out (without a ratio, a point or a program)", skipped);
    printf("\n");
}

static tl_status read_all(const dataset_options *o, tl_dataset *set, bool tells, tl_diag *diag)
{
    for (int i = 0; i < o->file_count; i++) {
        int64_t added, skipped;
        TL_TRY(tl_read_data(set, o->files[i], &added, &skipped, diag));
        if (tells)
            print_added(o, o->files[i], added, skipped);
    }
    return TL_OK;
}

static tl_status write_set(const dataset_options *o, const tl_dataset *set, const char *path,
                           tl_diag *diag)
{
    int64_t bytes;
    TL_TRY(tl_dataset_write(set, path, &bytes, diag));
    double each = set->count > 0 ? (double)bytes / (double)set->count : 0;
    if (tl_is_stdout(path))
        return TL_OK;
    if (o->collect.common.json) {
        printf("{\"record\":\"written\",\"file\":");
        tl_print_json_text(path);
        printf(",\"records\":%" PRId64 ",\"tasks\":%zu,\"bytes\":%" PRId64
               ",\"bytes_a_record\":%.2f}\n",
               set->count, tl_map_count(set->tasks), bytes, each);
    } else {
        printf("%s: %" PRId64 " records of %zu tasks, %" PRId64 " bytes (%.1f a record)\n", path,
               set->count, tl_map_count(set->tasks), bytes, each);
    }
    return TL_OK;
}

/* ---- what is in it ---- */

typedef struct {
    int64_t rebuilt, other;
    char why[300];
} rebuilding;

static void rebuild_record(tl_space *const *spaces, const tl_data_record *record, rebuilding *r)
{
    tl_diag why = { 0 };
    tl_variant variant;
    tl_arena *scratch = tl_arena_create(0);
    if (scratch != NULL && !TL_ARENA_GUARD(scratch) &&
        tl_dataset_build(spaces[record->kind], scratch, record, &variant, &why) == TL_OK) {
        r->rebuilt++;
    } else {
        r->other++;
        snprintf(r->why, sizeof r->why, "%.299s", why.text);
    }
    tl_arena_destroy(scratch);
}

/* Builds every record again. */
static void rebuild(const tl_data_series *s, rebuilding *r)
{
    tl_target target;
    tl_arena *arena = tl_arena_create(0);
    tl_space *spaces[TL_SPACE_KIND_COUNT];
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return;
    }
    tl_diag why = { 0 };
    bool ok = tl_target_of_fingerprint(s->target, &target, &why) == TL_OK;
    target.cores = s->cores;
    for (int k = 0; k < TL_SPACE_KIND_COUNT && ok; k++)
        ok = tl_space_create(arena, tl_dataset_task(s->task, arena), &target, s->threads,
                             (tl_space_kind)k, &spaces[k], &why) == TL_OK;
    if (!ok) {
        r->other += s->count;
        snprintf(r->why, sizeof r->why, "%.299s", why.text);
        tl_arena_destroy(arena);
        return;
    }
    for (int i = 0; i < s->count; i++)
        rebuild_record(spaces, &s->records[i], r);
    tl_arena_destroy(arena);
}

static void print_info_json(const tl_dataset_stats *s, const rebuilding *r)
{
    printf("{\"record\":\"dataset\",\"records\":%" PRId64 ",\"tasks\":%" PRId64
           ",\"series\":%" PRId64 ",\"failed\":%" PRId64 ",\"uncertain\":%" PRId64
           ",\"censored\":%" PRId64 ",\"other_space\":%" PRId64 ",\"by_sampler\":{",
           s->records, s->tasks, s->series, s->failed, s->uncertain, s->censored, s->other_space);
    for (int i = 0; i < TL_SAMPLER_COUNT; i++)
        printf("%s\"%s\":%" PRId64, i ? "," : "", tl_sampler_texts[i], s->by_sampler[i]);
    printf("},\"median_ratio\":%.4f,\"best_ratio\":%.4f", s->median_ratio, s->best_ratio);
    if (r != NULL)
        printf(",\"rebuilt\":%" PRId64 ",\"not_rebuilt\":%" PRId64, r->rebuilt, r->other);
    printf("}\n");
}

static tl_status draw(const char *path, const tl_dataset *set, tl_diag *diag)
{
    tl_text svg = { 0 };
    tl_dataset_draw(set, &svg);
    tl_status status = svg.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                  : tl_file_write(path, svg.data, svg.size, diag);
    tl_text_free(&svg);
    return status;
}

static tl_status info(const dataset_options *o, tl_dataset *set, tl_diag *diag)
{
    tl_dataset_stats s;
    rebuilding r = { 0 };
    TL_TRY(read_all(o, set, false, diag));
    tl_dataset_measure(set, &s);
    if (o->plot != NULL)
        TL_TRY(draw(o->plot, set, diag));
    for (size_t i = 0; o->rebuild && i < tl_map_count(set->series); i++) {
        tl_progress("rebuilding: series %zu of %zu", i + 1, tl_map_count(set->series));
        rebuild(tl_map_at(set->series, i).value, &r);
    }
    tl_progress_done();
    if (o->collect.common.json) {
        print_info_json(&s, o->rebuild ? &r : NULL);
    } else {
        int64_t ok = s.records - s.failed;
        printf("records     %" PRId64 " of %" PRId64 " tasks (%" PRId64
               " series: target, threads, standard)\n",
               s.records, s.tasks, s.series);
        for (int i = 0; i < TL_SAMPLER_COUNT; i++)
            if (s.by_sampler[i] > 0)
                printf("  %-9s %8" PRId64 "\n", tl_sampler_texts[i], s.by_sampler[i]);
        printf("failed      %" PRId64 "\n", s.failed);
        printf("ratios      median %.3f of the standard's time, best %.3f\n", s.median_ratio,
               s.best_ratio);
        printf("uncertain   %.1f %% above an error of 2 %% (5 %% beyond a ratio of 3); %.1f %% "
               "ended early\n",
               ok > 0 ? 100.0 * (double)s.uncertain / (double)ok : 0,
               ok > 0 ? 100.0 * (double)s.censored / (double)ok : 0);
        if (s.other_space > 0)
            printf("space       %" PRId64 " are points of another revision of their space\n",
                   s.other_space);
        if (o->rebuild)
            printf("rebuilt     %" PRId64 ", %" PRId64 " come to another program%s%s\n", r.rebuilt,
                   r.other, r.other > 0 ? ": " : "", r.why);
    }
    if (o->rebuild && r.other > 0)
        return tl_fail(diag, TL_WRONG_RESULT, "%" PRId64 " records were not rebuilt: %s", r.other,
                       r.why);
    return TL_OK;
}

/* ---- together and apart ---- */

static tl_status merge(const dataset_options *o, tl_dataset *set, tl_diag *diag)
{
    if (o->output == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "merge needs -o FILE");
    TL_TRY(read_all(o, set, !tl_is_stdout(o->output), diag));
    return write_set(o, set, o->output, diag);
}

static tl_status split(const dataset_options *o, tl_dataset *set, tl_diag *diag)
{
    if (o->output == NULL || o->rest == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "split needs -o FILE and --rest FILE: where the share and the rest go");
    if (!(o->share > 0 && o->share < 1))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--share: %g is not between 0 and 1", o->share);
    TL_TRY(read_all(o, set, false, diag));
    tl_dataset *in = tl_dataset_create(set->arena), *out = tl_dataset_create(set->arena);
    tl_dataset_split(set, o->share, o->collect.sources.seed, in, out);
    TL_TRY(write_set(o, in, o->output, diag));
    return write_set(o, out, o->rest, diag);
}

static tl_status export(dataset_options *o, tl_dataset *set, tl_diag *diag)
{
    tl_text path = { 0 };
    const char *named = o->collect.common.database;
    if (o->output == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "export needs -o FILE");
    if (o->file_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "export takes --db FILE, not '%s'", o->files[0]);
    if (named == NULL && !tl_dataset_default_path(&path))
        return tl_fail(diag, TL_BAD_ARGUMENT, "no place of records is known: give --db");
    o->files = &named;
    o->file_count = 1;
    if (named == NULL)
        named = tl_text_get(&path);
    tl_status status = merge(o, set, diag);
    tl_text_free(&path);
    return status;
}

static tl_status act(dataset_options *o, const char *action, tl_diag *diag)
{
    bool is_export = strcmp(action, "export") == 0;
    if (!is_export && o->file_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s needs a file", action);
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_dataset *set = tl_dataset_create(arena);
    tl_status status = is_export                      ? export(o, set, diag)
                       : strcmp(action, "info") == 0  ? info(o, set, diag)
                       : strcmp(action, "merge") == 0 ? merge(o, set, diag)
                                                      : split(o, set, diag);
    tl_arena_destroy(arena);
    return status;
}

static tl_status collect(dataset_options *o, tl_diag *diag)
{
    tl_collect_settings *c = &o->collect;
    if (o->file_count == 0 && !c->sources.zoo && c->sources.layers == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "nothing to measure: name models or kernels, or say --zoo or --layers N");
    if (c->per_task < 2 || c->per_task > 100000)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--per-task: %" PRId64 " is not in 2..100000",
                       c->per_task);
    if (c->sources.layers < 0 || c->sources.layers > 100000)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--layers: %" PRId64 " is not in 0..100000",
                       c->sources.layers);
    if (c->common.no_database)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--no-db: a collection needs a place");
    c->cold = TL_COLD_CONSTANTS;
    if (o->cold != NULL && !tl_cold_from_text(o->cold, &c->cold))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--cold: '%s' is neither nothing, all nor constants",
                       o->cold);
    if (o->budget != NULL)
        TL_TRY(tl_duration_parse("--budget", o->budget, &c->seconds, diag));
    c->sources.paths = o->files;
    c->sources.path_count = o->file_count;
    return tl_collect_run(c, diag);
}

static tl_status run(dataset_options *o, const char *action, tl_diag *diag)
{
    for (int i = 0; actions[i] != NULL; i++)
        if (strcmp(actions[i], action) == 0)
            return i == 0 ? collect(o, diag) : act(o, action, diag);
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "'%s' is nothing it does: collect, info, merge, split or export", action);
}

int tl_verb_dataset(int argc, char **argv)
{
    enum { MOST_FILES = 256 };
    int64_t seed = 1;
    dataset_options o = { .collect = { .common.threads = 1, .per_task = 64 }, .share = 0.8 };
    const tl_option options[] = {
        { "--budget", "-b", TL_OPTION_TEXT, "TIME",
          "collect: how long: 60s, 30m, 1h (until all is there)", &o.budget },
        { "--per-task", NULL, TL_OPTION_INT, "N", "collect: records of a task (64)",
          &o.collect.per_task },
        { "--zoo", NULL, TL_OPTION_FLAG, NULL,
          "collect: also every network of the zoo, at three sizes each", &o.collect.sources.zoo },
        { "--layers", NULL, TL_OPTION_INT, "N", "collect: also N layers of random shapes",
          &o.collect.sources.layers },
        { "--seed", NULL, TL_OPTION_INT, "S", "of points, shapes, inputs and splits (1)", &seed },
        { "--cold", NULL, TL_OPTION_TEXT, "WHAT",
          "collect: what is in no cache when a kernel is timed: nothing, all or constants "
          "(constants)",
          &o.cold },
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "where the data set goes", &o.output },
        { "--rest", NULL, TL_OPTION_TEXT, "FILE", "split: where the other tasks go", &o.rest },
        { "--share", NULL, TL_OPTION_REAL, "X", "split: the share of tasks that -o gets (0.8)",
          &o.share },
        { "--rebuild", NULL, TL_OPTION_FLAG, NULL,
          "info: build every record's program again and compare its hash", &o.rebuild },
        { "--plot", NULL, TL_OPTION_TEXT, "FILE.svg",
          "info: draw how far from the standard points are, by sampler, and how sure", &o.plot },
        TL_SESSION_OPTIONS(o.collect.common),
        { 0 },
    };
    const tl_verb_help help = {
        "dataset",
        "ACTION [FILE ...]",
        "Measures points of many kernels' spaces for cost models to learn from, and keeps them "
        "small.",
        "collect   measures points of the models and kernels that are named: of each task its "
        "default schedule, the\n"
        "          standard; walks of one to four steps around it (40 %), points of the plain "
        "space (40 %), a search's trail (20 %).\n"
        "          Each takes turns with the standard until their ratio is known to 2 % (5 % "
        "beyond a ratio of 3). What is\n"
        "          there is not measured again: interrupted or killed, the same command goes on.\n"
        "info      what is in data sets or databases; --rebuild builds every record again\n"
        "merge     several of them as one data set\n"
        "split     into two by task: no workload is in both, on whatever machine it was measured\n"
        "export    a database as a data set, at most 25 bytes a record\n\n"
        "Nothing else should use the machine meanwhile; two cores are as good as more, for one "
        "times and one builds.",
        "  tilth info --quick --probe\n"
        "  tilth dataset collect *.onnx --layers 120 --budget 30m --db points.db\n"
        "  tilth dataset export --db points.db -o points.tld\n"
        "  tilth dataset split points.tld -o train.tld --rest test.tld --share 0.8\n"
        "  tilth dataset info points.tld --rebuild",
        options,
        1,
        MOST_FILES,
        action_word,
    };
    int positional_count, code;
    const char *positional[MOST_FILES];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;
    tl_diag diag = { 0 };
    o.files = positional + 1;
    o.file_count = positional_count - 1;
    o.collect.sources.seed = (uint64_t)seed;
    tl_status status = run(&o, positional[0], &diag);
    return status != TL_OK ? tl_report_failure("dataset", status, &diag) : 0;
}
