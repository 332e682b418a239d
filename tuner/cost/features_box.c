/* tuner/cost/features_box.c: how much of a buffer a statement touches while some of its loops run.
 *
 * An index is followed as a set of numbers with a width and a count, for all depths at once: sums add widths and multiply
 * counts, `// k` divides the width, `% k` bounds it. What comes out is exact for the affine indices with nested
 * coefficients that splits and fusions make, and an upper bound otherwise; an index that contains a load may be anywhere. */
#include <assert.h>
#include <math.h>
#include "ir/expr/index.h"
#include "runtime/base/checked.h"
#include "tuner/cost/features_private.h"

typedef struct {
    double width[TL_OUTLINE_DEPTH + 1], count[TL_OUTLINE_DEPTH + 1];
} box;

typedef struct {
    const tl_outline *outline;
    const tl_outline_statement *s;
    const box *iters;      /* of the block */
    const int64_t *values; /* of the block's iters, for one point of the loops */
    int moved;             /* the loop that is at 1 in that point; the others are at 0 */
} context;

static const double anywhere = 1e12;

static int loop_of(const context *c, const tl_var *var)
{
    for (int p = 0; p < c->s->depth; p++)
        if (c->outline->loops[c->s->loops[p]].var == var)
            return p;
    return TL_OUTLINE_NONE;
}

static int iter_of(const context *c, const tl_var *var)
{
    for (int i = 0; i < c->s->block->iter_count; i++)
        if (c->s->block->iters[i].var == var)
            return i;
    return TL_OUTLINE_NONE;
}

static void box_of(const context *c, const tl_expr *e, box *out);

static void box_of_var(const context *c, const tl_var *var, box *out)
{
    assert(var != NULL);
    int p = loop_of(c, var), i = iter_of(c, var), depth = c->s->depth;
    if (i >= 0 && c->iters != NULL) {
        *out = c->iters[i];
        return;
    }
    double extent = p >= 0 ? c->outline->loops[c->s->loops[p]].extent : 1;
    for (int d = 0; d <= depth; d++) {
        out->count[d] = d <= p ? extent : 1;
        out->width[d] = out->count[d] - 1;
    }
}

/* An index that is looked up. */
static void box_of_load(const context *c, const tl_expr *e, box *out)
{
    assert(e->kind == TL_EXPR_LOAD);
    for (int d = 0; d <= c->s->depth; d++)
        out->count[d] = 1;
    for (int i = 0; i < e->arg_count; i++) {
        box arg;
        box_of(c, e->args[i], &arg);
        for (int d = 0; d <= c->s->depth; d++)
            out->count[d] *= arg.count[d];
    }
    for (int d = 0; d <= c->s->depth; d++)
        out->width[d] = out->count[d] > 1 ? anywhere : 0;
}

static void box_of_binary(const context *c, const tl_expr *e, box *out)
{
    box b;
    int64_t k = 0;
    bool constant = tl_const_int(e->args[1], &k) || tl_const_int(e->args[0], &k);
    double by = fabs((double)k);
    box_of(c, e->args[0], out);
    box_of(c, e->args[1], &b);
    for (int d = 0; d <= c->s->depth; d++) {
        double width = out->width[d], count = out->count[d] * b.count[d];
        if (e->kind == TL_EXPR_MUL)
            width = constant ? (width + b.width[d]) * by : (width + 1) * (b.width[d] + 1) - 1;
        else if (e->kind == TL_EXPR_FLOORDIV && constant && by > 0)
            width = floor(width / by);
        else if (e->kind == TL_EXPR_FLOORMOD && constant && by > 0)
            width = fmin(width, by - 1);
        else if (e->kind == TL_EXPR_MIN || e->kind == TL_EXPR_MAX)
            width = fmax(width, b.width[d]);
        else
            width += b.width[d];
        out->width[d] = width;
        out->count[d] = fmin(count, width + 1);
    }
}

/* The union of what the operands may be. */
static void box_of_others(const context *c, const tl_expr *e, box *out)
{
    *out = (box){ 0 };
    for (int d = 0; d <= c->s->depth; d++)
        out->count[d] = 1;
    for (int i = 0; i < e->arg_count; i++) {
        box arg;
        box_of(c, e->args[i], &arg);
        for (int d = 0; d <= c->s->depth; d++) {
            out->width[d] = fmax(out->width[d], arg.width[d]);
            out->count[d] = fmax(out->count[d], arg.count[d]);
        }
    }
}

static void box_of(const context *c, const tl_expr *e, box *out)
{
    if (e->kind == TL_EXPR_VAR)
        box_of_var(c, e->u.var, out);
    else if (e->kind == TL_EXPR_LOAD)
        box_of_load(c, e, out);
    else if (tl_expr_infos[e->kind].arity == 2)
        box_of_binary(c, e, out);
    else
        box_of_others(c, e, out);
}

/* --- one point ------------------------------------------------------------------------------------------------------ */

static int64_t value_of(const context *c, const tl_expr *e)
{
    if (e->kind == TL_EXPR_INT)
        return e->u.value;
    if (e->kind == TL_EXPR_VAR) {
        int i = iter_of(c, e->u.var);
        if (i >= 0 && i < TL_OUTLINE_DEPTH && c->values != NULL)
            return c->values[i];
        return c->moved >= 0 && loop_of(c, e->u.var) == c->moved;
    }
    if (e->arg_count != 2 || e->kind == TL_EXPR_LOAD || e->kind == TL_EXPR_CALL)
        return 0;
    int64_t a = value_of(c, e->args[0]), b = value_of(c, e->args[1]);
    if (e->kind == TL_EXPR_ADD)
        return a + b;
    if (e->kind == TL_EXPR_SUB)
        return a - b;
    if (e->kind == TL_EXPR_MUL)
        return a * b;
    if (e->kind == TL_EXPR_FLOORDIV && b > 0)
        return tl_floordiv(a, b);
    if (e->kind == TL_EXPR_FLOORMOD && b > 0)
        return tl_floormod(a, b);
    if (e->kind == TL_EXPR_MIN)
        return tl_min64(a, b);
    return e->kind == TL_EXPR_MAX ? tl_max64(a, b) : 0;
}

static int64_t axis_extent(const tl_buffer *b, int axis)
{
    int64_t extent;
    return tl_const_int(b->shape[axis], &extent) ? extent : tl_expr_range(b->shape[axis]).max;
}

static double address_of(const context *c, const tl_buffer *b, const tl_expr *const *indices)
{
    double address = 0, step = 1;
    for (int i = b->rank - 1; i >= 0; i--) {
        address +=
            (double)value_of(c, indices[i]) * (b->strides != NULL ? (double)b->strides[i] : step);
        step *= (double)axis_extent(b, i);
    }
    return address;
}

static double first_address(const tl_outline *outline, const tl_outline_statement *s, int moved,
                            const tl_buffer *b, const tl_expr *const *indices)
{
    int count = s->block->iter_count;
    int64_t values[TL_OUTLINE_DEPTH];
    context c = { .outline = outline, .s = s, .moved = moved };
    for (int i = 0; i < count && i < TL_OUTLINE_DEPTH; i++)
        values[i] = value_of(&c, s->block->iters[i].binding);
    c.values = values;
    return address_of(&c, b, indices);
}

double tl_outline_address(const tl_buffer *buffer, const tl_expr *const *indices)
{
    static const tl_block no_block;
    tl_outline_statement s = { .block = &no_block };
    context c = { .s = &s, .moved = TL_OUTLINE_NONE };
    return address_of(&c, buffer, indices);
}

/* --- accesses ------------------------------------------------------------------------------------------------------- */

/* Lines of a box of n[i] positions in axes of `extent` each, row-major: whole rows join. */
static double lines_of(const tl_buffer *b, const double *n, const double *width, double unit)
{
    assert(unit > 0);
    double run = unit, lines = 1;
    int i = b->rank - 1;
    for (; i >= 0; i--) {
        double extent = (double)axis_extent(b, i);
        if (width[i] + 1 > 2 * n[i]) { /* every so many: no run */
            run = fmin((width[i] + 1) * run, n[i] * fmax(run, TL_LINE_BYTES));
            i--;
            break;
        }
        run *= width[i] + 1;
        if (width[i] + 1 < extent) {
            i--;
            break;
        }
    }
    for (; i >= 0; i--)
        lines *= n[i];
    return lines * ceil(run / TL_LINE_BYTES);
}

static void measure_access(const context *c, tl_outline_access *a, const tl_expr *const *indices)
{
    assert(c->s->depth <= TL_OUTLINE_DEPTH);
    enum { MOST_AXES = 16 };
    const tl_buffer *b = a->buffer;
    int depth = c->s->depth, rank = b->rank < MOST_AXES ? b->rank : MOST_AXES;
    double n[MOST_AXES], width[MOST_AXES], runs = 1;
    box axes[MOST_AXES];
    for (int i = 0; i < rank; i++)
        box_of(c, indices[i], &axes[i]);
    for (int d = depth; d >= 0; d--) {
        double product = 1;
        if (d < depth)
            runs *= c->outline->loops[c->s->loops[d]].extent;
        for (int i = 0; i < rank; i++) {
            double extent = fmax((double)axis_extent(b, i), 1);
            width[i] = fmin(axes[i].width[d], extent - 1);
            n[i] = fmin(fmin(axes[i].count[d], width[i] + 1), runs);
            product *= n[i];
        }
        a->elements[d] = fmin(product, runs);
        a->lines[d] = fmin(lines_of(b, n, width, a->unit), a->elements[d]);
    }
    a->first = first_address(c->outline, c->s, TL_OUTLINE_NONE, b, indices);
    for (int d = 0; d < depth; d++)
        a->stride[d] = fabs(first_address(c->outline, c->s, d, b, indices) - a->first);
}

void tl_outline_measure(tl_outline *outline, tl_outline_statement *s,
                        const tl_expr *const *const *indices)
{
    int count = s->block->iter_count;
    box *iters = TL_NEW_ARRAY(outline->arena, box, count);
    context c = { .outline = outline, .s = s, .moved = TL_OUTLINE_NONE };
    for (int i = 0; i < count; i++)
        box_of(&c, s->block->iters[i].binding, &iters[i]);
    c.iters = iters;
    for (int i = 0; i < s->access_count; i++)
        measure_access(&c, &s->accesses[i], indices[i]);
}
