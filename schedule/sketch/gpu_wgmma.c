/* schedule/sketch/gpu_wgmma.c: a contraction in tiles by the products of a warpgroup (sm_90a), from slices that the tensor memory
 * accelerator copies, asked for by a warpgroup of its own.
 *
 *     for <tiles of rows>  blockIdx.x, two of them a cluster      they share the panel
 *       for <other tiles>  blockIdx.y
 *         for <groups>  threadIdx.y                64 rows each
 *           acc[64, lines, columns] = 0            in the registers of a warpgroup
 *           for <slices>                           steps of a window, and of k: one pipeline of up to four stages
 *             stream, panel                        boxes in shared memory, in the order that products read
 *             for k1, lines                        written out
 *               acc[64, line, columns] += stream[64, k]*panel[k, columns]     a call each
 *           out = epilogue(acc)                    every thread its own elements
 *
 * For operands that lie as boxes can be copied: rows along k, or, of the panel, along the columns, that begin at multiples of 16
 * bytes, in arguments of the kernel; and boxes begin there, too: a window moves along lines alone. Constants are laid out so
 * when the model is loaded. What a convolution reads around its image is zeroes by the box's edges. All else is refused, and
 * falls to gpu_mma.c. */
#include <string.h>
#include "schedule/sketch/gpu_private.h"

enum {
    SM = 90,
    ROWS = 64,     /* of a product */
    THREADS = 128, /* of a warpgroup */
    MOST_GROUPS = 2,
    ROW_BYTES = 128,         /* a swizzle reaches no further */
    PIECE = 16,              /* what begins there can be copied */
    MOST_AXES = 5,           /* of what is copied */
    PERIOD_ROWS = 8,         /* a swizzle repeats itself after as many */
    MOST_ACCUMULATORS = 128, /* registers of a thread */
    MOST_STAGES = 4,
    STAGED_BYTES = 200 << 10, /* a block has a multiprocessor for itself */
    COPY_REGISTERS = 40,
    COMPUTE_REGISTERS = 232,
    CLUSTER = 2,
    MOST_BLOCKS_Y = 65535,
    BUSY = 8, /* warps: products go on by themselves, and copies, too */
};

typedef struct {
    const char *name;
    tl_dtype c, a, b;
    int64_t n, k;
    bool is_nk, is_cut;
} product;

static const product products[] = {
#define EXACT false
#define CUT   true
#define PRODUCT(name, c, a, b, m, n, k, lies, operands) \
    { #name, TL_##c, TL_##a, TL_##b, n, k, #lies[0] == 'n', operands },
#include "ir/program/warpgroup_products.def"
#undef PRODUCT
#undef CUT
#undef EXACT
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* ---- which product ---- */

/* Of those types and so many columns (0: whichever). A constant panel can be laid out either way; f32 counts as tf32 where the
 * kernel may. */
static const product *find_instruction(const tl_schedule *s, const tl_gpu_product *p, int64_t n,
                                       bool is_nk)
{
    const product *found = NULL;
    bool is_free = tl_sketch_is_constant(p->c.panel->u.buffer);
    for (int i = 0; i < PRODUCTS; i++) {
        const product *x = &products[i];
        if (x->c != p->c.block->stores[0].buffer->dtype || x->a != p->c.stream->u.buffer->dtype ||
            x->b != p->c.panel->u.buffer->dtype || (x->is_cut && !s->program->tf32) ||
            (n != 0 && x->n != n) || (x->is_nk != is_nk && !is_free))
            continue;
        if (found == NULL || (x->is_nk == is_nk && found->is_nk != is_nk))
            found = x;
    }
    return found;
}

const char *tl_gpu_group_product(tl_dtype c, tl_dtype a, tl_dtype b, int64_t columns, bool is_nk)
{
    for (int i = 0; i < PRODUCTS; i++)
        if (products[i].c == c && products[i].a == a && products[i].b == b &&
            products[i].n == columns && products[i].is_nk == is_nk && !products[i].is_cut)
            return products[i].name;
    return NULL;
}

/* ---- which tile ---- */

typedef struct {
    int64_t groups, columns, lines;
} tile;

/* When a panel that lies across is turned. */
typedef enum { NEVER, BY_SLICES, AHEAD } turning;

typedef struct {
    const tl_gpu_product *p;
    const product *x; /* of any width */
    bool is_window;   /* columns begin anywhere in the panel's rows */
    bool is_turned;   /* the panel lies across */
    int64_t others, terms, depth, size;
} tile_problem;

/* Columns of the panel that lie side by side in shared memory, where its rows run along them. */
static int64_t block_of(const tile_problem *q, int64_t columns)
{
    int64_t block = ROW_BYTES / q->size;
    while (columns % block != 0)
        block /= 2;
    return block;
}

/* Whether the copy of the panel can be shared out among the groups: by lines, by blocks of columns or of rows. */
static bool can_share(const tile_problem *q, const tile *t)
{
    int64_t rows = q->x->is_nk ? t->columns : q->depth;
    int64_t blocks = q->x->is_nk ? t->lines : t->lines * (t->columns / block_of(q, t->columns));
    return blocks % t->groups == 0 || rows % (t->groups * PERIOD_ROWS) == 0;
}

static bool fits(const tile_problem *q, const tile *t)
{
    if (t->columns * t->lines / 2 > MOST_ACCUMULATORS)
        return false;
    if (q->is_turned)
        return tl_gpu_can_turn(t->columns, t->lines, q->depth, q->size, t->groups * THREADS);
    if (!can_share(q, t))
        return false;
    if (q->x->is_nk)
        return true;
    int64_t block = block_of(q, t->columns);
    bool is_one = block == t->columns;
    return block * q->size >= 2 * PIECE && (is_one || (!q->is_window && t->lines == 1));
}

static int64_t bytes_of(const tile_problem *q, const tile *t)
{
    return (t->groups * ROWS + t->columns * t->lines) * q->depth * q->size;
}

/* Multiply-adds of a multiprocessor in a cycle. */
static double rate_of(const product *x)
{
    return 2048 * (double)x->k / 16;
}

/* Cycles of a tile: a product reads both of its operands from shared memory, which serves 128 bytes a cycle; so does, of what
 * comes from memory, L2 with 64. */
static double cycles_of(tl_schedule *s, const tile_problem *q, const tile *t)
{
    const tl_gpu_product *p = q->p;
    int64_t rows = t->groups * ROWS, columns = t->columns * t->lines;
    int64_t blocks = q->others * tl_ceildiv(p->extents[p->row], rows) *
                     tl_ceildiv(p->extents[p->column], t->columns);
    if (p->line >= 0)
        blocks *= tl_ceildiv(p->extents[p->line], t->lines);
    double rate = rate_of(q->x);
    double loads = (double)(t->groups * (t->lines * ROWS + columns) * q->size) / 128;
    double copies = (double)((rows + columns) * q->size) / 64;
    if (q->is_turned) /* what threads store comes between what products load */
        loads += (double)(columns * q->size) / 128;
    tl_gpu_work work = { blocks, BUSY, 1, (double)q->terms * (double)(rows * columns) / rate,
                         (double)q->terms * (loads > copies ? loads : copies) };
    return tl_gpu_cycles(s->target, &work);
}

static const int64_t groups_of[] = { 1, MOST_GROUPS },
                     columns_of[] = { 8, 16, 32, 64, 96, 128, 192, 256 },
                     lines_of[] = { 1, 2, 4, 7, 8 };
enum { GROUPS = 2, COLUMNS = 8, LINES = 5 };

static bool find_tile(tl_schedule *s, const tile_problem *q, tile *best)
{
    int lines = q->p->line >= 0 ? LINES : 1;
    double least = -1;
    for (int at = 0; at < GROUPS * COLUMNS * lines; at++) {
        tile t = { groups_of[at % GROUPS], columns_of[at / GROUPS % COLUMNS],
                   lines_of[at / GROUPS / COLUMNS] };
        if (!fits(q, &t))
            continue;
        double cycles = cycles_of(s, q, &t);
        if (least >= 0 && cycles >= least)
            continue;
        least = cycles;
        *best = t;
    }
    return least >= 0;
}

/* Steps of k in a slice: rows of 128, 64 or 32 bytes, whichever leaves the least empty. 0: none will do. */
static int64_t decide_depth(const tl_gpu_product *p, int term, int64_t size)
{
    int64_t extent = p->extents[term], best = 0, least = 0;
    for (int64_t bytes = ROW_BYTES; bytes >= 2 * PIECE; bytes /= 2) {
        int64_t depth = bytes / size, all = tl_ceildiv(extent, depth) * depth;
        if ((all != extent && !tl_gpu_can_pad(p, term)) || (best != 0 && all >= least))
            continue;
        best = depth;
        least = all;
    }
    return best;
}

static tl_status make_problem(tl_schedule *s, const tl_gpu_product *p, const product *x, int term,
                              bool is_turned, tile_problem *q, tl_diag *diag)
{
    const tl_block *block = p->c.block;
    int n = tl_sketch_axis_of(s, p->c.panel, block->iters[p->column].var);
    *q = (tile_problem){ .p = p,
                         .x = x,
                         .is_turned = is_turned,
                         .is_window = p->c.panel->args[n]->kind != TL_EXPR_VAR,
                         .others = 1,
                         .terms = 1,
                         .size = (int64_t)tl_dtype_size(x->a) };
    if (2 * p->extents[p->row] <= ROWS)
        return tl_refuse(diag, "default schedule", block->name, "has few rows for a warpgroup");
    q->depth = decide_depth(p, term, q->size);
    if (q->depth == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no slices of whole steps");
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            q->terms *= i == term ? tl_ceildiv(p->extents[i], q->depth) * q->depth : p->extents[i];
        else if (i != p->row && i != p->column && i != p->line)
            q->others *= p->extents[i];
    return TL_OK;
}

/* What tensor cores need for all of it, if nothing else held them up. */
static double least_cycles(tl_schedule *s, const tile_problem *q)
{
    const tl_gpu_product *p = q->p;
    double results = (double)(p->extents[p->row] * p->extents[p->column] * q->others);
    if (p->line >= 0)
        results *= (double)p->extents[p->line];
    return results * (double)q->terms / rate_of(q->x) / (double)tl_max64(s->target->cores, 1);
}

/* How a panel that lies across is turned. On an H200 products whose threads turn slices took 2.4 times as long as tensor cores
 * need, others, whose boxes two blocks share, 1.3 times: a launch in front is worth it where it takes no longer than they. */
static tl_status decide_turn(tl_schedule *s, const tl_gpu_product *p, const product *x, int term,
                             turning *turns, tl_diag *diag)
{
    const int64_t options[] = { BY_SLICES, AHEAD };
    tile_problem q;
    tile t;
    TL_TRY(make_problem(s, p, x, term, true, &q, diag));
    bool by_slices = find_tile(s, &q, &t);
    q.is_turned = false;
    bool is_better =
        find_tile(s, &q, &t) &&
        (!by_slices || tl_gpu_cycles_ahead(s->target, p->c.panel->u.buffer) < least_cycles(s, &q));
    *turns =
        (turning)tl_decide(s, p->c.block->name, "turn", options, 2, is_better ? AHEAD : BY_SLICES);
    return TL_OK;
}

static tl_status decide_tile(tl_schedule *s, tl_gpu_product *p, const product **x, int term,
                             bool is_turned, tl_diag *diag)
{
    const tl_block *block = p->c.block;
    tile_problem q;
    tile t;
    TL_TRY(make_problem(s, p, *x, term, is_turned, &q, diag));
    if (!find_tile(s, &q, &t))
        return tl_refuse(diag, "default schedule", block->name, "has no tile that fits");
    t.groups = tl_decide(s, block->name, "groups", groups_of, GROUPS, t.groups);
    t.columns = tl_decide(s, block->name, "group.columns", columns_of, COLUMNS, t.columns);
    if (p->line >= 0)
        t.lines = tl_decide(s, block->name, "group.lines", lines_of, LINES, t.lines);
    *x = find_instruction(s, p, t.columns, (*x)->is_nk);
    if (*x == NULL || !fits(&q, &t) || bytes_of(&q, &t) > STAGED_BYTES)
        return tl_refuse(diag, "default schedule", block->name,
                         "has a tile that no block can have");
    for (int i = 0; i < block->iter_count; i++)
        p->depth[i] = i == term ? q.depth : 1;
    p->cuts[p->row] = (tl_gpu_cut){ t.groups, 1, ROWS };
    p->cuts[p->column] = (tl_gpu_cut){ 1, 1, t.columns };
    if (p->line >= 0)
        p->cuts[p->line] = (tl_gpu_cut){ 1, 1, t.lines };
    p->warps = t.groups;
    return TL_OK;
}

/* ---- operands ---- */

/* A constant lies, from when the model is loaded, with those axes last. */
static tl_status lay_constant(tl_schedule *s, const tl_expr *load, int row, int last, tl_diag *diag)
{
    if (!tl_sketch_is_constant(load->u.buffer))
        return TL_OK;
    return tl_gpu_arrange(s, load->u.buffer->name, (int[]){ row, last }, 2, 1, diag);
}

typedef tl_gpu_boxes slice_layout;

/* Whether it lies in global memory when the launch that reads it begins: an argument, or what a launch in front, which has its
 * schedule, leaves in scratch. */
static bool is_there_before(tl_schedule *s, const tl_buffer *buffer, const tl_block *reader)
{
    tl_loop_list loops;
    if (buffer->role != TL_ROLE_LOCAL)
        return true;
    const tl_block *writer = tl_sketch_only_writer(s, buffer, reader);
    return buffer->scope == TL_SCOPE_GLOBAL && writer != NULL &&
           tl_sketch_loops(s, tl_schedule_name_block(s, writer->name), 0, &loops, NULL) == TL_OK &&
           loops.count > 0 &&
           tl_schedule_get_loop(s, loops.loops[0])->u.loop.kind == TL_LOOP_BLOCK_X;
}

tl_status tl_gpu_check_boxes(tl_schedule *s, tl_block_ref copy, const tl_gpu_boxes *l,
                             tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, copy);
    const tl_expr *value = block->stores[0].value;
    while (value->kind == TL_EXPR_SELECT)
        value = value->args[1];
    const tl_buffer *from = value->kind == TL_EXPR_LOAD ? value->u.buffer : NULL;
    if (from == NULL || !is_there_before(s, from, block) || from->rank < 1 ||
        from->rank > MOST_AXES)
        return tl_refuse(diag, "default schedule", block->name, "is no copy of boxes");
    const tl_expr *along = block->stores[0].indices[l->last];
    if (along->kind != TL_EXPR_VAR || !tl_expr_uses_var(value->args[from->rank - 1], along->u.var))
        return tl_refuse(diag, "default schedule", block->name, "copies rows that lie across");
    int64_t bytes = (int64_t)tl_dtype_size(from->dtype), extent;
    for (int a = from->rank - 1; a >= 0; a--) {
        if (!tl_const_int(from->shape[a], &extent))
            return tl_refuse(diag, "default schedule", block->name, "has extents that vary");
        bytes *= extent;
        if (a > 0 && bytes % PIECE != 0)
            return tl_refuse(diag, "default schedule", block->name,
                             "copies rows that do not begin at multiples of 16 bytes");
    }
    return TL_OK;
}

tl_status tl_gpu_lay_boxes(tl_schedule *s, const char *buffer, const tl_gpu_boxes *l, tl_diag *diag)
{
    TL_TRY(tl_gpu_arrange(s, buffer, (int[]){ l->row, l->last }, 2, l->block, diag));
    return tl_swizzle(s, buffer, l->row_bytes, diag);
}

static slice_layout stream_layout(tl_schedule *s, const tl_gpu_product *p, int term)
{
    const tl_block *block = p->c.block;
    int64_t size = (int64_t)tl_dtype_size(p->c.stream->u.buffer->dtype);
    return (slice_layout){ tl_sketch_axis_of(s, p->c.stream, block->iters[p->row].var),
                           tl_sketch_axis_of(s, p->c.stream, block->iters[term].var),
                           p->depth[term] * size, 1 };
}

static slice_layout panel_layout(tl_schedule *s, const tl_gpu_product *p, const product *x,
                                 int term)
{
    const tl_block *block = p->c.block;
    int64_t size = (int64_t)tl_dtype_size(x->b), wide = ROW_BYTES / size;
    int k = tl_sketch_axis_of(s, p->c.panel, block->iters[term].var);
    int n = tl_sketch_axis_of(s, p->c.panel, block->iters[p->column].var);
    if (x->is_nk)
        return (slice_layout){ n, k, p->depth[term] * size, 1 };
    while (x->n % wide != 0)
        wide /= 2;
    return (slice_layout){ k, n, wide * size, wide == x->n ? 1 : wide };
}

/* ---- copies ---- */

tl_status tl_gpu_copy_boxes(tl_schedule *s, tl_block_ref copy, int inside, const tl_gpu_boxes *l,
                            int64_t groups, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, copy);
    const int rank = block->stores[0].buffer->rank;
    tl_loop_list own, boxes = { 0 }, order = { 0 };
    tl_loop_ref parts[2], shared = { 0 };
    TL_TRY(tl_sketch_loops(s, copy, inside, &own, diag));
    tl_loop_ref last = tl_gpu_loop_of_axis(s, block, rank - 1, &own),
                row = tl_gpu_loop_of_axis(s, block, rank - 2, &own);
    if (last.id == 0 || row.id == 0)
        return tl_refuse(diag, "default schedule", block->name, "copies no rows");
    for (int i = 0; i < own.count; i++)
        if (!tl_same_loop(own.loops[i], last) && !tl_same_loop(own.loops[i], row))
            tl_loop_push(&boxes, own.loops[i]);
    if (l->block > 1 && tl_sketch_extent(s, last) > l->block) {
        TL_TRY(tl_split(s, last, (int64_t[]){ 0, l->block }, 2, parts, diag));
        tl_loop_push(&boxes, parts[0]);
        last = parts[1];
    }
    for (int i = boxes.count - 1; i >= 0 && groups > 1 && shared.id == 0; i--)
        if (tl_sketch_extent(s, boxes.loops[i]) == groups) {
            shared = boxes.loops[i];
            boxes.count--;
            for (int k = i; k < boxes.count; k++)
                boxes.loops[k] = boxes.loops[k + 1];
        } else if (tl_sketch_extent(s, boxes.loops[i]) % groups == 0) {
            TL_TRY(tl_split(s, boxes.loops[i], (int64_t[]){ groups, 0 }, 2, parts, diag));
            shared = parts[0];
            boxes.loops[i] = parts[1];
        }
    if (groups > 1 && shared.id == 0) {
        TL_TRY(tl_split(s, row, (int64_t[]){ groups, 0 }, 2, parts, diag));
        shared = parts[0];
        row = parts[1];
    }
    tl_loop_push(&order, shared);
    for (int i = 0; i < boxes.count; i++)
        tl_loop_push(&order, boxes.loops[i]);
    tl_loop_push(&order, row);
    tl_loop_push(&order, last);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_bulk_copy(s, row, diag));
    for (int i = 0; i < boxes.count; i++)
        TL_TRY(tl_unroll(s, boxes.loops[i], diag));
    return shared.id != 0 ? tl_bind_loop(s, shared, "threadIdx.y", diag) : TL_OK;
}

/* ---- loops ---- */

/* Blocks along x have tiles of rows, which share their panel; along y all others. One loop where these are too many. */
static tl_status arrange_tiles(tl_schedule *s, tl_gpu_loops *loops, tl_loop_ref *other,
                               tl_diag *diag)
{
    tl_loop_list order = { 0 };
    for (int i = 0; i < loops->apart.count; i++)
        if (!tl_same_loop(loops->apart.loops[i], loops->tile_row))
            tl_loop_push(&order, loops->apart.loops[i]);
    int count = order.count;
    tl_loop_push(&order, loops->tile_row);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    *other = order.loops[0];
    if (count > 1)
        TL_TRY(tl_fuse(s, order.loops, count, other, diag));
    loops->tiles = loops->tile_row;
    if (tl_sketch_extent(s, *other) <= MOST_BLOCKS_Y)
        return TL_OK;
    TL_TRY(tl_fuse(s, (tl_loop_ref[]){ *other, loops->tile_row }, 2, &loops->tiles, diag));
    *other = (tl_loop_ref){ 0 };
    return TL_OK;
}

static bool has_loop(const tl_loop_list *list, tl_loop_ref loop)
{
    for (int i = 0; i < list->count; i++)
        if (tl_same_loop(list->loops[i], loop))
            return true;
    return false;
}

/* Slices in one loop; inside of one products, of which each is a call. */
static tl_status make_terms(tl_schedule *s, tl_block_ref anchor, int outside, const product *x,
                            int term, tl_gpu_terms *t, tl_loop_ref *slices, tl_loop_list *written,
                            tl_block_ref *zero, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_ref k[2];
    tl_loop_list own, all;
    TL_TRY(tl_sketch_loops(s, anchor, outside, &own, diag));
    tl_loop_ref inside = tl_sketch_loop_of(s, &block->iters[term], &own);
    *written = (tl_loop_list){ 0 };
    for (int i = 0; i < own.count; i++) /* of one iteration */
        if (!has_loop(&t->outer, own.loops[i]) && !tl_same_loop(own.loops[i], inside) &&
            !tl_same_loop(own.loops[i], t->row) && !tl_same_loop(own.loops[i], t->line) &&
            !tl_same_loop(own.loops[i], t->column))
            tl_loop_push(written, own.loops[i]);
    TL_TRY(tl_split(s, inside, (int64_t[]){ 0, x->k }, 2, k, diag));
    tl_loop_push(written, k[0]);
    tl_loop_push(written, t->line);
    all = t->outer;
    for (int i = 0; i < written->count; i++)
        tl_loop_push(&all, written->loops[i]);
    tl_loop_push(&all, t->row);
    tl_loop_push(&all, t->column);
    tl_loop_push(&all, k[1]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    *slices = t->outer.loops[0];
    if (t->outer.count > 1)
        TL_TRY(tl_fuse(s, t->outer.loops, t->outer.count, slices, diag));
    return tl_decompose_reduction(s, anchor, *slices, zero, diag);
}

/* The zeroes in front: their last loops are rows and columns. */
static tl_status share_zeroes(tl_schedule *s, tl_block_ref zero, int outside, tl_diag *diag)
{
    tl_loop_list own;
    TL_TRY(tl_sketch_loops(s, zero, outside, &own, diag));
    if (own.count < 2)
        return tl_refuse(diag, "default schedule", "zeroes", "are not written in tiles");
    for (int i = 0; i < own.count - 2; i++)
        TL_TRY(tl_unroll(s, own.loops[i], diag));
    return tl_gpu_share_tiles(s, own.loops[own.count - 2], own.loops[own.count - 1], NULL, ROWS,
                              diag);
}

/* Slices come while those before them are multiplied; a warpgroup more asks for them. *specialized: whether there are enough. */
static tl_status make_pipeline(tl_schedule *s, const char *block, tl_loop_ref slices, int64_t bytes,
                               bool is_turned, bool *specialized, tl_diag *diag)
{
    const int64_t options[] = { 2, 3, 4 };
    int64_t room = tl_min64(MOST_STAGES, STAGED_BYTES / tl_max64(bytes, 1)),
            most = tl_min64(room, tl_sketch_extent(s, slices));
    *specialized = most > 1 && !is_turned;
    if (most < 2)
        return TL_OK;
    int64_t stages = tl_decide(s, block, "stages", options, (int)most - 1, most);
    TL_TRY(tl_software_pipeline(s, slices, stages, diag));
    if (is_turned)
        return TL_OK;
    return tl_specialize(s, slices, COPY_REGISTERS, COMPUTE_REGISTERS, diag);
}

/* Whether blocks that run at once should have all columns of few rows, not all rows of few columns: where this is less to read
 * for all of them. Of a panel whose rows are along its columns they read whole rows then, which lie side by side in memory: where
 * both are as much, an H200 took 191 us with columns first and 207 with rows first (of bf16, 4096). */
static bool has_columns_first(const tl_schedule *s, const tl_gpu_product *p, const product *x,
                              const tl_gpu_loops *loops)
{
    int64_t rows = CLUSTER * tl_gpu_cut_size(&p->cuts[p->row]),
            columns = tl_gpu_cut_size(&p->cuts[p->column]),
            groups = tl_max64(tl_sketch_extent(s, loops->tiles) / CLUSTER, 1),
            panels = tl_ceildiv(p->extents[p->column], columns),
            wave = tl_max64(s->target->cores / CLUSTER, 1);
    int64_t rows_first = tl_min64(wave, groups) * rows + tl_ceildiv(wave, groups) * columns,
            columns_first = tl_min64(wave, panels) * columns + tl_ceildiv(wave, panels) * rows;
    return !x->is_nk && p->line < 0 && columns_first <= rows_first;
}

static tl_status bind_blocks(tl_schedule *s, const tl_gpu_product *p, const product *x,
                             const tl_gpu_loops *loops, tl_loop_ref other, bool specialized,
                             tl_diag *diag)
{
    const int64_t options[] = { 1, CLUSTER }, orders[] = { 0, 1 };
    const char *block = p->c.block->name;
    int64_t tiles = tl_sketch_extent(s, loops->tiles);
    bool even = other.id != 0 && tiles % CLUSTER == 0, columns_first = false;
    if (other.id != 0 && tiles <= MOST_BLOCKS_Y)
        columns_first =
            tl_decide(s, block, "columns_first", orders, 2, has_columns_first(s, p, x, loops)) == 1;
    TL_TRY(tl_bind_loop(s, loops->tiles, columns_first ? "blockIdx.y" : "blockIdx.x", diag));
    if (specialized && even && tl_decide(s, block, "cluster", options, 2, CLUSTER) > 1)
        TL_TRY(tl_annotate(s, loops->tiles, "cluster", CLUSTER, diag));
    if (other.id == 0)
        return TL_OK;
    return tl_bind_loop(s, other, columns_first ? "blockIdx.x" : "blockIdx.y", diag);
}

/* ---- all of it ---- */

/* Whether the tiles' columns begin at multiples of 16 bytes of the panel's rows: boxes begin nowhere else. */
static bool begins_at_pieces(tl_schedule *s, const tl_gpu_product *p, int axis)
{
    const tl_block *block = p->c.block;
    const tl_expr *index = p->c.panel->args[axis], *zero = tl_int(s->arena, 0);
    for (int i = 0; i < block->iter_count; i++)
        if (p->extents[i] == 1)
            index = tl_substitute(s->arena, index, &(tl_binding){ block->iters[i].var, zero }, 1);
    int64_t size = (int64_t)tl_dtype_size(p->c.panel->u.buffer->dtype);
    return tl_gpu_is_multiple(s->arena, index, block->iters[p->column].var, PIECE / size);
}

/* Which product, and constants laid out for it. */
static tl_status find_product(tl_schedule *s, tl_block_ref anchor, tl_gpu_product *p, int *term,
                              const product **x, turning *turns, tl_diag *diag)
{
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), p, diag));
    const tl_block *block = p->c.block;
    *term = tl_gpu_find_term(s, p);
    if (s->target->gpu.sm != SM || !s->target->gpu.is_exact || *term < 0 ||
        tl_keeps_order(s, block))
        return tl_refuse(diag, "default schedule", block->name, "is nothing for a warpgroup");
    int k = tl_sketch_axis_of(s, p->c.panel, block->iters[*term].var),
        n = tl_sketch_axis_of(s, p->c.panel, block->iters[p->column].var),
        m = tl_sketch_axis_of(s, p->c.stream, block->iters[p->row].var),
        from = tl_sketch_axis_of(s, p->c.stream, block->iters[*term].var);
    if (n < 0 || m < 0)
        return tl_refuse(diag, "default schedule", block->name, "walks in steps");
    *x = find_instruction(s, p, 0, n < k);
    *turns = *x == NULL && k < n ? BY_SLICES : NEVER;
    if (*turns == BY_SLICES)
        *x = find_instruction(s, p, 0, true);
    if (*x == NULL)
        return tl_refuse(diag, "default schedule", block->name, "has types no warpgroup takes");
    if ((!(*x)->is_nk || *turns == BY_SLICES) && !begins_at_pieces(s, p, n))
        return tl_refuse(diag, "default schedule", block->name,
                         "has a window that moves by less than 16 bytes");
    const int64_t options[] = { 0, 1 };
    if (!tl_decide(s, block->name, "warpgroups", options, 2, 1))
        return tl_refuse(diag, "default schedule", block->name, "shall do without");
    if (*turns == BY_SLICES && tl_gpu_can_turn_ahead(p->c.panel->u.buffer, n, k)) {
        TL_TRY(decide_turn(s, p, *x, *term, turns, diag));
        if (*turns == AHEAD) {
            TL_TRY(tl_gpu_turn_ahead(s, anchor, p->c.panel, n, k, diag));
            TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), p, diag));
        }
    }
    TL_TRY(decide_tile(s, p, x, *term, *turns == BY_SLICES, diag));
    tl_gpu_product decided = *p;
    TL_TRY(lay_constant(s, p->c.stream, m, from, diag));
    TL_TRY(lay_constant(s, p->c.panel, (*x)->is_nk ? n : k, (*x)->is_nk ? k : n, diag));
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), p, diag));
    decided.c = p->c;
    *p = decided;
    return TL_OK;
}

tl_status tl_gpu_wgmma(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    tl_gpu_product p;
    tl_gpu_loops loops;
    tl_gpu_terms terms;
    tl_gpu_slice operands[2];        /* panel, stream */
    const product *x = &products[0]; /* until one is found */
    int term;
    tl_block_ref zero;
    tl_loop_ref slices, other;
    tl_loop_list written;
    const char *result;
    bool specialized;
    turning turns = NEVER;
    tl_block_ref held = { 0 };
    TL_TRY(find_product(s, anchor, &p, &term, &x, &turns, diag));
    TL_TRY(tl_gpu_pad(s, anchor, out, &p, diag));
    const bool is_turned = turns == BY_SLICES;
    int64_t bytes = tl_gpu_slice_bytes(s, &p);
    const char *name = p.c.block->name;
    const slice_layout layouts[2] = { panel_layout(s, &p, x, term), stream_layout(s, &p, term) };
    if (turns == AHEAD) /* the launch in front is not this one's */
        TL_TRY(tl_gpu_copy_slice(s, anchor, p.c.panel, &operands[0], diag));
    else
        TL_TRY(tl_gpu_take_slice(s, anchor, p.c.panel, &operands[0], diag));
    TL_TRY(tl_gpu_take_slice(s, anchor, p.c.stream, &operands[1], diag));
    for (int i = 0; i < 2; i++) {
        if (i > 0 || !is_turned)
            TL_TRY(tl_gpu_check_boxes(s, operands[i].copy, &layouts[i], diag));
        TL_TRY(tl_gpu_lay_boxes(s, operands[i].buffer, &layouts[i], diag));
    }
    if (is_turned)
        TL_TRY(tl_gpu_take_turned(s, &operands[0], &held, diag));
    TL_TRY(tl_gpu_lay_result(s, &p, &result, diag));
    p.c.block = tl_schedule_get_block(s, anchor); /* with the new result */

    p.keeps_tiles = true;
    TL_TRY(tl_gpu_cut_results(s, out, 0, &p, &loops, diag));
    TL_TRY(arrange_tiles(s, &loops, &other, diag));
    tl_loop_ref around = loops.warps.id != 0 ? loops.warps : loops.tiles;
    const int outside = (other.id != 0) + 1 + (loops.warps.id != 0);
    TL_TRY(tl_compute_at(s, anchor, around, diag));
    TL_TRY(tl_set_scope(s, result, "warpgroup", diag));
    TL_TRY(tl_gpu_cut_terms(s, anchor, outside, &p, &terms, diag));
    TL_TRY(make_terms(s, anchor, outside, x, term, &terms, &slices, &written, &zero, diag));
    TL_TRY(tl_gpu_place_slices(s, operands, 2, slices, diag));
    TL_TRY(tl_tensorize(s, terms.row, x->name, diag));
    for (int i = 0; i < written.count; i++)
        TL_TRY(tl_unroll(s, written.loops[i], diag));
    if (is_turned)
        TL_TRY(tl_gpu_turn_slice(s, operands[0].copy, held, outside + 1, p.warps, THREADS, diag));
    else
        TL_TRY(tl_gpu_copy_boxes(s, operands[0].copy, outside + 1, &layouts[0], p.warps, diag));
    TL_TRY(tl_gpu_copy_boxes(s, operands[1].copy, outside + 1, &layouts[1], 1, diag));
    TL_TRY(share_zeroes(s, zero, outside, diag));
    TL_TRY(tl_gpu_share_tiles(s, loops.row, loops.column, loops.line.id != 0 ? &loops.line : NULL,
                              ROWS, diag));
    TL_TRY(make_pipeline(s, name, slices, bytes, is_turned, &specialized, diag));
    if (loops.warps.id != 0)
        TL_TRY(tl_bind_loop(s, loops.warps, "threadIdx.y", diag));
    return bind_blocks(s, &p, x, &loops, other, specialized, diag);
}
