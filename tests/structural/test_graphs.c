/* tests/structural/test_graphs.c: a fixed number of random graphs, and those that were wrong once.
 *
 * TL_SEED and TL_GRAPHS choose other graphs (make test-long). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/frontend/onnx_text.h"
#include "tests/structural/draw.h"
#include "tests/structural/run.h"
#include "tests/support/patience.h"

enum { COUNT = 300, DRAWN = 4000, LEAST_OPERATORS = 170, MOST_ROWS = 1024 };

static const struct {
    const char *what, *text, *numbers;
} found[] = {
#define FOUND(what, text, numbers) { what, text, numbers },
#include "tests/structural/found.def"
#include "tests/structural/values.def"
#undef FOUND
};

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void check_first_numbers(tl_arena *arena, const tl_text *file, const char *numbers,
                                const char *what)
{
    tl_diag diag = { 0 };
    oracle o;
    assert_int_equal(oracle_make(arena, file, 3, &o, &diag), TL_OK);
    for (int64_t i = 0; *numbers != '\0'; i++) {
        char *end;
        double want = strtod(numbers, &end), is = tl_tensor_get(&o.outputs[0].value, i);
        if (!(fabs(is - want) <= 1e-6 * (1 + fabs(want))))
            fail_msg("%s\nelement %lld is %.9g instead of %.9g", what, (long long)i, is, want);
        numbers = end + strspn(end, " ");
    }
}

static void check_numbers(const tl_text *file, const char *numbers, const char *what)
{
    tl_arena *arena = tl_arena_create(0);
    assert_int_equal(TL_ARENA_GUARD(arena), 0);
    check_first_numbers(arena, file, numbers, what);
    tl_arena_destroy(arena);
}

static void what_was_found_stays_good(void **state)
{
    (void)state;
    graph_check check = { .extents = { 3, 5, 12 }, .ways = 100 };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        tl_text file = text_model(found[i].text);
        const char *where;
        tl_diag diag = { 0 };
        graph_verdict verdict = graph_check_model(&check, &file, &where, &diag);
        if (verdict != GRAPH_GOOD)
            fail_msg("%s\n%s: %s, %s: %s", found[i].what, found[i].text, graph_verdicts[verdict],
                     where, diag.text);
        check_numbers(&file, found[i].numbers, found[i].what);
        tl_text_free(&file);
    }
    for (int i = 0; i < 3; i++)
        tl_pool_destroy(check.pools[i]);
}

static void random_graphs_are_good(void **state)
{
    (void)state;
    const char *jobs = getenv("TL_JOBS");
    const graph_run run = { .first = number_of("TL_SEED", 1),
                            .count = (int64_t)number_of("TL_GRAPHS", COUNT),
                            .jobs = jobs != NULL ? atoi(jobs) : 1,
                            .limit_s = 60 * PATIENCE,
                            .program = "build/release/tests/structural/graphs",
                            .folder = "build/failures",
                            .ways = 2,
                            .most = 10 };
    graph_totals totals;
    int64_t failures = graph_run_all(&run, &totals);
    if (failures != 0)
        fail_msg("%lld of %lld graphs failed; they are below build/failures", (long long)failures,
                 (long long)totals.graphs);
}

/* A generator that stops drawing an operator would go unnoticed. */
static void every_family_is_drawn(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_int_equal(TL_ARENA_GUARD(arena), 0);
    bool seen[MOST_ROWS] = { false };
    for (uint64_t seed = 1; seed <= DRAWN; seed++) {
        draw_result_graph g;
        const char *name;
        int64_t count;
        draw_graph(arena, seed, NULL, &g);
        for (const char *at = g.text; (at = strstr(at, "node ")) != NULL; at += 5)
            for (int i = 0; (name = graph_operator(i, &count)) != NULL; i++)
                seen[i] |= strncmp(at + 5, name, strlen(name)) == 0 && at[5 + strlen(name)] == ' ';
    }
    int operators = 0, rows = 0;
    const char *name, *last = "";
    int64_t count;
    for (int i = 0; (name = graph_operator(i, &count)) != NULL; i++) {
        rows++;
        operators += seen[i] && strcmp(name, last) != 0;
        last = name;
    }
    assert_in_range(rows, 1, MOST_ROWS);
    if (operators < LEAST_OPERATORS)
        fail_msg("%d operators are drawn, %d were", operators, LEAST_OPERATORS);
    tl_arena_destroy(arena);
}

static void a_seed_has_one_graph(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_int_equal(TL_ARENA_GUARD(arena), 0);
    for (uint64_t seed = 1; seed < 50; seed++) {
        draw_result_graph a, b;
        draw_graph(arena, seed, NULL, &a);
        draw_graph(arena, seed, NULL, &b);
        assert_string_equal(a.text, b.text);
    }
    tl_arena_destroy(arena);
}

/* What compares has to notice: the least bit where nothing rounds, much where something does. */
static void the_oracle_notices(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    oracle o;
    assert_int_equal(TL_ARENA_GUARD(arena), 0);
    tl_text file = text_model("opset 13; input x__q-2_2 f32 8; node Add x__q-2_2,x__q-2_2 -> y;"
                              "node Exp x__q-2_2 -> z; output y; output z");
    assert_int_equal(oracle_make(arena, &file, 1, &o, &diag), TL_OK);
    assert_int_equal(o.output_count, 2);
    float numbers[8];
    tl_tensor t = o.outputs[0].value;
    t.data = numbers;
    memcpy(numbers, o.outputs[0].value.data, sizeof numbers);
    assert_int_equal(oracle_compare(&o, 0, &t, &diag), TL_OK);
    numbers[3] += 1e-6f;
    assert_int_equal(oracle_compare(&o, 0, &t, &diag), TL_WRONG_RESULT);
    memcpy(numbers, o.outputs[1].value.data, sizeof numbers);
    numbers[3] *= 1.000001f;
    assert_int_equal(oracle_compare(&o, 1, &t, &diag), TL_OK);
    numbers[3] *= 1.01f;
    assert_int_equal(oracle_compare(&o, 1, &t, &diag), TL_WRONG_RESULT);
    tl_text_free(&file);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_are_good), /* before this process has threads */
        cmocka_unit_test(the_oracle_notices),     cmocka_unit_test(a_seed_has_one_graph),
        cmocka_unit_test(every_family_is_drawn),  cmocka_unit_test(what_was_found_stays_good),
    };
    return cmocka_run_group_tests_name("random graphs", tests, NULL, NULL);
}
