/* tuner/records/session_scale.h: scores of several sessions, brought to one time.
 *
 * Scores of one session are comparable: each is a ratio to what the session began with (tuner/measure/contest.h), times what that
 * took. Those of two sessions are not: in company everything takes up to twice as long, and the default schedule of a calm
 * hour would be better than whatever was found in a disturbed one. So the scores of all sessions that began with the same
 * program are brought to the time which that program took in the newest of them. */
#ifndef TL_TUNER_RECORDS_SESSION_SCALE_H
#define TL_TUNER_RECORDS_SESSION_SCALE_H
#include <stdbool.h>
#include <stddef.h>
#include "tuner/records/record.h"

/* What a session began with. */
typedef struct {
    char session[33]; /* digest of the session and of what its scores are for */
    char program[33]; /* digest of the latter and of the program */
    double score_ns, newest_ns;
    int64_t sequence, created_us;
} tl_session_start;

/* All zero: empty. The memory is malloc's, for a visitor of records must not jump out of SQLite, as an arena would. */
typedef struct {
    tl_session_start *starts;
    int count, capacity;
} tl_session_starts;

/* A right record: of a session's the one with the least sequence counts. False: no memory. */
bool tl_session_starts_add(tl_session_starts *s, const tl_record *record);
/* After the last was added, before scores are asked for. */
void tl_session_starts_compare(tl_session_starts *s);
/* The record's score in nanoseconds of the newest session that began as its own did; of a session without a start, its own. */
double tl_session_starts_score(const tl_session_starts *s, const tl_record *record);
void tl_session_starts_free(tl_session_starts *s);

#endif
