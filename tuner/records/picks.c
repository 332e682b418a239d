/* tuner/records/picks.c: which recorded schedule each kernel of a model gets. */
#include "tuner/records/picks.h"
#include <assert.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/map.h"

/* What every question to the store has in common; `target` holds the text that it points to. */
static tl_query query_for(const tl_picks_query *query, char target[160])
{
    tl_target_fingerprint(query->target, query->threads, target);
    return (tl_query){ .target = target,
                       .numerics = tl_numerics_text(query->numerics),
                       .threads = query->threads,
                       .revision = TL_CODEGEN_REVISION };
}

static void take(tl_arena *arena, const tl_record *record, double score_ns, tl_pick *out)
{
    *out = (tl_pick){ .workload = tl_arena_strdup(arena, record->workload),
                      .uid = tl_arena_strdup(arena, record->uid),
                      .lowering = record->lowering,
                      .trace = record->trace,
                      .score_ns = score_ns };
}

/* The record of that uid as a pick, when it is of that workload and fits the query. */
static bool find_pick(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                      const char *workload, const char *uid, tl_pick *out)
{
    char target[160];
    tl_record record;
    tl_query q = query_for(query, target);
    q.workload = workload;
    q.uid = uid;
    /* it has no time when a transfer checked it only */
    if (strlen(uid) != 32 || !tl_records_first(store, arena, &q, &record) ||
        record.status != TL_RECORD_OK || record.hopeless)
        return false;
    take(arena, &record, record.score_ns, out);
    return true;
}

/* "WORKLOAD UID" a line; what reads otherwise is passed over. */
static void read_picks(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                       const char *text, tl_picks *out)
{
    int lines = 1;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    tl_pick *picks = TL_NEW_ARRAY(arena, tl_pick, lines);
    while (*text) {
        size_t size = strcspn(text, "\n");
        if (size == 65 && text[32] == ' ') {
            const char *workload = tl_arena_strndup(arena, text, 32);
            const char *uid = tl_arena_strndup(arena, text + 33, 32);
            out->count += find_pick(store, arena, query, workload, uid, &picks[out->count]);
        }
        text += size + (text[size] == '\n');
    }
    out->picks = picks;
}

bool tl_picks_of_choice(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                        tl_picks *out)
{
    char target[160];
    tl_choice choice;
    tl_target_fingerprint(query->target, query->threads, target);
    *out = (tl_picks){ .form = "", .uid = "" };
    if (!tl_records_find_choice(store, arena,
                                &(tl_choice_query){ .model = query->model,
                                                    .target = target,
                                                    .numerics = tl_numerics_text(query->numerics),
                                                    .threads = query->threads,
                                                    .revision = TL_CODEGEN_REVISION },
                                &choice))
        return false;
    out->uid = tl_arena_strdup(arena, choice.uid);
    if (choice.kept) {
        out->form = choice.form;
        read_picks(store, arena, query, choice.picks, out);
    }
    return true;
}

/* The nearer to a model's, the better. */
static const tl_cold order[] = { TL_COLD_CONSTANTS, TL_COLD_NOTHING, TL_COLD_ALL };

void tl_picks_best(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                   const char *const *workloads, int count, tl_picks *out)
{
    assert(count >= 0 && (count == 0 || workloads != NULL));
    char target[160];
    tl_query q = query_for(query, target);
    q.only_cold = true;
    tl_pick *picks = TL_NEW_ARRAY(arena, tl_pick, count);
    *out = (tl_picks){ .picks = picks, .form = "", .uid = "" };
    for (int i = 0; i < count; i++) {
        tl_record record;
        double score_ns = 0;
        q.workload = workloads[i];
        bool found = false;
        for (size_t c = 0; c < sizeof order / sizeof *order && !found; c++) {
            q.cold = order[c];
            found = tl_records_best(store, arena, &q, &record, &score_ns);
        }
        if (found)
            take(arena, &record, score_ns, &picks[out->count++]);
    }
}

const tl_pick *tl_picks_find(const tl_picks *picks, const char *workload)
{
    for (int i = 0; i < picks->count; i++)
        if (strcmp(picks->picks[i].workload, workload) == 0)
            return &picks->picks[i];
    return NULL;
}

void tl_picks_print(const tl_picks *picks, tl_text *out)
{
    for (int i = 0; i < picks->count; i++)
        tl_text_format(out, "%s %s\n", picks->picks[i].workload, picks->picks[i].uid);
}

void tl_picks_stamp(const tl_picks *picks, char out[33])
{
    tl_text text = { 0 };
    tl_digest digest;
    out[0] = '\0';
    if (picks->count == 0 && picks->form[0] == '\0')
        return;
    tl_text_format(&text, "%s\n\n", picks->form);
    tl_picks_print(picks, &text);
    tl_digest_start(&digest);
    tl_digest_add(&digest, tl_text_get(&text), text.size);
    tl_digest_text(&digest, out);
    tl_text_free(&text);
}
