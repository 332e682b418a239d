/* tests/codegen/test_bad_input.c: what the numbers in a kernel's buffers may be: smaller than any that counts, or
 * indices that point anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/float_mode.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/guarded_array.h"

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

/* Numbers below the smallest normal one count as zero in kernels, as they run, and in the interpreter: results are the
 * same (a zero's sign apart). B is large, C one half. */
static void smallest_numbers(void **state)
{
    (void)state;
    static const char *const values[] = {
        "A[i]*B[i]",
        "A[i] + A[i]",
        "A[i] + 0.0",
        "1.0/A[i]",
        "A[i]/A[i]",
        "select(A[i] > 0.0, B[i], C[i])",
        "select(A[i] < 0.0 and A[i] > A[i] - B[i], B[i], C[i])",
        "select(A[i] == 0.0, B[i], C[i])",
        "sqrt(A[i])",
        "ceil(A[i])",
        "floor(A[i])",
        "log(A[i])",
        "pow(A[i], C[i])",
        "fmod(C[i], A[i])",
        "exp(A[i])",
        "A[i]*C[i]",
        "min(A[i], 1.0)*B[i]",
        "max(A[i], 0.0)*B[i]",
        "abs(A[i])*B[i]",
        "select(A[i] > C[i], C[i], A[i])*B[i]",
    };
    static const char *const isas[] = { NULL, "x86-64", "x86-64-v3" };
    enum { VALUES = sizeof values / sizeof values[0], COUNT = 21 };
    for (int k = 0; k < VALUES * 3 * 2; k++) {
        const char *value = values[k / 6], *isa = isas[k % 3];
        bool f64 = k % 6 >= 3;
        double least = f64 ? 0x1p-1022 : 0x1p-126;
        const double numbers[] = { least / 2, -least / 2, least / 64,  -least / 64,
                                   least,     -least,     1.5 * least, least * 0.999,
                                   0,         1,          -1 };
        if (isa != NULL && !compiled_runs_here(isa))
            continue;
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { "" };
        tl_program *program;
        tl_target target;
        compiled c;
        double cells[4][COUNT], want[COUNT];
        void *buffers[4] = { cells[0], cells[1], cells[2], cells[3] };
        const char *text = tl_arena_format(
            arena,
            "kernel k(A: %s[21], B: %s[21], C: %s[21], out D: %s[21])\n"
            "  for i in 0..21 vectorized\n    block b\n      spatial i\n      D[i] = %s\n",
            f64 ? "f64" : "f32", f64 ? "f64" : "f32", f64 ? "f64" : "f32", f64 ? "f64" : "f32",
            value);
        must(tl_program_parse(arena, text, "k.tk", &program, &diag), &diag, text);
        must(compiled_target(isa, &target, &diag), &diag, "target");
        must(compiled_make(arena, program, false, &target, &c, &diag), &diag, text);
        tl_argument arguments[4];
        for (int b = 0; b < 4; b++)
            arguments[b] = (tl_argument){ program->params[b], buffers[b] };
        tl_dtype dtype = program->params[0]->dtype;
        for (size_t i = 0; i < COUNT; i++) {
            double a = numbers[i % (sizeof numbers / sizeof numbers[0])];
            tl_number_store(dtype, cells[0], i, (tl_number){ .f = a });
            tl_number_store(dtype, cells[1], i, (tl_number){ .f = f64 ? 1e300 : 1e30 });
            tl_number_store(dtype, cells[2], i, (tl_number){ .f = 0.5 });
        }
        must(tl_interpret(program, arguments, 4, NULL, NULL, &diag), &diag, text);
        for (size_t i = 0; i < COUNT; i++)
            want[i] = tl_number_load(dtype, cells[3], i).f;
        uint64_t mode = tl_float_mode_enter();
        compiled_run(&c, buffers, NULL, 1);
        tl_float_mode_leave(mode);
        for (size_t i = 0; i < COUNT; i++) {
            double got = tl_number_load(dtype, cells[3], i).f;
            bool near = fabs(got - want[i]) <= 1e-6 * fabs(want[i]);
            if (got != want[i] && !near && !(isnan(got) && isnan(want[i])))
                fail_msg("%s of %a (%s, %s) gives %a, interpreted %a", value,
                         tl_number_load(dtype, cells[0], i).f, f64 ? "f64" : "f32",
                         isa == NULL ? "this machine" : isa, got, want[i]);
        }
        compiled_free(&c);
        tl_arena_destroy(arena);
    }
}

/* Indices from outside may be anything: code reads its own buffers only (guard pages see to that). */
static void hostile_indices(void **state)
{
    (void)state;
    static const char text[] =
        "kernel k(T: f32[50, 8], I: i64[40], out B: f32[40, 8], out C: f32[40], out D: i64[40])\n"
        "  for i in 0..40\n    for j in 0..8 vectorized\n      block b\n        spatial i, j\n"
        "        B[i, j] = T[I[i], j]\n"
        "  for i in 0..40 vectorized\n    block c\n      spatial i\n      C[i] = T[I[i] + i, I[i] "
        "% 8]\n"
        "  for i in 0..40 vectorized\n    block d\n      spatial i\n"
        "      D[i] = I[i]/(I[i] - I[i]) + I[i]//(I[i]*0) + (0 - I[i]) % (I[i] - I[i])\n";
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    compiled c;
    array arrays[5];
    void *buffers[5];
    static const int64_t bad[] = { INT64_MIN, INT64_MAX, -1, 50, 49, 0, -51, 1 << 30 };
    must(tl_program_parse(arena, text, "hostile", &program, &diag), &diag, "parse");
    must(compiled_target(NULL, &target, &diag), &diag, "target");
    must(compiled_make(arena, program, false, &target, &c, &diag), &diag, "compile");
    for (int i = 0; i < 5; i++) {
        arrays[i] = (array){ .dtype = program->params[i]->dtype,
                             .count = tl_buffer_max_elements(program->params[i]) };
        place(&arrays[i], true);
        memset(arrays[i].data, 0, (size_t)arrays[i].count * tl_dtype_size(arrays[i].dtype));
        buffers[i] = arrays[i].data;
    }
    for (int i = 0; i < 40; i++)
        ((int64_t *)buffers[1])[i] = bad[i % 8];
    compiled_run(&c, buffers, NULL, 1);
    for (int i = 0; i < 5; i++)
        unplace(&arrays[i]);
    compiled_free(&c);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_numbers),
        cmocka_unit_test(hostile_indices),
    };
    return cmocka_run_group_tests_name("codegen, bad input", tests, NULL, NULL);
}
