/* driver/tune/find_donors.h: where the kernels of a run of the tuner get schedules of others from. */
#ifndef TL_DRIVER_TUNE_FIND_DONORS_H
#define TL_DRIVER_TUNE_FIND_DONORS_H
#include "driver/cli/session.h"
#include "runtime/base/map.h"
#include "tuner/model/tune_list.h"

typedef struct {
    /* "pool": all donors; "auto": those of one run, chosen by Eq. 1; "starter": those that come with tilth; else the path of
     * a model. */
    const char *from;
    /* a file of records as `db export` writes them, instead of the database; NULL: none */
    const char *donors;
    bool may_be_empty; /* that file, a recording: it was made without donors */
    /* "pool": those that come with tilth, too, where the database knows of no schedule that beat its default */
    bool or_starter;
    const char *rank; /* name of a cost model, "default", a file, or "shape" */
    int64_t per_kernel;
    /* what is recorded of the kernels themselves, or of the model's other kernels, does not count */
    bool others_only;
    bool only_trace;
    bool kin; /* kernels of another class whose sums are the same are donors, too (tl_kin_of) */
    uint64_t seed;
} tl_donor_settings;

/* What was found for a run. */
typedef struct {
    tl_transfer transfer;
    tl_cost_model *ranking; /* the report's, to be destroyed; NULL: none */
    tl_donors donors;
    tl_transfer_source source; /* "auto": the one that was chosen; name NULL: none was */
    bool asked_starter;        /* what comes with tilth was looked at */
    int starters;              /* of the donors, so many are of it */
    int schedules, workloads;  /* of donors that are of use to a task */
    char own_target[160];      /* fingerprint of what the tasks are for */
    int covered;               /* tasks whose class has a donor */
    int covered_by_kin;        /* others whose kin has one */
    tl_map *kin; /* workload -> its kin's name, of tasks and donors; NULL: none is wanted */
    double covered_share; /* of the time that the analytic model expects; 0 to 1 */
} tl_donor_report;

/* Whether the kernel's class, or its kin if that is wanted, has a donor other than its own records. */
bool tl_donors_cover(const tl_donor_report *report, const tl_workload_info *kernel);

/* TL_BAD_ARGUMENT: a ranking or a model that there is not. Everything lives in `arena`; `store` may be NULL. */
tl_status tl_donors_for(tl_arena *arena, const tl_donor_settings *settings,
                        const tl_session_options *common, const tl_tune_list *list,
                        tl_records *store, const tl_target *target, int threads,
                        tl_numerics numerics, tl_space_kind space, tl_donor_report *out,
                        tl_diag *diag);

#endif
