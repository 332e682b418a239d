/* tuner/run/remember_task.c: workload, programs and profile go into the store beside the records. */
#include "tuner/run/remember_task.h"

static void add(tl_records *store, const char *kind, const char *name, const char *text)
{
    const tl_annex annex = { .kind = kind, .name = name, .text = text };
    tl_records_add_annex(store, &annex, NULL);
}

void tl_remember_task(tl_records *store, const tl_tune_task *task, const tl_machine *profile)
{
    const tl_measure_task *measure = task->measure;
    tl_text text = { 0 };
    tl_records_add_workload(store, task->workload, NULL);
    for (int i = 0; i < measure->lowering_count; i++) {
        text.size = 0;
        tl_text_format(&text, "%s %s", measure->workload, measure->lowerings[i].name);
        add(store, "program", tl_text_get(&text), measure->lowerings[i].program);
    }
    if (profile != NULL) {
        text.size = 0;
        tl_machine_print(profile, &text);
        add(store, "machine", profile->digest, tl_text_get(&text));
    }
    tl_text_free(&text);
}
