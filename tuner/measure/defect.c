/* tuner/measure/defect.c: a wrong or crashing candidate as files that replay it. */
#include "tuner/measure/defect.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/text.h"

/* A file name of what a task is called. */
static void add_name(tl_text *path, const char *name)
{
    size_t size = strnlen(name, 80);
    for (size_t i = 0; i < size; i++)
        tl_text_format(path, "%c", isalnum((unsigned char)name[i]) ? name[i] : '_');
}

void tl_defect_write(const char *folder, const tl_measure_task *task, const tl_candidate *candidate,
                     tl_result *result)
{
    assert(candidate->lowering >= 0 && candidate->lowering < task->lowering_count);
    const tl_measure_lowering *lowering = &task->lowerings[candidate->lowering];
    const char *program = candidate->trace != NULL ? lowering->program : candidate->program;
    const char *trace = candidate->trace != NULL ? candidate->trace : "";
    tl_text base = { 0 }, path = { 0 }, text = { 0 };
    result->reproducer[0] = '\0';
    uint64_t hash = tl_hash_bytes(trace, strlen(trace), tl_hash_bytes(program, strlen(program), 0));
    tl_text_format(&base, "%s/", folder);
    add_name(&base, task->name != NULL ? task->name : "kernel");
    tl_text_format(&base, "-%08x", (unsigned)hash);

    tl_text_format(&text, "# %s: ", tl_record_status_infos[result->status].text);
    for (const char *c = result->reason; *c; c++)
        tl_text_format(&text, *c == '\n' ? "\n# " : "%c", *c);
    tl_text_format(&text, "\n# workload %s, lowering %s\n%s", task->workload, lowering->name,
                   program);
    tl_text_format(&path, "%s.tk", tl_text_get(&base));
    bool ok = !text.failed && !path.failed && tl_folder_make(folder, NULL) == TL_OK &&
              tl_file_write(tl_text_get(&path), text.data, text.size, NULL) == TL_OK;
    if (ok && path.size < sizeof result->reproducer)
        snprintf(result->reproducer, sizeof result->reproducer, "%s", tl_text_get(&path));
    path.size = 0;
    tl_text_format(&path, "%s.tr", tl_text_get(&base));
    if (ok && *trace)
        tl_file_write(tl_text_get(&path), trace, strlen(trace), NULL);
    tl_text_free(&base);
    tl_text_free(&path);
    tl_text_free(&text);
}
