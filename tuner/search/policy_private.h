/* tuner/search/policy_private.h: what the search policies share: an explorer, which keeps what was met and what came of it,
 * and the moves from which policies are composed. A policy is an explorer and a chooser, one file each (policy_*.c). */
#ifndef TL_TUNER_SEARCH_POLICY_PRIVATE_H
#define TL_TUNER_SEARCH_POLICY_PRIVATE_H
#include "tuner/search/catalog.h"
#include "tuner/search/search.h"
#include "tuner/search/surrogate.h"
#include "tuner/search/tokens.h"

#define POLICY(name, words) extern const tl_policy_type tl_policy_##name;
#include "tuner/search/policies.def"
#undef POLICY

typedef struct tl_explorer tl_explorer;
/* Takes (tl_explorer_take) up to `count` entries. When it takes fewer, any others fill up. */
typedef void tl_chooser(tl_explorer *x, int count);

/* What makes a policy. */
typedef struct {
    tl_chooser *choose;
    const char *model; /* of cost_models.def, unless the search brings one; NULL: it needs none */
    int warm_up;       /* results before the model is asked */
    int retrain;       /* results after which it learns again */
    int appeals; /* how often who was ahead only in company is heard again (measure_again.c) */
} tl_method;

typedef struct {
    int entry;
    double prediction;
    const char *origin;
} tl_taken;

/* Choices made ahead: a policy that thinks in rounds hands them out as it is asked. */
enum { TL_MOST_PLANNED = 128 };
typedef struct {
    int count, at; /* those before `at` were handed out */
    tl_taken choices[TL_MOST_PLANNED];
} tl_search_plan;
void tl_plan_add(tl_search_plan *plan, int entry, double prediction, const char *origin);

/* Who was ahead in unbroken company and is to be heard again, when the core is calmer. */
typedef struct {
    int entry;      /* RIGHT, also while it is heard */
    double promise; /* tl_result's, of its last trial */
    int again;      /* how often it was heard again */
    int heard_at;   /* how many results there had been after its last one */
    bool is_heard;  /* it is proposed, its result has not come */
} tl_appeal;

enum { TL_MOST_APPEALS = 4, TL_LAST_RESULTS = 4 };
typedef struct {
    int count;
    tl_appeal list[TL_MOST_APPEALS];
    int result_count;              /* of all proposals */
    double alone[TL_LAST_RESULTS]; /* tl_result's, of the last ones, in a ring */
} tl_appeals;

_Static_assert(
    (int)TL_MOST_EXPERTS <= (int)TL_ENTRY_EXPECTATIONS &&
        (int)TL_MOST_EXPERTS + 1 <= (int)TL_SURROGATE_GUESSES,
    "an entry has room for what each expert says, and the process for the method's model, too");

/* What is asked of models that were trained before; in the explorer's arena. */
typedef struct {
    int count; /* of those that judge programs; 0: there are none */
    tl_cost_model *models[TL_MOST_EXPERTS];
    int screener_count; /* of those that need no program, and judge points that were not built */
    tl_cost_model *screeners[TL_MOST_EXPERTS];
    tl_cost_model *screener; /* who has a say now; NULL: nobody */
    double trust;            /* how far it was right so far: of pairs, right less wrong ones */
    tl_tokens *tokens;       /* NULL: none */
    float *workload, *machine;
    tl_sample_shape shape; /* of points */
} tl_experts;

struct tl_explorer {
    tl_policy policy; /* first: an explorer is a policy */
    tl_search search;
    tl_arena *arena;
    tl_catalog *catalog;
    const tl_method *method;
    tl_cost_model *model; /* NULL: none */
    int model_state;      /* counts how often the model learned; 0: never */
    tl_experts experts;
    tl_random random;

    int *measured; /* entries with a result, in the order in which results came; RIGHT and WRONG */
    int measured_count, measured_capacity;
    int right_count; /* of them */
    int best;        /* the entry with the least score_ns; TL_NO_ENTRY: none is right */
    int default_at;  /* lowerings whose default was looked at */
    int *seeds;      /* entries from records whose times do not count here, best first */
    int seed_count, seed_at;
    bool is_screened;  /* what tl_explorer_screen tries was planned */
    int trained_count; /* of `measured`, when the model learned last */
    tl_search_plan plan;
    tl_appeals appeals;
    /* Without and with what the model says; NULL: not asked yet. */
    tl_surrogate *surrogate, *informed;
    int fitted_count; /* of `measured`, when its weights were fitted */
    int expand_at;    /* for tl_explorer_any: entries before it are expanded */

    tl_taken *choices; /* of the batch that is being put together */
    int choice_count, choice_capacity;
    bool failed; /* memory ran out */
};

/* The members of a tl_policy_type; a policy's own `create` calls the first. */
tl_status tl_explorer_create(const tl_search *search, const tl_policy_type *type,
                             const tl_method *method, tl_policy **out, tl_diag *diag);
void tl_explorer_destroy(tl_policy *policy);
tl_status tl_explorer_propose(tl_policy *policy, tl_arena *arena, int count, tl_proposal *out,
                              int *out_count, tl_diag *diag);
tl_status tl_explorer_learn(tl_policy *policy, const tl_proposal *proposals,
                            const tl_result *results, int count, tl_diag *diag);

/* Puts the entry into the batch when it is NEW; false: it is not. */
bool tl_explorer_take(tl_explorer *x, int entry, double prediction, const char *origin);
/* Puts a RIGHT entry into the batch once more; it stays RIGHT. False: it is not, or the batch is full. */
bool tl_explorer_take_again(tl_explorer *x, int entry, double prediction, const char *origin);
/* Takes up to `count` of those planned that are still NEW; returns how many. */
int tl_explorer_take_planned(tl_explorer *x, int count);
bool tl_explorer_is_new(const tl_explorer *x, int entry); /* false for TL_NO_ENTRY */
/* An entry that is NEW: a random one while such are found easily, else the next by looking at all neighbours of all
 * that was met. TL_NO_ENTRY: the space is exhausted. */
int tl_explorer_any(tl_explorer *x);
/* The right ones, best first, at most `count`; returns how many. */
int tl_explorer_leaders(const tl_explorer *x, int count, int *out);

/* measure_again.c: a second hearing for who was ahead only in company. Takes at most one that is due, when the core is calm. */
void tl_explorer_take_appeal(tl_explorer *x);
bool tl_explorer_is_heard_again(tl_explorer *x, int entry); /* another result may come */
/* Of every result of a proposal (of a failure no promise): files, renews or ends an appeal. */
void tl_explorer_note_result(tl_explorer *x, int entry, double promise, double alone);

/* rank_by_model.c: what the model says of entries, after it learned what was measured since; larger is better. Without a model,
 * or when it has learned nothing, random numbers, and false. */
bool tl_explorer_score(tl_explorer *x, const int *entries, int count, float *score);
/* ask_experts.c: at the explorer's making; then the expectations of entries, which are filled in where they are missing. */
void tl_experts_begin(tl_explorer *x);
void tl_experts_expect(tl_explorer *x, const int *entries, int count);
/* screen_points.c: who of the screeners has a say, as far as it is right of what was measured so far; and what it says of points,
 * built or not: something like the logarithm of a time, 0 of all when nobody has a say. */
void tl_experts_choose_screener(tl_explorer *x);
void tl_experts_screen(tl_explorer *x, const tl_point *points, int count, double *said);
/* The entries in the order of their scores, best first; `score` is moved with them. */
void tl_explorer_rank(tl_explorer *x, int *entries, float *score, int count);

/* evolve_points.c: as in Ansor. */
typedef struct {
    int population, generations;
    double mutation;      /* probability that a child differs from its parent */
    double measured_part; /* of the population that the best measured ones may be */
    double epsilon;       /* part of a batch that is random */
} tl_evolution;
/* Plans a round of `count`, at most TL_MOST_PLANNED. */
void tl_explorer_evolve(tl_explorer *x, const tl_evolution *how, int count, tl_search_plan *plan);

/* choose_leaders.c: the `overall` best with different loops, and the best of each lowering that is not among them, at
 * most `most`; returns how many. */
int tl_explorer_lead(tl_explorer *x, int overall, int most, int *out);

/* expected_gain.c: those points around the leaders that promise the largest gain by a Gaussian process over what was measured
 * (surrogate.h) and the model. */
void tl_explorer_improve(tl_explorer *x, int count);

/* screen_switches.c: once, after the defaults: the best of them with its switches turned, several at a time. Takes up to `count`
 * of these; returns how many. */
int tl_explorer_screen(tl_explorer *x, int count);

/* draft_points.c: plans the `count` best of `samples` new points, by the model. */
void tl_explorer_draft(tl_explorer *x, int samples, int count, tl_search_plan *plan);

/* coordinate_descent.c: steps of one decision away from the best, longest 1, 2, 4... up to `widest` options; when there are none
 * left, from those next to it. `ranked`: in the order of the model's scores. */
void tl_explorer_descend(tl_explorer *x, int widest, bool ranked);

#endif
