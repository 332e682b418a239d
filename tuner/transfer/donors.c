/* tuner/transfer/donors.c: which records of a store are schedules that other kernels may take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "tuner/transfer/transfer.h"

#define WORKLOAD_LINE "{\"record\":\"workload\""
#define RECORD_LINE   "{\"record\":\"trial\""
#define WON_BY        0.98 /* of the default schedule's time: less is no reason to build another one */
#define LONGEST_NS    3.6e12 /* an hour: no kernel takes that long, whatever a record says */

typedef struct {
    const tl_donor_filter *filter;
    tl_text lines; /* of what was found: an arena must not jump out of SQLite */
} finding;

static bool is_listed(const char *const *list, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i], word) == 0)
            return true;
    return false;
}

static bool is_of_class(const tl_donor_filter *want, const tl_workload_info *info)
{
    return want->classes == NULL || is_listed(want->classes, want->class_count, info->class_key);
}

/* Its program is read in an arena of its own: a store may know thousands. */
static bool is_kin(const tl_donor_filter *want, const tl_workload_info *info)
{
    tl_arena *scratch = want->kin != NULL ? tl_arena_create(0) : NULL;
    volatile bool found = false;
    const char *kin;
    if (scratch == NULL)
        return false;
    if (!TL_ARENA_GUARD(scratch))
        found = tl_kin_of_text(scratch, info->program, &kin) &&
                is_listed(want->kin, want->kin_count, kin);
    tl_arena_destroy(scratch);
    return found;
}

/* All but the kin, which costs more to see: whoever is of no wanted class may still be of it. */
static bool may_be_wanted(const tl_donor_filter *want, const tl_workload_info *info)
{
    return (want->kin != NULL || is_of_class(want, info)) &&
           (want->excluded == NULL || want->excluded_target != NULL ||
            !is_listed(want->excluded, want->excluded_count, info->workload)) &&
           (want->only == NULL || is_listed(want->only, want->only_count, info->workload));
}

static bool is_wanted(const tl_donor_filter *want, const tl_workload_info *info)
{
    return may_be_wanted(want, info) && (is_of_class(want, info) || is_kin(want, info));
}

/* The task's own, on the target that it is for: that is known, not transferred. */
static bool is_known(const tl_donor_filter *want, const tl_record *r)
{
    return want->excluded != NULL && want->excluded_target != NULL &&
           strcmp(want->excluded_target, r->target) == 0 &&
           is_listed(want->excluded, want->excluded_count, r->workload);
}

bool tl_donor_has_won(const tl_record *r)
{
    return r->ratio > 0 && r->ratio_error > 0 && r->ratio * exp(2 * r->ratio_error) < WON_BY;
}

static bool is_sound(const tl_donor_filter *want, const tl_record *r)
{
    return !is_known(want, r) && r->status == TL_RECORD_OK && !r->hopeless && *r->trace &&
           isfinite(r->score_ns) && r->score_ns > 0 && r->score_ns <= LONGEST_NS &&
           (want->numerics == NULL || strcmp(want->numerics, r->numerics) == 0) &&
           (want->session == NULL || strcmp(want->session, r->session) == 0) &&
           (!want->only_winners || tl_donor_has_won(r));
}

static bool add_workload(void *user, const tl_workload_info *info)
{
    finding *f = user;
    if (!may_be_wanted(f->filter, info))
        return true;
    tl_workload_print(info, &f->lines);
    tl_text_add(&f->lines, "\n");
    return !f->lines.failed;
}

static bool add_record(void *user, const tl_record *record)
{
    finding *f = user;
    if (!is_sound(f->filter, record))
        return true;
    tl_record_print(record, &f->lines);
    tl_text_add(&f->lines, "\n");
    return !f->lines.failed;
}

/* ---- lines ---- */

typedef struct {
    tl_arena *arena;
    const tl_donor_filter *filter;
    tl_donor *donors;
    int count, capacity;
    tl_map *workloads; /* of those that are wanted */
    tl_map *places;    /* "workload target lowering" -> place */
} list;

typedef struct {
    int at;
} place;

static void take_workload(list *l, const char *line)
{
    tl_workload_info *info = TL_NEW(l->arena, tl_workload_info);
    if (tl_workload_parse(l->arena, line, info, NULL) == TL_OK && is_wanted(l->filter, info))
        tl_map_put(l->workloads, info->workload, info);
}

/* The best of a workload, target and lowering is a donor. */
static void take_record(list *l, const char *line)
{
    tl_record *record = TL_NEW(l->arena, tl_record);
    if (tl_record_parse(l->arena, line, record, NULL) != TL_OK || !is_sound(l->filter, record))
        return;
    const tl_workload_info *info = tl_map_find(l->workloads, record->workload);
    if (info == NULL)
        return;
    const char *key =
        tl_arena_format(l->arena, "%s %s %s", record->workload, record->target, record->lowering);
    place *p = tl_map_find(l->places, key);
    if (p == NULL) {
        p = TL_NEW(l->arena, place);
        p->at = l->count;
        tl_map_put(l->places, key, p);
        TL_ROOM(l->arena, l->donors, l->count, l->capacity);
        l->donors[l->count++] = (tl_donor){ .record = record, .workload = info };
    } else if (record->score_ns < l->donors[p->at].record->score_ns) {
        l->donors[p->at].record = record;
    }
}

static int by_class(const void *a, const void *b)
{
    const tl_donor *x = a, *y = b;
    int order = strcmp(x->workload->class_key, y->workload->class_key);
    if (order == 0)
        order = strcmp(x->workload->workload, y->workload->workload);
    if (order == 0 && x->record->score_ns != y->record->score_ns)
        order = x->record->score_ns < y->record->score_ns ? -1 : 1;
    return order != 0 ? order : strcmp(x->record->uid, y->record->uid);
}

void tl_donors_of_lines(tl_arena *arena, const char *lines, const tl_donor_filter *filter,
                        tl_donors *out)
{
    list l = { .arena = arena,
               .filter = filter,
               .workloads = tl_map_create(arena),
               .places = tl_map_create(arena) };
    for (int pass = 0; pass < 2; pass++) /* a workload may stand behind its records */
        for (const char *p = lines; *p;) {
            size_t size = strcspn(p, "\n");
            bool is_workload = strncmp(p, WORKLOAD_LINE, sizeof WORKLOAD_LINE - 1) == 0;
            bool is_record = strncmp(p, RECORD_LINE, sizeof RECORD_LINE - 1) == 0;
            if (pass == 0 && is_workload)
                take_workload(&l, tl_arena_strndup(arena, p, size));
            if (pass == 1 && is_record)
                take_record(&l, tl_arena_strndup(arena, p, size));
            p += size + (p[size] == '\n');
        }
    if (l.count > 0)
        qsort(l.donors, (size_t)l.count, sizeof *l.donors, by_class);
    *out = (tl_donors){ l.count, l.donors };
}

/* ---- a store ---- */

static tl_status visit_records(tl_records *store, const tl_donor_filter *filter,
                               const char *workload, finding *found, tl_diag *diag)
{
    const tl_query query = { .workload = workload,
                             .numerics = filter->numerics,
                             .session = filter->session,
                             .only_ok = true,
                             .any_revision = true };
    TL_TRY(tl_records_visit(store, &query, add_record, found, diag));
    return found->lines.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

tl_status tl_donors_find(tl_records *store, tl_arena *arena, const tl_donor_filter *filter,
                         tl_donors *out, tl_diag *diag)
{
    finding found = { .filter = filter };
    *out = (tl_donors){ 0 };
    tl_status status = tl_records_visit_workloads(store, add_workload, &found, diag);
    if (status == TL_OK && found.lines.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    const char *workloads =
        status == TL_OK ? tl_arena_strdup(arena, tl_text_get(&found.lines)) : "";
    while (status == TL_OK && *workloads) {
        tl_workload_info info;
        size_t size = strcspn(workloads, "\n");
        if (tl_workload_parse(arena, tl_arena_strndup(arena, workloads, size), &info, NULL) ==
                TL_OK &&
            is_wanted(filter, &info))
            status = visit_records(store, filter, info.workload, &found, diag);
        workloads += size + (workloads[size] == '\n');
    }
    if (status == TL_OK)
        tl_donors_of_lines(arena, tl_text_get(&found.lines), filter, out);
    tl_text_free(&found.lines);
    return status;
}

void tl_donors_print(const tl_donors *donors, tl_text *out)
{
    const char *last = "";
    for (int i = 0; i < donors->count; i++) {
        if (strcmp(last, donors->donors[i].workload->workload) != 0) {
            last = donors->donors[i].workload->workload;
            tl_workload_print(donors->donors[i].workload, out);
            tl_text_add(out, "\n");
        }
        tl_record_print(donors->donors[i].record, out);
        tl_text_add(out, "\n");
    }
}
