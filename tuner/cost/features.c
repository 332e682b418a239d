/* tuner/cost/features.c: rows of features from what features_outline.c, features_box.c, features_ops.c and
 * features_body.c say. */
#include "tuner/cost/features.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include "tuner/cost/features_private.h"

typedef enum { MAGNITUDE, COUNT, FLAG } kind;
typedef struct {
    const char *name;
    kind kind;
} column;
static const column scalars[] = {
#define FEATURE(name, kind, words) { #name, kind },
#include "tuner/cost/features.def"
#undef FEATURE
};
static const column accesses[] = {
#define ACCESS(name, kind, words) { #name, kind },
#include "tuner/cost/features_access.def"
#undef ACCESS
};

void tl_feature_name(int at, char out[48])
{
    assert(at >= 0 && at < TL_FEATURE_WIDTH);
    if (at < TL_FEATURE_FIRST_ACCESS)
        snprintf(out, 48, "%s", scalars[at].name);
    else if (at < TL_FEATURE_FIRST_CURVE)
        snprintf(out, 48, "access%d.%s", (at - TL_FEATURE_FIRST_ACCESS) / TL_ACCESS_WIDTH + 1,
                 accesses[(at - TL_FEATURE_FIRST_ACCESS) % TL_ACCESS_WIDTH].name);
    else
        snprintf(out, 48, "intensity%d", at - TL_FEATURE_FIRST_CURVE + 1);
}

float tl_feature_log(double magnitude)
{
    return (float)copysign(log2(fabs(magnitude) + 1), magnitude);
}

double tl_feature_unlog(float feature)
{
    return copysign(exp2(fabs((double)feature)) - 1, (double)feature);
}

/* --- loops ---------------------------------------------------------------------------------------------------------- */

/* Number, product and the innermost of the statement's loops of a kind; which columns they fill. */
typedef struct {
    tl_loop_kind kind;
    int loops, product, innermost, reduces; /* columns; -1: there is none */
} annotation;
static const annotation annotations[] = {
    { TL_LOOP_VECTORIZED, TL_FEATURE_vector_loops, TL_FEATURE_vector_product,
      TL_FEATURE_vector_innermost, TL_FEATURE_vector_reduces },
    { TL_LOOP_UNROLLED, TL_FEATURE_unroll_loops, TL_FEATURE_unroll_product,
      TL_FEATURE_unroll_innermost, TL_FEATURE_unroll_reduces },
    { TL_LOOP_PARALLEL, TL_FEATURE_parallel_loops, TL_FEATURE_parallel_product, -1, -1 },
};

static void add_loops(const tl_outline *outline, const tl_outline_statement *s, double *row)
{
    assert(s->depth >= 0 && s->depth <= TL_OUTLINE_DEPTH);
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++) {
        const annotation *a = &annotations[i];
        double product = 1;
        for (int d = 0; d < s->depth; d++) {
            const tl_outline_loop *loop = &outline->loops[s->loops[d]];
            if (loop->kind != a->kind)
                continue;
            row[a->loops]++;
            product *= loop->extent;
            if (a->innermost >= 0)
                row[a->innermost] = loop->extent;
            if (a->reduces >= 0)
                row[a->reduces] = s->reduces[d];
        }
        row[a->product] = product;
    }
    double cores = outline->target->cores > 0 ? outline->target->cores : 1;
    double pieces = row[TL_FEATURE_parallel_product];
    row[TL_FEATURE_parallel_balance] = pieces / (ceil(pieces / cores) * cores);
    row[TL_FEATURE_runs] = s->runs;
    row[TL_FEATURE_loops] = s->depth;
    if (s->body > 0) {
        const tl_outline_loop *loop = &outline->loops[s->loops[s->body - 1]];
        row[TL_FEATURE_serial_innermost] = loop->extent;
        row[TL_FEATURE_serial_reduces] = s->reduces[s->body - 1];
        row[TL_FEATURE_serial_iterations] = loop->starts * loop->extent;
        row[TL_FEATURE_serial_starts] = loop->starts;
        row[TL_FEATURE_body_bytes] = loop->iteration_bytes * loop->extent;
    }
    for (int b = 0; b < outline->buffer_count; b++)
        row[TL_FEATURE_phase_bytes] +=
            outline->phase_bytes[s->phase * outline->buffer_capacity + b];
}

static void add_body(const tl_outline *outline, const tl_outline_statement *s, double *row)
{
    tl_outline_body b;
    tl_outline_body_of(outline, s, &b);
    double loads = b.vector_loads + b.broadcasts + b.strided_loads;
    row[TL_FEATURE_vector_fill] = b.fill;
    row[TL_FEATURE_body_vectors] = b.vectors;
    row[TL_FEATURE_body_results] = b.results;
    row[TL_FEATURE_body_vector_loads] = b.vector_loads;
    row[TL_FEATURE_body_broadcasts] = b.broadcasts;
    row[TL_FEATURE_body_strided_loads] = b.strided_loads;
    row[TL_FEATURE_body_stores] = b.stores;
    row[TL_FEATURE_body_loads_per_vector] = 16 * loads / fmax(b.vectors, 1);
    row[TL_FEATURE_register_results] = b.register_results;
    row[TL_FEATURE_register_excess] = b.register_excess;
    row[TL_FEATURE_body_cycles] = b.cycles;
    row[TL_FEATURE_cycles] = b.cycles * b.runs;
}

/* --- memory ----------------------------------------------------------------------------------------------------------- */

/* Whether the prefetch is in a loop of the statement; loops that write out several prefetches do not count. */
static bool is_around(const tl_outline *outline, const tl_outline_fetch *f,
                      const tl_outline_statement *s)
{
    int depth = f->depth;
    while (depth > 0 && outline->loops[f->loops[depth - 1]].kind == TL_LOOP_UNROLLED)
        depth--;
    return depth > 0 && depth <= s->depth && s->loops[depth - 1] == f->loops[depth - 1];
}

/* Prefetches in the loops around the statement; true when one is of this access' buffer. */
static bool is_fetched(const tl_outline *outline, const tl_outline_statement *s,
                       const tl_outline_access *a)
{
    for (int i = 0; i < outline->fetch_count; i++)
        if (outline->fetches[i].buffer == a->buffer && is_around(outline, &outline->fetches[i], s))
            return true;
    return false;
}

/* How far ahead of the access a prefetch into L1 is, in iterations of the innermost loop that stays one. */
static double fetch_distance(const tl_outline_fetch *f, const tl_outline_statement *s)
{
    for (int i = 0; i < s->access_count && s->body > 0; i++) {
        const tl_outline_access *a = &s->accesses[i];
        double step = a->stride[s->body - 1];
        if (a->buffer == f->buffer && step > 0 && f->first > a->first)
            return (f->first - a->first) / step;
    }
    return 0;
}

static void add_fetches(const tl_outline *outline, const tl_outline_statement *s, double *row)
{
    for (int i = 0; i < outline->fetch_count; i++) {
        const tl_outline_fetch *f = &outline->fetches[i];
        if (!is_around(outline, f, s))
            continue;
        row[f->level == 1 ? TL_FEATURE_fetches_l1 : TL_FEATURE_fetches_l2] += f->runs;
        if (f->level == 1)
            row[TL_FEATURE_fetch_distance] =
                fmax(row[TL_FEATURE_fetch_distance], fetch_distance(f, s));
    }
}

static void add_alloc(const tl_outline *outline, const tl_outline_statement *s, double *row)
{
    if (s->access_count == 0)
        return;
    const tl_outline_buffer *b = &outline->buffers[s->accesses[0].buffer_index];
    if (!b->is_alloc)
        return;
    double elements = (double)tl_buffer_max_elements(b->buffer);
    row[TL_FEATURE_alloc_bytes] = elements * s->accesses[0].unit;
    row[TL_FEATURE_alloc_runs] = b->runs;
    row[TL_FEATURE_alloc_product] = elements * b->runs;
    row[TL_FEATURE_alloc_inner] = s->runs / b->runs;
    row[TL_FEATURE_alloc_register] = b->buffer->scope == TL_SCOPE_REGISTER;
}

/* --- accesses ------------------------------------------------------------------------------------------------------- */

typedef struct {
    double row[TL_ACCESS_WIDTH];
    int order; /* in the statement */
} access_row;

/* Other statements or accesses under the loop that touch the buffer. */
static int touches(const tl_outline *outline, const tl_buffer *buffer, int loop)
{
    assert(loop >= 0 && loop < outline->loop_count);
    int sum = 0;
    for (int i = 0; i < outline->statement_count; i++) {
        const tl_outline_statement *s = &outline->statements[i];
        bool inside = false;
        for (int d = 0; d < s->depth && !inside; d++)
            inside = s->loops[d] == loop;
        for (int a = 0; inside && a < s->access_count; a++)
            sum += s->accesses[a].buffer == buffer;
    }
    return sum;
}

/* From the inside out: the first loop that does not move the access comes back to what it touched; or, before there is
 * one, another access of the same loop does. */
static void add_reuse(const tl_outline *outline, const tl_outline_statement *s,
                      const tl_outline_access *a, double *row)
{
    assert(s->depth >= 0 && s->depth <= TL_OUTLINE_DEPTH);
    double iterations = 1;
    row[TL_ACCESS_no_reuse] = 1;
    for (int d = s->depth - 1; d >= 0; d--) {
        const tl_outline_loop *loop = &outline->loops[s->loops[d]];
        if (a->elements[d] == a->elements[d + 1] && loop->extent > 1) {
            row[TL_ACCESS_loop_reuse] = 1;
            row[TL_ACCESS_no_reuse] = 0;
            row[TL_ACCESS_reuse_iterations] = iterations;
            row[TL_ACCESS_reuse_bytes] = loop->iteration_bytes;
            row[TL_ACCESS_reuse_count] = loop->extent;
            for (int o = d - 1; o >= 0 && a->elements[o] == a->elements[o + 1]; o--)
                row[TL_ACCESS_reuse_count] *= outline->loops[s->loops[o]].extent;
            return;
        }
        if (touches(outline, a->buffer, s->loops[d]) > 1) {
            row[TL_ACCESS_serial_reuse] = 1;
            row[TL_ACCESS_no_reuse] = 0;
            row[TL_ACCESS_reuse_iterations] = iterations;
            row[TL_ACCESS_reuse_bytes] = loop->iteration_bytes;
            row[TL_ACCESS_reuse_count] = loop->starts * loop->extent;
            return;
        }
        iterations *= loop->extent;
    }
}

/* Lines of all accesses: what moves in small steps shares them. */
static double all_lines(const tl_outline *outline, const tl_outline_statement *s,
                        const tl_outline_access *a)
{
    double skipped = 1;
    for (int d = s->depth - 1; d >= 0; d--) {
        if (a->stride[d] > 0)
            return fmax(1, s->runs / skipped * fmin(1, a->stride[d] * a->unit / TL_LINE_BYTES));
        skipped *= outline->loops[s->loops[d]].extent;
    }
    return 1;
}

static void fill_access(const tl_outline *outline, const tl_outline_statement *s,
                        const tl_outline_access *a, double *row)
{
    row[TL_ACCESS_read] = a->is_read && !a->is_written;
    row[TL_ACCESS_write] = a->is_written && !a->is_read;
    row[TL_ACCESS_update] = a->is_read && a->is_written;
    row[TL_ACCESS_bytes] = s->runs * a->unit;
    row[TL_ACCESS_unique_bytes] = a->elements[0] * a->unit;
    row[TL_ACCESS_lines] = all_lines(outline, s, a);
    row[TL_ACCESS_unique_lines] = a->lines[0];
    add_reuse(outline, s, a, row);
    double uses = row[TL_ACCESS_no_reuse] > 0 ? 0.5 : fmax(row[TL_ACCESS_reuse_count], 1);
    row[TL_ACCESS_bytes_a_reuse] = row[TL_ACCESS_bytes] / uses;
    row[TL_ACCESS_unique_a_reuse] = row[TL_ACCESS_unique_bytes] / uses;
    row[TL_ACCESS_lines_a_reuse] = row[TL_ACCESS_lines] / uses;
    row[TL_ACCESS_stride] = s->depth > 0 ? a->stride[s->depth - 1] : 0;
    for (int d = 0; d < s->depth; d++)
        if (outline->loops[s->loops[d]].kind == TL_LOOP_VECTORIZED)
            row[TL_ACCESS_lane_stride] = a->stride[d];
    row[TL_ACCESS_from_l2] = tl_outline_misses(outline, s, a, (double)outline->target->l1_bytes);
    row[TL_ACCESS_from_l3] = tl_outline_misses(outline, s, a, (double)outline->target->l2_bytes);
    row[TL_ACCESS_is_packed] = a->buffer->role == TL_ROLE_PREPARED;
}

static bool goes_before(const access_row *x, const access_row *y)
{
    double a = x->row[TL_ACCESS_lines], b = y->row[TL_ACCESS_lines];
    if (a != b)
        return a > b;
    a = x->row[TL_ACCESS_bytes];
    b = y->row[TL_ACCESS_bytes];
    return a != b ? a > b : x->order < y->order;
}

static void add_accesses(const tl_outline *outline, const tl_outline_statement *s, double *row,
                         access_row *sorted)
{
    assert(s->access_count >= 0 && s->access_count <= TL_OUTLINE_ACCESSES);
    double l3 = (double)outline->target->l3_bytes;
    for (int i = 0; i < s->access_count; i++) {
        access_row next = { .order = i };
        const tl_outline_access *a = &s->accesses[i];
        fill_access(outline, s, a, next.row);
        row[TL_FEATURE_lines_from_l2] += next.row[TL_ACCESS_from_l2];
        row[TL_FEATURE_lines_from_l3] += next.row[TL_ACCESS_from_l3];
        row[TL_FEATURE_lines_from_memory] += tl_outline_misses(outline, s, a, l3);
        if (is_fetched(outline, s, a))
            row[TL_FEATURE_lines_fetched] += next.row[TL_ACCESS_from_l2];
        int at = i;
        for (; at > 0 && goes_before(&next, &sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = next;
    }
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

/* FLOP per byte of the loops from the inside out, at ten places between no arithmetic and all of it. */
static void add_curve(const tl_outline *outline, const tl_outline_statement *s, double *curve)
{
    assert(s->depth >= 0 && s->depth <= TL_OUTLINE_DEPTH);
    double flops[TL_OUTLINE_DEPTH + 1], intensity[TL_OUTLINE_DEPTH + 1];
    if (s->ops.flops == 0)
        return;
    for (int d = s->depth; d >= 0; d--) {
        double bytes = 0;
        for (int i = 0; i < s->access_count; i++)
            bytes += s->accesses[i].elements[d] * s->accesses[i].unit;
        flops[d] = d == s->depth ? s->ops.flops : flops[d + 1] * outline->loops[s->loops[d]].extent;
        intensity[d] = flops[d] / fmax(bytes, 1);
    }
    for (int i = 0, d = s->depth; i < TL_FEATURE_CURVE; i++) {
        double x = (i + 1.0) / TL_FEATURE_CURVE * flops[0];
        while (d > 0 && flops[d] < x)
            d--;
        if (d == s->depth || flops[d] == flops[d + 1]) {
            curve[i] = intensity[d];
            continue;
        }
        double part = (x - flops[d + 1]) / (flops[d] - flops[d + 1]);
        curve[i] = intensity[d + 1] + fmin(fmax(part, 0), 1) * (intensity[d] - intensity[d + 1]);
    }
}

static float as_feature(kind k, double value)
{
    return k == MAGNITUDE ? tl_feature_log(value) : (float)value;
}

static void fill_row(const tl_outline *outline, const tl_outline_statement *s, float *out)
{
    double row[TL_FEATURE_SCALARS] = { 0 }, curve[TL_FEATURE_CURVE] = { 0 };
    access_row sorted[TL_OUTLINE_ACCESSES] = { { { 0 }, 0 } };
    for (int i = TL_FEATURE_float_mad; i <= TL_FEATURE_cast_op; i++)
        row[i] = s->ops.op[i] * s->runs;
    row[TL_FEATURE_is_reduction] = s->block->combiner != TL_COMBINER_NONE;
    row[TL_FEATURE_is_predicated] = s->block->predicate != NULL;
    row[TL_FEATURE_phase_share] = outline->flops > 0 ? s->ops.flops * s->runs / outline->flops : 0;
    add_loops(outline, s, row);
    add_body(outline, s, row);
    add_fetches(outline, s, row);
    add_alloc(outline, s, row);
    add_accesses(outline, s, row, sorted);
    add_curve(outline, s, curve);
    for (int i = 0; i < TL_FEATURE_SCALARS; i++)
        out[i] = as_feature(scalars[i].kind, row[i]);
    for (int a = 0; a < TL_FEATURE_ACCESSES; a++)
        for (int i = 0; i < TL_ACCESS_WIDTH; i++)
            out[TL_FEATURE_FIRST_ACCESS + a * TL_ACCESS_WIDTH + i] =
                as_feature(accesses[i].kind, sorted[a].row[i]);
    for (int i = 0; i < TL_FEATURE_CURVE; i++)
        out[TL_FEATURE_FIRST_CURVE + i] = tl_feature_log(curve[i]);
}

int tl_features_of(tl_arena *arena, const tl_program *program, const tl_target *target,
                   const float **rows)
{
    const tl_outline *outline = tl_outline_of(arena, program, target);
    float *out = TL_NEW_ARRAY(arena, float, outline->statement_count *TL_FEATURE_WIDTH);
    for (int i = 0; i < outline->statement_count; i++)
        fill_row(outline, &outline->statements[i], out + (size_t)i * TL_FEATURE_WIDTH);
    *rows = out;
    return outline->statement_count;
}
