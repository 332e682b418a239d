/* ir/interpret/race.c: when two accesses of one element conflict, and the sentence that says so. The rule stands at the
 * top of ir/interpret/interpret_private.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "ir/interpret/interpret_private.h"

static bool lanes_combine(const tl_block_code *reduction, const tl_insn *loop)
{
    for (int i = 0; reduction != NULL && i < reduction->lane_count; i++)
        if (reduction->lanes[i] == loop->slot)
            return true;
    return false;
}

/* The open concurrent loop in another iteration of which `earlier` lies. */
static const tl_interp_level *other_iteration(const tl_frame *f, tl_stamp earlier,
                                              const tl_block_code *reduction)
{
    for (int i = f->level_count - 1; i >= 0; i--) {
        const tl_interp_level *level = &f->levels[i];
        if (earlier >= level->iteration)
            return NULL; /* the same iteration of this loop and of all around it */
        if (earlier >= level->first && !lanes_combine(reduction, level->loop))
            return level;
    }
    return NULL;
}

/* Threads that combine are those beside each other, at the same statement. Those of a warp, or warpgroup, go on together from
 * loop to loop over them, as far as what they hold together is concerned. */
static bool other_thread(const tl_frame *f, int memory, tl_stamp earlier, uint32_t thread,
                         const tl_block_code *reduction)
{
    bool is_held = tl_scope_threads[f->machine->memories[memory].buffer->scope] > 0;
    if (earlier < f->machine->segment || (is_held && earlier < f->machine->forked))
        return false;
    bool joins = reduction != NULL && reduction->joins_threads &&
                 (earlier & TL_SITE_MASK) == (tl_stamp)f->site;
    for (int axis = joins ? 1 : 0; axis < TL_THREAD_AXES; axis++) {
        uint32_t mine = tl_thread_at(f->thread, axis), theirs = tl_thread_at(thread, axis);
        if (mine != 0 && theirs != 0 && mine != theirs)
            return true;
    }
    return false;
}

bool tl_race_conflicts(const tl_frame *f, int memory, tl_stamp earlier, uint32_t thread,
                       const tl_block_code *reduction)
{
    return other_iteration(f, earlier, reduction) != NULL ||
           other_thread(f, memory, earlier, thread, reduction);
}

/* Which iteration of the open loop the stamp belongs to, -1 when not known. */
static int64_t iteration_of(const tl_frame *f, const tl_interp_level *level, tl_stamp stamp)
{
    const tl_insn *loop = level->loop;
    if (loop->starts == NULL)
        return -1;
    int64_t low = 0, high = f->slots[loop->slot];
    assert(low < high);
    while (low + 1 < high) {
        int64_t middle = low + (high - low) / 2;
        if (loop->starts[middle] <= stamp)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void thread_text(uint32_t thread, char *out, size_t size)
{
    static const char axes[] = "xyz";
    size_t used = 0;
    out[0] = '\0';
    for (int axis = 0; axis < TL_THREAD_AXES; axis++)
        if (tl_thread_at(thread, axis) != 0)
            used += (size_t)snprintf(out + used, size - used, "%sthreadIdx.%c = %" PRIu32,
                                     used ? ", " : "", axes[axis], tl_thread_at(thread, axis) - 1);
}

void tl_race_fail(tl_frame *f, int memory, int64_t offset, tl_access_kind earlier_kind,
                  tl_stamp earlier, uint32_t thread, tl_access_kind kind)
{
    static const char *const verbs[] = { "reads", "writes" };
    const tl_machine *m = f->machine;
    char element[256], before[256], now[256], where[512];
    tl_memory_element_text(&m->memories[memory], offset, element, sizeof element);
    tl_machine_where(f, f->site, where, sizeof where);

    const tl_interp_level *level = other_iteration(f, earlier, NULL);
    const char *between;
    if (level != NULL) {
        const char *name = level->loop->var->name;
        snprintf(before, sizeof before, "%s = %" PRId64, name, iteration_of(f, level, earlier));
        snprintf(now, sizeof now, "%s = %" PRId64, name, f->slots[level->loop->slot]);
        between = tl_loop_kind_infos[level->loop->kind].text;
    } else {
        thread_text(thread, before, sizeof before);
        thread_text(f->thread, now, sizeof now);
        between = "thread";
    }
    tl_machine_fail(f, TL_BAD_IR,
                    "race on %s: %s in iteration %s %s it, %s in iteration %s (%s) %s it, and "
                    "nothing orders these %s iterations",
                    element, m->sites[earlier & TL_SITE_MASK].name, before, verbs[earlier_kind],
                    m->sites[f->site].name, now, where, verbs[kind], between);
}
