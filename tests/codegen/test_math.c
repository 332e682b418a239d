/* tests/codegen/test_math.c: the scalar functions against libm in a wider type, over their range, in units in the last
 * place. The bounds here are the ones that codegen/math_*.c state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include "runtime/base/random.h"
#include "tests/codegen/compiled.h"

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double rsqrt(long double x)
{
    return 1 / sqrtl(x);
}

static const struct row {
    const char *name;
    long double (*exact)(long double);
    double low, high; /* arguments: evenly spread, and spread by magnitude */
    double ulp32, ulp64;
} rows[] = {
    { "exp", expl, -110, 95, 1.5, 1.5 },       { "log", logl, 0, 1e30, 1.5, 1.5 },
    { "tanh", tanhl, -12, 12, 2, 2 },          { "erf", erfl, -7, 7, 1.5, 1.5 },
    { "sigmoid", sigmoid, -95, 95, 3, 3 },     { "sqrt", sqrtl, 0, 1e30, 0.5, 0.5 },
    { "rsqrt", rsqrt, 1e-30, 1e30, 1.5, 1.5 },
};

#define COUNT 40000

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

/* Arguments: linear, logarithmic down to the smallest, and the special ones. */
static double argument(const struct row *r, tl_random *random, int i, bool f64)
{
    static const double special[] = { 0,  -0.0, INFINITY, -INFINITY, NAN,    1,
                                      -1, 0.5,  -0.5,     1e-40,     -1e-40, 1e-310 };
    if (i < 12)
        return special[i];
    if (i % 2 == 0)
        return r->low + (r->high - r->low) * tl_random_unit(random);
    double x = exp2(-tl_random_unit(random) * (f64 ? 1000 : 120)) * r->high;
    return r->low < 0 && i % 4 == 1 ? -x : x;
}

static double error_in_ulp(double got, long double want, bool f64)
{
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    double largest = f64 ? DBL_MAX : FLT_MAX;
    if (fabsl(want) > largest)
        return isinf(got) || fabs(got) >= largest ? 0 : INFINITY;
    if (isnan(got) || isinf(got))
        return INFINITY;
    int exponent;
    frexpl(want, &exponent);
    int least = f64 ? DBL_MIN_EXP : FLT_MIN_EXP, digits = f64 ? DBL_MANT_DIG : FLT_MANT_DIG;
    long double ulp = ldexpl(1, (exponent < least ? least : exponent) - digits);
    return (double)(fabsl((long double)got - want) / ulp);
}

static void measure(const struct row *r, const char *isa, bool f64)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    compiled c;
    const char *type = f64 ? "f64" : "f32";
    const char *text =
        tl_arena_format(arena,
                        "kernel k(A: %s[%d], out B: %s[%d])\n  for i in 0..%d\n"
                        "    for j in 0..16 vectorized\n      block b\n"
                        "        spatial i in 0..%d = i*16 + j\n        B[i] = %s(A[i])\n",
                        type, COUNT, type, COUNT, COUNT / 16, COUNT, r->name);
    must(tl_program_parse(arena, text, r->name, &program, &diag), &diag, r->name);
    must(compiled_target(isa, &target, &diag), &diag, "target");
    must(compiled_make(arena, program, false, &target, &c, &diag), &diag, r->name);
    size_t size = f64 ? 8 : 4;
    void *buffers[2] = { malloc(COUNT * size), malloc(COUNT * size) };
    tl_random random = tl_random_make(3);
    for (int i = 0; i < COUNT; i++) {
        double x = argument(r, &random, i, f64);
        tl_number_store(f64 ? TL_F64 : TL_F32, buffers[0], (size_t)i, (tl_number){ .f = x });
    }
    compiled_run(&c, buffers, NULL, 1);
    double worst = 0, bound = f64 ? r->ulp64 : r->ulp32;
    for (int i = 0; i < COUNT; i++) {
        double x = tl_number_load(f64 ? TL_F64 : TL_F32, buffers[0], (size_t)i).f;
        double got = tl_number_load(f64 ? TL_F64 : TL_F32, buffers[1], (size_t)i).f;
        double error = error_in_ulp(got, r->exact((long double)x), f64);
        worst = error > worst ? error : worst;
        if (error > bound)
            fail_msg("%s of %s on %s: %s(%.17g) is %.17g, not %.17Lg: %.2f ulp, the bound is %.2f",
                     r->name, type, isa == NULL ? "this machine" : isa, r->name, x, got,
                     r->exact((long double)x), error, bound);
    }
    print_message("%s of %s on %s: %.2f ulp\n", r->name, type, isa == NULL ? "this machine" : isa,
                  worst);
    compiled_free(&c);
    free(buffers[0]);
    free(buffers[1]);
    tl_arena_destroy(arena);
}

static void accuracy(void **state)
{
    const struct row *r = *state;
    static const char *const isas[] = { NULL, "x86-64" };
    for (size_t i = 0; i < 2; i++)
        if (isas[i] == NULL || compiled_runs_here(isas[i])) {
            measure(r, isas[i], false);
            measure(r, isas[i], true);
        }
}

int main(void)
{
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct CMUnitTest tests[ROWS];
    for (int i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){ rows[i].name, accuracy, NULL, NULL, (void *)&rows[i] };
    return _cmocka_run_group_tests("codegen math", tests, ROWS, NULL, NULL);
}
