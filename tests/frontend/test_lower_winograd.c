/* tests/frontend/test_lower_winograd.c: Winograd's lowerings give what the direct one gives, whatever the tiles leave over. */
#include "ir/program/machine.h"
#include "tests/frontend/lower_helpers.h"

typedef struct {
    int c, o, h, w, pad;
    int images;
} conv_case;

static const conv_case cases[] = {
    { 8, 4, 8, 8, 1, 1 }, { 4, 8, 9, 7, 1, 1 },  { 8, 8, 6, 13, 0, 1 },
    { 4, 4, 3, 3, 1, 1 }, { 8, 12, 5, 4, 1, 1 }, { 8, 8, 5, 6, 1, 3 },
};

/* Interprets a program of the kernel; the output in memory. */
static float *run_program(tl_arena *arena, const tl_kernel *kernel, const tl_program *program,
                          float *input)
{
    tl_diag diag = { { 0 } };
    if (tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, program->param_count);
    float *out = NULL;
    for (int i = 0; i < program->param_count; i++) {
        const tl_value *v = i < kernel->input_count ? kernel->inputs[i] : kernel->outputs[0];
        void *data = v->data != NULL ? (void *)(uintptr_t)v->data : input;
        if (i == kernel->input_count)
            data = out = TL_NEW_ARRAY(arena, float, physical_elements(v));
        arguments[i] = (tl_argument){ program->params[i], data };
    }
    if (tl_interpret(program, arguments, program->param_count, NULL, NULL, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, tl_program_text(arena, program));
    return out;
}

/* Within the bound that the lowering states. */
static void assert_within(const tl_kernel_lowering *lowering, const float *got, const float *want,
                          int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int64_t i = 0; i < count; i++) {
        double e = (double)want[i], error = fabs((double)got[i] - e);
        if (!(error <= lowering->rtol * fabs(e) + lowering->ttol * largest))
            fail_msg("%s: element %lld is %g, should be %g", lowering->name, (long long)i,
                     (double)got[i], e);
    }
}

static const tl_kernel *conv_kernel_for(tl_arena *arena, const char *target, const conv_case *c,
                                        int stride, uint64_t seed)
{
    const char *text = tl_arena_format(
        arena,
        "graph g\ninput x: f32[%d, %d, %d, %d]\nconst e: f32[%d, %d, 1, 1] = ...\n"
        "const w: f32[%d, %d, 3, 3] = ...\nconst b: f32[%d] = ...\nconst f: f32[4, %d, 1, 1] = "
        "...\n"
        "p: ?[...] = Conv(x, e)\n"
        "c: ?[...] = Conv(p, w, b) {pads = [%d, %d, %d, %d], strides = [%d, %d]}\n"
        "r: ?[...] = Relu(c)\nz: ?[...] = Conv(r, f)\noutput z\n",
        c->images, c->c, c->h, c->w, c->c, c->c, c->o, c->c, c->o, c->o, c->pad, c->pad, c->pad,
        c->pad, stride, stride);
    tl_graph *g = prepared_graph(arena, text, target);
    tl_graph_find(g, "w")->data = random_floats(arena, (int64_t)c->o * c->c * 9, seed);
    tl_graph_find(g, "b")->data = random_floats(arena, c->o, seed + 1);
    tl_partition partition;
    assert_int_equal(tl_partition_graph(arena, g, &partition, NULL), TL_OK);
    assert_int_equal(partition.count, 3);
    return &partition.kernels[1];
}

static const tl_kernel *conv_kernel(tl_arena *arena, const conv_case *c, int stride, uint64_t seed)
{
    return conv_kernel_for(arena, "x86-64", c, stride, seed);
}

/* The kernel's data input, with its halo of zeros, in memory order; `spread`: magnitudes over six powers of ten. */
static float *make_input(tl_arena *arena, const tl_kernel *kernel, bool spread, uint64_t seed)
{
    const tl_value *x = NULL;
    for (int k = 0; k < kernel->input_count; k++)
        if (kernel->inputs[k]->data == NULL)
            x = kernel->inputs[k];
    float *memory = TL_NEW_ARRAY(arena, float, physical_elements(x));
    float *logical = random_floats(arena, tl_shape_elements(&x->shape), seed);
    for (int64_t i = 0; spread && i < tl_shape_elements(&x->shape); i++)
        logical[i] *= powf(10, (float)(i * 7 % 7) - 3);
    copy_layout(x, logical, memory, true);
    return memory;
}

static void same_as_direct(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        tl_arena *arena = tl_arena_create(0);
        const tl_kernel *kernel = conv_kernel(arena, &cases[i / 2], 1, 3 * i);
        float *input = make_input(arena, kernel, i % 2, 3 * i + 2);
        const tl_kernel_lowering *lowerings;
        int count;
        tl_diag diag = { { 0 } };
        if (tl_kernel_lowerings(arena, kernel, TL_NUMERICS_RELAXED, &lowerings, &count, &diag) !=
            TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(count, 3);
        float *want = run_program(arena, kernel, lowerings[0].program, input);
        for (int k = 1; k < count; k++)
            assert_within(&lowerings[k], run_program(arena, kernel, lowerings[k].program, input),
                          want, physical_elements(kernel->outputs[0]));
        tl_arena_destroy(arena);
    }
}

/* The direct one is first and names all; what a stride or strict numerics forbid is not there. */
static void lowerings_are_the_legal_ones(void **state)
{
    tl_arena *arena = *state;
    const tl_kernel *kernel = conv_kernel(arena, &cases[0], 1, 1);
    static const char *const names[] = { "direct", "winograd_f2", "winograd_f4" };
    const tl_kernel_lowering *l;
    int count;
    assert_int_equal(tl_kernel_lowerings(arena, kernel, TL_NUMERICS_RELAXED, &l, &count, NULL),
                     TL_OK);
    assert_int_equal(count, 3);
    for (int i = 0; i < count; i++) {
        char own[33], parsed[33];
        tl_program *again;
        assert_string_equal(l[i].name, names[i]);
        assert_string_equal(l[i].program->name, l[0].program->name);
        assert_int_equal(l[i].program->param_count, l[0].program->param_count);
        for (int p = 0; p < l[0].program->param_count; p++)
            assert_string_equal(l[i].program->params[p]->name, l[0].program->params[p]->name);
        assert_int_equal(tl_program_parse(arena, l[i].text, l[i].name, &again, NULL), TL_OK);
        tl_workload_key(arena, l[i].program, own);
        tl_workload_key(arena, again, parsed);
        assert_string_equal(own, parsed);
    }
    assert_true(l[0].rtol == tl_program_error_bound(l[0].program));
    assert_true(l[2].rtol > l[1].rtol && l[1].rtol > l[0].rtol);

    assert_int_equal(tl_kernel_lowerings(arena, kernel, TL_NUMERICS_STRICT, &l, &count, NULL),
                     TL_OK);
    assert_int_equal(count, 1);
    kernel = conv_kernel(arena, &cases[0], 2, 1);
    assert_int_equal(tl_kernel_lowerings(arena, kernel, TL_NUMERICS_RELAXED, &l, &count, NULL),
                     TL_OK);
    assert_int_equal(count, 1);
    assert_string_equal(l[0].name, "direct");
}

/* What is multiplied against what is read: the larger tile pays where its four times as large weights come fast enough. */
static void choice(void **state)
{
    static const struct {
        conv_case conv;
        double line_cycles; /* 0: of the built-in machine */
        const char *want;
    } choices[] = {
        { { 64, 64, 28, 28, 1, 1 }, 0, "winograd_f4" },
        { { 64, 64, 28, 28, 1, 1 }, 7.5, "winograd_f4" },
        { { 64, 64, 14, 14, 1, 1 }, 0, "winograd_f2" },
        { { 64, 64, 14, 14, 1, 1 }, 7.5, "winograd_f4" },
        { { 64, 64, 7, 7, 1, 1 }, 0, "direct" },
        { { 64, 64, 7, 7, 1, 1 }, 7.5, "winograd_f2" },
        { { 64, 64, 4, 4, 1, 1 }, 7.5, "direct" },
        { { 4, 64, 14, 14, 1, 1 }, 7.5, "direct" },
        { { 64, 64, 7, 7, 1, 8 }, 0, "winograd_f4" }, /* weights are read once for all images */
        { { 24, 24, 48, 48, 1, 1 }, 0, "direct" },    /* in one block of a vector and a half */
    };
    tl_arena *arena = *state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        tl_target target;
        tl_machine machine = tl_machine_built_in;
        const tl_kernel *kernel = conv_kernel_for(arena, "x86-64-v4", &choices[i].conv, 1, 1);
        assert_int_equal(tl_target_named("x86-64-v4", &target, NULL), TL_OK);
        if (choices[i].line_cycles > 0)
            machine.memory_line_cycles = choices[i].line_cycles;
        target.machine = &machine;
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_RELAXED),
                            choices[i].want);
        assert_string_equal(tl_choose_lowering(kernel, &target, TL_NUMERICS_STRICT), "direct");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_direct),
        cmocka_unit_test_setup_teardown(lowerings_are_the_legal_ones, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(choice, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests_name("winograd", tests, NULL, NULL);
}
