/* ir/interpret/interpret_points.c: single elements of a naive program by demand: an element asks the block that writes it,
 * which asks for the elements that it reads, each computed once. What is never asked for is never computed. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/float_mode.h"

#define MAX_DEPTH 2000 /* elements that wait for each other */

/* What is known of an element. */
typedef struct {
    int64_t key; /* memory and offset, plus 1; 0: a free place */
    bool is_done;
    tl_number value;
} fact;

typedef struct {
    tl_machine machine; /* first: demand gets back here from it */
    tl_interp_storage **storages;
    int fact_count, fact_capacity; /* a power of two */
    fact *facts;
    int depth;
    int64_t *slots[MAX_DEPTH];
} oracle;

static fact *place(fact *facts, int capacity, int64_t key)
{
    assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
    uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u;
    int at = (int)(hash >> 33 & (uint64_t)(capacity - 1));
    while (facts[at].key != 0 && facts[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &facts[at];
}

static fact *find_fact(oracle *o, int memory, int64_t offset)
{
    assert(memory >= 0 && memory < o->machine.memory_count && offset >= 0);
    if (2 * (o->fact_count + 1) > o->fact_capacity) {
        int wider = o->fact_capacity == 0 ? 1024 : 2 * o->fact_capacity;
        fact *grown = TL_NEW_ARRAY(o->machine.arena, fact, wider);
        for (int i = 0; i < o->fact_capacity; i++)
            if (o->facts[i].key != 0)
                *place(grown, wider, o->facts[i].key) = o->facts[i];
        o->facts = grown;
        o->fact_capacity = wider;
    }
    int64_t key = 1 + memory + (int64_t)o->machine.memory_count * offset;
    fact *found = place(o->facts, o->fact_capacity, key);
    if (found->key == 0) {
        found->key = key;
        o->fact_count++;
    }
    return found;
}

static tl_number evaluate(tl_frame *f, const tl_interp_code *code)
{
    tl_number value;
    if (tl_dtype_is_float(code->dtype))
        value.f = tl_code_number(code, f);
    else
        value.i = tl_code_integer(code, f);
    return value;
}

/* ---- which instance of a block writes the element ---- */

/* A search over some iters of a block. */
typedef struct {
    int count;
    const tl_iter_code *iters[64];
    int64_t extents[64];
} domain;

static void add_iter(tl_frame *f, domain *d, const tl_iter_code *iter)
{
    if (d->count == (int)(sizeof d->iters / sizeof *d->iters))
        tl_machine_fail(f, TL_UNSUPPORTED, "a block has more than %d iters", d->count);
    d->extents[d->count] = tl_code_integer(iter->extent, f);
    d->iters[d->count++] = iter;
    f->slots[iter->slot] = 0;
}

static bool is_empty(const domain *d)
{
    for (int i = 0; i < d->count; i++)
        if (d->extents[i] <= 0)
            return true;
    return false;
}

/* Steps to the next values in order, the last iter fastest; false after the last. */
static bool next(tl_frame *f, const domain *d)
{
    for (int i = d->count - 1; i >= 0; i--) {
        if (++f->slots[d->iters[i]->slot] < d->extents[i])
            return true;
        f->slots[d->iters[i]->slot] = 0;
    }
    return false;
}

/* Slots are given out from the outermost loop inwards: their order is the order of execution. */
static int compare_slots(const void *a, const void *b)
{
    const tl_iter_code *const *x = a, *const *y = b;
    return ((*x)->slot > (*y)->slot) - ((*x)->slot < (*y)->slot);
}

static domain reduce_domain(tl_frame *f, const tl_block_code *b)
{
    domain d = { 0 }, sorted = { 0 };
    for (int i = 0; i < b->iter_count; i++)
        if (b->iters[i].is_reduce)
            add_iter(f, &d, &b->iters[i]);
    qsort(d.iters, (size_t)d.count, sizeof *d.iters, compare_slots);
    for (int i = 0; i < d.count; i++)
        add_iter(f, &sorted, d.iters[i]);
    return sorted;
}

/* An iter whose value one index decides: constant + factor * iter = index. */
static bool decided(tl_frame *f, const tl_interp_access *access, const int64_t *index, int slot)
{
    for (int i = 0; i < access->rank; i++) {
        const tl_interp_sum *s = &access->axes[i];
        if (s->atom_count != 0 || s->term_count != 1 || s->terms[0].slot != slot ||
            s->terms[0].factor == 0)
            continue;
        f->slots[slot] = (index[i] - s->constant) / s->terms[0].factor;
        return true;
    }
    return false;
}

static bool hits(tl_frame *f, const tl_interp_access *access, const int64_t *index)
{
    for (int i = 0; i < access->rank; i++)
        if (tl_sum_value(&access->axes[i], f) != index[i])
            return false;
    return true;
}

static bool in_domains(tl_frame *f, const tl_block_code *b)
{
    for (int i = 0; i < b->iter_count; i++) {
        int64_t value = f->slots[b->iters[i].slot];
        if (value < 0 || value >= tl_code_integer(b->iters[i].extent, f))
            return false;
    }
    return true;
}

/* Sets the spatial and ordered iters to those of an instance that stores to the element. */
static bool find_instance(tl_frame *f, const tl_block_code *b, const tl_interp_access *access,
                          const int64_t *index)
{
    domain open = { 0 };
    for (int i = 0; i < b->iter_count; i++) {
        if (b->iters[i].is_reduce)
            f->slots[b->iters[i].slot] = 0;
        else if (!decided(f, access, index, b->iters[i].slot))
            add_iter(f, &open, &b->iters[i]);
    }
    if (is_empty(&open))
        return false;
    do {
        bool runs = b->combiner != TL_COMBINER_NONE || b->predicate == NULL ||
                    tl_code_integer(b->predicate, f);
        if (hits(f, access, index) && in_domains(f, b) && runs)
            return true;
    } while (next(f, &open));
    return false;
}

/* ---- what it writes ---- */

static void combine(tl_frame *f, const tl_block_code *b, tl_number *so_far)
{
    tl_number value[2] = { { 0 } };
    tl_dtype dtype = b->stores[0].access.dtype;
    for (int i = 0; i < b->store_count; i++)
        value[i] = evaluate(f, b->stores[i].value);
    if (b->store_count == 2) {
        if (tl_pair_wins(b->combiner, dtype, so_far, value)) {
            so_far[0] = value[0];
            so_far[1] = value[1];
        }
    } else if (tl_dtype_is_float(dtype)) {
        so_far[0].f = tl_combine_number(b->combiner, dtype, so_far[0].f, value[0].f);
    } else {
        so_far[0].i = tl_combine_integer(b->combiner, dtype, so_far[0].i, value[0].i);
    }
}

/* The reduction at the instance's spatial iters. `value` has what earlier blocks left of store `which`. */
static bool reduce(tl_frame *f, const tl_block_code *b, int which, bool known, tl_number *value)
{
    assert(which >= 0 && which < b->store_count && b->store_count <= 2);
    tl_number so_far[2] = { *value, *value };
    domain d = reduce_domain(f, b);
    if (!b->has_init && b->store_count == 2)
        tl_machine_fail(f, TL_UNSUPPORTED,
                        "an arg reduction without init is not evaluated by points");
    if (is_empty(&d))
        return known;
    bool first = true;
    do {
        bool runs = b->predicate == NULL || tl_code_integer(b->predicate, f);
        if (runs && first && b->has_init) {
            for (int i = 0; i < b->store_count; i++)
                so_far[i] = evaluate(f, b->stores[i].init);
            known = true;
        }
        first = false;
        if (runs && !known)
            return false;
        if (runs)
            combine(f, b, so_far);
    } while (next(f, &d));
    *value = so_far[which];
    return known;
}

static bool covers(tl_frame *f, const tl_region_code *region, const int64_t *index, int rank)
{
    for (int i = 0; i < rank; i++) {
        int64_t begin = tl_code_integer(region->begins[i], f);
        int64_t extent = tl_code_integer(region->extents[i], f);
        if (index[i] < begin || index[i] - begin >= extent)
            return false;
    }
    return true;
}

/* Runs the call that writes the element: it makes known all that it writes. */
static bool run_call(tl_frame *f, const tl_insn *insn, int memory, const int64_t *index)
{
    const tl_block_code *b = insn->block;
    int rank = f->machine->memories[memory].buffer->rank;
    domain d = { 0 };
    for (int i = 0; i < b->iter_count; i++)
        add_iter(f, &d, &b->iters[i]);
    if (is_empty(&d))
        return false;
    do {
        if (b->predicate != NULL && !tl_code_integer(b->predicate, f))
            continue;
        for (int i = 0; i < b->call->write_count; i++) {
            const tl_region_code *region = &b->call->writes[i];
            if (region->memory == memory && covers(f, region, index, rank)) {
                tl_call_run(f, b->call);
                return true;
            }
        }
    } while (next(f, &d));
    return false;
}

static bool compute(tl_frame *f, int memory, int64_t offset, tl_number *value)
{
    tl_machine *m = f->machine;
    const tl_memory *of = &m->memories[memory];
    int64_t index[64], rest = offset;
    if (of->buffer->rank > (int)(sizeof index / sizeof *index))
        tl_machine_fail(f, TL_UNSUPPORTED, "%s has rank %d", of->buffer->name, of->buffer->rank);
    for (int i = 0; i < of->buffer->rank; i++) {
        index[i] = rest / of->strides[i];
        rest -= index[i] * of->strides[i];
    }

    bool known = false;
    for (int at = 0; at < m->insn_count; at++) {
        const tl_insn *insn = &m->insns[at];
        if (insn->op != TL_INSN_BLOCK)
            continue;
        const tl_block_code *b = insn->block;
        f->site = insn->site;
        if (b->call != NULL && run_call(f, insn, memory, index)) {
            *value = find_fact((oracle *)m, memory, offset)->value;
            known = true;
        }
        for (int i = 0; i < b->store_count; i++) {
            const tl_interp_access *access = &b->stores[i].access;
            if (access->memory != memory || !find_instance(f, b, access, index))
                continue;
            if (--m->budget < 0)
                tl_machine_fail(f, TL_BUDGET, "too many statement instances");
            if (b->combiner != TL_COMBINER_NONE) {
                known = reduce(f, b, i, known, value);
            } else {
                *value = evaluate(f, b->stores[i].value);
                known = true;
            }
        }
    }
    return known;
}

static tl_number demand(tl_frame *f, int memory, int64_t offset)
{
    oracle *o = (oracle *)f->machine;
    assert(memory >= 0 && memory < o->machine.memory_count);
    tl_interp_storage *storage = o->storages[memory];
    if (storage != NULL) {
        tl_dtype dtype = o->machine.memories[memory].buffer->dtype;
        return tl_number_load(dtype, storage->data, (size_t)offset);
    }
    fact *found = find_fact(o, memory, offset);
    if (found->is_done)
        return found->value;

    char element[256];
    tl_memory_element_text(&o->machine.memories[memory], offset, element, sizeof element);
    if (o->depth == MAX_DEPTH)
        tl_machine_fail(f, TL_UNSUPPORTED, "%s needs more than %d elements one after the other",
                        element, MAX_DEPTH);
    if (o->slots[o->depth] == NULL)
        o->slots[o->depth] = TL_NEW_ARRAY(o->machine.arena, int64_t, o->machine.slot_count);
    tl_frame inner = { .machine = &o->machine, .storages = o->storages, .site = -1 };
    inner.slots = o->slots[o->depth++];
    tl_number value = { .i = 0 };
    if (!compute(&inner, memory, offset, &value))
        tl_machine_fail(f, TL_BAD_IR, "%s is read, but nothing writes it", element);
    o->depth--;

    found = find_fact(o, memory, offset);
    found->is_done = true;
    found->value = value;
    return value;
}

static void supply(tl_frame *f, int memory, int64_t offset, tl_number value)
{
    fact *found = find_fact((oracle *)f->machine, memory, offset);
    found->is_done = true;
    found->value = value;
}

/* ---- the entry ---- */

/* A schedule's program gives one buffer several lives, and its blocks run under predicates over loops. */
static tl_status check_naive(const tl_machine *m, tl_diag *diag)
{
    for (int i = 0; i < m->insn_count; i++) {
        const tl_insn *insn = &m->insns[i];
        bool inner_alloc = insn->op == TL_INSN_ALLOC && insn->site >= 0;
        if (inner_alloc || insn->op == TL_INSN_FORK || insn->op == TL_INSN_BRANCH)
            return tl_fail(diag, TL_UNSUPPORTED,
                           "only a naive program is evaluated by points: %s is scheduled",
                           insn->site >= 0 ? m->sites[insn->site].name : "this one");
        if (insn->op != TL_INSN_BLOCK || insn->block->predicate == NULL)
            continue;
        for (int k = 0; k < insn->block->iter_count; k++)
            if (!insn->block->iters[k].is_alias)
                return tl_fail(diag, TL_UNSUPPORTED,
                               "only a naive program is evaluated by points: %s has a predicate "
                               "and iters that are no loop variables",
                               m->sites[insn->site].name);
    }
    return TL_OK;
}

static tl_status bind(oracle *o, const tl_program *program, const tl_argument *arguments, int count,
                      tl_diag *diag)
{
    tl_machine *m = &o->machine;
    o->storages = TL_NEW_ARRAY(m->arena, tl_interp_storage *, m->memory_count);
    for (int i = 0; i < count; i++) {
        int memory = tl_machine_memory(m, arguments[i].buffer);
        if (memory >= 0 && arguments[i].data != NULL && arguments[i].buffer->role != TL_ROLE_OUTPUT)
            o->storages[memory] = tl_storage_make(m, memory, arguments[i].data, false);
    }
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        if (b->role != TL_ROLE_OUTPUT && o->storages[tl_machine_memory(m, b)] == NULL &&
            m->memories[tl_machine_memory(m, b)].count > 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no argument for its parameter %s",
                           program->name, b->name);
    }
    return TL_OK;
}

static tl_status evaluate_points(oracle *o, const tl_program *program, const tl_argument *arguments,
                                 int argument_count, const int64_t *dims, const tl_buffer *output,
                                 const int64_t *points, int64_t count, tl_number *out)
{
    tl_machine *m = &o->machine;
    if (setjmp(m->escape) != 0)
        return m->status;
    tl_machine_compile(m, program, dims, true);
    TL_TRY(check_naive(m, m->diag));
    TL_TRY(bind(o, program, arguments, argument_count, m->diag));

    int memory = tl_machine_memory(m, output), rank = output->rank;
    if (memory < 0)
        return tl_fail(m->diag, TL_BAD_ARGUMENT, "%s has no buffer %s", program->name,
                       output->name);
    o->storages[memory] = NULL; /* of an inout: what it becomes */
    tl_frame frame = { .machine = m, .storages = o->storages, .site = -1 };
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = 0;
        for (int k = 0; k < rank; k++) {
            int64_t index = points[i * rank + k];
            if (index < 0 || index >= m->memories[memory].shape[k])
                return tl_fail(m->diag, TL_BAD_ARGUMENT,
                               "point %" PRId64 ": index %" PRId64 " on axis %d is outside of %s",
                               i, index, k, output->name);
            offset += index * m->memories[memory].strides[k];
        }
        out[i] = demand(&frame, memory, offset);
    }
    return TL_OK;
}

static tl_status points_in_arena(const tl_program *program, const tl_argument *arguments,
                                 int argument_count, const int64_t *dims, const tl_buffer *output,
                                 const int64_t *points, int64_t count, tl_number *out,
                                 tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to interpret %s", program->name);
    }
    oracle *o = TL_NEW(arena, oracle);
    o->machine.arena = arena;
    o->machine.diag = diag;
    o->machine.budget = INT64_MAX;
    o->machine.demand = demand;
    o->machine.supply = supply;
    tl_status status =
        evaluate_points(o, program, arguments, argument_count, dims, output, points, count, out);
    if (status != TL_OK)
        tl_context(diag, "kernel %s", program->name);
    tl_arena_destroy(arena);
    return status;
}

tl_status tl_interpret_points(const tl_program *program, const tl_argument *arguments,
                              int argument_count, const int64_t *dims, const tl_buffer *output,
                              const int64_t *points, int64_t count, tl_number *out, tl_diag *diag)
{
    uint64_t mode = tl_float_mode_enter();
    tl_status status =
        points_in_arena(program, arguments, argument_count, dims, output, points, count, out, diag);
    tl_float_mode_leave(mode);
    return status;
}
