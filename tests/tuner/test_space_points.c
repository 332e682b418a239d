/* tests/tuner/test_space_points.c: random points of the spaces of kernels of every class, for several targets: each builds,
 * replays from its text to the same program, verifies, and computes what the naive program computes. TL_POINTS points a
 * kernel and target, from TL_SEED. */
#include <inttypes.h>
#include <stdlib.h>
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/frontend/lower_helpers.h"
#include "tests/support/sketch_programs.h"
#include "tuner/search/space.h"

static const char *const targets[] = { "x86-64-v2", "x86-64-v3", "x86-64-v4" };

typedef struct {
    tl_argument arguments[16];
    int count;
} call;

static int64_t number_from(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

/* The same numbers for every program of a task: its parameters are the same. */
static void make_call(tl_arena *arena, const tl_program *program, call *c)
{
    tl_random random = tl_random_make(7);
    c->count = program->param_count;
    assert_true(c->count <= 16);
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        int64_t n = tl_buffer_max_elements(b);
        void *data = tl_arena_alloc(arena, (size_t)n * tl_dtype_size(b->dtype), 64);
        for (int64_t k = 0; k < n && b->role != TL_ROLE_OUTPUT; k++) {
            tl_number value;
            if (tl_dtype_is_float(b->dtype))
                value.f = tl_random_unit(&random) - 0.5;
            else
                value.i = tl_random_below(&random, 5);
            tl_number_store(b->dtype, data, (size_t)k, value);
        }
        c->arguments[i] = (tl_argument){ b, data };
    }
}

static void compare(const tl_program *program, const call *want, const call *got, double bound,
                    const tl_variant *v)
{
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        double largest = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; b->role == TL_ROLE_OUTPUT && k < tl_buffer_max_elements(b); k++) {
                double w = tl_number_load(b->dtype, want->arguments[i].data, (size_t)k).f;
                double g = tl_number_load(b->dtype, got->arguments[i].data, (size_t)k).f;
                largest = fmax(largest, fabs(w));
                if (pass == 1 && !(fabs(w - g) <= bound * (largest + fabs(w))))
                    fail_msg("%s: %s[%lld] is %.9g, not %.9g\n%s", program->name, b->name,
                             (long long)k, g, w, v->trace);
            }
    }
}

static void replays(tl_arena *arena, const tl_space *space, const tl_variant *v)
{
    tl_diag diag = { 0 };
    tl_trace *trace;
    tl_schedule *s = tl_schedule_create(arena, tl_space_program(space, v->point.lowering),
                                        tl_space_target(space), true);
    if (tl_trace_parse(arena, v->trace, "trace", tl_space_target(space), &trace, &diag) != TL_OK ||
        tl_trace_apply(trace, s, &diag) != TL_OK ||
        tl_program_verify(tl_schedule_program(s), &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, v->trace);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, tl_program_hash(tl_schedule_program(s)));
    if (strcmp(hash, v->hash) != 0)
        fail_msg("another program\n%s", v->trace);
}

static tl_target target_of(const char *name)
{
    tl_target target;
    assert_int_equal(tl_target_named(name, &target, NULL), TL_OK);
    target.cores = 2;
    return target;
}

static void check_space(const tl_measure_task *task, const tl_target *target, tl_space_kind kind,
                        int64_t count)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_space *space;
    call want;
    tl_random random = tl_random_make((uint64_t)number_from("TL_SEED", 1));
    tl_interpret_options checked = { .check = true };
    if (tl_space_create(arena, task, target, 2, kind, &space, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const tl_program *reference = tl_space_program(space, 0);
    make_call(arena, reference, &want);
    if (tl_interpret(reference, want.arguments, want.count, NULL, &checked, &diag) != TL_OK)
        fail_msg("%s: %s", task->name, diag.text);
    for (int64_t i = 0; i < count; i++) {
        tl_arena *own = tl_arena_create(0);
        tl_variant v;
        call got;
        if (tl_space_sample(space, own, &random, &v, &diag) != TL_OK)
            fail_msg("%s: %s", task->name, diag.text);
        replays(own, space, &v);
        make_call(own, v.program, &got);
        if (tl_interpret(v.program, got.arguments, got.count, NULL, &checked, &diag) != TL_OK)
            fail_msg("%s: %s\n%s\n%s", task->name, diag.text, v.trace,
                     tl_program_text(own, v.program));
        double bound = task->lowerings[v.point.lowering].ttol;
        compare(v.program, &want, &got, bound > 0 ? bound : 1e-5, &v);
        tl_arena_destroy(own);
    }
    tl_arena_destroy(arena);
}

static void check_task(const tl_measure_task *task, const tl_target *target, int64_t count)
{
    for (int k = 0; k < TL_SPACE_KIND_COUNT; k++)
        check_space(task, target, (tl_space_kind)k, count);
}

static void check_program(const char *name, const char *text)
{
    tl_measure_lowering lowering = { "direct", text, 0, 0 };
    tl_measure_task task = { .name = name, .lowering_count = 1, .lowerings = &lowering };
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        tl_target target = target_of(targets[t]);
        check_task(&task, &target, number_from("TL_POINTS", 2));
    }
}

static void points_of_small_kernels(void **state)
{
    (void)state;
    sketch_programs_visit(getenv("TL_ONLY"), check_program);
}

/* What networks are made of, with all lowerings. */
static const char *const graphs[] = {
    "graph convolutions\ninput x: f32[1, 16, 9, 10]\nconst e: f32[16, 16, 1, 1] = ...\n"
    "const w: f32[32, 16, 3, 3] = ...\nconst b: f32[32] = ...\nconst d: f32[32, 1, 3, 3] = ...\n"
    "const f: f32[16, 32, 1, 1] = ...\n"
    "p: ?[...] = Conv(x, e)\nc: ?[...] = Conv(p, w, b) {pads = [1, 1, 1, 1]}\nr: ?[...] = Relu(c)\n"
    "s: ?[...] = Conv(r, d) {pads = [1, 1, 1, 1], strides = [2, 2], group = 32}\n"
    "t: ?[...] = Conv(s, f)\nz: ?[...] = GlobalAveragePool(t)\noutput z\n",
    "graph sequence\ninput x: f32[1, 12, 24]\nconst w: f32[24, 40] = ...\nconst v: f32[40, 24] = "
    "...\n"
    "a: ?[...] = MatMul(x, w)\nb: ?[...] = Gelu(a)\nc: ?[...] = MatMul(b, v)\n"
    "d: ?[...] = Add(c, x)\ne: ?[...] = Softmax(d)\n"
    "f: ?[...] = Transpose(e) {perm = [0, 2, 1]}\ng: ?[...] = MatMul(e, f)\noutput g\n",
};

/* Gives how many kernels there were, and lowerings of them. */
static void check_networks(tl_numerics numerics, int *kernels, int *lowerings)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            tl_arena *arena = tl_arena_create(0);
            tl_target target = target_of(targets[t]);
            tl_graph *g = prepared_graph(arena, graphs[i], targets[t]);
            tl_partition partition;
            assert_int_equal(tl_partition_graph(arena, g, &partition, NULL), TL_OK);
            for (int k = 0; k < partition.count; k++) {
                const tl_kernel_lowering *found;
                tl_measure_lowering own[8];
                int count;
                assert_int_equal(tl_kernel_lowerings(arena, &partition.kernels[k], numerics, &found,
                                                     &count, NULL),
                                 TL_OK);
                for (int l = 0; l < count; l++)
                    own[l] = (tl_measure_lowering){ found[l].name, found[l].text, found[l].rtol,
                                                    found[l].ttol };
                tl_measure_task task = { .name = partition.kernels[k].name,
                                         .lowering_count = count,
                                         .lowerings = own };
                check_task(&task, &target, number_from("TL_POINTS", 2) * count);
                ++*kernels;
                *lowerings += count;
            }
            tl_arena_destroy(arena);
        }
}

static void points_of_networks(void **state)
{
    (void)state;
    int kernels = 0, lowerings = 0;
    check_networks(TL_NUMERICS_RELAXED, &kernels, &lowerings);
    assert_true(kernels >= 15 && lowerings > kernels);
}

/* Every point of a strict kernel verifies: none adds up in lanes or pieces. */
static void points_of_strict_networks(void **state)
{
    (void)state;
    int kernels = 0, lowerings = 0;
    check_networks(TL_NUMERICS_STRICT, &kernels, &lowerings);
    assert_true(kernels >= 15 && lowerings == kernels);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_of_small_kernels),
        cmocka_unit_test(points_of_networks),
        cmocka_unit_test(points_of_strict_networks),
    };
    return cmocka_run_group_tests_name("space_points", tests, NULL, NULL);
}
