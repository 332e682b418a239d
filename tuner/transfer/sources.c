/* tuner/transfer/sources.c: from which run of the tuner to take schedules, by the paper's heuristic (Transfer-Tuning, Eq. 1):
 *
 *     the source T with the largest   sum over classes c of   P_c^2 * sqrt(|W_Tc|)
 *
 * P_c is the share of class c in the untuned time of what is to be made faster, W_Tc the workloads of that class in T. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "tuner/transfer/transfer.h"

typedef struct {
    tl_arena *arena;
    tl_transfer_source *sources;
    int count, capacity;
} list;

static tl_transfer_source *find_source(list *l, const char *session)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->sources[i].session, session) == 0)
            return &l->sources[i];
    TL_ROOM(l->arena, l->sources, l->count, l->capacity);
    l->sources[l->count] = (tl_transfer_source){ .session = session, .name = "" };
    return &l->sources[l->count++];
}

/* How many different workloads of a class a session has. */
static int count_workloads(tl_arena *arena, const tl_donors *donors, const char *session,
                           const char *class_key)
{
    tl_map *seen = tl_map_create(arena);
    int count = 0;
    for (int i = 0; i < donors->count; i++) {
        const tl_donor *d = &donors->donors[i];
        if (strcmp(d->record->session, session) != 0 ||
            strcmp(d->workload->class_key, class_key) != 0 ||
            tl_map_has(seen, d->workload->workload))
            continue;
        tl_map_put(seen, d->workload->workload, seen);
        count++;
    }
    return count;
}

static bool add_name(void *user, const tl_choice *choice)
{
    tl_text *names = user; /* "SESSION\tNAME\n": an arena must not jump out of SQLite */
    tl_text_format(names, "%s\t%s\n", choice->session, choice->name);
    return !names->failed;
}

static void name_sources(list *l, const char *names)
{
    while (*names) {
        size_t session = strcspn(names, "\t\n"), line = strcspn(names, "\n");
        for (int i = 0; i < l->count && session < line; i++)
            if (strlen(l->sources[i].session) == session &&
                memcmp(l->sources[i].session, names, session) == 0 && !*l->sources[i].name)
                l->sources[i].name =
                    tl_arena_strndup(l->arena, names + session + 1, line - session - 1);
        names += line + (names[line] == '\n');
    }
}

static int best_first(const void *a, const void *b)
{
    const tl_transfer_source *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return strcmp(x->session, y->session);
}

tl_status tl_transfer_sources(tl_records *store, tl_arena *arena, const tl_donors *donors,
                              const tl_class_share *shares, int share_count,
                              tl_transfer_source **out, int *count, tl_diag *diag)
{
    list l = { .arena = arena };
    tl_text names = { 0 };
    for (int i = 0; i < donors->count; i++)
        find_source(&l, donors->donors[i].record->session);
    for (int i = 0; i < l.count; i++)
        for (int c = 0; c < share_count; c++) {
            int workloads =
                count_workloads(arena, donors, l.sources[i].session, shares[c].class_key);
            l.sources[i].workloads += workloads;
            l.sources[i].score += shares[c].share * shares[c].share * sqrt(workloads);
        }
    tl_status status =
        store != NULL ? tl_records_visit_choices(store, NULL, add_name, &names, diag) : TL_OK;
    if (status == TL_OK && names.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (status == TL_OK)
        name_sources(&l, tl_text_get(&names));
    tl_text_free(&names);
    if (l.count > 0)
        qsort(l.sources, (size_t)l.count, sizeof *l.sources, best_first);
    *out = l.sources;
    *count = l.count;
    return status;
}
