/* schedule/sketch/sketch_pack.c: the panel of a contraction, laid out in the order in which its nest reads it.
 *
 * A constant is packed when the model is loaded (a transform_layout). What is computed at run time is read where it lies,
 * or copied: all of it in a phase of its own, or panel by panel in front of the rows that a panel serves:
 *
 *     for j0                                    parallel
 *       panel[k, j1] = B[k, j0*T + j1]          stays in L2, read straight through
 *       for <tiles of rows>
 *         ...
 *
 * A copy pays where many rows use it and the panel does not stay in L1 as it lies, or where lanes would gather: a convolution
 * to one channel reads rows of places out of blocks of channels, which are turned around first. The other operand, the
 * stream, is copied where every panel would read lines again of which it leaves out half (convolutions of stride 2 with a
 * window of one element), or rows that lie side by side. */
#include <stdlib.h>
#include "runtime/base/checked.h"
#include "schedule/strided_reads.h"
#include "schedule/sketch/sketch_private.h"

enum {
    LEAST_READS =
        3, /* of an element that is turned around: the copy gathers, too, though by whole lines */
    LEAST_COPIED_ROWS = 96, /* using it: 64 are as fast either way, 128 1.1 to 1.3 times faster */
    LEAST_STRIP_USES = 2,   /* panels that a strip of the stream is read for */
    LEAST_L2_USES = 24,     /* of a stream in steps: 8 lose 10 %, 16 gain nothing, 64 gain 8 % */
    LEAST_L3_USES = 4,      /* where it leaves L2 in between: 11 gain 12 %, 32 gain half */
    COPIES_PER_CORE = 4,    /* of panels: as many iterations are shared out evenly enough */
    MOST_WRITTEN_OUT = 8,   /* vectors of a copy */
    MOST_OUTSIDE = 1 << 20, /* iterations beyond that make no difference */
};

/* Where a panel would be copied. */
typedef struct {
    int depth;        /* of the loops outside the copy; 0: all of the operand at once */
    tl_loop_ref loop; /* the innermost of them: the last that moves the panel; id 0: none does */
    int64_t copies, uses; /* how many copies are made, and for how many tiles of rows each */
    int64_t all_uses;     /* for how many tiles of rows one copy of all of it would be */
    int64_t rows;         /* in such a tile */
} panel_place;

/* One digit of an axis of the packed operand: (x // scale) % extent; extent 0: no modulo. */
typedef struct {
    int axis, order; /* order: position among the packed axes */
    int64_t scale, extent;
} digit;

static int compare_digits(const void *a, const void *b)
{
    const digit *x = a, *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : 0;
}

/* How an operand is packed: in vectors, or strips, of `tile` elements of its axis `lanes`. */
typedef struct {
    const tl_contraction *c;
    const tl_expr *packed, *other; /* the loads of the two operands */
    int lanes;
    int64_t tile;
    bool constant;
} packing;

/* An iter in the index of an axis. */
typedef struct {
    int iter;
    int64_t coefficient, extent;
} index_part;

/* The parts of a mixed-radix number, smallest coefficient first; false: the index is none. */
static bool find_parts(tl_schedule *s, const tl_block *block, const tl_expr *index,
                       index_part parts[8], int *count)
{
    *count = 0;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_expr *rest;
        int64_t coefficient;
        if (!tl_expr_uses_var(index, block->iters[i].var))
            continue;
        if (*count == 8 ||
            !tl_affine_in(s->arena, index, block->iters[i].var, &coefficient, &rest) ||
            coefficient < 1)
            return false;
        int at = (*count)++;
        for (; at > 0 && parts[at - 1].coefficient > coefficient; at--)
            parts[at] = parts[at - 1];
        parts[at] = (index_part){ i, coefficient, tl_max_extent(block->iters[i].extent) };
    }
    int64_t scale = 1;
    for (int p = 0; p < *count; p++) {
        bool is_fixed = tl_expr_range(block->iters[parts[p].iter].extent).min == parts[p].extent;
        if (parts[p].coefficient != scale || (!is_fixed && p + 1 < *count))
            return false;
        if (is_fixed)
            scale *= parts[p].extent;
    }
    return true;
}

/* Whether the iter moves the packed operand alone: what is inside of a tile goes last, what is outside first. Of a constant
 * these are all that do, of another operand those of its lanes. */
static bool is_tiled_by(const packing *p, int axis, const tl_iter *iter)
{
    return iter->kind == TL_ITER_SPATIAL && !tl_expr_uses_var(p->other, iter->var) &&
           (p->constant || axis == p->lanes);
}

/* Appends the digits of one axis: the iters in its index, each a digit; the digits with `tile` elements at the end of the
 * tiled iters are one. What both operands move with (a batch, a direction) stands outside of the tiles of a constant: what
 * follows a tile is then what is read next. False when the index is no mixed-radix number. */
static bool add_axis_digits(tl_schedule *s, const packing *p, int axis, digit *digits, int *count,
                            int capacity)
{
    index_part parts[8];
    int part_count;
    const tl_block *block = p->c->block;
    if (tl_max_extent(p->packed->u.buffer->shape[axis]) == 1)
        return true; /* nothing moves along it; of a dim: more than one, as all are */
    if (!find_parts(s, block, p->packed->args[axis], parts, &part_count) ||
        *count + part_count + 1 > capacity)
        return false;
    if (part_count > 0 && is_tiled_by(p, axis, &block->iters[parts[0].iter])) {
        digits[(*count)++] = (digit){ axis, axis, p->tile, 0 };
        digits[(*count)++] = (digit){ axis, 10000 + axis, 1, p->tile };
        return true;
    }
    for (int i = 0; i < part_count; i++) {
        const tl_iter *iter = &block->iters[parts[i].iter];
        int64_t scale = parts[i].coefficient, extent = i == part_count - 1 ? 0 : parts[i].extent;
        int order = iter->var == p->c->tap                         ? 5000
                    : p->constant && iter->kind == TL_ITER_SPATIAL ? -100 + parts[i].iter
                                                                   : 100 + parts[i].iter;
        if (i > 0 && extent == 0 && !p->constant && is_tiled_by(p, axis, iter)) {
            digits[(*count)++] =
                (digit){ axis, 10000 + axis, scale, p->tile }; /* a walk in steps */
            scale *= p->tile;
        }
        digits[(*count)++] = (digit){ axis, order, scale, extent };
    }
    return true;
}

/* The index map that lays the operand out as the nest reads it; NULL when its indices are too odd for it. */
static const char *packing_map(tl_schedule *s, const packing *p)
{
    digit digits[32];
    int count = 0;
    const int rank = p->packed->u.buffer->rank;
    for (int axis = 0; axis < rank; axis++)
        if (!add_axis_digits(s, p, axis, digits, &count, 32))
            return NULL;
    qsort(digits, (size_t)count, sizeof *digits, compare_digits);

    tl_text map = { 0 };
    for (int axis = 0; axis < rank; axis++)
        tl_text_format(&map, "%sx%d", axis ? ", " : "(", axis);
    for (int d = 0; d < count; d++) {
        tl_text_format(&map, "%sx%d", d ? ", " : ") -> (", digits[d].axis);
        if (digits[d].scale != 1)
            tl_text_format(&map, "//%lld", (long long)digits[d].scale);
        if (digits[d].extent != 0)
            tl_text_format(&map, "%%%lld", (long long)digits[d].extent);
    }
    tl_text_add(&map, ")");
    const char *text = tl_arena_strdup(s->arena, tl_text_get(&map));
    tl_text_free(&map);
    return text;
}

const tl_expr *tl_sketch_panel_load(const tl_block *block, const tl_var *vector)
{
    const tl_expr *loads[8];
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int i = 0; i < count; i++)
        if (tl_expr_uses_var(loads[i], vector))
            return loads[i];
    return NULL;
}

/* A copy that turns the panel around: lanes along the axis that the product's vector moves with, and as many of the
 * other written out, so that every line that is read serves all its elements. */
static tl_status schedule_copy(tl_schedule *s, tl_block_ref copy, int axis, int lanes,
                               tl_diag *diag)
{
    tl_loop_list loops, order = { 0 };
    tl_loop_ref across[2], along[2];
    TL_TRY(tl_sketch_loops(s, copy, 0, &loops, diag));
    int last = loops.count - 1;
    if (axis == last || loops.count != tl_schedule_get_block(s, copy)->iter_count ||
        tl_sketch_extent(s, loops.loops[axis]) % lanes != 0 ||
        tl_sketch_extent(s, loops.loops[last]) % lanes != 0)
        return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, copy)->name,
                         "does not turn squares of %d", lanes);
    TL_TRY(tl_split(s, loops.loops[axis], (int64_t[]){ 0, lanes }, 2, across, diag));
    TL_TRY(tl_split(s, loops.loops[last], (int64_t[]){ 0, lanes }, 2, along, diag));
    for (int i = 0; i < last; i++)
        if (i != axis)
            tl_loop_push(&order, loops.loops[i]);
    tl_loop_push(&order, along[0]);
    tl_loop_push(&order, across[0]);
    tl_loop_push(&order, along[1]);
    tl_loop_push(&order, across[1]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_unroll(s, along[1], diag));
    return tl_vectorize(s, across[1], diag);
}

/* How many rows of the result one panel serves, and where it may be copied for them. */
static void find_copy_place(tl_schedule *s, const tl_block *block, const tl_expr *panel,
                            const tl_loop_list *loops, panel_place *place)
{
    *place = (panel_place){ .copies = 1, .uses = 1, .all_uses = 1 };
    for (int l = 0; l < loops->count; l++) {
        int64_t extent = tl_min64(tl_sketch_extent(s, loops->loops[l]), MOST_OUTSIDE);
        place->uses = tl_min64(place->uses * extent, MOST_OUTSIDE);
        if (tl_sketch_moves_load(s, block, panel, loops->loops[l])) {
            place->depth = l + 1;
            place->loop = loops->loops[l];
            place->copies = tl_min64(place->copies * place->uses, MOST_OUTSIDE);
            place->uses = 1;
        } else {
            place->all_uses = tl_min64(place->all_uses * extent, MOST_OUTSIDE);
        }
    }
}

/* Elements between what one step of the reduction loads and the next: those of the axes inside the innermost one that a
 * reduce iter moves. */
static int64_t step_stride(const tl_block *block, const tl_expr *load)
{
    int64_t stride = 1;
    for (int axis = load->u.buffer->rank - 1; axis > 0; axis--) {
        for (int i = 0; i < block->iter_count; i++)
            if (block->iters[i].kind == TL_ITER_REDUCE &&
                tl_expr_uses_var(load->args[axis], block->iters[i].var))
                return stride;
        stride *= tl_max_extent(load->u.buffer->shape[axis]);
    }
    return stride;
}

/* Whether what all steps load, `width` elements in each, stays in half of L1 where it lies. A way of L1 is a page on all
 * these machines, so that rows a page apart meet in the same few sets. */
static bool stays_in_l1(const tl_target *target, const tl_block *block, const tl_expr *load,
                        int64_t width)
{
    int64_t size = (int64_t)tl_dtype_size(load->dtype), places = TL_PAGE_BYTES / TL_LINE_BYTES;
    int64_t lines = tl_ceildiv(width * size, TL_LINE_BYTES);
    int64_t apart = tl_max64(step_stride(block, load) * size / TL_LINE_BYTES, 1);
    for (; apart % 2 == 0 && places > 1; apart /= 2)
        places /= 2; /* of a row's first line, in a way */
    int64_t sets = tl_min64(places * lines, TL_PAGE_BYTES / TL_LINE_BYTES);
    return 2 * tl_sketch_points(block, TL_ITER_REDUCE) * lines <=
           sets * (target->l1_bytes / TL_PAGE_BYTES);
}

enum { IN_PLACE, COPIED_WHOLE, COPIED_BY_PANELS };

/* What the model says of a panel that is no constant. */
static int64_t choose_copy(tl_schedule *s, const tl_block *block, const tl_expr *panel, bool apart,
                           int64_t tile, const panel_place *place)
{
    if (apart)
        return COPIED_WHOLE;
    bool follows =
        step_stride(block, panel) < 2 * tile; /* one step's row almost on the last one's */
    if (follows || place->all_uses * place->rows < LEAST_COPIED_ROWS ||
        stays_in_l1(s->target, block, panel, tile))
        return IN_PLACE;
    if (place->uses * place->rows < LEAST_COPIED_ROWS)
        return COPIED_WHOLE;
    bool shared = s->target->cores == 1 || place->copies >= COPIES_PER_CORE * s->target->cores;
    return place->loop.id != 0 && shared ? COPIED_BY_PANELS : COPIED_WHOLE;
}

/* A copy whose lanes follow each other in both: whole vectors, written out. */
static tl_status schedule_rows(tl_schedule *s, tl_block_ref copy, int depth, int lanes,
                               tl_diag *diag)
{
    tl_loop_list loops;
    tl_loop_ref vectors;
    TL_TRY(tl_sketch_loops(s, copy, depth, &loops, diag));
    if (loops.count == 0)
        return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, copy)->name,
                         "copies one element");
    tl_loop_ref last = loops.loops[loops.count - 1];
    bool is_short = tl_sketch_extent(s, last) <= MOST_WRITTEN_OUT * lanes;
    TL_TRY(tl_sketch_vectorize(s, last, lanes, &vectors, diag));
    return vectors.id != 0 && is_short ? tl_unroll(s, vectors, diag) : TL_OK;
}

/* Copies an operand that is no constant: all of it before the nest, or the part that an iteration of place->loop needs at
 * its head. `map`: its layout, NULL: as it lies; `axis`: along which lanes lie in the copy; `apart`: they are not neighbours
 * in the operand. */
static tl_status copy_operand(tl_schedule *s, tl_block_ref anchor, const tl_expr *load,
                              const char *map, int axis, bool apart, int lanes,
                              const panel_place *place, tl_diag *diag)
{
    tl_block_ref copy;
    TL_TRY(tl_cache_read(s, anchor, load->u.buffer->name, "global", &copy, diag));
    const char *name = tl_schedule_get_block(s, copy)->stores[0].buffer->name;
    if (place->depth > 0)
        TL_TRY(tl_compute_at(s, copy, place->loop, diag));
    if (map != NULL)
        TL_TRY(tl_transform_layout(s, name, map, diag));
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = apart ? schedule_copy(s, copy, axis, lanes, NULL)
                             : schedule_rows(s, copy, place->depth, lanes, NULL);
    if (status == TL_ILLEGAL_SCHEDULE && apart) { /* squares and what is left over */
        tl_schedule_restore(s, &before);
        status = tl_sketch_turn_copy(s, copy, place->depth, axis, TL_NO_PLANE, lanes, lanes, NULL);
    }
    if (status == TL_ILLEGAL_SCHEDULE) {
        tl_schedule_restore(s, &before);
        status = tl_sketch_nest(s, copy, place->depth, NULL);
    }
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return TL_OK;
}

/* A panel that no packing brings into order (a window walks along its rows) and of which lanes would gather: a copy with their
 * axis last, where elements are read again. */
static tl_status turn_panel(tl_schedule *s, tl_block_ref anchor, const tl_contraction *c,
                            const tl_expr *panel, int64_t lanes, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_buffer *buffer = panel->u.buffer;
    int64_t coefficient = 0;
    const tl_expr *rest;
    int axis = -1, axes = 0;
    for (int a = 0; a < buffer->rank; a++)
        if (tl_expr_uses_var(panel->args[a], c->vector)) {
            axis = a;
            axes++;
        }
    bool gathers = tl_access_stride(s->arena, buffer, panel->args, c->vector) > TL_NEAR;
    if (!gathers || axes != 1 || axis == buffer->rank - 1 || buffer->role != TL_ROLE_INPUT ||
        !tl_affine_in(s->arena, panel->args[axis], c->vector, &coefficient, &rest) ||
        coefficient < 1 || coefficient > TL_NEAR ||
        tl_block_instances(block) / LEAST_READS < tl_buffer_max_elements(buffer) ||
        !tl_decide_range(s, block->name, "pack", IN_PLACE, COPIED_WHOLE, COPIED_WHOLE))
        return TL_OK;
    return copy_operand(s, anchor, panel, tl_sketch_axes_last(s->arena, buffer->rank, axis, 1),
                        axis, true, (int)lanes, &(panel_place){ 0 }, diag);
}

/* Packs the panel of the anchor: a constant one by transform_layout, another by a copy. A panel that is computed when
 * the model is loaded cannot be padded to whole tiles: it is packed in single vectors then. */
tl_status tl_sketch_pack_panel(tl_schedule *s, tl_block_ref anchor, const tl_contraction *c,
                               int64_t tile, int64_t lanes, int64_t rows, int depth, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_expr *panel = tl_sketch_panel_load(block, c->vector);
    int axis = 0;
    while (!tl_expr_uses_var(panel->args[axis], c->vector))
        axis++;
    packing packed = { c, panel, c->stream, axis, tile, tl_sketch_is_constant(panel->u.buffer) };
    const char *map = packing_map(s, &packed);
    if (map == NULL)
        return turn_panel(s, anchor, c, panel, lanes, diag);
    bool apart = tl_access_stride(s->arena, panel->u.buffer, panel->args, c->vector) != 1;
    if (packed.constant) {
        if (!tl_decide_range(s, block->name, "pack", apart, 1, 1))
            return TL_OK;
        tl_schedule_state before = tl_schedule_save(s);
        tl_status status = tl_transform_layout(s, panel->u.buffer->name, map, diag);
        if (panel->u.buffer->role == TL_ROLE_CONST || status != TL_ILLEGAL_SCHEDULE ||
            tile == lanes)
            return status;
        tl_schedule_restore(s, &before);
        packed.tile = lanes;
        map = packing_map(s, &packed);
        return tl_transform_layout(s, panel->u.buffer->name, map, diag);
    }
    panel_place place;
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, anchor, 0, &loops, diag));
    loops.count = depth;
    find_copy_place(s, block, panel, &loops, &place);
    place.rows = rows;
    int64_t most = place.loop.id != 0 && !apart ? COPIED_BY_PANELS : COPIED_WHOLE;
    int64_t copied = tl_decide_range(s, block->name, "pack", IN_PLACE, most,
                                     choose_copy(s, block, panel, apart, tile, &place));
    if (copied == IN_PLACE)
        return TL_OK;
    if (copied == COPIED_WHOLE)
        place.depth = 0;
    return copy_operand(s, anchor, panel, map, axis, apart, (int)lanes, &place, diag);
}

/* The load of the stream in the anchor; NULL when there is none. */
static const tl_expr *stream_load(const tl_block *block, const tl_contraction *c)
{
    const tl_expr *loads[8], *stream = NULL;
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int i = 0; i < count; i++)
        if (loads[i]->u.buffer == c->stream->u.buffer && !tl_expr_uses_var(loads[i], c->vector))
            stream = loads[i];
    return stream;
}

/* Bytes that the block brings along when it reads the buffer in steps (a convolution of stride 2 whose window is one
 * element): between two elements of a row all of them, for lines come in pairs, but no row that it leaves out. 0: it reads
 * every element. */
static int64_t bytes_in_steps(tl_schedule *s, const tl_block *block, const tl_buffer *buffer)
{
    tl_path path = tl_path_to_block(s->arena, s->program->body, block->name);
    const tl_read_step *steps = tl_read_steps(s->arena, path.stmts[path.count - 1], buffer);
    int64_t bytes = (int64_t)tl_dtype_size(buffer->dtype), within = 1;
    bool is_large = false;
    for (int axis = 0; axis < buffer->rank; axis++) {
        const tl_expr *count = tl_step_count(s->arena, steps[axis], buffer->shape[axis]);
        is_large |= tl_mul_overflows(bytes, tl_max_extent(count), &bytes);
        if (steps[axis].step > 1)
            within = steps[axis].step;
    }
    is_large |= tl_mul_overflows(bytes, within, &bytes);
    return within == 1 ? 0 : is_large ? INT64_MAX : bytes;
}

/* Whether a copy in strips of `rows` turns the stream around: rows lie side by side in it, steps apart. */
static bool makes_strips(const tl_block *block, const tl_expr *stream, int64_t rows)
{
    int last = stream->u.buffer->rank - 1;
    int64_t extent;
    if (last < 0 || rows == 0 || step_stride(block, stream) == 1 ||
        !tl_const_int(stream->u.buffer->shape[last], &extent) || extent % rows != 0)
        return false;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            tl_expr_uses_var(stream->args[last], block->iters[i].var))
            return false;
    return true;
}

/* The axis of channels of a convolution that walks through planes, where each of a tile's steps asks for a line of another page
 * and L1 keeps none of them for the next tile; -1: it does not. Channels last, a step finds its elements beside those of the
 * one before. */
static int planes_walked(tl_schedule *s, const tl_block *block, const tl_expr *stream)
{
    const tl_buffer *buffer = stream->u.buffer;
    int64_t size = (int64_t)tl_dtype_size(stream->dtype),
            lines = tl_sketch_points(block, TL_ITER_REDUCE);
    int found = -1;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->kind != TL_ITER_REDUCE || tl_max_extent(iter->extent) == 1)
            continue;
        int64_t stride = tl_access_stride(s->arena, buffer, stream->args, iter->var);
        if (stride == TL_NOT_AFFINE)
            return -1;
        if (stride <= TL_NEAR) /* along a line */
            lines /= tl_max_extent(iter->extent);
        for (int axis = 0; stride * size >= TL_PAGE_BYTES && axis < buffer->rank - 1; axis++)
            if (stream->args[axis]->kind == TL_EXPR_VAR && stream->args[axis]->u.var == iter->var)
                found = axis;
    }
    bool leaves_caches = 2 * lines * TL_LINE_BYTES > s->target->l1_bytes &&
                         !tl_sketch_stays_in_l2(s->target, buffer);
    return leaves_caches ? found : -1;
}

tl_status tl_sketch_pack_stream(tl_schedule *s, tl_block_ref anchor, const tl_contraction *c,
                                int64_t rows, int64_t uses, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_expr *stream = stream_load(block, c);
    int64_t lanes = tl_target_lanes(s->target, c->stream->dtype);
    int channels = stream == NULL ? -1 : planes_walked(s, block, stream);
    if (channels >= 0 &&
        tl_decide_range(s, block->name, "channels_last", 0, 1, uses >= LEAST_L3_USES))
        return copy_operand(s, anchor, stream,
                            tl_sketch_axes_last(s->arena, stream->u.buffer->rank, channels, 1),
                            channels, true, (int)lanes, &(panel_place){ 0 }, diag);
    if (stream == NULL || stream->u.buffer->role == TL_ROLE_LOCAL)
        return TL_OK;
    const char *map = NULL;
    int64_t last = stream->u.buffer->rank - 1;
    int64_t bytes = bytes_in_steps(s, block, stream->u.buffer);
    bool pays = uses >= (bytes <= s->target->l2_bytes / 2 ? LEAST_L2_USES : LEAST_L3_USES);
    if (bytes == 0) {
        packing strips = { c, stream, c->panel, (int)last, rows, false };
        map = makes_strips(block, stream, rows) ? packing_map(s, &strips) : NULL;
        if (map == NULL)
            return TL_OK;
        pays = uses >= LEAST_STRIP_USES && !stays_in_l1(s->target, block, stream, rows);
        lanes = rows;
    }
    if (!tl_decide_range(s, block->name, "pack_stream", 0, 1, pays))
        return TL_OK;
    return copy_operand(s, anchor, stream, map, (int)last, false, (int)lanes, &(panel_place){ 0 },
                        diag);
}
