/* tuner/cost/tenset_row.c: what TenSet's extractor says of one store under its loops. Its errors are kept; each has
 * its comment. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/array.h"
#include "tuner/cost/tenset_private.h"

/* All accesses of the statement to a buffer. */
typedef struct {
    const tl_buffer *buffer;
    tl_tenset_type type;
    int count, capacity; /* lists of indices */
    const tl_expr *const **lists;
    uint64_t loops; /* that move it, as bits */
    double elements[TL_TENSET_DEPTH];
    double region[TL_TENSET_AXES]; /* over all loops */
    double unit;
} access;

typedef struct {
    tl_tenset_walk *walk;
    tl_tenset_row *row;
    double runs;
    double ops[TL_TENSET_vec_num]; /* of one run */
    int access_count, access_capacity;
    access *accesses; /* the written one first, then as they are read */
    double op_logs[TL_TENSET_DEPTH], byte_logs[TL_TENSET_DEPTH]; /* by loop */
} statement;

double tl_tenset_runs(const tl_tenset_walk *walk)
{
    double runs = 1;
    for (int i = 0; i < walk->depth; i++)
        runs *= walk->loops[i]->extent;
    return runs;
}

static tl_tenset_row *row_of(tl_tenset_walk *walk, const tl_buffer *buffer)
{
    for (int i = 0; i < walk->row_count; i++)
        if (walk->rows[i].buffer == buffer)
            return &walk->rows[i];
    return NULL;
}

/* --- what is computed --------------------------------------------------------------------------------------------- */

/* The column of an operation of floats, and of everything else. */
enum { NONE = -1 };
static const struct {
    int of_float, of_int;
} columns[TL_EXPR_KIND_COUNT] = {
#define SAME(kind, name) [TL_EXPR_##kind] = { TL_TENSET_##name, TL_TENSET_##name },
#define BOTH(kind, name) [TL_EXPR_##kind] = { TL_TENSET_float_##name, TL_TENSET_int_##name },
#define NOTHING(kind)    [TL_EXPR_##kind] = { NONE, NONE },
#include "tuner/cost/expression_columns.def"
    NOTHING(CAST) BOTH(BITS, math)
#undef SAME
#undef BOTH
#undef NOTHING
};

static void count_op(statement *s, int of_float, int of_int, bool is_float)
{
    int column = is_float ? of_float : of_int;
    if (column != NONE)
        s->ops[column]++;
}

/* Operands say whether it is of floats, of a call its result. */
static void count_ops(statement *s, const tl_expr *e)
{
    bool by_result = e->kind == TL_EXPR_CALL || e->kind == TL_EXPR_BITS || e->arg_count == 0;
    count_op(s, columns[e->kind].of_float, columns[e->kind].of_int,
             tl_dtype_is_float(by_result ? e->dtype : e->args[0]->dtype));
    for (int i = 0; i < e->arg_count; i++)
        count_ops(s, e->args[i]);
}

/* How a reduction joins what is there and what comes, as an expression would: a pair by a comparison and a choice. */
static const tl_expr_kind joins[TL_COMBINER_COUNT] = {
    [TL_COMBINER_NONE] = TL_EXPR_INT,  [TL_COMBINER_SUM] = TL_EXPR_ADD,
    [TL_COMBINER_PROD] = TL_EXPR_MUL,  [TL_COMBINER_MIN] = TL_EXPR_MIN,
    [TL_COMBINER_MAX] = TL_EXPR_MAX,   [TL_COMBINER_ALL] = TL_EXPR_AND,
    [TL_COMBINER_ANY] = TL_EXPR_OR,    [TL_COMBINER_ARGMIN] = TL_EXPR_LT,
    [TL_COMBINER_ARGMAX] = TL_EXPR_LT,
};

static void count_join(statement *s, const tl_block *block)
{
    tl_expr_kind kind = joins[block->combiner];
    count_op(s, columns[kind].of_float, columns[kind].of_int,
             tl_dtype_is_float(block->stores[0].value->dtype));
    s->ops[TL_TENSET_select_op] += tl_combiner_infos[block->combiner].values == 2;
}

/* --- what is touched ---------------------------------------------------------------------------------------------- */

static access *access_of(statement *s, const tl_buffer *buffer, tl_tenset_type type)
{
    for (int i = 0; i < s->access_count; i++)
        if (s->accesses[i].buffer == buffer)
            return &s->accesses[i];
    TL_ROOM(s->walk->arena, s->accesses, s->access_count, s->access_capacity);
    access *a = &s->accesses[s->access_count++];
    *a = (access){ .buffer = buffer, .type = type, .unit = (double)tl_dtype_size(buffer->dtype) };
    return a;
}

/* What is written and read is an update: its indices are those of the store. */
static void add_access(statement *s, const tl_buffer *buffer, const tl_expr *const *indices,
                       tl_tenset_type type)
{
    access *a = access_of(s, buffer, type);
    if (type == TL_TENSET_READ && a->type != TL_TENSET_READ)
        a->type = TL_TENSET_UPDATE;
    if (a->type == TL_TENSET_UPDATE)
        return;
    TL_ROOM(s->walk->arena, a->lists, a->count, a->capacity);
    a->lists[a->count++] = indices;
    for (int i = 0; i < buffer->rank; i++)
        a->loops |= tl_tenset_loops_of(s->walk, indices[i]);
}

static void find_reads(statement *s, const tl_expr *e)
{
    if (e->kind == TL_EXPR_LOAD)
        add_access(s, e->u.buffer, e->args, TL_TENSET_READ);
    for (int i = 0; i < e->arg_count; i++)
        find_reads(s, e->args[i]);
}

static double axis_extent(const tl_buffer *b, int axis)
{
    return fmax((double)tl_expr_range(b->shape[axis]).max, 1);
}

/* Elements of the box around all accesses, with the loops from each number on running; it may stick out of the
 * buffer. */
static void measure(const statement *s, access *a)
{
    int depth = s->walk->depth, rank = a->buffer->rank;
    for (int i = 0; i < depth; i++)
        a->elements[i] = 1;
    for (int axis = 0; axis < rank; axis++) {
        tl_tenset_span box = { { 0 }, { 0 } };
        for (int k = 0; k < a->count; k++) {
            tl_tenset_span one;
            tl_tenset_span_of(s->walk, a->lists[k][axis], &one);
            for (int i = 0; i < depth; i++) {
                box.min[i] = k == 0 ? one.min[i] : fmin(box.min[i], one.min[i]);
                box.max[i] = k == 0 ? one.max[i] : fmax(box.max[i], one.max[i]);
            }
        }
        for (int i = 0; i < depth; i++) {
            double extent = box.max[i] - box.min[i] + 1;
            extent = isfinite(extent) ? extent : axis_extent(a->buffer, axis);
            a->elements[i] *= extent;
            if (i == 0 && axis < TL_TENSET_AXES)
                a->region[axis] = extent;
        }
    }
}

static void touch(statement *s, int loop_number, const access *a)
{
    tl_tenset_loop *loop = s->walk->loops[loop_number];
    double elements = a->elements[loop_number];
    TL_ROOM(s->walk->arena, loop->touches, loop->touch_count, loop->touch_capacity);
    loop->touches[loop->touch_count++] = (tl_tenset_touch){ a->buffer, elements };
    loop->bytes += elements * a->unit;
    loop->unit_bytes += a->unit;
    if (a->type == TL_TENSET_READ)
        loop->read_bytes += elements * a->unit;
}

/* From the inside out, for each loop: what the statement computes and touches in it. */
static void touch_loops(statement *s)
{
    double ops = 0;
    for (int i = TL_TENSET_float_mad; i <= TL_TENSET_float_other; i++)
        ops += s->ops[i];
    for (int i = 0; i < s->access_count; i++)
        measure(s, &s->accesses[i]);
    for (int i = s->walk->depth - 1; i >= 0; i--) {
        double bytes = 0;
        for (int k = 0; k < s->access_count; k++) {
            touch(s, i, &s->accesses[k]);
            bytes += s->accesses[k].elements[i] * s->accesses[k].unit;
        }
        ops *= s->walk->loops[i]->extent;
        s->op_logs[i] = log2(ops);
        s->byte_logs[i] = log2(bytes);
    }
}

/* --- an access ---------------------------------------------------------------------------------------------------- */

/* The first thing that was touched of the buffer under the loop, by whatever statement, and how often something was. */
static double first_touch(const tl_tenset_loop *loop, const tl_buffer *buffer)
{
    for (int i = 0; i < loop->touch_count; i++)
        if (loop->touches[i].buffer == buffer)
            return loop->touches[i].elements;
    return 1;
}

static int touches_of(const tl_tenset_loop *loop, const tl_buffer *buffer, double *least)
{
    int count = 0;
    *least = INFINITY;
    for (int i = 0; i < loop->touch_count; i++)
        if (loop->touches[i].buffer == buffer) {
            *least = fmin(*least, loop->touches[i].elements);
            count++;
        }
    return count;
}

static void add_reuse(const statement *s, const access *a, double *row)
{
    double iterations = 1, bytes = -1, count = 1;
    bool counts = false; /* the loops that come back are being counted */
    row[TL_TENSET_ACCESS_no_reuse] = 1;
    for (int i = s->walk->depth - 1; i >= 0; i--) {
        const tl_tenset_loop *loop = s->walk->loops[i];
        bool moves = a->loops >> i & 1;
        double least;
        if (counts && moves)
            break;
        if (moves) {
            iterations *= loop->extent;
            bytes = loop->bytes;
        } else {
            if (!counts && bytes < 0)
                bytes = loop->unit_bytes;
            counts = true;
            count *= loop->extent;
        }
        if (touches_of(loop, a->buffer, &least) > 1) {
            row[TL_TENSET_ACCESS_no_reuse] = 0;
            row[TL_TENSET_ACCESS_serial_reuse] = 1;
            row[TL_TENSET_ACCESS_reuse_iterations] = least / loop->extent;
            row[TL_TENSET_ACCESS_reuse_bytes] = loop->read_bytes / loop->extent;
            row[TL_TENSET_ACCESS_reuse_count] = 1;
            for (int o = i; o >= 0; o--)
                row[TL_TENSET_ACCESS_reuse_count] *= s->walk->loops[o]->extent;
            return;
        }
    }
    if (!counts)
        return;
    row[TL_TENSET_ACCESS_no_reuse] = 0;
    row[TL_TENSET_ACCESS_loop_reuse] = 1;
    row[TL_TENSET_ACCESS_reuse_iterations] = iterations;
    row[TL_TENSET_ACCESS_reuse_bytes] = bytes;
    row[TL_TENSET_ACCESS_reuse_count] = count;
}

/* Elements that a step of the loop moves, the least over the accesses; 0: it does not move them. */
static double stride_of(const statement *s, const access *a, int loop)
{
    double least = INFINITY;
    if (!(a->loops >> loop & 1))
        return 0;
    for (int k = 0; k < a->count; k++) {
        double step = 1;
        for (int axis = a->buffer->rank - 1; axis >= 0; axis--) {
            const tl_expr *index = a->lists[k][axis];
            if (tl_tenset_loops_of(s->walk, index) >> loop & 1) {
                double coefficient = tl_tenset_coefficient(s->walk, index, loop);
                least = fmin(least, fabs(coefficient) * step);
                break;
            }
            step *= axis_extent(a->buffer, axis);
        }
    }
    return isfinite(least) ? least : 0;
}

static void add_lines(const statement *s, const access *a, double *row)
{
    int depth = s->walk->depth, at = depth - 1;
    double stride = 0, skipped = 1;
    for (; at >= 0; at--) {
        stride = stride_of(s, a, at);
        if (stride != 0)
            break;
        skipped *=
            s->walk->loops[depth - 1]->extent; /* theirs: not that of the loop that is skipped */
    }
    double part = fmin(1, stride * a->unit / TL_TENSET_LINE);
    row[TL_TENSET_ACCESS_lines] = fmax(s->runs / skipped * part, 1);
    row[TL_TENSET_ACCESS_stride] = at == depth - 1 ? stride : 0;
    /* theirs: of this buffer's axes, but of what the statement touches of its last one */
    const access *last = &s->accesses[s->access_count - 1];
    double run = a->unit;
    int axes = last->buffer->rank < a->buffer->rank ? last->buffer->rank : a->buffer->rank;
    for (int i = (axes < TL_TENSET_AXES ? axes : TL_TENSET_AXES) - 1; i >= 0; i--)
        if (last->region[i] == axis_extent(a->buffer, i)) {
            run *= last->region[i];
            break;
        }
    row[TL_TENSET_ACCESS_unique_lines] =
        fmax(row[TL_TENSET_ACCESS_unique_bytes] / fmin(run, TL_TENSET_LINE), 1);
}

static void fill_access(const statement *s, const access *a, double *row)
{
    row[TL_TENSET_ACCESS_read + (int)a->type] = 1;
    row[TL_TENSET_ACCESS_bytes] = s->runs * a->unit;
    row[TL_TENSET_ACCESS_unique_bytes] = a->unit;
    row[TL_TENSET_ACCESS_lines] = row[TL_TENSET_ACCESS_unique_lines] = 1;
    if (s->walk->depth > 0) {
        /* theirs: what the first statement under the outermost loop touched of it */
        row[TL_TENSET_ACCESS_unique_bytes] = first_touch(s->walk->loops[0], a->buffer) * a->unit;
        add_lines(s, a, row);
    }
    add_reuse(s, a, row);
    double uses = row[TL_TENSET_ACCESS_reuse_count];
    uses = uses > 0.5 ? uses : 0.5;
    row[TL_TENSET_ACCESS_bytes_a_reuse] = row[TL_TENSET_ACCESS_bytes] / uses;
    row[TL_TENSET_ACCESS_unique_bytes_a_reuse] = row[TL_TENSET_ACCESS_unique_bytes] / uses;
    row[TL_TENSET_ACCESS_lines_a_reuse] = row[TL_TENSET_ACCESS_lines] / uses;
    row[TL_TENSET_ACCESS_unique_lines_a_reuse] = row[TL_TENSET_ACCESS_unique_lines] / uses;
}

/* The least reused first: of the first five, more are not told. */
static bool goes_before(const double *x, const double *y)
{
    static const int keys[] = { TL_TENSET_ACCESS_reuse_bytes, TL_TENSET_ACCESS_unique_bytes,
                                TL_TENSET_ACCESS_unique_lines };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (x[keys[i]] != y[keys[i]])
            return x[keys[i]] < y[keys[i]];
    int a = x[TL_TENSET_ACCESS_update] > 0 ? 2 : x[TL_TENSET_ACCESS_write] > 0;
    int b = y[TL_TENSET_ACCESS_update] > 0 ? 2 : y[TL_TENSET_ACCESS_write] > 0;
    return a < b;
}

static void add_accesses(const statement *s)
{
    enum { WIDTH = TL_TENSET_ACCESS_WIDTH };
    double(*sorted)[WIDTH] = (double(*)[WIDTH])(void *)TL_NEW_ARRAY(s->walk->arena, double,
                                                                    WIDTH *(s->access_count + 1));
    for (int i = 0; i < s->access_count; i++) {
        double own[WIDTH] = { 0 };
        int at = i;
        fill_access(s, &s->accesses[i], own);
        for (; at > 0 && goes_before(own, sorted[at - 1]); at--)
            memcpy(sorted[at], sorted[at - 1], sizeof own);
        memcpy(sorted[at], own, sizeof own);
    }
    double *out = &s->row->values[TL_TENSET_FIRST_ACCESS];
    for (int i = 0; i < TL_TENSET_ACCESSES; i++)
        for (int k = 0; k < WIDTH; k++)
            out[i * WIDTH + k] = i < s->access_count ? sorted[i][k] : 0;
}

/* --- a statement -------------------------------------------------------------------------------------------------- */

/* Number, product and the innermost of the loops of a kind. Theirs: without any the product stays what an earlier
 * store of the buffer made it. */
static void add_annotated(const statement *s, tl_loop_kind kind, int first)
{
    enum { NUMBER, PRODUCT, LENGTH, NO_PLACE, MIXED = NO_PLACE + 7 };
    double *out = &s->row->values[first], product = 1;
    out[NUMBER] = out[LENGTH] = 0;
    for (int i = 0; i < s->walk->depth; i++) {
        const tl_tenset_loop *loop = s->walk->loops[i];
        if (loop->kind != kind)
            continue;
        out[NUMBER]++;
        product *= loop->extent;
        out[LENGTH] = loop->extent;
    }
    if (out[NUMBER] > 0)
        out[PRODUCT] = product;
    out[NO_PLACE] = out[NUMBER] == 0;
    out[MIXED] = out[NUMBER] > 0;
}

static void add_gpu(const statement *s)
{
    static const struct {
        tl_loop_kind kind;
        int column;
    } axes[] = {
        { TL_LOOP_BLOCK_X, TL_TENSET_block_x },   { TL_LOOP_BLOCK_Y, TL_TENSET_block_y },
        { TL_LOOP_BLOCK_Z, TL_TENSET_block_z },   { TL_LOOP_THREAD_X, TL_TENSET_thread_x },
        { TL_LOOP_THREAD_Y, TL_TENSET_thread_y }, { TL_LOOP_THREAD_Z, TL_TENSET_thread_z },
        { TL_LOOP_VTHREAD, TL_TENSET_vthread },
    };
    s->row->values[TL_TENSET_is_gpu] = s->walk->is_gpu;
    for (size_t k = 0; k < sizeof axes / sizeof *axes; k++) {
        double length = 1;
        for (int i = 0; i < s->walk->depth; i++)
            if (s->walk->loops[i]->kind == axes[k].kind)
                length = s->walk->loops[i]->extent * (axes[k].kind == TL_LOOP_VTHREAD ? length : 1);
        s->row->values[axes[k].column] = length;
    }
}

/* Their intensity is log(FLOP) over log(bytes), which is not the logarithm of FLOP per byte, at ten places between no
 * loop and all, evenly spaced by log(FLOP). */
static void add_curve(const statement *s)
{
    double *out = &s->row->values[TL_TENSET_FIRST_CURVE];
    int depth = s->walk->depth, at = depth - 1;
    double slack = 1e-4;
    for (int i = 0; i < TL_TENSET_CURVE; i++)
        out[i] = 0;
    if (depth == 0 || !isfinite(s->op_logs[0]))
        return;
    for (int i = 0; i < TL_TENSET_CURVE; i++) {
        double x = s->op_logs[0] * (i + 1) / TL_TENSET_CURVE;
        while (at > 0 && s->op_logs[at] < x - slack)
            at--;
        double here = s->op_logs[at] / s->byte_logs[at];
        if (at < depth - 1) {
            double before = s->op_logs[at + 1] / s->byte_logs[at + 1];
            double part = (x - s->op_logs[at + 1]) / (s->op_logs[at] - s->op_logs[at + 1]);
            here = before + part * (here - before);
        }
        out[i] = isfinite(here) ? here : 0; /* a single byte has no logarithm to divide by */
    }
}

static void add_scope(const statement *s)
{
    double *out = &s->row->values[TL_TENSET_FIRST_SCOPE];
    out[TL_TENSET_SCOPE_outer_prod] = s->runs;
    out[TL_TENSET_SCOPE_num_loops] = s->walk->depth;
    out[TL_TENSET_SCOPE_auto_unroll_max_step] = 0;
}

/* The indices of the store, and what it stores, over the loops' variables. */
static const tl_expr *bind(tl_tenset_walk *walk, const tl_block *block, const tl_store *store,
                           bool is_init, int number, const tl_expr ***indices)
{
    *indices = TL_NEW_ARRAY(walk->arena, const tl_expr *, store->buffer->rank + 1);
    for (int i = 0; i < store->buffer->rank; i++)
        (*indices)[i] = tl_block_bind(walk->arena, block, store->indices[i]);
    if (!is_init)
        return tl_block_bind(walk->arena, block, store->value);
    return block->init == NULL ? NULL : tl_block_bind(walk->arena, block, block->init[number]);
}

void tl_tenset_store(tl_tenset_walk *walk, const tl_block *block, int number, bool is_init)
{
    const tl_store *store = &block->stores[number];
    const tl_expr **indices, *value = bind(walk, block, store, is_init, number, &indices);
    statement s = { .walk = walk, .row = row_of(walk, store->buffer) };
    if (s.row == NULL) {
        TL_ROOM(walk->arena, walk->rows, walk->row_count, walk->row_capacity);
        s.row = &walk->rows[walk->row_count++];
        s.row->buffer = store->buffer;
    }
    s.runs = tl_tenset_runs(walk);
    add_access(&s, store->buffer, indices, TL_TENSET_WRITE);
    if (block->combiner != TL_COMBINER_NONE && !is_init) {
        count_join(&s, block);
        for (int i = 0; i < store->buffer->rank; i++)
            count_ops(&s, indices[i]);
        add_access(&s, store->buffer, indices, TL_TENSET_READ);
    }
    if (value != NULL) {
        count_ops(&s, value);
        find_reads(&s, value);
    }
    touch_loops(&s);
    for (int i = 0; i < TL_TENSET_vec_num; i++)
        s.row->values[i] = s.ops[i] * s.runs;
    add_annotated(&s, TL_LOOP_VECTORIZED, TL_TENSET_vec_num);
    add_annotated(&s, TL_LOOP_UNROLLED, TL_TENSET_unroll_num);
    add_annotated(&s, TL_LOOP_PARALLEL, TL_TENSET_parallel_num);
    add_gpu(&s);
    add_accesses(&s);
    add_curve(&s);
    add_scope(&s);
}

void tl_tenset_alloc(tl_tenset_walk *walk, const tl_buffer *buffer)
{
    tl_tenset_row *row = row_of(walk, buffer);
    if (row == NULL)
        return;
    double *out = &row->values[TL_TENSET_FIRST_SCOPE], runs = tl_tenset_runs(walk);
    double elements = (double)tl_buffer_max_elements(buffer);
    out[TL_TENSET_SCOPE_alloc_size] = elements * (double)tl_dtype_size(buffer->dtype);
    out[TL_TENSET_SCOPE_alloc_prod] = elements * runs;
    out[TL_TENSET_SCOPE_alloc_outer_prod] = runs;
    out[TL_TENSET_SCOPE_alloc_inner_prod] = out[TL_TENSET_SCOPE_outer_prod] / runs;
}
