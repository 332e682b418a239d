/* tuner/run/tune_known.c: what earlier runs know of a task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/array.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/records/record_private.h"
#include "tuner/records/session_scale.h"
#include "tuner/run/tune_private.h"

typedef struct {
    tl_arena *arena;
    tl_record *records;
    int count, capacity;
} list;

static void append(list *l, const tl_record *record)
{
    TL_ROOM(l->arena, l->records, l->count, l->capacity);
    tl_record_copy(l->arena, record, &l->records[l->count++]);
}

/* Copies all that a query finds into memory that is no arena's: an arena must not jump out of SQLite. */
typedef struct {
    tl_text lines;
    int64_t count;
} lines;

static bool add_line(void *user, const tl_record *record)
{
    lines *l = user;
    tl_record_print(record, &l->lines);
    tl_text_add(&l->lines, "\n");
    return !l->lines.failed;
}

static void parse_lines(char *text, const char *kind, list *l)
{
    for (char *p = text, *end; p != NULL && *p; p = end) {
        tl_record record;
        end = strchr(p, '\n');
        if (end != NULL)
            *end++ = '\0';
        if (strstr(p, kind) != NULL && tl_record_parse(l->arena, p, &record, NULL) == TL_OK)
            append(l, &record);
    }
}

void tl_tune_known(tl_records *store, const tl_tune_task *tasks, int count, tl_arena *arena,
                   const tl_record **out, int *out_count)
{
    list l = { .arena = arena };
    tl_map *seen = tl_map_create(arena);
    for (int i = 0; i < count && store != NULL; i++) {
        lines found = { 0 };
        tl_query query = { .workload = tasks[i].measure->workload, .any_revision = true };
        if (tl_map_has(seen, query.workload))
            continue;
        tl_map_put(seen, query.workload, store);
        if (tl_records_visit(store, &query, add_line, &found, NULL) == TL_OK &&
            !found.lines.failed && found.lines.size > 0)
            parse_lines(found.lines.data, "\"record\":\"trial\"", &l);
        tl_text_free(&found.lines);
    }
    *out = l.records;
    *out_count = l.count;
}

tl_status tl_tune_known_of_recording(const char *path, tl_arena *arena, const tl_record **out,
                                     int *out_count, tl_diag *diag)
{
    list l = { .arena = arena };
    tl_text text = { 0 };
    TL_TRY(tl_file_read(path, &text, diag));
    if (text.size > 0)
        parse_lines(text.data, "{\"record\":\"trial\"", &l);
    tl_text_free(&text);
    *out = l.records;
    *out_count = l.count;
    return TL_OK;
}

/* ---- sorting ---- */

static bool is_comparable(const tl_tune_options *o, const tl_record *r, const char *fingerprint)
{
    return r->revision == TL_CODEGEN_REVISION && strcmp(r->target, fingerprint) == 0 &&
           strcmp(r->numerics, o->numerics) == 0;
}

/* Of the workload, measured as the run measures: what else differs may make it stale. */
static bool is_of(const tl_tune_options *o, const tl_record *r, const char *workload)
{
    return strcmp(r->workload, workload) == 0 && r->threads == o->threads && r->cold == o->cold;
}

static bool is_finished(const tl_record *r)
{
    return r->status == TL_RECORD_OK && !r->hopeless && r->score_ns > 0;
}

double tl_tune_best_known(const tl_tune_options *o, const char *workload)
{
    char fingerprint[160];
    double best = 0;
    tl_session_starts starts = { 0 };
    const tl_record **found = malloc(((size_t)o->known_count + 1) * sizeof *found);
    int count = 0;
    tl_target_fingerprint(o->target, o->threads, fingerprint);
    for (int i = 0; i < o->known_count && found != NULL; i++) {
        const tl_record *r = &o->known[i];
        if (is_of(o, r, workload) && is_comparable(o, r, fingerprint) && is_finished(r) &&
            tl_session_starts_add(&starts, r))
            found[count++] = r;
    }
    tl_session_starts_compare(&starts);
    for (int i = 0; i < count; i++) {
        double score_ns = tl_session_starts_score(&starts, found[i]);
        best = best == 0 || score_ns < best ? score_ns : best;
    }
    tl_session_starts_free(&starts);
    free(found);
    return best;
}

/* Keeps the fastest, each program once. */
static void keep_stale(tl_tuning_slot *slot, const tl_record *r)
{
    const int most = (int)(sizeof slot->stale / sizeof *slot->stale);
    int at = slot->stale_count;
    for (int i = 0; i < slot->stale_count; i++)
        if (strcmp(slot->stale[i].trace, r->trace) == 0) {
            if (r->score_ns < slot->stale[i].score_ns)
                slot->stale[i].score_ns = r->score_ns;
            return;
        }
    while (at > 0 && r->score_ns < slot->stale[at - 1].score_ns)
        at--;
    if (at == most)
        return;
    int moved = slot->stale_count < most ? slot->stale_count - at : most - 1 - at;
    memmove(slot->stale + at + 1, slot->stale + at, (size_t)moved * sizeof *slot->stale);
    slot->stale[at] = *r;
    slot->stale_count += slot->stale_count < most;
}

/* What the default schedule took in the record's session; 0: that is not known. */
static double untuned_of(const tl_tuning_slot *slot, const tl_record *record)
{
    for (int i = 0; i < slot->known_count; i++) {
        const tl_record *r = &slot->known[i];
        if (is_finished(r) && strcmp(r->program, slot->untuned) == 0 &&
            strcmp(r->session, record->session) == 0)
            return r->score_ns;
    }
    return 0;
}

void tl_tuning_scale_known(tl_tuning_slot *slot, double untuned_ns)
{
    tl_map *scales = tl_map_create(slot->arena);
    for (int i = 0; i < slot->known_count; i++)
        if (!tl_map_has(scales, slot->known[i].session)) {
            double before = untuned_of(slot, &slot->known[i]), *scale = TL_NEW(slot->arena, double);
            *scale = before > 0 ? untuned_ns / before : 1;
            tl_map_put(scales, slot->known[i].session, scale);
        }
    for (int i = 0; i < slot->known_count; i++)
        slot->known[i].score_ns *= *(double *)tl_map_find(scales, slot->known[i].session);
}

const tl_record *tl_tuning_best_known(const tl_tuning_slot *slot)
{
    const tl_record *best = NULL;
    for (int i = 0; i < slot->known_count; i++) {
        const tl_record *r = &slot->known[i];
        if (is_finished(r) && (best == NULL || r->score_ns < best->score_ns))
            best = r;
    }
    return best;
}

bool tl_tuning_is_known(const tl_tuning_slot *slot, const char *program)
{
    for (int i = 0; i < slot->known_count; i++)
        if (strcmp(slot->known[i].program, program) == 0)
            return true;
    return false;
}

void tl_tuning_sort_known(const tl_tuning *t, tl_tuning_slot *slot)
{
    const tl_tune_options *o = &t->options;
    list l = { .arena = slot->arena };
    char fingerprint[160];
    double latest = 0;
    tl_target_fingerprint(o->target, o->threads, fingerprint);
    for (int i = 0; i < o->known_count; i++) {
        const tl_record *r = &o->known[i];
        if (!is_of(o, r, slot->spec->measure->workload))
            continue;
        if (!is_comparable(o, r, fingerprint)) {
            if (is_finished(r) && *r->trace)
                keep_stale(slot, r);
        } else if (r->status != TL_RECORD_WORKER) { /* that was no fault of the candidate */
            append(&l, r);
            if (is_finished(r) && strcmp(r->program, slot->untuned) == 0)
                latest = r->score_ns;
        }
    }
    slot->known = l.records;
    slot->known_count = l.count;
    slot->shown.known = l.count;
    if (latest > 0)
        tl_tuning_scale_known(slot, latest);
}
