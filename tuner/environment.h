/* tuner/environment.h: where and with what something was measured, for records and reports. */
#ifndef TL_TUNER_ENVIRONMENT_H
#define TL_TUNER_ENVIRONMENT_H
#include "tuner/measure.h"

/* One line of JSON: CPU, cores, caches, memory, kernel of the system, LLVM, and (when `stats` is not NULL) the best of
 * the witnesses so far. */
void tl_environment_text(const tl_measure_stats *stats, tl_text *out);
/* A name for this run of the tuner: 32 hex digits that no other run has. */
void tl_session_name(char out[33]);

#endif
