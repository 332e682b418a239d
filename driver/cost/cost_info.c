/* driver/cost/cost_info.c: tilth cost-model info: the kinds of models that there are, and what is in files of them. */
#include <stdio.h>
#include <string.h>
#include "driver/cost/cost_lesson.h"

static void print_kinds(bool json)
{
    for (int i = 0; i < tl_cost_model_count; i++) {
        if (!json) {
            printf("%-10s %s\n", tl_cost_models[i]->name, tl_cost_model_words[i]);
            continue;
        }
        printf("{\"record\":\"cost_model_kind\",\"name\":\"%s\",\"words\":",
               tl_cost_models[i]->name);
        tl_print_json_text(tl_cost_model_words[i]);
        printf("}\n");
    }
}

static void print_columns_json(const char *name, const tl_columns *columns)
{
    printf(",\"%s\":{\"width\":%d,\"digest\":\"%s\"}", name, columns->width, columns->digest);
}

static void print_model(const tl_lesson *l, const char *path, const tl_cost_model *model, bool fits,
                        tl_rows rows)
{
    tl_text text = { 0 };
    const tl_parameter *parameters;
    tl_cost_model *open = (tl_cost_model *)(uintptr_t)model;
    int64_t numbers = 0;
    int count = tl_cost_model_parameters(open, &parameters);
    for (int i = 0; i < count; i++)
        numbers += (int64_t)parameters[i].rows * parameters[i].columns;
    tl_cost_model_describe(model, &text);
    if (l->o->common.json) {
        printf("{\"record\":\"cost_model\",\"file\":");
        tl_print_json_text(path);
        printf(",\"type\":\"%s\",\"parameters\":%lld,\"fits\":%s,\"rows\":\"%s\"",
               model->type->name, (long long)numbers, fits ? "true" : "false",
               fits ? tl_rows_infos[rows].text : "");
        print_columns_json("row", &model->shape.row);
        print_columns_json("decision", &model->shape.decision);
        print_columns_json("workload", &model->shape.workload);
        print_columns_json("machine", &model->shape.machine);
        printf(",\"words\":");
        tl_print_json_text(tl_text_get(&text));
        printf("}\n");
    } else {
        printf("%s\n%s", path, tl_text_get(&text));
        if (text.size > 0 && text.data[text.size - 1] != '\n')
            printf("\n");
        printf("fits this tilth: %s%s\n",
               fits ? "yes, rows of " : "no: other features or another space",
               fits ? tl_rows_infos[rows].text : "");
    }
    tl_text_free(&text);
}

static tl_status info(tl_lesson *l, tl_diag *diag)
{
    for (int i = 0; i < l->o->file_count; i++) {
        tl_cost_model *model = NULL;
        tl_model_spec spec = { .text = l->o->files[i] };
        tl_diag why = { { 0 } };
        tl_status fits = tl_model_spec_load(&spec, &model, &why);
        if (fits != TL_OK) /* it may be sound all the same */
            TL_TRY(tl_cost_model_load(spec.text, &model, diag));
        print_model(l, spec.text, model, fits == TL_OK, spec.rows);
        tl_cost_model_destroy(model);
    }
    return TL_OK;
}

tl_status tl_cost_info(const tl_cost_settings *settings, tl_diag *diag)
{
    if (settings->file_count == 0) {
        print_kinds(settings->common.json);
        return TL_OK;
    }
    return tl_lesson_run(settings, false, info, diag);
}
