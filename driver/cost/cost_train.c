/* driver/cost/cost_train.c: tilth cost-model train: a new model in a file; on what is held out it is judged. */
#include <stdio.h>
#include "driver/cost/cost_lesson.h"

static tl_status read_spec(const tl_lesson *l, tl_model_spec *spec, tl_diag *diag)
{
    const tl_text_list *models = &l->o->models;
    if (models->count > 1)
        return tl_fail(diag, TL_BAD_ARGUMENT, "train makes one model, not %d (--model)",
                       models->count);
    TL_TRY(tl_model_spec_read(l->arena, models->count == 1 ? models->items[0] : "attention", spec,
                              diag));
    if (spec->type == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--model: '%s' is a file: train makes a new model (update goes on with one)",
                       spec->text);
    return TL_OK;
}

static tl_status judge_and_print(const tl_lesson *l, const tl_model_spec *spec,
                                 tl_cost_model *model, tl_diag *diag)
{
    const int *programs;
    tl_cost_samples test;
    tl_report_card card;
    if (l->sizes.programs[TL_SIDE_TEST] == 0)
        return TL_OK;
    TL_TRY(tl_lesson_side(l, spec->rows, TL_SIDE_TEST, &programs, &test, diag));
    const tl_model_group group = { { model }, 1 };
    TL_TRY(tl_lesson_judge(l, l->corpus, spec->rows, programs, test.count, &group, &card, diag));
    tl_card_print(l, spec->text, (uint64_t)l->o->seed, &card);
    return TL_OK;
}

static tl_status train(tl_lesson *l, tl_diag *diag)
{
    tl_model_spec spec;
    tl_cost_model *model = NULL;
    const tl_cost_settings *o = l->o;
    const char *checkpoint = o->checkpoint;
    TL_TRY(read_spec(l, &spec, diag));
    if (checkpoint == NULL)
        checkpoint = tl_arena_format(l->arena, "%s.checkpoint", o->output);
    tl_lesson_print(l);
    tl_status status = tl_lesson_train(l, &spec, (uint64_t)o->seed, checkpoint, &model, diag);
    if (status == TL_INTERRUPTED && !tl_quiet)
        fprintf(stderr, "tilth cost-model: interrupted; the same command goes on from %s\n",
                checkpoint);
    TL_TRY(status);
    status = tl_cost_model_save(model, o->output, diag);
    if (status == TL_OK) {
        tl_written_print(l, o->output, model);
        status = judge_and_print(l, &spec, model, diag);
    }
    tl_cost_model_destroy(model);
    return status;
}

tl_status tl_cost_train(const tl_cost_settings *settings, tl_diag *diag)
{
    if (settings->file_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "train needs data: files of tilth dataset, or databases");
    if (settings->output == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "train needs -o FILE");
    if (settings->unmeasured < 0 || settings->unmeasured > 100000)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--unmeasured: %lld is not in 0..100000",
                       (long long)settings->unmeasured);
    return tl_lesson_run(settings, true, train, diag);
}
