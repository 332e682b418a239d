/* tuner/cost/cost_model.c: what holds for all cost models. */
#include "tuner/cost/cost_model.h"
#include <math.h>
#include "tuner/cost/cost_private.h"

void tl_cost_model_destroy(tl_cost_model *model)
{
    if (model != NULL)
        model->type->destroy(model);
}

/* --- samples that models may rely on ---------------------------------------------------------------------------------- */

static tl_status check_numbers(const char *what, int of, const float *numbers, size_t count,
                               tl_diag *diag)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s of number %d of the samples is no number",
                           what, of);
    return TL_OK;
}

/* Samples whose shape says what they really have: models rely on it. */
static tl_cost_samples trimmed(const tl_cost_samples *s)
{
    tl_cost_samples out = *s;
    static const tl_columns none;
    if (out.first_row == NULL || out.row_count == NULL)
        out.shape.row = none;
    if (out.first_decision == NULL || out.decision_count == NULL)
        out.shape.decision = none;
    if (out.workloads == NULL)
        out.shape.workload = none;
    if (out.machines == NULL)
        out.shape.machine = none;
    return out;
}

tl_status tl_cost_model_fits(const tl_cost_model *model, const tl_sample_shape *shape,
                             tl_diag *diag)
{
    const tl_sample_shape *mine = &model->shape;
    const struct {
        const char *what;
        const tl_columns *mine, *theirs;
    } kinds[] = { { "rows of features", &mine->row, &shape->row },
                  { "decisions", &mine->decision, &shape->decision },
                  { "workloads", &mine->workload, &shape->workload },
                  { "machines", &mine->machine, &shape->machine } };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (kinds[k].mine->width == 0 || tl_columns_equal(kinds[k].mine, kinds[k].theirs))
            continue;
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "the cost model \"%s\" was trained with %s of %d columns; these are of "
                       "another revision, with %d",
                       model->type->name, kinds[k].what, kinds[k].mine->width,
                       kinds[k].theirs->width);
    }
    return TL_OK;
}

/* What is learned from has to be numbers: one that is not would spoil all weights. */
static tl_status check(const tl_cost_samples *s, tl_diag *diag)
{
    const tl_sample_shape *shape = &s->shape;
    if (s->label == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the samples have no labels to learn from");
    for (int p = 0; p < s->count; p++) {
        if (shape->row.width > 0)
            TL_TRY(check_numbers("a feature of a program,", p,
                                 s->rows + (size_t)s->first_row[p] * (size_t)shape->row.width,
                                 (size_t)s->row_count[p] * (size_t)shape->row.width, diag));
        if (shape->decision.width > 0)
            TL_TRY(check_numbers("a decision of a program,", p,
                                 s->decisions +
                                     (size_t)s->first_decision[p] * (size_t)shape->decision.width,
                                 (size_t)s->decision_count[p] * (size_t)shape->decision.width,
                                 diag));
        if ((s->error != NULL && !(s->error[p] >= 0 && isfinite(s->error[p]))) ||
            (s->weight != NULL && !(s->weight[p] >= 0 && isfinite(s->weight[p]))))
            return tl_fail(
                diag, TL_BAD_ARGUMENT,
                "error or weight of a program, number %d of the samples, is below 0 or no "
                "number",
                p);
    }
    if (shape->workload.width > 0)
        TL_TRY(check_numbers("the workload of a task, one", s->task_count, s->workloads,
                             (size_t)s->task_count * (size_t)shape->workload.width, diag));
    if (shape->machine.width > 0)
        TL_TRY(check_numbers("the machine of a domain, one", s->domain_count, s->machines,
                             (size_t)s->domain_count * (size_t)shape->machine.width, diag));
    return TL_OK;
}

/* --- the calls -------------------------------------------------------------------------------------------------------- */

static const tl_train_options no_options;

tl_status tl_cost_model_train(tl_cost_model *model, const tl_cost_samples *samples,
                              const tl_cost_samples *held_out, const tl_train_options *options,
                              tl_diag *diag)
{
    const tl_cost_samples s = trimmed(samples);
    const tl_train_options *o = options != NULL ? options : &no_options;
    TL_TRY(check(&s, diag));
    if (held_out == NULL)
        return model->type->train(model, &s, NULL, o, diag);
    const tl_cost_samples held = trimmed(held_out);
    TL_TRY(check(&held, diag));
    return model->type->train(model, &s, &held, o, diag);
}

tl_status tl_cost_model_adapt(tl_cost_model *model, const tl_cost_samples *samples,
                              const tl_train_options *options, tl_diag *diag)
{
    const tl_cost_samples s = trimmed(samples);
    TL_TRY(check(&s, diag));
    return model->type->adapt(model, &s, options != NULL ? options : &no_options, diag);
}

tl_status tl_cost_model_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                                  const tl_train_options *options, double *loss, tl_diag *diag)
{
    const tl_cost_samples s = trimmed(samples);
    TL_TRY(check(&s, diag));
    TL_TRY(tl_cost_model_fits(model, &s.shape, diag));
    return model->type->gradients(model, &s, options != NULL ? options : &no_options, loss, diag);
}

static bool predict_part(tl_cost_model *model, const tl_cost_samples *whole, int from, int count,
                         float *mean, float *variance)
{
    tl_cost_samples part = *whole;
    part.count = count;
    part.task += from;
    if (part.first_row != NULL)
        part.first_row += from, part.row_count += from;
    if (part.first_decision != NULL)
        part.first_decision += from, part.decision_count += from;
    part.label = part.error = part.weight = NULL;
    bool sound = model->type->predict(model, &part, mean, variance);
    for (int p = 0; p < count && sound; p++)
        sound = isfinite(mean[p]) && isfinite(variance[p]);
    return sound;
}

bool tl_cost_model_predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                           float *variance)
{
    enum { PIECE = 1024 };
    float unwanted[PIECE];
    const tl_cost_samples s = trimmed(programs);
    bool sound = tl_cost_model_fits(model, &s.shape, NULL) == TL_OK;
    for (int from = 0; from < s.count && sound; from += PIECE) {
        const int count = s.count - from < PIECE ? s.count - from : PIECE;
        sound = predict_part(model, &s, from, count, mean + from,
                             variance != NULL ? variance + from : unwanted);
    }
    for (int p = 0; p < s.count && !sound; p++) {
        mean[p] = 0;
        if (variance != NULL)
            variance[p] = 1;
    }
    return sound;
}

int tl_cost_model_parameters(tl_cost_model *model, const tl_parameter **out)
{
    return model->type->parameters(model, out);
}

void tl_cost_model_describe(const tl_cost_model *model, tl_text *out)
{
    tl_text_format(out, "%s: ", model->type->name);
    model->type->describe(model, out);
}

/* --- for models that have less ---------------------------------------------------------------------------------------- */

tl_status tl_cost_train_nothing(tl_cost_model *model, const tl_cost_samples *samples,
                                const tl_cost_samples *held_out, const tl_train_options *options,
                                tl_diag *diag)
{
    (void)model, (void)samples, (void)held_out, (void)options, (void)diag;
    return TL_OK;
}

tl_status tl_cost_adapt_nothing(tl_cost_model *model, const tl_cost_samples *samples,
                                const tl_train_options *options, tl_diag *diag)
{
    (void)model, (void)samples, (void)options, (void)diag;
    return TL_OK;
}

tl_status tl_cost_no_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                               const tl_train_options *options, double *loss, tl_diag *diag)
{
    (void)samples, (void)options, (void)loss;
    return tl_fail(diag, TL_UNSUPPORTED, "the cost model \"%s\" has no gradients",
                   model->type->name);
}

int tl_cost_no_parameters(tl_cost_model *model, const tl_parameter **out)
{
    (void)model;
    *out = NULL;
    return 0;
}

void tl_cost_no_settings(const tl_cost_model *model, tl_text *out)
{
    (void)model, (void)out;
}

tl_status tl_cost_write_nothing(const tl_cost_model *model, tl_text *out, tl_diag *diag)
{
    (void)model, (void)out, (void)diag;
    return TL_OK;
}

tl_status tl_cost_read_nothing(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag)
{
    (void)model, (void)bytes;
    return size == 0 ? TL_OK : tl_fail(diag, TL_BAD_TEXT, "it has %zu bytes too many", size);
}
