/* tests/driver/test_error_bounds.c: every lowering (of frontend/operators.def and frontend/lower/lowerings.def) stays within
 * the error bound that it states.
 *
 * The kernels of error_bound_cases.def get their default schedules, are compiled, run, and compared with a copy of the
 * direct program in which every float is f64, interpreted:
 *
 *     |a - e| <= B (|e| + max|e| + K)
 *
 * where K is how far e moves, to first order, when the inputs move by relative amounts: what cancellation makes of the
 * inputs' own last bits is no fault of the program (a mixed forward-backward error: Higham, Accuracy and Stability of
 * Numerical Algorithms, 2002, section 1.5). On inputs without cancellation it counts for nothing, and is left out, as the
 * tuner leaves it out. B = 0 means the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "frontend/frontend.h"
#include "frontend/operators.h"
#include "frontend/lower/lower_private.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "tests/codegen/compiled.h"

enum { MAX_BUFFERS = 16, NUDGES = 2 };

typedef enum { ANY, POSITIVE } domain;

typedef struct {
    tl_op op;
    const char *lowering;
    domain domain;
    const char *graph;
} bound_case;
static const bound_case cases[] = {
#define CASE(op, lowering, domain, graph) { TL_OP_##op, #lowering, domain, graph },
#include "tests/driver/error_bound_cases.def"
#undef CASE
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

static const struct {
    tl_op op;
    const char *name;
    int error;
} others[] = {
#define LOWERING(op, name, when, error, stages, value) { TL_OP_##op, #name, error },
#include "frontend/lower/lowerings.def"
#undef LOWERING
};

/* Inputs: what the tuner measures with, normal and wild, then what sums are bad at. */
typedef enum { NORMAL, WILD, ONE_SIGN, FAR_FROM_ZERO, CANCELLING, FILL_COUNT } fill_kind;
static const char *const fill_names[] = { "normal", "wild", "of one sign", "far from zero",
                                          "cancelling" };
static bool cancels(fill_kind kind)
{
    return kind == FAR_FROM_ZERO || kind == CANCELLING;
}

static double draw(tl_random *random, fill_kind kind, double before, int64_t at)
{
    double unit = tl_random_unit(random), normal = tl_random_normal(random);
    switch (kind) {
    case NORMAL:
        return normal;
    case WILD: /* zeros, ties, magnitudes over nine powers of ten */
        if (unit < 0.4)
            return unit < 0.1 ? 0 : (double)(tl_random_below(random, 5) - 2);
        return (unit < 0.7 ? 1 : -1) * exp2(18 * tl_random_unit(random) - 12);
    case ONE_SIGN:
        return 1 + unit;
    case FAR_FROM_ZERO:
        return 1000 + normal;
    case CANCELLING: /* pairs that differ in their last bits */
        return at % 2 ? -before * (1 + 1e-5 * normal) : 1000 * unit;
    case FILL_COUNT:
        break;
    }
    return 0;
}

typedef struct {
    tl_arena *arena;
    const bound_case *is;
    const tl_program *naive, *scheduled, *exact; /* exact: the direct program in f64 */
    compiled prepare, body;
    double bound;
    fill_kind kind;
    double worst; /* the largest error over its bound */
} run;

static void fail_run(const run *r, const char *what)
{
    fail_msg("%s of\n%s%s inputs: %s", r->is->lowering, r->is->graph, fill_names[r->kind], what);
}

static int64_t size_of(const tl_buffer *b)
{
    return tl_buffer_max_elements(b);
}

static double load(const tl_buffer *b, const void *data, int64_t at)
{
    tl_number value = tl_number_load(b->dtype, data, (size_t)at);
    return tl_dtype_is_float(b->dtype) ? value.f : (double)value.i;
}

static void store(const tl_buffer *b, void *data, int64_t at, double value)
{
    tl_number number = { .i = 0 };
    if (tl_dtype_is_float(b->dtype))
        number.f = value;
    else
        number.i = (int64_t)value;
    tl_number_store(b->dtype, data, (size_t)at, number);
}

static void *allocate(const run *r, const tl_buffer *b)
{
    return tl_arena_alloc(r->arena, (size_t)(size_of(b) + 1) * tl_dtype_size(b->dtype), 64);
}

static void *draw_input(const run *r, const tl_buffer *b, uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    void *data = allocate(r, b);
    double value = 0;
    for (int64_t i = 0; i < size_of(b); i++) {
        value = draw(&random, r->kind, value, i);
        double kept = r->is->domain == POSITIVE ? fabs(value) + 0x1p-10 : value;
        if (!tl_dtype_is_float(b->dtype))
            kept = (double)tl_random_below(&random, b->dtype == TL_BOOL ? 2 : 4);
        store(b, data, i, kept);
    }
    return data;
}

/* What the exact program makes of the inputs when each is moved by a relative amount of -by or by. */
static void *run_exact(const run *r, void *const *buffers, double by, uint64_t seed)
{
    tl_argument arguments[MAX_BUFFERS];
    tl_random random = tl_random_make(seed);
    tl_diag diag = { 0 };
    void *out = NULL;
    for (int i = 0; i < r->exact->param_count; i++) {
        const tl_buffer *to = r->exact->params[i], *from = r->naive->params[i];
        void *data = allocate(r, to);
        arguments[i] = (tl_argument){ to, data };
        if (to->role == TL_ROLE_OUTPUT)
            out = data;
        else
            for (int64_t k = 0; k < size_of(to); k++) {
                double sign = tl_random_below(&random, 2) ? 1 : -1;
                double factor = tl_dtype_is_float(to->dtype) ? 1 + sign * by : 1;
                store(to, data, k, load(from, buffers[i], k) * factor);
            }
    }
    if (tl_interpret(r->exact, arguments, r->exact->param_count, NULL,
                     &(tl_interpret_options){ .check = false }, &diag) != TL_OK)
        fail_run(r, diag.text);
    return out;
}

/* Beyond what the dtype holds, where no bound is meant to hold. */
static bool is_out_of_range(tl_dtype dtype, double value)
{
    return !(fabs(value) < 0.99 * (dtype == TL_F16 ? 65504 : (double)FLT_MAX));
}

/* K: the largest that the output moves by, over a relative amount that the inputs move by. */
static double find_response(const run *r, const tl_buffer *b, void *const *buffers,
                            const double *exact)
{
    const double by = 0x1p-30;
    double most = 0;
    for (int n = 0; n < NUDGES; n++) {
        const double *moved = run_exact(r, buffers, by, 77 + (uint64_t)n);
        for (int64_t i = 0; i < size_of(b); i++)
            if (!is_out_of_range(b->dtype, exact[i]) && !is_out_of_range(b->dtype, moved[i]))
                most = fmax(most, fabs(moved[i] - exact[i]) / by);
    }
    return most;
}

static void compare(run *r, const tl_buffer *b, void *const *buffers, const void *got)
{
    const void *exact = run_exact(r, buffers, 0, 0);
    const tl_buffer *exact_buffer = r->exact->params[r->exact->param_count - 1];
    bool is_float = tl_dtype_is_float(b->dtype);
    double largest = 0, response = 0;
    for (int64_t i = 0; i < size_of(b); i++) {
        double e = fabs(load(exact_buffer, exact, i));
        largest = is_out_of_range(b->dtype, e) ? largest : fmax(largest, e);
    }
    if (is_float && r->bound > 0 && cancels(r->kind))
        response = find_response(r, b, buffers, exact);
    for (int64_t i = 0; i < size_of(b); i++) {
        double a = load(b, got, i), e = load(exact_buffer, exact, i);
        double allowed = is_float ? r->bound * (fabs(e) + largest + response) : 0;
        if (is_out_of_range(b->dtype, e) || a == e)
            continue;
        if (r->bound > 0 && is_float)
            allowed += FLT_MIN; /* what is smaller counts as zero */
        r->worst = fmax(r->worst, allowed > 0 ? fabs(a - e) / allowed : INFINITY);
        if (!(fabs(a - e) <= allowed))
            fail_run(r, tl_arena_format(r->arena,
                                        "element %lld is %.9g instead of %.9g: off by %.3g, %.3g "
                                        "is allowed",
                                        (long long)i, a, e, fabs(a - e), allowed));
    }
}

static void run_inputs(run *r, fill_kind kind)
{
    void *buffers[MAX_BUFFERS], *got = NULL;
    r->kind = kind;
    for (int i = 0; i < r->naive->param_count; i++) {
        const tl_buffer *b = r->naive->params[i];
        bool is_output = b->role == TL_ROLE_OUTPUT;
        /* weights are of one kind: the tuner has normal ones alone */
        fill_kind own = b->role == TL_ROLE_CONST && kind == WILD ? NORMAL : kind;
        run weights = *r;
        weights.kind = own;
        buffers[i] =
            is_output ? allocate(r, b) : draw_input(&weights, b, (uint64_t)(100 * kind + i));
        if (is_output)
            got = buffers[i];
    }
    for (int i = 0; i < r->scheduled->prepared_count; i++)
        buffers[r->scheduled->param_count + i] = allocate(r, r->scheduled->prepared[i]);
    if (r->scheduled->prepare)
        compiled_run(&r->prepare, buffers, NULL, 1);
    compiled_run(&r->body, buffers, NULL, 2);
    compare(r, r->naive->params[r->naive->param_count - 1], buffers, got);
}

/* The text with all floats in f64, but where it reads their bits: those are of one width, and nothing is rounded. */
static const char *in_f64(tl_arena *arena, const char *text)
{
    static const char *const floats[] = { "bf16", "f16", "f32" };
    if (strstr(text, "bits_") != NULL)
        return text;
    char *out = tl_arena_alloc(arena, 2 * strlen(text) + 1, 1), *to = out;
    for (const char *at = text; *at != '\0';) {
        size_t length = 0;
        for (int f = 0; f < 3 && length == 0; f++)
            if (strncmp(at, floats[f], strlen(floats[f])) == 0)
                length = strlen(floats[f]);
        to = length > 0 ? stpcpy(to, "f64") : (*to = *at, to + 1);
        at += length > 0 ? length : 1;
    }
    return out;
}

/* Lowers the graph's one kernel as the case says; layouts are assigned unless the text says them. */
static void lower(run *r, const tl_target *target)
{
    tl_graph *g;
    tl_partition partition;
    const tl_kernel_lowering *found;
    tl_program *exact;
    int count, chosen = -1;
    tl_diag diag = { 0 };
    const char *text = tl_arena_format(r->arena, "graph g\n%soutput y\n", r->is->graph);
    if (tl_graph_parse(r->arena, text, "graph", &g, &diag) != TL_OK ||
        tl_infer_shapes(g, &diag) != TL_OK ||
        (strstr(text, "layout(") == NULL && tl_assign_layouts(g, target, &diag) != TL_OK) ||
        tl_partition_graph(r->arena, g, &partition, &diag) != TL_OK)
        fail_run(r, diag.text);
    assert_int_equal(partition.count, 1);
    bool is_there = false;
    for (int i = 0; i < partition.kernels[0].node_count; i++)
        is_there |= partition.kernels[0].nodes[i]->op == r->is->op;
    if (!is_there)
        fail_run(r, "the kernel is without the operator");
    if (tl_kernel_lowerings(r->arena, &partition.kernels[0], TL_NUMERICS_RELAXED, &found, &count,
                            &diag) != TL_OK)
        fail_run(r, diag.text);
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].name, r->is->lowering) == 0)
            chosen = i;
    if (chosen < 0)
        fail_run(r, "the kernel has no such lowering");
    assert_true(found[chosen].rtol == found[chosen].ttol);
    r->naive = found[chosen].program;
    r->bound = found[chosen].rtol;
    if (tl_program_parse(r->arena, in_f64(r->arena, found[0].text), "exact", &exact, &diag) !=
        TL_OK)
        fail_run(r, diag.text);
    r->exact = exact;
}

/* A bound a thousand times what is seen says nothing. */
static void run_case(const bound_case *is, const tl_target *target)
{
    run r = { .arena = tl_arena_create(0), .is = is };
    tl_diag diag = { 0 };
    lower(&r, target);
    tl_schedule *s = tl_schedule_create(r.arena, r.naive, target, true);
    if (tl_schedule_default(s, &diag) != TL_OK)
        fail_run(&r, diag.text);
    r.scheduled = tl_schedule_program(s);
    assert_in_range(r.scheduled->param_count + r.scheduled->prepared_count, 1, MAX_BUFFERS);
    if (compiled_make(r.arena, r.scheduled, false, target, &r.body, &diag) != TL_OK ||
        (r.scheduled->prepare != NULL &&
         compiled_make(r.arena, r.scheduled, true, target, &r.prepare, &diag) != TL_OK))
        fail_run(&r, diag.text);
    for (fill_kind kind = 0; kind < FILL_COUNT; kind++)
        run_inputs(&r, kind);
    compiled_free(&r.body);
    if (r.scheduled->prepare != NULL)
        compiled_free(&r.prepare);
    if (r.bound > 0 && r.worst < 1e-3)
        fail_run(&r, tl_arena_format(r.arena, "all errors are below %.3g of the bound", r.worst));
    tl_arena_destroy(r.arena);
}

static void must_have_case(tl_op op, const char *lowering)
{
    bool has_case = false;
    for (int k = 0; k < CASE_COUNT; k++)
        has_case |= cases[k].op == op && strcmp(cases[k].lowering, lowering) == 0;
    if (!has_case)
        fail_msg("%s as %s: no case in error_bound_cases.def", tl_op_infos[op].text, lowering);
}

static void every_lowering_has_a_bound_and_a_case(void **state)
{
    (void)state;
    for (int op = 0; op < TL_OP_COUNT; op++)
        if (tl_operators[op].direct.value != tl_value_none)
            must_have_case((tl_op)op, "direct");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        must_have_case(others[i].op, others[i].name);
        if (others[i].error < 1)
            fail_msg("%s as %s: states no error bound", tl_op_infos[others[i].op].text,
                     others[i].name);
    }
}

static void results_are_within_the_bounds(void **state)
{
    (void)state;
    static const char *const isas[] = { NULL, "x86-64-v2" };
    for (size_t t = 0; t < sizeof isas / sizeof *isas; t++) {
        tl_target target;
        assert_int_equal(compiled_target(isas[t], &target, NULL), TL_OK);
        target.cores = 2;
        for (int k = 0; k < CASE_COUNT; k++)
            run_case(&cases[k], &target);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_lowering_has_a_bound_and_a_case),
        cmocka_unit_test(results_are_within_the_bounds),
    };
    return cmocka_run_group_tests_name("error bounds", tests, NULL, NULL);
}
