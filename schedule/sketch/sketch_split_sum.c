/* schedule/sketch/sketch_split_sum.c: the default schedule of a contraction whose panel does not stay in L2: its sum in pieces.
 *
 *     for <tile of columns>                       parallel
 *       for <piece of the sum>                    a piece of the panel stays in L2 for all rows
 *         for <tiles of rows>
 *           part[R][C vectors] = 0                registers
 *           for <reduce, of this piece>           rolled
 *             part[r][c] += stream[r] * panel[c]
 *           acc[r][c] += part[r][c]
 *       result = epilogue(acc)
 *
 * A product of one row walks a panel that is an input row by row: there the pieces are some rows each, and columns go inside of
 * them.
 *
 * By rfactor over the outer part of the outermost reduce loop: the first reduction keeps the register tile of
 * sketch_contraction.c, the second is its epilogue. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    MOST_SPAN = 16,   /* vectors of columns that a piece is made for */
    ROWS_AT_ONCE = 8, /* of a panel that is walked in the order in which it lies */
};
/* Steps of a piece: adding a tile's part to the result takes as long as some ten of them. */
enum { FEWEST_STEPS = 128 };

/* The outermost reduce iter that runs more than once; NULL: none does. */
static const tl_iter *outermost_reduce(const tl_block *block)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE && tl_max_extent(block->iters[i].extent) > 1)
            return &block->iters[i];
    return NULL;
}

/* A contraction's sums, and what they may be cut into. */
typedef struct {
    tl_tile_problem whole;
    int64_t extent;     /* of the loop that is cut */
    int64_t step_bytes; /* of the panel, for a vector of columns */
} sums;

/* The tile that suits a piece. */
static tl_register_tile tile_of(const tl_target *target, const sums *x, int64_t pieces)
{
    tl_tile_problem piece = x->whole;
    piece.steps /= pieces;
    return tl_choose_tile(target, &piece);
}

/* The fewest pieces, dividing the extent, of which each takes at most so many bytes with its tile; fewer than the extent,
 * for a reduction must be left inside. 0: there are none with steps enough. */
static int64_t fewest_pieces(const tl_target *target, const sums *x, int64_t bytes)
{
    for (int64_t pieces = 1; pieces < x->extent || pieces == 1; pieces++) {
        int64_t steps = x->whole.steps / pieces;
        if (x->extent % pieces != 0 || (pieces > 1 && steps < FEWEST_STEPS))
            continue;
        if (steps * tile_of(target, x, pieces).columns * x->step_bytes <= bytes)
            return pieces;
    }
    return 0;
}

/* One piece when the panel stays in L2: when it takes at most a quarter of it. If it has to be cut anyway, then so that
 * what is read again for each tile of rows comes from near L1. (Measured: 1.2 times as fast as pieces of a quarter of L2
 * for 3x3 convolutions of 512 channels, 7 by 7, which leave L2 to the stream and to the next panel.) */
static int64_t choose_pieces(const tl_target *target, const sums *x)
{
    int64_t fewest = fewest_pieces(target, x, target->l2_bytes / 4);
    int64_t small = fewest == 1 ? 1 : fewest_pieces(target, x, 2 * target->l1_bytes);
    return small > 0 ? small : tl_max64(fewest, 1);
}

/* A product of one row whose panel is an input and stays in no cache: columns by columns, each of its lines would be in another
 * page than the one before. So it is walked row by row, some rows at once, beside sums that are added to in L1. */
static bool is_walked(const tl_target *target, const tl_contraction *c, int64_t columns)
{
    const tl_buffer *panel = c->panel->u.buffer;
    return tl_sketch_points(c->block, TL_ITER_SPATIAL) == columns &&
           !tl_sketch_is_constant(panel) && !tl_sketch_stays_in_l2(target, panel);
}

/* The most vectors of each core's share of so many that divide them. */
static int64_t share_of(const tl_target *target, int64_t vectors)
{
    int64_t span = tl_max64(vectors / tl_max64(target->cores, 1), 1);
    while (vectors % span != 0)
        span--;
    return span;
}

/* The loop over pieces of the sum goes around those of its result's columns. */
static tl_status put_pieces_outside(tl_schedule *s, tl_block_ref anchor, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_list loops, all = { 0 };
    TL_TRY(tl_sketch_loops(s, anchor, 1, &loops, diag));
    for (int reduces = 1; reduces >= 0; reduces--)
        for (int i = 0; i < loops.count; i++)
            if (tl_sketch_drives_reduce(s, block, loops.loops[i]) == (reduces != 0))
                tl_loop_push(&all, loops.loops[i]);
    return tl_reorder(s, all.loops, all.count, diag);
}

tl_status tl_rfactor(tl_schedule *s, tl_block_ref block, tl_loop_ref loop, tl_block_ref *out,
                     tl_diag *diag)
{
    tl_arg args[2] = { { .kind = TL_ARG_BLOCK, .block = block },
                       { .kind = TL_ARG_LOOP, .loop = loop } };
    tl_arg results[TL_MAX_ARGS];
    int count = 0;
    TL_TRY(tl_schedule_apply(s, TL_PRIM_rfactor, args, 2, results, &count, diag));
    *out = results[0].block;
    return TL_OK;
}

tl_status tl_sketch_split_sum(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const char *name = block->name;
    const tl_buffer *result = block->stores[0].buffer;
    tl_contraction c;
    int64_t steps = tl_sketch_points(block, TL_ITER_REDUCE);
    const tl_iter *reduce = outermost_reduce(block);
    if (!tl_find_contraction(s->arena, block, &c) || reduce == NULL)
        return tl_refuse(diag, "default schedule", name, "is no contraction");
    if (tl_keeps_order(s, block))
        return tl_refuse(diag, "default schedule", name, "%s", TL_STRICT_RULE);

    /* the column loop: of the result's axis before the last that moves with the panel alone */
    int lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    tl_loop_list loops, own;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    TL_TRY(tl_sketch_loops(s, anchor, 0, &own, diag));
    int column = -1;
    int64_t rows = 1, width = 1; /* width: elements of the column loop in a vector */
    for (int i = 0; i < block->iter_count && i < loops.count; i++) {
        const tl_var *iter = block->iters[i].var;
        bool in_panel = tl_expr_uses_var(c.panel, iter),
             in_stream = tl_expr_uses_var(c.stream, iter);
        int64_t extent = tl_max_extent(block->iters[i].extent);
        if (block->iters[i].kind != TL_ITER_SPATIAL ||
            tl_sketch_extent(s, loops.loops[i]) != extent)
            continue;
        if (in_panel && !in_stream && (iter != c.vector ? extent > 1 : extent > lanes)) {
            column = i;
            width = iter == c.vector ? lanes : 1;
        }
        if (in_stream && !in_panel)
            rows *= extent;
    }
    int last = loops.count - 1;
    int64_t vectors = column < 0 ? 0 : tl_ceildiv(tl_sketch_extent(s, loops.loops[column]), width);
    if (column < 0 || (column < last && tl_sketch_extent(s, loops.loops[last]) > lanes))
        return tl_refuse(diag, "default schedule", name, "has no blocks of columns");
    const sums x = {
        .whole = { .rows = rows, .lines = 1, .vectors = vectors, .steps = steps },
        .extent = tl_max_extent(reduce->extent),
        .step_bytes = tl_storage_bytes(block->stores[0].buffer->dtype, lanes),
    };
    int64_t pieces = choose_pieces(s->target, &x);
    const tl_register_tile tile = tile_of(s->target, &x, pieces);
    const bool walked = is_walked(s->target, &c, tl_sketch_extent(s, loops.loops[column])) &&
                        x.extent % ROWS_AT_ONCE == 0;
    int64_t options[32];
    int option_count = tl_sketch_divisors(x.extent, options, 32);
    pieces = tl_decide(s, name, "pieces", options, tl_max64(option_count - 1, 1),
                       walked              ? x.extent / ROWS_AT_ONCE
                       : rows <= tile.rows ? 1
                                           : pieces);
    if (pieces == 1)
        return tl_refuse(diag, "default schedule", name, "has a panel that stays in L2");
    const int64_t wanted = walked ? share_of(s->target, vectors) : tile.columns;
    int64_t span =
        tl_decide_range(s, name, "span", 1, tl_max64(tl_min64(vectors, MOST_SPAN), wanted), wanted);
    if (column == last && tl_sketch_extent(s, loops.loops[last]) % (span * width) != 0)
        return tl_refuse(diag, "default schedule", name, "has lanes beyond its last column");

    tl_loop_ref parts[2], columns[2];
    tl_block_ref partial;
    tl_loop_ref loop = tl_sketch_loop_of(s, reduce, &own);
    TL_TRY(tl_split(s, loop, (int64_t[]){ pieces, 0 }, 2, parts, diag));
    TL_TRY(tl_sketch_factor(s, anchor, &own, loop, parts[0], parts[1], &partial, diag));
    TL_TRY(tl_split(s, loops.loops[column], (int64_t[]){ 0, span * width }, 2, columns, diag));
    tl_loop_list all = { 0 };
    tl_loop_push(&all, columns[0]);
    for (int i = 0; i < loops.count; i++)
        tl_loop_push(&all, i == column ? columns[1] : loops.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_sketch_vectorize(s, all.loops[all.count - 1], lanes, &parts[0], diag));
    TL_TRY(tl_compute_at(s, anchor, columns[0], diag));
    TL_TRY(tl_set_scope(s, result->name, "global", diag)); /* all rows: too many for registers */
    if (walked)
        TL_TRY(put_pieces_outside(s, anchor, diag));
    return tl_sketch_contraction(s, partial, anchor, 1, false, diag);
}
