/* ir/interpret/interpret_compile_block.c: blocks, bare stores and calls to block code. */
#include <assert.h>
#include "ir/interpret/interpret_private.h"

static const tl_interp_code *const *compile_all(tl_compiler *c, const tl_expr *const *exprs,
                                                int count)
{
    const tl_interp_code **codes =
        TL_NEW_ARRAY(tl_compiler_machine(c)->arena, const tl_interp_code *, count);
    for (int i = 0; i < count; i++)
        codes[i] = tl_code_compile(c, exprs[i]);
    return codes;
}

static void check_target(tl_compiler *c, const tl_buffer *buffer)
{
    if (!tl_compiler_may_write(c, buffer))
        tl_compiler_fail(c, TL_BAD_IR, "%s may not be written here", buffer->name);
}

static const tl_region_code *compile_regions(tl_compiler *c, const tl_region *regions, int count)
{
    tl_region_code *codes = TL_NEW_ARRAY(tl_compiler_machine(c)->arena, tl_region_code, count);
    for (int i = 0; i < count; i++) {
        int rank = regions[i].buffer->rank;
        codes[i].memory = tl_compiler_memory(c, regions[i].buffer);
        codes[i].begins = compile_all(c, regions[i].begin, rank);
        codes[i].extents = compile_all(c, regions[i].extent, rank);
    }
    return codes;
}

static const tl_call_code *compile_call(tl_compiler *c, const tl_intrinsic_call *call)
{
    tl_call_code *code = TL_NEW(tl_compiler_machine(c)->arena, tl_call_code);
    if (!tl_intrinsic_from_name(call->name, &code->intrinsic))
        tl_compiler_fail(c, TL_BAD_IR, "there is no intrinsic %s", call->name);
    const tl_intrinsic_info *info = &tl_intrinsic_infos[code->intrinsic];
    if (call->read_count != info->read_count || call->write_count != info->write_count ||
        call->scalar_count != info->scalar_count)
        tl_compiler_fail(c, TL_BAD_IR,
                         "%s takes %d read regions, %d write regions and %d scalars, not %d, %d "
                         "and %d",
                         call->name, info->read_count, info->write_count, info->scalar_count,
                         call->read_count, call->write_count, call->scalar_count);
    for (int i = 0; i < call->write_count; i++)
        check_target(c, call->writes[i].buffer);
    code->read_count = call->read_count;
    code->write_count = call->write_count;
    code->reads = compile_regions(c, call->reads, call->read_count);
    code->writes = compile_regions(c, call->writes, call->write_count);
    code->scalars = compile_all(c, call->scalars, call->scalar_count);
    return code;
}

static void compile_store(tl_compiler *c, const tl_store *store, tl_store_code *code)
{
    check_target(c, store->buffer);
    code->access = tl_access_compile(c, store->buffer, store->indices);
    code->value = tl_code_compile(c, store->value);
    if (store->value->dtype != store->buffer->dtype)
        tl_compiler_fail(c, TL_BAD_IR, "a value of dtype %s is stored to %s, which is %s",
                         tl_dtype_infos[store->value->dtype].text, store->buffer->name,
                         tl_dtype_infos[store->buffer->dtype].text);
}

static void compile_iters(tl_compiler *c, const tl_block *block, tl_block_code *code)
{
    tl_iter_code *iters =
        TL_NEW_ARRAY(tl_compiler_machine(c)->arena, tl_iter_code, block->iter_count);
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        int64_t value;
        iters[i].iter = iter;
        iters[i].is_reduce = iter->kind == TL_ITER_REDUCE;
        iters[i].extent = tl_code_compile(c, iter->extent);
        iters[i].is_alias =
            iter->binding->kind == TL_EXPR_VAR && !tl_compiler_dim(c, iter->binding->u.var, &value);
        if (iters[i].is_alias)
            iters[i].slot = tl_compiler_slot(c, iter->binding->u.var);
        else
            iters[i].binding = tl_sum_compile(c, iter->binding);
    }
    /* Bindings speak of loops only, so no iter is known before all of them are. */
    for (int i = 0; i < block->iter_count; i++) {
        if (iters[i].is_alias)
            tl_compiler_alias(c, block->iters[i].var, iters[i].slot);
        else
            iters[i].slot = tl_compiler_open(c, block->iters[i].var);
    }
    code->iters = iters;
    code->iter_count = block->iter_count;
}

/* The vectorized loops that drive a reduce iter, and whether threads do. */
static void find_lanes(tl_compiler *c, const tl_block *block, tl_block_code *code)
{
    const tl_open_loop *loops;
    int count = tl_compiler_loops(c, &loops);
    int *lanes = TL_NEW_ARRAY(tl_compiler_machine(c)->arena, int, count);
    for (int k = 0; k < count; k++) {
        bool drives = false;
        for (int i = 0; i < block->iter_count; i++)
            drives = drives || (block->iters[i].kind == TL_ITER_REDUCE &&
                                tl_expr_uses_var(block->iters[i].binding, loops[k].var));
        if (drives && loops[k].kind == TL_LOOP_VECTORIZED)
            lanes[code->lane_count++] = loops[k].slot;
        code->joins_threads |= drives && loops[k].kind == TL_LOOP_THREAD_X;
    }
    code->lanes = lanes;
}

static void check_shape(tl_compiler *c, const tl_block *block)
{
    int values = tl_combiner_infos[block->combiner].values;
    if (block->call == NULL && block->store_count < 1)
        tl_compiler_fail(c, TL_BAD_IR, "it stores nothing");
    if (block->store_count > TL_MAX_STORES)
        tl_compiler_fail(c, TL_BAD_IR, "it has %d stores, more than %d", block->store_count,
                         TL_MAX_STORES);
    if (block->combiner != TL_COMBINER_NONE && block->store_count != values)
        tl_compiler_fail(c, TL_BAD_IR, "%s combines %d values, but there are %d stores",
                         tl_combiner_infos[block->combiner].text, values, block->store_count);
}

const tl_block_code *tl_block_compile(tl_compiler *c, const tl_block *block)
{
    tl_machine *m = tl_compiler_machine(c);
    tl_block_code *code = TL_NEW(m->arena, tl_block_code);
    int mark = tl_compiler_mark(c);
    code->block = block;
    code->combiner = block->combiner;
    code->has_init = block->has_init;
    check_shape(c, block);
    compile_iters(c, block, code);
    find_lanes(c, block, code);
    if (block->predicate != NULL)
        code->predicate = tl_code_compile(c, block->predicate);

    if (block->call != NULL) {
        code->call = compile_call(c, block->call);
    } else {
        tl_store_code *stores = TL_NEW_ARRAY(m->arena, tl_store_code, block->store_count);
        for (int i = 0; i < block->store_count; i++) {
            compile_store(c, &block->stores[i], &stores[i]);
            if (block->combiner == TL_COMBINER_NONE || !block->has_init)
                continue;
            const tl_expr *init = block->init != NULL
                                      ? block->init[i]
                                      : tl_combiner_identity(m->arena, block->combiner,
                                                             block->stores[i].buffer->dtype, i);
            stores[i].init = tl_code_compile(c, init);
        }
        code->stores = stores;
        code->store_count = block->store_count;
    }
    for (int i = 0; i < block->iter_count; i++)
        tl_compiler_close(c, block->iters[i].var);
    tl_compiler_rewind(c, mark);
    return code;
}

/* A lowered reduction, Y[i] = Y[i] op e: which combiner it is, and e. */
static tl_combiner find_update(const tl_store *store, const tl_expr **operand)
{
    assert(store->value != NULL);
    static const tl_combiner combiners[TL_EXPR_KIND_COUNT] = {
        [TL_EXPR_ADD] = TL_COMBINER_SUM, [TL_EXPR_MUL] = TL_COMBINER_PROD,
        [TL_EXPR_MIN] = TL_COMBINER_MIN, [TL_EXPR_MAX] = TL_COMBINER_MAX,
        [TL_EXPR_AND] = TL_COMBINER_ALL, [TL_EXPR_OR] = TL_COMBINER_ANY,
    };
    const tl_expr *value = store->value;
    if (combiners[value->kind] == TL_COMBINER_NONE)
        return TL_COMBINER_NONE;
    for (int side = 0; side < 2; side++) {
        const tl_expr *target = value->args[side];
        bool same = target->kind == TL_EXPR_LOAD && target->u.buffer == store->buffer;
        for (int i = 0; same && i < store->buffer->rank; i++)
            same = tl_expr_equal(target->args[i], store->indices[i]);
        if (same) {
            *operand = value->args[1 - side];
            return combiners[value->kind];
        }
    }
    return TL_COMBINER_NONE;
}

/* An update whose target does not move with a vectorized loop combines the lanes of it; so with threads. */
static void find_update_lanes(tl_compiler *c, const tl_store *store, tl_block_code *code)
{
    const tl_open_loop *loops;
    int count = tl_compiler_loops(c, &loops);
    int *lanes = TL_NEW_ARRAY(tl_compiler_machine(c)->arena, int, count);
    for (int k = 0; k < count; k++) {
        bool moves = false;
        for (int i = 0; i < store->buffer->rank; i++)
            moves = moves || tl_expr_uses_var(store->indices[i], loops[k].var);
        if (!moves && loops[k].kind == TL_LOOP_VECTORIZED)
            lanes[code->lane_count++] = loops[k].slot;
        code->joins_threads |= !moves && loops[k].kind == TL_LOOP_THREAD_X;
    }
    code->lanes = lanes;
}

const tl_block_code *tl_bare_compile(tl_compiler *c, const tl_store *store,
                                     const tl_intrinsic_call *call)
{
    tl_machine *m = tl_compiler_machine(c);
    tl_block_code *code = TL_NEW(m->arena, tl_block_code);
    if (call != NULL) {
        code->call = compile_call(c, call);
        return code;
    }
    tl_store_code *one = TL_NEW(m->arena, tl_store_code);
    tl_store update = *store;
    code->combiner = find_update(store, &update.value);
    if (code->combiner != TL_COMBINER_NONE)
        find_update_lanes(c, store, code);
    compile_store(c, &update, one);
    code->stores = one;
    code->store_count = 1;
    return code;
}
