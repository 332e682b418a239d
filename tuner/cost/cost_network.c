/* tuner/cost/cost_network.c: the calls of cost_model.h for models that are networks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tuner/cost/network.h"

/* --- what a network is ------------------------------------------------------------------------------------------------ */

static const char *const kind_names[TL_NETWORK_KINDS] = { "row", "decision", "workload",
                                                          "machine" };

static void list_settings(const tl_cost_network *network, tl_cost_setting out[TL_NETWORK_SETTINGS])
{
    tl_cost_network *n = (tl_cost_network *)network;
    for (int i = 0; i < n->net->setting_count; i++) {
        const tl_network_setting *s = &n->net->settings[i];
        out[i] = (tl_cost_setting){ s->name, &n->settings[i], s->least, s->most };
    }
}

void tl_network_print_settings(const tl_cost_model *model, tl_text *out)
{
    const tl_cost_network *n = (const tl_cost_network *)model;
    tl_cost_setting table[TL_NETWORK_SETTINGS];
    list_settings(n, table);
    tl_cost_settings_print(table, n->net->setting_count, out);
}

static void clear(tl_cost_network *n)
{
    tl_weights_free(&n->weights);
    free(n->parameters);
    n->parameters = NULL;
    n->parameter_count = 0;
}

tl_status tl_network_create(const tl_network_type *net, const char *settings, uint64_t seed,
                            tl_cost_model **out, tl_diag *diag)
{
    tl_cost_network *n = calloc(1, sizeof *n);
    if (n == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    n->model.type = net->type;
    n->model.seed = seed;
    n->net = net;
    n->held_out = NAN;
    for (int i = 0; i < net->setting_count; i++)
        n->settings[i] = net->settings[i].initial;
    tl_cost_setting table[TL_NETWORK_SETTINGS];
    list_settings(n, table);
    tl_status status =
        tl_cost_settings_read(net->type->name, settings, table, net->setting_count, diag);
    if (status != TL_OK)
        free(n);
    else
        *out = &n->model;
    return status;
}

void tl_network_destroy(tl_cost_model *model)
{
    tl_cost_network *n = (tl_cost_network *)model;
    clear(n);
    free(n);
}

/* The arrays of a network of that shape. */
static void declare(tl_cost_network *n)
{
    const tl_sample_shape ours = tl_sample_shape_of_rows();
    n->has_base = n->net->has_base && tl_columns_equal(&n->model.shape.row, &ours.row);
    for (int kind = 0; kind < TL_NETWORK_KINDS; kind++) {
        tl_weights_add(&n->weights, TL_WEIGHTS_FIXED, 1, tl_network_width(n, kind), "%s.centre",
                       kind_names[kind]);
        tl_weights_add(&n->weights, TL_WEIGHTS_FIXED, 1, tl_network_width(n, kind), "%s.scale",
                       kind_names[kind]);
    }
    n->net->declare(n);
}

static bool allocate(tl_cost_network *n)
{
    n->parameters = calloc((size_t)n->weights.count + 1, sizeof *n->parameters);
    if (!tl_weights_allocate(&n->weights) || n->parameters == NULL)
        return false;
    for (int i = 0; i < n->weights.count; i++) {
        const tl_weights_slice *s = &n->weights.slices[i];
        if (s->rows * s->columns > 0 && s->kind != TL_WEIGHTS_FIXED)
            n->parameters[n->parameter_count++] =
                (tl_parameter){ s->name, s->rows, s->columns, tl_weights_of(&n->weights, i),
                                tl_weights_gradient_of(&n->weights, i) };
    }
    return true;
}

/* An untrained network like this one. */
static tl_status make_like(const tl_cost_network *n, const tl_sample_shape *shape,
                           tl_cost_network **out, tl_diag *diag)
{
    tl_cost_model *model;
    TL_TRY(tl_network_create(n->net, NULL, n->model.seed, &model, diag));
    tl_cost_network *new = (tl_cost_network *)model;
    memcpy(new->settings, n->settings, sizeof new->settings);
    new->model.shape = *shape;
    if (!n->net->reads_rows)
        new->model.shape.row = (tl_columns){ 0 };
    if (!n->net->reads_decisions)
        new->model.shape.decision = (tl_columns){ 0 };
    declare(new);
    if (!allocate(new)) {
        tl_network_destroy(model);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    *out = new;
    return TL_OK;
}

/* `to` becomes what `from` is, which is no more. */
static void become(tl_cost_network *to, tl_cost_network *from)
{
    clear(to);
    *to = *from;
    free(from);
}

/* --- learning --------------------------------------------------------------------------------------------------------- */

static tl_status check_kinds(const tl_network_type *net, const tl_cost_samples *s, tl_diag *diag)
{
    if (net->reads_rows && s->shape.row.width == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the cost model \"%s\" learns from rows of features",
                       net->type->name);
    if (!net->reads_rows && s->shape.decision.width == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the cost model \"%s\" learns from decisions",
                       net->type->name);
    return TL_OK;
}

/* Labels with what the teacher expects where nothing was measured. */
static tl_status be_taught(tl_cost_samples *s, const tl_train_options *o, tl_arena *arena,
                           tl_diag *diag)
{
    if (o->teacher == NULL || s->count == 0)
        return TL_OK;
    float *mean = TL_NEW_ARRAY(arena, float, s->count);
    float *variance = TL_NEW_ARRAY(arena, float, s->count);
    if (!tl_cost_model_predict(o->teacher, s, mean, variance))
        return tl_fail(diag, TL_BAD_ARGUMENT, "the teacher, \"%s\", does not know these samples",
                       o->teacher->type->name);
    /* the teacher's constant of each task: what its expectations of measured programs lack */
    double *off = TL_NEW_ARRAY(arena, double, s->task_count);
    int *measured = TL_NEW_ARRAY(arena, int, s->task_count);
    for (int p = 0; p < s->count; p++)
        if (isfinite(s->label[p])) {
            off[s->task[p]] += (double)s->label[p] - (double)mean[p];
            measured[s->task[p]]++;
        }
    for (int p = 0; p < s->count; p++) {
        const int known = measured[s->task[p]];
        const bool own = !isnan(s->label[p]);
        mean[p] = own ? s->label[p] : mean[p] + (known > 0 ? (float)(off[s->task[p]] / known) : 0);
        variance[p] = own ? (s->error != NULL ? s->error[p] : 0) : sqrtf(variance[p]);
    }
    s->label = mean;
    s->error = variance;
    return TL_OK;
}

static tl_status learn_in(tl_cost_network *n, tl_cost_network *new, const tl_cost_samples *samples,
                          const tl_cost_samples *held_out, const tl_train_options *o, bool adapting,
                          tl_arena *arena, tl_diag *diag)
{
    tl_cost_samples s = *samples;
    TL_TRY(be_taught(&s, o, arena, diag));
    if (adapting)
        memcpy(new->weights.value, n->weights.value, sizeof(float) * n->weights.size);
    return tl_network_train(new, &s, held_out, o, adapting, diag);
}

static tl_status learn(tl_cost_network *n, const tl_cost_samples *samples,
                       const tl_cost_samples *held_out, const tl_train_options *o, bool adapting,
                       tl_diag *diag)
{
    tl_cost_network *new;
    TL_TRY(check_kinds(n->net, samples, diag));
    TL_TRY(make_like(n, adapting ? &n->model.shape : &samples->shape, &new, diag));
    tl_status status = tl_cost_model_fits(&new->model, &samples->shape, diag);
    if (status == TL_OK && held_out != NULL)
        status = tl_cost_model_fits(&new->model, &held_out->shape, diag);
    if (status != TL_OK) {
        tl_network_destroy(&new->model);
        return status;
    }
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        tl_network_destroy(&new->model);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    status = learn_in(n, new, samples, held_out, o, adapting, arena, diag);
    tl_arena_destroy(arena);
    if (status != TL_OK) {
        tl_network_destroy(&new->model);
        return status;
    }
    if (o->checkpoint != NULL)
        unlink(o->checkpoint);
    become(n, new);
    return TL_OK;
}

tl_status tl_network_learn(tl_cost_model *model, const tl_cost_samples *samples,
                           const tl_cost_samples *held_out, const tl_train_options *options,
                           tl_diag *diag)
{
    return learn((tl_cost_network *)model, samples, held_out, options, false, diag);
}

tl_status tl_network_adapt(tl_cost_model *model, const tl_cost_samples *samples,
                           const tl_train_options *options, tl_diag *diag)
{
    tl_cost_network *n = (tl_cost_network *)model;
    return learn(n, samples, NULL, options, n->weights.value != NULL, diag);
}

tl_status tl_network_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                               const tl_train_options *options, double *loss, tl_diag *diag)
{
    tl_cost_network *n = (tl_cost_network *)model;
    if (n->weights.value == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the cost model \"%s\" has learned nothing yet",
                       n->net->type->name);
    tl_scratch scratch = { .arena = tl_arena_create(0) };
    if (scratch.arena == NULL || TL_ARENA_GUARD(scratch.arena)) {
        tl_arena_destroy(scratch.arena);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_weights_forget_gradients(&n->weights);
    *loss = tl_network_loss(n, samples, options, &scratch);
    tl_arena_destroy(scratch.arena);
    return TL_OK;
}

int tl_network_parameters(tl_cost_model *model, const tl_parameter **out)
{
    tl_cost_network *n = (tl_cost_network *)model;
    *out = n->parameters;
    return n->parameter_count;
}

/* --- predicting ------------------------------------------------------------------------------------------------------- */

enum {
    PIECE = 64,
    UNBUILT_PIECE = 256
}; /* programs at once: what they leave stays in the caches */

bool tl_network_predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                        float *variance)
{
    tl_cost_network *n = (tl_cost_network *)model;
    if (n->weights.value == NULL)
        return false;
    tl_scratch scratch = { .arena = tl_arena_create(0) };
    if (scratch.arena == NULL || TL_ARENA_GUARD(scratch.arena)) {
        tl_arena_destroy(scratch.arena);
        return false;
    }
    int wanted[UNBUILT_PIECE];
    const int most = n->net->reads_rows ? PIECE : UNBUILT_PIECE;
    for (int from = 0; from < programs->count; from += most) {
        const int count = programs->count - from < most ? programs->count - from : most;
        tl_cost_batch b = { programs, .scratch = &scratch, .count = count, .programs = wanted };
        for (int i = 0; i < count; i++)
            wanted[i] = from + i;
        tl_scratch_reset(&scratch);
        tl_network_gather(n, &b);
        n->net->forward(n, &b);
        for (int i = 0; i < count; i++) {
            mean[from + i] = b.mean[i];
            variance[from + i] = expf(b.spread[i]);
        }
    }
    tl_arena_destroy(scratch.arena);
    return true;
}

/* --- what a file keeps ------------------------------------------------------------------------------------------------ */

/* "networks trained-on 36046 held-out 0.5 weights 312345\n" and the weights, floats as this machine has them:
 * little-endian. */
tl_status tl_network_write(const tl_cost_model *model, tl_text *out, tl_diag *diag)
{
    const tl_cost_network *n = (const tl_cost_network *)model;
    (void)diag;
    tl_text_format(out, "trained-on %.0f held-out %.9g weights %zu\n", n->trained_on, n->held_out,
                   n->weights.value != NULL ? n->weights.size : 0);
    if (n->weights.value != NULL)
        tl_text_add_bytes(out, n->weights.value, sizeof(float) * n->weights.size);
    return TL_OK;
}

static const float most_weight = 1e6F;

static tl_status read_weights(tl_cost_network *n, const void *bytes, size_t count, tl_diag *diag)
{
    declare(n);
    if (n->weights.failed || n->weights.size != count)
        return tl_fail(diag, TL_BAD_TEXT,
                       "it has %zu weights, not the %zu of its settings and columns", count,
                       n->weights.size);
    if (!allocate(n))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    memcpy(n->weights.value, bytes, sizeof(float) * count);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(n->weights.value[i]) <= most_weight))
            return tl_fail(diag, TL_BAD_TEXT, "weight %zu is no number, or beyond all measure", i);
    return TL_OK;
}

tl_status tl_network_read(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag)
{
    tl_cost_network *n = (tl_cost_network *)model;
    char line[128] = "";
    const char *end =
        size > 0 ? memchr(bytes, '\n', size < sizeof line ? size : sizeof line) : NULL;
    size_t count;
    int used = 0;
    if (end == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "it does not say how many weights it has");
    const size_t head = (size_t)(end - (const char *)bytes) + 1;
    memcpy(line, bytes, head - 1);
    line[head - 1] = '\0';
    if (sscanf(line, "trained-on %lf held-out %lf weights %zu%n", &n->trained_on, &n->held_out,
               &count, &used) != 3 ||
        (size_t)used != head - 1 || count > SIZE_MAX / sizeof(float) ||
        size - head != count * sizeof(float))
        return tl_fail(diag, TL_BAD_TEXT, "its weights are not as many as it says");
    return count > 0 ? read_weights(n, end + 1, count, diag) : TL_OK;
}

void tl_network_describe(const tl_cost_model *model, tl_text *out)
{
    const tl_cost_network *n = (const tl_cost_network *)model;
    tl_text_format(out, "%s; ", n->net->words);
    tl_network_print_settings(model, out);
    if (n->weights.value == NULL) {
        tl_text_add(out, "; learned nothing yet\n");
        return;
    }
    tl_text_format(out, "; %zu weights, from %.0f programs", n->weights.size, n->trained_on);
    if (!isnan(n->held_out))
        tl_text_format(out, ", held-out loss %.3f", n->held_out);
    tl_text_add(out, "; reads");
    for (int kind = 0, any = 0; kind < TL_NETWORK_KINDS; kind++)
        if (tl_network_width(n, kind) > 0)
            tl_text_format(out, "%s %d columns a %s", any++ > 0 ? "," : "",
                           tl_network_width(n, kind), kind_names[kind]);
    tl_text_add(out, "\n");
}
