/* tests/frontend/test_windows.c: which values lie in another's storage and where, and that graphs of concatenations and
 * slices compute the same with and without. TL_SEED starts elsewhere, TL_GRAPHS runs more. */
#include <stdlib.h>
#include "tests/frontend/lower_helpers.h"

/* Nodes over x = f32[N, 16, 4, 4], w = f32[16, 16, 1, 1], k = f32[16, 16, 3, 3], v = f32[16, 32, 1, 1], with blocks of 8;
 * outputs; and who lies in whom, from which element on. */
static const struct {
    int batch;
    const char *nodes, *outputs, *windows;
} cases[] = {
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "z: ?[...] = Conv(j, v)",
      "z", "a in j from 0, b in j from 256" },
    /* a part with an activation, one that is pooled, one that others read too */
    { 1,
      "a: ?[...] = Conv(x, w)\nr: ?[...] = Relu(a)\n"
      "p: ?[...] = MaxPool(r) {kernel_shape = [1, 1]}\nj: ?[...] = Concat(p, r) {axis = 1}\n"
      "z: ?[...] = Conv(j, v)",
      "z", "r in j from 256, p in j from 0" },
    /* the halo that one part's reader needs is everyone's */
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(a, k) {pads = [1, 1, 1, 1]}\n"
      "j: ?[...] = Concat(a, b) {axis = 1}\nz: ?[...] = Conv(j, v)",
      "z", "a in j from 0, b in j from 576" },
    /* several images: blocks of channels come first */
    { 2,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "z: ?[...] = Conv(j, v)",
      "z", "a in j from 0, b in j from 512" },
    { 2,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 0}\n"
      "z: ?[...] = Conv(j, w)",
      "z", "a in j from 0, b in j from 512" },
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 2}\n"
      "z: ?[...] = Conv(j, w)",
      "z", "" },
    /* the same value twice, an input, a constant, an output: those have a place of their own */
    { 1, "a: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, a) {axis = 1}\nz: ?[...] = Conv(j, v)", "z",
      "" },
    { 1, "a: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, x) {axis = 1}\nz: ?[...] = Conv(j, v)", "z",
      "" },
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "z: ?[...] = Conv(j, v)",
      "z a", "" },
    /* in two concatenations: one of them, the other copies; */
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "c: ?[...] = Conv(j, v)\ni: ?[...] = Concat(c, a) {axis = 1}\nz: ?[...] = Conv(i, v)",
      "z", "a in i from 256, c in i from 0" },
    /* but in all that begin alike */
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "c: ?[...] = Conv(j, v)\ni: ?[...] = Concat(a, b, c) {axis = 1}\ns: ?[...] = Relu(j)\n"
      "t: ?[...] = Relu(i)",
      "s t", "a in i from 0, b in i from 256, j in i from 0, c in i from 512" },
    /* the whole is an output: plain, as its parts must be */
    { 1, "a: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, a) {axis = 1}", "j", "" },
    { 1,
      "a: ?[...] = ReduceMax(x) {axes = [1]}\nb: ?[...] = ReduceMin(x) {axes = [1]}\n"
      "j: ?[...] = Concat(a, b) {axis = 1}",
      "j", "a in j from 0, b in j from 16" },
    /* what would melt into the copy does; windows of it would be kernels of their own */
    { 1,
      "a: ?[...] = Relu(x)\nb: ?[...] = Neg(x)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "z: ?[...] = Exp(j)",
      "z", "" },
    /* slices: of whole blocks, of an input, of a part of a concatenation; not of every second channel, of a column, or
     * of what nobody stores */
    { 1,
      "a: ?[...] = Conv(x, w)\ns: ?[...] = Slice(a) {starts = [8], ends = [16], axes = [1]}\n"
      "z: ?[...] = MaxPool(s) {kernel_shape = [2, 2]}",
      "z", "s in a from 128" },
    { 1,
      "s: ?[...] = Slice(x) {starts = [1], ends = [2], axes = [1]}\n"
      "z: ?[...] = MaxPool(s) {kernel_shape = [2, 2]}",
      "z", "s in x from 16" },
    { 1,
      "a: ?[...] = Conv(x, w)\nb: ?[...] = Conv(x, w)\nj: ?[...] = Concat(a, b) {axis = 1}\n"
      "s: ?[...] = Slice(b) {starts = [8], ends = [16], axes = [1]}\n"
      "u: ?[...] = Slice(s) {starts = [0], ends = [8], axes = [1]}\nz: ?[...] = Conv(j, v)\n"
      "p: ?[...] = MaxPool(u) {kernel_shape = [2, 2]}",
      "z p", "a in j from 0, b in j from 256, s in j from 384" },
    { 1,
      "a: ?[...] = Conv(x, w)\n"
      "s: ?[...] = Slice(a) {starts = [0], ends = [16], axes = [1], steps = [2]}\n"
      "z: ?[...] = MaxPool(s) {kernel_shape = [2, 2]}",
      "z", "" },
    { 1,
      "a: ?[...] = Conv(x, w)\ns: ?[...] = Slice(a) {starts = [1], ends = [3], axes = [3]}\n"
      "z: ?[...] = MaxPool(s) {kernel_shape = [2, 2]}",
      "z", "" },
    { 1,
      "a: ?[...] = Relu(x)\ns: ?[...] = Slice(a) {starts = [8], ends = [16], axes = [1]}\n"
      "z: ?[...] = MaxPool(s) {kernel_shape = [2, 2]}",
      "z", "" },
};

static void what_lies_where(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tl_arena *arena = tl_arena_create(0);
        tl_text text = { 0 }, got = { 0 };
        tl_text_format(&text,
                       "graph g\ninput x: f32[%d, 16, 4, 4]\ninput w: f32[16, 16, 1, 1]\ninput k: "
                       "f32[16, 16, 3, 3]\ninput v: f32[16, 32, 1, 1]\n%s\n",
                       cases[k].batch, cases[k].nodes);
        for (const char *name = cases[k].outputs; *name != '\0'; name += *name == ' ') {
            size_t size = strcspn(name, " ");
            tl_text_format(&text, "output %.*s\n", (int)size, name);
            name += size;
        }
        tl_graph *g = prepared_graph(arena, tl_text_get(&text), "x86-64-v3");
        for (int i = 0; i < g->value_count; i++)
            if (g->values[i]->whole != NULL)
                tl_text_format(&got, "%s%s in %s from %lld", got.size > 0 ? ", " : "",
                               g->values[i]->name, g->values[i]->whole->name,
                               (long long)g->values[i]->whole_start);
        if (strcmp(tl_text_get(&got), cases[k].windows) != 0)
            fail_msg("%s\n  gives   %s\n  should  %s", cases[k].nodes, tl_text_get(&got),
                     cases[k].windows);
        tl_text_free(&got);
        tl_text_free(&text);
        tl_arena_destroy(arena);
    }
}

/* --- random graphs ---------------------------------------------------------------------------------------------------- */

enum { MOST_VALUES = 16 };

typedef struct {
    tl_random random;
    tl_text text;
    int count, channels[MOST_VALUES]; /* of t0, t1, ...: f32[batch, channels, 5, 6] */
} random_graph;

static int below(random_graph *r, int n)
{
    return (int)tl_random_below(&r->random, n);
}

static int pick(random_graph *r)
{
    return below(r, 2) ? r->count - 1 - below(r, r->count > 3 ? 3 : r->count) : below(r, r->count);
}

static void add_concat(random_graph *r)
{
    int parts = 2 + below(r, 2), channels = 0;
    bool latest = below(r, 4) > 0 && r->count >= parts; /* else any, also twice */
    tl_text inputs = { 0 };
    for (int i = 0; i < parts; i++) {
        int v = latest ? r->count - parts + i : pick(r);
        channels += r->channels[v];
        tl_text_format(&inputs, "%st%d", i > 0 ? ", " : "", v);
    }
    tl_text_format(&r->text, "t%d: ?[...] = Concat(%s) {axis = 1}\n", r->count,
                   tl_text_get(&inputs));
    r->channels[r->count++] = channels;
    tl_text_free(&inputs);
}

static void add_node(random_graph *r)
{
    int from = pick(r), channels = r->channels[from], n = r->count, kind = below(r, 8);
    if (kind < 3) {
        static const int widths[] = { 8, 16, 16, 32, 16, 5 };
        int width = widths[below(r, 6)], size = 1 + 2 * below(r, 2), pad = size / 2;
        tl_text_format(&r->text,
                       "const w%d: f32[%d, %d, %d, %d] = ...\nt%d: ?[...] = Conv(t%d, w%d) {pads = "
                       "[%d, %d, %d, %d]}\n",
                       n, width, channels, size, size, n, from, n, pad, pad, pad, pad);
        r->channels[r->count++] = width;
    } else if (kind == 3) {
        tl_text_format(&r->text, "t%d: ?[...] = Relu(t%d)\n", n, from);
        r->channels[r->count++] = channels;
    } else if (kind == 4) {
        tl_text_format(&r->text,
                       "t%d: ?[...] = MaxPool(t%d) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n",
                       n, from);
        r->channels[r->count++] = channels;
    } else if (kind == 5 && channels > 1) {
        int width = below(r, 2) && channels > 8 ? 8 : 1 + below(r, channels - 1);
        int start = below(r, 2) ? (channels - width) / 8 * 8 : below(r, channels - width + 1);
        tl_text_format(&r->text,
                       "t%d: ?[...] = Slice(t%d) {starts = [%d], ends = [%d], axes = [1]}\n", n,
                       from, start, start + width);
        r->channels[r->count++] = width;
    } else {
        add_concat(r);
    }
}

/* The weights' bytes are zeros in a parsed text: others take their place. */
static void fill_constants(tl_arena *arena, tl_graph *g)
{
    for (int i = 0; i < g->value_count; i++)
        if (g->values[i]->data != NULL)
            g->values[i]->data =
                random_floats(arena, tl_shape_elements(&g->values[i]->shape), (uint64_t)i);
}

static const float *compute(tl_arena *arena, const char *text, const char *target, int which,
                            tl_graph **out)
{
    tl_graph *g = prepared_graph(arena, text, target);
    fill_constants(arena, g);
    float *x = random_floats(arena, tl_shape_elements(&g->inputs[0]->shape), 99);
    *out = g;
    return run_graph(arena, g, (void *[]){ x }, which);
}

/* Within what another order of the sums may change. */
static void assert_same(const float *got, const float *want, int64_t count, const char *what)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * most))
            fail_msg("%s: element %lld is %g, should be %g", what, (long long)i, (double)got[i],
                     (double)want[i]);
}

/* Returns how many values lie in others. */
static int run_random(uint64_t seed)
{
    static const char *const targets[] = { "x86-64", "x86-64-v3", "x86-64-v4" };
    tl_arena *arena = tl_arena_create(0);
    random_graph r = { .random = tl_random_make(seed), .count = 1, .channels = { 16 } };
    const char *target = targets[below(&r, 3)];
    int windows = 0, nodes = 3 + below(&r, MOST_VALUES - 4);
    tl_text_format(&r.text, "graph g\ninput t0: f32[%d, 16, 5, 6]\n", below(&r, 5) ? 1 : 2);
    while (r.count <= nodes)
        add_node(&r);
    int outputs = 1 + below(&r, 2);
    for (int i = 0; i < outputs; i++)
        tl_text_format(&r.text, "output t%d\n", r.count - 1 - i);
    for (int i = 0; i < outputs; i++) {
        tl_graph *g, *plain;
        const float *got = compute(arena, tl_text_get(&r.text), target, i, &g);
        const float *want = compute(arena, tl_text_get(&r.text), "nvptx64", i, &plain);
        assert_same(got, want, tl_shape_elements(&g->outputs[i]->shape),
                    tl_arena_format(arena, "TL_SEED=%llu, %s\n%s", (unsigned long long)seed, target,
                                    tl_text_get(&r.text)));
        for (int v = 0; v < g->value_count; v++) {
            windows += g->values[v]->whole != NULL;
            assert_null(g->values[v]->whole != NULL ? g->values[v]->whole->whole : NULL);
        }
        for (int v = 0; v < plain->value_count; v++)
            assert_null(plain->values[v]->whole);
    }
    tl_text_free(&r.text);
    tl_arena_destroy(arena);
    return windows;
}

static void random_graphs_compute_the_same(void **state)
{
    (void)state;
    const char *given = getenv("TL_SEED"), *wanted = getenv("TL_GRAPHS");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t count = wanted != NULL ? strtoull(wanted, NULL, 10) : 60;
    int windows = 0;
    for (uint64_t seed = first; seed < first + count; seed++)
        windows += run_random(seed);
    if (count >= 20 && 2 * windows < (int)count)
        fail_msg("only %d windows in %d graphs", windows, (int)count);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_where),
        cmocka_unit_test(random_graphs_compute_the_same),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
