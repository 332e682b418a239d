/* tuner/records/store_best.c: which record is the best, when they are of several sessions (tuner/records/session_scale.h). */
#include <string.h>
#include "tuner/records/session_scale.h"
#include "tuner/records/store_private.h"

typedef struct {
    tl_session_starts starts;
    char uid[33]; /* the best so far; "": none */
    double score_ns;
} search;

static bool add_start(void *user, const tl_record *record)
{
    search *s = user;
    return tl_session_starts_add(&s->starts, record);
}

static bool take_best(void *user, const tl_record *record)
{
    search *s = user;
    double score_ns = tl_session_starts_score(&s->starts, record);
    if (s->uid[0] == '\0' || score_ns < s->score_ns) {
        s->score_ns = score_ns;
        memcpy(s->uid, record->uid, sizeof s->uid);
    }
    return true;
}

bool tl_records_best(tl_records *store, tl_arena *arena, const tl_query *query, tl_record *out,
                     double *score_ns)
{
    search s = { 0 };
    tl_query best = *query;
    best.only_ok = true;
    best.only_failed = false;
    best.order = TL_ORDER_TIME;
    best.each = TL_EACH_BEST;
    best.limit = 0;
    tl_query first = best;
    first.each = TL_EACH_FIRST;
    first.lowering = first.uid = NULL; /* a session began with whatever it began with */
    tl_records_visit_readable(store, &first, add_start, &s);
    tl_session_starts_compare(&s.starts);
    tl_records_visit_readable(store, &best, take_best, &s);
    tl_session_starts_free(&s.starts);
    if (score_ns != NULL)
        *score_ns = s.score_ns;
    return s.uid[0] != '\0' &&
           tl_records_first(store, arena, &(tl_query){ .uid = s.uid, .workload = query->workload },
                            out);
}
