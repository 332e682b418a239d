/* tuner/search/search.h: a search policy: proposes candidates of one task, learns what came of them.
 *
 * A policy knows neither workers nor databases: the tuner asks it for a batch, has it measured, and hands the results
 * back in the order of the proposals. The same seed, space, known records and results give the same proposals, bit for
 * bit: a policy asks no clock and no machine. It never proposes what it, or a record it was given, tried before
 * (recognised by the structural hash of the scheduled program), but for appeals: what was ahead in its last trial, and not
 * crowned only because it was hardly ever alone on the core (tl_result's promise), may be proposed again, twice at most.
 * The tuner measures the default schedule itself, before it makes the policy, and gives it that record among the known. A
 * batch may be asked for before the results of the last one are in: propose, propose, learn, learn. */
#ifndef TL_TUNER_SEARCH_SEARCH_H
#define TL_TUNER_SEARCH_SEARCH_H
#include "tuner/cost/cost_model.h"
#include "tuner/measure/measure.h"
#include "tuner/records/record.h"
#include "tuner/search/space.h"

typedef struct tl_policy tl_policy;

enum { TL_MOST_EXPERTS = 4 };

typedef struct {
    const tl_measure_task *task;
    const tl_space *space;
    const tl_target *target;
    /* Predicts, and learns this task's results; NULL: the policy makes what it needs. */
    tl_cost_model *model;
    /* Trained before (tl_cost_model_load), at most TL_MOST_EXPERTS: asked, and not taught. Policies that can use them take what
     * they expect as a prior, and believe each as far as it is right here: a wrong one costs little. Those that read no rows of a
     * program judge points before they are built, so that more are looked at. They need `workload`. */
    tl_cost_model *const *experts;
    int expert_count;
    const tl_workload_info *workload; /* its names and sizes; NULL: nobody says */
    uint64_t seed;
    int known_count; /* records of the same workload from the store: not to be tried again, good as seeds */
    const tl_record *known;
} tl_search;

/* A candidate as a policy proposes it; the trace lives in the arena that propose was given. */
typedef struct {
    tl_candidate candidate;
    char program[17];  /* structural hash of the scheduled program, hex digits */
    double prediction; /* the score that got it in; 0 when none did */
    /* "default", "record", "random", "mutation", "descent", "draft", "model", "screen", "appeal": for reports. */
    const char *origin;
} tl_proposal;

typedef struct {
    const char *name; /* "evolution" */
    int batch;        /* how many candidates it likes to be asked for at once; 0: 16 */
    tl_status (*create)(const tl_search *search, tl_policy **out, tl_diag *diag);
    void (*destroy)(tl_policy *policy);
    /* Up to `count` proposals; fewer (0: none) when the space has no more to try. The default schedule of each lowering
     * comes first, in the order of the lowerings. */
    tl_status (*propose)(tl_policy *policy, tl_arena *arena, int count, tl_proposal *out,
                         int *out_count, tl_diag *diag);
    /* Results of proposals, in order; may be fewer than proposed (the budget ended). */
    tl_status (*learn)(tl_policy *policy, const tl_proposal *proposals, const tl_result *results,
                       int count, tl_diag *diag);
} tl_policy_type;

struct tl_policy {
    const tl_policy_type *type; /* first member of each implementation */
};

/* tuner/search/policies.def */
extern const tl_policy_type *const tl_policies[];
extern const int tl_policy_count;
const tl_policy_type *tl_policy_find(const char *name); /* NULL: there is none of that name */

#endif
