/* codegen/emit/emit_transpose_llvm.c: a square of elements turned around in registers.
 *
 *     for u in 0..16 unrolled                         r[v] = X[.., v, .. + 0..16]     16 loads of whole vectors
 *       for v in 0..16 vectorized         ->          c = transposed(r)               4 steps of 16 shuffles
 *         Y[.. + v] = X[.., v, .. + u]                Y[.. + 0..16] = c[u]            16 stores
 *
 * Lane by lane that is a gather of sixteen elements for each store, of which each touches sixteen cache lines. The
 * step of distance d exchanges, in every pair of vectors d apart, the elements whose lane has bit d set in the one and not
 * set in the other. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "codegen/lower/passes.h"

enum { MOST_LANES = 16 };

/* What is copied, when the loop's body is one vectorized loop over a plain copy of as many elements. */
static const tl_store *copied(tl_emitter *em, const tl_stmt *loop, int64_t extent,
                              const tl_stmt **vector)
{
    int64_t lanes;
    const tl_stmt *inner = loop->u.loop.body;
    if (em->lanes != 1 || em->mask != NULL || em->guard != NULL ||
        loop->u.loop.kind != TL_LOOP_UNROLLED || inner->kind != TL_STMT_LOOP ||
        inner->u.loop.kind != TL_LOOP_VECTORIZED || !tl_const_int(inner->u.loop.extent, &lanes) ||
        lanes != extent || lanes != tl_vector_lanes(inner, em->target) || lanes > MOST_LANES ||
        lanes < 2 || (lanes & (lanes - 1)) != 0 || inner->u.loop.body->kind != TL_STMT_STORE)
        return NULL;
    const tl_store *store = &inner->u.loop.body->u.store;
    const tl_expr *load = store->value;
    if (load->kind != TL_EXPR_LOAD || load->u.buffer == store->buffer ||
        load->u.buffer->dtype != store->buffer->dtype ||
        tl_emit_memory_type(em, load->dtype) != tl_emit_value_type(em, load->dtype))
        return NULL;
    *vector = inner;
    return store;
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
static bool both_contiguous(tl_emitter *em, const tl_store *store, const tl_var *u, const tl_var *v,
                            int64_t lanes)
{
    tl_address read, written;
    const tl_expr *load = store->value;
    bind_pair(em, u, lanes, v, 0);
    bool good =
        tl_emit_address(em, load->u.buffer, load->args, load, false, &read) && is_contiguous(&read);
    unbind_pair(em);
    if (!good)
        return false;
    bind_pair(em, v, lanes, u, 0);
    good = tl_emit_address(em, store->buffer, store->indices, store->indices, false, &written) &&
           is_contiguous(&written);
    unbind_pair(em);
    return good;
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
    const tl_stmt *inner;
    const tl_store *store = copied(em, loop, extent, &inner);
    if (store == NULL)
        return false;
    const tl_var *u = loop->u.loop.var, *v = inner->u.loop.var;
    if (!both_contiguous(em, store, u, v, extent))
        return false;
    LLVMValueRef rows[MOST_LANES];
    for (int64_t i = 0; i < extent; i++) {
        bind_pair(em, u, extent, v, i);
        rows[i] = tl_emit_load(em, store->value).llvm;
        unbind_pair(em);
    }
    transpose(em, rows, (int)extent);
    for (int64_t i = 0; i < extent; i++) {
        bind_pair(em, v, extent, u, i);
        tl_emit_store_vector(em, store, rows[i]);
        unbind_pair(em);
    }
    return true;
}
