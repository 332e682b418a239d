/* tests/frontend/test_lower_sum.c: sums in cascades: no accumulator of floats takes more than 256 terms that are no products,
 * all terms count once, and what comes out is as exact as the lengths promise. */
#include "tests/frontend/lower_helpers.h"
#include "ir/expr/index.h"

enum { MOST_TERMS = 256 };

typedef struct {
    const char *graph; /* y of x */
    int64_t extents[4];
    int rank;
    int reduced; /* a bit an axis */
    bool is_mean;
} sum_case;

static const sum_case cases[] = {
    /* along what lies side by side: few enough; vectors of partial sums; other divisors; a prime; one vector more than one
     * level takes; several levels */
    { "ReduceSum(x) {axes = [1]}", { 3, 256 }, 2, 2, false },
    { "ReduceSum(x) {axes = [1]}", { 3, 257 }, 2, 2, false },
    { "ReduceSum(x) {axes = [1]}", { 3, 768 }, 2, 2, false },
    { "ReduceMean(x) {axes = [1], keepdims = 0}", { 2, 1000 }, 2, 2, true },
    { "ReduceSum(x) {axes = [1]}", { 2, 769 }, 2, 2, false },
    { "ReduceSum(x) {axes = [1]}", { 2, 16384 }, 2, 2, false },
    { "ReduceSum(x) {axes = [1]}", { 1, 16400 }, 2, 2, false },
    { "ReduceMean(x) {axes = [1]}", { 1, 30522 }, 2, 2, true },
    { "ReduceMean(x) {axes = [1]}", { 1, 100003 }, 2, 2, true },
    /* along what lies apart */
    { "ReduceSum(x) {axes = [0]}", { 257, 5 }, 2, 1, false },
    { "ReduceMean(x) {axes = [0], keepdims = 0}", { 4096, 3 }, 2, 1, true },
    { "ReduceSum(x) {axes = [0]}", { 70001, 2 }, 2, 1, false },
    /* over several axes, some of which fit together */
    { "GlobalAveragePool(x)", { 1, 3, 16, 16 }, 4, 12, true },
    { "GlobalAveragePool(x)", { 1, 3, 17, 16 }, 4, 12, true },
    { "GlobalAveragePool(x)", { 2, 2, 112, 112 }, 4, 12, true },
    { "GlobalAveragePool(x)", { 1, 1, 320, 320 }, 4, 12, true },
    { "ReduceMean(x) {axes = [0, 2, 3]}", { 33, 2, 9, 40 }, 4, 13, true },
    { "ReduceMean(x) {axes = [0, 2], keepdims = 0}", { 1000, 2, 300 }, 3, 5, true },
    { "ReduceSum(x) {keepdims = 0}", { 2, 3, 5, 61 }, 4, 15, false },
    { "ReduceSum(x) {axes = [0, 3]}", { 65537, 1, 2, 2 }, 4, 9, false },
};

static int64_t elements(const sum_case *c)
{
    int64_t count = 1;
    for (int i = 0; i < c->rank; i++)
        count *= c->extents[i];
    return count;
}

/* Sums in f64 and sums of magnitudes, by the element of y. Returns how many there are. */
static int64_t reference(const sum_case *c, const float *x, double *sums, double *sizes)
{
    int64_t results = 1;
    for (int i = 0; i < c->rank; i++)
        results *= c->reduced >> i & 1 ? 1 : c->extents[i];
    for (int64_t e = 0; e < elements(c); e++) {
        int64_t rest = e, at = 0, stride = 1;
        for (int i = c->rank - 1; i >= 0; i--) {
            if (!(c->reduced >> i & 1)) {
                at += rest % c->extents[i] * stride;
                stride *= c->extents[i];
            }
            rest /= c->extents[i];
        }
        double share = c->is_mean ? (double)results / (double)elements(c) : 1;
        sums[at] += x[e] * share;
        sizes[at] += fabs((double)x[e]) * share;
    }
    return results;
}

static bool is_product(const tl_expr *e)
{
    return e->kind == TL_EXPR_MUL && tl_expr_has_load(e->args[0]) && tl_expr_has_load(e->args[1]) &&
           !tl_expr_equal(e->args[0], e->args[1]);
}

/* The most terms that one accumulator of floats takes, products apart: of a sum, or of what is added to in steps. */
static bool find_longest(const tl_stmt *stmt, void *context)
{
    int64_t *longest = context;
    for (int k = 0; stmt->kind == TL_STMT_BLOCK && k < stmt->u.block->store_count; k++) {
        const tl_block *block = stmt->u.block;
        const tl_store *store = &block->stores[k];
        int64_t terms = 1;
        if (!tl_dtype_is_float(store->value->dtype) || is_product(store->value) ||
            (block->combiner != TL_COMBINER_SUM && store->value->kind != TL_EXPR_ADD))
            continue;
        for (int i = 0; i < block->iter_count; i++)
            if (block->iters[i].kind != TL_ITER_SPATIAL)
                terms *= tl_expr_range(block->iters[i].extent).max;
        *longest = terms > *longest ? terms : *longest;
    }
    return true;
}

static void assert_short(tl_arena *arena, tl_graph *g, const char *what)
{
    tl_diag diag = { { 0 } };
    tl_partition partition;
    assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
    for (int k = 0; k < partition.count; k++) {
        const tl_kernel *kernel = &partition.kernels[k];
        const char *lowerings[] = { NULL, "online" };
        for (int l = 0; l < 2; l++) {
            tl_program *program;
            int64_t longest = 0;
            if (tl_kernel_program(arena, kernel, lowerings[l], &program, &diag) != TL_OK)
                continue;
            tl_stmt_visit(program->body, find_longest, &longest);
            if (longest > MOST_TERMS)
                fail_msg("%s: an accumulator takes %lld terms\n%s", what, (long long)longest,
                         tl_program_text(arena, program));
        }
    }
}

static void sums(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const sum_case *c = &cases[k];
        tl_arena *arena = *state;
        int64_t count = elements(c);
        const char *shape = "";
        for (int i = 0; i < c->rank; i++)
            shape = tl_arena_format(arena, "%s%s%lld", shape, i > 0 ? ", " : "",
                                    (long long)c->extents[i]);
        const char *text =
            tl_arena_format(arena, "graph g\ninput x: f32[%s]\ny: ?[...] = %s\noutput y\n", shape,
                            c->graph);
        float *x = random_floats(arena, count, 7 + k);
        double *want = TL_NEW_ARRAY(arena, double, count),
               *sizes = TL_NEW_ARRAY(arena, double, count);
        for (int64_t i = 0; i < count; i++)
            x[i] += 1; /* one accumulator would grow to lose digits */
        int64_t results = reference(c, x, want, sizes);
        tl_graph *g = prepared_graph(arena, text, "x86-64-v3");
        assert_short(arena, g, text);
        float *got = run_graph(arena, g, (void *[]){ x }, 0);
        for (int64_t i = 0; i < results; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-6 * sizes[i]))
                fail_msg("%s: element %lld is %.9g, should be %.9g", text, (long long)i,
                         (double)got[i], want[i]);
    }
}

/* The sums inside of other operators. */
static void norms_are_short(void **state)
{
    static const char *const graphs[] = {
        "input x: f32[2, 1000]\ny: ?[...] = Softmax(x) {axis = 1}\noutput y\n",
        "input x: f32[2, 30522]\ny: ?[...] = Softmax(x) {axis = 1}\noutput y\n",
        "input x: f32[300, 3]\ny: ?[...] = Softmax(x) {axis = 0}\noutput y\n",
        "input x: f32[2, 768]\ninput s: f32[768]\ny: ?[...] = LayerNormalization(x, s) {axis = "
        "1}\noutput y\n",
        "input x: f32[2, 30, 50]\ninput s: f32[30, 50]\ny: ?[...] = LayerNormalization(x, s) {axis "
        "= "
        "1}\noutput y\n",
        "input x: f32[1, 2, 30, 40]\ny: ?[...] = AveragePool(x) {kernel_shape = [29, 31]}\noutput "
        "y\n",
        "input q: f32[1, 4, 8]\ninput k: f32[1, 400, 8]\ninput v: f32[1, 400, 8]\ny: ?[...] = "
        "Attention(q, k, v) {heads = 2}\noutput y\n",
        "input q: f32[1, 4, 8]\ninput k: f32[1, 20000, 8]\ninput v: f32[1, 20000, 8]\ny: ?[...] = "
        "Attention(q, k, v) {heads = 2}\noutput y\n",
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        const char *text = tl_arena_format(*state, "graph g\n%s", graphs[i]);
        assert_short(*state, prepared_graph(*state, text, "x86-64-v3"), text);
    }
}

/* Integers are exact in any order: one accumulator takes all of them. */
static void integers_have_one_accumulator(void **state)
{
    tl_diag diag = { { 0 } };
    tl_partition partition;
    tl_program *program;
    tl_graph *g = prepared_graph(
        *state, "graph g\ninput x: i32[2, 1000]\ny: ?[...] = ReduceSum(x) {axes = [1]}\noutput y\n",
        "x86-64-v3");
    assert_int_equal(tl_partition_graph(*state, g, &partition, &diag), TL_OK);
    assert_int_equal(tl_kernel_program(*state, &partition.kernels[0], NULL, &program, &diag),
                     TL_OK);
    assert_null(strstr(tl_program_text(*state, program), "part"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(norms_are_short, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(integers_have_one_accumulator, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
