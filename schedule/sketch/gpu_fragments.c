/* schedule/sketch/gpu_fragments.c: attention block by block of keys, written as tensor cores hold it (the lowering `fragments`),
 * in one launch for a Hopper: all between its operands and its result is in registers.
 *
 *     for <batch, head>  blockIdx.y
 *       for <blocks of rows>  blockIdx.x       two of them may be a cluster, and share keys and values
 *         for <groups>  threadIdx.y              64 rows each; a row of threads more copies
 *           q[64, :]                             boxes in shared memory, once
 *           m, l, acc = ...                      registers of a warpgroup, as all that follows
 *           for <block of keys>                  a pipeline
 *             k[T, :], v[T, :]                   boxes that all groups share
 *             s[64, T] = q k'                    a product a step of the features
 *             z, n, u, c, m, p, w                each thread its own elements; u by a shuffle among the four of a row
 *             l, acc = l*c + w, acc*c
 *             acc[64, :] += p v                  p from registers
 *           result = epilogue(acc/l)
 *
 * While one group computes weights the tensor cores have the products of the other. That they take turns on purpose, and
 * clusters, are decisions: an H200 is fastest without (schedule/NOTES.md). */
#include "schedule/sketch/gpu_private.h"

enum {
    SM = 90,
    ROWS = 64,
    STEP = 16,       /* of a sum, in one product */
    ROW_THREADS = 4, /* which hold a number of a row each */
    GROUPS = 2,
    STAGES = 3,
    MOST_STAGES = 4,
    STAGED_BYTES = 225 << 10, /* a block has a multiprocessor for itself */
    CLUSTER = 2,
    COPY_REGISTERS = 40,
    COMPUTE_REGISTERS = 232,
    MOST_BLOCKS_Y = 65535,
};

enum { MOST_PARTS = 32 };
typedef struct {
    tl_block_ref first_block, second_block; /* the products */
    tl_contraction first, second;
    int depth;              /* loops around both */
    tl_loop_ref rows, keys; /* the two innermost of those */
    int count;
    const char *stages[MOST_PARTS]; /* all other blocks in the outermost of those loops */
    int64_t groups;
    int64_t held_bytes, staged_bytes; /* of shared memory: of q, of a block of keys */
    tl_gpu_slice q, k, v;
    tl_gpu_boxes q_boxes, k_boxes, v_boxes;
} attention;

/* ---- nests of threads' own elements ---- */

/* Rows among the four warps and the eight rows of a tile's half; `last`: what the threads of a row share out. */
static tl_status share_rows(tl_schedule *s, tl_loop_ref row, tl_loop_ref last,
                            const tl_loop_list *terms, tl_diag *diag)
{
    tl_loop_ref r[3], threads;
    TL_TRY(tl_split(s, row, (int64_t[]){ 0, 2, 8 }, 3, r, diag));
    const tl_loop_ref order[] = { r[1], r[0], r[2], last };
    TL_TRY(tl_reorder(s, order, 4, diag));
    TL_TRY(tl_unroll(s, r[1], diag));
    for (int i = 0; i < terms->count; i++)
        TL_TRY(tl_unroll(s, terms->loops[i], diag));
    TL_TRY(tl_fuse(s, (tl_loop_ref[]){ r[0], r[2], last }, 3, &threads, diag));
    return tl_bind_loop(s, threads, "threadIdx.x", diag);
}

/* A stage of 64 rows: of four numbers a row, or of tiles of eight columns. Loops of one iteration may stand among them. */
static tl_status share_stage(tl_schedule *s, tl_block_ref ref, int outside, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list own, terms = { 0 }, spatial = { 0 }, order = { 0 };
    TL_TRY(tl_sketch_loops(s, ref, outside, &own, diag));
    for (int i = 0; i < own.count; i++)
        if (tl_sketch_drives_reduce(s, block, own.loops[i]))
            tl_loop_push(&terms, own.loops[i]);
        else
            tl_loop_push(tl_sketch_extent(s, own.loops[i]) > 1 ? &spatial : &order, own.loops[i]);
    if (spatial.count != 2 || tl_sketch_extent(s, spatial.loops[0]) != ROWS)
        return tl_refuse(diag, "default schedule", block->name, "has not 64 rows");
    if (order.count > 0) {
        tl_loop_push(&order, spatial.loops[0]);
        tl_loop_push(&order, spatial.loops[1]);
        TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    }
    int64_t columns = tl_sketch_extent(s, spatial.loops[1]);
    if (columns == ROW_THREADS)
        return share_rows(s, spatial.loops[0], spatial.loops[1], &terms, diag);
    if (columns % 8 != 0 || terms.count > 0)
        return tl_refuse(diag, "default schedule", block->name, "has no tiles of 8 columns");
    return tl_gpu_share_tiles(s, spatial.loops[0], spatial.loops[1], NULL, ROWS, diag);
}

/* ---- operands ---- */

/* The operand in shared memory, `at` that loop, in rows as products read them. */
static tl_status take_operand(tl_schedule *s, tl_block_ref anchor, const tl_expr *load, int row,
                              int last, int64_t extent, tl_loop_ref at, tl_gpu_slice *out,
                              tl_gpu_boxes *boxes, tl_diag *diag)
{
    enum { ROW_BYTES = 128 };
    int64_t size = (int64_t)tl_dtype_size(load->u.buffer->dtype), block = ROW_BYTES / size;
    while (extent % block != 0)
        block /= 2;
    *boxes = (tl_gpu_boxes){ row, last, block * size, block == extent ? 1 : block };
    TL_TRY(tl_gpu_take_slice(s, anchor, load, out, diag));
    TL_TRY(tl_compute_at(s, out->copy, at, diag));
    TL_TRY(tl_gpu_check_boxes(s, out->copy, boxes, diag));
    return tl_gpu_lay_boxes(s, out->buffer, boxes, diag);
}

/* The iter that moves the last axis of what the block stores; the one along its sum. */
static const tl_var *column_of(const tl_block *block)
{
    const tl_store *store = &block->stores[0];
    const tl_expr *last = store->indices[store->buffer->rank - 1];
    return last->kind == TL_EXPR_VAR ? last->u.var : NULL;
}
static const tl_var *row_of(const tl_block *block)
{
    const tl_store *store = &block->stores[0];
    const tl_expr *row = store->buffer->rank > 1 ? store->indices[store->buffer->rank - 2] : NULL;
    return row != NULL && row->kind == TL_EXPR_VAR ? row->u.var : NULL;
}
static const tl_var *term_of(const tl_block *block)
{
    const tl_var *found = NULL;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE) {
            if (found != NULL)
                return NULL;
            found = block->iters[i].var;
        }
    return found;
}

/* The extent of the innermost loops of a product: rows, columns, terms. */
static tl_status product_loops(tl_schedule *s, tl_block_ref ref, int outside, tl_loop_ref out[3],
                               int64_t extents[3], tl_diag *diag)
{
    tl_loop_list own;
    const tl_block *block = tl_schedule_get_block(s, ref);
    TL_TRY(tl_sketch_loops(s, ref, outside, &own, diag));
    if (own.count != 3 || term_of(block) == NULL || column_of(block) == NULL ||
        row_of(block) == NULL || !tl_sketch_drives_reduce(s, block, own.loops[2]))
        return tl_refuse(diag, "default schedule", block->name, "is no product of a warpgroup");
    for (int i = 0; i < 3; i++) {
        out[i] = own.loops[i];
        extents[i] = tl_sketch_extent(s, own.loops[i]);
    }
    if (extents[0] != ROWS || extents[2] % STEP != 0)
        return tl_refuse(diag, "default schedule", block->name, "is no product of a warpgroup");
    return TL_OK;
}

/* ---- products ---- */

/* A call a step of the sum, in registers from zero on. */
static tl_status product(tl_schedule *s, tl_block_ref ref, int outside, const tl_contraction *c,
                         bool is_nk, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_ref own[3], k[2];
    tl_block_ref zero;
    int64_t extents[3];
    TL_TRY(product_loops(s, ref, outside, own, extents, diag));
    const char *name =
        tl_gpu_group_product(block->stores[0].buffer->dtype, c->stream->u.buffer->dtype,
                             c->panel->u.buffer->dtype, extents[1], is_nk);
    if (name == NULL)
        return tl_refuse(diag, "default schedule", block->name, "has types no warpgroup takes");
    TL_TRY(tl_split(s, own[2], (int64_t[]){ 0, STEP }, 2, k, diag));
    TL_TRY(tl_reorder(s, (tl_loop_ref[]){ k[0], own[0], own[1], k[1] }, 4, diag));
    bool has_init = block->has_init;
    if (has_init)
        TL_TRY(tl_decompose_reduction(s, ref, k[0], &zero, diag));
    TL_TRY(tl_tensorize(s, own[0], name, diag));
    TL_TRY(tl_unroll(s, k[0], diag));
    return has_init ? share_stage(s, zero, outside, diag) : TL_OK;
}

/* ---- all of it ---- */

/* Whether both have the same loop at the depth. */
static bool share_loop(tl_schedule *s, tl_block_ref a, tl_block_ref b, int depth)
{
    tl_loop_list of_a, of_b;
    return tl_sketch_loops(s, a, 0, &of_a, NULL) == TL_OK &&
           tl_sketch_loops(s, b, 0, &of_b, NULL) == TL_OK && of_a.count > depth &&
           of_b.count > depth && tl_same_loop(of_a.loops[depth], of_b.loops[depth]);
}

/* The second product adds to sums that its own block of keys scales before: it alone has no init. */
static bool find_parts(tl_schedule *s, tl_block_ref anchor, attention *a)
{
    const tl_block *second = tl_schedule_get_block(s, anchor), **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    if (second->has_init || second->call != NULL ||
        !tl_find_contraction(s->arena, second, &a->second) ||
        a->second.stream->u.buffer->role != TL_ROLE_LOCAL)
        return false;
    a->second_block = anchor;
    for (int i = 0; i < count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, blocks[i]->name);
        if (blocks[i] == second || !share_loop(s, anchor, ref, 0))
            continue;
        if (blocks[i]->call != NULL || blocks[i]->store_count != 1 || a->count == MOST_PARTS)
            return false;
        if (a->first_block.id == 0 && blocks[i]->has_init &&
            tl_find_contraction(s->arena, blocks[i], &a->first))
            a->first_block = ref;
        else
            a->stages[a->count++] = blocks[i]->name;
    }
    while (a->first_block.id != 0 && share_loop(s, anchor, a->first_block, a->depth))
        a->depth++;
    return a->depth >= 2;
}

static tl_status find(tl_schedule *s, tl_block_ref anchor, attention *a, tl_diag *diag)
{
    const tl_block *second = tl_schedule_get_block(s, anchor);
    tl_loop_list around;
    if (s->target->gpu.sm != SM || !s->target->gpu.is_exact || !find_parts(s, anchor, a) ||
        tl_dtype_size(a->second.stream->u.buffer->dtype) != 2)
        return tl_refuse(diag, "default schedule", second->name,
                         "is not written as a warpgroup holds it");
    TL_TRY(tl_sketch_loops(s, anchor, 0, &around, diag));
    a->rows = around.loops[a->depth - 2];
    a->keys = around.loops[a->depth - 1];
    const int64_t options[] = { 1, GROUPS };
    int64_t most = tl_sketch_extent(s, a->rows) % GROUPS == 0 ? GROUPS : 1;
    a->groups = tl_decide(s, second->name, "groups", options, most > 1 ? 2 : 1, most);
    return TL_OK;
}

static tl_status take_operands(tl_schedule *s, attention *a, tl_loop_ref group, tl_diag *diag)
{
    tl_loop_ref own[3];
    int64_t scores[3], sums[3];
    const tl_block *first = tl_schedule_get_block(s, a->first_block);
    TL_TRY(product_loops(s, a->first_block, a->depth + 1, own, scores, diag));
    TL_TRY(product_loops(s, a->second_block, a->depth + 1, own, sums, diag));
    const tl_expr *q = a->first.stream, *k = a->first.panel, *v = a->second.panel;
    if (tl_sketch_axis_of(s, q, row_of(first)) < 0) {
        q = a->first.panel;
        k = a->first.stream;
        a->first.stream = q;
        a->first.panel = k;
    }
    int axes[6] = { tl_sketch_axis_of(s, q, row_of(first)), tl_sketch_axis_of(s, q, term_of(first)),
                    tl_sketch_axis_of(s, k, column_of(first)),
                    tl_sketch_axis_of(s, k, term_of(first)) };
    const tl_block *second = tl_schedule_get_block(s, a->second_block);
    axes[4] = tl_sketch_axis_of(s, v, term_of(second));
    axes[5] = tl_sketch_axis_of(s, v, column_of(second));
    for (int i = 0; i < 6; i++)
        if (axes[i] < 0)
            return tl_refuse(diag, "default schedule", second->name, "walks in steps");
    int64_t size = (int64_t)tl_dtype_size(q->u.buffer->dtype);
    a->held_bytes = a->groups * ROWS * scores[2] * size;
    a->staged_bytes = scores[1] * (scores[2] + sums[1]) * size;
    TL_TRY(take_operand(s, a->first_block, q, axes[0], axes[1], scores[2], group, &a->q,
                        &a->q_boxes, diag));
    TL_TRY(take_operand(s, a->first_block, k, axes[2], axes[3], scores[2], a->keys, &a->k,
                        &a->k_boxes, diag));
    return take_operand(s, a->second_block, v, axes[4], axes[5], sums[1], a->keys, &a->v,
                        &a->v_boxes, diag);
}

/* Blocks of keys come while those before them are used; a warpgroup more asks for them. */
static tl_status make_pipeline(tl_schedule *s, const attention *a, bool *specialized, tl_diag *diag)
{
    const int64_t options[] = { 2, 3, MOST_STAGES };
    int64_t room = tl_min64(MOST_STAGES, (STAGED_BYTES - a->held_bytes) / a->staged_bytes),
            most = tl_min64(room, tl_sketch_extent(s, a->keys));
    *specialized = most > 1;
    if (!*specialized)
        return TL_OK;
    int64_t stages = tl_decide(s, tl_schedule_get_block(s, a->second_block)->name, "stages",
                               options, (int)most - 1, tl_min64(most, STAGES));
    TL_TRY(tl_software_pipeline(s, a->keys, stages, diag));
    TL_TRY(tl_specialize(s, a->keys, COPY_REGISTERS, COMPUTE_REGISTERS, diag));
    const int64_t turns[] = { 0, 1 };
    if (a->groups != 2 ||
        !tl_decide(s, tl_schedule_get_block(s, a->second_block)->name, "turns", turns, 2, 0))
        return TL_OK;
    return tl_annotate(s, a->keys, "turns", 1, diag);
}

static tl_status bind_blocks(tl_schedule *s, const char *block, const tl_loop_list *around,
                             int count, tl_loop_ref rows, bool specialized, tl_diag *diag)
{
    tl_loop_ref other = around->loops[0];
    if (count > 1)
        TL_TRY(tl_fuse(s, around->loops, count, &other, diag));
    const int64_t options[] = { 1, CLUSTER };
    TL_TRY(tl_bind_loop(s, rows, "blockIdx.x", diag));
    if (specialized && tl_sketch_extent(s, rows) % CLUSTER == 0 &&
        tl_decide(s, block, "cluster", options, 2, 1) > 1)
        TL_TRY(tl_annotate(s, rows, "cluster", CLUSTER, diag));
    if (count == 0)
        return TL_OK;
    if (tl_sketch_extent(s, other) > MOST_BLOCKS_Y)
        return tl_refuse(diag, "default schedule", block, "has too many heads");
    return tl_bind_loop(s, other, "blockIdx.y", diag);
}

/* What else reads the result alone goes into the launch, where it may. */
static tl_status take_epilogue(tl_schedule *s, const attention *a, tl_loop_ref group, tl_map *done,
                               tl_diag *diag)
{
    const tl_block *last =
        tl_schedule_get_block(s, tl_schedule_name_block(s, a->stages[a->count - 1]));
    const tl_block **readers;
    if (last->store_count != 1 || last->stores[0].buffer->role != TL_ROLE_LOCAL ||
        tl_readers_of(s->arena, s->program->body, last->stores[0].buffer, &readers) != 1)
        return TL_OK;
    const char *name = readers[0]->name;
    tl_block_ref reader = tl_schedule_name_block(s, name);
    tl_schedule_state before = tl_schedule_save(s);
    tl_diag why = { 0 };
    tl_status status = tl_reverse_compute_at(s, reader, group, &why);
    if (status == TL_OK)
        status = tl_set_scope(s, last->stores[0].buffer->name, "warpgroup", &why);
    if (status == TL_OK)
        status = share_stage(s, reader, a->depth, &why);
    TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    if (status == TL_OK)
        tl_map_put(done, name, s);
    return TL_OK;
}

/* Whether the launch alone reads it. */
static bool is_own(tl_schedule *s, const attention *a, tl_loop_ref group, const tl_buffer *b)
{
    const tl_block **readers;
    tl_loop_list loops;
    int count = tl_readers_of(s->arena, s->program->body, b, &readers);
    for (int i = 0; i < count; i++)
        if (tl_sketch_loops(s, tl_schedule_name_block(s, readers[i]->name), 0, &loops, NULL) !=
                TL_OK ||
            loops.count < a->depth || !tl_same_loop(loops.loops[a->depth - 1], group))
            return false;
    return true;
}

tl_status tl_gpu_fragments(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    attention a = { .groups = 1 };
    tl_loop_list around;
    tl_loop_ref rows[2];
    TL_TRY(find(s, anchor, &a, diag));
    TL_TRY(tl_sketch_loops(s, anchor, 0, &around, diag));
    TL_TRY(tl_split(s, a.rows, (int64_t[]){ 0, a.groups }, 2, rows, diag));
    TL_TRY(take_operands(s, &a, rows[1], diag));
    const int inside = a.depth + 1; /* of the loop over keys; one less outside of it */
    TL_TRY(product(s, a.first_block, inside, &a.first, true, diag));
    TL_TRY(product(s, a.second_block, inside, &a.second, false, diag));
    TL_TRY(take_epilogue(s, &a, rows[1], done, diag));
    const tl_block_ref products[] = { a.first_block, a.second_block };
    for (int i = 0; i < a.count + 2; i++) {
        tl_block_ref ref = i < 2 ? products[i] : tl_schedule_name_block(s, a.stages[i - 2]);
        const tl_block *block = tl_schedule_get_block(s, ref);
        const tl_buffer *b = i < 2 ? block->call->writes[0].buffer : block->stores[0].buffer;
        tl_loop_list loops;
        TL_TRY(tl_sketch_loops(s, ref, 0, &loops, diag));
        if (b->role == TL_ROLE_LOCAL && b->scope == TL_SCOPE_GLOBAL && is_own(s, &a, rows[1], b))
            TL_TRY(tl_set_scope(s, b->name, "warpgroup", diag));
        bool in_keys = loops.count >= inside && tl_same_loop(loops.loops[inside - 1], a.keys);
        if (i >= 2)
            TL_TRY(share_stage(s, ref, in_keys ? inside : inside - 1, diag));
    }
    TL_TRY(tl_gpu_copy_boxes(s, a.q.copy, inside - 1, &a.q_boxes, 1, diag));
    TL_TRY(tl_gpu_copy_boxes(s, a.k.copy, inside, &a.k_boxes, a.groups, diag));
    TL_TRY(tl_gpu_copy_boxes(s, a.v.copy, inside, &a.v_boxes, a.groups, diag));
    TL_TRY(tl_bind_loop(s, rows[1], "threadIdx.y", diag));
    bool specialized;
    TL_TRY(make_pipeline(s, &a, &specialized, diag));
    TL_TRY(bind_blocks(s, tl_schedule_get_block(s, anchor)->name, &around, a.depth - 2, rows[0],
                       specialized, diag));
    tl_map_put(done, tl_schedule_get_block(s, a.second_block)->name, s);
    tl_map_put(done, tl_schedule_get_block(s, a.first_block)->name, s);
    for (int i = 0; i < a.count; i++)
        tl_map_put(done, a.stages[i], s);
    return TL_OK;
}
