/* tuner/run/environment.h: where and with what something was measured, for records and reports. */
#ifndef TL_TUNER_RUN_ENVIRONMENT_H
#define TL_TUNER_RUN_ENVIRONMENT_H
#include "tuner/measure/measure.h"
#include "tuner/search/search.h"

/* One line of JSON: CPU, cores, caches, memory, kernel of the system, LLVM, and (when `stats` is not NULL) the best of
 * the witnesses so far. */
void tl_environment_text(const tl_measure_stats *stats, tl_text *out);
/* A name for this run of the tuner: its policy's name (of 30 letters at most), a dash and 32 hex digits that no other run
 * has. */
enum { TL_SESSION_NAME = 64 };
void tl_session_name(const char *policy, char out[TL_SESSION_NAME]);
/* The policy that a session's name begins with, "auto-..."; NULL: it names none. */
const tl_policy_type *tl_session_policy(const char *session);

#endif
