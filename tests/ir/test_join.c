/* tests/ir/test_join.c: programs of a kernel at some extents, joined to one for all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret/interpret.h"
#include "ir/program/join_programs.h"
#include "runtime/base/random.h"

enum { MOST_ELEMENTS = 4096 };

/* A kernel's text with $n, $m and their sums and products with constants, such as $(n+3) and $(n*m). */
static const char *fill(tl_arena *arena, const char *text, int64_t n, int64_t m)
{
    tl_text out = { 0 };
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            tl_text_add_bytes(&out, text, 1);
            continue;
        }
        int64_t value = text[1] == 'n' || text[2] == 'n' ? n : m;
        if (text[1] == '(') {
            int64_t other = text[4] == 'm' ? m : atoi(text + 4);
            value = text[3] == '*' ? value * other : text[3] == '/' ? value / other : value + other;
            text += strcspn(text, ")");
        } else {
            text++;
        }
        tl_text_format(&out, "%lld", (long long)value);
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return copy;
}

static const tl_program *parse(tl_arena *arena, const char *text, int64_t n, int64_t m)
{
    tl_program *program;
    tl_diag diag = { "" };
    if (tl_program_parse(arena, fill(arena, text, n, m), "test", &program, &diag) != TL_OK)
        fail_msg("%s\n%s", diag.text, fill(arena, text, n, m));
    return program;
}

static const int64_t points[] = { 3, 4, 12, 4, 3, 11, 12, 11, 6, 7, 9, 5 };
static const tl_samples samples = { 2, 6, points };

static tl_status join(tl_arena *arena, const char *text, const tl_program **out, tl_diag *diag)
{
    const tl_program *programs[6];
    const tl_var **dims = TL_NEW_ARRAY(arena, const tl_var *, 2);
    for (int i = 0; i < 6; i++)
        programs[i] = parse(arena, text, points[2 * i], points[2 * i + 1]);
    for (int d = 0; d < 2; d++) {
        tl_var *var = tl_var_make(arena, d == 0 ? "n" : "m", d == 0 ? 3 : 4, d == 0 ? 12 : 11);
        var->is_dim = true;
        dims[d] = var;
    }
    return tl_join_programs(arena, programs, &samples, dims, out, diag);
}

/* Runs a program on the same numbers; its last parameter is what it writes. */
static void interpret(const tl_program *p, const int64_t *dims, float *out)
{
    static float data[4][MOST_ELEMENTS];
    tl_argument arguments[4];
    tl_random random = tl_random_make(5);
    tl_diag diag = { "" };
    for (int i = 0; i < p->param_count; i++) {
        for (int k = 0; k < MOST_ELEMENTS; k++)
            data[i][k] = (float)tl_random_below(&random, 9);
        arguments[i] =
            (tl_argument){ p->params[i], i == p->param_count - 1 ? (void *)out : data[i] };
    }
    memset(out, 0, sizeof *out * MOST_ELEMENTS);
    if (tl_interpret(p, arguments, p->param_count, dims, NULL, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static const char *const kernels[] = {
    "kernel map(X: f32[$n, 4], out Y: f32[$(n*m), 4])\n"
    "  for i in 0..$n\n    for j in 0..$m\n      for k in 0..4\n        block map\n"
    "          spatial i, j, k\n          Y[i*$m + j, k] = X[i, k]*2.0 + f32(j)\n",
    "kernel mean(X: f32[$n, $m], out Y: f32[$n])\n"
    "  alloc T: f32[$n]\n"
    "  for i in 0..$n\n    for j in 0..$m\n      block sum\n        spatial i\n        reduce j\n"
    "        T[i] = sum(X[i, j])\n"
    "  for i in 0..$n\n    block scale\n      spatial i\n      Y[i] = T[i]/$m.0\n",
    "kernel concat(X: f32[2, $n], Z: f32[2, $m], out Y: f32[2, $(n+m)])\n"
    "  for i in 0..2\n    for j in 0..$(n+m)\n      block map\n        spatial i, j\n"
    "        Y[i, j] = select(j < $n, X[i, min(j, $(n+-1))], Z[i, max(j - $n, 0)])\n",
    "kernel matmul(A: f32[$n, 8], B: f32[8, $m], out Y: f32[$n, $m])\n"
    "  for i in 0..$n\n    for j in 0..$m\n      for k in 0..8\n        block gemm\n"
    "          spatial i, j\n          reduce k\n          Y[i, j] = sum(A[i, k]*B[k, j])\n",
};

static void joined_programs_compute_the_same(void **state)
{
    (void)state;
    static float is[MOST_ELEMENTS], want[MOST_ELEMENTS];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        tl_arena *arena = tl_arena_create(0);
        const tl_program *joined;
        tl_diag diag = { "" };
        if (join(arena, kernels[i], &joined, &diag) != TL_OK)
            fail_msg("%s\n%s", diag.text, kernels[i]);
        assert_int_equal(joined->dim_count, 2);
        assert_int_equal(tl_program_verify(joined, &diag), TL_OK);
        for (int64_t n = 3; n <= 12; n++)
            for (int64_t m = 4; m <= 11; m++) {
                interpret(joined, (int64_t[]){ n, m }, is);
                interpret(parse(arena, kernels[i], n, m), NULL, want);
                assert_memory_equal(is, want, sizeof is);
            }
        tl_arena_destroy(arena);
    }
}

static void the_text_has_the_dims(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_program *joined;
    assert_int_equal(join(arena, kernels[0], &joined, NULL), TL_OK);
    assert_string_equal(
        tl_program_text(arena, joined),
        "kernel map(dim n in 3..12, dim m in 4..11, X: f32[n, 4], out Y: f32[m*n, 4])\n"
        "  for i in 0..n\n    for j in 0..m\n      for k in 0..4\n        block map\n"
        "          spatial i, j, k\n          Y[j + i*m, k] = X[i, k]*2.0 + f32(j)\n");
    /* what does not depend on them stays as it is */
    const char *still = "kernel map(X: f32[4], out Y: f32[4])\n  for k in 0..4\n    block map\n"
                        "      spatial k\n      Y[k] = X[k]\n";
    assert_int_equal(join(arena, still, &joined, NULL), TL_OK);
    assert_int_equal(joined->dim_count, 0);
    assert_string_equal(tl_program_text(arena, joined), still);
    tl_arena_destroy(arena);
}

static void others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "kernel k(X: f32[$n], out Y: f32[$(n/2)])\n  for i in 0..$(n/2)\n    block b\n"
          "      spatial i\n      Y[i] = X[i]\n",
          "does not grow with them" },
        { "kernel k(X: f32[$(n*m)], out Y: f32[$(n*m)])\n  for i in 0..$(n*m)\n    block b\n"
          "      spatial i\n      Y[i] = X[i//$m*$m]\n",
          "divided by one" },
        { "kernel k(X: f32[$n], out Y: f32[$n])\n  for i in 0..$n\n    block b\n"
          "      spatial i\n      Y[i] = X[i]*0.$n\n",
          "a number made of them" },
        { "kernel k(X: f32[64], out Y: f32[$n])\n  for i in 0..$n\n    block b\n"
          "      spatial i\n      Y[i] = X[i//8]\n",
          "another form" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_arena *arena = tl_arena_create(0);
        const tl_program *joined;
        tl_diag diag = { "" };
        assert_int_equal(join(arena, cases[i].text, &joined, &diag), TL_UNSUPPORTED);
        if (strstr(diag.text, cases[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", diag.text, cases[i].says);
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_programs_compute_the_same),
        cmocka_unit_test(the_text_has_the_dims),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests_name("joining programs", tests, NULL, NULL);
}
