/* tests/codegen/test_tensor_calls.c: products that are one call, compiled for this machine and for smaller ones, give
 * what the interpreter gives; those of AVX512_BF16 and VNNI are at least compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "tests/codegen/compiled.h"

static const char *const kernels[] = {
    "kernel bytes(A: u8[5, 8], B: i8[2, 16, 4], inout C: i32[5, 16])\n"
    "for i in 0..5\n"
    "  for k in 0..2\n"
    "    block C\n"
    "      spatial i\n"
    "      reduce k\n"
    "      call dot_u8i8_i32x16(read C[i, 0..16], read A[i, k*4..k*4 + 4], "
    "read B[k, 0..16, 0..4], write C[i, 0..16])\n",

    "kernel halves(A: bf16[5, 6], B: bf16[3, 16, 2], inout C: f32[5, 16])\n"
    "for i in 0..5\n"
    "  for k in 0..3\n"
    "    block C\n"
    "      spatial i\n"
    "      reduce k\n"
    "      call dot_bf16_f32x16(read C[i, 0..16], read A[i, k*2..k*2 + 2], "
    "read B[k, 0..16, 0..2], write C[i, 0..16])\n",
};

static tl_program *parse(tl_arena *arena, const char *text)
{
    tl_program *program;
    tl_diag diag = { 0 };
    if (tl_program_parse(arena, text, "kernel", &program, &diag) != TL_OK ||
        tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static void fill(const tl_program *program, tl_arena *arena, void **data)
{
    tl_random random = tl_random_make(5);
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        int64_t count = tl_buffer_max_elements(b);
        data[p] = tl_arena_alloc(arena, (size_t)count * tl_dtype_size(b->dtype), 64);
        for (int64_t i = 0; i < count; i++) {
            tl_number value = { 0 };
            if (tl_dtype_is_float(b->dtype))
                value.f = tl_random_unit(&random) - 0.5;
            else
                value.i = tl_random_below(&random, 256) - (b->dtype == TL_U8 ? 0 : 128);
            tl_number_store(b->dtype, data[p], (size_t)i, value);
        }
    }
}

static void compiled_equals_interpreted(void **state)
{
    static const char *const isas[] = { NULL, "x86-64-v4", "x86-64-v3", "x86-64" };
    (void)state;
    for (int k = 0; k < 2; k++) {
        for (int t = 0; t < 4; t++) {
            if (isas[t] && !compiled_runs_here(isas[t]))
                continue;
            tl_arena *arena = tl_arena_create(0);
            tl_program *program = parse(arena, kernels[k]);
            void *want[3], *got[3];
            fill(program, arena, want);
            fill(program, arena, got);
            tl_argument arguments[3];
            for (int p = 0; p < 3; p++)
                arguments[p] = (tl_argument){ program->params[p], want[p] };
            tl_diag diag = { 0 };
            tl_target target;
            compiled c;
            if (tl_interpret(program, arguments, 3, NULL, NULL, &diag) != TL_OK ||
                compiled_target(isas[t], &target, &diag) != TL_OK ||
                compiled_make(arena, program, false, &target, &c, &diag) != TL_OK)
                fail_msg("%s", diag.text);
            compiled_run(&c, got, NULL, 1);
            const tl_buffer *b = program->params[2];
            assert_memory_equal(got[2], want[2], (size_t)tl_buffer_max_bytes(b));
            compiled_free(&c);
            tl_arena_destroy(arena);
        }
    }
}

/* The instructions are there when the target has them, whether this machine does or not. */
static void instructions_are_used(void **state)
{
    static const char *const words[] = { "vpdpbusd", "vdpbf16ps" };
    (void)state;
    for (int k = 0; k < 2; k++) {
        tl_arena *arena = tl_arena_create(0);
        tl_target target;
        tl_diag diag = { 0 };
        tl_text text = { 0 };
        tl_descriptor descriptor;
        if (tl_target_named("x86-64-v4", &target, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        target.has_vnni = target.has_bf16_dot = true;
        strcat(target.features, ",+avx512vnni,+avx512bf16");
        if (tl_codegen_compile(arena, parse(arena, kernels[k]), false, &target, TL_EMIT_ASSEMBLY,
                               &text, &descriptor, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_non_null(strstr(tl_text_get(&text), words[k]));
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_equals_interpreted),
        cmocka_unit_test(instructions_are_used),
    };
    return cmocka_run_group_tests_name("tensor calls", tests, NULL, NULL);
}
