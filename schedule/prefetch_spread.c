/* schedule/prefetch_spread.c: a panel's prefetch in equal shares.
 *
 *     for j0                                for j0
 *       for i0 in 0..4                        for i0 in 0..4
 *         for k in 0..768                       for k in 0..768
 *           block reads B[j0, k, 0..32]   ->      prefetch B[j0 + 1, 0, (i0*768 + k)*8] to L2
 *                                                 block reads B[j0, k, 0..32]
 *
 * The panel of 768*32 elements is read four times over; each of the 4*768 steps fetches 8 elements of the next. The
 * last index runs beyond its axis: a prefetch's address is linear. A share smaller than half a line waits for the
 * next loop out, as long as the lines then due at once are few. */
#include "schedule/prefetch_spread.h"
#include <assert.h>
#include "runtime/base/checked.h"

enum { MAX_LINES = 16, MAX_INNER = 32 };

typedef struct {
    const tl_var *var;
    int64_t extent;
    int at;
    bool serial;
} inner_loop;

static int collect(const tl_path *inner, inner_loop *loops)
{
    int count = 0;
    for (int i = 0; i < inner->count; i++) {
        const tl_stmt *stmt = inner->stmts[i];
        if (stmt->kind != TL_STMT_LOOP)
            continue;
        inner_loop *l = &loops[count];
        if (count == MAX_INNER || !tl_const_int(stmt->u.loop.extent, &l->extent))
            return -1;
        l->var = stmt->u.loop.var;
        l->at = i;
        l->serial = stmt->u.loop.kind == TL_LOOP_SERIAL;
        count++;
    }
    return count;
}

/* Elements of one panel: each moving loop's stride is the product of what the faster ones cover. A loop whose digits the
 * index takes apart (k//16, k % 16) moves by one line of the digits together. -1: there are holes. */
static int64_t panel_size(tl_arena *arena, const tl_buffer *buffer, const tl_expr *const *indices,
                          const inner_loop *loops, int count)
{
    assert(count >= 0 && count <= MAX_INNER);
    const tl_expr *offset = tl_int(arena, 0);
    int64_t stride = 1, extent;
    for (int axis = buffer->rank - 1; axis >= 0; axis--) {
        offset = tl_add(arena, offset, tl_muli(arena, indices[axis], stride));
        if (buffer->strides != NULL || !tl_const_int(buffer->shape[axis], &extent))
            return -1;
        stride *= extent;
    }
    int64_t size = 1;
    bool used[MAX_INNER] = { false };
    for (int pass = 0; pass < count; pass++) {
        int next = -1;
        int64_t least = INT64_MAX;
        for (int i = 0; i < count; i++) {
            int64_t coefficient;
            const tl_expr *rest;
            if (used[i] || loops[i].extent == 1 || !tl_expr_uses_var(offset, loops[i].var))
                continue;
            if (!tl_affine_in(arena, offset, loops[i].var, &coefficient, &rest) || coefficient < 1)
                return -1;
            if (coefficient < least) {
                least = coefficient;
                next = i;
            }
        }
        if (next < 0)
            break;
        if (least != size || tl_mul_overflows(size, loops[next].extent, &size))
            return -1;
        used[next] = true;
    }
    return size;
}

bool tl_prefetch_spread(tl_arena *arena, const tl_path *inner, const tl_buffer *buffer,
                        const tl_expr *const *indices, int level, tl_prefetch_share *out)
{
    assert(buffer->rank >= 0 && level >= 0);
    inner_loop loops[MAX_INNER];
    int count = collect(inner, loops), depth = 0;
    int64_t element = (int64_t)tl_dtype_size(buffer->dtype), steps = 1;
    while (depth < count && (loops[depth].serial || loops[depth].extent == 1))
        depth++;
    bool runs = false;
    for (int i = 0; i < depth; i++) {
        runs |= loops[i].extent > 1;
        if (loops[i].extent < 1 || tl_mul_overflows(steps, loops[i].extent, &steps))
            return false;
    }
    int64_t size = count < 0 ? -1 : panel_size(arena, buffer, indices, loops, count);
    if (!runs || size < 1 || buffer->rank < 1)
        return false;

    /* one loop further out while a share is less than half a line and the next one is not too much at once */
    int64_t share = tl_ceildiv(size, steps);
    while (depth > 1 && 2 * share * element < TL_LINE_BYTES &&
           tl_ceildiv(size, steps / loops[depth - 1].extent) * element <=
               MAX_LINES * TL_LINE_BYTES) {
        steps /= loops[--depth].extent;
        share = tl_ceildiv(size, steps);
    }

    const tl_expr *step = tl_int(arena, 0);
    for (int i = 0; i < depth; i++)
        step = tl_add(arena, tl_muli(arena, step, loops[i].extent), tl_ref(arena, loops[i].var));
    tl_binding *zeros = TL_NEW_ARRAY(arena, tl_binding, count);
    for (int i = 0; i < count; i++)
        zeros[i] = (tl_binding){ loops[i].var, tl_int(arena, 0) };
    const tl_expr **start = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
    for (int axis = 0; axis < buffer->rank; axis++)
        start[axis] = tl_substitute(arena, indices[axis], zeros, count);

    int last = buffer->rank - 1;
    int64_t lines = tl_max64(tl_ceildiv(share * element, TL_LINE_BYTES), 1);
    const tl_expr *at = tl_muli(arena, step, share);
    const tl_var *line = tl_var_make(arena, "line", 0, lines - 1);
    if (lines > 1)
        at = tl_add(arena, at, tl_muli(arena, tl_ref(arena, line), TL_LINE_BYTES / element));
    start[last] = tl_add(arena, start[last], at);
    out->at = loops[depth - 1].at;
    out->stmt = tl_stmt_prefetch(arena, buffer, start, level);
    if (lines > 1)
        out->stmt = tl_stmt_loop(arena, line, tl_int(arena, lines), TL_LOOP_UNROLLED, out->stmt);
    return true;
}
