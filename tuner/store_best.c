/* tuner/store_best.c: which record is the best, when they are of several sessions.
 *
 * Scores of one session are comparable: each is a ratio to what the session began with (tuner/contest.h), times what that
 * took. Those of two sessions are not: in company everything takes up to twice as long, and the default schedule of a calm
 * hour would be better than whatever was found in a disturbed one. So the scores of all sessions that began with the same
 * program are brought to the time which that program took in the newest of them. */
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tuner/store_private.h"

/* What a session began with. */
typedef struct {
    char session[33]; /* digest of the session and of what its scores are for */
    char program[33]; /* digest of the latter and of the program */
    double score_ns, newest_ns;
    int64_t created_us;
} start;

/* The visitors must not jump out of SQLite, as an arena would: memory is malloc's. */
typedef struct {
    start *starts;
    size_t count, capacity;
    char uid[33]; /* the best so far; "": none */
    double score_ns;
} search;

static void digest_of(const tl_record *r, const char *last, char out[33])
{
    tl_digest digest;
    const char *const texts[] = { r->workload, r->target, r->numerics, last };
    const int numbers[] = { r->threads, r->cold, r->revision };
    tl_digest_start(&digest);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        tl_digest_add(&digest, texts[i], strlen(texts[i]) + 1);
    tl_digest_add(&digest, numbers, sizeof numbers);
    tl_digest_text(&digest, out);
}

static bool add_start(void *user, const tl_record *record)
{
    search *s = user;
    if (s->count == s->capacity) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 16;
        start *more = realloc(s->starts, capacity * sizeof *more);
        if (more == NULL)
            return false;
        s->starts = more;
        s->capacity = capacity;
    }
    start *added = &s->starts[s->count++];
    *added = (start){ .score_ns = record->score_ns, .created_us = record->created_us };
    digest_of(record, record->session, added->session);
    digest_of(record, record->program, added->program);
    return true;
}

static int by_program(const void *a, const void *b)
{
    const start *x = a, *y = b;
    int order = strcmp(x->program, y->program);
    return order ? order : (x->created_us > y->created_us) - (x->created_us < y->created_us);
}

static int by_session(const void *a, const void *b)
{
    return strcmp(((const start *)a)->session, ((const start *)b)->session);
}

static void compare_starts(search *s)
{
    if (s->count == 0)
        return;
    qsort(s->starts, s->count, sizeof *s->starts, by_program);
    for (size_t i = s->count; i-- > 0;) {
        bool is_newest =
            i + 1 == s->count || strcmp(s->starts[i].program, s->starts[i + 1].program) != 0;
        s->starts[i].newest_ns = is_newest ? s->starts[i].score_ns : s->starts[i + 1].newest_ns;
    }
    qsort(s->starts, s->count, sizeof *s->starts, by_session);
}

static bool take_best(void *user, const tl_record *record)
{
    search *s = user;
    start wanted;
    double score_ns = record->score_ns;
    digest_of(record, record->session, wanted.session);
    const start *began =
        s->count > 0 ? bsearch(&wanted, s->starts, s->count, sizeof wanted, by_session) : NULL;
    if (began != NULL && began->score_ns != began->newest_ns)
        score_ns = score_ns / began->score_ns * began->newest_ns;
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
    compare_starts(&s);
    tl_records_visit_readable(store, &best, take_best, &s);
    free(s.starts);
    if (score_ns != NULL)
        *score_ns = s.score_ns;
    return s.uid[0] != '\0' &&
           tl_records_first(store, arena, &(tl_query){ .uid = s.uid, .workload = query->workload },
                            out);
}
