/* schedule/sketch/gpu_mma.c: a contraction in tiles by tensor cores, where its types have a product of them (f16, bf16, int8;
 * f32 in a tf32 kernel).
 *
 *     for <tiles>  blockIdx.x
 *       for <warps>  threadIdx.y
 *         acc[rows, columns] = 0                   tiles of 16 by 8, in the registers of a warp
 *         for k0                                   slices, two of them on their way
 *           panel, stream                          shared memory, by pieces of 16 bytes spread over the banks
 *           for k1                                 written out
 *             acc[16, 8] += stream[16, k]*panel[k, 8]     a call each
 *         out = epilogue(acc)                      every thread its own elements
 *
 * A convolution is one as it stands: k runs along its channels, the window's steps are outside of a product and inside of a
 * slice. Extents that do not come out even are padded with zeroes. Which tile: that of the least cycles (gpu_model.c). */
#include <string.h>
#include "schedule/sketch/gpu_private.h"

enum {
    TILE_ROWS = 16,
    TILE_COLUMNS = 8,
    FIRST_SM = 80,
    MOST_WARPS = 8,
    SLICE_BYTES = 32 << 10,
    ROW_BYTES = 64,       /* of a slice along k */
    DEEP_ROW_BYTES = 128, /* the same, of a block that has a multiprocessor for itself */
    DEEP_SLICE_BYTES = 48 << 10,
    DEEP_STAGED_BYTES = 152 << 10,
    MOST_ACCUMULATORS = 128, /* registers of a thread */
    OTHER_REGISTERS = 80,
    MOST_PRODUCTS = 512, /* written out */
};

typedef struct {
    const char *name;
    tl_dtype c, a, b;
    int m, n;
    int64_t k;
    bool is_nk, is_cut;
} product;

static const product products[] = {
#define EXACT false
#define CUT   true
#define PRODUCT(name, c, a, b, m, n, k, lies, operands) \
    { #name, TL_##c, TL_##a, TL_##b, m, n, k, #lies[0] == 'n', operands },
#include "ir/program/warp_products.def"
#undef PRODUCT
};

/* ---- which product ---- */

/* With the panel as it lies, else the other way round: its copy is turned then. f32 is multiplied as tf32 alone. */
static const product *find_instruction(const tl_schedule *s, const tl_gpu_product *p, bool is_nk)
{
    const product *found = NULL;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const product *x = &products[i];
        if (x->c != p->c.block->stores[0].buffer->dtype || x->a != p->c.stream->u.buffer->dtype ||
            x->b != p->c.panel->u.buffer->dtype || (x->is_cut && !s->program->tf32) ||
            (x->a == TL_F32 && !x->is_cut))
            continue;
        if (found == NULL || x->is_nk == is_nk)
            found = x;
    }
    return found;
}

/* ---- which tile ---- */

/* Multiply-adds of a multiprocessor in a cycle. */
static double rate_of(const tl_target *target, const product *x)
{
    double halves = target->gpu.sm >= 90 ? 2048 : target->gpu.sm == 80 ? 1024 : 512;
    return halves * (double)x->k / 16;
}

static double cycles_of(tl_schedule *s, const tl_gpu_product *p, const product *x,
                        const tl_gpu_tiling *t, int64_t others, int64_t terms)
{
    int64_t rows = tl_gpu_cut_size(&t->row), size = (int64_t)tl_dtype_size(x->a);
    int64_t columns = tl_gpu_cut_size(&t->column) * tl_gpu_cut_size(&t->line);
    int64_t warps = t->row.warps * t->column.warps * t->line.warps;
    int64_t own = t->row.own * t->column.own * t->line.own / TL_WARP_LANES;
    int64_t resident =
        tl_gpu_resident(s->target, warps * TL_WARP_LANES, own + OTHER_REGISTERS, SLICE_BYTES);
    if (resident == 0 || warps > MOST_WARPS || own > MOST_ACCUMULATORS)
        return -1;
    int64_t blocks = others * tl_ceildiv(p->extents[p->row], rows) *
                     tl_ceildiv(p->extents[p->column], tl_gpu_cut_size(&t->column));
    if (p->line >= 0)
        blocks *= tl_ceildiv(p->extents[p->line], tl_gpu_cut_size(&t->line));
    /* shared memory serves 128 bytes a cycle; so does, of what comes from memory, L2 with 64 */
    double loads = (double)(warps * (t->row.own + t->column.own * t->line.own) * size) / 128;
    double copies = (double)((rows + columns) * size) / 64;
    tl_gpu_work work = { blocks, warps, resident,
                         (double)terms * (double)(rows * columns) / rate_of(s->target, x),
                         (double)terms * (loads + copies) };
    return tl_gpu_cycles(s->target, &work);
}

static const int64_t rows_of[] = { 16, 32, 64 }, columns_of[] = { 8, 16, 32, 64 },
                     lines_of[] = { 1, 2, 4, 7, 8 }, warps_of[] = { 1, 2, 4, 7, 8 };
enum { ROWS = 3, COLUMNS = 4, LINES = 5, WARPS = 5 };

/* Whether all warps of a block that has other stages cover extents with such tiles exactly, from slices of the usual depth that
 * are small enough. */
static bool shares_block(const tl_gpu_product *p, const tl_gpu_tiling *t)
{
    int64_t rows = tl_gpu_cut_size(&t->row),
            columns = tl_gpu_cut_size(&t->column) * tl_gpu_cut_size(&t->line);
    return t->row.warps * t->column.warps * t->line.warps == TL_GPU_SHARED_WARPS &&
           (rows + columns) * ROW_BYTES <= TL_GPU_SHARED_SLICE && p->extents[p->row] % rows == 0 &&
           p->extents[p->column] % tl_gpu_cut_size(&t->column) == 0 &&
           (p->line < 0 || p->extents[p->line] % tl_gpu_cut_size(&t->line) == 0);
}

static bool find_tile(tl_schedule *s, const tl_gpu_product *p, const product *x, bool inside,
                      tl_gpu_tiling *best)
{
    const tl_block *block = p->c.block;
    int64_t others = 1, terms = 1;
    double least = -1;
    int lines = p->line >= 0 ? LINES : 1;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            terms *= p->extents[i];
        else if (i != p->row && i != p->column && i != p->line)
            others *= p->extents[i];
    for (int at = 0; at < ROWS * COLUMNS * lines * WARPS * WARPS * lines; at++) {
        int rest = at;
        tl_gpu_tiling t = { { 1, 1, rows_of[rest % ROWS] }, { 1, 1, 1 }, { 1, 1, 1 } };
        rest /= ROWS;
        t.column.own = columns_of[rest % COLUMNS];
        rest /= COLUMNS;
        t.row.warps = warps_of[rest % WARPS];
        rest /= WARPS;
        t.column.warps = warps_of[rest % WARPS];
        rest /= WARPS;
        t.line.own = lines_of[rest % lines];
        t.line.warps = warps_of[rest / lines];
        double cycles = cycles_of(s, p, x, &t, others, terms);
        if (cycles < 0 || (least >= 0 && cycles >= least) || (inside && !shares_block(p, &t)))
            continue;
        least = cycles;
        *best = t;
    }
    return least >= 0;
}

static tl_status decide_tile(tl_schedule *s, tl_gpu_product *p, const product *x, bool inside,
                             tl_diag *diag)
{
    const char *name = p->c.block->name;
    tl_gpu_tiling t;
    if (!find_tile(s, p, x, inside, &t))
        return tl_refuse(diag, "default schedule", name, "has no tile that fits");
    if (inside) {
        tl_gpu_take_tiling(p, &t);
        return TL_OK;
    }
    t.row.own = tl_decide(s, name, "tile.rows", rows_of, ROWS, t.row.own);
    t.column.own = tl_decide(s, name, "tile.columns", columns_of, COLUMNS, t.column.own);
    t.row.warps = tl_decide(s, name, "warps.rows", warps_of, WARPS, t.row.warps);
    t.column.warps = tl_decide(s, name, "warps.columns", warps_of, WARPS, t.column.warps);
    int64_t warps = t.row.warps * t.column.warps * t.line.warps,
            own = t.row.own * t.column.own * t.line.own / TL_WARP_LANES;
    if (own > MOST_ACCUMULATORS ||
        tl_gpu_resident(s->target, warps * TL_WARP_LANES, own + OTHER_REGISTERS, SLICE_BYTES) == 0)
        return tl_refuse(diag, "default schedule", name, "has a tile that no block can have");
    tl_gpu_take_tiling(p, &t);
    return TL_OK;
}

/* Such a tile has all registers of a multiprocessor, so that nobody computes while its warps meet and load what they begin
 * with: there are deeper slices for it, where there is memory for three. */
static bool is_deep(tl_schedule *s, const tl_gpu_product *p, int term, int64_t size)
{
    int64_t warps = 1, own = 1, slice = 0;
    for (int i = 0; i < p->c.block->iter_count; i++)
        if (i != term && p->c.block->iters[i].kind == TL_ITER_REDUCE && p->extents[i] > 1)
            return false;
    const int tiled[] = { p->row, p->column, p->line };
    for (int i = 0; i < 3; i++) {
        if (tiled[i] < 0)
            continue;
        warps *= p->cuts[tiled[i]].warps;
        own *= p->cuts[tiled[i]].own;
    }
    slice =
        (tl_gpu_cut_size(&p->cuts[p->row]) + tl_gpu_cut_size(&p->cuts[p->column])) * DEEP_ROW_BYTES;
    return p->line < 0 && slice <= DEEP_SLICE_BYTES &&
           p->extents[term] * size % DEEP_ROW_BYTES == 0 &&
           s->target->gpu.shared_block >= DEEP_STAGED_BYTES &&
           tl_gpu_resident(s->target, warps * TL_WARP_LANES, own / TL_WARP_LANES + OTHER_REGISTERS,
                           SLICE_BYTES) == 1;
}

/* ---- operands ---- */

/* Whether its panel is read word by word: rows along the columns that are no halves, which ldmatrix could turn. */
static bool has_pitch(const product *x)
{
    return !x->is_nk && tl_dtype_size(x->b) == 4;
}

/* Spreads rows of so many bytes over the banks, where there is such a pattern. */
static tl_status spread(tl_schedule *s, const char *buffer, int64_t row_bytes, tl_diag *diag)
{
    if (row_bytes != 32 && row_bytes != 64 && row_bytes != 128)
        return TL_OK;
    return tl_swizzle(s, buffer, row_bytes, diag);
}

/* The stream in rows along k. */
static tl_status lay_stream(tl_schedule *s, const tl_gpu_product *p, int term, const char *buffer,
                            tl_diag *diag)
{
    const tl_block *block = p->c.block;
    const int last[2] = { tl_sketch_axis_of(s, p->c.stream, block->iters[p->row].var),
                          tl_sketch_axis_of(s, p->c.stream, block->iters[term].var) };
    TL_TRY(tl_gpu_arrange(s, buffer, last, 2, 1, diag));
    return spread(s, buffer, p->depth[term] * (int64_t)tl_dtype_size(p->c.stream->u.buffer->dtype),
                  diag);
}

/* A stream that lies in shared memory as a whole: its rows in pieces as deep as a slice, spread over the banks. */
static tl_status lay_held(tl_schedule *s, const tl_gpu_product *p, int term, const char *buffer,
                          tl_diag *diag)
{
    const tl_block *block = p->c.block;
    const int last[2] = { tl_sketch_axis_of(s, p->c.stream, block->iters[p->row].var),
                          tl_sketch_axis_of(s, p->c.stream, block->iters[term].var) };
    int64_t depth = p->depth[term], size = (int64_t)tl_dtype_size(p->c.stream->u.buffer->dtype);
    TL_TRY(tl_set_scope(s, buffer, "shared", diag));
    TL_TRY(tl_gpu_arrange(s, buffer, last, 2, p->extents[term] > depth ? depth : 1, diag));
    return spread(s, buffer, depth * size, diag);
}

/* The panel as the product takes it: in rows along k, or along the columns, in groups of at most 128 bytes. tf32 takes words
 * of eight neighbours from four rows, whose pitch gives each row banks of its own (tl_gpu_pitch). A window's columns begin
 * anywhere, so that nothing can be said of their pieces. */
static tl_status lay_panel(tl_schedule *s, const tl_gpu_product *p, const product *x, int term,
                           const char *buffer, tl_diag *diag)
{
    const tl_block *block = p->c.block;
    int64_t size = (int64_t)tl_dtype_size(x->b);
    int k = tl_sketch_axis_of(s, p->c.panel, block->iters[term].var);
    int n = tl_sketch_axis_of(s, p->c.panel, block->iters[p->column].var);
    if (x->is_nk) {
        TL_TRY(tl_gpu_arrange(s, buffer, (int[]){ n, k }, 2, 1, diag));
        return spread(s, buffer, p->depth[term] * size, diag);
    }
    int64_t columns = tl_gpu_cut_size(&p->cuts[p->column]);
    int64_t group = 128 / size;
    while (columns % group != 0)
        group /= 2;
    if (has_pitch(x) ||
        !tl_gpu_is_multiple(s->arena, p->c.panel->args[n], block->iters[p->column].var, group))
        return k < n ? TL_OK : tl_gpu_arrange(s, buffer, (int[]){ k, n }, 2, 1, diag);
    TL_TRY(tl_gpu_arrange(s, buffer, (int[]){ k, n }, 2, group, diag));
    return spread(s, buffer, group * size, diag);
}

/* ---- loops ---- */

static tl_status unroll_list(tl_schedule *s, const tl_loop_list *list, tl_diag *diag)
{
    for (int i = 0; i < list->count; i++)
        TL_TRY(tl_unroll(s, list->loops[i], diag));
    return TL_OK;
}

tl_status tl_gpu_share_tiles(tl_schedule *s, tl_loop_ref row, tl_loop_ref column, tl_loop_ref *line,
                             int64_t rows, tl_diag *diag)
{
    const int64_t factors[4] = { 0, rows / TILE_ROWS, 2, 8 };
    bool one =
        rows ==
        TILE_ROWS; /* a warp's own; else the warps of a group have them one after the other */
    tl_loop_ref r[4], c[3], threads;
    tl_loop_list order = { 0 }, written = { 0 }, shared = { 0 };
    TL_TRY(tl_split(s, row, one ? (int64_t[]){ 0, 2, 8 } : factors, one ? 3 : 4, r, diag));
    TL_TRY(tl_split(s, column, (int64_t[]){ 0, 4, 2 }, 3, c, diag));
    if (line != NULL)
        tl_loop_push(&written, *line);
    tl_loop_push(&written, r[0]);
    tl_loop_push(&written, one ? r[1] : r[2]);
    tl_loop_push(&written, c[0]);
    if (!one)
        tl_loop_push(&shared, r[1]);
    tl_loop_push(&shared, one ? r[2] : r[3]);
    tl_loop_push(&shared, c[1]);
    order = written;
    for (int i = 0; i < shared.count; i++)
        tl_loop_push(&order, shared.loops[i]);
    tl_loop_push(&order, c[2]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(unroll_list(s, &written, diag));
    TL_TRY(tl_fuse(s, shared.loops, shared.count, &threads, diag));
    TL_TRY(tl_bind_loop(s, threads, "threadIdx.x", diag));
    return tl_vectorize(s, c[2], diag);
}

/* The zeroes in front: over tiles, then inside of one. */
static tl_status share_zeroes(tl_schedule *s, tl_block_ref zero, int outside, bool has_lines,
                              tl_diag *diag)
{
    tl_loop_list own;
    tl_loop_ref r[2], c[2], threads;
    TL_TRY(tl_sketch_loops(s, zero, outside, &own, diag));
    int first = own.count - (has_lines ? 5 : 4);
    if (first < 0)
        return tl_refuse(diag, "default schedule", "zeroes", "are not written in tiles");
    for (int i = 0; i < own.count - 2; i++)
        TL_TRY(tl_unroll(s, own.loops[i], diag));
    TL_TRY(tl_split(s, own.loops[own.count - 2], (int64_t[]){ 2, 0 }, 2, r, diag));
    TL_TRY(tl_split(s, own.loops[own.count - 1], (int64_t[]){ 0, 2 }, 2, c, diag));
    TL_TRY(tl_unroll(s, r[0], diag));
    TL_TRY(tl_fuse(s, (tl_loop_ref[]){ r[1], c[0] }, 2, &threads, diag));
    TL_TRY(tl_bind_loop(s, threads, "threadIdx.x", diag));
    return tl_vectorize(s, c[1], diag);
}

/* Slices, steps of a window, steps of k, tiles, and a product each. */
static tl_status make_terms(tl_schedule *s, tl_block_ref anchor, int outside,
                            const tl_gpu_product *p, const product *x, int term, tl_gpu_terms *t,
                            tl_block_ref *zero, tl_loop_ref *call, tl_loop_list *written,
                            tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_ref k[2], r[2], c[2];
    tl_loop_list all = t->others, own;
    *written = (tl_loop_list){ 0 };
    TL_TRY(tl_sketch_loops(s, anchor, outside, &own, diag));
    tl_loop_ref inside = tl_sketch_loop_of(s, &block->iters[term], &own);
    TL_TRY(tl_split(s, inside, (int64_t[]){ 0, x->k }, 2, k, diag));
    TL_TRY(tl_split(s, t->row, (int64_t[]){ 0, TILE_ROWS }, 2, r, diag));
    TL_TRY(tl_split(s, t->column, (int64_t[]){ 0, TILE_COLUMNS }, 2, c, diag));
    for (int i = 0; i < t->inner.count; i++)
        if (!tl_same_loop(t->inner.loops[i], inside))
            tl_loop_push(written, t->inner.loops[i]);
    tl_loop_push(written, k[0]);
    tl_loop_push(written, r[0]);
    tl_loop_push(written, t->line);
    tl_loop_push(written, c[0]);
    for (int i = 0; i < t->outer.count; i++)
        tl_loop_push(&all, t->outer.loops[i]);
    for (int i = 0; i < written->count; i++)
        tl_loop_push(&all, written->loops[i]);
    tl_loop_push(&all, r[1]);
    tl_loop_push(&all, c[1]);
    tl_loop_push(&all, k[1]);
    (void)p;
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    *call = r[1];
    return tl_decompose_reduction(s, anchor, t->outer.loops[0], zero, diag);
}

/* Written out from the innermost on, as far as there is room for so many products; tiles always are. */
static tl_status unroll_products(tl_schedule *s, const tl_loop_list *written, int tiles,
                                 tl_diag *diag)
{
    int64_t all = 1;
    for (int i = written->count - 1; i >= 0; i--) {
        all *= tl_sketch_extent(s, written->loops[i]);
        if (all > MOST_PRODUCTS && i < written->count - tiles)
            return TL_OK;
        TL_TRY(tl_unroll(s, written->loops[i], diag));
    }
    return TL_OK;
}

tl_status tl_gpu_lay_result(tl_schedule *s, const tl_gpu_product *p, const char **result,
                            tl_diag *diag)
{
    const tl_store *store = &p->c.block->stores[0];
    int last[2] = { -1, -1 };
    for (int a = 0; a < store->buffer->rank; a++)
        for (int i = 0; i < 2; i++)
            if (tl_expr_uses_var(store->indices[a],
                                 p->c.block->iters[i == 0 ? p->row : p->column].var))
                last[i] = a;
    *result = store->buffer->name;
    if (last[0] < 0 || last[1] < 0)
        return tl_refuse(diag, "default schedule", p->c.block->name, "has no rows and columns");
    return tl_gpu_arrange(s, *result, last, 2, 1, diag);
}

/* Which product, and how deep its slices are. */
static tl_status decide(tl_schedule *s, tl_gpu_product *p, bool inside, int *term,
                        const product **x, bool *deep, tl_diag *diag)
{
    const tl_block *block = p->c.block;
    *term = tl_gpu_find_term(s, p);
    if (s->target->gpu.sm < FIRST_SM || *term < 0 || tl_keeps_order(s, block))
        return tl_refuse(diag, "default schedule", block->name, "is nothing for tensor cores");
    int k = tl_sketch_axis_of(s, p->c.panel, block->iters[*term].var),
        n = tl_sketch_axis_of(s, p->c.panel, block->iters[p->column].var),
        m = tl_sketch_axis_of(s, p->c.stream, block->iters[p->row].var);
    if (n < 0 || m < 0)
        return tl_refuse(diag, "default schedule", block->name, "walks in steps");
    *x = find_instruction(s, p, n < k);
    if (*x == NULL)
        return tl_refuse(diag, "default schedule", block->name, "has types no tensor core takes");
    const int64_t options[] = { 0, 1 };
    if (!tl_decide(s, block->name, "tensor_cores", options, 2, 1))
        return tl_refuse(diag, "default schedule", block->name, "shall do without");
    TL_TRY(decide_tile(s, p, *x, inside, diag));
    int64_t size = (int64_t)tl_dtype_size((*x)->a);
    *deep = !inside && is_deep(s, p, *term, size);
    TL_TRY(tl_gpu_decide_depth(s, p, (*deep ? DEEP_ROW_BYTES : ROW_BYTES) / size, *term, (*x)->k,
                               inside  ? TL_GPU_SHARED_SLICE
                               : *deep ? DEEP_SLICE_BYTES
                                       : SLICE_BYTES,
                               diag));
    if (inside && p->extents[*term] % p->depth[*term] != 0)
        return tl_refuse(diag, "default schedule", block->name, "has slices of two sizes");
    return TL_OK;
}

tl_status tl_gpu_mma_in(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                        int64_t rows, const char *held, tl_loop_ref *tiles, tl_diag *diag)
{
    tl_gpu_product p;
    tl_gpu_loops loops;
    tl_gpu_terms terms;
    tl_gpu_slice operands[2]; /* panel, stream */
    const int copied = held != NULL ? 1 : 2;
    tl_block_ref zero;
    tl_loop_ref call;
    tl_loop_list written;
    const char *result;
    const product *x = NULL;
    int term = -1;
    bool deep = false;
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), &p, diag));
    TL_TRY(tl_gpu_take_extents(s, anchor, first, rows, &p, diag));
    TL_TRY(decide(s, &p, rows != 0, &term, &x, &deep, diag));
    if (rows == 0)
        TL_TRY(tl_gpu_pad(s, anchor, out, &p, diag));
    int64_t bytes = tl_gpu_slice_bytes(s, &p);
    const char *name = p.c.block->name;
    TL_TRY(tl_gpu_take_slice(s, anchor, p.c.panel, &operands[0], diag));
    if (held == NULL)
        TL_TRY(tl_gpu_take_slice(s, anchor, p.c.stream, &operands[1], diag));
    TL_TRY(lay_panel(s, &p, x, term, operands[0].buffer, diag));
    TL_TRY(held != NULL ? lay_held(s, &p, term, held, diag)
                        : lay_stream(s, &p, term, operands[1].buffer, diag));
    TL_TRY(tl_gpu_lay_result(s, &p, &result, diag));
    p.c.block = tl_schedule_get_block(s, anchor); /* with the new result */

    TL_TRY(tl_gpu_cut_results(s, out, first, &p, &loops, diag));
    tl_loop_ref around = loops.warps.id != 0 ? loops.warps : loops.tiles;
    const int outside = first + (loops.warps.id != 0 ? 2 : 1);
    TL_TRY(tl_compute_at(s, anchor, around, diag));
    TL_TRY(tl_set_scope(s, result, "warp", diag));
    TL_TRY(tl_gpu_cut_terms(s, anchor, outside, &p, &terms, diag));
    TL_TRY(make_terms(s, anchor, outside, &p, x, term, &terms, &zero, &call, &written, diag));
    tl_loop_ref slices = terms.outer.loops[terms.outer.count - 1];
    bool has_lines = terms.line.id != 0;
    if (loops.warps.id != 0)
        TL_TRY(tl_bind_loop(s, loops.warps, "threadIdx.y", diag));
    TL_TRY(tl_gpu_place_slices(s, operands, copied, slices, diag));
    TL_TRY(tl_tensorize(s, call, x->name, diag));
    TL_TRY(unroll_products(s, &written, has_lines ? 3 : 2, diag));
    TL_TRY(share_zeroes(s, zero, outside, has_lines, diag));
    TL_TRY(tl_gpu_share_tiles(s, loops.row, loops.column, loops.line.id != 0 ? &loops.line : NULL,
                              TILE_ROWS, diag));
    TL_TRY(tl_gpu_fill_slices(s, name, operands, copied, slices, p.warps, bytes,
                              deep ? DEEP_STAGED_BYTES : TL_GPU_STAGED_BYTES, diag));
    if (has_pitch(x)) /* behind the pipeline, which takes no buffers with strides */
        TL_TRY(tl_gpu_pitch(s, operands[0].buffer, TILE_COLUMNS * 4, diag));
    *tiles = loops.tiles;
    return TL_OK;
}

tl_status tl_gpu_mma(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    tl_loop_ref tiles;
    TL_TRY(tl_gpu_mma_in(s, anchor, out, 0, 0, NULL, &tiles, diag));
    return tl_bind_loop(s, tiles, "blockIdx.x", diag);
}
