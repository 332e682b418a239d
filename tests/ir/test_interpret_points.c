/* tests/ir/test_interpret_points.c: single elements by demand are those of the whole run. */
#include <string.h>
#include "tests/ir/interpreted.h"

static const char *const pointed =
    "kernel k(X: f32[6, 8], const W: f32[8, 5], out Y: f32[5, 6], out S: f32[6, 5])\n"
    "prepared Wt: f32[5, 8]\n"
    "prepare\n"
    "  for j in 0..5\n"
    "    for k in 0..8\n"
    "      block turn\n"
    "        spatial j, k\n"
    "        Wt[j, k] = W[k, j]\n"
    "body\n"
    "  alloc P: f32[6, 5]\n"
    "  for i in 0..6\n"
    "    for j in 0..5\n"
    "      for k in 0..8\n"
    "        block product\n"
    "          spatial i, j\n"
    "          reduce k\n"
    "          P[i, j] = sum(X[i, k]*Wt[j, k]) from 0.5\n"
    "  for i in 0..6\n"
    "    for j in 0..5\n"
    "      block relu\n"
    "        spatial i, j\n"
    "        Y[j, i] = max(P[i, j], 100.0)\n"
    "  for i in 0..6\n"
    "    for j in 0..5\n"
    "      block scan\n"
    "        ordered i\n"
    "        spatial j\n"
    "        S[i, j] = P[i, j] + select(1 <= i, S[i - 1, j], 0.0)\n";

static void points(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, pointed);
    assert_int_equal(run(&f, NULL, NULL, &diag), TL_OK);
    for (int p = 2; p < 4; p++) {
        const tl_buffer *output = f.program->params[p];
        int64_t wide = p == 2 ? 6 : 5, at[30][2];
        tl_number values[30];
        for (int i = 0; i < 30; i++) {
            at[i][0] = (29 - i) / wide;
            at[i][1] = (29 - i) % wide;
        }
        if (tl_interpret_points(f.program, f.arguments, 4, NULL, output, &at[0][0], 30, values,
                                &diag) != TL_OK)
            fail_msg("%s", diag.text);
        for (int i = 0; i < 30; i++)
            assert_true(values[i].f == tl_number_load(TL_F32, f.data[p], (size_t)(29 - i)).f);
    }
    int64_t outside[2] = { 5, 0 };
    tl_number value;
    assert_int_equal(tl_interpret_points(f.program, f.arguments, 4, NULL, f.program->params[2],
                                         outside, 1, &value, &diag),
                     TL_BAD_ARGUMENT);
    tl_arena_destroy(f.arena);
}

static void points_of_a_call(void **state)
{
    (void)state;
    fixture f;
    tl_diag diag = { "" };
    start(&f, "kernel k(X: f32[4, 6], out Y: f32[4, 6], out I: i64[4, 6])\n"
              "  alloc T: f32[4, 6]\n"
              "  for i in 0..4\n"
              "    for j in 0..6\n"
              "      block turn\n"
              "        spatial i, j\n"
              "        T[i, j] = X[i, j]*(f32(i) - 1.5)\n"
              "  for i in 0..4\n"
              "    block sort\n"
              "      spatial i\n"
              "      call sort_f32(read T[i, 0..6], write Y[i, 0..6], write I[i, 0..6], 0)\n");
    int64_t at[2][2] = { { 0, 0 }, { 3, 5 } };
    tl_number values[2];
    if (tl_interpret_points(f.program, f.arguments, 3, NULL, f.program->params[2], &at[0][0], 2,
                            values, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(values[0].i, 5);
    assert_int_equal(values[1].i, 5);
    tl_arena_destroy(f.arena);
}

/* The answer is refused where it would not be that of the whole run. */
static void scheduled_programs_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "kernel k(X: f32[8], out Y: f32[8])\n"
        "  for i in 0..8\n"
        "    alloc t: f32[1] stack\n"
        "    block copy\n"
        "      spatial i\n"
        "      t[0] = X[i]\n"
        "    block back\n"
        "      spatial i\n"
        "      Y[i] = t[0]\n",
        "kernel k(X: f32[7], out Y: f32[7])\n"
        "  for i0 in 0..2\n"
        "    for i1 in 0..4\n"
        "      block copy\n"
        "        spatial i in 0..7 = i0*4 + i1\n"
        "        where i0*4 + i1 < 7\n"
        "        Y[i] = X[i]\n",
        "kernel k(X: f32[8], out Y: f32[8])\n"
        "  for t in 0..8 threadIdx.x\n"
        "    block copy\n"
        "      spatial t\n"
        "      Y[t] = X[t]\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture f;
        tl_diag diag = { "" };
        int64_t at[1] = { 3 };
        tl_number value;
        start(&f, texts[i]);
        assert_int_equal(tl_interpret_points(f.program, f.arguments, 2, NULL, f.program->params[1],
                                             at, 1, &value, &diag),
                         TL_UNSUPPORTED);
        assert_non_null(strstr(diag.text, "only a naive program is evaluated by points"));
        tl_arena_destroy(f.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points),
        cmocka_unit_test(points_of_a_call),
        cmocka_unit_test(scheduled_programs_are_refused),
    };
    return cmocka_run_group_tests_name("interpreter by points", tests, NULL, NULL);
}
