/* frontend/lower/lower_sum.c: sums in cascades. An accumulator of floats takes at most 256 terms one after the other; a
 * longer sum is one of partial sums, and so on:
 *
 *     sum over r of x[r]      becomes      part[k] = sum over s of x[k*S + s]     or x[s*K + k]: S terms, K of them
 *                                          sum over k of part[k]
 *
 * Roundings of one serial sum of n terms add up like n at worst and sqrt(n) on average, those of a cascade like S + K (Higham,
 * Accuracy and Stability of Numerical Algorithms, 2002, section 4.2). Means over images of 112 x 112 were 1e-4 off with one
 * accumulator.
 *
 * The last reduce iters become terms of one accumulator as long as they have no more than 256 together, and those before
 * them numbers of partial sums. Where that makes hardly any terms the next iter is cut in two: into strides where its elements
 * lie side by side (partial sums are then lanes of vectors), into pieces where they lie apart. What divides nowhere gets
 * zeros behind its end. */
#include <assert.h>
#include "frontend/lower/lower_private.h"
#include "ir/expr/index.h"
#include "runtime/base/checked.h"

enum {
    MOST_TERMS = 256, /* along what lies side by side, which schedules add up in lanes anyway */
    MOST_APART = 128, /* elsewhere: an image of 14 x 14 is 14 sums of 14 */
    LEAST_TERMS = 8,  /* of a partial sum: fewer are not worth a place of their own */
    LEAST_PIECE = 16, /* of an iter that is cut, rather than that it divides nowhere */
    LANES =
        64, /* partial sums side by side: whole vectors of every target, in four to sixteen registers */
    LEAST_LANES = 8,
    MOST_TRIED = 256,
};

/* What becomes of a reduce iter of `terms * parts` values, or somewhat fewer. */
typedef struct {
    int64_t terms, parts;
    bool is_strided; /* value s*parts + k is term s of part k; else k*terms + s */
} cut;

static int64_t extent_of(const tl_iter *iter)
{
    return tl_expr_range(iter->extent).max;
}

/* ---- how a sum is cut ---- */

/* The largest divisor of n between least and most that leaves no more than MOST_TERMS; 0: there is none. */
static int64_t divisor(int64_t n, int64_t least, int64_t most)
{
    for (int64_t d = tl_min64(n, most); d >= least; d--)
        if (n % d == 0 && n / d <= MOST_TERMS)
            return d;
    return 0;
}

/* Parts side by side: whole vectors if that is possible. */
static cut cut_into_strides(int64_t extent)
{
    int64_t least = tl_ceildiv(extent, (int64_t)MOST_TERMS), parts = 0;
    for (int64_t lanes = LANES; lanes >= LANES / 4 && parts == 0; lanes /= 2) {
        int64_t n = tl_ceildiv(least, lanes), most = tl_min64(4 * n, n + MOST_TRIED);
        for (; n < most && parts == 0; n++)
            if (extent % (n * lanes) == 0)
                parts = n * lanes;
    }
    if (parts == 0)
        parts = divisor(extent, LEAST_LANES, LANES);
    if (parts == 0)
        parts = LANES * tl_ceildiv(least, (int64_t)LANES);
    return (cut){ tl_ceildiv(extent, parts), parts, true };
}

static cut cut_into_pieces(int64_t extent, int64_t most)
{
    for (int64_t terms = most; terms >= tl_min64(LEAST_PIECE, most / 2 + 1); terms--)
        if (extent % terms == 0)
            return (cut){ terms, extent / terms, false };
    int64_t parts = tl_ceildiv(extent, most);
    return (cut){ tl_ceildiv(extent, parts), parts, false };
}

/* The load of the value that moves with the most iters of the nest: what is summed up. NULL: there is none. */
typedef struct {
    const tl_block_nest *nest;
    const tl_expr *load;
    int iters;
} main_load;

static bool weigh_load(const tl_expr *e, void *context)
{
    main_load *found = context;
    if (e->kind != TL_EXPR_LOAD)
        return true;
    int iters = 0;
    for (int i = 0; i < found->nest->count; i++)
        iters += tl_expr_uses_var(e, found->nest->iters[i].var);
    if (iters > found->iters) {
        found->load = e;
        found->iters = iters;
    }
    return true;
}

/* The number of the iter along which the main load is contiguous; -1: none. */
static int contiguous_iter(const tl_block_nest *nest, const tl_expr *value)
{
    tl_arena *arena = tl_lower_arena(nest->lower);
    main_load found = { .nest = nest };
    tl_expr_visit(value, weigh_load, &found);
    if (found.load == NULL || found.load->u.buffer->rank == 0)
        return -1;
    const tl_expr *last = found.load->args[found.load->u.buffer->rank - 1];
    for (int i = nest->count - 1; i >= 0; i--) {
        int64_t coefficient;
        const tl_expr *rest;
        if (tl_affine_in(arena, last, nest->iters[i].var, &coefficient, &rest) && coefficient == 1)
            return i;
    }
    return -1;
}

/* Rows of some vectors that lie side by side, not too many for one accumulator: a partial sum for each place of a row, so that
 * the lanes of all rows are added up once. */
static bool sums_rows_in_lanes(const tl_block_nest *nest, int contiguous, cut cuts[TL_MAX_ITERS])
{
    int64_t rows = 1, row = extent_of(&nest->iters[contiguous]);
    if (row < LANES / 4 || row > LANES)
        return false;
    for (int i = 0; i < nest->count; i++) {
        int64_t extent = extent_of(&nest->iters[i]);
        cuts[i] = (cut){ extent, 1, false };
        if (nest->iters[i].kind == TL_ITER_REDUCE && i != contiguous &&
            tl_mul_overflows(rows, extent, &rows))
            return false;
    }
    cuts[contiguous] = (cut){ 1, row, true };
    return rows >= LEAST_TERMS && rows <= MOST_TERMS && rows > MOST_TERMS / row;
}

/* Cuts every reduce iter of the nest. Returns false when one accumulator takes the whole sum. */
static bool choose_cuts(const tl_block_nest *nest, int contiguous, cut cuts[TL_MAX_ITERS])
{
    bool lies_apart = contiguous < 0 || nest->iters[contiguous].kind != TL_ITER_REDUCE;
    const int64_t most = lies_apart ? MOST_APART : MOST_TERMS;
    int64_t room = most; /* how often the terms so far fit in an accumulator */
    bool is_full = false;
    if (!lies_apart && sums_rows_in_lanes(nest, contiguous, cuts))
        return true;
    for (int i = nest->count - 1; i >= 0; i--) {
        int64_t extent = extent_of(&nest->iters[i]);
        cuts[i] = (cut){ 1, extent, false };
        if (nest->iters[i].kind != TL_ITER_REDUCE || is_full)
            continue;
        if (extent <= room)
            cuts[i] = (cut){ extent, 1, false };
        else if (room == most && i == contiguous)
            cuts[i] = cut_into_strides(extent);
        else if (room > most / LEAST_TERMS)
            cuts[i] = cut_into_pieces(extent, room);
        is_full = cuts[i].parts > 1 && room / cuts[i].terms <= most / LEAST_TERMS;
        room /= cuts[i].terms;
    }
    for (int i = 0; i < nest->count; i++)
        if (nest->iters[i].kind == TL_ITER_REDUCE && cuts[i].parts > 1)
            return true;
    return false;
}

/* ---- the nests ---- */

/* An iter of `from` once more, in another nest, and the expression of its value there. */
static const tl_expr *repeat_iter(tl_block_nest *nest, const tl_block_nest *from, int i)
{
    tl_arena *arena = tl_lower_arena(nest->lower);
    const tl_iter *old = &from->iters[i];
    const tl_var *loop = NULL;
    tl_iter made = *old;
    assert(nest->count < TL_MAX_ITERS);
    made.var = tl_var_make(arena, old->var->name, old->var->min, old->var->max);
    if (from->loops[i] != NULL) {
        loop = tl_var_make(arena, from->loops[i]->name, from->loops[i]->min, from->loops[i]->max);
        tl_binding binding = { from->loops[i], tl_ref(arena, loop) };
        made.binding = tl_substitute(arena, old->binding, &binding, 1);
    }
    nest->loops[nest->count] = loop;
    nest->loop_extents[nest->count] = from->loop_extents[i];
    nest->iters[nest->count++] = made;
    return tl_ref(arena, made.var);
}

/* The partial sums in the making. */
typedef struct {
    const tl_block_nest *whole; /* the nest of the whole sum */
    const cut *cuts;
    tl_block_nest nest; /* that fills part */
    const tl_expr *parts
        [TL_MAX_ITERS]; /* by iters of the whole: the number of the part; NULL: there is no such axis */
    int axes[TL_MAX_ITERS], rank;      /* of part: those iters */
    tl_binding bindings[TL_MAX_ITERS]; /* of the whole's variables */
    const tl_expr *inside;             /* what is no zero behind the end; NULL: all */
} partial;

static void add_axis(partial *p, int i)
{
    const tl_iter *iter = &p->whole->iters[i];
    assert(p->rank < 2 * TL_MAX_RANK);
    p->parts[i] = iter->kind == TL_ITER_REDUCE
                      ? tl_nest_iter(&p->nest, TL_ITER_SPATIAL, iter->var->name, p->cuts[i].parts)
                      : repeat_iter(&p->nest, p->whole, i);
    p->axes[p->rank++] = i;
}

/* The axes of the parts, those that lie side by side last. */
static void add_axes(partial *p, const tl_expr *value, int contiguous)
{
    bool lanes_are_spatial = contiguous >= 0 && p->whole->iters[contiguous].kind == TL_ITER_SPATIAL;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->whole->count; i++) {
            bool reduces = p->whole->iters[i].kind == TL_ITER_REDUCE;
            bool has_axis =
                reduces ? p->cuts[i].parts > 1 : tl_expr_uses_var(value, p->whole->iters[i].var);
            if (has_axis && i != contiguous && reduces == (pass == 1))
                add_axis(p, i);
            else if (i == contiguous && !lanes_are_spatial && pass == 1 && has_axis)
                add_axis(p, i);
        }
    if (lanes_are_spatial)
        add_axis(p, contiguous);
}

/* Reduce iters over the terms, and what the whole's variables are in the nest of the parts. */
static void add_terms(partial *p)
{
    tl_arena *arena = tl_lower_arena(p->nest.lower);
    for (int i = 0; i < p->whole->count; i++) {
        const tl_iter *iter = &p->whole->iters[i];
        const cut *c = &p->cuts[i];
        const tl_expr *at = p->parts[i];
        if (iter->kind == TL_ITER_REDUCE && at == NULL)
            at = repeat_iter(&p->nest, p->whole, i);
        else if (iter->kind == TL_ITER_REDUCE && c->terms > 1) {
            const char *name = tl_arena_format(arena, "%s_term", iter->var->name);
            const tl_expr *term = tl_nest_iter(&p->nest, TL_ITER_REDUCE, name, c->terms);
            at = c->is_strided ? tl_add(arena, tl_muli(arena, term, c->parts), at)
                               : tl_add(arena, tl_muli(arena, at, c->terms), term);
            if (c->terms * c->parts > extent_of(iter))
                p->inside = tl_inside(arena, p->inside, at, extent_of(iter));
        }
        p->bindings[i] = (tl_binding){ iter->var, at == NULL ? tl_int(arena, 0) : at };
    }
}

static const tl_expr **indices_of(const partial *p)
{
    const tl_expr **indices = TL_NEW_ARRAY(tl_lower_arena(p->nest.lower), const tl_expr *, p->rank);
    for (int a = 0; a < p->rank; a++)
        indices[a] = p->parts[p->axes[a]];
    return indices;
}

static const tl_buffer *write_parts(partial *p, const tl_expr *value)
{
    tl_lower *l = p->nest.lower;
    tl_arena *arena = tl_lower_arena(l);
    int64_t extents[TL_MAX_ITERS];
    for (int a = 0; a < p->rank; a++) {
        const tl_iter *iter = &p->whole->iters[p->axes[a]];
        extents[a] = iter->kind == TL_ITER_REDUCE ? p->cuts[p->axes[a]].parts : extent_of(iter);
    }
    const tl_buffer *part = tl_lower_buffer(l, "part", value->dtype, p->rank, extents);
    value = tl_substitute(arena, value, p->bindings, p->whole->count);
    if (p->inside != NULL)
        value = tl_select(arena, p->inside, value, tl_float(arena, value->dtype, 0));
    tl_nest_reduce_at(&p->nest, TL_COMBINER_SUM,
                      (tl_store){ .buffer = part, .indices = indices_of(p), .value = value });
    return part;
}

static void sum(tl_block_nest *nest, tl_store at)
{
    tl_lower *l = nest->lower;
    tl_arena *arena = tl_lower_arena(l);
    cut cuts[TL_MAX_ITERS];
    int contiguous = contiguous_iter(nest, at.value);
    if (!tl_dtype_is_float(at.value->dtype) || nest->empty_reduce || l->kernel->varies ||
        !choose_cuts(nest, contiguous, cuts)) {
        tl_nest_reduce_at(nest, TL_COMBINER_SUM, at);
        return;
    }
    partial p = { .whole = nest,
                  .cuts = cuts,
                  .nest = tl_nest_begin(l, tl_arena_format(arena, "%s_part", nest->name)) };
    add_axes(&p, at.value, contiguous);
    add_terms(&p);
    const tl_buffer *part = write_parts(&p, at.value);

    /* the sum of the parts: the whole's nest with parts for terms */
    tl_block_nest rest = { .lower = l, .name = nest->name };
    tl_binding bindings[TL_MAX_ITERS];
    for (int i = 0; i < nest->count; i++) {
        const tl_iter *iter = &nest->iters[i];
        const tl_expr *again = NULL;
        if (iter->kind != TL_ITER_REDUCE)
            again = repeat_iter(&rest, nest, i);
        else if (p.parts[i] != NULL)
            again = tl_nest_iter(&rest, TL_ITER_REDUCE, iter->var->name, cuts[i].parts);
        p.parts[i] = again;
        bindings[i] = (tl_binding){ iter->var, again == NULL ? tl_int(arena, 0) : again };
    }
    const tl_expr **to = TL_NEW_ARRAY(arena, const tl_expr *, at.buffer->rank);
    for (int a = 0; a < at.buffer->rank; a++)
        to[a] = tl_substitute(arena, at.indices[a], bindings, nest->count);
    at.indices = to;
    at.value = tl_load(arena, part, indices_of(&p));
    sum(&rest, at);
}

void tl_nest_sum(tl_block_nest *nest, const tl_view *p, tl_index index, const tl_expr *value)
{
    sum(nest, tl_nest_store_at(nest, p, index, value));
}
