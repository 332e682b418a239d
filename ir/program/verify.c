/* ir/program/verify.c: the invariants of Programs (ir/README.md lists them). */
#include <string.h>
#include "ir/expr/index.h"
#include "ir/program/intrinsics.h"
#include "ir/program/verify_private.h"

/* ---- what is visible ---- */

/* Which variables an expression may speak of. */
typedef enum { DIMS = 1, LOOPS = 2, ITERS = 4 } scope;

static bool is_visible(const tl_verifier *v, const tl_block *block, scope in, const tl_var *var)
{
    if (var->is_dim) {
        for (int i = 0; i < v->program->dim_count; i++)
            if (v->program->dims[i] == var)
                return true;
        return false;
    }
    for (int i = 0; (in & ITERS) && i < block->iter_count; i++)
        if (block->iters[i].var == var)
            return true;
    for (int i = v->loop_count - 1; (in & LOOPS) && i >= 0; i--)
        if (v->loops[i]->u.loop.var == var)
            return true;
    return false;
}

/* Position of a buffer among the allocs around; -1: it is none of them. */
static int find_alloc(const tl_verifier *v, const tl_buffer *buffer)
{
    int i = v->buffer_count - 1;
    while (i >= 0 && v->buffers[i] != buffer)
        i--;
    return i;
}

static bool is_buffer_visible(const tl_verifier *v, const tl_buffer *buffer)
{
    if (find_alloc(v, buffer) >= 0)
        return true;
    for (int i = 0; i < v->program->param_count; i++)
        if (v->program->params[i] == buffer)
            return true;
    for (int i = 0; i < v->program->prepared_count; i++)
        if (v->program->prepared[i] == buffer)
            return true;
    return false;
}

static const char *place(const tl_block *block)
{
    return block == NULL ? "a statement" : block->name;
}

static tl_status check_private(tl_verifier *v, const tl_block *block, const tl_buffer *buffer)
{
    int alloc = find_alloc(v, buffer);
    for (int i = alloc < 0 ? v->loop_count : v->loops_around[alloc]; i < v->loop_count; i++)
        if (!tl_loop_kind_shares(v->loops[i]->u.loop.kind, buffer->scope))
            return tl_fail(v->diag, TL_BAD_IR,
                           "%s: buffer %s is allocated outside of the %s loop %s, whose "
                           "iterations do not share a buffer in scope %s",
                           place(block), buffer->name,
                           tl_loop_kind_infos[v->loops[i]->u.loop.kind].text,
                           v->loops[i]->u.loop.var->name, tl_scope_texts[buffer->scope]);
    return TL_OK;
}

static tl_status check_expr(tl_verifier *v, const tl_block *block, scope in, const tl_expr *e);

static tl_status check_access(tl_verifier *v, const tl_block *block, scope in,
                              const tl_buffer *buffer, const tl_expr *const *indices)
{
    if (!is_buffer_visible(v, buffer))
        return tl_fail(v->diag, TL_BAD_IR, "%s: buffer %s is not visible there", place(block),
                       buffer->name);
    TL_TRY(check_private(v, block, buffer));
    for (int i = 0; i < buffer->rank; i++) {
        if (indices[i] == NULL || indices[i]->dtype != TL_I64)
            return tl_fail(v->diag, TL_BAD_IR, "%s: index %d of %s is not i64", place(block), i,
                           buffer->name);
        TL_TRY(check_expr(v, block, in, indices[i]));
    }
    return TL_OK;
}

static tl_status check_expr(tl_verifier *v, const tl_block *block, scope in, const tl_expr *e)
{
    if (tl_expr_is_too_large(e))
        return tl_fail(v->diag, TL_BAD_IR,
                       "%s: an expression has %u nodes on %u levels, at most %d on %d are allowed",
                       place(block), e->size, e->depth, TL_EXPR_LARGEST, TL_EXPR_DEEPEST);
    if (e->kind == TL_EXPR_VAR) {
        if (is_visible(v, block, in, e->u.var))
            return TL_OK;
        return tl_fail(v->diag, TL_BAD_IR, "%s: variable %s is not visible there", place(block),
                       e->u.var->name);
    }
    if (e->kind == TL_EXPR_LOAD) {
        if (e->arg_count != e->u.buffer->rank)
            return tl_fail(v->diag, TL_BAD_IR, "%s: a load of %s has %d indices, not %d",
                           place(block), e->u.buffer->name, e->arg_count, e->u.buffer->rank);
        if (e->dtype != e->u.buffer->dtype)
            return tl_fail(v->diag, TL_BAD_IR, "%s: a load of %s gives %s, not %s", place(block),
                           e->u.buffer->name, tl_dtype_infos[e->dtype].text,
                           tl_dtype_infos[e->u.buffer->dtype].text);
        return check_access(v, block, in, e->u.buffer, e->args);
    }
    for (int i = 0; i < e->arg_count; i++)
        TL_TRY(check_expr(v, block, in, e->args[i]));
    return TL_OK;
}

static tl_status check_index(tl_verifier *v, const tl_block *block, scope in, const tl_expr *e,
                             const char *what)
{
    if (e == NULL || e->dtype != TL_I64)
        return tl_fail(v->diag, TL_BAD_IR, "%s: %s is not i64", place(block), what);
    return check_expr(v, block, in, e);
}

/* ---- buffers ---- */

static tl_status check_write(tl_verifier *v, const tl_block *block, const tl_buffer *buffer)
{
    bool legal = false;
    switch (buffer->role) {
    case TL_ROLE_INPUT:
    case TL_ROLE_CONST:
        break;
    case TL_ROLE_OUTPUT:
    case TL_ROLE_INOUT:
        legal = !v->in_prepare;
        break;
    case TL_ROLE_PREPARED:
        legal = v->in_prepare;
        break;
    case TL_ROLE_LOCAL:
        legal = true;
        break;
    }
    if (legal)
        return TL_OK;
    return tl_fail(v->diag, TL_BAD_IR, "%s: the %s writes %s, which it must not", place(block),
                   v->in_prepare ? "prepare part" : "body", buffer->name);
}

static tl_status check_buffer(tl_verifier *v, const tl_buffer *b)
{
    for (int i = 0; i < b->rank; i++) {
        TL_TRY(check_index(v, NULL, DIMS, b->shape[i], "an extent of a buffer"));
        if (tl_expr_range(b->shape[i]).min < 0)
            return tl_fail(v->diag, TL_BAD_IR, "buffer %s: extent %d can be negative", b->name, i);
        if (b->scope != TL_SCOPE_GLOBAL && b->shape[i]->kind != TL_EXPR_INT)
            return tl_fail(v->diag, TL_BAD_IR, "buffer %s: a %s buffer has a constant shape",
                           b->name, tl_scope_texts[b->scope]);
    }
    if (tl_buffer_max_elements(b) < 0)
        return tl_fail(v->diag, TL_BAD_IR, "buffer %s: its size overflows", b->name);
    return TL_OK;
}

/* ---- blocks ---- */

static bool is_concurrent(tl_loop_kind kind)
{
    return kind == TL_LOOP_PARALLEL || kind == TL_LOOP_VECTORIZED || tl_loop_kind_infos[kind].gpu;
}

/* Lanes of a reduction are combined by its combiner, all of them. */
static bool combines_lanes(const tl_block *block, const tl_iter *iter, const tl_stmt *loop)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_SPATIAL && loop->u.loop.var->max > 0 &&
            tl_expr_uses_var(block->iters[i].binding, loop->u.loop.var))
            return false;
    bool is_thread = loop->u.loop.kind != TL_LOOP_VECTORIZED;
    return tl_loop_kind_joins(loop->u.loop.kind) && iter->kind == TL_ITER_REDUCE &&
           block->combiner != TL_COMBINER_NONE && (!is_thread || block->store_count == 1);
}

/* Lanes and threads of a sum are added in a tree. */
static tl_status check_order(tl_verifier *v, const tl_block *block, const tl_iter *iter)
{
    bool ordered = v->program->strict && iter->kind == TL_ITER_REDUCE && tl_block_rounds(block);
    for (int i = 0; ordered && i < v->loop_count; i++)
        if (tl_loop_kind_joins(v->loops[i]->u.loop.kind) &&
            tl_expr_uses_var(iter->binding, v->loops[i]->u.loop.var))
            return tl_fail(v->diag, TL_BAD_IR,
                           "block %s: the kernel is strict, and loop %s would add up "
                           "in another order than that of iter %s",
                           block->name, v->loops[i]->u.loop.var->name, iter->var->name);
    return TL_OK;
}

static tl_status check_iter(tl_verifier *v, const tl_block *block, const tl_iter *iter)
{
    TL_TRY(check_index(v, block, DIMS | LOOPS, iter->extent, "an iter's extent"));
    TL_TRY(check_index(v, block, DIMS | LOOPS, iter->binding, "an iter's binding"));
    tl_range extent = tl_expr_range(iter->extent);
    if (iter->var->min > 0 || (extent.max != INT64_MAX && iter->var->max < extent.max - 1))
        return tl_fail(v->diag, TL_BAD_IR,
                       "block %s: iter %s has the range %lld..%lld, its domain has up to %lld",
                       block->name, iter->var->name, (long long)iter->var->min,
                       (long long)iter->var->max, (long long)extent.max);
    for (int i = 0; iter->kind != TL_ITER_SPATIAL && i < v->loop_count; i++)
        if (is_concurrent(v->loops[i]->u.loop.kind) && !combines_lanes(block, iter, v->loops[i]) &&
            tl_expr_uses_var(iter->binding, v->loops[i]->u.loop.var))
            return tl_fail(v->diag, TL_BAD_IR,
                           "block %s: iter %s is not spatial but runs under the %s loop %s%s",
                           block->name, iter->var->name,
                           tl_loop_kind_infos[v->loops[i]->u.loop.kind].text,
                           v->loops[i]->u.loop.var->name,
                           v->loops[i]->u.loop.kind == TL_LOOP_VECTORIZED
                               ? ", which must drive reduce iters alone for its lanes to combine"
                               : "");
    return check_order(v, block, iter);
}

static tl_status check_store(tl_verifier *v, const tl_block *block, scope in, const tl_store *store)
{
    TL_TRY(check_access(v, block, in, store->buffer, store->indices));
    TL_TRY(check_write(v, block, store->buffer));
    TL_TRY(check_expr(v, block, in, store->value));
    if (store->value->dtype != store->buffer->dtype)
        return tl_fail(v->diag, TL_BAD_IR, "%s: a value of %s is stored into %s, which holds %s",
                       place(block), tl_dtype_infos[store->value->dtype].text, store->buffer->name,
                       tl_dtype_infos[store->buffer->dtype].text);
    return TL_OK;
}

static tl_status check_regions(tl_verifier *v, const tl_block *block, scope in,
                               const tl_region *regions, int count)
{
    for (int i = 0; i < count; i++) {
        TL_TRY(check_access(v, block, in, regions[i].buffer, regions[i].begin));
        TL_TRY(check_access(v, block, in, regions[i].buffer, regions[i].extent));
    }
    return TL_OK;
}

static tl_status check_call(tl_verifier *v, const tl_block *block, scope in,
                            const tl_intrinsic_call *call)
{
    tl_intrinsic intrinsic;
    if (!tl_intrinsic_from_name(call->name, &intrinsic))
        return tl_fail(v->diag, TL_BAD_IR, "%s: there is no intrinsic %s", place(block),
                       call->name);
    TL_TRY(check_regions(v, block, in, call->reads, call->read_count));
    TL_TRY(check_regions(v, block, in, call->writes, call->write_count));
    for (int i = 0; i < call->write_count; i++)
        TL_TRY(check_write(v, block, call->writes[i].buffer));
    for (int i = 0; i < call->scalar_count; i++)
        TL_TRY(check_index(v, block, in, call->scalars[i], "a scalar operand"));
    return TL_OK;
}

/* A reduction stores as many values as its combiner has, at places that no reduce iter moves. */
static tl_status check_reduction(tl_verifier *v, const tl_block *block)
{
    bool reduces = block->combiner != TL_COMBINER_NONE;
    if (reduces && block->store_count != tl_combiner_infos[block->combiner].values)
        return tl_fail(v->diag, TL_BAD_IR, "block %s: %s has %d stores, not %d", block->name,
                       tl_combiner_infos[block->combiner].text, block->store_count,
                       tl_combiner_infos[block->combiner].values);
    if (!reduces && (block->has_init || block->init != NULL))
        return tl_fail(v->diag, TL_BAD_IR, "block %s: an assignment has no init", block->name);
    for (int i = 0; block->init != NULL && i < block->store_count; i++) {
        TL_TRY(check_expr(v, block, DIMS | ITERS, block->init[i]));
        if (block->init[i]->dtype != block->stores[i].buffer->dtype)
            return tl_fail(v->diag, TL_BAD_IR, "block %s: init %d is %s, %s holds %s", block->name,
                           i, tl_dtype_infos[block->init[i]->dtype].text,
                           block->stores[i].buffer->name,
                           tl_dtype_infos[block->stores[i].buffer->dtype].text);
    }
    for (int i = 0; block->call == NULL && i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->kind != TL_ITER_REDUCE)
            continue;
        if (!reduces)
            return tl_fail(v->diag, TL_BAD_IR,
                           "block %s: iter %s reduces, but the block has no combiner", block->name,
                           iter->var->name);
        for (int s = 0; s < block->store_count; s++)
            for (int axis = 0; axis < block->stores[s].buffer->rank; axis++)
                if (tl_expr_uses_var(block->stores[s].indices[axis], iter->var))
                    return tl_fail(v->diag, TL_BAD_IR,
                                   "block %s: the reduce iter %s indexes the result %s",
                                   block->name, iter->var->name, block->stores[s].buffer->name);
    }
    return TL_OK;
}

static tl_status check_block(tl_verifier *v, const tl_block *block)
{
    if (block->iter_count > TL_VERIFY_DEPTH)
        return tl_fail(v->diag, TL_BAD_IR, "block %s: %d iters are too many", block->name,
                       block->iter_count);
    if (tl_map_has(v->blocks, block->name))
        return tl_fail(v->diag, TL_BAD_IR, "there are two blocks named %s", block->name);
    tl_map_put(v->blocks, block->name, v);
    if (block->call == NULL && block->store_count == 0)
        return tl_fail(v->diag, TL_BAD_IR, "block %s stores nothing", block->name);
    for (int i = 0; i < block->iter_count; i++)
        TL_TRY(check_iter(v, block, &block->iters[i]));
    if (block->predicate != NULL) {
        if (block->predicate->dtype != TL_BOOL)
            return tl_fail(v->diag, TL_BAD_IR, "block %s: the predicate is not bool", block->name);
        TL_TRY(check_expr(v, block, DIMS | LOOPS | ITERS, block->predicate));
    }
    for (int i = 0; i < block->store_count; i++)
        TL_TRY(check_store(v, block, DIMS | ITERS, &block->stores[i]));
    if (block->call != NULL)
        TL_TRY(check_call(v, block, DIMS | ITERS, block->call));
    TL_TRY(check_reduction(v, block));
    return tl_verify_points(v, block);
}

/* ---- statements ---- */

static tl_status check_stmt(tl_verifier *v, const tl_stmt *s);

/* A loop over threadIdx inside another one over the same axis, and as long, is the same thread. */
static bool is_same_thread(const tl_stmt *outer, const tl_stmt *inner)
{
    tl_loop_kind kind = inner->u.loop.kind;
    bool is_thread =
        kind == TL_LOOP_THREAD_X || kind == TL_LOOP_THREAD_Y || kind == TL_LOOP_THREAD_Z;
    return is_thread && tl_expr_equal(outer->u.loop.extent, inner->u.loop.extent);
}

static tl_status check_loop_kind(tl_verifier *v, const tl_stmt *s)
{
    tl_loop_kind kind = s->u.loop.kind;
    bool constant =
        kind == TL_LOOP_VECTORIZED || kind == TL_LOOP_UNROLLED || kind == TL_LOOP_VTHREAD;
    if (constant && s->u.loop.extent->kind != TL_EXPR_INT)
        return tl_fail(v->diag, TL_BAD_IR, "loop %s: a loop that is %s has a constant extent",
                       s->u.loop.var->name, tl_loop_kind_infos[kind].text);
    for (int i = 0; i < v->loop_count; i++) {
        tl_loop_kind outer = v->loops[i]->u.loop.kind;
        if (kind == TL_LOOP_PARALLEL && is_concurrent(outer))
            return tl_fail(v->diag, TL_BAD_IR, "loop %s: a parallel loop inside the %s loop %s",
                           s->u.loop.var->name, tl_loop_kind_infos[outer].text,
                           v->loops[i]->u.loop.var->name);
        if (tl_loop_kind_infos[kind].gpu && kind != TL_LOOP_VTHREAD && kind == outer &&
            !is_same_thread(v->loops[i], s))
            return tl_fail(v->diag, TL_BAD_IR, "loops %s and %s, one inside the other, are both %s",
                           v->loops[i]->u.loop.var->name, s->u.loop.var->name,
                           tl_loop_kind_infos[kind].text);
        if (kind == TL_LOOP_VECTORIZED && outer == TL_LOOP_VECTORIZED)
            return tl_fail(v->diag, TL_BAD_IR, "loop %s: vectorized inside the vectorized loop %s",
                           s->u.loop.var->name, v->loops[i]->u.loop.var->name);
    }
    return TL_OK;
}

static tl_status check_loop(tl_verifier *v, const tl_stmt *s)
{
    const tl_var *var = s->u.loop.var;
    if (v->loop_count == TL_VERIFY_DEPTH)
        return tl_fail(v->diag, TL_BAD_IR, "loop %s: nested more than %d deep", var->name,
                       TL_VERIFY_DEPTH);
    for (int i = 0; i < v->loop_count; i++)
        if (v->loops[i]->u.loop.var == var)
            return tl_fail(v->diag, TL_BAD_IR, "loop %s runs inside itself", var->name);
    TL_TRY(check_index(v, NULL, DIMS | LOOPS, s->u.loop.extent, "a loop's extent"));
    if (tl_expr_has_load(s->u.loop.extent))
        return tl_fail(v->diag, TL_BAD_IR, "loop %s: its extent depends on data", var->name);
    tl_range extent = tl_expr_range(s->u.loop.extent);
    bool is_narrow = extent.max != INT64_MAX && var->max < extent.max - 1;
    if (var->min > 0 || (is_narrow && !v->is_lowered))
        return tl_fail(v->diag, TL_BAD_IR,
                       "loop %s: the variable has the range %lld..%lld, the extent is up to %lld",
                       var->name, (long long)var->min, (long long)var->max, (long long)extent.max);
    TL_TRY(check_loop_kind(v, s));
    v->loops[v->loop_count++] = s;
    TL_TRY(check_stmt(v, s->u.loop.body));
    v->loop_count--;
    return TL_OK;
}

static tl_status check_alloc(tl_verifier *v, const tl_stmt *s)
{
    const tl_buffer *b = s->u.alloc.buffer;
    if (b->role != TL_ROLE_LOCAL)
        return tl_fail(v->diag, TL_BAD_IR, "buffer %s is allocated but not local", b->name);
    if (is_buffer_visible(v, b))
        return tl_fail(v->diag, TL_BAD_IR, "buffer %s is allocated inside its own alloc", b->name);
    if (v->buffer_count == TL_VERIFY_DEPTH)
        return tl_fail(v->diag, TL_BAD_IR, "buffer %s: more than %d allocs around", b->name,
                       TL_VERIFY_DEPTH);
    TL_TRY(check_buffer(v, b));
    v->loops_around[v->buffer_count] = v->loop_count;
    v->buffers[v->buffer_count++] = b;
    TL_TRY(check_stmt(v, s->u.alloc.body));
    v->buffer_count--;
    return TL_OK;
}

static tl_status check_barrier(tl_verifier *v)
{
    for (int i = 0; i < v->loop_count; i++) {
        tl_loop_kind kind = v->loops[i]->u.loop.kind;
        if (kind == TL_LOOP_PARALLEL || kind == TL_LOOP_VECTORIZED)
            return tl_fail(v->diag, TL_BAD_IR, "a barrier inside the %s loop %s",
                           tl_loop_kind_infos[kind].text, v->loops[i]->u.loop.var->name);
    }
    return TL_OK;
}

static tl_status check_stmt(tl_verifier *v, const tl_stmt *s)
{
    switch (s->kind) {
    case TL_STMT_LOOP:
        return check_loop(v, s);
    case TL_STMT_SEQ:
        for (int i = 0; i < s->u.seq.count; i++)
            TL_TRY(check_stmt(v, s->u.seq.items[i]));
        return TL_OK;
    case TL_STMT_BLOCK:
        return check_block(v, s->u.block);
    case TL_STMT_ALLOC:
        return check_alloc(v, s);
    case TL_STMT_BARRIER:
        return check_barrier(v);
    case TL_STMT_PREFETCH:
        if (s->u.prefetch.level != 1 && s->u.prefetch.level != 2)
            return tl_fail(v->diag, TL_BAD_IR, "a prefetch of %s into level %d",
                           s->u.prefetch.buffer->name, s->u.prefetch.level);
        return check_access(v, NULL, DIMS | LOOPS, s->u.prefetch.buffer, s->u.prefetch.indices);
    case TL_STMT_IF:
        TL_TRY(check_expr(v, NULL, DIMS | LOOPS, s->u.branch.condition));
        TL_TRY(check_stmt(v, s->u.branch.then));
        return s->u.branch.otherwise == NULL ? TL_OK : check_stmt(v, s->u.branch.otherwise);
    case TL_STMT_STORE:
        return check_store(v, NULL, DIMS | LOOPS, &s->u.store);
    case TL_STMT_CALL:
        return check_call(v, NULL, DIMS | LOOPS, s->u.call);
    case TL_STMT_KIND_COUNT:
        break;
    }
    return tl_fail(v->diag, TL_BAD_IR, "there is no statement of kind %d", (int)s->kind);
}

/* ---- the program ---- */

static tl_status check_names(tl_verifier *v)
{
    const tl_program *p = v->program;
    int total = p->param_count + p->prepared_count;
    for (int i = 0; i < total; i++) {
        const tl_buffer *b = i < p->param_count ? p->params[i] : p->prepared[i - p->param_count];
        bool prepared = b->role == TL_ROLE_PREPARED;
        if (b->role == TL_ROLE_LOCAL || prepared != (i >= p->param_count) ||
            b->scope != TL_SCOPE_GLOBAL)
            return tl_fail(v->diag, TL_BAD_IR, "buffer %s: a local or wrongly placed parameter",
                           b->name);
        TL_TRY(check_buffer(v, b));
        for (int j = 0; j < i; j++) {
            const tl_buffer *other =
                j < p->param_count ? p->params[j] : p->prepared[j - p->param_count];
            if (other == b || strcmp(other->name, b->name) == 0)
                return tl_fail(v->diag, TL_BAD_IR, "two parameters are named %s", b->name);
        }
    }
    for (int i = 0; i < p->dim_count; i++)
        if (!p->dims[i]->is_dim || p->dims[i]->min < 0 || p->dims[i]->max < p->dims[i]->min)
            return tl_fail(v->diag, TL_BAD_IR, "dim %s: %lld..%lld is not a range of sizes",
                           p->dims[i]->name, (long long)p->dims[i]->min,
                           (long long)p->dims[i]->max);
    return TL_OK;
}

static tl_status check_program(tl_verifier *v)
{
    TL_TRY(check_names(v));
    if (v->program->prepare != NULL) {
        v->in_prepare = true;
        TL_TRY(check_stmt(v, v->program->prepare));
        v->in_prepare = false;
    }
    if (v->program->body == NULL)
        return tl_fail(v->diag, TL_BAD_IR, "the program has no body");
    return check_stmt(v, v->program->body);
}

static tl_status verify(const tl_program *program, bool is_lowered, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to verify kernel %s", program->name);
    }
    tl_verifier v; /* large: filled as far as the counts */
    v.program = program;
    v.arena = arena;
    v.diag = diag;
    v.blocks = tl_map_create(arena);
    v.in_prepare = false;
    v.is_lowered = is_lowered;
    v.loop_count = v.buffer_count = 0;
    tl_status status = check_program(&v);
    if (status != TL_OK)
        tl_context(diag, "kernel %s", program->name);
    tl_arena_destroy(arena);
    return status;
}

tl_status tl_program_verify(const tl_program *program, tl_diag *diag)
{
    return verify(program, false, diag);
}

tl_status tl_program_verify_lowered(const tl_program *program, tl_diag *diag)
{
    return verify(program, true, diag);
}
