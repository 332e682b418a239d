/* frontend/lower/lower.c: the builder of naive Programs: places, reads, nests. */
#include "frontend/lower/lower_private.h"
#include <assert.h>
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

tl_arena *tl_lower_arena(const tl_lower *l)
{
    return l->arena;
}

bool tl_value_is_literal(const tl_value *v)
{
    return v->data != NULL && tl_shape_elements(&v->shape) == 1;
}

/* ---- names, buffers, places ---- */

static const char *unique_name(tl_lower *l, const char *name)
{
    const char *tried = name;
    for (int i = 1; tl_map_has(l->names, tried); i++)
        tried = tl_arena_format(l->arena, "%s_%d", name, i);
    tl_map_put(l->names, tried, l);
    return tried;
}

tl_view tl_lower_place(tl_lower *l, const char *name, tl_dtype dtype, tl_role role,
                       const tl_shape *shape, const tl_layout *layout)
{
    int64_t physical[2 * TL_MAX_RANK];
    int rank = tl_layout_physical(layout, shape, physical);
    tl_view p = { .shape = *shape, .layout = *layout };
    p.buffer = tl_buffer_make_static(l->arena, unique_name(l, name), dtype, role, TL_SCOPE_GLOBAL,
                                     rank, physical);
    return p;
}

static void add_alloc(tl_lower *l, const tl_buffer *buffer)
{
    TL_ROOM(l->arena, l->part.allocs, l->part.alloc_count, l->part.alloc_capacity);
    l->part.allocs[l->part.alloc_count++] = buffer;
}

void tl_lower_emit(tl_lower *l, const tl_stmt *stmt)
{
    TL_ROOM(l->arena, l->part.stmts, l->part.stmt_count, l->part.stmt_capacity);
    l->part.stmts[l->part.stmt_count++] = stmt;
}

const tl_stmt *tl_lower_close(tl_lower *l, const tl_lower_part *part)
{
    const tl_stmt *body = tl_stmt_seq(l->arena, part->stmts, part->stmt_count);
    for (int i = part->alloc_count - 1; i >= 0; i--)
        body = tl_stmt_alloc(l->arena, part->allocs[i], body);
    return body;
}

void tl_lower_prepare_begin(tl_lower *l)
{
    assert(l->prepare == NULL);
    l->body = l->part;
    l->part = (tl_lower_part){ 0 };
}

void tl_lower_prepare_end(tl_lower *l)
{
    l->prepare = tl_lower_close(l, &l->part);
    l->part = l->body;
}

const tl_expr *tl_lower_loop_begin(tl_lower *l, const char *name, int64_t extent)
{
    assert(l->loop_count < (int)(sizeof l->loops / sizeof *l->loops));
    const tl_var *var = tl_var_make(l->arena, name, 0, tl_max64(extent - 1, 0));
    l->loops[l->loop_count].var = var;
    l->loops[l->loop_count].extent = extent;
    l->loops[l->loop_count++].before = l->part;
    l->part = (tl_lower_part){ 0 };
    return tl_ref(l->arena, var);
}

void tl_lower_loop_end(tl_lower *l)
{
    assert(l->loop_count > 0);
    const tl_stmt *body = tl_lower_close(l, &l->part);
    int i = --l->loop_count;
    l->part = l->loops[i].before;
    tl_lower_emit(l, tl_stmt_loop(l->arena, l->loops[i].var, tl_int(l->arena, l->loops[i].extent),
                                  TL_LOOP_SERIAL, body));
}

tl_view tl_lower_prepared(tl_lower *l, const char *name, tl_dtype dtype, const tl_shape *shape)
{
    tl_layout plain = tl_layout_plain();
    tl_view p = tl_lower_place(l, name, dtype, TL_ROLE_PREPARED, shape, &plain);
    assert(l->prepared_count < TL_MAX_LOCALS);
    l->prepared[l->prepared_count++] = p.buffer;
    return p;
}

static tl_layout without_halo(const tl_layout *layout)
{
    tl_layout bare = *layout;
    memset(bare.halo_before, 0, sizeof bare.halo_before);
    memset(bare.halo_after, 0, sizeof bare.halo_after);
    return bare;
}

tl_view tl_lower_local(tl_lower *l, const char *name, tl_dtype dtype, const tl_shape *shape,
                       const tl_layout *layout)
{
    tl_layout bare = without_halo(layout);
    tl_view p = tl_lower_place(l, name, dtype, TL_ROLE_LOCAL, shape, &bare);
    add_alloc(l, p.buffer);
    return p;
}

const tl_buffer *tl_lower_buffer(tl_lower *l, const char *name, tl_dtype dtype, int rank,
                                 const int64_t *extents)
{
    const tl_buffer *buffer = tl_buffer_make_static(l->arena, unique_name(l, name), dtype,
                                                    TL_ROLE_LOCAL, TL_SCOPE_GLOBAL, rank, extents);
    add_alloc(l, buffer);
    return buffer;
}

tl_view tl_lower_local_with_halo(tl_lower *l, const char *name, tl_dtype dtype,
                                 const tl_shape *shape, const tl_layout *layout)
{
    tl_view p = tl_lower_place(l, name, dtype, TL_ROLE_LOCAL, shape, layout);
    add_alloc(l, p.buffer);
    return p;
}

tl_view tl_lower_accumulator(tl_lower *l, const tl_node *n, tl_dtype dtype, bool is_value)
{
    const tl_value *v = n->outputs[0];
    if (is_value && v == l->kernel->outputs[0] && v->dtype == dtype) {
        l->output_written = true;
        return l->output;
    }
    return tl_lower_local(l, "acc", dtype, &v->shape, &v->layout);
}

int tl_view_index(tl_lower *l, const tl_view *p, tl_index index,
                  const tl_expr *out[2 * TL_MAX_RANK])
{
    const tl_layout *y = &p->layout;
    int rank = p->shape.rank, count = 0;
    for (int i = 0; i < rank; i++) {
        int axis = y->plain ? i : y->order[i];
        const tl_expr *e = tl_addi(l->arena, index[axis], p->start[axis]);
        if (!y->plain) {
            e = tl_addi(l->arena, e, y->halo_before[axis]);
            if (y->block[axis] != 1)
                e = tl_floordiv_expr(l->arena, e, tl_int(l->arena, y->block[axis]));
        }
        out[count++] = e;
    }
    for (int i = 0; !y->plain && i < rank; i++) {
        int axis = y->order[i];
        if (y->block[axis] != 1)
            out[count++] = tl_floormod_expr(l->arena,
                                            tl_addi(l->arena, index[axis],
                                                    p->start[axis] + y->halo_before[axis]),
                                            tl_int(l->arena, y->block[axis]));
    }
    return count;
}

const tl_expr *tl_view_load(tl_lower *l, const tl_view *p, tl_index index)
{
    const tl_expr *physical[2 * TL_MAX_RANK];
    tl_view_index(l, p, index, physical);
    return tl_load(l->arena, p->buffer, physical);
}

/* ---- reading values ---- */

static const tl_expr *literal(tl_lower *l, const tl_value *v)
{
    tl_number number = tl_number_load(v->dtype, v->data, 0);
    if (v->dtype == TL_BOOL)
        return tl_bool(l->arena, number.i != 0);
    if (tl_dtype_is_float(v->dtype))
        return tl_float(l->arena, v->dtype, number.f);
    return tl_int_of(l->arena, v->dtype, number.i);
}

tl_lower_value *tl_lower_find(tl_lower *l, const tl_value *v)
{
    for (int i = 0; i < l->value_count; i++)
        if (l->values[i].value == v)
            return &l->values[i];
    return NULL;
}

tl_locals *tl_lower_locals(tl_lower *l, const tl_node *n)
{
    tl_lower_value *state = tl_lower_find(l, n->outputs[0]);
    assert(state != NULL);
    return &state->locals;
}

const tl_expr *tl_lower_read(tl_lower *l, const tl_value *v, tl_index index)
{
    if (tl_value_is_literal(v))
        return literal(l, v);
    tl_lower_value *state = tl_lower_find(l, v);
    assert(state != NULL); /* a kernel input, or made by an earlier node of the kernel */
    if (state->has_place)
        return tl_view_load(l, &state->place, index);
    return state->lowering->value(l, state->node, index);
}

const tl_expr *tl_lower_read_broadcast(tl_lower *l, const tl_value *v, int rank, tl_index index)
{
    const tl_expr *own[TL_MAX_RANK];
    int lead = rank - v->shape.rank;
    assert(lead >= 0);
    for (int i = 0; i < v->shape.rank; i++) {
        /* an axis of extent 1 that does not broadcast keeps its iter: the program of batch 1 looks like that of batch 8 */
        bool broadcasts = v->shape.dims[i].extent == 1 && tl_expr_range(index[lead + i]).max != 0;
        own[i] = broadcasts ? tl_int(l->arena, 0) : index[lead + i];
    }
    return tl_lower_read(l, v, own);
}

tl_view tl_lower_materialize(tl_lower *l, const tl_value *v)
{
    tl_lower_value *state = tl_lower_find(l, v);
    if (state == NULL || !state->has_place) {
        tl_view local = tl_lower_local(l, "tmp", v->dtype, &v->shape, &v->layout);
        const tl_expr *index[TL_MAX_RANK];
        tl_block_nest nest = tl_nest_begin(l, "map");
        tl_nest_over(&nest, &local, index);
        tl_nest_store(&nest, &local, index, tl_lower_read(l, v, index));
        if (state == NULL) /* a literal read as a tensor */
            return local;
        state->place = local;
        state->has_place = true;
    }
    return state->place;
}

/* ---- nests ---- */

void tl_lower_name_axes(tl_lower *l, int rank, const char *const *names, const char *lane)
{
    if (l->axes_named)
        return;
    l->axes_named = true;
    l->axis_rank = rank;
    l->lane = lane;
    for (int i = 0; i < rank; i++)
        l->axis_names[i] = names[i];
}

void tl_lower_split_last_axis(tl_lower *l, const char *outer, const char *inner, int64_t extent)
{
    l->split_outer = outer;
    l->split_inner = inner;
    l->split_extent = extent;
}

static const char *axis_name(const tl_lower *l, int axis, int rank)
{
    if (l->axes_named && l->axis_rank == rank)
        return l->axis_names[axis];
    return tl_arena_format(l->arena, "i%d", axis);
}

tl_block_nest tl_nest_begin(tl_lower *l, const char *name)
{
    const char *tried = name;
    for (int i = 1; tl_map_has(l->block_names, tried); i++)
        tried = tl_arena_format(l->arena, "%s_%d", name, i);
    tl_map_put(l->block_names, tried, l);
    return (tl_block_nest){ .lower = l, .name = tried };
}

const tl_expr *tl_nest_iter(tl_block_nest *nest, tl_iter_kind kind, const char *name,
                            int64_t extent)
{
    tl_arena *arena = nest->lower->arena;
    assert(nest->count < TL_MAX_ITERS);
    int64_t last = tl_max64(extent - 1, 0);
    const tl_var *loop = tl_var_make(arena, name, 0, last),
                 *var = tl_var_make(arena, name, 0, last);
    nest->empty_reduce = nest->empty_reduce || (kind == TL_ITER_REDUCE && extent == 0);
    nest->loops[nest->count] = loop;
    nest->loop_extents[nest->count] = extent;
    nest->iters[nest->count++] = (tl_iter){
        .var = var, .kind = kind, .extent = tl_int(arena, extent), .binding = tl_ref(arena, loop)
    };
    return tl_ref(arena, var);
}

const tl_expr *tl_nest_iter_at(tl_block_nest *nest, tl_iter_kind kind, const char *name,
                               int64_t extent, const tl_expr *from, int64_t count)
{
    tl_arena *arena = nest->lower->arena;
    assert(nest->count < TL_MAX_ITERS);
    const tl_var *var = tl_var_make(arena, name, 0, tl_max64(extent - 1, 0)), *loop = NULL;
    if (count > 0) {
        loop = tl_var_make(arena, name, 0, count - 1);
        from = tl_add(arena, from, tl_ref(arena, loop));
    }
    nest->loops[nest->count] = loop;
    nest->loop_extents[nest->count] = count;
    nest->iters[nest->count++] =
        (tl_iter){ .var = var, .kind = kind, .extent = tl_int(arena, extent), .binding = from };
    return tl_ref(arena, var);
}

void tl_nest_over(tl_block_nest *nest, const tl_view *p, const tl_expr *out[TL_MAX_RANK])
{
    tl_lower *l = nest->lower;
    const tl_layout *y = &p->layout;
    int rank = p->shape.rank;
    bool split_last =
        l->split_extent > 0 && y->plain && rank == l->axis_rank && p->buffer == l->output.buffer;
    for (int i = 0; i < rank; i++) {
        int axis = y->plain ? i : y->order[i];
        int64_t extent = p->shape.dims[axis].extent;
        if (split_last && i == rank - 1) {
            const tl_expr *outer =
                tl_nest_iter(nest, TL_ITER_SPATIAL, l->split_outer, extent / l->split_extent);
            const tl_expr *inner =
                tl_nest_iter(nest, TL_ITER_SPATIAL, l->split_inner, l->split_extent);
            out[axis] = tl_add(l->arena, tl_muli(l->arena, outer, l->split_extent), inner);
            continue;
        }
        int64_t block = y->plain ? 1 : y->block[axis];
        assert(extent % block == 0); /* assign_layouts blocks only what divides */
        out[axis] = tl_nest_iter(nest, TL_ITER_SPATIAL, axis_name(l, axis, rank), extent / block);
    }
    for (int i = 0; !y->plain && i < rank; i++) {
        int axis = y->order[i];
        if (y->block[axis] == 1)
            continue;
        const char *name = l->axes_named && l->axis_rank == rank ? l->lane : "lane";
        const tl_expr *lane = tl_nest_iter(nest, TL_ITER_SPATIAL, name, y->block[axis]);
        out[axis] = tl_add(l->arena, tl_muli(l->arena, out[axis], y->block[axis]), lane);
    }
}

/* The block with its loops around it, appended to the program. */
static void finish(tl_block_nest *nest, const tl_block *block)
{
    tl_lower *l = nest->lower;
    const tl_stmt *stmt = tl_stmt_block(l->arena, block);
    for (int i = nest->count - 1; i >= 0; i--) {
        if (nest->loops[i] == NULL || (nest->empty_reduce && nest->iters[i].kind == TL_ITER_REDUCE))
            continue;
        const tl_expr *extent = tl_int(l->arena, nest->loop_extents[i]);
        stmt = tl_stmt_loop(l->arena, nest->loops[i], extent, TL_LOOP_SERIAL, stmt);
    }
    tl_lower_emit(l, stmt);
}

/* The block of the nest's iters; reduce iters without iterations are left out. */
static tl_block *make_block(tl_block_nest *nest, int store_count, const tl_store *stores)
{
    tl_arena *arena = nest->lower->arena;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, nest->count);
    int count = 0;
    for (int i = 0; i < nest->count; i++)
        if (!nest->empty_reduce || nest->iters[i].kind != TL_ITER_REDUCE)
            iters[count++] = nest->iters[i];
    tl_block *block = TL_NEW(arena, tl_block);
    block->name = nest->name;
    block->iter_count = count;
    block->iters = iters;
    block->store_count = store_count;
    block->stores = stores;
    return block;
}

tl_store tl_nest_store_at(tl_block_nest *nest, const tl_view *p, tl_index index,
                          const tl_expr *value)
{
    const tl_expr **physical = TL_NEW_ARRAY(nest->lower->arena, const tl_expr *, 2 * TL_MAX_RANK);
    tl_view_index(nest->lower, p, index, physical);
    return (tl_store){ .buffer = p->buffer, .indices = physical, .value = value };
}

void tl_nest_store(tl_block_nest *nest, const tl_view *p, tl_index index, const tl_expr *value)
{
    tl_store *store = TL_NEW(nest->lower->arena, tl_store);
    *store = tl_nest_store_at(nest, p, index, value);
    finish(nest, make_block(nest, 1, store));
}

void tl_nest_stores(tl_block_nest *nest, int count, const tl_store *stores)
{
    finish(nest, make_block(nest, count, stores));
}

static void reduce(tl_block_nest *nest, tl_combiner combiner, int count, tl_store *stores)
{
    bool reduces = false;
    for (int i = 0; i < nest->count; i++)
        reduces = reduces || nest->iters[i].kind == TL_ITER_REDUCE;
    for (int i = 0; nest->empty_reduce && i < count; i++)
        stores[i].value =
            tl_combiner_identity(nest->lower->arena, combiner, stores[i].value->dtype, i);
    tl_block *block = make_block(nest, count, stores);
    if (reduces && !nest->empty_reduce) {
        block->combiner = combiner;
        block->has_init = true;
    }
    finish(nest, block);
}

void tl_nest_reduce_at(tl_block_nest *nest, tl_combiner combiner, tl_store at)
{
    tl_store *store = TL_NEW(nest->lower->arena, tl_store);
    *store = at;
    reduce(nest, combiner, 1, store);
}

void tl_nest_reduce(tl_block_nest *nest, tl_combiner combiner, const tl_view *p, tl_index index,
                    const tl_expr *value)
{
    tl_nest_reduce_at(nest, combiner, tl_nest_store_at(nest, p, index, value));
}

void tl_nest_update(tl_block_nest *nest, tl_combiner combiner, const tl_view *p, tl_index index,
                    const tl_expr *value)
{
    assert(!nest->empty_reduce);
    tl_store *store = TL_NEW(nest->lower->arena, tl_store);
    *store = tl_nest_store_at(nest, p, index, value);
    tl_block *block = make_block(nest, 1, store);
    block->combiner = combiner;
    finish(nest, block);
}

void tl_nest_reduce_pair(tl_block_nest *nest, tl_combiner combiner, const tl_view places[2],
                         tl_index index, const tl_expr *const values[2])
{
    tl_store *stores = TL_NEW_ARRAY(nest->lower->arena, tl_store, 2);
    for (int i = 0; i < 2; i++)
        stores[i] = tl_nest_store_at(nest, &places[i], index, values[i]);
    reduce(nest, combiner, 2, stores);
}

const tl_expr *tl_inside(tl_arena *arena, const tl_expr *condition, const tl_expr *index,
                         int64_t extent)
{
    const tl_expr *low = tl_ge(arena, index, tl_int(arena, 0));
    const tl_expr *high = tl_lt(arena, index, tl_int(arena, extent));
    if (!tl_is_int(low, 1))
        condition = tl_and(arena, condition, low);
    if (!tl_is_int(high, 1))
        condition = tl_and(arena, condition, high);
    return condition;
}
