/* schedule/prim/prim_transform_layout.c: transform_layout(buffer, "(j, k) -> (j//32, k, j%32)")
 *
 *     const B: f32[50, 64]                   prepared B_packed: f32[2, 64, 32]
 *                                            prepare
 *     C[j] = sum(A[k]*B[j, k])      ->         for j in 0..2, k in 0..64, j_1 in 0..32
 *                                                B_packed[j, k, j_1] = select(j*32 + j_1 < 50, B[j*32 + j_1, k], 0)
 *                                            C[j] = sum(A[k]*B_packed[j//32, k, j%32])
 *
 * A constant parameter gets a packed copy, made once when the model is loaded, that all reads of the body go to; it is
 * zero where its blocks stick out. A packed copy can be transformed again, and a local buffer is itself replaced.
 *
 * Requires  a constant, prepared or local buffer without strides that no intrinsic takes a region of; a map with an
 *           inverse (schedule/index_map.h). Other parameters belong to the kernel's signature.
 * Keeps     every value read. */
#include <assert.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/index_map.h"
#include "schedule/nest.h"

#define PRIM "transform_layout"

/* The new buffer may be larger by what blocks stick out, within reason. */
#define LARGEST_GROWTH 64

typedef struct {
    const tl_buffer *from, *to;
    const tl_index_map *map;
} relayout;

static const tl_expr *move_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const relayout *r = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != r->from)
        return NULL;
    return tl_load(arena, r->to, tl_index_map_apply(arena, r->map, e->args));
}

static const tl_expr *move_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, move_load, context);
}

static const tl_stmt *move_stores(tl_arena *arena, const tl_stmt *stmt, const relayout *r)
{
    const tl_block *old = stmt->u.block;
    if (!tl_block_writes_buffer(old, r->from))
        return stmt;
    tl_block *block = TL_NEW(arena, tl_block);
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        stores[i] = old->stores[i];
        if (stores[i].buffer == r->from) {
            stores[i].indices = tl_index_map_apply(arena, r->map, stores[i].indices);
            stores[i].buffer = r->to;
        }
    }
    *block = *old;
    block->stores = stores;
    return tl_stmt_block(arena, block);
}

static const tl_stmt *move_stmt(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const relayout *r = context;
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == r->from)
        return tl_stmt_alloc(arena, r->to, stmt->u.alloc.body);
    stmt = tl_stmt_map_exprs(arena, stmt, move_loads, context);
    if (stmt->kind == TL_STMT_BLOCK)
        return move_stores(arena, stmt, r);
    if (stmt->kind == TL_STMT_PREFETCH && stmt->u.prefetch.buffer == r->from)
        return tl_stmt_prefetch(arena, r->to,
                                tl_index_map_apply(arena, r->map, stmt->u.prefetch.indices),
                                stmt->u.prefetch.level);
    return stmt;
}

static const tl_stmt *move_all(tl_arena *arena, const tl_stmt *root, relayout *r)
{
    return root == NULL ? NULL : tl_stmt_rewrite(arena, root, move_stmt, r);
}

typedef struct {
    const tl_buffer *buffer;
    const tl_block *found;
} call_search;

static bool visit_call(const tl_stmt *stmt, void *context)
{
    call_search *search = context;
    const tl_intrinsic_call *call = stmt->kind == TL_STMT_BLOCK ? stmt->u.block->call : NULL;
    for (int i = 0; call != NULL && i < call->read_count; i++)
        if (call->reads[i].buffer == search->buffer)
            search->found = stmt->u.block;
    for (int i = 0; call != NULL && i < call->write_count; i++)
        if (call->writes[i].buffer == search->buffer)
            search->found = stmt->u.block;
    return true;
}

static tl_status check_buffer(tl_schedule *s, const tl_buffer *buffer, tl_diag *diag)
{
    switch (buffer->role) {
    case TL_ROLE_INPUT:
    case TL_ROLE_OUTPUT:
    case TL_ROLE_INOUT:
        return tl_refuse(diag, PRIM, buffer->name,
                         "it is an argument of the kernel, whose layout belongs to the signature; "
                         "cache_read or cache_write makes a local copy that can be transformed");
    case TL_ROLE_CONST:
    case TL_ROLE_PREPARED:
    case TL_ROLE_LOCAL:
        break;
    }
    if (buffer->strides != NULL)
        return tl_refuse(diag, PRIM, buffer->name,
                         "it has strides: transform its layout before storage_align");
    call_search search = { buffer, NULL };
    tl_stmt_visit(s->program->body, visit_call, &search);
    if (s->program->prepare != NULL)
        tl_stmt_visit(s->program->prepare, visit_call, &search);
    if (search.found != NULL)
        return tl_refuse(
            diag, PRIM, buffer->name,
            "block %s gives a region of it to the intrinsic %s, which fixes its layout",
            search.found->name, search.found->call->name);
    return TL_OK;
}

static tl_status make_buffer(tl_schedule *s, const tl_buffer *from, const tl_index_map *map,
                             const tl_buffer **out, tl_diag *diag)
{
    const tl_expr **shape = TL_NEW_ARRAY(s->arena, const tl_expr *, map->axis_count);
    for (int a = 0; a < map->axis_count; a++)
        shape[a] = map->axes[a].extent;
    const char *name = from->name;
    tl_role role = from->role;
    if (role == TL_ROLE_CONST) {
        name = tl_fresh_buffer_name(s, tl_arena_format(s->arena, "%s_packed", from->name));
        role = TL_ROLE_PREPARED;
    }
    const tl_buffer *to =
        tl_buffer_make(s->arena, name, from->dtype, role, from->scope, map->axis_count, shape);
    int64_t before = tl_buffer_max_elements(from), after = tl_buffer_max_elements(to), most;
    if (after < 0 || before < 0 || tl_mul_overflows(before, LARGEST_GROWTH, &most) || after > most)
        return tl_refuse(diag, PRIM, from->name,
                         "the new layout has more than %d times the elements of the old",
                         LARGEST_GROWTH);
    *out = to;
    return TL_OK;
}

static const tl_expr *zero_of(tl_arena *arena, tl_dtype dtype)
{
    return dtype == TL_BOOL ? tl_bool(arena, false) : tl_constant(arena, dtype, 0);
}

/* Loops over all of the new buffer around   to[z] = select(z is no padding, value(old indices of z), 0). */
typedef const tl_expr *value_at(tl_arena *arena, const tl_expr *const *old_indices,
                                const void *context);
static const tl_stmt *pack(tl_arena *arena, const char *name, const tl_buffer *to,
                           const tl_index_map *map, value_at *value, const void *context)
{
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, to->rank);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, to->rank);
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, to->rank);
    for (int a = 0; a < to->rank; a++) {
        const tl_map_axis *axis = &map->axes[a];
        const tl_var *named = axis->count > 0 ? axis->places[axis->count - 1].digit.var
                                              : tl_var_make(arena, "i", 0, 0);
        vars[a] = tl_var_derive(arena, named, "", to->shape[a]);
        tl_var *iter = tl_var_derive(arena, named, "", to->shape[a]);
        iters[a] = (tl_iter){ iter, TL_ITER_SPATIAL, to->shape[a], tl_ref(arena, vars[a]) };
        indices[a] = tl_ref(arena, iter);
    }
    const tl_expr *condition;
    const tl_expr *const *old = tl_index_map_invert(arena, map, indices, &condition);
    const tl_expr *element = value(arena, old, context);
    if (condition != NULL)
        element = tl_select(arena, condition, element, zero_of(arena, to->dtype));

    tl_store *store = TL_NEW(arena, tl_store);
    *store = (tl_store){ to, indices, element };
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){
        .name = name, .iter_count = to->rank, .iters = iters, .store_count = 1, .stores = store
    };
    int parallel = 0; /* the outermost loop that runs more than once */
    while (parallel < to->rank && tl_is_int(to->shape[parallel], 1))
        parallel++;
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int a = to->rank - 1; a >= 0; a--)
        stmt = tl_stmt_loop(arena, vars[a], to->shape[a],
                            a == parallel ? TL_LOOP_PARALLEL : TL_LOOP_SERIAL, stmt);
    return stmt;
}

static const tl_expr *load_at(tl_arena *arena, const tl_expr *const *old_indices,
                              const void *context)
{
    return tl_load(arena, context, old_indices);
}

static tl_status transform_constant(tl_schedule *s, const tl_buffer *from, const tl_index_map *map,
                                    tl_diag *diag)
{
    const tl_block **readers;
    if (tl_readers_of(s->arena, s->program->body, from, &readers) == 0)
        return tl_refuse(diag, PRIM, from->name,
                         "no block of the body reads it (a packed copy may have taken its place: "
                         "transform that)");
    const tl_buffer *to;
    TL_TRY(make_buffer(s, from, map, &to, diag));
    const char *name = tl_fresh_block_name(s, tl_arena_format(s->arena, "%s_pack", from->name));
    const tl_stmt *stage = pack(s->arena, name, to, map, load_at, from);

    relayout r = { from, to, map };
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    const tl_buffer **prepared =
        TL_NEW_ARRAY(s->arena, const tl_buffer *, program->prepared_count + 1);
    for (int i = 0; i < program->prepared_count; i++)
        prepared[i] = program->prepared[i];
    prepared[program->prepared_count++] = to;
    program->prepared = prepared;
    program->prepare =
        program->prepare == NULL ? stage : tl_stmt_seq2(s->arena, program->prepare, stage);
    program->body = move_all(s->arena, program->body, &r);
    tl_schedule_set_program(s, program);
    return TL_OK;
}

/* Whether the block just fills the buffer, an element an instance, its iters the indices. */
static bool fills_plainly(const tl_block *block, const tl_buffer *buffer)
{
    if (block->call != NULL || block->combiner != TL_COMBINER_NONE || block->store_count != 1 ||
        block->predicate != NULL || block->iter_count != buffer->rank)
        return false;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_expr *index = block->stores[0].indices[i];
        if (index->kind != TL_EXPR_VAR || index->u.var != block->iters[i].var ||
            !tl_expr_equal(block->iters[i].extent, buffer->shape[i]))
            return false;
    }
    return !tl_block_reads_buffer(block, buffer);
}

static const tl_expr *value_of_block(tl_arena *arena, const tl_expr *const *old_indices,
                                     const void *context)
{
    const tl_block *block = context;
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, block->iter_count);
    for (int i = 0; i < block->iter_count; i++)
        bindings[i] = (tl_binding){ block->iters[i].var, old_indices[i] };
    return tl_substitute(arena, block->stores[0].value, bindings, block->iter_count);
}

static tl_status transform_prepared(tl_schedule *s, const tl_buffer *from, const tl_index_map *map,
                                    tl_diag *diag)
{
    const tl_buffer *to;
    TL_TRY(make_buffer(s, from, map, &to, diag));
    const tl_block **writers;
    int count = tl_writers_of(s->arena, s->program->prepare, from, &writers);
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    if (count == 1 && fills_plainly(writers[0], from)) {
        tl_path path = tl_path_to_block(s->arena, program->prepare, writers[0]->name);
        int top = path.count - 1;
        while (top > 0 && path.stmts[top - 1]->kind == TL_STMT_LOOP)
            top--;
        tl_path nest = tl_path_prefix(&path, top + 1);
        program->prepare =
            tl_path_replace(s->arena, &nest,
                            pack(s->arena, writers[0]->name, to, map, value_of_block, writers[0]));
    } else if (map->pads) {
        return tl_refuse(diag, PRIM, from->name,
                         "the new layout sticks out and %s fills the buffer in a way that zeros "
                         "cannot be added to; take blocks that divide the extents",
                         count == 1 ? writers[0]->name : "more than one block");
    }

    relayout r = { from, to, map };
    const tl_buffer **prepared = TL_NEW_ARRAY(s->arena, const tl_buffer *, program->prepared_count);
    for (int i = 0; i < program->prepared_count; i++)
        prepared[i] = program->prepared[i] == from ? to : program->prepared[i];
    program->prepared = prepared;
    program->prepare = move_all(s->arena, program->prepare, &r);
    program->body = move_all(s->arena, program->body, &r);
    tl_schedule_set_program(s, program);
    return TL_OK;
}

static tl_status transform_local(tl_schedule *s, const tl_buffer *from, const tl_index_map *map,
                                 tl_diag *diag)
{
    const tl_buffer *to;
    TL_TRY(make_buffer(s, from, map, &to, diag));
    relayout r = { from, to, map };
    tl_program *program = TL_NEW(s->arena, tl_program);
    *program = *s->program;
    program->prepare = move_all(s->arena, program->prepare, &r);
    program->body = move_all(s->arena, program->body, &r);
    tl_schedule_set_program(s, program);
    return TL_OK;
}

tl_status tl_apply_transform_layout(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                    int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_WORD && args[1].kind == TL_ARG_MAP);
    (void)arg_count;
    (void)out;
    *out_count = 0;
    const tl_buffer *buffer = tl_program_find_buffer(s->program, args[0].word);
    if (buffer == NULL)
        return tl_refuse(diag, PRIM, args[0].word, "the kernel has no buffer of that name");
    TL_TRY(check_buffer(s, buffer, diag));
    tl_index_map map;
    tl_status status =
        tl_index_map_make(s->arena, args[1].word, buffer->rank, buffer->shape, &map, diag);
    if (status != TL_OK) {
        tl_context(diag, "transform_layout of %s", buffer->name);
        return status;
    }
    if (buffer->role == TL_ROLE_CONST)
        return transform_constant(s, buffer, &map, diag);
    if (buffer->role == TL_ROLE_PREPARED)
        return transform_prepared(s, buffer, &map, diag);
    return transform_local(s, buffer, &map, diag);
}
