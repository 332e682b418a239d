/* tuner/dataset/dataset.h: records to learn from, small enough to be kept: tasks with their programs, and for each measured point
 * its answers, its ratio to the task's standard and how well that is known. Features are not in it: they are rebuilt, from
 * answers, programs and the target (tuner/DATASET.md has the format).
 *
 *     tl_dataset_add_records(set, store, query)      what the database knows
 *     tl_dataset_write(set, path)                    at most 25 bytes a record
 *     tl_dataset_read(path, arena, &set)             refused with a sentence where it is no sound one
 *     tl_dataset_build(set, series, record, space)   the scheduled program again */
#ifndef TL_TUNER_DATASET_DATASET_H
#define TL_TUNER_DATASET_DATASET_H
#include "runtime/base/map.h"
#include "tuner/records/store.h"
#include "tuner/search/space.h"

/* How a point was found. */
typedef enum {
#define SAMPLER(name, text, words) TL_SAMPLER_##name,
#include "tuner/dataset/samplers.def"
#undef SAMPLER
    TL_SAMPLER_COUNT
} tl_sampler;
extern const char *const tl_sampler_texts[TL_SAMPLER_COUNT];
tl_sampler tl_sampler_of(const char *origin); /* TL_SAMPLER_OTHER: none of the others */

typedef struct {
    const char *workload, *class_key, *family, *name;
    int64_t flops, bytes;
    int lowering_count;
    const char **lowerings, **programs;
} tl_data_task;

/* One measured point. */
typedef struct {
    tl_sampler sampler;
    tl_space_kind kind; /* of which space it is a point, and of which revision */
    int space;
    tl_record_status status; /* what is not ok has no ratio */
    tl_censored censored;
    int lowering, turns;
    int answer_count;
    const tl_wish *answers; /* all that was asked */
    /* the first six digits of its structural hash: of what it must come to again */
    uint32_t program;
    double ratio, ratio_error, alone,
        probability; /* as in a record, to the precision of the file */
} tl_data_record;

/* The records of a task that were measured alike. */
typedef struct {
    const tl_data_task *task;
    const char *target, *numerics, *machine; /* machine: a profile's text, "" none */
    int threads, cores, revision; /* cores: of the machine, which its schedules are for */
    tl_cold cold;
    char standard[17];  /* the program whose ratio is 1 */
    double standard_ns; /* the median of what was seen of it */
    int count, capacity;
    tl_data_record *records;
    tl_map *programs; /* what is among the records already; NULL: not needed yet */
} tl_data_series;

/* Everything in the arena that it was given. */
typedef struct {
    tl_arena *arena;
    tl_map *tasks;  /* by workload: tl_data_task */
    tl_map *series; /* by all that makes them comparable: tl_data_series */
    int64_t count;  /* of records */
} tl_dataset;

tl_dataset *tl_dataset_create(tl_arena *arena);
/* Adds what the query finds: records with a ratio or a failure whose point and program the database knows. `skipped`: others. */
tl_status tl_dataset_add_records(tl_dataset *set, tl_records *store, const tl_query *query,
                                 int64_t *skipped, tl_diag *diag);
/* Adds what `from` has more; the same record twice is one. Texts are copied. */
void tl_dataset_merge(tl_dataset *set, const tl_dataset *from, int64_t *added);
/* Tasks of which a digest of `seed` and the workload says so: about `share` of them; every record of a workload, of whatever
 * target, falls on one side. */
void tl_dataset_split(const tl_dataset *set, double share, uint64_t seed, tl_dataset *in,
                      tl_dataset *out);

/* TL_BAD_TEXT: no data set, damaged, or of a later tilth; with what is wrong. */
tl_status tl_dataset_read(const char *path, tl_arena *arena, tl_dataset **out, tl_diag *diag);
tl_status tl_dataset_write(const tl_dataset *set, const char *path, int64_t *bytes, tl_diag *diag);

/* What a file holds, packed and not: for tests, and for who makes files of other origin. */
tl_status tl_dataset_pack(const void *body, size_t size, tl_text *out, tl_diag *diag);
tl_status tl_dataset_unpack(const void *file, size_t size, tl_text *body, tl_diag *diag);

/* A structural hash, hex digits, as records have it. */
uint32_t tl_data_program_of(const char *hash);
/* A series' task as a measurer and a space want it, in `arena`. */
const tl_measure_task *tl_dataset_task(const tl_data_task *task, tl_arena *arena);
/* The record's program; `space` is of its kind. TL_ILLEGAL_SCHEDULE where the space has changed: it comes to another one, or
 * to none. */
tl_status tl_dataset_build(const tl_space *space, tl_arena *arena, const tl_data_record *record,
                           tl_variant *out, tl_diag *diag);

/* What is in it. */
typedef struct {
    int64_t tasks, series, records, failed, censored;
    int64_t by_sampler[TL_SAMPLER_COUNT];
    int64_t uncertain; /* their error is above what was wanted: 2 %, 5 % above a ratio of 3 */
    int64_t other_space;
    double median_ratio, best_ratio;
} tl_dataset_stats;
void tl_dataset_measure(const tl_dataset *set, tl_dataset_stats *out);
/* The same as a picture, an <svg>: how far the points of each sampler are from the standard, and how sure their labels are. */
void tl_dataset_draw(const tl_dataset *set, tl_text *out);

#endif
