/* tuner/transfer/transfer.h: schedules of other kernels of the same class, for a kernel of its own shape.
 *
 *     tl_donors_find(store, filter)          the best records of other workloads of the wanted classes
 *     tl_transfer_sources(donors, shares)    which model's schedules are likely to help most (optional)
 *     tl_transfer_to(how, space, task)       for one task: the donors' schedules as its own candidates, best guess first
 *
 * After Transfer-Tuning (Gibson and Cano, PACT 2022): kernels of one class, the same program but for extents, take each other's
 * schedules. A donor may be of another shape, model or target. Its schedule comes by one of two routes (routes.def), and is then
 * a candidate like any other: checked before its time counts. */
#ifndef TL_TUNER_TRANSFER_TRANSFER_H
#define TL_TUNER_TRANSFER_TRANSFER_H
#include "tuner/cost/cost_model.h"
#include "tuner/records/store.h"
#include "tuner/search/space.h"

/* A record of one workload, the best of its target and lowering. */
typedef struct {
    const tl_record *record;
    const tl_workload_info *workload;
    /* of no store of this machine: a workload's own record on this target is a donor, too */
    bool from_elsewhere;
} tl_donor;

typedef struct {
    int count;
    const tl_donor *donors; /* by class, workload and time */
} tl_donors;

/* Which records are donors. Lists of NULL do not restrict. */
typedef struct {
    const char *const *classes; /* keys of classes that are wanted */
    int class_count;
    const char *const
        *kin; /* and kins that are wanted beside those classes (tl_kin_of); NULL: none */
    int kin_count;
    const char *const *excluded; /* workloads that are none: of the model itself, say */
    int excluded_count;
    /* and that only of this target (tl_target_fingerprint); NULL: of any */
    const char *excluded_target;
    const char *const *only; /* workloads that may be */
    int only_count;
    const char *numerics; /* of the records; "strict" or "relaxed" */
    const char *session;  /* NULL: any */
    bool only_winners;    /* tl_donor_has_won */
} tl_donor_filter;

/* It beat the default schedule of its session beyond doubt: twice the label's error below 0.98 of its time. */
bool tl_donor_has_won(const tl_record *record);

/* In `arena`. A record whose time is none (not positive, not finite, beyond an hour), of a workload that the store does not
 * describe, or that does not match its digest is passed over. */
tl_status tl_donors_find(tl_records *store, tl_arena *arena, const tl_donor_filter *filter,
                         tl_donors *out, tl_diag *diag);

/* The same of lines of JSON as tl_records_export writes them: of a file, or of a recording. Lines that are neither a sound
 * workload nor a sound record are passed over. */
void tl_donors_of_lines(tl_arena *arena, const char *lines, const tl_donor_filter *filter,
                        tl_donors *out);
void tl_donors_print(const tl_donors *donors, tl_text *out); /* as such lines */

/* The lines of the starter database, tuner/data/starter.jsonl, which every build holds: winners of networks that people know,
 * measured on other machines than this one. Nothing takes them without being asked to. */
tl_status tl_starter_lines(tl_text *out, tl_diag *diag);

/* How far apart two kernels of a class are: the mean of |log2| of the ratios of their iters' extents; 0 for the same shape.
 * Negative: they are not of one class after all. */
double tl_shape_distance(const tl_program *a, const tl_program *b);

/* Kernels are kin when their sums (blocks that reduce) have the same names and iters one by one, whatever stands around them: a
 * convolution before a ReLU, before a clip with a halo, before a residual. The paper's classes are narrower. The kin's name in
 * `arena`; false, and "": it has no sums, and no kin. */
bool tl_kin_of(tl_arena *arena, const tl_program *program, const char **out);
bool tl_kin_of_text(tl_arena *arena, const char *text,
                    const char **out); /* of a program's text; false: of none */

/* The same over the iters of sums alone, and half a doubling more. Negative: they are not kin. */
double tl_kin_distance(const tl_program *a, const tl_program *b);

/* ---- which model to take them from ---- */

/* A class of the model that is to be made faster, and its share of the untuned time, 0 to 1. */
typedef struct {
    const char *class_key;
    double share;
} tl_class_share;

/* The classes of tasks, with their share of the time that the analytic cost model expects of their untuned schedules: nothing is
 * measured. In `arena`; a task whose default schedule cannot be made has no part in it. */
typedef struct {
    const tl_measure_task *measure;
    const char *class_key;
    int untuned; /* lowering */
    double weight;
} tl_weighted_task;
tl_status tl_transfer_shares(tl_arena *arena, const tl_weighted_task *tasks, int count,
                             const tl_target *target, int threads, tl_space_kind kind,
                             tl_class_share **out, int *out_count, tl_diag *diag);

/* The records of one run of the tuner. */
typedef struct {
    const char *session;
    const char *name; /* of the model that it tuned, as choices tell; "" when none does */
    int workloads;    /* of the classes that are wanted */
    double score;
} tl_transfer_source;

/* The sessions that donors come from, the best first, by Eq. 1 of the paper: sum over classes of share^2 * sqrt(number of the
 * source's workloads of that class). In `arena`. `store` NULL: they have no names. */
tl_status tl_transfer_sources(tl_records *store, tl_arena *arena, const tl_donors *donors,
                              const tl_class_share *shares, int share_count,
                              tl_transfer_source **out, int *count, tl_diag *diag);

/* ---- to one task ---- */

typedef enum {
#define ROUTE(name, text, words) TL_ROUTE_##name,
#include "tuner/transfer/routes.def"
#undef ROUTE
    TL_ROUTE_COUNT
} tl_transfer_route;
const char *tl_transfer_route_text(tl_transfer_route route);

typedef struct {
    const tl_donors *donors;
    /* Ranks what the donors' schedules came to; NULL: the donor of the nearest shape comes first. The caller's. */
    tl_cost_model *model;
    bool only_trace; /* no answers by name */
    bool kin;        /* donors of the task's kin, too */
    int per_task;    /* at most so many of a task */
} tl_transfer;

/* A donor's schedule as a candidate of the task. */
typedef struct {
    const tl_donor *donor;
    tl_transfer_route route;
    /* what is not as the donor had it: "conv.rows 6 (8), ..."; "" when all is */
    const char *adapted;
    double distance; /* of the shapes */
    bool is_kin;     /* the donor is of another class */
    float score;     /* the ranking's; larger is better */
    int lowering;    /* of the task's */
    const char *trace;
    char program[17]; /* hash of what it came to: hex digits */
} tl_transferred;

/* What the donors of the task's class (and kin) have to offer it, best first; each program once, and none that is the same as the
 * default schedule of `untuned`, a lowering. In `arena`; a donor that does not fit is passed over. `own` is the
 * task's: records of the workload itself are donors when they are of another target. */
tl_status tl_transfer_to(const tl_transfer *how, const tl_space *space, const tl_workload_info *own,
                         int untuned, tl_arena *arena, const tl_transferred **out, int *count,
                         tl_diag *diag);

#endif
