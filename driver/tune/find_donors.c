/* driver/tune/find_donors.c: where the kernels of a run of the tuner get schedules of others from. */
#include "driver/tune/find_donors.h"
#include <string.h>
#include "driver/pipeline/model_tasks.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/search/tokens.h"

/* A model by its name, what comes with tilth, or a file. */
static tl_status find_ranking(const char *name, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    tl_sample_shape shape = tl_sample_shape_of_points();
    tl_text names = { 0 };
    *out = NULL;
    if (strcmp(name, "shape") == 0)
        return TL_OK;
    if (strcmp(name, "default") == 0)
        return tl_cost_model_default(TL_DEFAULT_MODEL, out);
    if (tl_cost_model_find(name) != NULL)
        return tl_cost_model_create(name, NULL, seed, out, diag);
    if (strchr(name, '/') != NULL || strchr(name, '.') != NULL) {
        TL_TRY(tl_cost_model_load(name, out, diag));
        return tl_cost_model_fits(*out, &shape, diag);
    }
    for (int i = 0; i < tl_cost_model_count; i++)
        tl_text_format(&names, ", %s", tl_cost_models[i]->name);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "--rank: '%s' is none: shape, default%s, or a file", name,
                tl_text_get(&names));
    tl_text_free(&names);
    return status;
}

/* The workloads of the model at that path. */
static tl_status list_workloads_of(tl_arena *arena, const char *path,
                                   const tl_session_options *common, tl_numerics numerics,
                                   const char *const **out, int *count, tl_diag *diag)
{
    tl_session session = { 0 };
    tl_session_options untuned = *common;
    const tl_model_options extra = { .inspect_only = true, .no_cache = true, .no_database = true };
    const tl_tune_filter all = { 0 };
    tl_tune_list list = { 0 };
    untuned.database = NULL;
    untuned.shapes = (tl_text_list){ 0 };
    tl_status status = tl_session_open(&session, path, &untuned, &extra, diag);
    if (status == TL_OK)
        status = tl_model_tasks(session.arena, session.model, numerics, &all, &list, diag);
    const char **keys = TL_NEW_ARRAY(arena, const char *, list.count);
    for (int i = 0; i < list.count; i++)
        keys[i] = tl_arena_strdup(arena, list.tasks[i].measure->workload);
    *out = keys;
    *count = list.count;
    tl_session_close(&session);
    return status;
}

static void note_kin(tl_arena *arena, tl_map *kin, const tl_workload_info *w)
{
    const char *name;
    if (!tl_map_has(kin, w->workload) && tl_kin_of_text(arena, w->program, &name))
        tl_map_put(kin, w->workload, (void *)name);
}

/* The kin of the tasks, by workload; donors of them are wanted from now on. */
static tl_map *list_kin(tl_arena *arena, const tl_tune_list *list, tl_donor_filter *filter)
{
    tl_map *kin = tl_map_create(arena);
    for (int i = 0; i < list->count; i++)
        note_kin(arena, kin, list->tasks[i].workload);
    filter->kin_count = (int)tl_map_count(kin);
    const char **names = TL_NEW_ARRAY(arena, const char *, filter->kin_count);
    for (int i = 0; i < filter->kin_count; i++)
        names[i] = tl_map_at(kin, (size_t)i).value;
    filter->kin = names;
    return kin;
}

/* Keys of the tasks' classes and workloads. */
static void list_keys(tl_arena *arena, const tl_tune_list *list, bool others_only,
                      tl_donor_filter *filter)
{
    const char **classes = TL_NEW_ARRAY(arena, const char *, list->count);
    const char **workloads = TL_NEW_ARRAY(arena, const char *, list->count);
    for (int i = 0; i < list->count; i++) {
        classes[i] = list->tasks[i].workload->class_key;
        workloads[i] = list->tasks[i].workload->workload;
    }
    filter->classes = classes;
    filter->class_count = list->count;
    filter->excluded = others_only ? workloads : NULL;
    filter->excluded_count = list->count;
}

static tl_status read_donors(tl_arena *arena, const tl_donor_settings *o, tl_records *store,
                             const tl_donor_filter *filter, tl_donors *out, tl_diag *diag)
{
    tl_text text = { 0 };
    if (o->donors == NULL)
        return store != NULL ? tl_donors_find(store, arena, filter, out, diag) : TL_OK;
    TL_TRY(tl_file_read(o->donors, &text, diag));
    tl_donors_of_lines(arena, tl_text_get(&text), filter, out);
    tl_text_free(&text);
    if (out->count == 0 && !o->may_be_empty && filter->only == NULL && filter->session == NULL) {
        tl_donor_filter any = { .numerics = filter->numerics };
        tl_donors all;
        TL_TRY(tl_file_read(o->donors, &text, diag));
        tl_donors_of_lines(arena, tl_text_get(&text), &any, &all);
        tl_text_free(&text);
        if (all.count == 0)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "--donors: %s holds no sound record (tilth db export writes them)",
                           o->donors);
    }
    return TL_OK;
}

/* Classes of whose donors one has beaten its default schedule. */
static tl_map *find_won(tl_arena *arena, const tl_donors *donors)
{
    tl_map *won = tl_map_create(arena);
    for (int i = 0; i < donors->count; i++)
        if (tl_donor_has_won(donors->donors[i].record))
            tl_map_put(won, donors->donors[i].workload->class_key, won);
    return won;
}

/* Adds what comes with tilth for classes in which the others have won nothing. */
static tl_status add_starters(tl_arena *arena, const tl_donor_filter *filter, tl_donor_report *out,
                              tl_diag *diag)
{
    tl_text lines = { 0 };
    tl_donors starters = { 0 };
    tl_map *won = find_won(arena, &out->donors);
    tl_status status = tl_starter_lines(&lines, diag);
    if (status == TL_OK)
        tl_donors_of_lines(arena, tl_text_get(&lines), filter, &starters);
    tl_text_free(&lines);
    tl_donor *all = TL_NEW_ARRAY(arena, tl_donor, out->donors.count + starters.count);
    int count = 0;
    for (; count < out->donors.count; count++)
        all[count] = out->donors.donors[count];
    for (int i = 0; i < starters.count; i++)
        if (!tl_map_has(won, starters.donors[i].workload->class_key)) {
            all[count] = starters.donors[i];
            all[count++].from_elsewhere = true;
        }
    out->asked_starter = true;
    out->starters = count - out->donors.count;
    out->donors = (tl_donors){ count, all };
    return status;
}

static tl_status find_shares(tl_arena *arena, const tl_tune_list *list, const tl_target *target,
                             int threads, tl_space_kind space, tl_class_share **out, int *count,
                             tl_diag *diag)
{
    tl_weighted_task *tasks = TL_NEW_ARRAY(arena, tl_weighted_task, list->count);
    for (int i = 0; i < list->count; i++)
        tasks[i] = (tl_weighted_task){ list->tasks[i].measure, list->tasks[i].workload->class_key,
                                       list->tasks[i].untuned, list->tasks[i].weight };
    return tl_transfer_shares(arena, tasks, list->count, target, threads, space, out, count, diag);
}

/* The run of the tuner that promises most. What is known of the kernels themselves is no promise. */
static tl_status choose_source(tl_arena *arena, const tl_donor_settings *o, tl_records *store,
                               const tl_tune_list *list, const tl_target *target, int threads,
                               const tl_class_share *shares, int share_count,
                               tl_donor_filter *filter, tl_transfer_source *out, tl_diag *diag)
{
    char own_target[160];
    int count;
    tl_donors donors = { 0 };
    tl_transfer_source *sources;
    tl_donor_filter others = *filter, own;
    tl_target_fingerprint(target, threads, own_target);
    list_keys(arena, list, true, &own);
    others.excluded = own.excluded;
    others.excluded_count = own.excluded_count;
    others.excluded_target = o->others_only ? NULL : own_target;
    TL_TRY(read_donors(arena, o, store, &others, &donors, diag));
    TL_TRY(tl_transfer_sources(o->donors == NULL ? store : NULL, arena, &donors, shares,
                               share_count, &sources, &count, diag));
    if (count > 0) {
        *out = sources[0];
        filter->session = sources[0].session;
    }
    return TL_OK;
}

static bool are_kin(const tl_map *kin, const tl_workload_info *a, const tl_workload_info *b)
{
    const char *x = kin != NULL ? tl_map_find(kin, a->workload) : NULL,
               *y = kin != NULL ? tl_map_find(kin, b->workload) : NULL;
    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

/* What is recorded of the kernel itself on this target is known already. */
static bool is_of_use(const tl_donor_report *report, const tl_donor *d,
                      const tl_workload_info *kernel)
{
    return (strcmp(d->workload->class_key, kernel->class_key) == 0 ||
            are_kin(report->kin, d->workload, kernel)) &&
           (d->from_elsewhere || strcmp(d->workload->workload, kernel->workload) != 0 ||
            strcmp(d->record->target, report->own_target) != 0);
}

bool tl_donors_cover(const tl_donor_report *report, const tl_workload_info *kernel)
{
    for (int i = 0; i < report->donors.count; i++)
        if (is_of_use(report, &report->donors.donors[i], kernel))
            return true;
    return false;
}

static void cover(tl_arena *arena, const tl_tune_list *list, const tl_class_share *shares,
                  int share_count, tl_donor_report *out)
{
    tl_map *classes = tl_map_create(arena), *workloads = tl_map_create(arena);
    for (int i = 0; i < out->donors.count; i++) {
        const tl_donor *d = &out->donors.donors[i];
        bool helps = false;
        for (int k = 0; k < list->count && !helps; k++)
            helps = is_of_use(out, d, list->tasks[k].workload);
        if (!helps)
            continue;
        tl_map_put(classes, d->workload->class_key, out);
        out->schedules++;
        out->workloads += !tl_map_has(workloads, d->workload->workload);
        tl_map_put(workloads, d->workload->workload, out);
    }
    for (int i = 0; i < list->count; i++) {
        const tl_workload_info *own = list->tasks[i].workload;
        if (tl_map_has(classes, own->class_key))
            out->covered++;
        else
            out->covered_by_kin += tl_donors_cover(out, own);
    }
    for (int i = 0; i < share_count; i++)
        out->covered_share += tl_map_has(classes, shares[i].class_key) ? shares[i].share : 0;
}

tl_status tl_donors_for(tl_arena *arena, const tl_donor_settings *o,
                        const tl_session_options *common, const tl_tune_list *list,
                        tl_records *store, const tl_target *target, int threads,
                        tl_numerics numerics, tl_space_kind space, tl_donor_report *out,
                        tl_diag *diag)
{
    tl_donor_filter filter = { .numerics = tl_numerics_text(numerics) };
    tl_class_share *shares;
    int share_count;
    *out = (tl_donor_report){ 0 };
    tl_target_fingerprint(target, threads, out->own_target);
    out->transfer =
        (tl_transfer){ .only_trace = o->only_trace, .kin = o->kin, .per_task = (int)o->per_kernel };
    TL_TRY(find_ranking(o->rank, o->seed, &out->ranking, diag));
    out->transfer.model = out->ranking;
    list_keys(arena, list, o->others_only, &filter);
    if (o->kin)
        out->kin = list_kin(arena, list, &filter);
    bool is_auto = strcmp(o->from, "auto") == 0, is_pool = strcmp(o->from, "pool") == 0;
    bool is_starter = strcmp(o->from, "starter") == 0;
    if (!is_auto && !is_pool && !is_starter) {
        tl_status status = list_workloads_of(arena, o->from, common, numerics, &filter.only,
                                             &filter.only_count, diag);
        if (status != TL_OK) {
            tl_context(diag, "--from %s: neither pool, auto, starter nor a model that can be read",
                       o->from);
            return status;
        }
    }
    TL_TRY(find_shares(arena, list, target, threads, space, &shares, &share_count, diag));
    if (is_auto)
        TL_TRY(choose_source(arena, o, store, list, target, threads, shares, share_count, &filter,
                             &out->source, diag));
    if (!is_starter && (!is_auto || out->source.session != NULL))
        TL_TRY(read_donors(arena, o, store, &filter, &out->donors, diag));
    /* what comes with tilth are points of the full space */
    if (is_starter || (is_pool && o->or_starter && o->donors == NULL && space == TL_SPACE_FULL))
        TL_TRY(add_starters(arena, &filter, out, diag));
    for (int i = 0; o->kin && i < out->donors.count; i++)
        note_kin(arena, out->kin, out->donors.donors[i].workload);
    cover(arena, list, shares, share_count, out);
    out->transfer.donors = &out->donors;
    return TL_OK;
}
