/* tests/codegen/test_math.c: the scalar functions against libm in a wider type (f32: double, f64: long double), in units
 * in the last place. The bounds are those of codegen/math/math_functions.def. Every function runs in a vectorized loop whose
 * extent leaves tails of all widths, and in a scalar one, on this machine's ISA and on older ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include "runtime/base/random.h"
#include "tests/codegen/compiled.h"

enum { WIDTH = 21, COUNT_F32 = WIDTH << 14, COUNT_F64 = WIDTH << 12, SEED = 3 };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}
static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static long double rsqrtl(long double x)
{
    return 1 / sqrtl(x);
}

static const struct row {
    tl_function function;
    double (*exact)(double);
    long double (*exactl)(long double);
    double low, high; /* where many of the arguments are */
} rows[] = {
    { TL_FUNCTION_EXP, exp, expl, -110, 95 },
    { TL_FUNCTION_EXPM1, expm1, expm1l, -25, 95 },
    { TL_FUNCTION_SIGMOID, sigmoid, sigmoidl, -95, 95 },
    { TL_FUNCTION_LOG, log, logl, 0, 10 },
    { TL_FUNCTION_LOG1P, log1p, log1pl, -1, 10 },
    { TL_FUNCTION_TANH, tanh, tanhl, -12, 12 },
    { TL_FUNCTION_ERF, erf, erfl, -7, 7 },
    { TL_FUNCTION_SIN, sin, sinl, -50, 50 },
    { TL_FUNCTION_COS, cos, cosl, -50, 50 },
    { TL_FUNCTION_TAN, tan, tanl, -50, 50 },
    { TL_FUNCTION_ASIN, asin, asinl, -1, 1 },
    { TL_FUNCTION_ACOS, acos, acosl, -1, 1 },
    { TL_FUNCTION_ATAN, atan, atanl, -5, 5 },
    { TL_FUNCTION_SINH, sinh, sinhl, -95, 95 },
    { TL_FUNCTION_COSH, cosh, coshl, -95, 95 },
    { TL_FUNCTION_ASINH, asinh, asinhl, -5, 5 },
    { TL_FUNCTION_ACOSH, acosh, acoshl, 1, 5 },
    { TL_FUNCTION_ATANH, atanh, atanhl, -1, 1 },
    { TL_FUNCTION_SQRT, sqrt, sqrtl, 0, 10 },
    { TL_FUNCTION_RSQRT, rsqrt, rsqrtl, 0, 10 },
    { TL_FUNCTION_FLOOR, floor, floorl, -10, 10 },
    { TL_FUNCTION_CEIL, ceil, ceill, -10, 10 },
    { TL_FUNCTION_ROUND, rint, rintl, -10, 10 },
    { TL_FUNCTION_TRUNC, trunc, truncl, -10, 10 },
    { TL_FUNCTION_ABS, fabs, fabsl, -10, 10 },
    { TL_FUNCTION_POW, NULL, NULL, 0, 10 },
    { TL_FUNCTION_FMOD, NULL, NULL, -10, 10 },
};

/* What is not listed is one correctly rounded operation. The reference's own rounding is allowed for. */
static double bound(tl_function f, bool f64)
{
    static const double bounds[TL_FUNCTION_COUNT][2] = {
#define MATH(file, function, f32_ulp, f64_ulp) [TL_FUNCTION_##function] = { f32_ulp, f64_ulp },
#include "codegen/math/math_functions.def"
#undef MATH
    };
    double stated = bounds[f][f64];
    return (stated > 0 || f == TL_FUNCTION_FMOD ? stated : 0.5) + 0.001;
}

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

/* ---- arguments ---- */

/* clang-format off */
static const double specials[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 1e-310,
    5e-324, 0x1p-149, FLT_MIN, FLT_MAX, DBL_MIN, DBL_MAX, -FLT_MAX, -DBL_MAX, 88.7228, -103.97208,
    709.78271, -745.13321, 0.625, 0.414213, 2.414213, 0x1p20, 1048575.5, 1048576.5, 16777215,
    33554433, 1.5, -1.5, 2.5, -2.5, 8388607.5, -8388607.5, 4503599627370495.5, 1e22, 0.99999994,
    1.0000001, -0.99999994, 1e9,
};
/* clang-format on */
enum { SPECIALS = sizeof specials / sizeof specials[0] };

/* Any bits: all exponents, infinities and NaNs. */
static double any_bits(tl_random *random, bool f64)
{
    uint64_t bits = tl_random_next(random);
    if (f64) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    uint32_t half = (uint32_t)(bits >> 32);
    float x;
    memcpy(&x, &half, sizeof x);
    return x;
}

static double argument(const struct row *r, tl_random *random, int i, bool f64)
{
    if (i < SPECIALS)
        return specials[i];
    double u = tl_random_unit(random), sign = i % 32 < 16 ? 1 : -1;
    switch (i % 16) {
    case 0: /* next to a multiple of pi/2 */
        return sign * floor(exp2(u * 52)) * 1.57079632679489661923;
    case 1: /* next to 1 */
        return sign * (1 + (i % 64 < 32 ? 1 : -1) * exp2(-u * (f64 ? 53 : 24)));
    case 2: /* small */
        return sign * exp2(-u * (f64 ? 80 : 40));
    case 3: /* where f64 still has results */
        return f64 ? (u - 0.5) * 1500 : (u - 0.5) * 220;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        return any_bits(random, f64);
    default:
        return r->low + (r->high - r->low) * u;
    }
}

/* The second operand: for a pow, often one that gives a result of every exponent. */
static double second(const struct row *r, tl_random *random, int i, bool f64, double x)
{
    double u = tl_random_unit(random);
    if (i < SPECIALS * SPECIALS)
        return specials[i / SPECIALS];
    switch (i % 7) {
    case 0:
        return any_bits(random, f64);
    case 1:
        return floor((u - 0.5) * 40);
    case 2:
        return (u - 0.5) * 20;
    case 3:
        return exp2(u * 120 - 60);
    default:
        return r->function == TL_FUNCTION_POW ? (u - 0.5) * (f64 ? 1500 : 220) / log(fabs(x))
                                              : x * exp2(-u * 60);
    }
}

/* ---- measuring ---- */

/* What a result should be, and how many units in the last place make one. */
typedef struct {
    long double value, units;
} goal;

/* Beyond the largest number everything is the power of two that follows it. */
static long double clip(long double x, bool f64)
{
    long double limit = f64 ? 0x1p1024L : 0x1p128L;
    return x > limit ? limit : x < -limit ? -limit : x;
}

static goal make_goal(long double value, bool f64)
{
    int top = f64 ? DBL_MAX_EXP : FLT_MAX_EXP, least = f64 ? DBL_MIN_EXP : FLT_MIN_EXP, exponent;
    value = clip(value, f64);
    frexpl(value, &exponent);
    if (isnan(value) || value == 0 || exponent < least)
        exponent = least;
    if (exponent > top)
        exponent = top;
    return (goal){ value, ldexpl(1, (f64 ? DBL_MANT_DIG : FLT_MANT_DIG) - exponent) };
}

static double error_in_ulp(double got, const goal *want, bool f64)
{
    if (isnan(want->value) || isnan(got))
        return isnan(want->value) && isnan(got) ? 0 : INFINITY;
    if (got == 0 && want->value == 0)
        return !signbit(got) == !signbit(want->value) ? 0 : INFINITY;
    return (double)(fabsl(clip(got, f64) - want->value) * want->units);
}

typedef struct {
    const struct row *row;
    bool f64;
    int count, scalar_count; /* the scalar loop takes the first ones */
    void *buffers[4];        /* operands, results in vectors, results of the scalar loop */
    goal *want;
} work;

static double get(const work *w, int buffer, int i)
{
    return w->f64 ? ((double *)w->buffers[buffer])[i] : (double)((float *)w->buffers[buffer])[i];
}

static void put(const work *w, int buffer, int i, double x)
{
    if (w->f64)
        ((double *)w->buffers[buffer])[i] = x;
    else
        ((float *)w->buffers[buffer])[i] = (float)x;
}

static long double reference(const struct row *r, bool f64, double x, double y)
{
    if (r->function == TL_FUNCTION_POW)
        return f64 ? powl(x, y) : (long double)pow(x, y);
    if (r->function == TL_FUNCTION_FMOD)
        return f64 ? fmodl(x, y) : (long double)fmod(x, y);
    return f64 ? r->exactl(x) : (long double)r->exact(x);
}

static work prepare(const struct row *r, bool f64)
{
    work w = { .row = r, .f64 = f64, .count = f64 ? COUNT_F64 : COUNT_F32 };
    w.scalar_count = w.count / 8;
    for (int i = 0; i < 4; i++)
        w.buffers[i] = calloc((size_t)w.count, f64 ? 8 : 4);
    w.want = malloc((size_t)w.count * sizeof *w.want);
    tl_random random = tl_random_make(SEED);
    bool is_binary = tl_function_infos[r->function].arity == 2;
    for (int i = 0; i < w.count; i++) {
        bool crossed = is_binary && i < SPECIALS * SPECIALS;
        put(&w, 0, i, argument(r, &random, crossed ? i % SPECIALS : i, f64));
        if (is_binary)
            put(&w, 1, i, second(r, &random, i, f64, get(&w, 0, i)));
        w.want[i] = make_goal(reference(r, f64, get(&w, 0, i), get(&w, 1, i)), f64);
    }
    return w;
}

static double compare(const work *w, int buffer, int count, const char *isa)
{
    double worst = 0, most = bound(w->row->function, w->f64);
    for (int i = 0; i < count; i++) {
        double got = get(w, buffer, i), error = error_in_ulp(got, &w->want[i], w->f64);
        worst = error > worst ? error : worst;
        if (error > most)
            fail_msg("%s of %s on %s, %s loop: argument %d of seed %d, (%a, %a), gives %a, not "
                     "%La: %.3f ulp, the bound is %.3f",
                     tl_function_infos[w->row->function].text, w->f64 ? "f64" : "f32",
                     isa == NULL ? "this machine" : isa, buffer == 2 ? "vectorized" : "scalar", i,
                     SEED, get(w, 0, i), get(w, 1, i), got, w->want[i].value, error, most);
    }
    return worst;
}

static double measure(const work *w, const char *isa)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_program *program;
    tl_target target;
    compiled c;
    const tl_function_info *info = &tl_function_infos[w->row->function];
    const char *type = w->f64 ? "f64" : "f32", *more = info->arity == 2 ? ", B[i]" : "";
    const char *text =
        tl_arena_format(arena,
                        "kernel k(A: %s[%d], B: %s[%d], out C: %s[%d], out D: %s[%d])\n"
                        "  for i in 0..%d\n    for j in 0..%d vectorized\n      block b\n"
                        "        spatial i in 0..%d = i*%d + j\n        C[i] = %s(A[i]%s)\n"
                        "  for k in 0..%d\n    block d\n      spatial i in 0..%d = k\n"
                        "      D[i] = %s(A[i]%s)\n",
                        type, w->count, type, w->count, type, w->count, type, w->count,
                        w->count / WIDTH, WIDTH, w->count, WIDTH, info->text, more, w->scalar_count,
                        w->scalar_count, info->text, more);
    must(tl_program_parse(arena, text, info->text, &program, &diag), &diag, info->text);
    must(compiled_target(isa, &target, &diag), &diag, "target");
    must(compiled_make(arena, program, false, &target, &c, &diag), &diag, info->text);
    compiled_run(&c, w->buffers, NULL, 1);
    double vector = compare(w, 2, w->count, isa), scalar = compare(w, 3, w->scalar_count, isa);
    compiled_free(&c);
    tl_arena_destroy(arena);
    return vector > scalar ? vector : scalar;
}

static void accuracy(void **state)
{
    const struct row *r = *state;
    static const char *const isas[] = { NULL, "x86-64", "x86-64-v3" };
    double worst[2] = { 0, 0 };
    for (int f64 = 0; f64 < 2; f64++) {
        work w = prepare(r, f64 == 1);
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
            if (isas[i] == NULL || compiled_runs_here(isas[i])) {
                double error = measure(&w, isas[i]);
                worst[f64] = error > worst[f64] ? error : worst[f64];
            }
        for (int i = 0; i < 4; i++)
            free(w.buffers[i]);
        free(w.want);
    }
    print_message("%-8s f32 %.3f ulp, f64 %.3f ulp\n", tl_function_infos[r->function].text,
                  worst[0], worst[1]);
}

int main(void)
{
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct CMUnitTest tests[ROWS];
    for (int i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){ tl_function_infos[rows[i].function].text, accuracy, NULL,
                                        NULL, (void *)&rows[i] };
    return _cmocka_run_group_tests("codegen math", tests, ROWS, NULL, NULL);
}
