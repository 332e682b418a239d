/* ir/interpret/interpret_fiber.c: runs the instructions. A fiber is a strand with its own variables; a thread loop forks one
 * for each iteration, and they take turns from barrier to barrier: in every segment each runs until it ends or
 * reaches a barrier, in order of its position; then all go on together. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ir/interpret/interpret_private.h"

tl_fiber *tl_fiber_create(tl_machine *m)
{
    tl_fiber *fiber = m->free_fibers;
    if (fiber != NULL) {
        m->free_fibers = fiber->next_free;
    } else {
        fiber = TL_NEW(m->arena, tl_fiber);
        fiber->frame.machine = m;
        fiber->frame.slots = TL_NEW_ARRAY(m->arena, int64_t, m->slot_count);
        fiber->frame.storages = TL_NEW_ARRAY(m->arena, tl_interp_storage *, m->memory_count);
        fiber->frame.levels = TL_NEW_ARRAY(m->arena, tl_interp_level, m->level_count);
    }
    fiber->state = TL_FIBER_READY;
    fiber->child_count = 0;
    fiber->at = 0;
    return fiber;
}

/* What the parent sees, the child sees: variables, buffers, open loops. */
static void inherit(tl_fiber *child, const tl_fiber *parent)
{
    assert(child != parent && child->frame.machine == parent->frame.machine);
    const tl_machine *m = parent->frame.machine;
    tl_frame *to = &child->frame;
    const tl_frame *from = &parent->frame;
    memcpy(to->slots, from->slots, (size_t)m->slot_count * sizeof *to->slots);
    memcpy(to->storages, from->storages, (size_t)m->memory_count * sizeof(tl_interp_storage *));
    memcpy(to->levels, from->levels, (size_t)from->level_count * sizeof *to->levels);
    to->level_count = from->level_count;
    to->thread = from->thread;
    to->site = from->site;
}

/* ---- concurrent loops ---- */

static void begin_iteration(tl_frame *f, tl_insn *loop)
{
    assert(f->level_count > 0);
    tl_machine *m = f->machine;
    tl_interp_level *level = &f->levels[f->level_count - 1];
    level->iteration = f->own = tl_machine_tick(m);
    if (loop->new_segment)
        m->segment = level->iteration;
    int64_t i = f->slots[loop->slot];
    if (i < loop->capacity)
        loop->starts[i] = level->iteration;
}

static void begin_concurrent(tl_frame *f, tl_insn *loop)
{
    enum { LONGEST_LOG = 1 << 20 };
    tl_machine *m = f->machine;
    int64_t extent = f->slots[loop->limit];
    if (loop->capacity < extent && extent <= LONGEST_LOG) {
        loop->starts = TL_NEW_ARRAY(m->arena, tl_stamp, extent);
        loop->capacity = extent;
    }
    f->levels[f->level_count++] = (tl_interp_level){ loop, tl_machine_tick(m), 0 };
    begin_iteration(f, loop);
}

static void end_concurrent(tl_frame *f)
{
    assert(f->level_count > 0);
    f->level_count--;
    tl_stamp around = f->level_count > 0 ? f->levels[f->level_count - 1].iteration : 0;
    f->own = around > f->resumed ? around : f->resumed;
}

/* ---- one fiber, until it ends, forks or waits ---- */

static void fork_threads(tl_fiber *fiber, const tl_insn *insn)
{
    tl_machine *m = fiber->frame.machine;
    int64_t extent = tl_code_integer(insn->code, &fiber->frame);
    int64_t most = tl_thread_mask[insn->axis] == 0x7f ? 64 : 1024;
    fiber->frame.site = insn->site;
    if (extent > most)
        tl_machine_fail(&fiber->frame, TL_BAD_IR,
                        "loop %s over %s has extent %" PRId64 ", a GPU block has at most %" PRId64,
                        insn->var->name, tl_loop_kind_infos[insn->kind].text, extent, most);
    if (insn->axis == 0)
        m->forked = tl_machine_tick(m);
    fiber->child_count = extent > 0 ? (int)extent : 0;
    if (fiber->child_count > fiber->child_capacity) {
        fiber->children = TL_NEW_ARRAY(m->arena, tl_fiber *, fiber->child_count);
        fiber->child_capacity = fiber->child_count;
    }
    for (int i = 0; i < fiber->child_count; i++) {
        tl_fiber *child = tl_fiber_create(m);
        inherit(child, fiber);
        child->frame.slots[insn->slot] = i;
        child->frame.thread |= (uint32_t)(i + 1) << tl_thread_shift[insn->axis];
        child->at = fiber->at + 1;
        fiber->children[i] = child;
    }
    fiber->at = insn->target;
    fiber->state = TL_FIBER_FORKED;
}

static void enter_same(tl_fiber *fiber, const tl_insn *insn)
{
    tl_frame *f = &fiber->frame;
    f->slots[insn->slot] = f->slots[insn->limit];
    int64_t extent = tl_code_integer(insn->code, f);
    fiber->at = f->slots[insn->slot] < extent ? fiber->at + 1 : insn->target;
}

static void run(tl_fiber *fiber)
{
    tl_frame *f = &fiber->frame;
    tl_machine *m = f->machine;
    for (;;) {
        tl_insn *insn = &m->insns[fiber->at];
        switch (insn->op) {
        case TL_INSN_BLOCK:
            tl_block_run(f, insn);
            fiber->at++;
            break;
        case TL_INSN_LOOP:
        case TL_INSN_CONCURRENT:
            f->site = insn->site;
            f->slots[insn->limit] = tl_code_integer(insn->code, f);
            f->slots[insn->slot] = 0;
            if (f->slots[insn->limit] <= 0) {
                fiber->at = insn->target;
                break;
            }
            if (insn->op == TL_INSN_CONCURRENT)
                begin_concurrent(f, insn);
            fiber->at++;
            break;
        case TL_INSN_NEXT:
            fiber->at =
                ++f->slots[insn->slot] < f->slots[insn->limit] ? insn->target : fiber->at + 1;
            break;
        case TL_INSN_CONCURRENT_NEXT:
            if (++f->slots[insn->slot] < f->slots[insn->limit]) {
                fiber->at = insn->target;
                begin_iteration(f, &m->insns[insn->target - 1]);
            } else {
                end_concurrent(f);
                fiber->at++;
            }
            break;
        case TL_INSN_FORK:
            fork_threads(fiber, insn);
            return;
        case TL_INSN_JOIN:
        case TL_INSN_END:
            fiber->state = TL_FIBER_DONE;
            return;
        case TL_INSN_SAME:
            enter_same(fiber, insn);
            break;
        case TL_INSN_ALLOC:
            tl_storage_take(f, insn->memory);
            fiber->at++;
            break;
        case TL_INSN_FREE:
            tl_storage_release(f, insn->memory);
            fiber->at++;
            break;
        case TL_INSN_BARRIER:
            if (f->thread != 0) {
                fiber->state = TL_FIBER_WAITING;
                return;
            }
            m->segment = tl_machine_tick(m);
            fiber->at++;
            break;
        case TL_INSN_BRANCH:
            f->site = insn->site;
            f->stamp = m->clock << TL_SITE_BITS | (tl_stamp)insn->site;
            fiber->at = tl_code_integer(insn->code, f) ? fiber->at + 1 : insn->target;
            break;
        case TL_INSN_JUMP:
            fiber->at = insn->target;
            break;
        case TL_INSN_PHASE:
            m->segment = tl_machine_tick(m);
            fiber->at++;
            break;
        }
    }
}

/* ---- the tree of fibers ---- */

static void join(tl_fiber *fiber)
{
    tl_machine *m = fiber->frame.machine;
    for (int i = 0; i < fiber->child_count; i++) {
        fiber->children[i]->next_free = m->free_fibers;
        m->free_fibers = fiber->children[i];
    }
    fiber->child_count = 0;
    fiber->state = TL_FIBER_READY;
}

/* Runs until it has ended or waits, itself or in its children. */
static void turn(tl_fiber *fiber)
{
    while (fiber->state == TL_FIBER_READY || fiber->state == TL_FIBER_FORKED) {
        if (fiber->state == TL_FIBER_READY) {
            fiber->frame.resumed = tl_machine_tick(fiber->frame.machine);
            fiber->frame.own = fiber->frame.resumed;
            run(fiber);
            continue;
        }
        bool all_done = true;
        for (int i = 0; i < fiber->child_count; i++) {
            turn(fiber->children[i]);
            all_done = all_done && fiber->children[i]->state == TL_FIBER_DONE;
        }
        if (!all_done)
            return;
        join(fiber);
    }
}

/* The first fiber without children that is not at the barrier where `waiting` is. */
static const tl_fiber *find_missing(const tl_fiber *fiber, const tl_fiber *waiting)
{
    if (fiber->state == TL_FIBER_FORKED) {
        const tl_fiber *missing = NULL;
        for (int i = 0; i < fiber->child_count && missing == NULL; i++)
            missing = find_missing(fiber->children[i], waiting);
        return missing;
    }
    return fiber->state == TL_FIBER_DONE || fiber->at != waiting->at ? fiber : NULL;
}

static void find_waiting(tl_fiber *fiber, tl_fiber **waiting)
{
    if (fiber->state == TL_FIBER_FORKED)
        for (int i = 0; i < fiber->child_count && *waiting == NULL; i++)
            find_waiting(fiber->children[i], waiting);
    else if (fiber->state == TL_FIBER_WAITING)
        *waiting = fiber;
}

static void release(tl_fiber *fiber)
{
    for (int i = 0; i < fiber->child_count; i++)
        release(fiber->children[i]);
    if (fiber->state == TL_FIBER_WAITING) {
        fiber->state = TL_FIBER_READY;
        fiber->at++;
    }
}

/* Nobody can go on: every fiber without children must wait at one barrier. */
static void meet(tl_machine *m, tl_fiber *root)
{
    tl_fiber *waiting = NULL;
    find_waiting(root, &waiting);
    const tl_fiber *missing = find_missing(root, waiting);
    if (missing != NULL) {
        char where[512];
        int site = m->insns[waiting->at].site;
        tl_machine_where(&waiting->frame, site, where, sizeof where);
        waiting->frame.site = site;
        char other[512];
        tl_machine_where(&missing->frame, site, other, sizeof other);
        tl_machine_fail(&waiting->frame, TL_BAD_IR,
                        "divergent barrier: the thread with %s waits at it, the one with %s %s",
                        where, other,
                        missing->state == TL_FIBER_DONE ? "ended without reaching it"
                                                        : "waits at another one");
    }
    m->segment = tl_machine_tick(m);
    release(root);
}

void tl_fiber_run_all(tl_machine *m, tl_fiber *root)
{
    for (;;) {
        turn(root);
        if (root->state == TL_FIBER_DONE)
            return;
        meet(m, root);
    }
}
