/* tuner/model/tunable.h: a model as the tuner sees it: something that can be built with recorded schedules and in another form,
 * run, and asked how long each of its steps takes. What compiles models implements it (driver/pipeline/tunable_model.h);
 * a test can do so without a compiler or a clock. */
#ifndef TL_TUNER_MODEL_TUNABLE_H
#define TL_TUNER_MODEL_TUNABLE_H
#include "runtime/base/arena.h"
#include "runtime/tensor/tensor.h"
#include "tuner/records/picks.h"
#include "tuner/run/tune.h"

/* One step of a run. */
typedef struct {
    const char *workload; /* key; NULL: it is no kernel (a copy) */
    const char *kernel;   /* its name, unique in the model */
    const char *lowering; /* that it was compiled from */
    /* key of its object: steps of one key are the same code; "" when it has none */
    const char *code;
    /* by a pick; false: the default schedule, for there was no pick or it did not fit */
    bool is_picked;
} tl_tunable_step;

/* The model compiled with some picks in some form, ready to run: first member of what an implementation has of it. */
typedef struct {
    int step_count;
    const tl_tunable_step *steps;
} tl_tunable_build;

/* A decision about how the graph is cut into kernels and laid out that is not made otherwise. */
typedef struct {
    const char *form; /* text (frontend/README.md) */
    const char *what; /* for people: "conv_relu_3: cut behind Conv" */
    double cost_ns;   /* of the whole model by the records; 0: not known, or not asked for */
    int missing;      /* workloads without a record */
} tl_form;

/* One of the kernels that the model has in a form, as long as that form is visited. */
typedef struct {
    char workload[33];
    const void *kernel; /* the implementation's */
} tl_form_kernel;
typedef tl_status tl_form_visitor(void *user, const tl_form_kernel *kernel, tl_diag *diag);

typedef struct tl_tunable tl_tunable;
typedef struct {
    /* Compiles with exactly these picks in that form ("": the default one). */
    tl_status (*build)(tl_tunable *model, const tl_pick *picks, int count, const char *form,
                       tl_tunable_build **out, tl_diag *diag);
    void (*close)(tl_tunable_build *build); /* NULL is fine */
    /* What compiles the model with these picks in this form the next time may take it from here. */
    void (*keep)(tl_tunable_build *build);
    /* Makes `count` sets of inputs from the seed, in place of earlier ones: every build of the model runs on them. */
    tl_status (*draw_inputs)(tl_tunable_build *build, uint64_t seed, int count, tl_diag *diag);
    /* One run on a set of inputs; `step_ns` gets the time of each step and may be NULL. */
    tl_status (*run)(tl_tunable_build *build, int set, int64_t *step_ns, tl_diag *diag);
    /* What the last run on the set, of whichever build, gave: valid until the next. */
    const tl_tensor *(*outputs)(tl_tunable *model, int set, int *count);
    int64_t (*clock_ns)(tl_tunable *model);
    /* The forms that differ from the default one by one decision, in `arena`. */
    void (*find_forms)(tl_tunable *model, tl_arena *arena, const tl_form **out, int *count);
    /* Calls `visit` with each kernel that the model has in a form. */
    tl_status (*visit_form)(tl_tunable *model, const char *form, tl_form_visitor *visit, void *user,
                            tl_diag *diag);
    /* A visited kernel as a task of weight 0, in `arena`. */
    tl_status (*describe)(tl_tunable *model, tl_arena *arena, const tl_form_kernel *kernel,
                          tl_tune_task *out, tl_diag *diag);
} tl_tunable_type;

struct tl_tunable {
    const tl_tunable_type *type; /* first member of each implementation */
    const char *path;            /* for people */
    tl_picks_query query;        /* whose records count */
};

#endif
