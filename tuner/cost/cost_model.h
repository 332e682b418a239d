/* tuner/cost/cost_model.h: guesses which candidates of a task are fast, from those that were measured.
 *
 * A model sees candidates as rows of features (tuner's own; one row a statement, a program is several rows) and gives
 * each a score; larger is better. Scores order the candidates of one task and mean nothing across tasks. Learning is
 * from labels in (0, 1]: the task's least time over the candidate's; 0 for what failed. Everything is deterministic: a
 * model gets its seed when it is made. */
#ifndef TL_TUNER_COST_COST_MODEL_H
#define TL_TUNER_COST_COST_MODEL_H
#include <stdbool.h>
#include <stdint.h>
#include "ir/program/target.h"
#include "runtime/base/status.h"

typedef struct tl_cost_model tl_cost_model;

/* Programs as features: program p has rows first_row[p] .. first_row[p + 1] - 1 of `width` floats each. */
typedef struct {
    int count, width;
    const int *first_row; /* count + 1 of them */
    const float *rows;
    const int *task;           /* one a program: which are comparable */
    const tl_machine *machine; /* on which they run; NULL: the built-in profile */
} tl_feature_set;

typedef struct {
    const char *name; /* "random", "analytic", "trees" */
    tl_status (*create)(uint64_t seed, tl_cost_model **out, tl_diag *diag);
    /* Fills score[programs->count]. A model that has learned nothing gives all the same, and says so by false. */
    bool (*predict)(tl_cost_model *model, const tl_feature_set *programs, float *score);
    /* Learns from all that was measured so far (the caller keeps it); label[programs->count]. */
    tl_status (*update)(tl_cost_model *model, const tl_feature_set *programs, const float *label,
                        tl_diag *diag);
    /* TL_IO, TL_BAD_TEXT when the file is no sound model of this type and of these features (the model stays what it was). */
    tl_status (*save)(const tl_cost_model *model, const char *path, tl_diag *diag);
    tl_status (*load)(tl_cost_model *model, const char *path, tl_diag *diag);
    void (*destroy)(tl_cost_model *model);
} tl_cost_model_type;

struct tl_cost_model {
    const tl_cost_model_type *type; /* first member of each implementation */
};

/* tuner/cost/cost_models.def */
extern const tl_cost_model_type *const tl_cost_models[];
extern const int tl_cost_model_count;
/* NULL: there is none of that name. */
const tl_cost_model_type *tl_cost_model_find(const char *name);

#endif
