/* ir/interpret/interpret_block.c: one instance of a block (or of a bare store or call): its iters get their values, the
 * predicate decides, then its stores assign or combine. */
#include <assert.h>
#include <inttypes.h>
#include "ir/interpret/interpret_private.h"

static void check_domains(tl_frame *f, const tl_block_code *b)
{
    for (int i = 0; i < b->iter_count; i++) {
        int64_t value = f->slots[b->iters[i].slot];
        int64_t extent = tl_code_integer(b->iters[i].extent, f);
        if (value < 0 || value >= extent)
            tl_machine_fail(f, TL_BAD_IR,
                            "iter %s is %" PRId64 ", outside of its domain 0..%" PRId64,
                            b->iters[i].iter->var->name, value, extent);
    }
}

static int64_t locate(tl_frame *f, const tl_interp_access *access)
{
    if (f->machine->check)
        return tl_access_locate(access, f);
    int64_t offset = tl_sum_value(&access->flat, f);
    if ((uint64_t)offset >= (uint64_t)f->storages[access->memory]->count)
        tl_access_locate(access, f); /* says which index it was */
    return offset;
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

static void put(tl_frame *f, const tl_interp_access *access, int64_t offset, tl_number value,
                const tl_block_code *reduction)
{
    if (f->machine->check)
        tl_check_write(f, access->memory, offset, reduction);
    char *data = f->storages[access->memory]->data;
    if (tl_dtype_is_float(access->dtype))
        tl_memory_put_number(access->dtype, data, offset, value.f);
    else
        tl_memory_put_integer(access->dtype, data, offset, value.i);
}

/* Every value and every place is known before the first store happens. */
static void assign(tl_frame *f, const tl_block_code *b)
{
    assert(b->store_count > 0);
    if (b->store_count == 1) {
        tl_number value = evaluate(f, b->stores[0].value);
        put(f, &b->stores[0].access, locate(f, &b->stores[0].access), value, NULL);
        return;
    }
    tl_number values[TL_MAX_STORES];
    int64_t offsets[TL_MAX_STORES];
    for (int i = 0; i < b->store_count; i++) {
        values[i] = evaluate(f, b->stores[i].value);
        offsets[i] = locate(f, &b->stores[i].access);
    }
    for (int i = 0; i < b->store_count; i++)
        put(f, &b->stores[i].access, offsets[i], values[i], NULL);
}

static bool starts(const tl_frame *f, const tl_block_code *b)
{
    if (!b->has_init)
        return false;
    for (int i = 0; i < b->iter_count; i++)
        if (b->iters[i].is_reduce && f->slots[b->iters[i].slot] != 0)
            return false;
    return true;
}

/* What the reduction has so far: its init, or the element. */
static tl_number so_far(tl_frame *f, const tl_store_code *store, int64_t offset, bool start)
{
    if (start)
        return evaluate(f, store->init);
    const tl_interp_access *access = &store->access;
    const tl_interp_storage *storage = f->storages[access->memory];
    if (storage->cells != NULL && storage->cells[offset].write < storage->birth)
        tl_check_read(f, access->memory, offset); /* fails: uninitialised */

    tl_number value;
    if (tl_dtype_is_float(access->dtype))
        value.f = tl_memory_number(access->dtype, storage->data, offset);
    else
        value.i = tl_memory_integer(access->dtype, storage->data, offset);
    return value;
}

static void combine_one(tl_frame *f, const tl_block_code *b)
{
    assert(b->store_count == 1);
    const tl_store_code *store = &b->stores[0];
    tl_dtype dtype = store->access.dtype;
    tl_number value = evaluate(f, store->value);
    int64_t offset = locate(f, &store->access);
    tl_number old = so_far(f, store, offset, starts(f, b));
    if (tl_dtype_is_float(dtype))
        value.f = tl_combine_number(b->combiner, dtype, old.f, value.f);
    else
        value.i = tl_combine_integer(b->combiner, dtype, old.i, value.i);
    put(f, &store->access, offset, value, b);
}

/* (value, index): the better value wins, on a tie the smaller index. */
static void combine_pair(tl_frame *f, const tl_block_code *b)
{
    assert(b->store_count == 2);
    tl_number value[2], old[2];
    int64_t offset[2];
    bool start = starts(f, b);
    for (int i = 0; i < 2; i++) {
        value[i] = evaluate(f, b->stores[i].value);
        offset[i] = locate(f, &b->stores[i].access);
    }
    for (int i = 0; i < 2; i++)
        old[i] = so_far(f, &b->stores[i], offset[i], start);

    if (!tl_pair_wins(b->combiner, b->stores[0].access.dtype, old, value)) {
        value[0] = old[0];
        value[1] = old[1];
    }
    for (int i = 0; i < 2; i++)
        put(f, &b->stores[i].access, offset[i], value[i], b);
}

void tl_block_run(tl_frame *f, const tl_insn *insn)
{
    const tl_block_code *b = insn->block;
    tl_machine *m = f->machine;
    f->site = insn->site;
    if (--m->budget < 0)
        tl_machine_fail(f, TL_BUDGET, "the program runs more statement instances than allowed");

    for (int i = 0; i < b->iter_count; i++)
        if (!b->iters[i].is_alias)
            f->slots[b->iters[i].slot] = tl_sum_value(&b->iters[i].binding, f);
    f->stamp = m->clock << TL_SITE_BITS | (tl_stamp)insn->site;
    if (b->predicate != NULL && !tl_code_integer(b->predicate, f))
        return;
    if (m->check)
        check_domains(f, b);

    if (b->call != NULL)
        tl_call_run(f, b->call);
    else if (b->combiner == TL_COMBINER_NONE)
        assign(f, b);
    else if (b->store_count == 2)
        combine_pair(f, b);
    else
        combine_one(f, b);
}
