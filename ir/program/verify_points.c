/* ir/program/verify_points.c: counterexamples. Instead of proving every binding and access in bounds, which
 * no prover could always do, instances of the block are tried; a violation is then a fact, with the
 * values of the loops that show it. */
#include <string.h>
#include "ir/program/intrinsics.h"
#include "ir/expr/index_private.h"
#include "ir/program/verify_private.h"
#include "runtime/base/random.h"

enum { CORNERS = 3, POINTS = 5, MAX_VALUES = 2 * TL_VERIFY_DEPTH };

typedef struct {
    tl_verifier *v;
    const tl_block *block;
    int count;
    const tl_var *vars[MAX_VALUES];
    int64_t values[MAX_VALUES];
} point;

static bool value_of(const tl_var *var, int64_t *out, void *context)
{
    const point *at = context;
    for (int i = at->count - 1; i >= 0; i--)
        if (at->vars[i] == var) {
            *out = at->values[i];
            return true;
        }
    return false;
}

static bool evaluate(point *at, const tl_expr *e, int64_t *out)
{
    return tl_expr_evaluate(e, value_of, at, out);
}

static void set(point *at, const tl_var *var, int64_t value)
{
    if (at->count < MAX_VALUES) {
        at->vars[at->count] = var;
        at->values[at->count++] = value;
    }
}

/* Dims and loops for point number `n`: 0 all first iterations, 1 all last ones, 2 the last ones of the
 * smallest dims, then random ones. False: no iteration there. */
static bool choose(point *at, int n, tl_random *random)
{
    const tl_program *program = at->v->program;
    at->count = 0;
    for (int i = 0; i < program->dim_count; i++) {
        const tl_var *dim = program->dims[i];
        int64_t size = n == 2 ? dim->min : dim->max;
        if (n >= CORNERS)
            size = dim->min + tl_random_below(random, dim->max - dim->min + 1);
        set(at, dim, size);
    }
    for (int i = 0; i < at->v->loop_count; i++) {
        const tl_stmt *loop = at->v->loops[i];
        int64_t extent;
        if (!evaluate(at, loop->u.loop.extent, &extent) || extent < 1)
            return false;
        int64_t value = n == 0 ? 0 : extent - 1;
        if (n >= CORNERS)
            value = tl_random_below(random, extent);
        set(at, loop->u.loop.var, value);
    }
    return true;
}

/* "i0=15, i1=7": the loops and dims of the point. */
static const char *describe(point *at)
{
    tl_text text = { 0 };
    int shown = at->count < at->v->loop_count + at->v->program->dim_count
                    ? at->count
                    : at->v->loop_count + at->v->program->dim_count;
    for (int i = 0; i < shown; i++)
        tl_text_format(&text, "%s%s=%lld", i > 0 ? ", " : "", at->vars[i]->name,
                       (long long)at->values[i]);
    const char *copy = tl_arena_strdup(at->v->arena, shown > 0 ? tl_text_get(&text) : "its start");
    tl_text_free(&text);
    return copy;
}

static tl_status check_index(point *at, const tl_buffer *buffer, int axis, const tl_expr *index)
{
    int64_t value, extent;
    if (!evaluate(at, index, &value) || !evaluate(at, buffer->shape[axis], &extent) ||
        (value >= 0 && value < extent))
        return TL_OK;
    if (at->v->diag == NULL)
        return TL_BAD_IR;
    return tl_fail(at->v->diag, TL_BAD_IR,
                   "block %s: index %s of %s is %lld, outside 0..%lld, at %s", at->block->name,
                   tl_expr_text(at->v->arena, index), buffer->name, (long long)value,
                   (long long)extent, describe(at));
}

static tl_status check_loads(point *at, const tl_expr *e)
{
    int64_t chosen;
    if (e->kind == TL_EXPR_SELECT) { /* only the chosen arm is executed */
        TL_TRY(check_loads(at, e->args[0]));
        return evaluate(at, e->args[0], &chosen) ? check_loads(at, e->args[chosen ? 1 : 2]) : TL_OK;
    }
    for (int i = 0; i < e->arg_count; i++) {
        TL_TRY(check_loads(at, e->args[i]));
        if (e->kind == TL_EXPR_LOAD)
            TL_TRY(check_index(at, e->u.buffer, i, e->args[i]));
    }
    return TL_OK;
}

static tl_status check_region(point *at, const tl_region *region)
{
    for (int i = 0; i < region->buffer->rank; i++) {
        int64_t size;
        if (!evaluate(at, region->extent[i], &size) || size < 1)
            continue;
        TL_TRY(check_index(at, region->buffer, i, region->begin[i]));
        TL_TRY(
            check_index(at, region->buffer, i, tl_addi(at->v->arena, region->begin[i], size - 1)));
    }
    return TL_OK;
}

static tl_status check_accesses(point *at)
{
    const tl_block *block = at->block;
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        for (int axis = 0; axis < store->buffer->rank; axis++) {
            TL_TRY(check_loads(at, store->indices[axis]));
            TL_TRY(check_index(at, store->buffer, axis, store->indices[axis]));
        }
        TL_TRY(check_loads(at, store->value));
    }
    tl_intrinsic which;
    if (block->call != NULL && tl_intrinsic_from_name(block->call->name, &which) &&
        tl_intrinsic_goes_outside(which))
        return TL_OK;
    for (int i = 0; block->call != NULL && i < block->call->read_count; i++)
        TL_TRY(check_region(at, &block->call->reads[i]));
    for (int i = 0; block->call != NULL && i < block->call->write_count; i++)
        TL_TRY(check_region(at, &block->call->writes[i]));
    return TL_OK;
}

/* Gives the iters their values and checks them; *runs: the predicate lets the instance run. */
static tl_status enter(point *at, bool *runs)
{
    const tl_block *block = at->block;
    int64_t values[TL_VERIFY_DEPTH], extent, holds;
    *runs = false;
    for (int i = 0; i < block->iter_count; i++)
        if (!evaluate(at, block->iters[i].binding, &values[i]))
            return TL_OK;
    for (int i = 0; i < block->iter_count; i++)
        set(at, block->iters[i].var, values[i]);
    if (block->predicate != NULL && (!evaluate(at, block->predicate, &holds) || !holds))
        return TL_OK;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (!evaluate(at, iter->extent, &extent) || (values[i] >= 0 && values[i] < extent))
            continue;
        if (at->v->diag == NULL)
            return TL_BAD_IR;
        return tl_fail(at->v->diag, TL_BAD_IR,
                       "block %s: iter %s is %lld, outside 0..%lld, at %s, and no predicate "
                       "prevents it",
                       block->name, iter->var->name, (long long)values[i], (long long)extent,
                       describe(at));
    }
    *runs = true;
    return TL_OK;
}

tl_status tl_verify_points(tl_verifier *v, const tl_block *block)
{
    point at; /* large: filled as far as `count` */
    at.v = v;
    at.block = block;
    tl_random random = tl_random_make(1);
    int points = v->loop_count + v->program->dim_count == 0 ? 1 : POINTS;
    for (int n = 0; n < points; n++) {
        bool runs;
        if (!choose(&at, n, &random))
            continue;
        TL_TRY(enter(&at, &runs));
        if (runs)
            TL_TRY(check_accesses(&at));
    }
    return TL_OK;
}
