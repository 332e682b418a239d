/* driver/cost/cost_update.c: tilth cost-model update: a model learns from new records, and stays what it was unless
 * that made it better.
 *
 * A part of the new workloads is held out, of a single one a part of its programs. New records that contradict what
 * the model knows so much that chance cannot be the reason (less than half of the pairs are in the order that it
 * expects) are taken for wrong: of another machine, or poisoned. What it learns from them must not cost it more than
 * a little on the data that --guard names. */
#include <math.h>
#include <stdio.h>
#include "driver/cost/cost_lesson.h"

/* What may be lost of the pairs without a reason: half a percent, and more of few programs, by chance. */
static double slack_of(int programs)
{
    return 0.005 + 0.25 / sqrt(programs > 0 ? programs : 1);
}

static double pairs_of(const tl_report_card *card)
{
    const tl_scores *s = &card->judgement.model;
    const tl_score *inside = &s->of[TL_METRIC_PAIRS], *across = &s->of[TL_METRIC_PAIRS_ACROSS];
    double n = (double)card->judgement.pairs[TL_METRIC_PAIRS],
           m = (double)card->judgement.pairs[TL_METRIC_PAIRS_ACROSS];
    double sum = (n > 0 ? n * inside->value : 0) + (m > 0 ? m * across->value : 0);
    return n + m > 0 ? sum / (n + m) : NAN;
}

typedef struct {
    const tl_corpus *corpus;
    const int *programs;
    int count;
    const char *name;
    double before, after;
} guard;

static tl_status judge_guard(const tl_lesson *l, tl_rows rows, const guard *g, tl_cost_model *model,
                             double *out, tl_diag *diag)
{
    tl_report_card card;
    const tl_model_group group = { { model }, 1 };
    TL_TRY(tl_lesson_judge(l, g->corpus, rows, g->programs, g->count, &group, &card, diag));
    *out = pairs_of(&card);
    return TL_OK;
}

static tl_status refuse_wrong(const tl_lesson *l, const guard *fresh, tl_diag *diag)
{
    if (l->o->force || isnan(fresh->before) || fresh->before >= 0.5)
        return TL_OK;
    return tl_fail(
        diag, TL_WRONG_RESULT,
        "of the new records' pairs only %.0f %% are in the order that the model expects: "
        "they are of another machine or wrong, and nothing was learned (--force)",
        100 * fresh->before);
}

static tl_status roll_back(const tl_lesson *l, const guard *g, tl_diag *diag)
{
    if (l->o->force || !(g->after < g->before - slack_of(g->count)))
        return TL_OK;
    return tl_fail(diag, TL_WRONG_RESULT,
                   "rolled back: on %s the update orders %.2f %% of the pairs rightly, %.2f %% "
                   "before (--force)",
                   g->name, 100 * g->after, 100 * g->before);
}

/* Two fifths of the programs of one workload, else a fifth of the workloads. */
static tl_status draw_fresh(tl_lesson *l, tl_diag *diag)
{
    const tl_split_options options = {
        .kind = l->corpus->workload_count >= 5 ? TL_SPLIT_TASK : TL_SPLIT_WITHIN_TASK,
        .test = l->corpus->workload_count >= 5 ? 0.2 : 0.4,
        .seed = (uint64_t)l->o->seed,
    };
    return tl_split_make(l->corpus, &options, l->side, &l->sizes, diag);
}

static tl_status open_old(tl_lesson *l, guard *old, tl_corpus **corpus, tl_diag *diag)
{
    if (l->o->guards.count == 0)
        return TL_OK;
    TL_TRY(tl_lesson_corpus(l, l->o->guards.items, l->o->guards.count, corpus, diag));
    int *all = TL_NEW_ARRAY(l->arena, int, (*corpus)->count);
    for (int i = 0; i < (*corpus)->count; i++)
        all[i] = i;
    *old = (guard){ *corpus, all, (*corpus)->count, "the data of --guard", NAN, NAN };
    return TL_OK;
}

static tl_status adapt(tl_lesson *l, const tl_model_spec *spec, tl_cost_model *model, guard *fresh,
                       guard *old, tl_diag *diag)
{
    const int *programs;
    tl_cost_samples train;
    TL_TRY(judge_guard(l, spec->rows, fresh, model, &fresh->before, diag));
    TL_TRY(refuse_wrong(l, fresh, diag));
    if (old->corpus != NULL)
        TL_TRY(judge_guard(l, spec->rows, old, model, &old->before, diag));
    TL_TRY(tl_lesson_side(l, spec->rows, TL_SIDE_TRAIN, &programs, &train, diag));
    const tl_train_options options = { .epochs = (int)l->o->epochs,
                                       .batch = (int)l->o->batch,
                                       .rate = l->o->rate,
                                       .stop = &tl_cost_stop };
    TL_TRY(tl_cost_model_adapt(model, &train, &options, diag));
    TL_TRY(judge_guard(l, spec->rows, fresh, model, &fresh->after, diag));
    TL_TRY(roll_back(l, fresh, diag));
    if (old->corpus == NULL)
        return TL_OK;
    TL_TRY(judge_guard(l, spec->rows, old, model, &old->after, diag));
    return roll_back(l, old, diag);
}

static void print_guard(const tl_lesson *l, const char *key, const guard *g)
{
    if (g->corpus == NULL)
        return;
    if (l->o->common.json)
        printf("{\"record\":\"guard\",\"data\":\"%s\",\"programs\":%d,\"before\":%.5f,"
               "\"after\":%.5f}\n",
               key, g->count, g->before, g->after);
    else
        printf("%s: %.2f %% of the pairs in the right order, %.2f %% before (%d programs)\n",
               g->name, 100 * g->after, 100 * g->before, g->count);
}

static tl_status update(tl_lesson *l, tl_diag *diag)
{
    tl_model_spec spec = { .text = l->o->models.items[0] };
    tl_cost_model *model = NULL;
    tl_corpus *old_corpus = NULL;
    const int *programs;
    tl_cost_samples held;
    TL_TRY(tl_model_spec_load(&spec, &model, diag));
    guard fresh = { .corpus = l->corpus, .name = "the new records that were held out" },
          old = { 0 };
    tl_status status = draw_fresh(l, diag);
    if (status == TL_OK)
        status = tl_lesson_side(l, spec.rows, TL_SIDE_TEST, &programs, &held, diag);
    if (status == TL_OK) {
        fresh.programs = programs;
        fresh.count = held.count;
        status = open_old(l, &old, &old_corpus, diag);
    }
    if (status == TL_OK)
        status = adapt(l, &spec, model, &fresh, &old, diag);
    if (status == TL_OK)
        status = tl_cost_model_save(model, l->o->output, diag);
    if (status == TL_OK) {
        print_guard(l, "new", &fresh);
        print_guard(l, "guard", &old);
        tl_written_print(l, l->o->output, model);
    }
    tl_corpus_close(old_corpus);
    tl_cost_model_destroy(model);
    return status;
}

tl_status tl_cost_update(const tl_cost_settings *settings, tl_diag *diag)
{
    tl_cost_settings own = *settings;
    if (settings->file_count < 2)
        return tl_fail(diag, TL_BAD_ARGUMENT, "update needs a model's file, and data");
    own.models = (tl_text_list){ 1, { settings->files[0] } };
    own.files = settings->files + 1;
    own.file_count = settings->file_count - 1;
    if (own.output == NULL)
        own.output = settings->files[0];
    return tl_lesson_run(&own, true, update, diag);
}
