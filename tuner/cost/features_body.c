/* tuner/cost/features_body.c: the straight code a statement becomes, and what the caches must deliver to it.
 *
 * Ports as in schedule/sketch/sketch_tile.c, of the target's machine profile: without one two multiply-adds, two loads, one
 * store a cycle; a chain of dependent results takes four cycles a link. */
#include <assert.h>
#include <math.h>
#include "ir/program/machine.h"
#include "tuner/cost/features_private.h"

/* The vectorized loop nearest to the statement. */
static int vector_loop(const tl_outline *outline, const tl_outline_statement *s)
{
    for (int d = s->depth - 1; d >= s->body; d--)
        if (outline->loops[s->loops[d]].kind == TL_LOOP_VECTORIZED)
            return d;
    return TL_OUTLINE_NONE;
}

static double runs_of_body(const tl_outline *outline, const tl_outline_statement *s)
{
    if (s->body == 0)
        return 1;
    const tl_outline_loop *loop = &outline->loops[s->loops[s->body - 1]];
    return loop->starts * loop->extent;
}

static bool is_in_registers(const tl_outline_access *a)
{
    return a->buffer->scope == TL_SCOPE_REGISTER;
}

/* Loads of an access in the body: what is the same for all rows of a tile is loaded once. */
static void add_access(const tl_outline_access *a, int body, int vector, double lanes,
                       tl_outline_body *out)
{
    assert(body >= 0 && lanes >= 1);
    double elements = a->elements[body];
    double step = vector >= 0 ? a->stride[vector] : 0;
    bool whole = vector >= 0 && step == 1, spread = vector >= 0 && step > 1;
    double vectors = whole ? ceil(elements / lanes) : elements;
    if (is_in_registers(a)) {
        if (a->is_written)
            out->register_results += ceil(elements / (vector >= 0 ? lanes : 1));
        return;
    }
    if (a->is_read) {
        out->vector_loads += whole ? vectors : 0;
        out->strided_loads += spread ? elements : 0;
        out->broadcasts += !whole && !spread ? elements : 0;
    }
    if (a->is_written)
        out->stores += whole ? vectors : elements;
}

/* Vector instructions for one run of all lanes: heavy functions take tens of simple ones. */
static double instructions(const tl_machine_unit *unit, const tl_outline_ops *ops)
{
    double math = unit->exp_cycles * unit->fma_per_cycle;
    double divide = unit->divide_cycles * unit->fma_per_cycle, sum = 0;
    for (int i = TL_FEATURE_float_mad; i <= TL_FEATURE_cast_op; i++)
        sum += ops->op[i];
    sum += (math - 1) * (ops->op[TL_FEATURE_float_math] + ops->op[TL_FEATURE_int_math]);
    sum += (divide - 1) * (ops->op[TL_FEATURE_float_divmod] + ops->op[TL_FEATURE_int_divmod]);
    return sum;
}

/* Links that one run of the body adds to a chain: the reduction loops written out in it. */
static double links(const tl_outline *outline, const tl_outline_statement *s)
{
    double product = 1;
    for (int d = s->body; d < s->depth; d++)
        product *= s->reduces[d] ? outline->loops[s->loops[d]].extent : 1;
    return product;
}

static double cycles_of(const tl_outline *outline, const tl_outline_statement *s,
                        const tl_outline_body *b)
{
    enum { SPILL = 2, GATHER = 2 };
    const tl_machine_unit *unit = tl_machine_unit_of(outline->target);
    double loads = b->vector_loads + b->broadcasts + GATHER * b->strided_loads;
    double cycles = fmax(b->vectors / unit->fma_per_cycle, loads / unit->loads_per_cycle);
    cycles = fmax(cycles, b->stores / unit->stores_per_cycle);
    /* a chain that each run of the body continues */
    if (s->body > 0 && s->reduces[s->body - 1])
        cycles = fmax(cycles, unit->fma_latency * links(outline, s));
    cycles += SPILL * b->register_excess;
    return fmax(cycles, 1);
}

void tl_outline_body_of(const tl_outline *outline, const tl_outline_statement *s,
                        tl_outline_body *out)
{
    int vector = vector_loop(outline, s);
    double unit = s->access_count > 0 ? s->accesses[0].unit : 4;
    const tl_isa_info *isa = &tl_isa_infos[outline->target->isa];
    double lanes = fmax(isa->vector_bits / 8 / unit, 1), extent = 1, pieces = 1;
    *out = (tl_outline_body){ .lanes = 1, .fill = 1, .runs = runs_of_body(outline, s) };
    if (vector >= 0) {
        extent = outline->loops[s->loops[vector]].extent;
        pieces = ceil(extent / lanes);
        out->lanes = fmin(extent, lanes);
        out->fill = extent / (pieces * lanes);
    }
    double copies = 1;
    for (int d = s->body; d < s->depth; d++)
        copies *= outline->loops[s->loops[d]].extent;
    out->vectors = fmax(instructions(tl_machine_unit_of(outline->target), &s->ops), 1) * copies /
                   extent * pieces;
    for (int i = 0; i < s->access_count; i++)
        add_access(&s->accesses[i], s->body, vector, out->lanes, out);
    out->results = s->access_count > 0 ? ceil(s->accesses[0].elements[s->body] / out->lanes) : 1;
    /* results, the vectors of one column, a broadcast; one is kept free */
    double needed = out->register_results + (out->register_results > 0 ? 2 : 0);
    if (out->register_results > 0)
        needed += fmin(out->vector_loads, out->broadcasts + out->strided_loads);
    out->register_excess = fmax(0, needed - isa->vector_registers);
    out->cycles = cycles_of(outline, s, out);
}

/* From the inside out: a loop whose iteration fits keeps what the next iteration wants again; one that does not brings
 * everything again. What all phases touch stays from run to run when it fits. */
double tl_outline_misses(const tl_outline *outline, const tl_outline_statement *s,
                         const tl_outline_access *a, double cache_bytes)
{
    assert(cache_bytes >= 0);
    if (is_in_registers(a) || outline->total_bytes <= cache_bytes)
        return 0;
    double lines = 1;
    for (int d = s->depth - 1; d >= 0; d--) {
        const tl_outline_loop *loop = &outline->loops[s->loops[d]];
        if (loop->iteration_bytes <= cache_bytes)
            lines = a->lines[d];
        else
            lines *= loop->extent;
    }
    return lines;
}
