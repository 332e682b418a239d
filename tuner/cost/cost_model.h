/* tuner/cost/cost_model.h: guesses how long programs take, from those that were measured.
 *
 * What a model says of a program is the natural logarithm of its time, up to a constant of its task: it orders the
 * candidates of one task, the smaller the faster, and means nothing across tasks; and a variance, which says how
 * sure it is. Everything is deterministic: a model gets its seed when it is made, and the same seed, samples and
 * options give the same bits on one CPU, also when training was interrupted and goes on from its checkpoint.
 *
 *     tl_cost_model_create("attention", NULL, seed, &model, diag)
 *     tl_cost_model_train(model, &samples, &held_out, &options, diag)       anew, from what was measured
 *     tl_cost_model_predict(model, &programs, mean, variance)
 *     tl_cost_model_adapt(model, &samples, &options, diag)                  a few steps on, from what it knows
 *     tl_cost_model_save(model, path, diag)      tl_cost_model_load(path, &model, diag) */
#ifndef TL_TUNER_COST_COST_MODEL_H
#define TL_TUNER_COST_COST_MODEL_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/status.h"
#include "runtime/base/text.h"
#include "tuner/cost/cost_samples.h"

typedef struct tl_cost_model tl_cost_model;

/* A named array of a model's numbers, with their gradients: what masks over parameters, heads of domains and
 * studies reach. Both belong to the model, and stay where they are until it is trained anew or destroyed. */
typedef struct {
    const char *name; /* "layer1.attention.query" */
    int rows, columns;
    float *value, *gradient;
} tl_parameter;

typedef struct {
    int epoch, epochs; /* done, planned */
    int step, steps;   /* of this epoch */
    double loss;       /* the last epoch's, a program */
    double held_out;   /* the same of the held-out samples; NAN: there are none */
    double least;      /* the least `held_out` so far */
    double rate;
} tl_train_progress;

/* Zero is what the model takes by itself. */
typedef struct {
    int epochs;
    int batch;    /* programs, 4096 at most: whole tasks, or pieces of a task that has more */
    double rate;  /* of Adam's steps at their largest */
    double decay; /* of weights, a step, times the rate */
    double clip;  /* the largest norm of a gradient */
    int patience; /* epochs without a better held-out loss until training ends */
    double rank;  /* weight of the ranking loss beside the likelihood; below 0: none */
    /* weight of a task's mean, which the analytic model leaves open; below 0: none */
    double absolute;

    /* A file to go on from, and to come back to: written after each epoch, and read first where there is one of the
     * same model, samples and options. NULL: none. Removed when training ends by itself. */
    const char *checkpoint;
    /* For a model that is taught what another says: programs without a label take what the teacher expects. */
    tl_cost_model *teacher;

    const volatile sig_atomic_t *
        stop; /* NULL; not 0: TL_INTERRUPTED after the step, with the model as it was before training */
    void (*listen)(void *user, const tl_train_progress *progress); /* after each step; NULL */
    /* Before each step of the optimiser, with gradients in place and clipped: may change both gradients and values;
     * NULL. */
    void (*before_step)(void *user, const tl_parameter *parameters, int count);
    void *user;
} tl_train_options;

typedef struct {
    const char *name; /* "random", "analytic", "trees", "mlp", "attention", "screener" */
    /* settings: "hidden=128 layers=1", what the model has of such; NULL: none. TL_BAD_ARGUMENT: what it has not. */
    tl_status (*create)(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag);
    void (*destroy)(tl_cost_model *model);
    tl_status (*train)(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_cost_samples *held_out, const tl_train_options *options,
                       tl_diag *diag);
    tl_status (*adapt)(tl_cost_model *model, const tl_cost_samples *samples,
                       const tl_train_options *options, tl_diag *diag);
    bool (*predict)(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                    float *variance);
    /* Loss of these samples, a program; the gradients of the parameters are filled. */
    tl_status (*gradients)(tl_cost_model *model, const tl_cost_samples *samples,
                           const tl_train_options *options, double *loss, tl_diag *diag);
    int (*parameters)(tl_cost_model *model, const tl_parameter **out);
    /* What a file keeps of it, behind the line that cost_file.c writes. */
    tl_status (*write)(const tl_cost_model *model, tl_text *out, tl_diag *diag);
    tl_status (*read)(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag);
    void (*describe)(const tl_cost_model *model, tl_text *out);
    void (*settings)(const tl_cost_model *model, tl_text *out); /* as create takes them */
} tl_cost_model_type;

struct tl_cost_model {
    const tl_cost_model_type *type; /* first member of each implementation */
    uint64_t seed;
    /* of what it was trained with, as far as it reads that; all 0: of nothing */
    tl_sample_shape shape;
};

/* tuner/cost/cost_models.def */
extern const tl_cost_model_type *const tl_cost_models[];
extern const char *const tl_cost_model_words[]; /* what each is, in words */
extern const int tl_cost_model_count;
/* NULL: there is none of that name. */
const tl_cost_model_type *tl_cost_model_find(const char *name);

tl_status tl_cost_model_create(const char *name, const char *settings, uint64_t seed,
                               tl_cost_model **out, tl_diag *diag);
void tl_cost_model_destroy(tl_cost_model *model); /* NULL is fine */

/* Learns anew from `samples`; `held_out` (NULL: none) says when to end, and which of the states on the way is kept.
 * The model stays what it was when that fails: TL_BAD_ARGUMENT: samples that it cannot use; TL_INTERRUPTED;
 * TL_NO_MEMORY. */
tl_status tl_cost_model_train(tl_cost_model *model, const tl_cost_samples *samples,
                              const tl_cost_samples *held_out, const tl_train_options *options,
                              tl_diag *diag);
/* Learns more, from what is new: a few epochs at a tenth of the rate. A model that has learned nothing is trained. */
tl_status tl_cost_model_adapt(tl_cost_model *model, const tl_cost_samples *samples,
                              const tl_train_options *options, tl_diag *diag);
/* Fills mean[programs->count] and, unless NULL, variance. False, and zeros and ones: it has learned nothing, of
 * another shape, or says what is no number. */
bool tl_cost_model_predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                           float *variance);
/* Several models together: of each task the average of what they say, their own variances averaged and what they differ by
 * added. Those that have learned nothing have no say. */
bool tl_cost_models_predict(tl_cost_model *const *models, int count,
                            const tl_cost_samples *programs, float *mean, float *variance);
/* Whether it reads what such samples have. TL_BAD_ARGUMENT: of which kind it was trained with other columns. */
tl_status tl_cost_model_fits(const tl_cost_model *model, const tl_sample_shape *shape,
                             tl_diag *diag);
/* Its arrays, none for models that have none; and the gradients of the loss with respect to them. */
int tl_cost_model_parameters(tl_cost_model *model, const tl_parameter **out);
tl_status tl_cost_model_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                                  const tl_train_options *options, double *loss, tl_diag *diag);
/* What the analytic model makes of a program's rows, on that machine (NULL: the built-in one): cycles of all cores
 * in use. */
double tl_analytic_cycles(const tl_machine *machine, const float *rows, int count);
/* Lines for people: what it is, its settings, its size, what it was trained with. */
void tl_cost_model_describe(const tl_cost_model *model, tl_text *out);

/* Files: a line that names type, shape and content, then what the model keeps. TL_IO, or TL_BAD_TEXT: it is no
 * sound model, damaged, of another version, has values that are no numbers. Whether it fits the samples that one
 * has is told by its shape. */
tl_status tl_cost_model_save(const tl_cost_model *model, const char *path, tl_diag *diag);
tl_status tl_cost_model_load(const char *path, tl_cost_model **out, tl_diag *diag);
/* What comes with tilth, tuner/data/cost.model and screener.model; NULL: there is none. */
typedef enum { TL_DEFAULT_MODEL, TL_DEFAULT_SCREENER, TL_DEFAULT_COUNT } tl_default_model;
tl_status tl_cost_model_default(tl_default_model which, tl_cost_model **out);
/* The same of bytes: of what ships inside the program, or was made up by a test. `name`: for sentences. */
tl_status tl_cost_model_pack(const tl_cost_model *model, tl_text *out, tl_diag *diag);
tl_status tl_cost_model_unpack(const char *name, const void *bytes, size_t size,
                               tl_cost_model **out, tl_diag *diag);

#endif
