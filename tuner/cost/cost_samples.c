/* tuner/cost/cost_samples.c: parts of samples, which share rows and tokens with the whole. */
#include "tuner/cost/cost_samples.h"
#include <string.h>
#include "ir/program/machine.h"
#include "runtime/base/map.h"
#include "tuner/cost/cost_private.h"
#include "tuner/cost/features.h"

tl_sample_shape tl_sample_shape_of_rows(void)
{
    tl_sample_shape shape = { .row = { .width = TL_FEATURE_WIDTH } };
    char name[48];
    tl_digest digest;
    tl_digest_start(&digest);
    for (int i = 0; i < TL_FEATURE_WIDTH; i++) {
        tl_feature_name(i, name);
        tl_digest_add(&digest, name, strlen(name) + 1);
    }
    tl_digest_text(&digest, shape.row.digest);
    return shape;
}

bool tl_columns_equal(const tl_columns *a, const tl_columns *b)
{
    return a->width == b->width && (a->width == 0 || strcmp(a->digest, b->digest) == 0);
}

const tl_machine *tl_cost_samples_machine(const tl_cost_samples *s, int program)
{
    int domain = s->domain != NULL ? s->domain[s->task[program]] : 0;
    const tl_machine *machine = s->profiles != NULL ? s->profiles[domain] : NULL;
    return machine != NULL ? machine : &tl_machine_built_in;
}

static const int *pick_ints(tl_arena *arena, const int *from, const int *programs, int count)
{
    if (from == NULL)
        return NULL;
    int *out = TL_NEW_ARRAY(arena, int, count);
    for (int i = 0; i < count; i++)
        out[i] = from[programs[i]];
    return out;
}

static const float *pick_floats(tl_arena *arena, const float *from, const int *programs, int count)
{
    if (from == NULL)
        return NULL;
    float *out = TL_NEW_ARRAY(arena, float, count);
    for (int i = 0; i < count; i++)
        out[i] = from[programs[i]];
    return out;
}

tl_cost_samples tl_cost_samples_pick(tl_arena *arena, const tl_cost_samples *from,
                                     const int *programs, int count)
{
    tl_cost_samples part = *from;
    part.count = count;
    part.first_row = pick_ints(arena, from->first_row, programs, count);
    part.row_count = pick_ints(arena, from->row_count, programs, count);
    part.first_decision = pick_ints(arena, from->first_decision, programs, count);
    part.decision_count = pick_ints(arena, from->decision_count, programs, count);
    part.task = pick_ints(arena, from->task, programs, count);
    part.label = pick_floats(arena, from->label, programs, count);
    part.error = pick_floats(arena, from->error, programs, count);
    part.weight = pick_floats(arena, from->weight, programs, count);
    return part;
}

tl_cost_samples tl_cost_samples_select(tl_arena *arena, const tl_cost_samples *from,
                                       const bool *wanted)
{
    int *programs = TL_NEW_ARRAY(arena, int, from->count), count = 0;
    for (int p = 0; p < from->count; p++)
        if (wanted[from->task[p]])
            programs[count++] = p;
    return tl_cost_samples_pick(arena, from, programs, count);
}
