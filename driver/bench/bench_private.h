/* driver/bench/bench_private.h: records of measurements, for the files that compare them. */
#ifndef TL_DRIVER_BENCH_BENCH_PRIVATE_H
#define TL_DRIVER_BENCH_BENCH_PRIVATE_H
#include <jansson.h>
#include "driver/bench/bench.h"

/* The last `limit` records of this subject (and CPU, when not NULL) in a text of JSON lines, oldest first; lines that are
 * something else are passed over. The caller drops them. */
int tl_records_find(const char *text, size_t size, const char *cpu, const tl_subject *subject,
                    const tl_runner *runner, json_t **last, int limit);
tl_change tl_record_compare(const json_t *record, const tl_timing *timing, double threshold);

#endif
