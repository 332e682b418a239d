/* tests/frontend/test_lower_winograd.c: Winograd's lowerings give what the direct one gives, whatever the tiles leave over. */
#include "tests/frontend/lower_helpers.h"

typedef struct {
    int c, o, h, w, pad;
} conv_case;

static const conv_case cases[] = {
    { 8, 4, 8, 8, 1 }, { 4, 8, 9, 7, 1 }, { 8, 8, 6, 13, 0 }, { 4, 4, 3, 3, 1 }, { 8, 12, 5, 4, 1 },
};

/* Interprets the kernel under a lowering; the output in memory. */
static float *run_lowering(tl_arena *arena, const tl_kernel *kernel, const char *lowering,
                           float *input)
{
    tl_diag diag = { { 0 } };
    tl_program *program;
    if (tl_kernel_program(arena, kernel, lowering, &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s: %s", lowering, diag.text);
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
        fail_msg("%s: %s\n%s", lowering, diag.text, tl_program_text(arena, program));
    return out;
}

/* Within the lowering's own bound: its matrices cost digits of the largest value, not of each. */
static void assert_within(const float *got, const float *want, int64_t count, const char *what)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * largest))
            fail_msg("%s: element %lld is %g, should be %g", what, (long long)i, (double)got[i],
                     (double)want[i]);
}

static void same_as_direct(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const conv_case *c = &cases[i];
        tl_arena *arena = tl_arena_create(0);
        const char *text = tl_arena_format(
            arena,
            "graph g\ninput x: f32[1, %d, %d, %d]\nconst e: f32[%d, %d, 1, 1] = ...\n"
            "const w: f32[%d, %d, 3, 3] = ...\nconst b: f32[%d] = ...\nconst f: f32[4, %d, 1, 1] = "
            "...\n"
            "p: ?[...] = Conv(x, e)\nc: ?[...] = Conv(p, w, b) {pads = [%d, %d, %d, %d]}\n"
            "r: ?[...] = Relu(c)\nz: ?[...] = Conv(r, f)\noutput z\n",
            c->c, c->h, c->w, c->c, c->c, c->o, c->c, c->o, c->o, c->pad, c->pad, c->pad, c->pad);
        tl_graph *g = prepared_graph(arena, text, "x86-64");
        tl_graph_find(g, "w")->data = random_floats(arena, (int64_t)c->o * c->c * 9, 3 * i);
        tl_graph_find(g, "b")->data = random_floats(arena, c->o, 3 * i + 1);
        tl_partition partition;
        assert_int_equal(tl_partition_graph(arena, g, &partition, NULL), TL_OK);
        assert_int_equal(partition.count, 3);
        const tl_kernel *kernel = &partition.kernels[1];

        /* the input, with its halo of zeros, in memory order */
        const tl_value *x = NULL;
        for (int k = 0; k < kernel->input_count; k++)
            if (kernel->inputs[k]->data == NULL)
                x = kernel->inputs[k];
        float *memory = TL_NEW_ARRAY(arena, float, physical_elements(x));
        copy_layout(x, random_floats(arena, tl_shape_elements(&x->shape), 3 * i + 2), memory, true);

        float *want = run_lowering(arena, kernel, "direct", memory);
        static const char *const lowerings[] = { "winograd_f2", "winograd_f4" };
        for (int k = 0; k < 2; k++)
            assert_within(run_lowering(arena, kernel, lowerings[k], memory), want,
                          physical_elements(kernel->outputs[0]), lowerings[k]);
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_direct) };
    return cmocka_run_group_tests_name("winograd", tests, NULL, NULL);
}
