/* codegen/emit/emit_transpose_llvm.c: a rectangle of elements turned around in registers.
 *
 *     for u in 0..16 unrolled                         r[v] = X[.., v, .. + 0..16]     16 loads of whole vectors
 *       for v in 0..16 vectorized         ->          c = transposed(r)               4 steps of 16 shuffles
 *         Y[.. + v] = X[.., v, .. + u]                Y[.. + 0..16] = c[u]            16 stores
 *
 * Lane by lane that is a gather of sixteen elements for each store, of which each touches sixteen cache lines. The
 * step of distance d exchanges, in every pair of vectors d apart, the elements whose lane has bit d set in the one and not
 * set in the other. Of a rectangle that is no square of a power of two (the tails of such loops) the rest of the square is
 * anything: what is loaded and stored is masked, or goes in parts of fewer lanes. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"

enum { MOST_LANES = 16, LEAST_LANES = 4 };

/* A loop over `u`, unrolled, of one over `v`, vectorized, around a copy. */
typedef struct {
    const tl_store *store;
    const tl_var *u, *v;
    int u_count, v_count;
    int side; /* of the square around it */
} rectangle;

/* Whether the last axis of what is read moves with u alone: with v it would be a copy of lines. */
static bool reads_along(const tl_expr *load, const tl_var *u, const tl_var *v)
{
    const tl_expr *last = load->arg_count > 0 ? load->args[load->arg_count - 1] : NULL;
    return last != NULL && tl_expr_uses_var(last, u) && !tl_expr_uses_var(last, v);
}

/* Whether the loop's body is one vectorized loop over a plain copy, and the two fit a square of the target's vectors. */
static bool find_rectangle(tl_emitter *em, const tl_stmt *loop, int64_t extent, rectangle *r)
{
    int64_t lanes;
    const tl_stmt *inner = loop->u.loop.body;
    if (em->lanes != 1 || em->mask != NULL || em->guard != NULL ||
        loop->u.loop.kind != TL_LOOP_UNROLLED || inner->kind != TL_STMT_LOOP ||
        inner->u.loop.kind != TL_LOOP_VECTORIZED || !tl_const_int(inner->u.loop.extent, &lanes) ||
        inner->u.loop.body->kind != TL_STMT_STORE)
        return false;
    int64_t most = tl_vector_lanes(inner, em->target);
    bool is_square = lanes == extent && lanes == most; /* of two lanes at least */
    if (most > MOST_LANES || most < 2 || lanes > most || extent > most ||
        (!is_square && (lanes < LEAST_LANES || extent < LEAST_LANES)))
        return false;
    const tl_store *store = &inner->u.loop.body->u.store;
    const tl_expr *load = store->value;
    if (load->kind != TL_EXPR_LOAD || load->u.buffer == store->buffer ||
        (!is_square && !reads_along(load, loop->u.loop.var, inner->u.loop.var)) ||
        load->u.buffer->dtype != store->buffer->dtype ||
        tl_emit_memory_type(em, load->dtype) != tl_emit_value_type(em, load->dtype))
        return false;
    *r = (rectangle){ store, loop->u.loop.var, inner->u.loop.var, (int)extent, (int)lanes, 2 };
    while (r->side < r->u_count || r->side < r->v_count)
        r->side *= 2;
    return true;
}

static void bind_pair(tl_emitter *em, const tl_var *lane, int64_t lanes, const tl_var *fixed,
                      int64_t value)
{
    em->lanes = (int)lanes;
    em->lane_var = tl_var_make(em->arena, "lane", 0, lanes - 1);
    tl_bind(em, (tl_bound){ .var = lane, .kind = TL_BOUND_LANE });
    tl_bind(em, (tl_bound){ .var = fixed, .kind = TL_BOUND_CONSTANT, .constant = value });
}

static void unbind_pair(tl_emitter *em)
{
    tl_unbind(em);
    tl_unbind(em);
    em->lanes = 1;
    em->lane_var = NULL;
}

static bool is_contiguous(const tl_address *a)
{
    return a->kind == TL_STRIDE_CONSTANT && a->stride == 1 && a->in_bounds &&
           !a->storage->is_register;
}

/* Whether both sides move by one element, along their own loop. */
static bool both_contiguous(tl_emitter *em, const rectangle *r)
{
    tl_address read, written;
    const tl_store *store = r->store;
    const tl_expr *load = store->value;
    bind_pair(em, r->u, r->u_count, r->v, 0);
    bool good =
        tl_emit_address(em, load->u.buffer, load->args, load, false, &read) && is_contiguous(&read);
    unbind_pair(em);
    if (!good)
        return false;
    bind_pair(em, r->v, r->v_count, r->u, 0);
    good = tl_emit_address(em, store->buffer, store->indices, store->indices, false, &written) &&
           is_contiguous(&written);
    unbind_pair(em);
    return good;
}

/* Row v of what is read, as wide as the square. */
static LLVMValueRef load_row(tl_emitter *em, const rectangle *r, int v)
{
    const tl_expr *load = r->store->value;
    tl_address a;
    LLVMValueRef row = NULL;
    bind_pair(em, r->u, r->u_count, r->v, v);
    if (r->u_count == r->side)
        row = tl_emit_load(em, load).llvm;
    else if (tl_emit_address(em, load->u.buffer, load->args, load, false, &a))
        row = tl_emit_load_first(em, a.storage,
                                 tl_emit_vector(tl_emit_memory_type(em, load->dtype), r->side),
                                 a.pointer, em->lanes);
    unbind_pair(em);
    return row;
}

/* The first lanes of a column, `whole`, to where u says. */
static void store_column(tl_emitter *em, const rectangle *r, int u, LLVMValueRef whole)
{
    const tl_store *store = r->store;
    tl_address a;
    bind_pair(em, r->v, r->v_count, r->u, u);
    if (r->v_count == r->side)
        tl_emit_store_vector(em, store, whole);
    else if (tl_emit_address(em, store->buffer, store->indices, store->indices, false, &a))
        tl_emit_store_first(em, &a, tl_emit_memory_type(em, store->buffer->dtype), whole,
                            em->lanes);
    unbind_pair(em);
}

/* Lanes of a and b by `pick`, which counts b's behind a's. */
static LLVMValueRef shuffle(tl_emitter *em, LLVMValueRef a, LLVMValueRef b, const int *pick,
                            int lanes)
{
    LLVMValueRef picks[MOST_LANES];
    for (int i = 0; i < lanes; i++)
        picks[i] = LLVMConstInt(em->i32, (unsigned)pick[i], false);
    return LLVMBuildShuffleVector(em->builder, a, b, LLVMConstVector(picks, (unsigned)lanes), "");
}

static void transpose(tl_emitter *em, LLVMValueRef *rows, int lanes)
{
    assert(lanes > 0 && (lanes & (lanes - 1)) == 0);
    for (int d = lanes / 2; d >= 1; d /= 2)
        for (int i = 0; i < lanes; i++) {
            if (i & d)
                continue;
            int low[MOST_LANES], high[MOST_LANES];
            for (int l = 0; l < lanes; l++) {
                low[l] = l & d ? lanes + l - d : l;
                high[l] = l & d ? lanes + l : l + d;
            }
            LLVMValueRef a = rows[i], b = rows[i + d];
            rows[i] = shuffle(em, a, b, low, lanes);
            rows[i + d] = shuffle(em, a, b, high, lanes);
        }
}

bool tl_emit_transposed(tl_emitter *em, const tl_stmt *loop, int64_t extent)
{
    assert(loop->kind == TL_STMT_LOOP);
    rectangle r;
    if (!find_rectangle(em, loop, extent, &r) || !both_contiguous(em, &r))
        return false;
    LLVMValueRef rows[MOST_LANES];
    LLVMTypeRef element = tl_emit_memory_type(em, r.store->buffer->dtype);
    for (int v = 0; v < r.side; v++) {
        rows[v] =
            v < r.v_count ? load_row(em, &r, v) : LLVMGetPoison(tl_emit_vector(element, r.side));
        if (rows[v] == NULL)
            return true; /* the emitter has the reason */
    }
    transpose(em, rows, r.side);
    for (int u = 0; u < r.u_count; u++)
        store_column(em, &r, u, rows[u]);
    return true;
}
