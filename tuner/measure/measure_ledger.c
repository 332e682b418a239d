/* tuner/measure/measure_ledger.c: questions by their keys, in order. */
#include "tuner/measure/measure_ledger.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"

tl_status tl_ledger_add_task(tl_ledger *l, const tl_measure_task *spec, tl_diag *diag)
{
    if (!TL_HEAP_ROOM(l->tasks, l->count, l->capacity))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_asked_task *t = &l->tasks[l->count++];
    *t = (tl_asked_task){ .workload = strdup(spec->workload != NULL ? spec->workload : ""),
                          .lowering_count = spec->lowering_count,
                          .lowerings = calloc((size_t)spec->lowering_count + 1, 64) };
    if (t->workload == NULL || t->lowerings == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    for (int i = 0; i < spec->lowering_count; i++)
        snprintf(t->lowerings[i], 64, "%s", spec->lowerings[i].name);
    return TL_OK;
}

static void make_key(const tl_ledger *l, int task, const tl_candidate *c, char key[33])
{
    assert(task >= 0 && task < l->count && c->lowering >= 0);
    tl_digest digest;
    const tl_asked_task *t = &l->tasks[task];
    const char *parts[] = { t->workload,
                            t->lowerings[c->lowering],
                            c->trace != NULL ? "trace" : "program",
                            c->trace != NULL ? c->trace : c->program,
                            c->checks_only ? "checked"
                            : c->careful   ? "careful"
                                           : "",
                            tl_cold_infos[c->cold].text };
    tl_digest_start(&digest);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        tl_digest_add(&digest, parts[i], strlen(parts[i]) + 1);
    tl_digest_text(&digest, key);
}

tl_status tl_ledger_ask(tl_ledger *l, int task, const tl_candidate *candidates, int count,
                        int64_t ticket, tl_diag *diag)
{
    assert(count >= 0 && (count == 0 || candidates != NULL));
    for (int i = 0; i < count; i++) {
        tl_asked *a = calloc(1, sizeof *a);
        if (a == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "out of memory");
        a->ticket = ticket + i;
        a->task = task;
        make_key(l, task, &candidates[i], a->key);
        *l->last = a;
        l->last = &a->next;
        l->queued++;
    }
    return TL_OK;
}

void tl_ledger_drop_first(tl_ledger *l)
{
    assert(l->first != NULL && l->queued > 0);
    tl_asked *a = l->first;
    l->first = a->next;
    if (l->first == NULL)
        l->last = &l->first;
    l->queued--;
    free(a);
}

void tl_ledger_forget(tl_ledger *l, int task)
{
    tl_asked **link = &l->first;
    while (*link != NULL) {
        tl_asked *a = *link;
        if (task >= 0 && a->task != task) {
            link = &a->next;
            continue;
        }
        *link = a->next;
        l->queued--;
        free(a);
    }
    l->last = link;
}

void tl_ledger_free(tl_ledger *l)
{
    tl_ledger_forget(l, -1);
    for (int i = 0; i < l->count; i++) {
        free(l->tasks[i].workload);
        free(l->tasks[i].lowerings);
    }
    free(l->tasks);
}
