/* tuner/cost/network.h: what the cost models that are networks share: weights, batches of programs, and the loop
 * that trains.
 *
 * A network predicts for each program a mean, of log(time), and a spread, the logarithm of the variance. Its file
 * says which weights it has and how they lead from a batch to those (declare, forward) and back (backward);
 * everything else is alike:
 *
 *     network_layers.c   a layer with its arrays
 *     network_batch.c    programs gathered and their columns brought to one scale
 *     network_train.c    epochs, batches of whole tasks, the loss, early stopping
 *     network_state.c    checkpoints: training that is killed goes on with the same bits
 *     cost_network.c     the calls of cost_model.h */
#ifndef TL_TUNER_COST_NETWORK_H
#define TL_TUNER_COST_NETWORK_H
#include "tuner/cost/cost_private.h"
#include "tuner/learn/scratch.h"
#include "tuner/learn/weights.h"

typedef struct tl_cost_network tl_cost_network;
typedef struct tl_cost_batch tl_cost_batch;

typedef struct {
    const char *name;
    int initial, least, most;
} tl_network_setting;

typedef struct {
    const tl_cost_model_type *type;
    const char *words;
    bool reads_rows, reads_decisions;
    /* predicts beside the analytic time, which is told from our rows; of other rows it learns all by itself */
    bool has_base;
    int setting_count;
    tl_network_setting settings[8];
    double rate; /* of training, unless options say otherwise */
    /* Adds its arrays behind those of TL_NETWORK_INPUTS. */
    void (*declare)(tl_cost_network *n);
    /* Fills the batch's mean and spread; what the way back needs is left in batch->kept. */
    void (*forward)(const tl_cost_network *n, tl_cost_batch *batch);
    void (*backward)(tl_cost_network *n, tl_cost_batch *batch);
} tl_network_type;

enum { TL_NETWORK_SETTINGS = 8 };
struct tl_cost_network {
    tl_cost_model model; /* first */
    const tl_network_type *net;
    int settings[TL_NETWORK_SETTINGS];
    tl_weights weights; /* none: it has learned nothing */
    bool has_base;      /* its type has, and its rows are ours */
    tl_parameter *parameters;
    int parameter_count;
    double trained_on; /* programs */
    double held_out;   /* loss when training ended; NAN: nothing was held out */
};

/* Arrays of every network: centre and scale of the columns it reads, kind by kind. */
enum {
    TL_NETWORK_ROW,
    TL_NETWORK_DECISION,
    TL_NETWORK_WORKLOAD,
    TL_NETWORK_MACHINE,
    TL_NETWORK_KINDS,
    TL_NETWORK_INPUTS = 2 * TL_NETWORK_KINDS,
};
int tl_network_width(const tl_cost_network *n, int kind); /* 0: it does not read the kind */

/* Some programs of some samples, gathered. */
struct tl_cost_batch {
    const tl_cost_samples *samples;
    tl_scratch *scratch;
    int count;
    const int *programs; /* in the samples */

    int row_count, decision_count;
    int *first_row, *first_decision; /* count + 1 */
    float *rows, *decisions;         /* of one scale */
    float *workloads, *machines;     /* one a program */
    float *base; /* of each row: log of the ns that the analytic model makes of it; 0: not ours */

    float *mean, *spread;     /* filled by forward */
    float *d_mean, *d_spread; /* filled by the loss */
    void *kept;
};

/* network_layers.c: layers of layers.h with the arrays of the network from number `layer` on: weight and bias; gain
 * and bias. */
void tl_network_declare_linear(tl_cost_network *n, int in, int out, const char *name);
void tl_network_linear(const tl_cost_network *n, int layer, int rows, int in, int out,
                       const float *x, float *y);
/* d_x NULL: nobody asks for it; `add`: to what is in it. */
void tl_network_linear_back(tl_cost_network *n, int layer, int rows, int in, int out,
                            const float *x, const float *d_y, float *d_x, bool add);
typedef struct {
    float *normal, *inverse, *out;
} tl_network_norm;
void tl_network_declare_norm(tl_cost_network *n, int width, const char *name);
tl_network_norm tl_network_normalize(const tl_cost_network *n, int layer, int rows, int width,
                                     const float *x, tl_scratch *scratch);
void tl_network_normalize_back(tl_cost_network *n, int layer, int rows, int width,
                               const tl_network_norm *norm, const float *d_y, float *d_x, bool add);

/* network_batch.c */
void tl_network_fit_inputs(tl_cost_network *n, const tl_cost_samples *samples);
void tl_network_gather(const tl_cost_network *n, tl_cost_batch *batch);

/* network_train.c. Fills weights, which are declared and allocated; `adapting`: from what they are, else drawn anew. */
tl_status tl_network_train(tl_cost_network *n, const tl_cost_samples *samples,
                           const tl_cost_samples *held_out, const tl_train_options *options,
                           bool adapting, tl_diag *diag);
/* Loss of the samples, a program; its gradients are added to those of the weights. */
double tl_network_loss(tl_cost_network *n, const tl_cost_samples *samples,
                       const tl_train_options *options, tl_scratch *scratch);

/* network_state.c: where training stands between two steps. */
typedef struct {
    int64_t step; /* in all */
    int epoch, batch;
    double loss, held_out, least; /* of the last epoch; the least */
    double sum, weight;           /* of this epoch's losses so far */
    int stale;                    /* epochs without a better one */
    float *best;                  /* weights of the least */
} tl_network_state;
/* What a checkpoint is for: model, samples, options. */
uint64_t tl_network_lesson(const tl_cost_network *n, const tl_cost_samples *samples,
                           const tl_train_options *options);
/* TL_IO: the file cannot be read or written. *found false: there is none, or it is of another lesson, or damaged. */
tl_status tl_network_save_state(const tl_cost_network *n, const tl_network_state *state,
                                uint64_t lesson, const char *path, tl_diag *diag);
tl_status tl_network_load_state(tl_cost_network *n, tl_network_state *state, uint64_t lesson,
                                const char *path, bool *found, tl_diag *diag);

/* cost_network.c: what tl_cost_model_type points to. */
tl_status tl_network_create(const tl_network_type *net, const char *settings, uint64_t seed,
                            tl_cost_model **out, tl_diag *diag);
void tl_network_destroy(tl_cost_model *model);
tl_status tl_network_learn(tl_cost_model *model, const tl_cost_samples *samples,
                           const tl_cost_samples *held_out, const tl_train_options *options,
                           tl_diag *diag);
tl_status tl_network_adapt(tl_cost_model *model, const tl_cost_samples *samples,
                           const tl_train_options *options, tl_diag *diag);
bool tl_network_predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                        float *variance);
tl_status tl_network_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                               const tl_train_options *options, double *loss, tl_diag *diag);
int tl_network_parameters(tl_cost_model *model, const tl_parameter **out);
tl_status tl_network_write(const tl_cost_model *model, tl_text *out, tl_diag *diag);
tl_status tl_network_read(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag);
void tl_network_describe(const tl_cost_model *model, tl_text *out);
void tl_network_print_settings(const tl_cost_model *model, tl_text *out);

#define TL_NETWORK_CALLS                                                                     \
    .destroy = tl_network_destroy, .train = tl_network_learn, .adapt = tl_network_adapt,     \
    .predict = tl_network_predict, .gradients = tl_network_gradients,                        \
    .parameters = tl_network_parameters, .write = tl_network_write, .read = tl_network_read, \
    .describe = tl_network_describe, .settings = tl_network_print_settings

#endif
