/* tuner/records/picks.h: which recorded schedule each kernel of a model gets.
 *
 * When a choice was made for the whole model (tuner/records/record.h, tl_choice) it says so, kernel by kernel; otherwise each
 * workload takes the best record of its own. Either counts only for the same target fingerprint, numerics, threads and
 * revision of the code generator. What cannot be read, or no longer is there, is a miss: that kernel keeps its default
 * schedule. */
#ifndef TL_TUNER_RECORDS_PICKS_H
#define TL_TUNER_RECORDS_PICKS_H
#include "ir/program/numerics.h"
#include "ir/program/target.h"
#include "tuner/records/store.h"

typedef struct {
    const char *workload; /* key: of the kernel's direct lowering */
    const char *uid;      /* of the record */
    const char *lowering, *trace;
    double score_ns; /* as tl_records_best has it */
} tl_pick;

/* Texts live in the arena that they were found with. */
typedef struct {
    int count;
    const tl_pick *picks;
    const char *form; /* of the choice; "" without one */
    const char *uid;  /* of the choice; "" without one */
} tl_picks;

/* Whose records count. */
typedef struct {
    const char *model; /* tl_choice.model */
    const tl_target *target;
    tl_numerics numerics;
    int threads; /* that the model runs on */
} tl_picks_query;

/* The choice for the whole model. False: there is none; then ask tl_picks_best. A choice that keeps the default schedules
 * is one without picks. */
bool tl_picks_of_choice(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                        tl_picks *out);
/* The best record of each of `count` workloads that has any. Records that were timed as in a model (cold constants)
 * count before those of warm caches, and these before those of cold ones. */
void tl_picks_best(tl_records *store, tl_arena *arena, const tl_picks_query *query,
                   const char *const *workloads, int count, tl_picks *out);
const tl_pick *tl_picks_find(const tl_picks *picks, const char *workload); /* NULL: none */
/* As tl_choice.picks has it. */
void tl_picks_print(const tl_picks *picks, tl_text *out);
/* 32 hex digits that differ when what is compiled differs; "" when nothing is picked and the form is the default. */
void tl_picks_stamp(const tl_picks *picks, char out[33]);

#endif
