/* driver/cost/cost_eval.c: tilth cost-model eval: models beside each other on what is held out, those without a file
 * trained first. */
#include <stdio.h>
#include <string.h>
#include "driver/cost/cost_lesson.h"
#include "runtime/base/file.h"

/* A model from a file is judged on the held-out side, or, where nothing is held out, on everything. */
static tl_status find_judged(const tl_lesson *l, tl_rows rows, const int **programs, int *count,
                             tl_diag *diag)
{
    tl_cost_samples unused;
    if (l->has_split) {
        TL_TRY(tl_lesson_side(l, rows, TL_SIDE_TEST, programs, &unused, diag));
        *count = unused.count;
        return TL_OK;
    }
    int *all = TL_NEW_ARRAY(l->arena, int, l->corpus->count);
    for (int i = 0; i < l->corpus->count; i++)
        all[i] = i;
    *programs = all;
    *count = l->corpus->count;
    return TL_OK;
}

static tl_status draw_calibration(const tl_lesson *l, const char *name, const tl_report_card *card,
                                  tl_diag *diag)
{
    tl_text svg = { 0 };
    if (l->o->plot == NULL)
        return TL_OK;
    tl_calibration_draw(&card->calibration, name, &svg);
    tl_status status = svg.failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                  : tl_file_write(l->o->plot, svg.data, svg.size, diag);
    tl_text_free(&svg);
    return status;
}

static tl_status judge_one(const tl_lesson *l, tl_model_spec *spec, uint64_t seed, tl_diag *diag)
{
    tl_model_group group = { .count = 1 };
    const int *programs;
    int count;
    tl_report_card card;
    TL_TRY(spec->type == NULL ? tl_model_group_load(l->arena, spec, &group, diag)
                              : tl_lesson_train(l, spec, seed, NULL, &group.models[0], diag));
    tl_status status = find_judged(l, spec->rows, &programs, &count, diag);
    if (status == TL_OK)
        status = tl_lesson_judge(l, l->corpus, spec->rows, programs, count, &group, &card, diag);
    tl_model_group_destroy(&group);
    TL_TRY(status);
    tl_card_print(l, spec->text, seed, &card);
    return draw_calibration(l, spec->text, &card, diag);
}

static tl_status eval(tl_lesson *l, tl_diag *diag)
{
    const tl_cost_settings *o = l->o;
    tl_model_spec specs[64];
    for (int i = 0; i < o->models.count; i++) {
        TL_TRY(tl_model_spec_read(l->arena, o->models.items[i], &specs[i], diag));
        if (specs[i].type != NULL && !l->has_split)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "'%s' is trained first, and so needs something held out: --split, "
                           "--hold-out or --machine-out",
                           specs[i].text);
    }
    tl_lesson_print(l);
    for (int i = 0; i < o->models.count; i++)
        for (int64_t s = 0; s < (specs[i].type != NULL ? o->seeds : 1); s++)
            TL_TRY(judge_one(l, &specs[i], (uint64_t)(o->seed + s), diag));
    return TL_OK;
}

tl_status tl_cost_eval(const tl_cost_settings *settings, tl_diag *diag)
{
    if (settings->file_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "eval needs data: files of tilth dataset, or databases");
    if (settings->models.count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "eval needs models: --model FILE or TYPE");
    if (settings->models.count > 64)
        return tl_fail(diag, TL_BAD_ARGUMENT, "eval judges at most 64 models, not %d",
                       settings->models.count);
    if (settings->plot != NULL && (settings->models.count > 1 || settings->seeds > 1))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--plot draws one model, of one seed");
    if (settings->seeds < 1 || settings->seeds > 1000)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--seeds: %lld is not in 1..1000",
                       (long long)settings->seeds);
    return tl_lesson_run(settings, true, eval, diag);
}
