/* tuner/search/space.c: points of a task's space, built by running its sketch rules with a decider. */
#include "tuner/search/space.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/text.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tuner/search/decision_kind.h"

struct tl_space {
    const tl_measure_task *task;
    const tl_target *target;
    int threads;
    tl_space_kind kind;
    const tl_program **programs; /* one a lowering */
};

const tl_space_info tl_space_infos[TL_SPACE_KIND_COUNT] = {
#define SPACE(name, text, schedule, mark, revision, words) \
    [TL_SPACE_##name] = { text, words, revision },
#include "tuner/search/spaces.def"
#undef SPACE
};

/* How a point becomes a schedule, and how its name begins. */
static const struct {
    tl_status (*schedule)(tl_schedule *s, tl_diag *diag);
    const char *mark;
} kinds[TL_SPACE_KIND_COUNT] = {
#define SPACE(name, text, schedule, mark, revision, words) [TL_SPACE_##name] = { schedule, mark },
#include "tuner/search/spaces.def"
#undef SPACE
};

bool tl_space_kind_from_text(const char *text, tl_space_kind *out)
{
    for (int i = 0; i < TL_SPACE_KIND_COUNT; i++)
        if (strcmp(tl_space_infos[i].name, text) == 0) {
            *out = (tl_space_kind)i;
            return true;
        }
    return false;
}

tl_status tl_space_create(tl_arena *arena, const tl_measure_task *task, const tl_target *target,
                          int threads, tl_space_kind kind, tl_space **out, tl_diag *diag)
{
    tl_space *space = TL_NEW(arena, tl_space);
    space->task = task;
    space->target = target;
    space->threads = threads;
    space->kind = kind;
    space->programs = TL_NEW_ARRAY(arena, const tl_program *, task->lowering_count);
    for (int i = 0; i < task->lowering_count; i++) {
        tl_program *program;
        const char *name = task->lowerings[i].name;
        TL_TRY(tl_program_parse(arena, task->lowerings[i].program, name, &program, diag));
        space->programs[i] = program;
    }
    *out = space;
    return TL_OK;
}

const tl_measure_task *tl_space_task(const tl_space *space)
{
    return space->task;
}

const tl_target *tl_space_target(const tl_space *space)
{
    return space->target;
}

tl_space_kind tl_space_kind_of(const tl_space *space)
{
    return space->kind;
}

int tl_space_threads(const tl_space *space)
{
    return space->threads;
}

const tl_program *tl_space_program(const tl_space *space, int lowering)
{
    assert(lowering >= 0 && lowering < space->task->lowering_count);
    return space->programs[lowering];
}

/* --- building --------------------------------------------------------------------------------------------------- */

/* Where the answers come from: wishes by name, else random numbers, else the analytic model. */
typedef struct {
    const tl_space *space;
    const tl_wish *wishes;
    int wish_count;
    tl_random *random; /* NULL: none */
    /* For the first decisions, in order, the option's place; the rest takes the first. */
    const int *path;
    int path_count, met;
} answers;

static int nearest_option(const tl_decision *open, int64_t value)
{
    int best = open->initial;
    double least = -1;
    for (int i = 0; i < open->count; i++) {
        double distance = (double)open->options[i] - (double)value;
        distance = distance < 0 ? -distance : distance;
        if (least < 0 || distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}

static int answer(void *user, const tl_decision *open)
{
    answers *from = user;
    if (from->space->threads == 1 && tl_decision_kind_of(open) == TL_DECISION_PARALLEL)
        return TL_DECIDE_CLOSED;
    if (from->path != NULL)
        return from->met < from->path_count ? from->path[from->met++] : 0;
    for (int i = 0; i < from->wish_count; i++)
        if (strcmp(from->wishes[i].name, open->name) == 0)
            return nearest_option(open, from->wishes[i].value);
    return from->random != NULL ? (int)tl_random_below(from->random, open->count) : open->initial;
}

static tl_status build(const tl_space *space, tl_arena *arena, int lowering, answers *from,
                       tl_variant *out, tl_diag *diag)
{
    tl_schedule *s = tl_schedule_create(arena, space->programs[lowering], space->target, false);
    from->space = space;
    tl_schedule_set_decider(s, answer, from);
    TL_TRY(kinds[space->kind].schedule(s, diag));
    memset(out, 0, sizeof *out);
    out->program = tl_schedule_program(s);
    out->point.lowering = lowering;
    out->point.count = tl_schedule_decisions(s, &out->point.decisions);
    snprintf(out->hash, sizeof out->hash, "%016" PRIx64, tl_program_hash(out->program));

    tl_text trace = { 0 };
    tl_text_format(&trace, "%s ", kinds[space->kind].mark);
    tl_point_print(space, &out->point, &trace);
    tl_text_add(&trace, "\n");
    tl_trace_print(tl_schedule_trace(s), &trace);
    bool failed = trace.failed;
    out->trace = tl_arena_strdup(arena, tl_text_get(&trace));
    tl_text_free(&trace);
    return failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}

tl_status tl_space_build(const tl_space *space, tl_arena *arena, int lowering,
                         const tl_wish *wishes, int wish_count, tl_variant *out, tl_diag *diag)
{
    if (lowering < 0 || lowering >= space->task->lowering_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "task %s has %d lowerings, not number %d",
                       space->task->name, space->task->lowering_count, lowering);
    answers from = { .wishes = wishes, .wish_count = wish_count };
    return build(space, arena, lowering, &from, out, diag);
}

tl_status tl_space_sample(const tl_space *space, tl_arena *arena, tl_random *random,
                          tl_variant *out, tl_diag *diag)
{
    answers from = { .random = random };
    int lowering = (int)tl_random_below(random, space->task->lowering_count);
    return build(space, arena, lowering, &from, out, diag);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

enum { DESCENTS = 48, MOST_COUNTED = 256, MOST_DECISIONS = 256 };

/* One point on the way; what it was built with is given back. */
static tl_status look_at(const tl_space *space, int lowering, answers *from,
                         int counts[MOST_DECISIONS], int taken[MOST_DECISIONS], int *count,
                         tl_diag *diag)
{
    tl_variant v;
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = TL_NO_MEMORY;
    *count = 0;
    if (!TL_ARENA_GUARD(arena))
        status = build(space, arena, lowering, from, &v, diag);
    for (int i = 0; status == TL_OK && i < v.point.count && i < MOST_DECISIONS; i++) {
        counts[i] = v.point.decisions[i].count;
        taken[i] = v.point.decisions[i].taken;
        *count = i + 1;
    }
    tl_arena_destroy(arena);
    return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
}

tl_status tl_space_count(const tl_space *space, int lowering, uint64_t seed, tl_space_size *out,
                         tl_diag *diag)
{
    int counts[MOST_DECISIONS], taken[MOST_DECISIONS], path[MOST_DECISIONS], count;
    tl_random random = tl_random_make(seed);
    *out = (tl_space_size){ 0 };
    for (int i = 0; i < DESCENTS; i++) {
        double product = 1;
        answers from = { .random = &random };
        TL_TRY(look_at(space, lowering, &from, counts, taken, &count, diag));
        for (int k = 0; k < count; k++)
            product *= counts[k];
        out->points += product / DESCENTS;
    }
    if (out->points > MOST_COUNTED / 2)
        return TL_OK;
    /* every path in turn: the last decision that has another option takes it */
    int64_t points = 0;
    for (int length = 0; points <= MOST_COUNTED; points++) {
        answers from = { .path = path, .path_count = length };
        TL_TRY(look_at(space, lowering, &from, counts, taken, &count, diag));
        while (count > 0 && taken[count - 1] + 1 == counts[count - 1])
            count--;
        if (count == 0) {
            *out = (tl_space_size){ (double)(points + 1), true };
            return TL_OK;
        }
        for (length = 0; length < count; length++)
            path[length] = taken[length];
        path[length - 1]++;
    }
    return TL_OK;
}

/* --- points as data and as text ----------------------------------------------------------------------------------- */

tl_point tl_point_copy(tl_arena *arena, const tl_point *point)
{
    tl_point copy = *point;
    tl_decision *decisions = TL_NEW_ARRAY(arena, tl_decision, point->count);
    for (int i = 0; i < point->count; i++) {
        decisions[i] = point->decisions[i];
        decisions[i].name = tl_arena_strdup(arena, point->decisions[i].name);
        decisions[i].options =
            tl_arena_copy(arena, point->decisions[i].options,
                          sizeof(int64_t) * (size_t)point->decisions[i].count, _Alignof(int64_t));
    }
    copy.decisions = decisions;
    return copy;
}

void tl_point_print(const tl_space *space, const tl_point *point, tl_text *out)
{
    tl_text_add(out, space->task->lowerings[point->lowering].name);
    for (int i = 0; i < point->count; i++) {
        const tl_decision *d = &point->decisions[i];
        tl_text_format(out, " %s=%lld", d->name, (long long)d->options[d->taken]);
    }
}

bool tl_point_kind(const char *trace, tl_space_kind *kind, size_t *mark)
{
    for (int k = 0; k < TL_SPACE_KIND_COUNT; k++) {
        *mark = strlen(kinds[k].mark);
        *kind = (tl_space_kind)k;
        if (strncmp(trace, kinds[k].mark, *mark) == 0)
            return true;
    }
    return false;
}

static int find_lowering(const tl_space *space, const char *name, size_t size)
{
    for (int i = 0; i < space->task->lowering_count; i++)
        if (strlen(space->task->lowerings[i].name) == size &&
            memcmp(space->task->lowerings[i].name, name, size) == 0)
            return i;
    return -1;
}

bool tl_point_read(const tl_space *space, tl_arena *arena, const char *trace, int *lowering,
                   tl_wish **wishes, int *wish_count)
{
    size_t mark = strlen(kinds[space->kind].mark);
    if (strncmp(trace, kinds[space->kind].mark, mark) != 0)
        return false;
    const char *end = trace + strcspn(trace, "\n"), *p = trace + mark;
    int capacity = 0, count = 0;
    for (const char *c = p; c < end; c++)
        capacity += *c == '=';
    tl_wish *found = TL_NEW_ARRAY(arena, tl_wish, capacity);
    *lowering = -1;
    while (p < end) {
        p += strspn(p, " ");
        size_t size = strcspn(p, " \n"), name = strcspn(p, "= \n");
        if (size == 0)
            break;
        if (*lowering < 0) {
            *lowering = find_lowering(space, p, size);
            if (*lowering < 0)
                return false;
        } else if (name < size) {
            char *rest;
            int64_t value = strtoll(p + name + 1, &rest, 10);
            if (rest != p + size)
                return false;
            found[count++] = (tl_wish){ tl_arena_strndup(arena, p, name), value };
        } else {
            return false;
        }
        p += size;
    }
    *wishes = found;
    *wish_count = count;
    return *lowering >= 0;
}
