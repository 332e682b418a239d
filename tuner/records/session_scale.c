/* tuner/records/session_scale.c: starts sorted by program tell the newest of each, sorted by session they are found. */
#include "tuner/records/session_scale.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"

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

bool tl_session_starts_add(tl_session_starts *s, const tl_record *record)
{
    if (!TL_HEAP_ROOM(s->starts, s->count, s->capacity))
        return false;
    tl_session_start *added = &s->starts[s->count++];
    *added = (tl_session_start){ .score_ns = record->score_ns,
                                 .sequence = record->sequence,
                                 .created_us = record->created_us };
    digest_of(record, record->session, added->session);
    digest_of(record, record->program, added->program);
    return true;
}

static int by_session(const void *a, const void *b)
{
    return strcmp(((const tl_session_start *)a)->session, ((const tl_session_start *)b)->session);
}

static int by_session_and_sequence(const void *a, const void *b)
{
    const tl_session_start *x = a, *y = b;
    int order = by_session(a, b);
    return order ? order : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static int by_program(const void *a, const void *b)
{
    const tl_session_start *x = a, *y = b;
    int order = strcmp(x->program, y->program);
    return order ? order : (x->created_us > y->created_us) - (x->created_us < y->created_us);
}

static void keep_firsts(tl_session_starts *s)
{
    int kept = 0;
    qsort(s->starts, (size_t)s->count, sizeof *s->starts, by_session_and_sequence);
    for (int i = 0; i < s->count; i++)
        if (kept == 0 || by_session(&s->starts[kept - 1], &s->starts[i]) != 0)
            s->starts[kept++] = s->starts[i];
    s->count = kept;
    assert(kept > 0);
}

void tl_session_starts_compare(tl_session_starts *s)
{
    if (s->count == 0)
        return;
    keep_firsts(s);
    qsort(s->starts, (size_t)s->count, sizeof *s->starts, by_program);
    for (int i = s->count; i-- > 0;) {
        bool is_newest =
            i + 1 == s->count || strcmp(s->starts[i].program, s->starts[i + 1].program) != 0;
        s->starts[i].newest_ns = is_newest ? s->starts[i].score_ns : s->starts[i + 1].newest_ns;
    }
    qsort(s->starts, (size_t)s->count, sizeof *s->starts, by_session);
}

double tl_session_starts_score(const tl_session_starts *s, const tl_record *record)
{
    tl_session_start wanted;
    digest_of(record, record->session, wanted.session);
    const tl_session_start *began =
        s->count > 0 ? bsearch(&wanted, s->starts, (size_t)s->count, sizeof wanted, by_session)
                     : NULL;
    if (began == NULL || began->score_ns == began->newest_ns)
        return record->score_ns;
    return record->score_ns / began->score_ns * began->newest_ns;
}

void tl_session_starts_free(tl_session_starts *s)
{
    free(s->starts);
    *s = (tl_session_starts){ 0 };
}
