/* schedule/strided_reads.c: elements that a block never reads, because its indices walk in steps. */
#include "schedule/strided_reads.h"
#include "runtime/base/checked.h"

/* All loads of a buffer, axis by axis; step 0: all of them so far are at `first`. */
typedef struct {
    const tl_buffer *buffer;
    tl_read_step *steps;
    bool found;
} load_walk;

/* An index that is read from memory is held inside its axis wherever that ends: it has no step. */
static tl_read_step step_of(tl_arena *arena, const tl_expr *index)
{
    tl_linear sum = tl_linear_of(arena, index);
    tl_read_step step = { 0, sum.constant };
    if (tl_expr_has_load(index))
        return (tl_read_step){ 1, 0 };
    for (int t = 0; t < sum.count; t++)
        if (!tl_prove_equal(arena, sum.terms[t], tl_int(arena, 0)))
            step.step = tl_gcd(step.step, sum.coefficients[t]);
    return step;
}

static const tl_expr *note_load(tl_arena *arena, const tl_expr *e, void *context)
{
    load_walk *walk = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != walk->buffer)
        return NULL;
    for (int axis = 0; axis < walk->buffer->rank; axis++) {
        tl_read_step own = step_of(arena, e->args[axis]), *all = &walk->steps[axis];
        if (walk->found) {
            int64_t apart = 1;
            (void)tl_sub_overflows(own.first, all->first, &apart); /* then any element */
            own.step = tl_gcd(own.step, tl_gcd(all->step, apart));
        }
        *all = own;
    }
    walk->found = true;
    return NULL;
}

static const tl_expr *note_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, note_load, context);
}

const tl_read_step *tl_read_steps(tl_arena *arena, const tl_stmt *block, const tl_buffer *buffer)
{
    load_walk walk = { buffer, TL_NEW_ARRAY(arena, tl_read_step, buffer->rank), false };
    tl_stmt_map_exprs(arena, block, note_loads, &walk);
    for (int axis = 0; axis < buffer->rank; axis++) {
        tl_read_step *step = &walk.steps[axis];
        if (!walk.found || block->u.block->call != NULL || step->step < 2 ||
            tl_expr_range(buffer->shape[axis]).min < step->step)
            *step = (tl_read_step){ 1, 0 }; /* one element, or none between two */
        step->first = tl_floormod(step->first, step->step);
    }
    return walk.steps;
}

const tl_expr *tl_step_count(tl_arena *arena, tl_read_step step, const tl_expr *extent)
{
    const tl_expr *beyond = tl_addi(arena, extent, step.step - 1 - step.first);
    return tl_floordiv_expr(arena, beyond, tl_int(arena, step.step));
}

typedef struct {
    const tl_buffer *buffer;
    const tl_read_step *steps;
} skip;

static const tl_expr *skip_in_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const skip *s = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != s->buffer)
        return NULL;
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, s->buffer->rank);
    for (int axis = 0; axis < s->buffer->rank; axis++)
        indices[axis] =
            tl_floordiv_expr(arena, tl_addi(arena, e->args[axis], -s->steps[axis].first),
                             tl_int(arena, s->steps[axis].step));
    return tl_load(arena, s->buffer, indices);
}

static const tl_expr *skip_in_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, skip_in_load, context);
}

const tl_stmt *tl_skip_steps(tl_arena *arena, const tl_stmt *block, const tl_buffer *buffer,
                             const tl_read_step *steps)
{
    skip s = { buffer, steps };
    return tl_stmt_map_exprs(arena, block, skip_in_loads, &s);
}
