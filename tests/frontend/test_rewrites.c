/* tests/frontend/test_rewrites.c: random blocks of transformers, of which some rows or columns are read: what
 * tl_graph_prepare makes of them gives the numbers of the graph as it was. TL_SEED starts elsewhere, TL_SHAPES runs more. */
#include <stdlib.h>
#include "tests/frontend/lower_helpers.h"

enum { WIDTH = 4, WEIGHTS = 4, MOST_STEPS = 8 };

typedef struct {
    tl_arena *arena;
    tl_random random;
    tl_text text;
    int batch, rows;
    int count; /* values so far: v0.., each [batch, rows, WIDTH] */
    int fresh; /* other names */
} writer;

static int below(writer *w, int n)
{
    return (int)tl_random_below(&w->random, n);
}

static int any_value(writer *w)
{
    return below(w, w->count);
}

static void write_weights(writer *w)
{
    for (int i = 0; i < WEIGHTS; i++) {
        for (int vector = 0; vector < 2; vector++) {
            int count = vector ? WIDTH : WIDTH * WIDTH;
            tl_text_format(&w->text,
                           vector ? "const b%d: f32[%d] = [" : "const w%d: f32[%d, 4] = [", i,
                           WIDTH);
            for (int k = 0; k < count; k++)
                tl_text_format(&w->text, "%s%.3f", k > 0 ? ", " : "",
                               tl_random_unit(&w->random) - 0.5);
            tl_text_add(&w->text, "]\n");
        }
    }
}

/* x times a weight, with a bias or without; returns the number of the name f.. */
static int write_product(writer *w, const char *x)
{
    int product = w->fresh++;
    tl_text_format(&w->text, "f%d: ?[...] = MatMul(%s, w%d)\n", product, x, below(w, WEIGHTS));
    if (below(w, 2))
        return product;
    tl_text_format(&w->text, "f%d: ?[...] = Add(f%d, b%d)\n", w->fresh, product, below(w, WEIGHTS));
    return w->fresh++;
}

static void write_step(writer *w)
{
    int from = below(w, 4) ? w->count - 1 : any_value(w), to = w->count, a, b, c;
    const char *x = tl_arena_format(w->arena, "v%d", from);
    tl_text *t = &w->text;
    switch (below(w, 8)) {
    case 0:
        a = write_product(w, x);
        tl_text_format(t, "v%d: ?[...] = Gelu(f%d)\n", to, a);
        break;
    case 1:
        tl_text_format(t, "v%d: ?[...] = Add(v%d, v%d)\n", to, from, any_value(w));
        break;
    case 2:
        tl_text_format(t, "v%d: ?[...] = LayerNormalization(%s, b0, b1) {axis = 2}\n", to, x);
        break;
    case 3:
        tl_text_format(t, "v%d: ?[...] = Softmax(%s) {axis = %d}\n", to, x, 1 + below(w, 2));
        break;
    case 4:
        a = write_product(w, x);
        b = write_product(w, x);
        c = write_product(w, x);
        tl_text_format(t, "v%d: ?[...] = Attention(f%d, f%d, f%d) {heads = 2, scale = 0.5}\n", to,
                       a, b, c);
        break;
    case 5:
        a = w->fresh;
        w->fresh += 3;
        tl_text_format(t,
                       "f%d: ?[...] = Reshape(%s) {shape = [%d, 4]}\n"
                       "f%d: ?[...] = Gemm(f%d, w%d, b0)\nf%d: ?[...] = Relu(f%d)\n"
                       "v%d: ?[...] = Reshape(f%d) {shape = [%d, %d, 4]}\n",
                       a, x, w->batch * w->rows, a + 1, a, below(w, WEIGHTS), a + 2, a + 1, to,
                       a + 2, w->batch, w->rows);
        break;
    case 6:
        a = w->fresh;
        w->fresh += 2;
        tl_text_format(t,
                       "f%d: ?[...] = Transpose(%s) {perm = [0, 2, 1]}\nf%d: ?[...] = Neg(f%d)\n"
                       "v%d: ?[...] = Transpose(f%d) {perm = [0, 2, 1]}\n",
                       a, x, a + 1, a, to, a + 1);
        break;
    default:
        a = write_product(w, x);
        b = write_product(w, x);
        tl_text_format(t, "f%d: ?[...] = MatMul(f%d, w0)\nv%d: ?[...] = Add(f%d, f%d)\n", w->fresh,
                       a, to, w->fresh, b);
        w->fresh++;
        break;
    }
    w->count++;
}

static void write_output(writer *w)
{
    int extents[3] = { w->batch, w->rows, WIDTH }, last = w->count - 1, axis = below(w, 3);
    int start = below(w, extents[axis]), count = 1 + below(w, extents[axis] - start);
    int starts[3] = { 0, 0, 0 }, ends[3] = { w->batch, w->rows, WIDTH };
    starts[axis] = start;
    ends[axis] = start + count;
    switch (below(w, 3)) {
    case 0:
        tl_text_format(&w->text, "y: ?[...] = Relu(v%d)\n", last);
        break;
    case 1:
        tl_text_format(&w->text,
                       "const at: i64[] = [%d]\ny: ?[...] = Gather(v%d, at) {axis = %d}\n",
                       start - (below(w, 2) ? extents[axis] : 0), last, axis);
        break;
    default:
        tl_text_format(&w->text,
                       "y: ?[...] = Slice(v%d) {starts = [%d, %d, %d], ends = [%d, %d, %d], axes = "
                       "[0, 1, 2], steps = [1, 1, 1]}\n",
                       last, starts[0], starts[1], starts[2], ends[0], ends[1], ends[2]);
        break;
    }
    tl_text_add(&w->text, "output y\n");
}

static void run_case(uint64_t seed)
{
    writer w = { .arena = tl_arena_create(0), .random = tl_random_make(seed), .count = 1 };
    tl_diag diag = { { 0 } };
    w.batch = 1 + below(&w, 2);
    w.rows = 1 + below(&w, 4);
    tl_text_format(&w.text, "graph g\ninput v0: f32[%d, %d, 4]\n", w.batch, w.rows);
    write_weights(&w);
    for (int steps = 1 + below(&w, MOST_STEPS); steps > 0; steps--)
        write_step(&w);
    write_output(&w);

    const char *text = tl_text_get(&w.text);
    float *x = random_floats(w.arena, w.batch * w.rows * WIDTH, seed);
    tl_graph *before = prepared_graph(w.arena, text, "x86-64"), *after = parse_graph(w.arena, text);
    if (tl_graph_prepare(after, TL_NUMERICS_RELAXED, &diag) != TL_OK)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, diag.text, text);
    assert_true(tl_shape_equal(&before->outputs[0]->shape, &after->outputs[0]->shape));
    const float *want = run_graph(w.arena, before, (void *[]){ x }, 0);
    const float *got = run_graph(w.arena, after, (void *[]){ x }, 0);
    assert_close(got, want, tl_shape_elements(&before->outputs[0]->shape),
                 tl_arena_format(w.arena, "TL_SEED=%llu TL_SHAPES=1\n%s", (unsigned long long)seed,
                                 text));
    tl_text_free(&w.text);
    tl_arena_destroy(w.arena);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void prepared_graphs_give_the_same(void **state)
{
    (void)state;
    uint64_t first = from_environment("TL_SEED", 1), count = from_environment("TL_SHAPES", 200);
    for (uint64_t seed = first; seed < first + count; seed++)
        run_case(seed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepared_graphs_give_the_same),
    };
    return cmocka_run_group_tests_name("rewrites of graphs", tests, NULL, NULL);
}
