/* tuner/transfer/transfer.c: what the donors of a class have to offer a task, in the order of what is expected of it. */
#include "tuner/transfer/transfer.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "tuner/cost/cost_list.h"
#include "tuner/cost/features.h"
#include "tuner/search/tokens.h"
#include "tuner/transfer/transfer_private.h"

enum {
    MOST_ADAPTED = 64
}; /* donors of a task, the nearest in shape: building one takes half a millisecond and more */

typedef struct {
    const tl_donor *donor;
    double distance;
    bool is_kin;
} near_donor;

/* What was made of them, and how a cost model sees the programs. */
typedef struct {
    tl_arena *arena;
    tl_transferred *all;
    int count, capacity;
    tl_map *programs;  /* their hashes, and that of the default schedule */
    tl_cost_list seen; /* one an offer */
    tl_tokens *tokens; /* NULL: the model that ranks reads no decisions */
} offers;

static int nearest_first(const void *a, const void *b)
{
    const near_donor *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    if (x->donor->record->score_ns != y->donor->record->score_ns)
        return x->donor->record->score_ns < y->donor->record->score_ns ? -1 : 1;
    return strcmp(x->donor->record->uid, y->donor->record->uid);
}

/* Records of the task's own workload on this target are no donors: they are known. */
static bool is_own(const tl_space *space, const tl_donor *donor, const char *workload)
{
    char fingerprint[160];
    tl_target_fingerprint(tl_space_target(space), tl_space_threads(space), fingerprint);
    return strcmp(donor->workload->workload, workload) == 0 &&
           strcmp(donor->record->target, fingerprint) == 0;
}

/* `kin` is the kernel's, "" of none, for a donor of another class. Negative: it is no donor of that kernel. */
static double distance_of(tl_arena *arena, const tl_program *own, const char *kin,
                          const tl_donor *donor, bool is_kin)
{
    tl_program *program;
    const char *its;
    if (tl_program_parse(arena, donor->workload->program, "donor", &program, NULL) != TL_OK)
        return -1;
    if (!is_kin)
        return tl_shape_distance(own, program);
    return tl_kin_of(arena, program, &its) && strcmp(kin, its) == 0 ? tl_kin_distance(own, program)
                                                                    : -1;
}

/* The donors of the class, and of the kin if they are wanted, in the order of their distance; those whose program is another
 * after all are left out. */
static near_donor *order_donors(const tl_transfer *how, const tl_space *space,
                                const char *class_key, const char *workload, tl_arena *arena,
                                int *count)
{
    near_donor *out = TL_NEW_ARRAY(arena, near_donor, how->donors->count);
    const tl_program *own = tl_space_program(space, 0);
    const char *kin = "";
    *count = 0;
    if (how->kin)
        tl_kin_of(arena, own, &kin);
    for (int i = 0; i < how->donors->count; i++) {
        const tl_donor *d = &how->donors->donors[i];
        bool is_kin = strcmp(d->workload->class_key, class_key) != 0;
        if ((is_kin && !how->kin) || (!d->from_elsewhere && is_own(space, d, workload)))
            continue;
        double distance = distance_of(arena, own, kin, d, is_kin);
        if (distance >= 0)
            out[(*count)++] = (near_donor){ d, distance, is_kin };
    }
    if (*count > 0)
        qsort(out, (size_t)*count, sizeof *out, nearest_first);
    return out;
}

/* Of a schedule that is a trace and no point, no decisions. */
static void add_program(offers *o, const tl_adapted *a, const tl_target *target, tl_arena *scratch)
{
    const float *rows, *decisions = NULL;
    int row_count = tl_features_of(scratch, a->scheduled, target, &rows);
    int decision_count = o->tokens != NULL && a->route == TL_ROUTE_ANSWERS
                             ? tl_tokens_of_point(o->tokens, scratch, &a->point, &decisions)
                             : 0;
    tl_cost_list_add(&o->seen, rows, row_count, decisions, decision_count);
}

/* Keeps what a donor came to, unless it is a program that is there. */
static void keep(offers *o, const near_donor *from, const tl_adapted *a, const tl_target *target,
                 tl_arena *scratch)
{
    if (tl_map_has(o->programs, a->program))
        return;
    tl_map_put(o->programs, tl_arena_strdup(o->arena, a->program), o);
    add_program(o, a, target, scratch);
    TL_ROOM(o->arena, o->all, o->count, o->capacity);
    tl_transferred *t = &o->all[o->count++];
    *t = (tl_transferred){ .donor = from->donor,
                           .route = a->route,
                           .adapted = tl_arena_strdup(o->arena, a->adapted),
                           .distance = from->distance,
                           .is_kin = from->is_kin,
                           .score = (float)-from->distance,
                           .lowering = a->lowering,
                           .trace = tl_arena_strdup(o->arena, a->trace) };
    memcpy(t->program, a->program, sizeof t->program);
}

/* One donor, in an arena of its own; a guard that the caller has set is his again afterwards. */
static tl_status take(const tl_transfer *how, const tl_space *space, const near_donor *from,
                      offers *o, tl_diag *diag)
{
    tl_adapted adapted;
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    volatile tl_status status = TL_NO_MEMORY; /* features may run out of memory, too */
    if (!TL_ARENA_GUARD(scratch)) {
        status = tl_transfer_adapt(space, from->donor, how->only_trace, scratch, &adapted, diag);
        if (status == TL_OK) {
            status = TL_NO_MEMORY;
            keep(o, from, &adapted, tl_space_target(space), scratch);
            status = TL_OK;
        }
    }
    tl_arena_destroy(scratch);
    return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
}

static void rank(const tl_transfer *how, const tl_space *space, const tl_workload_info *own,
                 offers *o)
{
    if (how->model == NULL || o->count == 0)
        return;
    float *mean = TL_NEW_ARRAY(o->arena, float, o->count), *workload = NULL, *machine = NULL;
    if (o->tokens != NULL) {
        workload = TL_NEW_ARRAY(o->arena, float, tl_cost_token_width(TL_COST_TOKEN_WORKLOAD));
        machine = TL_NEW_ARRAY(o->arena, float, tl_cost_token_width(TL_COST_TOKEN_MACHINE));
        tl_cost_token_of_workload(o->tokens, own->family, (double)own->flops, (double)own->bytes,
                                  workload);
        tl_cost_token_of_machine(tl_space_target(space), machine);
    }
    const tl_cost_samples programs =
        tl_cost_list_samples(&o->seen, workload, machine, &tl_space_target(space)->machine);
    if (tl_cost_model_predict(how->model, &programs, mean, NULL))
        for (int i = 0; i < o->count; i++)
            o->all[i].score = -mean[i];
}

/* Tokens are for models that were trained with some. */
static bool wants_tokens(const tl_cost_model *model)
{
    return model != NULL &&
           model->shape.decision.width + model->shape.workload.width + model->shape.machine.width >
               0;
}

static int best_first(const void *a, const void *b)
{
    const tl_transferred *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return nearest_first(&(near_donor){ .donor = x->donor, .distance = x->distance },
                         &(near_donor){ .donor = y->donor, .distance = y->distance });
}

tl_status tl_transfer_to(const tl_transfer *how, const tl_space *space, const tl_workload_info *own,
                         int untuned, tl_arena *arena, const tl_transferred **out, int *count,
                         tl_diag *diag)
{
    int donor_count;
    tl_variant standard;
    offers o = { .arena = arena,
                 .programs = tl_map_create(arena),
                 .tokens = wants_tokens(how->model) ? tl_tokens_create(arena, space) : NULL };
    o.seen = (tl_cost_list){ .arena = arena,
                             .shape = o.tokens != NULL ? tl_sample_shape_of_points()
                                                       : tl_sample_shape_of_rows() };
    *out = NULL;
    *count = 0;
    near_donor *donors =
        order_donors(how, space, own->class_key, own->workload, arena, &donor_count);
    TL_TRY(tl_space_build(space, arena, untuned, NULL, 0, &standard, diag));
    tl_map_put(o.programs, tl_arena_strdup(arena, standard.hash), &o);
    for (int i = 0; i < donor_count && o.count < MOST_ADAPTED; i++)
        TL_TRY(take(how, space, &donors[i], &o, diag));
    rank(how, space, own, &o);
    if (o.count > 0)
        qsort(o.all, (size_t)o.count, sizeof *o.all, best_first);
    *out = o.all;
    *count = o.count < how->per_task ? o.count : how->per_task;
    return TL_OK;
}
