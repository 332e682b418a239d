/* tests/frontend/test_long_chains.c: chains of nodes that would make expressions of exponential size, or of any depth: what is
 * written is bounded, reads back as a text, and computes the same. */
#include "tests/frontend/lower_helpers.h"
#include "runtime/base/text.h"

enum {
    LARGEST = 1200,
    DEEPEST = 100
}; /* nodes and levels of an expression of a kernel as it was written */

/* `%1$d` is the number of the link, `%2$d` of the one before. */
typedef struct {
    const char *shape, *link;
    bool exact; /* the result is one of copies: the same bits however it is cut */
} chain;

static const chain chains[] = {
    { "[4]", "v%1$d: ?[...] = Add(v%2$d, v%2$d)", true },
    { "[4]", "v%1$d: ?[...] = Relu(v%2$d)", true },
    { "[4]", "s%1$d: ?[...] = Sigmoid(v%2$d)\nv%1$d: ?[...] = Mul(v%2$d, s%1$d)", false },
    { "[4]",
      "s%1$d: ?[...] = Tanh(v%2$d)\nt%1$d: ?[...] = Add(v%2$d, s%1$d)\n"
      "v%1$d: ?[...] = Mul(t%1$d, s%1$d)",
      false },
    { "[4]", "s%1$d: ?[...] = Greater(v%2$d, v0)\nv%1$d: ?[...] = Where(s%1$d, v%2$d, v0)", true },
    { "[4]", "v%1$d: ?[...] = Gelu(v%2$d)", false },
    { "[6, 35]",
      "t%1$d: ?[...] = Transpose(v%2$d) {perm = [1, 0]}\n"
      "v%1$d: ?[...] = Reshape(t%1$d) {shape = [14, 15]}\n"
      "u%1$d: ?[...] = Transpose(v%1$d) {perm = [1, 0]}\n"
      "w%1$d: ?[...] = Reshape(u%1$d) {shape = [6, 35]}",
      true },
    { "[2, 3, 5, 7]",
      "t%1$d: ?[...] = Transpose(v%2$d) {perm = [2, 0, 3, 1]}\n"
      "v%1$d: ?[...] = Reshape(t%1$d) {shape = [2, 3, 5, 7]}",
      true },
    { "[4]", "v%1$d: ?[...] = Concat(v%2$d, v0) {axis = 0}", true },
};

/* The graph of `count` links; `open`: each is a graph output, so that each is a kernel by itself. */
static tl_graph *make_chain(tl_arena *arena, const chain *c, int count, bool open)
{
    tl_text text = { 0 };
    tl_text_format(&text, "graph g\ninput v0: f32%s\n", c->shape);
    for (int i = 1; i <= count; i++) {
        const char *link = c->link;
        for (const char *at; (at = strstr(link, "%")) != NULL; link = at + 4)
            tl_text_format(&text, "%.*s%d", (int)(at - link), link, at[1] == '1' ? i : i - 1);
        tl_text_format(&text, "%s\n", link);
    }
    for (int i = open ? 1 : count; i <= count; i++)
        tl_text_format(&text, "output v%d\n", i);
    tl_graph *g = prepared_graph(arena, tl_text_get(&text), "x86-64");
    tl_text_free(&text);
    return g;
}

static const tl_expr *check_size(tl_arena *arena, const tl_expr *e, void *context)
{
    (void)arena;
    if (e->size > LARGEST || e->depth > DEEPEST)
        fail_msg("%s: an expression of %u nodes on %u levels", (const char *)context, e->size,
                 e->depth);
    return e;
}

typedef struct {
    tl_arena *arena;
    const char *name;
} sized;

static bool check_stmt(const tl_stmt *stmt, void *context)
{
    const sized *s = context;
    tl_stmt_map_exprs(s->arena, stmt, check_size, (void *)(uintptr_t)s->name);
    return true;
}

static void kernels_are_bounded(void **state)
{
    enum { LINKS = 300 };
    (void)state;
    for (size_t k = 0; k < sizeof chains / sizeof chains[0]; k++) {
        tl_arena *arena = tl_arena_create(0);
        tl_graph *g = make_chain(arena, &chains[k], LINKS, false);
        tl_partition partition;
        tl_diag diag = { { 0 } };
        assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
        for (int i = 0; i < partition.count; i++) {
            tl_program *program, *again;
            assert_int_equal(tl_kernel_program(arena, &partition.kernels[i], NULL, &program, &diag),
                             TL_OK);
            sized s = { arena, chains[k].link };
            tl_stmt_visit(program->body, check_stmt, &s);
            const char *text = tl_program_text(arena, program);
            if (tl_program_parse(arena, text, "printed", &again, &diag) != TL_OK)
                fail_msg("%s\n%s", diag.text, text);
            assert_string_equal(tl_program_text(arena, again), text);
        }
        tl_arena_destroy(arena);
    }
}

static void kernels_compute_the_same(void **state)
{
    enum { LINKS = 40 };
    (void)state;
    for (size_t k = 0; k < sizeof chains / sizeof chains[0]; k++) {
        tl_arena *arena = tl_arena_create(0);
        tl_graph *whole = make_chain(arena, &chains[k], LINKS, false);
        tl_graph *open = make_chain(arena, &chains[k], LINKS, true);
        void *inputs[1] = { random_floats(arena, tl_shape_elements(&whole->inputs[0]->shape), k) };
        const float *got = run_graph(arena, whole, inputs, 0);
        const float *want = run_graph(arena, open, inputs, LINKS - 1);
        int64_t count = tl_shape_elements(&whole->outputs[0]->shape);
        if (chains[k].exact)
            assert_memory_equal(got, want, (size_t)count * sizeof *got);
        else
            assert_close(got, want, count, chains[k].link);
        tl_arena_destroy(arena);
    }
}

/* A tree of Concats, each of 32 parts at most, in the order of the parts. */
static void wide_concats_are_trees(void **state)
{
    static const int widths[] = { 1, 32, 33, 64, 65, 1000, 1025, 3000 };
    (void)state;
    for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
        tl_arena *arena = tl_arena_create(0);
        tl_text text = { 0 };
        tl_text_add(&text, "graph g\ninput x: f32[2, 3]\ninput y: f32[2, 1]\nz: ?[...] = Concat(");
        for (int i = 0; i < widths[k]; i++)
            tl_text_format(&text, "%s%s", i > 0 ? ", " : "", i % 3 == 0 ? "y" : "x");
        tl_text_add(&text, ") {axis = 1}\noutput z\n");
        tl_graph *g = parse_graph(arena, tl_text_get(&text));
        tl_diag diag = { { 0 } };
        tl_target target;
        assert_int_equal(tl_infer_shapes(g, &diag), TL_OK);
        assert_int_equal(tl_graph_run_pass(g, "narrow_concats", NULL, &diag), TL_OK);
        assert_int_equal(tl_graph_verify(g, &diag), TL_OK);
        assert_true(g->node_count <= 2 + widths[k] / 31);
        for (int i = 0; i < g->node_count; i++)
            assert_true(g->nodes[i]->input_count <= 32);
        assert_int_equal(tl_target_named("x86-64", &target, &diag), TL_OK);
        assert_int_equal(tl_assign_layouts(g, &target, &diag), TL_OK);
        float *x = random_floats(arena, 6, 1), *y = random_floats(arena, 2, 2);
        const float *z = run_graph(arena, g, (void *[]){ x, y }, 0);
        for (int row = 0; row < 2; row++)
            for (int i = 0; i < widths[k]; i++) {
                assert_memory_equal(z, i % 3 == 0 ? y + row : x + 3 * row,
                                    sizeof *z * (i % 3 == 0 ? 1 : 3));
                z += i % 3 == 0 ? 1 : 3;
            }
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

/* From the text of a graph to kernels, at lengths at which what looks at every pair of nodes would not come back. */
static void long_graphs_are_cut(void **state)
{
    enum { LINKS = 100000 };
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_graph *g = tl_graph_create(arena, "g");
    tl_shape shape = tl_shape_of(1, (int64_t[]){ 4 });
    tl_value *x = tl_graph_value(g, "x", TL_F32, &shape), *v = x;
    tl_graph_add_input(g, x);
    for (int i = 0; i < LINKS; i++) { /* x is read by all of them */
        tl_value *inputs[2] = { v, x }, *sum = tl_graph_value(g, "v", TL_F32, &shape);
        tl_graph_node(g, TL_OP_ADD, "add", 2, inputs, 1, &sum);
        v = sum;
    }
    tl_graph_add_output(g, v);
    tl_diag diag = { { 0 } };
    tl_target target;
    tl_partition partition;
    assert_int_equal(tl_graph_prepare(g, TL_NUMERICS_RELAXED, &diag), TL_OK);
    assert_int_equal(tl_target_named("x86-64", &target, &diag), TL_OK);
    assert_int_equal(tl_assign_layouts(g, &target, &diag), TL_OK);
    assert_int_equal(tl_partition_graph(arena, g, &partition, &diag), TL_OK);
    assert_int_equal(g->node_count, LINKS);
    assert_in_range(partition.count, LINKS / 64, LINKS / 60);
    int nodes = 0;
    for (int i = 0; i < partition.count; i++)
        nodes += partition.kernels[i].node_count;
    assert_int_equal(nodes, LINKS);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_bounded),
        cmocka_unit_test(kernels_compute_the_same),
        cmocka_unit_test(wide_concats_are_trees),
        cmocka_unit_test(long_graphs_are_cut),
    };
    return cmocka_run_group_tests_name("long chains", tests, NULL, NULL);
}
